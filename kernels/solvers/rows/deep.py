"""Contacts that are deep where something turns fast.

A contact aims at velocities along its normal. Over a step in which a body turns by some tenths of a radian, its points also move across
their velocities, by half the square of that angle times their distance from the axis, which may be some millimetres a step into the
ground. The spring of a contact pushes a penetration out within tenths of a second, too slowly for that. So in worlds where a velocity is
above QUICK a step, a contact that is deeper than SLACK aims to be out after STEPS steps, but not faster than `push_speed`.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import SLOT, SLOT_GAP
from newton_like.kernels.rows import TARGET
from newton_like.kernels.solvers.rows.contact_rows import CONTACT
from newton_like.kernels.tree import LAW_SOFT

QUICK = 0.15
"""Of angular velocities in radians a step, of others in metres a step."""

SLACK, STEPS = 2.0e-3, 8.0


def deep_function(m: types.SimpleNamespace, slotted: bool):
    """The function that changes the rows of deep contacts in a step; `slotted`: whether contacts are in slots."""
    real = m.real

    @m.func
    def gap_of_candidate(t, a: int, T, L, mem, active: wp.array2d[int]) -> m.lane:
        return m.get(mem, L.gap + active[a, t], t)

    @m.func
    def gap_in_slot(t, a: int, T, L, mem, active: wp.array2d[int]) -> m.lane:
        return m.get(mem, L.slot + SLOT * a + SLOT_GAP, t)

    gap_of = gap_in_slot if slotted else gap_of_candidate

    @m.func
    def rigid_gap(b, t, a: int, T, P, L, mem, active: wp.array2d[int]) -> m.lane:
        """The gap of active contact a; zero where its law is soft: MuJoCo's contacts are as soft as they are stated."""
        gap = gap_of(t, a, T, L, mem, active)
        if T.laws > 0:
            zero = m.fill(real(0.0))
            soft = m.law_param(P, b, m.law_of_candidate(active[a, t], T), LAW_SOFT)
            gap = m.where_lt(zero, soft, zero, gap)
        return gap

    @m.func
    def any_deep(b, t, contacts: int, T, P, L, mem, active: wp.array2d[int]) -> bool:
        """Whether some contact is deeper than SLACK in some world."""
        if contacts == 0:
            return False
        least = m.fill(real(0.0))
        for a in range(contacts):
            least = m.smaller(least, rigid_gap(b, t, a, T, P, L, mem, active))
        return m.any_lt(least, m.fill(real(-SLACK)))

    @m.func
    def push_out(b, t, contacts: int, o, T, P, L, mem, active: wp.array2d[int]):
        """`push_deep` where some contact is deep."""
        zero = m.fill(real(0.0))
        quick = m.mul(m.fill(real(QUICK)), m.fill(o.inverse_dt))
        fastest = zero
        for i in range(T.dofs):
            v = m.get(mem, L.v + i, t)
            fastest = m.larger(fastest, m.larger(v, m.neg(v)))
        if m.any_lt(quick, fastest):
            share = m.mul(m.fill(real(1.0 / STEPS)), m.fill(o.inverse_dt))
            for a in range(contacts):
                at = L.contact + CONTACT * a + TARGET
                depth = m.neg(m.add(rigid_gap(b, t, a, T, P, L, mem, active), m.fill(real(SLACK))))
                push = m.smaller(m.fill(o.push_speed), m.mul(depth, share))
                if T.pairs > 0:
                    push = m.mul(push, m.get(mem, L.push_share + a, t))
                old = m.get(mem, at, t)
                new = m.where_lt(zero, depth, m.larger(old, push), old)
                m.put(mem, at, t, m.where_lt(quick, fastest, new, old))

    @m.func
    def push_deep(b, t, contacts: int, o, T, P, L, mem, active: wp.array2d[int]):
        """TARGET <- what pushes deep contacts out soon, in quick worlds."""
        if any_deep(b, t, contacts, T, P, L, mem, active):
            push_out(b, t, contacts, o, T, P, L, mem, active)

    return push_deep
