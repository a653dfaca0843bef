"""Inverse kinematics by quadratic programs: steps towards goals that keep limits of positions and velocities and distances of capsules.

The solver is DAQP (Arnstrom, Bemporad and Axehill 2022, "A dual active-set solver for embedded quadratic programming using recursive
LDL^T updates"), which the extra ``ik`` installs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from newton_like.coercion import as_list, as_number
from newton_like.robot.control.arguments import as_poses, as_vectors
from newton_like.robot.control.task_space import pose_error, task_jacobian
from newton_like.robot.errors import RobotError, ShapeError
from newton_like.robot.robot import Robot, core_of
from newton_like.robot.state import State

_INFINITE = 1e30
"""What the solver takes for infinite."""

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

_STILL = 1e-9
"""Derivative of a distance [m/rad or m/m] below which no joint changes it."""

_PROGRESS, _PATIENCE = 0.99, 50
"""A motion stalls if so many steps bring the errors to no less than this part of the least ones so far."""

_ROUNDING = 1e-12
"""Part of a limit (and of 1 rad or 1 m) by which a position that moves back to the limit may miss it."""

_SMALLEST = 1e-10
"""Change of all joints [rad or m] below which a motion stalls."""


@dataclass(frozen=True)
class PoseTask:
    """A pose that a link is to have.

    Attributes:
        link: index of the link.
        pose: in the frame of the reference link, ``[4, 4]``.
        reference: index of the reference link; None: the base link.
        rotation_weight: weight of the rotation error [1/rad].
        position_weight: weight of the position error [1/m].
        gain: part of the error that a step is to remove, above 0 and at most 1.
    """

    link: int
    pose: np.ndarray
    reference: int | None = None
    rotation_weight: float = 1.0
    position_weight: float = 1.0
    gain: float = 1.0


class QPStep(NamedTuple):
    """A step towards goals.

    Attributes:
        dq: changes of the joint positions [rad or m], ``[n]``; zero where there is no solution.
        success: whether dq is the solution.
        status: ``"optimal"``, ``"infeasible"`` (no step keeps all limits and distances), or the solver's other reason.
    """

    dq: np.ndarray
    success: bool
    status: str


class QPPath(NamedTuple):
    """A motion towards goals.

    Attributes:
        q: positions after each step, those of the start first [rad or m], ``[steps + 1, n]``. Positions within the limits stay within
            them.
        success: whether all goals were reached by positions within the limits.
        status: ``"reached"``; ``"stalled"``: the errors do not get smaller, nor do positions beyond limits come back; ``"steps"``: the
            number of steps was used up; or the status of the step that failed, after which there are no others.
        rotation_error, position_error: the largest ones of all tasks at the end [rad, m].
    """

    q: np.ndarray
    success: bool
    status: str
    rotation_error: float
    position_error: float


_SLACK, _EVEN, _HALVINGS = 1e-4, 1e-9, 12
"""How much nearer than the safe distance, and than before, capsules may come [m]; and how often a step is halved for that."""

_WAY = np.linspace(0.0, 1.0, 17)[1:]
"""Parts of a step after which distances are checked."""


def solve_qp_step(
    robot: Robot,
    state: State,
    tasks: PoseTask | Sequence[PoseTask],
    *,
    dt: float | None = None,
    damping: float = 1e-4,
    posture=None,
    posture_weight: float = 1e-2,
    safe_distance: float | None = None,
    pairs: Sequence[int] | None = None,
    nearest: int = 8,
    approach: float = 0.5,
) -> QPStep:
    """The step dq from ``state.q`` that minimises the squares of ``weight (J dq - gain e)`` of all tasks, of ``posture_weight (dq -
    (posture - q))``, and of ``damping dq``, and keeps the limits.

    Limits: ``q + dq`` is within the limits of positions, and with `dt` ``dq`` is within those of velocities times dt. A joint beyond a
    limit of positions moves back, as far as its velocity allows. With `safe_distance`, the linearised distance d of each of the nearest
    pairs of capsules keeps ``grad d . dq >= -approach (d - safe_distance)`` (Faverjon and Tournassoud 1987, "A local based approach for
    path planning of manipulators with a high number of degrees of freedom"). Pairs whose distance no joint changes are left out. The
    state is not changed.

    Args:
        robot: the robot.
        state: one configuration.
        tasks: the goals.
        dt: duration of the step [s]; None: velocities are not limited.
        damping: weight of the step [1/rad or 1/m], above 0. It keeps steps small near singular configurations.
        posture: joint positions that the robot approaches as far as the tasks allow [rad or m], ``[n]``; None: none.
        posture_weight: its weight [1/rad or 1/m].
        safe_distance: least distance of capsules [m]; None: distances are not looked at.
        pairs: indices of the pairs of :meth:`Robot.compute_distances` that are looked at; by default all.
        nearest: number of pairs, the nearest ones, that constrain a step.
        approach: part of the free distance that a step may use, above 0 and at most 1.

    Raises:
        ImportError: the solver is not installed.
        ValueError, TypeError, IndexError: a state of another robot or a batch, no index of a link, or wrong shapes and numbers.
    """
    solve = _solver()
    core = core_of(robot, state)
    n, q = core.dofs, core.given["q"]
    if q.ndim != 1:
        raise ShapeError(f"state.q has {len(q)} configurations; quadratic programs take one. For a batch, see solve_ik")
    H = np.diag(np.full(n, _number(damping, "damping", above=True) ** 2))
    f = np.zeros(n)
    for task in _tasks(tasks):
        J, e, gain = _rows(robot, state, task)
        H += J.T @ J
        f -= J.T @ (gain * e)
    if posture is not None:
        w = _number(posture_weight, "posture_weight") ** 2
        wanted = as_vectors(posture, n, "posture")
        if wanted.ndim != 1:
            raise ShapeError(f"posture has shape {wanted.shape}; give [{n}]")
        H[np.diag_indices(n)] += w
        f -= w * (wanted - q)
    low, high = robot.get_limit_q_lower(state) - q, robot.get_limit_q_upper(state) - q
    if dt is not None:
        dt = _number(dt, "dt", above=True)
        slow, fast = dt * robot.get_limit_qdot_lower(state), dt * robot.get_limit_qdot_upper(state)
        low, high = np.clip(low, slow, fast), np.clip(high, slow, fast)
    G, least = _separation(robot, state, n, safe_distance, pairs, nearest, approach)
    lower = np.concatenate([np.maximum(low, -_INFINITE), least])
    upper = np.concatenate([np.minimum(high, _INFINITE), np.full(len(least), _INFINITE)])
    dq, _, flag, _ = solve(H, f, G, upper, lower, primal_tol=1e-10)
    status = _STATUS.get(flag, f"exit flag {flag}")
    if status != "optimal" or not np.isfinite(dq).all():
        return QPStep(np.zeros(n), False, status if status != "optimal" else "not finite")
    # the solver keeps bounds to its tolerance
    return QPStep(np.clip(dq, low, high), True, status)


def solve_ik_qp(
    robot: Robot,
    state: State,
    tasks: PoseTask | Sequence[PoseTask],
    *,
    tolerance: tuple[float, float] = (1e-4, 1e-4),
    steps: int = 200,
    longest_step: float = 0.2,
    **options,
) -> QPPath:
    """Steps of :func:`solve_qp_step` from ``state.q`` until all goals are reached, and all joints are within their limits. The state is
    not changed.

    With `safe_distance`, steps are shortened in which a pair of capsules would come nearer than that, or nearer than before. The distances
    of all pairs (or of `pairs`) are checked at 16 places of each step.

    Args:
        robot: the robot.
        state: one configuration, the start.
        tasks: the goals.
        tolerance: largest errors of rotation [rad] and position [m] of a goal that counts as reached. Errors with a weight of 0 do not
            count.
        steps: most steps.
        longest_step: the largest change of a joint in one step [rad or m]; longer steps are shortened as a whole.
        options: of :func:`solve_qp_step`.

    Raises:
        ImportError, ValueError, TypeError, IndexError: see :func:`solve_qp_step`.
    """
    tasks = _tasks(tasks)
    tolerance = as_vectors(tolerance, 2, "tolerance")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise RobotError(f"steps is {steps!r}; give a count of at least 1")
    longest_step = _number(longest_step, "longest_step", above=True)
    start = core_of(robot, state).given["q"]
    if start.ndim != 1:
        raise ShapeError("state.q is a batch; quadratic programs take one configuration. For a batch, see solve_ik")
    now = robot.make_state(state.link_names, state.joint_names)
    now.set_q(start)
    between = robot.make_state(state.link_names, state.joint_names)
    path, status = [now.get_q()], "steps"
    least, since = np.inf, 0
    safe, pairs = options.get("safe_distance"), options.get("pairs")
    low, high = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
    for _ in range(int(steps)):
        q = now.get_q()
        bound = np.clip(q, low, high)
        errors, beyond = _errors(robot, now, tasks), float(np.abs(q - bound).max(initial=0.0))
        if not beyond and _reached(errors, tolerance):
            break
        size = beyond + sum(errors)
        if size < _PROGRESS * least:
            least, since = size, 0
        elif since >= _PATIENCE:
            status = "stalled"
            break
        since += 1
        step = solve_qp_step(robot, now, tasks, **options)
        if not step.success:
            status = step.status
            break
        largest = np.abs(step.dq).max(initial=0.0)
        if largest < _SMALLEST and not beyond:
            status = "stalled"
            break
        inside = q == bound
        dq = step.dq * (longest_step / max(largest, longest_step))
        if safe is not None:
            # links that do not move against each other may be nearer; their distances have rounding
            least_distance = np.minimum(robot.compute_distances(now, pairs).distance - _EVEN, safe - _SLACK)
        for _ in range(_HALVINGS):
            bound = np.clip(q + dq, low, high)
            at_limit = np.abs(q + dq - bound) <= _ROUNDING * np.maximum(1.0, np.abs(bound))
            now.set_q(np.where(inside | at_limit, bound, q + dq))
            if safe is None:
                break
            between.set_q(q + _WAY[:, None] * (now.get_q() - q))
            if (robot.compute_distances(between, pairs).distance >= least_distance).all():
                break
            # the distances of the step are linearised
            dq *= 0.5
        else:
            now.set_q(q)
            status = "stalled"
            break
        path.append(now.get_q())
    errors = _errors(robot, now, tasks)
    q = path[-1]
    success = bool(((q >= low) & (q <= high)).all()) and _reached(errors, tolerance)
    return QPPath(np.array(path), success, "reached" if success else status, *errors)


def _solver():
    try:
        from daqp import solve
    except ImportError as error:
        raise ImportError(
            "quadratic programs are solved by daqp, which is not installed; run: pip install 'newton-like[ik]'"
        ) from error
    return solve


def _number(value, what: str, above: bool = False) -> float:
    try:
        number = as_number(value, what)
    except ValueError as error:
        raise RobotError(str(error)) from None
    if number < 0.0 or (above and number == 0.0):
        raise RobotError(f"{what} {number:g} must be {'positive' if above else 'at least 0'}")
    return number


def _tasks(tasks) -> list[PoseTask]:
    tasks = [tasks] if isinstance(tasks, PoseTask) else as_list(tasks, "tasks", "PoseTask")
    for task in tasks:
        if not isinstance(task, PoseTask):
            raise TypeError(f"tasks must be a list of PoseTask, but has {task!r}")
        for name in ("rotation_weight", "position_weight"):
            _number(getattr(task, name), name)
        if not 0.0 < _number(task.gain, "gain") <= 1.0:
            raise RobotError(f"gain {task.gain:g} of a task must be above 0 and at most 1")
    return tasks


def _measured(robot: Robot, state: State, task: PoseTask) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian and pose error of a task."""
    goal = as_poses(task.pose, "pose of a task")
    if goal.ndim != 2:
        raise ShapeError(f"pose of a task has shape {goal.shape}; give [4, 4]")
    T, J = task_jacobian(robot, state, task.link, state.base_link_idx if task.reference is None else task.reference)
    return J, pose_error(goal, T)


def _rows(robot: Robot, state: State, task: PoseTask) -> tuple[np.ndarray, np.ndarray, float]:
    J, e = _measured(robot, state, task)
    w = np.repeat([float(task.rotation_weight), float(task.position_weight)], 3)
    return w[:, None] * J, w * e, task.gain


def _errors(robot: Robot, state: State, tasks: list[PoseTask]) -> tuple[float, float]:
    """The largest errors of rotation and position."""
    rotation = position = 0.0
    for task in tasks:
        _, e = _measured(robot, state, task)
        rotation = max(rotation, float(np.linalg.norm(e[:3])) if task.rotation_weight else 0.0)
        position = max(position, float(np.linalg.norm(e[3:])) if task.position_weight else 0.0)
    return rotation, position


def _reached(errors: tuple[float, float], tolerance: np.ndarray) -> bool:
    return errors[0] <= tolerance[0] and errors[1] <= tolerance[1]


def _separation(robot, state, n: int, safe_distance, pairs, nearest, approach) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of distances, and the least products of these and dq."""
    if safe_distance is None:
        return np.zeros((0, n)), np.zeros(0)
    safe = _number(safe_distance, "safe_distance")
    share = _number(approach, "approach", above=True)
    if share > 1.0:
        raise RobotError(f"approach {share:g} must be at most 1")
    if isinstance(nearest, bool) or not isinstance(nearest, int | np.integer) or nearest < 1:
        raise RobotError(f"nearest is {nearest!r}; give a count of at least 1")
    every = robot.compute_distances(state, pairs, jacobian=True)
    moves = np.flatnonzero(np.abs(every.jacobian).max(axis=1, initial=0.0) > _STILL)
    chosen = moves[np.argsort(every.distance[moves], kind="stable")[:nearest]]
    return np.ascontiguousarray(every.jacobian[chosen]), share * (safe - every.distance[chosen])
