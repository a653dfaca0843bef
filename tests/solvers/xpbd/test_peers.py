"""Motions of both solvers and of MuJoCo agree, the better the smaller the time step."""

import numpy as np
import pytest

from newton_like.solvers import SolverFeatherstone
from tests.solvers.xpbd.scenes import after, pendulum, started, xpbd
from tests.solvers.xpbd.test_contacts import boxes

mujoco = pytest.importorskip("mujoco")


def in_mujoco(model, q, qd, seconds: float, **options) -> np.ndarray:
    """Joint coordinates that MuJoCo finds with a small time step."""
    from tests.support.mujoco_bridge import MujocoBridge

    bridge = MujocoBridge(model, **options)
    bridge.model.opt.timestep = 1.0 / 9600.0
    bridge.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    bridge.set_state(np.asarray(q, dtype=float), np.asarray(qd, dtype=float))
    for _ in range(round(seconds * 9600)):
        mujoco.mj_step(bridge.model, bridge.data)
    return bridge.data.qpos.copy()


def test_a_double_pendulum_swings_as_in_both(rng):
    model = pendulum(2).finalize("cpu")
    q, qd = rng.uniform(-0.5, 0.5, 2), rng.uniform(-1.0, 1.0, 2)
    exact = in_mujoco(model, q, qd, 0.5)
    other = after(SolverFeatherstone(model, evaluator="general"), started(model, q, qd), 0.5, 1 / 1920)
    assert other.joint_q.numpy() == pytest.approx(exact, abs=1e-4)
    errors = []
    for dt in (1 / 60, 1 / 120, 1 / 240):
        state = after(xpbd(model, substeps=2, iterations=8), started(model, q, qd), 0.5, dt)
        errors.append(abs(state.joint_q.numpy() - exact).max())
    assert errors[0] < 2e-2
    assert errors[1] < 0.35 * errors[0] + 5e-5
    assert errors[2] < 0.35 * errors[1] + 5e-5


def test_a_box_slides_as_in_both(rng):
    """MuJoCo's contacts are softer, and let a box creep: the ways agree to 1 %."""
    mu, speed = rng.uniform(0.3, 0.6), rng.uniform(1.0, 2.0)
    model = boxes([(0, 0, 0.1)], mu).finalize("cpu")
    q, qd = model.joint_q.numpy(), np.array([speed, 0, 0, 0, 0, 0])
    exact = in_mujoco(model, q, qd, 0.3, contacts=True)[0]
    other = after(SolverFeatherstone(model, evaluator="general"), started(model, q, qd), 0.3, 1 / 960)
    assert other.joint_q.numpy()[0] == pytest.approx(exact, rel=0.02)
    errors = []
    for dt in (1 / 120, 1 / 480):
        # braking by Coulomb friction is constant: both solvers integrate it exactly
        state = after(xpbd(model), started(model, q, qd), 0.3, dt)
        errors.append(abs(state.joint_q.numpy()[0] - other.joint_q.numpy()[0]))
        assert state.joint_q.numpy()[0] == pytest.approx(exact, rel=0.02)
    # single precision: coordinates of 1 m round by 1e-7 in each of 72 to 288 steps
    assert max(errors) < 5e-5
