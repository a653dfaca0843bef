"""Records of the physics of a USD stage, in SI units and the stage's axes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from newton_like.importers.usd.joints import Joint
from newton_like.importers.usd.shapes import Piece
from newton_like.importers.usd.values.names import Leftovers
from newton_like.importers.usd.values.units import Reader, Units


@dataclass
class Mass:
    """MassAPI of a body or collider in SI units and its frame; values that are not given are ``None``.

    The inertia is about the centre of mass, a full matrix.
    """

    mass: float | None = None
    density: float | None = None
    com: np.ndarray | None = None
    inertia: np.ndarray | None = None


@dataclass(frozen=True)
class Material:
    """A physics material: fields of ``ShapeConfig`` and a density [kg/m^3] or ``None``."""

    settings: dict
    density: float | None


@dataclass
class Body:
    """A rigid body: pose [m] and velocities (of the centre of mass [m/s], angular [rad/s]) in the stage."""

    path: str
    pose: np.ndarray
    mass: Mass
    velocity: np.ndarray
    kinematic: bool


@dataclass
class Shape:
    """A collider, a visual or a site.

    Attributes:
        path: path of the prim.
        body: path of its body, ``None`` for the world.
        pieces: shapes that it consists of, with poses in the stage.
        place: frame of the prim in the stage, the frame of ``mass``.
        collider: whether it has a CollisionAPI.
        collides: whether the CollisionAPI is enabled; only then its mass is used.
        site: whether it is only a named frame.
        shown: whether viewers of USD draw it.
        mass, material: properties of colliders.
        settings: fields of ``ShapeConfig`` given on the prim.
        color, opacity: display colour and opacity, or ``None``.
    """

    path: str
    body: str | None
    pieces: list[Piece]
    place: np.ndarray
    collider: bool = False
    collides: bool = False
    site: bool = False
    shown: bool = True
    mass: Mass = field(default_factory=Mass)
    material: Material | None = None
    settings: dict = field(default_factory=dict)
    color: tuple | None = None
    opacity: float | None = None


@dataclass(frozen=True)
class Tendon:
    """A tendon of the file, in the file's units.

    Attributes:
        path: path of its prim.
        kind: ``mjc`` for a prim of type MjcTendon, ``physx`` for the tendon schemas and attributes of PhysX on a joint or body; a tendon of
            PhysX has several such prims.
        targets: paths of the joints, sites or bodies of the tendon.
        settings: attributes by name.
    """

    path: str
    kind: str
    targets: tuple[str, ...]
    settings: dict


@dataclass
class Scene:
    """The records of a stage.

    Attributes:
        source: name of the file.
        units: units of the stage.
        up_axis: up axis of the stage, ``"X"``, ``"Y"`` or ``"Z"``.
        gravity: [m/s^2] in the stage, or ``None`` without a physics scene.
        bodies, joints, shapes: records by path, in the order of the stage.
        roots: self-collision setting (or ``None``) by path of each prim with an ArticulationRootAPI.
        root_poses: pose of each of these prims in the stage [m], where they are replaced.
        filters: pairs of paths whose shapes do not collide.
        groups: pairs of lists of paths of colliders that do not collide.
        tendons: tendons of the file.
        actuators: paths of the actuators of the file.
        remarks: statements, each with the paths concerned.
        leftovers: counts of properties that are not read.
        order: indices in the model that the stage was written from, see ``own``.
        reader: reader of attributes.
        prim_at: function from a path to the prim.
        stretch_of: function from a prim to the scale of its frame, see ``Placement.stretch``.
    """

    source: str
    units: Units
    up_axis: str
    gravity: np.ndarray | None = None
    bodies: dict[str, Body] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    roots: dict[str, bool | None] = field(default_factory=dict)
    root_poses: dict[str, np.ndarray] = field(default_factory=dict)
    filters: list[tuple[str, str]] = field(default_factory=list)
    groups: list[tuple[list[str], list[str]]] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    actuators: list[str] = field(default_factory=list)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    leftovers: Leftovers = field(default_factory=Leftovers)
    order: dict[str, float] = field(default_factory=dict)
    reader: Reader | None = None
    prim_at: Callable | None = None
    stretch_of: Callable | None = None

    def remark(self, statement: str, prim) -> None:
        """Adds a remark about a prim (or a path)."""
        path = prim if isinstance(prim, str) else str(prim.GetPath())
        paths = self.remarks.setdefault(statement, [])
        if path not in paths[-8:]:
            paths.append(path)


def below(path: str, paths: list[str]) -> Iterator[str]:
    """The paths below `path`, of sorted paths."""
    prefix = path.rstrip("/") + "/"
    return takewhile(lambda other: other.startswith(prefix), paths[bisect_left(paths, prefix) :])
