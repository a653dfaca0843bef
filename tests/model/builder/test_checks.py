"""Checks of finalize: errors name the entity and the cure, and valid models pass."""

import itertools
import warnings

import numpy as np
import pytest
import warp as wp

from newton_like.coercion import as_axis, as_index, as_number, as_vector
from newton_like.geometry.mesh import Mesh
from newton_like.model import JointDofConfig, ModelBuilder, ShapeConfig
from newton_like.model.tendons import Tendon, TendonTie
from newton_like.types import MAXVAL, Axis, BodyFlags, GeoType, JointTargetMode, JointType, warp_types
from tests.support.random_trees import random_tree, random_unit

NAN, INF = float("nan"), float("inf")
UNIT = {"mass": 1.0, "inertia": np.eye(3)}


def robot() -> ModelBuilder:
    """torso (free), arm (revolute 'elbow'), hand (ball 'wrist'), finger (D6 with x slide and z, y turns)."""
    builder = ModelBuilder()
    torso, arm, hand, finger = (builder.add_link(**UNIT, label=name) for name in ("torso", "arm", "hand", "finger"))
    joints = [
        builder.add_joint_free(torso, label="root"),
        builder.add_joint_revolute(torso, arm, label="elbow", limit_lower=-1, limit_upper=1),
        builder.add_joint_ball(arm, hand, label="wrist"),
        builder.add_joint_d6(hand, finger, linear_axes=["x"], angular_axes=["z", "y"], label="finger"),
    ]
    builder.add_articulation(joints, label="robot")
    builder.add_shape_box(torso, label="chest", cfg=ShapeConfig(density=0))
    return builder


def set_entry(name, index, value):
    def change(builder):
        getattr(builder, name)[index] = value

    return change


def set_list(name, make):
    def change(builder):
        setattr(builder, name, make(getattr(builder, name)))

    return change


