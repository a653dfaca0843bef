"""Distances of the capsules of a robot: all pairs in one launch, for one configuration or a batch."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from newton_like.kernels.robot.capsules import PAIR
from newton_like.robot.core.calls import Calls
from newton_like.robot.core.shelf import Shelf
from newton_like.robot.core.state import StateCore
from newton_like.robot.core.tasks import NEAREST_POINTS, POINT, Task, distance_tasks, gaps_task
from newton_like.robot.errors import RobotIndexError
from newton_like.robot.structure.collision import BatchResults, CollisionResult, GeomCapsule, ResultRows
from newton_like.robot.structure.link import collision_versions

_BATCHES = 8
"""Batch sizes whose launches stay recorded."""

_ORDERS = 64
"""Orders of links and joints whose capsules a robot keeps."""

_AT_ONCE = 512
"""Configurations whose distances are computed and compared at a time."""


class Distances(NamedTuple):
    """Distances of pairs of capsules. Arrays of a batch have it as their first dimension. Points and vectors are in the frame of the first
    link of the state.

    Attributes:
        distance: of the surfaces [m], negative for capsules that overlap, ``[pairs]``.
        position1, position2: nearest points on the axes [m], ``[pairs, 3]``.
        normal: unit vectors from the first axis to the second, ``[pairs, 3]``.
        links: names of the links of each pair.
        jacobian: derivatives of the distances with respect to q [m/rad or m/m], ``[pairs, n]``, or None.
    """

    distance: np.ndarray
    position1: np.ndarray
    position2: np.ndarray
    normal: np.ndarray
    links: list[tuple[str, str]]
    jacobian: np.ndarray | None


class Capsules:
    """The capsules of a robot and the pairs that its filter lets pass, in the order of a state's links. Threads may use them at the same
    time.

    Attributes:
        numbers: ends of the axes in the frames of their links, and radii, ``[capsules, 7]``.
        bodies: of each capsule, its body.
        radii: of the capsules [m].
        pairs: two capsules each, ``[pairs, 2]``.
        names: names of the links of each pair.
        versions: tells whether capsules were changed.
        bounds, slides, highest: what :mod:`newton_like.robot.control` computed once for these capsules.

    Args:
        core: of the state.
    """

    def __init__(self, core: StateCore):
        self._robot, self._order, links = core.robot.core, core.order, core.robot.core.links
        self.versions = collision_versions(links)
        numbers, bodies, groups = [], [], []
        for i, k in enumerate(core.bodies):
            for collision in links[k].collisions:
                T = collision.origin
                for geom in collision.geoms:
                    if not isinstance(geom, GeomCapsule):
                        raise NotImplementedError(
                            f"collision {collision.name!r} of link {links[k].name!r} has a geom without a shape; use GeomCapsule"
                        )
                    ends = (T[:3, :3] @ x + T[:3, 3] for x in (geom.start_point, geom.end_point))
                    numbers.append([*next(ends), *next(ends), geom.radius])
                    bodies.append(k)
                    groups.append((i, geom.coltype, geom.colaffinity))
        self.numbers, self.bodies = np.array(numbers, dtype=float).reshape(-1, 7), bodies
        link, kind, affinity = np.array(groups, dtype=np.int64).reshape(-1, 3).T
        passes = (kind[:, None] & affinity | affinity[:, None] & kind) != 0
        self.pairs = np.argwhere(passes & (link[:, None] < link))
        self.names = [(core.link_names[link[i]], core.link_names[link[j]]) for i, j in self.pairs]
        self.radii = self.numbers[:, 6]
        self._pair_radii = self.radii[self.pairs]
        self._flat = self.numbers.ravel()
        self._reference = core.bodies[0]
        self._made, self._nearest = Shelf(_BATCHES), Shelf(1)
        self._known: dict = {}
        self.bounds: dict = {}
        self.slides: np.ndarray | None = None
        self.highest: dict = {}

    def evaluate(
        self, core: StateCore, jacobian: bool, chosen: np.ndarray | None = None, q: np.ndarray | None = None
    ) -> Distances:
        """Distances of all pairs, or of chosen ones, for the joint positions of a state, or for others ``[n]`` or ``[batch, n]``."""
        q = core.given["q"] if q is None else q
        pairs = self.pairs if chosen is None else self.pairs[chosen]
        names = self.names if chosen is None else [self.names[i] for i in chosen]
        n = len(self._order)
        count = q.shape[:-1]
        if not len(pairs):
            results = [np.zeros((*count, PAIR, 0)), np.zeros((*count, 0, n))]
        else:
            arrays = {"q": q, "capsules": self._flat}
            shapes = [(PAIR, len(pairs)), (len(pairs), n)][: 1 + jacobian]
            results = self._evaluate(self._tasks(len(pairs))[jacobian], count, pairs, arrays, shapes)
            if not count:
                results = [x[0] for x in results]
        found, rows = results[0], results[1] if jacobian else None
        vectors = (np.swapaxes(found[..., i : i + 3, :], -1, -2) for i in (1, 4, 7))
        return Distances(found[..., 0, :], *vectors, names, rows)

    def results(self, core: StateCore, least: int) -> Any:
        """Results for one configuration, or for each of a batch, nearest first: all contacts, and further pairs until there are `least`."""
        q = core.given["q"]
        if q.ndim == 1:
            return self._results_of_one(self.evaluate(core, False), least)
        count, pairs = len(q), len(self.pairs)
        far, some = min(least, pairs), []
        # parts of nearly equal size, whose distances stay in a cache until they are compared
        parts = -(-count // _AT_ONCE)
        ends = [count * i // parts for i in range(parts + 1)]
        for first, end in pairwise(ends):
            some.append((first, *self._chosen(q[first:end], far)))
        columns, distance, axes = (np.concatenate(x) for x in list(zip(*some, strict=True))[2:])
        rows = np.concatenate([first + at for first, at, *_ in some])
        starts = np.searchsorted(rows, np.arange(count + 1))
        # a tie may have chosen more
        kept = (distance <= 0.0) | (np.arange(len(rows)) - starts[rows] < far)
        if not kept.all():
            rows, columns, distance, axes = (x[kept] for x in (rows, columns, distance, axes))
            starts = np.searchsorted(rows, np.arange(count + 1))
        points = self._points(axes)
        points = points[:, :3], points[:, 3:6], points[:, 6:]
        return BatchResults(self._rows(self.names, columns, distance, *points), starts.tolist())

    def _chosen(self, q: np.ndarray, far: int) -> tuple[np.ndarray, ...]:
        """Of the contacts and the `far` nearest pairs of each configuration, or more at the same distance, by configuration and distance:
        configuration, pair, distance, and both axes ``[rows, 12]``."""
        capsules, pairs = len(self.numbers), len(self.pairs)
        farthest, near, axes = 0.0, np.zeros((len(q), 0)), np.zeros((len(q), 6 * capsules))
        if pairs:
            arrays, shapes = {"q": q, "capsules": self._flat}, [(pairs,), (6 * capsules,)]
            near, axes = self._evaluate(self._tasks(pairs)[2], q.shape[:-1], self.pairs, arrays, shapes)
        if far:
            # a partition copies all distances
            nearest = np.partition(near, far - 1, axis=1)[:, far - 1] if far > 1 else near.min(axis=1)
            farthest = np.maximum(nearest, 0.0)[:, None]
        rows, columns = np.divmod((near <= farthest).ravel().nonzero()[0], max(near.shape[1], 1))
        # by configuration, then by distance; pairs at the same distance stay in their order. Short integers are sorted by their digits.
        order = near[rows, columns].argsort(kind="stable")
        order = order[rows[order].astype(np.uint16).argsort(kind="stable")]
        rows, columns = rows[order], columns[order]
        both = axes.reshape(len(q), capsules, 6)[rows[:, None], self.pairs[columns]]
        return rows, columns, near[rows, columns], both.reshape(-1, 12)

    def _points(self, axes: np.ndarray) -> np.ndarray:
        """Nearest points of pairs of axes and unit vectors between them, ``[rows, POINT]``, from the start and the direction of both axes,
        ``[rows, 12]``."""
        found = np.empty((len(axes), POINT))
        recorded = self._nearest.take(None) or self._record_nearest()
        given, out, run, _ = recorded
        for first in range(0, len(axes), _AT_ONCE):
            some = axes[first : first + _AT_ONCE]
            given[: len(some)] = some
            run.run()
            found[first : first + _AT_ONCE] = out[: len(some)]
        self._nearest.give(None, recorded)
        return found

    def _record_nearest(self) -> tuple:
        """The arrays and the launch of :meth:`_points`, and its memory."""
        rows = {"capsule_axes": 12, "pairs": POINT}
        calls = Calls(self._robot.machine, _AT_ONCE, self._order, "general", rows)
        given, out = np.zeros((_AT_ONCE, 12)), np.zeros((_AT_ONCE, POINT))
        return given, out, calls.record(NEAREST_POINTS, {"capsule_axes": given}, [out], False), calls

    def _results_of_one(self, found: Distances, least: int) -> list[CollisionResult]:
        """As :meth:`results`, for one configuration."""
        distance = found.distance
        far, farthest = min(least, len(distance)), 0.0
        if far:
            nearest = np.partition(distance, far - 1)[far - 1] if far > 1 else distance.min()
            farthest = max(nearest, 0.0)
        columns = (distance <= farthest).nonzero()[0]
        if len(columns) > 1:
            columns = columns[distance[columns].argsort(kind="stable")]
        chosen = distance[columns]
        if len(columns) > far:
            # a tie may have chosen more
            columns = columns[: max(far, np.count_nonzero(chosen <= 0.0))]
            chosen = chosen[: len(columns)]
        p, q, n = (x[columns] for x in found[1:4])
        return self._rows(found.links, columns, chosen, p, q, n).results(0, len(columns))

    def _rows(self, links, columns, distance, p, q, n) -> ResultRows:
        """Results with the numbers of pairs, nearest points on the axes, and normals."""
        radii = self._pair_radii[columns]
        points = p, q, p + radii[:, :1] * n, q - radii[:, 1:] * n, n
        return ResultRows(links, columns, distance, points)

    def _evaluate(
        self, task: Task, count: tuple[int, ...], pairs: np.ndarray, arrays: dict, shapes
    ) -> list[np.ndarray]:
        """The results of a task for some pairs, ``[pairs, 2]``; see :meth:`Calls.evaluate`."""
        key = (count, len(pairs))
        calls = self._made.take(key) or self._calls(*key)
        calls.links[3 + len(self.numbers) :] = pairs.ravel()
        results = calls.evaluate(task, arrays, shapes, (0, self._reference, 0))
        self._made.give(key, calls)
        return results

    def _calls(self, count: tuple[int, ...], pairs: int) -> Calls:
        n, capsules = len(self._order), len(self.numbers)
        rows = {
            "capsules": 7 * capsules,
            "capsule_axes": 6 * capsules,
            "pairs": PAIR * pairs,
            "distance_rows": n * pairs,
        }
        bodies = np.array([0, self._reference, 0, *self.bodies, *[0] * (2 * pairs)], dtype=np.int32)
        tree = {"points": capsules, "result_size": pairs, "point_body": bodies}
        if not count:
            return Calls(self._robot.single, 1, self._order, "general", rows, tree)
        return Calls(self._robot.machine, count[0], self._order, self._robot.evaluator, rows, tree)

    def _tasks(self, pairs: int) -> tuple[Task, Task, Task]:
        """Distances, distances with their derivatives, and distances with axes."""
        found = self._known.get(pairs)
        if found is None:
            made = *distance_tasks(pairs, len(self._order)), gaps_task(pairs, len(self.numbers))
            found = self._known.setdefault(pairs, made)
        return found


def chosen_pairs(capsules: Capsules, pairs) -> np.ndarray | None:
    """Indices of pairs.

    Raises:
        IndexError: no such pair.
        TypeError: not a list of integers.
    """
    if pairs is None:
        return None
    chosen = np.atleast_1d(np.asarray(pairs))
    if not chosen.size:
        chosen = np.zeros(0, dtype=int)
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise TypeError(f"pairs must be a list of indices of pairs, not {pairs!r}")
    if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(capsules.pairs)):
        known = len(capsules.pairs)
        has = f"{known} pairs of capsules, 0 to {known - 1}" if known else "no pairs of capsules"
        raise RobotIndexError(f"pairs {pairs!r}: the robot has {has}")
    return chosen


def capsules_of(core: StateCore) -> Capsules:
    """The capsules of a state as they are now. States with the same order of links and joints share them."""
    found = core.capsules
    versions = collision_versions(core.robot.core.links)
    if found is None or found.versions != versions:
        robot, key = core.robot.core, (tuple(core.bodies), core.order.tobytes())
        found = robot.capsules.get(key)
        if found is None or found.versions != versions:
            # several threads may make them
            robot.capsules[key] = found = Capsules(core)
        # others may have removed them meanwhile
        with suppress(KeyError):
            robot.capsules.move_to_end(key)
            while len(robot.capsules) > _ORDERS:
                robot.capsules.popitem(last=False)
        core.capsules = found
    return found
