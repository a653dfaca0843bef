"""Constraint rows of single degrees of freedom: friction loss, velocity limits and position limits.

All act along the same direction e_i, so they share one whitened row y and one response A = y.y, and are swept together by
projected Gauss-Seidel: with u = y.z the velocity of the dof,

    friction loss    |p| <= friction dt,  p drives u to zero; the friction of a dof that moves as the step begins may be smaller
    velocity limit   |u| <= limit
    position limit   one-sided: an implicit spring-damper, as for contacts, aims at gap + dt u = 0 while apart; or soft as in MuJoCo, see
                     `kernels.solvers.rows.contact_law`, with the inverse inertia of the dof in the initial pose in the place of the
                     inverse masses. The response A is that of the pose of the step, and with implicit dampers and springs

Velocity and position limits (the *hard* ones) act in a world only where that world needs them, whatever its neighbours in the
block do; a row without them is shorter.
"""

import types

from newton_like.kernels.rows import MASS, SOFTNESS, TARGET

from newton_like.kernels.tree import (  # isort: skip
    FRICTION, FRICTION_LOSS, FRICTION_RATIO, LIMIT_DAMPING_RATIO, LIMIT_LOWER, LIMIT_OMEGA, LIMIT_UPPER, POSITION, REST_SPEED, SLIP,
    VELOCITY, VELOCITY_LIMIT,
)  # fmt: skip

# MASS, SOFTNESS and TARGET of the position limit first, and its SIDE.
DOF_ROW = 7
HARD, RESPONSE, INVERSE_RESPONSE, SIDE = range(TARGET + 1, DOF_ROW)

# Multiples of velocity limits. A step is solved again where sweeps leave a velocity above SETTLED; where one is above HELD after that,
# `slow_down` slows all motion; and `hold_speeds` takes away the rest. Sweeps hardly settle rows that are nearly parallel, as those of a
# chain of massless links near a singular configuration.
SETTLED, HELD = 1.2, 1.05

# the impulses of a dof
DOF_IMPULSES = 3
OF_FRICTION, OF_VELOCITY, OF_POSITION = range(DOF_IMPULSES)


