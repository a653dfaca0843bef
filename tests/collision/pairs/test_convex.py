"""Contact points of convex shapes of any kind, against the support functions of the shapes, closed forms and symmetries.

The signed distance of two convex shapes is the largest distance by which a plane separates them, so that no direction separates them
by more. Where shapes overlap, the depth may exceed the smallest one, by up to three hundredths of itself and a ten thousandth of the
shapes' sizes, because that is how closely the search looks at directions far from its own. That is rare.
"""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, SPHERE
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from tests.support.pairs import (
    Points,
    Shapes,
    best_separation,
    contact_points,
    outside,
    random_shapes,
    random_turn,
    reach,
    separation,
)

# the kernels take long to compile, and faster tests cover the same code
pytestmark = pytest.mark.slow

N = 2000
CURVED = (CYLINDER, CONE, ELLIPSOID, HULL)
PAIRS = [(k, o) for o in CURVED for k in range(o + 1) if (k, o) != (SPHERE, CYLINDER)]
UPRIGHT = np.eye(3)
CUBE = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T


def pair(rng, kind: int, other: int, n: int = N, spread: float = 0.8) -> tuple[Shapes, Shapes]:
    return random_shapes(rng, kind, n, spread), random_shapes(rng, other, n, spread)


def sizes(*shapes: Shapes) -> np.ndarray:
    """The sum of radii of spheres about the centres that contain the shapes, at most."""
    hulls = [0.0 if s.vertices is None else np.linalg.norm(s.vertices, axis=1).max() for s in shapes]
    return sum(s.extent.sum(1) + h for s, h in zip(shapes, hulls, strict=True))


def assert_best(
    rng, kind: int, other: int, a: Shapes, b: Shapes, p: Points, exact: float, more: np.ndarray | None = None
):
    """No direction separates the shapes by more than the distance of the nearest contact points, and their normal by as much.

    Args:
        exact: the error of a distance, in units of the sizes of the shapes.
        more: separations by further directions, ``[n]``.
    """
    n, distance = p.of_nearest("normal"), p.of_nearest("distance")
    assert np.isfinite(p.place).all() and np.isfinite(p.normal).all()
    # points without size have only their distance
    size = sizes(a, b) + np.linalg.norm(b.centre - a.centre, axis=1)
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=1.0e-5)
    assert (abs(separation(kind, other, a, b, n) - distance) <= exact * size).all()
    most = best_separation(rng, kind, other, a, b, n)
    most = most if more is None else np.maximum(most, more)
    beyond = most - distance
    allowed = np.where(distance < 0.0, max(1.0e-4, exact) * size - 0.03 * distance, exact * size)
    # rounding errors of single precision end some searches early
    assert (beyond <= 5.0 * allowed).all()
    assert (beyond > allowed).mean() < 2.0e-3
    # so does the tolerance of depths
    assert (beyond > exact * size).mean() < 5.0e-3


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_distance_and_normal_are_the_best_separation(rng, kind, other):
    a, b = pair(rng, kind, other)
    p = contact_points(kind, other, a, b)
    assert_best(rng, kind, other, a, b, p, 1.0e-6)
    distance = p.of_nearest("distance")
    assert (distance > 0.0).sum() > 100
    assert (distance < 0.0).sum() > 100


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_distances_in_single_precision(rng, kind, other):
    a, b = pair(rng, kind, other)
    assert_best(rng, kind, other, a, b, contact_points(kind, other, a, b, wp.float32), 1.0e-4)


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_aligned_shapes_that_touch_or_contain_each_other(rng, kind, other, real):
    """Parallel, perpendicular, coplanar, coaxial, concentric, without size in some direction: centres and sizes are
    multiples of a quarter."""
    turns = Rotation.create_group("O").as_matrix()
    turns = np.concatenate([turns, turns @ Rotation.from_rotvec([np.pi / 4, 0, 0]).as_matrix()])

    def aligned(k: int) -> Shapes:
        extent = np.where(random_shapes(rng, k, N).extent > 0.0, rng.choice([0.0, 0.25, 0.5, 1.0], (N, 3)), 0.0)
        return Shapes(
            rng.integers(-3, 4, (N, 3)) / 2, turns[rng.integers(0, 48, N)], extent, CUBE if k == HULL else None
        )

    a, b = aligned(kind), aligned(other)
    special = np.array([d for d in np.ndindex(3, 3, 3) if d != (1, 1, 1)]) - 1.0
    special /= np.linalg.norm(special, axis=1, keepdims=True)
    axes = [np.broadcast_to(UPRIGHT, a.axes.shape), a.axes, b.axes]
    more = np.max([separation(kind, other, a, b, x @ d) for x in axes for d in special], axis=0)
    exact = 1.0e-6 if real is wp.float64 else 2.0e-4
    assert_best(rng, kind, other, a, b, contact_points(kind, other, a, b, real), exact, more)


