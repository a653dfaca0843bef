"""Steps in substeps: the bits of as many calls."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_state, random_tree
from tests.support.simulate import worlds_of

DT, SUBSTEPS = 1.0 / 240.0, 3


def scene(rng, worlds: int = 20):
    """A random tree with a ball in each world, above the ground, and a ball that falls onto the tree."""
    tree = random_tree(rng, joints=4, floating=True)
    for body in range(tree.body_count):
        tree.add_shape_sphere(body, radius=0.1)
    tree.add_ground_plane()
    tree.add_shape_sphere(tree.add_body(xform=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)), radius=0.1)
    return worlds_of([tree] * worlds).finalize("cpu")


def start(model, rng):
    state, control = model.state(), model.control()
    q, qd = random_state(model, rng)
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    state.body_f.assign(rng.normal(size=(model.body_count, 6)))
    control.joint_f.assign(rng.normal(size=model.joint_dof_count))
    return state, control


def numbers(state) -> bytes:
    return b"".join(getattr(state, name).numpy().tobytes() for name in ("joint_q", "joint_qd", "body_q", "body_qd"))


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_has_the_bits_of_as_many_steps(rng, in_place, threads):
    model = scene(rng)
    one, many = (SolverFeatherstone(model, evaluator="general", threads=threads, substeps=k) for k in (SUBSTEPS, 1))
    state, control = start(model, rng)
    other = model.state()
    other.assign(state)
    outs = (state, other) if in_place else (model.state(), model.state())
    for _ in range(4):
        one.step(state, outs[0], control, None, SUBSTEPS * DT)
        many.step(other, outs[1], control, None, SUBSTEPS * DT / SUBSTEPS)
        # the wrenches act during all substeps
        outs[1].body_f.assign(other.body_f)
        for _ in range(SUBSTEPS - 1):
            many.step(outs[1], outs[1], control, None, SUBSTEPS * DT / SUBSTEPS)
        assert numbers(outs[0]) == numbers(outs[1])
        assert numbers(state) == numbers(other)
    assert np.isfinite(outs[0].joint_q.numpy()).all()
    np.testing.assert_array_equal(one.contact_forces().numpy(), many.contact_forces().numpy())


def test_substeps_may_be_changed(rng):
    model = scene(rng, 2)
    solver, fresh = (SolverFeatherstone(model, evaluator="general", substeps=k) for k in (1, 4))
    state, control = start(model, rng)
    other = model.state()
    other.assign(state)
    solver.substeps = 4
    for _ in range(3):
        solver.step(state, state, control, None, DT)
        fresh.step(other, other, control, None, DT)
    assert numbers(state) == numbers(other)
    for wrong in (0, 1.5, "two"):
        with pytest.raises((TypeError, ValueError), match="substeps"):
            solver.substeps = wrong


@pytest.mark.slow
def test_lists_of_contacts_are_used_in_all_substeps():
    """A ball that rests on a list: the list tells where the ground is, so the ball stays."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(xform=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0)), radius=0.1)
    model = builder.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general", substeps=4), model.state()
    for _ in range(60):
        solver.step(state, state, None, model.collide(state), 4 * DT)
    assert state.body_q.numpy()[0, 2] == pytest.approx(0.1, abs=1.0e-3)


def test_graphs_have_substeps(rng):
    model = scene(rng, 2)
    solver = SolverFeatherstone(model, evaluator="general", substeps=SUBSTEPS)
    state, control = start(model, rng)
    other = model.state()
    other.assign(state)
    with wp.ScopedCapture("cpu") as capture:
        solver.step(state, state, control, None, DT)
    state.assign(other)
    wp.capture_launch(capture.graph)
    SolverFeatherstone(model, evaluator="general", substeps=SUBSTEPS).step(other, other, control, None, DT)
    assert numbers(state) == numbers(other)
