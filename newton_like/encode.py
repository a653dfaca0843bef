"""Traces as lists of operations, for :mod:`newton_like.kernels.interpreter`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from newton_like.kernels.interpreter import GROUPS, OPERATIONS, STRIDE
from newton_like.ordering import needed, operands
from newton_like.trace import Index, Trace

_NUMBER = {name: i for i, name in enumerate(OPERATIONS)}


@dataclass(frozen=True, eq=False)
class Code:
    """A trace as data.

    Attributes:
        operations: ``[6 n]`` integers.
        constants: numbers of the first rows of memory that the code needs of its own.
        rows: how many these are in all: behind the constants, numbers found on the way.
    """

    operations: np.ndarray
    constants: np.ndarray
    rows: int


def encode(trace: Trace, stores: list[tuple], start: int, group) -> Code:
    """The list of the operations that the `stores` need.

    Rows are used again once nobody reads what they hold.

    Args:
        trace: of a program without places that are known only when it runs.
        stores: places and numbers, see :meth:`newton_like.emit.Emitter.stores`.
        start: first row of memory that the code may use.
        group: gives the name of a parameter's group by its place.

    Raises:
        NotImplementedError: an operation that only steps have.
    """
    need = needed(trace, stores)
    written = {place for place, _ in stores}
    last: dict[int, int] = {}
    for n in need:
        for a in operands(trace.ops[n]):
            last[a] = n
    end = len(trace)
    for _, x in stores:
        if x.node is not None:
            last[x.node] = end

    constants: dict[tuple, int] = {}
    row_of: dict[int, object] = {}
    free: list[int] = []
    count = 0
    code: list[list] = []

    def row(a):
        """Where an operand is: a row, or the number of a constant or of a register."""
        if isinstance(a, int):
            return row_of[a]
        # zero has two signs
        return ("constant", constants.setdefault((a, math.copysign(1.0, a)), len(constants)))

    for n in need:
        name, *args = trace.ops[n]
        if name == "load":
            if isinstance(args[0], Index):
                raise NotImplementedError("a place in memory that is known only when the code runs")
            if args[0] not in written:
                row_of[n] = args[0]
                continue
            name, given = "move", [args[0]]
        elif name == "param":
            if isinstance(args[0], Index):
                raise NotImplementedError("a parameter whose place is known only when the code runs")
            given = [args[0], GROUPS.index(group(args[0]))]
        elif name == "detach":
            name, given = "move", [row(args[0])]
        elif name in _NUMBER:
            given = [row(a) for a in args]
        else:
            raise NotImplementedError(f"operation {name}, which only steps have")
        for a in dict.fromkeys(operands(trace.ops[n])):
            # what is not read again gives its row to the result
            if last[a] == n and isinstance(row_of[a], tuple):
                free.append(row_of[a][1])
        if free:
            at = free.pop()
        else:
            at, count = count, count + 1
        row_of[n] = ("register", at)
        code.append([_NUMBER[name], row_of[n], *given])
    for place, x in stores:
        code.append([_NUMBER["move"], place, row(x.node if x.constant is None else x.constant)])

    first = {"constant": start, "register": start + len(constants)}
    table = np.zeros((len(code), STRIDE), dtype=np.int32)
    for line, numbers in zip(table, code, strict=True):
        line[: len(numbers)] = [first[i[0]] + i[1] if isinstance(i, tuple) else i for i in numbers]
    return Code(table.reshape(-1), np.array([a for a, _ in constants], dtype=np.float64), len(constants) + count)
