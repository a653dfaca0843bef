"""Methods of :class:`ModelBuilder` that compose scenes: worlds, copies of builders, grids."""

from __future__ import annotations

from typing import Never

import numpy as np

from newton_like.coercion import as_count, as_flag, as_list, as_number, as_vector
from newton_like.geometry.transforms import (
    IDENTITY,
    as_transform,
    quat_rotate,
    transform,
    transform_inverse,
    transform_multiply,
)
from newton_like.model.columns import COLUMNS, COUNTS
from newton_like.model.custom import COUNTED
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.options import refuse_options
from newton_like.types import Axis


class WorldMethods:
    """Part of :class:`ModelBuilder`: methods that add worlds and copies of other builders."""

    def begin_world(self, label: str | None = None, gravity=None, **others: Never) -> int:
        """Starts a new world. Entities that are added until :meth:`end_world` belong to it.

        Args:
            label: name; without one ``world_<index>``.
            gravity: acceleration [m/s^2] in this world, a vector or a number along the up axis; by default the
                builder's, as it is now.

        Returns:
            The world's index.

        Raises:
            RuntimeError: a world is open already.
        """
        if others:
            refuse_options(WorldMethods.begin_world, others)
        self._refuse_open_world()
        gravity = self.gravity if gravity is None else self._gravity_vector(gravity)
        self._current_world = self.world_count
        self.world_label.append(f"world_{self.world_count}" if label is None else str(label))
        self.world_gravity.append(list(gravity))
        self.world_count += 1
        return self._current_world

    def end_world(self) -> None:
        """Ends the world that :meth:`begin_world` started. Entities that are added afterwards belong to all worlds.

        Raises:
            RuntimeError: no world is open.
        """
        if self._current_world < 0:
            raise RuntimeError("no world is open; call begin_world() first")
        self._current_world = -1

    def add_world(self, builder, xform=None, label_prefix: str | None = None, **others: Never) -> int:
        """Adds a copy of another builder as a new world.

        Args:
            builder: the scene of the world. It must have no worlds itself; gravity set on it becomes that of the world.
            xform: moves the whole copy.
            label_prefix: put before every label, with a slash between.

        Returns:
            The world's index.

        Raises:
            RuntimeError: a world is open.
            ValueError: the builder cannot be copied, see :meth:`add_builder`.
        """
        if others:
            refuse_options(WorldMethods.add_world, others)
        self._check_source(builder)
        xform = as_transform(xform, "xform")
        prefix = _prefix(label_prefix, "label_prefix")
        world = self.begin_world(gravity=builder._gravity)
        try:
            self._append(builder, np.array([world]), xform[None], [prefix])
        finally:
            self.end_world()
        return world

    def add_builder(self, builder, xform=None, label_prefix: str | None = None, **others: Never) -> None:
        """Adds a copy of another builder to the current world, or to the scene that all worlds share if no world is open.

        Gravity that was set on the other builder replaces that of this world, or of this builder outside a world.

        Args:
            builder: the scene to copy. It must have no worlds itself.
            xform: moves the whole copy: bodies, anchors in the world, static shapes.
            label_prefix: put before every label, with a slash between.

        Raises:
            ValueError: the builder has worlds, another up axis, or is this one.
        """
        if others:
            refuse_options(WorldMethods.add_builder, others)
        self._check_source(builder)
        xform = as_transform(xform, "xform")
        prefix = _prefix(label_prefix, "label_prefix")
        self._adopt_gravity(builder._gravity)
        self._append(builder, np.array([self._current_world]), xform[None], [prefix])

    def replicate(
        self,
        builder,
        copy_count: int | None = None,
        spacing=(0.0, 0.0, 0.0),
        *,
        separate_worlds: bool = True,
        xforms=None,
        label_prefixes=None,
        world_count: int | None = None,
        **others: Never,
    ) -> None:
        """Adds many copies of another builder, each as a separate world.

        Args:
            builder: the scene to copy. It must have no worlds itself; gravity set on it becomes that of the worlds.
            copy_count: how many copies (``world_count`` is another name for it).
            spacing: distances [m] along x, y and z between neighbours of a grid around the origin; 0 for no extent
                along that axis. Worlds do not collide, so the spacing matters for display only; precision is highest
                near the origin.
            separate_worlds: false adds all copies to the open world (or the shared scene), where they collide.
            xforms: a transform for each copy, instead of ``spacing``.
            label_prefixes: a prefix (or ``None``) for the labels of each copy.

        Raises:
            TypeError: the number of copies is missing, given twice or not an integer.
            ValueError: a number of copies that is negative or beyond int32; ``xforms`` or ``label_prefixes`` of another length; both
                ``xforms`` and ``spacing``.
            RuntimeError: a world is open and ``separate_worlds`` is true.
        """
        if others:
            refuse_options(WorldMethods.replicate, others)
        if (copy_count is None) == (world_count is None):
            raise TypeError("give either copy_count or world_count")
        count = world_count if copy_count is None else copy_count
        count = as_count(count, "the number of copies", 0)
        self._check_source(builder)
        poses = transform(grid_offsets(count, spacing, self.up_axis))
        if xforms is not None:
            if np.any(poses[:, :3]):
                raise ValueError("give xforms or spacing, not both: both define the positions of the copies")
            xforms = as_list(xforms, "xforms", "transforms")
            poses = np.array([as_transform(xform, f"xforms[{i}]") for i, xform in enumerate(xforms)]).reshape(-1, 7)
        prefixes = [None] * count
        if label_prefixes is not None:
            prefixes = as_list(label_prefixes, "label_prefixes", "texts")
        prefixes = [_prefix(prefix, f"label_prefixes[{i}]") for i, prefix in enumerate(prefixes)]
        for name, given in (("xforms", len(poses)), ("label_prefixes", len(prefixes))):
            if given != count:
                raise ValueError(f"{name} has {given} entries for {count} copies; give one for each")
        if not as_flag(separate_worlds, "separate_worlds"):
            worlds = np.full(count, self._current_world)
            if count:
                self._adopt_gravity(builder._gravity)
        else:
            self._refuse_open_world()
            worlds = np.arange(self.world_count, self.world_count + count)
            self.world_label.extend(f"world_{world}" for world in worlds.tolist())
            gravity = self.gravity if builder._gravity is None else builder._gravity
            self.world_gravity.extend(list(gravity) for _ in range(count))
            self.world_count += count
        self._append(builder, worlds, poses, prefixes)

    def _refuse_open_world(self) -> None:
        if self._current_world >= 0:
            raise RuntimeError(f"world {self._current_world} is still open; call end_world() first, worlds do not nest")

    def _check_source(self, builder) -> None:
        if not isinstance(builder, WorldMethods):
            raise TypeError(f"{builder!r} is not a ModelBuilder")
        if builder is self:
            raise ValueError("a builder cannot be added to itself; build the scene in a separate builder and add that")
        if builder.world_count:
            raise ValueError(
                f"the builder to copy has {builder.world_count} worlds; worlds do not nest, copy a scene without"
            )
        self._check_custom(builder)
        if Axis.from_any(builder.up_axis) != Axis.from_any(self.up_axis):
            raise ValueError(
                f"the builder to copy has up axis {Axis.from_any(builder.up_axis)}, this one "
                f"{Axis.from_any(self.up_axis)}; make both with the same up_axis"
            )

    def _adopt_gravity(self, gravity) -> None:
        """Sets the gravity of the open world, or of this builder, unless the argument is None."""
        if gravity is not None and self._current_world >= 0:
            self.world_gravity[self._current_world] = list(gravity)
        elif gravity is not None:
            self.gravity = gravity

    def _append(self, source, worlds: np.ndarray, poses: np.ndarray, prefixes: list) -> None:
        """Appends a copy of ``source`` for each of ``worlds``, moved by ``poses``, column by column."""
        copies = len(worlds)
        first, size = ({kind: getattr(builder, name) for kind, name in COUNTS.items()} for builder in (self, source))
        moved = _moved_columns(source, poses)
        if source.custom_attributes or source.custom_frequencies:
            counts = [{name: getattr(builder, name) for name in COUNTED.values()} for builder in (self, source)]
            self._copy_custom(source, worlds, *counts, prefixes)
        self._requested |= source._requested
        self._requested_of_contacts |= source._requested_of_contacts
        for column in COLUMNS:
            values = getattr(source, column.name)
            if column.name in moved:
                copied = moved[column.name]
            elif column.name.endswith("_world"):
                copied = np.repeat(worlds, len(values)).tolist()
            elif column.name.endswith("_label"):
                copied = _prefixed(values, prefixes)
            elif column.refers is None:
                copied = values * copies
            else:
                offsets = first[column.refers] + size[column.refers] * np.arange(copies)
                indices = np.asarray(values, dtype=np.int64)
                copied = np.where(indices >= 0, indices + offsets[:, None], -1).ravel().tolist()
            getattr(self, column.name).extend(copied)
        for copy, (world, prefix) in enumerate(zip(worlds.tolist(), prefixes, strict=True)):
            joint, shape, body = (first[kind] + size[kind] * copy for kind in ("joint", "shape", "body"))
            self.tendons += [
                tendon.renumbered(
                    lambda i, n=joint: i + n,
                    lambda i, n=shape: i + n,
                    world=world,
                    label=_prefixed([tendon.label], [prefix])[0],
                )
                for tendon in source.tendons
            ]
            pulled = len(self.tendons) - len(source.tendons)
            self.actuators += [
                actuator.renumbered(
                    lambda i, n=joint: i + n,
                    lambda i, n=shape: i + n,
                    lambda i, n=pulled: i + n,
                    lambda i, n=body: i + n,
                    world=world,
                    label=_prefixed([actuator.label], [prefix])[0],
                )
                for actuator in source.actuators
            ]
        offsets = {kind: first[kind] + size[kind] * np.arange(copies) for kind in ("body", "articulation")}
        labels = _prefixed(source.frames.label, prefixes)
        self.frames.append_copies(source.frames, labels, offsets["body"], offsets["articulation"], poses)
        pairs = source.shape_collision_filter_pairs.to_array().astype(np.int64)
        if len(pairs):
            offsets = first["shape"] + size["shape"] * np.arange(copies)
            self.shape_collision_filter_pairs.update((pairs + offsets[:, None, None]).reshape(-1, 2))


