"""Kernels of one robot: its numbers, the memory of a state, and launches that are recorded once and then repeated.

A state of one configuration has memory of its own, in which the frames of its links stay until its coordinates change. A batch computes
frames and result in one launch, and keeps neither.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from threading import RLock

import numpy as np
import warp as wp

from newton_like.compiler.cpp import FLAGS, native_program
from newton_like.kernels.batched import batch_kernel
from newton_like.kernels.layout import KINEMATICS, ROWS
from newton_like.kernels.robot import tasks
from newton_like.programs.device import lane_width
from newton_like.programs.parameters import Parameters
from newton_like.programs.pieces import Pieces, batch_struct
from newton_like.programs.program import Field
from newton_like.programs.recording import Recording
from newton_like.programs.robot import BUDGET, WORTHWHILE, general_kernel, namespace
from newton_like.programs.structs import copied
from newton_like.programs.template import find_batches
from newton_like.programs.tracing import trace_program
from newton_like.programs.workspace import Workspace, row_sizes

_PAIRS = 8
"""Pairs of links for which a task is compiled as a whole. For further pairs, the frames alone are straight-line code."""

_LOOP_ROWS = {"pos", "rot", "quat", "subspace"}
"""Results of frames that inverse kinematics reads."""

_KEPT = 2
"""Results of one shape whose memory is used again when no other array refers to them."""


def _dofs(model) -> int:
    return model.joint_dof_count


def _square(model) -> int:
    return _dofs(model) ** 2


@dataclass(frozen=True, eq=False)
class Task:
    """A quantity of a robot.

    Attributes:
        number: of ``newton_like.kernels.robot.tasks``.
        inputs: what is read beside the coordinates.
        row, size: where the result is in the memory, and its size.
        columns: 1: the last dimension of the result are dofs; 2: the last two.
        traced: what specialised code has as straight-line code: ``"robot"``, the whole task for any links; ``"links"``, the whole task for
            given links; ``"frames"``, only the frames; ``"loop"``, the frames in a loop that computes them several times.
        program: what runs the task.
    """

    number: int
    row: str
    size: int | Callable
    inputs: tuple[str, ...] = ()
    columns: int = 0
    traced: str = "links"
    program: str = "eval_robot"

    def length(self, model) -> int:
        """Numbers in the result of one configuration."""
        return self.size(model) if callable(self.size) else self.size


FRAMES = Task(tasks.FRAMES, "matrix", 0)
POSE = Task(tasks.POSE, "matrix", 16)
JACOBIAN = Task(tasks.JACOBIAN, "matrix", lambda model: 6 * _dofs(model), columns=1)
VELOCITY = Task(tasks.VELOCITY, "matrix", 6, ("v",))
CENTRE = Task(tasks.CENTRE, "matrix", 3, ("weights",))
CENTRE_JACOBIAN = Task(tasks.CENTRE_JACOBIAN, "matrix", lambda model: 3 * _dofs(model), ("weights",), columns=1)
TOTAL_INERTIA = Task(tasks.TOTAL_INERTIA, "matrix", 36)
OPERATIONAL = Task(tasks.OPERATIONAL, "operational", 37)
MASS_MATRIX = Task(tasks.MASS_MATRIX, "matrix", _square, columns=2, traced="robot")
HOLDING = Task(tasks.HOLDING, "matrix", _dofs, ("base_acceleration",), columns=1, traced="robot")
INVERSE_DYNAMICS = Task(
    tasks.INVERSE_DYNAMICS,
    "matrix",
    _dofs,
    ("v", "acceleration", "base_twist", "base_acceleration"),
    columns=1,
    traced="robot",
)

_FIELDS = {
    "q": Field("q", "coords"), "v": Field("v", "dofs"), "acceleration": Field("acceleration", "dofs"),
    "base_twist": Field("base_twist", "articulations", 6), "base_acceleration": Field("base_acceleration", "articulations", 6),
    "weights": Field("weights", "all", lambda model: model.body_count), "capsules": Field("capsules", "all", 7),
    "goals": Field("goals", "articulations"), "ik_settings": Field("ik_settings", "all"),
}  # fmt: skip
"""The inputs of tasks. Those of dofs are in the order of a state's joints."""

_SIZED_LATER = ("capsules", "goals", "ik_settings")
"""Inputs whose sizes follow from their arrays."""

_ROWS = (*KINEMATICS, *(ROWS[name] for name in ("acceleration", "pivot")))


