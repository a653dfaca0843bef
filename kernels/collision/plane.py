"""Collision of shapes with planes: candidate contact points of each shape and their heights above the plane.

A shape has a fixed number of candidates, so that a contact has the same index in every step and can be warm-started. The gap of a point
is its signed distance from the plane less both margins, positive if separated. Candidates of a sphere, capsule or box are fixed
to the shape. Those of a cylinder, cone or ellipsoid move over its rim or surface. Those of a hull are its deepest vertex and three
vertices that span a wide patch with it.
"""

import types

from newton_like.kernels.collision.hull_corners import FAR

from newton_like.kernels.tree import (  # isort: skip
    CENTER, GAP, HALF_LENGTH, HALF_WIDTH, MARGIN, NORMAL, OFFSET, OFFSET_1, OFFSET_2, RADIUS, ROTATION, SIZE, SURFACE,
    TANGENT_1, TANGENT_2,
)  # fmt: skip

# Collider kinds and their numbers of candidates.
SPHERE, CAPSULE, BOX, CYLINDER, CONE, ELLIPSOID, HULL = range(7)
POINTS = (1, 2, 8, 8, 5, 1, 4)


def plane_collision(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``detect``, which computes the candidates of one collider, and ``clearance``."""
    real = m.real

    @m.func
    def put_candidate(b, t, c: int, s: int, x: m.Vec3, radius: m.lane, dt: m.lane, T, P, L, mem):
        """Stores candidate c: its gap; its gap less the detection distance (``near``); and its position relative to the origin."""
        pl = T.collider_plane[s]
        n = m.plane_vec(P, b, pl, NORMAL)
        o = m.get3(mem, L.origin + 3 * m.tree_of(T.collider_body[s], T), t)
        margin = m.collider_param(P, b, s, SURFACE + MARGIN)
        offset = m.sub(m.dot(n, o), m.plane_param(P, b, pl, OFFSET))
        gap = m.sub(m.sub(m.dot_plus(n, x, offset), radius), margin)
        if T.plane_finite[pl] != 0:
            one = m.plane_vec(P, b, pl, TANGENT_1)
            two = m.plane_vec(P, b, pl, TANGENT_2)
            u = m.sub(m.dot_plus(one, o, m.dot(one, x)), m.plane_param(P, b, pl, OFFSET_1))
            v = m.sub(m.dot_plus(two, o, m.dot(two, x)), m.plane_param(P, b, pl, OFFSET_2))
            far = m.fill(real(FAR))
            gap = m.where_lt(m.plane_param(P, b, pl, HALF_LENGTH), m.larger(u, m.neg(u)), far, gap)
            gap = m.where_lt(m.plane_param(P, b, pl, HALF_WIDTH), m.larger(v, m.neg(v)), far, gap)
        # halfway between the two surfaces
        point = m.fnma3(n, m.add(radius, m.mul(m.fill(real(0.5)), m.add(gap, margin))), x)
        approach = m.dot(n, m.velocity_at(m.get6(mem, L.twist + 6 * T.collider_body[s], t), point))
        reach = m.larger(m.fill(real(0.0)), m.mul(m.fill(real(-2.0)), m.mul(dt, approach)))
        m.put(mem, L.gap + c, t, gap)
        m.put(mem, L.near + c, t, m.sub(gap, m.add(reach, m.collider_param(P, b, s, SURFACE + GAP))))
        m.put3(mem, L.point + 3 * c, t, point)

    @m.func
    def rim(b, t, c: int, s: int, center: m.Vec3, radius: m.lane, r: m.Mat33, dt: m.lane, T, P, L, mem):
        """Stores four points of the circle about `center`, the point closest to the plane first. The circle's axis is the third column
        of r."""
        axis = m.column(r, 2)
        n = m.plane_vec(P, b, T.collider_plane[s], NORMAL)
        down = m.sub3(m.scale3(axis, m.dot(n, axis)), n)
        square = m.dot(down, down)
        # a disc that lies flat has no lowest point; the first point is then on the x axis of r
        flat = m.fill(real(1.0e-6))
        scale = m.rcp(m.sqrt(m.larger(square, flat)))
        x = m.column(r, 0)
        e = m.vec(
            m.where_lt(square, flat, x.x, m.mul(down.x, scale)),
            m.where_lt(square, flat, x.y, m.mul(down.y, scale)),
            m.where_lt(square, flat, x.z, m.mul(down.z, scale)),
        )
        f = m.cross(axis, e)
        zero = m.fill(real(0.0))
        minus = m.neg(radius)
        put_candidate(b, t, c, s, m.fma3(e, radius, center), zero, dt, T, P, L, mem)
        put_candidate(b, t, c + 1, s, m.fma3(f, radius, center), zero, dt, T, P, L, mem)
        put_candidate(b, t, c + 2, s, m.fma3(e, minus, center), zero, dt, T, P, L, mem)
        put_candidate(b, t, c + 3, s, m.fma3(f, minus, center), zero, dt, T, P, L, mem)

    @m.func
    def fastest(b, t, s: int, center: m.Vec3, T, P, L, mem) -> m.lane:
        """No point within the bounding sphere of collider s about `center` is faster."""
        v = m.get6(mem, L.twist + 6 * T.collider_body[s], t)
        u = m.velocity_at(v, center)
        return m.add(m.sqrt(m.dot(u, u)), m.mul(m.collider_param(P, b, s, RADIUS), m.sqrt(m.dot(v.w, v.w))))

    @m.func
    def hull_patch(b, t, c: int, s: int, center: m.Vec3, r: m.Mat33, dt: m.lane, T, P, L, mem):
        """Stores four vertices that span a wide patch, see `find_corners`."""
        n = m.plane_vec(P, b, T.collider_plane[s], NORMAL)
        o = m.get3(mem, L.origin + 3 * m.tree_of(T.collider_body[s], T), t)
        above = m.sub(m.dot_plus(n, center, m.dot(n, o)), m.plane_param(P, b, T.collider_plane[s], OFFSET))
        above = m.sub(above, m.collider_param(P, b, s, SURFACE + MARGIN))
        thick = m.mul(m.fill(real(0.05)), m.collider_param(P, b, s, RADIUS))
        # in the axes of the shape
        down = m.neg3(m.apply_t(n, r))
        place = L.point + 3 * c
        # no vertex that is farther away is near, whatever its velocity; the small part is for rounding errors
        reach = m.fma(
            m.mul(m.fill(real(2.0)), dt), fastest(b, t, s, center, T, P, L, mem), m.mul(m.fill(real(1.0e-3)), thick)
        )
        reach = m.add(reach, m.collider_param(P, b, s, SURFACE + GAP))
        near = m.find_corners(
            P.uniform, P.varying, P.colliders_vary, b, P.hull_at + 3 * T.hull_at[s], T.hull_count[s],
            down, above, thick, reach, mem, place, t,
        )  # fmt: skip
        zero = m.fill(real(0.0))
        for i in range(4):
            if near:
                vertex = m.apply_plus(r, m.get3(mem, place + 3 * i, t), center)
                put_candidate(b, t, c + i, s, vertex, zero, dt, T, P, L, mem)
            else:
                m.put(mem, L.gap + c + i, t, m.fill(real(FAR)))
                m.put(mem, L.near + c + i, t, m.fill(real(FAR)))

    @m.func
    def clearance(b, t, s: int, dt: m.lane, T, P, L, mem) -> m.lane:
        """The distance of collider s, or of the bounding sphere of a hull, from its plane less the detection distance; negative if near."""
        k = T.collider_body[s]
        kind = T.collider_kind[s]
        n = m.plane_vec(P, b, T.collider_plane[s], NORMAL)
        body = m.get9(mem, L.rot + 9 * k, t)
        center = m.apply_plus(body, m.collider_vec(P, b, s, CENTER), m.get3(mem, L.pos + 3 * k, t))
        height = m.sub(
            m.dot_plus(n, m.get3(mem, L.origin + 3 * m.tree_of(k, T), t), m.dot(n, center)),
            m.plane_param(P, b, T.collider_plane[s], OFFSET),
        )
        radius = m.collider_param(P, b, s, RADIUS)
        extent = radius
        if kind != HULL:
            # the shape's extent along -n: exact for a box, a cylinder and an ellipsoid, an upper bound for a cone
            size = m.collider_vec(P, b, s, SIZE)
            local = m.collider_quat(P, b, s, ROTATION)
            d = m.apply_t(m.apply_t(n, body), m.quat_to_matrix(local))
            z = m.larger(d.z, m.neg(d.z))
            if kind == BOX:
                x = m.larger(d.x, m.neg(d.x))
                y = m.larger(d.y, m.neg(d.y))
                extent = m.fma(x, size.x, m.fma(y, size.y, m.mul(z, size.z)))
            elif kind == ELLIPSOID:
                e = m.vec(m.mul(d.x, size.x), m.mul(d.y, size.y), m.mul(d.z, size.z))
                extent = m.sqrt(m.dot(e, e))
            else:
                extent = m.fma(m.sqrt(m.fma(d.x, d.x, m.mul(d.y, d.y))), size.x, m.mul(z, size.y))
        speed = fastest(b, t, s, center, T, P, L, mem)
        reach = m.add(m.collider_param(P, b, s, SURFACE + GAP), m.collider_param(P, b, s, SURFACE + MARGIN))
        return m.sub(height, m.add(extent, m.fma(m.mul(m.fill(real(2.0)), dt), speed, reach)))

    @m.shared
    def detect(b, t, s: int, dt: m.lane, T, P, L, mem):
        """Computes the candidates of collider s."""
        k = T.collider_body[s]
        kind = T.collider_kind[s]
        c = T.collider_candidate[s]
        size = m.collider_vec(P, b, s, SIZE)
        body = m.get9(mem, L.rot + 9 * k, t)
        center = m.apply_plus(body, m.collider_vec(P, b, s, CENTER), m.get3(mem, L.pos + 3 * k, t))
        zero = m.fill(real(0.0))
        if kind == SPHERE:
            put_candidate(b, t, c, s, center, size.x, dt, T, P, L, mem)
        else:
            local = m.collider_quat(P, b, s, ROTATION)
            r = m.quat_to_matrix(m.quat_multiply(m.get4(mem, L.quat + 4 * k, t), local))
            x = m.scale3(m.column(r, 0), size.x)
            y = m.scale3(m.column(r, 1), size.y)
            if kind == CAPSULE:
                half = m.scale3(m.column(r, 2), size.y)
                put_candidate(b, t, c, s, m.add3(center, half), size.x, dt, T, P, L, mem)
                put_candidate(b, t, c + 1, s, m.sub3(center, half), size.x, dt, T, P, L, mem)
            if kind == BOX:
                z = m.scale3(m.column(r, 2), size.z)
                for i in range(2):
                    face = m.add3(center, x)
                    if i == 1:
                        face = m.sub3(center, x)
                    e = c + 4 * i
                    put_candidate(b, t, e, s, m.add3(m.add3(face, y), z), zero, dt, T, P, L, mem)
                    put_candidate(b, t, e + 1, s, m.sub3(m.add3(face, y), z), zero, dt, T, P, L, mem)
                    put_candidate(b, t, e + 2, s, m.add3(m.sub3(face, y), z), zero, dt, T, P, L, mem)
                    put_candidate(b, t, e + 3, s, m.sub3(m.sub3(face, y), z), zero, dt, T, P, L, mem)
            if kind == CYLINDER:
                half = m.scale3(m.column(r, 2), size.y)
                rim(b, t, c, s, m.add3(center, half), size.x, r, dt, T, P, L, mem)
                rim(b, t, c + 4, s, m.sub3(center, half), size.x, r, dt, T, P, L, mem)
            if kind == CONE:
                half = m.scale3(m.column(r, 2), size.y)
                rim(b, t, c, s, m.sub3(center, half), size.x, r, dt, T, P, L, mem)
                put_candidate(b, t, c + 4, s, m.add3(center, half), zero, dt, T, P, L, mem)
            if kind == ELLIPSOID:
                # the point whose outward normal is -n: A^2 n / |A n|, with A the semi-axes
                n = m.apply_t(m.plane_vec(P, b, T.collider_plane[s], NORMAL), r)
                a = m.vec(m.mul(size.x, n.x), m.mul(size.y, n.y), m.mul(size.z, n.z))
                scale = m.neg(m.rcp(m.sqrt(m.larger(m.dot(a, a), m.fill(real(1.0e-20))))))
                lowest = m.vec(
                    m.mul(size.x, m.mul(a.x, scale)), m.mul(size.y, m.mul(a.y, scale)), m.mul(size.z, m.mul(a.z, scale))
                )
                put_candidate(b, t, c, s, m.apply_plus(r, lowest, center), zero, dt, T, P, L, mem)
            if kind == HULL:
                hull_patch(b, t, c, s, center, r, dt, T, P, L, mem)

    return locals()
