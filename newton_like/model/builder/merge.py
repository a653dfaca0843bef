"""Articulations that become one, with several trees."""

from __future__ import annotations

import numpy as np

from newton_like.coercion import as_list
from newton_like.model.columns import COLUMNS
from newton_like.model.custom import AttributeFrequency


def merge_articulations(builder, articulations=None, *, label: str | None = None) -> dict:
    """Makes one articulation of several, which then has several trees.

    ``SolverFeatherstone`` needs this for loop joints, tendons and mimic joints between two articulations, such as two arms that hold a
    tray. Bodies, coordinates and motion stay as they are. The joints of the new articulation follow each other, from the first joint of
    the first of the articulations on, so that joints between them and their coordinates get other indices. Where the joints of the
    articulations follow each other already, all joints keep their indices.

    Args:
        builder: the :class:`ModelBuilder` to change.
        articulations: labels or indices; None: all articulations that enabled loop joints, mimic joints and tendons connect, of each world.
        label: name of the new articulation; None: that of the first one.

    Returns:
        A dict with the changes, by old index: ``joint_remap`` and ``articulation_remap``.

    Raises:
        KeyError, IndexError, TypeError: an articulation does not exist.
        ValueError: there are fewer than two, or they are in different worlds; a label without articulations.
    """
    if articulations is None:
        if label is not None:
            raise ValueError("merge_articulations(): label names one new articulation; give the articulations, too")
        groups = _connected(builder)
    else:
        given = as_list(articulations, "articulations", "labels or indices")
        group = sorted({builder._resolve("articulation", each) for each in given})
        if len(group) < 2:
            raise ValueError(f"merge_articulations(): {given!r} is not several articulations; give at least two")
        for other in group[1:]:
            if builder.articulation_world[other] != builder.articulation_world[group[0]]:
                one, two = (builder._describe("articulation", a) for a in (group[0], other))
                raise ValueError(f"merge_articulations(): {one} and {two} are in different worlds")
        groups = [group]
    host = {a: group[0] for group in groups for a in group}
    order = _order(builder, groups)
    left = [a for a in range(builder.articulation_count) if host.get(a, a) == a]
    new = {a: i for i, a in enumerate(left)}
    remap = {
        "joint": {old: i for i, old in enumerate(order)},
        "articulation": {a: new[host.get(a, a)] for a in range(builder.articulation_count)},
    }
    _renumber(builder, order, left, host, remap)
    if label is not None:
        builder.articulation_label[new[groups[0][0]]] = str(label)
    return {"joint_remap": remap["joint"], "articulation_remap": remap["articulation"]}


def _connected(builder) -> list[list[int]]:
    """Articulations that joints and tendons connect, in groups of several, ascending."""
    owner = {builder.joint_child[j]: a for j, a in enumerate(builder.joint_articulation) if a >= 0}
    host = list(range(builder.articulation_count))

    def root(a: int) -> int:
        while host[a] != a:
            a = host[a]
        return a

    def join(found) -> None:
        found = [root(a) for a in found if a is not None and a >= 0]
        for a in found:
            host[a] = min(found)

    for j, a in enumerate(builder.joint_articulation):
        if a < 0 and builder.joint_enabled[j]:
            join([owner.get(builder.joint_parent[j]), owner.get(builder.joint_child[j])])
        if a >= 0 and builder.joint_mimic_joint[j] >= 0:
            join([a, builder.joint_articulation[builder.joint_mimic_joint[j]]])
    for tendon in builder.tendons:
        shapes = [i for kind, *places in tendon.path if kind != "pulley" for i in places if i >= 0]
        join(
            [
                *(builder.joint_articulation[j] for j, *_ in tendon.joints),
                *(owner.get(builder.shape_body[i]) for i in shapes),
            ]
        )
    groups: dict[int, list[int]] = {}
    for a in range(builder.articulation_count):
        groups.setdefault(root(a), []).append(a)
    return [group for group in groups.values() if len(group) > 1]


def _order(builder, groups: list[list[int]]) -> list[int]:
    """The joints in their new order."""
    joints = [range(*ends) for ends in zip(builder.articulation_start, builder.articulation_end, strict=True)]
    together = {joints[group[0]][0]: [j for a in group for j in joints[a]] for group in groups}
    moved = {j for own in together.values() for j in own}
    order = []
    for j in range(builder.joint_count):
        order += together.get(j, () if j in moved else (j,))
    return order


def _renumber(builder, order: list[int], left: list[int], host: dict[int, int], remap: dict) -> None:
    """Puts all lists in the new order, and renumbers what refers to joints, coordinates and articulations."""
    keep = {"joint": order, "articulation": left}
    starts = {}
    for kind, name, count in (
        ("dof", "joint_qd_start", builder.joint_dof_count),
        ("coord", "joint_q_start", builder.joint_coord_count),
    ):
        first = [*getattr(builder, name), count]
        keep[kind] = [i for j in order for i in range(first[j], first[j + 1])]
        sizes = [first[j + 1] - first[j] for j in order]
        starts[name] = np.cumsum([0, *sizes[:-1]]).tolist()
    blocked = [6 - linear - angular for linear, angular in builder.joint_dof_dim]
    first = np.cumsum([0, *blocked]).tolist()
    keep["joint_constraint"] = [i for j in order for i in range(first[j], first[j + 1])]
    remap |= {kind: {old: i for i, old in enumerate(keep[kind])} for kind in ("dof", "coord", "joint_constraint")}
    lengths = [builder.articulation_end[a] - builder.articulation_start[a] for a in range(builder.articulation_count)]
    total = {a: sum(lengths[b] for b in range(len(lengths)) if host.get(b, b) == a) for a in left}
    starts["articulation_start"] = [remap["joint"][builder.articulation_start[a]] for a in left]
    starts["articulation_end"] = [at + total[a] for at, a in zip(starts["articulation_start"], left, strict=True)]
    for attribute in builder.custom_attributes.values():
        if attribute.frequency == AttributeFrequency.ARTICULATION:
            # the first articulation keeps its entries
            attribute.values = {a: entry for a, entry in attribute.values.items() if host.get(a, a) == a}
    builder._renumber_custom(dict(remap))
    for column in COLUMNS:
        values = getattr(builder, column.name)
        if column.name in starts:
            values = starts[column.name]
        else:
            if column.kind in keep:
                values = [values[i] for i in keep[column.kind]]
            if column.refers in remap:
                values = [remap[column.refers].get(value, -1) for value in values]
        setattr(builder, column.name, values)
    joint = remap["joint"].__getitem__
    builder.tendons = [tendon.renumbered(joint, lambda i: i) for tendon in builder.tendons]
    builder.actuators = [
        actuator.renumbered(joint, lambda i: i, lambda i: i, lambda i: i) for actuator in builder.actuators
    ]
    builder.frames.renumber({b: b for b in range(builder.body_count)}, remap["articulation"])
    builder._forget_neighbours()
