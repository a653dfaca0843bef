"""Launches that are recorded once and then repeated, and the arrays that they read and write.

A state of one configuration has memory of its own, in which the frames of its links stay until its coordinates change; see
:mod:`newton_like.robot.core.single`. A batch computes frames and result in one launch, and keeps neither.
"""

from __future__ import annotations

import math
import sys
from functools import cache

import numpy as np
import warp as wp

from newton_like.programs.pieces import Pieces, batch_struct
from newton_like.programs.recording import Recording
from newton_like.programs.robot import BUDGET, WORTHWHILE
from newton_like.programs.structs import copied
from newton_like.robot.core.machine import Machine
from newton_like.robot.core.tasks import FIELDS, Result, Task
from newton_like.threads import compiling

_KEPT = 2
"""Results of one shape whose memory is used again when no other array refers to them."""


class Calls:
    """Recorded launches of tasks over some configurations. One user at a time works with them; see
    :class:`newton_like.robot.core.shelf.Shelf`.

    Args:
        machine: the robot.
        count: how many configurations.
        order: of each dof of the robot, its place in the arrays of the caller.
        evaluator: ``"general"``, ``"specialised"``, or ``"auto"``: specialised from some hundred configurations on, unless that
            takes long to compile.
        rows, tree: further rows of the memory and fields of the tree.
    """

    def __init__(
        self,
        machine: Machine,
        count: int,
        order: np.ndarray,
        evaluator: str = "auto",
        rows: dict | None = None,
        tree: dict | None = None,
    ):
        self.machine, self.order, self.count = machine, order, count
        self.work = machine.workspace(self.count, None, rows, tree)
        self.evaluator = evaluator
        self.most = BUDGET if evaluator == "auto" else math.inf
        if evaluator == "auto":
            self.evaluator = "specialised" if self.count >= WORTHWHILE else "general"
        self.links = self.work.T.point_body.numpy()
        self.results = Results()
        self._recorded: dict = {}

    def evaluate(self, task: Task, arrays: dict[str, np.ndarray], shapes, links) -> list[np.ndarray]:
        """The results of a task for a batch, ``[count, *shape]`` for each of the shapes, for given bodies as links."""
        names = ("q", *task.inputs)
        given = [arrays[name] for name in names]
        results = [self.results.get((self.count, *shape)) for shape in shapes]
        kernel = None
        if self.evaluator == "specialised":
            kernel = self.machine.specialised(task, self.work, links, self.most)
        key = (task, kernel, *[a.ndim for a in given])
        if key not in self._recorded:
            self._recorded[key] = self.record(task, arrays, results, True, kernel)
        self.links[:3] = links
        self._recorded[key].run_on([_Address(a) for a in (*given, *results)])
        return results

    @compiling
    def record(
        self, task: Task, arrays: dict[str, np.ndarray], results: list[np.ndarray], fresh: bool, kernel=None
    ) -> Recording:
        """Records the launch of a task.

        Args:
            task: what is asked for.
            arrays: the inputs ``q``, and those of the task; of all configurations, or of one that all share.
            results: written, ``[count, ...]``.
            fresh: whether frames are computed; otherwise those in the memory are used.
            kernel: by default the one for all robots.
        """
        m, work = self.machine.m, self.work
        kernel = self.machine.general(task.program) if kernel is None else kernel
        names = (("q",) if fresh else ()) + task.inputs
        given = [self._piece(name, arrays[name]) for name in names]
        taken = [self._taken(result, array) for result, array in zip(task.results, results, strict=True)]
        inputs, outputs = (Pieces(wp.array(p, dtype=m.Piece, device="cpu"), p, [True] * len(p)) for p in (given, taken))
        tree = copied(m.Tree, work.T, quantity=self.machine.quantity(task, fresh))
        before = [batch_struct(work), tree, self.machine.parameters_of(task).P, work.L, _no_mask()]
        after = [len(given), inputs.array, len(taken), outputs.array]
        launches = work.record(kernel, lambda i: [*before, work.memory[i], *after], work.workers, loops=True)
        told = [arrays[name] for name in names]
        reads = (before, inputs, outputs, work.memory)
        return Recording(
            [launches], [_Address(a) for a in (*told, *results)], reads, [[inputs.release(), outputs.release()]]
        )

    def _piece(self, name: str, array: np.ndarray):
        """Where an input is."""
        field, piece = FIELDS[name], self.machine.m.Piece()
        size = array.shape[-1]
        piece.row, piece.start = self.work.layout[name], 0
        # one row that all configurations share has no stride
        piece.stride = size if array.ndim > 1 and field.kind != "all" else 0
        piece.parts, piece.size, piece.part = (1 if size else 0), size, self.work.ints([0])
        piece.place = self.work.ints(in_lanes(input_places(name, size, self.order), self.machine))
        piece.numbers = _numbers(array)
        return piece

    def _taken(self, result: Result, array: np.ndarray):
        """Where a result is."""
        piece, size = self.machine.m.Piece(), result.length(self.machine.model)
        piece.row, piece.start, piece.stride = self.work.layout[result.row], 0, size
        piece.parts, piece.size, piece.part = (1 if size else 0), size, self.work.ints([0])
        piece.place = self.work.ints(in_lanes(result_places(result, size, self.order), self.machine))
        piece.numbers = _numbers(array)
        return piece


def input_places(name: str, size: int, order: np.ndarray) -> np.ndarray:
    """Which number of a caller's input each number of a row is. `order`: see :class:`Calls`."""
    return np.argsort(order) if FIELDS[name].kind in ("coords", "dofs") else np.arange(size)


def result_places(result: Result, size: int, order: np.ndarray) -> np.ndarray:
    """Which number of a row each number of a caller's result is."""
    places = np.arange(size)
    if result.columns and size:
        places = places.reshape(-1, *([len(order)] * result.columns))
        # number i of the caller's is number back[i] of the robot's
        back = np.argsort(order)
        places = places[..., back] if result.columns == 1 else places[:, back][:, :, back]
    if result.record:
        places = places.reshape(-1, result.record).T
    return places.ravel()


def in_lanes(places: np.ndarray, machine: Machine) -> np.ndarray:
    """Where numbers are in lanes. Numbers are moved in squares of the lane width; the last square is padded."""
    width = machine.m.width
    return (width * np.append(places, [0] * (width - 1))).astype(np.int32)


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
