"""The shapes of a model as triangles, at the poses of a state."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from newton_like.coercion import as_index
from newton_like.collision.marks import Marks, marks_of
from newton_like.geometry.markers import Markers
from newton_like.geometry.outline import corner_normals, triangles
from newton_like.geometry.transforms import IDENTITY, quat_rotate, quat_to_matrix, transform_multiply
from newton_like.model.arguments import check_model, check_sizes, finite_poses
from newton_like.model.builder.worlds import grid_offsets
from newton_like.model.overlays import overlays_of
from newton_like.types import GeoType, ShapeFlags
from newton_like.viewer.marks import arrows
from newton_like.viewer.shading import Floor
from newton_like.viewer.skeleton import skeleton

GHOST = 0.35
"""Opacity of colliding shapes that are not visible, if others are visible."""
CLOSED = {GeoType.BOX, GeoType.SPHERE, GeoType.CAPSULE, GeoType.CYLINDER, GeoType.CONE, GeoType.ELLIPSOID}
"""Types of shapes whose triangles face outward and form a closed surface."""
NOTHING = "the model has no shapes and no bodies that could be drawn"
HIDDEN = "all bodies are hidden (set_visibility), and there is nothing else to draw"


@dataclass
class Frame:
    """What a picture shows at one moment.

    Attributes:
        poses: poses of :attr:`Scene.bodies`, ``[bodies, 7]``.
        marks: contacts; None: none.
        markers: further markers, of the worlds that are shown; None: none.
        hidden: bodies of the model that are left out, ``[body_count]`` bools; None: none.
    """

    poses: np.ndarray
    marks: Marks | None = None
    markers: Markers | None = None
    hidden: np.ndarray | None = None

    def looks_like(self, other: Frame) -> bool:
        """Whether both give the same picture, as far as this is cheap to find out."""
        same = self.marks is other.marks and self.hidden is other.hidden
        return same and self.markers is None is other.markers and np.array_equal(self.poses, other.poses)


@dataclass
class Triangles:
    """Triangles in the world.

    Attributes:
        corners: ``[triangles, 3, 3]`` [m].
        normals: normals at the corners, ``[triangles, 3, 3]``, of any length.
        thing: the shape or bone of each triangle, ``[triangles]``.
        opacity: opacity of each triangle, 0 to 1.
        closed: whether each triangle belongs to a closed surface, whose inside is not visible.
        colors: colours of the shapes and bones, ``[things, 3]``.
        floor: the floor, or None.
        ground: whether each triangle belongs to a height field; the camera shows all others.
        casts: whether each triangle casts a shadow.
    """

    corners: np.ndarray
    normals: np.ndarray
    thing: np.ndarray
    opacity: np.ndarray
    closed: np.ndarray
    colors: np.ndarray
    floor: Floor | None
    ground: np.ndarray
    casts: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """Corners of the triangles that the camera shows, ``[n, 3]`` [m]: without height fields, if there is anything else."""
        return (self.corners if self.ground.all() else self.corners[~self.ground]).reshape(-1, 3)

    @property
    def box(self) -> np.ndarray:
        """Lowest and highest corner of what the camera shows, ``[2, 3]`` [m]."""
        points = self.points
        return np.stack([points.min(axis=0), points.max(axis=0)])


class Scene:
    """The shapes of a model in a picture. The triangles of each shape are computed once; :meth:`at` transforms them.

    Attributes:
        model: the model.
        worlds: indices of the worlds that are shown; None: all.
        bodies: indices of the bodies of these worlds and of world -1.
    """

    def __init__(self, model, world=0, collisions: bool = False, spacing=None, ghosts: bool = False):
        """Selects the shapes.

        Args:
            model: the :class:`Model`.
            world: index of a world, a list of indices, or None for all worlds; shapes of world -1 are also shown.
            collisions: show colliding shapes instead of visible shapes.
            spacing: distances between neighbouring worlds along x, y and z [m], as in :meth:`ModelBuilder.replicate`; None: worlds
                keep their positions.
            ghosts: all shapes are translucent.

        Raises:
            TypeError, IndexError: ``model`` is not a model, or a world does not exist.
        """
        check_model(model)
        self.model, self.worlds = model, _worlds(world, model.world_count)
        shown = np.ones(model.body_count, dtype=bool)
        if self.worlds is not None:
            shown = np.isin(model.body_world.numpy(), [-1, *self.worlds])
        self.bodies = np.flatnonzero(shown)
        self._spacing: float | None = None
        self._boxes: dict[int, np.ndarray] = {}
        offsets = np.zeros((model.world_count + 1, 3))  # the last is that of world -1
        if spacing is not None:
            worlds = range(model.world_count) if self.worlds is None else self.worlds
            offsets[list(worlds)] = grid_offsets(len(worlds), spacing, model.up_axis)
        self._world_offset, self._body_offset = offsets, offsets[model.body_world.numpy()]
        shape_offset = offsets[model.shape_world.numpy()]
        kinds, scales = model.shape_type.numpy(), model.shape_scale.numpy().astype(np.float64)
        colors, opacities = model.shape_color.numpy(), model.shape_opacity.numpy()
        bodies, places = model.shape_body.numpy(), model.shape_transform.numpy().astype(np.float64)
        chosen, unseen = self._chosen(collisions)
        self._with_shapes = {int(bodies[s]) for s in chosen + unseen}
        bare = bool(self._bones(model.body_q.numpy().astype(np.float64).reshape(-1, 7)))
        self._planes, self._solids, surfaces, kept = [], [], {}, []
        endless = [s for s in chosen if kinds[s] == GeoType.PLANE and not scales[s][:2].any()]
        for s in chosen + unseen:
            if kinds[s] == GeoType.PLANE and not scales[s][:2].any():
                self._planes.append((int(bodies[s]), places[s], colors[s]))
                continue
            key = (int(kinds[s]), *scales[s], id(model.shape_source[s]))
            if key not in surfaces:
                vertices, faces = triangles(kinds[s], scales[s], model.shape_source[s])
                normals = corner_normals(vertices, faces) if len(faces) else np.zeros((0, 3, 3))
                surfaces[key] = (vertices[faces], normals.astype(np.float32))
            if not len(surfaces[key][0]):
                continue
            ghost = bare or ghosts or (s in unseen and len(chosen) > len(endless))
            opacity = (GHOST if ghost else 1.0) * float(opacities[s])
            kind = GeoType(int(kinds[s]))
            self._solids.append((*surfaces[key], colors[s], opacity, kind in CLOSED, kind == GeoType.HFIELD))
            kept.append(s)
        self._bodies, self._places = bodies[kept].astype(int), places[kept]
        self._offsets = shape_offset[kept]

    def box(self, poses: np.ndarray, markers: Markers | None = None) -> np.ndarray:
        """A box that contains all triangles for poses of :attr:`bodies`, and markers, not always tight: lowest and highest corner,
        ``[2, 3]`` [m]. Height fields do not count, if there is anything else; hidden bodies do.

        Raises:
            ValueError: there is nothing to draw.
        """
        poses = self._placed(poses)
        points, ground = [vertices for vertices, *_ in self._bones(poses)], []
        for x, (surface, *_, is_ground) in zip(self._shapes_at(poses), self._solids, strict=True):
            if id(surface) not in self._boxes:
                vertices = surface.reshape(-1, 3)
                self._boxes[id(surface)] = box_corners([vertices.min(axis=0), vertices.max(axis=0)])
            (ground if is_ground else points).append(self._boxes[id(surface)] @ quat_to_matrix(x[3:]).T + x[:3])
        if markers is not None:
            points.append(self._moved(markers).box)
        points = points or ground
        if not points:
            raise ValueError(NOTHING)
        points = np.concatenate(points)
        return np.stack([points.min(axis=0), points.max(axis=0)])

    def _moved(self, markers: Markers) -> Markers:
        """Markers with the offsets of their worlds."""
        result = markers.chosen(np.ones(len(markers), dtype=bool))
        result.pose[:, :3] += self._world_offset[result.world]
        return result

    def _placed(self, poses) -> np.ndarray:
        """Poses of all bodies of the model with the offsets of their worlds, from poses of the shown bodies."""
        placed = np.tile(IDENTITY, (self.model.body_count, 1))
        placed[self.bodies] = poses
        placed[:, :3] += self._body_offset
        return placed

    def _shapes_at(self, poses: np.ndarray) -> np.ndarray:
        """Poses of the shapes in the world, ``[shapes, 7]``, for the result of :meth:`_placed`."""
        fixed = np.tile(IDENTITY, (len(self._bodies), 1))
        fixed[:, :3] = self._offsets
        carriers = np.where(self._bodies[:, None] < 0, fixed, poses[self._bodies] if len(poses) else fixed)
        return transform_multiply(carriers, self._places)

    def _chosen(self, collisions: bool) -> tuple[list[int], list[int]]:
        """The shapes of the selected kind, and shapes of bodies without a shape of this kind."""
        model = self.model
        flags, bodies, worlds = model.shape_flags.numpy(), model.shape_body.numpy(), model.shape_world.numpy()
        here = np.ones(model.shape_count, dtype=bool) if self.worlds is None else np.isin(worlds, [-1, *self.worlds])
        wanted = ShapeFlags.COLLIDE_SHAPES if collisions else ShapeFlags.VISIBLE
        first = here & (flags & int(wanted) != 0)
        rest = here & ~np.isin(bodies, bodies[first]) & (flags & int(ShapeFlags.COLLIDE_SHAPES) != 0)
        return np.flatnonzero(first).tolist(), np.flatnonzero(rest).tolist()

    def _bones(self, poses: np.ndarray, hidden: np.ndarray | None = None) -> list[tuple]:
        return skeleton(self.model, poses, self.worlds, self._with_shapes, hidden)

    def marks(self, poses: np.ndarray, contacts) -> Marks:
        """The contacts of a list at poses of :attr:`bodies`; those of worlds that are not shown are left out.

        Raises:
            TypeError, ValueError: ``contacts`` are not a list of contacts, or belong to another model.
        """
        return marks_of(self.model, self._placed(poses), contacts, self.worlds, self._world_offset)

    def frame(self, state=None, contacts=None, markers: Markers | None = None) -> Frame:
        """What is shown for a state, or for the model: poses, contacts, markers and hidden bodies of now.

        Raises:
            TypeError, ValueError: ``state`` is not a state of this model, ``contacts`` not a list of it, or ``markers`` are not markers.
        """
        state = self.model if state is None else state
        check_sizes(self.model, state)
        poses, overlays = state.body_q.numpy().reshape(-1, 7), overlays_of(self.model)
        marks = None if contacts is None else self.marks(poses[self.bodies], contacts)
        return Frame(poses[self.bodies], marks, overlays.markers(poses, self.worlds, markers), overlays.hidden)

    def at(self, state=None, contacts=None, markers: Markers | None = None) -> Triangles:
        """The triangles at the poses of a state, or of the model, and those of markers, and of dots and arrows for a list of contacts.

        Raises:
            TypeError, ValueError: see :meth:`frame`; there is nothing to draw; the pose of a body that is shown is not finite.
        """
        frame = self.frame(state, contacts, markers)
        finite_poses(self.model, self.model if state is None else state, bodies=self.bodies)
        found = self.at_frame(frame, 0.0 if frame.marks is None else frame.marks.largest)
        if not len(found.corners):
            raise ValueError(HIDDEN)
        return found

    def at_frame(self, frame: Frame, largest: float = 0.0) -> Triangles:
        """The triangles of a frame.

        Args:
            frame: the frame.
            largest: the force with the longest arrow [N].

        Raises:
            ValueError: there is nothing to draw, and nothing is hidden.
        """
        poses, marks, hidden = frame.poses, frame.marks, frame.hidden
        size = 0.0 if marks is None else float(np.linalg.norm(np.ptp(self.box(poses), axis=0)))
        poses = self._placed(poses)
        bones = self._bones(poses, hidden)
        if marks is not None:
            bones += arrows(marks, size, largest)
        shown = np.ones(len(self._solids), dtype=bool)
        if hidden is not None and len(hidden):
            shown = (self._bodies < 0) | ~hidden[self._bodies]
        solids = [solid for solid, is_shown in zip(self._solids, shown, strict=True) if is_shown]
        sizes = [len(solid[0]) for solid in solids] + [len(faces) for _, faces, _ in bones]
        if not sizes and frame.markers is None and hidden is None:
            raise ValueError(NOTHING)
        corners, normals = np.empty((sum(sizes), 3, 3)), np.empty((sum(sizes), 3, 3), dtype=np.float32)
        last = 0
        shapes = self._shapes_at(poses)[shown]
        for x, turned, (surface, outward, *_) in zip(shapes, quat_to_matrix(shapes[:, 3:]), solids, strict=True):
            turn, part = turned.T, slice(last, last + len(surface))
            corners[part] = surface @ turn + x[:3]
            normals[part] = outward @ turn.astype(np.float32)
            last += len(surface)
        for vertices, faces, _ in bones:
            part = slice(last, last + len(faces))
            corners[part], normals[part] = vertices[faces], corner_normals(vertices, faces)
            last += len(faces)
        colors = [solid[2] for solid in solids] + [color for *_, color in bones]
        opacity = [solid[3] for solid in solids] + [1.0] * len(bones)
        closed = [solid[4] for solid in solids] + [True] * len(bones)
        ground = [solid[5] for solid in solids] + [False] * len(bones)
        found = Triangles(
            corners, normals, np.repeat(np.arange(len(sizes)), sizes), np.repeat(opacity, sizes), np.repeat(closed, sizes).astype(bool),
            np.array(colors, dtype=np.float32).reshape(-1, 3), None, np.repeat(ground, sizes).astype(bool),
            np.ones(sum(sizes), dtype=bool),
        )  # fmt: skip
        if frame.markers is not None:
            _join(found, self._moved(frame.markers))
        if self._planes:
            body, place, color = self._planes[0]
            x = place if body < 0 else transform_multiply(poses[body], place)
            if self._spacing is None:
                box = found.box if len(found.points) else self.box(frame.poses)
                self._spacing = round_length(0.25 * float(np.linalg.norm(np.ptp(box, axis=0))))
            found.floor = Floor(x[:3], quat_rotate(x[3:], np.array([0.0, 0.0, 1.0])), color, self._spacing)
        return found


def _join(found: Triangles, markers: Markers) -> None:
    """Adds the triangles of markers, each a thing of its own."""
    corners, normals, owner = markers.surface()
    n = len(owner)
    found.thing = np.concatenate([found.thing, len(found.colors) + owner])
    found.corners = np.concatenate([found.corners, corners])
    found.normals = np.concatenate([found.normals, normals.astype(np.float32)])
    found.opacity = np.concatenate([found.opacity, np.ones(n)])
    found.closed = np.concatenate([found.closed, np.ones(n, dtype=bool)])
    found.ground = np.concatenate([found.ground, np.zeros(n, dtype=bool)])
    found.casts = np.concatenate([found.casts, np.zeros(n, dtype=bool)])
    found.colors = np.concatenate([found.colors, markers.color.astype(np.float32)])


def _worlds(world, count: int) -> list[int] | None:
    if world is None:
        return None
    if isinstance(world, list | tuple | range | np.ndarray):
        return [as_index(w, "world", count) for w in world]
    return [as_index(world, "world", count)]


def box_corners(box) -> np.ndarray:
    """The eight corners of a box, ``[8, 3]``, from its lowest and highest corner."""
    return np.stack(np.meshgrid(*np.transpose(box)), axis=-1).reshape(-1, 3).astype(np.float64)


def round_length(length: float) -> float:
    """The largest number of the form 1, 2 or 5 times a power of ten that is not above a length."""
    power = 10.0 ** math.floor(math.log10(max(length, 1e-9)))
    return float(f"{power * max(m for m in (1, 2, 5) if m * power <= length * (1 + 1e-9)):g}")
