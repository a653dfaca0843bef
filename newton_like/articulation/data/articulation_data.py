"""Data of an articulation: its root and bodies, joints, commands, parameters and defaults."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.articulation.data.body_data import BodyData
from newton_like.articulation.data.fields import View
from newton_like.kernels.articulation.joints import joint_kernels


class ArticulationData(BodyData):
    """Data of an :class:`newton_like.articulation.Articulation`; see
    :class:`newton_like.articulation.BodyData` for frames and units.

    Joints are dofs [rad or m]; a floating root has none. Arrays of joints have the shape ``[num_instances, num_joints]``.

    Attributes:
        joint_names, body_names: names.
        joint_pos_target, joint_vel_target, joint_effort_target: commands, as ``set_joint_*_target`` wrote them.
        computed_torque, applied_torque: efforts of the actuators before and after their limits, at the last ``write_data_to_sim``. Those of
            implicit actuators are what the gains ask for in the state of that moment; the step solves them with the new velocity.
        gear_ratio: of the actuators, 1 where none is given. Gains, limits and efforts are those of the joint; the ratio is kept for users.
        soft_joint_pos_limits: middle of the limits and half of ``soft_joint_pos_limit_factor`` times their range about it, ``[n, j, 2]``.
        soft_joint_vel_limits: velocity limits of the actuators.
        default_root_state: ``[n, 13]``, as ``root_state_w``.
        default_joint_pos, default_joint_vel: state to which a reset leads; writable.
        default_joint_stiffness, default_joint_damping, default_joint_armature, default_joint_friction_coeff,
            default_joint_dynamic_friction_coeff, default_joint_viscous_friction_coeff, default_joint_pos_limits: parameters when
            the asset was made, with those of its actuators.
        default_mass: ``[n, b]``. default_inertia: ``[n, b, 9]``, about centres of mass, link axes, by rows.
        joint_dynamic_friction_coeff: dry friction of joints in motion [N m or N].
        fixed_tendon_names, spatial_tendon_names: names of tendons.
        fixed_tendon_stiffness, fixed_tendon_damping, fixed_tendon_offset, fixed_tendon_rest_length, fixed_tendon_pos_limits,
            fixed_tendon_limit_stiffness, spatial_tendon_stiffness, spatial_tendon_damping, spatial_tendon_offset,
            spatial_tendon_limit_stiffness: properties of tendons as they were set, ``[num_instances, tendons]`` (limits with 2 more);
            ``default_*``: as the asset was made. Stiffnesses of limits are those of springs beyond them; NaN where limits are as soft as
            ``Tendon.solref_limit`` states.
    """

    def __init__(self, sim, layout, soft_factor: float):
        super().__init__(sim, layout)
        model, state = sim.model, sim.state
        self.joint_names = layout.joint_names
        n, j = layout.dofs.shape
        view = layout.view
        self._q, self._qd = view(state.joint_q, layout.coords), view(state.joint_qd, layout.dofs)
        self._qdd = view(state.joint_qdd, layout.dofs)
        for name in (
            "target_ke", "target_kd", "armature", "damping", "friction", "friction_ratio", "effort_limit", "velocity_limit", "limit_lower",
            "limit_upper", "target_mode",
        ):  # fmt: skip
            setattr(self, f"_{name}", view(getattr(model, f"joint_{name}"), layout.dofs))
        self._limits_version = None
        # not the limits of any joint yet
        self._limits = self.buffer(n, j, 2, value=np.nan)
        self._soft_factor = soft_factor
        self.soft_joint_pos_limits = self.buffer(n, j, 2)
        self.joint_pos_target = self.copy_of(view(sim.control.joint_target_q, layout.coords))
        self.joint_vel_target = self.copy_of(view(sim.control.joint_target_qd, layout.dofs))
        self.joint_effort_target = self.copy_of(view(sim.control.joint_act, layout.dofs))
        self.computed_torque, self.applied_torque = self.buffer(n, j), self.buffer(n, j)
        self.gear_ratio = self.buffer(n, j, value=1.0)
        self.soft_joint_vel_limits = self.copy_of(self._velocity_limit)
        self.default_joint_pos, self.default_joint_vel = self.copy_of(self._q), self.copy_of(self._qd)
        in_motion = self._friction.numpy() * self._friction_ratio.numpy()
        self.joint_dynamic_friction_coeff = sim.friction_in_motion(layout.dofs, in_motion, self)

    def keep_defaults(self) -> None:
        """Copies the parameters of now to the defaults."""
        for name in (
            "joint_stiffness", "joint_damping", "joint_armature", "joint_friction_coeff", "joint_dynamic_friction_coeff",
            "joint_viscous_friction_coeff", "joint_pos_limits",
        ):  # fmt: skip
            setattr(self, f"default_{name}", self.copy_of(getattr(self, name)))

    def _limits_of_now(self) -> None:
        """Position limits of the model, and the soft ones that follow from them."""
        model = self._sim.model
        if self._limits_version == model.version or not self._limits.size:
            return
        self._limits_version = model.version
        wp.launch(
            joint_kernels(model.dtype).join_limits,
            dim=self._limits.shape[:2],
            inputs=[self._limit_lower, self._limit_upper, model.dtype(self._soft_factor)],
            outputs=[self._limits, self._soft_limits],
            device=model.device,
        )

    @property
    def joint_pos_limits(self) -> wp.array:
        """Lower and upper position limits [rad or m], ``[n, j, 2]``; -1e10 and 1e10: none."""
        self._limits_of_now()
        return self._limits

    @property
    def soft_joint_pos_limits(self) -> wp.array:
        """Soft position limits, ``[n, j, 2]``: of the range, the share ``soft_joint_pos_limit_factor`` about its middle. Those that are set
        stay until the position limits of the joint change."""
        self._limits_of_now()
        return self._soft_limits

    @soft_joint_pos_limits.setter
    def soft_joint_pos_limits(self, array: wp.array) -> None:
        self._soft_limits = array

    joint_limits = joint_pos_limits

    joint_pos = View("_q", "Positions [rad or m], ``[n, j]``, of the state itself.")
    joint_vel = View("_qd", "Velocities [rad/s or m/s], ``[n, j]``, of the state itself.")
    joint_acc = View(
        "_qdd",
        "Accelerations in the last physics step [rad/s^2 or m/s^2], ``[n, j]``: what all forces and impulses of the step gave.",
    )
    joint_stiffness = View(
        "_target_ke",
        "Position gains of drives and explicit actuators [N m/rad or N/m], ``[n, j]``, of the model itself.",
    )
    joint_damping = View(
        "_target_kd",
        "Velocity gains of drives and explicit actuators [N m s/rad or N s/m], ``[n, j]``, of the model itself.",
    )
    joint_armature = View("_armature", "Armatures [kg m^2 or kg], ``[n, j]``, of the model itself.")
    joint_friction_coeff = View("_friction", "Dry friction at rest [N m or N], ``[n, j]``, of the model itself.")
    joint_viscous_friction_coeff = View(
        "_damping", "Viscous friction [N m s/rad or N s/m], ``[n, j]``, of the model itself."
    )
    joint_effort_limits = View(
        "_effort_limit", "Effort limits of the drives in the simulation [N m or N], ``[n, j]``, of the model itself."
    )
    joint_vel_limits = View(
        "_velocity_limit", "Velocity limits in the simulation [rad/s or m/s], ``[n, j]``, of the model itself."
    )
    joint_velocity_limits = joint_vel_limits

    @property
    def joint_friction(self) -> wp.array:
        """Another name of ``joint_friction_coeff``."""
        return self.joint_friction_coeff

    @property
    def default_joint_friction(self) -> wp.array:
        """Another name of ``default_joint_friction_coeff``."""
        return self.default_joint_friction_coeff

    @property
    def default_joint_limits(self) -> wp.array:
        """Another name of ``default_joint_pos_limits``."""
        return self.default_joint_pos_limits

    @property
    def fixed_tendon_limit(self) -> wp.array:
        """Another name of ``fixed_tendon_pos_limits``."""
        return self.fixed_tendon_pos_limits

    @property
    def default_fixed_tendon_limit(self) -> wp.array:
        """Another name of ``default_fixed_tendon_pos_limits``."""
        return self.default_fixed_tendon_pos_limits
