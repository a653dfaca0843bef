"""Which shapes of a batch may touch which planes, as the tables that the contact kernels run over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, POINTS, SPHERE
from newton_like.kernels.collision.surfaces.records import FIELD, TRIANGLES
from newton_like.kernels.parameters.contacts import LARGEST, SQUARES
from newton_like.kernels.tree import FOLLOW, SPAN
from newton_like.model.editing.edits import TURNING
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.pairs import may_collide
from newton_like.programs.template import Batch
from newton_like.types import BodyFlags, GeoType, ShapeFlags

KIND = {
    GeoType.SPHERE: SPHERE,
    GeoType.CAPSULE: CAPSULE,
    GeoType.BOX: BOX,
    GeoType.CYLINDER: CYLINDER,
    GeoType.CONE: CONE,
    GeoType.ELLIPSOID: ELLIPSOID,
    GeoType.MESH: HULL,
    GeoType.CONVEX_MESH: HULL,
}

FORM = {
    SPHERE: 1,
    CAPSULE: 2,
    BOX: 3 | SQUARES,
    CYLINDER: 2 | SQUARES,
    CONE: 2 | SQUARES,
    ELLIPSOID: 3 | LARGEST,
    HULL: 0,
    FIELD: 0,
    TRIANGLES: 0,
}
"""Forms of the kinds, see ``newton_like.kernels.parameters.contacts``."""

FIXED_KIND = {**KIND, GeoType.MESH: TRIANGLES, GeoType.HFIELD: FIELD}
"""Kinds of shapes on no body."""

SHAPE_COLUMNS = ("shape_body", "shape_kind", "shape_hull_at", "shape_hull_count")
PAIR_COLUMNS = ("pair_one", "pair_two", "pair_leaf", "pair_other", "pair_shared", "pair_candidate")
"""Columns of the tables of shapes and pairs of the kernels' ``Tree``, see `kernels.tree`; the last one has one number more."""

CHEAP = (SPHERE, CAPSULE)
"""Kinds of colliders whose candidates cost less than finding out whether they are near."""


