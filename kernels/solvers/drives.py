"""Joint drives and passive joint forces, all linear in the new velocity and therefore solved implicitly.

    tau = ke (q* - q - dt v+) + kd* v* - kd v+ + feed-forward  =  push - slope v+        (drive, within the effort limit)
        - stiffness (q + dt v+ - rest) - damping v+                                      (passive)

The terms in v+ go to the diagonal of the joint-space inertia: M + dt (kd + damping) + dt^2 (ke + stiffness). A drive that would
exceed its limit is *saturated*: it gives its limit, whatever v+, and leaves the diagonal. Which drives are saturated is found by a few
passes of a primal-dual active-set method (Hintermueller, Ito and Kunisch 2003) on the velocity without constraints, and one more after
the constraints.
"""

import types

from newton_like.kernels.tree import (  # isort: skip
    ARMATURE, CLIP_FORCE, DAMPING, EFFORT, EFFORT_LIMIT, STIFFNESS, TARGET_KD, TARGET_KE, TARGET_VELOCITY_GAIN,
)  # fmt: skip


def drive_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``apply_drives``, ``saturate``, ``drive_excess`` and ``apply_wrenches``."""
    real = m.real

    @m.func
    def drive_slope(b, i: int, dt: m.lane, P) -> m.lane:
        return m.fma(dt, m.gain(P, b, i, TARGET_KE), m.gain(P, b, i, TARGET_KD))

    @m.func
    def apply_drives(b, t, dt: m.lane, T, P, L, mem):
        """tau <- drives + passive forces + joint forces at the old velocity; drag <- armature and implicit passive terms."""
        for k in range(T.bodies):
            m.joint_errors(b, t, k, T, P, L, mem)
            m.free_errors(b, t, k, T, P, L, mem)
            m.joint_force(t, k, T, L, mem)
        for i in range(T.dofs):
            v = m.get(mem, L.v + i, t)
            force = m.get(mem, L.force + i, t)
            clipped = m.mul(m.gain(P, b, i, CLIP_FORCE), force)
            push = m.fma(
                m.gain(P, b, i, TARGET_VELOCITY_GAIN),
                m.get(mem, L.target_v + i, t),
                m.add(m.get(mem, L.act + i, t), clipped),
            )
            push = m.fma(m.gain(P, b, i, TARGET_KE), m.get(mem, L.error + i, t), push)
            drag = m.fma(dt, m.gain(P, b, i, STIFFNESS), m.gain(P, b, i, DAMPING))
            tau = m.fnma(m.gain(P, b, i, STIFFNESS), m.get(mem, L.strain + i, t), m.sub(force, clipped))
            tau = m.fnma(drag, v, tau)
            m.put(mem, L.push + i, t, push)
            m.put(mem, L.tau + i, t, m.add(tau, m.fnma(drive_slope(b, i, dt, P), v, push)))
            m.put(mem, L.drag + i, t, m.fma(dt, drag, m.gain(P, b, i, ARMATURE)))
            m.put(mem, L.saturated + i, t, m.fill(real(0.0)))

    @m.func
    def add_diagonal(b, t, dt: m.lane, T, P, L, mem):
        """Diagonal of h <- + armature and implicit terms; a saturated drive has none."""
        for i in range(T.dofs):
            at = L.h + T.chain_at[i] + T.depth[i]
            implicit = m.mul(dt, drive_slope(b, i, dt, P))
            if T.dof_limits[i] & EFFORT:
                s = m.get(mem, L.saturated + i, t)
                implicit = m.fnma(m.mul(s, s), implicit, implicit)
            m.put(mem, at, t, m.add(m.get(mem, at, t), m.add(m.get(mem, L.drag + i, t), implicit)))

    @m.func
    def drive_excess(b, t, i: int, dt: m.lane, P, L, mem) -> m.lane:
        """By how much the saturation of dof i (-1, 0 or 1) has to change for its drive to be within its limit at the velocity u."""
        effort = m.fnma(drive_slope(b, i, dt, P), m.get(mem, L.u + i, t), m.get(mem, L.push + i, t))
        limit = m.mul(m.fill(real(1.0001)), m.gain(P, b, i, EFFORT_LIMIT))
        zero = m.fill(real(0.0))
        wanted = m.where_lt(
            limit, effort, m.fill(real(1.0)), m.where_lt(effort, m.neg(limit), m.fill(real(-1.0)), zero)
        )
        return m.sub(wanted, m.get(mem, L.saturated + i, t))

    @m.func
    def saturate(b, t, dt: m.lane, T, P, L, mem):
        """Changes the saturation of drives by their excess: tau changes from the drive's law to its limit, or back."""
        for i in range(T.dofs):
            if T.dof_limits[i] & EFFORT:
                drive = m.fnma(drive_slope(b, i, dt, P), m.get(mem, L.v + i, t), m.get(mem, L.push + i, t))
                old = m.get(mem, L.saturated + i, t)
                new = m.add(old, m.get(mem, L.excess + i, t))
                # a drive gives (1 - s^2) drive + s limit
                change = m.mul(m.fnma(new, new, m.mul(old, old)), drive)
                change = m.fma(m.sub(new, old), m.gain(P, b, i, EFFORT_LIMIT), change)
                m.put(mem, L.tau + i, t, m.add(m.get(mem, L.tau + i, t), change))
                m.put(mem, L.saturated + i, t, new)

    @m.func
    def apply_wrenches(t, T, L, mem):
        """tau <- tau + JT w for the external wrenches (force, torque about the centre of mass) of all bodies, leaves first."""
        for k in range(T.bodies - 1, -1, -1):
            slot = L.wrench + 6 * T.body_slot[k]
            f = m.get3(mem, slot, t)
            n = m.cross_plus(m.get3(mem, L.com + 3 * k, t), f, m.get3(mem, slot + 3, t))
            total = m.spatial(f, n)
            for i in range(T.child_at[k], T.child_at[k + 1]):
                total = m.add6(total, m.get6(mem, L.load + 6 * T.child[i], t))
            m.put6(mem, L.load + 6 * k, t, total)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * i, t)
                m.put(mem, L.tau + i, t, m.dot6_plus(s, total, m.get(mem, L.tau + i, t)))

    return locals()
