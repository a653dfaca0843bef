"""Mass, centre of mass and inertia of rigid bodies: transforming, combining and checking them.

An inertia is a symmetric 3x3 matrix [kg m^2] about the centre of mass. All arrays are NumPy float64.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from newton_like.geometry.transforms import as_transform, quat_to_matrix

RELATIVE_TOLERANCE = 1.0e-5
"""Tolerance of the checks relative to the largest moment. Inertias come from float32 arrays (1.2e-7 a number) and from
files with six digits; a thin plate satisfies the triangle inequality with equality and must pass. Errors by mistakes in
files are larger."""


def parallel_axis(mass: float, offset) -> np.ndarray:
    """The change of an inertia if its reference point moves by ``offset`` [m] away from the centre of mass.

    Steiner's theorem: ``m (|r|^2 1 - r r^T)``.
    """
    r = np.asarray(offset, dtype=np.float64)
    return mass * (np.dot(r, r) * np.eye(3) - np.outer(r, r))


def combine(parts: Iterable) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass properties of several rigidly joined parts.

    Args:
        parts: triples ``(mass [kg], com [m] (3), inertia about the part's own com [kg m^2] (3, 3))``, all in the same
            axes and with the same origin.

    Returns:
        Total mass, common centre of mass, inertia about it. For a total mass of zero, the centre is the mean of the parts'
        centres (the origin without parts), and the inertia is the sum of their inertias.
    """
    parts = [
        (float(mass), np.asarray(com, dtype=np.float64).reshape(3), np.asarray(inertia, dtype=np.float64).reshape(3, 3))
        for mass, com, inertia in parts
    ]
    if not parts:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    masses = np.array([mass for mass, _, _ in parts])
    coms = np.stack([com for _, com, _ in parts])
    total = float(masses.sum())
    com = masses @ coms / total if total > 0.0 else coms.mean(axis=0)
    inertia = np.zeros((3, 3))
    for mass, part_com, part_inertia in parts:
        inertia += part_inertia + parallel_axis(mass, part_com - com)
    return total, com, 0.5 * (inertia + inertia.T)


def transform(mass: float, com, inertia, xform) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass properties of a part in the frame in which the part has the pose ``xform``.

    Args:
        mass: mass [kg], unchanged.
        com: centre of mass in the part's frame [m].
        inertia: about the centre of mass, in the part's axes [kg m^2].
        xform: pose of the part's frame, as :func:`newton_like.geometry.transforms.as_transform` takes it.
    """
    xform = as_transform(xform)
    rotation = quat_to_matrix(xform[3:])
    com = xform[:3] + rotation @ np.asarray(com, dtype=np.float64).reshape(3)
    inertia = rotation @ np.asarray(inertia, dtype=np.float64).reshape(3, 3) @ rotation.T
    return float(mass), com, 0.5 * (inertia + inertia.T)


def principal_moments(inertia) -> np.ndarray:
    """Principal moments of inertia, ascending [kg m^2]."""
    return np.linalg.eigvalsh(np.asarray(inertia, dtype=np.float64).reshape(3, 3))


def nearest_possible(inertia) -> np.ndarray:
    """The physically possible inertia that is nearest to a given symmetric matrix.

    An inertia is possible if and only if its second moments ``S = tr(I) / 2 - I`` (integral of x x^T) have no negative
    eigenvalue (Wensing, Kim, Slotine 2018). Negative eigenvalues are set to zero, which gives the nearest matrix S in the
    Frobenius norm, and ``I = tr(S) - S``.
    """
    inertia = np.asarray(inertia, dtype=np.float64).reshape(3, 3)
    inertia = 0.5 * (inertia + inertia.T)
    values, vectors = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    second = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.trace(second) * np.eye(3) - second


def check(mass: float, inertia) -> str | None:
    """Checks a body's mass and inertia. Returns an error message, or ``None`` if they are possible.

    A rigid body has a mass of at least zero, a symmetric inertia without negative moments, no moment above the sum of
    the other two (each is the integral of two of three non-negative squares), and no inertia without mass. Mass without
    inertia (a point mass) is possible. Tolerance: ``RELATIVE_TOLERANCE`` of the largest moment.
    """
    inertia = np.asarray(inertia, dtype=np.float64).reshape(3, 3)
    mass = float(mass)
    if not np.isfinite(mass):
        return f"mass {mass} is not finite"
    if not np.all(np.isfinite(inertia)):
        return f"inertia {inertia.tolist()} has a number that is not finite"
    if mass < 0.0:
        return f"mass {mass:g} kg is negative"
    largest = float(np.max(np.abs(inertia)))
    slack = RELATIVE_TOLERANCE * largest
    if np.max(np.abs(inertia - inertia.T)) > slack:
        return f"inertia {inertia.tolist()} is not symmetric"
    moments = principal_moments(0.5 * (inertia + inertia.T))
    text = "principal moments (" + ", ".join(f"{moment:.6g}" for moment in moments) + ") kg m^2"
    if moments[0] < -slack:
        return f"{text}: a moment is negative, which is impossible"
    if moments[2] > moments[0] + moments[1] + slack:
        return f"{text} break the triangle inequality: the largest is above the sum of the others, which is impossible"
    if mass == 0.0 and largest > 0.0:
        return f"{text} without mass; give the body a mass or no inertia"
    return None
