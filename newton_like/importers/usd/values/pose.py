"""Functions for single poses, computed with Python numbers.

``geometry.transforms`` works on arrays of any shape and takes about 100 microseconds for one pose, but a stage with ten
thousand prims needs a hundred thousand poses. Conventions are the same: ``x y z qx qy qz qw``.
"""

from __future__ import annotations

import math

import numpy as np


def _product(a, b) -> tuple[float, float, float, float]:
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + bw * ax + ay * bz - az * by,
        aw * by + bw * ay + az * bx - ax * bz,
        aw * bz + bw * az + ax * by - ay * bx,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def _turned(q, v) -> tuple[float, float, float]:
    x, y, z, w = q
    a, b, c = v
    tx, ty, tz = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx


def _numbers(values) -> list[float]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def quat_multiply(a, b) -> np.ndarray:
    """The rotation ``b`` followed by ``a``."""
    return np.array(_product(_numbers(a), _numbers(b)))


def quat_inverse(q) -> np.ndarray:
    """Inverse of a unit quaternion."""
    x, y, z, w = _numbers(q)
    return np.array([-x, -y, -z, w])


def quat_rotate(q, v) -> np.ndarray:
    """Rotates a vector."""
    return np.array(_turned(_numbers(q), _numbers(v)))


def quat_to_matrix(q) -> np.ndarray:
    """Rotation matrix."""
    q = _numbers(q)
    columns = [_turned(q, e) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    return np.array(columns).T


def quat_from_matrix(matrix) -> np.ndarray:
    """Unit quaternion with ``w >= 0``, the largest of its components as pivot (Shepperd 1978)."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    trace = a + e + i
    rows = (
        (1.0 + 2.0 * a - trace, b + d, c + g, h - f),
        (b + d, 1.0 + 2.0 * e - trace, f + h, c - g),
        (c + g, f + h, 1.0 + 2.0 * i - trace, d - b),
        (h - f, c - g, d - b, 1.0 + trace),
    )
    best = max(range(4), key=lambda k: rows[k][k])
    length = math.hypot(*rows[best])
    sign = -1.0 if rows[best][3] < 0.0 else 1.0
    return np.array([sign * part / length for part in rows[best]])


def transform_multiply(a, b) -> np.ndarray:
    """The transform ``b`` followed by ``a``."""
    a, b = _numbers(a), _numbers(b)
    x, y, z = _turned(a[3:], b[:3])
    return np.array([a[0] + x, a[1] + y, a[2] + z, *_product(a[3:], b[3:])])


def transform_inverse(x) -> np.ndarray:
    """Inverse transform."""
    a, b, c, qx, qy, qz, qw = _numbers(x)
    back = (-qx, -qy, -qz, qw)
    u, v, w = _turned(back, (a, b, c))
    return np.array([-u, -v, -w, *back])


def transform_point(x, point) -> np.ndarray:
    """Transforms a point."""
    x = _numbers(x)
    a, b, c = _turned(x[3:], _numbers(point))
    return np.array([x[0] + a, x[1] + b, x[2] + c])


def transform(p=(0.0, 0.0, 0.0), q=(0.0, 0.0, 0.0, 1.0)) -> np.ndarray:
    """Pose from a position and a quaternion."""
    return np.array([*_numbers(p), *_numbers(q)], dtype=np.float64)


def moved_mass(part, pose) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia of a part in the frame in which it has the pose ``pose``."""
    mass, com, inertia = part
    rotation = quat_to_matrix(pose[3:])
    return mass, pose[:3] + rotation @ com, rotation @ inertia @ rotation.T
