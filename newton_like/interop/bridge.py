"""What the bridges to other frameworks share: from arrays by name to a call of a function, and back on Warp's tape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import warp as wp

from newton_like.dynamics.inertia import inertial_parameters, set_inertial_parameters
from newton_like.model.columns import WITH_GRADIENT

COORDINATES = ("joint_q", "joint_qd")
PARAMETERS = "inertial_parameters"


class Bridge:
    """A function ``function(model, state, **arguments)`` as one of arrays in a given order.

    Args:
        model: the :class:`Model`.
        function: gives a Warp array or several.
        inputs: meaning of the arrays: ``"joint_q"``, ``"joint_qd"``, ``"inertial_parameters"`` or names of arguments.
        options: further arguments.

    Raises:
        TypeError: `function` cannot be called.
        KeyError: it has no such argument.
        ValueError: an input twice, or none; inertial parameters of a model without gradients.
    """

    def __init__(self, model, function: Callable, inputs: Sequence[str], options: dict):
        if not callable(function):
            raise TypeError(f"function must be callable as function(model, state, ...), not {type(function).__name__}")
        names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"inputs {names} must be different names, at least one")
        parameters = inspect.signature(function).parameters.values()
        if not any(p.kind == p.VAR_KEYWORD for p in parameters):
            known = [p.name for p in parameters][2:]
            for name in [n for n in (*names, *options) if n not in (*COORDINATES, PARAMETERS, *known)]:
                label = getattr(function, "__name__", "function")
                raise KeyError(
                    f"{label} has no argument {name!r}; use one of joint_q, joint_qd, {PARAMETERS}, {', '.join(known)}"
                )
        if PARAMETERS in names and not model.requires_grad:
            raise ValueError(f"{PARAMETERS} need a model with gradients: finalize(requires_grad=True)")
        self.model, self.function, self.names, self.options = model, function, names, options

    def call(self, arrays: Sequence[wp.array]) -> list[wp.array]:
        """The results of the function."""
        given = dict(zip(self.names, arrays, strict=True))
        if PARAMETERS in given:
            set_inertial_parameters(self.model, given.pop(PARAMETERS))
        state = SimpleNamespace(**{name: given.pop(name, getattr(self.model, name)) for name in COORDINATES})
        results = self.function(self.model, state, **given, **self.options)
        return [results] if isinstance(results, wp.array) else [r for r in results if r is not None]

    def record(self, arrays: Sequence[wp.array]) -> tuple[wp.Tape, list[wp.array]]:
        """The results, and the tape that leads back from them to the arrays that have gradients."""
        with wp.Tape() as tape:
            results = self.call(arrays)
        return tape, results

    def backward(self, tape: wp.Tape, arrays, results, seeds) -> None:
        """Leaves the gradients of the arrays in them.

        Args:
            tape, arrays, results: of `record`.
            seeds: gradients of the results, None for zeros.
        """
        tape.zero()
        for array in (*arrays, *(getattr(self.model, name) for name in WITH_GRADIENT)):
            if array.requires_grad:
                array.grad.zero_()
        for result, seed in zip(results, seeds, strict=True):
            if seed is not None and result.requires_grad:
                result.grad.assign(seed)
        tape.backward()

    def check(self, count: int) -> None:
        """Whether there is an array for every input. Raises TypeError: there is not."""
        if count != len(self.names):
            raise TypeError(f"{count} arrays for {len(self.names)} inputs; give {', '.join(self.names)}")

    def shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape in which the function takes an input: coordinates and velocities of all joints lie in one row.

        Raises:
            ValueError: there are not as many.
        """
        if name not in COORDINATES:
            return tuple(shape)
        size, wanted = 1, getattr(self.model, name).shape
        for n in shape:
            size *= n
        if (size,) != wanted:
            raise ValueError(f"{name} has shape {tuple(shape)}; this model needs {wanted[0]} numbers in any shape")
        return wanted

    def results_like(self, shapes: Sequence[tuple[int, ...]]) -> list[wp.array]:
        """Results for inputs of some shapes, to see what they are: in the model's own pose, and zeros for the rest."""
        model, arrays = self.model, []
        for name, shape in zip(self.names, shapes, strict=True):
            if name in COORDINATES:
                arrays.append(getattr(model, name))
            elif name == PARAMETERS:
                arrays.append(inertial_parameters(model))
            else:
                arrays.append(wp.zeros(shape, dtype=model.dtype, device=model.device))
        return self.call(arrays)
