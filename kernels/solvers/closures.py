"""Loop joints in a step: constraint rows that are solved together.

The rows are those of `kernels.dynamics.loops`, with the errors g and the bias accelerations k at the middle of the step. Forces act along
the rows K at the middle of this step, and g is to vanish at the middle of the next one, which a constant velocity u reaches after dt:

    g + dt K u + dt^2 / 2 k = 0

as in SHAKE (Ryckaert, Ciccotti and Berendsen 1977), which is symplectic. What of g is beyond CLOSE is corrected by a share SLOW of it a
step. All rows of a cluster are one block of the sweeps: with the whitened rows Y, the impulses change by (Y^T Y)^-1 (target - Y^T z). Rows
that depend on rows before them, such as all but two of the hinge of a planar four-bar, are left out, and have no forces.
"""

import types
from functools import cache

import numpy as np
import warp as wp
from newton_like.kernels.dynamics.loops import LOOP

CLOSE = 1.0e-3
"""Errors up to here [m, rad] are corrected within a step."""

SLOW = 0.2
"""The share of larger errors that a step corrects."""

SINGLE_DEPENDENT, DOUBLE_DEPENDENT = 3.0e-5, 1.0e-10
"""A row is left out if less than this part of its square is at right angles to the rows before it; in single and in double precision."""

SINGLE_NOISE, DOUBLE_NOISE = 1.0e-9, 1.0e-20
"""The same for squares that are less than this part of the largest one: rounding errors of a row that no joint moves."""


