"""The USD importer: the same robot in other ways, trees, masses, states."""

import math
import warnings

import numpy as np
import pytest
import warp as wp

pytest.importorskip("pxr")
from pxr import Gf, Sdf, UsdPhysics
from scipy.spatial.transform import Rotation

from newton_like.geometry import inertia as rigid
from newton_like.geometry.shapes import mass_properties
from newton_like.geometry.transforms import (
    IDENTITY,
    quat_from_axis_angle,
    quat_to_matrix,
    transform,
    transform_multiply,
    transform_to_matrix,
)
from newton_like.importers.usd import UsdWarning
from newton_like.model.builder.builder import ModelBuilder
from newton_like.types import BodyFlags, JointType
from tests.support.reference import body_poses, mass_matrix, pose_matrix
from tests.support.usd_stages import (
    SINGLE,
    StageWriter,
    bind,
    load,
    pair,
    poses,
    quatf,
    random_inertial,
    random_pose,
    random_robot,
    tree_of,
    write_robot,
)

# The same robot, written in other ways


def as_urdf(robot: dict) -> str:
    """A robot whose child frames are its joint frames and whose bodies are where zero puts them."""

    def origin(pose):
        words = [*map(repr, pose[:3].tolist())], map(repr, Rotation.from_quat(pose[3:]).as_euler("xyz").tolist())
        return f'<origin xyz="{" ".join(words[0])}" rpy="{" ".join(words[1])}"/>'

    parts = ['<robot name="r"><link name="world"/>']
    for number, (body, joint) in enumerate(zip(robot["bodies"], robot["joints"], strict=True)):
        turn = Rotation.from_quat(body["axes"]).as_matrix()
        tensor = turn @ np.diag(body["moments"]) @ turn.T
        entries = " ".join(
            f'i{a}{b}="{tensor["xyz".index(a), "xyz".index(b)]!r}"' for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
        )
        parts.append(
            f'<link name="{body["name"]}"><inertial>{origin(transform(body["com"]))}<mass value="{body["mass"]!r}"/>'
            f"<inertia {entries}/></inertial></link>".replace("np.float64(", "").replace(")", "")
        )
        parent = "world" if joint["parent"] < 0 else robot["bodies"][joint["parent"]]["name"]
        parts.append(
            f'<joint name="j{number}" type="{joint["kind"]}"><parent link="{parent}"/><child link="{body["name"]}"/>'
            f'{origin(joint["X_p"])}<axis xyz="{" ".join(map(str, np.eye(3)[joint["axis"]]))}"/>'
            f'<limit lower="{joint["lower"]!r}" upper="{joint["upper"]!r}" effort="{joint["effort"]!r}" '
            f'velocity="{joint["velocity"]!r}"/><dynamics damping="{joint["damping"]!r}" '
            f'friction="{joint["friction"]!r}"/></joint>'
        )
    return "".join(parts) + "</robot>"


def robot_at_zero(rng, count=7) -> dict:
    robot = random_robot(rng, count, displaced=False)
    for joint, body in zip(robot["joints"], robot["bodies"], strict=True):
        joint["X_c"] = IDENTITY.copy()
        base = IDENTITY if joint["parent"] < 0 else robot["bodies"][joint["parent"]]["pose"]
        body["pose"] = transform_multiply(base, joint["X_p"])
    return robot


def test_the_same_robot_through_urdf_and_usd(rng):
    robot = robot_at_zero(rng)
    usd, report = load(write_robot(robot, 0.01, 0.001, "Y").stage)
    urdf = ModelBuilder()
    other = urdf.add_urdf(as_urdf(robot))
    dofs = [report.dofs[f"/Robot/joint_{i}"][0] for i, j in enumerate(robot["joints"]) if j["kind"] != "fixed"]
    theirs = [urdf.joint_qd_start[other.joints[f"j{i}"]] for i, j in enumerate(robot["joints"]) if j["kind"] != "fixed"]
    for name in ("limit_lower", "limit_upper", "effort_limit", "velocity_limit", "friction", "damping"):
        ours, expected = (np.array(getattr(b, f"joint_{name}")) for b in (usd, urdf))
        assert np.allclose(ours[dofs], expected[theirs], rtol=SINGLE), name
    q = rng.uniform(-0.5, 0.5, len(dofs))
    models = []
    for builder, order in ((usd, dofs), (urdf, theirs)):
        tree, values = tree_of(builder), np.zeros(len(dofs))
        values[order] = q
        models.append((mass_matrix(tree, values)[np.ix_(order, order)], body_poses(tree, values)))
    armature = np.diag([robot["joints"][i]["armature"] for i, j in enumerate(robot["joints"]) if j["kind"] != "fixed"])
    (ours, our_poses), (expected, their_poses) = models
    expected = expected + armature  # URDF has none
    assert np.allclose(ours, expected, rtol=0, atol=SINGLE * np.abs(expected).max())
    for body in robot["bodies"]:
        pair = our_poses[report.bodies[f"/Robot/{body['name']}"]], their_poses[other.links[body["name"]]]
        assert np.allclose(*map(pose_matrix, pair), atol=SINGLE)


