"""Configurations that close loop joints, and satisfy equality constraints, mimic joints and ties of tendons."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.coercion import as_count, as_number
from newton_like.dynamics.coordinates.joint_values import places_of
from newton_like.dynamics.internal.common import Q, V, joints_changed, state_arrays
from newton_like.dynamics.loops import loop_jacobian, loops_of
from newton_like.dynamics.relations import Relations
from newton_like.dynamics.tied_lengths import TiedLengths
from newton_like.programs.program import Field, Program
from newton_like.programs.run import run

LARGEST_STEP = 0.5
"""Largest motion of a dof in an iteration [m or rad]."""

NUDGES = (0.01, 0.1)
"""Random motions of the dofs [m or rad] from which further searches begin. A search cannot leave a straight chain whose ends have to
approach each other: no joint changes their distance there."""

_DISPLACE = Program("eval_displaced", (Q, V), (Field("q", "coords"),))


def assemble(model, state, *, fixed=(), tolerance: float | None = None, iterations: int = 100) -> None:
    """Moves the joints of a state until all loop joints are closed, and equality constraints, mimic joints and ties of tendons are
    satisfied.

    The damped Gauss-Newton method of Levenberg (1944) and Marquardt (1963) takes small steps, so that the result is near the start. Each
    step is the correction with the smallest sum of squares of joint motions. Only coordinates change; velocities stay.

    Where joints cannot leave the start, as in a straight chain whose ends have to approach each other, the search begins again close by.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; ``joint_q`` is read and written, ``body_q`` is not written (see :func:`newton_like.eval_fk`).
        fixed: names or indices of joints that keep their coordinates.
        tolerance: largest remaining gap of a row of :func:`constraint_jacobian` [m, or cosine], and of a relation between coordinates or
            lengths of tendons [m or rad]; None: 1e-5 in single precision, 1e-9 in double precision.
        iterations: largest number of iterations.

    Raises:
        ValueError: a loop, a relation or a tie stays open: the message names the world, the joints or tendons and their gaps, and the
            state is unchanged. Or a loop joint connects two articulations, or limits a distance; an equality constraint is out of range; an
            array has the wrong shape or device, or numbers that are not finite.
        KeyError, IndexError, TypeError: as :func:`newton_like.dynamics.joint_positions`.
    """
    tolerance = as_number(
        tolerance if tolerance is not None else (1e-9 if model.dtype is wp.float64 else 1e-5), "tolerance"
    )
    if not tolerance > 0.0:
        raise ValueError(f"tolerance {tolerance:g} must be above 0")
    iterations = as_count(iterations, "iterations")
    q, _ = state_arrays(model, state)
    held = _held(model, fixed)
    trial = model.state()
    trial.joint_q.assign(q)
    relations, ties = Relations(model), TiedLengths(model)
    if not _rows(model, trial, held, relations, ties)[0].size:
        return
    start, rng = wp.clone(trial.joint_q), np.random.default_rng(0)
    gap = _search(model, trial, held, relations, ties, tolerance, iterations)
    for nudge in NUDGES:
        stuck = np.abs(gap).max(axis=1) > tolerance
        if not stuck.any():
            break
        found = wp.clone(trial.joint_q)
        _take_back(model, trial, start, stuck)
        displace(model, trial, np.where(stuck[:, None] & ~held, rng.uniform(-nudge, nudge, held.shape), 0.0))
        new_gap = _search(model, trial, held, relations, ties, tolerance, iterations)
        still = np.abs(new_gap).max(axis=1) > tolerance
        _take_back(model, trial, found, still)
        gap = np.where(still[:, None], gap, new_gap)
    _check(model, gap, tolerance, relations, ties)
    q.assign(trial.joint_q)
    joints_changed(state)


def _search(model, trial, held: np.ndarray, relations, ties, tolerance: float, iterations: int) -> np.ndarray:
    """Moves the joints of `trial` towards closed loops. Returns the gaps that are left, ``[articulation_count, rows]``."""
    K, gap = _rows(model, trial, held, relations, ties)
    damping = np.full(len(gap), 1.0e-6)
    size = np.square(gap).sum(axis=1)
    for _ in range(iterations):
        if np.abs(gap).max() <= 0.1 * tolerance:
            break
        start = wp.clone(trial.joint_q)
        scale = np.maximum(np.square(K).sum(axis=(1, 2)), 1e-30)
        gram = K @ K.transpose(0, 2, 1) + (damping * scale)[:, None, None] * np.eye(K.shape[1])
        step = -np.einsum("ard,ar->ad", K, np.linalg.solve(gram, gap[..., None])[..., 0])
        step *= np.minimum(1.0, LARGEST_STEP / np.maximum(np.abs(step).max(axis=1), 1e-30))[:, None]
        displace(model, trial, step)
        new_K, new_gap = _rows(model, trial, held, relations, ties)
        new_size = np.square(new_gap).sum(axis=1)
        worse = new_size > size
        if worse.any():
            _take_back(model, trial, start, worse)
        K, gap = np.where(worse[:, None, None], K, new_K), np.where(worse[:, None], gap, new_gap)
        size = np.where(worse, size, new_size)
        damping = np.clip(np.where(worse, 10.0 * damping, 0.1 * damping), 1e-12, 1e6)
    return gap


def _held(model, fixed) -> np.ndarray:
    """Which dofs of each articulation stay, ``[articulation_count, max_dofs_per_articulation]``."""
    places = places_of(model, "joint_qd", None).numpy()
    chosen = places_of(model, "joint_qd", fixed).numpy()
    return np.isin(places, chosen[chosen >= 0]) & (places >= 0)


def _rows(model, state, held: np.ndarray, relations: Relations, ties: TiedLengths) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian and errors of the rows of loop joints, then of the relations, then of the ties."""
    found = [relations.rows(state.joint_q.numpy().astype(np.float64)), ties.rows(state)]
    if loops_of(model, polynomials=True).count:
        found.insert(0, [x.numpy().astype(np.float64) for x in loop_jacobian(model, state)])
    K, gap = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    K[:, :, : held.shape[1]][np.broadcast_to(held[:, None], (*K.shape[:2], held.shape[1]))] = 0.0
    return K, gap


