"""Links that were merged by collapsing fixed joints become named frames, for every format, world and function."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from newton_like import JointType, ModelBuilder, assets, dynamics, usd
from newton_like.geometry.transforms import transform_multiply
from newton_like.types import VelRepr
from tests.support.random_trees import random_state, random_transform, random_tree

# Computed in float64 from numbers of order one in a few hundred operations.
CLOSE = dict(rtol=1e-11, atol=1e-11)
SOME_FIXED = [JointType.FIXED] * 3 + [JointType.REVOLUTE, JointType.BALL, JointType.PRISMATIC]

MJCF = """<mujoco model="robot"><worldbody>
  <body name="trunk"><freejoint/><geom size="0.1"/><site name="eye" pos="0 0 0.2"/>
    <body name="mast" pos="0 0 0.3" euler="0 30 0"><geom size="0.05"/>
      <body name="camera" pos="0.1 0 0"><geom size="0.01"/></body></body>
    <body name="arm" pos="0.2 0 0"><joint axis="0 1 0"/><geom size="0.05"/>
      <body name="hand" pos="0 0 -0.4" euler="90 0 0"><geom size="0.02"/></body></body>
  </body></worldbody></mujoco>"""


def signed(pose):
    """A pose with the one of its two quaternions whose w is positive."""
    return np.concatenate([pose[:3], pose[3:] * np.sign(pose[6])])


def state_at(q, qd):
    return SimpleNamespace(joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.array(qd, dtype=wp.float64))


def floating_tree(rng) -> ModelBuilder:
    """A floating tree with fixed joints behind moving ones."""
    while True:
        tree = random_tree(rng, joints=10, types=SOME_FIXED, floating=True, label="robot")
        if 2 <= tree.joint_type.count(JointType.FIXED) <= 6:
            return tree


@pytest.mark.slow
def test_merged_links_move_as_they_did_before(rng, by_numpy):
    """Poses, velocities and Jacobians of all links, and of a site, of a tree with and without its fixed joints."""
    tree = floating_tree(rng)
    merged = [tree.body_label[tree.joint_child[j]] for j, kind in enumerate(tree.joint_type) if kind == JointType.FIXED]
    tree.add_site(tree.body_label.index(merged[0]), xform=random_transform(rng), label="robot/eye")
    whole = tree.finalize("cpu", dtype=wp.float64)
    q, _ = random_state(whole, rng)
    tree.collapse_fixed_joints()
    less = tree.finalize("cpu", dtype=wp.float64)
    assert sorted(dynamics.frame_names(less)) == sorted(["robot/eye", *merged])
    assert dynamics.frame_names(whole) == ["robot/eye"]

    # velocities with respect to those of the base's origin are the same numbers, though its centre of mass is another
    nu = rng.normal(size=whole.joint_dof_count)
    for name in [*whole.body_label, "robot/eye"]:
        results = []
        for model in (whole, less):
            state = state_at(q, np.zeros(model.joint_dof_count))
            options = dict(repr=VelRepr.MIXED, out_repr=VelRepr.BODY)
            pose = dynamics.frame_transform(model, state, name).numpy()[0]
            J = dynamics.frame_jacobian(model, state, name, **options).numpy()[0]
            results.append((signed(pose), J @ nu))
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(b, a, **CLOSE)
    for i, name in enumerate(dynamics.frame_names(less)):
        assert dynamics.frame_index(less, name) == i
        pair = (dynamics.frame_link(less, name), dynamics.frame_offset(less, name))
        state = state_at(q, np.zeros(less.joint_dof_count))
        given = [dynamics.frame_transform(less, state, which).numpy() for which in (pair, name)]
        # orientations of pairs are normalised
        np.testing.assert_allclose(*given, rtol=0.0, atol=1e-14)


def test_worlds_have_their_own_copies(rng, by_numpy):
    """Copies with prefixes, moved and beside a scene without frames, and a robot that is collapsed twice."""
    tree = floating_tree(rng)
    kept = [j for j, kind in enumerate(tree.joint_type) if kind == JointType.FIXED][1:]
    tree.collapse_fixed_joints(joints_to_keep=kept)
    tree.collapse_fixed_joints()
    poses = np.array([random_transform(rng) for _ in range(3)])
    crate, scene = ModelBuilder(), ModelBuilder()
    crate.add_body(mass=1, inertia=np.eye(3), label="crate")
    scene.add_world(crate)
    scene.replicate(tree, 3, xforms=poses, label_prefixes=["a", "b", "c"])
    model, single = (b.finalize("cpu", dtype=wp.float64) for b in (scene, tree))
    names = dynamics.frame_names(single)
    assert len(names) == len(kept) + 1
    assert dynamics.frame_names(model, articulation=0) == []
    for a in (1, 2, 3):
        prefix = "abc"[a - 1]
        assert dynamics.frame_names(model, articulation=a) == [f"{prefix}/{name}" for name in names]
        for name in names:
            assert dynamics.frame_link(model, name, a) == dynamics.frame_link(single, name)
            np.testing.assert_array_equal(dynamics.frame_offset(model, name, a), dynamics.frame_offset(single, name))
    for name in names:
        found = dynamics.frame_transform(model, model.state(), name).numpy()
        (alone,) = dynamics.frame_transform(single, single.state(), name).numpy()
        assert not found[0].any()
        for pose, expected in zip(found[1:], poses, strict=True):
            np.testing.assert_allclose(signed(pose), signed(transform_multiply(expected, alone)), **CLOSE)


def test_a_base_that_is_merged_into_the_world_stays_named(rng, by_numpy):
    """A link of an articulation that the world carries has its pose, and no Jacobian."""
    arm = ModelBuilder()
    base, tool = (arm.add_link(mass=1, inertia=np.eye(3), label=name) for name in ("base", "tool"))
    place = random_transform(rng)
    joints = [arm.add_joint_fixed(-1, base, parent_xform=place), arm.add_joint_revolute(base, tool, axis="z")]
    arm.add_articulation(joints)
    arm.collapse_fixed_joints()
    shift = random_transform(rng)
    scene = ModelBuilder()
    scene.replicate(arm, 2, xforms=[(0, 0, 0, 0, 0, 0, 1), shift])
    model = scene.finalize("cpu", dtype=wp.float64)
    state = model.state()
    state.joint_qd.fill_(1.0)
    assert dynamics.frame_names(model, articulation=1) == ["base"]
    assert dynamics.frame_link(model, "base") == -1
    poses = dynamics.frame_transform(model, state, "base").numpy()
    np.testing.assert_allclose(poses[0], place, **CLOSE)
    np.testing.assert_allclose(poses[1], dynamics.frame_offset(model, "base", 1), **CLOSE)
    assert not np.allclose(poses[0], poses[1])
    assert not dynamics.frame_jacobian(model, state, "base").numpy().any()
    seen = dynamics.relative_transform(model, state, "tool", "base").numpy()
    np.testing.assert_allclose(
        seen, dynamics.relative_transform(model, state, 0, (None, place)).numpy()[[0, 0]], **CLOSE
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_importers_keep_the_names_of_merged_links(tmp_path, by_numpy):
    """URDF, MJCF and USD that collapse while they read, against the same files with all their links."""
    robot = ModelBuilder()
    robot.add_mjcf(MJCF)
    stage = tmp_path / "robot.usda"
    usd.write(robot.finalize("cpu", dtype=wp.float64), stage)
    for add, source in (
        (ModelBuilder.add_urdf, assets.path("quadruped.urdf")),
        (ModelBuilder.add_mjcf, MJCF),
        (ModelBuilder.add_usd, stage),
    ):
        whole, less = ModelBuilder(), ModelBuilder()
        add(whole, source)
        add(less, source, collapse_fixed_joints=True)
        assert less.body_count < whole.body_count
        whole, less = (b.finalize("cpu", dtype=wp.float64) for b in (whole, less))
        names = set(dynamics.link_names(whole)) - set(dynamics.link_names(less))
        assert names and names <= set(dynamics.frame_names(less))
        for name in names:
            poses = [dynamics.frame_transform(m, m.state(), name).numpy()[0] for m in (whole, less)]
            np.testing.assert_allclose(poses[1], poses[0], rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_frames_of_a_urdf_are_those_of_pinocchio(rng):
    """Places and Jacobians of all links of a quadruped whose feet were merged, by name, at random coordinates."""
    pin = pytest.importorskip("pinocchio")
    path = assets.path("quadruped.urdf")
    peer = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data = peer.createData()
    builder = ModelBuilder()
    builder.add_urdf(path, floating=True, collapse_fixed_joints=True)
    model = builder.finalize("cpu", dtype=wp.float64)
    q = pin.integrate(peer, pin.neutral(peer), rng.normal(size=peer.nv))
    ours, columns = q[:7].copy(), list(range(6))
    for joint in dynamics.joint_names(model)[1:]:
        number = peer.getJointId(joint.rpartition("/")[2])
        ours = np.append(ours, q[peer.joints[number].idx_q])
        columns.append(peer.joints[number].idx_v)
    state = state_at(ours, np.zeros(model.joint_dof_count))
    pin.computeJointJacobians(peer, data, q)
    pin.updateFramePlacements(peer, data)
    names = [*dynamics.link_names(model), *dynamics.frame_names(model)]
    assert len(names) > model.body_count
    for name in names:
        frame = peer.getFrameId(name.rpartition("/")[2], pin.FrameType.BODY)
        pose = dynamics.frame_transform(model, state, name).numpy()[0]
        expected = pin.SE3ToXYZQUAT(data.oMf[frame])
        np.testing.assert_allclose(signed(pose), signed(expected), **CLOSE)
        J = dynamics.frame_jacobian(model, state, name, repr=VelRepr.BODY, out_repr=VelRepr.BODY).numpy()[0]
        np.testing.assert_allclose(J, pin.getFrameJacobian(peer, data, frame, pin.LOCAL)[:, columns], **CLOSE)


def test_links_behind_locked_joints_stay_named(rng, by_numpy):
    """`reduce` lumps links; their frames are where the whole robot has them."""
    tree = random_tree(rng, joints=7, types=[JointType.REVOLUTE, JointType.PRISMATIC], floating=True, label="robot")
    whole = tree.finalize("cpu", dtype=wp.float64)
    result = dynamics.reduce(tree, joints_to_keep=tree.joint_label[:3])
    assert not len(tree.frames)
    less = result.finalize("cpu", dtype=wp.float64)
    assert sorted(dynamics.frame_names(less)) == sorted(set(whole.body_label) - set(less.body_label))
    for name in dynamics.frame_names(less):
        poses = [dynamics.frame_transform(m, m.state(), name).numpy()[0] for m in (whole, less)]
        np.testing.assert_allclose(signed(poses[1]), signed(poses[0]), **CLOSE)


def test_a_name_that_a_site_has_too_means_the_site(rng, by_numpy):
    tree = floating_tree(rng)
    merged = next(
        tree.body_label[tree.joint_child[j]] for j, kind in enumerate(tree.joint_type) if kind == JointType.FIXED
    )
    place = random_transform(rng)
    tree.add_site(tree.joint_child[0], xform=place, label=merged)
    tree.collapse_fixed_joints()
    model = tree.finalize("cpu", dtype=wp.float64)
    assert dynamics.frame_names(model).count(merged) == 2
    assert dynamics.frame_index(model, merged) == 0
    np.testing.assert_allclose(dynamics.frame_offset(model, merged), place, **CLOSE)
    actual, expected = (dynamics.frame_transform(model, model.state(), x).numpy() for x in (merged, (0, place)))
    np.testing.assert_allclose(actual, expected, **CLOSE)


def test_functions_of_links_say_that_a_merged_link_is_a_frame(rng, by_numpy):
    tree = floating_tree(rng)
    tree.collapse_fixed_joints()
    model = tree.finalize("cpu")
    name = dynamics.frame_names(model)[0]
    with pytest.raises(KeyError, match=f"{name}.*frame"):
        dynamics.link_transform(model, model.state(), name)


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [("body", 99, IndexError), ("transform", np.nan, ValueError), ("transform", 2.0, ValueError)],
)
def test_frames_that_cannot_be_are_refused_by_name(rng, column, value, error):
    tree = floating_tree(rng)
    tree.collapse_fixed_joints()
    getattr(tree.frames, column)[-1] = value
    with pytest.raises(error, match=tree.frames.label[-1]):
        tree.finalize("cpu")


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [
        ("body", lambda old: np.full_like(old, 99), IndexError),
        ("body", lambda old: 0.5 * old, TypeError),
        ("body", lambda old: old[1:], ValueError),
        ("articulation", lambda old: np.full_like(old, 99), IndexError),
        ("transform", lambda old: 3.0 * old, ValueError),
        ("transform", lambda old: old[:, :6], ValueError),
        ("label", lambda old: old[1:], ValueError),
    ],
)
def test_an_edited_table_that_cannot_be_is_refused(rng, by_numpy, column, value, error):
    tree = floating_tree(rng)
    tree.collapse_fixed_joints()
    model = tree.finalize("cpu", dtype=wp.float64)
    name = dynamics.frame_names(model)[0]
    old = getattr(model.frames, column)
    setattr(model.frames, column, value(old))
    model.notify_changed()
    with pytest.raises(error, match="frame"):
        dynamics.frame_transform(model, model.state(), name)
    setattr(model.frames, column, old)
    dynamics.frame_transform(model, model.state(), name)


def test_an_edit_of_frames_counts_when_the_model_is_told(rng, by_numpy):
    """Labels and poses alike."""
    tree = floating_tree(rng)
    tree.collapse_fixed_joints()
    model, other = (tree.finalize("cpu", dtype=wp.float64) for _ in range(2))
    names = dynamics.frame_names(model)
    before = [dynamics.frame_transform(other, other.state(), name).numpy() for name in names]
    model.frames.label = [f"new_{label}" for label in model.frames.label]
    model.frames.transform[:, 0] += 1.0
    assert dynamics.frame_names(model) == names
    for name, pose in zip(names, before, strict=True):
        # to the rounding of the math library, whose results depend on where numbers lie in memory; an edit moves frames by 1
        np.testing.assert_allclose(
            dynamics.frame_transform(model, model.state(), name).numpy(), pose, rtol=0, atol=1e-12
        )
    model.notify_changed()
    for name, pose in zip(dynamics.frame_names(model), before, strict=True):
        moved = dynamics.frame_transform(model, model.state(), name).numpy()
        assert name.startswith("new_")
        np.testing.assert_allclose(np.linalg.norm((moved - pose)[..., :3], axis=-1), 1.0, rtol=1e-9)


def test_a_table_with_a_column_of_another_length_is_refused(rng):
    tree = floating_tree(rng)
    tree.collapse_fixed_joints()
    tree.frames.label.append("more")
    with pytest.raises(ValueError, match=r"frames\.body"):
        tree.finalize("cpu")
    with pytest.raises(TypeError, match="frames"):
        tree.frames = ["base"]


def test_an_import_that_fails_leaves_no_frames():
    """Errors behind the bodies of a robot take its frames back."""
    builder = ModelBuilder()
    builder.add_mjcf(MJCF, collapse_fixed_joints=True)
    before = list(builder.frames.label)
    broken = MJCF.replace("</mujoco>", '<keyframe><key name="k" qpos="nan"/></keyframe></mujoco>')
    with pytest.raises(ValueError):
        builder.add_mjcf(broken, collapse_fixed_joints=True)
    assert before
    assert builder.frames.label == before
    builder.finalize("cpu")
