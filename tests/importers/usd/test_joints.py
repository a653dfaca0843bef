"""The USD importer: joints, their axes, drives, vendor attributes and mimics."""

import math
import warnings

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Gf, Sdf, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, ModelBuilder, dynamics
from newton_like.geometry.transforms import (
    IDENTITY,
    quat_from_axis_angle,
    quat_multiply,
    transform,
    transform_inverse,
    transform_multiply,
    transform_to_matrix,
)
from newton_like.importers.usd import UsdWarning
from newton_like.solvers import SolverFeatherstone
from newton_like.types import MAXVAL, JointTargetMode, JointType
from tests.support.reference import mass_matrix, pose_matrix
from tests.support.usd_stages import (
    SINGLE,
    StageWriter,
    load,
    pair,
    poses,
    random_inertial,
    random_pose,
    set_pose,
    tree_of,
)


@pytest.mark.filterwarnings("ignore:.*bodies are not where")
def test_joint_types(rng):
    expected = {
        "revolute": (JointType.REVOLUTE, (0, 1)),
        "prismatic": (JointType.PRISMATIC, (1, 0)),
        "fixed": (JointType.FIXED, (0, 0)),
        "ball": (JointType.BALL, (0, 3)),
        "distance": (JointType.DISTANCE, (3, 3)),
        "d6": (JointType.FREE, (3, 3)),
    }
    for kind, (joint_type, dofs) in expected.items():
        writer = StageWriter(0.1)
        pair(writer)
        X0, X1 = random_pose(rng), random_pose(rng)
        joint = writer.joint("/j", kind, "/a", "/b", X0, X1)
        if kind == "distance":
            joint.CreateMinDistanceAttr(2.0)
            joint.CreateMaxDistanceAttr(5.0)
        builder, report = load(writer.stage)
        index = report.joints["/j"]
        assert builder.joint_type[index] == joint_type and tuple(builder.joint_dof_dim[index]) == dofs
        assert np.allclose(transform_to_matrix(builder.joint_X_p[index]), transform_to_matrix(X0), atol=SINGLE)
        assert np.allclose(transform_to_matrix(builder.joint_X_c[index]), transform_to_matrix(X1), atol=SINGLE)
        if kind == "distance":
            assert [builder.joint_min_distance[index], builder.joint_max_distance[index]] == pytest.approx([0.2, 0.5])
        assert builder.joint_type[report.base_joints["/a"]] == JointType.FREE
        model = builder.finalize(device="cpu")
        assert model.articulation_count == 1


