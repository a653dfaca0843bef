"""The USD importer: filters, composition, the report, files written elsewhere, large stages."""

import math

import numpy as np
import pytest

from tests.support.paths import SCENES

pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

from newton_like.geometry.transforms import (
    IDENTITY,
)
from newton_like.importers.usd import UsdWarning
from newton_like.model.builder.builder import ModelBuilder
from newton_like.types import JointType
from tests.support.counting import calls_of
from tests.support.simulate import Simulation
from tests.support.usd_stages import (
    StageWriter,
    bind,
    load,
    pair,
    random_robot,
    text,
    write_robot,
)

# Collision filters


def touching(builder, report, paths):
    """Pairs of paths that may touch, as sorted tuples."""
    shapes = {path: report.shapes[path][0] for path in paths}
    forbidden = builder.shape_collision_filter_pairs
    names = sorted(paths)
    return {
        (a, b)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if tuple(sorted((shapes[a], shapes[b]))) not in forbidden
    }


def boxes(names, joints=()):
    writer = StageWriter()
    UsdGeom.Xform.Define(writer.stage, "/r")
    for name in names:
        writer.body(f"/r/{name}", IDENTITY)
        writer.shape(f"/r/{name}/c", "Cube", size=1.0)
    for a, b in joints:
        writer.joint(f"/r/{a}{b}", "revolute", f"/r/{a}", f"/r/{b}", axis=0)
    return writer


def test_joints_and_articulations_filter_collisions():
    writer = boxes("abcd", ["ab", "bc"])
    paths = [f"/r/{name}/c" for name in "abcd"]
    every = {(a, b) for i, a in enumerate(paths) for b in paths[i + 1 :]}
    neighbours = {(paths[0], paths[1]), (paths[1], paths[2])}
    chain = {(paths[0], paths[2]), *neighbours}
    assert touching(*load(writer.stage), paths) == every - neighbours
    assert touching(*load(writer.stage, enable_self_collisions=False), paths) == every - chain
    root = writer.stage.GetPrimAtPath("/r")
    UsdPhysics.ArticulationRootAPI.Apply(root)
    flag = root.CreateAttribute("physxArticulation:enabledSelfCollisions", Sdf.ValueTypeNames.Bool)
    flag.Set(False)
    assert touching(*load(writer.stage), paths) == every - chain
    assert touching(*load(writer.stage, enable_self_collisions=True), paths) == every - neighbours
    flag.Set(True)
    UsdPhysics.Joint(writer.stage.GetPrimAtPath("/r/ab")).CreateCollisionEnabledAttr(True)
    assert touching(*load(writer.stage), paths) == every - {(paths[1], paths[2])}


def test_filtered_pairs_of_bodies_colliders_and_scopes():
    writer = boxes("abcd")
    writer.shape("/floor", "Plane", axis="Z")
    paths = [*(f"/r/{name}/c" for name in "abcd"), "/floor"]
    every = {(a, b) for i, a in enumerate(sorted(paths)) for b in sorted(paths)[i + 1 :]}
    for source, target in (("/r/a", "/r/b"), ("/r/c/c", "/r/d/c"), ("/floor", "/r")):
        api = UsdPhysics.FilteredPairsAPI.Apply(writer.stage.GetPrimAtPath(source))
        api.CreateFilteredPairsRel().AddTarget(target)
    gone = {("/r/a/c", "/r/b/c"), ("/r/c/c", "/r/d/c")} | {("/floor", f"/r/{name}/c") for name in "abcd"}
    assert touching(*load(writer.stage), paths) == every - gone


def test_filtered_pairs_of_an_articulation_that_its_joint_to_the_world_stands_for():
    writer = boxes("abc", ["ab"])
    UsdPhysics.ArticulationRootAPI.Apply(writer.joint("/r/hold", "fixed", None, "/r/a").GetPrim())
    api = UsdPhysics.FilteredPairsAPI.Apply(writer.stage.GetPrimAtPath("/r/c"))
    api.CreateFilteredPairsRel().AddTarget("/r/hold")
    assert touching(*load(writer.stage), ["/r/a/c", "/r/b/c", "/r/c/c"]) == set()


