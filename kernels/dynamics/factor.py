"""Factorisation M = LT D L of a joint-space inertia with the sparsity of its tree (Featherstone 2008, table 6.3), and solves.

The step works in *whitened* velocities z = sqrt(D) L v, for which the kinetic energy is z.z / 2. A constraint with Jacobian row J
becomes y = D^-1/2 L^-T JT there: J v = y.z, J M^-1 JT = y.y, and an impulse p adds p y to z. Only the chain of the constrained
body enters y, so a row costs its depth and not the number of degrees of freedom.
"""

import types


def factor_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``factorize``, ``whiten``, ``unwhiten`` and ``half_solve``."""
    real = m.real

    @m.shared
    def factorize(t: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """Rows of h <- L (unit diagonal left out), root <- D^-1/2."""
        for back in range(T.dofs):
            k = T.dofs - 1 - back
            row = L.h + T.row[k]
            at = T.chain_at[k]
            depth = T.depth[k]
            inverse = m.rcp(m.larger(m.get(mem, row + depth, t), m.fill(real(1.0e-12))))
            m.put(mem, L.root + k, t, m.sqrt(inverse))
            for back_d in range(depth):
                d = depth - 1 - back_d
                above = L.h + T.row[T.chain[at + d]]
                ratio = m.mul(m.get(mem, row + d, t), inverse)
                for e in range(d + 1):
                    m.put(mem, above + e, t, m.fnma(ratio, m.get(mem, row + e, t), m.get(mem, above + e, t)))
                m.put(mem, row + d, t, ratio)

    @m.shared
    def whiten(t: int, dt: m.lane, force: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """z <- sqrt(D) L v + dt D^-1/2 L^-T f: the whitened velocity after a step under the generalized forces f at `force`."""
        for i in range(T.dofs):
            m.put(mem, L.u + i, t, m.get(mem, force + i, t))
        for back in range(T.dofs):
            k = T.dofs - 1 - back
            row = L.h + T.row[k]
            at = T.chain_at[k]
            x = m.get(mem, L.u + k, t)
            w = m.get(mem, L.v + k, t)
            for d in range(T.depth[k]):
                j = T.chain[at + d]
                factor = m.get(mem, row + d, t)
                w = m.fma(factor, m.get(mem, L.v + j, t), w)
                m.put(mem, L.u + j, t, m.fnma(factor, x, m.get(mem, L.u + j, t)))
            root = m.get(mem, L.root + k, t)
            m.put(mem, L.z + k, t, m.fma(m.mul(dt, root), x, m.div(w, root)))

    @m.shared
    def unwhiten(t: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """u <- L^-1 D^-1/2 z"""
        for k in range(T.dofs):
            row = L.h + T.row[k]
            at = T.chain_at[k]
            u = m.mul(m.get(mem, L.root + k, t), m.get(mem, L.z + k, t))
            for d in range(T.depth[k]):
                u = m.fnma(m.get(mem, row + d, t), m.get(mem, L.u + T.chain[at + d], t), u)
            m.put(mem, L.u + k, t, u)

    @m.func
    def half_solve(t: int, leaf: int, y: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """y <- D^-1/2 L^-T y, in place, for a row y that is listed along the chain of dof `leaf`."""
        at = T.chain_at[leaf]
        depth = T.depth[leaf]
        for back in range(depth + 1):
            d = depth - back
            k = T.chain[at + d]
            row = L.h + T.row[k]
            x = m.get(mem, y + d, t)
            for e in range(d):
                m.put(mem, y + e, t, m.fnma(m.get(mem, row + e, t), x, m.get(mem, y + e, t)))
            m.put(mem, y + d, t, m.mul(m.get(mem, L.root + k, t), x))

    @m.func
    def chain_dot(t: int, leaf: int, y: int, T: m.Tree, L: m.Layout, mem: m.memory) -> m.lane:
        """y . z, in two sums that do not wait for each other."""
        at = T.chain_at[leaf]
        n = T.depth[leaf] + 1
        even = m.fill(real(0.0))
        odd = m.fill(real(0.0))
        for half in range(n // 2):
            d = 2 * half
            even = m.fma(m.get(mem, y + d, t), m.get(mem, L.z + T.chain[at + d], t), even)
            odd = m.fma(m.get(mem, y + d + 1, t), m.get(mem, L.z + T.chain[at + d + 1], t), odd)
        if n % 2 == 1:
            even = m.fma(m.get(mem, y + n - 1, t), m.get(mem, L.z + T.chain[at + n - 1], t), even)
        return m.add(even, odd)

    @m.func
    def chain_add(t: int, leaf: int, y: int, p: m.lane, T: m.Tree, L: m.Layout, mem: m.memory):
        """z <- z + p y"""
        at = T.chain_at[leaf]
        for d in range(T.depth[leaf] + 1):
            z = L.z + T.chain[at + d]
            m.put(mem, z, t, m.fma(m.get(mem, y + d, t), p, m.get(mem, z, t)))

    @m.func
    def row_product(t: int, leaf: int, y: int, w: int, T: m.Tree, mem: m.memory) -> m.lane:
        """y . w for two rows of one chain"""
        u = m.fill(real(0.0))
        for d in range(T.depth[leaf] + 1):
            u = m.fma(m.get(mem, y + d, t), m.get(mem, w + d, t), u)
        return u

    own = ("m", "real")
    return types.SimpleNamespace(**{**vars(m), **{k: v for k, v in locals().items() if k not in own}})
