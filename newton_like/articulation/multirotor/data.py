"""Data of a multirotor: that of an articulation, and thrusts."""

from __future__ import annotations

import warp as wp

from newton_like.articulation.data.articulation_data import ArticulationData


class MultirotorData(ArticulationData):
    """Data of a :class:`newton_like.articulation.multirotor.Multirotor`. Arrays have the shape ``[num_instances, num_thrusters]``.

    Attributes:
        thruster_names: names of the thrusters.
        default_thruster_rps: speeds to which a reset leads [rev/s]; writable.
        thrust_target: targets of the thrusts [N], as they were set, or as the controller set them.
        computed_thrust: thrusts of the motors [N].
        applied_thrust: the same within ``thrust_range``, times the efficiency, without the ground effect [N].
        thruster_state: speeds [rev/s], or thrusts [N] of thrusters whose state is the thrust; writable.
    """

    thruster_names: list[str]
    default_thruster_rps: wp.array
    thrust_target: wp.array
    computed_thrust: wp.array
    applied_thrust: wp.array
    thruster_state: wp.array

    def take_thrusters(self, rotors) -> None:
        """Shows the arrays of thrusters.

        Args:
            rotors: the :class:`newton_like.articulation.multirotor.rotors.Rotors`.
        """
        flight = rotors.flight
        self.show(
            thruster_names=list(rotors.names),
            default_thruster_rps=rotors.default_speeds,
            thrust_target=flight.target,
            computed_thrust=flight.computed,
            applied_thrust=flight.applied,
            thruster_state=flight.speed,
        )
