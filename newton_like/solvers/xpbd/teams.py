"""Worlds that several threads compute together, and the stages of joints that they share."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from itertools import chain, pairwise
from threading import Lock

import numpy as np

from newton_like.kernels.solvers.xpbd.order import FIRST_SLOT, FIRST_WORLD, LAST_WORLD
from newton_like.kernels.solvers.xpbd.team import BLOCK, SERIAL, SYNC
from newton_like.solvers.xpbd.colours import LAST
from newton_like.threads import Command, cut, run_shared

TEAM = 256
"""Bodies of a world, above which all threads compute it together."""

_LOCK = Lock()
"""One team of the process runs at a time: its members wait for each other, and need all threads of the pool."""


@cache
def pause_function() -> int:
    """The address of the function of the operating system that lets other threads run."""
    if sys.platform == "win32":
        return ctypes.cast(ctypes.windll.kernel32.SwitchToThread, ctypes.c_void_p).value or 0
    return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0


def joint_stages(chunk: np.ndarray, colour: np.ndarray, chunks: int) -> tuple[np.ndarray, np.ndarray]:
    """Runs of blocks of joints that a team computes one after the other.

    Args:
        chunk, colour: of each block, in ascending order.
        chunks: number of chunks.

    Returns:
        Of each stage the first block, the end, one if one thread computes it, and one if it has the colour ``LAST``, which is a stage of
        its own; of each chunk the first stage and, last, the end.
    """
    stages, at = [], np.zeros(chunks + 1, dtype=np.int32)
    cuts = np.flatnonzero(np.diff(chunk) | np.diff(colour)) + 1 if len(chunk) else np.zeros(0, dtype=int)
    for a, b in pairwise([0, *cuts.tolist(), len(chunk)] if len(chunk) else []):
        alone = b - a < SERIAL
        same = stages and chunk[stages[-1][0]] == chunk[a]
        if alone and same and stages[-1][2] and colour[a] != LAST:
            stages[-1][1] = b
        else:
            stages.append([a, b, int(alone), int(colour[a] == LAST)])
            at[chunk[a] + 1] += 1
    return np.array(stages, dtype=np.int32).reshape(-1, 4), np.cumsum(at).astype(np.int32)


class Teams:
    """Which chunks of a solver are computed by teams, and what their members share.

    Attributes:
        runs: first chunk and end of runs of chunks, and whether teams compute them.
        threads: number of members of a team.
        blocks: whether teams are the threads of blocks of a GPU, which compute all chunks.

    Args:
        slots: a :class:`newton_like.solvers.xpbd.tables.Slots`.
        blocks: a :class:`newton_like.solvers.xpbd.tables.Blocks`.
        threads: number of threads.
        array: makes arrays of integers on the device.
        on_gpu: whether the device is a GPU.
    """

    def __init__(self, slots, blocks, threads: int, array, on_gpu: bool):
        chunks = slots.chunks
        starts = chunks[:, FIRST_SLOT]
        bodies = np.add.reduceat((slots.body >= 0).astype(int), starts) if len(slots.body) else np.zeros(len(chunks))
        large = (bodies > TEAM) & (chunks[:, LAST_WORLD] - chunks[:, FIRST_WORLD] == 1) & (threads > 1)
        cuts = [0, *(np.flatnonzero(np.diff(large)) + 1).tolist(), len(large)]
        self.runs = [(a, b, bool(large[a])) for a, b in pairwise(cuts) if b > a]
        self.threads, self.blocks = BLOCK if on_gpu else threads, on_gpu
        stages, stage_at = joint_stages(blocks.chunk, blocks.colour, len(chunks))
        stages = stages if len(stages) else np.zeros((1, 4))
        self._arrays = dict(stages=array(stages), stage_at=array(stage_at), sync=array(np.zeros(SYNC * len(chunks))))

    def member(self, kind, member: int, members: int):
        """The struct ``Team``, of type `kind`, of a member."""
        M = kind()
        M.member, M.members, M.block, M.pause = member, members, int(self.blocks), pause_function()
        for name, array in self._arrays.items():
            setattr(M, name, array)
        return M


class Launches:
    """The launches of a step: chunks that one thread computes each, and teams.

    Args:
        teams: which chunks these are.
        record: ``record(first, count, member, members, block_dim)`` records a launch of `count` threads.
    """

    def __init__(self, teams: Teams, record):
        self._threads = teams.threads
        self._alone: list[Command] = []
        self._teams: list[list[Command]] = []
        for first, end, together in teams.runs:
            if teams.blocks:
                # one launch of all chunks: none counts as large on a GPU
                size = teams.threads
                self._alone.append(Command(record(first, size * (end - first), 0, size, size)))
            elif together:
                for c in range(first, end):
                    self._teams.append([Command(record(c, 1, k, teams.threads, None)) for k in range(teams.threads)])
            else:
                self._alone += [
                    Command(record(first + start, n, 0, 1, None)) for start, n in cut(end - first, teams.threads)
                ]

    def set_param_by_name(self, name: str, value) -> None:
        """Changes an argument of all launches."""
        for command in chain(self._alone, *self._teams):
            command.set_param_by_name(name, value)

    def run(self) -> None:
        """Runs the kernels."""
        if self._alone:
            run_shared([self._alone] * min(self._threads, len(self._alone)))
        for members in self._teams:
            with _LOCK:
                run_shared([members] * len(members))
