"""The kernel of every program that is no step: it brings numbers of articulations into memory, runs the program, and takes results out."""

import types
from functools import cache

import warp as wp

GENERAL_FLAGS = "-march=native -ffp-contract=off"
"""How general kernels are compiled on a CPU: without Warp's own thresholds for inlining, in half the time."""


def batch_structs(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with the structs ``Batch`` and ``Piece`` and what moves pieces of arrays."""
    real = m.real

    @wp.struct
    class Batch:
        """Which articulations a batch has: how many, and the first one and the stride to the next among those of the model."""

        count: int
        masked: int
        start: int
        stride: int

    @wp.struct
    class Piece:
        """What belongs to an articulation in the flat array `numbers`: `parts` runs of `size` numbers, run i at
        ``start + part[i]`` for the first articulation and `stride` further on for the next; in memory they follow each other
        from `row` on; where memory is packed, number i of a run is ``place[i]`` numbers behind the first one's lane."""

        row: int
        start: int
        stride: int
        size: int
        parts: int
        part: wp.array[int]
        place: wp.array[int]
        numbers: wp.array[real]

    @wp.func
    def wanted(b: int, B: Batch, mask: wp.array[bool]) -> bool:
        """Whether any articulation of block b is selected."""
        if B.masked == 0:
            return True
        return m.any_selected(mask, B.start, B.stride, b, B.count)

    @wp.func
    def bring(b: int, t: int, B: Batch, piece: Piece, mem: m.memory):
        for i in range(piece.parts):
            at = piece.row + i * piece.size
            m.stage_in(mem, at, t, piece.numbers, piece.start + piece.part[i], piece.stride, piece.size, b, B.count)

    @wp.func
    def take_all(b: int, t: int, B: Batch, piece: Piece, mem: m.memory):
        for i in range(piece.parts):
            at = piece.row + i * piece.size
            m.stage_out(mem, at, t, piece.numbers, piece.start + piece.part[i], piece.stride, piece.size, b, B.count)

    @wp.func
    def take(b: int, t: int, B: Batch, piece: Piece, mask: wp.array[bool], mem: m.memory):
        """Of the selected articulations only."""
        if B.masked == 0:
            take_all(b, t, B, piece, mem)
        else:
            for i in range(piece.parts):
                at = piece.row + i * piece.size
                start = piece.start + piece.part[i]
                m.stage_out_where(
                    mem, at, t, piece.numbers, start, piece.stride, piece.size, b, B.count, mask, B.start, B.stride
                )

    @wp.func
    def take_packed(b: int, t: int, B: Batch, piece: Piece, mask: wp.array[bool], mem: m.memory):
        """The same from packed memory."""
        for i in range(piece.parts):
            at = piece.row + i * piece.size
            start = piece.start + piece.part[i]
            if B.masked != 0:
                m.stage_out_packed_where(
                    mem, at, piece.place, t, piece.numbers, start, piece.stride, piece.size, b, B.count, mask, B.start, B.stride
                )  # fmt: skip
            else:
                m.stage_out_packed(mem, at, piece.place, t, piece.numbers, start, piece.stride, piece.size, b, B.count)

    @wp.func
    def add(b: int, t: int, B: Batch, piece: Piece, mask: wp.array[bool], mem: m.memory):
        """The same, added to what the array holds."""
        for i in range(piece.parts):
            at = piece.row + i * piece.size
            start = piece.start + piece.part[i]
            if B.masked != 0:
                m.stage_add_where(
                    mem, at, piece.place, t, piece.numbers, start, piece.stride, piece.size, b, B.count, mask, B.start, B.stride
                )  # fmt: skip
            else:
                m.stage_add(mem, at, piece.place, t, piece.numbers, start, piece.stride, piece.size, b, B.count)

    moves = types.SimpleNamespace(bring=bring, take_all=take_all, take=take, take_packed=take_packed, add=add)
    own = dict(Batch=Batch, Piece=Piece, wanted=wanted, moves=moves)
    return types.SimpleNamespace(**{**vars(m), **own})


def batch_kernel(
    m: types.SimpleNamespace, compute, flags: str = GENERAL_FLAGS, emitted: bool = False, result: str = "take"
):
    """The kernel that runs a program over a batch: thread i does the blocks from ``first + i * each`` up to the next one's.

    Threads of a CPU do all their blocks in one go, as it takes time to hand a kernel its arguments.

    Args:
        m: the programs' namespace with `batch_structs`.
        compute: ``compute(b, t, T, P, L, mem)``, a Warp function; `emitted` code is told the pieces that are written, too.
        flags: for the compiler of CPUs.
        result: what is done with the results: ``"take"``; ``"take_packed"``: the program leaves equal numbers in memory once, and
            pieces say where each is; ``"add"``: the same, and they are added to the arrays.
    """
    options = {"cpu_compiler_flags": flags}
    bring, take = m.moves.bring, getattr(m.moves, result)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def kernel(
        first: int,
        each: int,
        workers: int,
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
        t = wp.tid() % workers
        start = first + wp.tid() * each
        for b in range(start, start + each):
            if m.wanted(b, B, mask):
                for i in range(inputs):
                    bring(b, t, B, pieces_in[i], mem)
                if emitted:
                    compute(b, t, T, P, L, mem, pieces_out)
                else:
                    compute(b, t, T, P, L, mem)
                for i in range(outputs):
                    take(b, t, B, pieces_out[i], mask, mem)

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
