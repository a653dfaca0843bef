"""Groups of joints with one law each."""

from __future__ import annotations

from copy import copy

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, host_array
from newton_like.articulation.actuators import configs
from newton_like.articulation.actuators.network import Network
from newton_like.articulation.actuators.reading import Reading
from newton_like.articulation.chosen import write
from newton_like.articulation.names import by_name
from newton_like.coercion import as_count
from newton_like.kernels.articulation import joints as laws
from newton_like.options import did_you_mean, unknown_attribute
from newton_like.types import MAXVAL, JointTargetMode

NO_SPEED_LIMIT = 1.0e5
"""Velocity limits of the model from this number on are none."""


_FINITE = ("stiffness", "damping", "armature", "friction", "dynamic_friction", "viscous_friction", "gear_ratio")
"""Numbers of configurations that are no limits."""


class Number:
    """A number of the joints of a group, ``[num_instances, joints of the group]``: read as a copy, set by :meth:`Actuator.set_numbers`.

    Args:
        column: name of the array in the table.
        doc: what it is.
    """

    def __init__(self, column: str, doc: str):
        self.column, self.__doc__ = column, doc
        self.name = ""

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, group, owner=None):
        if group is None:
            return self
        return Reading.of(getattr(group._table, self.column).numpy()[:, group.joint_indices], group, self.name)

    def __set__(self, group, values) -> None:
        group.set_numbers(**{self.name: values})


