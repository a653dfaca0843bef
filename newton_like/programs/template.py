"""Templates and batches: which articulations of a model are copies of one robot, and where their numbers lie.

A *cluster* is a run of articulations of one world that are computed together, because they may act on each other; often it is a single
articulation. A *template* is the shape of a cluster, a forest of kinematic trees with one tree for each articulation: parents, joint types,
numbers of coordinates. A *batch* is a run of clusters of one template whose places in the flat arrays advance by constant strides, which
is what ``replicate`` makes; equal clusters of one world are told apart by their order there. Kernels run batch by batch: all control flow
is the same for every cluster of a batch, only numbers differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.model import carried_bodies

_WORLD = -(2**30)


@dataclass(frozen=True, eq=False)
class Template:
    """The shape of a forest. Bodies are numbered as the joints that move them, parents first; all indices are local.

    Attributes:
        joint_type: ``JointType`` of every joint, ``[bodies]``.
        kind: joint kind of ``newton_like.kernels.tree``, ``[bodies]``.
        parent: parent body, ``bodies + i`` for the world as tree i has it, ``[bodies]``.
        body_slot: place of body k among the articulation's entries of body arrays, ``[bodies]``.
        joint_slot, q_slot, dof_slot: places of joints, coordinates and dofs among the entries of their arrays. Loop joints may lie between
            the joints of two trees.
        q_at, dof_at: first coordinate and dof of each joint and, last, their number, ``[bodies + 1]``.
        linear, angular: numbers of linear and angular dofs of each joint, ``[bodies]``.
        mimic: joint that each joint follows, -1 for none, ``[bodies]``.
        tree_at: first body of each tree and, last, their number, ``[trees + 1]``.
        tree: tree of each body, ``[bodies]``.
        floats: 1 for a tree whose first joint is a floating base, whose anchor is then its reference point, ``[trees]``.
        forest: `tree`, then `tree_at`, ``[bodies + trees + 1]``.
        depth, chain_at, chain: ancestors of every dof, see ``newton_like.kernels.tree``.
        leaf: last dof of each body's chain, -1 for a body that cannot move, ``[bodies]``.
    """

    joint_type: np.ndarray
    kind: np.ndarray
    parent: np.ndarray
    body_slot: np.ndarray
    q_at: np.ndarray
    dof_at: np.ndarray
    linear: np.ndarray
    angular: np.ndarray
    mimic: np.ndarray
    tree_at: np.ndarray
    joint_slot: np.ndarray
    q_slot: np.ndarray
    dof_slot: np.ndarray
    tree: np.ndarray = field(init=False)
    floats: np.ndarray = field(init=False)
    forest: np.ndarray = field(init=False)
    child_at: np.ndarray = field(init=False)
    child: np.ndarray = field(init=False)
    leaf: np.ndarray = field(init=False)
    depth: np.ndarray = field(init=False)
    chain_at: np.ndarray = field(init=False)
    chain: np.ndarray = field(init=False)
    dof_q: np.ndarray = field(init=False)

    def __post_init__(self):
        children = [np.flatnonzero(self.parent == k) for k in range(self.bodies)]
        leaf = np.full(self.bodies, -1)
        chains: list[list[int]] = []
        dof_q = np.full(self.dofs, -1)
        for k in range(self.bodies):
            above = int(leaf[self.parent[k]]) if self.parent[k] < self.bodies else -1
            first, last = int(self.dof_at[k]), int(self.dof_at[k + 1])
            for i in range(first, last):
                chains.append([*(chains[i - 1] if i > first else chains[above] if above >= 0 else []), i])
                if not JOINT_TYPES[self.joint_type[k]].has_quaternion:
                    dof_q[i] = self.q_at[k] + i - first
            leaf[k] = last - 1 if last > first else above
        lengths = np.array([len(c) for c in chains], dtype=np.int32)
        roots = self.tree_at[:-1]
        floats = [self.parent[k] >= self.bodies and JOINT_TYPES[self.joint_type[k]].floats for k in roots]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        for name, value in (
            ("tree", np.repeat(np.arange(self.trees), np.diff(self.tree_at))),
            ("forest", np.concatenate([np.repeat(np.arange(self.trees), np.diff(self.tree_at)), self.tree_at])),
            ("floats", floats),
            ("child_at", np.concatenate([[0], np.cumsum([len(c) for c in children])])),
            ("child", np.concatenate(children) if children else []),
            ("leaf", leaf),
            ("depth", lengths - 1),
            ("chain_at", starts[:-1]),
            ("chain", np.concatenate(chains) if chains else []),
            ("dof_q", dof_q),
        ):
            object.__setattr__(self, name, np.asarray(value, dtype=np.int32))

    @property
    def trees(self) -> int:
        """Number of trees."""
        return len(self.tree_at) - 1

    @property
    def bodies(self) -> int:
        """Number of bodies, and of joints."""
        return len(self.parent)

    @property
    def span(self) -> int:
        """Number of body entries from the first to the last; more than `bodies` where other articulations' bodies lie between."""
        return int(self.body_slot.max(initial=-1)) + 1

    @property
    def dense(self) -> bool:
        """Whether no other articulation's bodies lie between."""
        return self.span == self.bodies

    @property
    def dofs(self) -> int:
        """Number of degrees of freedom."""
        return int(self.dof_at[-1])

    @property
    def reach(self) -> int:
        """Length of the longest chain, and at least one."""
        return int(self.depth.max(initial=0)) + 1

    @property
    def entries(self) -> int:
        """Entries of a packed triangular matrix of which row i has one for every member of the chain of dof i."""
        return int((self.depth + 1).sum())

    @property
    def coords(self) -> int:
        """Number of joint coordinates."""
        return int(self.q_at[-1])

    @property
    def free_root(self) -> bool:
        """Whether the first tree floats."""
        return bool(self.floats[:1].any())


