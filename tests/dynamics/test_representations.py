"""Arguments for representations: one meaning and one default each, as in docs/conventions.md."""

import inspect

import numpy as np
import pytest
import warp as wp

from newton_like import MechanismState, dynamics
from newton_like.types import VelRepr
from tests.support.random_trees import random_state, random_tree

FUNCTIONS = [getattr(dynamics, name) for name in dynamics.__all__ if inspect.isfunction(getattr(dynamics, name))]
INERTIAS = {"link_spatial_inertia", "crb_inertia"}
WRENCHES = {"link_contact_forces", "soft_contact_forces"}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_argument_has_one_default(function):
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values() if p.name.endswith("repr")}
    name = function.__name__
    out = VelRepr.BODY if name in INERTIAS else VelRepr.COM if name in WRENCHES else VelRepr.MIXED
    known = {"repr": None, "out_repr": out, "link_forces_repr": VelRepr.COM, "forces_repr": VelRepr.MIXED}
    assert defaults == {key: known[key] for key in defaults}


RESULTS = ["link_velocities", "total_momentum", "locked_spatial_inertia", "average_velocity", "crb_inertia", "joint_twists",
           "motion_subspaces", "joint_bias_accelerations", "centroidal_momentum", "link_spatial_inertia", "com_velocity"]  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_results_without_a_generalised_velocity_take_both_names(rng, by_numpy, name):
    model = random_tree(rng, joints=4, floating=True).finalize("cpu", dtype=wp.float64)
    state = model.state()
    for array, values in zip((state.joint_q, state.joint_qd), random_state(model, rng), strict=True):
        array.assign(values)
    mechanism, function = MechanismState(model, state), getattr(dynamics, name)
    quantity = {"link_spatial_inertia": "link_spatial_inertias", "crb_inertia": "crb_inertias"}.get(name, name)
    for kind in VelRepr:
        expected = function(model, state, out_repr=kind).numpy()
        np.testing.assert_array_equal(function(model, state, repr=kind).numpy(), expected)
        np.testing.assert_array_equal(getattr(mechanism, quantity)(repr=kind).numpy(), expected)
        np.testing.assert_array_equal(getattr(mechanism, quantity)(out_repr=kind).numpy(), expected)
    with pytest.raises(ValueError, match="out_repr"):
        function(model, state, out_repr=None)
    with pytest.raises(ValueError, match="out_repr"):
        function(model, state, out_repr=9)
