"""Triangles of the polygons of OBJ files.

trimesh splits a polygon into the triangles between its first corner and its edges. Those of a polygon that is not convex overlap, which
changes areas and inertias that add up sizes of triangles. This module cuts off ears instead (G. H. Meisters, Polygons have ears, 1975).
"""

from __future__ import annotations

import re

import numpy as np

TINY = 1.0e-12
"""Areas below this part of the square of the size of a polygon are rounding errors."""


def triangulate(polygons: np.ndarray) -> np.ndarray:
    """Triangles that cover each of some plane polygons once.

    Args:
        polygons: corners in order, ``[m, n, 3]``; a polygon that is not quite plane is projected along its mean normal.

    Returns:
        Indices of corners, ``[m, n - 2, 3]`` int, with the sense of rotation of the polygon. A polygon that crosses itself is covered in
        part only.
    """
    flat = _projected(np.asarray(polygons, dtype=np.float64))
    rows = np.arange(len(flat))
    left, found = np.tile(np.arange(flat.shape[1]), (len(flat), 1)), []
    while (n := left.shape[1]) > 3:
        i = _ears(flat[rows[:, None], left])
        found.append(np.stack([left[rows, i - 1], left[rows, i], left[rows, (i + 1) % n]], axis=1))
        left = left[np.arange(n) != i[:, None]].reshape(-1, n - 1)
    return np.stack([*found, left], axis=1)


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
        concave = np.flatnonzero(~are_convex(corners))
        for k, triples in zip(concave, triangulate(corners[concave]), strict=True):
            at, words = found[k][0], lines[found[k][0]].split()[1:]
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
    """Corners of polygons ``[m, n, 3]`` in their planes ``[m, n, 2]``, counterclockwise."""
    away = points - points.mean(axis=1, keepdims=True)
    normal = _normals(points)
    across = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal), axis=1)])
    length = np.linalg.norm(across, axis=1, keepdims=True)
    across = np.divide(across, length, out=np.zeros_like(across), where=length > 0.0)
    axes = np.stack([across, np.cross(normal, across)], axis=2)
    # polygons without an area have no normal
    axes[~normal.any(axis=1)] = np.eye(3)[:, :2]
    return away @ axes


def _ears(points: np.ndarray) -> np.ndarray:
    """For each polygon ``[m, n, 2]`` the index of a corner whose triangle with its neighbours is inside of the polygon, ``[m]``."""
    before, after = np.roll(points, 1, axis=1), np.roll(points, -1, axis=1)
    tiny = TINY * np.square(np.ptp(points, axis=1)).sum(axis=1)[:, None]
    area = _cross(points - before, after - points)
    # corners without an area go first; a polygon that crosses itself may have no ear
    level, left = np.abs(area) <= tiny, area > 0.0
    found = np.where(level.any(axis=1), level.argmax(axis=1), area.argmax(axis=1))
    left[level.any(axis=1)] = False
    while (rows := np.flatnonzero(left.any(axis=1))).size:
        i, all_points, least = left[rows].argmax(axis=1), points[rows], -tiny[rows]
        a, b, c = (corners[rows, i][:, None] for corners in (before, points, after))
        inside = (
            (_cross(b - a, all_points - a) >= least)
            & (_cross(c - b, all_points - b) >= least)
            & (_cross(a - c, all_points - c) >= least)
        )
        # corners at the same place as one of the triangle do not count
        apart = ~np.any([(all_points == corner).all(axis=2) for corner in (a, b, c)], axis=0)
        ear = ~(inside & apart).any(axis=1)
        found[rows[ear]] = i[ear]
        left[rows, i] = False
        left[rows[ear]] = False
    return found


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
