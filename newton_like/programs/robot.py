"""Robots of a model as programs see them: numbers, memory, and the kernels of programs and of their adjoints."""

from __future__ import annotations

import types
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import warp as wp

from newton_like.compiler.adjoint import adjoint_trace
from newton_like.compiler.cpp import Emitter, native_program
from newton_like.compiler.listing import Code, encode
from newton_like.compiler.trace import Number, Trace
from newton_like.kernels.batched import batch_kernel
from newton_like.kernels.layout import LIBRARY_ROWS, ROWS
from newton_like.kernels.pieces import piece_moves
from newton_like.kernels.programs import programs
from newton_like.kernels.tree import BODY, CENTRE_OF_MASS, MASS
from newton_like.kernels.tree import INERTIA as INERTIA_AT
from newton_like.programs.parameters import Parameters
from newton_like.programs.program import Field, Program
from newton_like.programs.structs import copied
from newton_like.programs.tracing import trace_program
from newton_like.programs.workspace import Workspace, row_sizes

BUDGET = 25_000
"""Operations of a program, or of its adjoint, beyond which it is not compiled for a robot unless that is asked for: about 9 seconds."""

WORTHWHILE = 256
"""Articulations in a batch from which on a program is specialised unless something else is asked for: compiling takes seconds."""

_INTERPRETING = 4
"""About how many vector operations it takes to carry out one that is listed."""
_STAGING = 8
"""About how many vector operations it takes to bring a number into memory, or to take it out."""


@cache
def namespace(width: int, real, rows: tuple[str, ...] = LIBRARY_ROWS) -> types.SimpleNamespace:
    """The programs and the structs of batches, for one lane width and scalar type."""
    return piece_moves(programs(width, real, rows))


@cache
def general_kernel(name: str, width: int, real, result: str = "take", inputs: str = "bring"):
    """The kernel that runs a program for any robot; `result`, `inputs`: see :func:`newton_like.kernels.batched.batch_kernel`."""
    m = namespace(width, real)
    return batch_kernel(m, getattr(m, name), result=result, inputs=inputs)


@dataclass(frozen=True)
class Kernel:
    """How a program, or its adjoint, runs over a batch.

    Attributes:
        kernel: see :func:`newton_like.kernels.batched.batch_kernel`; None: too long to be specialised.
        operations: about how many vector operations it does for a block.
        places: where the numbers of packed rows are, see :meth:`newton_like.compiler.cpp.Emitter.packed`, or nothing where nothing is to be
            taken out; None: none is packed.
        code: what an interpreted kernel does; None: it is compiled.
    """

    kernel: object
    operations: int
    places: dict | None = None
    code: Code | None = None


