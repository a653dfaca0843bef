"""Screw axes of joints, and the transforms of rigid motions, in double precision.

Twists, wrenches and screws have the angular part first (Lynch and Park 2017, "Modern Robotics", chapter 3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_ROUNDING = 1e-14
"""Pitch, relative to the distance of the axis, and deviation of a length from 1, that are rounding errors."""


class Axis(NamedTuple):
    """The motion of a joint with one degree of freedom.

    Attributes:
        rotates: whether it is a rotation; otherwise it is a translation.
        direction: of the axis, of length 1.
        point: on the axis [m]; zero for a translation.
        pitch: translation along the axis for each radian [m/rad]; zero for a translation.
        scale: radians, or for a translation metres, of motion for each unit of the coordinate; 1 up to rounding is 1.
    """

    rotates: bool
    direction: np.ndarray
    point: np.ndarray
    pitch: float
    scale: float


def axis_of(S: np.ndarray) -> Axis:
    """The axis of a screw ``[w, v]``, not zero, whose motion is ``exp([S] q)``."""
    # for three numbers, operations of Python are faster than those of NumPy
    a, b, c, x, y, z = map(float, S)
    size, length = math.hypot(a, b, c), math.hypot(x, y, z)
    if size == 0.0:
        return Axis(False, np.array([x / length, y / length, z / length]), np.zeros(3), 0.0, _scale(length))
    pitch = (a * x + b * y + c * z) / size**2
    if abs(pitch) <= _ROUNDING * length / size:
        pitch = 0.0
    point = np.array([b * z - c * y, c * x - a * z, a * y - b * x]) / size**2
    return Axis(True, np.array([a / size, b / size, c / size]), point, pitch, _scale(size))


def _scale(size: float) -> float:
    """The length of an axis. That of a unit vector that is not along a coordinate axis differs from 1 by rounding."""
    return 1.0 if abs(size - 1.0) < _ROUNDING else size


def cross_matrix(x: np.ndarray) -> np.ndarray:
    """``[x]``, the matrix of the cross product, ``[3, 3]``."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def spatial_inertia(mass: float, com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """The 6 x 6 inertia about the origin, ``[[I + m [c] [c]^T, m [c]], [m [c]^T, m 1]]``, of a mass [kg] at c [m] with an inertia about it
    [kg m^2]."""
    C = cross_matrix(com)
    return np.block([[inertia + mass * C @ C.T, mass * C], [mass * C.T, mass * np.eye(3)]])


def inverse(T: np.ndarray) -> np.ndarray:
    """The inverse of a homogeneous transform, ``[..., 4, 4]``."""
    R = np.swapaxes(T[..., :3, :3], -1, -2)
    out = np.zeros_like(T)
    out[..., :3, :3] = R
    out[..., :3, 3] = -(R @ T[..., :3, 3:])[..., 0]
    out[..., 3, 3] = 1.0
    return out


def shifted(p: np.ndarray) -> np.ndarray:
    """The transform of a translation, ``[4, 4]``."""
    T = np.eye(4)
    T[:3, 3] = p
    return T


def product(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``matrix @ x`` for vectors ``[..., n]``. A vector of a batch has the same bits as alone: each is a product of its own, and the order
    of sums in BLAS depends on sizes and strides only."""
    return np.matmul(np.ascontiguousarray(matrix), np.ascontiguousarray(x)[..., None])[..., 0]


def symmetric_inverse(A: np.ndarray, least: float) -> np.ndarray:
    """Pseudo-inverses of symmetric matrices, ``[..., n, n]``. They are zero in directions whose eigenvalue is at most `least` times the
    largest one."""
    values, vectors = np.linalg.eigh(0.5 * (A + np.swapaxes(A, -1, -2)))
    keep = values > least * values.max(axis=-1, keepdims=True, initial=0.0)
    inverses = np.divide(1.0, values, out=np.zeros_like(values), where=keep)
    return (vectors * inverses[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def inverse_of_symmetric(A: np.ndarray, least: float) -> np.ndarray:
    """As :func:`symmetric_inverse`, bit by bit, for one matrix ``[n, n]`` that equals its transpose. For so few numbers it is faster."""
    values, vectors = np.linalg.eigh(A)
    values = values.tolist()
    most = least * max(values[-1], 0.0)
    return (vectors * np.array([1.0 / x if x > most else 0.0 for x in values])) @ vectors.T
