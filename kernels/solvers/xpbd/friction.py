"""Normal impulse and friction of a contact, found together.

A tangential impulse at the end of a long arm changes the normal velocity, and the other way round. If the moment of inertia is small, this
coupling is as large as the responses themselves. Three impulses that are found apart, each from the velocity before, then overshoot, and
energy grows. Here the normal impulse p is linear in the change d of the friction f,

    p = p0 - e (c . d) / k,    u_t = u_t0 + c (p - p_old) + K d

with the responses k of the normal, K of the tangents and c between both, and e = 1 for a rigid row, e < 1 for a soft one. Friction that
sticks has u_t = 0. If |f| > mu p then, the surfaces slip: f = mu p a along a direction a, and the first equation gives p. Where it has no
solution (the friction presses the surfaces together more than it needs to slip, Painleve 1895), p grows by a limited factor.
"""

import types

import warp as wp
from newton_like.kernels.solvers.xpbd.order import IMPACT_SPEED, NEVER
from newton_like.kernels.solvers.xpbd.touching import AT_MOST, CROSS, MASS, SHARES, TANGENT_MASS

STRONG = 10.0
"""Response of a contact in sums of inverse masses, above which it is solved in further passes where it is fast. Solid bodies of even
density and convex shape have at most about seven."""

JAM = 0.1
"""Least share of the normal impulse without friction in that with it, as the inverse of how much a slip may enlarge it."""


