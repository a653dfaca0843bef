"""What something costs, in calls: a number that the machine and its load do not change."""

import gc
import sys
from collections.abc import Callable


def calls_of(function: Callable[[], object]) -> int:
    """How many functions of Python and of C are called while a function without arguments runs."""
    count, others = 0, sys.getprofile()

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    # finalizers of other objects are not counted
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(others)
        if collecting:
            gc.enable()
    return count
