"""Geometric tracking control of a multirotor (T. Lee, M. Leok, N. H. McClamroch, Geometric Tracking Control of a Quadrotor UAV on SE(3),
2010), with gains per unit of mass and inertia.

    a = a_d - min(1, a_max / |e|) e                   e = K_x (x - x_d) + K_v (v - v_d)
    f = m (a - g)
    e_R = 1/2 (R_d^T R - R^T R_d)^vee                 e_W = W - R^T R_d W_d
    tau = J (-K_R e_R - K_W e_W - W x (R^T R_d W_d)) + W x J W

so that small errors of the attitude obey e'' + K_W e' + K_R e = 0. The third axis of R_d is along f, and its first one heads along the yaw.
An error of the yaw near half a turn takes the strength from the errors of roll and pitch, because of the trace in the error function; the
position controller therefore turns R_d no farther from the heading than the largest error of the yaw.
"""

import types

from newton_like.kernels.articulation.multirotor.records import (
    ACCELERATION,
    ANGLES,
    ATTITUDE,
    CENTRE,
    GAIN_ATTITUDE,
    GAIN_POSITION,
    GAIN_RATE,
    GAIN_VELOCITY,
    GRAVITY,
    MASS,
    MOMENTS,
    MOST_ACCELERATION,
    OFFSET,
    POSITION,
    RATES,
    TILT_TANGENT,
    TURN_COSINE,
    TURN_SINE,
)


