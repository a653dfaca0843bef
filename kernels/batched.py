"""The kernel of all programs except the step: it copies the inputs of articulations into memory, runs the program, and copies the results
to arrays."""

import types
from functools import cache

import warp as wp
from newton_like.kernels.registration import collection_paused
from newton_like.kernels.simd import GENERAL_FLAGS, module_options


@collection_paused()
def batch_kernel(
    m: types.SimpleNamespace,
    compute,
    flags: str = GENERAL_FLAGS,
    emitted: bool = False,
    result: str = "take",
    inputs: str = "bring",
):
    """Makes the kernel that runs a program over a batch. Thread i computes blocks ``first + i * each`` to ``first + (i + 1) * each - 1``.

    A CPU thread computes all its blocks in one call, because passing arguments to a kernel takes time.

    Args:
        m: the programs' namespace with `piece_moves`.
        compute: ``compute(b, t, T, P, L, mem)``, a Warp function; with `emitted` it also takes ``pieces_out``.
        flags: compiler flags for CPUs.
        result: how the results are stored, one of :data:`newton_like.kernels.pieces.RESULTS`.
        inputs: how the inputs are read, ``"bring"`` or ``"bring_packed"``.
    """
    options = module_options(flags, m.width, quick=0)
    take, bring = getattr(m, result), getattr(m, inputs)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def kernel(
        first: int,
        each: int,
        columns: int,
        B: m.Batch,
        T: m.Tree,
        P: m.Params,
        L: m.Layout,
        mask: wp.array[bool],
        mem: m.memory,
        # in:
        inputs: int,
        pieces_in: wp.array[m.Piece],
        # out:
        outputs: int,
        pieces_out: wp.array[m.Piece],
    ):
        t = wp.tid() % columns
        start = first + wp.tid() * each
        for b in range(start, start + each):
            if m.wanted(b, B, mask):
                bring(b, t, B, 0, inputs, pieces_in, mem)
                if emitted:
                    compute(b, t, T, P, L, mem, pieces_out)
                else:
                    compute(b, t, T, P, L, mem)
                take(b, t, B, outputs, pieces_out, mask, mem)

    return kernel


@cache
def sum_kernel(real):
    """Kernel over columns: adds the sum of column i, from the first row to the last, to ``total[i]``."""

    @wp.kernel(module="unique", enable_backward=False)
    def kernel(
        rows: wp.array2d[real],
        # out:
        total: wp.array[real],
    ):
        i = wp.tid()
        x = real(0.0)
        for k in range(rows.shape[0]):
            x = x + rows[k, i]
        total[i] = total[i] + x

    return kernel


@cache
def gather_kernel(real):
    """Kernel over worlds and columns: adds the rows of a world's articulations in column i, in their order, to
    ``total[world * columns + i]``, and sets these rows to zero. Rows of articulations of world -1 are added to the first world."""

    @wp.kernel(module="unique", enable_backward=False)
    def kernel(
        world_start: wp.array[int],
        rows: wp.array2d[real],
        # out:
        total: wp.array[real],
    ):
        w, i = wp.tid()
        worlds = world_start.shape[0] - 2
        start = world_start[w]
        end = world_start[w + 1]
        x = real(0.0)
        if w == 0:
            start = 0
        for k in range(start, end):
            x = x + rows[k, i]
            rows[k, i] = real(0.0)
        if w == 0:
            for k in range(world_start[worlds], world_start[worlds + 1]):
                if k >= end:
                    x = x + rows[k, i]
                    rows[k, i] = real(0.0)
        at = w * rows.shape[1] + i
        total[at] = total[at] + x

    return kernel
