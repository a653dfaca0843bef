"""Closest points of pairs of shapes: against MuJoCo, surfaces, symmetry under swaps and motions, worlds and errors."""

from functools import cache

import mujoco
import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import GeoType, Heightfield, Mesh, ModelBuilder, ShapeConfig
from newton_like.collision import ClosestPoints, closest_points

N = 24
"""Shapes of each kind in a scene."""

CORNERS = np.random.default_rng(3).normal(scale=0.3, size=(20, 3))
KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "cone", "hull")


@cache
def _hull() -> Mesh:
    from scipy.spatial import ConvexHull

    return Mesh(CORNERS, ConvexHull(CORNERS).simplices, compute_inertia=False)


def add(builder: ModelBuilder, kind: str, body: int, size) -> int:
    """A shape of a kind at the origin of its body, with the sizes a, b, c."""
    a, b, c = (float(x) for x in size)
    if kind == "sphere":
        return builder.add_shape_sphere(body, radius=a)
    if kind == "box":
        return builder.add_shape_box(body, hx=a, hy=b, hz=c)
    if kind == "ellipsoid":
        return builder.add_shape_ellipsoid(body, rx=a, ry=b, rz=c)
    if kind == "hull":
        return builder.add_shape_convex_hull(body, mesh=_hull())
    return getattr(builder, f"add_shape_{kind}")(body, radius=a, half_height=b)


class Scene:
    """Free bodies with a shape each of random kinds, sizes and poses.

    Attributes:
        kinds, sizes, poses: of all bodies, ``[n]``, ``[n, 3]`` and ``[n, 7]``.
    """

    def __init__(self, rng, kinds, extent: float = 2.0, plane: bool = False):
        self.kinds = np.repeat(kinds, N)
        n = len(self.kinds)
        self.sizes = rng.uniform(0.1, 0.5, (n, 3))
        self.poses = np.concatenate(
            [rng.uniform(-extent, extent, (n, 3)), Rotation.random(n, random_state=rng).as_quat()], axis=1
        )
        self.builder = ModelBuilder()
        for kind, size, pose in zip(self.kinds, self.sizes, self.poses, strict=True):
            add(self.builder, kind, self.builder.add_body(xform=pose), size)
        self.plane = self.builder.add_ground_plane() if plane else -1

    def model(self, dtype=wp.float64):
        return self.builder.finalize(dtype=dtype)

    def pairs(self, rng, count: int = 400) -> np.ndarray:
        pairs = rng.integers(0, len(self.kinds), (count, 2))
        return pairs[pairs[:, 0] != pairs[:, 1]]


def numbers(found: ClosestPoints):
    return [x.numpy().astype(np.float64) for x in (found.distance, found.point0, found.point1, found.normal)]


def signed_distance(kind: str, size, x: np.ndarray) -> float:
    """The signed distance of a point in the axes of a shape from its surface, for shapes with a formula."""
    if kind == "sphere":
        return np.linalg.norm(x) - size[0]
    if kind == "capsule":
        return np.linalg.norm(x - [0, 0, np.clip(x[2], -size[1], size[1])]) - size[0]
    over = abs(x) - size if kind == "box" else np.array([np.hypot(x[0], x[1]) - size[0], abs(x[2]) - size[1]])
    return np.linalg.norm(np.maximum(over, 0.0)) + min(over.max(), 0.0)


def test_distances_are_those_of_mujoco(rng):
    """Shapes of MuJoCo, also with the plane; MuJoCo's own tolerance is 1e-6."""
    names = dict(sphere=1, capsule=2, box=3, cylinder=2, ellipsoid=3)
    scene = Scene(rng, tuple(names), extent=2.0, plane=True)
    bodies = ""
    for k, (kind, size, pose) in enumerate(zip(scene.kinds, scene.sizes, scene.poses, strict=True)):
        quat = " ".join(map(str, np.roll(pose[3:], 1)))
        text = " ".join(map(str, size[: names[kind]]))
        geom = f'<geom name="g{k}" type="{kind}" size="{text}"/>'
        bodies += f'<body pos="{" ".join(map(str, pose[:3]))}" quat="{quat}"><freejoint/>{geom}</body>'
    reference = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody>{bodies}<geom name="plane" type="plane" size="1 1 1"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(reference)
    mujoco.mj_kinematics(reference, data)
    pairs = scene.pairs(rng)
    pairs = np.concatenate([pairs, [(k, scene.plane) for k in range(len(scene.kinds))]])
    model = scene.model()
    distance, *_ = numbers(closest_points(model, model.state(), pairs))
    geom = {k: reference.geom(f"g{k}").id for k in range(len(scene.kinds))} | {scene.plane: reference.geom("plane").id}
    wanted = np.array(
        [mujoco.mj_geomDistance(reference, data, geom[i], geom[j], 100.0, None) for i, j in pairs.tolist()]
    )
    with_plane = pairs[:, 1] == scene.plane
    apart = wanted > 1.0e-3
    assert (apart & with_plane).sum() > 20
    np.testing.assert_allclose(distance[apart], wanted[apart], rtol=0.0, atol=5.0e-6)


