"""Capsules: distances, nearest points, and which shapes are pairs."""

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import random_pose

I = np.eye(4)


def capsule(start, end, radius=0.1):
    return rd.GeomCapsule(start, end, radius, 1, 1)


def random_segment(rng, length: float):
    start, direction = rng.normal(size=3), rng.normal(size=3)
    return start, start + length * direction


def points_of(T, geom):
    return [T[:3, :3] @ point + T[:3, 3] for point in (geom.start_point, geom.end_point)]


def check(result, a, T_a, b, T_b):
    """The points are on the segments, and no other points are nearer.

    The distance is a convex function on the product of two segments. A pair (p, q) is nearest if and only if for all ends x of the first
    and y of the second segment ``(x - p).(p - q) >= 0`` and ``(y - q).(q - p) >= 0`` (variational inequality).
    """
    p, q = result.position1, result.position2
    for (start, end), point, away in ((points_of(T_a, a), p, p - q), (points_of(T_b, b), q, q - p)):
        length = np.linalg.norm(end - start)
        slack = 1e-12 * max(1.0, length)
        assert np.linalg.norm(point - start) + np.linalg.norm(end - point) <= length + slack
        assert all((x - point) @ away >= -slack * max(1.0, length) for x in (start, end))
    n = result.normal
    assert np.isclose(np.linalg.norm(n), 1.0, rtol=1e-12)
    assert np.isclose(result.distance, np.linalg.norm(p - q) - a.radius - b.radius, atol=1e-13)
    assert np.isclose(result.distance, n @ (result.surface2 - result.surface1), atol=1e-12)
    assert np.allclose(p + a.radius * n, result.surface1, atol=1e-13)
    assert np.allclose(q - b.radius * n, result.surface2, atol=1e-13)


LENGTHS = [(1.0, 1.0), (3.0, 0.1), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1e-9, 1.0), (1e4, 1e-6)]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_nearest_points_of_random_capsules(rng, lengths):
    for _ in range(40):
        a, b = (capsule(*random_segment(rng, length), rng.uniform(0.0, 0.5)) for length in lengths)
        T_a, T_b = random_pose(rng), random_pose(rng)
        result = a.compute_minimum_distance(T_a, b, T_b)
        check(result, a, T_a, b, T_b)
        other = b.compute_minimum_distance(T_b, a, T_a)
        assert np.isclose(result.distance, other.distance, atol=1e-9 * max(1.0, *lengths))


@pytest.mark.parametrize(
    ("first", "second", "middle"),
    [
        ((0, 1), (0, 1), 0.5),
        ((0, 1), (1, 0), 0.5),
        ((-1, 2), (1, 4), 1.5),
        ((0, 1), (2, 3), None),
        ((0, 3), (1, 2), 1.5),
    ],
)
@pytest.mark.parametrize("apart", [0.0, 0.7])
def test_parallel_capsules_touch_in_the_middle_of_the_common_part(rng, first, second, middle, apart):
    T = random_pose(rng)
    a, b = capsule((0, 0, first[0]), (0, 0, first[1])), capsule((apart, 0, second[0]), (apart, 0, second[1]))
    result = a.compute_minimum_distance(T, b, T)
    check(result, a, T, b, T)
    p, q = (T[:3, :3].T @ (x - T[:3, 3]) for x in (result.position1, result.position2))
    if middle is None:
        assert np.isclose(p[2], 1.0) and np.isclose(q[2], 2.0)
    else:
        assert np.isclose(p[2], middle) and np.isclose(q[2], middle)


@pytest.mark.parametrize("angle", [1e-6, 1e-9, 1e-11, 1e-13, 1e-16])
def test_almost_parallel_capsules(rng, angle):
    for _ in range(20):
        start, direction = rng.normal(size=3), rng.normal(size=3)
        a = capsule(start, start + direction)
        end = start + rng.uniform(-1.0, 1.0) * direction + rng.normal(size=3)
        b = capsule(end, end + direction + angle * rng.normal(size=3))
        result, T = a.compute_minimum_distance(I, b, I), np.eye(4)
        other = b.compute_minimum_distance(T, a, T)
        assert np.isclose(result.distance, other.distance, atol=1e-10)
        ends = [a.compute_minimum_distance(I, capsule(x, x), I) for x in (b.start_point, b.end_point)]
        assert result.distance <= min(end.distance for end in ends) + 1e-10


def test_crossing_axes_have_a_normal_that_is_perpendicular_to_both(rng):
    centre, u, v = rng.normal(size=(3, 3))
    a, b = capsule(centre - u, centre + 2.0 * u, 0.2), capsule(centre - 3.0 * v, centre + v, 0.3)
    result = a.compute_minimum_distance(I, b, I)
    assert np.isclose(result.distance, -0.5)
    assert np.allclose(result.position1, centre) and np.allclose(result.position2, centre)


def test_axes_that_coincide_have_a_normal(rng):
    """Exactly equal points: the direction from one to the other is not defined."""
    for a, b, axes in (
        (capsule((0, 0, -1), (0, 0, 1)), capsule((-1, 0, 0), (1, 0, 0)), [(0, 0, 1), (1, 0, 0)]),
        (capsule((0, 0, -1), (0, 0, 1)), capsule((0, 0, -1), (0, 0, 1)), [(0, 0, 1)]),
        (capsule((0, 0, 0), (0, 0, 0)), capsule((0, 0, 0), (0, 0, 0)), []),
        (capsule((0, 0, 0), (0, 0, 0)), capsule((0, -1, 0), (0, 1, 0)), [(0, 1, 0)]),
    ):
        result = a.compute_minimum_distance(I, b, I)
        check(result, a, I, b, I)
        assert np.array_equal(result.position1, result.position2)
        assert all(abs(result.normal @ np.array(axis)) < 1e-15 for axis in axes)


