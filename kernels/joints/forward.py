"""Forward kinematics of joint kinds. Only this file, `kernels.joints.inverse` and `kernels.dynamics.matrices.factor` depend on kinds.

Pose: X_wc = X_wp X_p X_j(q) inverse(X_c). The motion subspace S (columns, world axes about the articulation's origin)
gives the joint's twist S qd; its apparent derivative gives the bias acceleration (Featherstone 2008, sections 3.5 and
4.4):

* axes fixed in the parent (revolute, prismatic, ball, each link of a compound chain): v_parent x S qd
* FREE, whose linear velocity u is that of the centre of mass: v_parent x S qd + (u x w, 0), because the reference point
  of the angular columns moves with u

In traces for differentiation (``m.varied``), orientations are constants with variations, see `variation`.
"""

import types

from newton_like.kernels.tree import (  # isort: skip
    AXIS, AXIS_IN_PARENT, BALL, BODY_FIXED, CHILD_POS, CHILD_QUAT_INVERSE, COMPOUND, FIXED, FREE, HALF_TURN_QUAT,
    HOME_QUAT, INERTIAL, PARENT_POS, PARENT_QUAT, PRISMATIC, REST_Q, REST_W, REVOLUTE, SCREW_PITCH, STIFFNESS, TARGET_KE,
)  # fmt: skip


