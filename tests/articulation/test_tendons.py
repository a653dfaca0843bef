"""Properties of tendons of each world, and the work that tendons do."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import dynamics
from newton_like.articulation import Articulation, SimulationContext
from newton_like.model.tendons import Tendon
from tests.articulation.robots import add_robot, numbers

WORLDS = 4


@pytest.fixture
def robot(rng) -> Articulation:
    one = nl.ModelBuilder(gravity=0.0)
    add_robot(one, rng, floating=False)
    joint = one.joint_label.index("walker/left_hip_joint")
    other = one.joint_label.index("walker/right_knee_joint")
    one.add_tendon(Tendon(label="cross", joints=((joint, 0, 1.0), (other, 0, -0.5)), stiffness=2.0, damping=0.0))
    one.add_tendon(Tendon(label="limited", joints=((other, 0, 2.0),), limits=(-3.0, 3.0), solref_limit=(-50.0, -1.0)))
    ends = [
        one.add_site(b, xform=(*rng.uniform(-0.1, 0.1, 3), 0, 0, 0, 1))
        for b in (0, one.body_label.index("walker/right_hip"))
    ]
    one.add_tendon(Tendon(label="rope", path=tuple(("site", s) for s in ends), stiffness=3.0))
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, WORLDS)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), dt=1 / 1000, evaluator="general"), "walker")
    robot.write_joint_state_to_sim(rng.uniform(-0.5, 0.5, (WORLDS, 4)), 0.3 * rng.normal(size=(WORLDS, 4)))
    return robot


def test_names_and_defaults(robot):
    assert robot.fixed_tendon_names == ["cross", "limited"] and robot.spatial_tendon_names == ["rope"]
    assert robot.find_fixed_tendons("li.*") == ([1], ["limited"]) and robot.find_spatial_tendons(".*")[0] == [0]
    d = robot.data
    np.testing.assert_array_equal(d.fixed_tendon_stiffness.numpy()[0], [2.0, 0.0])
    np.testing.assert_array_equal(d.default_fixed_tendon_limit.numpy()[0, 1], [-3.0, 3.0])
    found = d.fixed_tendon_limit_stiffness.numpy()[0]
    assert np.isnan(found[0]) and found[1] == 50.0
    with pytest.raises(ValueError, match="'lose' matches no fixed tendon"):
        robot.find_fixed_tendons("lose")


@pytest.mark.parametrize("name", ["stiffness", "damping", "rest_length", "offset", "position_limit"])
def test_properties_of_fixed_tendons_reach_the_model_when_they_are_written(robot, rng, name):
    array = "pos_limits" if name == "position_limit" else name
    own = {"rest_length": "rest_lower", "position_limit": "limit_lower"}.get(name, name)

    def in_model() -> np.ndarray:
        return getattr(robot.model, f"tendon_{own}").numpy().reshape(WORLDS, 3).copy()

    before = in_model()
    values = np.sort(rng.uniform(0.1, 1.0, (2, 2, 2)).astype(np.float32), axis=-1)
    given = values if array == "pos_limits" else values[..., 0]
    getattr(robot, f"set_fixed_tendon_{name}")(given, env_ids=[1, 3])
    np.testing.assert_array_equal(in_model(), before)
    robot.write_fixed_tendon_properties_to_sim(fixed_tendon_ids=[0], env_ids=[3])
    wanted = before.copy()
    wanted[3, 0] = values[1, 0, 0]
    np.testing.assert_array_equal(in_model(), wanted)
    robot.write_fixed_tendon_properties_to_sim()
    wanted[[1, 3], :2] = values[..., 0]
    np.testing.assert_array_equal(in_model(), wanted)
    np.testing.assert_array_equal(getattr(robot.data, f"fixed_tendon_{array}").numpy()[[1, 3]], given)
    robot.set_fixed_tendon_offset(7.0)
    robot.reset([0])
    assert (robot.data.fixed_tendon_offset.numpy()[0] == robot.model.tendon_offset.numpy()[:2]).all()
    assert (robot.data.fixed_tendon_offset.numpy()[1:] == 7.0).all()


@pytest.mark.slow
def test_springs_lose_the_energy_that_joints_gain(robot):
    """Without gravity, damping and friction, kinetic energy and the energy of all springs are constant, in worlds of different springs."""
    model, state = robot.model, robot.sim.state
    robot.set_fixed_tendon_stiffness(np.array([[1.0], [2.0], [4.0], [8.0]]), fixed_tendon_ids=[0])
    robot.set_spatial_tendon_stiffness(np.array([[1.0], [5.0], [0.0], [20.0]]))
    robot.write_fixed_tendon_properties_to_sim()
    robot.write_spatial_tendon_properties_to_sim()

    def energy() -> tuple[np.ndarray, np.ndarray]:
        lengths = numbers(dynamics.tendon_lengths(model, state)).reshape(WORLDS, -1)
        rest, k = (numbers(x).reshape(WORLDS, -1) for x in (model.tendon_rest_lower, model.tendon_stiffness))
        return numbers(dynamics.kinetic_energy(model, state)), (0.5 * k * (lengths - rest) ** 2).sum(axis=1)

    motion, springs = energy()
    swing = np.zeros(WORLDS)
    for _ in range(300):
        robot.write_data_to_sim()
        robot.sim.step()
        now = energy()
        swing = np.maximum(swing, abs(now[1] - springs))
        np.testing.assert_allclose(sum(now), motion + springs, rtol=0.02, atol=1e-4)
    assert (swing > 1e-5).all() and swing.max() > 1e-2


def test_bad_properties_are_named(robot):
    with pytest.raises(ValueError, match="stiffness of fixed tendons must be at least 0"):
        robot.set_fixed_tendon_stiffness(-1.0)
    with pytest.raises(NotImplementedError, match="solref_limit"):
        robot.set_fixed_tendon_limit_stiffness(1.0)
    with pytest.raises(IndexError, match="fixed_tendon_ids: index 2"):
        robot.set_fixed_tendon_damping(1.0, fixed_tendon_ids=[2])
    robot.set_fixed_tendon_limit(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="fixed tendon 'cross' of instance 0: its lower limit is above"):
        robot.write_fixed_tendon_properties_to_sim()
    assert isinstance(robot.data.fixed_tendon_limit, wp.array)
