"""Orders of the passes over joints.

The first pass goes through the colours in ascending order, and then through the lines. The second one goes through the colours in
descending order, but for the last one, which comes at the end again, and then through the lines. Joints of the last colour share no body
with each other and with lines. Both passes together have real eigenvalues: let T be the projection that solves joints of the last colour
and lines, and A the product of the projections that solve the others. The operator of both passes is T A* T A, where A* is the adjoint in
the metric of the masses. Its eigenvalues are those of M* M with M = T A T. Eigenvalues of two equal passes are complex where a body has
several joints; the closure of gaps from sub-step to sub-step then oscillates more and more. Further passes alternate in this way; those of
an odd number of passes are nearly real. No joint is solved twice in succession. Over-relaxation of A and A* keeps them real.
"""

from __future__ import annotations

import numpy as np

LAST = 1 << 20
"""The last colour, in all worlds."""

CHAIN = 4
"""Weight of two joints of which one is the parent of the other, against two joints with the same parent: heavy bodies have many children,
and the joints of light ones depend more on each other."""


def colours_of_joints(pairs: np.ndarray, lined=()) -> np.ndarray:
    """Colours of joints: those of one colour share no body that moves.

    Args:
        pairs: parent and child of each joint, in the order of trees, -1 for bodies that nothing moves, ``[n, 2]``.
        lined: bodies on which lines act.
    """
    out = np.full(len(pairs), LAST)
    others = ~_last_joints(pairs, set(lined))
    out[others] = _ascending(pairs[others])
    return out


def _ascending(pairs: np.ndarray) -> np.ndarray:
    """One more than the largest colour of earlier pairs with one of the bodies."""
    last: dict[int, int] = {}
    out = np.zeros(len(pairs), dtype=int)
    for i, pair in enumerate(pairs.tolist()):
        out[i] = 1 + max((last.get(k, -1) for k in pair if k >= 0), default=-1)
        for k in pair:
            if k >= 0:
                last[k] = out[i]
    return out


def _last_joints(pairs: np.ndarray, lined: set[int]) -> np.ndarray:
    """Joints of the last colour: every second one of chains, so that few of the others share a body."""
    depth: dict[int, int] = {}
    level = np.zeros(len(pairs), dtype=int)
    for i, (a, b) in enumerate(pairs.tolist()):
        level[i] = depth.get(a, 0) + 1
        if b >= 0:
            depth.setdefault(b, level[i])
    found = [_greedy(pairs, level % 2 == odd, lined) for odd in (1, 0)]
    return found[int(np.argmin([_left(pairs[~chosen]) for chosen in found]))]


def _greedy(pairs: np.ndarray, first: np.ndarray, lined: set[int]) -> np.ndarray:
    """As many joints as share no body with each other and with lines, in their order, those of `first` before the others."""
    taken = set(lined)
    chosen = np.zeros(len(pairs), dtype=bool)
    for i in np.argsort(~first, kind="stable").tolist():
        bodies = {k for k in pairs[i].tolist() if k >= 0}
        if not bodies & taken:
            chosen[i] = True
            taken |= bodies
    return chosen


def _left(pairs: np.ndarray) -> int:
    """How many of these joints share a body, by pairs."""
    size = pairs.max(initial=-1) + 2
    parents, children = (np.bincount(side + 1, minlength=size)[1:] for side in pairs.T)
    among = sum((n * (n - 1) // 2).sum() for n in (parents, children))
    return int(CHAIN * (parents * children).sum() + among)
