"""Contact points of a capsule and a cylinder: the nearest point of the capsule's axis.

Half the squared distance of a point of the axis from the cylinder is a convex function of its place on the axis, and smooth between the
places where the axis crosses the planes of the caps and the barrel. Steps of Newton find the zero of its slope there. Where the axis cuts
or touches the cylinder, distance and normal are computed as for any two convex shapes.

The axis has the places s from -half to half. All is computed in the axes of the cylinder, about its centre.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.capsule_box import ALONG, APART, ASIDE, ASTRAY, LYING
from newton_like.kernels.collision.pairs.work import PER_UNIT
from newton_like.kernels.collision.plane import CAPSULE, CYLINDER, FAR


def capsule_cylinder_pair(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``capsule_cylinder``."""
    real = m.real
    # after so many steps the place is as exact as its rounding
    STEPS = 6 if real is wp.float32 else 9
    # the direction of a shorter way, as a share of the sizes, has a rounding error that matters
    CLOSE_BY = 1.0e-3 if real is wp.float32 else 1.0e-6

    @m.struct
    class AxisByCylinder:
        """The middle and the direction of the axis of a capsule, and the radius and half height of the cylinder."""

        x: m.Vec3
        u: m.Vec3
        radius: m.lane
        height: m.lane

    @m.struct
    class Slope:
        """The derivative of half the squared distance at a place, and the derivative of that."""

        g: m.lane
        rise: m.lane

    @m.func
    def slope_at(a: AxisByCylinder, s: m.lane) -> Slope:
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        p = m.fma3(a.u, s, a.x)
        above = m.sub(p.z, m.within(p.z, m.neg(a.height), a.height))
        out = m.where_lt(m.magnitude(above), m.fill(real(1.0e-30)), zero, one)
        g = m.mul(a.u.z, above)
        rise = m.mul(out, m.mul(a.u.z, a.u.z))
        square = m.fma(p.x, p.x, m.mul(p.y, p.y))
        inverse = m.rcp(m.sqrt(m.larger(square, m.fill(real(1.0e-30)))))
        # the share of the way from the middle to the point that is outside the barrel
        share = m.larger(m.sub(one, m.mul(a.radius, inverse)), zero)
        along = m.fma(p.x, a.u.x, m.mul(p.y, a.u.y))
        speed = m.mul(along, inverse)
        across = m.sub(m.fma(a.u.x, a.u.x, m.mul(a.u.y, a.u.y)), m.mul(speed, speed))
        rise = m.add(rise, m.where_lt(zero, share, m.fma(share, across, m.mul(speed, speed)), zero))
        return Slope(m.fma(share, along, g), rise)

    @m.struct
    class Bracket:
        """Two places on the axis between which the slope has its zero."""

        low: m.lane
        high: m.lane

    @m.func
    def narrowed(a: AxisByCylinder, p: Bracket, s: m.lane) -> Bracket:
        """Moves an end of p to s, which is between its ends or beyond one of them."""
        zero = m.fill(real(0.0))
        g = slope_at(a, s).g
        low = m.where_lt(g, zero, m.larger(p.low, s), p.low)
        high = m.where_lt(g, zero, p.high, m.smaller(p.high, s))
        return Bracket(low, high)

    @m.func
    def in_barrel(a: AxisByCylinder, radius: m.lane) -> Bracket:
        """The part of the line within a radius of the cylinder's axis: all of it if it is parallel, a point if none is."""
        least = m.fill(real(1.0e-12))
        square = m.fma(a.u.x, a.u.x, m.mul(a.u.y, a.u.y))
        inverse = m.rcp(m.larger(square, least))
        middle = m.neg(m.mul(inverse, m.fma(a.x.x, a.u.x, m.mul(a.x.y, a.u.y))))
        p = m.fma3(a.u, middle, a.x)
        room = m.fnma(p.x, p.x, m.fnma(p.y, p.y, m.mul(radius, radius)))
        reach = m.sqrt(m.mul(inverse, m.larger(room, m.fill(real(0.0)))))
        middle = m.where_lt(square, least, m.fill(real(0.0)), middle)
        reach = m.where_lt(square, least, m.fill(real(FAR)), reach)
        return Bracket(m.sub(middle, reach), m.add(middle, reach))

    @m.func
    def between_caps(a: AxisByCylinder, height: m.lane) -> Bracket:
        """The part of the line between two planes beside the caps."""
        least = m.fill(real(1.0e-12))
        r = m.rcp(m.where_lt(m.magnitude(a.u.z), least, m.mul(least, m.sign_of(a.u.z)), a.u.z))
        one = m.mul(m.sub(m.neg(height), a.x.z), r)
        two = m.mul(m.sub(height, a.x.z), r)
        return Bracket(m.smaller(one, two), m.larger(one, two))

    @m.func
    def nearest_place(a: AxisByCylinder, half: m.lane, barrel: Bracket, caps: Bracket) -> m.lane:
        """The place on the axis that is nearest to the cylinder."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        low = m.neg(half)
        p = Bracket(low, half)
        p = narrowed(a, p, m.within(barrel.low, low, half))
        p = narrowed(a, p, m.within(barrel.high, low, half))
        p = narrowed(a, p, m.within(caps.low, low, half))
        p = narrowed(a, p, m.within(caps.high, low, half))
        # where the axis is closest to that of the cylinder, the slope of the distance from the barrel changes its sign
        beside = m.within(m.mul(m.fill(real(0.5)), m.add(barrel.low, barrel.high)), low, half)
        p = narrowed(a, p, beside)
        s = m.mul(m.fill(real(0.5)), m.add(p.low, p.high))
        steps = int(STEPS)
        for _step in range(steps):
            y = slope_at(a, s)
            p = Bracket(m.where_lt(y.g, zero, s, p.low), m.where_lt(y.g, zero, p.high, s))
            to = m.sub(s, m.mul(y.g, m.rcp(m.larger(y.rise, m.fill(real(1.0e-30))))))
            middle = m.mul(m.fill(real(0.5)), m.add(p.low, p.high))
            # a step beyond an end of the bracket goes to its middle
            middle = m.where_lt(to, p.low, middle, m.where_lt(p.high, to, middle, to))
            s = m.where_lt(zero, y.rise, middle, s)
        # the nearest place between the planes of the caps
        between = m.where_lt(caps.low, beside, m.where_lt(beside, caps.high, one, zero), zero)
        outside = m.where_lt(slope_at(a, beside).rise, m.fill(real(1.0e-30)), zero, between)
        s = m.where_lt(zero, outside, beside, s)
        # the distance rises from the start on, or falls up to the end
        s = m.where_lt(slope_at(a, low).g, zero, s, low)
        return m.where_lt(slope_at(a, half).g, zero, half, s)

    @m.shared
    def capsule_cylinder(b, t, T, P, L, mem):
        """One point; two if the capsule lies on a cap or along the barrel, at both ends of the part that is above it.

        The distance of the nearer point is that of the shapes. A capsule whose axis cuts the cylinder is pushed out along the shortest way.
        """
        first = m.get_shape(t, 0, L, mem)
        second = m.get_shape(t, 1, L, mem)
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        far = m.fill(real(FAR))
        radius = first.size.x
        half = first.size.y
        axis = m.column(first.axes, 2)
        size = second.size
        x = m.neg3(m.apply_t(second.centre, second.axes))
        a = AxisByCylinder(x, m.apply_t(axis, second.axes), size.x, size.y)
        sizes = m.add(m.add(radius, half), m.add(size.x, size.y))
        smallest = m.tiny(sizes)
        barrel = in_barrel(a, m.add(size.x, smallest))
        caps = between_caps(a, m.add(size.y, smallest))
        s = nearest_place(a, half, barrel, caps)
        near = m.outside_cylinder(m.fma3(a.u, s, x), size, smallest)
        distance = near.distance
        n = near.n
        cut = m.where_lt(distance, m.larger(m.mul(m.fill(real(CLOSE_BY)), sizes), smallest), one, zero)
        if m.any_lt(zero, cut):
            middle = m.scale_pair(b, t, int(CAPSULE), int(CYLINDER), 0, 0, 0, 0, T, P, L, mem)
            per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
            # the search of other worlds ends at once
            limit = m.where_lt(zero, cut, far, zero)
            touch = m.core_touch(b, t, middle, limit, int(CAPSULE), int(CYLINDER), 0, 0, 0, 0, T, P, L, mem)
            unit = m.rcp(per_unit)
            n = m.where3_lt(zero, cut, m.neg3(m.apply_t(touch.n, second.axes)), n)
            s = m.where_lt(zero, cut, m.within(m.mul(m.dot(axis, touch.first), unit), m.neg(half), half), s)
            distance = m.where_lt(zero, cut, m.mul(touch.distance, unit), distance)

        # the part of the axis above a cap or the barrel, and the normal of that
        along = m.fill(real(ALONG))
        round_part = m.sqrt(m.fma(n.x, n.x, m.mul(n.y, n.y)))
        on_cap = m.where_lt(round_part, along, one, zero)
        on_side = m.where_lt(m.magnitude(n.z), along, one, zero)
        low = m.where_lt(zero, on_cap, barrel.low, caps.low)
        high = m.where_lt(zero, on_cap, barrel.high, caps.high)
        low = m.within(low, m.neg(half), half)
        high = m.within(high, m.neg(half), half)
        inverse = m.rcp(m.larger(round_part, along))
        side = m.vec(m.mul(n.x, inverse), m.mul(n.y, inverse), zero)
        flat = m.where3_lt(zero, on_cap, m.vec(zero, zero, m.sign_of(n.z)), side)
        base = m.sub(m.dot(flat, x), m.where_lt(zero, on_cap, size.y, size.x))
        slant = m.dot(flat, a.u)
        at_low = m.fma(slant, low, base)
        at_high = m.fma(slant, high, base)
        shift = m.sub(distance, m.smaller(at_low, at_high))
        length = m.sub(high, low)
        # positive where there are two points
        allowed = m.larger(m.mul(m.fill(real(LYING)), radius), smallest)
        lies = m.where_lt(m.magnitude(shift), allowed, m.add(on_cap, on_side), zero)
        lies = m.where_lt(m.larger(m.mul(m.fill(real(APART)), radius), smallest), length, lies, zero)
        # along the barrel, the axis must follow it
        sine = m.mul(on_side, m.magnitude(m.fma(side.x, a.u.y, m.neg(m.mul(side.y, a.u.x)))))
        lies = m.where_lt(m.fill(real(ASTRAY)), sine, zero, lies)
        aside = m.mul(length, sine)
        lies = m.where_lt(m.larger(m.mul(m.fill(real(ASIDE)), radius), smallest), aside, zero, lies)

        away = m.neg3(m.apply(second.axes, n))
        s = m.where_lt(zero, lies, low, s)
        nearer = m.where_lt(zero, lies, m.add(at_low, shift), distance)
        other = m.where_lt(zero, lies, m.add(at_high, shift), far)
        feature = m.where_lt(zero, lies, one, m.fill(real(3.0)))
        m.put_between(t, 0, m.scale3(axis, s), away, nearer, radius, zero, feature, L, mem)
        m.put_between(t, 1, m.scale3(axis, high), away, other, radius, zero, m.fill(real(2.0)), L, mem)

    return locals()
