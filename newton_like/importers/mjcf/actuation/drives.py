"""Drives of joints and tendons that linear actuators of MJCF become, and which of these actuators keep a range of forces of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from newton_like.importers.mjcf.actuation.actuators import Actuator
from newton_like.importers.mjcf.actuation.ranges import release
from newton_like.importers.mjcf.records import Mjcf

_LARGER = "force limits are not symmetric; the larger one is used in both directions"


@dataclass
class Drive:
    """The drive of one joint axis or tendon: all its actuators together, ``ke (target_q - q) + kd (target_qd - qd) + f``.

    Attributes:
        mode: ``POSITION``, ``VELOCITY``, ``POSITION_VELOCITY`` or ``EFFORT``.
        effort: largest force, or ``None``.
        target_q, target_qd, force, feedforward: values at control 0, or at the nearest control in its range.
    """

    mode: str
    ke: float = 0.0
    kd: float = 0.0
    effort: float | None = None
    target_q: float = 0.0
    target_qd: float = 0.0
    force: float = 0.0
    feedforward: float = 0.0


def drives_of(
    actuators: list[Actuator],
    efforts: dict[str, dict[str, tuple | None]],
    model: Mjcf,
    controls: Sequence[float] | None = None,
) -> dict[str, dict[str, Drive]]:
    """The drives of joints and of tendons, by name. Scales the factors and offsets of actuators that share a drive, and takes the drive
    from those that have a range of forces of their own beside others, or one that is not symmetric.

    Args:
        actuators: actuators of the model.
        efforts: smallest and largest force of all actuators of a joint or tendon together, or ``None``, by name; of ``"joint"`` and
            ``"tendon"``.
        model: the model.
        controls: one for each actuator, or ``None``.
    """
    groups: dict[tuple[str, str], list[Actuator]] = {}
    for actuator in actuators:
        if actuator.drive is not None:
            groups.setdefault((actuator.drive.partition("_")[0], actuator.target), []).append(actuator)
    given = {id(a): value for a, value in zip(actuators, controls or (), strict=False)}
    drives: dict[str, dict[str, Drive]] = {"joint": {}, "tendon": {}}
    for (kind, name), group in groups.items():
        most = efforts[kind][name]
        if len(group) > 1 and most is None:
            group = _unlimited(group)
        elif len(group) == 1 and _is_lopsided(group[0], most):
            release(group[0])
            group = []
        elif kind == "tendon" and most is not None:
            most = tuple(sorted(group[0].gear[0] * force for force in most))
        if group:
            drives[kind][name] = _joined(name, group, most, model, given, f"{kind}s")
    return drives


def _unlimited(group: list[Actuator]) -> list[Actuator]:
    """Those without a range of forces. A drive has one range for all; the others become actuators of the builder."""
    for actuator in group:
        if actuator.forcerange is not None:
            release(actuator)
    return [actuator for actuator in group if actuator.drive is not None]


def _is_lopsided(actuator: Actuator, most: tuple[float, float] | None) -> bool:
    """Whether a range of its forces is not symmetric, and its forces can leave this range: the range of a drive is symmetric.

    Args:
        actuator: an actuator that has a joint or tendon for itself.
        most: smallest and largest force of the joint, or of the tendon before gears, or ``None``.
    """
    gear = actuator.gear[0]
    forces = None
    if actuator.drive.endswith("_f") and actuator.ctrlrange is not None and not actuator.activated:
        forces = [(actuator.factor * ctrl + actuator.offset) / gear for ctrl in actuator.ctrlrange]
    before = most if actuator.transmission == "tendon" or most is None else tuple(sorted(x / gear for x in most))
    for low, high in filter(None, (actuator.forcerange, before)):
        inside = forces is not None and low <= min(forces) and max(forces) <= high
        if low != -high and not inside:
            return True
    return False


def _joined(name: str, group: list[Actuator], most, model: Mjcf, controls: dict[int, float], what: str) -> Drive:
    used = {actuator.drive.partition("_")[2] for actuator in group}
    modes = (("POSITION", "target_q"), ("VELOCITY", "target_qd"))
    drive = Drive("_".join(mode for mode, target in modes if target in used) or "EFFORT")
    stiffness = {id(a): -a.bias[1][1] * a.gear[0] ** 2 if a.bias[0] == "affine" else 0.0 for a in group}
    damping = {id(a): -a.bias[1][2] * a.gear[0] ** 2 if a.bias[0] == "affine" else 0.0 for a in group}
    drive.ke, drive.kd = sum(stiffness.values()), sum(damping.values())
    efforts = []
    for actuator in group:
        ctrl = controls.get(id(actuator), 0.0)
        if actuator.ctrlrange:
            ctrl = min(max(ctrl, actuator.ctrlrange[0]), actuator.ctrlrange[1])
        share, target = 1.0, "force"
        if actuator.drive.endswith("target_q"):
            share, target = stiffness[id(actuator)] / drive.ke, "target_q"
        elif actuator.drive.endswith("target_qd"):
            share, target = damping[id(actuator)] / drive.kd, "target_qd"
        elif actuator.drive == "joint_act":
            target = "feedforward"
        actuator.factor, actuator.offset = share * actuator.factor, share * actuator.offset
        if actuator.activated:
            efforts.append(_effort(actuator, model, len(group) > 1))
            continue
        setattr(drive, target, getattr(drive, target) + (actuator.factor * ctrl + actuator.offset))
        efforts.append(_effort(actuator, model, len(group) > 1))
    if sum(not actuator.activated for actuator in group) > 1:
        model.findings.remark(f"{what} have several actuators, which are combined into one drive", name)
    if None not in efforts:
        drive.effort = sum(efforts)
    if most is not None:
        most = max(map(abs, most))
        drive.effort = most if drive.effort is None else min(drive.effort, most)
    return drive


def _effort(actuator: Actuator, model: Mjcf, shares: bool) -> float | None:
    """The largest force of an actuator, after gears. Alone, it stays within both ends of its range, see :func:`_is_lopsided`."""
    gear = abs(actuator.gear[0])
    if actuator.forcerange is not None:
        low, high = actuator.forcerange
        if low != -high and shares:
            model.findings.remark(_LARGER, actuator.name)
        return gear * max(abs(low), abs(high))
    if actuator.drive.endswith("_f") and actuator.ctrlrange is not None and not actuator.activated:
        return max(abs(actuator.factor * ctrl + actuator.offset) for ctrl in actuator.ctrlrange)
    return None
