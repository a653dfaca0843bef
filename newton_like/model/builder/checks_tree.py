"""Refuses joints that do not make trees, and worlds that mix."""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.coercion import as_list
from newton_like.model.builder.checks import Report
from newton_like.model.columns import KINDS
from newton_like.model.joint_types import look_up
from newton_like.types import BodyFlags


def check_worlds(builder, columns: dict, report: Report) -> None:
    """What belongs together is in one world, worlds follow each other, and nothing that moves is shared by worlds."""
    for name in ("world_label", "world_gravity"):
        entries = as_list(getattr(builder, name), f"builder.{name}", "entries, one for each world")
        if len(entries) != builder.world_count:
            raise ValueError(
                f"builder.{name} has {len(entries)} entries for {builder.world_count} worlds; edit entries, keep their "
                "number, and let begin_world() count the worlds"
            )
    for kind in KINDS:
        if f"{kind}_world" in columns:
            _check_world_order(builder, kind, columns[f"{kind}_world"], report)
    body_world, joint_world = columns["body_world"], columns["joint_world"]
    for name, noun in (("joint_child", "child"), ("joint_parent", "parent")):
        bodies = columns[name]
        wrong = (bodies >= 0) & (body_world[bodies] != joint_world) if len(bodies) else np.zeros(0, dtype=bool)
        report.refuse(
            "joint",
            wrong,
            lambda i, b=bodies, n=noun: (
                f"its {n} {report.name('body', b[i])} is in world {body_world[b[i]]}, not its own"
            ),
        )
    bodies = columns["shape_body"]
    on_body = np.flatnonzero(bodies >= 0)
    wrong = body_world[bodies[on_body]] != columns["shape_world"][on_body]
    report.refuse("shape", wrong, lambda i: f"its {report.name('body', bodies[i])} is in another world", on_body)
    owner = columns["joint_articulation"]
    owned = np.flatnonzero(owner >= 0)
    wrong = columns["articulation_world"][owner[owned]] != joint_world[owned]
    report.refuse("joint", wrong, lambda i: f"its {report.name('articulation', owner[i])} is in another world", owned)


def _check_world_order(builder, kind: str, world: np.ndarray, report: Report) -> None:
    report.refuse(
        kind,
        (world < -1) | (world >= builder.world_count),
        lambda i: f"world {world[i]} does not exist; there are {builder.world_count}",
    )
    inside = np.flatnonzero(world >= 0)
    if inside.size:
        span = np.arange(inside[0], inside[-1] + 1)
        report.refuse(
            kind,
            world[span] < 0,
            lambda i: "it is shared by all worlds and stands between two; add it before the first or after the last",
            among=span,
        )
        report.refuse(
            kind,
            np.diff(world[inside]) < 0,
            lambda i: f"world {world[i]} comes after a later world; add worlds one after the other",
            among=inside[1:],
        )


def check_trees(builder, columns: dict, report: Report) -> np.ndarray:
    """Articulations are trees of joints from the world or resting bodies outwards, and every body hangs on one at most.

    Returns:
        ``joint_ancestor``: for each joint the tree joint whose child is its parent body, or -1.
    """
    _check_articulations(columns, report)
    parent, child = columns["joint_parent"], columns["joint_child"]
    owner = columns["joint_articulation"]
    report.refuse("joint", child < 0, lambda i: "its child is the world; swap parent and child")
    tree = np.flatnonzero(owner >= 0)
    joint_of_body = np.full(len(columns["body_world"]), -1)
    joint_of_body[child[tree]] = tree
    report.refuse(
        "joint",
        joint_of_body[child[tree]] != tree,
        lambda i: (
            f"its child {report.name('body', child[i])} is that of {report.name('joint', joint_of_body[child[i]])}"
            " too; a body has one parent, leave the joint that closes the loop out of the articulation"
        ),
        among=tree,
    )
    # a resting body carries an articulation, and may be held by a joint that closes a loop
    holds = np.append(joint_of_body >= 0, False)
    holds[parent[tree][parent[tree] >= 0]] = True
    loose = (owner < 0) & ~holds[child] if len(child) else np.zeros(0, dtype=bool)
    report.refuse("joint", loose, lambda i: "it belongs to no articulation; pass its index to add_articulation")
    resting = np.flatnonzero(joint_of_body < 0)
    if resting.size:
        more = f" (and {resting.size - 1} more)" if resting.size > 1 else ""
        warnings.warn(
            f"{report.name('body', resting[0])}{more}: the body is not the child of a joint of an articulation; it remains at its"
            " body_q, and solvers raise an error for the model: use add_body for a free body, or add a joint in an articulation",
            stacklevel=4,
        )
    ancestor = np.where(parent >= 0, joint_of_body[parent], -1) if len(parent) else parent
    inner = np.flatnonzero((owner >= 0) & (ancestor >= 0))
    report.refuse(
        "joint",
        owner[ancestor[inner]] != owner[inner],
        lambda i: (
            f"its parent {report.name('body', parent[i])} belongs to "
            f"{report.name('articulation', owner[ancestor[i]])}; put both into one articulation, or add it with "
            "extend_articulation"
        ),
        among=inner,
    )
    early = inner[ancestor[inner] >= inner]
    if early.size:
        _refuse_order(ancestor, int(early[0]), report)
    report.refuse(
        "joint",
        (columns["body_flags"][child[tree]] == BodyFlags.KINEMATIC) & (parent[tree] >= 0),
        lambda i: f"its child {report.name('body', child[i])} is kinematic; only bodies on the world may be",
        among=tree,
    )
    _check_shared(builder, columns, ancestor, report)
    return ancestor


