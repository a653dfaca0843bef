"""Joint drives and passive joint forces, all linear in the new velocity and therefore solved implicitly.

    tau = ke (q* - q - dt v+) + kd* v* - kd v+ + feed-forward        (drive: clipped to the effort limit by a constraint row)
        - stiffness (q + dt v+ - rest) - damping v+                  (passive)

The terms in v+ go to the diagonal of the joint-space inertia: M + dt (kd + damping) + dt^2 (ke + stiffness).
"""

import types

from newton_like.kernels.tree import BALL, FREE


def drive_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``apply_drives``, ``drive_effort`` and ``apply_wrenches``."""
    real = m.real

    @m.func
    def ball_error(t: int, k: int, T: m.Tree, L: m.Layout, mem: m.memory) -> m.Vec3:
        """The rotation vector, in the parent anchor frame, from a ball joint's orientation to its target."""
        at = T.q_at[k]
        q = m.quat_normalize(m.get4(mem, L.q + at, t))
        goal = m.quat_normalize(m.get4(mem, L.target_q + at, t))
        return m.quat_log(m.quat_multiply(goal, m.quat_conjugate(q)))

    @m.func
    def ball_strain(b: int, t: int, k: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory) -> m.Vec3:
        """The rotation vector, in the parent anchor frame, from a ball joint's rest orientation to its orientation."""
        i = T.dof_at[k]
        rest = m.quat(m.gain(P, b, i, 3), m.gain(P, b, i + 1, 3), m.gain(P, b, i + 2, 3), m.gain(P, b, i, 14))
        q = m.quat_normalize(m.get4(mem, L.q + T.q_at[k], t))
        return m.quat_log(m.quat_multiply(q, m.quat_conjugate(rest)))

    @m.func
    def apply_dof(
        b: int, t: int, i: int, dt: m.lane, error: m.lane, strain: m.lane, P: m.Params, L: m.Layout, mem: m.memory
    ):
        """Adds the drive and the passive forces of dof i to rhs and to the diagonal of h (at `row`)."""
        v = m.get(mem, L.v + i, t)
        ke = m.gain(P, b, i, 4)
        kd = m.gain(P, b, i, 5)
        stiffness = m.gain(P, b, i, 2)
        damping = m.gain(P, b, i, 1)
        slope = m.fma(dt, ke, kd)
        force = m.get(mem, L.force + i, t)
        clipped = m.mul(m.gain(P, b, i, 16), force)
        push = m.fma(ke, error, m.fma(m.gain(P, b, i, 6), m.get(mem, L.target_v + i, t), m.add(m.get(mem, L.act + i, t), clipped)))
        # the drive's effort at v+ is push - slope v+
        m.put(mem, L.push + i, t, push)
        drag = m.add(slope, m.fma(dt, stiffness, damping))
        rhs = m.add(m.get(mem, L.tau + i, t), m.add(push, m.sub(force, clipped)))
        m.put(mem, L.tau + i, t, m.fnma(drag, v, m.fnma(stiffness, strain, rhs)))
        m.put(mem, L.drag + i, t, m.fma(dt, drag, m.gain(P, b, i, 0)))

    @m.func
    def apply_drives(b: int, t: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """tau <- rhs + drives + passive forces + joint forces; diagonal of h <- + armature and implicit terms."""
        zero = m.fill(real(0.0))
        for k in range(T.bodies):
            dof = T.dof_at[k]
            kind = T.kind[k]
            if kind == BALL:
                e = ball_error(t, k, T, L, mem)
                s = ball_strain(b, t, k, T, P, L, mem)
                apply_dof(b, t, dof, dt, e.x, s.x, P, L, mem)
                apply_dof(b, t, dof + 1, dt, e.y, s.y, P, L, mem)
                apply_dof(b, t, dof + 2, dt, e.z, s.z, P, L, mem)
            elif kind == FREE:
                # a world wrench at the centre of mass, read in the parent anchor frame of the coordinates
                f = m.get3(mem, L.force + dof, t)
                n = m.get3(mem, L.force + dof + 3, t)
                for i in range(3):
                    axis = m.get3(mem, L.subspace + 6 * (dof + i), t)
                    m.put(mem, L.tau + dof + i, t, m.add(m.get(mem, L.tau + dof + i, t), m.dot(axis, f)))
                    m.put(mem, L.tau + dof + 3 + i, t, m.add(m.get(mem, L.tau + dof + 3 + i, t), m.dot(axis, n)))
                for i in range(6):
                    damping = m.gain(P, b, dof + i, 1)
                    v = m.get(mem, L.v + dof + i, t)
                    m.put(mem, L.tau + dof + i, t, m.fnma(damping, v, m.get(mem, L.tau + dof + i, t)))
                    m.put(mem, L.drag + dof + i, t, m.fma(dt, damping, m.gain(P, b, dof + i, 0)))
                    m.put(mem, L.push + dof + i, t, zero)
            else:
                for i in range(dof, T.dof_at[k + 1]):
                    at = T.q_at[k] + i - dof
                    q = m.get(mem, L.q + at, t)
                    error = m.sub(m.get(mem, L.target_q + at, t), q)
                    apply_dof(b, t, i, dt, error, m.sub(q, m.gain(P, b, i, 3)), P, L, mem)
        for i in range(T.dofs):
            at = L.h + T.row[i] + T.depth[i]
            m.put(mem, at, t, m.add(m.get(mem, at, t), m.get(mem, L.drag + i, t)))

    @m.func
    def apply_wrenches(t: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """tau <- rhs + JT w for the external wrenches (force, torque about the centre of mass) of all bodies, leaves first."""
        for back in range(T.bodies):
            k = T.bodies - 1 - back
            slot = L.wrench + 6 * T.body_slot[k]
            f = m.get3(mem, slot, t)
            n = m.add3(m.get3(mem, slot + 3, t), m.cross(m.get3(mem, L.com + 3 * k, t), f))
            total = m.spatial(f, n)
            for i in range(T.child_at[k], T.child_at[k + 1]):
                total = m.add6(total, m.get6(mem, L.load + 6 * T.child[i], t))
            m.put6(mem, L.load + 6 * k, t, total)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * i, t)
                m.put(mem, L.tau + i, t, m.add(m.get(mem, L.tau + i, t), m.dot6(s, total)))

    own = ("m", "real")
    return types.SimpleNamespace(**{**vars(m), **{k: v for k, v in locals().items() if k not in own}})
