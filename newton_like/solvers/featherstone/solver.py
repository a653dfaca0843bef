"""SolverFeatherstone: articulations in generalized coordinates, with contacts, limits, drives and friction as constraints."""

from __future__ import annotations

import math
from collections.abc import Iterable

import warp as wp

from newton_like.arrays import active_tape, keep_for_graph, unrecorded
from newton_like.coercion import as_count, as_number, as_time_step
from newton_like.collision.ground import refuse_unsupported, shape_kinds, unsupported_pairs
from newton_like.collision.pairs import cluster_kinds, find_clusters, resolved
from newton_like.collision.pipeline import check_contacts
from newton_like.collision.watch import ShapeWatch
from newton_like.kernels.layout import STEP_ROWS
from newton_like.model.editing.edits import checked_names
from newton_like.model.editing.graphs import Graphs, add_capture
from newton_like.model.model import EVALUATORS
from newton_like.model.mujoco.contact_settings import declare_body_settings, declare_contact_settings
from newton_like.model.mujoco.effort_settings import declare_effort_settings
from newton_like.model.mujoco.equality_settings import declare_equality_settings
from newton_like.model.state import ON_REQUEST
from newton_like.programs.changes import Changes
from newton_like.programs.device import lane_width
from newton_like.programs.recording import Recording, Recordings
from newton_like.programs.robot import namespace
from newton_like.solvers.base import SolverBase
from newton_like.solvers.edit_kernels import load_edit_kernels
from newton_like.solvers.featherstone.actuators import ActuatorWatch
from newton_like.solvers.featherstone.arrays import PLAIN, WITH_ACTUATORS, WITH_TENDONS
from newton_like.solvers.featherstone.closures import LoopWatch
from newton_like.solvers.featherstone.contradictions import check_constraints
from newton_like.solvers.featherstone.couplings import Coupling, CouplingForces
from newton_like.solvers.featherstone.newton_options import refuse_unknown
from newton_like.solvers.featherstone.report import ContactReport, unused_by_world
from newton_like.solvers.featherstone.requested import DERIVED, Requested
from newton_like.solvers.featherstone.stepper import Stepper, make_steppers
from newton_like.solvers.featherstone.tendons import TendonWatch
from newton_like.solvers.settings import Fixed, Setting, positive, rate
from newton_like.threads import compiling, in_series
from newton_like.types import warp_types

_RECORDED = 16
DRIVE_PASSES = 4
"""Passes of the search for saturated drives; most steps need none."""


def _tolerance(value, name: str) -> float:
    share = as_number(value, name)
    if not 0.0 <= share < 1.0:
        raise ValueError(f"{name} {share:g} must be at least 0 and below 1")
    return share


