"""Running programs over the articulations of a model: cached numbers, evaluators, recorded launches, gradients."""

from __future__ import annotations

import copy
import types
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.emit import FLAGS, Emitter, native_program
from newton_like.kernels.batched import INPUTS, OUTPUTS, batch_kernel, batch_structs
from newton_like.kernels.programs import programs
from newton_like.launch import Workspace, flat, lane_width, run_shared, worker_count
from newton_like.model import arguments
from newton_like.model.parameters import gather_parameters
from newton_like.model.templates import find_batches
from newton_like.trace import Trace, known_parameters, known_tree, traced_programs

BUDGET = 60_000
"""Operations of a program beyond which it is not specialised unless that is asked for."""

WORTHWHILE = 256
"""Articulations in a batch from which on a program is specialised unless something else is asked for: compiling takes seconds."""

_RECORDED = 64
_WORK_A_THREAD = 500_000
"""Vector operations for which it is worth to wake a thread: some 100 microseconds."""
_STAGING = 8
"""Vector operations that bringing a number into memory, or taking it out, is worth."""
_PIECES_A_THREAD = 4
"""More pieces than threads, so that a thread which is held up does not hold up the others."""


@dataclass(frozen=True)
class Field:
    """What an array holds for every articulation.

    Attributes:
        row: where it lies in a worker's memory, a name of ``Layout``.
        kind: ``"coords"`` and ``"dofs"``: one number for each; ``"bodies"``: `size` numbers a body; ``"articulations"``: `size`
            numbers an articulation, the same number for all templates; ``"all"``: `size` numbers that all articulations read.
        size: see above: a number, or a function of the model that gives it.
    """

    row: str
    kind: str
    size: int | Callable = 1

    def length(self, model) -> int:
        """Numbers in the whole array."""
        size = self.size(model) if callable(self.size) else self.size
        counts = {
            "coords": model.joint_coord_count, "dofs": model.joint_dof_count, "bodies": model.body_count,
            "articulations": model.articulation_count, "all": 1,
        }  # fmt: skip
        return counts[self.kind] * size

    def width(self, model, template) -> int:
        """Numbers of one articulation."""
        size = self.size(model) if callable(self.size) else self.size
        counts = {"coords": template.coords, "dofs": template.dofs, "bodies": template.bodies}
        return counts.get(self.kind, 1) * size


@dataclass(frozen=True)
class Program:
    """What runs over every articulation.

    Attributes:
        name: the function of the programs' namespace, ``(b, t, T, P, L, mem)``.
        inputs: arrays that it reads.
        outputs: arrays that it writes.
        rows: ``rows(model, template)`` gives the sizes of further rows of memory.
    """

    name: str
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    rows: Callable | None = None


def tree_rows(template) -> dict[str, int]:
    """Sizes of the rows of memory in which the programs keep what they find on the way."""
    n, dofs = template.bodies, template.dofs
    return dict(
        q=template.coords, v=dofs, origin=3, quat=4 * (n + 1), rot=9 * (n + 1), pos=3 * (n + 1), com=3 * (n + 1),
        subspace=6 * dofs, twist=6 * (n + 1), drift=6 * (n + 1), load=6 * n, composite=10 * n,
        h=int((template.depth + 1).sum()),
    )  # fmt: skip


@cache
def _namespace(width: int, real) -> types.SimpleNamespace:
    return batch_structs(programs(width, real))


@cache
def general_kernel(name: str, width: int, real, backward: bool = False):
    """The kernel that runs a program for any robot."""
    m = _namespace(width, real)
    return batch_kernel(m, getattr(m, name), backward)


