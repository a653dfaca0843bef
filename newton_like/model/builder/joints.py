"""The joint methods of :class:`ModelBuilder`."""

from __future__ import annotations

import dataclasses
from typing import Never

import numpy as np

from newton_like.coercion import as_flag, as_index, as_list, as_member, as_number, as_vector
from newton_like.geometry.transforms import (
    UNIT_TOLERANCE,
    as_transform,
    transform_inverse,
    transform_multiply,
)
from newton_like.model.configs import OLD_NAMES, JointDofConfig, with_present_names
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.options import refuse_options
from newton_like.types import MAXVAL, Axis, JointType

XYZ = (Axis.X, Axis.Y, Axis.Z)


class JointMethods:
    """Part of :class:`ModelBuilder`: methods that add joints.

    Arguments of all joint methods:

    * ``parent``, ``child``: body indices; parent -1 is the world.
    * ``parent_xform``, ``child_xform``: the joint's anchor frames in the link frames of parent and child;
      ``X_wc = X_wp * parent_xform * X_j(q) * inverse(child_xform)``.
    * ``label``: name; without one ``joint_<index>``.
    * ``enabled``: a disabled joint exerts no force.
    * ``custom_attributes``: entries of :class:`CustomAttribute` of joints, dofs, coordinates and constraints, by key.
    * ``collision_filter_parent``: disables contacts between shapes of parent and child. By default true, except for
      movable joints whose parent is the world.

    These methods return the joint's index. They raise ``IndexError`` for a body that does not exist, ``TypeError`` for
    values that are not numbers, and ``ValueError`` for values out of range.
    """

    def add_joint(
        self, joint_type: JointType, parent: int, child: int, *, linear_axes: list[JointDofConfig] | None = None,
        angular_axes: list[JointDofConfig] | None = None, label: str | None = None, parent_xform=None,
        child_xform=None, collision_filter_parent: bool | None = None, enabled: bool = True,
        custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a joint of any type. The initial coordinates of FREE and DISTANCE joints come from ``body_q`` of their child; others are 0.

        Args:
            joint_type: the type.
            linear_axes: axes of a PRISMATIC (one) or D6 joint (up to three).
            angular_axes: axes of a REVOLUTE (one) or D6 joint (up to three). BALL, FREE and DISTANCE joints move along
                and about x, y and z; axes given for them carry passive forces and drives, and must be those.

        Raises:
            ValueError: the number of axes does not fit the type, or parent and child are the same body.
        """
        if others:
            refuse_options(JointMethods.add_joint, others)
        index = self.joint_count
        label = f"joint_{index}" if label is None else str(label)
        what = f"joint {label!r} (index {index})"
        joint_type = as_member(JointType, joint_type, f"{what}: joint_type")
        parent = as_index(parent, f"{what}: parent body", self.body_count, lowest=-1)
        child = as_index(child, f"{what}: child body", self.body_count)
        if parent == child:
            raise ValueError(f"{what}: body {self.body_label[child]!r} cannot be its own parent")
        for body in (parent, child):
            if body >= 0 and self.body_world[body] != self.current_world:
                raise ValueError(
                    f"{what} is added to world {self.current_world}, but {self._describe('body', body)} is in world "
                    f"{self.body_world[body]}; add joints in the same begin_world() block as their bodies"
                )
        row = JOINT_TYPES[joint_type]
        linear, angular = self._joint_axes(row, linear_axes, angular_axes, what)
        parent_xform = as_transform(parent_xform, f"{what}: parent_xform")
        child_xform = as_transform(child_xform, f"{what}: child_xform")
        enabled = as_flag(enabled, f"{what}: enabled")
        if collision_filter_parent is None:
            collision_filter_parent = parent >= 0 or row.fixed
        collision_filter_parent = as_flag(collision_filter_parent, f"{what}: collision_filter_parent")
        counts = self._joint_constraints(row, len(linear) + len(angular))
        self._keep_entries(self._custom_entries(custom_attributes, counts, what))

        self.joint_label.append(label)
        self.joint_world.append(self.current_world)
        self.joint_type.append(int(joint_type))
        self.joint_parent.append(parent)
        self.joint_child.append(child)
        self.joint_articulation.append(-1)
        self.joint_enabled.append(enabled)
        self.joint_X_p.append(tuple(parent_xform.tolist()))
        self.joint_X_c.append(tuple(child_xform.tolist()))
        self.joint_dof_dim.append((len(linear), len(angular)))
        self.joint_q_start.append(len(self.joint_q))
        self.joint_qd_start.append(len(self.joint_qd))
        self.joint_mimic_joint.append(-1)
        self.joint_mimic_coeffs.append((0.0, 1.0))
        self.joint_min_distance.append(-1.0)
        self.joint_max_distance.append(-1.0)
        self.joint_max_angle.append(-1.0)
        self.joint_max_swing.append(-1.0)
        for cfg in (*linear, *angular):
            self._append_dof(cfg)
        if row.has_quaternion:
            for coordinates in (self.joint_q, self.joint_target_q, self.joint_rest_q):
                coordinates.extend(row.rest)
        else:
            axes = (*linear, *angular)
            self.joint_q.extend(0.0 for _ in axes)
            self.joint_target_q.extend(cfg.target_q or 0.0 for cfg in axes)
            self.joint_rest_q.extend(cfg.rest_q or 0.0 for cfg in axes)
        if row.floats:
            self._place_free_joint(index)
        self.joint_collision_filter_parent.append(collision_filter_parent)
        if collision_filter_parent:
            self._filter_bodies(parent, child)
        return index

    def _joint_axes(self, row, linear_axes, angular_axes, what):
        """Configurations of the linear and of the angular axes of a joint."""
        kind, counts = row.type.name, row.axes or (None, None)
        result = []
        for given, wanted, name in zip((linear_axes, angular_axes), counts, ("linear", "angular"), strict=True):
            entries = [] if given is None else as_list(given, f"{what}: {name}_axes", "axes or JointDofConfigs")
            try:
                axes = [cfg if isinstance(cfg, JointDofConfig) else JointDofConfig(axis=cfg) for cfg in entries]
            except (TypeError, ValueError) as error:
                raise type(error)(f"{what}: {name} {error}") from None
            if given is None and row.has_quaternion and wanted:
                axes = [JointDofConfig.create_unlimited(axis) for axis in XYZ]
            if wanted is not None and len(axes) != wanted:
                raise ValueError(f"{what}: a {kind} joint has {wanted} {name} axes, not {len(axes)}")
            if len(axes) > 3:
                raise ValueError(f"{what}: {len(axes)} {name} axes; space has three")
            if row.has_quaternion and axes and not np.allclose([cfg.axis for cfg in axes], np.eye(3), atol=1.0e-9):
                raise ValueError(f"{what}: the {name} axes of a {kind} joint are x, y, z in this order")
            result.append(axes)
        return result

    def _append_dof(self, cfg: JointDofConfig) -> None:
        for name in _DOF_COLUMNS:
            getattr(self, f"joint_{name}").append(getattr(cfg, name))
        self.joint_target_mode.append(int(cfg.target_mode))
        self.joint_target_qd.append(cfg.target_qd or 0.0)
        for name in ("joint_qd", "joint_f", "joint_act"):
            getattr(self, name).append(0.0)

    def _add(self, joint_type: JointType, arguments: dict, **axes) -> int:
        """Adds a joint from the local variables of a method of its type, which include the arguments of all methods."""
        if arguments["others"]:
            refuse_options(getattr(JointMethods, f"add_joint_{joint_type.name.lower()}"), arguments["others"])
        return self.add_joint(joint_type, **{name: arguments[name] for name in _SHARED}, **axes)

    def _axis_config(self, arguments: dict) -> JointDofConfig:
        """Configuration of a single axis: the given one, or the defaults with the settings that are not None."""
        axis, what = arguments["axis"], self._new_joint(arguments["label"])
        settings = {name: value for name, value in arguments.items() if name in _DOF_SETTINGS and value is not None}
        settings = with_present_names(settings, 3)
        if isinstance(axis, JointDofConfig):
            if settings:
                raise ValueError(f"{what}: give {', '.join(settings)} in its JointDofConfig, or the axis as a vector")
            return axis
        if axis is not None:
            settings["axis"] = axis
        return self._default_with(settings, what)

    def _new_joint(self, label: str | None) -> str:
        """Name of the new joint for messages."""
        return f"joint {f'joint_{self.joint_count}' if label is None else label!r}"

    def _default_with(self, settings: dict, what: str) -> JointDofConfig:
        try:
            return self.default_joint_cfg.copy(**settings)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{what}: {error}") from None

    def add_joint_revolute(
        self, parent: int, child: int, *, parent_xform=None, child_xform=None, axis=None,
        target_q: float | None = None, target_qd: float | None = None, target_ke: float | None = None,
        target_kd: float | None = None, damping: float | None = None, stiffness: float | None = None,
        rest_q: float | None = None, limit_lower: float | None = None, limit_upper: float | None = None,
        limit_ke: float | None = None, limit_kd: float | None = None, armature: float | None = None,
        effort_limit: float | None = None, velocity_limit: float | None = None, friction: float | None = None,
        friction_ratio: float | None = None,
        actuator_mode=None, target_pos: float | None = None, target_vel: float | None = None,
        label: str | None = None, collision_filter_parent: bool | None = None,
        enabled: bool = True, custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a revolute joint (hinge): one angle [rad] about ``axis``, given in the parent anchor frame.

        Args:
            axis: direction, or a :class:`JointDofConfig` that replaces all settings. Settings left ``None`` are those
                of ``default_joint_cfg``, where :class:`JointDofConfig` explains each of them.
            target_pos, target_vel: deprecated names of ``target_q`` and ``target_qd``, as in Newton.
        """
        return self._add(JointType.REVOLUTE, locals(), angular_axes=[self._axis_config(locals())])

    def add_joint_prismatic(
        self, parent: int, child: int, *, parent_xform=None, child_xform=None, axis=None,
        target_q: float | None = None, target_qd: float | None = None, target_ke: float | None = None,
        target_kd: float | None = None, damping: float | None = None, stiffness: float | None = None,
        rest_q: float | None = None, limit_lower: float | None = None, limit_upper: float | None = None,
        limit_ke: float | None = None, limit_kd: float | None = None, armature: float | None = None,
        effort_limit: float | None = None, velocity_limit: float | None = None, friction: float | None = None,
        friction_ratio: float | None = None,
        actuator_mode=None, target_pos: float | None = None, target_vel: float | None = None,
        label: str | None = None, collision_filter_parent: bool | None = None,
        enabled: bool = True, custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a prismatic joint (slider): one distance [m] along ``axis``; arguments as :meth:`add_joint_revolute`."""
        return self._add(JointType.PRISMATIC, locals(), linear_axes=[self._axis_config(locals())])

    def add_joint_ball(
        self, parent: int, child: int, *, parent_xform=None, child_xform=None, target_q=None, target_qd=None,
        target_ke: float | None = None, target_kd: float | None = None, armature: float | None = None,
        friction: float | None = None, friction_ratio: float | None = None, damping: float | None = None,
        stiffness: float | None = None, rest_q=None,
        effort_limit: float | None = None, velocity_limit: float | None = None, actuator_mode=None,
        max_angle: float | None = None, max_swing: float | None = None, label: str | None = None,
        collision_filter_parent: bool | None = None, enabled: bool = True, custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a ball joint: a quaternion (x, y, z, w), the orientation of the child anchor in the parent anchor frame.

        The three dofs are the child's angular velocity relative to the parent, in the axes of the parent anchor frame.
        All three have the same forces and gains.

        Args:
            target_q: target orientation of the drive, a quaternion; ``None`` is the identity.
            target_qd: target angular velocity of the drive [rad/s], three numbers; ``None`` is zero.
            rest_q: rest orientation of the spring, a quaternion; ``None`` is the identity.
            max_angle: largest angle of the rotation from the parent anchor frame to the child anchor frame [rad], about whatever axis, as
                of MuJoCo's ball joints. ``None``: no limit.
            max_swing: largest angle between the x axes of both anchor frames [rad]: a cone, within which the child may twist freely, as
                of USD's spherical joints. ``None``: no limit.

        In the model these limits are ``joint_max_angle`` and ``joint_max_swing``.
        """
        arguments = locals()
        stops = {name: arguments[name] for name in ("max_angle", "max_swing") if arguments[name] is not None}
        settings = {name: arguments[name] for name in _BALL_SETTINGS if arguments[name] is not None}
        what = self._new_joint(label)
        speeds = (None,) * 3 if target_qd is None else as_vector(target_qd, 3, f"{what}: target_qd")
        axes = [
            self._default_with({**_NOT_FOR_BALL, "axis": axis, "target_qd": speed, **settings}, what)
            for axis, speed in zip(XYZ, speeds, strict=True)
        ]
        orientations = {
            name: _quaternion(q, f"{what}: {name}")
            for name, q in (("target_q", target_q), ("rest_q", rest_q))
            if q is not None
        }
        for name, value in stops.items():
            stops[name] = as_number(value, f"{what}: {name}", finite=False)
            if value < 0.0:
                raise ValueError(
                    f"{what}: {name} {value:g} is negative; give an angle [rad] of at least 0, or None for no limit"
                )
        joint = self._add(JointType.BALL, arguments, angular_axes=axes)
        for name, value in stops.items():
            getattr(self, f"joint_{name}")[joint] = value
        start = self.joint_q_start[joint]
        for name, q in orientations.items():
            getattr(self, f"joint_{name}")[start : start + 4] = q
        return joint

    def add_joint_fixed(
        self, parent: int, child: int, *, parent_xform=None, child_xform=None, label: str | None = None,
        collision_filter_parent: bool | None = None, enabled: bool = True, custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a fixed joint between two bodies, or between a body and the world."""
        return self._add(JointType.FIXED, locals())

    def add_joint_free(
        self, child: int, *, parent_xform=None, child_xform=None, parent: int = -1, label: str | None = None,
        collision_filter_parent: bool | None = None, enabled: bool = True, custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a joint with free motion: position [m] and quaternion of the child anchor in the parent anchor frame.

        The initial coordinates correspond to the child's ``body_q``. The dofs are the velocity of the child's centre
        of mass and its angular velocity, in the axes of the parent anchor frame.
        """
        return self._add(JointType.FREE, locals())

    def add_joint_distance(
        self, parent: int, child: int, *, parent_xform=None, child_xform=None, min_distance: float = -1.0,
        max_distance: float = 1.0, collision_filter_parent: bool | None = None, enabled: bool = True,
        label: str | None = None, custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a joint with free motion, except that the distance of the two anchors stays between two limits.

        Coordinates, dofs and initial coordinates are those of :meth:`add_joint_free`.

        Args:
            min_distance: smallest distance [m]; negative: no limit.
            max_distance: largest distance [m]; negative: no limit.

        A limit is hard: it has no softness. In a joint that starts outside its limits, each step of ``SolverFeatherstone`` corrects a
        fifth of the error, but not faster than ``max_depenetration_speed`` (1 m/s), the largest speed at which shapes are separated.

        In the model, ``joint_limit_lower`` and ``joint_limit_upper`` of the first dof are copies of these distances for reading. To change
        the distances, edit ``joint_min_distance`` and ``joint_max_distance``.
        """
        what = self._new_joint(label)
        low = as_number(min_distance, f"{what}: min_distance")
        high = as_number(max_distance, f"{what}: max_distance", finite=False)
        joint = self._add(JointType.DISTANCE, locals())
        self.joint_min_distance[joint] = low
        self.joint_max_distance[joint] = high
        return joint

    def add_joint_d6(
        self, parent: int, child: int, *, linear_axes: list[JointDofConfig] | None = None,
        angular_axes: list[JointDofConfig] | None = None, label: str | None = None, parent_xform=None,
        child_xform=None, collision_filter_parent: bool | None = None, enabled: bool = True,
        custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:  # fmt: skip
        """Adds a joint with up to three linear and up to three angular axes, one coordinate and one dof each.

        The child translates along the linear axes, which are fixed in the parent anchor frame, and then rotates about the
        angular axes in their order; each rotation also rotates the following axes. :meth:`finalize` makes two or three
        angular axes orthonormal and keeps the direction of the first one.

        Args:
            linear_axes: a :class:`JointDofConfig` (or an axis) for each translation.
            angular_axes: the same for each rotation, in their order.
        """
        return self._add(JointType.D6, locals(), linear_axes=linear_axes, angular_axes=angular_axes)

    def _place_free_joint(self, joint: int) -> None:
        """Sets the coordinates of a joint such that forward kinematics gives the child's body_q."""
        parent, child = self.joint_parent[joint], self.joint_child[joint]
        x_wp = self.joint_X_p[joint]
        if parent >= 0:
            x_wp = transform_multiply(as_transform(self.body_q[parent]), x_wp)
        x_wc = transform_multiply(as_transform(self.body_q[child]), self.joint_X_c[joint])
        start = self.joint_q_start[joint]
        self.joint_q[start : start + 7] = transform_multiply(transform_inverse(x_wp), x_wc).tolist()

    def set_joint_mimic(self, joint: int | str, reference_joint: int | str | None, *, coeffs=(0.0, 1.0)) -> None:
        """Makes a joint follow another: ``q = c0 + c1 * q_reference`` for each of its coordinates.

        Args:
            joint: index or label of the follower: PRISMATIC, REVOLUTE or D6.
            reference_joint: index or label of the leader, with the same number of dofs; ``None`` removes the relation.
            coeffs: ``(c0, c1)``, offset [m or rad] and factor.

        Raises:
            KeyError, IndexError: a joint does not exist.
            ValueError: the joints are the same, have other numbers of dofs or coordinates that are quaternions, are in
                different worlds, or one of them follows or leads already (followers cannot be followed).
        """
        joint = self._resolve("joint", joint)
        if reference_joint is None:
            self.joint_mimic_joint[joint] = -1
            self.joint_mimic_coeffs[joint] = (0.0, 1.0)
            return
        reference = self._resolve("joint", reference_joint)
        what = f"{self._describe('joint', joint)} cannot follow {self._describe('joint', reference)}"
        for row in (JOINT_TYPES[self.joint_type[index]] for index in (joint, reference)):
            if not row.axis_by_axis:
                raise ValueError(f"{what}: {row.type.name} joints do not mimic; use PRISMATIC, REVOLUTE or D6")
        if joint == reference:
            raise ValueError(f"{what}: they are the same")
        if sum(self.joint_dof_dim[joint]) != sum(self.joint_dof_dim[reference]):
            raise ValueError(f"{what}: they have {self.joint_dof_dim[joint]} and {self.joint_dof_dim[reference]} dofs")
        if self.joint_world[joint] != self.joint_world[reference]:
            raise ValueError(f"{what}: they are in different worlds")
        if self.joint_mimic_joint[reference] >= 0:
            raise ValueError(f"{what}: the reference joint follows another joint; follow that other joint directly")
        if joint in self.joint_mimic_joint:
            raise ValueError(f"{what}: another joint follows this joint; let both follow the same joint")
        coeffs = as_vector(coeffs, 2, f"{what}: coeffs")
        self.joint_mimic_joint[joint] = reference
        self.joint_mimic_coeffs[joint] = coeffs


_SHARED = (
    "parent", "child", "parent_xform", "child_xform", "label", "collision_filter_parent", "enabled", "custom_attributes",
)  # fmt: skip
_DOF_FIELDS = tuple(field.name for field in dataclasses.fields(JointDofConfig))
_DOF_SETTINGS = {*_DOF_FIELDS, *OLD_NAMES} - {"axis"}
_NO_COLUMNS = {"target_q", "target_qd", "rest_q", "actuator_mode"}
_DOF_COLUMNS = tuple(name for name in _DOF_FIELDS if name not in _NO_COLUMNS)
_BALL_SETTINGS = (
    "target_ke", "target_kd", "armature", "friction", "friction_ratio", "damping", "stiffness", "effort_limit", "velocity_limit",
    "actuator_mode",
)  # fmt: skip
_NOT_FOR_BALL = {"limit_lower": -MAXVAL, "limit_upper": MAXVAL, "target_q": None, "rest_q": None}


def _quaternion(value, what: str) -> tuple[float, ...]:
    q = np.array(as_vector(value, 4, what))
    length = float(np.linalg.norm(q))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise ValueError(f"{what}: the quaternion {q.tolist()} (x, y, z, w) has length {length:.6g}; normalise it")
    return tuple((q / length).tolist())
