"""Contact points of spheres and capsules with each other, and of spheres with boxes and cylinders: closed forms.

A sphere has the point on the line from its centre to the nearest point of the other shape; a capsule is the set of spheres about the points
of its axis. If these points coincide up to rounding, the normal is the shortest way out where the shapes have one, and otherwise as stated
at each function.
"""

import types

from newton_like.kernels.collision.plane import FAR

# Two capsules have two contact points if the part where their axes are side by side is longer than a share SHORT of the radii, if the sine
# of the angle of the axes is below SINE, and if at both ends of that part the axes are farther apart than along the normal by
# at most a share PARALLEL_GAP of the radii.
PARALLEL_GAP = 1.0e-3
SHORT = 1.0e-2
SINE = 0.2


def round_pairs(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``sphere_sphere``, ``sphere_capsule``, ``sphere_box``, ``sphere_cylinder`` and ``capsule_capsule``."""
    real = m.real

    @m.func
    def put_between(
        t, i: int, p: m.Vec3, n: m.Vec3, apart: m.lane, radius: m.lane, other: m.lane, feature: m.lane, L, mem
    ):
        """Stores the contact point of a ball of `radius` about p and a ball of radius `other`, whose centre is `apart` along n."""
        gap = m.sub(apart, m.add(radius, other))
        middle = m.fma(m.fill(real(0.5)), gap, radius)
        m.put_pair_point(t, i, m.fma3(n, middle, p), n, gap, feature, L, mem)

    @m.func
    def sphere_sphere(t, L, mem):
        """One point. The normal of concentric spheres is the x axis of the first one."""
        a = m.get_shape(t, 0, L, mem)
        b = m.get_shape(t, 1, L, mem)
        one = m.fill(real(1.0))
        apart = m.sqrt(m.dot(b.centre, b.centre))
        n = m.unit_or(b.centre, apart, m.tiny(m.add(a.size.x, b.size.x)), m.column(a.axes, 0))
        put_between(t, 0, a.centre, n, apart, a.size.x, b.size.x, one, L, mem)

    @m.func
    def sphere_capsule(t, L, mem):
        """One point. The normal of a sphere whose centre is on the capsule's axis is the capsule's x axis."""
        a = m.get_shape(t, 0, L, mem)
        b = m.get_shape(t, 1, L, mem)
        one = m.fill(real(1.0))
        half = b.size.y
        axis = m.column(b.axes, 2)
        s = m.within(m.neg(m.dot(axis, b.centre)), m.neg(half), half)
        d = m.fma3(axis, s, b.centre)
        apart = m.sqrt(m.dot(d, d))
        n = m.unit_or(d, apart, m.tiny(m.add(m.add(a.size.x, b.size.x), half)), m.column(b.axes, 0))
        put_between(t, 0, a.centre, n, apart, a.size.x, b.size.x, one, L, mem)

    @m.struct
    class Outside:
        """Of a point: its signed distance from a shape, and the unit vector from the shape to it."""

        distance: m.lane
        n: m.Vec3

    @m.func
    def put_ball_point(t, radius: m.lane, x: Outside, axes: m.Mat33, L, mem):
        """Stores the contact point of a sphere in the first place and a shape, from its centre in the axes of the shape."""
        n = m.neg3(m.apply(axes, x.n))
        put_between(t, 0, m.zero3(), n, x.distance, radius, m.fill(real(0.0)), m.fill(real(1.0)), L, mem)

    @m.func
    def outside_box(x: m.Vec3, size: m.Vec3) -> Outside:
        """Of a point in or outside a box: inside, the way to the nearest face, the first one of several, on the positive side of two."""
        zero = m.fill(real(0.0))
        over = m.vec(m.sub(m.magnitude(x.x), size.x), m.sub(m.magnitude(x.y), size.y), m.sub(m.magnitude(x.z), size.z))
        sign = m.vec(m.sign_of(x.x), m.sign_of(x.y), m.sign_of(x.z))
        d = m.vec(
            m.mul(sign.x, m.larger(over.x, zero)),
            m.mul(sign.y, m.larger(over.y, zero)),
            m.mul(sign.z, m.larger(over.z, zero)),
        )
        face = m.vec(sign.x, zero, zero)
        most = over.x
        face = m.where3_lt(most, over.y, m.vec(zero, sign.y, zero), face)
        most = m.larger(most, over.y)
        face = m.where3_lt(most, over.z, m.vec(zero, zero, sign.z), face)
        most = m.larger(most, over.z)
        length = m.sqrt(m.dot(d, d))
        smallest = m.tiny(m.add(size.x, m.add(size.y, size.z)))
        n = m.unit_or(d, length, smallest, face)
        return Outside(m.where_lt(length, smallest, most, length), n)

    @m.func
    def sphere_box(t, L, mem):
        """One point. A sphere whose centre is inside the box is pushed out through the nearest face, the first one of several."""
        a = m.get_shape(t, 0, L, mem)
        b = m.get_shape(t, 1, L, mem)
        x = m.neg3(m.apply_t(b.centre, b.axes))
        put_ball_point(t, a.size.x, outside_box(x, b.size), b.axes, L, mem)

    @m.func
    def outside_cylinder(x: m.Vec3, size: m.Vec3, smallest: m.lane) -> Outside:
        """The same of a cylinder: inside, the way to the barrel or a cap, whichever is nearer; lengths below `smallest` are zero."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        along = m.vec(x.x, x.y, zero)
        radial = m.sqrt(m.dot(along, along))
        side = m.unit_or(along, radial, smallest, m.vec(one, zero, zero))
        end = m.vec(zero, zero, m.sign_of(x.z))
        over = m.sub(radial, size.x)
        above = m.sub(m.magnitude(x.z), size.y)
        d = m.fma3(side, m.larger(over, zero), m.scale3(end, m.larger(above, zero)))
        length = m.sqrt(m.dot(d, d))
        n = m.unit_or(d, length, smallest, m.where3_lt(over, above, end, side))
        return Outside(m.where_lt(length, smallest, m.larger(over, above), length), n)

    @m.func
    def sphere_cylinder(t, L, mem):
        """One point. A sphere whose centre is inside the cylinder is pushed out through the barrel or a cap, whichever is nearer; along
        the cylinder's x axis if its centre is on the axis, through the upper cap if it is halfway between both."""
        a = m.get_shape(t, 0, L, mem)
        b = m.get_shape(t, 1, L, mem)
        x = m.neg3(m.apply_t(b.centre, b.axes))
        outside = outside_cylinder(x, b.size, m.tiny(m.add(b.size.x, b.size.y)))
        put_ball_point(t, a.size.x, outside, b.axes, L, mem)

    @m.func
    def capsule_capsule(t, L, mem):
        """One point; two if the axes are nearly parallel, at both ends of the part where they are side by side.

        The distance of the nearer point is that of the capsules. The normal of axes that cross is perpendicular to both; that of
        axes on one line is perpendicular to it.
        """
        a = m.get_shape(t, 0, L, mem)
        b = m.get_shape(t, 1, L, mem)
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        two = m.fill(real(2.0))
        axis = m.column(a.axes, 2)
        along = m.column(b.axes, 2)
        h = a.size.y
        k = b.size.y
        radii = m.add(a.size.x, b.size.x)
        smallest = m.tiny(m.add(radii, m.add(h, k)))
        x = m.nearest_on_axes(
            m.Segment(m.scale3(axis, m.neg(h)), m.scale3(axis, m.mul(two, h))),
            m.Segment(m.fnma3(along, k, b.centre), m.scale3(along, m.mul(two, k))),
        )
        d = m.sub3(x.w, x.v)
        apart = m.sqrt(m.dot(d, d))
        # where the axes cross
        n = m.cross(axis, along)
        other = m.perpendicular(axis)
        other = m.scale3(other, m.rcp(m.sqrt(m.dot(other, other))))
        length = m.sqrt(m.dot(n, n))
        n = m.unit_or(d, apart, smallest, m.unit_or(n, length, m.tiny(one), other))
        # the part where the axes are side by side, along the first one
        middle = m.dot(axis, b.centre)
        reach = m.mul(k, m.magnitude(m.dot(axis, along)))
        low = m.within(m.sub(middle, reach), m.neg(h), h)
        high = m.within(m.add(middle, reach), m.neg(h), h)
        p = m.scale3(axis, low)
        q = m.scale3(axis, high)
        r = m.sub3(p, b.centre)
        g = m.sub3(m.fma3(along, m.within(m.dot(along, r), m.neg(k), k), b.centre), p)
        r = m.sub3(q, b.centre)
        f = m.sub3(m.fma3(along, m.within(m.dot(along, r), m.neg(k), k), b.centre), q)
        first = m.dot(n, g)
        second = m.dot(n, f)
        # how far the ends are from each other across the normal
        across = m.larger(m.sub(m.sqrt(m.dot(g, g)), first), m.sub(m.sqrt(m.dot(f, f)), second))
        side_by_side = m.sub(high, low)
        # positive where there are two points
        lies = m.where_lt(across, m.larger(m.mul(m.fill(real(PARALLEL_GAP)), radii), smallest), one, zero)
        lies = m.where_lt(m.larger(m.mul(m.fill(real(SHORT)), radii), smallest), side_by_side, lies, zero)
        lies = m.where_lt(m.fill(real(SINE)), length, zero, lies)
        # makes the nearer point exact
        shift = m.sub(apart, m.smaller(first, second))
        first = m.where_lt(zero, lies, m.add(first, shift), apart)
        second = m.where_lt(zero, lies, m.add(second, shift), m.fill(real(FAR)))
        p = m.where3_lt(zero, lies, p, x.v)
        feature = m.where_lt(zero, lies, one, m.fill(real(3.0)))
        put_between(t, 0, p, n, first, a.size.x, b.size.x, feature, L, mem)
        put_between(t, 1, q, n, second, a.size.x, b.size.x, two, L, mem)

    return locals()
