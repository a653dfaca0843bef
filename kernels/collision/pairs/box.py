"""Contact points of two boxes.

The normal is the separating axis with the largest separation; the axes of faces come before those of pairs of edges. A face that is
touched (the reference face) is compared with the face of the other box that points most against it (the incident face): of the corners of
the part that both share, seen along the normal, up to four are contact points. Two edges have one contact point. Boxes whose nearest points
are a corner and a corner or an edge of the other box have this point.
"""

import types

from newton_like.kernels.collision.pairs.records import FEATURE, HEIGHT, SHARED_CORNER, SHARED_CORNERS, WEIGHT
from newton_like.kernels.collision.plane import FAR

# An axis of the second box has to separate the boxes by this share of the smallest half side more than all axes of the first box, and a
# pair of edges by as much more than these, so that boxes at rest keep their contact points.
FACES_FIRST = 1.0e-3
# Faces that are apart have contact points if their distance is larger than along the normal by at most this share.
OBLIQUE = 1.0e-3
# A corner above the lowest one by this share of the smaller face's size counts half when contact points are chosen, and each corner counts
# less than the one before by a share LATER. So small motions at rest do not change the choice.
THICKNESS, LATER = 0.04, 5.0e-3
# The first choice is the farthest corner in this direction of the reference face.
FIRST_WAY = (0.8, 0.6)
# Features: faces from 1 on, edges and corners.
EDGES, NEAREST = 1000.0, 1020.0


