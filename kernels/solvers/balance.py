"""Energy that a step adds by its own error, and taking it back.

A step kicks at the middle of two half drifts. Over the drifts the inertia of a tree changes with its configuration, and the bias forces of
the kick undo that to second order only: what turns by a few tenths of a radian a step gains or loses energy that no force gave,

    gain = (E(q1, v1) - K(q, v1)) - (E(q0, v0) - K(q, v0)) + dt bias . (v0 + v1) / 2

with q in the middle, K the kinetic and E the whole mechanical energy of the bodies: the work of all forces but the bias is
K(q, v1) - K(q, v0) - dt bias . (v0 + v1) / 2, exactly. Each world keeps the sum of these gains, down to a share of its kinetic energy.
What is above zero is taken back, never more: first by a damping of its joints, which leaves momentum alone, and where these have no
more to give, from all motion about its centre of mass. Where a kinematic body moves, nothing is: its motion does work.

`slow_down` is the last resort of velocity limits: it scales the same motion down.
"""

import types

from newton_like.kernels.solvers.dof_rows import HELD
from newton_like.kernels.tree import PARENT_QUAT, PRESCRIBED, VELOCITY, VELOCITY_LIMIT

# Shares of the kinetic energy: what may have been lost and come back, and what cannot wait until the motion is fast again.
CREDIT, OWED = 0.1, 1.0e-3


