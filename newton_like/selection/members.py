"""Joints, links and shapes of chosen articulations, found in the tables of a model.

Entries of all articulations are in one row, those of the first articulation first. The `slots` of entries are their articulations, counted
in the view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.model.labels import matches
from newton_like.types import JointType


@dataclass
class Found:
    """Entries of one kind in each articulation.

    Attributes:
        count: how many there are in each; None where articulations differ in it.
        rows: which, ``[world, articulation, entry]``; None where articulations differ.
        reason: why there are no rows.
    """

    count: int | None
    rows: np.ndarray | None
    reason: str | None = None

    @property
    def first(self) -> list[int] | None:
        """Those of the first articulation."""
        return None if self.rows is None else self.rows[0, 0].tolist()


def by_world(model, ids: np.ndarray, homogeneous: bool) -> tuple[np.ndarray, np.ndarray]:
    """Articulations in rows, one for each world that has some, ``[world, articulation]``, and these worlds.

    Raises:
        KeyError: there are none.
        ValueError: worlds have different numbers of them; some articulations belong to no world; a world has none and the view is to be
            homogeneous.
    """
    if not ids.size:
        raise KeyError("pattern picks no articulation; give the labels of some")
    worlds = model.articulation_world.numpy()[ids]
    if np.all(worlds < 0):
        return ids[None], np.array([-1])
    if np.any(worlds < 0):
        label = model.articulation_label[ids[worlds < 0][0]]
        raise ValueError(f"articulation '{label}' belongs to no world, others of the pattern do; choose one kind only")
    counts = np.bincount(worlds, minlength=model.world_count)
    present = np.flatnonzero(counts)
    if homogeneous and len(present) < len(counts):
        empty, full = int(np.argmin(counts)), int(present[0])
        raise ValueError(
            f"the pattern does not match articulations in every world: it picks {counts[full]} in world {full} and 0 in world {empty}; "
            "choose labels that every world has, or give homogeneous=False"
        )
    other = present[counts[present] != counts[present[0]]]
    if len(other):
        a, b = int(present[0]), int(other[0])
        raise ValueError(
            f"the pattern picks {counts[a]} articulations in world {a} and {counts[b]} in world {b}; choose labels that every "
            "world has as often"
        )
    return ids[np.argsort(worlds, kind="stable")].reshape(len(present), -1), present


def members(
    model, ids: np.ndarray, options: dict, loops: bool, homogeneous: bool
) -> tuple[dict[str, Found], list | None]:
    """Joints, dofs, coordinates, links (bodies) and shapes of articulations, and the places of each link's shapes.

    Args:
        model: the model.
        ids: articulations, ``[world, articulation]``.
        options: patterns of joints and links, and types of joints, by the names of the view's arguments.
        loops: whether joints that close loops are found, too.
        homogeneous: whether articulations must be alike.

    Raises:
        ValueError: articulations differ and must not.
        KeyError, IndexError, TypeError: see :class:`Filter`.
    """
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    all_slots, all_joints, closing = _joints_of(model, ids, loops)
    types = model.joint_type.numpy()[all_joints]
    template = all_slots == 0
    names = [last_part(model.joint_label[j]) for j in all_joints[template]]
    included, excluded = (
        None if (given := options[f"{name}_joint_types"]) is None else np.isin(types[template], _types(given))
        for name in ("include", "exclude")
    )
    chosen = Filter(names, options["include_joints"], options["exclude_joints"], "joints", included, excluded)
    children = model.joint_child.numpy()[all_joints[~closing]]
    names = [last_part(model.body_label[b]) for b in children[template[~closing]]]
    carried = Filter(names, options["include_links"], options["exclude_links"], "links")
    if homogeneous:
        joints = gathered(model, ids, all_slots, None, all_joints, "joints")
        if joints.rows is None:
            refuse(joints.reason)
        built = np.concatenate([types[:, None], model.joint_dof_dim.numpy()[all_joints]], axis=1)
        _demand_equal(model, ids, built, "joint types")

    slots, joints, ranks = chosen(all_slots, all_joints, ids.size)
    found = {"joint": gathered(model, ids, slots, None, joints, "joints")}
    for kind, start, what in (("dof", qd_start, "dofs"), ("coord", q_start, "coordinates")):
        of_joint, rows = ranges(start[joints], start[joints + 1] - start[joints])
        owners = None if homogeneous else ranks[of_joint]  # equal joints have equal numbers of dofs
        found[kind] = gathered(model, ids, slots[of_joint], owners, rows, what, "joints")
    slots, links, ranks = carried(all_slots[~closing] if loops else all_slots, children, ids.size)
    found["body"] = gathered(model, ids, slots, None, links, "links")
    found["shape"], link_shapes = _shapes_of(model, ids, slots, ranks, links)
    if homogeneous and found["shape"].rows is None:
        refuse(found["shape"].reason)
    return found, link_shapes if found["body"].rows is not None else None


def custom_members(model, ids: np.ndarray, homogeneous: bool) -> dict[str, Found]:
    """Entities of the custom frequencies whose rows belong to articulations, by the keys of these.

    Raises:
        ValueError: articulations have different numbers of them and must not.
    """
    slot_of, result = _slots(model, ids), {}
    for key, owners in model.custom_frequency_articulation.items():
        slots = slot_of[owners.numpy()]
        rows = np.argsort(slots, kind="stable")[np.count_nonzero(slots < 0) :]
        found = gathered(model, ids, slots[rows], None, rows, f"entities of the custom frequency {key!r}")
        if homogeneous and found.rows is None:
            refuse(found.reason)
        result[key] = found
    return result


def _slots(model, ids: np.ndarray) -> np.ndarray:
    """Slot of each articulation of the model, -1 for those that are not chosen, and for the index -1."""
    slot_of = np.full(model.articulation_count + 1, -1)
    slot_of[ids.ravel()] = np.arange(ids.size)
    return slot_of


def last_part(label: str) -> str:
    """What is behind the last slash."""
    return label.rpartition("/")[2]


def _joints_of(model, ids: np.ndarray, loops: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joints of every articulation in the order of the model: their slots, their indices, and whether they close loops.

    Args:
        model: the model.
        ids: articulations, ``[world, articulation]``.
        loops: whether joints that belong to no articulation are found, too, in that of their child.
    """
    start = model.articulation_start.numpy()[ids.ravel()]
    slots, joints = ranges(start, model.articulation_end.numpy()[ids.ravel()] - start)
    if not loops:
        return slots, joints, np.zeros(len(joints), dtype=bool)
    slot_of = _slots(model, ids)
    child, owner = model.joint_child.numpy(), model.joint_articulation.numpy()
    carrier = np.full(model.body_count, -1)
    carrier[child[owner >= 0]] = owner[owner >= 0]
    loose = np.flatnonzero(owner < 0)
    holder = slot_of[carrier[child[loose]]]
    slots, joints = np.append(slots, holder[holder >= 0]), np.append(joints, loose[holder >= 0])
    order = np.lexsort((joints, slots))
    return slots[order], joints[order], owner[joints[order]] < 0


