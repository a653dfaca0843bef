"""Offsets of frames that gradients flow to."""

from functools import cache

import warp as wp


@cache
def offset_kernel(real):
    """The kernel that puts an offset, ``[7]`` or ``[articulation_count, 7]`` as one row, among those of all frames."""

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
