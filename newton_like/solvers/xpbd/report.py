"""Contact forces of the last step of the solver in maximal coordinates, as lists of contacts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from newton_like.collision.ration import lost_of, rationed
from newton_like.model.contacts import FORCE

_COPIED = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")


@dataclass
class Reported:
    """What a step leaves for reports.

    Attributes:
        contacts: the list of contacts of the step; None: there was none.
        handed: whether the user handed it over.
        wrench: wrenches on the body of shape 0 of each contact, ``[rigid_contact_max]``; None: they were not asked for.
    """

    contacts: object
    handed: bool
    wrench: wp.array | None


def report_contacts(model, last: Reported | None, contacts) -> None:
    """Writes the contacts of a step into a list.

    Args:
        model: the model.
        last: what the step left; None: there was no step.
        contacts: the list.

    Raises:
        ValueError: forces were not asked for before the step, or the step got another list.
    """
    force = getattr(contacts, "force", None)
    if last is None or (last.contacts is None and not last.handed):
        contacts.rigid_contact_count.zero_()
        if force is not None:
            force.zero_()
        return
    if last.handed and last.contacts is None:
        # an empty list without room
        return
    if last.handed and last.contacts is not contacts:
        raise ValueError("update_contacts(): the last step got another list of contacts; pass that list")
    if last.wrench is None or (last.handed and force is None):
        raise ValueError(
            f"update_contacts(): the last step did not keep forces of contacts; call model.request_contact_attributes({FORCE!r}) before the"
            " step and before model.contacts() (SensorContact(model, ...) calls it)"
        )
    if not last.handed and (found := int(last.contacts.rigid_contact_count.numpy()[0])) > contacts.rigid_contact_max:
        _write_largest(model, last, contacts, found)
        return
    if force is not None:
        force.zero_()
        # a count of 0 would copy all
        if force.size:
            wp.copy(force, last.wrench, count=min(force.size, last.wrench.size))
    if last.handed:
        return
    count = min(contacts.rigid_contact_max, last.contacts.rigid_contact_max)
    wp.copy(contacts.rigid_contact_count, last.contacts.rigid_contact_count)
    for name in _COPIED if count else ():
        source, target = (getattr(x, f"rigid_contact_{name}") for x in (last.contacts, contacts))
        wp.copy(target, source, count=count)


def _write_largest(model, last: Reported, contacts, found: int) -> None:
    """Writes `found` contacts into a list that has no room for all: of each world those with the largest forces."""
    wrench, source = last.wrench.numpy()[:found], last.contacts
    shape = np.stack([x.numpy()[:found] for x in (source.rigid_contact_shape0, source.rigid_contact_shape1)])
    # the shapes of one contact belong to one world, or one of them to none
    world = model.shape_world.numpy()[shape].max(axis=0)
    world = np.where(world < 0, model.world_count, world)
    room = contacts.rigid_contact_max
    chosen, lost = rationed(world, -np.linalg.norm(wrench[:, :3], axis=1), room, model.world_count + 1)
    wp.copy(contacts.rigid_contact_count, source.rigid_contact_count)
    lost_of(model, contacts).assign(lost)
    for name in _COPIED if room else ():
        array = getattr(contacts, f"rigid_contact_{name}")
        array.assign(getattr(source, f"rigid_contact_{name}").numpy()[chosen])
    if contacts.force is not None and room:
        contacts.force.assign(wrench[chosen])
