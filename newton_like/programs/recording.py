"""Recorded launches, found again by what they are told."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np

from newton_like.arrays import keep_for_graph
from newton_like.model.editing.graphs import Graphs
from newton_like.programs.beside import Beside
from newton_like.programs.device import interleaved
from newton_like.threads import compiling, run_shared


def addresses(arrays) -> list[int]:
    """Where arrays are; 0 for None."""
    return [0 if a is None else a.ptr or 0 for a in arrays]


def _places(targets, i: int) -> list[tuple[np.ndarray, int]]:
    """Where the address of array `i` stands: arrays of addresses, one a batch, and indices in them."""
    return [(first, i) if i < len(first) else (second, i - len(first)) for first, second in targets]


MOST_BESIDE = 3
"""How many sets of launches beside its own a recording keeps, and their arrays with them."""


class Recording:
    """Recorded launches on some arrays.

    Attributes:
        idle: rows of results that nothing is added to, as whoever recorded the launches says.

    Args:
        launches: of every batch, for `run_shared`.
        arrays: that they were recorded with. They are kept alive unless launches can be told of others.
        reads: what else launches read. They know addresses only, so the recording keeps it alive.
        targets: on a CPU, of every batch the addresses in the structs of its inputs and of its outputs: launches are told of other
            arrays there, and nothing is recorded again.
        first: commands that are launched before.
    """

    def __init__(self, launches: list, arrays, reads, targets: list | None = None, first=()):
        self.launches, self.reads, self._first = launches, reads, first
        self.arrays = arrays if targets is None else None
        self.addresses = addresses(arrays)
        # None and empty arrays stay as they are
        self._places = [_places(targets or (), i) if address else [] for i, address in enumerate(self.addresses)]
        self.idle: set = set()
        self._around: dict[Beside, list | None] = {}
        self._alone, self._in_graph = all(len(workers) == 1 for workers in launches), False

    def belong_to_graph(self, arrays) -> None:
        """Launches of this recording are for graphs of a CPU: one thread records them, and the arrays are kept alive."""
        self._in_graph, self.arrays = True, arrays

    def run(self) -> None:
        """Launches."""
        for command in self._first:
            if self._in_graph:
                command.launch_in_graph()
            else:
                command.launch()
        if self._in_graph:
            for commands, *_ in self.launches:
                for command in commands:
                    command.launch_in_graph()
        elif self._alone:
            for (commands,) in self.launches:
                for command in commands:
                    command.launch()
        else:
            for workers in self.launches:
                run_shared(workers)

    def run_beside(self, beside: Beside, shares: Callable) -> None:
        """Launches those of the only batch, and others beside them.

        Args:
            beside: the others.
            shares: ``shares()``: first world and number of worlds of each share of a launch; None: worlds are in another order.
        """
        if beside not in self._around:
            if len(self._around) >= MOST_BESIDE:
                self._around.clear()
            cuts = shares()
            self._around[beside] = None if cuts is None else beside.around(self.launches[0], cuts)
        around = self._around[beside]
        if around is None:
            beside.run(self.run)
        else:
            run_shared(around)

    def run_on(self, arrays) -> None:
        """Launches on arrays of the same sizes. Kernels read the structs of pieces, so that launches stay as they are."""
        now = addresses(arrays)
        if now != self.addresses:
            for before, address, places in zip(self.addresses, now, self._places, strict=True):
                if before != address:
                    for target, i in places:
                        target[i] = address
            self.addresses = now
        self.run()

    def set_param_by_name(self, name: str, value) -> None:
        """Changes an argument of all launches."""
        for workers in self.launches:
            for command in (c for worker in workers for c in worker):
                command.set_param_by_name(name, value)


class Recordings(OrderedDict):
    """The recordings that were used last, by what tells them apart.

    Args:
        most: how many are kept.
        device: where they run.

    Attributes:
        captured: those in graphs, which read what they are told from arrays that nobody else may keep.
        graphs: these graphs.
    """

    def __init__(self, most: int, device):
        super().__init__()
        self.most, self.device, self.captured = most, device, set()
        self.graphs = Graphs()
        self._fixed = interleaved(device)

    def of(self, key: tuple, arrays, record, reads: Callable | None = None) -> Recording:
        """The recording of a key on some arrays, None for zeros: a kept one, or the one that ``record()`` makes. ``reads()``: the arrays of
        parameters that its launches read; None: any."""
        # on a CPU all arrays will do, where as many are given; a graph needs a recording of its own
        capturing = self.device.is_capturing
        if self._fixed or capturing:
            key = (*key, self.device.is_cpu and capturing, *addresses(arrays))
        else:
            key = (*key, *[a is None for a in arrays])
        recording = self.find(key) or self.add(key, compiling(record)())
        if capturing:
            self.capture(recording, arrays, None if reads is None else reads())
        return recording

    def capture(self, recording: Recording, arrays, reads: Iterable[str] | None = None) -> None:
        """Keeps a recording for a graph that is being captured; see :meth:`of`."""
        self.captured.add(recording)
        self.graphs.add(self.device, reads)
        keep_for_graph(self.device, recording)
        if self.device.is_cpu:
            recording.belong_to_graph(arrays)

    def outdate(self, names=(), moved: bool = False) -> bool:
        """Forgets all recordings after an edit that they do not see; see :meth:`newton_like.model.editing.graphs.Graphs.outdate`."""
        self.clear()
        return self.graphs.outdate(names, moved)

    def find(self, key) -> Recording | None:
        """The recording of a key, if it is kept."""
        found = self.get(key)
        if found is not None:
            self.move_to_end(key)
        return found

    def add(self, key, recording: Recording) -> Recording:
        """Keeps a recording, and forgets the one that was not used for longest if there are too many."""
        self[key] = recording
        if len(self) > self.most:
            self.popitem(last=False)
        return recording
