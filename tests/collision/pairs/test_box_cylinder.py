"""Distances of boxes and cylinders are exact, also where they overlap deeply, against the support functions of the shapes."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.collision.plane import BOX, CYLINDER
from scipy.spatial.transform import Rotation

from tests.support.pairs import REALS, Shapes, best_separation, contact_points, outside, random_shapes, separation

N = 2000
EXACT = {wp.float32: 1.0e-6, wp.float64: 1.0e-10}
"""Error of a distance, as a share of the sizes of the shapes."""


def drawn(rng, reach: float) -> tuple[Shapes, Shapes]:
    """Boxes and cylinders, of which some are a hundred times longer than wide, with centres up to `reach` sums of their sizes apart."""
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, CYLINDER, N)
    for s in (a, b):
        s.extent *= 10.0 ** rng.uniform(-1.0, 0.0, (N, 3))
    away = rng.normal(size=(N, 3))
    away *= (rng.uniform(0.0, reach, N) / np.linalg.norm(away, axis=1))[:, None]
    b.centre = a.centre + away * sizes(a, b)[:, None]
    return a, b


def sizes(a: Shapes, b: Shapes) -> np.ndarray:
    """The sum of the radii of spheres that contain the shapes."""
    return np.linalg.norm(a.extent, axis=1) + np.linalg.norm(b.extent[:, :2], axis=1)


def along_axes(a: Shapes, b: Shapes) -> np.ndarray:
    """The largest separation along normals of the box, the axis of the cylinder, and perpendiculars to the axis and an edge."""
    axis = b.axes[:, :, 2]
    most = np.full(N, -np.inf)
    for i in range(3):
        edge = a.axes[:, :, i]
        for d in (edge, axis, np.cross(edge, axis)):
            d = d / np.maximum(np.linalg.norm(d, axis=1, keepdims=True), 1.0e-3)
            for n in (d, -d):
                unit = abs(np.linalg.norm(n, axis=1) - 1.0) < 1.0e-9
                most = np.where(unit, np.maximum(most, separation(BOX, CYLINDER, a, b, n)), most)
    return most


def assert_exact(rng, a: Shapes, b: Shapes, real) -> None:
    """The normal separates the shapes by the distance, and no direction by more, but for one pair in 1000 of which Newton's first steps are
    too few."""
    p = contact_points(BOX, CYLINDER, a, b, real)
    n, distance = p.of_nearest("normal"), p.of_nearest("distance")
    exact = EXACT[real] * (sizes(a, b) + np.linalg.norm(b.centre - a.centre, axis=1))
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=1.0e-5 if real is wp.float32 else 1.0e-12)
    apart = separation(BOX, CYLINDER, a, b, n)
    # contact points at corners that are as deep to within a hundred thousandth may take the place of the nearest one
    assert (abs(apart - distance) <= np.maximum(exact, 2.0e-5 * sizes(a, b))).all()
    assert (abs(apart - distance) > exact).mean() < 2.0e-3
    beyond = np.maximum(best_separation(rng, BOX, CYLINDER, a, b, n), along_axes(a, b)) - apart
    assert (beyond > exact).mean() < 1.0e-3
    assert (beyond <= 1.0e-3 * sizes(a, b)).all()


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("reach", [0.3, 1.0])
def test_no_direction_separates_more(rng, reach, real):
    assert_exact(rng, *drawn(rng, reach), real)


@pytest.mark.parametrize("real", REALS)
def test_no_direction_separates_aligned_shapes_more(rng, real):
    """Axes parallel, perpendicular or in a plane, exactly or up to an angle from rounding to a hundredth."""
    a, b = drawn(rng, 0.8)
    turns = Rotation.create_group("O").as_matrix()[rng.integers(0, 24, N)]
    about_edge = Rotation.from_rotvec(rng.uniform(0.0, np.pi, (N, 1)) * [1.0, 0.0, 0.0]).as_matrix()
    turns = np.where(rng.random((N, 1, 1)) < 0.5, turns @ about_edge, turns)
    astray = rng.normal(size=(N, 3)) * 10.0 ** rng.uniform(-9.0, -2.0, (N, 1)) * rng.integers(0, 2, (N, 1))
    b.axes = a.axes @ turns @ Rotation.from_rotvec(astray).as_matrix()
    assert_exact(rng, a, b, real)


@pytest.mark.parametrize("real", REALS)
def test_shapes_that_barely_touch_have_their_distance(rng, real):
    """Moved along their normal until they are apart, or overlap, by a hundredth down to a ten millionth of their sizes."""
    a, b = drawn(rng, 1.0)
    p = contact_points(BOX, CYLINDER, a, b)
    apart = rng.normal(size=N) * sizes(a, b) * 10.0 ** rng.uniform(-7.0, -2.0, N)
    b.centre += p.of_nearest("normal") * (apart - p.of_nearest("distance"))[:, None]
    assert_exact(rng, a, b, real)


def test_the_nearest_point_lies_on_both_surfaces(rng):
    a, b = drawn(rng, 1.0)
    p = contact_points(BOX, CYLINDER, a, b)
    x, y = p.sides()
    i = np.arange(N)
    # a corner of a patch whose distance is as short to within a hundred thousandth may take the place of the nearest point
    for kind, shape, at in ((BOX, a, x), (CYLINDER, b, y)):
        off = abs(outside(kind, shape, at[i, p.nearest])) / sizes(a, b)
        assert np.quantile(off, 0.99) < 1.0e-6
        assert off.max() < 1.0e-3
