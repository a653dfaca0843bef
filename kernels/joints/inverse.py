"""Inverse kinematics of joint kinds: coordinates and velocities of a joint from the poses and velocities of its bodies."""

import types

from newton_like.kernels.tree import AXIS, BALL, CHILD_POS, CHILD_QUAT_INVERSE, FIXED, FREE, PARENT_POS, PARENT_QUAT


def inverse_joint_dispatch(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``open_world``, ``open_body`` and ``read_joint``.

    Here ``pos`` is the position of the link frame in the world, ``com`` the centre of mass relative to it in world axes, and
    ``twist`` the public velocity: of the centre of mass, and angular. Differences of positions are computed first, so that
    far from the world's origin the only loss of precision is that of ``body_q`` itself.
    """
    real = m.real
    Vec3, Quat, Mat33 = m.Vec3, m.Quat, m.Mat33

    @m.func
    def open_world(t, T, L, mem):
        """Stores the world as a body at rest at the origin, body T.bodies."""
        z = m.fill(real(0.0))
        one = m.fill(real(1.0))
        w = T.bodies
        m.put4(mem, L.quat + 4 * w, t, m.quat(z, z, z, one))
        m.put9(mem, L.rot + 9 * w, t, m.rows(m.vec(one, z, z), m.vec(z, one, z), m.vec(z, z, one)))
        m.put3(mem, L.pos + 3 * w, t, m.zero3())
        m.put3(mem, L.com + 3 * w, t, m.zero3())
        m.put6(mem, L.twist + 6 * w, t, m.spatial(m.zero3(), m.zero3()))

    @m.func
    def open_body(b, t, k: int, slot: int, P, L, mem):
        """Stores orientation, position, centre of mass and velocity of body k from its public pose and velocity at index `slot`."""
        q = m.quat_normalize(m.get4(mem, L.body_q + 7 * slot + 3, t))
        r = m.quat_to_matrix(q)
        m.put4(mem, L.quat + 4 * k, t, q)
        m.put9(mem, L.rot + 9 * k, t, r)
        m.put3(mem, L.pos + 3 * k, t, m.get3(mem, L.body_q + 7 * slot, t))
        m.put3(mem, L.com + 3 * k, t, m.apply(r, m.body_com(P, b, k)))
        m.put6(mem, L.twist + 6 * k, t, m.get6(mem, L.body_qd + 6 * slot, t))

    @m.func
    def wrap(a: m.lane) -> m.lane:
        """Wraps an angle between -2 pi and 2 pi to (-pi, pi]."""
        pi = m.fill(real(3.141592653589793))
        turn = m.fill(real(6.283185307179586))
        down = m.where_lt(pi, a, m.sub(a, turn), a)
        return m.where_lt(m.neg(pi), a, down, m.add(a, turn))

    @m.func
    def length2(a: m.lane, b: m.lane) -> m.lane:
        return m.sqrt(m.larger(m.fma(a, a, m.mul(b, b)), m.fill(real(1.0e-30))))

    @m.func
    def angle_about(q: Quat, axis: Vec3) -> m.lane:
        """The angle in (-pi, pi] of the rotation about `axis` closest to q."""
        x = m.dot(m.vec(q.x, q.y, q.z), axis)
        return wrap(m.mul(m.fill(real(2.0)), m.atan2(x, q.w)))

    @m.func
    def read_slides(b, t, dof: int, qi: int, n: int, x: Vec3, v: Vec3, P, L, mem):
        """Stores the coordinates of x and v along n > 0 axes, which may be oblique, by their dual basis."""
        a0 = m.dof_vec(P, b, dof, AXIS)
        if n == 1:
            m.put(mem, qi, t, m.dot(x, a0))
            m.put(mem, L.v + dof, t, m.dot(v, a0))
        else:
            a1 = m.dof_vec(P, b, dof + 1, AXIS)
            normal = m.cross(a0, a1)
            a2 = normal
            if n == 3:
                a2 = m.dof_vec(P, b, dof + 2, AXIS)
            inverse = m.rcp(m.dot(normal, a2))
            d0 = m.scale3(m.cross(a1, a2), inverse)
            d1 = m.scale3(m.cross(a2, a0), inverse)
            m.put(mem, qi, t, m.dot(x, d0))
            m.put(mem, L.v + dof, t, m.dot(v, d0))
            m.put(mem, qi + 1, t, m.dot(x, d1))
            m.put(mem, L.v + dof + 1, t, m.dot(v, d1))
            if n == 3:
                m.put(mem, qi + 2, t, m.mul(inverse, m.dot(x, normal)))
                m.put(mem, L.v + dof + 2, t, m.mul(inverse, m.dot(v, normal)))

    @m.func
    def read_two_turns(b, t, dof: int, qi: int, q: Quat, w: Vec3, P, L, mem):
        """Stores the angles in (-pi, pi] of q, a rotation about a0 and then about the rotated a1, by atan2 of entries of the rotation
        matrix."""
        two = m.fill(real(2.0))
        a0 = m.dof_vec(P, b, dof, AXIS)
        a1 = m.dof_vec(P, b, dof + 1, AXIS)
        a2 = m.cross(a0, a1)
        v = m.vec(q.x, q.y, q.z)
        x = m.dot(v, a0)
        y = m.dot(v, a1)
        z = m.dot(v, a2)
        # ww + yy - xx - zz and ww + xx - yy - zz
        even = m.fnma(z, z, m.mul(q.w, q.w))
        odd = m.fnma(x, x, m.mul(y, y))
        q0 = m.atan2(m.mul(two, m.fma(y, z, m.mul(x, q.w))), m.add(even, odd))
        m.put(mem, qi, t, q0)
        m.put(mem, qi + 1, t, m.atan2(m.mul(two, m.fma(x, z, m.mul(y, q.w))), m.sub(even, odd)))
        m.put(mem, L.v + dof, t, m.dot(w, a0))
        m.put(mem, L.v + dof + 1, t, m.dot(w, m.fma3(a2, m.sin(q0), m.scale3(a1, m.cos(q0)))))

    @m.func
    def read_three_turns(b, t, dof: int, qi: int, q: Quat, w: Vec3, P, L, mem):
        """Stores the angles of q, rotations about a0, the rotated a1 and the rotated a2; the middle angle is in [-pi/2, pi/2].

        Half sum and half difference of the outer angles are angles in two planes of the quaternion (Bernardes and
        Viollet 2022). If the middle angle is +-pi/2, the pose depends on one of them only, and the other is set to zero.
        """
        one = m.fill(real(1.0))
        a0 = m.dof_vec(P, b, dof, AXIS)
        a1 = m.dof_vec(P, b, dof + 1, AXIS)
        e2 = m.cross(a0, a1)
        # the last angle is negated for a left-handed triple
        hand = m.where_lt(m.dot(e2, m.dof_vec(P, b, dof + 2, AXIS)), m.fill(real(0.0)), m.neg(one), one)
        v = m.vec(q.x, q.y, q.z)
        x = m.dot(v, a0)
        y = m.dot(v, a1)
        z = m.dot(v, e2)
        plus = length2(m.add(x, z), m.add(q.w, y))
        minus = length2(m.sub(x, z), m.sub(q.w, y))
        half_sum = m.atan2(m.add(x, z), m.add(q.w, y))
        half_difference = m.atan2(m.sub(x, z), m.sub(q.w, y))
        q0 = wrap(m.add(half_sum, half_difference))
        m.put(mem, qi, t, q0)
        m.put(mem, qi + 1, t, m.mul(m.fill(real(2.0)), m.atan2(m.sub(plus, minus), m.add(plus, minus))))
        m.put(mem, qi + 2, t, m.mul(hand, wrap(m.sub(half_sum, half_difference))))
        c = m.cos(q0)
        s = m.sin(q0)
        cos1 = m.larger(m.mul(plus, minus), m.fill(real(1.0e-6)))
        sin1 = m.mul(m.fill(real(0.5)), m.fnma(minus, minus, m.mul(plus, plus)))
        rate = m.div(m.dot(w, m.fnma3(a1, s, m.scale3(e2, c))), cos1)
        m.put(mem, L.v + dof, t, m.fnma(sin1, rate, m.dot(w, a0)))
        m.put(mem, L.v + dof + 1, t, m.dot(w, m.fma3(e2, s, m.scale3(a1, c))))
        m.put(mem, L.v + dof + 2, t, m.mul(hand, rate))

    @m.func
    def anchor_frame(b, t, k: int, T, P, L, mem) -> Quat:
        """The orientation of the anchor of joint k in its parent."""
        return m.quat_multiply(m.get4(mem, L.quat + 4 * T.parent[k], t), m.joint_quat(P, b, k, PARENT_QUAT))

    @m.func
    def child_arm(b, t, k: int, P, L, mem) -> Vec3:
        """The vector from the origin of body k to the anchor of its joint, in world axes."""
        return m.apply(m.get9(mem, L.rot + 9 * k, t), m.joint_vec(P, b, k, CHILD_POS))

    @m.func
    def joint_shift(b, t, k: int, frame: Quat, T, P, L, mem) -> Vec3:
        """The vector from the parent anchor of joint k to its child anchor, in the axes `frame` of the parent anchor."""
        p = T.parent[k]
        at_parent = m.apply(m.get9(mem, L.rot + 9 * p, t), m.joint_vec(P, b, k, PARENT_POS))
        apart = m.sub3(m.get3(mem, L.pos + 3 * k, t), m.get3(mem, L.pos + 3 * p, t))
        x = m.add3(m.sub3(apart, at_parent), child_arm(b, t, k, P, L, mem))
        return m.apply_t(x, m.quat_to_matrix(frame))

    @m.func
    def joint_turn(b, t, k: int, frame: Quat, P, L, mem) -> Quat:
        """The orientation of the child anchor of joint k relative to its parent anchor, whose orientation is `frame`."""
        child = m.quat_multiply(
            m.get4(mem, L.quat + 4 * k, t), m.quat_conjugate(m.joint_quat(P, b, k, CHILD_QUAT_INVERSE))
        )
        return m.quat_multiply(m.quat_conjugate(frame), child)

    @m.func
    def read_joint(b, t, k: int, T, P, L, mem):
        """Stores the coordinates and velocities of joint k that best match the pose and velocity of body k relative to its parent."""
        kind = T.kind[k]
        p = T.parent[k]
        dof = T.dof_at[k]
        qi = L.q + T.q_at[k]
        parent = m.get6(mem, L.twist + 6 * p, t)
        child = m.get6(mem, L.twist + 6 * k, t)
        parent_com = m.get3(mem, L.com + 3 * p, t)
        child_com = m.get3(mem, L.com + 3 * k, t)
        frame = anchor_frame(b, t, k, T, P, L, mem)
        axes = m.quat_to_matrix(frame)
        at_child = child_arm(b, t, k, P, L, mem)
        apart = m.sub3(m.get3(mem, L.pos + 3 * k, t), m.get3(mem, L.pos + 3 * p, t))
        x = joint_shift(b, t, k, frame, T, P, L, mem)
        turn = joint_turn(b, t, k, frame, P, L, mem)
        w = m.apply_t(m.sub3(child.w, parent.w), axes)
        if kind == BALL:
            m.put4(mem, qi, t, m.quat_normalize(turn))
            m.put3(mem, L.v + dof, t, w)
        elif kind == FREE:
            carried = m.velocity_at(parent, m.sub3(m.add3(apart, child_com), parent_com))
            m.put3(mem, qi, t, x)
            m.put4(mem, qi + 3, t, m.quat_normalize(turn))
            m.put3(mem, L.v + dof, t, m.apply_t(m.sub3(child.v, carried), axes))
            m.put3(mem, L.v + dof + 3, t, w)
        elif kind != FIXED:
            slides = T.linear[k]
            turns = T.angular[k]
            if slides > 0:
                carried = m.velocity_at(parent, m.sub3(m.add3(apart, at_child), parent_com))
                v = m.sub3(m.velocity_at(child, m.sub3(at_child, child_com)), carried)
                read_slides(b, t, dof, qi, slides, x, m.apply_t(v, axes), P, L, mem)
            dof = dof + slides
            qi = qi + slides
            if turns == 1:
                axis = m.dof_vec(P, b, dof, AXIS)
                m.put(mem, qi, t, angle_about(turn, axis))
                m.put(mem, L.v + dof, t, m.dot(w, axis))
            if turns == 2:
                read_two_turns(b, t, dof, qi, turn, w, P, L, mem)
            if turns == 3:
                read_three_turns(b, t, dof, qi, turn, w, P, L, mem)

    return locals()
