"""Single rows of the block of loop joints: their errors, their Jacobians and accelerations, and the laws of their forces.

To the rows of `kernels.dynamics.loops` come those of other kinds (a: a direction fixed to the parent, e: one at right angles to it, x: from
the anchor of the parent to that of the child, d = x / |x|):

    turn          the angle about a from e to u                    W = (0, a)
    polynomial    q1 - c0 - c1 q2 - ... - c4 q2^4                  on two dofs
    length        |x|                                              W = (d, c x d)
    tendons       L1 - l1 - c0 - c1 x - ... - c4 x^4, x = L2 - l2  on the dofs of two tendons
    spin          the angle of the rotation from p to c, >= 0      W = (0, n), n: its axis
    swing         the angle between two directions, >= 0           W = (0, n), n: at right angles to both
    middle        the same minus a right angle
    outer         as turn, with the angle s between a and u        W = (0, (a - u cos s) / sin^2 s)
    towards       -e . log(r), r: the rotation left to a goal      W = (0, e)

Spin and swing stand for the limits of ball joints, in loops and in trees, and towards for their springs and drives. Of three rotations one
after the other, the axes of the first and of the last one are fixed to the parent and to the child: their angles are outer ones, and that
between these axes is the middle one. The W of outer angles belong to the dual basis of the three axes.

The law of a row gives its impulse p, with the velocity u = K nu after the step:

    hard       u closes the error g, see `kernels.solvers.rows.closures`
    soft       J a + R f = -b v - k d g, MuJoCo's law for equalities, see `kernels.solvers.rows.contact_law`. R = (1 - d) / d w, with the
               inverse masses w at the initial coordinates, and the rows of `kernels.solvers.rows.equality_rows`
    spring     f = ke (rest - g - dt u) + kd (speed - u)
    drive      the same, of limited size
    friction   |f| is limited, g is to stay; the limit is that of motion where u before the step is not that of a g that stays
    limit      g stays between two bounds
    stop       soft where g is above a bound, as MuJoCo's limits: J a + R f = -b v - k d (g - bound), f <= 0; without the part of the
               second derivative of g that comes from velocities, which MuJoCo leaves out as well

Soft rows and springs are u + R p = target, which the block of hard rows has room for. Drives, friction, limits and stops are *bounded*:
rows of their own, which follow the block, and are swept by projection.
"""

import math
import types

from newton_like.kernels.dynamics.loops import (
    ANGULAR,
    CHILD_ANCHOR,
    CHILD_DIRECTION,
    LINEAR,
    LOOP,
    PARENT_ANCHOR,
    PARENT_DIRECTION,
)
from newton_like.kernels.solvers.tendons import BEND, SPEED, TENDON_ROW
from newton_like.kernels.tree import REST_SPEED

TURN, POLYNOMIAL, LENGTH, TENDONS, SPIN, SWING, MIDDLE, OUTER, TOWARDS, TILT = range(ANGULAR + 1, ANGULAR + 11)

HARD, SOFT, SPRING, DRIVE, DRY, LIMIT, STOP = range(7)
"""Laws; those from DRIVE on are bounded."""

ROW_LAW = 9
"""Numbers of a law."""
# soft, as LAW_STIFFNESS and the following ones
(
    SOFT_STIFFNESS, SOFT_DAMPING, SOFT_MOST, SOFT_LEAST, SOFT_LARGEST, SOFT_INVERSE_WIDTH, SOFT_MIDPOINT, SOFT_POWER, SOFT_WEIGHT,
) = range(ROW_LAW)  # fmt: skip
# spring and drive; dry friction; limit
ROW_KE, ROW_KD, ROW_REST, ROW_SPEED, ROW_EFFORT, ROW_GOAL = range(6)
ROW_FRICTION, ROW_IN_MOTION = 0, 1
ROW_LOWER, ROW_UPPER = 0, 1

OWN_REST, LEADER_REST = 5, 6
"""Where the lengths from which a polynomial of tendons counts are in its vectors."""

STOP_BOUND = 5
"""Where the bound of a stop is in the vectors of its row, of kind SPIN or SWING. Those of SPIN begin with the orientation of the anchor of
the child in its link, times the inverse of that of the parent."""

