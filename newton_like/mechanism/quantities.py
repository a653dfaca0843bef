"""Derived quantities of a mechanism's state: their functions and dependencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, signature

from newton_like.dynamics import (
    com,
    energy,
    forces,
    inertia,
    jacobians,
    kinematics,
    loops,
    matrices,
    momentum,
    system,
)
from newton_like.dynamics.coordinates import joint_motion


@dataclass(frozen=True)
class Quantity:
    """A derived quantity of a state.

    Attributes:
        function: ``function(model, state, *, out, **options)``.
        reads: ``"q"``: depends on coordinates, ``"qv"``: on coordinates and velocities. All quantities depend on the model.
    """

    function: Callable
    reads: str

    @cached_property
    def defaults(self) -> dict:
        """Options and their defaults."""
        parameters = signature(self.function).parameters.values()
        empty = Parameter.empty
        return {p.name: p.default for p in parameters if p.default is not empty and p.name not in ("out", "state")}

    @cached_property
    def _aliased(self) -> bool:
        """Whether ``repr`` is another name of ``out_repr``, which then comes first."""
        names = list(self.defaults)
        return {"repr", "out_repr"} <= set(names) and names.index("out_repr") < names.index("repr")

    def options(self, given: dict) -> dict:
        """All options, those that are given and defaults; two names of one representation become one."""
        result = {**self.defaults, **given}
        if self._aliased and result["repr"] is not None:
            result["out_repr"] = kinematics.chosen(result["out_repr"], result["repr"], self.defaults["out_repr"])
            result["repr"] = None
        return result


_PLACED = {
    "joint_transforms": joint_motion.joint_transforms,
    "motion_subspaces": joint_motion.motion_subspaces,
    "link_transforms": kinematics.link_transforms,
    "link_jacobians": jacobians.link_jacobians,
    "link_spatial_inertias": inertia.link_spatial_inertia,
    "crb_inertias": inertia.crb_inertia,
    "mass_matrix": matrices.mass_matrix,
    "mass_matrix_inverse": matrices.mass_matrix_inverse,
    "gravity_forces": forces.gravity_forces,
    "total_momentum_jacobian": momentum.total_momentum_jacobian,
    "centroidal_momentum_jacobian": momentum.centroidal_momentum_jacobian,
    "locked_spatial_inertia": momentum.locked_spatial_inertia,
    "locked_centroidal_inertia": momentum.locked_centroidal_inertia,
    "average_velocity_jacobian": momentum.average_velocity_jacobian,
    "average_centroidal_velocity_jacobian": momentum.average_centroidal_velocity_jacobian,
    "com_position": com.com_position,
    "com_jacobian": com.com_jacobian,
    "potential_energy": energy.potential_energy,
    "constraint_jacobian": loops.constraint_jacobian,
}

_MOVING = {
    "joint_twists": joint_motion.joint_twists,
    "joint_bias_accelerations": joint_motion.joint_bias_accelerations,
    "link_velocities": kinematics.link_velocities,
    "link_bias_accelerations": kinematics.link_bias_accelerations,
    "link_jacobian_derivatives": jacobians.link_jacobian_derivatives,
    "bias_forces": forces.bias_forces,
    "coriolis_matrix": matrices.coriolis_matrix,
    "total_momentum": momentum.total_momentum,
    "centroidal_momentum": momentum.centroidal_momentum,
    "centroidal_momentum_bias": momentum.centroidal_momentum_bias,
    "average_velocity": momentum.average_velocity,
    "average_centroidal_velocity": momentum.average_centroidal_velocity,
    "com_velocity": com.com_velocity,
    "com_bias_acceleration": com.com_bias_acceleration,
    "kinetic_energy": energy.kinetic_energy,
    "mechanical_energy": energy.mechanical_energy,
    "position_rate": system.position_rate,
    "constraint_bias": loops.constraint_bias,
}

QUANTITIES = {
    **{name: Quantity(f, "q") for name, f in _PLACED.items()},
    **{name: Quantity(f, "qv") for name, f in _MOVING.items()},
    "relative_transform": Quantity(kinematics.relative_transform, "q"),
    "relative_twist": Quantity(kinematics.relative_twist, "qv"),
}
"""Quantities by name. The last two also take the frames `source` and `target`."""
