"""Pairs of shapes of a cluster in the step: which are near in some world of a block, and their contact points as candidates of the solver.

A shape has a place and a bound about it: the radius of its bounding sphere with margin and gap, and how far its points move in two time
steps. The narrow phase runs for pairs whose bounds overlap in some world, and whose boxes may meet: shapes that pass by each other do not
touch, however fast they are. Contacts of successive steps are matched by their features, so
that the impulses of a contact stay with it when the order of the points changes. Between steps, impulses of pairs are vectors in world
axes, because the normal of a pair turns.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import (
    AWAY,
    AXES,
    BOUND,
    BOX_AXES,
    BOX_KNOWN,
    CENTRE,
    DISTANCE,
    EXTENT,
    FEATURE,
    PLACE,
    POINT,
    REACH,
    SHAPE,
    SHAPE_PLACE,
)
from newton_like.kernels.collision.pairs.work import LIMIT
from newton_like.kernels.collision.plane import FAR

from newton_like.kernels.tree import (  # isort: skip
    CENTER, GAP, MARGIN, MU_ROLLING, OMEGA, PAIR_TABLE, RADIUS, SHAPE_TABLE, SIZE, SURFACE,
)  # fmt: skip


NOWHERE = -FAR
"""Limit of the distance of pairs that are not looked at. The reach of shapes that may not touch is about as far below zero, and no gap of
boxes is."""


def pair_detection(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``find_pairs``, ``look_at_pairs``, ``mix_materials``, and features between steps."""
    real = m.real

    @m.func
    def shape_body(s: int, T) -> int:
        """The body of shape s, -1 for the world."""
        return T.pair_table[SHAPE_TABLE * s]

    @m.func
    def shape_kind(s: int, T) -> int:
        """The kind of shape s, of `kernels.collision.plane`."""
        return T.pair_table[SHAPE_TABLE * s + 1]

    @m.func
    def shape_hull_at(s: int, T) -> int:
        """The first vertex of the hull of shape s."""
        return T.pair_table[SHAPE_TABLE * s + 2]

    @m.func
    def shape_hull_count(s: int, T) -> int:
        """The number of its vertices."""
        return T.pair_table[SHAPE_TABLE * s + 3]

    @m.func
    def pair_one(p: int, T) -> int:
        """The first shape of pair p."""
        return T.pair_table[SHAPE_TABLE * T.shapes + PAIR_TABLE * p]

    @m.func
    def pair_two(p: int, T) -> int:
        """The second shape of pair p."""
        return T.pair_table[SHAPE_TABLE * T.shapes + PAIR_TABLE * p + 1]

    @m.func
    def pair_leaf(p: int, T) -> int:
        """The last dof of the chain of the second shape's body; -1 if no dof moves it."""
        return T.pair_table[SHAPE_TABLE * T.shapes + PAIR_TABLE * p + 2]

    @m.func
    def pair_other(p: int, T) -> int:
        """The same of the first shape's body."""
        return T.pair_table[SHAPE_TABLE * T.shapes + PAIR_TABLE * p + 3]

    @m.func
    def pair_shared(p: int, T) -> int:
        """The number of dofs that both chains have."""
        return T.pair_table[SHAPE_TABLE * T.shapes + PAIR_TABLE * p + 4]

    @m.func
    def pair_candidate(p: int, T) -> int:
        """The first candidate of pair p; that of pair T.pairs is the number of candidates."""
        return T.pair_table[SHAPE_TABLE * T.shapes + PAIR_TABLE * p + 5]

    @m.func
    def candidate_row(c: int, T) -> int:
        """Where the table of pairs tells the dofs of the rows of candidate c: where they are listed there, and how many they are."""
        return SHAPE_TABLE * T.shapes + PAIR_TABLE * (T.pairs + 1) + 2 * c

    @m.func
    def origin_of(t, k: int, T, L, mem) -> m.Vec3:
        """The origin of the tree of body k."""
        return m.get3(mem, L.origin + 3 * m.tree_of(k, T), t)

    @m.func
    def between_origins(t, one: int, two: int, T, L, mem) -> m.Vec3:
        """From the origin of the tree of body `one` to that of body `two`; zero where a shape is on no body (-1)."""
        way = m.zero3()
        if one >= 0 and two >= 0:
            if m.tree_of(one, T) != m.tree_of(two, T):
                way = m.sub3(origin_of(t, two, T, L, mem), origin_of(t, one, T, L, mem))
        return way

    @m.func
    def moving_tree(k: int, leaf: int, T) -> int:
        """The tree of body k; -1 for a body that no dof moves (leaf -1)."""
        tree = int(-1)
        if leaf >= 0:
            tree = m.tree_of(k, T)
        return tree

    @m.func
    def weigh_trees(t, T, L, mem):
        """tree_mass <- the masses of all trees."""
        for i in range(T.trees):
            mass = m.fill(real(0.0))
            for k in range(m.tree_start(i, T), m.tree_start(i + 1, T)):
                if T.parent[k] >= T.bodies:
                    mass = m.add(mass, m.get(mem, L.composite + 10 * k, t))
            m.put(mem, L.tree_mass + i, t, mass)

    @m.func
    def place_shapes(b, t, dt: m.lane, T, P, L, mem):
        """shape_place <- the places and bounds of all shapes of pairs."""
        for s in range(T.shapes):
            k = shape_body(s, T)
            r = T.colliders + s
            at = L.shape_place + SHAPE_PLACE * s
            half = m.fill(real(0.5))
            radius = m.collider_param(P, b, r, RADIUS)
            reach = m.add(m.collider_param(P, b, r, SURFACE + MARGIN), m.collider_param(P, b, r, SURFACE + GAP))
            reach = m.mul(half, reach)
            x = m.collider_vec(P, b, r, CENTER)
            if k >= 0:
                x = m.apply_plus(m.get9(mem, L.rot + 9 * k, t), x, m.get3(mem, L.pos + 3 * k, t))
                twist = m.get6(mem, L.twist + 6 * k, t)
                u = m.velocity_at(twist, x)
                speed = m.fma(radius, m.sqrt(m.dot(twist.w, twist.w)), m.sqrt(m.dot(u, u)))
                reach = m.fma(m.add(dt, dt), speed, reach)
            m.put3(mem, at, t, x)
            m.put(mem, at + BOUND, t, radius)
            m.put(mem, at + REACH, t, reach)
            m.put(mem, at + BOX_KNOWN, t, m.fill(real(0.0)))

    @m.func
    def know_box_of(b, t, s: int, T, P, L, mem):
        """Computes the box of shape s, if this step did not yet."""
        if m.any_lt(m.get(mem, L.shape_place + SHAPE_PLACE * s + BOX_KNOWN, t), m.fill(real(0.5))):
            m.know_box(
                b, t, s, shape_body(s, T), shape_kind(s, T), shape_hull_at(s, T), shape_hull_count(s, T), T, P, L, mem
            )

    @m.func
    def centre_to_centre(t, one: int, two: int, T, L, mem) -> m.Vec3:
        """From the place of shape `one` to that of shape `two`."""
        a = m.get3(mem, L.shape_place + SHAPE_PLACE * one, t)
        c = m.get3(mem, L.shape_place + SHAPE_PLACE * two, t)
        k = shape_body(one, T)
        j = shape_body(two, T)
        # places of shapes on no body are those in the world
        if k < 0 and j >= 0:
            return m.add3(c, m.sub3(origin_of(t, j, T, L, mem), a))
        if j < 0 and k >= 0:
            return m.sub3(m.sub3(c, origin_of(t, k, T, L, mem)), a)
        return m.add3(m.sub3(c, a), between_origins(t, k, j, T, L, mem))

    @m.func
    def shape_velocity(t, k: int, x: m.Vec3, T, L, mem) -> m.Vec3:
        """The velocity of the point x, about the origin of its tree, of body k; zero for -1."""
        v = m.zero3()
        if k >= 0:
            v = m.velocity_at(m.get6(mem, L.twist + 6 * k, t), x)
        return v

    @m.func
    def shape_spin(t, k: int, L, mem) -> m.Vec3:
        """The angular velocity of body k; zero for -1."""
        w = m.zero3()
        if k >= 0:
            w = m.get6(mem, L.twist + 6 * k, t).w
        return w

    @m.struct
    class Closing:
        """How the first shape of a pair moves relative to the second one in two time steps: the way of its place; how far from each other
        the shapes may be beside that; and how far in all."""

        moved: m.Vec3
        slack: m.lane
        reach: m.lane

    @m.func
    def closing_motion(b, t, p: int, reach: m.lane, dt: m.lane, T, P, L, mem) -> Closing:
        """The relative motion of the shapes of pair p, which may be at most `reach` from each other. No point within the radius and half of
        `reach` of one of them comes closer to the other one by more, nor by more than slack and the way along any direction."""
        half = m.fill(real(0.5))
        one = pair_one(p, T)
        two = pair_two(p, T)
        k = shape_body(one, T)
        j = shape_body(two, T)
        own = int(one)
        x = m.zero3()
        y = m.zero3()
        way = between_origins(t, k, j, T, L, mem)
        if k >= 0:
            x = m.get3(mem, L.shape_place + SHAPE_PLACE * one, t)
            y = m.sub3(x, way)
        else:
            own = int(two)
            y = m.get3(mem, L.shape_place + SHAPE_PLACE * two, t)
        u = m.sub3(shape_velocity(t, k, x, T, L, mem), shape_velocity(t, j, y, T, L, mem))
        w = m.sub3(shape_spin(t, k, L, mem), shape_spin(t, j, L, mem))
        radius = m.fma(half, reach, m.get(mem, L.shape_place + SHAPE_PLACE * own + BOUND, t))
        r = T.colliders + one
        q = T.colliders + two
        slack = m.add(m.collider_param(P, b, r, SURFACE + MARGIN), m.collider_param(P, b, r, SURFACE + GAP))
        slack = m.add(slack, m.collider_param(P, b, q, SURFACE + MARGIN))
        slack = m.add(slack, m.collider_param(P, b, q, SURFACE + GAP))
        slack = m.fma(half, slack, m.pair_param(P, b, p))
        time = m.add(dt, dt)
        slack = m.fma(m.mul(time, radius), m.sqrt(m.dot(w, w)), slack)
        return Closing(m.scale3(u, time), slack, m.smaller(reach, m.fma(time, m.sqrt(m.dot(u, u)), slack)))

    @m.func
    def look_limit(b, t, p: int, dt: m.lane, T, P, L, mem) -> m.lane:
        """How far from each other the surfaces of pair p are looked at, in worlds where the bounding spheres of its shapes overlap with
        their reach, and their boxes may meet in two time steps; NOWHERE in others. Boxes of shapes that pass by each other stay apart
        along some face normal."""
        nowhere = m.fill(real(NOWHERE))
        one = pair_one(p, T)
        two = pair_two(p, T)
        d = centre_to_centre(t, one, two, T, L, mem)
        first = L.shape_place + SHAPE_PLACE * one
        second = L.shape_place + SHAPE_PLACE * two
        # far below zero where the two may not touch in this world
        reach = m.add(m.add(m.get(mem, first + REACH, t), m.get(mem, second + REACH, t)), m.pair_param(P, b, p))
        apart = m.add(m.get(mem, first + BOUND, t), m.get(mem, second + BOUND, t))
        bound = m.larger(m.add(reach, apart), m.fill(real(0.0)))
        limit = nowhere
        if m.any_lt(m.dot(d, d), m.mul(bound, bound)):
            closing = closing_motion(b, t, p, reach, dt, T, P, L, mem)
            bound = m.larger(m.add(closing.reach, apart), m.fill(real(0.0)))
            limit = m.where_lt(m.dot(d, d), m.mul(bound, bound), closing.reach, nowhere)
            if m.any_lt(nowhere, limit):
                know_box_of(b, t, one, T, P, L, mem)
                know_box_of(b, t, two, T, P, L, mem)
                gap = m.box_gap(t, one, two, d, closing.moved, L, mem)
                limit = m.where_lt(gap, closing.slack, limit, nowhere)
        return limit

    @m.func
    def pair_is_near(b, t, p: int, dt: m.lane, T, P, L, mem) -> bool:
        """Whether pair p is looked at in some world of the block. A search for its points ends where its surfaces are beyond the limit."""
        limit = look_limit(b, t, p, dt, T, P, L, mem)
        m.put(mem, L.pair_work + LIMIT, t, limit)
        return m.any_lt(m.fill(real(NOWHERE)), limit)

    @m.func
    def put_shape(b, t, s: int, at: int, x: m.Vec3, T, P, L, mem):
        """Stores the record of shape s, at the place x."""
        m.put3(mem, at + CENTRE, t, x)
        m.put9(mem, at + AXES, t, m.get9(mem, L.shape_place + SHAPE_PLACE * s + BOX_AXES, t))
        m.put3(mem, at + EXTENT, t, m.collider_vec(P, b, T.colliders + s, SIZE))

    @m.func
    def in_row_axes(t, at: int, n: m.Vec3, mem):
        """The vector at `at` in world axes becomes its components along n and both tangents."""
        f = m.get3(mem, at, t)
        m.put3(mem, at, t, m.vec(m.dot(f, n), m.dot(f, m.tangent(n)), m.dot(f, m.second_tangent(n))))

    @m.func
    def in_world_axes(t, at: int, n: m.Vec3, mem):
        """The inverse of ``in_row_axes``."""
        f = m.get3(mem, at, t)
        v = m.scale3(n, f.x)
        v = m.fma3(m.tangent(n), f.y, v)
        m.put3(mem, at, t, m.fma3(m.second_tangent(n), f.z, v))

    @m.func
    def match_features(t, p: int, T, L, mem):
        """The impulses and features of candidates of pair p <- those of the points of the manifold: impulses of candidates with the
        same feature in the step before, else zero."""
        first = pair_candidate(p, T)
        n = pair_candidate(p + 1, T) - first
        rows = T.contact_rows
        old = L.feature + first - T.first_paired
        half = m.fill(real(0.5))
        zero = m.fill(real(0.0))
        for j in range(n):
            feature = m.get(mem, L.manifold + POINT * j + FEATURE, t)
            for i in range(rows):
                found = zero
                for k in range(n):
                    miss = m.sub(feature, m.get(mem, old + k, t))
                    x = m.get(mem, L.impulse + rows * (first + k) + i, t)
                    found = m.where_lt(m.mul(miss, miss), half, m.add(found, x), found)
                m.put(mem, L.matched + rows * j + i, t, found)
        for j in range(n):
            m.put(mem, old + j, t, m.get(mem, L.manifold + POINT * j + FEATURE, t))
            for i in range(rows):
                m.put(mem, L.impulse + rows * (first + j) + i, t, m.get(mem, L.matched + rows * j + i, t))

    @m.func
    def put_pair_candidates(b, t, p: int, dt: m.lane, T, P, L, mem):
        """The candidates of pair p <- the contact points in the manifold."""
        one = pair_one(p, T)
        two = pair_two(p, T)
        k = shape_body(one, T)
        j = shape_body(two, T)
        zero = m.fill(real(0.0))
        half = m.fill(real(0.5))
        centre = m.get3(mem, L.shape_place + SHAPE_PLACE * one, t)
        if k < 0:
            centre = m.sub3(centre, origin_of(t, j, T, L, mem))
        way = between_origins(t, k, j, T, L, mem)
        r = T.colliders + one
        q = T.colliders + two
        # records of shapes have twice their margins and gaps
        margin = m.mul(half, m.collider_param(P, b, r, SURFACE + MARGIN))
        margin2 = m.mul(half, m.collider_param(P, b, q, SURFACE + MARGIN))
        slack = m.mul(half, m.add(m.collider_param(P, b, r, SURFACE + GAP), m.collider_param(P, b, q, SURFACE + GAP)))
        slack = m.add(slack, m.pair_param(P, b, p))
        for i in range(pair_candidate(p + 1, T) - pair_candidate(p, T)):
            c = pair_candidate(p, T) + i
            at = L.manifold + POINT * i
            n = m.get3(mem, at + AWAY, t)
            gap = m.sub(m.get(mem, at + DISTANCE, t), m.add(margin, margin2))
            x = m.add3(m.get3(mem, at + PLACE, t), centre)
            u = m.sub3(shape_velocity(t, j, m.sub3(x, way), T, L, mem), shape_velocity(t, k, x, T, L, mem))
            reach = m.larger(zero, m.mul(m.fill(real(-2.0)), m.mul(dt, m.dot(n, u))))
            m.put(mem, L.gap + c, t, gap)
            m.put(mem, L.near + c, t, m.sub(gap, m.add(reach, slack)))
            m.put3(mem, L.point + 3 * c, t, x)
            m.put3(mem, L.normal + 3 * (c - T.first_paired), t, n)

    @m.shared
    def detect_pair(b, t, p: int, dt: m.lane, T, P, L, mem):
        """The candidates of pair p <- its contact points, which stay in the manifold."""
        one = pair_one(p, T)
        two = pair_two(p, T)
        put_shape(b, t, one, L.pair_shapes, m.zero3(), T, P, L, mem)
        put_shape(b, t, two, L.pair_shapes + SHAPE, centre_to_centre(t, one, two, T, L, mem), T, P, L, mem)
        m.pair_points(
            b, t, shape_kind(one, T), shape_kind(two, T), shape_hull_at(one, T), shape_hull_count(one, T), shape_hull_at(two, T),
            shape_hull_count(two, T), T, P, L, mem,
        )  # fmt: skip
        put_pair_candidates(b, t, p, dt, T, P, L, mem)
        # shapes of some worlds are looked at because those of others are near
        far = m.fill(real(FAR))
        limit = m.get(mem, L.pair_work + LIMIT, t)
        for c in range(pair_candidate(p, T), pair_candidate(p + 1, T)):
            m.put(mem, L.near + c, t, m.where_lt(m.neg(far), limit, m.get(mem, L.near + c, t), far))

    @m.func
    def turn_to_rows(t, p: int, T, L, mem):
        """The impulses of the candidates of pair p, vectors in world axes, become those in row axes."""
        for c in range(pair_candidate(p, T), pair_candidate(p + 1, T)):
            n = m.get3(mem, L.normal + 3 * (c - T.first_paired), t)
            for a in range(T.contact_rows // 3):
                in_row_axes(t, L.impulse + T.contact_rows * c + 3 * a, n, mem)

    @m.shared
    def recall_pair(t, p: int, T, L, mem):
        """The impulses of the candidates of pair p <- those of the same contacts in the step before, in row axes."""
        match_features(t, p, T, L, mem)
        turn_to_rows(t, p, T, L, mem)

    @m.func
    def look_at_pairs(b, t, dt: m.lane, T, P, L, mem):
        """near, gap, point, normal <- those of all candidates of pairs."""
        if T.pairs > 0:
            place_shapes(b, t, dt, T, P, L, mem)
        for p in range(T.pairs - T.surface_pairs):
            if pair_is_near(b, t, p, dt, T, P, L, mem):
                detect_pair(b, t, p, dt, T, P, L, mem)
            else:
                for c in range(pair_candidate(p, T), pair_candidate(p + 1, T)):
                    m.put(mem, L.near + c, t, m.fill(real(FAR)))

    @m.func
    def list_near(t, p: int, n: int, T, L, mem, active: wp.array2d[int]) -> int:
        """Lists, behind the `n` contacts that are listed already, the candidates of pair p that are near in some world of the block, and
        clears the others. Returns the length of the list."""
        zero = m.fill(real(0.0))
        for c in range(pair_candidate(p, T), pair_candidate(p + 1, T)):
            if m.any_lt(m.get(mem, L.near + c, t), zero):
                active[n, t] = c
                n = n + 1
            else:
                # nothing of it outlives the step
                m.put(mem, L.feature + c - T.first_paired, t, zero)
                m.clear(t, L.impulse + T.contact_rows * c, T.contact_rows, mem)
        return n

    @m.func
    def find_pairs(b, t, n: int, dt: m.lane, T, P, L, mem, active: wp.array2d[int]) -> int:
        """Lists, behind the `n` contacts that are listed already, the candidates of pairs that are near in some world of the block. Returns
        the length of the list."""
        if T.pairs > 0:
            weigh_trees(t, T, L, mem)
            place_shapes(b, t, dt, T, P, L, mem)
        end = T.pairs - T.surface_pairs
        p = m.next_close_pair(t, 0, end, T, L, mem)
        while p < end:
            if pair_is_near(b, t, p, dt, T, P, L, mem):
                detect_pair(b, t, p, dt, T, P, L, mem)
                recall_pair(t, p, T, L, mem)
                n = list_near(t, p, n, T, L, mem, active)
            p = m.next_close_pair(t, p + 1, end, T, L, mem)
        return n

    @m.func
    def no_pairs(b, t, n: int, dt: m.lane, T, P, L, mem, active: wp.array2d[int]) -> int:
        """``find_pairs`` of a cluster without pairs."""
        return n

    @m.func
    def mix_materials(b, t, p: int, T, P, L, mem):
        """material <- the means of those of both shapes of pair p; of the time constant 1 / OMEGA, not of OMEGA."""
        r = T.colliders + pair_one(p, T)
        q = T.colliders + pair_two(p, T)
        half = m.fill(real(0.5))
        for i in range(MU_ROLLING + 1):
            x = m.collider_param(P, b, r, SURFACE + i)
            y = m.collider_param(P, b, q, SURFACE + i)
            mean = m.mul(half, m.add(x, y))
            if i == OMEGA:
                mean = m.div(m.mul(x, y), m.larger(mean, m.fill(real(1.0e-30))))
            m.put(mem, L.material + i, t, mean)

    @m.func
    def recall_feature(b, t, c: int, n: int, T, L, mem, kept: m.memory):
        """The feature of candidate c, if it is one of a pair, comes back from place n of what outlives steps."""
        if c >= T.first_paired:
            m.recall(mem, L.feature + c - T.first_paired, L.kept_feature + n, t, kept, b, 1)

    @m.func
    def forget_feature(t, c: int, T, L, mem):
        if c >= T.first_paired:
            m.put(mem, L.feature + c - T.first_paired, t, m.fill(real(0.0)))

    @m.func
    def keep_feature(b, t, c: int, n: int, T, L, mem, kept: m.memory):
        """If candidate c is one of a pair: its impulses, in row axes, become vectors in world axes, and its feature is kept at place n."""
        if c >= T.first_paired:
            normal = m.get3(mem, L.normal + 3 * (c - T.first_paired), t)
            for a in range(T.contact_rows // 3):
                in_world_axes(t, L.impulse + T.contact_rows * c + 3 * a, normal, mem)
            m.keep(mem, L.feature + c - T.first_paired, L.kept_feature + n, t, kept, b, 1)
            forget_feature(t, c, T, L, mem)

    return locals()
