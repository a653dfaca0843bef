"""Worlds that several threads compute together, and the stages of joints that they share."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from itertools import pairwise
from threading import Lock

import numpy as np

from newton_like.kernels.solvers.xpbd.order import BODY_AT, FIRST_WORLD, LAST_WORLD
from newton_like.kernels.solvers.xpbd.team import SERIAL

TEAM = 256
"""Bodies of a world, above which all threads compute it together."""

LOCK = Lock()
"""One team of the process runs at a time: its members wait for each other, and need all threads of the pool."""


@cache
def pause_function() -> int:
    """The address of the function of the operating system that lets other threads run."""
    if sys.platform == "win32":
        return ctypes.cast(ctypes.windll.kernel32.SwitchToThread, ctypes.c_void_p).value or 0
    return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0


def team_chunks(chunks: np.ndarray, slot_body: np.ndarray, first_slot: np.ndarray) -> np.ndarray:
    """Which chunks are large worlds, ``[chunks]`` bool.

    Args:
        chunks: the table of chunks.
        slot_body: the body of each slot, -1 for none.
        first_slot: of each chunk the first slot and, last, the end.
    """
    assert BODY_AT == 0
    bodies = np.array([(slot_body[a:b] >= 0).sum() for a, b in pairwise(first_slot.tolist())], dtype=int)
    return (bodies > TEAM) & (chunks[:, LAST_WORLD] - chunks[:, FIRST_WORLD] == 1)


def joint_stages(chunk: np.ndarray, colour: np.ndarray, chunks: int) -> tuple[np.ndarray, np.ndarray]:
    """Runs of blocks of joints that a team computes one after the other.

    Args:
        chunk, colour: of each block, in ascending order.
        chunks: number of chunks.

    Returns:
        Of each stage the first block, the end, and one if one thread computes it; of each chunk the first stage and, last, the end.
    """
    stages, at = [], np.zeros(chunks + 1, dtype=np.int32)
    cuts = np.flatnonzero(np.diff(chunk) | np.diff(colour)) + 1 if len(chunk) else np.zeros(0, dtype=int)
    for a, b in pairwise([0, *cuts.tolist(), len(chunk)] if len(chunk) else []):
        alone = b - a < SERIAL
        same = stages and chunk[stages[-1][0]] == chunk[a]
        if alone and same and stages[-1][2]:
            stages[-1][1] = b
        else:
            stages.append([a, b, int(alone)])
            at[chunk[a] + 1] += 1
    return np.array(stages, dtype=np.int32).reshape(-1, 3), np.cumsum(at).astype(np.int32)
