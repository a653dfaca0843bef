"""The old place of the budget of specialised robots, see :mod:`newton_like.solvers.featherstone.specialise`."""

from newton_like.solvers.featherstone.specialise import BUDGET

__all__ = ["BUDGET"]
