"""Contact points on the links of a model: their generation and their kinematics."""

from __future__ import annotations

import math
from weakref import WeakValueDictionary

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded
from newton_like.coercion import as_count, as_index
from newton_like.dynamics.internal.common import Q, V, columns, evaluate, representation, state_arrays
from newton_like.dynamics.kinematics import output_representation, rate_rows
from newton_like.dynamics.names import names_of
from newton_like.geometry.transforms import quat_rotate
from newton_like.kernels.tree import MIXED
from newton_like.model.arguments import constant_numbers
from newton_like.options import did_you_mean
from newton_like.programs.program import Field, Program
from newton_like.programs.run import batches
from newton_like.types import GeoType, ShapeFlags, VelRepr

SPHERE_POINTS = 32
"""Default number of points on a sphere, capsule or ellipsoid."""

RIM_POINTS = 8
"""Default number of points on a rim of a cylinder or cone."""


class _Table:
    """The body of each contact point of a batch, -2 for none, followed by the world (-1): integers for programs.

    Tables of equal content are the same object, so that programs with equal tables are the same program.
    """

    def __init__(self, bodies: dict[int, np.ndarray], count: int):
        self.bodies, self.count = bodies, count

    def of(self, batch) -> dict:
        """``points`` and ``point_body``."""
        return {"points": self.count, "point_body": self.bodies[int(batch.articulations[0])]}


_tables: WeakValueDictionary = WeakValueDictionary()


def _table(bodies: dict[int, np.ndarray], count: int) -> _Table:
    key = (count, *((a, rows.tobytes()) for a, rows in bodies.items()))
    table = _tables.get(key)
    if table is None:
        table = _tables[key] = _Table(bodies, count)
    return table


class ContactPoints:
    """Points on links, in the same order for every articulation: by link, and within a link as they were given.

    By default they are taken from the shapes that collide: the corners of boxes, the vertices of convex hulls of meshes,
    points spread evenly over spheres, ellipsoids and the caps of capsules, and points on the rims of cylinders and cones
    (and the tips of cones).

    Args:
        model: the :class:`Model`.
        points: instead of those of the shapes: for bodies, by label or its end behind a slash (all bodies that have it) or index,
            places in the link frame [m], ``[n, 3]``.
        sphere_points: number of points on a sphere, ellipsoid or capsule.
        rim_points: number of points on a rim.

    Attributes:
        count: points of the articulation that has most.
        link: link of each point, numbered as the joints of the articulation, -1 where an articulation has no point,
            ``[articulation_count, count]``.
        position: place in the link frame [m], ``[articulation_count, count, 3]``.

    Raises:
        KeyError: no body has a label.
        IndexError: a body does not exist.
        ValueError: a body outside of articulations; places of the wrong shape or not finite; too few points for a shape.
    """

    def __init__(
        self, model, points: dict | None = None, *, sphere_points: int = SPHERE_POINTS, rim_points: int = RIM_POINTS
    ):
        check_recorded(model.device, "ContactPoints(model)")
        self.model = model
        names = names_of(model)
        articulation, link = names.articulation, names.link
        if points is None:
            sphere_points = as_count(sphere_points, "sphere_points", 4)
            rim_points = as_count(rim_points, "rim_points", 3)
            body, place = _points_of_shapes(model, articulation, sphere_points, rim_points)
        else:
            body, place = _given_points(model, articulation, points)
        order = np.lexsort((np.arange(len(body)), link[body], articulation[body]))
        self._arrange(articulation[body][order], link[body][order], place[order])

    def _arrange(self, articulation, link, place) -> None:
        """Assigns a slot to every point. Slots of all articulations of a batch are on the same links."""
        model = self.model
        links = max(model.max_joints_per_articulation, 1)
        counts = np.zeros((model.articulation_count, links), dtype=np.int64)
        np.add.at(counts, (articulation, link), 1)
        slots, bodies = np.zeros_like(counts), {}
        for batch in batches(model):
            most = counts[batch.articulations].max(axis=0)
            slots[batch.articulations] = np.cumsum(most) - most
            bodies[int(batch.articulations[0])] = np.repeat(np.arange(links), most)
        self.count = max((len(rows) for rows in bodies.values()), default=0)
        self.link = np.full((model.articulation_count, self.count), -1, dtype=np.int32)
        self.position = np.zeros((model.articulation_count, self.count, 3))
        flat = articulation * links + link
        first = np.concatenate([[0], np.cumsum(counts.ravel())])[flat]
        slot = slots.ravel()[flat] + np.arange(len(flat)) - first
        self.link[articulation, slot] = link
        self.position[articulation, slot] = place
        padded = {}
        for a, rows in bodies.items():
            whole = np.full(self.count + 1, -2, dtype=np.int32)
            whole[: len(rows)], whole[-1] = rows, -1
            padded[a] = whole
        self.table = _table(padded, self.count)
        # programs have one more frame than points, the world
        offsets = np.concatenate([self.position, np.zeros((model.articulation_count, 1, 3))], axis=1)
        self.offsets = wp.array(offsets.reshape(model.articulation_count, -1), dtype=model.dtype, device=model.device)
        self.on = wp.array((self.link >= 0).astype(np.float64), dtype=model.dtype, device=model.device)
        self.links = wp.array(self.link, dtype=wp.int32, device=model.device)

    @property
    def offset_field(self) -> Field:
        """The field of the array `offsets`."""
        return Field("offset", "articulations", 3 * (self.count + 1))


