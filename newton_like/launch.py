"""Old import path of the functions for lane widths and threads, see :mod:`newton_like.programs.device`."""

from newton_like.programs.device import lane_width
from newton_like.threads import worker_count

__all__ = ["lane_width", "worker_count"]