def surface(kind: int, shapes: Shapes, x: np.ndarray) -> np.ndarray:
    """Zero for points x on the surfaces of shapes, positive outside; the distance but for ellipsoids, and near the rims of cones."""
    if kind in (SPHERE, CAPSULE, BOX, CYLINDER):
        return outside(kind, shapes, x)
    p = np.einsum("nji,nj->ni", shapes.axes, x - shapes.centre)
    r, h = shapes.extent[:, 0], shapes.extent[:, 1]
    if kind == ELLIPSOID:
        return (np.linalg.norm(p / shapes.extent, axis=1) - 1.0) * shapes.extent.min(1)
    if kind == CONE:
        side = (2.0 * h * np.hypot(p[:, 0], p[:, 1]) + r * (p[:, 2] - h)) / np.hypot(2.0 * h, r)
        return np.maximum(side, -h - p[:, 2])
    planes = ConvexHull(shapes.vertices).equations
    return (p @ planes[:, :3].T + planes[:, 3]).max(1)


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_nearest_points_lie_on_both_surfaces(rng, kind, other):
    a, b = pair(rng, kind, other)
    p = contact_points(kind, other, a, b)
    i = np.arange(N)
    for k, shapes, x in zip((kind, other), (a, b), p.sides(), strict=True):
        off = abs(surface(k, shapes, x[i, p.nearest]))
        # lines that are parallel but for a small angle have points that are off by as much
        assert np.quantile(off, 0.97) < 1.0e-5
        assert np.quantile(off, 0.995) < 5.0e-3


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_moving_the_world_moves_the_points(rng, kind, other):
    a, b = pair(rng, kind, other)
    turn, shift = random_turn(rng), rng.normal(size=3)
    before = contact_points(kind, other, a, b)
    after = contact_points(kind, other, a.moved(turn, shift), b.moved(turn, shift))
    change = abs(after.of_nearest("distance") - before.of_nearest("distance"))
    assert np.quantile(change, 0.99) < 3.0e-6
    turned = np.linalg.norm(after.of_nearest("normal") - before.of_nearest("normal") @ turn.T, axis=1)
    assert np.quantile(turned, 0.98) < 1.0e-4
    assert (before.feature == after.feature).mean() > 0.95


@pytest.mark.parametrize("kind", CURVED)
def test_swapping_the_shapes_turns_the_normal_round(rng, kind):
    a, b = pair(rng, kind, kind)
    if kind == HULL:
        b = Shapes(b.centre, b.axes, b.extent, a.vertices)
    there, back = contact_points(kind, kind, a, b), contact_points(kind, kind, b, a)
    change = abs(there.of_nearest("distance") - back.of_nearest("distance"))
    assert np.quantile(change, 0.99) < 3.0e-6
    turned = np.linalg.norm(there.of_nearest("normal") + back.of_nearest("normal"), axis=1)
    assert np.quantile(turned, 0.98) < 1.0e-4


@pytest.mark.parametrize("factor", [1.0e-3, 1.0e3])
@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_sizes_scale_distances(rng, kind, other, factor):
    a, b = pair(rng, kind, other)
    for real, exact in ((wp.float64, 3.0e-6), (wp.float32, 1.0e-4)):
        p = contact_points(kind, other, a, b, real)
        q = contact_points(kind, other, a.scaled(factor), b.scaled(factor), real)
        change = abs(q.of_nearest("distance") / factor - p.of_nearest("distance"))
        assert np.quantile(change, 0.99) < exact


@pytest.mark.parametrize(("kind", "other"), [(BOX, CYLINDER), (CYLINDER, HULL), (CONE, ELLIPSOID)])
def test_a_pair_has_the_same_bits_beside_any_others(rng, kind, other):
    a, b = pair(rng, kind, other, 64, 0.3)
    order = rng.permutation(64)

    def chosen(s: Shapes, at) -> Shapes:
        return Shapes(s.centre[at], s.axes[at], s.extent[at], s.vertices)

    p = contact_points(kind, other, a, b)
    q = contact_points(kind, other, chosen(a, order), chosen(b, order))
    for name in ("place", "normal", "distance", "feature"):
        np.testing.assert_array_equal(getattr(p, name)[order], getattr(q, name))


