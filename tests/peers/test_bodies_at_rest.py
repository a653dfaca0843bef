"""A box on a box rests as in MuJoCo: heights, and the normal forces of both faces."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ShapeConfig
from tests.support.simulate import GRAVITY, Simulation, worlds_of

# the kernels take long to compile, and faster tests cover the same code
pytestmark = pytest.mark.slow

mujoco = pytest.importorskip("mujoco")

WORLDS = 4


def box_on_box(rng) -> ModelBuilder:
    """A box, moved and turned a little, just above a larger one on the ground."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    lower, upper = rng.uniform(0.15, 0.2, 3), rng.uniform(0.08, 0.12, 3)
    for half, place, yaw in (
        (lower, (0.0, 0.0, lower[2]), 0.0),
        (upper, (*rng.uniform(-0.03, 0.03, 2), 2.0 * lower[2] + upper[2] + 0.01), rng.uniform(-np.pi, np.pi)),
    ):
        body = builder.add_body(xform=(*place, 0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)))
        hx, hy, hz = half
        builder.add_shape_box(body, hx=hx, hy=hy, hz=hz, cfg=ShapeConfig(density=rng.uniform(300.0, 2000.0)))
    return builder


def mujoco_rest(simulation: Simulation, world: int, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Poses of the boxes after some seconds in MuJoCo, and the normal forces on the ground and between the boxes [N]."""
    from tests.support.mujoco_bridge import MujocoBridge

    bridge = MujocoBridge(simulation.model, world=world, contacts=True, between_bodies=True)
    model, data = bridge.model, bridge.data
    model.opt.timestep = 1.0 / 1000.0
    start = (simulation.model.joint_q, simulation.model.joint_qd)
    bridge.set_state(*(x.numpy().reshape(WORLDS, -1)[world] for x in start))
    for _ in range(round(1000 * seconds)):
        mujoco.mj_step(model, data)
    forces, wrench = np.zeros(2), np.zeros(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, wrench)
        bodies = model.geom_bodyid[data.contact[i].geom]
        forces[int(0 not in bodies)] += wrench[0]
    return bridge.get_state()[0].reshape(2, 7), forces


def test_a_box_on_a_box_rests_as_in_mujoco(rng):
    simulation = Simulation(worlds_of([box_on_box(rng) for _ in range(WORLDS)]), dtype=wp.float64)
    seconds = 3.0
    simulation.run(seconds)
    moving = simulation.model.shape_body.numpy() >= 0
    net = simulation.solver.contact_forces().numpy()[moving, 2].reshape(WORLDS, 2)
    # the net force on the upper box is that between the boxes; the ground carries both
    between, ground = net[:, 1], net.sum(axis=1)
    weight = GRAVITY * simulation.model.body_mass.numpy().reshape(WORLDS, 2)
    np.testing.assert_allclose(ground, weight.sum(axis=1), rtol=1.0e-3)
    for w in range(WORLDS):
        poses, forces = mujoco_rest(simulation, w, seconds)
        np.testing.assert_allclose(simulation.poses[w, :, 2], poses[:, 2], atol=1.0e-3)
        np.testing.assert_allclose([ground[w], between[w]], forces, rtol=1.0e-2)
        # what friction leaves of the landing
        np.testing.assert_allclose(simulation.poses[w, :, :2], poses[:, :2], atol=2.0e-3)
