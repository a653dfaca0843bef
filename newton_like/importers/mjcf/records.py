"""Records of an MJCF file: numbers in SI units and radians, quaternions x y z w, names resolved to indices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from newton_like.geometry.transforms import quat_from_axis_angle, quat_rotate, transform, transform_multiply
from newton_like.importers.mjcf.source import Findings, MjcfSource
from newton_like.importers.xml_source import XmlElement


@dataclass
class Compiler:
    """Settings of ``<compiler>``, under their names in the file."""

    degree: bool = True
    autolimits: bool = True
    eulerseq: str = "xyz"
    meshdir: str = ""
    strippath: bool = False
    inertiafromgeom: bool | None = None
    inertiagrouprange: tuple[float, float] = (0.0, 5.0)
    balanceinertia: bool = False
    boundmass: float = 0.0
    boundinertia: float = 0.0
    settotalmass: float = -1.0
    fusestatic: bool = False
    discardvisual: bool = False
    fitaabb: bool = False

    def angle(self, value: float) -> float:
        """An angle of the file in radians."""
        return float(np.deg2rad(value)) if self.degree else float(value)


@dataclass
class Joint:
    """A joint. It moves its body relative to the parent, after the preceding joints of the body.

    Attributes:
        kind: ``free``, ``ball``, ``slide`` or ``hinge``.
        pos, axis: position [m] and unit axis in the body's frame.
        ref: coordinate [m or rad] of the body's pose in the file.
        range: limits [m or rad], or ``None``.
        given: those of ``stiffness, damping, armature, friction`` that the file has.
        springref: rest coordinate of the spring.
        springdamper: time constant [s] and damping ratio instead of stiffness and damping, or ``None``.
        effort: smallest and largest force of all actuators together, or ``None``.
        limit: settings of the limits that the file has, by the names of custom attributes in the namespace ``mujoco``.
    """

    name: str
    kind: str
    pos: np.ndarray
    axis: np.ndarray
    element: XmlElement
    ref: float = 0.0
    range: tuple[float, float] | None = None
    given: dict[str, float] = field(default_factory=dict)
    springref: float = 0.0
    springdamper: tuple[float, float] | None = None
    effort: tuple[float, float] | None = None
    limit: dict = field(default_factory=dict)

    @property
    def dofs(self) -> int:
        return {"free": 6, "ball": 3}.get(self.kind, 1)


@dataclass
class Geom:
    """A geom.

    Attributes:
        kind: MuJoCo's type.
        pose: pose of its frame in the body's frame.
        size: MuJoCo's sizes [m].
        mass: [kg]; ``None``: determined by ``density``.
        shell: whether the mass is on the surface.
        group: group in the file.
        contact: those of ``contype, conaffinity, condim, priority, friction, solmix, solref, solimp, margin, gap`` that the file has.
        color: red, green, blue, opacity, or ``None``.
        mesh, hfield: names of assets.
    """

    name: str
    kind: str
    pose: np.ndarray
    size: tuple[float, ...]
    element: XmlElement
    body: int
    mass: float | None = None
    density: float = 1000.0
    shell: bool = False
    group: int = 0
    contact: dict = field(default_factory=dict)
    color: tuple[float, ...] | None = None
    mesh: str | None = None
    hfield: str | None = None

    @property
    def masks(self) -> tuple[int, int]:
        return self.contact.get("contype", 1), self.contact.get("conaffinity", 1)


@dataclass
class Site:
    """A site: a named frame on a body."""

    name: str
    kind: str
    pose: np.ndarray
    size: tuple[float, float, float]
    element: XmlElement
    body: int


@dataclass
class Body:
    """A body; the first one of a model is the world.

    Attributes:
        parent: index of the parent, -1 for the world.
        pose: pose in the parent's frame, with all joints at their reference.
        gravcomp: share of its weight that is taken away.
        inertial: mass [kg], centre of mass [m], inertia about it [kg m^2] of ``<inertial>``, or ``None``.
        mass, com, inertia: final values, in the body's frame.
    """

    name: str
    parent: int
    pose: np.ndarray
    element: XmlElement
    mocap: bool = False
    gravcomp: float = 0.0
    joints: list[Joint] = field(default_factory=list)
    inertial: tuple | None = None
    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass
class Mjcf:
    """A model.

    Attributes:
        bodies: parents before children, depth first, as in the file; the world first.
        geoms, sites: of all bodies, in the order of their bodies.
        meshes, hfields: asset elements by name.
        elements: elements of ``contact, equality, tendon, actuator, sensor, keyframe``, with defaults, in order.
        replicas: suffixes of the names of copies by ``<replicate>``, by kind and name.
        option: attributes of ``<option>`` and its flags, by name.
    """

    source: MjcfSource
    name: str
    compiler: Compiler
    findings: Findings
    bodies: list[Body] = field(default_factory=list)
    geoms: list[Geom] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    meshes: dict[str, XmlElement] = field(default_factory=dict)
    hfields: dict[str, XmlElement] = field(default_factory=dict)
    elements: dict[str, list[XmlElement]] = field(default_factory=dict)
    actuator_defaults: dict[str, list[list[XmlElement]]] = field(default_factory=dict)
    replicas: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    option: dict = field(default_factory=dict)

    def children(self) -> list[list[int]]:
        """Indices of the children of each body."""
        below: list[list[int]] = [[] for _ in self.bodies]
        for index, body in enumerate(self.bodies[1:], 1):
            below[body.parent].append(index)
        return below

    def world_poses(self) -> list[np.ndarray]:
        """Poses of all bodies in the world of the file, with joints at their reference."""
        poses: list[np.ndarray] = []
        for body in self.bodies:
            poses.append(body.pose if body.parent < 0 else transform_multiply(poses[body.parent], body.pose))
        return poses

    def spring_poses(self) -> list[np.ndarray]:
        """The same with hinges and slides where their springs rest, at ``springref``."""
        poses: list[np.ndarray] = []
        for body in self.bodies:
            pose = body.pose if body.parent < 0 else transform_multiply(poses[body.parent], body.pose)
            for joint in body.joints:
                way = joint.springref - joint.ref
                if joint.kind == "slide":
                    pose = transform_multiply(pose, transform(way * joint.axis))
                elif joint.kind == "hinge":
                    turn = quat_from_axis_angle(joint.axis, way)
                    pose = transform_multiply(pose, transform(joint.pos - quat_rotate(turn, joint.pos), turn))
            poses.append(pose)
        return poses
