"""Templates and batches: which articulations share a shape, where their numbers lie, and the ancestors of their dofs."""

import types

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.tree import BALL, COMPOUND, FIXED, FREE, PRISMATIC, REVOLUTE

from newton_like import JointDofConfig, JointType, ModelBuilder
from newton_like.programs.template import find_batches
from tests.support import reference
from tests.support.kinematic_cases import add_joint, every_kind, forest
from tests.support.random_trees import random_state, random_tree


def starts(model, batch):
    """First joint, coordinate, dof and body of every articulation of a batch, from the model."""
    joint = model.articulation_start.numpy()[batch.articulations]
    end = model.articulation_end.numpy()[batch.articulations]
    child = model.joint_child.numpy()
    first = [child[a:b].min() for a, b in zip(joint, end, strict=True)]
    return joint, model.joint_q_start.numpy()[joint], model.joint_qd_start.numpy()[joint], np.array(first)


def check_places(model, batches):
    """Every articulation is in one batch, at evenly spaced places, with the joints of its template."""
    listed = np.concatenate([np.zeros(0, int), *[b.articulations for b in batches]])
    np.testing.assert_array_equal(np.sort(listed), np.arange(model.articulation_count))
    kinds, child = model.joint_type.numpy(), model.joint_child.numpy()
    for batch in batches:
        places = (batch.joint_start, batch.q_start, batch.qd_start, batch.body_start)
        for place, expected in zip(places, starts(model, batch), strict=True):
            np.testing.assert_array_equal(place, expected)
            np.testing.assert_array_equal(np.diff(place), np.full(batch.count - 1, batch.stride(place)))
        assert len(set(np.diff(batch.articulations))) <= 1
        np.testing.assert_array_equal(batch.world, model.articulation_world.numpy()[batch.articulations])
        for joint, body in zip(batch.joint_start, batch.body_start, strict=True):
            joints = slice(joint, joint + batch.template.bodies)
            np.testing.assert_array_equal(kinds[joints], batch.template.joint_type)
            np.testing.assert_array_equal(child[joints], body + batch.template.body_slot)


def test_copies_of_a_robot_are_one_batch(rng):
    scene = ModelBuilder()
    scene.replicate(random_tree(rng), 7)
    model = scene.finalize("cpu")
    batches = find_batches(model)
    assert [b.count for b in batches] == [7]
    check_places(model, batches)


def test_robots_of_several_shapes_make_a_batch_each(rng):
    model = forest(rng, worlds=6, robots=3).finalize("cpu")
    batches = find_batches(model)
    assert [b.count for b in batches] == [6, 6, 6]
    assert [b.articulations[0] for b in batches] == [0, 1, 2]
    check_places(model, batches)


def test_copies_that_differ_in_numbers_only_share_a_template(rng):
    """Frames, axes, masses and gains do not make a shape."""
    builder = ModelBuilder()
    for _ in range(3):
        link, first = add_joint(builder, rng, JointType.REVOLUTE, -1)
        builder.add_articulation([first, add_joint(builder, rng, JointType.BALL, link)[1]])
    batches = find_batches(builder.finalize("cpu"))
    assert [b.count for b in batches] == [3]


def test_uneven_gaps_split_a_batch(rng):
    """Robots of one shape with others in between, now one, now two: rows must advance by constant strides."""
    builder = ModelBuilder()

    def add(count):
        joints, parent = [], -1
        for _ in range(count):
            parent, joint = add_joint(builder, rng, JointType.REVOLUTE, parent)
            joints.append(joint)
        builder.add_articulation(joints)

    for count in (2, 1, 2, 1, 1, 2, 1, 1, 2, 4, 2, 2, 2):
        add(count)
    model = builder.finalize("cpu")
    batches = find_batches(model)
    check_places(model, batches)
    assert len({id(b.template) for b in batches}) == 3
    assert [b.articulations.tolist() for b in batches if b.template.bodies == 2] == [[0, 2], [5, 8], [10, 11, 12]]


def test_equal_sizes_and_another_number_of_articulations_in_between_split_a_batch(rng):
    """The gaps are equal in joints, coordinates, dofs and bodies, but not in articulations, which masks are about."""
    builder = ModelBuilder()

    def add(kind, count=1):
        joints, parent = [], -1
        for _ in range(count):
            parent, joint = add_joint(builder, rng, kind, parent)
            joints.append(joint)
        builder.add_articulation(joints)

    add(JointType.BALL)
    add(JointType.REVOLUTE, 2)
    add(JointType.BALL)
    add(JointType.REVOLUTE)
    add(JointType.REVOLUTE)
    add(JointType.BALL)
    model = builder.finalize("cpu")
    batches = find_batches(model)
    check_places(model, batches)
    assert [b.articulations.tolist() for b in batches if b.template.kind[0] == BALL] == [[0, 2], [5]]


def test_an_articulation_may_be_spread_over_the_bodies(rng):
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(6)]
    for order in ([4, 0, 2], [1, 5, 3]):
        joints, parent = [], -1
        for i in order:
            joints.append(builder.add_joint_revolute(parent, links[i]))
            parent = links[i]
        builder.add_articulation(joints)
    model = builder.finalize("cpu")
    batches = find_batches(model)
    check_places(model, batches)
    assert [b.template.body_slot.tolist() for b in batches] == [[4, 0, 2], [0, 4, 2]]
    # bodies are numbered along the tree
    assert [b.template.parent.tolist() for b in batches] == [[3, 0, 1], [3, 0, 1]]


