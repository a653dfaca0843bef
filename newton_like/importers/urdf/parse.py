"""Parses URDF files into checked records, in the units and frames of the file.

Format: http://wiki.ros.org/urdf/XML. This file does not use the model builder.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from newton_like.geometry.transforms import IDENTITY, quat_from_rpy, quat_to_matrix, transform
from newton_like.importers.urdf.motors import SafetyController, Transmission, read_safety, read_transmission
from newton_like.importers.xml_source import XmlElement, XmlSource
from newton_like.options import did_you_mean

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
GEOMETRIES = ("box", "sphere", "cylinder", "capsule", "mesh")

_KNOWN = {
    "robot": {"link", "joint", "material", "transmission"},
    "link": {"inertial", "visual", "collision"},
    "inertial": {"origin", "mass", "inertia"},
    "visual": {"origin", "geometry", "material"},
    "collision": {"origin", "geometry", "material"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller"},
    "material": {"color"},
}
"""Known elements, by parent element. ``UrdfRobot.not_understood`` counts all others."""

_ATTRIBUTES = {
    "robot": {"name", "version"},
    "link": {"name"},
    "visual": {"name"},
    "collision": {"name"},
    "material": {"name"},
    "color": {"rgba"},
    "origin": {"xyz", "rpy"},
    "mass": {"value"},
    "inertia": {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"},
    "box": {"size"},
    "sphere": {"radius"},
    "cylinder": {"radius", "length"},
    "capsule": {"radius", "length", "height"},
    "mesh": {"filename", "scale"},
    "joint": {"name", "type"},
    "parent": {"link"},
    "child": {"link"},
    "axis": {"xyz"},
    "limit": {"lower", "upper", "effort", "velocity"},
    "dynamics": {"damping", "friction"},
    "mimic": {"joint", "multiplier", "offset"},
    "safety_controller": {"soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"},
}
"""Known attributes, by element. ``UrdfRobot.not_understood`` counts all others."""


@dataclass(frozen=True)
class Geometry:
    """A shape.

    Attributes:
        kind: one of ``GEOMETRIES``.
        size: box: full sides; sphere: radius; cylinder: radius, length; capsule: radius, length without the caps; mesh:
            factors along x, y, z.
        filename: file name of the mesh, as written.
        element: its element in the file.
    """

    kind: str
    size: tuple[float, ...]
    filename: str | None
    element: XmlElement


@dataclass(frozen=True)
class Piece:
    """A visual or collision of a link: name, pose in the link frame, geometry; red, green, blue, alpha or ``None``."""

    name: str | None
    origin: np.ndarray
    geometry: Geometry
    rgba: tuple[float, ...] | None


@dataclass
class Link:
    """A link. Mass, centre of mass and inertia (about the centre of mass, link axes) are ``None`` if the file has none."""

    name: str
    element: XmlElement
    inertial: tuple[float, np.ndarray, np.ndarray] | None = None
    visuals: list[Piece] = field(default_factory=list)
    collisions: list[Piece] = field(default_factory=list)


@dataclass
class Joint:
    """A joint.

    Attributes:
        name, type, parent, child: as in the file.
        element: its element in the file.
        origin: pose of the joint (and child link) frame in the parent link.
        axis: unit vector in the joint frame; x for fixed and floating joints.
        lower, upper: position limits [rad or m], or ``None``.
        effort, velocity: limits [N m or N, rad/s or m/s], ``None`` if the file has none or zero.
        damping, friction: ``None`` if the file has none.
        mimic: ``(joint, multiplier, offset)`` or ``None``.
        armature: reflected inertia of rotors [kg m^2 or kg], or ``None``.
        limit_ke, limit_kd: spring and damper beyond the limits, or ``None``.
    """

    name: str
    type: str
    parent: str
    child: str
    element: XmlElement
    origin: np.ndarray
    axis: np.ndarray
    lower: float | None = None
    upper: float | None = None
    effort: float | None = None
    velocity: float | None = None
    damping: float | None = None
    friction: float | None = None
    mimic: tuple[str, float, float] | None = None
    armature: float | None = None
    limit_ke: float | None = None
    limit_kd: float | None = None


@dataclass
class UrdfRobot:
    """A robot.

    Attributes:
        name: name of the robot.
        source: the file.
        links, joints: records by name, in file order.
        root: name of the link that is not the child of a joint.
        remarks: ambiguous or invalid parts of the file and their interpretation: statements, each with the
            names of the entities concerned.
        not_understood: numbers of items that were not read: elements by ``parent/tag``, attributes by ``tag@name``,
            text in elements by ``tag/text``.
        unused: numbers of known elements without meaning for a simulation, by ``parent/tag``.
        transmissions: records in file order.
        safety: safety controllers by joint name.
    """

    name: str
    source: XmlSource
    links: dict[str, Link] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    root: str = ""
    remarks: dict[str, list[str]] = field(default_factory=dict)
    not_understood: Counter = field(default_factory=Counter)
    unused: Counter = field(default_factory=Counter)
    transmissions: list[Transmission] = field(default_factory=list)
    safety: dict[str, SafetyController] = field(default_factory=dict)

    def remark(self, statement: str, name: str) -> None:
        """Adds the remark ``statement`` about ``name``."""
        names = self.remarks.setdefault(statement, [])
        if name not in names:
            names.append(name)


_UNUSED = {("joint", "calibration")}


def parse_robot(source: XmlSource) -> UrdfRobot:
    """Reads and checks a robot.

    Raises:
        ImportFileError: the file is invalid; the message names file, line, element and solution.
    """
    root = source.root
    if root.tag != "robot":
        cure = "this is MJCF; read it with add_mjcf" if root.tag == "mujoco" else "is this another kind of file?"
        raise root.error(f"a URDF file starts with <robot>, not <{root.tag}>; {cure}")
    name = root.get("name", "").strip()
    robot = UrdfRobot(name or (Path(source.name).stem if source.folder is not None else "robot"), source)
    if not name:
        robot.remarks[f"<robot> has no name, and is called {robot.name!r}"] = []
    _take_stock(root, robot)
    palette = _materials(robot)
    for element in root.all("link"):
        _add(_link(element, robot, palette), robot.links)
    for element in root.all("joint"):
        joint = _joint(element, robot)
        _add(joint, robot.joints)
        safety = element.first("safety_controller")
        if safety is not None:
            robot.safety[joint.name] = read_safety(safety)
    _read_transmissions(robot)
    _check_tree(robot)
    _resolve_mimics(robot)
    return robot


def _add(record: Link | Joint, table: dict) -> None:
    """Adds a record by name. Raises ImportFileError for a duplicate name."""
    if record.name in table:
        first, kind = table[record.name].element.line, record.element.tag
        raise record.element.error(f"there is a {kind} of that name in line {first} already; rename one")
    table[record.name] = record


def _take_stock(root: XmlElement, robot: UrdfRobot) -> None:
    """Counts the items that are not read. Raises ImportFileError for xacro files."""
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag.startswith("xacro:"):
            raise element.error("this is a xacro macro, not URDF; run 'xacro file.xacro > file.urdf' first")
        for name in element.attributes.keys() - _ATTRIBUTES.get(element.tag, set()):
            if not name.startswith("xmlns"):
                robot.not_understood[f"{element.tag}@{name}"] += 1
        if any(text.strip() for text in element.texts):
            robot.not_understood[f"{element.tag}/text"] += 1
        known = _KNOWN.get(element.tag)
        for child in element.children:
            if (element.tag, child.tag) == ("robot", "transmission"):
                continue  # its reader counts unknown items
            if known is None or child.tag in known or child.tag.startswith("xacro:"):
                # The children of <geometry> are checked by its reader.
                stack.append(child)
            elif (element.tag, child.tag) in _UNUSED:
                robot.unused[f"{element.tag}/{child.tag}"] += 1
            else:
                robot.not_understood[f"{element.tag}/{child.tag}"] += 1


def _materials(robot: UrdfRobot) -> dict[str, tuple[float, ...]]:
    """Colours by name. Any visual may define a colour for others, so all materials of the file are read first."""
    palette = {}
    root = robot.source.root
    inner = [piece for link in root.all("link") for tag in ("visual", "collision") for piece in link.all(tag)]
    for parent in (root, *inner):
        for element in parent.all("material"):
            rgba, name = _color(element, robot), element.get("name")
            if rgba is not None and name:
                palette.setdefault(name, rgba)
    return palette


def _color(element: XmlElement, robot: UrdfRobot) -> tuple[float, ...] | None:
    color = element.first("color")
    if color is None:
        return None
    text = color.get("rgba")
    count = 4 if text is None else len(text.split())
    if count not in (3, 4):
        robot.remark("colours do not have 3 or 4 numbers and are ignored", f"{text!r} in line {color.line}")
        return None
    rgba = color.numbers("rgba", count)
    if count == 3:
        robot.remark("colours have no alpha, which is set to 1", f"{text!r} in line {color.line}")
        rgba = (*rgba, 1.0)
    if not all(0.0 <= part <= 1.0 for part in rgba):
        robot.remark("colours are not from 0 to 1 and are clipped", f"{color.get('rgba')!r} in line {color.line}")
    return tuple(min(max(part, 0.0), 1.0) for part in rgba)


def _origin(element: XmlElement) -> np.ndarray:
    origin = element.first("origin")
    if origin is None:
        return IDENTITY.copy()
    return transform(
        origin.numbers("xyz", 3, (0.0, 0.0, 0.0)), quat_from_rpy(origin.numbers("rpy", 3, (0.0, 0.0, 0.0)))
    )


def _link(element: XmlElement, robot: UrdfRobot, palette: dict) -> Link:
    link = Link(element.need_text("name"), element)
    inertial = element.first("inertial")
    if inertial is not None:
        link.inertial = _inertial(inertial, link.name, robot)
    for tag, pieces in (("visual", link.visuals), ("collision", link.collisions)):
        for piece in element.all(tag):
            geometry = _geometry(piece, tag, link.name, robot)
            if geometry is None:
                continue
            rgba, material = None, piece.first("material")
            if material is not None:
                rgba = _color(material, robot) or palette.get(material.get("name", ""))
                if rgba is None and tag == "visual" and material.first("color") is None:
                    robot.remark("links use a material without a colour; a default colour is used", link.name)
            pieces.append(Piece(piece.get("name"), _origin(piece), geometry, rgba))
    return link


def _inertial(element: XmlElement, link: str, robot: UrdfRobot) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Mass, centre of mass and inertia of an ``<inertial>``; ``None`` if it states no mass."""
    mass_element, matrix_element = element.first("mass"), element.first("inertia")
    if mass_element is None or "value" not in mass_element.attributes:
        robot.remark("links have an <inertial> without a mass, which is ignored", link)
        return None
    mass = mass_element.number("value")
    if mass < 0.0:
        raise mass_element.error(f"link {link!r} has the mass {mass:g} kg; a mass is at least 0")
    if matrix_element is not None and not {"ixx", "iyy", "izz"} <= matrix_element.attributes.keys():
        robot.remark("links have an <inertia> without ixx, iyy or izz, which is ignored: the mass is a point", link)
        return mass, _origin(element)[:3], np.zeros((3, 3))
    matrix = np.zeros((3, 3)) if matrix_element is None else _inertia(matrix_element, link, robot)
    if mass == 0.0 and np.any(matrix):
        robot.remark("links have inertia but no mass; the inertia is ignored", link)
        matrix = np.zeros((3, 3))
    if mass > 0.0 and not np.any(matrix):
        robot.remark("links have mass without inertia: the mass is a point", link)
    origin = _origin(element)
    rotation = quat_to_matrix(origin[3:])
    return mass, origin[:3], rotation @ matrix @ rotation.T


