"""Groups of eight numbers that lanes read and write together: `newton_like.kernels.solvers.xpbd.eights`."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.lanes import extended, lane_math
from newton_like.kernels.simd import GENERAL_FLAGS, module_options
from newton_like.kernels.solvers.xpbd.access import access_program
from newton_like.kernels.solvers.xpbd.eights import EIGHT, eight_access
from newton_like.kernels.spatial import spatial_algebra

APART, BEGIN, ITEMS = 24, 3, 40


@pytest.mark.parametrize("width, real", [(1, wp.float32), (8, wp.float32), (16, wp.float32), (8, wp.float64)])
def test_lanes_have_the_numbers_of_their_items(rng, width, real):
    m = extended(lane_math(width, real), (spatial_algebra, access_program))
    lane = m.lane

    @wp.struct
    class Group:
        vector: m.Vec3
        turn: m.Quat
        last: lane

    fetch, deposit = eight_access(m, Group, APART)

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, width, quick=0))
    def move(array: wp.array[real], items: wp.array[int], seen: wp.array[real], to: int):
        there = m.listed(items, 0, width, 0)
        g = Group()
        fetch(array, BEGIN, there, g)
        m.deposit_run(seen, 0, g.vector.x)
        m.deposit_run(seen, width, g.vector.y)
        m.deposit_run(seen, 2 * width, g.vector.z)
        m.deposit_run(seen, 3 * width, g.turn.x)
        m.deposit_run(seen, 4 * width, g.turn.y)
        m.deposit_run(seen, 5 * width, g.turn.z)
        m.deposit_run(seen, 6 * width, g.turn.w)
        m.deposit_run(seen, 7 * width, g.last)
        deposit(array, to, there, g)

    numbers = rng.normal(size=BEGIN + APART * ITEMS).astype(wp.dtype_to_numpy(real))
    items = rng.permutation(ITEMS - 1)[:width]
    array, seen = wp.array(numbers, dtype=real, device="cpu"), wp.zeros(EIGHT * width, dtype=real, device="cpu")
    to = BEGIN + EIGHT
    wp.launch(move, dim=1, inputs=[array, wp.array(items, dtype=int, device="cpu"), seen, to], device="cpu")

    places = APART * items[:, None] + np.arange(EIGHT)
    assert np.array_equal(seen.numpy().reshape(EIGHT, width).T, numbers[BEGIN + places])
    expected = numbers.copy()
    expected[to + places] = numbers[BEGIN + places]
    assert np.array_equal(array.numpy(), expected)


@pytest.mark.parametrize("width, real", [(8, wp.float32), (16, wp.float32), (8, wp.float64)])
def test_lanes_beyond_the_last_item_are_neither_read_nor_written(rng, width, real):
    m = extended(lane_math(width, real), (spatial_algebra, access_program))
    start, rest = 3, -7

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, width, quick=0))
    def move(
        valid: int, items: wp.array[int], numbers: wp.array[real], found: wp.array2d[int], chosen: wp.array2d[int], out: wp.array[real]
    ):  # fmt: skip
        x = m.fetch_run(numbers, start)
        listed = m.listed(items, start, valid, rest)
        where = m.listed_where(items, start, valid, rest, x)
        for k in range(width):
            found[valid, k] = listed[k]
            chosen[valid, k] = where[k]
        m.deposit_some(out, start + width * valid, valid, x)

    numbers = rng.normal(size=start + width).astype(wp.dtype_to_numpy(real))
    items = rng.integers(100, size=start + width).astype(np.int32)
    found, chosen = (wp.zeros((width + 1, width), dtype=int, device="cpu") for _ in range(2))
    out = wp.zeros(start + width * (width + 1), dtype=real, device="cpu")
    given = [wp.array(items, dtype=int, device="cpu"), wp.array(numbers, dtype=real, device="cpu")]
    for valid in range(width + 1):
        wp.launch(move, dim=1, inputs=[valid, *given, found, chosen, out], device="cpu")

    there = np.arange(width) < np.arange(width + 1)[:, None]
    assert np.array_equal(found.numpy(), np.where(there, items[start:], rest))
    assert np.array_equal(chosen.numpy(), np.where(there & (numbers[start:] > 0.0), items[start:], rest))
    assert np.array_equal(out.numpy()[start:].reshape(width + 1, width), np.where(there, numbers[start:], 0.0))
