"""Solver in generalized coordinates."""

from newton_like.solvers.featherstone.solver import SolverFeatherstone

__all__ = ["SolverFeatherstone"]
