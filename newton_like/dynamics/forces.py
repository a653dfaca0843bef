"""Forces and matrices of the equation of motion ``M(q) nu_dot + h(q, nu) = tau + sum J^T f``."""

from __future__ import annotations

import warp as wp

from newton_like.dynamics.common import Q, V, columns, evaluate, representation, state_arrays
from newton_like.model.batched import Field, Program

_BIAS = Program("eval_bias_forces", (Q, V), (Field("vector", "articulations", columns),))


def bias_forces(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Bias forces h: what keeps all accelerations zero (Coriolis, centrifugal and gyroscopic forces, and gravity).

    By the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1).

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` and ``joint_qd`` count.
        repr: :class:`VelRepr` of the velocity of floating bases, whose accelerations are its derivatives; None: as
            ``joint_qd``.
        out: written; a new array by default.

    Returns:
        [N or N m], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    program = _BIAS.ask(base=representation(repr))
    return evaluate(model, program, state_arrays(model, state), [(columns(model),)], out)
