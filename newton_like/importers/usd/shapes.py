"""Geometry of USD prims: conversion of gprims with their scales and approximations to shapes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from newton_like.coercion import LARGEST
from newton_like.geometry.decomposition import connected_parts, convex_parts
from newton_like.geometry.mesh import LEAST_HULL_VERTICES, Mesh
from newton_like.geometry.transforms import IDENTITY
from newton_like.importers.shared import shared_mesh
from newton_like.importers.usd.values.pose import transform, transform_multiply
from newton_like.importers.usd.values.units import Placement, Reader
from newton_like.types import GeoType

GPRIMS = frozenset(
    ("Cube", "Sphere", "Capsule", "Capsule_1", "Cylinder", "Cylinder_1", "Cone", "Plane", "Mesh", "Points")
)
"""Prim types that are read as geometry."""

ROUND_SEGMENTS = 32
"""Segments of the circles of capsules and cylinders with different ends; the hull is 0.5 % inside the surface."""

ROUND_RINGS = 8
"""Circles from the pole to the equator of such a capsule's cap."""

EVEN = 1.0e-4
"""Largest relative difference of scales that count as equal."""

_HALF = math.sqrt(0.5)
_TO_AXIS = {
    "X": np.array([0.0, 0.0, 0.0, 0.0, _HALF, 0.0, _HALF]),
    "Y": np.array([0.0, 0.0, 0.0, -_HALF, 0.0, 0.0, _HALF]),
    "Z": IDENTITY,
}
"""Rotations from z to each axis."""
_TURNED_OVER = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class Piece:
    """A shape for the builder.

    Attributes:
        type: the ``GeoType``.
        scale: three numbers, see ``GeoType`` [m, or factors of the mesh].
        pose: pose in the stage, without the stage's rotation [m].
        mesh: mesh of MESH and CONVEX_MESH.
        suffix: part of the label after the prim's path.
    """

    type: GeoType
    scale: tuple[float, float, float]
    pose: np.ndarray
    mesh: Mesh | None = None
    suffix: str = ""


