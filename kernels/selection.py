"""Kernels that write selected entries of a model's arrays, and masks of articulations."""

from functools import cache

import warp as wp


@cache
def scatter_kernel(scalar):
    """Kernel that copies the scalars ``values[w, a]`` to the indices ``places[w, a]`` of `out`, where the mask is true."""

    @wp.kernel(module="unique", enable_backward=False)
    def scatter(
        places: wp.array3d[int],
        mask: wp.array2d[wp.bool],
        values: wp.array3d[scalar],
        # out:
        out: wp.array[scalar],
    ):
        w, a = wp.tid()
        if mask[w, a]:
            for i in range(values.shape[2]):
                out[places[w, a, i]] = values[w, a, i]

    return scatter


@wp.kernel(module="unique", enable_backward=False)
def mark(
    articulations: wp.array2d[int],
    mask: wp.array2d[wp.bool],
    # out:
    chosen: wp.array[wp.bool],
):
    """Sets the entries of the view's articulations to the mask's values: true where selected, else false."""
    w, a = wp.tid()
    chosen[articulations[w, a]] = mask[w, a]
