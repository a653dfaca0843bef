"""Conversion of the arguments of controllers and inverse kinematics, one configuration or a batch, to NumPy arrays in double precision."""

from __future__ import annotations

import numpy as np

from newton_like.arrays import host_array
from newton_like.robot.arguments import check_rigid
from newton_like.robot.errors import RobotError, ShapeError


def as_poses(value, what: str) -> np.ndarray:
    """Homogeneous transforms, ``[4, 4]`` or ``[batch, 4, 4]``.

    Raises:
        ShapeError, TypeError: another shape, or no numbers.
        RobotError: a matrix that is no rigid motion.
    """
    try:
        T = np.asarray(host_array(value, what), dtype=float, order="C")
    except ValueError as error:
        raise ShapeError(f"{what} must have the shape [4, 4] or [batch, 4, 4]") from error
    if T.ndim not in (2, 3) or T.shape[-2:] != (4, 4) or not T.size:
        raise ShapeError(f"{what} has shape {T.shape}; give a pose [4, 4], or [batch, 4, 4]")
    if not np.isfinite(T).all():
        raise RobotError(f"{what} has a number that is not finite")
    check_rigid(T, what)
    return T


def check_limits(names, lower: np.ndarray, upper: np.ndarray) -> None:
    """Raises RobotError for the first joint whose lower limit is above its upper limit."""
    wrong = lower > upper
    if wrong.any():
        i = int(np.argmax(wrong))
        raise RobotError(f"joint {names[i]!r} has a lower limit {lower[i]:g} above its upper limit {upper[i]:g}")


def as_vectors(value, size: int, what: str) -> np.ndarray:
    """Finite numbers, ``[size]`` or ``[batch, size]``.

    Raises:
        ShapeError, TypeError: another shape, or no numbers.
        RobotError: a number that is not finite.
    """
    try:
        x = np.asarray(host_array(value, what), dtype=float, order="C")
    except ValueError as error:
        raise ShapeError(f"{what} must have the shape [{size}] or [batch, {size}]") from error
    if x.ndim not in (1, 2) or x.shape[-1] != size or (x.ndim == 2 and not len(x)):
        raise ShapeError(f"{what} has shape {x.shape}; give [{size}] or [batch, {size}]")
    if not np.isfinite(x).all():
        raise RobotError(f"{what} has a number that is not finite")
    return x


def as_gain(value, size: int, what: str) -> np.ndarray:
    """A gain as a matrix ``[size, size]``, from one number, ``[size]`` or ``[size, size]``.

    Raises:
        ShapeError, TypeError: another shape, or no numbers.
        RobotError: a number that is not finite, or a negative one on the diagonal.
    """
    try:
        x = np.asarray(host_array(value, what), dtype=float, order="C")
    except ValueError as error:
        raise ShapeError(f"{what} must be one number, [{size}] or [{size}, {size}]") from error
    if x.shape not in ((), (size,), (size, size)):
        raise ShapeError(f"{what} has shape {x.shape}; give one number, [{size}] or [{size}, {size}]")
    if not np.isfinite(x).all():
        raise RobotError(f"{what} has a number that is not finite")
    x = x if x.ndim == 2 else np.diag(np.broadcast_to(x, (size,)))
    if (np.diagonal(x) < 0.0).any():
        raise RobotError(f"{what} has a negative number on its diagonal: {np.diagonal(x).tolist()}")
    return x


def batch_of(given: dict[str, np.ndarray], dims: dict[str, int]) -> int | None:
    """The number of configurations of arguments; None: one that is no batch.

    Args:
        given: arrays by name.
        dims: dimensions of each for one configuration.

    Raises:
        ShapeError: they differ.
    """
    counts = {name: len(x) for name, x in given.items() if x.ndim > dims[name]}
    if len(set(counts.values())) > 1:
        raise ShapeError(
            "arguments have different numbers of configurations: "
            + ", ".join(f"{name} has {n}" for name, n in counts.items())
        )
    return next(iter(counts.values()), None)
