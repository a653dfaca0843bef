"""Rigid transforms and quaternions on the host, in NumPy float64.

Quaternions are ``(x, y, z, w)`` and rotate vectors by ``q v q*``. A transform is seven numbers, position then
quaternion, and maps a point of its own frame to the parent frame: ``X_ac = X_ab * X_bc``. All functions work on
arrays of any leading shape and broadcast them.
"""

from __future__ import annotations

import math

import numpy as np

from newton_like.coercion import as_list, as_number

UNIT_TOLERANCE = 1.0e-2
"""Largest deviation of a given quaternion's length from one. Smaller deviations are rounding errors (of two or more
decimals) and are removed by normalisation; larger ones raise an error."""

AXIS_TOLERANCE = 1.0e-3
"""Largest deviation of an axis' length from one that counts as rounding."""

IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""The identity transform."""
IDENTITY.setflags(write=False)


_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same as ``numpy.cross``, which takes ten times as long for single vectors."""
    return a[..., _NEXT] * b[..., _LAST] - a[..., _LAST] * b[..., _NEXT]


def quat_multiply(a, b) -> np.ndarray:
    """Hamilton product: the rotation ``b`` followed by ``a``. Shapes ``[..., 4]``."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + _cross(av, bv)
    scalar = aw * bw - np.sum(av * bv, axis=-1, keepdims=True)
    return np.concatenate([vector, scalar], axis=-1)


def quat_inverse(q) -> np.ndarray:
    """Conjugate, which is the inverse of a unit quaternion. Shape ``[..., 4]``."""
    return np.asarray(q, dtype=np.float64) * np.array([-1.0, -1.0, -1.0, 1.0])


def quat_rotate(q, v) -> np.ndarray:
    """Vector ``v`` (``[..., 3]``) rotated by the unit quaternion ``q`` (``[..., 4]``)."""
    q, v = np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64)
    axis, w = q[..., :3], q[..., 3:]
    t = 2.0 * _cross(axis, v)
    return v + w * t + _cross(axis, t)


def quat_normalize(q) -> np.ndarray:
    """Quaternion of unit length with the same direction.

    Raises:
        ValueError: a quaternion has length zero or is not finite.
    """
    q = np.asarray(q, dtype=np.float64)
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    if not np.all(np.isfinite(length)) or np.any(length == 0.0):
        raise ValueError(f"cannot normalise the quaternion {q.tolist()}: its length must be finite and above zero")
    return q / length


def quat_to_matrix(q) -> np.ndarray:
    """Rotation matrix ``[..., 3, 3]`` of the unit quaternion ``[..., 4]``."""
    x, y, z, w = np.moveaxis(np.asarray(q, dtype=np.float64), -1, 0)
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quat_from_matrix(matrix) -> np.ndarray:
    """Unit quaternion ``[..., 4]`` with ``w >= 0`` of the rotation matrix ``[..., 3, 3]``.

    The pivot is the largest of the four components, so that no rotation angle loses digits (Shepperd 1978).
    """
    m = np.asarray(matrix, dtype=np.float64)
    if m.shape == (3, 3):
        found = _quat_of_one(m)
        if found is not None:
            return found
    d = np.diagonal(m, axis1=-2, axis2=-1)
    trace = d.sum(axis=-1)
    off = [m[..., 2, 1], m[..., 0, 2], m[..., 1, 0]], [m[..., 1, 2], m[..., 2, 0], m[..., 0, 1]]
    diff = [a - b for a, b in zip(*off, strict=True)]  # 4 w (x, y, z)
    yz, xz, xy = (a + b for a, b in zip(*off, strict=True))  # 4 y z, 4 x z, 4 x y
    # Row k is 4 * component k times the whole quaternion.
    rows = np.stack(
        [
            np.stack([1.0 + 2.0 * d[..., 0] - trace, xy, xz, diff[0]], axis=-1),
            np.stack([xy, 1.0 + 2.0 * d[..., 1] - trace, yz, diff[1]], axis=-1),
            np.stack([xz, yz, 1.0 + 2.0 * d[..., 2] - trace, diff[2]], axis=-1),
            np.stack([diff[0], diff[1], diff[2], 1.0 + trace], axis=-1),
        ],
        axis=-2,
    )
    pivot = np.argmax(np.diagonal(rows, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(rows, pivot[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(q[..., 3:] < 0.0, -q, q)


def _quat_of_one(matrix: np.ndarray) -> np.ndarray | None:
    """:func:`quat_from_matrix` of one matrix, with the same bits in a twentieth of the time; None if numbers are not finite."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    trace = a + e + i
    if not math.isfinite(trace):
        return None
    x, y, z, w = 1.0 + 2.0 * a - trace, 1.0 + 2.0 * e - trace, 1.0 + 2.0 * i - trace, 1.0 + trace
    most = max(x, y, z, w)
    if most == x:
        row = x, d + b, c + g, h - f
    elif most == y:
        row = d + b, y, h + f, c - g
    elif most == z:
        row = c + g, h + f, z, d - b
    else:
        row = h - f, c - g, d - b, w
    x, y, z, w = row
    length = math.sqrt(x * x + y * y + z * z + w * w)
    q = np.array([x / length, y / length, z / length, w / length])
    return -q if q[3] < 0.0 else q


def quat_from_axis_angle(axis, angle) -> np.ndarray:
    """Unit quaternion ``[..., 4]`` of the rotation by ``angle`` [rad] (``[...]``) about ``axis`` (``[..., 3]``).

    The axis may have any length except zero.

    Raises:
        ValueError: an axis is zero or not finite.
    """
    axis = np.asarray(axis, dtype=np.float64)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    if not np.all(np.isfinite(length)) or np.any(length == 0.0):
        raise ValueError(f"cannot rotate about the axis {axis.tolist()}: its length must be finite and above zero")
    half = 0.5 * np.asarray(angle, dtype=np.float64)[..., None]
    axis, half = axis / length, np.broadcast_to(half, np.broadcast_shapes(half.shape, (*axis.shape[:-1], 1)))
    return np.concatenate([axis * np.sin(half), np.cos(half)], axis=-1)


