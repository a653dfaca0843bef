"""Allocation matrices follow from the geometry, and allocation finds the thrusts of a wrench."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from newton_like.articulation.multirotor import LeePositionController, ThrusterCfg
from newton_like.articulation.multirotor.allocation import bounded_system, pseudo_inverse
from newton_like.articulation.multirotor.rotors import BOUNDED_DAMPING
from newton_like.geometry.transforms import quat_rotate, quat_to_matrix
from newton_like.model.builder.builder import ModelBuilder
from tests.support.multirotors import NO_LAG, flock, frame_vehicle, in_worlds, place


def expected_matrix(one, vehicle, ratio: float, axis=(0.0, 0.0, 1.0)) -> np.ndarray:
    """The allocation about the centre of mass of the body, from hubs, axes and spins."""
    poses = one.frames.transform
    axes = quat_rotate(poses[:, 3:], np.asarray(axis) / np.linalg.norm(axis))
    torque = (
        np.cross(poses[:, :3] - np.asarray(one.body_com[0]), axes)
        - ratio * np.asarray(vehicle.rotor_directions)[:, None] * axes
    )
    return np.concatenate([axes, torque], axis=1).T


def test_the_matrix_is_that_of_the_geometry(rng):
    axis = rng.normal(size=3)
    cfg = ThrusterCfg("rotor_.*", (0, 20), torque_to_thrust_ratio=0.05)
    one, vehicle = frame_vehicle(rng, 7, cfg=cfg, thruster_force_direction=tuple(axis))
    drone = in_worlds(one, vehicle, 2, 0.01)
    assert np.allclose(drone.allocation_matrix.numpy(), expected_matrix(one, vehicle, 0.05, axis), atol=1e-6)


def test_thrusts_push_the_body_as_the_matrix_says(rng):
    """In the axes of the body at the pose of the moment, about its centre of mass."""
    one, vehicle = frame_vehicle(rng, 5, cfg=ThrusterCfg("rotor_.*", (0, 20), **NO_LAG))
    drone = in_worlds(one, vehicle, 9, 0.01)
    place(drone, rng)
    thrusts = rng.uniform(0.0, 20.0, (9, 5))
    drone.set_thrust_target(thrusts)
    drone.write_data_to_sim()
    wrench = thrusts @ drone.allocation_matrix.numpy().T
    r = quat_to_matrix(drone.sim.state.body_q.numpy()[:, 3:])
    expected = np.concatenate([np.einsum("nij,nj->ni", r, wrench[:, k : k + 3]) for k in (0, 3)], axis=1)
    assert np.allclose(drone.sim.state.body_f.numpy(), expected, rtol=1e-5, atol=1e-4)


def test_the_matrix_times_its_inverse_is_the_identity(rng):
    for n in (6, 8):
        matrix = rng.normal(size=(3, 6, n)) * rng.uniform(0.01, 1.0, (6, 1))
        assert np.allclose(matrix @ pseudo_inverse(matrix), np.eye(6), atol=1e-9)


@pytest.mark.parametrize("vehicle", ["crazyflie", "iris", "hexarotor"])
def test_wrenches_within_reach_are_met(rng, vehicle):
    drone = flock(vehicle, 6)
    matrix = drone.allocation_matrix.numpy().astype(float)
    most = drone.thruster_parameter("thrust_max")[0, 0]
    thrusts = rng.uniform(0.2, 0.8, (6, drone.num_thrusters)) * most
    wrench = thrusts @ matrix.T
    for allocation in ("pseudo_inverse", "bounded"):
        drone.set_wrench_target(wrench, allocation=allocation)
        found = drone.data.thrust_target.numpy()
        scale = np.abs(matrix).max(axis=1) * most
        assert np.abs((found @ matrix.T - wrench) / np.maximum(scale, 1e-9)).max() < 2e-4


def test_a_shifted_centre_of_mass_moves_the_matrix(rng):
    import newton_like as nl

    drone = flock("iris", 3)
    shift = np.array([0.02, -0.01, 0.03], dtype=np.float32)
    before = drone.allocation_matrix.numpy().astype(float)
    com = drone.model.body_com.numpy()
    com[1] += shift
    drone.model.body_com.assign(com)
    drone.sim.solver.notify_model_changed(nl.ModelFlags.BODY_INERTIAL_PROPERTIES)
    after = drone.allocation_matrix.numpy()
    assert after.shape == (3, 6, 4)
    assert np.allclose(after[[0, 2]], before, atol=1e-6)
    moved = before.copy()
    moved[3:] += np.cross(-shift, before[:3].T).T
    assert np.allclose(after[1], moved, atol=1e-6)
    # and thrusts make these torques
    drone.set_thrust_target(3.0)
    for _ in range(200):
        drone.write_data_to_sim()
    body_f = drone.sim.state.body_f.numpy()
    assert np.allclose(body_f[1, 3:], moved[3:] @ np.full(4, 3.0), atol=1e-4)


def test_a_given_matrix_reaches_the_dynamics(rng):
    matrix = rng.normal(size=(6, 4))

    def give(settings):
        settings.allocation_matrix = matrix

    drone = flock("iris", 2, cfg=give)
    drone.set_thrust_target(2.0)
    for _ in range(300):
        drone.write_data_to_sim()
    assert np.allclose(drone.sim.state.body_f.numpy(), matrix @ np.full(4, 2.0), rtol=1e-4, atol=1e-4)
    assert np.allclose(drone.allocation_matrix.numpy(), matrix, atol=1e-6)


@pytest.mark.parametrize(("vehicle", "load"), [("iris", 1.0), ("iris", 3.0), ("hexarotor", 1.0), ("hexarotor", 3.0)])
def test_bounded_thrusts_are_the_least_squares_within_limits(rng, vehicle, load):
    """The cost is that of SciPy's solver, and the limits hold."""
    count = 40
    drone = flock(vehicle, count)
    matrix = drone.allocation_matrix.numpy().astype(float)
    n, most = drone.num_thrusters, drone.thruster_parameter("thrust_max")[0, 0]
    wrench = (rng.uniform(0, most, (count, n)) + load * most * rng.normal(size=(count, n))) @ matrix.T
    weights = rng.uniform(0.5, 5.0, 6)
    drone.set_wrench_target(wrench, allocation="bounded", weights=weights)
    found = drone.data.thrust_target.numpy().astype(float)
    assert (found >= 0.0).all()
    assert (found <= most * (1 + 1e-6)).all()
    inverse = pseudo_inverse(matrix)
    normal, right = bounded_system(matrix, inverse, weights, BOUNDED_DAMPING)
    root = np.linalg.cholesky(normal).T
    for f, w in zip(found, wrench, strict=True):
        goal = np.linalg.solve(root.T, right @ w)
        best = lsq_linear(root, goal, (0.0, most), tol=1e-14)
        cost = 0.5 * np.sum((root @ f - goal) ** 2)
        assert cost - best.cost < 1e-5 * (0.5 * goal @ goal)


