"""A batch of a model in the solver: its kernel, its memory and what it remembers from step to step."""

from __future__ import annotations

import logging
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, constant_array, copied_array, keep_for_graph
from newton_like.collision.ground import ContactTables, find_colliders
from newton_like.collision.handed import HandOver, given_tables
from newton_like.collision.laws import add_laws, add_limit_laws, add_listed_laws, add_tendon_laws, listed_laws
from newton_like.collision.pairs import add_pairs
from newton_like.compiler.cpp import FLAGS
from newton_like.kernels.collision.pairs.records import GATHERED, PAIR_COUNTS, SHAPE_MORE, SLOT
from newton_like.kernels.collision.report import REPORT, force_kernel
from newton_like.kernels.collision.surfaces.records import FIELD, SURFACE_WORK
from newton_like.kernels.dynamics.loops import LOOP
from newton_like.kernels.dynamics.tendons import ITEM, ITEM_NUMBERS, TENDON
from newton_like.kernels.layout import KEPT, KINEMATICS, STEP, STEP_ROWS, stack
from newton_like.kernels.registration import collection_paused
from newton_like.kernels.solvers.balance import LEDGER
from newton_like.kernels.solvers.health import forget_kernel
from newton_like.kernels.solvers.packed import MOST_DOFS
from newton_like.kernels.solvers.polish import ONE_WORLD, ROW_LISTS
from newton_like.kernels.solvers.rows.closure_rows import BOUNDED_ROW, ROW_LAW
from newton_like.kernels.solvers.rows.contact_rows import CONTACT
from newton_like.kernels.solvers.rows.couplings import COUPLING
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES, DOF_ROW
from newton_like.kernels.solvers.rows.slots import SLOT_WORK, chain_bits
from newton_like.kernels.solvers.stages import general_stages
from newton_like.kernels.solvers.step import Features, step_kernel
from newton_like.kernels.solvers.tendons import TENDON_IMPULSES, TENDON_ROW
from newton_like.kernels.tree import FRICTION, LAW_BY_RULE, LAW_SOFT, POSITION, SHAPE_TABLE, VELOCITY
from newton_like.programs.parameters import Parameters, TablesChanged
from newton_like.programs.pieces import batch_struct, pieces
from newton_like.programs.robot import namespace
from newton_like.programs.template import find_batches
from newton_like.programs.workspace import Workspace, row_sizes
from newton_like.solvers.featherstone.actuators import ActuatorRows
from newton_like.solvers.featherstone.arrangement import Arrangement
from newton_like.solvers.featherstone.closures import Closures
from newton_like.solvers.featherstone.loop_weights import dof_weights
from newton_like.solvers.featherstone.report import report_places, wants_report
from newton_like.solvers.featherstone.specialise import BUDGET, Specialiser
from newton_like.solvers.featherstone.tendons import TendonRows

log = logging.getLogger("newton_like")


@cache
def general_step(width: int, real, features: Features):
    """The kernel for all robots with these features, of one width and scalar type."""
    m = namespace(width, real, STEP_ROWS)
    return step_kernel(m, general_stages(m, features.closed, features.tensed), features)


MOST_APART = 64
"""Batches that are made, at most, so that results do not depend on other worlds. A batch has evenly spaced worlds: worlds that differ at
random would be half as many batches as worlds, each with memory and launches of its own."""


def make_steppers(solver, kinds: list[bytes], clusters: list[range], given: bool = False) -> list[Stepper]:
    """The steppers of a solver. Results of a world do not depend on the other worlds: clusters of a batch for which what they may touch
    chooses different ways to solve them are in batches of their own, unless that takes more than MOST_APART batches.

    Args:
        solver: the :class:`newton_like.solvers.SolverFeatherstone`.
        kinds: what clusters of a batch have in common.
        clusters: the articulations of each cluster.
        given: whether contacts are handed over, and not looked for.
    """
    model = solver.model
    found = [(batch, find_tables(model, batch, given)) for batch in find_batches(model, kinds, clusters)]
    ways: dict[int, bytes] = {}
    for batch, tables in found:
        each = _ways(batch, tables, given)
        if (each != each[:1]).any():
            ways.update((a, way.tobytes()) for a, way in zip(batch.articulations.tolist(), each, strict=True))
    if ways:
        apart = [kind + ways.get(members[0], b"") for kind, members in zip(kinds, clusters, strict=True)]
        more = find_batches(model, apart, clusters)
        if len(more) <= len(found) + MOST_APART:
            found = [(batch, find_tables(model, batch, given)) for batch in more]
    return [Stepper(solver, batch, given, tables) for batch, tables in found]


