"""Light and shadow for what a :class:`Raster` sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.viewer.raster import Raster

LAMP = np.array([-0.55, 0.95, 0.75])
"""Direction of the lamp in the camera's axes: right, up, towards the eye."""
LAMP_LIGHT, EYE_LIGHT, SKY_LIGHT, GROUND_LIGHT = 0.55, 0.16, 0.46, 0.32
"""Light from the lamp, from the eye, and from above and below where there is neither."""
SHADOW_SAMPLES = 1200
"""Width and height of the lamp's view."""
SOFTNESS = 0.012
"""Width of the rim of shadows, in radii of the scene."""
FLOOR_COLOR = np.array([0.93, 0.935, 0.945])
FLOOR_REACH = (1.3, 3.2)
"""Where the floor begins to fade, and where it has faded, in radii of the scene."""
FLOOR_TINT = 0.12
"""Part of the floor's own colour in it: a picture on white paper wants a light floor."""
LINE, LINE_SHADE = 1.2, 0.9
"""Half the width of the floor's lines [samples], and how bright they are."""
GLOSS = 0.10
NOOK, NOOK_SHADE = 0.06, 1.6
"""How far light is blocked in nooks, in radii of the scene, and how much."""
BIAS = 0.004
"""How far from a surface its own shadow begins, in radii of the scene."""
SPIRAL = 12
"""Samples of soft shadows and of nooks."""


@dataclass(frozen=True)
class Camera:
    """An eye in front of a scene.

    Attributes:
        up: of the world, which is where the sky is.
        axes: columns right, up and towards the eye, in world axes.
        middle: of the scene [m].
        radius: of its bounding sphere [m].
        distance: of the eye from the middle [m]; infinite for a view without perspective.
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

    def project(self, points: np.ndarray) -> np.ndarray:
        """Column, row and nearness of points ``[..., 3]`` in the world. Nearness is 1 at the middle."""
        seen = (points - self.middle) @ self.axes
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
        """Points in the camera's axes, seen from the middle, of a perspective view: the inverse of :meth:`project`."""
        flat = np.stack([column - self.shift[0], self.shift[1] - row], axis=-1) / self.scale
        near = near[..., None]
        return np.concatenate([flat / near, self.distance * (1.0 - 1.0 / near)], axis=-1).astype(np.float32)


@dataclass(frozen=True)
class Floor:
    """An endless plane in the world, with lines a round distance apart.

    Attributes:
        point, normal: where it is and what side is up.
        color: that its maker gave it.
        spacing: of the lines [m].
    """

    point: np.ndarray
    normal: np.ndarray
    color: np.ndarray
    spacing: float

    def is_wall(self, camera: Camera) -> bool:
        """Whether it stands upright with its back to the eye."""
        eye = camera.middle + camera.distance * camera.axes[:, 2]
        return bool((eye - self.point) @ self.normal <= 0.0 and abs(self.normal @ camera.up) < 0.5)


def shade(raster: Raster, camera: Camera, colors: np.ndarray, floor: Floor | None, shadows: Raster, lamp: Camera):
    """The picture, ``[height, width, 3]`` from 0 to 1, white where nothing is.

    Args:
        raster: what is seen.
        camera: that it was drawn for.
        colors: of the things, ``[things, 3]``.
        floor: below them, if there is one.
        shadows: what the lamp sees.
        lamp: camera that this was drawn for.
    """
    count = raster.height * raster.width
    row, column = np.divmod(np.arange(count), raster.width)
    near, fade = raster.near.copy(), np.ones(count, dtype=np.float32)
    albedo, normal = np.ones((count, 3), dtype=np.float32), np.zeros((count, 3), dtype=np.float32)
    things = np.flatnonzero(raster.number >= 0)
    albedo[things] = colors[raster.number[things]]
    normal[things] = raster.normal[things] @ camera.axes.astype(np.float32)
    if floor is not None:
        _lay(floor, camera, column, row, near, fade, albedo, normal)
    seen = np.flatnonzero(near > 0.0)
    place = camera.place(column[seen] + 0.5, row[seen] + 0.5, near[seen])
    toward = _unit(np.array([0.0, 0.0, camera.distance], dtype=np.float32) - place)
    n = _unit(normal[seen])
    # surfaces have two sides
    n *= np.where(_dot(n, toward) < 0.0, -1.0, 1.0)[:, None].astype(np.float32)
    light, sky = _unit(LAMP).astype(np.float32), (camera.up @ camera.axes).astype(np.float32)
    lit = np.maximum(n @ light, 0.0) * (1.0 - _shadow(place, n, camera, shadows, lamp))
    ambient = GROUND_LIGHT + (SKY_LIGHT - GROUND_LIGHT) * (0.5 + 0.5 * (n @ sky)) + EYE_LIGHT * _dot(n, toward)
    ambient *= _open_sky(raster, camera, seen, place, n)
    gloss = np.where(raster.number[seen] >= 0, GLOSS * np.maximum(_dot(n, _unit(light + toward)), 0.0) ** 30, 0.0)
    color = albedo[seen] * (ambient + LAMP_LIGHT * lit)[:, None] + (gloss * (lit > 0.0))[:, None]
    image = np.ones((count, 3), dtype=np.float32)
    image[seen] += fade[seen, None] * (np.clip(color, 0.0, 1.0) - 1.0)
    return image.reshape(raster.height, raster.width, 3)


