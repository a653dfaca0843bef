"""What all models of contact with the ground share: the points, the ground, and numbers for each articulation."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.dynamics.contact.points import ContactPoints, check_points, contact_point_positions
from newton_like.dynamics.contact.terrain import FlatTerrain, PlaneTerrain, Terrain
from newton_like.dynamics.internal.buffers import buffers_of
from newton_like.model.arguments import as_numbers
from newton_like.programs.program import Field
from newton_like.types import Axis


class GroundContact:
    """What touches the ground, and the ground.

    Args:
        model: the :class:`Model`; its z axis points up.
        points: the :class:`ContactPoints`, by default those of the shapes.
        terrain: the ground, by default level at z = 0.

    Attributes:
        model, points, terrain: as given.

    Raises:
        TypeError: arguments of other classes.
        ValueError: points of another model; an up axis other than z.
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
        self.model = model
        self.points = ContactPoints(model) if points is None else check_points(model, points)
        self.terrain = terrain

    def _law(self, parameters) -> wp.array:
        """The constants of a law on the device."""
        numbers, model = parameters.numbers(self.model), self.model
        return wp.array(numbers, dtype=model.dtype, device=model.device, requires_grad=model.requires_grad)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of what is a vector for each point."""
        return self.model.articulation_count, self.points.count, 3

    @property
    def one_plane(self) -> bool:
        """Whether the ground is the same plane below all points."""
        return isinstance(self.terrain, PlaneTerrain)

    @property
    def ground_field(self) -> Field:
        """What :meth:`ground` gives."""
        if self.one_plane:
            return Field("point_ground", "all", 4)
        return Field("point_ground", "articulations", 4 * self.points.count)

    def ground(self, state) -> wp.array:
        """The plane of the ground, ``(n, c)`` with n.x = c, or those below all contact points."""
        if self.one_plane:
            return self.terrain.ground(self.model)
        buffers = buffers_of(self.model)
        out = buffers.get("contact points", self.shape)
        places = contact_point_positions(self.model, state, self.points, out=out)
        return self.terrain.ground(self.model, places, buffers.get("ground", (*self.shape[:2], 4)))


def law_values(value, name: str) -> np.ndarray:
    """A number of a law of contact, or one for each articulation.

    Raises:
        TypeError: no numbers.
        ValueError: not finite, or of another shape.
    """
    values = as_numbers(value, name, "a number or one for each articulation")
    if values.ndim > 1 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, one number or [articulation_count]")
    return values


def check_law(parameters, rules: dict, of: str = "") -> None:
    """Raises where a number of a law is not as it must be.

    Args:
        parameters: the law.
        rules: by attribute, what must hold for its numbers, and that in words.
        of: what the law is one of, for errors.
    """
    for name, (holds, wanted) in rules.items():
        if not np.all(holds(law_values(getattr(parameters, name), name + of))):
            raise ValueError(f"{name}{of} must be {wanted}")


POSITIVE = (lambda x: x > 0.0, "above 0")
NOT_NEGATIVE = (lambda x: x >= 0.0, "at least 0")


def law_column(model, value, name: str) -> np.ndarray:
    """The same for every articulation of a model, ``[articulation_count]``.

    Raises:
        ValueError: numbers for another count of articulations.
    """
    values = law_values(value, name)
    if values.ndim and len(values) != model.articulation_count:
        raise ValueError(f"{name} has {len(values)} numbers for {model.articulation_count} articulations")
    return np.broadcast_to(values, model.articulation_count)
