"""Bodies on the ground that kinematic bodies push against much friction, where extrapolated sweeps diverge and plain ones converge."""

import numpy as np

from newton_like import Mesh, ModelBuilder
from newton_like.solvers import SolverFeatherstone

DT = 1.0 / 240.0


def prism(sides: int) -> Mesh:
    """A prism with a regular base of radius 1 and height 1, closed by triangles."""
    turn = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    points = np.concatenate([np.c_[ring, np.full(sides, z)] for z in (-0.5, 0.5)])
    faces = []
    for i in range(sides):
        j = (i + 1) % sides
        faces += [(i, j, sides + j), (i, sides + j, sides + i)]
        if 0 < i < sides - 1:
            faces += [(0, j, i), (sides, sides + i, sides + j)]
    return Mesh(points, np.array(faces).ravel())


def pushed_prism() -> ModelBuilder:
    """A flat prism that rests on its side, and the corner of a kinematic box that turns and comes at it with 0.5 m/s."""
    world = ModelBuilder()
    pusher = world.add_link(is_kinematic=True)
    world.add_shape_box(pusher, hx=0.4, hy=0.05, hz=0.1)
    world.add_articulation([world.add_joint_free(pusher)])
    world.joint_q[-7:] = [0.0, 0.0208319, 0.1, 0.0, 0.0, -0.9247646, 0.3805398]
    world.joint_qd[-6:] = [0.0, 0.5, 0.0, 0.0, 0.0, -1.4380703]
    body = world.add_body()
    world.add_shape_convex_hull(body, mesh=prism(12), scale=(0.0595862, 0.0373064, 0.0393070))
    world.joint_q[-7:] = [-0.1835891, 0.0006239, 0.0367864, 0.2904249, 0.6447012, -0.5878536, -0.392991]
    return world


def test_a_body_that_a_kinematic_box_pushes_against_friction_stays_slow():
    """With the default friction of 1. Extrapolated sweeps over its contacts grew by a third each, up to 2e6 m/s."""
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(pushed_prism(), 3)
    model = scene.finalize("cpu")
    speeds = {}
    for iterations in (None, 500):
        options = {} if iterations is None else {"iterations": iterations, "tolerance": 0.0}
        solver, state = SolverFeatherstone(model, evaluator="general", **options), model.state()
        solver.step(state, state, dt=DT)
        speeds[iterations] = state.body_qd.numpy().astype(float)
    assert np.abs(speeds[500]).max() < 6.0
    # default settings are near the converged solution, in rad/s
    np.testing.assert_allclose(speeds[None], speeds[500], atol=0.1)
