"""Rigid bodies in maximal coordinates: records, free motion and impulses.

A sub-step of length h moves a body freely by a drift with the momenta constant: the velocity v of the centre of mass, and the angular
momentum L = I w about it. The orientation turns with the angular velocity at the middle of the drift, I(R exp(h/2 w))^-1 L, which is of
second order (an explicit midpoint rule on the rotation group; Hairer, Lubich and Wanner 2006, chapter IV). Forces and constraints change
the velocities between two drifts. This is the leapfrog method, and with constraints that hold after the next drift the SHAKE method
(Ryckaert, Ciccotti and Berendsen 1977).
"""

import types

import warp as wp

# Numbers of a body, each in a row of its chunk: centre of mass, orientation, velocity, angular velocity (world axes) ...
POS, QUAT, VEL, SPIN = 0, 3, 7, 10
# ... the pose after the next drift; inverse mass, inverse inertia in world axes ...
NEXT_POS, NEXT_QUAT, INVERSE_MASS, INVERSE_INERTIA = 13, 16, 20, 21
# ... and constants of a step: inertia and inverse inertia in link axes, acceleration by gravity and external forces, external torque,
# one for bodies that forces move
BODY_INERTIA, BODY_INVERSE, PUSH, TORQUE, DYNAMIC = 27, 33, 39, 42, 45
BODY_NUMBERS = 46