# An edit of the robot, and the words of the error: the entity, the numbers, the cure.
WRONG = {
    "crossed limits": (
        [set_entry("joint_limit_lower", 6, 1.2), set_entry("joint_limit_upper", 6, 0.8)],
        r"joint 'elbow' \(index 1\): limit_lower 1\.2.*limit_upper 0\.8",
    ),
    "crossed limits of one axis of several": (
        [set_entry("joint_limit_lower", 11, 2), set_entry("joint_limit_upper", 11, 1)],
        r"joint 'finger' \(index 3\), dof 1: limit_lower 2 .*limit_upper 1",
    ),
    "long axis": (
        [set_entry("joint_axis", 6, (0, 0, 2))],
        r"joint 'elbow' \(index 1\): axis \[.*2\.0\].*length 2\b",
    ),
    "zero axis": ([set_entry("joint_axis", 6, (0, 0, 0))], r"joint 'elbow' \(index 1\): axis .*length 0"),
    "parallel turns": (
        [set_entry("joint_axis", 12, (0, 0, 1))],
        r"joint 'finger' .*angular axes.*dependent",
    ),
    "negative mass": ([set_entry("body_mass", 1, -2)], r"body 'arm' \(index 1\): mass -2\b.*0"),
    "negative moment": (
        [set_entry("body_inertia", 1, np.diag([1, 1, -1]))],
        r"body 'arm' \(index 1\): .*-1.*moment.*mass 1 kg",
    ),
    "triangle inequality": (
        [set_entry("body_inertia", 2, np.diag([1, 1, 3]))],
        r"body 'hand' \(index 2\): principal moments \(1, 1, 3\).*triangle inequality",
    ),
    "skew inertia": (
        [set_entry("body_inertia", 2, [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])],
        r"body 'hand' \(index 2\): inertia .*symmetric",
    ),
    "inertia without mass": (
        [set_entry("body_mass", 2, 0)],
        r"body 'hand' \(index 2\): .*inertia.*mass",
    ),
    "long quaternion": (
        [set_entry("joint_X_p", 1, (0, 0, 0, 0, 0, 1, 1))],
        r"joint 'elbow' \(index 1\): quaternion .*joint_X_p .*length 1\.41421",
    ),
    "long quaternion of a body": (
        [set_entry("body_q", 2, (0, 0, 0, 0, 0, 0, 2))],
        r"body 'hand' \(index 2\): quaternion .*body_q .*length 2\b",
    ),
    "zero quaternion of a shape": (
        [set_entry("shape_transform", 0, (0,) * 7)],
        r"shape 'chest' \(index 0\): quaternion .*length 0",
    ),
    "quaternion among coordinates": (
        [set_entry("joint_q", 6, 2.0)],
        r"joint 'root' \(index 0\), coordinate 3: .*quaternion \[0\.0, 0\.0, 0\.0, 2\.0\] .*joint_q .*length 2\b",
    ),
    "quaternion of a ball's target": (
        [set_entry("joint_target_q", 8, 1.0)],
        r"joint 'wrist' \(index 2\), coordinate 0: .*quaternion .*joint_target_q .*length 1\.41421",
    ),
    "quaternion of a ball's rest": (
        [set_entry("joint_rest_q", 11, 0.0)],
        r"joint 'wrist' \(index 2\), coordinate 0: .* joint_rest_q .*length 0",
    ),
    "too few coordinates": (
        [set_list("joint_q", lambda q: q[:-1])],
        r"builder\.joint_q .*14 .*15 coordinates",
    ),
    "too many masses": ([set_list("body_mass", lambda m: [*m, 1.0])], r"builder\.body_mass .*5 .*4 bodies"),
    "unknown type": ([set_entry("joint_type", 1, 9)], r"joint 'elbow' \(index 1\): 9 .*JointType.*PRISMATIC"),
    "unknown mode": ([set_entry("joint_target_mode", 6, 7)], r"joint 'elbow' \(index 1\): 7 .*JointTargetMode"),
    "unknown shape": ([set_entry("shape_type", 0, 77)], r"shape 'chest' \(index 0\): 77 .*GeoType"),
    "unknown flags": ([set_entry("body_flags", 0, 0)], r"body 'torso' \(index 0\): flags 0 .*BodyFlags"),
    "type without its dofs": (
        [set_entry("joint_type", 1, JointType.BALL)],
        r"joint 'elbow' .*BALL",
    ),
    "shifted start": ([set_entry("joint_qd_start", 1, 5)], r"joint 'elbow' \(index 1\): joint_qd_start 5 .*6"),
    "no such parent": (
        [set_entry("joint_parent", 1, 12)],
        r"joint 'elbow' \(index 1\): joint_parent 12 .*4",
    ),
    "no such body": ([set_entry("shape_body", 0, -2)], r"shape 'chest' \(index 0\): shape_body -2 "),
    "world as child": ([set_entry("joint_child", 3, -1)], r"joint 'finger' \(index 3\): .*child.*world"),
    "no such world": ([set_entry("shape_world", 0, 3)], r"shape 'chest' .*: world 3 .*0"),
    "two parents": (
        [set_entry("joint_child", 3, 2)],
        r"joint 'wrist' \(index 2\): .*child.*'hand'.*joint 'finger' \(index 3\).*loop",
    ),
    "cycle": (
        [set_entry("joint_parent", 1, 2)],
        r"joint.*'wrist' \(index 2\) -> joint 'elbow' \(index 1\).*cycle",
    ),
    "own parent": ([set_entry("joint_parent", 1, 1)], r"joint 'elbow' .*cycle"),
    "negative gap": ([set_entry("shape_gap", 0, -1)], r"shape 'chest' \(index 0\): gap -1\b.*0"),
    "limits of a ball": ([set_entry("joint_limit_upper", 8, 1)], r"joint 'wrist' \(index 2\), dof 1: .*D6"),
    "short vector": (
        [set_entry("body_com", 2, (1, 2))],
        r"body 'hand' .*: body_com .*3 .*2",
    ),
    "word": ([set_entry("body_mass", 2, "x")], r"body 'hand' \(index 2\): body_mass .*'x'"),
    "restitution": ([set_entry("shape_material_restitution", 0, 2)], r"shape 'chest' .*restitution 2 .*1"),
    "stiffness of nothing": (
        [set_entry("shape_material_time_constant", 0, 0)],
        r"shape 'chest' .*time_constant",
    ),
    "size": (
        [set_entry("shape_scale", 0, (1, -1, 1))],
        r"shape 'chest' \(index 0\): BOX: .*\by -1\b",
    ),
    "negative armature": ([set_entry("joint_armature", 6, -1)], r"joint 'elbow' \(index 1\): armature -1\b.*0"),
    "kinematic in the middle": (
        [set_entry("body_flags", 1, BodyFlags.KINEMATIC)],
        r"joint 'elbow' \(index 1\): .*body 'arm' \(index 1\).*kinematic.*world",
    ),
    "mimic of a ball": (
        [set_entry("joint_mimic_joint", 1, 2)],
        r"joint 'elbow' .*mimic.*joint 'wrist' .*PRISMATIC",
    ),
    "mimic of itself": ([set_entry("joint_mimic_joint", 1, 1)], r"joint 'elbow' .*itself"),
    "mimic of more dofs": ([set_entry("joint_mimic_joint", 1, 3)], r"joint 'elbow' .*dofs"),
    "split articulation": ([set_entry("joint_articulation", 3, -1)], r"joint 'finger' .*joint_articulation .*-1\b"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_thing_and_the_cure(case):
    changes, message = WRONG[case]
    builder = robot()
    builder.finalize("cpu")
    for change in changes:
        change(builder)
    with pytest.raises(TypeError if case == "word" else ValueError, match=message):
        builder.finalize("cpu")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_no_real_number_may_be_nan_and_few_infinite(value):
    """Every real list of the builder, one entry at a time."""
    unlimited = {
        "joint_limit_lower",
        "joint_limit_upper",
        "joint_effort_limit",
        "joint_velocity_limit",
        "joint_friction",
        "joint_min_distance",
        "joint_max_distance",
        "joint_max_angle",
        "joint_max_swing",
    }
    tried = 0
    for name, values in vars(robot()).items():
        if not isinstance(values, list) or not values or not np.array(values, dtype=object).size:
            continue
        entry = np.array(values[-1]) if not isinstance(values[-1], str) else np.array("")
        if entry.dtype.kind != "f":
            continue
        builder = robot()
        entry = entry.astype(np.float64)
        entry.flat[entry.size // 2] = value
        getattr(builder, name)[-1] = entry.tolist() if entry.ndim else float(entry)
        tried += 1
        allowed = name in unlimited and not np.isnan(value)
        if allowed and (value < 0) == (name == "joint_limit_lower"):
            array = getattr(builder.finalize("cpu"), name).numpy()
            assert array[-1] == np.sign(value) * MAXVAL
        elif not (allowed and name.endswith(("distance", "angle", "swing"))):
            with pytest.raises(ValueError, match=r"\(index \d+\)"):
                builder.finalize("cpu")
    assert tried > 40


def test_errors_count_worlds():
    """In the last of 50 worlds, and in all of them."""
    builder = ModelBuilder()
    builder.replicate(robot(), 50)
    builder.body_mass[4 * 49 + 1] = -1
    with pytest.raises(ValueError, match=r"body 'arm' \(index 197, world 49\): mass -1 "):
        builder.finalize("cpu")
    for world in range(50):
        builder.body_mass[4 * world + 1] = -1
    with pytest.raises(ValueError, match=r"body 'arm' \(index 1, world 0\): mass -1 .*49"):
        builder.finalize("cpu")


def test_rounding_is_no_error(rng):
    """Quaternions and axes as a float32 or a file with five digits leaves them are normalised."""
    builder = robot()
    turn = rng.normal(size=4)
    turn = (turn / np.linalg.norm(turn)).round(4)
    axis = random_unit(rng).round(4)
    builder.joint_X_p[1] = (0, 0, 0, *turn)
    builder.joint_axis[6] = tuple(axis)
    builder.joint_q[3:7] = np.float32(turn).tolist()
    model = builder.finalize("cpu", dtype=wp.float64)
    for got, given in (
        (model.joint_X_p.numpy()[1, 3:], turn),
        (model.joint_axis.numpy()[6], axis),
        (model.joint_q.numpy()[3:7], turn),
    ):
        assert np.linalg.norm(got) == pytest.approx(1.0, abs=1e-15)
        np.testing.assert_allclose(got, given, atol=2e-4)  # four digits


def test_quaternions_are_normalised_within_one_percent_of_unit_length(rng):
    """Those that methods get, of frames, and those that are edited; others raise an error."""

    def poses(turn):
        builder = robot()
        pose = (*rng.normal(size=3), *turn)
        body = builder.add_link(**UNIT, xform=pose)
        joint = builder.add_joint_revolute(0, body, parent_xform=pose, child_xform=pose)
        builder.extend_articulation(0, [joint])
        shape = builder.add_shape_sphere(body, xform=pose)
        builder.frames.extend(["tool"], [0], [pose])
        builder.body_q[1], builder.joint_X_c[1] = pose, pose
        model = builder.finalize("cpu", dtype=wp.float64)
        yield from (model.body_q.numpy()[body], model.joint_X_p.numpy()[joint], model.joint_X_c.numpy()[joint])
        yield from (model.shape_transform.numpy()[shape], model.body_q.numpy()[1], model.joint_X_c.numpy()[1])
        yield model.frames.transform[-1]

    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    for factor in (0.991, 1.009):
        for pose in poses(factor * turn):
            np.testing.assert_allclose(pose[3:], turn, rtol=0.0, atol=1e-15)
    for factor in (0.98, 1.02):
        with pytest.raises(ValueError, match="quaternion"):
            list(poses(factor * turn))
        for name in ("body_q", "joint_X_c", "shape_transform"):
            builder = robot()
            getattr(builder, name)[0] = (0.0, 0.0, 0.0, *(factor * turn))
            with pytest.raises(ValueError, match=f"quaternion.*{name}"):
                builder.finalize("cpu")


def test_orphans_are_named():
    builder = robot()
    builder.add_link(**UNIT, label="lost")
    with pytest.warns(UserWarning, match=r"body 'lost' \(index 4\).*add_body"):
        builder.finalize("cpu")
    builder.add_joint_fixed(3, 4, label="glue")
    with pytest.raises(ValueError, match=r"joint 'glue' \(index 4\)"):
        builder.finalize("cpu")
    builder.add_articulation([4])
    message = r"joint 'glue' \(index 4\): .*parent body 'finger' \(index 3\).*articulation 'robot' \(index 0\)"
    with pytest.raises(ValueError, match=message):
        builder.finalize("cpu")


def test_children_before_parents_are_an_order_not_a_cycle():
    builder = ModelBuilder()
    a, b = builder.add_link(**UNIT), builder.add_link(**UNIT)
    joints = [builder.add_joint_revolute(a, b, label="knee"), builder.add_joint_free(a, label="root")]
    builder.add_articulation(joints)
    with pytest.raises(ValueError, match=r"joint 'knee'.*'root'"):
        builder.finalize("cpu")


def test_loops_are_joints_outside_of_articulations():
    builder = robot()
    loop = builder.add_joint_ball(0, 3, label="loop")
    model = builder.finalize("cpu")
    assert model.joint_articulation.numpy()[loop] == -1
    assert model.joint_ancestor.numpy()[loop] == 0


def test_gains_without_a_mode_are_not_lost_in_silence():
    builder = robot()
    builder.joint_target_ke[6] = 5
    with pytest.warns(UserWarning, match=r"joint 'elbow' \(index 1\): target gains.*target_mode"):
        builder.finalize("cpu")
    builder.joint_target_mode[6] = JointTargetMode.POSITION
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.finalize("cpu")


def test_random_trees_pass(rng):
    """Sound mechanisms of all joint types are never refused."""
    for _ in range(20):
        random_tree(rng, joints=10, limits=True, stiffness=True, friction=True).finalize("cpu")


# Arguments


def test_bad_arguments_are_refused_at_once_and_leave_the_builder_as_it_was():
    def lengths(builder):
        return {name: len(value) for name, value in vars(builder).items() if isinstance(value, list)}

    calls = [
        (
            lambda b: b.add_link(mass="heavy"),
            TypeError,
            r"body 'body_4' \(index 4\).*mass.*'heavy'",
        ),
        (lambda b: b.add_link(mass=-1), ValueError, "mass -1 kg"),
        (lambda b: b.add_link(mass=NAN), ValueError, "mass .*nan"),
        (lambda b: b.add_link(com=(1, 2)), ValueError, r"com.*3.*2.*\(1, 2\)"),
        (lambda b: b.add_link(inertia=np.eye(2)), ValueError, r"3x3.*\(2, 2\)"),
        (lambda b: b.add_link(xform=(1, 2, 3)), ValueError, r"xform.*\b3\b"),
        (lambda b: b.add_link(xform=((0, 0, 0), (0, 0, 0, 2))), ValueError, "quaternion.*length 2"),
        (lambda b: b.add_joint_revolute(0, 9), IndexError, r"joint 'joint_4'.*9.*4"),
        (lambda b: b.add_joint_revolute(-2, 0), IndexError, r"parent body -2.*4.*-1"),
        (lambda b: b.add_joint_revolute(0, 1.0), TypeError, r"child.*1\.0"),
        (lambda b: b.add_joint_revolute(1, 1), ValueError, r"body 'arm'.*parent"),
        (lambda b: b.add_joint_revolute(0, 1, axis=(0, 0, 0)), ValueError, r"joint 'joint_4'.*axis"),
        (lambda b: b.add_joint_revolute(0, 1, axis="q", label="a"), ValueError, r"joint 'a'.*axis.*'q'"),
        (lambda b: b.add_joint_revolute(0, 1, armature=NAN, label="a"), ValueError, "joint 'a'.*armature .*nan"),
        (lambda b: b.add_joint_revolute(0, 1, parent_xform=(0,) * 7), ValueError, "parent_xform.*quaternion"),
        (
            lambda b: b.add_joint_revolute(0, 1, axis=JointDofConfig(), armature=1),
            ValueError,
            "armature.*JointDofConfig",
        ),
        (lambda b: b.add_joint_ball(0, 1, target_q=(0, 0, 0, 0)), ValueError, r"target_q.*0"),
        (lambda b: b.add_joint(JointType.REVOLUTE, 0, 1), ValueError, "REVOLUTE.*1 angular.*0"),
        (lambda b: b.add_joint(JointType.FIXED, 0, 1, linear_axes=["x"]), ValueError, r"FIXED joint.*0"),
        (lambda b: b.add_joint(JointType.BALL, 0, 1, angular_axes=["z", "y", "x"]), ValueError, "BALL.*x, y, z"),
        (lambda b: b.add_joint_d6(0, 1, angular_axes=["x"] * 4), ValueError, "4 angular axes"),
        (lambda b: b.add_shape_box(7), IndexError, r"shape 'shape_1'.*7.*4"),
        (lambda b: b.add_shape_box(0, hx=0), ValueError, r"shape 'shape_1' \(BOX\).*hx.*0.*0"),
        (lambda b: b.add_shape_sphere(0, radius=-1, label="s"), ValueError, r"shape 's'.*radius.*-1"),
        (lambda b: b.add_shape_box(0, cfg=ShapeConfig(mu=-1)), ValueError, r"shape 'shape_1' .*\(BOX\): mu -1"),
        (lambda b: b.add_shape_box(0, cfg=ShapeConfig(restitution=1.5)), ValueError, r"restitution 1.5.*1"),
        (lambda b: b.add_shape_box(0, cfg=ShapeConfig(time_constant=0)), ValueError, r"time_constant.*0"),
        (lambda b: b.add_shape_box(0, cfg=ShapeConfig(is_solid=False)), ValueError, "shell.*thickness"),
        (lambda b: b.add_shape_mesh(0), TypeError, "MESH.*Mesh.*None"),
        (lambda b: b.add_shape_heightfield(), TypeError, "HFIELD.*Heightfield.*None"),
        (lambda b: b.add_shape_plane((0, 0, 0, 1)), ValueError, "normal"),
        (lambda b: b.add_shape_plane((0, 0, 0, 1), label="floor"), ValueError, "shape 'floor'.*normal"),
        (lambda b: b.add_shape_plane((float("nan"), 0, 1, 0), label="floor"), ValueError, "shape 'floor'.*plane"),
        (lambda b: b.add_shape(body=0, type=99), ValueError, "99"),
        (lambda b: b.add_articulation([]), ValueError, "articulation 'articulation_1'"),
        (lambda b: b.add_articulation([1]), ValueError, r"joint 'elbow'.*'robot'"),
        (lambda b: b.add_articulation([12]), IndexError, "joint 12"),
        (lambda b: b.extend_articulation("arm", [1]), KeyError, r"articulation.*'arm'.*'robot'"),
        (
            lambda b: b.set_joint_mimic("elbow", "knee"),
            KeyError,
            r"joint.*'knee'.*'root'.*'elbow'",
        ),
        (lambda b: b.set_joint_mimic("elbow", "wrist"), ValueError, r"BALL joints.*mimic"),
        (lambda b: b.set_joint_mimic("elbow", "finger"), ValueError, r"joint 'finger'.*dofs"),
        (lambda b: b.set_joint_mimic("elbow", 1), ValueError, "elbow.*same"),
        (lambda b: b.add_shape_collision_filter_pair(0, 3), IndexError, r"shape_b 3.*1"),
        (lambda b: setattr(b, "gravity", (0, 1)), ValueError, r"gravity.*3"),
    ]
    for call, error, message in calls:
        builder = robot()
        before = lengths(builder)
        with pytest.raises(error, match=message):
            call(builder)
        assert lengths(builder) == before, message
        builder.finalize("cpu")


def test_articulations_are_contiguous():
    builder = ModelBuilder()
    joints = [builder.add_joint_free(builder.add_link(**UNIT)) for _ in range(4)]
    for wrong in ([0, 2], [1, 0], [0, 0]):
        with pytest.raises(ValueError, match="contiguous"):
            builder.add_articulation([joints[i] for i in wrong])
    builder.add_articulation(joints[1:3])
    with pytest.raises(ValueError, match=r"'articulation_1'.*'articulation_0'"):
        builder.add_articulation(joints[:1])
    with pytest.raises(ValueError, match=r"'articulation_0'.*index 2\b.*0"):
        builder.extend_articulation(0, joints[:1])
    builder.extend_articulation(0, joints[3:])
    assert (builder.articulation_start, builder.articulation_end) == ([1], [4])


def test_mimic_chains_are_refused():
    builder = ModelBuilder()
    joints, parent = [], -1
    for name in "abc":
        child = builder.add_link(**UNIT)
        joints.append(builder.add_joint_revolute(parent, child, label=name))
        parent = child
    builder.add_articulation(joints)
    builder.set_joint_mimic("b", "a")
    with pytest.raises(ValueError, match=r"joint 'c'.*'b'"):
        builder.set_joint_mimic("c", "b")
    with pytest.raises(ValueError, match=r"joint 'a' \(index 0\).*joint 'c' \(index 2\)"):
        builder.set_joint_mimic("a", "c")
    builder.joint_mimic_joint[2] = 1
    with pytest.raises(ValueError, match=r"joint 'c' \(index 2\).*mimic"):
        builder.finalize("cpu")


def test_numbers_vectors_and_axes_are_read_from_what_people_write():
    for one in (1, 1.0, np.int32(1), np.float32(1), np.array(1), np.array([1])[0], wp.float64(1), True):
        assert as_number(one, "x") == 1.0
        assert type(as_number(one, "x")) is float
    for three in ([1, 2, 3], (1, 2.0, 3), np.array([1, 2, 3]), wp.vec3(1, 2, 3), wp.vec3d(1, 2, 3), range(1, 4)):
        assert as_vector(three, 3, "x") == (1.0, 2.0, 3.0)
    for axis in ("y", "Y", Axis.Y, 1, np.int64(1), (0, 2, 0), wp.vec3(0, 3, 0)):
        assert as_axis(axis) == (0.0, 1.0, 0.0)
    for wrong in ("1", None, [1], (1, 2)):
        with pytest.raises(TypeError):
            as_number(wrong, "x")
    for wrong in ("123", None, 5, [[1], [2], [3]]):
        with pytest.raises(TypeError):
            as_vector(wrong, 3, "x")
    for wrong in (3, "w", (0, 0, 0), (1, 0)):
        with pytest.raises(ValueError):
            as_axis(wrong)
    for wrong in (True, 1.0, "1", None):
        with pytest.raises(TypeError):
            as_index(wrong, "x", 3)
    assert Axis.Z == "z"
    assert Axis.Z == 2
    assert Axis.X != "y"
    assert [Axis.from_any(a).to_vector() for a in range(3)] == [tuple(row) for row in np.eye(3)]


def test_scalar_types_of_models():
    assert warp_types(np.float64).vec3 is wp.vec3d
    assert warp_types(wp.float32).transform is wp.transform
    for wrong in (int, wp.int32, wp.float16, None):
        with pytest.raises(TypeError, match=r"wp\.float32.*wp\.float64"):
            ModelBuilder().finalize("cpu", dtype=wrong)


def test_joint_types_count_their_dofs():
    """Dofs and blocked directions fill space; a quaternion adds one coordinate."""
    for joint_type, axes in itertools.product(JointType, range(1, 7)):
        dofs, coords = joint_type.dof_count(axes)
        assert dofs + joint_type.constraint_count(axes) == 6
        assert coords - dofs == (joint_type in (JointType.BALL, JointType.FREE, JointType.DISTANCE))


def test_sites_and_empty_shapes_need_no_size():
    builder = ModelBuilder()
    body = builder.add_body(**UNIT)
    builder.add_shape(body=body, type=GeoType.NONE, scale=(0, 0, 0))
    builder.add_site(body)
    assert builder.finalize("cpu").shape_collision_radius.numpy()[0] == 0.0


def test_distances_are_told_as_limits_of_the_first_dof():
    builder = ModelBuilder()
    ends = [(-1.0, 1.0), (0.2, -1.0), (0.1, 0.4)]
    for low, high in ends:
        body = builder.add_link(mass=1.0, inertia=np.eye(3))
        builder.add_articulation([builder.add_joint_distance(-1, body, min_distance=low, max_distance=high)])
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu", dtype=wp.float64)
    lower, upper = (getattr(model, f"joint_limit_{end}").numpy().reshape(-1, 6) for end in ("lower", "upper"))
    np.testing.assert_array_equal(np.stack([lower[:3, 0], upper[:3, 0]], axis=1), ends)
    assert np.all(lower[:, 1:] == -MAXVAL) and np.all(upper[:, 1:] == MAXVAL) and lower[3, 0] == -MAXVAL
    builder.joint_limit_upper[0] = 0.7
    with pytest.raises(ValueError, match="joint_0"):
        builder.finalize("cpu")


def test_colliding_meshes_without_area_are_refused(rng):
    """Triangles on a line or a point are refused by the label of the shape; those in a plane are not, nor are meshes for viewers."""
    corners, faces = rng.normal(size=(6, 3)), np.array([[0, 1, 2], [3, 4, 5]])
    line = Mesh(rng.normal(size=3) + np.outer(rng.normal(size=6), random_unit(rng)), faces, compute_inertia=False)
    point = Mesh(np.tile(rng.normal(size=3), (6, 1)), faces, compute_inertia=False)
    flat = Mesh(corners * (1.0, 1.0, 0.0), faces, compute_inertia=False)
    builder = ModelBuilder()
    for mesh in (line, point):
        with pytest.raises(ValueError, match=r"'rail'.* points or lines"):
            builder.add_shape_mesh(-1, mesh=mesh, label="rail")
        builder.add_shape_mesh(-1, mesh=mesh, cfg=ShapeConfig(has_shape_collision=False))
    builder.add_shape_mesh(-1, mesh=flat, label="sheet")
    assert builder.finalize("cpu").shape_count == 3


BAD_TENDONS = [
    (
        {"joints": ((0, 1.0),)},
        ValueError,
        r"joints is \(joint index, number of its dof, coefficient\), not \(0, 1\.0\)",
    ),
    ({"joints": (0, 0, 1.0)}, ValueError, "entry of joints .* not 0"),
    ({"joints": ((0, 1, 1.0),)}, IndexError, "joint 0, dof 1 is out of range: 1 exist"),
    ({"joints": ((0, -1, 1.0),)}, IndexError, "joint 0, dof -1 is out of range: 1 exist"),
    ({"joints": ((0, 0, np.nan),)}, ValueError, "joint 0, coefficient is nan"),
    ({"joints": ((0, 0, "x"),)}, TypeError, "joint 0, coefficient must be a number"),
    ({"joints": ((0, 0, 1.0),), "rest_length": 0.5}, ValueError, r"rest_length 0\.5 must be the smaller"),
    ({"joints": ((0, 0, 1.0),), "limits": (1.0,)}, ValueError, r"limits \(1\.0,\) must be the smaller"),
    (
        {"joints": ((0, 0, 1.0),), "solref_limit": (0.1,)},
        ValueError,
        r"solref of the limits must be 2 numbers, not \(0\.1,\)",
    ),
    ({"joints": ((0, 0, 1.0),), "solref_limit": None}, ValueError, "solref of the limits must be 2 numbers, not None"),
    ({"joints": ((0, 0, 1.0),), "solref_limit": (0.1, np.nan)}, ValueError, "solref of the limits is nan"),
    (
        {"joints": ((0, 0, 1.0),), "solref_limit": (0.1, -1.0)},
        ValueError,
        r"solref \(0\.1, -1\.0\) of the limits is neither",
    ),
    ({"joints": ((0, 0, 1.0),), "solimp_limit": 0.9}, ValueError, r"solimp of the limits must be 5 numbers, not 0\.9"),
    (
        {"joints": ((0, 0, 1.0),), "solimp_limit": (0.9, 0.95, "x", 0.5, 2)},
        TypeError,
        "solimp of the limits must be a number",
    ),
    (
        {"joints": ((0, 0, 1.0),), "ties": (TendonTie(polycoef=1.0),)},
        ValueError,
        r"polycoef of a tie must be 5 numbers, not 1\.0",
    ),
    ({"joints": ((0, 0, 1.0),), "ties": (TendonTie(solref=(0.1,)),)}, ValueError, "solref of a tie must be 2 numbers"),
    (
        {"joints": ((0, 0, 1.0),), "ties": (TendonTie(solref=(0.1, 1), solimp=(1,)),)},
        ValueError,
        "solimp of a tie must be 5 n",
    ),
    ({"joints": ((0, 0, 1.0),), "offset": np.nan}, ValueError, "offset is nan"),
    ({"joints": ((0, 0, 1.0),), "effort_limit": -1.0}, ValueError, "effort_limit -1 must be at least 0"),
    ({"path": (("site",), ("site", 1))}, ValueError, r'entry of a path is \("site", shape index\)'),
    ({"path": (("site", 0), ("geom", 1), ("site", 0))}, ValueError, r'entry of a path is \("geom", .* beside'),
    ({"path": (("pulley",), ("site", 0), ("site", 1))}, ValueError, r'entry of a path is \("pulley", divisor\)'),
    ({"path": ("site", "site")}, ValueError, "entry of a path .* not 'site'"),
]


@pytest.mark.parametrize(("fields", "error", "message"), BAD_TENDONS)
def test_tendons_of_another_form_are_refused(fields, error, message):
    """A dof that a joint does not have was read from another joint, in silence."""
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0))])
    for body in (-1, link):
        builder.add_site(body)
    with pytest.raises(error, match=f"^tendon 't': .*{message}"):
        builder.add_tendon(Tendon(label="t", **fields))


