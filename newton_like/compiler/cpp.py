"""Emits traces as native code: straight-line C++ over SIMD registers on a CPU, over scalars on a GPU."""

import re
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import warp as wp

from newton_like.compiler.order import LEAVES, needed, operands, ordered, parts
from newton_like.compiler.trace import Index, Trace
from newton_like.kernels.simd import FUSE, atan2_code, shrink_code, simd_types, sincos_code

FLAGS = "-march=native -ffp-contract=off -fno-slp-vectorize -fno-vectorize"
"""Compiler flags of emitted code on a CPU. The code is vectorised already, and only the fused operations of programs are fused."""

CUT = 8000
"""Default limit of the operations of one C++ function. Compile time grows faster than linearly with the length of straight-line code;
passing values between functions costs a few percent of run time."""

LONG = 4000
"""Number of operations from which vector code is reordered. The values of shorter code are in nearby caches, so the order does not
matter."""

SCALAR_CUT = 2000
"""Limit of the operations of one function of scalar code: CUDA's compiler needs minutes for a function of ten thousand operations."""

MOST_PACKED = 0.8
"""A result is packed, with each distinct number stored once, if at most this fraction of its numbers is distinct."""

ALIGN = 'V aligned __attribute__((aligned(64))); asm volatile("" : : "r"(&aligned));'
"""C++ statements that align the stack of functions with vectors on it; otherwise vectors may straddle two cache lines."""

FEW_ANGLES = 3
"""Number of angles of a trace from which their sines and cosines are computed in a loop."""

_WORD = re.compile(r"\b[A-Za-z_]\w*")
_INTEGERS = ("b", "t", "a", "c", "s")
"""Integer arguments of programs, on which memory indices may depend."""

_PLAIN = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}", "rcp": "real_t(1) / {}", "detach": "{}",
    "min": "{0} < {1} ? {0} : {1}", "max": "{0} > {1} ? {0} : {1}", "where_lt": "{} < {} ? {} : {}",
}  # fmt: skip
"""C++ expressions of operations in terms of their operands."""

# expressions that differ between vectors and scalars
_OF_VECTORS = {
    "fma": "__builtin_elementwise_fma({}, {}, {})", "fnma": "__builtin_elementwise_fma(-{}, {}, {})",
    "sqrt": "__builtin_elementwise_sqrt({})",
}  # fmt: skip
_OF_NUMBERS = {"fma": "{2} + {0} * {1}", "fnma": "{2} - {0} * {1}"}


@dataclass(frozen=True, eq=False)
class Constants:
    """The parameters of a batch for emitted code.

    Attributes:
        at: first index of each group.
        values: values of the first articulation, ``[size]``.
        same: whether all articulations have this value and always will, ``[size]``.
    """

    at: dict[str, int]
    values: np.ndarray
    same: np.ndarray


