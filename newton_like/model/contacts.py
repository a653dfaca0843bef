"""Buffers of contacts between shapes."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import warp as wp

from newton_like.coercion import as_count
from newton_like.options import check_option
from newton_like.types import warp_types

_NAMED = 5
"""How many worlds a message names."""

FORCE = "force"
"""The attribute of contacts that exists on request."""


def checked_attributes(attributes) -> set[str]:
    """Names of attributes of contacts that exist on request.

    Raises:
        TypeError: a name is not a text.
        ValueError: there is no such attribute.
    """
    for name in attributes:
        if not isinstance(name, str):
            raise TypeError(f"an attribute of contacts must be a text, not {name!r}; there is {FORCE!r}")
        if name != FORCE:
            raise ValueError(f"contacts have no attribute {name!r} on request; there is {FORCE!r}")
    return set(attributes)


class Contacts:
    """Contact points between shapes. Made by :meth:`Model.contacts`, filled by :meth:`Model.collide`, or with the contacts of the last
    step by :meth:`newton_like.solvers.SolverFeatherstone.update_contacts`.

    Only the first ``rigid_contact_count[0]`` entries mean anything.

    Attributes:
        rigid_contact_max: number of contacts there is room for.
        rigid_contact_count: number of contacts found, ``[1]`` int. Above ``rigid_contact_max`` where there was no room
            for all, see :attr:`dropped`.
        rigid_contact_shape0, rigid_contact_shape1: shape indices, ``[rigid_contact_max]`` int.
        rigid_contact_point0, rigid_contact_point1: the points that touch [m], each in the link frame of its shape's
            body (in the world frame for static shapes), ``[rigid_contact_max]`` vec3. They lie on the shapes
            themselves, inside the margins.
        rigid_contact_normal: unit vector from shape 0 towards shape 1, world axes, ``[rigid_contact_max]`` vec3.
        rigid_contact_margin0, rigid_contact_margin1: margins of the shapes [m], ``[rigid_contact_max]``. The distance
            of the surfaces is ``dot(normal, p1 - p0) - margin0 - margin1`` with both points in the world frame.
        force: wrench on the body of shape 0 by shape 1: force [N], and torque about the body's centre of mass (for a static shape:
            about the origin of the world) [N m], world axes, ``[rigid_contact_max]`` spatial vectors. The force on shape 1 is the opposite
            one. None unless it was requested by ``model.request_contact_attributes("force")``. Zero after :meth:`Model.collide`, which
            finds contacts without forces.
        world_count: number of worlds of the model; 0: not known yet, as the user made the list.
        lost: the array of :attr:`dropped_by_world`, which means nothing where no contact was dropped.
        short: whether a search on a CPU found more contacts than there is room for; the first one warns.
        made_by: ``Model.made_by`` of the model that made the contacts. Functions raise ValueError for contacts of another model. None:
            made by the user, for models of the same device and scalar type.
    """

    def __init__(
        self,
        rigid_contact_max: int,
        soft_contact_max: int = 0,
        *,
        device=None,
        dtype=wp.float32,
        requires_grad: bool = False,
        requested_attributes=(),
        world_count: int = 0,
    ):
        """Allocates memory for contacts.

        Args:
            rigid_contact_max: capacity, at least 0.
            soft_contact_max: must be 0: there are no deformable bodies.
            device: Warp device.
            dtype: scalar type, that of the model.
            requires_grad: allocate gradients for points, normals and margins.
            requested_attributes: names of attributes that exist on request: ``("force",)``.
            world_count: number of worlds of the model, for :attr:`dropped_by_world`; functions that find contacts set it.

        Raises:
            TypeError: ``rigid_contact_max`` or ``world_count`` is not an integer; an attribute is not a text.
            ValueError: one of them is negative; there is no such attribute.
        """
        soft = {"soft_contact_max": (0, "there are no deformable bodies here")}
        check_option("Contacts", "soft_contact_max", soft_contact_max, soft, ())
        requested = checked_attributes(requested_attributes)
        count, types = as_count(rigid_contact_max, "rigid_contact_max", 0), warp_types(dtype)
        real = {"device": device, "requires_grad": requires_grad}
        self.made_by, self.rigid_contact_max = None, count
        self.short = self.told = False
        self.rigid_contact_count = wp.zeros(1, dtype=wp.int32, device=device)
        self.set_world_count(as_count(world_count, "world_count", 0))
        self.rigid_contact_shape0 = wp.full(count, -1, dtype=wp.int32, device=device)
        self.rigid_contact_shape1 = wp.full(count, -1, dtype=wp.int32, device=device)
        self.rigid_contact_point0 = wp.zeros(count, dtype=types.vec3, **real)
        self.rigid_contact_point1 = wp.zeros(count, dtype=types.vec3, **real)
        self.rigid_contact_normal = wp.zeros(count, dtype=types.vec3, **real)
        self.rigid_contact_margin0 = wp.zeros(count, dtype=types.real, **real)
        self.rigid_contact_margin1 = wp.zeros(count, dtype=types.real, **real)
        self.force = wp.zeros(count, dtype=types.spatial_vector, device=device) if FORCE in requested else None

    def __deepcopy__(self, memo) -> Contacts:
        """Contacts with arrays of their own, of the same model, or of its copy if both are copied together."""
        result = copy.copy(self)
        result.made_by = memo.get(id(self.made_by), self.made_by)
        for name, value in vars(self).items():
            if isinstance(value, wp.array):
                vars(result)[name] = wp.clone(value)
        return result

    def clear(self) -> None:
        """Forgets all contacts."""
        self.rigid_contact_count.zero_()

    def set_world_count(self, world_count: int) -> None:
        """Makes the array of :attr:`dropped_by_world` for a number of worlds."""
        self.world_count = world_count
        self.lost = wp.zeros(world_count + 1, dtype=wp.int32, device=self.device)

    @property
    def dropped(self) -> int:
        """Contacts that were found but had no room; make more with ``model.contacts(rigid_contact_max=...)``."""
        return max(0, int(self.rigid_contact_count.numpy()[0]) - self.rigid_contact_max)

    @property
    def dropped_by_world(self) -> wp.array:
        """Contacts of each world that were found but had no room, ``[world_count + 1]`` int; the last entry is that of bodies that belong
        to no single world. The next call that finds contacts overwrites the array."""
        if not self.dropped:
            self.lost.zero_()
        return self.lost

    def warn_dropped(self, stacklevel: int) -> None:
        """Warns of contacts without room, once for each list."""
        if self.told:
            return
        self.told = True
        warnings.warn(
            f"Model.collide: {self.dropped_message()}, so that bodies may sink into each other; make a longer list by"
            " model.contacts(rigid_contact_max=...), or set model.rigid_contact_max",
            UserWarning,
            stacklevel=stacklevel + 1,
        )

    def dropped_message(self) -> str:
        """How many contacts had no room, and in which worlds, for messages."""
        lost = self.dropped_by_world.numpy()
        worlds = np.flatnonzero(lost[:-1])
        named = ", ".join(
            f"{n} of world {w}" for w, n in zip(worlds[:_NAMED].tolist(), lost[worlds].tolist(), strict=False)
        )
        if len(worlds) > _NAMED:
            named += f", and others of {len(worlds) - _NAMED} more worlds"
        number = self.dropped
        return f"{number} contact{'' if number == 1 else 's'} had no room{f' ({named})' if named else ''}"

    @property
    def device(self) -> wp.Device:
        """Where the arrays are."""
        return self.rigid_contact_count.device
