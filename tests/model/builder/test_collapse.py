"""collapse_fixed_joints: welded bodies become one body, and the motion does not change."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like.model import ModelBuilder, ShapeConfig
from newton_like.types import JointType
from tests.support import reference
from tests.support.random_trees import random_state, random_transform, random_tree

# Computed in float64 from numbers of order one in a few hundred operations.
TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def doubles(builder: ModelBuilder):
    return builder.finalize("cpu", dtype=wp.float64)


def body_matrices(model, q) -> dict[int, np.ndarray]:
    """4 x 4 poses of all bodies at coordinates q; -1 is the world."""
    poses = reference.body_poses(reference.Tree.from_model(model), q)
    return {-1: np.eye(4), **{body: reference.pose_matrix(x) for body, x in enumerate(poses)}}


def shape_poses(builder: ModelBuilder, poses: dict[int, np.ndarray]) -> list[np.ndarray]:
    xforms = [reference.pose_matrix(np.array(x)) for x in builder.shape_transform]
    return [poses[b] @ x for b, x in zip(builder.shape_body, xforms, strict=True)]


def velocities_after_merging(tree: reference.Tree, merged: reference.Tree, q: np.ndarray) -> np.ndarray:
    """Matrix from old to new velocities: those of a FREE joint are of the centre of mass, which moves with merging."""
    T = np.eye(tree.dof_count)
    kept = [j for j in range(tree.joint_count) if tree.joint_type[j] != JointType.FIXED]
    for new, old in enumerate(kept):
        if tree.joint_type[old] == JointType.FREE:
            shift = merged.body_com[merged.joint_child[new]] - tree.body_com[tree.joint_child[old]]
            turn = Rotation.from_quat(q[tree.q_of(old)][3:]) * Rotation.from_quat(tree.joint_X_c[old][3:]).inv()
            s = tree.qd_of(old).start
            T[s : s + 3, s + 3 : s + 6] = -reference.cross_matrix(turn.apply(shift))
    return T


@pytest.mark.parametrize("root", ["fixed", "floating", "any"])
def test_collapse_changes_nothing_that_moves(rng, root):
    """Poses of the remaining bodies, of all shapes and merged frames, and the mass matrix, at random coordinates."""
    types = [JointType.FIXED] * 4 + [JointType.REVOLUTE, JointType.BALL, JointType.D6, JointType.PRISMATIC]
    if root == "floating":
        types.append(JointType.FREE)
    builder = random_tree(rng, joints=14, types=types, floating=root == "floating")
    while root == "fixed" and builder.joint_type[0] != JointType.FIXED:
        builder = random_tree(rng, joints=14, types=types, floating=False)
    for body in range(14):
        for _ in range(rng.integers(3)):
            builder.add_shape_sphere(body, xform=random_transform(rng), cfg=ShapeConfig(density=0))
    before = doubles(builder)
    tree = reference.Tree.from_model(before)
    q, _ = random_state(before, rng)
    old = body_matrices(before, q)
    old_shapes = shape_poses(builder, old)

    result = builder.collapse_fixed_joints()
    kept = [b for b in range(14) if b in result["body_remap"]]
    assert JointType.FIXED not in builder.joint_type
    assert builder.body_label == [before.body_label[b] for b in kept]
    assert [builder.joint_label[j] for j in result["joint_remap"].values()] == [
        before.joint_label[j] for j in result["joint_remap"]
    ]
    assert set(result["body_merged_parent"]) == set(range(14)) - set(kept)
    if builder.articulation_count == 0:
        assert builder.joint_count == builder.body_count == 0
        return
    after = doubles(builder)
    merged_tree = reference.Tree.from_model(after)
    # FIXED joints have no coordinates, so q fits the smaller tree as it is.
    new = body_matrices(after, q)
    for body in kept:
        np.testing.assert_allclose(new[result["body_remap"][body]], old[body], **TIGHT)
    for body, host in result["body_merged_parent"].items():
        frame = reference.pose_matrix(np.array(result["body_merged_transform"][body]))
        np.testing.assert_allclose(new[result["body_remap"][host]] @ frame, old[body], **TIGHT)
    np.testing.assert_allclose(shape_poses(builder, new), old_shapes, **TIGHT)
    T = velocities_after_merging(tree, merged_tree, q)
    mass = T.T @ reference.mass_matrix(merged_tree, q) @ T
    np.testing.assert_allclose(mass, reference.mass_matrix(tree, q), rtol=1e-9, atol=1e-9)


def test_collapse_keeps_loops_mimics_and_named_joints():
    """Ground, a - weld - b - hinge - c - weld - d, and a loop from d back to b."""
    builder = ModelBuilder()
    unit = {"mass": 1.0, "inertia": np.eye(3)}
    up = ((0, 0, 1), (0, 0, 0, 1))
    a, b, c, d, e = (builder.add_link(**unit, label=name) for name in "abcde")
    for body in (a, b, c, d, e):
        builder.add_shape_sphere(body, radius=0.1, cfg=ShapeConfig(density=0))
    joints = [
        builder.add_joint_prismatic(-1, a, label="lift"),
        builder.add_joint_fixed(a, b, parent_xform=up, label="weld"),
        builder.add_joint_revolute(b, c, parent_xform=up, label="knee"),
        builder.add_joint_fixed(c, d, parent_xform=up, label="tip"),
        builder.add_joint_fixed(a, e, label="sensor"),
    ]
    builder.add_articulation(joints, label="leg")
    builder.set_joint_mimic("knee", "lift")
    loop = builder.add_joint_ball(b, d, child_xform=up, label="loop")
    assert set(builder.shape_collision_filter_pairs) == {(0, 1), (1, 2), (2, 3), (0, 4), (1, 3)}
    result = builder.collapse_fixed_joints(joints_to_keep=["sensor"])
    assert builder.body_label == ["a", "c", "e"]
    assert builder.joint_label == ["lift", "knee", "sensor", "loop"]
    assert builder.joint_articulation == [0, 0, 0, -1]
    assert (builder.articulation_start, builder.articulation_end) == ([0], [3])
    assert builder.joint_mimic_joint == [-1, 0, -1, -1]
    new_loop = result["joint_remap"][loop]
    assert (builder.joint_parent[new_loop], builder.joint_child[new_loop]) == (0, 1)
    np.testing.assert_allclose(builder.joint_X_p[new_loop][:3], (0, 0, 1))
    np.testing.assert_allclose(builder.joint_X_c[new_loop][:3], (0, 0, 2))
    np.testing.assert_allclose(builder.joint_X_p[1][:3], (0, 0, 2))
    assert (builder.body_mass, builder.body_com[1]) == ([2.0, 2.0, 1.0], (0.0, 0.0, 0.5))
    # Shapes: a and b are one body, c and d another, joined by the knee; e stays welded to the first.
    expected = {(0, 1), (2, 3), (0, 2), (0, 3), (1, 2), (1, 3), (0, 4), (1, 4)}
    assert set(builder.shape_collision_filter_pairs) == expected
    model = builder.finalize("cpu")
    assert model.joint_ancestor.numpy().tolist() == [-1, 0, 0, 0]


def test_collapse_into_the_world_leaves_static_shapes():
    builder = ModelBuilder()
    base, arm = builder.add_link(mass=1, inertia=np.eye(3)), builder.add_link(mass=1, inertia=np.eye(3))
    builder.add_shape_box(base, xform=((0, 1, 0), (0, 0, 0, 1)))
    weld = builder.add_joint_fixed(-1, base, parent_xform=((1, 0, 0), (0, 0, 0, 1)))
    hinge = builder.add_joint_revolute(base, arm)
    other = builder.add_link(mass=1, inertia=np.eye(3))
    builder.add_articulation([weld, hinge])
    builder.add_articulation([builder.add_joint_fixed(-1, other)], label="lamp")
    result = builder.collapse_fixed_joints()
    assert result["articulation_remap"] == {0: 0}
    assert result["body_merged_parent"] == {base: -1, other: -1}
    assert builder.shape_body == [-1]
    np.testing.assert_allclose(builder.shape_transform[0][:3], (1, 1, 0))
    assert (builder.joint_parent, builder.articulation_label) == ([-1], ["articulation_0"])
    builder.finalize("cpu")


def test_collapse_refuses_unknown_names():
    builder = ModelBuilder()
    builder.add_joint_revolute(-1, builder.add_link(), label="hinge")
    with pytest.raises(KeyError, match=r"joint.*'elbow'.*'hinge'"):
        builder.collapse_fixed_joints(joints_to_keep=["elbow"])