class Emitter:
    """Emits C++ code of traces over the memory and the parameters of a batch.

    Args:
        m: the programs' namespace, which gives the width and the scalar type.
        layout: first lanes of the memory rows of traces.
        parameters: the parameters of the batch.
        held: mask of the parameters that are constants in the code; by default those that all articulations share. The code reads the
            others for each articulation.
        cut: limit of the operations of one C++ function; ``CUT`` by default.
    """

    def __init__(
        self,
        m,
        layout: dict[str, int],
        parameters: Constants,
        held: np.ndarray | None = None,
        cut: int | None = None,
    ):
        self.width, self.real, self.layout, self.parameters = m.width, m.real, layout, parameters
        self.cut = SCALAR_CUT if self.width == 1 else CUT if cut is None else cut
        self.held = parameters.same if held is None else held
        self._expressions = {**_PLAIN, **(_OF_NUMBERS if self.width == 1 else _OF_VECTORS)}
        self._names = sorted(layout, key=layout.get)
        self._starts = [layout[name] for name in self._names]
        groups = parameters.at
        self._groups = sorted(groups, key=groups.get)
        self._group_starts = [groups[name] for name in self._groups]

    def parameter(self, i):
        """A parameter's value if it is a constant, else None; see :func:`newton_like.compiler.trace.tracing_math`."""
        if isinstance(i, Index):
            return None
        return float(self.parameters.values[i]) if self.held[i] else None

    def group(self, i: int) -> str:
        """The group of a parameter."""
        return self._groups[bisect_right(self._group_starts, i) - 1]

    def name(self, place) -> str:
        """The row of the layout that contains a memory index."""
        return self._names[bisect_right(self._starts, place.constant if isinstance(place, Index) else place) - 1]

    def head(self) -> str:
        """C++ declarations of the types ``real_t`` and ``V`` and the memory ``M``; the enclosing function has the memory as ``mem``."""
        if self.width > 1:
            return f"{simd_types(self.width, self.real)} typedef simd V; V* M = (V*)mem.data;"
        real = "float" if self.real is wp.float32 else "double"
        own = "(const char*)P.varying.data + b * (size_t)P.varying.strides[0]"
        return (
            f"typedef {real} real_t; typedef {real} V; {real}* M = mem.data + t; const size_t S = mem.shape[1];"
            f" const char* varying = {own}; const size_t step = P.varying.strides[1]; const real_t* uniform = P.uniform.data;"
        )

    def place(self, i) -> str:
        """C++ expression: the memory at index i."""
        return f"M[{i}]" if self.width > 1 else f"M[(size_t)({i}) * S]"

    def stores(self, trace: Trace, wanted) -> list[tuple]:
        """Pairs of a memory index and the number that a trace leaves there, for changed indices for which `wanted` is true."""
        return [
            (place, x)
            for place, x in trace.memory.items()
            if wanted(place) and not (x.node is not None and trace.ops[x.node] == ("load", place))
        ]

    def packed(self, stores: list[tuple], row: str, size: int) -> tuple[list[tuple], np.ndarray] | None:
        """Packs the first `size` numbers of a row: the distinct ones are stored once, from the row's start on. Returns the new stores and
        the position of each number; None if some are not stored, or if most are distinct (`MOST_PACKED`)."""
        start = self.layout[row]
        of = {place: x for place, x in stores if not isinstance(place, Index)}
        if any(start + i not in of for i in range(size)):
            return None
        at: dict = {}
        for i in range(size):
            x = of[start + i]
            at.setdefault((x.node, x.constant), (len(at), x))
        if len(at) > MOST_PACKED * size:
            return None
        places = [at[x.node, x.constant][0] for x in (of[start + i] for i in range(size))]
        rest = [(place, x) for place, x in stores if isinstance(place, Index) or not start <= place < start + size]
        return rest + [(start + i, x) for i, x in at.values()], np.array(places)

    def statements(self, trace: Trace, stores: list[tuple], sizes: list[int] | None = None) -> str:
        """C++ statements that compute and store the `stores`.

        Args:
            trace, stores: see :meth:`stores`.
            sizes: numbers of an articulation in each array of ``pieces``, an argument of the enclosing function; 0: unknown. Their cache
                lines are prefetched during the computation.
        """
        need = needed(trace, stores)
        if self.width == 1:
            return self._cut(trace, stores, need)
        if len(need) >= LONG:
            need = ordered(trace, stores)
        self._table, self._turns = {}, {}
        ahead = self._ahead(need, sizes or [])
        turns = self._sines(trace, need)
        if len(need) <= self.cut:
            text: list[str] = []
            turned: set[int] = set()
            early, late = _early(trace, stores)
            for n in need:
                text.append(f"const V t{n} = {self._value(trace.ops[n], text, turned)};")
                text += [*self._writes(early.get(n, ())), *ahead.get(n, ())]
            body = "\n".join(text + self._writes([*early.get(None, ()), *late]))
        else:
            body = self._cut(trace, stores, need, ahead)
        # hides the constants from the compiler, which otherwise loads the address of each one separately
        constants = (
            f"static const real_t constants[] = {{{', '.join([*self._table, '0'])}}}; const real_t* K = constants;"
        )
        first = "(const char*)(pieces.data[{i}].numbers.data + pieces.data[{i}].start + (size_t)pieces.data[{i}].stride * {w} * b)"
        goals = ", ".join(first.format(i=i, w=self.width) for i in range(len(sizes or []))) or "nullptr"
        return f'{constants} asm("" : "+r"(K)); const char* const O[] = {{{goals}}};\n{turns}\n{body}'

    def _ahead(self, need: list[int], sizes: list[int]) -> dict[int, list[str]]:
        """C++ statements that prefetch the cache lines of the results, distributed evenly over the operations."""
        line = 64 // (4 if self.real is wp.float32 else 8)
        lines = [(i, at) for i, size in enumerate(sizes) for at in range(-(-size * self.width // line))]
        ahead: dict[int, list[str]] = {}
        for k, (i, at) in enumerate(lines if len(lines) < len(need) else ()):
            code = f"__builtin_prefetch(O[{i}] + {64 * at}, 1, 2);"
            ahead.setdefault(need[k * len(need) // len(lines)], []).append(code)
        return ahead

    def _sines(self, trace: Trace, need: list[int]) -> str:
        """C++ statements that compute, in a loop, the sines and cosines of all angles that depend on a few operations only.

        In straight-line code each angle takes dozens of operations, and a branch that is rarely taken.
        """
        code, known = [], {}
        for n in need:
            name, *args = trace.ops[n]
            if name not in ("sin", "cos") or args[0] in known:
                continue
            cone = _cone(trace, args[0])
            if cone is not None:
                known[args[0]] = len(known)
                code += [f"const V t{i} = {self._value(trace.ops[i], code, set())};" for i in cone]
                code.append(f"C[{known[args[0]]}] = t{args[0]};")
        if len(known) < FEW_ANGLES:
            return f"{ALIGN} V* C = nullptr;"
        self._turns, count = known, len(known)
        code = list(dict.fromkeys(code))
        turn = sincos_code(self.width, self.real, "angle", "sine", "cosine")
        return (
            f"V C[{2 * count}] __attribute__((aligned(64))); {{ {' '.join(code)} }}\n#pragma clang loop unroll(disable)\n"
            f"for (int i = 0; i < {count}; ++i) {{ const V angle = C[i]; V sine, cosine; {turn} C[i] = sine; C[i + {count}] = cosine; }}"
        )

    def _writes(self, stores) -> list[str]:
        return [f"{self.place(p)} = {self._ref(x.node if x.constant is None else x.constant)};" for p, x in stores]

    def _cut(self, trace: Trace, stores: list[tuple], need: list[int], ahead: dict | None = None) -> str:
        """The statements as several functions, which pass values in an array.

        A number is stored by the function that computes it. Memory that the trace also reads is written last, after all reads.
        """
        pieces = parts(trace, need, self.cut)
        last = len(pieces) - 1
        part_of = {n: i for i, part in enumerate(pieces) for n in part}
        read = set(trace.loads)
        written: list[list] = [[] for _ in pieces]
        used: list[dict[int, None]] = [{} for _ in pieces]
        early, late = _early(trace, stores)
        for place, x in [*early.pop(None, ()), *late]:
            part = last if place in read else part_of.get(x.node, 0)
            written[part].append((place, x))
            if x.node is not None and part_of[x.node] != part:
                used[part][x.node] = None
        for i, part in enumerate(pieces):
            for n in part:
                used[i].update((a, None) for a in operands(trace.ops[n]) if part_of[a] != i)
        # loads are repeated in each function
        handed = dict.fromkeys(n for names in used for n in names if trace.ops[n][0] not in LEAVES)
        spilled = {n: i for i, n in enumerate(handed)}
        text = [f"V Z[{max(len(spilled), 1)}] __attribute__((aligned(64)));"]
        write = self._function if self.width == 1 else _closure
        for i, part in enumerate(pieces):
            body, turned = [], set()
            for a in used[i]:
                number = f"Z[{spilled[a]}]" if a in spilled else self._value(trace.ops[a], body, turned)
                body.append(f"const V t{a} = {number};")
            for n in part:
                body.append(f"const V t{n} = {self._value(trace.ops[n], body, turned)};")
                if n in spilled:
                    body.append(f"Z[{spilled[n]}] = t{n};")
                body += [*self._writes(early.get(n, ())), *(ahead or {}).get(n, ())]
            body += self._writes(written[i])
            text.append(write(f"part{i}", "\n".join(body)))
        return "\n".join(text)

    def _function(self, name: str, body: str) -> str:
        """C++ statements that define and call a function with the given body, compiled separately.

        Its arguments are single numbers, because structs would be copied into the local memory of every thread.
        """
        kinds = {
            "M": "real_t* __restrict__",
            "Z": "real_t* __restrict__",
            "varying": "const char*",
            "uniform": "const real_t*",
        }
        kinds.update({"o": "const real_t", "P": "const int", "S": "const size_t", "step": "const size_t"})
        kinds.update(dict.fromkeys(_INTEGERS, "const int"))
        told = {}
        for word in dict.fromkeys(_WORD.findall(body)):
            # a field of a struct has the name owner_field
            owner, _, field = word.partition("_")
            if owner in kinds and (field or word in kinds):
                told[word] = f"{owner}.{field}" if field else word
        arguments = ", ".join(f"{kinds[word.partition('_')[0]]} {word}" for word in told)
        signature = f"static CUDA_CALLABLE WP_NOINLINE void run({arguments})"
        return f"struct {name} {{ {signature} {{ {body} }} }}; {name}::run({', '.join(told.values())});"

    def _literal(self, x: float) -> str:
        text = repr(float(x))
        if text in ("inf", "-inf", "nan"):
            raise ValueError(f"a constant of the robot is {text}")
        return f"real_t({text})"

    def _ref(self, a) -> str:
        if isinstance(a, int):
            return f"t{a}"
        literal = self._literal(a)
        return f"V({literal})" if self.width == 1 else f"V(K[{self._table.setdefault(literal, len(self._table))}])"

    def _value(self, op, text: list[str], turned: set) -> str:
        name, *args = op
        width = self.width
        if name == "load":
            return self.place(args[0])
        if name == "uniform":
            return f"V(o.{args[0]})" if self.width > 1 else f"o_{args[0]}"
        if name == "param":
            return self._load_parameter(args[0])
        if name in self._expressions:
            return self._expressions[name].format(*map(self._ref, args))
        if name in ("sin", "cos"):
            x = args[0]
            if width == 1:
                return f"wp::{name}(t{x})"
            if x in self._turns:
                return f"C[{self._turns[x] + (len(self._turns) if name == 'cos' else 0)}]"
            if x not in turned:
                turned.add(x)
                text.append(f"V s{x}, c{x}; " + sincos_code(width, self.real, f"t{x}", f"s{x}", f"c{x}"))
            return f"{name[0]}{x}"
        arguments = [self._ref(a) for a in args]
        if name == "atan2" and width > 1:
            y, x = arguments
            code = atan2_code(width, self.real)
            return f"[&] {{ {FUSE}const simd y = {y}, x = {x}; simd out; {code} return out; }}()"
        if name == "shrink":
            bound, square = arguments
            if width == 1:
                return f"({bound} < wp::sqrt({square}) ? {bound} / wp::sqrt({square}) : real_t(1))"
            code = shrink_code(width, self.real)
            return f"[&] {{ {FUSE}const simd bound = {bound}, square = {square}; simd out; {code} return out; }}()"
        if width == 1:
            return f"wp::{name}({', '.join(arguments)})"
        each = ", ".join(f"({a})[i]" for a in arguments)
        return f"[&] {{ V r; for (int i = 0; i < {width}; ++i) r[i] = wp::{name}({each}); return r; }}()"

    def _load_parameter(self, i) -> str:
        if self.width == 1:
            shared, own = "uniform", f"varying + ({i}) * step"
        else:
            shared = "P.uniform.data"
            own = f"(char*)P.varying.data + b * (size_t)P.varying.strides[0] + ({i}) * (size_t)P.varying.strides[1]"
        shared, own = f"V({shared}[{i}])", f"*(V*)({own})"
        if isinstance(i, Index):
            start, end = (self.parameters.at[name] for name in ("collider", "hull"))
            return shared if self.parameters.same[start:end].all() else own
        return own


def _early(trace: Trace, stores: list[tuple]) -> tuple[dict, list]:
    """Stores that can follow the operation that computes their number, by operation, and stores that must follow all reads."""
    read = set(trace.loads)
    if any(isinstance(place, Index) for place in (*read, *(p for p, _ in stores))):
        return {}, stores
    early: dict = {}
    for place, x in stores:
        if place not in read:
            early.setdefault(x.node, []).append((place, x))
    return early, [(place, x) for place, x in stores if place in read]


def _closure(name: str, body: str) -> str:
    """C++ statements that define and call a closure with the given body, for vector code. Pointers are arguments, because captured pointers
    are reloaded after every store."""
    pointers = "V* __restrict__ M, V* __restrict__ Z, const V* __restrict__ C, const real_t* __restrict__ K"
    pointers += ", const char* const* __restrict__ O"
    return f"auto {name} = [&]({pointers}) __attribute__((noinline)) {{ {ALIGN} {body} }}; {name}(M, Z, C, K, O);"


def _cone(trace: Trace, n: int, most: int = 6) -> list[int] | None:
    """Operation `n` and those that it depends on; None if they are more than `most` or contain transcendental functions."""
    found, stack = set(), [n]
    while stack:
        i = stack.pop()
        if i not in found:
            if len(found) == most or trace.ops[i][0] in ("sin", "cos", "atan2", "exp", "log"):
                return None
            found.add(i)
            stack += operands(trace.ops[i])
    return sorted(found)


def native_program(code: str, m):
    """A Warp function ``(b, t, T, P, L, mem, pieces)`` with the given C++ body, for the structs of the namespace `m`."""

    @wp.func_native(code)
    def program(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory, pieces: wp.array[m.Piece]): ...

    return program