def only(kind: int, size, centre=(0.0, 0.0, 0.0), axes=UPRIGHT) -> Shapes:
    extent = np.zeros((1, 3))
    extent[0, : len(size)] = size
    return Shapes(np.array([centre], float), np.array([axes], float), extent, CUBE * size[0] if kind == HULL else None)


def turn(*vector) -> np.ndarray:
    return Rotation.from_rotvec(vector).as_matrix()


ACROSS = turn(np.pi / 2, 0, 0)
BLOCK = (BOX, (1.0, 1.0, 0.5))
# the side of a cone of radius 0.3 and height 1 is at this angle to its axis
SIDE = turn(0, np.pi / 2 + np.arctan2(0.3, 1.0), 0)

# first shape and second shape with its pose, and the number of contact points
RESTS = {
    "cylinder on its cap": (BLOCK, CYLINDER, (0.3, 0.5), (0.2, 0.0, 0.99), UPRIGHT, 4),
    "cylinder on its barrel": (BLOCK, CYLINDER, (0.3, 0.5), (0.2, 0.0, 0.79), ACROSS, 2),
    "cone on its base": (BLOCK, CONE, (0.3, 0.5), (0.2, 0.0, 0.99), UPRIGHT, 4),
    "cube of a mesh on a box": (BLOCK, HULL, (1.0,), (0.2, 0.1, 0.99), turn(0, 0, 0.3), 4),
    "cube of a mesh over the edge of a box": (BLOCK, HULL, (1.0,), (0.9, 0.1, 0.99), UPRIGHT, 4),
    "cube of a mesh on its edge": (BLOCK, HULL, (1.0,), (0.0, 0.0, 0.49 + np.sqrt(0.5)), turn(np.pi / 4, 0, 0), 2),
    "cube of a mesh on its corner": (BLOCK, HULL, (1.0,), (0.1, 0.0, 1.35), turn(np.arctan(np.sqrt(0.5)), 0, 0) @ turn(0, np.pi / 4, 0), 1),
    "ellipsoid": (BLOCK, ELLIPSOID, (0.3, 0.4, 0.5), (0.1, 0.2, 0.99), UPRIGHT, 1),
    "cap on a cap": ((CYLINDER, (0.5, 0.5)), CYLINDER, (0.3, 0.5), (0.1, 0.0, 0.99), UPRIGHT, 4),
    "parallel cylinders": ((CYLINDER, (0.5, 1.0)), CYLINDER, (0.5, 0.7), (0.99, 0.0, 0.4), UPRIGHT, 2),
    "crossing cylinders": ((CYLINDER, (0.5, 1.0)), CYLINDER, (0.5, 0.7), (0.99, 0.0, 0.4), ACROSS, 1),
    "capsule along a cylinder": ((CAPSULE, (0.2, 0.5)), CYLINDER, (0.5, 1.0), (0.69, 0.0, 0.2), UPRIGHT, 2),
    "capsule on a cap": ((CAPSULE, (0.2, 0.5)), CYLINDER, (1.0, 0.5), (0.0, 0.69, 0.0), turn(np.pi / 2, 0, 0), 2),
    "capsule along a cube of a mesh": ((CAPSULE, (0.2, 0.3)), HULL, (1.0,), (0.69, 0.0, 0.0), UPRIGHT, 2),
    "cubes of meshes": ((HULL, (1.0,)), HULL, (1.0,), (0.3, 0.2, 0.99), UPRIGHT, 4),
}  # fmt: skip


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
@pytest.mark.parametrize("name", RESTS)
def test_resting_shapes_have_stable_contact_points(rng, name, real):
    (kind, size), other, other_size, centre, axes, count = RESTS[name]
    a, b = only(kind, size), only(other, other_size, centre, axes)
    p = contact_points(kind, other, a, b, real)
    found = p.found[0]
    assert found.sum() == count
    assert len(set(p.feature[0, found])) == count
    assert (p.feature == np.round(p.feature)).all()
    # all of them are as deep as the shapes overlap, and inside both
    depth = p.of_nearest("distance")[0]
    np.testing.assert_allclose(p.distance[0, found], depth, atol=1.0e-5)
    assert -0.02 < depth < 0.0
    x = p.place[0, found]
    for k, s in ((kind, a), (other, b)):
        many = Shapes(
            np.repeat(s.centre, count, 0), np.repeat(s.axes, count, 0), np.repeat(s.extent, count, 0), s.vertices
        )
        assert (surface(k, many, x) <= -depth).all()
    # nothing changes when the shapes hardly move, but for a search in single precision that ends early, once in some hundred
    tries, same = 8, 0
    for _ in range(tries):
        move, vector = 1.0e-5 * rng.normal(size=3), 1.0e-5 * rng.normal(size=3)
        little = Shapes(b.centre + move, turn(*vector) @ b.axes, b.extent, b.vertices)
        q = contact_points(kind, other, a, little, real)
        if (q.found == p.found).all() and (q.feature[q.found] == p.feature[p.found]).all():
            same += 1
            np.testing.assert_allclose(q.place[q.found], p.place[p.found], atol=2.0e-3)
    assert same >= tries - 1