@dataclass
class ContactTables:
    """Colliders (a shape against a plane), candidate contact points and couplings of a batch.

    Attributes:
        numbers, arrays: fields of the kernels' ``Tree``.
        shapes, planes: model index of each collider's shape and plane in every articulation, ``[count, colliders]``.
        allowed: whether the two may touch there, ``[count, colliders]``.
        plane_of: model index of each plane in every articulation, ``[count, planes]``; None: contacts are handed over.
        hull: vertices of the hulls of colliders and of shapes of pairs, ``[n, 3]``.
        pair_shapes: model index of each shape of pairs in every articulation, ``[count, shapes]``.
        pair_allowed: whether the shapes of each pair may touch there, ``[count, pairs]``.
        laws: the :class:`newton_like.collision.laws.Laws` of contacts; None: no shape states one.
        weights: gives inverse inertias, by which position limits are soft, ``[count, dofs]``; None: no limit is soft.
        spans: of a cluster with pairs, the degrees of freedom of constraint rows, see `kernels.spans`; each list once.
        candidate_span: which of these each candidate has, ``[candidates]``.
        surface_table: numbers of height fields and meshes on the device, see `kernels.collision.surfaces`; None: there are none.
    """

    numbers: dict[str, int]
    arrays: dict[str, np.ndarray]
    shapes: np.ndarray | None = None
    planes: np.ndarray | None = None
    allowed: np.ndarray | None = None
    plane_of: np.ndarray | None = None
    hull: np.ndarray | None = None
    pair_shapes: np.ndarray | None = None
    pair_allowed: np.ndarray | None = None
    laws: object = None
    weights: Callable[[], np.ndarray] | None = None
    spans: list[np.ndarray] | None = None
    surface_table: object = None
    candidate_span: np.ndarray | None = None

    @property
    def fields(self) -> dict:
        """Fields of the kernels' ``Tree``."""
        arrays = {k: x for k, x in self.arrays.items() if k not in (*SHAPE_COLUMNS, *PAIR_COLUMNS)}
        shapes = np.stack([self.arrays[name] for name in SHAPE_COLUMNS], axis=1)
        pairs = np.zeros((len(self.arrays["pair_one"]) + 1, len(PAIR_COLUMNS)), dtype=int)
        for i, name in enumerate(PAIR_COLUMNS):
            pairs[: len(self.arrays[name]), i] = self.arrays[name]
        table = np.concatenate([shapes.ravel(), pairs.ravel()])
        if self.spans is not None:
            # of each candidate where the dofs of its rows are listed behind this table, and how many they are
            sizes = np.array([len(span) for span in self.spans], dtype=int)[self.candidate_span]
            at = np.cumsum([0, *[len(span) for span in self.spans]])[self.candidate_span]
            at += len(table) + 2 * len(self.candidate_span)
            table = np.concatenate([table, np.stack([at, sizes], axis=1).ravel(), *self.spans])
        surfaces = {} if self.surface_table is None else {"surface_table": self.surface_table}
        return {**self.numbers, **arrays, "pair_table": table, **surfaces}

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Numbers of records, of vertices, of planes and of pairs that have parameters."""
        if self.plane_of is None:
            return 0, 0, 0, 0
        return self.records.shape[1], len(self.hull), self.plane_of.shape[1], self.pair_allowed.shape[1]

    @property
    def law_count(self) -> int:
        """Number of laws: none or those of all colliders and pairs, then none or those of all degrees of freedom."""
        return 0 if self.laws is None else self.laws.shapes[0].shape[1]

    @property
    def records(self) -> np.ndarray:
        """Model index of the shape of each record: colliders, then shapes of pairs, ``[count, records]``."""
        return np.concatenate([self.shapes, self.pair_shapes], axis=1)

    @property
    def partners(self) -> np.ndarray:
        """Model index of what each shape is combined with: a collider's plane, and for a shape of pairs itself, ``[count, records]``."""
        return np.concatenate([self.planes, self.pair_shapes], axis=1)

    @property
    def forms(self) -> np.ndarray:
        """The form of the shape of each record, see ``newton_like.kernels.parameters.contacts``, ``[records]``."""
        kinds = np.concatenate([self.arrays["collider_kind"], self.arrays["shape_kind"]])
        return np.array([FORM[kind] for kind in kinds.tolist()], dtype=int)

    @property
    def record_allowed(self) -> np.ndarray:
        """Whether shape and partner may touch, ``[count, records]``."""
        return np.concatenate([self.allowed, np.ones(self.pair_shapes.shape, dtype=bool)], axis=1)


NO_PAIRS = {name: np.zeros(0, dtype=int) for name in (*SHAPE_COLUMNS, *PAIR_COLUMNS)}
"""The columns of the tables of a batch without pairs."""


def couplings_of(batch: Batch) -> dict[str, np.ndarray]:
    """Coordinates of mimic joints, and distance limits, as fields of the kernels' ``Tree``."""
    template = batch.template
    dofs = np.diff(template.dof_at).tolist()
    follows = [
        (FOLLOW if n == 0 else SPAN + n, k, int(template.mimic[k]))
        for k in range(template.bodies)
        if template.mimic[k] >= 0
        for n in range(dofs[k])
    ]
    spans = [(SPAN, k, 0) for k in range(template.bodies) if JOINT_TYPES[template.joint_type[k]].limits_distance]
    table = np.array(follows + spans, dtype=np.int32).reshape(-1, 3)
    return dict(coupling_kind=table[:, 0], coupling_body=table[:, 1], coupling_other=table[:, 2])


