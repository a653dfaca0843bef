"""Tables of fixed height fields and triangle meshes that kernels look up; see `newton_like.kernels.collision.surfaces.records`."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.geometry.mesh import Heightfield
from newton_like.kernels.collision.surfaces.records import FIELD_HEAD, LEVELS, MESH_HEAD, NODE, NODE_NEXT, NODE_TRIANGLE
from newton_like.types import GeoType, ShapeFlags

LARGEST_TABLE = 2**24
"""Numbers of one surface must be fewer: single precision counts so far without gaps."""

_WELD = 1.0e-6
"""Vertices of a mesh that are closer than this share of its size are one vertex."""


class Surfaces:
    """The surfaces of a model: height fields and meshes on no body that collide.

    Args:
        model: the model.
        shapes: indices of these shapes.

    Attributes:
        shapes: these indices.
        table: all numbers, on the device of the model.
    """

    def __init__(self, model, shapes: list[int]):
        self.shapes = shapes
        self._first: dict[int, int] = {}
        parts, at = [], 0
        for s in shapes:
            source = model.shape_source[s]
            if id(source) in self._first:
                continue
            part = field_table(source) if isinstance(source, Heightfield) else mesh_table(source)
            if len(part) >= LARGEST_TABLE:
                raise ValueError(
                    f"shape '{model.shape_label[s]}' (index {s}): contacts of a surface of {len(part)} numbers cannot be found; a surface"
                    f" may have {LARGEST_TABLE - 1}, about {LARGEST_TABLE // (LEVELS + 1)} heights or {LARGEST_TABLE // 35} triangles; cut"
                    " it into parts"
                )
            self._first[id(source)] = at
            parts.append(part)
            at += len(part)
        # the sources stay alive, so that their addresses stay theirs
        self._sources = [model.shape_source[s] for s in shapes]
        self.table = wp.array(np.concatenate(parts or [np.zeros(1)]), dtype=model.dtype, device=model.device)

    def first(self, source) -> int:
        """Where the table of a source starts."""
        return self._first[id(source)]


def surfaces_of(model) -> Surfaces:
    """The surfaces of a model. They are kept until other shapes collide."""
    fixed = (model.shape_body.numpy() < 0) & np.isin(model.shape_type.numpy(), (GeoType.HFIELD, GeoType.MESH))
    shapes = np.flatnonzero(fixed & (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES != 0)).tolist()
    if model._surfaces is None or model._surfaces.shapes != shapes:
        model._surfaces = Surfaces(model, shapes)
    return model._surfaces


def field_table(field: Heightfield) -> np.ndarray:
    """The table of a height field."""
    heights = field.min_z + field.data * (field.max_z - field.min_z)
    head = np.array(
        [
            field.ncol, field.nrow, -field.hx, -field.hy, 2.0 * field.hx / (field.ncol - 1), 2.0 * field.hy / (field.nrow - 1),
            heights.max(),
        ]
    )  # fmt: skip
    assert len(head) == FIELD_HEAD
    top = np.maximum(np.maximum(heights[:-1, :-1], heights[1:, :-1]), np.maximum(heights[:-1, 1:], heights[1:, 1:]))
    levels, reach = [], 1
    top = _widened(top, 1)
    for _ in range(LEVELS):
        levels.append(top.ravel())
        top = _widened(top, reach)
        reach *= 2
    return np.concatenate([head, heights.ravel(), *levels])


def _widened(x: np.ndarray, reach: int) -> np.ndarray:
    """The largest of the numbers that are `reach` before and after each one, and of itself, along both axes."""
    for axis in (0, 1):
        n = min(reach, x.shape[axis] - 1)
        if n == 0:
            continue
        y = np.moveaxis(x, axis, 0)
        wide = y.copy()
        wide[n:] = np.maximum(wide[n:], y[:-n])
        wide[:-n] = np.maximum(wide[:-n], y[n:])
        if n < reach:
            # the ends are farther away than there are numbers
            wide[:] = y.max(axis=0)
        x = np.moveaxis(wide, 0, axis)
    return x


def mesh_table(mesh) -> np.ndarray:
    """The table of a triangle mesh. Triangles without area are left out; those of a closed mesh point outwards."""
    vertices = np.asarray(mesh.vertices, dtype=np.float64)
    faces = np.asarray(mesh.indices).reshape(-1, 3).astype(np.int64)
    size = max(float(np.ptp(vertices, axis=0).max(initial=0.0)), 1e-300)
    _, first, place = np.unique(np.round(vertices / (_WELD * size)), axis=0, return_index=True, return_inverse=True)
    faces = first[place.ravel()[faces]]
    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    flat = area <= 1e-12 * size * size
    faces, corners, normal, area = faces[~flat], corners[~flat], normal[~flat], area[~flat]
    if not len(faces):
        return np.array([0.0, 0.0])
    # the signed volume of an open surface depends on the origin, and says nothing of its front side
    inward = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) < 0.0
    if inward and mesh.is_solid and mesh.is_watertight:
        faces, corners, normal = faces[:, ::-1], corners[:, ::-1], -normal
    order = _along_curve(corners)
    faces, corners, normal = faces[order], corners[order], normal[order] / area[order, None]
    apexes = _apexes(vertices, faces, corners, normal)
    triangles = np.concatenate([corners, apexes], axis=1).reshape(len(faces), -1)
    nodes = _tree(corners.min(axis=1), corners.max(axis=1))
    head = np.array([len(nodes), len(faces)], dtype=np.float64)
    assert len(head) == MESH_HEAD
    return np.concatenate([head, nodes.ravel(), triangles.ravel()])


def _apexes(vertices, faces, corners, normal) -> np.ndarray:
    """The corners of the neighbours that are not on the edges, ``[n, 3, 3]``. At an edge that does not have two triangles of the same
    orientation, the neighbour goes straight down."""
    n = len(faces)
    start, end, third = faces.ravel(), np.roll(faces, -1, axis=1).ravel(), np.roll(faces, -2, axis=1).ravel()
    code = np.minimum(start, end) * len(vertices) + np.maximum(start, end)
    order = np.argsort(code, kind="stable")
    sorted_code = code[order]
    at = np.searchsorted(sorted_code, code)
    count = np.searchsorted(sorted_code, code, side="right") - at
    other = order[np.minimum(at + 1, len(order) - 1)]
    other = np.where(order[at] == np.arange(3 * n), other, order[at])
    paired = (count == 2) & (start[other] == end)
    edge = np.roll(corners, -1, axis=1) - corners
    length = np.linalg.norm(edge, axis=2, keepdims=True)
    down = corners - normal[:, None, :] * length
    return np.where(paired.reshape(n, 3, 1), vertices[third[other]].reshape(n, 3, 3), down)


def _along_curve(corners: np.ndarray) -> np.ndarray:
    """The order of triangles along a curve that fills space (Morton 1966)."""
    middle = corners.mean(axis=1)
    low, span = middle.min(axis=0), max(float(np.ptp(middle, axis=0).max()), 1e-300)
    cell = ((middle - low) / span * 1023.0).astype(np.int64)
    code = np.zeros(len(middle), dtype=np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


def _tree(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The nodes of a balanced tree over boxes, in depth-first order. A node over n boxes has 2 n - 1 nodes, itself included."""
    count = len(low)
    nodes = np.zeros((2 * count - 1, NODE))
    at, start, size = (np.array([x]) for x in (0, 0, count))
    while len(at):
        ends = np.stack([start, start + size], axis=1).ravel()
        # reduceat takes each range and what lies between two of them
        inside = np.append(low, low[-1:], axis=0), np.append(high, high[-1:], axis=0)
        nodes[at, 0:3] = np.minimum.reduceat(inside[0], ends, axis=0)[::2]
        nodes[at, 3:6] = np.maximum.reduceat(inside[1], ends, axis=0)[::2]
        nodes[at, NODE_NEXT] = at + 2 * size - 1
        nodes[at, NODE_TRIANGLE] = np.where(size == 1, start, -1)
        inner = size > 1
        at, start, size = at[inner], start[inner], size[inner]
        half = size // 2
        at = np.concatenate([at + 1, at + 2 * half])
        start, size = np.concatenate([start, start + half]), np.concatenate([half, size - half])
        order = np.argsort(start, kind="stable")
        at, start, size = at[order], start[order], size[order]
    return nodes
