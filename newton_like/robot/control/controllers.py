"""Joint torques of common controllers. Each takes one configuration or a batch, and leaves the state as it is.

Gravity is what ``state.Vdot0`` says, see :meth:`State.set_gravity`; ``state.V0`` is the twist of the base link. Torques are not limited;
see :meth:`Robot.get_limit_torque`. The desired motion of a link is relative to a reference link and along the axes of that link: poses
``[4, 4]``, velocities ``[w, v]`` and accelerations ``[alpha, a]`` of its origin.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from newton_like.robot.control.arguments import as_gain, as_poses, as_vectors, batch_of
from newton_like.robot.control.task_space import TaskMotion, pose_error, task_motion
from newton_like.robot.core.state import StateCore
from newton_like.robot.errors import RobotError, ShapeError
from newton_like.robot.robot import Robot, core_of
from newton_like.robot.screws import product, symmetric_inverse
from newton_like.robot.state import State
from newton_like.robot.structure.link import least_moment

_SINGULAR = 1e-8
"""Eigenvalue of an operational inertia's inverse, as a part of the largest one, below which a task direction counts as singular."""

_MASSLESS = 1e-15
"""Diagonal entry of a mass matrix, as a part of the largest one, below which the joint has no inertia but rounding errors."""

_DEPENDENT = 1e-12
"""Part of its inertia that a joint keeps while other joints are free, below which these joints move no inertia together."""


def gravity_compensation(robot: Robot, state: State) -> np.ndarray:
    """Joint torques that hold the robot at rest against gravity [N m or N], ``[n]`` or ``[batch, n]``.

    Raises:
        ValueError, TypeError: a state of another robot.
    """
    return robot.compute_gravity_term(state)


def computed_torque(
    robot: Robot,
    state: State,
    q_des: ArrayLike,
    qdot_des: ArrayLike,
    qddot_des: ArrayLike,
    kp: ArrayLike,
    kd: ArrayLike,
) -> np.ndarray:
    """Joint torques ``M (qddot_des + kd (qdot_des - qdot) + kp (q_des - q)) + h`` [N m or N], ``[n]`` or ``[batch, n]``, with the forces
    h of gravity and velocities (Luh, Walker and Paul 1980, "Resolved-acceleration control"). The error e = q_des - q then obeys ``e'' +
    kd e' + kp e = 0``.

    Args:
        robot: the robot.
        state: the present q, qdot, V0 and Vdot0.
        q_des, qdot_des, qddot_des: the desired motion [rad or m, and s], ``[n]`` or ``[batch, n]``. Angles are not wrapped.
        kp, kd: gains [1/s^2, 1/s]: one number, ``[n]`` or ``[n, n]``.

    Raises:
        ValueError, TypeError: a state of another robot, wrong shapes, numbers that are not finite, or negative gains.
    """
    core = core_of(robot, state)
    n = core.dofs
    want = [as_vectors(x, n, name) for x, name in ((q_des, "q_des"), (qdot_des, "qdot_des"), (qddot_des, "qddot_des"))]
    kp, kd = as_gain(kp, n, "kp"), as_gain(kd, n, "kd")
    given = {"state.q": core.given["q"], "state.qdot": core.given["qdot"]} | dict(
        zip(("q_des", "qdot_des", "qddot_des"), want, strict=True)
    )
    batch_of(given, dict.fromkeys(given, 1))
    a = want[2] + product(kd, want[1] - core.given["qdot"]) + product(kp, want[0] - core.given["q"])
    return _inverse_dynamics(robot, state, a)


