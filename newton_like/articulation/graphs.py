"""Steps of assets in a graph."""

from __future__ import annotations

import warp as wp


class StepGraph:
    """Physics steps, commands and data that :meth:`newton_like.articulation.SimulationContext.capture` captured.

    Attributes:
        steps: number of physics steps.
        dt: their length [s].
        moves: whether joint coordinates are written behind the last step.
    """

    def __init__(self, sim):
        self._sim, self._graph, self._sources = sim, None, {}
        self.steps, self.dt, self.moves = 0, sim.dt, False

    def finish(self, graph: wp.Graph, steps: int, moves: bool) -> None:
        """Takes the graph that was captured."""
        self._graph, self.steps, self.moves = graph, steps, moves

    def reads(self, source) -> None:
        """Notes that the graph uses the arrays of an asset or of its data, and numbers that ``source.renew()`` computes on the host after
        edits. They are kept alive."""
        self._sources[id(source)] = source

    def launch(self) -> None:
        """Runs what was captured.

        Raises:
            RuntimeError: the capture has not ended, or it failed.
        """
        if self._graph is None:
            raise RuntimeError("the graph has no launches: its capture has not ended, or ended with an error")
        for source in self._sources.values():
            source.renew()
        wp.capture_launch(self._graph)
        self._sim.replayed(self)
