"""What pictures, videos and recordings of a model show beside its shapes, and which bodies they leave out."""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

import numpy as np

from newton_like.geometry.markers import Markers


class Overlays:
    """Hidden bodies of a model, and sources of markers.

    Attributes:
        hidden: which bodies are left out, ``[body_count]`` bools; None: none.
    """

    def __init__(self):
        self.hidden: np.ndarray | None = None
        self._sources: list[ref] = []

    def show(self, source, shown: bool) -> None:
        """Draws the markers of a source, or no longer.

        Args:
            source: object with a method ``markers(poses, worlds)``, for poses of all bodies ``[body_count, 7]`` and a list of worlds (None:
                all), which gives :class:`newton_like.geometry.markers.Markers`. It is held weakly.
            shown: whether its markers are drawn.
        """
        others = [each for each in self._sources if each() is not None and each() is not source]
        self._sources = [*others, ref(source)] if shown else others

    def hide(self, bodies: np.ndarray, hidden: bool, body_count: int) -> None:
        """Hides bodies, or shows them again."""
        mask = np.zeros(body_count, dtype=bool) if self.hidden is None else self.hidden.copy()
        mask[bodies] = hidden
        self.hidden = mask if mask.any() else None

    def markers(self, poses: np.ndarray, worlds: list[int] | None, given=None) -> Markers | None:
        """Markers of all sources and those that are given, of chosen worlds; None: there are none.

        Args:
            poses: of all bodies, ``[body_count, 7]``.
            worlds: the worlds; None: all.
            given: further :class:`Markers`; None: none.

        Raises:
            TypeError: ``given`` are not markers.
        """
        if given is not None and not isinstance(given, Markers):
            raise TypeError(f"markers must be newton_like.viewer.Markers, not {type(given).__name__}")
        found = Markers()
        if given is not None:
            found.add(given)
        for each in self._sources:
            source = each()
            if source is not None:
                found.add(source.markers(poses, worlds))
        if worlds is not None and len(found):
            found = found.chosen(np.isin(found.world, [-1, *worlds]))
        return found if len(found) else None


_overlays: WeakKeyDictionary = WeakKeyDictionary()


def overlays_of(model) -> Overlays:
    """The overlays of a model."""
    found = _overlays.get(model)
    if found is None:
        found = _overlays[model] = Overlays()
    return found
