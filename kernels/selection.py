"""Kernels that read and write selected entries of a model's arrays, and masks of articulations."""

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


@cache
def return_kernel(scalar):
    """Kernel that is the adjoint of :func:`scatter_kernel`: it moves the gradients of what was written to the values."""

    @wp.kernel(module="unique", enable_backward=False)
    def give_back(
        places: wp.array3d[int],
        mask: wp.array2d[wp.bool],
        # out:
        written: wp.array[scalar],
        values: wp.array[scalar],
    ):
        w, a = wp.tid()
        n = places.shape[2]
        if mask[w, a]:
            for i in range(n):
                if values.shape[0] > 0:
                    k = (w * places.shape[1] + a) * n + i
                    values[k] = values[k] + written[places[w, a, i]]
                written[places[w, a, i]] = scalar(0.0)

    return give_back


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
