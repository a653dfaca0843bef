"""Distances of the capsules of a robot, and their derivatives.

The tree lists ``T.points`` capsules and ``T.result_size`` pairs of them. ``T.point_body`` has, after the three links of
`kernels.robot.relative`, the body of each capsule, and then the two capsules of each pair. ``L.capsules`` has seven numbers a capsule: the
ends of its axis in the frame of its body, and its radius.
"""

import types

from newton_like.kernels.collision.segments import PARALLEL

PAIR = 10  # of the result for a pair: distance, nearest points of both axes, unit vector from the first to the second


def capsule_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``capsule_distances``, ``distance_jacobian``, ``capsule_gaps`` and ``points_of_axes``."""
    real = m.real

    @m.func
    def place_capsules(t, T, L, mem):
        """capsule_axes <- start and direction of the axes of all capsules, in the frame of the reference link."""
        ref = T.point_body[1]
        back = m.get9(mem, L.rot + 9 * ref, t)
        origin = m.get3(mem, L.pos + 3 * ref, t)
        for i in range(T.points):
            k = T.point_body[3 + i]
            r = m.get9(mem, L.rot + 9 * k, t)
            start = m.get3(mem, L.capsules + 7 * i, t)
            end = m.get3(mem, L.capsules + 7 * i + 3, t)
            x = m.sub3(m.apply_plus(r, start, m.get3(mem, L.pos + 3 * k, t)), origin)
            m.put3(mem, L.capsule_axes + 6 * i, t, m.apply_t(x, back))
            m.put3(mem, L.capsule_axes + 6 * i + 3, t, m.apply_t(m.apply(r, m.sub3(end, start)), back))

    @m.func
    def capsule_axis(t, i: int, L, mem) -> m.Segment:
        return m.Segment(m.get3(mem, L.capsule_axes + 6 * i, t), m.get3(mem, L.capsule_axes + 6 * i + 3, t))

    @m.func
    def unit_between(p: m.Vec3, q: m.Vec3, a: m.Vec3, b: m.Vec3) -> m.Vec3:
        """The unit vector from p to q. If they coincide, a unit vector perpendicular to the directions a and b."""
        zero = m.fill(real(0.0))
        d = m.sub3(q, p)
        n = m.cross(a, b)
        aa = m.dot(a, a)
        bb = m.dot(b, b)
        parallel = m.mul(m.fill(real(PARALLEL * PARALLEL)), m.mul(aa, bb))
        longer = m.vec(m.where_lt(aa, bb, b.x, a.x), m.where_lt(aa, bb, b.y, a.y), m.where_lt(aa, bb, b.z, a.z))
        other = m.perpendicular(longer)
        nn = m.dot(n, n)
        n = m.vec(
            m.where_lt(parallel, nn, n.x, other.x),
            m.where_lt(parallel, nn, n.y, other.y),
            m.where_lt(parallel, nn, n.z, other.z),
        )
        dd = m.dot(d, d)
        n = m.vec(m.where_lt(zero, dd, d.x, n.x), m.where_lt(zero, dd, d.y, n.y), m.where_lt(zero, dd, d.z, n.z))
        return m.scale3(n, m.rcp(m.sqrt(m.dot(n, n))))

    @m.func
    def gap(t, x: m.Spatial, first: int, second: int, L, mem) -> m.lane:
        """Distance of the surfaces of two capsules from the nearest points of their axes."""
        d = m.sub3(x.w, x.v)
        radii = m.add(m.get(mem, L.capsules + 7 * first + 6, t), m.get(mem, L.capsules + 7 * second + 6, t))
        return m.sub(m.sqrt(m.dot(d, d)), radii)

    @m.func
    def capsule_distances(t, T, L, mem):
        """pairs <- PAIR numbers for each pair of capsules, in the frame of the reference link."""
        place_capsules(t, T, L, mem)
        for i in range(T.result_size):
            first = T.point_body[3 + T.points + 2 * i]
            second = T.point_body[4 + T.points + 2 * i]
            a = capsule_axis(t, first, L, mem)
            b = capsule_axis(t, second, L, mem)
            x = m.nearest_on_axes(a, b)
            at = L.pairs + PAIR * i
            m.put(mem, at, t, gap(t, x, first, second, L, mem))
            m.put3(mem, at + 1, t, x.v)
            m.put3(mem, at + 4, t, x.w)
            m.put3(mem, at + 7, t, unit_between(x.v, x.w, a.along, b.along))

    @m.func
    def capsule_gaps(t, T, L, mem):
        """pairs <- the distance of each pair of capsules, and nothing else of it; capsule_axes <- their axes."""
        place_capsules(t, T, L, mem)
        for i in range(T.result_size):
            first = T.point_body[3 + T.points + 2 * i]
            second = T.point_body[4 + T.points + 2 * i]
            x = m.nearest_on_axes(capsule_axis(t, first, L, mem), capsule_axis(t, second, L, mem))
            m.put(mem, L.pairs + i, t, gap(t, x, first, second, L, mem))

    @m.func
    def points_of_axes(t, L, mem):
        """pairs <- the nearest points of the two axes in capsule_axes, and the unit vector from the first to the second."""
        a = capsule_axis(t, 0, L, mem)
        b = capsule_axis(t, 1, L, mem)
        x = m.nearest_on_axes(a, b)
        m.put3(mem, L.pairs, t, x.v)
        m.put3(mem, L.pairs + 3, t, x.w)
        m.put3(mem, L.pairs + 6, t, unit_between(x.v, x.w, a.along, b.along))

    @m.func
    def put_distance_columns(t, at: int, leaf: int, other: int, x: m.Vec3, n: m.Vec3, T, L, mem):
        """Components along n of the velocities at x of the dofs up to `leaf` that do not also move `other`."""
        if leaf >= 0:
            for d in range(T.depth[leaf] + 1):
                dof = T.chain[T.chain_at[leaf] + d]
                if m.moves_only(dof, d, other, T) == 1:
                    v = m.velocity_at(m.get6(mem, L.subspace + 6 * dof, t), x)
                    m.put(mem, at + dof, t, m.dot(v, n))

    @m.func
    def distance_jacobian(t, T, L, mem):
        """distance_rows <- the derivatives of all distances with respect to q, a row for each pair: n . (dq2 - dq1) with the nearest
        points q1, q2 on the two bodies and the unit vector n between them."""
        capsule_distances(t, T, L, mem)
        ref = T.point_body[1]
        r = m.get9(mem, L.rot + 9 * ref, t)
        origin = m.get3(mem, L.pos + 3 * ref, t)
        m.clear(t, L.distance_rows, T.result_size * T.columns, mem)
        for i in range(T.result_size):
            one = T.leaf[T.point_body[3 + T.point_body[3 + T.points + 2 * i]]]
            two = T.leaf[T.point_body[3 + T.point_body[4 + T.points + 2 * i]]]
            at = L.pairs + PAIR * i
            n = m.apply(r, m.get3(mem, at + 7, t))
            p = m.apply_plus(r, m.get3(mem, at + 1, t), origin)
            q = m.apply_plus(r, m.get3(mem, at + 4, t), origin)
            to = L.distance_rows + T.columns * i
            put_distance_columns(t, to, two, one, q, n, T, L, mem)
            put_distance_columns(t, to, one, two, p, m.neg3(n), T, L, mem)

    return locals()
