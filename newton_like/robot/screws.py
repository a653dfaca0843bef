"""Screw axes of joints, and the transforms of rigid motions, in double precision.

Twists, wrenches and screws have the angular part first (Lynch and Park 2017, "Modern Robotics", chapter 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_ROUNDING = 1e-14
"""Pitch, relative to the distance of the axis, that is a rounding error."""


class Axis(NamedTuple):
    """The motion of a joint with one degree of freedom.

    Attributes:
        rotates: whether it is a rotation; otherwise it is a translation.
        direction: of the axis, of length 1.
        point: on the axis [m]; zero for a translation.
        pitch: translation along the axis for each radian [m/rad]; zero for a translation.
        scale: radians, or for a translation metres, of motion for each unit of the coordinate.
    """

    rotates: bool
    direction: np.ndarray
    point: np.ndarray
    pitch: float
    scale: float


def axis_of(S: np.ndarray) -> Axis:
    """The axis of a screw ``[w, v]``, not zero, whose motion is ``exp([S] q)``."""
    w, v = np.asarray(S[:3], dtype=float), np.asarray(S[3:], dtype=float)
    size = float(np.linalg.norm(w))
    if size == 0.0:
        scale = float(np.linalg.norm(v))
        return Axis(False, v / scale, np.zeros(3), 0.0, scale)
    pitch = float(w @ v) / size**2
    if abs(pitch) <= _ROUNDING * float(np.linalg.norm(v)) / size:
        pitch = 0.0
    return Axis(True, w / size, np.cross(w, v) / size**2, pitch, size)


def cross_matrix(x: np.ndarray) -> np.ndarray:
    """``[x]``, the matrix of the cross product, ``[3, 3]``."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def adjoint(T: np.ndarray) -> np.ndarray:
    """``Ad(T) = [[R, 0], [[p] R, R]]`` of a transform, ``[6, 6]``."""
    R = T[:3, :3]
    A = np.zeros((6, 6))
    A[:3, :3] = A[3:, 3:] = R
    A[3:, :3] = cross_matrix(T[:3, 3]) @ R
    return A


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
