"""Centres of mass, inertias and joint forces of a robot whose base link may move.

The base link is body 0. Its twist V0 and its spatial acceleration Vdot0, angular parts first and in its own frame, are at ``L.base_twist``
and ``L.base_acceleration``. Gravity is an acceleration -g of the base link.
"""

import types

REGULAR = 1.0e10
"""Product of the traces of a matrix and its inverse, a bound on the ratio of its eigenvalues, up to which the inverse is used."""


def robot_inertia_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``place_masses``, ``weighted_centre``, ``weighted_centre_jacobian``, ``total_inertia`` and
    ``operational_inertia``."""
    real = m.real

    @m.func
    def weighted_centre(b, t, T, P, L, mem):
        """matrix <- the centre of mass of links with the masses times L.weights, in the frame of the reference link."""
        total = m.fill(real(0.0))
        moment = m.zero3()
        for k in range(T.bodies):
            mass = m.mul(m.get(mem, L.weights + k, t), m.body_mass(P, b, k))
            total = m.add(total, mass)
            moment = m.fma3(m.get3(mem, L.com + 3 * k, t), mass, moment)
        ref = T.point_body[1]
        c = m.sub3(m.scale3(moment, m.rcp(total)), m.get3(mem, L.pos + 3 * ref, t))
        m.put3(mem, L.matrix, t, m.apply_t(c, m.get9(mem, L.rot + 9 * ref, t)))

    @m.func
    def weighted_centre_jacobian(b, t, T, P, L, mem):
        """matrix <- three rows, the derivative of weighted_centre with respect to q. The dof i moves the mass m_i with the first moment
        h_i, and the reference link if it is on its chain: column i is (m_i v + w x h_i) / m, less the velocity of the reference link at the
        centre of mass."""
        for i in range(T.bodies):
            k = T.bodies - 1 - i
            mass = m.mul(m.get(mem, L.weights + k, t), m.body_mass(P, b, k))
            moment = m.scale3(m.get3(mem, L.com + 3 * k, t), mass)
            for j in range(T.child_at[k], T.child_at[k + 1]):
                at = L.composite + 10 * T.child[j]
                mass = m.add(mass, m.get(mem, at, t))
                moment = m.add3(moment, m.get3(mem, at + 1, t))
            m.put(mem, L.composite + 10 * k, t, mass)
            m.put3(mem, L.composite + 10 * k + 1, t, moment)
        share = m.rcp(m.get(mem, L.composite, t))
        c = m.scale3(m.get3(mem, L.composite + 1, t), share)
        ref = T.point_body[1]
        r = m.get9(mem, L.rot + 9 * ref, t)
        for k in range(T.bodies):
            mass = m.get(mem, L.composite + 10 * k, t)
            moment = m.get3(mem, L.composite + 10 * k + 1, t)
            for dof in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * dof, t)
                v = m.scale3(m.cross_plus(s.w, moment, m.scale3(s.v, mass)), share)
                m.put3_apart(mem, L.matrix + dof, T.columns, t, m.apply_t(v, r))
        leaf = T.leaf[ref]
        if leaf >= 0:
            for d in range(T.depth[leaf] + 1):
                dof = T.chain[T.chain_at[leaf] + d]
                v = m.apply_t(m.velocity_at(m.get6(mem, L.subspace + 6 * dof, t), c), r)
                at = L.matrix + dof
                m.put(mem, at, t, m.sub(m.get(mem, at, t), v.x))
                m.put(mem, at + T.columns, t, m.sub(m.get(mem, at + T.columns, t), v.y))
                m.put(mem, at + 2 * T.columns, t, m.sub(m.get(mem, at + 2 * T.columns, t), v.z))

    @m.func
    def place_masses(b, t, T, P, L, mem):
        """com <- the centres of mass of all links, from their frames."""
        for k in range(T.bodies):
            r = m.get9(mem, L.rot + 9 * k, t)
            m.put3(mem, L.com + 3 * k, t, m.apply_plus(r, m.body_com(P, b, k), m.get3(mem, L.pos + 3 * k, t)))

    @m.func
    def put_cross(mem: m.memory, i: int, stride: int, t: int, a: m.Vec3):
        """Stores the matrix of the cross product with a, rows `stride` apart."""
        zero = m.fill(real(0.0))
        m.put3(mem, i, t, m.vec(zero, m.neg(a.z), a.y))
        m.put3(mem, i + stride, t, m.vec(a.z, zero, m.neg(a.x)))
        m.put3(mem, i + 2 * stride, t, m.vec(m.neg(a.y), a.x, zero))

    @m.func
    def total_inertia(b, t, T, P, L, mem):
        """matrix <- the 6 x 6 inertia of all links about the origin of the reference link, in its axes."""
        ref = T.point_body[1]
        x = m.get3(mem, L.pos + 3 * ref, t)
        back = m.transposed(m.get9(mem, L.rot + 9 * ref, t))
        i = m.zero_inertia()
        for k in range(T.bodies):
            c = m.sub3(m.get3(mem, L.com + 3 * k, t), x)
            i = m.turned_inertia_plus(
                m.body_mass(P, b, k), c, m.body_inertia(P, b, k), m.get9(mem, L.rot + 9 * k, t), i
            )
        h = m.apply(back, i.h)
        turned = m.sym_rotate(i.i, back)
        zero = m.fill(real(0.0))
        m.put3(mem, L.matrix, t, m.vec(turned.xx, turned.xy, turned.xz))
        m.put3(mem, L.matrix + 6, t, m.vec(turned.xy, turned.yy, turned.yz))
        m.put3(mem, L.matrix + 12, t, m.vec(turned.xz, turned.yz, turned.zz))
        put_cross(mem, L.matrix + 3, 6, t, h)
        put_cross(mem, L.matrix + 18, 6, t, m.neg3(h))
        m.put3(mem, L.matrix + 21, t, m.vec(i.m, zero, zero))
        m.put3(mem, L.matrix + 27, t, m.vec(zero, i.m, zero))
        m.put3(mem, L.matrix + 33, t, m.vec(zero, zero, i.m))

    @m.func
    def invert_symmetric(t, n: int, a: int, x: int, mem: m.memory) -> m.lane:
        """Upper triangle of x <- that of the inverse of the symmetric n x n matrix a, whose lower triangle is read, by a = L D L^T. Returns
        the least of 1 and the pivots, which are not all positive if this is not; the inverse is wrong then."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        least = one
        # above the diagonal of x: L D; below: L, and then its inverse; on the diagonal: D^-1
        for i in range(n):
            for j in range(i):
                y = m.get(mem, a + n * i + j, t)
                for k in range(j):
                    y = m.fnma(m.get(mem, x + n * k + i, t), m.get(mem, x + n * j + k, t), y)
                m.put(mem, x + n * j + i, t, y)
                m.put(mem, x + n * i + j, t, m.mul(y, m.get(mem, x + n * j + j, t)))
            pivot = m.get(mem, a + n * i + i, t)
            for k in range(i):
                pivot = m.fnma(m.get(mem, x + n * k + i, t), m.get(mem, x + n * i + k, t), pivot)
            least = m.smaller(least, pivot)
            m.put(mem, x + n * i + i, t, m.rcp(m.where_lt(zero, pivot, pivot, one)))
        for i in range(n):
            for j in range(i):
                y = m.get(mem, x + n * i + j, t)
                for k in range(j + 1, i):
                    y = m.fma(m.get(mem, x + n * i + k, t), m.get(mem, x + n * k + j, t), y)
                m.put(mem, x + n * i + j, t, m.neg(y))
        # row i of L^-T D^-1 needs the diagonal from i on
        for i in range(n):
            for j in range(i):
                y = m.mul(m.get(mem, x + n * i + i, t), m.get(mem, x + n * i + j, t))
                for k in range(i + 1, n):
                    z = m.mul(m.get(mem, x + n * k + k, t), m.get(mem, x + n * k + i, t))
                    y = m.fma(z, m.get(mem, x + n * k + j, t), y)
                m.put(mem, x + n * j + i, t, y)
            y = m.get(mem, x + n * i + i, t)
            for k in range(i + 1, n):
                z = m.get(mem, x + n * k + i, t)
                y = m.fma(m.mul(m.get(mem, x + n * k + k, t), z), z, y)
            m.put(mem, x + n * i + i, t, y)
        return least

    @m.func
    def operational_inertia(b, t, T, P, L, mem):
        """operational <- the inverse of A = J M^-1 J^T with the Jacobian of relative_jacobian; the number of dofs that move links with
        inertia, but have none themselves; and 1 if A is singular or nearly so, so that A is there instead of its inverse, else 0."""
        m.relative_jacobian(t, T, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        m.factorize_apart(b, t, T, P, L, mem)
        n = int(6)
        at = L.operational
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        # A = Y D^-1 Y^T with Y = J L^-1 for M = L^T D L
        for i in range(n):
            row = L.matrix + i * T.columns
            m.transposed_solve(t, row, T, L, mem)
            for j in range(i + 1):
                x = zero
                for k in range(T.dofs):
                    y = m.mul(m.get(mem, L.pivot + k, t), m.get(mem, row + k, t))
                    x = m.fma(y, m.get(mem, L.matrix + j * T.columns + k, t), x)
                m.put(mem, at + n * i + j, t, x)
        least = invert_symmetric(t, n, at, L.vector, mem)
        size = zero
        inverse_size = zero
        for i in range(n):
            size = m.add(size, m.get(mem, at + n * i + i, t))
            inverse_size = m.add(inverse_size, m.get(mem, L.vector + n * i + i, t))
        # the product of the traces bounds the ratio of the eigenvalues
        limit = m.fill(real(REGULAR))
        ratio = m.where_lt(zero, least, m.mul(size, inverse_size), limit)
        for i in range(n):
            for j in range(i + 1):
                x = m.get(mem, L.vector + n * j + i, t)
                x = m.where_lt(ratio, limit, x, m.get(mem, at + n * i + j, t))
                m.put(mem, at + n * i + j, t, x)
                m.put(mem, at + n * j + i, t, x)
        # the row of a dof that moves no inertia at all is zero in M and in its pseudo-inverse, as it is in D^-1
        stuck = zero
        for k in range(T.bodies):
            moved = zero
            for j in range(10):
                x = m.get(mem, L.composite + 10 * k + j, t)
                moved = m.fma(x, x, moved)
            for dof in range(T.dof_at[k], T.dof_at[k + 1]):
                lacks = m.where_lt(zero, m.get(mem, L.pivot + dof, t), zero, one)
                stuck = m.add(stuck, m.where_lt(zero, moved, lacks, zero))
        m.put(mem, at + n * n, t, stuck)
        m.put(mem, at + n * n + 1, t, m.where_lt(ratio, limit, zero, one))

    return locals()
