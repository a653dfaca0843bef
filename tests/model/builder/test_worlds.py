"""Worlds: copies of a scene, their poses, labels, gravity and parameters, and entities of world -1."""

import numpy as np
import pytest
import warp as wp

from newton_like.model import ModelBuilder, ShapeConfig
from newton_like.model.builder.worlds import grid_offsets
from newton_like.model.columns import BY_NAME
from newton_like.types import BodyFlags, JointType, ModelFlags
from tests.support import reference
from tests.support.counting import calls_of
from tests.support.random_trees import random_state, random_transform, random_tree

# Poses and velocities computed in float64 from numbers of order ten.
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


def scene(rng, joints=6, **options) -> ModelBuilder:
    """A random tree with shapes, a mimic, a loop, a static shape and filters: every kind of index."""
    options.setdefault(
        "types", [JointType.REVOLUTE, JointType.PRISMATIC, JointType.BALL, JointType.FREE, JointType.FIXED]
    )
    builder = random_tree(rng, joints=joints, limits=True, **options)
    for body in range(joints):
        builder.add_shape_sphere(body, xform=random_transform(rng), radius=0.1, cfg=ShapeConfig(density=0))
    builder.add_shape_box(-1, xform=random_transform(rng))
    builder.add_shape_collision_filter_pair(0, joints)
    single = [j for j, t in enumerate(builder.joint_type) if t in (JointType.REVOLUTE, JointType.PRISMATIC)]
    if len(single) > 1:
        builder.set_joint_mimic(single[0], single[1], coeffs=(0.1, 2))
    builder.add_joint_ball(builder.joint_child[0], builder.joint_child[joints - 1], label="loop")
    other = random_tree(rng, joints=3, label="other")
    builder.add_builder(other)
    return builder


def arrays(model) -> dict[str, np.ndarray]:
    result = {name: value.numpy() for name, value in vars(model).items() if isinstance(value, wp.array)}
    result["pairs"] = model.shape_collision_filter_pairs.to_array()
    result |= {name: np.array(value) for name, value in vars(model).items() if name.endswith("_label")}
    return result


def assert_same_model(a, b):
    a, b = arrays(a), arrays(b)
    assert len(a) > 70
    assert a.keys() == b.keys()
    for name, values in a.items():
        np.testing.assert_array_equal(values, b[name], err_msg=name)


def test_three_ways_to_add_worlds_give_the_same_model(rng):
    """replicate, add_world one by one, and begin_world with add_builder."""
    source = scene(rng)
    poses = [random_transform(rng) for _ in range(3)]
    ways = [ModelBuilder() for _ in range(3)]
    for builder in ways:
        builder.add_ground_plane()
    ways[0].replicate(source, 3, xforms=poses, label_prefixes=["a", None, "b"])
    for pose, prefix in zip(poses, ["a", None, "b"], strict=True):
        ways[1].add_world(source, xform=pose, label_prefix=prefix)
        ways[2].begin_world()
        ways[2].add_builder(source, xform=pose, label_prefix=prefix)
        ways[2].end_world()
    models = [builder.finalize("cpu") for builder in ways]
    assert_same_model(models[0], models[1])
    assert_same_model(models[0], models[2])


def test_a_world_holds_what_its_builder_held(rng):
    """Each slice of the arrays, its indices counted from its own start, is the model of the source alone."""
    source = scene(rng)
    single = arrays(source.finalize("cpu"))
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(source, 4)
    builder.add_shape_box(-1, label="last")
    many = arrays(builder.finalize("cpu"))
    kinds = {
        "body": ["joint_parent", "joint_child", "shape_body"],
        "joint": ["joint_ancestor", "joint_mimic_joint", "articulation_start", "articulation_end"],
        "joint_coord": ["joint_q_start"],
        "joint_dof": ["joint_qd_start"],
        "articulation": ["joint_articulation"],
    }
    refers = {name: kind for kind, names in kinds.items() for name in names}
    owners = {kind: many[f"{kind}_world_start"] for kind in (*kinds, "shape")}
    for kind, start in owners.items():
        assert start[-1] - start[-2] == (1 if kind == "shape" else 0)
    compared = 0
    for name, values in single.items():
        kind = BY_NAME[name].kind if name in BY_NAME else name.split("_")[0]
        kind = {"dof": "joint_dof", "coord": "joint_coord"}.get(kind, kind)
        if kind not in owners or name.endswith(("_world", "_world_start")) or name.startswith("shape_hull"):
            continue
        for world in range(4):
            copied = many[name][owners[kind][world] : owners[kind][world + 1]]
            if name in refers:
                offset = owners[refers[name]][world]
                copied = np.where(copied >= 0, copied - offset, -1)
                if name == "articulation_start":
                    values = values[: len(copied)]
            np.testing.assert_array_equal(copied, values[: len(copied)], err_msg=name)
            compared += 1
    assert compared > 4 * 55
    assert set(many["body_world"]) == {0, 1, 2, 3}


