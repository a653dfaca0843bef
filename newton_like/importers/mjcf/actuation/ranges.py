"""Joints whose ``actuatorfrcrange`` does not hold for the forces of all actuators together."""

from __future__ import annotations

from collections.abc import Iterable

from newton_like.importers.mjcf.actuation.actuators import Actuator
from newton_like.importers.mjcf.records import Mjcf

_EXPLICIT = "actuator_ctrl"


def unbounded(model: Mjcf, actuators: Iterable[Actuator], tendons: Iterable, names: dict[str, dict]) -> list[str]:
    """Names of joints with a range for the sum of the forces of actuators, which here limits single forces.

    The drive of a joint keeps within the range, and so does each actuator of the builder on that joint. Their sum may leave it, and so may
    forces of actuators on sites and tendons.

    Args:
        model: the model.
        actuators: its actuators, which know their entries of ``Control``.
        tendons: records of its tendons, see `newton_like.importers.mjcf.constraints.TendonRecord`.
        names: records of the model, by kind and name.
    """
    limited = {joint.name for body in model.bodies for joint in body.joints if joint.effort is not None}
    if not limited:
        return []
    records = {record.name: record for record in tendons}
    own: dict[str, set[str]] = {}
    alone: dict[str, int] = {}
    afar: set[str] = set()
    for actuator in actuators:
        if actuator.drive is None:
            continue
        if actuator.transmission.startswith("joint"):
            own.setdefault(actuator.target, set()).add(actuator.drive)
            alone[actuator.target] = alone.get(actuator.target, 0) + (actuator.drive == _EXPLICIT)
        elif actuator.transmission != "body":
            afar |= _moved(actuator, model, records, names)
    shared = {name for name, arrays in own.items() if _EXPLICIT in arrays and (len(arrays) > 1 or alone[name] > 1)}
    return sorted(limited & (afar | shared))


def relieved(model: Mjcf) -> list[str]:
    """Names of joints with a range that has to hold for the compensation of weight, too (``actuatorgravcomp``)."""
    if not any(body.gravcomp for body in model.bodies):
        return []
    joints = [joint for body in model.bodies for joint in body.joints if joint.effort is not None]
    return sorted(joint.name for joint in joints if joint.element.get("actuatorgravcomp", "false") == "true")


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
