"""Motions of models as animated USD stages."""

from __future__ import annotations

from typing import Never

import numpy as np
from pxr import Gf, Sdf

from newton_like.coercion import as_flag, as_number
from newton_like.collision.marks import Marks, markers_of, marks_of
from newton_like.exporters.usd.author import Author, Names, as_target, save
from newton_like.exporters.usd.host import Host
from newton_like.exporters.usd.shapes import MeshLibrary, write_geometry, write_look
from newton_like.exporters.usd.stage import set_stage_metadata
from newton_like.geometry.markers import Markers
from newton_like.geometry.shapes import INFINITE_RADIUS, bounding_radius
from newton_like.geometry.transforms import transform_multiply
from newton_like.model.arguments import finite_poses
from newton_like.model.model import Model
from newton_like.model.overlays import overlays_of
from newton_like.options import refuse_options
from newton_like.types import Axis, GeoType, ShapeFlags
from newton_like.usd.markers import write_markers, write_visibility

WHOLE = 1.0e-9
"""Time codes this near to a whole number are whole."""


class Recorder:
    """Records the poses of all bodies over time and saves them as an animation.

    The stage has a prim for each body, below a prim for its world if there are several, and a gprim for each shape. Bodies
    with equal shapes, such as those of copied worlds, are instances of one prototype, and meshes are written once. The stage
    has no physics; :func:`newton_like.usd.write` saves the physics.

    Example::

        with Recorder(model, "walk.usdc", fps=30) as recorder:
            for frame in range(300):
                ...
                recorder.record(state, frame / 30)

    Recording copies the poses; :meth:`save` writes the stage, in time proportional to bodies times frames. Bodies that an asset hid
    (``set_visibility``) are invisible at these times. Markers of assets with debug drawing (``set_debug_vis``), and those that are given,
    are one ``PointInstancer`` with time samples, ``/recording/markers``. Contacts that are given are balls there, with arrows along their
    forces on the second shape; the longest arrow is the largest force of the recording.

    Attributes:
        body_paths: path of the prim of each body.
        shape_paths: path of the gprim of each shape, in its body's prototype; empty for shapes that are not drawn.
        times: the recorded times [s].
    """

    def __init__(
        self, model: Model, path, *, fps: float = 60.0, up_axis=None, show_colliders: bool = False, **others: Never
    ):
        """Prepares the stage.

        Args:
            model: the model.
            path: the file: ``.usda``, ``.usdc`` or ``.usd``.
            fps: time codes a second; a sample at t seconds has the time code ``t fps``.
            up_axis: ``"Y"`` or ``"Z"``, the up axis of the stage; by default that of the model.
            show_colliders: also draw shapes that are not visible in the model; otherwise they have the purpose ``guide``.

        Raises:
            TypeError: ``model`` is not a :class:`Model`.
            ValueError: the file has another suffix, ``fps`` is not above 0, or the up axis is X.
            FileNotFoundError: the folder of the file does not exist.
        """
        if others:
            refuse_options(Recorder.__init__, others)
        if not isinstance(model, Model):
            raise TypeError(f"{model!r} is not a Model; a ModelBuilder makes one by finalize()")
        self.model, self.path = model, as_target(path)
        self.fps = as_number(fps, "fps")
        if self.fps <= 0.0:
            raise ValueError(f"fps {self.fps:g} must be above 0")
        up_axis = model.up_axis if up_axis is None else Axis.from_any(up_axis)
        if up_axis == Axis.X:
            raise ValueError("USD stages have Y or Z up; give up_axis 'Y' or 'Z'")
        self._show = as_flag(show_colliders, "show_colliders")
        self._layer = Sdf.Layer.CreateAnonymous(".usda")
        self._poses: list[np.ndarray] = []
        self._markers: list = []
        self._marks: list[Marks | None] = []
        self._hidden: list = []
        self.times: list[float] = []
        self.body_paths = [""] * model.body_count
        self.shape_paths = [""] * model.shape_count
        with Sdf.ChangeBlock():
            set_stage_metadata(self._layer, up_axis, "recording")
            for name in ("timeCodesPerSecond", "framesPerSecond"):
                self._layer.pseudoRoot.SetInfo(name, self.fps)
            self._write_scene(Host(model))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if kind is None:
            self.save()

    def record(self, state, time: float, markers=None, contacts=None) -> None:
        """Records the poses of a state.

        Args:
            state: a state of the model; its ``body_q`` is copied.
            time: time [s]. A later call with the same time replaces the earlier one.
            markers: further :class:`newton_like.viewer.Markers` of this time.
            contacts: contacts of this time, from :meth:`newton_like.solvers.SolverFeatherstone.update_contacts` or ``model.collide``.

        Raises:
            TypeError, ValueError: ``markers`` are not markers, ``contacts`` are not a list of contacts or belong to another model, ``time``
                is not a finite number, ``state`` is not a state or has another number of bodies, or a pose is not finite.
        """
        time = as_number(time, "time")
        poses = finite_poses(self.model, state, time)
        overlays = overlays_of(self.model)
        shown = overlays.markers(poses, None, markers)
        none = np.zeros((self.model.world_count + 1, 3))
        marks = None if contacts is None else marks_of(self.model, poses.astype(np.float64), contacts, None, none)
        self._markers.append(shown)
        self._marks.append(marks)
        self._hidden.append(overlays.hidden)
        self.times.append(time)
        self._poses.append(poses)

    def save(self) -> None:
        """Writes the stage with all recorded poses.

        Raises:
            OSError: the file cannot be written.
        """
        if self.times:
            _, last = np.unique(np.array(self.times)[::-1], return_index=True)
            frames = len(self.times) - 1 - last
            codes = np.array(self.times)[frames] * self.fps
            # visibility and markers change at their time code, which 3 * 0.1 * 10 would miss
            codes = np.where(np.abs(codes - np.round(codes)) < WHOLE, np.round(codes), codes).tolist()
            with Sdf.ChangeBlock():
                self._layer.pseudoRoot.SetInfo("startTimeCode", codes[0])
                self._layer.pseudoRoot.SetInfo("endTimeCode", codes[-1])
                poses = np.stack([self._poses[frame] for frame in frames], axis=1)
                for path, track in zip(self.body_paths, poses, strict=True):
                    write_track(self._layer, path, codes, track)
                write_visibility(self._layer, self.body_paths, codes, [self._hidden[frame] for frame in frames])
                write_markers(self._layer, self._markers_path, codes, self._with_contacts(frames))
        save(self._layer, self.path)

    def _with_contacts(self, frames) -> list:
        """The markers of frames, and those of their contacts."""
        marks = [self._marks[frame] for frame in frames]
        if all(each is None for each in marks):
            return [self._markers[frame] for frame in frames]
        size, largest = self._size(), max(each.largest for each in marks if each is not None)
        found = []
        for frame, each in zip(frames, marks, strict=True):
            drawn = Markers() if self._markers[frame] is None else Markers().add(self._markers[frame])
            found.append(drawn if each is None else drawn.add(markers_of(each, size, largest)))
        return [each if len(each) else None for each in found]

    def _size(self) -> float:
        """The diagonal of the box around the shapes on bodies of a world at first, the largest of all worlds [m]."""
        model = self.model
        body, world, place = (getattr(model, f"shape_{name}").numpy() for name in ("body", "world", "transform"))
        shapes = [s for s in range(model.shape_count) if body[s] >= 0]
        kind, scale = model.shape_type.numpy(), model.shape_scale.numpy()
        radius = np.array([bounding_radius(kind[s], scale[s], model.shape_source[s]) for s in shapes])
        middle = transform_multiply(self._poses[0][body[shapes]], place[shapes])[:, :3]
        finite, sizes = radius < INFINITE_RADIUS, [0.0]
        for each in np.unique(world[shapes]):
            own = finite & (world[shapes] == each)
            if own.any():
                low, high = middle[own] - radius[own, None], middle[own] + radius[own, None]
                sizes.append(float(np.linalg.norm(high.max(axis=0) - low.min(axis=0))))
        return max(sizes) or 1.0

    def _write_scene(self, host: Host) -> None:
        author, names = Author(self._layer), Names()
        root = "/recording"
        self._markers_path = names.path(root, "markers")
        author.prim(root, "Xform")
        self._meshes = MeshLibrary(author, names, root)
        worlds = {-1: root}
        if host.model.world_count > 1:
            for world, label in enumerate(host.model.world_label):
                worlds[world] = names.path(root, label)
                author.prim(worlds[world], "Xform")
        prototypes: dict[tuple, str] = {}
        for body, label in enumerate(host.body_label):
            path = names.path(worlds.get(int(host.body_world[body]), root), label)
            self.body_paths[body] = path
            shapes = [shape for shape in host.shapes_of[body] if host.shape_type[shape] != GeoType.NONE]
            prim = author.prim(path, "Xform")
            author.set(prim, "xformOp:translate", "double3", host.pose[body, :3])
            author.set(prim, "xformOp:orient", "quatf", host.pose[body, 3:])
            author.set(prim, "xformOpOrder", "token[]", ["xformOp:translate", "xformOp:orient"], uniform=True)
            if not shapes:
                continue
            look = tuple(self._look(host, shape) for shape in shapes)
            prototype = prototypes.get(look)
            if prototype is None:
                if not prototypes:
                    author.prim(names.path(root, "prototypes"), "Scope", specifier=Sdf.SpecifierClass)
                prototype = prototypes[look] = names.path(f"{root}/prototypes", label)
                author.prim(prototype, "Xform")
                for shape in shapes:
                    self._write_shape(author, host, shape, names.path(prototype, host.shape_label[shape]))
            prim.referenceList.prependedItems = [Sdf.Reference("", Sdf.Path(prototype))]
            prim.instanceable = True
            inside = self._layer.GetPrimAtPath(prototype).nameChildren.keys()
            for shape, child in zip(shapes, inside, strict=True):
                self.shape_paths[shape] = f"{path}/{child}"
        for shape in host.shapes_of[-1]:
            if host.shape_type[shape] != GeoType.NONE:
                path = names.path(worlds.get(int(host.shape_world[shape]), root), host.shape_label[shape])
                self.shape_paths[shape] = path
                self._write_shape(author, host, shape, path)

    @staticmethod
    def _look(host: Host, shape: int) -> tuple:
        columns = ("shape_type", "shape_flags", "shape_transform", "shape_scale", "shape_color", "shape_opacity")
        return (id(host.shape_source[shape]), *(getattr(host, name)[shape].tobytes() for name in columns))

    def _write_shape(self, author: Author, host: Host, shape: int, path: str) -> None:
        kind = GeoType(int(host.shape_type[shape]))
        pose, source = host.shape_transform[shape], host.shape_source[shape]
        prim = write_geometry(author, self._meshes, path, kind, host.shape_scale[shape], source, pose)
        shown = self._show or bool(host.shape_flags[shape] & ShapeFlags.VISIBLE)
        write_look(author, prim, host.shape_color[shape], float(host.shape_opacity[shape]), shown)


