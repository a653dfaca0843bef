"""Turns the lists of a builder into the arrays of a model."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.geometry.shapes import bounding_radius
from newton_like.model.checks import Report, check_values, read_columns
from newton_like.model.checks_mass import check_masses
from newton_like.model.checks_tree import check_mimics, check_trees, check_worlds
from newton_like.model.columns import COLUMNS
from newton_like.model.model import Model, inverse_inertias, inverse_masses
from newton_like.model.pairs import PairSet
from newton_like.types import Axis, GeoType, ShapeFlags, warp_types

_HULLS = (GeoType.MESH, GeoType.CONVEX_MESH)


def finalize(builder, *, device=None, requires_grad: bool = False, dtype=wp.float32) -> Model:
    """Checks a builder and lays it out; see :meth:`ModelBuilder.finalize`."""
    if builder.current_world >= 0:
        raise RuntimeError(f"world {builder.current_world} is still open; call end_world() before finalize()")
    types = warp_types(dtype)
    report = Report(builder)
    columns = read_columns(builder, report)
    check_values(columns, report)
    check_worlds(builder, columns, report)
    ancestor = check_trees(builder, columns, report)
    check_mimics(columns, report)
    check_masses(columns, ancestor, report)

    model = Model(device, dtype=types.real, requires_grad=requires_grad)
    layout = _Layout(model, types)
    model.up_axis = Axis.from_any(builder.up_axis)
    for column in COLUMNS:
        if not column.builder_only:
            setattr(model, column.name, layout.array(columns[column.name], column.type))
    model.body_count = builder.body_count
    model.joint_count = builder.joint_count
    model.joint_coord_count = builder.joint_coord_count
    model.joint_dof_count = builder.joint_dof_count
    model.articulation_count = builder.articulation_count
    model.shape_count = builder.shape_count

    model.body_inv_mass = layout.array(inverse_masses(columns["body_mass"]), "real")
    model.body_inv_inertia = layout.array(inverse_inertias(columns["body_inertia"]), "mat33")
    model.joint_ancestor = layout.array(ancestor, "int")
    model.joint_q_start = layout.array(np.append(columns["joint_q_start"], builder.joint_coord_count), "int")
    model.joint_qd_start = layout.array(np.append(columns["joint_qd_start"], builder.joint_dof_count), "int")
    _articulations(model, layout, columns)
    _worlds(model, layout, builder, columns)
    _shapes(model, layout, columns, report)
    model.shape_collision_filter_pairs = PairSet(builder.shape_collision_filter_pairs)
    return model


class _Layout:
    """Makes arrays of the model's scalar type on its device."""

    def __init__(self, model: Model, types):
        self._device = model.device
        self._grad = model.requires_grad
        self._types = types
        self._real = np.float64 if types.real is wp.float64 else np.float32

    def array(self, values, type_: str):
        """A Warp array of a column type; lists of objects stay lists."""
        if type_ == "object":
            return values
        if type_ in ("int", "int2", "bool"):
            dtype = wp.bool if type_ == "bool" else wp.int32
            values = np.ascontiguousarray(values, dtype=bool if type_ == "bool" else np.int32)
            return wp.array(values, dtype=dtype, device=self._device)
        values = np.ascontiguousarray(values, dtype=self._real)
        return wp.array(values, dtype=getattr(self._types, type_), device=self._device, requires_grad=self._grad)


def _articulations(model: Model, layout: _Layout, columns: dict) -> None:
    start, end = columns["articulation_start"], columns["articulation_end"]
    model.articulation_start = layout.array(np.append(start, model.joint_count), "int")
    dof_start = np.append(columns["joint_qd_start"], model.joint_dof_count)
    model.max_joints_per_articulation = int((end - start).max(initial=0))
    model.max_dofs_per_articulation = int((dof_start[end] - dof_start[start]).max(initial=0))


def _worlds(model: Model, layout: _Layout, builder, columns: dict) -> None:
    model.world_count = max(builder.world_count, 1)
    model.world_label = list(builder.world_label) or ["world_0"]
    own = builder.gravity
    gravity = [own if g is None else g for g in builder.world_gravity] or [own]
    model.gravity = layout.array(np.array(gravity, dtype=np.float64), "vec3")
    dofs = columns["joint_dof_dim"].sum(axis=1)
    coords = np.diff(np.append(columns["joint_q_start"], model.joint_coord_count))
    worlds = {kind: columns[f"{kind}_world"] for kind in ("body", "joint", "articulation", "shape")}
    worlds["joint_dof"] = np.repeat(worlds["joint"], dofs)
    worlds["joint_coord"] = np.repeat(worlds["joint"], coords)
    for kind, world in worlds.items():
        inside = world[world >= 0]
        before = int(np.argmax(world >= 0)) if inside.size else len(world)
        starts = before + np.searchsorted(inside, np.arange(model.world_count + 1))
        setattr(model, f"{kind}_world_start", layout.array(np.append(starts, len(world)), "int"))


def _shapes(model: Model, layout: _Layout, columns: dict, report: Report) -> None:
    """Bounding spheres and convex hulls. Copies of a shape are worked out once."""
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
    model.shape_collision_radius = layout.array(radius, "real")
    model.shape_hull_first = layout.array(first, "int")
    model.shape_hull_count = layout.array(count, "int")
    model.hull_points = layout.array(np.concatenate(points) if points else np.zeros((0, 3)), "vec3")
