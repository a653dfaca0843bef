"""Code of the kernel of multirotors for one vehicle, with its structure and the parameters that all worlds share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import warp as wp

from newton_like.compiler.cpp import FLAGS, Constants, Emitter
from newton_like.compiler.trace import Trace, tracing_math
from newton_like.kernels.articulation.multirotor.step import PROGRAMS, emitted_kernel, run_stages
from newton_like.kernels.lanes import extended


class FlightEmitter(Emitter):
    """Emits code that reads parameters of a struct ``Vehicle``; `varies`: whether it has lanes for each world."""

    varies = False

    def _load_parameter(self, i) -> str:
        if not self.varies:
            return f"V(P.uniform.data[{i}])"
        return super()._load_parameter(i)


def trace_flight(flight: SimpleNamespace, parameter, real) -> Trace:
    """The programs of a flight traced with its structure.

    Args:
        flight: fields of the struct ``Flight``; arrays as lists.
        parameter: see :func:`newton_like.compiler.trace.tracing_math`.
        real: scalar type of Warp.
    """
    trace = Trace()
    math = tracing_math(trace, parameter, np.float32 if real is wp.float32 else np.float64)
    run_stages(extended(math, PROGRAMS), "b", "t", flight, SimpleNamespace(uniform=None, varying=None, varies=0), None)
    return trace


def specialised_kernel(m, rows: dict[str, int], flight: SimpleNamespace, parameters, held: np.ndarray, outputs: list):
    """The kernel for a flight.

    Args:
        m: the namespace of programs.
        rows: first lanes of the rows of memory.
        flight: see :func:`trace_flight`.
        parameters: the :class:`newton_like.articulation.multirotor.parameters.Parameters`.
        held: mask of the parameters that are constants in the code.
        outputs: names of the rows of results and numbers of an instance in each, in the order of their pieces.
    """
    constants = Constants({"vehicle": 0}, parameters.rows[0], held)
    emitter = FlightEmitter(m, rows, constants)
    emitter.varies = bool(parameters.struct.varies)
    trace = trace_flight(flight, emitter.parameter, m.real)
    wanted = {name for name, _ in outputs}
    stores = emitter.stores(trace, lambda place: emitter.name(place) in wanted)
    code = emitter.head() + emitter.statements(trace, stores, [size for _, size in outputs])
    return emitted_kernel(m, code, FLAGS)
