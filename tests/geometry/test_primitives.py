"""Meshes of simple shapes against their closed forms."""

import math

import numpy as np
import pytest

from newton_like import Axis, Mesh


def test_boxes_have_the_mass_of_boxes(rng):
    half = rng.uniform(0.1, 2.0, 3)
    mesh = Mesh.create_box(*half)
    assert mesh.is_watertight
    volume = 8.0 * half.prod()
    moments = volume / 3.0 * (np.dot(half, half) - half**2)
    np.testing.assert_allclose([mesh.volume, *np.diag(mesh.inertia)], [volume, *moments], rtol=1e-12)
    np.testing.assert_allclose(np.ptp(Mesh.create_box(half[0]).vertices, axis=0), 2.0 * half[0])


@pytest.mark.parametrize("axis", list(Axis))
def test_round_shapes_lie_in_those_that_they_approximate(rng, axis):
    """Closed, centred, as long as they should be, with the volumes of prisms and pyramids over a polygon."""
    r, h, n = *rng.uniform(0.1, 2.0, 2), int(rng.integers(24, 40))
    polygon = 0.5 * n * r * r * math.sin(2.0 * math.pi / n)
    settings = {"up_axis": axis, "segments": n}
    around = [i for i in range(3) if i != axis]
    for mesh, volume, half_length in (
        (Mesh.create_cylinder(r, h, **settings), 2.0 * h * polygon, h),
        (Mesh.create_cone(r, h, **settings), 2.0 / 3.0 * h * polygon, h),
        (Mesh.create_capsule(r, h, **settings), None, r + h),
    ):
        assert mesh.is_watertight
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        np.testing.assert_allclose([-low[axis], high[axis]], half_length, rtol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(mesh.vertices[:, around], axis=1).max(), r, rtol=1e-6)
        if volume is not None:
            assert mesh.volume == pytest.approx(volume, rel=1e-6)
        else:
            exact = math.pi * r * r * (2.0 * h + 4.0 / 3.0 * r)
            assert 0.95 * exact < mesh.volume < exact
    # the tip of a cone points along the axis
    cone = Mesh.create_cone(r, h, **settings)
    assert cone.com[axis] == pytest.approx(-0.5 * h, rel=1e-6)


def test_vertices_of_ellipsoids_lie_on_them(rng):
    radii = rng.uniform(0.1, 2.0, 3)
    for mesh, sizes in ((Mesh.create_ellipsoid(*radii), radii), (Mesh.create_sphere(radii[0]), radii[[0, 0, 0]])):
        assert mesh.is_watertight
        np.testing.assert_allclose(np.linalg.norm(mesh.vertices / sizes, axis=1), 1.0, rtol=1e-6)
        exact = 4.0 / 3.0 * math.pi * sizes.prod()
        assert 0.97 * exact < mesh.volume < exact


def test_options_and_sizes_are_checked():
    Mesh.create_sphere(1.0, compute_normals=True, compute_uvs=False, compute_inertia=False)
    for call, error, named in (
        (lambda: Mesh.create_sphere(-1.0), ValueError, "radius"),
        (lambda: Mesh.create_box(1.0, 0.0), ValueError, "hy"),
        (lambda: Mesh.create_cylinder(1.0, 1.0, segments=2), ValueError, "segments"),
        (lambda: Mesh.create_cylinder(1.0, 1.0, top_radius=0.5), ValueError, "top_radius"),
        (lambda: Mesh.create_sphere(1.0, reverse_winding=True), ValueError, "reverse_winding"),
        (lambda: Mesh.create_box(1.0, compute_normal=True), TypeError, r"'compute_normal'.*'compute_normals'"),
        (lambda: Mesh.create_cone(1.0, 1.0, up_axis="up"), ValueError, "up"),
    ):
        with pytest.raises(error, match=named):
            call()
