"""Cost of a function as a number of calls, which does not depend on the machine and its load."""

import gc
import sys
from collections.abc import Callable


def calls_of(function: Callable[[], object]) -> int:
    """Number of calls of Python and C functions during a function without arguments."""
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
