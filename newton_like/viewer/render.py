"""Rendering of triangles to an image."""

from __future__ import annotations

import math

import numpy as np

from newton_like.viewer.camera import Camera
from newton_like.viewer.raster import Raster
from newton_like.viewer.scene import Triangles
from newton_like.viewer.shading import LAMP, SAMPLES, shade

BATCH = 200_000
"""Number of triangles that are drawn at once."""
SHADOWS = 1.6
"""Width and height of the lamp's view over the width of the picture."""


def render(scene: Triangles, camera: Camera, pixels) -> np.ndarray:
    """The image, ``[height, width, 3]`` of bytes.

    Args:
        scene: the triangles and the floor.
        camera: camera for a picture with ``SAMPLES`` samples a pixel, in each direction.
        pixels: width and height.
    """
    lamp = _lamp(camera, round(SHADOWS * max(pixels)))
    seen = Raster(SAMPLES * pixels[0], SAMPLES * pixels[1])
    shadows = Raster(*(2 * round(lamp.shift[0]),) * 2, normals=False)
    for begin in range(0, len(scene.corners), BATCH):
        part = slice(begin, begin + BATCH)
        corners, things, opacity = scene.corners[part], scene.thing[part], scene.opacity[part]
        closed = scene.closed[part] & (opacity >= 1.0)
        near = camera.is_in_front(corners).all(axis=1)
        if near.all():
            seen.draw(camera.project(corners), things, scene.normals[part], opacity, closed)
        else:
            normals = scene.normals[part][near]
            seen.draw(camera.project(corners[near]), things[near], normals, opacity[near], closed[near])
        solid = (opacity > 0.5) & scene.casts[part]
        shadows.draw(lamp.project(corners[solid]), things[solid], closed=closed[solid])
    image = shade(seen, camera, scene.colors, scene.floor, shadows, lamp)
    return (255.0 * image + 0.5).astype(np.uint8)


def camera_of(scene: Triangles, shown: np.ndarray, up: int, azimuth: float, elevation: float, pixels) -> Camera:
    """A camera that shows some points, from the front side of a vertical floor."""
    samples = [SAMPLES * n for n in pixels]
    camera = Camera.framing(shown, up, azimuth, elevation, samples)
    if scene.floor is not None and scene.floor.is_wall(camera):
        camera = Camera.framing(shown, up, azimuth + 180.0, elevation, samples)
    return camera


def _lamp(camera: Camera, samples: int) -> Camera:
    """The orthographic view from the lamp, for the scene of a camera."""
    toward = camera.axes @ (LAMP / np.linalg.norm(LAMP))
    right = np.cross(camera.axes[:, 1], toward)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(toward, right), toward], axis=1)
    half = 0.5 * samples
    return Camera(camera.up, axes, camera.middle, camera.radius, math.inf, half / camera.radius, (half, half))
