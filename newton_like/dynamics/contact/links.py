"""Contact with the ground of links, for all contact laws."""

from __future__ import annotations

import copy

import warp as wp

from newton_like.dynamics.contact.rigid import RigidContact, rigid_contact_forces
from newton_like.dynamics.contact.soft import SoftContact, soft_contact_forces
from newton_like.dynamics.internal.common import links
from newton_like.kernels.dynamics.contact.terrain import touching_kernel
from newton_like.types import VelRepr


def link_contact_forces(
    model,
    state,
    contact: SoftContact | RigidContact,
    contact_state=None,
    *,
    joint_forces=None,
    repr=VelRepr.COM,
    out: wp.array | None = None,
) -> wp.array:
    """Wrenches of the ground on the links.

    The result ``links`` of :func:`soft_contact_forces` or :func:`rigid_contact_forces`, where arguments and errors are described.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` and ``joint_qd`` count.
        contact: the :class:`SoftContact` or :class:`RigidContact`.
        contact_state: the state of soft contact; None: zeros.
        joint_forces: what else acts, on which the forces of rigid contact alone depend; none by default.
        repr: :class:`VelRepr` of the result.
        out: written; a new array by default.

    Returns:
        [N, N m], ``[articulation_count, max_joints_per_articulation, 6]``.

    Raises:
        ValueError: an array of the wrong shape or device; the contact of another model; an unknown representation; the state of
            a contact that has none, or joint forces for one that does not depend on them.
        TypeError: an array of the wrong scalar type.
    """
    if isinstance(contact, RigidContact):
        if contact_state is not None:
            raise ValueError("contact_state is not an argument for a RigidContact; leave it out")
        arrays = (None, None, out, None)
        return rigid_contact_forces(model, state, contact, joint_forces, link_forces_repr=repr, out=arrays).links
    if joint_forces is not None:
        raise ValueError("joint_forces has no effect on the forces of a SoftContact; leave it out")
    return soft_contact_forces(model, state, contact, contact_state, repr=repr, out=(None, None, None, out)).links


def in_contact(model, state, contact: SoftContact | RigidContact) -> wp.array:
    """Which links touch the ground with at least one of their contact points.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` counts.
        contact: the :class:`SoftContact` or :class:`RigidContact`.

    Returns:
        Bools, ``[articulation_count, max_joints_per_articulation]``.

    Raises:
        ValueError: an array of the wrong shape or device; the contact of another model.
        TypeError: an array of the wrong scalar type.
    """
    if isinstance(contact, RigidContact):
        # depths are not what is solved for
        contact = copy.copy(contact)
        contact.sweeps = 1
        depth = rigid_contact_forces(model, state, contact).depth
    else:
        depth = soft_contact_forces(model, state, contact).depth
    result = wp.zeros((model.articulation_count, links(model)), dtype=wp.bool, device=model.device)
    if result.size and depth.size:
        wp.launch(
            touching_kernel(model.dtype),
            dim=result.shape,
            inputs=[depth, contact.points.links],
            outputs=[result],
            device=model.device,
        )
    return result