PARENT_FRAME, CHILD_FRAME, GOAL_AXIS = 0, 4, 8
"""Where the orientations of both anchors in their links, and the axis in that of the parent, are in the vectors of TOWARDS. The numbers of
its law have the goal at ROW_GOAL, a quaternion."""

RIGHT_ANGLE = 0.5 * math.pi

FLATTEST = 1.0e-4
"""The least squared sine between the axes of outer angles by which their rates are divided."""

REFERENCE, REACHED = 7, 8
"""Where the vectors of rigid rows of lengths have J M^-1 J^T of a pose in which motions change the length, and the part of their target
that this step asks for (1 before it is known)."""

ANGLE_SHARE = PARENT_ANCHOR
"""Where the factor on the angle of a soft angular row, which has no anchors, is in its vectors: that of the row of MuJoCo."""

BOUNDED_ROW = 3
"""Numbers of a bounded row: least and largest impulse, and the inverse of its response."""
LEAST_IMPULSE, LARGEST_IMPULSE, BOUNDED_MASS = range(BOUNDED_ROW)

TURNING = 0.5
"""The share of a speed by the turning of a row within which the row counts as held, besides the speed of rest."""

CLOSE = 1.0e-3
"""Errors up to here [m, rad] are corrected within a step."""

SLOW = 0.2
"""The share of larger errors that a step corrects, at a limited speed."""


