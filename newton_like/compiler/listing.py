"""Encodes traces as lists of operations for :mod:`newton_like.kernels.interpreter`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby

import numpy as np

from newton_like.compiler.order import operands, ordered
from newton_like.compiler.trace import Index, Trace
from newton_like.kernels.interpreter import GROUPS, OPERATIONS, READS

_NUMBER = {name: i for i, name in enumerate(OPERATIONS)}

_FUSED = {
    "mul": ("fma", 0, 1, 0.0),
    "add": ("fma", 0, 1.0, 1),
    "sub": ("fnma", 1, 1.0, 0),
    "neg": ("fnma", 0, 1.0, 0.0),
}
"""Operations as fused multiply-adds; integers are indices of operands. This doubles the length of runs, and only the sign of a zero may
differ."""

WINDOW = 256
"""Number of operations among which equal ones are grouped; more give hardly longer runs."""


@dataclass(frozen=True, eq=False)
class Code:
    """A trace as data.

    Attributes:
        operations: integers. For every run of equal operations: the operation's number and the length of the run; then for each operation
            the row that it writes and its arguments, see :data:`newton_like.kernels.interpreter.READS`.
        constants: values of the first memory rows of the code.
        rows: number of memory rows of the code: constants, then intermediate results.
    """

    operations: np.ndarray
    constants: np.ndarray
    rows: int


def encode(trace: Trace, stores: list[tuple], start: int, group) -> Code:
    """Encodes the operations that compute the `stores`.

    A row is reused after the last operation that reads it.

    Args:
        trace: the trace of a program whose memory indices are all constants.
        stores: pairs of a memory index and a number, see :meth:`newton_like.compiler.cpp.Emitter.stores`.
        start: first memory row that the code may use.
        group: function from the index of a parameter to the name of its group.

    Raises:
        NotImplementedError: an operation that only steps have.
    """
    need = in_runs(trace, ordered(trace, stores))
    written = {place for place, _ in stores}
    last = {a: n for n in need for a in operands(trace.ops[n])}
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
        """Location of an operand: a memory row, or the number of a constant or of a register."""
        if isinstance(a, int):
            return row_of[a]
        # the sign distinguishes 0.0 from -0.0, which compare equal
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
        elif name in _FUSED:
            name, *places = _FUSED[name]
            given = [row(args[i] if isinstance(i, int) else i) for i in places]
        elif name in _NUMBER:
            given = [row(a) for a in args]
        else:
            raise NotImplementedError(f"operation {name}, which only steps have")
        for a in dict.fromkeys(operands(trace.ops[n])):
            # a row that is not read again is free for the result
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
    table: list[int] = []
    for number, run in groupby(code, key=lambda line: line[0]):
        run = list(run)
        table += [number, len(run)]
        for _, *told in run:
            assert len(told) == 1 + READS.get(OPERATIONS[number], 1)
            table += [first[i[0]] + i[1] if isinstance(i, tuple) else i for i in told]
    values = np.array([a for a, _ in constants], dtype=np.float64)
    return Code(np.array(table, dtype=np.int32), values, len(constants) + count)


def in_runs(trace: Trace, order: list[int]) -> list[int]:
    """Reorders operations within a window of `WINDOW`, respecting dependencies, so that equal operations are consecutive."""
    place = {n: i for i, n in enumerate(order)}
    users: dict[int, list[int]] = {n: [] for n in order}
    waiting = {}
    for n in order:
        uses = set(operands(trace.ops[n]))
        waiting[n] = len(uses)
        for a in uses:
            users[a].append(n)

    def kind(n: int) -> str:
        name = trace.ops[n][0]
        return _FUSED[name][0] if name in _FUSED else name

    # heaps of positions: operations that can be executed, by kind, and operations beyond the window
    ready: dict[str, list[int]] = {}
    ahead = [i for i, n in enumerate(order) if not waiting[n]]
    done, runs, first = [False] * len(order), [], 0
    while len(runs) < len(order):
        while done[first]:
            first += 1
        while ahead and ahead[0] < first + WINDOW:
            i = heappop(ahead)
            heappush(ready.setdefault(kind(order[i]), []), i)
        name = max(ready, key=lambda name: len(ready[name]))
        run = ready.pop(name)
        while run:
            i = heappop(run)
            done[i] = True
            runs.append(order[i])
            for u in users[order[i]]:
                waiting[u] -= 1
                if not waiting[u]:
                    same = kind(u) == name and place[u] < first + WINDOW
                    heappush(run if same else ahead, place[u])
    return runs
