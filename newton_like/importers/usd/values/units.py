"""Units of a USD stage, placements of its prims, and reading of attributes with errors that name prim and solution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from newton_like.coercion import LARGEST
from newton_like.importers.usd.values.pose import quat_from_matrix, transform
from newton_like.importers.xml_source import ImportFileError

SENTINEL = 1.0e38
"""Numbers from this value on mean "no limit" in USD files (the largest float32 is 3.4e38), like infinities."""

SHEAR_TOLERANCE = 1.0e-5
"""Largest cosine between two axes of a frame that counts as orthogonal; float32 attributes give errors of about 1e-6."""


@dataclass(frozen=True)
class DofUnits:
    """SI units for one file unit of a quantity along a joint axis.

    Attributes:
        position: m for a unit of length, or rad for a degree.
        effort: N or N m for the file's unit of force or torque.
        inertia: kg or kg m^2.
        radian: ``effort`` over a length or a radian, for attributes of MuJoCo, whose angles are in radians.
    """

    position: float
    effort: float
    inertia: float
    radian: float

    @property
    def gain(self) -> float:
        """N/m or N m/rad for one file unit of stiffness, and the same over seconds for damping."""
        return self.effort / self.position


@dataclass(frozen=True)
class Units:
    """Metres and kilograms for the units of a stage. Times are in seconds and angles in degrees in all stages.

    A quantity of the dimension ``mass^a length^b`` is multiplied by ``kilograms^a meters^b``; gains of angular drives
    are per degree (UsdPhysics DriveAPI).
    """

    meters: float
    kilograms: float

    @property
    def density(self) -> float:
        """kg/m^3."""
        return self.kilograms / self.meters**3

    @property
    def inertia(self) -> float:
        """kg m^2."""
        return self.kilograms * self.meters**2

    @cached_property
    def linear(self) -> DofUnits:
        """Units of a linear axis."""
        force, stiffness = self.kilograms * self.meters, self.kilograms
        return DofUnits(position=self.meters, effort=force, inertia=self.kilograms, radian=stiffness)

    @cached_property
    def angular(self) -> DofUnits:
        """Units of a rotational axis."""
        torque = self.kilograms * self.meters**2
        return DofUnits(position=math.pi / 180.0, effort=torque, inertia=torque, radian=torque)


@dataclass(frozen=True)
class Placement:
    """Placement of a prim: a point ``p`` of its local space is at ``pose * (stretch @ p)`` in the stage.

    A mirrored frame has three negative scales and a proper rotation, as in ``GfTransform`` and UsdPhysics.

    Attributes:
        pose: transform [m], seven numbers.
        stretch: dimensionless scale, diagonal unless sheared, ``[3, 3]``.
        sheared: whether the scale is not diagonal.
        mirrored: whether the frame is left-handed.
    """

    pose: np.ndarray
    stretch: np.ndarray
    sheared: bool
    mirrored: bool

    @property
    def scale(self) -> np.ndarray:
        """Scale along x, y, z; for a sheared frame the nearest scale."""
        return np.diagonal(self.stretch)


def placement(matrix, meters: float) -> Placement | None:
    """Placement of a prim from its local-to-world matrix (row vectors, as in USD), or ``None`` for a singular matrix."""
    rows = np.array(matrix, dtype=np.float64)
    linear, place = rows[:3, :3].T, meters * rows[3, :3]
    if not np.all(np.isfinite(rows)) or np.abs(place).max() > LARGEST:
        return None
    sizes = np.sqrt((linear**2).sum(axis=0))
    if sizes.min() < 1.0e-12 * max(sizes.max(), 1.0e-30):
        return None
    rotation = linear / sizes
    stretch = np.diag(sizes)
    cosines = rotation.T @ rotation - np.eye(3)
    sheared = bool(np.abs(cosines).max() > SHEAR_TOLERANCE)
    if sheared:
        # Polar decomposition: the rotation nearest to the frame, and a symmetric stretch.
        u, _, vt = np.linalg.svd(linear)
        rotation = u @ vt
    mirrored = bool(np.linalg.det(rotation) < 0.0)
    if mirrored:
        rotation, stretch = -rotation, -stretch
    if sheared:
        stretch = rotation.T @ linear
    return Placement(transform(place, quat_from_matrix(rotation)), stretch, sheared, mirrored)


def quaternion(value) -> np.ndarray | None:
    """Unit quaternion x, y, z, w of a ``Gf.Quat``, or ``None`` for zero."""
    if not hasattr(value, "GetImaginary"):
        return None
    q = np.array([*value.GetImaginary(), value.GetReal()], dtype=np.float64)
    length = np.linalg.norm(q)
    return q / length if np.isfinite(length) and length > 1.0e-6 else None


class Reader:
    """Reads attributes of prims at one time code, with errors that name the prim.

    Args:
        source: name of the file for messages.
        time: a ``Usd.TimeCode``.
    """

    def __init__(self, source: str, time):
        self.source, self.time = source, time

    def error(self, prim, message: str) -> ImportFileError:
        """Returns an error about a prim, to be raised."""
        return ImportFileError(f"{self.source}: <{prim.GetPath()}>: {message}")

    def get(self, prim, name: str, default=None):
        """Value of an attribute, or ``default``."""
        attribute = prim.GetAttribute(name)
        value = attribute.Get(self.time) if attribute else None
        return default if value is None else value

    def number(self, prim, name: str, default: float | None = None, *, low: float | None = None) -> float | None:
        """A finite number. Raises ImportFileError for other values, or a number below ``low``."""
        value = self.limit(prim, name, default)
        if value is not None and (math.isinf(value) or abs(value) > LARGEST):
            raise self.error(prim, f"{name} is {value:g}; give a number below {LARGEST:g}")
        if value is not None and low is not None and value < low:
            raise self.error(prim, f"{name} {value:g} is below {low:g}; correct it")
        return value

    def limit(self, prim, name: str, default: float | None = None) -> float | None:
        """A limit; numbers for "no limit" in USD files become infinite.

        Raises:
            ImportFileError: not a number.
        """
        value = self.get(prim, name)
        if value is None:
            return default
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise self.error(prim, f"{name} is {value!r}; give a number") from None
        if math.isnan(value):
            raise self.error(prim, f"{name} is NaN; give a number")
        return math.copysign(math.inf, value) if abs(value) >= SENTINEL else value

    def authored(self, prim, name: str) -> float | None:
        """An authored number, finite or not; ``None`` if only the schema has a value."""
        attribute = prim.GetAttribute(name)
        return self.limit(prim, name) if attribute and attribute.HasAuthoredValue() else None

    def flag(self, prim, name: str, default: bool | None) -> bool | None:
        """A bool; 0 and 1 are accepted. Raises ImportFileError for other values."""
        value = self.get(prim, name, default)
        if value is not None and (not isinstance(value, bool | int | float) or value not in (0, 1)):
            raise self.error(prim, f"{name} is {str(value)[:40]!r}; give true or false")
        return None if value is None else bool(value)

    def numbers(self, prim, name: str) -> np.ndarray | None:
        """An array of numbers of any shape. Raises ImportFileError for other values."""
        value = self.get(prim, name)
        try:
            return None if value is None else np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise self.error(prim, f"{name} is {str(value)[:40]!r}; give numbers") from None

    def vector(self, prim, name: str, default=None) -> np.ndarray | None:
        """Three finite numbers. Raises ImportFileError for other values."""
        vector = self.numbers(prim, name)
        if vector is None:
            return default
        if vector.shape != (3,) or not np.all(np.abs(vector) <= LARGEST):
            raise self.error(prim, f"{name} is {str(vector.tolist())[:80]}; give three finite numbers")
        return vector

    def rotation(self, prim, name: str) -> np.ndarray:
        """A normalised quaternion x, y, z, w. Raises ImportFileError for a quaternion that is zero or not finite."""
        value = self.get(prim, name)
        if value is None:
            return np.array([0.0, 0.0, 0.0, 1.0])
        q = quaternion(value)
        if q is None:
            raise self.error(prim, f"{name} is {value}, which is not a rotation; give (1, 0, 0, 0) for none")
        return q

    def token(self, prim, name: str, default: str) -> str:
        """A token. Raises ImportFileError for other values."""
        value = self.get(prim, name, default)
        if not isinstance(value, str):
            raise self.error(prim, f"{name} is {str(value)[:40]!r}; give a token such as {default!r}")
        return value

    def targets(self, prim, name: str) -> list:
        """Targets of a relationship, with forwarded targets resolved."""
        relationship = prim.GetRelationship(name)
        return list(relationship.GetForwardedTargets()) if relationship else []
