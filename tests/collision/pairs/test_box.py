"""Contact points of boxes with boxes, against signed distances, separating planes and closed forms."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.collision.plane import BOX
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

from tests.support.pairs import (
    REALS,
    Shapes,
    best_separation,
    contact_points,
    outside,
    random_shapes,
    random_turn,
    separation,
)

N = 4000


def bias(a: Shapes, b: Shapes) -> np.ndarray:
    """By how much the axis of the normal may separate the boxes less than another one."""
    return 2.0e-3 * np.minimum(a.extent.min(1), b.extent.min(1)) + 1.0e-9


def test_distance_is_the_best_separation(rng):
    """No plane separates the boxes by more than the distance, and the plane along the normal does by as much, to within the preference for
    faces."""
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    p = contact_points(BOX, BOX, a, b)
    n, distance = p.of_nearest("normal"), p.of_nearest("distance")
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=1.0e-12)
    along = separation(BOX, BOX, a, b, n)
    assert (abs(along - distance) <= bias(a, b)).all()
    assert np.quantile(abs(along - distance), 0.98) < 1.0e-10
    best = best_separation(rng, BOX, BOX, a, b, n)
    assert (best <= distance + 1.0e-9).all()
    assert (distance > 0.0).sum() > 100
    assert (distance < 0.0).sum() > 100


def test_depth_is_that_of_the_fifteen_axes(rng):
    """The largest separation by the axes of both boxes and the products of an axis of each."""
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    axes = [s.axes[:, :, i] for s in (a, b) for i in range(3)]
    products = [np.cross(a.axes[:, :, i], b.axes[:, :, j]) for i in range(3) for j in range(3)]
    axes += [n / np.linalg.norm(n, axis=1, keepdims=True) for n in products]
    best = np.max([np.maximum(separation(BOX, BOX, a, b, n), separation(BOX, BOX, a, b, -n)) for n in axes], axis=0)
    distance = contact_points(BOX, BOX, a, b).of_nearest("distance")
    overlap = best < 0.0
    assert overlap.sum() > 100
    error = abs(distance - best)[overlap]
    # products of nearly parallel axes are left out
    assert error.max() < 1.0e-5
    assert np.quantile(error, 0.98) < 1.0e-10
    assert (distance[~overlap] >= best[~overlap] - 1.0e-9).all()


def test_points_lie_on_both_surfaces(rng):
    """All of them, not only the nearest ones: on the far surface of an overlap, and inside the other box."""
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    p = contact_points(BOX, BOX, a, b)
    x, y = p.sides()
    for i in range(4):
        found = p.found[:, i]
        assert found.sum() > 100
        for shapes, z in ((a, x), (b, y)):
            error = abs(outside(BOX, shapes, z[:, i]))[found]
            # where a lower corner was left out, all points are that much deeper
            assert error.max() < 0.02
            assert np.quantile(error, 0.98) < 1.0e-9


def test_moving_the_world_moves_the_points(rng):
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    turn, shift = random_turn(rng), rng.normal(size=3)
    before, after = contact_points(BOX, BOX, a, b), contact_points(BOX, BOX, a.moved(turn, shift), b.moved(turn, shift))
    np.testing.assert_array_equal(before.feature, after.feature)
    np.testing.assert_allclose(after.distance, before.distance, atol=1.0e-10)
    found = before.found
    np.testing.assert_allclose(after.place[found], (before.place @ turn.T + shift)[found], atol=1.0e-8)
    np.testing.assert_allclose(after.normal[found], (before.normal @ turn.T)[found], atol=1.0e-8)


@pytest.mark.parametrize("factor", [1.0e-3, 1.0e3])
def test_scaling_the_world_scales_the_points(rng, factor):
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    before, after = contact_points(BOX, BOX, a, b), contact_points(BOX, BOX, a.scaled(factor), b.scaled(factor))
    found = before.found
    np.testing.assert_array_equal(before.feature, after.feature)
    np.testing.assert_allclose(after.distance[found], factor * before.distance[found], atol=1.0e-10 * factor)
    np.testing.assert_allclose(after.place[found], factor * before.place[found], atol=1.0e-8 * factor)


def test_swapping_the_boxes_turns_the_normal_round(rng):
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    one, two = contact_points(BOX, BOX, a, b), contact_points(BOX, BOX, b, a)
    error = abs(one.of_nearest("distance") - two.of_nearest("distance"))
    assert (error <= bias(a, b)).all()
    assert np.quantile(error, 0.98) < 1.0e-10
    turned = np.linalg.norm(one.of_nearest("normal") + two.of_nearest("normal"), axis=1)
    assert np.quantile(turned, 0.98) < 1.0e-8


@pytest.mark.slow
def test_single_precision_is_near(rng):
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    one, two = contact_points(BOX, BOX, a, b), contact_points(BOX, BOX, a, b, real=wp.float32)
    error = abs(one.of_nearest("distance") - two.of_nearest("distance"))
    assert (error <= bias(a, b)).all()
    assert np.quantile(error, 0.98) < 1.0e-5


@pytest.mark.parametrize("real", REALS)
def test_concentric_parallel_and_flat_boxes_have_finite_points(rng, real):
    """Also boxes without any size. The normal is a unit vector that separates the boxes by the smallest distance."""
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    b.centre = a.centre + np.where(rng.random((N, 1)) < 0.5, 0.0, b.centre - a.centre)
    b.axes = np.where(rng.random((N, 1, 1)) < 0.5, a.axes, b.axes)
    for x in (a, b):
        x.extent *= np.where(rng.random((N, 3)) < 0.3, 0.0, 1.0)
    p = contact_points(BOX, BOX, a, b, real)
    for numbers in (p.place, p.normal, p.distance, p.feature):
        assert np.isfinite(numbers).all()
    assert p.found[:, 0].all()
    n, distance = p.of_nearest("normal"), p.of_nearest("distance")
    tolerance = 1.0e-5 if real is wp.float32 else 1.0e-9
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=tolerance)
    error = abs(separation(BOX, BOX, a, b, n.astype(float)) - distance)
    # a normal between points at a small distance has fewer digits
    assert (error <= bias(a, b) + 1.0e3 * tolerance).all()
    assert np.quantile(error, 0.98) < 2.0 * tolerance


def corners(size: np.ndarray) -> np.ndarray:
    """Corners of rectangles, ``[n, 4, 2]`` for half sides ``[n, 2]``."""
    return size[:, None] * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])


def stacked(rng, yaw, real=wp.float64):
    """Boxes on boxes, somewhere: both shapes, random gaps (or overlaps), sideways shifts ``[n, 2]``, contact points, and their places in
    the axes of the lower boxes, ``[n, 4, 3]``."""
    a, b = random_shapes(rng, BOX, N, low=0.3), random_shapes(rng, BOX, N, low=0.3)
    gap = rng.uniform(-0.05, 0.05, N)
    side = rng.uniform(-0.2, 0.2, (N, 2))
    up = np.concatenate([side, (a.extent[:, 2] + b.extent[:, 2] + gap)[:, None]], axis=1)
    b.centre = a.centre + np.einsum("nij,nj->ni", a.axes, up)
    turn = Rotation.from_rotvec(yaw[:, None] * [0.0, 0.0, 1.0])
    b.axes = a.axes @ turn.as_matrix()
    p = contact_points(BOX, BOX, a, b, real)
    local = np.einsum("nji,nkj->nki", a.axes, p.place - a.centre[:, None])
    return a, b, gap, side, p, local


@pytest.mark.parametrize("real", REALS)
def test_a_box_on_a_box_rests_on_the_corners_of_the_common_rectangle(rng, real):
    a, b, gap, side, p, local = stacked(rng, np.zeros(N), real)
    low = np.maximum(-a.extent[:, :2], side - b.extent[:, :2])
    high = np.minimum(a.extent[:, :2], side + b.extent[:, :2])
    assert (p.found.sum(1) == 4).all()
    tolerance = 1.0e-5 if real is wp.float32 else 1.0e-10
    np.testing.assert_allclose(p.distance, np.repeat(gap[:, None], 4, axis=1), atol=tolerance)
    np.testing.assert_allclose(p.normal, np.repeat(a.axes[:, None, :, 2], 4, axis=1), atol=tolerance)
    want = corners(0.5 * (high - low)) + 0.5 * (high + low)[:, None]
    far = np.linalg.norm(local[:, :, None, :2] - want[:, None], axis=3)
    assert far.min(1).max() < 10.0 * tolerance
    assert far.min(2).max() < 10.0 * tolerance
    assert (np.diff(np.sort(p.feature, axis=1), axis=1) > 0.5).all()


def test_points_of_a_turned_box_span_most_of_what_both_faces_share(rng):
    """The corners of the common polygon are at most eight; the four points cover at least half of its area."""
    yaw = rng.uniform(-np.pi, np.pi, N)
    a, b, gap, side, p, local = stacked(rng, yaw)
    assert (p.found.sum(1) >= 3).all()
    np.testing.assert_allclose(p.distance[p.found], np.repeat(gap[:, None], 4, axis=1)[p.found], atol=1.0e-9)
    for i in range(100):
        c, s = np.cos(yaw[i]), np.sin(yaw[i])
        normals = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [c, s], [-c, -s], [-s, c], [s, -c]], float)
        offsets = np.concatenate([np.repeat(a.extent[i, :2], 2), np.repeat(b.extent[i, :2], 2)])
        offsets[4:] += normals[4:] @ side[i]
        inside = 0.5 * side[i]
        shared = ConvexHull(HalfspaceIntersection(np.c_[normals, -offsets], inside).intersections).volume
        covered = ConvexHull(local[i, p.found[i], :2]).volume
        assert 0.5 * shared <= covered <= shared * (1.0 + 1.0e-9)


@pytest.mark.parametrize("real", REALS)
def test_equal_boxes_in_one_line_rest_on_their_corners(rng, real):
    """Faces whose edges coincide share them, in spite of rounding."""
    a = random_shapes(rng, BOX, N)
    b = Shapes(a.centre + 2.0 * a.extent[:, 2:] * a.axes[:, :, 2], a.axes.copy(), a.extent.copy())
    p = contact_points(BOX, BOX, a, b, real)
    assert (p.found.sum(1) == 4).all()
    local = np.einsum("nji,nkj->nki", a.axes, p.place - a.centre[:, None])
    want = corners(a.extent[:, :2])
    far = np.linalg.norm(local[:, :, None, :2] - want[:, None], axis=3)
    assert far.min(1).max() < (1.0e-4 if real is wp.float32 else 1.0e-10)


@pytest.mark.parametrize("real", REALS)
def test_a_small_box_rests_on_a_large_one(rng, real):
    """A cube of 2 cm anywhere on a floor of 100 m has its four lower corners."""
    a, b = random_shapes(rng, BOX, N), random_shapes(rng, BOX, N)
    a.extent[:], b.extent[:] = [50.0, 50.0, 0.5], 0.01
    side = rng.uniform(-49.0, 49.0, (N, 2))
    turn = Rotation.from_rotvec(rng.uniform(-np.pi, np.pi, N)[:, None] * [0.0, 0.0, 1.0]).as_matrix()
    a.axes[:] = np.eye(3)
    a.centre[:] = np.concatenate([-side, np.full((N, 1), -0.51)], axis=1)
    b.centre[:], b.axes = 0.0, turn
    p = contact_points(BOX, BOX, a, b, real)
    assert (p.found.sum(1) == 4).all()
    local = np.einsum("nji,nkj->nki", b.axes, p.place)
    want = corners(b.extent[:, :2])
    far = np.linalg.norm(local[:, :, None, :2] - want[:, None], axis=3)
    assert far.min(1).max() < (1.0e-4 if real is wp.float32 else 1.0e-10)
    np.testing.assert_allclose(p.distance, 0.0, atol=1.0e-5)


@pytest.mark.parametrize("size", [1.0e-6, 1.0e-4])
def test_features_are_the_same_after_a_small_motion(rng, size):
    """Four points of boxes at rest are matched to those of the step before, and do not change with the load on each corner."""
    a, b, *_ = stacked(rng, rng.uniform(-np.pi, np.pi, N))
    one = contact_points(BOX, BOX, a, b)
    moved = Shapes(
        b.centre + size * rng.normal(size=(N, 3)),
        Rotation.from_rotvec(size * rng.normal(size=(N, 3))).as_matrix() @ b.axes,
        b.extent,
    )
    two = contact_points(BOX, BOX, a, moved)
    same = (np.sort(one.feature * one.found, axis=1) == np.sort(two.feature * two.found, axis=1)).all(1)
    assert same.mean() > 0.98


def test_crossing_edges_have_one_point(rng):
    """Of two boxes that stand on an edge, one upside down on the other: where the edges cross."""
    a, b = random_shapes(rng, BOX, N, low=0.3), random_shapes(rng, BOX, N, low=0.3)
    yaw = rng.uniform(0.2, np.pi - 0.2, N)
    gap = rng.uniform(-0.02, 0.02, N)
    # the upper edge of the first box is along x; that of the second one is turned by the yaw
    heights, frames = [], []
    for s in (a, b):
        half = np.arctan2(s.extent[:, 1], s.extent[:, 2])
        frames.append(Rotation.from_rotvec(half[:, None] * [1.0, 0.0, 0.0]).as_matrix())
        heights.append(np.hypot(s.extent[:, 1], s.extent[:, 2]))
    down = Rotation.from_rotvec([np.pi, 0.0, 0.0]).as_matrix()
    turn = Rotation.from_rotvec(yaw[:, None] * [0.0, 0.0, 1.0]).as_matrix()
    world = a.axes
    a.axes = world @ frames[0]
    b.axes = world @ turn @ down @ frames[1]
    up = world[:, :, 2]
    b.centre = a.centre + (heights[0] + heights[1] + gap)[:, None] * up
    p = contact_points(BOX, BOX, a, b)
    assert (p.found.sum(1) == 1).all()
    np.testing.assert_allclose(p.distance[:, 0], gap, atol=1.0e-9)
    np.testing.assert_allclose(p.normal[:, 0], up, atol=1.0e-9)
    np.testing.assert_allclose(p.place[:, 0], a.centre + (heights[0] + 0.5 * gap)[:, None] * up, atol=1.0e-9)
