"""Mass, centre of mass, inertia and bounding sphere of every shape type, in closed form.

``scale`` is as in ``Model.shape_scale``. Shape frames: the axis of round shapes is z, and the origin is the middle of
the shape (of a cone: half way between base and tip).

=============================== ==================================================
shape                           scale
=============================== ==================================================
``PLANE``                       width (x), length (y), 0; both zero: infinite. Normal +z
``SPHERE``                      radius, 0, 0
``BOX``                         half extents
``CAPSULE``                     radius, half height of the cylindrical part, 0
``CYLINDER``                    radius, half height, 0
``CONE``                        base radius, half height, 0. Base at -z, tip at +z
``ELLIPSOID``                   semi-axes
``MESH``, ``CONVEX_MESH``       factors for the vertices of the source
``HFIELD``                      factors for hx, hy and the heights of the source
=============================== ==================================================
"""

from __future__ import annotations

import math

import numpy as np

from newton_like.geometry import inertia as _inertia
from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.types import GeoType

INFINITE_RADIUS = 1.0e6
"""Bounding radius [m] of an infinite plane. It is finite, so that float32 arithmetic does not give NaN."""

MASSLESS = frozenset({GeoType.NONE, GeoType.PLANE, GeoType.HFIELD})
"""Shape types without mass."""

SOURCES = {GeoType.MESH: Mesh, GeoType.CONVEX_MESH: Mesh, GeoType.HFIELD: Heightfield}
"""Class of the source, for types with a source."""


def _box(density, hx, hy, hz):
    mass = density * 8.0 * hx * hy * hz
    return mass, 0.0, mass / 3.0 * np.array([hy * hy + hz * hz, hx * hx + hz * hz, hx * hx + hy * hy])


def _ellipsoid(density, rx, ry, rz):
    mass = density * 4.0 / 3.0 * math.pi * rx * ry * rz
    return mass, 0.0, mass / 5.0 * np.array([ry * ry + rz * rz, rx * rx + rz * rz, rx * rx + ry * ry])


def _sphere(density, radius, *_):
    return _ellipsoid(density, radius, radius, radius)


def _cylinder(density, radius, half_height, *_):
    mass = density * 2.0 * math.pi * radius**2 * half_height
    across = mass * (radius**2 / 4.0 + half_height**2 / 3.0)
    return mass, 0.0, np.array([across, across, mass * radius**2 / 2.0])


def _capsule(density, radius, half_height, *_):
    # A cylinder and two half balls; the centre of mass of a half ball is 3/8 r from its flat face.
    tube, _, moments = _cylinder(density, radius, half_height)
    ball = density * 4.0 / 3.0 * math.pi * radius**3
    across = ball * (0.4 * radius**2 + half_height**2 + 0.75 * radius * half_height)
    return tube + ball, 0.0, moments + np.array([across, across, 0.4 * ball * radius**2])


def _cone(density, radius, half_height, *_):
    mass = density * 2.0 / 3.0 * math.pi * radius**2 * half_height
    across = mass * 0.15 * (radius**2 + half_height**2)
    return mass, -0.5 * half_height, np.array([across, across, 0.3 * mass * radius**2])


# Formula, names of the sizes, and whether the wall of a shell reduces each size: the inner cylinder of a capsule keeps
# its half height, because the caps shrink with the radius.
_SOLIDS = {
    GeoType.SPHERE: (_sphere, ("radius",), (True,)),
    GeoType.BOX: (_box, ("half extent x", "half extent y", "half extent z"), (True, True, True)),
    GeoType.CAPSULE: (_capsule, ("radius", "half height"), (True, False)),
    GeoType.CYLINDER: (_cylinder, ("radius", "half height"), (True, True)),
    GeoType.ELLIPSOID: (_ellipsoid, ("semi-axis x", "semi-axis y", "semi-axis z"), (True, True, True)),
}


