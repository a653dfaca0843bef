"""Multirotors of two kinds and a body share worlds."""

import numpy as np

import newton_like as nl
from newton_like.articulation import InteractiveScene, RigidObject
from newton_like.articulation.multirotor import LeePositionController, Multirotor, add_vehicle


def test_two_kinds_of_multirotors_and_a_body_in_each_world(rng):
    """Each is where its controller, or gravity, takes it; a reset of some worlds leaves the others."""
    one = nl.ModelBuilder()
    heights = {"iris": 0.0, "hexarotor": 4.0}
    settings = {name: add_vehicle(one, name, xform=(0, 0, z, 0, 0, 0, 1)) for name, z in heights.items()}
    ball = one.add_link(mass=1.0, inertia=0.01 * np.eye(3), label="ball/body")
    one.add_articulation([one.add_joint_free(ball)], label="ball")
    scene = InteractiveScene.replicate(
        one, 7, env_spacing=4.0, device="cpu", dt=0.004, decimation=5, evaluator="general"
    )
    origins = scene.env_origins.numpy()
    goals = {}
    for name, cfg in settings.items():
        drone = scene.add(name, Multirotor(scene.sim, name, cfg))
        drone.controller = LeePositionController(drone)
        goals[name] = np.column_stack([origins + rng.uniform(-1.0, 1.0, (7, 3)), np.zeros(7)])
        goals[name][:, 2] += heights[name]
        drone.controller.set_command(goals[name])
    scene.add("ball", RigidObject(scene.sim, "ball"))
    for _ in range(400):
        scene.sim.advance(scene)
    for name, goal in goals.items():
        drone = scene[name]
        centre = drone.rotors.masses.centre[0]
        assert np.allclose(drone.data.root_pos_w.numpy() + centre, goal[:, :3], atol=5e-3)
    fallen = scene["ball"].data.root_pos_w.numpy()
    assert np.allclose(fallen - origins, [0.0, 0.0, -0.5 * 9.81 * 8.0**2], rtol=1e-2, atol=1e-3)
    before = {name: scene[name].data.applied_thrust.numpy().copy() for name in goals}
    for name in goals:
        scene[name].set_thrust_target(0.0)
    scene.reset([1, 4])
    for name in goals:
        now, k = scene[name].data.applied_thrust.numpy(), scene[name].thruster_parameter("thrust_constant")
        speeds = scene[name].data.default_thruster_rps.numpy()
        assert np.allclose(now[[1, 4]], (k * speeds**2)[[1, 4]], rtol=1e-5)
        rest = [0, 2, 3, 5, 6]
        assert np.array_equal(now[rest], before[name][rest])
