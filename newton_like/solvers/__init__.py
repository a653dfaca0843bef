"""Solvers: what moves a state forward in time."""

from newton_like.solvers.base import SolverBase
from newton_like.solvers.featherstone import SolverFeatherstone
from newton_like.solvers.xpbd import SolverXPBD

__all__ = ["SolverBase", "SolverFeatherstone", "SolverXPBD"]
