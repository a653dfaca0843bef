"""The wheels of a mobile base in a state: velocities of the base from those of the wheels, and back."""

from __future__ import annotations

import math

import numpy as np

from newton_like.arrays import host_array
from newton_like.robot.arguments import is_plain_number, one_form, plain_vector
from newton_like.robot.core.state import StateCore
from newton_like.robot.errors import RobotError, ShapeError
from newton_like.robot.structure.mobile_base import (
    MobileBaseType,
    velocity_matrix,
    wheel_axes,
    wheel_matrix,
    wheel_roles,
)

_FORMS = ("body_velocity",), ("linear_velocity", "angular_velocity")


def mobility_of(configuration) -> tuple[list[str], np.ndarray, np.ndarray] | None:
    """Names of the wheel joints, and the matrices from the velocity of the base to those of the wheels and back; None without wheels."""
    base = configuration.mobile_base
    if base is None or base.type is MobileBaseType.Unspecified:
        return None
    axes, roles = wheel_axes(base, configuration.base_link), wheel_roles(base, configuration.base_link)
    return list(base.joints), wheel_matrix(base, axes, roles), velocity_matrix(base, axes, roles)


class Wheels:
    """The wheels of a robot in a state. Sums are written out, so that a configuration of a batch has the same bits as alone.

    Args:
        mobility: see :func:`mobility_of`.
        names: names of the joints of the state.
    """

    def __init__(self, mobility, names: list[str]):
        joints, to_wheels, to_base = mobility
        self._to_wheels, self._to_base = to_wheels.tolist(), to_base.tolist()
        self._places = [names.index(name) for name in joints]

    def velocity(self, qdot: np.ndarray) -> np.ndarray:
        """Velocity of the base link for joint velocities."""
        if qdot.ndim == 1:
            turning = qdot.tolist()
            return np.array(_products(self._to_base, [turning[i] for i in self._places]))
        return np.stack(_products(self._to_base, [qdot[:, i] for i in self._places]), axis=-1)

    def drive(self, core: StateCore, velocity: list[float] | np.ndarray) -> None:
        """Sets the velocities of the wheels for velocities ``[w, vx, vy]`` of the base, three numbers or ``[batch, 3]``."""
        given = core.given["qdot"]
        if type(velocity) is list and given.ndim == 1:
            for i, x in zip(self._places, _products(self._to_wheels, velocity), strict=True):
                given[i] = x
            return
        velocity = np.asarray(velocity)
        if given.ndim == velocity.ndim and len(given) != len(velocity):
            raise ShapeError(
                f"body_velocity has {len(velocity)} configurations, but qdot of the state has {len(given)}"
            )
        batch = max(given.shape[:-1], velocity.shape[:-1])
        qdot = np.array(np.broadcast_to(given, (*batch, given.shape[-1])))
        for i, x in zip(self._places, _products(self._to_wheels, list(velocity.T)), strict=True):
            qdot[..., i] = x
        core.set("qdot", qdot)


def _products(matrix: list[list[float]], x: list) -> list:
    """The products of the rows of a matrix and a vector of numbers, or of columns of a batch."""
    if len(x) == 3:
        a, b, c = x
        return [u * a + v * b + w * c for u, v, w in matrix]
    if len(x) == 2:
        a, b = x
        return [u * a + v * b for u, v in matrix]
    a, b, c, d = x
    return [u * a + v * b + w * c + z * d for u, v, w, z in matrix]


def base_velocity(args: tuple, named: dict) -> list[float] | np.ndarray:
    """``[w, vx, vy]`` of the arguments of :meth:`Robot.compute_mobility_inverse_diff_kinematics`, three numbers, or ``[batch, 3]``."""
    found, count = None, len(args) + len(named)
    if count == 1:
        found = plain_vector(args[0] if args else named.get("body_velocity"), 3)
    elif count == 2:
        x, w = args if len(args) == 2 else (named.get("linear_velocity"), named.get("angular_velocity"))
        pair = plain_vector(x, 2) if is_plain_number(w) else None
        found = None if pair is None else [float(w), *pair]
    if found is not None:
        if not math.isfinite(math.hypot(*found)) and not all(map(math.isfinite, found)):
            raise RobotError("the velocity of the base has numbers that are not finite")
        return found
    given = one_form("compute_mobility_inverse_diff_kinematics", _FORMS, args, named)
    if "body_velocity" in given:
        velocity = given["body_velocity"]
        if type(velocity) is not np.ndarray:
            velocity = host_array(velocity, "body_velocity")
        velocity = np.asarray(velocity, dtype=float)
        velocity = velocity[:, 0] if velocity.shape == (3, 1) else velocity
    else:
        x = np.asarray(host_array(given["linear_velocity"], "linear_velocity"), dtype=float)
        w = np.asarray(host_array(given["angular_velocity"], "angular_velocity"), dtype=float)
        x = x[:, 0] if x.shape == (2, 1) else x
        if x.ndim not in (1, 2) or x.shape[-1] != 2 or w.shape not in ((), x.shape[:-1]):
            raise ShapeError(
                f"linear_velocity has shape {x.shape} and angular_velocity {w.shape}; give [vx, vy] and a number: [2], or [batch, 2] and "
                "[batch]"
            )
        velocity = np.concatenate([np.broadcast_to(w, x.shape[:-1])[..., None], x], axis=-1)
    if velocity.ndim not in (1, 2) or velocity.shape[-1] != 3:
        raise ShapeError(f"body_velocity has shape {velocity.shape}; give [w, vx, vy]: [3] or [batch, 3]")
    if not np.isfinite(velocity).all():
        raise RobotError("the velocity of the base has numbers that are not finite")
    return velocity.tolist() if velocity.ndim == 1 else velocity
