"""Running programs over the articulations of a model: recorded launches, threads, gradients on Warp's tape."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import warp as wp

from newton_like.arrays import active_tape, flat, unrecorded
from newton_like.kernels.batched import gather_kernel, sum_kernel
from newton_like.model import arguments
from newton_like.model.columns import READ_WITHOUT_GRADIENT, WITH_GRADIENT
from newton_like.model.editing.edit_checks import check_masses
from newton_like.model.editing.edits import edits_of
from newton_like.model.editing.graphs import add_capture
from newton_like.programs.device import interleaved, lane_width
from newton_like.programs.pieces import batch_struct, pieces
from newton_like.programs.program import Program
from newton_like.programs.reads import arrays_read
from newton_like.programs.recording import Recording, Recordings
from newton_like.programs.robot import GRAVITY, INERTIA, Robot, adjoint_field
from newton_like.programs.structs import copied
from newton_like.programs.template import find_batches
from newton_like.programs.workspace import Workspace
from newton_like.threads import compiling, worker_count

_RECORDED = 64
_CONSTANTS = ("body_mass", "body_inertia", "gravity")
"""Constants of a model that programs read if their results depend on them. Centres of mass are read by all kinematics."""
_WORK_A_THREAD = 500_000
"""Vector operations from which on waking a thread saves time: about 100 microseconds."""


class _Numbers:
    """The batches of a model as of one version of it, with what was made from them."""

    def __init__(self, model):
        self.robots = [Robot(model, batch) for batch in find_batches(model)]
        # one buffer for all masks that are not taken as they are, so that recorded launches are used again
        self.mask = wp.zeros(max(model.articulation_count, 1), dtype=wp.bool, device=model.device)
        self.recorded = Recordings(_RECORDED, model.device)
        self._gravity: tuple | None = None
        self._note(model)

    def _note(self, model) -> None:
        if edits_of(model).masses.numpy()[0] >= 0:
            # an edit left masses unsound, perhaps without a notice before the first call; a later one may have mended them
            check_masses(model)
        self.version = model.version
        self.width, self.threads = lane_width(model.device, model.dtype), worker_count()

    def read(self, model) -> None:
        """Takes over what was edited."""
        before = (self.width, self.threads)
        try:
            self._note(model)
            found = [robot.read(model) for robot in self.robots]
        except ValueError:
            # graphs go on with these batches, which nobody refreshes any more
            self.recorded.outdate()
            raise
        if any(stale for stale, _ in found):
            moved = any(base.parameters.moved for robot in self.robots for base in robot.bases.values())
            freed = set().union(*(freed for stale, freed in found if stale))
            self.recorded.outdate(() if moved else freed)
        elif before != (self.width, self.threads):
            self.recorded.clear()

    def graphs(self) -> list:
        """The graphs that repeat launches of programs."""
        return [self.recorded.graphs]

    def follow_edits(self, model) -> None:
        """Takes over edits of the model for these graphs."""
        _numbers_of(model)

    def gravity(self, model) -> tuple[wp.array, wp.Launch]:
        """Memory for what articulations have of the gradient of gravity, zeros, and the launch that adds it to that of their worlds and
        leaves zeros there again."""
        grad = model.gravity.grad
        if self._gravity is None or self._gravity[0] is not grad:
            rows = wp.zeros((model.articulation_count, GRAVITY.size), dtype=model.dtype, device=model.device)
            starts = model.articulation_world_start
            launch = wp.launch(
                gather_kernel(model.dtype), (model.world_count, GRAVITY.size), inputs=[starts, rows],
                outputs=[flat(grad, model.dtype)], device=model.device, record_cmd=True,
            )  # fmt: skip
            # arrays that launches read are kept here
            self._gravity = grad, starts, rows, launch
        return self._gravity[2:]


_numbers: WeakKeyDictionary = WeakKeyDictionary()


def _numbers_of(model) -> _Numbers:
    numbers = _numbers.get(model)
    return _read(model) if numbers is None or numbers.version != model.version else numbers


@compiling
def _read(model) -> _Numbers:
    with unrecorded(model.device, "functions of a model that is new or edited"):
        # after an error everything is made again
        numbers = _numbers.pop(model, None)
        if numbers is None:
            numbers = _Numbers(model)
        else:
            numbers.read(model)
        _numbers[model] = numbers
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

    Raises:
        ValueError: a tape records, an input or a constant that the program reads requires a gradient, and no output does.
    """
    numbers = _numbers_of(model)
    count = len(program.inputs)
    tape = active_tape()
    if tape is not None:
        check_gradients(model)
        if not any(a is not None and a.requires_grad for a in arrays[count:]):
            _refuse_lost_gradients(model, program.name, arrays[:count], numbers.width)

    def record() -> Recording:
        with unrecorded(model.device, program.name):
            batches = []
            for robot in numbers.robots:
                work = robot.work(model, program, numbers.width, numbers.threads)
                batches.append((work, robot.kernel(model, program, work, model.evaluator)))
            return record_launches(
                model, batches, (program.inputs, program.outputs), (arrays[:count], arrays[count:]), mask
            )

    key = (program.key, model.evaluator, None if mask is None else mask.ptr)

    def reads() -> frozenset[str]:
        return arrays_read(program.name, numbers.width, model.dtype)

    numbers.recorded.of(key, arrays, record, reads).run_on(arrays)
    if model.device.is_capturing:
        add_capture(model, numbers)
    if tape is not None and any(a is not None and a.requires_grad for a in arrays[count:]):
        _record_adjoint(model, numbers, program, arrays, mask, tape)


