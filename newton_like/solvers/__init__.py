"""Solvers: what moves a state forward in time."""

from newton_like.solvers.base import SolverBase
from newton_like.solvers.choice import SolverChoice, choose_solver
from newton_like.solvers.featherstone import SolverFeatherstone
from newton_like.solvers.xpbd import SolverXPBD

__all__ = ["SolverBase", "SolverChoice", "SolverFeatherstone", "SolverXPBD", "choose_solver"]