def _tables(batch, body, kind, plane, points, hull_at, rows, hull_count=None, finite=None) -> ContactTables:
    couplings = couplings_of(batch)
    starts = np.concatenate([[0], np.cumsum(points)]).astype(np.int32)
    of = np.repeat(np.arange(len(body)), points)
    guarded = np.flatnonzero(~np.isin(kind, CHEAP))
    hulls = np.flatnonzero(kind == HULL)
    numbers = dict(
        colliders=len(body),
        candidates=int(starts[-1]),
        first_guarded=int(guarded[0]) if len(guarded) else len(body),
        first_hull=int(hulls[0]) if len(hulls) else len(body),
        contact_rows=rows,
        couplings=len(couplings["coupling_kind"]),
        shapes=0, pairs=0, first_paired=int(starts[-1]), surface_pairs=0, loop_rows=0, loop_block=0, loop_soft=0,
        tendons=0,
        actuators=0,
        adhesive=0,
        relieved=0,
    )  # fmt: skip
    arrays = dict(
        collider_body=body,
        collider_kind=kind,
        collider_plane=plane,
        collider_candidate=starts,
        hull_at=hull_at,
        hull_count=np.zeros(len(body), int) if hull_count is None else hull_count,
        candidate_collider=of,
        candidate_body=np.asarray(body)[of],
        plane_finite=np.zeros(1, int) if finite is None else finite.astype(int),
        **NO_PAIRS,
        **couplings,
    )
    return ContactTables(numbers, arrays)


class Shapes:
    """The shape arrays of a model, on the host."""

    def __init__(self, model):
        self.type = model.shape_type.numpy()
        self.body = model.shape_body.numpy()
        self.world = model.shape_world.numpy()
        self.flags = model.shape_flags.numpy()
        self.group = model.shape_collision_group.numpy()
        self.scale = model.shape_scale.numpy().astype(np.float64)
        self.varying = model.varying
        self.hull_first = model.shape_hull_first.numpy()
        self.hull_count = model.shape_hull_count.numpy()
        self.hull_points = model.hull_points.numpy().astype(np.float64)
        self.turning = sum(getattr(model, name).numpy() for name in TURNING) > 0.0
        self.source = _source_numbers(model, self.type, self.body)
        self.collides = (self.flags & ShapeFlags.COLLIDE_SHAPES) != 0
        pairs = model.shape_collision_filter_pairs.to_array().astype(np.int64).reshape(-1, 2)
        self.filter_codes = (pairs[:, 0] << 32) | pairs[:, 1]  # ascending

    def is_filtered(self, codes: np.ndarray) -> np.ndarray:
        """Which pairs, coded ``smaller << 32 | larger``, the model's filter names."""
        if not len(self.filter_codes):
            return np.zeros(len(codes), dtype=bool)
        at = np.minimum(np.searchsorted(self.filter_codes, codes), len(self.filter_codes) - 1)
        return self.filter_codes[at] == codes

    def filtered_among(self, members: np.ndarray) -> np.ndarray:
        """The codes of the filter's pairs whose smaller shape is one of these, which are close together."""
        if not len(members):
            return np.zeros(0, dtype=np.int64)
        low, high = int(members.min()) << 32, (int(members.max()) + 1) << 32
        return self.filter_codes[np.searchsorted(self.filter_codes, low) : np.searchsorted(self.filter_codes, high)]


def _source_numbers(model, types: np.ndarray, bodies: np.ndarray) -> np.ndarray:
    """A number for each mesh and height field on no body, the same for shapes with the same source; -1 for other shapes."""
    numbers, known = np.full(len(types), -1), {}
    for s in np.flatnonzero((bodies < 0) & np.isin(types, [GeoType.MESH, GeoType.HFIELD])).tolist():
        numbers[s] = known.setdefault(id(model.shape_source[s]), len(known))
    return numbers


