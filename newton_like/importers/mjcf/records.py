"""What a MJCF file says, as plain records: numbers in SI units and radians, quaternions x y z w, names resolved to indices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from newton_like.geometry.transforms import transform_multiply
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
    """A joint: it moves its body against the parent, after the joints before it.

    Attributes:
        kind: ``free``, ``ball``, ``slide`` or ``hinge``.
        pos, axis: in the body's frame [m]; the axis has length one.
        ref: coordinate [m or rad] at which the body is where the file places it.
        range: limits [m or rad], or ``None``.
        given: ``stiffness, damping, armature, friction`` as far as the file names them.
        springref: coordinate at which the spring rests.
        springdamper: time constant [s] and damping ratio that stand for stiffness and damping, or ``None``.
        effort: smallest and largest force of all actuators together, or ``None``.
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

    @property
    def dofs(self) -> int:
        return {"free": 6, "ball": 3}.get(self.kind, 1)


@dataclass
class Geom:
    """A geom.

    Attributes:
        kind: MuJoCo's type.
        pose: of its frame in the body's frame.
        size: MuJoCo's sizes [m].
        mass: [kg] or ``None``, where ``density`` holds.
        shell: mass covers the surface.
        group: of the file.
        contact: ``contype, conaffinity, condim, friction, solref, margin, gap`` as far as given.
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
        pose: in the parent's frame, all joints at their reference.
        inertial: mass [kg], centre of mass [m], inertia about it [kg m^2], as ``<inertial>`` says, or ``None``.
        mass, com, inertia: what the body has in the end, in its frame.
    """

    name: str
    parent: int
    pose: np.ndarray
    element: XmlElement
    mocap: bool = False
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
        elements: of ``contact, equality, tendon, actuator, sensor, keyframe``: with defaults, in order.
        replicas: by kind and name: the endings of the names that ``<replicate>`` gave.
        option: of ``<option>`` and its flags, under their names.
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
        """Poses of all bodies in the world of the file, joints at their reference."""
        poses: list[np.ndarray] = []
        for body in self.bodies:
            poses.append(body.pose if body.parent < 0 else transform_multiply(poses[body.parent], body.pose))
        return poses
