"""The numbers of all actuators of an articulation, and the launch that turns commands into efforts."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.articulation.actuators.groups import Actuator, make
from newton_like.articulation.actuators.servos import Servos
from newton_like.articulation.chosen import Chosen, friction_ratio, write
from newton_like.articulation.launching import Repeated
from newton_like.articulation.layout import regular_place
from newton_like.articulation.names import find_names
from newton_like.kernels.articulation import joints as laws
from newton_like.types import MAXVAL, JointTargetMode

_NUMBERS = ("kp", "kd", "limit", "stall", "speed")


class ActuatorTable:
    """The numbers of all joints, one row for each instance; one launch computes the efforts of all laws.

    Args:
        asset: the articulation, with its data.
        actuators: configurations by the names of groups; joints without one have the drive of the model.

    Attributes:
        asset: as above.
        groups: the groups by name.
        edited: whether parameters of the model were edited.
        kp, kd, limit, stall, speed: gains that act, effort limits, stall efforts and speeds without load, ``[num_instances, num_joints]``.

    Raises:
        TypeError: not configurations of actuators.
        ValueError: two groups share a joint; a pattern matches no joint; numbers are missing or out of range.
    """

    def __init__(self, asset, actuators: dict):
        self.asset = asset
        data, sim, layout = asset.data, asset.sim, asset._layout
        self.joint_names = layout.joint_names
        self.shape = layout.dofs.shape
        self._data, self._sim = data, sim
        self.joint_q, self.joint_qd = data.joint_pos, data.joint_vel
        self.target_q, self.target_qd, self.target_f = (
            data.joint_pos_target,
            data.joint_vel_target,
            data.joint_effort_target,
        )
        self.computed, self.applied = data.computed_torque, data.applied_torque
        n, j = self.shape
        self.law = np.full(j, laws.IMPLICIT, dtype=np.int32)
        for name in _NUMBERS:
            setattr(self, name, data.buffer(n, j, value=1.0 if name in ("stall", "speed") else 0.0))
        self._slots, self._rows, self._table = 0, np.zeros((j, 2), dtype=np.int32), np.zeros((0, 2))
        self.delay = wp.zeros((n, j), dtype=wp.int32, device=sim.device)
        self.network = data.buffer(n, j)
        if data.joint_effort_limits.size:
            wp.copy(self.limit, data.joint_effort_limits)
        self._layout = layout
        self._launch = None
        self.groups: dict[str, Actuator] = {}
        if not isinstance(actuators, dict):
            raise TypeError(f"actuators must be a dictionary of configurations by names of groups, not {actuators!r}")
        self._servos = Servos(sim, layout)
        self._make(dict(actuators))
        self.edited = self._follow_velocities() or bool(self.groups)
        every = [Chosen(None, count, sim.device) for count in self.shape]
        self._take_gains(*every)
        self._own = [group for group in self.groups.values() if type(group).compute is not Actuator.compute]
        self._finish()

    def _make(self, actuators: dict) -> None:
        owner: dict[int, str] = {}
        for name, cfg in actuators.items():
            patterns = getattr(cfg, "joint_names_expr", None)
            if patterns is None:
                raise TypeError(f"actuator {name!r}: {type(cfg).__name__} is not the configuration of an actuator")
            try:
                joints = find_names(patterns, self.joint_names, "joint")[0]
            except ValueError as error:
                raise ValueError(f"actuator {name!r}: {error}") from None
            if not joints:
                raise ValueError(f"actuator {name!r} has no joints: joint_names_expr {patterns!r} has no pattern")
            for j in joints:
                if j in owner:
                    raise ValueError(
                        f"actuators {owner[j]!r} and {name!r} share the joint {self.joint_names[j]!r}; make one of the patterns narrower"
                    )
                owner[j] = name
            self.groups[name] = make(name, cfg, joints, self)
        self._servos.replace(owner)
        self._servos.warn(owner, self.joint_names)

    def _finish(self) -> None:
        device, data, layout = self._sim.device, self._data, self._layout
        n, j = self.shape
        self.pushed = wp.zeros(n, dtype=wp.int32, device=device)
        if not n * j:
            return
        state, control = self._sim.state, self._sim.control
        history = data.buffer(self._slots, n, 3, j)
        law, rows = (wp.array(x, dtype=wp.int32, device=device) for x in (self.law, self._rows))
        table = wp.array(self._table, dtype=data.joint_pos.dtype, device=device)
        (first_q, step_q, _), (first_v, step_v, each) = regular_place(layout.coords), regular_place(layout.dofs)
        kinds = tuple(sorted(set(self.law.tolist())))
        self._kernel = laws.actuate_kernel(data.joint_pos.dtype, kinds, each, j if self._slots else 0)
        self._head = [law, rows, table]
        self._tail = [
            *(getattr(self, name).flatten() for name in _NUMBERS), *(x.flatten() for x in (self.target_q, self.target_qd, self.target_f)),
            history, self.pushed, self.delay.flatten(), self.network.flatten(), first_q, step_q, first_v, step_v, state.joint_q,
            state.joint_qd, control.joint_target_q, control.joint_target_qd, control.joint_act, self.computed.flatten(),
            self.applied.flatten(),
        ]  # fmt: skip

    def numbers_changed(self) -> None:
        """Looks at gains and limits that were edited: those of all instances may be one row."""
        self._launch = None

    def _record(self) -> Repeated:
        """The launch. Where all instances have the same numbers, it reads those of the first one, which saves a third of the memory. Graphs
        read all, because they may change later."""
        n, j = self.shape
        alike = all((x == x[:1]).all() for x in (getattr(self, name).numpy() for name in _NUMBERS))
        every = [*self._head, j, *self._tail]
        now = [*self._head, 0, *self._tail] if alike else every
        of_worlds = (1, 1) if self._layout.is_every_world else None
        return Repeated(self._kernel, n, now, self._sim.device, n * j // 6, every, of_worlds)

    # ----------------------------------------------------------------------------------------- columns of groups

    def of_model(self, name: str, columns: list[int]) -> np.ndarray:
        """A parameter ``joint_<name>`` of the model and of its servos for joints, ``[num_instances, joints]``."""
        numbers = getattr(self._data, f"_{name}").numpy()[:, columns].astype(float)
        return self._servos.added_to(name, numbers, columns)

    def in_model(self, columns: list[int], **numbers) -> None:
        """Writes parameters ``joint_<name>`` of the model, as :meth:`put`."""
        for name, values in numbers.items():
            _put(getattr(self._data, f"_{name}"), columns, values)

    def refuse_gains(self, columns) -> None:
        """Raises ValueError if a chosen joint has no gains."""
        for group in self.groups.values():
            if not group.has_gains and (found := np.intersect1d(columns.indices, group.joint_indices)).size:
                raise ValueError(
                    f"joint {self.joint_names[found[0]]!r} belongs to actuator {group.name!r}, a network, which has no gains; leave it out"
                )

    def _follow_velocities(self) -> bool:
        """Lets drives of joints in no group that follow positions follow velocities, too; returns whether there are some. They did not look
        at the velocity targets of the model, which become zero."""
        mode, data = self._data._target_mode.numpy(), self._data
        alone = np.setdiff1d(
            np.arange(self.shape[1]), [j for group in self.groups.values() for j in group.joint_indices]
        )
        columns = [int(j) for j in alone if (mode[:, j] == JointTargetMode.POSITION).any()]
        for j in columns:
            rows = mode[:, j] == JointTargetMode.POSITION
            _put(data._target_mode, [j], np.where(rows, int(JointTargetMode.POSITION_VELOCITY), mode[:, j])[:, None])
            of_control = self._layout.view(self._sim.control.joint_target_qd, self._layout.dofs)
            for array in (data.joint_vel_target, of_control):
                _put(array, [j], np.where(rows, 0.0, array.numpy()[:, j])[:, None])
        return bool(columns)

    def take_stiffness(self, rows, columns) -> None:
        """Takes stiffnesses that were written from the model. Drives that did not follow positions follow positions and velocities."""
        self._drive(rows, columns, self._data._target_ke, JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY)

    def take_damping(self, rows, columns) -> None:
        """Takes dampings that were written from the model. Drives that followed nothing follow velocities."""
        self._drive(rows, columns, self._data._target_kd, JointTargetMode.POSITION_VELOCITY, JointTargetMode.VELOCITY)

    def _drive(self, rows, columns, gains: wp.array, enough: int, new: int) -> None:
        where = np.ix_(rows.indices, columns.indices)
        mode = self._data._target_mode.numpy()[where]
        idle = (gains.numpy()[where] > 0.0) & ((mode & enough) == 0) & (self.law[columns.indices] == laws.IMPLICIT)
        if idle.any():
            write(self._data._target_mode, rows, columns, np.where(idle, int(new), mode), "target_mode")
        self._take_gains(rows, columns)

    def _take_gains(self, rows, columns) -> None:
        """Takes the gains of chosen instances and joints from the model. Those that the mode of a drive ignores are zero."""
        where, data = np.ix_(rows.indices, columns.indices), self._data
        mode, explicit = data._target_mode.numpy()[where], self.law[columns.indices] != laws.IMPLICIT
        for name, source, bits in (
            ("kp", data._target_ke, JointTargetMode.POSITION),
            ("kd", data._target_kd, JointTargetMode.POSITION_VELOCITY),
        ):
            acts = explicit | ((mode & bits) != 0)
            write(getattr(self, name), rows, columns, np.where(acts, source.numpy()[where], 0.0), name)
        self.numbers_changed()

    def take_limits(self, rows, columns) -> None:
        """Takes the effort limits of chosen instances and joints from the model."""
        where = np.ix_(rows.indices, columns.indices)
        write(self.limit, rows, columns, self._data._effort_limit.numpy()[where], "limits")
        self.numbers_changed()

    def put(self, columns: list[int], **numbers) -> None:
        """Writes numbers of joints, ``[joints]`` or ``[num_instances, joints]``."""
        for name, values in numbers.items():
            _put(getattr(self, name), columns, values)
        self.numbers_changed()

    def put_gear(self, columns: list[int], ratio: np.ndarray) -> None:
        """Writes gear ratios of joints."""
        _put(self._data.gear_ratio, columns, ratio)

    def friction(self, columns: list[int], at_rest: np.ndarray, in_motion: np.ndarray) -> None:
        """Writes dry friction of joints."""
        _put(self._data.joint_dynamic_friction_coeff, columns, in_motion)
        _put(self._data._friction, columns, at_rest)
        _put(self._data._friction_ratio, columns, friction_ratio(at_rest, in_motion))

    def need_slots(self, count: int) -> None:
        """Keeps at least so many commands."""
        self._slots = max(self._slots, count)

    def add_rows(self, columns: list[int], rows: np.ndarray) -> None:
        """Adds rows of a table of limits for joints."""
        self._rows[columns] = len(self._table), len(rows)
        self._table = np.concatenate([self._table, rows])

    def put_delays(self, chosen, columns: list[int], lags: np.ndarray) -> None:
        """Writes the delays of instances for joints."""
        numbers = self.delay.numpy().copy()
        for j in columns:
            numbers[chosen.indices, j] = lags
        self.delay.assign(numbers)

    def put_network(self, columns: list[int], efforts) -> None:
        """Writes efforts that a network gave, of NumPy or torch."""
        if isinstance(efforts, np.ndarray):
            _put(self.network, columns, efforts)
        else:
            wp.to_torch(self.network)[:, columns] = efforts.to(wp.to_torch(self.network).dtype)

    def columns(self, array: wp.array, columns: list[int]) -> wp.array:
        """Columns of an array: a view where they are evenly spaced, else a copy."""
        steps = set(np.diff(columns).tolist())
        if len(steps) <= 1 and (not steps or min(steps) > 0):
            return array[:, columns[0] : columns[-1] + 1 : steps.pop() if steps else 1]
        return wp.array(array.numpy()[:, columns], dtype=array.dtype, device=array.device)

    # ------------------------------------------------------------------------------------------------- in a step

    def reset(self, chosen) -> None:
        """Starts the episodes of instances again: histories begin with the next command, delays are drawn again."""
        if self._slots and chosen.count:
            pushed = self.pushed.numpy().copy()
            pushed[chosen.indices] = 0
            self.pushed.assign(pushed)
        for group in self.groups.values():
            group.reset(chosen)

    def compute(self) -> None:
        """Turns commands into drives and efforts of the control."""
        if self._own:
            self._sim.launch_gathered()
        for group in self._own:
            group.compute()
        if self._launch is None and self.law.size:
            self._launch = self._record()
        if self._launch is not None and not self._sim.gather(self._launch):
            self._launch.launch()


def _put(array: wp.array, columns: list[int], values) -> None:
    """Writes columns of an array of any strides."""
    numbers = array.numpy() if array.device.is_cpu else array.numpy().copy()
    numbers[:, columns] = np.minimum(values, MAXVAL) if numbers.dtype.kind == "f" else values
    if not array.device.is_cpu:
        wp.copy(array, wp.array(np.ascontiguousarray(numbers), dtype=array.dtype, device=array.device))
