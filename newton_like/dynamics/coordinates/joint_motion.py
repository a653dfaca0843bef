"""Motion across single joints: transforms, motion subspaces, twists and bias accelerations of children relative to their parents."""

from __future__ import annotations

import warp as wp

from newton_like.dynamics.internal.common import Q, V, columns, evaluate, links, state_arrays
from newton_like.dynamics.kinematics import chosen, output_representation
from newton_like.programs.program import Field, Program
from newton_like.types import VelRepr

_POSES = Field("vector", "articulations", lambda model: 7 * links(model))
_COLUMNS = Field("matrix", "articulations", lambda model: 6 * columns(model))
_TWISTS = Field("vector", "articulations", lambda model: 6 * links(model))
_DRIFTS = Field("second", "articulations", lambda model: 6 * links(model))


_TRANSFORMS = Program("eval_joint_transforms", (Q,), (_POSES,))
_SUBSPACES = Program("eval_motion_subspaces", (Q,), (_COLUMNS,))
_VELOCITIES = Program("eval_joint_motion", (Q, V), (_TWISTS,), (_TWISTS, _DRIFTS))
_BIASES = Program("eval_joint_motion", (Q, V), (_DRIFTS,), (_TWISTS, _DRIFTS))


def joint_transforms(model, state, *, out: wp.array | None = None) -> wp.array:
    """The transform X_j(q) of every joint: the pose of the anchor frame of its child in the anchor frame of its parent.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        out: array for the result; a new array by default.

    Returns:
        Position [m] and quaternion x y z w, ``[articulation_count, max_joints_per_articulation, 7]``; joints that an
        articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    return evaluate(model, _TRANSFORMS, state_arrays(model, state, False), [(links(model), 7)], out)


def motion_subspaces(model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """For each degree of freedom, the twist across its joint for a unit velocity (Featherstone 2008, section 3.5).

    Arguments and errors as for :func:`joint_twists`; ``joint_qd`` of the state is not used.

    Returns:
        ``[articulation_count, max_dofs_per_articulation, 6]``, linear part first; dofs that an articulation lacks are zero.
    """
    program = _SUBSPACES.ask(output_repr=output_representation(chosen(out_repr, repr), "out_repr"))
    return evaluate(model, program, state_arrays(model, state, False), [(columns(model), 6)], out)


def joint_twists(model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """The twist of every joint: the velocity of its child minus that of a body that is fixed to the parent, ``S qd``.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        out_repr: :class:`VelRepr` of the child link: about its origin (MIXED, BODY), its centre of mass (COM) or the origin of the
            world (INERTIAL), along its axes (BODY) or those of the world. In INERTIAL, twists add up along a chain to the
            velocity of the last link.
        out: array for the result; a new array by default.

    Returns:
        [m/s] and [rad/s], ``[articulation_count, max_joints_per_articulation, 6]``; joints that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    return _motion(model, state, _VELOCITIES, chosen(out_repr, repr), out)


def joint_bias_accelerations(
    model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None
) -> wp.array:
    """The time derivatives of :func:`joint_twists` while ``joint_qd`` is constant. Arguments, result and errors as there."""
    return _motion(model, state, _BIASES, chosen(out_repr, repr), out)


def _motion(model, state, program: Program, repr, out) -> wp.array:
    program = program.ask(output_repr=output_representation(repr, "out_repr"))
    return evaluate(model, program, state_arrays(model, state), [(links(model), 6)], out)
