"""Groups of eight numbers of an item that stand side by side in memory, and are read and written together.

A structure of eight lanes is made of the eight numbers of each lane's item: squares of eight by eight numbers are transposed in registers.
This takes fewer instructions than to gather each lane number by number.
"""

import types

import warp as wp
from newton_like.kernels.simd import C_NAME, simd_types

EIGHT = 8


def _transposed(rows: str, width: int) -> str:
    """C++ statements that transpose the squares of eight by eight numbers which stand side by side in the registers ``rows[0]`` to
    ``rows[7]``."""
    code = ""
    for step in (4, 2, 1):
        low = ", ".join(str(j if not j & step else width + (j ^ step)) for j in range(width))
        high = ", ".join(str(j ^ step if not j & step else width + j) for j in range(width))
        for i in range(EIGHT):
            if not i & step:
                a, b = f"{rows}[{i}]", f"{rows}[{i + step}]"
                code += (
                    f" {{ const simd p = {a}, q = {b};"
                    f" {a} = __builtin_shufflevector(p, q, {low}); {b} = __builtin_shufflevector(p, q, {high}); }}"
                )
    return code


def eight_access(m: types.SimpleNamespace, kind, apart: int) -> tuple:
    """Functions ``fetch(array, at, index, out)`` and ``deposit(array, at, index, given)`` for a structure of eight lanes.

    Number i of the item of a lane stands at ``at + apart * index + i``.

    Args:
        m: the namespace.
        kind: the structure.
        apart: distance of items.
    """
    width, real = m.width, m.real
    number = C_NAME[real]
    if width == 1:

        @wp.func_native(
            f"const {number}* const from = array.data + at + {apart} * index;"
            f" {number}* const to = ({number}*)&out; for (int i = 0; i < {EIGHT}; ++i) to[i] = from[i];"
        )
        def fetch_one(array: wp.array[real], at: int, index: int, out: wp.ref[kind]):
            """Reads the numbers of an item."""

        @wp.func_native(
            f"{number}* const to = array.data + at + {apart} * index;"
            f" const {number}* const from = (const {number}*)&given; for (int i = 0; i < {EIGHT}; ++i) to[i] = from[i];"
        )
        def deposit_one(array: wp.array[real], at: int, index: int, given: wp.ref[kind]):
            """Writes the numbers of an item."""

        return fetch_one, deposit_one

    eight = (
        f"typedef {number} eight __attribute__((ext_vector_type({EIGHT}), aligned({4 if real is wp.float32 else 8})));"
    )
    # hides the indices from the compiler, which otherwise multiplies them in a register and takes them out of it one by one
    head = f"{simd_types(width, real)} {eight} alignas(64) int copied[{width}]; __builtin_memcpy(copied, &index, sizeof(copied));"
    head += f' const int* place = copied; asm("" : "+r"(place)); simd r[{EIGHT}];'
    squares = range(0, width, EIGHT)

    def item(k: int) -> str:
        return f"array.data + (at + {apart} * (size_t)place[{k}])"

    def all_of(n: int) -> str:
        return ", ".join(map(str, range(n)))

    take = put = ""
    for k in range(EIGHT):
        pieces = [f"*(const eight*)({item(s + k)})" for s in squares]
        take += f" r[{k}] = {pieces[0] if width == EIGHT else f'__builtin_shufflevector({pieces[0]}, {pieces[1]}, {all_of(width)})'};"
        for s in squares:
            piece = ", ".join(str(s + i) for i in range(EIGHT))
            put += f" *(eight*)({item(s + k)}) = __builtin_shufflevector(r[{k}], r[{k}], {piece});"

    @wp.func_native(
        f"{head} {take} {_transposed('r', width)} simd* const to = (simd*)&out;"
        f" for (int i = 0; i < {EIGHT}; ++i) to[i] = r[i];"
    )
    def fetch(array: wp.array[real], at: int, index: m.ints, out: wp.ref[kind]):
        """Reads the numbers of the items of all lanes."""

    @wp.func_native(
        f"{head} const simd* const from = (const simd*)&given; for (int i = 0; i < {EIGHT}; ++i) r[i] = from[i];"
        f" {_transposed('r', width)} {put}"
    )
    def deposit(array: wp.array[real], at: int, index: m.ints, given: wp.ref[kind]):
        """Writes the numbers of the items of all lanes."""

    return fetch, deposit