def joint_dispatch(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: functions that compute poses, motion subspaces and velocities from joint coordinates."""
    real, varied = m.real, m.varied
    Vec3, Quat, Mat33, Spatial = m.Vec3, m.Quat, m.Mat33, m.Spatial

    @m.func
    def is_base(k: int, T) -> int:
        """1 for the base of a tree that floats."""
        found = 0
        if T.kind[k] == FREE and T.parent[k] >= T.bodies:
            if k == m.tree_start(m.tree_of(k, T), T):
                found = 1
        return found

    @m.func
    def set_origin(b, t, T, P, L, mem):
        """Stores the reference point of each tree, which is its root's anchor (of a floating base, the anchor on the base), and the pose
        and velocity of the world as the tree has it, from body T.bodies on."""
        zero = m.zero3()
        z = m.fill(real(0.0))
        one = m.fill(real(1.0))
        for i in range(T.trees):
            k = m.tree_start(i, T)
            o = m.joint_vec(P, b, k, PARENT_POS)
            if is_base(k, T) == 1:
                q = m.get3(mem, L.q + T.q_at[k], t)
                o = m.apply_plus(m.quat_to_matrix(m.joint_quat(P, b, k, PARENT_QUAT)), q, o)
            m.put3(mem, L.origin + 3 * i, t, o)
            w = T.bodies + i
            m.put4(mem, L.quat + 4 * w, t, m.quat(z, z, z, one))
            m.put9(mem, L.rot + 9 * w, t, m.rows(m.vec(one, z, z), m.vec(z, one, z), m.vec(z, z, one)))
            m.put3(mem, L.pos + 3 * w, t, m.neg3(o))
            m.put6(mem, L.twist + 6 * w, t, m.spatial(zero, zero))
            if varied:
                m.put3(mem, L.turn + 3 * w, t, zero)

    @m.func
    def put_pose(b, t, k: int, q: Quat, anchor: Vec3, P, L, mem):
        """Stores the pose of body k from its orientation q and the position of its anchor."""
        if varied:
            q = m.quat_detach(q)
        r = m.quat_to_matrix(q)
        if varied:
            r = m.varied_axes(t, k, r, L, mem)
            q = m.varied_quat(t, k, q, L, mem)
        x = m.sub3(anchor, m.apply(r, m.joint_vec(P, b, k, CHILD_POS)))
        m.put4(mem, L.quat + 4 * k, t, q)
        m.put9(mem, L.rot + 9 * k, t, r)
        m.put3(mem, L.pos + 3 * k, t, x)
        m.put3(mem, L.com + 3 * k, t, m.apply_plus(r, m.body_com(P, b, k), x))

    @m.func
    def put_columns(b, t, dof: int, n: int, a: Mat33, pivot: Vec3, turn: int, L, mem):
        """Stores the motion subspace of n translations along the columns of a, or, if `turn` is not 0, rotations about them through
        `pivot`."""
        for i in range(n):
            axis = m.column(a, i)
            s = m.spatial(axis, m.zero3())
            if turn != 0:
                s = m.spatial(m.cross(pivot, axis), axis)
            m.put6(mem, L.subspace + 6 * (dof + i), t, s)

    @m.func
    def slide(b, t, dof: int, qi: int, axes: Mat33, anchor: Vec3, P, L, mem) -> Vec3:
        """Returns `anchor` after the translation of one linear dof of a compound joint, and stores its motion subspace."""
        axis = m.apply(axes, m.dof_vec(P, b, dof, AXIS))
        m.put6(mem, L.subspace + 6 * dof, t, m.spatial(axis, m.zero3()))
        return m.fma3(axis, m.get(mem, qi, t), anchor)

    @m.func
    def turn_about(b, t, k: int, dof: int, qi: int, frame: Quat, pivot: Vec3, P, L, mem) -> Quat:
        """Returns the orientation `frame` after the rotation of one angular dof of a compound joint, and stores its motion subspace."""
        local = m.dof_vec(P, b, dof, AXIS)
        axes = m.quat_to_matrix(frame)
        if varied:
            frame = m.quat_detach(frame)
            axes = m.varied_axes(t, k, m.quat_to_matrix(frame), L, mem)
        axis = m.apply(axes, local)
        if varied:
            m.vary_about(t, k, axis, qi, L, mem)
        m.put6(mem, L.subspace + 6 * dof, t, m.spatial(m.cross(pivot, axis), axis))
        return m.quat_multiply(frame, m.quat_about(local, m.mul(m.fill(real(0.5)), m.get(mem, qi, t))))

    @m.func
    def place_body(b, t, k: int, T, P, L, mem):
        """Computes pose, centre of mass, motion subspace and twist of body k from those of its parent."""
        p = T.parent[k]
        kind = T.kind[k]
        dof = T.dof_at[k]
        qi = L.q + T.q_at[k]
        parent_quat = m.get4(mem, L.quat + 4 * p, t)
        parent_rot = m.get9(mem, L.rot + 9 * p, t)
        anchor = m.apply_plus(parent_rot, m.joint_vec(P, b, k, PARENT_POS), m.get3(mem, L.pos + 3 * p, t))
        if varied:
            parent_quat = m.quat_detach(parent_quat)
            m.vary_with_parent(t, k, p, L, mem)
        if kind == FIXED:
            put_pose(b, t, k, m.quat_multiply(parent_quat, m.joint_quat(P, b, k, HOME_QUAT)), anchor, P, L, mem)
        if kind == REVOLUTE:
            half = m.mul(m.fill(real(0.5)), m.get(mem, qi, t))
            c = m.cos(half)
            s = m.sin(half)
            home = m.joint_quat(P, b, k, HOME_QUAT)
            turn = m.dof_quat(P, b, dof, HALF_TURN_QUAT)
            turned = m.quat(
                m.fma(turn.x, s, m.mul(home.x, c)),
                m.fma(turn.y, s, m.mul(home.y, c)),
                m.fma(turn.z, s, m.mul(home.z, c)),
                m.fma(turn.w, s, m.mul(home.w, c)),
            )
            axis = m.apply(parent_rot, m.dof_vec(P, b, dof, AXIS_IN_PARENT))
            m.put6(mem, L.subspace + 6 * dof, t, m.spatial(m.cross(anchor, axis), axis))
            if varied:
                m.vary_about(t, k, axis, qi, L, mem)
            put_pose(b, t, k, m.quat_multiply(parent_quat, turned), anchor, P, L, mem)
        if kind == PRISMATIC:
            axis = m.apply(parent_rot, m.dof_vec(P, b, dof, AXIS_IN_PARENT))
            m.put6(mem, L.subspace + 6 * dof, t, m.spatial(axis, m.zero3()))
            anchor = m.fma3(axis, m.get(mem, qi, t), anchor)
            put_pose(b, t, k, m.quat_multiply(parent_quat, m.joint_quat(P, b, k, HOME_QUAT)), anchor, P, L, mem)
        if kind == BALL:
            frame = m.quat_multiply(parent_quat, m.joint_quat(P, b, k, PARENT_QUAT))
            axes = m.quat_to_matrix(frame)
            if varied:
                axes = m.varied_axes(t, k, axes, L, mem)
            put_columns(b, t, dof, 3, axes, anchor, 1, L, mem)
            turned = m.quat_multiply(frame, m.quat_normalize(m.get4(mem, qi, t)))
            if varied:
                m.vary_with(t, k, turned, L, mem)
            put_pose(b, t, k, m.quat_multiply(turned, m.joint_quat(P, b, k, CHILD_QUAT_INVERSE)), anchor, P, L, mem)
        if kind == FREE:
            frame = m.quat_multiply(parent_quat, m.joint_quat(P, b, k, PARENT_QUAT))
            axes = m.quat_to_matrix(frame)
            if varied:
                axes = m.varied_axes(t, k, axes, L, mem)
            anchor = m.apply_plus(axes, m.get3(mem, qi, t), anchor)
            if is_base(k, T) == 1:
                # this anchor is the reference point: zero without rounding errors
                anchor = m.zero3()
            turned = m.quat_multiply(frame, m.quat_normalize(m.get4(mem, qi + 3, t)))
            if varied:
                m.vary_with(t, k, turned, L, mem)
            put_pose(b, t, k, m.quat_multiply(turned, m.joint_quat(P, b, k, CHILD_QUAT_INVERSE)), anchor, P, L, mem)
            put_columns(b, t, dof, 3, axes, anchor, 0, L, mem)
            put_columns(b, t, dof + 3, 3, axes, m.get3(mem, L.com + 3 * k, t), 1, L, mem)
        if kind == COMPOUND:
            turned = m.quat_multiply(parent_quat, m.joint_quat(P, b, k, PARENT_QUAT))
            axes = m.quat_to_matrix(turned)
            if varied:
                axes = m.varied_axes(t, k, axes, L, mem)
            # unrolled, at most three of each, so that compilers keep the frame in registers
            if T.linear[k] > 0:
                anchor = slide(b, t, dof, qi, axes, anchor, P, L, mem)
            if T.linear[k] > 1:
                anchor = slide(b, t, dof + 1, qi + 1, axes, anchor, P, L, mem)
            if T.linear[k] > 2:
                anchor = slide(b, t, dof + 2, qi + 2, axes, anchor, P, L, mem)
            at = T.linear[k]
            if T.angular[k] > 0:
                turned = turn_about(b, t, k, dof + at, qi + at, turned, anchor, P, L, mem)
            if T.angular[k] > 1:
                turned = turn_about(b, t, k, dof + at + 1, qi + at + 1, turned, anchor, P, L, mem)
            if T.angular[k] > 2:
                turned = turn_about(b, t, k, dof + at + 2, qi + at + 2, turned, anchor, P, L, mem)
            put_pose(b, t, k, m.quat_multiply(turned, m.joint_quat(P, b, k, CHILD_QUAT_INVERSE)), anchor, P, L, mem)
        v = m.get6(mem, L.twist + 6 * p, t)
        for i in range(T.linear[k] + T.angular[k]):
            v = m.fma6(m.get6(mem, L.subspace + 6 * (dof + i), t), m.get(mem, L.v + dof + i, t), v)
        m.put6(mem, L.twist + 6 * k, t, v)

    @m.func
    def add_pitch(b, t, k: int, T, P, L, mem):
        """Moves body k along the axis of a revolute joint, by its pitch for each radian. Only robots of the SDK have a pitch."""
        if T.kind[k] == REVOLUTE:
            pitch = m.joint_param(P, b, k, SCREW_PITCH)
            at = L.subspace + 6 * T.dof_at[k]
            axis = m.get3(mem, at + 3, t)
            x = m.mul(pitch, m.get(mem, L.q + T.q_at[k], t))
            m.put3(mem, L.pos + 3 * k, t, m.fma3(axis, x, m.get3(mem, L.pos + 3 * k, t)))
            m.put3(mem, L.com + 3 * k, t, m.fma3(axis, x, m.get3(mem, L.com + 3 * k, t)))
            m.put3(mem, at, t, m.fma3(axis, pitch, m.get3(mem, at, t)))

    @m.func
    def joint_twist(t, first: int, n: int, vel: int, L, mem) -> Spatial:
        """S qd of the dofs first .. first + n - 1, with the velocities at `vel`."""
        v = m.spatial(m.zero3(), m.zero3())
        for i in range(n):
            v = m.fma6(m.get6(mem, L.subspace + 6 * (first + i), t), m.get(mem, vel + first + i, t), v)
        return v

    @m.func
    def move_body(t, k: int, vel: int, T, L, mem):
        """Computes the twist of body k for the velocities at `vel`; its pose and subspace must be known."""
        v = joint_twist(t, T.dof_at[k], T.linear[k] + T.angular[k], vel, L, mem)
        m.put6(mem, L.twist + 6 * k, t, m.add6(m.get6(mem, L.twist + 6 * T.parent[k], t), v))

    @m.func
    def joint_drift(t, k: int, vel: int, T, L, mem) -> Spatial:
        """The bias acceleration of joint k: the acceleration of its body relative to its parent at constant qd."""
        kind = T.kind[k]
        dof = T.dof_at[k]
        v = m.get6(mem, L.twist + 6 * T.parent[k], t)
        a = m.spatial(m.zero3(), m.zero3())
        if kind == COMPOUND:
            for i in range(T.linear[k] + T.angular[k]):
                move = joint_twist(t, dof + i, 1, vel, L, mem)
                a = m.add6(a, m.cross_motion(v, move))
                v = m.add6(v, move)
        else:
            move = joint_twist(t, dof, T.linear[k] + T.angular[k], vel, L, mem)
            a = m.cross_motion(v, move)
            # the reference point of a free body's rotation moves, unless it is fixed to the world or to the body
            if kind == FREE and (k > 0 or T.base_repr < INERTIAL):
                u = joint_twist(t, dof, 3, vel, L, mem)
                a = m.spatial(m.cross_plus(u.v, move.w, a.v), a.w)
        return a

    @m.func
    def subspace_rates(t, out: int, T, L, mem):
        """Stores, six numbers a dof at `out`, the time derivatives of the columns of the motion subspaces at the velocities L.v, in world
        axes about a point at rest. The sum over a joint's dofs of column rate times velocity is its `joint_drift`."""
        for k in range(T.bodies):
            kind = T.kind[k]
            dof = T.dof_at[k]
            n = T.linear[k] + T.angular[k]
            # the columns are fixed to the parent, or to the body if the velocity of a floating base is along its own axes
            v = m.get6(mem, L.twist + 6 * T.parent[k], t)
            if is_base(k, T) == 1 and T.base_repr == BODY_FIXED:
                v = m.get6(mem, L.twist, t)
            for i in range(n):
                s = m.get6(mem, L.subspace + 6 * (dof + i), t)
                m.put6(mem, out + 6 * (dof + i), t, m.cross_motion(v, s))
                if kind == COMPOUND:
                    v = m.fma6(s, m.get(mem, L.v + dof + i, t), v)
            # the reference point of a free body's rotation moves, see joint_drift
            if kind == FREE and (k > 0 or T.base_repr < INERTIAL):
                u = joint_twist(t, dof, 3, L.v, L, mem)
                for i in range(3):
                    at = 6 * (dof + 3 + i)
                    s = m.get6(mem, L.subspace + at, t)
                    d = m.get6(mem, out + at, t)
                    m.put6(mem, out + at, t, m.spatial(m.cross_plus(u.v, s.w, d.v), d.w))

    @m.func
    def rotation_error(t, at: int, goal: Quat, mem) -> Vec3:
        """The rotation vector, in the parent anchor frame, from the orientation at `at` to `goal`."""
        return m.quat_log(m.quat_multiply(goal, m.quat_conjugate(m.quat_normalize(m.get4(mem, at, t)))))

    @m.func
    def joint_errors(b, t, k: int, T, P, L, mem):
        """error <- targets minus coordinates of joint k, strain <- coordinates minus rest values, by dof."""
        kind = T.kind[k]
        dof = T.dof_at[k]
        at = T.q_at[k]
        if kind == BALL:
            rest = m.quat(
                m.gain(P, b, dof, REST_Q),
                m.gain(P, b, dof + 1, REST_Q),
                m.gain(P, b, dof + 2, REST_Q),
                m.gain(P, b, dof, REST_W),
            )
            goal = m.quat_normalize(m.get4(mem, L.target_q + at, t))
            m.put3(mem, L.error + dof, t, rotation_error(t, L.q + at, goal, mem))
            m.put3(mem, L.strain + dof, t, m.neg3(rotation_error(t, L.q + at, rest, mem)))
        elif kind == FREE:
            for i in range(2):
                m.put3(mem, L.error + dof + 3 * i, t, m.zero3())
                m.put3(mem, L.strain + dof + 3 * i, t, m.zero3())
        else:
            for i in range(T.linear[k] + T.angular[k]):
                q = m.get(mem, L.q + at + i, t)
                m.put(mem, L.error + dof + i, t, m.sub(m.get(mem, L.target_q + at + i, t), q))
                m.put(mem, L.strain + dof + i, t, m.sub(q, m.gain(P, b, dof + i, REST_Q)))

    @m.func
    def child_com(b, k: int, P) -> Vec3:
        """The centre of mass of body k in the child anchor frame of its joint: inverse(X_c) com."""
        c = m.sub3(m.body_com(P, b, k), m.joint_vec(P, b, k, CHILD_POS))
        return m.apply(m.quat_to_matrix(m.joint_quat(P, b, k, CHILD_QUAT_INVERSE)), c)

    @m.func
    def centre_from(b, k: int, anchor: Vec3, q: Quat, P) -> Vec3:
        """The centre of mass of body k in the parent anchor frame, for the pose of the child's anchor."""
        return m.apply_plus(m.quat_to_matrix(q), child_com(b, k, P), anchor)

    @m.func
    def free_errors(b, t, k: int, T, P, L, mem):
        """`joint_errors` for a FREE joint that has a spring or a drive of position in some world: displacements of the centre of mass and
        rotation vectors."""
        if T.kind[k] == FREE:
            dof = T.dof_at[k]
            zero = m.fill(real(0.0))
            acts = zero
            for i in range(6):
                acts = m.add(acts, m.add(m.gain(P, b, dof + i, TARGET_KE), m.gain(P, b, dof + i, STIFFNESS)))
            if m.any_lt(zero, acts):
                at = T.q_at[k]
                turn = m.quat_normalize(m.get4(mem, L.q + at + 3, t))
                here = centre_from(b, k, m.get3(mem, L.q + at, t), turn, P)
                goal = m.quat_normalize(m.get4(mem, L.target_q + at + 3, t))
                there = centre_from(b, k, m.get3(mem, L.target_q + at, t), goal, P)
                m.put3(mem, L.error + dof, t, m.sub3(there, here))
                m.put3(mem, L.error + dof + 3, t, rotation_error(t, L.q + at + 3, goal, mem))
                anchor = m.vec(m.gain(P, b, dof, REST_Q), m.gain(P, b, dof + 1, REST_Q), m.gain(P, b, dof + 2, REST_Q))
                rest = m.quat(
                    m.gain(P, b, dof + 3, REST_Q),
                    m.gain(P, b, dof + 4, REST_Q),
                    m.gain(P, b, dof + 5, REST_Q),
                    m.gain(P, b, dof + 3, REST_W),
                )
                m.put3(mem, L.strain + dof, t, m.sub3(here, centre_from(b, k, anchor, rest, P)))
                m.put3(mem, L.strain + dof + 3, t, m.neg3(rotation_error(t, L.q + at + 3, rest, mem)))

    @m.func
    def joint_force(t, k: int, T, L, mem):
        """Rotates the force of a FREE joint, a wrench at the centre of mass, from world axes to the axes of its parent anchor."""
        if T.kind[k] == FREE:
            dof = T.dof_at[k]
            f = m.get3(mem, L.force + dof, t)
            n = m.get3(mem, L.force + dof + 3, t)
            for i in range(3):
                axis = m.get3(mem, L.subspace + 6 * (dof + i), t)
                m.put(mem, L.force + dof + i, t, m.dot(axis, f))
                m.put(mem, L.force + dof + 3 + i, t, m.dot(axis, n))

    @m.func
    def joint_wrench(t, k: int, at: int, T, L, mem):
        """The inverse of joint_force, in place for the forces at `at`."""
        if T.kind[k] == FREE:
            dof = T.dof_at[k]
            f = m.zero3()
            n = m.zero3()
            for i in range(3):
                axis = m.get3(mem, L.subspace + 6 * (dof + i), t)
                f = m.fma3(axis, m.get(mem, at + dof + i, t), f)
                n = m.fma3(axis, m.get(mem, at + dof + 3 + i, t), n)
            m.put3(mem, at + dof, t, f)
            m.put3(mem, at + dof + 3, t, n)

    @m.func
    def write_pose(t, k: int, slot: int, T, L, mem):
        """Stores at index `slot` the public pose of body k (link frame) and its velocity (of the centre of mass, and angular)."""
        v = m.get6(mem, L.twist + 6 * k, t)
        m.put3(
            mem,
            L.body_q + 7 * slot,
            t,
            m.add3(m.get3(mem, L.pos + 3 * k, t), m.get3(mem, L.origin + 3 * m.tree_of(k, T), t)),
        )
        m.put4(mem, L.body_q + 7 * slot + 3, t, m.get4(mem, L.quat + 4 * k, t))
        m.put3(mem, L.body_qd + 6 * slot, t, m.velocity_at(v, m.get3(mem, L.com + 3 * k, t)))
        m.put3(mem, L.body_qd + 6 * slot + 3, t, v.w)

    @m.func
    def rotation_at(kind: int) -> int:
        """First coordinate, and first dof, of the rotation of a joint with a quaternion; -1 for joints without a quaternion."""
        at = -1
        if kind == BALL:
            at = 0
        if kind == FREE:
            at = 3
        return at

    @m.func
    def retract_joint(b, t, k: int, scale: m.lane, step: int, to: int, T, P, L, mem):
        """Coordinates of joint k at `to` <- q moved by `scale` times the increments at `step`, one for each dof. Rotation increments are
        rotation vectors in the axes of the parent's anchor. Linear increments of a free body move its centre of mass, about which the
        body rotates."""
        kind = T.kind[k]
        move = step + T.dof_at[k]
        old = L.q + T.q_at[k]
        new = to + T.q_at[k]
        half = m.mul(m.fill(real(0.5)), scale)
        if kind == BALL:
            turn = m.quat_exp(m.scale3(m.get3(mem, move, t), half))
            m.put4(mem, new, t, m.quat_normalize(m.quat_multiply(turn, m.get4(mem, old, t))))
        elif kind == FREE:
            c = child_com(b, k, P)
            before = m.quat_normalize(m.get4(mem, old + 3, t))
            turn = m.quat_exp(m.scale3(m.get3(mem, move + 3, t), half))
            after = m.quat_normalize(m.quat_multiply(turn, before))
            x = m.fma3(m.get3(mem, move, t), scale, m.get3(mem, old, t))
            swing = m.sub3(m.apply(m.quat_to_matrix(before), c), m.apply(m.quat_to_matrix(after), c))
            m.put3(mem, new, t, m.add3(x, swing))
            m.put4(mem, new + 3, t, after)
        else:
            for i in range(T.linear[k] + T.angular[k]):
                m.put(mem, new + i, t, m.fma(m.get(mem, move + i, t), scale, m.get(mem, old + i, t)))

    @m.func
    def scale_spin(t, k: int, share: m.lane, vel: int, T, mem):
        """Multiplies the angular velocity at `vel` of joint k by `share` if it is a FREE joint."""
        if T.kind[k] == FREE:
            at = vel + T.dof_at[k] + 3
            m.put3(mem, at, t, m.scale3(m.get3(mem, at, t), share))

    @m.func
    def rotation_vector_rate(x: Vec3, w: Vec3) -> Vec3:
        """The rate of a rotation vector x at the angular velocity w, for small |x|: the inverse of the differential of the exponential
        map, w - x w / 2 + (1/12 + x^2/720 + x^4/30240) x (x w) with cross products (Hairer, Lubich and Wanner 2006, III.4)."""
        square = m.dot(x, x)
        c = m.fma(square, m.fill(real(3.306878306878307e-05)), m.fill(real(0.001388888888888889)))
        # written as decimals, because Warp evaluates quotients of constants in single precision
        c = m.fma(square, c, m.fill(real(0.08333333333333333)))
        turned = m.cross(x, w)
        return m.fma3(m.cross(x, turned), c, m.fnma3(turned, m.fill(real(0.5)), w))

    @m.func
    def increment_rate(t, k: int, step: int, vel: int, out: int, T, mem):
        """Stores at `out` the rates of the increments at `step` of joint k for its velocities at `vel`."""
        first = T.dof_at[k]
        turns = rotation_at(T.kind[k])
        m.copy(t, out + first, vel + first, T.linear[k] + T.angular[k], mem)
        if turns >= 0:
            at = first + turns
            m.put3(mem, out + at, t, rotation_vector_rate(m.get3(mem, step + at, t), m.get3(mem, vel + at, t)))

    @m.func
    def quat_rate(q: Quat, w: Vec3, gain: m.lane) -> Quat:
        """dq/dt = (w, 0) q / 2 + gain |w| (1 - |q|) q / 2; the second term pulls a quaternion back to unit length."""
        half = m.fill(real(0.5))
        one = m.fill(real(1.0))
        tiny = m.fill(real(1.0e-30))
        length = m.sqrt(m.larger(m.fma(q.x, q.x, m.fma(q.y, q.y, m.fma(q.z, q.z, m.mul(q.w, q.w)))), tiny))
        pull = m.mul(m.mul(gain, m.sqrt(m.larger(m.dot(w, w), tiny))), m.sub(one, length))
        d = m.quat_multiply(m.quat(w.x, w.y, w.z, pull), q)
        return m.quat(m.mul(half, d.x), m.mul(half, d.y), m.mul(half, d.z), m.mul(half, d.w))

    @m.func
    def coordinate_rate(b, t, k: int, gain: m.lane, out: int, T, P, L, mem):
        """Stores dq/dt of joint k at `out`, from q and v."""
        dof = L.v + T.dof_at[k]
        qi = L.q + T.q_at[k]
        to = out + T.q_at[k]
        turns = rotation_at(T.kind[k])
        if turns >= 0:
            q = m.get4(mem, qi + turns, t)
            w = m.get3(mem, dof + turns, t)
            if turns > 0:
                c = m.apply(m.quat_to_matrix(m.quat_normalize(q)), child_com(b, k, P))
                m.put3(mem, to, t, m.cross_plus(c, w, m.get3(mem, dof, t)))
            m.put4(mem, to + turns, t, quat_rate(q, w, gain))
        else:
            m.copy(t, to, dof, T.linear[k] + T.angular[k], mem)

    return locals()
