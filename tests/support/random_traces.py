"""Programs of random operations."""

from __future__ import annotations

import numpy as np

from newton_like.compiler.adjoint import _RULES
from newton_like.compiler.trace import Trace, tracing_math

METHODS = {"min": "smaller", "max": "larger"}
ARITY = {"fma": 3, "fnma": 3, "where_lt": 4, "add": 2, "sub": 2, "mul": 2, "div": 2, "min": 2, "max": 2, "atan2": 2}
POSITIVE = ("sqrt", "log", "div", "rcp")


def random_trace(rng: np.random.Generator, length: int = 40, inputs: int = 5) -> Trace:
    """A program of all operations on numbers at memory indices 0 .. inputs - 1, with results at indices 10 and 11."""
    trace = Trace()
    m = tracing_math(trace, lambda i: None, np.float64)
    pool = [m.get(None, i, None) for i in range(inputs)]
    # variations are not functions: their value is zero, with a nonzero derivative
    names = [name for name in _RULES if name != "variation"]
    for i in range(length):
        name = names[i % len(names)]
        args = [pool[j] for j in rng.integers(len(pool), size=ARITY.get(name, 1))]
        if name in POSITIVE:
            # away from zero, where the function is smooth
            args[-1] = m.fma(args[-1], args[-1], m.fill(0.5))
        x = getattr(m, METHODS.get(name, name))(*args)
        # bounded, so that finite differences are precise
        pool.append(m.sin(x))
    m.put(None, 10, None, m.add(pool[-1], pool[-2]))
    m.put(None, 11, None, m.mul(pool[-3], pool[1]))
    return trace
