"""Constraint rows of single degrees of freedom: effort limits, friction loss, velocity limits and position limits.

All four act along the same direction e_i, so they share one whitened row y and one response A = y.y, and are swept together by
projected Gauss-Seidel: with u = y.z the velocity of the dof,

    effort limit     d such that |push - slope u + d| <= limit                (an impulse; the drive is linear in u)
    friction loss    |p| <= friction dt,  p drives u to zero
    velocity limit   |u| <= limit
    position limit   one-sided; beyond the limit an implicit spring-damper pushes back, apart from it gap + dt u >= 0

A dof's row acts in a world only where that world needs it, whatever its neighbours in the block do.
"""

import types

from newton_like.kernels.tree import EFFORT, FRICTION, POSITION, VELOCITY

ROW = 8  # on, response, 1 / response, drive inverse, side of the limit, its mass, softness and target


def dof_row_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``dof_need``, ``dof_build`` and ``dof_sweep``."""
    real = m.real

    @m.func
    def clamp(x: m.lane, bound: m.lane) -> m.lane:
        return m.larger(m.neg(bound), m.smaller(x, bound))

    @m.func
    def absolute(x: m.lane) -> m.lane:
        return m.larger(x, m.neg(x))

    @m.func
    def drive_effort(b: int, t: int, i: int, dt: m.lane, P: m.Params, L: m.Layout, mem: m.memory) -> m.lane:
        """The drive's effort at the velocity in v, not yet clipped."""
        slope = m.fma(dt, m.gain(P, b, i, 4), m.gain(P, b, i, 5))
        return m.fnma(slope, m.get(mem, L.v + i, t), m.get(mem, L.push + i, t))

    @m.func
    def dof_need(b: int, t: int, i: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory) -> m.lane:
        """Negative where dof i needs its row, judged by the velocity in v."""
        limits = T.dof_limits[i]
        v = absolute(m.get(mem, L.v + i, t))
        need = m.fill(real(1.0))
        if limits & EFFORT:
            need = m.smaller(need, m.sub(m.gain(P, b, i, 7), absolute(drive_effort(b, t, i, dt, P, L, mem))))
        if limits & FRICTION:
            need = m.smaller(need, m.neg(m.gain(P, b, i, 9)))
        if limits & VELOCITY:
            need = m.smaller(need, m.sub(m.gain(P, b, i, 8), v))
        if limits & POSITION:
            q = m.get(mem, L.q + T.dof_q[i], t)
            gap = m.smaller(m.sub(q, m.gain(P, b, i, 10)), m.sub(m.gain(P, b, i, 11), q))
            need = m.smaller(need, m.fnma(m.mul(m.fill(real(2.0)), dt), v, gap))
        return need

    @m.func
    def dof_violation(b: int, t: int, i: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory) -> m.lane:
        """Negative where the velocity in v breaks a limit of dof i whose row did not act."""
        limits = T.dof_limits[i]
        more = m.fill(real(1.0001))
        need = m.fill(real(1.0))
        if limits & EFFORT:
            effort = absolute(drive_effort(b, t, i, dt, P, L, mem))
            need = m.smaller(need, m.sub(m.mul(more, m.gain(P, b, i, 7)), effort))
        if limits & VELOCITY:
            need = m.smaller(need, m.sub(m.mul(more, m.gain(P, b, i, 8)), absolute(m.get(mem, L.v + i, t))))
        if limits & POSITION:
            q = m.fma(dt, m.get(mem, L.v + i, t), m.get(mem, L.q + T.dof_q[i], t))
            gap = m.smaller(m.sub(q, m.gain(P, b, i, 10)), m.sub(m.gain(P, b, i, 11), q))
            need = m.smaller(need, m.add(gap, m.fill(real(1.0e-5))))
        zero = m.fill(real(0.0))
        return m.where_lt(m.get(mem, L.dof_need + i, t), zero, zero, need)

    @m.func
    def dof_build(b: int, t: int, i: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """The row of dof i in the worlds whose dof_need is negative, warm-started."""
        limits = T.dof_limits[i]
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        at = L.dof_row + ROW * i
        y = L.dof_y + T.reach * i
        p = L.dof_impulse + 4 * i
        on = m.where_lt(m.get(mem, L.dof_need + i, t), zero, one, zero)
        depth = T.depth[i]
        for d in range(depth):
            m.put(mem, y + d, t, zero)
        m.put(mem, y + depth, t, one)
        m.half_solve(t, i, y, T, L, mem)
        a = m.row_product(t, i, y, y, T, mem)
        slope = m.mul(dt, m.fma(dt, m.gain(P, b, i, 4), m.gain(P, b, i, 5)))
        m.put(mem, at, t, on)
        m.put(mem, at + 1, t, a)
        m.put(mem, at + 2, t, m.rcp(a))
        m.put(mem, at + 3, t, m.rcp(m.larger(m.fnma(slope, a, one), m.fill(real(1.0e-6)))))
        total = zero
        for j in range(3):
            warm = m.mul(on, m.mul(dt, m.get(mem, p + j, t)))
            m.put(mem, p + j, t, warm)
            total = m.add(total, warm)
        if limits & POSITION:
            q = m.get(mem, L.q + T.dof_q[i], t)
            low = m.sub(q, m.gain(P, b, i, 10))
            high = m.sub(m.gain(P, b, i, 11), q)
            side = m.where_lt(high, low, m.fill(real(-1.0)), one)
            gap = m.smaller(low, high)
            # as for contacts: an implicit spring-damper per unit of effective mass
            omega = m.mul(dt, m.gain(P, b, i, 12))
            a1 = m.fma(m.fill(real(2.0)), m.gain(P, b, i, 13), omega)
            a2 = m.mul(omega, a1)
            a3 = m.rcp(m.add(one, a2))
            push = m.neg(m.div(m.mul(gap, omega), m.mul(dt, a1)))
            target = m.where_lt(gap, zero, push, m.neg(m.div(gap, dt)))
            m.put(mem, at + 4, t, side)
            m.put(mem, at + 5, t, m.mul(m.where_lt(gap, zero, m.mul(a2, a3), one), m.rcp(a)))
            m.put(mem, at + 6, t, m.where_lt(gap, zero, a3, zero))
            m.put(mem, at + 7, t, target)
            # an impulse remembered from the other limit is none of this one's
            warm = m.mul(on, m.mul(dt, m.get(mem, p + 3, t)))
            warm = m.mul(side, m.larger(zero, m.mul(side, warm)))
            m.put(mem, p + 3, t, warm)
            total = m.add(total, warm)
        m.chain_add(t, i, y, total, T, L, mem)

    @m.func
    def dof_sweep(b: int, t: int, i: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """One Gauss-Seidel visit of dof i."""
        limits = T.dof_limits[i]
        zero = m.fill(real(0.0))
        at = L.dof_row + ROW * i
        y = L.dof_y + T.reach * i
        p = L.dof_impulse + 4 * i
        go = m.mul(m.get(mem, L.go, t), m.get(mem, at, t))
        a = m.get(mem, at + 1, t)
        inverse = m.get(mem, at + 2, t)
        u = m.chain_dot(t, i, y, T, L, mem)
        total = zero
        if limits & EFFORT:
            old = m.get(mem, p, t)
            slope = m.mul(dt, m.fma(dt, m.gain(P, b, i, 4), m.gain(P, b, i, 5)))
            bound = m.mul(dt, m.gain(P, b, i, 7))
            drive = m.fnma(slope, m.fnma(a, old, u), m.mul(dt, m.get(mem, L.push + i, t)))
            change = m.mul(go, m.sub(m.mul(m.sub(clamp(drive, bound), drive), m.get(mem, at + 3, t)), old))
            m.put(mem, p, t, m.add(old, change))
            total = m.add(total, change)
            u = m.fma(a, change, u)
        if limits & FRICTION:
            old = m.get(mem, p + 1, t)
            change = m.mul(go, m.sub(clamp(m.fnma(u, inverse, old), m.mul(dt, m.gain(P, b, i, 9))), old))
            m.put(mem, p + 1, t, m.add(old, change))
            total = m.add(total, change)
            u = m.fma(a, change, u)
        if limits & VELOCITY:
            old = m.get(mem, p + 2, t)
            free = m.fnma(a, old, u)
            change = m.mul(go, m.sub(m.mul(m.sub(clamp(free, m.gain(P, b, i, 8)), free), inverse), old))
            m.put(mem, p + 2, t, m.add(old, change))
            total = m.add(total, change)
            u = m.fma(a, change, u)
        if limits & POSITION:
            side = m.get(mem, at + 4, t)
            old = m.mul(side, m.get(mem, p + 3, t))
            error = m.mul(m.sub(m.mul(side, u), m.get(mem, at + 7, t)), m.get(mem, at + 5, t))
            new = m.larger(zero, m.fnma(m.get(mem, at + 6, t), old, m.sub(old, error)))
            change = m.mul(side, m.mul(go, m.sub(new, old)))
            m.put(mem, p + 3, t, m.add(m.get(mem, p + 3, t), change))
            total = m.add(total, change)
        m.chain_add(t, i, y, total, T, L, mem)

    own = ("m", "real")
    return types.SimpleNamespace(**{**vars(m), **{k: v for k, v in locals().items() if k not in own}})
