"""Forward and inverse kinematics of whole articulations, and their Jacobians."""

import types


def kinematics_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``forward_kinematics``, ``body_accelerations``, ``write_bodies``, and the programs of kinematics."""

    @m.shared
    def forward_kinematics(b, t, T, P, L, mem):
        """Poses, motion subspaces and twists of all bodies, from the q and v of the layout."""
        m.set_origin(b, t, T, P, L, mem)
        for k in range(T.bodies):
            m.place_body(b, t, k, T, P, L, mem)

    @m.func
    def body_accelerations(t, world: m.Vec3, T, L, mem):
        """drift <- the accelerations of all bodies, from nu_dot at L.acceleration and the linear acceleration `world` of the world."""
        m.put6(mem, L.drift + 6 * T.bodies, t, m.spatial(world, m.zero3()))
        for k in range(T.bodies):
            a = m.add6(m.get6(mem, L.drift + 6 * T.parent[k], t), m.joint_drift(t, k, L.v, T, L, mem))
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                a = m.fma6(m.get6(mem, L.subspace + 6 * i, t), m.get(mem, L.acceleration + i, t), a)
            m.put6(mem, L.drift + 6 * k, t, a)

    @m.func
    def write_bodies(b, t, T, P, L, mem):
        """body_q, body_qd <- public poses and velocities, from the results of forward_kinematics."""
        for k in range(T.bodies):
            m.write_pose(t, k, T.body_slot[k], T, L, mem)

    @m.func
    def eval_fk(b, t, T, P, L, mem):
        """body_q, body_qd <- public poses and velocities, from q and v."""
        m.set_origin(b, t, T, P, L, mem)
        for k in range(T.bodies):
            m.place_body(b, t, k, T, P, L, mem)
            m.write_pose(t, k, T.body_slot[k], T, L, mem)

    @m.func
    def eval_ik(b, t, T, P, L, mem):
        """q, v <- coordinates and velocities, from body_q and body_qd."""
        m.open_world(t, T, L, mem)
        for k in range(T.bodies):
            m.open_body(b, t, k, T.body_slot[k], P, L, mem)
        for k in range(T.bodies):
            m.read_joint(b, t, k, T, P, L, mem)

    @m.func
    def jacobian_column(t, k: int, dof: int, L, mem) -> m.Spatial:
        """The velocity of the centre of mass of body k and its angular velocity, for a unit velocity of dof."""
        s = m.get6(mem, L.subspace + 6 * dof, t)
        return m.spatial(m.velocity_at(s, m.get3(mem, L.com + 3 * k, t)), s.w)

    @m.func
    def eval_jacobian(b, t, T, P, L, mem):
        """matrix <- the Jacobian, six rows a link; rows and columns that only larger articulations of the model have are zero."""
        m.clear(t, L.v, T.dofs, mem)
        forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.matrix, 6 * T.links * T.columns, mem)
        for k in range(T.bodies):
            leaf = T.leaf[k]
            if leaf >= 0:
                for d in range(T.depth[leaf] + 1):
                    dof = T.chain[T.chain_at[leaf] + d]
                    at = L.matrix + 6 * k * T.columns + dof
                    m.put6_apart(mem, at, T.columns, t, jacobian_column(t, k, dof, L, mem))

    return locals()
