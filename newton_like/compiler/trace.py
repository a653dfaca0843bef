"""Tracer: runs a program in Python on symbolic numbers, for one robot with a known tree and known constants.

The trace is straight-line code for this robot: loops are unrolled, branches on the tree are resolved, and zeros, ones and repeated
subexpressions are eliminated. `newton_like.compiler.cpp` emits it as native code.
"""

from __future__ import annotations

import math
import types
from dataclasses import make_dataclass
from fractions import Fraction
from functools import cache

import numpy as np

_FOLD = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "rcp": lambda a: 1.0 / a,
    "sqrt": math.sqrt,
    "min": lambda a, b: a if a < b else b,
    "max": lambda a, b: a if a > b else b,
    "where_lt": lambda a, b, x, y: x if a < b else y,
    "sin": math.sin,
    "cos": math.cos,
    "atan2": math.atan2,
    "exp": math.exp,
    "log": math.log,
    "detach": lambda a: a,
    "variation": lambda a: 0.0,
}
"""Constant folding of each operation."""

_UNITS = (0.0, 1.0, -1.0)
"""Factors without a multiplication."""


class Index:
    """An integer that is known only at run time: a constant plus multiples of named integers."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: tuple[tuple[str, int], ...]):
        self.constant, self.terms = constant, terms

    def __add__(self, other):
        if isinstance(other, Index):
            terms = dict(self.terms)
            for name, k in other.terms:
                terms[name] = terms.get(name, 0) + k
            return Index(self.constant + other.constant, tuple(sorted(terms.items())))
        return Index(self.constant + int(other), self.terms)

    def __sub__(self, other: int):
        return Index(self.constant - int(other), self.terms)

    def __mul__(self, k):
        return Index(self.constant * int(k), tuple((name, n * int(k)) for name, n in self.terms))

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        return isinstance(other, Index) and (self.constant, self.terms) == (other.constant, other.terms)

    def __hash__(self):
        return hash((self.constant, self.terms))

    def __str__(self):
        return " + ".join([str(self.constant), *(f"{k} * {name}" for name, k in self.terms)])


class Number:
    """A constant, or the result of operation `node` of a trace."""

    __slots__ = ("constant", "node")

    def __init__(self, constant: float | None = None, node: int | None = None):
        self.constant, self.node = constant, node


class Trace:
    """Operations without repetitions, and their reads and writes of memory.

    Attributes:
        ops: ``(operation, *arguments)``; an argument is the index of an earlier operation or a float constant.
        loads: memory indices that are read before they are written.
        memory: the last number written to, or read from, each memory index.
    """

    def __init__(self):
        self.ops: list[tuple] = []
        self._seen: dict[tuple, int] = {}
        self.loads: list = []
        self.memory: dict = {}

    def emit(self, op: str, *args) -> Number:
        """The result of an operation; an equal operation is reused."""
        entry = (op, *args)
        # types are part of the key: operation 1 is not the constant 1.0
        return self._add(entry, (entry, tuple(map(type, args))))

    def emit_nodes(self, *entry) -> Number:
        """The result of an operation, given as its name and the indices of earlier operations."""
        return self._add(entry, entry)

    def _add(self, entry: tuple, key: tuple) -> Number:
        node = self._seen.get(key)
        if node is None:
            node = self._seen[key] = len(self.ops)
            self.ops.append(entry)
        return Number(None, node)

    def __len__(self) -> int:
        return len(self.ops)


@cache
def _record(name: str, fields: tuple[str, ...]) -> type:
    return make_dataclass(name, fields, eq=False, repr=False, slots=True)


def _key(a: Number):
    return a.node if a.constant is None else a.constant


def _exact_fma(a: float, b: float, c: float, real) -> float:
    """a b + c with one rounding to double; for single precision rounded to odd, so that the second rounding, to single precision, gives the
    correctly rounded result."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    x = float(exact)
    if real is np.float32 and Fraction(x) != exact and np.float64(x).view(np.int64) % 2 == 0:
        x = float(np.nextafter(x, np.inf if exact > Fraction(x) else -np.inf))
    return x


