"""Inverse kinematics by quadratic programs: steps towards goals that keep limits of positions and velocities and distances of capsules."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from newton_like.coercion import as_list, as_number
from newton_like.robot.arguments import as_array
from newton_like.robot.control.arguments import as_poses, check_limits
from newton_like.robot.control.quadratic import minimum, solver
from newton_like.robot.control.sweep import Sweep, distance_bounds
from newton_like.robot.control.task_space import pose_error, task_jacobian
from newton_like.robot.errors import RobotError, ShapeError
from newton_like.robot.nearest import Distances, capsules_of, chosen_pairs
from newton_like.robot.robot import Robot, core_of
from newton_like.robot.state import State

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
        dq: changes of the joint positions [rad or m], ``[n]``; zero if there is no success.
        success: whether dq keeps all limits and distances or, for joints beyond their limits and capsules too near, does not make it worse;
            see `too_near`.
        status: of a success, ``"optimal"``: dq is the solution; ``"shortened"``: dq is the solution times a power of 1/2, because the
            solution leads capsules too near; ``"still"``: no other step than zero was found. Otherwise ``"infeasible"`` (no step keeps all
            limits; or the solution leads capsules too near, and limits of velocities that leave out 0 do not let it be halved), or another
            reason of the solver.
        too_near: names of the links of the pairs of capsules that are nearer than the safe distance at the start of the step.
    """

    dq: np.ndarray
    success: bool
    status: str
    too_near: list[tuple[str, str]]


class QPPath(NamedTuple):
    """A motion towards goals.

    Attributes:
        q: positions after each step, those of the start first [rad or m], ``[steps + 1, n]``. Positions within the limits stay within
            them.
        success: whether all goals were reached by positions within the limits, and no pair of capsules that counts is nearer than the safe
            distance at the end.
        status: ``"reached"``; ``"stalled"``: neither do the errors get smaller, nor do positions beyond limits and capsules that are too
            near come back; ``"steps"``: the number of steps was used up; or the status of the step that failed, after which there are no
            others. It is ``"infeasible"``, too, for a step that would have to be halved although limits of velocities leave out 0.
        rotation_error, position_error: the largest ones of all tasks at the end [rad, m].
        too_near: names of the links of the pairs of capsules that are nearer than the safe distance at the end.
    """

    q: np.ndarray
    success: bool
    status: str
    rotation_error: float
    position_error: float
    too_near: list[tuple[str, str]]


_SLACK, _EVEN, _HALVINGS = 1e-4, 1e-9, 12
"""How much nearer than the safe distance, and than before, capsules may come [m]; and how often a step is halved for that."""

_PARTS = (1.0, 0.25, 0.0625, 0.015625, 0.0)
"""Parts of the way back to limits and safe distances that a step tries, until one is possible together with all else."""

_FOUND = "optimal", "still"
"""Results of quadratic programs that keep all limits."""

_ROUNDS = 4
"""How often a step is computed, each time with the pairs of capsules that the step before brought too near."""

_FARTHEST = 1.0
"""Change of all joints [rad or m] by which capsules may be moved apart. If the derivative of a distance tells that it is not enough, a step
does not try."""

_FAR = 1e6
"""Limits beyond [rad or m] do not bound random configurations: these fill one turn, or as many metres."""

_SAMPLES = 192
"""Random configurations that tell which capsules always overlap."""


