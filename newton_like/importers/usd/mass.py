"""Mass, centre of mass and inertia of USD bodies from properties of bodies, colliders and materials.

The precedence is that of ``UsdPhysicsRigidBodyAPI::ComputeMassProperties``. Mass, centre and inertia of a body have
the highest precedence. For a collider the order is: its mass, its density, the body's density, the material's density,
the importer's default density. A mass given for a body scales the inertia of its colliders.
"""

from __future__ import annotations

import numpy as np

from newton_like.geometry import inertia as rigid
from newton_like.geometry.mesh import warnings_about
from newton_like.geometry.shapes import MASSLESS, mass_properties
from newton_like.importers.shared import possible_inertia
from newton_like.importers.usd.records import Body, Shape
from newton_like.importers.usd.values.pose import moved_mass, transform_inverse, transform_multiply, transform_point

POINT_RADIUS = 0.1
"""Radius [m] of the ball whose inertia a body with mass but without inertia and colliders has, as in UsdPhysics."""


def body_mass(body: Body, shapes: list[Shape], default_density: float, use_given: bool, remark):
    """Mass [kg], centre of mass [m] and inertia about it [kg m^2] in the body's frame.

    Args:
        body: the body.
        shapes: its colliders.
        default_density: density without any other source [kg/m^3].
        use_given: whether MassAPIs are read; false computes all properties from the shapes and the default density.
        remark: function that is called with a statement and a path.

    Raises:
        ValueError: the wall of a shell is thicker than the shape.
    """
    given = body.mass
    mass, com, inertia = given.mass, given.com, given.inertia
    if not use_given:
        mass = com = inertia = None
    if mass is None or com is None or inertia is None:
        density = given.density if use_given else None
        to_body = transform_inverse(body.pose)
        parts = [_shape_mass(shape, density, default_density, use_given, to_body, remark) for shape in shapes]
        total, center, moments = rigid.combine([part for part in parts if part[0] > 0.0])
        if mass is None:
            mass = total
        elif total > 0.0:
            moments = moments * (mass / total)
        if com is None:
            com = center
        elif total > 0.0:
            moments = moments + rigid.parallel_axis(mass, com - center)
        if inertia is None:
            inertia = moments
            if total == 0.0 and mass > 0.0:
                inertia = 0.4 * mass * POINT_RADIUS**2 * np.eye(3)
                remark(
                    "bodies have a mass, but neither inertia nor colliders; they get the inertia of a ball of radius 0.1 m",
                    body.path,
                )
    if mass == 0.0:
        if given.mass is None:
            remark("bodies have neither mass nor colliders", body.path)
        return 0.0, np.zeros(3) if given.com is None else given.com, np.zeros((3, 3))
    return mass, com, possible_inertia(mass, inertia, "bodies", body.path, remark)


def _shape_mass(shape: Shape, body_density, default_density: float, use_given: bool, to_body: np.ndarray, remark):
    """Mass properties of a collider in the body's frame."""
    given = shape.mass
    material = shape.material.density if shape.material is not None else None
    density = (given.density or body_density or material or default_density) if use_given else default_density
    parts = []
    solid, wall = shape.settings.get("is_solid", True), shape.settings.get("margin", 0.0)
    if not solid and wall == 0.0:
        remark("shells have no margin (wall thickness); their mass is computed as for solids", shape.path)
        solid = True
    for piece in shape.pieces:
        if piece.type not in MASSLESS:
            try:
                with warnings_about(f"<{shape.path}>"):
                    local = mass_properties(piece.type, piece.scale, 1.0, piece.mesh, solid, wall)
            except ValueError as error:
                raise ValueError(f"<{shape.path}>: its mass cannot be computed: {error}") from error
            parts.append(moved_mass(local, transform_multiply(to_body, piece.pose)))
    volume, center, moments = rigid.combine(parts)
    frame = transform_multiply(to_body, shape.place)
    if not use_given or given.mass is None:
        mass, moments = density * volume, density * moments
    else:
        mass = given.mass
        moments = moments * (mass / volume) if volume > 0.0 else np.zeros((3, 3))
        if volume == 0.0:
            center = frame[:3]
    if use_given and given.com is not None:
        com = transform_point(frame, given.com)
        if given.inertia is None and volume > 0.0:
            moments = moments + rigid.parallel_axis(mass, com - center)
        center = com
    if use_given and given.inertia is not None:
        _, _, moments = moved_mass((mass, np.zeros(3), given.inertia), frame)
    return mass, center, moments