def check_part(model, part, kind: type, name: str):
    """Checks that contact points or a contact were made for this model.

    Raises:
        TypeError: `part` has another class.
        ValueError: `part` was made for another model.
    """
    if not isinstance(part, kind):
        raise TypeError(f"{name} must be {kind.__name__}(model, ...), not {type(part).__name__}")
    if part.model is not model:
        raise ValueError(f"{name} belongs to another model; make {kind.__name__}(model, ...) for this model")
    return part


def check_points(model, points: ContactPoints) -> ContactPoints:
    """Checks that contact points were made for this model; raises as :func:`check_part`."""
    return check_part(model, points, ContactPoints, "points")


def _given_points(model, articulation, points) -> tuple[np.ndarray, np.ndarray]:
    labels: dict[str, list[int]] = {}
    for body, label in enumerate(model.body_label):
        labels.setdefault(label, []).append(body)
    if not hasattr(points, "items"):
        raise TypeError(f"points must map bodies to places in their link frames, not be a {type(points).__name__}")
    bodies, places = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 3))]
    for key, given in points.items():
        place = constant_numbers(given, f"points of body {key!r}")
        if place.ndim != 2 or place.shape[1] != 3 or not np.isfinite(place).all():
            raise ValueError(f"points of body {key!r} must be finite numbers [n, 3], not of shape {place.shape}")
        if isinstance(key, str):
            ending = [label for label in labels if label.endswith(f"/{key}")]
            chosen = labels.get(key) or [body for label in ending for body in labels[label]]
            if not chosen:
                short = [label.rpartition("/")[2] for label in labels]
                raise KeyError(f"points: no body has the label {key!r}{did_you_mean(key, [*labels, *short])}")
        else:
            chosen = [as_index(key, "points: body", model.body_count)]
        for body in chosen:
            if articulation[body] < 0:
                raise ValueError(f"points: body '{model.body_label[body]}' (index {body}) belongs to no articulation")
            bodies.append(np.full(len(place), body))
            places.append(place)
    return np.concatenate(bodies), np.concatenate(places)


def _points_of_shapes(model, articulation, sphere_points: int, rim_points: int) -> tuple[np.ndarray, np.ndarray]:
    body, kind = model.shape_body.numpy(), model.shape_type.numpy()
    flags, scale = model.shape_flags.numpy(), model.shape_scale.numpy().astype(np.float64)
    pose = model.shape_transform.numpy().astype(np.float64)
    first, count = model.shape_hull_first.numpy(), model.shape_hull_count.numpy()
    hulls = model.hull_points.numpy().astype(np.float64)
    shapes = np.flatnonzero((body >= 0) & ((flags & int(ShapeFlags.COLLIDE_SHAPES)) != 0))
    shapes = shapes[articulation[body[shapes]] >= 0]
    known: dict = {}
    local = [np.zeros((0, 3))]
    for s in shapes:
        key = (int(kind[s]), tuple(scale[s]), int(first[s]), int(count[s]))
        if key not in known:
            hull = hulls[first[s] : first[s] + count[s]]
            known[key] = _points_of_shape(GeoType(key[0]), scale[s], hull, sphere_points, rim_points)
        local.append(known[key])
    of = np.repeat(shapes, [len(p) for p in local[1:]])
    places = pose[of, :3] + quat_rotate(pose[of, 3:], np.concatenate(local))
    return body[of].astype(np.int64), places


