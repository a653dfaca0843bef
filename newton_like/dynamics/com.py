"""The centre of mass of mechanisms: position, velocity, bias acceleration and Jacobian."""

from __future__ import annotations

import warp as wp

from newton_like.dynamics.internal.common import Q, V, columns, evaluate, representation, state_arrays
from newton_like.dynamics.internal.frames import asked_link
from newton_like.dynamics.kinematics import chosen, for_frames, output_representation
from newton_like.dynamics.momentum import RESULTS
from newton_like.kernels.dynamics.momentum import CENTRE, LINK_CENTRE
from newton_like.programs.program import Field, Program
from newton_like.types import VelRepr

_POSITION = Program("eval_momentum", (Q,), (Field("second", "articulations", 3),), RESULTS)
_VELOCITY = Program("eval_momentum", (Q, V), (Field("third", "articulations", 3),), RESULTS)
_BIAS = Program("eval_momentum_bias", (Q, V), (Field("second", "articulations", 3),), RESULTS)
MIXED = VelRepr.MIXED
_JACOBIAN = Program(
    "eval_momentum_matrix", (Q,), (Field("matrix", "articulations", lambda m: 3 * columns(m)),)
).ask(quantity=CENTRE)  # fmt: skip


def com_position(model, state, *, out: wp.array | None = None) -> wp.array:
    """Centre of mass of each mechanism. Without mass, the anchor of its first joint.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        out: array for the result; a new array by default.

    Returns:
        [m], world axes, ``[articulation_count, 3]``.

    Raises:
        ValueError: an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    return evaluate(model, _POSITION, state_arrays(model, state, False), [(3,)], out)


def com_velocity(model, state, *, out_repr=MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Velocity of the centre of mass of each mechanism: its linear momentum over its mass.

    Args:
        model, out: as for :func:`com_position`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        out_repr: axes of the result: for ``VelRepr.BODY`` those of the first link, for every other :class:`VelRepr` the world's.
            ``repr`` is another name of it.

    Returns:
        [m/s], ``[articulation_count, 3]``; zero without mass.

    Raises:
        ValueError, TypeError: as :func:`com_position`, or an unknown representation.
    """
    program = _VELOCITY.ask(output_repr=output_representation(chosen(out_repr, repr), "out_repr"))
    return evaluate(model, program, state_arrays(model, state), [(3,)], out)


def com_jacobian(model, state, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """The matrix that takes generalised velocities to the velocity of the centre of mass.

    Column i is the velocity, for a unit velocity of dof i, of the centre of mass of the bodies that it moves, times their share of the
    mass.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        repr: :class:`VelRepr` of the velocity of floating bases; None: as ``joint_qd``.
        out_repr: axes of the velocity of the centre of mass, see :func:`com_velocity`.
        out: array for the result; a new array by default.

    Returns:
        ``[articulation_count, 3, max_dofs_per_articulation]``; columns that an articulation lacks are zero.

    Raises:
        ValueError, TypeError: as :func:`com_position`, or an unknown representation.
    """
    program = _JACOBIAN.ask(base_repr=representation(repr), output_repr=output_representation(out_repr, "out_repr"))
    return evaluate(model, program, state_arrays(model, state, False), [(3, columns(model))], out)


def com_bias_acceleration(model, state, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Acceleration of the centre of mass while the generalised velocities are constant: ``J_dot nu``.

    Arguments and errors as for :func:`com_jacobian`; ``joint_qd`` of the state is also used, and ``repr`` says which velocity of floating
    bases is constant. The result is the time derivative of :func:`com_velocity` in ``out_repr``: for ``VelRepr.BODY`` that of
    components along axes that turn, ``R^T (a - w x v)``.

    Returns:
        [m/s^2], ``[articulation_count, 3]``.
    """
    program = _BIAS.ask(base_repr=representation(repr), output_repr=output_representation(out_repr, "out_repr"))
    return evaluate(model, program, state_arrays(model, state), [(3,)], out)


def link_com_position(model, state, link, *, out: wp.array | None = None) -> wp.array:
    """Centre of mass of a link in the world.

    In the link frame it is a constant, ``model.body_com[link_bodies(model)[link]]``.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        link: name or index of a link.
        out: array for the result; a new array by default.

    Returns:
        [m], world axes, ``[articulation_count, 3]``; zeros where an articulation lacks the link.

    Raises:
        KeyError, IndexError: no articulation has the link.
        ValueError: an array of the wrong shape or device; several links have the name.
        TypeError: an array of the wrong scalar type; neither a name nor an index.
    """
    arrays, asked = state_arrays(model, state, False), asked_link(model, link)
    return for_frames(model, "eval_links", asked, [Q], arrays, "vector", (3,), True, out, quantity=LINK_CENTRE)
