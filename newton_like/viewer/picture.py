"""Pictures of models: their shapes in perspective, with light and shadow, drawn without a GPU or a window."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newton_like.coercion import as_number, as_vector
from newton_like.viewer.render import camera_of, render
from newton_like.viewer.scene import Scene, Triangles, box_corners

DPI = 120
TITLE, CAPTION = 0.048, 0.045
"""Height of a line of the title and of the line below the picture, as fractions of the total height."""


def picture(
    model,
    state=None,
    path: str | Path | None = None,
    *,
    world=0,
    spacing=None,
    azimuth: float = -50.0,
    elevation: float = 25.0,
    collisions: bool = False,
    contacts=None,
    markers=None,
    title: str = "",
    size: tuple[float, float] = (8.0, 6.0),
    extent=None,
):
    """Draws the shapes of a model.

    Visible shapes are opaque. Bodies without visible shapes are drawn by their colliding shapes, which are translucent. These are opaque if
    nothing is visible, or with `collisions`. If fewer than half of the bodies with mass have a shape, joints are drawn as spheres
    and rods, and shapes are translucent. The first infinite plane is drawn as a floor with lines at a constant distance. Bodies that
    ``set_visibility`` of an asset hid are left out.

    Args:
        model: the :class:`Model`.
        state: poses of the bodies (``state.body_q``); by default those of the model.
        path: the image file to write; None: write none.
        world: index of the world to draw, a list of indices, or None for all worlds. Shapes that all worlds share are drawn, too.
        spacing: distances between neighbouring worlds along x, y and z [m], as in :meth:`ModelBuilder.replicate`; None: worlds are
            drawn where they are.
        azimuth, elevation: direction from the scene to the camera [degrees], about and above the up axis. If a vertical infinite
            plane is between them, the camera moves to the other side.
        collisions: draw the colliding shapes instead of the visible ones.
        contacts: contacts to draw as dots, with arrows for their forces on the second shape; see
            :meth:`newton_like.solvers.SolverFeatherstone.update_contacts`. The longest arrow is the largest force. Shapes are
            translucent then.
        markers: further :class:`newton_like.viewer.Markers` to draw. Those of assets with debug drawing
            (:meth:`newton_like.articulation.Articulation.set_debug_vis`) are drawn without being given.
        title: text above the picture; a second line is smaller. With a title, a line below the picture gives the size of the scene.
        size: width and height [inches].
        extent: lowest and highest corner of the box that the picture shows, such as the :func:`bounds` of a motion, for the same
            camera in several pictures; by default the box around the shapes.

    Returns:
        The matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.
        TypeError: ``model`` is not a model, ``state`` is not a state, ``contacts`` are not a list of contacts, or an argument is
            not a number.
        IndexError: the world does not exist.
        ValueError: the model has nothing to draw; the pose of a body is not finite; the state has the wrong size; a size is not
            positive; matplotlib does not support the suffix of the file.
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
    scene = Scene(model, world, collisions, spacing, ghosts=contacts is not None).at(state, contacts, markers)
    lines = title.split("\n") if title else []
    above, below = TITLE * len(lines), CAPTION if lines else 0.0
    pixels = (round(size[0] * DPI), round(size[1] * DPI * (1.0 - above - below)))
    shown = scene.points if extent is None else box_corners(extent)
    image = render(scene, camera_of(scene, shown, int(model.up_axis), azimuth, elevation, pixels), pixels)
    figure = Figure(figsize=size, dpi=DPI)
    FigureCanvasAgg(figure)
    figure.figimage(image, yo=round(size[1] * DPI * below))
    for number, line in enumerate(lines):
        look = {"fontsize": 12, "fontweight": "bold"} if number == 0 else {"fontsize": 9, "color": "#555555"}
        figure.text(0.5, 1.0 - TITLE * (number + 0.55), line, ha="center", va="center", **look)
    if lines:
        figure.text(0.5, 0.5 * below, _caption(scene), ha="center", va="center", fontsize=8, color="#777777")
    if path is not None:
        figure.savefig(path, dpi=DPI)
    return figure


def bounds(model, state=None, *, world=0) -> np.ndarray:
    """Lowest and highest corner ``[2, 3]`` [m] of the shapes that :func:`picture` draws, without infinite planes, and without height fields
    if there is anything else.

    Args:
        model, state, world: as there.

    Raises:
        ValueError: the model has nothing that could be drawn, or the pose of a body is not finite.
    """
    return Scene(model, world).at(state).box


def _caption(scene: Triangles) -> str:
    low, high = scene.box
    text = " x ".join(f"{x:.3g}" for x in high - low) + " m"
    return text if scene.floor is None else f"{text}; lines {scene.floor.spacing:g} m apart"
