"""Reverse-mode differentiation of traces: straight-line code whose adjoint is straight-line code (Griewank and Walther 2008, chapter 3).

The adjoint recomputes the values before its backward pass, so no values are stored between a function and its adjoint. Minima, maxima
and comparisons pass the adjoint to the selected operand.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from newton_like.compiler.order import LEAVES, needed
from newton_like.compiler.trace import Number, Trace, tracing_math


def adjoint_trace(trace: Trace, outputs: dict, inputs: dict, parameters: dict, parameter, real=np.float32) -> Trace:
    """The trace of ``d_in = (d out / d in)^T d_out``.

    Args:
        trace: the trace of the function.
        outputs: memory index of the adjoint, for every index that the function writes.
        inputs: memory index of the adjoint, for every index that the function reads. Adjoints of unused inputs are not written.
        parameters: for the index of every parameter, pairs of a memory index and a weight; the weighted adjoint is stored there.
        parameter: see :func:`newton_like.compiler.trace.tracing_math`; parameters that are constants in the adjoint may be variable in
            `trace`.
        real: the working precision.

    Raises:
        NotImplementedError: an operation without a derivative.
    """
    result = Trace()
    m = tracing_math(result, parameter, real)
    reached = needed(trace, [(p, trace.memory[p]) for p in outputs if p in trace.memory])
    values: dict[int, Number] = {}

    def value(a) -> Number:
        return values[a] if isinstance(a, int) else Number(constant=a)

    for n in reached:
        name, *args = trace.ops[n]
        if name == "load":
            values[n] = m.get(None, args[0], None)
        elif name == "param":
            values[n] = m.param(None, None, 0, None, args[0])
        elif name == "uniform":
            values[n] = m.fill(args[0])
        elif name == "variation":
            values[n] = m.fill(0.0)
        elif name == "detach":
            values[n] = value(args[0])
        else:
            values[n] = getattr(m, _METHOD.get(name, name))(*map(value, args))
    adjoint: dict[int, Number] = {}
    # whether the stored adjoint has the opposite sign; propagating signs avoids negations
    negative: dict[int, bool] = {}
    flipped = False

    def give(a, x: Number, y: Number | None = None, minus: bool = False) -> None:
        """Adds x, or x y, to the adjoint of operand a; subtracts it if `minus`."""
        if not isinstance(a, int):
            return
        minus = minus != flipped
        if a not in adjoint:
            adjoint[a], negative[a] = x if y is None else m.mul(x, y), minus
        elif y is None:
            adjoint[a] = (m.add if minus == negative[a] else m.sub)(adjoint[a], x)
        else:
            adjoint[a] = (m.fma if minus == negative[a] else m.fnma)(x, y, adjoint[a])

    def signed(n: int) -> Number:
        return m.neg(adjoint[n]) if negative[n] else adjoint[n]

    for place, d_place in outputs.items():
        x = trace.memory.get(place)
        if x is not None and x.node is not None:
            give(x.node, m.get(None, d_place, None))
    for n in reversed(reached):
        name, *args = trace.ops[n]
        if n in adjoint and name not in (*LEAVES, "detach"):
            if name not in _RULES:
                raise NotImplementedError(f"operation {name} has no derivative")
            # valid because the rules are linear in the adjoint
            flipped = negative[n]
            _RULES[name](m, adjoint[n], values[n], args, value, give)
    for n in reached:
        name, *args = trace.ops[n]
        if n in adjoint and name == "load" and args[0] in inputs:
            m.put(None, inputs[args[0]], None, signed(n))
        elif n in adjoint and name == "param":
            for place, weight in parameters.get(args[0], ()):
                m.put(None, place, None, m.mul(m.fill(weight), signed(n)))
    return result


_METHOD = {"min": "smaller", "max": "larger"}


def _sum(m, d, out, args, value, give):
    for a in args:
        give(a, d)


def _sub(m, d, out, args, value, give):
    give(args[0], d)
    give(args[1], d, minus=True)


def _product(m, d, out, args, value, give, minus: bool = False):
    """The rule of a b, a b + c or, if `minus`, c - a b."""
    a, b, *rest = args
    give(a, d, value(b), minus)
    give(b, d, value(a), minus)
    _sum(m, d, out, rest, value, give)


def _div(m, d, out, args, value, give):
    a, b = args
    share = m.div(d, value(b))
    give(a, share)
    give(b, share, out, minus=True)


def _neg(m, d, out, args, value, give):
    give(args[0], d, minus=True)


def _rcp(m, d, out, args, value, give):
    give(args[0], d, m.mul(out, out), minus=True)


def _sqrt(m, d, out, args, value, give):
    give(args[0], m.div(m.mul(d, m.fill(0.5)), out))


def _where_lt(m, d, out, args, value, give):
    a, b, x, y = args
    zero = m.fill(0.0)
    give(x, m.where_lt(value(a), value(b), d, zero))
    give(y, m.where_lt(value(a), value(b), zero, d))


def _smaller(m, d, out, args, value, give):
    _where_lt(m, d, out, [*args, *args], value, give)


def _larger(m, d, out, args, value, give):
    _where_lt(m, d, out, [*reversed(args), *args], value, give)


def _sin(m, d, out, args, value, give):
    give(args[0], d, m.cos(value(args[0])))


def _cos(m, d, out, args, value, give):
    give(args[0], d, m.sin(value(args[0])), minus=True)


def _atan2(m, d, out, args, value, give):
    y, x = args
    share = m.div(d, m.fma(value(x), value(x), m.mul(value(y), value(y))))
    give(y, share, value(x))
    give(x, share, value(y), minus=True)


def _exp(m, d, out, args, value, give):
    give(args[0], d, out)


def _log(m, d, out, args, value, give):
    give(args[0], m.div(d, value(args[0])))


_RULES = {
    "add": _sum, "sub": _sub, "mul": _product, "div": _div, "neg": _neg, "rcp": _rcp, "sqrt": _sqrt,
    "fma": _product, "fnma": partial(_product, minus=True), "min": _smaller, "max": _larger, "where_lt": _where_lt,
    "sin": _sin, "cos": _cos, "atan2": _atan2, "exp": _exp, "log": _log, "variation": _sum,
}  # fmt: skip
