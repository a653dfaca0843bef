"""Rasterisation of triangles with a depth buffer: the nearest triangle of a pixel is visible."""

from __future__ import annotations

import numpy as np

FRAGMENTS = 2_000_000
"""Number of pixels that are filled at once; limits the memory for large scenes."""

PATTERN = np.array([[0, 2], [3, 1]])
"""Order in which a translucent surface covers the four samples of a pixel."""


class Raster:
    """The visible surface in each sample of a picture.

    Attributes:
        near: nearness, ``[height * width]``: a number above 0 that is linear on the screen, such as the inverse depth; 0 for the
            background.
        number: index of the visible object, -1 for the background.
        normal: normal of its surface, ``[height * width, 3]``, of any length; None without normals.
    """

    def __init__(self, width: int, height: int, normals: bool = True):
        self.width, self.height = width, height
        self.near = np.zeros(height * width, dtype=np.float32)
        self.number = np.full(height * width, -1, dtype=np.int32)
        self.normal = np.zeros((height * width, 3), dtype=np.float32) if normals else None

    def draw(
        self, corners: np.ndarray, numbers: np.ndarray, normals: np.ndarray | None = None, opacity=1.0, closed=False
    ) -> None:
        """Draws triangles, in addition to earlier ones.

        Args:
            corners: ``[n, 3, 3]``: column and row on the screen [samples], and nearness.
            numbers: index of the object of each triangle, ``[n]``.
            normals: normals at the corners, ``[n, 3, 3]``.
            opacity: opacity of each triangle, from 0 to 1. The four samples of a pixel represent five steps; an opacity above 0 is
                visible.
            closed: whether each triangle belongs to a closed surface; it is drawn only if its corners are counter-clockwise, rows up.
        """
        corners = corners.astype(np.float64)
        area = _cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        kept = np.where(closed, -area, np.abs(area)) > 1.0e-9
        corners, area, numbers = corners[kept], area[kept], numbers[kept]
        normals = None if normals is None else normals[kept]
        opacity = np.broadcast_to(opacity, kept.shape)[kept]
        back = area < 0.0
        corners[back] = corners[back][:, [0, 2, 1]]
        if normals is not None:
            normals = np.where(back[:, None, None], normals[:, [0, 2, 1]], normals)
        rows, faces, first, count = self._spans(corners)
        parts = np.searchsorted(np.cumsum(count), np.arange(FRAGMENTS, count.sum(), FRAGMENTS))
        for part in np.split(np.arange(len(rows)), parts):
            self._fill(corners, numbers, normals, opacity, rows[part], faces[part], first[part], count[part])

    def _spans(self, corners) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The parts of rows that triangles cover: row, triangle, first column and number of columns of each part."""
        y = corners[:, :, 1]
        top = np.clip(np.ceil(y.min(axis=1) - 0.5), 0, self.height).astype(np.int64)
        bottom = np.clip(np.floor(y.max(axis=1) - 0.5) + 1, 0, self.height).astype(np.int64)
        faces, places = _repeat(np.maximum(bottom - top, 0))
        rows = top[faces] + places
        middle = rows + 0.5
        low, high = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        for i in range(3):
            x0, y0 = corners[faces, i, 0], corners[faces, i, 1]
            dx, dy = corners[faces, i - 2, 0] - x0, corners[faces, i - 2, 1] - y0
            with np.errstate(divide="ignore", invalid="ignore"):
                x = x0 + (middle - y0) * dx / dy
            low = np.where(dy < 0.0, np.maximum(low, x), low)
            high = np.where(dy > 0.0, np.minimum(high, x), high)
        # the tolerance avoids gaps between neighbours whose common edge is rounded differently
        first = np.clip(np.ceil(low - 0.5 - 1.0e-6), 0, self.width)
        last = np.clip(np.ceil(high - 0.5 + 1.0e-6), 0, self.width)
        count = np.maximum(last - first, 0)
        kept = count > 0
        return rows[kept], faces[kept], first[kept].astype(np.int64), count[kept].astype(np.int64)

    def _fill(self, corners, numbers, normals, opacity, rows, faces, first, count) -> None:
        a, b, c = (corners[faces, i] for i in range(3))
        b, c = b - a, c - a
        area = _cross(b, c)
        slope = ((b[:, 2] * c[:, 1] - c[:, 2] * b[:, 1]) / area).astype(np.float32)
        x, y = first + 0.5 - a[:, 0], rows + 0.5 - a[:, 1]
        start = a[:, 2] + ((x * c[:, 1] - y * c[:, 0]) * b[:, 2] + (b[:, 0] * y - b[:, 1] * x) * c[:, 2]) / area
        span, places = _repeat(count)
        near = start.astype(np.float32)[span] + slope[span] * places.astype(np.float32)
        pixel = (rows * self.width + first)[span] + places
        if (opacity[faces] < 1.0).any():
            # The order of samples differs between objects, so that two objects of opacity 0.5 do not cover the same samples.
            row, column = np.divmod(pixel, self.width)
            step = (PATTERN[row % 2, column % 2] + numbers[faces][span]) % 4
            seen = step < np.ceil(4.0 * opacity[faces][span])
            span, places, near, pixel = span[seen], places[seen], near[seen], pixel[seen]
        np.maximum.at(self.near, pixel, near)
        seen = np.flatnonzero(near == self.near[pixel])
        span, places, pixel = span[seen], places[seen], pixel[seen]
        self.number[pixel] = numbers[faces[span]]
        if normals is None:
            return
        x, y = x[span] + places, y[span]
        # weights of the second and the third corner
        v = np.clip((x * c[span, 1] - y * c[span, 0]) / area[span], 0.0, 1.0)
        w = np.clip((b[span, 0] * y - b[span, 1] * x) / area[span], 0.0, 1.0 - v)
        # quantities that are linear in space are linear on the screen after multiplication by the nearness
        weighed = normals * corners[:, :, 2:]
        face, v, w = faces[span], v[:, None], w[:, None]
        self.normal[pixel] = weighed[face, 0] * (1.0 - v - w) + weighed[face, 1] * v + weighed[face, 2] * w


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def _repeat(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of each entry, repeated `count` times, and the index of each repetition."""
    which = np.repeat(np.arange(len(count)), count)
    return which, np.arange(len(which)) - (np.cumsum(count) - count)[which]
