"""Pictures of a model's shapes: triangles in perspective, the far ones first, shaded by a lamp beside the camera."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newton_like.geometry.outline import triangles
from newton_like.geometry.transforms import quat_rotate, transform_multiply
from newton_like.types import GeoType, ShapeFlags

DISTANCE = 4.0
"""Distance of the camera from the middle of the scene, in radii of its bounding sphere."""
LEAST_SHADE = 0.45
GROUND = (0.93, 0.93, 0.92)


def picture(
    model,
    state=None,
    path: str | Path | None = None,
    *,
    world: int | None = 0,
    azimuth: float = -50.0,
    elevation: float = 25.0,
    collisions: bool = False,
    title: str = "",
    size: tuple[float, float] = (8.0, 6.0),
):
    """Draws the shapes of a model with matplotlib.

    Visible shapes are drawn; of a body without any, those that collide. Infinite planes are drawn as a floor under the scene.

    Args:
        model: the :class:`Model`.
        state: poses of the bodies (``state.body_q``); by default those of the model.
        path: the image file to write; None: write none.
        world: the world to draw, with what all worlds share; None: all.
        azimuth, elevation: direction of the camera seen from the scene [degrees], about and above the up axis.
        collisions: draw what collides in place of what is visible.
        title: above the picture.
        size: width and height [inches].

    Returns:
        The matplotlib figure.

    Raises:
        ImportError: there is no matplotlib.
        ValueError: the model has nothing that could be drawn.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import PolyCollection
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "newton-like[examples]"') from error
    poses = (model if state is None else state).body_q.numpy().astype(np.float64)
    shapes = _chosen(model, world, collisions)
    corners, colors = _corners(model, poses, shapes)
    if not len(corners):
        raise ValueError("the model has no shapes that could be drawn")
    axes = _camera(int(model.up_axis), azimuth, elevation)
    flat = corners.reshape(-1, 3)
    middle = 0.5 * (flat.min(axis=0) + flat.max(axis=0))
    radius = max(float(np.linalg.norm(flat - middle, axis=1).max()), 1e-6)
    floor = _floor(model, shapes, middle, radius)
    if floor is not None:
        corners, colors = np.concatenate([floor, corners]), np.concatenate([np.tile(GROUND, (len(floor), 1)), colors])
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    lamp = axes @ np.array([0.35, 0.55, 1.0]) / np.linalg.norm([0.35, 0.55, 1.0])
    shade = LEAST_SHADE + (1.0 - LEAST_SHADE) * np.abs(normals @ lamp) / np.maximum(lengths, 1e-30)
    seen = (corners - middle) @ axes
    depth = DISTANCE * radius - seen[..., 2]
    points = seen[..., :2] * (DISTANCE * radius / np.maximum(depth, 1e-3 * radius))[..., None]
    order = np.argsort(-depth.mean(axis=1), kind="stable")
    if floor is not None:
        order = np.concatenate([np.arange(len(floor)), order[order >= len(floor)]])
    faces = np.clip(colors * shade[:, None], 0.0, 1.0)[order]
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    plot = figure.add_axes((0.0, 0.0, 1.0, 0.94 if title else 1.0))
    plot.add_collection(PolyCollection(points[order], facecolors=faces, edgecolors=faces, linewidths=0.3))
    around = points[len(floor) if floor is not None else 0 :].reshape(-1, 2)
    low, high = around.min(axis=0), around.max(axis=0)
    reach = 0.55 * max(high - low) + 1e-9
    center = 0.5 * (low + high)
    plot.set_xlim(center[0] - reach * size[0] / size[1], center[0] + reach * size[0] / size[1])
    plot.set_ylim(center[1] - reach, center[1] + reach)
    plot.set_aspect("equal")
    plot.set_axis_off()
    if title:
        figure.suptitle(title, y=0.98, fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure


def _camera(up: int, azimuth: float, elevation: float) -> np.ndarray:
    """Columns: right, up and towards the camera, in world axes."""
    a, e = np.radians([azimuth, elevation])
    # in axes with z up; the cyclic order of axes keeps the hand
    toward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    turned = np.roll(np.stack([right, np.cross(toward, right), toward]), up - 2, axis=1)
    return turned.T


def _chosen(model, world: int | None, collisions: bool) -> list[int]:
    flags, bodies = model.shape_flags.numpy(), model.shape_body.numpy()
    worlds = model.shape_world.numpy()
    here = [s for s in range(model.shape_count) if world is None or worlds[s] in (-1, world)]
    wanted = ShapeFlags.COLLIDE_SHAPES if collisions else ShapeFlags.VISIBLE
    first = [s for s in here if flags[s] & int(wanted)]
    # what has no visible shape is drawn as it collides, and the other way round
    drawn = {int(bodies[s]) for s in first}
    return first + [s for s in here if int(bodies[s]) not in drawn and flags[s] & int(ShapeFlags.COLLIDE_SHAPES)]


def _pose(model, poses, shape: int) -> np.ndarray:
    body = int(model.shape_body.numpy()[shape])
    place = model.shape_transform.numpy()[shape].astype(np.float64)
    return place if body < 0 else transform_multiply(poses[body], place)


def _infinite(model, shape: int) -> bool:
    return model.shape_type.numpy()[shape] == GeoType.PLANE and not model.shape_scale.numpy()[shape][:2].any()


def _corners(model, poses, shapes) -> tuple[np.ndarray, np.ndarray]:
    """Corners of all triangles ``[n, 3, 3]`` in the world, and their colours ``[n, 3]``."""
    kinds, scales, tints = model.shape_type.numpy(), model.shape_scale.numpy(), model.shape_color.numpy()
    corners, colors = [], []
    for s in shapes:
        if _infinite(model, s):
            continue
        vertices, faces = triangles(kinds[s], scales[s], model.shape_source[s])
        if not len(faces):
            continue
        x = _pose(model, poses, s)
        corners.append((quat_rotate(x[3:], vertices) + x[:3])[faces])
        colors.append(np.tile(tints[s], (len(faces), 1)))
    return (np.concatenate(corners), np.concatenate(colors)) if corners else (np.zeros((0, 3, 3)), np.zeros((0, 3)))


def _floor(model, shapes, middle, radius: float) -> np.ndarray | None:
    """Two triangles of the first infinite plane, under the scene."""
    for s in shapes:
        if _infinite(model, s):
            x = _pose(model, model.body_q.numpy().astype(np.float64), s)
            vertices, faces = triangles(GeoType.PLANE, (0, 0, 0), plane_size=4.0 * radius)
            normal = quat_rotate(x[3:], np.array([0.0, 0.0, 1.0]))
            under = middle - normal * ((middle - x[:3]) @ normal)
            return (quat_rotate(x[3:], vertices) + under)[faces]
    return None
