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
    def put_entries(t, y: int, x: m.Vec3, T, mem):
        """Stores an entry of each of three rows at a stride of T.reach."""
        m.put(mem, y, t, x.x)
        m.put(mem, y + T.reach, t, x.y)
        m.put(mem, y + 2 * T.reach, t, x.z)

    @m.func
    def put_zeros(t, y: int, n: int, T, mem):
        """Stores zeros in the first n entries of three rows at a stride of T.reach."""
        for d in range(n):
            put_entries(t, y + d, m.zero3(), T, mem)

    @m.func
    def span_half_solve(t, leaf: int, other: int, shared: int, y: int, rows: int, T, L, mem):
        """y <- D^-1/2 L^-T y, in place, for so many rows at a stride of T.reach."""
        size = chain_size(leaf, T)
        if other >= 0:
            at = T.chain_at[other]
            for d in range(T.depth[other], shared - 1, -1):
                k = T.chain[at + d]
                h = L.h + T.chain_at[k]
                root = m.get(mem, L.root + k, t)
                for r in range(rows):
                    row = y + T.reach * r
                    own = row + size - shared
                    x = m.get(mem, own + d, t)
                    for e in range(shared):
                        m.put(mem, row + e, t, m.fnma(m.get(mem, h + e, t), x, m.get(mem, row + e, t)))
                    for e in range(shared, d):
                        m.put(mem, own + e, t, m.fnma(m.get(mem, h + e, t), x, m.get(mem, own + e, t)))
                    m.put(mem, own + d, t, m.mul(root, x))
        if leaf >= 0:
            at = T.chain_at[leaf]
            for d in range(T.depth[leaf], -1, -1):
                k = T.chain[at + d]
                h = L.h + T.chain_at[k]
                root = m.get(mem, L.root + k, t)
                for r in range(rows):
                    row = y + T.reach * r
                    x = m.get(mem, row + d, t)
                    for e in range(d):
                        m.put(mem, row + e, t, m.fnma(m.get(mem, h + e, t), x, m.get(mem, row + e, t)))
                    m.put(mem, row + d, t, m.mul(root, x))

    @m.func
    def span_angular_rows(t, leaf: int, other: int, shared: int, y: int, n: m.Vec3, u1: m.Vec3, u2: m.Vec3, T, L, mem):
        """Stores three whitened rows from y on, at a stride of T.reach: the angular velocities about n, u1 and u2 of the first body less
        those of the second one."""
        size = chain_size(leaf, T)
        if leaf >= 0:
            at = T.chain_at[leaf]
            put_zeros(t, y, shared, T, mem)
            for d in range(shared, size):
                w = m.get3(mem, L.subspace + 6 * T.chain[at + d] + 3, t)
                put_entries(t, y + d, m.vec(m.dot(w, n), m.dot(w, u1), m.dot(w, u2)), T, mem)
        if other >= 0:
            at = T.chain_at[other]
            for d in range(shared, T.depth[other] + 1):
                w = m.get3(mem, L.subspace + 6 * T.chain[at + d] + 3, t)
                put_entries(t, y + size + d - shared, m.neg3(m.vec(m.dot(w, n), m.dot(w, u1), m.dot(w, u2))), T, mem)
        span_half_solve(t, leaf, other, shared, y, 3, T, L, mem)

    @m.func
    def span_size(leaf: int, other: int, shared: int, T) -> int:
        """Number of dofs of a span."""
        size = chain_size(leaf, T)
        if other >= 0:
            size = size + T.depth[other] + 1 - shared
        return size

    @m.struct
    class Products:
        """Products of three rows: y.y, y.y', y.y'', y'.y', y'.y'' and y''.y''."""

        nn: m.lane
        n1: m.lane
        n2: m.lane
        a11: m.lane
        a12: m.lane
        a22: m.lane

    @m.func
    def span_products(t, size: int, y: int, T, mem) -> Products:
        """The products of three rows of one span of so many dofs, from y on at a stride of T.reach."""
        nn = m.fill(real(0.0))
        n1 = nn
        n2 = nn
        a11 = nn
        a12 = nn
        a22 = nn
        for d in range(size):
            n = m.get(mem, y + d, t)
            u = m.get(mem, y + T.reach + d, t)
            w = m.get(mem, y + 2 * T.reach + d, t)
            nn = m.fma(n, n, nn)
            n1 = m.fma(n, u, n1)
            n2 = m.fma(n, w, n2)
            a11 = m.fma(u, u, a11)
            a12 = m.fma(u, w, a12)
            a22 = m.fma(w, w, a22)
        return Products(nn, n1, n2, a11, a12, a22)

    @m.func
    def span_point_add(t, leaf: int, other: int, shared: int, y: int, p: m.Vec3, T, L, mem):
        """z <- z + p.x y + p.y y' + p.z y'' for three rows of one span"""
        if leaf >= 0:
            m.point_add(t, leaf, y, p, T, L, mem)
        if other >= 0:
            own = y + chain_size(leaf, T) - shared
            at = T.chain_at[other]
            for d in range(shared, T.depth[other] + 1):
                i = L.z + T.chain[at + d]
                z = m.fma(m.get(mem, own + d, t), p.x, m.get(mem, i, t))
                z = m.fma(m.get(mem, own + T.reach + d, t), p.y, z)
                m.put(mem, i, t, m.fma(m.get(mem, own + 2 * T.reach + d, t), p.z, z))

    @m.func
    def span_point_rows(
        t, leaf: int, other: int, shared: int, y: int, x: m.Vec3, x2: m.Vec3, n: m.Vec3, u1: m.Vec3, u2: m.Vec3, T, L, mem
    ) -> m.lane:  # fmt: skip
        """Stores three whitened rows from y on, at a stride of T.reach: along n, u1 and u2, the velocities of a point of the first body
        less those of the second one. The point is at x about the origin of the first body's tree, and at x2 about that of the second one's.
        Returns the velocity along n before the step."""
        speed = m.fill(real(0.0))
        size = chain_size(leaf, T)
        if leaf >= 0:
            arm = m.cross(x, n)
            arm1 = m.cross(x, u1)
            arm2 = m.cross(x, u2)
            at = T.chain_at[leaf]
            put_zeros(t, y, shared, T, mem)
            for d in range(shared, size):
                i = T.chain[at + d]
                s = m.get6(mem, L.subspace + 6 * i, t)
                j = m.dot_plus(s.w, arm, m.dot(s.v, n))
                j1 = m.dot_plus(s.w, arm1, m.dot(s.v, u1))
                put_entries(t, y + d, m.vec(j, j1, m.dot_plus(s.w, arm2, m.dot(s.v, u2))), T, mem)
                speed = m.fma(j, m.get(mem, L.v + i, t), speed)
        if other >= 0:
            arm = m.cross(x2, n)
            arm1 = m.cross(x2, u1)
            arm2 = m.cross(x2, u2)
            at = T.chain_at[other]
            for d in range(shared, T.depth[other] + 1):
                i = T.chain[at + d]
                s = m.get6(mem, L.subspace + 6 * i, t)
                j = m.neg(m.dot_plus(s.w, arm, m.dot(s.v, n)))
                j1 = m.neg(m.dot_plus(s.w, arm1, m.dot(s.v, u1)))
                j2 = m.neg(m.dot_plus(s.w, arm2, m.dot(s.v, u2)))
                put_entries(t, y + size + d - shared, m.vec(j, j1, j2), T, mem)
                speed = m.fma(j, m.get(mem, L.v + i, t), speed)
        span_half_solve(t, leaf, other, shared, y, 3, T, L, mem)
        return speed

    return locals()
