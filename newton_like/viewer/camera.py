"""The camera of pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DISTANCE = 5.0
"""Distance of the camera from the middle of the scene, in radii of its bounding sphere."""
NEAREST = 0.1
"""Distance from which triangles are drawn, in distances of the camera from the middle of the scene."""
FILLS = 0.88
"""Fraction of the picture's width or height that the scene fills."""


def times(vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """``vectors @ matrix`` for many short vectors, without the linear algebra library, whose threads would make it slower."""
    return (
        np.einsum("...j,j->...", vectors, matrix) if matrix.ndim == 1 else np.einsum("...j,jk->...k", vectors, matrix)
    )


@dataclass(frozen=True)
class Camera:
    """A camera in front of a scene.

    Attributes:
        up: up direction of the world.
        axes: columns right, up and towards the camera, in world axes.
        middle: middle of the scene [m].
        radius: radius of the scene's bounding sphere [m].
        distance: distance of the camera from the middle [m]; infinite for an orthographic view.
        scale: samples a metre at the middle.
        shift: column and row of the middle.
    """

    up: np.ndarray
    axes: np.ndarray
    middle: np.ndarray
    radius: float
    distance: float
    scale: float = 1.0
    shift: tuple[float, float] = (0.0, 0.0)

    def is_in_front(self, points: np.ndarray) -> np.ndarray:
        """Whether points ``[..., 3]`` in the world are in front of the camera, farther than ``NEAREST`` of its distance from the middle."""
        if np.isinf(self.distance):
            return np.ones(points.shape[:-1], dtype=bool)
        return times(points - self.middle, self.axes[:, 2]) < (1.0 - NEAREST) * self.distance

    def project(self, points: np.ndarray) -> np.ndarray:
        """Column, row and nearness of points ``[..., 3]`` in the world. The nearness in a perspective view is the inverse depth over that
        of the middle; in an orthographic view it is linear in the depth."""
        seen = times(points - self.middle, self.axes)
        if np.isinf(self.distance):
            near = 2.0 + seen[..., 2] / self.radius
            flat = seen[..., :2]
        else:
            near = self.distance / (self.distance - seen[..., 2])
            flat = seen[..., :2] * near[..., None]
        return np.stack(
            [self.shift[0] + self.scale * flat[..., 0], self.shift[1] - self.scale * flat[..., 1], near], axis=-1
        )

    def place(self, column, row, near) -> np.ndarray:
        """Points in the camera's axes, relative to the middle, for a perspective view: the inverse of :meth:`project`."""
        away = 1.0 / near
        found = np.empty((*np.shape(near), 3), dtype=np.float32)
        found[..., 0] = (column - self.shift[0]) / self.scale * away
        found[..., 1] = (self.shift[1] - row) / self.scale * away
        found[..., 2] = self.distance * (1.0 - away)
        return found

    @classmethod
    def framing(cls, points: np.ndarray, up: int, azimuth: float, elevation: float, samples) -> Camera:
        """A camera that shows all points as large as possible.

        Args:
            points: ``[n, 3]`` in the world.
            up: the up axis, 0 to 2.
            azimuth, elevation: direction from the points to the camera [degrees], about and above the up axis.
            samples: width and height of the picture.
        """
        a, e = np.radians([azimuth, elevation])
        # in axes with z up; a cyclic permutation of axes keeps them right-handed
        toward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        axes = np.roll(np.stack([right, np.cross(toward, right), toward]), up - 2, axis=1).T
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        radius = max(float(np.linalg.norm(points - middle, axis=1).max()), 1e-6)
        camera = cls(np.eye(3)[up], axes, middle, radius, DISTANCE * radius)
        flat = camera.project(points)[:, :2]
        low, high = flat.min(axis=0), flat.max(axis=0)
        scale = FILLS * min(n / max(extent, 1e-6 * radius) for n, extent in zip(samples, high - low, strict=True))
        shift = 0.5 * np.array(samples) - scale * 0.5 * (low + high)
        return cls(camera.up, axes, middle, radius, camera.distance, float(scale), tuple(shift.tolist()))
