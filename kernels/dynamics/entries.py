"""Kernels that gather selected entries of flat arrays into rows of articulations, and scatter them back. Both are differentiable."""

from functools import cache

import warp as wp


@cache
def gather_entries(kind):
    """The kernel that gathers entries of a flat array into ``[articulations, entries]``; zero where the index is negative."""

    @wp.kernel(module="unique", enable_backward=kind is not wp.bool)
    def kernel(
        values: wp.array[kind],
        places: wp.array2d[int],
        # out:
        rows: wp.array2d[kind],
    ):
        a, i = wp.tid()
        place = places[a, i]
        x = kind(0)
        if place >= 0:
            x = values[place]
        rows[a, i] = x

    return kernel


@cache
def scatter_entries(kind):
    """The kernel that scatters rows to entries of a flat array. With ``stride`` 0 all articulations use one row."""

    @wp.kernel(module="unique")
    def kernel(
        rows: wp.array2d[kind],
        stride: int,
        places: wp.array2d[int],
        # out:
        values: wp.array[kind],
    ):
        a, i = wp.tid()
        place = places[a, i]
        if place >= 0:
            values[place] = rows[stride * a, i]

    return kernel
