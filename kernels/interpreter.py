"""Interpreter of a list of operations. It executes long programs for one robot without compiling them.

All lanes execute the same operations, and these are the functions that emitted code and general kernels call, so the results have the
same bits. Equal operations are grouped into runs, stored as the operation's number and the run's length; this improves branch prediction.
"""

import types

import warp as wp

OPERATIONS = (
    "move", "fma", "fnma", "div", "rcp", "sqrt", "min", "max", "where_lt", "sin", "cos", "atan2", "exp", "log", "param",
)  # fmt: skip
"""Operations in the order of their numbers. Sums and products are fused operations with one operand equal to one or zero."""

MOVE, FMA, FNMA, DIV, RCP, SQRT, MIN, MAX, WHERE_LT, SIN, COS, ATAN2, EXP, LOG, PARAM = range(len(OPERATIONS))

READS = {"fma": 3, "fnma": 3, "div": 2, "min": 2, "max": 2, "where_lt": 4, "atan2": 2, "param": 2}
"""Numbers of integers after the row that an operation writes; other operations have one. They are the rows that the operation reads, or
the index and the group of a parameter."""

GROUPS = ("joint", "dof", "body", "gain", "gravity")
"""Groups of parameters in the order of their numbers."""

BODIES, GAINS, GRAVITY = map(GROUPS.index, ("body", "gain", "gravity"))


def interpreter_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_code``, which executes the operations in ``T.code`` on rows of memory."""

    # operations with one operand and with two; Warp unrolls the loops over them
    of_one = (
        (MOVE, m.detach), (RCP, m.rcp), (SQRT, m.sqrt), (SIN, m.sin), (COS, m.cos), (EXP, m.exp), (LOG, m.log),
    )  # fmt: skip
    of_two = ((DIV, m.div), (MIN, m.smaller), (MAX, m.larger), (ATAN2, m.atan2))
    ones, twos = len(of_one), len(of_two)

    @m.func
    def group_varies(group: int, P) -> int:
        varies = int(P.joints_vary)
        if group == BODIES:
            varies = P.bodies_vary
        elif group == GAINS:
            varies = P.gains_vary
        elif group == GRAVITY:
            varies = P.gravity_vary
        return varies

    @wp.func_native("return code.data[i];")
    def told(code: wp.array[int], i: int) -> int: ...

    @m.func
    def row(t, i: int, T, mem) -> m.lane:
        """The value in the row whose index is integer i of the code."""
        return m.get(mem, told(T.code, i), t)

    @m.func
    def eval_code(b, t, T, P, L, mem):
        at = int(0)
        while at < T.code.shape[0]:
            name = told(T.code, at)
            count = told(T.code, at + 1)
            first = at + 2
            reads = int(1)
            if name == FMA:
                reads = 3
                m.fma_run(mem, t, T.code, first, count)
            elif name == FNMA:
                reads = 3
                m.fnma_run(mem, t, T.code, first, count)
            elif name == WHERE_LT:
                reads = 4
                for k in range(count):
                    i = first + 5 * k
                    x = m.where_lt(
                        row(t, i + 1, T, mem), row(t, i + 2, T, mem), row(t, i + 3, T, mem), row(t, i + 4, T, mem)
                    )
                    m.put(mem, told(T.code, i), t, x)
            elif name == PARAM:
                reads = 2
                for k in range(count):
                    i = first + 3 * k
                    varies = group_varies(told(T.code, i + 2), P)
                    x = m.param(P.uniform, P.varying, varies, b, told(T.code, i + 1))
                    m.put(mem, told(T.code, i), t, x)
            for n in range(twos):
                if name == wp.static(of_two[n][0]):
                    reads = 2
                    for k in range(count):
                        i = first + 3 * k
                        x = wp.static(of_two[n][1])(row(t, i + 1, T, mem), row(t, i + 2, T, mem))
                        m.put(mem, told(T.code, i), t, x)
            for n in range(ones):
                if name == wp.static(of_one[n][0]):
                    for k in range(count):
                        i = first + 2 * k
                        x = wp.static(of_one[n][1])(row(t, i + 1, T, mem))
                        m.put(mem, told(T.code, i), t, x)
            at = first + (1 + reads) * count

    return locals()
