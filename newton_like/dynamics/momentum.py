"""Momentum and average velocity of mechanisms, and their matrices.

The momentum of a mechanism has the representation of a wrench on its first link (the floating base, or the first moving link), and the
average velocity that of the link's velocity: a :class:`VelRepr` selects the point and the axes. *Centroidal* quantities are about
the mechanism's centre of mass, along the first link's axes for ``VelRepr.BODY`` and along the world's for every other representation
(Orin, Goswami and Lee 2013, "Centroidal dynamics of a humanoid robot"; Traversaro, Pucci and Nori 2017 for average velocities).

``joint_armature`` is the inertia of a drive without a position in space. The mass matrix and the kinetic energy contain it; the
quantities of this module do not.
"""

from __future__ import annotations

import warp as wp

from newton_like.dynamics.internal.common import Q, V, columns, evaluate, representation, state_arrays
from newton_like.dynamics.kinematics import chosen, output_representation
from newton_like.kernels.dynamics.momentum import AVERAGE, CENTROIDAL, MOMENTUM, WHOLE, WHOLE_CENTROIDAL
from newton_like.programs.program import Field, Program
from newton_like.types import VelRepr

RESULTS = (Field("vector", "articulations", 6), Field("second", "articulations", 3), Field("third", "articulations", 3))
"""All results of the momentum programs; each function returns one of them."""


_MOMENTUM = Program("eval_momentum", (Q, V), (Field("vector", "articulations", 6),), RESULTS)
_MATRIX = Program("eval_momentum_matrix", (Q,), (Field("matrix", "articulations", lambda m: 6 * columns(m)),))
_BIAS = Program("eval_momentum_bias", (Q, V), (Field("vector", "articulations", 6),), RESULTS)
_INERTIA = Program("eval_inertia", (Q,), (Field("matrix", "articulations", 36),))


def _vector(model, state, choice: int, repr, out):
    program = _MOMENTUM.ask(quantity=choice, output_repr=output_representation(repr, "out_repr"))
    return evaluate(model, program, state_arrays(model, state), [(6,)], out)


def _jacobian(model, state, choice: int, repr, out_repr, out):
    program = _MATRIX.ask(
        quantity=choice, base_repr=representation(repr), output_repr=output_representation(out_repr, "out_repr")
    )
    return evaluate(model, program, state_arrays(model, state, False), [(6, columns(model))], out)


def _inertia(model, state, choice: int, repr, out):
    program = _INERTIA.ask(quantity=choice, output_repr=output_representation(repr, "out_repr"))
    return evaluate(model, program, state_arrays(model, state, False), [(6, 6)], out)


