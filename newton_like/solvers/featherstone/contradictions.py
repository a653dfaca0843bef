"""Loop joints, equality constraints, mimic joints and ties of tendons that no coordinates satisfy together.

A step leaves out rows that depend on rows before them, so that one of two rows that contradict each other would be dropped without a
word. Here the errors of all hard rows are minimised from the initial coordinates and from some others, by the method of Levenberg (1944)
and Marquardt (1963). Rows that stay open in the best configuration contradict each other, or cannot be closed. This is an error where
they stay wide open and several searches ended there, since one search may end at a local minimum; otherwise it is a warning. Limits of
joints and tendons do not count; where tendons are tied, a second search regards them, which leads to warnings alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from newton_like.dynamics.coordinates.joint_positions import joint_limits_of
from newton_like.dynamics.internal.frames import NONE
from newton_like.dynamics.relations import POWERS, relation_name
from newton_like.dynamics.tendons import tendons_of
from newton_like.geometry.transforms import quat_normalize, quat_to_matrix
from newton_like.kernels.dynamics.loops import (
    ANGULAR,
    CHILD_ANCHOR,
    CHILD_DIRECTION,
    LINEAR,
    LOOP,
    NO_ROW,
    PARENT_ANCHOR,
    PARENT_DIRECTION,
)
from newton_like.kernels.parameters.gains import NO_LIMIT
from newton_like.kernels.solvers.rows.closure_rows import HARD, LEADER_REST, LENGTH, OWN_REST, POLYNOMIAL, TENDONS
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.labels import some_of
from newton_like.model.singular import ModelArrays, trees_with
from newton_like.solvers.featherstone.loop_rows import CHILD, KIND, LAW, PARENT, SolverRows
from newton_like.solvers.featherstone.path_lengths import PathLengths

OPEN = 1.0e-4
"""Errors from here on are open [m, rad or cosine]."""
WIDE = 1.0e-2
"""Errors from here on are wide open [m, rad or cosine]."""
SAME, AGREEING = 1.0e-2, 1 / 3
"""At least this share of all searches, and two of them, have to end with a sum of squares that is the least one up to the part SAME."""
STARTS = 12
"""Configurations that the search starts from."""
ITERATIONS = 60
DIFFERENCE = 1.0e-6
"""Step of the difference quotients [m or rad]."""
LARGEST_STEP = 0.5
"""Largest motion of a dof in an iteration [m or rad]."""
ROOM = 2_000_000
"""Joints, times configurations, that the search of an articulation computes at most."""
WRAP_COST = 20
"""Joints that take as long as a piece of a path around a shape."""
SHOWN = 4
"""Constraints that a warning names."""


def check_constraints(model, rows: SolverRows | None, user: str, refuse: bool, stacklevel: int) -> None:
    """Looks for hard constraints that no coordinates satisfy together. Of articulations with equal constraints the first is looked at.

    Args:
        model: the model.
        rows: its rows; None: it has no loop joints and no equality constraints.
        user: the solver.
        refuse: whether to raise an error where there is no doubt; else there are warnings.
        stacklevel: as ``warnings.warn`` has it.

    Raises:
        ValueError: constraints contradict each other or cannot be closed by far, or hold a tendon at different lengths.
    """
    lengths = list(_contradicting_lengths(model))
    if lengths and refuse:
        raise ValueError(
            f"{user}: {some_of(lengths, SHOWN)}: no coordinates satisfy these constraints together. Correct or remove them, make them soft"
            f" (solref), or pass {_ANYWAY}"
        )
    told = [*lengths, *([] if rows is None else _fixed_joints(model, rows)), *_fixed_tendons(model)]
    if told:
        warnings.warn(
            f"{user}: no coordinates satisfy these constraints: {some_of(told, SHOWN)}. Correct them, or make them soft (eq_solref)",
            stacklevel=stacklevel,
        )
    found = {} if rows is None else contradictions(model, rows)
    limited = {a: worst for a, worst in found.items() if worst.limits}
    found = {a: worst for a, worst in found.items() if not worst.limits}
    # limits that were named above are not named again
    if limited and not told:
        where, open_ones = _where(model, limited, next(iter(limited)))
        warnings.warn(
            f"{user}: no coordinates within the limits of joints and tendons were found that satisfy all constraints of {where}. In the"
            f" best coordinates these stay open [m or rad]: {open_ones}. A step satisfies some of them. Correct the limits or the"
            " constraints, or make equality constraints soft (solref)",
            stacklevel=stacklevel,
        )
    if not found:
        return
    certain = [a for a, worst in found.items() if worst.certain]
    where, open_ones = _where(model, found, (certain or list(found))[0])
    told = (
        f"they contradict each other, or cannot be closed. In the best coordinates these stay open [m or rad]: {open_ones}. Correct or"
        " disable them, make equality constraints soft (eq_solref), or start near a closed configuration (dynamics.assemble)"
    )
    if certain and refuse:
        raise ValueError(f"{user}: no coordinates satisfy all rigid constraints of {where}: {told}, or pass {_ANYWAY}")
    warnings.warn(
        f"{user}: no coordinates were found that satisfy all constraints of {where}: {told}. A step satisfies some of them and leaves the"
        " others open",
        stacklevel=stacklevel,
    )


def _where(model, found: dict[int, Unsatisfied], a: int) -> tuple[str, str]:
    """An articulation with constraints that are open, and these, in words."""
    open_ones = some_of([f"{name} by {size:.2g}" for name, size in found[a].sizes], SHOWN)
    others = f", and likewise of {len(found) - 1} others," if len(found) > 1 else ""
    return f"articulation '{model.articulation_label[a]}' (index {a}){others}", open_ones


_ANYWAY = "unsatisfied_constraints='warn' for steps that satisfy some of them and leave the others open"


def _beyond(value: float, lower: float, upper: float) -> bool:
    return value < lower - OPEN or value > upper + OPEN


def _fixed_joints(model, rows: SolverRows) -> Iterator[str]:
    """Joints that are held at coordinates beyond their limits."""
    fixed = (rows.rows[:, LAW] == HARD) & (rows.rows[:, KIND] == POLYNOMIAL) & (rows.rows[:, PARENT] < 0)
    places = np.argwhere(fixed & (rows.rows[:, CHILD] != NONE)).tolist()
    if not places:
        return
    lower, upper, start = (
        getattr(model, f"joint_{name}").numpy() for name in ("limit_lower", "limit_upper", "qd_start")
    )
    for a, r in places:
        j, value = int(rows.joints[a, r]), float(rows.numbers[a, r, 0])
        low, high = (float(x[start[j]]) for x in (lower, upper))
        if _beyond(value, low, high):
            yield f"joint '{model.joint_label[j]}' (index {j}) is held at {value:.3g}, beyond its limits {low:.3g} and {high:.3g}"


def _held_tendons(model) -> Iterator[tuple]:
    """Tendons that are held at lengths: the name and the limits of each, and these lengths in their order."""
    for n, tendon in enumerate(model.tendons):
        ties = (tie for tie in tendon.ties if tie.enabled and tie.solref is None and not tie.leader)
        lengths = sorted(tie.rest[0] + tie.polycoef[0] for tie in ties)
        if lengths:
            yield f"tendon '{tendon.label}' (index {n})", tendon.limits or (-np.inf, np.inf), lengths


def _contradicting_lengths(model) -> Iterator[str]:
    """Tendons that are held at several lengths."""
    for name, _, lengths in _held_tendons(model):
        if lengths[-1] - lengths[0] > OPEN:
            yield f"{name} is held at the lengths {lengths[0]:.3g} and {lengths[-1]:.3g}"


def _fixed_tendons(model) -> Iterator[str]:
    """Tendons that are held at lengths beyond their limits."""
    for name, (low, high), lengths in _held_tendons(model):
        if _beyond(lengths[0], low, high) or _beyond(lengths[-1], low, high):
            yield f"{name} is held at a length beyond its limits {low:.3g} and {high:.3g}"


class Unsatisfied(NamedTuple):
    """Constraints of an articulation that contradict each other.

    Attributes:
        sizes: the name of each and by how much it stays open, the largest first.
        certain: whether they are wide open, and several searches ended there.
        limits: whether coordinates beyond limits of joints or tendons satisfy them.
    """

    sizes: list[tuple[str, float]]
    certain: bool
    limits: bool = False


def contradictions(model, rows: SolverRows) -> dict[int, Unsatisfied]:
    """Constraints that contradict each other, by the index of their articulation."""
    kinds = rows.rows[:, KIND]
    hard = (rows.rows[:, LAW] == HARD) & (kinds != NO_ROW) & (rows.rows[:, CHILD] != NONE)
    tied = hard & (kinds == TENDONS)
    arrays, found, known = ModelArrays(model), {}, set()
    for a in np.flatnonzero(hard.any(axis=1)).tolist():
        paths = _tied_paths(model, rows, a, tied[a], arrays)
        key = rows.rows[a].tobytes(), rows.numbers[a].tobytes(), b"" if paths is None else paths.key
        if key in known:
            continue
        known.add(key)
        error = _Errors(model, arrays, rows, a, np.flatnonzero(hard[a]), paths)
        worst = _unsatisfied(error)
        if worst is None and paths is not None:
            error.regard_limits(model, arrays)
            worst = _unsatisfied(error, limits=True)
        if worst is not None:
            found[a] = worst
    return found


def _unsatisfied(error: _Errors, limits: bool = False) -> Unsatisfied | None:
    """The rows that stay open in the best configuration; None: it satisfies all."""
    left, agreed = _least(error)
    left = np.abs(left)
    if left.max() <= OPEN:
        return None
    worst: dict[str, float] = {}
    for name, size in sorted(zip(error.names, left.tolist(), strict=True), key=lambda entry: -entry[1]):
        if size > 0.02 * left.max():
            worst.setdefault(name, size)
    return Unsatisfied(list(worst.items()), bool(agreed and left.max() > WIDE), limits)


def _tied_paths(model, rows: SolverRows, a: int, tied: np.ndarray, arrays: ModelArrays) -> PathLengths | None:
    """The lengths of the tendons that rows tie, and of those with limits; None: no tendon is tied."""
    if not tied.any():
        return None
    tendons = tendons_of(model)
    numbers = rows.rows[a][PARENT : CHILD + 1, tied]
    limited = [i for i, n in enumerate(tendons.index[a]) if np.isfinite(_tendon_limits(arrays, n)).any()]
    return PathLengths(model, tendons, a, [*numbers[numbers >= 0].tolist(), *limited])


def _tendon_limits(arrays: ModelArrays, n: int) -> tuple[float, float]:
    """The limits of tendon n that count, else infinite."""
    low, high = (float(arrays[f"tendon_limit_{name}"][n]) for name in ("lower", "upper"))
    if arrays["tendon_limit_ke"][n] == 0.0:
        return -np.inf, np.inf
    return low if low > -NO_LIMIT else -np.inf, high if high < NO_LIMIT else np.inf


class _Errors:
    """The errors of the hard rows of an articulation as functions of the positions of its dofs; those of joints with quaternions are turns
    from the initial pose. `paths`: the lengths of the tendons that rows tie."""

    def __init__(
        self, model, arrays: ModelArrays, rows: SolverRows, a: int, chosen: np.ndarray, paths: PathLengths | None
    ):
        first, last = (int(arrays[f"articulation_{end}"][a]) for end in ("start", "end"))
        own = np.zeros(model.joint_count, bool)
        own[first:last] = True
        self.tree = next(iter(trees_with(arrays, own))).one(0)
        self.tree.grounded = True
        self.kind, _, self.parent, self.child, _ = rows.rows[a][:, chosen]
        self.numbers = rows.numbers[a, chosen, :LOOP]
        self.names, self.paths, self.articulation = [], paths, a
        self._limits, self._tendon_limits = np.full((2, self.tree.dofs), np.inf), None
        self._limits[0] = -np.inf
        ends = zip(rows.joints[a, chosen], self.kind, self.parent, self.child, self.numbers, strict=True)
        for j, kind, leader, own, c in ends:
            if kind == TENDONS:
                n = tendons_of(model).index[a][own]
                self.names.append(f"the tie of tendon '{model.tendon_label[n]}' (index {n})")
            elif kind == POLYNOMIAL:
                leader = int(first + leader) if leader >= 0 else -1
                self.names.append(relation_name(model, int(j), leader, c[:POWERS]))
            else:
                self.names.append(_loop(model, int(j)))
        self._place(arrays, first)
        self._add_mimics(model, arrays, first, rows)

    @property
    def wraps(self) -> int:
        """Pieces of paths that are computed one by one."""
        return 0 if self.paths is None else self.paths.wraps

    def regard_limits(self, model, arrays: ModelArrays) -> None:
        """Adds errors of coordinates and of lengths beyond their limits."""
        start = int(arrays["joint_qd_start"][self.tree.first_joint[0]])
        self._limits = np.stack([x[start : start + self.tree.dofs] for x in joint_limits_of(model)])
        joint = np.repeat(np.arange(len(self.tree.parent)), self.tree.sizes)
        first = int(self.tree.first_joint[0])
        for k in joint[np.isfinite(self._limits).any(axis=0)].tolist():
            self.names.append(f"the limits of joint '{model.joint_label[first + k]}' (index {first + k})")
        own = tendons_of(model).index[self.articulation]
        limits = np.array([_tendon_limits(arrays, own[i]) for i in self.paths.chosen]).T
        for i, finite in zip(self.paths.chosen, np.isfinite(limits).any(axis=0), strict=True):
            if finite:
                self.names.append(f"the limits of tendon '{model.tendon_label[own[i]]}' (index {own[i]})")
        self._tendon_limits = limits

    def _place(self, arrays: ModelArrays, first: int) -> None:
        """The initial positions, and the initial rotations of joints with quaternions in the anchors."""
        tree, q_start = self.tree, arrays["joint_q_start"]
        joints = first + np.arange(len(tree.parent))
        frames = arrays["joint_X_p"][joints].astype(np.float64)
        turn, place = quat_to_matrix(frames[:, 3:]), frames[:, :3].copy()
        self.start = np.zeros(tree.dofs)
        for k, j in enumerate(joints):
            at, dof, end = int(q_start[j]), int(tree.dof_at[k]), int(tree.dof_at[k + 1])
            if not tree.whole[k]:
                self.start[dof:end] = arrays["joint_q"][at : at + end - dof]
                continue
            slides = int(tree.linear[k])
            rotation = quat_to_matrix(
                quat_normalize(arrays["joint_q"][at + slides : at + slides + 4].astype(np.float64))
            )
            turn[k] = turn[k] @ rotation
            if slides:
                self.start[dof : dof + slides] = rotation.T @ arrays["joint_q"][at : at + slides]
        tree.before = turn[None], place[None]

    def _add_mimics(self, model, arrays: ModelArrays, first: int, rows: SolverRows) -> None:
        """Followers of mimic joints as polynomials, one for each dof."""
        tree = self.tree
        self.dofs = np.full((len(self.kind), 2), -1)
        r = self.kind == POLYNOMIAL
        self.dofs[r] = np.stack([tree.dof_at[self.child[r]], tree.dof_at[np.maximum(self.parent[r], 0)]], axis=1)
        self.dofs[self.parent < 0, 1] = -1
        more, leaders = [], arrays["joint_mimic_joint"]
        for k in range(len(tree.parent)):
            j = first + k
            leader = int(leaders[j]) - first
            if not 0 <= leader < len(tree.parent) or j in rows.soft_followers or not arrays["joint_enabled"][j]:
                continue
            numbers = np.zeros(LOOP)
            numbers[:2] = arrays["joint_mimic_coeffs"][j]
            for n in range(int(tree.sizes[k])):
                more.append((k, leader, tree.dof_at[k] + n, tree.dof_at[leader] + n, numbers))
                self.names.append(relation_name(model, j, int(leaders[j]), numbers[:POWERS]))
        if more:
            child, parent, dof, other, numbers = (np.array(part) for part in zip(*more, strict=True))
            self.kind = np.append(self.kind, np.full(len(more), POLYNOMIAL))
            self.parent, self.child = np.append(self.parent, parent), np.append(self.child, child)
            self.numbers = np.concatenate([self.numbers, numbers])
            self.dofs = np.concatenate([self.dofs, np.stack([dof, other], axis=1)])

    def __call__(self, q: np.ndarray) -> np.ndarray:
        """Errors ``[n, rows]`` at positions ``[n, dofs]``."""
        tree = self.tree.one(0, len(q))
        tree.grounded = True
        turns, places, _, _ = tree.kinematics(q)
        # the world is the last body
        turns = np.stack([*turns, np.broadcast_to(np.eye(3), (len(q), 3, 3))], axis=1)
        places = np.stack([*places, np.zeros((len(q), 3))], axis=1)
        result = np.zeros((len(q), len(self.kind)))

        def vector(r, at: int, ends) -> np.ndarray:
            return np.einsum("nrij,rj->nri", turns[:, ends[r]], self.numbers[r, at : at + 3])

        r = np.flatnonzero((self.kind == LINEAR) | (self.kind == LENGTH))
        x = places[:, self.child[r]] + vector(r, CHILD_ANCHOR, self.child)
        x = x - places[:, self.parent[r]] - vector(r, PARENT_ANCHOR, self.parent)
        along = np.sum(x * vector(r, PARENT_DIRECTION, self.parent), axis=2)
        length = np.linalg.norm(x, axis=2) - self.numbers[r, PARENT_DIRECTION]
        result[:, r] = np.where(self.kind[r] == LENGTH, length, along)
        r = np.flatnonzero(self.kind == ANGULAR)
        n, u = vector(r, PARENT_DIRECTION, self.parent), vector(r, CHILD_DIRECTION, self.child)
        result[:, r] = np.sum(n * u, axis=2)
        r = np.flatnonzero(self.kind == POLYNOMIAL)
        leader = np.where(self.dofs[r, 1] >= 0, q[:, self.dofs[r, 1]], 0.0)
        powers = leader[..., None] ** np.arange(POWERS)
        result[:, r] = q[:, self.dofs[r, 0]] - np.sum(powers * self.numbers[r, :POWERS], axis=2)
        if self.paths is None:
            return result
        lengths = self.paths(q, turns, places)
        at = {n: i for i, n in enumerate(self.paths.chosen)}
        for r in np.flatnonzero(self.kind == TENDONS).tolist():
            c, leader = self.numbers[r], int(self.parent[r])
            x = lengths[:, at[leader]] - c[LEADER_REST] if leader >= 0 else np.zeros(len(q))
            result[:, r] = lengths[:, at[int(self.child[r])]] - c[OWN_REST] - np.polyval(c[POWERS - 1 :: -1], x)
        parts = [result, _beyond_limits(q, self._limits)]
        parts += [] if self._tendon_limits is None else [_beyond_limits(lengths, self._tendon_limits)]
        return np.concatenate(parts, axis=1)


def _beyond_limits(x: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """How far values ``[n, columns]`` are beyond their limits, of columns with limits."""
    with_limits = np.isfinite(limits).any(axis=0)
    low, high = limits[:, with_limits]
    x = x[:, with_limits]
    return np.maximum(x - high, 0.0) + np.minimum(x - low, 0.0)


def _least(error: _Errors) -> tuple[np.ndarray, bool]:
    """The errors in the best configuration that is found, and whether several searches ended there."""
    tree, start = error.tree, error.start
    best = error(start[None])[0]
    if np.abs(best).max(initial=0.0) <= OPEN or not tree.dofs:
        return best, True
    rng = np.random.default_rng(1)
    cost = (len(tree.parent) + WRAP_COST * error.wraps) * (tree.dofs + 1)
    squares = []
    for n in range(min(STARTS, max(ROOM // (cost * ITERATIONS), 4))):
        # the start itself may be singular, as a stretched chain is; others are anywhere
        found = _descend(error, start + (1e-3 if n == 0 else 3.0) * rng.uniform(-1.0, 1.0, tree.dofs))
        squares.append(np.sum(found**2))
        if squares[-1] <= min(squares):
            best = found
        if np.abs(best).max() <= OPEN:
            break
    same = np.count_nonzero(np.array(squares) <= (1.0 + SAME) * min(squares))
    return best, same >= max(2, AGREEING * len(squares))


def _descend(error: _Errors, q: np.ndarray) -> np.ndarray:
    g, damping = error(q[None])[0], 1.0e-3
    eye = np.eye(len(q))
    for _ in range(ITERATIONS):
        if np.abs(g).max() <= 0.1 * OPEN:
            break
        K = (error(q + DIFFERENCE * eye) - g).T / DIFFERENCE
        normal = K.T @ K
        step = -np.linalg.solve(normal + damping * (np.trace(normal) / len(q) + 1e-12) * eye, K.T @ g)
        step *= min(1.0, LARGEST_STEP / max(np.abs(step).max(), 1e-30))
        tried = error((q + step)[None])[0]
        if np.sum(tried**2) < np.sum(g**2):
            done = np.sum(tried**2) > (1.0 - 1e-9) * np.sum(g**2)
            q, g, damping = q + step, tried, max(0.1 * damping, 1e-12)
            if done:
                break
        else:
            damping *= 10.0
            if damping > 1e8:
                break
    return g


def _loop(model, j: int) -> str:
    kind = JOINT_TYPES[int(model.joint_type.numpy()[j])].type.name
    return f"the {kind} loop joint '{model.joint_label[j]}' (index {j})"