class Machine:
    """The numbers of a robot on the device, and its kernels.

    Attributes:
        lock: for what states share: kernels, and the memory and the launches of batches.

    Args:
        model: a model of one articulation in double precision: the base link on a fixed joint, and the other links with their joints.
    """

    def __init__(self, model):
        self.model = model
        (self.batch,) = find_batches(model)
        self.m = namespace(lane_width(model.device, model.dtype), model.dtype)
        self.parameters = Parameters(self.m, model, self.batch)
        dofs = _dofs(model)
        self._sizes = row_sizes(self.batch.template, _ROWS)
        self._sizes.update(
            {row: f.width(model, self.batch.template) for row, f in _FIELDS.items() if row not in _SIZED_LATER}
        )
        self._sizes.update(matrix=max(36, 6 * dofs, dofs**2), vector=dofs, operational=37)
        self._kernels: dict = {}
        self.lock = RLock()

    def workspace(
        self, count: int, threads: int | None = None, rows: dict | None = None, tree: dict | None = None
    ) -> Workspace:
        """Memory for so many configurations, with further rows and fields of the tree."""
        every = np.arange(count)
        batch = replace(
            self.batch, articulations=every, joint_start=0 * every, q_start=every * self.batch.template.coords,
            qd_start=every * self.batch.template.dofs, body_start=0 * every, world=every,
        )  # fmt: skip
        fields = {"links": self.model.max_joints_per_articulation, "columns": self.model.max_dofs_per_articulation}
        work = Workspace(self.m, batch, self.parameters, self.model.device, threads, fields)
        return work.with_memory(
            {**self._sizes, **(rows or {})}, {"point_body": np.zeros(3, dtype=np.int32), **(tree or {})}
        )

    def general(self, program: str = "eval_robot"):
        """The kernel of all tasks of a program for any robot."""
        return general_kernel(program, self.m.width, self.m.real, "take_packed", "bring_packed")

    def specialised(self, task: Task, work: Workspace, links: tuple[int, int, int], most: float):
        """The kernel of a task for this robot: straight-line code, or, where many pairs of links are asked for, straight-line code for the
        frames and general code for the rest. Code of more than `most` operations is not compiled; the general kernel replaces it."""
        key = {"robot": task.number, "links": (task.number, *links), "frames": None, "loop": task.program}[task.traced]
        pairs = sum(isinstance(known, tuple) and known[0] == task.number for known in self._kernels)
        if task.traced == "links" and key not in self._kernels and pairs >= _PAIRS:
            key = None
        if key not in self._kernels:
            whole = task.traced != "loop" and key is not None
            # rows that are added come after those that the code knows
            fields = {"quantity": task.number + tasks.FRESH, "point_body": np.array(links, dtype=np.int32)}
            work = work.with_memory(self._sizes, fields)
            emitter = work.emitter()
            trace = trace_program("eval_robot" if whole else "robot_frames", work, emitter.parameter)
            rows = {task.row} if whole else _LOOP_ROWS if task.traced == "loop" else {"pos", "rot", "com", "subspace"}
            if len(trace) > most:
                return self._kernels.setdefault(key, self.general(task.program))
            stores = emitter.stores(trace, lambda place: emitter.name(place) in rows)
            native = native_program(emitter.head() + emitter.statements(trace, stores), self.m)
            follow = _repeated if task.traced == "loop" else _followed
            compute = native if whole else follow(self.m, native)
            self._kernels[key] = batch_kernel(self.m, compute, FLAGS, True, "take_packed", "bring_packed")
        return self._kernels[key]


def _followed(m, frames):
    """The function that computes frames, and then the task that is asked for."""
    rest = m.robot_task

    def compute(b, t, T, P, L, mem, pieces):
        frames(b, t, T, P, L, mem, pieces)
        rest(b, t, T, P, L, mem)

    compute.__annotations__ = _kinds(m)
    return wp.func(compute)


def _repeated(m, frames):
    """The function of inverse kinematics, which computes frames several times."""
    begin, advance = m.ik_begin, m.ik_advance

    def compute(b, t, T, P, L, mem, pieces):
        running = begin(t, T, L, mem)
        while running:
            frames(b, t, T, P, L, mem, pieces)
            running = advance(t, T, L, mem)

    compute.__annotations__ = _kinds(m)
    return wp.func(compute)


def _kinds(m) -> dict:
    """Types of the arguments of a function that computes; annotations of this file are text, which Warp does not read."""
    kinds = (int, int, m.Tree, m.Params, m.Layout, m.memory, wp.array[m.Piece])
    return dict(zip(("b", "t", "T", "P", "L", "mem", "pieces"), kinds, strict=True))


