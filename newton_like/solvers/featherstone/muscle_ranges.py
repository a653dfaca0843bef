"""Ranges of the lengths of muscles that do not state them: the extreme lengths of their tendons within the limits of joints and tendon."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.dynamics.coordinates.configuration import global_coordinates
from newton_like.dynamics.names import names_of
from newton_like.dynamics.tendons import tendon_kinematics, tendons_of
from newton_like.geometry.transforms import quat_rotate
from newton_like.kernels.parameters.gains import NO_LIMIT
from newton_like.model.joint_types import JOINT_TYPES

FIRST_STEP, LEAST_STEP, MOST_STEP = 0.1, 1.0e-4, 0.5
"""Largest change of a dof in the first step of a search, in the last one, and in any one [m, rad]."""

LEAST_RANGE = 1.0e-6
"""Range over length up to which a length does not change: several roundings in single precision."""

POSES, TRIES = 60, 8
"""Poses that are looked at, and how many of the best ones searches begin at."""

STEPS = 400
"""Steps of a search. A length that still changes then has no bound."""


def length_ranges(model, muscles: dict[int, int]) -> dict[int, tuple[float, float]]:
    """Smallest and largest length of tendons within the limits of joints, and within the limits of the tendon. Loops, mimic joints,
    equalities and limits of other tendons are not regarded.

    Searches for local extremes begin at the initial coordinates and at the best of some random poses within the limits. MuJoCo pulls at the
    tendon in a damped motion without gravity (documentation, "Modeling", "Length range").

    Args:
        model: the model.
        muscles: for the index of each actuator the tendon that it pulls.

    Raises:
        ValueError: a length has no bound, or does not change.
    """
    tendons = sorted(set(muscles.values()))
    places = {n: (a, i) for a, own in enumerate(tendons_of(model).index) for i, n in enumerate(own)}
    # one search serves the tendons that are first among those of their articulation, the next one the second ones, and so on
    rounds: dict[int, list[int]] = {}
    for n in tendons:
        rounds.setdefault(sum(places[n][0] == places[other][0] for other in tendons if other < n), []).append(n)
    found: dict[int, list[float]] = {n: [] for n in tendons}
    poses = _Poses(model)
    for group in rounds.values():
        for sign in (-1.0, 1.0):
            own = [places[n] for n in group]
            tries = [sign * _extremes(model, own, sign, q) for q in poses.starts(own, sign)]
            lengths = sign * np.max(tries, axis=0)
            for n, length in zip(group, lengths.tolist(), strict=True):
                found[n].append(length)
    lower, upper, stiffness = (getattr(model, f"tendon_limit_{name}").numpy() for name in ("lower", "upper", "ke"))
    for n in found:
        if stiffness[n] != 0.0:
            # MuJoCo pulls a tendon beyond them, by a little that depends on their softness
            found[n] = [_within(length, lower[n], upper[n]) for length in found[n]]
    for actuator, n in muscles.items():
        low, high = found[n]
        if not np.isfinite([low, high]).all() or high - low <= LEAST_RANGE * max(abs(low), abs(high)):
            raise ValueError(
                f"actuator '{model.actuator_label[actuator]}' (index {actuator}): the length of tendon '{model.tendon_label[n]}' has no"
                " range within the limits of the joints and of the tendon; give the actuator a lengthrange, or the joints or the tendon"
                " limits"
            )
    return {actuator: (found[n][0], found[n][1]) for actuator, n in muscles.items()}


def _within(length: float, lower: float, upper: float) -> float:
    """A length within limits that count."""
    low = lower if lower > -NO_LIMIT else -np.inf
    high = upper if upper < NO_LIMIT else np.inf
    return float(np.clip(length, low, high))


class _Limits:
    """The distances of the dofs of all articulations from their limits, ``[articulations, dofs]``."""

    def __init__(self, model, columns: int):
        starts, q_starts = model.joint_qd_start.numpy(), model.joint_q_start.numpy()
        first, owner = names_of(model).start, model.joint_articulation.numpy()
        types, count = model.joint_type.numpy(), model.articulation_count
        self.coordinate = np.full((count, columns), -1)
        self.lower, self.upper = np.full((count, columns), -np.inf), np.full((count, columns), np.inf)
        low, high = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
        self.balls = []
        for j in np.flatnonzero(owner >= 0):
            a, kind = int(owner[j]), JOINT_TYPES[int(types[j])]
            if kind.has_quaternion:
                if kind.turns_only:
                    self.balls.append((a, starts[j] - starts[first[a]], q_starts[j]))
                continue
            for k in range(starts[j + 1] - starts[j]):
                at, i = starts[j] - starts[first[a]] + k, starts[j] + k
                self.coordinate[a, at] = q_starts[j] + k
                self.lower[a, at] = low[i] if low[i] > -NO_LIMIT else -np.inf
                self.upper[a, at] = high[i] if high[i] < NO_LIMIT else np.inf

    def room(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far each dof may go down and up."""
        x = np.where(self.coordinate >= 0, q[self.coordinate], 0.0)
        return np.minimum(self.lower - x, 0.0), np.maximum(self.upper - x, 0.0)

    def random(self, rng, model, q: np.ndarray) -> np.ndarray:
        """Coordinates of all dofs between their limits, the same in all articulations of the same kind. Those without two limits are about
        the coordinates `q`."""
        share, away = rng.random(self.lower.shape[1]), rng.normal(size=self.lower.shape[1])
        x = np.where(self.coordinate >= 0, q[self.coordinate], 0.0)
        bounded = np.isfinite(self.upper - self.lower)
        low, high = (np.where(bounded, limit, 0.0) for limit in (self.lower, self.upper))
        moves = np.where(bounded, low + share * (high - low) - x, np.clip(away, self.lower - x, self.upper - x))
        moved = wp.array(moves, dtype=model.dtype, device=model.device)
        at = wp.array(q, dtype=model.dtype, device=model.device)
        return _flat(model, global_coordinates(model, at, moved).numpy(), q)

    def in_chart(self, step: np.ndarray, q: np.ndarray) -> np.ndarray:
        """A change of dofs in the axes of local coordinates: of ball joints those of the child."""
        for a, at, k in self.balls:
            x, y, z, w = q[k : k + 4]
            step[a, at : at + 3] = quat_rotate(np.array([-x, -y, -z, w]), step[a, at : at + 3])
        return step


