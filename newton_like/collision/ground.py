"""Which shapes of a batch may touch which planes, as the tables that the contact kernels run over."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from newton_like.geometry.transforms import quat_rotate
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, POINTS, SPHERE

from newton_like.kernels.tree import (  # isort: skip
    CENTER, COLLIDER, DAMPING_RATIO, GAP, HALF_LENGTH, HALF_WIDTH, MARGIN, MU, MU_ROLLING, MU_TORSIONAL, NORMAL, OFFSET, OFFSET_1, OFFSET_2,
    OMEGA, PLANE, RADIUS, RESTITUTION, ROTATION, SIZE, SURFACE, TANGENT_1, TANGENT_2,
)  # fmt: skip
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.programs.template import Batch
from newton_like.types import GeoType, ShapeFlags

_KIND = {
    GeoType.SPHERE: SPHERE,
    GeoType.CAPSULE: CAPSULE,
    GeoType.BOX: BOX,
    GeoType.CYLINDER: CYLINDER,
    GeoType.CONE: CONE,
    GeoType.ELLIPSOID: ELLIPSOID,
    GeoType.MESH: HULL,
    GeoType.CONVEX_MESH: HULL,
}

CHEAP = (SPHERE, CAPSULE)
"""Kinds of colliders whose candidates cost less than finding out whether they are near."""

_FAR = 1.0e10


def may_collide(group_a, group_b):
    """Whether collision groups let shapes touch; see ``ShapeConfig.collision_group``. Arrays broadcast."""
    a, b = np.asarray(group_a), np.asarray(group_b)
    return (a != 0) & (b != 0) & (((a > 0) & (b > 0) & (a == b)) | (((a < 0) | (b < 0)) & (a != b)))


@dataclass
class ContactTables:
    """Colliders (a shape against a plane), candidate contact points and couplings of a batch.

    Attributes:
        numbers, arrays: fields of the kernels' ``Tree``.
        parameters: groups ``collider``, ``hull`` and ``plane`` of the parameter vector, ``[count, n]``.
        shapes, planes: model index of each collider's shape and plane in every articulation, ``[count, colliders]``.
    """

    numbers: dict[str, int]
    arrays: dict[str, np.ndarray]
    parameters: dict[str, np.ndarray] = field(default_factory=dict)
    shapes: np.ndarray | None = None
    planes: np.ndarray | None = None


def couplings_of(batch: Batch) -> dict[str, np.ndarray]:
    """Mimic joints and distance limits, as fields of the kernels' ``Tree``."""
    template = batch.template
    follows = [(0, k, int(template.mimic[k])) for k in range(template.bodies) if template.mimic[k] >= 0]
    spans = [(1, k, 0) for k in range(template.bodies) if JOINT_TYPES[template.joint_type[k]].limits_distance]
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
    )
    arrays = dict(
        collider_body=body,
        collider_kind=kind,
        collider_plane=plane,
        collider_candidate=starts,
        hull_at=hull_at,
        hull_count=np.zeros(len(body), int) if hull_count is None else hull_count,
        candidate_collider=of,
        candidate_body=np.asarray(body)[of],
        plane_finite=np.zeros(1, int) if finite is None else finite,
        **couplings,
    )
    return ContactTables(numbers, arrays)


