"""Ranges of the sum of the forces of all actuators of a joint or tendon (``actuatorfrcrange``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from newton_like.importers.mjcf.actuation.actuators import DATA_ONLY, Actuator
from newton_like.importers.mjcf.records import Joint, Mjcf
from newton_like.model.mujoco.contact_settings import NAMESPACE
from newton_like.model.mujoco.effort_settings import declare_effort_settings
from newton_like.types import MAXVAL


@dataclass(frozen=True)
class Sums:
    """Joints and tendons whose range has to hold for a sum of several forces, by name.

    Attributes:
        joints: these joints.
        weights: those of them whose range has to hold for the compensation of weight, too (``actuatorgravcomp``).
        tendons: these tendons.
    """

    joints: frozenset[str]
    weights: frozenset[str]
    tendons: frozenset[str]


def find_sums(model: Mjcf, actuators: list[Actuator], tendons: Iterable, names: dict[str, dict]) -> Sums:
    """Finds the joints and tendons with sums of forces in a range. A drive has one range for all its actuators: it is taken from those that
    have a range of their own, or pull a tendon that is limited or moves such a joint. They become actuators of the builder.

    Args:
        model: the model.
        actuators: its actuators, which know their drives.
        tendons: records of its tendons, see `newton_like.importers.mjcf.constraints.TendonRecord`.
        names: records of the model, by kind and name.
    """
    records = {record.name: record for record in tendons}
    _bound_motors(actuators, names["joint"])
    of_joint, of_tendon = _by_target(actuators, "joint"), _by_target(actuators, "tendon")
    moved = {
        id(a): _moved(a, model, records, names)
        for a in actuators
        if a.kind not in DATA_ONLY and a.transmission in ("site", "slidersite", "tendon")
    }
    afar = frozenset().union(*moved.values())
    limited = {joint.name: joint for body in model.bodies for joint in body.joints if joint.effort is not None}
    limited = {name: joint for name, joint in limited.items() if joint.kind in ("hinge", "slide")}
    lifted = any(body.gravcomp for body in model.bodies)
    weights = {
        name for name, joint in limited.items() if lifted and joint.element.get("actuatorgravcomp", "false") == "true"
    }
    joints = {name for name, joint in limited.items() if _adds_up(of_joint.get(name, ()), joint.effort)}
    joints |= weights | (limited.keys() & afar)
    pulled = {
        name
        for name, own in of_tendon.items()
        if records[name].values["effort"] and _adds_up(own, records[name].values["effort"])
    }
    for actuator in actuators:
        if actuator.transmission == "tendon":
            alone = actuator.target not in pulled and not joints & moved.get(id(actuator), frozenset())
        else:
            alone = actuator.forcerange is None or actuator.target not in of_joint.keys() & joints
        if not alone:
            release(actuator)
    several = {name for name, own in of_tendon.items() if len(own) > 1 and not any(a.drive for a in own)}
    return Sums(frozenset(joints), frozenset(weights), frozenset(several & records.keys()))


def _bound_motors(actuators: list[Actuator], joints: dict[str, Joint]) -> None:
    """Makes motors that share a joint with servos part of the drive, where the joint has a range: that of a drive with gains bounds
    ``joint_act``, and not ``joint_f``. Those with an activation, which have no such entry, become actuators of the builder."""
    for name, own in _by_target(actuators, "joint").items():
        if joints[name].effort is None or all(a.drive in (None, "joint_f") for a in own):
            continue
        for actuator in own:
            if actuator.drive == "joint_f" and actuator.activated:
                release(actuator)
            elif actuator.drive == "joint_f":
                actuator.drive = "joint_act"


def _by_target(actuators: list[Actuator], kind: str) -> dict[str, list[Actuator]]:
    """Actuators that act on joints or tendons, by the names of these."""
    found: dict[str, list[Actuator]] = {}
    for actuator in actuators:
        if actuator.transmission.startswith(kind) and actuator.kind not in DATA_ONLY:
            found.setdefault(actuator.target, []).append(actuator)
    return found


def _adds_up(own: Iterable[Actuator], most: tuple[float, float]) -> bool:
    """Whether a range holds for a sum of forces that no drive has: of several actuators, one of which is no drive or has a range or a
    gear of its own, or in a range that is not symmetric."""
    own = list(own)
    if len(own) < 2:
        return False
    drives = all(a.drive is not None and a.forcerange is None for a in own)
    gears = {abs(a.gear[0]) for a in own} if own[0].transmission == "tendon" else {1.0}
    return not drives or len(gears) > 1 or most[0] != -most[1]


def release(actuator: Actuator) -> None:
    """Takes the drive from an actuator, which becomes one of the builder."""
    actuator.drive, actuator.factor, actuator.offset = None, 0.0, 0.0


def effort_limit(joint: Joint, sums: Sums, drive) -> dict[str, float]:
    """The setting of the effort limit of a joint, if there is one; `drive`: its drive, or ``None``."""
    if joint.name in sums.joints:
        return {"effort_limit": 0.5 * (joint.effort[1] - joint.effort[0])}
    most = drive.effort if drive is not None else joint.effort and max(map(abs, joint.effort))
    return {} if most is None else {"effort_limit": most if drive is None else min(most, MAXVAL)}


def give_ranges(builder, sums: Sums, joints: dict[str, Joint], dofs: dict[str, int]) -> None:
    """Gives the degrees of freedom of a builder these ranges.

    Args:
        builder: the builder.
        sums: what :func:`find_sums` found.
        joints: joints by name.
        dofs: degrees of freedom by the names of joints.
    """
    found = sorted(sums.joints & dofs.keys())
    if not found:
        return
    declare_effort_settings(builder)
    values = [
        builder.custom_attributes[f"{NAMESPACE}:{name}"].values
        for name in ("effort_rules", "effort_middle", "jnt_actgravcomp")
    ]
    rules, middles, weights = values
    for name in found:
        rules[dofs[name]] = 1
        if name in sums.weights:
            weights[dofs[name]] = 1
        middle = 0.5 * sum(joints[name].effort)
        if middle != 0.0:
            middles[dofs[name]] = middle


def _moved(actuator: Actuator, model: Mjcf, records: dict, names: dict[str, dict]) -> set[str]:
    """Names of the joints that change the length of the transmission of an actuator on sites or a tendon."""
    record = records.get(actuator.target) if actuator.transmission == "tendon" else None
    if record is not None and not record.path:
        return {name for name, _ in record.joints}
    if record is None:
        sites = [actuator.target, actuator.reference or actuator.crank]
    else:
        sites = [entry[1] for entry in record.path if entry[0] == "site"]
    chains = [_chain(model, names["site"][name].body) if name else frozenset() for name in sites]
    moved = frozenset().union(*chains) - frozenset.intersection(*chains)
    return {joint.name for k in moved for joint in model.bodies[k].joints}


def _chain(model: Mjcf, body: int) -> frozenset[int]:
    """A body and the bodies that carry it."""
    found = set()
    while body > 0:
        found.add(body)
        body = model.bodies[body].parent
    return frozenset(found)
