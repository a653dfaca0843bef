"""Ranges of sums of forces of actuators in a step, by the published formulas of MuJoCo (documentation, chapter "Computation").

The effort limit of a degree of freedom may bound the sum of its drive, of all actuators that move it and of compensated weight. Their
forces go to the force of the drive at no velocity then (`push`), which is *saturated* as in `kernels.solvers.drives`. With the middle c of
the range, the drive has the force push - c - slope v, within the effort limit, and c is a further joint force.

The forces of several actuators of a tendon, before gears, may have a range, too: outside of it each is scaled, so that the sum is at the
end of the range. The ranges of single actuators hold for the scaled forces.

Each degree of freedom has an integer for these bits: the limit bounds the sum of forces (`OF_SUM`); compensated weight counts
(`OF_WEIGHT`). Behind them each row of a tendon has one if the sum of its forces has a range.

Forces that a range cuts do not fall with velocity: an actuator all of whose degrees of freedom are beyond their range, at the velocity
before the step, has no damper.
"""

import types

from newton_like.kernels.solvers.actuators import ACTUATOR, ACTUATOR_TABLE, LINE, OF_SUM, OF_WEIGHT
from newton_like.kernels.tree import EFFORT_LIMIT


def range_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``actuator_forces_in_ranges``."""
    real = m.real

    @m.func
    def ranges_at(T) -> int:
        """Where the numbers of ranges begin: a middle for each degree of freedom, then the least and the largest force of each row."""
        return ACTUATOR * T.actuators + T.bodies * T.relieved

    @m.func
    def sum_of_line(t, line: int, T, L, mem) -> m.lane:
        """The sum of the forces of the actuators of a row, before gears."""
        total = m.fill(real(0.0))
        for n in range(T.actuators):
            if T.actuator_table[ACTUATOR_TABLE * n + LINE] == line:
                total = m.add(total, m.get(mem, L.actuator_strength + n, t))
        return total

    @m.func
    def share_in_range(total: m.lane, b, at: int, T) -> m.lane:
        """The factor that brings a sum into the range at `at`."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        low = m.actuator_number(b, at, T)
        high = m.actuator_number(b, at + 1, T)
        share = m.where_lt(total, low, m.div(low, total), m.where_lt(high, total, m.div(high, total), one))
        return m.where_lt(zero, m.mul(total, total), share, one)

    @m.func
    def bring_lines_into_range(b, t, T, L, mem):
        """Forces of tendons that have a range <- scaled; those that are scaled have no damper."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        for line in range(T.tendons):
            if T.actuator_table[ACTUATOR_TABLE * T.actuators + T.dofs + line] != 0:
                share = share_in_range(sum_of_line(t, line, T, L, mem), b, ranges_at(T) + T.dofs + 2 * line, T)
                off = m.sub(share, one)
                for n in range(T.actuators):
                    if T.actuator_table[ACTUATOR_TABLE * n + LINE] == line:
                        m.put(mem, L.actuator_strength + n, t, m.mul(share, m.get(mem, L.actuator_strength + n, t)))
                        drag = m.get(mem, L.actuator_ctrl + n, t)
                        m.put(mem, L.actuator_ctrl + n, t, m.where_lt(zero, m.mul(off, off), zero, drag))

    @m.func
    def push_weight(b, t, T, P, L, mem):
        """Weight that is taken away counts for the sums that it belongs to."""
        g = m.gravity(P, b)
        for k in range(T.bodies * T.relieved):
            share = m.neg(m.mul(m.actuator_number(b, ACTUATOR * T.actuators + k, T), m.body_mass(P, b, k)))
            f = m.scale3(g, share)
            zero = m.fill(real(0.0))
            lifted = m.spatial(f, m.cross_plus(m.get3(mem, L.com + 3 * k, t), f, m.vec(zero, zero, zero)))
            carrier = int(k)
            while carrier < T.bodies:
                for i in range(T.dof_at[carrier], T.dof_at[carrier + 1]):
                    if (T.actuator_table[ACTUATOR_TABLE * T.actuators + i] & OF_WEIGHT) != 0:
                        s = m.get6(mem, L.subspace + 6 * i, t)
                        m.put(mem, L.push + i, t, m.dot6_plus(s, lifted, m.get(mem, L.push + i, t)))
                carrier = T.parent[carrier]

    @m.func
    def drag_that_acts(b, t, n: int, dt: m.lane, T, P, L, mem) -> m.lane:
        """The damper of an actuator; none where all that it moves is beyond its range."""
        zero = m.fill(real(0.0))
        line = T.actuator_table[ACTUATOR_TABLE * n + LINE]
        free = zero
        for i in range(T.tendon_span[line], T.tendon_span[line + 1]):
            k = T.tendon_span[i]
            j = m.get(mem, L.tendon_j + T.dofs * line + k, t)
            arm = m.mul(j, j)
            if (T.actuator_table[ACTUATOR_TABLE * T.actuators + k] & OF_SUM) != 0:
                force = m.fnma(m.drive_slope(b, k, dt, P), m.get(mem, L.v + k, t), m.get(mem, L.push + k, t))
                limit = m.gain(P, b, k, EFFORT_LIMIT)
                arm = m.where_lt(m.mul(limit, limit), m.mul(force, force), zero, arm)
            free = m.add(free, arm)
        return m.where_lt(zero, free, m.get(mem, L.actuator_ctrl + n, t), zero)

    @m.func
    def actuator_forces_in_ranges(b, t, o, T, P, L, mem):
        """As ``actuator_forces``, of clusters with ranges of sums. Needs compensated weight in tau; controls and strengths are spent."""
        dt = m.fill(o.dt)
        for n in range(T.actuators):
            if T.actuator_table[ACTUATOR_TABLE * n + LINE] >= 0:
                pull = m.actuator_pull(b, t, n, dt, T, L, mem)
                m.put(mem, L.actuator_strength + n, t, pull.force)
                m.put(mem, L.actuator_ctrl + n, t, pull.drag)
        bring_lines_into_range(b, t, T, L, mem)
        for n in range(T.actuators):
            if T.actuator_table[ACTUATOR_TABLE * n + LINE] >= 0:
                asked = m.get(mem, L.actuator_strength + n, t)
                pull = m.pull_in_range(b, t, n, asked, m.get(mem, L.actuator_ctrl + n, t), T, L, mem)
                m.put(mem, L.actuator_ctrl + n, t, pull.drag)
                m.push_line(b, t, n, pull.force, 1, T, L, mem)
        push_weight(b, t, T, P, L, mem)
        for i in range(T.dofs):
            if (T.actuator_table[ACTUATOR_TABLE * T.actuators + i] & OF_SUM) != 0:
                middle = m.actuator_number(b, ranges_at(T) + i, T)
                m.put(mem, L.push + i, t, m.sub(m.get(mem, L.push + i, t), middle))
        for n in range(T.actuators):
            if T.actuator_table[ACTUATOR_TABLE * n + LINE] >= 0:
                m.add_actuator_drag(b, t, n, drag_that_acts(b, t, n, dt, T, P, L, mem), T, L, mem)

    return locals()
