"""Joints of several axes that follow another joint: all of their coordinates follow."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone

DT = 1.0e-3


def two_bodies(coeffs, mass, **axes) -> ModelBuilder:
    """A body whose joint moves relative to the world, and one whose joint moves relative to the first and follows."""
    builder, joints, body = ModelBuilder(gravity=0.0), [], -1
    for m in mass:
        parent, body = body, builder.add_link(mass=m, inertia=0.1 * m * np.eye(3))
        joints.append(builder.add_joint_d6(parent, body, **axes))
    builder.add_articulation(joints)
    builder.set_joint_mimic(joints[1], joints[0], coeffs=coeffs)
    return builder


def consistent_start(builder, coeffs, q, v, dtype=wp.float64):
    """A model and a state in which the follower has the place and velocity that it should have."""
    model = builder.finalize("cpu", dtype=dtype)
    state = model.state()
    state.joint_q.assign(np.concatenate([q, coeffs[0] + coeffs[1] * q]))
    state.joint_qd.assign(np.concatenate([v, coeffs[1] * v]))
    return model, state


@pytest.mark.parametrize("evaluator", ["general", pytest.param("specialised", marks=pytest.mark.slow)])
def test_bodies_on_slides_that_follow_move_as_one_mass(rng, evaluator):
    coeffs, mass = rng.uniform(-2.0, 2.0, 2), rng.uniform(0.5, 2.0, 2)
    q, v, force = rng.normal(size=(3, 3))
    model, state = consistent_start(two_bodies(coeffs, mass, linear_axes=["x", "y", "z"]), coeffs, q, v)
    control = model.control()
    control.joint_f.assign(np.concatenate([force, np.zeros(3)]))
    solver, steps = SolverFeatherstone(model, evaluator=evaluator), 500
    for _ in range(steps):
        solver.step(state, state, control, None, DT)
    whole, time = mass[0] + mass[1] * (1.0 + coeffs[1]) ** 2, steps * DT
    leader = q + v * time + 0.5 * force / whole * time * time
    found = state.joint_q.numpy().reshape(2, 3)
    np.testing.assert_allclose(found[0], leader, rtol=0, atol=1.0e-9 + 2.0 * DT * np.abs(force).max() / whole)
    np.testing.assert_allclose(found[1], coeffs[0] + coeffs[1] * found[0], rtol=0, atol=1.0e-9)
    # what makes the second body follow moves it, by three forces
    kinds = [(one.kind, one.index, one.part) for one in solver.couplings]
    assert kinds == [("mimic", 1, n) for n in range(3)]
    np.testing.assert_allclose(
        solver.coupling_forces().numpy(), mass[1] * (1.0 + coeffs[1]) * force / whole, rtol=1.0e-6, atol=1.0e-6
    )


def test_joints_of_two_hinges_and_a_slide_follow_in_all_coordinates(rng):
    coeffs, mass = (rng.uniform(-0.2, 0.2), rng.uniform(0.5, 1.5)), rng.uniform(0.5, 2.0, 2)
    axes = dict(linear_axes=["x"], angular_axes=["y", "z"])
    q, v = 0.2 * rng.normal(size=3), rng.normal(size=3)
    model, state = consistent_start(two_bodies(coeffs, mass, **axes), coeffs, q, v)
    solver = SolverFeatherstone(model, evaluator="general")
    for _ in range(200):
        solver.step(state, state, None, None, DT)
        found = state.joint_q.numpy().reshape(2, 3)
        np.testing.assert_allclose(found[1], coeffs[0] + coeffs[1] * found[0], rtol=0, atol=1.0e-5)
    assert (np.abs(found[0] - q) > 0.01).any()