def closure_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``closure_rows``, ``close_velocity``, ``closure_build``, ``closure_sweep`` and ``closure_correct``."""
    real = m.real
    in_double = real in (wp.float64, np.float64)
    loop_dependent, loop_noise = (DOUBLE_DEPENDENT, DOUBLE_NOISE) if in_double else (SINGLE_DEPENDENT, SINGLE_NOISE)

    @m.func
    def closure_dot(t, r: int, w: int, T, L, mem) -> m.lane:
        """y . w for row r and a row of all dofs"""
        u = m.fill(real(0.0))
        y = L.loop_row + T.dofs * r
        for i in range(T.loop_span[r], T.loop_span[r + 1]):
            k = T.loop_span[i]
            u = m.fma(m.get(mem, y + k, t), m.get(mem, w + k, t), u)
        return u

    @m.func
    def closure_add(t, r: int, p: m.lane, T, L, mem):
        """z <- z + p y for row r"""
        y = L.loop_row + T.dofs * r
        for i in range(T.loop_span[r], T.loop_span[r + 1]):
            k = T.loop_span[i]
            m.put(mem, L.z + k, t, m.fma(m.get(mem, y + k, t), p, m.get(mem, L.z + k, t)))

    @m.func
    def closure_products(t, T, L, mem):
        """loop_row <- Y; loop_gram <- the lower triangle of Y^T Y. Needs the factors of M."""
        m.clear(t, L.loop_row, T.dofs * T.loop_rows, mem)
        for r in range(T.loop_rows):
            y = L.loop_row + T.dofs * r
            m.put_loop_row(t, r, y, T, L, mem)
            first = T.loop_span[r]
            end = T.loop_span[r + 1]
            for n in range(end - first):
                k = T.loop_span[end - 1 - n]
                x = m.get(mem, y + k, t)
                for d in range(T.depth[k]):
                    j = y + T.chain[T.chain_at[k] + d]
                    m.put(mem, j, t, m.fnma(m.get(mem, L.h + T.chain_at[k] + d, t), x, m.get(mem, j, t)))
                m.put(mem, y + k, t, m.mul(m.get(mem, L.root + k, t), x))
            for s in range(r + 1):
                x = closure_dot(t, r, L.loop_row + T.dofs * s, T, L, mem)
                m.put(mem, L.loop_gram + r * (r + 1) // 2 + s, t, x)

    @m.func
    def closure_factor(t, T, L, mem):
        """loop_gram <- the lower Cholesky factor of Y^T Y, with its diagonal inverted; zero for rows that are left out."""
        n = T.loop_rows
        zero = m.fill(real(0.0))
        closure_products(t, T, L, mem)
        nothing = m.fill(real(1.0e-30))
        for j in range(n):
            nothing = m.larger(
                nothing, m.mul(m.fill(real(loop_noise)), m.get(mem, L.loop_gram + j * (j + 1) // 2 + j, t))
            )
        for j in range(n):
            row = L.loop_gram + j * (j + 1) // 2
            d = m.get(mem, row + j, t)
            least = m.larger(m.mul(m.fill(real(loop_dependent)), d), nothing)
            for i in range(j):
                d = m.fnma(m.get(mem, row + i, t), m.get(mem, row + i, t), d)
            d = m.where_lt(least, d, m.rcp(m.sqrt(m.larger(d, least))), zero)
            m.put_loop_column(t, j, d, T, L, mem)

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
        closure_factor(t, T, L, mem)
        closure_targets(t, m.fill(o.dt), T, L, mem)

    @m.func
    def close_velocity(t, T, L, mem):
        """z <- with the velocities that rows of loop joints are to have; loop_step <- the impulses."""
        n = T.loop_rows
        for r in range(n):
            u = closure_dot(t, r, L.z, T, L, mem)
            m.put(mem, L.loop_step + r, t, m.sub(m.get(mem, L.loop_want + r, t), u))
        m.solve_loop_gram(t, T, L, mem)
        for r in range(n):
            closure_add(t, r, m.get(mem, L.loop_step + r, t), T, L, mem)

    @m.func
    def closure_build(b, t, o, T, P, L, mem):
        """Targets at the middle of the old and the new velocity, and warm-started impulses."""
        closure_targets(t, m.fill(o.dt), T, L, mem)
        work = m.get(mem, L.warm_work, t)
        for r in range(T.loop_rows):
            p = L.coupling_impulse + T.couplings + r
            used = m.get(mem, L.loop_gram + r * (r + 1) // 2 + r, t)
            warm = m.where_lt(m.fill(real(0.0)), used, m.mul(m.fill(o.dt), m.get(mem, p, t)), m.fill(real(0.0)))
            m.put(mem, p, t, warm)
            work = m.fma(warm, m.get(mem, L.loop_want + r, t), work)
            closure_add(t, r, warm, T, L, mem)
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
        are then those at that place; q and v stay. speeding <- positive where a speed is above its limit."""
        dt = m.fill(o.dt)
        m.copy(t, L.loop_q, L.q, T.q_at[T.bodies], mem)
        m.copy(t, L.loop_v, L.v, T.dofs, mem)
        m.copy(t, L.v, L.u, T.dofs, mem)
        m.integrate(b, t, dt, T, P, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        for r in range(T.loop_rows):
            u = closure_dot(t, r, L.z, T, L, mem)
            g = m.loop_error(t, r, T, L, mem)
            m.put(mem, L.loop_want + r, t, m.sub(u, m.div(g, dt)))
        closure_sweep(t, T, L, mem)
        m.unwhiten(t, T, L, mem)
        m.copy(t, L.q, L.loop_q, T.q_at[T.bodies], mem)
        m.copy(t, L.v, L.loop_v, T.dofs, mem)
        m.put(mem, L.speeding, t, m.speeding(b, t, m.fill(real(1.0)), T, P, L, mem))

    return locals()


@cache
def loop_force_kernel(real):
    """Kernel over the articulations of a batch: takes the forces of the rows of loop joints out of the memory that outlives a step."""

    @wp.kernel(module="unique", enable_backward=False)
    def take_forces(
        articulations: wp.array[int],
        first: int,
        # of each row: the tree of the cluster, and the row in the result
        tree: wp.array[int],
        row: wp.array[int],
        width: int,
        # [block, place, lane]
        kept: wp.array3d[real],
        # out:
        force: wp.array2d[real],
    ):
        i, r = wp.tid()
        force[articulations[i] + tree[r], row[r]] = kept[i // width, first + r, i % width]

    return take_forces
