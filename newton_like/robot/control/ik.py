"""Inverse kinematics: joint positions at which links have given poses, for one goal or thousands of them.

:func:`solve_ik` iterates in SIMD lanes and on all cores. It minimises half the weighted sum of squares of the rotation and translation
errors by the Levenberg-Marquardt method with a damping in proportion to that sum (Sugihara 2011, "Solvability-unconcerned inverse
kinematics by the Levenberg-Marquardt method"). Damped least squares are those of Nakamura and Hanafusa (1986) and Wampler (1986).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from newton_like.arrays import host_array
from newton_like.kernels.robot.ik import COST, COUNT, DAMPING, GOAL, POSITION_ERROR, RESULT, ROTATION_ERROR
from newton_like.robot.control.arguments import as_poses, check_limits
from newton_like.robot.core.calls import Calls
from newton_like.robot.core.robot import RobotCore
from newton_like.robot.core.shelf import Shelf
from newton_like.robot.core.state import StateCore
from newton_like.robot.core.tasks import POSE, Result, Task
from newton_like.robot.errors import RobotError, ShapeError
from newton_like.robot.robot import Robot, core_of
from newton_like.robot.screws import axis_of
from newton_like.robot.state import State
from newton_like.robot.structure.joint import UNLIMITED

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

_SLICE = 8
"""Iterations of a launch. Goals that are not reached by then go on in the next launch, in blocks of their own."""

_TABLE = 2048
"""Random configurations among which further starts are looked up."""

_FAR = 1e6
"""Limits beyond [rad or m] do not bound random configurations: these fill one turn, or two metres, next to the other limit or to 0."""

_STREAM = 20111
"""Second seed of these configurations."""

_LONGEST = 1.0
"""The largest change of a joint in one step [rad or m]."""

_SOLVERS = 8
"""Groups of links of a robot whose launches stay recorded."""


class IKResult(NamedTuple):
    """Joint positions, and how near they come to the goals.

    The error of the position comes before that of the rotation, whereas weights, tolerances and twists have the rotation first.

    Attributes:
        q: joint positions in the order of the state [rad or m], ``[n]`` or ``[batch, n]``. They are within the limits.
        success: whether all errors are within the tolerances, a number or ``[batch]``.
        position_error: distance of the target link from its goal [m]; of several targets, the largest one; a number or ``[batch]``.
        rotation_error: angle between the two orientations [rad]; of several targets, the largest one; a number or ``[batch]``.
        iterations: steps that were computed, in all starts, a number or ``[batch]``.

    Errors of targets whose weight is 0 are left out.
    """

    q: np.ndarray
    success: np.ndarray
    position_error: np.ndarray
    rotation_error: np.ndarray
    iterations: np.ndarray


def solve_ik(
    robot: Robot,
    state: State,
    target_link: int | Sequence[int],
    T_goal: ArrayLike | Sequence[ArrayLike],
    reference_link: int | Sequence[int] | None = None,
    *,
    weights: ArrayLike = (0.25, 1.0),
    tolerance: tuple[float, float] = (1e-6, 1e-6),
    iterations: int = 30,
    starts: int = 8,
    seed: int = 0,
) -> IKResult:
    """Joint positions at which the target link has a pose relative to the reference link.

    The first start is ``state.q``, moved between the limits. If the goal is not reached from there, further starts are taken from random
    configurations whose target poses are near the goal. Positions never leave the limits of the joints: a joint that would pass a limit
    stops there, and the step of the other joints is computed again. Joints that turn without limits end within half a turn of
    ``state.q``. Joints that do not move the target relative to the reference link keep their positions, if these are within the limits.
    The state is not changed.

    A goal of a batch has the same result as alone, bit by bit.

    Args:
        robot: the robot.
        state: the start, one configuration or a batch of them.
        target_link: index of the link that has a goal; or a list of them, such as two hands.
        T_goal: pose of the target link in the frame of the reference link, ``[4, 4]`` or ``[batch, 4, 4]``; for a list of targets, a
            list of them.
        reference_link: index of the reference link, or a list with one for each target; by default the base link.
        weights: of rotations [1/rad] and of positions [1/m], ``[2]``, or ``[targets, 2]`` for a list. Only their ratios matter. With a
            weight of 0, rotation or position is free. By default, 1 rad counts as much as 0.25 m, about the length of a link.
        tolerance: largest errors of rotation [rad] and position [m] of a goal that counts as reached.
        iterations: most steps from one start.
        starts: most starts for a goal, 2049 at most.
        seed: of the random configurations.

    Raises:
        ValueError, TypeError, IndexError: a state of another robot, no index of a link, no pose, or numbers of configurations that
            differ.
    """
    core = core_of(robot, state)
    several = isinstance(target_link, Sequence) or (isinstance(target_link, np.ndarray) and target_link.ndim > 0)
    targets, refs, goals = _goals(core, target_link, T_goal, reference_link, several)
    weights = (_known_weights if _is_plain(weights) else _weights)(weights, len(targets), several)
    tolerance = (_known_pair if _is_plain(tolerance) else _pair)(tolerance, "tolerance")
    for value, name in ((iterations, "iterations"), (starts, "starts")):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise RobotError(f"{name} is {value!r}; give a count of at least 1")
    if starts > _TABLE + 1:
        raise RobotError(f"starts is {starts}; give {_TABLE + 1} at most")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise RobotError(f"seed is {seed!r}; give an integer of at least 0")
    q = core.given["q"] if core.scale is None else core.given["q"] * core.scale
    counts = {a.shape[0] for a in (q, *goals) if a.ndim == (2 if a is q else 3)}
    if len(counts) > 1:
        raise ShapeError(
            f"state.q and T_goal have {' and '.join(map(str, sorted(counts)))} configurations; give the same number, or one"
        )
    count = counts.pop() if counts else None
    q = np.broadcast_to(np.atleast_2d(q), (count or 1, core.dofs))
    order = core.order
    poses = np.empty((len(q), len(goals), GOAL))
    for i, T in enumerate(goals):
        poses[:, i] = _numbers(T)
    settings = (weights, tolerance, int(iterations), int(starts), seed)
    solvers, key = _solvers(robot), (tuple(targets), tuple(refs))
    solver = solvers.take(key) or _Solver(robot, *key)
    found = solver.solve(poses, q[:, order], *settings)
    solvers.give(key, solver)
    q = found.q[:, np.argsort(order)]
    if core.scale is not None:
        q /= core.scale
        # division rounds
        np.clip(q, robot.get_limit_q_lower(state), robot.get_limit_q_upper(state), out=q)
    found = found._replace(q=q)
    return found if count is not None else IKResult(*(x[0] for x in found))


def _goals(
    core: StateCore, target_link, T_goal, reference_link, several: bool
) -> tuple[list[int], list[int], list[np.ndarray]]:
    """Bodies of targets and reference links, and their poses."""
    if not several:
        target_link, T_goal = [target_link], [T_goal]
    targets = [core.body(i) for i in target_link]
    if not targets:
        raise RobotError("target_link is an empty list; name a link")
    if reference_link is None:
        refs = [0] * len(targets)
    elif several and isinstance(reference_link, Sequence | np.ndarray):
        refs = [core.body(i) for i in reference_link]
    else:
        refs = [core.body(reference_link)] * len(targets)
    if len(refs) != len(targets):
        raise ShapeError(
            f"reference_link lists {len(refs)} links for {len(targets)} targets; give one for each, or one for all"
        )
    if len(T_goal) != len(targets):
        raise ShapeError(
            f"T_goal has {len(T_goal)} entries for {len(targets)} targets; give a list with the poses of each target"
        )
    return targets, refs, [as_poses(T, f"T_goal[{i}]" if several else "T_goal") for i, T in enumerate(T_goal)]


def _pair(value, what: str) -> np.ndarray:
    pair = np.asarray(host_array(value, what), dtype=float)
    if pair.shape != (2,):
        raise ShapeError(f"{what} has shape {pair.shape}; give two numbers, of rotation and position")
    if not (np.isfinite(pair).all() and (pair > 0.0).all()):
        raise RobotError(f"{what} {pair.tolist()} must be positive")
    return pair


def _weights(value, count: int, several: bool) -> np.ndarray:
    weights = np.asarray(host_array(value, "weights"), dtype=float)
    if weights.shape == (2,):
        weights = np.broadcast_to(weights, (count, 2))
    if weights.shape != (count, 2):
        wanted = f"[2] or [{count}, 2]" if several else "[2]"
        raise ShapeError(f"weights have shape {weights.shape}; give those of rotations and positions, {wanted}")
    if not np.isfinite(weights).all() or (weights < 0.0).any() or not weights.any():
        raise RobotError(f"weights {weights.tolist()} must be finite and at least 0, and one of them positive")
    return weights / weights.max()


def _is_plain(value) -> bool:
    """Whether a value is a tuple of two floats, as the defaults are. What becomes of these is kept."""
    return type(value) is tuple and len(value) == 2 and type(value[0]) is type(value[1]) is float


_known_pair, _known_weights = lru_cache(16)(_pair), lru_cache(16)(_weights)


class _Bounds:
    """Limits of all dofs in units of motion [rad or m]; those that are missing are infinite.

    Attributes:
        limits: those of the joints.
        free: rotations without limits.

    Raises:
        RobotError: a lower limit above the upper one.
    """

    def __init__(self, core: RobotCore, limits: list[tuple[float, float]], turns: np.ndarray):
        self.limits = limits
        lower, upper = np.array(limits, dtype=float).reshape(-1, 2).T
        check_limits(core.joint_names, lower, upper)
        # limits in units of motion may be infinite where those of coordinates are not
        with np.errstate(over="ignore"):
            self.lower = np.where(lower <= -UNLIMITED, -np.inf, lower) * core.scale
            self.upper = np.where(upper >= UNLIMITED, np.inf, upper) * core.scale
        self.free = turns & np.isinf(self.lower) & np.isinf(self.upper)


class _Solver:
    """Recorded launches for the poses of some links relative to others. Joints are in the robot's order, in units of motion.

    Args:
        robot: the robot.
        targets, refs: bodies.
    """

    def __init__(self, robot: Robot, targets: tuple[int, ...], refs: tuple[int, ...]):
        # a solver is kept as long as the robot, and does not keep it
        self._core = core = robot.core
        self._targets, self._refs = targets, refs
        axes = [axis_of(joint.S) for joint in core.joints]
        self._rotates = np.array([axis.rotates for axis in axes], dtype=bool)
        self._turns = np.array([axis.rotates and axis.pitch == 0.0 for axis in axes], dtype=bool)
        signs = np.zeros((len(targets), len(core.joints)), dtype=np.int32)
        for row, target, ref in zip(signs, targets, refs, strict=True):
            up, down = core.path(target, ref)
            row[up], row[down] = -1, 1
        moved = np.flatnonzero(signs.any(axis=0))
        self._moves = signs.any(axis=0)
        self._count, self._columns = len(signs), len(moved)
        pairs = np.ravel(list(zip(targets, refs, strict=True)))
        self._bodies = np.concatenate([[0, 0, 0], pairs, moved, signs[:, moved].ravel()]).astype(np.int32)
        self._dofs = len(core.joints)
        found = Result("ik_result", self._dofs + RESULT)
        self._task = Task(0, (found,), ("goals", "ik_settings"), traced="loop", program="eval_robot_ik")
        self._made: dict = {}
        self._tables: OrderedDict = OrderedDict()
        self._known_bounds: _Bounds | None = None

    def _bounds(self) -> _Bounds:
        """The limits as they are now."""
        limits = [joint.limit_q for joint in self._core.joints]
        if self._known_bounds is None or self._known_bounds.limits != limits:
            self._known_bounds = _Bounds(self._core, limits, self._turns)
        return self._known_bounds

    def _calls(self, count: int) -> Calls:
        if count not in self._made:
            n, rows = self._dofs, 6 * self._count
            sizes = {
                "goals": GOAL * self._count + 2, "ik_settings": 2 * n + 2 * self._count + 4, "ik_error": rows, "ik_columns": rows *
                    self._columns,
                "ik_gram": rows * (rows + 1) // 2, "ik_force": rows, "ik_step": self._columns, "ik_result": n + RESULT,
            }  # fmt: skip
            tree = {"points": self._count, "result_size": self._columns, "point_body": self._bodies}
            self._made[count] = Calls(self._core.machine, count, np.arange(n), self._core.evaluator, sizes, tree)
        return self._made[count]

    def _run(self, q: np.ndarray, goals: np.ndarray, damping, settings: np.ndarray) -> np.ndarray:
        """One launch, ``[count, n + RESULT]``. Batches of similar size share their memory, so that some of its lanes are idle."""
        count = len(q)
        size = 1 << (count - 1).bit_length()
        start, wanted = np.zeros((size, self._dofs)), np.zeros((size, GOAL * self._count + 2))
        start[:count] = q
        wanted[:count, :-2] = goals.reshape(count, -1)
        wanted[:count, -2], wanted[:count, -1] = damping, 1.0
        arrays = {"q": start, "goals": wanted, "ik_settings": settings}
        (found,) = self._calls(size).evaluate(self._task, arrays, [(self._dofs + RESULT,)], (0, 0, 0))
        return found[:count]

    def solve(self, goals, q, weights, tolerance, iterations: int, starts: int, seed) -> IKResult:
        """See :func:`solve_ik`; goals as positions and rotation matrices, ``[count, targets, GOAL]``."""
        n, count, first = self._dofs, len(q), q
        bounds = self._bounds()
        lower, upper = bounds.lower, bounds.upper
        settings = np.concatenate([lower, upper, weights.ravel(), tolerance, [0.0, _LONGEST]])
        best, cost = q.copy(), np.full(count, np.inf)
        rotation, position, steps = np.full(count, np.inf), np.full(count, np.inf), np.zeros(count, dtype=np.int64)
        success, todo, start = np.zeros(count, dtype=bool), np.arange(count), q
        for attempt in range(starts):
            if attempt:
                table, tree = self._table(lower, upper, weights, seed)
                # the configuration whose poses are next nearest to the goals
                nearest = tree.query(_features(goals[todo], weights), k=[attempt])[1][:, 0]
                start = np.where(self._moves, table[nearest], first[todo])
            active, q, damping, used = todo, start, 1.0, 0
            while len(active) and used < iterations:
                limit = min(_SLICE, iterations - used)
                settings[-2] = limit
                found = self._run(q, goals[active], damping, settings)
                now = found[:, n:]
                steps[active] += now[:, COUNT].astype(np.int64)
                better = now[:, COST] < cost[active]
                at = active[better]
                best[at], cost[at] = found[better, :n], now[better, COST]
                rotation[at], position[at] = now[better, ROTATION_ERROR], now[better, POSITION_ERROR]
                reached = (now[:, ROTATION_ERROR] < tolerance[0]) & (now[:, POSITION_ERROR] < tolerance[1])
                on = ~reached & (now[:, COUNT] >= limit)
                active, q, damping, used = active[on], found[on, :n], now[on, DAMPING], used + limit
            success = (rotation < tolerance[0]) & (position < tolerance[1])
            todo = todo[~success[todo]]
            if not len(todo):
                break
        free = bounds.free
        if free.any():
            best[:, free] -= math.tau * np.rint((best - first)[:, free] / math.tau)
        return IKResult(best, success, position, rotation, steps)

    def _table(self, lower, upper, weights, seed) -> tuple[np.ndarray, cKDTree]:
        """Random configurations between limits, and their target poses."""
        from scipy.spatial import cKDTree  # an import takes a quarter of a second

        key = (lower.tobytes(), upper.tobytes(), weights.tobytes(), seed)
        if key not in self._tables:
            reach = np.where(self._rotates, math.tau, 2.0)
            low = np.where(lower > -_FAR, lower, np.where(upper < _FAR, upper - reach, -0.5 * reach))
            high = np.where(upper < _FAR, upper, low + reach)
            low, high = np.maximum(low, lower), np.minimum(high, upper)
            # not the numbers that others draw from the same seed
            table = np.random.default_rng([seed, _STREAM]).uniform(low, high, (_TABLE, self._dofs))
            poses = np.empty((_TABLE, self._count, GOAL))
            calls = Calls(self._core.machine, _TABLE, np.arange(self._dofs), "general")
            for i, (target, ref) in enumerate(zip(self._targets, self._refs, strict=True)):
                (T,) = calls.evaluate(POSE, {"q": table / self._core.scale}, [(4, 4)], (target, ref, 0))
                poses[:, i] = _numbers(T)
            self._tables[key] = table, cKDTree(_features(poses, weights))
            if len(self._tables) > 2:
                self._tables.popitem(last=False)
        return self._tables[key]


def _numbers(T: np.ndarray) -> np.ndarray:
    """Positions and rotation matrices of transforms, ``[..., GOAL]``."""
    return np.concatenate([T[..., :3, 3], T[..., :3, :3].reshape(*T.shape[:-2], 9)], axis=-1)


def _features(poses: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Numbers whose differences are about weighted errors of poses: positions, and rotation matrices over the root of 2."""
    parts = [weights[:, 1:] * poses[..., :3], weights[:, :1] / math.sqrt(2.0) * poses[..., 3:]]
    return np.concatenate(parts, axis=-1).reshape(len(poses), -1)


_KNOWN: WeakKeyDictionary = WeakKeyDictionary()
"""For each robot, its solvers that no thread uses now."""


def _solvers(robot: Robot) -> Shelf:
    found = _KNOWN.get(robot)
    return _KNOWN.setdefault(robot, Shelf(_SOLVERS)) if found is None else found
