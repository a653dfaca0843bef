"""Launches that are repeated in every step: recorded once, and shared by the threads of a CPU."""

from __future__ import annotations

import warp as wp

from newton_like.arrays import cpu_is_captured, is_captured, keep_for_graph, unrecorded
from newton_like.threads import Command, compiling, run_shared, shared_out


class Repeated:
    """A launch of a kernel whose first argument is the index of its first thread.

    Args:
        kernel: the kernel.
        size: number of its threads.
        arguments: the arguments behind the first one. They are kept alive.
        device: device of the launch.
        pieces: number of small pieces of work, which says whether threads share them.
        in_graph: the arguments in a graph; None: the same.
        of_worlds: ``(t, w)``: t neighbouring threads compute w neighbouring worlds, from world 0 on; None: threads have another order.
    """

    def __init__(
        self,
        kernel,
        size: int,
        arguments: list,
        device,
        pieces: int | None = None,
        in_graph: list | None = None,
        of_worlds: tuple[int, int] | None = None,
    ):
        self._kernel, self._size, self._device, self._on_cpu = kernel, size, device, device.is_cpu
        self._of_worlds, self._commands = of_worlds, {}
        self._arguments, self._in_graph = arguments, arguments if in_graph is None else in_graph

        self._shares = _recorded(self._record, size, size if pieces is None else pieces, device) if size else None

    def _record(self, first: int, count: int):
        return wp.launch(
            self._kernel, dim=count, inputs=[first, *self._arguments], device=self._device, record_cmd=True
        )

    def share(self, first: int, count: int) -> Command | None:
        """A recorded launch for some worlds, on a CPU.

        Args:
            first: the first world.
            count: number of worlds.

        Returns:
            None: threads do not handle worlds in their order, or one handles both the world before and the first one.
        """
        if self._of_worlds is None or not self._size:
            return None
        threads, worlds = self._of_worlds
        if first * threads % worlds:
            return None
        known = self._commands.get((first, count))
        if known is None:
            begin, end = first * threads // worlds, -(-(first + count) * threads // worlds)
            known = self._commands[first, count] = Command(self._record(begin, end - begin))
        return known

    def launch(self) -> None:
        """Runs the kernel, or records the launch in the graph that is being captured, which keeps the arguments alive."""
        if self._shares is None:
            return
        if cpu_is_captured() if self._on_cpu else is_captured(self._device):
            wp.launch(self._kernel, dim=self._size, inputs=[0, *self._in_graph], device=self._device)
            keep_for_graph(self._device, self)
        else:
            run_shared(self._shares)


@compiling
def _recorded(record, size: int, pieces: int, device) -> list:
    with unrecorded(device, "data of an asset"):
        return shared_out(record, size, pieces, device)