def test_joints_named_the_other_way_round_count_the_other_way(rng):
    """A joint's coordinate is that of its second body against its first, whichever of them is nearer to the root."""
    robot = random_robot(rng, 7)
    straight, _ = load(write_robot(robot).stage)
    turned, _ = load(write_robot(robot, swapped=set(range(1, 7))).stage)
    assert straight.body_label == turned.body_label
    assert np.allclose(straight.joint_q, -np.array(turned.joint_q), atol=SINGLE)
    q = rng.uniform(-1.0, 1.0, len(straight.joint_q))
    for a, b in zip(poses(straight, q), poses(turned, -q), strict=True):
        assert np.allclose(a, b, atol=SINGLE)
    # The numbers of the file are about that coordinate.
    for name in ("joint_limit_lower", "joint_limit_upper", "joint_target_q", "joint_armature"):
        assert np.allclose(getattr(straight, name), getattr(turned, name), rtol=SINGLE, atol=SINGLE), name


@pytest.mark.parametrize("ordering", ["dfs", "bfs", None])
def test_order_of_joints(ordering):
    writer = StageWriter()
    for name in "abcde":
        writer.body(f"/{name}", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    for number, (parent, child) in enumerate([("a", "b"), ("a", "c"), ("b", "d"), ("c", "e")]):
        writer.joint(f"/j{number}", "revolute", f"/{parent}", f"/{child}", axis=2)
    builder, _ = load(writer.stage, joint_ordering=ordering)
    expected = {"dfs": "abdce", "bfs": "abcde", None: "abcde"}[ordering]
    assert builder.body_label == [f"/{name}" for name in expected]


# Masses


def mass_information(builder, report, stage):
    """The callback of UsdPhysics for colliders: volume, inertia at density one and pose in the body."""

    def information(prim):
        (index,) = report.shapes[str(prim.GetPath())]
        volume, com, inertia = mass_properties(
            builder.shape_type[index], builder.shape_scale[index], 1.0, builder.shape_source[index]
        )
        pose = builder.shape_transform[index]
        info = UsdPhysics.RigidBodyAPI.MassInformation()
        info.volume = volume
        info.inertia = Gf.Matrix3f(*map(float, inertia.reshape(9)))
        info.centerOfMass = Gf.Vec3f(*map(float, com))
        info.localPos = Gf.Vec3f(*pose[:3])
        info.localRot = quatf(pose[3:])
        return info

    return information


@pytest.mark.parametrize("given", range(16))
def test_masses_follow_the_precedence_of_usd_physics(rng, given):
    """Every combination of mass attributes of a body, with colliders of different attributes, against UsdPhysics."""
    writer = StageWriter()
    inertial = random_inertial(rng)
    inertial["density"] = 700.0
    body_keys = [key for bit, key in enumerate(("mass", "com", "moments", "density")) if given >> bit & 1]
    own = {key: inertial[key] for key in body_keys}
    if "moments" in own:
        own["axes"] = inertial["axes"]
    body = writer.body("/body", random_pose(rng), own or None)
    heavy = writer.material("/heavy", 0.5, 0.0, density=5000.0)
    shapes = [
        writer.shape("/body/plain", "Cube", random_pose(rng), size=0.3),
        writer.shape("/body/dense", "Sphere", random_pose(rng), radius=0.2),
        writer.shape("/body/weighed", "Cylinder", random_pose(rng), radius=0.1, height=0.4, axis="X"),
        writer.shape("/body/stuff", "Cone", random_pose(rng), radius=0.2, height=0.4),
        writer.shape("/body/idle", "Cube", random_pose(rng), size=0.2),
    ]
    writer.inertial(shapes[1], {"density": 2000.0})
    writer.inertial(shapes[2], {"mass": 2.5})
    bind(shapes[3], heavy)
    UsdPhysics.CollisionAPI(shapes[4]).CreateCollisionEnabledAttr(False)
    builder, report = load(writer.stage)
    api = UsdPhysics.RigidBodyAPI(body)
    mass, moments, com, axes = api.ComputeMassProperties(mass_information(builder, report, writer.stage))
    assert builder.body_mass[0] == pytest.approx(mass, rel=1e-5)  # they sum up in float32
    assert np.allclose(builder.body_com[0], com, atol=1e-5)
    turn = quat_to_matrix([*axes.GetImaginary(), axes.GetReal()])
    expected = turn @ np.diag(np.array(moments)) @ turn.T
    assert np.allclose(builder.body_inertia[0], expected, atol=1e-4 * np.abs(expected).max())


def test_ignored_masses_are_those_of_the_shapes(rng):
    robot = random_robot(rng, 2)
    writer = write_robot(robot)
    for body in robot["bodies"]:
        prim = writer.shape(f"/Robot/{body['name']}/c", "Sphere", radius=0.1)
        writer.inertial(prim, {"mass": 77.0})
    builder, _ = load(writer.stage, ignore_inertial_definitions=True)
    assert builder.body_mass == pytest.approx([1000.0 * 4.0 / 3.0 * math.pi * 1e-3] * 2)


def test_a_mass_without_inertia_and_colliders_is_a_small_ball():
    writer = StageWriter(0.01)
    writer.body("/b", IDENTITY, {"mass": 2.0})
    with pytest.warns(UsdWarning, match=r"ball.*0\.1 m.*\(1\): /b"):
        builder, _ = load(writer.stage)
    assert np.allclose(builder.body_inertia[0], 0.4 * 2.0 * 0.1**2 * np.eye(3))


def test_impossible_inertias_become_the_nearest_possible():
    writer = StageWriter()
    writer.body("/b", IDENTITY, {"mass": 2.0, "moments": np.array([1.0, 1.0, 9.0])})
    with pytest.warns(UsdWarning, match=r"inertia.*\(1\): /b \("):
        builder, report = load(writer.stage)
    assert rigid.check(2.0, builder.body_inertia[0]) is None
    assert any("/b" in path for path in next(iter(report.remarks.values())))


# Trees


def test_excluded_and_disabled_joints_and_loops_are_outside_of_trees():
    writer = StageWriter()
    for name in "abcd":
        writer.body(f"/{name}", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    writer.joint("/ab", "revolute", "/a", "/b", axis=0)
    writer.joint("/bc", "revolute", "/b", "/c", axis=0)
    writer.joint("/ca", "revolute", "/c", "/a", axis=0)
    excluded = writer.joint("/cd", "fixed", "/c", "/d")
    excluded.CreateExcludeFromArticulationAttr(True)
    disabled = writer.joint("/ad", "ball", "/a", "/d")
    disabled.CreateJointEnabledAttr(False)
    with pytest.warns(UsdWarning, match=r"loops.*\(1\): /(bc|ca)"):
        builder, report = load(writer.stage)
    owner = {path: builder.joint_articulation[index] for path, index in report.joints.items()}
    assert sorted(path for path, tree in owner.items() if tree < 0) in (["/ad", "/bc", "/cd"], ["/ad", "/ca", "/cd"])
    assert builder.joint_enabled[report.joints["/ad"]] is False and builder.joint_enabled[report.joints["/cd"]] is True
    assert set(report.base_joints) == {"/a", "/d"}
    builder.finalize(device="cpu")


def test_distance_joints_hang_bodies_on_trees_last(rng):
    writer = StageWriter()
    for name in "abcd":
        writer.body(f"/{name}", random_pose(rng), {"mass": 1.0, "moments": np.ones(3)})
    writer.joint("/rope_ad", "distance", "/a", "/d").CreateMaxDistanceAttr(1.0)
    writer.joint("/rope_world", "distance", None, "/a").CreateMaxDistanceAttr(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer.joint("/ab", "fixed", "/a", "/b")
        writer.joint("/bd", "fixed", "/b", "/d")
        builder, report = load(writer.stage)
    assert builder.joint_articulation[report.joints["/rope_ad"]] == -1
    assert report.base_joints["/a"] == report.joints["/rope_world"]
    model = builder.finalize(device="cpu")
    assert [
        np.allclose(a, b, atol=1e-6) for a, b in zip(model.body_q.numpy()[:1], builder.body_q[:1], strict=True)
    ] == [True]


def test_roots(rng):
    """Fixed in the world; else the body with the ArticulationRootAPI; else the one no joint has as second body."""
    for fixed, rooted, root in ((True, "/b", "/c"), (False, "/b", "/b"), (False, None, "/a")):
        writer = StageWriter()
        for name in "abc":
            writer.body(f"/{name}", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
        writer.joint("/ab", "revolute", "/a", "/b", axis=0)
        writer.joint("/bc", "revolute", "/b", "/c", axis=0)
        if fixed:
            writer.joint("/hold", "fixed", "/c", None)
        if rooted:
            UsdPhysics.ArticulationRootAPI.Apply(writer.stage.GetPrimAtPath(rooted))
        builder, report = load(writer.stage)
        assert list(report.base_joints) == [root]
        assert builder.joint_type[0] == (JointType.FIXED if fixed else JointType.FREE)
        assert builder.articulation_label == ["/b" if rooted else "/a_articulation"]
        assert report.articulations == {builder.articulation_label[0]: 0}


def test_floating_base_joint_and_parent_body(rng):
    robot = random_robot(rng, 4, kinds=("revolute",))
    stage = write_robot(robot).stage
    pose = robot["bodies"][0]["pose"]
    place = random_pose(rng)
    freed, report = load(stage, floating=True, xform=place)
    assert freed.joint_type[report.base_joints["/Robot/link_0"]] == JointType.FREE
    expected = transform_to_matrix(transform_multiply(place, pose))
    assert np.allclose(transform_to_matrix(freed.joint_q[:7]), expected, atol=SINGLE)
    held, report = load(stage, xform=place)
    assert np.allclose(poses(held, held.joint_q)[0], expected, atol=SINGLE)
    slid, report = load(
        stage, base_joint={"joint_type": JointType.D6, "linear_axes": ["x"], "label": "slide"}, xform=place
    )
    assert slid.joint_type[0] == JointType.D6 and np.allclose(poses(slid, slid.joint_q)[0], expected, atol=SINGLE)
    mounted = ModelBuilder()
    arm = mounted.add_link(mass=1.0, inertia=np.eye(3), xform=place)
    mounted.add_articulation([mounted.add_joint_fixed(-1, arm, parent_xform=place)])
    report = mounted.add_usd(stage, parent_body=arm)
    assert mounted.articulation_count == 1 and report.articulations
    assert np.allclose(poses(mounted, mounted.joint_q)[report.bodies["/Robot/link_0"]], expected, atol=SINGLE)
    loose = StageWriter()
    loose.body("/x", IDENTITY, {"mass": 1.0, "moments": np.ones(3)})
    assert load(loose.stage, floating=False)[0].joint_type == [JointType.FIXED]


def test_collapsing_keeps_the_mechanics(rng):
    robot = random_robot(rng, 9, kinds=("revolute", "fixed", "fixed"))
    writer = write_robot(robot)
    for body in robot["bodies"]:
        writer.shape(f"/Robot/{body['name']}/c", "Sphere", random_pose(rng), radius=0.1)
    whole, full = load(writer.stage)
    merged, report = load(writer.stage, collapse_fixed_joints=True)
    welds = sum(joint["kind"] == "fixed" for joint in robot["joints"]) - 1
    assert merged.body_count == whole.body_count - welds and merged.joint_count == whole.joint_count - welds
    q = rng.uniform(-1.0, 1.0, whole.joint_coord_count)
    a, b = tree_of(whole), tree_of(merged)
    expected = mass_matrix(a, q)
    assert np.allclose(mass_matrix(b, q), expected, atol=1e-9 * max(np.abs(expected).max(initial=0.0), 1.0))
    first, second = body_poses(a, q), body_poses(b, q)
    for body in robot["bodies"]:
        path = f"/Robot/{body['name']}"
        index, frame = report.frames[path]
        ours = transform_multiply(second[index], frame)
        assert np.allclose(pose_matrix(ours), pose_matrix(first[full.bodies[path]]), atol=1e-9)
        (shape,), (other) = report.shapes[f"{path}/c"], full.shapes[f"{path}/c"][0]
        point = transform_multiply(second[merged.shape_body[shape]], merged.shape_transform[shape])
        there = transform_multiply(first[whole.shape_body[other]], whole.shape_transform[other])
        assert np.allclose(point[:3], there[:3], atol=1e-9)


# State


def test_velocities_of_articulations(rng):
    """Velocities of the bodies that joint velocities give come back as these joint velocities."""
    robot = random_robot(rng, 6, kinds=("revolute", "prismatic"))
    stage = write_robot(robot).stage
    builder, report = load(stage)
    model = builder.finalize(device="cpu", dtype=wp.float64)
    state = model.state()
    qd = rng.normal(size=model.joint_dof_count)
    from newton_like import eval_fk

    eval_fk(model, model.joint_q, wp.array(qd, dtype=wp.float64, device="cpu"), state)
    for path, index in report.bodies.items():
        velocity = state.body_qd.numpy()[index]
        turn = Rotation.from_quat(state.body_q.numpy()[index][3:]).inv()
        api = UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath(path))
        api.CreateVelocityAttr(Gf.Vec3f(*map(float, turn.apply(velocity[:3]))))
        api.CreateAngularVelocityAttr(Gf.Vec3f(*map(float, np.degrees(turn.apply(velocity[3:])))))
    again, _ = load(stage)
    assert np.allclose(again.joint_qd, qd, atol=1e-5)  # velocities add up along the chain in float32
    assert np.allclose(again.body_qd, state.body_qd.numpy(), atol=1e-5)


def test_states_of_joints_stand_above_where_the_bodies_are():
    writer = StageWriter()
    pair(writer)
    joint = writer.joint("/j", "revolute", "/a", "/b", axis=0).GetPrim()
    writer.number(joint, "state:angular:physics:position", 30.0)
    writer.number(joint, "state:angular:physics:velocity", -60.0)
    with pytest.warns(UsdWarning, match=r"states.*\(1\): /j"):
        builder, report = load(writer.stage)
    index = report.joints["/j"]
    assert builder.joint_q[builder.joint_q_start[index]] == pytest.approx(math.radians(30.0))
    assert builder.joint_qd[builder.joint_qd_start[index]] == pytest.approx(math.radians(-60.0))


def test_angles_beyond_half_a_turn_are_found_within_the_limits():
    writer = StageWriter()
    writer.body(
        "/b", transform(q=quat_from_axis_angle(np.eye(3)[0], math.radians(250.0))), {"mass": 1.0, "moments": np.ones(3)}
    )
    joint = writer.joint("/j", "revolute", None, "/b", axis=0)
    writer.limits(joint, math.radians(180.0), math.radians(300.0))
    assert load(writer.stage)[0].joint_q == pytest.approx([math.radians(250.0)])


def test_kinematic_and_disabled_bodies():
    writer = StageWriter()
    for name in "abc":
        writer.body(f"/{name}", IDENTITY)
        writer.shape(f"/{name}/c", "Cube", size=1.0)
    UsdPhysics.RigidBodyAPI(writer.stage.GetPrimAtPath("/a")).CreateKinematicEnabledAttr(True)
    UsdPhysics.RigidBodyAPI(writer.stage.GetPrimAtPath("/b")).CreateRigidBodyEnabledAttr(False)
    builder, report = load(writer.stage)
    assert set(report.bodies) == {"/a", "/c"} and builder.shape_body[report.shapes["/b/c"][0]] == -1
    assert builder.body_flags[report.bodies["/a"]] == BodyFlags.KINEMATIC
    assert builder.body_flags[report.bodies["/c"]] == BodyFlags.DYNAMIC


@pytest.mark.parametrize("up", "YZ")
def test_gravity(rng, up):
    writer = StageWriter(0.01, 1.0, up)
    scene = writer.scene()
    assert np.allclose(load(writer.stage)[0].gravity, [0.0, 0.0, -9.81])
    scene.CreateGravityMagnitudeAttr(162.0)
    assert np.allclose(load(writer.stage)[0].gravity, [0.0, 0.0, -1.62])
    builder = ModelBuilder(gravity=-3.0)
    builder.add_usd(writer.stage, scene_gravity=False)
    assert builder.gravity == (0.0, 0.0, -3.0)
    builder.begin_world()
    builder.add_usd(writer.stage)
    builder.end_world()
    assert builder.gravity == (0.0, 0.0, -3.0) and np.allclose(builder.world_gravity[0], [0.0, 0.0, -1.62])
    scene.GetPrim().CreateAttribute("newton:gravityEnabled", Sdf.ValueTypeNames.Bool).Set(False)
    assert load(writer.stage)[0].gravity == (0.0, 0.0, 0.0)
    y_up = ModelBuilder(up_axis="Y")
    scene.GetPrim().RemoveProperty("newton:gravityEnabled")
    y_up.add_usd(writer.stage)
    assert np.allclose(y_up.gravity, [0.0, -1.62, 0.0])
