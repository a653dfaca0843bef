"""Settings of a solver as attributes: those that the next step reads, and those that stay as they are."""

from __future__ import annotations

from collections.abc import Callable

from newton_like.coercion import as_number


def positive(value, name: str) -> float:
    """A finite number above zero, else TypeError or ValueError."""
    number = as_number(value, name)
    if not number > 0.0:
        raise ValueError(f"{name} {number:g} must be positive")
    return number


def rate(value, name: str) -> float:
    """A finite rate of at least zero, else TypeError or ValueError."""
    number = as_number(value, name)
    if number < 0.0:
        raise ValueError(f"{name} {number:g} 1/s is negative; give a rate of at least 0")
    return number


class Setting:
    """An attribute that may be written at any time, and that the next step takes over.

    Args:
        check: ``check(value, name)`` returns what is kept, or raises TypeError or ValueError.
    """

    def __init__(self, check: Callable):
        self._check = check

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, solver, owner=None):
        return self if solver is None else vars(solver)[self.name]

    def __set__(self, solver, value) -> None:
        vars(solver)[self.name] = self._check(value, self.name)
        solver._settings_changed()


class Fixed:
    """An attribute that is written once, when the solver is made."""

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, solver, owner=None):
        return self if solver is None else vars(solver)[self.name]

    def __set__(self, solver, value) -> None:
        if self.name in vars(solver):
            raise AttributeError(
                f"{type(solver).__name__}.{self.name} cannot be changed; make another solver with {self.name}={value!r}",
                name=self.name,
                obj=solver,
            )
        vars(solver)[self.name] = value
