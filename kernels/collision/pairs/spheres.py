"""Bounding spheres of pairs of shapes, one pair after the other. The code is native: the pairs of a robot are many, and few are near."""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import BOUND, REACH, SHAPE_PLACE
from newton_like.kernels.simd import C_NAME, FUSE, simd_types
from newton_like.kernels.tree import PAIR_TABLE, SHAPE_TABLE

SLACK = 1.00001
"""On squares of distances, for rounding errors."""


def _code(width: int, real, found: str) -> str:
    """C++ statements for each pair from p on, before `end`, that is close in some world: `found`."""
    number = C_NAME[real]
    if width == 1:
        head = f"typedef {number} simd; typedef {number} real_t; const {number}* const M = mem.data + t; const size_t S = mem.shape[1];"
        some = "({})"
    else:
        head = f"{FUSE}{simd_types(width, real)} const simd* const M = (const simd*)mem.data; const size_t S = 1;"
        some = "(__builtin_reduce_or((simdi)({})) != 0)"

    def moved(sign: str, body: str) -> str:
        return "".join(
            f"{k} = {k} {sign} M[(L.origin + 3 * T.forest.data[{body}] + {i}) * S];" for i, k in enumerate("xyz")
        )

    way = "".join(f"simd {k} = second[{i} * S] - first[{i} * S];" for i, k in enumerate("xyz"))
    return f"""{{ {head} const int* const shapes = T.pair_table.data; const int* const pairs = shapes + {SHAPE_TABLE} * T.shapes;
        const bool several = T.trees > 1; const simd* const places = M + L.shape_place * S;
        for (; p < end; ++p) {{
            const int one = pairs[{PAIR_TABLE} * p], two = pairs[{PAIR_TABLE} * p + 1];
            const int k = shapes[{SHAPE_TABLE} * one], j = shapes[{SHAPE_TABLE} * two];
            const simd* const first = places + {SHAPE_PLACE} * one * S;
            const simd* const second = places + {SHAPE_PLACE} * two * S;
            {way}
            // places of shapes on bodies are those about the origins of their trees
            if (k < 0 || j < 0 || (several && T.forest.data[k] != T.forest.data[j])) {{
                if (j >= 0) {{ {moved("+", "j")} }}
                if (k >= 0) {{ {moved("-", "k")} }}
            }}
            const simd bound = (first[{BOUND} * S] + first[{REACH} * S]) + (second[{BOUND} * S] + second[{REACH} * S]);
            if ({some.format(f"x * x + (y * y + z * z) < (bound * bound) * real_t({SLACK})")}) {{ {found} }}
        }}"""


def sphere_bounds(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``next_close_pair`` and, for lanes of several worlds, ``list_close_pairs``."""
    if not hasattr(m, "width"):
        return {"next_close_pair": None}  # a stage of a specialised step does not look for pairs

    @wp.func_native(_code(m.width, m.real, "return p;") + " return end; }")
    def next_close_pair(t: int, p: int, end: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory) -> int:
        """The first pair from p on, before `end`, whose bounding spheres, with their reach, overlap in some world of the block; otherwise
        `end`."""

    if m.width == 1:
        return {"next_close_pair": next_close_pair}
    listing = f"int p = 0, n = 0; const int end = T.pairs; int* const list = active.data + at; {_code(m.width, m.real, 'list[n++] = p;')}"

    @wp.func_native(listing + " return n; }")
    def list_close_pairs(
        t: int, at: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """Lists all these pairs in ``active``, from number `at` on. Returns how many they are."""

    return {"next_close_pair": next_close_pair, "list_close_pairs": list_close_pairs}
