"""Energy that a step adds by its own error, and taking it back.

A step kicks at the middle of two half drifts. Over the drifts the inertia of a tree changes with its configuration, and the bias forces of
the kick undo that to second order only: what turns by a few tenths of a radian a step gains or loses energy that no force gave,

    gain = (E(q1, v1) - K(q, v1)) - (E(q0, v0) - K(q, v0)) + dt bias . (v0 + v1) / 2

with q in the middle, K the kinetic and E the whole mechanical energy of the bodies: the work of all forces but the bias is
K(q, v1) - K(q, v0) - dt bias . (v0 + v1) / 2, exactly. Each tree keeps the sum of these gains, down to a share of its kinetic energy.
What is above zero is taken back, never more: first by a damping of its joints, which leaves momentum alone, and where these have no
more to give, from all motion about its centre of mass. Where a kinematic body moves, nothing is: its motion does work.

`hold_speeds` takes away what sweeps leave of velocities above their limits. Where that is much, `slow_down` scales the same motion down
first.
"""

import types

from newton_like.kernels.solvers.rows.dof_rows import HELD
from newton_like.kernels.tree import PARENT_QUAT, PRESCRIBED, VELOCITY, VELOCITY_LIMIT

# Shares of the kinetic energy: what may have been lost and come back, and what cannot wait until the motion is fast again.
CREDIT, OWED = 0.1, 1.0e-3

# Numbers of a tree while its energy is balanced: what the step added, its kinetic energy, its energies after the step, before joints are
# damped and after; positive where this is asked for; and what damping takes to first order.
LEDGER = 6
GAINED, LATE, ENERGY, LESS, FRESH, LINEAR = range(LEDGER)


