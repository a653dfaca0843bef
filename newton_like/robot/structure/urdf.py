"""Robots from URDF files, with the elements of the SDK: capsules, limits of accelerations, and wheels."""

from __future__ import annotations

import contextlib
import os

import numpy as np

from newton_like.geometry.transforms import quat_from_rpy, quat_to_matrix, transform_to_matrix
from newton_like.importers.shared import warn
from newton_like.importers.urdf import UrdfWarning, parse
from newton_like.importers.urdf.parse import UrdfRobot, parse_robot
from newton_like.importers.xml_source import ImportFileError, XmlElement, XmlSource, read_xml
from newton_like.robot.arguments import MAX_BITS, as_object
from newton_like.robot.errors import RobotError, RobotFileError, RobotFileNotFoundError
from newton_like.robot.screws import spatial_inertia
from newton_like.robot.structure.collision import Collision, GeomCapsule
from newton_like.robot.structure.configuration import RobotConfiguration
from newton_like.robot.structure.joint import UNLIMITED, Joint
from newton_like.robot.structure.link import Link, least_moment, link_of_file
from newton_like.robot.structure.mobile_base import (
    MobileBase,
    MobileBaseDifferential,
    MobileBaseMecanum,
    MobileBaseType,
)

_MOBILE_BASES = {"differential": MobileBaseDifferential, "mecanum": MobileBaseMecanum}
_MOBILE_ATTRIBUTES = {"name", "type", "xyz", "rpy", "joints", "params"}


