"""Nearest points of two line segments, and with them of two capsules."""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float, float]

PARALLEL = 1.0e-12
"""Sine of the angle between two segments below which they are parallel."""


def nearest_points(a0: Point, a1: Point, b0: Point, b1: Point) -> tuple[Point, Point]:
    """Nearest points of the segments ``a0 a1`` and ``b0 b1``, one on each [m].

    The nearest points of the lines are moved to the ends of the segments (Ericson 2005, "Real-Time Collision Detection", section 5.1.9).
    Parallel segments that are side by side have several pairs of nearest points; the result is in the middle of the part where they are
    side by side, and so does not depend on the order of the segments or of their ends. A segment may have the length 0.
    """
    # written out: a call for each product would take twice as long
    px, py, pz = a0
    qx, qy, qz = b0
    ax, ay, az = a1[0] - px, a1[1] - py, a1[2] - pz
    bx, by, bz = b1[0] - qx, b1[1] - qy, b1[2] - qz
    rx, ry, rz = qx - px, qy - py, qz - pz
    aa, bb = ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz
    ar, br = ax * rx + ay * ry + az * rz, bx * rx + by * ry + bz * rz
    if aa == 0.0 or bb == 0.0:
        s = _clamped(ar / aa) if aa > 0.0 else 0.0
        t = _clamped(-br / bb) if bb > 0.0 else 0.0
    else:
        nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        nn = nx * nx + ny * ny + nz * nz
        if nn <= PARALLEL**2 * aa * bb:
            # the ends of b as parameters of a
            ends = sorted((ar / aa, (ar + ax * bx + ay * by + az * bz) / aa))
            s = _clamped(0.5 * (max(ends[0], 0.0) + min(ends[1], 1.0)))
        else:
            s = ((ry * bz - rz * by) * nx + (rz * bx - rx * bz) * ny + (rx * by - ry * bx) * nz) / nn
            s = 0.0 if s < 0.0 else 1.0 if s > 1.0 else s
        t = (s * (ax * bx + ay * by + az * bz) - br) / bb
        if t <= 0.0 or t >= 1.0:
            t = 0.0 if t <= 0.0 else 1.0
            s = (ar + t * (ax * bx + ay * by + az * bz)) / aa
            s = 0.0 if s < 0.0 else 1.0 if s > 1.0 else s
    return (px + s * ax, py + s * ay, pz + s * az), (qx + t * bx, qy + t * by, qz + t * bz)


def normal_between(p: Point, q: Point, a0: Point, a1: Point, b0: Point, b1: Point) -> Point:
    """Unit vector from the point p of the segment ``a0 a1`` to the point q of the segment ``b0 b1``.

    If the points coincide, it is perpendicular to the segments: along the cross product of their directions, or for parallel segments
    perpendicular to the longer one; the z axis for two segments of length 0.
    """
    d = _minus(q, p)
    length = math.hypot(*d)
    if length > 0.0:
        return d[0] / length, d[1] / length, d[2] / length
    a, b = _minus(a1, a0), _minus(b1, b0)
    n = _cross(a, b)
    if _dot(n, n) <= PARALLEL**2 * _dot(a, a) * _dot(b, b):
        longer = max(a, b, key=lambda x: _dot(x, x))
        size = [abs(x) for x in longer]
        other = [0.0, 0.0, 0.0]
        other[size.index(min(size))] = 1.0
        n = _cross(longer, tuple(other))
    length = math.hypot(*n)
    return (n[0] / length, n[1] / length, n[2] / length) if length > 0.0 else (0.0, 0.0, 1.0)


def placed(rows: Sequence[Sequence[float]], point: Sequence[float]) -> Point:
    """A point of a frame in the frame in which its pose is given, as rows of a homogeneous transform."""
    x, y, z = point
    (a, b, c, d), (e, f, g, h), (i, j, k, l), _ = rows
    return a * x + b * y + c * z + d, e * x + f * y + g * z + h, i * x + j * y + k * z + l


def along(start: Point, direction: Point, s: float) -> Point:
    """The point ``start + s direction``."""
    return start[0] + s * direction[0], start[1] + s * direction[1], start[2] + s * direction[2]


def _clamped(x: float) -> float:
    return min(max(x, 0.0), 1.0)


def _minus(a: Point, b: Point) -> Point:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _dot(a: Point, b: Point) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Point, b: Point) -> Point:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