def _inertia(element: XmlElement, link: str, robot: UrdfRobot) -> np.ndarray:
    """The matrix of an ``<inertia>``, in the axes of its ``<inertial>``."""
    ixx, iyy, izz = (element.number(name) for name in ("ixx", "iyy", "izz"))
    ixy, ixz, iyz = (element.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    if not {"ixy", "ixz", "iyz"} <= element.attributes.keys():
        robot.remark("links have an <inertia> without ixy, ixz or iyz, which are set to 0", link)
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def remark_size_zero(robot: UrdfRobot, tag: str, link: str) -> None:
    """Adds the remark for a shape of size zero, which is left out."""
    robot.remark(f"links have a {tag} of size zero, which is ignored", link)


def _geometry(piece: XmlElement, tag: str, link: str, robot: UrdfRobot) -> Geometry | None:
    """The geometry of a piece; ``None`` for a shape of size zero, except for the capsule of a collision."""
    holder = piece.need("geometry")
    if len(holder.children) != 1 or holder.children[0].tag not in GEOMETRIES:
        found = ", ".join(f"<{child.tag}>" for child in holder.children) or "nothing"
        raise holder.error(f"in a {tag} of link {link!r} must contain one of {', '.join(GEOMETRIES)}, not {found}")
    element = holder.children[0]
    kind, filename = element.tag, None
    if kind == "box":
        size = element.numbers("size", 3)
    elif kind == "sphere":
        size = (element.number("radius"),)
    elif kind == "cylinder":
        size = (element.number("radius"), element.number("length"))
    elif kind == "capsule":
        # Most readers expect 'length', some 'height'.
        if {"length", "height"} <= element.attributes.keys():
            raise element.error("has both length and height, which have the same meaning; keep one")
        size = (element.number("radius"), element.number("height" if "height" in element.attributes else "length"))
    else:
        filename = element.need_text("filename")
        size, scale = (1.0, 1.0, 1.0), element.get("scale", "").split()
        if len(scale) > 3:
            robot.remark("meshes have a scale of more than three numbers, of which the first three are used", link)
            element = replace(element, attributes={**element.attributes, "scale": " ".join(scale[:3])})
        if scale:
            size = element.numbers("scale", 3)
        if 0.0 in size:
            remark_size_zero(robot, tag, link)
            return None
        return Geometry(kind, size, filename, element)
    # a capsule of length 0 is a sphere; one of radius 0 is a line, which robots may have and models not
    smallest = size[0] if kind == "capsule" else min(size)
    if min(size) < 0.0:
        raise element.error(
            f"in a {tag} of link {link!r}: sizes must be at least 0 [m]; correct them or remove the {tag}"
        )
    if smallest == 0.0 and (tag == "visual" or kind != "capsule"):
        remark_size_zero(robot, tag, link)
        return None
    return Geometry(kind, size, filename, element)


def _joint(element: XmlElement, robot: UrdfRobot) -> Joint:
    kind = element.need_text("type")
    if kind not in JOINT_TYPES:
        raise element.error(f"type={kind!r} is not a joint type; use one of {', '.join(JOINT_TYPES)}")
    joint = Joint(
        name=element.need_text("name"),
        type=kind,
        parent=element.need("parent").need_text("link"),
        child=element.need("child").need_text("link"),
        element=element,
        origin=_origin(element),
        axis=np.array([1.0, 0.0, 0.0]),
    )
    for end, name in (("parent", joint.parent), ("child", joint.child)):
        if name not in robot.links:
            raise element.need(end).error(
                f"joint {joint.name!r} names the unknown link {name!r}{_similar(name, robot.links)}"
            )
    if joint.parent == joint.child:
        raise element.error(f"link {joint.child!r} is its own parent; correct <parent> or <child>")
    axes = list(element.all("axis"))
    if len(axes) > 1:
        robot.remark("joints have several <axis>; the first one is used", joint.name)
    axis = axes[0] if axes else None
    if axis is not None and kind not in ("fixed", "floating"):
        vector = np.array(axis.numbers("xyz", 3))
        length = np.linalg.norm(vector)
        if length < 1.0e-9:
            raise axis.error(
                f"of joint {joint.name!r} has length zero; give a direction such as xyz='0 0 1', or make it fixed"
            )
        joint.axis = vector / length
    if kind == "floating":
        for tag in ("limit", "dynamics"):
            if element.first(tag) is not None:
                robot.remark(f"floating joints have a <{tag}>, which is not used", joint.name)
    elif kind != "fixed":
        _read_dynamics(element, joint)
        _read_limits(element, joint, robot)
    mimic = element.first("mimic")
    if mimic is not None and kind == "fixed":
        robot.remark("fixed joints have a <mimic>, which is not used", joint.name)
    elif mimic is not None:
        if kind not in ("revolute", "continuous", "prismatic"):
            raise mimic.error(f"joint {joint.name!r} is {kind} and cannot follow another; remove <mimic>")
        joint.mimic = (mimic.need_text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
    return joint


def _read_dynamics(element: XmlElement, joint: Joint) -> None:
    dynamics = element.first("dynamics")
    if dynamics is not None:
        for name in ("damping", "friction"):
            if name in dynamics.attributes:
                setattr(joint, name, dynamics.number(name, low=0.0))


def _read_limits(element: XmlElement, joint: Joint, robot: UrdfRobot) -> None:
    limit = element.first("limit")
    limited = joint.type in ("revolute", "prismatic")
    if limit is None:
        if limited:
            robot.remark(f"{joint.type} joints have no <limit>; they are unlimited", joint.name)
        return
    effort = limit.number("effort", 0.0, low=0.0, infinite=True)
    velocity = limit.number("velocity", 0.0, low=0.0, infinite=True)
    joint.effort, joint.velocity = effort or None, velocity or None
    blank = {name for name, value in (("effort", effort), ("velocity", velocity)) if value == 0.0}
    if blank:
        # Exporters write 0 for values that were not set, and a joint with speed limit 0 makes no sense.
        robot.remark(
            f"joints have no {' and '.join(sorted(blank))} limit (0 or missing); no such limit is applied", joint.name
        )
    given = [name for name in ("lower", "upper") if name in limit.attributes]
    lower = limit.number("lower", 0.0, infinite=True)
    upper = limit.number("upper", 0.0, infinite=True)
    if lower > upper:
        raise limit.error(f"joint {joint.name!r}: lower {lower:g} is above upper {upper:g}; swap them")
    if joint.type == "continuous":
        if lower != 0.0 or upper != 0.0:
            robot.remark("continuous joints have position limits, which are not used", joint.name)
    elif limited and not given:
        robot.remark(
            f"{joint.type} joints have a <limit> without lower and upper; they have no position limit", joint.name
        )
    elif limited and lower == upper == 0.0 and len(blank) == 2:
        robot.remark(
            "joints have a <limit> with zeros only, which is interpreted as missing: no position limit", joint.name
        )
    elif given:
        joint.lower, joint.upper = lower, upper
        if len(given) == 1:
            robot.remark(
                "joints have a <limit> with one of lower and upper; the other is 0, as URDF defines", joint.name
            )


def _read_transmissions(robot: UrdfRobot) -> None:
    def count(name: str) -> None:
        robot.not_understood[name] += 1

    for element in robot.source.root.all("transmission"):
        transmission = read_transmission(element, count, robot.remark)
        robot.transmissions.append(transmission)
        if any(end.name not in robot.joints for end in transmission.joints):
            robot.remark("transmissions name joints that do not exist, and are ignored", transmission.name)


def _check_tree(robot: UrdfRobot) -> None:
    root_element = robot.source.root
    if not robot.links:
        raise root_element.error("has no <link>; a robot needs at least one")
    parents: dict[str, Joint] = {}
    for joint in robot.joints.values():
        if joint.child in parents:
            first = parents[joint.child]
            raise joint.element.error(
                f"link {joint.child!r} is the child of joint {first.name!r} (line {first.element.line}) already; URDF "
                "is a tree, remove one of the two joints"
            )
        parents[joint.child] = joint
    rooted: set[str] = set()
    for start in robot.links:
        path, name = {}, start  # a dict for its order
        while name in parents and name not in path and name not in rooted:
            path[name] = None
            name = parents[name].parent
        if name in path:
            names = list(path)
            cycle = [*names[names.index(name) :], name]
            raise parents[name].element.error(
                f"the joints form a cycle: {' <- '.join(cycle)}; URDF is a tree, remove one of them"
            )
        rooted.update(path)
    roots = [name for name in robot.links if name not in parents]
    if len(roots) > 1:
        raise robot.links[roots[1]].element.error(
            f"there are {len(roots)} root links ({', '.join(roots[:5])}); connect all but one with a joint, fixed for "
            "instance"
        )
    robot.root = roots[0]


def _resolve_mimics(robot: UrdfRobot) -> None:
    """Resolves chains of mimic joints to their first leader: q = multiplier * q_leader + offset.

    A joint whose leader does not exist follows no joint.
    """
    for joint in robot.joints.values():
        if joint.mimic is not None and joint.mimic[0] not in robot.joints:
            robot.remark(
                "joints follow a joint that does not exist, and move freely", f"{joint.name} ({joint.mimic[0]})"
            )
            joint.mimic = None
    resolved: dict[str, tuple[str, float, float]] = {}
    for joint in robot.joints.values():
        name, chain = joint.name, {}  # a dict for its order
        while name not in resolved and robot.joints[name].mimic is not None:
            chain[name] = None
            leader = robot.joints[name].mimic[0]
            _check_leader(robot, name, leader, chain)
            name = leader
        for follower in reversed(chain):
            leader, multiplier, offset = robot.joints[follower].mimic
            if leader in resolved:
                leader, further, shift = resolved[leader]
                multiplier, offset = multiplier * further, offset + multiplier * shift
            resolved[follower] = (leader, multiplier, offset)
    for follower, mimic in resolved.items():
        robot.joints[follower].mimic = mimic


def _check_leader(robot: UrdfRobot, name: str, leader: str, chain: dict[str, None]) -> None:
    element = robot.joints[name].element.need("mimic")
    if leader in chain:
        raise element.error(f"joints follow each other in a circle: {' -> '.join([*chain, leader])}; break it")
    kind = robot.joints[leader].type
    if kind not in ("revolute", "continuous", "prismatic"):
        raise element.error(f"joint {name!r} follows {leader!r}, which is {kind} and has no position; remove <mimic>")


def _similar(name: str, names) -> str:
    """A hint with the most similar name, for error messages."""
    return did_you_mean(name, names, "; add it or correct the name")
