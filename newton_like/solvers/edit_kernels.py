"""The kernels of notices and resets, loaded before the first of them."""

from __future__ import annotations

import warp as wp

from newton_like.kernels.edits import edit_kernels, fingerprint_kernels, mass_kernels
from newton_like.kernels.solvers.health import health_kernels
from newton_like.threads import compiling


@compiling
def load_edit_kernels(solver) -> None:
    """Loads all kernels that notices and resets of the solver launch, so that none is compiled between steps."""
    model = solver.model
    edits, prints = edit_kernels(), fingerprint_kernels()
    masses, health = mass_kernels(model.dtype), health_kernels(model.dtype)
    kernels = (
        edits.mark, edits.watch, prints.compare, prints.compare_shared, prints.mark_shared, prints.digest,
        masses.invert, masses.invert_singular, health.spread, health.examine,
    )  # fmt: skip
    wp.force_load(model.device, [kernel.module for kernel in kernels])
    # a reset launches kinematics and kernels of the solver too; nobody is reset
    nobody = wp.zeros(model.world_count, dtype=wp.bool, device=model.device)
    solver.reset(model.state(requires_grad=False), nobody)
