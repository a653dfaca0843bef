"""Traces as native code: straight-line C++ over SIMD registers on a CPU, over plain numbers on a GPU thread."""

from bisect import bisect_right

import numpy as np
import warp as wp

from newton_like.kernels.lanes import FUSE, atan2_code, simd_types, sincos_code
from newton_like.trace import Index, Trace

FLAGS = "-march=native -ffp-contract=off -fno-slp-vectorize -fno-vectorize"
"""How emitted code is compiled on a CPU: it is vector code already, and fuses what the programs say and nothing else."""

CUT = 3000
"""Operations of one C++ function, unless more are asked for. Compilers need much more than twice as long for twice as much
straight-line code; values that are handed over cost some percent."""

SCALAR_CUT = 1000
"""The same for plain numbers, whatever is asked for: CUDA's compiler needs minutes for a function of ten thousand operations."""

MOST_PACKED = 0.8
"""Share of different numbers in a result up to which each of them is written once."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_GROUP_FLAGS = {
    "joint": "joints_vary", "dof": "joints_vary", "body": "bodies_vary", "gain": "gains_vary", "gravity": "gravity_vary",
}  # fmt: skip


class Emitter:
    """Writes traces that read the memory and the parameters of one workspace.

    Args:
        workspace: whose layout and parameters the traces know.
        held: which parameters are constants of the code; those that all articulations share, by default. The others are
            looked up when the code runs, in the copy that all articulations share or in their own.
        cut: operations of one C++ function; ``CUT`` by default.
    """

    def __init__(self, workspace, held: np.ndarray | None = None, cut: int | None = None):
        self.work, self.width, self.real = workspace, workspace.m.width, workspace.m.real
        self.cut = SCALAR_CUT if self.width == 1 else CUT if cut is None else cut
        self.held = workspace.same if held is None else held
        self._loose = held is not None
        self._names = sorted(workspace.layout, key=workspace.layout.get)
        self._starts = [workspace.layout[name] for name in self._names]
        groups = workspace.parameters.at
        self._groups = sorted(groups, key=groups.get)
        self._group_starts = [groups[name] for name in self._groups]

    def parameter(self, i):
        """A parameter's value where it is a constant, else None; see :func:`newton_like.trace.tracing_math`."""
        if isinstance(i, Index):
            return None
        return float(self.work.uniform_values[i]) if self.held[i] else None

    def name(self, place) -> str:
        """The row of the layout that a place in memory belongs to."""
        return self._names[bisect_right(self._starts, place.constant if isinstance(place, Index) else place) - 1]

    def head(self) -> str:
        """Types ``real_t`` and ``V`` and the memory ``M``; the function that the code goes into must call it ``mem``."""
        if self.width > 1:
            return f"{simd_types(self.width, self.real)} typedef simd V; V* M = (V*)mem.data;"
        real = "float" if self.real is wp.float32 else "double"
        return f"typedef {real} real_t; typedef {real} V; {real}* M = mem.data + t; const size_t S = mem.shape[1];"

    def place(self, i) -> str:
        """C++ expression: a place in memory."""
        return f"M[{i}]" if self.width > 1 else f"M[(size_t)({i}) * S]"

    def stores(self, trace: Trace, wanted) -> list[tuple]:
        """What a trace leaves in memory, of the places that are `wanted` and not what they were before."""
        return [
            (place, x)
            for place, x in trace.memory.items()
            if wanted(place) and not (x.node is not None and trace.ops[x.node] == ("load", place))
        ]

    def packed(self, stores: list[tuple], row: str, size: int) -> tuple[list[tuple], np.ndarray] | None:
        """The same stores with every number that is among the first `size` places of a row once, from the row's start on; and
        where each is. None where some are not written, or where it does not pay."""
        start = self.work.layout[row]
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

    def statements(self, trace: Trace, stores: list[tuple]) -> str:
        """C++ statements that carry out what the `stores` need."""
        need = needed(trace, stores)
        if self.width == 1:
            return self._cut(trace, stores, need)
        if len(need) <= self.cut:
            text: list[str] = []
            turned: set[int] = set()
            early, late = _early(trace, stores)
            for n in need:
                text.append(f"const V t{n} = {self._value(trace.ops[n], text, turned)};")
                text += self._writes(early.get(n, ()))
            return "\n".join(text + self._writes([*early.get(None, ()), *late]))
        return self._cut(trace, stores, need)

    def _writes(self, stores) -> list[str]:
        return [f"{self.place(p)} = {self._ref(x.node if x.constant is None else x.constant)};" for p, x in stores]

    def _cut(self, trace: Trace, stores: list[tuple], need: list[int]) -> str:
        """The same as functions that hand values over through an array.

        A number is written where it was computed; but places that are read too are written last, when all has been read.
        """
        parts = [need[i : i + self.cut] for i in range(0, len(need), self.cut)]
        last = len(parts) - 1
        part_of = {n: i for i, part in enumerate(parts) for n in part}
        read = set(trace.loads)
        written: list[list] = [[] for _ in parts]
        used: list[dict[int, None]] = [{} for _ in parts]
        for place, x in stores:
            part = last if place in read else part_of.get(x.node, 0)
            written[part].append((place, x))
            if x.node is not None and part_of[x.node] != part:
                used[part][x.node] = None
        for i, part in enumerate(parts):
            for n in part:
                used[i].update((a, None) for a in operands(trace.ops[n]) if part_of[a] != i)
        spilled = {n: i for i, n in enumerate(dict.fromkeys(n for names in used for n in names))}
        text = [f"V Z[{max(len(spilled), 1)}];"]
        write = self._function if self.width == 1 else _closure
        for i, part in enumerate(parts):
            body, turned = [f"const V t{a} = Z[{spilled[a]}];" for a in used[i]], set()
            for n in part:
                body.append(f"const V t{n} = {self._value(trace.ops[n], body, turned)};")
                if n in spilled:
                    body.append(f"Z[{spilled[n]}] = t{n};")
            body += self._writes(written[i])
            text.append(write(f"part{i}", "\n".join(body)))
        return "\n".join(text)

    def _function(self, name: str, body: str) -> str:
        """C++ statements that call a function with the given body, which is compiled by itself.

        It is told the numbers it names, one by one: structs would be copied into every thread's own memory.
        """
        words = set(_WORD.findall(body))
        told = {"M": "real_t* __restrict__", "S": "const size_t", "Z": "real_t* __restrict__", "varying": "const char*"}
        told.update({"step": "const size_t", "uniform": "const real_t*"})
        told.update({word: "const int" for word in _INTEGERS})
        told.update({f"o.{word[2:]}": "const real_t" for word in words if word.startswith("o_")})
        told = {value: kind for value, kind in told.items() if value.replace(".", "_") in words}
        arguments = ", ".join(f"{kind} {value.replace('.', '_')}" for value, kind in told.items())
        signature = f"static CUDA_CALLABLE WP_NOINLINE void run({arguments})"
        return f"struct {name} {{ {signature} {{ {body} }} }}; {name}::run({', '.join(told)});"

    def _literal(self, x: float) -> str:
        text = repr(float(x))
        if text in ("inf", "-inf", "nan"):
            raise ValueError(f"a constant of the robot is {text}")
        return f"real_t({text})"

    def _ref(self, a) -> str:
        return f"t{a}" if isinstance(a, int) else f"V({self._literal(a)})"

    def _value(self, op, text: list[str], turned: set) -> str:
        name, *args = op
        width = self.width
        if name == "load":
            return self.place(args[0])
        if name == "uniform":
            return f"V(o.{args[0]})"
        if name == "param":
            return self._load_parameter(args[0])
        if name in _INFIX:
            return f"{self._ref(args[0])} {_INFIX[name]} {self._ref(args[1])}"
        if name in ("fma", "fnma"):
            a, b, c = map(self._ref, args)
            minus = "-" if name == "fnma" else ""
            return f"__builtin_elementwise_fma({minus}{a}, {b}, {c})" if width > 1 else f"{c} {minus or '+'} {a} * {b}"
        if name == "detach":
            return self._ref(args[0])
        if name == "neg":
            return f"-{self._ref(args[0])}"
        if name == "rcp":
            return f"real_t(1) / {self._ref(args[0])}"
        if name in ("min", "max"):
            a, b = map(self._ref, args)
            return f"{a} {'<' if name == 'min' else '>'} {b} ? {a} : {b}"
        if name == "where_lt":
            a, b, x, y = map(self._ref, args)
            return f"{a} < {b} ? {x} : {y}"
        if name == "sqrt":
            return (
                f"__builtin_elementwise_sqrt({self._ref(args[0])})" if width > 1 else f"wp::sqrt({self._ref(args[0])})"
            )
        if name in ("sin", "cos"):
            x = args[0]
            if width == 1:
                return f"wp::{name}(t{x})"
            if x not in turned:
                turned.add(x)
                text.append(f"V s{x}, c{x}; " + sincos_code(width, self.real, f"t{x}", f"s{x}", f"c{x}"))
            return f"{name[0]}{x}"
        arguments = [self._ref(a) for a in args]
        if name == "atan2" and width > 1:
            y, x = arguments
            code = atan2_code(width, self.real)
            return f"[&] {{ {FUSE}const simd y = {y}, x = {x}; simd out; {code} return out; }}()"
        if width == 1:
            return f"wp::{name}({', '.join(arguments)})"
        each = ", ".join(f"({a})[i]" for a in arguments)
        return f"[&] {{ V r; for (int i = 0; i < {width}; ++i) r[i] = wp::{name}({each}); return r; }}()"

    def _load_parameter(self, i) -> str:
        address = f"(char*)P.varying.data + b * (size_t)P.varying.strides[0] + ({i}) * (size_t)P.varying.strides[1]"
        if isinstance(i, Index):
            start, end = (self.work.parameters.at[name] for name in ("collider", "hull"))
            return f"V(P.uniform.data[{i}])" if self.work.same[start:end].all() else f"*(V*)({address})"
        if not self._loose:
            return f"*(V*)({address})"
        group = self._groups[bisect_right(self._group_starts, i) - 1]
        return f"P.{_GROUP_FLAGS[group]} ? *(V*)({address}) : V(P.uniform.data[{i}])"


def _early(trace: Trace, stores: list[tuple]) -> tuple[dict, list]:
    """The stores that can be done as soon as their number is known, by its operation, and those that wait until all is read."""
    read = set(trace.loads)
    if any(isinstance(place, Index) for place in (*read, *(p for p, _ in stores))):
        return {}, stores
    early: dict = {}
    for place, x in stores:
        if place not in read:
            early.setdefault(x.node, []).append((place, x))
    return early, [(place, x) for place, x in stores if place in read]


def operands(op: tuple) -> list[int]:
    """The earlier operations that an operation of a trace uses."""
    return [] if op[0] in ("load", "param", "uniform") else [a for a in op[1:] if isinstance(a, int)]


def needed(trace: Trace, stores: list[tuple]) -> list[int]:
    """The operations that the `stores` need, in order."""
    need, stack = set(), [x.node for _, x in stores if x.node is not None]
    while stack:
        n = stack.pop()
        if n not in need:
            need.add(n)
            stack += operands(trace.ops[n])
    return sorted(need)


def native_program(code: str, m):
    """A Warp function ``(b, t, T, P, L, mem)`` with the given C++ body, for the structs of the namespace `m`."""

    @wp.func_native(code)
    def program(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    return program
