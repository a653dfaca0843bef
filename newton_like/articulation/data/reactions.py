"""Wrenches that joints transmit in the last step."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded
from newton_like.kernels.articulation.reactions import reaction_kernels
from newton_like.kernels.solvers.requested import requested_kernels
from newton_like.solvers.featherstone.pulls import Pulls
from newton_like.types import ShapeFlags, warp_types


class JointReactions:
    """Computes the wrenches that bodies get through their joints.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`.
        layout: the :class:`newton_like.articulation.layout.Layout`.

    Raises:
        NotImplementedError: see :class:`newton_like.solvers.featherstone.pulls.Pulls`.
    """

    def __init__(self, sim, layout):
        self._sim, self._layout = sim, layout
        model, device = sim.model, sim.device
        self._pulls = Pulls(model, "body_incoming_joint_wrench_b")
        joints = layout.joints
        parents = model.joint_parent.numpy()[joints[0]]
        places = {int(b): k for k, b in enumerate(layout.bodies[0])}
        place_of = np.full(max(model.body_count, 1), -1)
        for k in range(layout.bodies.shape[1]):
            place_of[layout.bodies[:, k]] = k
        self._parent, self._joint_of, self._place_of = (
            wp.array(x, dtype=wp.int32, device=device)
            for x in ([places.get(int(p), -1) for p in parents], joints, place_of)
        )
        touches = model.shape_count and (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES).any()
        self._touches = bool(touches)
        self._ranges = wp.zeros((model.world_count if touches else 0, 2), dtype=wp.int32, device=device)
        kinds = warp_types(model.dtype)
        self._nothing = (
            wp.zeros(0, dtype=kinds.spatial_vector, device=device),
            wp.zeros(0, dtype=wp.int32, device=device),
        )

    def compute(self, acceleration: wp.array, body_of: wp.array, world_of: wp.array, out: wp.array) -> None:
        """Writes the wrenches.

        Args:
            acceleration: of centres of mass in the last step, ``[num_instances, num_bodies, 6]``.
            body_of, world_of: bodies and worlds of instances.
            out: ``[num_instances, num_bodies, 6]``.

        Raises:
            ValueError: bodies may touch, and the last step did not keep its contacts (call
                ``model.request_contact_attributes("force")`` before it).
            RuntimeError: a graph is being captured.
        """
        check_recorded(self._sim.device, "body_incoming_joint_wrench_b")
        model, state, kernels = self._sim.model, self._sim.state, reaction_kernels(self._sim.model.dtype)
        force, none = self._nothing
        shapes = none, none
        if self._touches:
            contacts = self._sim.contacts()
            force, shapes = contacts.force, (contacts.rigid_contact_shape0, contacts.rigid_contact_shape1)
            self._ranges.zero_()
            most = contacts.rigid_contact_shape0.shape[0]
            wp.launch(
                requested_kernels(model.dtype).find_ranges,
                dim=most,
                inputs=[contacts.rigid_contact_count, most, *shapes, model.shape_world],
                outputs=[self._ranges],
                device=model.device,
            )
        wrench = self._pulls.add(self._sim.solver, state.body_q, state.body_f)
        wp.launch(
            kernels.transmit,
            dim=body_of.shape[0],
            inputs=[
                body_of, world_of, self._parent, self._joint_of, self._place_of, model.gravity, model.body_mass, model.body_inertia,
                model.body_com, model.joint_X_c, model.shape_body, state.body_q, state.body_qd, wrench, acceleration, self._ranges,
                *shapes, force,
            ],
            outputs=[out],
            device=model.device,
        )  # fmt: skip
