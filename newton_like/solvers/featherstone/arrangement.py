"""The order of the worlds of a batch in the blocks of a step."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.kernels.solvers.arrange import arrange_kernel, runs_of, scratch_size
from newton_like.threads import Command


class Arrangement:
    """Which world of a batch is at which place of its blocks, see `kernels.solvers.arrange`.

    Attributes:
        order: the world at each place.
        place: the place of each world.

    Args:
        work: the :class:`newton_like.programs.workspace.Workspace` of the batch.
        kept, kept_active: what it keeps from step to step.
    """

    def __init__(self, work, kept: wp.array, kept_active: wp.array):
        self._work, self._kept, self._active = work, kept, kept_active
        self.order = work.ints(np.arange(work.batch.count))
        self.place = work.ints(np.arange(work.batch.count))
        self._runs = work.ints(runs_of(work.L, work.numbers, work.batch.template.trees))
        most = kept_active.shape[1] - 2
        self._scratch = work.ints(np.zeros(scratch_size(work.blocks, work.m.width, most)))
        self._spare = wp.zeros(kept.shape[1], dtype=work.m.real, device=work.device)

    def record(self) -> Command:
        """Recorded launch that gives worlds their places before a step. Worlds with parameters of their own stay in the order of the
        batch."""
        work = self._work
        alike = not (work.P.varying.size or work.T.actuators_vary)
        kernel = arrange_kernel(work.m.width, work.m.real)
        counts = [work.batch.count, int(alike), work.workers]
        inputs = [*counts, self._runs, self._active, self._kept, self._scratch, self._spare]
        launch = wp.launch(kernel, dim=1, inputs=[*inputs, self.order, self.place], device=work.device, record_cmd=True)
        return Command(launch)