def body_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``BodyRef``, and functions over bodies."""
    real, lane, ints = m.real, m.lane, m.ints

    @wp.struct
    class BodyRef:
        """Bodies of lanes: where the first row of the chunk is, the distance of rows, and the slots."""

        at: int
        stride: int
        first: int
        slot: ints

    @m.func
    def body_ref(at: int, stride: int, first: int, slot: ints) -> BodyRef:
        r = BodyRef()
        r.at = at
        r.stride = stride
        r.first = first
        r.slot = slot
        return r

    @m.func
    def body_number(B: wp.array[real], r: BodyRef, i: int) -> lane:
        return m.fetch(B, r.at + i * r.stride, r.first, r.slot)

    @m.func
    def body_put(B: wp.array[real], r: BodyRef, i: int, x: lane):
        m.deposit(B, r.at + i * r.stride, r.first, r.slot, x)

    @m.func
    def body_vec(B: wp.array[real], r: BodyRef, i: int) -> m.Vec3:
        return m.vec(body_number(B, r, i), body_number(B, r, i + 1), body_number(B, r, i + 2))

    @m.func
    def body_put_vec(B: wp.array[real], r: BodyRef, i: int, a: m.Vec3):
        body_put(B, r, i, a.x)
        body_put(B, r, i + 1, a.y)
        body_put(B, r, i + 2, a.z)

    @m.func
    def body_turn(B: wp.array[real], r: BodyRef, i: int) -> m.Quat:
        return m.quat(
            body_number(B, r, i), body_number(B, r, i + 1), body_number(B, r, i + 2), body_number(B, r, i + 3)
        )

    @m.func
    def body_put_turn(B: wp.array[real], r: BodyRef, i: int, q: m.Quat):
        body_put(B, r, i, q.x)
        body_put(B, r, i + 1, q.y)
        body_put(B, r, i + 2, q.z)
        body_put(B, r, i + 3, q.w)

    @m.func
    def body_sym(B: wp.array[real], r: BodyRef, i: int) -> m.Sym3:
        a = body_vec(B, r, i)
        c = body_vec(B, r, i + 3)
        return m.sym(a.x, a.y, a.z, c.x, c.y, c.z)

    @m.func
    def turned_by(q: m.Quat, w: m.Vec3, h: lane) -> m.Quat:
        """The orientation q after a turn with the angular velocity w for the time h."""
        return m.quat_normalize(m.quat_multiply(m.quat_exp(m.scale3(w, m.mul(m.fill(real(0.5)), h))), q))

    @m.func
    def body_drift(B: wp.array[real], r: BodyRef, h: lane):
        """Moves bodies freely for the time h. Kinematic bodies keep their velocities."""
        v = body_vec(B, r, VEL)
        w = body_vec(B, r, SPIN)
        q = body_turn(B, r, QUAT)
        dynamic = body_number(B, r, DYNAMIC)
        inverse = body_sym(B, r, BODY_INVERSE)
        body_put_vec(B, r, POS, m.fma3(v, h, body_vec(B, r, POS)))
        momentum = m.turned_apply(body_sym(B, r, BODY_INERTIA), m.quat_to_matrix(q), w)
        half = turned_by(q, w, m.mul(m.fill(real(0.5)), h))
        middle = m.turned_apply(inverse, m.quat_to_matrix(half), momentum)
        middle = m.fma3(m.sub3(middle, w), dynamic, w)
        q = turned_by(q, middle, h)
        body_put_turn(B, r, QUAT, q)
        after = m.turned_apply(inverse, m.quat_to_matrix(q), momentum)
        body_put_vec(B, r, SPIN, m.fma3(m.sub3(after, w), dynamic, w))

    @m.func
    def body_swing(B: wp.array[real], r: BodyRef, q: m.Quat, w: m.Vec3) -> m.Vec3:
        """The angular acceleration of free motion (Euler's equation)."""
        momentum = m.turned_apply(body_sym(B, r, BODY_INERTIA), m.quat_to_matrix(q), w)
        return m.sym_apply(body_sym(B, r, INVERSE_INERTIA), m.cross(momentum, w))

    @m.func
    def body_open(B: wp.array[real], r: BodyRef):
        """Computes the inverse inertia in world axes."""
        inverse = m.sym_rotate(body_sym(B, r, BODY_INVERSE), m.quat_to_matrix(body_turn(B, r, QUAT)))
        body_put_vec(B, r, INVERSE_INERTIA, m.vec(inverse.xx, inverse.yy, inverse.zz))
        body_put_vec(B, r, INVERSE_INERTIA + 3, m.vec(inverse.xy, inverse.xz, inverse.yz))

    @m.func
    def body_kick(B: wp.array[real], r: BodyRef, h: lane):
        """Adds the forces of a sub-step, and computes the pose after the next drift."""
        v = m.fma3(body_vec(B, r, PUSH), h, body_vec(B, r, VEL))
        turn = m.sym_apply(body_sym(B, r, INVERSE_INERTIA), body_vec(B, r, TORQUE))
        w = m.fma3(turn, h, body_vec(B, r, SPIN))
        body_put_vec(B, r, VEL, v)
        body_put_vec(B, r, SPIN, w)
        body_put_vec(B, r, NEXT_POS, m.fma3(v, h, body_vec(B, r, POS)))
        body_put_turn(B, r, NEXT_QUAT, turned_by(body_turn(B, r, QUAT), w, h))

    @m.func
    def body_push(B: wp.array[real], r: BodyRef, p: m.Vec3, turn: m.Vec3, h: lane, ahead: int):
        """Adds an impulse p and an angular impulse about the centre of mass. If `ahead` is not 0, the pose after the next drift follows."""
        dv = m.scale3(p, body_number(B, r, INVERSE_MASS))
        dw = m.sym_apply(body_sym(B, r, INVERSE_INERTIA), turn)
        body_put_vec(B, r, VEL, m.add3(body_vec(B, r, VEL), dv))
        body_put_vec(B, r, SPIN, m.add3(body_vec(B, r, SPIN), dw))
        if ahead != 0:
            body_put_vec(B, r, NEXT_POS, m.fma3(dv, h, body_vec(B, r, NEXT_POS)))
            q = body_turn(B, r, NEXT_QUAT)
            half = m.scale3(dw, m.mul(m.fill(real(0.5)), h))
            change = m.quat_multiply(m.quat(half.x, half.y, half.z, m.fill(real(1.0))), q)
            new = m.quat_normalize(change)
            # bodies that no force moves keep their bits, however many constraints hold them, in whatever order
            zero, mass = m.fill(real(0.0)), body_number(B, r, INVERSE_MASS)
            x, y = m.where_lt(zero, mass, new.x, q.x), m.where_lt(zero, mass, new.y, q.y)
            z, w = m.where_lt(zero, mass, new.z, q.z), m.where_lt(zero, mass, new.w, q.w)
            body_put_turn(B, r, NEXT_QUAT, m.quat(x, y, z, w))

    return {name: value for name, value in locals().items() if name not in ("m", "real", "lane", "ints")}
