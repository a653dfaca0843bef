"""Conversion of the lists of a builder to the arrays of a model."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, copied_array
from newton_like.coercion import as_device, as_flag, as_vector
from newton_like.geometry.shapes import bounding_radius
from newton_like.model.actuators import NUMBERS as ACTUATOR_NUMBERS
from newton_like.model.actuators import actuator_numbers
from newton_like.model.builder.checks import Report, check_values, read_columns
from newton_like.model.builder.checks_mass import check_masses
from newton_like.model.builder.checks_tree import check_mimics, check_trees, check_worlds
from newton_like.model.builder.custom import lay_out_custom
from newton_like.model.columns import COLUMNS, COUNTS, WITHOUT_GRADIENT
from newton_like.model.editing.structure import keep_structure
from newton_like.model.joint_types import look_up
from newton_like.model.model import Model, inverse_inertias, inverse_masses
from newton_like.model.pairs import PairSet
from newton_like.model.singular import singular_joints
from newton_like.model.tendons import ARRAYS as TENDON_ARRAYS
from newton_like.model.tendons import tendon_numbers
from newton_like.types import Axis, GeoType, ShapeFlags, warp_types

_CONSTANT = (
    *WITHOUT_GRADIENT,
    "body_inv_mass",
    "body_inv_inertia",
    "shape_collision_radius",
    "hull_points",
    "_hull_scale",
    *(f"tendon_{name}" for name in TENDON_ARRAYS),
    *(f"actuator_{name}" for name in ACTUATOR_NUMBERS),
)
"""Real arrays that never require gradients."""

_HULLS = (GeoType.MESH, GeoType.CONVEX_MESH)


def finalize(builder, *, device=None, requires_grad: bool = False, dtype=wp.float32) -> Model:
    """Checks a builder and makes its model; see :meth:`ModelBuilder.finalize`."""
    if builder.current_world >= 0:
        raise RuntimeError(f"world {builder.current_world} is still open; call end_world() before finalize()")
    requires_grad = as_flag(requires_grad, "requires_grad")
    types = warp_types(dtype)
    check_recorded(as_device(device), "ModelBuilder.finalize")
    report = Report(builder)
    columns = read_columns(builder, report)
    check_values(columns, report)
    check_worlds(builder, columns, report)
    ancestor = check_trees(builder, columns, report)
    check_mimics(columns, report)
    check_masses(columns, report)

    _tell_distances(columns)
    model = Model(device, dtype=types.real, requires_grad=requires_grad)
    layout = _Layout(model, types, report)
    model.up_axis = Axis.from_any(builder.up_axis)
    for column in COLUMNS:
        if not column.builder_only:
            layout.set(column.name, columns[column.name], column.type, column.kind)
    for count in COUNTS.values():
        setattr(model, count, getattr(builder, count))

    with np.errstate(over="ignore"):  # infinite inverses of tiny masses are refused by the layout
        layout.set("body_inv_mass", inverse_masses(columns["body_mass"]), "real", "body")
        layout.set("body_inv_inertia", inverse_inertias(columns["body_inertia"]), "mat33", "body")
    layout.set("joint_ancestor", ancestor, "int")
    layout.set("joint_q_start", np.append(columns["joint_q_start"], builder.joint_coord_count), "int")
    layout.set("joint_qd_start", np.append(columns["joint_qd_start"], builder.joint_dof_count), "int")
    _articulations(model, layout, columns)
    _worlds(model, layout, builder, columns)
    _shapes(layout, columns, report)
    for tendon in builder.tendons:
        tendon.check(builder.joint_count, builder.shape_count, builder.joint_dof_dim)
    model.tendons = list(builder.tendons)
    model.tendon_count = len(model.tendons)
    model.tendon_label = [tendon.label for tendon in model.tendons]
    layout.set("tendon_world", [tendon.world for tendon in model.tendons], "int")
    for name, numbers in tendon_numbers(builder).items():
        layout.set(f"tendon_{name}", numbers, "real")
    _actuators(model, layout, builder)
    builder.frames.check(builder.body_count, builder.articulation_count)
    model.frames = builder.frames.copy()
    model.shape_collision_filter_pairs = PairSet(builder.shape_collision_filter_pairs)
    lay_out_custom(builder, model)
    told = singular_joints({**columns, "joint_ancestor": ancestor})
    model._singular = None if told is None else (told, model.version)
    keep_structure(model)
    model._finalized_q = model.joint_q.numpy().copy()
    model._complete = True  # from now on, setting an unknown attribute raises
    model.request_state_attributes(*builder._requested)
    model.request_contact_attributes(*builder._requested_of_contacts)
    return model


def _tell_distances(columns: dict) -> None:
    """Copies the distances of DISTANCE joints to the limits of their first dof, as in Newton. DISTANCE joints have no other limits."""
    joints = np.flatnonzero(look_up(columns["joint_type"], "limits_distance"))
    first = columns["joint_qd_start"][joints]
    columns["joint_limit_lower"][first] = columns["joint_min_distance"][joints]
    columns["joint_limit_upper"][first] = columns["joint_max_distance"][joints]


class _Layout:
    """Makes arrays of a model's scalar type on its device."""

    def __init__(self, model: Model, types, report: Report):
        self._model = model
        self._types = types
        self._report = report
        self._real = np.dtype(np.float64 if types.real is wp.float64 else np.float32)

    def set(self, name: str, values, type_: str, kind: str | None = None) -> None:
        """Sets an attribute of the model to an array of a column type; lists of objects stay lists.

        Raises:
            ValueError: a number is beyond the range of the scalar type; the message names the entity by ``kind``.
        """
        if type_ != "object":
            values = self._array(name, values, type_, kind)
        setattr(self._model, name, values)

    def _array(self, name: str, values, type_: str, kind: str | None) -> wp.array:
        device = self._model.device
        if type_ in ("int", "int2", "bool"):
            dtype = wp.bool if type_ == "bool" else wp.int32
            return copied_array(np.asarray(values), dtype, device)
        with np.errstate(over="ignore"):
            numbers = np.ascontiguousarray(values, dtype=self._real)
        wrong = ~np.isfinite(numbers.reshape(len(numbers), -1)).all(axis=1) if numbers.size else np.zeros(0, bool)
        if kind is not None:
            self._report.refuse(
                kind, wrong, lambda i: f"{name} {values[i].tolist()} is beyond the range of {self._real}{self._cure}"
            )
        elif wrong.any():
            value = values[np.flatnonzero(wrong)[0]].tolist()
            raise ValueError(f"{name} {value} is beyond the range of {self._real}{self._cure}")
        gradients = self._model.requires_grad and name not in _CONSTANT
        return copied_array(numbers, getattr(self._types, type_), device, requires_grad=gradients)

    @property
    def _cure(self) -> str:
        wider = ", or finalize with dtype=wp.float64" if self._real == np.float32 else ""
        return f"; give a number nearer to one{wider}"


