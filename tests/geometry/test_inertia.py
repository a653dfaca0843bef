"""Mass properties of shapes and of assemblies: MuJoCo, tessellations, quadrature and the laws of rigid bodies."""

import mujoco
import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from newton_like.geometry import inertia, shapes
from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.geometry.transforms import transform
from newton_like.types import GeoType

SIZES = {
    GeoType.SPHERE: 1,
    GeoType.BOX: 3,
    GeoType.CAPSULE: 2,
    GeoType.CYLINDER: 2,
    GeoType.ELLIPSOID: 3,
    GeoType.CONE: 2,
}


def random_scale(rng, geo_type):
    return [*rng.uniform(0.05, 0.4, SIZES[geo_type]), *[0.0] * (3 - SIZES[geo_type])]


def random_body(rng):
    """A possible body: a handful of point masses."""
    points, masses = rng.normal(size=(8, 3)), rng.uniform(0.1, 2.0, 8)
    com = masses @ points / masses.sum()
    r = points - com
    moments = np.einsum(
        "n,nij->ij", masses, np.einsum("ni,ni,jk->njk", r, r, np.eye(3)) - np.einsum("ni,nj->nij", r, r)
    )
    return masses.sum(), com, moments, points, masses


def tessellation(geo_type, scale):
    """A fine mesh of a shape, from trimesh."""
    a, b, c = scale
    if geo_type == GeoType.SPHERE:
        return trimesh.creation.icosphere(subdivisions=5, radius=a)
    if geo_type == GeoType.ELLIPSOID:
        mesh = trimesh.creation.icosphere(subdivisions=5)
        mesh.apply_scale([a, b, c])
        return mesh
    if geo_type == GeoType.BOX:
        return trimesh.creation.box(extents=[2 * a, 2 * b, 2 * c])
    if geo_type == GeoType.CYLINDER:
        return trimesh.creation.cylinder(radius=a, height=2 * b, sections=400)
    if geo_type == GeoType.CAPSULE:
        mesh = trimesh.creation.icosphere(subdivisions=5, radius=a)
        vertices = mesh.vertices.copy()
        vertices[:, 2] += np.where(vertices[:, 2] > 0, b, -b)
        return trimesh.Trimesh(vertices, mesh.faces).convex_hull
    cone = trimesh.creation.cone(radius=a, height=2 * b, sections=400)
    cone.apply_translation([0, 0, -b])
    return cone


@pytest.mark.parametrize("geo_type", [g for g in SIZES if g != GeoType.CONE])
def test_solids_have_the_mass_and_inertia_that_mujoco_computes(rng, geo_type):
    scale, density = random_scale(rng, geo_type), rng.uniform(100.0, 5000.0)
    kind = getattr(mujoco.mjtGeom, f"mjGEOM_{geo_type.name}")
    spec = mujoco.MjSpec()
    # MuJoCo needs positive numbers for unused sizes.
    size = [s if s > 0 else 1.0 for s in scale]
    spec.worldbody.add_body(name="b").add_geom(type=kind, size=size, density=density)
    body = spec.compile().body("b")
    mass, com, moments = shapes.mass_properties(geo_type, scale, density)
    # Both are closed forms in float64.
    assert mass == pytest.approx(body.mass[0], rel=1e-12)
    assert np.allclose(com, body.ipos, atol=1e-12)
    # MuJoCo turns the axes so that the moments descend.
    assert np.allclose(np.sort(np.linalg.eigvalsh(moments)), np.sort(body.inertia), rtol=1e-11)


@pytest.mark.parametrize("geo_type", list(SIZES))
def test_solids_are_the_limit_of_their_tessellations(rng, geo_type):
    """Checks axes, centre of mass and the cone, which MuJoCo does not have."""
    scale = random_scale(rng, geo_type)
    solid = tessellation(geo_type, scale)
    mass, com, moments = shapes.mass_properties(geo_type, scale, 1000.0)
    # Chords of 1/400 of a turn (and edges of 2^-5 radians of the icosphere) cut off about 4e-4 of the volume and 1e-3
    # of the moments.
    assert mass == pytest.approx(1000.0 * solid.volume, rel=3e-3)
    assert np.allclose(com, solid.center_mass, atol=1e-3 * max(scale))
    assert np.allclose(moments, 1000.0 * solid.moment_inertia, atol=5e-3 * np.max(moments))


