"""Contact points of spheres and capsules with one triangle of a surface.

A contact is where the distance from a point of the axis to the surface has a local minimum: above the inside of a triangle, or at an edge
or corner if the way to the axis leads away from all triangles there. So inner edges of a smooth surface have no contacts of their own, and
convex edges and corners have the ones of the surface as a whole (compare van den Bergen 2017, "Rolling over triangle meshes").
"""

import types

import warp as wp
from newton_like.kernels.collision.plane import FAR

from newton_like.kernels.collision.surfaces.records import (  # isort: skip
    APEX, BEHIND, CURSOR, FACE, FACTORS, FRONT, MAYBE, NEXT, PER_LOOK, ROUND, UNSURE, UNSURE_NUMBERS, UNSURES, WITHIN,
)  # fmt: skip

HALF_FAR = 0.5 * FAR


def ball_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``put_facing``, ``load_triangle``, ``load_neighbours``, ``next_triangle``, ``leads_away``, ``keep_unsure``,
    ``decide_unsure``, ``empty_unsure``, ``keep_ball``, ``ball_on_triangle``, ``axis_on_triangle`` and ``keep_behind``."""
    real = m.real
    single = real is wp.float32
    # the sine of an angle to a neighbour that is a rounding error; the distance from an edge that is one, as a share of the radius about
    # the shape, which has to be smaller, and of the edge
    SLOPE = 4.0e-4 if single else 1.0e-6
    AT_EDGE = 3.0e-5 if single else 1.0e-7
    OF_EDGE = 3.0e-7 if single else 1.0e-14
    # normals whose cosine is larger are that of the triangle
    LEVEL = 1.0 - (2.0e-7 if single else 1.0e-14)
    # a way leads through a triangle if it begins behind it or almost so, and ends in front of it by more than these shares of its length
    ALMOST, LEFT = 1.0e-4, 1.0e-2
    TINY = 1.0e-30
    EDGE_SQUARE = OF_EDGE * OF_EDGE

    @m.func
    def put_facing(t, L, mem):
        """Stores the normal of the triangle; a mirrored surface has mirrored triangles."""
        w = L.surface_work
        p = m.get3(mem, w, t)
        n = m.cross(m.sub3(m.get3(mem, w + 3, t), p), m.sub3(m.get3(mem, w + 6, t), p))
        f = m.get3(mem, w + FACTORS, t)
        size = m.rcp(m.sqrt(m.larger(m.dot(n, n), m.fill(real(TINY)))))
        size = m.mul(size, m.sign_of(m.mul(m.sign_of(f.x), m.mul(m.sign_of(f.y), m.sign_of(f.z)))))
        m.put3(mem, w + FACE, t, m.scale3(n, size))

    @m.func
    def load_triangle(t, at: int, mesh: int, L, mem, T):
        """Stores the triangle NEXT and its normal. `mesh`: 1 for a mesh, 0 for a height field."""
        if mesh != 0:
            m.load_of_mesh(t, at, L, mem, T)
        else:
            m.load_of_field(t, at, 0, L, mem, T)
        put_facing(t, L, mem)

    @m.func
    def load_neighbours(t, at: int, mesh: int, L, mem, T):
        """Stores the corners of the neighbours of the triangle NEXT; for a mesh they are stored with the triangle."""
        if mesh == 0:
            m.load_of_field(t, at, 1, L, mem, T)

    @m.func
    def next_triangle(t, at: int, mesh: int, L, mem, T):
        """NEXT <- the next triangle."""
        if mesh != 0:
            m.next_of_mesh(t, at, L, mem, T)
        else:
            m.next_of_field(t, at, L, mem, T)

    @m.func
    def uphill(p: m.Vec3, edge: m.Vec3, square: m.lane, apex: m.Vec3, n: m.Vec3) -> m.lane:
        """The sine of the angle at which n leads from an edge, which starts at p, towards a corner beside it."""
        r = m.sub3(apex, p)
        r = m.fnma3(edge, m.div(m.dot(r, edge), square), r)
        return m.div(m.dot(n, r), m.sqrt(m.larger(m.dot(r, r), m.fill(real(TINY)))))

    @m.func
    def nearby_square(t, square: m.lane, L, mem) -> m.lane:
        """The square of the distance at which a point is on an edge; `square` is that of the length of the edge."""
        size = m.mul(m.fill(real(AT_EDGE)), m.get(mem, L.surface_work + ROUND, t))
        return m.larger(m.mul(size, size), m.mul(m.fill(real(EDGE_SQUARE)), square))

    @m.func
    def climbs(n: m.Vec3, d: m.Vec3) -> m.lane:
        """One where n leads along d."""
        slope = m.mul(m.fill(real(SLOPE)), m.sqrt(m.dot(d, d)))
        return m.where_lt(slope, m.dot(n, d), m.fill(real(1.0)), m.fill(real(0.0)))

    @m.shared
    def leads_away(t: int, q: m.Vec3, n: m.Vec3, L, mem) -> m.lane:
        """One where n at the point q of the triangle leads away from the triangle and its neighbours at all edges that q is on; also where
        n is the normal of the triangle. MAYBE <- one where q is a corner and n leads away from what is known there, so that the other
        triangles at the corner decide."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        steep = m.fill(real(SLOPE))
        face = m.get3(mem, w + FACE, t)
        front = m.where_lt(zero, m.dot(n, face), one, zero)
        away = front
        maybe = zero
        corners = int(3)
        for k in range(corners):
            p = m.get3(mem, w + 3 * k, t)
            edge = m.sub3(m.get3(mem, w + 3 * ((k + 1) % 3), t), p)
            last = m.get3(mem, w + 3 * ((k + 2) % 3), t)
            apex = m.get3(mem, w + APEX + 3 * k, t)
            square = m.larger(m.dot(edge, edge), m.fill(real(TINY)))
            d = m.sub3(q, p)
            r = m.fnma3(edge, m.div(m.dot(d, edge), square), d)
            towards = m.larger(uphill(p, edge, square, apex, n), uphill(p, edge, square, last, n))
            towards = m.where_lt(steep, towards, one, zero)
            nearby = nearby_square(t, square, L, mem)
            touched = m.where_lt(m.dot(r, r), nearby, towards, zero)
            away = m.where_lt(zero, touched, zero, away)
            climbing = m.larger(climbs(n, edge), climbs(n, m.sub3(last, p)))
            climbing = m.larger(climbing, climbs(n, m.sub3(apex, p)))
            climbing = m.larger(climbing, climbs(n, m.sub3(m.get3(mem, w + APEX + 3 * ((k + 2) % 3), t), p)))
            maybe = m.where_lt(m.dot(d, d), nearby, m.sub(front, climbing), maybe)
        away = m.where_lt(m.fill(real(LEVEL)), m.dot(n, face), one, away)
        m.put(mem, w + MAYBE, t, m.where_lt(half, m.sub(maybe, away), one, zero))
        return away

    @m.shared
    def keep_unsure(
        t: int, where: m.lane, q: m.Vec3, n: m.Vec3, place: m.Vec3, distance: m.lane, feature: m.lane, depth: m.lane,
        corner: m.lane, L, mem,
    ):  # fmt: skip
        """Notes a contact at the point q, in worlds where `where` is one, unless it is noted already. `corner`: one if q is a corner.
        `depth`: the length of the way from q against n that has to be inside of the surface."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        size = m.mul(m.fill(real(1.0e-3)), m.get(mem, w + ROUND, t))
        count = m.get(mem, w + MAYBE + 1, t)
        entries = int(UNSURES)
        for i in range(entries):
            at = w + UNSURE + UNSURE_NUMBERS * i
            known = m.where_lt(m.fill(real(i)), count, where, zero)
            d = m.sub3(m.get3(mem, at, t), q)
            known = m.where_lt(m.dot(d, d), m.mul(size, size), known, zero)
            d = m.sub3(m.get3(mem, at + 3, t), n)
            known = m.where_lt(m.dot(d, d), m.fill(real(1.0e-3)), known, zero)
            where = m.where_lt(half, known, zero, where)
        where = m.where_lt(count, m.fill(real(entries)), where, zero)
        for i in range(entries):
            at = w + UNSURE + UNSURE_NUMBERS * i
            miss = m.sub(count, m.fill(real(i)))
            here = m.where_lt(m.mul(miss, miss), half, where, zero)
            m.put3(mem, at, t, m.where3_lt(half, here, q, m.get3(mem, at, t)))
            m.put3(mem, at + 3, t, m.where3_lt(half, here, n, m.get3(mem, at + 3, t)))
            m.put3(mem, at + 6, t, m.where3_lt(half, here, place, m.get3(mem, at + 6, t)))
            m.put(mem, at + 9, t, m.where_lt(half, here, distance, m.get(mem, at + 9, t)))
            m.put(mem, at + 10, t, m.where_lt(half, here, feature, m.get(mem, at + 10, t)))
            m.put(mem, at + 11, t, m.where_lt(half, here, one, m.get(mem, at + 11, t)))
            m.put(mem, at + 12, t, m.where_lt(half, here, depth, m.get(mem, at + 12, t)))
            m.put(mem, at + 13, t, m.where_lt(half, here, corner, m.get(mem, at + 13, t)))
        m.put(mem, w + MAYBE + 1, t, m.add(count, where))

    @m.func
    def crossed_from_behind(t, q: m.Vec3, d: m.Vec3, L, mem) -> m.lane:
        """One where the way from q to q + d leads through the triangle from its back to its front."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        f = m.get3(mem, w + FACE, t)
        a = m.sub3(m.get3(mem, w, t), q)
        c = m.sub3(m.get3(mem, w + 3, t), q)
        g = m.sub3(m.get3(mem, w + 6, t), q)
        length = m.sqrt(m.dot(d, d))
        start = m.neg(m.dot(f, a))
        end = m.add(start, m.dot(f, d))
        through = m.where_lt(start, m.mul(m.fill(real(ALMOST)), length), one, zero)
        through = m.where_lt(m.mul(m.fill(real(LEFT)), length), end, through, zero)
        # seen along d, the triangle surrounds q
        whole = m.dot(d, m.cross(m.sub3(c, a), m.sub3(g, a)))
        sign = m.sign_of(whole)
        side = m.smaller(m.mul(sign, m.dot(d, m.cross(a, c))), m.mul(sign, m.dot(d, m.cross(c, g))))
        side = m.smaller(side, m.mul(sign, m.dot(d, m.cross(g, a))))
        return m.where_lt(m.mul(m.fill(real(-ALMOST)), m.magnitude(whole)), side, through, zero)

    @m.func
    def object_to_unsure(t, L, mem):
        """Drops the noted contacts whose normals lead along an edge of the triangle at their corners, and those whose ways inside of the
        surface lead out through the triangle."""
        w = L.surface_work
        here = m.where_lt(m.fill(real(-1.0)), m.get(mem, w + NEXT, t), m.fill(real(1.0)), m.fill(real(0.0)))
        zero = m.fill(real(0.0))
        corners = int(3)
        for i in range(int(UNSURES)):
            at = w + UNSURE + UNSURE_NUMBERS * i
            q = m.get3(mem, at, t)
            n = m.get3(mem, at + 3, t)
            for k in range(corners):
                p = m.get3(mem, w + 3 * k, t)
                one = m.sub3(m.get3(mem, w + 3 * ((k + 1) % 3), t), p)
                other = m.sub3(m.get3(mem, w + 3 * ((k + 2) % 3), t), p)
                d = m.sub3(p, q)
                objects = m.mul(here, m.larger(climbs(n, one), climbs(n, other)))
                nearby = m.mul(m.fill(real(16.0)), nearby_square(t, m.dot(one, one), L, mem))
                objects = m.where_lt(m.dot(d, d), nearby, m.mul(objects, m.get(mem, at + 13, t)), zero)
                m.put(mem, at + 11, t, m.where_lt(zero, objects, zero, m.get(mem, at + 11, t)))
            depth = m.mul(here, m.get(mem, at + 12, t))
            if m.any_lt(zero, depth):
                objects = m.where_lt(zero, depth, crossed_from_behind(t, q, m.scale3(n, m.neg(depth)), L, mem), zero)
                m.put(mem, at + 11, t, m.where_lt(zero, objects, zero, m.get(mem, at + 11, t)))

    @m.shared
    def decide_unsure(t: int, least: m.lane, at: int, mesh: int, L, mem, T):
        """Keeps the noted contacts to which no triangle of the search objects, in worlds with more than `least` of them, and forgets them.
        The search starts again."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        minus = m.fill(real(-1.0))
        count = m.get(mem, w + MAYBE + 1, t)
        count = m.where_lt(least, count, count, zero)
        if m.any_lt(zero, count):
            if mesh != 0:
                m.open_mesh(t, at, L, mem, T)
            else:
                m.open_field(t, at, L, mem, T)
            next_triangle(t, at, mesh, L, mem, T)
            while m.any_lt(minus, m.get(mem, w + NEXT, t)):
                load_triangle(t, at, mesh, L, mem, T)
                object_to_unsure(t, L, mem)
                next_triangle(t, at, mesh, L, mem, T)
            for i in range(int(UNSURES)):
                to = w + UNSURE + UNSURE_NUMBERS * i
                where = m.where_lt(m.fill(real(i)), count, m.get(mem, to + 11, t), zero)
                if m.any_lt(zero, where):
                    place = m.get3(mem, to + 6, t)
                    n = m.get3(mem, to + 3, t)
                    m.keep_found(t, where, place, n, m.get(mem, to + 9, t), m.get(mem, to + 10, t), L, mem)
            m.put(mem, w + MAYBE + 1, t, m.sub(m.get(mem, w + MAYBE + 1, t), count))

    @m.func
    def empty_unsure(t, at: int, mesh: int, L, mem, T):
        """Decides the noted contacts of worlds that may have no place for those of another triangle. The search goes on where it was."""
        w = L.surface_work
        most = m.fill(real(UNSURES - PER_LOOK))
        if m.any_lt(most, m.get(mem, w + MAYBE + 1, t)):
            cursor = m.get(mem, w + CURSOR, t)
            number = m.get(mem, w + NEXT, t)
            decide_unsure(t, most, at, mesh, L, mem, T)
            m.put(mem, w + CURSOR, t, cursor)
            m.put(mem, w + NEXT, t, number)

    @m.struct
    class OnEdge:
        """The point of an edge that is closest to a ball's centre, relative to the centre, and the square of its distance."""

        p: m.Vec3
        square: m.lane

    @m.func
    def closest_on_edge(p: m.Vec3, q: m.Vec3) -> OnEdge:
        edge = m.sub3(q, p)
        s = m.clamped_ratio(m.neg(m.dot(p, edge)), m.dot(edge, edge))
        x = m.fma3(edge, s, p)
        return OnEdge(x, m.dot(x, x))

    @m.func
    def keep_ball(t, where: m.lane, x: m.Vec3, n: m.Vec3, apart: m.lane, radius: m.lane, part: m.lane, L, mem):
        """Keeps the contact of a ball about x whose centre is `apart` from the surface along n."""
        distance = m.sub(apart, radius)
        place = m.fnma3(n, m.fma(m.fill(real(0.5)), distance, radius), x)
        within = m.where_lt(distance, m.get(mem, L.surface_work + WITHIN, t), where, m.fill(real(0.0)))
        if m.any_lt(m.fill(real(0.0)), within):
            feature = m.triangle_feature(m.get(mem, L.surface_work + NEXT, t), part)
            m.keep_found(t, within, place, n, distance, feature, L, mem)

    @m.func
    def note_ball(
        t, where: m.lane, q: m.Vec3, x: m.Vec3, n: m.Vec3, apart: m.lane, radius: m.lane, part: m.lane, depth: m.lane, corner: m.lane,
        L, mem,
    ):  # fmt: skip
        """Notes the contact of a ball about x with the point q, see ``keep_unsure``."""
        distance = m.sub(apart, radius)
        place = m.fnma3(n, m.fma(m.fill(real(0.5)), distance, radius), x)
        within = m.where_lt(distance, m.get(mem, L.surface_work + WITHIN, t), where, m.fill(real(0.0)))
        if m.any_lt(m.fill(real(0.0)), within):
            feature = m.triangle_feature(m.get(mem, L.surface_work + NEXT, t), part)
            keep_unsure(t, within, q, n, place, distance, feature, depth, corner, L, mem)

    @m.shared
    def ball_on_triangle(t: int, where: m.lane, x: m.Vec3, radius: m.lane, part: int, at: int, mesh: int, L, mem, T):
        """Keeps the contact of a ball about x. The normal of a ball whose centre is on an edge is that of the triangle. What is behind a
        triangle of a mesh is stored with the points in BEHIND."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        n = m.get3(mem, w + FACE, t)
        p = m.sub3(m.get3(mem, w, t), x)
        q = m.sub3(m.get3(mem, w + 3, t), x)
        r = m.sub3(m.get3(mem, w + 6, t), x)
        height = m.neg(m.dot(n, p))
        side = m.dot(n, m.cross(p, q))
        sign = m.sign_of(m.dot(n, m.cross(m.sub3(q, p), m.sub3(r, p))))
        side = m.smaller(m.mul(sign, side), m.mul(sign, m.dot(n, m.cross(q, r))))
        side = m.smaller(side, m.mul(sign, m.dot(n, m.cross(r, p))))
        inside = m.where_lt(zero, side, where, zero)
        e0 = closest_on_edge(p, q)
        e1 = closest_on_edge(q, r)
        e2 = closest_on_edge(r, p)
        y = m.where3_lt(e1.square, e0.square, e1.p, e0.p)
        square = m.smaller(e0.square, e1.square)
        y = m.where3_lt(e2.square, square, e2.p, y)
        square = m.smaller(e2.square, square)
        apart = m.where_lt(half, inside, height, m.sqrt(square))
        inverse = m.rcp(m.sqrt(m.larger(square, m.fill(real(TINY)))))
        on_edge = m.where3_lt(m.fill(real(TINY)), square, m.scale3(y, m.neg(inverse)), n)
        u = m.where3_lt(half, inside, n, on_edge)
        front = m.where_lt(height, zero, zero, where)
        near = m.where_lt(apart, m.add(radius, m.get(mem, w + WITHIN, t)), front, zero)
        if m.any_lt(zero, m.sub(near, inside)):
            load_neighbours(t, at, mesh, L, mem, T)
            free = leads_away(t, m.add3(y, x), u, L, mem)
            maybe = m.mul(m.sub(near, m.mul(near, inside)), m.get(mem, w + MAYBE, t))
            if m.any_lt(zero, maybe):
                one = m.fill(real(1.0))
                note_ball(t, maybe, m.add3(y, x), x, u, apart, radius, m.fill(real(part)), zero, one, L, mem)
            near = m.where_lt(half, inside, near, m.mul(near, free))
        if m.any_lt(zero, near):
            u = m.where3_lt(m.fill(real(LEVEL)), m.dot(u, n), n, u)
            keep_ball(t, near, x, u, apart, radius, m.fill(real(part)), L, mem)
        if mesh != 0:
            m.put(
                mem,
                w + FRONT,
                t,
                m.where_lt(half, near, m.smaller(apart, m.get(mem, w + FRONT, t)), m.get(mem, w + FRONT, t)),
            )
            depth = m.neg(height)
            back = m.where_lt(depth, m.smaller(radius, m.get(mem, w + BEHIND, t)), m.sub(inside, front), zero)
            back = m.mul(inside, back)
            if m.any_lt(zero, back):
                m.put(mem, w + BEHIND, t, m.where_lt(half, back, depth, m.get(mem, w + BEHIND, t)))
                m.put3(mem, w + BEHIND + 1, t, m.where3_lt(half, back, x, m.get3(mem, w + BEHIND + 1, t)))
                m.put3(mem, w + BEHIND + 4, t, m.where3_lt(half, back, n, m.get3(mem, w + BEHIND + 4, t)))
                number = m.triangle_feature(m.get(mem, w + NEXT, t), m.fill(real(part)))
                m.put(mem, w + BEHIND + 7, t, m.where_lt(half, back, number, m.get(mem, w + BEHIND + 7, t)))

    @m.func
    def keep_behind(t, radius: m.lane, L, mem):
        """Keeps the ball behind a triangle of a mesh, if no triangle in front of it is closer."""
        w = L.surface_work
        depth = m.get(mem, w + BEHIND, t)
        where = m.where_lt(depth, m.get(mem, w + FRONT, t), m.fill(real(1.0)), m.fill(real(0.0)))
        where = m.where_lt(depth, m.fill(real(HALF_FAR)), where, m.fill(real(0.0)))
        if m.any_lt(m.fill(real(0.0)), where):
            n = m.get3(mem, w + BEHIND + 4, t)
            distance = m.neg(m.add(depth, radius))
            place = m.fnma3(n, m.fma(m.fill(real(0.5)), distance, radius), m.get3(mem, w + BEHIND + 1, t))
            m.keep_found(t, where, place, n, distance, m.get(mem, w + BEHIND + 7, t), L, mem)

    @m.shared
    def axis_on_triangle(
        t: int, where: m.lane, axis: m.Vec3, radius: m.lane, half_length: m.lane, at: int, mesh: int, L, mem, T
    ):  # fmt: skip
        """Keeps the contacts of the inside of a capsule's axis, about the shape's centre, with the edges of the triangle. An axis that is
        below an edge by less than the radius about the shape is pushed out of the surface, if it is inside of it: the way from the edge
        to the axis does not lead out of a mesh again."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        n = m.get3(mem, w + FACE, t)
        ends = m.Segment(m.scale3(axis, m.neg(half_length)), m.scale3(axis, m.add(half_length, half_length)))
        inner = m.mul(m.fill(real(0.9999)), half_length)
        within = m.add(radius, m.get(mem, w + WITHIN, t))
        most = m.larger(within, m.get(mem, w + ROUND, t))
        corners = int(3)
        for k in range(corners):
            p = m.get3(mem, w + 3 * k, t)
            edge = m.sub3(m.get3(mem, w + 3 * ((k + 1) % 3), t), p)
            x = m.nearest_on_axes(ends, m.Segment(p, edge))
            v = m.sub3(x.v, x.w)
            length = m.sqrt(m.dot(v, v))
            side = m.sign_of(m.dot(v, n))
            across = m.cross(axis, edge)
            across = m.scale3(across, m.rcp(m.sqrt(m.larger(m.dot(across, across), m.fill(real(TINY))))))
            across = m.scale3(across, m.sign_of(m.dot(across, n)))
            tiny = m.mul(m.fill(real(1.0e-6)), m.get(mem, w + ROUND, t))
            u = m.scale3(v, m.mul(side, m.rcp(m.larger(length, tiny))))
            u = m.where3_lt(length, tiny, across, u)
            apart = m.mul(side, length)
            hit = m.where_lt(m.magnitude(m.dot(x.v, axis)), inner, where, zero)
            hit = m.where_lt(apart, within, hit, zero)
            hit = m.where_lt(length, most, hit, zero)
            if m.any_lt(zero, hit):
                load_neighbours(t, at, mesh, L, mem, T)
                free = leads_away(t, x.w, u, L, mem)
                maybe = m.mul(hit, m.get(mem, w + MAYBE, t))
                hit = m.mul(hit, free)
                depth = zero
                if mesh != 0:
                    depth = m.larger(m.neg(apart), zero)
                sunk = m.where_lt(tiny, depth, hit, zero)
                if m.any_lt(zero, m.add(maybe, sunk)):
                    note_ball(
                        t, m.add(maybe, sunk), x.w, x.v, u, apart, radius, m.fill(real(k + 3)), depth, maybe, L, mem
                    )
                keep_ball(t, m.sub(hit, sunk), x.v, u, apart, radius, m.fill(real(k + 3)), L, mem)

    return locals()
