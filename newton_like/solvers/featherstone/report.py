"""The contacts of the last step with their forces, as a list."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, constant_array, flat, keep_for_graph, unrecorded
from newton_like.collision.ground import ContactTables
from newton_like.collision.pipeline import check_contacts
from newton_like.kernels.collision.collect import handed_force_kernel
from newton_like.kernels.collision.report import report_kernels
from newton_like.model.arguments import arrays_of_state
from newton_like.model.contacts import FORCE
from newton_like.programs.program import Field, Program
from newton_like.programs.run import run
from newton_like.types import warp_types

_MOVED = Program(
    "eval_moved",
    (Field("q", "coords"), Field("v", "dofs"), Field("weights", "all", 1)),
    (Field("body_q", "bodies", 7), Field("origin", "articulations", 3)),
    (Field("body_qd", "bodies", 6),),
    varied=True,
)

_CALL = "SolverFeatherstone.update_contacts"


def wants_report(model) -> bool:
    """Whether steps keep where contacts are."""
    return FORCE in model.contact_attributes


class ReportTables:
    """What the kernels of a list read of one batch, beside the memory of its stepper.

    Args:
        model: the model.
        batch: the batch.
        tables: its :class:`newton_like.collision.ground.ContactTables`.
    """

    def __init__(self, model, batch, tables: ContactTables):
        arrays, paired, forest = tables.arrays, tables.numbers["first_paired"], batch.template.tree
        of = arrays["candidate_collider"]
        one, two = arrays["pair_one"], arrays["pair_two"]
        body = arrays["candidate_body"].copy()
        if len(one):
            # points of pairs are about the origin of the first shape's tree, unless that shape is on no body
            first = arrays["shape_body"][one[of[paired:]]]
            body[paired:] = np.where(first >= 0, first, body[paired:])
        held = (
            of, np.asarray(forest)[body], tables.shapes, tables.planes, tables.pair_shapes[:, one], tables.pair_shapes[:, two],
            batch.articulations,
        )  # fmt: skip
        self.articulation = constant_array(np.ascontiguousarray(held[-1]), wp.int32, model.device)
        self.held = [constant_array(np.ascontiguousarray(x), wp.int32, model.device) for x in held[:-1]]


class ContactReport:
    """Writes the contacts of the last step of a solver into lists.

    Args:
        model: the model.
    """

    def __init__(self, model):
        device, kinds = model.device, warp_types(model.dtype)
        with unrecorded(device, _CALL):
            # number of contacts of every articulation, then 0; and how many those before it have
            self.counts, self.starts = (
                wp.zeros(model.articulation_count + 1, dtype=int, device=device) for _ in range(2)
            )
            self.time = wp.zeros(1, dtype=model.dtype, device=device)
            self.body_q = wp.clone(model.body_q, requires_grad=False)
            self.origin = wp.zeros(model.articulation_count, dtype=kinds.vec3, device=device)

    def write(self, model, steppers, recording, state, contacts) -> None:
        """Writes the contacts of the last step.

        Args:
            model: the model.
            steppers: those of the solver.
            recording: of the last step; None: there was none.
            state: the state after the step; None: that which the step wrote.
            contacts: where the contacts go.
        """
        check_contacts(model, contacts)
        given = None if state is None else arrays_of_state(model, state, "joint_q", "joint_qd")
        force = getattr(contacts, "force", None)
        if force is not None:
            force.zero_()
        steppers = [s for s in steppers if s.work.numbers["candidates"]]
        for stepper in steppers:
            stepper.check_report()
        if recording is None or not steppers:
            contacts.rigid_contact_count.zero_()
            return
        held = self._find_poses(model, recording, given)
        count, write = report_kernels(model.dtype)
        parts = [self._part(model, stepper) for stepper in steppers]
        self.counts.zero_()
        for stepper, (tables, _, memory) in zip(steppers, parts, strict=True):
            wp.launch(
                count,
                dim=stepper.batch.count,
                inputs=[stepper.kept_active, memory[-1], tables.articulation],
                outputs=[self.counts],
                device=model.device,
                record_tape=False,
            )
        wp.utils.array_scan(self.counts, self.starts, inclusive=False)
        if force is None:
            force = wp.empty(0, dtype=warp_types(model.dtype).spatial_vector, device=model.device)
        for stepper, (tables, numbers, memory) in zip(steppers, parts, strict=True):
            wp.launch(
                write,
                dim=stepper.batch.count,
                inputs=[
                    *numbers, *tables.held, tables.articulation, stepper.kept_active, *memory, self.starts, self.body_q, self.origin,
                    model.shape_body, model.shape_transform, model.shape_margin, model.body_com,
                ],
                outputs=[
                    contacts.rigid_contact_shape0, contacts.rigid_contact_shape1, contacts.rigid_contact_point0,
                    contacts.rigid_contact_point1, contacts.rigid_contact_normal, contacts.rigid_contact_margin0,
                    contacts.rigid_contact_margin1, force,
                ],
                device=model.device,
                record_tape=False,
            )  # fmt: skip
        wp.copy(contacts.rigid_contact_count, self.starts, src_offset=model.articulation_count, count=1)
        if model.device.is_capturing:
            keep_for_graph(model.device, self, contacts, force, *held, *parts, *steppers)

    def write_forces(self, model, steppers, recording, state, contacts) -> None:
        """Writes the forces of the contacts of the list that the last step got, into this list.

        Args:
            model: the model.
            steppers: those of the solver for lists.
            recording: of the last step.
            state: the state after the step; None: that which the step wrote.
            contacts: the list.
        """
        given = None if state is None else arrays_of_state(model, state, "joint_q", "joint_qd")
        force = getattr(contacts, "force", None)
        if force is None:
            raise ValueError(
                "the list of contacts has no forces; call model.request_contact_attributes('force') before model.contacts()"
                " (SensorContact(model, ...) calls it)"
            )
        force.zero_()
        if not contacts.rigid_contact_max:
            return
        held = self._find_poses(model, recording, given)
        steppers = [s for s in steppers if s.work.numbers["candidates"]]
        homes = [stepper.hand_over.home for stepper in steppers]
        if any(home is None for home in homes):
            raise ValueError(
                "there was no step since an edit that gave the solver other memory; call step with the list again"
            )
        for stepper, home in zip(steppers, homes, strict=True):
            work, width = stepper.work, stepper.solver.width
            wp.launch(
                handed_force_kernel(model.dtype),
                dim=contacts.rigid_contact_max,
                inputs=[
                    work.numbers["contact_rows"], work.numbers["first_paired"], home,
                    as_numbers(stepper.contacts_in, model.dtype, width), stepper.kept_active, as_numbers(stepper.kept, model.dtype, width),
                    contacts.rigid_contact_shape0, contacts.rigid_contact_shape1, contacts.rigid_contact_point0,
                    contacts.rigid_contact_point1, contacts.rigid_contact_normal, contacts.rigid_contact_margin0,
                    contacts.rigid_contact_margin1, self.body_q, model.shape_body, model.body_com,
                ],
                outputs=[force],
                device=model.device,
                record_tape=False,
            )  # fmt: skip
        if model.device.is_capturing:
            keep_for_graph(model.device, self, contacts, force, *held, *homes, *steppers)

    def _find_poses(self, model, recording, given) -> tuple:
        """Finds the poses of bodies in the middle of the last step, when contacts are found: half a step before the state that it writes.
        Returns what its launches read."""
        if given is None:
            given = recording.written[:2]
        self.time.fill_(-0.5 * recording.dt / recording.steps)
        joints = [flat(array, model.dtype) for array in given]
        run(model, _MOVED, [*joints, self.time, flat(self.body_q, model.dtype), flat(self.origin, model.dtype)])
        return (*given, *joints)

    @staticmethod
    def _part(model, stepper) -> tuple:
        """The tables, numbers and memory of a batch, as kernels are told them."""
        work, width = stepper.work, stepper.solver.width
        memory = [as_numbers(lanes, model.dtype, width) for lanes in (stepper.kept, stepper.report)]
        return stepper.report_tables(), (work.numbers["contact_rows"], work.numbers["first_paired"]), memory
