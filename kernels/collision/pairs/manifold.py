"""Contact points of two convex shapes whose normal and distance are known.

Both shapes have a patch, a polygon or a line. Corners of the common part of both patches in the plane perpendicular to the normal are
candidates: the ends of the parts of edges of one patch that are inside the other one. Each has the distance of both patches there.
Candidates that are not much farther apart than the closest points of the shapes become contact points: up to four, which are farthest
along four directions of the plane. Faces of hulls have up to eight contact points, see `kernels.collision.pairs.choice`. Corners are
numbered in the axes of the shapes, and directions are fixed to the first shape, so that contact points of shapes at rest stay the same.
"""

import math
import types

import warp as wp
from newton_like.kernels.collision.pairs.choice import (
    CROSSING,
    DEPTH_FACTOR,
    EXACT,
    HALF_FAR,
    exact_distance,
    place_error,
)
from newton_like.kernels.collision.pairs.patches import SHORTEST
from newton_like.kernels.collision.pairs.work import (
    CANDIDATE,
    CANDIDATE_AT,
    CANDIDATES,
    CHOSEN_AT,
    CHOSEN_HERE,
    LINES,
    MOST_NUMBERS,
    NUMBERS,
    PATCH,
    PATCH_AT,
    PATCH_CORNERS,
    POINTS_OF_A_HULL,
    SMALLEST,
)
from newton_like.kernels.collision.plane import ELLIPSOID, FAR, SPHERE

# Candidates are contact points if they are farther apart than the closest points by no more, in units of tolerances.
SLACK = 2.0e-2
# Differences of places below this are too small to change the choice of contact points, in units of tolerances.
TIE = 1.0e-4
# The four directions are at this angle from the plane's axes [rad]. Symmetric shapes have no corners at equal distances along them.
TURN = 0.9
COSINE, SINE = math.cos(TURN), math.sin(TURN)