def quat_from_rpy(rpy) -> np.ndarray:
    """Unit quaternion ``[..., 4]`` of roll, pitch, yaw [rad] ``[..., 3]``: ``Rz(yaw) Ry(pitch) Rx(roll)``.

    This is the convention of URDF.
    """
    half = 0.5 * np.asarray(rpy, dtype=np.float64)
    cr, cp, cy = np.moveaxis(np.cos(half), -1, 0)
    sr, sp, sy = np.moveaxis(np.sin(half), -1, 0)
    return np.stack(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ],
        axis=-1,
    )


def quat_between(a, b) -> np.ndarray:
    """The smallest rotation from the direction of ``a`` to the direction of ``b`` (``[..., 3]``, any lengths).

    For opposite directions it is half a turn about an axis that depends only on ``a``.

    Raises:
        ValueError: a vector is zero or not finite.
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    lengths = np.stack([np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1)])
    if not np.all(np.isfinite(lengths)) or np.any(lengths == 0.0):
        raise ValueError(f"no rotation between {a.tolist()} and {b.tolist()}: both need a finite length above zero")
    a, b = a / lengths[0][..., None], b / lengths[1][..., None]
    # |a + b| = 2 cos(angle / 2) and |a - b| = 2 sin(angle / 2) are precise for every angle, unlike a dot product.
    cos_half = 0.5 * np.linalg.norm(a + b, axis=-1, keepdims=True)
    sin_half = 0.5 * np.linalg.norm(a - b, axis=-1, keepdims=True)
    axis = np.cross(a, b)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    other = np.eye(3)[np.argmin(np.abs(a), axis=-1)]
    fallback = np.cross(a, other)
    fallback = fallback / np.linalg.norm(fallback, axis=-1, keepdims=True)
    axis = np.where(length > 1.0e-15, axis / np.where(length > 1.0e-15, length, 1.0), fallback)
    return quat_normalize(np.concatenate([axis * sin_half, cos_half], axis=-1))


def transform(p=(0.0, 0.0, 0.0), q=(0.0, 0.0, 0.0, 1.0)) -> np.ndarray:
    """Transform ``[..., 7]`` from positions ``[..., 3]`` and quaternions ``[..., 4]``."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if p.shape == (3,) and q.shape == (4,):
        return np.concatenate([p, q])
    lead = np.broadcast_shapes(p.shape[:-1], q.shape[:-1])
    return np.concatenate([np.broadcast_to(p, (*lead, 3)), np.broadcast_to(q, (*lead, 4))], axis=-1)


def transform_multiply(a, b) -> np.ndarray:
    """``a * b``: the transform ``b`` followed by ``a``. Shapes ``[..., 7]``."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return transform(a[..., :3] + quat_rotate(a[..., 3:], b[..., :3]), quat_multiply(a[..., 3:], b[..., 3:]))


def transform_inverse(x) -> np.ndarray:
    """Inverse transform ``[..., 7]``."""
    x = np.asarray(x, dtype=np.float64)
    q = quat_inverse(x[..., 3:])
    return transform(-quat_rotate(q, x[..., :3]), q)


def transform_point(x, point) -> np.ndarray:
    """Maps a point ``[..., 3]`` of the frame ``x`` (``[..., 7]``) to the parent frame."""
    x = np.asarray(x, dtype=np.float64)
    return x[..., :3] + quat_rotate(x[..., 3:], point)


def transform_to_matrix(x) -> np.ndarray:
    """Homogeneous matrix ``[..., 4, 4]`` of the transform ``[..., 7]``."""
    x = np.asarray(x, dtype=np.float64)
    matrix = np.zeros((*x.shape[:-1], 4, 4))
    matrix[..., :3, :3] = quat_to_matrix(x[..., 3:])
    matrix[..., :3, 3] = x[..., :3]
    matrix[..., 3, 3] = 1.0
    return matrix


def as_transform(value, what: str = "transform") -> np.ndarray:
    """One transform as seven float64 numbers with a quaternion of exactly unit length.

    Args:
        value: ``None`` (identity), a ``wp.transform``, seven numbers ``(p, q)``, or a pair ``(position, quaternion)``.
        what: name of the argument, for the error.

    Raises:
        TypeError: ``value`` has another type.
        ValueError: another count of numbers, a number that is not finite, or a quaternion whose length differs from one
            by more than ``UNIT_TOLERANCE``.
    """
    if value is None:
        return IDENTITY.copy()
    cure = "give seven numbers (x, y, z, qx, qy, qz, qw), a pair (position, quaternion) or a wp.transform"
    try:
        parts = as_list(value, what, "numbers")
        if len(parts) == 2:
            parts = [*as_list(parts[0], what, "numbers"), *as_list(parts[1], what, "numbers")]
        numbers = np.array([as_number(part, what) for part in parts])
    except TypeError as error:
        raise TypeError(f"{what}: {value!r} is not a transform; {cure}") from error
    if numbers.shape != (7,):
        raise ValueError(f"{what}: {value!r} has {numbers.size} numbers; {cure}")
    length = np.linalg.norm(numbers[3:])
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise ValueError(
            f"{what}: the quaternion {numbers[3:].tolist()} (x, y, z, w) has length {length:.6g}; normalise it"
        )
    numbers[3:] /= length
    return numbers
