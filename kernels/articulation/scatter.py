"""Kernels that write numbers of chosen instances and items (joints, bodies, tendons), and that mark worlds."""

import types
from functools import cache

import warp as wp


@cache
def scatter_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`: `scatter` and `move` over chosen instances and items, `mark` over chosen instances,
    `spread` over articulations."""

    @wp.kernel(module="unique", enable_backward=False)
    def scatter(
        # chosen instances and items; without entries: all
        rows: wp.array[int],
        items: wp.array[int],
        # whose row of the values belongs to instance i: i itself, or the place of i in `rows`
        own_rows: bool,
        values: wp.array3d[real],
        # out:
        out: wp.array3d[real],
    ):
        a, b = wp.tid()
        i = a
        k = b
        if rows.shape[0] > 0:
            i = rows[a]
        if items.shape[0] > 0:
            k = items[b]
        source = a
        if own_rows:
            source = i
        for c in range(out.shape[2]):
            out[i, k, c] = values[source, b, c]

    @wp.kernel(module="unique", enable_backward=False)
    def mark(
        rows: wp.array[int],
        world_of: wp.array[int],
        # out:
        worlds: wp.array[wp.bool],
    ):
        a = wp.tid()
        i = a
        if rows.shape[0] > 0:
            i = rows[a]
        worlds[wp.max(world_of[i], 0)] = True

    @wp.kernel(module="unique", enable_backward=False)
    def spread(
        worlds: wp.array[wp.bool],
        articulation_world: wp.array[int],
        # out:
        chosen: wp.array[wp.bool],
    ):
        a = wp.tid()
        chosen[a] = worlds[wp.max(articulation_world[a], 0)]

    return types.SimpleNamespace(scatter=scatter, mark=mark, spread=spread)
