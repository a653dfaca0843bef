"""Export to USD: importing gives the same model, and USD's own readers find the properties of the model."""

import warnings

import numpy as np
import pytest
import warp as wp

from tests.support.paths import LARGE, ROBOTS

pytest.importorskip("pxr")
from pxr import Usd, UsdGeom, UsdPhysics, UsdShade
from scipy.spatial.transform import Rotation

from newton_like import Axis, BodyFlags, JointDofConfig, JointType, ModelBuilder, eval_fk
from newton_like.geometry.transforms import transform_multiply, transform_to_matrix
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.solvers import SolverFeatherstone
from newton_like.usd import write
from tests.support.random_trees import random_transform
from tests.support.reference import Tree, mass_matrix
from tests.support.usd_models import SINGLE, add_random_shapes, differences, random_cfg, random_scene

ROBOT_FILES = sorted(ROBOTS.rglob("*.urdf"))
pytestmark = pytest.mark.filterwarnings("ignore:.*target gains are set, but target_mode is NONE")

INITIAL = ("body_q", "body_qd")
"""Arrays that are compared after forward kinematics: bodies in a file have the poses of the joint coordinates, not those of the builder."""


def read(path, **options):
    """The model of a file and the importer's report; every remark is an error, but for those on joints apart."""
    builder = ModelBuilder(up_axis=options.pop("up_axis", Axis.Z))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = builder.add_usd(str(path), **options)
    assert report.not_understood == {}
    return builder, report


def poses(model) -> np.ndarray:
    state = model.state()
    eval_fk(model, state.joint_q, state.joint_qd, state)
    return state.body_q.numpy().astype(float).reshape(-1, 7)


def assert_same_poses(a, b, tolerance):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    b = np.concatenate([b[:, :3], b[:, 3:] * np.sign(np.sum(a[:, 3:] * b[:, 3:], axis=1, keepdims=True))], axis=1)
    np.testing.assert_allclose(b, a, atol=tolerance * max(1.0, np.abs(a[:, :3]).max()))


def world_matrix(stage, path, time=None) -> np.ndarray:
    """Column-vector matrix from a prim to the stage, by USD."""
    time = Usd.TimeCode.Default() if time is None else Usd.TimeCode(time)
    return np.array(UsdGeom.XformCache(time).GetLocalToWorldTransform(stage.GetPrimAtPath(path))).T


def complaints(path) -> list[str]:
    """The results of the checks of the command usdchecker."""
    UsdValidation = pytest.importorskip("pxr.UsdValidation")
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) > 10
    stage = Usd.Stage.Open(str(path))
    return [f"{e.GetName()}: {e.GetMessage()}" for e in UsdValidation.ValidationContext(validators).Validate(stage)]


@pytest.mark.parametrize(
    ("suffix", "up_axis"),
    [
        (".usda", Axis.Z),
        (".usdc", Axis.Y),
        *(
            pytest.param(*x, marks=pytest.mark.slow)
            for x in ((".usd", Axis.Z), (".usdc", Axis.Z), (".usda", Axis.Y), (".usd", Axis.Y))
        ),
    ],
)
def test_any_model_comes_back_field_by_field(rng, tmp_path, suffix, up_axis):
    model = random_scene(rng, up_axis=up_axis).finalize()
    path = tmp_path / f"scene{suffix}"
    write(model, path)
    builder, _ = read(path, up_axis=up_axis)
    other = builder.finalize()
    assert differences(model, other, ignore=INITIAL) == {}
    # A chain of ten joints multiplies ten anchors.
    assert_same_poses(poses(model), poses(other), 10.0 * SINGLE)


@pytest.mark.slow
def test_what_comes_back_is_written_the_same_again(rng, tmp_path):
    """Labels, indices and order survive any number of passes."""
    model = random_scene(rng).finalize()
    write(model, tmp_path / "first.usda", root="scene")
    builder, _ = read(tmp_path / "first.usda")
    other = builder.finalize()
    write(other, tmp_path / "second.usda", root="scene")
    builder, _ = read(tmp_path / "second.usda")
    assert differences(other, builder.finalize(), ignore=INITIAL) == {}