def _lay(floor: Floor, camera: Camera, column, row, near, fade, albedo, normal) -> None:
    """Puts the floor where nothing nearer is."""
    n, point = floor.normal @ camera.axes, (floor.point - camera.middle) @ camera.axes
    above = (np.array([0.0, 0.0, camera.distance]) - point) @ n
    if above <= 0.0:
        return
    # From the eye through the sample on the screen, which stands at the middle. One over the way to the floor in lengths of this ray
    # is the nearness.
    x = ((column + 0.5 - camera.shift[0]) / camera.scale).astype(np.float32)
    y = ((camera.shift[1] - row - 0.5) / camera.scale).astype(np.float32)
    inverse = (np.float32(n[2] * camera.distance) - np.float32(n[0]) * x - np.float32(n[1]) * y) / np.float32(above)
    under = np.flatnonzero(inverse > np.maximum(near, np.float32(1.0e-3)))
    hit = camera.place(column[under] + 0.5, row[under] + 0.5, inverse[under])
    begin, end = FLOOR_REACH
    reach = np.linalg.norm(hit - ((point @ n) * n).astype(np.float32), axis=1) / np.float32(camera.radius)
    inside = reach < end
    under, hit, reach = under[inside], hit[inside], reach[inside]
    first = _unit(np.cross(floor.normal, np.roll(np.eye(3)[np.argmax(np.abs(floor.normal))], 2)))
    first, second = np.cross(first, floor.normal), first
    thick = LINE / (camera.scale * inverse[under])
    lines = np.zeros(len(under), dtype=bool)
    for direction in (first, second):
        across = hit @ (direction @ camera.axes).astype(np.float32) + np.float32(
            (camera.middle - floor.point) @ direction
        )
        lines |= np.abs((across / floor.spacing + 0.5) % 1.0 - 0.5) * floor.spacing < thick
    t = np.clip((end - reach) / (end - begin), 0.0, 1.0)
    color = FLOOR_COLOR * (1.0 - FLOOR_TINT) + FLOOR_TINT * np.asarray(floor.color)
    near[under], normal[under] = inverse[under], n
    albedo[under] = np.where(lines[:, None], LINE_SHADE * color, color)
    fade[under] = t * t * (3.0 - 2.0 * t)


def _shadow(place, n, camera: Camera, shadows: Raster, lamp: Camera) -> np.ndarray:
    """How much of the lamp is hidden, 0 to 1, by samples of its view around each place."""
    # off the surface, so that it does not shadow itself
    seen = (place + n * np.float32(BIAS * camera.radius)) @ (camera.axes.T @ lamp.axes).astype(np.float32)
    column = lamp.shift[0] + lamp.scale * seen[:, 0]
    row = lamp.shift[1] - lamp.scale * seen[:, 1]
    near = 2.0 + seen[:, 2] / np.float32(lamp.radius)
    hidden = np.zeros(len(place), dtype=np.float32)
    for x, y in _spiral(SOFTNESS * lamp.radius * lamp.scale):
        i, j = (row + y).astype(np.int64), (column + x).astype(np.int64)
        inside = (i >= 0) & (i < shadows.height) & (j >= 0) & (j < shadows.width)
        found = shadows.near[np.where(inside, i * shadows.width + j, 0)]
        hidden += inside & (found > near)
    return hidden / SPIRAL


def _open_sky(raster: Raster, camera: Camera, seen, place, n) -> np.ndarray:
    """How much of the light from all around reaches each sample: less in nooks (alchemy screen-space obscurance, McGuire 2011)."""
    height, width = raster.height // 2, raster.width // 2
    where = np.full(raster.height * raster.width, -1, dtype=np.int64)
    where[seen] = np.arange(len(seen))
    number = where.reshape(raster.height, raster.width)[: 2 * height : 2, : 2 * width : 2]
    radius = NOOK * camera.radius
    reach = radius * camera.scale / 2.0
    there = np.flatnonzero(number.ravel() >= 0)
    mine = number.ravel()[there]
    i, j = np.divmod(there, width)
    p, direction = place[mine], n[mine]
    blocked = np.zeros(len(there), dtype=np.float32)
    for x, y in _spiral(reach):
        a, b = i + round(y), j + round(x)
        other = number[np.clip(a, 0, height - 1), np.clip(b, 0, width - 1)]
        v = place[np.maximum(other, 0)] - p
        square = _dot(v, v)
        rise = np.maximum(_dot(v, direction) - 0.02 * radius, 0.0)
        close = (other >= 0) & (square < 4.0 * radius * radius)
        blocked += np.where(close, rise * radius / (square + 0.05 * radius * radius), 0.0)
    open_sky = np.ones(height * width, dtype=np.float32)
    open_sky[there] = 1.0 - np.minimum(NOOK_SHADE * blocked / SPIRAL, 0.75)
    smooth = _blur(open_sky.reshape(height, width))
    full = np.ones((raster.height, raster.width), dtype=np.float32)
    full[: 2 * height, : 2 * width] = smooth.repeat(2, axis=0).repeat(2, axis=1)
    return full.ravel()[seen]


def _blur(image: np.ndarray) -> np.ndarray:
    """Mean over 3 x 3."""
    wide = np.pad(image, 1, mode="edge")
    rows = wide[:-2] + wide[1:-1] + wide[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9.0


def _spiral(reach: float) -> np.ndarray:
    """Points that fill a disc of a radius evenly (Vogel 1979)."""
    k = np.arange(SPIRAL) + 0.5
    return (reach * np.sqrt(k / SPIRAL) * np.array([np.cos(2.399963 * k), np.sin(2.399963 * k)])).T


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1.0e-20)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)
