"""Boxes about shapes, along the axes of each shape: a pair whose boxes are apart, and stay so on their way, is not looked at.

Boxes are compared along the face normals of both (six of the fifteen separating axes of Gottschalk, Lin and Manocha 1996); boxes that only
edges separate pass. Box numbers of a shape are computed when its first pair asks for them in a step.
"""

import types

from newton_like.kernels.collision.pairs.records import BOX_AXES, BOX_HALF, BOX_KNOWN, BOX_MIDDLE, SHAPE_PLACE
from newton_like.kernels.collision.plane import BOX, CAPSULE, ELLIPSOID, FAR, HULL, SPHERE
from newton_like.kernels.tree import ROTATION, SIZE


def box_bounds(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``know_box`` and ``box_gap``."""
    real = m.real

    @m.shared
    def know_box(b, t, s: int, k: int, kind: int, hull: int, count: int, T, P, L, mem):
        """Stores the axes of shape s on body k, the middle of its box relative to the place of the shape, in world axes, and half sides."""
        at = L.shape_place + SHAPE_PLACE * s
        turn = m.collider_quat(P, b, T.colliders + s, ROTATION)
        if k >= 0:
            turn = m.quat_multiply(m.get4(mem, L.quat + 4 * k, t), turn)
        axes = m.quat_to_matrix(turn)
        size = m.collider_vec(P, b, T.colliders + s, SIZE)
        middle = m.zero3()
        # cylinders and cones: the radius, and half the height
        half = m.vec(size.x, size.x, size.y)
        if kind == SPHERE:
            half = m.vec(size.x, size.x, size.x)
        if kind == CAPSULE:
            half = m.vec(size.x, size.x, m.add(size.x, size.y))
        if kind == BOX:
            half = size
        if kind == ELLIPSOID:
            half = size
        if kind == HULL:
            low = m.vec(m.fill(real(FAR)), m.fill(real(FAR)), m.fill(real(FAR)))
            high = m.neg3(low)
            for i in range(count):
                x = m.hull_point(b, hull + i, T, P)
                low = m.vec(m.smaller(low.x, x.x), m.smaller(low.y, x.y), m.smaller(low.z, x.z))
                high = m.vec(m.larger(high.x, x.x), m.larger(high.y, x.y), m.larger(high.z, x.z))
            middle = m.apply(axes, m.scale3(m.add3(high, low), m.fill(real(0.5))))
            half = m.scale3(m.sub3(high, low), m.fill(real(0.5)))
        m.put9(mem, at + BOX_AXES, t, axes)
        m.put3(mem, at + BOX_MIDDLE, t, middle)
        m.put3(mem, at + BOX_HALF, t, half)
        m.put(mem, at + BOX_KNOWN, t, m.fill(real(1.0)))

    @m.func
    def gap_along(d: m.lane, moved: m.lane, half: m.lane, across: m.Vec3, other: m.Vec3) -> m.lane:
        """The smallest gap along a face normal: of boxes at the distance d along it while the first one moves by `moved`, with half a side,
        and the products of the normal with the other box's axes and its half sides."""
        reach = m.fma(m.magnitude(across.x), other.x, m.fma(m.magnitude(across.y), other.y, half))
        reach = m.fma(m.magnitude(across.z), other.z, reach)
        closing = m.larger(m.fill(real(0.0)), m.mul(m.sign_of(d), moved))
        return m.sub(m.magnitude(d), m.add(closing, reach))

    @m.func
    def box_gap(t, one: int, two: int, way: m.Vec3, moved: m.Vec3, L, mem) -> m.lane:
        """Of the gaps of the boxes of two shapes along their face normals, the largest one that stays while the first shape moves; negative
        if none separates them all the time.

        Args:
            way: from the place of the first shape to that of the second one, in world axes.
            moved: how far the first shape moves, in world axes.
        """
        first = L.shape_place + SHAPE_PLACE * one
        second = L.shape_place + SHAPE_PLACE * two
        d = m.add3(way, m.sub3(m.get3(mem, second + BOX_MIDDLE, t), m.get3(mem, first + BOX_MIDDLE, t)))
        r = m.get9(mem, first + BOX_AXES, t)
        q = m.get9(mem, second + BOX_AXES, t)
        a = m.get3(mem, first + BOX_HALF, t)
        c = m.get3(mem, second + BOX_HALF, t)
        # the second box's axes in the first one's axes
        x = m.apply_t(m.column(q, 0), r)
        y = m.apply_t(m.column(q, 1), r)
        z = m.apply_t(m.column(q, 2), r)
        along = m.apply_t(d, r)
        u = m.apply_t(moved, r)
        gap = gap_along(along.x, u.x, a.x, m.vec(x.x, y.x, z.x), c)
        gap = m.larger(gap, gap_along(along.y, u.y, a.y, m.vec(x.y, y.y, z.y), c))
        gap = m.larger(gap, gap_along(along.z, u.z, a.z, m.vec(x.z, y.z, z.z), c))
        along = m.apply_t(d, q)
        u = m.apply_t(moved, q)
        gap = m.larger(gap, gap_along(along.x, u.x, c.x, x, a))
        gap = m.larger(gap, gap_along(along.y, u.y, c.y, y, a))
        return m.larger(gap, gap_along(along.z, u.z, c.z, z, a))

    return locals()