@pytest.mark.parametrize("geo_type", list(SIZES))
def test_thin_shells_are_the_surfaces_of_the_shapes(rng, geo_type):
    """The difference of two solids, against the sum over the triangles of a fine surface."""
    scale = random_scale(rng, geo_type)
    thickness = 1e-5
    surface = tessellation(geo_type, scale)
    sheet = Mesh(surface.vertices, surface.faces, is_solid=False)
    expected = shapes.mass_properties(GeoType.MESH, (1, 1, 1), 700.0, sheet, False, thickness)
    mass, com, moments = shapes.mass_properties(geo_type, scale, 700.0, is_solid=False, thickness=thickness)
    if geo_type == GeoType.ELLIPSOID:
        # Smaller semi-axes by t make a wall that is thinner than t where the surface is oblique: an upper bound only,
        # and to the error of the tessellation, which is smaller than the surface.
        assert 0.5 * expected[0] < mass < 1.005 * expected[0]
        return
    # Thickness over size is 2e-4, the tessellation adds 2e-3.
    assert mass == pytest.approx(expected[0], rel=5e-3)
    assert np.allclose(com, expected[1], atol=2e-3 * max(scale))
    assert np.allclose(moments, expected[2], atol=1e-2 * np.max(moments))


def test_surface_of_a_rectangle_has_the_textbook_inertia():
    a, b = 0.3, 0.7
    corners = [(0, 0, 2), (a, 0, 2), (a, b, 2), (0, b, 2)]
    sheet = Mesh(corners, [0, 1, 2, 0, 2, 3], is_solid=False)
    assert sheet.volume == pytest.approx(a * b)
    assert np.allclose(sheet.com, [a / 2, b / 2, 2])
    assert np.allclose(sheet.inertia, a * b / 12 * np.diag([b * b, a * a, a * a + b * b]), atol=1e-15)


@pytest.mark.parametrize("geo_type", [GeoType.MESH, GeoType.CONVEX_MESH])
def test_scaled_meshes_have_the_properties_of_the_scaled_geometry(rng, geo_type):
    points = rng.normal(size=(30, 3)) + rng.normal(size=3)
    hull = trimesh.convex.convex_hull(points)
    scale = rng.uniform(0.5, 2.0, 3) * rng.choice([-1.0, 1.0], 3)
    mass, com, moments = shapes.mass_properties(geo_type, scale, 3.0, Mesh(hull.vertices, hull.faces))
    scaled = trimesh.convex.convex_hull(hull.vertices * scale)
    assert mass == pytest.approx(3.0 * scaled.volume, rel=1e-9)
    assert np.allclose(com, scaled.center_mass, atol=1e-9)
    assert np.allclose(moments, 3.0 * scaled.moment_inertia, rtol=1e-8, atol=1e-9 * np.max(moments))


def test_shapes_without_mass_have_none():
    for geo_type in (GeoType.PLANE, GeoType.HFIELD, GeoType.NONE):
        mass, com, moments = shapes.mass_properties(geo_type, (1, 1, 1), 1000.0)
        assert mass == 0.0 and not com.any() and not moments.any()
    assert shapes.mass_properties(GeoType.BOX, (1, 1, 1), 0.0)[0] == 0.0


@pytest.mark.parametrize("geo_type", list(SIZES))
def test_bounding_sphere_is_the_smallest_around_the_origin(rng, geo_type):
    scale = random_scale(rng, geo_type)
    reach = np.linalg.norm(tessellation(geo_type, scale).vertices, axis=1).max()
    radius = shapes.bounding_radius(geo_type, scale)
    # All tessellations have vertices on the surface, but not at every extreme point.
    assert reach <= radius * (1 + 1e-12) and radius == pytest.approx(reach, rel=2e-3)


