"""Velocities, accelerations and forces of frames from one representation to another, and the conventions of other libraries.

These functions compute on the host, with NumPy in float64. Functions of the dynamics library return device arrays in any representation.

The MIXED velocity (v, w) of a frame at p with axes R is the velocity of its origin and its angular velocity, in world axes. Other
representations have the velocity v + w x d of a point at d from the origin, or the frame's axes (Traversaro and Saccon 2019, "Multibody
dynamics notation"):

    BODY      R^T v, R^T w
    INERTIAL  d = -p
    COM       d = R c, for a link with its centre of mass at c

Forces have the same power in all representations; accelerations are the time derivatives of velocities.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded
from newton_like.dynamics.internal.common import velocity_representation
from newton_like.geometry.transforms import quat_inverse, quat_normalize, quat_rotate
from newton_like.model.arguments import as_numbers
from newton_like.types import VelRepr


def _numbers(value, width: int, what: str) -> np.ndarray:
    """An array ``[..., width]`` of finite numbers."""
    array = as_numbers(value, what)
    if array.ndim == 0 or array.shape[-1] != width:
        raise ValueError(f"{what} has shape {array.shape}; it must be [..., {width}]")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} contains numbers that are not finite")
    return array


class _View:
    """A representation of a frame's vectors: its point, relative to the frame's origin, and its axes."""

    def __init__(self, kind, pose: np.ndarray, com, name: str):
        if kind is None:
            names = ", ".join(f"VelRepr.{r.name}" for r in VelRepr)
            raise ValueError(f"{name}=None is not a representation; use one of {names}")
        self.kind = velocity_representation(kind, name)
        self.quat = quat_normalize(pose[..., 3:])
        self.arm = np.zeros_like(pose[..., :3])
        if self.kind == VelRepr.INERTIAL:
            self.arm = -pose[..., :3]
        elif self.kind == VelRepr.COM:
            if com is None:
                raise ValueError(f"{name}=VelRepr.COM needs com, the centre of mass in the link frame")
            self.arm = quat_rotate(self.quat, _numbers(com, 3, "com"))

    def to_world(self, x: np.ndarray) -> np.ndarray:
        """A vector of this representation in world axes."""
        return quat_rotate(self.quat, x) if self.kind == VelRepr.BODY else x

    def to_own(self, x: np.ndarray) -> np.ndarray:
        """A world vector in the axes of this representation."""
        return quat_rotate(quat_inverse(self.quat), x) if self.kind == VelRepr.BODY else x

    def point_rate(self, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Time derivative of the arm, for the frame's MIXED velocity."""
        if self.kind == VelRepr.INERTIAL:
            return -v
        return np.cross(w, self.arm)


def _join(linear: np.ndarray, angular: np.ndarray) -> np.ndarray:
    return np.concatenate(np.broadcast_arrays(linear, angular), axis=-1)


def _views(pose, source, target, com) -> tuple[_View, _View]:
    pose = _numbers(pose, 7, "pose")
    return _View(source, pose, com, "source"), _View(target, pose, com, "target")


