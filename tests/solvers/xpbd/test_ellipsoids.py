"""Ellipsoids that roll: the point at which they touch moves over them within a step."""

import numpy as np
import pytest

import newton_like as nl
from tests.solvers.xpbd.scenes import energy, started, xpbd
from tests.support.random_trees import random_transform


def rolling(rng, axes) -> tuple:
    """A body with these half axes that rolls on the ground about a level axis of its own without slip, its state and its spin."""
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    ball = builder.add_body(xform=(0, 0, axes[2], 0, 0, 0, 1))
    # the frame of the shape is turned in the body
    turned = [((0, 0, 0, 1), axes), ((2**-0.5, 0, 0, 2**-0.5), (axes[0], axes[2], axes[1]))][int(rng.integers(2))]
    rx, ry, rz = turned[1]
    builder.add_shape_ellipsoid(
        ball, xform=(0, 0, 0, *turned[0]), rx=rx, ry=ry, rz=rz, cfg=nl.ShapeConfig(mu=2.0, restitution=0.0)
    )
    model = builder.finalize("cpu")
    state = started(model)
    spin = rng.uniform(3.0, 5.0)
    state.body_qd.assign(np.array([[spin * axes[2], 0, 0, 0, spin, 0]]))
    return model, state, spin


def test_an_ellipsoid_with_equal_axes_rolls_as_a_ball(rng):
    """A ball that rolls keeps its velocity and its height."""
    radius = rng.uniform(0.05, 0.15)
    model, state, spin = rolling(rng, (radius, radius, radius))
    solver = xpbd(model)
    for _ in range(240):
        solver.step(state, state)
    assert state.body_qd.numpy()[0] == pytest.approx([spin * radius, 0, 0, 0, spin, 0], abs=2e-3 * spin)
    assert state.body_q.numpy()[0, 2] == pytest.approx(radius, abs=1e-4)


def test_an_ellipsoid_that_rolls_keeps_its_energy(rng):
    """It rolls about a half axis that stays level."""
    first = rng.uniform(0.08, 0.12)
    model, state, _ = rolling(rng, (first * rng.uniform(0.8, 1.2), rng.uniform(0.06, 0.15), first))
    solver, found = xpbd(model), []
    for _ in range(480):
        solver.step(state, state)
        found.append(energy(model, state))
    kinetic = found[0] - 9.81 * model.body_mass.numpy()[0] * first
    assert (max(found) - min(found)) / found[0] < 0.02
    assert max(found) - found[0] < 0.01 * max(kinetic, found[0])


def test_turns_of_ellipsoids_do_not_depend_on_their_frames(rng):
    """A body moves the same if the frame of its shape is turned, and the body is turned back."""
    axes, place = rng.uniform(0.06, 0.14, 3), random_transform(rng)
    turn = place[3:]
    seen = []
    for own in ((0, 0, 0, 1), tuple(turn)):
        builder = nl.ModelBuilder()
        builder.add_ground_plane()
        body = builder.add_body(xform=(0, 0, 0.3, 0, 0, 0, 1))
        frame = (0, 0, 0, 0, 0, 0, 1) if own == (0, 0, 0, 1) else (0, 0, 0, *own)
        rx, ry, rz = axes.tolist()
        builder.add_shape_ellipsoid(body, xform=frame, rx=rx, ry=ry, rz=rz)
        back = (0, 0, 0, 1) if own != (0, 0, 0, 1) else tuple(turn)
        builder.joint_q[3:7] = back
        model = builder.finalize("cpu")
        state, solver = started(model), xpbd(model)
        for _ in range(100):
            solver.step(state, state)
        seen.append(np.concatenate([state.body_q.numpy()[0, :3], state.body_qd.numpy()[0]]))
    assert seen[0] == pytest.approx(seen[1], abs=2e-3)
