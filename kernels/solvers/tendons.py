"""Tendons in a step: springs, dampers, drives, dry friction and limits along their lengths L, whose derivative is the row J.

Springs, dampers, inertia and drives have a force f at the middle of the step and the velocity u_0 before it, which goes to the joint
forces, where bias forces and predicted velocities see it. The rest is a row: its impulse falls with the velocity u = J v+, as soft as the
spring is.

    spring     p = -k dt^2 (b u + (b - 1/2) u_0)
    damper     p = d dt (u_0 - u)
    inertia    p = m (u_0 - u), f = -m J' v
    drive      p = (ke dt^2 + kd dt) (u_0 - u), within +- dt limit - dt f

b = 1/4 is the trapezoidal rule, which keeps the energy of a spring; b = 1/2 takes the force at the end of the step, which ends the motion
of a stiff spring within one step. b rises from one to the other with x = k dt^2 J M^-1 J^T, as 1/4 + 1/4 x / (4 + x). Both are stable for
springs and dampers of any size. Friction and limits are rows as those of joints. The rows of a tendon share one whitened row y, see
`kernels.rows`; limits are soft as in MuJoCo, see `kernels.solvers.rows.contact_law`, or springs of the stiffness LIMIT_KE that push
implicitly: with the depth in the middle of the step, p = dt k (depth - dt u). The softness has a, as LIMIT_WEIGHT, in the initial
pose: where no motion changes the length, a vanishes, and a limit with that softness would ask for velocities without bound.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.dynamics.tendons import (
    ARMATURE,
    DAMPING,
    EFFORT_LIMIT,
    FRICTION,
    KD,
    KE,
    LIMIT_KE,
    LIMIT_LOWER,
    LIMIT_UPPER,
    LIMIT_WEIGHT,
    REST_LOWER,
    REST_UPPER,
    STIFFNESS,
    TENDON,
)

# Impulses of a tendon: of spring, damper and inertia; of the drive beyond its force f; of friction; of the limit.
TENDON_IMPULSES = 4
OF_SPRING, OF_DRIVE, OF_FRICTION, OF_LIMIT = range(TENDON_IMPULSES)

PARTS = 4
DRIVEN, HELD = 1, 2
"""Parts of a tendon that a visit includes, as bits of a number below PARTS. Others have no impulse in any world of a block."""

# The record of a tendon: k dt^2 and d dt + m of its spring; s and q of the impulses p = q - s u of spring and drive, the bounds of the
# drive's impulse, a = J M^-1 J^T and 1 / a, both factors of the form 1 / (1 + s a), the limit (mass, softness, target, side, gap), the
# impulse of friction at most, the force f of spring and drive, u_0, positive where some row can have an impulse, the second derivative of
# the length where no joint accelerates, and one where the limit acts.
TENDON_ROW = 23
(
    TENSE, DRAG, SPRING, SPRING_PUSH, DRIVE, DRIVE_PUSH, DRIVE_LOWER, DRIVE_UPPER, RESPONSE, INVERSE_RESPONSE, SPRING_MASS, DRIVE_MASS,
    LIMIT_MASS, LIMIT_SOFTNESS, LIMIT_TARGET, LIMIT_SIDE, LIMIT_GAP, MOST_FRICTION, FORCE, SPEED, NEED, BEND,
    LIMIT_ACTS,
) = range(TENDON_ROW)  # fmt: skip


def tendon_row_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``tendon_load``, ``tendon_forces``, ``tendon_build``, ``tendon_hold``, ``tendon_sweep`` and
    ``tendon_report``."""
    real = m.real

    @m.func
    def tendon_param(b, t, n: int, i: int, T, L, mem) -> m.lane:
        return m.tendon_number(b, t, TENDON * n + i, T, L, mem)

    @m.func
    def tendon_load(b, t, first_here: bool, T, L, mem):
        """Brings the numbers into memory that specialised code reads there; those that are equal in all worlds only for the first block
        of a launch."""
        if first_here or T.tendons_vary != 0:
            for i in range(T.tendon_loads):
                m.put(mem, L.tendon_record + i, t, m.param(T.tendon_uniform, T.tendon_varying, T.tendons_vary, b, i))

    @m.func
    def limit_acts(b, t, n: int, gap: m.lane, T, P, L, mem) -> m.lane:
        """One where the limit of tendon n acts, whose distance is `gap`; else zero."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        stiffness = tendon_param(b, t, n, LIMIT_KE, T, L, mem)
        law = m.law_on(b, T.first_tendon_law + n, gap, one, P)
        beyond = m.where_lt(zero, stiffness, m.where_lt(gap, zero, one, zero), zero)
        return m.where_lt(stiffness, zero, law, beyond)

    @m.func
    def tendon_spring(b, t, n: int, dt: m.lane, T, L, mem) -> m.lane:
        """k dt^2 and d dt + m of the spring of tendon n; returns its force f."""
        at = L.tendon_row + TENDON_ROW * n
        zero = m.fill(real(0.0))
        length = m.get(mem, L.tendon_length + n, t)
        speed = m.get(mem, at + SPEED, t)
        # slack between both rest lengths
        stretch = m.larger(m.sub(length, tendon_param(b, t, n, REST_UPPER, T, L, mem)), zero)
        stretch = m.add(stretch, m.smaller(m.sub(length, tendon_param(b, t, n, REST_LOWER, T, L, mem)), zero))
        stiffness = tendon_param(b, t, n, STIFFNESS, T, L, mem)
        damping = tendon_param(b, t, n, DAMPING, T, L, mem)
        tense = m.where_lt(zero, m.mul(stretch, stretch), m.mul(m.mul(dt, dt), stiffness), zero)
        m.put(mem, at + TENSE, t, tense)
        m.put(mem, at + DRAG, t, m.fma(dt, damping, tendon_param(b, t, n, ARMATURE, T, L, mem)))
        bend = m.tendon_bend(b, t, n, T, L, mem)
        m.put(mem, at + BEND, t, bend)
        bend = m.mul(tendon_param(b, t, n, ARMATURE, T, L, mem), bend)
        return m.neg(m.add(m.fma(stiffness, stretch, m.mul(damping, speed)), bend))

    @m.func
    def tendon_drive(b, t, n: int, dt: m.lane, T, L, mem) -> m.lane:
        """s and s u_0 of its drive, and the bounds of its impulse; returns its force f."""
        at = L.tendon_row + TENDON_ROW * n
        speed = m.get(mem, at + SPEED, t)
        ke = tendon_param(b, t, n, KE, T, L, mem)
        kd = tendon_param(b, t, n, KD, T, L, mem)
        slope = m.fma(dt, ke, kd)
        error = m.sub(m.get(mem, L.tendon_target_q + n, t), m.get(mem, L.tendon_length + n, t))
        push = m.fma(kd, m.get(mem, L.tendon_target_qd + n, t), m.fma(ke, error, m.get(mem, L.tendon_f + n, t)))
        asked = m.fnma(slope, speed, push)
        bound = tendon_param(b, t, n, EFFORT_LIMIT, T, L, mem)
        force = m.larger(m.neg(bound), m.smaller(asked, bound))
        s = m.mul(dt, slope)
        m.put(mem, at + DRIVE, t, s)
        m.put(mem, at + DRIVE_PUSH, t, m.fma(s, speed, m.mul(dt, m.sub(asked, force))))
        m.put(mem, at + DRIVE_LOWER, t, m.mul(dt, m.sub(m.neg(bound), force)))
        m.put(mem, at + DRIVE_UPPER, t, m.mul(dt, m.sub(bound, force)))
        return force

    @m.func
    def tendon_forces(b, t, o, T, P, L, mem):
        """Lengths and rows of all tendons; tendon_tau <- the joint forces of springs, dampers and drives at the velocity before the step;
        tau <- + these."""
        dt = m.fill(o.dt)
        m.clear(t, L.tendon_tau, T.dofs, mem)
        for n in range(T.tendons):
            at = L.tendon_row + TENDON_ROW * n
            m.find_tendon(b, t, n, T, L, mem)
            m.put(mem, at + SPEED, t, m.tendon_speed(t, n, L.v, T, L, mem))
            force = tendon_spring(b, t, n, dt, T, L, mem)
            force = m.add(force, tendon_drive(b, t, n, dt, T, L, mem))
            m.put(mem, at + FORCE, t, force)
            m.put(mem, at + MOST_FRICTION, t, m.mul(dt, tendon_param(b, t, n, FRICTION, T, L, mem)))
            length = m.get(mem, L.tendon_length + n, t)
            low = m.sub(length, tendon_param(b, t, n, LIMIT_LOWER, T, L, mem))
            high = m.sub(tendon_param(b, t, n, LIMIT_UPPER, T, L, mem), length)
            m.put(mem, at + LIMIT_SIDE, t, m.where_lt(high, low, m.fill(real(-1.0)), m.fill(real(1.0))))
            gap = m.smaller(low, high)
            m.put(mem, at + LIMIT_GAP, t, gap)
            need = m.add(m.add(m.get(mem, at + TENSE, t), m.get(mem, at + DRAG, t)), m.get(mem, at + DRIVE, t))
            need = m.larger(need, m.get(mem, at + MOST_FRICTION, t))
            acts = limit_acts(b, t, n, gap, T, P, L, mem)
            m.put(mem, at + LIMIT_ACTS, t, acts)
            need = m.larger(need, acts)
            m.put(mem, at + NEED, t, need)
            row = L.tendon_j + T.dofs * n
            for i in range(T.tendon_span[n], T.tendon_span[n + 1]):
                k = T.tendon_span[i]
                m.put(mem, L.tendon_tau + k, t, m.fma(force, m.get(mem, row + k, t), m.get(mem, L.tendon_tau + k, t)))
        m.put_sums(t, L.tau, L.tau, L.tendon_tau, T.dofs, mem)

    @m.func
    def tendon_dot(t, n: int, w: int, T, L, mem) -> m.lane:
        """y . w for a row of all dofs"""
        return m.sparse_dot(t, L.tendon_y + T.dofs * n, n, T.tendon_span, w, mem)

    @m.func
    def tendon_add(t, n: int, p: m.lane, T, L, mem):
        """z <- z + p y"""
        m.sparse_add(t, L.tendon_y + T.dofs * n, n, T.tendon_span, p, L, mem)

    @m.func
    def whiten_tendon(t, n: int, T, L, mem):
        """y <- D^-1/2 L^-T JT"""
        y = L.tendon_y + T.dofs * n
        m.copy(t, y, L.tendon_j + T.dofs * n, T.dofs, mem)
        m.sparse_whiten(t, y, n, T.tendon_span, T, L, mem)

    @m.func
    def tendon_limit(b, t, n: int, a: m.lane, o, T, P, L, mem):
        """The row of the limit of tendon n."""
        at = L.tendon_row + TENDON_ROW * n
        law = T.first_tendon_law + n
        gap = m.get(mem, at + LIMIT_GAP, t)
        acts = m.get(mem, at + LIMIT_ACTS, t)
        before = m.mul(m.get(mem, at + LIMIT_SIDE, t), m.get(mem, at + SPEED, t))
        weight = tendon_param(b, t, n, LIMIT_WEIGHT, T, L, mem)
        row = m.law_row(b, law, gap, before, weight, m.fill(real(1.0e30)), o, P)
        # of a spring beyond the limit: u + p / (dt^2 k) = depth / dt
        zero = m.fill(real(0.0))
        dt = m.fill(o.dt)
        stiffness = tendon_param(b, t, n, LIMIT_KE, T, L, mem)
        spring = m.rcp(m.larger(m.mul(m.mul(dt, dt), stiffness), m.fill(real(1.0e-20))))
        compliance = m.where_lt(stiffness, zero, row.compliance, spring)
        inverse = m.rcp(m.add(a, compliance))
        m.put(mem, at + LIMIT_MASS, t, m.mul(acts, inverse))
        m.put(
            mem,
            at + LIMIT_SOFTNESS,
            t,
            m.where_lt(m.fill(real(0.5)), acts, m.mul(compliance, inverse), m.fill(real(1.0))),
        )
        push = m.neg(m.mul(gap, m.fill(o.inverse_dt)))
        m.put(mem, at + LIMIT_TARGET, t, m.where_lt(stiffness, zero, row.target, push))

    @m.func
    def worth(s: m.lane, push: m.lane, p: m.lane) -> m.lane:
        """What impulse p does along the target of a row p = push - s u, less half of what its softness takes."""
        return m.div(m.mul(p, m.fnma(m.fill(real(0.5)), p, push)), m.larger(s, m.fill(real(1.0e-20))))

    @m.func
    def spring_row(t, at: int, a: m.lane, mem) -> m.lane:
        """The row of a spring; returns its s."""
        tense = m.get(mem, at + TENSE, t)
        drag = m.get(mem, at + DRAG, t)
        stiff = m.mul(tense, a)
        share = m.mul(m.fill(real(0.25)), m.div(stiff, m.add(m.fill(real(4.0)), stiff)))
        quarter = m.fill(real(0.25))
        s = m.fma(m.add(quarter, share), tense, drag)
        m.put(mem, at + SPRING, t, s)
        m.put(mem, at + SPRING_PUSH, t, m.mul(m.fma(m.sub(quarter, share), tense, drag), m.get(mem, at + SPEED, t)))
        return s

    @m.func
    def tendon_build(b, t, n: int, o, T, P, L, mem):
        """The rows of spring and drive of tendon n, warm-started."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        dt = m.fill(o.dt)
        at = L.tendon_row + TENDON_ROW * n
        p = L.coupling_impulse + T.first_tendon + TENDON_IMPULSES * n
        whiten_tendon(t, n, T, L, mem)
        a = m.larger(tendon_dot(t, n, L.tendon_y + T.dofs * n, T, L, mem), m.fill(real(1.0e-20)))
        spring = spring_row(t, at, a, mem)
        drive = m.get(mem, at + DRIVE, t)
        m.put(mem, at + RESPONSE, t, a)
        m.put(mem, at + INVERSE_RESPONSE, t, m.rcp(a))
        m.put(mem, at + SPRING_MASS, t, m.rcp(m.fma(spring, a, one)))
        m.put(mem, at + DRIVE_MASS, t, m.rcp(m.fma(drive, a, one)))
        # a row without softness has the impulse zero
        first = m.where_lt(zero, spring, m.mul(dt, m.get(mem, p + OF_SPRING, t)), zero)
        second = m.where_lt(zero, drive, m.mul(dt, m.get(mem, p + OF_DRIVE, t)), zero)
        second = m.larger(m.get(mem, at + DRIVE_LOWER, t), m.smaller(second, m.get(mem, at + DRIVE_UPPER, t)))
        m.put(mem, p + OF_SPRING, t, first)
        m.put(mem, p + OF_DRIVE, t, second)
        work = m.add(
            worth(spring, m.get(mem, at + SPRING_PUSH, t), first), worth(drive, m.get(mem, at + DRIVE_PUSH, t), second)
        )
        m.put(mem, L.warm_work, t, m.add(m.get(mem, L.warm_work, t), work))
        tendon_add(t, n, m.add(first, second), T, L, mem)

    @m.func
    def tendon_hold(b, t, n: int, o, T, P, L, mem):
        """The rows of friction and limit of tendon n, warm-started. Needs ``tendon_build``."""
        zero = m.fill(real(0.0))
        dt = m.fill(o.dt)
        at = L.tendon_row + TENDON_ROW * n
        p = L.coupling_impulse + T.first_tendon + TENDON_IMPULSES * n
        tendon_limit(b, t, n, m.get(mem, at + RESPONSE, t), o, T, P, L, mem)
        most = m.get(mem, at + MOST_FRICTION, t)
        rubbed = m.larger(m.neg(most), m.smaller(m.mul(dt, m.get(mem, p + OF_FRICTION, t)), most))
        side = m.get(mem, at + LIMIT_SIDE, t)
        held = m.mul(m.get(mem, at + LIMIT_ACTS, t), m.mul(dt, m.get(mem, p + OF_LIMIT, t)))
        pressed = m.larger(zero, m.mul(side, held))
        held = m.mul(side, pressed)
        m.put(mem, p + OF_FRICTION, t, rubbed)
        m.put(mem, p + OF_LIMIT, t, held)
        work = m.fma(pressed, m.get(mem, at + LIMIT_TARGET, t), m.get(mem, L.warm_work, t))
        m.put(mem, L.warm_work, t, work)
        tendon_add(t, n, m.add(rubbed, held), T, L, mem)

    @m.func
    def tendon_sweep(t, n: int, parts: int, T, L, mem):
        """One Gauss-Seidel visit of tendon n: of its spring; of its drive if `parts` has DRIVEN; of friction and limit if it has HELD."""
        at = L.tendon_row + TENDON_ROW * n
        p = L.coupling_impulse + T.first_tendon + TENDON_IMPULSES * n
        a = m.get(mem, at + RESPONSE, t)
        u = tendon_dot(t, n, L.z, T, L, mem)
        old = m.get(mem, p + OF_SPRING, t)
        error = m.sub(m.fnma(m.get(mem, at + SPRING, t), u, m.get(mem, at + SPRING_PUSH, t)), old)
        total = m.mul(error, m.get(mem, at + SPRING_MASS, t))
        m.put(mem, p + OF_SPRING, t, m.add(old, total))
        u = m.fma(a, total, u)

        if parts & DRIVEN:
            old = m.get(mem, p + OF_DRIVE, t)
            error = m.sub(m.fnma(m.get(mem, at + DRIVE, t), u, m.get(mem, at + DRIVE_PUSH, t)), old)
            new = m.fma(error, m.get(mem, at + DRIVE_MASS, t), old)
            new = m.larger(m.get(mem, at + DRIVE_LOWER, t), m.smaller(new, m.get(mem, at + DRIVE_UPPER, t)))
            m.put(mem, p + OF_DRIVE, t, new)
            change = m.sub(new, old)
            total = m.add(total, change)
            u = m.fma(a, change, u)

        if parts & HELD:
            most = m.get(mem, at + MOST_FRICTION, t)
            old = m.get(mem, p + OF_FRICTION, t)
            new = m.larger(m.neg(most), m.smaller(m.fnma(u, m.get(mem, at + INVERSE_RESPONSE, t), old), most))
            m.put(mem, p + OF_FRICTION, t, new)
            change = m.sub(new, old)
            total = m.add(total, change)
            u = m.fma(a, change, u)

            side = m.get(mem, at + LIMIT_SIDE, t)
            old = m.mul(side, m.get(mem, p + OF_LIMIT, t))
            new = m.unilateral(t, at + LIMIT_MASS, m.mul(side, u), old, mem)
            change = m.mul(side, m.sub(new, old))
            m.put(mem, p + OF_LIMIT, t, m.mul(side, new))
            total = m.add(total, change)
        tendon_add(t, n, total, T, L, mem)

    @m.func
    def tendon_report(t, T, L, mem):
        """tendon_force <- the forces of springs, drives, friction and limits together. Needs forces in the place of impulses."""
        for n in range(T.tendons):
            p = L.coupling_impulse + T.first_tendon + TENDON_IMPULSES * n
            force = m.get(mem, L.tendon_row + TENDON_ROW * n + FORCE, t)
            for i in range(TENDON_IMPULSES):
                force = m.add(force, m.get(mem, p + i, t))
            m.put(mem, L.tendon_force + n, t, force)

    return locals()