def test_points_lie_on_both_surfaces_along_the_normal(rng):
    kinds = ("sphere", "capsule", "box", "cylinder")
    scene = Scene(rng, kinds, extent=1.0)
    pairs, model = scene.pairs(rng), scene.model()
    distance, first, second, normal = numbers(closest_points(model, model.state(), pairs))
    assert (distance < 0.0).sum() > 20
    assert (distance > 0.0).sum() > 20
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1.0e-9)
    np.testing.assert_allclose(second - first, distance[:, None] * normal, atol=1.0e-9)
    for side, points in ((0, first), (1, second)):
        of = pairs[:, side]
        local = Rotation.from_quat(scene.poses[of, 3:]).inv().apply(points - scene.poses[of, :3])
        off = [signed_distance(scene.kinds[k], scene.sizes[k], x) for k, x in zip(of, local, strict=True)]
        assert np.abs(np.array(off))[distance > 0.0].max() < 5.0e-6
        assert np.quantile(np.abs(off), 0.95) < 1.0e-6


@pytest.mark.slow
def test_a_plane_has_the_deepest_point(rng):
    """In single precision, for all kinds: the support of the shape against the normal of a tilted plane."""
    scene = Scene(rng, KINDS, extent=1.0)
    turn = Rotation.random(random_state=rng)
    plane = scene.builder.add_shape_plane(xform=(0.1, 0.2, 0.3, *turn.as_quat()), width=0.0, length=0.0)
    model = scene.model(wp.float32)
    pairs = [(plane, k) for k in range(len(scene.kinds))]
    distance, first, _, normal = numbers(closest_points(model, model.state(), pairs))
    up = turn.as_matrix()[:, 2]
    np.testing.assert_allclose(normal, np.tile(up, (len(pairs), 1)), atol=1.0e-6)
    np.testing.assert_allclose((first - [0.1, 0.2, 0.3]) @ up, 0.0, atol=1.0e-5)
    for k, (kind, size, pose) in enumerate(zip(scene.kinds, scene.sizes, scene.poses, strict=True)):
        d = Rotation.from_quat(pose[3:]).inv().apply(up)
        reach = {
            "sphere": size[0], "capsule": size[0] + size[1] * abs(d[2]), "box": size @ abs(d),
            "cylinder": size[0] * np.hypot(d[0], d[1]) + size[1] * abs(d[2]), "ellipsoid": np.linalg.norm(size * d),
            "cone": max(size[0] * np.hypot(d[0], d[1]) + size[1] * d[2], -size[1] * d[2]), "hull": -(CORNERS @ d).min(),
        }[kind]  # fmt: skip
        assert distance[k] == pytest.approx((pose[:3] - [0.1, 0.2, 0.3]) @ up - reach, abs=1.0e-5)


@pytest.mark.slow
def test_swapped_shapes_have_swapped_points(rng):
    """Bit by bit."""
    scene = Scene(rng, KINDS, extent=1.0)
    pairs, model = scene.pairs(rng), scene.model(wp.float32)
    state = model.state()
    one, two = closest_points(model, state, pairs), closest_points(model, state, pairs[:, ::-1])
    np.testing.assert_array_equal(one.distance.numpy(), two.distance.numpy())
    np.testing.assert_array_equal(one.point0.numpy(), two.point1.numpy())
    np.testing.assert_array_equal(one.normal.numpy(), -two.normal.numpy())


def test_moving_the_world_moves_the_points(rng):
    scene = Scene(rng, KINDS, extent=3.0)
    pairs, model = scene.pairs(rng), scene.model()
    finder, state = ClosestPoints(model, pairs), model.state()
    before = [x.copy() for x in numbers(finder.compute(state))]
    turn, shift = Rotation.random(random_state=rng), rng.normal(size=3) * 100.0
    poses = state.body_q.numpy().astype(np.float64)
    moved = np.concatenate(
        [turn.apply(poses[:, :3]) + shift, (turn * Rotation.from_quat(poses[:, 3:])).as_quat()], axis=1
    )
    state.body_q.assign(moved)
    distance, first, _, normal = numbers(finder.compute(state))
    apart = before[0] > 1.0e-3
    np.testing.assert_allclose(distance[apart], before[0][apart], atol=1.0e-7)
    # faces and edges that are parallel do not occur in random scenes
    np.testing.assert_allclose(normal[apart], turn.apply(before[3])[apart], atol=1.0e-4)
    np.testing.assert_allclose(first[apart], (turn.apply(before[1]) + shift)[apart], atol=1.0e-3)


