"""Actuators in a step, by the published formulas of MuJoCo (documentation, chapters "Computation" and "Modeling", section "Muscles").

The strength a of an actuator is its control, or its activation, which has dynamics of first order. Its force is

    f = gear (gain(L, u) a + bias(L, u))        L, u: gear times length and speed of its transmission

within the range of forces. A transmission is a row of `kernels.solvers.tendons`: a tendon, or a row of its own. The force at the middle of
the step and the velocity before it goes to the joint forces. How it falls with length and velocity, k and d, adds to the damper of that
row, as k dt^2 + d dt: position servos, dampers and the force-velocity curve of muscles are implicit. A force at the end of its range
does not fall.

An actuator may instead set an entry of the drive of a joint: its target or its force; or press a body onto what it touches, see
`kernels.solvers.rows.adhesion`.

A motor with a winding has the current i as activation, whose dynamics see the speed of its transmission before the step; the current is
that of a constant speed and voltage at the end of the step.
"""

import types

from newton_like.kernels.solvers.tendons import DRAG, FORCE, NEED, SPEED, TENDON_ROW

# Integers of an actuator: types of gain, bias and dynamics; one if the force uses the next activation; its row (-1: none); the entry of a
# drive that it sets, and the coordinate or dof of that entry; of ON_CONTACTS the body.
ACTUATOR_TABLE = 7
GAIN_TYPE, BIAS_TYPE, DYNAMICS, EARLY, LINE, ENTRY, PLACE = range(ACTUATOR_TABLE)
FIXED, AFFINE, OF_MUSCLE, OF_MOTOR = range(4)
NO_DYNAMICS, INTEGRATOR, FILTER, FILTER_EXACT, MUSCLE_DYNAMICS, CURRENT = range(6)
OF_SUM, OF_WEIGHT = 1, 2
"""Bits of the integers of degrees of freedom, which follow those of actuators, see `kernels.solvers.force_ranges`."""
NO_ENTRY, ENTRY_Q, ENTRY_QD, ENTRY_F, ON_CONTACTS = range(5)

# Numbers of an actuator.
ACTUATOR = 33
GEAR, GAIN_PRM, BIAS_PRM, DYN_PRM, CTRL_RANGE, FORCE_RANGE, ACT_RANGE, LENGTH_RANGE, ACC0, FACTOR, OFFSET_A = (
    0, 1, 10, 19, 22, 24, 26, 28, 30, 31, 32,
)  # fmt: skip
# Parameters of a muscle: two lengths in units of the optimal length, at which the range of lengths begins and ends; its force (below
# zero: a scale over ACC0); the lengths between which it pulls, its speed, its passive force, and its force when it is stretched.
RANGE_0, RANGE_1, PEAK, PEAK_SCALE, L_MIN, L_MAX, V_MAX, F_P_MAX, F_V_MAX = range(9)
LEAST = 1.0e-15
# Of the bias of a motor: amplitude, number of periods a unit of length and phase of its cogging torque; of CURRENT: resistance, constant.
COGGING, PERIODS, PHASE = 3, 4, 5
RESISTANCE, MOTOR_CONSTANT = 1, 2


