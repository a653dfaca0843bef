"""Distance of a point from the difference of two convex shapes: the algorithm of Gilbert, Johnson and Keerthi.

E. G. Gilbert, D. W. Johnson, S. S. Keerthi: A fast procedure for computing the distance between complex objects in three-dimensional space.
IEEE Journal on Robotics and Automation 4 (1988). A visit adds the support point towards the point to a simplex of up to three vertices,
and keeps the vertices of the part of the new simplex that is closest. That part contains the new vertex, so it is one of three triangles,
three edges or the vertex itself. A world whose search has ended keeps its results while others go on.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.work import CORNER, SIMPLEX, SMALLEST
from newton_like.kernels.collision.plane import FAR


def nearest_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``nearest``."""
    real = m.real
    single = real is wp.float32
    # relative error of the square of the distance, and the rounding error of a coordinate
    CONVERGED = 1.0e-6 if single else 1.0e-12
    ROUNDED = 5.0e-7 if single else 2.0e-15
    # the square of the distance below which a point is in the difference, up to rounding
    TOUCHING_SQUARE = 4.0e-12 if single else 1.0e-26
    # squares of sines of angles of triangles and tetrahedra that are flat
    FLAT_SIMPLEX = 1.0e-11 if single else 1.0e-26

    @m.struct
    class Nearest:
        """The result of a search: the closest point of the difference less the point, the point of the first shape, and one where the
        point is inside the tetrahedron of the four corners of the simplex, else zero."""

        y: m.Vec3
        first: m.Vec3
        inside: m.lane

    @m.struct
    class Closest:
        """The part of a simplex that is closest so far: the square of its distance, the closest point, and the shares of the three old
        vertices in it."""

        square: m.lane
        y: m.Vec3
        share: m.Vec3

    @m.func
    def closer(old: Closest, usable: m.lane, y: m.Vec3, share: m.Vec3) -> Closest:
        """The better one of the part so far and one that may be used where `usable` is one."""
        square = m.where_lt(m.fill(real(0.5)), usable, m.dot(y, y), m.fill(real(FAR)))
        return Closest(
            m.smaller(square, old.square),
            m.where3_lt(square, old.square, y, old.y),
            m.where3_lt(square, old.square, share, old.share),
        )

    @m.func
    def along_edge(w: m.Vec3, edge: m.Vec3) -> m.lane:
        """The share of the edge from w on at which it is closest to the origin."""
        s = m.div(m.neg(m.dot(w, edge)), m.larger(m.dot(edge, edge), m.fill(real(SMALLEST))))
        return m.within(s, m.fill(real(0.0)), m.fill(real(1.0)))

    @m.struct
    class Triangle:
        """One where the origin projects into the triangle; the projection; and the shares of the second and third vertex."""

        usable: m.lane
        y: m.Vec3
        s: m.lane
        u: m.lane

    @m.func
    def over_triangle(w: m.Vec3, edge: m.Vec3, f: m.Vec3, normal: m.Vec3, usable: m.lane) -> Triangle:
        """For the triangle of w, w + edge and w + f."""
        zero = m.fill(real(0.0))
        square = m.dot(normal, normal)
        flat = m.fma(m.fill(real(FLAT_SIMPLEX)), m.mul(m.dot(edge, edge), m.dot(f, f)), m.fill(real(SMALLEST)))
        inverse = m.rcp(m.larger(square, flat))
        s = m.mul(inverse, m.dot(normal, m.cross(f, w)))
        u = m.mul(inverse, m.dot(normal, m.cross(w, edge)))
        rest = m.sub(m.sub(m.fill(real(1.0)), s), u)
        inside = m.where_lt(zero, m.smaller(rest, m.smaller(s, u)), usable, zero)
        y = m.scale3(normal, m.mul(inverse, m.dot(normal, w)))
        return Triangle(m.where_lt(flat, square, inside, zero), y, s, u)

    @m.func
    def put_vertex(t, i: int, where: m.lane, w: m.Vec3, first: m.Vec3, L, mem):
        """Stores corner i of the simplex in the worlds where `where` is one."""
        at = L.pair_work + SIMPLEX + CORNER * i
        half = m.fill(real(0.5))
        m.put3(mem, at, t, m.where3_lt(half, where, w, m.get3(mem, at, t)))
        m.put3(mem, at + 3, t, m.where3_lt(half, where, first, m.get3(mem, at + 3, t)))

    @m.shared
    def nearest(
        b, t, o: m.Vec3, start: m.Vec3, wanted: m.lane, limit: m.lane, visits: int, kind: int, other: int, hull_a: int, count_a: int,
        hull_b: int, count_b: int, T, P, L, mem,
    ) -> Nearest:  # fmt: skip
        """The point of the difference of both shapes that is closest to o.

        Args:
            start: a direction from the difference to o, not zero.
            wanted: one in worlds that need the result; in others the simplex keeps its corners.
            limit: the search ends where the distance is larger, with a point that is not the closest one.
        """
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        one = m.fill(real(1.0))
        at = L.pair_work + SIMPLEX
        going = wanted
        inside = zero
        g = m.difference(b, t, start, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        y = m.sub3(g.w, o)
        put_vertex(t, 0, going, y, g.first, L, mem)
        put_vertex(t, 1, going, y, g.first, L, mem)
        put_vertex(t, 2, going, y, g.first, L, mem)
        # the corners that are in use, and their shares in y
        used = m.vec(one, zero, zero)
        share = used
        visit = int(0)
        while visit < visits:
            square = m.dot(y, y)
            going = m.where_lt(m.fill(real(TOUCHING_SQUARE)), square, going, zero)
            g = m.difference(b, t, m.neg3(y), kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
            w = m.sub3(g.w, o)
            length = m.sqrt(square)
            bound = m.fma(m.fill(real(CONVERGED)), square, m.mul(m.fill(real(ROUNDED)), length))
            going = m.where_lt(bound, m.sub(square, m.dot(y, w)), going, zero)
            going = m.where_lt(m.mul(limit, length), m.dot(y, w), zero, going)
            # the last visit of a search ends here
            if not m.any_lt(zero, going):
                visit = visits
            else:
                visit = visit + 1
                e0 = m.sub3(m.get3(mem, at, t), w)
                e1 = m.sub3(m.get3(mem, at + CORNER, t), w)
                e2 = m.sub3(m.get3(mem, at + 2 * CORNER, t), w)
                n01 = m.cross(e0, e1)
                n12 = m.cross(e1, e2)
                n20 = m.cross(e2, e0)
                c = Closest(m.dot(w, w), w, m.vec(zero, zero, zero))
                s = along_edge(w, e0)
                c = closer(c, used.x, m.fma3(e0, s, w), m.vec(s, zero, zero))
                s = along_edge(w, e1)
                c = closer(c, used.y, m.fma3(e1, s, w), m.vec(zero, s, zero))
                s = along_edge(w, e2)
                c = closer(c, used.z, m.fma3(e2, s, w), m.vec(zero, zero, s))
                face = over_triangle(w, e0, e1, n01, m.mul(used.x, used.y))
                c = closer(c, face.usable, face.y, m.vec(face.s, face.u, zero))
                face = over_triangle(w, e1, e2, n12, m.mul(used.y, used.z))
                c = closer(c, face.usable, face.y, m.vec(zero, face.s, face.u))
                face = over_triangle(w, e2, e0, n20, m.mul(used.z, used.x))
                c = closer(c, face.usable, face.y, m.vec(face.u, zero, face.s))
                # barycentric coordinates of o in the tetrahedron, times its volume
                volume = m.dot(n01, e2)
                sign = m.sign_of(volume)
                r0 = m.neg(m.mul(sign, m.dot(w, n12)))
                r1 = m.neg(m.mul(sign, m.dot(w, n20)))
                r2 = m.neg(m.mul(sign, m.dot(w, n01)))
                size = m.mul(sign, volume)
                least = m.smaller(m.smaller(r0, r1), m.smaller(r2, m.sub(m.sub(size, r0), m.add(r1, r2))))
                full = m.mul(going, m.mul(used.x, m.mul(used.y, used.z)))
                full = m.where_lt(zero, least, full, zero)
                flat = m.fma(m.fill(real(FLAT_SIMPLEX)), m.mul(m.dot(n01, n01), m.dot(e2, e2)), m.fill(real(SMALLEST)))
                full = m.where_lt(flat, m.mul(size, size), full, zero)
                inside = m.where_lt(half, full, one, inside)
                if m.any_lt(zero, full):
                    put_vertex(t, 3, full, w, g.first, L, mem)
                going = m.where_lt(half, full, zero, going)
                # no progress: the last digits are rounding errors
                going = m.where_lt(c.square, square, going, zero)
                rest = m.sub(m.sub(one, c.share.x), m.add(c.share.y, c.share.z))
                y = m.where3_lt(half, going, c.y, y)
                # the new vertex takes the place of the first old one that has no share
                k0 = m.where_lt(zero, c.share.x, one, zero)
                k1 = m.where_lt(zero, c.share.y, one, zero)
                k2 = m.where_lt(zero, c.share.z, one, zero)
                put0 = m.mul(going, m.sub(one, k0))
                put1 = m.mul(going, m.mul(k0, m.sub(one, k1)))
                put2 = m.mul(going, m.mul(k0, k1))
                put_vertex(t, 0, put0, w, g.first, L, mem)
                put_vertex(t, 1, put1, w, g.first, L, mem)
                put_vertex(t, 2, put2, w, g.first, L, mem)
                kept = m.vec(m.larger(k0, put0), m.larger(k1, put1), m.larger(k2, put2))
                used = m.where3_lt(half, going, kept, used)
                s0 = m.where_lt(half, put0, rest, c.share.x)
                s1 = m.where_lt(half, put1, rest, c.share.y)
                s2 = m.where_lt(half, put2, rest, c.share.z)
                share = m.where3_lt(half, going, m.vec(s0, s1, s2), share)
        first = m.scale3(m.get3(mem, at + 3, t), share.x)
        first = m.fma3(m.get3(mem, at + CORNER + 3, t), share.y, first)
        first = m.fma3(m.get3(mem, at + 2 * CORNER + 3, t), share.z, first)
        return Nearest(y, first, inside)

    return locals()
