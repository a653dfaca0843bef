"""The flagship solver: articulations in generalized coordinates, with contacts, limits, drives and friction as constraints."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import warp as wp

from newton_like.collision.ground import find_colliders
from newton_like.kernels.programs import programs
from newton_like.kernels.tree import FRICTION, POSITION, VELOCITY
from newton_like.kernels.solvers.step import batch_struct, general_stages, step_kernel
from newton_like.launch import Workspace, flat, lane_width, make_layout, run_together
from newton_like.model.parameters import gather_parameters
from newton_like.model.templates import find_batches
from newton_like.specialise import BUDGET, FLAGS, Specialiser
from newton_like.types import ModelFlags

_RECORDED = 16


class _Kernels:
    """The general kernels, made once for each width and scalar type."""

    made: dict = {}

    @classmethod
    def general(cls, width: int, real):
        key = (width, real)
        if key not in cls.made:
            m = programs(width, real)
            batch = batch_struct(m)
            cls.made[key] = (m, batch, step_kernel(m, general_stages(m), batch))
        return cls.made[key]


class SolverFeatherstone:
    def __init__(
        self,
        model,
        *,
        iterations: int = 8,
        restitution_speed: float = 0.2,
        max_depenetration_speed: float = 1.0,
        width: int | None = None,
        threads: int | None = None,
        evaluator: str = "auto",
    ):
        self.model = model
        self.iterations = iterations
        self.evaluator = evaluator
        self.restitution_speed = restitution_speed
        self.max_depenetration_speed = max_depenetration_speed
        self.width = lane_width(model.device, model.dtype, width)
        self.m, self._batch_struct, self._kernel = _Kernels.general(self.width, model.dtype)
        self._steppers = [self._stepper(batch, threads) for batch in find_batches(model)]
        self._recorded: OrderedDict = OrderedDict()

    def _stepper(self, batch, threads):
        tables = find_colliders(self.model, batch)
        parameters = gather_parameters(self.model, batch, tables.parameters)
        layout = make_layout(batch.template, tables.numbers)
        work = Workspace(self.m, batch.template, batch.count, parameters, tables, layout, self.model.device, threads)
        return _Stepper(self, batch, work, self._choose_kernel(work))

    def _choose_kernel(self, work):
        if self.evaluator == "general":
            return self._kernel
        special = Specialiser(work)
        if self.evaluator == "auto" and special.operations > BUDGET:
            return self._kernel
        return step_kernel(self.m, special.stages(), self._batch_struct, FLAGS)

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0):
        arrays = [
            state_in.joint_q, state_in.joint_qd, state_in.body_f,
            None if control is None else control.joint_f,
            None if control is None else control.joint_target_q,
            None if control is None else control.joint_target_qd,
            None if control is None else control.joint_act,
            state_out.joint_q, state_out.joint_qd, state_out.body_q, state_out.body_qd,
        ]  # fmt: skip
        key = tuple(0 if a is None else a.ptr for a in arrays)
        entry = self._recorded.get(key)
        if entry is None:
            entry = self._record(arrays, dt)
            self._recorded[key] = entry
            if len(self._recorded) > _RECORDED:
                self._recorded.popitem(last=False)
        if entry.dt != dt:
            entry.set_dt(self, dt)
        for commands in entry.commands:
            run_together(commands)

    def _options(self, dt: float):
        o = self.m.Options()
        o.dt = dt
        o.inverse_dt = 1.0 / dt
        o.iterations = self.iterations
        o.restitution_speed = self.restitution_speed
        o.push_speed = self.max_depenetration_speed
        return o

    def _record(self, arrays, dt: float):
        real = self.model.dtype
        rows = [wp.empty(0, dtype=real, device=self.model.device) if a is None else flat(a, real) for a in arrays]
        options = self._options(dt)
        return _Entry([s.record(rows, [a is not None for a in arrays], options) for s in self._steppers], dt, rows)


class _Entry:
    def __init__(self, commands, dt, rows):
        self.commands, self.dt, self.rows = commands, dt, rows

    def set_dt(self, solver, dt):
        options = solver._options(dt)
        for commands in self.commands:
            for c in commands:
                c.set_param_by_name("o", options)
        self.dt = dt


class _Stepper:
    """One batch of the model."""

    def __init__(self, solver, batch, work, kernel):
        self.solver, self.batch, self.work, self.kernel = solver, batch, work, kernel
        numbers = work.contacts.numbers
        self.kept_size = numbers["contact_rows"] * numbers["candidates"] + numbers["couplings"]
        self.kept_limits = 3 * batch.template.dofs if (work.parameters.dof_limits & (FRICTION | VELOCITY | POSITION)).any() else 0
        self.kept = work.kept(self.kept_size + self.kept_limits)
        # per block: how many contacts are remembered, which, and whether limits are
        self.kept_active = wp.zeros((max(work.blocks, 1), numbers["candidates"] + 2), dtype=wp.int32, device=work.device)
        length = max(numbers["candidates"] + batch.template.dofs, 1)
        self.active = [wp.zeros((length, work.rows), dtype=wp.int32, device=work.device) for _ in work.shares]

    def record(self, rows, present, options):
        batch, work = self.batch, self.work
        B = self.solver._batch_struct()
        B.count = batch.count
        B.q_start, B.q_stride, B.qs = int(batch.q_start[0]), batch.stride(batch.q_start), batch.template.coords
        B.qd_start, B.qd_stride, B.qds = int(batch.qd_start[0]), batch.stride(batch.qd_start), batch.template.dofs
        B.body_start, B.body_stride, B.bodies = int(batch.body_start[0]), batch.stride(batch.body_start), batch.template.bodies
        B.kept_limits = self.kept_limits
        B.has_wrench, B.has_force, B.has_target_q, B.has_target_qd, B.has_act = (int(p) for p in present[2:7])
        return work.record(
            self.kernel,
            lambda i: [B, work.T, work.P, work.L, options, *rows[:7], work.memory[i], self.active[i], self.kept, self.kept_active, *rows[7:]],
        )
