"""Joint-space inertia by the composite-rigid-body algorithm (Walker and Orin 1982; Featherstone 2008, table 6.2).

H_ij = S_j . I_c S_i for every ancestor j of i, where I_c is the inertia of the subtree that i moves; other entries are zero
and are not stored.
"""

import types


def crba_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``joint_space_inertia``."""

    @m.func
    def link_inertia(b, t, k: int, P, L, mem) -> m.Inertia:
        """The inertia of body k about the origin, in world axes."""
        at_com = m.sym_rotate(m.body_inertia(P, b, k), m.get9(mem, L.rot + 9 * k, t))
        return m.inertia_of(m.body_mass(P, b, k), m.get3(mem, L.com + 3 * k, t), at_com)

    @m.func
    def composite_inertia(b, t, k: int, T, P, L, mem) -> m.Inertia:
        """The inertia of the subtree of body k about the origin, in world axes."""
        below = m.zero_inertia()
        for i in range(T.child_at[k], T.child_at[k + 1]):
            below = m.inertia_add(below, m.get10(mem, L.composite + 10 * T.child[i], t))
        return m.turned_inertia_plus(
            m.body_mass(P, b, k), m.get3(mem, L.com + 3 * k, t), m.body_inertia(P, b, k), m.get9(mem, L.rot + 9 * k, t), below
        )  # fmt: skip

    @m.shared
    def joint_space_inertia(b, t, T, P, L, mem):
        """h <- the packed rows of the joint-space inertia, without armature."""
        for k in range(T.bodies - 1, -1, -1):
            total = composite_inertia(b, t, k, T, P, L, mem)
            m.put10(mem, L.composite + 10 * k, t, total)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                f = m.momentum(total, m.get6(mem, L.subspace + 6 * i, t))
                row = L.h + T.chain_at[i]
                at = T.chain_at[i]
                for d in range(T.depth[i] + 1):
                    j = T.chain[at + d]
                    m.put(mem, row + d, t, m.dot6(m.get6(mem, L.subspace + 6 * j, t), f))

    return locals()
