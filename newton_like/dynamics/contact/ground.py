"""Base classes of contact with the ground: points, terrain, and parameters of contact laws."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded
from newton_like.dynamics.contact.points import ContactPoints, check_points, contact_point_positions
from newton_like.dynamics.contact.terrain import FlatTerrain, PlaneTerrain, Terrain
from newton_like.dynamics.internal.buffers import buffers_of
from newton_like.model.arguments import constant_numbers
from newton_like.programs.program import Field
from newton_like.types import Axis


class GroundContact:
    """Contact points and the ground.

    Args:
        model: the :class:`Model`; its z axis points up.
        points: the :class:`ContactPoints`, by default those of the shapes.
        terrain: the ground, by default level at z = 0.

    Attributes:
        model, points, terrain: as given.

    Raises:
        TypeError: an argument of another class.
        ValueError: points of another model; an up axis other than z.
        RuntimeError: a graph is being captured.
    """

    def __init__(self, model, points: ContactPoints | None = None, terrain: Terrain | None = None):
        if model.up_axis != Axis.Z:
            raise ValueError(
                f"terrain has heights along z, but the model's up axis is {model.up_axis}; build it with Z up"
            )
        terrain = FlatTerrain() if terrain is None else terrain
        if not isinstance(terrain, Terrain):
            raise TypeError(
                f"terrain must be FlatTerrain, PlaneTerrain or HeightfieldTerrain, not {type(terrain).__name__}"
            )
        check_recorded(model.device, f"{type(self).__name__}(model)")
        self.model = model
        self.points = ContactPoints(model) if points is None else check_points(model, points)
        self.terrain = terrain

    def _law(self, parameters) -> wp.array:
        """The parameters of a contact law on the device."""
        numbers, model = parameters.numbers(self.model), self.model
        return wp.array(numbers, dtype=model.dtype, device=model.device, requires_grad=model.requires_grad)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of an array with a vector for each point."""
        return self.model.articulation_count, self.points.count, 3

    @property
    def one_plane(self) -> bool:
        """Whether the ground is the same plane below all points."""
        return isinstance(self.terrain, PlaneTerrain)

    @property
    def ground_field(self) -> Field:
        """The field of the array of :meth:`ground`."""
        if self.one_plane:
            return Field("point_ground", "all", 4)
        return Field("point_ground", "articulations", 4 * self.points.count)

    def ground(self, state) -> wp.array:
        """The ground plane ``(n, c)`` with n.x = c, or the planes below all contact points."""
        if self.one_plane:
            return self.terrain.ground(self.model)
        buffers = buffers_of(self.model)
        out = buffers.get("contact points", self.shape)
        places = contact_point_positions(self.model, state, self.points, out=out)
        return self.terrain.ground(self.model, places, buffers.get("ground", (*self.shape[:2], 4)))


POSITIVE = (lambda x: x > 0.0, "above 0")
NOT_NEGATIVE = (lambda x: x >= 0.0, "at least 0")


class ContactLaw:
    """Base class of the parameters of contact laws.

    Attributes:
        _rules: by attribute, in their order, the predicate for its values and the predicate in words.
        _of: suffix of attribute names in error messages.
    """

    _rules: ClassVar
    _of: ClassVar[str] = ""

    def __post_init__(self):
        for name, (holds, wanted) in self._rules.items():
            if not np.all(holds(self._values(name))):
                raise ValueError(f"{name}{self._of} must be {wanted}")

    def _values(self, name: str) -> np.ndarray:
        """The values of a parameter: a finite number, or one for each articulation."""
        values = constant_numbers(getattr(self, name), name + self._of, "a number or one for each articulation")
        if values.ndim > 1 or not np.isfinite(values).all():
            raise ValueError(f"{name}{self._of} must be finite, one number or [articulation_count]")
        return values

    def _columns(self, model) -> list[np.ndarray]:
        """The values of all parameters, each ``[articulation_count]``.

        Raises:
            ValueError: values for another number of articulations.
        """
        columns, count = [self._values(name) for name in self._rules], model.articulation_count
        for name, values in zip(self._rules, columns, strict=True):
            if values.ndim and len(values) != count:
                raise ValueError(f"{name}{self._of} has {len(values)} numbers for {count} articulations")
        return [np.broadcast_to(values, count) for values in columns]
