"""The surface of every shape type as triangles, for pictures and for formats that support only meshes."""

from __future__ import annotations

import numpy as np

from newton_like.types import GeoType

SECTIONS = 24
"""Number of segments of round shapes."""

ENDLESS = 1.0
"""Half the width and length [m] of the rectangle that represents an infinite plane."""

MANY = 64
"""Number of corners at one position above which they are not smoothed."""


def triangles(geo_type, scale, source=None) -> tuple[np.ndarray, np.ndarray]:
    """Vertices ``[n, 3]`` in the shape frame [m] and triangles ``[m, 3]``, counter-clockwise seen from outside.

    Args:
        geo_type: :class:`GeoType`.
        scale: as ``Model.shape_scale``.
        source: the :class:`Mesh` or :class:`Heightfield`, for types with a source.
    """
    geo_type, (x, y, z) = GeoType(int(geo_type)), (float(a) for a in scale)
    if geo_type == GeoType.PLANE:
        hx, hy = 0.5 * x or ENDLESS, 0.5 * y or ENDLESS
        return np.array([[-hx, -hy, 0], [hx, -hy, 0], [hx, hy, 0], [-hx, hy, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]])
    if geo_type in (GeoType.MESH, GeoType.CONVEX_MESH):
        return _scaled(np.asarray(source.vertices), np.asarray(source.indices).reshape(-1, 3), np.array([x, y, z]))
    if geo_type == GeoType.HFIELD:
        return _scaled(*_heightfield(source), np.array([x, y, z]))
    import trimesh

    if geo_type in (GeoType.SPHERE, GeoType.ELLIPSOID):
        ball = trimesh.creation.uv_sphere(radius=1.0, count=[SECTIONS // 2, SECTIONS])
        return ball.vertices * (x if geo_type == GeoType.SPHERE else np.array([x, y, z])), ball.faces
    if geo_type == GeoType.BOX:
        solid = trimesh.creation.box(extents=(2 * x, 2 * y, 2 * z))
    elif geo_type == GeoType.CAPSULE:
        solid = trimesh.creation.capsule(radius=x, height=2 * y, count=[SECTIONS, SECTIONS // 2])
        # some versions of trimesh put the middle of one cap at the origin
        solid.apply_translation(-solid.bounds.mean(axis=0))
    elif geo_type == GeoType.CYLINDER:
        solid = trimesh.creation.cylinder(radius=x, height=2 * y, sections=SECTIONS)
    elif geo_type == GeoType.CONE:
        solid = trimesh.creation.cone(radius=x, height=2 * y, sections=SECTIONS)
        solid.apply_translation((0.0, 0.0, -y))
    else:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=int)
    return np.asarray(solid.vertices), np.asarray(solid.faces)


def _scaled(vertices, faces, factors) -> tuple[np.ndarray, np.ndarray]:
    """A surface with factors on its coordinates. An odd number of reflections inverts the orientation of triangles."""
    return vertices * factors, faces if np.prod(factors) > 0 else faces[:, ::-1]


def _heightfield(field) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.linspace(-field.hx, field.hx, field.ncol), np.linspace(-field.hy, field.hy, field.nrow))
    heights = field.min_z + field.data * (field.max_z - field.min_z)
    vertices = np.stack([x, y, heights], axis=-1).reshape(-1, 3)
    number = np.arange(field.nrow * field.ncol).reshape(field.nrow, field.ncol)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    faces = np.concatenate([np.stack([a, b, c], axis=-1).reshape(-1, 3), np.stack([a, c, d], axis=-1).reshape(-1, 3)])
    return vertices, faces


def corner_normals(vertices, faces, crease: float = 35.0) -> np.ndarray:
    """Normals at the corners of triangles, for shading, ``[m, 3, 3]``. Normals of neighbours with a small angle between them are averaged;
    others are those of the triangle.

    Args:
        vertices: ``[n, 3]``; vertices at the same position count as one.
        faces: ``[m, 3]``.
        crease: angle between the normals of neighbours from which the edge is sharp [degrees].
    """
    vertices, faces = np.asarray(vertices, dtype=np.float64), np.asarray(faces)
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    weighted = np.cross(b - a, c - a)
    unit = weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-300)
    size = max(float(np.ptp(vertices, axis=0).max()), 1e-300)
    _, place = np.unique(np.round(vertices / (1e-6 * size)), axis=0, return_inverse=True)
    corners = place.ravel()[faces].ravel()
    order = np.argsort(corners, kind="stable")
    first = np.searchsorted(corners[order], corners)
    count = np.bincount(corners)[corners]
    # corners at positions with very many of them are not smoothed, because the number of pairs is quadratic
    own = count > MANY
    first, count = np.where(own, 0, first), np.where(own, 1, count)
    mine = np.repeat(np.arange(len(corners)), count)
    starts = np.cumsum(count) - count
    other = order[first[mine] + np.arange(len(mine)) - starts[mine]]
    other = np.where(own[mine], mine, other) // 3
    mine = mine // 3
    blunt = np.einsum("ij,ij->i", unit[mine], unit[other]) > np.cos(np.radians(crease))
    blunt |= mine == other
    return np.add.reduceat(np.where(blunt[:, None], weighted[other], 0.0), starts).reshape(-1, 3, 3)