@pytest.mark.parametrize("inverted", [False, True])
def test_collision_groups_are_those_of_usd_physics(rng, inverted):
    writer = boxes("abcdef")
    paths = [f"/r/{name}/c" for name in "abcdef"]
    groups = []
    for number in range(3):
        group = UsdPhysics.CollisionGroup.Define(writer.stage, f"/g{number}")
        for path in rng.choice(paths, 2, replace=False):
            group.GetCollidersCollectionAPI().CreateIncludesRel().AddTarget(str(path))
        groups.append(group)
    groups[0].CreateFilteredGroupsRel().AddTarget("/g1")
    groups[0].CreateInvertFilteredGroupsAttr(inverted)
    groups[2].CreateFilteredGroupsRel().AddTarget("/g2")
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(writer.stage)
    members = [
        [p for p in paths if g.GetCollidersCollectionAPI().ComputeMembershipQuery().IsPathIncluded(p)] for g in groups
    ]
    gone = {
        tuple(sorted((a, b)))
        for i, first in enumerate(groups)
        for j, second in enumerate(groups)
        if not table.IsCollisionEnabled(first.GetPath(), second.GetPath())
        for a in members[i]
        for b in members[j]
        if a != b
    }
    every = {(a, b) for i, a in enumerate(paths) for b in paths[i + 1 :]}
    assert touching(*load(writer.stage), paths) == every - gone


# Composition


ROBOT = text(
    """def Xform "Bot" (variants = { string size = "small" } prepend variantSets = "size")
{
    def Xform "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
    {
        def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}
        def Xform "tip" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
        {
            double3 xformOp:translate = (1, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
            def Sphere "c" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 0.1 }
        }
    }
    def PhysicsRevoluteJoint "hinge"
    {
        rel physics:body0 = </Bot/base>
        rel physics:body1 = </Bot/base/tip>
        point3f physics:localPos0 = (1, 0, 0)
    }
    variantSet "size" = {
        "small" { over "base" { over "c" { double size = 0.5 } } }
        "large" { over "base" { over "c" { double size = 2 } } }
    }
}
""",
    'defaultPrim = "Bot"\nmetersPerUnit = 1\nupAxis = "Z"',
)


