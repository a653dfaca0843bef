"""Running programs over the articulations of a model: recorded launches, threads, gradients on Warp's tape."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, check_recorded, flat
from newton_like.kernels.batched import sum_kernel
from newton_like.model import arguments
from newton_like.programs.device import BLOCK_DIM, interleaved, lane_width, worker_count
from newton_like.programs.program import Program
from newton_like.programs.robot import INERTIA, Kernel, Robot, adjoint_field, changed
from newton_like.programs.template import find_batches
from newton_like.programs.threads import Command, cut, run_shared
from newton_like.programs.workspace import Workspace

_RECORDED = 64
_WORK_A_THREAD = 500_000
"""Vector operations for which it is worth to wake a thread: some 100 microseconds."""


class _Numbers:
    """The batches of a model as of one version of it, with what was made from them."""

    def __init__(self, model):
        self.robots = [Robot(model, batch) for batch in find_batches(model)]
        # one buffer for all masks that are not taken as they are, so that recorded launches are used again
        self.mask = wp.zeros(max(model.articulation_count, 1), dtype=wp.bool, device=model.device)
        self.nothing = wp.zeros(0, dtype=wp.bool, device=model.device)
        self.recorded: OrderedDict = OrderedDict()
        # launches of CUDA graphs, which read what they are told from arrays that nobody else may keep
        self.captured: list = []
        self.fixed = interleaved(model.device)
        self._note(model)

    def _note(self, model) -> None:
        self.version = model.version
        self.width, self.threads = lane_width(model.device, model.dtype), worker_count()

    def recording(self, key: tuple, arrays, mask, record) -> _Recording:
        """The launches of that key: recorded ones, or those that ``record()`` makes."""
        fixed = [None if mask is None else mask.ptr]
        # on a CPU all arrays will do, where as many are given
        fixed += _addresses(arrays) if self.fixed else [a is None for a in arrays]
        key = (*key, *fixed)
        found = self.recorded.get(key)
        if found is None:
            found = self.recorded[key] = _Recording(record(), arrays)
            if len(self.recorded) > _RECORDED:
                self.recorded.popitem(last=False)
        else:
            self.recorded.move_to_end(key)
        return found

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


def batches(model) -> list:
    """The batches that programs run over, see :func:`newton_like.programs.template.find_batches`."""
    return [robot.batch for robot in _numbers_of(model).robots]


def selection(model, mask=None, indices=None) -> wp.array | None:
    """See :func:`newton_like.model.arguments.selection`."""
    if mask is None and indices is None:
        return None
    return arguments.selection(model, _numbers_of(model).mask, mask, indices)


def run(model, program: Program, arrays, mask: wp.array | None = None) -> None:
    """Runs a program over the articulations of a model, and tells Warp's tape where an array has gradients.

    Args:
        model: the model.
        program: what to run.
        arrays: its inputs, None for zeros, and its outputs; checked and contiguous, all of the model's scalar type.
        mask: bools of the selected articulations on the model's device, or None for all.
    """
    numbers = _numbers_of(model)
    count = len(program.inputs)

    def record() -> list:
        check_recorded(model.device, program.name)
        ends, given = (program.inputs, program.outputs), (arrays[:count], arrays[count:])
        launches = []
        for robot in numbers.robots:
            work = robot.work(model, program, numbers.width, numbers.threads)
            kernel = robot.kernel(model, program, work, model.evaluator)
            launches.append(_record(model, numbers, robot, work, kernel, ends, given, mask))
        return launches

    recording = numbers.recording((program.key, model.evaluator), arrays, mask, record)
    if model.device.is_cuda and model.device.is_capturing:
        numbers.captured.append(recording)
    recording.run(arrays)
    tape = active_tape()
    if tape is not None and any(a is not None and a.requires_grad for a in arrays[count:]):
        _record_adjoint(model, numbers, program, arrays, mask, tape)


def _addresses(arrays) -> list[int]:
    return [0 if a is None else a.ptr or 0 for a in arrays]


class _Recording:
    """Recorded launches of a program on some arrays. On a CPU they are told when there are others, and nothing is recorded anew."""

    def __init__(self, launches: list, arrays):
        self.launches, self.addresses = launches, _addresses(arrays)
        # what is not given stays zero
        self.given = np.array(self.addresses) != 0

    def run(self, arrays) -> None:
        """Runs over arrays of the same sizes."""
        addresses = _addresses(arrays)
        if addresses != self.addresses:
            self.addresses, told = addresses, np.array(addresses, dtype=np.uint64)
            for workers in self.launches:
                first, second = workers[0][0].kept.targets
                for target, part in ((first, slice(len(first))), (second, slice(len(first), None))):
                    target[self.given[part]] = told[part][self.given[part]]
        for together in self.launches:
            run_shared(together)


def _record_adjoint(model, numbers, program: Program, arrays, mask, tape: wp.Tape) -> None:
    """Puts the adjoint on the tape. What it reads is kept as it is now: numbers of the model may be edited before the tape runs."""
    count = len(program.inputs)
    masses = (model.body_mass, model.body_com, model.body_inertia)
    inertia = tuple(f for f, a in zip(INERTIA, masses, strict=True) if a.requires_grad)
    sources = [a if a is not None and a.requires_grad else None for a in arrays[:count]]
    if not inertia and not any(a is not None for a in sources):
        return
    if model.device.is_cuda and model.device.is_capturing:
        raise RuntimeError(
            f"{program.name}: a tape cannot be captured into a CUDA graph; record it outside of the capture"
        )
    tracked = [a for a in (*arrays, *masses) if a is not None and a.requires_grad]
    if mask is not None:
        mask = wp.clone(mask)
    gradients = [None if a is None else a.grad for a in sources]
    # of an array that all articulations read, each has a gradient, which are added up
    shared = []
    ours = [adjoint_field(f) for f in program.inputs]
    for i, g in enumerate(gradients):
        if g is not None and ours[i].kind == "all":
            gradients[i] = wp.zeros((model.articulation_count, g.size), dtype=model.dtype, device=model.device)
            ours[i] = replace(ours[i], kind="articulations")
            shared.append((gradients[i], g))
    # results without gradient are brought in as zeros
    fields = [*program.inputs, *[adjoint_field(f) for f in program.outputs]]
    results = [f for f, g in zip(ours, gradients, strict=True) if g is not None]
    brought = [*arrays[:count], *[None if a is None else a.grad for a in arrays[count:]]]
    taken = [g for g in gradients if g is not None]
    for f, a in zip(INERTIA, masses, strict=True):
        if a.requires_grad:
            results.append(adjoint_field(f))
            taken.append(a.grad)
    whole = [*brought, *taken]

    def record() -> list:
        launches = []
        for robot in numbers.robots:
            work = robot.work(model, program, numbers.width, numbers.threads, True)
            kernel = robot.adjoint_kernel(model, program, work, results, inertia, model.evaluator)
            launches.append(_record(model, numbers, robot, work, kernel, (fields, results), (brought, taken), mask))
        return launches

    if mask is None and not numbers.fixed:
        key = ("adjoint", program.key, model.evaluator, inertia, *(f.kind for f in ours))
        recording = numbers.recording(key, whole, None, record)
    else:
        recording = _Recording(record(), whole)

    def backward() -> None:
        for rows, _ in shared:
            rows.zero_()
        recording.run(whole)
        for rows, total in shared:
            total = flat(total, model.dtype)
            wp.launch(sum_kernel(model.dtype), total.size, inputs=[rows], outputs=[total], device=model.device)

    tape.record_func(backward, tracked)


def _record(model, numbers, robot, work, kernel: Kernel, ends, given, mask) -> list:
    """Recorded launches, for every worker the same."""
    # launches keep what they are given, and the parameters of the batch change with the model
    parameters = changed(work.m.Params, work.P)
    chosen = numbers.nothing if mask is None else mask
    before = [robot.selected(work, mask is not None), work.T, parameters, work.L, chosen]
    structs = [
        robot.pieces(model, work, fields, arrays, places)
        for fields, arrays, places in zip(ends, given, (None, kernel.places), strict=True)
    ]
    pieces = [wp.array(x, dtype=work.m.Piece, device=model.device) for x in structs]
    after = [len(structs[0]), pieces[0], len(structs[1]), pieces[1]]
    threads = _threads(work, kernel.operations)
    cuda = interleaved(work.device)
    commands = [
        [
            Command(
                wp.launch(
                    kernel.kernel,
                    dim=n if cuda else 1,
                    inputs=[first, 1 if cuda else n, work.rows, *before, memory, *after],
                    device=work.device,
                    record_cmd=True,
                    block_dim=BLOCK_DIM if model.device.is_cuda else None,
                )
            )
            for first, n in cut(work.blocks, threads)
        ]
        for memory in work.memory[:threads]
    ]
    # recorded launches know addresses only
    kept = SimpleNamespace(arrays=(before, structs, pieces, work.P.uniform, work.P.varying, work.memory))
    if not cuda:
        kept.targets = [p.numpy()["numbers"]["data"] for p in pieces]
    for command in commands[0]:
        command.kept = kept
    return commands


def _threads(work: Workspace, operations: int) -> int:
    """How many threads share the blocks of a batch, which have about so many vector operations each."""
    return min(work.workers, work.blocks, max(1, work.blocks * operations // _WORK_A_THREAD))