def test_kinds_of_joints(rng):
    model = every_kind(rng, moving=False).finalize("cpu")
    expected = {
        JointType.PRISMATIC: PRISMATIC, JointType.REVOLUTE: REVOLUTE, JointType.BALL: BALL, JointType.FIXED: FIXED,
        JointType.FREE: FREE, JointType.DISTANCE: FREE,
    }  # fmt: skip
    seen = set()
    for batch in find_batches(model):
        template = batch.template
        kind, shape = JointType(int(template.joint_type[0])), (int(template.linear[0]), int(template.angular[0]))
        single = {(1, 0): PRISMATIC, (0, 1): REVOLUTE}.get(shape, COMPOUND)
        assert template.kind[0] == expected.get(kind, single)
        assert template.free_root == (template.kind[0] == FREE)
        seen.add(kind)
    assert seen == set(JointType)
    locked = ModelBuilder()
    locked.add_articulation([locked.add_joint_d6(-1, locked.add_link(mass=1.0, inertia=np.eye(3)))])
    assert find_batches(locked.finalize("cpu"))[0].template.kind.tolist() == [FIXED]


def test_a_root_is_free_only_when_it_hangs_on_the_world(rng):
    builder = ModelBuilder()
    link, first = add_joint(builder, rng, JointType.REVOLUTE, -1)
    builder.add_articulation([first, add_joint(builder, rng, JointType.FREE, link)[1]])
    assert not find_batches(builder.finalize("cpu"))[0].template.free_root


def ancestors(template, k):
    """Body k and those above it, from the root down."""
    line = []
    while k < template.bodies:
        line.insert(0, k)
        k = int(template.parent[k])
    return line


def test_chains_list_the_dofs_that_move_a_body(rng):
    """Chains, depths, rows and leaves against a walk up the tree, and against where the Jacobian is not zero."""
    for _ in range(10):
        model = random_tree(rng, joints=int(rng.integers(1, 12))).finalize("cpu", dtype=wp.float64)
        (batch,) = find_batches(model)
        t = batch.template
        tree = reference.Tree.from_model(model)
        moves = np.abs(reference.jacobian(tree, random_state(model, rng)[0])).max(axis=1) > 1e-12
        row = 0
        for k in range(t.bodies):
            above = [i for b in ancestors(t, k) for i in range(t.dof_at[b], t.dof_at[b + 1])]
            assert t.leaf[k] == (above[-1] if above else -1)
            np.testing.assert_array_equal(np.flatnonzero(moves[batch.body_start[0] + t.body_slot[k]]), above)
            for i in range(t.dof_at[k], t.dof_at[k + 1]):
                chain = t.chain[t.chain_at[i] : t.chain_at[i] + t.depth[i] + 1]
                assert chain.tolist() == [j for j in above if j <= i]
                assert t.chain_at[i] == row
                row += t.depth[i] + 1
            children = t.child[t.child_at[k] : t.child_at[k + 1]]
            np.testing.assert_array_equal(children, np.flatnonzero(t.parent == k))
        assert (t.dofs, t.coords) == (model.joint_dof_count, model.joint_coord_count)
        # dofs with a coordinate of their own
        own = np.full(t.dofs, -1)
        for k in range(t.bodies):
            if t.kind[k] not in (BALL, FREE):
                own[t.dof_at[k] : t.dof_at[k + 1]] = np.arange(t.q_at[k], t.q_at[k + 1])
        np.testing.assert_array_equal(t.dof_q, own)


def test_mimic_joints_are_local(rng):
    builder = ModelBuilder()
    link, leader = add_joint(builder, rng, JointType.REVOLUTE, -1)
    follower = builder.add_joint_revolute(link, builder.add_link(mass=1.0, inertia=np.eye(3)))
    builder.set_joint_mimic(follower, leader, coeffs=(0.1, 2.0))
    builder.add_articulation([leader, follower])
    scene = ModelBuilder()
    scene.replicate(builder, 3)
    batches = find_batches(scene.finalize("cpu"))
    assert [b.count for b in batches] == [3]
    assert batches[0].template.mimic.tolist() == [-1, 0]


def test_a_model_without_articulations_has_no_batches():
    assert find_batches(ModelBuilder().finalize("cpu")) == []


class Edited:
    """A model of which some arrays read otherwise."""

    def __init__(self, model, **arrays):
        self._model = model
        for name, values in arrays.items():
            setattr(self, name, types.SimpleNamespace(numpy=lambda v=values: np.asarray(v)))

    def __getattr__(self, name):
        return getattr(self._model, name)


def test_trees_that_are_out_of_order_are_named(rng):
    """Builders refuse them; arrays may still be edited."""
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(3)]
    ends = [(-1, links[0]), (links[0], links[1]), (links[1], links[2])]
    axis = JointDofConfig(axis=(0, 0, 1))
    joints = [builder.add_joint_d6(p, c, angular_axes=[axis], label=f"joint {c}") for p, c in ends]
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    with pytest.raises(ValueError, match=r"joint 'joint 0' \(index 0\).*parent"):
        find_batches(Edited(model, joint_parent=[1, -1, 1]))
    with pytest.raises(ValueError, match=r"joint 'joint 2' \(index 2\).*parent"):
        find_batches(Edited(model, joint_parent=[-1, 0, 7]))
