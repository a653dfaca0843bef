"""Actuators of MJCF. Linear actuators without activation become drives of joints or tendons; others, actuators of the builder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from newton_like.importers.mjcf.actuation.motors import has_states, motor_forces, motor_input, motor_numbers
from newton_like.importers.mjcf.parse import NOT_LINEAR, coefficients, limits
from newton_like.importers.mjcf.records import Joint, Mjcf
from newton_like.importers.mjcf.source import MAIN, floats, words
from newton_like.importers.xml_source import XmlElement
from newton_like.model.actuators import TIME_CONSTANTS

NUMBERS = 10
"""Number of parameters of gain, bias and dynamics."""

GAINS = ("fixed", "affine", "muscle", "user", "dcmotor")
BIASES = ("none", "affine", "muscle", "user", "dcmotor")
DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle", "user", "dcmotor")

_TARGETS = ("joint", "jointinparent", "tendon", "site", "body", "slidersite")
DATA_ONLY = ("pid", "orientation", "plugin")
"""Elements that are not simulated."""

_REFERENCES = {
    **dict.fromkeys(("joint", "jointinparent"), "joint"), **dict.fromkeys(("site", "slidersite", "cranksite", "refsite"), "site"),
    "body": "body",
}  # fmt: skip
"""Kinds of what attributes name."""

_LEAST = 1.0e-15


@dataclass
class Actuator:
    """One actuator.

    MuJoCo's force is ``gain ctrl + bias[0] + bias[1] length + bias[2] velocity`` within ``forcerange``, times ``gear``.

    Attributes:
        name: as in the file, or ``actuator_<index>``.
        kind: tag of the element.
        transmission: kind of its target: ``joint, jointinparent, tendon, site, body, slidersite``, or "".
        target: name of the target.
        gear: six factors.
        gain, bias, dynamics: type and ten parameters of each: ``(type, numbers)``.
        ctrlrange, forcerange, actrange: limits, or ``None``.
        armature, damping: values of the actuator; the joint gets them times the square of the first gear.
        drive: the array of ``Control`` for its control: ``"joint_target_q"``, ``"joint_target_qd"``, ``"joint_f"`` or
            ``"joint_act"``, or ``"tendon_target_q"``, ``"tendon_target_qd"`` or ``"tendon_f"``, or ``"actuator_ctrl"``; ``None`` for an
            actuator that is kept as data only.
        factor, offset: the entry of that array is ``factor * ctrl + offset``, summed over the actuators of a joint.
        index: index of that entry in the array, -1 for none.
        lengthrange: smallest and largest length of a muscle, or ``None``.
        reference: name of the site relative to which its site moves, or "".
        crank, rod: of a ``slidersite`` the name of the site of the crank, and the length of the rod [m].
        input: what the controls of a ``dcmotor`` are.
        act: index of its activation in ``State.actuator_act``, -1 for none.
        attributes: attributes of the element and its defaults, as strings.
    """

    name: str
    kind: str
    transmission: str
    target: str
    gear: tuple[float, ...]
    gain: tuple[str, tuple[float, ...]]
    bias: tuple[str, tuple[float, ...]]
    dynamics: tuple[str, tuple[float, ...]]
    ctrlrange: tuple[float, float] | None
    forcerange: tuple[float, float] | None
    actrange: tuple[float, float] | None
    armature: float = 0.0
    damping: float = 0.0
    drive: str | None = None
    factor: float = 0.0
    offset: float = 0.0
    index: int = -1
    lengthrange: tuple[float, float] | None = None
    reference: str = ""
    crank: str = ""
    rod: float = 0.0
    input: str = "voltage"
    act: int = -1
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def activated(self) -> bool:
        """Whether it has an activation."""
        return self.dynamics[0] != "none"


@dataclass(frozen=True)
class _Gains:
    """Gain, bias and dynamics, and the tag of the element that set them."""

    made_by: str = "general"
    gain: str = "fixed"
    bias: str = "none"
    dynamics: str = "none"
    gainprm: tuple[float, ...] = (1.0,) + (0.0,) * (NUMBERS - 1)
    biasprm: tuple[float, ...] = (0.0,) * NUMBERS
    dynprm: tuple[float, ...] = (1.0,) + (0.0,) * (NUMBERS - 1)
    input: str = "voltage"

    def suit(self, tag: str) -> bool:
        """Whether they can be the base of a shortcut element. Only a damper has an affine gain."""
        if self.made_by == "general":
            return (self.gain == "affine") == (tag == "damper")
        return self.made_by == tag


class _State:
    """Accumulated attributes of an actuator and its defaults.

    Attributes:
        attributes: attributes of all elements so far, as strings.
        gains: gains so far.
        outer: gains of the enclosing classes, the main class first.
    """

    def __init__(self):
        self.attributes: dict[str, str] = {}
        self.gains = _Gains()
        self.outer = [self.gains]

    def apply(self, elements: list[XmlElement]) -> None:
        """Applies the elements of a class of defaults, or the actuator element."""
        for element in elements:
            self.attributes.update((k, v) for k, v in element.attributes.items() if k != "class")
            tag = element.tag
            if tag == "general":
                self.gains = _general(self.gains, element)
            elif tag in _SHORTCUTS:
                # Gains of another kind of shortcut do not apply; the gains of an enclosing class are used then.
                bases = (self.gains, *reversed(self.outer))
                base = next((gains for gains in bases if gains.suit(tag)), _Gains())
                self.gains = replace(_SHORTCUTS[tag](base, element), made_by=tag)
        self.outer.append(self.gains)


def _general(base: _Gains, element: XmlElement) -> _Gains:
    def filled(name: str, numbers: tuple[float, ...]) -> tuple[float, ...]:
        given = floats(element, name, NUMBERS, ())
        return (*given, *numbers[len(given) :])

    return _Gains(
        gain=words(element, "gaintype", GAINS, base.gain),
        bias=words(element, "biastype", BIASES, base.bias),
        dynamics=words(element, "dyntype", DYNAMICS, base.dynamics),
        gainprm=filled("gainprm", base.gainprm),
        biasprm=filled("biasprm", base.biasprm),
        dynprm=filled("dynprm", base.dynprm),
    )


def _padded(*numbers: float) -> tuple[float, ...]:
    return (*numbers, *(0.0,) * (NUMBERS - len(numbers)))


def _motor(base: _Gains, element: XmlElement) -> _Gains:
    return _Gains()


def _position(base: _Gains, element: XmlElement) -> _Gains:
    kp = element.number("kp", base.gainprm[0], low=0.0)
    damping = base.biasprm[2]
    if "kv" in element.attributes:
        damping = -element.number("kv", low=0.0)
    if "dampratio" in element.attributes:
        if "kv" in element.attributes:
            raise element.error("has both kv and dampratio; keep one")
        damping = element.number("dampratio", low=0.0)
    time = element.number("timeconst", 0.0, low=0.0) if element.tag == "position" else 0.0
    return _Gains(
        bias="affine",
        dynamics="integrator" if element.tag == "intvelocity" else "filterexact" if time > 0.0 else "none",
        gainprm=_padded(kp),
        biasprm=(0.0, -kp, damping, *base.biasprm[3:]),
        dynprm=_padded(time or 1.0),
    )


def _velocity(base: _Gains, element: XmlElement) -> _Gains:
    kv = element.number("kv", base.gainprm[0], low=0.0)
    return _Gains(bias="affine", gainprm=_padded(kv), biasprm=_padded(0.0, 0.0, -kv))


def _damper(base: _Gains, element: XmlElement) -> _Gains:
    kv = element.number("kv", -base.gainprm[2] if base.gain == "affine" else 0.0, low=0.0)
    return _Gains(gain="affine", gainprm=_padded(0.0, 0.0, -kv))


def _cylinder(base: _Gains, element: XmlElement) -> _Gains:
    area = element.number("area", base.gainprm[0])
    if "diameter" in element.attributes:
        area = math.pi / 4.0 * element.number("diameter") ** 2
    bias = floats(element, "bias", 3, ())
    return replace(
        base,
        bias="affine",
        dynamics="filter",
        gainprm=(area, *base.gainprm[1:]),
        biasprm=(*bias, *base.biasprm[len(bias) :]),
        dynprm=(element.number("timeconst", base.dynprm[0]), *base.dynprm[1:]),
    )


_MUSCLE = (0.75, 1.05, -1.0, 200.0, 0.5, 1.6, 1.5, 1.3, 1.2)
"""Range of lengths, force, scale, least and largest length, speed, passive and active force of a muscle, if no element states them."""


def _muscle(base: _Gains, element: XmlElement) -> _Gains:
    # numbers that are still those of a general actuator become those of a muscle, as in MuJoCo
    unset = _Gains()
    prm = [new if old == none else old for old, none, new in zip(base.gainprm, unset.gainprm, _MUSCLE, strict=False)]
    prm[:2] = floats(element, "range", 2, tuple(prm[:2]))
    for i, name in enumerate(("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax"), 2):
        prm[i] = element.number(name, prm[i])
    dyn = base.dynprm
    times = [new if old == none else old for old, none, new in zip(dyn, (1.0, 0.0), (0.01, 0.04), strict=False)]
    times[:2] = floats(element, "timeconst", 2, tuple(times[:2]))
    smooth = element.number("tausmooth", dyn[2], low=0.0)
    return _Gains(
        gain="muscle",
        bias="muscle",
        dynamics="muscle",
        gainprm=_padded(*prm),
        biasprm=_padded(*prm),
        dynprm=_padded(*times, smooth),
    )


def _adhesion(base: _Gains, element: XmlElement) -> _Gains:
    gain = element.number("gain", base.gainprm[0], low=0.0)
    return _Gains(gainprm=_padded(gain))


def _motor_of_windings(base: _Gains, element: XmlElement) -> _Gains:
    own = base.gain == "dcmotor"
    given = (base.gainprm, base.biasprm, base.dynprm) if own else (_padded(),) * 3
    gain, bias, dynamics = motor_numbers(*given, element)
    kinds = {"gain": "dcmotor", "bias": "dcmotor", "dynamics": "dcmotor" if has_states(gain, dynamics) else "none"}
    return _Gains(**kinds, gainprm=gain, biasprm=bias, dynprm=dynamics, input=motor_input(element, base.input))


_SHORTCUTS = {
    "adhesion": _adhesion,
    "dcmotor": _motor_of_windings,
    "muscle": _muscle,
    "motor": _motor,
    "position": _position,
    "intvelocity": _position,
    "velocity": _velocity,
    "damper": _damper,
    "cylinder": _cylinder,
}


def read_actuators(model: Mjcf, tables: dict[str, dict]) -> list[Actuator]:
    """Reads the actuators of a model, without their drives.

    Args:
        model: the model.
        tables: records of the model, by kind and name.

    Raises:
        ImportFileError: an actuator without a target, with several targets, or with a missing one.
    """
    tendons = {element.get("name"): element for element in model.elements["tendon"]}
    names = {**tables, "jointinparent": tables["joint"], "slidersite": tables["site"], "tendon": tendons}
    result, seen = [], set()
    for element in copies(model, model.elements["actuator"], _REFERENCES):
        state = _State()
        for defaults in (*model.actuator_defaults[element.get("class") or MAIN], [element]):
            state.apply(defaults)
        actuator = _actuator(element, state, names, model, f"actuator_{len(result)}")
        if actuator.name in seen:
            raise element.error(f"the actuator {actuator.name!r} occurs twice; rename one")
        seen.add(actuator.name)
        result.append(actuator)
    return result


def reflect_rotors(actuators: list[Actuator], joints: dict[str, Joint]) -> None:
    """Adds the inertia of actuators, ``gear^2 armature``, to every dof of their joints."""
    for actuator, joint in _movers(actuators, joints):
        if actuator.armature > 0.0:
            joint.given["armature"] = joint.given.get("armature", 0.0) + actuator.gear[0] ** 2 * actuator.armature


def find_drives(actuators: list[Actuator], joints: dict[str, Joint], inertias) -> None:
    """Adds the damping of actuators to their joints, and finds the drives of linear actuators.

    Args:
        actuators: actuators of the model.
        joints: joints by name.
        inertias: function without arguments that returns the inertias for damping ratios; see
            :func:`newton_like.importers.mjcf.mass.joint_inertias`.
    """
    for actuator, joint in _movers(actuators, joints):
        if actuator.damping > 0.0:
            joint.given["damping"] = joint.given.get("damping", 0.0) + actuator.gear[0] ** 2 * actuator.damping
        if actuator.kind not in DATA_ONLY:
            _damping_ratio(actuator, joint, inertias)
            if joint.kind in ("hinge", "slide"):
                _linear(actuator)
    for actuator in actuators:
        if actuator.transmission == "tendon" and actuator.kind not in DATA_ONLY and not actuator.activated:
            _linear(actuator)
            if actuator.drive is not None:
                actuator.drive = actuator.drive.replace("joint", "tendon")


def _movers(actuators: list[Actuator], joints: dict[str, Joint]) -> Iterator[tuple[Actuator, Joint]]:
    """Pairs of actuators and their joints."""
    return ((actuator, joints[actuator.target]) for actuator in actuators if actuator.transmission.startswith("joint"))


def _actuator(element: XmlElement, state: _State, names: dict, model: Mjcf, fallback: str) -> Actuator:
    attributes = state.attributes
    merged = XmlElement(element.tag, attributes, element.line, element.file)
    targets = [name for name in _TARGETS if attributes.get(name)]
    if len(targets) > 1:
        raise element.error(f"acts on {' and '.join(targets)}; keep one")
    if not targets and element.tag not in DATA_ONLY:
        raise element.error(f"acts on nothing; add {_wanted(element.tag)}")
    transmission = targets[0] if targets else ""
    target = attributes.get(transmission, "")
    if targets and target not in names[transmission]:
        shown = ", ".join(sorted(map(str, names[transmission]))[:8]) or "none"
        raise element.error(f"acts on the unknown {transmission} {target!r}; there are: {shown}")
    reference = attributes.get("refsite", "") if transmission == "site" else ""
    if reference and reference not in names["site"]:
        raise element.error(f"is relative to the unknown site {reference!r}; correct refsite")
    if transmission == "slidersite" and attributes.get("cranksite", "") not in names["site"]:
        raise element.error(f"has the unknown cranksite {attributes.get('cranksite', '')!r}; name a site")
    rod = 0.0
    if transmission == "slidersite":
        rod = merged.number("cranklength")
        if not rod > 0.0:
            raise element.error(f"has cranklength={rod:g}; give the length of the rod, above 0")
    for time in state.gains.dynprm[: TIME_CONSTANTS.get(state.gains.dynamics, 0)]:
        if time < 0.0:
            raise element.error(f"has the time constant {time:g}; give a number of at least 0")
    gear = floats(merged, "gear", 6, (1.0,))
    auto = model.compiler.autolimits
    # these have a range of controls whatever the compiler's autolimits
    one_sided = element.tag in ("damper", "adhesion")
    ctrlrange = limits(merged, "ctrlrange", "ctrllimited", auto or one_sided)
    if one_sided and (ctrlrange is None or ctrlrange[0] < 0.0):
        raise element.error(
            "needs a ctrlrange from 0 or more on: at a negative control it would push the other way; add ctrlrange='0 1'"
        )
    inherit = merged.number("inheritrange", 0.0, low=0.0)
    if inherit > 0.0 and transmission == "joint" and ctrlrange is None:
        joint = names["joint"][target]
        if joint.range is None:
            raise element.error(f"inherits the range of joint {target!r}, which has none; remove inheritrange")
        middle, half = 0.5 * sum(joint.range), 0.5 * inherit * (joint.range[1] - joint.range[0])
        ctrlrange = (middle - half, middle + half)
    damping = coefficients(merged, "damping") or (0.0,)
    if any(damping[1:]):
        model.findings.remark(NOT_LINEAR, element.get("name") or fallback)
    return Actuator(
        name=element.get("name") or fallback,
        kind=element.tag,
        transmission=transmission,
        target=target,
        gear=(*gear, *(0.0,) * (6 - len(gear))),
        gain=(state.gains.gain, state.gains.gainprm),
        bias=(state.gains.bias, state.gains.biasprm),
        dynamics=(state.gains.dynamics, state.gains.dynprm),
        ctrlrange=None if model.option.get("flag clampctrl") is False else ctrlrange,
        forcerange=_forcerange(merged, state.gains, auto),
        actrange=limits(merged, "actrange", "actlimited", auto),
        armature=merged.number("armature", 0.0, low=0.0),
        damping=damping[0],
        lengthrange=_lengths(merged),
        reference=reference,
        crank=attributes.get("cranksite", ""),
        rod=rod,
        input=state.gains.input,
        attributes=dict(attributes),
    )


def _forcerange(merged: XmlElement, gains: _Gains, auto: bool) -> tuple[float, float] | None:
    found = motor_forces(merged, gains.gainprm[1]) if gains.gain == "dcmotor" else None
    return found or limits(merged, "forcerange", "forcelimited", auto)


def _wanted(tag: str) -> str:
    """The attributes that name the target of an element."""
    return (
        "body='...'" if tag == "adhesion" else "joint='...', tendon='...', site='...', slidersite='...' or body='...'"
    )


def _damping_ratio(actuator: Actuator, joint: Joint, inertias) -> None:
    """Converts the damping ratio of a position servo, a positive third bias: ``kv = 2 ratio sqrt(kp m)`` with the inertia m that its joint
    moves."""
    kp, (kind, bias) = actuator.gain[1][0], actuator.bias
    if kind != "affine" or actuator.gain[0] != "fixed" or kp != -bias[1] or bias[2] <= 0.0:
        return
    gear = actuator.gear[0]
    if joint.kind not in ("hinge", "slide") or gear * gear < _LEAST:
        return
    mass = inertias()[id(joint)] / gear**2
    actuator.bias = (kind, (*bias[:2], -2.0 * bias[2] * math.sqrt(kp * mass), *bias[3:]))


def _linear(actuator: Actuator) -> None:
    """Sets the drive, factor and offset of a linear actuator of a hinge or slide."""
    (gain, gainprm), (bias, biasprm) = actuator.gain, actuator.bias
    gear = actuator.gear[0]
    if gain != "fixed" or bias not in ("none", "affine") or gear == 0.0:
        return
    if actuator.dynamics[0] not in ("none", "integrator", "filter", "filterexact"):
        return
    k = gainprm[0]
    b0, b1, b2 = biasprm[:3] if bias == "affine" else (0.0, 0.0, 0.0)
    if b1 > 0.0 or b2 > 0.0:
        return
    if b1 < 0.0:
        actuator.drive, scale = "joint_target_q", -1.0 / (b1 * gear)
    elif b2 < 0.0:
        actuator.drive, scale = "joint_target_qd", -1.0 / (b2 * gear)
    else:
        actuator.drive, scale = "joint_f", gear
    actuator.factor, actuator.offset = scale * k, scale * b0


def _lengths(element: XmlElement) -> tuple[float, float] | None:
    given = floats(element, "lengthrange", 2, ()) if "lengthrange" in element.attributes else ()
    return (given[0], given[1]) if len(given) == 2 and given[0] < given[1] else None


def copies(model: Mjcf, elements: list[XmlElement], references: dict[str, str]) -> list[XmlElement]:
    """Repeats elements that refer to entities with copies by ``<replicate>``.

    Args:
        model: the model.
        elements: elements of one section.
        references: kind of the referenced entity, by attribute.

    Raises:
        ImportFileError: an element refers to entities with different copies.
    """
    result = []
    for element in elements:
        endings: list[str] | None = None
        for part in (element, *element.children):
            for attribute, kind in references.items():
                found = model.replicas.get((kind, part.attributes.get(attribute, "")))
                if found is not None and endings is not None and found != endings:
                    raise element.error("refers to elements of different replicas; write the element for each replica")
                endings = endings if found is None else found
        result += [element] if endings is None else [_ended(element, model, references, ending) for ending in endings]
    return result


def _ended(element: XmlElement, model: Mjcf, references: dict[str, str], ending: str) -> XmlElement:
    def ended(part: XmlElement, children: list[XmlElement]) -> XmlElement:
        attributes = dict(part.attributes)
        for attribute, kind in references.items():
            if (kind, attributes.get(attribute, "")) in model.replicas:
                attributes[attribute] += ending
        if attributes.get("name"):
            attributes["name"] += ending
        return replace(part, attributes=attributes, children=children)

    return ended(element, [ended(child, child.children) for child in element.children])


def site_ties(actuators: list[Actuator], sites: dict) -> list[tuple[int, int]]:
    """Pairs of bodies that must be in one articulation, because an actuator acts on a site of each."""
    ends = [(actuator.target, actuator.reference or actuator.crank) for actuator in actuators]
    return [(sites[a].body, sites[b].body) for a, b in ends if b and min(sites[a].body, sites[b].body) > 0]
