"""Copies between flat arrays and memory, at every width and scalar type."""

from functools import cache

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.lanes import lane_math
from newton_like.kernels.pieces import piece_moves

from tests.kernels.test_lanes import NUMPY, same_bits
from tests.support.kinematic_cases import LANES


@cache
class Staging:
    """A kernel of one width and scalar type that brings pieces in, puts rows away and fetches them, and takes results out."""

    def __init__(self, width, dtype):
        self.width, self.dtype, self.real = width, dtype, NUMPY[dtype]
        self.m = m = piece_moves(lane_math(width, dtype))

        @wp.kernel(module="unique", enable_backward=False)
        def kernel(
            rows: int,
            at: int,
            n: int,
            B: m.Batch,
            mask: wp.array[bool],
            pieces_in: wp.array[m.Piece],
            mem: m.memory,
            kept: m.memory,
            pieces_out: wp.array[m.Piece],
            pieces_packed: wp.array[m.Piece],
            pieces_added: wp.array[m.Piece],
            flags: wp.array2d[int],
        ):
            b = wp.tid()
            t = b % rows
            m.bring(b, t, B, 1, 2, pieces_in, mem)
            # rows go to another memory and back
            m.keep(mem, at, 1, t, kept, b, n)
            for i in range(n):
                m.put(mem, at + i, t, m.fill(m.real(7.0)))
            m.recall(mem, at, 1, t, kept, b, n)
            if m.any_given(b, B, pieces_in, 1):
                flags[0, b] = 1
            if m.any_selected(mask, B.start, B.stride, b, B.count):
                flags[1, b] = 1
            m.take(b, t, B, 1, pieces_out, mask, mem)
            m.take_packed(b, t, B, 1, pieces_packed, mask, mem)
            m.take_added(b, t, B, 1, pieces_added, mask, mem)

        self.kernel = kernel

    def piece(self, array, row, start, stride, parts, size, place=None):
        """A piece in an array; the one before it in the list is never looked at."""
        piece = self.m.Piece()
        piece.numbers, piece.row, piece.start, piece.stride = array, row, start, stride
        piece.parts, piece.size = len(parts), size
        piece.part = wp.array(parts, dtype=wp.int32, device="cpu")
        if place is not None:
            piece.place = wp.array(self.width * np.append(place, [0] * self.width), dtype=wp.int32, device="cpu")
        return piece

    def pieces(self, *pieces):
        array = wp.array(list(pieces), dtype=self.m.Piece, device="cpu")
        # the array stores only addresses, so the pieces must be kept alive
        array.kept = pieces
        return array


@pytest.fixture(scope="module", params=LANES)
def staging(request):
    return Staging(*request.param)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_numbers_travel_between_worlds_and_lanes(rng, staging, masked, parts):
    """Every length around the sizes of the squares that are transposed, every fill of the last block, any stride; written, written in
    another order, and added in that order."""
    s, width = staging, staging.width
    for n in (0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 40):
        for count in (1, width - 1, width, width + 1, 3 * width + width // 2):
            if count < 1:
                continue
            start, to_start, at, first = (int(x) for x in rng.integers(0, 20, 4))
            gap, step = int(rng.integers(1, 4)), int(rng.integers(1, 4))
            # runs of n numbers, with others between
            part = [k * (n + gap) for k in range(parts)]
            stride, to_stride = (part[-1] + n + int(rng.integers(4)) for _ in range(2))
            one = (np.array(part)[:, None] + np.arange(n)).ravel()
            source = rng.normal(size=start + count * stride + 1).astype(s.real)
            source[rng.random(source.size) < 0.2] = -0.0
            worlds = start + np.arange(count)[:, None] * stride + one
            # some blocks have only zeros
            source[worlds[: width if rng.random() < 0.5 else 0]] = 0.0
            mask = rng.random(first + count * step + 1) < 0.5
            before = rng.normal(size=to_start + count * to_stride + 1).astype(s.real)
            order = rng.integers(0, max(n, 1), n)

            blocks = -(-count // width)
            rows = blocks if width == 1 else 1
            mem = wp.zeros((at + parts * n + 1, rows), dtype=s.m.lane, device="cpu")
            kept = wp.zeros((blocks, parts * n + 2), dtype=s.m.lane, device="cpu")
            flags = wp.zeros((2, blocks), dtype=wp.int32, device="cpu")
            given, written, packed, added = (
                wp.array(x, dtype=s.dtype, device="cpu") for x in (source, before, before, before)
            )
            B = s.m.Batch()
            B.count, B.masked, B.start, B.stride = count, int(masked), first, step
            into = [s.piece(a, at, to_start, to_stride, part, n, order) for a in (written, packed, added)]
            ends = [s.pieces(s.m.Piece(), s.piece(given, at, start, stride, part, n)), mem, kept, *map(s.pieces, into)]
            inputs = [rows, at, parts * n, B, wp.array(mask, dtype=wp.bool, device="cpu"), *ends, flags]
            wp.launch(s.kernel, blocks, inputs, device="cpu")

            chosen = mask[first + step * np.arange(count)] if masked else np.ones(count, bool)
            rows = to_start + np.arange(count)[:, None] * to_stride + one
            shuffled = (np.arange(parts)[:, None] * n + order).ravel()
            expected = before.copy()
            expected[rows[chosen]] = source[worlds[chosen]] + 0.0
            same_bits(written.numpy(), expected)
            expected[rows[chosen]] = source[worlds[chosen]][:, shuffled] + 0.0
            same_bits(packed.numpy(), expected)
            expected = before.copy()
            expected[rows[chosen]] += source[worlds[chosen]][:, shuffled]
            same_bits(added.numpy(), expected)
            block = np.arange(count) // width
            wanted = mask[first + step * np.arange(count)]
            for b in range(blocks):
                assert flags.numpy()[0, b] == source[worlds[block == b]].any()
                assert flags.numpy()[1, b] == wanted[block == b].any()