def grid_offsets(count: int, spacing, up_axis=Axis.Z) -> np.ndarray:
    """Positions of ``count`` points on a grid around the origin with sides of similar length, ``[count, 3]``.

    Args:
        spacing: distances between neighbours along x, y, z; the grid has no extent where it is 0.
        up_axis: along this axis the grid starts at 0, so that all positions are above the ground.
    """
    spacing = np.array(as_vector(spacing, 3, "spacing"))
    offsets = np.zeros((count, 3))
    active = np.flatnonzero(spacing)
    if count == 0 or active.size == 0:
        return offsets
    side = 1
    while side**active.size < count:
        side += 1
    index = np.arange(count)
    for axis in active:
        offsets[:, axis] = (index % side) * spacing[axis]
        index = index // side
    middle = 0.5 * (offsets.min(axis=0) + offsets.max(axis=0))
    middle[Axis.from_any(up_axis)] = 0.0
    return offsets - middle


def _prefix(value, what: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what} must be a string or None, not {value!r}")
    return value


def _prefixed(labels: list[str], prefixes: list) -> list[str]:
    if not any(prefixes):
        return labels * len(prefixes)
    return [f"{prefix}/{label}" if prefix else label for prefix in prefixes for label in labels]


def _moved_columns(source, poses: np.ndarray) -> dict[str, list]:
    """Columns that are measured in the world, for all copies after a change of pose."""
    if np.array_equal(poses, np.broadcast_to(IDENTITY, poses.shape)):
        return {}
    copies = len(poses)
    moved = {}
    if source.body_count:
        body_q = np.array([as_transform(x, "body_q") for x in source.body_q])
        moved["body_q"] = _rows(transform_multiply(poses[:, None], body_q))
        body_qd = np.array([as_vector(v, 6, "body_qd") for v in source.body_qd])
        turned = quat_rotate(poses[:, None, None, 3:], body_qd.reshape(-1, 2, 3))
        moved["body_qd"] = _rows(turned.reshape(copies, -1, 6))
    roots = np.array([parent < 0 for parent in source.joint_parent], dtype=bool)
    if roots.any():
        _move_roots(source, poses, np.flatnonzero(roots), moved)
    static = np.array([body < 0 for body in source.shape_body], dtype=bool)
    if static.any():
        xforms = np.array([as_transform(x, "shape_transform") for x in source.shape_transform])
        placed = np.broadcast_to(xforms, (copies, *xforms.shape)).copy()
        placed[:, static] = transform_multiply(poses[:, None], xforms[static])
        moved["shape_transform"] = _rows(placed)
    return moved


