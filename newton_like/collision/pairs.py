"""Which articulations of a world may touch each other (clusters), and which pairs of shapes of a cluster may touch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from newton_like.collision.ground import (
    DIFFERENT,
    FIXED_KIND,
    KIND,
    ContactTables,
    Shapes,
    grouped,
    moving_members,
    moving_shapes,
    rows_of,
    shapes_of,
)
from newton_like.collision.surfaces import surfaces_of
from newton_like.kernels.collision.pairs.records import points_of
from newton_like.kernels.collision.surfaces.records import FIELD
from newton_like.model.pairs import may_collide
from newton_like.programs.template import Batch
from newton_like.types import GeoType


def resolved(type_a, type_b, fixed_a, fixed_b) -> np.ndarray:
    """Whether contacts of two shapes are found, by their types and whether they are on no body; arrays broadcast.

    Planes, meshes and height fields on no body touch all kinds; a mesh on a body is its convex hull.
    """

    def known(kind, fixed):
        return np.isin(kind, list(KIND)) | ((kind == GeoType.HFIELD) & fixed)

    plane_a, plane_b = (type_a == GeoType.PLANE) & fixed_a, (type_b == GeoType.PLANE) & fixed_b
    a, b = np.isin(type_a, list(KIND)), np.isin(type_b, list(KIND))
    return (plane_a & b) | (plane_b & a) | (known(type_a, fixed_a) & known(type_b, fixed_b))


def _owners(model) -> np.ndarray:
    """The articulation of each shape, -1 for none, ``[shape_count]``."""
    owner, articulation = np.full(model.body_count + 1, -1), model.joint_articulation.numpy()
    tree = articulation >= 0
    owner[model.joint_child.numpy()[tree]] = articulation[tree]
    return owner[model.shape_body.numpy()]


def find_clusters(model, without: Sequence[int] = ()) -> list[range]:
    """The clusters of a model: articulations of a world that may touch each other, and those that lie between them.

    Worlds with the same shapes and articulations are looked at once.

    Args:
        model: the model.
        without: worlds that are left out; -1: articulations of no single world.
    """
    shapes, owner, worlds = Shapes(model), _owners(model), model.articulation_world.numpy()
    moving = moving_shapes(model)
    clusters: list[range] = []
    patterns: dict[tuple, list[tuple[int, int]]] = {}
    # a body that no degree of freedom moves is touched by those that move
    used = np.flatnonzero(shapes.collides & np.isin(shapes.type, list(KIND)) & (owner >= 0))
    order = used[np.argsort(owner[used], kind="stable")]
    starts = np.searchsorted(owner[order], np.arange(model.articulation_count + 1))
    cuts = np.flatnonzero(np.diff(worlds)) + 1
    for a, end in zip([0, *cuts], [*cuts, len(worlds)], strict=True):
        if end <= a or worlds[a] in without:
            continue
        mine = order[starts[a] : starts[end]]
        first = mine[0] if len(mine) else 0
        key = (
            end - a,
            (owner[mine] - a).tobytes(),
            shapes.group[mine].tobytes(),
            (mine - first).tobytes(),
            moving[mine].tobytes(),
        )
        codes = shapes.filtered_among(mine)
        key = (*key, (codes - ((first << 32) | first)).tobytes())
        if key not in patterns:
            patterns[key] = _ranges(end - a, owner[mine] - a, mine, shapes, moving[mine])
        clusters += [range(a + s, a + e) for s, e in patterns[key]]
    return clusters


def _ranges(count: int, owner: np.ndarray, mine: np.ndarray, shapes: Shapes, moving) -> list[tuple[int, int]]:
    """Runs of articulations, so that those that may touch are in one run."""
    reach = np.arange(count)
    i, j = np.triu_indices(len(mine), 1)
    keep = (owner[i] != owner[j]) & (moving[i] | moving[j]) & may_collide(shapes.group[mine[i]], shapes.group[mine[j]])
    i, j = i[keep], j[keep]
    codes = (np.minimum(mine[i], mine[j]).astype(np.int64) << 32) | np.maximum(mine[i], mine[j])
    keep = ~shapes.is_filtered(codes)
    low, high = np.minimum(owner[i[keep]], owner[j[keep]]), np.maximum(owner[i[keep]], owner[j[keep]])
    np.maximum.at(reach, low, high)
    runs, at = [], 0
    while at < count:
        end = at
        last = reach[at]
        while end < last:
            end += 1
            last = max(last, reach[end])
        runs.append((at, end + 1))
        at = end + 1
    return runs


def cluster_kinds(kinds: list[bytes], clusters: list[range]) -> list[bytes]:
    """What clusters have in common with those that can share a batch with them, from that of their articulations."""
    return [b"/".join(kinds[a] for a in members) for members in clusters]


def _static_of(model, batch: Batch, shapes: Shapes) -> np.ndarray:
    """The shapes on no body, beside planes, that each cluster may touch, ``[count, n]``: those of all worlds, then those of its own."""
    chosen = shapes.collides & (shapes.body < 0) & np.isin(shapes.type, list(FIXED_KIND))
    shared = np.flatnonzero(chosen & (shapes.world < 0))
    order, starts = grouped(shapes.world, np.flatnonzero(chosen & (shapes.world >= 0)), model.world_count)
    own = np.zeros((batch.count, 0), dtype=int)
    if len(order):
        rows = rows_of(order, np.append(starts, starts[-1]), np.where(batch.world < 0, model.world_count, batch.world))
        if rows is None or any((x[rows] != x[rows[:1]]).any() for x in (shapes.type, shapes.hull_first, shapes.source)):
            raise ValueError(DIFFERENT)
        own = rows
    return np.concatenate([np.broadcast_to(shared, (batch.count, len(shared))), own], axis=1)


def add_pairs(model, batch: Batch, tables: ContactTables, fixed: bool = True) -> ContactTables:
    """Adds the pairs of shapes of a batch that may touch to its colliders with planes. `fixed`: also those with shapes on no body.

    Raises:
        ValueError: clusters of the batch differ in their shapes.
    """
    shapes, template = Shapes(model), batch.template
    own, bodies = shapes_of(model, batch, shapes, moving=False)
    static = _static_of(model, batch, shapes) if fixed else np.zeros((batch.count, 0), dtype=int)
    index = np.concatenate([own, static], axis=1)
    body = np.array([*bodies, *[-1] * static.shape[1]], dtype=int)
    moves = np.pad(moving_members(model, batch), ((0, 0), (0, 1)))[:, body]
    kind = np.array(
        [(KIND if k >= 0 else FIXED_KIND)[GeoType(int(t))] for t, k in zip(shapes.type[index[0]], body, strict=True)], dtype=int
    )  # fmt: skip
    i, j = np.triu_indices(len(body), 1)
    keep = (moves[:, i] | moves[:, j]).any(axis=0) & (body[i] != body[j])
    i, j = i[keep], j[keep]
    swap = kind[i] > kind[j]
    one, two = np.where(swap, j, i), np.where(swap, i, j)
    allowed = (moves[:, one] | moves[:, two]) & may_collide(shapes.group[index[:, one]], shapes.group[index[:, two]])
    a, b = index[:, one].astype(np.int64), index[:, two].astype(np.int64)
    allowed &= ~shapes.is_filtered(((np.minimum(a, b) << 32) | np.maximum(a, b)).ravel()).reshape(allowed.shape)
    # those with surfaces come last
    some = np.flatnonzero(allowed.any(axis=0))
    some = some[np.argsort(kind[two[some]] >= FIELD, kind="stable")]
    one, two, allowed = one[some], two[some], allowed[:, some]
    # a cluster without pairs has no shapes of pairs either
    chosen = np.unique(np.concatenate([one, two]))
    place = np.zeros(len(body), dtype=int)
    place[chosen] = np.arange(len(chosen))
    tables.pair_shapes, tables.pair_allowed = index[:, chosen], allowed
    if not len(one):
        return tables
    _fill(tables, template, shapes, body[chosen], kind[chosen], place[one], place[two])
    _add_surfaces(model, tables)
    return tables


def _add_surfaces(model, tables: ContactTables) -> None:
    """Tells the kernels where the tables of height fields and meshes are."""
    arrays, kind = tables.arrays, tables.arrays["shape_kind"]
    found = np.flatnonzero(kind >= FIELD)
    if not len(found):
        return
    surfaces = surfaces_of(model)
    for s in found:
        arrays["shape_hull_at"][s] = surfaces.first(model.shape_source[tables.pair_shapes[0, s]])
    tables.numbers["surface_pairs"] = int((kind[arrays["pair_two"]] >= FIELD).sum())
    tables.surface_table = surfaces.table


def _fill(tables: ContactTables, template, shapes: Shapes, body, kind, one, two) -> None:
    """The fields of the kernels' ``Tree``."""
    numbers, arrays, index = tables.numbers, tables.arrays, tables.pair_shapes
    leaf = np.append(template.leaf, -1)[body]
    first, hulls, points = len(tables.hull), {}, [tables.hull]
    hull_at, hull_count = np.zeros(len(body), dtype=int), np.where(kind < FIELD, shapes.hull_count[index[0]], 0)
    for s in np.flatnonzero(hull_count):
        start, n = int(shapes.hull_first[index[0, s]]), int(hull_count[s])
        if start not in hulls:
            hulls[start] = first
            points.append(shapes.hull_points[start : start + n])
            first += n
        hull_at[s] = hulls[start]
    tables.hull = np.concatenate(points)
    chains = [_chain(template, x) for x in leaf]
    shared = [_common(chains[a], chains[b]) for a, b in zip(one, two, strict=True)]
    count = np.array([points_of(int(kind[a]), int(kind[b])) for a, b in zip(one, two, strict=True)], dtype=int)
    start = numbers["candidates"]
    candidate = start + np.concatenate([[0], np.cumsum(count)])
    lengths = [len(chains[a]) + len(chains[b]) - s for a, b, s in zip(one, two, shared, strict=True)]
    numbers.update(
        shapes=len(body), pairs=len(one), first_paired=start, candidates=int(candidate[-1]), reach=max(template.reach, *lengths)
    )  # fmt: skip
    turning = bool(shapes.turning[index].any())
    if turning:
        numbers["contact_rows"] = 6
    _list_spans(tables, template, chains, one, two, shared, count)
    arrays.update(
        shape_body=body, shape_kind=kind, shape_hull_at=hull_at, shape_hull_count=hull_count, pair_one=one, pair_two=two,
        pair_leaf=leaf[two], pair_other=leaf[one], pair_shared=np.array(shared, dtype=int), pair_candidate=candidate,
        candidate_collider=np.concatenate([arrays["candidate_collider"], np.repeat(np.arange(len(one)), count)]),
        candidate_body=np.concatenate([arrays["candidate_body"], np.repeat(np.maximum(body[two], 0), count)]),
    )  # fmt: skip


