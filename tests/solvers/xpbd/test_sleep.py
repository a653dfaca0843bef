"""Islands of bodies at rest fall asleep, and wake when something disturbs them."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.solvers.xpbd.sleep import TIME
from newton_like.types import BodyFlags
from tests.solvers.xpbd.scenes import started, xpbd

DT = 1.0 / 240.0
FALL = 0.5 * 9.81 * (24 * DT) ** 2
"""What falls freely moves by this in 24 steps [m]."""


def scene() -> nl.ModelBuilder:
    """A tower of three boxes (bodies 0 to 2), one of two at 2 m (3, 4), and one box on a kinematic plate (5, 6)."""
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    for x, boxes in ((0.0, 3), (2.0, 2)):
        for i in range(boxes):
            body = builder.add_body(xform=(x, 0, 0.1 + 0.2 * i, 0, 0, 0, 1))
            builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    plate = builder.add_body(xform=(-2, 0, 1, 0, 0, 0, 1))
    builder.add_shape_box(plate, hx=0.3, hy=0.3, hz=0.05)
    builder.body_flags[plate] = int(BodyFlags.KINEMATIC)
    body = builder.add_body(xform=(-2, 0, 1.15, 0, 0, 0, 1))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return builder


def asleep_scene(**options):
    model = scene().finalize("cpu")
    state, solver = started(model), xpbd(model, sleeping=True, **options)
    for _ in range(round((TIME + 0.3) / DT)):
        solver.step(state, state, dt=DT)
    assert solver._sleepers.asleep.tolist() == [True] * 5 + [False, True]
    return model, state, solver


def steps(solver, state, count: int = 24) -> np.ndarray:
    """How far bodies move, ``[bodies]`` [m]."""
    before = state.body_q.numpy()[:, :3].copy()
    for _ in range(count):
        solver.step(state, state, dt=DT)
    return np.linalg.norm(state.body_q.numpy()[:, :3] - before, axis=1)


@pytest.mark.slow
def test_what_sleeps_stays_where_it_is(rng):
    _, state, solver = asleep_scene()
    assert (steps(solver, state) == 0.0).all()
    assert (state.body_qd.numpy()[:5] == 0.0).all()


@pytest.mark.slow
def test_a_push_or_an_edit_of_the_state_wakes_an_island(rng):
    for disturb in ("force", "velocity", "pose"):
        _, state, solver = asleep_scene()
        body = int(rng.integers(3))
        if disturb == "force":
            force = np.zeros((7, 6), dtype=np.float32)
            force[body, 0] = 300.0
            state.body_f.assign(force)
        elif disturb == "velocity":
            speed = state.body_qd.numpy()
            speed[body, 0] = 1.0
            state.body_qd.assign(speed)
        else:
            pose = state.body_q.numpy()
            pose[body, 1] += 0.05
            state.body_q.assign(pose)
        solver.step(state, state, dt=DT)
        assert not solver._sleepers.asleep[:3].any() and solver._sleepers.asleep[3:5].all()


@pytest.mark.slow
def test_a_body_that_comes_wakes_what_it_touches():
    _, state, solver = asleep_scene()
    # the upper box of the second tower flies to the first one
    speed = state.body_qd.numpy()
    speed[4, 0], speed[4, 2] = -6.0, 1.5
    state.body_qd.assign(speed)
    assert (steps(solver, state, 96)[:3] > 0.0).any()


@pytest.mark.slow
def test_a_support_that_leaves_wakes_what_it_carried():
    # a kinematic plate that moves, one that was moved, and a box under others that was moved
    for way in ("velocity", "pose", "box"):
        _, state, solver = asleep_scene()
        poses, speeds = state.body_q.numpy(), state.body_qd.numpy()
        if way == "velocity":
            speeds[5, 2] = -20.0
        elif way == "pose":
            poses[5, 0] -= 5.0
        else:
            poses[0, 1] += 5.0
        state.body_q.assign(poses)
        state.body_qd.assign(speeds)
        moved = steps(solver, state)
        fallen = [1, 2] if way == "box" else [6]
        # 1 %: the first of 24 steps may still touch
        assert (moved[fallen] > 0.8 * min(FALL, 0.2)).all()


@pytest.mark.slow
def test_edits_and_resets_wake(rng):
    model, state, solver = asleep_scene()
    model.set_gravity((1.0, 0.0, -9.81))
    solver.step(state, state, dt=DT)
    assert not solver._sleepers.asleep.any()
    _, state, solver = asleep_scene()
    solver.reset(state)
    assert not solver._sleepers.asleep.any()


@pytest.mark.slow
def test_bits_do_not_depend_on_threads():
    poses = [asleep_scene(threads=threads)[1].body_q.numpy() for threads in (1, 2)]
    assert np.array_equal(*poses)


def test_slow_bodies_in_free_flight_keep_their_momentum():
    """One alone, and two that touch each other."""
    builder = nl.ModelBuilder(gravity=0.0)
    for x in (0.0, 3.0, 3.2):
        box = builder.add_body(xform=(x, 0, 0, 0, 0, 0, 1))
        builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    model = builder.finalize("cpu")
    solver, state = xpbd(model, sleeping=True), started(model, joint_qd=3 * [0.015, 0, 0, 0, 0, 0])
    for _ in range(240):
        solver.step(state, state, dt=DT)
    np.testing.assert_allclose(state.body_q.numpy()[:, 0], [240 * 0.015 * DT + x for x in (0.0, 3.0, 3.2)], atol=1e-4)


def test_what_a_slow_kinematic_body_carries_moves_with_it(rng):
    """Boxes on the moving plate have its velocity at all times."""
    model = scene().finalize("cpu")
    state, solver, speed = started(model), xpbd(model, sleeping=True), rng.uniform(-0.01, 0.01, 2)
    velocity = state.body_qd.numpy()
    velocity[5:, :2] = speed
    for _ in range(round((2.0 * TIME + 0.1) / DT)):
        solver.step(state, state, dt=DT)
        np.testing.assert_allclose(state.body_qd.numpy()[6, :2], speed, atol=1e-5)
    assert solver._sleepers.asleep.tolist() == [True] * 5 + [False] * 2


def test_an_empty_list_wakes_islands():
    """It means no contacts, so bodies fall."""
    model, state, solver = asleep_scene()
    empty = model.contacts()
    before = state.body_q.numpy()[:3, 2].copy()
    for _ in range(24):
        solver.step(state, state, None, empty, DT)
    assert not solver._sleepers.asleep.any()
    assert (state.body_q.numpy()[:3, 2] < before - 0.02).all()
