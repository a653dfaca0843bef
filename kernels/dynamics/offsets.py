"""Differentiable offsets of frames."""

from functools import cache

import warp as wp


@cache
def offset_kernel(real):
    """The kernel that copies an offset, ``[7]`` (``stride`` 0) or flattened ``[articulation_count, 7]`` (``stride`` 7), into the offsets of
    all frames."""

    @wp.kernel(module="unique")
    def place_offset(
        offset: wp.array[real],
        frame: int,
        stride: int,
        # out:
        offsets: wp.array2d[real],
    ):
        a, i = wp.tid()
        offsets[a, 7 * frame + i] = offset[stride * a + i]

    return place_offset
