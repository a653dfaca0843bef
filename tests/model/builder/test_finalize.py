"""Arguments of `ModelBuilder.finalize`."""

import numpy as np
import pytest

from newton_like import ModelBuilder


def test_validations_that_newton_can_skip_are_always_made():
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    names = (
        "all_validations",
        *(f"validation_{x}" for x in ("worlds", "joints", "shapes", "inertia", "structure", "joint_ordering")),
    )
    for value in (True, False):
        assert builder.finalize("cpu", **{f"skip_{name}": value for name in names}).body_count == 1
    builder.body_mass[0] = -1.0
    with pytest.raises(ValueError, match="mass"):
        builder.finalize("cpu", skip_all_validations=True)
    with pytest.raises(ValueError, match="skip_validation_shapes"):
        builder.finalize("cpu", skip_validation_shapes="no")
    with pytest.raises(TypeError, match=r"'skip_validation_shape'.*'skip_validation_shapes'"):
        builder.finalize("cpu", skip_validation_shape=True)