class _Robot:
    """A batch of a model with its numbers.

    Attributes:
        held: which parameters are constants of specialised code. What was edited once is not held any more, so that code is
            compiled anew at most once for every group of parameters.
    """

    def __init__(self, model, batch):
        self.batch = batch
        self.held = None
        self.bases: dict = {}
        self.works: dict = {}
        self.kernels: dict = {}
        self.zeros: dict = {}
        self.read(model)

    def read(self, model) -> None:
        """Gathers the parameters anew."""
        self.parameters = parameters = gather_parameters(model, self.batch)
        real = np.float32 if model.dtype is wp.float32 else np.float64
        values = parameters.values.astype(real)
        same, first = (values == values[:1]).all(axis=0), values[0]
        if self.held is None:
            self.held = same
        else:
            changed = self.held & ~(same & (first == self.constants))
            if changed.any():
                edges = sorted({*parameters.at.values(), values.shape[1]})
                for start, end in pairwise(edges):
                    if changed[start:end].any():
                        self.held[start:end] = False
                self.kernels.clear()
        self.constants = first
        # a tape may still read the old numbers
        for key in [key for key in self.bases if key[2]]:
            del self.bases[key]
        for key in [key for key in self.works if key[3]]:
            del self.works[key]
        for base in self.bases.values():
            base.set_parameters(parameters)

    def base(self, model, width: int, threads: int, backward: bool) -> Workspace:
        """Tree and parameters for one lane width."""
        key = (width, threads, backward)
        if key not in self.bases:
            template = self.batch.template
            dense = template.span == template.bodies
            tables = SimpleNamespace(
                numbers={"links": model.max_joints_per_articulation, "columns": model.max_dofs_per_articulation},
                # rows of bodies lie in memory as in the arrays, or without gaps
                arrays={} if dense else {"body_slot": np.arange(template.bodies)},
            )
            work = Workspace(
                _namespace(width, model.dtype), template, self.batch.count, self.parameters, tables, {"size": 1},
                model.device, threads,
            )  # fmt: skip
            if backward:
                # the tape looks for gradients in every array of a struct
                for field in work.m.Tree.vars:
                    if getattr(work.T, field) is None:
                        setattr(work.T, field, wp.zeros(1, dtype=wp.int32, device=model.device))
            self.bases[key] = work
        return self.bases[key]

    def work(self, model, program: Program, width: int, threads: int, backward: bool = False) -> Workspace:
        """The same with memory for a program."""
        key = (program.name, width, threads, backward)
        if key not in self.works:
            base = self.base(model, width, threads, backward)
            work = copy.copy(base)
            work.base = base
            work.layout = layout = self._layout(model, program)
            work.L = work.m.Layout()
            for name, at in layout.items():
                setattr(work.L, name, at)
            shape = (1, 1) if backward else (layout["size"], work.rows)
            work.memory = [wp.zeros(shape, dtype=work.m.lane, device=model.device) for _ in work.shares]
            self.works[key] = work
        return self.works[key]

    def _layout(self, model, program: Program) -> dict[str, int]:
        template = self.batch.template
        sizes = tree_rows(template)
        if program.rows is not None:
            sizes.update(program.rows(model, template))
        sizes.update({f.row: f.width(model, template) for f in (*program.inputs, *program.outputs)})
        layout, at = {}, 0
        for name, size in sizes.items():
            layout[name] = at
            at += size
        layout["size"] = at + 1
        return layout

    def kernel(self, model, program: Program, work: Workspace, evaluator: str):
        """The kernel of a program, and about how many vector operations it does for a block."""
        moved = sum(f.width(model, self.batch.template) for f in (*program.inputs, *program.outputs))
        general = evaluator == "general" or not self.batch.template.bodies
        if evaluator == "auto":
            # the two give the same bits where lanes are wider than one
            general = work.m.width == 1 or self.batch.count < WORTHWHILE
        if not general:
            key = (program.name, work.m.width)
            if key not in self.kernels:
                self.kernels[key] = self._specialised(program, work, evaluator)
            kernel, operations = self.kernels[key]
            if kernel is not None:
                return kernel, operations + _STAGING * moved
        return general_kernel(program.name, work.m.width, model.dtype), 4 * _STAGING * moved

    def _specialised(self, program: Program, work: Workspace, evaluator: str):
        emitter = Emitter(work, self.held)
        trace = trace_program(program.name, work, emitter.parameter)
        if evaluator == "auto" and len(trace) > BUDGET:
            return None, 0
        rows = {f.row for f in program.outputs}
        stores = emitter.stores(trace, lambda place: emitter.name(place) in rows)
        code = emitter.head() + emitter.statements(trace, stores)
        kernel = batch_kernel(work.m, native_program(code, work.m), options={"cpu_compiler_flags": FLAGS})
        return kernel, len(trace)

    def pieces(self, model, work: Workspace, fields, arrays) -> tuple[list, list]:
        """The structs that say where the fields lie in their arrays, and the arrays as rows of numbers."""
        pieces, rows = [], []
        for field, array in zip(fields, arrays, strict=True):
            piece = self._piece(model, work, field)
            if array is None:
                array = self._zeros(model, field.width(model, self.batch.template))
                piece.start = piece.stride = 0
                piece.parts, piece.size, piece.part = 1, array.size, self._ints(model, [0])
            row = flat(array, model.dtype)
            if row is not array:
                # the view does not own its memory, and a tape may outlive the caller's array
                row._owner = array
            pieces.append(piece)
            rows.append(row)
        return pieces, rows

    def _piece(self, model, work: Workspace, field: Field):
        batch, template = self.batch, self.batch.template
        size = field.size(model) if callable(field.size) else field.size
        piece = work.m.Piece()
        piece.row, piece.parts, piece.size = work.layout[field.row], 1, field.width(model, template)
        starts = {
            "coords": batch.q_start, "dofs": batch.qd_start, "bodies": size * batch.body_start,
            "articulations": size * batch.articulations, "all": np.zeros(batch.count, dtype=int),
        }[field.kind]  # fmt: skip
        piece.start, piece.stride = int(starts[0]), batch.stride(starts)
        part = [0]
        if field.kind == "bodies" and template.span != template.bodies:
            part = size * template.body_slot
            piece.parts, piece.size = template.bodies, size
        piece.part = self._ints(model, part)
        return piece

    def _ints(self, model, values) -> wp.array:
        return wp.array(np.asarray(values, dtype=np.int32), dtype=wp.int32, device=model.device)

    def _zeros(self, model, size: int) -> wp.array:
        if size not in self.zeros:
            self.zeros[size] = wp.zeros(size, dtype=model.dtype, device=model.device)
        return self.zeros[size]

    def selected(self, work: Workspace, masked: bool):
        """The batch as a struct."""
        B = work.m.Batch()
        B.count, B.masked = self.batch.count, int(masked)
        B.start, B.stride = int(self.batch.articulations[0]), self.batch.stride(self.batch.articulations)
        return B


