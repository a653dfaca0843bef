"""Kinematics of the articulations of a model: poses of bodies from joint coordinates and the reverse, and Jacobians.

Articulations of one shape are computed together by the programs of `newton_like.kernels`, in SIMD lanes on all cores of a CPU, or one a
thread on a GPU. Parameters of the model (anchors, axes, centres of mass, masses, armature) are read once and cached: after editing model
arrays call :meth:`Model.notify_changed`.

All functions can be differentiated by Warp's tape. If an output array requires gradients, the adjoint of the program's trace
(:mod:`newton_like.compiler.adjoint`) is recorded on the tape. There are gradients with respect to joint coordinates, velocities, poses and
twists, and with respect to ``body_mass``, ``body_com`` and ``body_inertia`` if they require them.
"""

from __future__ import annotations

import warp as wp

from newton_like.arrays import check_recorded, host_array
from newton_like.kernels.branches import branch_kernels
from newton_like.model.arguments import arrays_of_state, check_array, check_model, joint_selection
from newton_like.programs.program import Field, Program
from newton_like.programs.run import run, selection
from newton_like.types import BodyFlags, warp_types

_Q, _QD = Field("q", "coords"), Field("v", "dofs")
_BODY_Q, _BODY_QD = Field("body_q", "bodies", 7), Field("body_qd", "bodies", 6)


def _jacobian_size(model) -> int:
    return 6 * model.max_joints_per_articulation * model.max_dofs_per_articulation


_FK = Program("eval_fk", (_Q, _QD), (_BODY_Q, _BODY_QD))
_IK = Program("eval_ik", (_BODY_Q, _BODY_QD), (_Q, _QD))
_JACOBIAN = Program("eval_jacobian", (_Q,), (Field("matrix", "articulations", _jacobian_size),))


def _joint_arrays(model, joint_q, joint_qd) -> list[wp.array]:
    check_model(model)
    return [
        check_array(model, joint_q, "joint_q", model.dtype, (model.joint_coord_count,)),
        check_array(model, joint_qd, "joint_qd", model.dtype, (model.joint_dof_count,)),
    ]


def _on_device(model, value, name: str) -> wp.array:
    """A Warp array as it is, or numbers from the host as an array ``[size]``."""
    if isinstance(value, wp.array):
        return value
    check_recorded(check_model(model).device, f"{name} from the host")
    return wp.array(host_array(value, name).ravel(), dtype=model.dtype, device=model.device)


def eval_fk(
    model, joint_q, joint_qd, state, mask=None, indices=None, body_flag_filter=BodyFlags.ALL, *, joint_mask=None
) -> None:
    """Forward kinematics: poses and velocities of bodies from coordinates and velocities of joints.

    Down every tree, ``X_wc = X_wp X_p X_j(q) inverse(X_c)`` and ``V_c = V_p + S qd`` with the joint's motion subspace S
    (Featherstone 2008, sections 4.4 and 5.3). Quaternions among the coordinates are normalised on the way. Joints outside of
    articulations (which close loops) play no role. Bodies that no articulation carries keep their values in ``state``;
    articulations on them are placed relative to ``Model.body_q``, with these bodies at rest.

    Args:
        model: the :class:`Model`.
        joint_q: coordinates [m, rad or quaternion x y z w], ``[joint_coord_count]``; also as an array of another library, which is copied.
        joint_qd: velocities [m/s or rad/s], ``[joint_dof_count]``, likewise.
        state: the :class:`State` (or anything with the two arrays) whose ``body_q`` and ``body_qd`` are written: poses
            of the link frames in the world; velocities of the centres of mass and angular velocities in world axes.
        mask: which articulations to evaluate, ``[articulation_count]`` bools or integers; all by default. Bodies of the
            others keep their values.
        indices: the same as a list of articulations.
        body_flag_filter: :class:`BodyFlags`; only bodies that have one of them move.
        joint_mask: ``[joint_count]`` bools or integers; only children of these joints move. If the parent of a selected joint
            does not move, the child is placed relative to the pose of the parent in ``state``. Children of joints that are not
            selected keep their poses in ``state``. To move a branch, select all its joints.

    Raises:
        ValueError: both ``mask`` and ``indices``; an array of the wrong shape or device, or with gaps; a tape records, and an input
            requires a gradient, but no array of ``state``.
        TypeError: an array of the wrong scalar type.
        IndexError: an articulation in ``indices`` does not exist.
    """
    joint_q, joint_qd = _on_device(model, joint_q, "joint_q"), _on_device(model, joint_qd, "joint_qd")
    joints = _joint_arrays(model, joint_q, joint_qd)
    body_q, body_qd = arrays_of_state(model, state, "body_q", "body_qd")
    chosen = selection(model, mask, indices)
    if joint_mask is None and body_flag_filter == BodyFlags.ALL:
        move_bodies(model, [*joints, body_q, body_qd], chosen)
        return
    # computes all bodies of these articulations, then moves the selected ones relative to their parents
    full = [wp.clone(array) for array in (body_q, body_qd)]
    move_bodies(model, [*joints, *full], chosen)
    kinds = warp_types(model.dtype)
    wp.launch(
        branch_kernels(model.dtype, kinds.transform, kinds.spatial_vector).move_bodies,
        dim=model.articulation_count,
        inputs=[
            model.articulation_start,
            model.articulation_end,
            chosen,
            model.joint_parent,
            model.joint_child,
            model.joint_ancestor,
            model.body_com,
            model.body_flags,
            int(BodyFlags(body_flag_filter)),
            joint_selection(model, joint_mask),
            *full,
        ],
        outputs=[body_q, body_qd],
        device=model.device,
    )