def balance_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``balance`` and ``slow_down``."""
    real = m.real

    @m.func
    def kinetic(b, t, vel: int, T, P, L, mem) -> m.lane:
        """The kinetic energy of all bodies, placed before, at the velocities `vel`; their twists <- those."""
        total = m.fill(real(0.0))
        for k in range(T.bodies):
            m.move_body(t, k, vel, T, L, mem)
            v = m.get6(mem, L.twist + 6 * k, t)
            u = m.velocity_at(v, m.get3(mem, L.com + 3 * k, t))
            w = m.apply_t(v.w, m.get9(mem, L.rot + 9 * k, t))
            spin = m.dot(w, m.sym_apply(m.body_inertia(P, b, k), w))
            total = m.add(total, m.fma(m.body_mass(P, b, k), m.dot(u, u), spin))
        return m.mul(m.fill(real(0.5)), total)

    @m.func
    def potential(b, t, T, P, L, mem) -> m.lane:
        """The gravitational energy of all bodies, placed before."""
        g = m.gravity(P, b)
        o = m.get3(mem, L.origin, t)
        total = m.fill(real(0.0))
        for k in range(T.bodies):
            c = m.add3(o, m.get3(mem, L.com + 3 * k, t))
            total = m.fnma(m.body_mass(P, b, k), m.dot(g, c), total)
        return total

    @m.func
    def energy_after(b, t, dt: m.lane, T, P, L, mem) -> m.lane:
        """The mechanical energy after a drift; the coordinates come back from `target_q`."""
        m.integrate(b, t, dt, T, P, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        total = m.add(kinetic(b, t, L.v, T, P, L, mem), potential(b, t, T, P, L, mem))
        m.copy(t, L.q, L.target_q, L.target_v - L.target_q, mem)
        return total

    @m.func
    def total_mass(b, T, P) -> m.lane:
        mass = m.fill(real(0.0))
        for k in range(T.bodies):
            mass = m.add(mass, m.body_mass(P, b, k))
        return mass

    @m.func
    def drift_of_centre(b, t, mass: m.lane, T, P, L, mem) -> m.Vec3:
        """The velocity of the centre of mass, from the twists of all bodies; zero for a tree that does not float, or is held by a kinematic
        body."""
        drift = m.zero3()
        if T.free_root != 0:
            for k in range(T.bodies):
                u = m.velocity_at(m.get6(mem, L.twist + 6 * k, t), m.get3(mem, L.com + 3 * k, t))
                drift = m.fma3(u, m.body_mass(P, b, k), drift)
            # a floating kinematic body alone has no mass
            rate = m.rcp(m.larger(mass, m.fill(real(1.0e-30))))
            if T.dof_limits[0] & PRESCRIBED:
                rate = m.where_prescribed(P, b, 0, m.fill(real(0.0)), rate)
            drift = m.scale3(drift, rate)
        return drift

    @m.func
    def slow_about_centre(b, t, on: m.lane, slower: m.lane, drift: m.Vec3, T, P, L, mem):
        """u <- with all motion about the centre of mass times `slower`, where on is positive."""
        zero = m.fill(real(0.0))
        rest = m.sub(m.fill(real(1.0)), slower)
        if T.free_root != 0:
            drift = m.apply_t(drift, m.quat_to_matrix(m.joint_quat(P, b, 0, PARENT_QUAT)))
        for i in range(T.dofs):
            old = m.get(mem, L.u + i, t)
            new = m.mul(slower, old)
            if T.free_root != 0:
                if i == 0:
                    new = m.fma(rest, drift.x, new)
                if i == 1:
                    new = m.fma(rest, drift.y, new)
                if i == 2:
                    new = m.fma(rest, drift.z, new)
            if T.dof_limits[i] & PRESCRIBED:
                new = m.where_prescribed(P, b, i, old, new)
            m.put(mem, L.u + i, t, m.where_lt(zero, on, new, old))

    @m.shared
    def slow_down(b, t, T, P, L, mem):
        """Brings the velocities u within HELD times their limits, in worlds where one is above: all motion about the centre of mass of a
        floating tree, or all motion of another one, is scaled down. The kinetic energy does not rise."""
        one = m.fill(real(1.0))
        slower = one
        for i in range(T.dofs):
            if T.dof_limits[i] & VELOCITY:
                u = m.get(mem, L.u + i, t)
                u = m.larger(u, m.neg(u))
                bound = m.mul(m.fill(real(HELD)), m.gain(P, b, i, VELOCITY_LIMIT))
                slower = m.smaller(slower, m.where_lt(bound, u, m.div(bound, u), one))
        drift = m.zero3()
        if T.free_root != 0:
            m.forward_kinematics(b, t, T, P, L, mem)
            for k in range(T.bodies):
                m.move_body(t, k, L.u, T, L, mem)
            drift = drift_of_centre(b, t, total_mass(b, T, P), T, P, L, mem)
        slow_about_centre(b, t, m.sub(one, slower), slower, drift, T, P, L, mem)

    @m.shared
    def balance(b, t, dt: m.lane, fast: m.lane, T, P, L, mem):
        """u <- less what the step added by its own error, in worlds with fastness > fast; account <- what is left of that,
        owed <- 1 where it cannot wait."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        tiny = m.fill(real(1.0e-30))
        half = m.mul(m.fill(real(0.5)), dt)
        # a kinematic body that rests carries its tree as the world does
        moves = zero
        for i in range(T.dofs):
            if T.dof_limits[i] & PRESCRIBED:
                v = m.get(mem, L.v + i, t)
                m.put(mem, L.u + i, t, m.where_prescribed(P, b, i, v, m.get(mem, L.u + i, t)))
                moves = m.where_prescribed(P, b, i, m.fma(v, v, moves), moves)
        m.forward_kinematics(b, t, T, P, L, mem)
        gain = kinetic(b, t, L.v, T, P, L, mem)
        late = kinetic(b, t, L.u, T, P, L, mem)
        gain = m.sub(gain, late)
        for i in range(T.dofs):
            mean = m.mul(half, m.add(m.get(mem, L.v + i, t), m.get(mem, L.u + i, t)))
            gain = m.fma(mean, m.get(mem, L.bias + i, t), gain)
        m.copy(t, L.target_q, L.q, L.target_v - L.target_q, mem)
        gain = m.sub(gain, energy_after(b, t, m.neg(half), T, P, L, mem))
        m.copy(t, L.v, L.u, T.dofs, mem)
        energy = energy_after(b, t, half, T, P, L, mem)
        gain = m.add(gain, energy)
        account = m.larger(m.add(m.get(mem, L.account, t), gain), m.mul(m.fill(real(-CREDIT)), late))
        fresh = m.where_lt(zero, moves, m.neg(one), m.sub(m.get(mem, L.fastness, t), fast))
        # a damping of each joint by its own inertia
        linear = zero
        for i in range(T.dofs):
            m.put(mem, L.tau + i, t, zero)
            m.put(mem, L.middle + i, t, m.get(mem, L.u + i, t))
            m.put(mem, L.v + i, t, zero)
        for k in range(T.bodies):
            if k > 0 or T.free_root == 0:
                for i in range(T.dof_at[k], T.dof_at[k + 1]):
                    v = m.get(mem, L.u + i, t)
                    root = m.get(mem, L.root + i, t)
                    f = m.neg(m.div(v, m.mul(root, root)))
                    if T.dof_limits[i] & PRESCRIBED:
                        f = m.where_prescribed(P, b, i, zero, f)
                    m.put(mem, L.tau + i, t, f)
                    linear = m.fnma(f, v, linear)
        m.whiten(t, m.fill(real(1.0)), L.tau, T, L, mem)
        m.unwhiten(t, T, L, mem)
        square = tiny
        for i in range(T.dofs):
            z = m.get(mem, L.z + i, t)
            square = m.fma(z, z, square)
        share = m.smaller(m.div(account, m.larger(linear, tiny)), m.div(linear, square))
        # not where this is not asked for, nothing was gained, or nothing can be taken
        on = m.smaller(m.smaller(share, account), fresh)
        for i in range(T.dofs):
            old = m.get(mem, L.middle + i, t)
            new = m.where_lt(zero, on, m.fma(share, m.get(mem, L.u + i, t), old), old)
            if T.dof_limits[i] & PRESCRIBED:
                new = m.where_prescribed(P, b, i, old, new)
            m.put(mem, L.u + i, t, new)
            m.put(mem, L.v + i, t, new)
        less = energy_after(b, t, half, T, P, L, mem)
        account = m.add(account, m.sub(less, energy))
        # where that was not enough, all motion about the centre of mass is slower
        m.forward_kinematics(b, t, T, P, L, mem)
        inner = kinetic(b, t, L.v, T, P, L, mem)
        mass = total_mass(b, T, P)
        drift = drift_of_centre(b, t, mass, T, P, L, mem)
        if T.free_root != 0:
            inner = m.fnma(m.mul(m.fill(real(0.5)), mass), m.dot(drift, drift), inner)
        slower = m.sub(one, m.div(account, m.larger(inner, tiny)))
        slower = m.sqrt(m.larger(m.fill(real(0.25)), slower))
        on = m.smaller(m.smaller(account, inner), fresh)
        slow_about_centre(b, t, on, slower, drift, T, P, L, mem)
        m.copy(t, L.v, L.u, T.dofs, mem)
        account = m.add(account, m.sub(energy_after(b, t, half, T, P, L, mem), less))
        owed = m.where_lt(m.mul(m.fill(real(OWED)), late), account, one, zero)
        m.put(mem, L.account, t, m.where_lt(zero, fresh, account, m.get(mem, L.account, t)))
        m.put(mem, L.owed, t, m.where_lt(zero, fresh, owed, m.get(mem, L.owed, t)))

    return locals()
