"""Evaluates programs with NumPy: their traces, operation by operation, in double precision and without a compiler.

Specialised kernels are generated from traces, and tests of kernels check that both agree. Therefore tests can check laws with traces,
for many robots at once.
"""

from __future__ import annotations

from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.compiler.trace import Trace
from newton_like.programs.pieces import piece_of
from newton_like.programs.program import Program
from newton_like.programs.robot import BODY, CONSTANTS, INERTIA, PARAMETERS, adjoint_field
from newton_like.programs.run import _numbers_of
from newton_like.programs.tracing import trace_program

_OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "rcp": np.reciprocal,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "atan2": np.arctan2, "exp": np.exp, "log": np.log,
    "fma": lambda a, b, c: a * b + c, "fnma": lambda a, b, c: c - a * b, "min": lambda a, b: np.where(a < b, a, b),
    "max": lambda a, b: np.where(a > b, a, b), "where_lt": lambda a, b, x, y: np.where(a < b, x, y), "detach": lambda a: a,
}  # fmt: skip


def evaluate(trace: Trace, memory: dict, parameters: np.ndarray) -> dict:
    """The memory after a trace: numbers of all worlds by index.

    Args:
        trace: the trace.
        memory: initial numbers by index, ``[worlds]`` each; missing ones are zero.
        parameters: ``[worlds, size]``.
    """
    values = []
    for name, *args in trace.ops:
        if name == "load":
            values.append(memory.get(args[0], np.zeros(len(parameters))))
        elif name == "param":
            values.append(parameters[:, args[0]])
        else:
            values.append(_OPS[name](*[values[a] if isinstance(a, int) else a for a in args]))
    ones = np.ones(len(parameters))
    return {p: ones * (values[x.node] if x.constant is None else x.constant) for p, x in trace.memory.items()}


def run_traced(model, program: Program, inputs, mask=None) -> list[np.ndarray]:
    """The outputs of a program, as flat float64 arrays, for inputs given likewise (None: zeros); zeros where `mask` is false.

    The model must be float64 for its parameters to be exact.
    """
    assert model.dtype is wp.float64
    outputs = [np.zeros(f.length(model)) for f in program.outputs]
    for robot, work, trace in traces(model, program):
        memory = _loaded(model, robot, work, program.inputs, inputs)
        result = evaluate(trace, memory, work.parameters.rows())
        for field, array in zip(program.outputs, outputs, strict=True):
            for row, index in _places(model, robot, work, field):
                array[index] = _selected(robot, mask) * result.get(row, 0.0)
    return outputs


def run_traced_adjoint(model, program: Program, inputs, seeds, mask=None) -> list[np.ndarray]:
    """The gradients of ``sum(seed . output)``, flat: of all inputs, then of masses, centres of mass and inertias (ten a body), then of
    gravity (three an articulation).

    Args:
        model: a float64 model.
        program: the program.
        inputs: arrays, None for zeros.
        seeds: one array for each output.
        mask: bools of the selected articulations, or None.
    """
    assert model.dtype is wp.float64
    fields = [*program.inputs, *CONSTANTS]
    given = [*program.inputs, *map(adjoint_field, program.outputs)]
    gradients = [np.zeros(f.length(model)) for f in fields]
    for robot, work, trace in traces(model, program, adjoint=True):
        result = evaluate(trace, _loaded(model, robot, work, given, [*inputs, *seeds]), work.parameters.rows())
        for field, array in zip(fields, gradients, strict=True):
            for row, index in _places(model, robot, work, adjoint_field(field)):
                # inputs that all articulations read get the sum over articulations
                np.add.at(array, index, _selected(robot, mask) * result.get(row, 0.0))
    bodies = np.zeros((model.body_count, BODY))
    for field, array in zip(INERTIA, gradients[len(program.inputs) : -1], strict=True):
        for i, shares in PARAMETERS[field.row].items():
            # the entries of a symmetric matrix share a parameter
            bodies[:, i] = array.reshape(-1, field.size)[:, [j for j, _ in shares]].sum(axis=1)
    return [*gradients[: len(program.inputs)], bodies.ravel(), gradients[-1]]


CENTRAL = ((-2, -1, 1, 2), (1, -8, 8, -1))
FORWARD = ((0, 1, 2, 3), (-22, 36, -18, 4))
BACKWARD = ((0, -1, -2, -3), (22, -36, 18, -4))
"""Formulas of differences, of fourth and third order: multiples of the step, and weights times twelve."""


