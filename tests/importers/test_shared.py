"""What all importers do alike."""

import copy

import numpy as np
import pytest

from newton_like import ModelBuilder
from newton_like.importers.shared import unchanged_by_errors
from tests.support.mechanisms import quadruped


def test_an_error_leaves_every_attribute_of_a_builder_as_it_was():
    builder = ModelBuilder()
    builder.add_world(quadruped())
    before = copy.deepcopy(vars(builder))
    with pytest.raises(RuntimeError), unchanged_by_errors(builder):
        builder.gravity = (0.0, 0.0, -3.0)
        builder.add_world(quadruped())
        builder.begin_world()
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        builder.add_shape_sphere(body, radius=0.1)
        raise RuntimeError
    assert builder.gravity == ModelBuilder().gravity
    for name, value in before.items():
        if not name.startswith("_") or name in ("_gravity", "_current_world"):
            assert str(getattr(builder, name)) == str(value), name
    builder.add_world(quadruped())
    assert builder.finalize("cpu").world_count == 2
