"""A program that does what a list of operations says: long programs of one robot without a compiler.

A list is read at the same pace by all lanes, and every operation is the one that emitted code and general kernels use, so that
the bits are the same. It costs some nanoseconds an operation, several times what compiled code needs.
"""

import types

OPERATIONS = (
    "move", "add", "sub", "mul", "div", "neg", "rcp", "sqrt", "fma", "fnma", "min", "max", "where_lt", "sin", "cos", "atan2", "exp",
    "log", "param",
)  # fmt: skip
"""Operations in the order of their numbers."""

(
    MOVE, ADD, SUB, MUL, DIV, NEG, RCP, SQRT, FMA, FNMA, MIN, MAX, WHERE_LT, SIN, COS, ATAN2, EXP, LOG, PARAM,
) = range(len(OPERATIONS))  # fmt: skip

STRIDE = 6
"""Integers of an operation: its number, the row of memory that it writes, and up to four rows that it reads; of a parameter its
place and its group."""

GROUPS = ("joint", "dof", "body", "gain", "gravity")
"""Groups of parameters in the order of their numbers."""

BODIES, GAINS, GRAVITY = map(GROUPS.index, ("body", "gain", "gravity"))


def interpreter_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """``eval_code``: the operations that ``T.code`` lists, on rows of memory."""

    @m.func
    def group_varies(group: int, P: m.Params) -> int:
        varies = int(P.joints_vary)
        if group == BODIES:
            varies = P.bodies_vary
        elif group == GAINS:
            varies = P.gains_vary
        elif group == GRAVITY:
            varies = P.gravity_vary
        return varies

    @m.func
    def eval_code(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        for n in range(T.code.shape[0] // STRIDE):
            i = n * STRIDE
            name = T.code[i]
            to = T.code[i + 1]
            x = T.code[i + 2]
            y = T.code[i + 3]
            z = T.code[i + 4]
            if name == PARAM:
                m.put(mem, to, t, m.param(P.uniform, P.varying, group_varies(y, P), b, x))
            elif name == MOVE:
                m.put(mem, to, t, m.get(mem, x, t))
            elif name == ADD:
                m.put(mem, to, t, m.add(m.get(mem, x, t), m.get(mem, y, t)))
            elif name == SUB:
                m.put(mem, to, t, m.sub(m.get(mem, x, t), m.get(mem, y, t)))
            elif name == MUL:
                m.put(mem, to, t, m.mul(m.get(mem, x, t), m.get(mem, y, t)))
            elif name == FMA:
                m.put(mem, to, t, m.fma(m.get(mem, x, t), m.get(mem, y, t), m.get(mem, z, t)))
            elif name == FNMA:
                m.put(mem, to, t, m.fnma(m.get(mem, x, t), m.get(mem, y, t), m.get(mem, z, t)))
            elif name == NEG:
                m.put(mem, to, t, m.neg(m.get(mem, x, t)))
            elif name == DIV:
                m.put(mem, to, t, m.div(m.get(mem, x, t), m.get(mem, y, t)))
            elif name == RCP:
                m.put(mem, to, t, m.rcp(m.get(mem, x, t)))
            elif name == SQRT:
                m.put(mem, to, t, m.sqrt(m.get(mem, x, t)))
            elif name == MIN:
                m.put(mem, to, t, m.smaller(m.get(mem, x, t), m.get(mem, y, t)))
            elif name == MAX:
                m.put(mem, to, t, m.larger(m.get(mem, x, t), m.get(mem, y, t)))
            elif name == WHERE_LT:
                last = m.get(mem, T.code[i + 5], t)
                m.put(mem, to, t, m.where_lt(m.get(mem, x, t), m.get(mem, y, t), m.get(mem, z, t), last))
            elif name == SIN:
                m.put(mem, to, t, m.sin(m.get(mem, x, t)))
            elif name == COS:
                m.put(mem, to, t, m.cos(m.get(mem, x, t)))
            elif name == ATAN2:
                m.put(mem, to, t, m.atan2(m.get(mem, x, t), m.get(mem, y, t)))
            elif name == EXP:
                m.put(mem, to, t, m.exp(m.get(mem, x, t)))
            elif name == LOG:
                m.put(mem, to, t, m.log(m.get(mem, x, t)))

    return types.SimpleNamespace(**{**vars(m), "eval_code": eval_code, "group_varies": group_varies})
