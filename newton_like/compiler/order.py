"""Selects the operations of a trace that are needed, and orders them so that few results are live at a time.

Straight-line code of thousands of operations cannot keep its values in registers, nor all of them in the nearest cache. In this order the
operations of one limb of a robot, forward and backward, are together.
"""

from __future__ import annotations

from newton_like.compiler.trace import Trace

MOST = 30_000
"""Largest number of operations that `ordered` reorders; its memory grows with the square of the number."""

LEAVES = ("load", "param", "uniform")
"""Operations that load a number and can be repeated anywhere."""


def operands(op: tuple) -> list[int]:
    """The earlier operations that an operation of a trace uses."""
    return [] if op[0] in LEAVES else [a for a in op[1:] if isinstance(a, int)]


def needed(trace: Trace, stores: list[tuple]) -> list[int]:
    """The operations that the `stores`, pairs of a memory index and a number, depend on, in the order of the trace."""
    need, stack = set(), [x.node for _, x in stores if x.node is not None]
    while stack:
        n = stack.pop()
        if n not in need:
            need.add(n)
            stack += operands(trace.ops[n])
    return sorted(need)


def ordered(trace: Trace, stores: list[tuple]) -> list[int]:
    """The operations of :func:`needed` in an order with few live results. The next store is the one that needs the fewest further
    operations. The operands of an operation are computed in order of decreasing need. An operation that is the last reader of a result is
    executed as soon as possible. Beyond `MOST` operations the order is that of the trace."""
    need = needed(trace, stores)
    if len(need) > MOST:
        return need
    uses = {n: list(dict.fromkeys(operands(trace.ops[n]))) for n in need}
    users: dict[int, list[int]] = {n: [] for n in need}
    # an operation and those that it depends on, as bits of an integer
    bit = {n: 1 << i for i, n in enumerate(need)}
    follows: dict[int, int] = {}
    for n in need:
        follows[n] = bit[n]
        for a in uses[n]:
            follows[n] |= follows[a]
            users[a].append(n)
    readers = {n: len(users[n]) for n in need}
    waiting = {n: len(uses[n]) for n in need}
    left, done, order = (1 << len(need)) - 1, set(), []

    def last_reader(n: int) -> bool:
        return any(readers[a] == 1 and trace.ops[a][0] not in LEAVES for a in uses[n])

    def do(n: int) -> None:
        nonlocal left
        stack = [n]
        while stack:
            n = stack.pop()
            if n in done:
                continue
            done.add(n)
            order.append(n)
            left ^= bit[n]
            for a in uses[n]:
                readers[a] -= 1
            for u in users[n]:
                waiting[u] -= 1
            near = [*users[n], *(u for a in uses[n] if readers[a] == 1 for u in users[a])]
            stack += [u for u in near if u not in done and not waiting[u] and last_reader(u)]

    wanted = sorted({x.node for _, x in stores if x.node is not None})
    while wanted:
        stack = [min(wanted, key=lambda n: (follows[n] & left).bit_count())]
        while stack:
            n = stack[-1]
            ahead = [a for a in uses[n] if a not in done]
            if n in done or not ahead:
                do(stack.pop())
            else:
                stack.append(max(ahead, key=lambda a: (follows[a] & left).bit_count()))
        wanted = [n for n in wanted if n not in done]
    return order


def parts(trace: Trace, order: list[int], most: int) -> list[list[int]]:
    """Splits an order into parts of at most `most` operations, at positions with few live results."""
    last = {a: i for i, n in enumerate(order) for a in operands(trace.ops[n])}
    waiting, ends = [], [0] * (len(order) + 1)
    now = 0
    for i, n in enumerate(order):
        now -= ends[i]
        waiting.append(now)
        if trace.ops[n][0] not in LEAVES and last.get(n, i) > i:
            now += 1
            ends[last[n]] += 1
    pieces, start = [], 0
    while len(order) - start > most:
        cut = min(range(start + most // 2, start + most + 1), key=lambda i: (waiting[i], -i))
        pieces.append(order[start:cut])
        start = cut
    return [*pieces, order[start:]]