def _is_alone(template) -> bool:
    """Whether a cluster is a robot alone that is solved by packed contacts."""
    return template.trees == 1 and template.dofs <= MOST_DOFS


def _ways(batch, tables, given: bool) -> np.ndarray:
    """What chooses the way to solve a robot alone, ``[count, 3]`` bool: whether shapes of it may touch other ones than planes, whether
    they may touch surfaces, and whether contacts state laws."""
    ways = np.zeros((batch.count, 3), dtype=bool)
    if not tables.numbers["pairs"] or not _is_alone(batch.template):
        return ways
    two = tables.arrays["shape_kind"][tables.arrays["pair_two"]]
    ways[:, 0], ways[:, 1] = tables.pair_allowed.any(axis=1), tables.pair_allowed[:, two >= FIELD].any(axis=1)
    if tables.numbers.get("laws") and not given:
        contacts = tables.laws.table[:, : tables.shapes.shape[1] + len(two)]
        ways[:, 2] = (contacts[..., [LAW_BY_RULE, LAW_SOFT]] != 0.0).any(axis=(1, 2))
    return ways


def find_tables(model, batch, given: bool = False) -> ContactTables:
    """The tables of the contacts of a batch, and of its limits."""
    if given:
        tables = add_listed_laws(given_tables(model, batch), listed_laws(model), batch.count)
    else:
        tables = add_laws(model, add_pairs(model, batch, find_colliders(model, batch)))
    return add_limit_laws(model, batch, tables, partial(dof_weights, model))


SLOT_ROWS = dict(packed="contact", packed_impulse="impulse", packed_swept="swept_impulse", packed_start="start_impulse")
"""Contacts in slots are the active contacts: rows of memory of packed contacts, and those of active contacts that they are then."""


def step_memory(work: Workspace, tables, given: bool = False) -> tuple[Workspace, int, bool]:
    """A batch with the memory of a step, how many lanes of a block outlive the step, and whether contacts are in slots.

    Args:
        work: the batch.
        tables: its :class:`newton_like.collision.ground.ContactTables`.
        given: whether contacts are handed over.
    """
    template = work.batch.template
    limited = (work.parameters.dof_limits & (FRICTION | VELOCITY | POSITION)).any()
    numbers = {**tables.numbers, "limit_rows": DOF_IMPULSES * template.dofs if limited else 0}
    # contacts of a robot alone, which differ from world to world; those of boxes in piles are the same in all worlds
    numbers["polished"] = int(numbers["pairs"] > 0 and _is_alone(template))
    several = work.m.width > 1
    numbers["first_tendon"] = numbers["couplings"] + numbers["loop_rows"]
    numbers["bonds"] = numbers["first_tendon"] + TENDON_IMPULSES * numbers["tendons"]
    # those of robots for which the step has no further use of candidates go to slots
    others = ("laws", "surface_pairs", "bonds", "adhesive")
    plain = not any(numbers.get(name) for name in others)
    slotted = bool(numbers["polished"] and several and plain and not given)
    numbers["slotted"] = int(slotted)
    of_pairs = PAIR_COUNTS if numbers["pairs"] else dict.fromkeys(PAIR_COUNTS, 0)
    items = len(tables.arrays.get("tendon_item", ())) // ITEM
    records = dict(
        packed=numbers["polished"] * several * (not slotted), slot_numbers=SLOT, slot_work_numbers=SLOT_WORK,
        more_numbers=SHAPE_MORE, gathered_numbers=GATHERED, newton_numbers=0 if several else numbers["polished"] * ONE_WORLD,
        contact_numbers=CONTACT, dof_numbers=DOF_ROW, coupling_numbers=COUPLING, ledger_numbers=LEDGER, **of_pairs,
        surface_numbers=SURFACE_WORK, loop_numbers=LOOP, law_numbers=ROW_LAW, bounded_numbers=BOUNDED_ROW, tendon_numbers=TENDON_ROW,
        tendon_records=TENDON * numbers["tendons"] + ITEM_NUMBERS * items,
    )  # fmt: skip
    sizes = row_sizes(template, (*KINEMATICS, *STEP), **{"given": 0, **numbers}, **records)
    fields = {**tables.fields, **numbers}
    fields.pop("given", None)
    work = work.with_memory(sizes, fields)
    kept = stack({f"kept_{row.name}": row.kept(SimpleNamespace(**work.numbers)) for row in KEPT})
    size = kept.pop("size")
    for name, at in kept.items():
        setattr(work.L, name, at)
    if slotted:
        for name, listed in SLOT_ROWS.items():
            setattr(work.L, name, getattr(work.L, listed))
    return work, size, slotted


