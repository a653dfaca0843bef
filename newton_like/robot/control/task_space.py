"""Poses, velocities and accelerations of one link relative to another, along the axes of the reference link, for controllers and inverse
kinematics.

A task velocity is ``[w, v]``: the angular velocity of the target link, and the velocity of its origin, both relative to the reference
link and along its axes. Its derivative is the task acceleration, so that the error of a position obeys a linear law.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class TaskMotion(NamedTuple):
    """How the target link moves. Arrays of a batch have it as their first dimension.

    Attributes:
        T: pose in the frame of the reference link, ``[4, 4]``.
        J: derivative of the task velocity with respect to qdot, ``[6, n]``.
        velocity: the task velocity [rad/s, m/s], ``[6]``.
        drift: the task acceleration for qddot = 0 [rad/s^2, m/s^2], ``[6]``.
    """

    T: np.ndarray
    J: np.ndarray
    velocity: np.ndarray
    drift: np.ndarray


def task_jacobian(robot, state, target: int, ref: int) -> tuple[np.ndarray, np.ndarray]:
    """Pose and Jacobian of :class:`TaskMotion`; links as indices of the state."""
    T, J = robot.compute_transformation(state, ref, target), robot.compute_body_jacobian(state, ref, target)
    R = T[..., None, :3, :3]
    return T, (R @ J.reshape(*J.shape[:-2], 2, 3, J.shape[-1])).reshape(J.shape)


def task_motion(robot, state, target: int, ref: int) -> TaskMotion:
    """The motion of the target link relative to the reference link.

    In the chain of joints from the reference link to the target, the column S_i of the space Jacobian moves with the twist of the joints
    before it. The rate of the twist for qddot = 0 is the sum of ``ad(S_1 qdot_1 + ... + S_(i-1) qdot_(i-1)) S_i qdot_i`` (Lynch and Park
    2017, "Modern Robotics", section 8.1).
    """
    T, J = task_jacobian(robot, state, target, ref)
    space, core = robot.compute_space_jacobian(state, ref, target), state.core
    qdot = core.given["qdot"]
    up, down = robot.core.path(core.bodies[target], core.bodies[ref])
    order = [int(core.order[i]) for i in (*up, *down)]
    # in rows, so that sums have the same order for one configuration and for a batch
    parts = np.ascontiguousarray(np.swapaxes(space[..., order] * qdot[..., None, order], -1, -2))
    before = np.cumsum(parts, axis=-2) - parts
    w, v = parts[..., :3], parts[..., 3:]
    # ad([w, v]) [a, b] = [w x a, v x a + w x b]
    turn = _cross(before[..., :3], w)
    move = _cross(before[..., 3:], w) + _cross(before[..., :3], v)
    alpha, a = turn.sum(axis=-2), move.sum(axis=-2)
    velocity = (J @ qdot[..., None])[..., 0]
    w, v, p = velocity[..., :3], velocity[..., 3:], T[..., :3, 3]
    # the origin, at p, has the velocity v = v_space + w x p
    drift = np.concatenate([alpha, a + _cross(alpha, p) + _cross(w, v)], axis=-1)
    return TaskMotion(T, J, velocity, drift)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products ``[..., 3]``. For few vectors, ``np.cross`` spends most of its time on axes and dimensions."""
    a1, a2, b1, b2 = (x.take(i, axis=-1) for x in (a, b) for i in (_NEXT, _LAST))
    return a1 * b2 - a2 * b1


_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])
"""Components that follow and that go before each component in a cyclic order."""


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Rotation vectors, of length at most pi, of rotation matrices ``[..., 3, 3]``."""
    if R.ndim == 2:
        return np.array(_one_rotation_vector(R.tolist()))
    # the row and column of the largest component in four times the outer product of the unit quaternion (Shepperd 1978)
    trace = np.trace(R, axis1=-2, axis2=-1)
    K = np.empty((*R.shape[:-2], 4, 4))
    K[..., :3, :3] = R + np.swapaxes(R, -1, -2)
    diagonal = 1.0 - trace[..., None] + 2.0 * np.diagonal(R, axis1=-2, axis2=-1)
    for i in range(3):
        K[..., i, i] = diagonal[..., i]
    K[..., 3, 3] = 1.0 + trace
    K[..., 3, :3] = np.stack(
        [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], axis=-1
    )
    K[..., :3, 3] = K[..., 3, :3]
    most = np.argmax(np.diagonal(K, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(K, most[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    q = np.where(q[..., 3:] < 0.0, -q, q)
    size = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(size, q[..., 3:])
    # 2 is the limit of angle / size
    return q[..., :3] * np.divide(angle, size, out=np.full_like(size, 2.0), where=size > 0.0)


def _one_rotation_vector(R: list[list[float]]) -> list[float]:
    """As :func:`rotation_vector` for one matrix, with the same operations: for few numbers, arrays take longer than Python's floats."""
    (a, b, c), (d, e, f), (g, h, i) = R
    trace = a + e + i
    x, y, z, w = 1.0 - trace + 2.0 * a, 1.0 - trace + 2.0 * e, 1.0 - trace + 2.0 * i, 1.0 + trace
    rows = (
        (x, b + d, c + g, h - f),
        (d + b, y, f + h, c - g),
        (g + c, h + f, z, d - b),
        (h - f, c - g, d - b, w),
    )
    x, y, z, w = rows[max(range(4), key=(x, y, z, w).__getitem__)]
    length = math.sqrt(x * x + y * y + z * z + w * w)
    x, y, z, w = x / length, y / length, z / length, w / length
    if w < 0.0:
        x, y, z, w = -x, -y, -z, -w
    size = math.sqrt(x * x + y * y + z * z)
    # NumPy's arctangent, whose bits may be others than those of the math module
    factor = 2.0 * float(np.arctan2(size, w)) / size if size > 0.0 else 2.0
    return [x * factor, y * factor, z * factor]


def pose_error(T_des: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Rotation vector and translation ``[..., 6]`` from a pose to the desired one, along the axes in which both are given: ``log(R_des
    R^T)`` and ``p_des - p``."""
    if T_des.ndim == T.ndim == 2:
        R = T_des[:3, :3] @ T[:3, :3].T
        return np.array(_one_rotation_vector(R.tolist()) + (T_des[:3, 3] - T[:3, 3]).tolist())
    turn = rotation_vector(T_des[..., :3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2))
    move = np.broadcast_to(T_des[..., :3, 3] - T[..., :3, 3], turn.shape)
    return np.concatenate([turn, move], axis=-1)
