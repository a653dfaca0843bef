"""Dots and arrows for contacts and their forces."""

from __future__ import annotations

import numpy as np

from newton_like.collision.marks import COLORS, DOT, HEAD, LONGEST, ROD, WEAK, Marks
from newton_like.geometry.outline import triangles
from newton_like.types import GeoType
from newton_like.viewer.skeleton import between, rod_between


def arrows(marks: Marks, size: float, largest: float) -> list[tuple]:
    """Vertices in the world, faces and colours of dots and arrows.

    Args:
        marks: the contacts.
        size: size of the scene [m].
        largest: the force with the longest arrow [N].
    """
    dot, found = triangles(GeoType.SPHERE, (DOT * size, 0, 0)), []
    for point, force in zip(marks.points, marks.forces, strict=True):
        if not np.isfinite(point).all():
            continue
        found.append((dot[0] + point, dot[1], COLORS[0]))
        strength = float(np.linalg.norm(force))
        if np.isfinite(strength) and largest > 0.0 and strength >= WEAK * largest:
            tip = point + force * (LONGEST * size / largest)
            neck = tip - force * min(0.5 * (LONGEST * size / largest), 3.0 * HEAD * size / strength)
            found += rod_between(point, neck, ROD * size, COLORS[1])
            found += between(GeoType.CONE, neck, tip, HEAD * size, COLORS[1])
    return found
