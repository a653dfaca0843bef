"""Functions that read and set the generalised velocity of mechanisms, with the velocity of floating bases in any representation."""

from __future__ import annotations

import warp as wp

from newton_like.dynamics.internal.common import (
    Q,
    V,
    check_passes_gradients,
    columns,
    dof_vector,
    evaluate,
    joints_changed,
    representation,
    state_arrays,
)
from newton_like.model.arguments import check_array
from newton_like.programs.program import Field, Program, cached_program
from newton_like.programs.run import run

_VELOCITY = Program("eval_velocity", (Q, V), (Field("vector", "articulations", columns),))
_NATIVE = Field("next_v", "dofs")


def velocity(model, state, repr=None, *, out: wp.array | None = None) -> wp.array:
    """The generalised velocity nu: velocities of floating bases in a representation, and of all other joints as they are.

    It is the velocity that the matrices, forces and Jacobians of the same ``repr`` multiply.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        repr: :class:`VelRepr` of the velocity of floating bases (FREE and DISTANCE joints on the world); None: as ``joint_qd``.
        out: array for the result; a new array by default.

    Returns:
        [m/s or rad/s], linear before angular velocity of a base, ``[articulation_count, max_dofs_per_articulation]``; dofs that an
        articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation; numbers that are not finite.
        TypeError: an array of the wrong scalar type.
    """
    program = _VELOCITY.ask(base_repr=representation(repr))
    return evaluate(model, program, state_arrays(model, state), [(columns(model),)], out)


def set_velocity(model, state, velocity, repr=None) -> None:
    """Sets ``joint_qd`` of a state from the generalised velocity: the inverse of :func:`velocity`.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function writes ``joint_qd`` and reads ``joint_q``, the pose that the velocity belongs to.
        velocity: nu [m/s or rad/s], ``[joint_dof_count]`` or ``[articulation_count, max_dofs_per_articulation]``, numbers or a Warp
            array. Velocities of joints outside of articulations stay.
        repr: :class:`VelRepr` of the velocity of floating bases; None: as ``joint_qd``.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation; numbers that are not finite; on a tape,
            a velocity with gradients for a state without.
        TypeError: an array of the wrong scalar type.
    """
    (q,) = state_arrays(model, state, velocities=False)
    if velocity is None:
        raise TypeError("velocity is None; give numbers or a Warp array")
    field, given = dof_vector(model, velocity, "velocity", "vector")
    result = check_array(model, state.joint_qd, "state.joint_qd", model.dtype, (model.joint_dof_count,))
    check_passes_gradients((q, given), (result,), "state.joint_qd")
    if model.articulation_count and result.size:
        program = cached_program("eval_native_velocity", (Q, field), (_NATIVE,)).ask(base_repr=representation(repr))
        run(model, program, [q, given, result])
    joints_changed(state)
