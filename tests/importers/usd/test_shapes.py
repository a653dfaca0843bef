"""The USD importer: shapes of gprims, approximations, materials, visuals, sites."""

import math

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Gf, Sdf, UsdGeom, UsdPhysics, Vt

from newton_like.geometry.transforms import (
    IDENTITY,
    quat_to_matrix,
)
from newton_like.importers.usd import UsdWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.configs import ShapeConfig
from newton_like.types import GeoType, ShapeFlags
from tests.support.usd_stages import (
    CUBE_FACES,
    StageWriter,
    add_mesh,
    bind,
    cube_points,
    load,
    random_pose,
    text,
)


@pytest.mark.filterwarnings("ignore:.*neither mass nor colliders")
@pytest.mark.parametrize("axis", "XYZ")
@pytest.mark.parametrize("kind", ["Capsule", "Cylinder", "Cone", "Capsule_1", "Cylinder_1", "Plane"])
def test_shapes_along_an_axis(rng, kind, axis):
    writer = StageWriter()
    writer.body("/b", IDENTITY)
    sizes = {"Plane": {}}.get(kind, {"radius": 0.2, "height": 0.6})
    if kind.endswith("_1"):
        sizes = {"radiusTop": 0.2, "radiusBottom": 0.2, "height": 0.6}
    pose = random_pose(rng)
    writer.shape("/b/c", kind, pose, axis=axis, **sizes)
    builder, report = load(writer.stage)
    (index,) = report.shapes["/b/c"]
    expected = {"Plane": GeoType.PLANE, "Cone": GeoType.CONE}.get(
        kind, GeoType.CAPSULE if kind.startswith("Capsule") else GeoType.CYLINDER
    )
    assert builder.shape_type[index] == expected
    assert np.allclose(builder.shape_scale[index], [0, 0, 0] if kind == "Plane" else [0.2, 0.3, 0.0])
    up = quat_to_matrix(builder.shape_transform[index][3:])[:, 2]
    assert np.allclose(up, quat_to_matrix(pose[3:])[:, "XYZ".index(axis)], atol=1e-12)
    assert np.allclose(builder.shape_transform[index][:3], pose[:3])


@pytest.mark.parametrize("kind", ["Cylinder_1", "Capsule_1"])
def test_round_shapes_with_two_radii_are_hulls(kind):
    """The volume of a frustum, and of a capsule between the cylinders of its two radii."""
    writer = StageWriter()
    writer.body("/b", IDENTITY, {"density": 1.0})
    writer.shape("/b/c", kind, radiusTop=0.1, radiusBottom=0.3, height=1.0)
    builder, _ = load(writer.stage)
    frustum = math.pi / 3.0 * (0.01 + 0.03 + 0.09)
    if kind == "Cylinder_1":
        # A polygon of 32 corners has 0.64 % less area than its circle.
        assert builder.body_mass[0] == pytest.approx(frustum, rel=0.007)
        assert builder.body_com[0][2] < 0.0
    else:
        assert frustum < builder.body_mass[0] < frustum + 4.0 / 3.0 * math.pi * 0.3**3
    assert builder.shape_type == [GeoType.CONVEX_MESH]


def test_a_ball_under_an_uneven_scale_is_an_ellipsoid(rng):
    writer = StageWriter()
    writer.body("/b", IDENTITY)
    prim = writer.shape("/b/c", "Sphere", radius=0.2)
    scale = np.array([1.0, 2.0, -3.0])
    UsdGeom.Xformable(prim).AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*scale))
    builder, _ = load(writer.stage)
    assert builder.shape_type == [GeoType.ELLIPSOID] and np.allclose(builder.shape_scale[0], 0.2 * np.abs(scale))


def test_an_uneven_scale_across_a_round_shape_is_remarked():
    writer = StageWriter()
    prim = writer.shape("/c", "Cylinder", radius=0.2, height=1.0)
    UsdGeom.Xformable(prim).AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(1.0, 2.0, 3.0))
    with pytest.warns(UsdWarning, match=r"scale.*\(1\): /c"):
        builder, _ = load(writer.stage)
    assert np.allclose(builder.shape_scale[0], [0.4, 1.5, 0.0])


