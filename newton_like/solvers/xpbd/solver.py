"""SolverXPBD: bodies in maximal coordinates, with joints and contacts as constraints between them."""

from __future__ import annotations

import inspect
import math

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, check_recorded, flat
from newton_like.coercion import as_count, as_flag, as_time_step
from newton_like.collision.pipeline import check_contacts, collide
from newton_like.kernels.solvers.xpbd.between import turn_kernel
from newton_like.kernels.solvers.xpbd.bodies import BODY_NUMBERS
from newton_like.kernels.solvers.xpbd.contact_laws import EXTRA_NUMBERS
from newton_like.kernels.solvers.xpbd.joints import LENGTH
from newton_like.kernels.solvers.xpbd.order import COLOURS, NEVER
from newton_like.kernels.solvers.xpbd.pivots import PIVOT_NUMBERS
from newton_like.kernels.solvers.xpbd.step import maximal_math, xpbd_kernel
from newton_like.kernels.solvers.xpbd.touching import CONTACT_NUMBERS
from newton_like.kinematics import eval_ik
from newton_like.model.arguments import arrays_of_state, check_choice, check_made_by, check_row
from newton_like.model.contacts import FORCE
from newton_like.model.model import contact_room
from newton_like.options import check_option
from newton_like.programs.device import interleaved, lane_width
from newton_like.solvers.base import SolverBase
from newton_like.solvers.settings import Fixed, Setting, positive, rate
from newton_like.solvers.xpbd.ahead import load_ahead
from newton_like.solvers.xpbd.anchors import Anchors
from newton_like.solvers.xpbd.closing import ClosingJoints
from newton_like.solvers.xpbd.edited import arrays_of, order_of, take_over
from newton_like.solvers.xpbd.features import check_features, warn_open_joints, warn_unposed
from newton_like.solvers.xpbd.forgetting import forget_worlds
from newton_like.solvers.xpbd.laws import contact_laws_of
from newton_like.solvers.xpbd.light import warn_light_links
from newton_like.solvers.xpbd.lines import LinesOf, make_line_blocks
from newton_like.solvers.xpbd.moving import moving_bodies
from newton_like.solvers.xpbd.newton_options import NEWTON
from newton_like.solvers.xpbd.report import Reported, report_contacts
from newton_like.solvers.xpbd.requested import begin_rates, end_rates
from newton_like.solvers.xpbd.round import round_arrays
from newton_like.solvers.xpbd.sharing import sharing
from newton_like.solvers.xpbd.sleep import Sleepers
from newton_like.solvers.xpbd.tables import (
    MASS_COLUMN,
    arrays_of_joints,
    bodies_of_joints,
    body_constants,
    body_numbers,
    first_work,
    make_blocks,
    make_slots,
    remember_velocities,
    trees_of_bodies,
    turning_coordinates,
    worlds_of_bodies,
)
from newton_like.solvers.xpbd.teams import Launches, Teams
from newton_like.solvers.xpbd.trees import solved_together, tree_arrays
from newton_like.threads import compiling, worker_count
from newton_like.types import warp_types

_OF_TENDONS = ("tendon_f", "tendon_target_q", "tendon_target_qd")
GPU_CHUNKS = 256
"""Many small worlds make at least so many chunks on a GPU: more than it has multiprocessors."""

_RECORDED = 16
KEPT = 0.8
"""Share of the impulses of degrees of freedom that a sub-step starts from; with a single iteration larger shares are unstable."""


