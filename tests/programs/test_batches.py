"""Scenes with several robots a world: their batches, and results that do not depend on the batches."""

import numpy as np
import pytest

from newton_like import ModelBuilder, ShapeConfig
from newton_like.programs.pieces import run_size
from newton_like.programs.template import find_batches
from newton_like.solvers import SolverFeatherstone
from tests.support.mechanisms import quadruped


def box() -> ModelBuilder:
    builder = ModelBuilder()
    body = builder.add_link(xform=(0.0, 1.0, 0.3, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    builder.add_articulation([builder.add_joint_free(body)])
    return builder


def two_robots_and_a_box() -> ModelBuilder:
    world = ModelBuilder()
    world.add_builder(quadruped())
    world.add_builder(quadruped(), xform=(2.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0))
    world.add_builder(box())
    # they touch the ground, whose group is negative, and not each other
    body = np.array(world.shape_body)
    robot = np.searchsorted([len(quadruped().body_mass), 2 * len(quadruped().body_mass)], body, side="right")
    world.shape_collision_group[:] = (1 + robot).tolist()
    return world


def scene(worlds: int) -> ModelBuilder:
    builder = ModelBuilder()
    builder.replicate(two_robots_and_a_box(), worlds)
    builder.add_ground_plane(cfg=ShapeConfig(collision_group=-1))
    return builder


@pytest.mark.parametrize("worlds", [1, 2, 64])
def test_equal_robots_of_a_world_are_told_apart_by_their_order(worlds):
    batches = find_batches(scene(worlds).finalize("cpu"))
    members = [b.articulations.tolist() for b in batches]
    if worlds == 1:
        # the equal robots are contiguous, so they form one batch
        assert members == [[0, 1], [2]]
    else:
        assert members == [list(range(k, 3 * worlds, 3)) for k in range(3)]


@pytest.mark.slow
def test_a_crowd_in_one_world_is_one_batch():
    builder = ModelBuilder()
    for _ in range(20):
        builder.add_builder(quadruped())
    assert [b.count for b in find_batches(builder.finalize("cpu"))] == [20]


def test_worlds_of_several_robots_move_as_each_alone():
    """Bit by bit: batches do not show."""
    model = scene(3).finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general", unsupported_contacts="ignore")
    state = model.state()
    contacts = model.collide(state, unsupported_contacts="ignore")
    count = int(contacts.rigid_contact_count.numpy()[0])
    owner = np.zeros(model.body_count, dtype=int)
    owner[model.joint_child.numpy()] = model.joint_articulation.numpy()
    found = owner[model.shape_body.numpy()[contacts.rigid_contact_shape1.numpy()[:count]]]
    assert set(found) == {0, 1, 3, 4, 6, 7}
    assert (np.diff(found) >= 0).all(), "contacts come in the order of articulations"
    for _ in range(20):
        solver.step(state, state)
    q = state.joint_q.numpy().reshape(3, -1)
    assert q[1].tobytes() == q[0].tobytes() == q[2].tobytes()

    single = ModelBuilder()
    single.replicate(quadruped(), 1)
    single.add_ground_plane()
    alone = single.finalize("cpu")
    solver, state = SolverFeatherstone(alone, evaluator="general"), alone.state()
    for _ in range(20):
        solver.step(state, state)
    assert state.joint_q.numpy().tobytes() == q[0, : alone.joint_coord_count].tobytes()


def test_edits_of_targets_reach_steps_without_control():
    """``control=None`` means the model's targets as of its version."""
    builder = ModelBuilder()
    builder.replicate(quadruped(), 1)
    model = builder.finalize("cpu")
    solvers = [SolverFeatherstone(model, evaluator="general") for _ in range(2)]
    states = [model.state() for _ in solvers]
    for solver, state in zip(solvers, states, strict=True):
        solver.step(state, state)
    target = model.joint_target_q.numpy()
    target[7:] += 0.3
    model.joint_target_q.assign(target)
    solvers[0].notify_model_changed()
    solvers[0].step(states[0], states[0])
    solvers[1].step(states[1], states[1], model.control())
    assert states[0].joint_q.numpy().tobytes() == states[1].joint_q.numpy().tobytes()
    assert np.abs(states[0].joint_qd.numpy()).max() > 0.1


@pytest.mark.slow
def test_an_error_of_new_numbers_comes_back_at_the_next_step():
    """An error in the update of parameters also makes later steps raise."""
    builder = ModelBuilder()
    builder.replicate(quadruped(), 2)
    model = builder.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="specialised"), model.state()
    mass = model.body_mass.numpy().copy()
    model.body_mass.assign(np.full_like(mass, np.inf))
    with pytest.raises(ValueError, match="inf"):
        solver.notify_model_changed()
    with pytest.raises(ValueError, match="inf"):
        solver.step(state, state)
    model.body_mass.assign(mass)
    solver.notify_model_changed()
    assert len(solver._steppers) == 1


def test_runs_of_consecutive_numbers_are_as_large_as_they_can_be(rng):
    """A list of so many runs of one size, which do not touch, is cut into these or, with another run of half the size, into halves."""
    for _ in range(20):
        size, runs = 2 * int(rng.integers(1, 6)), int(rng.integers(1, 5))
        starts = np.cumsum(rng.integers(1, 4, runs) + size)
        listed = (starts[:, None] + np.arange(size)).ravel()
        assert run_size(listed) == size
        assert run_size(np.append(listed, listed[-1] + 9 + np.arange(size // 2))) == size // 2
    assert run_size(np.zeros(0, dtype=int)) == 1
