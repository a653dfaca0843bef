"""Kinematics of all articulations of a model: from joint coordinates to bodies and back, and the Jacobian between them."""

from __future__ import annotations

import warp as wp

from newton_like.kernels.kinematics import kinematics_kernels
from newton_like.model.batched import Program, check_array, run, selection
from newton_like.types import warp_types


def _rows(model, template, backward: bool) -> dict[str, int]:
    n, dofs = template.bodies, template.dofs
    return dict(
        q=template.coords, v=dofs, origin=3, quat=4 * (n + 1), rot=9 * (n + 1), pos=3 * (n + 1), com=3 * (n + 1),
        subspace=6 * dofs, twist=6 * (n + 1), body_q=7 * n, body_qd=6 * n,
        matrix=6 * model.max_dofs_per_articulation * (model.max_joints_per_articulation if backward else 1),
    )  # fmt: skip


_FK = Program(kinematics_kernels, "eval_fk", _rows)
_IK = Program(kinematics_kernels, "eval_ik", _rows)
_JACOBIAN = Program(kinematics_kernels, "eval_jacobian", _rows)


def _joint_arrays(model, joint_q, joint_qd):
    return [
        check_array(model, joint_q, "joint_q", model.dtype, (model.joint_coord_count,)),
        check_array(model, joint_qd, "joint_qd", model.dtype, (model.joint_dof_count,)),
    ]


def _body_arrays(model, state):
    kinds = warp_types(model.dtype)
    return [
        check_array(model, state.body_q, "state.body_q", kinds.transform, (model.body_count,)),
        check_array(model, state.body_qd, "state.body_qd", kinds.spatial_vector, (model.body_count,)),
    ]


def eval_fk(model, joint_q, joint_qd, state, mask=None, indices=None) -> None:
    """Forward kinematics: poses and velocities of all bodies from joint coordinates and velocities."""
    arrays = [*_joint_arrays(model, joint_q, joint_qd), *_body_arrays(model, state)]
    run(model, _FK, arrays, selection(model, mask, indices))


def eval_ik(model, state, joint_q, joint_qd, mask=None, indices=None) -> None:
    """Inverse kinematics."""
    arrays = [*_body_arrays(model, state), *_joint_arrays(model, joint_q, joint_qd)]
    run(model, _IK, arrays, selection(model, mask, indices))


def eval_jacobian(model, state, J: wp.array | None = None, mask=None) -> wp.array | None:
    """Jacobians."""
    if model.articulation_count == 0:
        return None
    shape = (model.articulation_count, 6 * model.max_joints_per_articulation, model.max_dofs_per_articulation)
    joint_q = check_array(model, state.joint_q, "state.joint_q", model.dtype, (model.joint_coord_count,))
    chosen = selection(model, mask)
    if J is None:
        J = wp.zeros(shape, dtype=model.dtype, device=model.device, requires_grad=joint_q.requires_grad)
    check_array(model, J, "J", model.dtype, shape)
    run(model, _JACOBIAN, [joint_q, J], chosen)
    return J
