"""Parses MJCF into records."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from newton_like.geometry.transforms import (
    IDENTITY,
    quat_rotate,
    quat_to_matrix,
    transform,
    transform_multiply,
    transform_point,
)
from newton_like.importers.mjcf.contact import read_condim, read_limit_settings, read_solimp, remark_wide_margin
from newton_like.importers.mjcf.left_out import LeftOut
from newton_like.importers.mjcf.pose import between, pose_of, quat_from_euler, unit
from newton_like.importers.mjcf.records import Body, Compiler, Geom, Joint, Mjcf, Site
from newton_like.importers.mjcf.source import MAIN, MAX_ELEMENTS, Defaults, Findings, MjcfSource, floats, whole, words
from newton_like.importers.mjcf.tables import ACTUATORS, PHYSICAL, TABLES
from newton_like.importers.xml_source import XmlElement

BOOL = {"true": True, "false": False}
AUTO = {"auto": None, **BOOL}
SWITCH = {"enable": True, "disable": False}

_SIZES = {
    "sphere": 1,
    "capsule": 2,
    "cylinder": 2,
    "ellipsoid": 3,
    "box": 3,
    "plane": 0,
    "hfield": 0,
    "mesh": 0,
    "sdf": 0,
}
"""Kinds of geoms, and the number of their sizes that must be above zero."""

PASSIVE = {"armature": "armature", "friction": "frictionloss", "damping": "damping", "stiffness": "stiffness"}
"""Passive parameters of joints and tendons, and their attributes in the file."""

NOT_LINEAR = "dampers and springs of joints are not linear; their linear part acts"


@dataclass(frozen=True)
class _Place:
    """The context of the children of a body, frame or replica.

    Attributes:
        body: index of their body.
        pose: pose of the enclosing frames and replicas, in the body.
        childclass: default class of elements without a class.
        ending: suffix of names in replicas.
    """

    body: int
    pose: np.ndarray
    childclass: str = MAIN
    ending: str = ""


def parse_mjcf(source: MjcfSource, ignored=(), ignored_classes=()) -> Mjcf:
    """Parses a model.

    Args:
        source: the file.
        ignored: regular expressions; bodies, geoms and sites whose names begin with a match are ignored.
        ignored_classes: the same for the childclass of bodies and the class of geoms and sites.

    Raises:
        ImportFileError: the file is invalid.
    """
    return _Parser(source, ignored, ignored_classes).model


class _Parser:
    def __init__(self, source: MjcfSource, ignored, ignored_classes):
        root = source.root
        self._ignored = {"name": ignored, "class": ignored_classes, "childclass": ignored_classes}
        findings = Findings()
        findings.check_all(root, TABLES)
        self._refuse_attached(root)
        self.model = Mjcf(source, root.get("model", "").strip() or "mujoco", _compiler(root, findings), findings)
        self.defaults = Defaults()
        for element in root.all("default"):
            self.defaults.read(element, ACTUATORS.__contains__)
        self.model.actuator_defaults = self.defaults.actuators
        self.model.option = _option(root, findings)
        self._colors: dict[str, tuple] = {}
        self._names: set[tuple[str, str]] = set()
        self._left_out = LeftOut()
        self._assets(root)
        self._worldbody(root)
        self._lists(root)
        self._left_out.drop_references(self.model.elements, findings)

    def _refuse_attached(self, root: XmlElement) -> None:
        """Raises ImportFileError for models that are attached to bodies or frames which are not ignored."""
        waiting = list(root.all("worldbody"))
        while waiting:
            element = waiting.pop()
            if element.tag == "attach":
                raise element.error(
                    f"the attached model {element.get('model', '')!r} is not read; expand the file first, with "
                    "spec = mujoco.MjSpec.from_file(file); spec.compile(); spec.to_xml(), and save the text in the same folder"
                )
            if element.tag in ("worldbody", "body", "frame", "replicate") and not (
                element.tag == "body" and self._is_ignored(element)
            ):
                waiting += reversed(element.children)

    # ------------------------------------------------------------------------------------------- assets and lists

    def _assets(self, root: XmlElement) -> None:
        for assets in root.all("asset"):
            for child in assets.children:
                element = self.defaults.apply(child)
                if child.tag == "material":
                    color = floats(element, "rgba", 4, (1.0, 1.0, 1.0, 1.0), least=4)
                    self._colors[self._name(element, "material", required=True)] = color
                elif child.tag in ("mesh", "hfield"):
                    table = self.model.meshes if child.tag == "mesh" else self.model.hfields
                    name = element.get("name") or _stem(element.get("file", ""))
                    if not name:
                        raise element.error("has neither a name nor a file; add name='...'")
                    if name in table:
                        raise element.error(f"the {child.tag} {name!r} is defined twice; rename one")
                    table[name] = element

    def _lists(self, root: XmlElement) -> None:
        for section in ("contact", "equality", "tendon", "actuator", "sensor", "keyframe"):
            entries = self.model.elements.setdefault(section, [])
            for group in root.all(section):
                for child in group.children:
                    if child.tag not in TABLES.elements[section]:
                        continue
                    if section in ("sensor", "keyframe"):
                        entries.append(child)
                    elif section == "actuator":
                        self.defaults.check(child.get("class") or MAIN, child)
                        entries.append(child)
                    else:
                        tag = section if section in ("equality", "tendon") else child.tag
                        entries.append(self._apply_as(child, tag))

    def _apply_as(self, element: XmlElement, tag: str) -> XmlElement:
        """An element with the defaults of another tag."""
        stand_in = XmlElement(tag, element.attributes, element.line, element.file)
        return replace(element, attributes=self.defaults.apply(stand_in).attributes)

    # ------------------------------------------------------------------------------------------- bodies

    def _worldbody(self, root: XmlElement) -> None:
        worlds = list(root.all("worldbody"))
        element = worlds[0] if worlds else root
        self.model.bodies.append(Body("world", -1, IDENTITY, element))
        self._names.add(("body", "world"))
        for world in worlds:
            _check_size(world)
            self._children(world, _Place(0, IDENTITY))
        for body in self.model.bodies:
            self._check_joints(body)
        if len(self.model.bodies) == 1 and not self.model.geoms and not self.model.sites:
            raise root.error("has no <worldbody> with bodies, geoms or sites; there is nothing to import")
        for kind in ("geom", "site"):
            # MuJoCo's order and numbering: geoms and sites of a body precede those of its child bodies.
            records = sorted(getattr(self.model, f"{kind}s"), key=lambda record: record.body)
            for number, record in enumerate(records):
                record.name = record.name or self._fresh(kind, f"{kind}_{number}")
            setattr(self.model, f"{kind}s", records)

    def _children(self, element: XmlElement, place: _Place) -> None:
        """Reads all descendants of an element, in order and without recursion: a rope nests hundreds of bodies, beyond Python's recursion
        limit."""
        open_elements = [(iter(element.children), place)]
        while open_elements:
            children, place = open_elements[-1]
            child = next(children, None)
            if child is None:
                open_elements.pop()
            elif child.tag in ("body", "geom", "site") and self._is_ignored(child):
                self._left_out.add(child)
            elif child.tag == "frame":
                pose = transform_multiply(place.pose, pose_of(child, self.model.compiler))
                inside = replace(place, pose=pose, childclass=self._childclass(child, place))
                open_elements.append((iter(child.children), inside))
            elif child.tag == "replicate":
                places = reversed(self._replicas(child, place))
                open_elements += [(iter(child.children), inside) for inside in places]
            elif child.tag == "body":
                open_elements.append((iter(child.children), self._body(child, place)))
            elif child.tag == "geom":
                self._geom(self.defaults.apply(child, place.childclass), place)
            elif child.tag == "site":
                self._site(self.defaults.apply(child, place.childclass), place)
            elif child.tag in ("joint", "freejoint", "inertial"):
                if place.body == 0:
                    # The table excludes these elements from <worldbody>, but not from frames in it.
                    raise child.error("is in the world, which does not move; put it into a <body>")
                if child.tag == "inertial":
                    self._inertial(child, place)
                else:
                    self._joint(self.defaults.apply(child, place.childclass), place)

    def _is_ignored(self, element: XmlElement) -> bool:
        return any(
            re.match(pattern, element.get(attribute))
            for attribute, patterns in self._ignored.items()
            for pattern in patterns
            if element.get(attribute)
        )

    def _childclass(self, element: XmlElement, place: _Place) -> str:
        name = element.get("childclass")
        return self.defaults.check(name, element) if name else place.childclass

    def _replicas(self, element: XmlElement, place: _Place) -> list[_Place]:
        """The contexts of the copies of a ``<replicate>``."""
        count = whole(element, "count", -1, low=0)
        if count < 0:
            raise element.error("has no attribute 'count'; add count='...'")
        if count > MAX_ELEMENTS:
            raise element.error(f"count={count} is above {MAX_ELEMENTS}; lower it")
        offset = element.numbers("offset", 3, (0.0, 0.0, 0.0))
        angles = np.array(element.numbers("euler", 3, (0.0, 0.0, 0.0)))
        separator, digits = element.get("sep", ""), len(str(count))
        inside = replace(place, childclass=self._childclass(element, place))
        at, places = np.zeros(3), []
        for index in range(count):
            # The Euler angles are multiplied, not the rotations: copy 3 of (10, 0, 20) has (30, 0, 60).
            turn = quat_from_euler(index * angles, self.model.compiler)
            ending = f"{separator}{index:0{digits}d}{place.ending}"
            pose = transform_multiply(place.pose, transform(at, turn))
            places.append(replace(inside, pose=pose, ending=ending))
            at = at + quat_rotate(turn, offset)
        return places

    def _name(self, element: XmlElement, kind: str, ending: str = "", *, required: bool = False) -> str:
        """Name of an element; "" for none. The name is recorded to detect duplicates."""
        plain = element.get("name", "")
        if not plain:
            if required:
                raise element.error("has no name; add name='...'")
            return ""
        name = plain + ending
        if (kind, name) in self._names:
            raise element.error(f"the {kind} {name!r} is defined twice; rename one")
        self._names.add((kind, name))
        if ending:
            self.model.replicas.setdefault((kind, plain), []).append(ending)
        return name

    def _fresh(self, kind: str, name: str) -> str:
        """A unique name for an element without a name."""
        while (kind, name) in self._names:
            name += "_"
        self._names.add((kind, name))
        return name

    def _body(self, element: XmlElement, place: _Place) -> _Place:
        """Adds a body and returns the context of its children."""
        index = len(self.model.bodies)
        pose = transform_multiply(place.pose, pose_of(element, self.model.compiler))
        name = self._name(element, "body", place.ending) or self._fresh("body", f"body_{index}")
        mocap = words(element, "mocap", BOOL, False)
        if mocap and place.body != 0:
            raise element.error("only bodies of the world may be mocap bodies; move it there, or drop mocap")
        self.model.bodies.append(Body(name, place.body, pose, element, mocap, element.number("gravcomp", 0.0)))
        return _Place(index, IDENTITY, self._childclass(element, place), place.ending)

    def _check_joints(self, body: Body) -> None:
        """Raises ImportFileError for joints that cannot be combined on a body."""
        element, kinds = body.element, [joint.kind for joint in body.joints]
        if body.mocap and kinds:
            raise element.error("a mocap body has no joints; drop mocap or the joints")
        if "free" in kinds and (len(kinds) > 1 or body.parent != 0):
            raise element.error("a free joint must be the only joint of a body of the world; use other joints here")
        if sum(joint.dofs for joint in body.joints) > 6:
            raise element.error("its joints have more than six degrees of freedom; a rigid body has six")
        if "ball" in kinds and {"ball", "hinge"} & set(kinds[kinds.index("ball") + 1 :]):
            raise element.error("a ball joint has all rotations; remove the rotational joints after it")

    def _inertial(self, element: XmlElement, place: _Place) -> None:
        body = self.model.bodies[place.body]
        if body.inertial is not None:
            raise element.error(f"body {body.name!r} has two <inertial> elements; keep one")
        element.need_text("pos")
        mass = element.number("mass", low=0.0)
        pose = transform_multiply(place.pose, pose_of(element, self.model.compiler))
        rotation = quat_to_matrix(pose[3:])
        if "fullinertia" in element.attributes:
            if any(
                name in element.attributes for name in ("quat", "axisangle", "xyaxes", "zaxis", "euler", "diaginertia")
            ):
                raise element.error("fullinertia includes the orientation; remove the orientation and diaginertia")
            xx, yy, zz, xy, xz, yz = element.numbers("fullinertia", 6)
            inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        else:
            inertia = np.diag(element.numbers("diaginertia", 3, (0.0, 0.0, 0.0)))
        inertia = rotation @ inertia @ rotation.T
        body.inertial = (mass, pose[:3].copy(), 0.5 * (inertia + inertia.T))

    # ------------------------------------------------------------------------------------------- joints

    def _joint(self, element: XmlElement, place: _Place) -> None:
        kinds = ("free", "ball", "slide", "hinge")
        kind = "free" if element.tag == "freejoint" else words(element, "type", kinds, "hinge")
        body = self.model.bodies[place.body]
        number = f"_{len(body.joints)}" if body.joints else ""
        name = self._name(element, "joint", place.ending) or self._fresh("joint", f"{body.name}_joint{number}")
        pos = transform_point(place.pose, element.numbers("pos", 3, (0.0, 0.0, 0.0)))
        axis = unit(element, "axis", element.numbers("axis", 3, (0.0, 0.0, 1.0)))
        joint = Joint(name, kind, pos, quat_rotate(place.pose[3:], axis), element)
        body.joints.append(joint)
        if element.tag == "freejoint":
            if element.get("align", "auto").strip() == "true":
                self.model.findings.remark(
                    "align of free joints is ignored; the frames of their bodies stay as in the file", name
                )
            return
        angle = self.model.compiler.angle if kind in ("hinge", "ball") else float
        if kind in ("hinge", "slide"):
            joint.ref = angle(element.number("ref", 0.0))
            joint.springref = angle(element.number("springref", 0.0))
        for ours, theirs in PASSIVE.items():
            numbers = coefficients(element, theirs)
            if numbers:
                joint.given[ours] = numbers[0]
            if any(numbers[1:]):
                self.model.findings.remark(NOT_LINEAR, name)
        damper = floats(element, "springdamper", 2, least=2)
        if damper is not None and min(damper) > 0.0:
            joint.springdamper = damper
        auto = self.model.compiler.autolimits
        if kind != "free":
            joint.range = limits(element, "range", "limited", auto, angle)
            if joint.range is not None:
                joint.limit = read_limit_settings(self.model, element, name)
            if kind in ("hinge", "slide") and joint.range is not None:
                remark_wide_margin(self.model.findings, joint.limit.get("limit_margin", 0.0), joint.range, name)
        elif words(element, "limited", AUTO) or "range" in element.attributes:
            self.model.findings.remark("free joints have limits, which are not used", name)
        joint.effort = limits(element, "actuatorfrcrange", "actuatorfrclimited", auto)

    # ------------------------------------------------------------------------------------------- geoms and sites

    def _geom(self, element: XmlElement, place: _Place) -> None:
        kind = words(element, "type", tuple(_SIZES), "sphere")
        mesh, hfield = element.get("mesh"), element.get("hfield")
        if kind in ("mesh", "sdf") and not mesh:
            raise element.error(f"a geom of type {kind!r} needs a mesh; add mesh='...'")
        if kind == "hfield" and not hfield:
            raise element.error("a geom of type 'hfield' needs a height field; add hfield='...'")
        for name, table in ((mesh, self.model.meshes), (hfield, self.model.hfields)):
            if name and name not in table:
                shown = ", ".join(sorted(table)[:8]) or "none"
                raise element.error(f"unknown asset {name!r}; there are: {shown}")
        name = self._name(element, "geom", place.ending)
        laid = between(element)
        if laid is not None and kind not in ("capsule", "cylinder", "box", "ellipsoid"):
            raise element.error(f"fromto is for capsules, cylinders, boxes and ellipsoids, not for type {kind!r}")
        size = floats(element, "size", 3, (0.0, 0.0, 0.0))
        size = (*size, 0.0, 0.0)[:3]
        pose = pose_of(element, self.model.compiler)
        if laid is not None:
            pose, half = laid
            size = (size[0], half, 0.0) if kind in ("capsule", "cylinder") else (size[0], size[0], half)
        fits = bool(mesh) and kind not in ("mesh", "sdf")
        for i in range(0 if fits else _SIZES[kind]):
            if size[i] <= 0.0:
                raise element.error(f"size {i} of a {kind} must be above 0 [m], not {size[i]:g}")
        density = element.number("density", 1000.0, low=0.0)
        geom = Geom(
            name,
            kind,
            transform_multiply(place.pose, pose),
            size,
            element,
            place.body,
            mass=element.number("mass", low=0.0) if "mass" in element.attributes else None,
            density=density,
            shell=words(element, "shellinertia", BOOL, False),
            group=whole(element, "group", 0),
            contact=self._contact(element),
            color=floats(element, "rgba", 4, least=4),
            mesh=mesh or None,
            hfield=hfield or None,
        )
        if geom.shell and kind == "mesh":
            raise element.error("shellinertia is not for meshes; write inertia='shell' in the <mesh>")
        if geom.color is None and element.get("material"):
            if element.get("material") not in self._colors:
                raise element.error(f"unknown material {element.get('material')!r}; add it to <asset>")
            geom.color = self._colors[element.get("material")]
        if geom.color is not None:
            geom.color = tuple(min(max(part, 0.0), 1.0) for part in geom.color)
        self.model.geoms.append(geom)

    def _contact(self, element: XmlElement) -> dict:
        contact = {name: whole(element, name, 1) for name in ("contype", "conaffinity")}
        contact["condim"] = read_condim(element)
        if "friction" in element.attributes:
            given = floats(element, "friction", 3)
            if min(given) < 0.0:
                raise element.error(f"friction={element.attributes['friction']!r} must be at least 0")
            contact["friction"] = (*given, *(1.0, 0.005, 0.0001)[len(given) :])
        if "solref" in element.attributes:
            contact["solref"] = floats(element, "solref", 2)
        if "solimp" in element.attributes:
            contact["solimp"] = read_solimp(element)
        if "priority" in element.attributes:
            contact["priority"] = whole(element, "priority", 0)
        if "solmix" in element.attributes:
            contact["solmix"] = element.number("solmix", low=0.0)
        for name in ("margin", "gap"):
            if name in element.attributes:
                contact[name] = element.number(name, low=0.0)
        return contact

    def _site(self, element: XmlElement, place: _Place) -> None:
        kind = words(element, "type", ("sphere", "capsule", "cylinder", "ellipsoid", "box"), "sphere")
        size = floats(element, "size", 3, (0.005, 0.005, 0.005))
        size = tuple(abs(value) or 0.005 for value in (*size, *(0.005, 0.005, 0.005)[len(size) :]))
        laid = between(element)
        pose = pose_of(element, self.model.compiler)
        if laid is not None:
            if kind == "sphere":
                raise element.error("fromto is for capsules, cylinders, boxes and ellipsoids, not for type 'sphere'")
            pose, half = laid
            size = (size[0], half, size[2]) if kind in ("capsule", "cylinder") else (size[0], size[0], half)
        name = self._name(element, "site", place.ending)
        self.model.sites.append(Site(name, kind, transform_multiply(place.pose, pose), size, element, place.body))


def coefficients(element: XmlElement, name: str) -> tuple[float, ...]:
    """Coefficients of a stiffness or damping: of the linear term, which is at least 0, and of higher powers; () for none.

    Raises:
        ImportFileError: the first coefficient is negative.
    """
    numbers = floats(element, name, 3, ())
    if numbers and numbers[0] < 0.0:
        raise element.error(f"{name}={element.attributes[name]!r} must be at least 0")
    return numbers


def limits(element: XmlElement, name: str, flag: str, autolimits: bool, unit=float):
    """Limits of an attribute if they are active, or ``None``.

    Raises:
        ImportFileError: missing or reversed limits, or limits without a flag that says whether they are active.
    """
    limited = words(element, flag, AUTO)
    numbers = floats(element, name, 2, least=2)
    if limited is None:
        limited = numbers is not None and numbers[0] < numbers[1]
        if limited and not autolimits:
            raise element.error(f"has {name} but not {flag}; add {flag}='true', or drop autolimits='false'")
    if not limited:
        return None
    if numbers is None:
        raise element.error(f"has {flag}='true' but no {name}; add {name}='...'")
    if not numbers[0] < numbers[1]:
        raise element.error(f"{name}={element.attributes[name]!r}: the first number must be below the second")
    return unit(numbers[0]), unit(numbers[1])


def _check_size(element: XmlElement) -> None:
    """Counts the descendants of an element, with their replicas. Raises ImportFileError if there are too many."""
    waiting, total = [(element, 1)], 0
    while waiting:
        parent, copies = waiting.pop()
        total += copies
        if total > MAX_ELEMENTS:
            raise parent.error(f"the model has more than {MAX_ELEMENTS} elements with its replicas; lower the counts")
        if parent.tag == "replicate":
            copies *= max(whole(parent, "count", 1), 0)
        waiting += [(child, copies) for child in parent.children]


def _stem(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1].rsplit(".", 1)[0]


def _compiler(root: XmlElement, findings: Findings) -> Compiler:
    result = Compiler()
    for element in root.all("compiler"):
        if element.get("coordinate", "local").strip() != "local":
            raise element.error(
                "coordinate='global' is not supported; load and save the model in MuJoCo 2.3.3 or older, which converts it to local"
            )
        result.degree = words(element, "angle", {"degree": True, "radian": False}, result.degree)
        sequence = element.get("eulerseq", result.eulerseq).strip()
        if len(sequence) != 3 or sequence.lower().strip("xyz"):
            raise element.error(f"eulerseq={sequence!r} must be three of the letters x y z X Y Z")
        result.eulerseq = sequence
        for name in ("assetdir", "meshdir"):
            if name in element.attributes:
                result.meshdir = element.attributes[name]
        for name in ("autolimits", "strippath", "balanceinertia", "fusestatic", "discardvisual", "fitaabb"):
            setattr(result, name, words(element, name, BOOL, getattr(result, name)))
        result.inertiafromgeom = words(element, "inertiafromgeom", AUTO, result.inertiafromgeom)
        result.inertiagrouprange = floats(element, "inertiagrouprange", 2, result.inertiagrouprange, least=2)
        for name in ("boundmass", "boundinertia"):
            setattr(result, name, element.number(name, getattr(result, name), low=0.0))
        result.settotalmass = element.number("settotalmass", result.settotalmass)
        if element.get("alignfree", "false").strip() == "true":
            findings.remark(
                "align of free joints is ignored; the frames of their bodies stay as in the file", "alignfree"
            )
    return result


def _option(root: XmlElement, findings: Findings) -> dict:
    """Values of ``<option>``, as numbers if possible and else as strings, and its flags as bools."""
    result: dict = {"timestep": 0.002}
    for element in root.all("option"):
        for name, text in element.attributes.items():
            if name == "gravity":
                result[name] = element.numbers(name, 3)
            elif name == "timestep":
                result[name] = element.number(name)
                if result[name] <= 0.0:
                    raise element.error(f"timestep={text!r} must be above 0 [s]")
            else:
                result[name] = _value(text)
        for flag in element.all("flag"):
            for name in flag.attributes:
                result[f"flag {name}"] = words(flag, name, SWITCH)
    for name in ("density", "viscosity", "wind", "actuatorgroupdisable"):
        if result.get(name, 0.0) not in (0.0, (0.0, 0.0, 0.0)):
            findings.remark("options without effect here", name)
    if result.get("flag override"):
        for name in [name for name in result if name.startswith("o_")] or ["override"]:
            findings.remark("contacts keep their own settings; the override of all contacts is ignored", name)
    for name in PHYSICAL:
        if result.get(f"flag {name}") is False:
            findings.remark("flags that disable features are ignored", name)
    return result


def _value(text: str):
    try:
        numbers = tuple(float(part) for part in text.split())
    except ValueError:
        return text
    if not numbers or not all(map(math.isfinite, numbers)):
        return text
    return numbers[0] if len(numbers) == 1 else numbers
