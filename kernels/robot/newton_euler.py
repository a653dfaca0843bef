"""Inverse dynamics of a robot whose base link may move, in the axes of its links (Luh, Walker and Paul 1980), and Jacobians of its links.

Links have frames and inertias of their own here, those of :mod:`newton_like.robot.regrouped`: the frames let most numbers of the joints'
transforms vanish, and the inertias are regrouped, so that some of their numbers vanish, too (Khalil and Kleinfinger 1987). The inertia of
a link is given by the moments of its mass distribution about the origin of its frame: the mass, the first moment h and the matrix K of
second moments. A link with the angular velocity w gives a point at r the acceleration a + U r, with ``U = [w'] + [w][w]`` and the
acceleration a of the origin. So the force on the link is ``m a + U h``, and the moment about the origin is ``h x a + sum of r x (U r)``,
which is linear in ``U K``.
"""

import types

# The numbers of a joint: from the origin of the parent's frame to a point of the axis, in this frame; the orientation at angle 0 in the
# parent's frame; the direction of a translation, in the same frame; from that point along the axis to the origin of the link's frame; the
# angle at coordinate 0; the pitch; and the motion for each unit of the coordinate. Of a link on a fixed joint: POSITION and ROTATION of the
# frame of the link that carries it, in the link's own frame.
POSITION, ROTATION, DIRECTION, ALONG, ANGLE, PITCH, SCALE = 0, 3, 12, 15, 16, 17, 18

# The numbers of a link that moves, in the group of gains: orientation and origin of its frame in its own frame.
TURN, ORIGIN = 0, 9

# What the inverse dynamics are of: the motion; the robot at rest, with the acceleration of the base link; the same without its angular
# part.
MOVING, RESTING, LIFTED = 0, 1, 2