def tendon_loops(m: types.SimpleNamespace, stages: types.SimpleNamespace) -> types.SimpleNamespace:
    """``tendon_builds``, ``tendon_sweeps`` and ``tendon_sweeps_back``: the stages of single tendons for all that some world needs.

    At the end of the list ``active`` are the number of visits of a sweep and, for each tendon that is visited, ``PARTS`` times its number
    plus its parts.
    """
    real = m.real
    tendon_build, tendon_hold, tendon_sweep = stages.tendon_build, stages.tendon_hold, stages.tendon_sweep

    @m.func
    def any_above_zero(t, at: int, mem) -> bool:
        return m.any_lt(m.fill(real(0.0)), m.get(mem, at, t))

    @m.func
    def first_visit(T, active: wp.array2d[int]) -> int:
        return active.shape[0] - T.tendons

    @m.func
    def tendon_builds(b, t, o, T, P, L, mem, active: wp.array2d[int]):
        """The rows of all tendons, and the list of those that sweeps visit with the parts that some world needs."""
        visits = int(0)
        for n in range(T.tendons):
            at = L.tendon_row + TENDON_ROW * n
            p = L.coupling_impulse + T.first_tendon + TENDON_IMPULSES * n
            if any_above_zero(t, at + NEED, mem):
                tendon_build(b, t, n, o, T, P, L, mem)
                parts = int(0)
                if any_above_zero(t, at + DRIVE, mem):
                    parts = DRIVEN
                if any_above_zero(t, at + MOST_FRICTION, mem) or any_above_zero(t, at + LIMIT_ACTS, mem):
                    parts = parts + HELD
                    tendon_hold(b, t, n, o, T, P, L, mem)
                else:
                    m.clear(t, p + OF_FRICTION, 2, mem)
                active[first_visit(T, active) + visits, t] = PARTS * n + parts
                visits = visits + 1
            else:
                m.clear(t, p, TENDON_IMPULSES, mem)
        active[first_visit(T, active) - 1, t] = visits

    @m.func
    def tendon_sweeps(b, t, o, T, P, L, mem, active: wp.array2d[int]):
        """One visit of each tendon."""
        first = first_visit(T, active)
        for i in range(active[first - 1, t]):
            visit = active[first + i, t]
            tendon_sweep(b, t, visit // PARTS, visit % PARTS, o, T, P, L, mem)

    @m.func
    def tendon_sweeps_back(b, t, o, T, P, L, mem, active: wp.array2d[int]):
        """The same in the opposite order."""
        first = first_visit(T, active)
        visits = active[first - 1, t]
        for i in range(visits):
            visit = active[first + visits - 1 - i, t]
            tendon_sweep(b, t, visit // PARTS, visit % PARTS, o, T, P, L, mem)

    return types.SimpleNamespace(
        tendon_builds=tendon_builds, tendon_sweeps=tendon_sweeps, tendon_sweeps_back=tendon_sweeps_back
    )


@cache
def tendon_force_kernel(real):
    """Kernel over the clusters of a batch and their tendons: takes the forces of tendons out of the memory that outlives a step."""

    @wp.kernel(module="unique", enable_backward=False)
    def take_tendon_forces(
        index: wp.array2d[int],
        first: int,
        width: int,
        # [block, place, lane]
        kept: wp.array3d[real],
        # out:
        force: wp.array[real],
    ):
        i, n = wp.tid()
        force[index[i, n]] = kept[i // width, first + n, i % width]

    return take_tendon_forces
