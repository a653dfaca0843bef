"""Reads the ``newtonLike:`` attributes of ``newton_like.usd.write``: order, names, and numbers without a schema.

The physics of such a stage is in the schemas of UsdPhysics and Newton and is read as in any other stage. The attributes have the
remaining properties, so that the imported model equals the written one. Stages without them are not affected.
"""

from __future__ import annotations

import math

import numpy as np

from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.geometry.transforms import quat_inverse, quat_rotate, transform, transform_inverse, transform_multiply
from newton_like.importers.usd.joints import ANGULAR, LINEAR
from newton_like.importers.usd.values.units import Reader
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.types import GeoType, JointTargetMode, JointType, ShapeFlags

DOF_ARRAYS = {
    "armature": "joint_armature",
    "friction": "joint_friction",
    "frictionRatio": "joint_friction_ratio",
    "damping": "joint_damping",
    "stiffness": "joint_stiffness",
    "limitLower": "joint_limit_lower",
    "limitUpper": "joint_limit_upper",
    "limitStiffness": "joint_limit_ke",
    "limitDamping": "joint_limit_kd",
    "effortLimit": "joint_effort_limit",
    "velocityLimit": "joint_velocity_limit",
    "targetStiffness": "joint_target_ke",
    "targetDamping": "joint_target_kd",
    "targetVelocity": "joint_target_qd",
    "velocity": "joint_qd",
    "force": "joint_f",
    "act": "joint_act",
}
"""The builder's list for each attribute ``newtonLike:<name>`` with one number a dof, in SI units."""

COORD_ARRAYS = {"position": "joint_q", "targetPosition": "joint_target_q", "restPosition": "joint_rest_q"}
"""The builder's list for each attribute with one number a coordinate."""

USED_SIZES = {GeoType.SPHERE: 1, GeoType.CAPSULE: 2, GeoType.CYLINDER: 2, GeoType.CONE: 2}
"""Number of used sizes of a shape, for types that do not use all three."""

_LAST = math.inf


def world_prims(stage, root_path: str) -> list:
    """Prims of worlds, in the order of the worlds."""
    root = stage.GetPrimAtPath(root_path)
    tops = [root, *root.GetChildren()] if root else []
    # Worlds are children of the default prim, which may be below the imported prim.
    found = {prim.GetPath(): prim for top in tops for prim in top.GetChildren() if _get(prim, "world") is not None}
    return sorted(found.values(), key=lambda prim: _get(prim, "world"))


def arrange(stage, scene) -> None:
    """Sorts the records of a scene by the indices of their prims, and stores the indices in ``scene.order``.

    Records without an index come last, in the order of the stage.
    """
    for name in ("bodies", "joints", "shapes"):
        records = getattr(scene, name)
        order = {}
        for path in records:
            index = _get(stage.GetPrimAtPath(path), "index")
            if index is not None:
                order[path] = index
        if order:
            ranked = sorted(records, key=lambda path: order.get(path, _LAST))
            setattr(scene, name, {path: records[path] for path in ranked})
            scene.order.update(order)
    for path in scene.bodies if scene.order else ():
        index = _get(stage.GetPrimAtPath(path), "baseJointIndex")
        if index is not None:
            scene.order[f"{path}.base"] = index


def joint_rank(scene, edge, root: str | None) -> float:
    """Sort key of a joint; ``edge`` is ``None`` for the joint of a free root without a joint prim."""
    return scene.order.get(f"{root}.base" if edge is None else edge.joint.path, _LAST)


