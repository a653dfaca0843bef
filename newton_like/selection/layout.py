"""Where entries of a view are in the flat arrays of a model."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import warp as wp

from newton_like.arrays import unrecorded


class Rows:
    """Where entries begin in a flat array: ``[world, articulation]`` or ``[world, articulation, value]`` integers.

    Attributes:
        rows: the integers.
        size, first: how many there are, and the first one.
        strides: distances of neighbours along each axis where they are regular and rows ascend, else None.
    """

    def __init__(self, rows: np.ndarray):
        self.rows, self.strides = rows, _strides(rows)
        self.size, self.first = rows.size, int(rows.flat[0]) if rows.size else 0
        self._scalars: dict = {}

    def scalars(self, unit: int, width: int, device) -> wp.array:
        """Where all scalars of entries are that have `width` of them and begin at ``r * unit``: ``[world, articulation, scalar]``."""
        key = (unit, width)
        if key not in self._scalars:
            with unrecorded(device, "an ArticulationView whose rows lie at irregular distances"):
                at = self.rows[..., None] * unit + np.arange(width)
                self._scalars[key] = wp.array(at.reshape(*at.shape[:2], -1), dtype=wp.int32, device=device)
        return self._scalars[key]


class FrequencyLayout(Rows):
    """Which rows of the arrays of one frequency an :class:`ArticulationView` has, see :attr:`ArticulationView.frequency_layouts`.

    The layout is regular where value v of articulation a in world w is the row ``offset + stride_between_worlds * w +
    stride_within_worlds * a + k[v]``. The integers k are ``slice`` or ``indices``. Otherwise all rows are listed.

    Attributes:
        selected_value_count: rows of an articulation.
    """

    def __init__(self, rows: np.ndarray, device):
        super().__init__(rows)
        self._device = device
        self.selected_value_count = rows.shape[2]

    @cached_property
    def _starts(self) -> np.ndarray:
        """First row of each articulation, ``[world, articulation]``."""
        return self.rows.min(axis=2) if self.rows.shape[2] else np.zeros(self.rows.shape[:2], dtype=np.int64)

    @cached_property
    def _values(self) -> np.ndarray | None:
        """Rows behind the first one of an articulation; None where articulations differ in them."""
        values = self.rows - self._starts[..., None]
        return values[0, 0] if np.all(values == values[0, 0]) else None

    @cached_property
    def _distances(self) -> tuple[int, int] | None:
        """Rows from world to world and from articulation to articulation; None where they differ."""
        starts = self._starts
        worlds, articulations = starts.shape
        within = int(starts[0, 1] - starts[0, 0]) if articulations > 1 else self.value_count
        between = int(starts[1, 0] - starts[0, 0]) if worlds > 1 else within * articulations
        regular = starts[0, 0] + between * np.arange(worlds)[:, None] + within * np.arange(articulations)
        return (between, within) if np.all(starts == regular) or not self.selected_value_count else None

    @property
    def uses_explicit_model_indices(self) -> bool:
        """Whether the layout is not regular."""
        return self._values is None or self._distances is None

    @property
    def offset(self) -> int | None:
        """First row of the first articulation; None where the layout is not regular."""
        return None if self.uses_explicit_model_indices else int(self._starts[0, 0])

    @property
    def stride_between_worlds(self) -> int | None:
        """Rows from an articulation to that of the next world; None where the layout is not regular."""
        return None if self.uses_explicit_model_indices else self._distances[0]

    @property
    def stride_within_worlds(self) -> int | None:
        """Rows from an articulation to the next one of its world; None where the layout is not regular."""
        return None if self.uses_explicit_model_indices else self._distances[1]

    @property
    def slice(self) -> slice | None:
        """Values behind the first row of an articulation as a range; None where it has gaps, or articulations differ."""
        n = self.selected_value_count
        return slice(0, n) if self._values is not None and np.array_equal(self._values, np.arange(n)) else None

    @cached_property
    def indices(self) -> wp.array | None:
        """The same as an array of integers where the range has gaps; None otherwise."""
        if self._values is None or self.slice is not None:
            return None
        return wp.array(self._values, dtype=wp.int32, device=self._device)

    @property
    def value_count(self) -> int:
        """Rows from the first to the last of an articulation, gaps included."""
        return int((self.rows.max(axis=2) - self._starts).max()) + 1 if self.selected_value_count else 0

    @property
    def is_contiguous(self) -> bool:
        """Whether the layout is regular, and the values have no gaps."""
        return self.slice is not None and not self.uses_explicit_model_indices

    @property
    def is_packed(self) -> bool:
        """Whether all rows of the view follow each other without gaps."""
        rows = self.rows.ravel()
        return not rows.size or bool(np.all(np.diff(rows) == 1))

    def get_absolute_indices(self, world_count: int | None = None, count_per_world: int | None = None) -> np.ndarray:
        """All rows, ``[world_count, count_per_world, selected_value_count]`` int.

        Args:
            world_count, count_per_world: those of the view.

        Raises:
            ValueError: the view has others.
        """
        for name, given, own in zip(
            ("world_count", "count_per_world"), (world_count, count_per_world), self.rows.shape[:2], strict=True
        ):
            if given is not None and given != own:
                raise ValueError(f"{name} {given!r} is not that of the view, which is {own}")
        return self.rows.copy()

    def get_model_indices(self) -> wp.array:
        """All rows of a layout that is not regular, on the device: ``[world_count, count_per_world, selected_value_count]`` int.

        Raises:
            RuntimeError: the layout is regular.
        """
        if not self.uses_explicit_model_indices:
            raise RuntimeError("the layout is regular: its offset and strides give the rows, or get_absolute_indices()")
        return self.scalars(1, 1, self._device)

    def __repr__(self) -> str:
        values = self.slice if self.slice is not None or self._values is None else self._values.tolist()
        if self._values is None:
            parts = [f"model_indices: shape {self.rows.shape}"]
        elif self._distances is None:
            parts = [f"model_starts: shape {self.rows.shape[:2]}", f"values: {values}"]
        else:
            names = ("offset", "stride_between_worlds", "stride_within_worlds")
            parts = [*(f"{name}: {getattr(self, name)}" for name in names), f"values: {values}"]
        return f"FrequencyLayout({', '.join(parts)})"


def _strides(rows: np.ndarray) -> list[int] | None:
    """Distances of neighbours along each axis; None where they are not regular. Axes without neighbours count as dense."""
    strides, dense = [], 1
    for axis in reversed(range(rows.ndim)):
        n = rows.shape[axis]
        steps = np.diff(rows, axis=axis)
        if steps.size and (steps.flat[0] <= 0 or np.any(steps != steps.flat[0])):
            return None
        strides.insert(0, int(steps.flat[0]) if steps.size else dense)
        dense = strides[0] * max(n, 1)
    return strides
