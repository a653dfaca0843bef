"""Softness of contacts as MuJoCo defines it by `solref` and `solimp`, for contacts whose shapes state it.

A contact at the signed distance r < 0 with the normal velocity v before the step has the impedance d(|r|), between 0 and 1, and

    J a + R f = -b v - k d r,   R = (1 - d) / d w

(Todorov 2014; MuJoCo's documentation, "Computation", "Parameters"). a is the acceleration, f the normal force, and w the sum of the mean
inverse masses of both bodies at their centres of mass, as `body_invweight0` of MuJoCo but in the pose of the step. Over a step of
length dt, with the impulse p = dt f and the velocity u = v + dt J a, this is the row u + R p = (1 - dt b) v - dt k d r.
"""

import types

from newton_like.kernels.tree import (
    LAW_BY_RULE,
    LAW_DAMPING,
    LAW_IMPEDANCE,
    LAW_IMPEDANCE_MOST,
    LAW_INVERSE_WIDTH,
    LAW_MIDPOINT,
    LAW_MOST,
    LAW_MU,
    LAW_POWER,
    LAW_SHIFT,
    LAW_SOFT,
    LAW_STIFFNESS,
    LAWS_OF_CANDIDATES,
    MU,
    MU_ROLLING,
    MU_TORSIONAL,
)


def impedance_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``impedance_curve``."""
    real = m.real

    @m.func
    def impedance_curve(x: m.lane, low: m.lane, high: m.lane, middle: m.lane, power: m.lane) -> m.lane:
        """d, which grows from its least value at x = 0 to its largest one at 1 by two power functions that meet at the midpoint."""
        one = m.fill(real(1.0))
        tiny = m.fill(real(1.0e-12))
        # distances of x and of the midpoint from 0 if x is below the midpoint, else from 1
        near = m.where_lt(x, middle, x, m.sub(one, x))
        span = m.where_lt(x, middle, middle, m.sub(one, middle))
        share = m.log(m.div(m.larger(near, tiny), span))
        share = m.mul(span, m.exp(m.mul(power, share)))
        y = m.where_lt(x, middle, share, m.sub(one, share))
        return m.fma(y, m.sub(high, low), low)

    return dict(impedance_curve=impedance_curve)


def contact_law_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``law_of_candidate``, ``inverse_weight``, ``law_material`` and ``law_row``."""
    real = m.real
    impedance_curve = impedance_program(m)["impedance_curve"]

    @m.func
    def law_of_candidate(c: int, T) -> int:
        """The number of the law of candidate c, where contacts have laws."""
        law = int(c)
        if T.laws != LAWS_OF_CANDIDATES:
            law = T.candidate_collider[c]
            if c >= T.first_paired:
                law = T.colliders + law
        return law

    @m.func
    def inverse_weight(t, k: int, y: int, n: m.Vec3, u1: m.Vec3, u2: m.Vec3, T, L, mem) -> m.lane:
        """The mean inverse mass of body k at its centre of mass, zero for -1. Three rows from y on are used as scratch."""
        weight = m.fill(real(0.0))
        if k >= 0:
            leaf = T.leaf[k]
            if leaf >= 0:
                x = m.get3(mem, L.com + 3 * k, t)
                m.span_point_rows(t, leaf, -1, 0, y, x, x, n, u1, u2, T, L, mem)
                own = m.span_products(t, m.span_size(leaf, -1, 0, T), y, T, mem)
                weight = m.mul(m.fill(real(1.0 / 3.0)), m.add(own.nn, m.add(own.a11, own.a22)))
        return weight

    @m.func
    def law_material(b, t, at: int, law: int, P, mem):
        """The friction of the material at `at` in memory <- that of the law, where the law combines it."""
        half = m.fill(real(0.5))
        rule = m.law_param(P, b, law, LAW_BY_RULE)
        mu = m.law_param(P, b, law, LAW_MU)
        torsional = m.law_param(P, b, law, LAW_MU + 1)
        rolling = m.law_param(P, b, law, LAW_MU + 2)
        m.put(mem, at + MU, t, m.where_lt(half, rule, mu, m.get(mem, at + MU, t)))
        m.put(mem, at + MU_TORSIONAL, t, m.where_lt(half, rule, torsional, m.get(mem, at + MU_TORSIONAL, t)))
        m.put(mem, at + MU_ROLLING, t, m.where_lt(half, rule, rolling, m.get(mem, at + MU_ROLLING, t)))

    @m.func
    def law_impedance(b, law: int, depth: m.lane, P) -> m.lane:
        """d of a contact that is so deep."""
        one = m.fill(real(1.0))
        x = m.smaller(m.mul(depth, m.law_param(P, b, law, LAW_INVERSE_WIDTH)), one)
        low = m.law_param(P, b, law, LAW_IMPEDANCE)
        high = m.law_param(P, b, law, LAW_IMPEDANCE_MOST)
        middle = m.law_param(P, b, law, LAW_MIDPOINT)
        return impedance_curve(x, low, high, middle, m.law_param(P, b, law, LAW_POWER))

    @m.func
    def law_gap(b, law: int, gap: m.lane, P) -> m.lane:
        """The signed distance that the law counts from."""
        return m.add(gap, m.law_param(P, b, law, LAW_SHIFT))

    @m.func
    def law_on(b, law: int, gap: m.lane, on: m.lane, P) -> m.lane:
        """`on`, but zero for soft contacts that are apart."""
        zero = m.fill(real(0.0))
        apart = m.where_lt(law_gap(b, law, gap, P), zero, on, zero)
        return m.where_lt(m.fill(real(0.5)), m.law_param(P, b, law, LAW_SOFT), apart, on)

    @m.struct
    class SoftRow:
        """One for soft contacts, else zero; R, and the velocity u + R p."""

        soft: m.lane
        compliance: m.lane
        target: m.lane

    @m.func
    def law_row(b, law: int, gap: m.lane, before: m.lane, weight: m.lane, fastest: m.lane, o, P) -> SoftRow:
        """The row of a contact with this velocity before the step, whose penetration is pushed out at no more than `fastest`."""
        one = m.fill(real(1.0))
        dt = m.fill(o.dt)
        depth = m.larger(m.fill(real(0.0)), m.neg(law_gap(b, law, gap, P)))
        d = law_impedance(b, law, depth, P)
        most = m.law_param(P, b, law, LAW_IMPEDANCE_MOST)
        # a time constant is at least two steps long, as in MuJoCo
        damping = m.div(m.smaller(m.mul(dt, m.law_param(P, b, law, LAW_DAMPING)), one), most)
        stiffness = m.mul(m.mul(dt, dt), m.law_param(P, b, law, LAW_STIFFNESS))
        stiffness = m.div(m.smaller(stiffness, m.law_param(P, b, law, LAW_MOST)), m.mul(most, most))
        push = m.mul(m.mul(stiffness, m.mul(d, depth)), m.fill(o.inverse_dt))
        push = m.smaller(fastest, push)
        compliance = m.mul(weight, m.div(m.sub(one, d), d))
        return SoftRow(m.law_param(P, b, law, LAW_SOFT), compliance, m.add(m.fnma(damping, before, before), push))

    return locals()