class _Shapes:
    """The shape arrays of a model, on the host."""

    def __init__(self, model):
        self.type = model.shape_type.numpy()
        self.body = model.shape_body.numpy()
        self.world = model.shape_world.numpy()
        self.flags = model.shape_flags.numpy()
        self.group = model.shape_collision_group.numpy()
        self.transform = model.shape_transform.numpy().astype(np.float64)
        self.scale = model.shape_scale.numpy().astype(np.float64)
        self.radius = model.shape_collision_radius.numpy().astype(np.float64)
        self.margin = model.shape_margin.numpy().astype(np.float64)
        self.gap = model.shape_gap.numpy().astype(np.float64)
        self.hull_first = model.shape_hull_first.numpy()
        self.hull_count = model.shape_hull_count.numpy()
        self.hull_points = model.hull_points.numpy().astype(np.float64)
        for name in ("mu", "restitution", "mu_torsional", "mu_rolling", "time_constant", "damping_ratio"):
            setattr(self, name, getattr(model, f"shape_material_{name}").numpy().astype(np.float64))
        self.collides = (self.flags & ShapeFlags.COLLIDE_SHAPES) != 0
        pairs = model.shape_collision_filter_pairs.to_array().astype(np.int64).reshape(-1, 2)
        self.filter_codes = (pairs[:, 0] << 32) | pairs[:, 1]  # ascending

    def is_filtered(self, codes: np.ndarray) -> np.ndarray:
        """Which pairs, coded ``smaller << 32 | larger``, the model's filter names."""
        if not len(self.filter_codes):
            return np.zeros(len(codes), dtype=bool)
        at = np.minimum(np.searchsorted(self.filter_codes, codes), len(self.filter_codes) - 1)
        return self.filter_codes[at] == codes


