"""Launches of other kernels that go with the shares of a step."""

from __future__ import annotations

from typing import NamedTuple

from newton_like.threads import Series


class Beside(NamedTuple):
    """Launches before and after a step whose threads handle worlds in order.

    Each thread of the step launches them on the worlds of its share, while these are in its cache. An entry has ``launch()``, for all
    worlds, and ``share(first, count)``, a recorded launch for some worlds or None.

    Attributes:
        before: launches that the step follows.
        after: launches that follow the step.
    """

    before: tuple
    after: tuple

    def run(self, step) -> None:
        """Launches all, with ``step()`` in between."""
        for other in self.before:
            other.launch()
        step()
        for other in self.after:
            other.launch()

    def around(self, workers: list[list], shares: list[tuple[int, int]]) -> list[list] | None:
        """Commands for :func:`newton_like.threads.run_shared`, each of which launches a share of the step with what goes with it.

        Args:
            workers: the commands of the step alone.
            shares: first world and number of worlds of each share.

        Returns:
            None: a launch cannot be cut into these shares.
        """
        cuts = [[[each.share(*worlds) for each in some] for some in self] for worlds in shares]
        if any(command is None for both in cuts for some in both for command in some):
            return None
        return [
            [Series([*before, command, *after]) for command, (before, after) in zip(commands, cuts, strict=True)]
            for commands in workers
        ]