def displace(model, state, step: np.ndarray) -> None:
    """Moves the joints by the velocities `step`, ``[articulation_count, max_dofs_per_articulation]``, in the time 1."""
    places = places_of(model, "joint_qd", None).numpy()
    velocities = np.zeros(model.joint_dof_count)
    velocities[places[places >= 0]] = step[:, : places.shape[1]][places >= 0]
    moved = wp.clone(state.joint_q)
    run(model, _DISPLACE, [state.joint_q, wp.array(velocities, dtype=model.dtype, device=model.device), moved])
    state.joint_q.assign(moved)


def _take_back(model, state, start: wp.array, chosen: np.ndarray) -> None:
    """Gives the chosen articulations their coordinates of before."""
    places = places_of(model, "joint_q", None).numpy()[chosen]
    q = state.joint_q.numpy().copy()
    q[places[places >= 0]] = start.numpy()[places[places >= 0]]
    state.joint_q.assign(q)


def _check(model, gap: np.ndarray, tolerance: float, relations: Relations, ties: TiedLengths) -> None:
    """Raises ValueError if a row is open."""
    size = np.abs(gap)
    if size.max() <= tolerance:
        return
    a = int(np.argmax(size.max(axis=1)))
    loops = loops_of(model, polynomials=True)
    worst: dict[str, float] = {}
    for row in np.argsort(-size[a]).tolist():
        if size[a, row] > max(tolerance, 0.02 * size[a].max()):
            worst.setdefault(_name(model, loops, relations, ties, a, row), size[a, row])
    (name, largest), *more = worst.items()
    more = "".join(f", {name} by {x:.3g}" for name, x in more[:3])
    open_ones = int((size.max(axis=1) > tolerance).sum())
    others = f" (and constraints of {open_ones - 1} more articulations)" if open_ones > 1 else ""
    world = int(model.articulation_world.numpy()[a])
    where = f"world {world} ('{model.world_label[world]}'), " if world >= 0 else ""
    raise ValueError(
        f"{where}articulation '{model.articulation_label[a]}': {name} stays open by {largest:.3g} m or rad{more}{others}; start nearer to"
        " a closed configuration, or correct anchors or relations that contradict each other"
    )


def _name(model, loops, relations: Relations, ties: TiedLengths, a: int, row: int) -> str:
    if row < loops.count:
        j = next(j for j, (s, e) in zip(loops.joints[a], loops.ranges[a], strict=True) if s <= row < e)
        return f"loop joint '{model.joint_label[j]}' (index {j})"
    row -= loops.count
    return relations.names[a][row] if row < relations.count else ties.names[a][row - relations.count]