@dataclass(frozen=True, eq=False)
class Batch:
    """Clusters of one template, evenly spaced in all flat arrays.

    Attributes:
        template: their shape.
        articulations: index of the first articulation of each, ``[count]``.
        joint_start, q_start, qd_start, body_start: first joint, coordinate, dof and body entry of each, ``[count]``.
        world: world of each, -1 for a scene without worlds, ``[count]``.
    """

    template: Template
    articulations: np.ndarray
    joint_start: np.ndarray
    q_start: np.ndarray
    qd_start: np.ndarray
    body_start: np.ndarray
    world: np.ndarray

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.articulations)

    def stride(self, starts: np.ndarray) -> int:
        """The constant step of one of the start arrays."""
        return int(starts[1] - starts[0]) if self.count > 1 else 0


def find_batches(model, kinds: list[bytes] | None = None, clusters: list[range] | None = None) -> list[Batch]:
    """The batches of a model, in the order of their first articulations.

    Args:
        model: the model.
        kinds: something of each cluster that must be equal in a batch too.
        clusters: the articulations of each cluster; None: every articulation is a cluster of its own.

    Raises:
        ValueError: a joint comes before the joint of its parent body.
    """
    start = model.articulation_start.numpy()
    end = model.articulation_end.numpy()
    joint_type = model.joint_type.numpy()
    child = model.joint_child.numpy()
    # what a resting body carries hangs on the world
    resting = np.flatnonzero(~carried_bodies(child, model.joint_articulation.numpy(), model.body_count))
    parent = model.joint_parent.numpy()
    parent = np.where(np.isin(parent, resting), -1, parent)
    dims = model.joint_dof_dim.numpy()
    q_start = model.joint_q_start.numpy()
    qd_start = model.joint_qd_start.numpy()
    mimic = model.joint_mimic_joint.numpy()
    worlds = model.articulation_world.numpy()
    templates: dict[bytes, Template] = {}
    groups: dict[tuple[bytes, bytes], list[tuple[int, int]]] = {}
    for i, members in enumerate(clusters or [range(a, a + 1) for a in range(model.articulation_count)]):
        a = members[0]
        s, e = int(start[a]), int(end[members[-1]])
        if e <= s:
            continue
        own, firsts = slice(s, e), start[members.start : members.stop]
        sizes = end[members.start : members.stop] - firsts
        if sizes.sum() == e - s:
            first = int(child[own].min())
            local_mimic = np.where(mimic[own] < 0, -1, mimic[own] - s)
            tree_at = np.append(firsts, e) - s
            q_at, dof_at = (starts[s : e + 1] - starts[s] for starts in (q_start, qd_start))
            slots = ()
        else:
            # loop joints lie between articulations
            own = np.concatenate([np.arange(x, x + n) for x, n in zip(firsts, sizes, strict=True)])
            first = int(child[own].min())
            local_mimic = np.where(np.isin(mimic[own], own), np.searchsorted(own, mimic[own]), -1)
            tree_at = np.concatenate([[0], np.cumsum(sizes)])
            (q_at, q_slot), (dof_at, dof_slot) = (_places(starts, own) for starts in (q_start, qd_start))
            slots = own - s, q_slot, dof_slot
        local_parent = np.where(parent[own] < 0, _WORLD, parent[own] - first)
        parts = (
            joint_type[own],
            local_parent,
            child[own] - first,
            dims[own],
            q_at,
            dof_at,
            local_mimic,
            tree_at,
            *slots,
        )
        key = b"|".join(np.ascontiguousarray(p, dtype=np.int32).tobytes() for p in parts)
        if key not in templates:
            templates[key] = _template(model, s, *parts)
        groups.setdefault((key, kinds[i] if kinds else b""), []).append((a, first))
    batches = []
    for (key, _), found in groups.items():
        index = np.array([a for a, _ in found])
        places = np.stack(
            [start[index], q_start[start[index]], qd_start[start[index]], [f for _, f in found], index], axis=1
        )
        for run in _runs(places, worlds[index]):
            batches.append(Batch(templates[key], index[run], *places[run, :4].T, worlds[index[run]]))
    return sorted(batches, key=lambda batch: int(batch.articulations[0]))