def trace_program(name: str, work: Workspace, parameter) -> Trace:
    """A program traced for the robot of a workspace."""
    trace = Trace()
    m = traced_programs(trace, parameter, np.float32 if work.m.real is wp.float32 else np.float64)
    getattr(m, name)("b", "t", known_tree(work), known_parameters(work), SimpleNamespace(**work.layout), None)
    return trace


class _Numbers:
    """The batches of a model as of one version of it, with what was made from them."""

    def __init__(self, model):
        self.robots = [_Robot(model, batch) for batch in find_batches(model)]
        # one buffer for all masks that are not taken as they are, so that recorded launches are used again
        self.mask = wp.zeros(max(model.articulation_count, 1), dtype=wp.bool, device=model.device)
        self.nothing = wp.zeros(0, dtype=wp.bool, device=model.device)
        self.recorded: OrderedDict = OrderedDict()
        self._note(model)

    def _note(self, model) -> None:
        self.version = model.version
        self.width, self.threads = lane_width(model.device, model.dtype), worker_count()

    def read(self, model) -> None:
        """Gathers the parameters anew."""
        self._note(model)
        self.recorded.clear()
        for robot in self.robots:
            robot.read(model)


_numbers: WeakKeyDictionary = WeakKeyDictionary()


def _numbers_of(model) -> _Numbers:
    numbers = _numbers.get(model)
    if numbers is None:
        numbers = _numbers[model] = _Numbers(model)
    elif numbers.version != model.version:
        numbers.read(model)
    return numbers


