"""Contacts of crowds: worlds with so many shapes that not all pairs are looked at."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, check_recorded, flat
from newton_like.collision.ground import FIXED_KIND, KIND, Shapes, moving_shapes
from newton_like.collision.ration import Ration
from newton_like.collision.surfaces import surfaces_of
from newton_like.kernels.collision.crowds.blocks import (
    BODIES_AT,
    COLLIDERS_AT,
    COUNTS,
    FOUND,
    HULLS_AT,
    PLANES_AT,
    arrange_kernels,
    block_struct,
    list_kernels,
    narrow_kernel,
    pair_row,
)
from newton_like.kernels.collision.crowds.boxes import KEPT, LEVELS, NODE, PLANE, box_kernels, crowd_struct, row_kernels
from newton_like.kernels.collision.pairs.records import points_of
from newton_like.kernels.collision.plane import HULL, POINTS
from newton_like.kernels.collision.surfaces.records import FIELD
from newton_like.kernels.layout import KINEMATICS, STEP, STEP_ROWS, sizes, stack
from newton_like.programs.device import interleaved, lane_width
from newton_like.programs.robot import namespace
from newton_like.threads import SHARES_PER_THREAD, Command, compiling, run_shared, worker_count
from newton_like.types import GeoType, warp_types

CROWD = 64
"""Shapes on bodies of a world, above which a tree of boxes finds its pairs."""

ALONE = 200
"""Rows up to which one thread computes all."""

_GPU_THREADS = 4096
"""Largest number of threads of the narrow phase on a GPU, each of which has memory of its own."""

_RECORDED = 16

_RESORT = 8
"""Calls after which items are ordered along the curve anew. Trees of an old order are slower, and find the same."""


def crowd_keys(model) -> list[int]:
    """The worlds that are crowds; -1: the bodies that belong to no single world."""
    shapes = Shapes(model)
    return _crowded(shapes, _own_shapes(model, shapes))


def _own_shapes(model, shapes: Shapes) -> np.ndarray:
    """The colliding shapes on bodies of articulations."""
    held = np.zeros(model.body_count + 1, dtype=bool)
    held[model.joint_child.numpy()[model.joint_articulation.numpy() >= 0]] = True
    return np.flatnonzero(shapes.collides & np.isin(shapes.type, list(KIND)) & (shapes.body >= 0) & held[shapes.body])


def _crowded(shapes: Shapes, own: np.ndarray) -> list[int]:
    keys, counts = np.unique(shapes.world[own], return_counts=True)
    return keys[counts > CROWD].tolist()


def _padded(count: np.ndarray) -> np.ndarray:
    """Numbers of vertices that hulls of a class have in blocks."""
    return np.where(count <= 64, -(-count // 8) * 8, -(-count // 32) * 32)


def _bounds_of_hulls(model, shapes: Shapes, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners of hulls, and of meshes without their factors, in the axes of shapes, ``[shape_count, 3]``."""
    low, high = np.zeros((2, model.shape_count, 3))
    known: dict = {}
    for s in members[np.isin(shapes.type[members], (GeoType.MESH, GeoType.CONVEX_MESH))].tolist():
        fixed = shapes.body[s] < 0 and shapes.type[s] == GeoType.MESH
        first = int(shapes.hull_first[s])
        key = id(model.shape_source[s]) if fixed else first
        if (fixed, key) not in known:
            points = shapes.hull_points[first : first + int(shapes.hull_count[s])]
            if fixed:
                points = np.asarray(model.shape_source[s].vertices, dtype=np.float64)
            known[fixed, key] = points.min(axis=0), points.max(axis=0)
        low[s], high[s] = known[fixed, key]
    return low, high


@cache
def _narrow_kernel(width: int, real, pairs: frozenset, surfaces: bool):
    return narrow_kernel(namespace(width, real, STEP_ROWS), pairs, surfaces)


