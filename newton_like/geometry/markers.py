"""Arrows, frames, balls and rods that are drawn beside the shapes of a model."""

from __future__ import annotations

import numpy as np

from newton_like.coercion import as_number
from newton_like.geometry.outline import corner_normals, triangles
from newton_like.geometry.transforms import quat_between, quat_rotate, quat_to_matrix
from newton_like.types import GeoType

ROD, CONE, SPHERE = range(3)
"""Kinds of markers: a cylinder and a cone along z, a ball. Sizes of the unit marker are the radius 1, and the length 1 about its middle."""

AXES = ((0.85, 0.18, 0.15), (0.20, 0.62, 0.22), (0.15, 0.35, 0.85))
"""Colours of the x, y and z axes of frames."""

THICKNESS, HEAD, HEAD_LENGTH = 0.06, 2.6, 6.0
"""Radius of the rod of an axis over its length; radius and length of the head of an arrow over the radius of its rod."""


class Markers:
    """Arrows, frames, balls and rods in the world, which pictures, videos and recordings of a model draw beside its shapes.

    All methods that add take one marker or several, skip those that are not finite, and return the object. Arrays broadcast to ``[n, 3]``.
    A marker belongs to a world, and is drawn where this world is drawn; markers of world -1 are always drawn.

    Attributes:
        kind: ``ROD``, ``CONE`` or ``SPHERE``, ``[n]`` int.
        pose: position [m] and quaternion x y z w of the middle, ``[n, 7]``.
        scale: radii along x and y, and length (of balls: radius) along z [m], ``[n, 3]``.
        color: red, green and blue, 0 to 1, ``[n, 3]``.
        world: world of each marker, ``[n]`` int.
    """

    def __init__(self):
        self.kind = np.zeros(0, dtype=int)
        self.pose, self.scale, self.color = np.zeros((0, 7)), np.zeros((0, 3)), np.zeros((0, 3))
        self.world = np.zeros(0, dtype=int)

    def __len__(self) -> int:
        return len(self.kind)

    def add_balls(self, points, radius: float, color, world=-1) -> Markers:
        """Adds balls at points [m] with a radius [m]."""
        points = _rows(points, "points")
        pose = np.concatenate([points, np.tile([0.0, 0.0, 0.0, 1.0], (len(points), 1))], axis=1)
        return self._add(SPHERE, pose, np.full((len(points), 3), _size(radius, "radius")), color, world)

    def add_rods(self, begins, ends, radius: float, color, world=-1) -> Markers:
        """Adds rods between points [m] with a radius [m]; those without a length are left out."""
        begins, ends = np.broadcast_arrays(_rows(begins, "begins"), _rows(ends, "ends"))
        return self._along(ROD, begins, ends, _size(radius, "radius"), color, world)

    def add_arrows(self, points, vectors, radius: float, color, world=-1) -> Markers:
        """Adds arrows from points [m] along vectors [m] with the radius of the rod [m]; those without a length are left out. The heads of
        short arrows are shorter."""
        points, vectors = np.broadcast_arrays(_rows(points, "points"), _rows(vectors, "vectors"))
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        radius = _size(radius, "radius")
        head = np.minimum(HEAD_LENGTH * radius, 0.6 * length) / np.maximum(length, 1e-300)
        necks = points + (1.0 - head) * vectors
        self._along(ROD, points, necks, radius, color, world)
        return self._along(CONE, necks, points + vectors, HEAD * radius, color, world)

    def add_frames(self, poses, size: float, world=-1) -> Markers:
        """Adds the axes x (red), y (green) and z (blue) of poses, ``[n, 7]``, with a length [m]."""
        poses, size = _rows(poses, "poses", 7), _size(size, "size")
        for axis, color in zip(np.eye(3), AXES, strict=True):
            ends = poses[:, :3] + size * quat_rotate(poses[:, 3:], np.broadcast_to(axis, (len(poses), 3)))
            self._along(ROD, poses[:, :3], ends, THICKNESS * size, color, world)
        return self

    def add(self, other: Markers) -> Markers:
        """Adds the markers of another object."""
        for name in ("kind", "pose", "scale", "color", "world"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        return self

    def chosen(self, mask: np.ndarray) -> Markers:
        """The markers of a mask of bools."""
        result = Markers()
        for name in ("kind", "pose", "scale", "color", "world"):
            setattr(result, name, getattr(self, name)[mask])
        return result

    @property
    def box(self) -> np.ndarray:
        """Lowest and highest corner of a box around all markers, ``[2, 3]`` [m]."""
        half = np.where(self.kind[:, None] == SPHERE, 1.0, [1.0, 1.0, 0.5]) * self.scale
        reach = np.abs(quat_to_matrix(self.pose[:, 3:])) @ half[..., None]
        return np.stack(
            [(self.pose[:, :3] - reach[..., 0]).min(axis=0), (self.pose[:, :3] + reach[..., 0]).max(axis=0)]
        )

    def surface(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Corners of triangles and normals at them, both ``[triangles, 3, 3]``, and the marker of each triangle, ``[triangles]``."""
        corners, normals, owner = [np.zeros((0, 3, 3))], [np.zeros((0, 3, 3))], [np.zeros(0, dtype=int)]
        for kind in (ROD, CONE, SPHERE):
            which = np.flatnonzero(self.kind == kind)
            if not len(which):
                continue
            unit, outward = _unit(kind)
            turn = np.swapaxes(quat_to_matrix(self.pose[which, 3:]), 1, 2)[:, None]
            scale = self.scale[which, None, None]
            corners.append(((unit * scale) @ turn + self.pose[which, None, None, :3]).reshape(-1, 3, 3))
            normals.append(((outward / scale) @ turn).reshape(-1, 3, 3))
            owner.append(np.repeat(which, len(unit)))
        return np.concatenate(corners), np.concatenate(normals), np.concatenate(owner)

    def _along(self, kind: int, begins: np.ndarray, ends: np.ndarray, radius: float, color, world) -> Markers:
        away = ends - begins
        length = np.linalg.norm(away, axis=1)
        there = np.isfinite(length) & (length > 1e-9)
        safe = np.where(there[:, None], away, [0.0, 0.0, 1.0])
        pose = np.concatenate([0.5 * (begins + ends), quat_between([0.0, 0.0, 1.0], safe)], axis=1)
        scale = np.stack([np.full(len(length), radius), np.full(len(length), radius), length], axis=1)
        return self._add(kind, pose, scale, color, world, there)

    def _add(self, kind: int, pose, scale, color, world, there=True) -> Markers:
        n = len(pose)
        color = np.broadcast_to(np.asarray(color, dtype=float), (n, 3))
        world = np.broadcast_to(np.asarray(world, dtype=int), n)
        there = np.isfinite(pose).all(axis=1) & np.isfinite(scale).all(axis=1) & there
        for name, values in (
            ("kind", np.full(n, kind)), ("pose", pose), ("scale", scale), ("color", color), ("world", world),
        ):  # fmt: skip
            setattr(self, name, np.concatenate([getattr(self, name), values[there]]))
        return self


def _rows(values, name: str, width: int = 3) -> np.ndarray:
    """Numbers as rows of a width. Raises ValueError: another width."""
    rows = np.asarray(values.numpy() if hasattr(values, "numpy") else values, dtype=float)
    if rows.ndim not in (1, 2) or rows.shape[-1] != width:
        raise ValueError(f"{name} of markers has shape {rows.shape}; it must be ({width},) or (n, {width})")
    return np.atleast_2d(rows)


def _size(value, name: str) -> float:
    number = as_number(value, name)
    if not number > 0.0:
        raise ValueError(f"{name} {number:g} of markers must be above 0 [m]")
    return number


_UNITS: dict[int, tuple[np.ndarray, np.ndarray]] = {}
_SHAPES = {
    ROD: (GeoType.CYLINDER, (1.0, 0.5, 0.0)),
    CONE: (GeoType.CONE, (1.0, 0.5, 0.0)),
    SPHERE: (GeoType.SPHERE, (1.0, 0.0, 0.0)),
}


def _unit(kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners and normals of the triangles of a unit marker, ``[triangles, 3, 3]``."""
    if kind not in _UNITS:
        vertices, faces = triangles(*_SHAPES[kind])
        _UNITS[kind] = vertices[faces], corner_normals(vertices, faces)
    return _UNITS[kind]
