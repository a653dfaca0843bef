"""Which candidates of two patches become contact points.

Candidates that are farthest along four directions come first. Corners between these may be missed: those that are farthest outside of the
polygon of the points before come next, up to four points of all shapes, and up to eight of hulls.

A body tips over a corner that is left out, until the corner is deeper than the others and becomes a contact point. Pushed out, it is left
out again: the body rocks. Faces of hulls with up to eight corners have no such corners.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.patches import OUTSIDE, SHORTEST, WIDTH
from newton_like.kernels.collision.pairs.work import (
    CANDIDATE,
    CANDIDATE_AT,
    CANDIDATES,
    CHOSEN_AT,
    CHOSEN_HERE,
    FINE,
    PATCH_CORNERS,
    POINTS_OF_A_HULL,
    RING_AT,
)
from newton_like.kernels.collision.plane import BOX, ELLIPSOID, FAR, HULL

# A candidate takes the place of one that is farther out by this factor times the difference of their distances, or less.
DEPTH_FACTOR = 20.0
HALF_FAR = 0.5 * FAR
# Numbers of candidates are below this, and that of the closest point is above.
LAST_BUT_HALF = CANDIDATES - 1.5
# Numbers of contact points are below this where places are free.
FULL = POINTS_OF_A_HULL - 0.5
# A corner of a polygon that is outside of two or three chosen ones by more than this share of their distances is a further contact point.
OUTER = 2.0e-2
# Two lines are parallel if the part of one that is along the other is longer, in units of tolerances.
CROSSING = 10.0 * WIDTH
# Candidates are as deep as the closest point if they are less deep by no more, in units of tolerances.
EXACT = 1.0e-5


def exact_distance(real) -> float:
    """The same in units of the pair's size."""
    return 1.0e-5 if real is wp.float32 else 1.0e-9


def place_error(real) -> float:
    """The rounding error of a place, in units of the pair's size."""
    return 1.0e-6 if real is wp.float32 else 1.0e-14


