"""Poses, velocities, Jacobians with their derivatives, and accelerations of frames fixed to links.

Frame i of a program is fixed to body ``T.point_body[i]`` (-1: the world; -2: no body of this articulation, with zero results). Its offset
on the body has ``T.offset_size`` numbers: 3 for a point, 7 for a transform, 0 for the link frame.

With the motion subspace S_j of dof j and the twist V of the body, both about a point at rest, and the point p and the axes R of a
representation, column j of a Jacobian is S_j at p along R, and its time derivative

    d/dt (v + w x p) = v' + w' x p + w x p',    d/dt (R^T u) = R^T (u' - w_body x u)

where p' is the velocity of the frame's origin, or zero for the world's (Traversaro and Saccon 2019, "Multibody dynamics notation").
"""

import types

from newton_like.kernels.tree import BODY_FIXED, COM, INERTIAL


def link_kinematics_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_frame_transforms``, ``eval_frame_velocities``, ``eval_frame_jacobians``,
    ``eval_frame_jacobian_derivatives`` and ``eval_frame_accelerations``."""

    @m.func
    def frame_body(i: int, T) -> int:
        """The body of frame i; T.bodies for the world, -1 for no body."""
        k = T.point_body[i]
        body = k
        if k == -1:
            body = T.bodies
        if k < -1 or k >= T.bodies:
            body = -1
        return body

    @m.func
    def frame_place(t, i: int, k: int, T, L, mem) -> m.Vec3:
        """The origin of frame i on body k."""
        x = m.get3(mem, L.pos + 3 * k, t)
        # where offsets are points, the last frame is the world, without an offset
        if T.offset_size == 7 or (T.offset_size == 3 and i < T.points):
            x = m.apply_plus(m.get9(mem, L.rot + 9 * k, t), m.get3(mem, L.offset + T.offset_size * i, t), x)
        return x

    @m.func
    def frame_quat(t, i: int, k: int, T, L, mem) -> m.Quat:
        """The orientation of frame i on body k."""
        q = m.get4(mem, L.quat + 4 * k, t)
        if T.offset_size == 7:
            q = m.quat_multiply(q, m.quat_normalize(m.get4(mem, L.offset + 7 * i + 3, t)))
        return q

    @m.func
    def frame_axes(t, i: int, k: int, T, L, mem) -> m.Mat33:
        """The orientation of frame i on body k as a matrix."""
        r = m.get9(mem, L.rot + 9 * k, t)
        if T.offset_size == 7:
            r = m.quat_to_matrix(frame_quat(t, i, k, T, L, mem))
        return r

    @m.func
    def output_place(t, i: int, k: int, T, L, mem) -> m.Vec3:
        """The point of the representation ``T.output_repr`` of frame i on body k."""
        x = frame_place(t, i, k, T, L, mem)
        if T.output_repr == COM and k < T.bodies:
            x = m.get3(mem, L.com + 3 * k, t)
        if T.output_repr == INERTIAL:
            x = m.neg3(m.get3(mem, L.origin, t))
        return x

    @m.func
    def put_components(t, at: int, stride: int, s: m.Spatial, T, mem):
        """Stores a spatial vector, or its linear part where ``T.components`` is 3, in rows `stride` apart."""
        m.put3_apart(mem, at, stride, t, s.v)
        if T.components == 6:
            m.put3_apart(mem, at + 3 * stride, stride, t, s.w)

    @m.func
    def still(t, T, L, mem):
        """Clears the velocities, for results that depend only on coordinates."""
        m.clear(t, L.v, T.dofs, mem)

    @m.func
    def eval_frame_transforms(b, t, T, P, L, mem):
        """vector <- poses of the first T.points frames relative to frame T.points: position and, unless ``T.components`` is 3,
        quaternion."""
        still(t, T, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.components * T.points, mem)
        base = frame_body(T.points, T)
        for i in range(T.points):
            k = frame_body(i, T)
            if k >= 0 and base >= 0:
                x = m.sub3(frame_place(t, i, k, T, L, mem), frame_place(t, T.points, base, T, L, mem))
                at = L.vector + T.components * i
                m.put3(mem, at, t, m.apply_t(x, frame_axes(t, T.points, base, T, L, mem)))
                if T.components == 7:
                    q = m.quat_conjugate(frame_quat(t, T.points, base, T, L, mem))
                    m.put4(mem, at + 3, t, m.quat_multiply(q, frame_quat(t, i, k, T, L, mem)))

    @m.func
    def eval_frame_velocities(b, t, T, P, L, mem):
        """vector <- velocities of the first T.points frames relative to frame T.points."""
        m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.components * T.points, mem)
        base = frame_body(T.points, T)
        for i in range(T.points):
            k = frame_body(i, T)
            if k >= 0 and base >= 0:
                v = m.get6(mem, L.twist + 6 * k, t)
                u = m.get6(mem, L.twist + 6 * base, t)
                v = m.spatial(m.sub3(v.v, u.v), m.sub3(v.w, u.w))
                x = output_place(t, i, k, T, L, mem)
                r = frame_axes(t, T.points, base, T, L, mem)
                if T.output_repr == INERTIAL:
                    x = frame_place(t, T.points, base, T, L, mem)
                if T.output_repr == BODY_FIXED:
                    r = frame_axes(t, i, k, T, L, mem)
                if T.world_axes != 0:
                    r = m.get9(mem, L.rot + 9 * T.bodies, t)
                    if T.output_repr == INERTIAL:
                        x = m.neg3(m.get3(mem, L.origin, t))
                seen = m.twist_as(BODY_FIXED, v, x, r)
                put_components(t, L.vector + T.components * i, 1, seen, T, mem)

    @m.func
    def column_rate(kind: int, s: m.Spatial, rate: m.Spatial, v: m.Spatial, x: m.Vec3, r: m.Mat33) -> m.Spatial:
        """The time derivative of twist_as(s), for a frame on a body with the twist v."""
        u = m.velocity_at(s, x)
        du = m.velocity_at(rate, x)
        dw = rate.w
        if kind != INERTIAL:
            du = m.cross_plus(s.w, m.velocity_at(v, x), du)
        if kind == BODY_FIXED:
            du = m.cross_plus(u, v.w, du)
            dw = m.cross_plus(s.w, v.w, dw)
        return m.turned_back(kind, m.spatial(du, dw), r)

    @m.func
    def put_jacobians(t, rates: int, T, L, mem):
        """matrix <- Jacobians of the frames, or their time derivatives if `rates` is 1"""
        size = T.components * T.columns
        m.clear(t, L.matrix, size * T.points, mem)
        for i in range(T.points):
            k = frame_body(i, T)
            if k >= 0 and k < T.bodies:
                leaf = T.leaf[k]
                if leaf >= 0:
                    v = m.get6(mem, L.twist + 6 * k, t)
                    x = output_place(t, i, k, T, L, mem)
                    r = frame_axes(t, i, k, T, L, mem)
                    for d in range(T.depth[leaf] + 1):
                        dof = T.chain[T.chain_at[leaf] + d]
                        s = m.get6(mem, L.subspace + 6 * dof, t)
                        if rates == 0:
                            s = m.twist_as(T.output_repr, s, x, r)
                        else:
                            s = column_rate(T.output_repr, s, m.get6(mem, L.subspace_rate + 6 * dof, t), v, x, r)
                        put_components(t, L.matrix + size * i + dof, T.columns, s, T, mem)

    @m.func
    def eval_frame_jacobians(b, t, T, P, L, mem):
        """matrix <- Jacobians of the frames, from nu in the representation ``T.base_repr`` to ``T.output_repr``."""
        still(t, T, L, mem)
        m.prepare(b, t, T, P, L, mem)
        put_jacobians(t, 0, T, L, mem)

    @m.func
    def eval_frame_jacobian_derivatives(b, t, T, P, L, mem):
        """matrix <- time derivatives of the Jacobians of eval_frame_jacobians at the velocities v."""
        m.prepare(b, t, T, P, L, mem)
        m.subspace_rates(t, L.subspace_rate, T, L, mem)
        put_jacobians(t, 1, T, L, mem)

    @m.func
    def eval_frame_accelerations(b, t, T, P, L, mem):
        """vector <- time derivatives of the frames' velocities, for the time derivative `acceleration` of nu in ``T.base_repr``."""
        m.prepare(b, t, T, P, L, mem)
        m.body_accelerations(t, m.zero3(), T, L, mem)
        m.clear(t, L.vector, T.components * T.points, mem)
        for i in range(T.points):
            k = frame_body(i, T)
            if k >= 0 and k < T.bodies:
                v = m.get6(mem, L.twist + 6 * k, t)
                x = output_place(t, i, k, T, L, mem)
                r = frame_axes(t, i, k, T, L, mem)
                s = m.acceleration_as(T.output_repr, m.get6(mem, L.drift + 6 * k, t), v, x, r)
                put_components(t, L.vector + T.components * i, 1, s, T, mem)

    return locals()
