"""Constraint rows that couple several degrees of freedom: mimic joints (q = offset + ratio q_ref) and distance limits.

Their Jacobian rows leave the chain of one body, so they are stored over all degrees of freedom. A step pushes out a share of 0.2 of a mimic
error or of a violated distance, the latter at most at the speed at which shapes are separated; a distance limit that is still apart may be
reached within the step but not passed. A step also moves
anchors along their line x by dt^2 / 2 (|v across x|^2 / |x| + w x (w x r) . x / |x|), for a child that turns at w about its centre of
mass, at -r from its anchor; the row of a distance counts that in.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.tree import CHILD_POS, DISTANCE_MAX, DISTANCE_MIN, MIMIC_OFFSET, MIMIC_RATIO, SPAN

COUPLING = 4
ON, MASS, TARGET, SIDE = range(COUPLING)


def coupling_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``coupling_build`` and ``coupling_sweep``."""
    real = m.real

    @m.func
    def mimic_row(b, t, e: int, y: int, at: int, inverse_dt: m.lane, T, P, L, mem):
        k = T.coupling_body[e]
        other = T.coupling_other[e]
        n = int(0)
        if T.coupling_kind[e] > SPAN:
            n = T.coupling_kind[e] - SPAN
        dof = T.dof_at[k] + n
        ratio = m.gain(P, b, dof, MIMIC_RATIO)
        m.put(mem, y + dof, t, m.fill(real(1.0)))
        m.put(mem, y + T.dof_at[other] + n, t, m.neg(ratio))
        q = m.get(mem, L.q + T.q_at[k] + n, t)
        leads = m.get(mem, L.q + T.q_at[other] + n, t)
        error = m.fnma(ratio, leads, m.sub(q, m.gain(P, b, dof, MIMIC_OFFSET)))
        m.put(mem, at + ON, t, m.fill(real(1.0)))
        m.put(mem, at + TARGET, t, m.mul(error, m.mul(m.fill(real(-0.2)), inverse_dt)))
        m.put(mem, at + SIDE, t, m.fill(real(1.0)))

    @m.func
    def distance_row(b, t, e: int, y: int, at: int, dt: m.lane, push_speed: m.lane, T, P, L, mem):
        """The anchors' distance changes by d . (velocity of the child's anchor relative to the parent's)."""
        k = T.coupling_body[e]
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        dof = T.dof_at[k]
        x = m.get3(mem, L.q + T.q_at[k], t)
        length = m.sqrt(m.larger(m.dot(x, x), m.fill(real(1.0e-12))))
        inverse = m.rcp(length)
        d = m.zero3()
        for i in range(3):
            axis = m.get3(mem, L.subspace + 6 * (dof + i), t)
            d = m.fma3(axis, m.mul(inverse, m.get(mem, L.q + T.q_at[k] + i, t)), d)
        rot = m.get9(mem, L.rot + 9 * k, t)
        anchor = m.apply_plus(rot, m.joint_vec(P, b, k, CHILD_POS), m.get3(mem, L.pos + 3 * k, t))
        v = m.zero3()
        for i in range(6):
            s = m.velocity_at(m.get6(mem, L.subspace + 6 * (dof + i), t), anchor)
            v = m.fma3(s, m.get(mem, L.v + dof + i, t), v)
            m.put(mem, y + dof + i, t, m.dot(d, s))
        w = m.zero3()
        for i in range(3, 6):
            w = m.fma3(m.get3(mem, L.subspace + 6 * (dof + i) + 3, t), m.get(mem, L.v + dof + i, t), w)
        whirl = m.cross(w, m.cross(w, m.sub3(anchor, m.get3(mem, L.com + 3 * k, t))))
        across = m.fnma3(d, m.dot(d, v), v)
        bend = m.fma(inverse, m.dot(across, across), m.dot(d, whirl))
        bend = m.mul(m.mul(m.fill(real(0.5)), dt), bend)
        shortest = m.joint_param(P, b, k, DISTANCE_MIN)
        longest = m.joint_param(P, b, k, DISTANCE_MAX)
        none = m.fill(real(1.0e10))
        low = m.where_lt(shortest, zero, none, m.sub(length, shortest))
        high = m.where_lt(longest, zero, none, m.sub(longest, length))
        gap = m.smaller(low, high)
        side = m.where_lt(high, low, m.neg(one), one)
        pace = m.where_lt(gap, zero, m.fill(real(0.2)), one)
        m.put(mem, at + ON, t, m.where_lt(gap, m.fill(real(1.0e9)), one, zero))
        room = m.larger(m.div(m.mul(gap, pace), dt), m.neg(push_speed))
        m.put(mem, at + TARGET, t, m.neg(m.fma(side, bend, room)))
        m.put(mem, at + SIDE, t, side)

    @m.func
    def coupling_build(b, t, e: int, o, T, P, L, mem):
        """The row of coupling e, warm-started."""
        zero = m.fill(real(0.0))
        at = L.coupling_row + COUPLING * e
        y = L.coupling_y + T.dofs * e
        m.clear(t, y, T.dofs, mem)
        if T.coupling_kind[e] != SPAN:
            mimic_row(b, t, e, y, at, m.fill(o.inverse_dt), T, P, L, mem)
        else:
            distance_row(b, t, e, y, at, m.fill(o.dt), m.fill(o.push_speed), T, P, L, mem)
        m.whiten_row(t, y, T, L, mem)
        on = m.get(mem, at + ON, t)
        a = m.larger(m.dense_dot(t, y, y, T, mem), m.fill(real(1.0e-12)))
        m.put(mem, at + MASS, t, m.mul(on, m.rcp(a)))
        warm = m.mul(on, m.mul(m.fill(o.dt), m.get(mem, L.coupling_impulse + e, t)))
        if T.coupling_kind[e] == SPAN:
            side = m.get(mem, at + SIDE, t)
            warm = m.mul(side, m.larger(zero, m.mul(side, warm)))
        m.put(mem, L.coupling_impulse + e, t, warm)
        m.dense_add(t, y, warm, T, L, mem)

    @m.func
    def coupling_sweep(t, e: int, T, L, mem):
        """One Gauss-Seidel visit of coupling e."""
        at = L.coupling_row + COUPLING * e
        y = L.coupling_y + T.dofs * e
        p = L.coupling_impulse + e
        side = m.get(mem, at + SIDE, t)
        old = m.mul(side, m.get(mem, p, t))
        u = m.mul(side, m.dense_dot(t, y, L.z, T, mem))
        new = m.fnma(m.sub(u, m.get(mem, at + TARGET, t)), m.get(mem, at + MASS, t), old)
        if T.coupling_kind[e] == SPAN:
            new = m.larger(m.fill(real(0.0)), new)
        change = m.mul(side, m.sub(new, old))
        m.put(mem, p, t, m.add(m.get(mem, p, t), change))
        m.dense_add(t, y, change, T, L, mem)

    return locals()


@cache
def coupling_force_kernel(real):
    """Kernel over the clusters of a batch and their couplings: takes the forces of couplings out of the memory that outlives a step.
    Couplings that only prescribed motion could change have impulses without meaning; their forces are zero."""

    @wp.kernel(module="unique", enable_backward=False)
    def take_coupling_forces(
        # per cluster and coupling: where its force goes; -1: nowhere
        index: wp.array2d[int],
        # per coupling: its row in the memory
        place: wp.array[int],
        # per cluster and coupling: the bodies whose joints it couples; -1: none
        bodies: wp.array3d[int],
        body_flags: wp.array[int],
        kinematic: int,
        width: int,
        # [block, place, lane]
        kept: wp.array3d[real],
        # out:
        force: wp.array[real],
    ):
        i, n = wp.tid()
        moves = index[i, n] >= 0
        if moves and bodies[i, n, 0] >= 0:
            moves = (body_flags[bodies[i, n, 0]] & kinematic) == 0
            if bodies[i, n, 1] >= 0:
                moves = moves or (body_flags[bodies[i, n, 1]] & kinematic) == 0
        if moves:
            force[index[i, n]] = kept[i // width, place[n], i % width]

    return take_coupling_forces