class Stepper:
    """One batch of the model, with its kernel and what it remembers from step to step.

    Args:
        solver: the :class:`newton_like.solvers.SolverFeatherstone`.
        batch: a batch of its model.
        given: whether contacts are handed over, and not looked for.
        tables: those of :func:`find_tables`.
    """

    def __init__(self, solver, batch, given: bool, tables: ContactTables):
        self.solver, self.batch, self.given = solver, batch, given
        self.world = None
        self._lay_out(tables)

    @collection_paused()
    def _lay_out(self, tables: ContactTables) -> None:
        solver, batch, model = self.solver, self.batch, self.solver.model
        self.tables = tables
        self.closures = Closures(batch, solver.loops, solver.tendons, solver.model)
        self.closures.drop_followers(solver.loops, tables)
        tables.numbers.update(self.closures.numbers)
        tables.arrays.update(self.closures.arrays)
        self.tendons = TendonRows(batch, solver.tendons)
        tables.numbers.update(self.tendons.numbers)
        tables.arrays.update(self.tendons.arrays)
        if self.tendons.numbers["tendons"]:
            add_tendon_laws(tables, self.tendons.laws(model), batch.count)
        self.actuators = ActuatorRows(batch, solver.actuators, solver.tendons)
        tables.numbers.update(self.actuators.numbers)
        tables.arrays.update(self.actuators.arrays)
        # of the shapes and planes of candidates, once contact forces are asked for
        self._index = self._places = None
        parameters = Parameters(solver.m, model, batch, tables, prescribed=True, changes=solver.changes)
        work = Workspace(solver.m, batch, parameters, model.device, solver.threads)
        self.work, kept, self.slotted = step_memory(work, tables, self.given)
        work = self.work
        self.closures.fill(work, solver.loops)
        work.tendon_index = self.tendons.index
        self.tendons.fill(work, model, solver.tendons)
        work.actuator_index = self.actuators.index
        self.actuators.fill(work, model)
        self._choose_kernel()
        self.kept = work.block_lanes(kept)
        # per block: how many contacts are remembered, which, and whether limits are
        self.kept_active = work.block_lanes(tables.numbers["candidates"] + 2, wp.int32)
        self.hand_over = HandOver(model, tables, work, listed_laws(model)) if self.given else None
        self.contacts_in = self.hand_over.lanes if self.given else work.block_lanes(0)
        self._stepped = False
        self._make_report()
        # contacts in slots are other ones in each world
        self.arrangement = Arrangement(work, self.kept, self.kept_active) if self.slotted else None
        # active contacts and dofs; with pairs, where the dofs of contacts are listed and how many they are; rows of a step of Newton
        candidates = tables.numbers["candidates"]
        length = candidates + batch.template.dofs + (2 * candidates if tables.numbers["pairs"] else 0)
        bits = np.zeros(0, dtype=np.int32)
        if self.slotted:
            # pairs that are near with bits of their worlds, the pairs of each world, and bits of chains, which stay
            bits = chain_bits(batch.template.chain, batch.template.chain_at, batch.template.depth)
            length += (2 + solver.width) * work.numbers["pairs"] + len(bits)
        if work.numbers["tendons"]:
            # visits of tendons, and how many they are
            length += work.numbers["tendons"] + 1
        length = max(length + (ROW_LISTS if work.numbers["polished"] and solver.width == 1 else 0), 1)
        lists = np.zeros((length, work.columns), dtype=np.int32)
        lists[length - len(bits) :] = bits[:, None]
        self.active = [copied_array(lists, wp.int32, work.device) for _ in range(work.workers)]

    def _make_report(self) -> None:
        """Memory for where contacts are, if anybody asks."""
        self.wanted = not self.given and wants_report(self.solver.model)
        self.report = self.work.block_lanes(REPORT * self.tables.numbers["candidates"] if self.wanted else 0)
        # whether the last step wrote it; None: there was no step
        self._reported = False if self._stepped else None

    def check_report(self, stepped: bool) -> None:
        """Raises ValueError unless the last step, where the solver has `stepped`, kept where its contacts are."""
        model = self.solver.model
        if stepped and not self._stepped:
            raise ValueError("an edit replaced the memory of the solver, and there was no step since; call step first")
        if not wants_report(model) or self._reported is False:
            raise ValueError(
                "the last step did not keep its contacts; call model.request_contact_attributes('force') before the step"
                " (SensorContact(model, ...) calls it)"
            )

    @property
    def candidates_at(self) -> int:
        """Where the candidates of contacts in slots are among what outlives a step, -1 if contacts are not in slots."""
        return self.work.L.kept_old_pair if self.slotted else -1

    def report_places(self):
        """What the kernels of a list of contacts read."""
        if self._places is None:
            self._places = report_places(self.solver.model, self.batch, self.tables, self.candidates_at)
        return self._places

    def _choose_kernel(self) -> None:
        self.kernel = self._find_kernel()
        # the numbers that it holds; after an error the old ones, so that the error comes back
        self._known = self.work.parameters.known, self.tendons.items

    def _find_kernel(self):
        solver = self.solver
        # specialised steps write no accelerations that nobody asked for
        self.accelerated = "joint_qdd" in solver.model.state_attributes
        numbers = self.work.numbers
        features = Features(
            given=self.given, paired=numbers["pairs"] > 0, surfaces=numbers["surface_pairs"] > 0, closed=numbers["loop_rows"] > 0,
            tensed=numbers["tendons"] > 0, actuated=self.actuators.acts, bonded=numbers["bonds"] > 0, slotted=self.slotted,
            summed=self.actuators.summed,
        )  # fmt: skip
        general = general_step(solver.width, solver.model.dtype, features)
        if self.given or solver.evaluator == "general" or not self.batch.template.dofs:
            return general
        special = Specialiser(self.work, self.accelerated, self.tendons.items)
        self.operations = special.operations
        self.work.T.tendon_loads = 0
        if solver.evaluator == "auto" and special.operations > BUDGET:
            log.info("a robot of %d operations is not specialised", special.operations)
            return general
        log.info(
            "specialised a robot: %d operations; the first step compiles it unless it is cached", special.operations
        )
        self.work.T.tendon_loads = special.tendon_loads
        level = special.level if solver.width == 1 else None
        return step_kernel(solver.m, special.stages(), features, FLAGS, level)

    def refresh(self) -> bool:
        """Takes over what was edited. Returns whether launches have to be recorded again."""
        parameters = self.work.parameters
        try:
            stale, _ = parameters.refresh(self.solver.model)
            stale |= self.closures.fill(self.work, self.solver.loops)
            stale |= self.tendons.fill(self.work, self.solver.model, self.solver.tendons)
            stale |= self.actuators.fill(self.work, self.solver.model)
            if self.hand_over is not None:
                self.hand_over.read()
        except TablesChanged:
            self._lay_out(find_tables(self.solver.model, self.batch, self.given))
            return True
        known = self._known
        if (
            parameters.known is not known[0]
            or self.tendons.items is not known[1]
            or self.accelerated is not ("joint_qdd" in self.solver.model.state_attributes)
        ):
            before = self.kernel
            self._choose_kernel()
            # the general kernel holds no numbers
            stale |= self.kernel is not before
        if self.wanted is not (not self.given and wants_report(self.solver.model)):
            self._make_report()
            stale = True
        return stale

    def record(self, inputs, outputs, options) -> tuple[list[list], list]:
        """Recorded launches of a step, and what they read beside its arrays.

        Args:
            inputs, outputs: arrays of the ports of :mod:`newton_like.solvers.featherstone.arrays`, as rows of numbers.
            options: the struct ``Options``.
        """
        work, model, ports = self.work, self.solver.model, self.solver.ports
        # the step that follows writes it
        self._stepped, self._reported = True, self.wanted
        if not self.accelerated and any(
            port.name == "joint_qdd" and array is not None for port, array in zip(ports.outputs, outputs, strict=True)
        ):
            raise ValueError(
                "state_out.joint_qdd exists, but the model was not asked for it; call model.request_state_attributes('joint_qdd')"
                " before model.state()"
            )
        taken = [(port.field, array) for port, array in zip(ports.outputs, outputs, strict=True) if array is not None]
        brought_in = pieces(model, work, [port.field for port in ports.inputs], inputs)
        taken_out = pieces(model, work, *zip(*taken, strict=True))
        order = work.ints([]) if self.arrangement is None else self.arrangement.order
        before = [batch_struct(work), work.T, work.P, work.L, options, self.solver.nothing, order]
        after = [
            self.kept,
            self.kept_active,
            self.contacts_in,
            self.report,
            len(ports.inputs),
            brought_in.array,
            len(taken),
            taken_out.array,
        ]
        commands = work.record(self.kernel, lambda i: [*before, work.memory[i], self.active[i], *after])
        return commands, [
            before,
            after,
            brought_in,
            taken_out,
            work.P.uniform,
            work.P.varying,
            work.memory,
            self.active,
        ]

    def shares_of_worlds(self) -> list[tuple[int, int]] | None:
        """See :meth:`newton_like.programs.workspace.Workspace.shares_of_worlds`."""
        return self.work.shares_of_worlds() if self.arrangement is None else None

    def forget(self, mask: wp.array) -> None:
        """Forgets the forces of the chosen worlds."""
        model, width = self.solver.model, self.solver.width
        if self.world is None:
            self.world = wp.array(self.batch.world, dtype=wp.int32, device=self.work.device)
        numbers = [as_numbers(lanes, model.dtype, width) for lanes in (self.kept, self.report) if lanes.size]
        for each in numbers:
            wp.launch(
                forget_kernel(model.dtype),
                dim=each.shape[0],
                inputs=[mask, self.world, None if self.arrangement is None else self.arrangement.order, each],
                device=model.device,
            )
        if model.device.is_capturing:
            # an edit may give the solver other steppers, and a stepper other memory
            keep_for_graph(
                model.device, self, self.kept, self.kept_active, self.report, self.world, self.arrangement, *numbers
            )

    def add_forces(self, force: wp.array) -> None:
        """Adds the contact forces of the last step to those of the shapes they act on."""
        model, work = self.solver.model, self.work
        if not work.numbers["candidates"]:
            return
        if self._index is None:
            self._index = [
                constant_array(np.ascontiguousarray(x), wp.int32, model.device)
                for x in (
                    self.tables.shapes,
                    np.zeros((0, 0)) if self.given else self.tables.planes,
                    self.tables.pair_shapes,
                )
            ]
        shapes, planes, pair_shapes = self._index
        width = self.solver.width
        wp.launch(
            force_kernel(model.dtype),
            dim=self.batch.count,
            inputs=[
                work.numbers["contact_rows"], work.T.first_paired, work.T.candidate_collider, shapes, planes, work.T.pair_table,
                SHAPE_TABLE * work.numbers["shapes"], pair_shapes, model.shape_transform, self.kept_active,
                as_numbers(self.kept, model.dtype, width), self.candidates_at,
                None if self.arrangement is None else self.arrangement.place, as_numbers(self.contacts_in, model.dtype, width),
            ],
            outputs=[force],
            device=model.device,
        )  # fmt: skip
