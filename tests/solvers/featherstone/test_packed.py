"""Steps of robots whose links touch each other: sweeps over packed contacts and steps of Newton, against sweeps of one world at a time."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import assets
from newton_like.solvers import SolverFeatherstone

WORLDS = 12


def fallen_quadrupeds(rng, turning: float = 0.0, joints: bool = False):
    """A model of limp quadrupeds that touch themselves and the ground, and states of them while they fall. With `turning`, contacts have
    torsional and rolling friction; with `joints`, joints have dry friction and low velocity limits."""
    robot = nl.ModelBuilder()
    robot.default_shape_cfg.mu_torsional = robot.default_shape_cfg.mu_rolling = turning
    robot.add_urdf(
        assets.path("quadruped.urdf"), xform=(0, 0, 0.3, 0, 0, 0, 1), floating=True, enable_self_collisions=True
    )
    if joints:
        robot.joint_friction[6:] = [0.4] * (len(robot.joint_friction) - 6)
        robot.joint_velocity_limit[6:] = [2.0] * (len(robot.joint_velocity_limit) - 6)
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
@pytest.mark.parametrize("width", [8, 1])
def test_steps_of_newton_find_the_velocities_of_sweeps_alone(rng, width, monkeypatch):
    """Many sweeps of single worlds, without packed contacts and steps of Newton, are the reference."""
    model, q = fallen_quadrupeds(rng)
    state = model.state()
    solver = SolverFeatherstone(model, width=width, evaluator="general")
    with monkeypatch.context() as patch:
        # as for a robot with more degrees of freedom
        patch.setattr("newton_like.solvers.featherstone.stepper.MOST_DOFS", 0)
        swept = SolverFeatherstone(model, width=1, evaluator="general")
    assert [x._steppers[0].work.numbers["polished"] for x in (solver, swept)] == [1, 0]
    solver.reset(state, None, q.ravel(), np.zeros(model.joint_dof_count))
    apart, error = [], []
    for _ in range(8):
        for _ in range(15):
            solver.step(state, state, None, None, 1.0 / 240.0)
        default = solved(solver, model, state, 1)
        swept.reset(state, None, state.joint_q.numpy(), state.joint_qd.numpy())
        found = []
        for each in (solver, swept):
            each.iterations, each.tolerance = 16, 0.0
            found.append([solved(each, model, state, 15) for _ in range(2)])
            each.iterations, each.tolerance = 8, 1.0e-3
        (before, converged), (earlier, reference) = found
        scale = 1.0 + np.abs(reference).max(axis=1)

        def difference(a, b, scale=scale):
            return np.abs(a - b).max(axis=1) / scale

        # worlds in which links press each other into the ground converge slowly
        both = np.maximum(difference(converged, before), difference(reference, earlier)) < 1e-9
        apart.append(difference(converged, reference)[both])
        error.append(difference(default, reference)[both])
    apart, error = np.concatenate(apart), np.concatenate(error)
    assert len(apart) > 8
    # a few worlds have several solutions, because of friction
    assert np.quantile(apart, 0.8) < 1e-6
    assert np.quantile(error, 0.5) < 1e-3
    # sweeps find something to do
    assert np.max(error) > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("turning", [0.0, 0.01])
def test_worlds_that_are_solved_one_at_a_time_reach_the_tolerance(rng, turning, monkeypatch):
    """With a tolerance that sweeps of a block do not reach, the velocities are those of many sweeps of single worlds."""
    model, q = fallen_quadrupeds(rng, turning, joints=True)
    state = model.state()
    solver = SolverFeatherstone(model, width=8, evaluator="general")
    with monkeypatch.context() as patch:
        patch.setattr("newton_like.solvers.featherstone.stepper.MOST_DOFS", 0)
        swept = SolverFeatherstone(model, width=1, evaluator="general", iterations=64, tolerance=0.0)
    solver.reset(state, None, q.ravel(), np.zeros(model.joint_dof_count))
    error = []
    for _ in range(6):
        for _ in range(20):
            solver.step(state, state, None, None, 1.0 / 240.0)
        solver.tolerance = 1.0e-7
        exact = solved(solver, model, state, 2)
        solver.tolerance = 1.0e-3
        swept.reset(state, None, state.joint_q.numpy(), state.joint_qd.numpy())
        before, reference = (solved(swept, model, state, times) for times in (6, 4))
        scale = 1.0 + np.abs(reference).max(axis=1)
        settled = np.abs(reference - before).max(axis=1) / scale < 1e-8
        error.append((np.abs(exact - reference).max(axis=1) / scale)[settled])
    error = np.concatenate(error)
    assert len(error) > 12
    # a few worlds have several solutions, because of friction
    assert np.median(error) < 1e-5 and np.quantile(error, 0.75) < 1e-4


@pytest.mark.slow
def test_threads_with_one_world_find_the_same_velocities(rng, monkeypatch):
    """Threads with one world, which read the list of contacts and make other steps of Newton, find the velocities of blocks with packed
    contacts as exactly as `tolerance` asks for; the memory layout of a GPU gives the same bits."""
    model, q = fallen_quadrupeds(rng)
    many, one = (SolverFeatherstone(model, width=width, evaluator="general") for width in (8, 1))
    with monkeypatch.context() as patch:
        patch.setattr("newton_like.programs.device.STAND_IN", True)
        interleaved = SolverFeatherstone(model, width=1, evaluator="general")
    state = model.state()
    many.reset(state, None, q.ravel(), np.zeros(model.joint_dof_count))
    apart = []
    for _ in range(4):
        for _ in range(30):
            many.step(state, state, None, None, 1.0 / 240.0)
        start = state.joint_q.numpy(), state.joint_qd.numpy()
        found = []
        for solver in (many, one, interleaved):
            # all start without remembered forces
            solver.reset(state, None, *start)
            found.append(solved(solver, model, state, 2))
        np.testing.assert_array_equal(found[2], found[1])
        apart.append(np.abs(found[1] - found[0]).max(axis=1) / (1.0 + np.abs(found[0]).max(axis=1)))
    assert np.quantile(apart, 0.1) < 1e-4
    assert np.quantile(apart, 0.5) < 5e-3


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
