"""External wrenches on bodies that turn, in link and in world axes, at points, of chosen instances."""

import gc

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import Articulation, RigidObject, SimulationContext
from newton_like.articulation.multirotor import Multirotor, add_vehicle
from tests.articulation.robots import WORLDS, numbers, rotation, shake, walker


@pytest.fixture
def robot(rng):
    return walker(rng)


def applied(robot) -> np.ndarray:
    robot.write_data_to_sim()
    return numbers(robot.sim.state.body_f).reshape(WORLDS, -1, 6)


def test_wrenches_in_link_axes_turn_with_their_bodies(robot, rng):
    f, n, r = rng.normal(size=(3, WORLDS, 5, 3))
    robot.set_external_force_and_torque(f, n, r)
    for _ in range(2):
        turn = rotation(numbers(robot.data.body_link_quat_w))
        found = applied(robot)
        np.testing.assert_allclose(found[..., :3], np.einsum("nbij,nbj->nbi", turn, f), atol=1e-5)
        np.testing.assert_allclose(found[..., 3:], np.einsum("nbij,nbj->nbi", turn, n + np.cross(r, f)), atol=1e-5)
        shake(robot, rng)


def test_wrenches_in_world_axes_stay_while_bodies_turn(robot, rng):
    f, n, p = rng.normal(size=(3, WORLDS, 5, 3))
    robot.set_external_force_and_torque(f, n, p, is_global=True)
    for _ in range(2):
        x = numbers(robot.data.body_com_pos_w)
        found = applied(robot)
        np.testing.assert_allclose(found[..., :3], f, atol=1e-5)
        np.testing.assert_allclose(found[..., 3:], n + np.cross(p - x, f), atol=1e-4)
        shake(robot, rng)


def test_wrenches_add_up_or_replace_each_other_in_chosen_places(robot, rng):
    a, b, c = rng.normal(size=(3, 3))
    robot.permanent_wrench_composer.set_forces_and_torques(a, is_global=True)
    robot.permanent_wrench_composer.add_forces_and_torques(b, body_ids=[1, 3], env_ids=[0, 4], is_global=True)
    robot.instantaneous_wrench_composer.add_forces_and_torques(c, env_ids=np.arange(WORLDS) == 2, is_global=True)
    wanted = np.broadcast_to(a, (WORLDS, 5, 3)).copy()
    wanted[np.ix_([0, 4], [1, 3])] += b
    lasting = wanted.copy()
    wanted[2] += c
    np.testing.assert_allclose(applied(robot)[..., :3], wanted, atol=1e-5)
    np.testing.assert_allclose(applied(robot)[..., :3], lasting, atol=1e-5)
    robot.permanent_wrench_composer.set_forces_and_torques(c, body_ids=[3], env_ids=[4], is_global=True)
    lasting[4, 3] = c
    np.testing.assert_allclose(applied(robot)[..., :3], lasting, atol=1e-5)
    robot.reset([0, 1])
    lasting[[0, 1]] = 0.0
    np.testing.assert_allclose(applied(robot)[..., :3], lasting, atol=1e-5)
    robot.reset()
    assert not applied(robot).any()


def test_a_force_in_the_world_moves_the_centre_of_mass_of_the_robot(rng):
    """Without gravity: momentum grows by force times time, however the body turns."""
    robot = walker(rng, gravity=0.0, dt=1.0 / 2400.0)
    d, force = robot.data, np.array([1.0, -2.0, 0.5])

    def momentum():
        return np.einsum("nb,nbi->ni", numbers(d.body_mass), numbers(d.body_com_lin_vel_w))

    before = momentum()
    robot.set_external_force_and_torque(force, None, body_ids=[2], is_global=True)
    for _ in range(240):
        robot.write_data_to_sim()
        robot.sim.step()
    # a step keeps momentum to first order in its length
    np.testing.assert_allclose(
        momentum() - before, np.broadcast_to(240 * robot.sim.dt * force, before.shape), atol=1e-3
    )


def test_bad_wrenches_are_named(robot):
    with pytest.raises(ValueError, match=r"forces.*\(2, 3\).*\(5, 5, 3\)"):
        robot.set_external_force_and_torque(np.zeros((2, 3)), None)
    with pytest.raises(ValueError, match="forces, torques"):
        robot.set_external_force_and_torque(None, None)
    with pytest.raises(ValueError, match=r"positions.*forces"):
        robot.set_external_force_and_torque(None, np.zeros(3), np.zeros(3))
    with pytest.raises(IndexError, match="body_ids: index 7"):
        robot.set_external_force_and_torque(np.zeros(3), None, body_ids=[7])