def newton_euler_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``robot_inverse_dynamics`` and ``walked_jacobian``."""
    real = m.real

    @m.func
    def point_accelerations(w: m.Vec3, rate: m.Vec3) -> m.Mat33:
        """U of a link with the angular velocity w and its `rate`."""
        zz = m.mul(w.z, w.z)
        x = m.neg(m.fma(w.y, w.y, zz))
        y = m.neg(m.fma(w.x, w.x, zz))
        z = m.neg(m.fma(w.x, w.x, m.mul(w.y, w.y)))
        return m.rows(
            m.vec(x, m.fma(w.x, w.y, m.neg(rate.z)), m.fma(w.x, w.z, rate.y)),
            m.vec(m.fma(w.x, w.y, rate.z), y, m.fma(w.y, w.z, m.neg(rate.x))),
            m.vec(m.fma(w.x, w.z, m.neg(rate.y)), m.fma(w.y, w.z, rate.x), z),
        )

    @m.func
    def turning_moment(u: m.Mat33, k: m.Sym3) -> m.Vec3:
        """The sum of r x (U r) over a distribution of mass with the second moments k."""
        x = m.fma(u.z.x, k.xy, m.fma(u.z.y, k.yy, m.mul(u.z.z, k.yz)))
        y = m.fma(u.x.x, k.xz, m.fma(u.x.y, k.yz, m.mul(u.x.z, k.zz)))
        z = m.fma(u.y.x, k.xx, m.fma(u.y.y, k.xy, m.mul(u.y.z, k.xz)))
        return m.vec(
            m.fnma(u.y.x, k.xz, m.fnma(u.y.y, k.yz, m.fnma(u.y.z, k.zz, x))),
            m.fnma(u.z.x, k.xx, m.fnma(u.z.y, k.xy, m.fnma(u.z.z, k.xz, y))),
            m.fnma(u.x.x, k.xy, m.fnma(u.x.y, k.yy, m.fnma(u.x.z, k.yz, z))),
        )

    @m.func
    def put_motion(b, t, k: int, w: m.Vec3, rate: m.Vec3, u: m.Mat33, a: m.Vec3, P, L, mem):
        """Stores the motion of link k, and load <- the force on it and the moment about its origin."""
        m.put3(mem, L.twist + 6 * k, t, w)
        m.put3(mem, L.twist + 6 * k + 3, t, rate)
        m.put9(mem, L.composite + 10 * k, t, u)
        m.put3(mem, L.drift + 6 * k, t, a)
        h = m.body_com(P, b, k)
        m.put3(mem, L.load + 6 * k, t, m.apply_plus(u, h, m.scale3(a, m.body_mass(P, b, k))))
        m.put3(mem, L.load + 6 * k + 3, t, m.cross_plus(h, a, turning_moment(u, m.body_inertia(P, b, k))))

    @m.func
    def gain_vec(P, b, dof: int, i: int) -> m.Vec3:
        return m.vec(m.gain(P, b, dof, i), m.gain(P, b, dof, i + 1), m.gain(P, b, dof, i + 2))

    @m.func
    def joint_rotation(b, k: int, P) -> m.Mat33:
        return m.rows(
            m.joint_vec(P, b, k, ROTATION), m.joint_vec(P, b, k, ROTATION + 3), m.joint_vec(P, b, k, ROTATION + 6)
        )

    @m.func
    def into_link(v: m.Vec3, r: m.Mat33, c: m.lane, s: m.lane) -> m.Vec3:
        """A vector of the parent's frame in the frame of a link that is turned by r, and then about its z axis."""
        x = m.apply_t(v, r)
        return m.vec(m.fma(s, x.y, m.mul(c, x.x)), m.fnma(s, x.x, m.mul(c, x.y)), x.z)

    @m.func
    def out_of_turn(v: m.Vec3, c: m.lane, s: m.lane) -> m.Vec3:
        return m.vec(m.fnma(s, v.y, m.mul(c, v.x)), m.fma(s, v.x, m.mul(c, v.y)), v.z)

    @m.func
    def joint_motion(b, t, k: int, T, P, L, mem) -> m.lane:
        """The coordinate of joint k, in radians or metres."""
        return m.mul(m.joint_param(P, b, k, SCALE), m.get(mem, L.q + T.q_at[k], t))

    @m.func
    def axis_offset(b, t, k: int, T, P, L, mem) -> m.lane:
        """How far the origin of link k is along the axis of its joint."""
        return m.fma(m.joint_param(P, b, k, PITCH), joint_motion(b, t, k, T, P, L, mem), m.joint_param(P, b, k, ALONG))

    @m.func
    def joint_angle(b, t, k: int, T, P, L, mem) -> m.lane:
        return m.fma(m.joint_param(P, b, k, SCALE), m.get(mem, L.q + T.q_at[k], t), m.joint_param(P, b, k, ANGLE))

    @m.func
    def slid(b, t, k: int, T, P, L, mem) -> m.Vec3:
        """Where the origin of link k on a prismatic joint is in the frame of its parent."""
        x = m.joint_vec(P, b, k, DIRECTION)
        return m.fma3(x, joint_motion(b, t, k, T, P, L, mem), m.joint_vec(P, b, k, POSITION))

    @m.func
    def move_turned_link(b, t, motion: int, k: int, T, P, L, mem):
        """The motion of a link on a revolute joint, from that of its parent."""
        p = T.parent[k]
        dof = T.dof_at[k]
        scale = m.joint_param(P, b, k, SCALE)
        speed = m.fill(real(0.0))
        change = speed
        if motion == MOVING:
            speed = m.mul(scale, m.get(mem, L.v + dof, t))
            change = m.mul(scale, m.get(mem, L.acceleration + dof, t))
        angle = joint_angle(b, t, k, T, P, L, mem)
        c = m.cos(angle)
        s = m.sin(angle)
        m.put(mem, L.drift + 6 * k + 3, t, c)
        m.put(mem, L.drift + 6 * k + 4, t, s)
        r = joint_rotation(b, k, P)
        on_axis = m.apply_plus(
            m.get9(mem, L.composite + 10 * p, t), m.joint_vec(P, b, k, POSITION), m.get3(mem, L.drift + 6 * p, t)
        )
        w = into_link(m.get3(mem, L.twist + 6 * p, t), r, c, s)
        rate = into_link(m.get3(mem, L.twist + 6 * p + 3, t), r, c, s)
        a = into_link(on_axis, r, c, s)
        rate = m.vec(m.fma(w.y, speed, rate.x), m.fnma(w.x, speed, rate.y), m.add(rate.z, change))
        w = m.vec(w.x, w.y, m.add(w.z, speed))
        u = point_accelerations(w, rate)
        a = m.fma3(m.column(u, 2), axis_offset(b, t, k, T, P, L, mem), a)
        # a helical joint moves the origin along the axis
        pitch = m.joint_param(P, b, k, PITCH)
        twice = m.mul(m.mul(m.fill(real(2.0)), pitch), speed)
        a = m.vec(m.fma(w.y, twice, a.x), m.fnma(w.x, twice, a.y), m.fma(pitch, change, a.z))
        put_motion(b, t, k, w, rate, u, a, P, L, mem)

    @m.func
    def move_slid_link(b, t, motion: int, k: int, T, P, L, mem):
        """The motion of a link on a prismatic joint, whose frame has the axes of its parent's, from that of its parent."""
        p = T.parent[k]
        dof = T.dof_at[k]
        x = m.joint_vec(P, b, k, DIRECTION)
        w = m.get3(mem, L.twist + 6 * p, t)
        u = m.get9(mem, L.composite + 10 * p, t)
        a = m.apply_plus(u, slid(b, t, k, T, P, L, mem), m.get3(mem, L.drift + 6 * p, t))
        if motion == MOVING:
            scale = m.joint_param(P, b, k, SCALE)
            twice = m.mul(m.mul(m.fill(real(2.0)), scale), m.get(mem, L.v + dof, t))
            a = m.cross_plus(w, m.scale3(x, twice), a)
            a = m.fma3(x, m.mul(scale, m.get(mem, L.acceleration + dof, t)), a)
        put_motion(b, t, k, w, m.get3(mem, L.twist + 6 * p + 3, t), u, a, P, L, mem)

    @m.func
    def hand_down(t, p: int, f: m.Vec3, n: m.Vec3, L, mem):
        """Adds a force and a moment to the load of link p."""
        at = L.load + 6 * p
        m.put3(mem, at, t, m.add3(m.get3(mem, at, t), f))
        m.put3(mem, at + 3, t, n)

    @m.shared
    def robot_inverse_dynamics(b, t, motion: int, T, P, L, mem):
        """matrix <- the joint forces for q, v, the accelerations at L.acceleration, and the motion of the base link; or a part of them, as
        `motion` says."""
        w = m.zero3()
        rate = m.zero3()
        a = m.get3(mem, L.base_acceleration + 3, t)
        if motion != LIFTED:
            rate = m.get3(mem, L.base_acceleration, t)
        if motion == MOVING:
            w = m.get3(mem, L.base_twist, t)
            # from the spatial acceleration to that of the origin
            a = m.cross_plus(w, m.get3(mem, L.base_twist + 3, t), a)
        put_motion(b, t, 0, w, rate, point_accelerations(w, rate), a, P, L, mem)
        # links on fixed joints have no inertia, and carry nothing
        for k in range(1, T.bodies):
            if T.angular[k] > 0:
                move_turned_link(b, t, motion, k, T, P, L, mem)
            if T.linear[k] > 0:
                move_slid_link(b, t, motion, k, T, P, L, mem)
        for i in range(1, T.bodies):
            k = T.bodies - i
            p = T.parent[k]
            f = m.get3(mem, L.load + 6 * k, t)
            n = m.get3(mem, L.load + 6 * k + 3, t)
            below = m.get3(mem, L.load + 6 * p + 3, t)
            scale = m.joint_param(P, b, k, SCALE)
            if T.angular[k] > 0:
                force = m.fma(m.joint_param(P, b, k, PITCH), f.z, n.z)
                m.put(mem, L.matrix + T.dof_at[k], t, m.mul(scale, force))
                along = axis_offset(b, t, k, T, P, L, mem)
                n = m.vec(m.fnma(along, f.y, n.x), m.fma(along, f.x, n.y), n.z)
                c = m.get(mem, L.drift + 6 * k + 3, t)
                s = m.get(mem, L.drift + 6 * k + 4, t)
                r = joint_rotation(b, k, P)
                f = m.apply(r, out_of_turn(f, c, s))
                n = m.apply_plus(r, out_of_turn(n, c, s), below)
                hand_down(t, p, f, m.cross_plus(m.joint_vec(P, b, k, POSITION), f, n), L, mem)
            if T.linear[k] > 0:
                m.put(mem, L.matrix + T.dof_at[k], t, m.mul(scale, m.dot(m.joint_vec(P, b, k, DIRECTION), f)))
                hand_down(t, p, f, m.cross_plus(slid(b, t, k, T, P, L, mem), f, m.add3(n, below)), L, mem)

    @m.func
    def has_dof(leaf: int, dof: int, T) -> int:
        """1 if the chain that ends with the dof `leaf` (-1: no chain) has `dof`."""
        found = int(0)
        if leaf >= 0:
            if T.depth[dof] <= T.depth[leaf]:
                if T.chain[T.chain_at[leaf] + T.depth[dof]] == dof:
                    found = 1
        return found

    @m.func
    def between(k: int, one: int, other: int, T) -> int:
        """1 if joint k moves link `one`, but not link `other`."""
        found = int(0)
        if T.dof_at[k + 1] > T.dof_at[k]:
            if has_dof(T.leaf[one], T.dof_at[k], T) == 1:
                found = 1 - has_dof(T.leaf[other], T.dof_at[k], T)
        return found

    @m.func
    def put_joint_column(b, t, k: int, sign: m.lane, axes: m.Mat33, x: m.Vec3, T, P, L, mem):
        """Stores the column of joint k, whose link has the given axes and origin. `sign`: of the column."""
        by = m.mul(sign, m.joint_param(P, b, k, SCALE))
        dof = T.dof_at[k]
        v = m.apply(axes, m.joint_vec(P, b, k, DIRECTION))
        w = m.zero3()
        if T.angular[k] > 0:
            w = m.column(axes, 2)
            v = m.fma3(w, m.joint_param(P, b, k, PITCH), m.cross(x, w))
        m.put3_apart(mem, L.matrix + dof, T.columns, t, m.scale3(w, by))
        m.put3_apart(mem, L.matrix + 3 * T.columns + dof, T.columns, t, m.scale3(v, by))

    @m.func
    def walk_up(b, t, k: int, sign: m.lane, T, P, L, mem):
        """Stores the column of joint k, and the pose of the parent of link k from that of the link."""
        p = T.parent[k]
        axes = m.get9(mem, L.composite + 10 * k, t)
        x = m.get3(mem, L.drift + 6 * k, t)
        put_joint_column(b, t, k, sign, axes, x, T, P, L, mem)
        offset = m.joint_vec(P, b, k, POSITION)
        if T.angular[k] > 0:
            angle = joint_angle(b, t, k, T, P, L, mem)
            c = m.cos(angle)
            s = m.sin(angle)
            r = joint_rotation(b, k, P)
            x = m.fnma3(m.column(axes, 2), axis_offset(b, t, k, T, P, L, mem), x)
            axes = m.rows(
                m.apply(r, out_of_turn(axes.x, c, s)),
                m.apply(r, out_of_turn(axes.y, c, s)),
                m.apply(r, out_of_turn(axes.z, c, s)),
            )
        else:
            offset = slid(b, t, k, T, P, L, mem)
        m.put9(mem, L.composite + 10 * p, t, axes)
        m.put3(mem, L.drift + 6 * p, t, m.sub3(x, m.apply(axes, offset)))

    @m.func
    def walk_down(b, t, k: int, sign: m.lane, T, P, L, mem):
        """Stores the pose of link k from that of its parent, and the column of joint k."""
        p = T.parent[k]
        axes = m.get9(mem, L.composite + 10 * p, t)
        x = m.get3(mem, L.drift + 6 * p, t)
        if T.angular[k] > 0:
            x = m.apply_plus(axes, m.joint_vec(P, b, k, POSITION), x)
            angle = joint_angle(b, t, k, T, P, L, mem)
            c = m.cos(angle)
            s = m.sin(angle)
            r = joint_rotation(b, k, P)
            axes = m.rows(into_link(axes.x, r, c, s), into_link(axes.y, r, c, s), into_link(axes.z, r, c, s))
            x = m.fma3(m.column(axes, 2), axis_offset(b, t, k, T, P, L, mem), x)
        else:
            x = m.apply_plus(axes, slid(b, t, k, T, P, L, mem), x)
        m.put9(mem, L.composite + 10 * k, t, axes)
        m.put3(mem, L.drift + 6 * k, t, x)
        put_joint_column(b, t, k, sign, axes, x, T, P, L, mem)

    @m.shared
    def walked_jacobian(b, t, T, P, L, mem):
        """matrix <- six rows, the Jacobian of the twist of the target link relative to the reference link, in the frame of one of them. All
        joints between the two are visited, from that one on."""
        m.clear(t, L.matrix, 6 * T.columns, mem)
        seen = T.point_body[2]
        other = T.point_body[0]
        sign = m.fill(real(-1.0))
        if seen == other:
            other = T.point_body[1]
            sign = m.fill(real(1.0))
        # the first link of the walk: that link, or the one that carries it
        k = seen
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        x = m.zero3()
        axes = m.rows(m.vec(one, zero, zero), m.vec(zero, one, zero), m.vec(zero, zero, one))
        if seen > 0:
            if T.linear[seen] + T.angular[seen] == 0:
                k = T.parent[seen]
                x = m.joint_vec(P, b, seen, POSITION)
                axes = joint_rotation(b, seen, P)
            else:
                dof = T.dof_at[seen]
                x = gain_vec(P, b, dof, ORIGIN)
                axes = m.rows(gain_vec(P, b, dof, TURN), gain_vec(P, b, dof, TURN + 3), gain_vec(P, b, dof, TURN + 6))
        m.put9(mem, L.composite + 10 * k, t, axes)
        m.put3(mem, L.drift + 6 * k, t, x)
        for i in range(1, T.bodies):
            j = T.bodies - i
            if between(j, seen, other, T) == 1:
                walk_up(b, t, j, sign, T, P, L, mem)
        for j in range(1, T.bodies):
            if between(j, other, seen, T) == 1:
                walk_down(b, t, j, m.neg(sign), T, P, L, mem)

    return locals()
