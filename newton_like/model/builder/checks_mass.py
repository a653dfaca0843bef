"""Refuses inertias that no body has."""

from __future__ import annotations

import numpy as np

from newton_like.geometry import inertia as inertia_math
from newton_like.model.builder.checks import Report


def check_masses(columns: dict, report: Report) -> None:
    """Each inertia is possible. Bodies may have no mass, and joints nothing to move: see :mod:`newton_like.model.singular`."""
    mass, inertia = columns["body_mass"], columns["body_inertia"]
    if not len(mass):
        return
    size = np.abs(inertia).max(axis=(1, 2))
    slack = inertia_math.RELATIVE_TOLERANCE * size
    skew = np.abs(inertia - inertia.transpose(0, 2, 1)).max(axis=(1, 2))
    moments = np.linalg.eigvalsh(0.5 * (inertia + inertia.transpose(0, 2, 1)))
    wrong = (skew > slack) | (moments[:, 0] < -slack) | (moments[:, 2] > moments[:, 0] + moments[:, 1] + slack)
    wrong |= (mass <= 0.0) & (size > 0.0)
    report.refuse("body", wrong, lambda i: f"{inertia_math.check(mass[i], inertia[i])} (mass {mass[i]:g} kg)")
    columns["body_inertia"] = 0.5 * (inertia + inertia.transpose(0, 2, 1))