def grouped(keys: np.ndarray, members: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Members in the order of their keys, which are below `count`, and where those of each key start."""
    order = members[np.argsort(keys[members], kind="stable")]
    return order, np.searchsorted(keys[order], np.arange(count + 1))


def rows_of(order: np.ndarray, starts: np.ndarray, keys: np.ndarray) -> np.ndarray | None:
    """The members of some keys ``[len(keys), n]``; None where keys have different numbers of them."""
    number = starts[keys + 1] - starts[keys]
    if (number != number[0]).any():
        return None
    return order[starts[keys][:, None] + np.arange(number[0])]


def shapes_of(model, batch: Batch, shapes: Shapes, moving: bool = True) -> tuple[np.ndarray, list[int]]:
    """The colliding shapes on the bodies of each articulation, on all or on moving ones, ``[count, n]``, and the local bodies ``[n]``."""
    template = batch.template
    members = np.flatnonzero(shapes.collides & np.isin(shapes.type, list(KIND)) & (shapes.body >= 0))
    order, starts = grouped(shapes.body, members, model.body_count)
    found, bodies = [np.zeros((batch.count, 0), dtype=int)], []
    for k in np.flatnonzero(moving_members(model, batch).any(axis=0)).tolist() if moving else range(template.bodies):
        rows = rows_of(order, starts, batch.body_start + template.body_slot[k])
        if rows is None or any((x[rows] != x[rows[:1]]).any() for x in (shapes.type, shapes.hull_first)):
            raise ValueError(DIFFERENT)
        found.append(rows)
        bodies += [k] * rows.shape[1]
    return np.concatenate(found, axis=1), bodies


def _planes_of(model, batch: Batch, shapes: Shapes) -> np.ndarray:
    """The planes that each articulation may touch, ``[count, n]``: those of all worlds, then those of its own."""
    is_plane = shapes.collides & (shapes.body < 0) & (shapes.type == GeoType.PLANE)
    shared = np.flatnonzero(is_plane & (shapes.world < 0))
    order, starts = grouped(shapes.world, np.flatnonzero(is_plane & (shapes.world >= 0)), model.world_count)
    own = np.zeros((batch.count, 0), dtype=int)
    if len(order):
        # articulations of no world have no planes of their own
        rows = rows_of(order, np.append(starts, starts[-1]), np.where(batch.world < 0, model.world_count, batch.world))
        if rows is None:
            raise ValueError(DIFFERENT)
        own = rows
    return np.concatenate([np.broadcast_to(shared, (batch.count, len(shared))), own], axis=1)


DIFFERENT = "the articulations of a batch differ in their collision shapes; make batches by shape_kinds"


def find_colliders(model, batch: Batch) -> ContactTables:
    """The colliders of a batch: its moving shapes against the planes of their worlds.

    Raises:
        ValueError: articulations of the batch differ in their shapes.
    """
    shapes = Shapes(model)
    shape_index, bodies = shapes_of(model, batch, shapes)
    plane_index = _planes_of(model, batch, shapes)
    moves = moving_members(model, batch)
    rows = list(zip(bodies, shape_index[0].tolist(), strict=True))
    pairs = []
    for i in range(len(rows)):
        for j in range(plane_index.shape[1]):
            first = (shape_index[:, i], plane_index[:, j])
            allowed = moves[:, bodies[i]] & may_collide(shapes.group[first[0]], shapes.group[first[1]])
            codes = (np.minimum(*first).astype(np.int64) << 32) | np.maximum(*first)
            allowed &= ~shapes.is_filtered(codes)
            if allowed.any():
                pairs.append((i, j, allowed))
    # what is looked at only when it comes near goes behind the rest, hulls last
    pairs.sort(key=lambda p: (_kind(shapes, rows[p[0]][1]) not in CHEAP) + (_kind(shapes, rows[p[0]][1]) == HULL))
    return _collider_tables(batch, shapes, rows, shape_index, plane_index, pairs)


def shape_kinds(model) -> list[bytes]:
    """What the collision shapes of each articulation have in common with those of others that can share a batch with it."""
    shapes = Shapes(model)
    owner = np.full(model.body_count + 1, -1)
    first = np.zeros(model.body_count + 1, dtype=int)
    child, articulation = model.joint_child.numpy(), model.joint_articulation.numpy()
    # loop joints move no body
    child, articulation = child[articulation >= 0], articulation[articulation >= 0]
    lowest = np.full(model.articulation_count + 1, model.body_count)
    np.minimum.at(lowest, articulation, child)
    owner[child], first[child] = articulation, lowest[articulation]
    used = np.flatnonzero(shapes.collides & (shapes.body >= 0))
    body = shapes.body[used]
    rows = np.stack([body - first[body], shapes.type[used], shapes.hull_first[used]], axis=1).astype(np.int32)
    order = np.lexsort((used, owner[body]))
    cuts = np.searchsorted(owner[body][order], np.arange(model.articulation_count + 1))
    planes = shapes.collides & (shapes.body < 0) & (shapes.type == GeoType.PLANE)
    # articulations of no world, which come last here, have none of their own
    own = np.bincount(shapes.world[planes & (shapes.world >= 0)], minlength=model.world_count + 1)
    world = np.where(model.articulation_world.numpy() < 0, model.world_count, model.articulation_world.numpy())
    fixed = shapes.collides & (shapes.body < 0) & np.isin(shapes.type, list(FIXED_KIND)) & (shapes.world >= 0)
    static, at = grouped(shapes.world, np.flatnonzero(fixed), model.world_count)
    at = np.append(at, at[-1])
    forms = np.stack([shapes.type[static], shapes.hull_first[static], shapes.source[static]], axis=1).astype(np.int32)
    rows = rows[order]
    return [
        b"|".join((
            rows[cuts[a] : cuts[a + 1]].tobytes(), int(own[world[a]]).to_bytes(4, "little"),
            forms[at[world[a]] : at[world[a] + 1]].tobytes(),
        ))
        for a in range(model.articulation_count)
    ]  # fmt: skip


def _kind(shapes: Shapes, s: int) -> int:
    return KIND[GeoType(int(shapes.type[s]))]


def _collider_tables(batch, shapes: Shapes, rows, shape_index, plane_index, pairs) -> ContactTables:
    body = np.array([rows[i][0] for i, _, _ in pairs], dtype=int)
    kind = np.array([_kind(shapes, rows[i][1]) for i, _, _ in pairs], dtype=int)
    plane = np.array([j for _, j, _ in pairs], dtype=int)
    count = np.array([shapes.hull_count[rows[i][1]] for i, _, _ in pairs], dtype=int)
    hulls: dict[int, int] = {}
    points: list[np.ndarray] = []
    hull_at = np.zeros(len(pairs), dtype=int)
    for p, (i, _, _) in enumerate(pairs):
        first, n = int(shapes.hull_first[rows[i][1]]), int(count[p])
        if n:
            if first not in hulls:
                hulls[first] = sum(len(x) for x in points)
                points.append(shapes.hull_points[first : first + n])
            hull_at[p] = hulls[first]
    s = shape_index[:, [i for i, _, _ in pairs]]
    g = plane_index[:, plane] if len(pairs) else np.zeros((batch.count, 0), dtype=int)
    allowed = np.stack([a for _, _, a in pairs], axis=1) if pairs else np.zeros((batch.count, 0), dtype=bool)
    turning = bool((shapes.turning[s] | shapes.turning[g]).any()) or not shapes.varying.isdisjoint(TURNING)
    finite = None
    if plane_index.size:
        finite = (shapes.scale[plane_index, :2] > 0).any(axis=(0, 2)) | ("shape_scale" in shapes.varying)
    number = np.array([POINTS[k] for k in kind], dtype=int)
    tables = _tables(batch, body, kind, plane, number, hull_at, 6 if turning else 3, count, finite)
    tables.hull = np.concatenate(points) if points else np.zeros((0, 3))
    tables.shapes, tables.planes, tables.allowed, tables.plane_of = s, g, allowed, plane_index
    tables.pair_shapes, tables.pair_allowed = (
        np.zeros((batch.count, 0), dtype=int),
        np.zeros((batch.count, 0), dtype=bool),
    )
    return tables


def _index_pairs(shapes: Shapes, index: np.ndarray, odd: bool, worlds: bool) -> tuple[np.ndarray, np.ndarray]:
    """Places i < j of two shapes in a list; `odd`: one of them is no convex shape, or is on a body of no world."""
    if not odd:
        return np.triu_indices(len(index), 1)
    strange = ~np.isin(shapes.type[index], list(KIND))
    strange |= worlds & (shapes.body[index] >= 0) & (shapes.world[index] < 0)
    places = np.flatnonzero(strange)
    if len(places) == len(index):
        return np.triu_indices(len(index), 1)
    one, two = np.repeat(places, len(index)), np.tile(np.arange(len(index)), len(places))
    pairs = np.unique(np.stack([np.minimum(one, two), np.maximum(one, two)], axis=1)[one != two], axis=0)
    return pairs[:, 0], pairs[:, 1]


def _filters_by_world(model, shapes: Shapes) -> list[np.ndarray]:
    """The pairs of the filter with shapes of each world, ``[n, 2]``; shapes s that belong to all worlds are -1 - s."""
    pairs = np.stack([shapes.filter_codes >> 32, shapes.filter_codes & 0xFFFFFFFF], axis=1)
    world = shapes.world[pairs]
    pairs = np.where(world < 0, -1 - pairs, pairs)
    order = np.argsort(world.max(axis=1), kind="stable")
    return np.split(pairs[order], np.searchsorted(world.max(axis=1)[order], np.arange(model.world_count)))[1:]


def unsupported_pairs(model, dynamic: bool = False, known=None) -> np.ndarray:
    """Pairs of shapes that may touch although no program here resolves it: all but moving shapes with planes, ``[n, 2]``.

    Worlds are taken to be alike where they have the same shapes on bodies of the same order: one of each kind is looked at.

    Args:
        model: the model.
        dynamic: leave out pairs of two kinematic bodies, and of a kinematic body with a fixed shape: forces move neither.
        known: called with the types of both shapes of pairs, and whether they are on no body: which pairs are resolved beside those
            with planes; None: no others.
    """
    shapes = Shapes(model)
    moving = moving_shapes(model)
    pushed = moving_shapes(model, dynamic=True) if dynamic else moving
    candidates = shapes.collides & (shapes.type != GeoType.NONE)
    shared = np.flatnonzero(candidates & (shapes.world < 0))
    starts = (
        np.searchsorted(shapes.world[shapes.world >= 0], np.arange(model.world_count + 1))
        if (shapes.world >= 0).any()
        else None
    )
    own = np.flatnonzero(shapes.world >= 0)
    seen, found = set(), []
    filters = _filters_by_world(model, shapes)
    for w in range(model.world_count):
        local = own[starts[w] : starts[w + 1]] if starts is not None else own
        local = local[candidates[local]]
        first = local[0] if len(local) else 0
        key = (
            shapes.type[local].tobytes(),
            shapes.group[local].tobytes(),
            (shapes.body[local] < 0).tobytes(),
            moving[local].tobytes(),
            pushed[local].tobytes(),
            (local - first).tobytes(),
            np.where(filters[w] < 0, filters[w], filters[w] - first).tobytes(),
        )
        if key in seen:
            continue
        seen.add(key)
        index = np.concatenate([shared, local])
        a, b = _index_pairs(shapes, index, known is not None, bool((shapes.world >= 0).any()))
        a, b = index[a], index[b]
        plane = (shapes.type[a] == GeoType.PLANE) | (shapes.type[b] == GeoType.PLANE)
        on_body_a, on_body_b = shapes.body[a] >= 0, shapes.body[b] >= 0
        plane_is_static = ~((shapes.type[a] == GeoType.PLANE) & on_body_a) & ~(
            (shapes.type[b] == GeoType.PLANE) & on_body_b
        )
        keep = (pushed[a] | pushed[b]) & ~(plane & plane_is_static) & may_collide(shapes.group[a], shapes.group[b])
        if known is not None:
            # a body of no world is in no cluster with those of worlds
            apart = (shapes.world[a] != shapes.world[b]) & on_body_a & on_body_b
            keep &= apart | ~known(shapes.type[a], shapes.type[b], ~on_body_a, ~on_body_b)
        pairs = np.stack([a[keep], b[keep]], axis=1)
        if len(pairs):
            codes = (pairs.min(axis=1).astype(np.int64) << 32) | pairs.max(axis=1)
            pairs = pairs[~shapes.is_filtered(codes)]
            found.append(pairs)
    return np.concatenate(found) if found else np.zeros((0, 2), dtype=int)


def _kind_of(model, s: int) -> str:
    """The type of a shape, and whether it is fixed, in words."""
    fixed = "fixed" if model.shape_body.numpy()[s] < 0 else "moving"
    return f"a {fixed} {GeoType(int(model.shape_type.numpy()[s])).name.lower().replace('_', ' ')}"


def refuse_unsupported(model, pairs: np.ndarray, who: str) -> None:
    """Raises ValueError if there are pairs of shapes that may touch and that are not looked at."""
    if len(pairs):
        a, b = (int(s) for s in pairs[0])
        kinematic = moving_shapes(model) & ~moving_shapes(model, dynamic=True)
        body, world = model.shape_body.numpy(), model.shape_world.numpy()
        beside_worlds = (body >= 0) & (world < 0) & (world.max() >= 0)
        names = [
            f"'{model.shape_label[s]}' (index {s}{', on a kinematic body' if kinematic[s] else ''}"
            f"{', on a body of no world' if beside_worlds[s] else ''})"
            for s in (a, b)
        ]
        raise ValueError(
            f"shapes {names[0]} and {names[1]} may touch ({len(pairs)} such pairs), but {who} no contacts of"
            f" {_kind_of(model, a)} with {_kind_of(model, b)}; use planes, meshes and height fields on no body and convex shapes, filter"
            " the pairs"
            " (collision_group, shape_collision_filter_pairs) or pass unsupported_contacts='ignore'"
        )


def disabled_joints(model) -> np.ndarray:
    """The joints of trees that are disabled, in ascending order: their bodies move freely in solvers that know disabled joints."""
    tree = model.joint_articulation.numpy() >= 0
    return np.flatnonzero(tree & ~model.joint_enabled.numpy().astype(bool))


def freed_bodies(model, dynamic: bool = False) -> np.ndarray:
    """Which bodies some degree of freedom or some disabled joint of a tree moves, ``[body_count + 1]`` bool, last the world. With
    `dynamic`, those of kinematic bodies do not count."""
    moves = np.zeros(model.body_count + 1, dtype=bool)
    child = model.joint_child.numpy()
    own = np.diff(model.joint_qd_start.numpy()) > 0
    own[disabled_joints(model)] = True
    if dynamic:
        own &= (model.body_flags.numpy()[child] & BodyFlags.KINEMATIC) == 0
    # loop joints move no body
    tree = model.joint_articulation.numpy() >= 0
    rows = (x[tree].tolist() for x in (model.joint_parent.numpy(), child, own))
    for p, c, free in zip(*rows, strict=True):
        moves[c] = free or (p >= 0 and moves[p])
    return moves


def moving_shapes(model, dynamic: bool = False) -> np.ndarray:
    """Which shapes are on bodies that move, see :func:`freed_bodies`, ``[shape_count]`` bool."""
    return freed_bodies(model, dynamic)[model.shape_body.numpy()]


def moving_members(model, batch: Batch) -> np.ndarray:
    """Which bodies of the clusters of a batch move, see :func:`freed_bodies`, ``[count, bodies]`` bool; one row where all have the same."""
    moves = batch.template.leaf[None] >= 0
    if not len(disabled_joints(model)):
        return moves
    moves = moves | freed_bodies(model)[batch.body_start[:, None] + batch.template.body_slot]
    return moves[:1] if (moves == moves[:1]).all() else moves
