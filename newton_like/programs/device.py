"""What a device is like for kernels: lane widths, and how neighbouring threads read memory."""

from __future__ import annotations

import os
import platform
from functools import cache

import warp as wp

WIDTHS = (1, 8, 16)

BLOCK_DIM = 32
"""GPU threads of a block: a few thousand worlds shall reach all multiprocessors of a GPU. Blocks of fewer threads are slower, although the
threads of a warp take different ways: steps of 4096 and 32 768 worlds on an H100 take 5 to 25 % and 50 to 75 % longer with 16 threads."""


@cache
def _cpu_has_avx512() -> bool:
    try:
        with open("/proc/cpuinfo") as info:
            return "avx512f" in info.read()
    except OSError:
        return False


def lane_width(device=None, dtype=wp.float32, width: int | None = None) -> int:
    """The number of worlds a kernel advances at once.

    Args:
        device: 1 on CUDA devices.
        dtype: ``wp.float32`` or ``wp.float64``.
        width: 1, 8 or 16 to choose it; otherwise the environment variable ``NEWTON_LIKE_WIDTH``, otherwise what fills one or two
            vector registers of this processor.

    Raises:
        ValueError: any other width, or a width other than 1 on a CUDA device.
    """
    cuda = wp.get_device(device).is_cuda
    chosen = width if width is not None else os.environ.get("NEWTON_LIKE_WIDTH")
    if chosen is None:
        if cuda or platform.machine().lower() not in ("x86_64", "amd64"):
            return 1 if cuda else 8
        return 16 if dtype is wp.float32 and _cpu_has_avx512() else 8
    if str(chosen) not in map(str, WIDTHS):
        raise ValueError(f"lane width {chosen!r} must be one of {WIDTHS}; see NEWTON_LIKE_WIDTH")
    if cuda:
        if width not in (None, 1):
            raise ValueError(f"lane width {width} on {device}: lanes of CUDA kernels have one number; use 1")
        return 1
    return int(chosen)


STAND_IN = False
"""For tests: whether a CPU lays memory out as a GPU does."""


def interleaved(device) -> bool:
    """Whether there is one articulation a thread, and neighbouring threads read neighbouring words: on CUDA devices."""
    return device.is_cuda or STAND_IN