def selection(model, mask=None, indices=None) -> wp.array | None:
    """See :func:`newton_like.model.arguments.selection`."""
    if mask is None and indices is None:
        return None
    return arguments.selection(model, _numbers_of(model).mask, mask, indices)


def run(model, program: Program, arrays, mask: wp.array | None = None) -> None:
    """Runs a program over the articulations of a model, on Warp's tape where an array has gradients.

    Args:
        model: the model.
        program: what to run.
        arrays: its inputs, None for zeros, and its outputs; checked and contiguous, all of the model's scalar type.
        mask: bools of the selected articulations on the model's device, or None for all.
    """
    numbers = _numbers_of(model)
    if any(a is not None and a.requires_grad for a in arrays):
        _run_on_tape(model, numbers, program, arrays, mask)
        return
    key = (
        program.name, model.evaluator, None if mask is None else mask.ptr,
        *[None if a is None else a.ptr for a in arrays],
    )  # fmt: skip
    commands = numbers.recorded.get(key)
    if commands is None:
        commands = numbers.recorded[key] = [
            _record(model, numbers, robot, program, arrays, mask) for robot in numbers.robots
        ]
        if len(numbers.recorded) > _RECORDED:
            numbers.recorded.popitem(last=False)
    for together in commands:
        run_shared(together)


def _inputs(model, numbers, robot, program, work, arrays, mask):
    """What the kernel takes before and after its memory."""
    count = len(program.inputs)
    pieces, rows = robot.pieces(model, work, (*program.inputs, *program.outputs), arrays)
    nothing, none = work.m.Piece(), robot._zeros(model, 1)
    nothing.part = robot._ints(model, [0])

    def padded(items, filler, length):
        return [*items, *[filler] * (length - len(items))]

    before = [robot.selected(work, mask is not None), work.T, work.P, work.L, numbers.nothing if mask is None else mask]
    after = padded(pieces[:count], nothing, INPUTS) + padded(rows[:count], none, INPUTS)
    after += padded(pieces[count:], nothing, OUTPUTS) + padded(rows[count:], none, OUTPUTS)
    return before, after


def _record(model, numbers, robot, program, arrays, mask):
    work = robot.work(model, program, numbers.width, numbers.threads)
    kernel, operations = robot.kernel(model, program, work, model.evaluator)
    threads, pieces = _shares(work, operations)
    before, after = _inputs(model, numbers, robot, program, work, arrays, mask)
    return [
        [
            wp.launch(
                kernel,
                dim=n if work.device.is_cuda else 1,
                inputs=[first, 1 if work.device.is_cuda else n, work.rows, *before, memory, *after],
                device=work.device,
                record_cmd=True,
            )
            for first, n in pieces
        ]
        for memory in work.memory[:threads]
    ]


def _shares(work: Workspace, operations: int) -> tuple[int, list[tuple[int, int]]]:
    """Number of threads, and first block and number of blocks of every launch.

    Args:
        work: what is launched.
        operations: of a block.
    """
    threads = min(work.workers, work.blocks, max(1, work.blocks * operations // _WORK_A_THREAD))
    if threads == 1:
        return 1, [(0, work.blocks)]
    count = min(_PIECES_A_THREAD * threads, work.blocks)
    cuts = np.linspace(0, work.blocks, count + 1).astype(int)
    return threads, [(int(a), int(b - a)) for a, b in pairwise(cuts)]


def _run_on_tape(model, numbers, program, arrays, mask) -> None:
    """At width 1, with memory of its own for every articulation and every call: the tape needs all values once more."""
    kernel = general_kernel(program.name, 1, model.dtype, True)
    for robot in numbers.robots:
        work = robot.work(model, program, 1, 1, True)
        chosen = None if mask is None else wp.clone(mask)
        before, after = _inputs(model, numbers, robot, program, work, arrays, chosen)
        memory = wp.zeros((work.layout["size"], work.count), dtype=model.dtype, device=model.device, requires_grad=True)
        wp.launch(kernel, dim=work.count, inputs=[0, 1, work.count, *before, memory, *after], device=model.device)
