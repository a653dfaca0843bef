"""The numbers of a batch, gathered from the model's arrays into one vector per articulation, in the order the programs read them.

Everything that does not depend on the state is worked out here once, in double precision: rotations of anchors and axes, drive gains
by target mode, contact softness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.geometry.transforms import quat_inverse, quat_multiply, quat_rotate, transform_multiply

from newton_like.kernels.tree import (  # isort: skip
    ARMATURE, AXIS, AXIS_IN_PARENT, BODY, CENTRE_OF_MASS, CHILD_POS, CHILD_QUAT_INVERSE, CLIP_FORCE, DAMPING,
    DISTANCE_MAX, DISTANCE_MIN, DOF, EFFORT, EFFORT_LIMIT, FRICTION, FRICTION_LOSS, GAIN, HALF_TURN_QUAT, HOME_QUAT,
    INERTIA, JOINT, LIMIT_DAMPING_RATIO, LIMIT_LOWER, LIMIT_OMEGA, LIMIT_UPPER, MASS, MIMIC_OFFSET, MIMIC_RATIO,
    PARENT_POS, PARENT_QUAT, POSITION, REST_Q, REST_W, STIFFNESS, TARGET_KD, TARGET_KE, TARGET_VELOCITY_GAIN,
    VELOCITY, VELOCITY_LIMIT,
)  # fmt: skip
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.programs.template import Batch
from newton_like.types import MAXVAL, JointTargetMode

STOP_TIME_CONSTANT, STOP_DAMPING_RATIO = 0.001, 100.0
"""Joint limits give way as contacts do by default, see :class:`newton_like.ShapeConfig`."""

GROUPS = ("joint", "dof", "body", "gain", "collider", "hull", "plane", "gravity")


@dataclass
class Parameters:
    """The parameters of a batch.

    Attributes:
        values: ``[count, size]`` float64, one row per articulation.
        at: where each group of ``GROUPS`` starts in a row.
        dof_limits: what binds each dof in some articulation, bits of ``newton_like.kernels.tree``, ``[dofs]``.
    """

    values: np.ndarray
    at: dict[str, int]
    dof_limits: np.ndarray


def gather_parameters(model, batch: Batch, contacts: dict[str, np.ndarray] | None = None) -> Parameters:
    """Gathers the parameters of a batch; `contacts` adds the groups ``collider``, ``hull`` and ``plane``, ``[count, n]`` each."""
    joints = batch.joint_start[:, None] + np.arange(batch.template.bodies)
    dofs = batch.qd_start[:, None] + np.arange(batch.template.dofs)
    bodies = batch.body_start[:, None] + batch.template.body_slot
    frames = _joint_frames(model, joints)
    gains, limits = _gains(model, batch, joints, dofs)
    empty = np.zeros((batch.count, 0))
    groups = {
        "joint": frames,
        "dof": _axes(model, batch, dofs, frames),
        "body": _bodies(model, bodies),
        "gain": gains,
        "collider": empty,
        "hull": empty,
        "plane": empty,
        **(contacts or {}),
        "gravity": _gravity(model, batch),
    }
    flat = [groups[name].reshape(batch.count, -1) for name in GROUPS]
    at = dict(zip(GROUPS, np.cumsum([0] + [g.shape[1] for g in flat]).tolist(), strict=False))
    return Parameters(np.concatenate(flat, axis=1), at, limits)


def _numpy(array, index) -> np.ndarray:
    return array.numpy()[index].astype(np.float64)


def _joint_frames(model, joints) -> np.ndarray:
    """``[count, bodies, JOINT]``"""
    x_p = _numpy(model.joint_X_p, joints)
    parent = model.joint_parent.numpy()[joints]
    rests = (parent >= 0) & (model.joint_ancestor.numpy()[joints] < 0)
    if rests.any():
        x_p[rests] = transform_multiply(_numpy(model.body_q, parent[rests]), x_p[rests])
    x_c = _numpy(model.joint_X_c, joints)
    out = np.zeros((*joints.shape, JOINT))
    inverse = quat_inverse(x_c[..., 3:])
    out[..., PARENT_QUAT : PARENT_QUAT + 4] = x_p[..., 3:]
    out[..., PARENT_POS : PARENT_POS + 3] = x_p[..., :3]
    out[..., CHILD_QUAT_INVERSE : CHILD_QUAT_INVERSE + 4] = inverse
    out[..., CHILD_POS : CHILD_POS + 3] = x_c[..., :3]
    out[..., HOME_QUAT : HOME_QUAT + 4] = quat_multiply(x_p[..., 3:], inverse)
    out[..., DISTANCE_MIN] = _numpy(model.joint_min_distance, joints)
    out[..., DISTANCE_MAX] = _numpy(model.joint_max_distance, joints)
    return out


def _axes(model, batch: Batch, dofs, frames) -> np.ndarray:
    """``[count, dofs, DOF]``"""
    template = batch.template
    of = np.repeat(np.arange(template.bodies), np.diff(template.dof_at))
    axis = _numpy(model.joint_axis, dofs)
    q_p = frames[:, of, PARENT_QUAT : PARENT_QUAT + 4]
    out = np.zeros((*dofs.shape, DOF))
    out[..., AXIS : AXIS + 3] = axis
    out[..., AXIS_IN_PARENT : AXIS_IN_PARENT + 3] = quat_rotate(q_p, axis)
    pure = np.concatenate([axis, np.zeros((*dofs.shape, 1))], axis=-1)
    out[..., HALF_TURN_QUAT : HALF_TURN_QUAT + 4] = quat_multiply(
        quat_multiply(q_p, pure), frames[:, of, CHILD_QUAT_INVERSE : CHILD_QUAT_INVERSE + 4]
    )
    return out


def _bodies(model, bodies) -> np.ndarray:
    """``[count, bodies, BODY]``"""
    out = np.zeros((*bodies.shape, BODY))
    out[..., MASS] = _numpy(model.body_mass, bodies)
    out[..., CENTRE_OF_MASS : CENTRE_OF_MASS + 3] = _numpy(model.body_com, bodies)
    inertia = _numpy(model.body_inertia, bodies)
    for i, (r, c) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
        out[..., INERTIA + i] = 0.5 * (inertia[..., r, c] + inertia[..., c, r])
    return out


def _gains(model, batch: Batch, joints, dofs) -> tuple[np.ndarray, np.ndarray]:
    """``[count, dofs, GAIN]`` and which limits bind each dof."""
    template = batch.template
    mode = model.joint_target_mode.numpy()[dofs]
    position = np.isin(mode, (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY))
    velocity = np.isin(mode, (JointTargetMode.VELOCITY, JointTargetMode.POSITION_VELOCITY))
    kd = _numpy(model.joint_target_kd, dofs)
    out = np.zeros((*dofs.shape, GAIN))
    out[..., ARMATURE] = _numpy(model.joint_armature, dofs)
    out[..., DAMPING] = _numpy(model.joint_damping, dofs)
    out[..., STIFFNESS] = _numpy(model.joint_stiffness, dofs)
    out[..., TARGET_KE] = np.where(position, _numpy(model.joint_target_ke, dofs), 0.0)
    out[..., TARGET_KD] = np.where(position | velocity, kd, 0.0)
    out[..., TARGET_VELOCITY_GAIN] = np.where(velocity, kd, 0.0)
    out[..., EFFORT_LIMIT] = _numpy(model.joint_effort_limit, dofs)
    out[..., VELOCITY_LIMIT] = _numpy(model.joint_velocity_limit, dofs)
    out[..., FRICTION_LOSS] = _numpy(model.joint_friction, dofs)
    out[..., LIMIT_LOWER] = _numpy(model.joint_limit_lower, dofs)
    out[..., LIMIT_UPPER] = _numpy(model.joint_limit_upper, dofs)
    out[..., LIMIT_OMEGA] = 1.0 / STOP_TIME_CONSTANT
    out[..., LIMIT_DAMPING_RATIO] = STOP_DAMPING_RATIO
    out[..., CLIP_FORCE] = mode == JointTargetMode.EFFORT
    rest = model.joint_rest_q.numpy().astype(np.float64)
    coeffs = _numpy(model.joint_mimic_coeffs, joints)
    for k in range(template.bodies):
        i, n = int(template.dof_at[k]), int(template.dof_at[k + 1] - template.dof_at[k])
        q = batch.q_start + int(template.q_at[k])
        if JOINT_TYPES[template.joint_type[k]].turns_only:
            # a rest orientation has four numbers: x, y, z with the three dofs, w where a mimic offset would be
            for j in range(3):
                out[:, i + j, REST_Q] = rest[q + j]
            out[:, i, REST_W] = rest[q + 3]
        elif template.dof_q[i : i + n].min(initial=0) >= 0:
            for j in range(n):
                out[:, i + j, REST_Q] = rest[q + j]
            if template.mimic[k] >= 0 and n:
                out[:, i, MIMIC_OFFSET : MIMIC_RATIO + 1] = coeffs[:, k]
    return out, _limits(batch, out)


def _limits(batch: Batch, gains: np.ndarray) -> np.ndarray:
    driven = (
        (gains[..., TARGET_KE] != 0)
        | (gains[..., TARGET_KD] != 0)
        | (gains[..., EFFORT_LIMIT] < 1.0e5)
        | (gains[..., CLIP_FORCE] != 0)
    )
    bits = np.where((gains[..., EFFORT_LIMIT] < MAXVAL) & driven, EFFORT, 0)
    bits = (
        bits
        | np.where(gains[..., FRICTION_LOSS] > 0, FRICTION, 0)
        | np.where(gains[..., VELOCITY_LIMIT] < 1.0e5, VELOCITY, 0)
    )
    bits = bits | np.where((gains[..., LIMIT_LOWER] > -MAXVAL) | (gains[..., LIMIT_UPPER] < MAXVAL), POSITION, 0)
    bits = np.bitwise_or.reduce(bits, axis=0) if len(bits) else np.zeros(gains.shape[1], dtype=int)
    for i, q in enumerate(batch.template.dof_q):
        if q < 0:
            bits[i] &= ~POSITION
    return bits.astype(np.int32)


def _gravity(model, batch: Batch) -> np.ndarray:
    return model.gravity.numpy()[np.maximum(batch.world, 0)].astype(np.float64)