def _points_of_shape(kind: GeoType, scale, hull, sphere_points: int, rim_points: int) -> np.ndarray:
    """Points of a shape in its frame, ``[n, 3]``."""
    if kind == GeoType.BOX:
        return scale * np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
    if kind == GeoType.SPHERE:
        return scale[0] * _on_sphere(sphere_points)
    if kind == GeoType.ELLIPSOID:
        return scale * _on_sphere(sphere_points)
    if kind == GeoType.CAPSULE:
        caps = _on_sphere(sphere_points)
        return scale[0] * caps + np.where(caps[:, 2:] > 0.0, scale[1], -scale[1]) * np.array([0.0, 0.0, 1.0])
    angle = 2.0 * np.pi * np.arange(rim_points) / rim_points
    rim = np.stack([scale[0] * np.cos(angle), scale[0] * np.sin(angle), np.full(rim_points, -scale[1])], axis=1)
    if kind == GeoType.CYLINDER:
        return np.concatenate([rim, rim * [1.0, 1.0, -1.0]])
    if kind == GeoType.CONE:
        return np.concatenate([rim, [[0.0, 0.0, scale[1]]]])
    return hull


def _on_sphere(n: int) -> np.ndarray:
    """n evenly distributed directions: a Fibonacci spiral (Gonzalez 2010) with a point at each pole."""
    z = np.linspace(1.0, -1.0, n)
    angle = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(n)
    r = np.sqrt(np.maximum(0.0, 1.0 - z * z))
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)


def _evaluate(model, state, points: ContactPoints, name: str, shape: tuple[int, ...], out, moving=False, **asked):
    """Runs a program whose result has numbers of a given shape for every point, as a frame with the axes of its link."""
    n = check_points(model, points).count
    row = "vector" if len(shape) == 1 else "matrix"
    fields = (Q, V, points.offset_field) if moving else (Q, points.offset_field)
    result = Field(row, "articulations", math.prod(shape) * n)
    program = Program(name, fields, (result,), rate_rows(name), tables=points.table)
    program = program.ask(components=shape[0], offset_size=3, **asked)
    return evaluate(model, program, [*state_arrays(model, state, moving), points.offsets], [(n, *shape)], out)


def _jacobians(model, state, points: ContactPoints, name: str, repr, out_repr, out, moving: bool) -> wp.array:
    base, output = representation(repr), output_representation(out_repr, "out_repr")
    return _evaluate(model, state, points, name, (6, columns(model)), out, moving, base_repr=base, output_repr=output)


def contact_point_positions(model, state, points: ContactPoints, *, out=None) -> wp.array:
    """Positions of contact points in the world.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        points: the :class:`ContactPoints`.
        out: array for the result; a new array by default.

    Returns:
        [m], ``[articulation_count, points.count, 3]``. The values are undefined where ``points.link`` is -1.

    Raises:
        ValueError: an array of the wrong shape or device; points of another model.
        TypeError: an array of the wrong scalar type.
    """
    return _evaluate(model, state, points, "eval_frame_transforms", (3,), out)


def contact_point_poses(model, state, points: ContactPoints, *, out=None) -> wp.array:
    """Poses of the frames at contact points that have the axes of their links: position [m] and quaternion.

    Arguments and errors as for :func:`contact_point_positions`; returns ``[articulation_count, points.count, 7]``.
    """
    return _evaluate(model, state, points, "eval_frame_transforms", (7,), out)


def contact_point_velocities(model, state, points: ContactPoints, *, out=None) -> wp.array:
    """Velocities of contact points: time derivatives of their positions in the world.

    Arguments (``state.joint_qd`` is also used) and errors as for :func:`contact_point_positions`; returns [m/s],
    ``[articulation_count, points.count, 3]``.
    """
    return _evaluate(model, state, points, "eval_frame_velocities", (3,), out, True, output_repr=MIXED)


def contact_point_jacobians(
    model, state, points: ContactPoints, *, repr=None, out_repr=VelRepr.MIXED, out=None
) -> wp.array:
    """Free-floating Jacobians of the frames at contact points that have the axes of their links: ``twist = J nu``.

    Args:
        model, state, points, out: as for :func:`contact_point_positions`.
        repr: :class:`VelRepr` of the velocity of floating bases in nu; None: as ``joint_qd``.
        out_repr: :class:`VelRepr` of the frames' twists. In ``MIXED`` the first three rows give the points' velocities.

    Returns:
        ``[articulation_count, points.count, 6, max_dofs_per_articulation]``. Where ``points.link`` is -1 the numbers mean
        nothing.

    Raises:
        ValueError, TypeError: as :func:`contact_point_positions`; an unknown representation.
    """
    return _jacobians(model, state, points, "eval_frame_jacobians", repr, out_repr, out, False)


def contact_point_jacobian_derivatives(
    model, state, points: ContactPoints, *, repr=None, out_repr=VelRepr.MIXED, out=None
) -> wp.array:
    """Time derivatives of :func:`contact_point_jacobians` at ``state.joint_qd``. Arguments, shape and errors as there."""
    return _jacobians(model, state, points, "eval_frame_jacobian_derivatives", repr, out_repr, out, True)