def _shapes_of(model, ids: np.ndarray, slots, owners, links) -> tuple[Found, list[list[int]] | None]:
    """Shapes of links in the order that those of the first articulation have in the model, and the places of each link's shapes.

    Args:
        model: the model.
        ids: articulations, ``[world, articulation]``.
        slots, owners, links: of each link its slot, its place in the view, and its index.
    """
    body = model.shape_body.numpy()
    order = np.argsort(body, kind="stable")  # those of the world, -1, come first
    ends = np.cumsum(np.bincount(body + 1, minlength=model.body_count + 1))
    of_link, at = ranges(ends[links], ends[links + 1] - ends[links])
    found = gathered(model, ids, slots[of_link], owners[of_link], order[at], "shapes", "links")
    if found.rows is None:
        return found, None
    sequence = np.argsort(found.rows[0, 0], kind="stable")
    found.rows = found.rows[..., sequence]
    owner = owners[of_link][: found.count][sequence]
    return found, [np.flatnonzero(owner == i).tolist() for i in range(np.count_nonzero(slots == 0))]


def gathered(
    model, ids: np.ndarray, slots: np.ndarray, owners: np.ndarray | None, rows: np.ndarray, what: str, whose: str = ""
) -> Found:
    """Entries as ``[world, articulation, entry]``, where all articulations have as many, and of the same owners.

    Args:
        model: the model.
        ids: articulations, ``[world, articulation]``.
        slots, owners, rows: of each entry its slot (ascending), what in the articulation it belongs to, and its row; no owners: only the
            numbers of entries are compared.
        what: how entries are called.
        whose: how owners are called.
    """
    counts = np.bincount(slots, minlength=ids.size)
    if np.any(counts != counts[0]):
        return Found(None, None, _difference(model, ids, counts != counts[0], f"numbers of {what}"))
    n = int(counts[0])
    if owners is not None:
        owners = owners.reshape(ids.size, n)
        wrong = np.any(owners != owners[0], axis=1)
        if wrong.any():
            return Found(n, None, _difference(model, ids, wrong, f"numbers of {what} of their {whose}"))
    return Found(n, rows.reshape(*ids.shape, n))