class ShapeReader:
    """Reads gprims. Prims with the same points share one mesh.

    Args:
        reader: reader of attributes.
        meters: metres for a unit of the stage.
        hull_vertices: default largest number of vertices of a hull.
        remark: function that is called with a statement and a path.
    """

    def __init__(self, reader: Reader, meters: float, hull_vertices: int, remark):
        self._reader, self._meters, self._hull_vertices, self._remark = reader, meters, hull_vertices, remark
        self._meshes: dict[tuple, object] = {}

    def read(self, prim, place: Placement, approximation: str | None) -> list[Piece]:
        """Shapes of a gprim: one, except for points and decompositions.

        Args:
            prim: a prim of one of the types ``GPRIMS``.
            place: its placement.
            approximation: token of the MeshCollisionAPI; ``None`` for the surface itself.

        Raises:
            ImportFileError: an invalid size or mesh.
        """
        kind = prim.GetTypeName()
        if kind == "Xform":
            return [Piece(GeoType.NONE, (0.0, 0.0, 0.0), place.pose)]
        if place.sheared and kind not in ("Mesh", "Points"):
            self._remark("frames are sheared (rotated below a nonuniform scale); the shear is ignored", prim)
        if kind == "Cube":
            half = 0.5 * self._size(prim, "size", 2.0)
            return [Piece(GeoType.BOX, tuple((half * np.abs(place.scale)).tolist()), place.pose)]
        if kind == "Sphere":
            return [self._ball(self._size(prim, "radius", 1.0), place)]
        if kind == "Plane":
            return [Piece(GeoType.PLANE, (0.0, 0.0, 0.0), self._upright(prim, place))]
        if kind == "Mesh":
            return self._mesh(prim, place, approximation or "none")
        if kind == "Points":
            return self._points(prim, place)
        return [self._round(prim, kind, place)]

    def _size(self, prim, name: str, default: float) -> float:
        """A length of the file [m]."""
        size = self._reader.number(prim, name, default, low=0.0)
        if size == 0.0:
            raise self._reader.error(prim, f"{name} is 0; give the {prim.GetTypeName()} a size, or remove it")
        return self._meters * size

    def _axis(self, prim) -> str:
        axis = self._reader.token(prim, "axis", "Z")
        if axis not in _TO_AXIS:
            raise self._reader.error(prim, f"axis {axis!r} is unknown; use 'X', 'Y' or 'Z'")
        return axis

    def _upright(self, prim, place: Placement) -> np.ndarray:
        """Pose of a shape along z. A mirrored frame turns shapes with different ends upside down."""
        pose = transform_multiply(place.pose, _TO_AXIS[self._axis(prim)])
        return transform_multiply(pose, _TURNED_OVER) if place.mirrored else pose

    def _ball(self, radius: float, place: Placement, center=(0.0, 0.0, 0.0), suffix: str = "") -> Piece:
        pose = transform_multiply(place.pose, transform(place.stretch @ np.asarray(center)))
        radii = radius * np.abs(place.scale)
        if np.ptp(radii) <= EVEN * radii.max():
            return Piece(GeoType.SPHERE, (float(radii.max()), 0.0, 0.0), pose, suffix=suffix)
        return Piece(GeoType.ELLIPSOID, tuple(radii.tolist()), pose, suffix=suffix)

    def _points(self, prim, place: Placement) -> list[Piece]:
        points = self._array(prim, "points", 3)
        widths = self._array(prim, "widths", 1)[:, 0]
        if len(widths) == 1:
            widths = np.repeat(widths, len(points))
        if len(points) == 0 or len(widths) != len(points):
            raise self._reader.error(prim, f"{len(points)} points and {len(widths)} widths; give each point a width")
        if widths.min() <= 0.0:
            raise self._reader.error(prim, f"a width is {widths.min():g}; give widths above 0")
        balls = zip(points * self._meters, widths * self._meters, strict=True)
        return [self._ball(0.5 * w, place, p, f"/point_{i}") for i, (p, w) in enumerate(balls)]

    def _round(self, prim, kind: str, place: Placement) -> Piece:
        """A capsule, cylinder or cone."""
        axis = self._axis(prim)
        along = "XYZ".index(axis)
        sizes = np.abs(place.scale)
        across = np.delete(sizes, along)
        if np.ptp(across) > EVEN * across.max():
            self._remark("round shapes have an nonuniform scale across their axis; the larger scale is used", prim)
        wide = float(across.max())
        half = 0.5 * self._size(prim, "height", 1.0 if kind.startswith("Capsule") else 2.0) * float(sizes[along])
        if kind.endswith("_1"):
            default = 0.5 if kind == "Capsule_1" else 1.0
            bottom, top = (
                self._meters * self._reader.number(prim, name, default, low=0.0) * wide
                for name in ("radiusBottom", "radiusTop")
            )
            if max(bottom, top) <= 0.0:
                raise self._reader.error(prim, "radiusBottom and radiusTop are 0; give one a size")
            if abs(bottom - top) > EVEN * max(bottom, top):
                mesh = _tapered(bottom, top, half, capped=kind == "Capsule_1")
                return Piece(GeoType.CONVEX_MESH, (1.0, 1.0, 1.0), self._upright(prim, place), mesh)
            radius = bottom
        else:
            radius = self._size(prim, "radius", 0.5 if kind == "Capsule" else 1.0) * wide
        shape = {"Capsule": GeoType.CAPSULE, "Cylinder": GeoType.CYLINDER, "Cone": GeoType.CONE}[kind.split("_")[0]]
        return Piece(shape, (radius, half, 0.0), self._upright(prim, place))

    def _mesh(self, prim, place: Placement, approximation: str) -> list[Piece]:
        """Shapes of a mesh for an approximation token; scale factors convert the file's lengths to metres."""
        if approximation not in _APPROXIMATIONS:
            self._remark(f"approximation {approximation!r} is not known; the mesh itself is used", prim)
            approximation = "none"
        if approximation in ("meshSimplification", "sdf"):
            self._remark(f"approximation {approximation!r}: the mesh itself is used", prim)
        if place.sheared:
            mesh = self._load(prim, place.stretch)
            factors = (self._meters,) * 3
        else:
            mesh = self._load(prim, None)
            factors = tuple((self._meters * place.scale).tolist())
        if approximation in ("boundingCube", "boundingSphere"):
            points = mesh.vertices * factors
            low, high = points.min(axis=0), points.max(axis=0)
            pose = transform_multiply(place.pose, transform(0.5 * (low + high)))
            if approximation == "boundingSphere":
                radius = float(np.sqrt(((points - 0.5 * (low + high)) ** 2).sum(axis=1).max()))
                return [Piece(GeoType.SPHERE, (radius, 0.0, 0.0), pose, mesh=None)]
            half = 0.5 * (high - low)
            if half.min() <= 0.0:
                raise self._reader.error(
                    prim, "is flat, and its bounding cube is not a solid; use approximation 'none'"
                )
            return [Piece(GeoType.BOX, tuple(half.tolist()), pose)]
        if approximation == "convexHull":
            return [Piece(GeoType.CONVEX_MESH, factors, place.pose, mesh)]
        if approximation == "convexDecomposition":
            parts = self._parts(mesh, prim)
            if len(parts) == 1:
                return [Piece(GeoType.CONVEX_MESH, factors, place.pose, parts[0])]
            return [Piece(GeoType.CONVEX_MESH, factors, place.pose, m, f"/part_{i}") for i, m in enumerate(parts)]
        return [Piece(GeoType.MESH, factors, place.pose, mesh)]

    def _array(self, prim, name: str, width: int) -> np.ndarray:
        values = self._reader.numbers(prim, name)
        if values is not None and values.size % width:
            raise self._reader.error(prim, f"{name} has {values.size} numbers; give {width} for each entry")
        array = np.zeros((0, width)) if values is None else values.reshape(-1, width)
        if not np.all(np.abs(array) <= LARGEST):
            raise self._reader.error(prim, f"{name} contains a number that is not finite; correct it")
        return array

    def _load(self, prim, stretch) -> Mesh:
        """The mesh of a prim in the file's lengths, shared by prims with the same points."""
        points = self._array(prim, "points", 3)
        counts = self._array(prim, "faceVertexCounts", 1)[:, 0].astype(np.int64)
        indices = self._array(prim, "faceVertexIndices", 1)[:, 0].astype(np.int64)
        holes = self._array(prim, "holeIndices", 1)[:, 0].astype(np.int64)
        orientation = self._reader.token(prim, "orientation", "rightHanded")
        if orientation not in ("rightHanded", "leftHanded"):
            raise self._reader.error(prim, f"orientation {orientation!r} is unknown; use 'rightHanded' or 'leftHanded'")
        left = orientation == "leftHanded"
        limit = self._hull_limit(prim)
        if stretch is not None:
            points = points @ stretch.T
        key = (points.tobytes(), counts.tobytes(), indices.tobytes(), holes.tobytes(), left, limit)
        if key not in self._meshes:
            faces = self._triangles(prim, len(points), counts, indices, holes)
            try:
                self._meshes[key] = shared_mesh(points, faces[:, ::-1] if left else faces, limit, str(prim.GetPath()))
            except (ValueError, TypeError) as error:
                raise self._reader.error(prim, f"its mesh cannot be used: {error}") from error
        return self._meshes[key]

    def _triangles(self, prim, point_count: int, counts, indices, holes) -> np.ndarray:
        """Triangles of the polygons; a polygon is a fan around its first corner."""
        if not len(counts) or not point_count:
            raise self._reader.error(prim, "the mesh has no points or no faces; give it some, or remove it")
        if counts.min() < 3 or counts.sum() != len(indices):
            raise self._reader.error(
                prim,
                f"faceVertexCounts (smallest {counts.min()}, sum {counts.sum()}) do not fit {len(indices)} "
                "faceVertexIndices; polygons have at least 3 corners, and each corner an index",
            )
        if indices.min() < 0 or indices.max() >= point_count:
            raise self._reader.error(
                prim, f"faceVertexIndices go from {indices.min()} to {indices.max()}; there are {point_count} points"
            )
        kept = np.ones(len(counts), dtype=bool)
        kept[holes[(holes >= 0) & (holes < len(counts))]] = False
        fans = np.where(kept, counts - 2, 0)
        first = np.repeat(np.cumsum(counts) - counts, fans)
        step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
        return np.stack([indices[first], indices[first + step + 1], indices[first + step + 2]], axis=1)

    def _hull_limit(self, prim) -> int:
        for name in (
            "newton:maxHullVertices",
            "physxConvexHullCollision:hullVertexLimit",
            "physxConvexDecompositionCollision:hullVertexLimit",
            "mjc:maxhullvert",
        ):
            limit = self._reader.number(prim, name)
            if limit is not None and limit > 0:
                return max(int(limit), LEAST_HULL_VERTICES)
        return self._hull_vertices

    def _parts(self, mesh: Mesh, prim) -> tuple[Mesh, ...]:
        """Convex parts of a mesh by CoACD, or, where CoACD is not installed or fails, its connected parts."""
        most = self._reader.number(prim, "physxConvexDecompositionCollision:maxConvexHulls")
        try:
            return convex_parts(mesh, max_convex_hull=int(most) if most else -1)
        except (ModuleNotFoundError, ValueError) as error:
            self._remark(f"approximation 'convexDecomposition': each connected part becomes its hull ({error})", prim)
            return connected_parts(mesh)


_APPROXIMATIONS = (
    "none",
    "convexHull",
    "convexDecomposition",
    "boundingCube",
    "boundingSphere",
    "meshSimplification",
    "sdf",
)


def _tapered(bottom: float, top: float, half: float, capped: bool) -> Mesh:
    """Hull of a capsule or cylinder along z with different radii at its ends."""
    angles = 2.0 * np.pi * np.arange(ROUND_SEGMENTS) / ROUND_SEGMENTS
    circle = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1)
    rings = []
    for radius, height, side in ((bottom, -half, -1.0), (top, half, 1.0)):
        for latitude in np.linspace(0.0, 0.5 * np.pi, ROUND_RINGS + 1) if capped else (0.0,):
            up = np.array([0.0, 0.0, height + side * radius * math.sin(latitude)])
            rings.append(radius * math.cos(latitude) * circle + up)
    points = np.concatenate(rings)
    # The triangle is arbitrary, because only the hull of the points is used.
    hull = Mesh(points, [[0, 1, 2]], compute_inertia=False, max_hull_vertices=len(points)).hull_mesh
    return Mesh(hull.vertices, hull.indices, compute_inertia=False, max_hull_vertices=2 * ROUND_SEGMENTS)
