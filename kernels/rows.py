"""Constraint rows in whitened velocities, for contacts, limits, couplings and loops.

In z = sqrt(D) L v, see `kernels.dynamics.matrices.factor`, a constraint with Jacobian row J becomes y = D^-1/2 L^-T JT: J v = y.z,
J M^-1 JT = y.y, and an impulse p adds p y to z. A row of one body has an entry for each dof of its chain, from the root down; a row of
several bodies has an entry for each dof. The three rows of a point have a stride of ``T.reach``. A table may list the dofs of rows of all
dofs: those of row r are ``table[i]`` for i from ``table[r]`` to ``table[r + 1] - 1``, in ascending order, with the whole chain of each.
"""

import types

import warp as wp

# The first numbers of a record of a unilateral row, see `unilateral`.
MASS, SOFTNESS, TARGET = range(3)


def row_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: functions that build, whiten, multiply and update constraint rows."""
    real = m.real

    @m.func
    def transposed_solve(t, x: int, T, L, mem):
        """x <- L^-T x, in place, for a row x of all dofs."""
        for k in range(T.dofs - 1, -1, -1):
            y = m.get(mem, x + k, t)
            for d in range(T.depth[k]):
                j = x + T.chain[T.chain_at[k] + d]
                m.put(mem, j, t, m.fnma(m.get(mem, L.h + T.chain_at[k] + d, t), y, m.get(mem, j, t)))

    @m.func
    def whiten_row(t, y: int, T, L, mem):
        """y <- D^-1/2 L^-T y, in place, for a row y of all dofs."""
        transposed_solve(t, y, T, L, mem)
        for k in range(T.dofs):
            m.put(mem, y + k, t, m.mul(m.get(mem, L.root + k, t), m.get(mem, y + k, t)))

    @m.func
    def dense_dot(t, y: int, w: int, T, mem) -> m.lane:
        """y . w for two rows of all dofs"""
        u = m.fill(real(0.0))
        for k in range(T.dofs):
            u = m.fma(m.get(mem, y + k, t), m.get(mem, w + k, t), u)
        return u

    @m.func
    def dense_add(t, y: int, p: m.lane, T, L, mem):
        """z <- z + p y for a row y of all dofs"""
        for k in range(T.dofs):
            m.put(mem, L.z + k, t, m.fma(m.get(mem, y + k, t), p, m.get(mem, L.z + k, t)))

    @m.func
    def sparse_whiten(t, y: int, r: int, table: wp.array[int], T, L, mem):
        """y <- D^-1/2 L^-T y, in place, for a row y of all dofs, at the dofs of row r of the table."""
        first = table[r]
        end = table[r + 1]
        for n in range(end - first):
            k = table[end - 1 - n]
            x = m.get(mem, y + k, t)
            for d in range(T.depth[k]):
                j = y + T.chain[T.chain_at[k] + d]
                m.put(mem, j, t, m.fnma(m.get(mem, L.h + T.chain_at[k] + d, t), x, m.get(mem, j, t)))
            m.put(mem, y + k, t, m.mul(m.get(mem, L.root + k, t), x))

    @m.func
    def sparse_dot(t, y: int, r: int, table: wp.array[int], w: int, mem) -> m.lane:
        """y . w for two rows of all dofs, at the dofs of row r of the table. Those near the root come last: sweeps visit rows one after the
        other, most share these dofs, and a processor computes the rest of the sum while it waits for them."""
        u = m.fill(real(0.0))
        first = table[r]
        end = table[r + 1]
        for n in range(end - first):
            k = table[end - 1 - n]
            u = m.fma(m.get(mem, y + k, t), m.get(mem, w + k, t), u)
        return u

    @m.func
    def sparse_add(t, y: int, r: int, table: wp.array[int], p: m.lane, L, mem):
        """z <- z + p y for a row y of all dofs, at the dofs of row r of the table."""
        for i in range(table[r], table[r + 1]):
            k = table[i]
            m.put(mem, L.z + k, t, m.fma(m.get(mem, y + k, t), p, m.get(mem, L.z + k, t)))

    @m.func
    def half_solve(t, leaf: int, y: int, T, L, mem):
        """y <- D^-1/2 L^-T y, in place, for a row y over the chain of dof `leaf`."""
        at = T.chain_at[leaf]
        depth = T.depth[leaf]
        for d in range(depth, -1, -1):
            k = T.chain[at + d]
            row = L.h + T.chain_at[k]
            x = m.get(mem, y + d, t)
            for e in range(d):
                m.put(mem, y + e, t, m.fnma(m.get(mem, row + e, t), x, m.get(mem, y + e, t)))
            m.put(mem, y + d, t, m.mul(m.get(mem, L.root + k, t), x))

    @m.func
    def row_product(t, leaf: int, y: int, w: int, T, mem) -> m.lane:
        """y . w for two rows of one chain"""
        u = m.fill(real(0.0))
        for d in range(T.depth[leaf] + 1):
            u = m.fma(m.get(mem, y + d, t), m.get(mem, w + d, t), u)
        return u

    @m.func
    def chain_dot(t, leaf: int, y: int, T, L, mem) -> m.lane:
        """y . z for a row of a chain, as two independent sums that a processor computes in parallel. Dofs near the root come last, as in
        ``sparse_dot``."""
        at = T.chain_at[leaf]
        n = T.depth[leaf] + 1
        even = m.fill(real(0.0))
        odd = m.fill(real(0.0))
        for half in range(n // 2):
            d = n - 1 - 2 * half
            even = m.fma(m.get(mem, y + d, t), m.get(mem, L.z + T.chain[at + d], t), even)
            odd = m.fma(m.get(mem, y + d - 1, t), m.get(mem, L.z + T.chain[at + d - 1], t), odd)
        if n % 2 == 1:
            even = m.fma(m.get(mem, y, t), m.get(mem, L.z + T.chain[at], t), even)
        return m.add(even, odd)

    @m.func
    def chain_add(t, leaf: int, y: int, p: m.lane, T, L, mem):
        """z <- z + p y for a row of a chain"""
        at = T.chain_at[leaf]
        for d in range(T.depth[leaf] + 1):
            z = L.z + T.chain[at + d]
            m.put(mem, z, t, m.fma(m.get(mem, y + d, t), p, m.get(mem, z, t)))

    @m.func
    def linear_row(t, k: int, y: int, n: m.Vec3, arm: m.Vec3, T, L, mem) -> m.lane:
        """y <- the whitened row of n . (velocity of the point) with arm = point x n, along the chain of body k.

        Returns J v, this velocity before the step.
        """
        leaf = T.leaf[k]
        at = T.chain_at[leaf]
        speed = m.fill(real(0.0))
        for d in range(T.depth[leaf] + 1):
            i = T.chain[at + d]
            s = m.get6(mem, L.subspace + 6 * i, t)
            j = m.dot_plus(s.w, arm, m.dot(s.v, n))
            m.put(mem, y + d, t, j)
            speed = m.fma(j, m.get(mem, L.v + i, t), speed)
        half_solve(t, leaf, y, T, L, mem)
        return speed

    @m.func
    def point_rows(t, k: int, y: int, x: m.Vec3, n: m.Vec3, u1: m.Vec3, u2: m.Vec3, T, L, mem) -> m.lane:
        """Stores three whitened rows from y on, at a stride of T.reach: the velocities along n, u1 and u2 of point x of body k. Returns
        the velocity along n before the step."""
        before = linear_row(t, k, y, n, m.cross(x, n), T, L, mem)
        linear_row(t, k, y + T.reach, u1, m.cross(x, u1), T, L, mem)
        linear_row(t, k, y + 2 * T.reach, u2, m.cross(x, u2), T, L, mem)
        return before

    @m.func
    def point_velocity(t, leaf: int, y: int, T, L, mem) -> m.Vec3:
        """y . z, y' . z, y'' . z for three rows of one chain"""
        return m.vec(
            chain_dot(t, leaf, y, T, L, mem),
            chain_dot(t, leaf, y + T.reach, T, L, mem),
            chain_dot(t, leaf, y + 2 * T.reach, T, L, mem),
        )

    @m.func
    def point_add(t, leaf: int, y: int, p: m.Vec3, T, L, mem):
        """z <- z + p.x y + p.y y' + p.z y'' for three rows of one chain"""
        at = T.chain_at[leaf]
        for d in range(T.depth[leaf] + 1):
            i = L.z + T.chain[at + d]
            z = m.fma(m.get(mem, y + d, t), p.x, m.get(mem, i, t))
            z = m.fma(m.get(mem, y + T.reach + d, t), p.y, z)
            m.put(mem, i, t, m.fma(m.get(mem, y + 2 * T.reach + d, t), p.z, z))

    @m.struct
    class Spring:
        """A spring-damper over one implicit step: the impulse p changes by mass (target - u) - softness p."""

        mass: m.lane
        softness: m.lane
        push: m.lane

    @m.func
    def spring(gap: m.lane, omega: m.lane, damping_ratio: m.lane, dt: m.lane) -> Spring:
        """A spring-damper of natural frequency omega per unit of effective mass; `push` is the target velocity if it is compressed, by
        -gap."""
        w = m.mul(dt, omega)
        a = m.fma(m.fill(real(2.0)), damping_ratio, w)
        stiffness = m.mul(w, a)
        softness = m.rcp(m.add(m.fill(real(1.0)), stiffness))
        return Spring(m.mul(stiffness, softness), softness, m.neg(m.div(m.mul(gap, w), m.mul(dt, a))))

    @m.func
    def unilateral(t, at: int, u: m.lane, old: m.lane, mem) -> m.lane:
        """The nonnegative impulse after a Gauss-Seidel update at velocity u of the row whose MASS, SOFTNESS and TARGET are at `at`."""
        error = m.mul(m.sub(u, m.get(mem, at + TARGET, t)), m.get(mem, at + MASS, t))
        return m.larger(m.fill(real(0.0)), m.fnma(m.get(mem, at + SOFTNESS, t), old, m.sub(old, error)))

    @m.func
    def inverse_eigenvalue(a11: m.lane, a12: m.lane, a22: m.lane) -> m.lane:
        """1 / the largest eigenvalue of [[a11, a12], [a12, a22]], which is positive semidefinite"""
        half = m.fill(real(0.5))
        mean = m.mul(half, m.add(a11, a22))
        d = m.mul(half, m.sub(a11, a22))
        return m.rcp(m.add(mean, m.sqrt(m.fma(d, d, m.fma(a12, a12, m.fill(real(1.0e-24)))))))

    @m.func
    def disc(t, p: int, x: m.lane, y: m.lane, bound: m.lane, on: m.lane, mem):
        """Sets the impulses at p and p + 1 to (x, y) projected onto the disc of radius `bound`, in lanes where `on` is one."""
        shrink = m.shrink(bound, m.fma(x, x, m.fma(y, y, m.fill(real(1.0e-30)))))
        old = m.get(mem, p, t)
        m.put(mem, p, t, m.fma(on, m.sub(m.mul(x, shrink), old), old))
        old2 = m.get(mem, p + 1, t)
        m.put(mem, p + 1, t, m.fma(on, m.sub(m.mul(y, shrink), old2), old2))

    return locals()
