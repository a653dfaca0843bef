"""Fingerprints of arrays: a change of one word is always found."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags
from newton_like.model.fingerprints import Digest


def test_any_word_that_changes_changes_the_digest(rng):
    """Arrays of all lengths around those of the rounds, one bit at a time."""
    for _ in range(12):
        sizes = rng.integers(1, 300, size=rng.integers(1, 4))
        arrays = [wp.array(rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32), device="cpu") for n in sizes]
        digest = Digest(arrays)
        seen, reads = {digest.read()}, 1
        for array in arrays:
            numbers = array.numpy()
            for i in range(len(numbers)):
                bit = np.int32(1) << np.int32(rng.integers(31))
                numbers[i] ^= bit
                seen.add(digest.read())
                reads += 1
                numbers[i] ^= bit
                assert digest.read() in seen
        # all of them differ from each other, too
        assert len(seen) == reads


def test_structure_that_was_edited_back_is_accepted(rng):
    builder = ModelBuilder()
    for _ in range(5):
        builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    model.notify_changed(ModelFlags.JOINT_PROPERTIES)
    child, i = model.joint_child.numpy(), int(rng.integers(5))
    child[i] += 1
    for flag in (ModelFlags.JOINT_PROPERTIES, ModelFlags.JOINT_PROPERTIES, ModelFlags.ALL):
        with pytest.raises(ValueError, match=r"joint_child was .* at finalize"):
            model.notify_changed(flag)
    child[i] -= 1
    model.notify_changed(ModelFlags.JOINT_PROPERTIES)
    model.notify_changed(ModelFlags.ALL)