@pytest.mark.parametrize("arc", ["references", "payload", "instanceable"])
def test_references_payloads_instances_and_variants(tmp_path, arc):
    (tmp_path / "bot.usda").write_text(ROBOT)
    stage = Usd.Stage.CreateNew(str(tmp_path / "scene.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, "Z")
    for number in range(3):
        prim = UsdGeom.Xform.Define(stage, f"/World/bot_{number}").GetPrim()
        (prim.GetPayloads().AddPayload if arc == "payload" else prim.GetReferences().AddReference)("bot.usda")
        prim.SetInstanceable(arc == "instanceable")
        UsdGeom.XformCommonAPI(prim).SetTranslate(Gf.Vec3d(3.0 * number, 0.0, 0.0))
    stage.GetPrimAtPath("/World/bot_2").GetVariantSet("size").SetVariantSelection("large")
    stage.Save()
    builder, report = load(tmp_path / "scene.usda")
    assert builder.body_count == 6 and builder.articulation_count == 3
    for number in range(3):
        base, tip = (report.bodies[f"/World/bot_{number}/base{end}"] for end in ("", "/tip"))
        assert np.allclose(builder.body_q[tip][:3], [3.0 * number + 1.0, 0.0, 0.0])
        assert builder.body_mass[base] == pytest.approx(8000.0 if number == 2 else 125.0)
        hinge = report.joints[f"/World/bot_{number}/hinge"]
        assert (builder.joint_parent[hinge], builder.joint_child[hinge]) == (base, tip)
    part, _ = load(tmp_path / "scene.usda", root_path="/World/bot_1")
    assert part.body_label == ["/World/bot_1/base", "/World/bot_1/base/tip"]
    ignored, _ = load(tmp_path / "scene.usda", ignore_paths=["bot_[01]$"])
    assert ignored.body_count == 2


def test_payloads_that_are_not_loaded_are_remarked(tmp_path):
    (tmp_path / "bot.usda").write_text(ROBOT)
    source = tmp_path / "scene.usda"
    source.write_text(text('def Xform "a" (payload = @./bot.usda@) {}\ndef Xform "b" {}'))
    stage = Usd.Stage.Open(str(source), Usd.Stage.LoadNone)
    with pytest.warns(UsdWarning, match=r"payloads.*\(1\): /a$"):
        assert load(stage)[0].body_count == 0
    stage.Load("/a")
    assert load(stage)[0].body_count == 2


def test_missing_references_are_remarked(tmp_path):
    source = tmp_path / "scene.usda"
    source.write_text(text('def Xform "a" (references = @./nowhere.usda@) {}'))
    with pytest.warns(UsdWarning, match=r"references.*\(1\): .*nowhere\.usda"):
        load(source)


def test_time(rng):
    stage = StageWriter().stage
    prim = UsdGeom.Cube.Define(stage, "/c")
    UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
    op = prim.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble)
    op.Set(Gf.Vec3d(1, 0, 0), 1.0)
    op.Set(Gf.Vec3d(3, 0, 0), 3.0)
    assert np.allclose(load(stage, time=2.0)[0].shape_transform[0][:3], [2, 0, 0])
    assert np.allclose(load(stage)[0].shape_transform[0][:3], [0, 0, 0])


# The report


def test_what_is_not_understood_is_counted_once_for_each_name():
    source = text(
        """def Xform "b" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
        { float physics:mass = 1
          float3 physics:diagonalInertia = (1, 1, 1)
          float physxRigidBody:angularDamping = 0.3
          custom double nonsense = 4
          uniform bool physics:startsAsleep = 1
          float newton:armature = 1
          rel physics:simulationOwner
          custom string userProperties:note = "x"
          def BasisCurves "hair" {} }
        def PointInstancer "many" { def Cube "proto" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {} }
        def Scope "s" { float physxScene:bounceThreshold = 2
 float someNumber = 3 }
        def Xform "e" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}
        def Xform "m" (prepend apiSchemas = ["PhysicsMassAPI"]) {}
        def MjcTendon "t" { float mjc:stiffness = 5
 rel mjc:path = </b> }"""
    )
    builder = ModelBuilder()
    with pytest.warns(UsdWarning) as caught:
        report = builder.add_usd(source)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert report.not_understood == {
        "physxRigidBody:angularDamping": 1,
        "nonsense": 1,
        "newton:armature": 1,  # of joints, not of bodies
        "physxScene:bounceThreshold": 1,
        "prims of type BasisCurves": 1,
        "prims of type PointInstancer": 1,
    }
    assert builder.shape_count == 0
    (tendon,) = report.tendons
    assert (tendon.path, tendon.kind, tendon.targets, tendon.settings) == ("/t", "mjc", ("/b",), {"mjc:stiffness": 5.0})
    assert [path for paths in report.remarks.values() for path in paths] == ["/e", "/m", "/t"]


def test_breaking_cones_and_friction_are_remarked():
    writer = StageWriter()
    pair(writer)
    joint = writer.joint("/j", "ball", "/a", "/b")
    joint.CreateBreakForceAttr(5.0)
    joint.CreateConeAngle0LimitAttr(30.0)
    material = writer.material("/m", 0.5, 0.0)
    UsdPhysics.MaterialAPI(material.GetPrim()).CreateStaticFrictionAttr(0.9)
    bind(writer.shape("/a/c", "Cube", size=1.0), material)
    with pytest.warns(UsdWarning) as caught:
        builder, _ = load(writer.stage)
    message = str(caught[0].message)
    for part in ("breakForce and breakTorque", "cone", "friction", "(1): /m"):
        assert part in message
    assert builder.shape_material_mu == [0.5]


# Files written elsewhere


@pytest.mark.skipif(not SCENES.is_dir(), reason="needs ../shared/scenes")
@pytest.mark.parametrize(
    ("name", "bodies", "dofs", "unknown"),
    [("cartpole", 4, 3, {"gravity"}), ("ant", 9, 14, {"warpSim:armature", "physics:engine"})],
)
def test_scenes_written_elsewhere(name, bodies, dofs, unknown):
    with pytest.warns(UsdWarning, match=min(unknown)):
        builder, report = load(SCENES / f"{name}.usda")
    assert builder.body_count == bodies and builder.joint_dof_count == dofs and unknown <= set(report.not_understood)
    assert not report.remarks
    if name == "cartpole":
        assert builder.body_mass[1:] == [1.0, 0.25, 0.25]
        assert builder.body_mass[0] == pytest.approx(1000.0 * 0.03 * 8.0 * 0.03, rel=1e-6)
        assert builder.joint_limit_lower[0] == -4.0 and builder.joint_type[1] == JointType.PRISMATIC
        at = report.joints["/cartPole/cartPoleJoint"]
        assert np.allclose(builder.joint_X_p[at][:3], [0.11, 0.0, 0.0])  # 0.55 under a scale of 0.2
    else:
        assert (
            builder.joint_limit_upper[6] == pytest.approx(math.radians(40.0))
            and builder.joint_armature[6:] == [pytest.approx(0.01)] * 8
        )
        assert builder.joint_target_ke[6] == pytest.approx(0.04 * 180.0 / math.pi) and np.allclose(
            builder.gravity, [0, 0, -10]
        )
    builder.add_ground_plane(height=-2.0)
    simulation = Simulation(builder, unsupported_contacts="ignore")
    simulation.state.joint_qd.assign(np.full(dofs, 0.3))
    simulation.run(1.0)
    q, qd = simulation.state.joint_q.numpy(), simulation.state.joint_qd.numpy()
    # A second of falling is 10 m/s; a pole of a metre that swings down does less than 15 rad/s.
    assert np.isfinite(q).all() and np.abs(qd).max() < 30.0


def test_random_robots_simulate_stably(rng):
    robot = random_robot(rng, 6)
    builder, _ = load(write_robot(robot, 0.01, 0.001, "Y").stage)
    builder.gravity = -9.81
    simulation = Simulation(builder)
    simulation.run(1.0)
    q = simulation.state.joint_q.numpy()
    low, high = np.array(builder.joint_limit_lower), np.array(builder.joint_limit_upper)
    assert np.isfinite(q).all()
    # Limits are hard constraints; the residual is the correction of one step.
    assert np.all(q > low - 0.05) and np.all(q < high + 0.05)


def crowd(count: int) -> Usd.Stage:
    """A warehouse with static shelves, falling boxes and hinged doors, in a tree of scopes."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    parts = ['#usda 1.0\n(\nmetersPerUnit = 0.01\nupAxis = "Y"\n)\ndef Xform "W"\n{\n']
    for number in range(count // 5):
        parts.append(
            f"""def Xform "g{number}" {{
            double3 xformOp:translate = ({10 * number}, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
            def Cube "shelf" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{ double size = 3 }}
            def Xform "box" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{
                def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{ double size = 2 }} }}
            def PhysicsRevoluteJoint "hinge" {{ rel physics:body0 = </W/g{number}/shelf>
                rel physics:body1 = </W/g{number}/box> }} }}\n"""
        )
    assert layer.ImportFromString("".join(parts).replace("}", "\n}\n") + "}")
    return Usd.Stage.Open(layer)


@pytest.mark.slow
def test_large_stages_take_calls_in_proportion():
    calls = []
    for count in (100, 400):
        stage = crowd(count)
        loaded = []
        calls.append(calls_of(lambda stage=stage, loaded=loaded: loaded.append(load(stage))))
        ((builder, _),) = loaded
        assert builder.shape_count == 2 * count // 5 and builder.body_count == count // 5
    # Four times the prims; a quadratic part would make it sixteen times as many.
    assert calls[1] < 5 * calls[0]