def test_a_cone_lies_on_its_side(rng):
    """Its side has the slope of the radius over the height; two contact points are at its ends."""
    cone = only(CONE, (0.3, 0.5), axes=SIDE)
    low = reach(CONE, cone, np.array([[0.0, 0.0, -1.0]]))[0]
    cone.centre[0, 2] = 0.5 + low - 0.001
    p = contact_points(BOX, CONE, only(*BLOCK), cone)
    x = p.place[0, p.found[0]]
    np.testing.assert_allclose(p.distance[0, p.found[0]], -0.001, atol=1.0e-9)
    np.testing.assert_allclose(np.linalg.norm(x[0] - x[1]), np.hypot(0.3, 1.0), atol=1.0e-6)


def test_a_tilted_cylinder_touches_with_its_rim(rng):
    """Its lowest point is a contact point, and the other ones have their own distances."""
    angle = rng.uniform(0.01, 0.03)
    b = only(CYLINDER, (0.3, 0.5), (0.2, 0.0, 0.0), turn(angle, 0, 0))
    low = reach(CYLINDER, b, np.array([[0.0, 0.0, -1.0]]))[0]
    b.centre[0, 2] = 0.5 + low - 0.002
    p = contact_points(BOX, CYLINDER, only(*BLOCK), b)
    found = p.found[0]
    assert found.sum() == 4
    np.testing.assert_allclose(p.of_nearest("distance"), -0.002, atol=1.0e-9)
    # above the box by the distance at each point of the cap
    cap = b.centre[0] - 0.5 * b.axes[0, :, 2]
    normal = b.axes[0, :, 2]
    x = p.place[0, found]
    height = cap[2] - ((x - cap)[:, :2] @ normal[:2]) / normal[2]
    np.testing.assert_allclose(height - 0.5, p.distance[0, found], atol=1.0e-5)


@pytest.mark.parametrize(
    ("kind", "other"),
    [(SPHERE, BOX), (SPHERE, CYLINDER), (CAPSULE, CAPSULE), (CAPSULE, BOX), (CAPSULE, CYLINDER), (BOX, BOX)],
)
def test_closed_forms_have_the_same_distances(rng, kind, other):
    a, b = pair(rng, kind, other, 500)
    closed, searched = contact_points(kind, other, a, b), contact_points(kind, other, a, b, program="convex_points")
    distance = closed.of_nearest("distance")
    beyond = abs(searched.of_nearest("distance") - distance)
    assert (beyond <= np.where(distance < 0.0, 1.0e-4 * sizes(a, b) - 0.03 * distance, 1.0e-6)).all()
    assert np.quantile(beyond, 0.99) < 1.0e-7


@pytest.mark.parametrize(("kind", "other"), [(BOX, CYLINDER), (CYLINDER, HULL), (CONE, ELLIPSOID)])
def test_a_pair_that_is_not_a_number_stays_alone(rng, kind, other):
    a, b = pair(rng, kind, other, 64, 0.3)
    before = contact_points(kind, other, a, b)
    lost = np.arange(0, 64, 5)
    a.centre[lost[::2]] = np.nan
    b.axes[lost[1::2]] = np.nan
    after = contact_points(kind, other, a, b)
    others = np.setdiff1d(np.arange(64), lost)
    for name in ("place", "normal", "distance", "feature"):
        np.testing.assert_array_equal(getattr(before, name)[others], getattr(after, name)[others])