class Calls:
    """Recorded launches of tasks over some configurations.

    Args:
        machine: the robot.
        count: how many configurations; None: one, whose frames stay in the memory.
        order: of each dof of the robot, its place in the arrays of the caller.
        evaluator: ``"general"``, ``"specialised"``, or ``"auto"``: specialised from some hundred configurations on, unless that
            takes long to compile.
        rows, tree: further rows of the memory and fields of the tree.
    """

    def __init__(
        self,
        machine: Machine,
        count: int | None,
        order: np.ndarray,
        evaluator: str = "auto",
        rows: dict | None = None,
        tree: dict | None = None,
    ):
        self.machine, self.order = machine, order
        self.count = 1 if count is None else count
        self.work = machine.workspace(self.count, None, rows, tree)
        self.evaluator = evaluator
        self.most = BUDGET if evaluator == "auto" else math.inf
        if evaluator == "auto":
            self.evaluator = "specialised" if self.count >= WORTHWHILE else "general"
        self.links = self.work.T.point_body.numpy()
        self.results = Results()
        self._recorded: dict = {}

    def evaluate(self, task: Task, arrays: dict[str, np.ndarray], shape: tuple[int, ...], links) -> np.ndarray:
        """The result of a task for a batch, ``[count, *shape]``, for given bodies as links."""
        with self.machine.lock:
            names = ("q", *task.inputs)
            given = [arrays[name] for name in names]
            result = self.results.get((self.count, *shape))
            kernel = None
            if self.evaluator == "specialised":
                kernel = self.machine.specialised(task, self.work, links, self.most)
            key = (task, kernel, *[a.ndim for a in given])
            if key not in self._recorded:
                self._recorded[key] = self.record(task, arrays, result, True, kernel)
            self.links[:3] = links
            self._recorded[key].run_on([_Address(a) for a in (*given, result)])
            return result

    def record(
        self, task: Task, arrays: dict[str, np.ndarray], result: np.ndarray, fresh: bool, kernel=None
    ) -> Recording:
        """Records the launch of a task.

        Args:
            task: what is asked for.
            arrays: the inputs ``q``, and those of the task; of all configurations, or of one that all share.
            result: written, ``[count, ...]``.
            fresh: whether frames are computed; otherwise those in the memory are used.
            kernel: by default the one for all robots.
        """
        m, work = self.machine.m, self.work
        kernel = self.machine.general(task.program) if kernel is None else kernel
        names = (("q",) if fresh else ()) + task.inputs
        given = [self._piece(name, arrays[name]) for name in names]
        taken = [self._result(task, result)]
        inputs, outputs = (Pieces(wp.array(p, dtype=m.Piece, device="cpu"), p, [True] * len(p)) for p in (given, taken))
        tree = copied(m.Tree, work.T, quantity=task.number + (tasks.FRESH if fresh else 0))
        before = [batch_struct(work), tree, work.P, work.L, _no_mask()]
        after = [len(given), inputs.array, len(taken), outputs.array]
        launches = work.record(kernel, lambda i: [*before, work.memory[i], *after], work.workers, loops=True)
        told = [arrays[name] for name in names]
        reads = (before, inputs, outputs, work.memory)
        return Recording(
            [launches], [_Address(a) for a in (*told, result)], reads, [[inputs.release(), outputs.release()]]
        )

    def _piece(self, name: str, array: np.ndarray):
        """Where an input is."""
        field, piece = _FIELDS[name], self.machine.m.Piece()
        size = array.shape[-1]
        piece.row, piece.start = self.work.layout[name], 0
        # one row that all configurations share has no stride
        piece.stride = size if array.ndim > 1 and field.kind != "all" else 0
        places = np.argsort(self.order) if field.kind in ("coords", "dofs") else np.arange(size)
        piece.parts, piece.size, piece.part = (1 if size else 0), size, self.work.ints([0])
        piece.place = self._places(places)
        piece.numbers = _numbers(array)
        return piece

    def _result(self, task: Task, array: np.ndarray):
        """Where the result is."""
        piece, size, order = self.machine.m.Piece(), task.length(self.machine.model), self.order
        places = np.arange(size)
        if task.columns and size:
            places = places.reshape(-1, *([len(order)] * task.columns))
            # number i of the caller's is number back[i] of the robot's
            back = np.argsort(order)
            places = places[..., back] if task.columns == 1 else places[:, back][:, :, back]
        piece.row, piece.start, piece.stride = self.work.layout[task.row], 0, size
        piece.parts, piece.size, piece.part = (1 if size else 0), size, self.work.ints([0])
        piece.place = self._places(places.ravel())
        piece.numbers = _numbers(array)
        return piece

    def _places(self, places: np.ndarray) -> wp.array:
        """Where numbers are in lanes. Numbers are moved in squares of the lane width; the last square is padded."""
        width = self.machine.m.width
        return self.work.ints(width * np.append(places, [0] * (width - 1)))


class _Address:
    """An array as recordings see it."""

    def __init__(self, array: np.ndarray):
        self.ptr = array.__array_interface__["data"][0]


def _numbers(array: np.ndarray) -> wp.array:
    """A contiguous array of doubles as a row, in place."""
    if not array.size:
        return wp.zeros(1, dtype=wp.float64, device="cpu")
    return wp.array(array.reshape(-1), dtype=wp.float64, device="cpu", copy=False)


@cache
def _no_mask() -> wp.array:
    return wp.zeros(0, dtype=wp.bool, device="cpu")


class Results:
    """Arrays for results. The memory of a large array is used again when no other array refers to it: its pages are
    known to the process then."""

    def __init__(self):
        self._made: dict = {}

    def get(self, shape: tuple[int, ...]) -> np.ndarray:
        """An array of that shape with undefined contents."""
        owners = self._made.setdefault(shape, [])
        for i in range(len(owners)):
            # held by the list and the argument; a variable would count in some versions of Python only
            if sys.getrefcount(owners[i]) == 2:
                return owners[i].view()
        owner = np.empty(shape)
        if len(owners) < _KEPT:
            owners.append(owner)
        return owner.view()
