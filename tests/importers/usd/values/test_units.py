"""USD stages in any units, axes and frames give the same model."""

import math

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from newton_like.geometry.transforms import quat_between, transform_multiply, transform_to_matrix
from newton_like.importers.usd.values.units import Units, placement
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.columns import COLUMNS, INT_SHAPES
from tests.support.usd_stages import (
    SINGLE,
    StageWriter,
    load,
    random_inertial,
    random_pose,
    random_robot,
    set_pose,
    write_robot,
)

UNITS = [(0.01, 0.001, "Y"), (1.0, 1.0, "Z"), (0.0254, 0.45359237, "Y")]
"""Centimetres and grams, SI, inches and pounds."""


def assert_same(first: ModelBuilder, second: ModelBuilder, tolerance: float) -> None:
    """Every column is the same, quaternions up to their sign."""
    for column in COLUMNS:
        a, b = getattr(first, column.name), getattr(second, column.name)
        assert len(a) == len(b), column.name
        if column.type in INT_SHAPES or column.type == "object" or not a:
            assert a == b, column.name
            continue
        a, b = (np.array(values, dtype=np.float64).reshape(len(values), -1) for values in (a, b))
        if column.type == "transform":
            b[:, 3:] *= np.sign((a[:, 3:] * b[:, 3:]).sum(axis=1))[:, None]
        # Entries of a vector or matrix are rounded with the largest of them, lengths and angles with those on the way.
        floor = 1.0 if column.type in ("transform", "vec3") or column.kind == "coord" else 0.0
        slack = tolerance * np.maximum(floor, np.abs(a).max(axis=1))
        wrong = np.abs(a - b).max(axis=1) > slack + 1e-12
        assert not wrong.any(), (column.name, a[wrong][0], b[wrong][0])


@pytest.mark.parametrize(("meters", "kilograms", "up"), UNITS)
def test_a_robot_is_the_same_in_all_units_and_axes(rng, meters, kilograms, up):
    robot = random_robot(rng, 8)
    base, _ = load(write_robot(robot).stage)
    other, report = load(write_robot(robot, meters, kilograms, up).stage)
    assert_same(base, other, SINGLE)
    assert report.meters_per_unit == meters and report.kilograms_per_unit == pytest.approx(kilograms, rel=1e-15)
    # The robot agrees with its description.
    for number, (body, joint) in enumerate(zip(robot["bodies"], robot["joints"], strict=True)):
        index = report.bodies[f"/Robot/{body['name']}"]
        turn = Rotation.from_quat(body["axes"]).as_matrix()
        assert other.body_mass[index] == pytest.approx(body["mass"], rel=SINGLE)
        assert np.allclose(other.body_com[index], body["com"], rtol=0, atol=SINGLE)
        assert np.allclose(other.body_inertia[index], turn @ np.diag(body["moments"]) @ turn.T, atol=SINGLE)
        assert np.allclose(transform_to_matrix(other.body_q[index]), transform_to_matrix(body["pose"]), atol=SINGLE)
        if joint["kind"] == "fixed":
            continue
        dof = report.dofs[f"/Robot/joint_{number}"][0]
        for name, key in (
            ("limit_lower", "lower"),
            ("limit_upper", "upper"),
            ("effort_limit", "effort"),
            ("velocity_limit", "velocity"),
            ("friction", "friction"),
            ("damping", "damping"),
            ("armature", "armature"),
            ("target_ke", "ke"),
            ("target_kd", "kd"),
        ):
            assert getattr(other, f"joint_{name}")[dof] == pytest.approx(joint[key], rel=SINGLE), name
        at = other.joint_q_start[report.joints[f"/Robot/joint_{number}"]]
        assert other.joint_q[at] == pytest.approx(joint["q"], abs=SINGLE)
        assert other.joint_target_q[at] == pytest.approx(joint["target"], abs=SINGLE)