def mass_properties(
    geo_type, scale, density: float, source: Mesh | None = None, is_solid: bool = True, thickness: float = 0.0
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia of a shape of uniform density.

    Closed forms as in textbooks (e.g. Goldstein, Classical Mechanics, ch. 5); the volume integrals of meshes come from
    :class:`newton_like.geometry.mesh.Mesh`.

    Args:
        geo_type: a :class:`newton_like.types.GeoType`.
        scale: three numbers, see the table above.
        density: [kg/m^3]; zero gives a massless shape.
        source: the mesh of ``MESH`` and ``CONVEX_MESH`` shapes. A ``CONVEX_MESH`` has the mass of its
            exact hull.
        is_solid: false for a shell whose walls are inside the surface (for meshes: a thin sheet on the surface).
        thickness: wall thickness of a shell [m].

    Returns:
        Mass [kg]; centre of mass [m] in the shape frame, ``[3]``; inertia [kg m^2] about it in the axes of the shape
        frame, ``[3, 3]``. Planes, heightfields and shapes without geometry have none.

    Raises:
        ValueError: a size, the density or the thickness is negative or not finite, a shell is thicker than its shape,
            a shell has thickness zero, or a mesh shape has no mesh.
    """
    geo_type = GeoType(int(geo_type))
    scale = _sizes(geo_type, scale)
    density = float(density)
    if not math.isfinite(density) or density < 0.0:
        raise ValueError(f"{geo_type.name}: density {density} kg/m^3 must be finite and at least 0")
    if density == 0.0 or geo_type in MASSLESS:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    if not is_solid and not (math.isfinite(thickness) and thickness > 0.0):
        raise ValueError(f"{geo_type.name}: a shell needs a wall thickness above 0 [m], not {thickness}")
    if geo_type in (GeoType.MESH, GeoType.CONVEX_MESH):
        return _mesh(geo_type, scale, density, source, is_solid, thickness)
    if geo_type == GeoType.CONE:
        outer = _as_part(_cone(density, *scale))
        return outer if is_solid else _subtract(outer, _inner_cone(density, scale, thickness))
    if geo_type not in _SOLIDS:
        raise ValueError(f"{geo_type.name}: shapes of this type have no mass properties; set its density to 0")
    formula, names, shrinks = _SOLIDS[geo_type]
    outer = _as_part(formula(density, *scale))
    if is_solid:
        return outer
    inner = list(scale)
    for axis, shrink in enumerate(shrinks):
        if shrink:
            inner[axis] -= thickness
            if inner[axis] <= 0.0:
                raise ValueError(
                    f"{geo_type.name}: wall thickness {thickness:g} must be below the {names[axis]} {scale[axis]:g}"
                )
    return _subtract(outer, _as_part(formula(density, *inner)))


def bounding_radius(geo_type, scale, source=None) -> float:
    """Radius [m] of the sphere around the origin of the shape frame that contains the shape.

    For infinite planes the result is ``INFINITE_RADIUS``. Arguments as in :func:`mass_properties`; the source of a heightfield is a
    :class:`newton_like.geometry.mesh.Heightfield`.
    """
    geo_type = GeoType(int(geo_type))
    x, y, z = _sizes(geo_type, scale)
    if geo_type == GeoType.NONE:
        return 0.0
    if geo_type == GeoType.PLANE:
        return 0.5 * math.hypot(x, y) if x > 0.0 and y > 0.0 else INFINITE_RADIUS
    if geo_type == GeoType.SPHERE:
        return x
    if geo_type == GeoType.CAPSULE:
        return x + y
    if geo_type in (GeoType.CYLINDER, GeoType.CONE):
        return math.hypot(x, y)
    if geo_type == GeoType.ELLIPSOID:
        return max(x, y, z)
    if geo_type == GeoType.BOX:
        return math.hypot(x, y, z)
    if source is None:
        raise ValueError(f"{geo_type.name}: the bounding radius needs the shape's source (mesh or heightfield)")
    if geo_type == GeoType.HFIELD:
        return math.hypot(x * source.hx, y * source.hy, z * max(abs(source.min_z), abs(source.max_z)))
    if geo_type in (GeoType.MESH, GeoType.CONVEX_MESH):
        return float(np.sqrt(np.max(np.sum((source.vertices * (x, y, z)) ** 2, axis=1))))
    raise ValueError(f"{geo_type.name}: shapes of this type have no bounding radius")


def _sizes(geo_type, scale) -> tuple[float, float, float]:
    numbers = np.array(scale, dtype=np.float64)
    if numbers.shape != (3,):
        raise ValueError(f"{geo_type.name}: scale {scale!r} must be three numbers")
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{geo_type.name}: scale {numbers.tolist()} must be finite")
    if geo_type in (GeoType.MESH, GeoType.CONVEX_MESH, GeoType.HFIELD):
        if np.any(numbers == 0.0):
            raise ValueError(f"{geo_type.name}: scale {numbers.tolist()} must not be zero")
        return tuple(numbers.tolist())
    names = {GeoType.CONE: ("radius", "half height"), GeoType.PLANE: ("width", "length")}.get(geo_type)
    for axis in np.flatnonzero(numbers < 0.0):
        if geo_type in _SOLIDS:
            names = _SOLIDS[geo_type][1]
        label = names[axis] if names is not None and axis < len(names) else f"scale[{axis}]"
        raise ValueError(f"{geo_type.name}: {label} {numbers[axis]:g} is negative; sizes are in metres and at least 0")
    return tuple(numbers.tolist())


def _as_part(values) -> tuple[float, np.ndarray, np.ndarray]:
    mass, height, moments = values
    return float(mass), np.array([0.0, 0.0, height]), np.diag(np.asarray(moments, dtype=np.float64))


def _subtract(outer, inner) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass properties of ``outer`` without ``inner``."""
    mass = outer[0] - inner[0]
    com = (outer[0] * outer[1] - inner[0] * inner[1]) / mass
    inertia = outer[2] + _inertia.parallel_axis(outer[0], outer[1] - com)
    inertia -= inner[2] + _inertia.parallel_axis(inner[0], inner[1] - com)
    return mass, com, inertia


def _inner_cone(density, scale, thickness):
    """Mass properties of the cone whose base and side are ``thickness`` inside those of the outer cone."""
    radius, half_height, _ = scale
    height = 2.0 * half_height
    # The inner cone is scaled about the centre of the inscribed sphere, so both sizes have the same factor.
    inradius = radius * height / (radius + math.hypot(radius, height)) if radius > 0.0 else 0.0
    if thickness >= inradius:
        raise ValueError(f"CONE: wall thickness {thickness:g} must be below the inscribed sphere's radius {inradius:g}")
    factor = 1.0 - thickness / inradius
    mass, com, inertia = _as_part(_cone(density, factor * radius, factor * half_height))
    # The base of the inner cone is on the inside of the outer cone's base.
    com = com + np.array([0.0, 0.0, -half_height + thickness + factor * half_height])
    return mass, com, inertia


def _mesh(geo_type, scale, density, source, is_solid, thickness):
    if source is None:
        raise ValueError(f"{geo_type.name}: the mass of a mesh shape needs its mesh as source")
    factors = np.array(scale)
    if geo_type == GeoType.CONVEX_MESH:
        source = source.hull_mesh
    if is_solid and source.is_solid:
        volume, com, inertia = source.volume, source.com, source.inertia
        # Scale factors apply to the second moments, not to the inertia; a mirrored solid has a positive volume.
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        ratio = density * abs(float(np.prod(factors)))
        second = ratio * np.outer(factors, factors) * second
        return volume * ratio, com * factors, np.trace(second) * np.eye(3) - second
    sheet = Mesh(source.vertices * factors, source.indices, is_solid=False, path=source.path)
    mass = density * thickness
    return sheet.volume * mass, sheet.com.copy(), sheet.inertia * mass
