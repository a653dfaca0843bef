"""A mechanism as a system of differential equations: joint forces, rates of coordinates and velocities, and stages of integrators.

Stages are those of Runge-Kutta-Munthe-Kaas methods (Munthe-Kaas 1999; Hairer, Lubich and Wanner 2006, IV.8). They add increments in the
Lie algebra of every joint, relative to the coordinates at the start of the step; ``increment_rate`` computes their rates from velocities.
Each stage of explicit Euler, Heun's method and the classical Runge-Kutta method needs only the rates of the previous stage and a weighted
sum of all previous rates.
"""

import types

from newton_like.kernels.tree import DAMPING, FRICTION_LOSS, FRICTION_RATIO, LIMIT_LOWER, LIMIT_UPPER, STIFFNESS

# Passive forces of joints, as bits.
STATIC_FRICTION, VISCOUS_FRICTION, LIMITS, SPRINGS = 1, 2, 4, 8


def system_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_joint_forces``, ``eval_position_rate``, ``eval_rates``, its variants ``eval_rates_crb`` and
    ``eval_rates_implicit``, ``eval_stage`` and ``eval_increment``."""
    real = m.real

    @m.func
    def friction_share(v: m.lane, speed: m.lane) -> m.lane:
        """The sign of v, with a linear transition from -1 to 1 between -speed and speed."""
        one = m.fill(real(1.0))
        share = m.div(v, m.larger(speed, m.fill(real(1.0e-30))))
        return m.larger(m.smaller(share, one), m.neg(one))

    @m.func
    def limit_force(b, t, i: int, P, L, mem, q: m.lane) -> m.lane:
        """-k d - c v for a dof whose coordinate q exceeds a limit by d, else zero."""
        zero = m.fill(real(0.0))
        lower = m.gain(P, b, i, LIMIT_LOWER)
        upper = m.gain(P, b, i, LIMIT_UPPER)
        depth = m.add(m.smaller(m.sub(q, lower), zero), m.larger(m.sub(q, upper), zero))
        damping = m.get(mem, L.limit_damping + i, t)
        damping = m.where_lt(q, lower, damping, m.where_lt(upper, q, damping, zero))
        return m.neg(m.fma(m.get(mem, L.limit_stiffness + i, t), depth, m.mul(damping, m.get(mem, L.v + i, t))))

    @m.func
    def passive_forces(b, t, out: int, T, P, L, mem):
        """out <- joint forces + the passive forces selected by ``T.force_terms``; weights[0] is the speed from which static friction has
        its full value. `out` may be ``L.force``."""
        if T.force_terms & SPRINGS:
            for k in range(T.bodies):
                m.joint_errors(b, t, k, T, P, L, mem)
        speed = m.get(mem, L.weights, t)
        for i in range(T.dofs):
            f = m.get(mem, L.force + i, t)
            v = m.get(mem, L.v + i, t)
            if T.force_terms & STATIC_FRICTION:
                friction = m.mul(m.gain(P, b, i, FRICTION_LOSS), m.gain(P, b, i, FRICTION_RATIO))
                f = m.fnma(friction, friction_share(v, speed), f)
            if T.force_terms & VISCOUS_FRICTION:
                f = m.fnma(m.gain(P, b, i, DAMPING), v, f)
            if T.force_terms & LIMITS:
                if T.dof_q[i] >= 0:
                    f = m.add(f, limit_force(b, t, i, P, L, mem, m.get(mem, L.q + T.dof_q[i], t)))
            if T.force_terms & SPRINGS:
                f = m.fnma(m.gain(P, b, i, STIFFNESS), m.get(mem, L.strain + i, t), f)
            m.put(mem, out + i, t, f)

    @m.func
    def position_rates(b, t, gain: m.lane, out: int, T, P, L, mem):
        """out <- dq/dt, ``T.result_size`` numbers; `gain` pulls quaternions to unit length."""
        m.clear(t, out, T.result_size, mem)
        for k in range(T.bodies):
            m.coordinate_rate(b, t, k, gain, out, T, P, L, mem)

    @m.func
    def eval_joint_forces(b, t, T, P, L, mem):
        """vector <- the forces of `passive_forces`."""
        m.clear(t, L.vector, T.columns, mem)
        passive_forces(b, t, L.vector, T, P, L, mem)

    @m.func
    def eval_position_rate(b, t, T, P, L, mem):
        """vector <- dq/dt, ``T.result_size`` numbers; weights[0] is the gain that pulls quaternions to unit length."""
        position_rates(b, t, m.get(mem, L.weights, t), L.vector, T, P, L, mem)

    @m.func
    def rates_of_coordinates(b, t, T, P, L, mem):
        """third <- dq/dt, ``T.result_size`` numbers, if there are any; weights[1] is the gain that pulls quaternions to unit length."""
        if T.result_size > 0:
            position_rates(b, t, m.get(mem, L.weights + 1, t), L.third, T, P, L, mem)

    @m.func
    def eval_rates(b, t, T, P, L, mem):
        """vector <- accelerations under the forces of `passive_forces` and the wrenches of links, see ``eval_forward_dynamics``; third <-
        dq/dt, see `rates_of_coordinates`."""
        passive_forces(b, t, L.force, T, P, L, mem)
        m.eval_forward_dynamics(b, t, T, P, L, mem)
        rates_of_coordinates(b, t, T, P, L, mem)

    @m.func
    def eval_rates_crb(b, t, T, P, L, mem):
        """The same as eval_rates, by ``eval_forward_dynamics_crb``."""
        passive_forces(b, t, L.force, T, P, L, mem)
        m.eval_forward_dynamics_crb(b, t, T, P, L, mem)
        rates_of_coordinates(b, t, T, P, L, mem)

    @m.func
    def eval_rates_implicit(b, t, T, P, L, mem):
        """The same as eval_rates, by ``eval_forward_dynamics_implicit``, for reverse mode."""
        passive_forces(b, t, L.force, T, P, L, mem)
        m.eval_forward_dynamics_implicit(b, t, T, P, L, mem)
        rates_of_coordinates(b, t, T, P, L, mem)

    @m.func
    def weighted(t, i: int, start: m.lane, rate: int, total: int, L, mem) -> m.lane:
        """start + weights[0] rate + weights[1] total"""
        x = m.fma(m.get(mem, L.weights, t), m.get(mem, rate + i, t), start)
        return m.fma(m.get(mem, L.weights + 1, t), m.get(mem, total + i, t), x)

    @m.func
    def add_rate(t, i: int, rate: int, total: int, out: int, L, mem):
        """out <- total + weights[3] rate"""
        x = m.fma(m.get(mem, L.weights + 3, t), m.get(mem, rate + i, t), m.get(mem, total + i, t))
        m.put(mem, out + i, t, x)

    @m.func
    def eval_stage(b, t, T, P, L, mem):
        """next_q, next_v <- q and v after the weighted rates and totals; next_rate <- the rates of the increments there. The increments
        also contain weights[2] times the new velocities."""
        for i in range(T.dofs):
            v = weighted(t, i, m.get(mem, L.v + i, t), L.acceleration, L.acceleration_total, L, mem)
            m.put(mem, L.next_v + i, t, v)
            start = m.mul(m.get(mem, L.weights + 2, t), v)
            m.put(mem, L.u + i, t, weighted(t, i, start, L.rate, L.rate_total, L, mem))
            add_rate(t, i, L.acceleration, L.acceleration_total, L.next_acceleration_total, L, mem)
            add_rate(t, i, L.rate, L.rate_total, L.next_rate_total, L, mem)
        for k in range(T.bodies):
            m.retract_joint(b, t, k, m.fill(real(1.0)), L.u, L.next_q, T, P, L, mem)
            m.increment_rate(t, k, L.u, L.next_v, L.next_rate, T, mem)

    @m.func
    def eval_increment(b, t, T, P, L, mem):
        """next_v <- vector plus the weighted rates and totals, for ``T.result_size`` further states of the articulation."""
        for i in range(T.result_size):
            m.put(mem, L.next_v + i, t, weighted(t, i, m.get(mem, L.vector + i, t), L.rate, L.rate_total, L, mem))
            add_rate(t, i, L.rate, L.rate_total, L.next_rate_total, L, mem)

    return locals()
