"""Separating axes of two boxes, and their nearest points where they are apart.

All is computed in the axes of the first box, about its centre. Two boxes are apart if and only if one of 15 axes separates them: the axes
of both boxes, and the products of an axis of each (Gottschalk, Lin and Manocha 1996, "OBBTree"). Where they overlap, the axis with the
largest separation is the shortest way out. Where they are apart, that separation is their distance only if a face or two edges are
nearest; otherwise the nearest point is a corner of one of them.
"""

import types

from newton_like.kernels.collision.plane import FAR


def box_axes_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``TwoBoxes``, ``two_boxes``, ``face_overs``, ``best_edges`` and ``nearest_corner``."""
    real, least_sine = m.real, m.LEAST_SINE

    @m.struct
    class TwoBoxes:
        """Half sides of both boxes; the centre and the axes of the second one, in the axes of the first; and the rounding of lengths."""

        a: m.Vec3
        b: m.Vec3
        d: m.Vec3
        x: m.Vec3
        y: m.Vec3
        z: m.Vec3
        rounding: m.lane

    @m.struct
    class EdgePair:
        """Two edges: by how much planes along both separate the boxes, the same less its rounding error, the normal of these planes, and
        the axes of both edges (ones and zeros)."""

        over: m.lane
        sure: m.lane
        n: m.Vec3
        mine: m.Vec3
        other: m.Vec3

    @m.struct
    class NearestPoints:
        """The squared distance of two points, the point of the first box, and the vector from there to that of the second one."""

        square: m.lane
        p: m.Vec3
        d: m.Vec3

    @m.func
    def sum3(a: m.Vec3) -> m.lane:
        return m.add(a.x, m.add(a.y, a.z))

    @m.func
    def magnitudes(a: m.Vec3) -> m.Vec3:
        return m.vec(m.magnitude(a.x), m.magnitude(a.y), m.magnitude(a.z))

    @m.func
    def signs(a: m.Vec3) -> m.Vec3:
        return m.vec(m.sign_of(a.x), m.sign_of(a.y), m.sign_of(a.z))

    @m.func
    def times3(a: m.Vec3, b: m.Vec3) -> m.Vec3:
        """The products of components."""
        return m.vec(m.mul(a.x, b.x), m.mul(a.y, b.y), m.mul(a.z, b.z))

    @m.func
    def two_boxes(t, L, mem) -> TwoBoxes:
        a = m.get_shape(t, 0, L, mem)
        b = m.get_shape(t, 1, L, mem)
        d = m.apply_t(b.centre, a.axes)
        x = m.apply_t(m.column(b.axes, 0), a.axes)
        y = m.apply_t(m.column(b.axes, 1), a.axes)
        z = m.apply_t(m.column(b.axes, 2), a.axes)
        rounding = m.tiny(m.add(sum3(a.size), m.add(sum3(b.size), sum3(magnitudes(d)))))
        return TwoBoxes(a.size, b.size, d, x, y, z, rounding)

    @m.func
    def in_second(p: TwoBoxes, v: m.Vec3) -> m.Vec3:
        """A vector in the axes of the second box."""
        return m.vec(m.dot(p.x, v), m.dot(p.y, v), m.dot(p.z, v))

    @m.func
    def from_second(p: TwoBoxes, v: m.Vec3) -> m.Vec3:
        return m.fma3(p.x, v.x, m.fma3(p.y, v.y, m.scale3(p.z, v.z)))

    @m.func
    def face_overs(p: TwoBoxes, second: bool) -> m.Vec3:
        """By how much the boxes are apart along each axis of the first one, or of the second one."""
        x = magnitudes(p.x)
        y = magnitudes(p.y)
        z = magnitudes(p.z)
        reach = m.add3(p.a, m.fma3(x, p.b.x, m.fma3(y, p.b.y, m.scale3(z, p.b.z))))
        apart = magnitudes(p.d)
        if second:
            reach = m.add3(p.b, m.vec(m.dot(p.a, x), m.dot(p.a, y), m.dot(p.a, z)))
            apart = magnitudes(in_second(p, p.d))
        return m.sub3(apart, reach)

    @m.func
    def better_edges(
        best: EdgePair, p: TwoBoxes, n: m.Vec3, mine: m.Vec3, other: m.Vec3, left: m.lane, right: m.lane
    ) -> EdgePair:
        """The pair of edges with the larger separation: `best`, or that with the normal n, which is not a unit vector.

        Args:
            mine, other: the axes of the edges (ones and zeros).
            left, right: the reaches of the second box along its other two axes and n.
        """
        length = m.sqrt(m.dot(n, n))
        least = m.fill(real(least_sine))
        reach = m.add(m.dot(p.a, magnitudes(n)), m.add(left, right))
        share = m.rcp(m.larger(length, least))
        over = m.mul(m.sub(m.magnitude(m.dot(n, p.d)), reach), share)
        sure = m.where_lt(length, least, m.fill(real(-FAR)), m.fnma(p.rounding, share, over))
        worst = best.sure
        return EdgePair(
            m.where_lt(worst, sure, over, best.over),
            m.larger(worst, sure),
            m.where3_lt(worst, sure, n, best.n),
            m.where3_lt(worst, sure, mine, best.mine),
            m.where3_lt(worst, sure, other, best.other),
        )

    @m.func
    def edges_of(
        best: EdgePair, p: TwoBoxes, other: m.Vec3, u: m.Vec3, v: m.Vec3, w: m.Vec3, left: m.lane, right: m.lane
    ) -> EdgePair:
        """The best of `best` and the three pairs of an axis of the first box and the axis u of the second one.

        The other axes of the second box are v and w, with half sides `left` and `right`. The component along v of a product with u is a
        component of w, and the other way round.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        v = m.scale3(magnitudes(v), right)
        w = m.scale3(magnitudes(w), left)
        best = better_edges(best, p, m.vec(zero, m.neg(u.z), u.y), m.vec(one, zero, zero), other, v.x, w.x)
        best = better_edges(best, p, m.vec(u.z, zero, m.neg(u.x)), m.vec(zero, one, zero), other, v.y, w.y)
        return better_edges(best, p, m.vec(m.neg(u.y), u.x, zero), m.vec(zero, zero, one), other, v.z, w.z)

    @m.func
    def best_edges(p: TwoBoxes) -> EdgePair:
        """The pair of edges whose planes separate the boxes most; its normal points to the second box."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        x = m.vec(one, zero, zero)
        none = m.fill(real(-2.0 * FAR))
        best = EdgePair(none, none, x, x, x)
        # the axes of the second box in turn
        other = x
        u = p.x
        v = p.y
        w = p.z
        left = p.b.y
        right = p.b.z
        third = p.b.x
        three = int(3)
        for _ in range(three):
            best = edges_of(best, p, other, u, v, w, left, right)
            other = m.vec(other.z, other.x, other.y)
            first = u
            u = v
            v = w
            w = first
            size = left
            left = right
            right = third
            third = size
        n = best.n
        turned = m.mul(m.sign_of(m.dot(n, p.d)), m.rcp(m.sqrt(m.larger(m.dot(n, n), m.fill(real(1.0e-12))))))
        return EdgePair(best.over, best.sure, m.scale3(n, turned), best.mine, best.other)

    @m.func
    def nearest_on_edges(p: TwoBoxes, edges: EdgePair) -> NearestPoints:
        """Of the two edges that face each other along the normal."""
        two = m.fill(real(2.0))
        mine = times3(p.a, edges.mine)
        corner = m.sub3(times3(p.a, signs(edges.n)), mine)
        # the middle of the edge, without its own part
        corner = m.fnma3(edges.mine, m.dot(edges.mine, corner), corner)
        other = times3(p.b, edges.other)
        far = times3(p.b, signs(in_second(p, edges.n)))
        far = m.fnma3(edges.other, m.dot(edges.other, far), far)
        along = from_second(p, other)
        middle = m.sub3(p.d, from_second(p, far))
        x = m.nearest_on_axes(
            m.Segment(m.sub3(corner, mine), m.scale3(mine, two)), m.Segment(m.sub3(middle, along), m.scale3(along, two))
        )
        d = m.sub3(x.w, x.v)
        return NearestPoints(m.dot(d, d), x.v, d)

    @m.func
    def corner_of(size: m.Vec3, i: int) -> m.Vec3:
        """Corner i of a box, 0 to 7."""
        x = real(1 - 2 * (i % 2))
        y = real(1 - 2 * ((i // 2) % 2))
        z = real(1 - 2 * (i // 4))
        return m.vec(m.mul(m.fill(x), size.x), m.mul(m.fill(y), size.y), m.mul(m.fill(z), size.z))

    @m.func
    def to_box(x: m.Vec3, size: m.Vec3) -> m.Vec3:
        """The vector from a point to the nearest point of a box about the origin."""
        return m.vec(
            m.sub(m.within(x.x, m.neg(size.x), size.x), x.x),
            m.sub(m.within(x.y, m.neg(size.y), size.y), x.y),
            m.sub(m.within(x.z, m.neg(size.z), size.z), x.z),
        )

    @m.func
    def nearest_corner(p: TwoBoxes, best: NearestPoints) -> NearestPoints:
        """The nearest points of all corners of each box and of the other box, and `best`."""
        centre = in_second(p, p.d)
        square = best.square
        at = best.p
        to = best.d
        # corners of the first box, in the axes of the second one
        corner = m.zero3()
        way = m.zero3()
        least = m.fill(real(FAR * FAR))
        eight = int(8)
        for i in range(eight):
            x = corner_of(p.a, i)
            d = to_box(m.sub3(in_second(p, x), centre), p.b)
            far = m.dot(d, d)
            corner = m.where3_lt(far, least, x, corner)
            way = m.where3_lt(far, least, d, way)
            least = m.smaller(least, far)
        at = m.where3_lt(least, square, corner, at)
        to = m.where3_lt(least, square, from_second(p, way), to)
        square = m.smaller(square, least)
        for i in range(eight):
            x = m.add3(p.d, from_second(p, corner_of(p.b, i)))
            d = to_box(x, p.a)
            far = m.dot(d, d)
            at = m.where3_lt(far, square, m.add3(x, d), at)
            to = m.where3_lt(far, square, m.neg3(d), to)
            square = m.smaller(square, far)
        return NearestPoints(square, at, to)

    return locals()