def test_points_are_balls(rng):
    writer = StageWriter(0.1)
    points = UsdGeom.Points.Define(writer.stage, "/p")
    where = rng.normal(size=(3, 3)).astype(np.float32)
    points.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(where))
    points.CreateWidthsAttr([0.5, 1.0, 2.0])
    UsdPhysics.CollisionAPI.Apply(points.GetPrim())
    builder, report = load(writer.stage)
    assert len(report.shapes["/p"]) == 3
    assert np.allclose([s[0] for s in builder.shape_scale], [0.025, 0.05, 0.1])
    assert np.allclose([x[:3] for x in builder.shape_transform], 0.1 * where)


@pytest.mark.parametrize(
    ("token", "types"),
    [
        (None, [GeoType.MESH]),
        ("none", [GeoType.MESH]),
        ("convexHull", [GeoType.CONVEX_MESH]),
        ("convexDecomposition", [GeoType.CONVEX_MESH] * 2),
        ("boundingCube", [GeoType.BOX]),
        ("boundingSphere", [GeoType.SPHERE]),
        ("meshSimplification", [GeoType.MESH]),
    ],
)
@pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")
def test_approximations_of_meshes(token, types):
    """Two cubes, one metre apart: the surface, its hull, its parts, a box, a ball around the box's middle."""
    writer = StageWriter(0.5)
    writer.body("/b", IDENTITY, {"density": 1.0})
    points = np.concatenate([cube_points(), cube_points(center=(3.0, 0.0, 0.0))])
    faces = CUBE_FACES + [tuple(i + 8 for i in face) for face in CUBE_FACES]
    add_mesh(writer, "/b/m", points, faces, token)
    builder, report = load(writer.stage)
    assert [builder.shape_type[i] for i in report.shapes["/b/m"]] == types
    volume = {"convexHull": 0.5, "boundingCube": 0.5}.get(token, 0.25)
    if token == "boundingSphere":
        volume = 4.0 / 3.0 * math.pi * (0.5 * np.linalg.norm([2.0, 0.5, 0.5])) ** 3
    assert builder.body_mass[0] == pytest.approx(volume, rel=1e-6)
    assert np.allclose(builder.body_com[0], [0.75, 0.0, 0.0], atol=1e-9)


def test_left_handed_faces_holes_and_shared_meshes():
    writer = StageWriter()
    writer.body("/b", IDENTITY, {"density": 1.0})
    mesh = add_mesh(writer, "/b/m", cube_points(), [face[::-1] for face in CUBE_FACES])
    mesh.CreateOrientationAttr("leftHanded")
    for number in range(3):
        add_mesh(writer, f"/b/same_{number}", cube_points(), CUBE_FACES)
    holed = add_mesh(writer, "/holed", cube_points(), CUBE_FACES)
    holed.CreateHoleIndicesAttr([0])
    builder, report = load(writer.stage)
    assert builder.body_mass[0] == pytest.approx(4.0)
    assert len({id(builder.shape_source[report.shapes[f"/b/same_{n}"][0]]) for n in range(3)}) == 1
    left = builder.shape_source[report.shapes["/b/m"][0]]
    same = builder.shape_source[report.shapes["/b/same_0"][0]]
    assert left.volume == pytest.approx(same.volume) and left.is_watertight
    assert len(builder.shape_source[report.shapes["/holed"][0]].indices) == 3 * 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*convexDecomposition")
