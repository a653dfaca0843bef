"""Solvers: what moves a state forward in time."""

from newton_like.solvers.featherstone import SolverFeatherstone

__all__ = ["SolverFeatherstone"]
