"""Light and shadow for the surfaces of a :class:`Raster`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from newton_like.viewer.camera import Camera, times
from newton_like.viewer.raster import Raster

LAMP = np.array([-0.55, 0.95, 0.75])
"""Direction to the lamp in the camera's axes: right, up, towards the camera."""
LAMP_LIGHT, EYE_LIGHT, SKY_LIGHT, GROUND_LIGHT = 0.55, 0.16, 0.46, 0.32
"""Brightness of the lamp, of light from the camera, and of ambient light from above and from below."""
SAMPLES = 2
"""Samples a pixel, in each direction."""
CREASE, FOLD = 0.25, 0.02
"""Relative changes of normal and nearness within a pixel from which all its samples are shaded."""
SOFTNESS = 0.012
"""Width of the soft edge of shadows, in radii of the scene."""
FLOOR_COLOR = np.array([0.93, 0.935, 0.945])
FLOOR_REACH = (1.3, 3.2)
"""Distances at which the floor begins to fade and at which it ends, in radii of the scene."""
FLOOR_TINT = 0.12
"""Fraction of the floor's own colour; the floor is light, for pictures on white paper."""
LINE, LINE_SHADE = 1.2, 0.9
"""Half the width of the floor's lines [samples], and their brightness."""
GLOSS = 0.10
NOOK, NOOK_SHADE = 0.06, 1.6
"""Ambient obscurance: distance within which surfaces block light, in radii of the scene, and its strength."""
BIAS = 0.004
"""Shadow bias: offset from a surface, in radii of the scene, in addition to three samples of the lamp's view."""
SPIRAL = 12
"""Number of samples of soft shadows and of ambient obscurance."""


@dataclass(frozen=True)
class Floor:
    """An infinite plane in the world, with lines at a round distance.

    Attributes:
        point, normal: a point of the plane, and its normal.
        color: its colour in the model.
        spacing: distance of the lines [m].
    """

    point: np.ndarray
    normal: np.ndarray
    color: np.ndarray
    spacing: float

    def is_wall(self, camera: Camera) -> bool:
        """Whether the plane is vertical and its back faces the camera."""
        eye = camera.middle + camera.distance * camera.axes[:, 2]
        return bool((eye - self.point) @ self.normal <= 0.0 and abs(self.normal @ camera.up) < 0.5)


