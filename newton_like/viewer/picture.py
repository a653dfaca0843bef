"""Pictures of models: their shapes in perspective, with light and shadow, drawn without a GPU or a window."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from newton_like.coercion import as_index, as_number, as_vector
from newton_like.geometry.outline import corner_normals, triangles
from newton_like.geometry.transforms import quat_rotate, transform_multiply
from newton_like.model.arguments import check_model, check_sizes
from newton_like.types import GeoType, ShapeFlags
from newton_like.viewer.raster import Raster
from newton_like.viewer.shading import LAMP, SHADOW_SAMPLES, Camera, Floor, shade
from newton_like.viewer.skeleton import skeleton

DISTANCE = 5.0
"""Distance of the camera from the middle of the scene, in radii of its bounding sphere."""
DPI = 120
SAMPLES = 2
"""Samples a pixel, across and down."""
FILLS = 0.88
"""Part of the picture's width or height that the scene takes."""
GHOST = 0.35
"""Opacity of what only collides, between what is visible."""
BATCH = 200_000
"""Triangles that are drawn at once."""
TITLE, CAPTION = 0.048, 0.045
"""Height of a line of the title and of the line below the picture, as parts of the whole."""


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
    extent=None,
):
    """Draws the shapes of a model.

    Visible shapes are drawn as they are, and bodies that only collide as glass; where nothing is visible, or with `collisions`,
    solid. Where fewer than half of the bodies with mass have a shape, their joints are drawn as balls and rods, and shapes as glass.
    The first endless plane is drawn as a floor with lines a round distance apart.

    Args:
        model: the :class:`Model`.
        state: poses of the bodies (``state.body_q``); by default those of the model.
        path: the image file to write; None: write none.
        world: the world to draw, with what all worlds share; None: all.
        azimuth, elevation: direction of the camera seen from the scene [degrees], about and above the up axis. Where an endless
            plane stands upright between them, the camera goes to its other side.
        collisions: draw what collides in place of what is visible.
        title: above the picture; a second line is smaller. With a title, a line below says how large things are.
        size: width and height [inches].
        extent: lowest and highest corner of the box that the picture shows, such as the :func:`bounds` of a motion, so that the
            camera does not follow what moves; by default what is there.

    Returns:
        The matplotlib figure.

    Raises:
        ImportError: there is no matplotlib.
        TypeError: ``model`` is no model, ``state`` no state, or a number no number.
        IndexError: there is no such world.
        ValueError: the model has nothing that could be drawn, the state is of another size, a size is not above 0, or the file has a
            suffix that matplotlib does not know.
        OSError: the file cannot be written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "newton-like[examples]"') from error
    if path is not None:
        path = Path(path)
        if path.is_dir():
            raise IsADirectoryError(f"picture '{path}' is a folder; name a file in it, such as '{path / 'model.png'}'")
        if not path.suffix:
            raise ValueError(f"picture '{path}' has no suffix; call it '{path}.png'")
        if not path.absolute().parent.is_dir():
            raise FileNotFoundError(f"the folder of picture '{path}' does not exist; make it first")
    azimuth, elevation = as_number(azimuth, "azimuth"), as_number(elevation, "elevation")
    size = as_vector(size, 2, "size")
    if min(size) <= 0.0:
        raise ValueError(f"size {size} must be above 0 [inches]")
    things = _things(model, state, world, collisions)
    points = [vertices for vertices, *_ in things.solids]
    lines = title.split("\n") if title else []
    above, below = TITLE * len(lines), CAPTION if lines else 0.0
    pixels = (round(size[0] * DPI), round(size[1] * DPI * (1.0 - above - below)))
    samples, up = [SAMPLES * n for n in pixels], int(model.up_axis)
    shown = np.concatenate(points)
    if extent is not None:
        shown = np.stack(np.meshgrid(*np.transpose(extent)), axis=-1).reshape(-1, 3).astype(np.float64)
    camera = _frame(up, azimuth, elevation, shown, samples)
    if things.floor is not None and things.floor.is_wall(camera):
        # a plane that stands upright between the eye and the scene: look from its other side
        camera = _frame(up, azimuth + 180.0, elevation, shown, samples)
    image = _render(things, camera, samples)
    image = image.reshape(pixels[1], SAMPLES, pixels[0], SAMPLES, 3).mean(axis=(1, 3))
    figure = Figure(figsize=size, dpi=DPI)
    FigureCanvasAgg(figure)
    figure.figimage((255.0 * image + 0.5).astype(np.uint8), yo=round(size[1] * DPI * below))
    for number, line in enumerate(lines):
        look = {"fontsize": 12, "fontweight": "bold"} if number == 0 else {"fontsize": 9, "color": "#555555"}
        figure.text(0.5, 1.0 - TITLE * (number + 0.55), line, ha="center", va="center", **look)
    if lines:
        figure.text(
            0.5, 0.5 * below, _caption(points, things.floor), ha="center", va="center", fontsize=8, color="#777777"
        )
    if path is not None:
        figure.savefig(path, dpi=DPI)
    return figure


def bounds(model, state=None, *, world: int | None = 0) -> np.ndarray:
    """Lowest and highest corner ``[2, 3]`` [m] of what :func:`picture` draws of a model, without endless planes.

    Args:
        model, state, world: as there.

    Raises:
        ValueError: the model has nothing that could be drawn.
    """
    solids = _things(model, state, world, False).solids
    corners = np.array([(vertices.min(axis=0), vertices.max(axis=0)) for vertices, *_ in solids])
    return np.stack([corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)])


class _Things:
    """What is drawn: (corners in the world, faces, normals at their corners, opacity) and a colour of each, and the floor."""

    def __init__(self):
        self.solids: list[tuple[np.ndarray, np.ndarray, np.ndarray, float]] = []
        self.colors: list[np.ndarray] = []
        self.planes: list[tuple[np.ndarray, np.ndarray]] = []
        self.floor: Floor | None = None

    def add(self, vertices, faces, normals, color, opacity: float) -> None:
        self.solids.append((vertices, faces, normals, opacity))
        self.colors.append(np.asarray(color, dtype=np.float32))


def _things(model, state, world: int | None, collisions: bool) -> _Things:
    check_model(model)
    if state is None:
        state = model
    check_sizes(model, state)
    if world is not None:
        world = as_index(world, "world", model.world_count)
    poses = state.body_q.numpy().astype(np.float64).reshape(-1, 7)
    found, surfaces = _Things(), {}
    kinds, scales = model.shape_type.numpy(), model.shape_scale.numpy().astype(np.float64)
    colors, opacities = model.shape_color.numpy(), model.shape_opacity.numpy()
    bodies, places = model.shape_body.numpy(), model.shape_transform.numpy().astype(np.float64)
    chosen, ghosts = _chosen(model, world, collisions)
    bones = skeleton(model, poses, world, {int(bodies[s]) for s in chosen + ghosts})
    for s in chosen + ghosts:
        pose = places[s] if bodies[s] < 0 else transform_multiply(poses[bodies[s]], places[s])
        if kinds[s] == GeoType.PLANE and not scales[s][:2].any():
            found.planes.append((pose, colors[s]))
            continue
        key = (int(kinds[s]), *scales[s], id(model.shape_source[s]))
        if key not in surfaces:
            vertices, faces = triangles(kinds[s], scales[s], model.shape_source[s])
            surfaces[key] = (vertices, faces, corner_normals(vertices, faces) if len(faces) else None)
        vertices, faces, normals = surfaces[key]
        if not len(faces):
            continue
        ghost = bool(bones) or (s in ghosts and len(chosen) > len(found.planes))
        opacity = (GHOST if ghost else 1.0) * float(opacities[s])
        found.add(quat_rotate(pose[3:], vertices) + pose[:3], faces, quat_rotate(pose[3:], normals), colors[s], opacity)
    for vertices, faces, color in bones:
        found.add(vertices, faces, corner_normals(vertices, faces), color, 1.0)
    if not found.solids:
        raise ValueError("the model has no shapes and no bodies that could be drawn")
    if found.planes:
        pose, color = found.planes[0]
        extent = np.concatenate([vertices for vertices, *_ in found.solids])
        spacing = _round(0.25 * float(np.linalg.norm(np.ptp(extent, axis=0))))
        found.floor = Floor(pose[:3], quat_rotate(pose[3:], np.array([0.0, 0.0, 1.0])), color, spacing)
    return found


def _chosen(model, world: int | None, collisions: bool) -> tuple[list[int], list[int]]:
    """The shapes to draw: those that are asked for, and those of bodies that have no such shape."""
    flags, bodies, worlds = model.shape_flags.numpy(), model.shape_body.numpy(), model.shape_world.numpy()
    here = [s for s in range(model.shape_count) if world is None or worlds[s] in (-1, world)]
    wanted = ShapeFlags.COLLIDE_SHAPES if collisions else ShapeFlags.VISIBLE
    first = [s for s in here if flags[s] & int(wanted)]
    drawn = {int(bodies[s]) for s in first}
    rest = [s for s in here if int(bodies[s]) not in drawn and flags[s] & int(ShapeFlags.COLLIDE_SHAPES)]
    return first, rest


def _frame(up: int, azimuth: float, elevation: float, points: np.ndarray, samples) -> Camera:
    """A camera that sees all points, as large as the picture allows."""
    a, e = np.radians([azimuth, elevation])
    # in axes with z up; the cyclic order of axes keeps the hand
    toward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    axes = np.roll(np.stack([right, np.cross(toward, right), toward]), up - 2, axis=1).T
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    radius = max(float(np.linalg.norm(points - middle, axis=1).max()), 1e-6)
    camera = Camera(np.eye(3)[up], axes, middle, radius, DISTANCE * radius)
    flat = camera.project(points)[:, :2]
    low, high = flat.min(axis=0), flat.max(axis=0)
    scale = FILLS * min(n / max(extent, 1e-6 * radius) for n, extent in zip(samples, high - low, strict=True))
    shift = 0.5 * np.array(samples) - scale * 0.5 * (low + high)
    return Camera(camera.up, axes, middle, radius, camera.distance, scale, tuple(shift))


def _render(things: _Things, camera: Camera, samples) -> np.ndarray:
    toward = camera.axes @ (LAMP / np.linalg.norm(LAMP))
    right = np.cross(camera.axes[:, 1], toward)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(toward, right), toward], axis=1)
    scale = 0.5 * SHADOW_SAMPLES / camera.radius
    lamp = Camera(camera.up, axes, camera.middle, camera.radius, math.inf, scale, (0.5 * SHADOW_SAMPLES,) * 2)
    seen, shadows = Raster(*samples), Raster(SHADOW_SAMPLES, SHADOW_SAMPLES, normals=False)
    batch, count = [], 0
    for number, (vertices, faces, normals, opacity) in enumerate(things.solids):
        batch.append((number, vertices, faces, normals, opacity))
        count += len(faces)
        if count > BATCH or number + 1 == len(things.solids):
            numbers = np.repeat([b[0] for b in batch], [len(b[2]) for b in batch])
            opacities = np.repeat([b[4] for b in batch], [len(b[2]) for b in batch])
            corners = np.concatenate([b[1][b[2]] for b in batch])
            seen.draw(camera.project(corners), numbers, np.concatenate([b[3] for b in batch]), opacities)
            solid = opacities > 0.5
            shadows.draw(lamp.project(corners[solid]), numbers[solid])
            batch, count = [], 0
    return shade(seen, camera, np.array(things.colors), things.floor, shadows, lamp)


def _caption(points: list[np.ndarray], floor: Floor | None) -> str:
    low = np.min([p.min(axis=0) for p in points], axis=0)
    high = np.max([p.max(axis=0) for p in points], axis=0)
    text = " x ".join(f"{x:.3g}" for x in high - low) + " m"
    return text if floor is None else f"{text}; lines {floor.spacing:g} m apart"


def _round(length: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is not above a length."""
    power = 10.0 ** math.floor(math.log10(max(length, 1e-9)))
    return float(f"{power * max(m for m in (1, 2, 5) if m * power <= length * (1 + 1e-9)):g}")
