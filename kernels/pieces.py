"""Copies between the flat arrays of a model and the memory of workers.

A *piece* describes where the numbers of one array are, in the array and in memory. At widths above 1 the loops over pieces are native code,
which reads pieces without copying the struct.
"""

import types

import warp as wp
from newton_like.kernels.simd import simd_types, staging_code, valid_code

RESULTS = ("take", "take_packed", "take_added")
"""How results are stored: written from memory, written from packed memory, or added from packed memory to the values of the array."""


@wp.func
def listed_number(numbers: wp.array[int], i: int) -> int:
    """Number i of a list; of an empty list, i."""
    if numbers.shape[0] > 0:
        return numbers[i]
    return i


def piece_moves(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with the structs ``Batch`` and ``Piece`` and the functions ``wanted``, ``bring``, ``bring_packed``, ``any_given``,
    ``prefetch_inputs``, ``prefetch_results`` and those of `RESULTS`."""
    real, width = m.real, m.width

    @wp.struct
    class Batch:
        """The articulations of a batch: their count, and the first one and the stride between them among those of the model.
        `masked` is 1 if a mask selects some of them, `ahead` if their numbers are read ahead into the caches of the processor."""

        count: int
        masked: int
        ahead: int
        start: int
        stride: int

    @wp.struct
    class Piece:
        """The numbers of an articulation in the flat array `numbers`, in `parts` runs of `size` numbers. Run i starts at
        ``start + part[i]`` for the first articulation and `stride` further for each next one. In memory the runs are contiguous
        from `row` on. In packed memory, and where inputs are brought packed, the lane of number i of a run starts ``place[i]`` numbers
        after the first lane."""

        row: int
        start: int
        stride: int
        size: int
        parts: int
        part: wp.array[int]
        place: wp.array[int]
        numbers: wp.array[real]

    @wp.func
    def wanted(b: int, B: Batch, mask: wp.array[bool]) -> bool:
        """Whether any articulation of block b is selected."""
        if B.masked == 0:
            return True
        return m.any_selected(mask, B.start, B.stride, b, B.count)

    moves = _scalar_moves(real, Batch, Piece) if width == 1 else _simd_moves(m, Batch, Piece)
    return types.SimpleNamespace(**vars(m), Batch=Batch, Piece=Piece, wanted=wanted, **moves)


def _scalar_moves(real, Batch, Piece) -> dict:
    @wp.func
    def bring_to(b: int, t: int, first: int, last: int, pieces: wp.array[Piece], mem: wp.array2d[real], packed: bool):
        for k in range(first, last):
            piece = pieces[k]
            for p in range(piece.parts):
                at = piece.row + p * piece.size
                start = piece.start + b * piece.stride + piece.part[p]
                for i in range(piece.size):
                    place = i
                    if packed:
                        place = piece.place[i]
                    mem[at + place, t] = piece.numbers[start + i]

    @wp.func
    def bring(b: int, t: int, B: Batch, first: int, last: int, pieces: wp.array[Piece], mem: wp.array2d[real]):
        bring_to(b, t, first, last, pieces, mem, False)

    @wp.func
    def bring_packed(b: int, t: int, B: Batch, first: int, last: int, pieces: wp.array[Piece], mem: wp.array2d[real]):
        bring_to(b, t, first, last, pieces, mem, True)

    @wp.func
    def any_given(b: int, B: Batch, pieces: wp.array[Piece], k: int) -> bool:
        piece = pieces[k]
        found = bool(False)
        for p in range(piece.parts):
            start = piece.start + b * piece.stride + piece.part[p]
            for i in range(piece.size):
                if piece.numbers[start + i] != real(0.0):
                    found = True
        return found

    @wp.func
    def move(
        b: int, t: int, B: Batch, count: int, pieces: wp.array[Piece], mask: wp.array[bool], mem: wp.array2d[real],
        packed: bool, added: bool,
    ):  # fmt: skip
        if B.masked != 0:
            if not mask[B.start + b * B.stride]:
                return
        for k in range(count):
            piece = pieces[k]
            for p in range(piece.parts):
                at = piece.row + p * piece.size
                start = piece.start + b * piece.stride + piece.part[p]
                for i in range(piece.size):
                    place = i
                    if packed:
                        place = piece.place[i]
                    # adding zero turns -0 into +0, so that a world's bits do not depend on the active rows of other worlds in its block
                    old = real(0.0)
                    if added:
                        old = piece.numbers[start + i]
                    piece.numbers[start + i] = mem[at + place, t] + old

    @wp.func_native("")
    def prefetch_inputs(b: int, B: Batch, quarter: int, first: int, last: int, pieces: wp.array[Piece]): ...

    @wp.func_native("")
    def prefetch_results(b: int, B: Batch, quarter: int, first: int, last: int, pieces: wp.array[Piece]): ...

    @wp.func
    def take(
        b: int, t: int, B: Batch, count: int, pieces: wp.array[Piece], mask: wp.array[bool], mem: wp.array2d[real]
    ):
        move(b, t, B, count, pieces, mask, mem, False, False)

    @wp.func
    def take_packed(
        b: int, t: int, B: Batch, count: int, pieces: wp.array[Piece], mask: wp.array[bool], mem: wp.array2d[real]
    ):
        move(b, t, B, count, pieces, mask, mem, True, False)

    @wp.func
    def take_added(
        b: int, t: int, B: Batch, count: int, pieces: wp.array[Piece], mask: wp.array[bool], mem: wp.array2d[real]
    ):
        move(b, t, B, count, pieces, mask, mem, True, True)

    return dict(
        bring=bring,
        bring_packed=bring_packed,
        any_given=any_given,
        prefetch_inputs=prefetch_inputs,
        prefetch_results=prefetch_results,
        take=take,
        take_packed=take_packed,
        take_added=take_added,
    )


def _simd_moves(m, Batch, Piece) -> dict:
    width, real, memory = m.width, m.real, m.memory
    chosen = f"mask.data[mask_start + mask_stride * (b * {width} + k)]"

    def out(**how) -> str:
        masked, plain = (staging_code(width, real, inward=False, wanted=w, **how) for w in (chosen, "true"))
        return _EVERY.format(first="0", last="results", code=f"if (B.masked) {{ {masked} }} else {{ {plain} }}")

    @wp.func_native(_ahead_code(width, write=False))
    def prefetch_inputs(b: int, B: Batch, quarter: int, first: int, last: int, pieces: wp.array[Piece]):
        """Begins to read a quarter of pieces of block b from memory into the caches of the processor, which waits for few reads at a time.
        There need be no such block."""

    @wp.func_native(_ahead_code(width, write=True))
    def prefetch_results(b: int, B: Batch, quarter: int, first: int, last: int, pieces: wp.array[Piece]):
        """The same for pieces that will be written."""

    @wp.func_native(_EVERY.format(first="first", last="last", code=staging_code(width, real, inward=True)))
    def bring(b: int, t: int, B: Batch, first: int, last: int, pieces: wp.array[Piece], mem: memory): ...

    packed = staging_code(width, real, inward=True, packed=True)

    @wp.func_native(_EVERY.format(first="first", last="last", code=packed))
    def bring_packed(b: int, t: int, B: Batch, first: int, last: int, pieces: wp.array[Piece], mem: memory): ...

    @wp.func_native(_given_code(width, real, f"b * {width} + k"))
    def any_given(b: int, B: Batch, pieces: wp.array[Piece], k: int) -> bool:
        """Whether any number of piece k in block b is nonzero."""

    @wp.func_native(out())
    def take(b: int, t: int, B: Batch, results: int, pieces: wp.array[Piece], mask: wp.array[bool], mem: memory): ...

    @wp.func_native(out(packed=True))
    def take_packed(
        b: int, t: int, B: Batch, results: int, pieces: wp.array[Piece], mask: wp.array[bool], mem: memory
    ): ...

    @wp.func_native(out(packed=True, added=True))
    def take_added(
        b: int, t: int, B: Batch, results: int, pieces: wp.array[Piece], mask: wp.array[bool], mem: memory
    ): ...

    return dict(
        bring=bring,
        bring_packed=bring_packed,
        any_given=any_given,
        prefetch_inputs=prefetch_inputs,
        prefetch_results=prefetch_results,
        take=take,
        take_packed=take_packed,
        take_added=take_added,
    )


_EVERY = (
    "const int count = B.count, mask_start = B.start, mask_stride = B.stride;"
    " for (int q = {first}; q < {last}; ++q) {{"
    " const auto& piece = pieces.data[q]; const auto& a = piece.numbers; const auto& place = piece.place;"
    " const int stride = piece.stride, n = piece.size;"
    " for (int p = 0; p < piece.parts; ++p) {{"
    " const int at = piece.row + p * n, start = piece.start + piece.part.data[p]; {code} }} }}"
)
"""C++ statements for each run of pieces."""


def _given_code(width: int, real, world: str) -> str:
    """C++ body of ``any_given``. NaN counts as given; the last register overlaps the one before it.

    Args:
        width, real: of the lanes.
        world: C++ expression for the articulation in lane k.
    """
    look = f"const int valid = {valid_code(width)}; for (int k = 0; k < valid; ++k) {{"
    look += f" const auto* from = a.data + start + (size_t)stride * ({world});"
    look += f" if (n >= {width}) {{ simdi found = 0; for (int j = 0; j < n; j += {width}) {{ simd x;"
    look += f" __builtin_memcpy(&x, from + (j + {width} <= n ? j : n - {width}), sizeof(simd)); found |= (simdi)~(x == 0); }}"
    look += " if (__builtin_reduce_or(found) != 0) return true; }"
    look += " else for (int i = 0; i < n; ++i) if (!(from[i] == 0)) return true; }"
    return simd_types(width, real) + " " + _EVERY.format(first="k", last="k + 1", code=look) + " return false;"


def _ahead_code(width: int, write: bool, arranged: bool = False) -> str:
    """C++ body of ``prefetch_inputs``, or of ``prefetch_results``."""
    # the worlds of a block are next to each other unless there are numbers of others between them
    near = "false" if arranged else "step < size + 64"
    world = "order.data[b * {width} + k]" if arranged else "(b * (size_t){width} + k)"
    world, worlds = world.replace("{width}", str(width)), f"(dense ? 1 : {width})"
    if arranged:
        worlds = f"(B.count - b * {width} < {width} ? B.count - b * {width} : {width})"
    return (
        f"if (!B.ahead || b * {width} >= B.count) return;"
        " for (int q = first; q < last; ++q) {"
        " const auto& piece = pieces.data[q]; const size_t size = piece.size * sizeof(*piece.numbers.data);"
        f" const size_t step = piece.stride * sizeof(*piece.numbers.data); const bool dense = {near};"
        f" const size_t length = dense ? {width - 1} * step + size : size, share = length / 256 * 64 + 64;"
        " const size_t begin = quarter * share, end = begin + share < length ? begin + share : length;"
        " for (int p = 0; p < piece.parts; ++p) {"
        f" for (int k = 0; k < {worlds}; ++k) {{"
        f" const char* run = (const char*)(piece.numbers.data + piece.start + piece.part.data[p]) + step * {world};"
        f" for (size_t i = begin; i < end; i += 64) __builtin_prefetch(run + i, {int(write)}, 2); }} }} }}"
    )


def step_moves(m: types.SimpleNamespace, arranged: bool) -> types.SimpleNamespace:
    """``bring``, ``any_given``, ``prefetch_inputs``, ``prefetch_results`` and ``take`` for a step, which take the order of articulations.

    Args:
        m: the namespace.
        arranged: whether the articulation in lane k of block b is number ``order[width * b + k]`` of the batch, see
            `kernels.solvers.arrange`; otherwise `order` is not read.
    """
    Batch, Piece, memory, width, real = m.Batch, m.Piece, m.memory, m.width, m.real
    if not arranged:

        @wp.func
        def bring(
            b: int, t: int, B: Batch, order: wp.array[int], first: int, last: int, pieces: wp.array[Piece], mem: memory
        ):
            m.bring(b, t, B, first, last, pieces, mem)

        @wp.func
        def any_given(b: int, B: Batch, order: wp.array[int], pieces: wp.array[Piece], k: int) -> bool:
            return m.any_given(b, B, pieces, k)

        @wp.func
        def prefetch_inputs(
            b: int, B: Batch, order: wp.array[int], quarter: int, first: int, last: int, pieces: wp.array[Piece]
        ):
            m.prefetch_inputs(b, B, quarter, first, last, pieces)

        @wp.func
        def prefetch_results(
            b: int, B: Batch, order: wp.array[int], quarter: int, first: int, last: int, pieces: wp.array[Piece]
        ):
            m.prefetch_results(b, B, quarter, first, last, pieces)

        @wp.func
        def take(
            b: int, t: int, B: Batch, order: wp.array[int], results: int, pieces: wp.array[Piece], mask: wp.array[bool],
            mem: memory,
        ):  # fmt: skip
            m.take(b, t, B, results, pieces, mask, mem)

    else:
        world = f"order.data[b * {width} + k]"
        at = f"auto world_at = [&](int k) -> size_t {{ return {world}; }};"
        inward = _EVERY.format(first="first", last="last", code=staging_code(width, real, inward=True, arranged=True))
        chosen = f"(!B.masked || mask.data[mask_start + mask_stride * {world}])"
        outward = _EVERY.format(
            first="0",
            last="results",
            code=staging_code(width, real, inward=False, wanted=chosen, arranged=True),
        )

        @wp.func_native(at + inward)
        def bring(
            b: int, t: int, B: Batch, order: wp.array[int], first: int, last: int, pieces: wp.array[Piece], mem: memory
        ): ...

        @wp.func_native(_given_code(width, real, world))
        def any_given(b: int, B: Batch, order: wp.array[int], pieces: wp.array[Piece], k: int) -> bool: ...

        @wp.func_native(_ahead_code(width, write=False, arranged=True))
        def prefetch_inputs(
            b: int, B: Batch, order: wp.array[int], quarter: int, first: int, last: int, pieces: wp.array[Piece]
        ): ...

        @wp.func_native(_ahead_code(width, write=True, arranged=True))
        def prefetch_results(
            b: int, B: Batch, order: wp.array[int], quarter: int, first: int, last: int, pieces: wp.array[Piece]
        ): ...

        @wp.func_native(at + outward)
        def take(
            b: int, t: int, B: Batch, order: wp.array[int], results: int, pieces: wp.array[Piece], mask: wp.array[bool],
            mem: memory,
        ): ...  # fmt: skip

    return types.SimpleNamespace(
        bring=bring, any_given=any_given, prefetch_inputs=prefetch_inputs, prefetch_results=prefetch_results, take=take
    )
