"""Buffers of contacts between shapes."""

from __future__ import annotations

import warp as wp

from newton_like.coercion import as_count
from newton_like.types import warp_types


class Contacts:
    """Contact points between shapes. Made by :meth:`Model.contacts`, filled by :meth:`Model.collide`.

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
        made_by: ``Model.made_by`` of the model that made the contacts. Functions raise ValueError for contacts of another model. None:
            made by the user, for models of the same device and scalar type.
    """

    def __init__(self, rigid_contact_max: int, *, device=None, dtype=wp.float32, requires_grad: bool = False):
        """Allocates memory for contacts.

        Args:
            rigid_contact_max: capacity, at least 0.
            device: Warp device.
            dtype: scalar type, that of the model.
            requires_grad: allocate gradients for points, normals and margins.

        Raises:
            TypeError: ``rigid_contact_max`` is not an integer.
            ValueError: it is negative.
        """
        count, types = as_count(rigid_contact_max, "rigid_contact_max", 0), warp_types(dtype)
        real = {"device": device, "requires_grad": requires_grad}
        self.made_by, self.rigid_contact_max = None, count
        self.rigid_contact_count = wp.zeros(1, dtype=wp.int32, device=device)
        self.rigid_contact_shape0 = wp.full(count, -1, dtype=wp.int32, device=device)
        self.rigid_contact_shape1 = wp.full(count, -1, dtype=wp.int32, device=device)
        self.rigid_contact_point0 = wp.zeros(count, dtype=types.vec3, **real)
        self.rigid_contact_point1 = wp.zeros(count, dtype=types.vec3, **real)
        self.rigid_contact_normal = wp.zeros(count, dtype=types.vec3, **real)
        self.rigid_contact_margin0 = wp.zeros(count, dtype=types.real, **real)
        self.rigid_contact_margin1 = wp.zeros(count, dtype=types.real, **real)

    def clear(self) -> None:
        """Forgets all contacts."""
        self.rigid_contact_count.zero_()

    @property
    def dropped(self) -> int:
        """Contacts that were found but had no room; make more with ``model.contacts(rigid_contact_max=...)``."""
        return max(0, int(self.rigid_contact_count.numpy()[0]) - self.rigid_contact_max)

    @property
    def device(self) -> wp.Device:
        """Where the arrays are."""
        return self.rigid_contact_count.device