@pytest.mark.parametrize("floating", [True, False])
def test_moving_a_scene_moves_everything_rigidly(rng, floating):
    """FK of the moved copy is the moved FK, poses and velocities; static shapes move, those on bodies stay on them."""
    source = scene(rng, floating=floating)
    for index in range(source.body_count):
        source.body_qd[index] = tuple(rng.normal(size=6))
    model = source.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    source.joint_q, source.joint_qd = q, qd
    pose = random_transform(rng, 5.0)
    builder = ModelBuilder()
    builder.add_world(source, xform=pose)
    moved = builder.finalize("cpu", dtype=wp.float64)
    tree, moved_tree = reference.Tree.from_model(model), reference.Tree.from_model(moved, 0)
    new_q, new_qd = moved.joint_q.numpy()[moved_tree.coords], moved.joint_qd.numpy()[moved_tree.dofs]
    matrix = reference.pose_matrix(pose)
    q, qd = q[tree.coords], qd[tree.dofs]
    expected = [matrix @ reference.pose_matrix(x) for x in reference.body_poses(tree, q)]
    actual = [reference.pose_matrix(x) for x in reference.body_poses(moved_tree, new_q)]
    np.testing.assert_allclose(actual, expected, **TIGHT)
    old_v, new_v = reference.body_velocities(tree, q, qd), reference.body_velocities(moved_tree, new_q, new_qd)
    turn = np.kron(np.eye(2), matrix[:3, :3])
    np.testing.assert_allclose(new_v, old_v @ turn.T, **TIGHT)
    np.testing.assert_allclose(moved.body_qd.numpy(), np.array(source.body_qd) @ turn.T, **TIGHT)
    for shape in range(source.shape_count):
        old = reference.pose_matrix(np.array(source.shape_transform[shape]))
        new = reference.pose_matrix(moved.shape_transform.numpy()[shape])
        np.testing.assert_allclose(new, matrix @ old if source.shape_body[shape] < 0 else old, **TIGHT)


@pytest.mark.parametrize("spacing", [(2.0, 3.0, 0.0), (0.0, 1.5, 0.0), (1.0, 2.0, 0.5), (0, 0, 0)])
@pytest.mark.parametrize("count", [1, 7, 16])
def test_grid_is_centred_and_evenly_spaced(spacing, count):
    offsets = grid_offsets(count, spacing)
    assert offsets.shape == (count, 3)
    active = [axis for axis in range(3) if spacing[axis]]
    for axis in range(3):
        places = np.unique(offsets[:, axis].round(9))
        if axis not in active:
            assert places.tolist() == [0.0]
            continue
        np.testing.assert_allclose(np.diff(places), spacing[axis])
        if axis == 2:
            assert places[0] == 0.0  # up: the grid starts at the ground
        else:
            assert places[0] + places[-1] == pytest.approx(0.0)
        assert len(places) <= int(np.ceil(count ** (1.0 / len(active)) - 1e-9))
    if active:
        assert len(np.unique(offsets.round(9), axis=0)) == count


def test_grid_spacing_reaches_the_bodies():
    source = ModelBuilder()
    source.add_body(xform=((0, 0, 1), (0, 0, 0, 1)), mass=1, inertia=np.eye(3))
    builder = ModelBuilder()
    builder.replicate(source, 4, spacing=(2, 2, 0))
    places = {tuple(q[:3]) for q in builder.body_q}
    assert places == {(-1.0, -1.0, 1.0), (1.0, -1.0, 1.0), (-1.0, 1.0, 1.0), (1.0, 1.0, 1.0)}
    np.testing.assert_array_equal(np.reshape(builder.joint_q, (4, 7)), builder.body_q)


def test_copies_can_share_one_world(rng):
    source = scene(rng)
    builder = ModelBuilder()
    builder.begin_world(gravity=-1)
    builder.replicate(source, 3, separate_worlds=False, spacing=(5, 0, 0))
    builder.end_world()
    model = builder.finalize("cpu")
    assert model.world_count == 1
    assert set(model.body_world.numpy()) == {0}
    assert model.articulation_count == 3 * source.articulation_count
    np.testing.assert_allclose(model.gravity.numpy(), [[0, 0, -1]])


