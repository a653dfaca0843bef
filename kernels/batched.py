"""The kernel of every program that is no step: it brings numbers of articulations into memory, runs the program, and takes results out."""

import types
from functools import cache

import warp as wp

GENERAL_FLAGS = "-march=native -ffp-contract=off"
"""How general kernels are compiled on a CPU: without Warp's own thresholds for inlining, in half the time."""


def batch_kernel(
    m: types.SimpleNamespace, compute, flags: str = GENERAL_FLAGS, emitted: bool = False, result: str = "take"
):
    """The kernel that runs a program over a batch: thread i does the blocks from ``first + i * each`` up to the next one's.

    Threads of a CPU do all their blocks in one go, as it takes time to hand a kernel its arguments.

    Args:
        m: the programs' namespace with `piece_moves`.
        compute: ``compute(b, t, T, P, L, mem)``, a Warp function; `emitted` code is told the pieces that are written, too.
        flags: for the compiler of CPUs.
        result: what is done with the results, of :data:`newton_like.kernels.pieces.RESULTS`.
    """
    options = {"cpu_compiler_flags": flags}
    take = getattr(m, result)

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
                m.bring(b, t, B, 0, inputs, pieces_in, mem)
                if emitted:
                    compute(b, t, T, P, L, mem, pieces_out)
                else:
                    compute(b, t, T, P, L, mem)
                take(b, t, B, outputs, pieces_out, mask, mem)

    return kernel


@cache
def sum_kernel(real):
    """Kernel over columns: adds the sum of a column, from the first row to the last, to a number."""

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
    """Kernel over worlds and columns: adds what the articulations of a world have in a column, in their order, to its number, and leaves
    zeros there. Those that all worlds share count for the first."""

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
