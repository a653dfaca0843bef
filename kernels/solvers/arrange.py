"""The order of worlds in blocks: worlds with about as many contacts are in the same block.

A block takes as long as its world with the most contacts, because its lanes do the same things at the same time. Contacts of robots that
fall or lie are other ones in each world, so before a step worlds change places: those with the most contacts in the step before come
first. What a world keeps from step to step moves along. Its results do not change, because they do not depend on the other worlds of its
block. Worlds that already are where others with as many contacts shall be stay there, and all stay where little would be gained.

One thread moves worlds while the others wait. So worlds move only after blocks have lost as much time, because of their order, as the
moves take: with more threads that is later.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.simd import C_NAME

GAIN = 3
"""Worlds change places if that lessens the sum of the most contacts of all blocks by more than the sum after it, divided by this."""

MOVES = 4
"""Moves of a world that take about as long as a contact of a block takes in a step."""

# Of `runs`: where impulses, features and pairs of contacts are among the kept numbers, and how many impulses a contact has; where the
# numbers of limits and of trees are, and how many. The numbers of trees follow each other.
IMPULSES, FEATURES, PAIRS, ROWS, LIMITS, LIMIT_NUMBERS, TREES, TREE_NUMBERS = range(8)


def _arrange_code(width: int, real) -> str:
    """C++ body of ``arrange``."""
    return f"""
        typedef {C_NAME[real]} real_t; enum {{ W = {width} }};
        const int blocks = (count + W - 1) / W, size = kept.shape[1], lists = kept_active.shape[1], most = lists - 2;
        const int* const R = runs.data;
        const int rows = R[{ROWS}];
        real_t* const K = (real_t*)kept.data;
        // of each place: its contacts, whence its world comes; of each number of contacts: where its places begin, and the next one
        int* const contacts = scratch.data; int* const source = contacts + blocks * W;
        int* const begin = source + blocks * W; int* const next = begin + most + 2;
        // of contacts that blocks had only because of the order, since worlds moved
        int& lost = next[most + 2];
        bool moves = false;
        if (!sorted) {{
            for (int p = 0; p < count; ++p) moves |= order.data[p] != p;
            if (!moves) return;
        }}
        for (int b = 0; b < blocks; ++b) {{
            int* const of = contacts + b * W;
            for (int l = 0; l < W; ++l) {{ of[l] = 0; source[b * W + l] = -1; }}
            for (int k = 0; k < kept_active.data[(size_t)b * lists]; ++k) {{
                const real_t* const pair = K + ((size_t)b * size + R[{PAIRS}] + k) * W;
                for (int l = 0; l < W; ++l) of[l] += pair[l] >= 0;
            }}
        }}
        for (int p = count; p < blocks * W; ++p) contacts[p] = 0;
        if (sorted) {{
            // from the most contacts to none
            for (int k = 0; k <= most + 1; ++k) begin[k] = 0;
            for (int p = 0; p < count; ++p) ++begin[contacts[p]];
            for (int k = most, at = 0; k >= 0; --k) {{ const int n = begin[k]; begin[k] = next[k] = at; at += n; }}
            long long now = 0, least = 0;
            for (int b = 0, k = most; b < blocks; ++b) {{
                int highest = 0;
                for (int l = 0; l < W; ++l) if (contacts[b * W + l] > highest) highest = contacts[b * W + l];
                now += highest;
                while (k > 0 && begin[k - 1] <= b * W) --k;
                least += k;
            }}
            lost += now - least < (1 << 30) - lost ? (int)(now - least) : (1 << 30) - lost;
            if ({GAIN} * (now - least) <= least) return;
            long long moving = 0;
            auto end_of = [&](int k) {{ return k > 0 ? begin[k - 1] : count; }};
            for (int p = 0; p < count; ++p) {{
                const int k = contacts[p];
                if (p >= begin[k] && p < end_of(k)) continue;
                while (contacts[next[k]] == k) ++next[k];
                source[next[k]++] = p;
                ++moving;
            }}
            moves = moving > 0 && (long long){MOVES} * lost >= moving * threads;
            if (moves) lost = 0;
        }} else for (int p = 0; p < count; ++p) if (order.data[p] != p) source[order.data[p]] = p;
        if (!moves) return;

        // a block without impulses of limits does not read what it keeps of them
        for (int b = 0; b < blocks; ++b) {{
            int& limits = kept_active.data[(size_t)b * lists + most + 1];
            bool some = false;
            for (int l = 0; l < W; ++l) some |= source[b * W + l] >= 0;
            if (!some || limits != 0) continue;
            real_t* const at = K + ((size_t)b * size + R[{LIMITS}]) * W;
            for (int i = 0; i < R[{LIMIT_NUMBERS}] * W; ++i) at[i] = 0;
            limits = 1;
        }}
        // copies n numbers from number `first` on
        auto copy = [&](real_t* to, int to_step, const real_t* from, int from_step, int first, int n) {{
            for (int i = first; i < first + n; ++i) to[(size_t)i * to_step] = from[(size_t)i * from_step];
        }};
        auto move = [&](real_t* to, int to_step, const real_t* from, int from_step, int n) {{
            copy(to, to_step, from, from_step, R[{IMPULSES}], rows * n);
            copy(to, to_step, from, from_step, R[{FEATURES}], n);
            copy(to, to_step, from, from_step, R[{PAIRS}], n);
            copy(to, to_step, from, from_step, R[{LIMITS}], R[{LIMIT_NUMBERS}]);
            copy(to, to_step, from, from_step, R[{TREES}], R[{TREE_NUMBERS}]);
        }};
        auto lane = [&](int p) {{ return K + (size_t)(p / W) * size * W + p % W; }};
        // the worlds of a cycle move one after the other; `next` is not needed any more
        auto mark = [&](int p) {{ source[p] = -2 - source[p]; }};
        for (int first = 0; first < count; ++first) {{
            if (source[first] < 0) continue;
            const int world = order.data[first], n = contacts[first];
            move(spare.data, 1, lane(first), W, n);
            int p = first;
            while (source[p] != first) {{
                const int from = source[p];
                move(lane(p), W, lane(from), W, contacts[from]);
                order.data[p] = order.data[from]; contacts[p] = contacts[from];
                mark(p); p = from;
            }}
            move(lane(p), W, spare.data, 1, n);
            order.data[p] = world; contacts[p] = n;
            mark(p);
        }}
        for (int b = 0; b < blocks; ++b) {{
            bool some = false; int highest = 0;
            for (int l = 0; l < W; ++l) {{
                some |= source[b * W + l] < -1;
                if (contacts[b * W + l] > highest) highest = contacts[b * W + l];
            }}
            if (!some) continue;
            kept_active.data[(size_t)b * lists] = highest;
            // worlds with fewer contacts
            real_t* const at = K + (size_t)b * size * W;
            for (int k = 0; k < highest; ++k) for (int l = 0; l < W; ++l) if (k >= contacts[b * W + l]) {{
                for (int i = 0; i < rows; ++i) at[(size_t)(R[{IMPULSES}] + rows * k + i) * W + l] = 0;
                at[(size_t)(R[{FEATURES}] + k) * W + l] = 0; at[(size_t)(R[{PAIRS}] + k) * W + l] = -1;
            }}
        }}
        for (int p = 0; p < count; ++p) place.data[order.data[p]] = p;"""


@cache
def arrange_kernel(width: int, real):
    """Kernel of one thread, for CPUs: gives the worlds of a batch their places, before a step with contacts in slots."""
    lane = wp.types.vector(width, real)
    memory = wp.array2d[lane]

    @wp.func_native(_arrange_code(width, real))
    def arrange_worlds(
        count: int, sorted: int, threads: int, runs: wp.array[int], kept_active: wp.array2d[int], kept: memory, scratch: wp.array[int],
        spare: wp.array[real], order: wp.array[int], place: wp.array[int],
    ): ...  # fmt: skip

    @wp.kernel(module="unique", enable_backward=False)
    def arrange(
        count: int,
        # whether worlds are sorted; otherwise, they come back to the order of the batch
        sorted: int,
        # that share a step
        threads: int,
        # see above
        runs: wp.array[int],
        # of the step before
        kept_active: wp.array2d[int],
        kept: memory,
        # memory for integers, and for what a world keeps
        scratch: wp.array[int],
        spare: wp.array[real],
        # which world is at each place, and the place of each world
        order: wp.array[int],
        place: wp.array[int],
    ):
        arrange_worlds(count, sorted, threads, runs, kept_active, kept, scratch, spare, order, place)

    return arrange


def scratch_size(blocks: int, width: int, most: int) -> int:
    """Length of the memory for integers, for blocks of up to `most` contacts a world."""
    return 2 * blocks * width + 2 * (most + 2) + 1


def runs_of(L: types.SimpleNamespace, numbers: dict[str, int], trees: int) -> list[int]:
    """Where the numbers that a world keeps are.

    Args:
        L: the layout.
        numbers: of the tree.
        trees: of a world.
    """
    if L.kept_owed != L.kept_account + trees:
        raise ValueError("the rows account and owed of kernels.layout must follow each other")
    return [
        L.kept_impulse, L.kept_feature, L.kept_old_pair, numbers["contact_rows"], L.kept_dof_impulse, numbers["limit_rows"],
        L.kept_account, 2 * trees,
    ]  # fmt: skip