class SolverXPBD(SolverBase):
    """Steps rigid bodies in maximal coordinates: each body has six degrees of freedom, and joints and contacts are constraints.

    A step is cut into `substeps`. In a sub-step, bodies move freely with constant momenta (leapfrog), and impulses of joints and
    contacts change their velocities between two such motions. Impulses of a joint close its anchors after the next motion, as in
    extended position-based dynamics with small steps (Macklin, Mueller and Chentanez 2016; Macklin et al., Small Steps in Physics
    Simulation, 2019; Mueller et al., Detailed Rigid Body Simulation with Extended Position Based Dynamics, 2020), with the directions of
    the constraints at the middle of the sub-step (SHAKE). All rows of a joint are solved together; joints and contacts follow each other
    (Gauss-Seidel), ordered by colours. Contacts keep their impulses from one sub-step and step to the next, and are soft by the time
    constant and damping ratio of the material (Catto, Solver2D, 2024).

    The state of the solver is that of the bodies: a step reads ``body_q`` and ``body_qd`` of ``state_in``, and writes those of
    ``state_out``. After setting joint coordinates, call :func:`newton_like.eval_fk`. ``joint_q`` of ``state_in`` is read for the number of
    full turns of angles. With `update_joints`, ``joint_q`` and ``joint_qd`` of ``state_out`` are computed by
    :func:`newton_like.eval_ik`, with angles that count turns; those of loop joints keep their values.

    All joint types are supported, in trees and in loops, between any two bodies of a world: anchors, limits of position and velocity,
    drives (implicit, with effort limits), springs, damping, dry friction, armature and ``joint_f``. Mimic joints, polynomials between
    joints, and fixed and spatial tendons act as rows over several bodies. Contacts have sliding, torsional and rolling friction,
    restitution, and the softness of their materials or that of MuJoCo; :meth:`update_contacts` gives their forces. Internal impulses keep
    linear and angular momentum up to rounding and up to the gaps of joints. A kinematic body keeps the velocity ``body_qd`` of
    ``state_in``, and its pose is integrated from it.

    The results of a world are bitwise identical in every run, for any number of worlds, any index of the world and any number of threads.

    Args:
        model: the model.
        iterations: passes over all joints and contacts in a sub-step.
        substeps: sub-steps of a step. Errors of passive motion shrink with the square of ``dt / substeps``; gaps of joints under load
            and the softness of contacts shrink likewise.
        restitution_speed: impacts below this speed have no restitution [m/s].
        max_depenetration_speed: largest speed at which overlapping shapes are separated, and at which joints return to their limits
            and close gaps that they had before, see :mod:`newton_like.solvers.xpbd.closing` [m/s or rad/s].
        angular_damping: decay rate [1/s] of the angular velocities of bodies.
        enable_restitution: whether contacts rebound by the restitution of their materials.
        update_joints: whether steps write the joint coordinates of ``state_out``; loop joints are never updated. Drives and limits of
            position take angles from poses of bodies. They count turns from sub-step to sub-step, and are at the full turn nearest to
            ``joint_q`` of ``state_in`` where that has changed since the last step.
        sleeping: whether islands of bodies that touch each other, and that no joint or tendon holds, are not computed while they are at
            rest, see :mod:`newton_like.solvers.xpbd.sleep`. Needs a CPU.
        unsupported_contacts: ``"error"`` or ``"ignore"``: see :meth:`newton_like.Model.collide`, for steps that find contacts.
        width: lanes of a kernel thread, see :func:`newton_like.programs.device.lane_width`.
        threads: CPU threads, see :func:`newton_like.threads.worker_count`. On a GPU, the threads of a block compute a group of small
            worlds, or one large world.
        newton_options: options of Newton 1.8 that choose how it computes, at their defaults.

    Raises:
        TypeError: `model` is not a model, an argument is unknown or of another type.
        ValueError: an argument is out of range; or the model has a feature that this solver does not support, which the message names;
            see the table in ``docs/maximal.md``.
    """

    supports = frozenset({"kinematic bodies", "loop joints", "disabled joints", "tendons"})
    results = frozenset({"body_qdd"})
    _reduced = False

    iterations = Setting(as_count)
    substeps = Setting(as_count)
    restitution_speed = Setting(positive)
    max_depenetration_speed = Setting(positive)
    angular_damping = Setting(rate)
    enable_restitution = Setting(as_flag)
    update_joints, unsupported_contacts, sleeping = Fixed(), Fixed(), Fixed()
    width, threads = Fixed(), Fixed()

    def __init__(
        self,
        model,
        *,
        iterations: int = 2,
        substeps: int = 8,
        restitution_speed: float = 0.1,
        max_depenetration_speed: float = 1.0,
        angular_damping: float = 0.0,
        enable_restitution: bool = True,
        update_joints: bool = True,
        sleeping: bool = False,
        unsupported_contacts: str = "error",
        width: int | None = None,
        threads: int | None = None,
        **newton_options,
    ):
        for name, value in newton_options.items():
            own = [*inspect.signature(SolverXPBD).parameters][1:-1]
            check_option("SolverXPBD", name, value, NEWTON, own)
        check_choice(unsupported_contacts, "unsupported_contacts", ("error", "ignore"))
        self._recorded: dict = {}
        super().__init__(model)
        check_features(model)
        self.iterations, self.substeps = iterations, substeps
        self.restitution_speed, self.max_depenetration_speed = restitution_speed, max_depenetration_speed
        self.angular_damping = angular_damping
        self.enable_restitution = enable_restitution
        self.update_joints = as_flag(update_joints, "update_joints")
        self.sleeping = as_flag(sleeping, "sleeping")
        if self.sleeping and not model.device.is_cpu:
            raise ValueError(f"sleeping=True on {model.device}: islands fall asleep on a CPU only; omit sleeping")
        self.unsupported_contacts = unsupported_contacts
        self.width, self.threads = lane_width(model.device, model.dtype, width), threads
        self._found = self._lists = self._before = None
        self._reported: Reported | None = None
        self._warned = False
        self._closing = ClosingJoints(model)
        self._build()
        warn_light_links(model, self._together, stacklevel=2)
        self._complete = type(self) is SolverXPBD

    # ------------------------------------------------------------------------------------------------ tables

    def _array(self, values, dtype=wp.int32) -> wp.array:
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.device)

    def _build(self) -> None:
        """Makes the tables of the model."""
        model, width = self.model, self.width
        lines = LinesOf(model)
        threads = worker_count(self.threads) if model.device.is_cpu else 1
        slots = make_slots(model, width, 4 * threads if model.device.is_cpu else GPU_CHUNKS, BODY_NUMBERS)
        blocks = make_blocks(model, slots, width, lines.joints, lines.bodies)
        kinds = ("wraps" if lines.wraps else "lines") if lines.lines else ""
        laws = contact_laws_of(model)
        parts, self._anchors = (kinds, laws is not None), Anchors(model)
        self._m, self._slots = maximal_math(width, model.dtype, *parts, self._anchors.matter), slots
        self._together = solved_together(blocks, model.joint_count)
        trees = bool(self._together.any())
        self._kernel, *structs = xpbd_kernel(
            width, model.dtype, *parts, len(blocks.table) > 0, self._anchors.matter, trees
        )
        self._structs, self._threads = tuple(structs), threads
        self._teams = Teams(slots, blocks, threads, self._array, model.device.is_cuda)
        moves = moving_bodies(model)
        known = body_constants(model, moves)
        self._bodies = dict(
            chunks=self._array(slots.chunks), slot_body=self._array(slots.body), slot_world=self._array(slots.world),
            wrenches=self._array(blocks.wrenches), wrench_start=self._array(blocks.wrench_start), apart=int(blocks.apart),
            inverse_mass=self._array(known[:, MASS_COLUMN], model.dtype), com=model.body_com, gravity=model.gravity,
            numbers=self._array(body_numbers(slots, known), model.dtype), **arrays_of_joints(model),
        )  # fmt: skip
        count = len(blocks.table)
        self._trees, copies = tree_arrays(slots, blocks, width, self._array, self._lanes, self._numbers)
        lanes = blocks.numbers.reshape(count * blocks.numbers.shape[1], width)
        self._joints = dict(
            blocks=self._array(blocks.table), parent=self._array(blocks.parent), child=self._array(blocks.child),
            dof=self._array(blocks.dof), coordinate=self._array(blocks.coordinate),
            rotors=int(remember_velocities(model)), acting=int(blocks.acting), measured=int(len(lines.joints) > 0),
            slow=self._lanes(self._closing.lanes(blocks.joint)), closing=0,
            numbers=self._lanes(lanes), work=self._lanes(first_work(count, copies, width)),
        )  # fmt: skip
        if trees:
            work = self._joints["work"]
            self._trees.update(joints=work, of_joints=self._as_numbers(work, (work.size * width,)))
        self._lines, self._line_world = {}, None
        if lines.lines:
            found = make_line_blocks(model, lines, slots, blocks, width)
            work = self._joints["work"]
            self._lines = {
                **found.arrays(self._array, self._lanes), "joints": self._as_numbers(work, (work.size * width,)),
            }  # fmt: skip
            self._line_world = self._array(found.world)
        self._laws = {} if laws is None else laws.arrays(model, self._array)
        self._moves, self._world_of_body = moves, worlds_of_bodies(model)
        self._lane_joint, self._lane_world, self._lengths = blocks.joint, blocks.world, blocks.table[:, 0] == LENGTH
        self._order, self._arrays = order_of(model, self._anchors), arrays_of(model)
        self._lists = self._last_length = None
        self._body_moves = self._array(moves)
        of_bodies = self._bodies["numbers"], self._bodies["inverse_mass"], self._body_moves
        pulled = np.array([b for line in lines.lines for b in line.bodies if b >= 0], dtype=int)
        self._sleepers = Sleepers(model, slots, *of_bodies, pulled) if self.sleeping else None
        self._joint_world = self._array(blocks.world)
        self._recorded.clear()
        self._contact_room = contact_room(model)
        self._turning = self._array(turning_coordinates(model))
        # last, so that an error comes back at the next step
        self._built = model.version

    def _numbers(self, values: np.ndarray) -> wp.array:
        return self._array(values, self.model.dtype)

    def _as_numbers(self, lanes: wp.array, shape: tuple) -> wp.array:
        """The numbers of lanes, in an array of this shape."""
        return wp.array(ptr=lanes.ptr, dtype=self.model.dtype, shape=shape, device=self.device, copy=False)

    def _lanes(self, numbers: np.ndarray) -> wp.array:
        """Lanes in a row, as the two-dimensional arrays that programs read."""
        if self.width == 1:
            return self._array(numbers.reshape(-1, 1), self.model.dtype)
        return self._array(numbers[None], self._m.lane)

    def _refresh(self) -> None:
        check_recorded(self.device, "SolverXPBD.step of an edited model")
        if not take_over(self, self._built):
            check_features(self.model)
            self._build()
        self._closing.after_edit()
        self._built = self.model.version

    def _settings_changed(self) -> None:
        # recordings compare their settings with these
        pass

    # ------------------------------------------------------------------------------------------------ contacts

    def _list_arrays(self, room: int) -> dict:
        """Memory for lists of contacts of a capacity."""
        if self._lists is not None and self._lists["room"] == room:
            return self._lists
        model, chunks = self.model, len(self._slots.chunks)
        vec3 = warp_types(model.dtype).vec3
        # the impulses of the last step are those of a list of another capacity; banks hold them even if that one was larger
        old = None if self._lists is None else self._lists["banks"][1 - self._lists["now"]]
        places, sorts = room if old is None else max(room, old["shape0"].size), interleaved(model.device)

        def whole(n, dtype=wp.int32):
            return wp.zeros(max(n, 1), dtype=dtype, device=model.device)

        fixed = dict(
            shape_body=model.shape_body, mu=model.shape_material_mu, restitution=model.shape_material_restitution,
            **round_arrays(model, self._array), time_constant=model.shape_material_time_constant,
            damping_ratio=model.shape_material_damping_ratio,
            body_chunk=self._array(self._slots.chunk_of), body_slot=self._array(self._slots.slot_of), body_moves=self._body_moves,
            body_tree=self._array(trees_of_bodies(model)), body_anchored=self._array(self._anchors.marks),
            body_rail=wp.array(self._anchors.rails, dtype=vec3, device=model.device),
            body_pivot=self._array(self._anchors.pivots, model.dtype),
            body_held=self._array(bodies_of_joints(model)), body_world=self._array(worlds_of_bodies(model)),
            fixed_slot=self._array(self._slots.fixed), body_com=model.body_com,
            # sorting needs twice the room
            chosen=whole((1 + sorts) * room), ordered=whole(room), colour=whole(room),
            colour_start=wp.zeros((chunks, COLOURS + 1), dtype=int, device=model.device),
            impact=wp.zeros((chunks, COLOURS + 4), dtype=int, device=model.device),
            taken=whole(len(self._slots.body), wp.uint64), kept_next=whole(places), kept_takers=whole(places),
            kept_head=whole(len(self._slots.body)),
        )  # fmt: skip
        ints, vectors = ("shape0", "shape1"), ("point", "force")
        banks = [
            {name: whole(places, dtype) for names, dtype in ((ints, wp.int32), (vectors, vec3)) for name in names}
            for _ in range(2)
        ]
        for bank in banks:
            bank.update(start=whole(chunks + 1), turn=whole(places if self._laws else 0, vec3))
        if old is not None:
            for name, array in old.items():
                wp.copy(banks[1][name], array, count=array.size)
        each = CONTACT_NUMBERS + PIVOT_NUMBERS * self._anchors.matter
        numbers = whole(each * (room + chunks * self.width), model.dtype)
        extra = whole(EXTRA_NUMBERS * (room + chunks * self.width) if self._laws else 0, model.dtype)
        self._lists = dict(
            extra=extra, law=whole(room), chunk=whole(2 * sorts * room), room=room, fixed=fixed, banks=banks, now=0, a=whole(room),
            b=whole(room), numbers=numbers,
        )  # fmt: skip
        self._recorded.clear()
        return self._lists

    def _listed(self, contacts):
        """The struct of a list of contacts, for this step."""
        N = self._structs[2]()
        if contacts is None:
            return N
        lists = self._list_arrays(contacts.rigid_contact_max)
        now, kept = lists["banks"][lists["now"]], lists["banks"][1 - lists["now"]]
        for name, array in lists["fixed"].items():
            setattr(N, name, array)
        N.count = contacts.rigid_contact_count
        for name in ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1"):
            setattr(N, name, getattr(contacts, f"rigid_contact_{name}"))
        N.start, N.kept_start = now["start"], kept["start"]
        for name in ("shape0", "shape1", "point", "force"):
            setattr(N, f"now_{name}", now[name])
            setattr(N, f"kept_{name}", kept[name])
        wrench = self._wrench(contacts)
        if wrench is not None:
            N.report, N.wrench = 1, wrench
        return N

    def _wrench(self, contacts) -> wp.array | None:
        """The wrenches of the contacts of a list, if they are asked for."""
        if contacts is None or FORCE not in self.model.contact_attributes:
            return None
        lists = self._list_arrays(contacts.rigid_contact_max)
        if "wrench" not in lists:
            lists["wrench"] = wp.zeros(
                lists["room"], dtype=warp_types(self.model.dtype).spatial_vector, device=self.device
            )
            self._recorded.clear()
        return lists["wrench"]

    def _forget(self, mask: wp.array) -> None:
        check_recorded(self.device, "SolverXPBD.reset")
        if self._sleepers is not None:
            self._sleepers.wake_worlds(mask.numpy())
        self._closing.after_reset(mask)
        forget_worlds(self, mask)

    # ------------------------------------------------------------------------------------------------ step

    @property
    def _rebound_speed(self) -> float:
        """The speed of an impact from which on it rebounds [m/s]."""
        return self.restitution_speed if self.enable_restitution else NEVER

    def _options(self, dt: float, touching: bool):
        o = self._structs[3]()
        o.dt, o.substeps, o.iterations, o.contacts = dt, self.substeps, self.iterations, int(touching)
        o.kept_share = KEPT if self.iterations > 1 else 0.0
        o.push_speed, o.rebound_speed = self.max_depenetration_speed, self._rebound_speed
        o.spin_share = math.exp(-self.angular_damping * dt)
        o.impulse_scale = dt / self.substeps / (self._last_length or dt / self.substeps)
        return o

    def _key(self, dt: float, touching: bool) -> tuple:
        return (
            dt, touching, self.substeps, self.iterations, self.max_depenetration_speed, self._rebound_speed, self.angular_damping,
            self._last_length,
        )  # fmt: skip

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0) -> None:
        """Advances all worlds by one step.

        Args:
            state_in: the state now: poses and velocities of bodies, and ``body_f``, which acts during the step.
            state_out: the state afterwards; may be ``state_in``.
            control: forces and targets; None: those of the model's initial control.
            contacts: a list from ``model.collide(state_in, contacts)``, or one of the user's; None: the solver calls ``model.collide``. An
                empty list: no contacts.
            dt: time step [s].

        Raises:
            TypeError: an argument is of another kind.
            ValueError: ``dt`` is not positive, or an array belongs to another model.
            RuntimeError: a tape records, and an array requires a gradient; or a graph is being captured.

        The first step warns if the anchors of a joint are more than 1 cm apart, or if ``state_in`` is as ``model.state()`` makes it and its
        poses are not those of its joint coordinates.
        """
        model = self.model
        check_recorded(model.device, "SolverXPBD.step")
        self._check_version()
        dt = as_time_step(dt)
        control = self._default_control() if control is None else control
        for name, state in (("state_in", state_in), ("state_out", state_out)):
            if not hasattr(state, "body_f"):
                raise TypeError(f"{name} must be a State, as model.state() makes it, not {type(state).__name__}")
            check_made_by(model, state, name)
        if not hasattr(control, "joint_target_q"):
            raise TypeError(
                f"control must be None or a Control, as model.control() makes it, not {type(control).__name__}"
            )
        before = arrays_of_state(model, state_in, "joint_q", "body_q", "body_qd")
        after = arrays_of_state(model, state_out, "joint_q", "joint_qd", "body_q", "body_qd")
        check_row(model, state_in.body_f, "state_in.body_f", 6 * model.body_count)
        commands = [
            check_row(model, getattr(control, name), f"control.{name}", size)
            for name, size in (
                ("joint_target_q", model.joint_coord_count), ("joint_target_qd", model.joint_dof_count), ("joint_f", model.joint_dof_count),
                ("joint_act", model.joint_dof_count),
                *((name, model.tendon_count) for name in _OF_TENDONS if self._lines and model.tendons),
            )
        ]  # fmt: skip
        if active_tape() is not None and any(a.requires_grad for a in (*before, *after, *commands)):
            raise RuntimeError(
                "SolverXPBD.step has no gradients, but a tape is recording and an array requires a gradient"
            )
        if not model.body_count:
            return
        rates = begin_rates(model, state_in, state_out)
        if self._last_length is None and not self._warned:
            self._warned = True
            load_ahead(self, self._kernel, contacts, finds=contacts is None and self._contact_room > 0)
            if not warn_open_joints(model, before[1].numpy(), stacklevel=3):
                warn_unposed(model, state_in, stacklevel=3)
        if self._closing.active:
            self._closing.before_step(self, before[1], self.max_depenetration_speed, dt)
        handed = contacts is not None
        if self._sleepers is None:
            contacts = self._contacts(state_in, contacts)
        else:
            given = contacts
            contacts = self._sleepers.before_step(
                *before[1:], state_in.body_f, commands[2:4], lambda: self._contacts(state_in, given), given
            )
        angles = before[0]
        if self.update_joints and model.joint_coord_count:
            if state_in.joint_q.ptr == state_out.joint_q.ptr:
                if self._before is None:
                    self._before = wp.empty_like(state_in.joint_q)
                wp.copy(self._before, state_in.joint_q)
                angles = self._before
            else:
                wp.copy(state_out.joint_q, state_in.joint_q)
        arrays = (*before, state_in.body_f, *after[2:], *commands, angles)
        self._run(arrays, contacts, dt)
        if self._sleepers is not None:
            self._sleepers.after_step(*after[2:], contacts, dt)
        end_rates(model, rates, state_out, dt)
        self._reported = Reported(contacts, handed, self._wrench(contacts))
        if self.update_joints and model.articulation_count:
            eval_ik(model, state_out, state_out.joint_q, state_out.joint_qd)
            if self._turning.size:
                inputs = [self._turning, flat(angles, model.dtype), flat(state_out.joint_q, model.dtype)]
                wp.launch(turn_kernel(model.dtype), dim=self._turning.size, inputs=inputs, device=model.device)

    def update_contacts(self, contacts, state=None) -> None:
        """Writes the contacts of the last step into a list, with their forces.

        The solver finds contacts at the start of a step, so that points and normals are those of ``state_in`` of the step. The wrench of a
        contact is its mean over the step: the sum of its impulses in all sub-steps, divided by ``dt``. Contacts of shapes that come close
        but do not touch have zero force. The order is that of ``model.collide``. Where there is no room for all, each world keeps about the
        same number, those with the largest forces; ``contacts.dropped`` and ``contacts.dropped_by_world`` tell how many are dropped.

        If the last step got a list of contacts, `contacts` must be this list, unchanged. Its contacts stay, and ``contacts.force`` gets
        their forces.

        Args:
            contacts: the list, from ``model.contacts()``. ``contacts.force`` is written if it exists.
            state: not used; all numbers are kept from the step.

        Raises:
            TypeError: ``contacts`` are not a list of contacts.
            ValueError: ``model.request_contact_attributes("force")`` was not called before the last step, or before the list was made that
                the last step got; the last step got another list; ``contacts`` belong to another model.
        """
        check_contacts(self.model, contacts)
        report_contacts(self.model, self._reported, contacts)

    def _contacts(self, state, contacts):
        """The list of contacts of this step; None: there are none."""
        model = self.model
        if contacts is not None:
            check_contacts(model, contacts)
            return contacts if contacts.rigid_contact_max else None
        if not self._contact_room:
            return None
        moves = None if self._sleepers is None else self._sleepers.moves
        if self._found is None:
            self._found = model.contacts()
        collide(model, state, self._found, self.unsupported_contacts, moves)
        count = int(self._found.rigid_contact_count.numpy()[0])
        if count > self._found.rigid_contact_max:
            # no contact is dropped
            self._found = model.contacts(rigid_contact_max=2 * count)
            collide(model, state, self._found, self.unsupported_contacts, moves)
        return self._found

    def _run(self, arrays, contacts, dt: float) -> None:
        lists = wrench = None
        if contacts is not None:
            lists, wrench = self._list_arrays(contacts.rigid_contact_max), self._wrench(contacts)
        key = (
            *(a.ptr for a in arrays), 0 if contacts is None else contacts.rigid_contact_normal.ptr,
            0 if lists is None else lists["now"],
        )  # fmt: skip
        settings = self._key(dt, contacts is not None)
        found = self._recorded.get(key)
        if found is None:
            if len(self._recorded) >= _RECORDED:
                self._recorded.clear()
            N = self._listed(contacts)
            share = None
            if lists is not None:
                share = sharing(N, lists, len(self._slots.chunks), self.model.dtype, self.device)
            found = self._recorded[key] = [None, *self._record(arrays, contacts, N, dt), share]
        _, launches, _, share = found
        if wrench is not None:
            # contacts between bodies that no force moves have none
            wrench.zero_()
        if share is not None:
            share()
        if found[0] != settings:
            launches.set_param_by_name("o", self._options(dt, contacts is not None))
            found[0] = settings
        launches.run()
        self._last_length = dt / self.substeps
        if lists is not None:
            lists["now"] = 1 - lists["now"]

    @compiling
    def _record(self, arrays, contacts, N, dt: float):
        model, (Bodies, Joints, _, _, Lines, Laws, _, Trees) = self.model, self._structs
        kinds = warp_types(model.dtype)
        _, body_q, body_qd, body_f, next_q, next_qd, target_q, target_qd, joint_f, joint_act, *of_tendons, angles = (
            arrays
        )
        G, J = Bodies(), Joints()
        for name, array in self._bodies.items():
            setattr(G, name, array)
        for name, array in self._joints.items():
            setattr(J, name, array)

        def typed(array, dtype):
            row = flat(array, model.dtype)
            return wp.array(ptr=row.ptr, dtype=dtype, shape=(model.body_count,), device=model.device, copy=False)

        G.body_q, G.next_q = typed(body_q, kinds.transform), typed(next_q, kinds.transform)
        G.body_qd, G.next_qd = typed(body_qd, kinds.spatial_vector), typed(next_qd, kinds.spatial_vector)
        G.body_f, G.joint_f = typed(body_f, kinds.spatial_vector), flat(joint_f, model.dtype)
        J.joint_q, J.target_q, J.target_qd = (flat(a, model.dtype) for a in (angles, target_q, target_qd))
        G.joint_act = flat(joint_act, model.dtype)
        J.joint_f, J.joint_act = G.joint_f, G.joint_act
        empty = wp.zeros(1, dtype=model.dtype, device=model.device)
        none = wp.zeros(1, dtype=wp.int32, device=model.device)
        lists = self._lists if contacts is not None else dict(a=none, b=none, numbers=empty)
        X = Lines()
        for name, array in self._lines.items():
            setattr(X, name, array)
        for name, array in zip(("force", "target_q", "target_qd"), of_tendons or [empty] * 3, strict=True):
            setattr(X, name, flat(array, model.dtype) if of_tendons else array)
        T = Trees()
        for name, array in self._trees.items():
            setattr(T, name, array)
        R = Laws()
        if self._laws and contacts is not None:
            for name, value in self._laws.items():
                setattr(R, name, value)
            banks = lists["banks"][lists["now"]], lists["banks"][1 - lists["now"]]
            R.extra, R.law, R.now, R.kept = lists["extra"], lists["law"], *(bank["turn"] for bank in banks)
        inputs = [G, J, X, N, R, T, lists["a"], lists["b"], lists["numbers"], self._options(dt, contacts is not None)]

        def record(first, count, member, members, block_dim):
            M = self._teams.member(self._structs[6], member, members)
            values = [first, *inputs[:-1], M, inputs[-1]]
            return wp.launch(
                self._kernel, dim=count, inputs=values, device=model.device, record_cmd=True, block_dim=block_dim
            )

        return Launches(self._teams, record), (arrays, contacts, inputs, G, J, X, R, T)
