"""Contact points of boxes, cylinders, cones, ellipsoids and hulls with a surface, triangle by triangle.

A point of the shape that is farthest against the normal of a triangle and above it touches the triangle along that normal; so does a flat
face that is parallel to the triangle. Otherwise the touch is that of two convex shapes, the second one a triangle. It counts if its normal
leads away from the triangle and its neighbours, see `kernels.collision.surfaces.ball`: other touches are between edges inside the surface,
or on its back. If a shape is deep in the surface and the touch along the shortest way out does not count, the touch counts along the way up
for a height field, and along the normal of the triangle for a mesh. The middle of the shape must be in front of the triangle, or the shape
deep in a height field. If the middle is behind a triangle of a mesh, but not the whole shape, and in front of no triangle that is
closer, the shape touches the triangle along its normal, as a ball does, if it overlaps some triangle.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import (
    AWAY,
    AXES,
    CENTRE,
    DISTANCE,
    EXTENT,
    FEATURE,
    PLACE,
    POINT,
    POINTS_OF_A_PAIR,
    SHAPE,
)
from newton_like.kernels.collision.pairs.work import PER_UNIT, POINTS_OF_A_HULL
from newton_like.kernels.collision.plane import BOX, CONE, CYLINDER, FAR
from newton_like.kernels.collision.surfaces.records import (
    BEHIND,
    BEHIND_NUMBERS,
    FACE,
    FACTORS,
    FOUND,
    INNER,
    MAYBE,
    NEXT,
    PLACES,
    ROUND,
    TRIANGLE,
    WITHIN,
)

HALF_FAR = 0.5 * FAR
THIRD = 1.0 / 3.0
# A face is parallel to a triangle if the cosine of their angle is larger.
PARALLEL_FACE = 1.0 - 6.0e-4
# A shape that is deeper than this share of the pair's size is in the surface.
DEEP = 2.0e-3
# Triangles of a mesh have a closest edge or corner in common if their distances from the middle of a shape differ by less than this share
# of the radius about it. Their normals differ if the cosine of their angle is smaller.
AT_ONE_EDGE, OTHER_SIDE = 1.0e-4, 0.999
# A shape whose lowest point is deeper than this share of the pair's size below a triangle of a mesh, which is in its way, may be beside the
# surface. It is in the triangle if the shortest way out of that is longer than SHALLOW times that depth.
BESIDE_TRIANGLE, SHALLOW = 2.0e-2, 0.25
# A touch along a direction counts if the cosine of the angle between its normal and the direction is larger.
GRAZING = 0.2


def convex_surface_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``convex_on_surface``."""
    real = m.real
    # by how much, in sizes of the triangle, a point may be beside it
    BESIDE = 1.0e-4 if real is wp.float32 else 1.0e-7

    @m.func
    def over_face(t, x: m.Vec3, L, mem) -> m.lane:
        """One where the point x is above or below the triangle, or nearly."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        n = m.get3(mem, w + FACE, t)
        p = m.get3(mem, w, t)
        q = m.get3(mem, w + 3, t)
        r = m.get3(mem, w + 6, t)
        whole = m.dot(n, m.cross(m.sub3(q, p), m.sub3(r, p)))
        sign = m.sign_of(whole)
        a = m.sub3(p, x)
        c = m.sub3(q, x)
        g = m.sub3(r, x)
        side = m.smaller(m.mul(sign, m.dot(n, m.cross(a, c))), m.mul(sign, m.dot(n, m.cross(c, g))))
        side = m.smaller(side, m.mul(sign, m.dot(n, m.cross(g, a))))
        least = m.mul(m.fill(real(-BESIDE)), m.magnitude(whole))
        return m.where_lt(least, side, m.fill(real(1.0)), zero)

    @m.func
    def lies_flat(t, kind: int, n: m.Vec3, L, mem) -> m.lane:
        """One where a flat face of the shape is parallel to the plane with normal n and faces it."""
        axes = m.get9(mem, L.pair_shapes + AXES, t)
        d = m.apply_t(n, axes)
        c = m.magnitude(d.z)
        if kind == BOX:
            c = m.larger(c, m.larger(m.magnitude(d.x), m.magnitude(d.y)))
        if kind == CONE:
            c = d.z
        if kind != BOX and kind != CYLINDER and kind != CONE:
            c = m.fill(real(0.0))
        return m.where_lt(m.fill(real(PARALLEL_FACE)), c, m.fill(real(1.0)), m.fill(real(0.0)))

    @m.func
    def convex_below(b, t, kind: int, hull: int, count: int, at: int, unit: m.lane, T, P, L, mem):
        """Keeps a contact at the middle of the shape where that is below a height field. It is as deep as the deepest point along
        the normal of the triangle straight above."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        inner = m.get3(mem, w + INNER, t)
        sunk = m.field_below(t, at, inner, L, mem, T)
        m.load_of_field(t, at, 0, L, mem, T)
        m.put_facing(t, L, mem)
        n = m.get3(mem, w + FACE, t)
        p = m.get3(mem, w, t)
        sunk = m.where_lt(m.dot(n, m.sub3(inner, p)), zero, sunk, zero)
        if m.any_lt(zero, sunk):
            x = m.scale3(m.support(b, t, 0, kind, hull, count, m.neg3(n), T, P, L, mem), unit)
            depth = m.dot(n, m.sub3(x, p))
            # a push through the middle lifts the shape; one at its deepest point would turn it
            m.keep_found(t, sunk, inner, n, depth, m.triangle_feature(m.get(mem, w + NEXT, t), zero), L, mem)

    @m.func
    def distance_to_triangle(t, x: m.Vec3, height: m.lane, over: m.lane, L, mem) -> m.lane:
        """The distance of the point x, `height` above the plane of the triangle; `over` is one where it is above or below the triangle."""
        w = L.surface_work
        p = m.sub3(m.get3(mem, w, t), x)
        q = m.sub3(m.get3(mem, w + 3, t), x)
        r = m.sub3(m.get3(mem, w + 6, t), x)
        square = m.smaller(m.closest_on_edge(p, q).square, m.closest_on_edge(q, r).square)
        square = m.smaller(square, m.closest_on_edge(r, p).square)
        return m.where_lt(m.fill(real(0.5)), over, m.magnitude(height), m.sqrt(square))

    @m.func
    def middle_of_triangle(t, per_unit: m.lane, L, mem) -> m.Vec3:
        """The middle of the corners of the triangle, in units of the pair's size."""
        w = L.surface_work
        middle = m.add3(m.get3(mem, w, t), m.add3(m.get3(mem, w + 3, t), m.get3(mem, w + 6, t)))
        return m.scale3(middle, m.mul(m.fill(real(THIRD)), per_unit))

    @m.func
    def note_behind(b, t, where: m.lane, height: m.lane, kind: int, hull: int, count: int, unit: m.lane, T, P, L, mem):
        """Stores a triangle of a mesh that the middle of the shape is behind and closer to than to those before, if part of the shape is in
        front of it, in worlds where `where` is one. Of triangles with a common edge that is closest, the one of which the middle is farther
        behind counts."""
        w = L.surface_work
        half = m.fill(real(0.5))
        zero = m.fill(real(0.0))
        if m.any_lt(half, where):
            to = w + BEHIND
            inner = m.get3(mem, w + INNER, t)
            over = over_face(t, inner, L, mem)
            apart = distance_to_triangle(t, inner, height, over, L, mem)
            tie = m.mul(m.fill(real(AT_ONE_EDGE)), m.get(mem, w + ROUND, t))
            miss = m.sub(apart, m.get(mem, to, t))
            nearer = m.where_lt(miss, m.neg(tie), where, zero)
            lower = m.where_lt(height, m.get(mem, to + 1, t), where, zero)
            nearer = m.larger(nearer, m.where_lt(miss, tie, lower, zero))
            if m.any_lt(half, nearer):
                face = m.get3(mem, w + FACE, t)
                top = m.scale3(m.support(b, t, 0, kind, hull, count, face, T, P, L, mem), unit)
                nearer = m.where_lt(zero, m.dot(face, m.sub3(top, m.get3(mem, w, t))), nearer, zero)
                m.put(mem, to, t, m.where_lt(half, nearer, apart, m.get(mem, to, t)))
                m.put(mem, to + 1, t, m.where_lt(half, nearer, height, m.get(mem, to + 1, t)))
                m.put(mem, to + 2, t, m.where_lt(half, nearer, over, m.get(mem, to + 2, t)))
                m.put3(mem, to + 4, t, m.where3_lt(half, nearer, face, m.get3(mem, to + 4, t)))
                m.put(mem, to + 7, t, m.where_lt(half, nearer, m.get(mem, w + NEXT, t), m.get(mem, to + 7, t)))

    @m.func
    def look_from_behind(t, sunk: m.lane, L, mem) -> m.lane:
        """`sunk`, or zero where the middle of the shape is in front of the triangle and closer to it than to the one in BEHIND. BEHIND + 2
        <- one where both have a closest edge or corner in common, and other normals."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        inner = m.get3(mem, w + INNER, t)
        face = m.get3(mem, w + FACE, t)
        height = m.dot(face, m.sub3(inner, m.get3(mem, w, t)))
        apart = distance_to_triangle(t, inner, height, over_face(t, inner, L, mem), L, mem)
        here = m.where_lt(m.neg(one), m.get(mem, w + NEXT, t), one, zero)
        tie = m.mul(m.fill(real(AT_ONE_EDGE)), m.get(mem, w + ROUND, t))
        miss = m.sub(apart, m.get(mem, w + BEHIND, t))
        tied = m.where_lt(miss, tie, m.where_lt(m.neg(tie), miss, here, zero), zero)
        nearer = m.where_lt(miss, m.neg(tie), here, zero)
        higher = m.where_lt(m.neg(m.get(mem, w + BEHIND + 1, t)), height, tied, zero)
        against = m.where_lt(zero, height, m.larger(nearer, higher), zero)
        other = m.where_lt(m.dot(face, m.get3(mem, w + BEHIND + 4, t)), m.fill(real(OTHER_SIDE)), tied, zero)
        m.put(mem, w + BEHIND + 2, t, m.larger(other, m.get(mem, w + BEHIND + 2, t)))
        return m.where_lt(zero, against, zero, sunk)

    @m.func
    def note_beside(t, crossed: m.lane, beside: m.lane, depth: m.lane, L, mem):
        """Stores whether the shape overlaps a triangle of a mesh, and the triangle, of those where `beside` is one, that its lowest point
        is least deep below."""
        w = L.surface_work
        to = w + BEHIND
        least = m.get(mem, to + 8, t)
        closer = m.where_lt(least, depth, beside, m.fill(real(0.0)))
        m.put(mem, to + 3, t, m.larger(crossed, m.get(mem, to + 3, t)))
        m.put(mem, to + 8, t, m.where_lt(m.fill(real(0.5)), closer, depth, least))
        m.put(mem, to + 9, t, m.where_lt(m.fill(real(0.5)), closer, m.get(mem, w + NEXT, t), m.get(mem, to + 9, t)))

    @m.func
    def keep_from_above(b, t, kind: int, hull: int, count: int, at: int, T, P, L, mem):
        """Keeps the contact with the triangle of ``note_beside``, along its normal, where the shape overlaps the mesh and no other contact
        pushes it out."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        depth = m.get(mem, w + BEHIND + 8, t)
        lost = m.where_lt(m.fill(real(-HALF_FAR)), depth, m.get(mem, w + BEHIND + 3, t), zero)
        lost = m.where_lt(m.get(mem, w + FOUND + POINT * (PLACES - 1) + DISTANCE, t), zero, zero, lost)
        if m.any_lt(zero, lost):
            m.put(mem, w + NEXT, t, m.get(mem, w + BEHIND + 9, t))
            m.load_triangle(t, at, 1, L, mem, T)
            per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
            n = m.neg3(m.get3(mem, w + FACE, t))
            first = m.support(b, t, 0, kind, hull, count, n, T, P, L, mem)
            apart = m.mul(depth, per_unit)
            keep_manifold(b, t, lost, n, apart, first, lost, m.rcp(per_unit), kind, hull, count, T, P, L, mem)

    @m.shared
    def keep_from_behind(b, t, kind: int, hull: int, count: int, at: int, T, P, L, mem):
        """Keeps the contact of a shape whose middle is behind a triangle of a mesh, if no triangle that it is in front of is closer, and if
        the shape overlaps some triangle. At the boundary of an open mesh there is none."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        minus = m.neg(one)
        sunk = m.where_lt(m.get(mem, w + BEHIND, t), m.fill(real(HALF_FAR)), one, zero)
        if m.any_lt(zero, sunk):
            m.open_mesh(t, at, L, mem, T)
            m.next_of_mesh(t, at, L, mem, T)
            per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
            crossed = zero
            while m.any_lt(minus, m.get(mem, w + NEXT, t)):
                m.load_triangle(t, at, 1, L, mem, T)
                sunk = look_from_behind(t, sunk, L, mem)
                # a shape on both sides of the plane of a triangle may pass beside the mesh
                if m.any_lt(zero, m.sub(sunk, crossed)):
                    middle = middle_of_triangle(t, per_unit, L, mem)
                    touch = m.core_touch(
                        b, t, middle, m.fill(real(FAR)), kind, TRIANGLE, hull, count, 0, 0, T, P, L, mem
                    )
                    here = m.where_lt(minus, m.get(mem, w + NEXT, t), one, zero)
                    crossed = m.larger(crossed, m.where_lt(touch.distance, zero, here, zero))
                m.next_of_mesh(t, at, L, mem, T)
            sunk = m.mul(m.mul(sunk, crossed), m.get(mem, w + BEHIND + 2, t))
            if m.any_lt(zero, sunk):
                m.put(mem, w + NEXT, t, m.get(mem, w + BEHIND + 7, t))
                m.load_triangle(t, at, 1, L, mem, T)
                unit = m.rcp(per_unit)
                face = m.get3(mem, w + FACE, t)
                first = m.support(b, t, 0, kind, hull, count, m.neg3(face), T, P, L, mem)
                x = m.scale3(first, unit)
                distance = m.dot(face, m.sub3(x, m.get3(mem, w, t)))
                direct = m.mul(sunk, m.larger(over_face(t, x, L, mem), lies_flat(t, kind, face, L, mem)))
                if m.any_lt(zero, direct):
                    n = m.neg3(face)
                    apart = m.mul(distance, per_unit)
                    keep_manifold(b, t, direct, n, apart, first, direct, unit, kind, hull, count, T, P, L, mem)
                # the lowest point is beside the triangle
                alone = m.sub(sunk, direct)
                place = m.fnma3(face, m.mul(m.fill(real(0.5)), distance), x)
                m.keep_found(t, alone, place, face, distance, m.triangle_feature(m.get(mem, w + NEXT, t), zero), L, mem)

    @m.func
    def keep_manifold(
        b, t, valid: m.lane, n: m.Vec3, distance: m.lane, first: m.Vec3, direct: m.lane, unit: m.lane, kind: int, hull: int, count: int,
        T, P, L, mem,
    ):  # fmt: skip
        """Keeps the points of the touch with the triangle along n, in worlds where `valid` is one; those beside the triangle only where
        `direct` is one."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        within = m.get(mem, w + WITHIN, t)
        m.clear_manifold(t, L, mem)
        m.put_manifold(b, t, n, distance, first, unit, kind, TRIANGLE, hull, count, 0, 0, T, P, L, mem)
        number = m.get(mem, w + NEXT, t)
        points = int(POINTS_OF_A_PAIR)
        if m.has_polygon(kind, TRIANGLE):
            points = int(POINTS_OF_A_HULL)
            m.put_ways(t, valid, n, L, mem)
        for i in range(points):
            to = L.manifold + POINT * i
            gap = m.get(mem, to + DISTANCE, t)
            place = m.get3(mem, to + PLACE, t)
            there = m.where_lt(gap, m.smaller(within, m.fill(real(HALF_FAR))), valid, zero)
            there = m.where_lt(half, direct, m.mul(there, over_face(t, place, L, mem)), there)
            if m.any_lt(zero, there):
                feature = m.triangle_feature(number, m.get(mem, to + FEATURE, t))
                m.keep_found(t, there, place, m.neg3(m.get3(mem, to + AWAY, t)), gap, feature, L, mem)

    @m.func
    def allowed_touch(t, touch: m.Touch, where: m.lane, unit: m.lane, L, mem) -> m.lane:
        """One where the touch of the shape with the triangle is a contact with the surface. Touches at corners that are yet to be decided
        are noted."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        q = m.scale3(m.fma3(touch.n, touch.distance, touch.first), unit)
        gap = m.mul(touch.distance, unit)
        away = m.neg3(touch.n)
        found = m.where_lt(gap, m.get(mem, w + WITHIN, t), where, zero)
        free = m.leads_away(t, q, away, L, mem)
        maybe = m.mul(found, m.get(mem, w + MAYBE, t))
        if m.any_lt(zero, maybe):
            place = m.fma3(away, m.mul(m.fill(real(0.5)), gap), q)
            feature = m.triangle_feature(m.get(mem, w + NEXT, t), m.fill(real(1.0)))
            m.keep_unsure(t, maybe, q, away, place, gap, feature, zero, m.fill(real(1.0)), L, mem)
        return m.mul(found, free)

    @m.func
    def out_of_surface(t, mesh: int, L, mem) -> m.Vec3:
        """The direction that leads out of the surface: upwards of a height field, the normal of the triangle of a mesh."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        d = m.get3(mem, w + FACE, t)
        if mesh == 0:
            d = m.vec(zero, zero, m.sign_of(m.get(mem, w + FACTORS + 2, t)))
        return d

    @m.shared
    def convex_on_triangle(b, t, here: m.lane, kind: int, hull: int, count: int, at: int, mesh: int, T, P, L, mem):
        """Keeps the contacts with the triangle, in worlds where `here` is one."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
        unit = m.rcp(per_unit)
        within = m.get(mem, w + WITHIN, t)
        face = m.get3(mem, w + FACE, t)
        p = m.get3(mem, w, t)
        first = m.support(b, t, 0, kind, hull, count, m.neg3(face), T, P, L, mem)
        x = m.scale3(first, unit)
        depth = m.dot(face, m.sub3(x, p))
        near = m.where_lt(depth, within, here, zero)
        height = m.dot(face, m.sub3(m.get3(mem, w + INNER, t), p))
        front = m.where_lt(zero, height, near, zero)
        behind = zero
        if mesh == 0:
            behind = m.where_lt(depth, m.mul(unit, m.fill(real(-DEEP))), m.sub(near, front), zero)
        else:
            note_behind(b, t, m.sub(near, front), height, kind, hull, count, unit, T, P, L, mem)
        if m.any_lt(zero, m.add(front, behind)):
            direct = m.mul(front, m.larger(over_face(t, x, L, mem), lies_flat(t, kind, face, L, mem)))
            deep = zero
            if mesh != 0:
                deep = m.where_lt(depth, m.mul(unit, m.fill(real(-BESIDE_TRIANGLE))), direct, zero)
            direct = m.sub(direct, deep)
            search = m.sub(front, direct)
            n = m.neg3(face)
            distance = m.mul(depth, per_unit)
            valid = direct
            if m.any_lt(zero, m.add(search, behind)):
                middle = middle_of_triangle(t, per_unit, L, mem)
                far = m.fill(real(FAR))
                touch = m.core_touch(b, t, middle, far, kind, TRIANGLE, hull, count, 0, 0, T, P, L, mem)
                if mesh != 0:
                    # a shape that is not deep in the triangle itself may reach below it on its way around its boundary
                    through = m.where_lt(touch.distance, m.mul(m.fill(real(SHALLOW)), distance), deep, zero)
                    note_beside(t, m.where_lt(touch.distance, zero, search, zero), m.sub(deep, through), depth, L, mem)
                    direct = m.add(direct, through)
                    search = m.sub(search, through)
                    valid = direct
                m.load_neighbours(t, at, mesh, L, mem, T)
                found = allowed_touch(t, touch, search, unit, L, mem)
                valid = m.add(valid, found)
                n = m.where3_lt(half, found, touch.n, n)
                distance = m.where_lt(half, found, touch.distance, distance)
                first = m.where3_lt(half, found, touch.first, first)
                # the shortest way out may lead through the surface; another one leads out of it
                lost = m.add(m.sub(search, found), behind)
                lost = m.where_lt(touch.distance, m.fill(real(-DEEP)), lost, zero)
                if m.any_lt(zero, lost):
                    d = out_of_surface(t, mesh, L, mem)
                    other = m.touch_along(b, t, d, lost, kind, TRIANGLE, hull, count, 0, 0, T, P, L, mem)
                    # not where the shape grazes the triangle on its way
                    lost = m.where_lt(m.dot(other.n, d), m.fill(real(-GRAZING)), lost, zero)
                    free = allowed_touch(t, other, lost, unit, L, mem)
                    valid = m.add(valid, free)
                    n = m.where3_lt(half, free, other.n, n)
                    distance = m.where_lt(half, free, other.distance, distance)
                    first = m.where3_lt(half, free, other.first, first)
            if m.any_lt(zero, valid):
                keep_manifold(b, t, valid, n, distance, first, direct, unit, kind, hull, count, T, P, L, mem)

    @m.shared
    def convex_on_surface(b, t, kind: int, hull: int, count: int, at: int, mesh: int, T, P, L, mem):
        """The contacts of a shape with the surface whose table is at `at`."""
        w = L.surface_work
        one = m.fill(real(1.0))
        zero = m.fill(real(0.0))
        minus = m.neg(one)
        to = L.pair_shapes + SHAPE
        m.put3(mem, to + CENTRE, t, m.zero3())
        m.put9(mem, to + AXES, t, m.Mat33(m.vec(one, zero, zero), m.vec(zero, one, zero), m.vec(zero, zero, one)))
        m.put3(mem, to + EXTENT, t, m.zero3())
        m.scale_pair(b, t, kind, TRIANGLE, hull, count, 0, 0, T, P, L, mem)
        if mesh != 0:
            m.clear(t, w + BEHIND, BEHIND_NUMBERS, mem)
            m.put(mem, w + BEHIND, t, m.fill(real(FAR)))
            m.put(mem, w + BEHIND + 8, t, m.fill(real(-FAR)))
            m.open_mesh(t, at, L, mem, T)
        else:
            convex_below(b, t, kind, hull, count, at, m.rcp(m.get(mem, L.pair_work + PER_UNIT, t)), T, P, L, mem)
            m.open_field(t, at, L, mem, T)
        m.next_triangle(t, at, mesh, L, mem, T)
        while m.any_lt(minus, m.get(mem, w + NEXT, t)):
            m.load_triangle(t, at, mesh, L, mem, T)
            here = m.where_lt(minus, m.get(mem, w + NEXT, t), one, zero)
            convex_on_triangle(b, t, here, kind, hull, count, at, mesh, T, P, L, mem)
            m.empty_unsure(t, at, mesh, L, mem, T)
            m.next_triangle(t, at, mesh, L, mem, T)
        m.decide_unsure(t, zero, at, mesh, L, mem, T)
        if mesh != 0:
            keep_from_above(b, t, kind, hull, count, at, T, P, L, mem)
            keep_from_behind(b, t, kind, hull, count, at, T, P, L, mem)

    return locals()
