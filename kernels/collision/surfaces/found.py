"""The contact points of a shape with a surface: which of many points are kept, and which impulses of the step before are theirs."""

import math
import types

from newton_like.kernels.collision.pairs.patches import SHORTEST
from newton_like.kernels.collision.pairs.records import AWAY, DISTANCE, FEATURE, PLACE, POINT, POINTS_ON_SURFACE
from newton_like.kernels.collision.pairs.work import PATCH_AT, PATCH_CORNERS
from newton_like.kernels.collision.plane import FAR

from newton_like.kernels.collision.surfaces.records import (  # isort: skip
    FOUND, MAYBE, MORE, PLACES, ROUND, SCORES, SIDES, SURFACE_AXES, WAYS, WAYS_KNOWN,
)  # fmt: skip

# Points are the same if they are closer than this share of the shape's radius, and if the cosine of the angle of their normals is larger.
NEARBY, ALIKE = 2.0e-2, 0.999
# A point takes the place of one that is farther out by this factor times the difference of their distances, or less.
DEPTH_FACTOR = 20.0
# Differences below this share of the radius are too small to change the choice.
TIE = 1.0e-4
# Points have the direction of the first one if the cosine of the angle of their normals is larger.
SAME_SIDE = 0.7
# The directions in which points are farthest are at this angle from the axes of the shape [rad]: symmetric shapes have no corners at equal
# distances along them.
TURN = 0.9
COSINE, SINE = math.cos(TURN), math.sin(TURN)
DIAGONAL = math.sqrt(0.5)
HALF_FAR = 0.5 * FAR
# Features: the number of a triangle up to TURNS times the features of one triangle.
PER_TRIANGLE, TURNS = 8192.0, 2048.0
PER_PART, PER_TURN = 1.0 / PER_TRIANGLE, 1.0 / TURNS


