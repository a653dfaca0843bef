"""Contacts of lists on spheres and capsules, which roll.

The points of a list move with their bodies until the step solves them. A point on the surface of a ball that rolls would turn with it, away
from the ground. The point of its core, the centre of the sphere or a point on the axis of the capsule, stays above the place where it
touches: the surface is at the distance of the radius from it, along the normal of the contact.
"""

from functools import cache

import warp as wp

SPHERE, CAPSULE = 3, 4
"""Types of shapes in a model: ``newton_like.types.GeoType``."""

SURFACE = 1.0e-3
"""A point is on the surface if its distance from the core differs from the radius by no more than this part of it."""


@cache
def core_function(real):
    """The function ``(s, x, ...)`` that gives the way from a point x of a contact of shape s, in the frame of the body, to the core of the
    shape; zero for other shapes than spheres and capsules, for shapes on no body, and where x is not on the surface."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)
    sphere, capsule = SPHERE, CAPSULE

    @wp.func
    def to_core(
        s: int,
        x: vec3,
        shape_body: wp.array[int],
        shape_type: wp.array[int],
        shape_transform: wp.array[transform],
        shape_scale: wp.array[vec3],
    ) -> vec3:
        way = vec3(real(0.0), real(0.0), real(0.0))
        if shape_body[s] >= 0 and (shape_type[s] == sphere or shape_type[s] == capsule):
            pose = shape_transform[s]
            local = wp.transform_point(wp.transform_inverse(pose), x)
            along = real(0.0)
            if shape_type[s] == capsule:
                along = wp.clamp(local[2], -shape_scale[s][1], shape_scale[s][1])
            out = vec3(-local[0], -local[1], along - local[2])
            radius = shape_scale[s][0]
            if wp.abs(wp.length(out) - radius) <= real(SURFACE) * radius:
                way = wp.transform_vector(pose, out)
        return way

    return to_core
