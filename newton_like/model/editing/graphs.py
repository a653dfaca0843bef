"""Graphs that were captured on a model, and edits of the model.

A graph repeats launches with the arguments of the capture. Parameters that its kernels read from memory are refreshed in place, so that
the next launch of the graph uses them. Other edits need other kernels, other arguments or other memory: a graph does not see these edits.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from newton_like.arrays import captured_graph
from newton_like.callers import outside_level
from newton_like.model.editing.edits import ARRAYS, FLAGS

_GROUPS = [{*names, FLAGS} for names in ARRAYS.values()]
"""Arrays whose numbers lie in the same memory."""


@dataclass
class _Seen:
    """What a graph reads (None: anything), which of these arrays were edited in a way that it does not see, which others it may read in
    memory that is not refreshed any more, and which of all these a warning has named."""

    reads: set[str] | None
    edited: set[str] = field(default_factory=set)
    outdated: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)


class Graphs:
    """The graphs that repeat the launches of one object, as long as these graphs exist.

    Attributes:
        lost: names of arrays that were edited when graphs were lost altogether, or None: none was lost since the last warning.
        moved: whether lost graphs use memory that the object does not use any more.
    """

    def __init__(self):
        self._alive: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        # captures that Warp did not begin: nobody says when their graphs end
        self._unknown: _Seen | None = None
        self.lost: set[str] | None = None
        self.moved = False

    def __bool__(self) -> bool:
        return self._unknown is not None or bool(self._alive) or self.lost is not None

    def _entries(self) -> list[tuple]:
        return [*self._alive.items(), *([] if self._unknown is None else [(None, self._unknown)])]

    def add(self, device, reads: Iterable[str] | None = None) -> None:
        """Adds the graph that is being captured, and the arrays of parameters that its new launches read; None: any."""
        graph = captured_graph(device)
        seen = self._unknown if graph is None else self._alive.get(graph)
        if seen is None:
            seen = _Seen(None if reads is None else set())
            if graph is None:
                self._unknown = seen
            else:
                self._alive[graph] = seen
        if reads is None or seen.reads is None:
            seen.reads = None
        else:
            seen.reads |= set(reads)

    def outdate(self, names: Iterable[str] = (), moved: bool = False) -> bool:
        """Notes that graphs captured so far do not see edits of some arrays. Without names, and where memory `moved`, they see no later
        edits, and are forgotten. Returns whether there are graphs."""
        entries = self._entries()
        if not entries:
            return False
        names = set(names)
        if moved or not names:
            self.lost = (self.lost or set()) | names
            self.moved |= moved
            self._alive.clear()
            self._unknown = None
        # where numbers of a group of arrays go to other memory, later edits of the whole group do
        group = set().union(*(arrays for arrays in _GROUPS if names & arrays))
        for _, seen in entries:
            seen.edited |= names if seen.reads is None else names & seen.reads
            seen.outdated |= group if seen.reads is None else group & seen.reads
        return True

    def missed(self, model) -> set[str]:
        """Names of the edited arrays that a graph reads and does not see, and that no warning has named for this graph."""
        found = set()
        for graph, seen in self._entries():
            before = (model._graph_numbers or {}).get(graph) if graph is not None else None
            for name in (seen.edited if before is None else seen.outdated) - seen.told:
                if before is None or not np.array_equal(before[name], getattr(model, name).numpy(), equal_nan=True):
                    seen.told.add(name)
                    found.add(name)
        return found


def add_capture(model, reader) -> None:
    """Notes that launches of a reader are part of the graph that is being captured.

    Args:
        model: the model.
        reader: has ``graphs()``, an iterable of its :class:`Graphs`, and ``follow_edits(model)``, which takes over edits of the model.
    """
    if model._graph_readers is None:
        model._graph_readers = weakref.WeakSet()
    model._graph_readers.add(reader)
    graph = captured_graph(model.device)
    if graph is None or not model.device.is_cpu:
        # on a GPU arrays cannot be read during a capture
        return
    if model._graph_numbers is None:
        model._graph_numbers = weakref.WeakKeyDictionary()
    if graph not in model._graph_numbers:
        names = [FLAGS, *(name for names in ARRAYS.values() for name in names)]
        model._graph_numbers[graph] = {name: getattr(model, name).numpy().copy() for name in names}


def follow_edits(model) -> None:
    """Takes over edits for all captured graphs, since a launch of a graph does not. Warns of arrays that graphs do not see: once for each
    graph and array that it reads."""
    if not model._graph_readers:
        return
    readers = [reader for reader in model._graph_readers if any(reader.graphs())]
    model._graph_readers = weakref.WeakSet(readers) if readers else None
    try:
        for reader in readers:
            reader.follow_edits(model)
    finally:
        # an error leaves graphs with the old numbers, too
        every = [graphs for reader in readers for graphs in reader.graphs()]
        names = set().union(*(graphs.missed(model) for graphs in every), *(graphs.lost or () for graphs in every))
        lost, moved = any(graphs.lost is not None for graphs in every), any(graphs.moved for graphs in every)
        for graphs in every:
            graphs.lost, graphs.moved = None, False
        if names or lost:
            warnings.warn(_told(names, lost, moved), stacklevel=outside_level())


def _told(names: set[str], lost: bool, moved: bool) -> str:
    edited = f"edits of {', '.join(f'model.{name}' for name in sorted(names))}" if names else "this edit of the model"
    later = ", and may miss later ones" if lost else ""
    told = f"graphs that were captured earlier on this model do not see {edited}{later}: capture them again."
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
