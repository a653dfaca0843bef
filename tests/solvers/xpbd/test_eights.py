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


@pytest.mark.parametrize("width, real", [(1, wp.float32), (16, wp.float32), (8, wp.float64)])
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
        m.deposit(seen, 0, 0, there, g.vector.x)
        m.deposit(seen, width, 0, there, g.vector.y)
        m.deposit(seen, 2 * width, 0, there, g.vector.z)
        m.deposit(seen, 3 * width, 0, there, g.turn.x)
        m.deposit(seen, 4 * width, 0, there, g.turn.y)
        m.deposit(seen, 5 * width, 0, there, g.turn.z)
        m.deposit(seen, 6 * width, 0, there, g.turn.w)
        m.deposit(seen, 7 * width, 0, there, g.last)
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
