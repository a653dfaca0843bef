"""Shared code of the bridges to other frameworks: calls a function with arrays by name, and computes gradients with Warp's tape."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import warp as wp

from newton_like.dynamics.inertia import inertial_parameters, set_inertial_parameters
from newton_like.dynamics.names import names_of
from newton_like.model.columns import WITH_GRADIENT

COORDINATES = ("joint_q", "joint_qd")
PARAMETERS = "inertial_parameters"
_BY_ARTICULATION = (
    *COORDINATES, PARAMETERS, "joint_forces", "joint_acceleration", "link_forces", "velocity", "q0", "phi", "rate",
)  # fmt: skip
"""Inputs in which each number belongs to one articulation: by dof, coordinate, body or row of an articulation."""


class Bridge:
    """A function ``function(model, state, **arguments)`` as a function of arrays in a given order.

    Args:
        model: the :class:`Model`.
        function: the function, which returns a Warp array or several.
        inputs: meaning of the arrays: ``"joint_q"``, ``"joint_qd"``, ``"inertial_parameters"`` or names of arguments.
        options: further arguments.

    Raises:
        TypeError: `function` cannot be called.
        KeyError: `function` lacks an argument.
        ValueError: a repeated input, or no inputs; inertial parameters of a model without gradients.
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
        # results of user functions may depend on several articulations
        self._apart = getattr(function, "__module__", "").startswith("newton_like.dynamics.")

    def call(self, arrays: Sequence[wp.array]) -> list[wp.array]:
        """The results of the function."""
        given = dict(zip(self.names, arrays, strict=True))
        if PARAMETERS in given:
            set_inertial_parameters(self.model, given.pop(PARAMETERS))
        state = SimpleNamespace(**{name: given.pop(name, getattr(self.model, name)) for name in COORDINATES})
        results = self.function(self.model, state, **given, **self.options)
        return [results] if isinstance(results, wp.array) else [r for r in results if r is not None]

    def record(self, arrays: Sequence[wp.array]) -> tuple[wp.Tape, list[wp.array]]:
        """The tape of the call, for gradients with respect to the arrays, and the results."""
        with wp.Tape() as tape:
            results = self.call(arrays)
        return tape, results

    def backward(self, tape: wp.Tape, arrays, results, seeds) -> None:
        """Computes the gradients of the arrays, in place.

        Args:
            tape, arrays, results: arguments and results of `record`.
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

    def forward(self, arrays, ways) -> list[np.ndarray]:
        """Exact directional derivatives of the results, by backward passes. For functions of the dynamics library whose inputs belong to
        articulations, one pass gives one number of the results of every articulation; for other functions, one number of the results.

        Args:
            arrays: input arrays with gradients.
            ways: tangents of the inputs, with their shapes.

        Returns:
            Tangents of the results, with their shapes.
        """
        tape, results = self.record(arrays)
        groups = [self._articulation_of(a.shape, name) for a, name in zip(arrays, self.names, strict=True)]
        groups += [self._articulation_of(r.shape, None) for r in results]
        if not self._apart or any(group is None for group in groups):
            groups = [np.zeros(a.size, dtype=int) for a in (*arrays, *results)]
        sources, changes = groups[: len(arrays)], []
        for k, (result, of) in enumerate(zip(results, groups[len(arrays) :], strict=True)):
            change, rank = np.zeros(result.size), _ranks(of)
            for i in range(rank.max(initial=-1) + 1 if result.requires_grad else 0):
                chosen = rank == i
                seed = wp.array(chosen.reshape(result.shape), dtype=result.dtype, device=result.device)
                self.backward(tape, arrays, results, [seed if j == k else None for j in range(len(results))])
                total = np.zeros(self.model.articulation_count + 1)
                for array, way, source in zip(arrays, ways, sources, strict=True):
                    np.add.at(total, source, (array.grad.numpy() * way.numpy()).ravel())
                change[chosen] = total[of[chosen]]
            changes.append(change.reshape(result.shape))
        return changes

    def _articulation_of(self, shape: tuple[int, ...], name: str | None) -> np.ndarray | None:
        """The articulation of each number of an array, flat; None if a number may belong to several. Numbers outside of articulations get
        the index `articulation_count`."""
        model, names = self.model, names_of(self.model)
        count = model.articulation_count
        if name == PARAMETERS or (name == "link_forces" and len(shape) == 2):
            return np.repeat(np.where(names.articulation < 0, count, names.articulation), math.prod(shape[1:]))
        if name is not None and name not in _BY_ARTICULATION:
            return None
        if name not in COORDINATES and len(shape) > 1 and shape[0] == count:
            return np.repeat(np.arange(count), math.prod(shape[1:]))
        for flat in COORDINATES:
            starts = getattr(model, f"{flat}_start").numpy()
            if shape == (starts[-1],):
                joints = model.joint_articulation.numpy()
                return np.repeat(np.where(joints < 0, count, joints), np.diff(starts))
        return np.arange(count) if shape == (count,) else None

    def check(self, count: int) -> None:
        """Checks the number of arrays. Raises TypeError for another number than that of inputs."""
        if count != len(self.names):
            raise TypeError(f"{count} arrays for {len(self.names)} inputs; give {', '.join(self.names)}")

    def shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an input of the function: flat for coordinates and velocities.

        Raises:
            ValueError: another number of coordinates or velocities.
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
        """Results for inputs of some shapes, to find their shapes and types: for the model's initial state, and zeros for other inputs."""
        model, arrays = self.model, []
        for name, shape in zip(self.names, shapes, strict=True):
            if name in COORDINATES:
                arrays.append(getattr(model, name))
            elif name == PARAMETERS:
                arrays.append(inertial_parameters(model))
            else:
                arrays.append(wp.zeros(shape, dtype=model.dtype, device=model.device))
        return self.call(arrays)


def _ranks(groups: np.ndarray) -> np.ndarray:
    """For every entry, the number of earlier entries of its group."""
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    first = np.searchsorted(sorted_groups, sorted_groups)
    ranks = np.empty(len(groups), dtype=int)
    ranks[order] = np.arange(len(groups)) - first
    return ranks
