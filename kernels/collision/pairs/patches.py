"""Patches: the part of a convex shape's surface that faces the other shape of a pair.

A patch is the face of a box, the cap of a cylinder or the base of a cone as an octagon, the line on the side of a cylinder, cone or capsule
that is farthest along the normal, or the convex polygon of the vertices of a hull that are nearly as far along the normal as the
farthest one. It need not be perpendicular to the normal: corners have their own heights.
"""

import math
import types

from newton_like.kernels.collision.pairs.records import AXES, CENTRE, EXTENT, SHAPE
from newton_like.kernels.collision.pairs.work import (
    FINE,
    LINES,
    MOST_NUMBERS,
    NUMBERS,
    OWN,
    PATCH,
    PATCH_AT,
    PATCH_CORNERS,
    PER_UNIT,
    SHAPES,
    SMALLEST,
)
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, FAR, HULL
from newton_like.kernels.collision.surfaces.records import TRIANGLE

# A cap's first corner is its lowest point if the sine of the angle between the axis and the normal is larger; else it is on the x axis.
TILTED = 1.0e-3
# Vertices of a hull belong to its patch if they are lower than the highest one by no more than a share of the hull's diameter, or of the
# pair's size if that is smaller, and by no more than a share of the hull's height: a thin plate has two sides. Vertices that are lower
# by less than another share of the diameter always belong to it: a flat mesh has one side.
SLAB, SLAB_SHARE, FLAT = 1.0e-2, 0.25, 1.0e-3
# A polygon with a smaller area beside the square of its length is a line.
THIN = 1.0e-2
# Two lines are parallel where they are apart by no more, in units of tolerances.
WIDTH = 5.0e-3
# The square of the length of an edge that is a point.
SHORTEST = 1.0e-10
DIAGONAL = math.sqrt(0.5)
# A vertex that is outside of a hull's patch by more than this share of its width becomes a corner, if there is room; and a corner that is
# outside of the contact points a further one.
OUTSIDE = 1.0e-2
FULL = PATCH_CORNERS - 0.5
# The first direction in which a hull's patch has a corner, at an angle to which edges are not likely to be perpendicular.
COSINE, SINE = math.cos(0.3), math.sin(0.3)


