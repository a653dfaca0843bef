"""Rows of loop joints that no joint moves: steps leave them out."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.dynamics.loops import NO_ROW
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder, ModelFlags, dynamics
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone.closures import LoopWatch
from newton_like.solvers.featherstone.loop_rows import KIND, SOURCE, solver_rows
from tests.support.loops import add_loop, four_bar, loop_coordinates, looped
from tests.support.random_trees import random_state, random_transform, random_unit


def planar(rng, kind) -> ModelBuilder:
    """Two chains of hinges and sliders in a plane of random orientation, on a body that floats, with a loop joint between their ends. Links
    and anchors have random frames. `kind`: of the loop joint, whose axis, if it has one, is at right angles to the plane."""
    builder, normal = ModelBuilder(), random_unit(rng)
    base = builder.add_link(mass=1.0, inertia=np.eye(3))
    joints, ends = [builder.add_joint_free(base)], []
    # of each link: its orientation in the configuration of zeros
    turns = {base: Rotation.identity()}

    def joint_frame(k: int):
        frame = random_transform(rng)
        return frame, turns[k] * Rotation.from_quat(frame[3:])

    for count in rng.integers(1, 4, 2):
        last = base
        for _ in range(count):
            (frame, turn), own = joint_frame(last), random_transform(rng)
            link = builder.add_link(mass=1.0, inertia=np.eye(3))
            turns[link] = turn * Rotation.from_quat(own[3:]).inv()
            anchors = dict(parent_xform=frame, child_xform=own)
            if last == base or rng.random() < 0.7:
                joints.append(builder.add_joint_revolute(last, link, axis=turn.inv().apply(normal), **anchors))
            else:
                axis = np.cross(normal, random_unit(rng))
                axis = turn.inv().apply(axis / np.linalg.norm(axis))
                joints.append(builder.add_joint_prismatic(last, link, axis=axis, **anchors))
            last = link
        ends.append(last)
    builder.add_articulation(joints)
    (frame, turn), (own, out) = (joint_frame(k) for k in ends)
    axis = turn.inv().apply(normal)
    # turns the anchor of the child so that the axis is at right angles to the plane there, too
    swing = Rotation.align_vectors([out.inv().apply(normal)], [axis])[0]
    own = np.concatenate([own[:3], (Rotation.from_quat(own[3:]) * swing).as_quat()])
    anchors = dict(parent_xform=frame, child_xform=own)
    if kind == JointType.REVOLUTE:
        builder.add_joint_revolute(*ends, axis=axis, **anchors)
    elif kind == JointType.BALL:
        # one of its rows is along the normal
        turn = Rotation.align_vectors([axis], [(0, 0, 1)])[0]
        anchors["parent_xform"] = np.concatenate([frame[:3], (Rotation.from_quat(frame[3:]) * turn).as_quat()])
        builder.add_joint_ball(*ends, **anchors)
    else:
        add_loop(builder, rng, kind, *ends)
    return builder


def zero_rows(model, rng) -> np.ndarray:
    """Which rows of the Jacobian are zero in some random configurations."""
    largest = []
    for _ in range(4):
        state = model.state()
        state.joint_q.assign(random_state(model, rng)[0])
        K = dynamics.constraint_jacobian(model, state)[0].numpy()
        largest.append(np.abs(K).max(axis=2))
    return np.max(largest, axis=0) < 1e-11


@pytest.mark.parametrize("kind", [JointType.REVOLUTE, JointType.BALL, None])
def test_idle_rows_are_those_that_are_zero_in_all_configurations(rng, kind):
    for _ in range(3):
        builder = looped(rng, 1) if kind is None else planar(rng, kind)
        model = builder.finalize("cpu", dtype=wp.float64)
        rows, zero = solver_rows(model), zero_rows(model, rng)
        exist = rows.rows[:, KIND] != NO_ROW
        found = np.take_along_axis(zero, np.maximum(rows.rows[:, SOURCE], 0), axis=1) & exist
        np.testing.assert_array_equal(rows.idle & exist, found)
        assert kind is None or found.sum() >= {JointType.REVOLUTE: 2, JointType.BALL: 1}[kind]


def test_rows_of_axes_that_are_edited_or_vary_are_not_idle(rng):
    model = planar(rng, JointType.REVOLUTE).finalize("cpu", dtype=wp.float64)
    assert solver_rows(model).idle.sum() >= 2
    watch = LoopWatch(model)
    axis, turning = model.joint_axis.numpy(), model.joint_type.numpy() == JointType.REVOLUTE
    places = model.joint_qd_start.numpy()[:-1][turning & (model.joint_articulation.numpy() >= 0)]
    axis[places[0]] = random_unit(rng)
    model.joint_axis.assign(axis)
    model.notify_changed(ModelFlags.JOINT_PROPERTIES)
    assert watch.changed(model)
    model = planar(rng, JointType.REVOLUTE).finalize("cpu", dtype=wp.float64)
    model.varying = ["joint_axis"]
    assert not solver_rows(model).idle.any()


def test_steps_without_idle_rows_are_those_with_all_rows(rng):
    """Up to rounding. With all rows, steps find out that they are zero."""
    bars = [four_bar(rng) for _ in range(4)]
    scene = ModelBuilder()
    for builder, _ in bars:
        scene.add_world(builder)
    found = []
    for varying in ([], ["joint_axis"]):
        model = scene.finalize("cpu", dtype=wp.float64)
        model.varying = varying
        state = model.state()
        state.joint_q.assign(loop_coordinates(model, np.concatenate([q for _, q in bars])))
        solver = SolverFeatherstone(model, evaluator="general")
        assert solver.loops.idle.any() == (not varying)
        for _ in range(240):
            solver.step(state, state, dt=1.0 / 480.0)
        found.append((state.joint_q.numpy(), solver.loop_forces().numpy()))
    (q, force), (other_q, other_force) = found
    assert np.abs(force).max() > 1.0
    np.testing.assert_allclose(q, other_q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(force, other_force, rtol=0, atol=1e-6 * np.abs(force).max())
