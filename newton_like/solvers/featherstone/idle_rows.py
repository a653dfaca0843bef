"""Rows of rigid loop joints that no joint moves in any configuration, by the directions of joint axes.

In a planar linkage all hinges have parallel axes and all sliders are at right angles to them. The distance of two anchors along these axes
is constant there, and so are angles with an axis fixed to a link. A step needs no such rows: its other rows keep the loop closed, and a
force along them does no work.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.dynamics.names import names_of
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.kernels.dynamics.loops import ANGULAR, CHILD_DIRECTION, LINEAR, LOOP, PARENT_DIRECTION
from newton_like.kernels.solvers.rows.closure_rows import HARD
from newton_like.model.joint_types import JOINT_TYPES

SINGLE_PARALLEL, DOUBLE_PARALLEL = 2.0e-6, 1.0e-12
"""Directions whose sine or cosine is at most this count as parallel or at right angles, in single and in double precision: rounding
errors of the arrays. A step leaves out rows that are this small, too, see ``SINGLE_DEPENDENT`` of `kernels.solvers.rows.closures`."""


def idle_rows(model, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Which rows no joint moves, ``[articulations, rows]``.

    Args:
        model: the model.
        rows, numbers: those of :class:`newton_like.solvers.featherstone.loop_rows.SolverRows`.
    """
    kinds, laws, parents, children = np.moveaxis(rows[:, :4], 1, 0)
    idle = np.zeros(kinds.shape, dtype=bool)
    chosen = (laws == HARD) & ((kinds == LINEAR) | (kinds == ANGULAR))
    if not chosen.any() or not model.varying.isdisjoint(("joint_axis", "joint_X_p", "joint_X_c")):
        return idle
    trees = _Trees(model)
    known: dict[tuple, np.ndarray] = {}
    for a in np.flatnonzero(chosen.any(axis=1)).tolist():
        key = trees.key(a), rows[a].tobytes(), numbers[a, :, :LOOP].tobytes()
        if key not in known:
            tree = trees.tree(a)
            found = np.zeros(kinds.shape[1], dtype=bool)
            for r in np.flatnonzero(chosen[a]).tolist():
                vectors = numbers[a, r, :LOOP].reshape(-1, 3)
                found[r] = tree.is_idle(int(kinds[a, r]), int(parents[a, r]), int(children[a, r]), vectors)
            known[key] = found
        idle[a] = known[key]
    return idle


class _Trees:
    """The joints of all articulations of a model."""

    def __init__(self, model):
        names = names_of(model)
        self.start, self.count = names.start, names.count
        self.tolerance = DOUBLE_PARALLEL if model.dtype is wp.float64 else SINGLE_PARALLEL
        parent = model.joint_parent.numpy()
        self.parent = np.where(parent >= 0, names.link[parent], -1)
        self.type, self.dims, self.dof_at, self.axis, self.x_p, self.x_c = (
            getattr(model, f"joint_{name}").numpy() for name in ("type", "dof_dim", "qd_start", "axis", "X_p", "X_c")
        )

    def key(self, a: int) -> tuple:
        """What articulations with the same of these have in common."""
        first, last = self.start[a], self.start[a] + self.count[a]
        own = (x[first:last].tobytes() for x in (self.parent, self.type, self.dims, self.x_p, self.x_c))
        return *own, self.axis[self.dof_at[first] : self.dof_at[last]].tobytes()

    def tree(self, a: int) -> _Tree:
        return _Tree(self, int(self.start[a]), int(self.count[a]))


class _Tree:
    """The axes of the joints of an articulation, in the configuration of zeros."""

    def __init__(self, trees: _Trees, first: int, count: int):
        self.tolerance = trees.tolerance
        self.parent = trees.parent[first : first + count].tolist()
        into, out = (quat_to_matrix(x[first : first + count, 3:].astype(np.float64)) for x in (trees.x_p, trees.x_c))
        self.turn = np.zeros((count, 3, 3))
        # of each joint: sliding and turning axes; None for joints with other dofs
        self.axes: list[tuple[np.ndarray, np.ndarray] | None] = []
        for k, parent in enumerate(self.parent):
            frame = into[k] if parent < 0 else self.turn[parent] @ into[k]
            self.turn[k] = frame @ out[k].T
            kind = JOINT_TYPES[int(trees.type[first + k])]
            linear, angular = trees.dims[first + k].tolist()
            at = int(trees.dof_at[first + k])
            axes = trees.axis[at : at + linear + angular].astype(np.float64) @ frame.T
            plain = kind.fixed or kind.axis_by_axis
            self.axes.append((axes[:linear], axes[linear:]) if plain else None)

    def _ancestors(self, k: int) -> set[int]:
        found = set()
        while k >= 0:
            found.add(k)
            k = self.parent[k]
        return found

    def is_idle(self, kind: int, parent: int, child: int, vectors: np.ndarray) -> bool:
        """Whether no joint between two links moves a row; links below zero are the world."""
        between = [self.axes[k] for k in self._ancestors(parent) ^ self._ancestors(child)]
        if any(axes is None for axes in between):
            return False
        sliding = np.concatenate([np.zeros((0, 3)), *(axes[0] for axes in between)])
        turning = np.concatenate([np.zeros((0, 3)), *(axes[1] for axes in between)])
        n = vectors[PARENT_DIRECTION // 3] if parent < 0 else self.turn[parent] @ vectors[PARENT_DIRECTION // 3]
        if kind == LINEAR:
            return self._parallel(turning, n) and bool((np.abs(sliding @ n) <= self.tolerance).all())
        u = vectors[CHILD_DIRECTION // 3] if child < 0 else self.turn[child] @ vectors[CHILD_DIRECTION // 3]
        return self._parallel(turning, n) or self._parallel(turning, u)

    def _parallel(self, axes: np.ndarray, n: np.ndarray) -> bool:
        return bool((np.linalg.norm(np.cross(axes, n), axis=-1) <= self.tolerance).all())
