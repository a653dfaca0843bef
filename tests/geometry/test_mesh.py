"""Meshes: volume properties, hulls and their reduction, files."""

import copy
import warnings

import numpy as np
import pytest
import trimesh
import warp as wp
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from newton_like.geometry.mesh import Heightfield, Mesh

BOX = trimesh.creation.box(extents=[0.2, 0.4, 0.6])


def support(points, directions):
    """How far a set of points reaches in each direction. Matrix products round by the number of rows, sums of columns do not."""
    return np.max(sum(np.outer(points[:, i], directions[:, i]) for i in range(3)), axis=0)


def test_volume_properties_are_exact_for_polyhedra_anywhere(rng):
    """A box that is turned, far away and stored as loose triangles, as STL files are."""
    rotation = Rotation.random(random_state=int(rng.integers(2**31)))
    offset = rng.normal(size=3) * 10.0
    triangles = rotation.apply(np.array(BOX.triangles).reshape(-1, 3)) + offset
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh = Mesh(triangles, np.arange(len(triangles)))
    sides = np.array([0.2, 0.4, 0.6])
    expected = np.prod(sides) / 12.0 * np.diag(np.sum(sides**2) - sides**2)
    assert mesh.is_watertight
    # Coordinates of size 10 with 16 digits hold a 0.2 m box to 1e-14; the products of three keep 1e-12.
    assert mesh.volume == pytest.approx(np.prod(sides), rel=1e-11)
    assert np.allclose(mesh.com, offset, atol=1e-12)
    assert np.allclose(mesh.inertia, rotation.as_matrix() @ expected @ rotation.as_matrix().T, atol=1e-13)


def test_a_mesh_turned_inside_out_is_the_same_solid():
    inside_out = Mesh(BOX.vertices, BOX.faces[:, ::-1])
    assert inside_out.volume == pytest.approx(0.048)
    assert np.all(np.linalg.eigvalsh(inside_out.inertia) > 0)


def test_a_hollow_solid_weighs_less_than_its_hull():
    """Cavities are surfaces turned inwards; they must not fall back to the hull."""
    outer, inner = trimesh.creation.box(extents=[2, 2, 2]), trimesh.creation.box(extents=[1, 1, 1])
    inner.invert()
    both = trimesh.util.concatenate([outer, inner])
    assert Mesh(both.vertices, both.faces).volume == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("faces", "words"),
    [
        (BOX.faces[1:], "closed"),
        (np.vstack([BOX.faces[:1, ::-1], BOX.faces[1:]]), "orientation"),
        (np.vstack([BOX.faces[:6], BOX.faces[:6, ::-1]]), "volume.*hull"),
        (np.vstack([BOX.faces, BOX.faces]), "repeated.*hull"),
    ],
)
def test_meshes_without_a_volume_get_that_of_their_hull_and_say_so(faces, words):
    with pytest.warns(UserWarning, match=words):
        mesh = Mesh(BOX.vertices, faces)
    assert mesh.volume == pytest.approx(ConvexHull(BOX.vertices).volume)


def test_a_flat_mesh_has_no_mass():
    with pytest.warns(UserWarning, match="flat"):
        mesh = Mesh([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], [0, 1, 2, 0, 2, 3])
    assert mesh.volume == 0.0
    assert sorted(map(tuple, mesh.hull_vertices.tolist())) == [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)]


def test_volume_properties_wait_until_they_are_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh = Mesh(BOX.vertices, BOX.faces[1:], compute_inertia=False)
    with pytest.warns(UserWarning):
        assert mesh.volume > 0.0


def test_hull_vertices_are_the_extreme_points(rng):
    cloud = rng.normal(size=(400, 3)) * [1.0, 0.5, 0.1]
    mesh = Mesh(cloud, rng.integers(0, 400, 300), compute_inertia=False, max_hull_vertices=400)
    directions = rng.normal(size=(500, 3))
    assert np.array_equal(support(mesh.hull_vertices, directions), support(cloud, directions))
    assert len(mesh.hull_vertices) == len(ConvexHull(cloud).vertices)
    assert mesh.hull_error == 0.0


