"""Random states within bounds."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder, dynamics, eval_fk
from newton_like.types import VelRepr
from tests.support.random_trees import random_tree


def model_of(rng, copies=64):
    tree, scene = random_tree(rng, joints=6, floating=True, limits=True, label="robot"), ModelBuilder()
    while tree.joint_type[0] != JointType.FREE:
        tree = random_tree(rng, joints=6, floating=True, limits=True, label="robot")
    scene.replicate(tree, copies)
    return scene.finalize("cpu")


def test_bounds_hold_and_are_reached(rng):
    """Positions, roll, pitch and yaw, velocities of bases and of joints: inside, and spread over the whole range."""
    model = model_of(rng)
    lowest = rng.normal(size=3)
    position, turn = (lowest, lowest + rng.uniform(1.0, 3.0, 3)), (-0.4, np.array([0.1, 0.2, 0.3]))
    linear, angular, joints = (2.0, 3.0), (-0.5, -0.25), (0.75, 1.0)
    state = dynamics.random_state(
        model, rng, base_pos_bounds=position, base_rpy_bounds=turn, base_vel_lin_bounds=linear, base_vel_ang_bounds=angular,
        joint_vel_bounds=joints,
    )  # fmt: skip
    q, v = state.joint_q.numpy().reshape(64, -1), state.joint_qd.numpy().reshape(64, -1)
    angles = Rotation.from_quat(q[:, 3:7]).as_euler("xyz")
    for values, (low, high) in (
        (q[:, :3], position), (angles, turn), (v[:, :3], linear), (v[:, 3:6], angular), (v[:, 6:], joints),
    ):  # fmt: skip
        low, high = np.broadcast_to(low, values.shape), np.broadcast_to(high, values.shape)
        share = (values - low) / (high - low)
        assert share.min() > -1e-5 and share.max() < 1.0 + 1e-5
        assert share.min() < 0.2 and share.max() > 0.8
    poses = model.state()
    eval_fk(model, state.joint_q, state.joint_qd, poses)
    np.testing.assert_array_equal(state.body_q.numpy(), poses.body_q.numpy())


def test_bounds_of_joints_hold_beside_their_limits(rng):
    model = model_of(rng)
    lower, upper = dynamics.joint_position_limits(model)
    for bounds in ((-0.3, 0.2), (np.full(model.joint_dof_count, -0.3), 0.2)):
        try:
            state = dynamics.random_state(model, rng, joint_pos_bounds=bounds)
        except ValueError as error:
            assert "limits" in str(error)
            assert ((np.maximum(lower, -0.3) > np.minimum(upper, 0.2))[np.isfinite(lower)]).any()
            continue
        for i, name in enumerate(dynamics.joint_names(model)):
            span = dynamics.joint_dofs(model, name)
            coords = dynamics.joint_coords(model, name)
            if coords.stop - coords.start == span.stop - span.start and span.stop > span.start:
                values = state.joint_q.numpy().reshape(64, -1)[:, coords]
                assert (values >= np.maximum(lower[span], -0.3) - 1e-6).all(), i
                assert (values <= np.minimum(upper[span], 0.2) + 1e-6).all(), i


@pytest.mark.slow
def test_velocities_are_in_the_representation_that_is_asked_for(rng):
    model = model_of(rng)
    state = dynamics.random_state(model, rng, base_vel_lin_bounds=(1.0, 2.0), repr=VelRepr.BODY)
    linear = dynamics.velocity(model, state, VelRepr.BODY).numpy()[:, :3]
    assert linear.min() > 1.0 - 1e-5 and linear.max() < 2.0 + 1e-5


def test_equal_seeds_give_equal_states(rng):
    model, seed = model_of(rng, 3), int(rng.integers(1 << 30))
    first, second, third = (dynamics.random_state(model, s, base_rpy_bounds=(-1, 1)) for s in (seed, seed, seed + 1))
    for name in ("joint_q", "joint_qd"):
        np.testing.assert_array_equal(getattr(first, name).numpy(), getattr(second, name).numpy())
        assert (getattr(first, name).numpy() != getattr(third, name).numpy()).any()


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ((1.0, 0.0), ValueError),
        ((0.0,), ValueError),
        (1.0, TypeError),
        ((0.0, np.inf), ValueError),
        ((np.zeros(2), 1), ValueError),
        (None, TypeError),
    ],
)
def test_bounds_that_are_none_are_refused_by_name(rng, bounds, error):
    with pytest.raises(error, match="base_vel_ang_bounds"):
        dynamics.random_state(model_of(rng, 1), rng, base_vel_ang_bounds=bounds)