class Actuator:
    """A group of joints with one law. Numbers are arrays ``[num_instances, joints of the group]``. Gains, limits and other numbers are read
    as copies; an assignment (``group.stiffness = values``) and :meth:`set_numbers` set them.

    A subclass has the number of its law in the kernel, and fills the columns of its joints in the table in :meth:`fill`.

    Args:
        name: name of the group.
        cfg: the configuration.
        joint_indices: joints of the group.
        table: the :class:`newton_like.articulation.actuators.table.ActuatorTable` of the articulation.

    Attributes:
        name: as above.
        cfg: a copy of the configuration; edits of the given one do not change this group.
        joint_names, joint_indices: joints of the group.

    Raises:
        ValueError: a number is missing or out of range.
    """

    law = laws.IDEAL
    is_implicit_model = False
    has_gains = True
    positive: tuple[str, ...] = ()
    _is_made = False

    stiffness = Number("kp", "Position gains [N m/rad or N/m].")
    damping = Number("kd", "Velocity gains [N m s/rad or N s/m].")
    effort_limit = Number("limit", "Effort limits [N m or N].")
    velocity_limit = Number("speed", "Speed limits of the actuator [rad/s or m/s].")

    def __init__(self, name: str, cfg: configs.ActuatorCfg, joint_indices: list[int], table):
        self.name, self.cfg, self.joint_indices, self._table = name, cfg, joint_indices, table
        self.joint_names = [table.joint_names[j] for j in joint_indices]
        self.fill()
        self._is_made = True

    def __setattr__(self, name: str, value) -> None:
        # constants of the class have no effect either
        known = name.startswith("_") or name in self.__dict__ or hasattr(getattr(type(self), name, None), "__set__")
        if self._is_made and not known:
            raise unknown_attribute(self, name, "unknown attributes have no effect")
        super().__setattr__(name, value)

    @property
    def num_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_indices)

    def numbers(self, name: str, default, low: float = 0.0) -> np.ndarray:
        """Numbers of the configuration for each joint of the group, ``[joints]``; NaN where there is none.

        Args:
            name: attribute of the configuration.
            default: numbers where none is given; of all instances, ``[num_instances, joints]``, if they differ. The result has its shape.
            low: smallest allowed number.
        """
        what = f"actuator {self.name!r}: {name}"
        found = by_name(getattr(self.cfg, name), self.joint_names, "joint", None, what)
        if (found < low).any():
            joint = self.joint_names[int(np.argmax(found < low))]
            raise ValueError(f"{what} of joint {joint!r} is {found[found < low][0]:g}; it must be at least {low:g}")
        if name in _FINITE and np.isinf(found).any():
            raise ValueError(f"{what} of joint {self.joint_names[int(np.argmax(np.isinf(found)))]!r} is infinite")
        if default is not None:
            found = np.where(np.isnan(found), default, found)
        return np.minimum(found, MAXVAL)

    def needed(self, name: str, default: np.ndarray | None = None) -> np.ndarray:
        """Positive numbers of the configuration, or of `default`, of which none may be missing."""
        found = self.numbers(name, default)
        if not (found > 0.0).all():
            joint = self.joint_names[int(np.argwhere(~(found > 0.0))[0, -1])]
            raise ValueError(f"actuator {self.name!r}: joint {joint!r} needs a positive {name}")
        return found

    def fill(self) -> None:
        """Fills the columns of the table, and the parameters of the model."""
        table, columns = self._table, self.joint_indices
        table.law[columns] = self.law
        kp = self.numbers("stiffness", table.of_model("target_ke", columns))
        kd = self.numbers("damping", table.of_model("target_kd", columns))
        limit = self.numbers("effort_limit", self.own_limit(table.of_model("effort_limit", columns)))
        in_step = self.numbers("effort_limit_sim", limit if self.is_implicit_model else np.full(len(columns), MAXVAL))
        table.put(columns, limit=in_step if self.is_implicit_model else limit)
        table.put(columns, speed=self.numbers("velocity_limit", table.of_model("velocity_limit", columns)))
        # the model holds the gains of explicit actuators, too, whose drives in the step do not act; the table takes them from there
        mode = JointTargetMode.POSITION_VELOCITY if self.is_implicit_model else JointTargetMode.NONE
        table.in_model(
            columns,
            target_mode=int(mode),
            target_ke=kp,
            target_kd=kd,
            effort_limit=in_step,
            velocity_limit=self.numbers("velocity_limit_sim", table.of_model("velocity_limit", columns)),
            armature=self.numbers("armature", table.of_model("armature", columns)),
            damping=self.numbers("viscous_friction", table.of_model("damping", columns)),
        )
        friction = self.numbers("friction", table.of_model("friction", columns))
        moving = self.numbers("dynamic_friction", friction * table.of_model("friction_ratio", columns))
        if (moving > friction).any():
            joint = self.joint_names[int(np.argwhere(moving > friction)[0, -1])]
            raise ValueError(
                f"actuator {self.name!r}: dynamic_friction of joint {joint!r} is above its friction at rest; give at most that"
            )
        table.friction(columns, friction, moving)
        table.put_gear(columns, self.numbers("gear_ratio", 1.0))

    def own_limit(self, of_model: np.ndarray) -> np.ndarray:
        """Effort limits where the configuration has none."""
        return of_model

    def set_numbers(self, env_ids=None, **numbers) -> None:
        """Sets numbers of chosen instances at once: ``stiffness``, ``damping``, ``effort_limit``, ``velocity_limit``, and
        ``saturation_effort`` of DC motors.

        Gains, and the limits of implicit actuators, are also those of ``write_joint_*_to_sim`` of the articulation. The effort limit of an
        explicit actuator that is set here is that of the actuator only.

        Args:
            env_ids: instances: None (all), a slice, indices, or a mask of bools.
            numbers: by name, ``[chosen instances, joints of the group]`` or broadcast to it.

        Raises:
            TypeError: a name that the actuator does not have.
            ValueError: another shape; numbers that are not finite, negative, or zero where the law needs positive ones; gains of a
                network.
            IndexError: an instance does not exist.
        """
        table, known = self._table, [name for name in dir(type(self)) if isinstance(getattr(type(self), name), Number)]
        rows = table.asset._rows(env_ids)
        for name in numbers:
            if name not in known:
                raise TypeError(
                    f"actuator {self.name!r} ({type(self).__name__}) has no number {name!r}{did_you_mean(name, known)}"
                )
        writes = {
            "stiffness": table.asset.write_joint_stiffness_to_sim,
            "damping": table.asset.write_joint_damping_to_sim,
        }
        if self.is_implicit_model:
            writes["effort_limit"] = table.asset.write_joint_effort_limit_to_sim
        for name, values in numbers.items():
            if name in writes:
                writes[name](values, self.joint_indices, rows)
            else:
                self._set(name, values, rows)

    def _set(self, name: str, values, rows) -> None:
        """Sets a number that only the table has."""
        table, what = self._table, f"actuator {self.name!r}: {name}"
        given = np.minimum(host_array(values, what), MAXVAL)
        if name in self.positive and not (given > 0.0).all():
            raise ValueError(f"{what} must be positive")
        if (given < 0.0).any():
            raise ValueError(f"{what} {float(given.min()):g} is below 0")
        columns = table.asset._columns(self.joint_indices)
        write(getattr(table, getattr(type(self), name).column), rows, columns, given, what)
        table.numbers_changed()
        if name == "velocity_limit":
            write(table.asset.data.soft_joint_vel_limits, rows, columns, given, what)

    def reset(self, chosen) -> None:
        """Starts the episode of some instances again.

        Args:
            chosen: :class:`newton_like.articulation.chosen.Chosen` instances.
        """

    def compute(self) -> None:
        """What the law needs before the kernel of all joints is launched."""

    def _columns(self, array: wp.array) -> wp.array:
        return self._table.columns(array, self.joint_indices)

    @property
    def computed_effort(self) -> wp.array:
        """Efforts before limits [N m or N]."""
        return self._columns(self._table.computed)

    @property
    def applied_effort(self) -> wp.array:
        """Efforts within limits [N m or N]."""
        return self._columns(self._table.applied)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, joints {self.joint_names})"


