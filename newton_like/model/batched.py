"""Running one kernel over the articulations of a model: selection, cached numbers, recorded launches, gradients."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.launch import Workspace, flat, lane_width, run_shared, worker_count
from newton_like.model.parameters import gather_parameters
from newton_like.model.templates import find_batches

_RECORDED = 32
_BLOCKS_A_THREAD = 64
"""A block takes about a microsecond, and waking a thread some twenty."""
_PIECES_A_THREAD = 4
"""More pieces than threads, so that a thread which is held up does not hold up the others."""

_NOTHING_TOUCHES = SimpleNamespace(numbers={}, arrays={})


@dataclass(frozen=True)
class Program:
    """What runs over every articulation.

    Attributes:
        kernels: ``kernels(width, real, backward)`` gives the namespace of the programs, its kernels among them.
            Programs with the same function share their memory.
        name: which of the kernels.
        rows: ``rows(model, template, backward)`` gives the sizes of the named rows of memory. In kernels that are
            differentiated every row is written once.
    """

    kernels: Callable
    name: str
    rows: Callable


class _Numbers:
    """Batches of a model and their parameters, as of one version of it, with what was made from them."""

    def __init__(self, model):
        self.batches = find_batches(model)
        self.workspaces: dict = {}  # by kernels, width, threads and whether they are differentiated
        # one buffer for all masks that are not taken as they are, so that recorded launches are used again
        self.mask = wp.zeros(max(model.articulation_count, 1), dtype=wp.bool, device=model.device)
        self.nothing = wp.zeros(0, dtype=wp.bool, device=model.device)
        self.read(model)

    def read(self, model) -> None:
        """Gathers the parameters anew."""
        self.version = model.version
        self.parameters = [gather_parameters(model, batch) for batch in self.batches]
        self.recorded: OrderedDict = OrderedDict()
        # a tape may still read the old numbers
        self.workspaces = {key: spaces for key, spaces in self.workspaces.items() if not spaces.backward}
        for spaces in self.workspaces.values():
            for work, parameters in zip(spaces.works, self.parameters, strict=True):
                work.set_parameters(parameters)


_numbers: WeakKeyDictionary = WeakKeyDictionary()


def _numbers_of(model) -> _Numbers:
    numbers = _numbers.get(model)
    if numbers is None:
        numbers = _numbers[model] = _Numbers(model)
    elif numbers.version != model.version:
        numbers.read(model)
    return numbers


class _Workspaces:
    """The batches of a model, ready for the kernels of one namespace."""

    def __init__(self, model, numbers: _Numbers, program: Program, width: int, threads: int, backward: bool):
        self.m = program.kernels(width, model.dtype, backward)
        self.batches = numbers.batches
        self.backward = backward
        self.works = [
            self._workspace(model, batch, parameters, program, threads)
            for batch, parameters in zip(numbers.batches, numbers.parameters, strict=True)
        ]

    def _workspace(self, model, batch, parameters, program: Program, threads: int) -> Workspace:
        layout, at = {}, 0
        for name, size in program.rows(model, batch.template, self.backward).items():
            layout[name] = at
            at += size
        layout["size"] = at + 1
        threads = min(threads, max(1, -(-batch.count // self.m.width) // _BLOCKS_A_THREAD))
        work = Workspace(
            self.m, batch.template, batch.count, parameters, _NOTHING_TOUCHES, layout, model.device, threads
        )
        if self.backward:
            # the tape looks for gradients in every array of a struct
            for field in self.m.Tree.vars:
                if getattr(work.T, field) is None:
                    setattr(work.T, field, wp.zeros(1, dtype=wp.int32, device=model.device))
        return work

    def places(self, model, batch, masked: bool):
        """Where a batch lies in the arrays of the model, as a struct of its own: a tape may read it later."""
        template = batch.template
        B = self.m.Places()
        B.count = batch.count
        B.q_start, B.q_stride, B.qs = int(batch.q_start[0]), batch.stride(batch.q_start), template.coords
        B.qd_start, B.qd_stride, B.qds = int(batch.qd_start[0]), batch.stride(batch.qd_start), template.dofs
        B.body_start, B.body_stride = int(batch.body_start[0]), batch.stride(batch.body_start)
        B.bodies = template.bodies
        B.dense = int(template.body_slot.max(initial=-1) == template.bodies - 1)
        B.masked = int(masked)
        B.start, B.stride = int(batch.articulations[0]), batch.stride(batch.articulations)
        B.links, B.dofs = model.max_joints_per_articulation, model.max_dofs_per_articulation
        B.apart = int(self.backward)
        return B


def run(model, program: Program, arrays, mask: wp.array | None) -> None:
    """Runs a program over the articulations of a model, on Warp's tape where an array has gradients.

    Args:
        model: the model.
        program: what to run.
        arrays: what the kernel takes after its memory, checked and contiguous; all of the model's scalar type.
        mask: bools of the selected articulations on the model's device, or None for all.
    """
    numbers = _numbers_of(model)
    if any(a.requires_grad for a in arrays):
        _run_on_tape(model, numbers, program, arrays, mask)
        return
    width, threads = lane_width(model.device, model.dtype), worker_count()
    key = (program.name, width, threads, None if mask is None else mask.ptr, *[a.ptr for a in arrays])
    commands = numbers.recorded.get(key)
    if commands is None:
        spaces = _workspaces(model, numbers, program, width, threads, False)
        commands = numbers.recorded[key] = _record(model, numbers, spaces, program, arrays, mask)
        if len(numbers.recorded) > _RECORDED:
            numbers.recorded.popitem(last=False)
    for together in commands:
        run_shared(together)


def _workspaces(model, numbers, program, width, threads, backward) -> _Workspaces:
    key = (program.kernels, width, threads, backward)
    if key not in numbers.workspaces:
        numbers.workspaces[key] = _Workspaces(model, numbers, program, width, threads, backward)
    return numbers.workspaces[key]


def _record(model, numbers, spaces, program, arrays, mask):
    rows = [flat(a, model.dtype) for a in arrays]
    kernel = getattr(spaces.m, program.name)
    commands = []
    for work, batch in zip(spaces.works, spaces.batches, strict=True):
        B = spaces.places(model, batch, mask is not None)
        chosen = numbers.nothing if mask is None else mask
        shared = [B, work.T, work.P, work.L, chosen]
        pieces = _pieces(work)
        commands.append(
            [
                [
                    wp.launch(
                        kernel,
                        dim=n,
                        inputs=[first, work.rows, *shared, memory, *rows],
                        device=work.device,
                        record_cmd=True,
                    )
                    for first, n in pieces
                ]
                for memory in work.memory
            ]
        )
    return commands


def _pieces(work: Workspace) -> list[tuple[int, int]]:
    """First block and number of blocks of every launch."""
    if work.workers == 1:
        return [(0, work.blocks)]
    count = min(_PIECES_A_THREAD * work.workers, work.blocks)
    cuts = np.linspace(0, work.blocks, count + 1).astype(int)
    return [(int(a), int(b - a)) for a, b in pairwise(cuts)]


def _run_on_tape(model, numbers, program, arrays, mask) -> None:
    """At width 1, with memory of its own for every articulation and every call: the tape needs all values once more."""
    spaces = _workspaces(model, numbers, program, 1, 1, True)
    rows = [flat(a, model.dtype) for a in arrays]
    for row, array in zip(rows, arrays, strict=True):
        if row is not array:
            # the view does not own its memory, and the tape may outlive the caller's array
            row._owner = array
    for work, batch in zip(spaces.works, spaces.batches, strict=True):
        B = spaces.places(model, batch, mask is not None)
        chosen = numbers.nothing if mask is None else wp.clone(mask)
        memory = wp.zeros((work.layout["size"], work.count), dtype=model.dtype, device=model.device, requires_grad=True)
        wp.launch(
            getattr(spaces.m, program.name),
            dim=work.count,
            inputs=[0, work.count, B, work.T, work.P, work.L, chosen, memory, *rows],
            device=model.device,
        )


def selection(model, mask=None, indices=None) -> wp.array | None:
    """The selected articulations as bools on the model's device; None for all.

    Args:
        model: the model.
        mask: bools or integers (0: not selected), one for each articulation: a Warp or NumPy array or a sequence.
        indices: articulations: integers, likewise.

    Raises:
        ValueError: both are given; wrong length, shape or device.
        TypeError: wrong scalar types.
        IndexError: an articulation does not exist.
    """
    if mask is None and indices is None:
        return None
    if mask is not None and indices is not None:
        raise ValueError("mask and indices both select articulations; give one of them")
    count = model.articulation_count
    name, given = ("mask", mask) if indices is None else ("indices", indices)
    if isinstance(given, wp.array):
        if given.device != model.device:
            raise ValueError(
                f"{name} is on {given.device} and the model on {model.device}; use {name}.to('{model.device}')"
            )
        if indices is None and given.dtype is wp.bool and given.shape == (count,) and given.is_contiguous:
            return given
        given = given.numpy()
    values = np.asarray(given)
    if values.size == 0:
        values = values.astype(bool if indices is None else np.int64)
    if not (np.issubdtype(values.dtype, np.integer) or (indices is None and values.dtype == bool)):
        wanted = "bools" if indices is None else "integers"
        raise TypeError(f"{name} must hold {wanted}, not {values.dtype}")
    if indices is None:
        if values.shape != (count,):
            raise ValueError(f"mask has shape {values.shape}; it needs one bool for each articulation: ({count},)")
        chosen = values != 0
    else:
        if values.ndim != 1:
            raise ValueError(f"indices has shape {values.shape}; it must be a list of articulations")
        wrong = values[(values < 0) | (values >= count)]
        if wrong.size:
            raise IndexError(f"indices: articulation {wrong[0]} does not exist; the model has {count}")
        chosen = np.zeros(count, dtype=bool)
        chosen[values] = True
    buffer = _numbers_of(model).mask
    if count:
        buffer.assign(chosen)
    return buffer


def check_array(model, array, name: str, dtype, shape: tuple[int, ...]) -> wp.array:
    """The array, if a kernel can use it.

    Raises:
        TypeError: no Warp array, or another scalar type.
        ValueError: another shape or device, or gaps between its entries.
    """
    if not isinstance(array, wp.array):
        raise TypeError(f"{name} must be a Warp array of {dtype.__name__}, not {type(array).__name__}")
    if array.dtype is not dtype and not wp.types.types_equal(array.dtype, dtype):
        raise TypeError(f"{name} holds {array.dtype.__name__}; this model needs {dtype.__name__}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; this model needs {shape}")
    if array.device != model.device:
        raise ValueError(
            f"{name} is on {array.device} and the model on {model.device}; use {name}.to('{model.device}')"
        )
    if not array.is_contiguous:
        raise ValueError(f"{name} is not contiguous; pass {name}.contiguous()")
    return array