def _places(starts: np.ndarray, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the numbers of joints in an array: the first one of each joint and, last, how many there are; and their places from the first."""
    counts = starts[joints + 1] - starts[joints]
    at = np.concatenate([[0], np.cumsum(counts)])
    slots = np.repeat(starts[joints] - starts[joints[0]] - at[:-1], counts) + np.arange(at[-1])
    return at, slots


def _template(model, first_joint, joint_type, parent, slot, dims, q_at, dof_at, mimic, tree_at, *slots) -> Template:
    order = {int(b): k for k, b in enumerate(slot)}
    n = len(parent)
    slots = slots or tuple(np.arange(count) for count in (n, q_at[-1], dof_at[-1]))
    tree = np.repeat(np.arange(len(tree_at) - 1), np.diff(tree_at))
    parents = (n + tree).astype(np.int32)
    for k, p in enumerate(parent):
        if p == _WORLD:
            continue
        label = model.joint_label[first_joint + slots[0][k]]
        if int(p) not in order or tree[order[int(p)]] != tree[k]:
            raise ValueError(
                f"joint '{label}' (index {first_joint + slots[0][k]}): its parent body belongs to another articulation; "
                "list the joints of both in one articulation"
            )
        if order[int(p)] >= k:
            raise ValueError(
                f"joint '{label}' (index {first_joint + slots[0][k]}) comes before the joint of its parent body in its articulation; "
                "list an articulation's joints from the root to the leaves"
            )
        parents[k] = order[int(p)]
    dims = np.asarray(dims, dtype=np.int32).reshape(n, 2)
    kinds = [JOINT_TYPES[t].device_kind(*axes) for t, axes in zip(joint_type, dims.tolist(), strict=True)]
    kind = np.array(kinds, dtype=np.int32)
    return Template(joint_type, kind, parents, slot, q_at, dof_at, dims[:, 0], dims[:, 1], mimic, tree_at, *slots)


def _runs(places: np.ndarray, worlds: np.ndarray) -> list[np.ndarray]:
    """Cuts equal articulations into even runs: as few as there are of them in a world, or as they come, whichever are fewer."""
    plain = _even_runs(places)
    if len(plain) == 1:
        return plain
    seen: dict[int, int] = {}
    ordinal = np.zeros(len(worlds), dtype=int)
    for i, world in enumerate(worlds.tolist()):
        ordinal[i] = seen[world] = seen.get(world, -1) + 1
    order = np.argsort(ordinal, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(ordinal[order])) + 1)
    by_ordinal = [m[run] for m in members for run in _even_runs(places[m])]
    return by_ordinal if len(by_ordinal) <= len(plain) else plain


def _even_runs(places: np.ndarray) -> list[np.ndarray]:
    """Cuts rows into runs that advance by a constant vector."""
    runs, at = [], 0
    while at < len(places):
        end = at + 1
        if end < len(places):
            step = places[end] - places[at]
            while end < len(places) and np.array_equal(places[end] - places[end - 1], step):
                end += 1
        runs.append(np.arange(at, end))
        at = end
    return runs