def solve_qp_step(
    robot: Robot,
    state: State,
    tasks: PoseTask | Sequence[PoseTask],
    *,
    dt: float | None = None,
    damping: float = 1e-4,
    posture: ArrayLike | None = None,
    posture_weight: float = 1e-2,
    safe_distance: float | None = None,
    pairs: Sequence[int] | None = None,
    nearest: int = 8,
    approach: float = 0.5,
    longest_step: float = 0.2,
) -> QPStep:
    """The step dq from ``state.q`` that minimises the squares of ``weight (J dq - gain e)`` of all tasks, of ``posture_weight (dq -
    (posture - q))``, and of ``damping dq``, and keeps the limits. The state is not changed.

    No joint moves by more than `longest_step`: Jacobians and linearised distances hold for small steps only. ``q + dq`` is within the
    limits of positions, and with `dt` ``dq`` is within those of velocities times dt. A joint beyond a limit of positions moves back, as far
    as its velocity and `longest_step` allow.

    With `safe_distance`, the linearised distance d of each of the nearest pairs of capsules keeps ``grad d . dq >= -approach (d -
    safe_distance)`` (Faverjon and Tournassoud 1987, "A local based approach for path planning of manipulators with a high number of degrees
    of freedom"). The distances of all pairs at the end of the step are then computed without linearisation. If a pair is nearer than
    `safe_distance`, and nearer than before, by more than 0.1 mm, the pair becomes a constraint and the step is computed again. If that does
    not help, the step is halved until no pair is too near. Distances between the start and the end are not computed; :func:`solve_ik_qp`
    does that.

    Capsules that are too near come apart, and joints beyond their limits move back. If no step does all of this, a quarter of it is
    demanded, then a sixteenth, and so on, and then nothing. Capsules that 1 rad (or 1 m) of all joints would not bring apart have only to
    come no nearer. Pairs whose distance no joint changes are left out, and so are pairs that overlap now and in 192 random configurations,
    such as capsules of adjacent links. :attr:`QPStep.too_near` names all pairs that are too near.

    Args:
        robot: the robot.
        state: one configuration.
        tasks: the goals, at least one. Tasks with the weights 0 have no effect.
        dt: duration of the step [s]; None: velocities are not limited.
        damping: weight of the step [1/rad or 1/m], above 0. It keeps steps small near singular configurations.
        posture: joint positions that the robot approaches as far as the tasks allow [rad or m], ``[n]``; None: none.
        posture_weight: its weight [1/rad or 1/m].
        safe_distance: least distance of capsules [m]; None: distances are not looked at.
        pairs: indices of the pairs of :meth:`Robot.compute_distances` that are looked at; by default all.
        nearest: number of pairs, the nearest ones, that constrain a step.
        approach: part of the free distance that a step may use, above 0 and at most 1.
        longest_step: largest change of a joint [rad or m].

    Raises:
        ImportError: the solver is not installed.
        ValueError, TypeError, IndexError: a state of another robot or a batch, no index of a link, or wrong shapes and numbers.
    """
    program = _Program(
        robot, state, tasks, dt=dt, damping=damping, posture=posture, posture_weight=posture_weight, safe_distance=safe_distance,
        pairs=pairs, nearest=nearest, approach=approach, longest_step=longest_step,
    )  # fmt: skip
    q, near = state.get_q(), program.distances(state)
    return program.safe_step(q, program.measured(state), near)


def solve_ik_qp(
    robot: Robot,
    state: State,
    tasks: PoseTask | Sequence[PoseTask],
    *,
    tolerance: tuple[float, float] = (1e-4, 1e-4),
    steps: int = 200,
    **options: float | ArrayLike | Sequence[int] | None,
) -> QPPath:
    """Steps of :func:`solve_qp_step` from ``state.q`` until all goals are reached, all joints are within their limits, and all capsules
    keep the safe distance. The state is not changed.

    With `safe_distance`, steps are shortened in which a pair of capsules would come nearer than that, or nearer than before. The distances
    of all pairs (or of `pairs`, and without those that always overlap) are checked at 16 places of each step, and at more of them until
    bounds of their derivatives show that capsules come nearer between these places by at most 0.1 mm or a tenth of the sum of their radii.

    Args:
        robot: the robot.
        state: one configuration, the start.
        tasks: the goals, at least one, with a weight above 0.
        tolerance: largest errors of rotation [rad] and position [m] of a goal that counts as reached. Errors with a weight of 0 do not
            count.
        steps: most steps.
        options: of :func:`solve_qp_step`, `longest_step` too.

    Raises:
        ImportError, ValueError, TypeError, IndexError: see :func:`solve_qp_step`.
    """
    unknown = options.keys() - solve_qp_step.__kwdefaults__.keys()
    if unknown:
        raise TypeError(
            f"solve_ik_qp has no argument {min(unknown)!r}; options are {', '.join(solve_qp_step.__kwdefaults__)}"
        )
    program = _Program(robot, state, tasks, **(solve_qp_step.__kwdefaults__ | options))
    if not program.has_goals:
        raise RobotError(
            "all weights of the tasks are 0, so there is no goal to reach; give a rotation_weight or a position_weight above 0"
        )
    tolerance = as_array(tolerance, (2,), "tolerance")
    if (tolerance <= 0.0).any():
        raise RobotError(f"tolerance {tolerance.tolist()} must be two positive numbers, of rotation and position")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise RobotError(f"steps is {steps!r}; give a count of at least 1")
    now, q = robot.make_state(state.link_names, state.joint_names), state.get_q()
    now.set_q(q)
    measured = program.measured(now)
    path, status = [q], "steps"
    least, since = np.inf, 0
    low, high, near = program.low, program.high, None
    sweep = None if program.safe is None else Sweep(robot, state, options.get("pairs"))
    for _ in range(int(steps)):
        near = program.distances(now)
        bound, missing = np.clip(q, low, high), program.missing(near)
        errors, beyond = program.errors(measured), float(np.abs(q - bound).max(initial=0.0))
        if not (beyond or missing) and _reached(errors, tolerance):
            break
        size = beyond + missing + sum(errors)
        if size < _PROGRESS * least:
            least, since = size, 0
        elif since >= _PATIENCE:
            status = "stalled"
            break
        since += 1
        step = program.step(q, measured, near)
        if not step.success:
            status = step.status
            break
        dq = step.dq.copy()
        if np.abs(dq).max(initial=0.0) < _SMALLEST and not beyond:
            status = "stalled"
            break
        inside = q == bound
        for _ in range(_HALVINGS):
            bound = np.clip(q + dq, low, high)
            at_limit = np.abs(q + dq - bound) <= _ROUNDING * np.maximum(1.0, np.abs(bound))
            following = np.where(inside | at_limit, bound, q + dq)
            if sweep is None or sweep.is_clear(q, following, near, program.floor(near)):
                break
            if program.must_move:
                status = "infeasible"
                break
            # the distances of the step are linearised
            dq *= 0.5
        else:
            status = "stalled"
        if status != "steps":
            break
        q = following
        now.set_q(q)
        measured, near = program.measured(now), None
        path.append(q)
    errors = program.errors(measured)
    near = program.distances(now) if near is None else near
    success = bool(((q >= low) & (q <= high)).all()) and not program.missing(near) and _reached(errors, tolerance)
    return QPPath(np.array(path), success, "reached" if success else status, *errors, program.too_near(near))