def test_doubles_come_back_in_single_precision(rng, tmp_path):
    model = random_scene(rng, loops=False).finalize(dtype=wp.float64)
    write(model, tmp_path / "scene.usda")
    builder, _ = read(tmp_path / "scene.usda")
    assert differences(model, builder.finalize(dtype=wp.float64), ignore=INITIAL) == {}


@pytest.mark.slow
@pytest.mark.skipif(not ROBOTS.is_dir(), reason="no ../shared/example-robot-data beside the repository")
@pytest.mark.parametrize(
    ("number", "file"),
    [pytest.param(i, file, marks=pytest.mark.slow if file.stem in LARGE else ()) for i, file in enumerate(ROBOT_FILES)],
    ids=lambda value: getattr(value, "stem", ""),
)
def test_robots_come_back_field_by_field(tmp_path, number, file):
    """Every robot, held and free in turn. Numbers of float32 attributes are off by half of 1.2e-7 of themselves, products of a
    few by some 1e-7; the mass matrix and where drives take the robot follow."""
    floating = bool(number % 2)
    source = ModelBuilder()
    source.default_joint_cfg.target_ke, source.default_joint_cfg.target_kd = 300.0, 20.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source.add_urdf(file, floating=floating, enable_self_collisions=not floating)
        source.add_ground_plane()
        model = source.finalize("cpu", dtype=wp.float64)
    write(model, tmp_path / "robot.usdc")
    assert complaints(tmp_path / "robot.usdc") == []
    builder, report = read(tmp_path / "robot.usdc")
    assert report.remarks == {}
    other = builder.finalize("cpu", dtype=wp.float64)
    assert differences(model, other, tolerance=3.0e-7) == {}
    matrices = [mass_matrix(Tree.from_model(m), m.joint_q.numpy()) for m in (model, other)]
    np.testing.assert_allclose(matrices[1], matrices[0], rtol=0, atol=3.0e-7 * np.abs(matrices[0]).max(initial=0.0))


@pytest.mark.skipif(not ROBOTS.is_dir(), reason="no ../shared/example-robot-data beside the repository")
def test_robots_that_come_back_move_alike(rng, tmp_path):
    source = ModelBuilder()
    source.default_joint_cfg.target_ke, source.default_joint_cfg.target_kd = 300.0, 20.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source.add_urdf(next(ROBOTS.rglob("panda.urdf")), floating=False, hide_visuals=True)
    model = source.finalize("cpu", dtype=wp.float64)
    write(model, tmp_path / "robot.usdc")
    start = model.joint_q.numpy() + rng.uniform(-0.3, 0.3, model.joint_coord_count)
    ends = []
    for robot in (model, read(tmp_path / "robot.usdc")[0].finalize("cpu", dtype=wp.float64)):
        state, control = robot.state(), robot.control()
        state.joint_q.assign(start)
        solver = SolverFeatherstone(robot, evaluator="general", width=8, unsupported_contacts="ignore")
        for _ in range(100):
            solver.step(state, state, control, None, 1.0 / 480.0)
        ends.append(state.joint_q.numpy())
    assert np.abs(ends[0] - start).max() > 0.01
    # Attributes agree to 1e-7; limits and drives of tens of 1/s leave no room for errors to grow in 0.2 s.
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1.0e-6)


def test_stages_pass_the_checks_of_usd(rng, tmp_path):
    source = random_scene(rng, loops=False)
    source.gravity = None
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(source, 2, spacing=(3.0, 0.0, 0.0))
    for name, model in (("one", random_scene(rng).finalize()), ("worlds", builder.finalize())):
        write(model, tmp_path / f"{name}.usda")
        assert complaints(tmp_path / f"{name}.usda") == []