def load_robot_from_urdf(path: str | os.PathLike, base_link_name: str) -> RobotConfiguration:
    """Reads a robot from a URDF file.

    The format is that of :meth:`ModelBuilder.add_urdf`, whose rules for ambiguous files apply: an effort, velocity or acceleration of 0
    means no limit, continuous joints have no position limit, the length of an axis has no meaning, and the inertia of a link
    without mass is 0. In addition this function reads

    * ``<capsule radius length coltype colaffinity>`` in the ``<geometry>`` of a ``<collision>``. Without ``coltype`` and ``colaffinity``,
      which are then 0, a capsule does not collide;
    * ``acceleration`` of ``<limit>``; without it, accelerations are limited to 10 rad/s^2 or m/s^2, as for a new :class:`Joint`;
    * ``<mobile type="differential|mecanum" xyz rpy joints params>`` in ``<robot>``: names of the wheel joints and lengths [m] as in
      :class:`MobileBaseDifferential` and :class:`MobileBaseMecanum`, and the pose of the wheel frame in the base link. Without it, the
      mobile base has the type ``Unspecified``.

    A link without ``<inertial>`` has no mass. Floating and planar joints become fixed, as in the SDK. One :class:`UrdfWarning` lists these
    joints and all other parts of the file that are ambiguous or ignored: collision shapes that are not capsules, ``<mimic>``,
    ``<dynamics>`` and ``<safety_controller>`` of joints, and links that are not below the base link. Visuals are not part of a robot.

    Args:
        path: the file.
        base_link_name: name of the base link. The robot consists of this link and all links below it.

    Returns:
        The robot, with the name in the file.

    Raises:
        TypeError: an argument has another type.
        RobotFileNotFoundError: the file does not exist; a RobotFileError and a FileNotFoundError.
        RobotFileError: the file is wrong, or has no link of that name; a RuntimeError and a ValueError. The message names file, line,
            element and solution.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a path, not {path!r}")
    if os.fspath(path).lstrip("\ufeff \t\r\n").startswith("<"):
        raise RobotFileNotFoundError("path is XML, not the name of a file; use load_robot_from_urdf_data")
    with _errors():
        return _load(read_xml(path), base_link_name)


def load_robot_from_urdf_data(model: str | bytes, base_link_name: str) -> RobotConfiguration:
    """Reads a robot from the text of a URDF file. See :func:`load_robot_from_urdf`.

    Args:
        model: the text.
        base_link_name: name of the base link.

    Returns:
        The robot, with the name in the text.

    Raises:
        TypeError, RobotFileError: as :func:`load_robot_from_urdf`.
    """
    if not isinstance(model, str | bytes):
        raise TypeError(f"model must be the text of a URDF file, not {model!r}")
    if isinstance(model, str) and not model.lstrip("\ufeff \t\r\n").startswith("<"):
        raise RobotFileError("model is not XML; give the text of a URDF file, or its path to load_robot_from_urdf")
    with _errors():
        return _load(read_xml(model), base_link_name)


@contextlib.contextmanager
def _errors():
    """Raises errors of the importers as errors of this package."""
    try:
        yield
    except RobotFileError:
        raise
    except FileNotFoundError as error:
        text = str(error).replace("correct the path, or name its package folder in package_dirs", "correct the path")
        raise RobotFileNotFoundError(text) from error
    except ImportFileError as error:
        raise RobotFileError(str(error)) from error


def _load(source: XmlSource, base_link_name: str) -> RobotConfiguration:
    as_object(base_link_name, str, "base_link_name")
    robot = parse_robot(source)
    if base_link_name not in robot.links:
        shown = ", ".join(robot.links)
        raise RobotFileError(
            f"{source.name}: there is no link {base_link_name!r} for the base link; the links are {shown}"
        )
    links = _tree(robot, base_link_name)
    left_out = robot.links.keys() - links.keys()
    for name in sorted(left_out):
        robot.remark(f"links are not below the base link {base_link_name!r} and are left out", name)
    mobile_base = _mobile_base(robot, {joint.name for link in links.values() for joint in link.child_joints})
    warn(UrdfWarning, robot, source.name)
    return RobotConfiguration(robot.name, links[base_link_name], mobile_base)


def _tree(robot: UrdfRobot, base: str) -> dict[str, Link]:
    """Links of the robot by name, connected by joints."""
    below: dict[str, list[parse.Joint]] = {}
    for joint in robot.joints.values():
        below.setdefault(joint.parent, []).append(joint)
    links = {base: _link(robot, base)}
    waiting = [base]
    while waiting:
        for joint in below.get(waiting.pop(), ()):
            links[joint.child] = _link(robot, joint.child)
            _joint(robot, joint).connect_links(
                links[joint.parent], links[joint.child], transform_to_matrix(joint.origin)
            )
            waiting.append(joint.child)
    return links


def _link(robot: UrdfRobot, name: str) -> Link:
    record = robot.links[name]
    G = np.zeros((6, 6))
    if record.inertial is not None:
        G = spatial_inertia(*record.inertial)
    link = link_of_file(name, G)
    if least_moment(G) < 0.0:
        robot.remark(
            "links have negative principal moments of inertia, which no body can have; they are used as they are", name
        )
    for i, piece in enumerate(record.collisions):
        if piece.geometry.kind != "capsule":
            robot.remark("links have collision shapes that are not capsules, which are ignored", name)
            continue
        radius, length = piece.geometry.size
        collision = Collision(piece.name or f"{name}_collision_{i}")
        collision.set_origin(transform_to_matrix(piece.origin))
        collision.add_geom(
            GeomCapsule(length, radius, *(_bits(robot, piece.geometry.element, name, key) for key in _BITS))
        )
        link.add_collision(collision)
    return link


_BITS = ("coltype", "colaffinity")


def _bits(robot: UrdfRobot, element: XmlElement, link: str, key: str) -> int:
    text = element.get(key)
    if text is None:
        robot.remark("links have capsules without coltype or colaffinity, which is then 0", link)
        return 0
    _understood(robot, f"capsule@{key}")
    if not text.strip().isdecimal() or int(text) > MAX_BITS:
        raise element.error(f"{key}={text!r} of link {link!r} must be an integer from 0 to {MAX_BITS}", RobotFileError)
    return int(text)


def _understood(robot: UrdfRobot, item: str) -> None:
    """Takes an item from the list of those that were not read."""
    robot.not_understood[item] -= 1
    if robot.not_understood[item] == 0:
        del robot.not_understood[item]


def _joint(robot: UrdfRobot, record: parse.Joint) -> Joint:
    name, element = record.name, record.element
    if record.mimic is not None:
        robot.remark("joints have a <mimic>, which is ignored; they move independently", name)
    if record.damping or record.friction:
        robot.remark("joints have damping or friction in <dynamics>, which is ignored", name)
    if name in robot.safety:
        robot.remark("joints have a <safety_controller>, which is ignored", name)
    if record.type in ("floating", "planar"):
        robot.remark("joints are floating or planar, and become fixed", name)
    limit = element.first("limit")
    acceleration = None
    if limit is not None and "acceleration" in limit.attributes:
        _understood(robot, "limit@acceleration")
        acceleration = limit.number("acceleration", low=0.0, infinite=True)
    if record.type not in ("revolute", "continuous", "prismatic"):
        return Joint.make_fixed(name)
    axis = element.first("axis")
    if axis is not None and abs(np.linalg.norm(axis.numbers("xyz", 3)) - 1.0) > _UNIT:
        robot.remark("joints have an axis whose length is not 1; only its direction is used", name)
    make = Joint.make_prismatic if record.type == "prismatic" else Joint.make_revolute
    joint = make(name, axis=record.axis)
    if record.lower is not None:
        joint.set_limit_q(_bounded(record.lower), _bounded(record.upper))
    if record.velocity is not None:
        joint.set_limit_qdot(-_bounded(record.velocity), _bounded(record.velocity))
    if record.effort is not None:
        joint.set_limit_torque(_bounded(record.effort))
    if acceleration == 0.0:
        robot.remark("joints have the acceleration limit 0; no such limit is applied", name)
    if acceleration is not None:
        acceleration = _bounded(acceleration) or UNLIMITED
        joint.set_limit_qddot(-acceleration, acceleration)
    return joint


_UNIT = 1.0e-3
"""Largest deviation of the length of an axis from 1 without a remark. It allows for axes that are written with three digits."""


def _bounded(value: float) -> float:
    return min(max(value, -UNLIMITED), UNLIMITED)


def _mobile_base(robot: UrdfRobot, joints: set[str]) -> MobileBase:
    element = robot.source.root.first("mobile")
    if element is None:
        return MobileBase(MobileBaseType.Unspecified)
    _understood(robot, "robot/mobile")
    for name in sorted(element.attributes.keys() - _MOBILE_ATTRIBUTES):
        robot.not_understood[f"mobile@{name}"] += 1
    for child in element.children:
        robot.not_understood[f"mobile/{child.tag}"] += 1
    kind = element.need_text("type")
    if kind not in _MOBILE_BASES:
        raise element.error(f"type={kind!r} is not a mobile base; use {' or '.join(_MOBILE_BASES)}")
    cls = _MOBILE_BASES[kind]
    wheels = element.need_text("joints").split()
    for wheel in wheels:
        if wheel not in joints:
            raise element.error(
                f"names the wheel joint {wheel!r}, which is not below the base link; the joints are {', '.join(sorted(joints))}"
            )
    T = np.eye(4)
    T[:3, :3] = quat_to_matrix(quat_from_rpy(element.numbers("rpy", 3, (0.0, 0.0, 0.0))))
    T[:3, 3] = element.numbers("xyz", 3, (0.0, 0.0, 0.0))
    try:
        return cls(wheels, element.numbers("params", len(cls.PARAMS)), T)
    except ImportFileError:
        raise
    except RobotError as error:
        raise element.error(str(error)) from error
