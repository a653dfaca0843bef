"""What a first step loads at once."""

from __future__ import annotations

from newton_like.collision.pipeline import kernels_ahead
from newton_like.kernels.parameters import parameter_kernels
from newton_like.kernels.solvers.xpbd.order import order_kernels
from newton_like.model.editing.edits import kernels_of_edits
from newton_like.threads import load_together


def load_ahead(solver, step, contacts, finds: bool) -> None:
    """Loads the kernels of a first step side by side, as far as they are known before it.

    Args:
        solver: the solver.
        step: its kernel.
        contacts: the list of contacts that is handed over, or None.
        finds: whether the step looks for contacts.
    """
    model = solver.model
    if not model.device.is_cpu:
        return
    kernels, inverse = [step], solver.update_joints and model.articulation_count > 0
    if finds:
        kernels += kernels_ahead(model)
    elif inverse:
        kernels += kernels_of_edits(model)
    if finds or getattr(contacts, "rigid_contact_max", 0):
        kernels.append(order_kernels(model.dtype)[1])
    if inverse:
        kernels.append(parameter_kernels(model.dtype).copies)
    load_together(kernels, model.device, solver.threads)
