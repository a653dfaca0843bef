"""What the bridges to other frameworks share: from arrays by name to a call of a function, and back on Warp's tape."""

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
"""Inputs whose numbers belong to one articulation each, as dofs, coordinates, bodies or rows of articulations."""


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
        # functions of a user's own may mix articulations
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

    def forward(self, arrays, ways) -> list[np.ndarray]:
        """Directional derivatives of the results, exact. Of functions of the dynamics library, where all inputs belong to articulations,
        by one pass backward for each number that an articulation has of a result, for all articulations at once; else by one for each
        number.

        Args:
            arrays: with gradients.
            ways: how they change, of the same shapes.

        Returns:
            The changes of the results, of their shapes.
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
        """Which articulation each number of an array belongs to, flat; None: it may be several. Numbers of none have an index of their
        own."""
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


def _ranks(groups: np.ndarray) -> np.ndarray:
    """For every entry how many of its group come before it."""
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    first = np.searchsorted(sorted_groups, sorted_groups)
    ranks = np.empty(len(groups), dtype=int)
    ranks[order] = np.arange(len(groups)) - first
    return ranks