def test_gravity_of_each_world():
    def ball(gravity=None):
        source = ModelBuilder(gravity=gravity)
        source.add_body(mass=1, inertia=np.eye(3))
        return source

    builder = ModelBuilder(gravity=-3)
    builder.add_world(ball())  # never set: that of the scene
    assert builder.world_gravity == [[0, 0, -3]]
    builder.add_world(ball((1, 2, 3)))
    builder.replicate(ball(-5), 2)
    builder.begin_world(gravity=(0, 0, 0))
    builder.add_builder(ball())
    builder.end_world()
    expected = [[0, 0, -3], [1, 2, 3], [0, 0, -5], [0, 0, -5], [0, 0, 0]]
    model = builder.finalize("cpu")
    np.testing.assert_array_equal(model.gravity.numpy(), expected)

    assert builder.world_gravity == expected
    # entries may be edited, and belong to their world alone
    builder.world_gravity[2][1] = 7.0
    builder.gravity = -4
    builder.begin_world()
    builder.add_builder(ball())
    builder.end_world()
    edited = [*expected[:2], [0, 7, -5], *expected[3:], [0, 0, -4]]
    np.testing.assert_array_equal(builder.finalize("cpu").gravity.numpy(), edited)

    version = model.version
    model.set_gravity(-2, world=1)
    expected[1] = [0, 0, -2]
    np.testing.assert_array_equal(model.gravity.numpy(), expected)
    model.set_gravity(np.arange(15).reshape(5, 3))
    np.testing.assert_array_equal(model.gravity.numpy(), np.arange(15).reshape(5, 3))
    model.set_gravity((0, 1, 0))
    np.testing.assert_array_equal(model.gravity.numpy(), [[0, 1, 0]] * 5)
    assert model.version == version + 3
    with pytest.raises(IndexError, match=r"world 5.*5"):
        model.set_gravity(0, world=5)
    with pytest.raises(ValueError, match=r"\(3,\).*\(5, 3\)"):
        model.set_gravity([1, 2])
    with pytest.raises(ValueError, match="finite"):
        model.set_gravity([1, 2, np.nan])


def test_worlds_differ_where_the_lists_are_edited(rng):
    """Every real parameter of every entity can differ; one edit reaches one world's entry and no other."""
    source = random_tree(rng, joints=3, types=[JointType.REVOLUTE])
    builder = ModelBuilder()
    builder.replicate(source, 3)
    plain = arrays(builder.finalize("cpu"))
    builder.body_mass[4] = 7.0
    builder.joint_limit_upper[4] = 0.75
    builder.joint_X_p[4] = (1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0)
    builder.body_inertia[4] = np.diag([1, 1, 1])
    edited = arrays(builder.finalize("cpu"))
    changed = {
        name for name in plain if plain[name].dtype.kind == "f" and not np.array_equal(plain[name], edited[name])
    }
    assert changed == {
        "body_mass",
        "body_inv_mass",
        "body_inertia",
        "body_inv_inertia",
        "joint_limit_upper",
        "joint_X_p",
    }
    for name in changed:
        assert np.flatnonzero(np.any((plain[name] != edited[name]).reshape(9, -1), axis=1)).tolist() == [4]


def test_labels_take_prefixes():
    source = ModelBuilder()
    source.add_shape_sphere(source.add_body(label="ball"), label="skin")
    builder = ModelBuilder()
    builder.replicate(source, 2, label_prefixes=["left", None])
    assert builder.body_label == ["left/ball", "ball"]
    assert builder.joint_label == ["left/ball_free_joint", "ball_free_joint"]
    assert builder.articulation_label == ["left/ball_articulation", "ball_articulation"]
    assert builder.shape_label == ["left/skin", "skin"]
    assert builder.world_label == ["world_0", "world_1"]
    builder.add_world(source)
    with pytest.raises(KeyError, match=r"2 joints.*'ball_free_joint'.*\(first: 1\)"):
        builder.set_joint_mimic("ball_free_joint", None)


def test_shared_entities_stand_before_or_after_the_worlds():
    source = ModelBuilder()
    source.add_shape_box(source.add_body())
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_world(source)
    builder.add_shape_box(-1)
    assert builder.finalize("cpu").shape_world_start.numpy().tolist() == [1, 2, 3]
    builder.add_world(source)
    with pytest.raises(ValueError, match=r"shape 'shape_2' \(index 2\)"):
        builder.finalize("cpu")


