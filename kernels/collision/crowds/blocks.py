"""Pairs of crowds in blocks of lanes: the narrow phase, and the list of contacts.

The pairs of a group have shapes of the same two kinds. A block holds as many of them as it has lanes, and runs the programs of the step
for a cluster of two bodies with one pair, or with one plane: each lane is another pair.
"""

from functools import cache, partial

import warp as wp
from newton_like.kernels.collision.collect import LOOKAHEAD
from newton_like.kernels.collision.crowds.boxes import PLANE, crowd_module, crowd_struct
from newton_like.kernels.collision.pairs.detect import pair_detection
from newton_like.kernels.collision.pairs.dispatch import dispatch_of
from newton_like.kernels.collision.pairs.records import MOST_POINTS, PAIR_COUNTS
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, FAR, HULL, POINTS, SPHERE
from newton_like.kernels.collision.surfaces.records import FIELD, SURFACE_WORK
from newton_like.kernels.lanes import extended
from newton_like.kernels.simd import C_NAME, COPYING, GENERAL_FLAGS, module_options

from newton_like.kernels.tree import (  # isort: skip
    BODY, CENTER, CENTRE_OF_MASS, COLLIDER, GAP, HALF_LENGTH, HALF_WIDTH, MARGIN, NORMAL, OFFSET, OFFSET_1, OFFSET_2, PAIR_TABLE, RADIUS,
    ROTATION, SHAPE_TABLE, SIZE, SURFACE, TANGENT_1, TANGENT_2,
)  # fmt: skip
from newton_like.kernels.tree import PLANE as PLANE_NUMBERS

# Columns of the table of groups: the kinds of both shapes, the number of contact points, and how many vertices each of both hulls has
# in a block: those of smaller hulls are repeated.
KIND_ONE, KIND_TWO, POINTS_OF, HULL_ONE, HULL_TWO = range(5)
GROUP_COLUMNS = 5

# Numbers of a contact point that is found, each in lanes.
NEAR, GAP_AT, POINT_AT, NORMAL_AT, FOUND = 0, 1, 2, 5, 8

# Places of the parameters of a block.
COLLIDERS_AT, PLANES_AT, BODIES_AT = 0, 2 * COLLIDER, 2 * COLLIDER + PLANE_NUMBERS
HULLS_AT = BODIES_AT + 2 * BODY

COUNTS = dict(
    coords=0, dofs=0, bodies=2, trees=2, entries=0, reach=0, colliders=1, candidates=max(*POINTS, MOST_POINTS), contact_rows=0, couplings=0,
    first_paired=0, shapes=2, pairs=1, surface_pairs=1, loop_rows=0, loop_block=0, loop_soft=0, surface_numbers=SURFACE_WORK, **PAIR_COUNTS,
)  # fmt: skip
"""Counts of the memory of a block, see `kernels.layout`."""


def _setters(m):
    """Functions that write the number of one lane, into memory and into parameters."""
    real, name = m.real, C_NAME[m.real]
    if m.width == 1:
        put, give = (
            "mem.data[(size_t)i * mem.shape[1] + t] = x;",
            (f"*({name}*)((char*)varying.data + b * (size_t)varying.strides[0] + i * (size_t)varying.strides[1]) = x;"),
        )
    else:
        put = f"(({name}*)(mem.data + i))[k] = x;"
        give = f"(({name}*)(varying.data + (size_t)b * varying.shape[1] + i))[k] = x;"

    @wp.func_native(put)
    def put_number(mem: m.memory, i: int, t: int, k: int, x: real):
        """Lane k of row i of memory <- x."""

    @wp.func_native(give)
    def give_number(varying: m.memory, b: int, i: int, k: int, x: real):
        """Lane k of parameter i <- x."""

    return put_number, give_number


@cache
def block_struct():
    """The struct of pairs and blocks."""

    @wp.struct
    class Blocks:
        # of pairs: the row's shape, its partner, the group, and where its block has it: candidates before, times lanes, plus the lane
        owner: wp.array[int]
        partner: wp.array[int]
        group: wp.array[int]
        place: wp.array[int]
        # pairs, blocks and candidates in blocks
        total: wp.array[int]
        blocks: wp.array[int]
        candidates: wp.array[int]
        # of groups: see GROUP_COLUMNS; the next place, and tables for the programs
        groups: wp.array2d[int]
        next: wp.array[int]
        pair_table: wp.array2d[int]
        kinds: wp.array2d[int]
        hulls: wp.array2d[int]
        # of blocks: group, candidates of blocks before, and pairs, -1 for none
        group_of_block: wp.array[int]
        candidate: wp.array[int]
        lanes: wp.array[int]

    return Blocks


