"""Motion across single joints: transform, motion subspace, twist and bias acceleration of the child relative to its parent."""

import types


def joint_motion_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_joint_transforms``, ``eval_motion_subspaces`` and ``eval_joint_motion``."""

    @m.func
    def eval_joint_transforms(b, t, T, P, L, mem):
        """vector <- X_j(q) of every joint: pose of its child anchor in its parent anchor."""
        m.still(t, T, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.vector, 7 * T.links, mem)
        for k in range(T.bodies):
            frame = m.anchor_frame(b, t, k, T, P, L, mem)
            m.put3(mem, L.vector + 7 * k, t, m.joint_shift(b, t, k, frame, T, P, L, mem))
            m.put4(mem, L.vector + 7 * k + 3, t, m.joint_turn(b, t, k, frame, P, L, mem))

    @m.func
    def eval_motion_subspaces(b, t, T, P, L, mem):
        """matrix <- the joint twist for a unit velocity of every dof, in the representation ``T.output_repr`` of the child."""
        m.still(t, T, L, mem)
        m.prepare(b, t, T, P, L, mem)
        m.clear(t, L.matrix, 6 * T.columns, mem)
        for k in range(T.bodies):
            x = m.place_of(t, k, T.output_repr, L, mem)
            r = m.get9(mem, L.rot + 9 * k, t)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * i, t)
                m.put6(mem, L.matrix + 6 * i, t, m.twist_as(T.output_repr, s, x, r))

    @m.func
    def eval_joint_motion(b, t, T, P, L, mem):
        """vector <- the twist of every joint's child relative to its parent, in the representation ``T.output_repr`` of the child;
        second <- its time derivative at constant joint velocities."""
        m.prepare(b, t, T, P, L, mem)
        m.clear(t, L.vector, 6 * T.links, mem)
        m.clear(t, L.second, 6 * T.links, mem)
        for k in range(T.bodies):
            x = m.place_of(t, k, T.output_repr, L, mem)
            r = m.get9(mem, L.rot + 9 * k, t)
            v = m.joint_twist(t, T.dof_at[k], T.linear[k] + T.angular[k], L.v, L, mem)
            a = m.joint_drift(t, k, L.v, T, L, mem)
            m.put6(mem, L.vector + 6 * k, t, m.twist_as(T.output_repr, v, x, r))
            rate = m.column_rate(T.output_repr, v, a, m.get6(mem, L.twist + 6 * k, t), x, r)
            m.put6(mem, L.second + 6 * k, t, rate)

    return locals()
