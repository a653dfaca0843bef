"""Distance and normal of a box and a cylinder: the direction that separates them most, from a finite list of directions.

The signed distance is the maximum over unit vectors n of -h(n), with h the support function of the difference of both shapes. At the
maximum n is the normal of a face of the difference, or points along the way between the two closest points:

* a normal of the box, or the axis of the cylinder;
* perpendicular to the axis, and to an edge of the box or through one of its corners: the edge or corner is beside the barrel;
* from a rim to a corner;
* perpendicular to an edge that a rim touches. Seen along the edge, the edge is a point and the rim an ellipse with the semi-axes R and
  R |a|, where a is the component of the cylinder's axis along the edge. The point (x, y) has its closest point of the ellipse along a
  normal (x / (t + R^2), y / (t + R^2 a^2)), with t a root of a rational function (D. Eberly: Distance from a point to an ellipse, an
  ellipsoid, or a hyperellipsoid, 2013). Its square root's inverse is nearly linear, and steps of Newton find the root of that (J. J. More,
  D. C. Sorensen: Computing a trust region step, 1983).

Every direction is a bound of the distance, so that the largest bound is the distance. All is computed in the axes of the box about its
centre, in units of the pair's size.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import AXES, CENTRE, EXTENT, SHAPE
from newton_like.kernels.collision.pairs.work import LIMIT, PER_UNIT, SHAPES, SMALLEST
from newton_like.kernels.collision.plane import BOX, CYLINDER, FAR

BOX_CORNERS = 8
"""Corners of a box."""


def box_cylinder_pair(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``box_cylinder``."""
    real = m.real
    single = real is wp.float32
    # steps of Newton for each rim and edge, and for the best one
    TRIAL_STEPS, STEPS = (4, 8) if single else (8, 16)
    # the least root, as a share of the square of the radius, and in any case
    LEAST_ROOT, LEAST_OF_ALL = (1.0e-12, 1.0e-18) if single else (1.0e-24, 1.0e-40)
    # how far from the longer axis of an ellipse points are at least, as a share of that: its closest points there are on either side
    OFF_AXIS = 1.0e-6 if single else 1.0e-13
    # components of directions below this share of one are rounding errors
    LEVEL = 1.0e-5 if single else 1.0e-10

    @m.struct
    class BoxByCylinder:
        """The half sides of the box; the centre and the axis of the cylinder, its radius and its half height."""

        size: m.Vec3
        centre: m.Vec3
        axis: m.Vec3
        radius: m.lane
        height: m.lane

    @m.struct
    class Way:
        """A direction from the box to the cylinder and the distance along it."""

        n: m.Vec3
        distance: m.lane

    @m.func
    def next_axes(v: m.Vec3) -> m.Vec3:
        """v in axes that are named anew: the second one is the first."""
        return m.vec(v.y, v.z, v.x)

    @m.func
    def with_next_axes(p: BoxByCylinder) -> BoxByCylinder:
        return BoxByCylinder(next_axes(p.size), next_axes(p.centre), next_axes(p.axis), p.radius, p.height)

    @m.func
    def length_of(v: m.Vec3) -> m.lane:
        return m.sqrt(m.dot(v, v))

    @m.func
    def reach_of_box(size: m.Vec3, n: m.Vec3) -> m.lane:
        """How far the box reaches along n."""
        return m.fma(size.x, m.magnitude(n.x), m.fma(size.y, m.magnitude(n.y), m.mul(size.z, m.magnitude(n.z))))

    @m.func
    def along_way(p: BoxByCylinder, n: m.Vec3) -> m.lane:
        """The distance along n."""
        apart = m.sub(m.dot(n, p.centre), reach_of_box(p.size, n))
        apart = m.fnma(p.height, m.magnitude(m.dot(n, p.axis)), apart)
        return m.fnma(p.radius, length_of(m.cross(n, p.axis)), apart)

    @m.func
    def farther(old: Way, n: m.Vec3, distance: m.lane) -> Way:
        """The one with the larger distance."""
        return Way(m.where3_lt(old.distance, distance, n, old.n), m.larger(old.distance, distance))

    @m.struct
    class Corners:
        """Ways from corners of the box to the centre of the cylinder: from the one nearest to its axis, and from the one nearest to it; and
        the squares of these distances."""

        to_axis: m.Vec3
        to_solid: m.Vec3
        square_axis: m.lane
        square_solid: m.lane

    @m.func
    def nearer_corner(p: BoxByCylinder, old: Corners, way: m.Vec3) -> Corners:
        zero = m.fill(real(0.0))
        along = m.dot(way, p.axis)
        aside = m.fnma3(p.axis, along, way)
        square = m.dot(aside, aside)
        out = m.larger(m.sub(m.sqrt(square), p.radius), zero)
        above = m.larger(m.sub(m.magnitude(along), p.height), zero)
        solid = m.fma(out, out, m.mul(above, above))
        return Corners(
            m.where3_lt(square, old.square_axis, way, old.to_axis),
            m.where3_lt(solid, old.square_solid, way, old.to_solid),
            m.smaller(square, old.square_axis),
            m.smaller(solid, old.square_solid),
        )

    @m.func
    def along_corners(p: BoxByCylinder, best: Way) -> Way:
        """The better one of a way and those through a corner of the box."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        far = m.fill(real(FAR))
        least = m.fill(real(SMALLEST))
        c = Corners(p.centre, p.centre, far, far)
        corner = p.size
        corners = int(BOX_CORNERS)
        for i in range(corners):
            c = nearer_corner(p, c, m.sub3(p.centre, corner))
            # next corner, of which each comes once
            if i % 4 == 3:
                corner = m.vec(corner.x, corner.y, m.neg(corner.z))
            elif i % 2 == 0:
                corner = m.vec(m.neg(corner.x), corner.y, corner.z)
            else:
                corner = m.vec(corner.x, m.neg(corner.y), corner.z)
        aside = m.fnma3(p.axis, m.dot(c.to_axis, p.axis), c.to_axis)
        square = m.dot(aside, aside)
        n = m.scale3(aside, m.rcp(m.sqrt(m.larger(square, least))))
        best = farther(best, n, m.where_lt(least, square, along_way(p, n), m.neg(far)))
        along = m.dot(c.to_solid, p.axis)
        aside = m.fnma3(p.axis, along, c.to_solid)
        inverse = m.rcp(m.sqrt(m.larger(m.dot(aside, aside), least)))
        aside = m.scale3(aside, m.larger(m.sub(one, m.mul(p.radius, inverse)), zero))
        out = m.fma3(p.axis, m.sub(along, m.within(along, m.neg(p.height), p.height)), aside)
        square = m.dot(out, out)
        n = m.scale3(out, m.rcp(m.sqrt(m.larger(square, least))))
        return farther(best, n, m.where_lt(least, square, along_way(p, n), m.neg(far)))

    @m.struct
    class AlongEdge:
        """The pair seen along an edge, the first axis: the axis of the cylinder there, as a unit vector, and its length. Without such a
        length, the unit vector is the second axis."""

        y: m.lane
        z: m.lane
        length: m.lane

    @m.func
    def seen_along(p: BoxByCylinder) -> AlongEdge:
        square = m.fma(p.axis.y, p.axis.y, m.mul(p.axis.z, p.axis.z))
        least = m.fill(real(SMALLEST))
        inverse = m.rcp(m.sqrt(m.larger(square, least)))
        y = m.where_lt(least, square, m.mul(p.axis.y, inverse), m.fill(real(1.0)))
        z = m.where_lt(least, square, m.mul(p.axis.z, inverse), m.fill(real(0.0)))
        return AlongEdge(y, z, m.sqrt(square))

    @m.func
    def beside_barrel(p: BoxByCylinder, seen: AlongEdge, best: Way) -> Way:
        """The better one of a way and that perpendicular to the axis of the cylinder and to the first axis."""
        n = m.vec(m.fill(real(0.0)), seen.z, m.neg(seen.y))
        n = m.scale3(n, m.sign_of(m.dot(n, p.centre)))
        return farther(best, n, along_way(p, n))

    @m.func
    def from_edge(p: BoxByCylinder, seen: AlongEdge, y: m.lane, z: m.lane, turned: m.lane, steps: int) -> Way:
        """The way from an edge along the first axis to a rim.

        Args:
            seen: the pair seen along the edge.
            y, z: signs of the place of the edge.
            turned: -1 for the rim that is farther away, else 1.
            steps: of Newton.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        smallest = m.fill(real(SMALLEST))
        # from the centre of the cylinder to the edge, across and along the axis that is seen
        v_y = m.fma(y, p.size.y, m.neg(p.centre.y))
        v_z = m.fma(z, p.size.z, m.neg(p.centre.z))
        across = m.fma(v_y, seen.z, m.neg(m.mul(v_z, seen.y)))
        along = m.fma(v_y, seen.y, m.mul(v_z, seen.z))
        up = m.mul(turned, m.sign_of(along))
        side = m.sign_of(across)
        x = m.magnitude(across)
        # from the middle of the rim; below it, the root is that of the other half of the ellipse
        rise = m.fnma(p.height, seen.length, m.mul(up, along))
        wide = p.radius
        h = m.larger(m.magnitude(rise), m.mul(m.fill(real(OFF_AXIS)), wide))
        narrow = m.mul(wide, m.magnitude(p.axis.x))
        root_least = m.fma(m.fill(real(LEAST_ROOT)), m.mul(wide, wide), m.fill(real(LEAST_OF_ALL)))
        between = m.mul(m.mul(wide, seen.length), m.mul(wide, seen.length))
        square = m.mul(narrow, narrow)
        g_x = m.mul(wide, x)
        g_y = m.mul(narrow, h)
        low = m.larger(m.larger(g_y, m.sub(g_x, between)), root_least)
        inside = m.fma(m.mul(x, narrow), m.mul(x, narrow), m.mul(m.mul(h, wide), m.mul(h, wide)))
        inside = m.where_lt(inside, m.mul(square, m.mul(wide, wide)), one, zero)
        root = m.where_lt(zero, inside, m.sqrt(m.mul(low, square)), square)
        root = m.larger(root, low)
        below = m.where_lt(rise, zero, one, zero)
        high = m.where_lt(zero, below, m.neg(root_least), m.fill(real(FAR)))
        root = m.where_lt(zero, below, m.neg(m.larger(g_y, root_least)), root)
        low = m.where_lt(zero, below, m.mul(between, m.fill(real(-0.999999))), low)
        for _step in range(steps):
            r_x = m.rcp(m.larger(m.add(root, between), root_least))
            r_y = m.rcp(root)
            s_x = m.mul(g_x, r_x)
            s_y = m.mul(g_y, r_y)
            s_x = m.mul(s_x, s_x)
            s_y = m.mul(s_y, s_y)
            g = m.add(s_x, s_y)
            slope = m.fma(s_x, r_x, m.mul(s_y, r_y))
            slope = m.where_lt(m.magnitude(slope), smallest, smallest, slope)
            root = m.add(root, m.div(m.mul(g, m.sub(m.sqrt(g), one)), slope))
            root = m.smaller(m.larger(root, low), high)
        n_x = m.mul(x, m.rcp(m.larger(m.add(root, between), root_least)))
        n_y = m.mul(h, m.rcp(m.larger(m.magnitude(root), root_least)))
        long = m.fma(n_x, n_x, m.mul(n_y, n_y))
        inverse = m.rcp(m.sqrt(m.larger(long, smallest)))
        n_x = m.mul(n_x, inverse)
        n_y = m.mul(n_y, inverse)
        # the way to the ellipse, less what other edges of the box are ahead
        w_x = m.mul(wide, n_x)
        w_y = m.mul(narrow, n_y)
        distance = m.sub(m.fma(n_x, x, m.mul(n_y, rise)), m.sqrt(m.fma(w_x, w_x, m.mul(w_y, w_y))))
        n_x = m.neg(m.mul(side, n_x))
        n_y = m.neg(m.mul(up, n_y))
        to_y = m.fma(n_x, seen.z, m.mul(n_y, seen.y))
        to_z = m.fma(n_y, seen.z, m.neg(m.mul(n_x, seen.y)))
        ahead = m.mul(p.size.y, m.larger(m.neg(m.mul(y, to_y)), zero))
        ahead = m.fma(p.size.z, m.larger(m.neg(m.mul(z, to_z)), zero), ahead)
        distance = m.fnma(m.fill(real(2.0)), ahead, distance)
        # an edge in the middle of a rim has no direction
        return Way(m.vec(zero, to_y, to_z), m.where_lt(smallest, long, distance, m.fill(real(-FAR))))

    @m.struct
    class OfEdge:
        """A direction, the distance along it, and where it comes from an edge of the box: the number of the edge's axis, -1 for none, and
        the last three arguments of ``from_edge`` before the steps."""

        n: m.Vec3
        distance: m.lane
        axis: m.lane
        y: m.lane
        z: m.lane
        turned: m.lane

    @m.shared
    def along_edges(p: BoxByCylinder, best: OfEdge, wanted: m.lane, turned: m.lane) -> OfEdge:
        """The better one of a way and those from the edges of the box to a rim, where `wanted` is one; to the rims that are farther away
        where `turned` is -1."""
        half = m.fill(real(0.5))
        one = m.fill(real(1.0))
        far = m.fill(real(FAR))
        q = p
        n = best.n
        distance = best.distance
        from_axis = best.axis
        from_y = best.y
        from_z = best.z
        from_turned = best.turned
        axis = m.fill(real(0.0))
        y = one
        z = one
        axes = int(3)
        edges = int(4)
        steps = int(TRIAL_STEPS)
        for _axis in range(axes):
            seen = seen_along(q)
            for _edge in range(edges):
                way = from_edge(q, seen, y, z, turned, steps)
                reached = m.where_lt(half, wanted, way.distance, m.neg(far))
                n = m.where3_lt(distance, reached, way.n, n)
                from_axis = m.where_lt(distance, reached, axis, from_axis)
                from_y = m.where_lt(distance, reached, y, from_y)
                from_z = m.where_lt(distance, reached, z, from_z)
                from_turned = m.where_lt(distance, reached, turned, from_turned)
                distance = m.larger(distance, reached)
                swap = y
                y = m.neg(z)
                z = swap
            axis = m.add(axis, one)
            q = with_next_axes(q)
            n = next_axes(n)
        return OfEdge(n, distance, from_axis, from_y, from_z, from_turned)

    @m.func
    def exact_edge(p: BoxByCylinder, best: OfEdge) -> Way:
        """A way, with more steps of Newton where it comes from an edge and that is better."""
        half = m.fill(real(0.5))
        second = with_next_axes(p)
        third = with_next_axes(second)
        is_third = m.sub(best.axis, m.fill(real(1.5)))
        is_second = m.sub(best.axis, half)
        zero = m.fill(real(0.0))
        size = m.where3_lt(zero, is_third, third.size, m.where3_lt(zero, is_second, second.size, p.size))
        centre = m.where3_lt(zero, is_third, third.centre, m.where3_lt(zero, is_second, second.centre, p.centre))
        axis = m.where3_lt(zero, is_third, third.axis, m.where3_lt(zero, is_second, second.axis, p.axis))
        q = BoxByCylinder(size, centre, axis, p.radius, p.height)
        steps = int(STEPS)
        n = from_edge(q, seen_along(q), best.y, best.z, best.turned, steps).n
        # back to the first names of the axes
        once = next_axes(n)
        twice = next_axes(once)
        n = m.where3_lt(zero, is_third, once, m.where3_lt(zero, is_second, twice, n))
        n = m.where3_lt(m.neg(half), best.axis, n, best.n)
        distance = m.where_lt(m.fill(real(0.5)), m.dot(n, n), along_way(p, n), m.fill(real(-FAR)))
        return farther(Way(best.n, along_way(p, best.n)), n, distance)

    @m.func
    def farthest_apart(p: BoxByCylinder, limit: m.lane) -> Way:
        """The way of the distance of both shapes. Where that is above `limit`, any way of a distance above it."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        n = m.scale3(p.axis, m.sign_of(m.dot(p.centre, p.axis)))
        best = Way(n, along_way(p, n))
        q = p
        axes = int(3)
        for _axis in range(axes):
            n = m.vec(m.sign_of(q.centre.x), zero, zero)
            best = farther(best, n, along_way(q, n))
            best = beside_barrel(q, seen_along(q), best)
            q = with_next_axes(q)
            best = Way(next_axes(best.n), best.distance)
        if m.any_lt(best.distance, limit):
            best = along_corners(p, best)
            edge = OfEdge(best.n, best.distance, m.neg(one), one, one, one)
            edge = along_edges(p, edge, one, one)
            deep = m.where_lt(edge.distance, zero, one, zero)
            if m.any_lt(zero, deep):
                edge = along_edges(p, edge, deep, m.neg(one))
            best = exact_edge(p, edge)
        return best

    @m.func
    def level_part(a: m.lane, inside: m.lane, size: m.lane) -> m.lane:
        """A coordinate of the point of a box along a direction with the component a: `inside`, within the box, where a is zero."""
        level = m.within(inside, m.neg(size), size)
        return m.where_lt(m.magnitude(a), m.fill(real(LEVEL)), level, m.mul(m.sign_of(a), size))

    @m.func
    def closest_of_box(p: BoxByCylinder, n: m.Vec3, distance: m.lane) -> m.Vec3:
        """The point of the box that is closest to the cylinder along n.

        It is behind the point of the cylinder that is farthest against n. Where n is perpendicular to the axis, that is a line, on
        which the place has the coordinates of the face, edge or corner of the box; where n is along the axis, it is a cap.
        """
        zero = m.fill(real(0.0))
        level = m.fill(real(LEVEL))
        least = m.fill(real(SMALLEST))
        along = m.dot(n, p.axis)
        aside = m.fnma3(p.axis, along, n)
        square = m.dot(aside, aside)
        # behind the middle of the line or cap
        x = m.fnma3(aside, m.mul(p.radius, m.rcp(m.sqrt(m.larger(square, least)))), p.centre)
        x = m.fnma3(n, distance, x)
        place = m.neg(m.mul(p.height, m.sign_of(along)))
        corner = m.vec(level_part(n.x, x.x, p.size.x), level_part(n.y, x.y, p.size.y), level_part(n.z, x.z, p.size.z))
        # of the coordinates that the box has on the line
        fixed = m.vec(
            m.where_lt(m.magnitude(n.x), level, zero, p.axis.x),
            m.where_lt(m.magnitude(n.y), level, zero, p.axis.y),
            m.where_lt(m.magnitude(n.z), level, zero, p.axis.z),
        )
        on_line = m.div(m.dot(fixed, m.sub3(corner, x)), m.larger(m.dot(fixed, p.axis), least))
        on_line = m.within(on_line, m.neg(p.height), p.height)
        place = m.where_lt(m.magnitude(along), level, on_line, place)
        x = m.fma3(p.axis, place, x)
        inside = m.vec(
            m.within(x.x, m.neg(p.size.x), p.size.x),
            m.within(x.y, m.neg(p.size.y), p.size.y),
            m.within(x.z, m.neg(p.size.z), p.size.z),
        )
        middle = m.vec(
            level_part(n.x, p.centre.x, p.size.x),
            level_part(n.y, p.centre.y, p.size.y),
            level_part(n.z, p.centre.z, p.size.z),
        )
        return m.where3_lt(square, m.mul(level, level), middle, inside)

    @m.shared
    def box_cylinder(b, t, T, P, L, mem):
        """Up to four points: the corners of the part that the face of the box and the cap or the side of the cylinder share."""
        limit = m.get(mem, L.pair_work + LIMIT, t)
        m.scale_pair(b, t, int(BOX), int(CYLINDER), 0, 0, 0, 0, T, P, L, mem)
        per_unit = m.get(mem, L.pair_work + PER_UNIT, t)
        limit = m.mul(limit, per_unit)
        at = L.pair_work + SHAPES
        axes = m.get9(mem, at + AXES, t)
        size = m.get3(mem, at + SHAPE + EXTENT, t)
        axis = m.column(m.get9(mem, at + SHAPE + AXES, t), 2)
        p = BoxByCylinder(
            m.get3(mem, at + EXTENT, t),
            m.apply_t(m.get3(mem, at + SHAPE + CENTRE, t), axes),
            m.apply_t(axis, axes),
            size.x,
            size.y,
        )
        way = farthest_apart(p, limit)
        if m.any_lt(way.distance, limit):
            first = m.apply(axes, closest_of_box(p, way.n, way.distance))
            unit = m.rcp(per_unit)
            m.put_manifold(
                b, t, m.apply(axes, way.n), way.distance, first, unit, int(BOX), int(CYLINDER), 0, 0, 0, 0, T, P, L, mem
            )

    return {"box_cylinder": box_cylinder}
