"""Contact points of pairs of shapes, computed by the programs of `kernels.collision.pairs` in a kernel of their own."""

from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.collision.pairs.records import (
    AWAY,
    AXES,
    CENTRE,
    DISTANCE,
    EXTENT,
    FEATURE,
    PAIR_COUNTS,
    PLACE,
    POINT,
    POINTS_OF_A_PAIR,
    SHAPE,
    points_of,
)
from newton_like.kernels.collision.pairs.work import LIMIT
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, FAR, HULL, SPHERE
from newton_like.kernels.layout import STEP, STEP_ROWS, sizes, stack
from newton_like.kernels.simd import GENERAL_FLAGS, module_options
from scipy.spatial.transform import Rotation

from newton_like.programs.robot import namespace

REALS = [pytest.param(wp.float32, marks=pytest.mark.slow), wp.float64]
"""Scalar types of tests; kernels of single precision are compiled in CI only."""


@dataclass
class Shapes:
    """Shapes of one kind.

    Attributes:
        centre: their places, ``[n, 3]``.
        axes: rotations from the shape to the world, ``[n, 3, 3]``.
        extent: sizes as in Model.shape_scale, ``[n, 3]``.
        vertices: of a hull, the same for all of them, in their own axes about their centre, ``[k, 3]``.
    """

    centre: np.ndarray
    axes: np.ndarray
    extent: np.ndarray
    vertices: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.centre)

    def moved(self, turn: np.ndarray, shift: np.ndarray) -> "Shapes":
        """After a rotation of the world about its origin, and a translation."""
        return replace(self, centre=self.centre @ turn.T + shift, axes=turn @ self.axes)

    def scaled(self, factor: float) -> "Shapes":
        vertices = None if self.vertices is None else factor * self.vertices
        return replace(self, centre=factor * self.centre, extent=factor * self.extent, vertices=vertices)


@dataclass
class Points:
    """Contact points, ``[n, 4, ...]``, see `kernels.collision.pairs.records`."""

    place: np.ndarray
    normal: np.ndarray
    distance: np.ndarray
    feature: np.ndarray

    @property
    def found(self) -> np.ndarray:
        """Which of them exist, ``[n, 4]``."""
        return self.distance < 0.5 * FAR

    @property
    def nearest(self) -> np.ndarray:
        """The point with the smallest distance of each pair, ``[n]``."""
        return self.distance.argmin(1)

    def of_nearest(self, name: str) -> np.ndarray:
        return getattr(self, name)[np.arange(len(self.distance)), self.nearest]

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """The points on the surfaces of the first and of the second shapes, ``[n, 4, 3]``."""
        half = 0.5 * np.where(self.found, self.distance, 0.0)[..., None] * self.normal
        return self.place - half, self.place + half


NOTHING = dict(
    coords=0, dofs=0, bodies=0, trees=0, entries=0, reach=0, candidates=0, contact_rows=0, couplings=0, first_paired=0, shapes=0, pairs=0,
    surface_pairs=0, surface_numbers=0, packed=0, polished=0, newton_numbers=0,
    loop_rows=0, loop_block=0, loop_soft=0, loop_numbers=0, law_numbers=0, bounded_numbers=0,
)  # fmt: skip
"""Counts of a robot without anything."""


@cache
def pair_kernel(width: int, real, program: str = "pair_points"):
    """The kernel that computes the contact points of blocks of pairs by a program."""
    m = namespace(width, real, STEP_ROWS)
    pair_points = getattr(m, program)

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, width))
    def kernel(
        kind: int,
        other: int,
        count_a: int,
        count_b: int,
        T: m.Tree,
        P: m.Params,
        L: m.Layout,
        mem: m.memory,
        # one row a number, one column a block
        shapes: wp.array2d[m.lane],
        points: wp.array2d[m.lane],
    ):
        for b in range(shapes.shape[1]):
            for i in range(shapes.shape[0]):
                m.put(mem, L.pair_shapes + i, 0, shapes[i, b])
            m.put(mem, L.pair_work + LIMIT, 0, m.fill(m.real(FAR)))
            pair_points(b, 0, kind, other, 0, count_a, count_a, count_b, T, P, L, mem)
            for i in range(points.shape[0]):
                points[i, b] = m.get(mem, L.manifold + i, 0)

    return kernel


def _records(shapes: Shapes) -> np.ndarray:
    n = len(shapes)
    record = np.zeros((n, SHAPE))
    record[:, CENTRE : CENTRE + 3] = shapes.centre
    record[:, AXES : AXES + 9] = shapes.axes.reshape(n, 9)
    record[:, EXTENT : EXTENT + 3] = shapes.extent
    return record


