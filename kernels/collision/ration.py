"""Which contacts a list keeps where it has no room for all: each world keeps about the same number, its deepest contacts.

Contacts of a world are those of its units: clusters, or pairs of shapes of a crowd. What is known of a contact are two numbers, the gap of
the surfaces and a number that is not negative; of contacts that are dropped the second number x becomes -1 - x.
"""

from functools import cache

import warp as wp
from newton_like.kernels.simd import GENERAL_FLAGS, module_options

HALVINGS = 64
"""Steps of the search for the gap up to which contacts of a world are kept."""

FARTHEST = 1.0e6
"""Gaps beyond this distance [m] are equal to it."""


@cache
def ration_kernels(real):
    """Kernels ``(share, choose)``. The first, a single thread, finds the number of contacts that each world keeps. The second, over worlds,
    chooses the contacts of each, and where they go. Both do nothing where there is room for all."""
    options = module_options(GENERAL_FLAGS, 8)

    @wp.func
    def kept_at(level: int, number: wp.array[int]) -> int:
        """The number of contacts that are kept, of each world at most `level`."""
        total = int(0)
        for s in range(number.shape[0]):
            total += wp.min(number[s], level)
        return total

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def share(
        room: int,
        # clusters: how many contacts come before those of each one, and their number at the end; clusters by world
        starts: wp.array[int],
        order: wp.array[int],
        first_unit: wp.array[int],
        # crowds: the first row of each one, the first pair of each row, and how many contacts come before those of each pair
        crowd_row: wp.array[int],
        row_pair: wp.array[int],
        pair_start: wp.array[int],
        # the worlds of both, and their places in `lost`
        world: wp.array[int],
        # out:
        counts: wp.array[int],
        crowd_pair: wp.array[int],
        number: wp.array[int],
        quota: wp.array[int],
        place: wp.array[int],
        lost: wp.array[int],
    ):
        clusters = starts.shape[0] - 1
        total = starts[clusters]
        if pair_start.shape[0] > 0:
            total += pair_start[pair_start.shape[0] - 1]
        quota[0] = -1
        if total <= room:
            return
        for a in range(clusters):
            counts[a] = starts[a + 1] - starts[a]
        worlds = first_unit.shape[0] - 1
        for s in range(worlds):
            number[s] = 0
            for i in range(first_unit[s], first_unit[s + 1]):
                number[s] += counts[order[i]]
        if pair_start.shape[0] > 0:
            for t in range(crowd_row.shape[0]):
                crowd_pair[t] = wp.min(row_pair[crowd_row[t]], pair_start.shape[0] - 1)
            for t in range(1, crowd_row.shape[0]):
                number[worlds + t - 1] = pair_start[crowd_pair[t]] - pair_start[crowd_pair[t - 1]]
        # the largest number that all worlds can have
        level = int(0)
        above = int(room + 1)
        while above - level > 1:
            middle = (level + above) // 2
            if kept_at(middle, number) <= room:
                level = middle
            else:
                above = middle
        rest = room - kept_at(level, number)
        for w in range(lost.shape[0]):
            lost[w] = 0
        at = int(0)
        for s in range(number.shape[0]):
            keep = wp.min(number[s], level)
            if keep < number[s] and rest > 0:
                keep += 1
                rest -= 1
            quota[s] = keep
            place[s] = at
            at += keep
            lost[world[s]] += number[s] - keep

    @wp.func
    def depth(numbers: wp.array[real], k: int) -> wp.float64:
        x = wp.float64(numbers[2 * k])
        if wp.isnan(x):
            return wp.float64(0.0)
        return wp.clamp(x, wp.float64(-FARTHEST), wp.float64(FARTHEST))

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def choose(
        # the first of these worlds in what `share` found
        first: int,
        number: wp.array[int],
        quota: wp.array[int],
        place: wp.array[int],
        # units sorted by world (an empty `order` means 0, 1, 2, ...); of each one the number of contacts, and where they begin in `numbers`
        order: wp.array[int],
        first_unit: wp.array[int],
        counts: wp.array[int],
        at: wp.array[int],
        # in and out:
        numbers: wp.array[real],
        # out: the place of each unit's first contact in the list
        moved: wp.array[int],
    ):
        if quota[0] < 0:
            return
        w = wp.tid()
        keep = quota[first + w]
        crowded = number[first + w] > keep
        low = wp.float64(-2.0) * wp.float64(FARTHEST)
        high = wp.float64(FARTHEST)
        # contacts with gaps up to `low`
        below = int(0)
        if crowded:
            for _step in range(HALVINGS):
                middle = wp.float64(0.5) * (low + high)
                n = int(0)
                for i in range(first_unit[w], first_unit[w + 1]):
                    u = i
                    if order.shape[0] > 0:
                        u = order[i]
                    for j in range(counts[u]):
                        if depth(numbers, at[u] + j) <= middle:
                            n += 1
                if n <= keep:
                    low = middle
                    below = n
                else:
                    high = middle
                if below == keep and n <= keep:
                    break
        # of equal ones the first
        equal = keep - below
        n = place[first + w]
        for i in range(first_unit[w], first_unit[w + 1]):
            u = i
            if order.shape[0] > 0:
                u = order[i]
            moved[u] = n
            if not crowded:
                n += counts[u]
            else:
                for j in range(counts[u]):
                    k = at[u] + j
                    x = depth(numbers, k)
                    taken = x <= low
                    if not taken and x <= high and equal > 0:
                        taken = True
                        equal -= 1
                    if taken:
                        n += 1
                    else:
                        numbers[2 * k + 1] = real(-1.0) - numbers[2 * k + 1]

    return share, choose
