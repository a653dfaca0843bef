"""Settings of multirotors: thrusters, forces of the air, and the vehicle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, fields

import numpy as np

from newton_like.articulation.initial import InitialStateCfg
from newton_like.coercion import as_number
from newton_like.options import Settings, configuration

SCHEMES = ("exact", "euler", "rk4")
"""Integration schemes of motors."""

STATES = ("speed", "thrust")
"""What a motor follows its target with."""


@configuration(slots=True)
class ThrusterCfg(Settings):
    """A group of thrusters of the same make.

    A thruster follows the target of its thrust, within ``thrust_range``, with a first-order lag. Its state is the speed of the rotor, with
    the thrust T = k n |n|, or the thrust itself. Numbers are those of all thrusters of the group, or dictionaries by patterns of names.

    Attributes:
        thruster_names_expr: regular expressions of names of bodies, or of frames that were merged into bodies. A thruster is at the
            origin of its body or frame.
        thrust_range: least and largest thrust [N].
        thrust_constant: k [N s^2 per square revolution]: (2 pi)^2 times the constant for rad/s, 3600 times the one for 1/min.
        state: ``"speed"`` or ``"thrust"``.
        time_constant_up, time_constant_down: of the lag while the magnitude of the state grows and falls [s]; 0: no lag.
        max_thrust_rate: largest rate of the thrust [N/s].
        torque_to_thrust_ratio: torque about the axis of thrust for each newton [m]; it acts on the body against the rotor's spin.
        integration: ``"exact"``: x + (1 - exp(-h)) (x* - x) with h = dt / time constant; ``"euler"``: the implicit Euler method, with
            the factor h / (1 + h); ``"rk4"``: the Runge-Kutta method of order four, for h below 2.78.
        efficiency: share of the thrust that acts on the body, from 0 to 1; 0: the thruster failed.
        rotor_drag: force in the plane of the rotor for each m/s and rev/s [N s^2 / m]. Thrusters whose state is the thrust have none.
        radius: of the rotor [m], for the ground effect.
        rotor_inertia: moment of inertia of the rotor and what turns with it, about its axis [kg m^2]. With more than 0, its angular
            momentum gives gyroscopic torques, and its acceleration a torque about its axis. The inertia of the body contains that of the
            rotor. Thrusters whose state is the thrust have none.
    """

    thruster_names_expr: str | Sequence[str] = ".*"
    thrust_range: tuple[float, float] = (0.0, 10.0)
    thrust_constant: float | dict[str, float] = 1.0e-3
    state: str = "speed"
    time_constant_up: float | dict[str, float] = 0.05
    time_constant_down: float | dict[str, float] = 0.05
    max_thrust_rate: float | dict[str, float] = math.inf
    torque_to_thrust_ratio: float | dict[str, float] = 0.01
    integration: str = "exact"
    efficiency: float | dict[str, float] = 1.0
    rotor_drag: float | dict[str, float] = 0.0
    radius: float | dict[str, float] = 0.1
    rotor_inertia: float | dict[str, float] = 0.0


@configuration(slots=True)
class BodyDrag(Settings):
    """Drag of the air on the root, for each axis of the root: linear and quadratic in the velocity of the centre of mass relative to the
    wind, and in the angular velocity.

    Attributes:
        linear, quadratic: of the force [N s/m, N s^2/m^2].
        angular, angular_quadratic: of the torque [N m s, N m s^2].
    """

    linear: tuple[float, float, float] | float = 0.0
    quadratic: tuple[float, float, float] | float = 0.0
    angular: tuple[float, float, float] | float = 0.0
    angular_quadratic: tuple[float, float, float] | float = 0.0

    def numbers(self) -> list[np.ndarray]:
        """The coefficients as four vectors.

        Raises:
            TypeError, ValueError: not a number or three numbers, not finite, or negative.
        """
        result = []
        for each in fields(self):
            value = np.asarray(getattr(self, each.name), dtype=float)
            if value.shape not in ((), (3,)) or not np.isfinite(value).all() or (value < 0).any():
                raise ValueError(
                    f"drag.{each.name} must be a number or three numbers, not negative; got {getattr(self, each.name)!r}"
                )
            result.append(np.broadcast_to(value, 3))
        return result


@configuration(slots=True)
class GroundEffect(Settings):
    """Thrust near the ground: T / (1 - strength (R / 4 z)^2), where z is the height of the hub above the ground, at least R / 2.

    Attributes:
        height: of the ground [m].
        strength: 1 for a single rotor (Cheeseman and Bennett 1955); at most 4.
    """

    height: float = 0.0
    strength: float = 1.0

    def numbers(self) -> tuple[float, float]:
        """Height and strength. Raises ValueError: a strength below 0 or of 4 or more, beyond which thrust is not finite."""
        strength = as_number(self.strength, "ground_effect.strength")
        if not 0.0 <= strength < 4.0:
            raise ValueError(f"ground_effect.strength {strength:g} must be from 0 to below 4")
        return as_number(self.height, "ground_effect.height"), strength


@configuration(slots=True)
class MultirotorCfg(Settings):
    """A multirotor.

    Attributes:
        actuators: groups of thrusters by name. Thrusters are numbered group after group, in the order of bodies and frames.
        thruster_force_direction: direction of thrust in the frame of each thruster.
        rotor_directions: spin of each thruster about its direction of thrust: 1 counter-clockwise, -1 clockwise, seen from the side to
            which the thrust points; a list, or a dictionary by patterns of names that match all thrusters. None: all 1. The torque of
            drag acts on the body against the spin.
        allocation_matrix: ``[6, n]``: force and torque about the centre of mass of the vehicle, in axes of the root, for each newton.
            None: from the geometry. A given matrix replaces the geometry in the dynamics, too.
        rps: initial speeds [rev/s], a number or a dictionary by patterns of names that match all thrusters; those of `init_state` come
            first.
        drag: drag of the body; None: none.
        ground_effect: None: none.
        init_state: defaults of root, joints and rotors, see :class:`newton_like.articulation.InitialStateCfg`; None: those of the model.
        debug_vis: whether debug drawing is on from the start.
    """

    actuators: dict[str, ThrusterCfg] = field(default_factory=lambda: {"thrusters": ThrusterCfg()})
    thruster_force_direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    rotor_directions: Sequence[float] | dict[str, float] | None = None
    allocation_matrix: Sequence | None = None
    rps: float | dict[str, float] = 100.0
    drag: BodyDrag | None = None
    ground_effect: GroundEffect | None = None
    init_state: InitialStateCfg | None = None
    debug_vis: bool = False


def shares(scheme: str, dt: float, time_constant: np.ndarray, name: str = "integration") -> np.ndarray:
    """The share of the way to its target that a first-order lag goes in a time step.

    Args:
        scheme: one of `SCHEMES`.
        dt: time step [s].
        time_constant: of any shape [s].
        name: for errors.

    Raises:
        ValueError: a time step of 2.78 time constants or more for ``"rk4"``, which is not stable there.
    """
    tau = np.asarray(time_constant, dtype=float)
    h = np.divide(dt, tau, out=np.full(tau.shape, np.inf), where=tau > 0.0)
    if scheme == "exact":
        return -np.expm1(-h)
    if scheme == "euler":
        return dt / (tau + dt)
    if (h[tau > 0.0] >= 2.78).any():
        raise ValueError(
            f"{name} 'rk4' is not stable for a time step of {dt:g} s with a time constant of {tau[tau > 0.0].min():g} s; use 'exact', or"
            f" steps below {2.78 * tau[tau > 0.0].min():g} s"
        )
    with np.errstate(invalid="ignore"):
        share = h - h**2 / 2 + h**3 / 6 - h**4 / 24
    return np.where(tau > 0.0, share, 1.0)
