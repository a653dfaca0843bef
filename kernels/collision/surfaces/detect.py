"""Shapes and surfaces (height fields and triangle meshes on no body) in the step: which are near in some world of a block, and their
contact points as candidates of the solver. Pairs with surfaces are the last ones of a cluster; the moving shape is the first of the two."""

import types

import warp as wp
from newton_like.kernels.collision.plane import CAPSULE, FAR

from newton_like.kernels.collision.pairs.records import (  # isort: skip
    AXES, BOUND, BOX_AXES, BOX_HALF, BOX_MIDDLE, CENTRE, EXTENT, REACH, SHAPE_PLACE,
)  # fmt: skip
from newton_like.kernels.collision.surfaces.records import (  # isort: skip
    BEHIND, BEHIND_NUMBERS, FACE, FACTORS, FIELD, FRONT, HIGH, INNER, LOW, MIDDLE, NEXT, ROUND, STEP_X, STEP_Y, SUNK, SURFACE_AXES,
    WITHIN,
)  # fmt: skip
from newton_like.kernels.tree import ROTATION, SIZE

CELLS_AHEAD = 16.0
"""Contacts of a fast shape with a height field are looked for within its own size and so many cells."""


def surface_detection(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``find_pairs_and_surfaces`` and ``look_at_pairs_and_surfaces``."""
    real = m.real

    @m.func
    def reach_of_pair(b, t, p: int, T, P, L, mem) -> m.lane:
        """How far from each other both shapes may be; far below zero where they may not touch."""
        first = L.shape_place + SHAPE_PLACE * m.pair_one(p, T)
        second = L.shape_place + SHAPE_PLACE * m.pair_two(p, T)
        return m.add(m.add(m.get(mem, first + REACH, t), m.get(mem, second + REACH, t)), m.pair_param(P, b, p))

    @m.func
    def step_onto_surface(b, t, p: int, T, P, L, mem):
        """Stores where the shape is in the axes of the surface."""
        w = L.surface_work
        one = m.pair_one(p, T)
        two = m.pair_two(p, T)
        r = T.colliders + two
        axes = m.quat_to_matrix(m.collider_quat(P, b, r, ROTATION))
        d = m.neg3(m.centre_to_centre(t, one, two, T, L, mem))
        m.put9(mem, w + SURFACE_AXES, t, axes)
        m.put3(mem, w + FACTORS, t, m.collider_vec(P, b, r, SIZE))
        m.put3(mem, w + MIDDLE, t, m.apply_t(d, axes))
        m.put(mem, w + ROUND, t, m.get(mem, L.shape_place + SHAPE_PLACE * one + BOUND, t))

    @m.func
    def field_is_near(b, t, p: int, at: int, T, P, L, mem) -> bool:
        """Whether the bounding sphere of the shape is near a height field, or below it, in some world."""
        w = L.surface_work
        f = m.get3(mem, w + FACTORS, t)
        x = m.get3(mem, w + MIDDLE, t)
        zero = m.fill(real(0.0))
        reach = reach_of_pair(b, t, p, T, P, L, mem)
        cell = m.larger(
            m.mul(m.magnitude(f.x), m.fill(T.surface_table[at + STEP_X])),
            m.mul(m.magnitude(f.y), m.fill(T.surface_table[at + STEP_Y])),
        )
        reach = m.smaller(reach, m.fma(m.fill(real(CELLS_AHEAD)), cell, m.get(mem, w + ROUND, t)))
        m.put(mem, w + WITHIN, t, reach)
        size = m.add(m.get(mem, w + ROUND, t), reach)
        rx = m.div(size, m.magnitude(f.x))
        ry = m.div(size, m.magnitude(f.y))
        top = m.field_height_within(at, m.div(x.x, f.x), m.div(x.y, f.y), rx, ry, T)
        lowest = m.sub(m.div(x.z, f.z), m.div(size, m.magnitude(f.z)))
        return m.any_lt(m.where_lt(m.larger(size, reach), zero, m.fill(real(FAR)), lowest), top)

    @m.func
    def box_onto_surface(b, t, p: int, T, P, L, mem):
        """Stores the box about the shape, in numbers of the table; it is empty where the two may not touch."""
        w = L.surface_work
        one = m.pair_one(p, T)
        m.know_box_of(b, t, one, T, P, L, mem)
        at = L.shape_place + SHAPE_PLACE * one
        axes = m.get9(mem, w + SURFACE_AXES, t)
        own = m.get9(mem, at + BOX_AXES, t)
        half = m.get3(mem, at + BOX_HALF, t)
        x = m.apply_t(m.column(own, 0), axes)
        y = m.apply_t(m.column(own, 1), axes)
        z = m.apply_t(m.column(own, 2), axes)
        inner = m.apply_t(m.get3(mem, at + BOX_MIDDLE, t), axes)
        m.put3(mem, w + INNER, t, inner)
        middle = m.add3(m.get3(mem, w + MIDDLE, t), inner)
        reach = m.get(mem, w + WITHIN, t)
        f = m.get3(mem, w + FACTORS, t)
        sx = m.fma(half.x, m.magnitude(x.x), m.fma(half.y, m.magnitude(y.x), m.fma(half.z, m.magnitude(z.x), reach)))
        sy = m.fma(half.x, m.magnitude(x.y), m.fma(half.y, m.magnitude(y.y), m.fma(half.z, m.magnitude(z.y), reach)))
        sz = m.fma(half.x, m.magnitude(x.z), m.fma(half.y, m.magnitude(y.z), m.fma(half.z, m.magnitude(z.z), reach)))
        # worlds in which the two may not touch have a box far away
        gone = m.where_lt(reach, m.neg(m.get(mem, w + ROUND, t)), m.fill(real(FAR)), m.fill(real(0.0)))
        c = m.vec(m.div(middle.x, f.x), m.div(middle.y, f.y), m.div(middle.z, f.z))
        s = m.vec(m.div(sx, m.magnitude(f.x)), m.div(sy, m.magnitude(f.y)), m.div(sz, m.magnitude(f.z)))
        g = m.vec(gone, gone, gone)
        m.put3(mem, w + LOW, t, m.add3(g, m.sub3(c, s)))
        m.put3(mem, w + HIGH, t, m.add3(g, m.add3(c, s)))
        m.put3(mem, L.pair_shapes + CENTRE, t, m.zero3())
        turned = m.Mat33(m.vec(x.x, y.x, z.x), m.vec(x.y, y.y, z.y), m.vec(x.z, y.z, z.z))
        m.put9(mem, L.pair_shapes + AXES, t, turned)
        m.put3(mem, L.pair_shapes + EXTENT, t, m.collider_vec(P, b, T.colliders + one, SIZE))

    @m.func
    def ball_below(t, at: int, i: int, x: m.Vec3, radius: m.lane, L, mem, T):
        """SUNK <- one where the centre x of ball i is below a height field; its contact is then with the triangle straight above."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        sunk = m.field_below(t, at, x, L, mem, T)
        if m.any_lt(zero, sunk):
            m.load_of_field(t, at, 0, L, mem, T)
            m.put_facing(t, L, mem)
            n = m.get3(mem, w + FACE, t)
            height = m.dot(n, m.sub3(x, m.get3(mem, w, t)))
            sunk = m.where_lt(height, zero, sunk, zero)
            if m.any_lt(zero, sunk):
                m.keep_ball(t, sunk, x, n, height, radius, m.fill(real(i)), L, mem)
        m.put(mem, w + SUNK + i, t, sunk)

    @m.shared
    def round_on_surface(t: int, kind: int, at: int, mesh: int, L, mem, T):
        """The contacts of a sphere or a capsule."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        size = m.get3(mem, L.pair_shapes + EXTENT, t)
        axis = m.column(m.get9(mem, L.pair_shapes + AXES, t), 2)
        end = m.zero3()
        balls = int(1)
        if kind == CAPSULE:
            end = m.scale3(axis, size.y)
            balls = 2
        m.put(mem, w + SUNK, t, zero)
        m.put(mem, w + SUNK + 1, t, zero)
        if mesh != 0:
            m.clear(t, w + BEHIND, BEHIND_NUMBERS, mem)
            m.put(mem, w + BEHIND, t, m.fill(real(FAR)))
            m.put(mem, w + FRONT, t, m.fill(real(FAR)))
            m.open_mesh(t, at, L, mem, T)
        else:
            ball_below(t, at, 0, end, size.x, L, mem, T)
            if balls == 2:
                ball_below(t, at, 1, m.neg3(end), size.x, L, mem, T)
            m.open_field(t, at, L, mem, T)
        m.next_triangle(t, at, mesh, L, mem, T)
        minus = m.fill(real(-1.0))
        while m.any_lt(minus, m.get(mem, w + NEXT, t)):
            m.load_triangle(t, at, mesh, L, mem, T)
            here = m.where_lt(minus, m.get(mem, w + NEXT, t), one, zero)
            # a ball that is too high above the plane of the triangle does not touch it, nor does an axis between two such balls
            n = m.get3(mem, w + FACE, t)
            level = m.dot(n, m.get3(mem, w, t))
            along = m.magnitude(m.dot(n, end))
            low = m.sub(m.neg(m.add(level, along)), m.add(size.x, m.get(mem, w + WITHIN, t)))
            here = m.where_lt(low, zero, here, zero)
            if m.any_lt(zero, here):
                above = m.mul(here, m.sub(one, m.get(mem, w + SUNK, t)))
                m.ball_on_triangle(t, above, end, size.x, 0, at, mesh, L, mem, T)
                if balls == 2:
                    above = m.mul(here, m.sub(one, m.get(mem, w + SUNK + 1, t)))
                    m.ball_on_triangle(t, above, m.neg3(end), size.x, 1, at, mesh, L, mem, T)
                    m.axis_on_triangle(t, here, axis, size.x, size.y, at, mesh, L, mem, T)
                m.empty_unsure(t, at, mesh, L, mem, T)
            m.next_triangle(t, at, mesh, L, mem, T)
        if mesh != 0:
            m.keep_behind(t, size.x, L, mem)
        m.decide_unsure(t, zero, at, mesh, L, mem, T)

    @m.shared
    def detect_on_surface(b, t, p: int, dt: m.lane, T, P, L, mem):
        """The candidates of pair p <- its contact points."""
        one = m.pair_one(p, T)
        two = m.pair_two(p, T)
        at = m.shape_hull_at(two, T)
        kind = m.shape_kind(one, T)
        mesh = int(1)
        if m.shape_kind(two, T) == FIELD:
            mesh = 0
        box_onto_surface(b, t, p, T, P, L, mem)
        m.clear_found(t, L, mem)
        if kind <= CAPSULE:
            round_on_surface(t, kind, at, mesh, L, mem, T)
        else:
            m.convex_on_surface(b, t, kind, m.shape_hull_at(one, T), m.shape_hull_count(one, T), at, mesh, T, P, L, mem)
        m.hand_found(t, m.pair_candidate(p + 1, T) - m.pair_candidate(p, T), L, mem)
        m.put_pair_candidates(b, t, p, dt, T, P, L, mem)

    @m.func
    def surface_is_near(b, t, p: int, T, P, L, mem) -> bool:
        two = m.pair_two(p, T)
        step_onto_surface(b, t, p, T, P, L, mem)
        near = bool(True)
        if m.shape_kind(two, T) == FIELD:
            near = field_is_near(b, t, p, m.shape_hull_at(two, T), T, P, L, mem)
        else:
            reach = reach_of_pair(b, t, p, T, P, L, mem)
            m.put(mem, L.surface_work + WITHIN, t, reach)
            x = m.get3(mem, L.surface_work + MIDDLE, t)
            bound = m.add(m.get(mem, L.surface_work + ROUND, t), reach)
            bound = m.add(bound, m.get(mem, L.shape_place + SHAPE_PLACE * two + BOUND, t))
            bound = m.larger(bound, m.fill(real(0.0)))
            near = m.any_lt(m.dot(x, x), m.mul(bound, bound))
        return near

    @m.func
    def find_pairs_and_surfaces(b, t, n: int, dt: m.lane, T, P, L, mem, active: wp.array2d[int]) -> int:
        """``find_pairs`` of a cluster that may touch surfaces: also the candidates of these."""
        n = m.find_pairs(b, t, n, dt, T, P, L, mem, active)
        for p in range(T.pairs - T.surface_pairs, T.pairs):
            if surface_is_near(b, t, p, T, P, L, mem):
                detect_on_surface(b, t, p, dt, T, P, L, mem)
                m.match_on_surface(t, p, T, L, mem)
                m.turn_to_rows(t, p, T, L, mem)
                n = m.list_near(t, p, n, T, L, mem, active)
        return n

    @m.func
    def look_at_pairs_and_surfaces(b, t, dt: m.lane, T, P, L, mem):
        """``look_at_pairs`` of a cluster that may touch surfaces: also the candidates of these."""
        m.look_at_pairs(b, t, dt, T, P, L, mem)
        for p in range(T.pairs - T.surface_pairs, T.pairs):
            if surface_is_near(b, t, p, T, P, L, mem):
                detect_on_surface(b, t, p, dt, T, P, L, mem)
            else:
                for c in range(m.pair_candidate(p, T), m.pair_candidate(p + 1, T)):
                    m.put(mem, L.near + c, t, m.fill(real(FAR)))

    return locals()
