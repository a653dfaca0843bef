"""The solver in maximal coordinates: sub-steps of position-based dynamics."""

from newton_like.solvers.xpbd.solver import SolverXPBD

__all__ = ["SolverXPBD"]
