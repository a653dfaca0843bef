"""Places and forces of contacts of a list in the world, and markers for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.collision.pipeline import check_contacts
from newton_like.geometry.markers import Markers
from newton_like.geometry.transforms import quat_rotate

DOT, ROD, HEAD = 0.008, 0.004, 0.012
"""Radii of dots, of arrows and of their heads, as fractions of the size of the scene."""
LONGEST = 0.25
"""Length of the arrow of the largest force, as a fraction of the size of the scene."""
WEAK = 0.01
"""Forces below this fraction of the largest one have no arrow."""
COLORS = ((0.90, 0.62, 0.10), (0.82, 0.16, 0.14))
"""Colours of dots and arrows."""


@dataclass
class Marks:
    """Contacts that are drawn.

    Attributes:
        points: places in the world, ``[n, 3]`` [m].
        forces: forces on the second shapes, ``[n, 3]`` [N].
    """

    points: np.ndarray
    forces: np.ndarray

    @property
    def largest(self) -> float:
        """The largest finite force [N]; 0 without contacts."""
        sizes = np.linalg.norm(self.forces, axis=1)
        return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def marks_of(model, poses: np.ndarray, contacts, worlds: list[int] | None, offsets: np.ndarray) -> Marks:
    """The contacts of a list, without those of shapes that do not exist.

    Args:
        model: the model.
        poses: poses of its bodies where they are drawn, ``[bodies, 7]``.
        contacts: the list.
        worlds: the worlds that are drawn; None: all.
        offsets: by how much worlds are moved, ``[worlds + 1, 3]``; last: what belongs to all.

    Raises:
        TypeError, ValueError: ``contacts`` are not a list of contacts, or belong to another model.
    """
    check_contacts(model, contacts)
    count = max(min(int(contacts.rigid_contact_count.numpy()[0]), contacts.rigid_contact_max), 0)
    shapes = [array.numpy()[:count] for array in (contacts.rigid_contact_shape0, contacts.rigid_contact_shape1)]
    # steps do not use contacts of shapes that do not exist
    chosen = np.logical_and(*((s >= 0) & (s < model.shape_count) for s in shapes))
    world = np.full(count, -1)
    world[chosen] = np.maximum(*(model.shape_world.numpy()[s[chosen]] for s in shapes))
    if worlds is not None:
        chosen &= np.isin(world, [-1, *worlds])
    shapes, world = [s[chosen] for s in shapes], world[chosen]
    points = np.zeros((len(world), 3))
    for s, array in zip(shapes, (contacts.rigid_contact_point0, contacts.rigid_contact_point1), strict=True):
        x = array.numpy()[:count][chosen].astype(np.float64)
        body = model.shape_body.numpy()[s]
        x[body < 0] += offsets[world[body < 0]]
        carried = poses[body[body >= 0]]
        x[body >= 0] = quat_rotate(carried[:, 3:], x[body >= 0]) + carried[:, :3]
        points += 0.5 * x
    force = getattr(contacts, "force", None)
    forces = np.zeros((len(points), 3)) if force is None else -force.numpy()[:count][chosen, :3].astype(np.float64)
    return Marks(points, forces)


def markers_of(marks: Marks, size: float, largest: float) -> Markers:
    """A ball at each contact, and an arrow along its force.

    Args:
        marks: the contacts.
        size: size of the scene [m].
        largest: the force with the longest arrow [N].
    """
    found = Markers().add_balls(marks.points, DOT * size, COLORS[0])
    strength = np.linalg.norm(marks.forces, axis=1)
    strong = np.isfinite(strength) & (strength >= WEAK * largest) & (strength > 0.0)
    if strong.any():
        vectors = marks.forces[strong] * (LONGEST * size / largest)
        found.add_arrows(marks.points[strong], vectors, ROD * size, COLORS[1])
    return found
