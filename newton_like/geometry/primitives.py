"""Meshes of simple shapes, made by trimesh."""

from __future__ import annotations

import numpy as np

from newton_like.coercion import as_count, as_number
from newton_like.geometry.transforms import quat_between, quat_to_matrix
from newton_like.options import ANY, check_option
from newton_like.types import Axis, AxisType

_OWN = {"compute_inertia": True}
_NEWTON = {
    "compute_normals": (ANY, ""),
    "compute_uvs": (ANY, ""),
    "duplicate_vertices": (ANY, ""),
    "reverse_winding": (False, "triangles are seen from outside; make a Mesh of mesh.vertices and mesh.indices[::-1]"),
    "top_radius": (None, "make a Mesh of vertices and triangles"),
    "barrel_radius": (0.0, "make a Mesh of vertices and triangles"),
}
"""Options of Newton 1.8: values without effect, and advice instead of other values. Meshes have no normals and no texture coordinates."""


class Primitives:
    """The ``create_*`` methods of :class:`Mesh`, with the arguments of Newton. The centre of each shape is the origin.

    All take ``compute_inertia``, see :class:`Mesh`. Options of Newton about normals, texture coordinates and shared vertices have no
    effect: a mesh has no normals and no texture coordinates. All raise ValueError for sizes that are not above 0, and TypeError for
    unknown options.
    """

    @classmethod
    def create_box(cls, hx: float, hy: float | None = None, hz: float | None = None, **options):
        """A box.

        Args:
            hx, hy, hz: half the extents [m]; ``hy`` and ``hz`` are ``hx`` by default.
        """
        import trimesh

        sizes = [_size(hx if h is None else h, f"create_box: {n}") for n, h in (("hx", hx), ("hy", hy), ("hz", hz))]
        return _mesh(cls, "create_box", trimesh.creation.box(2.0 * np.array(sizes)), options)

    @classmethod
    def create_sphere(cls, radius: float = 1.0, *, num_latitudes: int = 32, num_longitudes: int = 32, **options):
        """A sphere, whose vertices lie on the surface.

        Args:
            radius: radius [m].
            num_latitudes, num_longitudes: numbers of subdivisions, at least 3.
        """
        counts = {"num_latitudes": num_latitudes, "num_longitudes": num_longitudes}
        return _mesh(
            cls,
            "create_sphere",
            _ball("create_sphere", [_size(radius, "create_sphere: radius")] * 3, **counts),
            options,
        )

    @classmethod
    def create_ellipsoid(
        cls,
        rx: float = 1.0,
        ry: float = 1.0,
        rz: float = 1.0,
        *,
        num_latitudes: int = 32,
        num_longitudes: int = 32,
        **options,
    ):
        """An ellipsoid, whose vertices lie on the surface.

        Args:
            rx, ry, rz: semi-axes [m].
            num_latitudes, num_longitudes: numbers of subdivisions, at least 3.
        """
        radii = [_size(r, f"create_ellipsoid: {n}") for n, r in (("rx", rx), ("ry", ry), ("rz", rz))]
        counts = {"num_latitudes": num_latitudes, "num_longitudes": num_longitudes}
        return _mesh(cls, "create_ellipsoid", _ball("create_ellipsoid", radii, **counts), options)

    @classmethod
    def create_capsule(
        cls, radius: float, half_height: float, *, up_axis: AxisType = Axis.Y, segments: int = 32, **options
    ):
        """A capsule.

        Args:
            radius: radius [m].
            half_height: half the height of the cylindrical part [m].
            up_axis: axis of the capsule.
            segments: number of subdivisions, at least 3.
        """
        import trimesh

        radius, half_height, count = _round("create_capsule", radius, half_height, segments)
        made = trimesh.creation.capsule(height=2.0 * half_height, radius=radius, count=[count, count])
        return _mesh(cls, "create_capsule", made, options, up_axis)

    @classmethod
    def create_cylinder(
        cls, radius: float, half_height: float, *, up_axis: AxisType = Axis.Y, segments: int = 32, **options
    ):
        """A cylinder: a prism with corners on the surface of the cylinder.

        Args:
            radius: radius [m].
            half_height: half the height [m].
            up_axis: axis of the cylinder.
            segments: number of corners of the ends, at least 3.
        """
        import trimesh

        radius, half_height, count = _round("create_cylinder", radius, half_height, segments)
        made = trimesh.creation.cylinder(radius=radius, height=2.0 * half_height, sections=count)
        return _mesh(cls, "create_cylinder", made, options, up_axis)

    @classmethod
    def create_cone(
        cls, radius: float, half_height: float, *, up_axis: AxisType = Axis.Y, segments: int = 32, **options
    ):
        """A cone: a pyramid with corners on the surface of the cone. The origin is half-way between base and tip.

        Args:
            radius: radius of the base [m].
            half_height: half the height [m].
            up_axis: axis of the cone, from the base to the tip.
            segments: number of corners of the base, at least 3.
        """
        import trimesh

        radius, half_height, count = _round("create_cone", radius, half_height, segments)
        made = trimesh.creation.cone(radius=radius, height=2.0 * half_height, sections=count)
        return _mesh(cls, "create_cone", made, options, up_axis)


def _size(value, what: str) -> float:
    value = as_number(value, what)
    if value <= 0.0:
        raise ValueError(f"{what} {value:g} m must be above 0")
    return value


def _round(name: str, radius, half_height, segments) -> tuple[float, float, int]:
    sizes = _size(radius, f"{name}: radius"), _size(half_height, f"{name}: half_height")
    return *sizes, as_count(segments, f"{name}: segments", 3)


def _ball(name: str, radii: list[float], **counts):
    import trimesh

    return trimesh.creation.uv_sphere(
        1.0, count=[as_count(n, f"{name}: {c}", 3) for c, n in counts.items()]
    ).apply_scale(radii)


def _mesh(cls, name: str, made, options: dict, up_axis: AxisType = Axis.Z):
    """A mesh from one of trimesh, along the axis z, about its centre."""
    for option in options.keys() - _OWN.keys():
        check_option(f"Mesh.{name}", option, options[option], _NEWTON, _OWN)
    turn = quat_to_matrix(quat_between((0.0, 0.0, 1.0), Axis.from_any(up_axis).to_vector()))
    # trimesh puts the base of cones, and in some versions a cap of capsules, at the origin
    points = (made.vertices - [0.0, 0.0, made.bounds[:, 2].mean()]) @ turn.T
    return cls(points, made.faces, compute_inertia=options.get("compute_inertia", True))
