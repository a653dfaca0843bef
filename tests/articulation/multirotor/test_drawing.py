"""Debug drawing of multirotors: thrusts at the hubs, and the goals of controllers."""

import numpy as np

from newton_like.articulation import InitialStateCfg
from newton_like.articulation.drawing import TARGET, THRUST
from newton_like.articulation.multirotor import LeeAttitudeController, LeePositionController, LeeVelocityController
from newton_like.geometry.markers import AXES, ROD, SPHERE
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.model.overlays import overlays_of
from tests.support.multirotors import flock, fly, place


def of_color(markers, color):
    return markers.chosen((markers.color == color).all(axis=1))


def directions(markers) -> np.ndarray:
    return quat_to_matrix(markers.pose[:, 3:])[:, :, 2] * markers.scale[:, 2:]


def test_thrusts_are_arrows_at_the_hubs(rng):
    drone = flock("hexarotor", 3)
    drone.debug_vis_cfg.newton, drone.debug_vis_cfg.size, drone.debug_vis_cfg.frames = 0.01, 1.0, False
    drone.set_thrust_target(rng.uniform(2.0, 8.0, (3, 6)))
    fly(drone, 20)
    place(drone, rng)
    arrows = of_color(drone.markers(), THRUST)
    rods, heads = (arrows.chosen(arrows.kind == kind) for kind in sorted(set(arrows.kind)))
    force = (directions(rods) + directions(heads)).reshape(3, 6, 3) / 0.01
    q = drone.sim.state.body_q.numpy().astype(float)
    r = quat_to_matrix(q[:, 3:])
    # each force is that of the allocation matrix, and so is its torque about the centre of mass
    matrix = drone.allocation_matrix.numpy().astype(float)
    thrust = drone.data.applied_thrust.numpy().astype(float)
    np.testing.assert_allclose(force, np.einsum("nij,jk,nk->nki", r, matrix[:3], thrust), atol=1e-4)
    begin = (rods.pose[:, :3] - 0.5 * directions(rods)).reshape(3, 6, 3)
    arm = begin - (q[:, :3] + r @ drone.rotors.masses.centre[0])[:, None]
    drag = -drone.rotors.spins[:, None] * drone.thruster_parameter("torque_to_thrust_ratio")[0][:, None] * force
    torque = np.einsum("nij,jk,nk->nki", r, matrix[3:], thrust)
    np.testing.assert_allclose(np.cross(arm, force) + drag, torque, atol=1e-3)


def test_goals_of_controllers_are_drawn(rng):
    drone = flock("iris", 2)
    drone.debug_vis_cfg.thrusts = drone.debug_vis_cfg.frames = False
    assert len(drone.markers()) == 0
    drone.controller = LeePositionController(drone)
    assert len(drone.markers()) == 0
    goal = rng.normal(size=(2, 4))
    drone.controller.set_command(goal)
    found = drone.markers()
    balls = found.chosen(found.kind == SPHERE)
    np.testing.assert_allclose(balls.pose[:, :3], goal[:, :3], rtol=1e-6)
    forward = directions(of_color(found, AXES[0]))
    yaw = np.stack([np.cos(goal[:, 3]), np.sin(goal[:, 3])], axis=-1)
    np.testing.assert_allclose(forward[:, :2] / np.linalg.norm(forward[:, :2], axis=1, keepdims=True), yaw, atol=1e-6)
    drone.controller = LeeVelocityController(drone)
    velocity = np.concatenate([rng.normal(size=(2, 3)), np.zeros((2, 1))], axis=1)
    drone.controller.set_command(velocity)
    arrow = of_color(drone.markers(), TARGET)
    way = directions(arrow.chosen(arrow.kind == ROD)) + directions(arrow.chosen(arrow.kind != ROD))
    np.testing.assert_allclose(way, velocity[:, :3] / 3.0, rtol=1e-5, atol=1e-6)
    drone.controller = LeeAttitudeController(drone)
    q = rng.normal(size=(2, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    drone.controller.set_command(np.concatenate([np.full((2, 1), 10.0), q], axis=1))
    up = directions(of_color(drone.markers(), AXES[2]))
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    np.testing.assert_allclose(up, quat_to_matrix(q)[:, :, 2], atol=1e-6)


def test_settings_state_the_start_and_the_debug_drawing():
    def cfg(settings):
        settings.debug_vis = True
        settings.init_state = InitialStateCfg(pos=(0.0, 0.0, 2.0), lin_vel=(1.0, 0.0, 0.0), rps={"rotor_.*": 90.0})

    drone = flock("iris", 2, cfg=cfg)
    assert (
        drone.cfg is drone.rotors.cfg and overlays_of(drone.model).markers(drone.model.body_q.numpy(), None) is not None
    )
    drone.reset_to()
    np.testing.assert_allclose(drone.data.root_pos_w.numpy(), [[0.0, 0.0, 2.0]] * 2)
    np.testing.assert_allclose(drone.data.root_lin_vel_w.numpy(), [[1.0, 0.0, 0.0]] * 2, atol=1e-6)
    np.testing.assert_allclose(drone.data.thruster_state.numpy(), 90.0)
