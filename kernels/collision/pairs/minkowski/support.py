"""Support points of convex shapes: the point of a shape that is farthest along a direction.

A sphere is a point with a radius and a capsule a line segment with a radius; their support points are those of the point and the segment.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import AXES, CENTRE, EXTENT, SHAPE
from newton_like.kernels.collision.pairs.work import FARTHEST, FINE, OWN, PER_UNIT, SHAPES, SMALLEST
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, FAR, HULL, SPHERE
from newton_like.kernels.collision.surfaces.records import TRIANGLE


def support_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``support``, ``difference`` and ``scale_pair``, which prepares them."""
    real = m.real
    # the square of a part of a unit vector that is a rounding error
    NO_DIRECTION = 1.0e-13 if real is wp.float32 else 1.0e-30

    @m.struct
    class Difference:
        """A support point of the difference of both shapes, and the point of the first shape that it comes from."""

        w: m.Vec3
        first: m.Vec3

    @m.func
    def hull_point(b, i: int, T, P) -> m.Vec3:
        """Vertex i of all hulls, in the axes of its shape [m]."""
        at = P.hull_at + 3 * i
        return m.vec(
            m.param(P.uniform, P.varying, P.colliders_vary, b, at),
            m.param(P.uniform, P.varying, P.colliders_vary, b, at + 1),
            m.param(P.uniform, P.varying, P.colliders_vary, b, at + 2),
        )

    @m.struct
    class Bounds:
        """A point inside a shape, in the shape's axes, and the radius of a sphere about the shape's centre that contains its core."""

        inside: m.Vec3
        radius: m.lane

    @m.func
    def core_bounds(b, kind: int, hull: int, count: int, size: m.Vec3, T, P) -> Bounds:
        inside = m.zero3()
        radius = m.fill(real(0.0))
        if kind == CAPSULE:
            radius = size.y
        if kind == BOX:
            radius = m.sqrt(m.dot(size, size))
        if kind == CYLINDER:
            radius = m.sqrt(m.fma(size.x, size.x, m.mul(size.y, size.y)))
        if kind == CONE:
            radius = m.sqrt(m.fma(size.x, size.x, m.mul(size.y, size.y)))
        if kind == ELLIPSOID:
            radius = m.larger(size.x, m.larger(size.y, size.z))
        if kind == HULL:
            share = m.fill(real(1.0) / real(count))
            for i in range(count):
                x = hull_point(b, hull + i, T, P)
                inside = m.fma3(x, share, inside)
                radius = m.larger(radius, m.dot(x, x))
            radius = m.sqrt(radius)
        return Bounds(inside, radius)

    @m.func
    def put_scaled(t, s: int, per_unit: m.lane, L, mem):
        """Stores shape s with lengths in units."""
        to = L.pair_work + SHAPES + SHAPE * s
        shape = m.get_shape(t, s, L, mem)
        m.put3(mem, to + CENTRE, t, m.scale3(shape.centre, per_unit))
        m.put9(mem, to + AXES, t, shape.axes)
        m.put3(mem, to + EXTENT, t, m.scale3(shape.size, per_unit))

    @m.shared
    def scale_pair(
        b, t, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int, T, P, L, mem
    ) -> m.Vec3:
        """Stores both shapes in units of the sum of their sizes. Returns the vector between points inside of them, from the first to
        the second."""
        one = m.get_shape(t, 0, L, mem)
        two = m.get_shape(t, 1, L, mem)
        first = core_bounds(b, kind, hull_a, count_a, one.size, T, P)
        second = core_bounds(b, other, hull_b, count_b, two.size, T, P)
        unit = m.add(first.radius, second.radius)
        apart = m.sqrt(m.dot(two.centre, two.centre))
        smallest = m.fill(real(SMALLEST))
        unit = m.where_lt(smallest, unit, unit, m.where_lt(smallest, apart, apart, m.fill(real(1.0))))
        per_unit = m.rcp(unit)
        m.put(mem, L.pair_work + PER_UNIT, t, per_unit)
        m.put(mem, L.pair_work + OWN, t, m.mul(first.radius, per_unit))
        m.put(mem, L.pair_work + OWN + 1, t, m.mul(second.radius, per_unit))
        smaller = m.smaller(first.radius, second.radius)
        # a capsule is as large as its core and its radius, and a triangle is as large as the other shape
        if kind == CAPSULE:
            smaller = m.smaller(m.add(first.radius, one.size.x), second.radius)
        if other == CAPSULE:
            smaller = m.smaller(first.radius, m.add(second.radius, two.size.x))
        if other == TRIANGLE:
            smaller = unit
        m.put(mem, L.pair_work + FINE, t, m.smaller(m.mul(m.add(smaller, smaller), per_unit), m.fill(real(1.0))))
        put_scaled(t, 0, per_unit, L, mem)
        put_scaled(t, 1, per_unit, L, mem)
        from_first = m.sub3(two.centre, m.apply(one.axes, first.inside))
        return m.scale3(m.apply_plus(two.axes, second.inside, from_first), per_unit)

    @m.func
    def along_rim(d: m.Vec3, radius: m.lane) -> m.Vec3:
        """The point of a circle about the z axis that is farthest along d; the middle if d is along the axis."""
        square = m.fma(d.x, d.x, m.mul(d.y, d.y))
        least = m.fma(m.fill(real(NO_DIRECTION)), m.mul(d.z, d.z), m.fill(real(SMALLEST)))
        s = m.where_lt(square, least, m.fill(real(0.0)), m.mul(radius, m.rcp(m.sqrt(m.larger(square, least)))))
        return m.vec(m.mul(d.x, s), m.mul(d.y, s), m.fill(real(0.0)))

    @m.shared
    def support(b, t, s: int, kind: int, hull: int, count: int, direction: m.Vec3, T, P, L, mem) -> m.Vec3:
        """The point of the core of shape s that is farthest along a direction."""
        at = L.pair_work + SHAPES + SHAPE * s
        x = m.get3(mem, at + CENTRE, t)
        if kind != SPHERE:
            axes = m.get9(mem, at + AXES, t)
            size = m.get3(mem, at + EXTENT, t)
            d = m.apply_t(direction, axes)
            up = m.sign_of(d.z)
            local = m.zero3()
            if kind == CAPSULE:
                local = m.vec(local.x, local.y, m.mul(up, size.y))
            if kind == BOX:
                local = m.vec(m.mul(m.sign_of(d.x), size.x), m.mul(m.sign_of(d.y), size.y), m.mul(up, size.z))
            if kind == CYLINDER:
                rim = along_rim(d, size.x)
                local = m.vec(rim.x, rim.y, m.mul(up, size.y))
            if kind == CONE:
                rim = along_rim(d, size.x)
                below = m.fma(rim.x, d.x, m.mul(rim.y, d.y))
                height = m.mul(m.add(size.y, size.y), d.z)
                local = m.where3_lt(height, below, m.vec(rim.x, rim.y, m.neg(size.y)), m.vec(local.x, local.y, size.y))
            if kind == ELLIPSOID:
                # A^2 d / |A d|, with A the semi-axes
                edge = m.vec(m.mul(size.x, d.x), m.mul(size.y, d.y), m.mul(size.z, d.z))
                scale = m.rcp(m.sqrt(m.larger(m.dot(edge, edge), m.fill(real(SMALLEST)))))
                local = m.vec(
                    m.mul(size.x, m.mul(edge.x, scale)),
                    m.mul(size.y, m.mul(edge.y, scale)),
                    m.mul(size.z, m.mul(edge.z, scale)),
                )
            if kind == HULL:
                place = L.pair_work + FARTHEST
                m.hull_farthest(
                    P.uniform, P.varying, P.colliders_vary, b, P.hull_at + 3 * hull, count, d, mem, place, t
                )
                local = m.scale3(m.get3(mem, place, t), m.get(mem, L.pair_work + PER_UNIT, t))
            if kind == TRIANGLE:
                most = m.fill(real(-FAR))
                corners = int(3)
                for i in range(corners):
                    v = m.get3(mem, L.surface_work + 3 * i, t)
                    reach = m.dot(v, d)
                    local = m.where3_lt(most, reach, v, local)
                    most = m.larger(most, reach)
                local = m.scale3(local, m.get(mem, L.pair_work + PER_UNIT, t))
            x = m.apply_plus(axes, local, x)
        return x

    @m.shared
    def difference(
        b,
        t,
        direction: m.Vec3,
        kind: int,
        other: int,
        hull_a: int,
        count_a: int,
        hull_b: int,
        count_b: int,
        T,
        P,
        L,
        mem,
    ) -> Difference:
        """The point of the difference of both shapes, {p - q: p in the first, q in the second}, that is farthest along a direction."""
        first = support(b, t, 0, kind, hull_a, count_a, direction, T, P, L, mem)
        second = support(b, t, 1, other, hull_b, count_b, m.neg3(direction), T, P, L, mem)
        return Difference(m.sub3(first, second), first)

    return locals()