class ImplicitActuator(Actuator):
    """The drive of the step. Efforts that are reported are those of the gains in the state before the step."""

    law = laws.IMPLICIT
    is_implicit_model = True

    def fill(self) -> None:
        cfg = self.cfg
        if cfg.effort_limit is not None and cfg.effort_limit_sim is not None:
            own, in_step = (self.numbers(name, None) for name in ("effort_limit", "effort_limit_sim"))
            differ = ~((own == in_step) | np.isnan(own) | np.isnan(in_step))
            if differ.any():
                j = int(np.argmax(differ))
                raise ValueError(
                    f"actuator {self.name!r}: effort_limit {own[j]:g} and effort_limit_sim {in_step[j]:g} of joint"
                    f" {self.joint_names[j]!r} differ; both are the limit of the drive: give one of them"
                )
        super().fill()


class IdealPDActuator(Actuator):
    """PD of the state of the moment, within the effort limit."""


class DCMotor(Actuator):
    """PD within the torque-speed line of a DC motor."""

    law = laws.MOTOR
    positive = ("velocity_limit", "saturation_effort")
    saturation_effort = Number("stall", "Stall efforts [N m or N].")

    def fill(self) -> None:
        # read before the limits of the step become those of the configuration
        speed = self._table.of_model("velocity_limit", self.joint_indices)
        self.needed("velocity_limit", np.where(speed < NO_SPEED_LIMIT, speed, np.nan))
        super().fill()
        self._table.put(self.joint_indices, stall=self.needed("saturation_effort"))


class DelayedPDActuator(Actuator):
    """Ideal PD of commands that arrive some physics steps later.

    Raises:
        ValueError: delays are negative, or the smallest one is above the largest.
    """

    law = laws.IDEAL + laws.DELAYED

    def fill(self) -> None:
        super().fill()
        low, high = (
            as_count(getattr(self.cfg, n), f"actuator {self.name!r}: {n}", lowest=0) for n in ("min_delay", "max_delay")
        )
        if low > high:
            raise ValueError(
                f"actuator {self.name!r}: delays from {low} to {high} steps; give 0 <= min_delay <= max_delay"
            )
        seed = self.cfg.seed
        if seed is None:
            seed = list(f"{self._table.asset._layout.label}/{self.name}".encode())
        self._random = np.random.default_rng(seed)
        # the table keeps as many commands; later edits of the configuration do not count
        self._delays = low, high
        self._table.need_slots(high + 1)

    def reset(self, chosen) -> None:
        low, high = self._delays
        lags = self._random.integers(low, high + 1, chosen.count)
        self._table.put_delays(chosen, self.joint_indices, lags)

    @property
    def delay(self) -> np.ndarray:
        """Delays of instances [physics steps], ``[num_instances]``: a copy that refuses to be written. An assignment is that of
        :meth:`set_delay`."""
        lags = self._table.delay.numpy()[:, self.joint_indices[0]].copy()
        lags.flags.writeable = False
        return lags

    @delay.setter
    def delay(self, delay) -> None:
        self.set_delay(delay)

    def set_delay(self, delay, env_ids=None) -> None:
        """Sets delays of instances. They hold until a reset of the instances draws others.

        Args:
            delay: physics steps, ``[chosen instances]`` or one number, from ``min_delay`` to ``max_delay`` of the configuration.
            env_ids: instances: None (all), a slice, indices, or a mask of bools.

        Raises:
            TypeError: not integers.
            ValueError: another shape, or delays out of range.
            IndexError: an instance does not exist.
        """
        what, (low, high) = f"actuator {self.name!r}: delay", self._delays
        check_recorded(self._table.delay.device, what)
        rows, lags = self._table.asset._rows(env_ids), host_array(delay, what)
        if lags.dtype.kind not in "iu":
            raise TypeError(f"{what} must be an integer, or integers by instance, not {delay!r}")
        if lags.shape not in ((), (rows.count,)):
            raise ValueError(f"{what} has shape {lags.shape}; it must be ({rows.count},), or a single number")
        if (lags < low).any() or (lags > high).any():
            wrong = lags[(lags < low) | (lags > high)].ravel()[0]
            raise ValueError(f"{what} {wrong} must be from min_delay {low} to max_delay {high}")
        self._table.put_delays(rows, self.joint_indices, lags)


