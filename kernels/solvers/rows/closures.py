"""Loop joints in a step: constraint rows that are solved together.

The rows are those of `kernels.dynamics.loops`, with the errors g and the bias accelerations k at the middle of the step. Forces act along
the rows K at the middle of this step, and g is to vanish at the middle of the next one, which a constant velocity u reaches after dt:

    g + dt K u + dt^2 / 2 k = 0

as in SHAKE (Ryckaert, Ciccotti and Berendsen 1977), which is symplectic. What of g is beyond CLOSE is corrected by a share SLOW of it a
step, and at most at the speed at which overlapping shapes are separated. All rows of a cluster are one block of the sweeps: with the
whitened rows Y, the impulses change by (Y^T Y)^-1 (target - Y^T z). Rows that depend on rows before them, such as all but two of the hinge
of a planar four-bar, are left out, and have no forces.
"""

import types
from functools import cache

import numpy as np
import warp as wp
from newton_like.kernels.dynamics.loops import LOOP
from newton_like.kernels.solvers.rows.closure_rows import (
    BOUNDED_MASS,
    BOUNDED_ROW,
    CLOSE,
    DRY,
    HARD,
    LARGEST_IMPULSE,
    LEAST_IMPULSE,
    LENGTH,
    REACHED,
    REFERENCE,
    ROW_GOAL,
    ROW_LAW,
    ROW_REST,
    ROW_SPEED,
    STOP,
    TENDONS,
)

OPEN_DAMPING = 1.0e-1
"""Part of the square of a row that is added to it while its joint is open."""

SINGLE_DEPENDENT, DOUBLE_DEPENDENT = 3.0e-5, 1.0e-10
"""A row is left out if less than this part of its square is at right angles to the rows before it; in single and in double precision."""

SINGLE_NOISE, DOUBLE_NOISE = 1.0e-9, 1.0e-20
"""The same for squares that are less than this part of the largest one, or of the inverse mass of both links of a row: rounding errors of a
row that no joint moves."""