def _mixed(view: _View, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity of the frame's origin and angular velocity, in world axes."""
    w = view.to_world(u[..., 3:])
    return view.to_world(u[..., :3]) - np.cross(w, view.arm), w


def convert_velocity(velocity, pose, source, target, *, com=None) -> np.ndarray:
    """The velocity of a frame from one representation in another.

    Args:
        velocity: linear [m/s] and angular velocity [rad/s], ``[..., 6]``.
        pose: of the frame in the world: position [m] and quaternion x y z w, ``[..., 7]``.
        source, target: :class:`VelRepr` of what goes in and comes out.
        com: centre of mass of the link in the link frame [m], ``[..., 3]``; COM needs it.

    Returns:
        ``[..., 6]`` float64.

    Raises:
        ValueError: wrong shape; numbers that are not finite; an unknown representation; COM without `com`.
        TypeError: values that are not numbers.
    """
    a, b = _views(pose, source, target, com)
    v, w = _mixed(a, _numbers(velocity, 6, "velocity"))
    return _join(b.to_own(v + np.cross(w, b.arm)), b.to_own(w))


def convert_acceleration(acceleration, velocity, pose, source, target, *, com=None) -> np.ndarray:
    """The acceleration of a frame, time derivative of its velocity in one representation, as that of another.

    Args:
        acceleration: time derivative [m/s^2, rad/s^2] of the velocity in `source`, ``[..., 6]``.
        velocity: that velocity, in `source`, ``[..., 6]``.
        pose, source, target, com: as in :func:`convert_velocity`.

    Returns:
        Time derivative of the velocity in `target`, ``[..., 6]`` float64.

    Raises:
        ValueError, TypeError: as :func:`convert_velocity`.
    """
    a, b = _views(pose, source, target, com)
    rate = _numbers(acceleration, 6, "acceleration")
    v, w = _mixed(a, _numbers(velocity, 6, "velocity"))
    turning = a.kind == VelRepr.BODY
    # u = v + w x arm; the derivative of its components along rotating axes lacks the term of their rotation
    du, dw = a.to_world(rate[..., :3]), a.to_world(rate[..., 3:])
    if turning:
        du = du + np.cross(w, v)
    dv = du - np.cross(dw, a.arm) - np.cross(w, a.point_rate(v, w))
    du = dv + np.cross(dw, b.arm) + np.cross(w, b.point_rate(v, w))
    if b.kind == VelRepr.BODY:
        du = du - np.cross(w, v)
    return _join(b.to_own(du), b.to_own(dw))


def convert_force(force, pose, source, target, *, com=None) -> np.ndarray:
    """The force on a frame and its torque about the point of a representation, in another: by ``X^-T`` of the velocities' X.

    Args:
        force: force [N] and torque [N m], ``[..., 6]``.
        pose, source, target, com: as in :func:`convert_velocity`.

    Returns:
        ``[..., 6]`` float64.

    Raises:
        ValueError, TypeError: as :func:`convert_velocity`.
    """
    a, b = _views(pose, source, target, com)
    given = _numbers(force, 6, "force")
    f = a.to_world(given[..., :3])
    n = a.to_world(given[..., 3:]) + np.cross(a.arm - b.arm, f)
    return _join(b.to_own(f), b.to_own(n))


def velocity_transform(pose, source, target, *, com=None) -> np.ndarray:
    """X with ``X v_source = v_target``, ``[..., 6, 6]``: for Jacobians (``X J``), matrices (``X^T M X``) and forces (``X^-T f``).

    Args:
        pose, source, target, com: as in :func:`convert_velocity`.
    """
    pose = _numbers(pose, 7, "pose")[..., None, :]
    com = None if com is None else _numbers(com, 3, "com")[..., None, :]
    columns = convert_velocity(np.eye(6), pose, source, target, com=com)
    return np.swapaxes(columns, -1, -2)


def _like(given, result: np.ndarray):
    if isinstance(given, wp.array):
        check_recorded(given.device, "conversions of velocities and forces on the host")
        return wp.array(np.ascontiguousarray(result), dtype=given.dtype, device=given.device)
    return result


def _reordered(value, axis: int, least: int, what: str, order):
    array = value.numpy() if isinstance(value, wp.array) else np.asarray(value)
    if array.ndim == 0 or not -array.ndim <= axis < array.ndim or array.shape[axis] < least:
        raise ValueError(f"{what} has shape {array.shape}; axis {axis} must have {least} entries or more")
    return _like(value, np.take(array, order(array.shape[axis]), axis=axis))


def to_angular_first(value, axis: int = -1):
    """Spatial vectors with the linear part first as others order them: the first six entries along `axis`, angular part first.

    Further entries, such as the joints' entries of a generalized velocity, a Jacobian's column or a matrix, do not change.

    Args:
        value: a NumPy or Warp array, or numbers.
        axis: along which; call it twice for both sides of a matrix.

    Returns:
        A new array of the same kind.

    Raises:
        ValueError: fewer than six entries.
    """
    return _reordered(value, axis, 6, "value", lambda n: [3, 4, 5, 0, 1, 2, *range(6, n)])


def to_linear_first(value, axis: int = -1):
    """Spatial vectors with the angular part first in the order of this library; see :func:`to_angular_first`, its inverse."""
    return to_angular_first(value, axis)


def _quaternions(value, order: list[int]):
    def places(n: int) -> list[int]:
        if n not in (4, 7):
            raise ValueError(f"quaternions have 4 numbers, and transforms 7; the last axis has {n}")
        return [*range(n - 4), *(n - 4 + i for i in order)]

    return _reordered(value, -1, 4, "quaternions", places)


def wxyz_to_xyzw(value):
    """Quaternions ``[..., 4]`` or transforms ``[..., 7]`` with the scalar first, in the order of this library: x y z w.

    Args:
        value: a NumPy or Warp array, or numbers.

    Returns:
        A new array of the same kind.

    Raises:
        ValueError: the last axis has neither 4 nor 7 entries.
    """
    return _quaternions(value, [1, 2, 3, 0])


def xyzw_to_wxyz(value):
    """The inverse of :func:`wxyz_to_xyzw`."""
    return _quaternions(value, [3, 0, 1, 2])
