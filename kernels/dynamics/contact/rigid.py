"""Rigid and relaxed rigid contact of points on links with the ground: contact forces from an optimisation problem on accelerations.

With the Jacobian J of the touching points, three rows for each along world axes, and the normal n, depth d and velocity v of a point, the
forces are

    min 1/2 f.(A + R) f + f.(J nu_dot_free + J_dot nu - a),   |f_t| <= mu f_n,   A = J M^-1 J^T
    a = K xi d n - D v,     R = 2 mu^2 (1 + mu^2) (1 - xi) / (xi m_link)

(Todorov 2014, "Convex and analytically-invertible dynamics with contacts and constraints"). If xi is 1, R is zero and the contact is
rigid; the term a stabilises it (Baumgarte 1972).

At the minimum, w = (A + R) f + ... is in the dual cone and f.w = 0, so a point that slips with w_t has w_n = mu |w_t|. Adding
mu |w_t| to w_n gives Coulomb's law, w_n = 0 (De Saxce and Feng 1998).

Rows are whitened, see `kernels.rows`, so the cost of updating a block of A is proportional to the length of its chain. An update of block
projected Gauss-Seidel takes a few projected gradient steps within the block. Sweeps are accelerated by extrapolation (Nesterov 1983) with
restarts (O'Donoghue and Candes 2015), because the distribution of force among several points of a link converges slowly otherwise.
"""

import types

# Bits of T.contact_law, besides ONE_PLANE of soft contact.
RELAXED, COULOMB, BOUNCES = 1, 4, 8

RIGID_LAW = 9
MU, STIFFNESS, DAMPING, IMPEDANCE_MIN, IMPEDANCE_MAX, INVERSE_WIDTH, MIDPOINT, POWER, RESTITUTION = range(RIGID_LAW)

# Record of a point: normal, A (6: xx yy zz xy xz yz), constant part of w, R, gradient step; the force that a sweep starts from, and the
# force after the sweep before
BLOCK = 20
NORMAL, RESPONSE, CONSTANT, SOFTNESS, STEP, START, BEFORE = 0, 3, 9, 12, 13, 14, 17
STEPS = 4
"""Projected gradient steps of an update."""