@pytest.mark.parametrize("limit", [8, 20, 64])
def test_reduced_hulls_are_inside_and_as_near_as_they_say(rng, limit):
    ball = trimesh.creation.icosphere(subdivisions=3)
    points = ball.vertices * [1.0, 0.6, 0.3]
    mesh = Mesh(points, ball.faces, compute_inertia=False, max_hull_vertices=limit)
    kept = mesh.hull_vertices
    assert len(kept) == limit
    assert {tuple(p) for p in kept} <= {tuple(p) for p in points}
    # The half spaces of the kept points hold all points up to the error, and one point reaches it.
    hull = ConvexHull(kept)
    outside = np.max(points @ hull.equations[:, :3].T + hull.equations[:, 3])
    assert outside == pytest.approx(mesh.hull_error, rel=1e-9)


def test_a_reduced_hull_of_64_points_is_near_a_sphere():
    ball = trimesh.creation.icosphere(subdivisions=4)
    mesh = Mesh(ball.vertices, ball.faces, compute_inertia=False)
    # 64 evenly spread points leave caps with an angle of about 0.25 rad around them: height 1 - cos = 0.03; the greedy
    # choice is less even.
    assert mesh.hull_error < 0.1


def test_flat_hulls_are_reduced_in_their_plane():
    angles = np.linspace(0.0, 2.0 * np.pi, 300, endpoint=False)
    circle = np.stack([np.cos(angles), np.zeros(300), np.sin(angles)], axis=1)
    mesh = Mesh(circle, [0, 1, 2], compute_inertia=False, max_hull_vertices=32)
    # 32 corners on a circle leave arcs of at most twice 2 pi / 32 by the greedy choice: height 1 - cos(0.2) = 0.02.
    assert len(mesh.hull_vertices) == 32 and mesh.hull_error < 0.02


def test_hulls_do_not_depend_on_the_order_of_the_vertices(rng):
    points = rng.normal(size=(500, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    order = rng.permutation(500)
    hulls = [
        Mesh(p, [0, 1, 2], compute_inertia=False, max_hull_vertices=32).hull_vertices for p in (points, points[order])
    ]
    assert np.array_equal(*hulls)


@pytest.mark.parametrize("rank", [1, 2])
def test_hulls_of_flat_and_straight_points_exist(rng, rank):
    points = rng.normal(size=(40, rank)) @ rng.normal(size=(rank, 3)) + rng.normal(size=3)
    hull = Mesh(points, [0, 1, 2], compute_inertia=False).hull_vertices
    directions = rng.normal(size=(100, 3))
    assert np.allclose(support(hull, directions), support(points, directions), atol=1e-12)


@pytest.mark.parametrize("suffix", ["stl", "obj", "dae", "ply", "off"])
def test_files_of_every_format_give_the_same_solid(tmp_path, suffix):
    if suffix == "dae":
        pytest.importorskip("collada")
    path = tmp_path / f"box.{suffix}"
    BOX.export(path)
    mesh = Mesh.from_file(path, scale=(1.0, 2.0, -3.0))
    # STL and some of the others hold float32.
    assert mesh.volume == pytest.approx(6 * 0.048, rel=1e-6)
    assert np.allclose(np.abs(mesh.hull_vertices), [0.1, 0.4, 0.9], rtol=1e-6)
    # A mirrored solid keeps its outside outside.
    triangles = mesh.vertices[mesh.indices.reshape(-1, 3)]
    assert np.sum(np.linalg.det(triangles)) > 0.0


def test_a_file_is_read_once_and_again_after_it_changed(tmp_path):
    path = tmp_path / "box.stl"
    BOX.export(path)
    first = Mesh.from_file(path)
    assert Mesh.from_file(path) is first
    trimesh.creation.icosphere().export(path)
    assert Mesh.from_file(path) is not first


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><created>2020-01-01T00:00:00</created><modified>2020-01-01T00:00:00</modified>{unit}{up}</asset>
<library_geometries><geometry id="g" name="g"><mesh><source id="p">
<float_array id="pa" count="12">0 0 0 1 0 0 0 2 0 0 0 3</float_array><technique_common>
<accessor source="#pa" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles count="4">
<input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s"><node id="n"><translate>10 20 30</translate>
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


@pytest.mark.parametrize("up", ["", "<up_axis>X_UP</up_axis>", "<up_axis>Y_UP</up_axis>", "<up_axis>Z_UP</up_axis>"])
def test_collada_poses_are_applied_and_the_up_axis_is_not_as_in_pinocchio(tmp_path, up):
    pytest.importorskip("collada")
    pin = pytest.importorskip("pinocchio")
    (tmp_path / "m.dae").write_text(COLLADA.format(unit="", up=up))
    urdf = tmp_path / "m.urdf"
    shape = f'<collision><geometry><mesh filename="{tmp_path}/m.dae"/></geometry></collision>'
    urdf.write_text(f'<robot name="r"><link name="a">{shape}</link></robot>')
    geometry = pin.buildGeomFromUrdf(pin.buildModelFromUrdf(str(urdf)), str(urdf), pin.COLLISION).geometryObjects[0]
    theirs = {tuple(v) for v in geometry.geometry.vertices()}
    ours = {tuple(v) for v in Mesh.from_file(tmp_path / "m.dae").vertices.tolist()}
    assert ours == theirs == {(10, 20, 30), (11, 20, 30), (10, 22, 30), (10, 20, 33)}


def test_collada_units_are_applied(tmp_path):
    pytest.importorskip("collada")
    path = tmp_path / "inch.dae"
    path.write_text(COLLADA.format(unit='<unit name="inch" meter="0.0254"/>', up=""))
    assert np.allclose(Mesh.from_file(path).vertices.max(axis=0), np.array([11, 22, 33]) * 0.0254)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"this is no mesh", r"broken\.stl'"),
        (b"", r"broken\.stl'"),
    ],
)
def test_broken_files_are_named(tmp_path, content, words):
    path = tmp_path / "broken.stl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        Mesh.from_file(path)


