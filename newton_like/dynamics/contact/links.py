"""Functions of links in contact with the ground, for all contact laws."""

from __future__ import annotations

import copy

import numpy as np
import warp as wp

from newton_like.arrays import constant_array
from newton_like.coercion import as_list
from newton_like.dynamics.contact.rigid import RigidContact, rigid_contact_forces
from newton_like.dynamics.contact.soft import SoftContact, soft_contact_forces
from newton_like.dynamics.internal.common import links as link_count
from newton_like.dynamics.internal.frames import link_rows
from newton_like.dynamics.kinematics import chosen
from newton_like.kernels.dynamics.contact.terrain import touching_kernel
from newton_like.kernels.dynamics.entries import gather_entries
from newton_like.types import VelRepr


def link_contact_forces(
    model,
    state,
    contact: SoftContact | RigidContact,
    contact_state=None,
    *,
    joint_forces=None,
    out_repr=VelRepr.COM,
    repr=None,
    out: wp.array | None = None,
) -> wp.array:
    """Wrenches of the ground on the links.

    The result ``links`` of :func:`soft_contact_forces` or :func:`rigid_contact_forces`, where arguments and errors are described.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        contact: the :class:`SoftContact` or :class:`RigidContact`.
        contact_state: the state of soft contact; None: zeros.
        joint_forces: joint forces, on which only the forces of rigid contact depend; none by default.
        out_repr: :class:`VelRepr` of the result; ``repr`` is another name of it.
        out: array for the result; a new array by default.

    Returns:
        [N, N m], ``[articulation_count, max_joints_per_articulation, 6]``.

    Raises:
        ValueError: an array of the wrong shape or device; the contact of another model; an unknown representation; the state of
            a contact that has none, or joint forces for one that does not depend on them.
        TypeError: an array of the wrong scalar type.
    """
    out_repr = chosen(out_repr, repr, VelRepr.COM)
    if isinstance(contact, RigidContact):
        if contact_state is not None:
            raise ValueError("contact_state is not an argument for a RigidContact; omit it")
        arrays = (None, None, out, None)
        return rigid_contact_forces(model, state, contact, joint_forces, link_forces_repr=out_repr, out=arrays).links
    if joint_forces is not None:
        raise ValueError("joint_forces has no effect on the forces of a SoftContact; omit it")
    return soft_contact_forces(
        model, state, contact, contact_state, out_repr=out_repr, out=(None, None, None, out)
    ).links


def in_contact(model, state, contact: SoftContact | RigidContact, links=None) -> wp.array:
    """Which links touch the ground with at least one of their contact points.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        contact: the :class:`SoftContact` or :class:`RigidContact`.
        links: name or index of one link, or a list of them, in the wanted order; all by default.

    Returns:
        Bools, ``[articulation_count, links]``, by default ``[articulation_count, max_joints_per_articulation]``; false for links that
        an articulation lacks.

    Raises:
        KeyError, IndexError: no articulation has a link of a name or of an index.
        ValueError: an array of the wrong shape or device; the contact of another model; several links have a name.
        TypeError: an array of the wrong scalar type; neither names nor indices.
    """
    chosen = None if links is None else _places(model, links)
    if isinstance(contact, RigidContact):
        # depths do not depend on the solution, so one sweep is enough
        contact = copy.copy(contact)
        contact.sweeps = 1
        depth = rigid_contact_forces(model, state, contact).depth
    else:
        depth = soft_contact_forces(model, state, contact).depth
    result = wp.zeros((model.articulation_count, link_count(model)), dtype=wp.bool, device=model.device)
    if result.size and depth.size:
        wp.launch(
            touching_kernel(model.dtype),
            dim=result.shape,
            inputs=[depth, contact.points.links],
            outputs=[result],
            device=model.device,
        )
    if chosen is None:
        return result
    picked = wp.zeros(chosen.shape, dtype=wp.bool, device=model.device)
    if picked.size:
        inputs = [result.flatten(), chosen]
        wp.launch(gather_entries(wp.bool), picked.shape, inputs=inputs, outputs=[picked], device=model.device)
    return picked


def _places(model, links) -> wp.array:
    """Indices of links in a flat array ``articulation * max_links + link``, ``[articulation_count, links]``; -1 for missing links."""
    single = isinstance(links, str | int | np.integer)
    chosen = [links] if single else as_list(links, "links", "names or indices")
    rows = [link_rows(model, link) for link in chosen]
    count, most = model.articulation_count, link_count(model)
    indices = np.stack(rows, axis=1) if rows else np.zeros((count, 0), dtype=int)
    places = np.where(indices >= 0, indices + most * np.arange(count)[:, None], -1)
    return constant_array(places.astype(np.int32), wp.int32, model.device)