class _Poses:
    """Poses of a model within its limits, and the lengths of all tendons there. The first one is the initial pose."""

    def __init__(self, model):
        self.model, self.coordinates, lengths = model, [], []
        rng, state, limits = np.random.default_rng(0), model.state(requires_grad=False), None
        for _ in range(POSES):
            found, jacobian, _ = (x.numpy() for x in tendon_kinematics(model, state))
            lengths.append(found.astype(np.float64))
            self.coordinates.append(state.joint_q.numpy().copy())  # on CPUs numpy() shares memory
            limits = limits or _Limits(model, jacobian.shape[2])
            state.joint_q.assign(limits.random(rng, model, self.coordinates[0]))
        self.lengths = np.array(lengths)

    def starts(self, places: list[tuple[int, int]], sign: float) -> list[np.ndarray]:
        """Coordinates from which to look for the largest (sign 1) or smallest (-1) length of tendons of different articulations: those of
        the initial pose, and of the poses with the best lengths."""
        rows, tendons = (np.array(x) for x in zip(*places, strict=True))
        order = np.argsort(-sign * self.lengths[:, rows, tendons], axis=0, kind="stable")
        starts = [self.coordinates[0]]
        for best in order[:TRIES]:
            start = self.coordinates[0].copy()
            for k in set(best.tolist()):
                own = _coordinates_of(self.model, rows[best == k])
                start[own] = self.coordinates[k][own]
            starts.append(start)
        return starts


def _coordinates_of(model, articulations: np.ndarray) -> np.ndarray:
    """Which coordinates of a model are those of some articulations."""
    own = np.isin(model.joint_articulation.numpy(), articulations)
    return np.repeat(own, np.diff(model.joint_q_start.numpy()))


def _extremes(model, places: list[tuple[int, int]], sign: float, start: np.ndarray) -> np.ndarray:
    """The largest (sign 1) or smallest (-1) length of tendons of different articulations, by ascent along the gradient with a step size of
    each one, from coordinates of the model on; infinite, with that sign, for those that do not come to rest."""
    state = model.state(requires_grad=False)
    state.joint_q.assign(start)
    rows, tendons = (np.array(x) for x in zip(*places, strict=True))
    lengths, jacobian, _ = (x.numpy().astype(np.float64) for x in tendon_kinematics(model, state))
    limits = _Limits(model, jacobian.shape[2])
    length, slope = lengths[rows, tendons], sign * jacobian[rows, tendons]
    size = np.full(len(rows), FIRST_STEP)
    for _ in range(STEPS):
        q = state.joint_q.numpy()
        down, up = limits.room(q.astype(np.float64))
        way = np.where((slope > 0.0) & (up[rows] > 0.0) | (slope < 0.0) & (down[rows] < 0.0), slope, 0.0)
        most = np.abs(way).max(axis=1)
        size[most < 1.0e-12] = 0.0
        if (size < LEAST_STEP).all():
            return length
        step = np.zeros(jacobian.shape[::2])
        step[rows] = (size / np.maximum(most, 1.0e-12))[:, None] * way
        moved = limits.in_chart(np.clip(step, down, up), q.astype(np.float64))
        phi = wp.array(moved, dtype=model.dtype, device=model.device)
        new = global_coordinates(model, state.joint_q, phi)
        tried = model.state(requires_grad=False)
        tried.joint_q.assign(_flat(model, new.numpy(), q))
        lengths, jacobian, _ = (x.numpy().astype(np.float64) for x in tendon_kinematics(model, tried))
        better = sign * (lengths[rows, tendons] - length) > 0.0
        # articulations go on alone: the others stay where they are
        chosen = _coordinates_of(model, rows[better])
        state.joint_q.assign(np.where(chosen, tried.joint_q.numpy(), q))
        length = np.where(better, lengths[rows, tendons], length)
        slope = np.where(better[:, None], sign * jacobian[rows, tendons], slope)
        size = np.where(better, np.minimum(1.5 * size, MOST_STEP), 0.5 * size)
    return np.where(size < LEAST_STEP, length, sign * np.inf)


def _flat(model, dense: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Coordinates of articulations, ``[articulation_count, coordinates]``, in the order of the model; others as in `q`."""
    if dense.ndim == 1:
        return dense
    result, starts = q.copy(), model.joint_q_start.numpy()
    begin, end = model.articulation_start.numpy(), model.articulation_end.numpy()
    for a in range(model.articulation_count):
        low, high = starts[begin[a]], starts[end[a]]
        result[low:high] = dense[a, : high - low]
    return result