def patch_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the structs ``Frame`` and ``Patch``, and ``put_patch``."""
    real = m.real

    @m.func
    def corners_of(kind: int) -> int:
        """Number of corners of the patch of a kind of shape."""
        corners = int(PATCH_CORNERS)
        if kind == BOX:
            corners = int(4)
        if kind == CAPSULE:
            corners = int(4)
        if kind == TRIANGLE:
            corners = int(4)
        return corners

    @m.struct
    class Frame:
        """The normal and two unit vectors perpendicular to it."""

        n: m.Vec3
        u: m.Vec3
        v: m.Vec3

    @m.struct
    class Patch:
        """The plane of a patch, height = level + x slope_x + y slope_y; one where the patch is a line, else zero; and which face it is,
        an integer below 8."""

        level: m.lane
        slope_x: m.lane
        slope_y: m.lane
        line: m.lane
        face: m.lane

    @m.func
    def to_frame(f: Frame, x: m.Vec3) -> m.Vec3:
        """Both coordinates of x in the plane, and its height."""
        return m.vec(m.dot(f.u, x), m.dot(f.v, x), m.dot(f.n, x))

    @m.func
    def plane_patch(p: m.Vec3, normal: m.Vec3, line: m.lane, face: m.lane) -> Patch:
        """The patch in the plane through p with a normal, both in the frame; a steep plane counts as level."""
        steep = m.fill(real(0.05))
        z = m.magnitude(normal.z)
        s = m.where_lt(steep, z, m.rcp(m.where_lt(steep, z, normal.z, m.fill(real(1.0)))), m.fill(real(0.0)))
        x = m.neg(m.mul(normal.x, s))
        y = m.neg(m.mul(normal.y, s))
        return Patch(m.fnma(x, p.x, m.fnma(y, p.y, p.z)), x, y, line, face)

    @m.func
    def line_patch(p: m.Vec3, q: m.Vec3, face: m.lane) -> Patch:
        """The patch of the line from p to q, level across it."""
        edge = m.sub3(q, p)
        square = m.fma(edge.x, edge.x, m.mul(edge.y, edge.y))
        steep = m.fma(m.fill(real(0.05)), m.mul(edge.z, edge.z), m.fill(real(SMALLEST)))
        s = m.where_lt(steep, square, m.div(edge.z, m.larger(square, steep)), m.fill(real(0.0)))
        x = m.mul(edge.x, s)
        y = m.mul(edge.y, s)
        return Patch(m.fnma(x, p.x, m.fnma(y, p.y, p.z)), x, y, m.fill(real(1.0)), face)

    @m.func
    def other_patch(where: m.lane, a: Patch, other: Patch) -> Patch:
        """a where `where` is one, else the other one."""
        h = m.fill(real(0.5))
        return Patch(
            m.where_lt(h, where, a.level, other.level),
            m.where_lt(h, where, a.slope_x, other.slope_x),
            m.where_lt(h, where, a.slope_y, other.slope_y),
            m.where_lt(h, where, a.line, other.line),
            m.where_lt(h, where, a.face, other.face),
        )

    @m.func
    def put_line_corners(t, at: int, where: m.lane, p: m.Vec3, q: m.Vec3, number: m.lane, last_number: m.lane, mem):
        """Makes a line from p to q of the polygon of eight corners where `where` is one. The last arguments are the numbers of p and q."""
        h = m.fill(real(0.5))
        m.put3(mem, at, t, m.where3_lt(h, where, p, m.get3(mem, at, t)))
        m.put(mem, at + NUMBERS, t, m.where_lt(h, where, number, m.get(mem, at + NUMBERS, t)))
        m.put(mem, at + NUMBERS + 1, t, m.where_lt(h, where, last_number, m.get(mem, at + NUMBERS + 1, t)))
        last = int(PATCH_CORNERS)
        for k in range(1, last):
            m.put3(mem, at + 3 * k, t, m.where3_lt(h, where, q, m.get3(mem, at + 3 * k, t)))

    @m.func
    def put_octagon(t, at: int, middle: m.Vec3, x: m.Vec3, y: m.Vec3, mem):
        """Stores corners on the ellipse about `middle` with the half axes x and y, the first one at x."""
        d = m.fill(real(DIAGONAL))
        a = m.scale3(m.add3(x, y), d)
        c = m.scale3(m.sub3(y, x), d)
        m.put3(mem, at, t, m.add3(middle, x))
        m.put3(mem, at + 3, t, m.add3(middle, a))
        m.put3(mem, at + 6, t, m.add3(middle, y))
        m.put3(mem, at + 9, t, m.add3(middle, c))
        m.put3(mem, at + 12, t, m.sub3(middle, x))
        m.put3(mem, at + 15, t, m.sub3(middle, a))
        m.put3(mem, at + 18, t, m.sub3(middle, y))
        m.put3(mem, at + 21, t, m.sub3(middle, c))

    @m.func
    def box_patch(t, at: int, f: Frame, d: m.Vec3, size: m.Vec3, mem) -> Patch:
        """The face along d."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        x = m.magnitude(d.x)
        y = m.magnitude(d.y)
        z = m.magnitude(d.z)
        is_x = m.where_lt(m.larger(y, z), x, one, zero)
        is_y = m.mul(m.sub(one, is_x), m.where_lt(z, y, one, zero))
        h = m.fill(real(0.5))
        along = m.vec(zero, zero, m.sign_of(d.z))
        along = m.where3_lt(h, is_y, m.vec(zero, m.sign_of(d.y), zero), along)
        along = m.where3_lt(h, is_x, m.vec(m.sign_of(d.x), zero, zero), along)
        p = m.where3_lt(h, is_x, m.vec(zero, size.y, zero), m.vec(size.x, zero, zero))
        q = m.where3_lt(h, m.add(is_x, is_y), m.vec(zero, zero, size.z), m.vec(zero, size.y, zero))
        middle = to_frame(f, m.vec(m.mul(along.x, size.x), m.mul(along.y, size.y), m.mul(along.z, size.z)))
        p = to_frame(f, p)
        q = to_frame(f, q)
        a = m.add3(p, q)
        c = m.sub3(p, q)
        m.put3(mem, at, t, m.add3(middle, a))
        m.put3(mem, at + 3, t, m.add3(middle, c))
        m.put3(mem, at + 6, t, m.sub3(middle, a))
        m.put3(mem, at + 9, t, m.sub3(middle, c))
        axis = m.fma(is_x, m.fill(real(2.0)), m.mul(is_y, one))
        positive = m.add(m.add(along.x, along.y), along.z)
        face = m.fma(axis, m.fill(real(2.0)), m.where_lt(zero, positive, one, zero))
        return plane_patch(middle, to_frame(f, along), zero, face)

    @m.func
    def round_patch(t, at: int, kind: int, f: Frame, d: m.Vec3, size: m.Vec3, mem) -> Patch:
        """The cap of a cylinder or the base of a cone, or the line on its side."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        least = m.fill(real(SMALLEST))
        round_part = m.sqrt(m.fma(d.x, d.x, m.mul(d.y, d.y)))
        tilted = m.fill(real(TILTED))
        if kind == CONE:
            up = m.neg(one)
            # the side's normal is 2 h outwards and r up
            h = m.add(size.y, size.y)
            slant = m.sqrt(m.larger(m.fma(h, h, m.mul(size.x, size.x)), least))
            flat = m.where_lt(m.fma(h, round_part, m.mul(size.x, d.z)), m.neg(m.mul(slant, d.z)), one, zero)
        else:
            up = m.sign_of(d.z)
            flat = m.where_lt(round_part, m.magnitude(d.z), one, zero)
        # on its side the shape has no first corner, only the line along d
        tilt = m.mul(tilted, flat)
        inverse = m.rcp(m.larger(round_part, m.fill(real(1.0e-12))))
        leaning = m.where_lt(m.larger(tilt, m.fill(real(1.0e-12))), round_part, one, zero)
        half = m.fill(real(0.5))
        edge = m.where3_lt(half, leaning, m.vec(m.mul(d.x, inverse), m.mul(d.y, inverse), zero), m.vec(one, zero, zero))
        x = to_frame(f, m.scale3(edge, size.x))
        y = to_frame(f, m.vec(m.neg(m.mul(edge.y, size.x)), m.mul(edge.x, size.x), zero))
        axis = to_frame(f, m.vec(zero, zero, one))
        middle = m.scale3(axis, m.mul(up, size.y))
        put_octagon(t, at, middle, x, y, mem)
        p = m.fma3(axis, m.neg(size.y), x)
        q = m.scale3(axis, size.y)
        if kind == CYLINDER:
            q = m.add3(q, x)
        put_line_corners(t, at, m.sub(one, flat), p, q, zero, one, mem)
        face = m.where_lt(zero, up, one, zero)
        cap = plane_patch(middle, axis, zero, face)
        return other_patch(flat, cap, line_patch(p, q, m.fill(real(2.0))))

    @m.func
    def put_sides(t, at: int, mem) -> m.lane:
        """Stores the lines of the sides of a polygon that goes round counterclockwise, with outward unit normals; zeros for a side without
        length. Returns the last corner that the next one is equal to, -1 if all differ."""
        zero = m.fill(real(0.0))
        spare = m.fill(real(-1.0))
        point = m.fill(real(SHORTEST))
        corners = int(PATCH_CORNERS)
        for k in range(corners):
            p = m.get3(mem, at + 3 * k, t)
            q = m.get3(mem, at + 3 * ((k + 1) % corners), t)
            a = m.sub(q.y, p.y)
            c = m.sub(p.x, q.x)
            square = m.fma(a, a, m.mul(c, c))
            inverse = m.where_lt(point, square, m.rcp(m.sqrt(m.larger(square, point))), zero)
            a = m.mul(a, inverse)
            c = m.mul(c, inverse)
            m.put3(mem, at + LINES + 3 * k, t, m.vec(a, c, m.fma(a, p.x, m.mul(c, p.y))))
            spare = m.where_lt(point, square, spare, m.fill(real(k)))
        return spare

    @m.func
    def insert_corner(t, at: int, where: m.lane, new: m.Vec3, new_number: m.lane, side: m.lane, spare: m.lane, mem):
        """Puts a corner on a side of the polygon, and leaves out the corner `spare`, where `where` is one."""
        half = m.fill(real(0.5))
        zero = m.fill(real(0.0))
        # corners between both move by one place
        up = m.where_lt(side, spare, where, zero)
        down = m.sub(where, up)
        place = m.add(side, up)
        before = new
        before_number = new_number
        corners = int(PATCH_CORNERS)
        for k in range(corners):
            here = m.fill(real(k))
            p = m.get3(mem, at + 3 * k, t)
            number = m.get(mem, at + NUMBERS + k, t)
            following = (k + 1) % corners
            raised = m.where_lt(place, here, m.where_lt(spare, here, zero, up), zero)
            lowered = m.where_lt(here, place, m.where_lt(here, spare, zero, down), zero)
            set_ = m.where_lt(m.magnitude(m.sub(here, place)), half, where, zero)
            x = m.where3_lt(half, raised, before, p)
            x = m.where3_lt(half, lowered, m.get3(mem, at + 3 * following, t), x)
            n = m.where_lt(half, raised, before_number, number)
            n = m.where_lt(half, lowered, m.get(mem, at + NUMBERS + following, t), n)
            m.put3(mem, at + 3 * k, t, m.where3_lt(half, set_, new, x))
            m.put(mem, at + NUMBERS + k, t, m.where_lt(half, set_, new_number, n))
            before = p
            before_number = number

    @m.struct
    class Outlier:
        """The vertex that is farthest outside of a polygon: by how much, of which side, its place and its number."""

        reach: m.lane
        side: m.lane
        p: m.Vec3
        number: m.lane

    @m.func
    def farther_outside(old: Outlier, t, at: int, k: int, p: m.Vec3, number: m.lane, here: m.lane, mem) -> Outlier:
        """The vertex p where `here` is one and p is farther outside of side k."""
        line = m.get3(mem, at + LINES + 3 * k, t)
        reach = m.fma(line.x, p.x, m.fma(line.y, p.y, m.neg(line.z)))
        reach = m.where_lt(m.fill(real(0.5)), here, reach, m.fill(real(-FAR)))
        return Outlier(
            m.larger(old.reach, reach),
            m.where_lt(old.reach, reach, m.fill(real(k)), old.side),
            m.where3_lt(old.reach, reach, p, old.p),
            m.where_lt(old.reach, reach, number, old.number),
        )

    @m.shared
    def add_corners(
        b, t, at: int, wanted: m.lane, f: Frame, d: m.Vec3, slab: m.lane, per_unit: m.lane, hull: int, count: int, T, P, L, mem,
    ):  # fmt: skip
        """Gives corners that are there twice the places of vertices outside of the polygon, where `wanted` is one."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        corners = int(PATCH_CORNERS)
        opposite = int(PATCH_CORNERS // 2)
        wide = m.fill(real(0.0))
        for j in range(opposite):
            edge = m.sub3(m.get3(mem, at + 3 * (j + opposite), t), m.get3(mem, at + 3 * j, t))
            wide = m.larger(wide, m.larger(m.magnitude(edge.x), m.magnitude(edge.y)))
        least = m.mul(m.fill(real(OUTSIDE)), wide)
        going = wanted
        for _round in range(opposite):
            if m.any_lt(zero, going):
                spare = put_sides(t, at, mem)
                best = Outlier(least, m.fill(real(-1.0)), m.zero3(), m.fill(real(0.0)))
                for i in range(count):
                    x = m.scale3(m.hull_point(b, hull + i, T, P), per_unit)
                    height = m.dot(d, x)
                    if m.any_lt(slab, height):
                        here = m.where_lt(slab, height, one, zero)
                        p = to_frame(f, x)
                        for k in range(corners):
                            best = farther_outside(best, t, at, k, p, m.fill(real(i % MOST_NUMBERS)), here, mem)
                going = m.where_lt(m.smaller(spare, best.side), zero, zero, going)
                if m.any_lt(zero, going):
                    insert_corner(t, at, going, best.p, best.number, best.side, spare, mem)

    @m.func
    def hull_patch_of(b, t, which: int, at: int, f: Frame, d: m.Vec3, hull: int, count: int, T, P, L, mem) -> Patch:
        """The corners of the polygon are the vertices that are farthest along eight directions of the plane. One vertex may be farthest
        along several of them: others outside of the polygon then come in addition.

        Args:
            which: 0 for the first shape, 1 for the second one.
            d: the normal or its opposite.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
        highest = m.fill(real(-FAR))
        lowest = m.fill(real(FAR))
        top = m.zero3()
        for i in range(count):
            x = m.scale3(m.hull_point(b, hull + i, T, P), per_unit)
            height = m.dot(d, x)
            top = m.where3_lt(highest, height, x, top)
            highest = m.larger(highest, height)
            lowest = m.smaller(lowest, height)
        top = to_frame(f, top)
        own = m.get(mem, L.pair_work + OWN + which, t)
        diameter = m.add(own, own)
        share = m.mul(m.fill(real(SLAB_SHARE)), m.sub(highest, lowest))
        slab = m.smaller(m.mul(m.fill(real(SLAB)), m.smaller(diameter, m.fill(real(1.0)))), share)
        slab = m.sub(highest, m.larger(slab, m.mul(m.fill(real(FLAT)), diameter)))
        corners = int(PATCH_CORNERS)
        members = zero
        for k in range(corners):
            m.put3(mem, at + 3 * k, t, top)
            m.put(mem, at + LINES + k, t, m.fill(real(-FAR)))
        for i in range(count):
            x = m.scale3(m.hull_point(b, hull + i, T, P), per_unit)
            height = m.dot(d, x)
            if m.any_lt(slab, height):
                p = to_frame(f, x)
                members = m.add(members, m.where_lt(slab, height, one, zero))
                c = m.fill(real(COSINE))
                s = m.fill(real(SINE))
                for k in range(corners):
                    best = m.get(mem, at + LINES + k, t)
                    reach = m.where_lt(slab, height, m.fma(c, p.x, m.mul(s, p.y)), m.fill(real(-FAR)))
                    m.put3(mem, at + 3 * k, t, m.where3_lt(best, reach, p, m.get3(mem, at + 3 * k, t)))
                    m.put(mem, at + LINES + k, t, m.larger(best, reach))
                    vertex = m.fill(real(i % MOST_NUMBERS))
                    m.put(mem, at + NUMBERS + k, t, m.where_lt(best, reach, vertex, m.get(mem, at + NUMBERS + k, t)))
                    turned = m.mul(m.fill(real(DIAGONAL)), m.sub(c, s))
                    s = m.mul(m.fill(real(DIAGONAL)), m.add(c, s))
                    c = turned
        known = zero
        for k in range(corners):
            edge = m.sub3(m.get3(mem, at + 3 * ((k + 1) % corners), t), m.get3(mem, at + 3 * k, t))
            square = m.fma(edge.x, edge.x, m.mul(edge.y, edge.y))
            known = m.add(known, m.where_lt(m.fill(real(SHORTEST)), square, one, zero))
        few = m.where_lt(known, m.fill(real(FULL)), one, zero)
        wanted = m.where_lt(m.add(known, m.fill(real(0.5))), members, few, zero)
        if m.any_lt(zero, wanted):
            add_corners(b, t, at, wanted, f, d, slab, per_unit, hull, count, T, P, L, mem)
        # the sum of the areas of triangles to the first corner, and the longest diagonal
        first = m.get3(mem, at, t)
        normal = m.zero3()
        longest = m.fill(real(-1.0))
        p = first
        q = first
        number = zero
        last_number = zero
        opposite = int(PATCH_CORNERS // 2)
        for k in range(corners):
            x = m.get3(mem, at + 3 * k, t)
            following = (k + 1) % corners
            y = m.get3(mem, at + 3 * following, t)
            normal = m.add3(normal, m.cross(m.sub3(x, first), m.sub3(y, first)))
            if k < opposite:
                y = m.get3(mem, at + 3 * (k + opposite), t)
                edge = m.sub3(y, x)
                square = m.dot(edge, edge)
                p = m.where3_lt(longest, square, x, p)
                q = m.where3_lt(longest, square, y, q)
                number = m.where_lt(longest, square, m.get(mem, at + NUMBERS + k, t), number)
                last_number = m.where_lt(longest, square, m.get(mem, at + NUMBERS + k + opposite, t), last_number)
                longest = m.larger(longest, square)
        area = m.magnitude(normal.z)
        line = m.where_lt(m.mul(m.fill(real(THIN)), longest), area, zero, one)
        put_line_corners(t, at, line, p, q, number, last_number, mem)
        scale = m.rcp(m.sqrt(m.larger(m.dot(normal, normal), m.fill(real(SMALLEST)))))
        plane = plane_patch(top, m.scale3(normal, scale), zero, zero)
        return other_patch(line, line_patch(p, q, m.fill(real(2.0))), plane)

    @m.func
    def triangle_patch(t, at: int, f: Frame, L, mem) -> Patch:
        """A triangle, whose last corner counts twice, or its longest edge if it is seen from the side."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
        a = to_frame(f, m.scale3(m.get3(mem, L.surface_work, t), per_unit))
        c = to_frame(f, m.scale3(m.get3(mem, L.surface_work + 3, t), per_unit))
        g = to_frame(f, m.scale3(m.get3(mem, L.surface_work + 6, t), per_unit))
        p = a
        q = c
        longest = m.dot(m.sub3(c, a), m.sub3(c, a))
        square = m.dot(m.sub3(g, c), m.sub3(g, c))
        p = m.where3_lt(longest, square, c, p)
        q = m.where3_lt(longest, square, g, q)
        longest = m.larger(longest, square)
        square = m.dot(m.sub3(a, g), m.sub3(a, g))
        p = m.where3_lt(longest, square, g, p)
        q = m.where3_lt(longest, square, a, q)
        longest = m.larger(longest, square)
        normal = m.cross(m.sub3(c, a), m.sub3(g, a))
        thin = m.mul(m.fill(real(THIN)), longest)
        line = m.where_lt(m.magnitude(normal.z), thin, one, zero)
        m.put3(mem, at, t, m.where3_lt(half, line, p, a))
        m.put3(mem, at + 3, t, m.where3_lt(half, line, q, c))
        m.put3(mem, at + 6, t, m.where3_lt(half, line, q, g))
        m.put3(mem, at + 9, t, m.where3_lt(half, line, q, g))
        scale = m.rcp(m.sqrt(m.larger(m.dot(normal, normal), m.fill(real(SMALLEST)))))
        plane = plane_patch(a, m.scale3(normal, scale), zero, zero)
        return other_patch(line, line_patch(p, q, m.fill(real(2.0))), plane)

    @m.func
    def put_lines(t, at: int, corners: int, line: m.lane, fine: m.lane, mem):
        """Stores the lines of the edges of a polygon; of a patch that is a line those of a narrow rectangle.

        Args:
            fine: the unit of tolerances.
        """
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        x = zero
        y = zero
        for k in range(corners):
            x = m.add(x, m.get(mem, at + 3 * k, t))
            y = m.add(y, m.get(mem, at + 3 * k + 1, t))
        share = m.fill(real(1.0) / real(corners))
        x = m.mul(x, share)
        y = m.mul(y, share)
        first = m.get3(mem, at, t)
        second = m.get3(mem, at + 3, t)
        ex = m.sub(second.x, first.x)
        ey = m.sub(second.y, first.y)
        square = m.fma(ex, ex, m.mul(ey, ey))
        # a point has a square
        point = m.fill(real(SHORTEST))
        inverse = m.rcp(m.sqrt(m.larger(square, point)))
        ex = m.where_lt(point, square, m.mul(ex, inverse), m.fill(real(1.0)))
        ey = m.where_lt(point, square, m.mul(ey, inverse), zero)
        for k in range(corners):
            p = m.get3(mem, at + 3 * k, t)
            q = m.get3(mem, at + 3 * ((k + 1) % corners), t)
            a = m.sub(q.y, p.y)
            c = m.sub(p.x, q.x)
            offset = m.fma(a, p.x, m.mul(c, p.y))
            # the middle of the polygon is on the side where less is
            flip = m.where_lt(offset, m.fma(a, x, m.mul(c, y)), m.fill(real(-1.0)), m.fill(real(1.0)))
            wide = m.sqrt(m.fma(a, a, m.mul(c, c)))
            a = m.mul(flip, a)
            c = m.mul(flip, c)
            offset = m.mul(flip, offset)
            # a rectangle has its sides along the line first, then its ends
            across = m.fill(real(1.0))
            end = zero
            if k == 1:
                across = m.fill(real(-1.0))
            if k == 2:
                across = zero
                end = m.fill(real(1.0))
            if k == 3:
                across = zero
                end = m.fill(real(-1.0))
            la = m.fma(across, m.neg(ey), m.mul(end, ex))
            lc = m.fma(across, ex, m.mul(end, ey))
            lo = m.fma(la, first.x, m.mul(lc, first.y))
            lo = m.larger(lo, m.fma(la, second.x, m.mul(lc, second.y)))
            lo = m.fma(m.magnitude(across), m.mul(m.fill(real(WIDTH)), fine), lo)
            if k > 3:
                la = zero
                lc = zero
                lo = m.fill(real(1.0))
            # an edge without length bounds nothing
            offset = m.where_lt(zero, wide, offset, m.fill(real(1.0)))
            m.put(mem, at + LINES + 3 * k, t, m.where_lt(half, line, la, a))
            m.put(mem, at + LINES + 3 * k + 1, t, m.where_lt(half, line, lc, c))
            m.put(mem, at + LINES + 3 * k + 2, t, m.where_lt(half, line, lo, offset))

    @m.shared
    def put_patch(b, t, s: int, kind: int, hull: int, count: int, frame: Frame, T, P, L, mem) -> Patch:
        """Stores the corners and lines of the patch of shape s."""
        at = L.pair_work + PATCH_AT + PATCH * s
        shape = L.pair_work + SHAPES + SHAPE * s
        axes = m.get9(mem, shape + AXES, t)
        size = m.get3(mem, shape + EXTENT, t)
        # in the axes of the shape
        f = Frame(m.apply_t(frame.n, axes), m.apply_t(frame.u, axes), m.apply_t(frame.v, axes))
        d = f.n
        radius = m.fill(real(0.0))
        if kind == CAPSULE:
            radius = size.x
        if s == 1:
            d = m.neg3(d)
            radius = m.neg(radius)
        zero = m.fill(real(0.0))
        patch = Patch(zero, zero, zero, zero, zero)
        corners = corners_of(kind)
        for k in range(corners):
            m.put(mem, at + NUMBERS + k, t, m.fill(real(k)))
        if kind == BOX:
            patch = box_patch(t, at, f, d, size, mem)
        elif kind == CAPSULE:
            p = to_frame(f, m.vec(zero, zero, size.y))
            q = m.neg3(p)
            m.put3(mem, at, t, p)
            for k in range(1, corners):
                m.put3(mem, at + 3 * k, t, q)
            patch = line_patch(p, q, zero)
        elif kind == TRIANGLE:
            patch = triangle_patch(t, at, f, L, mem)
        elif kind == HULL:
            patch = hull_patch_of(b, t, s, at, f, d, hull, count, T, P, L, mem)
        else:
            patch = round_patch(t, at, kind, f, d, size, mem)
        # from the shape's centre to that of the pair
        centre = to_frame(frame, m.get3(mem, shape + CENTRE, t))
        centre = m.vec(centre.x, centre.y, m.add(centre.z, radius))
        for k in range(corners):
            m.put3(mem, at + 3 * k, t, m.add3(m.get3(mem, at + 3 * k, t), centre))
        level = m.fnma(patch.slope_x, centre.x, m.fnma(patch.slope_y, centre.y, m.add(patch.level, centre.z)))
        put_lines(t, at, corners, patch.line, m.get(mem, L.pair_work + FINE, t), mem)
        return Patch(level, patch.slope_x, patch.slope_y, patch.line, patch.face)

    return locals()