class Robot:
    """A batch of a model with its numbers."""

    def __init__(self, model, batch):
        self.batch = batch
        self.bases: dict = {}
        self.works: dict = {}
        self.kernels: dict = {}

    def read(self, model) -> tuple[bool, set[str]]:
        """Takes over what was edited.

        Returns:
            Whether launches have to be recorded again, and the arrays whose numbers were held before.
        """
        stale, code, freed = False, False, set()
        for base in self.bases.values():
            launches, held = base.parameters.refresh(model)
            stale, code = stale | launches, code | held
            freed |= base.parameters.freed
        if code:
            stale |= any(kernel.kernel is not None for kernel in self.kernels.values())
            self.kernels.clear()
        return stale, freed

    def base(self, model, width: int, threads: int) -> Workspace:
        """Tree and parameters for one lane width."""
        key = (width, threads)
        if key not in self.bases:
            fields = {"links": model.max_joints_per_articulation, "columns": model.max_dofs_per_articulation}
            m = namespace(width, model.dtype)
            self.bases[key] = Workspace(m, self.batch, Parameters(m, model, self.batch), model.device, threads, fields)
        return self.bases[key]

    def work(self, model, program: Program, width: int, threads: int, adjoint: bool = False) -> Workspace:
        """The same with memory for a program, or for its adjoint."""
        key = (program.key, width, threads, adjoint)
        if key not in self.works:
            tables = {} if program.tables is None else program.tables.of(self.batch)
            sizes = program.sizes(model, self.batch.template)
            if adjoint:
                fields = (*program.inputs, *program.outputs, *CONSTANTS)
                sizes.update(row_sizes(self.batch.template, [ROWS["turn"]]))
                sizes.update({adjoint_field(f).row: f.width(model, self.batch.template) for f in fields})
            work = self.base(model, width, threads).with_memory(sizes, {**dict(program.settings), **tables})
            work.code = None
            self.works[key] = work
        return self.works[key]

    def kernel(self, model, program: Program, work: Workspace, evaluator: str) -> Kernel:
        """The kernel of a program."""
        moved = sum(f.width(model, self.batch.template) for f in (*program.inputs, *program.outputs))
        general = evaluator == "general" or not self.batch.template.bodies
        if evaluator == "auto":
            # the two give the same bits where lanes are wider than one
            general = work.m.width == 1 or self.batch.count < WORTHWHILE or program.varied
        if not general:
            key = (program.key, work.m.width)
            if key not in self.kernels:
                self.kernels[key] = self._specialised(model, program, work, evaluator)
            found = self.kernels[key]
            if found.kernel is not None:
                return replace(found, operations=found.operations + _STAGING * moved)
        return Kernel(general_kernel(program.name, work.m.width, model.dtype), 4 * _STAGING * moved)

    def _specialised(self, model, program: Program, work: Workspace, evaluator: str) -> Kernel:
        emitter = work.emitter()
        trace = trace_program(program.name, work, emitter.parameter)
        if evaluator == "auto" and len(trace) > BUDGET:
            return Kernel(None, 0)
        fields = [(f, f.width(model, self.batch.template)) for f in program.outputs]
        return _emitted(work, emitter, trace, fields, _stores(emitter, trace, fields))

    def adjoint_kernel(
        self, model, program: Program, work: Workspace, results: list, constants: tuple, evaluator: str
    ) -> Kernel:
        """The kernel of a program's adjoint, and the workspace made ready for it; `results`: the fields that are asked for."""
        key = (program.key, work.m.width, "adjoint", *[f.row for f in results], evaluator)
        if key not in self.kernels:
            emitter = work.emitter()
            trace = self.adjoint(model, program, work, emitter, constants)
            fields = [(f, f.width(model, self.batch.template)) for f in results]
            if evaluator == "general" or (evaluator == "auto" and len(trace) > BUDGET):
                self.kernels[key] = _interpreted(work, emitter, trace, *_gradients(emitter, trace, fields))
            else:
                self.kernels[key] = _emitted(work, emitter, trace, fields, *_gradients(emitter, trace, fields))
        kernel = self.kernels[key]
        if kernel.code is not None:
            _load(work, kernel.code)
        return kernel

    def adjoint(self, model, program: Program, work: Workspace, emitter: Emitter, constants: tuple) -> Trace:
        """The trace of a program's adjoint; `constants`: those of `CONSTANTS` that have one."""
        template, places, at = self.batch.template, work.layout, work.parameters.at
        outputs, inputs, numbers = {}, {}, {}
        for fields, into in ((program.outputs, outputs), (program.inputs, inputs)):
            for f in fields:
                for i in range(f.width(model, template)):
                    into[places[f.row] + i] = places[adjoint_field(f).row] + i
        for f in constants:
            first = places[adjoint_field(f).row]
            if f is GRAVITY:
                numbers |= {at["gravity"] + i: [(first + i, 1.0)] for i in range(f.size)}
                continue
            for k, slot in enumerate(work.arrays["body_slot"]):
                for i, shares in PARAMETERS[f.row].items():
                    place = first + f.size * int(slot)
                    numbers[at["body"] + BODY * k + i] = [(place + j, weight) for j, weight in shares]
        # what is differentiated stays a number of the trace; its value may be a constant of the adjoint
        loose = work.parameters.known.same.copy()
        loose[list(numbers)] = False
        trace = trace_program(program.adjoint or program.name, work, work.emitter(loose).parameter, varied=True)
        real = np.float32 if model.dtype is wp.float32 else np.float64
        return adjoint_trace(trace, outputs, inputs, numbers, emitter.parameter, real)