def box_pairs(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``box_box``."""
    real = m.real
    right, up = FIRST_WAY

    @m.struct
    class Faces:
        """The reference face and the incident face.

        The reference face has the centre `centre`, the outward normal n, the axes u and v, and half sides along these. The incident face
        has the centre c, the axes p and q, and half sides along these. The vectors of the incident face have the components along n
        (of c, the height above the reference face), u and v. The number is that of the two faces, from 0 to 71.
        """

        centre: m.Vec3
        n: m.Vec3
        u: m.Vec3
        v: m.Vec3
        width: m.lane
        depth: m.lane
        c: m.Vec3
        p: m.Vec3
        q: m.Vec3
        length: m.lane
        breadth: m.lane
        number: m.lane

    @m.struct
    class Corner:
        """A corner that was chosen: its score, its height and place, and its number."""

        score: m.lane
        x: m.Vec3
        number: m.lane

    @m.func
    def by_number(k: m.lane, a: m.lane, b: m.lane, c: m.lane) -> m.lane:
        """a, b or c for k = 0, 1 or 2."""
        return m.where_lt(k, m.fill(real(0.5)), a, m.where_lt(k, m.fill(real(1.5)), b, c))

    @m.func
    def by_number3(k: m.lane, a: m.Vec3, b: m.Vec3, c: m.Vec3) -> m.Vec3:
        half = m.fill(real(0.5))
        return m.where3_lt(k, half, a, m.where3_lt(k, m.fill(real(1.5)), b, c))

    @m.func
    def largest_of(x: m.Vec3) -> m.lane:
        """Which component is largest: 0, 1 or 2, the first one of several."""
        one = m.fill(real(1.0))
        k = m.where_lt(x.x, x.y, one, m.fill(real(0.0)))
        return m.where_lt(m.larger(x.x, x.y), x.z, m.fill(real(2.0)), k)

    @m.func
    def largest(x: m.Vec3) -> m.lane:
        return m.larger(x.x, m.larger(x.y, x.z))

    @m.func
    def faces_of(o: m.TwoBoxes, first: m.Vec3, second: m.Vec3, swapped: m.lane) -> Faces:
        """The reference face, which is of the first box where swapped < 0, else of the second one, and the incident face.

        Args:
            first, second: separations along the axes of each box.
            swapped: see above.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        two = m.fill(real(2.0))
        ex = m.vec(one, zero, zero)
        ey = m.vec(zero, one, zero)
        ez = m.vec(zero, zero, one)
        d = m.where3_lt(swapped, zero, o.d, m.neg3(o.d))
        # the reference face
        k = largest_of(m.where3_lt(swapped, zero, first, second))
        x = m.where3_lt(swapped, zero, ex, o.x)
        y = m.where3_lt(swapped, zero, ey, o.y)
        z = m.where3_lt(swapped, zero, ez, o.z)
        size = m.where3_lt(swapped, zero, o.a, o.b)
        n = by_number3(k, x, y, z)
        u = by_number3(k, y, z, x)
        v = by_number3(k, z, x, y)
        side = m.sign_of(m.dot(n, d))
        n = m.scale3(n, side)
        high = by_number(k, size.x, size.y, size.z)
        width = by_number(k, size.y, size.z, size.x)
        depth = by_number(k, size.z, size.x, size.y)
        centre = m.fma3(n, high, m.where3_lt(swapped, zero, m.zero3(), o.d))
        # the incident face
        x = m.where3_lt(swapped, zero, o.x, ex)
        y = m.where3_lt(swapped, zero, o.y, ey)
        z = m.where3_lt(swapped, zero, o.z, ez)
        size = m.where3_lt(swapped, zero, o.b, o.a)
        against = m.vec(m.dot(n, x), m.dot(n, y), m.dot(n, z))
        l = largest_of(m.magnitudes(against))
        out = by_number3(l, x, y, z)
        p = by_number3(l, y, z, x)
        q = by_number3(l, z, x, y)
        other_side = m.neg(m.sign_of(by_number(l, against.x, against.y, against.z)))
        out = m.scale3(out, m.mul(other_side, by_number(l, size.x, size.y, size.z)))
        c = m.sub3(m.add3(d, out), m.scale3(n, high))
        # numbers of the faces: box, axis and side of the first one, axis and side of the second one
        number = m.fma(two, k, m.where_lt(side, zero, one, zero))
        number = m.add(number, m.where_lt(swapped, zero, zero, m.fill(real(6.0))))
        other_number = m.fma(two, l, m.where_lt(other_side, zero, one, zero))
        return Faces(
            centre, n, u, v, width, depth,
            m.vec(m.dot(n, c), m.dot(u, c), m.dot(v, c)),
            m.vec(m.dot(n, p), m.dot(u, p), m.dot(v, p)),
            m.vec(m.dot(n, q), m.dot(u, q), m.dot(v, q)),
            by_number(l, size.y, size.z, size.x),
            by_number(l, size.z, size.x, size.y),
            m.fma(m.fill(real(6.0)), number, other_number),
        )  # fmt: skip

    @m.func
    def put_corner(t, i: int, x: m.Vec3, valid: m.lane, low: m.lane, L, mem) -> m.lane:
        """Stores corner i, FAR above the face where valid < 0. Returns the lower one of its height and `low`."""
        height = m.where_lt(valid, m.fill(real(0.0)), m.fill(real(FAR)), x.x)
        m.put3(mem, L.corners + SHARED_CORNER * i + HEIGHT, t, m.vec(height, x.y, x.z))
        return m.smaller(low, height)

    @m.func
    def put_edge(
        t,
        i: int,
        whole: int,
        start: m.Vec3,
        along: m.Vec3,
        half: m.lane,
        f: Faces,
        slack: m.lane,
        lowest: m.lane,
        L,
        mem,
    ) -> m.lane:
        """Corners i and i + 1: the ends of the part of an edge of the incident face that is above the reference face. If not `whole`, only
        those that are not ends of the edge itself."""
        a = m.slab(start.y, along.y, m.add(f.width, slack))
        b = m.slab(start.z, along.z, m.add(f.depth, slack))
        low = m.larger(m.neg(half), m.larger(a.low, b.low))
        high = m.smaller(half, m.smaller(a.high, b.high))
        valid = m.sub(high, low)
        # an edge that misses the face may meet its sides far away, beyond the squares of single precision
        low = m.smaller(low, half)
        high = m.larger(high, m.neg(half))
        first = valid
        last = valid
        if whole == 0:
            none = m.fill(real(-1.0))
            first = m.where_lt(m.neg(half), low, valid, none)
            last = m.where_lt(high, half, valid, none)
        lowest = put_corner(t, i, m.fma3(along, low, start), first, lowest, L, mem)
        return put_corner(t, i + 1, m.fma3(along, high, start), last, lowest, L, mem)

    @m.func
    def put_own_corner(t, i: int, right: m.lane, up: m.lane, f: Faces, slack: m.lane, lowest: m.lane, L, mem) -> m.lane:
        """Corner i: that of the reference face at (right, up) times its half sides, on the incident face."""
        y = m.mul(right, f.width)
        z = m.mul(up, f.depth)
        dy = m.sub(y, f.c.y)
        dz = m.sub(z, f.c.z)
        r = m.rcp(m.fnma(f.p.z, f.q.y, m.mul(f.p.y, f.q.z)))
        along = m.mul(r, m.fnma(dz, f.q.y, m.mul(dy, f.q.z)))
        across = m.mul(r, m.fnma(dy, f.p.z, m.mul(dz, f.p.y)))
        inside = m.smaller(m.sub(f.length, m.magnitude(along)), m.sub(f.breadth, m.magnitude(across)))
        height = m.fma(f.p.x, along, m.fma(f.q.x, across, f.c.x))
        return put_corner(t, i, m.vec(height, y, z), m.add(inside, slack), lowest, L, mem)

    @m.func
    def put_corners(t, f: Faces, slack: m.lane, L, mem) -> m.lane:
        """corners <- those of the part that both faces share. Returns the height of the lowest one, FAR if there is none."""
        p = m.scale3(f.p, f.length)
        q = m.scale3(f.q, f.breadth)
        low = m.fill(real(FAR))
        two = int(2)
        for i in range(two):
            side = m.fill(real(2 * i - 1))
            low = put_edge(t, 2 * i, 1, m.fma3(q, side, f.c), f.p, f.length, f, slack, low, L, mem)
            low = put_edge(t, 2 * i + 4, 0, m.fma3(p, side, f.c), f.q, f.breadth, f, slack, low, L, mem)
            low = put_own_corner(t, 2 * i + 8, side, m.fill(real(1.0)), f, slack, low, L, mem)
            low = put_own_corner(t, 2 * i + 9, side, m.fill(real(-1.0)), f, slack, low, L, mem)
        return low

    @m.func
    def turn_of(a: m.Vec3, b: m.Vec3, c: m.Vec3) -> m.lane:
        """Twice the area of a triangle in the reference face, positive if it goes round counterclockwise."""
        return m.fnma(m.sub(b.z, a.z), m.sub(c.y, a.y), m.mul(m.sub(b.y, a.y), m.sub(c.z, a.z)))

    @m.func
    def better_corner(best: Corner, t, i: int, x: m.Vec3, score: m.lane, L, mem) -> Corner:
        """Corner i with its score times its weight, if that is larger than that of `best`."""
        number = m.fill(real(i))
        score = m.mul(score, m.get(mem, L.corners + SHARED_CORNER * i + WEIGHT, t))
        old = best.score
        return Corner(
            m.larger(old, score), m.where3_lt(old, score, x, best.x), m.where_lt(old, score, number, best.number)
        )

    @m.func
    def between_faces(f: Faces, x: m.Vec3) -> m.Vec3:
        """The place halfway between a corner and the reference face."""
        return m.fma3(f.n, m.mul(m.fill(real(0.5)), x.x), m.fma3(f.u, x.y, m.fma3(f.v, x.z, f.centre)))

    @m.func
    def corner_feature(f: Faces, x: Corner) -> m.lane:
        return m.fma(m.fill(real(SHARED_CORNERS + 1)), f.number, m.add(x.number, m.fill(real(1.0))))

    @m.struct
    class NearestPoint:
        """The place halfway between the nearest points of both boxes, the normal there, and the distance."""

        place: m.Vec3
        n: m.Vec3
        distance: m.lane

    @m.func
    def put_face_point(
        t, i: int, x: Corner, f: Faces, n: m.Vec3, shift: m.lane, found: m.lane, nearest: NearestPoint, instead: m.lane,
        axes: m.Mat33, L, mem,
    ):  # fmt: skip
        """Stores a corner as contact point i where found > 0, with the normal n; where instead = i, the nearest point takes its place."""
        half = m.fill(real(0.5))
        away = m.magnitude(m.sub(instead, m.fill(real(i))))
        place = m.apply(axes, m.where3_lt(away, half, nearest.place, between_faces(f, x.x)))
        normal = m.apply(axes, m.where3_lt(away, half, nearest.n, n))
        distance = m.where_lt(away, half, nearest.distance, m.add(x.x.x, shift))
        distance = m.where_lt(m.fill(real(0.0)), found, distance, m.fill(real(FAR)))
        m.put_pair_point(t, i, place, normal, distance, corner_feature(f, x), L, mem)

    @m.func
    def box_box(t, L, mem):
        """Up to four points of two faces, one of two edges or of a corner.

        The smallest distance is that of the boxes: where they overlap, the length of the shortest way out. Where they are apart, the point
        with this distance is halfway between the nearest points, and its normal is their direction; up to a distance of FACES_FIRST of
        the smallest half side it may have the normal of a face. Where they overlap, the axis of the normal may be another one, whose
        separation is less by up to that length, and all points are deeper by as much as a corner that was left out is lower than they are.
        Boxes with one centre leave along the first of their thinnest axes.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        o = m.two_boxes(t, L, mem)
        axes = m.get_shape(t, 0, L, mem).axes
        first = m.face_overs(o, False)
        second = m.face_overs(o, True)
        edges = m.best_edges(o)
        small = m.smaller(m.smaller(o.a.x, m.smaller(o.a.y, o.a.z)), m.smaller(o.b.x, m.smaller(o.b.y, o.b.z)))
        bias = m.fma(m.fill(real(FACES_FIRST)), small, o.rounding)
        over = largest(first)
        other = largest(second)
        swapped = m.sub(other, m.add(over, bias))
        face = m.where_lt(swapped, zero, over, other)
        # positive where two edges touch
        edged = m.sub(edges.sure, m.add(face, bias))
        over = m.larger(m.larger(over, other), edges.sure)
        over = m.where_lt(zero, edged, edges.over, over)
        chosen = m.where_lt(edged, zero, face, edges.over)

        f = faces_of(o, first, second, swapped)
        # the smaller face bounds what both share
        mine = m.add(f.width, f.depth)
        other = m.add(f.length, f.breadth)
        size = m.smaller(mine, other)
        middle = m.where3_lt(other, mine, f.c, m.zero3())
        slack = m.mul(m.fill(real(4.0)), o.rounding)
        low = put_corners(t, f, slack, L, mem)
        none = m.fill(real(0.5 * FAR))
        # if they share nothing, the lowest corner of the incident face stands in
        p = m.scale3(f.p, f.length)
        q = m.scale3(f.q, f.breadth)
        spare = m.fnma3(p, m.sign_of(p.x), m.fnma3(q, m.sign_of(q.x), f.c))
        # the nearest points where the boxes are apart, of two edges where they overlap
        nearest = m.nearest_on_edges(o, edges)
        away = edges.n
        apart = over
        # positive where the boxes are apart and no faces touch
        cornered = m.fill(real(-1.0))
        # positive where the nearest points have a normal of their own
        exact = m.fill(real(-1.0))
        if m.any_lt(zero, over):
            best = m.nearest_corner(o, nearest)
            length = m.sqrt(best.square)
            # edges of parallel faces may cross at a corner of what these share only
            shortest = m.smaller(length, m.magnitude(low))
            allowed = m.fma(m.fill(real(OBLIQUE)), shortest, m.add(bias, bias))
            beyond = m.sub(m.larger(shortest, m.magnitude(low)), m.add(chosen, allowed))
            cornered = m.where_lt(zero, over, beyond, cornered)
            exact = m.where_lt(zero, over, m.smaller(m.sub(length, bias), m.sub(slack, m.sub(length, shortest))), exact)
            at = m.where3_lt(zero, over, best.p, nearest.p)
            to = m.where3_lt(zero, over, best.d, nearest.d)
            nearest = m.NearestPoints(best.square, at, to)
            away = m.where3_lt(zero, exact, m.unit_or(to, length, o.rounding, away), away)
            apart = m.where_lt(zero, over, m.larger(over, m.where_lt(zero, cornered, length, shortest)), over)
        single = m.larger(edged, cornered)
        point = NearestPoint(m.fma3(nearest.d, m.fill(real(0.5)), nearest.p), away, apart)

        # the farthest corner in one direction
        low = m.where_lt(low, none, low, spare.x)
        rcp_thick = m.rcp(m.fma(m.fill(real(THICKNESS)), size, o.rounding))
        twelve = int(SHARED_CORNERS)
        a = Corner(zero, spare, m.fill(real(twelve)))
        for i in range(twelve):
            x = m.get3(mem, L.corners + SHARED_CORNER * i + HEIGHT, t)
            above = m.mul(m.sub(x.x, low), rcp_thick)
            weight = m.where_lt(x.x, none, m.rcp(m.fma(above, above, one)), zero)
            weight = m.fnma(weight, m.mul(m.fill(real(i)), m.fill(real(LATER))), weight)
            m.put(mem, L.corners + SHARED_CORNER * i + WEIGHT, t, weight)
            y = m.sub(x.y, middle.y)
            z = m.sub(x.z, middle.z)
            reach = m.fma(m.fill(real(right)), y, m.fma(m.fill(real(up)), z, m.mul(m.fill(real(2.0)), size)))
            a = better_corner(a, t, i, x, reach, L, mem)
        # the farthest one from it
        least = m.mul(slack, slack)
        nearby = m.mul(m.fill(real(16.0)), least)
        b = Corner(nearby, a.x, zero)
        for i in range(twelve):
            x = m.get3(mem, L.corners + SHARED_CORNER * i + HEIGHT, t)
            y = m.sub(x.y, a.x.y)
            z = m.sub(x.z, a.x.z)
            b = better_corner(b, t, i, x, m.fma(y, y, m.mul(z, z)), L, mem)
        found_b = m.sub(b.score, nearby)
        # the farthest one from the line through both
        y = m.sub(b.x.y, a.x.y)
        z = m.sub(b.x.z, a.x.z)
        line = m.mul(m.mul(m.fill(real(4.0)), slack), m.sqrt(m.fma(y, y, m.mul(z, z))))
        line = m.larger(line, least)
        c = Corner(line, a.x, zero)
        for i in range(twelve):
            x = m.get3(mem, L.corners + SHARED_CORNER * i + HEIGHT, t)
            c = better_corner(c, t, i, x, m.magnitude(turn_of(a.x, b.x, x)), L, mem)
        found_c = m.smaller(found_b, m.sub(c.score, line))
        # the farthest one outside the triangle of these three
        g = Corner(line, a.x, zero)
        side = m.neg(m.sign_of(turn_of(a.x, b.x, c.x)))
        for i in range(twelve):
            x = m.get3(mem, L.corners + SHARED_CORNER * i + HEIGHT, t)
            out = m.larger(m.mul(side, turn_of(b.x, c.x, x)), m.mul(side, turn_of(c.x, a.x, x)))
            out = m.larger(out, m.mul(side, turn_of(a.x, b.x, x)))
            g = better_corner(g, t, i, x, out, L, mem)
        found_g = m.smaller(found_c, m.sub(g.score, line))

        # which of them is lowest
        lowest = a.x.x
        which = zero
        which = m.where_lt(b.x.x, lowest, one, which)
        lowest = m.smaller(lowest, b.x.x)
        which = m.where_lt(c.x.x, lowest, m.fill(real(2.0)), which)
        lowest = m.smaller(lowest, c.x.x)
        which = m.where_lt(g.x.x, lowest, m.fill(real(3.0)), which)
        lowest = m.smaller(lowest, g.x.x)
        # boxes that are apart have their nearest point instead, unless that corner is it
        differs = m.sub(m.larger(m.sub(apart, chosen), m.sub(lowest, apart)), slack)
        exact = m.smaller(exact, differs)
        instead = m.where_lt(zero, exact, which, m.fill(real(-1.0)))
        instead = m.where_lt(zero, single, zero, instead)
        # else the smallest distance is made exact: a lower corner may have been left out, and faces may have come before edges
        shift = m.sub(apart, low)
        shift = m.where_lt(m.add(bias, bias), m.magnitude(shift), zero, shift)
        shift = m.where_lt(zero, exact, zero, m.add(shift, m.sub(low, lowest)))
        n = m.where3_lt(swapped, zero, f.n, m.neg3(f.n))
        put_face_point(t, 0, a, f, n, shift, one, point, instead, axes, L, mem)
        put_face_point(t, 1, b, f, n, shift, m.where_lt(zero, single, zero, found_b), point, instead, axes, L, mem)
        put_face_point(t, 2, c, f, n, shift, m.where_lt(zero, single, zero, found_c), point, instead, axes, L, mem)
        put_face_point(t, 3, g, f, n, shift, m.where_lt(zero, single, zero, found_g), point, instead, axes, L, mem)
        # the number of a single point
        mine = m.fma(m.fill(real(2.0)), edges.mine.z, edges.mine.y)
        other = m.fma(m.fill(real(2.0)), edges.other.z, edges.other.y)
        feature = m.add(m.fma(m.fill(real(3.0)), mine, other), m.fill(real(EDGES)))
        feature = m.where_lt(zero, cornered, m.fill(real(NEAREST)), feature)
        feature = m.where_lt(zero, single, feature, corner_feature(f, a))
        m.put(mem, L.manifold + FEATURE, t, feature)

    return locals()
