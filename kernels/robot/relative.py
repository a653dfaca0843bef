"""Poses, Jacobians and velocities of one link of a robot with respect to another.

Frames of links are those of their bodies. ``T.point_body`` has the target link, the reference link, and the link whose frame a Jacobian or
a velocity is expressed in. Twists have the angular part first, as the robot SDK has them (Lynch and Park 2017, "Modern Robotics").
"""

import types

from newton_like.kernels.tree import MOTION_SCALE


def relative_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``robot_frames``, ``scaled_frames``, ``relative_pose``, ``relative_jacobian`` and ``relative_velocity``."""
    real = m.real

    @m.func
    def robot_frames(b, t, T, P, L, mem):
        """Poses, centres of mass and motion subspaces of all links in the frame of the base link, from q."""
        m.set_origin(b, t, T, P, L, mem)
        for k in range(T.bodies):
            m.place_body(b, t, k, T, P, L, mem)
            m.add_pitch(b, t, k, T, P, L, mem)

    @m.func
    def scaled_frames(b, t, T, P, L, mem):
        """The same for coordinates whose units are not radians or metres; motion subspaces are those of the coordinates, and q is in
        radians and metres then."""
        for k in range(T.bodies):
            if T.dof_at[k + 1] > T.dof_at[k]:
                at = L.q + T.q_at[k]
                m.put(mem, at, t, m.mul(m.joint_param(P, b, k, MOTION_SCALE), m.get(mem, at, t)))
        robot_frames(b, t, T, P, L, mem)
        for k in range(T.bodies):
            if T.dof_at[k + 1] > T.dof_at[k]:
                at = L.subspace + 6 * T.dof_at[k]
                scale = m.joint_param(P, b, k, MOTION_SCALE)
                s = m.get6(mem, at, t)
                m.put6(mem, at, t, m.spatial(m.scale3(s.v, scale), m.scale3(s.w, scale)))

    @m.func
    def transposed(r: m.Mat33) -> m.Mat33:
        """The transpose of r."""
        return m.rows(m.column(r, 0), m.column(r, 1), m.column(r, 2))

    @m.func
    def turned_axes(r: m.Mat33, a: m.Mat33) -> m.Mat33:
        """transpose(r) a"""
        return m.rows(m.apply_t(m.column(r, 0), a), m.apply_t(m.column(r, 1), a), m.apply_t(m.column(r, 2), a))

    @m.func
    def put_row4(mem: m.memory, i: int, t: int, a: m.Vec3, x: m.lane):
        """Stores a row of a homogeneous transform."""
        m.put3(mem, i, t, a)
        m.put(mem, i + 3, t, x)

    @m.func
    def relative_pose(t, T, L, mem):
        """matrix <- the pose of the target link in the frame of the reference link, a homogeneous transform by rows."""
        target = T.point_body[0]
        ref = T.point_body[1]
        r = m.get9(mem, L.rot + 9 * ref, t)
        x = m.apply_t(m.sub3(m.get3(mem, L.pos + 3 * target, t), m.get3(mem, L.pos + 3 * ref, t)), r)
        a = turned_axes(r, m.get9(mem, L.rot + 9 * target, t))
        put_row4(mem, L.matrix, t, a.x, x.x)
        put_row4(mem, L.matrix + 4, t, a.y, x.y)
        put_row4(mem, L.matrix + 8, t, a.z, x.z)
        put_row4(mem, L.matrix + 12, t, m.zero3(), m.fill(real(1.0)))

    @m.func
    def moves_only(dof: int, d: int, leaf: int, T) -> int:
        """1 unless the chain that ends with the dof `leaf` (-1: no chain) has `dof`, which is at place d of another chain."""
        only = int(1)
        if leaf >= 0:
            if d <= T.depth[leaf]:
                if T.chain[T.chain_at[leaf] + d] == dof:
                    only = 0
        return only

    @m.func
    def seen_column(t, dof: int, sign: m.lane, T, L, mem) -> m.Spatial:
        """The motion subspace of a dof, times `sign`, in the axes and about the origin of the frame ``T.point_body[2]``."""
        frame = T.point_body[2]
        r = m.get9(mem, L.rot + 9 * frame, t)
        s = m.get6(mem, L.subspace + 6 * dof, t)
        v = m.apply_t(m.velocity_at(s, m.get3(mem, L.pos + 3 * frame, t)), r)
        return m.spatial(m.scale3(v, sign), m.scale3(m.apply_t(s.w, r), sign))

    @m.func
    def put_jacobian_side(t, side: int, sign: m.lane, T, L, mem):
        """Columns of the dofs between the target (side 0) or the reference link (side 1) and the first link that carries both."""
        leaf = T.leaf[T.point_body[side]]
        other = T.leaf[T.point_body[1 - side]]
        if leaf >= 0:
            for d in range(T.depth[leaf] + 1):
                dof = T.chain[T.chain_at[leaf] + d]
                if moves_only(dof, d, other, T) == 1:
                    s = seen_column(t, dof, sign, T, L, mem)
                    m.put3_apart(mem, L.matrix + dof, T.columns, t, s.w)
                    m.put3_apart(mem, L.matrix + 3 * T.columns + dof, T.columns, t, s.v)

    @m.func
    def relative_jacobian(t, T, L, mem):
        """matrix <- six rows, the Jacobian of the twist of the target link relative to the reference link."""
        m.clear(t, L.matrix, 6 * T.columns, mem)
        put_jacobian_side(t, 0, m.fill(real(1.0)), T, L, mem)
        put_jacobian_side(t, 1, m.fill(real(-1.0)), T, L, mem)

    @m.func
    def add_side_velocity(t, side: int, sign: m.lane, v: m.Spatial, T, L, mem) -> m.Spatial:
        """v plus `sign` times the twist that the dofs of put_jacobian_side cause, in the axes and about the origin of the base link."""
        leaf = T.leaf[T.point_body[side]]
        other = T.leaf[T.point_body[1 - side]]
        if leaf >= 0:
            for d in range(T.depth[leaf] + 1):
                dof = T.chain[T.chain_at[leaf] + d]
                if moves_only(dof, d, other, T) == 1:
                    speed = m.mul(sign, m.get(mem, L.v + dof, t))
                    v = m.fma6(m.get6(mem, L.subspace + 6 * dof, t), speed, v)
        return v

    @m.func
    def relative_velocity(t, T, L, mem):
        """matrix <- the twist of the target link relative to the reference link, for the joint velocities v."""
        v = add_side_velocity(t, 0, m.fill(real(1.0)), m.spatial(m.zero3(), m.zero3()), T, L, mem)
        v = add_side_velocity(t, 1, m.fill(real(-1.0)), v, T, L, mem)
        frame = T.point_body[2]
        r = m.get9(mem, L.rot + 9 * frame, t)
        m.put3(mem, L.matrix, t, m.apply_t(v.w, r))
        m.put3(mem, L.matrix + 3, t, m.apply_t(m.velocity_at(v, m.get3(mem, L.pos + 3 * frame, t)), r))

    return locals()