def _demand_equal(model, ids: np.ndarray, values: np.ndarray, what: str) -> None:
    """Raises ValueError where articulations differ in some values, those of each in one row after the other."""
    values = values.reshape(ids.size, -1)
    wrong = np.any(values != values[0], axis=1)
    if wrong.any():
        refuse(_difference(model, ids, wrong, what))


def refuse(reason: str) -> None:
    """Raises ValueError: articulations of a homogeneous view differ."""
    raise ValueError(
        f"{reason}; a view holds articulations that are built alike: choose them by another pattern, or give homogeneous=False for "
        "that part of their data in which they agree"
    )


def _difference(model, ids: np.ndarray, wrong: np.ndarray, what: str) -> str:
    a, b = int(ids.flat[0]), int(ids.flat[np.argmax(wrong)])
    return (
        f"articulations '{model.articulation_label[a]}' (index {a}) and '{model.articulation_label[b]}' (index {b}) have "
        f"different {what}"
    )


def ranges(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The integers ``start .. start + count - 1`` of each pair, one after the other: their pairs, and they themselves."""
    pairs = np.repeat(np.arange(len(counts)), counts)
    return pairs, np.arange(len(pairs)) + np.repeat(starts - np.cumsum(counts) + counts, counts)


def _places(slots: np.ndarray, size: int) -> np.ndarray:
    """Place of each entry among those of its articulation; slots ascend and are below `size`."""
    counts = np.bincount(slots, minlength=size)
    return np.arange(len(slots)) - np.repeat(np.cumsum(counts) - counts, counts)


class Filter:
    """Which places of an articulation a view keeps, found in the first one.

    Attributes:
        kept: bools, one for each place of the first articulation.
    """

    def __init__(self, names: list[str], include, exclude, kind: str, included=None, excluded=None):
        """Reads patterns.

        Args:
            names: of all places.
            include, exclude: patterns of names; None: none is given.
            kind: how places are called, in the plural.
            included, excluded: bools of further places; None: none are given.
        """
        self._open = all(given is None for given in (include, exclude, included, excluded))
        self.kept = np.full(len(names), include is None and included is None)
        if include is not None:
            self.kept[matches(include, names, f"include_{kind}", kind[:-1])] = True
        if included is not None:
            self.kept |= included
        if exclude is not None:
            self.kept[matches(exclude, names, f"exclude_{kind}", kind[:-1])] = False
        if excluded is not None:
            self.kept &= ~excluded
        self._ranks = np.cumsum(self.kept) - 1

    def __call__(self, slots: np.ndarray, entries: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The entries that are kept: their slots, they themselves, and their places in the view.

        Without patterns all are kept, also those at places that the first articulation does not have.
        """
        at = _places(slots, size)
        if self._open:
            return slots, entries, at
        inside = np.minimum(at, len(self.kept) - 1)
        kept = self.kept[inside] & (at < len(self.kept))
        return slots[kept], entries[kept], self._ranks[inside][kept]


def _types(kinds) -> list[int]:
    return [int(JointType(kind)) for kind in np.atleast_1d(np.asarray(kinds, dtype=np.int64)).tolist()]
