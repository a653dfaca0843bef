"""How the Warp functions of programs are registered."""

import gc
from contextlib import contextmanager
from functools import partial

import warp as wp


class _Programs(wp.Module):
    """The module of all functions of programs. Warp lists for each function the modules of the functions that it calls, in order to unload
    their kernels when a source file is run anew. All of a program's functions are in this module, so there is nothing to list. The search
    would take two thirds of the time in which programs are made."""

    def _find_references(self, adj) -> None:
        """Leaves the search out."""


func = partial(wp.func, module=_Programs("newton_like.programs", None))
"""Decorator of functions of programs."""

inlined = partial(func, inline=True)
"""Decorator of small functions over lanes whose calls would take as long as they do: lanes are passed in memory."""

shared = partial(func, inline=False)
"""Decorator of large functions with several callers, which are compiled once."""


@contextmanager
def collection_paused():
    """Pauses the garbage collector while functions are registered, kernels hashed or programs traced. It would look at hundreds of
    thousands of objects, again and again, and free few. Large kernels are compiled outside, which may take minutes."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
