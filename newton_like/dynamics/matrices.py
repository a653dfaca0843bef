"""The joint-space inertia of the articulations of a model, its inverse, and the Coriolis matrix."""

from __future__ import annotations

import warp as wp

from newton_like.coercion import as_flag
from newton_like.dynamics.internal.common import Q, V, columns, evaluate, representation, state_arrays
from newton_like.kinematics import eval_matrix
from newton_like.model.arguments import check_model
from newton_like.model.singular import check_invertible
from newton_like.programs.program import Field, Program


def _size(model) -> int:
    return model.max_dofs_per_articulation**2


_MATRIX = (Field("matrix", "articulations", _size),)
_MASS_MATRIX = Program("eval_mass_matrix", (Q,), _MATRIX)
_RIGID_MASS_MATRIX = Program("eval_rigid_mass_matrix", (Q,), _MATRIX)
_INVERSE = Program("eval_mass_matrix_inverse", (Q,), _MATRIX, ("pivot",))
_CORIOLIS = Program("eval_coriolis_matrix", (Q, V), _MATRIX, ("subspace_rate", "articulated"))


def eval_mass_matrix(
    model,
    state,
    H: wp.array | None = None,
    J: wp.array | None = None,
    body_I_s: wp.array | None = None,
    joint_S_s: wp.array | None = None,
    mask=None,
    *,
    include_armature: bool = True,
) -> wp.array | None:
    """Joint-space inertia: ``qdT H qd / 2`` is the kinetic energy of an articulation.

    By the composite-rigid-body algorithm (Featherstone 2008, table 6.2), with ``joint_armature`` on the diagonal. Rows
    and columns that an articulation lacks are zero. After editing masses, inertias, centres of mass or armature call
    :meth:`Model.notify_changed`.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``, and not the poses of bodies.
        H: written [kg, kg m or kg m^2], ``[articulation_count, max_dofs_per_articulation, max_dofs_per_articulation]``;
            a new array of zeros by default.
        J, body_I_s, joint_S_s: a Jacobian and memory that Newton's function works with. This one needs none of them and does not
            read them; they are there so that calls written for Newton mean the same.
        mask: which articulations to evaluate, ``[articulation_count]`` bools or integers; all by default. The matrices
            of the others keep their values.
        include_armature: False leaves ``joint_armature`` out.

    Returns:
        ``H``, or None for a model without articulations.

    Raises:
        ValueError: an array of the wrong shape or device, or with gaps.
        TypeError: an array of the wrong scalar type.
    """
    dofs = check_model(model).max_dofs_per_articulation
    whole = include_armature is True or as_flag(include_armature, "include_armature")
    program = _MASS_MATRIX if whole else _RIGID_MASS_MATRIX
    return eval_matrix(model, program, state, H, "H", (dofs, dofs), mask)


def mass_matrix(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Joint-space inertia M: ``nuT M nu / 2`` is the kinetic energy of an articulation, its armature included.

    By the composite-rigid-body algorithm (Featherstone 2008, table 6.2).

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        repr: :class:`VelRepr` of the velocity of floating bases; None: as ``joint_qd``.
        out: array for the result; a new array by default.

    Returns:
        [kg, kg m or kg m^2], ``[articulation_count, max_dofs_per_articulation, max_dofs_per_articulation]``; rows and
        columns that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    program = _MASS_MATRIX.ask(base_repr=representation(repr))
    return evaluate(model, program, state_arrays(model, state, False), [(columns(model),) * 2], out)


def mass_matrix_inverse(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Inverse of :func:`mass_matrix`: accelerations per joint force.

    From the factorisation ``M = LT D L``, which keeps the sparsity of the tree (Featherstone 2008, section 6.5), and
    ``L^-1``, whose rows are as sparse.

    A degree of freedom without armature that moves no mass in a configuration (for example three aligned axes of massless links), or whose
    mass was removed after ``finalize``, has a pivot of rounding errors only. It counts as locked: its row and column are zero, and the
    other entries are the inverse of the remaining matrix. In a representation other than the joint's, a locked degree of freedom of a
    floating base makes the result a generalised inverse, ``M^-1 M M^-1 = M^-1``.

    Arguments and errors as for :func:`mass_matrix`, and ValueError for a joint that moves no mass in any configuration
    (:mod:`newton_like.model.singular`); returns [1/kg, 1/(kg m) or 1/(kg m^2)], of the same shape.
    """
    program, arrays = _INVERSE.ask(output_repr=representation(repr)), state_arrays(model, state, False)
    check_invertible(model, "mass_matrix_inverse")
    return evaluate(model, program, arrays, [(columns(model),) * 2], out)


def coriolis_matrix(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """The Coriolis matrix C: ``C nu = h - g``, and ``C + CT`` is the rate of :func:`mass_matrix`.

    Computed by the algorithm of Echeandia and Wensing (2021) in O(n d) for n degrees of freedom and depth d of the tree; for
    joints of one axis its entries are those of the Christoffel symbols.

    Arguments and errors as for :func:`mass_matrix`, ``joint_qd`` of the state is also used; returns [kg/s, kg m/s or kg m^2/s], of the same
    shape.
    """
    program = _CORIOLIS.ask(base_repr=representation(repr))
    return evaluate(model, program, state_arrays(model, state), [(columns(model),) * 2], out)
