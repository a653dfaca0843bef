"""Small MJCF models as texts, and a mesh in which MuJoCo's rules of mesh inertia differ."""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.importers.mjcf import MjcfWarning
from newton_like.model.builder.builder import ModelBuilder

from .random_mjcf import text

BOX = '<geom type="box" size=".1 .2 .3"/>'
TETRA = 'vertex="0 0 0  1 0 0  0 .8 0  0 0 .6"'


def model(inside, outside=""):
    return f'<mujoco model="m">{outside}<worldbody>{inside}</worldbody></mujoco>'


def hinge(inside="", after="", joint=""):
    """A body on a hinge, and what comes after the world."""
    body = f'<body name="a"><joint name="j" {joint}/>{BOX}{inside}</body>'
    return f'<mujoco model="m"><worldbody>{body}</worldbody>{after}</mujoco>'


def load(xml, **options):
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MjcfWarning)
        return builder, builder.add_mjcf(xml, **options)


def prism(corners, triangles):
    """Vertices and faces of a polygon of height 1."""
    n = len(corners)
    points = [(x, y, z) for z in (0.0, 1.0) for x, y in corners]
    faces = [(a, c, b) for a, b, c in triangles] + [(a + n, b + n, c + n) for a, b, c in triangles]
    for i in range(n):
        j = (i + 1) % n
        faces += [(i, j, j + n), (i, j + n, i + n)]
    return points, faces


# A "U": neither convex nor star-shaped, so that MuJoCo's four kinds of mesh inertia differ.
U_POINTS, U_FACES = prism(
    [(0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3)],
    [(0, 1, 4), (0, 4, 5), (1, 2, 4), (2, 3, 4), (0, 5, 7), (5, 6, 7)],
)
U_MESH = f'vertex="{text(U_POINTS)}" face="{" ".join(map(str, np.ravel(U_FACES)))}"'


def with_mesh(mesh, geom='type="mesh"', compiler=""):
    body = f'<body><freejoint/><geom {geom} mesh="u" density="20" pos=".1 .2 .3" euler="10 20 30"/></body>'
    return model(body, f'<compiler {compiler}/><asset><mesh name="u" {mesh}/></asset>')
