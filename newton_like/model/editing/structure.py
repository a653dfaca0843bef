"""The structure of a model, which is fixed from ``finalize`` on: joint types, which bodies joints connect, and where numbers start.

Batches, kernels and tables are made for the structure. Edits of these arrays would have no effect, or a wrong one.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from newton_like.model.editing.fingerprints import Accepted
from newton_like.types import JointType, ModelFlags

_MAIN = ("joint_type", "joint_parent", "joint_child")
_ARRAYS = {
    *_MAIN, "joint_ancestor", "joint_articulation", "joint_dof_dim", "joint_q_start", "joint_qd_start", "joint_mimic_joint", "joint_world",
    "articulation_start", "articulation_end", "articulation_world", "body_world", "shape_body", "shape_world",
}  # fmt: skip
_ALL, _JOINTS, _SHAPES = (
    int(flag) for flag in (ModelFlags.ALL, ModelFlags.JOINT_PROPERTIES, ModelFlags.SHAPE_PROPERTIES)
)
_ENUMS: dict[str, type[IntEnum]] = {"joint_type": JointType}


def keep_structure(model) -> None:
    """Keeps copies of the arrays of structure on the host, for :func:`check_structure`."""
    model._structure = {name: getattr(model, name).numpy().copy() for name in sorted(_ARRAYS)}


def check_structure(model, flags: int) -> None:
    """Raises ValueError if an array of structure was edited. ``ModelFlags.ALL`` checks all of them. On a CPU, ``JOINT_PROPERTIES`` checks
    types, parents and children of joints, and ``SHAPE_PROPERTIES`` the bodies of shapes. On a GPU these two check nothing, because the
    arrays would be copied to the host."""
    kept = model._structure
    if kept is None:
        return
    names: tuple = ()
    if flags == _ALL:
        names = tuple(kept)
    elif model.device.is_cpu:
        names = _MAIN if flags & _JOINTS else ()
        names += ("shape_body",) if flags & _SHAPES else ()
    if not names:
        return
    if model._accepted is None:
        model._accepted = {}
    accepted = model._accepted.get(names)
    if accepted is None:
        accepted = model._accepted[names] = Accepted()
    if accepted.known([getattr(model, name) for name in names]):
        return
    for name in names:
        now, before = getattr(model, name).numpy(), kept[name]
        if now.shape != before.shape or not (now == before).all():
            _refuse(model, name, now, before)
    accepted.accept()


def _refuse(model, name: str, now: np.ndarray, before: np.ndarray) -> None:
    cure = "the structure of a model is fixed; change the builder and finalize it again"
    if now.shape != before.shape:
        raise ValueError(f"model.{name} has shape {now.shape}, and had {before.shape} at finalize; {cure}")
    i = int(np.flatnonzero((now != before).reshape(len(now), -1).any(axis=1))[0])
    kind = name.split("_")[0]
    labels = getattr(model, f"{kind}_label")
    entity = f"{kind} '{labels[i]}' (index {i}): " if i < len(labels) else ""
    old, new = (_text(name, array[i]) for array in (before, now))
    raise ValueError(f"{entity}{name} was {old} at finalize, and is {new} now; {cure}")


def _text(name: str, value) -> str:
    enum = _ENUMS.get(name)
    if enum is not None and int(value) in list(enum):
        return enum(int(value)).name
    return str(value.tolist())