def found_points(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``clear_found``, ``put_ways``, ``keep_found``, ``hand_found``, ``triangle_feature`` and
    ``match_on_surface``."""
    real = m.real

    @m.func
    def clear_found(t, L, mem):
        """No point is found yet."""
        far = m.fill(real(FAR))
        for i in range(PLACES):
            m.put(mem, L.surface_work + FOUND + POINT * i + DISTANCE, t, far)
            m.put(mem, L.surface_work + SCORES + i, t, m.neg(far))
        m.put(mem, L.surface_work + SIDES, t, m.fill(real(0.0)))
        m.put(mem, L.surface_work + SIDES + 1, t, m.fill(real(0.0)))
        m.put(mem, L.surface_work + WAYS_KNOWN, t, m.fill(real(0.0)))
        m.put(mem, L.surface_work + MAYBE + 1, t, m.fill(real(0.0)))

    @m.func
    def triangle_feature(triangle: m.lane, part: m.lane) -> m.lane:
        """The feature of a part (a number below PER_TRIANGLE) of a triangle."""
        turns = m.floor(m.mul(triangle, m.fill(real(PER_TURN))))
        number = m.fnma(m.fill(real(TURNS)), turns, triangle)
        over = m.floor(m.mul(part, m.fill(real(PER_PART))))
        rest = m.fnma(m.fill(real(PER_TRIANGLE)), over, part)
        return m.add(m.fma(number, m.fill(real(PER_TRIANGLE)), rest), m.fill(real(1.0)))

    @m.func
    def put_where(t, at: int, index: m.lane, where: m.lane, x: m.lane, mem):
        """Stores x in the record of each world's index where `where` is one."""
        old = m.gather(mem, at, POINT, index, t)
        m.scatter(mem, at, POINT, index, t, m.where_lt(m.fill(real(0.5)), where, x, old))

    @m.func
    def offer(
        t: int,
        i: int,
        where: m.lane,
        score: m.lane,
        place: m.Vec3,
        n: m.Vec3,
        distance: m.lane,
        feature: m.lane,
        L,
        mem,
    ):
        """Puts a point in place i where its score is higher than that of the point there by more than a tie."""
        half = m.fill(real(0.5))
        to = L.surface_work + SCORES + i
        old = m.get(mem, to, t)
        tie = m.mul(m.fill(real(TIE)), m.get(mem, L.surface_work + ROUND, t))
        better = m.where_lt(m.add(old, tie), score, where, m.fill(real(0.0)))
        if m.any_lt(half, better):
            at = L.surface_work + FOUND + POINT * i
            m.put(mem, to, t, m.where_lt(half, better, score, old))
            m.put3(mem, at + PLACE, t, m.where3_lt(half, better, place, m.get3(mem, at + PLACE, t)))
            m.put3(mem, at + AWAY, t, m.where3_lt(half, better, n, m.get3(mem, at + AWAY, t)))
            m.put(mem, at + DISTANCE, t, m.where_lt(half, better, distance, m.get(mem, at + DISTANCE, t)))
            m.put(mem, at + FEATURE, t, m.where_lt(half, better, feature, m.get(mem, at + FEATURE, t)))

    @m.shared
    def put_ways(t: int, where: m.lane, n: m.Vec3, L, mem):
        """WAYS <- for each corner of the patch of a hull, about the normal n, the direction in which it is the farthest one: across the
        line through both corners next to it; where `where` is one and no point is found yet."""
        w = L.surface_work + WAYS
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        point = m.fill(real(SHORTEST))
        where = m.mul(where, m.sub(m.fill(real(1.0)), m.get(mem, L.surface_work + SIDES, t)))
        if m.any_lt(zero, where):
            at = L.pair_work + PATCH_AT
            f = m.frame_of(t, n, L, mem)
            # corners that are equal have one next corner; the first round finds where the second one starts
            last = m.get3(mem, at + 3 * (int(PATCH_CORNERS) - 1), t)
            before = last
            corners = int(PATCH_CORNERS)
            for j in range(2 * corners):
                i = j % corners
                p = m.get3(mem, at + 3 * i, t)
                edge = m.sub3(p, last)
                before = m.where3_lt(point, m.fma(edge.x, edge.x, m.mul(edge.y, edge.y)), last, before)
                last = p
                m.put3(mem, w + 3 * i, t, m.where3_lt(half, where, before, m.get3(mem, w + 3 * i, t)))
            c = m.fill(real(COSINE))
            s = m.fill(real(SINE))
            after = m.get3(mem, at, t)
            last = after
            for k in range(2 * corners):
                i = corners - 1 - k % corners
                p = m.get3(mem, at + 3 * i, t)
                edge = m.sub3(p, last)
                after = m.where3_lt(point, m.fma(edge.x, edge.x, m.mul(edge.y, edge.y)), last, after)
                last = p
                if k >= corners:
                    known = m.get3(mem, w + 3 * i, t)
                    edge = m.sub3(after, known)
                    square = m.fma(edge.x, edge.x, m.mul(edge.y, edge.y))
                    inverse = m.rcp(m.sqrt(m.larger(square, point)))
                    # a point or a line has no such direction
                    x = m.where_lt(point, square, m.mul(edge.y, inverse), c)
                    y = m.where_lt(point, square, m.neg(m.mul(edge.x, inverse)), s)
                    way = m.fma3(f.u, x, m.scale3(f.v, y))
                    m.put3(mem, w + 3 * i, t, m.where3_lt(half, where, way, known))
                    turned = m.mul(m.fill(real(DIAGONAL)), m.sub(c, s))
                    s = m.mul(m.fill(real(DIAGONAL)), m.add(c, s))
                    c = turned
            flag = L.surface_work + WAYS_KNOWN
            m.put(mem, flag, t, m.larger(m.get(mem, flag, t), where))

    @m.shared
    def keep_found(t: int, where: m.lane, place: m.Vec3, n: m.Vec3, distance: m.lane, feature: m.lane, L, mem):
        """Adds a point to those that are found, in worlds where `where` is one. Of points with about the normal of the first one those stay
        that are farthest along four directions across it, or along those of ``put_ways``, of others those that are farthest along two
        directions across both normals, and in any case the deepest one."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        begun = m.get(mem, w + SIDES, t)
        new = m.mul(where, m.sub(one, begun))
        if m.any_lt(zero, new):
            f = m.frame_of(t, n, L, mem)
            c = m.fill(real(COSINE))
            s = m.fill(real(SINE))
            u = m.fma3(f.u, c, m.scale3(f.v, s))
            v = m.fma3(f.v, c, m.scale3(f.u, m.neg(s)))
            m.put3(mem, w + SIDES + 2, t, m.where3_lt(half, new, n, m.get3(mem, w + SIDES + 2, t)))
            m.put3(mem, w + SIDES + 5, t, m.where3_lt(half, new, u, m.get3(mem, w + SIDES + 5, t)))
            m.put3(mem, w + SIDES + 8, t, m.where3_lt(half, new, v, m.get3(mem, w + SIDES + 8, t)))
            m.put(mem, w + SIDES, t, m.add(begun, new))
        first = m.get3(mem, w + SIDES + 2, t)
        same = m.where_lt(m.fill(real(SAME_SIDE)), m.dot(n, first), where, zero)
        cost = m.mul(m.fill(real(DEPTH_FACTOR)), distance)
        cornered = m.mul(same, m.get(mem, w + WAYS_KNOWN, t))
        if m.any_lt(zero, cornered):
            corners = int(PATCH_CORNERS)
            for k in range(corners):
                to = int(k)
                if k >= 4:
                    to = k - 4 + MORE
                x = m.dot(m.get3(mem, w + WAYS + 3 * k, t), place)
                offer(t, to, cornered, m.sub(x, cost), place, n, distance, feature, L, mem)
        plain = m.sub(same, cornered)
        if m.any_lt(zero, plain):
            x = m.dot(m.get3(mem, w + SIDES + 5, t), place)
            y = m.dot(m.get3(mem, w + SIDES + 8, t), place)
            offer(t, 0, plain, m.sub(x, cost), place, n, distance, feature, L, mem)
            offer(t, 1, plain, m.sub(y, cost), place, n, distance, feature, L, mem)
            offer(t, 2, plain, m.neg(m.add(x, cost)), place, n, distance, feature, L, mem)
            offer(t, 3, plain, m.neg(m.add(y, cost)), place, n, distance, feature, L, mem)
        other = m.sub(where, same)
        if m.any_lt(zero, other):
            begun = m.get(mem, w + SIDES + 1, t)
            new = m.mul(other, m.sub(one, begun))
            across = m.cross(first, n)
            square = m.dot(across, across)
            across = m.scale3(across, m.rcp(m.sqrt(m.larger(square, m.fill(real(1.0e-6))))))
            across = m.where3_lt(square, m.fill(real(1.0e-6)), m.get3(mem, w + SIDES + 5, t), across)
            across = m.where3_lt(half, new, across, m.get3(mem, w + SIDES + 11, t))
            m.put3(mem, w + SIDES + 11, t, across)
            m.put(mem, w + SIDES + 1, t, m.add(begun, new))
            x = m.dot(across, place)
            offer(t, 4, other, m.sub(x, cost), place, n, distance, feature, L, mem)
            offer(t, 5, other, m.neg(m.add(x, cost)), place, n, distance, feature, L, mem)
        offer(t, PLACES - 1, where, m.neg(distance), place, n, distance, feature, L, mem)

    @m.shared
    def hand_found(t: int, most: int, L, mem):
        """manifold <- the points that were found, up to `most` of them, each once, in world axes, with normals to the surface."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        axes = m.get9(mem, w + SURFACE_AXES, t)
        size = m.mul(m.fill(real(NEARBY)), m.get(mem, w + ROUND, t))
        nearby = m.mul(size, size)
        tie = m.mul(m.fill(real(TIE)), m.get(mem, w + ROUND, t))
        m.clear(t, L.manifold, POINT * most, mem)
        deepest = m.fill(real(FAR))
        for i in range(most):
            m.put(mem, L.manifold + POINT * i + DISTANCE, t, deepest)
        count = zero
        places = int(PLACES)
        for i in range(places):
            at = w + FOUND + POINT * i
            distance = m.get(mem, at + DISTANCE, t)
            there = m.where_lt(distance, m.fill(real(HALF_FAR)), one, zero)
            if most <= POINTS_ON_SURFACE and i >= MORE and i < PLACES - 1:
                there = zero
            if i == PLACES - 1:
                # the deepest one, unless others are as deep
                there = m.where_lt(m.add(distance, tie), deepest, there, zero)
            if m.any_lt(zero, there):
                x = m.get3(mem, at + PLACE, t)
                n = m.get3(mem, at + AWAY, t)
                for j in range(i):
                    known = w + FOUND + POINT * j
                    d = m.sub3(x, m.get3(mem, known + PLACE, t))
                    same = m.where_lt(m.fill(real(ALIKE)), m.dot(n, m.get3(mem, known + AWAY, t)), one, zero)
                    same = m.where_lt(m.dot(d, d), nearby, same, zero)
                    same = m.where_lt(m.get(mem, known + DISTANCE, t), m.fill(real(HALF_FAR)), same, zero)
                    there = m.where_lt(half, same, zero, there)
                there = m.where_lt(count, m.fill(real(most)), there, zero)
                deepest = m.where_lt(half, there, m.smaller(deepest, distance), deepest)
                # in worlds without the point, the last place gets what it has
                to = m.smaller(count, m.fill(real(most - 1)))
                x = m.apply(axes, x)
                n = m.neg3(m.apply(axes, n))
                at_new = L.manifold
                feature = m.get(mem, at + FEATURE, t)
                put_where(t, at_new + PLACE, to, there, x.x, mem)
                put_where(t, at_new + PLACE + 1, to, there, x.y, mem)
                put_where(t, at_new + PLACE + 2, to, there, x.z, mem)
                put_where(t, at_new + AWAY, to, there, n.x, mem)
                put_where(t, at_new + AWAY + 1, to, there, n.y, mem)
                put_where(t, at_new + AWAY + 2, to, there, n.z, mem)
                put_where(t, at_new + DISTANCE, to, there, distance, mem)
                put_where(t, at_new + FEATURE, to, there, feature, mem)
                count = m.add(count, there)

    @m.shared
    def match_on_surface(t: int, p: int, T, L, mem):
        """The impulses of the candidates of pair p <- those that candidates with the same feature had in the step before. A point with a
        new feature takes the impulses of a point whose feature is gone, in the order of both: the shape goes from triangle to triangle."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        first = m.pair_candidate(p, T)
        n = m.pair_candidate(p + 1, T) - first
        rows = T.contact_rows
        old = L.feature + first - T.first_paired
        # from now on the sign of an old feature tells whether its impulses are taken
        for j in range(n):
            feature = m.get(mem, L.manifold + POINT * j + FEATURE, t)
            open_ = m.where_lt(half, feature, one, zero)
            for i in range(rows):
                m.put(mem, L.matched + rows * j + i, t, zero)
            for k in range(n):
                known = m.get(mem, old + k, t)
                miss = m.sub(feature, known)
                same = m.where_lt(m.mul(miss, miss), half, open_, zero)
                for i in range(rows):
                    x = m.get(mem, L.impulse + rows * (first + k) + i, t)
                    at = L.matched + rows * j + i
                    m.put(mem, at, t, m.where_lt(half, same, x, m.get(mem, at, t)))
                m.put(mem, old + k, t, m.where_lt(half, same, m.neg(known), known))
                open_ = m.where_lt(half, same, zero, open_)
            # 1 where the point looks for impulses
            m.put(mem, L.surface_work + FOUND + j, t, open_)
        for j in range(n):
            open_ = m.get(mem, L.surface_work + FOUND + j, t)
            if m.any_lt(zero, open_):
                for k in range(n):
                    known = m.get(mem, old + k, t)
                    free = m.where_lt(half, known, open_, zero)
                    for i in range(rows):
                        x = m.get(mem, L.impulse + rows * (first + k) + i, t)
                        at = L.matched + rows * j + i
                        m.put(mem, at, t, m.where_lt(half, free, x, m.get(mem, at, t)))
                    m.put(mem, old + k, t, m.where_lt(half, free, m.neg(known), known))
                    open_ = m.where_lt(half, free, zero, open_)
        for j in range(n):
            # in worlds where it is not near, the point has no feature, whether or not it is near in another world of the block
            near = m.get(mem, L.near + first + j, t)
            m.put(mem, old + j, t, m.where_lt(near, zero, m.get(mem, L.manifold + POINT * j + FEATURE, t), zero))
            for i in range(rows):
                m.put(mem, L.impulse + rows * (first + j) + i, t, m.get(mem, L.matched + rows * j + i, t))

    return locals()
