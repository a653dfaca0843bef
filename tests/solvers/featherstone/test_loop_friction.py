"""Dry friction of loop joints that is larger at rest than in motion: axes that it holds stay, although they turn, and gaps are closed."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, eval_fk
from newton_like.geometry.transforms import quat_rotate
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_inertia, random_transform, random_unit

DT = 1.0 / 480.0


@pytest.mark.parametrize("share", [0.9, 1.5])
def test_friction_at_rest_holds_a_slider_on_a_turning_arm(rng, share):
    """A slider on a heavy arm needs the centripetal force m r w^2: below the friction at rest it stays where it is, although the direction
    of its rail turns and the force is above the friction in motion; above that, it moves outwards: r'' = w^2 r - ratio f / m."""
    mass, radius, rate, ratio = rng.uniform(0.5, 2.0), rng.uniform(0.3, 0.6), rng.uniform(1.5, 3.0), 0.4
    friction = mass * radius * rate**2 / share
    builder = ModelBuilder(gravity=0.0)
    arm, slider = builder.add_link(mass=1.0, inertia=1e6 * np.eye(3)), builder.add_link(mass=mass, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, arm, axis=(0, 0, 1)), builder.add_joint_free(slider)])
    builder.add_joint_prismatic(arm, slider, axis=(1, 0, 0), friction=friction, friction_ratio=ratio)
    model = builder.finalize("cpu", dtype=wp.float64)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    state.joint_q.assign([0.0, radius, *[0.0] * 5, 1.0, radius])
    state.joint_qd.assign([rate, 0.0, radius * rate, 0.0, 0.0, 0.0, rate, 0.0])
    steps = 240
    for _ in range(steps):
        solver.step(state, state, None, None, DT)
    moved = np.linalg.norm(state.body_q.numpy()[1, :2]) - radius
    if share < 1.0:
        assert abs(moved) < 1e-5
        return
    middle = ratio * friction / (mass * rate**2)
    expected = (radius - middle) * (np.cosh(rate * steps * DT) - 1.0)
    # friction at rest acts while the slider is slower than its rail turns in a step
    assert abs(moved - expected) < 0.1 * expected


def test_friction_holds_a_hinge_of_a_loop_while_its_gaps_are_closed(rng):
    """A pendulum of two links, of which friction holds the second hinge, swings as one body: the links do not turn against each other about
    its axis, and move as with this hinge in the tree. The friction in motion cannot hold it, so no step may find it in motion."""
    inertias = [random_inertia(rng, 1.0, 0.3) + 0.02 * np.eye(3) for _ in range(2)]
    centres, axes = 0.1 * rng.normal(size=(2, 3)), [random_unit(rng) for _ in range(2)]
    anchors, rate = [random_transform(rng, 0.3) for _ in range(3)], rng.uniform(1.0, 2.0)
    states, start = [], None
    for on_loop in (False, True):
        builder = ModelBuilder()
        links = [
            builder.add_link(mass=1.0, com=com, inertia=inertia) for com, inertia in zip(centres, inertias, strict=True)
        ]
        swing = builder.add_joint_revolute(-1, links[0], axis=axes[0], parent_xform=anchors[0])
        hinge = dict(axis=axes[1], parent_xform=anchors[1], child_xform=anchors[2], friction=200.0, friction_ratio=1e-4)
        if on_loop:
            builder.add_articulation([swing, builder.add_joint_free(links[1])])
            builder.add_joint_revolute(*links, **hinge)
        else:
            builder.add_articulation([swing, builder.add_joint_revolute(*links, **hinge)])
        model = builder.finalize("cpu", dtype=wp.float64)
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        if on_loop:
            state.joint_q.assign([0.0, *start[0], 0.0])
            state.joint_qd.assign([rate, *start[1], 0.0])
        else:
            state.joint_qd.assign([rate, 0.0])
            eval_fk(model, state.joint_q, state.joint_qd, state)
            start = state.body_q.numpy()[1].copy(), state.body_qd.numpy()[1].copy()
        for _ in range(240):
            solver.step(state, state, None, None, DT)
        states.append(state)
    poses, velocities = states[1].body_q.numpy(), states[1].body_qd.numpy()
    along = quat_rotate(poses[0, 3:], quat_rotate(np.asarray(anchors[1][3:], dtype=float), axes[1]))
    assert np.linalg.norm(velocities[0, 3:]) > 0.1
    assert abs(along @ (velocities[1, 3:] - velocities[0, 3:])) < 1e-6
    moved = np.abs(states[0].body_q.numpy()[1] - start[0]).max()
    np.testing.assert_allclose(poses, states[0].body_q.numpy(), atol=3e-2 * max(moved, 0.05))