def friction_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``response_prepare`` and ``contact_impulses``, over contacts."""
    real, lane, Vec3, Touching = m.real, m.lane, m.Vec3, m.Touching
    of_contact, contact_put = m.of_contact, m.contact_put

    @m.func
    def response_prepare(
        K: wp.ref[Touching], k: int, valid: int, n: Vec3, own: wp.ref[m.Responses], mass: lane, whole: lane
    ) -> int:  # fmt: skip
        """Stores the responses of contacts between bodies with the sum of inverse masses `mass`. Returns 1 if one is so large, compared
        with `whole`, that the contact needs further passes where it is fast, else 0."""
        tiny = m.fill(real(1.0e-20))
        zero = m.fill(real(0.0))
        ia = own.ia
        ib = own.ib
        ra = own.ra
        rb = own.rb
        t1 = m.tangent(n)
        t2 = m.second_tangent(n)
        an = m.cross(ra, n)
        bn = m.cross(rb, n)
        a1 = m.cross(ra, t1)
        b1 = m.cross(rb, t1)
        a2 = m.cross(ra, t2)
        b2 = m.cross(rb, t2)
        wan = m.sym_apply(ia, an)
        wbn = m.sym_apply(ib, bn)
        wa2 = m.sym_apply(ia, a2)
        wb2 = m.sym_apply(ib, b2)
        normal = m.dot_plus(an, wan, m.dot_plus(bn, wbn, mass))
        one = m.dot_plus(a1, m.sym_apply(ia, a1), m.dot_plus(b1, m.sym_apply(ib, b1), mass))
        two = m.dot_plus(a2, wa2, m.dot_plus(b2, wb2, mass))
        most = m.larger(one, two)
        least = m.where_lt(tiny, most, m.rcp(m.larger(most, tiny)), zero)
        contact_put(K, MASS, k, valid, m.where_lt(tiny, normal, m.rcp(m.larger(normal, tiny)), zero))
        contact_put(K, TANGENT_MASS, k, valid, least)
        contact_put(K, CROSS, k, valid, m.dot_plus(a1, wan, m.dot(b1, wbn)))
        contact_put(K, CROSS + 1, k, valid, m.dot_plus(a2, wan, m.dot(b2, wbn)))
        little = m.least_share(K, k)
        contact_put(K, SHARES, k, valid, m.fma(one, least, little))
        contact_put(K, SHARES + 1, k, valid, m.fma(two, least, little))
        contact_put(K, SHARES + 2, k, valid, m.mul(m.dot_plus(a1, wa2, m.dot(b1, wb2)), least))
        strong = m.larger(normal, most)
        at_most = m.where_lt(
            m.mul(whole, m.fill(real(STRONG))), strong, m.fill(real(IMPACT_SPEED)), m.fill(real(NEVER))
        )
        contact_put(K, AT_MOST, k, valid, at_most)
        if m.any_lt(at_most, m.fill(real(NEVER))):
            return 1
        return 0

    @m.func
    def contact_impulses(
        K: wp.ref[Touching], k: int, u1: lane, u2: lane, old: lane, old1: lane, old2: lane, change: lane, give: lane, mu: lane
    ) -> tuple[lane, lane, lane]:  # fmt: skip
        """The impulses along the normal and both tangents.

        Args:
            u1, u2: velocities along the tangents.
            old, old1, old2: the impulses before.
            change: the change of the normal impulse without a change of the friction.
            give: how much of a change of the normal velocity the normal impulse takes back, 1 for a rigid row.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        slope = m.mul(give, of_contact(K, MASS, k))
        least = of_contact(K, TANGENT_MASS, k)
        c1 = of_contact(K, CROSS, k)
        c2 = of_contact(K, CROSS + 1, k)
        s12 = of_contact(K, SHARES + 2, k)
        s11 = of_contact(K, SHARES, k)
        s22 = of_contact(K, SHARES + 1, k)
        free = m.add(old, change)
        # friction that sticks
        scaled = m.mul(slope, least)
        a1 = m.mul(scaled, c1)
        s11 = m.fnma(a1, c1, s11)
        s22 = m.fnma(m.mul(scaled, c2), c2, s22)
        s12 = m.fnma(a1, c2, s12)
        b1 = m.mul(least, m.fma(c1, change, u1))
        b2 = m.mul(least, m.fma(c2, change, u2))
        inverse = m.rcp(m.larger(m.fnma(s12, s12, m.mul(s11, s22)), m.fill(real(1.0e-12))))
        d1 = m.mul(inverse, m.fnma(s22, b1, m.mul(s12, b2)))
        d2 = m.mul(inverse, m.fnma(s11, b2, m.mul(s12, b1)))
        stick = m.fnma(slope, m.fma(c1, d1, m.mul(c2, d2)), free)
        stick1 = m.add(old1, d1)
        stick2 = m.add(old2, d2)
        bound = m.mul(mu, m.larger(stick, zero))
        # positive where this is beyond the cone
        beyond = m.fnma(bound, bound, m.fma(stick1, stick1, m.mul(stick2, stick2)))
        beyond = m.where_lt(stick, zero, one, beyond)
        # contacts that carry nothing and need nothing stay so
        busy = m.larger(old, change)
        beyond = m.where_lt(zero, busy, beyond, zero)
        stick = m.where_lt(zero, busy, stick, zero)
        stick1 = m.where_lt(zero, busy, stick1, zero)
        stick2 = m.where_lt(zero, busy, stick2, zero)
        if not m.any_lt(zero, beyond):
            return stick, stick1, stick2
        # friction that slips: its direction, the normal impulse, and the normal impulse again for what friction is left
        push = m.larger(change, m.neg(old))
        f1 = m.fnma(least, m.fma(c1, push, u1), old1)
        f2 = m.fnma(least, m.fma(c2, push, u2), old2)
        tiny = m.fill(real(1.0e-30))
        square = m.fma(f1, f1, m.fma(f2, f2, tiny))
        length = m.sqrt(square)
        bare = m.fma(slope, m.fma(c1, old1, m.mul(c2, old2)), free)
        along = m.div(m.mul(m.mul(mu, slope), m.fma(c1, f1, m.mul(c2, f2))), length)
        bare = m.larger(zero, m.div(bare, m.larger(m.add(one, along), m.fill(real(JAM)))))
        shrink = m.shrink(m.mul(mu, bare), square)
        f1 = m.mul(f1, shrink)
        f2 = m.mul(f2, shrink)
        taken = m.fma(c1, m.sub(f1, old1), m.mul(c2, m.sub(f2, old2)))
        slip = m.larger(zero, m.fnma(slope, taken, free))
        shrink = m.shrink(m.mul(mu, slip), m.fma(f1, f1, m.fma(f2, f2, tiny)))
        return (
            m.where_lt(zero, beyond, slip, stick),
            m.where_lt(zero, beyond, m.mul(f1, shrink), stick1),
            m.where_lt(zero, beyond, m.mul(f2, shrink), stick2),
        )

    return dict(response_prepare=response_prepare, contact_impulses=contact_impulses)
