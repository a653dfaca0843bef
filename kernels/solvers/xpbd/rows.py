"""Numbers of items of lanes that stand in rows of an array, and are read, written and summed as structures of lanes."""

import types

import warp as wp
from newton_like.kernels.simd import C_NAME, simd_types


def rows_access(m: types.SimpleNamespace, kind, count: int) -> tuple:
    """Functions ``fetch(array, at, apart, first, index, out)``, ``deposit(array, at, apart, first, index, valid, given)`` and
    ``add(array, at, apart, index, rank, valid, given)`` for a structure of `count` lanes, whose numbers stand in rows.

    Number i of the item of a lane stands at ``at + apart * i + index``; `first`: the first index where they are consecutive, else -1;
    `valid`: lanes that are written. ``add`` adds lane after lane; those of rank 0 write instead.

    Args:
        m: the namespace.
        kind: the structure.
        count: number of lanes of the structure.
    """
    width, real = m.width, m.real
    number = C_NAME[real]
    if width == 1:

        @wp.func_native(
            f"{number}* const to = ({number}*)&out; const int k = first >= 0 ? first : index;"
            f" for (int i = 0; i < {count}; ++i) to[i] = array.data[at + apart * i + k];"
        )
        def fetch_one(array: wp.array[real], at: int, apart: int, first: int, index: int, out: wp.ref[kind]):
            """Reads the numbers of an item."""

        @wp.func_native(
            f"const {number}* const from = (const {number}*)&given; const int k = first >= 0 ? first : index;"
            f" for (int i = 0; i < {count}; ++i) array.data[at + apart * i + k] = from[i];"
        )
        def deposit_one(
            array: wp.array[real], at: int, apart: int, first: int, index: int, valid: int, given: wp.ref[kind]
        ):
            """Writes the numbers of an item."""

        @wp.func_native(
            f"const {number}* const from = (const {number}*)&given; {number}* const to = array.data + at + index;"
            f" for (int i = 0; i < {count}; ++i) to[apart * i] = rank > 0 ? from[i] + to[apart * i] : from[i];"
        )
        def add_one(array: wp.array[real], at: int, apart: int, index: int, rank: int, valid: int, given: wp.ref[kind]):
            """Adds the numbers of an item."""

        return fetch_one, deposit_one, add_one

    head = f"{simd_types(width, real)} "

    @wp.func_native(
        f"{head} simd* const to = (simd*)&out; const {number}* from = array.data + at;"
        f" if (first >= 0) {{ from += first;"
        f" for (int i = 0; i < {count}; ++i, from += apart) __builtin_memcpy(to + i, from, sizeof(simd)); }}"
        f" else for (int i = 0; i < {count}; ++i, from += apart) for (int k = 0; k < {width}; ++k) to[i][k] = from[index[k]];"
    )
    def fetch(array: wp.array[real], at: int, apart: int, first: int, index: m.ints, out: wp.ref[kind]):
        """Reads the numbers of the items of all lanes."""

    @wp.func_native(
        f"{head} const simd* const from = (const simd*)&given; {number}* to = array.data + at;"
        f" if (first >= 0) {{ to += first;"
        f" for (int i = 0; i < {count}; ++i, to += apart) __builtin_memcpy(to, from + i, sizeof(simd)); }}"
        f" else for (int i = 0; i < {count}; ++i, to += apart) for (int k = 0; k < valid; ++k) to[index[k]] = from[i][k];"
    )
    def deposit(array: wp.array[real], at: int, apart: int, first: int, index: m.ints, valid: int, given: wp.ref[kind]):
        """Writes the numbers of the items of the first lanes."""

    @wp.func_native(
        f"{head} const simd* const from = (const simd*)&given; {number}* to = array.data + at;"
        f" for (int i = 0; i < {count}; ++i, to += apart) for (int k = 0; k < valid; ++k)"
        f" to[index[k]] = rank[k] > 0 ? from[i][k] + to[index[k]] : from[i][k];"
    )
    def add(array: wp.array[real], at: int, apart: int, index: m.ints, rank: m.ints, valid: int, given: wp.ref[kind]):
        """Adds the numbers of the items of the first lanes."""

    return fetch, deposit, add


def copy_function(m: types.SimpleNamespace):
    """The function ``copy(array, index, valid, to, begin, end)``: copies the numbers `begin` to `end` of the items of the first lanes,
    which stand a block apart from ``index`` on, to the lanes of the block whose first number is `to`."""

    @wp.func_native(
        f"for (int i = begin; i < end; ++i) for (int k = 0; k < valid; ++k)"
        f" array.data[(to + i) * {m.width} + k] = array.data[{'index[k]' if m.width > 1 else 'index'} + i * {m.width}];"
    )
    def copy(array: wp.array[m.real], index: m.ints, valid: int, to: int, begin: int, end: int):
        """Copies numbers of lanes."""

    return copy