@cache
def arrange_kernels(real, width: int):
    """Kernels ``(sort, arrange)``: the group of each pair with the order of its two shapes, and the blocks."""
    Crowd, Blocks = crowd_struct(real), block_struct()

    @wp.kernel(module=crowd_module(real, width), enable_backward=False)
    def sort(first: int, shares: int, C: Crowd, B: Blocks):
        """Brings both shapes of pairs in the order of their kinds; planes come first, and surfaces last."""
        n = wp.min(B.total[0], B.owner.shape[0])
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        for p in range(start, wp.min(start + each, n)):
            s = B.owner[p]
            o = B.partner[p]
            a = C.kind[s]
            b = C.kind[o]
            if b < a or (a == b and C.rank[o] < C.rank[s]):
                B.owner[p] = o
                B.partner[p] = s
                s = B.owner[p]
                o = B.partner[p]
            B.group[p] = C.group[C.sort[s], C.sort[o]]

    @wp.kernel(module=crowd_module(real, width), enable_backward=False)
    def arrange(B: Blocks):
        """Gives pairs to blocks, group by group, in their order."""
        n = wp.min(B.total[0], B.owner.shape[0])
        groups = B.groups.shape[0]
        lanes = int(width)
        for g in range(groups):
            B.next[g] = 0
        for p in range(n):
            B.next[B.group[p]] = B.next[B.group[p]] + 1
        block = int(0)
        candidate = int(0)
        for g in range(groups):
            pairs = B.next[g]
            B.next[g] = block * width
            many = (pairs + width - 1) // width
            for b in range(block, block + many):
                if b < B.group_of_block.shape[0]:
                    B.group_of_block[b] = g
                    B.candidate[b] = candidate
                candidate += B.groups[g, POINTS_OF]
            # lanes without a pair are in the last block
            if many > 0 and block + many <= B.group_of_block.shape[0]:
                for k in range(lanes):
                    B.lanes[(block + many - 1) * width + k] = -1
            block += many
        B.blocks[0] = block
        B.candidates[0] = candidate
        if block > B.group_of_block.shape[0]:
            return
        for p in range(n):
            at = B.next[B.group[p]]
            B.next[B.group[p]] = at + 1
            B.lanes[at] = p
            B.place[p] = B.candidate[at // width] * width + at % width

    return sort, arrange


def narrow_kernel(m, pairs: frozenset, surfaces: bool):
    """The kernel of the narrow phase over shares of blocks.

    Args:
        m: the namespace of a step.
        pairs: the pairs of kinds that occur, the lower one first.
        surfaces: whether shapes may touch height fields or meshes.
    """
    m = extended(m, (partial(dispatch_of, pairs=pairs), pair_detection))
    real = m.real
    Crowd, Blocks = crowd_struct(real), block_struct()
    vec3 = wp.types.vector(3, real)
    put_number, give_number = _setters(m)
    width = m.width

    @wp.func
    def give3(varying: m.memory, t: int, i: int, k: int, x: vec3):
        for j in range(3):
            give_number(varying, t, i + j, k, x[j])

    @wp.func
    def bounding_radius(kind: int, size: vec3) -> real:
        radius = real(0.0)
        if kind == SPHERE:
            radius = size[0]
        if kind == CAPSULE:
            radius = size[0] + size[1]
        if kind == BOX:
            radius = wp.length(size)
        if kind == CYLINDER or kind == CONE:
            radius = wp.sqrt(size[0] * size[0] + size[1] * size[1])
        if kind == ELLIPSOID:
            radius = wp.max(size)
        return radius

    @wp.func
    def give_shape(C: wp.ref[Crowd], s: int, other: int, at: int, k: int, t: int, varying: m.memory):
        """The parameters of shape s; margin and gap are the sums of those of both shapes."""
        pose = C.shape_transform[s]
        turn = wp.transform_get_rotation(pose)
        give3(varying, t, at + SIZE, k, C.shape_scale[s])
        give3(varying, t, at + CENTER, k, wp.transform_get_translation(pose))
        for j in range(4):
            give_number(varying, t, at + ROTATION + j, k, turn[j])
        give_number(varying, t, at + SURFACE + MARGIN, k, C.shape_margin[s] + C.shape_margin[other])
        give_number(varying, t, at + SURFACE + GAP, k, C.shape_gap[s] + C.shape_gap[other])
        # shapes may have been enlarged
        give_number(varying, t, at + RADIUS, k, wp.max(C.shape_radius[s], bounding_radius(C.kind[s], C.shape_scale[s])))

    @wp.func
    def give_hull(C: wp.ref[Crowd], s: int, at: int, count: int, k: int, t: int, varying: m.memory):
        """The vertices of a hull; the last one is repeated."""
        first = C.hull_first[s]
        last = C.hull_count[s] - 1
        for i in range(count):
            give3(varying, t, at + 3 * i, k, C.hull_points[first + wp.min(i, last)])

    @wp.func
    def give_plane(C: wp.ref[Crowd], s: int, k: int, t: int, varying: m.memory):
        pose = C.shape_transform[s]
        axes = wp.quat_to_matrix(wp.normalize(wp.transform_get_rotation(pose)))
        x = wp.transform_get_translation(pose)
        one = vec3(axes[0, 0], axes[1, 0], axes[2, 0])
        two = vec3(axes[0, 1], axes[1, 1], axes[2, 1])
        n = vec3(axes[0, 2], axes[1, 2], axes[2, 2])
        give3(varying, t, PLANES_AT + NORMAL, k, n)
        give3(varying, t, PLANES_AT + TANGENT_1, k, one)
        give3(varying, t, PLANES_AT + TANGENT_2, k, two)
        give_number(varying, t, PLANES_AT + OFFSET, k, wp.dot(n, x))
        give_number(varying, t, PLANES_AT + OFFSET_1, k, wp.dot(one, x))
        give_number(varying, t, PLANES_AT + OFFSET_2, k, wp.dot(two, x))
        size = C.shape_scale[s]
        # half of both sides; without a side it has no edges there
        for j in range(2):
            half = real(FAR)
            if size[j] > real(0.0):
                half = real(0.5) * size[j]
            give_number(varying, t, PLANES_AT + HALF_LENGTH + j * (HALF_WIDTH - HALF_LENGTH), k, half)

    @wp.func
    def put_body(
        C: wp.ref[Crowd], body: int, slot: int, k: int, t: int, varying: m.memory, L: wp.ref[m.Layout], mem: m.memory
    ):
        """Pose, velocity and centre of mass of a body; those of the world if it is -1."""
        for j in range(7):
            x = real(0.0)
            if j == 6:
                x = real(1.0)
            if body >= 0:
                x = C.body_q[body][j]
            put_number(mem, L.body_q + 7 * slot + j, t, k, x)
        for j in range(6):
            x = real(0.0)
            if body >= 0:
                x = C.body_qd[body][j]
            put_number(mem, L.body_qd + 6 * slot + j, t, k, x)
        com = vec3(real(0.0), real(0.0), real(0.0))
        if body >= 0:
            com = C.body_com[body]
        give3(varying, t, BODIES_AT + BODY * slot + CENTRE_OF_MASS, k, com)

    @m.func
    def move_bodies(t, T, P, L, mem):
        """The kinematics of both bodies, as `kernels.collision.collect` computes them."""
        for k in range(T.bodies):
            m.put3(mem, L.origin + 3 * k, t, m.zero3())
            q = m.quat_normalize(m.get4(mem, L.body_q + 7 * k + 3, t))
            r = m.quat_to_matrix(q)
            x = m.get3(mem, L.body_q + 7 * k, t)
            w = m.get3(mem, L.body_qd + 6 * k + 3, t)
            com = m.apply_plus(r, m.body_com(P, t, k), x)
            m.put4(mem, L.quat + 4 * k, t, q)
            m.put9(mem, L.rot + 9 * k, t, r)
            m.put3(mem, L.pos + 3 * k, t, x)
            m.put6(mem, L.twist + 6 * k, t, m.spatial(m.cross_plus(com, w, m.get3(mem, L.body_qd + 6 * k, t)), w))

    @m.func
    def no_surface(t, points: int, dt: m.lane, T, P, L, mem):
        return

    @m.func
    def find_on_surface(t, points: int, dt: m.lane, T, P, L, mem):
        if m.surface_is_near(t, t, 0, T, P, L, mem):
            m.detect_on_surface(t, t, 0, dt, T, P, L, mem)
        else:
            for c in range(points):
                m.put(mem, L.near + c, t, m.fill(real(FAR)))

    on_surface = find_on_surface if surfaces else no_surface
    options = module_options(GENERAL_FLAGS, width)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def narrow(
        first: int, shares: int, columns: int, C: Crowd, B: Blocks, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory,
        found: wp.array[m.lane],
    ):  # fmt: skip
        t = wp.tid() % columns
        n = B.blocks[0]
        if n > B.group_of_block.shape[0]:
            return
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        dt = m.fill(real(LOOKAHEAD))
        # Warp unrolls loops over constants
        lanes = int(width)
        for b in range(start, wp.min(start + each, n)):
            g = B.group_of_block[b]
            kind = B.groups[g, KIND_ONE]
            other = B.groups[g, KIND_TWO]
            points = B.groups[g, POINTS_OF]
            T.pair_table = B.pair_table[g]
            T.collider_kind = B.kinds[g]
            T.hull_count = B.hulls[g]
            for k in range(lanes):
                p = B.lanes[b * width + k]
                if p < 0:
                    p = B.lanes[b * width]
                one = B.owner[p]
                two = B.partner[p]
                if kind == PLANE:
                    give_shape(C, two, one, COLLIDERS_AT, k, t, P.varying)
                    give_plane(C, one, k, t, P.varying)
                    put_body(C, C.shape_body[two], 0, k, t, P.varying, L, mem)
                    put_body(C, -1, 1, k, t, P.varying, L, mem)
                    if other == HULL:
                        give_hull(C, two, HULLS_AT, B.groups[g, HULL_TWO], k, t, P.varying)
                else:
                    give_shape(C, one, one, COLLIDERS_AT, k, t, P.varying)
                    give_shape(C, two, two, COLLIDERS_AT + COLLIDER, k, t, P.varying)
                    put_body(C, C.shape_body[one], 0, k, t, P.varying, L, mem)
                    put_body(C, C.shape_body[two], 1, k, t, P.varying, L, mem)
                    if kind == HULL:
                        give_hull(C, one, HULLS_AT, B.groups[g, HULL_ONE], k, t, P.varying)
                    if other == HULL:
                        at = HULLS_AT + 3 * B.groups[g, HULL_ONE]
                        give_hull(C, two, at, B.groups[g, HULL_TWO], k, t, P.varying)
            move_bodies(t, T, P, L, mem)
            if kind == PLANE:
                m.detect(t, t, 0, dt, T, P, L, mem)
            else:
                m.place_shapes(t, t, dt, T, P, L, mem)
                m.know_box_of(t, t, 0, T, P, L, mem)
                m.know_box_of(t, t, 1, T, P, L, mem)
                if other >= FIELD:
                    on_surface(t, points, dt, T, P, L, mem)
                else:
                    m.pair_is_near(t, t, 0, dt, T, P, L, mem)
                    m.detect_pair(t, t, 0, dt, T, P, L, mem)
            for c in range(points):
                at = FOUND * (B.candidate[b] + c)
                found[at + NEAR] = m.get(mem, L.near + c, t)
                found[at + GAP_AT] = m.get(mem, L.gap + c, t)
                for j in range(3):
                    found[at + POINT_AT + j] = m.get(mem, L.point + 3 * c + j, t)
                    if kind != PLANE:
                        found[at + NORMAL_AT + j] = m.get(mem, L.normal + 3 * c + j, t)

    return narrow


@cache
def list_kernels(real, width: int):
    """Kernels ``(tally, write, depths)`` over shares of pairs: the number of contacts of each pair; the list; and what
    :mod:`kernels.collision.ration` needs to know of each contact."""
    Crowd, Blocks = crowd_struct(real), block_struct()
    vec3 = wp.types.vector(3, real)

    @wp.kernel(module=crowd_module(real, width), enable_backward=False)
    def tally(first: int, shares: int, B: Blocks, found: wp.array[real], counts: wp.array[int]):
        room = counts.shape[0]
        n = wp.min(B.total[0], B.owner.shape[0])
        each = (room + shares - 1) // shares
        start = (first + wp.tid()) * each
        for p in range(start, wp.min(start + each, room)):
            many = int(0)
            if p < n:
                at = B.place[p]
                base = at // width * FOUND * width + at % width
                for c in range(B.groups[B.group[p], POINTS_OF]):
                    if found[base + c * FOUND * width] < real(0.0):
                        many += 1
            counts[p] = many

    @wp.kernel(module=crowd_module(real, width), enable_backward=False)
    def write(
        first: int,
        shares: int,
        C: Crowd,
        B: Blocks,
        found: wp.array[real],
        starts: wp.array[int],
        # contacts that are listed before these
        before: wp.array[int],
        # if there is no room for all: which contacts are kept, and the place of the first one of each pair
        numbers: wp.array[real],
        moved: wp.array[int],
        # out:
        total: wp.array[int],
        shape0: wp.array[int],
        shape1: wp.array[int],
        point0: wp.array[vec3],
        point1: wp.array[vec3],
        normal: wp.array[vec3],
        margin0: wp.array[real],
        margin1: wp.array[real],
    ):
        if first + wp.tid() == 0:
            total[0] = before[0] + starts[starts.shape[0] - 1]
        rationed = numbers.shape[0] > 0 and before[0] + starts[starts.shape[0] - 1] > shape0.shape[0]
        n = wp.min(B.total[0], B.owner.shape[0])
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        for p in range(start, wp.min(start + each, n)):
            i = before[0] + starts[p]
            k = starts[p]
            if rationed:
                i = moved[p]
            at = B.place[p]
            base = at // width * FOUND * width + at % width
            one = B.owner[p]
            two = B.partner[p]
            for c in range(B.groups[B.group[p], POINTS_OF]):
                e = base + c * FOUND * width
                if found[e] < real(0.0) and i < shape0.shape[0]:
                    k += 1
                    if rationed:
                        if numbers[2 * k - 1] < real(0.0):
                            continue
                    x = vec3(
                        found[e + POINT_AT * width],
                        found[e + (POINT_AT + 1) * width],
                        found[e + (POINT_AT + 2) * width],
                    )
                    up = vec3(
                        found[e + NORMAL_AT * width],
                        found[e + (NORMAL_AT + 1) * width],
                        found[e + (NORMAL_AT + 2) * width],
                    )
                    if C.kind[one] == PLANE:
                        turn = wp.transform_get_rotation(C.shape_transform[one])
                        up = wp.quat_rotate(turn, vec3(real(0.0), real(0.0), real(1.0)))
                    half = real(0.5) * (found[e + GAP_AT * width] + C.shape_margin[one] + C.shape_margin[two])
                    near = x - up * half
                    far = x + up * half
                    if C.shape_body[one] >= 0:
                        near = wp.transform_point(wp.transform_inverse(C.body_q[C.shape_body[one]]), near)
                    if C.shape_body[two] >= 0:
                        far = wp.transform_point(wp.transform_inverse(C.body_q[C.shape_body[two]]), far)
                    shape0[i] = one
                    shape1[i] = two
                    point0[i] = near
                    point1[i] = far
                    normal[i] = up
                    margin0[i] = C.shape_margin[one]
                    margin1[i] = C.shape_margin[two]
                    i += 1

    # few scenes have a budget of contacts
    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def depths(
        first: int, shares: int, B: Blocks, found: wp.array[real], starts: wp.array[int], numbers: wp.array[real]
    ):
        n = wp.min(B.total[0], B.owner.shape[0])
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        for p in range(start, wp.min(start + each, n)):
            k = starts[p]
            at = B.place[p]
            base = at // width * FOUND * width + at % width
            for c in range(B.groups[B.group[p], POINTS_OF]):
                e = base + c * FOUND * width
                if found[e] < real(0.0):
                    numbers[2 * k] = found[e + GAP_AT * width]
                    numbers[2 * k + 1] = real(0.0)
                    k += 1

    return tally, write, depths


def pair_row(kind: int, other: int, points: int, hull_one: int, hull_two: int, surface: int) -> list[int]:
    """The row of ``pair_table`` of a group: two shapes on two bodies, the pair, and where its candidates end."""
    second = surface if other >= FIELD else hull_one
    shapes = [0, kind, 0, hull_one, 1, other, second, hull_two]
    row = [*shapes, 0, 1, -1, -1, 0, 0, *[0] * (PAIR_TABLE - 1), points]
    assert len(row) == 2 * SHAPE_TABLE + 2 * PAIR_TABLE
    return row