def test_points_and_rods_pass_the_checks_too(rng, tmp_path):
    """In UsdPhysics a moment of 0 means "not given". For a point mass other tools use its colliders, and the report has a remark."""
    builder = ModelBuilder()
    base = builder.add_link(mass=1.0, inertia=np.eye(3))
    joints = [builder.add_joint_free(base)]
    # exact in float32, so that the turned rod has no moment about itself but for rounding
    for inertia in (np.zeros((3, 3)), np.diag([0.0, 1.0, 1.0]), [[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]):
        joints.append(builder.add_joint_fixed(base, builder.add_link(mass=rng.uniform(0.5, 2.0), inertia=inertia)))
    builder.add_articulation(joints)
    model = builder.finalize()
    report = write(model, tmp_path / "thin.usda")
    assert complaints(tmp_path / "thin.usda") == []
    assert list(report.remarks.values()) == [[model.body_label[1]]]
    assert differences(model, read(tmp_path / "thin.usda")[0].finalize(), ignore=INITIAL) == {}


def test_the_checks_of_usd_find_what_is_wrong(tmp_path):
    """The checker of the test above is not asleep."""
    (tmp_path / "bad.usda").write_text(
        '#usda 1.0\ndef Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI"])\n{\n'
        'double3 xformOp:scale = (1, 2, 3)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n}'
    )
    assert any("NonUniformScale" in text for text in complaints(tmp_path / "bad.usda"))


def test_usd_sees_the_bodies_where_the_joints_hold_them(rng, tmp_path):
    """Without our importer: poses of prims, and the two frames of every joint, which differ by the joint's motion."""
    model = random_scene(rng, loops=False).finalize()
    report = write(model, tmp_path / "scene.usda")
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    body_q = poses(model)
    for path, pose in zip(report.bodies, body_q, strict=True):
        np.testing.assert_allclose(world_matrix(stage, path), transform_to_matrix(pose), atol=SINGLE * 10.0)
    checked = set()
    told = {path for labels in report.remarks.values() for path in labels}
    for j, path in enumerate(report.joints):
        kind = JointType(int(model.joint_type.numpy()[j]))
        if not path or kind not in (
            JointType.FIXED,
            JointType.REVOLUTE,
            JointType.PRISMATIC,
            JointType.D6,
            JointType.BALL,
        ):
            continue
        if model.joint_label[j] in told and kind == JointType.D6:
            continue  # axes that UsdPhysics cannot hold, and write said so
        checked.add(kind)
        joint = UsdPhysics.Joint(stage.GetPrimAtPath(path))
        frames = []
        for body, position, rotation in (
            (joint.GetBody0Rel(), joint.GetLocalPos0Attr(), joint.GetLocalRot0Attr()),
            (joint.GetBody1Rel(), joint.GetLocalPos1Attr(), joint.GetLocalRot1Attr()),
        ):
            q = rotation.Get()
            local = np.array([*position.Get(), *q.GetImaginary(), q.GetReal()], dtype=float)
            frames.append(world_matrix(stage, body.GetTargets()[0]) @ transform_to_matrix(local))
        motion = np.linalg.inv(frames[0]) @ frames[1]
        expected = np.eye(4)
        prim = joint.GetPrim()
        if kind in (JointType.REVOLUTE, JointType.PRISMATIC):
            axis = np.eye(3)["XYZ".index(prim.GetAttribute("physics:axis").Get())]
            if kind == JointType.REVOLUTE:
                angle = prim.GetAttribute("state:angular:physics:position").Get()
                expected[:3, :3] = Rotation.from_rotvec(np.radians(angle) * axis).as_matrix()
            else:
                expected[:3, 3] = prim.GetAttribute("state:linear:physics:position").Get() * axis
        elif kind == JointType.BALL:
            start = model.joint_q_start.numpy()[j]
            expected[:3, :3] = Rotation.from_quat(model.joint_q.numpy()[start : start + 4]).as_matrix()
        elif kind == JointType.D6:
            for i, name in enumerate(("transX", "transY", "transZ")):
                value = prim.GetAttribute(f"state:{name}:physics:position")
                expected[i, 3] = value.Get() if value else 0.0
            for axis, name in zip(np.eye(3), ("rotX", "rotY", "rotZ"), strict=True):
                value = prim.GetAttribute(f"state:{name}:physics:position")
                angle = np.radians(value.Get()) if value else 0.0
                expected[:3, :3] = expected[:3, :3] @ Rotation.from_rotvec(angle * axis).as_matrix()
        # Frames of bodies some metres from the origin, in float32.
        np.testing.assert_allclose(motion, expected, atol=3.0e-5, err_msg=path)
    assert len(checked) >= 3


def test_usd_sees_masses_limits_drives_and_materials(rng, tmp_path):
    model = random_scene(rng).finalize()
    report = write(model, tmp_path / "scene.usda")
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    for body, path in enumerate(report.bodies):
        prim = stage.GetPrimAtPath(path)
        api = UsdPhysics.MassAPI(prim)
        q = api.GetPrincipalAxesAttr().Get()
        turn = Rotation.from_quat([*q.GetImaginary(), q.GetReal()]).as_matrix()
        inertia = turn @ np.diag(api.GetDiagonalInertiaAttr().Get()) @ turn.T
        expected = model.body_inertia.numpy()[body]
        np.testing.assert_allclose(inertia, expected, atol=SINGLE * np.abs(expected).max())
        np.testing.assert_allclose(api.GetMassAttr().Get(), model.body_mass.numpy()[body], rtol=SINGLE)
        np.testing.assert_allclose(api.GetCenterOfMassAttr().Get(), model.body_com.numpy()[body], rtol=SINGLE)
        kinematic = bool(model.body_flags.numpy()[body] & BodyFlags.KINEMATIC)
        assert UsdPhysics.RigidBodyAPI(prim).GetKinematicEnabledAttr().Get() == kinematic
    shapes = 0
    for shape, path in enumerate(report.shapes):
        prim = stage.GetPrimAtPath(path)
        if UsdPhysics.CollisionAPI(prim):
            material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
            mu = UsdPhysics.MaterialAPI(material.GetPrim()).GetDynamicFrictionAttr().Get()
            np.testing.assert_allclose(mu, model.shape_material_mu.numpy()[shape], rtol=SINGLE)
            shapes += 1
    assert shapes > 5


def test_a_drive_of_usd_pushes_as_the_model_does(tmp_path):
    """Gains are per degree; drives in a mode without targets have no gains in the file."""
    builder = ModelBuilder()
    modes = ["POSITION", "VELOCITY", "POSITION_VELOCITY", "EFFORT"]
    joints = []
    for i, mode in enumerate(modes):
        link = builder.add_link(mass=1.0, inertia=np.eye(3))
        cfg = JointDofConfig(
            axis="y",
            target_ke=180.0,
            target_kd=90.0,
            target_q=0.5,
            target_qd=2.0,
            effort_limit=7.0,
            limit_lower=-1.0,
            actuator_mode=i + 1,
        )
        joints.append(builder.add_joint_revolute(link - 1, link, axis=cfg, label=mode))
    builder.add_articulation(joints)
    report = write(builder.finalize(), tmp_path / "drives.usda")
    stage = Usd.Stage.Open(str(tmp_path / "drives.usda"))
    values = []
    for path in report.joints:
        prim = stage.GetPrimAtPath(path)
        drive = UsdPhysics.DriveAPI(prim, "angular")
        get = (drive.GetStiffnessAttr, drive.GetDampingAttr, drive.GetTargetPositionAttr, drive.GetTargetVelocityAttr)
        values.append([f().Get() for f in get])
        assert drive.GetMaxForceAttr().Get() == 7.0
        joint = UsdPhysics.RevoluteJoint(prim)
        np.testing.assert_allclose(joint.GetLowerLimitAttr().Get(), np.degrees(-1.0), rtol=SINGLE)
        assert joint.GetUpperLimitAttr().Get() == np.inf
    q, qd = np.degrees(0.5), np.degrees(2.0)
    ke, kd = np.pi, 0.5 * np.pi
    np.testing.assert_allclose(values, [[ke, kd, q, 0], [0, kd, 0, qd], [ke, kd, q, qd], [0, 0, 0, 0]], rtol=SINGLE)


def test_collision_groups_of_usd_keep_the_rule_of_the_engine(tmp_path):
    """Group 0 does not collide, equal positive groups collide, a negative group collides with all except itself."""
    values = [1, 2, -1, -2, 0]
    builder = ModelBuilder()
    for value in values:
        builder.add_body(mass=1.0, inertia=np.eye(3))
        builder.add_shape_sphere(
            builder.body_count - 1, cfg=random_cfg(np.random.default_rng(0), collision_group=value)
        )
    write(builder.finalize(), tmp_path / "groups.usda")
    stage = Usd.Stage.Open(str(tmp_path / "groups.usda"))
    groups = {
        p.GetAttribute("newtonLike:collisionGroup").Get(): p
        for p in stage.Traverse()
        if p.IsA(UsdPhysics.CollisionGroup)
    }
    assert set(groups) == set(values)
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(stage)
    for a in values:
        for b in values:
            touches = a != 0 and b != 0 and (a == b if a > 0 and b > 0 else a != b)
            assert table.IsCollisionEnabled(groups[a].GetPath(), groups[b].GetPath()) == touches, (a, b)


def scene_for_worlds(rng):
    source = ModelBuilder()
    scene = random_scene(rng, joints=4, loops=False, groups=(1,))
    scene.gravity = None
    # springs and drives of free joints pull to other poses in each world, so that worlds are not equal
    for joint, kind in enumerate(scene.joint_type):
        if JOINT_TYPES[kind].floats:
            at = slice(scene.joint_qd_start[joint], scene.joint_qd_start[joint] + 6)
            for gains in (scene.joint_stiffness, scene.joint_target_ke, scene.joint_target_kd):
                gains[at] = [0.0] * 6
    source.add_builder(scene)
    source.gravity = None
    return source


SLOW = (("grid", True), ("prefixes", False), ("turned", False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "instanced"),
    [
        pytest.param(case, instanced, marks=pytest.mark.slow if (case, instanced) in SLOW else ())
        for case in ("grid", "prefixes", "turned")
        for instanced in (False, True)
    ],
)
def test_equal_worlds_refer_to_one(rng, tmp_path, case, instanced):
    source = scene_for_worlds(rng)
    builder = ModelBuilder()
    builder.add_ground_plane()
    if case == "turned":
        builder.replicate(source, 4, xforms=[random_transform(rng, 2.0) for _ in range(4)])
    else:
        names = [f"env_{i}" for i in range(4)] if case == "prefixes" else None
        builder.replicate(source, 4, spacing=(2.5, 1.5, 0.0), label_prefixes=names)
    builder.add_shape_collision_filter_pair(0, builder.shape_count - 1)
    builder.body_q = poses(builder.finalize())
    model = builder.finalize()
    path = tmp_path / "worlds.usda"
    report = write(model, path, instance_worlds=instanced)
    assert report.copies == 3
    alone = write(model, tmp_path / "alone.usda", share_worlds=False)
    assert alone.copies == 0
    assert path.stat().st_size < 0.5 * (tmp_path / "alone.usda").stat().st_size
    stage = Usd.Stage.Open(str(path))
    for body in (0, model.body_count // 2, model.body_count - 1):
        expected = transform_to_matrix(poses(model)[body])
        np.testing.assert_allclose(world_matrix(stage, report.bodies[body]), expected, atol=2.0e-5)
    for name in (path, tmp_path / "alone.usda"):
        other, _ = read(name)
        # World frames of copies are differences of float32 poses, some metres from the origin.
        assert differences(model, other.finalize(), tolerance=2.0e-5, ignore=("body_qd",)) == {}


@pytest.mark.slow
def test_worlds_that_differ_are_written_in_full(rng, tmp_path):
    source = scene_for_worlds(rng)
    builder = ModelBuilder()
    for i, gravity in enumerate((None, -3.0, -3.0)):
        source.gravity = gravity
        source.body_mass[1] += 0.5 * (i == 2)
        builder.add_world(source)
    model = builder.finalize()
    report = write(model, tmp_path / "worlds.usda")
    assert report.copies == 0
    other, _ = read(tmp_path / "worlds.usda")
    assert differences(model, other.finalize(), ignore=INITIAL) == {}


def test_a_model_can_be_written_in_another_state(rng, tmp_path):
    model = random_scene(rng, loops=False).finalize()
    state = model.state()
    q = state.joint_q.numpy()
    kinds = model.joint_type.numpy()
    for j in np.flatnonzero(np.isin(kinds, (JointType.REVOLUTE, JointType.PRISMATIC))):
        q[model.joint_q_start.numpy()[j]] += 0.1
    state.joint_q.assign(q)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    write(model, tmp_path / "scene.usda", state=state)
    builder, _ = read(tmp_path / "scene.usda")
    found = differences(model, builder.finalize(), ignore=INITIAL)
    # The difference is the initial state.
    assert set(found) == {"joint_q"}
    assert_same_poses(state.body_q.numpy().reshape(-1, 7), poses(builder.finalize()), 10.0 * SINGLE)


def test_a_file_may_be_referenced_by_another_stage(rng, tmp_path):
    """Two robots side by side in somebody else's scene, one of them an instance."""
    builder = ModelBuilder()
    base = builder.add_link(mass=2.0, inertia=np.eye(3), label="arm/base")
    tip = builder.add_link(mass=1.0, inertia=np.eye(3), label="arm/tip")
    anchor = random_transform(rng)
    joints = [
        builder.add_joint_fixed(-1, base, parent_xform=anchor),
        builder.add_joint_revolute(base, tip, axis=(0, 0.6, 0.8)),
    ]
    builder.add_articulation(joints, label="arm")
    builder.add_shape_box(tip, hx=0.1, hy=0.1, hz=0.1)
    model = builder.finalize()
    write(model, tmp_path / "arm.usda")
    (tmp_path / "scene.usda").write_text(
        '#usda 1.0\n(\nmetersPerUnit = 1\nupAxis = "Z"\n)\n'
        + "".join(
            f'def Xform "robot_{i}" (\n{"instanceable = true" if i else ""}\nreferences = @./arm.usda@\n)\n{{\n'
            f'double3 xformOp:translate = ({i}, 0, 5)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n}}\n'
            for i in range(2)
        )
    )
    other, _ = read(tmp_path / "scene.usda")
    both = other.finalize()
    assert both.articulation_count == 2 and both.joint_count == 4
    place = np.array([[i, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0] for i in range(2)])
    found = poses(both)
    expected = poses(model)
    for label in ("arm/base", "arm/tip"):
        ours = [b for b, name in enumerate(both.body_label) if name == label]
        wanted = transform_multiply(place, expected[model.body_label.index(label)])
        assert_same_poses(wanted, found[ours], 10.0 * SINGLE)


def test_numbers_in_metres_are_not_taken_for_centimetres(tmp_path):
    """A stage with changed units: lengths of the schemas are converted, and a remark names the others."""
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation(
        [builder.add_joint_ball(-1, link, parent_xform=((2.0, 0.0, 0.0), (0, 0, 0, 1)), armature=0.5)]
    )
    path = tmp_path / "a.usda"
    write(builder.finalize(), path)
    path.write_text(path.read_text().replace("metersPerUnit = 1", "metersPerUnit = 0.01"))
    other, report = read(path)
    assert other.joint_X_p[0][0] == pytest.approx(0.02) and other.joint_armature == [0.0, 0.0, 0.0]
    assert any("metres and kilograms" in statement for statement in report.remarks)


def test_newton_opens_the_file(rng, tmp_path):
    newton = pytest.importorskip("newton")
    pytest.importorskip("newton_usd_schemas")
    builder = random_scene(rng, loops=False)
    add_random_shapes(rng, builder, [0, 1])
    model = builder.finalize()
    report = write(model, tmp_path / "scene.usda")
    other = newton.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.add_usd(str(tmp_path / "scene.usda"))
    order = [other.body_label.index(path) for path in report.bodies]
    np.testing.assert_allclose(np.array(other.body_mass)[order], model.body_mass.numpy(), rtol=SINGLE)
    np.testing.assert_allclose(np.array(other.body_com).reshape(-1, 3)[order], model.body_com.numpy(), rtol=SINGLE)
    inertia = np.array(other.body_inertia).reshape(-1, 3, 3)[order]
    np.testing.assert_allclose(inertia, model.body_inertia.numpy(), atol=10.0 * SINGLE)
    checked = 0
    for j, path in enumerate(report.joints):
        if path and model.joint_type.numpy()[j] in (JointType.REVOLUTE, JointType.PRISMATIC):
            theirs, mine = other.joint_qd_start[other.joint_label.index(path)], model.joint_qd_start.numpy()[j]
            for name in ("limit_lower", "limit_upper", "armature", "friction", "damping", "target_ke"):
                a, b = getattr(other, f"joint_{name}")[theirs], getattr(model, f"joint_{name}").numpy()[mine]
                if name == "target_ke" and model.joint_target_mode.numpy()[mine] not in (1, 3):
                    b = 0.0
                np.testing.assert_allclose(np.clip(a, -1e9, 1e9), np.clip(b, -1e9, 1e9), rtol=1e-5, err_msg=name)
            checked += 1
    assert checked


def test_wrong_arguments_say_what_to_do(tmp_path):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize()
    with pytest.raises(TypeError, match="finalize"):
        write(builder, tmp_path / "a.usda")
    with pytest.raises(ValueError, match=r"'\.txt'.*\.usda"):
        write(model, tmp_path / "a.txt")
    with pytest.raises(TypeError, match="path"):
        write(model, 3)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write(model, tmp_path / "nowhere" / "a.usda")
    with pytest.raises(ValueError, match=r"root 'two words'.*prim"):
        write(model, tmp_path / "a.usda", root="two words")
    with pytest.raises(TypeError, match="share_worlds"):
        write(model, tmp_path / "a.usda", share_worlds="no")
    with pytest.raises(TypeError, match=r"State.*int"):
        write(model, tmp_path / "a.usda", state=3)
    with pytest.raises(ValueError, match=r"joint_q.*0.*7"):
        write(model, tmp_path / "a.usda", state=ModelBuilder().finalize().state())
    state = model.state()
    state.joint_qd.fill_(np.nan)
    with pytest.raises(ValueError, match=r"joint_qd.*finite"):
        write(model, tmp_path / "a.usda", state=state)
    sideways = ModelBuilder(up_axis="X")
    with pytest.raises(ValueError, match=r"\bY\b.*\bZ\b"):
        write(sideways.finalize(), tmp_path / "a.usda")


def test_names_that_readers_make_do_not_meet_those_of_prims(tmp_path):
    """A free body called as the first body of an articulation."""
    builder = ModelBuilder()
    for prefix in ("tree", "free"):
        links = [
            builder.add_link(mass=1.0, inertia=np.eye(3), label=f"{prefix}/crate/{i}")
            for i in range(1 + (prefix == "tree"))
        ]
        builder.body_label[links[0]] = f"{prefix}/crate"
        joints = [builder.add_joint_free(links[0])]
        joints += [builder.add_joint_revolute(links[0], link) for link in links[1:]]
        builder.add_articulation(joints, label=f"{prefix}/crate_articulation")
    model = builder.finalize()
    write(model, tmp_path / "a.usda")
    other, report = read(tmp_path / "a.usda")
    assert len(report.articulations) == 2
    assert differences(model, other.finalize()) == {}


def test_a_file_that_is_open_shows_its_new_content(tmp_path):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3), label="one")
    path = tmp_path / "9 lives.usda"
    report = write(builder.finalize(), path)
    stage = Usd.Stage.Open(str(path))
    assert report.root == "/_9_lives" and stage.GetDefaultPrim().GetPath() == report.root
    builder.add_body(mass=1.0, inertia=np.eye(3), label="two")
    report = write(builder.finalize(), path)
    assert stage.GetPrimAtPath(report.bodies[1])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ('newtonLike:targetModes = ["none"', "targetModes.*potato"),
        ('newtonLike:geometry = "box"', "geometry 'potato'"),
        ("newton:inertia = [", "newton:inertia .*xx, yy, zz"),
    ],
)
def test_damaged_attributes_are_named(tmp_path, edit, message):
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_shape_box(link)
    builder.add_articulation([builder.add_joint_revolute(-1, link)])
    path = tmp_path / "scene.usda"
    write(builder.finalize(), path)
    text = path.read_text()
    damaged = {
        'newtonLike:targetModes = ["none"': 'newtonLike:targetModes = ["potato"',
        'newtonLike:geometry = "box"': 'newtonLike:geometry = "potato"',
        "newton:inertia = [": "newton:inertia = [1, ",
    }[edit]
    assert edit in text
    path.write_text(text.replace(edit, damaged))
    other = ModelBuilder()
    with pytest.raises(ValueError, match=message):
        other.add_usd(str(path))
    assert other.body_count == other.shape_count == other.joint_count == 0