class RemotizedPDActuator(DelayedPDActuator):
    """Delayed PD with an effort limit that depends on the position.

    Raises:
        ValueError: the table is missing, or its positions do not ascend; an effort limit beside it.
    """

    law = laws.TABLE + laws.DELAYED

    def own_limit(self, of_model: np.ndarray) -> np.ndarray:
        # the table has the limits; further ones may be written later
        return np.full(len(self.joint_indices), MAXVAL)

    def fill(self) -> None:
        super().fill()
        if self.cfg.effort_limit is not None:
            raise ValueError(
                f"actuator {self.name!r}: effort_limit has no effect beside joint_parameter_lookup, which has the limits; leave it out"
            )
        given = self.cfg.joint_parameter_lookup
        rows = np.asarray([] if given is None else given, dtype=float)
        if rows.ndim != 2 or rows.shape[1] not in (2, 3) or not len(rows):
            raise ValueError(
                f"actuator {self.name!r}: joint_parameter_lookup must have rows of position and effort limit"
            )
        rows = rows[:, [0, -1]]
        if not np.isfinite(rows).all() or (np.diff(rows[:, 0]) <= 0.0).any() or (rows[:, 1] < 0.0).any():
            raise ValueError(
                f"actuator {self.name!r}: positions of joint_parameter_lookup must ascend, and its limits must be at least 0"
            )
        self._table.add_rows(self.joint_indices, rows)


class NetworkActuator(DCMotor):
    """Efforts from a function, within the torque-speed line of a DC motor.

    Raises:
        ValueError: there is no network, or its inputs make no sense.
    """

    law = laws.NETWORK
    has_gains = False

    def fill(self) -> None:
        super().fill()
        self._network = Network(self.name, self.cfg, self._table, self.joint_indices)

    def reset(self, chosen) -> None:
        self._network.reset(chosen)

    def compute(self) -> None:
        self._network.compute()


CLASSES = {
    configs.ImplicitActuatorCfg: ImplicitActuator,
    configs.IdealPDActuatorCfg: IdealPDActuator,
    configs.DCMotorCfg: DCMotor,
    configs.DelayedPDActuatorCfg: DelayedPDActuator,
    configs.RemotizedPDActuatorCfg: RemotizedPDActuator,
    configs.NetworkActuatorCfg: NetworkActuator,
}
"""The class of each configuration."""


def make(name: str, cfg, joint_indices: list[int], table) -> Actuator:
    """The group of a configuration.

    Raises:
        TypeError: not the configuration of an actuator.
    """
    kind = next((CLASSES[base] for base in type(cfg).__mro__ if base in CLASSES), None)
    if kind is None:
        names = ", ".join(c.__name__ for c in CLASSES)
        raise TypeError(
            f"actuator {name!r}: {type(cfg).__name__} is not the configuration of an actuator; use one of {names}"
        )
    # a copy: configurations may be edited for the next robot
    return kind(name, copy(cfg), joint_indices, table)