def test_all_worlds_at_once(rng):
    """Pairs of an array ``[worlds, n, 2]`` have the results of single pairs, bit by bit."""
    template = Scene(rng, ("box", "hull"), extent=1.0).builder
    builder = ModelBuilder()
    builder.replicate(template, 3)
    ground = builder.add_ground_plane()
    model = builder.finalize()
    state = model.state()
    poses = state.body_q.numpy()
    poses[:, :3] += rng.normal(scale=0.2, size=(len(poses), 3))
    state.body_q.assign(poses)
    starts = model.shape_world_start.numpy()[:3]
    local = np.stack([np.arange(0, 2 * N - 1), np.arange(1, 2 * N)], axis=1)
    pairs = starts[:, None, None] + local
    pairs = np.concatenate([pairs, np.stack([pairs[..., 0], np.full(pairs.shape[:2], ground)], axis=-1)], axis=1)
    found = closest_points(model, state, pairs)
    assert found.distance.shape == pairs.shape[:2]
    assert found.point0.shape == pairs.shape[:2]
    for w, k in rng.integers(0, (3, pairs.shape[1]), (10, 2)).tolist():
        single = closest_points(model, state, pairs[w, k])
        np.testing.assert_array_equal(found.distance.numpy()[w, k], single.distance.numpy()[0])
        np.testing.assert_array_equal(found.normal.numpy()[w, k], single.normal.numpy()[0])


def test_concentric_and_touching_balls(rng):
    """Minus the sum of the radii; zero. Normals are unit vectors."""
    one, two = rng.uniform(0.1, 0.5, 2)
    builder = ModelBuilder()
    for x, radius in ((0.0, one), (0.0, two), (one + two, two)):
        builder.add_shape_sphere(builder.add_body(xform=(x, 0, 0, 0, 0, 0, 1)), radius=radius)
    model = builder.finalize(dtype=wp.float64)
    distance, first, second, normal = numbers(closest_points(model, model.state(), [(0, 1), (0, 2)]))
    np.testing.assert_allclose(distance, [-one - two, 0.0], atol=1.0e-9)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0)
    np.testing.assert_allclose(first[1], [one, 0.0, 0.0], atol=1.0e-9)
    np.testing.assert_allclose(second - first, distance[:, None] * normal, atol=1.0e-9)


def test_no_pairs_have_no_points():
    builder = ModelBuilder()
    builder.add_ground_plane()
    model = builder.finalize()
    assert closest_points(model, model.state(), []).distance.shape == (0,)


def test_wrong_pairs_are_named():
    builder = ModelBuilder()
    mesh = _hull()
    field = Heightfield(data=np.zeros((3, 3), np.float32), nrow=3, ncol=3, hx=1.0, hy=1.0)
    builder.add_shape_mesh(-1, mesh=mesh, label="wall")
    builder.add_shape_plane(label="floor", width=0.0, length=0.0)
    builder.add_shape_plane(label="patch", width=1.0, length=1.0)
    builder.add_shape_heightfield(heightfield=field, label="hills")
    ghost = ShapeConfig(has_shape_collision=False)
    builder.add_shape_convex_hull(-1, mesh=mesh, label="ghost", cfg=ghost)
    ball = builder.add_shape_sphere(-1, radius=0.1, label="ball")
    for _ in range(2):
        builder.begin_world()
        builder.add_shape_sphere(builder.add_body(), radius=0.1)
        builder.end_world()
    model = builder.finalize()
    state = model.state()
    assert model.shape_type.numpy()[3] == GeoType.HFIELD
    for pairs, error, message in (
        ([(0, ball)], ValueError, "'wall' .*mesh.*convex"),
        ([(1, 2)], ValueError, "'floor' .*'patch' "),
        ([(2, ball)], ValueError, "'patch' .*box"),
        ([(3, ball)], ValueError, "'hills' .*planes"),
        ([(4, ball)], ValueError, "'ghost' .*hull"),
        ([(ball, ball)], ValueError, "'ball' .*same"),
        ([(6, 7)], ValueError, "worlds"),
        ([(0, 99)], IndexError, r"shape 99\b"),
        ([0, 1, 2], ValueError, r"shape \(3,\)"),
        ([(0.5, 1.0)], TypeError, "integers"),
    ):
        with pytest.raises(error, match=message):
            closest_points(model, state, pairs)