@pytest.mark.parametrize("kind", ["free", "fixed", "kinematic", "carried"])
def test_worlds_share_only_what_they_cannot_move(kind):
    """World -1 may hold fixed and kinematic bodies; a body that worlds could push would let them feel each other."""
    unit = {"mass": 1.0, "inertia": np.eye(3)}
    builder = ModelBuilder()
    if kind == "free":
        builder.add_body(**unit, label="crate")
    elif kind == "kinematic":
        builder.add_body(**unit, is_kinematic=True)
        assert builder.body_flags == [BodyFlags.KINEMATIC]
    else:
        table = builder.add_link(**unit)
        joints = [builder.add_joint_fixed(-1, table)]
        if kind == "carried":
            joints.append(builder.add_joint_revolute(table, builder.add_link(**unit, label="crate")))
        builder.add_articulation(joints)
    builder.finalize("cpu")  # one scene without worlds may hold anything
    builder.begin_world()
    builder.add_body(**unit)
    builder.end_world()
    if kind in ("free", "carried"):
        with pytest.raises(ValueError, match=r"body 'crate' \(index \d\)"):
            builder.finalize("cpu")
    else:
        builder.finalize("cpu")


def test_what_worlds_do_not_do():
    source, builder = ModelBuilder(), ModelBuilder()
    body = source.add_body(mass=1, inertia=np.eye(3))
    builder.begin_world()
    with pytest.raises(RuntimeError, match=r"world 0.*open"):
        builder.begin_world()
    with pytest.raises(RuntimeError, match=r"world 0.*open"):
        builder.replicate(source, 2)
    with pytest.raises(RuntimeError, match=r"world 0.*open"):
        builder.finalize("cpu")
    builder.add_body(mass=1, inertia=np.eye(3))
    builder.end_world()
    with pytest.raises(RuntimeError, match=r"world.*open"):
        builder.end_world()
    with pytest.raises(ValueError, match=r"joint.*-1.*'body_0'.*\(index 0, world 0\)"):
        builder.add_joint_revolute(-1, body)
    with pytest.raises(ValueError, match=r"shape.*-1.*'body_0'"):
        builder.add_shape_box(body)
    with pytest.raises(ValueError, match="1 worlds"):
        ModelBuilder().add_world(builder)
    with pytest.raises(ValueError, match="itself"):
        source.add_builder(source)
    with pytest.raises(ValueError, match=r"up axis.*\bY\b.*\bZ\b"):
        builder.add_world(ModelBuilder(up_axis="y"))
    with pytest.raises(TypeError, match="ModelBuilder"):
        builder.add_world(3)
    with pytest.raises(ValueError, match=r"xforms.*1.*2"):
        builder.replicate(source, 2, xforms=[None])
    with pytest.raises(ValueError, match=r"label_prefixes.*3.*2"):
        builder.replicate(source, 2, label_prefixes=["a"] * 3)
    for count in (-1, 2.0, None):
        with pytest.raises((TypeError, ValueError)):
            builder.replicate(source, count)
    assert builder.world_count == 1
    builder.replicate(source, world_count=2)
    assert builder.world_count == 3


def test_notice_of_changes_takes_any_flags():
    model = ModelBuilder().finalize("cpu")
    for flags in (ModelFlags.ALL, ModelFlags.SHAPE_PROPERTIES | ModelFlags.BODY_PROPERTIES, 0, 4096):
        version = model.version
        model.notify_changed(flags)
        assert model.version == version + 1


@pytest.mark.slow
def test_many_worlds_are_built_by_operations_of_arrays(rng):
    """13 bodies and joints, 26 shapes: building takes array operations, not a loop over worlds."""
    source = random_tree(rng, joints=13, types=[JointType.REVOLUTE], floating=None)
    for body in range(13):
        for _ in range(2):
            source.add_shape_capsule(body, radius=0.02, half_height=0.1, cfg=ShapeConfig(density=0))
    source.body_mass[3], source.body_inertia[3] = 0.0, np.zeros((3, 3))  # the thorough check of inertias runs too

    def build(worlds):
        builder = ModelBuilder()
        builder.add_ground_plane()
        builder.replicate(source, worlds, spacing=(1, 1, 0))
        model = builder.finalize("cpu")
        assert (model.world_count, model.body_count, model.shape_count) == (worlds, 13 * worlds, 26 * worlds + 1)

    few, many = (calls_of(lambda worlds=worlds: build(worlds)) for worlds in (16, 1024))
    # 113 calls a world; one for every argument of every joint and every shape would be thousands.
    assert many - few < 200 * (1024 - 16)
