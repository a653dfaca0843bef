"""Graphs that were captured on a model, and edits of the model.

A graph repeats launches with the arguments of the capture. Parameters that its kernels read from memory are refreshed in place, so that
the next launch of the graph uses them. Other edits need other kernels, other arguments or other memory: a graph does not see these edits.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable

from newton_like.arrays import captured_graph
from newton_like.callers import outside_level


class Graphs:
    """The graphs that repeat the launches of one object, as long as these graphs exist.

    Attributes:
        missed: names of the arrays whose edits the graphs do not see, or None: nothing was missed.
        moved: whether the graphs use memory that the object does not use any more.
    """

    def __init__(self):
        self._alive: weakref.WeakSet = weakref.WeakSet()
        # a capture that Warp did not begin: nobody says when its graph ends
        self._unknown = False
        self.missed: set[str] | None = None
        self.moved = False

    def __bool__(self) -> bool:
        return self._unknown or bool(self._alive)

    def add(self, device) -> None:
        """Adds the graph that is being captured."""
        graph = captured_graph(device)
        if graph is None:
            self._unknown = True
        else:
            self._alive.add(graph)

    def outdate(self, names: Iterable[str] = (), moved: bool = False) -> bool:
        """Notes that graphs captured so far do not see an edit, and forgets these graphs. Returns whether there are any."""
        if not self:
            return False
        self.missed = (self.missed or set()) | set(names)
        self.moved |= moved
        self._alive.clear()
        self._unknown = False
        return True


def add_capture(model, reader) -> None:
    """Notes that launches of a reader are part of the graph that is being captured.

    Args:
        model: the model.
        reader: has ``graphs()``, an iterable of its :class:`Graphs`, and ``follow_edits(model)``, which takes over edits of the model.
    """
    if model._graph_readers is None:
        model._graph_readers = weakref.WeakSet()
    model._graph_readers.add(reader)


def follow_edits(model) -> None:
    """Takes over edits for all captured graphs, since a launch of a graph does not. Warns once of graphs that do not see the edits."""
    if not model._graph_readers:
        return
    readers = [reader for reader in model._graph_readers if any(g or g.missed is not None for g in reader.graphs())]
    model._graph_readers = weakref.WeakSet(readers) if readers else None
    try:
        for reader in readers:
            reader.follow_edits(model)
    finally:
        # an error leaves graphs with the old numbers, too
        found = [graphs for reader in readers for graphs in reader.graphs() if graphs.missed is not None]
        if found:
            told = _told(set().union(*(graphs.missed for graphs in found)), any(graphs.moved for graphs in found))
            for graphs in found:
                graphs.missed, graphs.moved = None, False
            warnings.warn(told, stacklevel=outside_level())


def _told(names: set[str], moved: bool) -> str:
    edited = f"edits of {', '.join(f'model.{name}' for name in sorted(names))}" if names else "this edit of the model"
    told = f"graphs that were captured earlier on this model do not see {edited}, and may miss later ones: capture them again."
    if moved:
        told += (
            " The edit gave the solver other tables of contacts and limits, and other memory: contact_forces() does not have the forces"
            " of the old graphs."
        )
    elif names:
        told += " New graphs see later edits of these arrays."
    return (
        f"{told} To let graphs see edits of some arrays from the start, name these arrays before the capture:"
        ' SolverFeatherstone(model, varying=("body_mass", ...))'
    )
