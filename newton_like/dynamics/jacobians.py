"""Free-floating Jacobians of links, frames and points, and their time derivatives.

A Jacobian maps the generalized velocity nu to the velocity of a frame. For a fixed base nu is ``joint_qd``; for a floating base its
first six entries are the base link's velocity in the representation ``repr``. Links, frames and points are given as in
:mod:`newton_like.dynamics.kinematics`.
"""

from __future__ import annotations

import warp as wp

from newton_like.dynamics.internal.common import Q, V, columns, representation, state_arrays
from newton_like.dynamics.internal.frames import Asked, asked_frames, asked_link, asked_points, every_link
from newton_like.dynamics.kinematics import MIXED, for_frames, output_representation

_VALUE, _DERIVATIVE = "eval_frame_jacobians", "eval_frame_jacobian_derivatives"


def _matrices(
    model, state, name: str, asked: Asked, single: bool, repr, out_repr, out, components: int = 6
) -> wp.array:
    base, output = representation(repr), output_representation(out_repr, "out_repr")
    moving = name == _DERIVATIVE
    fields, arrays = [Q, V] if moving else [Q], state_arrays(model, state, moving)
    shape = (components, columns(model))
    return for_frames(
        model, name, asked, fields, arrays, "matrix", shape, single, out, base_repr=base, output_repr=output
    )


def link_jacobians(model, state, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Jacobians of all links: ``J nu`` is the velocity of :func:`link_velocities`.

    Column j is the joint's motion subspace, seen at the point and along the axes of the representation (Featherstone 2008,
    section 4.4).

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        repr: :class:`VelRepr` of the velocity of floating bases; None: as ``joint_qd``.
        out_repr: :class:`VelRepr` of the links' velocities.
        out: array for the result; a new array by default.

    Returns:
        ``[articulation_count, max_links, 6, max_dofs_per_articulation]``, linear rows first; links and dofs that an articulation
        lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    return _matrices(model, state, _VALUE, every_link(model), False, repr, out_repr, out)


def link_jacobian(model, state, link, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Jacobian of a link, ``[articulation_count, 6, max_dofs]``; see :func:`link_jacobians` and :func:`frame_transform`."""
    return _matrices(model, state, _VALUE, asked_link(model, link), True, repr, out_repr, out)


def frame_jacobian(model, state, frame, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Jacobian of a frame, ``[articulation_count, 6, max_dofs]``; see :func:`link_jacobians` and :func:`frame_transform`."""
    return _matrices(model, state, _VALUE, asked_frames(model, [frame]), True, repr, out_repr, out)


def frame_jacobians(model, state, frames, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Jacobians of several frames, ``[articulation_count, frames, 6, max_dofs]``; see :func:`frame_jacobian`."""
    return _matrices(model, state, _VALUE, asked_frames(model, frames), False, repr, out_repr, out)


def point_jacobians(model, state, links, points, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Jacobians of the velocities, in world axes, of points fixed to links.

    Args:
        model, state, links, points, out: as for :func:`point_positions`.
        repr: :class:`VelRepr` of the velocity of floating bases; None: as ``joint_qd``.

    Returns:
        ``[articulation_count, n, 3, max_dofs]``.

    Raises:
        KeyError, IndexError, ValueError, TypeError: as :func:`point_positions`; an unknown representation.
    """
    return _matrices(model, state, _VALUE, asked_points(model, links, points), False, repr, MIXED, out, 3)


def link_jacobian_derivatives(model, state, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Time derivatives of the Jacobians of all links: ``J_dot nu`` are the :func:`link_bias_accelerations`.

    Arguments, result and errors as for :func:`link_jacobians`; ``joint_qd`` of the state is also used.
    """
    return _matrices(model, state, _DERIVATIVE, every_link(model), False, repr, out_repr, out)


def link_jacobian_derivative(model, state, link, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Time derivative of a link's Jacobian, ``[articulation_count, 6, max_dofs]``; see :func:`link_jacobian_derivatives`."""
    return _matrices(model, state, _DERIVATIVE, asked_link(model, link), True, repr, out_repr, out)


def frame_jacobian_derivative(
    model, state, frame, *, repr=None, out_repr=MIXED, out: wp.array | None = None
) -> wp.array:
    """Time derivative of a frame's Jacobian, ``[articulation_count, 6, max_dofs]``; see :func:`link_jacobian_derivatives`."""
    return _matrices(model, state, _DERIVATIVE, asked_frames(model, [frame]), True, repr, out_repr, out)


def frame_jacobian_derivatives(
    model, state, frames, *, repr=None, out_repr=MIXED, out: wp.array | None = None
) -> wp.array:
    """Time derivatives of several frames' Jacobians, ``[articulation_count, frames, 6, max_dofs]``."""
    return _matrices(model, state, _DERIVATIVE, asked_frames(model, frames), False, repr, out_repr, out)


def point_jacobian_derivatives(model, state, links, points, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Time derivatives of the Jacobians of points, ``[articulation_count, n, 3, max_dofs]``; see :func:`point_jacobians`."""
    return _matrices(model, state, _DERIVATIVE, asked_points(model, links, points), False, repr, MIXED, out, 3)
