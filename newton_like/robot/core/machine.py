"""The numbers of a robot on the device, and the choice of the code that computes its quantities: general, or specialised for the robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import warp as wp

from newton_like.compiler.cpp import FLAGS, native_program
from newton_like.kernels.batched import batch_kernel
from newton_like.kernels.layout import KINEMATICS, ROWS
from newton_like.kernels.robot import tasks
from newton_like.programs.device import lane_width
from newton_like.programs.parameters import Parameters
from newton_like.programs.robot import general_kernel, namespace
from newton_like.programs.template import find_batches
from newton_like.programs.tracing import trace_program
from newton_like.programs.workspace import Workspace, row_sizes
from newton_like.robot.core.tasks import FIELDS, SIZED_LATER, Task
from newton_like.threads import compiling

_PAIRS = 8
"""Pairs of links for which a task is compiled as a whole. For further pairs, the frames alone are straight-line code."""

_LARGE = 64
"""Numbers of a configuration from which on the memory of results is fetched while they are computed."""

_NARROW = 2
"""Lanes of kernels for one configuration. Kernels of wide lanes take about twice the time, and states twice to eight times the memory.
Results have the same bits."""

_FRAME_ROWS = {"pos", "rot", "com", "subspace"}
"""Results of frames that general code for other tasks reads."""

_LOOP_ROWS = {"pos", "rot", "quat", "subspace"}
"""Results of frames that inverse kinematics reads."""

_ROWS = (*KINEMATICS, *(ROWS[name] for name in ("acceleration", "pivot")))


class Machine:
    """The numbers of a robot on the device, and its kernels.

    Args:
        model: a model of one articulation in double precision: the base link on a fixed joint, and the other links with their joints.
        regrouped: returns the numbers of joints and links that inverse dynamics reads; see :mod:`newton_like.robot.regrouped`.
        merged: returns the same model with masses on links that move on their own, for tasks whose results are the same with these: they
            take less time. None: all masses are on such links.
        scaled: whether units of some coordinates are not radians or metres.
        narrow: whether kernels are for one configuration; see `_NARROW`.
    """

    def __init__(
        self, model, regrouped: Callable, merged: Callable | None = None, scaled: bool = False, narrow: bool = False
    ):
        self.scaled = scaled
        self.model, self._merged_model, self._regrouped_numbers = model, merged, regrouped
        self._merged = self._regrouped = None
        (self.batch,) = find_batches(model)
        width = lane_width(model.device, model.dtype)
        self.m = namespace(min(width, _NARROW) if narrow else width, model.dtype)
        self.parameters = Parameters(self.m, model, self.batch)
        dofs = model.joint_dof_count
        self._sizes = row_sizes(self.batch.template, _ROWS)
        self._sizes.update(
            {row: f.width(model, self.batch.template) for row, f in FIELDS.items() if row not in SIZED_LATER}
        )
        self._sizes.update(matrix=max(36, 6 * dofs, dofs**2), vector=max(36, dofs), operational=38)
        self._kernels: dict = {}

    def quantity(self, task: Task, fresh: bool) -> int:
        """What the kernels are told of a task; `fresh`: whether frames are computed."""
        if not task.frames:
            return task.number
        reads = self._merged_model is not None and task.masses
        flags = (tasks.FRESH, fresh), (tasks.MERGED, reads), (tasks.SCALED, self.scaled)
        return task.number + sum(flag for flag, wanted in flags if wanted)

    def parameters_of(self, task: Task) -> Parameters:
        """The numbers that a task reads."""
        if task.masses == "regrouped":
            if self._regrouped is None:
                # several threads may make them
                self._regrouped = self.parameters.with_numbers(**self._regrouped_numbers())
            return self._regrouped
        if self._merged_model is None or task.masses != "merged":
            return self.parameters
        if self._merged is None:
            # several threads may make them
            self._merged = Parameters(self.m, self._merged_model(), self.batch)
        return self._merged

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

    @compiling
    def specialised(self, task: Task, work: Workspace, links: tuple[int, int, int], most: float):
        """The kernel of a task for this robot: straight-line code, or, where many pairs of links are asked for, straight-line code for the
        frames and general code for the rest. Code of more than `most` operations is not compiled; the general kernel replaces it."""
        key = {"robot": task.number, "links": (task.number, *links), "frames": None, "loop": task.program}[task.traced]
        pairs = sum(isinstance(known, tuple) and known[0] == task.number for known in [*self._kernels])
        if task.traced == "links" and key not in self._kernels and pairs >= _PAIRS:
            key = None
            if not task.frames:
                return self.general(task.program)
        if key not in self._kernels:
            whole = task.traced != "loop" and key is not None
            # rows that are added come after those that the code knows
            fields = {"quantity": self.quantity(task, True), "point_body": np.array(links, dtype=np.int32)}
            work = work.with_memory(self._sizes, fields)
            work.parameters = self.parameters_of(task)
            emitter = work.emitter()
            frames = "scaled_frames" if self.scaled and task.traced != "loop" else "robot_frames"
            trace = trace_program("eval_robot" if whole else frames, work, emitter.parameter)
            rows = _LOOP_ROWS if task.traced == "loop" else _FRAME_ROWS
            if whole:
                rows = {result.row for result in task.results}
            if len(trace) > most:
                return self._kernels.setdefault(key, self.general(task.program))
            stores = emitter.stores(trace, lambda place: emitter.name(place) in rows)
            sizes = [result.length(self.model) for result in task.results] if whole else []
            ahead = sizes if sum(sizes) >= _LARGE else None
            native = native_program(emitter.head() + emitter.statements(trace, stores, ahead), self.m)
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
