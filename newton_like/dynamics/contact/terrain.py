"""Terrain: height and normal of the ground at positions x, y of the world, whose z axis points up."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import constant_array
from newton_like.coercion import as_number, as_vector
from newton_like.geometry.mesh import Heightfield
from newton_like.kernels.dynamics.contact.terrain import heightfield_kernel
from newton_like.model.arguments import as_numbers, constant_numbers


class PlaneTerrain:
    """A tilted plane.

    Args:
        normal: its normal, of any length, upward.
        height: at x = y = 0 [m].

    Raises:
        ValueError: a normal that does not point upward, or numbers that are not finite.
    """

    def __init__(self, normal=(0.0, 0.0, 1.0), height: float = 0.0):
        n = np.array(as_vector(normal, 3, "normal of a plane"))
        if n[2] <= 0.0:
            raise ValueError(f"normal {n.tolist()} of a plane must point upward: its z must be above 0")
        self.normal = n / np.linalg.norm(n)
        self.base = as_number(height, "height of a plane")
        self._ground: dict = {}

    def height(self, x, y) -> np.ndarray:
        """Heights [m] at places x, y [m] of any shape."""
        n = self.normal
        return self.base - (n[0] * as_numbers(x, "x") + n[1] * as_numbers(y, "y")) / n[2]

    def normals(self, x, y) -> np.ndarray:
        """Unit normals at places x, y of any shape, ``[..., 3]``."""
        return np.broadcast_to(self.normal, (*np.broadcast_shapes(np.shape(x), np.shape(y)), 3)).copy()

    def ground(self, model) -> wp.array:
        """The plane n.x = c, for all points the same: ``(n, c)``."""
        key = (str(model.device), model.dtype)
        if key not in self._ground:
            numbers = [*self.normal, self.normal[2] * self.base]
            self._ground[key] = constant_array(numbers, model.dtype, model.device)
        return self._ground[key]


class FlatTerrain(PlaneTerrain):
    """A level plane.

    Args:
        height: [m].
    """

    def __init__(self, height: float = 0.0):
        super().__init__(height=height)


class HeightfieldTerrain:
    """Heights on a grid, bilinear between them; beyond the edges the outermost heights go on level.

    Args:
        heights: [m], ``[rows, columns]``, at least two of each; rows lie along y and columns along x.
        corner: x, y of the first height [m].
        spacing: distances between columns (along x) and between rows (along y) [m].

    Raises:
        ValueError: a wrong shape, spacings that are not positive, or numbers that are not finite.
    """

    def __init__(self, heights, corner=(0.0, 0.0), spacing=(1.0, 1.0)):
        self.heights = constant_numbers(heights, "heights of a terrain").copy()
        if self.heights.ndim != 2 or min(self.heights.shape) < 2:
            raise ValueError(
                f"heights of a terrain have shape {self.heights.shape}; it must be [rows, columns], at least [2, 2]"
            )
        if not np.isfinite(self.heights).all():
            raise ValueError("heights of a terrain must be finite")
        self.corner = as_vector(corner, 2, "corner of a terrain")
        self.spacing = as_vector(spacing, 2, "spacing of a terrain")
        if min(self.spacing) <= 0.0:
            raise ValueError(f"spacing {self.spacing} of a terrain must be above 0")
        self._tables: dict = {}

    @classmethod
    def from_heightfield(cls, source: Heightfield, position=(0.0, 0.0, 0.0)) -> HeightfieldTerrain:
        """The terrain of a :class:`Heightfield` whose origin is at ``position`` [m]."""
        x, y, z = as_vector(position, 3, "position of a terrain")
        heights = z + source.min_z + source.data * (source.max_z - source.min_z)
        spacing = (2.0 * source.hx / (source.ncol - 1), 2.0 * source.hy / (source.nrow - 1))
        return cls(heights, (x - source.hx, y - source.hy), spacing)

    def _cell(self, x, y):
        """Cell index and fraction within the cell of each position, and whether it is within the grid, each along x and along y."""
        x, y = np.broadcast_arrays(as_numbers(x, "x"), as_numbers(y, "y"))
        rows, columns = self.heights.shape
        places, inside = [], []
        for value, start, step, n in zip((x, y), self.corner, self.spacing, (columns, rows), strict=True):
            u = (value - start) / step
            clipped = np.clip(u, 0.0, n - 1.0)
            cell = np.minimum(clipped.astype(int), n - 2)
            places.append((cell, clipped - cell))
            inside.append(u == clipped)
        return places, inside

    def height(self, x, y) -> np.ndarray:
        """Heights [m] at places x, y [m] of any shape."""
        ((c, s), (r, t)), _ = self._cell(x, y)
        h = self.heights
        return (1 - t) * ((1 - s) * h[r, c] + s * h[r, c + 1]) + t * ((1 - s) * h[r + 1, c] + s * h[r + 1, c + 1])

    def normals(self, x, y) -> np.ndarray:
        """Unit normals at places x, y of any shape, ``[..., 3]``."""
        ((c, s), (r, t)), (in_x, in_y) = self._cell(x, y)
        h = self.heights
        slope_x = ((1 - t) * (h[r, c + 1] - h[r, c]) + t * (h[r + 1, c + 1] - h[r + 1, c])) / self.spacing[0]
        slope_y = ((1 - s) * (h[r + 1, c] - h[r, c]) + s * (h[r + 1, c + 1] - h[r, c + 1])) / self.spacing[1]
        n = np.stack([-slope_x * in_x, -slope_y * in_y, np.ones_like(slope_x)], axis=-1)
        return n / np.linalg.norm(n, axis=-1, keepdims=True)

    def ground(self, model, points: wp.array, out: wp.array) -> wp.array:
        """The planes n.x = c that touch the terrain at x, y of points ``[a, b, 3]``: ``(n, c)`` to `out`, ``[a, b, 4]``."""
        key = (str(model.device), model.dtype)
        if key not in self._tables:
            self._tables[key] = constant_array(self.heights, model.dtype, model.device)
        wp.launch(
            heightfield_kernel(model.dtype),
            dim=points.shape[:2],
            inputs=[points, self._tables[key], *self.corner, *self.spacing],
            outputs=[out],
            device=model.device,
        )
        return out


Terrain = PlaneTerrain | HeightfieldTerrain
