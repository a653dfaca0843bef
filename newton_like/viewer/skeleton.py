"""Spheres and rods for bodies without shapes."""

from __future__ import annotations

import numpy as np

from newton_like.geometry.outline import triangles
from newton_like.geometry.transforms import quat_rotate, transform_multiply
from newton_like.types import GeoType

BALL, ROD = 0.018, 0.009
"""Radii of spheres and rods, as fractions of the largest distance between joints."""
COLORS = ((0.85, 0.47, 0.16), (0.45, 0.49, 0.54))
"""Colours of movable joints, and of rods and fixed joints."""
SHOWN = 0.5
"""Fraction of the bodies with mass that have shapes from which no skeleton is drawn."""


def skeleton(
    model, poses: np.ndarray, shown: list[int] | None, drawn: set[int], hidden: np.ndarray | None = None
) -> list[tuple]:
    """Vertices in the world, faces and colour of spheres at the joints and rods between them. A fixed joint has no sphere if it is inside
    that of a movable joint, which it would hide.

    Args:
        model: the model.
        poses: poses of its bodies, ``[bodies, 7]``.
        shown: the worlds to draw; None: all.
        drawn: bodies with shapes.
        hidden: bodies that are left out, ``[bodies]`` bools; None: none.
    """
    mass, worlds = model.body_mass.numpy(), model.body_world.numpy()
    here = np.ones(model.body_count, dtype=bool) if shown is None else np.isin(worlds, [-1, *shown])
    heavy = {int(b) for b in np.flatnonzero(here & (mass > 0.0))}
    if not heavy or len(heavy & drawn) >= SHOWN * len(heavy):
        return []
    if hidden is not None:
        here, heavy = here & ~hidden, {b for b in heavy if not hidden[b]}
    child, parent = model.joint_child.numpy(), model.joint_parent.numpy()
    frames = model.joint_X_c.numpy().astype(np.float64)
    moves = np.diff(model.joint_qd_start.numpy()) > 0
    tree = [j for j in range(model.joint_count) if here[child[j]] and model.joint_articulation.numpy()[j] >= 0]
    places = {int(child[j]): transform_multiply(poses[child[j]], frames[j])[:3] for j in tree}
    points = np.array(list(places.values())).reshape(-1, 3)
    size = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) > 1 else 1.0
    size = size or 1.0
    radius, rod = BALL * size, ROD * size
    ball = triangles(GeoType.SPHERE, (radius, 0, 0))
    hinges = np.array([places[int(child[j])] for j in tree if moves[j]]).reshape(-1, 3)
    found = []
    for j in tree:
        place = places[int(child[j])]
        if moves[j] or (np.linalg.norm(hinges - place, axis=1) > radius).all():
            found.append((ball[0] + place, ball[1], COLORS[0 if moves[j] else 1]))
    coms = model.body_com.numpy().astype(np.float64)
    for j in tree:
        begin = places.get(int(parent[j]))
        if begin is not None:
            found += rod_between(begin, places[int(child[j])], rod, COLORS[1])
    leaves = set(places) - {int(parent[j]) for j in tree}
    for body in sorted(leaves & heavy):
        found += rod_between(places[body], quat_rotate(poses[body][3:], coms[body]) + poses[body][:3], rod, COLORS[1])
    return found


def rod_between(begin: np.ndarray, end: np.ndarray, radius: float, color) -> list[tuple]:
    """Vertices in the world, faces and colour of a rod with round ends; none without length."""
    return between(GeoType.CAPSULE, begin, end, radius, color)


def between(kind: GeoType, begin: np.ndarray, end: np.ndarray, radius: float, color) -> list[tuple]:
    """Vertices in the world, faces and colour of a capsule, cylinder or cone with these ends of its axis; none without length."""
    length = float(np.linalg.norm(end - begin))
    if length < 1.0e-9:
        return []
    vertices, faces = triangles(kind, (radius, 0.5 * length, 0))
    z = (end - begin) / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return [(vertices @ np.stack([x, np.cross(z, x), z]) + 0.5 * (begin + end), faces, color)]
