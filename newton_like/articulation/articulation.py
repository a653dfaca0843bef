"""Articulations of many worlds: commands, parameters, actuators, state and reset."""

from __future__ import annotations

from typing import Never

import warp as wp

from newton_like.arrays import check_recorded
from newton_like.articulation.actuators.groups import Actuator
from newton_like.articulation.actuators.table import ActuatorTable
from newton_like.articulation.asset import Asset
from newton_like.articulation.chosen import Chosen, choose, prepared, put, write
from newton_like.articulation.data.articulation_data import ArticulationData
from newton_like.articulation.drawing import JointDrawing
from newton_like.articulation.initial import InitialStateCfg, put_defaults
from newton_like.articulation.names import find_names
from newton_like.articulation.parameters import JointParameters
from newton_like.articulation.tendons import TendonParameters
from newton_like.options import refuse_options
from newton_like.types import ModelFlags


class Articulation(JointParameters, TendonParameters, JointDrawing, Asset):
    """One articulation of each world, with the interface of Isaac Lab's ``Articulation``.

    Commands (``set_*``) fill buffers, which :meth:`write_data_to_sim` turns into drives and efforts before each physics step.
    ``write_*_to_sim`` write the simulation at once. Joints are dofs; a floating root has none.

    Arguments of all methods: ``joint_ids``, ``body_ids`` and ``env_ids`` are None (all), a slice, indices, or a mask of bools. Values have
    the shape ``[instances, joints]`` or broadcast to it. Numbers that are not finite and zero quaternions are refused, except in Warp
    arrays, which are not looked at. Indices must exist and occur once.

    Args:
        model: a :class:`newton_like.Model` or a :class:`newton_like.articulation.SimulationContext`.
        pattern: pattern of the labels of articulations: shell-style (``"walk*"``), a compiled regular expression, or a list.
        actuators: configurations of actuators by names of groups. Joints in no group have the drive of the model. Parameters are written
            to the model when the asset is made.
        soft_joint_pos_limit_factor: share of the position limits that is soft.
        init_state: defaults of root and joints, to which :meth:`reset_to` leads; None: those of the model.

    Attributes:
        actuators: the groups, :class:`newton_like.articulation.actuators.Actuator` by name.
        data: the :class:`newton_like.articulation.ArticulationData`.

    Raises:
        KeyError: no articulation matches.
        ValueError: the pattern matches several articulations of a world, or different ones; joints that assets do not have; groups of
            actuators overlap, or match no joint; numbers out of range.
        TypeError: an argument of another type.
    """

    _has_rotors = False

    def __init__(
        self,
        model,
        pattern,
        actuators: dict | None = None,
        *,
        soft_joint_pos_limit_factor: float = 1.0,
        init_state: InitialStateCfg | None = None,
        **others: Never,
    ):
        if others:
            refuse_options(Articulation.__init__, others)
        self._soft_factor = float(soft_joint_pos_limit_factor)
        if not 0.0 < self._soft_factor <= 1.0:
            raise ValueError(
                f"soft_joint_pos_limit_factor {soft_joint_pos_limit_factor!r} must be above 0 and at most 1"
            )
        super().__init__(model, pattern)
        data, layout = self.data, self._layout
        self._every_joint = Chosen(None, layout.dofs.shape[1], self.device)
        self._actuators = ActuatorTable(self, actuators or {})
        if self._actuators.edited:
            self.sim.notify(ModelFlags.JOINT_DOF_PROPERTIES, None, layout.worlds)
            speed = self._actuators.speed
            for group in self._actuators.groups.values():
                numbers = data.soft_joint_vel_limits.numpy().copy()
                numbers[:, group.joint_indices] = speed.numpy()[:, group.joint_indices]
                data.soft_joint_vel_limits.assign(numbers)
        self._make_tendons()
        data.keep_defaults()
        if init_state is not None:
            put_defaults(init_state, self)
            if init_state.rps is not None and not self._has_rotors:
                raise ValueError(
                    f"init_state.rps: '{layout.label}' has no rotors; make it a Multirotor, or leave rps out"
                )
        data.close()
        self._actuators.reset(self._every)

    def _make_data(self) -> ArticulationData:
        return ArticulationData(self.sim, self._layout, self._soft_factor)

    # ---------------------------------------------------------------------------------------------------- names

    @property
    def actuators(self) -> dict[str, Actuator]:
        """Groups of actuators by name."""
        return self._actuators.groups

    @property
    def num_joints(self) -> int:
        """Number of joints."""
        return self._layout.dofs.shape[1]

    @property
    def joint_names(self) -> list[str]:
        """Names of joints; those with several axes have ``:i`` behind the name, and those of MJCF files the names in the file."""
        return self._layout.joint_names

    def find_joints(
        self, name_keys, joint_subset: list[str] | None = None, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Joints whose names match regular expressions as a whole.

        Args:
            name_keys: a regular expression, or several.
            joint_subset: names among which to search; indices are those in the subset. None: all joints.
            preserve_order: results are in the order of the expressions.

        Returns:
            Indices and names.

        Raises:
            ValueError: an expression matches nothing, or two match one name.
            TypeError: not regular expressions.
        """
        return find_names(name_keys, self.joint_names, "joint", preserve_order, joint_subset)

    def _columns(self, joint_ids) -> Chosen:
        """Chosen joints."""
        return choose(joint_ids, self.num_joints, self.device, "joint_ids", self._every_joint)

    # ------------------------------------------------------------------------------------------------- commands

    def set_joint_position_target(self, target, joint_ids=None, env_ids=None) -> None:
        """Sets position targets [rad or m], ``[instances, joints]``; see the class."""
        write(self.data.joint_pos_target, self._rows(env_ids), self._columns(joint_ids), target, "target")

    def set_joint_velocity_target(self, target, joint_ids=None, env_ids=None) -> None:
        """Sets velocity targets [rad/s or m/s], ``[instances, joints]``; see the class."""
        write(self.data.joint_vel_target, self._rows(env_ids), self._columns(joint_ids), target, "target")

    def set_joint_effort_target(self, target, joint_ids=None, env_ids=None) -> None:
        """Sets feed-forward efforts [N m or N], ``[instances, joints]``; see the class."""
        write(self.data.joint_effort_target, self._rows(env_ids), self._columns(joint_ids), target, "target")

    # ---------------------------------------------------------------------------------------------- joint state

    def write_joint_state_to_sim(self, position, velocity, joint_ids=None, env_ids=None) -> None:
        """Writes joint positions [rad or m] and velocities [rad/s or m/s], ``[instances, joints]``; see the class."""
        rows, columns = self._rows(env_ids), self._columns(joint_ids)
        self._put_joints(self._checked_joints(position, velocity, rows, columns), rows, columns)

    def _checked_joints(self, position, velocity, rows: Chosen, columns: Chosen) -> tuple:
        """Positions and velocities that can be written. Nothing is written."""
        return (
            prepared(self.data._q, rows, columns, position, "position"),
            prepared(self.data._qd, rows, columns, velocity, "velocity"),
        )

    def _put_joints(self, given: tuple, rows: Chosen, columns: Chosen) -> None:
        """Writes what :meth:`_checked_joints` gave."""
        for target, values in zip((self.data._q, self.data._qd), given, strict=True):
            put(target, rows, columns, values)
        self.sim.joints_written(rows.array, rows.count, self._world_of)

    def write_joint_position_to_sim(self, position, joint_ids=None, env_ids=None) -> None:
        """Writes joint positions [rad or m], ``[instances, joints]``; see the class."""
        rows = self._rows(env_ids)
        write(self.data._q, rows, self._columns(joint_ids), position, "position")
        self.sim.joints_written(rows.array, rows.count, self._world_of)

    def write_joint_velocity_to_sim(self, velocity, joint_ids=None, env_ids=None) -> None:
        """Writes joint velocities [rad/s or m/s], ``[instances, joints]``; see the class."""
        rows = self._rows(env_ids)
        write(self.data._qd, rows, self._columns(joint_ids), velocity, "velocity")
        self.sim.joints_written(rows.array, rows.count, self._world_of)

    # ---------------------------------------------------------------------------------------------------- steps

    def write_data_to_sim(self) -> None:
        """Turns commands into drives and efforts by the actuators, and applies external wrenches. Call it before every physics step."""
        self._actuators.compute()
        super().write_data_to_sim()

    def reset(self, env_ids=None) -> None:
        """Clears what is remembered of instances: commands (position targets become the default positions), delays and histories of
        actuators, activations and controls of actuators of the model, reported efforts, accelerations, external wrenches, and contact
        forces that steps start from. The state stays; :meth:`reset_to` writes it, too.

        Args:
            env_ids: instances: None (all), a slice, indices, or a mask of bools.

        Raises:
            IndexError: an instance does not exist.
        """
        check_recorded(self.device, f"reset of '{self._layout.label}'")
        rows, data = self._rows(env_ids), self.data
        if rows.count:
            every = self._every_joint
            start = data.default_joint_pos if rows.everything else data.default_joint_pos.numpy()[rows.indices]
            write(data.joint_pos_target, rows, every, start, "default_joint_pos")
            for array in (
                data.joint_vel_target,
                data.joint_effort_target,
                data.computed_torque,
                data.applied_torque,
                data._qdd,
            ):
                write(array, rows, every, 0.0, "zeros")
        self._actuators.reset(rows)
        self._reset_tendons(rows)
        super().reset(rows)

    def reset_to(self, env_ids=None, root_state=None, joint_pos=None, joint_vel=None, frame: str = "state") -> None:
        """Resets instances to the default state, or to a given one, in all that :meth:`reset` clears. After an error nothing has changed.

        Args:
            env_ids: instances: None (all), a slice, indices, or a mask of bools.
            root_state: ``[instances, 13]``; None: ``data.default_root_state``.
            joint_pos, joint_vel: ``[instances, joints]``; None: ``data.default_joint_pos`` and ``default_joint_vel``.
            frame: of `root_state`: ``"state"``: poses of root links and velocities of centres of mass, as ``root_state_w``; ``"link"`` or
                ``"com"``: both of the same frame.

        Raises:
            ValueError: an unknown frame; see :meth:`write_root_state_to_sim`.
            IndexError: an instance does not exist.
        """
        rows = self._rows(env_ids)
        self._put_reset(self._checked_reset(rows, root_state, joint_pos, joint_vel, frame), rows, frame)

    def _checked_reset(self, rows: Chosen, root_state, joint_pos, joint_vel, frame: str) -> tuple:
        """What a reset writes, looked at. Nothing is written."""
        data = self.data

        def default(array: wp.array):
            return array if rows.everything else array.numpy()[rows.indices]

        position = default(data.default_joint_pos) if joint_pos is None else joint_pos
        velocity = default(data.default_joint_vel) if joint_vel is None else joint_vel
        root = self._checked_root(rows, root_state, frame)
        return root, self._checked_joints(position, velocity, rows, self._every_joint)

    def _put_reset(self, checked: tuple, rows: Chosen, frame: str) -> None:
        """Writes what :meth:`_checked_reset` gave."""
        root, joints = checked
        self._put_root(root, rows, frame)
        self._put_joints(joints, rows, self._every_joint)
        self.reset(rows)