def _shapes_by_body(shapes: _Shapes, bodies: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(shapes.body, kind="stable")
    starts = np.searchsorted(shapes.body[order], np.arange(bodies + 1))
    return order, starts


def find_colliders(model, batch: Batch) -> ContactTables:
    """The colliders of a batch: its moving shapes against the planes of their worlds.

    Raises:
        ValueError: articulations of the batch differ in their shapes.
    """
    shapes = _Shapes(model)
    order, starts = _shapes_by_body(shapes, model.body_count)
    template = batch.template
    per_articulation = []
    is_plane = shapes.collides & (shapes.body < 0) & (shapes.type == GeoType.PLANE)
    shared_planes = np.flatnonzero(is_plane & (shapes.world < 0))
    own_planes = {
        int(w): np.flatnonzero(is_plane & (shapes.world == w))
        for w in np.unique(shapes.world[is_plane & (shapes.world >= 0)])
    }
    for a in range(batch.count):
        rows = []
        for k in range(template.bodies):
            if template.leaf[k] < 0:
                continue
            body = int(batch.body_start[a] + template.body_slot[k])
            for s in order[starts[body] : starts[body + 1]]:
                if shapes.collides[s] and shapes.type[s] in _KIND:
                    rows.append((k, int(s)))
        planes = np.concatenate([shared_planes, own_planes.get(int(batch.world[a]), shared_planes[:0])])
        per_articulation.append((rows, planes))
    rows, planes = per_articulation[0]
    for other_rows, other_planes in per_articulation:
        same = [(k, shapes.type[s], shapes.hull_first[s]) for k, s in rows] == [
            (k, shapes.type[s], shapes.hull_first[s]) for k, s in other_rows
        ]
        if not same or len(other_planes) != len(planes):
            raise ValueError(
                "the articulations of a batch differ in their collision shapes; make batches by shape_kinds"
            )
    shape_index = np.array([[s for _, s in r] for r, _ in per_articulation], dtype=int).reshape(batch.count, len(rows))
    plane_index = np.array([p for _, p in per_articulation], dtype=int).reshape(batch.count, len(planes))
    pairs = []
    for i in range(len(rows)):
        for j in range(len(planes)):
            first = (shape_index[:, i], plane_index[:, j])
            allowed = may_collide(shapes.group[first[0]], shapes.group[first[1]])
            codes = (np.minimum(*first).astype(np.int64) << 32) | np.maximum(*first)
            allowed &= ~shapes.is_filtered(codes)
            if allowed.any():
                pairs.append((i, j, allowed))
    # what is looked at only when it comes near goes behind the rest, hulls last
    pairs.sort(key=lambda p: (_kind(shapes, rows[p[0]][1]) not in CHEAP) + (_kind(shapes, rows[p[0]][1]) == HULL))
    return _collider_tables(batch, shapes, rows, shape_index, plane_index, pairs)


def shape_kinds(model) -> list[bytes]:
    """What the collision shapes of each articulation have in common with those of others that can share a batch with it."""
    shapes = _Shapes(model)
    owner = np.full(model.body_count + 1, -1)
    first = np.zeros(model.body_count + 1, dtype=int)
    child, articulation = model.joint_child.numpy(), model.joint_articulation.numpy()
    lowest = np.full(model.articulation_count + 1, model.body_count)
    np.minimum.at(lowest, articulation, child)
    owner[child], first[child] = articulation, lowest[articulation]
    used = np.flatnonzero(shapes.collides & (shapes.body >= 0))
    body = shapes.body[used]
    rows = np.stack([body - first[body], shapes.type[used], shapes.hull_first[used]], axis=1).astype(np.int32)
    order = np.lexsort((used, owner[body]))
    cuts = np.searchsorted(owner[body][order], np.arange(model.articulation_count + 1))
    planes = shapes.collides & (shapes.body < 0) & (shapes.type == GeoType.PLANE)
    own = np.bincount(shapes.world[planes & (shapes.world >= 0)], minlength=model.world_count)
    world = np.maximum(model.articulation_world.numpy(), 0)
    rows = rows[order]
    return [
        rows[cuts[a] : cuts[a + 1]].tobytes() + int(own[world[a]]).to_bytes(4, "little")
        for a in range(model.articulation_count)
    ]


def _kind(shapes: _Shapes, s: int) -> int:
    return _KIND[GeoType(int(shapes.type[s]))]


def _collider_tables(batch, shapes: _Shapes, rows, shape_index, plane_index, pairs) -> ContactTables:
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
    collider = _collider_parameters(shapes, s, g)
    if len(pairs):
        disabled = ~np.stack([allowed for _, _, allowed in pairs], axis=1)
        gap = collider[..., SURFACE + GAP]
        gap[disabled] = -_FAR
    rolling = bool(collider[..., SURFACE + MU_TORSIONAL : SURFACE + MU_ROLLING + 1].any())
    finite = (shapes.scale[plane_index, :2] > 0).any(axis=(0, 2)).astype(int) if plane_index.size else None
    number = np.array([POINTS[k] for k in kind], dtype=int)
    tables = _tables(batch, body, kind, plane, number, hull_at, 6 if rolling else 3, count, finite)
    hull = np.concatenate(points).ravel() if points else np.zeros(0)
    tables.parameters = {
        "collider": collider.reshape(batch.count, -1),
        "hull": np.broadcast_to(hull, (batch.count, len(hull))),
        "plane": _plane_parameters(shapes, plane_index).reshape(batch.count, -1),
    }
    tables.shapes, tables.planes = s, g
    return tables


def _collider_parameters(shapes: _Shapes, s, g) -> np.ndarray:
    """``[count, colliders, COLLIDER]``; the two shapes' materials combined."""
    out = np.zeros((*s.shape, COLLIDER))
    out[..., SIZE : SIZE + 3] = shapes.scale[s]
    out[..., CENTER : CENTER + 3] = shapes.transform[s, :3]
    out[..., ROTATION : ROTATION + 4] = shapes.transform[s, 3:]
    out[..., RADIUS] = shapes.radius[s]
    mean = {name: 0.5 * (getattr(shapes, name)[s] + getattr(shapes, name)[g]) for name in (
        "mu", "restitution", "time_constant", "damping_ratio", "mu_torsional", "mu_rolling")}  # fmt: skip
    surface = out[..., SURFACE:RADIUS]
    surface[..., MU] = mean["mu"]
    surface[..., RESTITUTION] = mean["restitution"]
    surface[..., OMEGA] = 1.0 / np.maximum(mean["time_constant"], 1.0e-6)
    surface[..., DAMPING_RATIO] = mean["damping_ratio"]
    surface[..., MU_TORSIONAL] = mean["mu_torsional"]
    surface[..., MU_ROLLING] = mean["mu_rolling"]
    surface[..., MARGIN] = shapes.margin[s] + shapes.margin[g]
    surface[..., GAP] = shapes.gap[s] + shapes.gap[g]
    return out


def _plane_parameters(shapes: _Shapes, plane_index) -> np.ndarray:
    """``[count, planes, PLANE]``"""
    x = shapes.transform[plane_index]
    out = np.zeros((*plane_index.shape, PLANE))
    for axis, at, offset in zip("zxy", (NORMAL, TANGENT_1, TANGENT_2), (OFFSET, OFFSET_1, OFFSET_2), strict=True):
        direction = quat_rotate(x[..., 3:], np.broadcast_to(np.eye(3)["xyz".index(axis)], (*plane_index.shape, 3)))
        out[..., at : at + 3] = direction
        out[..., offset] = (direction * x[..., :3]).sum(axis=-1)
    half = 0.5 * shapes.scale[plane_index, :2]
    out[..., HALF_LENGTH : HALF_WIDTH + 1] = np.where(half > 0, half, _FAR)
    return out


def unsupported_pairs(model) -> np.ndarray:
    """Pairs of shapes that may touch although no program here resolves it: all but moving shapes with planes, ``[n, 2]``.

    Worlds are taken to be alike where they have the same shapes on bodies of the same order: one of each kind is looked at.
    """
    shapes = _Shapes(model)
    moving = moving_shapes(model)
    candidates = shapes.collides & (shapes.type != GeoType.NONE)
    shared = np.flatnonzero(candidates & (shapes.world < 0))
    starts = (
        np.searchsorted(shapes.world[shapes.world >= 0], np.arange(model.world_count + 1))
        if (shapes.world >= 0).any()
        else None
    )
    own = np.flatnonzero(shapes.world >= 0)
    seen, found = set(), []
    for w in range(model.world_count):
        local = own[starts[w] : starts[w + 1]] if starts is not None else own
        local = local[candidates[local]]
        first = local[0] if len(local) else 0
        key = (
            shapes.type[local].tobytes(),
            shapes.group[local].tobytes(),
            moving[local].tobytes(),
            (local - first).tobytes(),
        )
        if key in seen:
            continue
        seen.add(key)
        index = np.concatenate([shared, local])
        a, b = np.triu_indices(len(index), 1)
        a, b = index[a], index[b]
        plane = (shapes.type[a] == GeoType.PLANE) | (shapes.type[b] == GeoType.PLANE)
        plane_is_static = ~((shapes.type[a] == GeoType.PLANE) & moving[a]) & ~(
            (shapes.type[b] == GeoType.PLANE) & moving[b]
        )
        keep = (moving[a] | moving[b]) & ~(plane & plane_is_static) & may_collide(shapes.group[a], shapes.group[b])
        pairs = np.stack([a[keep], b[keep]], axis=1)
        if len(pairs):
            codes = (pairs.min(axis=1).astype(np.int64) << 32) | pairs.max(axis=1)
            pairs = pairs[~shapes.is_filtered(codes)]
            found.append(pairs)
    return np.concatenate(found) if found else np.zeros((0, 2), dtype=int)


def moving_shapes(model) -> np.ndarray:
    """Which shapes are on bodies that some degree of freedom moves, ``[shape_count]`` bool."""
    body_moves = np.zeros(model.body_count + 1, dtype=bool)
    parent, child = model.joint_parent.numpy(), model.joint_child.numpy()
    moves = np.diff(model.joint_qd_start.numpy()) > 0
    for p, c, own in zip(parent.tolist(), child.tolist(), moves.tolist(), strict=True):
        body_moves[c] = own or (p >= 0 and body_moves[p])
    body = model.shape_body.numpy()
    return (body >= 0) & body_moves[body]
