"""Groups of thrusters of a multirotor."""

from __future__ import annotations

import warp as wp

from newton_like.articulation.multirotor.config import ThrusterCfg
from newton_like.articulation.multirotor.rotors import PARAMETERS
from newton_like.options import unknown_attribute


class Thruster:
    """A group of thrusters, with arrays ``[num_instances, num_thrusters]`` of its thrusters, which share memory with those of all. Its
    attributes cannot be set; the multirotor has methods that set targets and parameters.

    Attributes:
        cfg: its settings.
        thruster_names, thruster_indices: names of the thrusters, and indices among all thrusters of the multirotor.
        thrust_target, computed_thrust, applied_thrust: thrusts [N], see :class:`newton_like.articulation.multirotor.MultirotorData`.
        state: speeds [rev/s], or thrusts [N] if the state of the group is the thrust.

    Args:
        rotors: the :class:`newton_like.articulation.multirotor.rotors.Rotors`.
        group: name of the group.
    """

    def __init__(self, rotors, group: str):
        self.cfg: ThrusterCfg = rotors.cfg.actuators[group]
        self.thruster_indices = list(rotors.groups[group])
        self.thruster_names = [rotors.names[i] for i in self.thruster_indices]
        # thrusters are numbered group after group
        first, last = self.thruster_indices[0], self.thruster_indices[-1] + 1
        flight = rotors.flight
        self.thrust_target: wp.array = flight.target[:, first:last]
        self.computed_thrust: wp.array = flight.computed[:, first:last]
        self.applied_thrust: wp.array = flight.applied[:, first:last]
        self.state: wp.array = flight.speed[:, first:last]
        self._is_made = True

    def __setattr__(self, name: str, value) -> None:
        if getattr(self, "_is_made", False):
            calls = dict.fromkeys(PARAMETERS, f"set_thruster_parameter({name!r}, ...)") | {
                "thrust_target": "set_thrust_target(...)"
            }
            if name not in calls:
                raise unknown_attribute(self, name, "attributes of a group of thrusters cannot be set")
            raise AttributeError(
                f"{name!r} of a group of thrusters cannot be set; call {calls[name]} of its Multirotor"
            )
        super().__setattr__(name, value)

    @property
    def num_thrusters(self) -> int:
        """Number of thrusters."""
        return len(self.thruster_indices)

    @property
    def num_instances(self) -> int:
        """Number of instances."""
        return self.thrust_target.shape[0]

    def __repr__(self) -> str:
        return f"Thruster({', '.join(self.thruster_names)})"