def dof_row_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``dof_need``, ``dof_violation``, ``dof_build``, ``dof_sweep``, ``friction_bound`` and
    ``speeding``."""
    real = m.real

    @m.func
    def clamp(x: m.lane, bound: m.lane) -> m.lane:
        return m.larger(m.neg(bound), m.smaller(x, bound))

    @m.func
    def absolute(x: m.lane) -> m.lane:
        return m.larger(x, m.neg(x))

    @m.func
    def limit_gap(b, i: int, q: m.lane, P) -> m.lane:
        """Distance of q from the nearer of its limits, negative beyond."""
        return m.smaller(m.sub(q, m.gain(P, b, i, LIMIT_LOWER)), m.sub(m.gain(P, b, i, LIMIT_UPPER), q))

    @m.func
    def gap_of_law(b, i: int, gap: m.lane, T, P) -> m.lane:
        """The distance from the limit, or from its margin."""
        if T.limit_laws > 0:
            gap = m.law_gap(b, T.first_limit_law + i, gap, P)
        return gap

    @m.func
    def dof_need(b, t, i: int, dt: m.lane, T, P, L, mem) -> m.lane:
        """Negative where dof i needs its hard limits, judged by the velocity u."""
        limits = T.dof_limits[i]
        u = absolute(m.get(mem, L.u + i, t))
        need = m.fill(real(1.0))
        if limits & VELOCITY:
            need = m.smaller(need, m.sub(m.gain(P, b, i, VELOCITY_LIMIT), u))
        if limits & POSITION:
            gap = gap_of_law(b, i, limit_gap(b, i, m.get(mem, L.q + T.dof_q[i], t), P), T, P)
            need = m.smaller(need, m.fnma(m.mul(m.fill(real(2.0)), dt), u, gap))
        return need

    @m.func
    def dof_violation(b, t, i: int, dt: m.lane, T, P, L, mem) -> m.lane:
        """Negative where the velocity u breaks a limit of dof i whose row did not act."""
        limits = T.dof_limits[i]
        need = m.fill(real(1.0))
        if limits & VELOCITY:
            bound = m.mul(m.fill(real(1.0001)), m.gain(P, b, i, VELOCITY_LIMIT))
            need = m.smaller(need, m.sub(bound, absolute(m.get(mem, L.u + i, t))))
        if limits & POSITION:
            q = m.fma(dt, m.get(mem, L.u + i, t), m.get(mem, L.q + T.dof_q[i], t))
            need = m.smaller(need, m.add(limit_gap(b, i, q, P), m.fill(real(1.0e-5))))
        zero = m.fill(real(0.0))
        return m.where_lt(m.get(mem, L.dof_need + i, t), zero, zero, need)

    @m.func
    def soften_limit(b, t, i: int, at: int, gap: m.lane, side: m.lane, a: m.lane, o, T, P, L, mem) -> m.lane:
        """The row of a position limit whose record is at `at` becomes that of its law, if it has one. Returns one where the limit acts."""
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        law = T.first_limit_law + i
        acts = m.law_on(b, law, gap, one, P)
        unbounded = m.fill(real(1.0e30))
        weight = m.weight_param(P, b, i)
        row = m.law_row(b, law, gap, m.mul(side, m.get(mem, L.v + i, t)), weight, unbounded, o, P)
        inverse = m.rcp(m.add(a, row.compliance))
        mass = m.mul(m.get(mem, at + HARD, t), m.mul(acts, inverse))
        m.put(mem, at + MASS, t, m.where_lt(half, row.soft, mass, m.get(mem, at + MASS, t)))
        part = m.where_lt(half, acts, m.mul(row.compliance, inverse), one)
        m.put(mem, at + SOFTNESS, t, m.where_lt(half, row.soft, part, m.get(mem, at + SOFTNESS, t)))
        m.put(mem, at + TARGET, t, m.where_lt(half, row.soft, row.target, m.get(mem, at + TARGET, t)))
        return acts

    @m.func
    def dof_build(b, t, i: int, full: int, o, T, P, L, mem):
        """The row of dof i, warm-started; with hard limits, where dof_need is negative, if `full`."""
        dt = m.fill(o.dt)
        limits = T.dof_limits[i]
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        at = L.dof_row + DOF_ROW * i
        y = L.dof_y + T.reach * i
        p = L.dof_impulse + DOF_IMPULSES * i
        depth = T.depth[i]
        for d in range(depth):
            m.put(mem, y + d, t, zero)
        m.put(mem, y + depth, t, one)
        m.half_solve(t, i, y, T, L, mem)
        a = m.row_product(t, i, y, y, T, mem)
        inverse = m.rcp(a)
        m.put(mem, at + RESPONSE, t, a)
        m.put(mem, at + INVERSE_RESPONSE, t, inverse)
        total = m.mul(dt, m.get(mem, p + OF_FRICTION, t))
        m.put(mem, p + OF_FRICTION, t, total)
        if full != 0:
            hard = m.where_lt(m.get(mem, L.dof_need + i, t), zero, one, zero)
            m.put(mem, at + HARD, t, hard)
            warm = m.mul(hard, m.mul(dt, m.get(mem, p + OF_VELOCITY, t)))
            m.put(mem, p + OF_VELOCITY, t, warm)
            total = m.add(total, warm)
            work = m.neg(m.mul(absolute(warm), m.gain(P, b, i, VELOCITY_LIMIT)))
            if limits & POSITION:
                q = m.get(mem, L.q + T.dof_q[i], t)
                low = m.sub(q, m.gain(P, b, i, LIMIT_LOWER))
                high = m.sub(m.gain(P, b, i, LIMIT_UPPER), q)
                side = m.where_lt(high, low, m.fill(real(-1.0)), one)
                gap = m.smaller(low, high)
                soft = m.spring(gap, m.gain(P, b, i, LIMIT_OMEGA), m.gain(P, b, i, LIMIT_DAMPING_RATIO), dt)
                m.put(mem, at + SIDE, t, side)
                m.put(mem, at + MASS, t, m.mul(hard, m.mul(soft.mass, inverse)))
                m.put(mem, at + SOFTNESS, t, soft.softness)
                m.put(mem, at + TARGET, t, m.where_lt(gap, zero, soft.push, m.neg(m.div(gap, dt))))
                # an impulse remembered from the other limit is none of this one's
                warm = m.mul(hard, m.mul(dt, m.get(mem, p + OF_POSITION, t)))
                if T.limit_laws > 0:
                    warm = m.mul(warm, soften_limit(b, t, i, at, gap, side, a, o, T, P, L, mem))
                warm = m.mul(side, m.larger(zero, m.mul(side, warm)))
                m.put(mem, p + OF_POSITION, t, warm)
                total = m.add(total, warm)
                work = m.fma(m.mul(side, warm), m.get(mem, at + TARGET, t), work)
            m.put(mem, L.warm_work, t, m.add(m.get(mem, L.warm_work, t), work))
        m.chain_add(t, i, y, total, T, L, mem)

    @m.func
    def friction_bound(b, t, i: int, dt: m.lane, T, P, L, mem) -> m.lane:
        """The largest impulse of dry friction of dof i: of motion where the dof moves before the step, else of rest."""
        bound = m.mul(dt, m.gain(P, b, i, FRICTION_LOSS))
        if T.dof_limits[i] & SLIP:
            moving = m.mul(bound, m.gain(P, b, i, FRICTION_RATIO))
            bound = m.where_lt(m.fill(real(REST_SPEED)), absolute(m.get(mem, L.v + i, t)), moving, bound)
        return bound

    @m.func
    def dof_sweep(b, t, i: int, full: int, dt: m.lane, T, P, L, mem):
        """One Gauss-Seidel visit of dof i."""
        limits = T.dof_limits[i]
        zero = m.fill(real(0.0))
        at = L.dof_row + DOF_ROW * i
        y = L.dof_y + T.reach * i
        p = L.dof_impulse + DOF_IMPULSES * i
        a = m.get(mem, at + RESPONSE, t)
        inverse = m.get(mem, at + INVERSE_RESPONSE, t)
        u = m.chain_dot(t, i, y, T, L, mem)
        total = zero
        if limits & FRICTION:
            old = m.get(mem, p + OF_FRICTION, t)
            new = clamp(m.fnma(u, inverse, old), friction_bound(b, t, i, dt, T, P, L, mem))
            total = m.sub(new, old)
            m.put(mem, p + OF_FRICTION, t, new)
            u = m.fma(a, total, u)
        if full != 0:
            hard = m.get(mem, at + HARD, t)
            if limits & VELOCITY:
                old = m.get(mem, p + OF_VELOCITY, t)
                free = m.fnma(a, old, u)
                change = m.mul(
                    hard, m.sub(m.mul(m.sub(clamp(free, m.gain(P, b, i, VELOCITY_LIMIT)), free), inverse), old)
                )
                m.put(mem, p + OF_VELOCITY, t, m.add(old, change))
                total = m.add(total, change)
                u = m.fma(a, change, u)
            if limits & POSITION:
                side = m.get(mem, at + SIDE, t)
                old = m.mul(side, m.get(mem, p + OF_POSITION, t))
                new = m.unilateral(t, at, m.mul(side, u), old, mem)
                change = m.mul(side, m.mul(hard, m.sub(new, old)))
                m.put(mem, p + OF_POSITION, t, m.add(m.get(mem, p + OF_POSITION, t), change))
                total = m.add(total, change)
        m.chain_add(t, i, y, total, T, L, mem)

    @m.func
    def speeding(b, t, multiple: m.lane, T, P, L, mem) -> m.lane:
        """By how much velocities u are above a multiple of their limits, at most; zero where none is."""
        most = m.fill(real(0.0))
        for i in range(T.dofs):
            if T.dof_limits[i] & VELOCITY:
                u = absolute(m.get(mem, L.u + i, t))
                most = m.larger(most, m.fnma(multiple, m.gain(P, b, i, VELOCITY_LIMIT), u))
        return most

    @m.func
    def friction_sweep(b, t, dt: m.lane, T, P, L, mem):
        """One Gauss-Seidel visit of every dof with friction where none has a hard limit to keep."""
        for i in range(T.dofs):
            if T.dof_limits[i] & FRICTION:
                dof_sweep(b, t, i, 0, dt, T, P, L, mem)

    return locals()
