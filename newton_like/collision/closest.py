"""Closest points of pairs of shapes at the poses of a state, without a step."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, as_numbers, flat, host_array, keep_for_graph
from newton_like.collision.ground import KIND
from newton_like.kernels.collision.closest import PLANE, search_kernel, slot_kernels
from newton_like.kernels.collision.pairs.records import PAIR_COUNTS, POINT, SHAPE
from newton_like.kernels.layout import STEP, STEP_ROWS, sizes, stack
from newton_like.model.arguments import arrays_of_state, check_model
from newton_like.programs.device import interleaved, lane_width
from newton_like.programs.robot import namespace
from newton_like.types import GeoType, warp_types

_THREADS = 4096
"""Largest number of threads of a search on a GPU, each of which has memory of its own."""

_COUNTS = dict.fromkeys(
    (
        "coords", "dofs", "bodies", "trees", "entries", "reach", "candidates", "contact_rows", "couplings", "first_paired", "shapes",
        "pairs", "surface_pairs", "loop_rows", "loop_block", "loop_soft",
    ),
    0,
)  # fmt: skip
"""Counts of a search: no robot."""


@cache
def _search_kernel(width: int, real):
    return search_kernel(namespace(width, real, STEP_ROWS))


class ClosestPoints:
    """The closest points of pairs of shapes.

    Kinds are spheres, capsules, boxes, cylinders, cones, ellipsoids, convex meshes, meshes on bodies (their convex hulls), and one infinite
    plane a pair. Shapes of different pairs may be in different worlds. Where shapes overlap, the distance is minus the length of the
    shortest way out, and the points are those that this way joins. Of parallel faces and edges, one pair of points is given. Distances have
    no margin. In single precision, errors of distances are about 1e-6 of the sizes of both shapes, up to 2e-5 for curved shapes with faces;
    where curved shapes or hulls overlap, depths may exceed the smallest depth by about 1 %.

    Args:
        model: the model.
        pairs: indices of two shapes each, ``[..., 2]``.

    Attributes:
        distance: signed distance [m], negative where shapes overlap, ``[...]``.
        point0, point1: points on the surfaces of the first and of the second shapes, world frame [m], ``[...]`` of vectors.
        normal: unit vectors from the first to the second shapes, world frame; ``point1 = point0 + distance normal``.

    Raises:
        TypeError: ``model`` is not a model, ``pairs`` are not integers.
        IndexError: a shape does not exist.
        ValueError: ``pairs`` has another form; a pair has one shape twice, shapes of two worlds, two planes, or a shape of another kind.
    """

    def __init__(self, model, pairs):
        self.model = check_model(model)
        device, vec3 = model.device, warp_types(model.dtype).vec3
        shapes = _checked(model, pairs)
        form = shapes.shape[:-1] or (1,)
        self._count = n = int(np.prod(form))
        shapes = shapes.reshape(n, 2)
        types = model.shape_type.numpy()
        kinds = np.array(
            [PLANE if t == GeoType.PLANE else KIND[GeoType(t)] for t in types[shapes].ravel().tolist()], dtype=int
        )
        kinds = kinds.reshape(n, 2)
        # a pair of equal kinds has the lower index first, so that swapping its shapes swaps the results
        swapped = (kinds[:, 0] > kinds[:, 1]) | ((kinds[:, 0] == kinds[:, 1]) & (shapes[:, 0] > shapes[:, 1]))
        shapes, kinds = (np.where(swapped[:, None], x[:, ::-1], x) for x in (shapes, kinds))
        self._width = lane_width(device, model.dtype)
        pair_of, counts, self._groups = self._slots(shapes, kinds)
        self._one, self._two, self._pair_of, self._counts, self._swapped = (
            wp.array(np.ascontiguousarray(x, dtype=np.int32), dtype=wp.int32, device=device)
            for x in (shapes[:, 0], shapes[:, 1], pair_of, counts, swapped)
        )
        self._flat = [wp.zeros(n, dtype=t, device=device) for t in (model.dtype, vec3, vec3, vec3)]
        self.distance, self.point0, self.point1, self.normal = (x.reshape(form) for x in self._flat)
        self._make_memory(len(pair_of) // self._width)

    def _slots(self, shapes: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[tuple]]:
        """The pair of each slot, which slots count, and for each group of pairs of the same kinds and hulls its blocks and arguments."""
        first, number = self.model.shape_hull_first.numpy(), self.model.shape_hull_count.numpy()
        keys = np.stack([kinds[:, 0], kinds[:, 1], *(x[shapes[:, i]] for i in (0, 1) for x in (first, number))], axis=1)
        found, group = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        starts = np.searchsorted(group.ravel()[order], np.arange(len(found) + 1))
        pair_of, counts, groups, block = [], [], [], 0
        for key, start, end in zip(found.tolist(), starts[:-1], starts[1:], strict=True):
            blocks = -(-(end - start) // self._width)
            more = blocks * self._width - (end - start)
            pair_of += [order[start:end], np.repeat(order[end - 1 : end], more)]
            counts += [np.ones(end - start, dtype=int), np.zeros(more, dtype=int)]
            groups.append((block, block + blocks, key))
            block += blocks
        none = np.zeros(0, dtype=int)
        return np.concatenate([none, *pair_of]), np.concatenate([none, *counts]), groups

    def _make_memory(self, blocks: int) -> None:
        model, device = self.model, self.model.device
        m = self._m = namespace(self._width, model.dtype, STEP_ROWS)
        self._threads = min(max(blocks, 1), _THREADS) if interleaved(device) else 1
        rows = (row for row in STEP if "pairs" in row.read_by.split())
        layout = stack(sizes(rows, SimpleNamespace(**PAIR_COUNTS, **_COUNTS)))
        self._T, self._P, self._L = m.Tree(), m.Params(), m.Layout()
        for name, at in layout.items():
            if name in m.Layout.vars:
                setattr(self._L, name, at)
        points = flat(model.hull_points, model.dtype)
        self._P.uniform = points if points.size else wp.zeros(1, dtype=model.dtype, device=device)
        self._memory = wp.zeros((layout["size"], self._threads), dtype=m.lane, device=device)
        self._shapes = wp.zeros((2 * SHAPE, blocks), dtype=m.lane, device=device)
        self._points = wp.zeros((POINT, blocks), dtype=m.lane, device=device)

    def compute(self, state) -> ClosestPoints:
        """Computes the closest points at the poses of bodies of a state. Results go to the same arrays. A graph can capture the call.

        Args:
            state: its ``body_q`` is read.

        Raises:
            TypeError, ValueError: ``state`` is not a state of the model.
            RuntimeError: a tape records, and the state requires gradients.
        """
        model = self.model
        (body_q,) = arrays_of_state(model, state, "body_q")
        if active_tape() is not None and body_q.requires_grad:
            raise RuntimeError(
                "closest_points has no gradients, but a tape is recording and the state requires a gradient; call it outside of the tape"
            )
        if not self._count:
            return self
        if model.device.is_capturing:
            keep_for_graph(model.device, self, model)
        place, write = slot_kernels(model.dtype)
        slots, device = self._pair_of.size, model.device
        shapes, points = (as_numbers(x, model.dtype, self._width) for x in (self._shapes, self._points))
        local = [model.shape_body, model.shape_transform]
        wp.launch(
            place, dim=slots, outputs=[shapes], device=device,
            inputs=[self._pair_of, self._width, self._one, self._two, *local, model.shape_scale, body_q],
        )  # fmt: skip
        search = _search_kernel(self._width, model.dtype)
        for first, last, (kind, other, hull_a, count_a, hull_b, count_b) in self._groups:
            threads = min(self._threads, last - first)
            wp.launch(
                search, dim=threads, outputs=[self._points], device=device,
                inputs=[
                    first, last, threads, kind, other, hull_a, count_a, hull_b, count_b, self._T, self._P, self._L, self._memory,
                    self._shapes,
                ],
            )  # fmt: skip
        wp.launch(
            write, dim=slots, outputs=self._flat, device=device,
            inputs=[self._pair_of, self._counts, self._swapped, self._width, self._one, *local, body_q, points],
        )  # fmt: skip
        return self


def closest_points(model, state, pairs) -> ClosestPoints:
    """The closest points of pairs of shapes at the poses of bodies of a state, for many pairs and worlds at once.

    Make a :class:`ClosestPoints` to repeat this for the same pairs: its memory is kept then.

    Args:
        model: the model.
        state: its ``body_q`` is read.
        pairs: indices of two shapes each, ``[..., 2]``. Shapes of a world start at ``model.shape_world_start[world]``.

    Returns:
        The distances, points and normals.

    Raises:
        TypeError, IndexError, ValueError, RuntimeError: see :class:`ClosestPoints` and :meth:`ClosestPoints.compute`.
    """
    return ClosestPoints(model, pairs).compute(state)


def _checked(model, pairs) -> np.ndarray:
    """Pairs of shapes as an array ``[..., 2]`` of indices."""
    shapes = host_array(pairs, "pairs") if isinstance(pairs, wp.array) else np.asarray(pairs)
    if shapes.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if shapes.dtype.kind not in "iu":
        raise TypeError(f"pairs must be indices of shapes (integers), not numbers of type {shapes.dtype}")
    if shapes.ndim == 0 or shapes.shape[-1] != 2:
        raise ValueError(f"pairs has the shape {shapes.shape}; give two indices of shapes each, [..., 2]")
    shapes = shapes.astype(np.int64)
    wrong = (shapes < 0) | (shapes >= model.shape_count)
    if wrong.any():
        raise IndexError(
            f"pairs: shape {int(shapes[wrong][0])} does not exist; the model has {model.shape_count} shapes"
        )
    rows = shapes.reshape(-1, 2)

    def refuse(wrong: np.ndarray, why: str) -> None:
        if wrong.any():
            a, b = rows[np.argmax(wrong)].tolist()
            names = " and ".join(f"'{model.shape_label[s]}' (index {s})" for s in (a, b))
            raise ValueError(f"pairs: shapes {names} {why}")

    refuse(rows[:, 0] == rows[:, 1], "are the same shape; give two")
    world = model.shape_world.numpy()[rows]
    refuse((world >= 0).all(axis=1) & (world[:, 0] != world[:, 1]), "are in different worlds; give shapes of one world")
    types, body = model.shape_type.numpy(), model.shape_body.numpy()
    plane = types == GeoType.PLANE
    refuse(plane[rows].all(axis=1), "are two planes; give one plane at most")
    used = np.unique(rows)
    known = np.isin(types[used], [*KIND, GeoType.PLANE])
    mesh = np.isin(types[used], (GeoType.MESH, GeoType.CONVEX_MESH))
    finite = plane[used] & (model.shape_scale.numpy()[used, :2] > 0.0).any(axis=1)
    reasons = (
        (~known, "has no closest points", "use planes and convex shapes"),
        ((types[used] == GeoType.MESH) & (body[used] < 0), "is a fixed mesh, whose surface is not its convex hull", "use a convex mesh"),
        (mesh & (model.shape_hull_count.numpy()[used] == 0), "has no convex hull, because it does not collide", "let it collide"),
        (finite, "is a plane with edges", "use a box, or a plane of width and length 0"),
    )  # fmt: skip
    for bad, why, cure in reasons:
        if bad.any():
            s = int(used[np.argmax(bad)])
            kind = GeoType(int(types[s])).name.lower()
            raise ValueError(f"pairs: shape '{model.shape_label[s]}' (index {s}, a {kind}) {why}; {cure}")
    return shapes
