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

STEPS = 400
"""Steps of a search. A length that still changes then has no bound."""


def length_ranges(model, muscles: dict[int, int]) -> dict[int, tuple[float, float]]:
    """Smallest and largest length of tendons, as local extremes of the length within the limits of joints, which searches reach from the
    initial coordinates on, and within the limits of the tendon. Loops, mimic joints, equalities and limits of other tendons are not
    regarded.

    MuJoCo finds the same extremes by pulling at the tendon in a damped motion without gravity (documentation, "Modeling", "Length range").

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
    for group in rounds.values():
        for sign in (-1.0, 1.0):
            lengths = _extremes(model, [places[n] for n in group], sign)
            for n, length in zip(group, lengths, strict=True):
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

    def in_chart(self, step: np.ndarray, q: np.ndarray) -> np.ndarray:
        """A change of dofs in the axes of local coordinates: of ball joints those of the child."""
        for a, at, k in self.balls:
            x, y, z, w = q[k : k + 4]
            step[a, at : at + 3] = quat_rotate(np.array([-x, -y, -z, w]), step[a, at : at + 3])
        return step


def _extremes(model, places: list[tuple[int, int]], sign: float) -> list[float]:
    """The largest (sign 1) or smallest (-1) length of tendons of different articulations, by ascent along the gradient with a step size of
    each one; infinite, with that sign, for those that do not come to rest."""
    state = model.state(requires_grad=False)
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
            return length.tolist()
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
        keep = np.isin(model.joint_articulation.numpy(), rows[better])
        starts = model.joint_q_start.numpy()
        chosen = np.repeat(keep, np.diff(starts))
        state.joint_q.assign(np.where(chosen, tried.joint_q.numpy(), q))
        length = np.where(better, lengths[rows, tendons], length)
        slope = np.where(better[:, None], sign * jacobian[rows, tendons], slope)
        size = np.where(better, np.minimum(1.5 * size, MOST_STEP), 0.5 * size)
    return np.where(size < LEAST_STEP, length, sign * np.inf).tolist()


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