@pytest.mark.parametrize(("meters", "kilograms", "up"), UNITS)
def test_shapes_materials_margins_gravity_and_velocities_have_units(rng, meters, kilograms, up):
    sizes = rng.uniform(0.1, 0.5, 8)
    pose, local, velocity, spin = random_pose(rng), random_pose(rng), rng.normal(size=3), rng.normal(size=3)
    gravity, density = rng.normal(size=3) * 5.0, rng.uniform(300, 3000)
    writer = StageWriter(meters, kilograms, up)
    writer.scene(gravity=gravity)
    body = writer.body("/box", pose)
    api = UsdPhysics.RigidBodyAPI(body)
    api.CreateVelocityAttr(Gf.Vec3f(*(velocity / meters).tolist()))
    api.CreateAngularVelocityAttr(Gf.Vec3f(*np.degrees(spin).tolist()))
    writer.inertial(body, {"density": density})
    shape = writer.shape("/box/c", "Cylinder", local, radius=sizes[0], height=sizes[1], axis="Z")
    writer.number(shape, "newton:contactMargin", sizes[2] / meters)
    writer.number(shape, "newton:contactGap", sizes[3] / meters)
    builder, report = load(writer.stage)
    (index,) = report.shapes["/box/c"]
    assert np.allclose(builder.gravity, gravity, rtol=SINGLE)
    assert np.allclose(builder.shape_scale[index], [sizes[0], 0.5 * sizes[1], 0.0], rtol=SINGLE)
    assert np.allclose([builder.shape_margin[index], builder.shape_gap[index]], sizes[2:4], rtol=SINGLE)
    assert np.allclose(transform_to_matrix(builder.shape_transform[index]), transform_to_matrix(local), atol=SINGLE)
    assert builder.body_mass[0] == pytest.approx(density * math.pi * sizes[0] ** 2 * sizes[1], rel=SINGLE)
    turned = Rotation.from_quat(pose[3:]).apply([velocity, spin]).reshape(6)
    assert np.allclose(builder.body_qd[0], turned, atol=SINGLE)
    assert np.allclose(builder.joint_qd, turned, atol=SINGLE)


def test_units_are_powers_of_metres_and_kilograms(rng):
    meters, kilograms = rng.uniform(0.001, 10.0, 2)
    units = Units(meters, kilograms)
    assert units.density == pytest.approx(kilograms / meters**3) and units.inertia == pytest.approx(
        kilograms * meters**2
    )
    assert units.linear.gain == pytest.approx(kilograms)  # force over length: the lengths cancel
    assert units.angular.gain == pytest.approx(kilograms * meters**2 * 180.0 / math.pi)
    assert units.linear.inertia == kilograms and units.angular.radian == pytest.approx(kilograms * meters**2)


def test_missing_metadata_are_those_of_usd():
    stage = Usd.Stage.CreateInMemory()
    prim = UsdGeom.Cube.Define(stage, "/c").GetPrim()
    UsdPhysics.CollisionAPI.Apply(prim)
    with pytest.warns(UserWarning, match="metersPerUnit"):
        builder, report = load(stage)
    assert report.up_axis == "Y" and report.meters_per_unit == 0.01 and report.kilograms_per_unit == 1.0
    assert np.allclose(builder.shape_scale[0], 0.01)


OPS = {
    "translate": lambda x, v: x.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*v)),
    "scale": lambda x, v: x.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*(np.sign(v) * (0.5 + abs(v))))),
    "uniform": lambda x, v: x.AddScaleOp(UsdGeom.XformOp.PrecisionDouble, "even").Set(Gf.Vec3d(0.3 + abs(v[0]))),
    "rotateX": lambda x, v: x.AddRotateXOp(UsdGeom.XformOp.PrecisionDouble).Set(90.0 * v[0]),
    "rotateZYX": lambda x, v: x.AddRotateZYXOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*(90.0 * v))),
    "rotateXZY": lambda x, v: x.AddRotateXZYOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*(90.0 * v))),
    "orient": lambda x, v: x.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(
        Gf.Quatd(float(v[0]), *map(float, v)).GetNormalized()
    ),
    "transform": lambda x, v: x.AddTransformOp().Set(
        Gf.Matrix4d(Gf.Rotation(Gf.Vec3d(*v), 70.0 * float(v[1])), Gf.Vec3d(*v[::-1]))
    ),
}


def random_ops(rng, prim, count: int, allowed=tuple(OPS)) -> None:
    xformable = UsdGeom.Xformable(prim.GetPrim())
    xformable.ClearXformOpOrder()
    for name in rng.choice(allowed, size=count, replace=False):
        OPS[str(name)](xformable, rng.uniform(-1.0, 1.0, 3))


@pytest.mark.filterwarnings("ignore:.*sheared")
@pytest.mark.parametrize("case", range(12))
def test_points_of_meshes_are_where_usd_has_them(rng, case):
    """Under any order of xform ops, uneven, negative and sheared, on body and mesh."""
    meters, up = rng.uniform(0.01, 2.0), "YZ"[case % 2]
    writer = StageWriter(meters, 1.0, up)
    UsdGeom.Xform.Define(writer.stage, "/top")
    body = UsdGeom.Xform.Define(writer.stage, "/top/body")
    between = UsdGeom.Xform.Define(writer.stage, "/top/body/between")
    mesh = UsdGeom.Mesh.Define(writer.stage, "/top/body/between/mesh")
    random_ops(rng, writer.stage.GetPrimAtPath("/top"), 3)
    for prim in (body, between, mesh):
        random_ops(rng, prim, int(rng.integers(1, 4)))
    UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    points = rng.normal(size=(4, 3)).astype(np.float32)
    mesh.CreatePointsAttr([Gf.Vec3f(*map(float, p)) for p in points])
    mesh.CreateFaceVertexCountsAttr([3, 3, 3, 3])
    mesh.CreateFaceVertexIndicesAttr([0, 2, 1, 0, 1, 3, 1, 2, 3, 2, 0, 3])
    xform = random_pose(rng)
    builder, report = load(writer.stage, xform=xform)
    (index,) = report.shapes["/top/body/between/mesh"]
    assert builder.shape_body[index] == 0
    local = builder.shape_source[index].vertices * builder.shape_scale[index]
    pose = transform_to_matrix(transform_multiply(builder.body_q[0], builder.shape_transform[index]))
    ours = local @ pose[:3, :3].T + pose[:3, 3]
    matrix = np.array(UsdGeom.Xformable(mesh.GetPrim()).ComputeLocalToWorldTransform(Usd.TimeCode.Default()))
    world = meters * (points @ matrix[:3, :3] + matrix[3, :3])
    turn = Rotation.from_quat(quat_between(np.eye(3)["XYZ".index(up)], (0, 0, 1))).as_matrix()
    theirs = world @ turn.T @ Rotation.from_quat(xform[3:]).as_matrix().T + xform[:3]
    # Some ten products of double numbers of size 10.
    assert np.allclose(ours, theirs, atol=1e-9 * (1.0 + np.abs(theirs).max()))
    assert np.allclose(report.stage_pose[:3], xform[:3])


