"""Groups of eight numbers of an item that stand side by side in memory, and are read and written together.

A structure of eight lanes is made of the eight numbers of each lane's item: squares of eight by eight numbers are transposed in registers.
This takes fewer instructions than to gather each lane number by number.
"""

import types

import warp as wp
from newton_like.kernels.simd import C_NAME, simd_types

EIGHT = 8


def _transposed(rows: str) -> str:
    """C++ statements that transpose the square of the registers ``rows[0]`` to ``rows[7]``."""
    code = ""
    for step in (4, 2, 1):
        low = ", ".join(str(j if not j & step else EIGHT + (j ^ step)) for j in range(EIGHT))
        high = ", ".join(str(j ^ step if not j & step else EIGHT + j) for j in range(EIGHT))
        for i in range(EIGHT):
            if not i & step:
                a, b = f"{rows}[{i}]", f"{rows}[{i + step}]"
                code += (
                    f" {{ const eight p = {a}, q = {b};"
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
    head = f"{simd_types(width, real)} {eight}"
    squares = f"for (int s = 0; s < {width}; s += {EIGHT})"

    @wp.func_native(
        f"{head} {number}* const to = ({number}*)&out; eight r[{EIGHT}]; {squares} {{"
        f" for (int k = 0; k < {EIGHT}; ++k) r[k] = *(const eight*)(array.data + at + {apart} * index[s + k]);"
        f"{_transposed('r')}"
        f" for (int i = 0; i < {EIGHT}; ++i) *(eight*)(to + {width} * i + s) = r[i]; }}"
    )
    def fetch(array: wp.array[real], at: int, index: m.ints, out: wp.ref[kind]):
        """Reads the numbers of the items of all lanes."""

    @wp.func_native(
        f"{head} const {number}* const from = (const {number}*)&given; eight r[{EIGHT}]; {squares} {{"
        f" for (int i = 0; i < {EIGHT}; ++i) r[i] = *(const eight*)(from + {width} * i + s);"
        f"{_transposed('r')}"
        f" for (int k = 0; k < {EIGHT}; ++k) *(eight*)(array.data + at + {apart} * index[s + k]) = r[k]; }}"
    )
    def deposit(array: wp.array[real], at: int, index: m.ints, given: wp.ref[kind]):
        """Writes the numbers of the items of all lanes."""

    return fetch, deposit
