"""The joint-space inertia of all articulations of a model."""

from __future__ import annotations

import warp as wp

from newton_like.kernels.dynamics.mass_matrix import mass_matrix_kernels
from newton_like.model.batched import Program, check_array, run, selection


def _rows(model, template, backward: bool) -> dict[str, int]:
    n, dofs = template.bodies, template.dofs
    return dict(
        q=template.coords, v=dofs, origin=3, quat=4 * (n + 1), rot=9 * (n + 1), pos=3 * (n + 1), com=3 * n,
        subspace=6 * dofs, twist=6 * (n + 1), composite=10 * n, h=int((template.depth + 1).sum()),
        matrix=model.max_dofs_per_articulation**2,
    )  # fmt: skip


_MASS_MATRIX = Program(mass_matrix_kernels, "eval_mass_matrix", _rows)


def eval_mass_matrix(model, state, H: wp.array | None = None, mask=None) -> wp.array | None:
    """Joint-space inertia of every articulation."""
    if model.articulation_count == 0:
        return None
    dofs = model.max_dofs_per_articulation
    shape = (model.articulation_count, dofs, dofs)
    joint_q = check_array(model, state.joint_q, "state.joint_q", model.dtype, (model.joint_coord_count,))
    chosen = selection(model, mask)
    if H is None:
        H = wp.zeros(shape, dtype=model.dtype, device=model.device, requires_grad=joint_q.requires_grad)
    check_array(model, H, "H", model.dtype, shape)
    run(model, _MASS_MATRIX, [joint_q, H], chosen)
    return H
