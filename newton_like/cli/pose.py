"""Initial joint positions, keyframes and drive gains from options of the command line."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from newton_like.cli.options import DAMPING_TIME
from newton_like.dynamics.names import unknown
from newton_like.model.joint_types import look_up
from newton_like.types import JointTargetMode


def prepare(builder, report, args) -> list[str]:
    """Applies the options to a builder, and returns remarks.

    Args:
        builder: the builder with the imported scene.
        report: the importer's report.
        args: options with ``keyframe``, ``joint_positions``, ``stiffness`` and ``damping``.

    Raises:
        KeyError: no joint has the name; the message lists similar names.
        ValueError: a joint has another number of coordinates, or no coordinates that can be set.
    """
    remarks = _keyframe(report, args.keyframe) if args.keyframe is not None else []
    held = set()
    for name, values in _all(args.joint_positions):
        held |= _position(builder, name, values)
    stiff = _gain(builder, "joint_target_ke", "--stiffness", _all(args.stiffness))
    damped = _gain(builder, "joint_target_kd", "--damping", _all(args.damping))
    for joint in stiff | damped:
        for dof in _dofs(builder, joint):
            if joint not in damped and not builder.joint_target_kd[dof]:
                builder.joint_target_kd[dof] = DAMPING_TIME * builder.joint_target_ke[dof]
            mode = JointTargetMode.POSITION if builder.joint_target_ke[dof] else JointTargetMode.VELOCITY
            builder.joint_target_mode[dof] = int(mode)
    for joint in held | stiff:
        coords = _coords(builder, joint)
        builder.joint_target_q[coords] = builder.joint_q[coords]
    for joint in held:
        remarks += _outside(builder, joint)
    return remarks


def _all(options: list | None) -> list:
    return [pair for option in options or [] for pair in option]


def _keyframe(report, wanted: str) -> list[str]:
    """A remark on the part of a keyframe that is not used. The importer has set positions and controls."""
    key = next(k for i, k in enumerate(report.keyframes) if wanted in (k.name, str(i)))
    if key.qvel is not None and np.any(key.qvel):
        return [f"the velocities of keyframe '{key.name}' are not used; the simulation starts at rest"]
    return []


def _coords(builder, joint: int) -> slice:
    return _span(builder.joint_q_start, joint, len(builder.joint_q))


def _dofs(builder, joint: int) -> range:
    part = _span(builder.joint_qd_start, joint, len(builder.joint_qd))
    return range(part.start, part.stop)


def _span(starts: list[int], joint: int, count: int) -> slice:
    return slice(starts[joint], starts[joint + 1] if joint + 1 < len(starts) else count)


def _floats(builder, joint: int) -> bool:
    return bool(look_up(np.array([builder.joint_type[joint]]), "floats")[0]) and builder.joint_parent[joint] < 0


def _driven(builder) -> list[int]:
    """Joints that a drive can move: all except fixed joints, floating bases, mimic joints and loop joints."""
    return [
        j for j in range(len(builder.joint_label))
        if len(_dofs(builder, j)) and not _floats(builder, j) and builder.joint_mimic_joint[j] < 0
        and builder.joint_articulation[j] >= 0
    ]  # fmt: skip


def _named(builder, name: str) -> list[int]:
    """Joints whose label, or its part after the last slash, equals a name. If there are none: joints that a drive can move and whose label
    matches the name as a pattern with wildcards.

    Raises:
        KeyError: no joint matches.
    """
    labels = builder.joint_label
    moving = [j for j in range(len(labels)) if len(_dofs(builder, j))]
    found = [j for j in moving if labels[j] == name or labels[j].endswith(f"/{name}")]
    found = found or [
        j for j in _driven(builder) if fnmatchcase(labels[j], name) or fnmatchcase(labels[j].rpartition("/")[2], name)
    ]
    if not found:
        raise unknown("joint", name, [labels[j] for j in moving], "the file")
    return found


def _position(builder, name: str | None, values: list[float]) -> set[int]:
    if name is None:
        joints = _driven(builder)
        count = sum(_coords(builder, j).stop - _coords(builder, j).start for j in joints)
        if len(values) != count:
            labels = ", ".join(builder.joint_label[j].rpartition("/")[2] for j in joints)
            raise ValueError(
                f"--joint-positions has {len(values)} numbers, but the joints have {count} coordinates ({labels})"
            )
        numbers = iter(values)
        for j in joints:
            part = _coords(builder, j)
            builder.joint_q[part] = [next(numbers) for _ in range(part.start, part.stop)]
        return set(joints)
    joints = _named(builder, name)
    for j in joints:
        part = _coords(builder, j)
        if len(values) != part.stop - part.start:
            raise ValueError(
                f"--joint-positions: joint '{builder.joint_label[j]}' has {part.stop - part.start} coordinates, not {len(values)}"
            )
        builder.joint_q[part] = values
    return set(joints)


def _gain(builder, column: str, option: str, pairs) -> set[int]:
    found = set()
    for name, (value,) in pairs:
        joints = _driven(builder) if name is None else _named(builder, name)
        if not joints:
            raise ValueError(f"{option}: the file has no joint that can have a drive")
        for j in joints:
            for dof in _dofs(builder, j):
                getattr(builder, column)[dof] = value
        found.update(joints)
    return found


def _outside(builder, joint: int) -> list[str]:
    """A remark on a joint that starts outside of its limits."""
    dofs, part = _dofs(builder, joint), _coords(builder, joint)
    if part.stop - part.start != len(dofs):
        return []
    values = np.array(builder.joint_q[part])
    low, high = (np.array(getattr(builder, f"joint_limit_{end}")[dofs.start : dofs.stop]) for end in ("lower", "upper"))
    return [
        f"joint '{builder.joint_label[joint]}' starts at {value:g}, outside of its limits {a:g} to {b:g}"
        for value, a, b in zip(values, low, high, strict=True)
        if not a <= value <= b
    ]
