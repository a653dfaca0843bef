"""Constraint rows of contact points, see `kernels.rows`.

Each point has a normal and two tangents (and, where asked, a spin about the normal and two rolling directions), swept together by
block projected Gauss-Seidel:

    normal      p_n >= 0;  an implicit spring-damper of natural frequency omega and damping ratio zeta per unit of effective mass
                (Catto, Soft Constraints, GDC 2011) aims at gap + dt u_n = 0 while apart; an impact at speed -u leaves at e u
    friction    (p_1, p_2) in the disc of radius mu p_n, by a projected gradient step of length 1 / largest eigenvalue
    torsion     |p_spin| <= mu_torsional p_n,   rolling  |p_roll| <= mu_rolling p_n
"""

import types

from newton_like.kernels.rows import MASS, SOFTNESS, TARGET

from newton_like.kernels.tree import (  # isort: skip
    DAMPING_RATIO, GIVEN, GIVEN_MARGIN, GIVEN_NORMAL, GIVEN_ON, GIVEN_OTHER_MARGIN, GIVEN_OTHER_POINT, GIVEN_POINT,
    GIVEN_SURFACE, MU, MU_ROLLING, MU_TORSIONAL, NORMAL, OMEGA, RESTITUTION, SURFACE, TANGENT_1, TANGENT_2,
)  # fmt: skip

# MASS, SOFTNESS and TARGET of the normal first; then two entries of the response matrix, and steps of projected gradients. The other
# entries of the response matrix come last: those along the normal and along the tangents.
# REBOUND, for single bodies: e^2 (u + target) / 2 of a point that approaches fast at u and is not reached within the step, else zero. An
# impulse p at this point, which an impact elsewhere causes, takes the energy -p (u + target) / 2, of which restitution e would give back
# the share e^2.
CONTACT = 17
(
    NORMAL_SLIDE_1, NORMAL_SLIDE_2, SLIDE_STEP, MU_SLIDE, ON, SPIN_MASS, ROLL_STEP, MU_SPIN, MU_ROLL, REBOUND, NORMAL_NORMAL, SLIDE_11,
    SLIDE_12, SLIDE_22,
) = range(TARGET + 1, CONTACT)  # fmt: skip


STIFFEST, STEEPEST = 1.0e-4, 1.0e-6
"""Where bodies touch each other, a contact acts if its response along the normal [1/kg] is above these parts of the inverse mass of its
trees and of the response across the normal. Smaller ones are rounding errors."""

PUSH = 2.0
"""Where bodies touch each other, a push v out of a penetration becomes v sqrt(PUSH m k), if this is smaller: m is the mass of the trees of
both bodies, k the response along the normal while friction acts. So a push adds no more energy than m v^2. Bodies that float freely have
k >= 1 / m, and are pushed as they are. Joints may let bodies move in few directions only: k is zero where friction jams them."""