def shade(raster: Raster, camera: Camera, colors: np.ndarray, floor: Floor | None, shadows: Raster, lamp: Camera):
    """The image, ``[height / SAMPLES, width / SAMPLES, 3]`` from 0 to 1, white where nothing is.

    The colour of a pixel is that of its first sample. If the samples of a pixel show different things, or different sides of a thing, it is
    the mean of all samples.

    Args:
        raster: the visible surfaces.
        camera: the camera of the raster.
        colors: of the things, ``[things, 3]``.
        floor: below them, if there is one.
        shadows: the surfaces that the lamp illuminates.
        lamp: the camera of `shadows`.
    """
    ground = None if floor is None else _ground(floor, camera, raster)
    seen, pixel, share = _samples(raster, ground)
    light, sky = _unit(LAMP).astype(np.float32), (camera.up @ camera.axes).astype(np.float32)
    # objects first, then the floor, which has a constant normal and colour
    lies = np.zeros(len(seen), dtype=bool) if ground is None else ground[seen] > 0.0
    things, under = np.flatnonzero(~lies), np.flatnonzero(lies)
    place = _place(camera, raster, seen[things], raster.near)
    number = raster.number[seen[things]]
    n = _unit(times(raster.normal[seen[things]], camera.axes.astype(np.float32)))
    if len(under):
        below = _place(camera, raster, seen[under], ground)
        fade = _fade(floor, camera, below)
        kept = np.flatnonzero(fade > 0.0)
        under, below = under[kept], below[kept]
        place, number = np.concatenate([place, below]), np.concatenate([number, np.full(len(kept), -1)])
        level = np.broadcast_to((floor.normal @ camera.axes).astype(np.float32), (len(kept), 3))
        n = np.concatenate([n, level])
        line = _lines(floor, camera, below, ground[seen[under]])
        share[under] *= fade[kept]
    order, count = np.concatenate([things, under]), len(things)
    seen, pixel, share = seen[order], pixel[order], share[order]
    toward = np.array([0.0, 0.0, camera.distance], dtype=np.float32) - place
    away = np.sqrt(_dot(toward, toward))
    facing = _dot(n, toward) / away
    # surfaces are two-sided
    back = np.flatnonzero(facing < 0.0)
    n[back], facing[back] = -n[back], -facing[back]
    lit = np.maximum(times(n, light), 0.0)
    bright = np.flatnonzero(lit > 0.0)
    lit[bright] *= 1.0 - _shadow(place[bright], n[bright], camera, shadows, lamp)
    ambient = GROUND_LIGHT + (SKY_LIGHT - GROUND_LIGHT) * (0.5 + 0.5 * times(n, sky)) + EYE_LIGHT * facing
    total = ambient * _open_sky(raster, camera, seen, pixel, number, place, n) + LAMP_LIGHT * lit
    gloss = np.zeros(count, dtype=np.float32)
    shiny = np.flatnonzero(lit[:count] > 0.0)
    half = _unit(light + toward[shiny] / away[shiny, None])
    gloss[shiny] = GLOSS * np.maximum(_dot(n[shiny], half), 0.0) ** 30
    image = np.empty((raster.height // SAMPLES * (raster.width // SAMPLES), 3))
    for i in range(3):
        value = total.copy()
        value[:count] *= colors[number[:count], i]
        value[:count] += gloss
        if len(under):
            value[count:] *= line * np.float32(FLOOR_COLOR[i] * (1.0 - FLOOR_TINT) + FLOOR_TINT * floor.color[i])
        image[:, i] = 1.0 - np.bincount(pixel, share * (1.0 - np.clip(value, 0.0, 1.0)), len(image))
    return image.reshape(raster.height // SAMPLES, raster.width // SAMPLES, 3)


def _place(camera: Camera, raster: Raster, samples: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Positions of the centres of samples in the camera's axes, ``[samples, 3]`` [m]."""
    row, column = np.divmod(samples, raster.width)
    half = np.float32(0.5)
    return camera.place(column.astype(np.float32) + half, row.astype(np.float32) + half, near[samples])


def _ground(floor: Floor, camera: Camera, raster: Raster) -> np.ndarray:
    """Nearness of the floor at each sample, 0 where it is not visible."""
    n, point = floor.normal @ camera.axes, (floor.point - camera.middle) @ camera.axes
    above = (np.array([0.0, 0.0, camera.distance]) - point) @ n
    if above <= 0.0:
        return np.zeros(raster.height * raster.width, dtype=np.float32)
    # Rays from the camera through the samples on the screen, which is at the middle. The nearness is the inverse of the distance to the
    # floor in lengths of the ray.
    x = (np.arange(raster.width) + 0.5 - camera.shift[0]) / camera.scale
    y = (camera.shift[1] - np.arange(raster.height) - 0.5) / camera.scale
    columns = ((n[2] * camera.distance - n[0] * x) / above).astype(np.float32)
    near = (columns - (n[1] * y / above).astype(np.float32)[:, None]).ravel()
    near[near <= np.maximum(raster.near, np.float32(1.0e-3))] = 0.0
    return near


def _samples(raster: Raster, ground: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The samples that are shaded, their pixels, and their weights in the pixels."""
    height, width = raster.height // SAMPLES, raster.width // SAMPLES
    number = raster.number if ground is None else np.where(ground > 0.0, np.int32(-2), raster.number)
    number = number.reshape(height, SAMPLES, width, SAMPLES)
    first = number[:, 0, :, 0]
    edge = np.zeros((height, width), dtype=bool)
    others = [(i, j) for i in range(SAMPLES) for j in range(SAMPLES) if i or j]
    for i, j in others:
        edge |= number[:, i, :, j] != first
    # creases and folds of a single object
    inside = np.flatnonzero(~edge & (first >= 0))
    row, column = np.divmod(inside, width)
    sample = SAMPLES * (row * raster.width + column)
    normal, near = raster.normal[sample], raster.near[sample]
    apart = np.zeros(len(inside), dtype=bool)
    for i, j in others:
        other = sample + i * raster.width + j
        change = raster.normal[other] - normal
        apart |= _dot(change, change) > CREASE**2 * _dot(normal, normal)
        apart |= np.abs(raster.near[other] - near) > FOLD * near
    edge.ravel()[inside[apart]] = True
    one = np.flatnonzero((first != -1) & ~edge)
    row, column = np.divmod(one, width)
    samples, pixels, shares = [SAMPLES * (row * raster.width + column)], [one], [np.ones(len(one), dtype=np.float32)]
    several = np.flatnonzero(edge)
    row, column = np.divmod(several, width)
    for i in range(SAMPLES):
        for j in range(SAMPLES):
            there = number[row, i, column, j] != -1
            samples.append(((SAMPLES * row + i) * raster.width + SAMPLES * column + j)[there])
            pixels.append(several[there])
            shares.append(np.full(len(samples[-1]), 1.0 / SAMPLES**2, dtype=np.float32))
    return np.concatenate(samples), np.concatenate(pixels), np.concatenate(shares)


def _fade(floor: Floor, camera: Camera, hit: np.ndarray) -> np.ndarray:
    """Visibility of the floor at positions in the camera's axes: 1 near the middle, 0 far away."""
    n, point = floor.normal @ camera.axes, (floor.point - camera.middle) @ camera.axes
    begin, end = FLOOR_REACH
    off = hit - ((point @ n) * n).astype(np.float32)
    t = np.clip((end - np.sqrt(_dot(off, off)) / np.float32(camera.radius)) / (end - begin), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def _lines(floor: Floor, camera: Camera, hit: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Brightness of the floor with its lines at positions in the camera's axes."""
    first = _unit(np.cross(floor.normal, np.roll(np.eye(3)[np.argmax(np.abs(floor.normal))], 2)))
    first, second = np.cross(first, floor.normal), first
    samples = np.float32(camera.scale * floor.spacing) * near
    away = np.full(len(hit), 0.5, dtype=np.float32)
    for direction in (first, second):
        start = (camera.middle - floor.point) @ direction / floor.spacing
        across = times(hit, (direction @ camera.axes / floor.spacing).astype(np.float32)) + np.float32(start % 1.0)
        away = np.minimum(away, np.abs(across - np.round(across)))
    # a line covers a part of a pixel
    dark = np.clip((LINE - away * samples) / SAMPLES + 0.5, 0.0, 1.0)
    return 1.0 - np.float32(1.0 - LINE_SHADE) * dark


def _shadow(place, n, camera: Camera, shadows: Raster, lamp: Camera) -> np.ndarray:
    """Hidden fraction of the lamp, 0 to 1, from samples of its view around each position."""
    # an offset from the surface, so that it does not shadow itself
    axes = (camera.axes.T @ lamp.axes).astype(np.float32)
    seen = times(place + n * np.float32(BIAS * camera.radius + 3.0 / lamp.scale), axes)
    column = np.float32(lamp.shift[0]) + np.float32(lamp.scale) * seen[:, 0]
    row = np.float32(lamp.shift[1]) - np.float32(lamp.scale) * seen[:, 1]
    near = 2.0 + seen[:, 2] / np.float32(lamp.radius)
    reach = SOFTNESS * lamp.radius * lamp.scale
    hidden = np.zeros(len(place), dtype=np.float32)
    # At most positions the whole lamp is visible: they are nearer to it than all surfaces in the neighbouring tiles.
    image = shadows.near.reshape(shadows.height, shadows.width)
    nearest, size = _tiles(image, reach)
    some = np.flatnonzero((column >= 0) & (column < shadows.width) & (row >= 0) & (row < shadows.height))
    i, j = row[some].astype(np.int32), column[some].astype(np.int32)
    behind = np.flatnonzero(nearest[i // size, j // size] > near[some])
    some, i, j = some[behind], i[behind], j[behind]
    margin = math.ceil(reach) + 1
    padded = np.pad(image, margin)
    first, near = (i + margin) * padded.shape[1] + j + margin, near[some]
    count = np.zeros(len(some), dtype=np.int8)
    for x, y in np.round(_spiral(reach)).astype(int):
        count += padded.ravel()[first + (y * padded.shape[1] + x)] > near
    hidden[some] = count / np.float32(SPIRAL)
    return hidden


def _open_sky(raster: Raster, camera: Camera, seen, pixel, thing, place, n) -> np.ndarray:
    """Fraction of the ambient light that reaches each sample (alchemy screen-space obscurance, McGuire 2011)."""
    height, width = raster.height // SAMPLES, raster.width // SAMPLES
    row, column = np.divmod(pixel, width)
    first = np.flatnonzero(seen == SAMPLES * (row * raster.width + column))
    number = np.full((height, width), -1, dtype=np.int32)
    number.ravel()[pixel[first]] = first
    radius = NOOK * camera.radius
    reach = radius * camera.scale / SAMPLES
    # Only nearby objects block light. Parts of the floor without nearby objects are ignored.
    tall = np.zeros(len(seen) + 1, dtype=bool)
    tall[:-1] = thing >= 0
    there = np.flatnonzero((number >= 0) & _around(tall[number], reach))
    mine = number.ravel()[there]
    margin = math.ceil(reach) + 1
    padded = np.pad(number, margin, constant_values=-1)
    i, j = np.divmod(there, width)
    base = (i + margin) * padded.shape[1] + j + margin
    spots = [np.ascontiguousarray(place[:, k]) for k in range(3)]
    x0, y0, z0 = (spot[mine] for spot in spots)
    nx, ny, nz = (np.ascontiguousarray(n[mine, k]) for k in range(3))
    blocked = np.zeros(len(there), dtype=np.float32)
    far, soft = np.float32(4.0 * radius * radius), np.float32(0.05 * radius * radius)
    for x, y in np.round(_spiral(reach)).astype(int):
        other = padded.ravel()[base + (y * padded.shape[1] + x)]
        hits = np.flatnonzero(other >= 0)
        other = other[hits]
        dx, dy, dz = spots[0][other] - x0[hits], spots[1][other] - y0[hits], spots[2][other] - z0[hits]
        square = dx * dx + dy * dy + dz * dz
        rise = dx * nx[hits] + dy * ny[hits] + dz * nz[hits] - np.float32(0.02 * radius)
        blocked[hits] += np.where((rise > 0.0) & (square < far), rise * np.float32(radius) / (square + soft), 0.0)
    open_sky = np.ones(height * width, dtype=np.float32)
    open_sky[there] = 1.0 - np.minimum(NOOK_SHADE * blocked / SPIRAL, 0.75)
    smooth = _blur(open_sky.reshape(height, width))
    return smooth.ravel()[pixel]


def _around(flags: np.ndarray, reach: float) -> np.ndarray:
    """Whether a flag is set near each position of an image, within at least the distance `reach`."""
    tiles, size = _tiles(flags, reach)
    return tiles.repeat(size, axis=0).repeat(size, axis=1)[: flags.shape[0], : flags.shape[1]]


def _tiles(image: np.ndarray, reach: float) -> tuple[np.ndarray, int]:
    """The largest value in each tile of an image and its neighbours, and the width of the tiles, at least `reach`."""
    size = max(8, math.ceil(reach) + 1)
    rows, columns = -(-image.shape[0] // size), -(-image.shape[1] // size)
    padded = np.zeros((rows * size, columns * size), dtype=image.dtype)
    padded[: image.shape[0], : image.shape[1]] = image
    tiles = np.pad(padded.reshape(rows, size, columns, size).max(axis=(1, 3)), 1)
    tiles = np.maximum(np.maximum(tiles[:-2], tiles[1:-1]), tiles[2:])
    return np.maximum(np.maximum(tiles[:, :-2], tiles[:, 1:-1]), tiles[:, 2:]), size


def _blur(image: np.ndarray) -> np.ndarray:
    """Mean over 3 x 3."""
    wide = np.pad(image, 1, mode="edge")
    rows = wide[:-2] + wide[1:-1] + wide[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9.0


def _spiral(reach: float) -> np.ndarray:
    """Evenly distributed points in a disc of the radius `reach` (Vogel 1979)."""
    k = np.arange(SPIRAL) + 0.5
    return (reach * np.sqrt(k / SPIRAL) * np.array([np.cos(2.399963 * k), np.sin(2.399963 * k)])).T


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1.0e-20)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)
