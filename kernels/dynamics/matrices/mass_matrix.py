"""Joint-space inertias, and their inverses, as dense matrices."""

import types

from newton_like.kernels.tree import ARMATURE, COM, NATIVE


def mass_matrix_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_mass_matrix``, ``eval_rigid_mass_matrix`` and ``eval_mass_matrix_inverse``."""
    real = m.real

    @m.func
    def add_armature(b, t, T, P, L, mem):
        """Adds the armature, in the representation T.base_repr, to h."""
        turned = m.turned_base(T)
        for i in range(T.dofs):
            if i > 5 or turned == 0:
                at = L.h + T.chain_at[i] + T.depth[i]
                m.put(mem, at, t, m.add(m.get(mem, at, t), m.gain(P, b, i, ARMATURE)))
            else:
                c = m.get3(mem, L.com, t)
                x = m.twist_as(COM, m.get6(mem, L.subspace + 6 * i, t), c, m.get9(mem, L.rot, t))
                f = m.base_armature(b, t, x, P, L, mem)
                for j in range(i + 1):
                    at = L.h + T.chain_at[i] + j
                    x = m.get6(mem, L.subspace + 6 * j, t)
                    m.put(mem, at, t, m.dot6_plus(x, f, m.get(mem, at, t)))

    @m.func
    def unpack_rows(t, T, L, mem):
        """matrix <- the symmetric matrix of the packed rows h; rows and columns beyond this articulation's dofs are zero."""
        m.clear(t, L.matrix, T.columns * T.columns, mem)
        for i in range(T.dofs):
            for d in range(T.depth[i] + 1):
                j = T.chain[T.chain_at[i] + d]
                x = m.get(mem, L.h + T.chain_at[i] + d, t)
                m.put(mem, L.matrix + i * T.columns + j, t, x)
                m.put(mem, L.matrix + j * T.columns + i, t, x)

    @m.func
    def eval_rigid_mass_matrix(b, t, T, P, L, mem):
        """matrix <- the joint-space inertia without armature, in the representation T.base_repr."""
        m.clear(t, L.v, T.dofs, mem)
        m.prepare(b, t, T, P, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        unpack_rows(t, T, L, mem)

    @m.func
    def eval_mass_matrix(b, t, T, P, L, mem):
        """matrix <- the joint-space inertia with armature, in the representation T.base_repr."""
        m.clear(t, L.v, T.dofs, mem)
        m.prepare(b, t, T, P, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        add_armature(b, t, T, P, L, mem)
        unpack_rows(t, T, L, mem)

    @m.func
    def represent(t, at: int, stride: int, T, L, mem):
        """Converts six velocities of a floating base at `at`, `stride` apart, to the representation T.output_repr, in place."""
        v = m.spatial(m.zero3(), m.zero3())
        for i in range(6):
            v = m.fma6(m.get6(mem, L.subspace + 6 * i, t), m.get(mem, at + i * stride, t), v)
        u = m.twist_as(T.output_repr, v, m.place_of(t, 0, T.output_repr, L, mem), m.get9(mem, L.rot, t))
        m.put6_apart(mem, at, stride, t, u)

    @m.func
    def invert_rows(t, T, L, mem):
        """Replaces the rows of L in h by those of its inverse, with the unit diagonal."""
        for i in range(T.dofs - 1, -1, -1):
            row = L.h + T.chain_at[i]
            depth = T.depth[i]
            for d in range(depth - 1, -1, -1):
                x = m.neg(m.get(mem, row + d, t))
                for e in range(d + 1, depth):
                    above = L.h + T.chain_at[T.chain[T.chain_at[i] + e]]
                    x = m.fnma(m.get(mem, row + e, t), m.get(mem, above + d, t), x)
                m.put(mem, row + d, t, x)
            m.put(mem, row + depth, t, m.fill(real(1.0)))

    @m.func
    def eval_mass_matrix_inverse(b, t, T, P, L, mem):
        """matrix <- the inverse of the joint-space inertia, in the representation T.output_repr: L^-1 D^-1 L^-T, where row i of L^-1 has
        the sparsity of row i of L."""
        m.clear(t, L.v, T.dofs, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        m.factorize_apart(b, t, T, P, L, mem)
        invert_rows(t, T, L, mem)
        m.clear(t, L.matrix, T.columns * T.columns, mem)
        for i in range(T.dofs):
            for j in range(i + 1):
                x = m.fill(real(0.0))
                for d in range(T.depth[j] + 1):
                    if d <= T.depth[i]:
                        k = T.chain[T.chain_at[j] + d]
                        # chains that separate stay separate
                        if k == T.chain[T.chain_at[i] + d]:
                            w = m.mul(m.get(mem, L.h + T.chain_at[j] + d, t), m.get(mem, L.pivot + k, t))
                            x = m.fma(w, m.get(mem, L.h + T.chain_at[i] + d, t), x)
                m.put(mem, L.matrix + i * T.columns + j, t, x)
                m.put(mem, L.matrix + j * T.columns + i, t, x)
        if T.free_root != 0 and T.output_repr != NATIVE:
            for i in range(T.dofs):
                represent(t, L.matrix + i, T.columns, T, L, mem)
            for i in range(T.dofs):
                represent(t, L.matrix + i * T.columns, 1, T, L, mem)

    return locals()