def contact_row_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``contact_build`` and ``contact_sweep`` of contacts with the world, ``pair_build``, and
    ``listed_sweep`` of contacts of clusters with pairs."""
    real = m.real

    @m.func
    def tree_mass(t, tree: int, L, mem) -> m.lane:
        """The mass of a tree; zero for -1."""
        mass = m.fill(real(0.0))
        if tree >= 0:
            mass = m.get(mem, L.tree_mass + tree, t)
        return mass

    @m.func
    def rubbing_response(k: m.Products, mu: m.lane) -> m.lane:
        """A lower bound of the response along the normal while a friction coefficient mu acts: that with sliding, or that with sticking,
        a_nn - a_nt a_tt^-1 a_tn, whichever is larger."""
        tiny = m.fill(real(1.0e-6))
        sliding = m.fnma(mu, m.sqrt(m.fma(k.n1, k.n1, m.mul(k.n2, k.n2))), k.nn)
        more = m.fma(tiny, m.add(k.a11, k.a22), m.fill(real(1.0e-20)))
        a11 = m.add(k.a11, more)
        a22 = m.add(k.a22, more)
        area = m.fnma(k.a12, k.a12, m.mul(a11, a22))
        twice = m.mul(m.fill(real(-2.0)), k.a12)
        part = m.fma(m.mul(k.n1, k.n1), a22, m.fma(m.mul(k.n2, k.n2), a11, m.mul(twice, m.mul(k.n1, k.n2))))
        return m.larger(m.fill(real(0.0)), m.larger(sliding, m.sub(k.nn, m.div(part, area))))

    @m.func
    def push_share(ratio: m.lane) -> m.lane:
        """The share of a push for the product m k of PUSH."""
        return m.sqrt(m.smaller(m.fill(real(1.0)), m.mul(m.fill(real(PUSH)), ratio)))

    @m.func
    def put_coefficients(
        t, a: int, gap: m.lane, on: m.lane, mass: m.lane, before: m.lane, k: m.Products, material: int, o, T, L, mem
    ) -> m.lane:  # fmt: skip
        """The coefficients of active contact a, from the products k of its rows: of a normal with a spring and impacts, and of sliding.
        Returns one where it acts, which is where `on` is one and, between bodies, where the response along the normal is no rounding error.

        Args:
            gap: distance of the surfaces.
            mass: between bodies, that of the trees of both.
            before: velocity along the normal before the step.
            material: where the material is in memory.
        """
        zero = m.fill(real(0.0))
        dt = m.fill(o.dt)
        tiny = m.fill(real(1.0e-12))
        ann = m.larger(k.nn, tiny)
        if T.pairs > 0:
            # bodies that joints hold along the normal: no impulse moves them apart, and a huge one would be friction without bound
            mass = m.larger(mass, tiny)
            least = m.div(m.fill(real(STIFFEST)), mass)
            on = m.where_lt(ann, m.fma(m.fill(real(STEEPEST)), m.add(k.a11, k.a22), least), zero, on)
        soft = m.spring(gap, m.get(mem, material + OMEGA, t), m.get(mem, material + DAMPING_RATIO, t), dt)
        # the penetration is pushed out at no more than push_speed
        push = m.smaller(m.fill(o.push_speed), soft.push)
        if T.pairs > 0:
            rubbing = rubbing_response(k, m.get(mem, material + MU, t))
            share = push_share(m.mul(mass, rubbing))
            m.put(mem, L.push_share + a, t, share)
            push = m.mul(push, share)
        target = m.where_lt(gap, zero, push, m.neg(m.mul(gap, m.fill(o.inverse_dt))))
        # an impact bounces: rigidly, if it is fast enough and reached within this step
        restitution = m.get(mem, material + RESTITUTION, t)
        bounce = m.neg(m.mul(restitution, before))
        slow = m.larger(m.add(before, m.fill(o.restitution_speed)), m.neg(bounce))
        calm = m.larger(m.fma(dt, before, gap), slow)
        # a contact may act in other worlds of the block only
        calm = m.where_lt(zero, on, calm, m.fill(real(1.0)))
        at = L.contact + CONTACT * a
        gain = m.where_lt(calm, zero, m.fill(real(1.0)), soft.mass)
        m.put(mem, at + MASS, t, m.mul(on, m.mul(gain, m.rcp(ann))))
        m.put(mem, at + SOFTNESS, t, m.where_lt(calm, zero, zero, soft.softness))
        m.put(mem, at + TARGET, t, m.where_lt(calm, zero, bounce, target))
        if T.bodies == 1:
            half = m.mul(m.fill(real(0.5)), m.sub(m.mul(restitution, target), bounce))
            rebound = m.where_lt(calm, zero, zero, m.where_lt(slow, zero, m.mul(restitution, half), zero))
            m.put(mem, at + REBOUND, t, rebound)
        m.put(mem, at + NORMAL_SLIDE_1, t, k.n1)
        m.put(mem, at + NORMAL_SLIDE_2, t, k.n2)
        if T.polished != 0:
            m.put(mem, at + NORMAL_NORMAL, t, k.nn)
            m.put(mem, at + SLIDE_11, t, k.a11)
            m.put(mem, at + SLIDE_12, t, k.a12)
            m.put(mem, at + SLIDE_22, t, k.a22)
        m.put(mem, at + SLIDE_STEP, t, m.mul(on, m.inverse_eigenvalue(k.a11, k.a12, k.a22)))
        m.put(mem, at + MU_SLIDE, t, m.get(mem, material + MU, t))
        m.put(mem, at + ON, t, on)
        return on

    @m.func
    def put_turning(t, at: int, on: m.lane, k: m.Products, material: int, mem):
        """The coefficients at `at` of torsional and rolling friction, from the products k of its rows."""
        m.put(mem, at + SPIN_MASS, t, m.mul(on, m.rcp(m.larger(k.nn, m.fill(real(1.0e-12))))))
        m.put(mem, at + ROLL_STEP, t, m.mul(on, m.inverse_eigenvalue(k.a11, k.a12, k.a22)))
        m.put(mem, at + MU_SPIN, t, m.get(mem, material + MU_TORSIONAL, t))
        m.put(mem, at + MU_ROLL, t, m.get(mem, material + MU_ROLLING, t))

    @m.func
    def warm_work(t, p: int, at: int, on: m.lane, o, L, mem):
        """Adds what the remembered force at p does along the target of the row with the coefficients at `at`."""
        work = m.mul(m.mul(on, m.mul(m.fill(o.dt), m.get(mem, p, t))), m.get(mem, at + TARGET, t))
        m.put(mem, L.warm_work, t, m.add(m.get(mem, L.warm_work, t), work))

    @m.shared
    def build_rows(
        b, t, a: int, c: int, leaf: int, other: int, shared: int, tree: int, tree2: int, body: int, body2: int, material: int, law: int,
        x: m.Vec3, x2: m.Vec3, n: m.Vec3, u1: m.Vec3, u2: m.Vec3, o, T, P, L, mem,
    ):  # fmt: skip
        """The rows of candidate c as active contact a, along (n, u1, u2), with the material at `material` in memory. The span of `leaf`,
        `other` and `shared` has the dofs of the body that n points to and of the other one; the point is at x and x2 about the origins
        of their trees, which are `tree` and `tree2`, -1 for the world. With soft laws, the contact has the law number `law`, and its bodies
        are `body` and `body2`, -1 for the world."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        dt = m.fill(o.dt)
        size = m.span_size(leaf, other, shared, T)
        gap = m.get(mem, L.gap + c, t)
        on = m.where_lt(m.get(mem, L.near + c, t), zero, one, zero)
        y = L.contact_y + T.reach * T.contact_rows * a
        weight = zero
        if T.soft_contacts > 0:
            on = m.law_on(b, law, gap, on, P)
            weight = m.inverse_weight(t, body, y, n, u1, u2, T, L, mem)
            weight = m.add(weight, m.inverse_weight(t, body2, y, n, u1, u2, T, L, mem))
        before = m.span_point_rows(t, leaf, other, shared, y, x, x2, n, u1, u2, T, L, mem)
        k = m.span_products(t, size, y, T, mem)
        mass = zero
        if T.pairs > 0:
            mass = m.add(tree_mass(t, tree, L, mem), tree_mass(t, tree2, L, mem))
        on = put_coefficients(t, a, gap, on, mass, before, k, material, o, T, L, mem)
        at = L.contact + CONTACT * a
        if T.soft_contacts > 0:
            half = m.fill(real(0.5))
            row = m.law_row(b, law, gap, before, weight, m.fill(o.push_speed), o, P)
            least = m.rcp(m.add(m.larger(k.nn, m.fill(real(1.0e-12))), row.compliance))
            m.put(mem, at + MASS, t, m.where_lt(half, row.soft, m.mul(on, least), m.get(mem, at + MASS, t)))
            part = m.mul(row.compliance, least)
            m.put(mem, at + SOFTNESS, t, m.where_lt(half, row.soft, part, m.get(mem, at + SOFTNESS, t)))
            m.put(mem, at + TARGET, t, m.where_lt(half, row.soft, row.target, m.get(mem, at + TARGET, t)))
            if T.bodies == 1:
                m.put(mem, at + REBOUND, t, m.where_lt(half, row.soft, zero, m.get(mem, at + REBOUND, t)))
        if T.contact_rows == 6:
            m.span_angular_rows(t, leaf, other, shared, y + 3 * T.reach, n, u1, u2, T, L, mem)
            put_turning(t, at, on, m.span_products(t, size, y + 3 * T.reach, T, mem), material, mem)
        p = L.impulse + T.contact_rows * c
        warm_work(t, p, at, on, o, L, mem)
        for j in range(T.contact_rows // 3):
            first = p + 3 * j
            warm = m.scale3(m.get3(mem, first, t), m.mul(on, dt))
            m.put3(mem, first, t, warm)
            m.span_point_add(t, leaf, other, shared, y + 3 * j * T.reach, warm, T, L, mem)

    @m.func
    def chain_velocity(t, leaf: int, size: int, y: int, T, L, mem) -> m.Vec3:
        """y . z, y' . z, y'' . z for three rows of the chain of dof `leaf`"""
        return m.point_velocity(t, leaf, y, T, L, mem)

    @m.func
    def chain_point_add(t, leaf: int, size: int, y: int, p: m.Vec3, T, L, mem):
        """z <- z + p.x y + p.y y' + p.z y'' for three rows of a chain"""
        m.point_add(t, leaf, y, p, T, L, mem)

    @m.func
    def row_dot(t, leaf: int, size: int, y: int, T, L, mem) -> m.lane:
        """y . z for a row of a chain"""
        return m.chain_dot(t, leaf, y, T, L, mem)

    @m.func
    def row_add(t, leaf: int, size: int, y: int, p: m.lane, T, L, mem):
        """z <- z + p y for a row of a chain"""
        m.chain_add(t, leaf, y, p, T, L, mem)

    @m.func
    def listed_velocity(t, at: int, size: int, y: int, T, L, mem) -> m.Vec3:
        """y . z, y' . z, y'' . z for three rows of the dofs that the table of pairs lists from `at` on"""
        return m.vec(
            m.listed_dot(mem, t, y, L.z, T.pair_table, at, size),
            m.listed_dot(mem, t, y + T.reach, L.z, T.pair_table, at, size),
            m.listed_dot(mem, t, y + 2 * T.reach, L.z, T.pair_table, at, size),
        )

    @m.func
    def listed_point_add(t, at: int, size: int, y: int, p: m.Vec3, T, L, mem):
        """z <- z + p.x y + p.y y' + p.z y'' for three rows of listed dofs"""
        m.listed_add3(mem, t, y, T.reach, p.x, p.y, p.z, L.z, T.pair_table, at, size)

    @m.func
    def listed_row_dot(t, at: int, size: int, y: int, T, L, mem) -> m.lane:
        """y . z for a row of listed dofs"""
        return m.listed_dot(mem, t, y, L.z, T.pair_table, at, size)

    @m.func
    def listed_row_add(t, at: int, size: int, y: int, p: m.lane, T, L, mem):
        """z <- z + p y for a row of listed dofs"""
        m.listed_add(mem, t, y, p, L.z, T.pair_table, at, size)

    def visit_function(velocity, point_add, dot, add):
        """The visit of a contact, with the products and sums of its rows."""

        @m.func
        def visit_contact(t, a: int, c: int, at: int, size: int, T, L, mem):
            """One Gauss-Seidel visit of active contact a, candidate c. `at` and `size` tell the dofs of its rows: the last dof of a
            chain and any number, or where they are listed and how many they are."""
            reach = T.reach
            row = L.contact + CONTACT * a
            p = L.impulse + T.contact_rows * c
            y = L.contact_y + reach * T.contact_rows * a
            on = m.get(mem, row + ON, t)
            u = velocity(t, at, size, y, T, L, mem)
            old = m.get(mem, p, t)
            dn = m.mul(on, m.sub(m.unilateral(t, row, u.x, old, mem), old))
            pn = m.add(old, dn)
            m.put(mem, p, t, pn)
            u1 = m.fma(m.get(mem, row + NORMAL_SLIDE_1, t), dn, u.y)
            u2 = m.fma(m.get(mem, row + NORMAL_SLIDE_2, t), dn, u.z)
            step = m.get(mem, row + SLIDE_STEP, t)
            o1 = m.get(mem, p + 1, t)
            o2 = m.get(mem, p + 2, t)
            m.disc(
                t, p + 1, m.fnma(u1, step, o1), m.fnma(u2, step, o2), m.mul(m.get(mem, row + MU_SLIDE, t), pn), on, mem
            )
            d1 = m.sub(m.get(mem, p + 1, t), o1)
            d2 = m.sub(m.get(mem, p + 2, t), o2)
            point_add(t, at, size, y, m.vec(dn, d1, d2), T, L, mem)
            if T.contact_rows == 6:
                y3 = y + 3 * reach
                spin = m.get(mem, p + 3, t)
                bound = m.mul(m.get(mem, row + MU_SPIN, t), pn)
                goal = m.fnma(dot(t, at, size, y3, T, L, mem), m.get(mem, row + SPIN_MASS, t), spin)
                change = m.mul(on, m.sub(m.larger(m.neg(bound), m.smaller(bound, goal)), spin))
                m.put(mem, p + 3, t, m.add(spin, change))
                add(t, at, size, y3, change, T, L, mem)
                y4 = y3 + reach
                y5 = y4 + reach
                step = m.get(mem, row + ROLL_STEP, t)
                o1 = m.get(mem, p + 4, t)
                o2 = m.get(mem, p + 5, t)
                w1 = m.fnma(dot(t, at, size, y4, T, L, mem), step, o1)
                w2 = m.fnma(dot(t, at, size, y5, T, L, mem), step, o2)
                m.disc(t, p + 4, w1, w2, m.mul(m.get(mem, row + MU_ROLL, t), pn), on, mem)
                add(t, at, size, y4, m.sub(m.get(mem, p + 4, t), o1), T, L, mem)
                add(t, at, size, y5, m.sub(m.get(mem, p + 5, t), o2), T, L, mem)

        return visit_contact

    visit_on_chain = visit_function(chain_velocity, chain_point_add, row_dot, row_add)
    visit_listed = visit_function(listed_velocity, listed_point_add, listed_row_dot, listed_row_add)

    @m.func
    def contact_build(b, t, a: int, c: int, s: int, k: int, pl: int, o, T, P, L, mem):
        """The rows of candidate c (of collider s: body k against plane pl) as active contact a, warm-started."""
        for i in range(6):
            m.put(mem, L.material + i, t, m.collider_param(P, b, s, SURFACE + MU + i))
        if T.laws > 0:
            m.law_material(b, t, L.material, s, P, mem)
        n = m.plane_vec(P, b, pl, NORMAL)
        u1 = m.plane_vec(P, b, pl, TANGENT_1)
        u2 = m.plane_vec(P, b, pl, TANGENT_2)
        x = m.get3(mem, L.point + 3 * c, t)
        build_rows(
            b, t, a, c, T.leaf[k], -1, 0, m.tree_of(k, T), -1, k, -1, L.material, s, x, x, n, u1, u2, o, T, P, L, mem
        )  # fmt: skip

    @m.func
    def contact_sweep(t, a: int, c: int, k: int, T, L, mem):
        """One Gauss-Seidel visit of active contact a, candidate c of body k against the world."""
        visit_on_chain(t, a, c, T.leaf[k], 0, T, L, mem)

    @m.func
    def pair_rows(b, t, a: int, c: int, p: int, material: int, law: int, o, T, P, L, mem):
        """The rows of candidate c of the pair p as active contact a, with the material at `material` in memory. With laws, it has the law
        number `law`."""
        n = m.get3(mem, L.normal + 3 * (c - T.first_paired), t)
        k = m.shape_body(m.pair_one(p, T), T)
        j = m.shape_body(m.pair_two(p, T), T)
        # about the origin of the first shape's tree, and about that of the second one's
        one = m.get3(mem, L.point + 3 * c, t)
        two = m.sub3(one, m.between_origins(t, k, j, T, L, mem))
        tree = m.moving_tree(j, m.pair_leaf(p, T), T)
        tree2 = m.moving_tree(k, m.pair_other(p, T), T)
        build_rows(
            b, t, a, c, m.pair_leaf(p, T), m.pair_other(p, T), m.pair_shared(p, T), tree, tree2, j, k, material, law, two, one,
            n, m.tangent(n), m.second_tangent(n), o, T, P, L, mem,
        )  # fmt: skip

    @m.func
    def pair_build(b, t, a: int, c: int, p: int, o, T, P, L, mem):
        """The rows of candidate c of the pair p as active contact a, warm-started."""
        m.mix_materials(b, t, p, T, P, L, mem)
        if T.laws > 0:
            m.law_material(b, t, L.material, T.colliders + p, P, mem)
        pair_rows(b, t, a, c, p, L.material, T.colliders + p, o, T, P, L, mem)

    @m.func
    def listed_sweep(t, a: int, c: int, at: int, size: int, T, L, mem):
        """One Gauss-Seidel visit of active contact a, candidate c of a cluster with pairs. The table of pairs lists the `size` dofs of
        its rows from `at` on."""
        visit_listed(t, a, c, at, size, T, L, mem)

    @m.func
    def given_candidate(b, t, c: int, k: int, dt: m.lane, T, L, mem):
        """A contact that was handed over, at GIVEN * c in memory, as candidate c of body k: where it is now."""
        at = L.given + GIVEN * c
        half = m.fill(real(0.5))
        rot = m.get9(mem, L.rot + 9 * k, t)
        x = m.apply_plus(rot, m.get3(mem, at + GIVEN_POINT, t), m.get3(mem, L.pos + 3 * k, t))
        other = m.sub3(m.get3(mem, at + GIVEN_OTHER_POINT, t), m.get3(mem, L.origin + 3 * m.tree_of(k, T), t))
        n = m.get3(mem, at + GIVEN_NORMAL, t)
        gap = m.sub(
            m.dot(n, m.sub3(x, other)), m.add(m.get(mem, at + GIVEN_MARGIN, t), m.get(mem, at + GIVEN_OTHER_MARGIN, t))
        )
        m.put(mem, L.gap + c, t, gap)
        m.put(mem, L.near + c, t, m.neg(m.get(mem, at + GIVEN_ON, t)))
        m.put3(mem, L.point + 3 * c, t, m.fnma3(n, m.fma(half, gap, m.get(mem, at + GIVEN_MARGIN, t)), x))

    @m.func
    def given_build(b, t, a: int, c: int, k: int, o, T, P, L, mem):
        """The rows of a contact that was handed over."""
        at = L.given + GIVEN * c
        n = m.get3(mem, at + GIVEN_NORMAL, t)
        x = m.get3(mem, L.point + 3 * c, t)
        build_rows(
            b, t, a, c, T.leaf[k], -1, 0, m.tree_of(k, T), -1, k, -1, at + GIVEN_SURFACE, c, x, x, n, m.tangent(n), m.second_tangent(n),
            o, T, P, L, mem,
        )  # fmt: skip

    @m.func
    def given_pair_candidate(b, t, c: int, p: int, T, L, mem):
        """A contact of pair p that was handed over as candidate c: where it is now, and its impulses in row axes. Its point is on the
        second shape's body, the other point on the first one's, both in link frames."""
        at = L.given + GIVEN * c
        half = m.fill(real(0.5))
        k = m.shape_body(m.pair_one(p, T), T)
        j = m.shape_body(m.pair_two(p, T), T)
        one = m.apply_plus(
            m.get9(mem, L.rot + 9 * k, t), m.get3(mem, at + GIVEN_OTHER_POINT, t), m.get3(mem, L.pos + 3 * k, t)
        )
        two = m.apply_plus(
            m.get9(mem, L.rot + 9 * j, t), m.get3(mem, at + GIVEN_POINT, t), m.get3(mem, L.pos + 3 * j, t)
        )
        two = m.add3(two, m.between_origins(t, k, j, T, L, mem))
        n = m.get3(mem, at + GIVEN_NORMAL, t)
        margin = m.get(mem, at + GIVEN_MARGIN, t)
        gap = m.sub(m.dot(n, m.sub3(two, one)), m.add(margin, m.get(mem, at + GIVEN_OTHER_MARGIN, t)))
        m.put(mem, L.gap + c, t, gap)
        m.put(mem, L.near + c, t, m.neg(m.get(mem, at + GIVEN_ON, t)))
        m.put3(mem, L.point + 3 * c, t, m.fnma3(n, m.fma(half, gap, margin), two))
        m.put3(mem, L.normal + 3 * (c - T.first_paired), t, n)
        for a in range(T.contact_rows // 3):
            m.in_row_axes(t, L.impulse + T.contact_rows * c + 3 * a, n, mem)

    @m.func
    def given_pair_build(b, t, a: int, c: int, p: int, o, T, P, L, mem):
        """The rows of a contact of pair p that was handed over."""
        pair_rows(b, t, a, c, p, L.given + GIVEN * c + GIVEN_SURFACE, c, o, T, P, L, mem)

    return locals()
