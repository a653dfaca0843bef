"""Kinematics of all articulations of a model: from joint coordinates to bodies and back, and the Jacobian between them."""

from __future__ import annotations

from newton_like.kernels.kinematics import kinematics_kernels
from newton_like.model.batched import Program, check_array, run, selection
from newton_like.types import warp_types


def _rows(model, template, backward: bool) -> dict[str, int]:
    n, dofs = template.bodies, template.dofs
    return dict(
        q=template.coords, v=dofs, origin=3, quat=4 * (n + 1), rot=9 * (n + 1), pos=3 * (n + 1), com=3 * (n + 1),
        subspace=6 * dofs, twist=6 * (n + 1), body_q=7 * n, body_qd=6 * n,
    )  # fmt: skip


_FK = Program(kinematics_kernels, "eval_fk", _rows)
_IK = Program(kinematics_kernels, "eval_ik", _rows)


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