def _list_spans(tables: ContactTables, template, chains, one, two, shared, count) -> None:
    """The degrees of freedom of the rows of all candidates: those of colliders with planes, then those of pairs."""
    known: dict[tuple, int] = {}

    def number(*dofs) -> int:
        return known.setdefault(tuple(dofs), len(known))

    of_bodies = [number(*_chain(template, leaf)) for leaf in template.leaf]
    of_pairs = [number(*chains[b], *chains[a][s:]) for a, b, s in zip(one, two, shared, strict=True)]
    candidates = np.array(of_bodies, dtype=int)[tables.arrays["candidate_body"]]
    tables.candidate_span = np.concatenate([candidates, np.repeat(np.array(of_pairs, dtype=int), count)])
    tables.spans = [np.array(span, dtype=int) for span in known]


def _chain(template, leaf: int):
    """The degrees of freedom of the chain of dof `leaf`; none for -1."""
    if leaf < 0:
        return []
    at = template.chain_at[leaf]
    return template.chain[at : at + template.depth[leaf] + 1]


def _common(a, b) -> int:
    """How many first members two chains have in common."""
    n = min(len(a), len(b))
    differs = np.flatnonzero(np.asarray(a[:n]) != np.asarray(b[:n]))
    return int(differs[0]) if len(differs) else n
