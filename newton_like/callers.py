"""The line of a user's code that a warning points at."""

from __future__ import annotations

import sys


def outside_level() -> int:
    """The ``stacklevel`` for a call of ``warnings.warn`` in the function that calls this one: the first frame outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "newton_like":
        level, frame = level + 1, frame.f_back
    return level
