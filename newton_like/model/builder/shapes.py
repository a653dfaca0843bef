"""The shape methods of :class:`ModelBuilder`."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any, Never, TypedDict, Unpack

import numpy as np

from newton_like.coercion import as_flag, as_index, as_member, as_number, as_vector
from newton_like.geometry import inertia
from newton_like.geometry.mesh import Heightfield, Mesh, warnings_about
from newton_like.geometry.shapes import MASSLESS, SOURCES, bounding_radius, mass_properties
from newton_like.geometry.transforms import as_transform, quat_between, transform
from newton_like.model.columns import COLUMNS
from newton_like.model.configs import ShapeConfig
from newton_like.model.custom import AttributeFrequency
from newton_like.options import refuse_options, unknown_option
from newton_like.types import GeoType

GROUND_COLOR = (0.32, 0.34, 0.37)
PALETTE = (
    (0.27, 0.51, 0.71),
    (0.85, 0.55, 0.24),
    (0.36, 0.65, 0.42),
    (0.76, 0.38, 0.36),
    (0.55, 0.47, 0.70),
    (0.60, 0.50, 0.42),
    (0.80, 0.56, 0.70),
    (0.55, 0.58, 0.60),
)

_MATERIALS = [column.name for column in COLUMNS if column.name.startswith("shape_material_")]


class _ShapeArguments(TypedDict, total=False):
    """Arguments of all shape methods, see :class:`ShapeMethods`."""

    xform: Any
    cfg: ShapeConfig | None
    color: Any
    opacity: float | None
    label: str | None
    custom_attributes: dict | None


class _SolidArguments(_ShapeArguments, total=False):
    """Arguments of methods for shapes that may also be sites."""

    as_site: bool


def _passes_on(target, arguments: type):
    """Adds the `arguments` that a method passes on to `target` to its signature. Other arguments raise TypeError."""

    def decorate(method):
        *own, _ = inspect.signature(method).parameters.values()
        known = {parameter.name: parameter for parameter in own}
        for name, parameter in inspect.signature(target).parameters.items():
            if name in arguments.__annotations__:
                known.setdefault(name, parameter)

        @functools.wraps(method)
        def checked(self, *args, **given):
            for name in (name for name in given if name not in known):
                raise unknown_option(method.__name__, name, (n for n in known if n != "self"))
            return method(self, *args, **given)

        checked.__signature__ = inspect.signature(method).replace(parameters=list(known.values()))
        return checked

    return decorate


class ShapeMethods:
    """Part of :class:`ModelBuilder`: methods that add shapes.

    Arguments of all shape methods:

    * ``body``: the body of the shape; -1 is the world.
    * ``xform``: the shape frame in the link frame (in the world frame for body -1).
    * ``cfg``: a :class:`ShapeConfig`; without one ``default_shape_cfg``.
    * ``color``, ``opacity``: for viewers, 0 to 1.
    * ``label``: name; without one ``shape_<index>``.
    * ``as_site``: adds a site with this geometry, without mass and collisions.
    * ``custom_attributes``: entries of :class:`CustomAttribute` of shapes, by key.

    The methods add the mass of the shape (``cfg.density``) to its body, unless the body's inertia is locked, and return
    the shape's index. They raise ``IndexError`` for a body that does not exist, ``TypeError`` for values that are not
    numbers, and ``ValueError`` for values out of range. Shapes of the same body do not collide.
    """

    def add_shape(
        self,
        *,
        body: int,
        type: GeoType | int,
        xform=None,
        cfg: ShapeConfig | None = None,
        scale=None,
        src=None,
        is_static: bool = False,
        color=None,
        opacity: float | None = None,
        label: str | None = None,
        as_site: bool = False,
        custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:
        """Adds a shape of any type.

        Args:
            type: the geometry.
            scale: three numbers, see :class:`GeoType`; by default ones.
            src: the :class:`Mesh` or :class:`Heightfield` of a mesh, hull or heightfield.
            is_static: the shape adds no mass.
        """
        if others:
            refuse_options(ShapeMethods.add_shape, others)
        index = self.shape_count
        label = f"shape_{index}" if label is None else str(label)
        what = f"shape {label!r} (index {index})"
        type = as_member(GeoType, type, f"{what}: type")
        body = as_index(body, f"{what}: body", self.body_count, lowest=-1)
        if body >= 0 and self.body_world[body] != self.current_world:
            raise ValueError(
                f"{what} is added to world {self.current_world}, but {self._describe('body', body)} is in another; "
                "add shapes in the same begin_world() block as their body"
            )
        cfg = self.default_shape_cfg if cfg is None else cfg
        if not isinstance(cfg, ShapeConfig):
            raise TypeError(f"{what}: cfg must be a ShapeConfig, not {cfg!r}")
        cfg = cfg.copy()
        if as_flag(as_site, f"{what}: as_site") or cfg.is_site:
            cfg.mark_as_site()
        cfg.validate(type, what)
        scale = as_vector((1.0, 1.0, 1.0) if scale is None else scale, 3, f"{what}: scale")
        wanted = SOURCES.get(type)
        if wanted is not None and not isinstance(src, wanted):
            raise TypeError(f"{what}: a {type.name} needs a {wanted.__name__}, not {src!r}")
        if wanted is None and src is not None:
            raise ValueError(f"{what}: a {type.name} has no src; omit src={src!r}")
        xform = as_transform(xform, f"{what}: xform")
        if color is None:
            color = getattr(src, "color", None)
        color = PALETTE[index % len(PALETTE)] if color is None else as_vector(color, 3, f"{what}: color")
        opacity = 1.0 if opacity is None else as_number(opacity, f"{what}: opacity")
        if min(*color, opacity) < 0.0 or max(*color, opacity) > 1.0:
            raise ValueError(f"{what}: color {color} and opacity {opacity:g} must be from 0 to 1")
        is_static = as_flag(is_static, f"{what}: is_static")
        try:
            bounding_radius(type, scale, src)  # raises for invalid sizes
            if type == GeoType.MESH and cfg.has_shape_collision and not src.has_area:
                raise ValueError(
                    f"all triangles of {src} are points or lines, which nothing can touch; repair the mesh, or use it without collisions"
                    " (has_shape_collision=False)"
                )
            if type == GeoType.CONVEX_MESH and cfg.has_shape_collision and src.is_line:
                raise ValueError(
                    f"all vertices of {src} lie on a line, or are one point; repair the mesh, or use it without collisions"
                    " (has_shape_collision=False)"
                )
            part = None
            if body >= 0 and cfg.density > 0.0 and not is_static and type not in MASSLESS:
                with warnings_about(f"{what} of body {self.body_label[body]!r}"):
                    part = mass_properties(type, scale, cfg.density, src, cfg.is_solid, cfg.margin)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        self._keep_entries(self._custom_entries(custom_attributes, {AttributeFrequency.SHAPE: 1}, what))

        self.shape_label.append(label)
        self.shape_world.append(self.current_world)
        self.shape_type.append(int(type))
        self.shape_body.append(body)
        self.shape_transform.append(tuple(xform.tolist()))
        self.shape_scale.append(scale)
        self.shape_source.append(src)
        self.shape_flags.append(int(cfg.flags))
        self.shape_is_solid.append(bool(cfg.is_solid))
        self.shape_collision_group.append(int(cfg.collision_group))
        for name in _MATERIALS:
            getattr(self, name).append(float(getattr(cfg, name.removeprefix("shape_material_"))))
        self.shape_margin.append(float(cfg.margin))
        self.shape_gap.append(float(self.rigid_gap if cfg.gap is None else cfg.gap))
        self.shape_color.append(color)
        self.shape_opacity.append(opacity)
        self.shape_collision_filter_parent.append(bool(cfg.collision_filter_parent))
        self._filter_new_shape(index)
        if part is not None and not self.body_lock_inertia[body]:
            self._add_mass(body, *inertia.transform(*part, xform))
        return index

    @_passes_on(add_shape, _ShapeArguments)
    def add_shape_plane(
        self,
        plane=(0.0, 0.0, 1.0, 0.0),
        *,
        xform=None,
        width: float = 10.0,
        length: float = 10.0,
        body: int = -1,
        **shape: Unpack[_ShapeArguments],
    ) -> int:
        """Adds a plane whose solid side is below its normal. Planes have no mass.

        Args:
            plane: ``(a, b, c, d)`` of ``a x + b y + c z + d = 0`` with the normal ``(a, b, c)``; used if ``xform``
                is ``None``. ``(0, 0, 1, -h)`` is the plane ``z = h``.
            xform: pose of the plane; its normal is the z axis.
            width, length: extent along x and y [m] for viewers and bounding spheres; 0: infinite.
        """
        if xform is None:
            named = "" if shape.get("label") is None else f"shape {shape['label']!r}: "
            a, b, c, d = as_vector(plane, 4, f"{named}plane")
            size = math.hypot(a, b, c)
            if size < 1.0e-12:
                raise ValueError(f"{named}plane {plane}: the normal (a, b, c) is zero; give a direction")
            normal = np.array([a, b, c]) / size
            xform = transform(-d / size * normal, quat_between((0.0, 0.0, 1.0), normal))
        scale = (as_number(width, "width"), as_number(length, "length"), 0.0)
        return self.add_shape(body=body, type=GeoType.PLANE, xform=xform, scale=scale, **shape)

    def add_ground_plane(
        self,
        *,
        height: float = 0.0,
        cfg: ShapeConfig | None = None,
        color=GROUND_COLOR,
        opacity: float | None = None,
        label: str | None = "ground_plane",
        **others: Never,
    ) -> int:
        """Adds an infinite plane perpendicular to the up axis.

        Args:
            height: position along the up axis [m].
        """
        if others:
            refuse_options(ShapeMethods.add_ground_plane, others)
        plane = (*self.up_vector, -as_number(height, "height"))
        return self.add_shape_plane(plane, width=0.0, length=0.0, cfg=cfg, color=color, opacity=opacity, label=label)

    @_passes_on(add_shape, _SolidArguments)
    def add_shape_sphere(self, body: int, *, radius: float = 1.0, **shape: Unpack[_SolidArguments]) -> int:
        """Adds a sphere of the given radius [m]."""
        return self._add_sized(GeoType.SPHERE, body, {"radius": radius}, shape)

    @_passes_on(add_shape, _SolidArguments)
    def add_shape_box(
        self, body: int, *, hx: float = 0.5, hy: float = 0.5, hz: float = 0.5, **shape: Unpack[_SolidArguments]
    ) -> int:
        """Adds a box with the given **half** sides [m]."""
        return self._add_sized(GeoType.BOX, body, {"hx": hx, "hy": hy, "hz": hz}, shape)

    @_passes_on(add_shape, _SolidArguments)
    def add_shape_capsule(
        self, body: int, *, radius: float = 1.0, half_height: float = 0.5, **shape: Unpack[_SolidArguments]
    ) -> int:
        """Adds a capsule along z; ``half_height`` [m] is half the length of its cylinder, without the caps."""
        return self._add_sized(GeoType.CAPSULE, body, {"radius": radius, "half_height": half_height}, shape)

    @_passes_on(add_shape, _SolidArguments)
    def add_shape_cylinder(
        self, body: int, *, radius: float = 1.0, half_height: float = 0.5, **shape: Unpack[_SolidArguments]
    ) -> int:
        """Adds a cylinder along z with the given radius and half height [m]."""
        return self._add_sized(GeoType.CYLINDER, body, {"radius": radius, "half_height": half_height}, shape)

    @_passes_on(add_shape, _SolidArguments)
    def add_shape_cone(
        self, body: int, *, radius: float = 1.0, half_height: float = 0.5, **shape: Unpack[_SolidArguments]
    ) -> int:
        """Adds a cone along z: base of the given radius [m] at ``-half_height``, tip at ``+half_height`` [m]."""
        return self._add_sized(GeoType.CONE, body, {"radius": radius, "half_height": half_height}, shape)

    @_passes_on(add_shape, _SolidArguments)
    def add_shape_ellipsoid(
        self, body: int, *, rx: float = 1.0, ry: float = 0.75, rz: float = 0.5, **shape: Unpack[_SolidArguments]
    ) -> int:
        """Adds an ellipsoid with the given semi-axes [m]."""
        return self._add_sized(GeoType.ELLIPSOID, body, {"rx": rx, "ry": ry, "rz": rz}, shape)

    @_passes_on(add_shape, _ShapeArguments)
    def add_shape_mesh(
        self, body: int, *, mesh: Mesh | None = None, scale=None, **shape: Unpack[_ShapeArguments]
    ) -> int:
        """Adds a triangle mesh.

        Args:
            mesh: the geometry; shapes may share a mesh.
            scale: factors for the mesh along x, y, z; one number for all three; by default 1.
        """
        return self.add_shape(body=body, type=GeoType.MESH, scale=_factors(scale), src=mesh, **shape)

    @_passes_on(add_shape, _ShapeArguments)
    def add_shape_convex_hull(
        self, body: int, *, mesh: Mesh | None = None, scale=None, **shape: Unpack[_ShapeArguments]
    ) -> int:
        """Adds the convex hull of a mesh, with the hull's mass and inertia. Arguments as :meth:`add_shape_mesh`."""
        return self.add_shape(body=body, type=GeoType.CONVEX_MESH, scale=_factors(scale), src=mesh, **shape)

    @_passes_on(add_shape, _ShapeArguments)
    def add_shape_heightfield(
        self, *, heightfield: Heightfield | None = None, scale=None, **shape: Unpack[_ShapeArguments]
    ) -> int:
        """Adds a terrain of heights over a grid, fixed in the world.

        Args:
            heightfield: the grid.
            scale: factors for its extents along x and y and for its heights; by default 1.
        """
        return self.add_shape(body=-1, type=GeoType.HFIELD, scale=_factors(scale), src=heightfield, **shape)

    def add_site(
        self,
        body: int,
        *,
        xform=None,
        type: GeoType | int = GeoType.SPHERE,
        scale=(0.01, 0.01, 0.01),
        label: str | None = None,
        visible: bool = False,
        custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:
        """Adds a named frame on a body, without mass and collisions.

        Args:
            type, scale: geometry of the frame in viewers.
            visible: whether viewers draw the frame.
        """
        if others:
            refuse_options(ShapeMethods.add_site, others)
        cfg = self.default_site_cfg.copy(is_visible=as_flag(visible, f"site {label!r}: visible"))
        settings = {"label": label, "as_site": True, "custom_attributes": custom_attributes}
        return self.add_shape(body=body, type=type, xform=xform, cfg=cfg, scale=scale, **settings)

    def color(
        self,
        include_bending: bool = False,
        balance_colors: bool = True,
        target_max_min_color_ratio: float = 1.1,
        coloring_algorithm=None,
    ) -> None:
        """Has no effect. In Newton it colours particles and bodies for ``SolverVBD``, which does not exist here.

        Raises:
            TypeError, ValueError: an argument is of another kind than in Newton.
        """
        as_flag(include_bending, "include_bending")
        as_flag(balance_colors, "balance_colors")
        as_number(target_max_min_color_ratio, "target_max_min_color_ratio")

    def add_shape_collision_filter_pair(self, shape_a: int, shape_b: int) -> None:
        """Disables contacts between two shapes.

        Raises:
            IndexError: a shape does not exist.
            ValueError: both are the same shape.
        """
        a = as_index(shape_a, "shape_a", self.shape_count)
        b = as_index(shape_b, "shape_b", self.shape_count)
        self.shape_collision_filter_pairs.add((a, b))

    def _add_sized(self, geo_type: GeoType, body: int, sizes: dict, shape: dict) -> int:
        label = shape.get("label")
        what = f"shape {f'shape_{self.shape_count}' if label is None else label!r} ({geo_type.name})"
        values = []
        for name, size in sizes.items():
            size = as_number(size, f"{what}: {name}")
            if size < 0.0 or (size == 0.0 and (geo_type, name) != (GeoType.CAPSULE, "half_height")):
                raise ValueError(f"{what}: {name} {size:g} must be above 0 [m]")
            values.append(size)
        scale = (*values, *(0.0,) * (3 - len(values)))
        return self.add_shape(body=body, type=geo_type, scale=scale, **shape)

    def _add_mass(self, body: int, mass: float, com, moments) -> None:
        present = (self.body_mass[body], self.body_com[body], self.body_inertia[body])
        self._set_mass(body, *inertia.combine([present, (mass, com, moments)]))

    def _set_mass(self, body: int, mass: float, com, moments) -> None:
        self.body_mass[body] = mass
        self.body_com[body] = tuple(com.tolist())
        self.body_inertia[body] = tuple(map(tuple, moments.tolist()))

    def _filter_new_shape(self, shape: int) -> None:
        """Adds the filter pairs of a new shape with the shapes of its body and of bodies that joints connect to its body."""
        body = self.shape_body[shape]
        if body >= 0:
            self._add_filter_pairs([shape], self._shapes_of(body, before=shape))
        if not self.shape_collision_filter_parent[shape]:
            return
        for joint in self._joints_of(body):
            if self.joint_collision_filter_parent[joint]:
                ends = (self.joint_parent[joint], self.joint_child[joint])
                other = ends[1] if ends[0] == body else ends[0]
                self._add_filter_pairs([shape], self._filtered_shapes_of(other))

    def _filter_bodies(self, parent: int, child: int) -> None:
        """Adds the filter pairs of all shapes of two bodies that a new joint connects."""
        self._add_filter_pairs(self._filtered_shapes_of(parent), self._filtered_shapes_of(child))

    def _filtered_shapes_of(self, body: int) -> list[int]:
        return [shape for shape in self._shapes_of(body) if self.shape_collision_filter_parent[shape]]

    def _add_filter_pairs(self, first: list[int], second: list[int]) -> None:
        if first and second:
            grid = np.meshgrid(first, second, indexing="ij")
            self.shape_collision_filter_pairs.update(np.stack(grid, axis=-1).reshape(-1, 2))


def _factors(scale):
    return (scale,) * 3 if np.isscalar(scale) or getattr(scale, "shape", None) == () else scale