def test_colliding_hulls_on_a_line_are_refused(rng):
    """Also on no body. Flat hulls are plates: they need a mass of their body, and an error says so by the label of the shape."""
    corners, faces = rng.normal(size=(6, 3)), np.array([[0, 1, 2], [3, 4, 5]])
    line = Mesh(rng.normal(size=3) + np.outer(rng.normal(size=6), random_unit(rng)), faces, compute_inertia=False)
    point = Mesh(np.tile(rng.normal(size=3), (6, 1)), faces, compute_inertia=False)
    flat = Mesh(corners * (1.0, 1.0, 0.0), faces, compute_inertia=False)
    builder = ModelBuilder()
    for body in (-1, builder.add_body(mass=1.0, inertia=np.eye(3))):
        for mesh in (line, point):
            with pytest.raises(ValueError, match=r"'rail'.* on a line"):
                builder.add_shape_convex_hull(body, mesh=mesh, label="rail")
            builder.add_shape_convex_hull(body, mesh=mesh, cfg=ShapeConfig(has_shape_collision=False, density=0.0))
    with pytest.raises(ValueError, match=r"'plate'.* flat.*density"):
        builder.add_shape_convex_hull(0, mesh=flat, label="plate")
    builder.add_shape_convex_hull(0, mesh=flat, label="plate", cfg=ShapeConfig(density=0.0))
    builder.add_shape_convex_hull(-1, mesh=Mesh(corners, [0, 0, 1], compute_inertia=False))
    assert builder.finalize("cpu").shape_count == 6
