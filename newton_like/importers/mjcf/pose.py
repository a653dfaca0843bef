"""Poses of MJCF elements: positions, orientations in every form, and ``fromto``."""

from __future__ import annotations

import math

import numpy as np

from newton_like.geometry.transforms import quat_from_axis_angle, quat_from_matrix, quat_multiply, transform
from newton_like.importers.mjcf.records import Compiler
from newton_like.importers.mjcf.source import floats
from newton_like.importers.xml_source import XmlElement

SHORT = 1.0e-14
"""Directions shorter than this count as zero, as in MuJoCo."""

_UNIT_X = np.array([1.0, 0.0, 0.0])


def pose_of(element: XmlElement, compiler: Compiler) -> np.ndarray:
    """The pose of an element from ``pos`` and its orientation."""
    return transform(element.numbers("pos", 3, (0.0, 0.0, 0.0)), quat_of(element, compiler))


def quat_of(element: XmlElement, compiler: Compiler) -> np.ndarray:
    """Quaternion x y z w of ``quat``, ``axisangle``, ``xyaxes``, ``zaxis`` or ``euler``.

    Raises:
        ImportFileError: a direction or quaternion of length zero, or two parallel axes.
    """
    if "axisangle" in element.attributes:
        *axis, angle = element.numbers("axisangle", 4)
        return quat_from_axis_angle(unit(element, "axisangle", axis), compiler.angle(angle))
    if "xyaxes" in element.attributes:
        numbers = np.array(element.numbers("xyaxes", 6))
        x = unit(element, "xyaxes", numbers[:3])
        y = unit(element, "xyaxes", numbers[3:] - np.dot(x, numbers[3:]) * x)
        return quat_from_matrix(np.stack([x, y, np.cross(x, y)], axis=1))
    if "zaxis" in element.attributes:
        return quat_from_z(unit(element, "zaxis", element.numbers("zaxis", 3)))
    if "euler" in element.attributes:
        return quat_from_euler(element.numbers("euler", 3), compiler)
    w, *xyz = element.numbers("quat", 4, (1.0, 0.0, 0.0, 0.0))
    return unit(element, "quat", [*xyz, w])


def unit(element: XmlElement, name: str, values) -> np.ndarray:
    """The normalised vector. Raises ImportFileError for a zero vector."""
    # The squares of large and tiny numbers overflow and underflow.
    values = np.array(values, dtype=np.float64)
    size = np.abs(values).max()
    length = size * np.linalg.norm(values / size) if size > 0.0 else 0.0
    if length < SHORT:
        raise element.error(
            f"{name}={element.attributes.get(name)!r} has a part of length {length:g}, but a direction needs a length above 0"
        )
    return values / size / np.linalg.norm(values / size)


def quat_from_z(axis: np.ndarray) -> np.ndarray:
    """The smallest rotation from z to a direction; half a turn about x for -z."""
    cross = np.array([-axis[1], axis[0], 0.0])
    sine = math.hypot(cross[0], cross[1])
    about = _UNIT_X if sine < 1.0e-10 else cross
    return quat_from_axis_angle(about, math.atan2(sine, axis[2]))


def quat_from_euler(angles, compiler: Compiler) -> np.ndarray:
    """Rotations about the axes of ``eulerseq``: rotated axes for small letters, fixed axes for capitals."""
    q = np.array([0.0, 0.0, 0.0, 1.0])
    for letter, angle in zip(compiler.eulerseq, angles, strict=True):
        turn = quat_from_axis_angle(np.eye(3)["xyz".index(letter.lower())], compiler.angle(angle))
        q = quat_multiply(q, turn) if letter.islower() else quat_multiply(turn, q)
    return q


def between(element: XmlElement) -> tuple[np.ndarray, float] | None:
    """Pose and half length of a geom between the two points of ``fromto``, or ``None`` without this attribute.

    Its z axis points from the second point to the first.
    """
    numbers = floats(element, "fromto", 6, least=6)
    if numbers is None:
        return None
    start, end = np.array(numbers[:3]), np.array(numbers[3:])
    length = float(np.linalg.norm(start - end))
    if length < SHORT:
        raise element.error(f"fromto={element.attributes['fromto']!r}: the two points are the same")
    return transform(0.5 * (start + end), quat_from_z((start - end) / length)), 0.5 * length
