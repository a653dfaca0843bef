"""The Coriolis matrix C with M_dot = C + C^T and C nu = h - g (Echeandia and Wensing 2021, "Numerical methods to compute the
Coriolis matrix and Christoffel symbols for rigid-body systems").

For a rigid body with velocity (v, w), inertia I (mass, first moment h, second moment J) and momentum (p, l) about a point at rest:

    B = ((v x*) I - I (v x) + (I v) x*) / 2 = [[0, -[p]], [0, (J_dot - [l]) / 2]],   J_dot = [w] J - J [w] + 2 (h . v) 1 - h v^T - v h^T

B + B^T is the rate of I, and B v = v x* I v. Sums over subtrees, I_c and B_c, give for every dof j and its ancestors i

    C_ij = S_i . (I_c S_j' + B_c S_j),   C_ji = S_i' . I_c S_j + S_i . B_c^T S_j

with the rates S' of the motion subspaces.
"""

import types


def coriolis_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_coriolis_matrix``."""
    real = m.real

    @m.func
    def inertia_rate(i: m.Inertia, v: m.Spatial) -> m.Sym3:
        """J_dot"""
        x = m.cross(v.w, m.vec(i.i.xx, i.i.xy, i.i.xz))
        y = m.cross(v.w, m.vec(i.i.xy, i.i.yy, i.i.yz))
        z = m.cross(v.w, m.vec(i.i.xz, i.i.yz, i.i.zz))
        two = m.fill(real(2.0))
        h = i.h
        u = v.v
        return m.sym(
            m.mul(two, m.add(x.x, m.fma(h.y, u.y, m.mul(h.z, u.z)))),
            m.mul(two, m.add(y.y, m.fma(h.x, u.x, m.mul(h.z, u.z)))),
            m.mul(two, m.add(z.z, m.fma(h.x, u.x, m.mul(h.y, u.y)))),
            m.fnma(h.x, u.y, m.fnma(h.y, u.x, m.add(y.x, x.y))),
            m.fnma(h.x, u.z, m.fnma(h.z, u.x, m.add(z.x, x.z))),
            m.fnma(h.y, u.z, m.fnma(h.z, u.y, m.add(z.y, y.z))),
        )

    @m.func
    def subtree_rate(b, t, k: int, i: m.Inertia, T, P, L, mem):
        """articulated <- momentum and J_dot of the subtree of body k; i is the inertia of body k alone."""
        v = m.get6(mem, L.twist + 6 * k, t)
        p = m.momentum(i, v)
        j = inertia_rate(i, v)
        for c in range(T.child_at[k], T.child_at[k + 1]):
            at = L.articulated + 12 * T.child[c]
            p = m.add6(p, m.get6(mem, at, t))
            j = m.sym_add(j, m.get_sym(mem, at + 6, t))
        m.put6(mem, L.articulated + 12 * k, t, p)
        m.put_sym(mem, L.articulated + 12 * k + 6, t, j)

    @m.func
    def put_column(t, i: int, s: m.Spatial, rate: m.Spatial, k: int, T, L, mem):
        """Stores column i of the matrix down to the diagonal, and row i left of it; dof i moves the subtree of body k."""
        total = m.get10(mem, L.composite + 10 * k, t)
        p = m.get6(mem, L.articulated + 12 * k, t)
        j = m.get_sym(mem, L.articulated + 12 * k + 6, t)
        half = m.fill(real(0.5))
        spin = m.sym_apply(j, s.w)
        turn = m.cross(p.w, s.w)
        # B S and B^T S
        forward = m.spatial(m.cross(s.w, p.v), m.scale3(m.sub3(spin, turn), half))
        backward = m.fma3(m.add3(spin, turn), half, m.cross(p.v, s.v))
        forward = m.add6(forward, m.momentum(total, rate))
        f = m.momentum(total, s)
        at = T.chain_at[i]
        for d in range(T.depth[i] + 1):
            above = T.chain[at + d]
            a = m.get6(mem, L.subspace + 6 * above, t)
            a_rate = m.get6(mem, L.subspace_rate + 6 * above, t)
            m.put(mem, L.matrix + above * T.columns + i, t, m.dot6(a, forward))
            if above != i:
                m.put(mem, L.matrix + i * T.columns + above, t, m.dot_plus(a.w, backward, m.dot6(a_rate, f)))

    @m.func
    def add_base_armature(b, t, T, P, L, mem):
        """Adds the terms of a floating base's armature to `matrix`, for a representation other than its joint's."""
        c = m.get3(mem, L.com, t)
        moved = m.velocity_at(m.get6(mem, L.twist, t), c)
        for j in range(6):
            s = m.get6(mem, L.subspace + 6 * j, t)
            rate = m.get6(mem, L.subspace_rate + 6 * j, t)
            x = m.spatial(m.cross_plus(s.w, moved, m.velocity_at(rate, c)), rate.w)
            f = m.base_armature(b, t, x, P, L, mem)
            for i in range(6):
                at = L.matrix + i * T.columns + j
                m.put(mem, at, t, m.dot6_plus(m.get6(mem, L.subspace + 6 * i, t), f, m.get(mem, at, t)))

    @m.func
    def eval_coriolis_matrix(b, t, T, P, L, mem):
        """matrix <- C, in the representation T.base_repr"""
        m.prepare(b, t, T, P, L, mem)
        m.subspace_rates(t, L.subspace_rate, T, L, mem)
        m.clear(t, L.matrix, T.columns * T.columns, mem)
        for k in range(T.bodies - 1, -1, -1):
            own = m.link_inertia(b, t, k, P, L, mem)
            subtree_rate(b, t, k, own, T, P, L, mem)
            for i in range(T.child_at[k], T.child_at[k + 1]):
                own = m.inertia_add(own, m.get10(mem, L.composite + 10 * T.child[i], t))
            m.put10(mem, L.composite + 10 * k, t, own)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * i, t)
                put_column(t, i, s, m.get6(mem, L.subspace_rate + 6 * i, t), k, T, L, mem)
        if m.turned_base(T) == 1:
            add_base_armature(b, t, T, P, L, mem)

    return locals()
