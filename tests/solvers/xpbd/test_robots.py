"""Robots of human size: joints stay closed under weight, and states go from one solver to the other."""

import pytest

import newton_like as nl
from newton_like import assets
from newton_like.solvers import SolverFeatherstone
from tests.solvers.xpbd.scenes import gaps, started, xpbd


@pytest.mark.slow
def test_joints_of_a_humanoid_stay_closed(rng):
    """The humanoid of the assets stands on its feet, held by its servos: gaps are below 0.1 mm, at the default settings and 1/240 s."""
    builder = nl.ModelBuilder()
    builder.add_mjcf(assets.path("humanoid.xml"), keyframe="standing")
    model = builder.finalize("cpu")
    state, solver = started(model), xpbd(model)
    height, most = state.body_q.numpy()[0, 2], []
    for _ in range(240):
        solver.step(state, state)
        most.append(gaps(model, state).max())
    assert max(most) < 1e-4
    assert state.body_q.numpy()[0, 2] == pytest.approx(height, abs=0.05)


@pytest.mark.slow
def test_states_go_from_one_solver_to_the_other(rng):
    """Each goes on where the other stopped: an arm that swings by both in turn moves as by one."""
    builder = nl.ModelBuilder()
    builder.add_urdf(assets.path("arm.urdf"))
    model = builder.finalize("cpu")
    q, qd = rng.uniform(-0.5, 0.5, model.joint_coord_count), rng.uniform(-0.5, 0.5, model.joint_dof_count)
    exact = started(model, q, qd)
    mixed = started(model, q, qd)
    solvers = SolverFeatherstone(model, evaluator="general"), xpbd(model, iterations=8)
    for i in range(8):
        for _ in range(60):
            solvers[0].step(exact, exact, dt=1 / 960)
            solvers[i % 2].step(mixed, mixed, dt=1 / 960)
        # both write joint coordinates and poses of bodies
        poses = mixed.body_q.numpy().copy()
        nl.eval_fk(model, mixed.joint_q, mixed.joint_qd, mixed)
        assert mixed.body_q.numpy() == pytest.approx(poses, abs=1e-5)
    assert mixed.joint_q.numpy() == pytest.approx(exact.joint_q.numpy(), abs=5e-3)