class _Program:
    """The quadratic programs of some goals and limits.

    Attributes:
        low, high: limits of positions.
        safe: least distance of capsules; None: distances are not looked at.
        has_goals: whether a task has a weight above 0.

    Args:
        robot, state, ...: see :func:`solve_qp_step`; limits are read once.
    """

    def __init__(
        self, robot: Robot, state: State, tasks, *, dt, damping, posture, posture_weight, safe_distance, pairs, nearest, approach,
        longest_step
    ):  # fmt: skip
        self._solve, self._robot, self._state = solver(), robot, state
        core = core_of(robot, state)
        n, q = core.dofs, core.given["q"]
        if q.ndim != 1:
            raise ShapeError(
                f"state.q has {len(q)} configurations; quadratic programs take one. For a batch, see solve_ik"
            )
        self._goals = [(task, _goal(task)) for task in _tasks(tasks)]
        self.has_goals = any(task.rotation_weight or task.position_weight for task, _ in self._goals)
        self._damping = _number(damping, "damping", above=True) ** 2
        self._posture_weight = _number(posture_weight, "posture_weight") ** 2
        self._posture = None if posture is None else as_array(posture, (n,), "posture")
        self.low, self.high = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
        check_limits(state.joint_names, self.low, self.high)
        self._unit = np.ones(n) if core.scale is None else np.abs(core.scale)
        self._fastest = _number(longest_step, "longest_step", above=True) / self._unit
        self._slowest = -self._fastest
        if dt is not None:
            dt = _number(dt, "dt", above=True)
            # products with limits that are missing are infinite for long times
            with np.errstate(over="ignore") if dt > 1.0 else nullcontext():
                self._slowest = np.maximum(self._slowest, dt * robot.get_limit_qdot_lower(state))
                self._fastest = np.minimum(self._fastest, dt * robot.get_limit_qdot_upper(state))
        self.safe = None if safe_distance is None else _number(safe_distance, "safe_distance")
        self._core, self._pairs, self._nearest = core, pairs, nearest
        self._overlap: tuple[Distances, np.ndarray] | None = None
        if pairs is not None or self.safe is not None:
            self._capsules = capsules_of(core)
            self._chosen = chosen_pairs(self._capsules, pairs)
        self._approach = _number(approach, "approach", above=True)
        if self._approach > 1.0:
            raise RobotError(f"approach {approach:g} must be at most 1")
        if isinstance(nearest, bool) or not isinstance(nearest, int | np.integer) or nearest < 1:
            raise RobotError(f"nearest is {nearest!r}; give a count of at least 1")

    @property
    def must_move(self) -> bool:
        """Whether the limits of a velocity leave out 0, so that steps cannot be halved."""
        return bool((self._slowest > 0.0).any() or (self._fastest < 0.0).any())

    def measured(self, state: State) -> list[tuple[np.ndarray, np.ndarray]]:
        """Jacobians and pose errors of the goals."""
        found = []
        for task, goal in self._goals:
            ref = state.base_link_idx if task.reference is None else task.reference
            T, J = task_jacobian(self._robot, state, task.link, ref)
            found.append((J, pose_error(goal, T)))
        return found

    def errors(self, measured) -> tuple[float, float]:
        """The largest errors of rotation and position."""
        rotation = position = 0.0
        for (task, _), (_, e) in zip(self._goals, measured, strict=True):
            rotation = max(rotation, float(np.linalg.norm(e[:3])) if task.rotation_weight else 0.0)
            position = max(position, float(np.linalg.norm(e[3:])) if task.position_weight else 0.0)
        return rotation, position

    def distances(self, state: State) -> Distances | None:
        """Distances of capsules, and their derivatives; None if they are not looked at."""
        return None if self.safe is None else self._capsules.evaluate(state.core, True, self._chosen)

    def too_near(self, near: Distances | None) -> list[tuple[str, str]]:
        """Names of the links of pairs that are nearer than the safe distance."""
        if near is None:
            return []
        return [near.links[i] for i in (near.distance < self.safe - _SLACK).nonzero()[0].tolist()]

    def missing(self, near: Distances | None) -> float:
        """By how much the nearest pair that counts is nearer than the safe distance [m]."""
        if near is None or not len(near.distance):
            return 0.0
        lack = self.safe - _SLACK - near.distance
        return float(lack[self._counted(near, (lack > 0.0).nonzero()[0])].max(initial=0.0))

    def _counted(self, near: Distances, some: np.ndarray) -> np.ndarray:
        """Those of some pairs whose distance some joint changes, and that do not overlap always."""
        moves = np.abs(near.jacobian[some]).max(axis=1, initial=0.0) > _STILL
        return some[moves & ~self._always_overlap(near)[some]]

    def floor(self, near: Distances, loss: float = _EVEN) -> np.ndarray:
        """The least distances that a motion may have, from these distances on: the safe one, or that before minus a loss [m]; none for
        pairs that always overlap."""
        # links that do not move against each other may be nearer; their distances have rounding
        floor = np.minimum(near.distance - loss, self.safe - _SLACK)
        return np.where(self._always_overlap(near), -np.inf, floor)

    def _always_overlap(self, near: Distances) -> np.ndarray:
        """Which pairs overlap now and in random configurations."""
        if self._overlap is None or self._overlap[0] is not near:
            overlap = near.distance < 0.0
            if overlap.any():
                overlap &= _highest(self._robot, self._state, self._pairs, self.low, self.high) < 0.0
            self._overlap = near, overlap
        return self._overlap[1]

    def step(self, q: np.ndarray, measured, near: Distances | None, more=None) -> QPStep:
        """The step from positions q for linearised distances of the nearest pairs.

        Args:
            q: positions at the start.
            measured, near: errors and distances there, see :meth:`measured` and :meth:`distances`.
            more: further pairs that constrain the step, ``[pairs]``.
        """
        H = np.zeros((len(q), len(q)))
        H.ravel()[:: len(q) + 1] = self._damping
        f = np.zeros(len(q))
        for (task, _), (J, e) in zip(self._goals, measured, strict=True):
            w = np.array([float(task.rotation_weight)] * 3 + [float(task.position_weight)] * 3)
            J, e = w[:, None] * J, w * e
            H += J.T @ J
            f -= J.T @ (task.gain * e)
        if self._posture is not None:
            H[np.diag_indices(len(q))] += self._posture_weight
            f -= self._posture_weight * (self._posture - q)
        G, least = self._separation(near, len(q), more)
        low, high, slowest, fastest = self.low - q, self.high - q, self._slowest, self._fastest
        below, above = low > 0.0, high < 0.0
        beyond = below.any() or above.any()
        bounds, back = (np.maximum(low, slowest), np.minimum(high, fastest)), least
        for part in _PARTS:
            # what is beyond a limit or too near comes back by this part; zero is a solution for the part 0
            if beyond:
                first, last = low.copy(), high.copy()
                first[below] = np.minimum(part * low[below], fastest[below].clip(0.0))
                last[above] = np.maximum(part * high[above], slowest[above].clip(None, 0.0))
                bounds = np.maximum(first, slowest), np.minimum(last, fastest)
            if part != 1.0:
                back = np.where(least > 0.0, part * least, least)
            dq, status = minimum(self._solve, H, f, *bounds, G, back)
            if status in _FOUND:
                break
        return QPStep(dq, status in _FOUND, status, self.too_near(near))

    def safe_step(self, q: np.ndarray, measured, near: Distances | None) -> QPStep:
        """As :meth:`step`, but no distance at the end of the step is below :meth:`floor`. Pairs of capsules below it become constraints. If
        that does not help, the step is halved."""
        step = self.step(q, measured, near)
        if near is None:
            return step
        floor, more = self.floor(near, _SLACK), np.zeros(len(near.distance), dtype=bool)
        for _ in range(_ROUNDS):
            if self._stays_above(floor, q, step.dq, near):
                return step
            wrong = self._distances_at(q + step.dq) < floor
            if not wrong.any():
                return step
            if more[wrong].all():
                break
            more |= wrong
            step = self.step(q, measured, near, more)
        parts = 0.5 ** np.arange(_HALVINGS + 1)
        clear = (self._distances_at(q + parts[:, None] * step.dq) >= floor).all(axis=1)
        if clear[0]:
            return step
        if self.must_move:
            return step._replace(dq=np.zeros(len(q)), success=False, status="infeasible")
        if not clear.any():
            return step._replace(dq=np.zeros(len(q)), status="still")
        return step._replace(dq=parts[np.argmax(clear)] * step.dq, status="shortened")

    def _stays_above(self, floor: np.ndarray, q: np.ndarray, dq: np.ndarray, near: Distances) -> bool:
        """Whether bounds of the derivatives tell that no distance comes below a floor on the way from q to q + dq."""
        bounds = distance_bounds(self._core, self._capsules, self._chosen, q, q + dq)
        return bool((near.distance - bounds @ np.abs(dq) - _EVEN >= floor).all())

    def _distances_at(self, q: np.ndarray) -> np.ndarray:
        """Distances for joint positions, ``[n]`` or ``[batch, n]``."""
        return self._capsules.evaluate(self._core, False, self._chosen, q).distance

    def _separation(self, near: Distances | None, n: int, more) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the distances that constrain a step, and the least products of these and dq."""
        if near is None:
            return np.zeros((0, n)), np.zeros(0)
        order, most = near.distance.argsort(kind="stable"), 2 * self._nearest
        chosen = self._counted(near, order[:most])[: self._nearest]
        if len(chosen) < self._nearest and len(order) > most:
            chosen = self._counted(near, order)[: self._nearest]
        if more is not None:
            chosen = np.union1d(chosen, self._counted(near, more.nonzero()[0]))
        G, missing = near.jacobian[chosen], self.safe - near.distance[chosen]
        least = self._approach * missing
        if (missing > 0.0).any():
            least[missing > _FARTHEST * (np.abs(G) / self._unit).sum(axis=1)] = 0.0
        return G, least


def _highest(robot: Robot, state: State, pairs, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The largest distances of pairs in random configurations between limits."""
    capsules = capsules_of(state.core)
    key = lower.tobytes() + upper.tobytes()
    # threads share capsules
    found = capsules.highest.get(key)
    if found is None:
        low = np.where(lower > -_FAR, lower, np.where(upper < _FAR, upper - 2.0 * np.pi, -np.pi))
        high = np.where(upper < _FAR, upper, low + 2.0 * np.pi)
        some = robot.make_state(state.link_names, state.joint_names)
        some.set_q(np.random.default_rng(_SAMPLES).uniform(low, np.maximum(low, high), (_SAMPLES, len(low))))
        capsules.highest.clear()
        capsules.highest[key] = found = robot.compute_distances(some).distance.max(axis=0)
    chosen = chosen_pairs(capsules, pairs)
    return found if chosen is None else found[chosen]


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
    if not tasks:
        raise RobotError("tasks is empty; give at least one PoseTask")
    for task in tasks:
        if not isinstance(task, PoseTask):
            raise TypeError(f"tasks must be a list of PoseTask, but has {task!r}")
        for name in ("rotation_weight", "position_weight"):
            _number(getattr(task, name), name)
        if not 0.0 < _number(task.gain, "gain") <= 1.0:
            raise RobotError(f"gain {task.gain:g} of a task must be above 0 and at most 1")
    return tasks


def _goal(task: PoseTask) -> np.ndarray:
    goal = as_poses(task.pose, "pose of a task")
    if goal.ndim != 2:
        raise ShapeError(f"pose of a task has shape {goal.shape}; give [4, 4]")
    return goal


def _reached(errors: tuple[float, float], tolerance: np.ndarray) -> bool:
    return errors[0] <= tolerance[0] and errors[1] <= tolerance[1]
