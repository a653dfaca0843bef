"""C++ source text for SIMD registers of several worlds: types, sine, cosine and arctangent, and copies between arrays and lanes."""

import os
import platform

import warp as wp

C_NAME = {wp.float32: "float", wp.float64: "double"}

# sin and cos on [-pi/4, pi/4]: Cephes sinf.c / sin.c. pi/2 in three parts with trailing zeros.
_SINCOS = {
    wp.float32: dict(
        integer="int",
        top=31,
        magic="12582912.0f",
        parts=("1.5703125f", "4.837512969970703125e-4f", "7.549789948768648e-8f"),
        sin=("-1.9515295891e-4f", "8.3321608736e-3f", "-1.6666654611e-1f"),
        cos=("2.443315711809948e-5f", "-1.388731625493765e-3f", "4.166664568298827e-2f"),
    ),
    wp.float64: dict(
        integer="long long",
        top=63,
        magic="6755399441055744.0",
        parts=("1.570796251296997", "7.549789415861596e-8", "5.390302858158119e-15"),
        sin=(
            "1.58962301576546568060e-10",
            "-2.50507477628578072866e-8",
            "2.75573136213857245213e-6",
            "-1.98412698295895385996e-4",
            "8.33333333332211858878e-3",
            "-1.66666666666666307295e-1",
        ),
        cos=(
            "-1.13585365213876817300e-11",
            "2.08757008419747316778e-9",
            "-2.75573141792967388112e-7",
            "2.48015872888517179954e-5",
            "-1.38888888888730564116e-3",
            "4.16666666666665929218e-2",
        ),
    ),
}


# atan on [-tan(pi/8), tan(pi/8)] (float32) and [-0.66, 0.66]: u + u z numerator(z) / denominator(z); Cephes atanf.c / atan.c.
_ATAN = {
    wp.float32: dict(
        near="0.4142135623730950f",
        range=("1e-37f", "1e37f"),
        quarter=("0.78539818525314331f", "-2.1855694e-8f"),
        numerator=("8.05374449538e-2f", "-1.38776856032e-1f", "1.99777106478e-1f", "-3.33329491539e-1f"),
        denominator=(),
    ),
    wp.float64: dict(
        near="0.66",
        range=("1e-307", "1e307"),
        quarter=("0.78539816339744828", "3.0616169978683830e-17"),
        numerator=(
            "-8.750608600031904122785e-1",
            "-1.615753718733365076637e1",
            "-7.500855792314704667340e1",
            "-1.228866684490136173410e2",
            "-6.485021904942025371773e1",
        ),
        denominator=(
            "1.0",
            "2.485846490142306297962e1",
            "1.650270098316988542046e2",
            "4.328810604912902668951e2",
            "4.853903996359136964868e2",
            "1.945506571482613964425e2",
        ),
    ),
}


# fuses products and sums of one expression into one instruction if the processor has it
FUSE = "\n#pragma clang fp contract(on)\n"

ONE_BY_ONE = '_Pragma("clang loop vectorize(disable)")'
"""Before a C++ loop with few rounds: keeps clang from writing a second loop over vectors, which would take longer."""


GENERAL_FLAGS = "-march=native -ffp-contract=off"
"""Compiler flags of general kernels on a CPU. Leaving out Warp's own inlining thresholds halves the compile time. Warp precompiles its
header for each set of flags, which takes seconds."""