def _move_roots(source, poses, roots, moved) -> None:
    """Moves root joints: the parent anchors of joints with limited motion, and the coordinates of joints with free motion, with the poses
    and velocities to which springs and drives pull them."""
    copies = len(poses)
    x_p = np.array([as_transform(x, "joint_X_p") for x in source.joint_X_p])
    anchors = np.broadcast_to(x_p, (copies, *x_p.shape)).copy()
    q = np.tile(np.array([as_number(v, "joint_q") for v in source.joint_q]), (copies, 1))
    qd, target_qd = (
        np.tile(np.array([as_number(v, name) for v in getattr(source, name)]), (copies, 1))
        for name in ("joint_qd", "joint_target_qd")
    )
    pulls = {"joint_rest_q": source.joint_stiffness, "joint_target_q": source.joint_target_ke}
    poses_of = {
        name: np.tile(np.array([as_number(v, name) for v in getattr(source, name)]), (copies, 1)) for name in pulls
    }
    for joint in roots:
        if JOINT_TYPES[source.joint_type[joint]].anchored:
            anchors[:, joint] = transform_multiply(poses, x_p[joint])
            continue
        # X_p q' = pose X_p q; velocities, in the axes of X_p, rotate by the same change.
        change = transform_multiply(transform_inverse(x_p[joint]), transform_multiply(poses, x_p[joint]))
        at = slice(source.joint_q_start[joint], source.joint_q_start[joint] + 7)
        q[:, at] = transform_multiply(change, q[:, at])
        place, at = at, slice(source.joint_qd_start[joint], source.joint_qd_start[joint] + 6)
        for name, gains in pulls.items():
            if any(gains[at]):
                poses_of[name][:, place] = transform_multiply(change, poses_of[name][:, place])
        for speeds in (qd, target_qd) if any(source.joint_target_kd[at]) else (qd,):
            turned = quat_rotate(change[:, None, 3:], speeds[:, at].reshape(copies, 2, 3))
            speeds[:, at] = turned.reshape(copies, 6)
    moved["joint_X_p"] = _rows(anchors)
    moved["joint_q"] = q.ravel().tolist()
    moved["joint_qd"], moved["joint_target_qd"] = qd.ravel().tolist(), target_qd.ravel().tolist()
    moved |= {name: numbers.ravel().tolist() for name, numbers in poses_of.items()}


def _rows(array: np.ndarray) -> list[tuple[float, ...]]:
    return list(map(tuple, array.reshape(-1, array.shape[-1]).tolist()))