def total_momentum(model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Linear and angular momentum of each mechanism.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        out_repr: :class:`VelRepr` of the result: about the origin of the first link (MIXED, BODY), its centre of mass (COM) or the
            origin of the world (INERTIAL), along world axes or the link's (BODY).
        out: array for the result; a new array by default.

    Returns:
        [kg m/s, kg m^2/s], ``[articulation_count, 6]``.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    return _vector(model, state, MOMENTUM, chosen(out_repr, repr), out)


def total_momentum_jacobian(
    model, state, *, repr=None, out_repr=VelRepr.MIXED, out: wp.array | None = None
) -> wp.array:
    """The matrix that takes generalised velocities to :func:`total_momentum`.

    Column i is ``I_c S_i``, with the inertia I_c of the bodies that dof i moves (Featherstone 2008, section 6.2). For a floating base
    without armature these are the first six rows of the mass matrix, where ``repr`` and ``out_repr`` are the same.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        repr: :class:`VelRepr` of the velocity of floating bases; None: as ``joint_qd``.
        out_repr: that of the momentum, see :func:`total_momentum`.
        out: array for the result; a new array by default.

    Returns:
        ``[articulation_count, 6, max_dofs_per_articulation]``; columns that an articulation lacks are zero.

    Raises:
        ValueError, TypeError: as :func:`total_momentum`.
    """
    return _jacobian(model, state, MOMENTUM, repr, out_repr, out)


def centroidal_momentum(model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Linear momentum of each mechanism, and angular momentum about its centre of mass.

    Arguments and errors as for :func:`total_momentum`; only the axes of ``out_repr`` are used: those of the first link for
    ``VelRepr.BODY``, the world's for all others.

    Returns:
        [kg m/s, kg m^2/s], ``[articulation_count, 6]``.
    """
    return _vector(model, state, MOMENTUM + CENTROIDAL, chosen(out_repr, repr), out)


def centroidal_momentum_jacobian(
    model, state, *, repr=None, out_repr=VelRepr.MIXED, out: wp.array | None = None
) -> wp.array:
    """The centroidal momentum matrix (CMM) A: ``h_G = A nu`` (Orin, Goswami and Lee 2013).

    Arguments, result and errors as for :func:`total_momentum_jacobian`; only the axes of ``out_repr`` are used, see
    :func:`centroidal_momentum`.
    """
    return _jacobian(model, state, MOMENTUM + CENTROIDAL, repr, out_repr, out)


def centroidal_momentum_bias(
    model, state, *, repr=None, out_repr=VelRepr.MIXED, out: wp.array | None = None
) -> wp.array:
    """Bias ``A_dot nu`` of the centroidal momentum matrix: ``h_G_dot = A nu_dot + A_dot nu``.

    By the accelerations that all bodies have while nu is constant, without gravity (Wensing and Orin 2016, "Improved computation of the
    humanoid centroidal dynamics").

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        repr: :class:`VelRepr` of the velocity of floating bases, whose accelerations are its derivatives; None: as ``joint_qd``.
        out_repr: axes of the momentum, see :func:`centroidal_momentum`. For BODY this is the derivative of components along
            axes that turn.
        out: array for the result; a new array by default.

    Returns:
        [N, N m], ``[articulation_count, 6]``.

    Raises:
        ValueError, TypeError: as :func:`total_momentum`.
    """
    program = _BIAS.ask(base_repr=representation(repr), output_repr=output_representation(out_repr, "out_repr"))
    return evaluate(model, program, state_arrays(model, state), [(6,)], out)


def locked_spatial_inertia(model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Inertia of each mechanism as one rigid body, all joints locked.

    It takes the velocity of the first link, in a representation, to the momentum of the rigid body in the same one.

    Arguments and errors as for :func:`total_momentum`; ``out_repr`` is that of both, and ``joint_qd`` of the state is not used.

    Returns:
        [kg, kg m, kg m^2], ``[articulation_count, 6, 6]``.
    """
    return _inertia(model, state, WHOLE, chosen(out_repr, repr), out)


def locked_centroidal_inertia(
    model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None
) -> wp.array:
    """Inertia of each mechanism as one rigid body about its centre of mass: the total mass, and the moments of inertia.

    Arguments and errors as for :func:`locked_spatial_inertia`; only the axes of ``out_repr`` are used, see :func:`centroidal_momentum`.

    Returns:
        [kg, kg m^2], ``[articulation_count, 6, 6]``.
    """
    return _inertia(model, state, WHOLE_CENTROIDAL, chosen(out_repr, repr), out)


def average_velocity(model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Velocity of one rigid body with the inertia and momentum of the mechanism: ``I^-1 h``.

    If all mass is on a line, the angular velocity about this line is zero. If all mass is in a point, the angular velocity is zero. Without
    mass, the linear velocity is also zero.

    Arguments and errors as for :func:`total_momentum`; ``out_repr`` is the representation of the result, as a velocity of the first link.

    Returns:
        [m/s, rad/s], ``[articulation_count, 6]``.
    """
    return _vector(model, state, AVERAGE, chosen(out_repr, repr), out)


def average_velocity_jacobian(
    model, state, *, repr=None, out_repr=VelRepr.MIXED, out: wp.array | None = None
) -> wp.array:
    """The matrix that takes generalised velocities to :func:`average_velocity`.

    Arguments, result and errors as for :func:`total_momentum_jacobian`; ``out_repr`` is that of the average velocity.
    """
    return _jacobian(model, state, AVERAGE, repr, out_repr, out)


def average_centroidal_velocity(
    model, state, *, out_repr=VelRepr.MIXED, repr=None, out: wp.array | None = None
) -> wp.array:
    """Velocity of the centre of mass, and the angular velocity of :func:`average_velocity`.

    Arguments, result and errors as for :func:`average_velocity`; only the axes of ``out_repr`` are used, see :func:`centroidal_momentum`.
    """
    return _vector(model, state, AVERAGE + CENTROIDAL, chosen(out_repr, repr), out)


def average_centroidal_velocity_jacobian(
    model, state, *, repr=None, out_repr=VelRepr.MIXED, out: wp.array | None = None
) -> wp.array:
    """The matrix that takes generalised velocities to :func:`average_centroidal_velocity`.

    Arguments, result and errors as for :func:`total_momentum_jacobian`; only the axes of ``out_repr`` are used, see
    :func:`centroidal_momentum`.
    """
    return _jacobian(model, state, AVERAGE + CENTROIDAL, repr, out_repr, out)
