"""Energies of mechanisms."""

from __future__ import annotations

import warp as wp

from newton_like.dynamics.internal.common import Q, V, evaluate, state_arrays
from newton_like.dynamics.internal.frames import asked_link
from newton_like.dynamics.kinematics import for_frames
from newton_like.kernels.dynamics.momentum import KINETIC, LINK_POTENTIAL, MECHANICAL, POTENTIAL
from newton_like.programs.program import Field, Program

_ENERGY = Field("vector", "articulations", 1)
_MOVING = Program("eval_energy", (Q, V), (_ENERGY,))
_PLACED = Program("eval_energy", (Q,), (_ENERGY,)).ask(quantity=POTENTIAL)


def kinetic_energy(model, state, *, out: wp.array | None = None) -> wp.array:
    """Kinetic energy of each mechanism, its bodies' and its drives' (``joint_armature``): ``1/2 nu^T M nu``.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        out: array for the result; a new array by default.

    Returns:
        [J], ``[articulation_count]``.

    Raises:
        ValueError: an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    return evaluate(model, _MOVING.ask(quantity=KINETIC), state_arrays(model, state), [()], out)


def potential_energy(model, state, link=None, *, out: wp.array | None = None) -> wp.array:
    """Potential energy of each mechanism, or of one of its links, in gravity: ``-m g . p_com``.

    The potential energy increases with height and is zero if the centre of mass is at the origin of the world. It does not
    include the springs of joints. The function reads ``gravity`` of the model, and does not read ``joint_qd`` of the state.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        link: name or index of a link; by default the whole mechanism.
        out: array for the result; a new array by default.

    Returns:
        [J], ``[articulation_count]``; zero where an articulation lacks the link.

    Raises:
        KeyError, IndexError: no articulation has the link.
        ValueError: an array of the wrong shape or device; several links have the name.
        TypeError: an array of the wrong scalar type; neither a name nor an index.
    """
    if link is not None:
        arrays = state_arrays(model, state, False)
        return for_frames(
            model, "eval_links", asked_link(model, link), [Q], arrays, "vector", (), True, out, quantity=LINK_POTENTIAL
        )
    return evaluate(model, _PLACED, state_arrays(model, state, False), [()], out)


def mechanical_energy(model, state, *, out: wp.array | None = None) -> wp.array:
    """Kinetic and potential energy of each mechanism together. Arguments, result and errors as for :func:`kinetic_energy`."""
    return evaluate(model, _MOVING.ask(quantity=MECHANICAL), state_arrays(model, state), [()], out)