@pytest.mark.parametrize("mirrored", [False, True])
def test_placement_is_that_of_gf_transform(rng, mirrored):
    """Includes left-handed frames: UsdPhysics reads frames with GfTransform."""
    scale = rng.uniform(0.2, 3.0, 3) * ([-1.0, 1.0, 1.0] if mirrored else 1.0)
    place, turn = rng.normal(size=3), Rotation.random(None, rng).as_quat()
    matrix = Gf.Matrix4d(1.0).SetScale(Gf.Vec3d(*scale)) * Gf.Matrix4d(
        Gf.Rotation(Gf.Quatd(float(turn[3]), *map(float, turn[:3]))), Gf.Vec3d(*place)
    )
    theirs, ours = Gf.Transform(matrix), placement(matrix, 1.0)
    q = theirs.GetRotation().GetQuat()
    assert ours.mirrored == mirrored and not ours.sheared
    assert np.allclose(ours.scale, theirs.GetScale(), atol=1e-9)
    assert abs(np.dot([*q.GetImaginary(), q.GetReal()], ours.pose[3:])) == pytest.approx(1.0, abs=1e-12)


def test_a_placement_needs_a_solid_frame():
    assert placement(Gf.Matrix4d(0.0), 1.0) is None
    assert placement(Gf.Matrix4d(1.0).SetScale(Gf.Vec3d(1.0, 0.0, 1.0)), 1.0) is None
    assert placement(Gf.Matrix4d(1.0).SetTranslate(Gf.Vec3d(math.inf, 0.0, 0.0)), 1.0) is None


def test_scale_of_a_body_scales_its_centre_its_shapes_and_its_joints(rng):
    """A body with a scale is the body of that size without one."""
    scale = rng.uniform(0.5, 2.0, 3)
    inertial = random_inertial(rng)
    pose, spot = random_pose(rng), rng.normal(size=3)
    writer = StageWriter()
    for path, size in (("/scaled", scale), ("/plain", np.ones(3))):
        body = writer.body(path, pose, {**inertial, "com": inertial["com"] / size})
        if path == "/scaled":
            UsdGeom.Xformable(body).AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*scale))
        cube = writer.shape(f"{path}/cube", "Cube", size=1.0)
        set_pose(UsdGeom.Xformable(cube), [*(spot / size), 0, 0, 0, 1])
        UsdGeom.Xformable(cube).AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*(0.7 / size)))
        joint = UsdPhysics.RevoluteJoint.Define(writer.stage, f"{path}_joint")
        joint.CreateBody1Rel().SetTargets([path])
        joint.CreateLocalPos1Attr(Gf.Vec3f(*(spot / size).tolist()))
        joint.CreateLocalPos0Attr(Gf.Vec3f(*Rotation.from_quat(pose[3:]).apply(spot).tolist()) + Gf.Vec3f(*pose[:3]))
        joint.CreateLocalRot0Attr(Gf.Quatf(float(pose[6]), *map(float, pose[3:6])))
    builder, report = load(writer.stage)
    one, two = report.bodies["/scaled"], report.bodies["/plain"]
    for name in ("body_com", "body_inertia", "body_q", "body_mass"):
        assert np.allclose(getattr(builder, name)[one], getattr(builder, name)[two], atol=SINGLE), name
    for name in ("joint_X_c", "joint_X_p"):
        values = getattr(builder, name)
        assert np.allclose(values[report.joints["/scaled_joint"]], values[report.joints["/plain_joint"]], atol=SINGLE)
    for name in ("shape_scale", "shape_transform"):
        values = getattr(builder, name)
        assert np.allclose(
            values[report.shapes["/scaled/cube"][0]], values[report.shapes["/plain/cube"][0]], atol=SINGLE
        )
