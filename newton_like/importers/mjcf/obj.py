"""Triangles of OBJ files, cut from polygons as in MuJoCo."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from newton_like.geometry.polygons import are_convex, triangulate

_REFERENCE = re.compile(r"/\S*")
"""Texture coordinates and normals of a corner."""


def load_obj(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vertices ``[n, 3]`` and triangles ``[m, 3]`` of an OBJ file.

    Four-sided faces are cut along their shorter diagonal, and ears are cut off other polygons that are not convex, as in MuJoCo. If the
    corners of a face are not coplanar, the volume depends on the cut.

    Raises:
        ValueError: the file has no triangles, words that are not numbers, or a face with a corner that does not exist.
    """
    lines = [line.lstrip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    points, faces = (_lines_of(lines, kind) for kind in "vf")
    if not points or not faces:
        raise ValueError(f"mesh '{path}' contains no triangles")
    words, sizes = _words(points, "v")
    if sizes.min() < 3:
        raise ValueError(f"mesh '{path}' has a vertex with fewer than 3 coordinates")
    if sizes.max() > 3:
        # weights or colours follow the coordinates
        begins = np.cumsum(sizes) - sizes
        words = [words[i] for i in (begins[:, None] + np.arange(3)).ravel()]
    vertices = np.array(list(map(float, words))).reshape(-1, 3)
    words, sizes = _words(_REFERENCE.sub("", "\n".join(faces)).split("\n"), "f")
    corners = np.array(list(map(int, words)), dtype=np.int64)
    if corners.size and corners.min() < 0:
        # these count backwards from the last vertex above the face
        kinds = np.array([kind for line in lines for kind in line[:1] if _is(line, "v") or _is(line, "f")])
        above = np.repeat(np.cumsum(kinds == "v")[kinds == "f"], sizes)
        corners = np.where(corners < 0, above + corners + 1, corners)
    if sizes.min() < 3 or corners.min() < 1 or corners.max() > len(vertices):
        raise ValueError(f"mesh '{path}' has a face with fewer than 3 corners, or with a corner that does not exist")
    return vertices, _triangles(vertices, corners - 1, sizes)


def _is(line: str, kind: str) -> bool:
    return line[:1] == kind and not line[1:2].strip()


def _lines_of(lines: list[str], kind: str) -> list[str]:
    """The lines that begin with a keyword of one letter."""
    return [line for line in lines if line.startswith((f"{kind} ", f"{kind}\t")) or line == kind]


def _words(lines: list[str], kind: str) -> tuple[list[str], np.ndarray]:
    """The words behind the keyword `kind` of all lines, and their number in each line."""
    words = "\n".join(lines).split()
    if len(words) == 4 * len(lines) and set(words[::4]) == {kind}:
        # three numbers in each line
        del words[::4]
        return words, np.full(len(lines), 3)
    sizes = np.array([len(line.split()) for line in lines]) - 1
    return [word for word in words if word != kind], sizes


def _triangles(vertices: np.ndarray, corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Triangles of polygons in the order of the polygons.

    Args:
        vertices: ``[n, 3]``.
        corners: indices of vertices, polygon after polygon.
        sizes: number of corners of each polygon.
    """
    if (sizes == 3).all():
        return corners.reshape(-1, 3)
    begins = np.cumsum(sizes) - sizes
    places = np.cumsum(sizes - 2) - (sizes - 2)
    found = np.empty((int((sizes - 2).sum()), 3), dtype=np.int64)
    found[places[sizes == 3]] = corners[begins[sizes == 3, None] + np.arange(3)]
    quads = corners[begins[sizes == 4, None] + np.arange(4)]
    if len(quads):
        a, b, c, d = vertices[quads].swapaxes(0, 1)
        first = np.sum((a - c) ** 2, axis=1) < np.sum((b - d) ** 2, axis=1)
        at = places[sizes == 4]
        found[at] = np.where(first[:, None], quads[:, [0, 1, 2]], quads[:, [0, 1, 3]])
        found[at + 1] = np.where(first[:, None], quads[:, [0, 2, 3]], quads[:, [1, 2, 3]])
    for size in np.unique(sizes[sizes > 4]):
        polygons, at = corners[begins[sizes == size, None] + np.arange(size)], places[sizes == size]
        convex = are_convex(vertices[polygons])
        for k in range(1, size - 1):
            found[at[convex] + k - 1] = polygons[convex][:, [0, k, k + 1]]
        concave = polygons[~convex]
        cut = triangulate(vertices[concave])
        found[at[~convex, None] + np.arange(size - 2)] = concave[np.arange(len(concave))[:, None, None], cut]
    return found
