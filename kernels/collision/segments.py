"""Nearest points of two line segments, such as the axes of capsules."""

import types

PARALLEL = 1.0e-12  # sine of the angle of parallel axes


def segment_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``Segment``, ``nearest_on_axes``, ``clamped_ratio`` and ``perpendicular``."""
    real = m.real

    @m.struct
    class Segment:
        """Start and direction of an axis."""

        start: m.Vec3
        along: m.Vec3

    @m.func
    def clamped_ratio(x: m.lane, size: m.lane) -> m.lane:
        """x / size from 0 to 1; 0 for size 0."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        s = m.mul(x, m.rcp(m.where_lt(zero, size, size, one)))
        return m.smaller(m.larger(m.where_lt(zero, size, s, zero), zero), one)

    @m.func
    def nearest_on_axes(a: Segment, b: Segment) -> m.Spatial:
        """The nearest points of two axes, on `a` and on `b`: those of the lines, moved to the ends of the axes (Ericson 2005, "Real-Time
        Collision Detection", section 5.1.9). For parallel axes, the middle of the part where they are side by side."""
        r = m.sub3(b.start, a.start)
        aa = m.dot(a.along, a.along)
        bb = m.dot(b.along, b.along)
        n = m.cross(a.along, b.along)
        nn = m.dot(n, n)
        one = m.fill(real(1.0))
        zero = m.fill(real(0.0))
        size = m.where_lt(zero, aa, aa, one)
        one_end = m.mul(m.dot(a.along, r), m.rcp(size))
        other_end = m.mul(m.dot(a.along, m.add3(r, b.along)), m.rcp(size))
        first = m.larger(m.smaller(one_end, other_end), zero)
        last = m.smaller(m.larger(one_end, other_end), one)
        side_by_side = m.smaller(m.larger(m.mul(m.fill(real(0.5)), m.add(first, last)), zero), one)
        parallel = m.mul(m.fill(real(PARALLEL * PARALLEL)), m.mul(aa, bb))
        s = m.where_lt(parallel, nn, clamped_ratio(m.dot(m.cross(r, b.along), n), nn), side_by_side)
        p = m.fma3(a.along, s, a.start)
        q = m.fma3(b.along, clamped_ratio(m.dot(b.along, m.sub3(p, b.start)), bb), b.start)
        p = m.fma3(a.along, clamped_ratio(m.dot(a.along, m.sub3(q, a.start)), aa), a.start)
        return m.spatial(p, q)

    @m.func
    def perpendicular(a: m.Vec3) -> m.Vec3:
        """A vector perpendicular to a: its cross product with the coordinate axis of its smallest component; the z axis for zero."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        x = m.mul(a.x, a.x)
        y = m.mul(a.y, a.y)
        z = m.mul(a.z, a.z)
        least = m.smaller(x, m.smaller(y, z))
        ex = m.where_lt(least, x, zero, one)
        ey = m.where_lt(least, y, zero, m.sub(one, ex))
        ez = m.sub(one, m.add(ex, ey))
        n = m.cross(a, m.vec(ex, ey, ez))
        return m.vec(n.x, n.y, m.where_lt(zero, m.dot(a, a), n.z, one))

    return locals()