def _refuse_lost_gradients(model, name: str, inputs, width: int) -> None:
    """Raises ValueError if an input or a constant that a program reads requires a gradient, for a program without results that have one."""
    read = arrays_read(name, width, model.dtype)
    constants = [getattr(model, constant) for constant in _CONSTANTS if constant in read]
    constants += [model.body_com] if "body_mass" in read else []
    if any(a is not None and a.requires_grad for a in (*inputs, *constants)):
        raise ValueError(
            f"{name}: no result has a gradient, but an input or a constant of the model requires one: pass arrays with"
            " requires_grad=True, or move the call out of the tape"
        )


def _record_adjoint(model, numbers, program: Program, arrays, mask, tape: wp.Tape) -> None:
    """Puts the adjoint on the tape. What it reads is kept as it is now: numbers of the model may be edited before the tape runs."""
    count = len(program.inputs)
    masses = (model.body_mass, model.body_com, model.body_inertia)
    constants = tuple(f for f, a in zip(INERTIA, masses, strict=True) if a.requires_grad)
    constants += (GRAVITY,) if model.gravity.requires_grad else ()
    sources = [a if a is not None and a.requires_grad else None for a in arrays[:count]]
    if not constants and not any(a is not None for a in sources):
        return
    if model.device.is_capturing:
        raise RuntimeError(f"{program.name}: a tape cannot be captured into a graph; record it outside of the capture")
    tracked = [a for a in (*arrays, *masses, model.gravity) if a is not None and a.requires_grad]
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
    gather = None
    if GRAVITY in constants:
        rows, gather = numbers.gravity(model)
        results.append(adjoint_field(GRAVITY))
        taken.append(rows)
    whole = [*brought, *taken]

    def record() -> Recording:
        batches = []
        for robot in numbers.robots:
            work = robot.work(model, program, numbers.width, numbers.threads, True)
            batches.append((work, robot.adjoint_kernel(model, program, work, results, constants, model.evaluator)))
        made = record_launches(model, batches, (fields, results), (brought, taken), mask)
        row = adjoint_field(GRAVITY).row
        made.idle = {row} if all(len(kernel.places.get(row, [row])) == 0 for _, kernel in batches) else set()
        return made

    if mask is None and not interleaved(model.device):
        # launches know which gradients they write; arrays of others may be as many
        key = ("adjoint", program.key, model.evaluator, *((f.row, f.kind) for f in results))
        recording = numbers.recorded.of(key, whole, record)
    else:
        recording = record()
    for robot in numbers.robots:
        robot.work(model, program, numbers.width, numbers.threads, True).parameters.keep()

    def backward() -> None:
        for rows, _ in shared:
            rows.zero_()
        recording.run_on(whole)
        for rows, total in shared:
            total = flat(total, model.dtype)
            wp.launch(sum_kernel(model.dtype), total.size, inputs=[rows], outputs=[total], device=model.device)
        if gather is not None and not recording.idle:
            gather.launch()

    tape.record_func(backward, tracked)


def check_gradients(model) -> None:
    """Raises ValueError: a constant of the model is to have a gradient that nothing computes."""
    for name in READ_WITHOUT_GRADIENT:
        array = getattr(model, name)
        if array.requires_grad:
            raise ValueError(
                f"model.{name} requires a gradient, but functions have no gradient with respect to it; set "
                f"model.{name}.requires_grad = False. Constants of a model with gradients: {', '.join(WITH_GRADIENT)}"
            )


def record_launches(model, batches, fields, arrays, mask: wp.array | None = None) -> Recording:
    """Launches of a kernel for every batch.

    Args:
        model: the model.
        batches: of each its :class:`newton_like.programs.workspace.Workspace` and :class:`newton_like.programs.robot.Kernel`.
        fields: those of inputs and those of outputs.
        arrays: the same, None for zeros.
        mask: see :func:`run`.
    """
    launches, targets, reads = [], None if interleaved(model.device) else [], []
    chosen = wp.zeros(0, dtype=wp.bool, device=model.device) if mask is None else mask
    for work, kernel in batches:
        both = [pieces(model, work, *each) for each in zip(fields, arrays, (None, kernel.places), strict=True)]
        # launches keep what they are given, and the parameters of the batch change with the model
        parameters = copied(work.m.Params, work.P)
        before = [batch_struct(work, mask is not None), work.T, parameters, work.L, chosen]
        after = [number for each in both for number in (len(each.structs), each.array)]
        commands = work.record(
            kernel.kernel,
            lambda i, memory=work.memory, before=before, after=after: [*before, memory[i], *after],
            _threads(work, kernel.operations),
            loops=True,
        )
        reads.append((before, both, work.P.uniform, work.P.varying, work.memory))
        launches.append(commands)
        if targets is not None:
            targets.append([each.release() for each in both])
    return Recording(launches, [*arrays[0], *arrays[1]], reads, targets)


def _threads(work: Workspace, operations: int) -> int:
    """How many threads share the blocks of a batch, which have about so many vector operations each."""
    return min(work.workers, work.blocks, max(1, work.blocks * operations // _WORK_A_THREAD))
