"""Multirotors: articulations that thrusters push."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.articulation.articulation import Articulation
from newton_like.articulation.chosen import Chosen, choose, write
from newton_like.articulation.multirotor.config import MultirotorCfg
from newton_like.articulation.multirotor.rotors import Rotors


class Multirotor(Articulation):
    """An articulation with thrusters, in every world.

    A step of an environment is that of an :class:`newton_like.articulation.Articulation`, with :meth:`set_thrust_target`,
    :meth:`set_wrench_target` or a controller in the attribute `controller`. ``write_data_to_sim`` runs the controller, advances the motors by a
    physics step, and adds their wrenches, at the poses of the moment, to the external wrenches on the bodies.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`, or a model.
        pattern: pattern of the labels of articulations; one in each world.
        cfg: thrusters and forces of the air.
        **options: further arguments of :class:`newton_like.articulation.Articulation`.

    Attributes:
        rotors: the :class:`newton_like.articulation.multirotor.rotors.Rotors`.
        thrusters: indices of the thrusters of each group.
        controller: a :class:`newton_like.articulation.multirotor.lee.LeeController` that sets the targets in every ``write_data_to_sim``;
            None: none.

    Raises:
        ValueError: thrusters on bodies that do not exist, numbers out of range, a matrix of another shape.
        TypeError: numbers of another type.
    """

    def __init__(self, sim, pattern, cfg: MultirotorCfg, **options):
        super().__init__(sim, pattern, **options)
        self.rotors = Rotors(self.model, self.layout.bodies, self.body_names, cfg)
        self.thrusters = self.rotors.groups
        self.controller = None
        flight = self.rotors.flight
        self.data.default_thruster_rps = self.rotors.default_speeds
        self.data.thrust_target, self.data.computed_thrust = flight.target, flight.computed
        self.data.applied_thrust, self.data.thruster_state = flight.applied, flight.speed

    @property
    def state(self):
        """The state of the simulation."""
        return self.sim.state

    @property
    def thruster_names(self) -> list[str]:
        """Names of the thrusters."""
        return list(self.rotors.names)

    @property
    def num_thrusters(self) -> int:
        """Number of thrusters of an instance."""
        return len(self.rotors.names)

    @property
    def allocation_matrix(self) -> wp.array:
        """Force [N] and torque [N m] about the centre of mass of the vehicle for each newton of thrust, in axes of the root: ``[6, n]``;
        ``[num_instances, 6, n]`` where worlds differ. It follows edits of masses."""
        return wp.array(self.rotors.allocation_matrix, dtype=self.model.dtype, device=self.device)

    def set_thrust_target(self, target, thruster_ids=None, env_ids=None) -> None:
        """Sets targets of thrusts.

        Args:
            target: [N], ``[chosen instances, chosen thrusters]`` or broadcast to it.
            thruster_ids: chosen thrusters, as indices, a slice or a mask; None: all.
            env_ids: chosen instances, likewise.

        Raises:
            IndexError: a thruster or an instance does not exist.
            ValueError: another shape, or numbers that are not finite.
        """
        self.rotors.set_target(target, thruster_ids, env_ids)

    def set_wrench_target(self, wrench, env_ids=None, allocation: str = "pseudo_inverse", weights=(1.0,) * 6) -> None:
        """Sets targets of thrusts from a wrench.

        Args:
            wrench: force [N] and torque about the centre of mass of the vehicle [N m], in axes of the root, ``[chosen instances, 6]``.
            env_ids: chosen instances; None: all.
            allocation: ``"pseudo_inverse"``, or ``"bounded"``: least squares with the limits of the thrusts.
            weights: of the errors of the six components in bounded allocation, relative to what the thrusters can do.

        Raises:
            ValueError: the allocation is singular, another shape, or another `allocation`.
        """
        if allocation not in ("pseudo_inverse", "bounded"):
            raise ValueError(f"allocation {allocation!r} must be 'pseudo_inverse' or 'bounded'")
        self.rotors.allocate(wrench, env_ids, allocation == "bounded", weights)

    def set_wind(self, velocity, env_ids=None) -> None:
        """Sets the velocity of the air in the world, which the drag of body and rotors is relative to.

        Args:
            velocity: [m/s], ``[chosen instances, 3]`` or broadcast to it.
            env_ids: chosen instances; None: all.
        """
        rows = choose(env_ids, self.num_instances, self.device, "env_ids")
        write(self.rotors.flight.wind, rows, Chosen(None, 3, self.device), velocity, "velocity")

    def thruster_parameter(self, name: str) -> np.ndarray:
        """A parameter of the thrusters, ``[num_instances, num_thrusters]``: ``thrust_constant``, ``thrust_min``, ``thrust_max``,
        ``time_constant_up``, ``time_constant_down``, ``max_thrust_rate``, ``torque_to_thrust_ratio``, ``efficiency``, ``rotor_drag`` or
        ``radius``; see :class:`newton_like.articulation.multirotor.ThrusterCfg`.

        Raises:
            KeyError: no such parameter.
        """
        return self.rotors.parameter(name)

    def set_thruster_parameter(self, name: str, values, thruster_ids=None, env_ids=None) -> None:
        """Sets a parameter of thrusters, see :meth:`thruster_parameter`. It acts from the next ``write_data_to_sim`` on.

        Args:
            name: of the parameter.
            values: ``[chosen instances, chosen thrusters]`` or broadcast to it.
            thruster_ids, env_ids: as for :meth:`set_thrust_target`.

        Raises:
            KeyError: no such parameter.
            ValueError: another shape, or numbers out of range.
            IndexError: a thruster or an instance does not exist.
        """
        self.rotors.set_parameter(name, values, thruster_ids, env_ids)

    def write_data_to_sim(self) -> None:
        """Writes commands, external wrenches and those of the thrusters to the simulation, and advances the motors by a physics step."""
        super().write_data_to_sim()
        self.rotors.run(self.sim.state, self.sim.dt, self.controller)

    def reset(self, env_ids=None, **options) -> None:
        """Resets instances as an articulation, and their rotors to ``data.default_thruster_rps`` with the thrusts of these speeds."""
        super().reset(env_ids, **options)
        self.rotors.reset(env_ids)
