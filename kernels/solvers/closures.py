"""Loop joints in a step: constraint rows that are solved together.

The rows are those of `kernels.dynamics.loops`, with the errors g and the bias accelerations k at the middle of the step. Forces act along
the rows K at the middle of this step, and g is to vanish at the middle of the next one, which a constant velocity u reaches after dt:

    g + dt K u + dt^2 / 2 k = 0

as in SHAKE (Ryckaert, Ciccotti and Berendsen 1977), which is symplectic. What of g is beyond CLOSE is corrected by a share SLOW of it a
step. All rows of a cluster are one block of the sweeps: with the whitened rows Y, the impulses change by (Y^T Y + s 1)^-1 (target - Y^T z).
The softness s keeps the block regular where rows depend on each other, and repeated visits remove its effect (proximal steps, Carpentier,
Budhiraja and Mansard 2021).
"""

import types

from newton_like.kernels.dynamics.loops import LOOP

CLOSE = 1.0e-3
"""Errors up to here [m, rad] are corrected within a step."""

SLOW = 0.2
"""The share of larger errors that a step corrects."""


def closure_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``closure_rows``, ``close_velocity``, ``closure_build`` and ``closure_sweep``."""
    real = m.real

    @m.func
    def closure_target(t, r: int, dt: m.lane, T, L, mem) -> m.lane:
        """The velocity that row r is to have."""
        g = m.loop_error(t, r, T, L, mem)
        near = m.smaller(m.fill(real(CLOSE)), m.larger(m.fill(real(-CLOSE)), g))
        gap = m.fma(m.fill(real(SLOW)), m.sub(g, near), near)
        bend = m.mul(m.mul(m.fill(real(0.5)), dt), m.loop_acceleration(t, r, T, L, mem))
        return m.neg(m.add(m.div(gap, dt), bend))

    @m.func
    def closure_targets(t, dt: m.lane, T, L, mem):
        for r in range(T.loop_rows):
            m.put(mem, L.loop_want + r, t, closure_target(t, r, dt, T, L, mem))

    @m.func
    def closure_rows(b, t, o, T, P, L, mem):
        """The rows of all loop joints, the factor of their block, and targets at the velocities v."""
        for i in range(LOOP * T.loop_rows):
            m.put(mem, L.loop + i, t, m.param(T.loop_uniform, T.loop_varying, T.loops_vary, b, i))
        m.whitened_loops(t, T, L, mem)
        closure_targets(t, m.fill(o.dt), T, L, mem)

    @m.func
    def close_velocity(t, T, L, mem):
        """z <- with the velocities that rows of loop joints are to have; loop_step <- the impulses."""
        n = T.loop_rows
        for r in range(n):
            u = m.dense_dot(t, L.loop_row + T.dofs * r, L.z, T, mem)
            m.put(mem, L.loop_step + r, t, m.sub(m.get(mem, L.loop_want + r, t), u))
        m.solve_loop_gram(t, T, L, mem)
        for r in range(n):
            m.dense_add(t, L.loop_row + T.dofs * r, m.get(mem, L.loop_step + r, t), T, L, mem)

    @m.func
    def closure_build(b, t, o, T, P, L, mem):
        """Targets at the middle of the old and the new velocity, and warm-started impulses."""
        closure_targets(t, m.fill(o.dt), T, L, mem)
        work = m.get(mem, L.warm_work, t)
        for r in range(T.loop_rows):
            p = L.coupling_impulse + T.couplings + r
            warm = m.mul(m.fill(o.dt), m.get(mem, p, t))
            m.put(mem, p, t, warm)
            work = m.fma(warm, m.get(mem, L.loop_want + r, t), work)
            m.dense_add(t, L.loop_row + T.dofs * r, warm, T, L, mem)
        m.put(mem, L.warm_work, t, work)

    @m.func
    def closure_sweep(t, T, L, mem):
        """One visit of all rows of loop joints, together."""
        close_velocity(t, T, L, mem)
        for r in range(T.loop_rows):
            p = L.coupling_impulse + T.couplings + r
            m.put(mem, p, t, m.add(m.get(mem, p, t), m.get(mem, L.loop_step + r, t)))

    @m.func
    def closure_correct(b, t, o, T, P, L, mem):
        """u, z <- with the velocities that close the loops at the middle of the next step, where their errors are computed. Poses of bodies
        are then those at that place; q and v stay."""
        dt = m.fill(o.dt)
        m.copy(t, L.loop_q, L.q, T.q_at[T.bodies], mem)
        m.copy(t, L.loop_v, L.v, T.dofs, mem)
        m.copy(t, L.v, L.u, T.dofs, mem)
        m.integrate(b, t, dt, T, P, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        for r in range(T.loop_rows):
            u = m.dense_dot(t, L.loop_row + T.dofs * r, L.z, T, mem)
            g = m.loop_error(t, r, T, L, mem)
            m.put(mem, L.loop_want + r, t, m.sub(u, m.div(g, dt)))
        closure_sweep(t, T, L, mem)
        m.unwhiten(t, T, L, mem)
        m.copy(t, L.q, L.loop_q, T.q_at[T.bodies], mem)
        m.copy(t, L.v, L.loop_v, T.dofs, mem)

    return locals()