def balance_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``balance``, ``slow_down`` and ``hold_speeds``."""
    real = m.real

    @m.func
    def kinetic(b, t, i: int, vel: int, T, P, L, mem) -> m.lane:
        """The kinetic energy of the bodies of tree i, placed before, at the velocities `vel`; their twists <- those."""
        total = m.fill(real(0.0))
        for k in range(m.tree_start(i, T), m.tree_start(i + 1, T)):
            m.move_body(t, k, vel, T, L, mem)
            v = m.get6(mem, L.twist + 6 * k, t)
            u = m.velocity_at(v, m.get3(mem, L.com + 3 * k, t))
            w = m.apply_t(v.w, m.get9(mem, L.rot + 9 * k, t))
            spin = m.dot(w, m.sym_apply(m.body_inertia(P, b, k), w))
            total = m.add(total, m.fma(m.body_mass(P, b, k), m.dot(u, u), spin))
        return m.mul(m.fill(real(0.5)), total)

    @m.func
    def potential(b, t, i: int, T, P, L, mem) -> m.lane:
        """The gravitational energy of the bodies of tree i, placed before."""
        g = m.gravity(P, b)
        o = m.get3(mem, L.origin + 3 * i, t)
        total = m.fill(real(0.0))
        for k in range(m.tree_start(i, T), m.tree_start(i + 1, T)):
            c = m.add3(o, m.get3(mem, L.com + 3 * k, t))
            total = m.fnma(m.body_mass(P, b, k), m.dot(g, c), total)
        return total

    @m.func
    def drift_for(b, t, dt: m.lane, T, P, L, mem):
        """Moves and places all bodies; the coordinates come back by ``come_back``."""
        m.integrate(b, t, dt, T, P, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)

    @m.func
    def come_back(t, L, mem):
        """q <- those set aside in `target_q`."""
        m.copy(t, L.q, L.target_q, L.target_v - L.target_q, mem)

    @m.func
    def mechanical(b, t, i: int, T, P, L, mem) -> m.lane:
        return m.add(kinetic(b, t, i, L.v, T, P, L, mem), potential(b, t, i, T, P, L, mem))

    @m.func
    def total_mass(b, i: int, T, P) -> m.lane:
        mass = m.fill(real(0.0))
        for k in range(m.tree_start(i, T), m.tree_start(i + 1, T)):
            mass = m.add(mass, m.body_mass(P, b, k))
        return mass

    @m.func
    def drift_of_centre(b, t, i: int, mass: m.lane, T, P, L, mem) -> m.Vec3:
        """The velocity of the centre of mass of tree i, from the twists of its bodies; zero for a tree that does not float, or is held by a
        kinematic body."""
        drift = m.zero3()
        if m.is_base(m.tree_start(i, T), T) == 1:
            first = T.dof_at[m.tree_start(i, T)]
            for k in range(m.tree_start(i, T), m.tree_start(i + 1, T)):
                u = m.velocity_at(m.get6(mem, L.twist + 6 * k, t), m.get3(mem, L.com + 3 * k, t))
                drift = m.fma3(u, m.body_mass(P, b, k), drift)
            # a floating kinematic body alone has no mass
            rate = m.rcp(m.larger(mass, m.fill(real(1.0e-30))))
            if T.dof_limits[first] & PRESCRIBED:
                rate = m.where_prescribed(P, b, first, m.fill(real(0.0)), rate)
            drift = m.scale3(drift, rate)
        return drift

    @m.func
    def slow_about_centre(b, t, i: int, on: m.lane, slower: m.lane, drift: m.Vec3, T, P, L, mem):
        """u <- with all motion about the centre of mass of tree i times `slower`, where on is positive."""
        zero = m.fill(real(0.0))
        rest = m.sub(m.fill(real(1.0)), slower)
        base = m.tree_start(i, T)
        first = T.dof_at[base]
        if m.is_base(m.tree_start(i, T), T) == 1:
            drift = m.apply_t(drift, m.quat_to_matrix(m.joint_quat(P, b, base, PARENT_QUAT)))
        for j in range(first, T.dof_at[m.tree_start(i + 1, T)]):
            old = m.get(mem, L.u + j, t)
            new = m.mul(slower, old)
            if m.is_base(m.tree_start(i, T), T) == 1:
                if j == first:
                    new = m.fma(rest, drift.x, new)
                if j == first + 1:
                    new = m.fma(rest, drift.y, new)
                if j == first + 2:
                    new = m.fma(rest, drift.z, new)
            if T.dof_limits[j] & PRESCRIBED:
                new = m.where_prescribed(P, b, j, old, new)
            m.put(mem, L.u + j, t, m.where_lt(zero, on, new, old))

    @m.shared
    def slow_down(b, t, T, P, L, mem):
        """Brings the velocities u within HELD times their limits, in worlds where one is above: all motion about the centre of mass of a
        floating tree, or all motion of another one, is scaled down. The kinetic energy does not rise."""
        one = m.fill(real(1.0))
        m.forward_kinematics(b, t, T, P, L, mem)
        for k in range(T.bodies):
            m.move_body(t, k, L.u, T, L, mem)
        for i in range(T.trees):
            slower = one
            for j in range(T.dof_at[m.tree_start(i, T)], T.dof_at[m.tree_start(i + 1, T)]):
                if T.dof_limits[j] & VELOCITY:
                    u = m.get(mem, L.u + j, t)
                    u = m.larger(u, m.neg(u))
                    bound = m.mul(m.fill(real(HELD)), m.gain(P, b, j, VELOCITY_LIMIT))
                    slower = m.smaller(slower, m.where_lt(bound, u, m.div(bound, u), one))
            drift = drift_of_centre(b, t, i, total_mass(b, i, T, P), T, P, L, mem)
            slow_about_centre(b, t, i, m.sub(one, slower), slower, drift, T, P, L, mem)

    @m.func
    def add_where(t, place: int, on: m.lane, x: m.lane, mem):
        old = m.get(mem, place, t)
        m.put(mem, place, t, m.where_lt(m.fill(real(0.0)), on, m.add(old, x), old))

    @m.func
    def hold_speed(b, t, j: int, on: m.lane, T, P, L, mem) -> m.lane:
        """Brings the velocity u of dof j within its limit; ``first_u`` <- by how much. Returns one where it was above, and else `on`."""
        u = m.get(mem, L.u + j, t)
        bound = m.gain(P, b, j, VELOCITY_LIMIT)
        speed = m.larger(u, m.neg(u))
        # what is not a number stays one
        new = m.where_lt(bound, speed, m.larger(m.neg(bound), m.smaller(u, bound)), u)
        m.put(mem, L.u + j, t, new)
        m.put(mem, L.first_u + j, t, m.sub(new, u))
        return m.where_lt(bound, speed, m.fill(real(1.0)), on)

    @m.shared
    def hold_speeds(b, t, T, P, L, mem):
        """Brings the velocities u within their limits, each by itself. The centre of mass of a floating tree keeps its velocity."""
        zero = m.fill(real(0.0))
        floats = int(0)
        for i in range(T.trees):
            if m.is_base(m.tree_start(i, T), T) == 1:
                floats = 1
        if floats == 1:
            m.forward_kinematics(b, t, T, P, L, mem)
        for i in range(T.trees):
            base = m.tree_start(i, T)
            first = T.dof_at[base]
            on = zero
            for j in range(first, T.dof_at[m.tree_start(i + 1, T)]):
                m.put(mem, L.first_u + j, t, zero)
                if T.dof_limits[j] & VELOCITY:
                    on = hold_speed(b, t, j, on, T, P, L, mem)
            if m.is_base(base, T) == 1:
                for k in range(base, m.tree_start(i + 1, T)):
                    m.move_body(t, k, L.first_u, T, L, mem)
                drift = drift_of_centre(b, t, i, total_mass(b, i, T, P), T, P, L, mem)
                drift = m.apply_t(drift, m.quat_to_matrix(m.joint_quat(P, b, base, PARENT_QUAT)))
                add_where(t, L.u + first, on, m.neg(drift.x), mem)
                add_where(t, L.u + first + 1, on, m.neg(drift.y), mem)
                add_where(t, L.u + first + 2, on, m.neg(drift.z), mem)

    @m.func
    def find_gains(b, t, half: m.lane, fast: m.lane, T, P, L, mem):
        """The ledger <- GAINED, LATE, ENERGY and FRESH of all trees; v <- u."""
        zero = m.fill(real(0.0))
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            # a kinematic body that rests carries its tree as the world does
            moves = zero
            for j in range(T.dof_at[m.tree_start(i, T)], T.dof_at[m.tree_start(i + 1, T)]):
                if T.dof_limits[j] & PRESCRIBED:
                    v = m.get(mem, L.v + j, t)
                    m.put(mem, L.u + j, t, m.where_prescribed(P, b, j, v, m.get(mem, L.u + j, t)))
                    moves = m.where_prescribed(P, b, j, m.fma(v, v, moves), moves)
            fresh = m.sub(m.get(mem, L.fastness + i, t), fast)
            m.put(mem, at + FRESH, t, m.where_lt(zero, moves, m.fill(real(-1.0)), fresh))
        m.forward_kinematics(b, t, T, P, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            gain = kinetic(b, t, i, L.v, T, P, L, mem)
            late = kinetic(b, t, i, L.u, T, P, L, mem)
            gain = m.sub(gain, late)
            for j in range(T.dof_at[m.tree_start(i, T)], T.dof_at[m.tree_start(i + 1, T)]):
                mean = m.mul(half, m.add(m.get(mem, L.v + j, t), m.get(mem, L.u + j, t)))
                gain = m.fma(mean, m.get(mem, L.bias + j, t), gain)
            m.put(mem, at + GAINED, t, gain)
            m.put(mem, at + LATE, t, late)
        m.copy(t, L.target_q, L.q, L.target_v - L.target_q, mem)
        drift_for(b, t, m.neg(half), T, P, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            m.put(mem, at + GAINED, t, m.sub(m.get(mem, at + GAINED, t), mechanical(b, t, i, T, P, L, mem)))
        come_back(t, L, mem)
        m.copy(t, L.v, L.u, T.dofs, mem)
        drift_for(b, t, half, T, P, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            energy = mechanical(b, t, i, T, P, L, mem)
            m.put(mem, at + ENERGY, t, energy)
            m.put(mem, at + GAINED, t, m.add(m.get(mem, at + GAINED, t), energy))
        come_back(t, L, mem)

    @m.func
    def damp_joints(b, t, T, P, L, mem):
        """u, v <- with a damping of each joint by its own inertia that takes the gained energy back; the ledger's GAINED is the account."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        tiny = m.fill(real(1.0e-30))
        for j in range(T.dofs):
            m.put(mem, L.tau + j, t, zero)
            m.put(mem, L.middle + j, t, m.get(mem, L.u + j, t))
            m.put(mem, L.v + j, t, zero)
        for i in range(T.trees):
            linear = zero
            for k in range(m.tree_start(i, T), m.tree_start(i + 1, T)):
                if m.is_base(k, T) == 0:
                    for j in range(T.dof_at[k], T.dof_at[k + 1]):
                        v = m.get(mem, L.u + j, t)
                        root = m.get(mem, L.root + j, t)
                        f = m.neg(m.div(v, m.mul(root, root)))
                        if T.dof_limits[j] & PRESCRIBED:
                            f = m.where_prescribed(P, b, j, zero, f)
                        m.put(mem, L.tau + j, t, f)
                        linear = m.fnma(f, v, linear)
            m.put(mem, L.ledger + LEDGER * i + LINEAR, t, linear)
        m.whiten(t, one, L.tau, T, L, mem)
        m.unwhiten(t, T, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            account = m.get(mem, at + GAINED, t)
            linear = m.get(mem, at + LINEAR, t)
            first = T.dof_at[m.tree_start(i, T)]
            last = T.dof_at[m.tree_start(i + 1, T)]
            square = tiny
            for j in range(first, last):
                z = m.get(mem, L.z + j, t)
                square = m.fma(z, z, square)
            share = m.smaller(m.div(account, m.larger(linear, tiny)), m.div(linear, square))
            # not where this is not asked for, nothing was gained, or nothing can be taken
            on = m.smaller(m.smaller(share, account), m.get(mem, at + FRESH, t))
            for j in range(first, last):
                old = m.get(mem, L.middle + j, t)
                new = m.where_lt(zero, on, m.fma(share, m.get(mem, L.u + j, t), old), old)
                if T.dof_limits[j] & PRESCRIBED:
                    new = m.where_prescribed(P, b, j, old, new)
                m.put(mem, L.u + j, t, new)
                m.put(mem, L.v + j, t, new)

    @m.shared
    def balance(b, t, dt: m.lane, fast: m.lane, T, P, L, mem):
        """u <- less what the step added by its own error, for trees with fastness > fast; account <- what is left of that,
        owed <- 1 where it cannot wait."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        tiny = m.fill(real(1.0e-30))
        half = m.mul(m.fill(real(0.5)), dt)
        find_gains(b, t, half, fast, T, P, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            least = m.mul(m.fill(real(-CREDIT)), m.get(mem, at + LATE, t))
            account = m.add(m.get(mem, L.account + i, t), m.get(mem, at + GAINED, t))
            m.put(mem, at + GAINED, t, m.larger(account, least))
        damp_joints(b, t, T, P, L, mem)
        drift_for(b, t, half, T, P, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            less = mechanical(b, t, i, T, P, L, mem)
            m.put(mem, at + LESS, t, less)
            account = m.get(mem, at + GAINED, t)
            m.put(mem, at + GAINED, t, m.add(account, m.sub(less, m.get(mem, at + ENERGY, t))))
        come_back(t, L, mem)
        # where that was not enough, all motion about the centre of mass is slower
        m.forward_kinematics(b, t, T, P, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            account = m.get(mem, at + GAINED, t)
            inner = kinetic(b, t, i, L.v, T, P, L, mem)
            mass = total_mass(b, i, T, P)
            drift = drift_of_centre(b, t, i, mass, T, P, L, mem)
            if m.is_base(m.tree_start(i, T), T) == 1:
                inner = m.fnma(m.mul(m.fill(real(0.5)), mass), m.dot(drift, drift), inner)
            slower = m.sub(one, m.div(account, m.larger(inner, tiny)))
            slower = m.sqrt(m.larger(m.fill(real(0.25)), slower))
            on = m.smaller(m.smaller(account, inner), m.get(mem, at + FRESH, t))
            slow_about_centre(b, t, i, on, slower, drift, T, P, L, mem)
        m.copy(t, L.v, L.u, T.dofs, mem)
        drift_for(b, t, half, T, P, L, mem)
        for i in range(T.trees):
            at = L.ledger + LEDGER * i
            last = mechanical(b, t, i, T, P, L, mem)
            account = m.add(m.get(mem, at + GAINED, t), m.sub(last, m.get(mem, at + LESS, t)))
            late = m.get(mem, at + LATE, t)
            owed = m.where_lt(m.mul(m.fill(real(OWED)), late), account, one, zero)
            fresh = m.get(mem, at + FRESH, t)
            m.put(mem, L.account + i, t, m.where_lt(zero, fresh, account, m.get(mem, L.account + i, t)))
            m.put(mem, L.owed + i, t, m.where_lt(zero, fresh, owed, m.get(mem, L.owed + i, t)))
        come_back(t, L, mem)

    return locals()
