"""Traces evaluated by NumPy agree with kernels, and their adjoints with finite differences."""

import numpy as np
import pytest
import warp as wp

from newton_like import eval_fk, eval_mass_matrix, kinematics
from newton_like.dynamics import matrices
from tests.support.kinematic_cases import forest
from tests.support.random_trees import random_state
from tests.support.traced import run_traced


def test_traces_run_by_numpy_say_what_kernels_say(rng):
    model = forest(rng, worlds=3, robots=2, joints=9).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    state = model.state()
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    poses, twists = run_traced(model, kinematics._FK, [q, qd])
    # a few dozen roundings of numbers of up to ten
    np.testing.assert_allclose(poses, state.body_q.numpy().ravel(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(twists, state.body_qd.numpy().ravel(), rtol=1e-12, atol=1e-12)
    (masses,) = run_traced(model, matrices._MASS_MATRIX, [q])
    np.testing.assert_allclose(masses, eval_mass_matrix(model, state).numpy().ravel(), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["body_mass", "body_com", pytest.param("body_inertia", marks=pytest.mark.slow)])
def test_gradients_reach_inertial_parameters(rng, name):
    """Of the mass matrix, against central differences."""
    model = forest(rng, worlds=2, robots=1, joints=4).finalize("cpu", dtype=wp.float64, requires_grad=True)
    q, _ = random_state(model, rng)
    state = model.state(requires_grad=True)
    state.joint_q.assign(q)
    seed = rng.normal(size=(model.articulation_count, *[model.max_dofs_per_articulation] * 2))
    tape = wp.Tape()
    with tape:
        H = eval_mass_matrix(model, state)
    H.grad.assign(seed)
    tape.backward()
    array = getattr(model, name)
    gradient, values = array.grad.numpy().copy(), array.numpy().copy()
    way = rng.normal(size=values.shape)
    if name == "body_inertia":
        way = way + way.transpose(0, 2, 1)
    step, sums = 1e-6, []
    for sign in (1.0, -1.0):
        array.assign(values + sign * step * way)
        model.notify_changed()
        sums.append((seed * eval_mass_matrix(model, state).numpy()).sum())
    # truncation of step^2, and cancellation of 1e-16 / step, of numbers of up to a hundred
    np.testing.assert_allclose((gradient * way).sum(), (sums[0] - sums[1]) / (2 * step), rtol=1e-7, atol=1e-7)
