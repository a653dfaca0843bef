"""Triangles of the polygons of OBJ files.

trimesh splits a polygon into the triangles between its first corner and its edges. Those of a polygon that is not convex overlap, which
changes areas and inertias that add up sizes of triangles. This module cuts off ears instead (G. H. Meisters, Polygons have ears, 1975).
"""

from __future__ import annotations

import re

import numpy as np

TINY = 1.0e-12
"""Areas below this part of the square of the size of a polygon are rounding errors."""


def triangulate(points: np.ndarray) -> list[tuple[int, int, int]]:
    """Triangles that cover a plane polygon once.

    Args:
        points: corners in order, ``[n, 3]``; a polygon that is not quite plane is projected along its mean normal.

    Returns:
        Triples of corners, ``n - 2`` of them, with the sense of rotation of the polygon. A polygon that crosses itself is covered in
        part only.
    """
    flat = _projected(np.asarray(points, dtype=np.float64))
    left, found = list(range(len(flat))), []
    while len(left) > 3:
        i = _ear(flat, left)
        found.append((left[i - 1], left[i], left[(i + 1) % len(left)]))
        del left[i]
    return [*found, tuple(left)]


def are_convex(polygons: np.ndarray) -> np.ndarray:
    """Which of some plane polygons ``[m, n, 3]`` have no corner that points inwards, ``[m]``."""
    points = np.asarray(polygons, dtype=np.float64)
    ahead, behind = np.roll(points, -1, axis=1) - points, points - np.roll(points, 1, axis=1)
    turns = np.cross(behind, ahead)
    normal = _normals(points)
    size = np.square(np.ptp(points, axis=1)).sum(axis=1)
    return ((turns * normal[:, None]).sum(axis=2) >= -TINY * size[:, None]).all(axis=1)


def without_concave_polygons(text: str) -> str | None:
    """The text of an OBJ file in which triangles replace the polygons that are not convex; None if there are none.

    Faces that name vertices which do not exist stay as they are, for the reader of the file to refuse.
    """
    if _POLYGON.search(text) is None:
        return None
    try:
        return _without_concave_polygons(text)
    except ValueError:
        # numbers that are none
        return None


def _without_concave_polygons(text: str) -> str | None:
    lines = text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()
    vertices: list[list[str]] = []
    faces: dict[int, list[tuple[int, list[int]]]] = {}
    for at, line in enumerate(lines):
        if line.startswith("v "):
            vertices.append(line.split()[1:4])
        elif line.startswith("f "):
            words = line.split()[1:]
            if len(words) > 3:
                # numbers count from one, or backwards from the last vertex
                index = [int(word.partition("/")[0]) for word in words]
                index = [i - 1 if i > 0 else len(vertices) + i for i in index]
                faces.setdefault(len(index), []).append((at, index))
    places = np.array(vertices, dtype=np.float64)
    changed = False
    for found in faces.values():
        found = [(at, index) for at, index in found if min(index) >= 0 and max(index) < len(places)]
        if not found:
            continue
        corners = places[np.array([index for _, index in found])]
        for k in np.flatnonzero(~are_convex(corners)):
            at, words = found[k][0], lines[found[k][0]].split()[1:]
            triples = triangulate(corners[k])
            lines[at] = "\n".join(f"f {words[i]} {words[j]} {words[k]}" for i, j, k in triples)
            changed = True
    return "\n".join(lines) + "\n" if changed else None


def plain_lines(text: str) -> str:
    """The text of an OBJ file without blanks at the starts of lines, and with one blank behind each keyword; trimesh reads nothing else."""
    return _BLANKS.sub(r"\1 ", text)


_BLANKS = re.compile(r"^[ \t]*(vt|vn|v|f)[ \t]+", re.MULTILINE)
_POLYGON = re.compile(r"^f(?:[ \t]+\S+){4}", re.MULTILINE)
"""A face of more than three corners."""


def _normals(points: np.ndarray) -> np.ndarray:
    """Mean normals of polygons ``[m, n, 3]``, of length 1; zero for polygons without an area."""
    away = points - points.mean(axis=1, keepdims=True)
    normal = np.cross(away, np.roll(away, -1, axis=1)).sum(axis=1)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return np.divide(normal, length, out=np.zeros_like(normal), where=length > 0.0)


def _projected(points: np.ndarray) -> np.ndarray:
    """Corners in a plane ``[n, 2]``, counterclockwise."""
    away = points - points.mean(axis=0)
    (normal,) = _normals(points[None])
    if not normal.any():
        return away[:, :2]
    across = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    across /= np.linalg.norm(across)
    return np.stack([away @ across, away @ np.cross(normal, across)], axis=1)


def _size(flat: np.ndarray) -> float:
    return float(np.square(np.ptp(flat, axis=0)).sum())


def _ear(flat: np.ndarray, left: list[int]) -> int:
    """The place in `left` of a corner whose triangle with its neighbours is inside of the polygon."""
    points = flat[left]
    before, after = np.roll(points, 1, axis=0), np.roll(points, -1, axis=0)
    tiny = TINY * _size(points)
    area = _cross(points - before, after - points)
    # corners without an area go first; a polygon that crosses itself may have no ear
    for i in np.flatnonzero(np.abs(area) <= tiny).tolist() or np.flatnonzero(area > 0.0).tolist():
        if abs(area[i]) <= tiny:
            return i
        a, b, c = before[i], points[i], after[i]
        inside = (
            (_cross(b - a, points - a) >= -tiny)
            & (_cross(c - b, points - b) >= -tiny)
            & (_cross(a - c, points - c) >= -tiny)
        )
        # corners at the same place as one of the triangle do not count
        apart = ~((points == a).all(axis=1) | (points == b).all(axis=1) | (points == c).all(axis=1))
        if not (inside & apart).any():
            return i
    return int(np.argmax(area))


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