def operational_space_control(
    robot: Robot,
    state: State,
    target_link: int,
    T_des: ArrayLike,
    V_des: ArrayLike | None = None,
    A_des: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kd: ArrayLike,
    reference_link: int | None = None,
    directions: ArrayLike | None = None,
    posture: ArrayLike | None = None,
    posture_kp: ArrayLike = 0.0,
    posture_kd: ArrayLike = 0.0,
) -> np.ndarray:
    """Joint torques that give a link the acceleration ``A_des + kd (V_des - V) + kp e`` (Khatib 1987, "A unified approach for motion and
    force control of robot manipulators: the operational space formulation"), ``[n]`` or ``[batch, n]`` [N m or N].

    ``tau = J^T L (a - dJ/dt qdot) + (I - J^T Jbar^T) tau_0 + h`` with the operational inertia ``L = (J M^-1 J^T)^-1``, its generalised
    inverse ``Jbar = M^-1 J^T L``, and the torques h of gravity and velocities. The torques ``tau_0 = M (posture_kp (posture - q) -
    posture_kd qdot)`` move the joints without accelerating the task. The pose error e is ``[log(R_des R^T), p_des - p]``.

    Args:
        robot: the robot.
        state: the present q, qdot, V0 and Vdot0.
        target_link: index of the link.
        T_des, V_des, A_des: the desired motion relative to the reference link and along its axes, ``[4, 4]``, ``[6]`` and ``[6]``, or
            with a batch; without velocity and acceleration the pose is at rest.
        kp, kd: gains [1/s^2, 1/s]: one number, ``[6]`` or ``[6, 6]``, rotation first.
        reference_link: index of the reference link; by default the base link.
        directions: which of the six directions ``[w, v]`` are controlled, six truth values; by default all. The others are free.
        posture: joint positions that the joints approach as far as the task allows [rad or m], ``[n]`` or ``[batch, n]``; None: state.q,
            so that only `posture_kd` acts.
        posture_kp, posture_kd: gains [1/s^2, 1/s]: one number, ``[n]`` or ``[n, n]``.

    Directions in which the link cannot be accelerated, as in a singular configuration, are left out.

    Raises:
        ValueError, TypeError, IndexError: a state of another robot, no index of a link, wrong shapes, numbers that are not finite,
            negative gains, or joints that move no inertia or a negative one, so that M is not positive definite.
    """
    core = core_of(robot, state)
    n = core.dofs
    kp, kd = as_gain(kp, 6, "kp"), as_gain(kd, 6, "kd")
    rest_kp, rest_kd = as_gain(posture_kp, n, "posture_kp"), as_gain(posture_kd, n, "posture_kd")
    rest = core.given["q"] if posture is None else as_vectors(posture, n, "posture")
    T, V, A = _desired(T_des, V_des, A_des)
    chosen = _directions(directions)
    _same_batch(core, {"T_des": T, "V_des": V, "A_des": A, "posture": rest})
    now = _motion(robot, state, target_link, reference_link)
    a = A + product(kd, V - now.velocity) + product(kp, pose_error(T, now.T)) - now.drift
    # products of arrays with other strides have other bits, and numpy chooses those of selected rows
    a, J = (np.ascontiguousarray(x) for x in (a[..., chosen], now.J[..., chosen, :]))
    M = robot.compute_mass_matrix(state)
    _check_inertia(M, robot, state)
    h = _inverse_dynamics(robot, state, np.zeros(n))
    null = (product(rest_kp, rest - core.given["q"]) - product(rest_kd, core.given["qdot"]))[..., None]
    Jt = np.swapaxes(J, -1, -2)
    bar = np.linalg.solve(M, Jt)
    L = symmetric_inverse(J @ bar, _SINGULAR)
    # Jbar^T tau_0 = L J M^-1 M qddot_0
    tau = Jt @ (L @ (a[..., None] - J @ null)) + M @ null
    return tau[..., 0] + h


def task_space_impedance(
    robot: Robot,
    state: State,
    target_link: int,
    T_des: ArrayLike,
    V_des: ArrayLike | None = None,
    *,
    stiffness: ArrayLike,
    damping: ArrayLike,
    reference_link: int | None = None,
    wrench: ArrayLike | None = None,
) -> np.ndarray:
    """Joint torques that make a link behave as if it was tied to the desired pose by a spring and a damper (Hogan 1985, "Impedance
    control"), ``[n]`` or ``[batch, n]`` [N m or N].

    ``tau = J^T (stiffness e + damping (V_des - V) + wrench) + h`` with the pose error ``e = [log(R_des R^T), p_des - p]`` and the
    torques h of gravity and velocities. The inertia stays that of the robot. Under a wrench f from outside, the link rests at ``e =
    -stiffness^-1 f``.

    Args:
        robot: the robot.
        state: the present q, qdot, V0 and Vdot0.
        target_link: index of the link.
        T_des, V_des: the desired motion relative to the reference link and along its axes, ``[4, 4]`` and ``[6]``, or with a batch.
        stiffness: one number, ``[6]`` or ``[6, 6]`` [N m/rad, N/m], rotation first.
        damping: one number, ``[6]`` or ``[6, 6]`` [N m s/rad, N s/m], rotation first.
        reference_link: index of the reference link; by default the base link.
        wrench: a further wrench ``[m, f]`` at the origin of the target link, along the axes of the reference link [N m, N], ``[6]`` or
            ``[batch, 6]``.

    Raises:
        ValueError, TypeError, IndexError: see :func:`operational_space_control`.
    """
    core = core_of(robot, state)
    n = core.dofs
    K, D = as_gain(stiffness, 6, "stiffness"), as_gain(damping, 6, "damping")
    T, V, _ = _desired(T_des, V_des, None)
    extra = np.zeros(6) if wrench is None else as_vectors(wrench, 6, "wrench")
    _same_batch(core, {"T_des": T, "V_des": V, "wrench": extra})
    now = _motion(robot, state, target_link, reference_link)
    f = product(K, pose_error(T, now.T)) + product(D, V - now.velocity) + extra
    return (np.swapaxes(now.J, -1, -2) @ f[..., None])[..., 0] + _inverse_dynamics(robot, state, np.zeros(n))


