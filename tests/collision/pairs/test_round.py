"""Contact points of spheres and capsules, against signed distances and the support functions of the shapes."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, SPHERE

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

N = 2000
PAIRS = [(SPHERE, SPHERE), (SPHERE, CAPSULE), (SPHERE, BOX), (SPHERE, CYLINDER), (CAPSULE, CAPSULE), (CAPSULE, BOX)]


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_distance_and_normal_are_the_best_separation(rng, kind, other):
    """No plane separates the shapes by more than the distance, and the plane along the normal does by as much."""
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    p = contact_points(kind, other, a, b)
    n, distance = p.of_nearest("normal"), p.of_nearest("distance")
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=1.0e-12)
    np.testing.assert_allclose(separation(kind, other, a, b, n), distance, atol=1.0e-10)
    assert (best_separation(rng, kind, other, a, b, n) <= distance + 1.0e-10).all()
    assert (distance > 0.0).sum() > 100
    assert (distance < 0.0).sum() > 100


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_points_lie_on_both_surfaces(rng, kind, other):
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    p = contact_points(kind, other, a, b)
    x, y = p.sides()
    i = np.arange(N)
    # two points of nearly parallel shapes may be off by a hundredth of the distance of their axes
    depth = a.extent[:, 0] + b.extent[:, 0] + abs(p.of_nearest("distance"))
    tolerance = np.where(p.found.sum(1) == 2, 0.02 * depth, 1.0e-10)
    assert (abs(outside(kind, a, x[i, p.nearest])) <= tolerance).all()
    assert (abs(outside(other, b, y[i, p.nearest])) <= tolerance).all()


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_moving_the_world_moves_the_points(rng, kind, other):
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    turn, shift = random_turn(rng), rng.normal(size=3)
    before, after = (
        contact_points(kind, other, a, b),
        contact_points(kind, other, a.moved(turn, shift), b.moved(turn, shift)),
    )
    np.testing.assert_array_equal(before.feature, after.feature)
    np.testing.assert_allclose(after.distance, before.distance, atol=1.0e-10)
    found = before.found
    np.testing.assert_allclose(after.place[found], (before.place @ turn.T + shift)[found], atol=1.0e-8)
    np.testing.assert_allclose(after.normal[found], (before.normal @ turn.T)[found], atol=1.0e-8)


@pytest.mark.parametrize(("kind", "other"), PAIRS)
@pytest.mark.parametrize("factor", [1.0e-3, 1.0e3])
def test_scaling_the_world_scales_the_points(rng, kind, other, factor):
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    before, after = contact_points(kind, other, a, b), contact_points(kind, other, a.scaled(factor), b.scaled(factor))
    found = before.found
    np.testing.assert_array_equal(found, after.found)
    np.testing.assert_allclose(after.distance[found], factor * before.distance[found], atol=1.0e-10 * factor)
    np.testing.assert_allclose(after.place[found], factor * before.place[found], atol=1.0e-8 * factor)


@pytest.mark.parametrize("kind", [SPHERE, CAPSULE])
def test_swapping_shapes_turns_the_normal_round(rng, kind):
    a, b = random_shapes(rng, kind, N), random_shapes(rng, kind, N)
    one, two = contact_points(kind, kind, a, b), contact_points(kind, kind, b, a)
    np.testing.assert_allclose(one.of_nearest("distance"), two.of_nearest("distance"), atol=1.0e-10)
    np.testing.assert_allclose(one.of_nearest("normal"), -two.of_nearest("normal"), atol=1.0e-8)
    single = (one.found.sum(1) == 1) & (two.found.sum(1) == 1)
    np.testing.assert_allclose(one.of_nearest("place")[single], two.of_nearest("place")[single], atol=1.0e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_single_precision_is_near(rng, kind, other):
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    one, two = contact_points(kind, other, a, b), contact_points(kind, other, a, b, real=wp.float32)
    error = abs(one.of_nearest("distance") - two.of_nearest("distance"))
    # that of the perpendicular to an axis and an edge grows as they become parallel
    assert error.max() < (5.0e-4 if other == BOX else 1.0e-5)
    assert np.quantile(error, 0.98) < 1.0e-5


@pytest.mark.parametrize(("kind", "other"), PAIRS)
@pytest.mark.parametrize("real", REALS)
def test_concentric_and_flat_shapes_have_finite_points(rng, kind, other, real):
    """Also shapes without any size. The normal is a unit vector that separates the shapes by the distance."""
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    b.centre = a.centre + np.where(rng.random((N, 1)) < 0.5, 0.0, b.centre - a.centre)
    b.axes = np.where(rng.random((N, 1, 1)) < 0.5, a.axes, b.axes)
    for x in (a, b):
        x.extent *= np.where(rng.random((N, 3)) < 0.3, 0.0, 1.0)
    p = contact_points(kind, other, a, b, real)
    for numbers in (p.place, p.normal, p.distance, p.feature):
        assert np.isfinite(numbers).all()
    assert p.found[:, 0].all()
    n, distance = p.of_nearest("normal"), p.of_nearest("distance")
    # the normal of axes that nearly cross has the error of their distance relative to it
    tolerance = 2.0e-4 if real is wp.float32 else 1.0e-10
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=tolerance)
    np.testing.assert_allclose(separation(kind, other, a, b, n.astype(float)), distance, atol=tolerance)


def test_a_capsule_lies_on_a_capsule_at_both_ends(rng):
    """Parallel axes: both points are at the ends of the part where the axes are side by side, and equally deep."""
    a, b = random_shapes(rng, CAPSULE, N), random_shapes(rng, CAPSULE, N)
    b.axes = a.axes @ np.diag([1.0, -1.0, -1.0])
    along = a.axes[:, :, 2]
    middle = ((b.centre - a.centre) * along).sum(1)
    low = np.maximum(-a.extent[:, 1], middle - b.extent[:, 1])
    high = np.minimum(a.extent[:, 1], middle + b.extent[:, 1])
    beside = high - low > 0.1
    p = contact_points(CAPSULE, CAPSULE, a, b)
    assert beside.sum() > 100
    assert (p.found[beside].sum(1) == 2).all()
    assert (p.found[high < low].sum(1) == 1).all()
    np.testing.assert_allclose(p.distance[beside, 0], p.distance[beside, 1], atol=1.0e-10)
    ends = ((p.place[:, :2] - a.centre[:, None]) * along[:, None]).sum(2)
    np.testing.assert_allclose(ends[beside], np.stack([low, high], axis=1)[beside], atol=1.0e-8)
    np.testing.assert_array_equal(p.feature[beside, :2], np.tile([1.0, 2.0], (beside.sum(), 1)))


@pytest.mark.parametrize("turn", ["along an edge", "anyhow"])
def test_a_capsule_lies_on_a_face_at_both_ends(rng, turn):
    """It is parallel to the upper face, at a random height, also below the face, and partly beside the box."""
    b = random_shapes(rng, BOX, N, low=0.5)
    a = random_shapes(rng, CAPSULE, N)
    angle = np.zeros(N) if turn == "along an edge" else rng.uniform(-np.pi, np.pi, N)
    height = a.extent[:, 0] + rng.uniform(-0.2, 0.2, N) * a.extent[:, 0]
    middle = np.concatenate(
        [rng.uniform(-1.0, 1.0, (N, 2)) * b.extent[:, :2], (b.extent[:, 2] + height)[:, None]], axis=1
    )
    axis = np.stack([np.cos(angle), np.sin(angle), np.zeros(N)], axis=1)
    frame = np.stack([np.cross(axis, [0.0, 0.0, 1.0]), np.tile([0.0, 0.0, 1.0], (N, 1)), axis], axis=2)
    a.centre, a.axes = b.centre + np.einsum("nij,nj->ni", b.axes, middle), b.axes @ frame
    p = contact_points(CAPSULE, BOX, a, b)
    with np.errstate(divide="ignore"):
        ends = (np.array([-1.0, 1.0])[:, None, None] * b.extent[:, :2] - middle[:, :2]) / axis[:, :2]
    low = np.maximum(ends.min(0).max(1), -a.extent[:, 1])
    high = np.minimum(ends.max(0).min(1), a.extent[:, 1])
    # a part of some millimetres above a corner of the face has a single point
    long = high - low > 0.01
    assert long.mean() > 0.98
    assert (p.found.sum(1) == 2)[long].all()
    distance = np.repeat((height - a.extent[:, 0])[:, None], 2, axis=1)
    np.testing.assert_allclose(p.distance[long, :2], distance[long], atol=1.0e-10)
    np.testing.assert_allclose(p.normal[long, :2], np.repeat(-b.axes[long, None, :, 2], 2, axis=1), atol=1.0e-8)
    np.testing.assert_array_equal(p.feature[long, :2], np.tile([1.0, 2.0], (long.sum(), 1)))
    found = ((p.place[:, :2] - a.centre[:, None]) * a.axes[:, None, :, 2]).sum(2)
    np.testing.assert_allclose(found[long], np.stack([low, high], axis=1)[long], atol=1.0e-8)


@pytest.mark.parametrize("real", REALS)
def test_a_capsule_exactly_above_an_edge_has_both_ends(real):
    """All axes are parallel to those of the world, and the capsule touches."""
    one = np.eye(3)[None]
    b = Shapes(np.zeros((1, 3)), one, np.array([[1.0, 0.5, 0.25]]))
    a = Shapes(
        np.array([[0.0, 0.5, 0.35]]), np.array([[[0, 0, 1], [1, 0, 0], [0, 1, 0]]], float), np.array([[0.1, 2.0, 0.0]])
    )
    p = contact_points(CAPSULE, BOX, a, b, real)
    np.testing.assert_allclose(p.place[0, :2], [[-1.0, 0.5, 0.25], [1.0, 0.5, 0.25]], atol=1.0e-5)
    np.testing.assert_allclose(p.distance[0, :2], 0.0, atol=1.0e-6)


def test_a_capsule_lies_along_an_edge_at_both_ends(rng):
    """Beside an upper edge of the box and parallel to it."""
    b = random_shapes(rng, BOX, N, low=0.5)
    a = random_shapes(rng, CAPSULE, N)
    angle = rng.uniform(0.1, 0.5 * np.pi - 0.1, N)
    out = np.stack([np.zeros(N), np.cos(angle), np.sin(angle)], axis=1)
    distance = rng.uniform(0.05, 1.2, N) * a.extent[:, 0]
    along = rng.uniform(-1.0, 1.0, N) * b.extent[:, 0]
    middle = b.extent * [0.0, 1.0, 1.0] + distance[:, None] * out
    middle[:, 0] = along
    a.centre = b.centre + np.einsum("nij,nj->ni", b.axes, middle)
    a.axes = b.axes @ np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    p = contact_points(CAPSULE, BOX, a, b)
    assert (p.found.sum(1) == 2).all()
    np.testing.assert_allclose(p.distance[:, :2], (distance - a.extent[:, 0])[:, None] + np.zeros(2), atol=1.0e-10)
    ends = ((p.place[:, :2] - b.centre[:, None]) * b.axes[:, None, :, 0]).sum(2)
    low, high = np.maximum(-b.extent[:, 0], along - a.extent[:, 1]), np.minimum(b.extent[:, 0], along + a.extent[:, 1])
    np.testing.assert_allclose(ends, np.stack([low, high], axis=1), atol=1.0e-8)


def test_spheres_in_the_middle_leave_through_the_nearest_face():
    """Of a box with its centre on that of a sphere: through the first of its thinnest pairs of faces."""
    sizes = np.array([[1.0, 0.5, 2.0], [0.5, 1.0, 1.0], [1.0, 1.0, 0.5], [1.0, 1.0, 1.0]])
    one = np.broadcast_to(np.eye(3), (4, 3, 3))
    a, b = Shapes(np.zeros((4, 3)), one, np.full((4, 3), 0.25)), Shapes(np.zeros((4, 3)), one, sizes)
    p = contact_points(SPHERE, BOX, a, b)
    np.testing.assert_allclose(p.distance[:, 0], -0.25 - sizes.min(1))
    np.testing.assert_allclose(p.normal[:, 0], -np.eye(3)[[1, 0, 2, 0]])
