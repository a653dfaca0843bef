"""The wheels of a mobile base in a state: velocities of the base from those of the wheels, and back."""

from __future__ import annotations

import numpy as np

from newton_like.arrays import host_array
from newton_like.robot.arguments import LARGE, is_plain_number, one_form, plain_vector
from newton_like.robot.core.state import StateCore
from newton_like.robot.errors import RobotError, ShapeError
from newton_like.robot.screws import product
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
    """The wheels of a robot in a state.

    Args:
        mobility: see :func:`mobility_of`.
        names: names of the joints of the state.
    """

    def __init__(self, mobility, names: list[str]):
        joints, to_wheels, to_base = mobility
        self.to_wheels, self.to_base = np.ascontiguousarray(to_wheels), np.ascontiguousarray(to_base)
        self.places = np.array([names.index(name) for name in joints])

    def velocity(self, qdot: np.ndarray) -> np.ndarray:
        """Velocity of the base link for joint velocities."""
        return product(self.to_base, qdot[..., self.places])

    def drive(self, core: StateCore, velocity: np.ndarray) -> None:
        """Sets the velocities of the wheels for velocities ``[w, vx, vy]`` of the base, ``[3]`` or ``[batch, 3]``."""
        given = core.given["qdot"]
        if given.ndim == velocity.ndim == 1:
            # as product
            given[self.places] = np.matmul(self.to_wheels, np.ascontiguousarray(velocity)[:, None])[:, 0]
            core.written("qdot")
        else:
            if given.ndim == velocity.ndim and len(given) != len(velocity):
                raise ShapeError(
                    f"body_velocity has {len(velocity)} configurations, but qdot of the state has {len(given)}"
                )
            batch = max(given.shape[:-1], velocity.shape[:-1])
            qdot = np.array(np.broadcast_to(given, (*batch, given.shape[-1])))
            qdot[..., self.places] = product(self.to_wheels, velocity)
            core.set("qdot", qdot)


def base_velocity(args: tuple, named: dict) -> np.ndarray:
    """``[w, vx, vy]`` of the arguments of :meth:`Robot.compute_mobility_inverse_diff_kinematics`, ``[3]`` or ``[batch, 3]``."""
    if len(args) == 2 and not named:
        x, w = args
        if is_plain_number(w) and (pair := plain_vector(x, 2)) is not None:
            return _finite(np.array((float(w), *pair)))
    elif (
        len(args) == 1 and not named and type(x := args[0]) is np.ndarray and x.shape == (3,) and x.dtype.kind in "iuf"
    ):
        return _finite(np.array(x, dtype=float))
    given = one_form("compute_mobility_inverse_diff_kinematics", _FORMS, args, named)
    if "body_velocity" in given:
        velocity = given["body_velocity"]
        if type(velocity) is not np.ndarray:
            velocity = host_array(velocity, "body_velocity")
        velocity = np.asarray(velocity, dtype=float)
        velocity = velocity[:, 0] if velocity.shape == (3, 1) else velocity
    elif (
        is_plain_number(w := given["angular_velocity"]) and (x := plain_vector(given["linear_velocity"], 2)) is not None
    ):
        velocity = np.array((float(w), x[0], x[1]), dtype=float)
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
    return _finite(velocity)


def _finite(velocity: np.ndarray) -> np.ndarray:
    # a sum of squares is finite unless a number is not, or is large
    if not (velocity.ndim == 1 and velocity.dot(velocity) < LARGE) and not np.isfinite(velocity).all():
        raise RobotError("the velocity of the base has numbers that are not finite")
    return velocity