def manifold_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``put_manifold``."""
    real = m.real
    # Corners on an edge of the other patch are inside it.
    ON_EDGE = 1.0e-5 if real is wp.float32 else 1.0e-9
    EXACT_DISTANCE, PLACE_ERROR = exact_distance(real), place_error(real)
    # by how much the distance of both shapes may be too large, in units of the pair's size
    DISTANCE_ERROR = 4.0e-5 if real is wp.float32 else 2.0e-8

    @m.func
    def frame_of(t, n: m.Vec3, L, mem) -> m.Frame:
        """A frame with the normal n that turns with the first shape: along its x axis if that is not nearly along n, else its y axis."""
        axes = m.get_shape(t, 0, L, mem).axes
        x = m.column(axes, 0)
        c = m.dot(x, n)
        x = m.where3_lt(m.fill(real(0.8)), m.mul(c, c), m.column(axes, 1), x)
        u = m.fnma3(n, m.dot(x, n), x)
        u = m.scale3(u, m.rcp(m.sqrt(m.larger(m.dot(u, u), m.fill(real(SMALLEST))))))
        return m.Frame(n, u, m.cross(n, u))

    @m.func
    def height_of(patch: m.Patch, x: m.lane, y: m.lane) -> m.lane:
        return m.fma(patch.slope_x, x, m.fma(patch.slope_y, y, patch.level))

    @m.struct
    class Gaps:
        """The distance of both shapes; candidates are at least as far apart as `lowest`, and contact points below `near`."""

        distance: m.lane
        lowest: m.lane
        near: m.lane

    @m.func
    def put_candidate_at(
        t, i: int, exists: m.lane, number: m.lane, p: m.Vec3, edge: m.Vec3, s: m.lane, sign: m.lane, other: m.Patch,
        gaps: Gaps, L, mem,
    ):  # fmt: skip
        """Stores the candidate at p + s edge.

        Args:
            number: tells which corner or edge it is at.
            sign: 1 if the edge is of the first shape, -1 if of the second one; the other patch is that of the other shape.
            gaps: distances that candidates may have.
        """
        half = m.fill(real(0.5))
        far = m.fill(real(FAR))
        x = m.fma3(edge, s, p)
        height = height_of(other, x.x, x.y)
        gap = m.mul(sign, m.sub(height, x.z))
        # patches of a hull that is round there are not closer than the shapes
        exists = m.where_lt(gap, gaps.lowest, m.fill(real(0.0)), exists)
        gap = m.larger(gap, gaps.distance)
        gap = m.where_lt(gap, gaps.near, m.where_lt(half, exists, gap, far), far)
        at = L.pair_work + CANDIDATE_AT + CANDIDATE * i
        m.put(mem, at, t, x.x)
        m.put(mem, at + 1, t, x.y)
        m.put(mem, at + 2, t, m.mul(half, m.add(x.z, height)))
        m.put(mem, at + 3, t, gap)
        m.put(mem, at + 4, t, number)

    @m.shared
    def clip_edges(
        t,
        s: int,
        corners: int,
        lines: int,
        own: m.Patch,
        other: m.Patch,
        ends: m.lane,
        cuts: m.lane,
        distance: m.lane,
        L,
        mem,
    ):
        """Stores the candidates on the edges of the patch of shape s.

        Args:
            corners: of this patch.
            lines: of the other one.
            ends: one where corners of this patch are candidates.
            cuts: one where points are that edges of both patches share.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        far = m.fill(real(FAR))
        lowest = m.sub(distance, m.point_tolerance(t, TIE, DISTANCE_ERROR, L, mem))
        gaps = Gaps(distance, lowest, m.add(distance, m.point_tolerance(t, SLACK, PLACE_ERROR, L, mem)))
        shortest = m.point_tolerance(t, CROSSING, PLACE_ERROR, L, mem)
        lines_both = m.mul(own.line, other.line)
        at = L.pair_work + PATCH_AT + PATCH * s
        bounds = L.pair_work + PATCH_AT + PATCH * (1 - s) + LINES
        sign = one
        if s == 1:
            sign = m.neg(one)
        for k in range(corners):
            p = m.get3(mem, at + 3 * k, t)
            q = m.get3(mem, at + 3 * ((k + 1) % corners), t)
            edge = m.sub3(q, p)
            low = m.fill(real(-FAR))
            high = far
            for i in range(lines):
                a = m.get(mem, bounds + 3 * i, t)
                c = m.get(mem, bounds + 3 * i + 1, t)
                room = m.sub(m.get(mem, bounds + 3 * i + 2, t), m.fma(a, p.x, m.mul(c, p.y)))
                scale = m.sqrt(m.fma(a, a, m.mul(c, c)))
                room = m.fma(m.fill(real(ON_EDGE)), scale, room)
                towards = m.fma(a, edge.x, m.mul(c, edge.y))
                # an edge along the line is inside or outside as a whole
                along = m.mul(m.fill(real(1.0e-6)), m.mul(scale, m.larger(m.magnitude(edge.x), m.magnitude(edge.y))))
                inverse = m.rcp(m.where_lt(m.magnitude(towards), m.larger(along, m.fill(real(SMALLEST))), one, towards))
                cut = m.mul(room, inverse)
                up = m.where_lt(along, towards, one, zero)
                down = m.where_lt(towards, m.neg(along), one, zero)
                high = m.where_lt(half, up, m.smaller(high, cut), high)
                low = m.where_lt(half, down, m.larger(low, cut), low)
                outside = m.mul(m.sub(one, m.add(up, down)), m.where_lt(room, zero, one, zero))
                high = m.where_lt(half, outside, m.fill(real(-FAR)), high)
            begins = m.where_lt(zero, low, zero, one)
            finishes = m.where_lt(high, one, zero, one)
            low = m.larger(low, zero)
            high = m.smaller(high, one)
            square = m.fma(edge.x, edge.x, m.mul(edge.y, edge.y))
            exists = m.where_lt(m.fill(real(SHORTEST)), square, one, zero)
            if k > 0:
                # a line has one edge
                exists = m.mul(exists, m.sub(one, own.line))
            exists = m.where_lt(high, low, zero, exists)
            # lines that cross have a closest point
            length = m.mul(m.sub(high, low), m.sqrt(square))
            crossing = m.where_lt(length, shortest, lines_both, zero)
            exists = m.mul(exists, m.sub(one, crossing))
            first = m.mul(exists, m.where_lt(half, begins, ends, cuts))
            # where the edge ends at a corner, that corner belongs to the next one
            last = m.mul(exists, m.where_lt(half, finishes, m.mul(ends, own.line), cuts))
            i = 2 * PATCH_CORNERS * s + 2 * k
            number = m.add(m.get(mem, at + NUMBERS + k, t), m.get(mem, at + NUMBERS + k, t))
            number = m.add(number, m.fill(real(2 * MOST_NUMBERS * s)))
            put_candidate_at(t, i, first, number, p, edge, low, sign, other, gaps, L, mem)
            after = m.add(number, m.fill(real(1.0)))
            put_candidate_at(t, i + 1, last, after, p, edge, high, sign, other, gaps, L, mem)

    @m.func
    def put_candidate_point(
        t, to: int, i: m.lane, exists: m.lane, frame: m.Frame, unit: m.lane, feature: m.lane, L, mem
    ):
        """Stores candidate i as contact point number `to` where it exists."""
        at = L.pair_work + CANDIDATE_AT
        half = m.fill(real(0.5))
        x = m.gather(mem, at, CANDIDATE, i, t)
        y = m.gather(mem, at + 1, CANDIDATE, i, t)
        z = m.gather(mem, at + 2, CANDIDATE, i, t)
        gap = m.gather(mem, at + 3, CANDIDATE, i, t)
        number = m.gather(mem, at + 4, CANDIDATE, i, t)
        far = m.fill(real(FAR))
        distance = m.get(mem, at + CANDIDATE * (CANDIDATES - 1) + 3, t)
        gap = m.where_lt(gap, m.add(distance, m.point_tolerance(t, EXACT, EXACT_DISTANCE, L, mem)), distance, gap)
        gap = m.where_lt(gap, m.fill(real(HALF_FAR)), m.mul(gap, unit), far)
        gap = m.where_lt(half, exists, gap, far)
        place = m.fma3(frame.u, x, m.fma3(frame.v, y, m.scale3(frame.n, z)))
        m.put_pair_point(t, to, m.scale3(place, unit), frame.n, gap, m.add(feature, number), L, mem)

    @m.func
    def choose_points(t, edges: int, second: int, polygon: bool, frame: m.Frame, unit: m.lane, feature: m.lane, L, mem):
        """Stores the contact points, up to eight for a polygon, else up to four. `edges` and `second` are the numbers of edges of both
        patches."""
        one = m.fill(real(1.0))
        c = m.fill(real(COSINE))
        s = m.fill(real(SINE))
        at = L.pair_work + CANDIDATE_AT
        closest = int(CANDIDATES - 1)
        distance = m.get(mem, at + CANDIDATE * closest + 3, t)
        same = m.point_tolerance(t, TIE, PLACE_ERROR, L, mem)
        none = m.Best(m.fill(real(closest)), m.fill(real(-HALF_FAR)))
        b0 = none
        b1 = none
        b2 = none
        b3 = none
        deepest = none
        for k in range(2 * (edges + second)):
            i = m.candidate_of(k, edges)
            gap = m.get(mem, at + CANDIDATE * i + 3, t)
            if m.any_lt(gap, m.fill(real(HALF_FAR))):
                x = m.get(mem, at + CANDIDATE * i, t)
                y = m.get(mem, at + CANDIDATE * i + 1, t)
                number = m.fill(real(i))
                along = m.fma(c, x, m.mul(s, y))
                across = m.fnma(s, x, m.mul(c, y))
                far = m.fill(real(HALF_FAR))
                cost = m.mul(m.fill(real(DEPTH_FACTOR)), m.sub(gap, distance))
                deepest = m.Best(
                    m.where_lt(deepest.score, m.neg(gap), number, deepest.i), m.larger(deepest.score, m.neg(gap))
                )
                cost = m.where_lt(gap, far, cost, m.fill(real(FAR)))
                b0 = m.best_of(b0, number, m.sub(along, cost), same)
                b1 = m.best_of(b1, number, m.sub(across, cost), same)
                b2 = m.best_of(b2, number, m.neg(m.add(along, cost)), same)
                b3 = m.best_of(b3, number, m.neg(m.add(across, cost)), same)
        # where there is no candidate, all numbers are that of the closest point
        if polygon:
            e1 = m.differ(b1.i, b0.i)
            e2 = m.mul(m.differ(b2.i, b0.i), m.differ(b2.i, b1.i))
            e3 = m.mul(m.differ(b3.i, b0.i), m.mul(m.differ(b3.i, b1.i), m.differ(b3.i, b2.i)))
            first = m.Chosen(b0.i, b1.i, b2.i, b3.i, e1, e2, e3)
            m.choose_corners(t, edges, second, first, deepest, L, mem)
            points = int(POINTS_OF_A_HULL)
            for j in range(points):
                candidate = m.get(mem, L.pair_work + CHOSEN_AT + j, t)
                here = m.get(mem, L.pair_work + CHOSEN_HERE + j, t)
                put_candidate_point(t, j, candidate, here, frame, unit, feature, L, mem)
        else:
            # the deepest point is a contact: the closest one of both shapes if no candidate is as deep
            tie = m.point_tolerance(t, EXACT, EXACT_DISTANCE, L, mem)
            least = m.neg(deepest.score)
            shallow = m.smaller(m.gather(mem, at + 3, CANDIDATE, b0.i, t), m.gather(mem, at + 3, CANDIDATE, b1.i, t))
            shallow = m.smaller(shallow, m.gather(mem, at + 3, CANDIDATE, b2.i, t))
            shallow = m.smaller(shallow, m.gather(mem, at + 3, CANDIDATE, b3.i, t))
            i0 = m.where_lt(m.add(least, tie), shallow, deepest.i, b0.i)
            i0 = m.where_lt(m.add(distance, tie), m.smaller(least, shallow), m.fill(real(closest)), i0)
            e1 = m.differ(b1.i, i0)
            e2 = m.mul(m.differ(b2.i, i0), m.differ(b2.i, b1.i))
            e3 = m.mul(m.differ(b3.i, i0), m.mul(m.differ(b3.i, b1.i), m.differ(b3.i, b2.i)))
            chosen = m.Chosen(i0, b1.i, b2.i, b3.i, e1, e2, e3)
            # the corners of a polygon that is not regular may be missed: one may be farthest along two directions
            if m.two_or_three(chosen):
                chosen = m.with_outer_candidate(t, edges, second, chosen, L, mem)
                if m.two_or_three(chosen):
                    chosen = m.with_outer_candidate(t, edges, second, chosen, L, mem)
            put_candidate_point(t, 0, chosen.i0, one, frame, unit, feature, L, mem)
            put_candidate_point(t, 1, chosen.i1, chosen.e1, frame, unit, feature, L, mem)
            put_candidate_point(t, 2, chosen.i2, chosen.e2, frame, unit, feature, L, mem)
            put_candidate_point(t, 3, chosen.i3, chosen.e3, frame, unit, feature, L, mem)

    @m.func
    def is_pointed(kind: int) -> bool:
        """Whether shapes of this kind touch in a single point."""
        pointed = kind == SPHERE
        if kind == ELLIPSOID:
            pointed = True
        return pointed

    @m.shared
    def put_manifold(
        b, t, n: m.Vec3, distance: m.lane, first: m.Vec3, unit: m.lane, kind: int, other: int, hull_a: int, count_a: int,
        hull_b: int, count_b: int, T, P, L, mem,
    ):  # fmt: skip
        """manifold <- the contact points of both shapes.

        Args:
            n: the normal.
            distance: the signed distance, in units.
            first: the closest point of the first shape, in units.
            unit: the unit of length [m].
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        frame = frame_of(t, n, L, mem)
        at = L.pair_work + CANDIDATE_AT + CANDIDATE * (CANDIDATES - 1)
        place = m.to_frame(frame, first)
        m.put(mem, at, t, place.x)
        m.put(mem, at + 1, t, place.y)
        m.put(mem, at + 2, t, m.fma(m.fill(real(0.5)), distance, place.z))
        m.put(mem, at + 3, t, distance)
        m.put(mem, at + 4, t, m.fill(real(4 * MOST_NUMBERS)))
        if is_pointed(kind) or is_pointed(other):
            put_candidate_point(t, 0, m.fill(real(CANDIDATES - 1)), one, frame, unit, zero, L, mem)
        else:
            a = m.put_patch(b, t, 0, kind, hull_a, count_a, frame, T, P, L, mem)
            c = m.put_patch(b, t, 1, other, hull_b, count_b, frame, T, P, L, mem)
            edges = m.corners_of(kind)
            second = m.corners_of(other)
            # of two polygons the corners inside the other one, and points that edges of both share; of a line its part
            open_c = m.sub(one, c.line)
            both = m.sub(one, m.mul(open_c, a.line))
            clip_edges(t, 1, second, edges, c, a, both, both, distance, L, mem)
            line_only = m.mul(a.line, open_c)
            clip_edges(t, 0, edges, second, a, c, open_c, line_only, distance, L, mem)
            feature = m.mul(m.fma(a.face, m.fill(real(8.0)), c.face), m.fill(real(8 * MOST_NUMBERS)))
            choose_points(t, edges, second, m.has_polygon(kind, other), frame, unit, feature, L, mem)

    return locals()
