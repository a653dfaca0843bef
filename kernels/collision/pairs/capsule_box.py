"""Contact points of a capsule and a box: a closed form.

Half the squared distance of a point of the capsule's axis from the box is a convex function of its place on the axis. The slope of this
function is linear between the six places where the axis crosses the planes of faces, so the nearest point follows from the slopes there.
Where the axis cuts the box, the shortest way out is along a normal of a face, or perpendicular to the axis and to an edge.

The axis has the places s from -half to half. All is computed in the axes of the box, about its centre.
"""

import types

from newton_like.kernels.collision.plane import FAR

# A component of the normal below this counts as zero: the capsule lies along that axis of the box.
ALONG = 0.01
# There are two points if they are this share of the radius apart, and the nearer one is as far as the shapes to within LYING radii.
APART = 1.0e-2
LYING = 1.0e-3
# A capsule lies along an edge if the sine of their angle is below ASTRAY and, over the length of both, it moves aside by less than a share
# ASIDE of its radius.
ASTRAY, ASIDE = 0.2, 0.04


def capsule_box_pair(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``capsule_box``."""
    real, least_sine = m.real, m.LEAST_SINE

    @m.struct
    class AxisInBox:
        """The middle and the direction of the axis of a capsule, and the sizes of the box."""

        x: m.Vec3
        u: m.Vec3
        size: m.Vec3

    @m.struct
    class Span:
        """Two places on an axis, and a number at each of them."""

        low: m.lane
        high: m.lane
        at_low: m.lane
        at_high: m.lane

    @m.func
    def slope_term(x: m.lane, u: m.lane, size: m.lane, s: m.lane) -> m.lane:
        p = m.fma(u, s, x)
        return m.mul(u, m.sub(p, m.within(p, m.neg(size), size)))

    @m.func
    def distance_slope(a: AxisInBox, s: m.lane) -> m.lane:
        """The derivative of half the squared distance from the box at s."""
        y = m.add(slope_term(a.x.y, a.u.y, a.size.y, s), slope_term(a.x.z, a.u.z, a.size.z, s))
        return m.add(slope_term(a.x.x, a.u.x, a.size.x, s), y)

    @m.func
    def bracket(a: AxisInBox, p: Span, s: m.lane) -> Span:
        """Moves an end of p to s, if s is between its ends: the lower one if the distance still decreases there."""
        g = distance_slope(a, s)
        zero = m.fill(real(0.0))
        up = m.where_lt(g, zero, s, p.low)
        down = m.where_lt(g, zero, p.high, s)
        higher = m.where_lt(p.low, up, g, p.at_low)
        lower = m.where_lt(down, p.high, g, p.at_high)
        return Span(m.larger(p.low, up), m.smaller(p.high, down), higher, lower)

    @m.func
    def slab(x: m.lane, u: m.lane, size: m.lane) -> Span:
        """The part of the line where one coordinate is inside the box; the numbers are zero."""
        zero = m.fill(real(0.0))
        least = m.fill(real(1.0e-30))
        r = m.rcp(m.where_lt(m.magnitude(u), least, m.mul(least, m.sign_of(u)), u))
        one = m.mul(m.sub(m.neg(size), x), r)
        two = m.mul(m.sub(size, x), r)
        return Span(m.smaller(one, two), m.larger(one, two), zero, zero)

    @m.func
    def crossing(a: AxisInBox, w: m.Vec3) -> m.lane:
        """By how much planes perpendicular to w, which is perpendicular to the axis, separate the axis and the box; -FAR if w is short."""
        length = m.sqrt(m.dot(w, w))
        least = m.fill(real(least_sine))
        size = m.fma(m.magnitude(w.x), a.size.x, m.fma(m.magnitude(w.y), a.size.y, m.mul(m.magnitude(w.z), a.size.z)))
        over = m.mul(m.sub(m.magnitude(m.dot(w, a.x)), size), m.rcp(m.larger(length, least)))
        return m.where_lt(length, least, m.fill(real(-FAR)), over)

    @m.func
    def clip(span: Span, n: m.lane, other: Span) -> Span:
        """The part of both spans, if n counts as zero, else the first one."""
        along = m.fill(real(ALONG))
        low = m.where_lt(m.magnitude(n), along, m.larger(span.low, other.low), span.low)
        high = m.where_lt(m.magnitude(n), along, m.smaller(span.high, other.high), span.high)
        return Span(low, high, span.at_low, span.at_high)

    @m.func
    def capsule_box(t, L, mem):
        """One point; two if the capsule lies along a face or an edge, at both ends of the part that is above it.

        The distance of the nearer point is that of the shapes. A capsule whose axis cuts the box is pushed out along the shortest way.
        """
        a = m.get_shape(t, 0, L, mem)
        b = m.get_shape(t, 1, L, mem)
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        radius = a.size.x
        half = a.size.y
        axis = m.column(a.axes, 2)
        x = m.neg3(m.apply_t(b.centre, b.axes))
        u = m.apply_t(axis, b.axes)
        line = AxisInBox(x, u, b.size)
        smallest = m.tiny(m.add(m.add(radius, half), m.add(b.size.x, m.add(b.size.y, b.size.z))))
        # an axis above an edge is above the face
        slab_x = slab(x.x, u.x, m.add(b.size.x, smallest))
        slab_y = slab(x.y, u.y, m.add(b.size.y, smallest))
        slab_z = slab(x.z, u.z, m.add(b.size.z, smallest))
        # the nearest point of the axis
        start = m.neg(half)
        p = Span(start, half, distance_slope(line, start), distance_slope(line, half))
        p = bracket(line, p, m.within(slab_x.low, start, half))
        p = bracket(line, p, m.within(slab_x.high, start, half))
        p = bracket(line, p, m.within(slab_y.low, start, half))
        p = bracket(line, p, m.within(slab_y.high, start, half))
        p = bracket(line, p, m.within(slab_z.low, start, half))
        p = bracket(line, p, m.within(slab_z.high, start, half))
        rise = m.sub(p.at_high, p.at_low)
        share = m.mul(m.neg(p.at_low), m.rcp(m.where_lt(zero, rise, rise, one)))
        s = m.fma(m.sub(p.high, p.low), m.within(share, zero, one), p.low)
        # the distance rises from the start on, or falls up to the end
        s = m.where_lt(p.at_low, zero, s, p.low)
        s = m.where_lt(p.at_high, zero, p.high, s)
        near = m.outside_box(m.fma3(u, s, x), b.size)

        # the shortest way out of the box: a face
        side = m.vec(m.sign_of(x.x), m.sign_of(x.y), m.sign_of(x.z))
        out = m.sub(m.fnma(m.magnitude(u.x), half, m.magnitude(x.x)), b.size.x)
        n = m.vec(side.x, zero, zero)
        over = m.sub(m.fnma(m.magnitude(u.y), half, m.magnitude(x.y)), b.size.y)
        n = m.where3_lt(out, over, m.vec(zero, side.y, zero), n)
        out = m.larger(out, over)
        over = m.sub(m.fnma(m.magnitude(u.z), half, m.magnitude(x.z)), b.size.z)
        n = m.where3_lt(out, over, m.vec(zero, zero, side.z), n)
        out = m.larger(out, over)
        # or perpendicular to the axis and an edge
        w = m.vec(zero, u.z, m.neg(u.y))
        edge = m.vec(one, zero, zero)
        most = crossing(line, w)
        v = m.vec(m.neg(u.z), zero, u.x)
        over = crossing(line, v)
        w = m.where3_lt(most, over, v, w)
        edge = m.where3_lt(most, over, m.vec(zero, one, zero), edge)
        most = m.larger(most, over)
        v = m.vec(u.y, m.neg(u.x), zero)
        over = crossing(line, v)
        w = m.where3_lt(most, over, v, w)
        edge = m.where3_lt(most, over, m.vec(zero, zero, one), edge)
        most = m.sub(m.larger(most, over), smallest)
        turned = m.mul(m.sign_of(m.dot(w, x)), m.rcp(m.sqrt(m.larger(m.dot(w, w), m.fill(real(1.0e-12))))))
        w = m.scale3(w, turned)
        n = m.where3_lt(out, most, w, n)
        # where the axis passes that edge, or its deepest end
        corner = m.vec(
            m.mul(m.sign_of(n.x), b.size.x), m.mul(m.sign_of(n.y), b.size.y), m.mul(m.sign_of(n.z), b.size.z)
        )
        across = m.fnma3(edge, m.dot(edge, u), u)
        square = m.larger(m.dot(across, across), m.fill(real(1.0e-12)))
        passes = m.within(m.mul(m.dot(across, m.sub3(corner, x)), m.rcp(square)), start, half)
        inside = m.where_lt(out, most, passes, m.mul(start, m.sign_of(m.dot(n, u))))
        out = m.larger(out, most)

        cut = near.distance
        n = m.where3_lt(cut, smallest, n, near.n)
        s = m.where_lt(cut, smallest, inside, s)
        distance = m.where_lt(cut, smallest, out, cut)

        # the part of the axis above a face or an edge, and the normal of that
        part = clip(clip(clip(Span(start, half, zero, zero), n.x, slab_x), n.y, slab_y), n.z, slab_z)
        along = m.fill(real(ALONG))
        flat = m.vec(
            m.where_lt(m.magnitude(n.x), along, zero, n.x),
            m.where_lt(m.magnitude(n.y), along, zero, n.y),
            m.where_lt(m.magnitude(n.z), along, zero, n.z),
        )
        flat = m.scale3(flat, m.rcp(m.sqrt(m.dot(flat, flat))))
        support = m.fma(
            m.magnitude(flat.x),
            b.size.x,
            m.fma(m.magnitude(flat.y), b.size.y, m.mul(m.magnitude(flat.z), b.size.z)),
        )
        base = m.sub(m.dot(flat, x), support)
        slant = m.dot(flat, u)
        first = m.fma(slant, part.low, base)
        second = m.fma(slant, part.high, base)
        shift = m.sub(distance, m.smaller(first, second))
        length = m.sub(part.high, part.low)
        # positive where there are two points
        allowed = m.larger(m.mul(m.fill(real(LYING)), radius), smallest)
        lies = m.where_lt(m.magnitude(shift), allowed, one, zero)
        lies = m.where_lt(m.larger(m.mul(m.fill(real(APART)), radius), smallest), length, lies, zero)
        # over an edge, the axis must follow it: the direction without its parts along the normal and along zeros of the normal
        astray = m.vec(
            m.where_lt(m.magnitude(n.x), along, zero, u.x),
            m.where_lt(m.magnitude(n.y), along, zero, u.y),
            m.where_lt(m.magnitude(n.z), along, zero, u.z),
        )
        astray = m.fnma3(flat, slant, astray)
        sine = m.sqrt(m.dot(astray, astray))
        lies = m.where_lt(m.fill(real(ASTRAY)), sine, zero, lies)
        aside = m.mul(length, sine)
        lies = m.where_lt(m.larger(m.mul(m.fill(real(ASIDE)), radius), smallest), aside, zero, lies)

        away = m.neg3(m.apply(b.axes, n))
        s = m.where_lt(zero, lies, part.low, s)
        first = m.where_lt(zero, lies, m.add(first, shift), distance)
        second = m.where_lt(zero, lies, m.add(second, shift), m.fill(real(FAR)))
        feature = m.where_lt(zero, lies, one, m.fill(real(3.0)))
        m.put_between(t, 0, m.scale3(axis, s), away, first, radius, zero, feature, L, mem)
        m.put_between(t, 1, m.scale3(axis, part.high), away, second, radius, zero, m.fill(real(2.0)), L, mem)

    return locals()