def test_height_is_along_z_without_caps():
    geom = rd.GeomCapsule(height=0.4, radius=0.1, coltype=2, colaffinity=5)
    assert np.array_equal(geom.get_start_point(), (0.0, 0.0, 0.2)) and np.array_equal(
        geom.get_end_point(), (0.0, 0.0, -0.2)
    )
    assert (geom.get_radius(), geom.get_coltype(), geom.get_colaffinity()) == (0.1, 2, 5)
    assert geom.get_type() is rd.GeomType.Capsule


def test_constructors_by_position_and_by_name(rng):
    start, end = rng.normal(size=(2, 3))
    for geom in (
        rd.GeomCapsule(start, end, 0.1, 1, 2),
        rd.GeomCapsule(start_point=start, end_point=end[:, None], radius=0.1, coltype=1, colaffinity=2),
        rd.GeomCapsule(start.tolist(), end, colaffinity=2, coltype=1, radius=0.1),
    ):
        assert np.array_equal(geom.start_point, start) and np.array_equal(geom.end_point, end)
        assert (geom.radius, geom.coltype, geom.colaffinity) == (0.1, 1, 2)


def test_filter_is_symmetric_and_by_bits(rng):
    for bits in rng.integers(0, 8, (50, 4)).tolist():
        a, b = rd.GeomCapsule(0.1, 0.1, *bits[:2]), rd.GeomCapsule(0.1, 0.1, *bits[2:])
        common = [bit for bit in (1, 2, 4) if (bits[0] & bit and bits[3] & bit) or (bits[2] & bit and bits[1] & bit)]
        assert a.filter(b) is b.filter(a) is bool(common)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rd.GeomCapsule(0.1, 0.1),
        lambda: rd.GeomCapsule(0.1, 0.1, 1, colaffinity=1, color=2),
        lambda: rd.GeomCapsule((0, 0), (0, 1), 0.1, 1, 1),
        lambda: rd.GeomCapsule(0.1, 0.1, -1, 1),
        lambda: rd.GeomCapsule(0.1, 0.1, 1, 2**32),
        lambda: rd.GeomCapsule(0.1, 0.1, 1.0, 1),
        lambda: rd.GeomCapsule(0.1, "a", 1, 1),
        lambda: capsule((0, 0, 0), (0, 0, 1)).filter(None),
        lambda: capsule((0, 0, 0), (0, 0, 1)).compute_minimum_distance(I, None, I),
        lambda: capsule((0, 0, 0), (0, 0, 1)).compute_minimum_distance(np.eye(3), capsule((0, 0, 0), (0, 0, 1)), I),
        lambda: rd.Collision("c").add_geom(None),
        lambda: rd.Collision(3),
        lambda: rd.Collision("c").set_origin(np.eye(3)),
    ],
)
def test_other_types_and_shapes(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: rd.GeomCapsule(0.1, -0.1, 1, 1), "radius"),
        (lambda: rd.GeomCapsule(-0.1, 0.1, 1, 1), "height"),
        (lambda: rd.GeomCapsule(np.nan, 0.1, 1, 1), "height"),
        (lambda: capsule((0, 0, np.inf), (0, 0, 1)), "start_point"),
        (lambda: rd.Collision("elbow").set_origin(2.0 * np.eye(4)), "'elbow'"),
        (
            lambda: capsule((0, 0, 0), (0, 0, 1)).compute_minimum_distance(
                I, capsule((0, 0, 0), (0, 0, 1)), I * np.nan
            ),
            "other_T",
        ),
    ],
)
def test_wrong_values(call, named):
    with pytest.raises(rd.RobotError, match=named):
        call()


def test_a_geom_without_shape_is_of_no_type():
    geom, other = rd.Geom(1, 2), capsule((0, 0, 0), (0, 0, 1))
    assert (geom.get_coltype(), geom.get_colaffinity()) == (1, 2)
    for call in (
        geom.get_type,
        lambda: geom.compute_minimum_distance(I, other, I),
        lambda: other.compute_minimum_distance(I, geom, I),
    ):
        with pytest.raises(RuntimeError, match="GeomCapsule"):
            call()


def test_results_are_read_only():
    result = rd.CollisionResult()
    assert (result.link1, result.link2, result.distance) == ("", "", 0.0) and not result.position1.any()
    for name in ("link1", "link2", "position1", "position2", "distance"):
        with pytest.raises(AttributeError):
            setattr(result, name, getattr(result, name))


def test_collisions_copy_poses_and_lists(rng):
    collision, T = rd.Collision("c"), random_pose(rng)
    assert np.array_equal(collision.get_origin(), np.eye(4)) and collision.get_geoms() == []
    geoms = [capsule(*random_segment(rng, 1.0)) for _ in range(2)]
    for geom in geoms:
        collision.add_geom(geom)
    collision.set_origin(T)
    kept = T.copy()
    T[:] = 0.0
    collision.origin[:] = 0.0
    collision.geoms.clear()
    assert np.array_equal(collision.origin, kept) and collision.geoms == geoms


@pytest.mark.parametrize("enum", [rd.GeomType, rd.MobileBaseType])
def test_enumerations_are_those_of_the_sdk(enum):
    for number, member in enumerate(enum):
        assert int(member) == member.value == number and enum(number) is member and member != number
        assert str(member) == f"{enum.__name__}.{member.name}" and getattr(enum, member.name) is member
    with pytest.raises(ValueError, match="17"):
        enum(17)
    with pytest.raises(TypeError, match="'x'"):
        enum("x")
