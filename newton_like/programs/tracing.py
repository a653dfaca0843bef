"""Programs over symbolic numbers, as one robot's tree and constants make them."""

from __future__ import annotations

import types

import numpy as np
import warp as wp

from newton_like.compiler.trace import Trace, tracing_math
from newton_like.kernels.programs import assemble
from newton_like.programs.workspace import Workspace


def traced_programs(trace: Trace, parameter, real=np.float32, varied: bool = False) -> types.SimpleNamespace:
    """All programs over symbolic numbers, see :func:`tracing_math`."""
    return assemble(tracing_math(trace, parameter, real, varied))


def known_tree(workspace) -> types.SimpleNamespace:
    """The ``Tree`` of a workspace as a program that is traced sees it."""
    return types.SimpleNamespace(**workspace.numbers, **{k: [int(x) for x in v] for k, v in workspace.arrays.items()})


def known_parameters(workspace) -> types.SimpleNamespace:
    """The ``Params`` of a workspace as a program that is traced sees them: places, whose numbers `tracing_math` is asked for."""
    at = workspace.parameters.at
    groups = ("joints", "bodies", "gains", "colliders", "planes", "gravity", "laws", "weights")
    return types.SimpleNamespace(
        uniform=None, varying=None, **{f"{k}_at": i for k, i in at.items()}, **{f"{k}_vary": 0 for k in groups}
    )


def trace_program(name: str, work: Workspace, parameter, varied: bool = False) -> Trace:
    """A program traced for the robot of a workspace; `varied`: to be differentiated, see `tracing_math`."""
    trace = Trace()
    m = traced_programs(trace, parameter, np.float32 if work.m.real is wp.float32 else np.float64, varied)
    getattr(m, name)("b", "t", known_tree(work), known_parameters(work), types.SimpleNamespace(**work.layout), None)
    return trace