def compiler_flags(flags: str, width: int) -> str:
    """Compiler flags of kernels over lanes of `width` worlds. Without the flag that is added, clang splits vectors of 512 bits into halves
    for processors of Intel; loops over numbers of one world are slower with it."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return f"-mprefer-vector-width=512 {flags}" if width > 1 and x86 else flags


QUICK_COMPILATION = os.environ.get("NEWTON_LIKE_QUICK_COMPILATION") == "1"
"""For tests on machines without CUDA: whether kernels are compiled with less optimisation. Compilation of most kernels takes less than
half the time, and their runs take several times as long. Results have the same bits, as far as kernels say which operations are fused."""

if QUICK_COMPILATION:
    # Flags of vector code have no effect at low levels, so one set of flags serves all kernels; Warp precompiles its header for each set.
    wp.config.optimization_level = 0
    wp.config.cpu_compiler_flags = compiler_flags(GENERAL_FLAGS, 8)


CPU_BLOCK = 1
"""Threads of a block, as Warp's launches on a CPU have them. Warp names a kernel by a hash of all that it calls, which takes up to a second
for a large one, and hashes it again where the block of the launch is another."""


def module_options(flags: str, width: int, level: int | None = None, quick: int = 1) -> dict:
    """Options of the module of a kernel over lanes of `width` worlds.

    Args:
        flags: of the compiler for CPUs.
        width: see above.
        level: of optimisation, or None for Warp's default.
        quick: level of optimisation under `QUICK_COMPILATION`. At level 0, runs take several times as long as at level 1.
    """
    if QUICK_COMPILATION:
        return {"optimization_level": quick, "block_dim": CPU_BLOCK}
    return {"cpu_compiler_flags": compiler_flags(flags, width), "optimization_level": level, "block_dim": CPU_BLOCK}


COPYING = module_options(GENERAL_FLAGS, 8, quick=0)
"""Options of kernels that copy, compare and count: those of general kernels, so that Warp precompiles its header once for both."""


def simd_types(width: int, real) -> str:
    """C++ typedefs ``simd`` and ``simdi`` of registers of `width` numbers and `width` integers."""
    attribute = f"__attribute__((ext_vector_type({width}), aligned({4 if real is wp.float32 else 8})))"
    typedefs = f"typedef {C_NAME[real]} real_t; typedef {C_NAME[real]} simd {attribute};"
    return f"{typedefs} typedef {_SINCOS[real]['integer']} simdi {attribute};"


def register_code(width: int, **sources: str) -> str:
    """C++ statements that set registers from arguments of a native function. At width 1 both are plain numbers, for GPUs too."""
    if width == 1:
        return "".join(f"const simd {name} = {source};" for name, source in sources.items())
    return "".join(f"simd {name}; __builtin_memcpy(&{name}, &{x}, sizeof(simd));" for name, x in sources.items())


def _horner(coefficients) -> str:
    """C++ expression: a polynomial of the register z."""
    text = f"simd({coefficients[0]})"
    for x in coefficients[1:]:
        text = f"({text} * z + {x})"
    return text


def sincos_code(width: int, real, argument: str, sine: str, cosine: str) -> str:
    """C++ statements that set the registers `sine` and `cosine` from the register `argument`."""
    k = _SINCOS[real]
    p0, p1, p2 = k["parts"]
    return f"""{{
{FUSE}const simd x = {argument};
const simd n = (x * real_t(0.63661977236758134308) + {k["magic"]}) - {k["magic"]};
const simd r = ((x - n * {p0}) - n * {p1}) - n * {p2};
const simd z = r * r;
const simd s = r + r * (z * {_horner(k["sin"])});
const simd c = real_t(1) + z * (real_t(-0.5) + z * {_horner(k["cos"])});
const simdi q = __builtin_convertvector(n, simdi);
const simdi odd = (simdi)((q & 1) != 0);
simdi si, ci;
__builtin_memcpy(&si, &s, sizeof(simd)); __builtin_memcpy(&ci, &c, sizeof(simd));
const simdi so = ((odd & ci) | (~odd & si)) ^ ((q & 2) << {k["top"] - 1});
const simdi co = ((odd & si) | (~odd & ci)) ^ (((q + 1) & 2) << {k["top"] - 1});
__builtin_memcpy(&{sine}, &so, sizeof(simd)); __builtin_memcpy(&{cosine}, &co, sizeof(simd));
if (__builtin_reduce_or((simdi)!(__builtin_elementwise_abs(x) <= real_t(8192)))) for (int i = 0; i < {width}; ++i)
    if (!((x[i] < 0 ? -x[i] : x[i]) <= real_t(8192))) {{ {sine}[i] = wp::sin(x[i]); {cosine}[i] = wp::cos(x[i]); }}
}}"""


def atan2_code(width: int, real) -> str:
    """C++ statements that set the register ``out`` from the registers ``y`` and ``x``."""
    k = _ATAN[real]
    smallest, largest = k["range"]
    high, low = k["quarter"]
    share = _horner(k["numerator"]) + (f" / {_horner(k['denominator'])}" if k["denominator"] else "")
    return f"""
const simd ax = __builtin_elementwise_abs(x), ay = __builtin_elementwise_abs(y);
const simd big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
const simd limit = big * {k["near"]};
const simd u = (small > limit ? small - big : small) / (small > limit ? small + big : big);
const simd z = u * u;
simd r = u + u * (z * {share});
r = small > limit ? (r + {low}) + {high} : r;
r = ay > ax ? (2 * {high} - r) + 2 * {low} : r;
r = x < 0 ? (4 * {high} - r) + 4 * {low} : r;
out = __builtin_elementwise_copysign(r, y);
if (__builtin_reduce_or((simdi)!(big > {smallest}) | (simdi)!(big < {largest}))) for (int i = 0; i < {width}; ++i)
    if (!(big[i] > {smallest} && big[i] < {largest})) out[i] = wp::atan2(y[i], x[i]);
