"""Lanes over items of any world: numbers of bodies, joints and contacts that stand at given places of flat arrays.

A lane has an item (a body, a joint, a contact). The numbers of one kind follow each other in memory, so that items with consecutive indices
are read and written as one SIMD register; other items are gathered one by one.
"""

import types

import warp as wp
from newton_like.kernels.simd import C_NAME, simd_types


def access_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the type ``ints`` of an index for each lane, and functions that read and write numbers at indices."""
    real, lane, width = m.real, m.lane, m.width
    if width == 1:
        return _scalar_access(real)
    ints = wp.types.vector(width, int)
    vector, whole = f"wp::vec_t<{width}, {C_NAME[real]}>", f"wp::vec_t<{width}, int>"

    order = ", ".join(map(str, range(width)))
    masks = (
        f"typedef bool simdb __attribute__((ext_vector_type({width})));"
        f" typedef int wholes __attribute__((ext_vector_type({width}), aligned(4))); const wholes order = {{{order}}};"
    )
    some = f"{masks} const simdb some = __builtin_convertvector(order < valid, simdb);"
    out = f"{whole} r; __builtin_memcpy(&r, &out, sizeof(out)); return r;"

    @wp.func_native(f"{some} const wholes out = __builtin_masked_load(some, list.data + start, wholes(rest)); {out}")
    def listed(list: wp.array[int], start: int, valid: int, rest: int) -> ints:
        """The `valid` entries of a list from `start` on, then `rest`."""

    @wp.func_native(f"{whole} r; for (int k = 0; k < {width}; ++k) r[k] = start + k; return r;")
    def counted(start: int) -> ints:
        """start, start + 1, ..."""

    simd = simd_types(width, real)

    @wp.func_native(
        f"{simd} simd out; if (first >= 0) __builtin_memcpy(&out, array.data + at + first, sizeof(simd));"
        f" else for (int k = 0; k < {width}; ++k) out[k] = array.data[at + index[k]];"
        f" {vector} r; __builtin_memcpy(&r, &out, sizeof(simd)); return r;"
    )
    def fetch(array: wp.array[real], at: int, first: int, index: ints) -> lane:
        """The numbers at `at` plus the indices; `first`: the first index where they are consecutive, else -1."""

    @wp.func_native(
        f"{simd} simd out; __builtin_memcpy(&out, array.data + at, sizeof(simd));"
        f" {vector} r; __builtin_memcpy(&r, &out, sizeof(simd)); return r;"
    )
    def fetch_run(array: wp.array[real], at: int) -> lane:
        """The numbers from `at` on."""

    @wp.func_native("__builtin_memcpy(array.data + at, &x, sizeof(x));")
    def deposit_run(array: wp.array[real], at: int, x: lane):
        """Writes the numbers from `at` on."""

    @wp.func_native(
        "if (first >= 0) __builtin_memcpy(array.data + at + first, &x, sizeof(x));"
        " else for (int k = 0; k < valid; ++k) array.data[at + index[k]] = x[k];"
    )
    def deposit(array: wp.array[real], at: int, first: int, index: ints, valid: int, x: lane):
        """Writes the numbers of the first `valid` lanes at `at` plus the indices; `first`: as of ``fetch``."""

    @wp.func_native(
        f"{simd} {some} simd in; __builtin_memcpy(&in, &x, sizeof(simd)); __builtin_masked_store(some, in, array.data + at);"
    )
    def deposit_some(array: wp.array[real], at: int, valid: int, x: lane):
        """Writes the first `valid` numbers from `at` on."""

    @wp.func_native(
        f"{simd} {masks} simd chosen; __builtin_memcpy(&chosen, &mask, sizeof(simd));"
        " const simdb some = __builtin_convertvector(order < valid, simdb) & __builtin_convertvector(chosen > 0, simdb);"
        f" const wholes out = __builtin_masked_load(some, list.data + start, wholes(rest)); {out}"
    )
    def listed_where(list: wp.array[int], start: int, valid: int, rest: int, mask: lane) -> ints:
        """As ``listed``, with `rest` where the mask is not positive."""

    return dict(
        ints=ints, listed=listed, listed_where=listed_where, counted=counted, fetch=fetch, fetch_run=fetch_run,
        deposit=deposit, deposit_run=deposit_run, deposit_some=deposit_some,
    )  # fmt: skip


def _scalar_access(real) -> dict:
    @wp.func
    def listed(list: wp.array[int], start: int, valid: int, rest: int) -> int:
        """The entry of a list at `start`."""
        return list[start]

    @wp.func
    def listed_where(list: wp.array[int], start: int, valid: int, rest: int, mask: real) -> int:
        return wp.where(mask > real(0.0), list[start], rest)

    @wp.func
    def counted(start: int) -> int:
        return start

    @wp.func
    def fetch(array: wp.array[real], at: int, first: int, index: int) -> real:
        return array[at + wp.where(first >= 0, first, index)]

    @wp.func
    def deposit(array: wp.array[real], at: int, first: int, index: int, valid: int, x: real):
        array[at + wp.where(first >= 0, first, index)] = x

    @wp.func
    def fetch_run(array: wp.array[real], at: int) -> real:
        return array[at]

    @wp.func
    def deposit_run(array: wp.array[real], at: int, x: real):
        array[at] = x

    @wp.func
    def deposit_some(array: wp.array[real], at: int, valid: int, x: real):
        array[at] = x

    return dict(
        ints=int, listed=listed, listed_where=listed_where, counted=counted, fetch=fetch, fetch_run=fetch_run,
        deposit=deposit, deposit_run=deposit_run, deposit_some=deposit_some,
    )  # fmt: skip