def test_worlds_that_read_the_same_stage_share_its_meshes():
    """Also the connected parts of one; a mesh with other points is another."""
    writer = StageWriter()
    points = np.concatenate([cube_points(), cube_points(center=(3.0, 0.0, 0.0))])
    faces = [tuple(8 * part + i for i in face) for part in (0, 1) for face in CUBE_FACES]
    add_mesh(writer, "/parts", points, faces, "convexDecomposition")
    add_mesh(writer, "/whole", cube_points(), CUBE_FACES)
    builder = ModelBuilder()
    for _ in range(2):
        builder.begin_world()
        builder.add_usd(writer.stage)
        builder.end_world()
    ours = list(map(id, builder.shape_source))
    assert len(ours) == 6 and len(set(ours)) == 3 and ours[:3] == ours[3:]
    add_mesh(writer, "/whole", cube_points((0.5, 0.5, 0.6)), CUBE_FACES)
    other, report = load(writer.stage)
    assert id(other.shape_source[report.shapes["/whole"][0]]) not in ours


def test_hull_sizes(rng):
    points = rng.normal(size=(200, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    writer = StageWriter()
    for path, name in (
        ("/a", "newton:maxHullVertices"),
        ("/b", "physxConvexHullCollision:hullVertexLimit"),
        ("/c", None),
    ):
        mesh = add_mesh(writer, path, points, [(0, 1, 2)], "convexHull").GetPrim()
        if name:
            mesh.CreateAttribute(name, Sdf.ValueTypeNames.Int).Set(12)
    builder, report = load(writer.stage, mesh_maxhullvert=20)
    counts = [len(builder.shape_source[report.shapes[path][0]].hull_vertices) for path in ("/a", "/b", "/c")]
    assert counts == [12, 12, 20]


def test_disabled_colliders_neither_weigh_nor_collide():
    writer = StageWriter()
    writer.body("/b", IDENTITY)
    prim = writer.shape("/b/c", "Cube", size=1.0)
    UsdPhysics.CollisionAPI(prim).CreateCollisionEnabledAttr(False)
    with pytest.warns(UsdWarning, match=r"mass.*\(1\): /b$"):
        builder, _ = load(writer.stage)
    assert builder.body_mass == [0.0]
    assert not builder.shape_flags[0] & ShapeFlags.COLLIDE_SHAPES


def test_shells_weigh_what_their_walls_do():
    """The wall has the thickness of the margin, in the units of the stage."""
    writer = StageWriter(0.01)
    for name in "abc":
        writer.body(f"/{name}", IDENTITY)
        shape = writer.shape(f"/{name}/s", "Sphere", radius=1.0)
        prim = shape.GetPrim()
        if name != "c":
            prim.CreateAttribute("newton:massModel", Sdf.ValueTypeNames.Token).Set("shell")
        if name == "a":
            prim.CreateAttribute("newton:contactMargin", Sdf.ValueTypeNames.Float).Set(25.0)
    with pytest.warns(UsdWarning, match=r"margin.*\(1\): /b/s$"):
        builder, _ = load(writer.stage)
    whole = 1000.0 * 4.0 / 3.0 * math.pi
    assert builder.body_mass == pytest.approx([whole * (1.0 - 0.75**3), whole, whole], rel=1e-12)
    assert builder.shape_is_solid == [False, False, True]
    writer.stage.GetPrimAtPath("/a/s").GetAttribute("newton:contactMargin").Set(200.0)
    with pytest.raises(ImportFileError, match=r"^tmp.usda.*</a/s>.*mass.*2.*1"):
        load(writer.stage)


def test_materials():
    writer = StageWriter()
    steel = writer.material("/steel", 0.3, 0.7, density=7800.0)
    writer.number(steel.GetPrim(), "newton:torsionalFriction", 0.01)
    writer.number(steel.GetPrim(), "newton:rollingFriction", 0.02)
    top = writer.xform("/top").GetPrim()
    bind(top, steel)
    writer.shape("/top/inherits", "Cube", size=1.0)
    writer.shape("/plain", "Cube", size=1.0)
    builder, report = load(writer.stage)
    a, b = report.shapes["/top/inherits"][0], report.shapes["/plain"][0]
    assert [builder.shape_material_mu[a], builder.shape_material_restitution[a]] == pytest.approx([0.3, 0.7])
    assert [builder.shape_material_mu_torsional[a], builder.shape_material_mu_rolling[a]] == pytest.approx([0.01, 0.02])
    assert builder.shape_material_mu[b] == ShapeConfig().mu and builder.shape_material_restitution[b] == 0.0


def test_visuals_and_purposes():
    writer = StageWriter()
    writer.body("/b", IDENTITY, {"mass": 1.0})
    look = writer.shape("/b/look", "Sphere", collides=False, radius=0.1)
    UsdGeom.Gprim(look).CreateDisplayColorAttr([(0.1, 0.2, 0.3)])
    UsdGeom.Gprim(look).CreateDisplayOpacityAttr([0.5])
    guide = writer.shape("/b/guide", "Sphere", radius=0.1)
    UsdGeom.Imageable(guide).CreatePurposeAttr("guide")
    hidden = writer.shape("/b/hidden", "Sphere", collides=False, radius=0.1)
    UsdGeom.Imageable(hidden).MakeInvisible()
    builder, report = load(writer.stage)
    assert set(report.shapes) == {"/b/look", "/b/guide"}
    look, guide = report.shapes["/b/look"][0], report.shapes["/b/guide"][0]
    assert builder.shape_color[look] == pytest.approx((0.1, 0.2, 0.3)) and builder.shape_opacity[look] == 0.5
    assert builder.shape_flags[look] == ShapeFlags.VISIBLE
    assert (
        builder.shape_flags[guide] & ShapeFlags.COLLIDE_SHAPES and not builder.shape_flags[guide] & ShapeFlags.VISIBLE
    )
    assert load(writer.stage, force_show_colliders=True)[0].shape_flags[guide] & ShapeFlags.VISIBLE
    assert set(load(writer.stage, hide_visuals=True)[1].shapes) == {"/b/guide"}
    swapped, report = load(writer.stage, parse_visuals_as_colliders=True)
    assert set(report.shapes) == {"/b/look", "/b/hidden"}
    assert swapped.shape_flags[0] & ShapeFlags.COLLIDE_SHAPES


def test_sites():
    source = text(
        """def Xform "b" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
        { float physics:mass = 1
          def Xform "tip" (prepend apiSchemas = ["MjcSiteAPI"])
          { double3 xformOp:translate = (1, 2, 3)
            uniform token[] xformOpOrder = ["xformOp:translate"] } }"""
    )
    with pytest.warns(UsdWarning, match=r"ball.*0\.1 m.*\(1\): /b"):
        builder, report = load(source)
    (index,) = report.shapes["/b/tip"]
    assert builder.shape_flags[index] & ShapeFlags.SITE and np.allclose(builder.shape_transform[index][:3], [1, 2, 3])
    assert builder.body_mass == [1.0]


def test_colours_are_inherited():
    """The nearest prim above that has one counts; a gprim's own comes first, and a look by material last."""
    cube = 'def Cube "{}" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{ {} }}\n'
    red = "color3f[] primvars:displayColor = [(1, 0, 0)]\nfloat[] primvars:displayOpacity = [0.5]\n"
    green = "color3f[] primvars:displayColor = [(0, 1, 0)]\n"
    source = f'def Xform "a" {{ {red}{cube.format("below", "")}{cube.format("own", green)}def Xform "b" {{ {cube.format("deep", "")} }} }}'
    builder = ModelBuilder()
    report = builder.add_usd(text(source + cube.format("alone", "")))
    colors = {path: builder.shape_color[shape] for path, (shape,) in report.shapes.items()}
    opacities = {path: builder.shape_opacity[shape] for path, (shape,) in report.shapes.items()}
    assert tuple(colors["/a/below"]) == tuple(colors["/a/b/deep"]) == (1.0, 0.0, 0.0)
    assert tuple(colors["/a/own"]) == (0.0, 1.0, 0.0) and tuple(colors["/alone"]) != (1.0, 0.0, 0.0)
    assert opacities == {"/a/below": 0.5, "/a/b/deep": 0.5, "/a/own": 0.5, "/alone": 1.0}