def rigid_contact_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_rigid_contact`` and ``eval_impact``."""
    real = m.real

    @m.func
    def impedance(t, depth: m.lane, L, mem) -> m.lane:
        """xi, which grows from d_min at depth 0 to d_max at the width by two power functions that meet at the midpoint."""
        one = m.fill(real(1.0))
        tiny = m.fill(real(1.0e-12))
        x = m.smaller(m.mul(depth, m.get(mem, L.point_law + INVERSE_WIDTH, t)), one)
        middle = m.get(mem, L.point_law + MIDPOINT, t)
        power = m.get(mem, L.point_law + POWER, t)
        # distances of x and of the midpoint from 0 if x is below the midpoint, else from 1
        near = m.where_lt(x, middle, x, m.sub(one, x))
        span = m.where_lt(x, middle, middle, m.sub(one, middle))
        share = m.mul(span, m.exp(m.mul(power, m.log(m.div(m.larger(near, tiny), span)))))
        y = m.where_lt(x, middle, share, m.sub(one, share))
        low = m.get(mem, L.point_law + IMPEDANCE_MIN, t)
        return m.fma(y, m.sub(m.get(mem, L.point_law + IMPEDANCE_MAX, t), low), low)

    @m.func
    def whitened_rows(t, i: int, k: int, x: m.Vec3, T, L, mem) -> m.Sym3:
        """contact_y <- the rows of point i of body k at x along world axes. Returns its block of A."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        leaf = T.leaf[k]
        y0 = L.contact_y + 3 * T.reach * i
        y1 = y0 + T.reach
        y2 = y1 + T.reach
        m.point_rows(t, k, y0, x, m.vec(one, zero, zero), m.vec(zero, one, zero), m.vec(zero, zero, one), T, L, mem)
        return m.sym(
            m.row_product(t, leaf, y0, y0, T, mem), m.row_product(t, leaf, y1, y1, T, mem),
            m.row_product(t, leaf, y2, y2, T, mem), m.row_product(t, leaf, y0, y1, T, mem),
            m.row_product(t, leaf, y0, y2, T, mem), m.row_product(t, leaf, y1, y2, T, mem),
        )  # fmt: skip

    @m.func
    def sym_square(s: m.Sym3) -> m.Sym3:
        return m.sym(
            m.fma(s.xx, s.xx, m.fma(s.xy, s.xy, m.mul(s.xz, s.xz))),
            m.fma(s.xy, s.xy, m.fma(s.yy, s.yy, m.mul(s.yz, s.yz))),
            m.fma(s.xz, s.xz, m.fma(s.yz, s.yz, m.mul(s.zz, s.zz))),
            m.fma(s.xx, s.xy, m.fma(s.xy, s.yy, m.mul(s.xz, s.yz))),
            m.fma(s.xx, s.xz, m.fma(s.xy, s.yz, m.mul(s.xz, s.zz))),
            m.fma(s.xy, s.xz, m.fma(s.yy, s.yz, m.mul(s.yz, s.zz))),
        )

    @m.func
    def sym_scale(s: m.Sym3, x: m.lane) -> m.Sym3:
        return m.sym(m.mul(s.xx, x), m.mul(s.yy, x), m.mul(s.zz, x), m.mul(s.xy, x), m.mul(s.xz, x), m.mul(s.yz, x))

    @m.func
    def largest_eigenvalue(s: m.Sym3) -> m.lane:
        """An upper bound of the largest eigenvalue, at most 15 % above it: (trace of s^8)^(1/8)."""
        trace = m.add(m.add(s.xx, s.yy), s.zz)
        safe = m.larger(trace, m.fill(real(1.0e-20)))
        eighth = sym_square(sym_square(sym_square(sym_scale(s, m.rcp(safe)))))
        total = m.larger(m.add(m.add(eighth.xx, eighth.yy), eighth.zz), m.fill(real(1.0e-20)))
        return m.mul(safe, m.sqrt(m.sqrt(m.sqrt(total))))

    @m.func
    def put_block(t, i: int, n: m.Vec3, a: m.Sym3, c: m.Vec3, soft: m.lane, on: m.lane, T, L, mem):
        at = L.contact + BLOCK * i
        m.put3(mem, at + NORMAL, t, n)
        m.put_sym(mem, at + RESPONSE, t, a)
        m.put3(mem, at + CONSTANT, t, c)
        m.put(mem, at + SOFTNESS, t, soft)
        # the step is zero for a point that no dof can move
        free = m.where_lt(m.fill(real(1.0e-20)), m.add(m.add(a.xx, a.yy), a.zz), on, m.fill(real(0.0)))
        m.put(mem, at + STEP, t, m.div(free, m.add(largest_eigenvalue(a), soft)))
        m.clear(t, at + START, 6, mem)

    @m.func
    def norm(v: m.Vec3) -> m.lane:
        """|v|, or zero where |v|^2 is at most 1e-30, because the square root has no derivative at zero."""
        tiny = m.fill(real(1.0e-30))
        square = m.dot(v, v)
        return m.where_lt(tiny, square, m.sqrt(m.larger(square, tiny)), m.fill(real(0.0)))

    @m.func
    def projected(f: m.Vec3, n: m.Vec3, mu: m.lane) -> m.Vec3:
        """The projection of f onto the friction cone."""
        zero = m.fill(real(0.0))
        normal = m.dot(n, f)
        f_t = m.fnma3(n, normal, f)
        length = norm(f_t)
        edge = m.larger(m.div(m.fma(mu, length, normal), m.fma(mu, mu, m.fill(real(1.0)))), zero)
        inside = m.mul(mu, normal)
        share = m.where_lt(
            inside, length, m.div(m.mul(mu, edge), m.larger(length, m.fill(real(1.0e-15)))), m.fill(real(1.0))
        )
        push = m.where_lt(inside, length, edge, m.larger(normal, zero))
        return m.fma3(n, push, m.scale3(f_t, share))

    @m.func
    def visit(t, i: int, k: int, T, L, mem):
        """Updates point_force and z by one Gauss-Seidel update of point i of body k."""
        zero = m.fill(real(0.0))
        at = L.contact + BLOCK * i
        leaf = T.leaf[k]
        y = L.contact_y + 3 * T.reach * i
        n = m.get3(mem, at + NORMAL, t)
        a = m.get_sym(mem, at + RESPONSE, t)
        soft = m.get(mem, at + SOFTNESS, t)
        step = m.get(mem, at + STEP, t)
        mu = m.get(mem, L.point_law + MU, t)
        old = m.get3(mem, at + START, t)
        others = m.add3(m.get3(mem, at + CONSTANT, t), m.point_velocity(t, leaf, y, T, L, mem))
        others = m.sub3(others, m.sym_apply(a, old))
        f = old
        for _step in range(STEPS):
            w = m.fma3(f, soft, m.sym_apply_plus(a, f, others))
            rise = zero
            if T.contact_law & COULOMB:
                w_t = m.fnma3(n, m.dot(n, w), w)
                rise = m.mul(mu, norm(w_t))
            f = projected(m.fnma3(m.fma3(n, rise, w), step, f), n, mu)
        m.put3(mem, L.point_force + 3 * i, t, f)
        change = m.sub3(f, old)
        m.point_add(t, leaf, y, change, T, L, mem)

    @m.func
    def can_push(i: int, T) -> int:
        """1 for a point on a body that can move."""
        k = T.point_body[i]
        found = 0
        if k >= 0:
            if T.leaf[k] >= 0:
                found = 1
        return found

    @m.func
    def go_further(t, T, L, mem):
        """Extrapolates z and the forces that the next sweep starts from along the change by the last sweep."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        back = zero
        for i in range(T.points):
            if can_push(i, T):
                at = L.contact + BLOCK * i
                f = m.get3(mem, L.point_force + 3 * i, t)
                way = m.sub3(f, m.get3(mem, at + BEFORE, t))
                back = m.dot_plus(m.sub3(m.get3(mem, at + START, t), f), way, back)
        pace = L.momentum
        old = m.where_lt(zero, back, one, m.get(mem, pace, t))
        new = m.fma(m.fill(real(0.5)), m.sqrt(m.fma(m.fill(real(4.0)), m.mul(old, old), one)), m.fill(real(0.5)))
        m.put(mem, pace, t, new)
        further = m.div(m.sub(old, one), new)
        for i in range(T.points):
            if can_push(i, T):
                at = L.contact + BLOCK * i
                f = m.get3(mem, L.point_force + 3 * i, t)
                m.put3(mem, at + START, t, m.fma3(m.sub3(f, m.get3(mem, at + BEFORE, t)), further, f))
                m.put3(mem, at + BEFORE, t, f)
        for i in range(T.dofs):
            z = m.get(mem, L.z + i, t)
            m.put(mem, L.z + i, t, m.fma(further, m.sub(z, m.get(mem, L.previous_z + i, t)), z))
            m.put(mem, L.previous_z + i, t, z)

    @m.func
    def push_alone(t, i: int, k: int, T, L, mem) -> m.lane:
        """START <- the force f of one projected gradient step from zero for point i of body k alone. Returns -f.w, with w at zero forces:
        the first-order decrease of the objective along f."""
        at = L.contact + BLOCK * i
        y = L.contact_y + 3 * T.reach * i
        w = m.add3(m.get3(mem, at + CONSTANT, t), m.point_velocity(t, T.leaf[k], y, T, L, mem))
        n = m.get3(mem, at + NORMAL, t)
        step = m.neg(m.get(mem, at + STEP, t))
        f = projected(m.scale3(w, step), n, m.get(mem, L.point_law + MU, t))
        m.put3(mem, at + START, t, f)
        return m.neg(m.dot(f, w))

    @m.func
    def begin_search(t, T, L, mem):
        """point_force, START, BEFORE <- the forces of push_alone for all points, times the common factor that minimises the objective;
        z <- with these forces. The start does not depend on the order of the points, so it is symmetric for symmetric contacts; sweeps
        from zero forces favour the first points."""
        zero = m.fill(real(0.0))
        m.put(mem, L.momentum, t, m.fill(real(1.0)))
        m.copy(t, L.previous_z, L.z, T.dofs, mem)
        gain = zero
        cost = m.fill(real(1.0e-30))
        for i in range(T.points):
            if can_push(i, T):
                gain = m.add(gain, push_alone(t, i, T.point_body[i], T, L, mem))
        for i in range(T.points):
            if can_push(i, T):
                at = L.contact + BLOCK * i
                f = m.get3(mem, at + START, t)
                cost = m.fma(m.get(mem, at + SOFTNESS, t), m.dot(f, f), cost)
                m.point_add(t, T.leaf[T.point_body[i]], L.contact_y + 3 * T.reach * i, f, T, L, mem)
        for i in range(T.dofs):
            change = m.sub(m.get(mem, L.z + i, t), m.get(mem, L.previous_z + i, t))
            cost = m.fma(change, change, cost)
        share = m.div(m.larger(gain, zero), cost)
        m.clear(t, L.point_force, 3 * T.points, mem)
        for i in range(T.points):
            if can_push(i, T):
                at = L.contact + BLOCK * i
                f = m.scale3(m.get3(mem, at + START, t), share)
                m.put3(mem, L.point_force + 3 * i, t, f)
                m.put3(mem, at + START, t, f)
                m.put3(mem, at + BEFORE, t, f)
        for i in range(T.dofs):
            z = m.get(mem, L.previous_z + i, t)
            z = m.fma(share, m.sub(m.get(mem, L.z + i, t), z), z)
            m.put(mem, L.z + i, t, z)
            m.put(mem, L.previous_z + i, t, z)

    @m.func
    def sweep_points(t, T, L, mem):
        go_further(t, T, L, mem)
        for i in range(T.points):
            if can_push(i, T):
                visit(t, i, T.point_body[i], T, L, mem)

    @m.shared
    def find_forces(t, T, L, mem):
        """point_force <- the solution; z <- with these forces."""
        begin_search(t, T, L, mem)
        for _sweep in range(T.contact_sweeps):
            sweep_points(t, T, L, mem)

    @m.func
    def factorize_with_roots(b, t, T, P, L, mem):
        """Rows of h <- L, root <- D^-1/2, zero for locked dofs."""
        zero = m.fill(real(0.0))
        m.joint_space_inertia(b, t, T, P, L, mem)
        m.factorize_apart(b, t, T, P, L, mem)
        for i in range(T.dofs):
            x = m.get(mem, L.pivot + i, t)
            root = m.sqrt(m.larger(x, m.fill(real(1.0e-30))))
            m.put(mem, L.root + i, t, m.where_lt(zero, x, root, zero))

    @m.func
    def touching(t, i: int, depth: m.lane, L, mem) -> m.lane:
        """1 if the point is enabled and not above the ground, else 0."""
        zero = m.fill(real(0.0))
        return m.where_lt(depth, zero, zero, m.get(mem, L.point_on + i, t))

    @m.func
    def acceleration_block(b, t, i: int, k: int, T, P, L, mem):
        """Stores the rows and the block of point i of body k; point_depth <- its depth. L.drift must have the result of newton_euler."""
        one = m.fill(real(1.0))
        n = m.get3(mem, m.ground_of(i, T, L), t)
        x = m.frame_place(t, i, k, T, L, mem)
        signed = m.point_depth(t, i, n, x, T, L, mem)
        on = touching(t, i, signed, L, mem)
        depth = m.mul(on, m.larger(signed, m.fill(real(0.0))))
        m.put(mem, L.point_depth + i, t, depth)
        if T.leaf[k] >= 0:
            twist = m.get6(mem, L.twist + 6 * k, t)
            v = m.velocity_at(twist, x)
            drift = m.get6(mem, L.drift + 6 * k, t)
            bias = m.add3(m.velocity_at(drift, x), m.cross_plus(twist.w, v, m.gravity(P, b)))
            mu = m.get(mem, L.point_law + MU, t)
            stiffness = m.get(mem, L.point_law + STIFFNESS, t)
            soft = m.fill(real(0.0))
            if T.contact_law & RELAXED:
                xi = impedance(t, depth, L, mem)
                stiffness = m.mul(stiffness, xi)
                square = m.mul(mu, mu)
                scale = m.mul(m.fill(real(2.0)), m.mul(square, m.add(one, square)))
                soft = m.div(m.mul(scale, m.sub(one, xi)), m.mul(xi, m.body_mass(P, b, k)))
            c = m.fnma3(n, m.mul(stiffness, depth), m.fma3(v, m.get(mem, L.point_law + DAMPING, t), bias))
            a = whitened_rows(t, i, k, x, T, L, mem)
            put_block(t, i, n, a, c, soft, on, T, L, mem)

    @m.func
    def contact_blocks(b, t, T, P, L, mem):
        """Stores the rows and blocks of all points; z <- the whitened accelerations without contact; point_depth <- their depths."""
        m.accelerating_forces(b, t, L.z, T, P, L, mem)
        factorize_with_roots(b, t, T, P, L, mem)
        m.whiten_row(t, L.z, T, L, mem)
        m.clear(t, L.point_depth, T.points, mem)
        for i in range(T.points):
            k = T.point_body[i]
            if k >= 0:
                acceleration_block(b, t, i, k, T, P, L, mem)

    @m.func
    def contact_results(t, T, L, mem):
        """vector, second <- accelerations and wrenches on links, from z and point_force."""
        m.unwhiten(t, T, L, mem)
        m.copy(t, L.vector, L.u, T.dofs, mem)
        m.base_accelerations(t, T, L, mem)
        m.clear(t, L.second, 6 * T.links, mem)
        for k in range(T.bodies):
            m.put6(mem, L.load + 6 * k, t, m.link_wrench(t, k, T, L, mem))
        for i in range(T.points):
            k = T.point_body[i]
            if k >= 0:
                f = m.get3(mem, L.point_force + 3 * i, t)
                w = m.spatial(f, m.cross(m.frame_place(t, i, k, T, L, mem), f))
                m.put6(mem, L.load + 6 * k, t, m.add6(m.get6(mem, L.load + 6 * k, t), w))
        for k in range(T.bodies):
            place = m.place_of(t, k, T.wrench_repr, L, mem)
            w = m.wrench_as(T.wrench_repr, m.get6(mem, L.load + 6 * k, t), place, m.get9(mem, L.rot + 9 * k, t))
            m.put6(mem, L.second + 6 * k, t, w)

    @m.func
    def eval_rigid_contact(b, t, T, P, L, mem):
        """point_force, point_depth <- force and depth of every contact point; second <- wrenches on the links in ``T.wrench_repr``: the
        given wrenches plus contact; vector <- accelerations. Accelerations and forces of a floating base are in ``T.output_repr``."""
        contact_blocks(b, t, T, P, L, mem)
        find_forces(t, T, L, mem)
        contact_results(t, T, L, mem)

    @m.func
    def bounded(t, most: m.lane, T, L, mem):
        """Scales point_force (the impulses p) and z by `most`, or by the largest factor s without energy gain, if less:
        s p.v + s^2 p.A p / 2 <= 0."""
        work = m.fill(real(0.0))
        energy = m.fill(real(1.0e-30))
        for i in range(T.dofs):
            z = m.get(mem, L.z + i, t)
            energy = m.fma(z, z, energy)
        for i in range(T.points):
            p = m.get3(mem, L.point_force + 3 * i, t)
            work = m.sub(work, m.dot(p, m.get3(mem, L.contact + BLOCK * i + CONSTANT, t)))
        work = m.larger(m.add(work, work), m.fill(real(0.0)))
        scale = m.smaller(most, m.div(work, energy))
        for i in range(3 * T.points):
            m.put(mem, L.point_force + i, t, m.mul(scale, m.get(mem, L.point_force + i, t)))
        for i in range(T.dofs):
            m.put(mem, L.z + i, t, m.mul(scale, m.get(mem, L.z + i, t)))

    @m.func
    def impact_blocks(b, t, T, P, L, mem):
        """Stores the rows and blocks of all points; z <- zero."""
        zero = m.fill(real(0.0))
        m.forward_kinematics(b, t, T, P, L, mem)
        factorize_with_roots(b, t, T, P, L, mem)
        m.clear(t, L.z, T.dofs, mem)
        m.clear(t, L.contact, BLOCK * T.points, mem)
        for i in range(T.points):
            if can_push(i, T):
                k = T.point_body[i]
                n = m.get3(mem, m.ground_of(i, T, L), t)
                x = m.frame_place(t, i, k, T, L, mem)
                on = touching(t, i, m.point_depth(t, i, n, x, T, L, mem), L, mem)
                v = m.velocity_at(m.get6(mem, L.twist + 6 * k, t), x)
                a = whitened_rows(t, i, k, x, T, L, mem)
                put_block(t, i, n, a, v, zero, on, T, L, mem)

    @m.func
    def bounce(t, T, L, mem):
        """impulse, acceleration <- the impulses and z of the first solution, times at most 1 + restitution. Prepares a second solution for
        the velocities after them, which stops points that still move into the ground: z <- zero."""
        one = m.fill(real(1.0))
        bounded(t, m.add(one, m.get(mem, L.point_law + RESTITUTION, t)), T, L, mem)
        m.copy(t, L.impulse, L.point_force, 3 * T.points, mem)
        for i in range(T.points):
            if can_push(i, T):
                at = L.contact + BLOCK * i
                v = m.point_velocity(t, T.leaf[T.point_body[i]], L.contact_y + 3 * T.reach * i, T, L, mem)
                m.put3(mem, at + CONSTANT, t, m.add3(m.get3(mem, at + CONSTANT, t), v))
                m.clear(t, at + START, 6, mem)
        m.copy(t, L.acceleration, L.z, T.dofs, mem)
        m.clear(t, L.z, T.dofs, mem)

    @m.func
    def impact_results(t, T, L, mem):
        """next_v, point_force <- velocities after the impact and impulses, from the solutions."""
        bounded(t, m.fill(real(1.0)), T, L, mem)
        if T.contact_law & BOUNCES:
            m.put_sums(t, L.point_force, L.point_force, L.impulse, 3 * T.points, mem)
            m.put_sums(t, L.z, L.z, L.acceleration, T.dofs, mem)
        m.unwhiten(t, T, L, mem)
        m.put_sums(t, L.next_v, L.v, L.u, T.dofs, mem)

    @m.func
    def eval_impact(b, t, T, P, L, mem):
        """next_v <- velocities after the impact of the touching points; point_force <- the impulses on these points."""
        impact_blocks(b, t, T, P, L, mem)
        find_forces(t, T, L, mem)
        if T.contact_law & BOUNCES:
            bounce(t, T, L, mem)
            find_forces(t, T, L, mem)
        impact_results(t, T, L, mem)

    return locals()
