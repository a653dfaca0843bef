"""Control allocation of multirotors: the wrench of each thrust, and thrusts for a wrench."""

from __future__ import annotations

import numpy as np

AXES = ("force along x", "force along y", "force along z", "torque about x", "torque about y", "torque about z")

_REACHED = 1.0e-5
"""Largest part of a unit wrench that may be missing."""


def rotor_columns(hub, axis, ratio, spin, centre) -> np.ndarray:
    """The wrench of a unit thrust about a centre of mass: the axis, and ``(hub - centre) x axis - spin ratio axis``.

    Args:
        hub: places of the hubs [m], ``[..., n, 3]``.
        axis: unit vectors of thrust, ``[..., n, 3]``.
        ratio: torque for each newton [m], ``[..., n]``.
        spin: 1 counter-clockwise about the axis, -1 clockwise, ``[..., n]``.
        centre: of mass [m], ``[..., n, 3]`` or ``[..., 1, 3]``.

    Returns:
        ``[..., n, 6]``.
    """
    axis = np.asarray(axis, dtype=float)
    drag = (np.asarray(spin, dtype=float) * np.asarray(ratio, dtype=float))[..., None] * axis
    torque = np.cross(np.asarray(hub, dtype=float) - centre, axis) - drag
    return np.concatenate(np.broadcast_arrays(axis, torque), axis=-1)


def pseudo_inverse(matrix: np.ndarray) -> np.ndarray:
    """The Moore-Penrose inverse ``[..., n, 6]`` of allocation matrices ``[..., 6, n]``, whose rows are scaled to equal size first, so that
    small torques of small vehicles count as much as forces."""
    size = _row_sizes(matrix)
    return np.linalg.pinv(matrix / size[..., None], rcond=1.0e-9) / size[..., None, :]


def _row_sizes(matrix: np.ndarray) -> np.ndarray:
    """Norms of the rows; 1 for rows that are zero."""
    size = np.linalg.norm(matrix, axis=-1)
    force = size[..., :3].max(axis=-1, keepdims=True)
    torque = size[..., 3:].max(axis=-1, keepdims=True)
    least = 1.0e-7 * np.concatenate([np.repeat(force, 3, -1), np.repeat(torque, 3, -1)], axis=-1)
    return np.where(size > least, size, 1.0)


def missing_axes(matrix: np.ndarray, wanted: tuple[int, ...]) -> list[str]:
    """Names of the axes of `wanted` along which thrusts cannot make a wrench alone among these axes, for a matrix ``[6, n]``."""
    rows = (matrix / _row_sizes(matrix)[:, None])[list(wanted)]
    rest = np.eye(len(wanted)) - rows @ np.linalg.pinv(rows, rcond=1.0e-6)
    return [AXES[axis] for axis, column in zip(wanted, rest.T, strict=True) if np.abs(column).max() > _REACHED]


def check_allocation(matrix: np.ndarray, full: bool, names: list[str], what: str) -> None:
    """Raises ValueError: an allocation matrix ``[6, n]`` (or several of them) cannot make the wrenches of a controller."""
    wanted = tuple(range(6)) if full else (2, 3, 4, 5)
    matrices = matrix.reshape(-1, 6, matrix.shape[-1])
    rows = (matrices / _row_sizes(matrices)[..., None])[:, list(wanted)]
    poor = np.linalg.matrix_rank(rows, tol=1.0e-6) < len(wanted)
    for world in np.flatnonzero(poor)[:1]:
        missing = missing_axes(matrices[world], wanted)
        if missing:
            kind = "a full wrench" if full else "a thrust along z and three torques"
            where = f" in world {world}" if world else ""
            raise ValueError(
                f"{what}: the allocation of the thrusters {', '.join(names)} is singular{where}: {kind} needs"
                f" every {', '.join(missing)} on its own; change places, directions, spins or torque_to_thrust_ratio of thrusters"
            )


EQUAL_WEIGHTS = (1.0,) * 6
"""Weights of wrenches where none are given."""


def checked_weights(weights) -> np.ndarray:
    """The weights of the six components of a wrench, ``[6]``. Raises ValueError: not six numbers that are positive and finite."""
    try:
        numbers = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.shape != (6,) or not (np.isfinite(numbers) & (numbers > 0.0)).all():
        raise ValueError(
            f"weights {weights!r} must be six positive numbers, for the force and the torque along x, y and z"
        )
    return numbers


def refuse_unused_weights(weights: np.ndarray, allocation: str) -> None:
    """Raises ValueError: weights that differ, of an allocation without weights."""
    if allocation != "bounded" and (weights != weights[0]).any():
        raise ValueError(
            f"weights {weights.tolist()} act in bounded allocation only; give allocation='bounded', or leave them out"
        )


def bounded_system(matrix: np.ndarray, inverse: np.ndarray, weights, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """The normal equations of bounded least squares: minimise |W (A f - w)|^2 + c |f - inverse w|^2.

    Args:
        matrix: A, ``[..., 6, n]``.
        inverse: of A, ``[..., n, 6]``.
        weights: of the rows of A / (their norms), six numbers: the diagonal of W times these norms.
        damping: c as a share of the mean of the diagonal of A^T W^2 A.

    Returns:
        H ``[..., n, n]`` and the matrix ``[..., n, 6]`` that gives the right side for a wrench, with a diagonal of H near 1.
    """
    w = np.asarray(weights, dtype=float) / _row_sizes(matrix)
    a = w[..., None] * matrix
    t = np.swapaxes(a, -1, -2)
    normal, right = t @ a, t * w[..., None, :]
    n = matrix.shape[-1]
    size = np.trace(normal, axis1=-2, axis2=-1)[..., None, None] / n
    return normal / size + damping * np.eye(n), right / size + damping * inverse