def _actuators(model: Model, layout: _Layout, builder) -> None:
    for actuator in builder.actuators:
        actuator.check(builder.joint_count, builder.shape_count, len(builder.tendons), builder.body_count)
    model.actuators = list(builder.actuators)
    model.actuator_count = len(model.actuators)
    model.actuator_label = [actuator.label for actuator in model.actuators]
    layout.set("actuator_world", [actuator.world for actuator in model.actuators], "int")
    for name, numbers in actuator_numbers(model.actuators).items():
        layout.set(f"actuator_{name}", numbers, "real")


def _articulations(model: Model, layout: _Layout, columns: dict) -> None:
    start, end = columns["articulation_start"], columns["articulation_end"]
    layout.set("articulation_start", np.append(start, model.joint_count), "int")
    dof_start = np.append(columns["joint_qd_start"], model.joint_dof_count)
    model.max_joints_per_articulation = int((end - start).max(initial=0))
    model.max_dofs_per_articulation = int((dof_start[end] - dof_start[start]).max(initial=0))


def _worlds(model: Model, layout: _Layout, builder, columns: dict) -> None:
    model.world_count = max(builder.world_count, 1)
    model.world_label = list(builder.world_label) or ["world_0"]
    own = builder.gravity
    gravity = [
        own if g is None else as_vector(g, 3, f"world {i}: gravity") for i, g in enumerate(builder.world_gravity)
    ]
    layout.set("gravity", np.array(gravity or [own]), "vec3")
    dofs = columns["joint_dof_dim"].sum(axis=1)
    coords = np.diff(np.append(columns["joint_q_start"], model.joint_coord_count))
    worlds = {kind: columns[f"{kind}_world"] for kind in ("body", "joint", "articulation", "shape")}
    worlds["joint_dof"] = np.repeat(worlds["joint"], dofs)
    worlds["joint_coord"] = np.repeat(worlds["joint"], coords)
    for kind, world in worlds.items():
        inside = world[world >= 0]
        before = int(np.argmax(world >= 0)) if inside.size else len(world)
        starts = before + np.searchsorted(inside, np.arange(model.world_count + 1))
        layout.set(f"{kind}_world_start", np.append(starts, len(world)), "int")


def _shapes(layout: _Layout, columns: dict, report: Report) -> None:
    """Computes bounding spheres and convex hulls, once for all copies of a shape."""
    types, sources = columns["shape_type"].tolist(), columns["shape_source"]
    scales = list(map(tuple, columns["shape_scale"].tolist()))
    radii: dict[tuple, float] = {}
    hulls: dict[tuple, tuple[int, int]] = {}
    points: list[np.ndarray] = []
    radius, first, count = np.zeros(len(types)), np.zeros(len(types)), np.zeros(len(types))
    size = 0
    collides = ((columns["shape_flags"] & int(ShapeFlags.COLLIDE_SHAPES)) != 0).tolist()
    for i, key in enumerate(zip(types, scales, map(id, sources), collides, strict=True)):
        if key not in radii:
            try:
                radii[key] = bounding_radius(types[i], scales[i], sources[i])
            except ValueError as error:
                raise ValueError(f"{report.name('shape', i)}: {error}") from None
            if types[i] in _HULLS and collides[i]:
                vertices = sources[i].hull_vertices * np.array(scales[i])
                points.append(vertices)
                hulls[key] = (size, len(vertices))
                size += len(vertices)
        radius[i] = radii[key]
        if key in hulls:
            first[i], count[i] = hulls[key]
    layout.set("shape_collision_radius", radius, "real", "shape")
    layout.set("shape_hull_first", first, "int")
    layout.set("shape_hull_count", count, "int")
    if points:
        layout.set("_hull_scale", columns["shape_scale"], "vec3", "shape")
    layout.set("hull_points", np.concatenate(points) if points else np.zeros((0, 3)), "vec3")