def test_bounding_spheres_of_meshes_heightfields_and_planes(rng):
    points = rng.normal(size=(20, 3))
    mesh = Mesh(points, rng.integers(0, 20, 60), compute_inertia=False)
    scale = rng.uniform(-2, 2, 3)
    assert shapes.bounding_radius(GeoType.MESH, scale, mesh) == pytest.approx(
        np.linalg.norm(points * scale, axis=1).max()
    )
    field = Heightfield([[0.0, 1.0], [2.0, -5.0]], 2, 2, hx=3.0, hy=4.0)
    assert shapes.bounding_radius(GeoType.HFIELD, (1, 1, 2), field) == pytest.approx(np.sqrt(9 + 16 + 100))
    assert shapes.bounding_radius(GeoType.PLANE, (6, 8, 0)) == pytest.approx(5.0)
    assert shapes.bounding_radius(GeoType.PLANE, (0, 0, 0)) == shapes.INFINITE_RADIUS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((GeoType.SPHERE, (-1, 0, 0), 1.0), "SPHERE: radius -1"),
        ((GeoType.BOX, (1, -2, 1), 1.0), r"BOX: .*\by -2"),
        ((GeoType.BOX, (1, np.nan, 1), 1.0), "BOX: scale .*finite"),
        ((GeoType.BOX, (1, 1), 1.0), r"BOX: scale \(1, 1\)"),
        ((GeoType.BOX, (1, 1, 1), -1.0), "density -1.0 kg/m.3 .*0"),
        ((GeoType.MESH, (1, 1, 1), 1.0), "MESH.*source"),
        ((GeoType.MESH, (1, 0, 1), 1.0), r"MESH: scale \[1\.0, 0\.0, 1\.0\]"),
        ((GeoType.BOX, (1, 1, 1), 1.0, None, False, 0.0), "shell.*thickness"),
        (
            (GeoType.CYLINDER, (1, 0.1, 0), 1.0, None, False, 0.2),
            r"thickness 0\.2 .*half height 0\.1",
        ),
        ((GeoType.CONE, (1, 1, 0), 1.0, None, False, 0.9), "inscribed sphere"),
    ],
)
def test_impossible_shapes_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        shapes.mass_properties(*arguments)


def test_parts_of_a_body_combine_to_the_whole(rng):
    """A split of point masses in any three groups has the same sum, wherever the frames of the groups are."""
    mass, com, moments, points, masses = random_body(rng)
    parts = []
    for group in np.array_split(rng.permutation(len(points)), 3):
        pose = transform(rng.normal(size=3), Rotation.random(random_state=int(rng.integers(2**31))).as_quat())
        rotation = Rotation.from_quat(pose[3:])
        local = rotation.inv().apply(points[group] - pose[:3])
        part = [(m, p, np.zeros((3, 3))) for m, p in zip(masses[group], local, strict=True)]
        parts.append(inertia.transform(*inertia.combine(part), pose))
    total = inertia.combine(parts)
    assert total[0] == pytest.approx(mass, rel=1e-12)
    assert np.allclose(total[1], com, atol=1e-12) and np.allclose(total[2], moments, atol=1e-11)


def test_nothing_combines_to_nothing():
    mass, com, moments = inertia.combine([])
    assert mass == 0.0 and not com.any() and not moments.any()


def test_possible_bodies_pass_the_check_even_in_float32(rng):
    for _ in range(50):
        mass, _, moments, _, _ = random_body(rng)
        assert inertia.check(mass, moments.astype(np.float32)) is None
    # A thin plate is on the edge of the triangle inequality, a rod on that of positivity, a point on both.
    rotation = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
    for edge in ([1, 1, 2], [0, 1, 1], [0, 0, 0]):
        assert inertia.check(1.0, (rotation @ np.diag(edge) @ rotation.T).astype(np.float32)) is None
    assert inertia.check(0.0, np.zeros((3, 3))) is None


@pytest.mark.parametrize(
    ("mass", "moments", "words"),
    [
        (-1.0, np.eye(3), "mass -1 kg"),
        (np.nan, np.eye(3), "mass nan"),
        (1.0, np.diag([1, np.inf, 1]), "finite"),
        (1.0, np.diag([1.0, 1.0, 2.001]), "triangle"),
        (1.0, np.diag([1.0, 1.0, -0.01]), "negative"),
        (1.0, np.array([[1.0, 0.1, 0], [0, 1, 0], [0, 0, 1]]), "symmetric"),
        (0.0, np.eye(3), "mass"),
    ],
)
def test_impossible_bodies_fail_the_check(mass, moments, words):
    assert words in inertia.check(mass, moments)


def test_the_nearest_possible_inertia_is_possible_and_nearest(rng):
    for _ in range(20):
        bad = rng.normal(size=(3, 3))
        bad = bad + bad.T
        good = inertia.nearest_possible(bad)
        assert inertia.check(1.0, good) is None
        # Optimality of a projection on a convex cone, in second moments S = tr(I)/2 - I: no other body lies in the
        # direction of the given matrix.
        second = lambda i: 0.5 * np.trace(i) * np.eye(3) - i  # noqa: E731
        for _ in range(20):
            other = random_body(rng)[2] * rng.uniform(0, 1)
            assert np.sum((second(bad) - second(good)) * (second(other) - second(good))) < 1e-9
    body = random_body(rng)[2]
    assert np.allclose(inertia.nearest_possible(body), body, atol=1e-12)
