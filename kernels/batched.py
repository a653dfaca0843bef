"""The kernel of every program that is no step: it brings numbers of articulations into memory, runs the program, and takes results out."""

import types
from functools import cache

import warp as wp

INPUTS, OUTPUTS = 12, 6
"""How many arrays a program can read and write."""

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
        """What belongs to an articulation in a flat array: `parts` runs of `size` numbers, run i at ``start + part[i]`` for
        the first articulation and `stride` further on for the next; in memory they follow each other from `row` on."""

        row: int
        start: int
        stride: int
        size: int
        parts: int
        part: wp.array[int]

    @wp.func
    def wanted(b: int, B: Batch, mask: wp.array[bool]) -> bool:
        """Whether any articulation of block b is selected."""
        if B.masked == 0:
            return True
        return m.any_selected(mask, B.start, B.stride, b, B.count)

    @wp.func
    def bring(b: int, t: int, B: Batch, piece: Piece, a: wp.array[real], mem: m.memory):
        for i in range(piece.parts):
            at = piece.row + i * piece.size
            m.stage_in(mem, at, t, a, piece.start + piece.part[i], piece.stride, piece.size, b, B.count)

    @wp.func
    def take(b: int, t: int, B: Batch, piece: Piece, a: wp.array[real], mask: wp.array[bool], mem: m.memory):
        """Of the selected articulations only."""
        for i in range(piece.parts):
            at = piece.row + i * piece.size
            start = piece.start + piece.part[i]
            if B.masked != 0:
                m.stage_out_where(mem, at, t, a, start, piece.stride, piece.size, b, B.count, mask, B.start, B.stride)
            else:
                m.stage_out(mem, at, t, a, start, piece.stride, piece.size, b, B.count)

    return types.SimpleNamespace(**vars(m), Batch=Batch, Piece=Piece, wanted=wanted, bring=bring, take=take)


def batch_kernel(m: types.SimpleNamespace, compute, flags: str = GENERAL_FLAGS):
    """The kernel that runs a program over a batch: thread i does the blocks from ``first + i * each`` up to the next one's.

    Threads of a CPU do all their blocks in one go, as it takes time to hand a kernel its arguments.

    Args:
        m: the programs' namespace with `batch_structs`.
        compute: ``compute(b, t, T, P, L, mem)``, a Warp function.
        flags: for the compiler of CPUs.
    """
    real = m.real
    options = {"cpu_compiler_flags": flags}

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
        piece_0: m.Piece,
        piece_1: m.Piece,
        piece_2: m.Piece,
        piece_3: m.Piece,
        piece_4: m.Piece,
        piece_5: m.Piece,
        piece_6: m.Piece,
        piece_7: m.Piece,
        piece_8: m.Piece,
        piece_9: m.Piece,
        piece_10: m.Piece,
        piece_11: m.Piece,
        in_0: wp.array[real],
        in_1: wp.array[real],
        in_2: wp.array[real],
        in_3: wp.array[real],
        in_4: wp.array[real],
        in_5: wp.array[real],
        in_6: wp.array[real],
        in_7: wp.array[real],
        in_8: wp.array[real],
        in_9: wp.array[real],
        in_10: wp.array[real],
        in_11: wp.array[real],
        # out:
        piece_12: m.Piece,
        piece_13: m.Piece,
        piece_14: m.Piece,
        piece_15: m.Piece,
        piece_16: m.Piece,
        piece_17: m.Piece,
        out_0: wp.array[real],
        out_1: wp.array[real],
        out_2: wp.array[real],
        out_3: wp.array[real],
        out_4: wp.array[real],
        out_5: wp.array[real],
    ):
        t = wp.tid() % workers
        start = first + wp.tid() * each
        for b in range(start, start + each):
            if m.wanted(b, B, mask):
                if piece_0.parts > 0:
                    m.bring(b, t, B, piece_0, in_0, mem)
                if piece_1.parts > 0:
                    m.bring(b, t, B, piece_1, in_1, mem)
                if piece_2.parts > 0:
                    m.bring(b, t, B, piece_2, in_2, mem)
                if piece_3.parts > 0:
                    m.bring(b, t, B, piece_3, in_3, mem)
                if piece_4.parts > 0:
                    m.bring(b, t, B, piece_4, in_4, mem)
                if piece_5.parts > 0:
                    m.bring(b, t, B, piece_5, in_5, mem)
                if piece_6.parts > 0:
                    m.bring(b, t, B, piece_6, in_6, mem)
                if piece_7.parts > 0:
                    m.bring(b, t, B, piece_7, in_7, mem)
                if piece_8.parts > 0:
                    m.bring(b, t, B, piece_8, in_8, mem)
                if piece_9.parts > 0:
                    m.bring(b, t, B, piece_9, in_9, mem)
                if piece_10.parts > 0:
                    m.bring(b, t, B, piece_10, in_10, mem)
                if piece_11.parts > 0:
                    m.bring(b, t, B, piece_11, in_11, mem)
                compute(b, t, T, P, L, mem)
                if piece_12.parts > 0:
                    m.take(b, t, B, piece_12, out_0, mask, mem)
                if piece_13.parts > 0:
                    m.take(b, t, B, piece_13, out_1, mask, mem)
                if piece_14.parts > 0:
                    m.take(b, t, B, piece_14, out_2, mask, mem)
                if piece_15.parts > 0:
                    m.take(b, t, B, piece_15, out_3, mask, mem)
                if piece_16.parts > 0:
                    m.take(b, t, B, piece_16, out_4, mask, mem)
                if piece_17.parts > 0:
                    m.take(b, t, B, piece_17, out_5, mask, mem)

    return kernel


@cache
def share_inertia(real):
    """Kernel over bodies: adjoints of mass, centre of mass and inertia (xx yy zz xy xz yz) to the gradients of the arrays that have one."""
    vec3 = wp.types.vector(3, real)
    mat33 = wp.types.matrix((3, 3), real)

    @wp.kernel(module="unique", enable_backward=False)
    def kernel(
        shares: wp.array2d[real],
        # out:
        mass: wp.array[real],
        com: wp.array[vec3],
        inertia: wp.array[mat33],
    ):
        k = wp.tid()
        if mass:
            mass[k] = mass[k] + shares[k, 0]
        if com:
            com[k] = com[k] + vec3(shares[k, 1], shares[k, 2], shares[k, 3])
        if inertia:
            # each parameter is the mean of the two entries it stands for
            half = real(0.5)
            xy = half * shares[k, 7]
            xz = half * shares[k, 8]
            yz = half * shares[k, 9]
            inertia[k] = inertia[k] + mat33(shares[k, 4], xy, xz, xy, shares[k, 5], yz, xz, yz, shares[k, 6])

    return kernel
