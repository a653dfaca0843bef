"""Steps with launches of other kernels on the same worlds."""

from __future__ import annotations

from newton_like.programs.beside import Beside
from newton_like.solvers.featherstone.solver import SolverFeatherstone


def step_beside(solver: SolverFeatherstone, before: tuple, after: tuple, state, control, dt: float) -> None:
    """Steps from a state to itself, with launches of other kernels before and after the step.

    Where all worlds are one batch in their order, each thread launches these kernels on the worlds of its shares, which saves the start of
    further threads and reads of memory. Otherwise they are launched alone.

    Args:
        solver: the solver.
        before: launches that the step follows, as :class:`newton_like.programs.beside.Beside` says. They may write `control`.
        after: launches that follow the step. They may read `state`.
        state, control, dt: as in :meth:`SolverFeatherstone.step`.
    """
    solver._check_version()
    beside = Beside(before, after)
    # a step of the user may take several of the solver
    another = getattr(solver.step, "__func__", None) is not SolverFeatherstone.step
    if (
        another
        or len(solver._steppers) > 1
        or solver._requested is not None
        or solver.drives_loops
        or solver.device.is_capturing
    ):
        beside.run(lambda: solver.step(state, state, control, dt=dt))
        return
    solver._beside.append(beside)
    try:
        solver.step(state, state, control, dt=dt)
    finally:
        solver._beside.clear()
