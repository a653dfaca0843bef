"""Impulses of all active rows of a step: those of the step before where they are better than none, less of those of sweeps that diverged,
and impacts that add no energy."""

import types

import warp as wp
from newton_like.kernels.rows import SOFTNESS, TARGET
from newton_like.kernels.solvers.rows.contact_rows import CONTACT, ON, REBOUND
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES, DOF_ROW, OF_POSITION, SIDE
from newton_like.kernels.tree import POSITION, PRESCRIBED

DIVERGED = 0.5
"""Impulses are scaled to the best share of them where that is below this number."""


def impulse_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``start_cold``, ``hold_back`` and ``calm_bounces``."""
    real = m.real

    @m.func
    def start_cold(t, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """Drops the remembered impulses in worlds where they are worse than none: where |z|^2 / 2 - impulse . target is larger with them
        (Todorov 2014 chooses the warm start in this way)."""
        zero = m.fill(real(0.0))
        change = m.mul(m.fill(real(-2.0)), m.get(mem, L.warm_work, t))
        for i in range(T.dofs):
            z = m.get(mem, L.z + i, t)
            old = m.get(mem, L.free_z + i, t)
            change = m.fma(m.sub(z, old), m.add(z, old), change)
        if m.any_lt(zero, change):
            for i in range(T.dofs):
                z = m.get(mem, L.z + i, t)
                m.put(mem, L.z + i, t, m.where_lt(zero, change, m.get(mem, L.free_z + i, t), z))
            for i in range(T.bonds):
                p = L.coupling_impulse + i
                m.put(mem, p, t, m.where_lt(zero, change, zero, m.get(mem, p, t)))
            for n in range(limits):
                for j in range(DOF_IMPULSES):
                    p = L.dof_impulse + DOF_IMPULSES * (active[T.candidates + n, t] // 2) + j
                    m.put(mem, p, t, m.where_lt(zero, change, zero, m.get(mem, p, t)))
            for a in range(contacts):
                for j in range(T.contact_rows):
                    p = L.impulse + T.contact_rows * active[a, t] + j
                    m.put(mem, p, t, m.where_lt(zero, change, zero, m.get(mem, p, t)))

    @m.func
    def scale_impulses(t, contacts: int, limits: int, s: m.lane, T, L, mem, active: wp.array2d[int]):
        """All impulses of active rows times s."""
        for e in range(T.bonds):
            m.put(mem, L.coupling_impulse + e, t, m.mul(s, m.get(mem, L.coupling_impulse + e, t)))
        for n in range(limits):
            p = L.dof_impulse + DOF_IMPULSES * (active[T.candidates + n, t] // 2)
            for j in range(DOF_IMPULSES):
                m.put(mem, p + j, t, m.mul(s, m.get(mem, p + j, t)))
        for a in range(contacts):
            p = L.impulse + T.contact_rows * active[a, t]
            for j in range(T.contact_rows):
                m.put(mem, p + j, t, m.mul(s, m.get(mem, p + j, t)))

    @m.shared
    def hold_back(b, t, contacts: int, limits: int, T, P, L, mem, active: wp.array2d[int]):
        """Scales the impulses of worlds in which sweeps diverged to the share s of them for which |z|^2 / 2 - s impulse . target is least.
        That share is one or more for impulses that solve all rows: those push no faster than to their targets, and friction takes energy.
        Sweeps may diverge where friction presses a contact into the ground (compare Painleve 1895), and where contacts squeeze a body and
        cannot all push it out. So pushes at most at v add no more energy than m v^2, m being the mass of all trees. Worlds with kinematic
        bodies keep their impulses: these bodies may do any work."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        if T.bonds == 0:
            square = m.fill(real(1.0e-30))
            along = zero
            fastest = zero
            for a in range(contacts):
                at = L.contact + CONTACT * a
                # a contact that does not act may have any target
                target = m.where_lt(zero, m.get(mem, at + ON, t), m.get(mem, at + TARGET, t), zero)
                fastest = m.larger(fastest, target)
                along = m.fma(target, m.get(mem, L.impulse + T.contact_rows * active[a, t], t), along)
            granted = zero
            for n in range(limits):
                listed = active[T.candidates + n, t]
                i = listed // 2
                if listed % 2 == 1 and T.dof_limits[i] & POSITION != 0:
                    at = L.dof_row + DOF_ROW * i
                    p = m.get(mem, L.dof_impulse + DOF_IMPULSES * i + OF_POSITION, t)
                    # its work: where contacts press limits back, impulses are large, and none of these rows reaches its target
                    speed = m.mul(m.get(mem, at + SIDE, t), m.chain_dot(t, i, L.dof_y + T.reach * i, T, L, mem))
                    push = m.mul(m.magnitude(p), m.smaller(m.get(mem, at + TARGET, t), speed))
                    # rows of limits that do not act have any target
                    granted = m.add(granted, m.where_lt(zero, m.magnitude(p), push, zero))
            along = m.add(along, granted)
            before = zero
            for i in range(T.dofs):
                z = m.get(mem, L.free_z + i, t)
                d = m.sub(m.get(mem, L.z + i, t), z)
                square = m.fma(d, d, square)
                before = m.fma(z, d, before)
            share = m.larger(zero, m.div(m.sub(along, before), square))
            share = m.where_lt(share, m.fill(real(DIVERGED)), share, one)
            mass = zero
            for i in range(T.trees):
                mass = m.add(mass, m.get(mem, L.tree_mass + i, t))
            # |z + s d|^2 / 2 is at most |z|^2 / 2 and this energy
            granted = m.fma(m.mul(mass, fastest), fastest, m.larger(zero, granted))
            gain = m.fma(m.fill(real(0.5)), square, before)
            root = m.sqrt(m.fma(before, before, m.mul(m.mul(m.fill(real(2.0)), granted), square)))
            share = m.where_lt(granted, gain, m.smaller(share, m.div(m.sub(root, before), square)), share)
            if T.prescribed != 0:
                for i in range(T.dofs):
                    if T.dof_limits[i] & PRESCRIBED:
                        share = m.where_prescribed(P, b, i, one, share)
            if m.any_lt(share, one):
                for i in range(T.dofs):
                    z = m.get(mem, L.free_z + i, t)
                    scaled = m.fma(share, m.sub(m.get(mem, L.z + i, t), z), z)
                    m.put(mem, L.z + i, t, m.where_lt(share, one, scaled, m.get(mem, L.z + i, t)))
                scale_impulses(t, contacts, limits, share, T, L, mem, active)

    @m.func
    def calm_bounces(b, t, contacts: int, limits: int, T, P, L, mem, active: wp.array2d[int]):
        """Weakens impacts that would add energy, as Newton's law of restitution does with friction (Kane and Levinson 1985). Strengthens
        impacts that turn a single body onto points which are not reached yet: such points only stop, so the impacts take over their
        rebounds. In worlds of several bodies, this would strengthen impulses far from the impact."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        # an impact is what has no softness
        softness = one
        for a in range(contacts):
            softness = m.smaller(softness, m.get(mem, L.contact + CONTACT * a + SOFTNESS, t))
        tiny = m.fill(real(1.0e-30))
        if m.any_lt(softness, tiny):
            square = tiny
            along = zero
            for i in range(T.dofs):
                z = m.get(mem, L.free_z + i, t)
                d = m.sub(m.get(mem, L.z + i, t), z)
                square = m.fma(d, d, square)
                along = m.fma(z, d, along)
            if T.prescribed != 0:
                along = m.add(along, m.work_on_carriers(b, t, contacts, limits, T, P, L, mem, active))
            # |z + s d| = |z|; half of an elastic impact is a plastic one
            most = m.div(m.mul(m.fill(real(-2.0)), along), square)
            s = m.smaller(one, m.larger(m.fill(real(0.5)), most))
            if T.bodies == 1:
                back = zero
                for a in range(contacts):
                    p = m.get(mem, L.impulse + T.contact_rows * active[a, t], t)
                    back = m.fnma(p, m.get(mem, L.contact + CONTACT * a + REBOUND, t), back)
                if m.any_lt(zero, back):
                    # |z + s d|^2 / 2 = |z + d|^2 / 2 + back, and at most |z|^2 / 2
                    gain = m.smaller(zero, m.add(m.fma(m.fill(real(0.5)), square, along), back))
                    root = m.fma(along, along, m.mul(m.add(square, square), gain))
                    more = m.div(m.sub(m.sqrt(m.larger(zero, root)), along), square)
                    more = m.larger(s, m.smaller(more, m.smaller(most, m.fill(real(2.0)))))
                    s = m.where_lt(zero, back, more, s)
            s = m.where_lt(softness, tiny, s, one)
            for i in range(T.dofs):
                z = m.get(mem, L.free_z + i, t)
                old = m.get(mem, L.z + i, t)
                scaled = m.fma(s, m.sub(old, z), z)
                m.put(mem, L.z + i, t, m.where_lt(s, one, scaled, m.where_lt(one, s, scaled, old)))
            scale_impulses(t, contacts, limits, s, T, L, mem, active)

    return locals()