def lee_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``steer``, the wrench that a controller asks for."""
    lane, real = m.lane, m.real

    @m.func
    def command_or_zero(t: int, i: int, F: m.Flight, mem: m.memory) -> lane:
        """Number i of the command; zero where a command is shorter."""
        x = m.fill(real(0.0))
        if i < F.columns:
            x = m.get(mem, F.command + i, t)
        return x

    @m.func
    def command3(t: int, i: int, F: m.Flight, mem: m.memory) -> m.Vec3:
        return m.vec(
            command_or_zero(t, i, F, mem), command_or_zero(t, i + 1, F, mem), command_or_zero(t, i + 2, F, mem)
        )

    @m.func
    def direction_or(a: m.Vec3, b: m.Vec3) -> m.Vec3:
        """The unit vector along a, or along b where a is nearly zero."""
        small = m.fill(real(1.0e-12))
        square = m.dot(a, a)
        c = m.vec(
            m.where_lt(square, small, b.x, a.x),
            m.where_lt(square, small, b.y, a.y),
            m.where_lt(square, small, b.z, a.z),
        )
        return m.scale3(c, m.rcp(m.sqrt(m.larger(m.dot(c, c), m.fill(real(1.0e-30))))))

    @m.func
    def attitude_towards(z: m.Vec3, heading: m.Vec3, r: m.Mat33) -> m.Mat33:
        """The rotation with the third axis z and the first one as near to the heading as possible. Where z is along the heading, the
        second axis is that of r."""
        y = direction_or(m.cross(z, heading), m.column(r, 1))
        x = direction_or(m.cross(y, z), m.column(r, 0))
        y = m.cross(z, x)
        return m.rows(m.vec(x.x, y.x, z.x), m.vec(x.y, y.y, z.y), m.vec(x.z, y.z, z.z))

    @m.func
    def wanted_acceleration(b: int, t: int, r: m.Mat33, v: m.Vec3, F: m.Flight, V: m.Vehicle, mem: m.memory) -> m.Vec3:
        """The commanded acceleration, less the one that errors ask for within its limit."""
        a = command3(t, 0, F, mem)
        if F.kind != ACCELERATION:
            goal = command3(t, 0, F, mem)
            a = command3(t, 4, F, mem)
            e = m.zero3()
            if F.kind == POSITION:
                x = m.apply_plus(r, m.number3(V, b, CENTRE), m.get3(mem, F.pose, t))
                e = m.times(m.number3(V, b, GAIN_POSITION), m.sub3(x, goal))
                goal = a
                a = command3(t, 7, F, mem)
            e = m.add3(e, m.times(m.number3(V, b, GAIN_VELOCITY), m.sub3(v, goal)))
            a = m.sub3(a, m.scale3(e, m.shrink(m.number(V, b, MOST_ACCELERATION), m.dot(e, e))))
        return a

    @m.func
    def upright(b: int, f: m.Vec3, F: m.Flight, V: m.Vehicle) -> m.Vec3:
        """A force within the largest tilt: its horizontal part shrinks, and it points up."""
        if F.tilted == 1:
            least = m.mul(m.fill(real(0.5)), m.number(V, b, MASS))
            z = m.larger(f.z, least)
            across = m.fma(f.x, f.x, m.mul(f.y, f.y))
            s = m.shrink(m.mul(z, m.number(V, b, TILT_TANGENT)), across)
            f = m.vec(m.mul(f.x, s), m.mul(f.y, s), z)
        return f

    @m.func
    def attitude_error(r: m.Mat33, d: m.Mat33) -> m.Vec3:
        """1/2 (d^T r - r^T d)^vee"""
        half = m.fill(real(0.5))
        e = m.vec(
            m.sub(m.dot(m.column(d, 2), m.column(r, 1)), m.dot(m.column(r, 2), m.column(d, 1))),
            m.sub(m.dot(m.column(d, 0), m.column(r, 2)), m.dot(m.column(r, 0), m.column(d, 2))),
            m.sub(m.dot(m.column(d, 1), m.column(r, 0)), m.dot(m.column(r, 1), m.column(d, 0))),
        )
        return m.scale3(e, half)

    @m.func
    def inertia_at(b: int, V: m.Vehicle) -> m.Sym3:
        a = m.number3(V, b, MOMENTS)
        c = m.number3(V, b, MOMENTS + 3)
        return m.sym(a.x, a.y, a.z, c.x, c.y, c.z)

    @m.func
    def yawed(angle: lane) -> m.Mat33:
        """The rotation about the vertical by an angle."""
        c = m.cos(angle)
        s = m.sin(angle)
        zero = m.fill(real(0.0))
        return m.rows(m.vec(c, m.neg(s), zero), m.vec(s, c, zero), m.vec(zero, zero, m.fill(real(1.0))))

    @m.func
    def turned_towards(b: int, heading: m.Vec3, goal: m.Vec3, V: m.Vehicle) -> m.Vec3:
        """The goal, or where it is farther away than the largest error of the yaw, the heading turned towards it by this angle."""
        c = m.number(V, b, TURN_COSINE)
        side = m.fnma(heading.y, goal.x, m.mul(heading.x, goal.y))
        s = m.number(V, b, TURN_SINE)
        s = m.where_lt(side, m.fill(real(0.0)), m.neg(s), s)
        near = m.fma(heading.x, goal.x, m.mul(heading.y, goal.y))
        x = m.where_lt(near, c, m.fnma(heading.y, s, m.mul(heading.x, c)), goal.x)
        y = m.where_lt(near, c, m.fma(heading.x, s, m.mul(heading.y, c)), goal.y)
        return m.vec(x, y, goal.z)

    @m.func
    def tilted_by(roll: lane, pitch: lane, yaw_x: lane, yaw_y: lane) -> m.Mat33:
        """The rotation Rz(yaw) Ry(pitch) Rx(roll), with the cosine and the sine of the yaw."""
        cr = m.cos(roll)
        sr = m.sin(roll)
        cp = m.cos(pitch)
        sp = m.sin(pitch)
        x = m.vec(m.mul(yaw_x, cp), m.mul(yaw_y, cp), m.neg(sp))
        y = m.vec(
            m.fnma(yaw_y, cr, m.mul(yaw_x, m.mul(sp, sr))), m.fma(yaw_x, cr, m.mul(yaw_y, m.mul(sp, sr))), m.mul(cp, sr)
        )
        z = m.cross(x, y)
        return m.rows(m.vec(x.x, y.x, z.x), m.vec(x.y, y.y, z.y), m.vec(x.z, y.z, z.z))

    @m.func
    def steer(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """wrench <- force and torque about the centre of mass of the vehicle, in axes of the root"""
        zero = m.fill(real(0.0))
        r = m.quat_to_matrix(m.get4(mem, F.pose + 3, t))
        w = m.apply_t(m.get3(mem, F.twist + 3, t), r)
        moments = inertia_at(b, V)
        momentum_of = m.sym_apply(moments, w)
        force = m.vec(zero, zero, m.get(mem, F.command, t))
        # the heading of the first body axis; straight up or down, that of the second axis turned by a right angle
        heading = direction_or(m.vec(r.x.x, r.y.x, zero), m.vec(r.y.y, m.neg(r.x.y), zero))
        d = r
        rate = m.zero3()
        if F.kind <= ACCELERATION:
            v = m.get3(mem, F.twist, t)
            if F.jointed == 1:
                # the velocity of the root is that of its own centre of mass
                v = m.apply_plus(r, m.cross(w, m.number3(V, b, OFFSET)), v)
            a = wanted_acceleration(b, t, r, v, F, V, mem)
            f = m.scale3(m.sub3(a, m.number3(V, b, GRAVITY)), m.number(V, b, MASS))
            turn = command_or_zero(t, 3, F, mem)
            if F.kind == POSITION:
                heading = turned_towards(b, heading, m.column(yawed(turn), 0), V)
                turn = command_or_zero(t, 10, F, mem)
            rate = m.apply_t(m.vec(zero, zero, turn), r)
            if F.full == 1:
                d = attitude_towards(m.vec(zero, zero, m.fill(real(1.0))), heading, r)
                force = m.apply_t(f, r)
            else:
                f = upright(b, f, F, V)
                d = attitude_towards(direction_or(f, m.column(r, 2)), heading, r)
                force = m.vec(zero, zero, m.dot(f, m.column(r, 2)))
        if F.kind == ATTITUDE:
            d = m.quat_to_matrix(m.quat_normalize(m.get4(mem, F.command + 1, t)))
            rate = m.apply_t(m.apply(d, command3(t, 5, F, mem)), r)
        if F.kind == ANGLES:
            d = tilted_by(m.get(mem, F.command + 1, t), m.get(mem, F.command + 2, t), heading.x, heading.y)
            rate = m.apply_t(m.vec(zero, zero, m.get(mem, F.command + 3, t)), r)
        if F.kind == RATES:
            rate = command3(t, 1, F, mem)
        a = m.neg3(m.times(m.number3(V, b, GAIN_RATE), m.sub3(w, rate)))
        if F.kind != RATES:
            a = m.sub3(a, m.times(m.number3(V, b, GAIN_ATTITUDE), attitude_error(r, d)))
            a = m.sub3(a, m.cross(w, rate))
        m.put3(mem, F.wrench, t, force)
        m.put3(mem, F.wrench + 3, t, m.sym_apply_plus(moments, a, m.cross(w, momentum_of)))

    return locals()