def test_bounded_thrusts_of_a_world_do_not_depend_on_the_others(rng):
    drone = flock("hexarotor", 16)
    wrench = 20.0 * rng.normal(size=(16, 6)).astype(np.float32)
    drone.set_wrench_target(wrench, allocation="bounded")
    alone = drone.data.thrust_target.numpy().copy()
    other = 20.0 * rng.normal(size=(16, 6)).astype(np.float32)
    other[5] = wrench[5]
    drone.set_wrench_target(other, allocation="bounded")
    assert np.array_equal(drone.data.thrust_target.numpy()[5], alone[5])


def test_wrenches_of_chosen_worlds_leave_the_targets_of_the_others(rng):
    drone = flock("iris", 8)
    drone.set_thrust_target(rng.uniform(0, 6, (8, 4)))
    before = drone.data.thrust_target.numpy().copy()
    drone.set_wrench_target([[0, 0, 10.0, 0, 0, 0]], env_ids=[2, 6])
    after = drone.data.thrust_target.numpy()
    rest = [i for i in range(8) if i not in (2, 6)]
    assert np.array_equal(after[rest], before[rest])
    assert np.allclose(after[[2, 6]].sum(axis=1), 10.0, rtol=1e-5)


def test_singular_allocations_are_refused_by_name(rng):
    def level(settings):
        settings.actuators["rotors"].torque_to_thrust_ratio = 0.0

    drone = flock("iris", 2, cfg=level)
    drone.set_thrust_target(1.0)
    with pytest.raises(ValueError, match=r"LeePositionController: .*rotor_0.*singular.*torque about z"):
        LeePositionController(drone)
    with pytest.raises(ValueError, match=r"set_wrench_target: .*singular"):
        drone.set_wrench_target(np.zeros(6))
    with pytest.raises(ValueError, match=r"force along x.*force along y"):
        LeePositionController(flock("crazyflie", 1), fully_actuated=True)


def test_the_centre_of_mass_follows_from_joints_and_not_from_poses_of_the_builder(rng):
    """A second body whose place is given by its joint alone."""
    one, vehicle = frame_vehicle(rng)
    place_of_joint, com = rng.normal(size=3), rng.normal(size=3)
    free = ModelBuilder()
    root = free.add_link(mass=1.0, inertia=np.eye(3), label="root")
    arm = free.add_link(mass=0.5, com=com, inertia=np.eye(3), label="arm")
    joints = [free.add_joint_free(root), free.add_joint_fixed(root, arm, parent_xform=(*place_of_joint, 0, 0, 0, 1))]
    free.add_articulation(joints, label="craft")
    free.frames.extend([f"rotor_{i}" for i in range(4)], [root] * 4, one.frames.transform)
    drone = in_worlds(free, vehicle, 2, 0.004)
    assert np.allclose(drone.rotors.masses.centre, (place_of_joint + com) / 3.0, atol=1e-6)