def test_collada_files_with_entities_are_refused(tmp_path):
    path = tmp_path / "bomb.dae"
    path.write_text('<?xml version="1.0"?><!DOCTYPE COLLADA [<!ENTITY a "aaaa">]><COLLADA>&a;</COLLADA>')
    with pytest.raises(ValueError, match="entities"):
        Mesh.from_file(path)


def test_missing_files_and_zero_scales_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.stl"):
        Mesh.from_file(tmp_path / "nowhere.stl")
    BOX.export(tmp_path / "box.stl")
    with pytest.raises(ValueError, match=r"scale \(1\.0, 0\.0, 1\.0\)"):
        Mesh.from_file(tmp_path / "box.stl", scale=(1, 0, 1))


@pytest.mark.parametrize(
    ("vertices", "indices", "words"),
    [
        ([], [0, 1, 2], "vertices.*shape"),
        ([(0, 0, 0), (1, 0, 0), (0, np.nan, 0)], [0, 1, 2], "vertex 2 .*finite"),
        (np.eye(3), [], "indices.*triangle"),
        (np.eye(3), [0, 1], "indices.*triangle"),
        (np.eye(3), [0, 1, 3], "index 3 .*3 vert"),
        (np.eye(3), [0, 1, -1], "index -1 .*vert"),
        (np.eye(3), [0, 1, 1.5], "indices.*whole"),
    ],
)
def test_impossible_meshes_are_refused(vertices, indices, words):
    with pytest.raises(ValueError, match=words):
        Mesh(vertices, indices)


def test_meshes_are_shared_and_do_not_change():
    mesh = Mesh(BOX.vertices, BOX.faces)
    assert copy.deepcopy([mesh])[0] is mesh
    with pytest.raises(ValueError, match="read-only"):
        mesh.vertices[0, 0] = 1.0