@cache
def _levels(count: int) -> tuple[int, ...]:
    """Numbers of nodes of the levels of a tree, from below."""
    nodes = [max(1, -(-count // 8))]
    while nodes[-1] > 1:
        nodes.append(-(-nodes[-1] // 8))
    assert len(nodes) <= LEVELS
    return tuple(nodes)


class Crowds:
    """Finds the contacts of the crowds of a model.

    Args:
        model: the model.

    Attributes:
        worlds: the worlds that are crowds; -1: the bodies that belong to no single world.
        rows: the first row of each one, and their number.
    """

    def __init__(self, model):
        shapes = Shapes(model)
        own = _own_shapes(model, shapes)
        self.worlds = _crowded(shapes, own)
        self._device, self._dtype = model.device, model.dtype
        self._width = lane_width(model.device, model.dtype)
        self._m = namespace(self._width, model.dtype, STEP_ROWS)
        self._make_items(model, shapes, own[np.isin(shapes.world[own], self.worlds)])
        self._make_groups(model)
        threads = worker_count() if model.device.is_cpu and self._rows > ALONE else 1
        self._threads, self._shares = threads, threads * SHARES_PER_THREAD if threads > 1 else 1
        self._recorded: dict = {}
        self._calls = 0
        self._room = self._blocks_room = self._found_room = 0
        self._make_room(4 * self._rows, 0, 0)
        self._make_memory()

    def _array(self, values, dtype=wp.int32) -> wp.array:
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self._device)

    # ------------------------------------------------------------------------------------------------ tables

    def _make_items(self, model, shapes: Shapes, own: np.ndarray) -> None:
        """Lists the shapes of each tree, and its planes and height fields."""
        fixed = np.flatnonzero(shapes.collides & (shapes.body < 0) & np.isin(shapes.type, [*FIXED_KIND, GeoType.PLANE]))
        kind = np.full(model.shape_count, PLANE)
        for types, table in ((shapes.body >= 0, KIND), (shapes.body < 0, FIXED_KIND)):
            for type_, k in table.items():
                kind[types & (shapes.type == type_)] = k
        level = (kind == PLANE) | (kind == FIELD)
        floors, solid = fixed[level[fixed]], fixed[~level[fixed]]
        alone = len(self.worlds) == 1
        items, floor = [], []
        for w in self.worlds:
            near = (
                (shapes.world[solid] == w) | (alone & (shapes.world[solid] < 0))
                if w >= 0 or alone
                else np.zeros(len(solid), bool)
            )
            items.append(np.concatenate([own[shapes.world[own] == w], solid[near]]))
            floor.append(floors[(shapes.world[floors] == w) | (shapes.world[floors] < 0)])
        shared = solid[shapes.world[solid] < 0]
        self._shared = -1
        if not alone and len(shared):
            self._shared = len(items)
            items.append(shared)
            floor.append(np.zeros(0, dtype=int))
        item = np.concatenate(items)
        tree = np.repeat(np.arange(len(items)), [len(x) for x in items])
        nodes = [_levels(len(x)) for x in items]
        at, level_at = 0, np.zeros((len(items), LEVELS), dtype=int)
        # the lowest levels of all trees come first
        for n in range(LEVELS):
            for t, counts in enumerate(nodes):
                if n < len(counts):
                    level_at[t, n] = at
                    at += counts[n]
        lowest = np.repeat(np.arange(len(items)), [n[0] for n in nodes])
        members = np.concatenate([item, *floor])
        low, high = _bounds_of_hulls(model, shapes, members)
        rank = np.empty(model.shape_count, dtype=int)
        rank[np.lexsort((np.arange(model.shape_count), (shapes.world >= 0) | (shapes.body >= 0)))] = np.arange(
            model.shape_count
        )
        vec3 = warp_types(model.dtype).vec3
        row = np.flatnonzero(shapes.body[item] >= 0)
        self.rows = np.searchsorted(tree[row], np.arange(len(self.worlds) + 1))
        self._rows, self._items, self._trees, self._lowest = len(row), len(item), len(items), len(lowest)
        self._members, self._kinds = members, kind
        whole = dict(
            shape=item, tree=tree, first=np.cumsum([0, *[len(x) for x in items]]), levels=[len(n) for n in nodes],
            tree_of_node=lowest, row=row, floor=np.concatenate(floor), first_floor=np.cumsum([0, *[len(x) for x in floor]]),
            kind=kind, rank=rank, moves=moving_shapes(model).astype(int),
        )  # fmt: skip
        self._fixed = {name: self._array(np.append(x, 0) if not len(x) else x) for name, x in whole.items()}
        self._fixed.update(
            level_at=self._array(level_at), order=wp.full(8 * len(lowest), -1, dtype=wp.int32, device=self._device),
            nodes=wp.zeros(NODE * at, dtype=model.dtype, device=self._device),
            turn=wp.zeros(len(item), dtype=warp_types(model.dtype).quat, device=self._device),
            near=wp.zeros(KEPT * self._rows, dtype=wp.int32, device=self._device),
            **{name: wp.zeros(len(item), dtype=vec3, device=self._device) for name in ("low", "high", "middle", "half", "extent")},
            hull_low=self._array(low, vec3), hull_high=self._array(high, vec3), filters=self._array(shapes.filter_codes, wp.int64),
        )  # fmt: skip
        self._key = wp.zeros(2 * len(item), dtype=wp.int64, device=self._device)
        self._item = wp.zeros(2 * len(item), dtype=wp.int32, device=self._device)
        self._counts = wp.zeros(self._rows + 1, dtype=wp.int32, device=self._device)
        self._starts = wp.zeros(self._rows + 1, dtype=wp.int32, device=self._device)

    def _make_groups(self, model) -> None:
        """Classes of shapes, and the groups of pairs of two classes."""
        kind, members = self._kinds, np.unique(self._members)
        hull = _padded(model.shape_hull_count.numpy())
        surface = np.zeros(model.shape_count, dtype=int)
        on_surface = members[kind[members] >= FIELD]
        self._surfaces = surfaces_of(model) if len(on_surface) else None
        for s in on_surface.tolist():
            surface[s] = self._surfaces.first(model.shape_source[s])
        form = np.where(kind == HULL, hull, np.where(kind >= FIELD, surface, 0))
        classes, number = np.unique(np.stack([kind[members], form[members]], axis=1), axis=0, return_inverse=True)
        sort = np.zeros(model.shape_count, dtype=int)
        sort[members] = number.ravel()
        groups, tables, group = [], [], np.full((len(classes), len(classes)), -1)
        for a, (one, first) in enumerate(classes.tolist()):
            for b, (two, second) in enumerate(classes.tolist()):
                if one > two or one >= FIELD or two == PLANE or (one == PLANE and two >= FIELD):
                    continue
                points = POINTS[two] if one == PLANE else points_of(one, two)
                hulls = (first if one == HULL else 0, second if two == HULL else 0)
                group[a, b] = len(groups)
                groups.append((one, two, points, *hulls))
                tables.append(pair_row(one, two, points, *hulls, second))
        self._group_count = len(groups)
        # pairs with planes and with surfaces have other programs
        self._pair_kinds = frozenset((one, two) for one, two, *_ in groups if one != PLANE and two < FIELD)
        groups = np.array(groups, dtype=int).reshape(-1, 5)
        self._hulls = int((groups[:, 3] + groups[:, 4]).max(initial=0))
        self._fixed.update(sort=self._array(sort), group=self._array(group))
        self._tables = dict(
            groups=self._array(groups), pair_table=self._array(np.array(tables)), kinds=self._array(groups[:, 1:2]),
            hulls=self._array(groups[:, 4:5]), next=self._array(np.zeros(len(groups))),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ memory

    def _make_room(self, pairs: int, blocks: int, candidates: int) -> None:
        """Memory for numbers of pairs, blocks and candidates; it grows, and does not shrink."""
        if pairs > self._room:
            self._room = pairs
            names = ("owner", "partner", "group", "place")
            self._pairs = {name: self._array(np.zeros(pairs)) for name in names}
            self._number, self._first = (self._array(np.zeros(pairs + 1)) for _ in range(2))
            # on a CPU the memory of the number of contacts is read at once
            self._tally = self._first.numpy() if self._device.is_cpu else None
        blocks = max(blocks, self._room // self._width + self._group_count)
        if blocks > self._blocks_room:
            self._blocks_room = blocks
            self._block = dict(
                group_of_block=self._array(np.zeros(blocks)), candidate=self._array(np.zeros(blocks)),
                lanes=self._array(np.zeros(blocks * self._width)),
            )  # fmt: skip
            self._totals = dict(blocks=self._array([0]), candidates=self._array([0]))
        if not self._device.is_cpu:
            # nothing is read back
            candidates = int(self._tables["groups"].numpy()[:, 2].max(initial=1)) * self._blocks_room
        if candidates > self._found_room or not self._found_room:
            self._found_room = max(candidates, 1)
            self._found = wp.zeros(FOUND * self._found_room, dtype=self._m.lane, device=self._device)
        self._recorded.clear()

    def _make_memory(self) -> None:
        """Memory of workers, and what programs know of a block."""
        m, device = self._m, self._device
        self._columns = min(self._blocks_room, _GPU_THREADS) if interleaved(device) else 1
        counts = SimpleNamespace(**{**COUNTS, "surface_pairs": int(self._surfaces is not None)})
        layout = stack(sizes([row for row in (*KINEMATICS, *STEP) if row.name in _ROWS], counts))
        self._L = m.Layout()
        for name, at in layout.items():
            if name in m.Layout.vars:
                setattr(self._L, name, at)
        T = self._T = m.Tree()
        T.bodies = T.trees = T.shapes = 2
        T.pairs, T.candidates = 1, counts.candidates
        T.surface_pairs = counts.surface_pairs
        T.forest = self._array([0, 1, 0, 1, 2])
        one, zero = self._array([1]), self._array([0])
        T.collider_body = T.collider_plane = T.collider_candidate = T.hull_at = zero
        T.plane_finite = one
        if self._surfaces is not None:
            T.surface_table = self._surfaces.table
        size = HULLS_AT + 3 * self._hulls
        self._P, self._memory = [], []
        for _ in range(self._threads):
            P = m.Params()
            P.uniform = wp.zeros(1, dtype=self._dtype, device=device)
            if interleaved(device):
                P.varying = wp.zeros((size, self._columns), dtype=m.lane, device=device).transpose((1, 0))
            else:
                P.varying = wp.zeros((1, size), dtype=m.lane, device=device)
            P.colliders_vary = P.planes_vary = P.bodies_vary = 1
            P.collider_at, P.plane_at, P.body_at, P.hull_at = COLLIDERS_AT, PLANES_AT, BODIES_AT, HULLS_AT
            self._P.append(P)
            self._memory.append(wp.zeros((layout["size"], self._columns), dtype=m.lane, device=device))

    # ------------------------------------------------------------------------------------------------ search

    def kernels(self) -> list:
        """The kernels of a search, the largest one first."""
        real, width = self._dtype, self._width
        return [
            self._narrow_kernel(), *box_kernels(real), *row_kernels(real), *arrange_kernels(real, width), *list_kernels(real, width)
        ]  # fmt: skip

    def check_capture(self) -> None:
        """Raises RuntimeError while a graph is captured on a CPU: it would not record the launches of threads."""
        if self._device.is_cpu:
            check_recorded(self._device, f"model.collide of a world with more than {CROWD} shapes on bodies, on a CPU")

    def search(
        self, model, body_q: wp.array, body_qd: wp.array, contacts, before: wp.array, moves: wp.array | None = None
    ) -> dict:
        """Finds the contacts of crowds. Returns what :meth:`list` runs.

        Args:
            model: the model.
            body_q, body_qd: poses and velocities of bodies, numbers in a row.
            contacts: the list.
            before: how many contacts come before these in the list, ``[1]``.
            moves: of each shape, zero if it does not move; contacts of two shapes that do not are left out. None: those on bodies that
                some degree of freedom moves.
        """
        moves = self._fixed["moves"] if moves is None else moves
        model_arrays = [getattr(model, name) for name in _MODEL.values()]
        arrays = (
            body_q,
            body_qd,
            before,
            moves,
            contacts.rigid_contact_count,
            contacts.rigid_contact_normal,
            *model_arrays,
        )
        key = tuple(a.ptr for a in arrays)
        capturing = self._device.is_capturing
        sort = capturing or self._calls % _RESORT == 0
        self._calls += 1
        run = self._run(key, model, body_q, body_qd, contacts, before, moves)
        run["bound"]()
        if sort:
            run["place"]()
            wp.utils.radix_sort_pairs(self._key, self._item, self._items)
        for name in ("fill", "grow", "search"):
            run[name]()
        wp.utils.array_scan(self._counts, self._starts, inclusive=False)
        if self._device.is_cpu or not capturing:
            pairs = int(self._starts.numpy()[self._rows])
            if pairs > self._room:
                self._make_room(pairs + pairs // 4, 0, 0)
                run = self._run(key, model, body_q, body_qd, contacts, before, moves)
        run["write"]()
        run["sort"]()
        run["arrange"]()
        if self._device.is_cpu:
            candidates = int(self._totals["candidates"].numpy()[0])
            if candidates > self._found_room:
                self._make_room(0, 0, candidates + candidates // 4)
                run = self._run(key, model, body_q, body_qd, contacts, before, moves)
        run["narrow"]()
        run["tally"]()
        wp.utils.array_scan(self._number, self._first, inclusive=False)
        return run

    @property
    def pairs(self) -> tuple[wp.array, wp.array]:
        """The first pair of each row, and how many contacts of crowds come before those of each pair; at the end the number of all."""
        return self._starts, self._first

    @property
    def count(self) -> int:
        """The number of contacts that the last search found."""
        return int((self._first.numpy() if self._tally is None else self._tally)[-1])

    def list(self, run: dict, ration: Ration | None = None) -> None:
        """Adds the contacts to the list, and the number of all contacts to ``contacts.rigid_contact_count``.

        Args:
            run: what :meth:`search` returned.
            ration: finds the contacts that are kept, if the list may have no room for all.
        """
        if ration is None:
            run["list"]()
            return
        _, listed, depths = list_kernels(self._dtype, self._width)
        C, B, found, before, count, *out = run["ration"]
        size = 2 * self._found_room * self._width if self._device.is_capturing else 2 * self.count
        numbers = wp.zeros(size, dtype=self._dtype, device=self._device)
        moved = wp.zeros(self._room, dtype=wp.int32, device=self._device)
        shares, dim = (1, 1) if self._device.is_cpu else (self._room, self._room)
        wp.launch(depths, dim=dim, inputs=[0, shares, B, found, self._first, numbers], device=self._device)
        ration.choose_pairs(self._number, self._first, numbers, moved)
        inputs = [0, shares, C, B, found, self._first, before, numbers, moved]
        wp.launch(listed, dim=dim, inputs=inputs, outputs=[count, *out], device=self._device)

    def _run(self, key: tuple, model, body_q, body_qd, contacts, before, moves) -> dict:
        found = self._recorded.get(key)
        if found is None:
            if len(self._recorded) >= _RECORDED:
                self._recorded.clear()
            found = self._recorded[key] = self._record(model, body_q, body_qd, contacts, before, moves)
        return found

    @compiling
    def _record(self, model, body_q, body_qd, contacts, before, moves) -> dict:
        """The launches of a search, by their names."""
        real, width, kinds = self._dtype, self._width, warp_types(self._dtype)
        C, B = crowd_struct(real)(), block_struct()()
        C.shared = self._shared
        for name, array in {**self._fixed, "moves": moves}.items():
            setattr(C, name, array)
        for name, source in _MODEL.items():
            setattr(C, name, getattr(model, source))

        def typed(array, dtype):
            return wp.array(ptr=array.ptr, dtype=dtype, shape=(model.body_count,), device=self._device, copy=False)

        C.body_q, C.body_qd = typed(body_q, kinds.transform), typed(body_qd, kinds.spatial_vector)
        for name, array in (*self._tables.items(), *self._pairs.items(), *self._block.items(), *self._totals.items()):
            setattr(B, name, array)
        B.total = self._starts[self._rows :]
        bound, place, fill, grow = box_kernels(real)
        search, write = row_kernels(real)
        sort, arrange = arrange_kernels(real, width)
        tally, listed, _ = list_kernels(real, width)
        out = [
            contacts.rigid_contact_shape0, contacts.rigid_contact_shape1, contacts.rigid_contact_point0, contacts.rigid_contact_point1,
            contacts.rigid_contact_normal, contacts.rigid_contact_margin0, contacts.rigid_contact_margin1,
        ]  # fmt: skip
        found = as_numbers(self._found, real, width) if width > 1 else self._found
        found = flat(found, real)
        commands = {
            "bound": self._shared_out(bound, self._items, [C]),
            "place": self._whole(place, self._trees, [C, self._key, self._item]),
            "fill": self._shared_out(fill, self._lowest, [C, self._item]),
            "grow": self._whole(grow, self._trees, [C]),
            "search": self._shared_out(search, self._rows, [C, self._counts]),
            "write": self._shared_out(write, self._rows, [C, self._starts, B.owner, B.partner]),
            "sort": self._shared_out(sort, self._room, [C, B]),
            "arrange": self._whole(arrange, 1, [B]),
            "narrow": self._narrow(C, B),
            "tally": self._shared_out(tally, self._room, [B, found, self._number[: self._room]]),
            "list": self._shared_out(
                listed,
                self._room,
                [
                    C,
                    B,
                    found,
                    self._first,
                    before,
                    wp.zeros(0, dtype=real, device=self._device),
                    self._counts[:0],
                    contacts.rigid_contact_count,
                    *out,
                ],
            ),
        }
        runs = {name: (lambda workers=workers: run_shared(workers)) for name, workers in commands.items()}
        # what launches know by their addresses
        runs["kept"] = (C, B, body_q, body_qd, contacts, before, moves)
        runs["ration"] = (C, B, found, before, contacts.rigid_contact_count, *out)
        return runs

    def _whole(self, kernel, dim: int, inputs: list) -> list:
        return [[Command(wp.launch(kernel, dim=dim, inputs=inputs, device=self._device, record_cmd=True))]]

    def _shared_out(self, kernel, size: int, inputs: list) -> list:
        """Launches over shares of items: a few a thread, or on a GPU one item each."""
        if not self._device.is_cpu:
            return self._whole(kernel, size, [0, size, *inputs])
        shares = self._shares
        commands = [
            Command(wp.launch(kernel, dim=1, inputs=[i, shares, *inputs], device=self._device, record_cmd=True))
            for i in range(shares)
        ]
        return [commands] * self._threads

    def _narrow_kernel(self):
        return _narrow_kernel(self._width, self._dtype, self._pair_kinds, self._surfaces is not None)

    def _narrow(self, C, B) -> list:
        kernel = self._narrow_kernel()
        shares, dim = (self._columns, self._columns) if interleaved(self._device) else (self._shares, 1)

        def launch(first, worker):
            inputs = [
                first,
                shares,
                self._columns,
                C,
                B,
                self._T,
                self._P[worker],
                self._L,
                self._memory[worker],
                self._found,
            ]
            return Command(wp.launch(kernel, dim=dim, inputs=inputs, device=self._device, record_cmd=True))

        return [[launch(first, worker) for first in range(0, shares, dim)] for worker in range(self._threads)]


_MODEL = dict(
    shape_body="shape_body", shape_group="shape_collision_group", shape_transform="shape_transform", shape_scale="shape_scale",
    shape_margin="shape_margin", shape_gap="shape_gap", shape_radius="shape_collision_radius", body_com="body_com",
    hull_first="shape_hull_first", hull_count="shape_hull_count", hull_points="hull_points",
)  # fmt: skip
"""Fields of the kernels' ``Crowd`` that are arrays of a model."""

_ROWS = frozenset((
    "origin", "quat", "rot", "pos", "twist", "body_q", "body_qd", "gap", "near", "point", "shape_place", "pair_shapes", "manifold",
    "normal", "pair_work", "surface_work", "corners", "matched", "tree_mass",
))  # fmt: skip
"""The rows of memory that the narrow phase uses."""
