"""Frames of the centres of mass of bodies: their places, and the turn to the principal axes of inertia."""

from __future__ import annotations

import itertools

import numpy as np

_TINY = 1.0e-6
"""Products of inertia below this share of the trace are none."""


def principal_frames(com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Frames of centres of mass in their link frames, ``[n, 7]``: position, quaternion x y z w.

    The axes are the principal axes of inertia. Of all orders and signs of these axes, the turn from the link axes is the smallest one. If
    the link axes are principal axes, there is no turn.

    Args:
        com: centres of mass in link frames [m], ``[n, 3]``.
        inertia: inertias about them, in link axes [kg m^2], ``[n, 3, 3]``.
    """
    frames = np.zeros((len(com), 7))
    frames[:, :3], frames[:, 6] = com, 1.0
    trace = np.trace(inertia, axis1=1, axis2=2)
    products = np.abs(inertia[:, [0, 0, 1], [1, 2, 2]]).max(axis=1, initial=0.0)
    turned = np.flatnonzero(products > _TINY * trace)
    if turned.size:
        # copies of a robot have the same inertia
        different, back = np.unique(inertia[turned].reshape(-1, 9), axis=0, return_inverse=True)
        frames[turned, 3:] = np.array([_turn(one.reshape(3, 3)) for one in different])[back.ravel()]
    return frames


def _turn(inertia: np.ndarray) -> np.ndarray:
    """The quaternion of the smallest turn to principal axes."""
    axes = np.linalg.eigh(np.asarray(inertia, dtype=np.float64))[1]
    best, most = None, -np.inf
    for order in itertools.permutations(range(3)):
        columns = axes[:, order]
        # the sign of each axis that is nearest to the link axis; then the one that costs least makes it a rotation
        signs = np.where(np.diag(columns) < 0.0, -1.0, 1.0)
        if np.linalg.det(columns * signs) < 0.0:
            signs[np.argmin(np.abs(np.diag(columns)))] *= -1.0
        trace = np.trace(columns * signs)
        if trace > most + 1.0e-12:
            best, most = columns * signs, trace
    return _quaternion(best)


def _quaternion(r: np.ndarray) -> np.ndarray:
    """The quaternion x y z w of a rotation matrix, with w >= 0 (Bar-Itzhack 2000: the eigenvector of the largest eigenvalue)."""
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], r[1, 0] + r[0, 1], r[2, 0] + r[0, 2], r[2, 1] - r[1, 2]],
            [r[1, 0] + r[0, 1], r[1, 1] - r[0, 0] - r[2, 2], r[2, 1] + r[1, 2], r[0, 2] - r[2, 0]],
            [r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], r[2, 2] - r[0, 0] - r[1, 1], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r[0, 0] + r[1, 1] + r[2, 2]],
        ]
    )
    q = np.linalg.eigh(k)[1][:, -1]
    return q if q[3] >= 0.0 else -q