def write_track(layer: Sdf.Layer, path: str, codes: list[float], poses: np.ndarray) -> None:
    """Writes the poses of one prim over time to its translate and orient ops; constant values are written as a single default.

    Args:
        layer: the layer with the declared ops, ``double3`` and ``quatf``.
        path: path of the prim.
        codes: time codes, ascending.
        poses: ``[frames, 7]``.
    """
    places, turns = poses[:, :3].astype(np.float64), poses[:, 3:].astype(np.float64)
    turns = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    # USD interpolates the components between samples, so neighbouring quaternions need the same sign (q and -q are equal rotations).
    turns[1:] *= np.cumprod(np.where(np.sum(turns[1:] * turns[:-1], axis=1) < 0.0, -1.0, 1.0))[:, None]
    for name, values, convert in (
        ("translate", places, lambda v: Gf.Vec3d(*v)),
        ("orient", turns, lambda v: Gf.Quatf(v[3], v[0], v[1], v[2])),
    ):
        attribute = Sdf.Path(f"{path}.xformOp:{name}")
        layer.GetAttributeAtPath(attribute).default = convert(values[0].tolist())
        if not np.array_equal(values, np.broadcast_to(values[0], values.shape)):
            for code, value in zip(codes, values.tolist(), strict=True):
                layer.SetTimeSample(attribute, code, convert(value))
