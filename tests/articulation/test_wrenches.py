"""External wrenches on bodies that turn, in link and in world axes, at points, of chosen instances."""

import numpy as np
import pytest

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