def move_bodies(model, arrays, mask: wp.array | None) -> None:
    """:func:`eval_fk` of arrays that were checked: ``joint_q, joint_qd, body_q, body_qd``."""
    run(model, _FK, arrays, mask)


def eval_ik(model, state, joint_q, joint_qd, mask=None, indices=None, body_flag_filter=BodyFlags.ALL) -> None:
    """Inverse kinematics: coordinates and velocities of joints from poses and velocities of bodies.

    The coordinates of a joint are computed from the pose of its child relative to its parent, so errors do not accumulate along a
    chain. A pose that a joint cannot take is projected: the offset onto its sliding axes, the rotation onto the nearest turn
    about its axis (two or three axes: as Euler angles). Angles come out in (-pi, pi], the middle one of three in [-pi/2, pi/2];
    turns are not counted. Where the middle one is +-pi/2 (gimbal lock) the first and the last angle are made equal in size.
    Quaternions are unit, of either sign. ``eval_ik(eval_fk(q)) = q`` but for these ranges. Joints outside of articulations keep
    their values.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` (or anything with the two arrays) with ``body_q`` and ``body_qd``.
        joint_q: written: coordinates [m, rad or quaternion x y z w], ``[joint_coord_count]``.
        joint_qd: written: velocities [m/s or rad/s], ``[joint_dof_count]``.
        mask: which articulations to evaluate, ``[articulation_count]`` bools or integers; all by default. Joints of the
            others keep their values.
        indices: the same as a list of articulations.
        body_flag_filter: :class:`BodyFlags`; only joints are written whose child has one of them.

    Raises:
        ValueError: both ``mask`` and ``indices``; an array of the wrong shape or device, or with gaps; a tape records, and the state
            requires a gradient, but neither ``joint_q`` nor ``joint_qd``.
        TypeError: an array of the wrong scalar type.
        IndexError: an articulation in ``indices`` does not exist.
    """
    joints, bodies = _joint_arrays(model, joint_q, joint_qd), arrays_of_state(model, state, "body_q", "body_qd")
    chosen = selection(model, mask, indices)
    if body_flag_filter == BodyFlags.ALL:
        run(model, _IK, [*bodies, *joints], chosen)
        return
    full = [wp.clone(array) for array in joints]
    run(model, _IK, [*bodies, *full], chosen)
    kinds = warp_types(model.dtype)
    wp.launch(
        branch_kernels(model.dtype, kinds.transform, kinds.spatial_vector).copy_joints,
        dim=model.articulation_count,
        inputs=[
            model.articulation_start,
            model.articulation_end,
            chosen,
            model.joint_child,
            model.body_flags,
            int(BodyFlags(body_flag_filter)),
            model.joint_q_start,
            model.joint_qd_start,
            *full,
        ],
        outputs=joints,
        device=model.device,
    )


def eval_jacobian(
    model, state, J: wp.array | None = None, joint_S_s: wp.array | None = None, mask=None
) -> wp.array | None:
    """Jacobians of all links: ``J qd == body_qd``.

    Rows ``6 i .. 6 i + 5`` belong to the child of the articulation's i-th joint: velocity of its centre of mass, then
    angular velocity, in world axes. Columns are the articulation's dofs. Rows and columns that an articulation lacks
    are zero.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``, and not the poses of bodies.
        J: written, ``[articulation_count, max_joints_per_articulation * 6, max_dofs_per_articulation]``; a new array of
            zeros by default.
        joint_S_s: memory that Newton's function works with, ``[joint_dof_count]`` spatial vectors. This one neither needs nor reads it.
        mask: which articulations to evaluate, ``[articulation_count]`` bools or integers; all by default. The matrices
            of the others keep their values.

    Returns:
        ``J``, or None for a model without articulations.

    Raises:
        ValueError: an array of the wrong shape or device, or with gaps.
        TypeError: an array of the wrong scalar type; `joint_S_s` is no array of spatial vectors.
    """
    if joint_S_s is not None and getattr(getattr(joint_S_s, "dtype", None), "_shape_", None) != (6,):
        raise TypeError("joint_S_s must be an array of spatial vectors or None; pass a mask by name: mask=...")
    rows = 6 * check_model(model).max_joints_per_articulation
    return eval_matrix(model, _JACOBIAN, state, J, "J", (rows, model.max_dofs_per_articulation), mask)


def eval_matrix(model, program: Program, state, out, name: str, shape: tuple[int, int], mask) -> wp.array | None:
    """Writes one matrix for every articulation, from ``state.joint_q``."""
    (joint_q,) = arrays_of_state(model, state, "joint_q")
    chosen = selection(model, mask)
    shape = (model.articulation_count, *shape)
    if out is not None:
        check_array(model, out, name, model.dtype, shape)
    if model.articulation_count == 0:
        return None
    if out is None:
        sources = (joint_q, model.body_mass, model.body_com, model.body_inertia)
        grad = any(a.requires_grad for a in sources)
        out = wp.zeros(shape, dtype=model.dtype, device=model.device, requires_grad=grad)
    if out.size:
        run(model, program, [joint_q, out], chosen)
    return out
