"""The flagship solver: articulations in generalized coordinates, with contacts, limits, drives and friction as constraints."""

from __future__ import annotations

import logging
from collections import OrderedDict
from functools import cache

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, check_recorded, flat
from newton_like.collision.ground import find_colliders, shape_kinds, unsupported_pairs
from newton_like.collision.pipeline import HandOver, given_tables
from newton_like.compiler.cpp import FLAGS
from newton_like.kernels.collision.collect import force_kernel
from newton_like.kernels.programs import programs
from newton_like.kernels.solvers.health import forget_kernel, health_kernels
from newton_like.kernels.solvers.step import batch_struct, general_stages, step_kernel
from newton_like.kernels.tree import FRICTION, POSITION, VELOCITY
from newton_like.kinematics import eval_fk
from newton_like.model.model import EVALUATORS
from newton_like.programs.device import lane_width
from newton_like.programs.parameters import gather_parameters
from newton_like.programs.template import find_batches
from newton_like.programs.threads import run_shared
from newton_like.programs.workspace import Workspace, make_layout
from newton_like.solvers.featherstone.specialise import BUDGET, Specialiser
from newton_like.types import BodyFlags, ModelFlags, warp_types

log = logging.getLogger("newton_like")

_RECORDED = 16
DRIVE_PASSES = 4
"""Passes of the search for saturated drives; most steps need none."""


@cache
def _structs(width: int, real):
    """The programs and the batch struct of one width and scalar type."""
    m = programs(width, real)
    return m, batch_struct(m)


@cache
def _general(width: int, real, given: bool = False):
    """The programs, the batch struct and the general kernel of one width and scalar type; for contacts that are handed over, if `given`."""
    m, batch = _structs(width, real)
    return m, batch, step_kernel(m, general_stages(m), batch, given=given)


