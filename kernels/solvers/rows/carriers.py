"""Impulses on kinematic bodies, whose velocities are prescribed.

The velocity of a prescribed dof is so large in z that rounding removes impulses beside it. Sweeps therefore run without these velocities,
and the work of impulses on kinematic bodies is summed separately.
"""

import types

import warp as wp
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES
from newton_like.kernels.solvers.tendons import TENDON_IMPULSES
from newton_like.kernels.tree import PRESCRIBED


def carrier_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``set_aside``, ``bring_back`` and ``work_on_carriers``."""
    real = m.real

    @m.shared
    def set_aside(b, t, T, P, L, mem):
        """z <- 0 for prescribed dofs: their velocities are so large in z that rounding removes impulses beside them."""
        for i in range(T.dofs):
            if T.dof_limits[i] & PRESCRIBED:
                z = m.get(mem, L.z + i, t)
                m.put(mem, L.z + i, t, m.where_prescribed(P, b, i, m.fill(real(0.0)), z))

    @m.shared
    def bring_back(b, t, T, P, L, mem):
        """z <- with the velocities of prescribed dofs, which are in free_z; warm_work <- less the work of the impulses on them."""
        for i in range(T.dofs):
            if T.dof_limits[i] & PRESCRIBED:
                z = m.get(mem, L.z + i, t)
                old = m.get(mem, L.free_z + i, t)
                work = m.get(mem, L.warm_work, t)
                m.put(mem, L.warm_work, t, m.where_prescribed(P, b, i, m.fnma(old, z, work), work))
                m.put(mem, L.z + i, t, m.where_prescribed(P, b, i, old, z))

    @m.shared
    def carried_work(b, t, leaf: int, y: int, p: m.lane, T, P, L, mem) -> m.lane:
        """The part that prescribed dofs have in p y . z for a row of a chain."""
        at = T.chain_at[leaf]
        work = m.fill(real(0.0))
        for d in range(T.depth[leaf] + 1):
            i = T.chain[at + d]
            if T.dof_limits[i] & PRESCRIBED:
                speed = m.mul(m.get(mem, y + d, t), m.get(mem, L.z + i, t))
                work = m.where_prescribed(P, b, i, m.fma(p, speed, work), work)
        return work

    @m.shared
    def carried_dense_work(b, t, y: int, p: m.lane, T, P, L, mem) -> m.lane:
        """The same for a row of all dofs."""
        work = m.fill(real(0.0))
        for i in range(T.dofs):
            if T.dof_limits[i] & PRESCRIBED:
                speed = m.mul(m.get(mem, y + i, t), m.get(mem, L.z + i, t))
                work = m.where_prescribed(P, b, i, m.fma(p, speed, work), work)
        return work

    @m.shared
    def carried_pair_work(b, t, pair: int, y: int, p: m.lane, T, P, L, mem) -> m.lane:
        """The same for a row of a pair."""
        work = m.fill(real(0.0))
        leaf = m.pair_leaf(pair, T)
        other = m.pair_other(pair, T)
        if leaf >= 0:
            work = carried_work(b, t, leaf, y, p, T, P, L, mem)
        if other >= 0:
            at = T.chain_at[other]
            own = y + m.chain_size(leaf, T) - m.pair_shared(pair, T)
            for d in range(m.pair_shared(pair, T), T.depth[other] + 1):
                i = T.chain[at + d]
                if T.dof_limits[i] & PRESCRIBED:
                    speed = m.mul(m.get(mem, own + d, t), m.get(mem, L.z + i, t))
                    work = m.where_prescribed(P, b, i, m.fma(p, speed, work), work)
        return work

    @m.shared
    def carried_slot_work(b, t, a: int, y: int, p: m.lane, T, P, L, mem, active: wp.array2d[int]) -> m.lane:
        """The same for a row of the contacts in slot a. It has entries for the pairs of dofs whose bits are set."""
        work = m.fill(real(0.0))
        for i in range(T.dofs):
            bits = active[T.candidates + T.dofs + 2 * a + i // 64, t]
            if (T.dof_limits[i] & PRESCRIBED) != 0 and ((bits >> ((i % 64) // 2)) & 1) != 0:
                speed = m.mul(m.get(mem, y + i, t), m.get(mem, L.z + i, t))
                work = m.where_prescribed(P, b, i, m.fma(p, speed, work), work)
        return work

    @m.shared
    def work_on_carriers(b, t, contacts: int, limits: int, T, P, L, mem, active: wp.array2d[int]) -> m.lane:
        """The work of all impulses on kinematic bodies. z does not have it: rounding removes impulses beside their velocities."""
        work = m.fill(real(0.0))
        for e in range(T.couplings):
            p = m.get(mem, L.coupling_impulse + e, t)
            work = m.add(work, carried_dense_work(b, t, L.coupling_y + T.dofs * e, p, T, P, L, mem))
        for r in range(T.loop_rows):
            p = m.get(mem, L.coupling_impulse + T.couplings + r, t)
            if r < T.loop_block and T.loop_rows > T.loop_block:
                p = m.add(p, m.closure_share(t, r, T, L, mem))
            work = m.add(work, carried_dense_work(b, t, L.loop_row + T.dofs * r, p, T, P, L, mem))
        for i in range(TENDON_IMPULSES * T.tendons):
            p = m.get(mem, L.coupling_impulse + T.first_tendon + i, t)
            work = m.add(work, carried_dense_work(b, t, L.tendon_y + T.dofs * (i // TENDON_IMPULSES), p, T, P, L, mem))
        for n in range(limits):
            i = active[T.candidates + n, t] // 2
            for j in range(DOF_IMPULSES):
                p = m.get(mem, L.dof_impulse + DOF_IMPULSES * i + j, t)
                work = m.add(work, carried_work(b, t, i, L.dof_y + T.reach * i, p, T, P, L, mem))
        for a in range(contacts):
            c = active[a, t]
            for j in range(T.contact_rows):
                p = m.get(mem, L.impulse + T.contact_rows * c + j, t)
                y = L.contact_y + T.reach * (T.contact_rows * a + j)
                if T.slotted != 0:
                    y = L.packed_y + T.dofs * (T.contact_rows * a + j)
                    work = m.add(work, carried_slot_work(b, t, a, y, p, T, P, L, mem, active))
                elif c < T.first_paired:
                    work = m.add(work, carried_work(b, t, T.leaf[T.candidate_body[c]], y, p, T, P, L, mem))
                else:
                    work = m.add(work, carried_pair_work(b, t, T.candidate_collider[c], y, p, T, P, L, mem))
        return work

    return locals()
