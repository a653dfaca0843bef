"""Assignment to data of assets: ``robot.data.default_joint_pos = values`` copies into the array; what is computed is refused."""

from __future__ import annotations

import warp as wp

from newton_like.articulation.chosen import Chosen, write
from newton_like.options import did_you_mean

SETTABLE = ("default_", "soft_")
"""Beginnings of the names of data that users set. Other data are computed, or are arrays of the simulation."""

COMMANDS = ("joint_pos_target", "joint_vel_target", "joint_effort_target", "thrust_target", "thruster_state")
"""Further data that users set."""

METHODS = {
    "joint_pos": "write_joint_position_to_sim",
    "joint_vel": "write_joint_velocity_to_sim",
    "joint_stiffness": "write_joint_stiffness_to_sim",
    "joint_damping": "write_joint_damping_to_sim",
    "joint_armature": "write_joint_armature_to_sim",
    "joint_effort_limits": "write_joint_effort_limit_to_sim",
    "joint_vel_limits": "write_joint_velocity_limit_to_sim",
    "joint_velocity_limits": "write_joint_velocity_limit_to_sim",
    "joint_pos_limits": "write_joint_position_limit_to_sim",
    "joint_limits": "write_joint_position_limit_to_sim",
    "joint_friction": "write_joint_friction_coefficient_to_sim",
    "joint_friction_coeff": "write_joint_friction_coefficient_to_sim",
    "joint_dynamic_friction_coeff": "write_joint_friction_coefficient_to_sim",
    "joint_viscous_friction_coeff": "write_joint_friction_coefficient_to_sim",
    "body_mass": "write_body_mass_to_sim",
    "body_inertia": "write_body_inertia_to_sim",
    "body_com_pos_b": "write_body_com_to_sim",
    "com_pos_b": "write_body_com_to_sim",
}
"""Methods that write data of the simulation, by name of the data."""


def method_for(name: str) -> str:
    """The method of an asset that writes data of the simulation; empty for data that only follow from others."""
    base = name.removesuffix("_wxyz")
    if base in METHODS:
        return METHODS[base]
    owner, _, rest = base.partition("_")
    if owner in ("root", "object") and rest.endswith("_w") and "acc" not in rest:
        frame = next((f"{f}_" for f in ("link", "com") if rest.startswith(f"{f}_")), "")
        part = "state" if "state" in rest else "velocity" if "vel" in rest else "pose"
        return f"write_{owner}_{frame}{part}_to_sim"
    if owner in ("fixed", "spatial"):
        return f"set_{base.replace('pos_limits', 'limit')}"
    return ""


def assign(data, name: str, value) -> None:
    """Copies a value into an array of data that users set.

    Args:
        data: the data.
        name: name of the array.
        value: numbers that broadcast to its shape.

    Raises:
        AttributeError: no such data; data of the simulation (the message names the method that writes them), or that are computed.
        ValueError: another shape; numbers that are not finite.
        TypeError: not numbers.
    """
    target = getattr(data, name)
    if value is target:
        # the end of an assignment such as ``data.x += 1``
        return
    if not isinstance(target, wp.array):
        raise AttributeError(f"{name!r} is no array of the data, so that it cannot be set to {value!r}")
    if not name.startswith(SETTABLE) and name not in COMMANDS:
        method = method_for(name)
        cure = f"belongs to the simulation; set it by {method}" if method else "is computed, and cannot be set"
        if not method:
            cure += "; the write_*_to_sim and set_* methods of the asset set what it follows from"
        raise AttributeError(f"{name!r} {cure}")
    rows, items = (Chosen(None, n, target.device) for n in target.shape[:2])
    write(target, rows, items, value, name)


class Assigned:
    """Base class of data. After :meth:`close`, an assignment to an attribute copies into its array, see :func:`assign`."""

    _closed = False

    def close(self) -> None:
        """Ends the time in which attributes are made."""
        self._closed = True

    def show(self, **attributes) -> None:
        """Makes or replaces attributes, also after :meth:`close`."""
        vars(self).update(attributes)

    def __setattr__(self, name: str, value) -> None:
        if name.startswith("_") or not self._closed:
            object.__setattr__(self, name, value)
        else:
            assign(self, name, value)


def no_attribute(data, name: str) -> AttributeError:
    """The error for data that do not exist, with near names."""
    hint = did_you_mean(name, (n for n in dir(data) if not n.startswith("_")))
    return AttributeError(f"{type(data).__name__} has no attribute {name!r}{hint}", name=name, obj=data)