class SolverFeatherstone:
    """Steps articulated bodies in generalized coordinates.

    A step, for every world: half a step of drift with the old velocity; kinematics; bias forces (recursive Newton-Euler) at the
    middle of the old and the new velocity; joint-space inertia (composite rigid bodies) with armature and the implicit terms of
    damping, springs and drives; its sparse LTDL factors; contacts of shapes with planes; one constraint row for every contact
    direction, limit, friction loss and coupling; block projected Gauss-Seidel with warm start in a fixed order; half a step of
    drift with the new velocity. ``state_out`` gets joint coordinates and velocities, and the body poses and velocities that go with
    them. Passive motion is second order in ``dt`` and its energy hardly drifts; drives, friction, limits and contacts are first order.

    Fast motion gains no energy for long: what the discretisation adds to it is counted, world by world, and taken back by a damping of
    the joints. In 120 random free chains energy exceeded what forces gave by 0.6 % at most where the base turned by 0.05 rad a step,
    and mostly by less than 1 % at 0.1 and 0.2 rad (14 % and 66 %, for some steps, in the worst chain); beyond, it may double for some
    steps, and motion is not resolved anyway. Robots that fell and lay kept within 0.1 % of their kinetic energy; an impact, whose
    moment is known to a step, and the pushing out of what it leaves of penetration raised it by up to 1.3 %.

    The same world gives the same bits in every run, whatever the number of worlds, its place among them, or the number of threads.

    A contact that carries the force f sinks by ``f / m time_constant^2``, where m is the effective mass of the point along the
    normal: 0.01 mm for a single body at rest with the default softness, some 0.05 mm for the foot of a robot. Contacts and limits do
    not spring back: with the default damping ratio an impact ends in the step it begins in, and what it leaves of penetration is
    corrected within some 0.2 s.
    Contacts of moving shapes with anything but planes are not resolved: a model that has such pairs is refused, unless
    ``unsupported_contacts="ignore"``.

    Args:
        model: the model.
        iterations: sweeps over all constraint rows in a step.
        evaluator: ``"general"``: one compiled kernel for all robots; ``"specialised"``: straight-line code for each robot of the
            model, two to three times as fast, compiled for some seconds when first used and cached on disk; ``"auto"``:
            specialised where a robot's program stays within ``newton_like.solvers.featherstone.specialise.BUDGET`` operations. The two
            give the same bits on a CPU at widths above 1.
        restitution_speed: impacts slower than this do not bounce [m/s].
        max_depenetration_speed: shapes that overlap are pushed apart no faster than this [m/s].
        unsupported_contacts: ``"error"`` or ``"ignore"``.
        width: worlds per kernel thread, see :func:`newton_like.programs.device.lane_width`.
        threads: CPU threads, see :func:`newton_like.programs.device.worker_count`.

    Raises:
        ValueError: an argument is out of range, or the model asks for what this solver does not do: loop joints, disabled
            joints, kinematic bodies, colliding pairs other than shape and plane.
    """

    def __init__(
        self,
        model,
        *,
        iterations: int = 8,
        evaluator: str = "auto",
        restitution_speed: float = 0.2,
        max_depenetration_speed: float = 1.0,
        unsupported_contacts: str = "error",
        width: int | None = None,
        threads: int | None = None,
    ):
        if evaluator not in EVALUATORS:
            raise ValueError(f"evaluator {evaluator!r} must be one of {EVALUATORS}")
        if unsupported_contacts not in ("error", "ignore"):
            raise ValueError(f"unsupported_contacts {unsupported_contacts!r} must be 'error' or 'ignore'")
        if int(iterations) != iterations or iterations < 1:
            raise ValueError(f"iterations {iterations!r} must be a whole number of at least 1")
        for name, value in (
            ("restitution_speed", restitution_speed),
            ("max_depenetration_speed", max_depenetration_speed),
        ):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} {value!r} must be a positive number [m/s]")
        self.model = model
        self.iterations = int(iterations)
        self.evaluator = evaluator
        self.restitution_speed = float(restitution_speed)
        self.max_depenetration_speed = float(max_depenetration_speed)
        self.unsupported_contacts = unsupported_contacts
        self.width = lane_width(model.device, model.dtype, width)
        self.threads = threads
        self._check_model()
        self.m, self._batch_struct, self._general_kernel = _general(self.width, model.dtype)
        self._recorded: OrderedDict = OrderedDict()
        self._vec3 = warp_types(model.dtype).vec3
        self._handed = self._chosen = None
        self._make_steppers()

    # ------------------------------------------------------------------------------------------------ set-up

    def _check_model(self) -> None:
        model = self.model
        loops = np.flatnonzero(model.joint_articulation.numpy() < 0)
        if len(loops):
            j = int(loops[0])
            raise ValueError(
                f"joint '{model.joint_label[j]}' (index {j}) is in no articulation and closes a loop; SolverFeatherstone does not "
                "solve loop joints: remove it, or add it to an articulation"
            )
        disabled = np.flatnonzero(~model.joint_enabled.numpy().astype(bool))
        if len(disabled):
            j = int(disabled[0])
            raise ValueError(
                f"joint '{model.joint_label[j]}' (index {j}) is disabled; SolverFeatherstone keeps all tree joints: remove it"
            )
        kinematic = np.flatnonzero(model.body_flags.numpy() & BodyFlags.KINEMATIC)
        if len(kinematic):
            b = int(kinematic[0])
            raise ValueError(
                f"body '{model.body_label[b]}' (index {b}) is kinematic, which SolverFeatherstone does not do: fix it"
            )
        if model.tendons:
            raise ValueError(
                f"tendon '{model.tendons[0].label}' (index 0): SolverFeatherstone does not act on tendons; clear model.tendons to"
                " simulate without them"
            )
        if self.unsupported_contacts == "error":
            pairs = unsupported_pairs(model)
            if len(pairs):
                a, b = (int(s) for s in pairs[0])
                raise ValueError(
                    f"shapes '{model.shape_label[a]}' (index {a}) and '{model.shape_label[b]}' (index {b}) may touch"
                    f" ({len(pairs)} such pairs), but SolverFeatherstone resolves contacts of moving shapes with planes only; filter"
                    " them (collision_group, shape_collision_filter_pairs) or pass unsupported_contacts='ignore'"
                )

    def _make_steppers(self) -> None:
        self._steppers = [_Stepper(self, batch) for batch in find_batches(self.model, shape_kinds(self.model))]
        self._given = None
        self._last = self._steppers
        self._recorded.clear()
        self._version = self.model.version

    def notify_model_changed(self, flags: ModelFlags | int = ModelFlags.ALL) -> None:
        """Takes over edited model arrays. Contact forces are remembered.

        Specialised robots are compiled again where a number that all worlds shared has changed; numbers that differ between worlds
        may change freely.

        Args:
            flags: which groups of arrays were edited.
        """
        self.model.notify_changed(flags)
        self._refresh()

    def _refresh(self) -> None:
        for stepper in self._steppers:
            stepper.refresh()
        self._given = None
        self._recorded.clear()
        self._version = self.model.version

    # ------------------------------------------------------------------------------------------------ stepping

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0) -> None:
        """Advances all worlds by one step.

        Args:
            state_in: the state now; its ``body_f`` acts during the step. Only ``joint_q`` and ``joint_qd`` are read beside it.
            state_out: the state afterwards; may be ``state_in``.
            control: forces and targets; None: those of the model's initial control.
            contacts: None: the solver finds the contacts of shapes with planes. Otherwise a list from ``model.collide(state_in)``, or one
                of the user's, of contacts of moving shapes with fixed ones of any kind; it is used as it is, by the general kernel. See
                :meth:`unused_contacts`.
            dt: time step [s].

        Raises:
            ValueError: ``dt`` is not positive, or an array belongs to another model.
        """
        if self._version != self.model.version:
            self._refresh()
        if control is None:
            control = self._default_control()
        arrays = (
            state_in.joint_q, state_in.joint_qd, state_in.body_f,
            control.joint_f, control.joint_target_q, control.joint_target_qd, control.joint_act,
            state_out.joint_q, state_out.joint_qd, state_out.body_q, state_out.body_qd,
        )  # fmt: skip
        key = (contacts is None, *[0 if a is None else a.ptr for a in arrays])
        entry = self._recorded.get(key)
        if entry is None:
            check_recorded(self.model.device, "SolverFeatherstone.step")
            entry = self._record(self._choose_steppers(contacts), arrays, float(dt))
            self._recorded[key] = entry
            if len(self._recorded) > _RECORDED:
                self._recorded.popitem(last=False)
        if entry.dt != dt:
            entry.set_options(self._options(dt), float(dt))
        if contacts is not None:
            self._hand_over(contacts)
        self._last = self._steppers if contacts is None else self._given
        for commands in entry.commands:
            run_shared(commands)

    def _choose_steppers(self, contacts):
        if contacts is None:
            return self._steppers
        if self._given is None:
            self._given = [
                _Stepper(self, batch, given=True) for batch in find_batches(self.model, shape_kinds(self.model))
            ]
        return self._given

    def _hand_over(self, contacts) -> None:
        if contacts.rigid_contact_normal.dtype is not self._vec3 or contacts.device != self.model.device:
            raise ValueError(
                "contacts belong to another model (device or scalar type); they come from model.contacts()"
            )
        self._used = wp.zeros(max(contacts.rigid_contact_max, 1), dtype=wp.int32, device=self.model.device)
        self._handed = contacts
        for stepper in self._given:
            stepper.hand_over.place(contacts, self._used)

    def unused_contacts(self) -> int:
        """How many contacts of the list that the last step was handed were not used.

        Not used are contacts between two moving or two fixed shapes, contacts of shapes that do not exist, more than
        ``newton_like.collision.pipeline.SLOTS`` of one shape, and those the list had no room for.
        """
        if self._handed is None:
            return 0
        return int(self._handed.rigid_contact_count.numpy()[0]) - int(self._used.numpy().sum())

    def contact_forces(self) -> wp.array:
        """The force that contacts exerted on each moving shape in the last step.

        Returns:
            ``[shape_count]`` vec3, world axes [N]; zero for planes and other fixed shapes.

        Raises:
            ValueError: the last step was handed its contacts, whose directions this solver does not keep.
        """
        if self._last is self._given and self._given is not None:
            raise ValueError("contact_forces: the last step was handed its contacts; call step with contacts=None")
        force = wp.zeros(self.model.shape_count, dtype=self._vec3, device=self.model.device)
        for stepper in self._steppers:
            stepper.add_forces(force)
        return force

    def _default_control(self):
        if getattr(self, "_control", None) is None:
            self._control = self.model.control()
        return self._control

    def _options(self, dt: float):
        if not (np.isfinite(dt) and dt > 0):
            raise ValueError(f"dt {dt!r} must be a positive number of seconds")
        o = self.m.Options()
        o.dt = dt
        o.inverse_dt = 1.0 / dt
        o.iterations = self.iterations
        o.drive_passes = DRIVE_PASSES
        o.restitution_speed = self.restitution_speed
        o.push_speed = self.max_depenetration_speed
        return o

    def _record(self, steppers, arrays, dt: float):
        model = self.model
        real = model.dtype
        coords, dofs, bodies = model.joint_coord_count, model.joint_dof_count, model.body_count
        sizes = (coords, dofs, 6 * bodies, dofs, coords, dofs, dofs, coords, dofs, 7 * bodies, 6 * bodies)
        names = ("state_in.joint_q", "state_in.joint_qd", "state_in.body_f", "control.joint_f", "control.joint_target_q",
                 "control.joint_target_qd", "control.joint_act", "state_out.joint_q", "state_out.joint_qd", "state_out.body_q",
                 "state_out.body_qd")  # fmt: skip
        rows = []
        for name, size, array in zip(names, sizes, arrays, strict=True):
            if array is None:
                if name.startswith("state") and name != "state_in.body_f":
                    raise ValueError(f"{name} is None; states come from model.state()")
                rows.append(wp.empty(0, dtype=real, device=model.device))
                continue
            row = flat(array, real)
            if row.size != size or array.device != model.device:
                raise ValueError(
                    f"{name} has {row.size} numbers on {array.device}, the model needs {size} on {model.device}; "
                    "states and controls come from model.state() and model.control()"
                )
            rows.append(row)
        options = self._options(dt)
        return _Recording(
            [s.record(rows, [a is not None for a in arrays], options) for s in steppers], dt, (rows, arrays)
        )

    # ------------------------------------------------------------------------------------------------ health

    def check(self, state, highest_speed: float = 1.0e4) -> np.ndarray:
        """Which worlds are healthy: all joint coordinates finite, all joint velocities below a bound.

        Args:
            state: the state to look at.
            highest_speed: the bound [m/s or rad/s].

        Returns:
            ``[world_count]`` bool.
        """
        model = self.model
        healthy = wp.full(model.world_count, True, dtype=wp.bool, device=model.device)
        examine, _, _ = health_kernels(model.dtype)
        wp.launch(
            examine,
            dim=model.articulation_count,
            inputs=[
                model.articulation_start,
                model.articulation_world,
                model.joint_q_start,
                model.joint_qd_start,
                model.dtype(highest_speed),
                state.joint_q,
                state.joint_qd,
            ],
            outputs=[healthy],
            device=model.device,
        )
        return healthy.numpy()

    def reset(self, state, world_mask=None) -> None:
        """Puts worlds back to the model's initial state, and forgets their contact forces and accounts of energy. Other worlds keep
        every bit.

        Args:
            state: the state to change.
            world_mask: ``[world_count]`` bool, which worlds; None: all.

        Raises:
            ValueError: the mask has another length.
        """
        model = self.model
        mask = self._world_mask(world_mask)
        if self._chosen is None:
            self._chosen = wp.zeros(model.articulation_count, dtype=wp.bool, device=model.device)
        _, restore, release = health_kernels(model.dtype)
        wp.launch(
            restore,
            dim=model.articulation_count,
            inputs=[
                mask,
                model.articulation_start,
                model.articulation_world,
                model.joint_q_start,
                model.joint_qd_start,
                model.joint_q,
                model.joint_qd,
            ],
            outputs=[state.joint_q, state.joint_qd, self._chosen],
            device=model.device,
        )
        for stepper in (*self._steppers, *(self._given or ())):
            stepper.forget(mask)
        if state.body_f is not None:
            inputs, forces = [mask, model.body_world], flat(state.body_f, model.dtype)
            wp.launch(release, dim=model.body_count, inputs=inputs, outputs=[forces], device=model.device)
        if model.articulation_count:
            eval_fk(model, state.joint_q, state.joint_qd, state, mask=self._chosen)

    def _world_mask(self, mask) -> wp.array:
        """Bools on the model's device. Those that are there already are taken as they are."""
        model = self.model
        if mask is None:
            mask = np.ones(model.world_count, bool)
        size = mask.size if isinstance(mask, wp.array) else np.size(mask)
        if size != model.world_count:
            raise ValueError(f"world_mask has {size} entries, the model has {model.world_count} worlds")
        if isinstance(mask, wp.array):
            if mask.dtype is wp.bool and mask.ndim == 1 and mask.device == model.device:
                return mask
            mask = mask.numpy()
        check_recorded(model.device, "SolverFeatherstone.reset with a mask from the host")
        return wp.array(np.asarray(mask).astype(bool).ravel(), dtype=wp.bool, device=model.device)


