"""Lengths of paths that wrap around spheres and cylinders, as MuJoCo defines them, in NumPy.

A path from x to y wraps around a circle of radius r: on the outside, where the straight line would cross the circle, or the side site asks
for the long way: tangents from x and y, and the arc between them. Where the side site is inside, the path touches the circle
from the inside at one point, at equal angles, if the straight line does not meet the circle. A path around a sphere lies in the plane of x,
y and the centre; one around a cylinder is a helix, which is straight where the cylinder is unrolled.

`newton_like.kernels.dynamics.wrapping` computes the same in lanes.
"""

from __future__ import annotations

import math

import numpy as np

from newton_like.kernels.tree import IN_CYLINDER, IN_SPHERE, ROUND_CYLINDER, ROUND_SPHERE, STRAIGHT


def tangent_points(x, y, side, r: float):
    """The points where a path around a circle leaves its tangents, in the plane; None if the path is straight.

    Args:
        x, y: both ends, outside the circle.
        side: the place of the side site. If the centre is between it and the wedge of x and y, the path goes the long way; None: never.
        r: the radius.

    Returns:
        Both points, and the angle between them.
    """
    d = y - x
    square = d @ d
    share = min(max(-(x @ d) / square, 0.0), 1.0) if square > 0.0 else 0.0
    nearest = x + share * d
    turn = 1.0 if _cross(x, y) >= 0.0 else -1.0
    long = side is not None and min(turn * _cross(side, x), turn * _cross(y, side)) > 0.0
    if nearest @ nearest > r * r and not long:
        return None
    wedge = abs(math.atan2(_cross(x, y), x @ y))
    if long:
        turn, wedge = -turn, 2.0 * math.pi - wedge
    # between an end and its tangent point
    ends = sum(math.atan2(math.sqrt(max(e @ e - r * r, 0.0)), r) for e in (x, y))
    return _tangent(x, r, -turn), _tangent(y, r, turn), max(wedge - ends, 0.0)


def _cross(a, b) -> float:
    return a[0] * b[1] - a[1] * b[0]


def _tangent(x, r: float, sign: float):
    square = x @ x
    root = math.sqrt(max(square - r * r, 0.0))
    return r / square * np.array([r * x[0] + sign * root * x[1], r * x[1] - sign * root * x[0]])


def inner_point(x, y, r: float):
    """The point where a path touches a circle from the inside; None if the path is straight. Arguments as :func:`tangent_points`."""
    d = y - x
    square = d @ d
    share = -(x @ d) / square if square > 0.0 else 0.0
    nearest = x + share * d
    if 0.0 < share < 1.0 and nearest @ nearest <= r * r:
        return None
    a, b = np.linalg.norm(x), np.linalg.norm(y)
    turn = math.atan2(x[0] * y[1] - x[1] * y[0], x @ y)
    whole, sign = abs(turn), 1.0 if turn >= 0.0 else -1.0
    if whole > math.pi - 1.0e-6:
        return None
    low, high = 0.0, whole
    for _ in range(60):
        middle = 0.5 * (low + high)
        rest = whole - middle
        slope = a * math.sin(middle) / math.sqrt(a * a + r * r - 2.0 * a * r * math.cos(middle))
        slope -= b * math.sin(rest) / math.sqrt(b * b + r * r - 2.0 * b * r * math.cos(rest))
        low, high = (middle, high) if slope < 0.0 else (low, middle)
    at = math.atan2(x[1], x[0]) + sign * 0.5 * (low + high)
    return r * np.array([math.cos(at), math.sin(at)])


def wrapped(kind: int, x, y, side, r: float):
    """The points between which a path wraps around a sphere or cylinder about the origin and the z axis; None if the path is straight.

    Args:
        kind: of the piece, see `newton_like.kernels.tree`.
        x, y: both ends [m].
        side: the side site, or None.
        r: the radius [m].

    Returns:
        Both points, and the length between them.
    """
    if kind in (ROUND_SPHERE, IN_SPHERE):
        if min(np.linalg.norm(x), np.linalg.norm(y)) <= r:
            return None
        e = x / np.linalg.norm(x)
        normal = np.cross(x, y)
        size = np.linalg.norm(normal)
        if size < 1.0e-12:
            # x, y and the centre are on a line: any plane through it
            normal = np.cross(e, np.eye(3)[np.argmin(np.abs(e))])
            size = np.linalg.norm(normal)
        axes = np.stack([e, np.cross(normal / size, e)])
    else:
        axes = np.eye(3)[:2]
    flat = [axes @ p for p in (x, y)]
    if min(np.linalg.norm(p) for p in flat) <= r:
        return None
    if kind in (IN_SPHERE, IN_CYLINDER):
        found = inner_point(*flat, r)
        found = None if found is None else (found, found, 0.0)
    else:
        found = tangent_points(*flat, None if side is None else axes @ side, r)
    if found is None:
        return None
    p, q, angle = found
    arc = r * angle
    u, v = axes.T @ p, axes.T @ q
    if kind in (ROUND_CYLINDER, IN_CYLINDER):
        first, last = np.linalg.norm(flat[0] - p), np.linalg.norm(flat[1] - q)
        rate = (y[2] - x[2]) / (first + arc + last)
        u[2], v[2] = x[2] + rate * first, x[2] + rate * (first + arc)
        arc = math.hypot(arc, v[2] - u[2])
    return u, v, arc


def piece_length(kind: int, x, y, side, r: float) -> float:
    """The length of a piece of a path; arguments as :func:`wrapped`."""
    found = None if kind == STRAIGHT else wrapped(kind, x, y, side, r)
    if found is None:
        return float(np.linalg.norm(y - x))
    p, q, arc = found
    return float(np.linalg.norm(p - x) + arc + np.linalg.norm(y - q))
