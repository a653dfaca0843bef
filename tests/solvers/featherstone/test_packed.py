"""Sweeps over packed contacts, of robots whose links touch each other, against sweeps of one world at a time, which are not packed."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import assets
from newton_like.solvers import SolverFeatherstone

WORLDS = 12


def fallen_quadrupeds(rng):
    """A model of limp quadrupeds that touch themselves and the ground, and states of them while they fall."""
    robot = nl.ModelBuilder()
    robot.add_urdf(
        assets.path("quadruped.urdf"), xform=(0, 0, 0.3, 0, 0, 0, 1), floating=True, enable_self_collisions=True
    )
    scene = nl.ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(robot, WORLDS)
    model = scene.finalize("cpu", dtype=wp.float64)
    q = model.joint_q.numpy().reshape(WORLDS, -1)
    turn = rng.normal(size=(WORLDS, 4))
    q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    q[:, 7:] += rng.normal(0.0, 0.6, (WORLDS, q.shape[1] - 7))
    return model, q


def solved(solver, model, state, times: int) -> np.ndarray:
    """Joint velocities ``[world, dof]`` after a step that is solved several times, each with the forces of the time before."""
    out = model.state()
    for _ in range(times):
        solver.step(state, out, None, None, 1.0 / 240.0)
    return out.joint_qd.numpy().reshape(WORLDS, -1)


@pytest.mark.slow
def test_packed_sweeps_find_the_velocities_of_single_worlds(rng):
    """Sweeps of single worlds, which are not packed and make no steps of Newton, are the reference."""
    model, q = fallen_quadrupeds(rng)
    state = model.state()
    many, single = (SolverFeatherstone(model, width=width, evaluator="general") for width in (8, 1))
    many.reset(state, None, q.ravel(), np.zeros(model.joint_dof_count))
    single.iterations, single.tolerance = 16, 0.0
    apart, error = [], []
    for _ in range(4):
        for _ in range(30):
            many.step(state, state, None, None, 1.0 / 240.0)
        default = solved(many, model, state, 1)
        many.iterations, many.tolerance = 16, 0.0
        converged = solved(many, model, state, 20)
        many.iterations, many.tolerance = 8, 1.0e-3
        single.reset(state, None, state.joint_q.numpy(), state.joint_qd.numpy())
        reference = solved(single, model, state, 20)
        scale = 1.0 + np.abs(reference).max(axis=1)
        apart.append(np.abs(converged - reference).max(axis=1) / scale)
        error.append(np.abs(default - reference).max(axis=1) / scale)
    # worlds in which links press each other into the ground converge slowly
    assert np.quantile(apart, 0.5) < 1e-4
    assert np.quantile(error, 0.5) < 1e-3
    # sweeps find something to do
    assert np.max(error) > 1e-9


@pytest.mark.slow
def test_packed_worlds_do_not_depend_on_their_neighbours(rng):
    """Worlds have the same bits in another order, and beside a world that is not finite."""
    model, q = fallen_quadrupeds(rng)
    order = rng.permutation(WORLDS)
    lost = int(rng.integers(WORLDS))
    results = []
    for chosen, broken in ((np.arange(WORLDS), -1), (order, lost)):
        solver, state = SolverFeatherstone(model, width=8, evaluator="general"), model.state()
        start = q[chosen].copy()
        if broken >= 0:
            start[broken, 2] = np.nan
        state.joint_q.assign(start.ravel())
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
        for _ in range(90):
            solver.step(state, state, None, None, 1.0 / 240.0)
        results.append(np.concatenate([a.numpy().reshape(WORLDS, -1) for a in (state.joint_q, state.joint_qd)], axis=1))
    kept = np.arange(WORLDS) != lost
    assert np.isfinite(results[1][kept]).all()
    np.testing.assert_array_equal(results[1][kept], results[0][order][kept])
