"""Worlds whose states are no numbers are found, and numbers that are none are not hidden by bounds of forces and velocities."""

import numpy as np
import pytest

import newton_like as nl
from tests.solvers.xpbd.scenes import after, started, xpbd

WORLDS = 5


def hinges(**dof):
    """A rod on a hinge, in each world."""
    rod = nl.ModelBuilder()
    link = rod.add_link(mass=1.0, com=(0.3, 0, 0), inertia=0.01 * np.eye(3))
    rod.add_articulation([rod.add_joint_revolute(-1, link, axis=(0, 1, 0), target_ke=10.0, target_kd=1.0, **dof)])
    builder = nl.ModelBuilder()
    builder.replicate(rod, WORLDS)
    return builder.finalize("cpu")


@pytest.mark.parametrize("name", ["joint_target_q", "joint_f", "joint_act"])
@pytest.mark.parametrize("bound", [{"friction": 0.1}, {"effort_limit": 2.0}, {"velocity_limit": 3.0}, {}], ids=str)
def test_commands_that_are_no_numbers_break_their_world_only(bound, name, rng):
    """A comparison with NaN is false, so that a bound could take the place of NaN: the joint would stand still, or move at its bound."""
    model, broken = hinges(**bound), rng.integers(WORLDS)
    control = model.control()
    numbers = getattr(control, name).numpy()
    numbers[broken] = np.nan
    getattr(control, name).assign(numbers)
    solver, state = xpbd(model), started(model)
    after(solver, state, 2 / 240, 1 / 240, control)
    assert np.array_equal(solver.check(state), np.arange(WORLDS) != broken)


@pytest.mark.parametrize("update_joints", [True, False])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2.0e4])
def test_bodies_are_checked(wrong, update_joints, rng):
    """Also where steps do not write joint coordinates."""
    model, broken = hinges(), rng.integers(WORLDS)
    solver, state = xpbd(model, update_joints=update_joints), started(model)
    after(solver, state, 2 / 240, 1 / 240)
    assert solver.check(state).all()
    speeds = state.body_qd.numpy()
    speeds[broken, rng.integers(6)] = wrong
    state.body_qd.assign(speeds)
    assert np.array_equal(solver.check(state), np.arange(WORLDS) != broken)
    assert solver.check(state, highest_speed=np.inf).all() == (wrong == 2.0e4)
    solver.reset(state, [int(broken)])
    assert solver.check(state).all()
    if not np.isfinite(wrong):
        poses = state.body_q.numpy()
        poses[broken, rng.integers(7)] = wrong
        state.body_q.assign(poses)
        assert np.array_equal(solver.check(state), np.arange(WORLDS) != broken)
        after(solver, state, 2 / 240, 1 / 240)
        assert np.array_equal(solver.check(state), np.arange(WORLDS) != broken)