def contact_points(
    kind: int, other: int, a: Shapes, b: Shapes, real=wp.float64, width: int = 8, program: str = "pair_points"
) -> Points:
    """Contact points of each shape of `a` with the shape of the same index of `b`.

    Args:
        kind, other: kinds of `kernels.collision.plane`, the lower one first.
        a, b: the shapes.
        real, width: the lanes that compute them.
        program: the program that computes them.
    """
    assert kind <= other
    m = namespace(width, real, STEP_ROWS)
    n = len(a)
    blocks = -(-n // width)
    record = np.concatenate([_records(a), _records(b)], axis=1)
    record = np.concatenate([record, np.repeat(record[-1:], blocks * width - n, axis=0)])
    lanes = record.reshape(blocks, width, -1).transpose(2, 0, 1)
    lanes = np.ascontiguousarray(
        lanes if width > 1 else lanes[..., 0], dtype=np.float32 if real is wp.float32 else float
    )
    hulls = [np.zeros((0, 3)) if x.vertices is None else x.vertices for x in (a, b)]
    L, P = m.Layout(), m.Params()
    layout = stack(
        sizes(
            (row for row in STEP if "pairs" in row.read_by.split()),
            SimpleNamespace(**PAIR_COUNTS, **NOTHING),
        )
    )
    for name, at in layout.items():
        setattr(L, name, at)
    P.uniform = wp.array(np.append(np.concatenate(hulls).ravel(), 0.0), dtype=real, device="cpu")
    most = max(POINTS_OF_A_PAIR, points_of(kind, other))
    points = wp.zeros((most * POINT, blocks), dtype=m.lane, device="cpu")
    memory = wp.zeros((layout["size"], 1), dtype=m.lane, device="cpu")
    inputs = [kind, other, len(hulls[0]), len(hulls[1]), m.Tree(), P, L, memory]
    inputs += [wp.array(lanes, dtype=m.lane, device="cpu"), points]
    wp.launch(pair_kernel(width, real, program), dim=1, inputs=inputs, device="cpu")
    found = points.numpy().reshape(most, POINT, -1)[:, :, :n].transpose(2, 0, 1)
    return Points(
        found[:, :, PLACE : PLACE + 3], found[:, :, AWAY : AWAY + 3], found[:, :, DISTANCE], found[:, :, FEATURE]
    )


SIZES = {SPHERE: 1, CAPSULE: 2, BOX: 3, CYLINDER: 2, CONE: 2, ELLIPSOID: 3, HULL: 0}
"""How many numbers of ``extent`` each kind uses."""


def random_shapes(
    rng, kind: int, n: int, spread: float = 1.0, low: float = 0.1, high: float = 1.0, vertices: int = 12
) -> Shapes:
    """Shapes with random orientations, sizes between `low` and `high`, and centres with coordinates up to `spread`."""
    extent = np.zeros((n, 3))
    extent[:, : SIZES[kind]] = rng.uniform(low, high, (n, SIZES[kind]))
    hull = rng.uniform(-high, high, (vertices, 3)) if kind == HULL else None
    return Shapes(rng.uniform(-spread, spread, (n, 3)), Rotation.random(n, random_state=rng).as_matrix(), extent, hull)


def random_turn(rng) -> np.ndarray:
    return Rotation.random(random_state=rng).as_matrix()


def reach(kind: int, shapes: Shapes, n: np.ndarray) -> np.ndarray:
    """Support function: how far each shape reaches along unit vectors n ``[n, 3]``, from its centre."""
    d = np.einsum("nji,nj->ni", shapes.axes, n)
    size, round_part = shapes.extent, np.hypot(d[:, 0], d[:, 1])
    if kind == SPHERE:
        return size[:, 0]
    if kind == CAPSULE:
        return size[:, 0] + size[:, 1] * abs(d[:, 2])
    if kind == BOX:
        return (size * abs(d)).sum(1)
    if kind == CYLINDER:
        return size[:, 0] * round_part + size[:, 1] * abs(d[:, 2])
    if kind == CONE:
        return np.maximum(size[:, 1] * d[:, 2], size[:, 0] * round_part - size[:, 1] * d[:, 2])
    if kind == ELLIPSOID:
        return np.linalg.norm(size * d, axis=1)
    return (d @ shapes.vertices.T).max(1)


def separation(kind: int, other: int, a: Shapes, b: Shapes, n: np.ndarray) -> np.ndarray:
    """By how much planes perpendicular to n separate each pair. The signed distance of convex shapes is the largest one of all n."""
    return ((b.centre - a.centre) * n).sum(1) - reach(kind, a, n) - reach(other, b, -n)


def best_separation(rng, kind: int, other: int, a: Shapes, b: Shapes, n: np.ndarray, tries: int = 200) -> np.ndarray:
    """The largest separation among random directions, and directions near n."""
    best = separation(kind, other, a, b, n)
    spread = np.geomspace(1.0e-4, 3.0, tries)
    for s in spread:
        d = n + s * rng.normal(size=n.shape)
        best = np.maximum(best, separation(kind, other, a, b, d / np.linalg.norm(d, axis=1, keepdims=True)))
    return best


def outside(kind: int, shapes: Shapes, x: np.ndarray) -> np.ndarray:
    """Signed distances of points ``[n, 3]`` from shapes: spheres, capsules, boxes, cylinders."""
    p = np.einsum("nji,nj->ni", shapes.axes, x - shapes.centre)
    size = shapes.extent
    if kind == SPHERE:
        return np.linalg.norm(p, axis=1) - size[:, 0]
    if kind == CAPSULE:
        p[:, 2] -= np.clip(p[:, 2], -size[:, 1], size[:, 1])
        return np.linalg.norm(p, axis=1) - size[:, 0]
    if kind == BOX:
        over = abs(p) - size
    elif kind == CYLINDER:
        over = np.stack([np.hypot(p[:, 0], p[:, 1]) - size[:, 0], abs(p[:, 2]) - size[:, 1]], axis=1)
    else:
        raise ValueError(f"no distances from kind {kind}")
    return np.linalg.norm(np.maximum(over, 0.0), axis=1) + np.minimum(over.max(1), 0.0)
