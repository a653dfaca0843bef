"""Positions, velocities and forces of joints by lists of names, over articulations of different shapes."""

import numpy as np
import pytest
import warp as wp

from newton_like import JointType, MechanismState, ModelBuilder, dynamics
from tests.support.kinematic_cases import gradient_errors
from tests.support.random_trees import random_tree

HINGES = [JointType.REVOLUTE, JointType.PRISMATIC]


def mixed(rng, dtype=wp.float64, **options):
    """Two worlds, each with a floating robot of seven joints and an arm of three, and joints outside of articulations."""
    robots = [random_tree(rng, joints=n, types=HINGES, floating=f, label=f"r{n}") for n, f in ((7, True), (3, False))]
    scene = ModelBuilder()
    for world in range(2):
        scene.begin_world()
        for robot in robots:
            scene.add_builder(robot, label_prefix=f"w{world}")
        scene.end_world()
    model = scene.finalize("cpu", dtype=dtype, **options)
    state = model.state()
    for array in (state.joint_q, state.joint_qd):
        array.assign(rng.normal(size=array.size))
    return model, state


FUNCTIONS = [
    ("joint_q", dynamics.joint_positions, dynamics.set_joint_positions, dynamics.joint_coords),
    ("joint_qd", dynamics.joint_velocities, dynamics.set_joint_velocities, dynamics.joint_dofs),
    ("joint_f", dynamics.joint_forces, dynamics.set_joint_forces, dynamics.joint_dofs),
]


@pytest.mark.parametrize(("name", "read", "write", "span"), FUNCTIONS)
def test_values_are_the_entries_of_the_flat_array(rng, name, read, write, span):
    """Names, indices and lists in any order: reading returns the values that were set, and other values do not change."""
    model, state = mixed(rng)
    holder = state
    if name == "joint_f":
        holder = model.control()
        holder.joint_f.assign(rng.normal(size=model.joint_dof_count))
    array = getattr(holder, name)
    starts = (model.joint_q_start if name == "joint_q" else model.joint_qd_start).numpy()
    first = starts[model.articulation_start.numpy()[:-1]]
    labels = [name.rpartition("/")[2] for name in dynamics.joint_names(model)]
    wanted = [str(x) for x in rng.permutation(labels)[:3]]
    found = read(model, holder, wanted).numpy()
    for a in (0, 2):
        places = np.concatenate([first[a] + np.arange(span(model, j, a).start, span(model, j, a).stop) for j in wanted])
        np.testing.assert_array_equal(found[a], array.numpy()[places])
    assert not found[[1, 3]].any()
    whole = read(model, holder).numpy()
    for a, end in enumerate([*first[1:], starts[-1]]):
        np.testing.assert_array_equal(whole[a, : end - first[a]], array.numpy()[first[a] : end])
        assert not whole[a, end - first[a] :].any()
    np.testing.assert_array_equal(read(model, holder, 1).numpy(), read(model, holder, [1]).numpy())

    before, values = array.numpy().copy(), rng.normal(size=found.shape)
    write(model, holder, values, wanted)
    np.testing.assert_array_equal(read(model, holder, wanted).numpy()[::2], values[::2])
    assert (array.numpy() != before).sum() == found[::2].size
    write(model, holder, wp.array(values[0], dtype=wp.float64), wanted)
    np.testing.assert_array_equal(read(model, holder, wanted).numpy()[::2], values[[0, 0]])
    write(model, holder, whole)
    np.testing.assert_array_equal(array.numpy(), before)


def test_a_mechanism_state_takes_over_what_is_set(rng):
    model, state = mixed(rng)
    mechanism = MechanismState(model, state)
    velocities = rng.normal(size=mechanism.velocity().shape)
    velocities[1::2, 3:] = 0.0
    mechanism.set_velocity(velocities)
    before = mechanism.link_transforms().numpy().copy()
    dynamics.set_joint_positions(model, mechanism, [0.5], ["r3_joint_1"])
    np.testing.assert_array_equal(dynamics.joint_positions(model, mechanism, "r3_joint_1").numpy()[1::2], 0.5)
    after = mechanism.link_transforms().numpy()
    assert (after[1] != before[1]).any()
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(mechanism.velocity().numpy(), velocities)


def test_gradients_flow_both_ways(rng):
    model, state = mixed(rng, requires_grad=True)
    names, q = ["r7_joint_3", "r7_joint_1"], state.joint_q.numpy().copy()

    def function(values, q):
        moved = model.state()
        wp.copy(moved.joint_q, q)
        first = dynamics.joint_positions(model, moved, names)
        dynamics.set_joint_velocities(model, moved, values.reshape((4, 2)), names)
        return [first, moved.joint_qd]

    assert max(gradient_errors(function, [rng.normal(size=8), q], rng, 3)) < 1e-8


def test_what_is_no_joint_or_does_not_fit_is_refused(rng):
    model, state = mixed(rng, wp.float32)
    with pytest.raises(KeyError, match="r7_jnt_1"):
        dynamics.joint_positions(model, state, ["r7_jnt_1"])
    with pytest.raises(IndexError):
        dynamics.joint_velocities(model, state, [7])
    with pytest.raises(TypeError, match="joint"):
        dynamics.joint_velocities(model, state, [1.5])
    # index 0 is a floating base in one robot and a hinge in the other
    with pytest.raises(ValueError, match="joint 0"):
        dynamics.joint_positions(model, state, 0)
    with pytest.raises(TypeError, match="control"):
        dynamics.joint_forces(model, state)
    with pytest.raises(ValueError, match="values"):
        dynamics.set_joint_positions(model, state, np.zeros((4, 2)), "r3_joint_1")
    with pytest.raises(ValueError, match="values"):
        dynamics.set_joint_positions(model, state, np.nan, "r3_joint_1")
    with pytest.raises(ValueError, match="'r3_joint_1' twice"):
        dynamics.set_joint_positions(model, state, np.zeros(2), ["r3_joint_1", "r3_joint_1"])
    given = wp.zeros((4, 1), dtype=wp.float32, requires_grad=True)
    with wp.Tape(), pytest.raises(ValueError, match="gradient"):
        dynamics.set_joint_positions(model, state, given, "r3_joint_1")