class SolverFeatherstone(SolverBase):
    """Steps articulated bodies in generalized coordinates.

    A step, for every world: half a step of drift with the old velocity; kinematics; bias forces (recursive Newton-Euler) at the
    middle of the old and the new velocity; joint-space inertia (composite rigid bodies) with armature and the implicit terms of
    damping, springs and drives; its sparse LTDL factors; contacts of shapes; one constraint row for every contact
    direction, limit, friction loss and coupling; block projected Gauss-Seidel with warm start in a fixed order; half a step of
    drift with the new velocity. ``state_out`` receives joint coordinates and velocities, and the corresponding poses and
    velocities of bodies. Passive motion is integrated to second order in ``dt``. Drives, friction, limits and contacts are
    integrated to first order.

    The solver counts the energy that the discretisation adds in each world, and removes it by joint damping. The energy of motion
    that turns by more than about 0.2 rad in a step may be wrong for some steps.

    The results of a world are bitwise identical in every run, for any number of worlds, any index of the world and any number of
    threads.

    A contact with the force f has the penetration ``f / m time_constant^2``, where m is the effective mass of the point along the
    normal. With the default damping ratio, contacts and limits do not rebound: an impact ends within one step, and the remaining
    penetration is corrected within ``2 damping_ratio time_constant`` (0.2 s). Moving convex shapes touch planes, fixed convex shapes, fixed
    triangle meshes, height fields and each other. Meshes on bodies are taken as their convex hulls. Meshes and height fields have a front
    side: a body whose middle is below a height field is pushed out along the normal, at any depth; behind a triangle of a mesh, spheres and
    capsules are pushed out up to their radius, and other shapes while their middle is in front. Models whose shapes may touch planes or
    height fields on moving bodies raise ValueError, unless ``unsupported_contacts="ignore"``.

    A kinematic body keeps the joint velocity of ``state_in``, bit by bit, and its pose is integrated from that velocity. Set
    ``joint_q`` and ``joint_qd`` before a step to prescribe its motion. Forces, gravity, contacts, and the drives, springs, friction and
    limits of its joint do not change it. Bodies that hang on it move as on a body of infinite mass. A step takes the velocity as
    constant, and the joint velocities of bodies that hang on it are relative to it. If you change it between steps with the
    acceleration a, add the inertial forces ``-M[:, root] a`` to ``Control.joint_f``; M is that of
    :func:`newton_like.dynamics.mass_matrix`. Contact forces grow from step to step while a kinematic body presses bodies that hang on
    it against the ground, and their joints cannot give way.

    Args:
        model: the model.
        iterations: sweeps over all constraint rows in a step; where bodies touch each other, or tendons, loop joints or couplings act on
            them, see `tolerance`.
        substeps: a call of :meth:`step` takes so many steps of ``dt / substeps``, with the same forces and targets. This is faster than as
            many calls, and gives the same bits.
        tolerance: where bodies touch each other, sweeps go on, up to eight times `iterations`, until a round of sweeps changes the
            velocities of a world by no more than this part of the change by all impulses, in the norm of the kinetic energy. The first
            round has `iterations` sweeps and starts from the impulses of the step before; each further round has as many sweeps as all
            before. A world is done after half of `iterations` (if they are four or more) if these changed its velocities by no more than a
            hundredth of this bound. A single robot whose links touch each other is solved in another way, unless couplings, loop joints or
            tendons act on it: after one and a half times `iterations` (with one world a thread, three quarters), steps of Newton solve it,
            until a sweep would change the velocities by about a fifth of `tolerance` or less; before these steps, a world is done after an
            even number of sweeps if the last one changed its velocities by no more than a tenth of it. Sweeps of a single robot with
            couplings, loop joints or tendons, whose links do not touch each other, go on in the same way, with two differences: the first
            round has the second half of `iterations`, and the early end counts the second half of the sweeps so far. A small change is no
            bound of the error: where tendons, stops and contacts act against each other, the error may be ten times `tolerance` or more. A
            world's result does not depend on the other worlds. 0: always the largest number.
        evaluator: ``"general"``: one compiled kernel for all robots; ``"specialised"``: straight-line code for each robot of the
            model, which is faster and is compiled at its first use and cached on disk; ``"auto"``: specialised where a robot's
            program stays within ``newton_like.solvers.featherstone.specialise.BUDGET`` operations. Both give bitwise identical
            results on a CPU if the lane width is above 1.
        restitution_speed: impacts below this speed have no restitution [m/s].
        max_depenetration_speed: largest speed at which overlapping shapes are separated, at which rigid loops that are open close, and
            at which DISTANCE joints return to their limits [m/s]. Separating shapes at a speed v adds no more energy than m v^2, with
            the mass m of the bodies: shapes that joints hold in each other are separated more slowly or not at all.
        angular_damping: decay rate [1/s] of the angular velocities of FREE and DISTANCE joints. Each step multiplies these
            velocities by ``exp(-angular_damping dt)``.
        unsupported_contacts: ``"error"`` or ``"ignore"``.
        unsatisfied_constraints: ``"error"``: rigid loop joints, relations between joints and ties of tendons that no coordinates satisfy
            together are refused, where a search for coordinates leaves no doubt: it ends several times at the same place, and a gap there
            is above 1 cm or 0.01 rad. Smaller gaps and doubtful cases are warnings. ``"warn"``: all are warnings. A step then satisfies
            some of them and leaves the others open.
        varying: names of model arrays whose numbers will be edited, such as ``("body_mass", "shape_material_mu")``; they are
            added to ``Model.varying``. Specialised kernels read these arrays from memory, so :meth:`notify_model_changed` does
            not compile them again; the kernels of notices and of :meth:`reset` are loaded when the solver is made. Parameters of
            other arrays are constants of the kernel while they are equal in all worlds; the first edit of such a parameter compiles the
            kernel again. Arrays of tendons and actuators are read from memory without being named, except ``tendon_armature`` of a tendon
            without inertia, or in a model whose joints have soft limits; places and sizes of their sites and shapes are constants
            until they are edited, see ``shape_transform`` and ``shape_scale``. Loop joints have rows for the forces of all named
            arrays, also where these are zero. If the limits of the distance of a loop joint become equal, or different, the kernel
            is always compiled again.
        width: worlds per kernel thread, see :func:`newton_like.programs.device.lane_width`.
        threads: CPU threads, see :func:`newton_like.threads.worker_count`.
        newton_options: options of Newton 1.8 that choose how it computes: ``use_tile_gemm``, ``fuse_cholesky``, ``deterministic`` and
            ``friction_smoothing`` have no effect; ``update_mass_matrix_interval`` must be 1.

    Raises:
        TypeError: `model` is not a model, an argument is unknown or of another type.
        ValueError: an argument is out of range; a surface is too large for its table; or the model has features that this solver does not
            support: disabled joints of trees; loop joints between two articulations, and loop joints with forces along three angular axes
            whose second one has no limits within +-85 degrees; equality constraints between other joints than revolute and prismatic ones
            of one articulation; shapes that may touch planes and height fields on moving bodies; or rigid constraints contradict each
            other, see `unsatisfied_constraints`.

    ``iterations``, ``substeps``, ``tolerance``, ``restitution_speed``, ``max_depenetration_speed`` and ``angular_damping`` are attributes
    that may be written at any time, with the same errors; the next step uses the new values. A captured graph keeps its values. The other
    settings cannot be changed.
    """

    supports = frozenset({"kinematic bodies", "loop joints", "tendons", "actuators"})
    results = frozenset(ON_REQUEST)

    iterations = Setting(as_count)
    substeps = Setting(as_count)
    tolerance = Setting(_tolerance)
    restitution_speed = Setting(positive)
    max_depenetration_speed = Setting(positive)
    angular_damping = Setting(rate)
    evaluator, unsupported_contacts, unsatisfied_constraints, width, threads = (Fixed() for _ in range(5))

    def __init__(
        self,
        model,
        *,
        iterations: int = 8,
        substeps: int = 1,
        tolerance: float = 1.0e-3,
        evaluator: str = "auto",
        restitution_speed: float = 0.2,
        max_depenetration_speed: float = 1.0,
        angular_damping: float = 0.0,
        unsupported_contacts: str = "error",
        unsatisfied_constraints: str = "error",
        varying: Iterable[str] = (),
        width: int | None = None,
        threads: int | None = None,
        **newton_options,
    ):
        refuse_unknown(SolverFeatherstone, newton_options)
        if evaluator not in EVALUATORS:
            raise ValueError(f"evaluator {evaluator!r} must be one of {EVALUATORS}")
        if unsupported_contacts not in ("error", "ignore"):
            raise ValueError(f"unsupported_contacts {unsupported_contacts!r} must be 'error' or 'ignore'")
        if unsatisfied_constraints not in ("error", "warn"):
            raise ValueError(f"unsatisfied_constraints {unsatisfied_constraints!r} must be 'error' or 'warn'")
        self._recorded = None
        self.iterations = iterations
        self.substeps = substeps
        self.tolerance = tolerance
        self.restitution_speed = restitution_speed
        self.max_depenetration_speed = max_depenetration_speed
        self.angular_damping = angular_damping
        super().__init__(model)
        model.varying |= checked_names(varying, "varying")
        self.evaluator = evaluator
        self.unsupported_contacts = unsupported_contacts
        self.unsatisfied_constraints = unsatisfied_constraints
        self.width = lane_width(model.device, model.dtype, width)
        self.threads = threads
        if unsupported_contacts == "error":
            self._refuse_contacts()
        self.m = namespace(self.width, model.dtype, STEP_ROWS)
        # no mask: all worlds step
        self.nothing = wp.zeros(0, dtype=wp.bool, device=model.device)
        self._recorded, self._cuda = Recordings(_RECORDED, model.device), model.device.is_cuda
        self._handed, self._loops = None, LoopWatch(model)
        check_constraints(
            model, self._loops.rows, "SolverFeatherstone", unsatisfied_constraints == "error", stacklevel=3
        )
        self._tendons = TendonWatch(model)
        self._actuators, self._couplings = ActuatorWatch(model), CouplingForces(self)
        self.ports = WITH_ACTUATORS if model.actuator_count else WITH_TENDONS if model.tendon_count else PLAIN
        self.changes = Changes(model, prescribed=True)
        self._steppers, self._given = self._make_steppers(), None
        self._find_requested()
        self._watch, self._broken = ShapeWatch(model), False
        # graphs of resets; and whether graphs write the contact forces to memory that an edit took from the solver
        self._forgetting, self._forces_elsewhere = Graphs(), False
        self._last_was_handed = False
        # the recording of the last step, in a list because setting an attribute takes long; what writes lists of contacts; and what is
        # launched beside a step, see :mod:`newton_like.solvers.featherstone.beside`
        self._recent, self._report, self._beside = [None], None, []
        if model.varying:
            load_edit_kernels(self)
        self._complete = type(self) is SolverFeatherstone

    @staticmethod
    def register_custom_attributes(builder) -> None:
        """Declares MuJoCo's settings of contacts and joint limits as custom attributes, in the namespace ``mujoco``. :func:`add_mjcf` does
        so for files with such settings.

        Of shapes: ``contact_rules`` (0: the rules of :class:`ShapeConfig`; or a sum of 1: friction as in MuJoCo, 2: softness as in MuJoCo,
        4: the larger sliding friction in contacts of two shapes with this number), ``condim``, ``geom_priority``, ``geom_solmix``,
        ``solref`` (time constant [s] and damping ratio; or, as negative numbers, stiffness [1/s^2] and damping [1/s]),
        ``geom_solimp`` (least and largest impedance, width [m], midpoint, power),
        ``geom_turning_friction`` (torsional and rolling [m]). Sliding friction is ``shape_material_mu``. Of pairs, the custom frequency
        ``mujoco:pair``: ``pair_geom1``, ``pair_geom2`` (shapes), ``pair_condim``, ``pair_friction`` (five numbers: the second and the fifth
        are not used), ``pair_solref``, ``pair_solimp``, ``pair_margin`` [m], ``pair_gap`` [m] (not used). Of degrees of freedom:
        ``limit_rules`` (1: their position limits are soft as in MuJoCo), ``solreflimit``, ``solimplimit`` (the width in [m] or [rad]),
        ``limit_margin`` (how far before the limit it acts, [m] or [rad]); those of the first one of a ball joint are for ``max_angle`` and
        ``max_swing``; ``effort_rules`` (1: the effort limit is the half width of a range of the sum of the forces of the drive and all
        actuators), ``effort_middle`` (the middle of this range), ``jnt_actgravcomp`` (1: compensated weight counts, too). Of equality
        constraints, the custom frequency ``mujoco:equality_constraint``: ``equality_constraint_target``, the loop joint or the mimic
        joint that is the constraint; or
        ``equality_constraint_joint1``, ``equality_constraint_joint2`` (-1: none) and ``equality_constraint_polycoef``, five coefficients of
        the polynomial that gives the coordinate of the first joint; ``eq_rules`` (1: soft), ``eq_solref``, ``eq_solimp`` (the width in
        [m] or [rad]), ``equality_constraint_enabled`` (0: the constraint is off, also a target). Of bodies: ``gravcomp``, the share of
        their weight that is taken away; notify ``BODY_INERTIAL_PROPERTIES`` after editing it.

        In a contact of two shapes, a shape that states no rules has no share in the softness, and the priority 0. The solver reads the
        settings when it is made, and after ``notify_model_changed(ModelFlags.SHAPE_PROPERTIES)`` or ``JOINT_DOF_PROPERTIES``. Contacts that
        are handed over have them, too.

        Args:
            builder: a :class:`newton_like.model.builder.builder.ModelBuilder`.
        """
        declare_contact_settings(builder)
        declare_equality_settings(builder)
        declare_body_settings(builder)
        declare_effort_settings(builder)

    def _settings_changed(self) -> None:
        # the next step passes the options to its recording again
        for recording in (self._recorded or {}).values():
            recording.dt = None

    def _refuse_contacts(self) -> None:
        refuse_unsupported(
            self.model, unsupported_pairs(self.model, dynamic=True, known=resolved), "SolverFeatherstone resolves"
        )

    def _kinds_changed(self) -> None:
        if self.unsupported_contacts == "error":
            self._refuse_contacts()

    @compiling
    def _make_steppers(self, given: bool = False) -> list[Stepper]:
        clusters, count = find_clusters(self.model), self.model.articulation_count
        watches = (self._loops, self._tendons, self._actuators)
        parts = shape_kinds(self.model), *(watch.kinds(count) for watch in watches)
        kinds = [b"".join(found) for found in zip(*parts, strict=True)]
        return make_steppers(self, cluster_kinds(kinds, clusters), clusters, given)

    def _refresh(self) -> None:
        if self._broken or self._bonds_changed() or self._watch.changed(self.model):
            if self.unsupported_contacts == "error":
                self._refuse_contacts()
            for watch in (self._loops, self._tendons, self._actuators):
                watch.accept(self.model)
            self._steppers, self._given = self._make_steppers(), None
            self._outdate(moved=True)
            self._watch.accept(self.model)
        # after an error everything is made again
        self._broken = True
        self.changes.look(self.model, self._version)
        steppers = (*self._steppers, *(self._given or ()))
        memory = [stepper.kept for stepper in steppers]
        stale = [stepper for stepper in steppers if stepper.refresh()]
        if stale:
            moved = any(stepper.kept is not kept for stepper, kept in zip(steppers, memory, strict=True))
            self._outdate(set().union(*(stepper.work.parameters.freed for stepper in stale)), moved)
        self._find_requested()
        self._broken = False

    def _find_requested(self) -> None:
        wanted = not DERIVED.isdisjoint(self.model.state_attributes)
        self._requested = Requested(self) if wanted else None

    def _bonds_changed(self) -> bool:
        found = [watch.changed(self.model) for watch in (self._loops, self._tendons, self._actuators)]
        return any(found)

    def _outdate(self, names=(), moved: bool = False) -> None:
        """Forgets recorded launches, which do not see an edit; `moved`: the forces of the last step went with their memory."""
        old = self._recorded.outdate(names, moved)
        if moved:
            self._forgetting.outdate(names, moved)
            self._forces_elsewhere |= old

    @property
    def loops(self):
        """The rows of the model's loop joints; None: there are none."""
        return self._loops.rows

    @property
    def tendons(self):
        """The tendons of the model; None: there are none."""
        return self._tendons.tendons

    @property
    def drives_loops(self) -> bool:
        """Whether a loop joint has a drive."""
        return self._loops.driven

    @property
    def contact_room(self) -> int:
        """How many contacts a step can find."""
        return sum(s.batch.count * s.work.numbers["candidates"] for s in self._steppers)

    @property
    def actuators(self) -> ActuatorWatch:
        """The actuators of the model."""
        return self._actuators

    def graphs(self) -> list:
        """The graphs that repeat steps, and resets."""
        return [self._recorded.graphs, self._forgetting]

    def _forget(self, mask: wp.array) -> None:
        for stepper in (*self._steppers, *(self._given or ())):
            stepper.forget(mask)
        if self.device.is_capturing:
            self._forgetting.add(self.device)
            add_capture(self.model, self)

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0) -> None:
        """Advances all worlds by one step.

        Args:
            state_in: the state now; its ``body_f`` acts during the step. In addition, only ``joint_q``, ``joint_qd`` and,
                with actuators, ``actuator_act`` are read.
            state_out: the state afterwards; may be ``state_in``.
            control: forces and targets; None: those of the model's initial control.
            contacts: None: the solver finds the contacts. Otherwise a list from ``model.collide(state_in)``, or one
                of the user's, of contacts of moving shapes with fixed ones of any kind and with each other; it is used as it is, by the
                general kernel. See :meth:`unused_contacts`.
            dt: time step [s]; with :attr:`substeps`, the length of all of them together.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: ``dt`` is not positive, or an array belongs to another model.
            RuntimeError: a tape records, and an array requires a gradient, which a step does not have.
        """
        model = self.model
        self._check_version()
        try:
            arrays = self.ports.arrays_of(state_in, self._default_control() if control is None else control, state_out)
        except AttributeError:
            self.ports.check_arguments(state_in, control, state_out)
            raise
        if active_tape() is not None and any(a is not None and a.requires_grad for a in arrays):
            raise RuntimeError(
                "SolverFeatherstone.step has no gradients, but a tape is recording and an array requires a gradient; use "
                "newton_like.dynamics.integrate, which has gradients, or step outside of the tape"
            )
        if contacts is not None:
            check_contacts(model, contacts)
            if self._given is None:
                with unrecorded(model.device, "SolverFeatherstone.step"):
                    self._given = self._make_steppers(given=True)
        steppers = self._steppers if contacts is None else self._given
        capturing = model.device.is_capturing
        key = (
            contacts is None,
            self.substeps,
            capturing and not self._cuda,
            *[0 if a is None else a.ptr for a in arrays],
        )
        # which recording was used last does not matter enough to keep count of it in every step
        recording = self._recorded.get(key)
        if recording is None:
            if state_out is model:
                raise TypeError(
                    "state_out must be a State, as model.state() makes it, not the model, whose state reset restores"
                )
            recording = self._recorded.add(key, self._record(steppers, arrays, dt))
        if recording.dt != dt:
            recording.set_param_by_name("o", self._options(dt))
            recording.dt, recording.length = dt, float(dt)
        if contacts is not None:
            self._hand_over(contacts)
        if self._last_was_handed is not (contacts is not None):
            self._last_was_handed = contacts is not None
        if capturing:
            # a graph reads what its launches are told from arrays that nobody else may keep
            self._recorded.capture(recording, recording.arrays)
            add_capture(model, self)
            homes = [stepper.hand_over.home for stepper in self._given or ()]
            keep_for_graph(model.device, self, *(() if contacts is None else (contacts, self._used, *homes)))
        self._recent[0] = recording
        if self._beside:
            recording.run_beside(self._beside[0], steppers[0].shares_of_worlds)
            return
        if self._loops.driven:
            # of control.joint_target_q and joint_target_qd
            targets = self.ports.check_arrays(model, arrays)[0][4:6]
            for stepper in steppers:
                stepper.closures.put_targets(stepper.work, self.loops, *targets)
        if self._requested is None:
            recording.run()
            return
        self._requested.before(state_in, self._default_control() if control is None else control, state_out)
        recording.run()
        self._requested.after(state_in, state_out, contacts)

    def _hand_over(self, contacts) -> None:
        self._used = wp.zeros(max(contacts.rigid_contact_max, 1), dtype=wp.int32, device=self.model.device)
        self._handed = contacts
        for stepper in self._given:
            stepper.hand_over.place(contacts, self._used)

    def _of_last_step(self):
        """The steppers of the last step; after an edit that replaced them those that replace them, if there are any yet."""
        return (self._given or ()) if self._last_was_handed else self._steppers

    def unused_contacts(self) -> int:
        """Number of unused contacts of the list that was passed to the last step with ``contacts=``.

        Not used are contacts of which no force moves either shape (both are fixed or on kinematic bodies), those of shapes that do not
        exist, those of moving shapes that filters keep apart or whose contacts the solver does not find, more than
        ``newton_like.collision.handed.SLOTS`` of one shape with fixed shapes, ``HULL_SLOTS`` of a convex hull, more contacts of a pair of
        moving shapes than the solver finds (four; of round shapes less, of hulls up to eight), and those the list had no room for.
        """
        if not self._last_was_handed:
            return 0
        return int(self._handed.rigid_contact_count.numpy()[0]) - int(self._used.numpy().sum())

    def unused_contacts_by_world(self):
        """:meth:`unused_contacts` of each world, a NumPy array ``[world_count + 1]``; the last entry is for shapes of no single world."""
        handed, used = (self._handed, self._used) if self._last_was_handed else (None, None)
        return unused_by_world(self.model, handed, used)

    def update_contacts(self, contacts, state=None) -> None:
        """Writes the contacts of the last step (with :attr:`substeps`, of the last of them) into a list, with their forces.

        The solver finds contacts in the middle of a step: poses, points and directions are those half a step before the state that it
        writes. All contacts are listed that could act: those of shapes that come close but do not touch have zero force. The contacts of
        a world follow each other, in the order of the candidates of the solver. Where there is no room for all, each world keeps about the
        same number, those with the smallest gaps; ``contacts.dropped`` and ``contacts.dropped_by_world`` tell how many are dropped.

        If the last step got a list of contacts, `contacts` must be this list, unchanged. Its contacts stay, and ``contacts.force`` gets
        their forces; those of :meth:`unused_contacts` are zero.

        Args:
            contacts: the list, from ``model.contacts()``. ``contacts.force`` is written if it exists.
            state: the state that the last step wrote, unchanged; None: the one that was its ``state_out``.

        Raises:
            TypeError: ``contacts`` are not a list of contacts, ``state`` is not a state.
            ValueError: ``model.request_contact_attributes("force")`` was not called before the last step, or before the list was made that
                the last step got; the last step got another list; an edit gave the solver other memory, and there was no step since;
                ``contacts`` or ``state`` belong to another model.
        """
        if self._report is None:
            self._report = ContactReport(self.model)
        if not self._last_was_handed:
            self._report.write(self.model, self._steppers, self._recent[0], state, contacts)
            return
        check_contacts(self.model, contacts)
        if contacts is not self._handed:
            raise ValueError("update_contacts(): the last step got another list of contacts; pass that list")
        self._report.write_forces(self.model, self._given or (), self._recent[0], state, contacts)

    def contact_forces(self) -> wp.array:
        """The force that contacts exerted on each moving shape in the last step.

        Returns:
            ``[shape_count]`` vec3, world axes [N]; zero for planes and other fixed shapes.

        A launch of a captured graph is a step like any other. The forces of a graph that was captured before an edit of shapes or limits
        are not known: the edit gave the solver other memory, and :meth:`notify_model_changed` warned of the graph.

        Raises:
            ValueError: there was no step since such an edit, and there are graphs of steps from before it.
        """
        if self._forces_elsewhere:
            raise ValueError(
                "contact_forces(): there was no step since an edit that gave the solver other memory, and graphs from before the edit write"
                " their forces to the old memory; capture the graph of the step again, or call step"
            )
        force = wp.zeros(self.model.shape_count, dtype=warp_types(self.model.dtype).vec3, device=self.model.device)
        for stepper in self._of_last_step():
            stepper.add_forces(force)
        return force

    def loop_forces(self) -> wp.array:
        """The forces of loop joints in the last step.

        Returns:
            ``[articulation_count, rows]``: along the rows of :func:`newton_like.dynamics.constraint_jacobian`, on the child [N]; for rows
            that keep angles [N m]. Rows that an articulation lacks and those of disabled joints are zero. With :attr:`substeps`, the forces
            of the last of them. Others, along the directions of motion and of DISTANCE joints, are among :meth:`coupling_forces`.
        """
        loops = self.loops
        count = 0 if loops is None else loops.loops.count
        force = wp.zeros((self.model.articulation_count, count), dtype=self.model.dtype, device=self.device)
        for stepper in self._of_last_step():
            stepper.closures.take_forces(stepper.work, stepper.kept, force)
        return force

    def tendon_forces(self) -> wp.array:
        """The forces of tendons in the last step.

        Returns:
            ``[tendon_count]`` [N; N m of fixed tendons along angles]: of springs, dampers, drives, friction and limits together. A tendon
            that pulls has a negative force: the joint forces are those of the Jacobian of :func:`newton_like.dynamics.tendon_jacobian`,
            transposed, times these. With :attr:`substeps`, the forces of the last of them. Those of ties are among :meth:`coupling_forces`.
        """
        force = wp.zeros(self.model.tendon_count, dtype=self.model.dtype, device=self.device)
        for stepper in self._of_last_step():
            stepper.tendons.take_forces(stepper.work, stepper.kept, force)
        return force

    @property
    def couplings(self) -> list[Coupling]:
        """What the entries of :meth:`coupling_forces` belong to: by world, then by kind, as :class:`Coupling` lists them, then by index."""
        return list(self._couplings.listed)

    def coupling_forces(self) -> wp.array:
        """The forces of mimic joints, DISTANCE joints, polynomials between joints and ties of tendons in the last step; of springs, drives,
        friction and limits of loop joints; and of limits of ball joints.

        Returns:
            ``[len(couplings)]``: of each of :attr:`couplings` along its first coordinate or length, with the signs and units of its class.
            Those that are not enabled or do not act are zero. With :attr:`substeps`, the forces of the last of them.
        """
        return self._couplings.take(self._of_last_step())

    def _options(self, dt: float):
        dt = as_time_step(dt) / self.substeps
        o = self.m.Options()
        o.dt = dt
        o.inverse_dt = 1.0 / dt
        o.iterations = self.iterations
        o.drive_passes = DRIVE_PASSES
        o.restitution_speed = self.restitution_speed
        o.tolerance = self.tolerance
        o.push_speed = self.max_depenetration_speed
        o.spin_share = math.exp(-self.angular_damping * dt)
        return o

    @compiling
    def _record(self, steppers, arrays, dt: float) -> Recording:
        self._forces_elsewhere = False
        options = self._options(dt)
        inputs, outputs = self.ports.check_arrays(self.model, arrays)
        with unrecorded(self.model.device, "SolverFeatherstone.step"):
            recorded = [s.record(inputs, outputs, options) for s in steppers]
            launches, reads = ([each[i] for each in recorded] for i in range(2))
            if self.substeps > 1:
                rest = recorded
                following = self.ports.after(inputs, outputs)
                if any(a is not b for a, b in zip(inputs, following, strict=True)):
                    rest = [s.record(following, outputs, options) for s in steppers]
                    reads += [each[1] for each in rest]
                launches = [
                    in_series(one[0], other[0], self.substeps) for one, other in zip(recorded, rest, strict=True)
                ]
            # the worlds of a single block have no other places
            arranged = [s.arrangement for s in steppers if s.arrangement is not None and s.work.blocks > 1]
            first = [arrangement.record() for arrangement in arranged]
        recording = Recording(launches, (*arrays, *inputs, *outputs), reads, first=first)
        # that which launches were told of, None after an edit of a setting; and that of the last step
        recording.dt = recording.length = float(dt)
        recording.steps = self.substeps
        recording.written = arrays[len(inputs) :]
        return recording