class _Recording:
    """Launches recorded for one set of arrays, which it keeps alive."""

    def __init__(self, commands, dt: float, arrays):
        self.commands, self.dt, self.arrays = commands, dt, arrays

    def set_options(self, options, dt: float) -> None:
        for commands in self.commands:
            for command in (c for worker in commands for c in worker):
                command.set_param_by_name("o", options)
        self.dt = dt


class _Stepper:
    """One batch of the model, with its kernel and what it remembers from step to step."""

    def __init__(self, solver: SolverFeatherstone, batch, given: bool = False):
        self.solver, self.batch, self.given = solver, batch, given
        self.world = None
        model = solver.model
        self.tables = tables = given_tables(model, batch) if given else find_colliders(model, batch)
        parameters = gather_parameters(model, batch, tables.parameters)
        layout = make_layout(batch.template, tables.numbers)
        self.work = work = Workspace(
            solver.m, batch.template, batch.count, parameters, tables, layout, model.device, solver.threads
        )
        self.kernel = self._choose_kernel()
        numbers, dofs = tables.numbers, batch.template.dofs
        self.kept_limits = 3 * dofs if (parameters.dof_limits & (FRICTION | VELOCITY | POSITION)).any() else 0
        self.kept = work.kept(
            numbers["contact_rows"] * numbers["candidates"] + numbers["couplings"] + self.kept_limits + 2
        )
        # per block: how many contacts are remembered, which, and whether limits are
        self.kept_active = work.kept(numbers["candidates"] + 2, wp.int32)
        self.hand_over = HandOver(model, tables, work) if given else None
        self.contacts_in = self.hand_over.lanes if given else work.kept(0)
        length = max(numbers["candidates"] + dofs, 1)
        self.active = [wp.zeros((length, work.rows), dtype=wp.int32, device=work.device) for _ in range(work.workers)]

    def _choose_kernel(self):
        solver = self.solver
        if self.given:
            return _general(solver.width, solver.model.dtype, given=True)[2]
        if solver.evaluator == "general" or not self.batch.template.dofs:
            return solver._general_kernel
        special = Specialiser(self.work)
        self.operations = special.operations
        if solver.evaluator == "auto" and special.operations > BUDGET:
            log.info("a robot of %d operations is not specialised", special.operations)
            return solver._general_kernel
        log.info(
            "specialised a robot: %d operations; the first step compiles it unless it is cached", special.operations
        )
        level = special.level if solver.width == 1 else None
        return step_kernel(solver.m, special.stages(), solver._batch_struct, FLAGS, level=level)

    def refresh(self) -> None:
        """New numbers from the model."""
        model = self.solver.model
        self.tables = tables = find_colliders(model, self.batch)
        parameters = gather_parameters(model, self.batch, tables.parameters)
        before = self.work.signature()
        same = all(np.array_equal(x, self.work.contacts.arrays[name]) for name, x in tables.arrays.items())
        if (
            tables.numbers != self.work.contacts.numbers
            or not same
            or (parameters.dof_limits != self.work.parameters.dof_limits).any()
        ):
            # the tables themselves changed: start anew
            self.__init__(self.solver, self.batch)
            return
        self.work.set_parameters(parameters)
        if self.work.signature() != before:
            self.kernel = self._choose_kernel()

    def record(self, rows, present, options) -> list:
        batch, work, template = self.batch, self.work, self.batch.template
        B = self.solver._batch_struct()
        B.count = batch.count
        B.q_start, B.q_stride, B.qs = int(batch.q_start[0]), batch.stride(batch.q_start), template.coords
        B.qd_start, B.qd_stride, B.qds = int(batch.qd_start[0]), batch.stride(batch.qd_start), template.dofs
        B.body_start, B.body_stride, B.bodies = (
            int(batch.body_start[0]),
            batch.stride(batch.body_start),
            template.bodies,
        )
        B.dense = int(template.span == template.bodies)
        B.kept_limits = self.kept_limits
        B.has_wrench, B.has_force, B.has_target_q, B.has_target_qd, B.has_act = (int(p) for p in present[2:7])
        return work.record(
            self.kernel,
            lambda i: [
                B, work.T, work.P, work.L, options, *rows[:7], work.memory[i], self.active[i], self.kept,
                self.kept_active, self.contacts_in,
                *rows[7:],
            ],
        )  # fmt: skip

    def forget(self, mask: wp.array) -> None:
        """Forgets the forces of the chosen worlds."""
        if not self.kept.size:
            return
        model, width = self.solver.model, self.solver.width
        if self.world is None:
            self.world = wp.array(self.batch.world, dtype=wp.int32, device=self.work.device)
        lanes = as_numbers(self.kept, model.dtype, width)
        wp.launch(
            forget_kernel(model.dtype),
            dim=self.batch.count,
            inputs=[mask, self.world, width, lanes],
            device=model.device,
        )

    def add_forces(self, force: wp.array) -> None:
        """Adds the contact forces of the last step to those of the shapes they act on."""
        model, work = self.solver.model, self.work
        if not work.numbers["candidates"]:
            return
        index = [
            wp.array(np.ascontiguousarray(x), dtype=wp.int32, device=model.device)
            for x in (self.tables.shapes, self.tables.planes)
        ]
        wp.launch(
            force_kernel(model.dtype),
            dim=self.batch.count,
            inputs=[
                work.numbers["contact_rows"], work.T.candidate_collider, *index, model.shape_transform, self.kept_active,
                as_numbers(self.kept, model.dtype, self.solver.width),
            ],
            outputs=[force],
            device=model.device,
        )  # fmt: skip
