"""Constraint rows of two bodies in whitened velocities, on spans; see `kernels.rows` for rows of one body.

A row of two bodies is the velocity of a point of one body less that of another one. Its *span* is the chain of the first body, followed by
the part of the second body's chain that the first one does not share; shared members come first in both chains. A span is given by the
last dofs of both chains, -1 for a body that no dof moves, and by the number of dofs that they share. The Jacobian row is zero on the
shared part, and is filled in there when it is whitened. A row of one body has the span of its chain alone, in the order of `kernels.rows`.
"""

import types


def span_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: functions that build, whiten and multiply rows on spans."""
    real = m.real

    @m.func
    def chain_size(leaf: int, T) -> int:
        """Length of the chain of dof `leaf`; 0 for -1."""
        size = 0
        if leaf >= 0:
            size = T.depth[leaf] + 1
        return size

    @m.func
    def span_half_solve(t, leaf: int, other: int, shared: int, y: int, T, L, mem):
        """y <- D^-1/2 L^-T y, in place."""
        if other >= 0:
            size = chain_size(leaf, T)
            at = T.chain_at[other]
            for d in range(T.depth[other], shared - 1, -1):
                k = T.chain[at + d]
                row = L.h + T.chain_at[k]
                own = y + size - shared
                x = m.get(mem, own + d, t)
                for e in range(shared):
                    m.put(mem, y + e, t, m.fnma(m.get(mem, row + e, t), x, m.get(mem, y + e, t)))
                for e in range(shared, d):
                    m.put(mem, own + e, t, m.fnma(m.get(mem, row + e, t), x, m.get(mem, own + e, t)))
                m.put(mem, own + d, t, m.mul(m.get(mem, L.root + k, t), x))
        if leaf >= 0:
            m.half_solve(t, leaf, y, T, L, mem)

    @m.func
    def span_linear(
        t, leaf: int, other: int, shared: int, y: int, n: m.Vec3, arm: m.Vec3, arm2: m.Vec3, T, L, mem
    ) -> m.lane:
        """y <- the whitened row of n . (velocity of a point of the first body less that of the same point of the second one), with
        arm = point x n about the origin of the first body's tree, and arm2 about that of the second one's.

        Returns J v, this velocity before the step.
        """
        speed = m.fill(real(0.0))
        size = chain_size(leaf, T)
        if leaf >= 0:
            at = T.chain_at[leaf]
            for d in range(shared):
                m.put(mem, y + d, t, m.fill(real(0.0)))
            for d in range(shared, size):
                i = T.chain[at + d]
                s = m.get6(mem, L.subspace + 6 * i, t)
                j = m.dot_plus(s.w, arm, m.dot(s.v, n))
                m.put(mem, y + d, t, j)
                speed = m.fma(j, m.get(mem, L.v + i, t), speed)
        if other >= 0:
            start = T.chain_at[other]
            for d in range(shared, T.depth[other] + 1):
                i = T.chain[start + d]
                s = m.get6(mem, L.subspace + 6 * i, t)
                j = m.neg(m.dot_plus(s.w, arm2, m.dot(s.v, n)))
                m.put(mem, y + size + d - shared, t, j)
                speed = m.fma(j, m.get(mem, L.v + i, t), speed)
        span_half_solve(t, leaf, other, shared, y, T, L, mem)
        return speed

    @m.func
    def span_angular(t, leaf: int, other: int, shared: int, y: int, n: m.Vec3, T, L, mem):
        """y <- the whitened row of n . (angular velocity of the first body less that of the second one)."""
        size = chain_size(leaf, T)
        if leaf >= 0:
            at = T.chain_at[leaf]
            for d in range(shared):
                m.put(mem, y + d, t, m.fill(real(0.0)))
            for d in range(shared, size):
                m.put(mem, y + d, t, m.dot(m.get3(mem, L.subspace + 6 * T.chain[at + d] + 3, t), n))
        if other >= 0:
            start = T.chain_at[other]
            for d in range(shared, T.depth[other] + 1):
                w = m.get3(mem, L.subspace + 6 * T.chain[start + d] + 3, t)
                m.put(mem, y + size + d - shared, t, m.neg(m.dot(w, n)))
        span_half_solve(t, leaf, other, shared, y, T, L, mem)

    @m.func
    def span_size(leaf: int, other: int, shared: int, T) -> int:
        """Number of dofs of a span."""
        size = chain_size(leaf, T)
        if other >= 0:
            size = size + T.depth[other] + 1 - shared
        return size

    @m.func
    def span_product(t, size: int, y: int, w: int, mem) -> m.lane:
        """y . w for two rows of one span of so many dofs"""
        u = m.fill(real(0.0))
        for d in range(size):
            u = m.fma(m.get(mem, y + d, t), m.get(mem, w + d, t), u)
        return u

    @m.func
    def span_step(t, size: int, y: int, w: int, mem) -> m.lane:
        """1 / the largest eigenvalue of the response [[y.y, y.w], [y.w, w.w]] of two rows of one span"""
        a11 = span_product(t, size, y, y, mem)
        a12 = span_product(t, size, y, w, mem)
        return m.inverse_eigenvalue(a11, a12, span_product(t, size, w, w, mem))

    @m.func
    def span_add(t, leaf: int, other: int, shared: int, y: int, p: m.lane, T, L, mem):
        """z <- z + p y for a row of a span"""
        if leaf >= 0:
            m.chain_add(t, leaf, y, p, T, L, mem)
        if other >= 0:
            own = y + chain_size(leaf, T) - shared
            at = T.chain_at[other]
            for d in range(shared, T.depth[other] + 1):
                z = L.z + T.chain[at + d]
                m.put(mem, z, t, m.fma(m.get(mem, own + d, t), p, m.get(mem, z, t)))

    @m.func
    def span_point_rows(
        t,
        leaf: int,
        other: int,
        shared: int,
        y: int,
        x: m.Vec3,
        x2: m.Vec3,
        n: m.Vec3,
        u1: m.Vec3,
        u2: m.Vec3,
        T,
        L,
        mem,
    ) -> m.lane:
        """Stores three whitened rows from y on, at a stride of T.reach: along n, u1 and u2, the velocities of a point of the first body
        less those of the second one. The point is at x about the origin of the first body's tree, and at x2 about that of the second one's.
        Returns the velocity along n before the step."""
        before = span_linear(t, leaf, other, shared, y, n, m.cross(x, n), m.cross(x2, n), T, L, mem)
        span_linear(t, leaf, other, shared, y + T.reach, u1, m.cross(x, u1), m.cross(x2, u1), T, L, mem)
        span_linear(t, leaf, other, shared, y + 2 * T.reach, u2, m.cross(x, u2), m.cross(x2, u2), T, L, mem)
        return before

    return locals()