def _check_articulations(columns: dict, report: Report) -> None:
    start, end = columns["articulation_start"], columns["articulation_end"]
    report.refuse("articulation", start >= end, lambda i: "it has no joints")
    text = "its joints overlap with those of the articulation before it"
    report.refuse("articulation", start[1:] < end[:-1], lambda i: text, among=np.arange(1, len(start)))
    owner = columns["joint_articulation"]
    expected = np.full(len(owner), -1)
    lengths = end - start
    expected[np.repeat(start, lengths) + _ranges(lengths)] = np.repeat(np.arange(len(start)), lengths)
    report.refuse(
        "joint",
        owner != expected,
        lambda i: (
            f"joint_articulation is {owner[i]}, but articulation_start and articulation_end imply {expected[i]}; the "
            "joints of an articulation are contiguous"
        ),
    )


def _ranges(lengths: np.ndarray) -> np.ndarray:
    """0 .. n-1 for each n of ``lengths``, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _refuse_order(ancestor: np.ndarray, joint: int, report: Report) -> None:
    """Tells a cycle from a tree whose joints are in the wrong order."""
    path, seen = [joint], {joint}
    while (up := int(ancestor[path[-1]])) >= 0:
        path.append(up)
        if up in seen:
            names = " -> ".join(report.name("joint", j) for j in reversed(path[path.index(up) :]))
            raise ValueError(
                f"the joints {names} make a cycle; leave one of them out of the articulation to close a loop"
            )
        seen.add(up)
    raise ValueError(
        f"{report.name('joint', joint)} comes before {report.name('joint', ancestor[joint])}, which moves its parent body; "
        "add joints from the root outwards"
    )


def _check_shared(builder, columns: dict, ancestor: np.ndarray, report: Report) -> None:
    """Bodies shared by all worlds must not be moved by any of them."""
    if not builder.world_count:
        return
    shared = np.flatnonzero((columns["joint_world"] < 0) & (columns["joint_articulation"] >= 0))
    dofs = columns["joint_dof_dim"].sum(axis=1)
    flags = columns["body_flags"]
    moves = np.zeros(len(ancestor), dtype=bool)
    for joint in shared:
        driven = dofs[joint] > 0 and flags[columns["joint_child"][joint]] == BodyFlags.DYNAMIC
        moves[joint] = driven or (ancestor[joint] >= 0 and moves[ancestor[joint]])
    report.refuse(
        "joint",
        moves,
        lambda i: (
            f"it moves {report.name('body', columns['joint_child'][i])}, which all worlds share; add both between "
            "begin_world() and end_world(), fix the body or make it kinematic"
        ),
    )


def check_mimics(columns: dict, report: Report) -> None:
    """Followers and leaders fit together; see :meth:`ModelBuilder.set_joint_mimic`."""
    leader = columns["joint_mimic_joint"]
    followers = np.flatnonzero(leader >= 0)
    if not followers.size:
        return
    types, dofs = columns["joint_type"], columns["joint_dof_dim"].sum(axis=1)
    plain = look_up(types, "axis_by_axis")
    owner = columns["joint_articulation"]
    led = leader[followers]
    for wrong, text in (
        (~plain[followers] | ~plain[led], "only PRISMATIC, REVOLUTE and D6 joints follow or are followed"),
        (led == followers, "it follows itself"),
        (dofs[led] != dofs[followers], "it has another number of dofs than the joint it follows"),
        (leader[led] >= 0, "the joint it follows follows another; follow that one directly"),
        (
            (owner[led] >= 0) & (owner[followers] >= 0) & (owner[led] != owner[followers]),
            "the joint it follows is in another articulation; make one of both by merge_articulations()",
        ),
        (columns["joint_world"][led] != columns["joint_world"][followers], "the joint it follows is in another world"),
    ):
        report.refuse(
            "joint", wrong, lambda i, t=text: f"cannot mimic {report.name('joint', leader[i])}: {t}", followers
        )
