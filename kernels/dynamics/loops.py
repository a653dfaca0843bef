"""Loop joints as constraint rows on the accelerations of trees, and constrained forward dynamics.

A row requires that an error g is zero (n: a direction fixed to the parent, c and p: the anchors of child and parent, u: a direction
fixed to the child; all in world axes):

    linear    g = n . (c - p)      W = (n, c x n)
    angular   g = n . u            W = (0, u x n)

With the twists V and accelerations A of the two bodies, all about one point, and the unit constraint wrench W on the child (-W on the
parent): g' = W . (V_c - V_p) = K nu, and g'' = W . (A_c - A_p) + W' . (V_c - V_p) = K nu_dot + k.

The accelerations a and the forces l solve M a + h = tau + K^T l and K a = -k - 2 f K nu - f^2 g (Featherstone 2008, section 8.5). With
the whitened rows Y = D^-1/2 L^-T K^T of `kernels.rows`: Y^T Y l = b. Y^T Y may be singular, and its solution is approached
by proximal steps l <- l + (Y^T Y + s 1)^-1 (b - Y^T Y l) (Carpentier, Budhiraja and Mansard 2021).
"""

import types

import numpy as np
import warp as wp

NO_ROW, LINEAR, ANGULAR = range(3)

LOOP = 12
# Vectors of a row: anchors in parent and child, a direction fixed to the parent and one fixed to the child.
PARENT_ANCHOR, CHILD_ANCHOR, PARENT_DIRECTION, CHILD_DIRECTION = range(0, LOOP, 3)
PROXIMAL_STEPS = 5

WORLD_OF = -3
"""The world as the first tree has it, as an end of a row in a cluster; that of tree i is smaller by i."""


