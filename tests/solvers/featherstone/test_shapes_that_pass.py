"""Shapes that pass by each other closely and fast do not touch."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import newton_like as nl
from newton_like.solvers import SolverFeatherstone

KINDS = {
    "sphere": dict(radius=0.05),
    "box": dict(hx=0.05, hy=0.04, hz=0.05),
    "capsule": dict(radius=0.03, half_height=0.02),
    "cylinder": dict(radius=0.04, half_height=0.05),
    "cone": dict(radius=0.04, half_height=0.05),
    "ellipsoid": dict(rx=0.06, ry=0.04, rz=0.05),
}
HEIGHT = 0.05
"""How far each of them reaches along its z axis [m]."""


@pytest.mark.parametrize("block", ["fixed", "free"])
def test_shapes_that_pass_an_edge_keep_their_velocity(rng, block):
    """They fly past a block at up to 0.13 m a step, 4 to 15 mm above its top, in scenes that are turned at random."""
    scene, directions = nl.ModelBuilder(gravity=0.0), []
    for kind, size in KINDS.items():
        for _ in range(16):
            turn = Rotation.random(random_state=rng)
            world = nl.ModelBuilder(gravity=0.0)
            body = world.add_link(label="flying")
            getattr(world, f"add_shape_{kind}")(body, **size)
            joint = world.add_joint_free(body)
            world.add_articulation([joint])
            at = np.array([-rng.uniform(0.5, 0.8), rng.uniform(-0.2, 0.2), HEIGHT + rng.uniform(0.004, 0.015)])
            place = (*turn.apply(at), *turn.as_quat())
            velocity = turn.apply([rng.uniform(2.0, 30.0), 0.0, 0.0])
            world.joint_q[:7] = place
            world.joint_qd[:6] = [*velocity, 0.0, 0.0, 0.0]
            pose = (*turn.apply([0.0, 0.0, -0.2]), *turn.as_quat())
            other = -1 if block == "fixed" else world.add_body(xform=pose)
            xform = pose if block == "fixed" else None
            world.add_shape_box(other, hx=0.2, hy=0.5, hz=0.2, xform=xform)
            scene.add_world(world)
            directions.append(velocity)
    model = scene.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    for _ in range(120):
        solver.step(state, state, dt=1 / 240)
    velocities = state.joint_qd.numpy().reshape(len(directions), -1)
    np.testing.assert_allclose(velocities[:, :3], directions, rtol=1e-5, atol=1e-5)
    assert np.abs(velocities[:, 3:]).max() < 1e-4


@pytest.mark.parametrize("kind", ["sphere", "box", "cylinder"])
def test_fast_shapes_hit_what_is_in_their_way(rng, kind):
    """None is in front of a wall at one step and behind it at a later one, at up to 0.08 m a step; the wall is 2 cm thick."""
    scene = nl.ModelBuilder(gravity=0.0)
    for _ in range(16):
        world = nl.ModelBuilder(gravity=0.0)
        place = (-rng.uniform(0.5, 1.5), *rng.uniform(-0.2, 0.2, 2), *Rotation.random(random_state=rng).as_quat())
        getattr(world, f"add_shape_{kind}")(world.add_body(xform=place), **KINDS[kind])
        world.joint_qd[:6] = [rng.uniform(2.0, 20.0), *rng.uniform(-3.0, 3.0, 2), 0.0, 0.0, 0.0]
        scene.add_world(world)
    scene.add_shape_box(-1, hx=0.01, hy=5.0, hz=5.0)
    model = scene.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    for _ in range(120):
        solver.step(state, state, dt=1 / 240)
    assert np.all(state.joint_q.numpy().reshape(16, 7)[:, 0] < 0.0)
