"""Arrays of states on request in a step of SolverXPBD: accelerations of bodies; the others are refused by name."""

from __future__ import annotations

import warp as wp

from newton_like.arrays import flat
from newton_like.kernels.solvers.requested import requested_kernels
from newton_like.model.state import BODY_PARENT_F, BODY_QDD, QFRC_ACTUATOR, requested_array


def begin_rates(model, state_in, state_out) -> wp.array | None:
    """Keeps the velocities of bodies before a step. Returns the array where they are, as numbers; None: accelerations were not requested.

    Raises:
        NotImplementedError: the state has an array on request that SolverXPBD does not write.
    """
    if not model.state_attributes:
        return None
    for name in (BODY_PARENT_F, QFRC_ACTUATOR):
        if requested_array(state_out, name) is not None:
            raise NotImplementedError(
                f"SolverXPBD does not write State.{name.replace(':', '.')}; use SolverFeatherstone, or request {BODY_QDD!r} only"
            )
    if state_out.body_qdd is None:
        return None
    rate = flat(state_out.body_qdd, model.dtype)
    wp.copy(rate, flat(state_in.body_qd, model.dtype))
    return rate


def end_rates(model, rate: wp.array | None, state_out, dt: float) -> None:
    """Writes the changes of velocities, divided by the length `dt` of the step.

    Args:
        model: the model.
        rate: result of :func:`begin_rates`.
        state_out: the state after the step.
        dt: [s].
    """
    if rate is not None:
        inputs = [flat(state_out.body_qd, model.dtype), model.dtype(1.0 / dt)]
        wp.launch(
            requested_kernels(model.dtype).change,
            rate.size,
            inputs=inputs,
            outputs=[rate],
            device=model.device,
            record_tape=False,
        )
