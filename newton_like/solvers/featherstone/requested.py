"""Arrays of states on request that follow from a step: accelerations of bodies, wrenches through joints, and forces of drives.

They are computed by launches of their own before and after a step, so that steps of models without requests are as fast as before.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import keep_for_graph, unrecorded
from newton_like.dynamics.kinematics import accelerations_after
from newton_like.dynamics.names import names_of
from newton_like.kernels.solvers.requested import BY_AXES, FLOATS, TURNS, requested_kernels
from newton_like.model.contacts import Contacts
from newton_like.model.joint_types import look_up
from newton_like.model.state import BODY_PARENT_F, BODY_QDD, JOINT_QDD, QFRC_ACTUATOR, requested_array
from newton_like.solvers.featherstone.pulls import Pulls
from newton_like.types import BodyFlags, warp_types

DERIVED = frozenset({BODY_QDD, BODY_PARENT_F, QFRC_ACTUATOR})
"""Arrays that are computed here."""


class Requested:
    """Writes the requested arrays of the states of a solver.

    Args:
        solver: the :class:`newton_like.solvers.SolverFeatherstone`.

    Raises:
        NotImplementedError: a requested array would leave out forces of the model.
    """

    def __init__(self, solver):
        self._solver, model = solver, solver.model
        device, kinds = model.device, warp_types(model.dtype)
        self._kernels = requested_kernels(model.dtype)
        self._links = self._contacts = None
        wanted = model.state_attributes
        with unrecorded(device, "SolverFeatherstone.step"):
            if QFRC_ACTUATOR in wanted:
                self._drives = wp.array(self._find_drives(), dtype=wp.int32, device=device)
            self._accelerations = wp.zeros(model.body_count, dtype=kinds.spatial_vector, device=device)
            if BODY_PARENT_F in wanted:
                self._pulls = Pulls(model, f"State.{BODY_PARENT_F}")
                self._articulation_of = wp.array(names_of(model).articulation, dtype=wp.int32, device=device)
                self._none = (
                    wp.zeros(0, dtype=wp.int32, device=device),
                    wp.zeros(0, dtype=kinds.spatial_vector, device=device),
                )
                self._no_ranges = wp.zeros((0, 2), dtype=wp.int32, device=device)
                self._ranges = wp.zeros((model.world_count, 2), dtype=wp.int32, device=device)

    def _find_drives(self) -> np.ndarray:
        """What targets the drive of each joint has; -1: none."""
        solver, model = self._solver, self._solver.model
        unknown = None
        if model.actuator_count:
            unknown = f"actuators ({model.actuators[0].label!r})"
        elif model.tendons:
            unknown = f"tendons ({model.tendons[0].label!r}), which have drives of their own"
        elif solver.drives_loops:
            unknown = "drives of loop joints"
        if unknown is not None:
            raise NotImplementedError(
                f"state attribute {QFRC_ACTUATOR!r} does not support models with {unknown}; it has the drives of joints of trees only"
            )
        types = model.joint_type.numpy()
        kinds = np.full(len(types), BY_AXES)
        kinds[look_up(types, "turns_only")] = TURNS
        kinds[look_up(types, "floats")] = FLOATS
        moved = model.body_flags.numpy()[model.joint_child.numpy()] & int(BodyFlags.KINEMATIC)
        kinds[(moved != 0) | (model.joint_articulation.numpy() < 0)] = -1
        return kinds

    def before(self, state_in, control, state_out) -> None:
        """Writes what follows from the state before a step."""
        model = self._solver.model
        force = requested_array(state_out, QFRC_ACTUATOR)
        if force is None or not model.joint_count:
            return
        gains = (model.joint_target_mode, model.joint_target_ke, model.joint_target_kd, model.joint_effort_limit)
        targets = (control.joint_target_q, control.joint_target_qd, control.joint_act)
        inputs = [
            self._drives,
            model.joint_q_start,
            model.joint_qd_start,
            *gains,
            model.joint_child,
            model.joint_X_c,
            model.body_com,
            state_in.joint_q,
            state_in.joint_qd,
            *targets,
        ]
        wp.launch(
            self._kernels.drive,
            model.joint_count,
            inputs=inputs,
            outputs=[force],
            device=model.device,
            record_tape=False,
        )
        self._keep(state_in, control, state_out)

    def after(self, state_in, state_out, contacts: Contacts | None) -> None:
        """Writes what follows from the state after a step and its accelerations.

        Args:
            state_in, state_out: those of the step.
            contacts: the list that the step got; None: it found the contacts itself.
        """
        model = self._solver.model
        body_qdd, wrench = (requested_array(state_out, name) for name in (BODY_QDD, BODY_PARENT_F))
        if (body_qdd is None and wrench is None) or not model.articulation_count:
            return
        if state_out.joint_qdd is None:
            raise ValueError(f"state_out.{JOINT_QDD} is None; {BODY_QDD} and {BODY_PARENT_F} follow from it")
        body_qdd = self._accelerations if body_qdd is None else body_qdd
        self._links = accelerations_after(
            model, state_out.joint_q, state_out.joint_qd, state_out.joint_qdd, self._links
        )
        trees = [model.articulation_start, model.articulation_end]
        wp.launch(
            self._kernels.spread,
            model.articulation_count,
            inputs=[*trees, model.joint_child, self._links],
            outputs=[body_qdd],
            device=model.device,
            record_tape=False,
        )
        if wrench is not None:
            external = self._pulls.add(self._solver, state_out.body_q, state_in.body_f)
            wp.launch(
                self._kernels.transmit,
                model.articulation_count,
                inputs=[
                    *trees, model.articulation_world, model.joint_parent, model.joint_child, self._articulation_of, model.gravity,
                    model.body_mass, model.body_inertia, model.body_com, model.shape_body, state_out.body_q, state_out.body_qd, external,
                    body_qdd, *self._touches(state_out, contacts),
                ],
                outputs=[wrench],
                device=model.device,
                record_tape=False,
            )  # fmt: skip
        self._keep(state_in, None, state_out)

    def _touches(self, state, given: Contacts | None) -> tuple:
        """Ranges of contacts by world, their shapes, and their forces."""
        solver, model = self._solver, self._solver.model
        room = solver.contact_room if given is None else given.rigid_contact_max
        if not room:
            return self._no_ranges, self._none[0], self._none[0], self._none[1]
        if given is None and (self._contacts is None or self._contacts.rigid_contact_max != room):
            self._contacts = model.contacts(rigid_contact_max=room)
        contacts = self._contacts if given is None else given
        solver.update_contacts(contacts, state)
        shapes = contacts.rigid_contact_shape0, contacts.rigid_contact_shape1
        self._ranges.zero_()
        # contacts of a world follow each other in lists of the solver, but need not in lists of the user
        whole = [contacts.rigid_contact_count, room]
        kernel, count, inputs = (
            (self._kernels.find_ranges, room, [*whole, *shapes, model.shape_world])
            if given is None
            else (self._kernels.all_contacts, model.world_count, whole)
        )
        wp.launch(kernel, count, inputs=inputs, outputs=[self._ranges], device=model.device, record_tape=False)
        return self._ranges, *shapes, contacts.force

    def _keep(self, *owners) -> None:
        if self._solver.device.is_capturing:
            keep_for_graph(self._solver.device, self, *owners)
