"""The joint-space inertia of the articulations of a model."""

from __future__ import annotations

import warp as wp

from newton_like.kinematics import eval_matrix
from newton_like.model.batched import Field, Program


def _size(model) -> int:
    return model.max_dofs_per_articulation**2


_MASS_MATRIX = Program("eval_mass_matrix", (Field("q", "coords"),), (Field("matrix", "articulations", _size),))


def eval_mass_matrix(model, state, H: wp.array | None = None, mask=None) -> wp.array | None:
    """Joint-space inertia: ``qdT H qd / 2`` is the kinetic energy of an articulation.

    By the composite-rigid-body algorithm (Featherstone 2008, table 6.2), with ``joint_armature`` on the diagonal. Rows
    and columns that an articulation lacks are zero. After editing masses, inertias, centres of mass or armature call
    :meth:`Model.notify_changed`.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` counts; poses of bodies are not read.
        H: written [kg, kg m or kg m^2], ``[articulation_count, max_dofs_per_articulation, max_dofs_per_articulation]``;
            a new array of zeros by default.
        mask: which articulations to evaluate, ``[articulation_count]`` bools or integers; all by default. The matrices
            of the others keep their values.

    Returns:
        ``H``, or None for a model without articulations.

    Raises:
        ValueError: an array of the wrong shape or device, or with gaps.
        TypeError: an array of the wrong scalar type.
    """
    dofs = model.max_dofs_per_articulation
    return eval_matrix(model, _MASS_MATRIX, state, H, "H", (dofs, dofs), mask)
