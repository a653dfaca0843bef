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
            low, high = ar / aa, (ar + ax * bx + ay * by + az * bz) / aa
            if high < low:
                low, high = high, low
            s = 0.5 * ((0.0 if low < 0.0 else low) + (1.0 if high > 1.0 else high))
            s = 0.0 if s < 0.0 else 1.0 if s > 1.0 else s
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
    x, y, z = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    length = math.hypot(x, y, z)
    if length > 0.0:
        return x / length, y / length, z / length
    ax, ay, az = a1[0] - a0[0], a1[1] - a0[1], a1[2] - a0[2]
    bx, by, bz = b1[0] - b0[0], b1[1] - b0[1], b1[2] - b0[2]
    x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    aa, bb = ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz
    if x * x + y * y + z * z <= PARALLEL**2 * aa * bb:
        if bb > aa:
            ax, ay, az = bx, by, bz
        # the cross product with the coordinate axis that is farthest from the direction
        x, y, z = abs(ax), abs(ay), abs(az)
        if x <= y and x <= z:
            x, y, z = 0.0, az, -ay
        elif y <= z:
            x, y, z = -az, 0.0, ax
        else:
            x, y, z = ay, -ax, 0.0
    length = math.hypot(x, y, z)
    return (x / length, y / length, z / length) if length > 0.0 else (0.0, 0.0, 1.0)


def placed(rows: Sequence[Sequence[float]], ends: Sequence[Sequence[float]]) -> tuple[Point, Point]:
    """Two points of a frame in the frame in which its pose is given, as rows of a homogeneous transform."""
    (a, b, c, d), (e, f, g, h), (i, j, k, l), _ = rows
    (x, y, z), (u, v, w) = ends
    return (
        (a * x + b * y + c * z + d, e * x + f * y + g * z + h, i * x + j * y + k * z + l),
        (a * u + b * v + c * w + d, e * u + f * v + g * w + h, i * u + j * v + k * w + l),
    )


def along(start: Point, direction: Point, s: float) -> Point:
    """The point ``start + s direction``."""
    return start[0] + s * direction[0], start[1] + s * direction[1], start[2] + s * direction[2]


def _clamped(x: float) -> float:
    return min(max(x, 0.0), 1.0)
