"""Contact points of any two convex shapes.

The signed distance is the largest one by which a plane separates both shapes: over unit vectors n it is the maximum of -h(n), with h
the support function of their difference. Shapes that are apart have the distance of the origin from the difference. If they overlap, the
expanding polytope gives the direction of the shortest way out up to its tolerance. A few shots then improve it: the distance search from
a point just outside along n gives the normal at the closest point, which is n itself where the depth has a minimum.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import AXES, SHAPE
from newton_like.kernels.collision.pairs.work import CORNER, LIMIT, PER_UNIT, SHAPES, SIMPLEX, SMALLEST, VISITS
from newton_like.kernels.collision.plane import CAPSULE, FAR


def convex_pairs(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``core_touch``, ``touch_along`` and ``convex_points``."""
    real = m.real
    single = real is wp.float32
    # Below NEAR the direction of a distance is improved by shots, below INSIDE it is rounding error; in units of the pair's size.
    NEAR = 1.0e-3 if single else 1.0e-6
    INSIDE = 2.0e-5 if single else 4.0e-12
    # the square of a sine or a ratio of lengths that is a rounding error
    FLAT_SOLID = 1.0e-9 if single else 1.0e-20
    # by how much a search may end too far out, in units and as a share of the distance
    EXCESS = 3.0e-5 if single else 1.0e-8
    # how far outside the shots start, in units
    OUTSIDE = 6.0e-2
    # shots end when one changes the depth by no more
    GAINED = 5.0e-6 if single else 1.0e-10
    SEARCH, SHOTS = 48, 8
    # the search along a direction ends so close to the surface, in units
    ARRIVED, APPROACHES = 2.0e-3, 12

    @m.struct
    class Touch:
        """The normal, the signed distance of the cores and the closest point of the first core, in units."""

        n: m.Vec3
        distance: m.lane
        first: m.Vec3

    @m.func
    def normalized(v: m.Vec3, other: m.Vec3) -> m.Vec3:
        """v as a unit vector, or `other` if v is zero."""
        square = m.dot(v, v)
        least = m.fill(real(SMALLEST))
        return m.where3_lt(least, square, m.scale3(v, m.rcp(m.sqrt(m.larger(square, least)))), other)

    @m.func
    def any_normal(edge: m.Vec3) -> m.Vec3:
        """A unit vector perpendicular to edge, or any one if edge is zero."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        x = m.magnitude(edge.x)
        y = m.magnitude(edge.y)
        z = m.magnitude(edge.z)
        a = m.where3_lt(y, x, m.vec(zero, one, zero), m.vec(one, zero, zero))
        a = m.where3_lt(z, m.smaller(x, y), m.vec(zero, zero, one), a)
        return normalized(m.cross(edge, a), a)

    @m.shared
    def solid_simplex(
        b, t, wanted: m.lane, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int, T, P, L, mem
    ) -> m.lane:
        """Adds support points to a flat simplex that contains the origin, where `wanted` is one. Returns one where it became a
        tetrahedron, and zero where the difference is flat or the simplex a point."""
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        one = m.fill(real(1.0))
        flat = m.fill(real(FLAT_SOLID))
        at = L.pair_work + SIMPLEX
        p = m.get3(mem, at, t)
        q = m.get3(mem, at + CORNER, t)
        r = m.get3(mem, at + 2 * CORNER, t)
        # the longest edge first: it contains the third corner if all are on a line
        pq = m.sub3(q, p)
        qr = m.sub3(r, q)
        rp = m.sub3(p, r)
        long_pq = m.dot(pq, pq)
        long_qr = m.dot(qr, qr)
        long_rp = m.dot(rp, rp)
        is_qr = m.where_lt(m.larger(long_pq, long_rp), long_qr, one, zero)
        is_rp = m.where_lt(m.larger(long_pq, long_qr), long_rp, one, zero)
        c0 = m.where3_lt(half, is_qr, q, m.where3_lt(half, is_rp, r, p))
        c1 = m.where3_lt(half, is_qr, r, m.where3_lt(half, is_rp, p, q))
        c2 = m.where3_lt(half, is_qr, p, m.where3_lt(half, is_rp, q, r))
        edge = m.sub3(c1, c0)
        square = m.dot(edge, edge)
        d = any_normal(edge)
        for _side in range(int(2)):
            f = m.sub3(c2, c0)
            n = m.cross(edge, f)
            g = m.difference(b, t, d, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
            c2 = m.where3_lt(m.dot(n, n), m.mul(flat, m.mul(square, square)), g.w, c2)
            d = m.neg3(d)
        n = normalized(m.cross(edge, m.sub3(c2, c0)), d)
        c3 = c2
        height = zero
        for _side in range(int(2)):
            g = m.difference(b, t, n, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
            reach = m.dot(n, m.sub3(g.w, c0))
            c3 = m.where3_lt(height, reach, g.w, c3)
            height = m.larger(height, reach)
            n = m.neg3(n)
        m.put_vertex(t, 0, wanted, c0, c0, L, mem)
        m.put_vertex(t, 1, wanted, c1, c1, L, mem)
        m.put_vertex(t, 2, wanted, c2, c2, L, mem)
        m.put_vertex(t, 3, wanted, c3, c3, L, mem)
        n = m.cross(edge, m.sub3(c2, c0))
        volume = m.dot(n, m.sub3(c3, c0))
        least = m.mul(flat, m.mul(square, m.mul(square, square)))
        return m.where_lt(m.larger(least, m.fill(real(SMALLEST))), m.mul(volume, volume), wanted, zero)

    @m.func
    def best_axis(
        b, t, n: m.Vec3, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int, T, P, L, mem
    ) -> m.Vec3:
        """The one of n, the axes of both shapes and their opposites along which the difference reaches least."""
        best = n
        g = m.difference(b, t, n, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        least = m.dot(g.w, n)
        axes = int(7)
        for i in range(axes):
            d = n
            if i > 0:
                at = L.pair_work + SHAPES + AXES + SHAPE * ((i - 1) // 3) + (i - 1) % 3
                d = m.vec(m.get(mem, at, t), m.get(mem, at + 3, t), m.get(mem, at + 6, t))
            for _side in range(int(2)):
                g = m.difference(b, t, d, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
                reach = m.dot(g.w, d)
                best = m.where3_lt(reach, least, d, best)
                least = m.smaller(reach, least)
                d = m.neg3(d)
        return best

    @m.shared
    def shortest_way(
        b, t, start: Touch, deep: m.lane, kind: int, other: int, hull_a: int, count_a: int, hull_b: int,
        count_b: int, T, P, L, mem,
    ) -> m.Vec3:  # fmt: skip
        """The direction of the shortest way out, up to the polytope's tolerance.

        Args:
            start: the result of the distance search from the origin.
            deep: one where the origin is in the simplex.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        n = start.n
        # the search ends with a triangle or an edge that contains the origin where the surfaces touch, and in planes of symmetry
        touching = m.where_lt(start.distance, m.fill(real(INSIDE)), m.sub(one, deep), zero)
        if m.any_lt(zero, touching):
            found = solid_simplex(b, t, touching, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
            deep = m.larger(deep, found)
            touching = m.sub(touching, found)
        if m.any_lt(zero, touching):
            # across a flat difference, or along an axis
            at = L.pair_work + SIMPLEX
            p = m.get3(mem, at, t)
            edge = m.cross(m.sub3(m.get3(mem, at + CORNER, t), p), m.sub3(m.get3(mem, at + 2 * CORNER, t), p))
            axis = best_axis(b, t, normalized(edge, n), kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
            n = m.where3_lt(half, touching, axis, n)
        if m.any_lt(zero, deep):
            visits = int(VISITS)
            way = m.way_out(b, t, deep, visits, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
            n = m.where3_lt(half, deep, normalized(way, n), n)
        return n

    @m.shared
    def improved(
        b, t, start: Touch, wanted: m.lane, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int,
        T, P, L, mem,
    ) -> Touch:  # fmt: skip
        """The touch of least depth near the direction of `start`, where `wanted` is one; else `start`."""
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        one = m.fill(real(1.0))
        n = start.n
        first = start.first
        best_n = n
        best_first = first
        best = m.where_lt(half, wanted, m.fill(real(-FAR)), start.distance)
        previous = n
        previous_miss = m.zero3()
        last = m.fill(real(FAR))
        going = wanted
        shots = int(SHOTS)
        for shot in range(shots + 1):
            if m.any_lt(zero, going):
                g = m.difference(b, t, n, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
                reach = m.dot(g.w, n)
                if shot == 0:
                    first = g.first
                # a later shot has the closest point, not any point of the face that is farthest along the normal
                better = m.where_lt(m.sub(best, m.fill(real(GAINED))), m.neg(reach), going, zero)
                best = m.where_lt(half, better, m.neg(reach), best)
                best_n = m.where3_lt(half, better, n, best_n)
                best_first = m.where3_lt(half, better, first, best_first)
                going = m.where_lt(m.fill(real(GAINED)), m.magnitude(m.sub(reach, last)), going, zero)
                last = reach
                if shot < shots:
                    o = m.scale3(n, m.add(reach, m.fill(real(OUTSIDE))))
                    visits = int(SEARCH)
                    far = m.fill(real(FAR))
                    r = m.nearest(
                        b, t, o, n, going, far, visits, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem
                    )
                    first = r.first
                    aim = normalized(m.neg3(r.y), n)
                    miss = m.sub3(aim, n)
                    # extrapolates the fixed point from the last two shots
                    goal = aim
                    if shot > 0:
                        change = m.sub3(miss, previous_miss)
                        share = m.div(m.dot(miss, change), m.larger(m.dot(change, change), m.fill(real(SMALLEST))))
                        share = m.within(share, m.fill(real(-8.0)), one)
                        goal = m.fnma3(m.sub3(aim, previous), share, aim)
                    previous = aim
                    previous_miss = miss
                    n = normalized(goal, aim)
        return Touch(best_n, best, best_first)

    @m.shared
    def core_touch(
        b, t, middle: m.Vec3, limit: m.lane, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int,
        T, P, L, mem,
    ) -> Touch:  # fmt: skip
        """How both cores touch. Where their distance is above `limit`, in units, the result is any distance above it."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        axes = m.get9(mem, L.pair_work + SHAPES + AXES, t)
        start = normalized(middle, m.column(axes, 2))
        visits = int(SEARCH)
        r = m.nearest(
            b, t, m.zero3(), start, one, limit, visits, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem
        )
        distance = m.sqrt(m.dot(r.y, r.y))
        near = m.where_lt(distance, m.fill(real(NEAR)), one, r.inside)
        touch = Touch(normalized(m.neg3(r.y), start), distance, r.first)
        # rounding errors may stop a search early: then no plane separates the shapes by the distance
        g = m.difference(b, t, touch.n, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        excess = m.add(distance, m.dot(g.w, touch.n))
        most = m.fma(m.fill(real(EXCESS)), distance, m.fill(real(EXCESS)))
        near = m.where_lt(most, excess, one, near)
        near = m.where_lt(m.add(limit, most), m.neg(m.dot(g.w, touch.n)), zero, near)
        if m.any_lt(zero, near):
            n = shortest_way(b, t, touch, r.inside, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
            touch = Touch(n, touch.distance, touch.first)
            touch = improved(b, t, touch, near, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        return touch

    @m.shared
    def touch_along(
        b, t, d: m.Vec3, wanted: m.lane, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int,
        T, P, L, mem,
    ) -> Touch:  # fmt: skip
        """How the cores touch first if the first one comes from far along the unit vector d. The distance is that of the shapes where they
        are, along the normal of this touch.

        From a point outside the difference, the closest plane that separates it bounds how far it may move along a line towards the
        difference.
        """
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        n = m.neg3(d)
        g = m.difference(b, t, n, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        second = m.sub3(g.first, g.w)
        way = m.add(m.dot(g.w, n), m.fill(real(OUTSIDE)))
        going = wanted
        for _approach in range(int(APPROACHES)):
            if m.any_lt(zero, going):
                o = m.scale3(d, m.neg(way))
                visits = int(SEARCH)
                far = m.fill(real(FAR))
                r = m.nearest(
                    b, t, o, n, going, far, visits, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem
                )
                gap = m.sqrt(m.dot(r.y, r.y))
                aim = normalized(m.neg3(r.y), n)
                slope = m.neg(m.dot(aim, d))
                # rounding errors
                going = m.where_lt(m.fill(real(NEAR)), m.smaller(slope, gap), going, zero)
                n = m.where3_lt(half, going, aim, n)
                second = m.where3_lt(half, going, m.sub3(m.sub3(r.first, o), r.y), second)
                way = m.where_lt(half, going, m.sub(way, m.div(gap, slope)), way)
                # the next search starts a little outside
                going = m.where_lt(m.fill(real(ARRIVED)), gap, going, zero)
                way = m.where_lt(half, going, m.fma(m.fill(real(0.25)), gap, way), way)
        g = m.difference(b, t, n, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        distance = m.neg(m.dot(g.w, n))
        return Touch(n, distance, m.fnma3(n, distance, second))

    @m.func
    def convex_points(b, t, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int, T, P, L, mem):
        """manifold <- the contact points of two convex shapes."""
        middle = m.scale_pair(b, t, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
        limit = m.mul(m.get(mem, L.pair_work + LIMIT, t), per_unit)
        # a sphere and a capsule are their core with a radius
        radius = m.fill(real(0.0))
        radius2 = radius
        if kind <= CAPSULE:
            radius = m.mul(m.get_shape(t, 0, L, mem).size.x, per_unit)
        if other <= CAPSULE:
            radius2 = m.mul(m.get_shape(t, 1, L, mem).size.x, per_unit)
        radii = m.add(radius, radius2)
        touch = core_touch(
            b, t, middle, m.add(limit, radii), kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem
        )
        distance = m.sub(m.sub(touch.distance, radius), radius2)
        first = m.fma3(touch.n, radius, touch.first)
        m.clear_manifold(t, L, mem)
        if m.has_polygon(kind, other):
            m.clear_more_points(t, L, mem)
        if m.any_lt(distance, limit):
            unit = m.rcp(per_unit)
            m.put_manifold(
                b, t, touch.n, distance, first, unit, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem
            )

    return locals()