def _desired(T_des, V_des, A_des) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    V, A = (np.zeros(6) if x is None else as_vectors(x, 6, name) for x, name in ((V_des, "V_des"), (A_des, "A_des")))
    return as_poses(T_des, "T_des"), V, A


def _directions(directions) -> np.ndarray:
    if directions is None:
        return np.ones(6, dtype=bool)
    chosen = np.asarray(directions)
    if chosen.shape != (6,) or chosen.dtype != bool:
        raise ShapeError(f"directions {directions!r} must be six truth values, those of [w, v]")
    if not chosen.any():
        raise RobotError("directions are all False; choose one")
    return chosen


def _same_batch(core: StateCore, given: dict[str, np.ndarray]) -> None:
    given = {"state.q": core.given["q"], "state.qdot": core.given["qdot"], **given}
    batch_of(given, {name: 2 if name == "T_des" else 1 for name in given})


def _motion(robot: Robot, state: State, target: int, ref: int | None) -> TaskMotion:
    return task_motion(robot, state, target, state.base_link_idx if ref is None else ref)


def _check_inertia(M: np.ndarray, robot: Robot, state: State) -> None:
    """Raises RobotError where a mass matrix, ``[n, n]`` or ``[batch, n, n]``, is not positive definite. The message has the cause."""
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    if (diagonal > _MASSLESS * diagonal.max(axis=-1, keepdims=True, initial=0.0)).all():
        try:
            # the square of a pivot is the inertia of a joint with the joints before it free
            pivots = np.diagonal(np.linalg.cholesky(M), axis1=-2, axis2=-1)
            if (pivots**2 > _DEPENDENT * diagonal).all():
                return
        except np.linalg.LinAlgError:
            pass
    negative, idle = ([state.joint_names[i] for i in np.flatnonzero(found)] for found in _without_inertia(M))
    if negative:
        links = [link.name for link in robot.links if _is_negative(link.inertia)]
        raise RobotError(
            f"the mass matrix is not positive definite: joints {negative} move a negative inertia, alone or together; correct the "
            f"inertias of the links {links}, whose masses or principal moments of inertia are negative"
        )
    raise RobotError(
        f"joints {idle} move no inertia, alone or together, so that their accelerations are not defined; give the links that they "
        "move a mass and an inertia"
    )


def _is_negative(G: np.ndarray) -> bool:
    """Whether a spatial inertia has a negative mass or principal moment of inertia, beyond rounding."""
    return min(G[3, 3], least_moment(G)) < -_DEPENDENT * np.abs(G).max()


def _without_inertia(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which joints take part in motions with a negative inertia, and in motions without inertia, ``[n]`` each."""
    n = M.shape[-1]
    negative, idle = np.zeros((2, n), dtype=bool)
    for one in M.reshape(-1, n, n):
        size = np.abs(np.diagonal(one))
        massless = size <= _MASSLESS * size.max()
        idle |= massless
        rest = np.flatnonzero(~massless)
        scale = 1.0 / np.sqrt(size[rest])
        # the least eigenvalue is at most the least pivot
        values, vectors = np.linalg.eigh(one[np.ix_(rest, rest)] * scale * scale[:, None])
        moves = np.abs(vectors) > 1e-3
        negative[rest] |= moves[:, values < -_DEPENDENT].any(axis=1)
        idle[rest] |= moves[:, np.abs(values) <= _DEPENDENT].any(axis=1)
    return negative, idle


_OTHERS: WeakKeyDictionary = WeakKeyDictionary()
"""For each state, a second one of the same robot with the same order of names, which only this file uses."""


def _scratch(robot: Robot, state: State, qddot: np.ndarray) -> State:
    """Another state with the inputs q, qdot, V0 and Vdot0 of a state, and these accelerations of the joints."""
    other = _OTHERS.get(state)
    if other is None:
        other = _OTHERS[state] = robot.make_state(state.link_names, state.joint_names)
    for name in ("q", "qdot", "V0", "Vdot0"):
        setattr(other, name, state.core.given[name])
    other.qddot = qddot
    return other


def _inverse_dynamics(robot: Robot, state: State, qddot: np.ndarray) -> np.ndarray:
    """The torques for accelerations of the joints."""
    other = _scratch(robot, state, qddot)
    robot.compute_inverse_dynamics(other)
    return other.get_tau()
