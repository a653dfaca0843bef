"""Multirotors: articulations that thrusters push."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, is_captured
from newton_like.articulation.articulation import Articulation
from newton_like.articulation.chosen import Chosen, write
from newton_like.articulation.drawing import THRUST
from newton_like.articulation.multirotor.allocation import EQUAL_WEIGHTS, checked_weights, refuse_unused_weights
from newton_like.articulation.multirotor.config import MultirotorCfg
from newton_like.articulation.multirotor.data import MultirotorData
from newton_like.articulation.multirotor.lee import LeeController
from newton_like.articulation.multirotor.rotors import Rotors
from newton_like.articulation.multirotor.thruster import Thruster
from newton_like.coercion import as_flag
from newton_like.kernels.articulation.multirotor.records import BODY_DRAG, ROTOR_DRAG
from newton_like.model.arguments import check_choice


class Multirotor(Articulation):
    """An articulation with thrusters, in every world.

    A step of an environment is that of an :class:`newton_like.articulation.Articulation`, with :meth:`set_thrust_target`,
    :meth:`set_wrench_target` or a controller in the attribute `controller`. ``write_data_to_sim`` runs the controller, advances the motors
    by a physics step, and adds their wrenches, at the poses of the moment, to the external wrenches on the bodies.

    Args:
        model: a :class:`newton_like.Model` or a :class:`newton_like.articulation.SimulationContext`.
        pattern: pattern of the labels of articulations; one in each world.
        cfg: thrusters and forces of the air.
        actuators: of the joints, as for :class:`newton_like.articulation.Articulation`.
        evaluator: ``"general"``: the kernel for all vehicles; ``"specialised"``: faster code for this vehicle; ``"auto"``: the second
            from 256 worlds on. Both give the same bits on a CPU.
        **options: further arguments of that class.

    Attributes:
        cfg: a copy of the settings; edits of the given ones do not change this multirotor.
        rotors: the :class:`newton_like.articulation.multirotor.rotors.Rotors`.
        thrusters: the groups of thrusters by name, :class:`newton_like.articulation.multirotor.Thruster`.
        controller: a :class:`newton_like.articulation.multirotor.LeePositionController` or another Lee controller of this multirotor, which
            sets the targets in every ``write_data_to_sim``; None: none.
        data: the :class:`newton_like.articulation.multirotor.MultirotorData`.

    Raises:
        ValueError: thrusters on bodies that do not exist, numbers out of range, a matrix of another shape; see also ``Articulation``.
        TypeError: numbers of another type.
    """

    adds_wrenches = True
    _has_rotors = True

    def __init__(
        self, model, pattern, cfg: MultirotorCfg, actuators: dict | None = None, *, evaluator: str = "auto", **options
    ):
        check_choice(evaluator, "evaluator", ("auto", "general", "specialised"))
        if not isinstance(cfg, MultirotorCfg):
            raise TypeError(f"cfg must be a MultirotorCfg, not {type(cfg).__name__}")
        if "init_state" in options:
            cfg = replace(cfg, init_state=options.pop("init_state"))
        if isinstance(cfg.actuators, dict):
            # copies: settings may be edited for the next vehicle
            cfg = replace(cfg, actuators={group: copy(own) for group, own in cfg.actuators.items()})
        super().__init__(model, pattern, actuators, init_state=cfg.init_state, **options)
        self.cfg = cfg
        self.rotors = Rotors(self.model, self._layout.bodies, self.body_names, cfg, evaluator)
        of_joints = super().actuators
        twice = [group for group in self.rotors.groups if group in of_joints]
        if twice:
            raise ValueError(
                f"group '{twice[0]}' is one of thrusters and one of joint actuators; give one of them another name, because both are in"
                " `actuators`"
            )
        self.thrusters = {group: Thruster(self.rotors, group) for group in self.rotors.groups}
        self._controller = None
        self.data.take_thrusters(self.rotors)
        if as_flag(cfg.debug_vis, "debug_vis"):
            self.set_debug_vis(True)

    @property
    def controller(self):
        """The controller that sets the targets; see the class.

        Raises:
            TypeError: not a Lee controller.
            ValueError: a controller of another multirotor.
        """
        return self._controller

    @controller.setter
    def controller(self, controller: LeeController | None) -> None:
        if controller is None:
            self._controller = None
            return
        if not isinstance(controller, LeeController):
            raise TypeError(
                f"controller of '{self._layout.label}' must be a Lee controller or None, not {controller!r}; make one with"
                " LeePositionController(multirotor)"
            )
        other = controller.multirotor
        if other is not self:
            raise ValueError(
                f"the {type(controller).__name__} is one of another multirotor, '{other._layout.label}' in {other.num_instances} worlds"
                f" (this one: '{self._layout.label}' in {self.num_instances} worlds); make it with this one:"
                f" {type(controller).__name__}(multirotor)"
            )
        self._controller = controller

    def _make_data(self) -> MultirotorData:
        return MultirotorData(self.sim, self._layout, self._soft_factor)

    @property
    def state(self):
        """The state of the simulation."""
        return self.sim.state

    @property
    def actuators(self) -> dict:
        """Groups of actuators of joints, and groups of thrusters, by name."""
        return {**super().actuators, **getattr(self, "thrusters", {})}

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
        check_recorded(self.device, "allocation_matrix")
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

    def set_wrench_target(
        self, wrench, env_ids=None, allocation: str = "pseudo_inverse", weights=EQUAL_WEIGHTS
    ) -> None:
        """Sets targets of thrusts from a wrench.

        Args:
            wrench: force [N] and torque about the centre of mass of the vehicle [N m], in axes of the root, ``[chosen instances, 6]``.
            env_ids: chosen instances; None: all.
            allocation: ``"pseudo_inverse"``, or ``"bounded"``: least squares with the limits of the thrusts.
            weights: of the errors of the six components in bounded allocation, relative to what the thrusters can do; positive.

        Raises:
            ValueError: the allocation is singular, another shape, another `allocation`, weights that are not six positive numbers, or
                weights without bounded allocation.
        """
        if allocation not in ("pseudo_inverse", "bounded"):
            raise ValueError(f"allocation {allocation!r} must be 'pseudo_inverse' or 'bounded'")
        if weights is not EQUAL_WEIGHTS:
            refuse_unused_weights(checked_weights(weights), allocation)
        self.rotors.allocate(wrench, env_ids, allocation == "bounded", weights)

    def set_wind(self, velocity, env_ids=None) -> None:
        """Sets the velocity of the air in the world, which the drag of body and rotors is relative to.

        Args:
            velocity: [m/s], ``[chosen instances, 3]`` or broadcast to it.
            env_ids: chosen instances; None: all.

        Raises:
            ValueError: neither the body nor a rotor has drag; another shape, or numbers that are not finite.
            IndexError: an instance does not exist.
        """
        if not self.rotors.air & (BODY_DRAG | ROTOR_DRAG):
            raise ValueError(
                f"'{self._layout.label}' has no drag, so that wind has no effect; give MultirotorCfg.drag or rotor_drag of the thrusters"
            )
        rows = self._rows(env_ids)
        write(self.rotors.flight.wind, rows, Chosen(None, 3, self.device), velocity, "velocity")

    def thruster_parameter(self, name: str) -> np.ndarray:
        """A parameter of the thrusters, ``[num_instances, num_thrusters]``: ``thrust_constant``, ``thrust_min``, ``thrust_max``,
        ``time_constant_up``, ``time_constant_down``, ``max_thrust_rate``, ``torque_to_thrust_ratio``, ``efficiency``, ``rotor_drag``,
        ``radius`` or ``rotor_inertia``; see :class:`newton_like.articulation.multirotor.ThrusterCfg`.

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

    def add_wrenches(self) -> None:
        """Runs the controller and the motors, and adds the wrenches of thrusters and of the air to ``sim.state.body_f``."""
        self.rotors.run(self.sim.state, self.sim.dt, self._controller)

    def renew(self) -> None:
        """Renews the parameters of rotors and controller that were edited, before a graph reads them."""
        super().renew()
        self.rotors.renew(self.sim.dt, self._controller)

    def _apply_wrenches(self) -> None:
        if self.sim.graph is not None:
            self.sim.graph.reads(self)
        active = self.permanent_wrench_composer.active or self.instantaneous_wrench_composer.active
        if active or self._pressed or is_captured(self.device):
            super()._apply_wrenches()
        else:
            # nothing of its own to add to: one launch writes the forces
            self.sim.forward()
            added = not self._pressing.is_first(self, self.sim.steps)
            self.rotors.run(self.sim.state, self.sim.dt, self._controller, added=added)

    def _draw(self, markers, poses: np.ndarray, rows: np.ndarray) -> None:
        super()._draw(markers, poses, rows)
        cfg, rotors = self.debug_vis_cfg, self.rotors
        if cfg.thrusts:
            hubs, axes = rotors.hubs_at(poses)
            thrusts = self.data.applied_thrust.numpy()[rows, :, None]
            self._draw_arrows(markers, hubs, thrusts * axes, THRUST, rows)
        if cfg.targets and self.controller is not None:
            self.controller.draw(markers, poses[:, 0], rows, self._size(), self._world_rows(rows))

    def reset(self, env_ids=None) -> None:
        """Resets instances as an articulation, and their rotors to ``data.default_thruster_rps`` with the thrusts of these speeds.

        Args:
            env_ids: instances: None (all), a slice, indices, or a mask of bools.

        Raises:
            IndexError: an instance does not exist.
        """
        rows = self._rows(env_ids)
        super().reset(rows)
        self.rotors.reset(rows)