def differences(model, program: Program, inputs, seeds, ways, mask=None, step=3e-5, formula=CENTRAL) -> np.ndarray:
    """The products of the results of :func:`run_traced_adjoint` with `ways`, one number for each, by differences.

    Args:
        model, program, inputs, seeds, mask: as for :func:`run_traced_adjoint`.
        ways: directions for every input, for masses, centres of mass and inertias, and for gravity.
        step: step of the differences.
        formula: CENTRAL, FORWARD or BACKWARD.
    """
    assert model.dtype is wp.float64
    fields = [*program.inputs, None, None]
    offsets, weights = formula
    total = np.zeros((len(fields), len(offsets)))
    for robot, work, trace in traces(model, program):
        memory = {row: x[None] for row, x in _loaded(model, robot, work, program.inputs, inputs).items()}
        parameters = np.tile(work.parameters.rows(), (total.size, 1, 1))
        moved = step * np.array(offsets)[:, None]
        for k, (field, way) in enumerate(zip(fields, ways, strict=True)):
            mine = slice(k * len(offsets), (k + 1) * len(offsets))
            for row, index in _places(model, robot, work, field) if k < len(inputs) else ():
                base = np.broadcast_to(memory.get(row, 0.0), (total.size, robot.batch.count))
                memory[row] = base.copy()
                memory[row][mine] += moved * way[index]
        *_, inertias, gravity = ways
        mine = slice(len(inputs) * len(offsets), (len(inputs) + 1) * len(offsets))
        for k, slot in enumerate(work.arrays["body_slot"]):
            at = work.parameters.at["body"] + BODY * k
            bodies = robot.batch.body_start + slot
            parameters[mine, :, at : at + BODY] += moved[..., None] * inertias.reshape(-1, BODY)[bodies]
        at = work.parameters.at["gravity"]
        parameters[mine.stop :, :, at : at + 3] += moved[..., None] * gravity.reshape(-1, 3)[robot.batch.articulations]
        memory = {row: np.broadcast_to(x, parameters.shape[:2]).ravel() for row, x in memory.items()}
        result = evaluate(trace, memory, parameters.reshape(-1, parameters.shape[2]))
        for field, seed in zip(program.outputs, seeds, strict=True):
            for row, index in _places(model, robot, work, field):
                if row in result:
                    values = result[row].reshape(*total.shape, -1)
                    total += (values * (_selected(robot, mask) * seed[index])).sum(axis=2)
    return total @ np.array(weights) / (12.0 * step)


def _selected(robot, mask):
    return 1.0 if mask is None else np.asarray(mask)[robot.batch.articulations]


_traces: WeakKeyDictionary = WeakKeyDictionary()


def traces(model, program: Program, adjoint: bool = False):
    """The batches of a model, each with its workspace and the trace of a program or of its adjoint."""
    for robot in _numbers_of(model).robots:
        work, known = robot.work(model, program, 1, 1, adjoint), _traces.setdefault(robot, {})
        key = (program.key, program.adjoint, adjoint)
        if key not in known:
            if adjoint:
                known[key] = robot.adjoint(model, program, work, SimpleNamespace(parameter=lambda i: None), CONSTANTS)
            else:
                known[key] = trace_program(program.name, work, lambda i: None)
        yield robot, work, known[key]


def _loaded(model, robot, work, fields, arrays) -> dict:
    """Memory with the numbers of some fields."""
    memory = {}
    for field, array in zip(fields, arrays, strict=True):
        if array is not None:
            array = np.asarray(array, dtype=np.float64).ravel()
            for row, index in _places(model, robot, work, field):
                memory[row] = array[index]
    return memory


def _places(model, robot, work, field):
    """Memory rows of a field, and the indices of their numbers in the flat array, ``[worlds]``."""
    piece, part = piece_of(model, work, field), None
    part = piece.part.numpy()
    worlds = np.arange(robot.batch.count)
    for p in range(piece.parts):
        for i in range(piece.size):
            yield piece.row + p * piece.size + i, piece.start + part[p] + worlds * piece.stride + i


def run_by_numpy(model, program: Program, arrays, mask=None) -> None:
    """A replacement of :func:`newton_like.programs.run.run` that runs public functions without a compiler, on float64 Warp arrays.

    ``monkeypatch.setattr(common, "run", run_by_numpy)``
    """
    count, kept = len(program.inputs), 0.0
    mask = None if mask is None else mask.numpy()
    results = run_traced(model, program, [None if a is None else a.numpy() for a in arrays[:count]], mask)
    for field, array, values in zip(program.outputs, arrays[count:], results, strict=True):
        if mask is not None:
            assert field.kind == "articulations"
            kept = np.where(mask[:, None], 0.0, array.numpy().reshape(len(mask), -1)).ravel()
        array.assign((values + kept).reshape(array.numpy().shape))