@pytest.mark.parametrize("axis", ["X", "Y", "Z"])
def test_cones_of_spherical_joints_are_limits_of_the_swing_of_their_axis(rng, axis):
    writer = StageWriter(0.1)
    pair(writer)
    X0, X1 = random_pose(rng), random_pose(rng)
    joint = writer.joint("/j", "ball", "/a", "/b", X0, X1)
    joint.CreateAxisAttr(axis)
    joint.CreateConeAngle0LimitAttr(40.0)
    joint.CreateConeAngle1LimitAttr(40.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*bodies are not where")
        builder, report = load(writer.stage)
    index = report.joints["/j"]
    assert builder.joint_max_swing[index] == pytest.approx(np.radians(40.0), rel=1e-6)
    assert builder.joint_max_angle[index] == -1.0
    for ours, theirs in ((builder.joint_X_p, X0), (builder.joint_X_c, X1)):
        found, expected = (transform_to_matrix(x) for x in (ours[index], theirs))
        np.testing.assert_allclose(found[:3, 0], expected[:3, "XYZ".index(axis)], atol=SINGLE)
        np.testing.assert_allclose(found[:3, 3], expected[:3, 3], atol=SINGLE)


@pytest.mark.parametrize("cone", [(30.0, 50.0), (30.0, None)])
def test_cones_that_are_not_round_are_remarked(cone):
    writer = StageWriter()
    pair(writer)
    joint = writer.joint("/j", "ball", "/a", "/b")
    joint.CreateConeAngle0LimitAttr(cone[0])
    if cone[1] is not None:
        joint.CreateConeAngle1LimitAttr(cone[1])
    with pytest.warns(UsdWarning, match="cones of spherical joints"):
        builder, report = load(writer.stage)
    expected = -1.0 if cone[1] is None else np.radians(30.0)
    assert builder.joint_max_swing[report.joints["/j"]] == pytest.approx(expected)


def test_softness_of_limits_of_other_tools_is_read_for_ball_joints():
    writer = StageWriter()
    pair(writer)
    joint = writer.joint("/j", "ball", "/a", "/b")
    joint.CreateConeAngle0LimitAttr(30.0)
    joint.CreateConeAngle1LimitAttr(30.0)
    joint.GetPrim().CreateAttribute("mjc:solreflimit", Sdf.ValueTypeNames.DoubleArray).Set([0.03, 0.8])
    builder, report = load(writer.stage)
    dof = builder.joint_qd_start[report.joints["/j"]]
    assert builder.custom_attributes["mujoco:limit_rules"].values == {dof: 1}
    assert builder.custom_attributes["mujoco:solreflimit"].values[dof] == pytest.approx((0.03, 0.8))


def test_generic_joints_keep_their_free_axes(rng):
    """Locked axes are gone; limits and drives are those of their axis; any mixture starts where its bodies are."""
    writer = StageWriter(0.01, 0.001)
    linear, angular = rng.uniform(-0.3, 0.3, 2), rng.uniform(-0.8, 0.8, 2)
    X0, X1, base = random_pose(rng), random_pose(rng), random_pose(rng)
    turn = quat_multiply(quat_from_axis_angle(np.eye(3)[0], angular[0]), quat_from_axis_angle(np.eye(3)[2], angular[1]))
    moved = transform([linear[0], linear[1], 0.0], turn)
    child = transform_multiply(transform_multiply(base, X0), transform_multiply(moved, transform_inverse(X1)))
    writer.body("/a", base, {"mass": 1.0, "moments": np.ones(3)})
    writer.body("/b", child, {"mass": 1.0, "moments": np.ones(3)})
    prim = writer.joint("/j", "d6", "/a", "/b", X0, X1).GetPrim()
    for name, low, high in (("transX", -50.0, 60.0), ("transZ", 1.0, -1.0), ("rotX", -60.0, 70.0), ("rotY", 0.0, 0.0)):
        api = UsdPhysics.LimitAPI.Apply(prim, name)
        api.CreateLowAttr(low)
        api.CreateHighAttr(high)
    drive = UsdPhysics.DriveAPI.Apply(prim, "rotZ")
    drive.CreateStiffnessAttr(1000.0)
    drive.CreateMaxForceAttr(2.0e6)
    builder, report = load(writer.stage)
    index = report.joints["/j"]
    assert builder.joint_type[index] == JointType.D6 and tuple(builder.joint_dof_dim[index]) == (2, 2)
    at = builder.joint_qd_start[index]
    axes = np.array(builder.joint_axis[at : at + 4])
    assert np.array_equal(axes, np.eye(3)[[0, 1, 0, 2]])
    assert np.allclose(builder.joint_limit_lower[at : at + 4], [-0.5, -MAXVAL, np.radians(-60), -MAXVAL])
    assert np.allclose(builder.joint_limit_upper[at : at + 4], [0.6, MAXVAL, np.radians(70), MAXVAL])
    assert builder.joint_target_ke[at + 3] == pytest.approx(1000.0 * 1e-3 * 1e-4 * 180.0 / math.pi)
    assert builder.joint_effort_limit[at + 3] == pytest.approx(2.0e6 * 1e-7)
    start = builder.joint_q_start[index]
    assert np.allclose(builder.joint_q[start : start + 4], [*linear, *angular], atol=SINGLE)
    for ours, pose in zip(poses(builder, builder.joint_q), (base, child), strict=True):
        assert np.allclose(ours, pose_matrix(pose), atol=SINGLE)


def test_generic_joints_with_only_turns_can_be_turned_round(rng):
    robot = []
    for ends in (("/a", "/b"), ("/b", "/a")):
        writer = StageWriter()
        writer.body("/a", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
        writer.body("/b", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
        writer.joint("/hold", "fixed", None, "/a")
        prim = writer.joint("/j", "d6", *ends).GetPrim()
        for name in ("transX", "transY", "transZ"):
            api = UsdPhysics.LimitAPI.Apply(prim, name)
            api.CreateLowAttr(1.0)
            api.CreateHighAttr(-1.0)
        robot.append(load(writer.stage)[0])
    q = rng.uniform(-1.0, 1.0, 3)
    straight = poses(robot[0], q)[1]
    # The chain from the other end: the same turns, the last first, the other way.
    assert np.allclose(poses(robot[1], q[::-1])[1], np.linalg.inv(straight), atol=1e-12)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_drives(rng, kind):
    cases = [
        (20.0, 3.0, 0.0, JointTargetMode.POSITION),
        (20.0, 3.0, 0.7, JointTargetMode.POSITION_VELOCITY),
        (0.0, 3.0, 0.7, JointTargetMode.VELOCITY),
        (0.0, 0.0, 0.0, JointTargetMode.EFFORT),
    ]
    for ke, kd, speed, mode in cases:
        writer = StageWriter(0.01, 0.001, "Y")
        pair(writer)
        joint = writer.joint("/j", kind, "/a", "/b", axis=1)
        writer.drive(joint, ke, kd, 0.3, speed, effort=12.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder, report = load(writer.stage)
        dof = report.dofs["/j"][0]
        values = [builder.joint_target_ke[dof], builder.joint_target_kd[dof], builder.joint_target_qd[dof]]
        assert values == pytest.approx([ke, kd, speed], rel=SINGLE)
        assert builder.joint_effort_limit[dof] == pytest.approx(12.0, rel=SINGLE)
        assert builder.joint_target_mode[dof] == mode
    writer.stage.GetPrimAtPath("/j").RemoveAPI(UsdPhysics.DriveAPI, "angular" if kind == "revolute" else "linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder, report = load(writer.stage)
    assert builder.joint_target_mode[report.dofs["/j"][0]] == JointTargetMode.NONE


@pytest.mark.parametrize("units", [(1.0, 1.0), (0.01, 0.001)])
def test_acceleration_drives_carry_the_inertia_they_move(rng, units):
    """A drive of stiffness k [1/s^2] on a body with a load on a weld: k times the moment about the hinge."""
    writer = StageWriter(*units)
    arm, load_pose = random_inertial(rng), random_pose(rng)
    writer.body("/a", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    writer.body("/b", IDENTITY, arm)
    writer.body("/c", load_pose, arm)
    writer.joint("/base", "fixed", None, "/a")
    hinge = writer.joint("/hinge", "revolute", "/a", "/b", axis=2)
    writer.joint("/weld", "fixed", "/b", "/c", load_pose)
    api = UsdPhysics.DriveAPI.Apply(hinge.GetPrim(), "angular")
    api.CreateTypeAttr("acceleration")
    api.CreateStiffnessAttr(9.0)
    with pytest.warns(UsdWarning, match=r"acceleration.*force.*\(1\): /hinge"):
        builder, report = load(writer.stage)
    tree = tree_of(builder)
    moment = mass_matrix(tree, np.zeros(1))[0, 0]
    assert builder.joint_target_ke[report.dofs["/hinge"][0]] == pytest.approx(9.0 * moment, rel=1e-5)


def test_vendor_attributes(rng):
    """newton, physx and mjc names; angles of MuJoCo are radians, of the others degrees."""
    values = rng.uniform(0.1, 2.0, 6)
    rows = {
        "newton:armature": ("joint_armature", 1.0),
        "physxJoint:armature": ("joint_armature", 1.0),
        "mjc:armature": ("joint_armature", 1.0),
        "newton:friction": ("joint_friction", 1.0),
        "mjc:frictionloss": ("joint_friction", 1.0),
        "newton:damping": ("joint_damping", 180.0 / math.pi),
        "mjc:damping": ("joint_damping", 1.0),
        "mjc:stiffness": ("joint_stiffness", 1.0),
        "newton:velocityLimit": ("joint_velocity_limit", math.pi / 180.0),
        "physxJoint:maxJointVelocity": ("joint_velocity_limit", math.pi / 180.0),
        "newton:limitStiffness": ("joint_limit_ke", 180.0 / math.pi),
        "physxLimit:angular:stiffness": ("joint_limit_ke", 180.0 / math.pi),
        "physxLimit:angular:damping": ("joint_limit_kd", 180.0 / math.pi),
        "physxJointAxis:angular:staticFrictionEffort": ("joint_friction", 1.0),
    }
    for name, (column, factor) in rows.items():
        writer = StageWriter()
        writer.body("/b", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
        joint = writer.joint("/j", "revolute", None, "/b", axis=0)
        writer.number(joint.GetPrim(), name, values[0])
        builder, report = load(writer.stage)
        assert getattr(builder, column)[0] == pytest.approx(factor * values[0], rel=SINGLE), name
        assert not report.not_understood
    writer.number(joint.GetPrim(), "mjc:actuatorfrcrange:min", -7.0)
    writer.number(joint.GetPrim(), "mjc:actuatorfrcrange:max", 7.0)
    assert load(writer.stage)[0].joint_effort_limit == [7.0]


def test_dry_friction_of_physx_in_motion(rng):
    """The ratio of both efforts; a larger one in motion is none."""
    at_rest, share = rng.uniform(1.0, 3.0), rng.uniform(0.1, 0.9)
    for in_motion, ratio in ((share * at_rest, share), (1.5 * at_rest, 1.0)):
        writer = StageWriter()
        writer.body("/b", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
        joint = writer.joint("/j", "revolute", None, "/b", axis=0)
        for name, value in (("static", at_rest), ("dynamic", in_motion)):
            writer.number(joint.GetPrim(), f"physxJointAxis:angular:{name}FrictionEffort", value)
        builder, report = load(writer.stage)
        assert builder.joint_friction[0] == pytest.approx(at_rest, rel=SINGLE)
        assert builder.joint_friction_ratio[0] == pytest.approx(ratio, rel=SINGLE)
        assert not report.not_understood
        assert any("dry friction in motion" in remark for remark in report.remarks) == (ratio == 1.0)
    writer.number(joint.GetPrim(), "newton:friction", at_rest)
    builder, report = load(writer.stage)
    assert builder.joint_friction_ratio[0] == 1.0
    assert any("dry friction in motion is ignored" in remark for remark in report.remarks)


def test_vendor_attributes_of_spherical_joints(rng):
    writer = StageWriter(0.01, 0.5)
    writer.body("/b", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    prim = writer.joint("/j", "ball", None, "/b").GetPrim()
    torque = 0.5 * 0.01**2
    names = {
        "newton:armature": ("joint_armature", torque),
        "mjc:frictionloss": ("joint_friction", torque),
        "newton:damping": ("joint_damping", torque * 180.0 / math.pi),
        "mjc:stiffness": ("joint_stiffness", torque),
    }
    values = rng.uniform(0.1, 2.0, len(names))
    for name, value in zip(names, values, strict=True):
        writer.number(prim, name, value)
    builder, _ = load(writer.stage)
    for (column, factor), value in zip(names.values(), values, strict=True):
        assert getattr(builder, column) == pytest.approx([factor * value] * 3, rel=SINGLE)


def test_drives_and_limits_that_do_not_act_are_told():
    """Attributes of axes that a joint lacks, and attributes without an applied API schema."""
    writer = StageWriter()
    for name in "bcd":
        writer.body(f"/{name}", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    hinge, ball, slide = (
        writer.joint(f"/j{kind}", kind, None, f"/{name}", axis=None if kind == "ball" else 0).GetPrim()
        for name, kind in (("b", "revolute"), ("c", "ball"), ("d", "prismatic"))
    )
    UsdPhysics.DriveAPI.Apply(hinge, "rotX").CreateStiffnessAttr(5.0)
    UsdPhysics.LimitAPI.Apply(ball, "rotY").CreateLowAttr(-1.0)
    writer.number(slide, "drive:linear:physics:stiffness", 3.0)
    with pytest.warns(UsdWarning, match=r"axes.*\(2\): /jrevolute.*apiSchemas.*\(1\): /jprismatic"):
        _, report = load(writer.stage)
    assert list(report.remarks.values()) == [
        ["/jrevolute (PhysicsDriveAPI:rotX)", "/jball (PhysicsLimitAPI:rotY)"],
        ["/jprismatic (PhysicsDriveAPI:linear)"],
    ]
    assert not report.not_understood


def test_mimics(rng):
    writer = StageWriter(0.01)
    writer.body("/a", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    for number, name in enumerate("bcd"):
        writer.body(f"/{name}", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
        kind = "prismatic" if name == "d" else "revolute"
        writer.joint(f"/j{number}", kind, "/a", f"/{name}", axis=0)
    second, third = (writer.stage.GetPrimAtPath(f"/j{n}") for n in (1, 2))
    second.CreateRelationship("newton:mimicJoint").SetTargets(["/j0"])
    writer.number(second, "newton:mimicCoef0", 30.0)
    writer.number(second, "newton:mimicCoef1", 2.0)
    third.CreateRelationship("physxMimicJoint:rotX:referenceJoint").SetTargets(["/j1"])
    writer.number(third, "physxMimicJoint:rotX:gearing", -50.0)
    writer.number(third, "physxMimicJoint:rotX:offset", -10.0)
    builder, report = load(writer.stage)
    j = report.joints
    assert builder.joint_mimic_joint[j["/j1"]] == j["/j0"]
    assert builder.joint_mimic_coeffs[j["/j1"]] == pytest.approx((math.radians(30.0), 2.0))
    # The slider follows the second hinge: 10 cm + 50 cm/rad of it, and so the first one.
    assert builder.joint_mimic_joint[j["/j2"]] == j["/j0"]
    assert builder.joint_mimic_coeffs[j["/j2"]] == pytest.approx((0.1 + 0.5 * math.radians(30.0), 1.0))


def several_hinges(rng, axes, anchors) -> StageWriter:
    """Hinges between the same two bodies, as converters from MuJoCo write them."""
    writer = StageWriter()
    writer.body("/a", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    pose = random_pose(rng)
    writer.body("/b", pose, random_inertial(rng))
    writer.joint("/hold", "fixed", None, "/a")
    for number, (axis, anchor) in enumerate(zip(axes, anchors, strict=True)):
        align = Rotation.align_vectors([axis], [[0.0, 0.0, 1.0]])[0].as_quat()
        local = transform(anchor, align)
        writer.joint(f"/j{number}", "revolute", "/a", "/b", transform_multiply(pose, local), local, axis=2)
    return writer


@pytest.mark.parametrize("square", [True, False])
def test_hinges_between_the_same_bodies_follow_each_other(rng, square):
    """X = X_rest A1 A2 A3 with turns about axes fixed in the second body at rest (MuJoCo's order)."""
    axes = Rotation.random(None, rng).as_matrix().T
    if not square:
        axes = axes + 0.3 * rng.normal(size=(3, 3))
        axes /= np.linalg.norm(axes, axis=1)[:, None]
    anchors = [np.array([0.1, 0.2, 0.3])] * 3 if square else rng.normal(size=(3, 3)) * 0.2
    writer = several_hinges(rng, axes, anchors)
    builder, report = load(writer.stage)
    q = rng.uniform(-1.0, 1.0, 3)
    values = np.zeros(builder.joint_coord_count)
    for number in range(3):
        values[report.dofs[f"/j{number}"][0]] = q[number]
    expected = pose_matrix(builder.body_q[report.bodies["/b"]])
    for axis, anchor, angle in zip(axes, anchors, q, strict=True):
        turn = transform(anchor, quat_from_axis_angle(axis, angle))
        expected = expected @ pose_matrix(transform_multiply(turn, transform(-anchor)))
    ours = poses(builder, values)[report.bodies["/b"]]
    assert np.allclose(ours, expected, atol=2e-5 if square else SINGLE)  # D6 axes are made square
    assert (len({report.joints[f"/j{n}"] for n in range(3)}) == 1) == square
    builder.finalize(device="cpu")


def test_two_hinges_of_a_door_close_a_loop():
    writer = StageWriter()
    pair(writer)
    for number, height in enumerate((0.0, 1.0)):
        frame = transform([0.0, 0.0, height])
        writer.joint(f"/hinge{number}", "revolute", "/a", "/b", frame, frame, axis=2)
    with pytest.warns(UsdWarning, match=r"loops.*\(1\): /hinge1"):
        builder, report = load(writer.stage)
    assert builder.joint_articulation[report.joints["/hinge1"]] == -1


@pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")
@pytest.mark.parametrize("rooted", ["", "/b", "/a /b"])
@pytest.mark.slow
def test_a_linkage_with_two_hinges_on_the_world_is_one_articulation(rng, rooted):
    """Its two trees are connected by the loop joint, so that the solver closes the loop; two ArticulationRootAPIs keep them apart."""
    writer = StageWriter()
    places = {"/a": (0.0, 0.0, 0.5), "/rod": (0.3, 0.0, 1.0), "/b": (0.6, 0.0, 0.5)}
    for path, place in places.items():
        writer.body(path, transform(place), random_inertial(rng))
    for path in rooted.split():
        UsdPhysics.ArticulationRootAPI.Apply(writer.stage.GetPrimAtPath(path))
    ends = {"/a": (0.0, 0.0, 0.5), "/b": (0.0, 0.0, 0.5)}
    for path, end in ends.items():
        writer.joint(
            f"/ground{path[1:]}",
            "revolute",
            None,
            path,
            transform(np.array(places[path]) - end),
            transform([-x for x in end]),
            axis=1,
        )
    writer.joint("/top_a", "revolute", "/a", "/rod", transform(ends["/a"]), transform([-0.3, 0.0, 0.0]), axis=1)
    writer.joint("/top_b", "revolute", "/b", "/rod", transform(ends["/b"]), transform([0.3, 0.0, 0.0]), axis=1)
    # rod and /b are not in one tree
    UsdPhysics.Joint(writer.stage.GetPrimAtPath("/top_b")).CreateExcludeFromArticulationAttr(True)
    builder, _ = load(writer.stage)
    assert builder.articulation_count == (2 if rooted == "/a /b" else 1)
    model = builder.finalize("cpu")
    if rooted == "/a /b":
        with pytest.raises(ValueError, match="connects the articulations"):
            SolverFeatherstone(model)
        return
    assert builder.articulation_label[0] == (rooted or "/a_articulation")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_qd = rng.normal(size=model.joint_dof_count)
    for _ in range(100):
        solver.step(state, state, dt=1.0e-3)
    assert np.abs(state.joint_q.numpy()).max() > 1e-4
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1.0e-4


@pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")
@pytest.mark.parametrize("kind", ["revolute", "ball"])
def test_joints_that_close_loops_have_no_forces_of_the_builders_defaults(kind):
    writer = StageWriter()
    pair(writer)
    for number, name in enumerate((kind, "revolute")):
        frame = transform([0.0, 0.0, float(number)])
        writer.joint(f"/hinge{number}", name, "/a", "/b", frame, frame, axis=2)
        if number == 0:
            UsdPhysics.Joint(writer.stage.GetPrimAtPath("/hinge0")).CreateExcludeFromArticulationAttr(True)
    builder = ModelBuilder()
    builder.default_joint_cfg = JointDofConfig(target_ke=5.0, target_kd=1.0, friction=0.1, damping=0.2)
    report = builder.add_usd(writer.stage)
    loop, tree = (builder.joint_qd_start[report.joints[f"/hinge{i}"]] for i in range(2))
    assert builder.joint_articulation[report.joints["/hinge0"]] == -1
    for name in ("target_ke", "target_kd", "friction", "damping"):
        values = getattr(builder, f"joint_{name}")
        assert values[loop] == 0.0 and values[tree] > 0.0


@pytest.mark.filterwarnings("ignore:LoadUsdPhysicsFromRange:DeprecationWarning")
def test_frames_and_places_are_those_that_usd_physics_parses(rng):
    """Scaled bodies, and joints with a prim below a body or without a body, against the parser of UsdPhysics."""
    writer = StageWriter()
    for name in "ab":
        body = writer.body(f"/{name}", random_pose(rng), {"mass": 1.0, "moments": np.ones(3)})
        UsdGeom.Xformable(body).AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*rng.uniform(0.5, 2.0, 3)))
        writer.shape(f"/{name}/c", "Cube", random_pose(rng), size=0.3)
    grip = UsdGeom.Xform.Define(writer.stage, "/b/grip")
    set_pose(grip, random_pose(rng))
    kinds = {"/j0": ("ball", "/a", "/b"), "/j1": ("revolute", "/b/grip", None), "/j2": ("fixed", "/a/c", "/b/grip")}
    for path, (kind, first, second) in kinds.items():
        writer.joint(path, kind, first, second, random_pose(rng), random_pose(rng))
        UsdPhysics.Joint(writer.stage.GetPrimAtPath(path)).CreateExcludeFromArticulationAttr(True)
    parsed = UsdPhysics.LoadUsdPhysicsFromRange(writer.stage, ["/"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder, report = load(writer.stage)
    count = 0
    for object_type, (paths, descriptions) in parsed.items():
        for path, description in zip(paths, descriptions, strict=True):
            if object_type == UsdPhysics.ObjectType.RigidBody:
                ours = builder.body_q[report.bodies[str(path)]]
                theirs = [(description.position, description.rotation)]
                frames = [ours]
            elif hasattr(description, "localPose0Position"):
                index = report.joints[str(path)]
                frames = [builder.joint_X_p[index], builder.joint_X_c[index]]
                theirs = [
                    (description.localPose0Position, description.localPose0Orientation),
                    (description.localPose1Position, description.localPose1Orientation),
                ]
                if str(description.body1 or "") == "":
                    frames.reverse()  # the world is always the parent
            elif object_type == UsdPhysics.ObjectType.CubeShape:
                frames = [builder.shape_transform[report.shapes[str(path)][0]]]
                theirs = [(description.localPos, description.localRot)]
            else:
                continue
            for frame, (place, turn) in zip(frames, theirs, strict=True):
                count += 1
                assert np.allclose(frame[:3], place, atol=1e-5), path  # they multiply in float32
                assert abs(np.dot(frame[3:], [*turn.GetImaginary(), turn.GetReal()])) == pytest.approx(1.0, abs=1e-5), (
                    path
                )
    assert count == 2 + 2 * 3 + 2