class Restorer:
    """Restores properties without a schema in the builder.

    Args:
        builder: the builder with the added stage.
        scene: the records.
        made: the ``SceneBuilder`` that added them.
        stage: the stage.
        reader: reader of attributes.
        prefix: prefix of labels.
    """

    def __init__(self, builder, scene, made, stage, reader: Reader, prefix: str = ""):
        self._builder, self._scene, self._made, self._stage = builder, scene, made, stage
        self._reader, self._prefix = reader, prefix

    def restore(self) -> None:
        """Restores labels, joints and shapes."""
        if not self._scene.order:
            return
        builder, made = self._builder, self._made
        for path, body in made.bodies.items():
            prim = self._prim(path)
            if path in made.merged:
                label = _get(prim, "label")
                if label is not None:
                    builder.frames.label[made.merged[path]] = self._prefix + str(label)
                continue
            self._label("body", body, prim, "label")
            if path in made.base_joints:
                joint = made.base_joints[path]
                self._label("joint", joint, prim, "baseJointLabel")
                articulation = builder.joint_articulation[joint]
                self._label("articulation", articulation, prim, "articulationLabel")
        for path, articulation in made.articulations.items():
            self._label("articulation", articulation, self._prim(path), "label")
        for path, joint in made.joints.items():
            prim = self._prim(path)
            if self._label("joint", joint, prim, "label"):
                self._joint(prim, joint)
        meters = self._scene.units.meters
        for path, shapes in made.shapes.items():
            prim = self._prim(path)
            if len(shapes) == 1 and self._label("shape", shapes[0], prim, "label"):
                self._shape(prim, shapes[0], self._scene.shapes[path], meters)

    def _prim(self, path: str):
        return self._stage.GetPrimAtPath(path)

    def _label(self, kind: str, index: int, prim, name: str) -> bool:
        label = _get(prim, name) if prim else None
        if label is not None:
            getattr(self._builder, f"{kind}_label")[index] = self._prefix + str(label)
        return label is not None

    # ------------------------------------------------------------------------------------------------ joints

    def _joint(self, prim, joint: int) -> None:
        builder = self._builder
        first, count = builder.joint_qd_start[joint], sum(builder.joint_dof_dim[joint])
        rows = range(first, first + count)
        names = [str(name) for name in _get(prim, "dofs") or ()]
        if names:
            self._reorder(prim, joint, names, rows)
        axes = _get(prim, "axes")
        turn = _get(prim, "frame")
        if axes is not None and turn is not None:
            if len(axes) != count:
                raise self._reader.error(prim, f"newtonLike:axes has {len(axes)} entries for {count} dofs; correct it")
            inverse = transform_inverse(transform(q=self._reader.rotation(prim, "newtonLike:frame")))
            for end in ("joint_X_p", "joint_X_c"):
                frames = getattr(builder, end)
                frames[joint] = tuple(transform_multiply(np.array(frames[joint]), inverse).tolist())
            start = builder.joint_q_start[joint]
            for number, (row, axis) in enumerate(zip(rows, axes, strict=True)):
                along = quat_rotate(quat_inverse(inverse[3:]), builder.joint_axis[row])
                if np.dot(along, axis) < 0.0:
                    self._turn_round(row, start + number)
                builder.joint_axis[row] = tuple(map(float, axis))
        modes = _get(prim, "targetModes")
        if modes is not None:
            for row, mode in zip(rows, self._counted(prim, "targetModes", modes, count), strict=True):
                known = {m.name.lower(): int(m) for m in JointTargetMode}
                if mode not in known:
                    raise self._reader.error(prim, f"newtonLike:targetModes contains {mode!r}; use {', '.join(known)}")
                builder.joint_target_mode[row] = known[mode]
        if not names and _get(prim, "jointType") == "d6" and JOINT_TYPES[builder.joint_type[joint]].fixed:
            builder.joint_type[joint] = int(JointType.D6)
        start = builder.joint_q_start[joint]
        ends = [*builder.joint_q_start, len(builder.joint_q)]
        coords = range(start, ends[joint + 1])
        units = self._scene.units
        for table, part in ((DOF_ARRAYS, rows), (COORD_ARRAYS, coords)):
            for name, column in table.items():
                values = _get(prim, name)
                if values is not None and (units.meters, units.kilograms) != (1.0, 1.0):
                    self._scene.remark(
                        "newtonLike attributes of joints are in metres and kilograms, and are ignored in stages with other units",
                        prim,
                    )
                elif values is not None:
                    values = self._counted(prim, name, values, len(part))
                    getattr(builder, column)[part.start : part.stop] = [float(v) for v in values]

    def _turn_round(self, row: int, coordinate: int) -> None:
        """Reverses a dof whose axis has the opposite direction in the schemas."""
        builder = self._builder
        for column, at in (
            ("joint_q", coordinate),
            ("joint_target_q", coordinate),
            ("joint_qd", row),
            ("joint_target_qd", row),
        ):
            values = getattr(builder, column)
            values[at] = -values[at]
        low, high = builder.joint_limit_lower[row], builder.joint_limit_upper[row]
        builder.joint_limit_lower[row], builder.joint_limit_upper[row] = -high, -low

    def _counted(self, prim, name: str, values, count: int):
        if len(values) != count:
            raise self._reader.error(
                prim, f"newtonLike:{name} has {len(values)} entries, but the joint needs {count}; correct it"
            )
        return values

    def _reorder(self, prim, joint: int, names: list[str], rows: range) -> None:
        """Permutes dofs from the ascending order of their names to the order of the model."""
        builder = self._builder
        known = [*LINEAR, *ANGULAR] if len(rows) != 1 or names[0] in (*LINEAR, *ANGULAR) else names
        if len(names) != len(rows) or any(name not in known for name in names):
            raise self._reader.error(
                prim, f"newtonLike:dofs {names} are not the {len(rows)} dofs of the joint; correct it"
            )
        ascending = sorted(names, key=known.index)
        source = [ascending.index(name) for name in names]
        if source == list(range(len(source))):
            return
        start = builder.joint_q_start[joint]
        for columns, first in (
            (("joint_axis", "joint_target_mode", *DOF_ARRAYS.values()), rows.start),
            (COORD_ARRAYS.values(), start),
        ):
            for column in columns:
                values = getattr(builder, column)
                values[first : first + len(source)] = [values[first + at] for at in source]

    # ------------------------------------------------------------------------------------------------ shapes

    def _shape(self, prim, shape: int, record, meters: float) -> None:
        builder = self._builder
        name = _get(prim, "geometry")
        if name is not None:
            kinds = {kind.name.lower(): kind for kind in GeoType}
            if str(name) not in kinds:
                raise self._reader.error(prim, f"newtonLike:geometry {name!r} is unknown; use {', '.join(kinds)}")
            self._geometry(prim, shape, record, kinds[str(name)], meters)
        flags = _get(prim, "flags")
        if flags is None:
            flags = ShapeFlags.VISIBLE if record.shown else ShapeFlags(0)
            if record.site:
                flags |= ShapeFlags.SITE
            elif record.collider and record.collides:
                flags |= ShapeFlags.COLLIDE_SHAPES | ShapeFlags.COLLIDE_PARTICLES
        builder.shape_flags[shape] = int(flags)
        if record.site:
            if record.color is not None:
                builder.shape_color[shape] = record.color
            builder.shape_opacity[shape] = 1.0 if record.opacity is None else record.opacity
        group = _get(prim, "collisionGroup")
        if group is None:
            group = 0 if record.site else 1
        builder.shape_collision_group[shape] = int(group)
        builder.shape_is_solid[shape] = self._reader.token(prim, "newton:massModel", "solid") != "shell"

    def _geometry(self, prim, shape: int, record, kind: GeoType, meters: float) -> None:
        builder = self._builder
        piece = record.pieces[0] if record.pieces else None
        current = builder.shape_type[shape]
        source = builder.shape_source[shape]
        if record.site and piece is not None and piece.type in (kind, GeoType.MESH, GeoType.CONVEX_MESH):
            source, builder.shape_scale[shape] = piece.mesh, tuple(piece.scale)
            current = piece.type
        meshes = (GeoType.MESH, GeoType.CONVEX_MESH)
        if kind in meshes and current in meshes:
            if _get(prim, "meshIsSolid") is False and source.is_solid:
                source = Mesh(
                    source.vertices,
                    source.indices,
                    compute_inertia=False,
                    is_solid=False,
                    max_hull_vertices=source.max_hull_vertices,
                    path=source.path,
                )
        elif kind == GeoType.HFIELD and current in meshes:
            source = self._heightfield(prim, source)
        elif kind == GeoType.ELLIPSOID and current in meshes:
            source, builder.shape_scale[shape] = None, tuple(abs(v) for v in builder.shape_scale[shape])
        elif kind == GeoType.ELLIPSOID and current == GeoType.SPHERE:
            radius = builder.shape_scale[shape][0]
            builder.shape_scale[shape] = (radius,) * 3
        elif kind != current:
            return  # another tool edited the prim, whose geometry has precedence
        builder.shape_type[shape], builder.shape_source[shape] = int(kind), source
        scale = _get(prim, "scale")
        if scale is not None:
            scale = meters * np.array(scale)
            if kind in (*meshes, GeoType.HFIELD):
                self._mirror(prim, shape, scale)
            used = USED_SIZES.get(kind, 0)
            scale[:used] = builder.shape_scale[shape][:used]
            builder.shape_scale[shape] = tuple(scale.tolist())

    def _mirror(self, prim, shape: int, scale: np.ndarray) -> None:
        """Restores negative scale factors, because a mirrored frame is read with another rotation and other signs than in the model."""
        builder = self._builder
        signs = np.sign(scale) * np.sign(builder.shape_scale[shape])
        if np.prod(signs) < 0.0:
            raise self._reader.error(
                prim, f"newtonLike:scale {scale.tolist()} mirrors, and the prim does not; remove it"
            )
        if signs.min() < 0.0:
            half_turn = transform(q=np.append(signs > 0.0, 0.0))
            pose = transform_multiply(np.array(builder.shape_transform[shape]), half_turn)
            builder.shape_transform[shape] = tuple(pose.tolist())

    def _heightfield(self, prim, mesh: Mesh) -> Heightfield:
        size = _get(prim, "heightfield")
        points = mesh.vertices
        if size is None or int(size[0]) * int(size[1]) != len(points):
            raise self._reader.error(
                prim, f"newtonLike:heightfield {size} does not fit {len(points)} points; correct it"
            )
        low, high = points[0], points[-1]
        hx, hy = float(high[0] - low[0]) / 2.0, float(high[1] - low[1]) / 2.0
        return Heightfield(points[:, 2], int(size[0]), int(size[1]), hx, hy)


def _get(prim, name: str):
    attribute = prim.GetAttribute(f"newtonLike:{name}") if prim else None
    return attribute.Get() if attribute else None
