"""Shapes that overlap because joints hold them in each other: pushing them apart adds little energy."""

import numpy as np
import pytest

import newton_like as nl
from newton_like import dynamics
from newton_like.solvers import SolverFeatherstone
from tests.articulation.robots import add_robot

WORLDS, MASS = 8, 5.0


# random robots whose hips and knees overlap, whatever the angles of their joints
@pytest.mark.parametrize("robot", [3, 21, 32, 51])
def test_overlaps_that_joints_hold_do_not_throw_a_robot(rng, robot):
    one = nl.ModelBuilder()
    add_robot(one, np.random.default_rng(robot))
    for body in range(one.body_count):
        one.add_shape_sphere(body, radius=0.08, cfg=nl.ShapeConfig(density=0.0))
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(one, WORLDS)
    model = builder.finalize("cpu")
    state = model.state()
    q = state.joint_q.numpy().reshape(WORLDS, -1)
    q[:, 2], q[:, 3:7] = 0.4, rng.normal(size=(WORLDS, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    q[:, 7:] = rng.uniform(-1.0, 1.0, (WORLDS, 4))
    state.joint_q.assign(q.ravel())
    solver = SolverFeatherstone(model, evaluator="general")
    start, most = dynamics.potential_energy(model, state).numpy(), 0.0
    for _ in range(200):
        solver.step(state, state)
        energy = dynamics.kinetic_energy(model, state).numpy() + dynamics.potential_energy(model, state).numpy()
        most = max(most, (energy - start).max())
    # a push v adds up to m v^2; without the bounds on pushes, the sum is hundreds of joules
    assert most < 4.0 * MASS * solver.max_depenetration_speed**2
