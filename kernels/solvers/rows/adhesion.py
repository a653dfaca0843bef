"""Adhesion in a step: actuators that press a body onto what it touches, as in MuJoCo.

The force f of an actuator acts at all n contacts of the body that are closed, in the direction against the normal: f / n each. Contacts are
closed where they touch or penetrate, or come closer than the margin of their law. The force is external: contacts push against it, and it
gives friction its bound. Without contacts there is no force.
"""

import types

import warp as wp
from newton_like.kernels.solvers.actuators import (
    ACTUATOR,
    ACTUATOR_TABLE,
    ENTRY,
    FORCE_RANGE,
    GAIN_PRM,
    ON_CONTACTS,
    PLACE,
)
from newton_like.kernels.tree import PRESCRIBED

ROUNDING = 1.0e-6
"""Gaps of surfaces that touch, in single precision [m]."""


def adhesion_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``adhere``."""
    real = m.real

    @m.func
    def is_of_body(c: int, k: int, T) -> bool:
        """Whether candidate c is one of body k."""
        found = bool(False)
        if c < T.first_paired:
            found = T.candidate_body[c] == k
        else:
            p = T.candidate_collider[c]
            found = m.shape_body(m.pair_one(p, T), T) == k or m.shape_body(m.pair_two(p, T), T) == k
        return found

    @m.func
    def closed(b, t, c: int, T, P, L, mem) -> m.lane:
        """One where candidate c is closed."""
        zero = m.fill(real(0.0))
        gap = m.get(mem, L.gap + c, t)
        if T.laws > 0:
            gap = m.law_gap(b, m.law_of_candidate(c, T), gap, P)
        # a soft contact at a gap of zero has no force of its own yet
        touches = m.where_lt(gap, m.fill(real(ROUNDING)), m.fill(real(1.0)), zero)
        return m.where_lt(m.get(mem, L.near + c, t), zero, touches, zero)

    @m.func
    def press(b, t, a: int, c: int, p: m.lane, T, L, mem):
        """z <- with the impulse p along the normal of active contact a, candidate c."""
        zero = m.fill(real(0.0))
        y = L.contact_y + T.reach * T.contact_rows * a
        if c < T.first_paired:
            m.span_point_add(t, T.leaf[T.candidate_body[c]], -1, 0, y, m.vec(p, zero, zero), T, L, mem)
        else:
            pair = T.candidate_collider[c]
            m.span_point_add(
                t, m.pair_leaf(pair, T), m.pair_other(pair, T), m.pair_shared(pair, T), y, m.vec(p, zero, zero), T, L, mem
            )  # fmt: skip

    @m.shared
    def free_too(b, t, T, P, L, mem):
        """free_z <- with the change of z since its copy in ``trial``: the force is external, and no impulse of a row. Kinematic bodies
        do not feel it."""
        for i in range(T.dofs):
            z = m.get(mem, L.z + i, t)
            old = m.get(mem, L.trial + i, t)
            change = m.sub(z, old)
            if T.dof_limits[i] & PRESCRIBED:
                change = m.where_prescribed(P, b, i, m.fill(real(0.0)), change)
                m.put(mem, L.z + i, t, m.add(old, change))
            m.put(mem, L.free_z + i, t, m.add(m.get(mem, L.free_z + i, t), change))

    @m.shared
    def adhere(b, t, contacts: int, o, T, P, L, mem, active: wp.array2d[int]):
        """z and free_z <- with the impulses of all actuators on contacts. Needs the rows of contacts."""
        zero = m.fill(real(0.0))
        if T.adhesive != 0:
            m.copy(t, L.trial, L.z, T.dofs, mem)
        for n in range(T.actuators * T.adhesive):
            table = ACTUATOR_TABLE * n
            if T.actuator_table[table + ENTRY] == ON_CONTACTS:
                k = T.actuator_table[table + PLACE]
                count = m.fill(real(0.0))
                for a in range(contacts):
                    if is_of_body(active[a, t], k, T):
                        count = m.add(count, closed(b, t, active[a, t], T, P, L, mem))
                gain = m.actuator_number(b, ACTUATOR * n + GAIN_PRM, T)
                force = m.in_range(
                    m.mul(gain, m.get(mem, L.actuator_strength + n, t)), b, ACTUATOR * n + FORCE_RANGE, T
                )
                p = m.neg(m.div(m.mul(m.fill(o.dt), force), m.larger(count, m.fill(real(1.0)))))
                if m.any_lt(zero, count):
                    for a in range(contacts):
                        c = active[a, t]
                        if is_of_body(c, k, T):
                            press(b, t, a, c, m.mul(p, closed(b, t, c, T, P, L, mem)), T, L, mem)
        if T.adhesive != 0:
            free_too(b, t, T, P, L, mem)

    return locals()
