"""Parses the motors of joints in URDF files: transmissions, and the soft limits of safety controllers.

Formats: http://wiki.ros.org/urdf/XML/Transmission, http://wiki.ros.org/pr2_controller_manager/safety_limits. This file
does not use the model builder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from newton_like.coercion import as_number
from newton_like.importers.xml_source import ImportFileError, XmlElement

_KNOWN = {
    "transmission": {"type", "joint", "actuator", "mechanicalReduction"},
    "joint": {"hardwareInterface", "mechanicalReduction", "offset", "role"},
    "actuator": {"hardwareInterface", "mechanicalReduction", "role", "drake:gear_ratio", "drake:rotor_inertia"},
}
_ATTRIBUTES = {
    "transmission": {"name", "type"},
    "joint": {"name"},
    "actuator": {"name"},
    "drake:gear_ratio": {"value"},
    "drake:rotor_inertia": {"value"},
}
_TEXTS = {"type", "hardwareInterface", "mechanicalReduction", "offset", "role"}


@dataclass(frozen=True)
class TransmissionEnd:
    """A joint or an actuator of a transmission.

    Attributes:
        name: as in the file.
        reduction: ``mechanicalReduction`` at this end; 1 if the file has none. An actuator's ``drake:gear_ratio``
            has precedence.
        offset: position of the joint for actuator position 0 [rad or m].
        role: role in a transmission with several joints (``joint1``), or "".
        interfaces: hardware interfaces, as in the file.
        rotor_inertia: inertia of an actuator about its own axis [kg m^2] (``drake:rotor_inertia``); 0 if the file
            has none.
    """

    name: str
    reduction: float = 1.0
    offset: float = 0.0
    role: str = ""
    interfaces: tuple[str, ...] = ()
    rotor_inertia: float = 0.0


@dataclass(frozen=True)
class Transmission:
    """A transmission between actuators and joints. Limits of joints, including efforts, do not apply to actuators.

    Attributes:
        name: as in the file.
        type: ``"SimpleTransmission"`` and so on, the part after the last ``/``.
        joints, actuators: the ends.
    """

    name: str
    type: str
    joints: tuple[TransmissionEnd, ...]
    actuators: tuple[TransmissionEnd, ...]

    @property
    def simple(self) -> bool:
        """Whether the transmission connects one actuator and one joint."""
        return len(self.joints) == 1 and len(self.actuators) == 1

    @property
    def reduction(self) -> float:
        """Actuator speed over joint speed, equal to joint effort over actuator effort; negative for opposite directions.

        Raises:
            ValueError: several joints or actuators.
        """
        if not self.simple:
            raise ValueError(
                f"transmission {self.name!r} connects {len(self.joints)} joints and {len(self.actuators)} actuators and has "
                "no single reduction; use the reductions of its joints and actuators"
            )
        return self.actuators[0].reduction * self.joints[0].reduction


@dataclass(frozen=True)
class SafetyController:
    """Bounds of a joint's safety controller on the robot.

    Attributes:
        soft_lower, soft_upper: position limits [rad or m]; both 0 if the file has none.
        k_position: bound on the speed over the distance to a soft limit [1/s].
        k_velocity: bound on the effort over the distance to the bound on the speed [N m s/rad or N s/m].
        element: its element in the file.
    """

    soft_lower: float
    soft_upper: float
    k_position: float
    k_velocity: float
    element: XmlElement = field(repr=False, compare=False)


def read_transmission(
    element: XmlElement, count: Callable[[str], None], remark: Callable[[str, str], None]
) -> Transmission:
    """Reads a ``<transmission>``.

    Args:
        element: the element.
        count: called with the name of each item that is left out.
        remark: called with a statement and the name of a joint.
    """
    _take_stock(element, count)
    kind = element.get("type") or _text(element, "type")

    def no_number() -> None:
        for joint in element.all("joint"):
            remark("mechanicalReductions of joints are no numbers, and count as 1", joint.get("name", ""))

    joints = tuple(_end(joint, None, no_number) for joint in element.all("joint"))
    # PR2 files have the reduction as a sibling of the actuator.
    beside = element.first("mechanicalReduction")
    actuators = tuple(_end(actuator, beside, no_number) for actuator in element.all("actuator"))
    return Transmission(element.get("name", ""), kind.strip().rsplit("/", 1)[-1], joints, actuators)


def read_safety(element: XmlElement) -> SafetyController:
    """Reads a ``<safety_controller>``."""
    return SafetyController(
        soft_lower=element.number("soft_lower_limit", 0.0),
        soft_upper=element.number("soft_upper_limit", 0.0),
        k_position=element.number("k_position", 0.0, low=0.0),
        k_velocity=element.number("k_velocity", low=0.0),
        element=element,
    )


def use_soft_limits(robot) -> None:
    """Narrows the limits of joints to their soft limits, and sets the spring and damper of their safety controllers.

    At the soft limit ``x+`` a safety controller bounds the effort by ``-k_velocity (v + k_position (x - x+))``, a spring
    and a damper.
    """
    for name, safety in robot.safety.items():
        joint, element = robot.joints[name], safety.element
        lower, upper = safety.soft_lower, safety.soft_upper
        limited = joint.type in ("revolute", "prismatic")
        if lower == upper == 0.0:
            if limited:
                robot.remark("joints have a safety controller without soft limits (0 or missing)", name)
            continue
        if not limited:
            robot.remark("joints that are neither revolute nor prismatic have soft limits, which are not used", name)
            continue
        if lower > upper:
            raise element.error(
                f"joint {name!r}: soft_lower_limit {lower:g} is above soft_upper_limit {upper:g}; swap them"
            )
        if joint.lower is not None:
            lower, upper = max(lower, joint.lower), min(upper, joint.upper)
            if lower > upper:
                raise element.error(
                    f"joint {name!r}: the soft limits from {safety.soft_lower:g} to {safety.soft_upper:g} are outside of "
                    f"the limits from {joint.lower:g} to {joint.upper:g}; correct them, or omit soft_limits"
                )
        joint.lower, joint.upper = lower, upper
        if safety.k_position > 0.0 and safety.k_velocity > 0.0:
            joint.limit_ke, joint.limit_kd = safety.k_position * safety.k_velocity, safety.k_velocity


def reflect_rotors(robot, rotor_inertia) -> None:
    """Sets the armature of joints to the inertia of their rotors times the square of the reduction.

    Args:
        robot: the parsed file.
        rotor_inertia: inertia of all rotors [kg m^2], or by name of the actuator or joint; missing ones are those of
            the file.

    Raises:
        KeyError: no transmission has a name.
        TypeError, ValueError: a value is not a moment of inertia.
    """
    rotors, everywhere = {}, None
    if isinstance(rotor_inertia, dict):
        rotors = {name: _moment(value, f"rotor_inertia[{name!r}]") for name, value in rotor_inertia.items()}
        ends = {end.name for item in robot.transmissions for end in (*item.joints, *item.actuators)}
        unknown = sorted(set(rotors) - ends, key=str)
        if unknown:
            raise KeyError(
                f"rotor_inertia contains {', '.join(map(repr, unknown))}, which no <transmission> of {robot.source.name} "
                "has; set builder.joint_armature for joints without a transmission"
            )
    elif rotor_inertia is not None:
        everywhere = _moment(rotor_inertia, "rotor_inertia")
    for item in robot.transmissions:
        given = [
            next(
                (rotors[name] for name in (end.name, *(joint.name for joint in item.joints)) if name in rotors),
                everywhere,
            )
            for end in item.actuators
        ]
        inertias = [
            end.rotor_inertia if moment is None else moment for end, moment in zip(item.actuators, given, strict=True)
        ]
        if not any(moment is not None for moment in given) and not any(inertias):
            continue
        joint = robot.joints.get(item.joints[0].name) if item.joints else None
        if not item.simple:
            robot.remark(
                "transmissions connect several joints or actuators; their rotor inertias are ignored", item.name
            )
        elif joint is not None and joint.type in ("revolute", "continuous", "prismatic"):
            joint.armature = (joint.armature or 0.0) + item.reduction**2 * inertias[0]
        elif joint is not None:
            robot.remark(f"transmissions move {joint.type} joints, and their rotors are ignored", item.name)


def _moment(value, name: str) -> float:
    moment = as_number(value, name)
    if moment < 0.0:
        raise ValueError(f"{name} {moment:g} kg m^2 must be at least 0")
    return moment


def _end(element: XmlElement, beside: XmlElement | None, no_number: Callable[[], None]) -> TransmissionEnd:
    reduction = element.first("drake:gear_ratio") or element.first("mechanicalReduction") or beside
    try:
        factor = _number(reduction, 1.0)
    except ImportFileError:
        if reduction.tag != "mechanicalReduction":
            raise
        no_number()
        factor = 1.0
    if factor == 0.0:
        raise reduction.error("a reduction of 0 is impossible; give actuator speed / joint speed")
    rotor = element.first("drake:rotor_inertia")
    return TransmissionEnd(
        name=element.get("name", ""),
        reduction=factor,
        offset=_number(element.first("offset"), 0.0),
        role=_text(element, "role"),
        interfaces=tuple("".join(item.texts).strip() for item in element.all("hardwareInterface")),
        rotor_inertia=0.0 if rotor is None else rotor.number("value", low=0.0),
    )


def _text(element: XmlElement, tag: str) -> str:
    child = element.first(tag)
    return "" if child is None else "".join(child.texts).strip()


def _number(element: XmlElement | None, default: float) -> float:
    """The number of an element, from its text or (Drake) from the attribute ``value``."""
    if element is None:
        return default
    attributes = element.attributes if "value" in element.attributes else {"value": "".join(element.texts).strip()}
    return XmlElement(element.tag, attributes, element.line, element.file).number("value")


def _take_stock(element: XmlElement, count: Callable[[str], None]) -> None:
    for name in element.attributes.keys() - _ATTRIBUTES.get(element.tag, set()):
        count(f"{element.tag}@{name}")
    if element.tag not in _TEXTS and any(text.strip() for text in element.texts):
        count(f"{element.tag}/text")
    for child in element.children:
        if child.tag in _KNOWN.get(element.tag, ()):
            _take_stock(child, count)
        else:
            count(f"{element.tag}/{child.tag}")