"""


def shrink_code(width: int, real, out: str = "out") -> str:
    """C++ statements that set the register `out` from the registers ``bound`` and ``square``: bound / sqrt(square), but at most one.

    A root and a quotient take longer than the rest of a contact's visit, and most contacts stick or carry nothing. The fast way is for
    squares that are below that of the bound by more than the rounding errors of product and root, so that both ways give the same bits.
    """
    within = "0.999999f" if real is wp.float32 else "0.999999999999999"
    return f"""
const simdi sticks = (simdi)(bound > 0) & (simdi)(square < (bound * bound) * {within}), bare = (simdi)(bound == 0) & (simdi)(square > 0);
if (__builtin_reduce_and(sticks | bare)) {out} = bound == 0 ? simd(0) : simd(1);
else {{ const simd length = __builtin_elementwise_sqrt(square); {out} = bound < length ? bound / length : simd(1); }}
"""


def _transpose(size: int, lane: int) -> tuple[str, list[str]]:
    """C++ statements that transpose the square matrix with the rows ``r0, r1, ...``, and the names of the rows of the result.

    A register consists of pieces of 16 bytes, `lane` numbers each. Numbers are first shuffled within pieces, then whole pieces are.
    """
    text: list[str] = []

    def shuffle(a: str, b: str, order: list[int]) -> str:
        text.append(f"const simd s{len(text)} = __builtin_shufflevector({a}, {b}, {', '.join(map(str, order))});")
        return f"s{len(text) - 1}"

    def within(rows: list[str], grain: int) -> list[str]:
        if len(rows) == 1:
            return rows
        halves = []
        for half in (0, lane // 2):
            order = [
                source + piece + half + at + i
                for piece in range(0, size, lane)
                for at in range(0, lane // 2, grain)
                for source in (0, size)
                for i in range(grain)
            ]
            halves += within([shuffle(a, b, order) for a, b in zip(rows[::2], rows[1::2], strict=True)], 2 * grain)
        return halves

    def across(rows: list[str]) -> list[str]:
        if len(rows) == 1:
            return rows
        halves = []
        for odd in (0, lane):
            order = [s + at + i for s in (0, size) for at in range(odd, size, 2 * lane) for i in range(lane)]
            halves.append(across([shuffle(a, b, order) for a, b in zip(rows[::2], rows[1::2], strict=True)]))
        return [row for pair in zip(*halves, strict=True) for row in pair]

    parts = [within([f"r{k + i}" for i in range(lane)], 1) for k in range(0, size, lane)]
    columns = [across([part[i] for part in parts]) for i in range(lane)]
    return "".join(text), [columns[k % lane][k // lane] for k in range(size)]


def transpose_code(width: int, real) -> tuple[str, list[str]]:
    """C++ statements that transpose the square matrix with the registers ``r0, r1, ...`` as rows, and the names of the rows of the
    result."""
    return _transpose(width, 16 // (4 if real is wp.float32 else 8))


def staging_code(
    width: int,
    real,
    inward: bool,
    wanted: str = "true",
    packed: bool = False,
    added: bool = False,
    arranged: bool = False,
) -> str:
    """C++ statements that move `n` numbers of every world k of a block from an array into lanes (`inward`), or back.

    Squares of `width` numbers of `width` worlds are transposed in registers; the last square overlaps the one before it. Fewer numbers are
    squares of eight, if there are as many lanes. Unused lanes of the last block get the numbers of its last world. Numbers are stored only
    for existing worlds for which `wanted` is true. If lanes are `packed`, number i is in the lane that starts at number ``place[i]``. With
    `added`, numbers are added to those of the array; squares then do not overlap. If worlds are `arranged`, the world in lane k is
    ``world_at(k)``.
    """
    shuffles, result = transpose_code(width, real)
    steps = ("0", "step", "2 * step", "step3", "4 * step", "step5", "2 * step3", "step7")
    worlds = [f"{'far' if k > 7 else 'near'} + {steps[k % 8]}" for k in range(width)]
    if arranged:
        worlds = [f"near + away[{k}]" for k in range(width)]
    lanes = [f"lane + (size_t)(unsigned)index[{k}]" if packed else f"from + {k * width}" for k in range(width)]
    loads, stores = (worlds, lanes) if inward else (lanes, worlds)
    # hides the pointers from the compiler, which otherwise keeps one for each world, more than there are registers
    square = 'real_t* near = row + i; real_t* far = near + 8 * step; asm("" : "+r"(near), "+r"(far));'
    if arranged:
        square = "real_t* near = row + i;"
    square += "const int* index = place.data + i;" if packed else f"real_t* from = lane + (size_t)i * {width};"
    square += "".join(f"simd r{k}; __builtin_memcpy(&r{k}, {loads[k]}, sizeof(simd));" for k in range(width))
    # adding zero turns -0 into +0, so that a world's bits do not depend on the active rows of other worlds in its block
    square += "".join(f"r{k} = r{k} + real_t(0);" for k in range(width) if not inward and not added) + shuffles
    for k in range(width):
        if added:
            total = f"__builtin_masked_load(some, {stores[k]}, nothing) + {result[k]}"
            square += f"__builtin_masked_store(some, {total}, {stores[k]});"
        else:
            square += f"__builtin_memcpy({stores[k]}, &{result[k]}, sizeof(simd));"
    if added:
        # the last square does not store beyond the last number
        square = f"const simdb some = __builtin_convertvector(order < n - j, simdb); {square}"
    number = "place.data[i]" if packed else f"(size_t)i * {width}"
    of_world = "away[k]" if arranged else "(size_t)stride * k"
    if inward:
        last = "away[k]" if arranged else "(size_t)stride * (k < valid ? k : valid - 1)"
        single = f"for (int k = 0; k < {width}; ++k) {{ const real_t* one = row + {last};"
        single += f" {ONE_BY_ONE} for (int i = 0; i < n; ++i) lane[{number} + k] = one[i]; }}"
    else:
        single = f"for (int k = 0; k < valid; ++k) if ({wanted}) {{ real_t* one = row + {of_world};"
        single += f" {ONE_BY_ONE} for (int i = 0; i < n; ++i)"
        single += f" one[i] = lane[{number} + k] + {'one[i]' if added else 'real_t(0)'}; }}"
    whole_n, first = ("true", "j") if added else (f"n >= {width}", f"j + {width} <= n ? j : n - {width}")
    whole = (
        "true"
        if wanted == "true"
        else f"[&] {{ for (int k = 0; k < {width}; ++k) if (!({wanted})) return false; return true; }}()"
    )
    order = ""
    if added:
        order = f"typedef bool simdb __attribute__((ext_vector_type({width}))); const simd nothing = 0;"
        order += f"const simdi order = {{{', '.join(map(str, range(width)))}}};"
    few = "" if added else _few_code(width, real, inward, packed, whole, arranged)
    if arranged:
        begin = " real_t* row = a.data + start;"
        begin += f" size_t away[{width}]; for (int k = 0; k < {width}; ++k)"
        begin += " away[k] = (size_t)stride * world_at(k < valid ? k : valid - 1);"
    else:
        begin = f" real_t* row = a.data + start + (size_t)stride * (b * {width});"
        begin += " const size_t step = stride; size_t step3 = 3 * step, step5 = 5 * step, step7 = 7 * step;"
        begin += ' asm("" : "+r"(step3), "+r"(step5), "+r"(step7));'
    return (
        f"{simd_types(width, real)} {order} const int valid = {valid_code(width)};"
        f"{begin} real_t* lane = (real_t*)(mem.data + at);"
        f" if ({whole_n} && valid == {width} && {whole}) for (int j = 0; j < n; j += {width}) {{"
        f" const int i = {first}; {square} }}"
        f" {few} else {single}"
    )


def _few_code(width: int, real, inward: bool, packed: bool, whole: str, arranged: bool) -> str:
    """C++ statements of :func:`staging_code` for fewer numbers than `width`: squares of eight numbers of eight worlds. At width 16, a
    register has a row of two squares, that of world k and that of world k + 8. Numbers beyond the last one are neither read nor stored."""
    lane = 16 // (4 if real is wp.float32 else 8)
    if width < 8 or (width == 16 and lane != 4):
        return ""
    halves = ", ".join(map(str, range(8)))
    text = [
        f"else if (valid == {width} && {whole}) for (int j = 0; j < n; j += 8) {{"
        " const int i = j + 8 <= n ? j : n > 8 ? n - 8 : 0, count = n - i;"
        " typedef real_t eight __attribute__((ext_vector_type(8))); typedef bool some8 __attribute__((ext_vector_type(8)));"
        " typedef int int8v __attribute__((ext_vector_type(8)));"
        f" const int8v numbers = {{{halves}}}; const some8 some = __builtin_convertvector(numbers < count, some8);"
        " const eight none = 0; real_t* one = row + i;"
    ]
    worlds = [f"one + away[{k}]" if arranged else f"one + {k} * step" for k in range(width)]
    lanes = [
        f"lane + (size_t)(unsigned)place.data[i + {k}]" if packed else f"lane + (size_t)(i + {k}) * {width}"
        for k in range(8)
    ]

    def pick(a: str, b: str, pieces: list[int]) -> str:
        """A register of pieces of 16 bytes of two registers."""
        order = [lane * p + i for p in pieces for i in range(lane)]
        return f"__builtin_shufflevector({a}, {b}, {', '.join(map(str, order))})"

    def load8(k: int) -> str:
        return f"const eight h{k} = __builtin_masked_load(some, {worlds[k]}, none);"

    def columns(prefix: str) -> list[str]:
        """Transposes the pieces of the registers `prefix` 0 to 3 and 4 to 7."""
        result = []
        for g in (0, 4):
            a, b, c, d = (f"{prefix}{g + i}" for i in range(4))
            low, high = "0, 16, 1, 17", "2, 18, 3, 19"
            for name, x, y, order in (("u", a, b, low), ("v", a, b, high), ("w", c, d, low), ("x", c, d, high)):
                text.append(f"const simd {name}{g} = __builtin_shufflevector({x}, {y}, {_repeated(order)});")
            for i, (x, y, order) in enumerate(
                (
                    ("u", "w", "0, 1, 16, 17"),
                    ("u", "w", "2, 3, 18, 19"),
                    ("v", "x", "0, 1, 16, 17"),
                    ("v", "x", "2, 3, 18, 19"),
                )
            ):
                text.append(f"const simd z{g + i} = __builtin_shufflevector({x}{g}, {y}{g}, {_repeated(order)});")
                result.append(f"z{g + i}")
        return result

    if inward:
        text += [load8(k) for k in range(width)]
        if width == 16:
            text += [
                f"const simd r{k} = __builtin_shufflevector(h{k}, h{k + 8}, {', '.join(map(str, range(16)))});"
                for k in range(8)
            ]
            z = columns("r")
            found = [pick(z[i % 4], z[4 + i % 4], [0, 4, 2, 6] if i < 4 else [1, 5, 3, 7]) for i in range(8)]
        else:
            text += [f"const simd r{k} = h{k};" for k in range(8)]
            shuffles, found = _transpose(8, lane)
            text.append(shuffles)
        text += [
            f"if ({k} < count) {{ const simd y = {found[k]}; __builtin_memcpy({lanes[k]}, &y, sizeof(simd)); }}"
            for k in range(8)
        ]
        return " ".join(text) + " }"
    # adding zero turns -0 into +0, as in whole squares
    text += [
        f"simd y{k} = 0; if ({k} < count) {{ __builtin_memcpy(&y{k}, {lanes[k]}, sizeof(simd)); y{k} = y{k} + real_t(0); }}"
        for k in range(8)
    ]
    if width == 16:
        for i in range(4):
            text.append(f"const simd r{i} = {pick(f'y{i}', f'y{i + 4}', [0, 4, 2, 6])};")
            text.append(f"const simd r{i + 4} = {pick(f'y{i}', f'y{i + 4}', [1, 5, 3, 7])};")
        z = columns("r")
        low, high = ", ".join(map(str, range(8))), ", ".join(map(str, range(8, 16)))
        for k in range(8):
            text.append(f"__builtin_masked_store(some, __builtin_shufflevector({z[k]}, {z[k]}, {low}), {worlds[k]});")
            text.append(
                f"__builtin_masked_store(some, __builtin_shufflevector({z[k]}, {z[k]}, {high}), {worlds[k + 8]});"
            )
    else:
        shuffles, found = _transpose(8, lane)
        text += [f"const simd r{k} = y{k};" for k in range(8)]
        text.append(shuffles)
        text += [f"__builtin_masked_store(some, (eight){found[k]}, {worlds[k]});" for k in range(8)]
    return " ".join(text) + " }"


def _repeated(order: str) -> str:
    """Indices for all four pieces of registers of 16 numbers, from those for the first one."""
    first = [int(i) for i in order.split(", ")]
    return ", ".join(str(4 * p + i) for p in range(4) for i in first)


def valid_code(width: int) -> str:
    """C++ expression: the number of worlds of block b; the last block may have fewer than `width`."""
    return f"(count - b * {width} < {width} ? count - b * {width} : {width})"
