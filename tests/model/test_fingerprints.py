"""Fingerprints of arrays: a change of one word is always found."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags
from newton_like.model.editing.fingerprints import Accepted, Digest
from newton_like.solvers import SolverFeatherstone


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


def test_any_byte_that_changes_changes_the_digest(rng):
    """Arrays of bytes, whose length need not be that of whole words."""
    for n in (*range(4, 12), *rng.integers(12, 700, 12)):
        array = wp.array(rng.integers(0, 2, n).astype(bool), dtype=wp.bool, device="cpu")
        digest, numbers = Digest([array]), array.numpy()
        seen = {digest.read()}
        for i in range(n):
            numbers[i] ^= True
            seen.add(digest.read())
            numbers[i] ^= True
        assert len(seen) == n + 1 and digest.read() in seen


def test_accepted_contents_are_known_until_they_change(rng):
    for n in (0, 1, 3, 4, 70):
        array, accepted = wp.array(rng.integers(0, 9, n).astype(np.int32), device="cpu"), Accepted()
        assert not accepted.known([array])
        accepted.accept()
        # the fingerprints of the shortest are not made
        assert accepted.known([array]) is (n == 0 or n >= 4)
        if n >= 4:
            array.numpy()[rng.integers(n)] += 1
            assert not accepted.known([array]) and not accepted.known([array])
            accepted.accept()
            assert accepted.known([array])
        # other memory is looked at again
        assert not accepted.known([wp.zeros(n + 1, dtype=wp.int32, device="cpu")])


def test_joints_that_are_disabled_later_are_refused_until_they_are_enabled_again(rng):
    builder = ModelBuilder()
    for _ in range(int(rng.integers(4, 9))):
        builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    solver = SolverFeatherstone(model)
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    enabled, i = model.joint_enabled.numpy(), int(rng.integers(model.joint_count))
    enabled[i] = False
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"index {i}\) is disabled"):
            solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    enabled[i] = True
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