def closure_row_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``closure_error``, ``put_closure_row``, ``closure_compliance``, ``closure_target`` and ``closure_share``."""
    real = m.real
    unbounded = 1.0e30

    @m.func
    def row_law(t, r: int, i: int, L, mem) -> m.lane:
        return m.get(mem, L.loop_law + ROW_LAW * r + i, t)

    @m.func
    def row_child(r: int, T) -> int:
        return m.loop_body(T.loop_rows + r, T)

    @m.func
    def anchor_line(t, r: int, T, L, mem) -> m.Vec3:
        """x"""
        end = m.loop_anchor(t, r, CHILD_ANCHOR, row_child(r, T), L, mem)
        return m.sub3(end, m.loop_anchor(t, r, PARENT_ANCHOR, m.loop_body(r, T), L, mem))

    @m.func
    def inverse_length(x: m.Vec3) -> m.lane:
        return m.rcp(m.sqrt(m.larger(m.dot(x, x), m.fill(real(1.0e-20)))))

    @m.func
    def turned(t, r: int, T, L, mem) -> m.lane:
        """The angle in (-pi, pi]."""
        p = m.loop_body(r, T)
        a = m.loop_vector(t, r, PARENT_DIRECTION, p, L, mem)
        zero = m.loop_vector(t, r, PARENT_ANCHOR, p, L, mem)
        u = m.loop_vector(t, r, CHILD_DIRECTION, row_child(r, T), L, mem)
        return m.atan2(m.dot(m.cross(a, zero), u), m.dot(zero, u))

    @m.func
    def leader(t, r: int, T, L, mem) -> m.lane:
        """q2 of a polynomial, or zero."""
        k = m.loop_body(r, T)
        q = m.fill(real(0.0))
        if k < T.bodies:
            q = m.get(mem, L.q + T.q_at[k], t)
        return q

    @m.func
    def polynomial(t, r: int, q: m.lane, L, mem) -> m.lane:
        at = L.loop + LOOP * r
        y = m.get(mem, at + 4, t)
        for i in range(4):
            y = m.fma(y, q, m.get(mem, at + 3 - i, t))
        return y

    @m.func
    def slope(t, r: int, q: m.lane, L, mem) -> m.lane:
        """The first derivative of the polynomial."""
        at = L.loop + LOOP * r
        y = m.mul(m.fill(real(4.0)), m.get(mem, at + 4, t))
        for i in range(3):
            y = m.fma(y, q, m.mul(m.fill(real(3 - i)), m.get(mem, at + 3 - i, t)))
        return y

    @m.func
    def curvature(t, r: int, q: m.lane, L, mem) -> m.lane:
        """The second derivative."""
        at = L.loop + LOOP * r
        y = m.mul(m.fill(real(12.0)), m.get(mem, at + 4, t))
        y = m.fma(y, q, m.mul(m.fill(real(6.0)), m.get(mem, at + 3, t)))
        return m.fma(y, q, m.mul(m.fill(real(2.0)), m.get(mem, at + 2, t)))

    @m.func
    def dof_speed(t, k: int, T, L, mem) -> m.lane:
        """The velocity of the dof of joint k in the twists of bodies; zero for the world."""
        u = m.fill(real(0.0))
        if k < T.bodies:
            s = m.get6(mem, L.subspace + 6 * T.dof_at[k], t)
            v = m.get6(mem, L.twist + 6 * k, t)
            w = m.get6(mem, L.twist + 6 * T.parent[k], t)
            v = m.spatial(m.sub3(v.v, w.v), m.sub3(v.w, w.w))
            u = m.div(m.dot6(s, v), m.dot6(s, s))
        return u

    @m.func
    def tied_tendon(r: int, T) -> int:
        return T.point_body[T.loop_rows + r]

    @m.func
    def leading_tendon(r: int, T) -> int:
        """The tendon in the polynomial of row r; -1: none."""
        return T.point_body[r]

    @m.func
    def leading_length(t, r: int, T, L, mem) -> m.lane:
        """L2 - l2 of a polynomial of tendons, or zero."""
        n = leading_tendon(r, T)
        x = m.fill(real(0.0))
        if n >= 0:
            x = m.sub(m.get(mem, L.tendon_length + n, t), m.get(mem, L.loop + LOOP * r + LEADER_REST, t))
        return x

    @m.func
    def tendon_gap(t, r: int, T, L, mem) -> m.lane:
        own = m.sub(m.get(mem, L.tendon_length + tied_tendon(r, T), t), m.get(mem, L.loop + LOOP * r + OWN_REST, t))
        return m.sub(own, polynomial(t, r, leading_length(t, r, T, L, mem), L, mem))

    @m.func
    def put_tendon_row(t, r: int, at: int, T, L, mem):
        """Stores the nonzero entries of a row of tendons at `at`, which is zero before."""
        n = tied_tendon(r, T)
        for i in range(T.tendon_span[n], T.tendon_span[n + 1]):
            k = T.tendon_span[i]
            m.put(mem, at + k, t, m.get(mem, L.tendon_j + T.dofs * n + k, t))
        other = leading_tendon(r, T)
        if other >= 0:
            c = slope(t, r, leading_length(t, r, T, L, mem), L, mem)
            for i in range(T.tendon_span[other], T.tendon_span[other + 1]):
                k = T.tendon_span[i]
                j = m.get(mem, L.tendon_j + T.dofs * other + k, t)
                m.put(mem, at + k, t, m.fnma(c, j, m.get(mem, at + k, t)))

    @m.func
    def tendon_curve(t, r: int, T, L, mem) -> m.lane:
        """g'' of a row of tendons where no joint accelerates. Parts of paths that wrap around shapes count as straight ones without it."""
        other = leading_tendon(r, T)
        bend = m.get(mem, L.tendon_row + TENDON_ROW * tied_tendon(r, T) + BEND, t)
        if other >= 0:
            at = L.tendon_row + TENDON_ROW * other
            x = leading_length(t, r, T, L, mem)
            u = m.get(mem, at + SPEED, t)
            bend = m.fnma(slope(t, r, x, L, mem), m.get(mem, at + BEND, t), bend)
            bend = m.fnma(curvature(t, r, x, L, mem), m.mul(u, u), bend)
        return bend

    @m.struct
    class Angle:
        """An angle in [0, pi], the axis about which it grows, and what the square of the velocity at right angles to that axis is
        multiplied by for its acceleration."""

        size: m.lane
        axis: m.Vec3
        bend: m.lane

    @m.func
    def rotation_angle(t, r: int, T, L, mem) -> Angle:
        """Of the rotation from the anchor of the parent to that of the child."""
        q = m.relative_turn(t, r, 0, T, L, mem)
        v = m.vec(q.x, q.y, q.z)
        inverse = inverse_length(v)
        s = m.mul(m.dot(v, v), inverse)
        # half the cotangent of half the angle
        bend = m.mul(m.mul(m.fill(real(0.5)), q.w), inverse)
        return Angle(m.mul(m.fill(real(2.0)), m.atan2(s, q.w)), m.scale3(v, inverse), bend)

    @m.func
    def swing_angle(t, r: int, T, L, mem) -> Angle:
        """Between a direction of the parent and one of the child."""
        a = m.loop_vector(t, r, PARENT_DIRECTION, m.loop_body(r, T), L, mem)
        c = m.loop_vector(t, r, CHILD_DIRECTION, row_child(r, T), L, mem)
        across = m.cross(a, c)
        inverse = inverse_length(across)
        return Angle(m.atan2(m.mul(m.dot(across, across), inverse), m.dot(a, c)), m.scale3(across, inverse), inverse)

    @m.func
    def angle_of(t, r: int, T, L, mem) -> Angle:
        if T.loop_kind[r] == SPIN:
            return rotation_angle(t, r, T, L, mem)
        return swing_angle(t, r, T, L, mem)

    @m.func
    def angle_acceleration(t, r: int, dt: m.lane, T, L, mem) -> m.lane:
        """g'' of a spin or a swing where no joint accelerates."""
        p = m.loop_body(r, T)
        c = row_child(r, T)
        angle = angle_of(t, r, T, L, mem)
        n = angle.axis
        turn = m.get3(mem, L.twist + 6 * p + 3, t)
        w = m.sub3(m.get3(mem, L.twist + 6 * c + 3, t), turn)
        # an angle that passes zero within the step has no curvature that counts
        bend = m.smaller(angle.bend, inverse_length(m.scale3(w, dt)))
        if T.loop_kind[r] == SPIN:
            beside = m.fnma3(n, m.dot(n, w), w)
            bend = m.mul(bend, m.dot(beside, beside))
        else:
            a = m.loop_vector(t, r, PARENT_DIRECTION, p, L, mem)
            u = m.loop_vector(t, r, CHILD_DIRECTION, c, L, mem)
            bend = m.mul(bend, m.mul(m.dot(m.cross(w, u), n), m.dot(m.cross(a, n), w)))
        bend = m.dot_plus(m.cross(turn, n), w, bend)
        return m.dot6_plus(m.spatial(m.zero3(), n), m.across(t, r, L.drift, T, mem), bend)

    @m.func
    def outer_wrench(a: m.Vec3, u: m.Vec3) -> m.Vec3:
        """The torque of an outer angle with the axis a, where u is the axis of the other one."""
        cosine = m.dot(a, u)
        square = m.fnma(cosine, cosine, m.fill(real(1.0)))
        return m.scale3(m.fnma3(u, cosine, a), m.rcp(m.larger(square, m.fill(real(FLATTEST)))))

    @m.func
    def outer_acceleration(t, r: int, T, L, mem) -> m.lane:
        """g'' of an outer angle where no joint accelerates."""
        p = m.loop_body(r, T)
        c = row_child(r, T)
        a = m.loop_vector(t, r, PARENT_DIRECTION, p, L, mem)
        u = m.loop_vector(t, r, CHILD_DIRECTION, c, L, mem)
        turn = m.get3(mem, L.twist + 6 * p + 3, t)
        other = m.get3(mem, L.twist + 6 * c + 3, t)
        w = m.sub3(other, turn)
        da = m.cross(turn, a)
        du = m.cross(other, u)
        cosine = m.dot(a, u)
        rate = m.dot_plus(da, u, m.dot(a, du))
        inverse = m.rcp(m.larger(m.fnma(cosine, cosine, m.fill(real(1.0))), m.fill(real(FLATTEST))))
        n = outer_wrench(a, u)
        # (da - du s - u s' + 2 s s' n) / (1 - s^2)
        bend = m.fnma3(u, rate, m.fnma3(du, cosine, da))
        bend = m.scale3(m.fma3(n, m.mul(m.fill(real(2.0)), m.mul(cosine, rate)), bend), inverse)
        return m.dot6_plus(m.spatial(m.zero3(), n), m.across(t, r, L.drift, T, mem), m.dot(bend, w))

    @m.func
    def parent_frame(t, r: int, T, L, mem) -> m.Quat:
        """The orientation of the anchor of the parent of a TOWARDS row."""
        at = L.loop + LOOP * r
        return m.quat_multiply(m.get4(mem, L.quat + 4 * m.loop_body(r, T), t), m.get4(mem, at + PARENT_FRAME, t))

    @m.func
    def goal_error(t, r: int, T, L, mem) -> m.lane:
        at = L.loop + LOOP * r
        q = m.quat_multiply(m.get4(mem, L.quat + 4 * row_child(r, T), t), m.get4(mem, at + CHILD_FRAME, t))
        q = m.quat_multiply(m.quat_conjugate(parent_frame(t, r, T, L, mem)), q)
        goal = m.get4(mem, L.loop_law + ROW_LAW * r + ROW_GOAL, t)
        left = m.quat_log(m.quat_multiply(goal, m.quat_conjugate(q)))
        return m.neg(m.dot(left, m.get3(mem, at + GOAL_AXIS, t)))

    @m.func
    def closure_error(t, r: int, T, L, mem) -> m.lane:
        """g, of rows with a law the coordinate that it is about."""
        kind = T.loop_kind[r]
        if kind == TURN or kind == OUTER:
            return turned(t, r, T, L, mem)
        if kind == SPIN or kind == SWING:
            angle = angle_of(t, r, T, L, mem)
            return angle.size
        if kind == MIDDLE:
            angle = angle_of(t, r, T, L, mem)
            return m.sub(angle.size, m.fill(real(RIGHT_ANGLE)))
        if kind == TOWARDS:
            return goal_error(t, r, T, L, mem)
        if kind == TILT:
            return m.tilt_error(t, r, T, L, mem)
        if kind == TENDONS:
            return tendon_gap(t, r, T, L, mem)
        if kind == POLYNOMIAL:
            q = m.get(mem, L.q + T.q_at[row_child(r, T)], t)
            return m.sub(q, polynomial(t, r, leader(t, r, T, L, mem), L, mem))
        if kind == LENGTH:
            x = anchor_line(t, r, T, L, mem)
            # the length that a hard row keeps
            return m.sub(m.mul(m.dot(x, x), inverse_length(x)), m.get(mem, L.loop + LOOP * r + PARENT_DIRECTION, t))
        return m.loop_error(t, r, T, L, mem)

    @m.func
    def closure_wrench(t, r: int, T, L, mem) -> m.Spatial:
        """W of all kinds but polynomials."""
        kind = T.loop_kind[r]
        if kind == TURN:
            return m.spatial(m.zero3(), m.loop_vector(t, r, PARENT_DIRECTION, m.loop_body(r, T), L, mem))
        if kind == SPIN or kind == SWING or kind == MIDDLE:
            angle = angle_of(t, r, T, L, mem)
            return m.spatial(m.zero3(), angle.axis)
        if kind == OUTER:
            a = m.loop_vector(t, r, PARENT_DIRECTION, m.loop_body(r, T), L, mem)
            u = m.loop_vector(t, r, CHILD_DIRECTION, row_child(r, T), L, mem)
            return m.spatial(m.zero3(), outer_wrench(a, u))
        if kind == TOWARDS:
            axis = m.get3(mem, L.loop + LOOP * r + GOAL_AXIS, t)
            return m.spatial(m.zero3(), m.apply(m.quat_to_matrix(parent_frame(t, r, T, L, mem)), axis))
        if kind == TILT:
            return m.tilt_wrench(t, r, T, L, mem)
        if kind == LENGTH:
            x = anchor_line(t, r, T, L, mem)
            d = m.scale3(x, inverse_length(x))
            return m.spatial(d, m.cross(m.loop_anchor(t, r, CHILD_ANCHOR, row_child(r, T), L, mem), d))
        return m.loop_wrench(t, r, T, L, mem)

    @m.func
    def acts_at_ends(r: int, T) -> bool:
        """Whether the forces of row r act at the anchor of each link."""
        return T.loop_rule[r] == SOFT and T.loop_kind[r] == LINEAR

    @m.func
    def put_closure_row(t, r: int, at: int, T, L, mem):
        """Stores the nonzero entries of row r of K at `at`."""
        if T.loop_kind[r] == POLYNOMIAL:
            k = m.loop_body(r, T)
            if k < T.bodies:
                m.put(mem, at + T.dof_at[k], t, m.neg(slope(t, r, leader(t, r, T, L, mem), L, mem)))
            m.put(mem, at + T.dof_at[row_child(r, T)], t, m.fill(real(1.0)))
        elif T.loop_kind[r] == TENDONS:
            put_tendon_row(t, r, at, T, L, mem)
        elif acts_at_ends(r, T):
            m.put_ends(t, r, at, T, L, mem)
        else:
            m.put_wrench_row(t, r, closure_wrench(t, r, T, L, mem), at, T, L, mem)

    @m.func
    def closure_acceleration(t, r: int, dt: m.lane, T, L, mem) -> m.lane:
        """g'' where no joint accelerates, from the twists and the accelerations of the bodies"""
        kind = T.loop_kind[r]
        if kind == POLYNOMIAL:
            u = dof_speed(t, m.loop_body(r, T), T, L, mem)
            return m.neg(m.mul(curvature(t, r, leader(t, r, T, L, mem), L, mem), m.mul(u, u)))
        if kind == TENDONS:
            return tendon_curve(t, r, T, L, mem)
        if kind == SPIN or kind == SWING or kind == MIDDLE:
            return angle_acceleration(t, r, dt, T, L, mem)
        if kind == OUTER:
            return outer_acceleration(t, r, T, L, mem)
        if acts_at_ends(r, T):
            return m.ends_acceleration(t, r, T, L, mem)
        if kind == TILT:
            return m.tilt_acceleration(t, r, T, L, mem)
        if kind <= ANGULAR:
            return m.loop_acceleration(t, r, T, L, mem)
        p = m.loop_body(r, T)
        c = row_child(r, T)
        w = closure_wrench(t, r, T, L, mem)
        rate = m.spatial(m.zero3(), m.cross(m.get3(mem, L.twist + 6 * p + 3, t), w.w))
        if kind == LENGTH:
            end = m.loop_anchor(t, r, CHILD_ANCHOR, c, L, mem)
            start = m.loop_anchor(t, r, PARENT_ANCHOR, p, L, mem)
            v = m.velocity_at(m.get6(mem, L.twist + 6 * c, t), end)
            x = m.sub3(v, m.velocity_at(m.get6(mem, L.twist + 6 * p, t), start))
            # an end that passes the other one within the step has no curvature that counts
            reach = inverse_length(m.scale3(x, dt))
            x = m.fnma3(w.v, m.dot(w.v, x), x)
            turn = m.scale3(x, m.smaller(reach, inverse_length(m.sub3(end, start))))
            rate = m.spatial(turn, m.cross_plus(end, turn, m.cross(v, w.v)))
        bend = m.dot6(rate, m.across(t, r, L.twist, T, mem))
        return m.dot6_plus(w, m.across(t, r, L.drift, T, mem), bend)

    @m.func
    def joint_error(t, r: int, T, L, mem) -> m.lane:
        """The norm of the errors of all rows of the joint of row r. Those of angles count by ANGLE_SHARE."""
        square = m.fill(real(0.0))
        for i in range(T.loop_group[T.loop_rows + r]):
            s = T.loop_group[r] + i
            g = closure_error(t, s, T, L, mem)
            if T.loop_kind[s] == ANGULAR or T.loop_kind[s] == TILT:
                g = m.mul(m.get(mem, L.loop + LOOP * s + ANGLE_SHARE, t), g)
            square = m.fma(g, g, square)
        return m.sqrt(square)

    @m.func
    def row_impedance(t, r: int, g: m.lane, L, mem) -> m.lane:
        """d, see ``law_impedance`` of `kernels.solvers.rows.contact_law`, for the error g >= 0 of a joint."""
        one = m.fill(real(1.0))
        x = m.smaller(m.mul(g, row_law(t, r, SOFT_INVERSE_WIDTH, L, mem)), one)
        return m.impedance_curve(
            x, row_law(t, r, SOFT_LEAST, L, mem), row_law(t, r, SOFT_LARGEST, L, mem), row_law(t, r, SOFT_MIDPOINT, L, mem),
            row_law(t, r, SOFT_POWER, L, mem),
        )  # fmt: skip

    @m.func
    def stop_depth(t, r: int, T, L, mem) -> m.lane:
        """How far g is beyond the bound of a stop."""
        return m.sub(closure_error(t, r, T, L, mem), m.get(mem, L.loop + LOOP * r + STOP_BOUND, t))

    @m.func
    def closure_impedances(t, T, L, mem):
        """loop_impedance <- d of soft rows, the same for all rows of a joint, and of stops."""
        for r in range(T.loop_rows):
            if T.loop_rule[r] == STOP:
                depth = m.larger(m.fill(real(0.0)), stop_depth(t, r, T, L, mem))
                m.put(mem, L.loop_impedance + r, t, row_impedance(t, r, depth, L, mem))
            if T.loop_rule[r] == SOFT:
                first = T.loop_group[r]
                d = m.get(mem, L.loop_impedance + first, t)
                if first == r:
                    d = row_impedance(t, r, joint_error(t, r, T, L, mem), L, mem)
                m.put(mem, L.loop_impedance + r, t, d)

    @m.func
    def spring_slope(t, r: int, dt: m.lane, L, mem) -> m.lane:
        return m.fma(dt, row_law(t, r, ROW_KE, L, mem), row_law(t, r, ROW_KD, L, mem))

    @m.func
    def closure_compliance(t, r: int, dt: m.lane, T, L, mem) -> m.lane:
        """R of a row. Needs ``closure_impedances``."""
        law = T.loop_rule[r]
        if law == SOFT or law == STOP:
            d = m.get(mem, L.loop_impedance + r, t)
            return m.mul(row_law(t, r, SOFT_WEIGHT, L, mem), m.div(m.sub(m.fill(real(1.0)), d), d))
        if law == SPRING or law == DRIVE:
            return m.rcp(m.larger(m.mul(dt, spring_slope(t, r, dt, L, mem)), m.fill(real(1.0e-30))))
        return m.fill(real(0.0))

    @m.func
    def hard_target(t, r: int, g: m.lane, dt: m.lane, fastest: m.lane, T, L, mem) -> m.lane:
        """loop_left <- the error that the step leaves."""
        near = m.smaller(m.fill(real(CLOSE)), m.larger(m.fill(real(-CLOSE)), g))
        most = m.larger(m.fill(real(CLOSE)), m.mul(dt, fastest))
        gap = m.fma(m.fill(real(SLOW)), m.sub(g, near), near)
        gap = m.larger(m.neg(most), m.smaller(gap, most))
        m.put(mem, L.loop_left + r, t, m.sub(g, gap))
        bend = m.mul(m.mul(m.fill(real(0.5)), dt), closure_acceleration(t, r, dt, T, L, mem))
        want = m.neg(m.add(m.div(gap, dt), bend))
        if T.loop_kind[r] == LENGTH or T.loop_kind[r] == TENDONS:
            want = m.mul(want, m.get(mem, L.loop + LOOP * r + REACHED, t))
        return want

    @m.func
    def soft_target(t, r: int, g: m.lane, dt: m.lane, T, L, mem) -> m.lane:
        one = m.fill(real(1.0))
        d = m.get(mem, L.loop_impedance + r, t)
        most = row_law(t, r, SOFT_LARGEST, L, mem)
        v = m.get(mem, L.loop_speed + r, t)
        # a time constant is at least two steps long, as in MuJoCo
        damping = m.div(m.smaller(m.mul(dt, row_law(t, r, SOFT_DAMPING, L, mem)), one), most)
        stiffness = m.mul(m.mul(dt, dt), row_law(t, r, SOFT_STIFFNESS, L, mem))
        stiffness = m.div(m.smaller(stiffness, row_law(t, r, SOFT_MOST, L, mem)), m.mul(most, most))
        pull = m.div(m.mul(stiffness, m.mul(d, g)), dt)
        if T.loop_rule[r] == SOFT:
            pull = m.fma(dt, closure_acceleration(t, r, dt, T, L, mem), pull)
        return m.sub(m.fnma(damping, v, v), pull)

    @m.func
    def put_bounds(t, r: int, low: m.lane, high: m.lane, T, L, mem):
        at = L.loop_bounded + BOUNDED_ROW * (r - T.loop_block)
        m.put(mem, at + LEAST_IMPULSE, t, low)
        m.put(mem, at + LARGEST_IMPULSE, t, high)

    @m.func
    def limit_target(t, r: int, g: m.lane, dt: m.lane, fastest: m.lane, T, L, mem) -> m.lane:
        """The velocity up to which the nearer limit lets the row go; what is beyond a limit returns at no more than `fastest`."""
        zero = m.fill(real(0.0))
        none = m.fill(real(unbounded))
        low = m.sub(g, row_law(t, r, ROW_LOWER, L, mem))
        high = m.sub(row_law(t, r, ROW_UPPER, L, mem), g)
        lower = m.where_lt(high, low, zero, none)
        upper = m.where_lt(high, low, none, zero)
        gap = m.smaller(low, high)
        share = m.where_lt(gap, zero, m.fill(real(SLOW)), m.fill(real(1.0)))
        pace = m.larger(m.neg(fastest), m.div(m.mul(gap, share), dt))
        pace = m.where_lt(high, low, pace, m.neg(pace))
        put_bounds(t, r, m.neg(upper), lower, T, L, mem)
        bend = m.mul(m.mul(m.fill(real(0.5)), dt), closure_acceleration(t, r, dt, T, L, mem))
        return m.sub(pace, bend)

    @m.func
    def stop_target(t, r: int, dt: m.lane, T, L, mem) -> m.lane:
        zero = m.fill(real(0.0))
        depth = stop_depth(t, r, T, L, mem)
        put_bounds(t, r, m.where_lt(zero, depth, m.fill(real(-unbounded)), zero), zero, T, L, mem)
        return soft_target(t, r, depth, dt, T, L, mem)

    @m.func
    def dry_target(t, r: int, dt: m.lane, T, L, mem) -> m.lane:
        """The velocity of a row that friction holds: g is the same at the middle of the next step. Its direction turns from step to step,
        so a row that was held has the speed `bend` before the step, up to errors of higher order."""
        bend = m.mul(m.mul(m.fill(real(0.5)), dt), closure_acceleration(t, r, dt, T, L, mem))
        speed = m.sub(m.get(mem, L.loop_speed + r, t), bend)
        rest = m.fma(m.fill(real(TURNING)), m.larger(bend, m.neg(bend)), m.fill(real(REST_SPEED)))
        moving = row_law(t, r, ROW_IN_MOTION, L, mem)
        held = row_law(t, r, ROW_FRICTION, L, mem)
        most = m.mul(dt, m.where_lt(rest, m.larger(speed, m.neg(speed)), moving, held))
        put_bounds(t, r, m.neg(most), most, T, L, mem)
        return m.neg(bend)

    @m.func
    def closure_target(t, r: int, dt: m.lane, fastest: m.lane, T, L, mem) -> m.lane:
        """u + R p of row r; of a bounded row also its bounds."""
        law = T.loop_rule[r]
        g = closure_error(t, r, T, L, mem)
        if law == HARD:
            return hard_target(t, r, g, dt, fastest, T, L, mem)
        if law == SOFT:
            return soft_target(t, r, g, dt, T, L, mem)
        if law == LIMIT:
            return limit_target(t, r, g, dt, fastest, T, L, mem)
        if law == STOP:
            return stop_target(t, r, dt, T, L, mem)
        if law == DRY:
            return dry_target(t, r, dt, T, L, mem)
        if law == DRIVE:
            most = m.mul(dt, row_law(t, r, ROW_EFFORT, L, mem))
            put_bounds(t, r, m.neg(most), most, T, L, mem)
        push = m.mul(row_law(t, r, ROW_KE, L, mem), m.sub(row_law(t, r, ROW_REST, L, mem), g))
        push = m.fma(row_law(t, r, ROW_KD, L, mem), row_law(t, r, ROW_SPEED, L, mem), push)
        return m.div(push, m.larger(spring_slope(t, r, dt, L, mem), m.fill(real(1.0e-30))))

    @m.func
    def closure_share(t, s: int, T, L, mem) -> m.lane:
        """What the impulse of row s of the block is less than that which z has along its row, because of bounded rows."""
        x = m.fill(real(0.0))
        for r in range(T.loop_block, T.loop_rows):
            p = m.get(mem, L.coupling_impulse + T.couplings + r, t)
            x = m.fma(m.get(mem, L.loop_gram + r * (r + 1) // 2 + s, t), p, x)
        return x

    return locals()
