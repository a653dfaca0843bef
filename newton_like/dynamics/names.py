"""Names and indices of the links, joints and frames of articulations.

Links and joints of an articulation are numbered from the root to the leaves; joint i moves link i. Results of `newton_like.dynamics`
have their rows in this order, which is the same for all articulations of one shape. Frames are the sites of an articulation's links
(:meth:`ModelBuilder.add_site`), followed by the links that were merged into others by collapsing fixed joints (``model.frames``). A name
that a site and a merged link share refers to the site.

A name is a label, or the part of a label after a slash: ``"base"`` finds ``"robot_3/base"`` if no other label of the articulation ends in
``"/base"``.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from newton_like.coercion import as_index, as_list
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.types import ShapeFlags


class Names:
    """Labels of every articulation of a model, for one version of the model.

    Attributes:
        start, count: first joint, and number of joints, of each articulation.
        child: body that each joint of the model moves.
        articulation, link: articulation and link index of every body; -1 for bodies outside of articulations.
    """

    def __init__(self, model):
        self.model_labels = {"joint": model.joint_label, "link": model.body_label}
        model.frames.check(model.body_count, model.articulation_count)
        # a copy, so that labels and poses stay those of one version
        self.shape_label, self.frames = model.shape_label, model.frames.copy()
        self.version = model.version
        self.start = model.articulation_start.numpy()[: model.articulation_count].astype(int)
        self.count = model.articulation_end.numpy().astype(int) - self.start
        self.child = model.joint_child.numpy().astype(int)
        site = (model.shape_flags.numpy() & int(ShapeFlags.SITE)) != 0
        body = model.shape_body.numpy()
        self.articulation, self.link = np.full(model.body_count, -1), np.full(model.body_count, -1)
        for a, (s, n) in enumerate(zip(self.start, self.count, strict=True)):
            self.articulation[self.child[s : s + n]] = a
            self.link[self.child[s : s + n]] = np.arange(n)
        # indices of frames: the shape index of a site, or shape_count + the index of a merged link
        sites = np.flatnonzero(site & (body >= 0))
        frames = np.concatenate([sites, model.shape_count + np.arange(len(self.frames))])
        carrier = np.concatenate([body[sites], self.frames.body])
        owner = np.concatenate([np.full(len(sites), -1), self.frames.articulation])
        carried = carrier >= 0
        owner[carried] = self.articulation[carrier[carried]]
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0]
        self.frame_at, carrier = frames[order], carrier[order]
        self.frame_link = np.where(carrier >= 0, self.link[carrier], -1)
        self.frame_start = np.searchsorted(owner[order], np.arange(len(self.start) + 1))
        self._found: dict = {}

    @cached_property
    def labels(self) -> dict[str, list[tuple[str, ...]]]:
        """Labels of the joints, links and frames of each articulation."""
        return {kind: [self._of(kind, a) for a in range(len(self.start))] for kind in ("joint", "link", "frame")}

    def _of(self, kind: str, a: int) -> tuple[str, ...]:
        joints = slice(self.start[a], self.start[a] + self.count[a])
        if kind == "joint":
            return tuple(self.model_labels["joint"][joints])
        if kind == "link":
            return tuple(self.model_labels["link"][i] for i in self.child[joints])
        shapes, merged = self.shape_label, self.frames.label
        at = self.frame_at[self.frame_start[a] : self.frame_start[a + 1]].tolist()
        return tuple(shapes[i] if i < len(shapes) else merged[i - len(shapes)] for i in at)

    def frame_poses(self, model, indices) -> np.ndarray:
        """Poses of frames in their links, ``[..., 7]``, from their indices among the frames of all articulations."""
        at = self.frame_at[indices]
        merged = at >= len(self.shape_label)
        poses = np.empty((*at.shape, 7))
        poses[~merged] = model.shape_transform.numpy()[at[~merged]]
        poses[merged] = self.frames.transform[at[merged] - len(self.shape_label)]
        return poses

    def matches(self, kind: str, name: str, a: int) -> tuple[int, ...]:
        """Indices of the joints, links or frames of an articulation that a name may mean."""
        labels = self.labels[kind][a]
        key = (labels, name)
        if key not in self._found:
            whole = tuple(i for i, label in enumerate(labels) if label == name)
            self._found[key] = whole or tuple(i for i, label in enumerate(labels) if label.endswith(f"/{name}"))
        return self._found[key]

    def only(self, kind: str, name: str, a: int) -> int | None:
        """Index of the joint, link or frame of an articulation with that name; None if there is none.

        Raises:
            ValueError: the name is ambiguous.
        """
        found = self.matches(kind, name, a)
        if len(found) > 1 and kind == "frame":
            sites = tuple(i for i in found if self.frame_at[self.frame_start[a] + i] < len(self.shape_label))
            found = sites or found
        if len(found) > 1:
            raise ValueError(f"{kind} {name!r} is ambiguous in articulation {a}: indices {list(found)}; give an index")
        return found[0] if found else None

    def everywhere(self, kind: str, name: str) -> list[int | None]:
        """:meth:`only` for every articulation."""
        return [self.only(kind, name, a) for a in range(len(self.start))]

    def every(self, *kinds: str) -> list[str]:
        """All labels of the given kinds, without duplicates."""
        return [*dict.fromkeys(label for kind in kinds for labels in set(self.labels[kind]) for label in labels)]


_names: WeakKeyDictionary = WeakKeyDictionary()


def names_of(model) -> Names:
    """The labels of a model; computed again after :meth:`Model.notify_changed`.

    Raises:
        ValueError, IndexError, TypeError: ``model.frames`` was edited and does not fit the model, see :meth:`FrameTable.check`.
    """
    names = _names.get(model)
    if names is None or names.version != model.version:
        names = _names[model] = Names(model)
    return names


def as_link_index(index, what: str, count: int) -> int:
    """Checks the index of a joint, link or frame.

    Raises:
        TypeError: not an integer.
        IndexError: not below `count`.
    """
    return as_index(check_name(index, what), what, count)


def check_name(value, what: str):
    """Checks a name or an index. Raises TypeError for other types."""
    if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
        raise TypeError(f"{what} must be a name or an index, not {value!r}")
    return value


def unknown(kind: str, name: str, labels, where: str) -> KeyError:
    """The error for an unknown name."""
    close = get_close_matches(name, [*dict.fromkeys([*labels, *(x.rpartition("/")[2] for x in labels)])], 3, 0.5)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are {_listed(labels)}"
    return KeyError(f"no {kind} {name!r} in {where}; {hint}")


def _listed(labels, most: int = 8) -> str:
    shown = [*labels][:most]
    return ", ".join(map(repr, shown)) + (", ..." if len(labels) > most else "") if shown else "none"


def _labels(model, kind: str, articulation) -> tuple[str, ...]:
    return names_of(model).labels[kind][as_index(articulation, "articulation", model.articulation_count)]


def index_of(model, kind: str, name, articulation: int = 0) -> int:
    """The index of a joint, link or frame of an articulation, from its name or index."""
    labels = _labels(model, kind, articulation)
    if not isinstance(name, str):
        return as_link_index(name, kind, len(labels))
    index = names_of(model).only(kind, name, articulation)
    if index is None:
        raise unknown(kind, name, labels, f"articulation {articulation}")
    return index


def _indices(model, kind: str, names, articulation) -> list[int]:
    if isinstance(names, str):
        raise TypeError(f"names must be a list of names, not the string {names!r}")
    return [index_of(model, kind, name, articulation) for name in as_list(names, "names", "names")]


def _names_at(model, kind: str, indices, articulation) -> list[str]:
    labels = _labels(model, kind, articulation)
    if indices is None:
        return list(labels)
    return [labels[as_index(i, f"{kind} index", len(labels))] for i in as_list(indices, "indices", "integers")]


def link_names(model, indices=None, articulation: int = 0) -> list[str]:
    """Labels of the links of an articulation.

    Args:
        model: the :class:`Model`.
        indices: of which links; all by default.
        articulation: which one; the first by default. All of one shape number their links alike.

    Raises:
        IndexError: an index does not exist.
    """
    return _names_at(model, "link", indices, articulation)


def joint_names(model, indices=None, articulation: int = 0) -> list[str]:
    """Labels of the joints of an articulation; see :func:`link_names`."""
    return _names_at(model, "joint", indices, articulation)


def frame_names(model, indices=None, articulation: int = 0) -> list[str]:
    """Labels of the frames of an articulation: sites, then links that were merged into others; see :func:`link_names`."""
    return _names_at(model, "frame", indices, articulation)


def link_index(model, name: str, articulation: int = 0) -> int:
    """Index of a link among those of its articulation.

    Args:
        model: the :class:`Model`.
        name: its label, or the end of it behind a slash. An index is given back.
        articulation: which one; the first by default.

    Raises:
        KeyError: no link has that name; similar ones are named.
        ValueError: several have it.
        IndexError: an index, or the articulation, does not exist.
    """
    return index_of(model, "link", name, articulation)


def joint_index(model, name: str, articulation: int = 0) -> int:
    """Index of a joint among those of its articulation; see :func:`link_index`."""
    return index_of(model, "joint", name, articulation)


def frame_index(model, name: str, articulation: int = 0) -> int:
    """Index of a frame among those of an articulation, as in :func:`frame_names`; see :func:`link_index`."""
    return index_of(model, "frame", name, articulation)


def link_indices(model, names, articulation: int = 0) -> list[int]:
    """Indices of several links; see :func:`link_index`."""
    return _indices(model, "link", names, articulation)


def joint_indices(model, names, articulation: int = 0) -> list[int]:
    """Indices of several joints; see :func:`link_index`."""
    return _indices(model, "joint", names, articulation)


def frame_indices(model, names, articulation: int = 0) -> list[int]:
    """Indices of several frames; see :func:`link_index`."""
    return _indices(model, "frame", names, articulation)


def link_bodies(model, articulation: int = 0) -> np.ndarray:
    """Indices of the bodies that are the links of an articulation, for arrays such as ``body_mass``, ``[links]``."""
    names, a = names_of(model), as_index(articulation, "articulation", model.articulation_count)
    return names.child[names.start[a] : names.start[a] + names.count[a]].copy()


def frame_link(model, name, articulation: int = 0) -> int:
    """Index of the link of a frame, -1: the world (for a base that was merged into it); see :func:`frame_index`."""
    names, i = names_of(model), index_of(model, "frame", name, articulation)
    return int(names.frame_link[names.frame_start[articulation] + i])


def frame_offset(model, name, articulation: int = 0) -> np.ndarray:
    """Pose of a frame in its link (or the world): position [m] and quaternion x y z w, ``[7]``; see :func:`frame_index`."""
    names, i = names_of(model), index_of(model, "frame", name, articulation)
    return names.frame_poses(model, names.frame_start[articulation] + i)


def base_link(model, articulation: int = 0) -> str:
    """Label of the base link of an articulation: the child of its first joint, the root of the tree of links.

    Args:
        model: the :class:`Model`.
        articulation: which one; the first by default.

    Raises:
        IndexError: the articulation does not exist.
    """
    return _labels(model, "link", articulation)[0]


def is_floating_base(model, articulation: int = 0) -> bool:
    """Whether the base of an articulation floats: its first joint is a FREE or DISTANCE joint on the world; see :func:`base_link`."""
    a = as_index(articulation, "articulation", model.articulation_count)
    joint = names_of(model).start[a]
    kind = JOINT_TYPES[int(model.joint_type.numpy()[joint])]
    return kind.floats and int(model.joint_parent.numpy()[joint]) < 0


def joint_dofs(model, joint, articulation: int = 0) -> slice:
    """Degrees of freedom of a joint among those of its articulation: its columns of Jacobians and dense matrices.

    Args:
        model: the :class:`Model`.
        joint: name or index.
        articulation: which one; the first by default.
    """
    return _span(model, "joint_qd_start", joint, articulation)


def joint_coords(model, joint, articulation: int = 0) -> slice:
    """Coordinates of a joint among those of its articulation; see :func:`joint_dofs`."""
    return _span(model, "joint_q_start", joint, articulation)


def _span(model, array: str, joint, articulation) -> slice:
    i = index_of(model, "joint", joint, articulation)
    starts = getattr(model, array).numpy()
    first = int(names_of(model).start[articulation])
    return slice(int(starts[first + i] - starts[first]), int(starts[first + i + 1] - starts[first]))