def actuator_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``actuate``, ``actuator_forces`` and ``relieve``."""
    real = m.real

    @m.func
    def actuator_number(b, i: int, T) -> m.lane:
        return m.param(T.actuator_uniform, T.actuator_varying, T.actuators_vary, b, i)

    @m.func
    def unless_nan(x: m.lane, y: m.lane) -> m.lane:
        """y, but x where x is not a number, which shows in the state."""
        return m.where_lt(x, m.fill(real(0.0)), y, m.where_lt(m.fill(real(-1.0)), x, y, x))

    @m.func
    def in_range(x: m.lane, b, at: int, T) -> m.lane:
        """x within the range at `at`."""
        return unless_nan(x, m.larger(actuator_number(b, at, T), m.smaller(x, actuator_number(b, at + 1, T))))

    @m.func
    def unit_share(x: m.lane) -> m.lane:
        return m.larger(m.fill(real(0.0)), m.smaller(x, m.fill(real(1.0))))

    @m.func
    def half_square(x: m.lane) -> m.lane:
        return m.mul(m.fill(real(0.5)), m.mul(x, x))

    @m.func
    def muscle_time(b, at: int, act: m.lane, change: m.lane, T) -> m.lane:
        """The time constant of a muscle: that of activation, or of deactivation; between them where the change is within a width."""
        slow = m.fma(m.fill(real(1.5)), unit_share(act), m.fill(real(0.5)))
        rise = m.mul(actuator_number(b, at + DYN_PRM, T), slow)
        fall = m.div(actuator_number(b, at + DYN_PRM + 1, T), slow)
        width = actuator_number(b, at + DYN_PRM + 2, T)
        zero = m.fill(real(0.0))
        x = unit_share(m.add(m.div(change, m.larger(width, m.fill(real(LEAST)))), m.fill(real(0.5))))
        # 6 x^5 - 15 x^4 + 10 x^3
        share = m.fma(x, m.fma(x, m.fill(real(6.0)), m.fill(real(-15.0))), m.fill(real(10.0)))
        share = m.mul(share, m.mul(x, m.mul(x, x)))
        sharp = m.where_lt(zero, change, rise, fall)
        smooth_time = m.fma(m.sub(rise, fall), share, fall)
        return m.where_lt(width, m.fill(real(LEAST)), sharp, smooth_time)

    @m.func
    def next_activation(b, n: int, act: m.lane, ctrl: m.lane, dt: m.lane, T) -> m.lane:
        """The activation of actuator n after a step."""
        at = ACTUATOR * n
        kind = T.actuator_table[ACTUATOR_TABLE * n + DYNAMICS]
        least = m.fill(real(LEAST))
        new = act
        if kind == INTEGRATOR:
            new = m.fma(dt, ctrl, act)
        elif kind == FILTER:
            time = m.larger(actuator_number(b, at + DYN_PRM, T), least)
            new = m.fma(dt, m.div(m.sub(ctrl, act), time), act)
        elif kind == FILTER_EXACT:
            time = m.larger(actuator_number(b, at + DYN_PRM, T), least)
            left = m.exp(m.neg(m.div(dt, time)))
            new = m.fma(m.sub(act, ctrl), left, ctrl)
        elif kind == MUSCLE_DYNAMICS:
            change = m.sub(unit_share(ctrl), act)
            new = m.fma(dt, m.div(change, m.larger(muscle_time(b, at, act, change, T), least)), act)
        if kind != NO_DYNAMICS:
            new = unless_nan(ctrl, in_range(new, b, at + ACT_RANGE, T))
        return new

    @m.func
    def actuate(b, t, o, T, P, L, mem):
        """Strengths and next activations of all actuators; drives of joints <- + the entries of those that set one."""
        dt = m.fill(o.dt)
        for n in range(T.actuators):
            at = ACTUATOR * n
            table = ACTUATOR_TABLE * n
            ctrl = in_range(m.get(mem, L.actuator_ctrl + n, t), b, at + CTRL_RANGE, T)
            act = m.get(mem, L.actuator_act + n, t)
            new = next_activation(b, n, act, ctrl, dt, T)
            strength = act
            if T.actuator_table[table + DYNAMICS] == NO_DYNAMICS:
                strength = ctrl
            elif T.actuator_table[table + EARLY] != 0:
                strength = new
            m.put(mem, L.actuator_act + n, t, new)
            m.put(mem, L.actuator_strength + n, t, strength)
            entry = T.actuator_table[table + ENTRY]
            if entry != NO_ENTRY and entry != ON_CONTACTS:
                row = L.force
                if entry == ENTRY_Q:
                    row = L.target_q
                elif entry == ENTRY_QD:
                    row = L.target_v
                place = row + T.actuator_table[table + PLACE]
                x = m.fma(actuator_number(b, at + FACTOR, T), strength, actuator_number(b, at + OFFSET_A, T))
                m.put(mem, place, t, m.add(m.get(mem, place, t), x))

    @m.func
    def optimal_length(b, n: int, prm: int, T) -> m.lane:
        at = ACTUATOR * n
        shortest = actuator_number(b, at + LENGTH_RANGE, T)
        span = m.sub(actuator_number(b, at + LENGTH_RANGE + 1, T), shortest)
        return m.div(span, m.sub(actuator_number(b, prm + RANGE_1, T), actuator_number(b, prm + RANGE_0, T)))

    @m.func
    def relative_length(b, n: int, prm: int, length: m.lane, T) -> m.lane:
        """The length of a muscle in units of its optimal length."""
        moved = m.sub(length, actuator_number(b, ACTUATOR * n + LENGTH_RANGE, T))
        return m.add(actuator_number(b, prm + RANGE_0, T), m.div(moved, optimal_length(b, n, prm, T)))

    @m.func
    def peak_force(b, n: int, prm: int, T) -> m.lane:
        peak = actuator_number(b, prm + PEAK, T)
        acceleration = m.larger(actuator_number(b, ACTUATOR * n + ACC0, T), m.fill(real(LEAST)))
        scaled = m.div(actuator_number(b, prm + PEAK_SCALE, T), acceleration)
        return m.where_lt(peak, m.fill(real(0.0)), scaled, peak)

    @m.func
    def pull_at_length(b, prm: int, x: m.lane, T) -> m.lane:
        """The force of a muscle at length x, over its peak force: parabolas between L_MIN, 1 and L_MAX."""
        one = m.fill(real(1.0))
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        low = actuator_number(b, prm + L_MIN, T)
        high = actuator_number(b, prm + L_MAX, T)
        left = m.mul(half, m.add(low, one))
        right = m.mul(half, m.add(one, high))
        rising = half_square(m.div(m.sub(x, low), m.sub(left, low)))
        before = m.sub(one, half_square(m.div(m.sub(one, x), m.sub(one, left))))
        behind = m.sub(one, half_square(m.div(m.sub(x, one), m.sub(right, one))))
        falling = half_square(m.div(m.sub(high, x), m.sub(high, right)))
        found = m.where_lt(x, left, rising, m.where_lt(x, one, before, m.where_lt(x, right, behind, falling)))
        return m.where_lt(x, low, zero, m.where_lt(high, x, zero, found))

    @m.struct
    class Gain:
        """Gain of a muscle, and how it falls with its speed."""

        here: m.lane
        damping: m.lane

    @m.func
    def muscle_gain(b, n: int, length: m.lane, speed: m.lane, T) -> Gain:
        prm = ACTUATOR * n + GAIN_PRM
        one = m.fill(real(1.0))
        two = m.fill(real(2.0))
        zero = m.fill(real(0.0))
        x = relative_length(b, n, prm, length, T)
        unit_speed = m.mul(optimal_length(b, n, prm, T), actuator_number(b, prm + V_MAX, T))
        v = m.div(speed, unit_speed)
        y = m.sub(actuator_number(b, prm + F_V_MAX, T), one)
        back = m.add(v, one)
        gap = m.sub(y, v)
        least = m.larger(y, m.fill(real(LEAST)))
        ahead = m.sub(m.add(y, one), m.div(m.mul(gap, gap), least))
        fast = m.where_lt(v, zero, m.mul(back, back), m.where_lt(v, y, ahead, m.add(y, one)))
        fast = m.where_lt(back, zero, zero, fast)
        slope = m.where_lt(v, zero, m.mul(two, back), m.where_lt(v, y, m.div(m.mul(two, gap), least), zero))
        slope = m.where_lt(back, zero, zero, slope)
        pull = m.mul(peak_force(b, n, prm, T), pull_at_length(b, prm, x, T))
        return Gain(m.neg(m.mul(pull, fast)), m.div(m.mul(pull, slope), unit_speed))

    @m.func
    def muscle_bias(b, n: int, length: m.lane, T) -> m.lane:
        """The passive force of a muscle: a parabola beyond its optimal length, and a line from halfway to L_MAX."""
        prm = ACTUATOR * n + BIAS_PRM
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        x = relative_length(b, n, prm, length, T)
        reach = m.mul(half, m.sub(actuator_number(b, prm + L_MAX, T), one))
        beyond = m.div(m.sub(x, one), reach)
        curve = half_square(beyond)
        line = m.sub(beyond, half)
        share = m.where_lt(beyond, m.fill(real(0.0)), m.fill(real(0.0)), m.where_lt(beyond, one, curve, line))
        scale = m.mul(peak_force(b, n, prm, T), actuator_number(b, prm + F_P_MAX, T))
        return m.neg(m.mul(scale, share))

    @m.func
    def next_current(b, t, n: int, speed: m.lane, dt: m.lane, T, L, mem) -> m.lane:
        """The current of motor n after a step: (ctrl - K u) / R, which it approaches with its time constant."""
        at = ACTUATOR * n
        ctrl = in_range(m.get(mem, L.actuator_ctrl + n, t), b, at + CTRL_RANGE, T)
        back = m.mul(actuator_number(b, at + DYN_PRM + MOTOR_CONSTANT, T), speed)
        final = m.div(m.sub(ctrl, back), actuator_number(b, at + DYN_PRM + RESISTANCE, T))
        time = m.larger(actuator_number(b, at + DYN_PRM, T), m.fill(real(LEAST)))
        left = m.exp(m.neg(m.div(dt, time)))
        new = m.fma(m.sub(m.get(mem, L.actuator_act + n, t), final), left, final)
        return in_range(new, b, at + ACT_RANGE, T)

    @m.func
    def cogging(b, n: int, length: m.lane, T) -> m.lane:
        prm = ACTUATOR * n + BIAS_PRM
        angle = m.fma(actuator_number(b, prm + PERIODS, T), length, actuator_number(b, prm + PHASE, T))
        return m.mul(actuator_number(b, prm + COGGING, T), m.sin(angle))

    @m.struct
    class Pull:
        """The force of an actuator before gears and before its range, and dt times how it falls with its speed."""

        force: m.lane
        drag: m.lane

    @m.func
    def actuator_pull(b, t, n: int, dt: m.lane, T, L, mem) -> Pull:
        """The force of an actuator with a row."""
        at = ACTUATOR * n
        table = ACTUATOR_TABLE * n
        line = T.actuator_table[table + LINE]
        row = L.tendon_row + TENDON_ROW * line
        zero = m.fill(real(0.0))
        gear = actuator_number(b, at + GEAR, T)
        length = m.mul(gear, m.get(mem, L.tendon_length + line, t))
        speed = m.mul(gear, m.get(mem, row + SPEED, t))
        if T.actuator_table[table + DYNAMICS] == CURRENT:
            current = next_current(b, t, n, speed, dt, T, L, mem)
            m.put(mem, L.actuator_act + n, t, current)
            if T.actuator_table[table + EARLY] != 0:
                m.put(mem, L.actuator_strength + n, t, current)
        strength = m.get(mem, L.actuator_strength + n, t)
        gain_of = T.actuator_table[table + GAIN_TYPE]
        bias_of = T.actuator_table[table + BIAS_TYPE]
        gain_here = actuator_number(b, at + GAIN_PRM, T)
        stiffness = zero
        damping = zero
        if gain_of == AFFINE:
            by_length = actuator_number(b, at + GAIN_PRM + 1, T)
            by_speed = actuator_number(b, at + GAIN_PRM + 2, T)
            gain_here = m.fma(by_length, length, m.fma(by_speed, speed, gain_here))
            stiffness = m.neg(m.mul(by_length, strength))
            damping = m.neg(m.mul(by_speed, strength))
        elif gain_of == OF_MUSCLE:
            pulled = muscle_gain(b, n, length, speed, T)
            gain_here = pulled.here
            damping = m.mul(strength, pulled.damping)
        force = m.mul(gain_here, strength)
        if bias_of == AFFINE or bias_of == OF_MOTOR:
            by_length = actuator_number(b, at + BIAS_PRM + 1, T)
            by_speed = actuator_number(b, at + BIAS_PRM + 2, T)
            bias_here = m.fma(by_length, length, m.fma(by_speed, speed, actuator_number(b, at + BIAS_PRM, T)))
            force = m.add(force, bias_here)
            stiffness = m.sub(stiffness, by_length)
            damping = m.sub(damping, by_speed)
        elif bias_of == OF_MUSCLE:
            force = m.add(force, muscle_bias(b, n, length, T))
        # forces that grow with length or speed are explicit
        stiffness = m.larger(stiffness, zero)
        slope = m.fma(dt, stiffness, m.larger(damping, zero))
        return Pull(m.fnma(m.mul(dt, stiffness), speed, force), m.mul(dt, slope))

    @m.func
    def pull_in_range(b, t, n: int, asked: m.lane, drag: m.lane, T, L, mem) -> Pull:
        """The force of an actuator in its range, and its damper, which is zero at an end of the range. The cogging torque has no range."""
        zero = m.fill(real(0.0))
        force = in_range(asked, b, ACTUATOR * n + FORCE_RANGE, T)
        off = m.sub(asked, force)
        left = m.where_lt(zero, m.mul(off, off), zero, drag)
        table = ACTUATOR_TABLE * n
        if T.actuator_table[table + BIAS_TYPE] == OF_MOTOR:
            length = m.get(mem, L.tendon_length + T.actuator_table[table + LINE], t)
            force = m.add(force, cogging(b, n, m.mul(actuator_number(b, ACTUATOR * n + GEAR, T), length), T))
        return Pull(force, left)

    @m.func
    def add_actuator_drag(b, t, n: int, drag: m.lane, T, L, mem):
        """The damper of the row of an actuator <- + its own."""
        row = L.tendon_row + TENDON_ROW * T.actuator_table[ACTUATOR_TABLE * n + LINE]
        gear = actuator_number(b, ACTUATOR * n + GEAR, T)
        total = m.fma(m.mul(gear, gear), drag, m.get(mem, row + DRAG, t))
        m.put(mem, row + DRAG, t, total)
        m.put(mem, row + NEED, t, m.larger(total, m.get(mem, row + NEED, t)))

    @m.func
    def push_line(b, t, n: int, pull: m.lane, summed: int, T, L, mem):
        """A force before gears goes to the row of its actuator and to the joint forces; with ``summed``, to the drives of dofs whose limit
        bounds a sum."""
        line = T.actuator_table[ACTUATOR_TABLE * n + LINE]
        row = L.tendon_row + TENDON_ROW * line
        force = m.mul(actuator_number(b, ACTUATOR * n + GEAR, T), pull)
        m.put(mem, row + FORCE, t, m.add(force, m.get(mem, row + FORCE, t)))
        for i in range(T.tendon_span[line], T.tendon_span[line + 1]):
            k = T.tendon_span[i]
            x = m.mul(force, m.get(mem, L.tendon_j + T.dofs * line + k, t))
            m.put(mem, L.tau + k, t, m.add(x, m.get(mem, L.tau + k, t)))
            # as drives, they do not count for the bias forces
            at = L.tendon_tau + k
            if summed != 0:
                if (T.actuator_table[ACTUATOR_TABLE * T.actuators + k] & OF_SUM) != 0:
                    at = L.push + k
            m.put(mem, at, t, m.add(x, m.get(mem, at, t)))

    @m.func
    def actuator_forces(b, t, o, T, P, L, mem):
        """Rows of tendons, tendon_tau and tau <- + the forces of actuators. Needs ``tendon_forces``."""
        dt = m.fill(o.dt)
        for n in range(T.actuators):
            if T.actuator_table[ACTUATOR_TABLE * n + LINE] >= 0:
                asked = actuator_pull(b, t, n, dt, T, L, mem)
                pull = pull_in_range(b, t, n, asked.force, asked.drag, T, L, mem)
                add_actuator_drag(b, t, n, pull.drag, T, L, mem)
                push_line(b, t, n, pull.force, 0, T, L, mem)

    @m.func
    def relieve(b, t, T, P, L, mem):
        """Wrenches on bodies <- + shares of their weight, upward."""
        g = m.gravity(P, b)
        for k in range(T.bodies * T.relieved):
            share = m.neg(m.mul(actuator_number(b, ACTUATOR * T.actuators + k, T), m.body_mass(P, b, k)))
            slot = L.wrench + 6 * T.body_slot[k]
            m.put3(mem, slot, t, m.add3(m.get3(mem, slot, t), m.scale3(g, share)))

    return locals()
