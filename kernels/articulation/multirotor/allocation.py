"""Control allocation: thrusts of rotors for a wrench, by the pseudo-inverse or by bounded least squares.

Bounded least squares minimises |W (A f - w)|^2 + c |f - f_0|^2 between the limits of the thrusts, where f_0 is that of the pseudo-inverse,
by an active set (O. Harkegard, Efficient Active Set Algorithms for Solving Constrained Least Squares Problems in Aircraft Control
Allocation, 2002). A thrust at a limit has a row and a column of the identity in the normal equations, so that all worlds of a block factor
matrices of one size.
"""

import types

from newton_like.kernels.articulation.multirotor.records import LEAST, MOST, ROTOR, VEHICLE


def control_allocation_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``allocate`` and ``allocate_bounded``."""
    lane, real = m.lane, m.real

    @m.func
    def inverse_at(F: m.Flight) -> int:
        """The first parameter of the pseudo-inverse."""
        return VEHICLE + (ROTOR + 3) * F.rotors

    @m.func
    def allocate(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """target <- the pseudo-inverse times the wrench"""
        for i in range(F.rotors):
            at = inverse_at(F) + 6 * i
            f = m.fill(real(0.0))
            for j in range(6):
                f = m.fma(m.number(V, b, at + j), m.get(mem, F.wrench + j, t), f)
            m.put(mem, F.target + i, t, f)

    @m.func
    def gradient(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """Row of gradients <- H f - c, behind the factor in the rows ``work``: factor, c, gradients, ways, free, done."""
        n = F.rotors
        normal = inverse_at(F) + 6 * n
        for i in range(n):
            g = m.neg(m.get(mem, F.work + n * n + i, t))
            for j in range(n):
                g = m.fma(m.number(V, b, normal + n * i + j), m.get(mem, F.target + j, t), g)
            m.put(mem, F.work + n * n + n + i, t, g)

    @m.func
    def ways(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """Row of ways <- the solution p of H p = -gradients for the free thrusts, zero for the others; by the factorisation L D L^T."""
        n = F.rotors
        normal = inverse_at(F) + 6 * n
        grad = F.work + n * n + n
        way = grad + n
        free = way + n
        one = m.fill(real(1.0))
        for i in range(n):
            mine = m.get(mem, free + i, t)
            for j in range(i + 1):
                both = m.mul(mine, m.get(mem, free + j, t))
                x = m.mul(both, m.number(V, b, normal + n * i + j))
                if i == j:
                    x = m.add(x, m.sub(one, mine))
                for k in range(j):
                    d = m.get(mem, F.work + n * k + k, t)
                    x = m.fnma(m.mul(m.get(mem, F.work + n * i + k, t), d), m.get(mem, F.work + n * j + k, t), x)
                if i != j:
                    x = m.mul(x, m.rcp(m.get(mem, F.work + n * j + j, t)))
                m.put(mem, F.work + n * i + j, t, x)
        for i in range(n):
            x = m.neg(m.mul(m.get(mem, free + i, t), m.get(mem, grad + i, t)))
            for k in range(i):
                x = m.fnma(m.get(mem, F.work + n * i + k, t), m.get(mem, way + k, t), x)
            m.put(mem, way + i, t, x)
        for i in range(n):
            m.put(mem, way + i, t, m.mul(m.get(mem, way + i, t), m.rcp(m.get(mem, F.work + n * i + i, t))))
        for i in range(n - 1, -1, -1):
            x = m.get(mem, way + i, t)
            for k in range(i + 1, n):
                x = m.fnma(m.get(mem, F.work + n * k + i, t), m.get(mem, way + k, t), x)
            m.put(mem, way + i, t, x)

    @m.func
    def room(b: int, t: int, i: int, F: m.Flight, V: m.Vehicle, mem: m.memory) -> lane:
        """How often thrust i can go its way before it is at a limit."""
        zero = m.fill(real(0.0))
        tiny = m.fill(real(1.0e-12))
        p = m.get(mem, F.work + F.rotors * F.rotors + 2 * F.rotors + i, t)
        f = m.get(mem, F.target + i, t)
        at = m.rotor_at(i)
        most = m.fill(real(1.0e30))
        up = m.mul(m.sub(m.number(V, b, at + MOST), f), m.rcp(m.larger(p, tiny)))
        down = m.mul(m.sub(f, m.number(V, b, at + LEAST)), m.rcp(m.larger(m.neg(p), tiny)))
        ratio = m.where_lt(tiny, p, up, m.where_lt(tiny, m.neg(p), down, most))
        return m.larger(ratio, zero)

    @m.func
    def violation(b: int, t: int, i: int, F: m.Flight, V: m.Vehicle, mem: m.memory) -> lane:
        """By how much the gradient asks a thrust at a limit to leave it; not positive where it does not, and for free thrusts."""
        n = F.rotors
        at = m.rotor_at(i)
        low = m.number(V, b, at + LEAST)
        high = m.number(V, b, at + MOST)
        f = m.get(mem, F.target + i, t)
        g = m.get(mem, F.work + n * n + n + i, t)
        none = m.fill(real(-1.0))
        x = m.where_lt(m.sub(f, low), m.sub(high, f), m.neg(g), g)
        x = m.where_lt(low, high, x, none)
        return m.where_lt(m.get(mem, F.work + n * n + 3 * n + i, t), m.fill(real(0.5)), x, none)

    @m.func
    def start_bounded(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """The right side c, the thrusts of the pseudo-inverse between the limits, and which of them are free."""
        n = F.rotors
        right = inverse_at(F) + 6 * n + n * n
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        for i in range(n):
            c = zero
            for j in range(6):
                c = m.fma(m.number(V, b, right + 6 * i + j), m.get(mem, F.wrench + j, t), c)
            m.put(mem, F.work + n * n + i, t, c)
            at = m.rotor_at(i)
            low = m.number(V, b, at + LEAST)
            high = m.number(V, b, at + MOST)
            f = m.get(mem, F.target + i, t)
            m.put(mem, F.work + n * n + 3 * n + i, t, m.where_lt(f, low, zero, m.where_lt(high, f, zero, one)))
            m.put(mem, F.target + i, t, m.limited(f, low, high))

    @m.func
    def allocate_bounded(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """target <- the bounded thrusts, after :func:`allocate`"""
        n = F.rotors
        way = F.work + n * n + 2 * n
        free = way + n
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        start_bounded(b, t, F, V, mem)
        # multiplied by the size of the gradients without thrust: what counts as zero
        scale = m.fill(real(1.0e-30))
        for i in range(n):
            scale = m.larger(scale, m.unsigned(m.get(mem, F.work + n * n + i, t)))
        limit = m.mul(scale, m.fill(real(2.0e-6)))
        # 1 for worlds that have their solution, which does not change any more
        done = zero
        for _round in range(F.rounds):
            if m.any_lt(done, half):
                gradient(b, t, F, V, mem)
                ways(b, t, F, V, mem)
                share = one
                for i in range(n):
                    share = m.smaller(share, room(b, t, i, F, V, mem))
                share = m.mul(share, m.sub(one, done))
                blocked = m.where_lt(share, one, one, zero)
                for i in range(n):
                    at = m.rotor_at(i)
                    low = m.number(V, b, at + LEAST)
                    high = m.number(V, b, at + MOST)
                    p = m.get(mem, way + i, t)
                    r = room(b, t, i, F, V, mem)
                    f = m.limited(m.fma(share, p, m.get(mem, F.target + i, t)), low, high)
                    # those that block are at their limits
                    stop = m.mul(m.mul(blocked, m.sub(one, done)), m.where_lt(share, r, zero, one))
                    f = m.where_lt(half, stop, m.where_lt(p, zero, low, high), f)
                    m.put(mem, free + i, t, m.where_lt(half, stop, zero, m.get(mem, free + i, t)))
                    # room of the next thrusts does not depend on this one
                    m.put(mem, F.target + i, t, m.where_lt(half, done, m.get(mem, F.target + i, t), f))
                gradient(b, t, F, V, mem)
                worst = limit
                for i in range(n):
                    worst = m.larger(worst, violation(b, t, i, F, V, mem))
                better = m.where_lt(limit, worst, one, zero)
                whole = m.sub(one, blocked)
                found = m.mul(whole, better)
                for i in range(n):
                    x = violation(b, t, i, F, V, mem)
                    leaves = m.where_lt(half, found, m.where_lt(x, worst, zero, one), zero)
                    m.put(mem, free + i, t, m.where_lt(half, leaves, one, m.get(mem, free + i, t)))
                done = m.larger(done, m.mul(whole, m.sub(one, better)))

    return locals()
