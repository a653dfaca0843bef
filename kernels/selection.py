"""Writing chosen entries of a model's arrays, and masks of articulations."""

from functools import cache

import warp as wp


@cache
def scatter_kernel(scalar):
    """Kernel that copies entries of some scalars each, ``values[w, a, v]``, to where they begin in `out`: ``first[w, a, v]``."""

    @wp.kernel(module="unique", enable_backward=False)
    def scatter(
        first: wp.array3d[int],
        mask: wp.array2d[wp.bool],
        values: wp.array4d[scalar],
        # out:
        out: wp.array[scalar],
    ):
        w, a = wp.tid()
        if mask[w, a]:
            for v in range(values.shape[2]):
                for k in range(values.shape[3]):
                    out[first[w, a, v] + k] = values[w, a, v, k]

    return scatter


@wp.kernel(module="unique", enable_backward=False)
def mark(
    articulations: wp.array2d[int],
    mask: wp.array2d[wp.bool],
    # out:
    chosen: wp.array[wp.bool],
):
    """Sets the entries of the articulations that `mask` selects to true, those of the others of the view to false."""
    w, a = wp.tid()
    chosen[articulations[w, a]] = mask[w, a]
