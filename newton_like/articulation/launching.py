"""Launches that are repeated in every step: recorded once, and shared by the threads of a CPU."""

from __future__ import annotations

import warp as wp

from newton_like.arrays import unrecorded
from newton_like.threads import compiling, run_shared, shared_out


class Repeated:
    """A launch of a kernel whose first argument is the index of its first thread.

    Args:
        kernel: the kernel.
        size: number of its threads.
        arguments: the arguments behind the first one. They are kept alive.
        device: device of the launch.
        pieces: number of small pieces of work, which says whether threads share them.
    """

    def __init__(self, kernel, size: int, arguments: list, device, pieces: int | None = None):
        self._arguments = arguments

        def record(first: int, count: int):
            return wp.launch(kernel, dim=count, inputs=[first, *arguments], device=device, record_cmd=True)

        self._shares = _recorded(record, size, size if pieces is None else pieces, device) if size else None

    def launch(self) -> None:
        """Runs the kernel."""
        if self._shares is not None:
            run_shared(self._shares)


@compiling
def _recorded(record, size: int, pieces: int, device) -> list:
    with unrecorded(device, "data of an asset"):
        return shared_out(record, size, pieces, device)