def tracing_math(trace: Trace, parameter, real=np.float32, varied: bool = False) -> types.SimpleNamespace:
    """The namespace ``m`` of symbolic numbers whose operations are recorded in `trace`.

    Constants are folded in the working precision, operation by operation, and a fused multiply-add stays one operation, so
    a specialised program gives the same bits as the general one.

    Args:
        parameter: function from the index of a parameter (int or Index) to its value if it is a constant, else None.
        real: the working precision, ``np.float32`` or ``np.float64``.
        varied: whether the trace is for differentiation only. Programs then use ``variation(a)``, which has the value zero and the
            derivative of a.
    """

    emit, emit_nodes, ops = trace.emit, trace.emit_nodes, trace.ops

    def constant(x) -> Number:
        return Number(constant=float(real(x)))

    def fill(a) -> Number:
        return trace.emit("uniform", a) if isinstance(a, str) else constant(a)

    def operation(name):
        fold = _FOLD[name]

        def op(*args):
            if all(a.constant is not None for a in args):
                return constant(fold(*(a.constant for a in args)))
            return emit(name, *map(_key, args))

        return op

    plain = {name: operation(name) for name in _FOLD}

    def add(a, b):
        if a.constant == 0.0:
            return b
        if b.constant == 0.0:
            return a
        if b.constant is None and ops[b.node][0] == "neg":
            return sub(a, Number(node=ops[b.node][1]))
        if a.constant is None and b.constant is None:
            i, j = a.node, b.node
            return emit_nodes("add", i, j) if i <= j else emit_nodes("add", j, i)
        return plain["add"](a, b)

    def sub(a, b):
        if b.constant == 0.0:
            return a
        if a.constant == 0.0:
            return neg(b)
        if a.node is not None and a.node == b.node:
            return constant(0.0)
        if a.constant is None and b.constant is None:
            return emit_nodes("sub", a.node, b.node)
        return plain["sub"](a, b)

    def neg(a):
        if a.constant is None and trace.ops[a.node][0] == "neg":
            return Number(node=trace.ops[a.node][1])
        return plain["neg"](a)

    def mul(a, b):
        if a.constant is None and b.constant is None:
            i, j = a.node, b.node
            return emit_nodes("mul", i, j) if i <= j else emit_nodes("mul", j, i)
        for x, y in ((a, b), (b, a)):
            if x.constant == 0.0:
                return constant(0.0)
            if x.constant == 1.0:
                return y
            if x.constant == -1.0:
                return neg(y)
        return plain["mul"](a, b)

    def fused(name, a, b, c):
        if a.constant is None and b.constant is None:
            if c.constant is None:
                i, j = a.node, b.node
                return emit_nodes(name, i, j, c.node) if i <= j else emit_nodes(name, j, i, c.node)
            if a.node > b.node:
                a, b = b, a
        if c.constant == 0.0 or a.constant in _UNITS or b.constant in _UNITS:
            return add(mul(a, b), c) if name == "fma" else sub(c, mul(a, b))
        if a.constant is not None and b.constant is not None and c.constant is not None:
            return constant(_exact_fma(a.constant if name == "fma" else -a.constant, b.constant, c.constant, real))
        return emit(name, _key(a), _key(b), _key(c))

    def fma(a, b, c):
        return fused("fma", a, b, c)

    def fnma(a, b, c):
        return fused("fnma", a, b, c)

    def where_lt(a, b, x, y):
        if _key(x) == _key(y) and (x.constant is None) == (y.constant is None):
            return x
        return plain["where_lt"](a, b, x, y)

    def shrink(bound, square):
        if bound.constant is not None and square.constant is not None:
            length = plain["sqrt"](square)
            return where_lt(bound, length, plain["div"](bound, length), constant(1.0))
        return emit("shrink", _key(bound), _key(square))

    def any_lt(a, b):
        """Whether a < b may hold in some lane."""
        return a.constant is None or b.constant is None or a.constant < b.constant

    def get(mem, i, t):
        if i not in trace.memory:
            trace.loads.append(i)
            trace.memory[i] = trace.emit("load", i)
        return trace.memory[i]

    def put(mem, i, t, x):
        trace.memory[i] = x

    def param(uniform, varying, varies, b, i):
        known = parameter(i)
        return trace.emit("param", i) if known is None else constant(known)

    def struct(cls):
        return _record(cls.__name__, tuple(cls.__annotations__))

    def func(f):
        return f

    shared = func
    rcp, sqrt, sin, cos, div = (plain[name] for name in ("rcp", "sqrt", "sin", "cos", "div"))
    atan2, exp, log, smaller, larger = (plain[name] for name in ("atan2", "exp", "log", "min", "max"))
    detach, variation = plain["detach"], plain["variation"]
    lane, memory = Number, None
    own = ("trace", "parameter", "operation", "plain", "fused", "emit", "emit_nodes", "ops")
    return types.SimpleNamespace(**{k: v for k, v in locals().items() if k not in own})
