"""Programs run by NumPy: their traces, operation by operation, in double precision and without a compiler.

Traces are what specialised kernels are made from; tests of kernels show that they do the same. So laws can be checked here for many
robots at once.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.emit import Emitter
from newton_like.model import batched
from newton_like.trace import Trace

_OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "rcp": np.reciprocal,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "atan2": np.arctan2, "exp": np.exp, "log": np.log,
    "fma": lambda a, b, c: a * b + c, "fnma": lambda a, b, c: c - a * b, "min": lambda a, b: np.where(a < b, a, b),
    "max": lambda a, b: np.where(a > b, a, b), "where_lt": lambda a, b, x, y: np.where(a < b, x, y), "detach": lambda a: a,
}  # fmt: skip


def evaluate(trace: Trace, memory: dict, parameters: np.ndarray) -> dict:
    """What a trace leaves in memory: numbers of all worlds by place.

    Args:
        trace: the trace.
        memory: numbers by place, ``[worlds]`` each; what is missing is zero.
        parameters: ``[worlds, size]``.
    """
    values = []
    for name, *args in trace.ops:
        if name == "load":
            values.append(memory.get(args[0], np.zeros(len(parameters))))
        elif name == "param":
            values.append(parameters[:, args[0]])
        else:
            values.append(_OPS[name](*(values[a] if isinstance(a, int) else a for a in args)))
    ones = np.ones(len(parameters))
    return {p: ones * (values[x.node] if x.constant is None else x.constant) for p, x in trace.memory.items()}


def run_traced(model, program: batched.Program, inputs) -> list[np.ndarray]:
    """The outputs of a program, as flat float64 arrays, for inputs given likewise (None: zeros).

    The model must be float64 for its parameters to be exact.
    """
    assert model.dtype is wp.float64
    inputs = [None if a is None else np.asarray(a, dtype=np.float64).ravel() for a in inputs]
    outputs = [np.zeros(f.length(model)) for f in program.outputs]
    for robot in batched._numbers_of(model).robots:
        work = robot.work(model, program, 1, 1)
        trace = batched.trace_program(program.name, work, lambda i: None)
        memory = {}
        for field, array in zip(program.inputs, inputs, strict=True):
            if array is not None:
                for row, index in _places(model, robot, work, field):
                    memory[row] = array[index]
        result = evaluate(trace, memory, robot.parameters.values)
        for field, array in zip(program.outputs, outputs, strict=True):
            for row, index in _places(model, robot, work, field):
                array[index] = result.get(row, 0.0)
    return outputs


def run_traced_adjoint(model, program: batched.Program, inputs, seeds) -> list[np.ndarray]:
    """The gradients of ``sum(seed . output)``, flat: of all inputs, then of masses, centres of mass and inertias (ten a body).

    Args:
        model: of float64.
        program: what is differentiated.
        inputs: flat arrays, None for zeros.
        seeds: one flat array for each output.
    """
    assert model.dtype is wp.float64
    inputs = [None if a is None else np.asarray(a, dtype=np.float64).ravel() for a in inputs]
    fields = [*program.inputs, batched._INERTIA]
    gradients = [np.zeros(f.length(model)) for f in fields]
    for robot in batched._numbers_of(model).robots:
        work = robot.work(model, program, 1, 1, True)
        emitter = Emitter(work, np.zeros_like(robot.held))
        adjoint = robot.adjoint(model, program, work, emitter, True)
        memory = {}
        given = [*zip(program.inputs, inputs, strict=True)]
        given += [(batched._adjoint(f), np.asarray(a).ravel()) for f, a in zip(program.outputs, seeds, strict=True)]
        for field, array in given:
            if array is not None:
                for row, index in _places(model, robot, work, field):
                    memory[row] = array[index]
        result = evaluate(adjoint, memory, robot.parameters.values)
        for field, array in zip(fields, gradients, strict=True):
            for row, index in _places(model, robot, work, batched._adjoint(field)):
                # what all articulations read gets a share of each
                np.add.at(array, index, result.get(row, 0.0))
    return gradients


def _places(model, robot, work, field):
    """Rows of a field in memory, and where their numbers lie in the flat array, ``[worlds]``."""
    piece, part = robot._piece(model, work, field), None
    part = piece.part.numpy()
    worlds = np.arange(robot.batch.count)
    for p in range(piece.parts):
        for i in range(piece.size):
            yield piece.row + p * piece.size + i, piece.start + part[p] + worlds * piece.stride + i


def run_by_numpy(model, program: batched.Program, arrays, mask=None) -> None:
    """In place of :func:`newton_like.model.batched.run`, so that public functions run without a compiler: on Warp arrays of doubles.

    ``monkeypatch.setattr(common, "run", run_by_numpy)``
    """
    assert mask is None
    count = len(program.inputs)
    results = run_traced(model, program, [None if a is None else a.numpy() for a in arrays[:count]])
    for array, values in zip(arrays[count:], results, strict=True):
        array.assign(values.reshape(array.numpy().shape))