def loop_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_constraint_jacobian``, ``eval_constraint_bias`` and ``eval_constrained_dynamics``."""
    real = m.real
    softness = 1.0e-8 if real in (wp.float64, np.float64) else 1.0e-5
    smallest = 1.0e-30

    @m.func
    def loop_body(i: int, T) -> int:
        """The body of end i of the rows, parents first; -1 for no body of this articulation. See WORLD_OF."""
        body = m.frame_body(i, T)
        if T.point_body[i] <= WORLD_OF:
            body = T.bodies + WORLD_OF - T.point_body[i]
        return body

    @m.func
    def loop_row_kind(r: int, T) -> int:
        """The kind of row r; NO_ROW if the row belongs to another articulation."""
        kind = T.loop_kind[r]
        if loop_body(r, T) < 0 or loop_body(T.loop_rows + r, T) < 0:
            kind = 0
        return kind

    @m.func
    def loop_vector(t, r: int, i: int, k: int, L, mem) -> m.Vec3:
        """The vector at position i of row r, fixed to body k, in world axes."""
        return m.apply(m.get9(mem, L.rot + 9 * k, t), m.get3(mem, L.loop + LOOP * r + i, t))

    @m.func
    def loop_anchor(t, r: int, i: int, k: int, L, mem) -> m.Vec3:
        return m.add3(m.get3(mem, L.pos + 3 * k, t), loop_vector(t, r, i, k, L, mem))

    @m.func
    def loop_error(t, r: int, T, L, mem) -> m.lane:
        """g"""
        p = loop_body(r, T)
        c = loop_body(T.loop_rows + r, T)
        n = loop_vector(t, r, PARENT_DIRECTION, p, L, mem)
        g = m.dot(n, loop_vector(t, r, CHILD_DIRECTION, c, L, mem))
        if T.loop_kind[r] == LINEAR:
            g = m.dot(
                n, m.sub3(loop_anchor(t, r, CHILD_ANCHOR, c, L, mem), loop_anchor(t, r, PARENT_ANCHOR, p, L, mem))
            )
        return g

    @m.func
    def loop_wrench(t, r: int, T, L, mem) -> m.Spatial:
        """W"""
        c = loop_body(T.loop_rows + r, T)
        n = loop_vector(t, r, PARENT_DIRECTION, loop_body(r, T), L, mem)
        w = m.spatial(m.zero3(), m.cross(loop_vector(t, r, CHILD_DIRECTION, c, L, mem), n))
        if T.loop_kind[r] == LINEAR:
            w = m.spatial(n, m.cross(loop_anchor(t, r, CHILD_ANCHOR, c, L, mem), n))
        return w

    @m.func
    def loop_wrench_rate(t, r: int, T, L, mem) -> m.Spatial:
        """W'"""
        p = loop_body(r, T)
        c = loop_body(T.loop_rows + r, T)
        n = loop_vector(t, r, PARENT_DIRECTION, p, L, mem)
        u = loop_vector(t, r, CHILD_DIRECTION, c, L, mem)
        v = m.get6(mem, L.twist + 6 * c, t)
        turn = m.cross(m.get3(mem, L.twist + 6 * p + 3, t), n)
        w = m.spatial(m.zero3(), m.cross_plus(u, turn, m.cross(m.cross(v.w, u), n)))
        if T.loop_kind[r] == LINEAR:
            x = loop_anchor(t, r, CHILD_ANCHOR, c, L, mem)
            w = m.spatial(turn, m.cross_plus(x, turn, m.cross(m.velocity_at(v, x), n)))
        return w

    @m.func
    def across(t, r: int, at: int, T, mem) -> m.Spatial:
        """The spatial vector of row r's child minus that of its parent; the vectors of all bodies start at `at`."""
        a = m.get6(mem, at + 6 * loop_body(T.loop_rows + r, T), t)
        b = m.get6(mem, at + 6 * loop_body(r, T), t)
        return m.spatial(m.sub3(a.v, b.v), m.sub3(a.w, b.w))

    @m.func
    def loop_speed(t, r: int, T, L, mem) -> m.lane:
        """g'"""
        return m.dot6(loop_wrench(t, r, T, L, mem), across(t, r, L.twist, T, mem))

    @m.func
    def loop_acceleration(t, r: int, T, L, mem) -> m.lane:
        """g'', from the accelerations of the bodies at L.drift"""
        x = m.dot6(loop_wrench_rate(t, r, T, L, mem), across(t, r, L.twist, T, mem))
        return m.dot6_plus(loop_wrench(t, r, T, L, mem), across(t, r, L.drift, T, mem), x)

    @m.func
    def moves_too(k: int, d: int, i: int, T) -> int:
        """1 if dof i, number d of its chain, moves body k, else 0."""
        found = 0
        if k < T.bodies:
            leaf = T.leaf[k]
            if leaf >= 0:
                if d <= T.depth[leaf]:
                    if T.chain[T.chain_at[leaf] + d] == i:
                        found = 1
        return found

    @m.func
    def put_wrench_row(t, r: int, w: m.Spatial, at: int, T, L, mem):
        """Stores the nonzero entries of row r of K, whose wrench is w, at `at`: those of dofs that move exactly one of its two bodies."""
        for side in range(2):
            k = loop_body(T.loop_rows + r, T)
            other = loop_body(r, T)
            if side == 1:
                k = loop_body(r, T)
                other = loop_body(T.loop_rows + r, T)
            if k < T.bodies:
                leaf = T.leaf[k]
                if leaf >= 0:
                    for d in range(T.depth[leaf] + 1):
                        i = T.chain[T.chain_at[leaf] + d]
                        if moves_too(other, d, i, T) == 0:
                            x = m.dot6(w, m.get6(mem, L.subspace + 6 * i, t))
                            if side == 1:
                                x = m.neg(x)
                            m.put(mem, at + i, t, x)

    @m.func
    def put_loop_row(t, r: int, at: int, T, L, mem):
        """The same of a row of this file."""
        put_wrench_row(t, r, loop_wrench(t, r, T, L, mem), at, T, L, mem)

    @m.func
    def eval_constraint_jacobian(b, t, T, P, L, mem):
        """matrix <- K; vector <- g"""
        m.clear(t, L.v, T.dofs, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.matrix, T.columns * T.loop_rows, mem)
        m.clear(t, L.vector, T.loop_rows, mem)
        for r in range(T.loop_rows):
            if loop_row_kind(r, T) != NO_ROW:
                m.put(mem, L.vector + r, t, loop_error(t, r, T, L, mem))
                put_loop_row(t, r, L.matrix + T.columns * r, T, L, mem)

    @m.func
    def eval_constraint_bias(b, t, T, P, L, mem):
        """vector <- k"""
        m.forward_kinematics(b, t, T, P, L, mem)
        m.bias_accelerations(b, t, L.v, T, P, L, mem)
        m.clear(t, L.vector, T.loop_rows, mem)
        for r in range(T.loop_rows):
            if loop_row_kind(r, T) != NO_ROW:
                m.put(mem, L.vector + r, t, loop_acceleration(t, r, T, L, mem))

    @m.func
    def put_loop_column(t, j: int, d: m.lane, T, L, mem):
        """Column j of loop_gram <- that of its lower Cholesky factor, with d, the inverse of the diagonal entry, in its place."""
        row = L.loop_gram + j * (j + 1) // 2
        m.put(mem, row + j, t, d)
        for i in range(j + 1, T.loop_block):
            below = L.loop_gram + i * (i + 1) // 2
            x = m.get(mem, below + j, t)
            for k in range(j):
                x = m.fnma(m.get(mem, below + k, t), m.get(mem, row + k, t), x)
            m.put(mem, below + j, t, m.mul(x, d))

    @m.func
    def whitened_loops(t, T, L, mem):
        """loop_row <- Y; loop_gram <- the lower Cholesky factor of Y^T Y + s 1, with its diagonal inverted (Golub and Van Loan 2013,
        algorithm 4.2.1). Needs the factors of M."""
        n = T.loop_rows
        m.clear(t, L.loop_row, T.dofs * n, mem)
        largest = m.fill(real(smallest))
        for r in range(n):
            if loop_row_kind(r, T) != NO_ROW:
                put_loop_row(t, r, L.loop_row + T.dofs * r, T, L, mem)
                m.whiten_row(t, L.loop_row + T.dofs * r, T, L, mem)
            for s in range(r + 1):
                x = m.dense_dot(t, L.loop_row + T.dofs * r, L.loop_row + T.dofs * s, T, mem)
                m.put(mem, L.loop_gram + r * (r + 1) // 2 + s, t, x)
            largest = m.larger(largest, m.get(mem, L.loop_gram + r * (r + 1) // 2 + r, t))
        soft = m.mul(m.fill(real(softness)), largest)
        for j in range(n):
            row = L.loop_gram + j * (j + 1) // 2
            d = m.add(m.get(mem, row + j, t), soft)
            for i in range(j):
                d = m.fnma(m.get(mem, row + i, t), m.get(mem, row + i, t), d)
            d = m.rcp(m.sqrt(m.larger(d, m.fill(real(smallest)))))
            put_loop_column(t, j, d, T, L, mem)

    @m.func
    def solve_loop_gram(t, T, L, mem):
        """loop_step <- the solution for it of the matrix with the factor loop_gram"""
        n = T.loop_block
        for r in range(n):
            row = L.loop_gram + r * (r + 1) // 2
            x = m.get(mem, L.loop_step + r, t)
            for s in range(r):
                x = m.fnma(m.get(mem, row + s, t), m.get(mem, L.loop_step + s, t), x)
            m.put(mem, L.loop_step + r, t, m.mul(x, m.get(mem, row + r, t)))
        for r in range(n - 1, -1, -1):
            x = m.get(mem, L.loop_step + r, t)
            for s in range(r + 1, n):
                x = m.fnma(m.get(mem, L.loop_gram + s * (s + 1) // 2 + r, t), m.get(mem, L.loop_step + s, t), x)
            m.put(mem, L.loop_step + r, t, m.mul(x, m.get(mem, L.loop_gram + r * (r + 1) // 2 + r, t)))

    @m.func
    def proximal_step(t, T, L, mem):
        """loop_force <- l + (Y^T Y + s 1)^-1 (loop_want - Y^T Y l)"""
        n = T.loop_rows
        m.copy(t, L.loop_step, L.loop_want, n, mem)
        for i in range(T.dofs):
            x = m.fill(real(0.0))
            for r in range(n):
                x = m.fma(m.get(mem, L.loop_row + T.dofs * r + i, t), m.get(mem, L.loop_force + r, t), x)
            for r in range(n):
                y = m.get(mem, L.loop_row + T.dofs * r + i, t)
                m.put(mem, L.loop_step + r, t, m.fnma(y, x, m.get(mem, L.loop_step + r, t)))
        solve_loop_gram(t, T, L, mem)
        for r in range(n):
            m.put(mem, L.loop_force + r, t, m.add(m.get(mem, L.loop_force + r, t), m.get(mem, L.loop_step + r, t)))

    @m.func
    def solve_loops(t, T, L, mem):
        """u, loop_force <- the solution for the forces at z and the required row accelerations at loop_want."""
        m.whiten_row(t, L.z, T, L, mem)
        for r in range(T.loop_rows):
            b = m.get(mem, L.loop_want + r, t)
            for i in range(T.dofs):
                b = m.fnma(m.get(mem, L.loop_row + T.dofs * r + i, t), m.get(mem, L.z + i, t), b)
            m.put(mem, L.loop_want + r, t, b)
        m.clear(t, L.loop_force, T.loop_rows, mem)
        for _step in range(T.proximal_steps):
            proximal_step(t, T, L, mem)
        for r in range(T.loop_rows):
            m.dense_add(t, L.loop_row + T.dofs * r, m.get(mem, L.loop_force + r, t), T, L, mem)
        m.unwhiten(t, T, L, mem)

    @m.func
    def want_closing(t, T, L, mem):
        """loop_want <- -g'' - 2 f g' - f^2 g. L.drift must have the result of newton_euler."""
        f = m.get(mem, L.weights, t)
        for r in range(T.loop_rows):
            x = m.fill(real(0.0))
            if loop_row_kind(r, T) != NO_ROW:
                x = m.fnma(f, loop_error(t, r, T, L, mem), m.mul(m.fill(real(-2.0)), loop_speed(t, r, T, L, mem)))
                x = m.fma(f, x, m.neg(loop_acceleration(t, r, T, L, mem)))
            m.put(mem, L.loop_want + r, t, x)

    @m.func
    def first_loop_solution(b, t, T, P, L, mem):
        m.accelerating_forces(b, t, L.z, T, P, L, mem)
        want_closing(t, T, L, mem)
        m.factorize_with_roots(b, t, T, P, L, mem)
        whitened_loops(t, T, L, mem)
        solve_loops(t, T, L, mem)

    @m.func
    def eval_constrained_dynamics(b, t, T, P, L, mem):
        """vector <- accelerations with closed loops; loop_force <- l. Accelerations and forces of a floating base are in the
        representation T.output_repr."""
        first_loop_solution(b, t, T, P, L, mem)
        m.copy(t, L.vector, L.u, T.dofs, mem)
        m.base_accelerations(t, T, L, mem)

    @m.func
    def add_loop_forces(t, T, L, mem):
        """z <- z + K^T l, l at L.loop_given"""
        m.clear(t, L.load, 6 * T.bodies, mem)
        for r in range(T.loop_rows):
            if loop_row_kind(r, T) != NO_ROW:
                w = loop_wrench(t, r, T, L, mem)
                x = m.get(mem, L.loop_given + r, t)
                c = L.load + 6 * loop_body(T.loop_rows + r, T)
                m.put6(mem, c, t, m.fma6(w, x, m.get6(mem, c, t)))
                if loop_body(r, T) < T.bodies:
                    p = L.load + 6 * loop_body(r, T)
                    m.put6(mem, p, t, m.fma6(w, m.neg(x), m.get6(mem, p, t)))
        for k in range(T.bodies - 1, -1, -1):
            f = m.get6(mem, L.load + 6 * k, t)
            for i in range(T.child_at[k], T.child_at[k + 1]):
                f = m.add6(f, m.get6(mem, L.load + 6 * T.child[i], t))
            m.put6(mem, L.load + 6 * k, t, f)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                x = m.dot6(m.get6(mem, L.subspace + 6 * i, t), f)
                m.put(mem, L.z + i, t, m.add(m.get(mem, L.z + i, t), x))

    @m.func
    def eval_constrained_dynamics_implicit(b, t, T, P, L, mem):
        """eval_constrained_dynamics for reverse mode, by the implicit function theorem (see `kernels.dynamics.implicit`): one more solve
        for the residual of the solution. The solution, the factors of M and the whitened rows are constants in reverse mode."""
        first_loop_solution(b, t, T, P, L, mem)
        for i in range(T.dofs):
            m.detach_rows(t, L.h + T.chain_at[i], T.depth[i] + 1, mem)
            m.put(mem, L.acceleration + i, t, m.detach(m.get(mem, L.u + i, t)))
        m.detach_rows(t, L.root, T.dofs, mem)
        m.detach_rows(t, L.loop_row, T.dofs * T.loop_rows, mem)
        m.detach_rows(t, L.loop_gram, T.loop_rows * (T.loop_rows + 1) // 2, mem)
        for r in range(T.loop_rows):
            m.put(mem, L.loop_given + r, t, m.detach(m.get(mem, L.loop_force + r, t)))
        m.residual(b, t, L.z, T, P, L, mem)
        want_closing(t, T, L, mem)
        add_loop_forces(t, T, L, mem)
        solve_loops(t, T, L, mem)
        m.put_sums(t, L.vector, L.acceleration, L.u, T.dofs, mem)
        m.put_sums(t, L.loop_force, L.loop_given, L.loop_force, T.loop_rows, mem)
        m.base_accelerations(t, T, L, mem)

    return locals()
