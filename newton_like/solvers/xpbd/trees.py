"""Which joints a recursion over trees solves, and the tables that it reads.

A tree is made of joints between bodies that forces move, each of which has a child of its own. Joints that close loops, joints with three
angular axes, whose rows are not perpendicular to each other, joints of lines, joints of deep trees and single joints are solved one after
the other instead. Deep trees, such as chains of hundreds of links, would have stages of few joints. Lines act on two bodies at a time: of
512 trees with mimic joints, 11 gained more than 1 J in a second, and one of them 30 kJ, where these joints were solved at once, and 3 where
they are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.kernels.solvers.xpbd.joints import AXES, JOINT_WORK, TURNS
from newton_like.kernels.solvers.xpbd.order import DUMMY, FIRST_SLOT, SLOTS
from newton_like.kernels.solvers.xpbd.trees import ADD, BEFORE, FIRST, MIXED, TREE_COLUMNS, TREE_NUMBERS, TREE_WORK

DEEPEST = 16
"""Largest depth of a tree that the recursion solves."""


@dataclass
class Placed:
    """Places of joints in trees, each ``[n]``.

    Attributes:
        depth: of a joint whose parent is a root 1, and 0 of joints that the recursion does not solve.
        rank: which of the children of its parent a child is.
        leaf: whether the child has no children.
        moved: whether forces move the parent.
    """

    depth: np.ndarray
    rank: np.ndarray
    leaf: np.ndarray
    moved: np.ndarray


def trees_of_joints(pairs: np.ndarray, kinds: np.ndarray, alone: np.ndarray | None = None) -> Placed:
    """Where the joints of a world are in trees.

    Args:
        pairs: parent and child of each joint, -1 for bodies that nothing moves, ``[n, 2]``.
        kinds: kind, and numbers of free translations and rotations, ``[n, 3]``.
        alone: which joints lines read or act on, ``[n]``.
    """
    n = len(pairs)
    depth, rank, leaf = np.zeros(n, dtype=int), np.zeros(n, dtype=int), np.ones(n, dtype=bool)
    straight = (kinds[:, 0] == AXES) & (kinds[:, 2] <= 2) | (kinds[:, 0] == TURNS) & (kinds[:, 1] == 0)
    if alone is not None:
        straight &= ~alone
    into: dict[int, int] = {}
    for j in np.flatnonzero(straight).tolist():
        a, b = pairs[j].tolist()
        if b < 0 or b in into:
            continue
        k = a
        while k in into and k != b:
            k = int(pairs[into[k], 0])
        if k != b:
            into[b] = j
    for b in into:
        path = []
        while b in into and not depth[into[b]]:
            path.append(into[b])
            b = int(pairs[into[b], 0])
        level = depth[into[b]] if b in into else 0
        for j in reversed(path):
            level += 1
            depth[j] = level
    tops: dict[int, list[int]] = {}
    for j in into.values():
        k, above = j, int(pairs[j, 0])
        while above in into:
            k, above = into[above], int(pairs[into[above], 0])
        tops.setdefault(above if above >= 0 else -1 - k, []).append(j)
    for joints in tops.values():
        if len(joints) == 1 or depth[joints].max() > DEEPEST:
            depth[joints] = 0
    children: dict[int, int] = {}
    for j in np.flatnonzero(depth).tolist():
        a = int(pairs[j, 0])
        if a >= 0:
            rank[j] = children.get(a, 0)
            children[a] = rank[j] + 1
    for j in np.flatnonzero(depth).tolist():
        leaf[j] = int(pairs[j, 1]) not in children
    return Placed(depth, rank, leaf, pairs[:, 0] >= 0)


def solved_together(blocks, count: int) -> np.ndarray:
    """Which joints are in trees of these blocks, ``[count]``."""
    found = np.zeros(count, dtype=bool)
    found[blocks.joint[blocks.placed.depth > 0]] = True
    return found


def tree_arrays(slots, blocks, width: int, array, lanes, flat) -> tuple[dict, int]:
    """The arrays of the struct ``Trees``; none without trees. And the number of blocks of copies of joints.

    Args:
        slots: a :class:`newton_like.solvers.xpbd.tables.Slots`.
        blocks: a :class:`newton_like.solvers.xpbd.tables.Blocks`.
        width: lanes of a block.
        array: makes arrays of integers on the device.
        lanes: makes memory for lanes of numbers ``[n, width]``.
        flat: makes an array of numbers.
    """
    depth = blocks.placed.depth.ravel()
    chosen = np.flatnonzero(depth > 0)
    if not len(chosen):
        return {}, 0
    block = chosen // width
    moved, leaf = blocks.placed.moved.ravel()[chosen] != 0, blocks.placed.leaf.ravel()[chosen] != 0
    rank = np.where(moved, blocks.placed.rank.ravel()[chosen], 0)
    level = np.stack([blocks.chunk[block], -depth[chosen], blocks.table[block, 1], blocks.table[block, 2], moved])
    merged = _alone(level, width)
    keys = np.stack([*level[:2], np.where(merged, 0, rank), *level[2:], ~leaf & ~merged]).astype(int)
    order = np.lexsort((chosen, rank, *keys[::-1]))
    keys, chosen, leaf, rank = keys[:, order], chosen[order], leaf[order], rank[order]
    parent, child = blocks.parent[chosen], blocks.child[chosen]
    place = chosen // width * JOINT_WORK * width + chosen % width
    dummy = slots.chunks[keys[0], DUMMY]
    below = np.where(leaf, dummy, child)
    cuts = np.flatnonzero(np.diff(keys, axis=1).any(axis=0)) + 1
    table, stages, stage_at = [], [], np.zeros(len(slots.chunks) + 1, dtype=int)
    rows = {name: [] for name in ("joint", "parent", "child", "below", "rank")}
    before, copies = None, 0
    for piece in np.split(np.arange(len(chosen)), cuts):
        for i in range(0, len(piece), width):
            part = piece[i : i + width]
            k, rest = part[0], width - len(part)
            of_chunk, minus_depth, order_of_child, free, turns, moves, _ = keys[:, k].tolist()
            runs = [_run(x[part], width) for x in (parent, child, below)]
            # the lanes of a block of joints, or a block of copies
            of_joints, lane = divmod(int(chosen[k]), width)
            along = lane == 0 and (np.diff(place[part]) == 1).all() and (blocks.joint[of_joints, len(part) :] < 0).all()
            of_joints = of_joints if along else len(blocks.table) + copies
            copies += not along
            if (of_chunk, minus_depth, order_of_child) != before:
                stages.append([len(table), len(table)])
                stage_at[of_chunk + 1] += 1
                before = of_chunk, minus_depth, order_of_child
            sums = ADD if order_of_child else MIXED if rank[part].any() else FIRST
            table.append((len(part), free, turns, of_joints, not along, *runs, (~leaf[part]).any(), sums, moves))
            stages[-1][1] = len(table)
            rows["joint"].append(np.append(place[part], np.full(rest, place[k])))
            rows["rank"].append(np.append(rank[part], np.zeros(rest, dtype=int)))
            for name, x in (("parent", parent), ("child", child), ("below", below)):
                rows[name].append(np.append(x[part], np.full(rest, dummy[k])))
    # roots that forces move: parents of joints of the first depth
    on_root = (keys[1] == -1) & (keys[5] != 0)
    roots = np.unique(np.stack([keys[0][on_root], parent[on_root]]), axis=1)
    root_table, root_rows, root_at = [], [], np.zeros(len(slots.chunks) + 1, dtype=int)
    for c in np.unique(roots[0]).tolist():
        own = roots[1][roots[0] == c]
        for i in range(0, len(own), width):
            part = own[i : i + width]
            root_table.append((len(part), _run(part, width)))
            root_rows.append(np.concatenate([part, np.full(width - len(part), slots.chunks[c, DUMMY])]))
            root_at[c + 1] += 1
    none = np.zeros((1, 2), dtype=int)
    count = int(slots.chunks[-1, FIRST_SLOT] + slots.chunks[-1, SLOTS])
    return dict(
        blocks=array(np.array(table).reshape(-1, TREE_COLUMNS)), root_blocks=array(np.array(root_table) if root_table else none),
        **{name: array(np.concatenate(x)) for name, x in rows.items()},
        root=array(np.concatenate(root_rows) if root_rows else np.zeros(1, dtype=int)),
        changed=array(np.zeros(len(slots.chunks), dtype=int)), stages=array(np.array(stages)), stage_at=array(np.cumsum(stage_at)),
        root_at=array(np.cumsum(root_at)),
        work=lanes(np.zeros((len(table) * TREE_WORK, width))), body=flat(np.zeros(TREE_NUMBERS * count)),
    ), copies  # fmt: skip


def _alone(level: np.ndarray, width: int) -> np.ndarray:
    """Of each joint, whether all joints of its chunk at its depth fit into one block; `level`: chunk, depth and kind, ``[k, n]``."""
    _, group = np.unique(level[:2], axis=1, return_inverse=True)
    _, kind = np.unique(level, axis=1, return_inverse=True)
    group, kind = group.ravel(), kind.ravel()
    count = np.bincount(group)
    first = np.zeros(len(count), dtype=int)
    first[group[::-1]] = kind[::-1]
    same = np.bincount(group, kind == first[group])
    return ((count <= width) & (count > 1) & (same == count))[group]


def _run(slots: np.ndarray, width: int) -> int:
    """The first of these slots if they fill the lanes of a block and follow each other, else -1."""
    return int(slots[0]) if len(slots) == width > 1 and (np.diff(slots) == 1).all() else -1


def motion_places(slots, array) -> tuple:
    """Where the number ``BEFORE`` of each body stands, and the distance of rows; `array` copies to the device."""
    chunk = slots.chunks[slots.chunk_of]
    return array(TREE_NUMBERS * chunk[:, FIRST_SLOT] + BEFORE * chunk[:, SLOTS] + slots.slot_of), array(chunk[:, SLOTS])