def test_wrenches_of_two_assets_of_one_robot_add_up(robot, rng):
    """Step after step, whichever is applied first, if one of them ends, and if one is applied again."""
    other = Articulation(robot.sim, "walker")
    a, b, c = rng.normal(size=(3, 5, 3))

    def found(*assets) -> np.ndarray:
        for each in assets:
            each.write_data_to_sim()
        forces = numbers(robot.sim.state.body_f).reshape(WORLDS, -1, 6)[..., :3]
        robot.sim.step()
        return forces

    robot.set_external_force_and_torque(a, None, is_global=True)
    np.testing.assert_allclose(found(robot, other), [a] * WORLDS, atol=1e-5)
    other.set_external_force_and_torque(b, None, is_global=True)
    for order in ((robot, other), (other, robot), (robot, other, robot, other)):
        np.testing.assert_allclose(found(*order), [a + b] * WORLDS, atol=1e-5)
    robot.permanent_wrench_composer.reset()
    np.testing.assert_allclose(found(other, robot), [b] * WORLDS, atol=1e-5)
    robot.instantaneous_wrench_composer.add_forces_and_torques(c, is_global=True)
    np.testing.assert_allclose(found(robot, other), [b + c] * WORLDS, atol=1e-5)
    np.testing.assert_allclose(found(robot, other), [b] * WORLDS, atol=1e-5)
    other.reset()
    assert not found(robot, other).any()
    # an asset that is gone does not count
    other.set_external_force_and_torque(b, None, is_global=True)
    found(robot, other)
    robot.set_external_force_and_torque(a, None, is_global=True)
    np.testing.assert_allclose(found(robot), [a] * WORLDS, atol=1e-5)


def test_wrenches_of_another_asset_add_to_the_forces_of_rotors():
    one = nl.ModelBuilder(gravity=0.0)
    settings = add_vehicle(one, "iris")
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, 2)
    sim = SimulationContext(builder.finalize("cpu"), evaluator="general")
    drone = Multirotor(sim, "iris", settings)
    drone.write_data_to_sim()
    alone = numbers(sim.state.body_f)
    assert alone.any()
    force, ends = np.array([1.0, 2.0, 3.0]), []
    for order in (1, -1):
        drone.reset()
        sim.steps += 1
        body = RigidObject(sim, "iris") if drone.num_bodies == 1 else Articulation(sim, "iris")
        body.set_external_force_and_torque(force, None, body_ids=[0], is_global=True)
        for each in (drone, body)[::order]:
            each.write_data_to_sim()
        ends.append(numbers(sim.state.body_f).reshape(2, -1, 6) - alone.reshape(2, -1, 6))
        del body
    for added in ends:
        np.testing.assert_allclose(added[:, 0], [[*force, 0, 0, 0]] * 2, atol=1e-5)
        np.testing.assert_allclose(added[:, 1:], 0.0, atol=1e-5)


def test_forces_of_an_asset_that_is_gone_end(rng):
    """A robot that a notebook makes again has no wrench of the first one."""
    sim = SimulationContext(walker(rng).model)
    one = [Articulation(sim, "walker")]
    one[0].set_external_force_and_torque(rng.normal(size=3), None)
    assert applied(one[0]).any(axis=(1, 2)).all()
    again = Articulation(sim, "walker")
    one.clear()
    gc.collect()
    assert not applied(again).any()
    # forces that other code writes stay as long as no wrench acts
    sim.state.body_f.fill_(1.0)
    assert (applied(again) == 1.0).all()
    again.set_external_force_and_torque([0.0, 0.0, 2.0], None, body_ids=[0], is_global=True)
    np.testing.assert_array_equal(applied(again).sum(axis=1), np.tile([0, 0, 2.0, 0, 0, 0], (WORLDS, 1)))


def test_thrusts_of_a_multirotor_that_is_gone_end():
    one = nl.ModelBuilder()
    settings = add_vehicle(one, "iris")
    sim = SimulationContext(one.finalize("cpu"), evaluator="general")
    drones = [Multirotor(sim, "iris", settings)]
    drones[0].write_data_to_sim()
    assert sim.state.body_f.numpy()[0, 2] > 0.0
    drones.clear()
    gc.collect()
    RigidObject(sim, "iris").write_data_to_sim()
    assert not sim.state.body_f.numpy().any()
