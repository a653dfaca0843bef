"""The contacts of the last step with their forces, as a list."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, constant_array, flat, keep_for_graph, unrecorded
from newton_like.collision.ground import ContactTables
from newton_like.collision.pipeline import check_contacts
from newton_like.collision.ration import Ration, lost_of
from newton_like.kernels.collision.report import handed_force_kernel, report_kernels
from newton_like.model.arguments import arrays_of_state
from newton_like.model.contacts import FORCE
from newton_like.programs.program import Field, Program
from newton_like.programs.run import run
from newton_like.programs.structs import filled
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


def unused_by_world(model, contacts, used) -> np.ndarray:
    """How many contacts of a list were not used in each world, and last those of shapes that do not exist or belong to no single world,
    and those that had no room in a list of unknown worlds. Zeros without a list.

    Args:
        contacts: the list, or None.
        used: one for each contact that was used, else zero.
    """
    unused = np.zeros(model.world_count + 1, dtype=np.int64)
    if contacts is None:
        return unused
    count = int(contacts.rigid_contact_count.numpy()[0])
    left = np.flatnonzero(used.numpy()[: min(count, contacts.rigid_contact_max)] == 0)
    worlds = np.append(model.shape_world.numpy(), -1)
    shapes = [getattr(contacts, f"rigid_contact_shape{i}").numpy()[left] for i in (0, 1)]
    of = [worlds[np.where((shape >= 0) & (shape < model.shape_count), shape, -1)] for shape in shapes]
    np.add.at(unused, np.maximum(*of), 1)
    lost = contacts.dropped_by_world.numpy()
    if len(lost) == len(unused):
        unused += lost
    unused[-1] += count - int(used.numpy().sum()) - unused.sum()
    return unused


def report_places(model, batch, tables: ContactTables, candidates_at: int):
    """Where the contacts of one batch are: what the kernels of a list read beside the memory of its stepper, as their struct.

    Args:
        model: the model.
        batch: the batch.
        tables: its :class:`newton_like.collision.ground.ContactTables`.
        candidates_at: where the candidates of contacts in slots are among what outlives a step, -1 if contacts are not in slots.
    """
    arrays, paired, forest = tables.arrays, tables.numbers["first_paired"], batch.template.tree
    of = arrays["candidate_collider"]
    one, two = arrays["pair_one"], arrays["pair_two"]
    body = arrays["candidate_body"].copy()
    if len(one):
        # points of pairs are about the origin of the first shape's tree, unless that shape is on no body
        first = arrays["shape_body"][one[of[paired:]]]
        body[paired:] = np.where(first >= 0, first, body[paired:])
    held = dict(
        candidate_of=of, candidate_tree=np.asarray(forest)[body], shapes=tables.shapes, planes=tables.planes,
        ones=tables.pair_shapes[:, one], twos=tables.pair_shapes[:, two], articulation=batch.articulations,
    )  # fmt: skip
    return filled(
        report_kernels(model.dtype).Places,
        rows=tables.numbers["contact_rows"],
        first_paired=paired,
        candidates_at=candidates_at,
        **{name: constant_array(np.ascontiguousarray(x), wp.int32, model.device) for name, x in held.items()},
    )


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
            # if a list has no room for all: what is known of each contact, and the places of those of every articulation
            self.ration = self.numbers = self.moved = None

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
            stepper.check_report(recording is not None)
        if recording is None or not steppers:
            contacts.rigid_contact_count.zero_()
            return
        held = self._find_poses(model, recording, given)
        kernels = report_kernels(model.dtype)
        parts = [(stepper.report_places(), self._memory(model, stepper)) for stepper in steppers]
        self.counts.zero_()
        for stepper, part in zip(steppers, parts, strict=True):
            wp.launch(
                kernels.count,
                dim=stepper.batch.count,
                inputs=part,
                outputs=[self.counts],
                device=model.device,
                record_tape=False,
            )
        wp.utils.array_scan(self.counts, self.starts, inclusive=False)
        chosen = self._choose(model, kernels, steppers, parts, contacts)
        scene, written = self._scene(model), self._list(model, contacts)
        for stepper, part in zip(steppers, parts, strict=True):
            wp.launch(
                kernels.write,
                dim=stepper.batch.count,
                inputs=[*part, scene, self.starts, *chosen],
                outputs=[written],
                device=model.device,
                record_tape=False,
            )
        wp.copy(contacts.rigid_contact_count, self.starts, src_offset=model.articulation_count, count=1)
        if model.device.is_capturing:
            keep_for_graph(model.device, self, contacts, written, scene, *held, *parts, *steppers, *chosen, self.ration)

    def _choose(self, model, kernels, steppers, parts, contacts) -> tuple[wp.array, wp.array]:
        """Chooses the contacts that the list keeps. Returns the inputs of the kernel `write` that say which."""
        room, known = contacts.rigid_contact_max, model.device.is_cpu and not model.device.is_capturing
        if known:
            total = int(self.starts.numpy()[-1])
            if total <= room:
                return wp.empty(0, dtype=model.dtype, device=model.device), self.starts
        else:
            total = sum(s.batch.count * (s.kept_active.shape[1] - 1) for s in steppers)
        if self.numbers is None or self.numbers.size < 2 * total:
            with unrecorded(model.device, _CALL):
                if self.ration is None:
                    self.ration = Ration(model)
                    self.moved = wp.zeros(model.articulation_count, dtype=int, device=model.device)
                self.numbers = wp.zeros(2 * total, dtype=model.dtype, device=model.device)
        self.ration.share(room, self.starts, lost_of(model, contacts))
        for stepper, part in zip(steppers, parts, strict=True):
            wp.launch(
                kernels.depths,
                dim=stepper.batch.count,
                inputs=[*part, room, self.starts],
                outputs=[self.numbers],
                device=model.device,
                record_tape=False,
            )
        self.ration.choose(self.starts, self.numbers, self.moved)
        return self.numbers, self.moved

    def write_forces(self, model, steppers, recording, state, contacts) -> None:
        """Writes the forces of the contacts of the list that the last step got, into this list.

        Args:
            model: the model.
            steppers: those of the solver for lists; none: they were not made since an edit.
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
        chosen = [s for s in steppers if s.work.numbers["candidates"]]
        homes = [stepper.hand_over.home for stepper in chosen]
        if not steppers or any(home is None for home in homes):
            raise ValueError(
                "an edit replaced the memory of the solver, and there was no step since; call step with the list again"
            )
        held = self._find_poses(model, recording, given)
        for stepper, home in zip(chosen, homes, strict=True):
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
                    model.shape_type, model.shape_transform, model.shape_scale,
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
        self.time.fill_(-0.5 * recording.length / recording.steps)
        joints = [flat(array, model.dtype) for array in given]
        run(model, _MOVED, [*joints, self.time, flat(self.body_q, model.dtype), flat(self.origin, model.dtype)])
        return (*given, *joints)

    @staticmethod
    def _memory(model, stepper):
        """What a step keeps of a batch, as the struct of kernels."""
        lanes = {"kept": stepper.kept, "report": stepper.report}
        numbers = {name: as_numbers(x, model.dtype, stepper.solver.width) for name, x in lanes.items() if x.size}
        places = {} if stepper.arrangement is None else {"place": stepper.arrangement.place}
        return filled(report_kernels(model.dtype).Memory, kept_active=stepper.kept_active, **numbers, **places)

    def _scene(self, model):
        """The scene in the middle of the step, as the struct of kernels."""
        names = ("shape_body", "shape_transform", "shape_margin", "body_com")
        arrays = {name: getattr(model, name) for name in names}
        return filled(report_kernels(model.dtype).Scene, body_q=self.body_q, origin=self.origin, **arrays)

    @staticmethod
    def _list(model, contacts):
        """A list of contacts, as the struct of kernels."""
        names = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")
        arrays = {name: getattr(contacts, f"rigid_contact_{name}") for name in names}
        force = getattr(contacts, "force", None)
        if force is None:
            force = wp.empty(0, dtype=warp_types(model.dtype).spatial_vector, device=model.device)
        return filled(report_kernels(model.dtype).ContactList, force=force, **arrays)
