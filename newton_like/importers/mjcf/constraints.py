"""Equality constraints, tendons, contact pairs and keyframes of MJCF, with names resolved."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from newton_like.geometry.transforms import transform
from newton_like.importers.mjcf.actuation.actuators import copies
from newton_like.importers.mjcf.contact import remark_wide_margin
from newton_like.importers.mjcf.parse import BOOL, NOT_LINEAR, PASSIVE, coefficients, limits
from newton_like.importers.mjcf.pose import unit
from newton_like.importers.mjcf.records import Joint, Mjcf
from newton_like.importers.mjcf.source import floats, words
from newton_like.importers.xml_source import XmlElement
from newton_like.model.mujoco.contact_settings import SOLIMP, SOLREF, is_solref
from newton_like.model.tendons import check_path


@dataclass
class Equality:
    """An equality constraint.

    Attributes:
        name: as in the file, or ``equality_<index>``.
        kind: ``connect``, ``weld``, ``joint``, ``tendon`` or ``distance``.
        active: whether it is active at the start.
        first, second: names of the connected bodies, sites, joints or tendons; "" for the world or none.
        on_sites: whether these are sites.
        anchor: connected point [m]: of a connect in the first body, of a weld in the second.
        relpose: pose of the second body in the first that a weld keeps, or ``None`` for the initial one.
        distance: between the surfaces of two geoms [m].
        polycoef: five coefficients of ``q1 - ref1 = sum of c_i (q2 - ref2)^i``; q are lengths of tendons, and ref those at the start.
        joint: index of its joint in the builder: a loop joint, or the follower of a mimic relation; -1 if it is only data.
        attributes: attributes of the element and its defaults, as strings (``solref``, ``solimp``, ...).
        softness: ``solref`` and ``solimp`` if the file states one of them, else ``None``.
        torquescale: of a weld: how much of an angle [rad] counts as a length [m]. 0: rotations are free.
    """

    name: str
    kind: str
    active: bool
    first: str
    second: str
    on_sites: bool = False
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(3))
    relpose: np.ndarray | None = None
    distance: float = 0.0
    polycoef: tuple[float, ...] = (0.0, 1.0, 0.0, 0.0, 0.0)
    joint: int = -1
    softness: tuple | None = None
    torquescale: float = 1.0
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass
class Keyframe:
    """A state in the file.

    Attributes:
        name: as in the file, or ``key_<index>``.
        time: [s].
        qpos, qvel, act, ctrl, mpos, mquat: values in MuJoCo's order and conventions; ``None`` if the file has none.
        joint_q: ``qpos`` as coordinates of the builder, by index in ``builder.joint_q``.
    """

    name: str
    time: float = 0.0
    qpos: tuple[float, ...] | None = None
    qvel: tuple[float, ...] | None = None
    act: tuple[float, ...] | None = None
    ctrl: tuple[float, ...] | None = None
    mpos: tuple[float, ...] | None = None
    mquat: tuple[float, ...] | None = None
    joint_q: dict[int, float] = field(default_factory=dict)


@dataclass
class TendonRecord:
    """A tendon with names instead of the indices of :class:`newton_like.model.tendons.Tendon`.

    Attributes:
        joints: ``(joint name, coefficient)`` of a fixed tendon.
        path: ``("site", name)``, ``("geom", name, name of the site beside it or "")``, ``("pulley", divisor)``.
        values: the other arguments of a :class:`Tendon`.
    """

    name: str
    joints: list[tuple[str, float]]
    path: list[tuple]
    values: dict


class Names:
    """Records of a model, by kind and name.

    Attributes:
        tables: for each kind, the records by name.
    """

    def __init__(self, model: Mjcf):
        self.tables = {
            "body": {body.name: body for body in model.bodies},
            "joint": {joint.name: joint for body in model.bodies for joint in body.joints},
            "geom": {geom.name: geom for geom in model.geoms},
            "site": {site.name: site for site in model.sites},
            "tendon": {element.get("name"): element for element in model.elements["tendon"]},
        }

    def need(self, element: XmlElement, attribute: str, kind: str, optional: bool = False) -> str:
        """The name in an attribute; "" if an optional attribute is missing.

        Raises:
            ImportFileError: no record has the name.
        """
        name = element.get(attribute, "").strip()
        if not name and optional:
            return ""
        name = name or element.need_text(attribute)
        if name not in self.tables[kind]:
            shown = ", ".join(sorted(self.tables[kind])[:8]) or "none"
            raise element.error(f"{attribute}={name!r}: there is no {kind} of that name; there are: {shown}")
        return name


_REFERENCES = {
    "equality": {f"{kind}{end}": kind for kind in ("body", "site", "joint") for end in "12"},
    "tendon": {"joint": "joint", "site": "site", "geom": "geom", "sidesite": "site"},
    "contact": {f"{kind}{end}": kind for kind in ("body", "geom") for end in "12"},
}


def read_equalities(model: Mjcf, names: Names) -> list[Equality]:
    """Reads the equality constraints of a model.

    Raises:
        ImportFileError: a constraint refers to a missing entity, or to a joint with several coordinates, or has the name of another one.
    """
    result, seen = [], set()
    for element in copies(model, model.elements["equality"], _REFERENCES["equality"]):
        if element.tag not in ("connect", "weld", "joint", "tendon", "distance"):
            continue
        name = element.get("name") or f"equality_{len(result)}"
        if name in seen:
            raise element.error(f"the equality {name!r} is defined twice; rename one")
        seen.add(name)
        equality = Equality(name, element.tag, words(element, "active", BOOL, True), "", "")
        equality.attributes = dict(element.attributes)
        equality.softness = _softness(model, element, name)
        equality.distance = element.number("distance", 0.0)
        if element.tag == "weld":
            equality.torquescale = element.number("torquescale", 1.0)
        equality.on_sites = element.tag in ("connect", "weld") and bool(element.get("site1") or element.get("site2"))
        kind = {"joint": "joint", "tendon": "tendon", "distance": "geom"}.get(
            element.tag, "site" if equality.on_sites else "body"
        )
        equality.first = names.need(element, f"{kind}1", kind)
        equality.second = names.need(element, f"{kind}2", kind, optional=kind != "site")
        if kind == "joint":
            for tied in (equality.first, equality.second):
                if tied and names.tables["joint"][tied].kind not in ("hinge", "slide"):
                    raise element.error(f"joint {tied!r} is not a hinge or slide; only these can be coupled")
        if kind in ("joint", "tendon"):
            given = floats(element, "polycoef", 5, ())
            equality.polycoef = (*given, *equality.polycoef[len(given) :])
        elif kind == "body":
            default = (0.0, 0.0, 0.0) if element.tag == "weld" else None
            equality.anchor = np.array(element.numbers("anchor", 3, default))
            pose = element.numbers("relpose", 7, (0.0,) * 7)
            if any(pose[3:]):
                equality.relpose = transform(pose[:3], unit(element, "relpose", [*pose[4:], pose[3]]))
        if equality.first == equality.second and element.tag != "distance":
            raise element.error(f"ties {equality.first!r} to itself; name two")
        result.append(equality)
    return result


def _softness(model: Mjcf, element: XmlElement, name: str) -> tuple | None:
    """``solref`` and ``solimp`` of an equality that states one of them."""
    if not {"solref", "solimp"} & set(element.attributes):
        return None
    solref = (*floats(element, "solref", 2, ()), *SOLREF)[:2]
    solimp = floats(element, "solimp", 5, ())
    if not is_solref(solref):
        model.findings.remark("equalities have a solref with a 0 or with two signs, which is ignored", name)
        solref = SOLREF
    return solref, (*solimp, *SOLIMP[len(solimp) :])


def read_tendons(model: Mjcf, names: Names) -> list[TendonRecord]:
    """Reads the tendons of a model. Raises ImportFileError for an empty tendon, or one that refers to a missing entity."""
    result, seen = [], set()
    for element in copies(model, model.elements["tendon"], _REFERENCES["tendon"]):
        name = element.get("name") or f"tendon_{len(result)}"
        if name in seen:
            raise element.error(f"the tendon {name!r} is defined twice; rename one")
        seen.add(name)
        joints, path = [], []
        for child in element.children:
            if element.tag == "fixed" and child.tag == "joint":
                joint = names.need(child, "joint", "joint")
                if names.tables["joint"][joint].kind not in ("hinge", "slide"):
                    raise child.error(f"joint {joint!r} is not a hinge or slide; tendons act on these only")
                joints.append((joint, child.number("coef")))
            elif child.tag == "site":
                path.append(("site", names.need(child, "site", "site")))
            elif child.tag == "geom":
                wrapped = names.tables["geom"][names.need(child, "geom", "geom")]
                if wrapped.kind not in ("sphere", "cylinder"):
                    raise child.error(f"a tendon wraps around spheres and cylinders, not around a {wrapped.kind}")
                path.append(("geom", names.need(child, "geom", "geom"), names.need(child, "sidesite", "site", True)))
            elif child.tag == "pulley":
                divisor = child.number("divisor")
                if divisor <= 0.0:
                    raise child.error(f"divisor={divisor:g} must be above 0")
                path.append(("pulley", divisor))
        if not joints and not path:
            raise element.error("a tendon needs joints or sites; add some")
        auto = model.compiler.autolimits
        values = {"limits": limits(element, "range", "limited", auto)}
        values["effort"] = limits(element, "actuatorfrcrange", "actuatorfrclimited", auto)
        for ours, theirs in PASSIVE.items():
            numbers = coefficients(element, theirs) or (0.0,)
            values[ours] = numbers[0]
            if any(numbers[1:]):
                model.findings.remark(NOT_LINEAR, name)
        rest = floats(element, "springlength", 2)
        # -1 is the length where the joints are at springref
        if rest is not None and rest[0] > rest[-1]:
            raise element.error(f"springlength={element.get('springlength')!r} has the larger length first; swap them")
        if rest is not None and {*rest} != {-1.0}:
            values["rest_length"] = (rest[0], rest[-1])
        elif joints:
            # where the springs of the joints rest; that of spatial tendons is found when there are sites
            at_rest = sum(factor * names.tables["joint"][joint].springref for joint, factor in joints)
            values["rest_length"] = (at_rest, at_rest)
        values |= _limit_settings(model, element, name, values["limits"])
        if path:
            try:
                check_path(f"tendon {name!r}", tuple(path))
            except ValueError as error:
                raise element.error(str(error).partition(": ")[2]) from None
        result.append(TendonRecord(name, joints, path, values))
    return result


def reflect_on_tendons(actuators, tendons: list[TendonRecord]) -> None:
    """Adds the inertia and damping of actuators, times the square of their gear, to their tendons."""
    records = {record.name: record for record in tendons}
    for actuator in actuators:
        if actuator.transmission == "tendon" and actuator.target in records:
            values = records[actuator.target].values
            values["armature"] += actuator.gear[0] ** 2 * actuator.armature
            values["damping"] += actuator.gear[0] ** 2 * actuator.damping


def tendon_ties(model: Mjcf, names: Names, tendons: list[TendonRecord]) -> list[tuple[int, int]]:
    """Pairs of bodies that must be in one articulation, because a tendon runs through them, or past a site of them."""
    owner = {joint.name: i for i, body in enumerate(model.bodies) for joint in body.joints}
    ties = []
    for tendon in tendons:
        bodies = [owner[name] for name, _ in tendon.joints]
        for kind, *entry in tendon.path:
            if kind != "pulley":
                bodies.append(names.tables[kind][entry[0]].body)
            # the site beside a geom, if it has one
            bodies += [names.tables["site"][name].body for name in entry[1:] if kind == "geom" and name]
        moving = [body for body in bodies if body > 0]
        ties += [(moving[0], other) for other in moving[1:]]
    return ties


def scaled_lengths(values: dict, scale: float) -> dict:
    """Arguments of a spatial :class:`Tendon` with all lengths times `scale`."""
    lengths = {name: scale * values[name] for name in ("target_q", "target_qd", "margin") if name in values}
    for name in ("rest_length", "limits"):
        if values.get(name) is not None:
            lengths[name] = tuple(scale * x for x in values[name])
    imp = values["solimp_limit"]
    return {**values, **lengths, "solimp_limit": (*imp[:2], scale * imp[2], *imp[3:])}


def _limit_settings(model: Mjcf, element: XmlElement, name: str, bounds: tuple[float, float] | None) -> dict:
    """Softness and margin of the limits of a tendon."""
    solref = (*(floats(element, "solreflimit", 2) or ()), *SOLREF)[:2]
    if not is_solref(solref):
        model.findings.remark("tendons have a solreflimit with a 0 or with two signs, which is ignored", name)
        solref = SOLREF
    given = floats(element, "solimplimit", 5) or ()
    margin = element.number("margin", 0.0, low=0.0)
    remark_wide_margin(model.findings, margin, bounds, name)
    return {"solref_limit": tuple(solref), "solimp_limit": (*given, *SOLIMP[len(given) :]), "margin": margin}


def pair_elements(model: Mjcf, names: Names) -> list[XmlElement]:
    """The elements of explicit contact pairs. Raises ImportFileError if a geom does not exist."""
    found = copies(model, model.elements["contact"], _REFERENCES["contact"])
    found = [element for element in found if element.tag == "pair"]
    for element in found:
        for attribute in ("geom1", "geom2"):
            names.need(element, attribute, "geom")
    return found


def read_contacts(model: Mjcf, names: Names) -> tuple[list[dict], list[tuple[str, str]]]:
    """Reads explicit contact pairs of geoms (attributes, as strings), and excluded pairs of bodies.

    Raises:
        ImportFileError: a geom or body does not exist.
    """
    pairs = [dict(element.attributes) for element in pair_elements(model, names)]
    excludes = []
    for element in copies(model, model.elements["contact"], _REFERENCES["contact"]):
        if element.tag != "pair":
            excludes.append((names.need(element, "body1", "body"), names.need(element, "body2", "body")))
    return pairs, excludes


def read_keyframes(model: Mjcf) -> list[Keyframe]:
    """Reads the keyframes of a model. Missing positions and velocities are those of the initial state, as in MuJoCo.

    Raises:
        ImportFileError: a list has another length than the model.
    """
    mocap = sum(body.mocap for body in model.bodies)
    rest = {
        "qpos": [number for body in model.bodies for joint in body.joints for number in _reference(joint, body.pose)],
        "qvel": [0.0 for body in model.bodies for joint in body.joints for _ in range(joint.dofs)],
        "mpos": [0.0] * 3 * mocap,
        "mquat": [0.0] * 4 * mocap,
    }
    result = []
    for element in model.elements["keyframe"]:
        key = Keyframe(element.get("name") or f"key_{len(result)}", element.number("time", 0.0))
        for name in ("qpos", "qvel", "act", "ctrl", "mpos", "mquat"):
            text = element.get(name)
            if text is None:
                continue
            length = len(text.split())
            given = element.numbers(name, length) if length else ()
            if name in rest:
                if length > len(rest[name]) or (name[0] == "m" and length not in (0, len(rest[name]))):
                    raise element.error(
                        f"{name} has {length} numbers, but the model {len(rest[name])}; correct the keyframe"
                    )
                if 0 < length < len(rest[name]):
                    model.findings.remark(
                        "keyframes have too few numbers; the missing ones are taken from the model", key.name
                    )
                given = (*given, *rest[name][length:]) if length else None
            setattr(key, name, given)
        result.append(key)
    return result


def _reference(joint: Joint, pose: np.ndarray) -> list[float]:
    """MuJoCo's coordinates of a joint in the initial pose of the file."""
    if joint.kind == "free":
        return [*pose[:3].tolist(), *np.roll(pose[3:], 1).tolist()]
    return [1.0, 0.0, 0.0, 0.0] if joint.kind == "ball" else [joint.ref]
