"""Joint-space inertias as dense matrices."""

import types


def mass_matrix_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``eval_mass_matrix``."""
    real = m.real

    @m.func
    def eval_mass_matrix(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """matrix <- the joint-space inertia with armature; rows and columns that this articulation lacks are zero."""
        zero = m.fill(real(0.0))
        for i in range(T.dofs):
            m.put(mem, L.v + i, t, zero)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        for i in range(T.columns * T.columns):
            m.put(mem, L.matrix + i, t, zero)
        for i in range(T.dofs):
            depth = T.depth[i]
            for d in range(depth):
                j = T.chain[T.chain_at[i] + d]
                x = m.get(mem, L.h + T.row[i] + d, t)
                m.put(mem, L.matrix + i * T.columns + j, t, x)
                m.put(mem, L.matrix + j * T.columns + i, t, x)
            diagonal = m.add(m.get(mem, L.h + T.row[i] + depth, t), m.gain(P, b, i, 0))
            m.put(mem, L.matrix + i * T.columns + i, t, diagonal)

    return types.SimpleNamespace(**vars(m), eval_mass_matrix=eval_mass_matrix)