def test_heightfields_keep_their_heights(rng):
    heights = rng.normal(size=(3, 4))
    field = Heightfield(heights, 3, 4, hx=2.0, hy=1.0)
    assert np.allclose(field.min_z + field.data * (field.max_z - field.min_z), heights)
    stretched = Heightfield(heights, 3, 4, min_z=-1.0, max_z=5.0)
    assert stretched.data.min() == 0.0 and stretched.data.max() == 1.0 and stretched.max_z == 5.0
    assert Heightfield(np.full((2, 2), 3.0), 2, 2).min_z == 3.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1, 2]], 1, 2), r"nrow 1 .*2"),
        (([[1, 2], [3, 4]], 2, 3), r"4 heights.*\b2\b.*\b3\b"),
        (([[1, 2], [3, np.inf]], 2, 2), "heights.*finite"),
        (([[1, 2], [3, 4]], 2, 2, 0.0), r"hx 0\.0 .*hy 1\.0"),
        (([[1, 2], [3, 4]], 2, 2, 1.0, 1.0, 0.0), "min_z.*max_z"),
        (([[1, 2], [3, 4]], 2, 2, 1.0, 1.0, 1.0, 0.0), r"min_z 1\.0 .*max_z 0\.0"),
    ],
)
def test_impossible_heightfields_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Heightfield(*arguments)


CORNERS = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
FACES = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mesh("x", FACES), TypeError, r"mesh: vertices .*array.*\bx\b"),
        (lambda: Mesh(np.zeros((4, 3), complex), FACES), TypeError, "vertices.*array"),
        (lambda: Mesh([[0, 0], [0, 0, 1]], FACES), TypeError, "vertices.*array"),
        (lambda: Mesh(np.zeros((3, 4)), FACES), ValueError, r"vertices.*\[n, 3\].*\[3, 4\]"),
        (lambda: Mesh([*CORNERS, [0, 0, 1e31]], FACES), ValueError, r"vertex 4.*1e\+30"),
        (lambda: Mesh(CORNERS, [["a"] * 3]), TypeError, "indices.*array"),
        (lambda: Mesh(CORNERS, [0, 1, float("nan")]), ValueError, "indices.*whole"),
        (lambda: Mesh(CORNERS, [0, 1, 1e300]), ValueError, "indices.*whole"),
        (lambda: Mesh(CORNERS, FACES, max_hull_vertices=8.5), TypeError, "max_hull_vertices"),
        (lambda: Mesh(CORNERS, FACES, color="red"), TypeError, r"color.*3.*'red'"),
        (lambda: Mesh(CORNERS, FACES, is_solid="no"), TypeError, r"is_solid.*True.*False"),
        (lambda: Mesh(CORNERS, FACES, path=5), TypeError, r"path.*5"),
        (lambda: Mesh.from_file(None), TypeError, r"path.*None"),
        (lambda: Mesh.from_file(__file__, scale=(1, 2)), ValueError, r"test_mesh.py': scale.*3"),
        (lambda: Mesh.from_file(__file__, scale="x"), TypeError, r"test_mesh.py': scale.*'x'"),
        (lambda: Heightfield("x", 2, 2), TypeError, "heightfield: data.*array"),
        (lambda: Heightfield([0] * 4, 2.5, 2), TypeError, "heightfield: nrow.*integer"),
        (lambda: Heightfield([0] * 4, 2, 2, hx="wide"), TypeError, "heightfield: hx.*number"),
        (lambda: Heightfield([0, 0, 0, 1e31], 2, 2), ValueError, r"heights.*finite.*1e\+30"),
    ],
)
def test_wrong_arguments_are_named(make, error, message):
    Mesh(CORNERS, FACES)
    with pytest.raises(error, match=message):
        make()


@wp.kernel
def shoot(mesh: wp.uint64, start: wp.array[wp.vec3], direction: wp.array[wp.vec3], distance: wp.array[float]):
    i = wp.tid()
    distance[i] = wp.mesh_query_ray(mesh, start[i], direction[i], 10.0).t


def test_a_warp_mesh_is_made_once_and_hit_by_rays(rng):
    """Rays from the centre of a box reach its surface at the distance of the slabs."""
    mesh = Mesh(BOX.vertices, BOX.faces)
    ident = mesh.finalize("cpu")
    assert mesh.finalize("cpu") == ident != mesh.finalize("cpu", requires_grad=True)
    directions = rng.normal(size=(20, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    expected = np.min(np.array([0.1, 0.2, 0.3]) / np.abs(directions), axis=1)
    found = wp.zeros(20, dtype=float, device="cpu")
    rays = [wp.zeros(20, dtype=wp.vec3, device="cpu"), wp.array(directions, dtype=wp.vec3, device="cpu")]
    wp.launch(shoot, 20, inputs=[wp.uint64(ident), *rays], outputs=[found], device="cpu")
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
