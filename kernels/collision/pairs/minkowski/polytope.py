"""The shortest way out of the difference of two convex shapes: a polytope that expands towards its surface.

G. van den Bergen: Proximity queries and penetration depth computation on 3D game objects. Game Developers Conference 2001. The polytope's
vertices are support points of the difference. The closest face bounds the depth from below, the difference's reach along any direction
from above. A visit adds the support point along the closest face's normal: it removes the faces that this point sees, and joins the
point to the edges of the hole. Worlds of a block have faces of their own in slots of their own.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.work import (
    CORNER,
    CORNERS,
    EDGE_AT,
    EDGES,
    FACE,
    FACE_AT,
    FACES,
    HORIZON_AT,
    OFFSET,
    SEEN_AT,
    SEEN_CORNERS_AT,
    SIMPLEX,
    SMALLEST,
    VERTEX_AT,
    VERTICES,
)
from newton_like.kernels.collision.plane import FAR


def polytope_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``way_out``."""
    real = m.real
    single = real is wp.float32
    # the depth's bounds differ by less at the end: by so much, or by this share of the depth
    SETTLED = 1.0e-4
    SETTLED_SHARE = 1.0e-2
    # a face is seen from points above it by more than the rounding error
    ABOVE = 5.0e-6 if single else 1.0e-10
    FLAT_FACE = 1.0e-11 if single else 1.0e-26

    @m.func
    def gather3(t, at: int, stride: int, index: m.lane, mem) -> m.Vec3:
        return m.vec(
            m.gather(mem, at, stride, index, t),
            m.gather(mem, at + 1, stride, index, t),
            m.gather(mem, at + 2, stride, index, t),
        )

    @m.func
    def scatter3(t, at: int, stride: int, index: m.lane, a: m.Vec3, mem):
        m.scatter(mem, at, stride, index, t, a.x)
        m.scatter(mem, at + 1, stride, index, t, a.y)
        m.scatter(mem, at + 2, stride, index, t, a.z)

    @m.shared
    def put_face(t, slot: m.lane, i: m.lane, j: m.lane, k: m.lane, L, mem):
        """Stores the face of vertices i, j, k, which are in counter-clockwise order from outside. A face without area is far away."""
        vertices = L.pair_work + VERTEX_AT
        faces = L.pair_work + FACE_AT
        p = gather3(t, vertices, 3, k, mem)
        edge = m.sub3(gather3(t, vertices, 3, i, mem), p)
        f = m.sub3(gather3(t, vertices, 3, j, mem), p)
        n = m.cross(edge, f)
        square = m.dot(n, n)
        flat = m.fma(m.fill(real(FLAT_FACE)), m.mul(m.dot(edge, edge), m.dot(f, f)), m.fill(real(SMALLEST)))
        n = m.scale3(n, m.rcp(m.sqrt(m.larger(square, flat))))
        offset = m.where_lt(flat, square, m.dot(n, p), m.fill(real(FAR)))
        scatter3(t, faces, FACE, slot, n, mem)
        m.scatter(mem, faces + OFFSET, FACE, slot, t, offset)
        scatter3(t, faces + CORNERS, FACE, slot, m.vec(i, j, k), mem)

    @m.func
    def first_polytope(t, L, mem):
        """The tetrahedron of the simplex, its faces turned outwards."""
        simplex = L.pair_work + SIMPLEX
        vertices = L.pair_work + VERTEX_AT
        p0 = m.get3(mem, simplex, t)
        p1 = m.get3(mem, simplex + CORNER, t)
        p2 = m.get3(mem, simplex + 2 * CORNER, t)
        p3 = m.get3(mem, simplex + 3 * CORNER, t)
        zero = m.fill(real(0.0))
        volume = m.dot(m.cross(m.sub3(p1, p0), m.sub3(p2, p0)), m.sub3(p3, p0))
        m.put3(mem, vertices, t, p0)
        m.put3(mem, vertices + 3, t, m.where3_lt(zero, volume, p2, p1))
        m.put3(mem, vertices + 6, t, m.where3_lt(zero, volume, p1, p2))
        m.put3(mem, vertices + 9, t, p3)
        far = m.fill(real(FAR))
        last = int(FACES + 1)
        for f in range(last):
            m.put(mem, L.pair_work + FACE_AT + FACE * f + OFFSET, t, far)
        one = m.fill(real(1.0))
        two = m.fill(real(2.0))
        three = m.fill(real(3.0))
        put_face(t, zero, zero, one, two, L, mem)
        put_face(t, one, zero, three, one, L, mem)
        put_face(t, two, one, three, two, L, mem)
        put_face(t, three, two, three, zero, L, mem)

    @m.func
    def forget_edges(t, vertex: int, L, mem):
        """No face with an edge between this vertex and an earlier one has been removed."""
        zero = m.fill(real(0.0))
        edge = L.pair_work + EDGE_AT
        for i in range(vertex + 1):
            m.put(mem, edge + VERTICES * i + vertex, t, zero)
            m.put(mem, edge + VERTICES * vertex + i, t, zero)

    @m.func
    def cut_hole(t, faces: int, vertex: int, going: m.lane, w: m.Vec3, L, mem) -> m.lane:
        """Removes the faces that w sees, of the slots up to `faces`, and lists them with their corners. Returns their number."""
        zero = m.fill(real(0.0))
        far = m.fill(real(FAR))
        seen = L.pair_work + SEEN_AT
        corners = L.pair_work + SEEN_CORNERS_AT
        edge = L.pair_work + EDGE_AT
        count = zero
        for f in range(faces):
            at = L.pair_work + FACE_AT + FACE * f
            offset = m.get(mem, at + OFFSET, t)
            above = m.add(offset, m.fill(real(ABOVE)))
            sees = m.where_lt(above, m.dot(m.get3(mem, at, t), w), going, zero)
            # where the face is not seen, the next one that is takes this entry
            m.scatter(mem, seen, 1, count, t, m.fill(real(f)))
            m.put(mem, at + OFFSET, t, m.where_lt(zero, sees, far, offset))
            count = m.add(count, sees)
        mark = m.fill(real(vertex))
        row = m.fill(real(VERTICES))
        nowhere = m.fill(real(EDGES))
        for k in range(faces):
            ordinal = m.fill(real(k))
            if m.any_lt(ordinal, count):
                slot = m.where_lt(ordinal, count, m.get(mem, seen + k, t), zero)
                c = gather3(t, L.pair_work + FACE_AT + CORNERS, FACE, slot, mem)
                m.put3(mem, corners + 3 * k, t, c)
                m.scatter(mem, edge, 1, m.where_lt(ordinal, count, m.fma(c.x, row, c.y), nowhere), t, mark)
                m.scatter(mem, edge, 1, m.where_lt(ordinal, count, m.fma(c.y, row, c.z), nowhere), t, mark)
                m.scatter(mem, edge, 1, m.where_lt(ordinal, count, m.fma(c.z, row, c.x), nowhere), t, mark)
        return count

    @m.func
    def list_edge(t, vertex: int, i: m.lane, j: m.lane, exists: m.lane, count: m.lane, L, mem) -> m.lane:
        """Adds the edge from i to j to the rim of the hole if no face of the hole has the edge from j to i. Returns the number of edges."""
        zero = m.fill(real(0.0))
        back = m.gather(mem, L.pair_work + EDGE_AT, 1, m.fma(j, m.fill(real(VERTICES)), i), t)
        on_rim = m.where_lt(back, m.fill(real(vertex)), exists, zero)
        m.scatter(mem, L.pair_work + HORIZON_AT, 2, count, t, i)
        m.scatter(mem, L.pair_work + HORIZON_AT + 1, 2, count, t, j)
        return m.add(count, on_rim)

    @m.func
    def close_hole(t, faces: int, vertex: int, removed: m.lane, stored: m.lane, L, mem) -> m.lane:
        """Joins the vertex to the rim of the hole. Faces take the slots of those that were removed, then new ones. Returns the number of
        slots in use."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        corners = L.pair_work + SEEN_CORNERS_AT
        count = zero
        for k in range(faces):
            ordinal = m.fill(real(k))
            if m.any_lt(ordinal, removed):
                c = m.get3(mem, corners + 3 * k, t)
                exists = m.where_lt(ordinal, removed, one, zero)
                # where there is no face, its corners are numbers of an earlier one
                count = list_edge(t, vertex, c.x, c.y, exists, count, L, mem)
                count = list_edge(t, vertex, c.y, c.z, exists, count, L, mem)
                count = list_edge(t, vertex, c.z, c.x, exists, count, L, mem)
        nowhere = m.fill(real(FACES))
        # a visit adds two faces, or fewer; more would be an error of rounding
        last = m.fill(real(faces + 2))
        apex = m.fill(real(vertex))
        for k in range(3 * faces):
            ordinal = m.fill(real(k))
            if m.any_lt(ordinal, count):
                slot = m.add(stored, m.sub(ordinal, removed))
                if k < faces:
                    slot = m.where_lt(ordinal, removed, m.get(mem, L.pair_work + SEEN_AT + k, t), slot)
                slot = m.where_lt(slot, last, slot, nowhere)
                slot = m.where_lt(ordinal, count, slot, nowhere)
                i = m.get(mem, L.pair_work + HORIZON_AT + 2 * k, t)
                j = m.get(mem, L.pair_work + HORIZON_AT + 2 * k + 1, t)
                put_face(t, slot, i, j, apex, L, mem)
        return m.smaller(m.add(stored, m.larger(m.sub(count, removed), zero)), last)

    @m.shared
    def way_out(
        b, t, wanted: m.lane, visits: int, kind: int, other: int, hull_a: int, count_a: int, hull_b: int,
        count_b: int, T, P, L, mem,
    ) -> m.Vec3:  # fmt: skip
        """The unit vector along which the origin is least deep in the difference of both shapes, where `wanted` is one. There the simplex
        is a tetrahedron with the origin inside."""
        zero = m.fill(real(0.0))
        far = m.fill(real(FAR))
        going = wanted
        depth = far
        n = m.zero3()
        first_polytope(t, L, mem)
        for vertex in range(int(4)):
            forget_edges(t, vertex, L, mem)
        stored = m.fill(real(4.0))
        for visit in range(visits):
            if m.any_lt(zero, going):
                faces = 4 + 2 * visit
                vertex = 4 + visit
                least = far
                index = zero
                for f in range(faces):
                    offset = m.get(mem, L.pair_work + FACE_AT + FACE * f + OFFSET, t)
                    index = m.where_lt(offset, least, m.fill(real(f)), index)
                    least = m.smaller(offset, least)
                normal = gather3(t, L.pair_work + FACE_AT, FACE, index, mem)
                g = m.difference(b, t, normal, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
                w = g.w
                reach = m.where_lt(least, far, m.dot(normal, w), far)
                n = m.where3_lt(reach, depth, normal, n)
                depth = m.smaller(reach, depth)
                bound = m.fma(m.fill(real(SETTLED_SHARE)), depth, m.fill(real(SETTLED)))
                going = m.where_lt(bound, m.sub(depth, least), going, zero)
                going = m.where_lt(least, far, going, zero)
                if m.any_lt(zero, going):
                    m.put3(mem, L.pair_work + VERTEX_AT + 3 * vertex, t, w)
                    forget_edges(t, vertex, L, mem)
                    removed = cut_hole(t, faces, vertex, going, w, L, mem)
                    stored = close_hole(t, faces, vertex, removed, stored, L, mem)
        return n

    return locals()