def closure_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``closure_load``, ``closure_rows``, ``close_velocity``, ``closure_build``, ``closure_sweep`` and
    ``closure_correct``."""
    real = m.real
    in_double = real in (wp.float64, np.float64)
    loop_dependent, loop_noise = (DOUBLE_DEPENDENT, DOUBLE_NOISE) if in_double else (SINGLE_DEPENDENT, SINGLE_NOISE)

    noise_of_millionth = 1.0e-6 * loop_noise

    @m.func
    def closure_dot(t, r: int, w: int, T, L, mem) -> m.lane:
        """y . w for row r and a row of all dofs"""
        return m.sparse_dot(t, L.loop_row + T.dofs * r, r, T.loop_span, w, mem)

    @m.func
    def closure_add(t, r: int, p: m.lane, T, L, mem):
        """z <- z + p y for row r"""
        m.sparse_add(t, L.loop_row + T.dofs * r, r, T.loop_span, p, L, mem)

    @m.func
    def closure_products(t, T, L, mem):
        """loop_row <- Y; loop_gram <- the products of rows with those of the block before them. Needs the factors of M.
        loop_speed <- K v"""
        m.clear(t, L.loop_row, T.dofs * T.loop_rows, mem)
        for r in range(T.loop_rows):
            y = L.loop_row + T.dofs * r
            m.put_closure_row(t, r, y, T, L, mem)
            if T.loop_soft != 0:
                m.put(mem, L.loop_speed + r, t, closure_dot(t, r, L.v, T, L, mem))
            m.sparse_whiten(t, y, r, T.loop_span, T, L, mem)
            count = r + 1
            if r >= T.loop_block:
                count = T.loop_block
            for s in range(count):
                x = closure_dot(t, r, L.loop_row + T.dofs * s, T, L, mem)
                m.put(mem, L.loop_gram + r * (r + 1) // 2 + s, t, x)

    @m.func
    def compliance(t, r: int, T, L, mem) -> m.lane:
        """R of row r"""
        if T.loop_soft == 0:
            return m.fill(real(0.0))
        return m.get(mem, L.loop_compliance + r, t)

    @m.func
    def closure_compliances(t, dt: m.lane, T, L, mem):
        """loop_compliance <- R of all rows."""
        m.closure_impedances(t, T, L, mem)
        for r in range(T.loop_rows):
            m.put(mem, L.loop_compliance + r, t, m.closure_compliance(t, r, dt, T, L, mem))

    @m.func
    def open_damping(t, r: int, T, L, mem) -> m.lane:
        """What is added to the square of row r: OPEN_DAMPING of the largest square of the rows of its joint, where the step leaves one of
        them open. Near configurations from which no motion closes a row further, the rest is large, and velocities would be as well."""
        zero = m.fill(real(0.0))
        left = zero
        most = zero
        if T.loop_rule[r] == HARD:
            for i in range(T.loop_group[T.loop_rows + r]):
                s = T.loop_group[r] + i
                x = m.get(mem, L.loop_left + s, t)
                left = m.fma(x, x, left)
                most = m.larger(most, m.get(mem, L.loop_gram + s * (s + 1) // 2 + s, t))
        return m.where_lt(zero, left, m.mul(m.fill(real(OPEN_DAMPING)), most), zero)

    @m.func
    def length_damping(t, r: int, T, L, mem) -> m.lane:
        """What the square of a rigid row of a length lacks of a part of its square in other poses, a part that grows with its error.
        Where no motion changes the length, the row vanishes, and velocities that close it further would be without bound: the row is to
        close by the share REACHED."""
        zero = m.fill(real(0.0))
        if T.loop_rule[r] != HARD or (T.loop_kind[r] != LENGTH and T.loop_kind[r] != TENDONS):
            return zero
        g = m.closure_error(t, r, T, L, mem)
        share = m.smaller(m.mul(m.larger(g, m.neg(g)), m.fill(real(1.0 / CLOSE))), m.fill(real(1.0)))
        least = m.mul(m.mul(m.fill(real(OPEN_DAMPING)), share), m.get(mem, L.loop + LOOP * r + REFERENCE, t))
        square = m.get(mem, L.loop_gram + r * (r + 1) // 2 + r, t)
        reached = m.smaller(m.fill(real(1.0)), m.div(square, m.larger(least, m.fill(real(1.0e-30)))))
        m.put(mem, L.loop + LOOP * r + REACHED, t, reached)
        m.put(mem, L.loop_want + r, t, m.mul(reached, m.get(mem, L.loop_want + r, t)))
        return m.larger(zero, m.sub(least, square))

    @m.func
    def closure_factor(t, dt: m.lane, T, L, mem):
        """loop_gram <- the lower Cholesky factor of Y^T Y + R, with its diagonal inverted; zero for rows that are left out."""
        n = T.loop_block
        zero = m.fill(real(0.0))
        closure_products(t, T, L, mem)
        if T.loop_soft != 0:
            closure_compliances(t, dt, T, L, mem)
        for j in range(n):
            m.put(mem, L.loop_step + j, t, m.larger(open_damping(t, j, T, L, mem), length_damping(t, j, T, L, mem)))
        nothing = m.mul(m.fill(real(noise_of_millionth)), m.fill(real(T.loop_response)))
        nothing = m.larger(nothing, m.fill(real(1.0e-30)))
        for j in range(n):
            nothing = m.larger(
                nothing, m.mul(m.fill(real(loop_noise)), m.get(mem, L.loop_gram + j * (j + 1) // 2 + j, t))
            )
        for j in range(n):
            row = L.loop_gram + j * (j + 1) // 2
            d = m.get(mem, row + j, t)
            least = m.larger(m.mul(m.fill(real(loop_dependent)), d), nothing)
            if T.loop_soft != 0:
                d = m.add(d, compliance(t, j, T, L, mem))
            d = m.add(d, m.get(mem, L.loop_step + j, t))
            for i in range(j):
                d = m.fnma(m.get(mem, row + i, t), m.get(mem, row + i, t), d)
            d = m.where_lt(least, d, m.rcp(m.sqrt(m.larger(d, least))), zero)
            m.put_loop_column(t, j, d, T, L, mem)
        for r in range(n, T.loop_rows):
            project_bounded(t, r, T, L, mem)

    @m.func
    def project_bounded(t, r: int, T, L, mem):
        """loop_row of a bounded row <- y - Y w, w = (Y^T Y + R)^-1 Y^T y, which is at loop_gram; BOUNDED_MASS <- its inverse response. An
        impulse p along it comes with the impulses -w p of the block, whose rows keep their u + R p."""
        n = T.loop_block
        row = L.loop_gram + r * (r + 1) // 2
        y = L.loop_row + T.dofs * r
        a = closure_dot(t, r, y, T, L, mem)
        m.copy(t, L.loop_step, row, n, mem)
        m.solve_loop_gram(t, T, L, mem)
        left = m.fill(real(0.0))
        for s in range(n):
            w = m.get(mem, L.loop_step + s, t)
            m.put(mem, row + s, t, w)
            left = m.fma(m.mul(w, w), compliance(t, s, T, L, mem), left)
            for i in range(T.loop_span[s], T.loop_span[s + 1]):
                k = T.loop_span[i]
                m.put(mem, y + k, t, m.fnma(w, m.get(mem, L.loop_row + T.dofs * s + k, t), m.get(mem, y + k, t)))
        left = m.add(left, closure_dot(t, r, y, T, L, mem))
        least = m.larger(m.mul(m.fill(real(loop_dependent)), a), m.fill(real(1.0e-30)))
        inverse = m.rcp(m.add(m.larger(left, least), compliance(t, r, T, L, mem)))
        at = L.loop_bounded + BOUNDED_ROW * (r - n) + BOUNDED_MASS
        m.put(mem, at, t, m.where_lt(least, left, inverse, m.fill(real(0.0))))

    @m.func
    def closure_targets(t, o, first: int, last: int, T, L, mem):
        """Targets of rows whose laws are from `first` to `last`."""
        for r in range(T.loop_rows):
            if first <= T.loop_rule[r] and T.loop_rule[r] <= last:
                want = m.closure_target(t, r, m.fill(o.dt), m.fill(o.push_speed), T, L, mem)
                m.put(mem, L.loop_want + r, t, want)

    @m.func
    def closure_load(b, t, first_here: bool, T, L, mem):
        """Brings the numbers of the rows into memory; those that are equal in all worlds only for the first block of a launch."""
        n = LOOP * T.loop_rows
        if first_here or T.loops_vary != 0:
            for i in range(n):
                m.put(mem, L.loop + i, t, m.param(T.loop_uniform, T.loop_varying, T.loops_vary, b, i))
            if T.loop_soft != 0:
                for i in range(ROW_LAW * T.loop_rows):
                    m.put(mem, L.loop_law + i, t, m.param(T.loop_uniform, T.loop_varying, T.loops_vary, b, n + i))
        else:
            # the only number of a row that a step changes
            for r in range(T.loop_rows):
                if T.loop_kind[r] == LENGTH or T.loop_kind[r] == TENDONS:
                    m.put(mem, L.loop + LOOP * r + REACHED, t, m.fill(real(1.0)))

    @m.func
    def closure_rows(b, t, o, T, P, L, mem):
        """The rows of all loop joints, the factor of their block, and targets at the velocities v."""
        # the factor of hard rows depends on the errors that they leave; targets of the others depend on what comes with the factor
        closure_targets(t, o, HARD, HARD, T, L, mem)
        closure_factor(t, m.fill(o.dt), T, L, mem)
        closure_targets(t, o, HARD + 1, STOP, T, L, mem)

    @m.func
    def solve_block(t, T, L, mem):
        """z <- with the impulses that the block lacks at loop_step; loop_step <- these impulses."""
        m.solve_loop_gram(t, T, L, mem)
        for r in range(T.loop_block):
            closure_add(t, r, m.get(mem, L.loop_step + r, t), T, L, mem)

    @m.func
    def close_velocity(t, T, L, mem):
        """z <- with the velocities that rows of loop joints are to have; loop_step <- the impulses. There were none before."""
        for r in range(T.loop_block):
            u = closure_dot(t, r, L.z, T, L, mem)
            m.put(mem, L.loop_step + r, t, m.sub(m.get(mem, L.loop_want + r, t), u))
        solve_block(t, T, L, mem)

    @m.func
    def closure_build(b, t, o, T, P, L, mem):
        """Targets at the middle of the old and the new velocity, and warm-started impulses."""
        closure_targets(t, o, HARD, STOP, T, L, mem)
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        work = m.get(mem, L.warm_work, t)
        for r in range(T.loop_block, T.loop_rows):
            p = L.coupling_impulse + T.couplings + r
            at = L.loop_bounded + BOUNDED_ROW * (r - T.loop_block)
            warm = m.mul(m.fill(o.dt), m.get(mem, p, t))
            warm = m.smaller(m.get(mem, at + LARGEST_IMPULSE, t), m.larger(m.get(mem, at + LEAST_IMPULSE, t), warm))
            warm = m.where_lt(zero, m.get(mem, at + BOUNDED_MASS, t), warm, zero)
            m.put(mem, p, t, warm)
            work = m.fma(warm, m.get(mem, L.loop_want + r, t), work)
            work = m.fnma(m.mul(half, compliance(t, r, T, L, mem)), m.mul(warm, warm), work)
            closure_add(t, r, warm, T, L, mem)
        for r in range(T.loop_block):
            p = L.coupling_impulse + T.couplings + r
            used = m.get(mem, L.loop_gram + r * (r + 1) // 2 + r, t)
            warm = m.where_lt(zero, used, m.mul(m.fill(o.dt), m.get(mem, p, t)), zero)
            m.put(mem, p, t, warm)
            work = m.fma(warm, m.get(mem, L.loop_want + r, t), work)
            if T.loop_soft != 0:
                work = m.fnma(m.mul(half, compliance(t, r, T, L, mem)), m.mul(warm, warm), work)
                warm = m.add(warm, m.closure_share(t, r, T, L, mem))
            closure_add(t, r, warm, T, L, mem)
        m.put(mem, L.warm_work, t, work)

    @m.func
    def row_velocity(t, r: int, T, L, mem) -> m.lane:
        """u + R p of row r of the block"""
        u = closure_dot(t, r, L.z, T, L, mem)
        if T.loop_soft != 0:
            u = m.fma(compliance(t, r, T, L, mem), m.get(mem, L.coupling_impulse + T.couplings + r, t), u)
        return u

    @m.func
    def add_block_impulses(t, T, L, mem):
        solve_block(t, T, L, mem)
        for r in range(T.loop_block):
            p = L.coupling_impulse + T.couplings + r
            m.put(mem, p, t, m.add(m.get(mem, p, t), m.get(mem, L.loop_step + r, t)))

    @m.func
    def bounded_sweep(t, r: int, T, L, mem):
        """One Gauss-Seidel visit of a bounded row, after one of the block."""
        p = L.coupling_impulse + T.couplings + r
        at = L.loop_bounded + BOUNDED_ROW * (r - T.loop_block)
        u = closure_dot(t, r, L.z, T, L, mem)
        for s in range(T.loop_block):
            soft = m.mul(compliance(t, s, T, L, mem), m.get(mem, L.coupling_impulse + T.couplings + s, t))
            w = m.get(mem, L.loop_gram + r * (r + 1) // 2 + s, t)
            u = m.fma(w, m.sub(m.get(mem, L.loop_want + s, t), soft), u)
        old = m.get(mem, p, t)
        error = m.fma(compliance(t, r, T, L, mem), old, m.sub(u, m.get(mem, L.loop_want + r, t)))
        new = m.fnma(error, m.get(mem, at + BOUNDED_MASS, t), old)
        new = m.smaller(m.get(mem, at + LARGEST_IMPULSE, t), m.larger(m.get(mem, at + LEAST_IMPULSE, t), new))
        change = m.sub(new, old)
        m.put(mem, p, t, new)
        closure_add(t, r, change, T, L, mem)
        for s in range(T.loop_block):
            q = L.coupling_impulse + T.couplings + s
            w = m.get(mem, L.loop_gram + r * (r + 1) // 2 + s, t)
            m.put(mem, q, t, m.fnma(w, change, m.get(mem, q, t)))

    @m.func
    def closure_sweep(b, t, o, T, P, L, mem):
        """One visit of the rows of the block, together, and of the bounded rows, one after the other."""
        for r in range(T.loop_block):
            u = row_velocity(t, r, T, L, mem)
            m.put(mem, L.loop_step + r, t, m.sub(m.get(mem, L.loop_want + r, t), u))
        add_block_impulses(t, T, L, mem)
        for r in range(T.loop_block, T.loop_rows):
            bounded_sweep(t, r, T, L, mem)

    @m.func
    def no_lengths(b, t, T, L, mem):
        pass

    @m.func
    def tied_lengths(b, t, T, L, mem):
        """Lengths of all tendons that equality constraints tie."""
        for r in range(T.loop_rows):
            if T.loop_kind[r] == TENDONS:
                m.find_tendon(b, t, T.point_body[T.loop_rows + r], T, L, mem)
                if T.point_body[r] >= 0:
                    m.find_tendon(b, t, T.point_body[r], T, L, mem)

    def correction(lengths):
        """``closure_correct`` with the function that finds the lengths of tendons."""

        @m.func
        def closure_correct(b, t, o, T, P, L, mem):
            """u, z <- with the velocities that leave the errors loop_left at the middle of the next step, where errors are computed. Soft
            rows keep their u + R p. Poses of bodies are then those at that place; q and v stay. speeding <- positive where a speed is above
            its limit."""
            dt = m.fill(o.dt)
            zero = m.fill(real(0.0))
            m.copy(t, L.loop_q, L.q, T.q_at[T.bodies], mem)
            m.copy(t, L.loop_v, L.v, T.dofs, mem)
            m.copy(t, L.v, L.u, T.dofs, mem)
            m.integrate(b, t, dt, T, P, L, mem)
            m.forward_kinematics(b, t, T, P, L, mem)
            lengths(b, t, T, L, mem)
            for r in range(T.loop_block):
                step = zero
                if T.loop_soft == 0 or T.loop_rule[r] == HARD:
                    step = m.div(m.sub(m.get(mem, L.loop_left + r, t), m.closure_error(t, r, T, L, mem)), dt)
                m.put(mem, L.loop_step + r, t, step)
                if T.loop_block < T.loop_rows:
                    m.put(mem, L.loop_want + r, t, m.add(m.get(mem, L.loop_want + r, t), step))
            add_block_impulses(t, T, L, mem)
            # axes that friction holds are to be held after the correction, too
            for r in range(T.loop_block, T.loop_rows):
                if T.loop_rule[r] == DRY:
                    bounded_sweep(t, r, T, L, mem)
            m.unwhiten(t, T, L, mem)
            m.copy(t, L.q, L.loop_q, T.q_at[T.bodies], mem)
            m.copy(t, L.v, L.loop_v, T.dofs, mem)
            m.put(mem, L.speeding, t, m.speeding(b, t, m.fill(real(1.0)), T, P, L, mem))

        return closure_correct

    closure_correct, closure_correct_tied = correction(no_lengths), correction(tied_lengths)

    return locals()


@cache
def loop_force_kernel(real):
    """Kernel over the articulations of a batch: takes the forces of the rows of loop joints out of the memory that outlives a step."""

    @wp.kernel(module="unique", enable_backward=False)
    def take_forces(
        articulations: wp.array[int],
        first: int,
        # of each row: the tree of the cluster, the row in the result, and the row of the cluster
        tree: wp.array[int],
        row: wp.array[int],
        place: wp.array[int],
        width: int,
        # [block, place, lane]
        kept: wp.array3d[real],
        # out:
        force: wp.array2d[real],
    ):
        i, r = wp.tid()
        force[articulations[i] + tree[r], row[r]] = kept[i // width, first + place[r], i % width]

    return take_forces


@cache
def drive_target_kernel(real):
    """Kernel over the articulations of a batch and the drives of their loop joints: puts the targets to the numbers of the rows."""

    @wp.kernel(module="unique", enable_backward=False)
    def put_targets(
        # per articulation and drive: which numbers of the targets; -1: none
        coordinate: wp.array2d[int],
        dof: wp.array2d[int],
        # per drive: where the numbers of its law begin, and whether the target is an orientation
        place: wp.array[int],
        turns: wp.array[int],
        width: int,
        target_q: wp.array[real],
        target_v: wp.array[real],
        # out, [block, place, lane]:
        lanes: wp.array3d[real],
    ):
        i, r = wp.tid()
        if coordinate[i, r] >= 0 and turns[r] != 0:
            for k in range(4):
                q = real(k // 3)
                if target_q.shape[0] > 0:
                    q = target_q[coordinate[i, r] + k]
                lanes[i // width, place[r] + ROW_GOAL + k, i % width] = q
        elif coordinate[i, r] >= 0:
            q = real(0.0)
            if target_q.shape[0] > 0:
                q = target_q[coordinate[i, r]]
            lanes[i // width, place[r] + ROW_REST, i % width] = q
        if dof[i, r] >= 0:
            v = real(0.0)
            if target_v.shape[0] > 0:
                v = target_v[dof[i, r]]
            lanes[i // width, place[r] + ROW_SPEED, i % width] = v

    return put_targets
