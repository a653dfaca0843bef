"""Quadratic programs whose variables all have bounds.

The solver is DAQP (Arnstrom, Bemporad and Axehill 2022, "A dual active-set solver for embedded quadratic programming using recursive
LDL^T updates"), which the extra ``ik`` installs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_STATUS = {
    1: "optimal",
    -1: "infeasible",
    -2: "cycling",
    -3: "unbounded",
    -4: "iteration limit",
    -5: "not convex",
    -6: "overdetermined",
}
"""Words for the solver's exit flags."""

_INFINITE = 1e30
"""What the solver takes for infinite."""

_ATTEMPTS = ((0.0, 1e-10), (1e-6, 1e-10), (1e-4, 1e-8), (1e-2, 1e-8))
"""Settings of the solver that are tried in turn: the weight of its proximal iterations as a part of the mean of the diagonal of H, and its
tolerance. Nearly parallel rows and a nearly singular H make the solver cycle, or report programs as infeasible that are not. Proximal
iterations are slower, and find the same minimum."""

_MISSED = 1e-7
"""How much a row whose coefficients have the absolute sum 1 may miss its bound."""


def solver() -> Callable:
    """The function of the solver. Raises ImportError where it is not installed."""
    try:
        from daqp import solve
    except ImportError as error:
        raise ImportError(
            "quadratic programs are solved by daqp, which is not installed; run: pip install 'newton-like[ik]'"
        ) from error
    return solve


def minimum(solve: Callable, H, f, low, high, G, least) -> tuple[np.ndarray, str]:
    """The x that minimises ``x' H x / 2 + f' x`` with ``low <= x <= high`` and ``G x >= least``.

    Args:
        solve: see :func:`solver`.
        H, f: cost, ``[n, n]`` and ``[n]``; H is positive definite.
        low, high: finite bounds, ``[n]``.
        G, least: rows and their bounds, ``[rows, n]`` and ``[rows]``.

    Returns:
        x, and ``"optimal"``. If zero keeps all bounds but the solver finds no solution: zero, and ``"still"``. Otherwise zero, and the
        reason of the solver, such as ``"infeasible"``.
    """
    nothing, upper = np.zeros(len(f)), high
    if (low > high).any():
        return nothing, "infeasible"
    if len(G):
        one, other = G * low, G * high
        # all other rows hold between the bounds
        rows = (np.minimum(one, other).sum(axis=1) < least).nonzero()[0]
        if (np.maximum(one[rows], other[rows]).sum(axis=1) < least[rows]).any():
            return nothing, "infeasible"
        G, least = G[rows], least[rows]
        size = np.abs(G).sum(axis=1)
        G, least = G / size[:, None], least / size
        upper = np.concatenate([high, np.full(len(least), _INFINITE)])
    lower = np.concatenate([low, least]) if len(G) else low
    reason, still = "", None
    for weight, tolerance in _ATTEMPTS:
        options = {"eps_prox": weight * H.trace() / len(H)} if weight else {}
        x, _, flag, _ = solve(H, f, G, upper, lower, primal_tol=tolerance, **options)
        status = _STATUS.get(flag, f"exit flag {flag}")
        if status == "optimal" and math.isfinite(x @ x):
            # the solver keeps bounds to its tolerance
            x = np.minimum(np.maximum(x, low), high)
            if not len(G) or (G @ x >= least - _MISSED).all():
                return x, status
        reason = reason or (status if status != "optimal" else "inaccurate")
        still = (low <= 0.0).all() and (high >= 0.0).all() and (least <= 0.0).all()
        if status == "infeasible" and not still:
            reason = status
            break
    return nothing, "still" if still else reason