INERTIA = (Field("body_mass", "bodies", 1), Field("body_com", "bodies", 3), Field("body_inertia", "bodies", 9))
GRAVITY = Field("gravity", "articulations", 3)
CONSTANTS = (*INERTIA, GRAVITY)
"""The arrays of a model that have gradients. That of gravity is the sum of those of a world's articulations."""

PARAMETERS = {
    "body_mass": {MASS: [(0, 1.0)]},
    "body_com": {CENTRE_OF_MASS + i: [(i, 1.0)] for i in range(3)},
    # xx yy zz; xy xz yz are the means of the two entries that they stand for
    "body_inertia": {INERTIA_AT + i: [(4 * i, 1.0)] for i in range(3)}
    | {INERTIA_AT + 3 + i: [(j, 0.5), (k, 0.5)] for i, (j, k) in enumerate(((1, 3), (2, 6), (5, 7)))},
}
"""For the parameters of a body, where their adjoints go in these arrays, and with which weight."""


def adjoint_field(field: Field) -> Field:
    """The field of the gradient of what a field holds."""
    return replace(field, row=f"adjoint_{field.row}")


def _stores(emitter: Emitter, trace: Trace, outputs) -> list:
    """What a trace leaves in memory of `outputs`, fields and their widths."""
    rows = {f.row for f, _ in outputs}
    return emitter.stores(trace, lambda place: emitter.name(place) in rows)


def _gradients(emitter: Emitter, trace: Trace, outputs) -> tuple[list, dict]:
    """The stores of an adjoint, and the places of fields that it has nothing to add to."""
    stores, idle = _stores(emitter, trace, outputs), {}
    for field, size in outputs:
        start = emitter.layout[field.row]
        places = range(start, start + size)
        some = {place for place, x in stores if place in places and x.constant != 0.0}
        stores = [(place, x) for place, x in stores if place not in places or place in some]
        if some:
            stores += [(place, Number(constant=0.0)) for place in places if place not in some]
        else:
            idle[field.row] = np.arange(0)
    return stores, idle


def _emitted(
    work: Workspace, emitter: Emitter, trace: Trace, outputs, stores: list, gradients: dict | None = None
) -> Kernel:
    """The kernel of a trace with its `outputs`, see :func:`_stores`; `gradients`: they are some, see :func:`_gradients`."""
    places = dict(gradients or {})
    # bodies may lie in several runs, between which others lie
    whole = work.batch.template.dense
    sizes = []
    for field, size in outputs:
        known = field.row not in places and (whole or field.kind != "bodies")
        packed = emitter.packed(stores, field.row, size) if known else None
        if packed is not None:
            stores, places[field.row] = packed
        sizes.append(size if known else 0)
    m = work.m
    code = emitter.head() + emitter.statements(trace, stores, sizes)
    result = "take_added" if gradients is not None else "take_packed" if places else "take"
    packed = places if result != "take" else None
    return Kernel(batch_kernel(m, native_program(code, m), emitted=True, result=result), len(trace), packed)


def _interpreted(work: Workspace, emitter: Emitter, trace: Trace, stores: list, idle: dict) -> Kernel:
    """A kernel that carries out an adjoint operation by operation, see :func:`_gradients`."""
    code = encode(trace, stores, work.layout["size"], emitter.group)
    kernel = general_kernel("eval_code", work.m.width, work.m.real, "take_added")
    return Kernel(kernel, _INTERPRETING * len(trace), idle, code)


def _load(work: Workspace, code: Code) -> None:
    """Gives the interpreter its code, and memory for the numbers that it needs. What earlier launches use stays as it is."""
    if work.code is code:
        return
    # of just this length, which may be none where nothing follows from anything: the interpreter reads to the array's end
    operations = wp.array(code.operations, dtype=wp.int32, device=work.device)
    work.T, work.code = copied(work.m.Tree, work.T, code=operations), code
    first = work.layout["size"]
    rows = np.zeros(
        (first + code.rows, work.columns, work.m.width), np.float32 if work.m.real is wp.float32 else np.float64
    )
    rows[first : first + len(code.constants)] = code.constants[:, None, None]
    rows = rows if work.m.width > 1 else rows[..., 0]
    memory = [wp.zeros(rows.shape[:2], dtype=work.m.lane, device=work.device) for _ in range(work.workers)]
    for one in memory:
        one.assign(rows)
    work.memory = memory
