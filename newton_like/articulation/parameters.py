"""Parameters of joints and bodies that are written to the simulation at once."""

from __future__ import annotations

import warnings

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded
from newton_like.articulation.chosen import Chosen, friction_ratio, write
from newton_like.types import MAXVAL, ModelFlags


class JointParameters:
    """The part of :class:`newton_like.articulation.Articulation` that writes parameters.

    Parameters are those of the model, for each world: data read them back from the arrays of the model. The first write of a parameter that
    was equal in all worlds compiles a specialised kernel again; name the array in ``varying`` of the solver to avoid it.
    """

    def _write(self, target: wp.array, values, joint_ids, env_ids, name: str, then=None) -> None:
        """Writes a parameter of joints, and tells actuators and solver."""
        check_recorded(self.device, f"{name} of joints")
        rows, columns = self._rows(env_ids), self._columns(joint_ids)
        _check(values, name, 0.0)
        write(target, rows, columns, values, name)
        if then is not None:
            then(rows, columns)
        self.sim.notify(ModelFlags.JOINT_DOF_PROPERTIES, rows, self._layout.worlds)

    def write_joint_stiffness_to_sim(self, stiffness, joint_ids=None, env_ids=None) -> None:
        """Writes position gains [N m/rad or N/m], at least 0: of the drive in the step, or of the explicit actuator that a joint has.
        A joint without a drive gets one: with a stiffness above 0 it follows positions and velocities, and with a damping velocities.

        Raises:
            ValueError: the actuator of a joint is a network, which has no gains.
        """
        self._actuators.refuse_gains(self._columns(joint_ids))
        self._write(self.data._target_ke, stiffness, joint_ids, env_ids, "stiffness", self._actuators.take_stiffness)

    def write_joint_damping_to_sim(self, damping, joint_ids=None, env_ids=None) -> None:
        """Writes velocity gains [N m s/rad or N s/m], at least 0; see :meth:`write_joint_stiffness_to_sim`."""
        self._actuators.refuse_gains(self._columns(joint_ids))
        self._write(self.data._target_kd, damping, joint_ids, env_ids, "damping", self._actuators.take_damping)

    def write_joint_armature_to_sim(self, armature, joint_ids=None, env_ids=None) -> None:
        """Writes armatures [kg m^2 or kg], at least 0."""
        self._write(self.data._armature, armature, joint_ids, env_ids, "armature")

    def write_joint_effort_limit_to_sim(self, limits, joint_ids=None, env_ids=None) -> None:
        """Writes effort limits [N m or N], at least 0; 1e10: none. They are limits of the step, and of the explicit actuator that a joint
        has (beside the table of a ``RemotizedPDActuatorCfg``)."""
        limits, take = _bounded(limits), self._actuators.take_limits
        self._write(self.data._effort_limit, limits, joint_ids, env_ids, "limits", take)

    def write_joint_velocity_limit_to_sim(self, limits, joint_ids=None, env_ids=None) -> None:
        """Writes velocity limits [rad/s or m/s], at least 0; from 1e5 on: none."""
        self._write(self.data._velocity_limit, _bounded(limits), joint_ids, env_ids, "limits")

    def write_joint_position_limit_to_sim(
        self, limits, joint_ids=None, env_ids=None, warn_limit_violation: bool = True
    ) -> None:
        """Writes position limits.

        Args:
            limits: lower and upper limit [rad or m], ``[instances, joints, 2]``; -1e10 and 1e10: none.
            joint_ids, env_ids: see the class.
            warn_limit_violation: warn of default positions beyond the new limits, which become the nearer limit.

        Raises:
            ValueError: a lower limit is above the upper one.
        """
        check_recorded(self.device, "limits of joints")
        rows, columns = self._rows(env_ids), self._columns(joint_ids)
        numbers = _host(limits)
        if numbers.shape[-1:] != (2,):
            raise ValueError(
                f"limits have shape {numbers.shape}; they must be ({rows.count}, {columns.count}, 2), or broadcast to it"
            )
        if np.isnan(numbers).any():
            raise ValueError("limits holds numbers that are not finite")
        if (numbers[..., 0] > numbers[..., 1]).any():
            raise ValueError("limits: a lower limit is above its upper limit")
        numbers = np.clip(numbers, -MAXVAL, MAXVAL)
        data = self.data
        write(data._limit_lower, rows, columns, numbers[..., 0], "limits")
        write(data._limit_upper, rows, columns, numbers[..., 1], "limits")
        self.sim.notify(ModelFlags.JOINT_DOF_PROPERTIES, rows, self._layout.worlds)
        where = np.ix_(rows.indices, columns.indices)
        now = data.joint_pos_limits.numpy()[where]
        start = data.default_joint_pos.numpy().copy()
        inside = np.clip(start[where], now[..., 0], now[..., 1])
        beyond = np.argwhere(inside != start[where])
        if len(beyond):
            if warn_limit_violation:
                a, b = beyond[0]
                i, j = rows.indices[a], columns.indices[b]
                warnings.warn(
                    f"joint '{self.joint_names[j]}': the default position {start[i, j]:g} of instance {i} is beyond the new limits"
                    f" ({now[a, b, 0]:g}, {now[a, b, 1]:g}) and becomes {inside[a, b]:g}",
                    stacklevel=2,
                )
            start[where] = inside
            data.default_joint_pos.assign(start)

    def write_joint_limits_to_sim(
        self, limits, joint_ids=None, env_ids=None, warn_limit_violation: bool = True
    ) -> None:
        """As :meth:`write_joint_position_limit_to_sim`."""
        self.write_joint_position_limit_to_sim(limits, joint_ids, env_ids, warn_limit_violation)

    # ------------------------------------------------------------------------------------------------- friction

    def write_joint_friction_coefficient_to_sim(
        self,
        joint_friction_coeff,
        joint_dynamic_friction_coeff=None,
        joint_viscous_friction_coeff=None,
        joint_ids=None,
        env_ids=None,
    ) -> None:
        """Writes friction of joints.

        At rest, dry friction holds a joint up to ``joint_friction_coeff``. While it moves faster than 1e-4 rad/s (m/s) at the beginning
        of a step or substep of the solver, dry friction is at most ``joint_dynamic_friction_coeff``. In the model these are
        ``joint_friction`` and, divided by it, ``joint_friction_ratio``.

        Args:
            joint_friction_coeff: dry friction at rest [N m or N], at least 0.
            joint_dynamic_friction_coeff: dry friction in motion [N m or N], from 0 to that at rest; None: it stays, or becomes that at rest
                where it would be above.
            joint_viscous_friction_coeff: viscous friction [N m s/rad or N s/m], at least 0; None: it stays.
            joint_ids, env_ids: see the class.

        Raises:
            ValueError: a number is negative; friction in motion is above that at rest.
        """
        check_recorded(self.device, "friction of joints")
        rows, columns, data = self._rows(env_ids), self._columns(joint_ids), self.data
        rest = _rows_of(joint_friction_coeff, rows, columns, "joint_friction_coeff")
        where = np.ix_(rows.indices, columns.indices)
        moving = (
            data.joint_dynamic_friction_coeff.numpy()[where]
            if joint_dynamic_friction_coeff is None
            else joint_dynamic_friction_coeff
        )
        moving = _rows_of(moving, rows, columns, "joint_dynamic_friction_coeff")
        for numbers, name in ((rest, "joint_friction_coeff"), (moving, "joint_dynamic_friction_coeff")):
            _check(numbers, name, 0.0)
        viscous = joint_viscous_friction_coeff
        if viscous is not None:
            viscous = _rows_of(viscous, rows, columns, "joint_viscous_friction_coeff")
            _check(viscous, "joint_viscous_friction_coeff", 0.0)
        if joint_dynamic_friction_coeff is None:
            moving = np.minimum(moving, rest)
        if (moving > rest).any():
            raise ValueError(
                "joint_dynamic_friction_coeff: friction in motion is above that at rest; give at most joint_friction_coeff"
            )
        write(data.joint_dynamic_friction_coeff, rows, columns, moving, "joint_dynamic_friction_coeff")
        write(data._friction, rows, columns, rest, "joint_friction_coeff")
        write(data._friction_ratio, rows, columns, friction_ratio(rest, moving), "joint_dynamic_friction_coeff")
        if viscous is not None:
            write(data._damping, rows, columns, viscous, "joint_viscous_friction_coeff")
        self.sim.notify(ModelFlags.JOINT_DOF_PROPERTIES, rows, self._layout.worlds)

    def write_joint_friction_to_sim(self, joint_friction, joint_ids=None, env_ids=None) -> None:
        """Writes dry friction at rest and in motion, both the same [N m or N]."""
        self.write_joint_friction_coefficient_to_sim(joint_friction, joint_friction, None, joint_ids, env_ids)


def _host(values) -> np.ndarray:
    if isinstance(values, wp.array):
        return values.numpy()
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values, dtype=float)


def _rows_of(values, rows: Chosen, columns: Chosen, name: str) -> np.ndarray:
    """Values as ``[chosen rows, chosen columns]``; with a mask, values may be those of all rows.

    Raises:
        ValueError: another shape.
    """
    numbers, shape = _host(values), (rows.count, columns.count)
    if rows.masked and numbers.shape == (rows.size, columns.count):
        numbers = numbers[rows.indices]
    try:
        return np.broadcast_to(numbers, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {numbers.shape}; it must be {shape}, or broadcast to it") from None


def _bounded(values):
    """Limits without infinities."""
    return np.minimum(_host(values), MAXVAL)


def _check(values, name: str, low: float) -> None:
    numbers = _host(values)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    if (numbers < low).any():
        raise ValueError(f"{name} {float(numbers.min()):g} is below {low:g}")
