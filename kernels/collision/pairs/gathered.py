"""Contacts of a robot alone in the step: each lane looks at a pair of some world.

Links of a robot touch in other places in each world. The narrow phase runs for the pairs of one kind of shapes after the other. The pairs
that are near in all worlds of the block stand in one queue, and each visit looks at as many of them as there are lanes, whichever worlds
they are in. Hulls have vertices among the parameters; their pairs are looked at in all worlds at once.

The contacts of each world go to slots: slot n is contact n of each world, in the order of planes, kinds of shapes and pairs, which does
not depend on the other worlds of the block. Contacts of successive steps are matched by their pairs and features. Between steps, impulses
are vectors in world axes.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.detect import NOWHERE
from newton_like.kernels.collision.pairs.records import (
    AWAY,
    AXES,
    BOX_AXES,
    CENTRE,
    DISTANCE,
    EXTENT,
    FEATURE,
    OF_CENTRE,
    OF_MARGIN,
    OF_SLACK,
    OF_TWIST,
    PLACE,
    POINT,
    SHAPE,
    SHAPE_MORE,
    SHAPE_PLACE,
    SLOT,
    SLOT_FEATURE,
    SLOT_GAP,
    SLOT_IDS,
    SLOT_MATERIAL,
    SLOT_NEAR,
    SLOT_NORMAL,
    SLOT_POINT,
)
from newton_like.kernels.collision.pairs.work import LIMIT
from newton_like.kernels.collision.plane import CAPSULE, CYLINDER, HULL, SPHERE
from newton_like.kernels.simd import C_NAME, FUSE, simd_types

from newton_like.kernels.tree import (  # isort: skip
    DAMPING_RATIO, GAP, MARGIN, MU, MU_ROLLING, NORMAL, OMEGA, PAIR_TABLE, SHAPE_TABLE, SIZE, SURFACE,
)  # fmt: skip

MATERIALS = MU_ROLLING + 1

KINDS = 16
"""Pairs of kinds are numbered KINDS * first + second."""

MOST_WORLDS = 16
"""Of a block. The list of near pairs has an integer with a bit for each of them, and the number of the kinds above these."""

AWAY_FROM = 1.0e4
"""Components of the place of the second shape where a visit has no pair in a world [m]. No search looks at shapes that are so far apart."""

# Of the record of a shape in ``shape_more``: its size, margin, gap and material.
MORE_SIZE, MORE_MARGIN, MORE_GAP, MORE_MATERIAL = 0, 3, 4, 5


def _tables(width: int, real) -> str:
    """C++ statements: the tables of shapes and pairs, the list of near pairs with bits of their worlds, and the queue of pairs with their
    worlds, as `width` p + l."""
    number = C_NAME[real]
    return f"""const int* const shapes = T.pair_table.data; const int* const pairs = shapes + {SHAPE_TABLE} * T.shapes;
        {number}* const F = ({number}*)mem.data;
        int* const near_pairs = active.data + 3 * T.candidates + T.dofs; int* const queue = near_pairs + 2 * T.pairs;
        auto kinds_of = [=](int p) {{ return {KINDS} * shapes[{SHAPE_TABLE} * pairs[{PAIR_TABLE} * p] + 1]
            + shapes[{SHAPE_TABLE} * pairs[{PAIR_TABLE} * p + 1] + 1]; }};"""


def _note_code(width: int) -> str:
    """C++ body of ``note_near``."""
    powers = ", ".join(str(1 << l) for l in range(width))
    return f"""simd x; __builtin_memcpy(&x, &limit, sizeof(simd)); const simdi powers = {{{powers}}};
        const int bits = (int)__builtin_reduce_or((simdi)(x > real_t({NOWHERE})) & powers);
        if (bits == 0) return n;
        near_pairs[2 * n] = p; near_pairs[2 * n + 1] = bits | kinds_of(p) << {MOST_WORLDS};
        return n + 1;"""


_NEXT_KIND = f"""int best = -1;
        for (int i = 0; i < n; ++i) {{
            const int k = near_pairs[2 * i + 1] >> {MOST_WORLDS};
            if (k > after && (best < 0 || k < best)) best = k;
        }}
        return best;"""


def _queue_code(width: int) -> str:
    """C++ body of ``queue_pairs``."""
    return f"""int length = 0;
        for (int i = 0; i < n; ++i) {{
            const int p = near_pairs[2 * i], of = near_pairs[2 * i + 1];
            if (of >> {MOST_WORLDS} != kinds) continue;
            for (int bits = of & {2**MOST_WORLDS - 1}; bits; bits &= bits - 1) queue[length++] = {width} * p + __builtin_ctz(bits);
        }}
        const int visits = (length + {width - 1}) / {width};
        while (length < {width} * visits) queue[length++] = -1;
        return visits;"""


def _gather_code(width: int) -> str:
    """C++ body of ``gather_shapes``."""
    return f"""const int* const own = queue + {width} * visit;
        for (int q = 0; q < {width}; ++q) {{
            const int p = own[q] / {width}, l = own[q] % {width};
            real_t* const to = F + (size_t)L.gathered * {width} + q;
            if (own[q] < 0) {{
                // the shapes of an earlier visit, far away from each other
                real_t* const other = F + (size_t)(L.pair_shapes + {SHAPE + CENTRE}) * {width} + q;
                for (int j = 0; j < 3; ++j) other[j * {width}] = {AWAY_FROM};
                F[(size_t)(L.pair_work + {LIMIT}) * {width} + q] = real_t({NOWHERE});
                continue;
            }}
            const int* const pair = pairs + {PAIR_TABLE} * p;
            real_t* const into = F + (size_t)L.pair_shapes * {width} + q;
            real_t margin = 0, slack = 0, place[2][3], twist[6] = {{}};
            for (int i = 0; i < 2; ++i) {{
                const int s = pair[i], k = shapes[{SHAPE_TABLE} * s];
                const real_t* const from = F + (size_t)(L.shape_place + {SHAPE_PLACE} * s) * {width} + l;
                const real_t* const more = F + (size_t)(L.shape_more + {SHAPE_MORE} * s) * {width} + l;
                real_t* const shape = into + {SHAPE} * i * {width};
                for (int j = 0; j < 9; ++j) shape[({AXES} + j) * {width}] = from[({BOX_AXES} + j) * {width}];
                for (int j = 0; j < 3; ++j) shape[({EXTENT} + j) * {width}] = more[({MORE_SIZE} + j) * {width}];
                // places of shapes on no body are those in the world
                for (int j = 0; j < 3; ++j)
                    place[i][j] = from[j * {width}] - (k < 0 ? F[(size_t)(L.origin + j) * {width} + l] : real_t(0));
                margin = margin + more[{MORE_MARGIN} * {width}];
                slack = slack + more[{MORE_GAP} * {width}];
                if (k >= 0) for (int j = 0; j < 6; ++j) {{
                    const real_t u = F[(size_t)(L.twist + 6 * k + j) * {width} + l];
                    twist[j] = i == 0 ? -u : twist[j] + u;
                }}
            }}
            for (int j = 0; j < 3; ++j) {{
                into[({CENTRE} + j) * {width}] = 0;
                into[({SHAPE} + {CENTRE} + j) * {width}] = place[1][j] - place[0][j];
                to[({OF_CENTRE} + j) * {width}] = place[0][j];
            }}
            for (int j = 0; j < 6; ++j) to[({OF_TWIST} + j) * {width}] = twist[j];
            to[{OF_MARGIN} * {width}] = margin;
            to[{OF_SLACK} * {width}] = slack;
            F[(size_t)(L.pair_work + {LIMIT}) * {width} + q] = F[(size_t)(L.pair_limit + p) * {width} + l];
        }}"""


def _new_slot_code() -> str:
    """C++ statements: slot `s` at lane `at` of memory, which no world had before, is empty in all worlds."""
    rest = {SLOT_NEAR: 1, SLOT_GAP: 1, SLOT_NORMAL + 2: 1, SLOT_MATERIAL + OMEGA: 1, SLOT_MATERIAL + DAMPING_RATIO: 1}
    rest.update({SLOT_IDS + i: -1 for i in range(3)})
    empty = "".join(f"M[at + {i}] = simd({x});" for i, x in rest.items())
    return f"if (s == slots) {{ ++slots; for (int i = 0; i < {SLOT}; ++i) M[at + i] = simd(0); {empty} }}"


def _append_code(width: int) -> str:
    """C++ body of ``append_contact``."""
    return f"""simd* const M = (simd*)mem.data;
        const real_t* const fresh = F + (size_t)L.fresh * {width}; real_t* const count = F + (size_t)L.slot_count * {width};
        for (int l = 0; l < {width}; ++l) {{
            if (!(fresh[{SLOT_NEAR} * {width} + l] < 0)) continue;
            const int s = (int)count[l];
            const size_t at = L.slot + {SLOT} * s;
            count[l] = s + 1;
            {_new_slot_code()}
            real_t* const to = F + at * {width} + l;
            for (int i = 0; i < {SLOT}; ++i) to[i * {width}] = fresh[i * {width} + l];
        }}
        return slots;"""


def _append_gathered_code(width: int) -> str:
    """C++ body of ``append_gathered``."""
    mixed = "".join(
        f"mixed[{i}] = "
        + (
            f"x[{i} * {width}] * y[{i} * {width}] / (half_{i} > real_t(1e-30) ? half_{i} : real_t(1e-30));"
            if i == OMEGA
            else f"half_{i};"
        )
        for i in range(MATERIALS)
    )
    halves = "".join(
        f"const real_t half_{i} = real_t(0.5) * (x[{i} * {width}] + y[{i} * {width}]);" for i in range(MATERIALS)
    )
    places = {SLOT_GAP: DISTANCE, SLOT_FEATURE: FEATURE}
    places.update({SLOT_POINT + i: PLACE + i for i in range(3)} | {SLOT_NORMAL + i: AWAY + i for i in range(3)})
    puts = "".join(f"to[{to} * {width}] = from[{at} * {width}];" for to, at in places.items())
    return f"""simd* const M = (simd*)mem.data; real_t* const count = F + (size_t)L.slot_count * {width};
        for (int q = 0; q < {width}; ++q) {{
            const int p = queue[{width} * visit + q] / {width}, l = queue[{width} * visit + q] % {width};
            if (queue[{width} * visit + q] < 0) break;
            real_t mixed[{MATERIALS}]; bool known = false;
            const int* const pair = pairs + {PAIR_TABLE} * p;
            for (int j = 0; j < points; ++j) {{
                const real_t near = F[(size_t)(L.fresh + j) * {width} + q];
                if (!(near < 0)) continue;
                if (!known) {{
                    const real_t* const x = F + (size_t)(L.shape_more + {SHAPE_MORE} * pair[0] + {MORE_MATERIAL}) * {width} + l;
                    const real_t* const y = F + (size_t)(L.shape_more + {SHAPE_MORE} * pair[1] + {MORE_MATERIAL}) * {width} + l;
                    {halves} {mixed} known = true;
                }}
                const int s = (int)count[l];
                const size_t at = L.slot + {SLOT} * s;
                count[l] = s + 1;
                {_new_slot_code()}
                real_t* const to = F + at * {width} + l;
                const real_t* const from = F + (size_t)(L.manifold + {POINT} * j) * {width} + q;
                to[{SLOT_NEAR} * {width}] = near; {puts}
                to[{SLOT_IDS} * {width}] = pair[5]; to[({SLOT_IDS} + 1) * {width}] = pair[2]; to[({SLOT_IDS} + 2) * {width}] = pair[3];
                for (int i = 0; i < {MATERIALS}; ++i) to[({SLOT_MATERIAL} + i) * {width}] = mixed[i];
            }}
        }}
        return slots;"""


def gathered_pairs(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``clear_slots``, ``append_candidate``, ``load_shapes`` and ``gather_pairs``, for lanes of several worlds."""
    if not hasattr(m, "width") or m.width == 1:
        return {}
    real = m.real
    tables = _tables(m.width, real)

    def body(code: str) -> str:
        """C++ body of a function that reads the tables."""
        return f"{{{FUSE} {simd_types(m.width, real)} {tables} {code} }}"

    @wp.func_native(body(_note_code(m.width)))
    def note_near(
        n: int, p: int, limit: m.lane, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """Lists pair p, behind `n` pairs, if it is looked at in some world, where it has a `limit`. Returns the length of the
        list."""

    @wp.func_native(body(_NEXT_KIND))
    def next_kinds(
        n: int, after: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """The next pair of kinds of shapes among the `n` listed pairs, -1 at the end."""

    @wp.func_native(body(_queue_code(m.width)))
    def queue_pairs(
        n: int, kinds: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """Queues the listed pairs of these kinds, those of all worlds. Returns the number of visits."""

    @wp.func_native(body(_gather_code(m.width)))
    def gather_shapes(visit: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]):
        """What the narrow phase needs of the pairs of a visit."""

    @wp.func_native(body(f"return near_pairs[2 * i + 1] >> {MOST_WORLDS} == kinds ? near_pairs[2 * i] : -1;"))
    def listed_pair(
        i: int, kinds: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """Pair i of the list if its shapes are of these kinds, else -1."""

    @wp.func_native(body(_append_gathered_code(m.width)))
    def append_gathered(
        visit: int, points: int, slots: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:  # fmt: skip
        """Gives the contact points in the manifold slots in the worlds of the pairs of a visit, where numbers of ``fresh`` are negative.
        Returns the number of slots, of which there were `slots`."""

    @wp.func_native(body(_append_code(m.width)))
    def append_contact(
        slots: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """Gives the contact in ``fresh`` a slot in worlds where it is near. Returns the number of slots, of which there were `slots`."""

    @m.func
    def clear_slots(t, L, mem):
        """No world has a contact."""
        m.put(mem, L.slot_count, t, m.fill(real(0.0)))

    @m.func
    def put_fresh(t, near: m.lane, gap: m.lane, x: m.Vec3, n: m.Vec3, feature: m.lane, L, mem):
        """fresh <- a contact, whose material and numbers of bodies are there."""
        m.put(mem, L.fresh + SLOT_NEAR, t, near)
        m.put(mem, L.fresh + SLOT_GAP, t, gap)
        m.put3(mem, L.fresh + SLOT_POINT, t, x)
        m.put3(mem, L.fresh + SLOT_NORMAL, t, n)
        m.put(mem, L.fresh + SLOT_FEATURE, t, feature)

    @m.func
    def put_ids(t, pair: int, leaf: int, other: int, L, mem):
        """fresh <- the first candidate of a pair, or the candidate of a plane, and the last dofs of the chains of both bodies."""
        m.put(mem, L.fresh + SLOT_IDS, t, m.fill(real(pair)))
        m.put(mem, L.fresh + SLOT_IDS + 1, t, m.fill(real(leaf)))
        m.put(mem, L.fresh + SLOT_IDS + 2, t, m.fill(real(other)))

    @m.func
    def append_candidate(b, t, c: int, s: int, slots: int, T, P, L, mem, active: wp.array2d[int]) -> int:
        """Gives candidate c of collider s slots in worlds where it is near. Returns the number of slots."""
        for i in range(MATERIALS):
            m.put(mem, L.fresh + SLOT_MATERIAL + i, t, m.collider_param(P, b, s, SURFACE + MU + i))
        put_ids(t, c, T.leaf[T.candidate_body[c]], -1, L, mem)
        n = m.plane_vec(P, b, T.collider_plane[s], NORMAL)
        near = m.get(mem, L.near + c, t)
        gap = m.get(mem, L.gap + c, t)
        put_fresh(t, near, gap, m.get3(mem, L.point + 3 * c, t), n, m.fill(real(0.0)), L, mem)
        return append_contact(slots, T, L, mem, active)

    @m.func
    def place_more(b, t, T, P, L, mem):
        """shape_more <- sizes, margins, gaps and materials of all shapes of pairs."""
        half = m.fill(real(0.5))
        for s in range(T.shapes):
            r = T.colliders + s
            at = L.shape_more + SHAPE_MORE * s
            m.put3(mem, at + MORE_SIZE, t, m.collider_vec(P, b, r, SIZE))
            # records of shapes have twice their margins and gaps
            m.put(mem, at + MORE_MARGIN, t, m.mul(half, m.collider_param(P, b, r, SURFACE + MARGIN)))
            m.put(mem, at + MORE_GAP, t, m.mul(half, m.collider_param(P, b, r, SURFACE + GAP)))
            for i in range(MATERIALS):
                m.put(mem, at + MORE_MATERIAL + i, t, m.collider_param(P, b, r, SURFACE + MU + i))

    @m.func
    def load_shapes(b, t, first_here: bool, T, P, L, mem):
        """shape_more <- sizes, margins, gaps and materials of all shapes of pairs; where worlds have equal shapes, only for the first
        block of a launch."""
        if first_here or P.colliders_vary != 0:
            place_more(b, t, T, P, L, mem)

    @m.func
    def points_of_kinds(kind: int, other: int) -> int:
        """Number of contact points of shapes of these kinds, as `points_of` of the records."""
        n = int(4)
        if kind == CAPSULE and other <= CYLINDER:
            n = 2
        if kind == SPHERE:
            n = 1
        return n

    @m.shared
    def look_at_visit(
        b, t, visit: int, kind: int, other: int, slots: int, dt: m.lane, T, P, L, mem, active: wp.array2d[int]
    ) -> int:  # fmt: skip
        """Gives the contact points of the pairs of a visit slots. Returns the number of slots."""
        gather_shapes(visit, T, L, mem, active)
        m.pair_points(b, t, kind, other, 0, 0, 0, 0, T, P, L, mem)
        centre = m.get3(mem, L.gathered + OF_CENTRE, t)
        twist = m.get6(mem, L.gathered + OF_TWIST, t)
        margin = m.get(mem, L.gathered + OF_MARGIN, t)
        slack = m.get(mem, L.gathered + OF_SLACK, t)
        points = points_of_kinds(kind, other)
        for i in range(points):
            at = L.manifold + POINT * i
            n = m.get3(mem, at + AWAY, t)
            gap = m.sub(m.get(mem, at + DISTANCE, t), margin)
            x = m.add3(m.get3(mem, at + PLACE, t), centre)
            closing = m.mul(m.fill(real(-2.0)), m.mul(dt, m.dot(n, m.velocity_at(twist, x))))
            reach = m.larger(m.fill(real(0.0)), closing)
            m.put(mem, L.fresh + i, t, m.sub(gap, m.add(reach, slack)))
            m.put3(mem, at + PLACE, t, x)
            m.put(mem, at + DISTANCE, t, gap)
        return append_gathered(visit, points, slots, T, L, mem, active)

    @m.shared
    def look_at_hull(b, t, p: int, slots: int, dt: m.lane, T, P, L, mem, active: wp.array2d[int]) -> int:
        """Gives the contact points of pair p slots in worlds where they are near. Returns the number of slots."""
        m.put(mem, L.pair_work + LIMIT, t, m.get(mem, L.pair_limit + p, t))
        m.detect_pair(b, t, p, dt, T, P, L, mem)
        m.mix_materials(b, t, p, T, P, L, mem)
        m.copy(t, L.fresh + SLOT_MATERIAL, L.material, MATERIALS, mem)
        first = m.pair_candidate(p, T)
        put_ids(t, first, m.pair_leaf(p, T), m.pair_other(p, T), L, mem)
        for i in range(m.pair_candidate(p + 1, T) - first):
            c = first + i
            x = m.get3(mem, L.point + 3 * c, t)
            n = m.get3(mem, L.normal + 3 * (c - T.first_paired), t)
            near = m.get(mem, L.near + c, t)
            feature = m.get(mem, L.manifold + POINT * i + FEATURE, t)
            put_fresh(t, near, m.get(mem, L.gap + c, t), x, n, feature, L, mem)
            slots = append_contact(slots, T, L, mem, active)
        return slots

    @m.func
    def gather_pairs(b, t, slots: int, dt: m.lane, T, P, L, mem, active: wp.array2d[int]) -> int:
        """Gives the contacts of all pairs slots, behind `slots` that there are. Returns the number of slots."""
        m.weigh_trees(t, T, L, mem)
        m.place_shapes(b, t, dt, T, P, L, mem)
        n = int(0)
        # the close pairs are in the second half of the memory of near pairs; `note_near` writes there only over what was read
        close = 3 * T.candidates + T.dofs + T.pairs
        for i in range(m.list_close_pairs(t, close, T, L, mem, active)):
            p = active[close + i, t]
            limit = m.look_limit(b, t, p, dt, T, P, L, mem)
            n = note_near(n, p, limit, T, L, mem, active)
            m.put(mem, L.pair_limit + p, t, limit)
        kinds = next_kinds(n, -1, T, L, mem, active)
        while kinds >= 0:
            if kinds % KINDS == HULL:
                for i in range(n):
                    hulls = listed_pair(i, kinds, T, L, mem, active)
                    if hulls >= 0:
                        slots = look_at_hull(b, t, hulls, slots, dt, T, P, L, mem, active)
            else:
                visits = queue_pairs(n, kinds, T, L, mem, active)
                for visit in range(visits):
                    slots = look_at_visit(b, t, visit, kinds // KINDS, kinds % KINDS, slots, dt, T, P, L, mem, active)
            kinds = next_kinds(n, kinds, T, L, mem, active)
        return slots

    return dict(
        clear_slots=clear_slots, append_candidate=append_candidate, load_shapes=load_shapes, gather_pairs=gather_pairs
    )