def choice_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``choose_corners``, ``with_outer_candidate`` and what they share with ``put_manifold``."""
    real = m.real
    EXACT_DISTANCE, PLACE_ERROR = exact_distance(real), place_error(real)

    @m.func
    def point_tolerance(t, share: float, least: float, L, mem) -> m.lane:
        """A number in units of tolerances, but at least another one in units of the pair's size."""
        return m.larger(m.mul(m.fill(real(share)), m.get(mem, L.pair_work + FINE, t)), m.fill(real(least)))

    @m.struct
    class Best:
        """The number and the score of a candidate."""

        i: m.lane
        score: m.lane

    @m.func
    def best_of(old: Best, i: m.lane, score: m.lane, tie: m.lane) -> Best:
        """The candidate i if its score is higher by more than a tie."""
        least = m.add(old.score, tie)
        return Best(m.where_lt(least, score, i, old.i), m.where_lt(least, score, score, old.score))

    @m.func
    def differ(a: m.lane, c: m.lane) -> m.lane:
        """One where two integers differ, else zero."""
        return m.where_lt(m.fill(real(0.5)), m.magnitude(m.sub(a, c)), m.fill(real(1.0)), m.fill(real(0.0)))

    @m.func
    def candidate_of(k: int, edges: int) -> int:
        """The number of candidate k of those of both patches, of which the first has so many edges."""
        i = int(k)
        if k >= 2 * edges:
            i = k - 2 * edges + 2 * PATCH_CORNERS
        return i

    @m.struct
    class Chosen:
        """The numbers of four candidates, and one where the second, third and fourth of them exist, else zero."""

        i0: m.lane
        i1: m.lane
        i2: m.lane
        i3: m.lane
        e1: m.lane
        e2: m.lane
        e3: m.lane

    @m.func
    def beyond(x: m.lane, y: m.lane, px: m.lane, py: m.lane, qx: m.lane, qy: m.lane, side: m.lane) -> m.lane:
        """How far (x, y) is on the right side of the line from p to q, on the left one where `side` is -1. Zero for a point."""
        a = m.sub(qx, px)
        c = m.sub(qy, py)
        square = m.fma(a, a, m.mul(c, c))
        inverse = m.rcp(m.sqrt(m.larger(square, m.fill(real(SHORTEST)))))
        return m.mul(m.mul(side, inverse), m.fnma(a, m.sub(y, py), m.mul(c, m.sub(x, px))))

    @m.shared
    def with_outer_candidate(t, edges: int, second: int, old: Chosen, L, mem) -> Chosen:
        """Two or three chosen candidates, and the one that is farthest outside of their line or triangle. One or four stay as they are."""
        half = m.fill(real(0.5))
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        at = L.pair_work + CANDIDATE_AT
        closest = int(CANDIDATES - 1)
        number = m.add(old.e1, m.add(old.e2, old.e3))
        # of two, the second one counts twice
        p = m.where_lt(half, old.e1, old.i1, m.where_lt(half, old.e2, old.i2, old.i3))
        q = m.where_lt(half, old.e3, old.i3, m.where_lt(half, old.e2, old.i2, old.i1))
        ax = m.gather(mem, at, CANDIDATE, old.i0, t)
        ay = m.gather(mem, at + 1, CANDIDATE, old.i0, t)
        px = m.gather(mem, at, CANDIDATE, p, t)
        py = m.gather(mem, at + 1, CANDIDATE, p, t)
        qx = m.gather(mem, at, CANDIDATE, q, t)
        qy = m.gather(mem, at + 1, CANDIDATE, q, t)
        turn = m.fnma(m.sub(py, ay), m.sub(qx, ax), m.mul(m.sub(px, ax), m.sub(qy, ay)))
        side = m.where_lt(turn, zero, m.fill(real(-1.0)), one)
        length = m.larger(m.magnitude(m.sub(px, ax)), m.magnitude(m.sub(py, ay)))
        length = m.larger(length, m.larger(m.magnitude(m.sub(qx, ax)), m.magnitude(m.sub(qy, ay))))
        least = m.fma(m.fill(real(OUTER)), length, point_tolerance(t, CROSSING, PLACE_ERROR, L, mem))
        distance = m.get(mem, at + CANDIDATE * closest + 3, t)
        best = Best(m.fill(real(closest)), least)
        for k in range(2 * (edges + second)):
            i = candidate_of(k, edges)
            gap = m.get(mem, at + CANDIDATE * i + 3, t)
            if m.any_lt(gap, m.fill(real(HALF_FAR))):
                x = m.get(mem, at + CANDIDATE * i, t)
                y = m.get(mem, at + CANDIDATE * i + 1, t)
                out = m.larger(beyond(x, y, ax, ay, px, py, side), beyond(x, y, px, py, qx, qy, side))
                out = m.larger(out, beyond(x, y, qx, qy, ax, ay, side))
                cost = m.mul(m.fill(real(DEPTH_FACTOR)), m.sub(gap, distance))
                score = m.where_lt(gap, m.fill(real(HALF_FAR)), m.sub(out, cost), m.fill(real(-FAR)))
                best = best_of(best, m.fill(real(i)), score, zero)
        found = m.where_lt(m.fill(real(LAST_BUT_HALF)), best.i, zero, one)
        found = m.mul(found, m.where_lt(half, number, one, zero))
        # into the first place that is free
        first = m.mul(found, m.sub(one, old.e1))
        then = m.mul(found, m.mul(old.e1, m.sub(one, old.e2)))
        last = m.mul(found, m.mul(old.e1, m.mul(old.e2, m.sub(one, old.e3))))
        return Chosen(
            old.i0,
            m.where_lt(half, first, best.i, old.i1),
            m.where_lt(half, then, best.i, old.i2),
            m.where_lt(half, last, best.i, old.i3),
            m.larger(old.e1, first),
            m.larger(old.e2, then),
            m.larger(old.e3, last),
        )

    @m.func
    def two_or_three(chosen: Chosen) -> bool:
        """Whether some lane has two or three candidates."""
        half = m.fill(real(0.5))
        number = m.add(chosen.e1, m.add(chosen.e2, chosen.e3))
        return m.any_lt(m.where_lt(half, number, number, m.fill(real(3.0))), m.fill(real(2.5)))

    @m.struct
    class Side:
        """The line a x + c y = offset through two points, with a unit normal to the right of the way from the first one to the second one.
        All numbers are zero if the points are the same."""

        a: m.lane
        c: m.lane
        offset: m.lane

    @m.func
    def side_of(t, i: m.lane, j: m.lane, L, mem) -> Side:
        """The line through candidates i and j."""
        at = L.pair_work + CANDIDATE_AT
        x = m.gather(mem, at, CANDIDATE, i, t)
        y = m.gather(mem, at + 1, CANDIDATE, i, t)
        a = m.sub(m.gather(mem, at + 1, CANDIDATE, j, t), y)
        c = m.sub(x, m.gather(mem, at, CANDIDATE, j, t))
        square = m.fma(a, a, m.mul(c, c))
        point = m.fill(real(SHORTEST))
        inverse = m.rcp(m.sqrt(m.larger(square, point)))
        inverse = m.where_lt(point, square, inverse, m.fill(real(0.0)))
        a = m.mul(a, inverse)
        c = m.mul(c, inverse)
        return Side(a, c, m.fma(a, x, m.mul(c, y)))

    @m.func
    def outside(side: Side, x: m.lane, y: m.lane) -> m.lane:
        return m.fma(side.a, x, m.fma(side.c, y, m.neg(side.offset)))

    @m.func
    def put_chosen(t, j: int, i: m.lane, here: m.lane, L, mem):
        """Contact point j is candidate i where `here` is one, else there is none."""
        m.put(mem, L.pair_work + CHOSEN_AT + j, t, i)
        m.put(mem, L.pair_work + CHOSEN_HERE + j, t, here)

    @m.func
    def put_farther(t, j: int, i: m.lane, before: m.lane, other: m.lane, L, mem) -> m.lane:
        """Contact point j is candidate i, of a side that starts at candidate `before`, where there is one that differs from another one.
        Returns one there, else zero."""
        here = m.where_lt(m.fill(real(LAST_BUT_HALF)), i, m.fill(real(0.0)), differ(i, other))
        put_chosen(t, j, i, here, L, mem)
        m.put(mem, L.pair_work + RING_AT + j, t, m.where_lt(m.fill(real(0.5)), here, i, before))
        return here

    @m.func
    def choose_outside_ring(t, edges: int, second: int, wanted: m.lane, least: m.lane, distance: m.lane, L, mem):
        """Gives free places, where `wanted` is one, to the candidates that are farthest outside of the sides of the ring."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        ring = L.pair_work + RING_AT
        points = int(POINTS_OF_A_HULL)
        for edge in range(points):
            side = side_of(t, m.get(mem, ring + edge, t), m.get(mem, ring + (edge + 1) % points, t), L, mem)
            best = Best(m.fill(real(CANDIDATES - 1)), least)
            for k in range(2 * (edges + second)):
                i = candidate_of(k, edges)
                at = L.pair_work + CANDIDATE_AT + CANDIDATE * i
                gap = m.get(mem, at + 3, t)
                cost = m.mul(m.fill(real(DEPTH_FACTOR)), m.sub(gap, distance))
                out = m.sub(outside(side, m.get(mem, at, t), m.get(mem, at + 1, t)), cost)
                best = best_of(best, m.fill(real(i)), out, zero)
            found = m.where_lt(m.fill(real(LAST_BUT_HALF)), best.i, zero, wanted)
            if m.any_lt(zero, found):
                for j in range(points):
                    old = m.get(mem, L.pair_work + CHOSEN_AT + j, t)
                    here = m.get(mem, L.pair_work + CHOSEN_HERE + j, t)
                    # a candidate may be outside of two sides
                    known = m.mul(here, m.sub(one, differ(old, best.i)))
                    found = m.where_lt(half, known, zero, found)
                    free = m.mul(found, m.sub(one, here))
                    put_chosen(t, j, m.where_lt(half, free, best.i, old), m.larger(here, free), L, mem)
                    found = m.sub(found, free)

    @m.func
    def choose_deepest(t, deepest: Best, distance: m.lane, L, mem):
        """Makes the deepest candidate a contact point if it is deeper than all of these, or the closest point if it is deeper than all
        candidates: in a free place, or in that of the least deep point."""
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        far = m.fill(real(FAR))
        lowest = far
        highest = m.neg(far)
        place = zero
        points = int(POINTS_OF_A_HULL)
        for j in range(points):
            here = m.get(mem, L.pair_work + CHOSEN_HERE + j, t)
            gap = m.gather(
                mem, L.pair_work + CANDIDATE_AT + 3, CANDIDATE, m.get(mem, L.pair_work + CHOSEN_AT + j, t), t
            )
            gap = m.where_lt(half, here, gap, far)
            lowest = m.smaller(lowest, gap)
            place = m.where_lt(highest, gap, m.fill(real(j)), place)
            highest = m.larger(highest, gap)
        tie = point_tolerance(t, EXACT, EXACT_DISTANCE, L, mem)
        least = m.neg(deepest.score)
        new = m.where_lt(m.add(least, tie), lowest, deepest.i, m.fill(real(-1.0)))
        new = m.where_lt(m.add(distance, tie), m.smaller(least, lowest), m.fill(real(CANDIDATES - 1)), new)
        if m.any_lt(m.neg(half), new):
            for k in range(points):
                taken = m.where_lt(m.magnitude(m.sub(place, m.fill(real(k)))), half, m.fill(real(1.0)), zero)
                taken = m.where_lt(new, zero, zero, taken)
                old = m.get(mem, L.pair_work + CHOSEN_AT + k, t)
                known = m.get(mem, L.pair_work + CHOSEN_HERE + k, t)
                put_chosen(t, k, m.where_lt(half, taken, new, old), m.larger(taken, known), L, mem)

    @m.shared
    def choose_corners(t, edges: int, second: int, first: Chosen, deepest: Best, L, mem):
        """Chooses up to eight candidates, which go round a polygon.

        Args:
            first: those that are farthest along the four directions.
            deepest: the deepest candidate.
        """
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        at = L.pair_work + CANDIDATE_AT
        distance = m.get(mem, at + CANDIDATE * (CANDIDATES - 1) + 3, t)
        wide = m.sub(m.gather(mem, at, CANDIDATE, first.i0, t), m.gather(mem, at, CANDIDATE, first.i2, t))
        high = m.sub(m.gather(mem, at + 1, CANDIDATE, first.i0, t), m.gather(mem, at + 1, CANDIDATE, first.i2, t))
        length = m.larger(m.magnitude(wide), m.magnitude(high))
        wide = m.sub(m.gather(mem, at, CANDIDATE, first.i1, t), m.gather(mem, at, CANDIDATE, first.i3, t))
        high = m.sub(m.gather(mem, at + 1, CANDIDATE, first.i1, t), m.gather(mem, at + 1, CANDIDATE, first.i3, t))
        length = m.larger(length, m.larger(m.magnitude(wide), m.magnitude(high)))
        least = m.fma(m.fill(real(OUTSIDE)), length, m.fill(real(EXACT_DISTANCE)))
        s0 = side_of(t, first.i0, first.i1, L, mem)
        s1 = side_of(t, first.i1, first.i2, L, mem)
        s2 = side_of(t, first.i2, first.i3, L, mem)
        s3 = side_of(t, first.i3, first.i0, L, mem)
        b0 = Best(m.fill(real(CANDIDATES - 1)), least)
        b1 = b0
        b2 = b0
        b3 = b0
        number = zero
        for k in range(2 * (edges + second)):
            i = candidate_of(k, edges)
            gap = m.get(mem, at + CANDIDATE * i + 3, t)
            if m.any_lt(gap, m.fill(real(HALF_FAR))):
                x = m.get(mem, at + CANDIDATE * i, t)
                y = m.get(mem, at + CANDIDATE * i + 1, t)
                cost = m.mul(m.fill(real(DEPTH_FACTOR)), m.sub(gap, distance))
                number = m.add(number, m.where_lt(gap, m.fill(real(HALF_FAR)), one, zero))
                b0 = best_of(b0, m.fill(real(i)), m.sub(outside(s0, x, y), cost), zero)
                b1 = best_of(b1, m.fill(real(i)), m.sub(outside(s1, x, y), cost), zero)
                b2 = best_of(b2, m.fill(real(i)), m.sub(outside(s2, x, y), cost), zero)
                b3 = best_of(b3, m.fill(real(i)), m.sub(outside(s3, x, y), cost), zero)
        ring = L.pair_work + RING_AT
        m.put(mem, ring, t, first.i0)
        m.put(mem, ring + 2, t, first.i1)
        m.put(mem, ring + 4, t, first.i2)
        m.put(mem, ring + 6, t, first.i3)
        put_chosen(t, 0, first.i0, one, L, mem)
        put_chosen(t, 2, first.i1, first.e1, L, mem)
        put_chosen(t, 4, first.i2, first.e2, L, mem)
        put_chosen(t, 6, first.i3, first.e3, L, mem)
        more = put_farther(t, 1, b0.i, first.i0, b3.i, L, mem)
        more = m.add(more, put_farther(t, 3, b1.i, first.i1, b0.i, L, mem))
        more = m.add(more, put_farther(t, 5, b2.i, first.i2, b1.i, L, mem))
        more = m.add(more, put_farther(t, 7, b3.i, first.i3, b2.i, L, mem))
        known = m.add(m.add(m.add(first.e1, first.e2), first.e3), m.add(one, more))
        left = m.where_lt(m.add(known, m.fill(real(0.5))), number, more, zero)
        left = m.where_lt(known, m.fill(real(FULL)), left, zero)
        if m.any_lt(zero, left):
            wanted = m.smaller(left, one)
            choose_outside_ring(t, edges, second, wanted, least, distance, L, mem)
        choose_deepest(t, deepest, distance, L, mem)

    @m.func
    def has_polygon(kind: int, other: int) -> bool:
        """Whether shapes of these kinds, one of them a hull, may have more than four contact points."""
        hull = kind == HULL
        if other == HULL:
            if kind >= BOX:
                if kind != ELLIPSOID:
                    hull = True
        return hull

    return locals()
