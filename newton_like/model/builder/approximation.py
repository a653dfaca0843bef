"""The methods of :class:`ModelBuilder` that replace meshes by simpler shapes for collisions."""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.coercion import as_flag, as_index, as_list
from newton_like.geometry import decomposition
from newton_like.geometry.shapes import bounding_radius
from newton_like.geometry.transforms import transform, transform_multiply
from newton_like.model.columns import COLUMNS
from newton_like.model.custom import AttributeFrequency
from newton_like.options import check_option
from newton_like.types import GeoType, ShapeFlags

METHODS = ("convex_hull", "coacd", "bounding_box", "bounding_sphere")
"""Values of ``method``."""

_SHAPE_COLUMNS = [column.name for column in COLUMNS if column.kind == "shape"]


class ApproximationMethods:
    """Part of :class:`ModelBuilder`: :meth:`approximate_meshes`."""

    def approximate_meshes(
        self,
        method: str = "convex_hull",
        shape_indices=None,
        raise_on_failure: bool = False,
        keep_visual_shapes: bool = False,
        **settings,
    ) -> set[int]:
        """Replaces meshes by convex shapes. Masses stay as they are.

        A colliding mesh on a moving body touches with its convex hull. ``"coacd"`` divides meshes into convex parts, so that a cup holds a
        ball and a ring fits on a peg. Call this method before :meth:`replicate` or :meth:`add_world`: worlds then share the parts.

        Args:
            method: one of

                * ``"convex_hull"``: the mesh becomes its hull. Contacts of moving bodies stay the same.
                * ``"coacd"``: approximate convex decomposition of each connected part by CoACD (extra ``decomposition``). The shape becomes
                  the first part; the other parts are added as ``<label>_convex_<i>``, with the settings, the filters and the custom
                  attributes of the shape.
                * ``"bounding_box"``: a box of nearly the smallest volume.
                * ``"bounding_sphere"``: the smallest sphere.

            shape_indices: indices of shapes that are meshes or hulls; None: all meshes that collide.
            raise_on_failure: whether a mesh that the method cannot approximate raises an error. Otherwise it becomes its hull, with a
                warning.
            keep_visual_shapes: keeps each visible mesh as a shape ``<label>_visual`` that does not collide, and hides its approximation.
            settings: for ``"coacd"``, see :func:`newton_like.geometry.decomposition.convex_parts`.

        Returns:
            Indices of the shapes that were replaced, without those that were added.

        Raises:
            ValueError: an unknown method; a shape is no mesh, or belongs to a world that is complete while shapes would be added; a custom
                attribute refers to a shape that gets several parts; with `raise_on_failure`, a mesh that the method cannot approximate.
            ModuleNotFoundError: with `raise_on_failure`, CoACD is not installed.
            IndexError: a shape does not exist.
            TypeError: an unknown setting.
        """
        parts = "use one of " + ", ".join(map(repr, METHODS))
        if not isinstance(method, str) or method not in METHODS:
            check_option("approximate_meshes", "method", method, {"method": (METHODS[0], parts)}, ())
        if settings and method != "coacd":
            raise TypeError(f"approximate_meshes: method={method!r} has no settings; omit {', '.join(settings)}")
        raise_on_failure = as_flag(raise_on_failure, "raise_on_failure")
        chosen = self._chosen_meshes(shape_indices)
        adds = as_flag(keep_visual_shapes, "keep_visual_shapes") or method == "coacd"
        if adds:
            self._check_that_shapes_can_be_added(chosen)
        replacements = {shape: self._approximation(shape, method, settings, raise_on_failure) for shape in chosen}
        for shape, pieces in replacements.items():
            if len(pieces) > 1:
                self._check_that_nothing_refers_to(shape)
        for shape, pieces in replacements.items():
            if keep_visual_shapes and self.shape_flags[shape] & ShapeFlags.VISIBLE:
                visual = self._copy_of_shape(shape, f"{self.shape_label[shape]}_visual")
                self.shape_flags[visual] = int(ShapeFlags.VISIBLE)
                self.shape_flags[shape] &= ~int(ShapeFlags.VISIBLE)
            copies = [
                self._copy_of_shape(shape, f"{self.shape_label[shape]}_convex_{i}") for i in range(1, len(pieces))
            ]
            for place, (kind, pose, scale, source) in zip((shape, *copies), pieces, strict=True):
                self.shape_type[place], self.shape_source[place] = int(kind), source
                self.shape_scale[place], self.shape_transform[place] = scale, pose
        return set(chosen)

    def _chosen_meshes(self, shape_indices) -> list[int]:
        if shape_indices is None:
            collides = int(ShapeFlags.COLLIDE_SHAPES)
            flagged = [s for s, flags in enumerate(self.shape_flags) if flags & collides]
            return [s for s in flagged if self.shape_type[s] == GeoType.MESH]
        entries = as_list(shape_indices, "shape_indices", "indices of shapes")
        chosen = list(dict.fromkeys(as_index(entry, "shape_indices", self.shape_count) for entry in entries))
        for shape in chosen:
            if self.shape_type[shape] not in (GeoType.MESH, GeoType.CONVEX_MESH):
                raise ValueError(f"approximate_meshes: {self._describe('shape', shape)} is no mesh; leave it out")
        return chosen

    def _check_that_shapes_can_be_added(self, shapes: list[int]) -> None:
        for shape in shapes:
            if self.shape_world[shape] != self.current_world:
                raise ValueError(
                    f"approximate_meshes: {self._describe('shape', shape)} is in world {self.shape_world[shape]}, which is complete, and "
                    "shapes cannot be added to it; approximate the meshes before replicate() or add_world(), or before end_world()"
                )

    def _check_that_nothing_refers_to(self, shape: int) -> None:
        for attribute in self.custom_attributes.values():
            if attribute.references == "shape" and shape in _numbers_of(attribute.values):
                raise ValueError(
                    f"approximate_meshes: {self._describe('shape', shape)} gets several parts, but the custom attribute {attribute.key!r} "
                    "refers to the shape; leave the shape out, or give the body shapes of its own"
                )

    def _approximation(self, shape: int, method: str, settings: dict, raise_on_failure: bool) -> list[tuple]:
        """Type, pose, scale and source of each part of a shape."""
        pose, scale = self.shape_transform[shape], self.shape_scale[shape]
        mesh = self.shape_source[shape]
        try:
            if method == "coacd":
                parts = decomposition.convex_parts(mesh, **settings)
                for part in parts:
                    bounding_radius(GeoType.CONVEX_MESH, scale, part)
                return [(GeoType.CONVEX_MESH, pose, scale, part) for part in parts]
            points = mesh.vertices * np.asarray(scale)
            if method == "bounding_box":
                inside, half = decomposition.bounding_box(points)
                return [(GeoType.BOX, tuple(transform_multiply(pose, inside).tolist()), tuple(half.tolist()), None)]
            if method == "bounding_sphere":
                center, radius = decomposition.bounding_sphere(points)
                inside = tuple(transform_multiply(pose, transform(center)).tolist())
                return [(GeoType.SPHERE, inside, (radius, 0.0, 0.0), None)]
        except (ValueError, ModuleNotFoundError) as error:
            what = f"approximate_meshes: {self._describe('shape', shape)}: {error}"
            if raise_on_failure:
                raise type(error)(what) from error
            warnings.warn(f"{what}. The shape becomes the convex hull of its mesh", stacklevel=3)
        return [(GeoType.CONVEX_MESH, pose, scale, mesh)]

    def _copy_of_shape(self, shape: int, label: str) -> int:
        """Adds a shape with the entries, custom attributes and filters of another, and filters it with the shapes of its body."""
        index = self.shape_count
        pairs = self.shape_collision_filter_pairs.to_array()
        others = {int(a + b - shape) for a, b in pairs[(pairs == shape).any(axis=1)]}
        for name in _SHAPE_COLUMNS:
            column = getattr(self, name)
            column.append(column[shape])
        self.shape_label[index] = label
        for attribute in self.custom_attributes.values():
            if attribute.frequency == AttributeFrequency.SHAPE and shape in attribute.values:
                attribute.values[index] = attribute.values[shape]
        self.shape_collision_filter_pairs.update([(other, index) for other in others])
        if self.shape_body[shape] >= 0:
            self.shape_collision_filter_pairs.add((shape, index))
        return index


def _numbers_of(values) -> set[int]:
    """All whole numbers of the entries of a custom attribute."""
    entries = values.values() if isinstance(values, dict) else values
    found = [np.asarray(entry).reshape(-1) for entry in entries if entry is not None]
    return {int(number) for array in found if array.dtype.kind in "iu" for number in array}
