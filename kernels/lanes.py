"""Lanes: one number per world of a block, and the operations on them.

On a CPU a lane is ``wp.types.vector(width, real)`` and each operation is one SIMD instruction (a native snippet over
clang's ``ext_vector_type``). At width 1 (a GPU thread) a lane is a plain scalar and each operation is an
ordinary Warp function. Programs do not depend on the width.

Accuracy: ``add`` to ``sqrt`` are correctly rounded; ``fma`` and ``fnma`` round once where the processor can, else twice.
``sin`` and ``cos`` have an absolute error below 1.2e-7 (float32) and 3e-16 (float64) for every finite angle, by the
Cephes polynomials (S. Moshier) after a three-term Cody-Waite reduction up to |x| = 8192 and the scalar library beyond.
``atan2`` (also Cephes) has an error of at most three units in the last place; ``exp`` and ``log`` call the scalar library
for each lane, with an error of at most two. Programs do not depend on the sign of a zero.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels import registration
from newton_like.kernels.simd import (
    C_NAME,
    FUSE,
    atan2_code,
    register_code,
    shrink_code,
    simd_types,
    sincos_code,
    valid_code,
)


def _native(width: int, real, statements: str, *names: str) -> str:
    """C++ body that loads the lanes `names` into registers, runs `statements` and returns the register ``out``."""
    load = "".join(f"simd {n}; __builtin_memcpy(&{n}, &{n}_, sizeof(simd));" for n in names)
    store = f"decltype({names[0]}_) lane_out; __builtin_memcpy(&lane_out, &out, sizeof(simd)); return lane_out;"
    return f"{FUSE}{simd_types(width, real)}{load} simd out; {statements} {store}"


@cache
def lane_math(width: int, real=wp.float32) -> types.SimpleNamespace:
    """The namespace ``m`` of lanes of `width` worlds and scalar type `real` (``wp.float32`` or ``wp.float64``)."""
    if width == 1:
        return _scalar_math(real)
    return _simd_math(width, real)


def extended(m: types.SimpleNamespace, layers: tuple) -> types.SimpleNamespace:
    """The namespace `m` with the programs of further layers. `kernels.programs.assemble` also checks that names are unique."""
    for layer in layers:
        made = layer(m)
        made.pop("m", None)
        m = types.SimpleNamespace(**{**vars(m), **made})
    return m


def _listed_math(width: int, real, lane) -> tuple:
    """Products and sums of rows of n lanes from y on with the lanes z + code[at], z + code[at + 1], ..."""
    number = C_NAME[real]
    if width == 1:
        head = f"typedef {number} simd; {number}* const M = mem.data + t; const size_t S = mem.shape[1];"
    else:
        head = f"{FUSE}{simd_types(width, real)} simd* const M = (simd*)mem.data; const size_t S = 1;"
    head += " const simd* const Y = M + y * S; simd* const Z = M + z * S; const int* const c = code.data + at;"

    def taken(*names: str) -> str:
        return register_code(width, **{name: f"{name}_" for name in names})

    given = "return u;"
    if width > 1:
        given = f"wp::vec_t<{width}, {number}> r; __builtin_memcpy(&r, &u, sizeof(simd)); return r;"

    @wp.func_native(
        f"{head} simd u = 0, w = 0; int k = 0;"
        " for (; k + 1 < n; k += 2) { u = u + Y[k * S] * Z[c[k] * S]; w = w + Y[(k + 1) * S] * Z[c[k + 1] * S]; }"
        " if (k < n) u = u + Y[k * S] * Z[c[k] * S]; u = u + w;"
        f" {given}"
    )
    def listed_dot(mem: wp.array2d[lane], t: int, y: int, z: int, code: wp.array[int], at: int, n: int) -> lane:
        """The product of the row with the lanes."""

    @wp.func_native(f"{head} {taken('p')} for (int k = 0; k < n; ++k) Z[c[k] * S] = Z[c[k] * S] + Y[k * S] * p;")
    def listed_add(mem: wp.array2d[lane], t: int, y: int, p_: lane, z: int, code: wp.array[int], at: int, n: int):
        """Adds p times the row to the lanes."""

    @wp.func_native(
        f"{head} {taken('p', 'q', 'r')} const simd* const Y2 = Y + stride * S; const simd* const Y3 = Y2 + stride * S;"
        " for (int k = 0; k < n; ++k)"
        " Z[c[k] * S] = ((Z[c[k] * S] + Y[k * S] * p) + Y2[k * S] * q) + Y3[k * S] * r;"
    )
    def listed_add3(
        mem: wp.array2d[lane], t: int, y: int, stride: int, p_: lane, q_: lane, r_: lane, z: int, code: wp.array[int], at: int, n: int
    ):  # fmt: skip
        """Adds p, q and r times three rows, `stride` apart, to the lanes."""

    return listed_dot, listed_add, listed_add3


def _scalar_math(real) -> types.SimpleNamespace:
    lane, memory = real, wp.array2d[real]
    func, shared, struct, width, varied = registration.func, registration.shared, wp.struct, 1, False

    @func
    def fill(a: real) -> lane:
        return a

    @func
    def add(a: lane, b: lane) -> lane:
        return a + b

    @func
    def sub(a: lane, b: lane) -> lane:
        return a - b

    @func
    def mul(a: lane, b: lane) -> lane:
        return a * b

    @func
    def div(a: lane, b: lane) -> lane:
        return a / b

    @func
    def neg(a: lane) -> lane:
        return -a

    @func
    def fma(a: lane, b: lane, c: lane) -> lane:
        return a * b + c

    @func
    def fnma(a: lane, b: lane, c: lane) -> lane:
        return c - a * b

    @func
    def detach(a: lane) -> lane:
        """Returns `a`, as a constant in reverse mode."""
        return a

    @func
    def rcp(a: lane) -> lane:
        return real(1.0) / a

    @func
    def sqrt(a: lane) -> lane:
        return wp.sqrt(a)

    @func
    def shrink(bound: lane, square: lane) -> lane:
        length = wp.sqrt(square)
        return wp.where(bound < length, bound / length, real(1.0))

    @func
    def floor(a: lane) -> lane:
        return wp.floor(a)

    @func
    def smaller(a: lane, b: lane) -> lane:
        return wp.where(a < b, a, b)

    @func
    def larger(a: lane, b: lane) -> lane:
        return wp.where(a > b, a, b)

    @func
    def where_lt(a: lane, b: lane, x: lane, y: lane) -> lane:
        return wp.where(a < b, x, y)

    @func
    def any_lt(a: lane, b: lane) -> bool:
        return a < b

    @func
    def sin(a: lane) -> lane:
        return wp.sin(a)

    @func
    def cos(a: lane) -> lane:
        return wp.cos(a)

    @func
    def atan2(a: lane, b: lane) -> lane:
        return wp.atan2(a, b)

    @func
    def exp(a: lane) -> lane:
        return wp.exp(a)

    @func
    def log(a: lane) -> lane:
        return wp.log(a)

    # Warp's own indexing supports negative indices and any strides, which takes a dozen instructions: most of a GPU's work here
    @wp.func_native("return mem.data[(size_t)i * mem.shape[1] + t];")
    def get(mem: wp.array2d[lane], i: int, t: int) -> lane: ...

    @wp.func_native("mem.data[(size_t)i * mem.shape[1] + t] = x;")
    def put(mem: wp.array2d[lane], i: int, t: int, x: lane): ...

    # row at + stride * index, where each world has an index of its own: an integer, not negative
    @wp.func_native("return mem.data[(size_t)(at + stride * (int)index) * mem.shape[1] + t];")
    def gather(mem: wp.array2d[lane], at: int, stride: int, index: lane, t: int) -> lane: ...

    @wp.func_native("mem.data[(size_t)(at + stride * (int)index) * mem.shape[1] + t] = x;")
    def scatter(mem: wp.array2d[lane], at: int, stride: int, index: lane, t: int, x: lane): ...

    # number at + index of a table, where each world has an index of its own: an integer, not negative
    @wp.func_native("return table.data[at + (int)index];")
    def look_up(table: wp.array[real], at: int, index: lane) -> lane: ...

    @wp.func_native(
        "if (varies) { const char* own = (const char*)varying.data + b * (size_t)varying.strides[0];"
        f" return *(const {C_NAME[real]}*)(own + i * (size_t)varying.strides[1]); }} return uniform.data[i];"
    )
    def param(uniform: wp.array[real], varying: wp.array2d[lane], varies: int, b: int, i: int) -> lane: ...

    @func
    def any_selected(mask: wp.array[bool], start: int, stride: int, b: int, count: int) -> bool:
        return mask[start + b * stride]

    @func
    def fma_run(mem: wp.array2d[lane], t: int, code: wp.array[int], at: int, n: int):
        for k in range(n):
            i = at + 4 * k
            mem[code[i], t] = mem[code[i + 1], t] * mem[code[i + 2], t] + mem[code[i + 3], t]

    @func
    def fnma_run(mem: wp.array2d[lane], t: int, code: wp.array[int], at: int, n: int):
        for k in range(n):
            i = at + 4 * k
            mem[code[i], t] = mem[code[i + 3], t] - mem[code[i + 1], t] * mem[code[i + 2], t]

    listed_dot, listed_add, listed_add3 = _listed_math(width, real, lane)

    @func
    def recall(mem: wp.array2d[lane], at: int, first: int, t: int, kept: wp.array2d[lane], b: int, n: int):
        for i in range(n):
            mem[at + i, t] = kept[b, first + i]

    @func
    def keep(mem: wp.array2d[lane], at: int, first: int, t: int, kept: wp.array2d[lane], b: int, n: int):
        for i in range(n):
            kept[b, first + i] = mem[at + i, t]

    return types.SimpleNamespace(**locals())


def _simd_math(width: int, real) -> types.SimpleNamespace:
    lane = wp.types.vector(width, real)
    memory = wp.array2d[lane]
    func, shared, struct, varied = registration.func, registration.shared, wp.struct, False

    vector = f"wp::vec_t<{width}, {C_NAME[real]}>"

    def code(statements: str, *names: str) -> str:
        return _native(width, real, statements, *names)

    def each(function: str) -> str:
        return f"for (int i = 0; i < {width}; ++i) out[i] = {function};"

    @wp.func_native(
        f"{simd_types(width, real)} const simd out = simd(a); {vector} r; __builtin_memcpy(&r, &out, sizeof(simd)); return r;"
    )
    def fill(a: real) -> lane: ...

    @wp.func_native(code("out = a + b;", "a", "b"))
    def add(a_: lane, b_: lane) -> lane: ...

    @wp.func_native(code("out = a - b;", "a", "b"))
    def sub(a_: lane, b_: lane) -> lane: ...

    @wp.func_native(code("out = a * b;", "a", "b"))
    def mul(a_: lane, b_: lane) -> lane: ...

    @wp.func_native(code("out = a / b;", "a", "b"))
    def div(a_: lane, b_: lane) -> lane: ...

    @wp.func_native(code("out = -a;", "a"))
    def neg(a_: lane) -> lane: ...

    @wp.func_native(code("out = a * b + c;", "a", "b", "c"))
    def fma(a_: lane, b_: lane, c_: lane) -> lane: ...

    @wp.func_native(code("out = c - a * b;", "a", "b", "c"))
    def fnma(a_: lane, b_: lane, c_: lane) -> lane: ...

    @wp.func_native(code("out = a;", "a"))
    def detach(a_: lane) -> lane: ...

    @wp.func_native(code("out = 1 / a;", "a"))
    def rcp(a_: lane) -> lane: ...

    @wp.func_native(code("out = __builtin_elementwise_sqrt(a);", "a"))
    def sqrt(a_: lane) -> lane: ...

    @wp.func_native(code(shrink_code(width, real), "bound", "square"))
    def shrink(bound_: lane, square_: lane) -> lane: ...

    @wp.func_native(code("out = __builtin_elementwise_floor(a);", "a"))
    def floor(a_: lane) -> lane: ...

    @wp.func_native(code("out = a < b ? a : b;", "a", "b"))
    def smaller(a_: lane, b_: lane) -> lane: ...

    @wp.func_native(code("out = a > b ? a : b;", "a", "b"))
    def larger(a_: lane, b_: lane) -> lane: ...

    @wp.func_native(code("out = a < b ? x : y;", "a", "b", "x", "y"))
    def where_lt(a_: lane, b_: lane, x_: lane, y_: lane) -> lane: ...

    @wp.func_native(
        f"{simd_types(width, real)} simd a, b; __builtin_memcpy(&a, &a_, sizeof(simd));"
        f" __builtin_memcpy(&b, &b_, sizeof(simd)); return __builtin_reduce_or((simdi)(a < b)) != 0;"
    )
    def any_lt(a_: lane, b_: lane) -> bool: ...

    sincos = sincos_code(width, real, "a", "sine", "cosine")

    @wp.func_native(code(f"simd sine, cosine; {sincos} out = sine;", "a"))
    def sin(a_: lane) -> lane: ...

    @wp.func_native(code(f"simd sine, cosine; {sincos} out = cosine;", "a"))
    def cos(a_: lane) -> lane: ...

    @wp.func_native(code(atan2_code(width, real), "y", "x"))
    def atan2(y_: lane, x_: lane) -> lane: ...

    @wp.func_native(code(each("wp::exp(a[i])"), "a"))
    def exp(a_: lane) -> lane: ...

    @wp.func_native(code(each("wp::log(a[i])"), "a"))
    def log(a_: lane) -> lane: ...

    # A CPU worker has its own memory, so the index t is not used and rows are contiguous.
    @wp.func_native("return mem.data[i];")
    def get(mem: wp.array2d[lane], i: int, t: int) -> lane: ...

    @wp.func_native("mem.data[i] = x;")
    def put(mem: wp.array2d[lane], i: int, t: int, x: lane): ...

    # row at + stride * index, where each world has an index of its own: an integer, not negative
    rows_of = f"{C_NAME[real]}* row = ({C_NAME[real]}*)(mem.data + at); const int step = stride * {width};"

    @wp.func_native(
        f"{rows_of} {vector} r; for (int k = 0; k < {width}; ++k) r[k] = row[step * (int)index[k] + k]; return r;"
    )
    def gather(mem: wp.array2d[lane], at: int, stride: int, index: lane, t: int) -> lane: ...

    @wp.func_native(f"{rows_of} for (int k = 0; k < {width}; ++k) row[step * (int)index[k] + k] = x[k];")
    def scatter(mem: wp.array2d[lane], at: int, stride: int, index: lane, t: int, x: lane): ...

    # number at + index of a table, where each world has an index of its own: an integer, not negative
    @wp.func_native(
        f"const {C_NAME[real]}* row = table.data + at; {vector} r;"
        f" for (int k = 0; k < {width}; ++k) r[k] = row[(int)index[k]]; return r;"
    )
    def look_up(table: wp.array[real], at: int, index: lane) -> lane: ...

    @wp.func_native(
        f"if (varies) return varying.data[(size_t)b * varying.shape[1] + i]; {simd_types(width, real)}"
        f" const simd out = simd(uniform.data[i]); {vector} r; __builtin_memcpy(&r, &out, sizeof(simd)); return r;"
    )
    def param(uniform: wp.array[real], varying: wp.array2d[lane], varies: int, b: int, i: int) -> lane: ...

    last = f"const int valid = {valid_code(width)};"

    @wp.func_native(
        f"{last} bool found = false;"
        f" for (int k = 0; k < valid; ++k) found |= mask.data[start + stride * (b * {width} + k)]; return found;"
    )
    def any_selected(mask: wp.array[bool], start: int, stride: int, b: int, count: int) -> bool: ...

    # n operations: each has four integers in `code`, from `at` on: the row of the result and the rows of three operands
    run = f"{FUSE}{simd_types(width, real)} simd* M = (simd*)mem.data; const int* c = code.data + at;"
    run += " for (int k = 0; k < n; ++k, c += 4) M[c[0]] ="

    @wp.func_native(f"{run} M[c[1]] * M[c[2]] + M[c[3]];")
    def fma_run(mem: wp.array2d[lane], t: int, code: wp.array[int], at: int, n: int): ...

    @wp.func_native(f"{run} M[c[3]] - M[c[1]] * M[c[2]];")
    def fnma_run(mem: wp.array2d[lane], t: int, code: wp.array[int], at: int, n: int): ...

    listed_dot, listed_add, listed_add3 = _listed_math(width, real, lane)

    @wp.func_native(
        "__builtin_memcpy(mem.data + at, kept.data + (size_t)b * kept.shape[1] + first, n * sizeof(*mem.data));"
    )
    def recall(mem: wp.array2d[lane], at: int, first: int, t: int, kept: wp.array2d[lane], b: int, n: int): ...

    @wp.func_native(
        "__builtin_memcpy(kept.data + (size_t)b * kept.shape[1] + first, mem.data + at, n * sizeof(*mem.data));"
    )
    def keep(mem: wp.array2d[lane], at: int, first: int, t: int, kept: wp.array2d[lane], b: int, n: int): ...

    # the loops over rows of `kernels.spatial`: those that Warp writes take longer than their work
    in_memory = f"{FUSE}{simd_types(width, real)} simd* const M = (simd*)mem.data;"
    each_row = "for (int i = 0; i < n; ++i)"

    @wp.func_native(f"{in_memory} {each_row} M[at + i] = simd(0);")
    def clear(t: int, at: int, n: int, mem: memory): ...

    @wp.func_native(f"{in_memory} {each_row} M[to + i] = M[at + i];")
    def copy(t: int, to: int, at: int, n: int, mem: memory): ...

    @wp.func_native(f"{in_memory} {each_row} M[to + i] = M[a + i] + M[b + i];")
    def put_sums(t: int, to: int, a: int, b: int, n: int, mem: memory): ...

    @wp.func_native(
        f"{in_memory} simd x; __builtin_memcpy(&x, &factor, sizeof(simd)); {each_row} M[at + i] = x * M[at + i];"
    )
    def scale_rows(t: int, at: int, n: int, factor: lane, mem: memory): ...

    @wp.func_native(
        f"{in_memory} simd sum = 0; {each_row} {{ const simd d = M[a + i] - M[b + i]; sum = d * d + sum; }}"
        f" {vector} out; __builtin_memcpy(&out, &sum, sizeof(simd)); return out;"
    )
    def squared_distance(t: int, a: int, b: int, n: int, mem: memory) -> lane: ...

    return types.SimpleNamespace(**locals())
