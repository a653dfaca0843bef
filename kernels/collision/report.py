"""Contacts of a step with their forces, as a list.

A step keeps, for each active contact of a block, where the contact is in each world. Kernels over clusters count the contacts of each
cluster, and write them one after the other.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.collision.cores import core_function
from newton_like.kernels.collision.pairs.records import SLOT, SLOT_GAP, SLOT_NEAR, SLOT_NORMAL, SLOT_POINT
from newton_like.kernels.pieces import listed_number
from newton_like.kernels.tree import GIVEN, GIVEN_NORMAL, PAIR_TABLE

# An active contact, at REPORT * n: negative where it acts; the distance of the surfaces; the point halfway between them, about the origin
# of a tree; and for pairs of shapes the normal.
REPORT = 8
ACTS, GAP, PLACE, AWAY = 0, 1, 2, 5


def report_function(m: types.SimpleNamespace, slotted: bool):
    """For the namespace `m`: ``report_contact``, which a step calls for each active contact; `slotted`: whether they are in slots."""

    @m.func
    def report_contact(b, t, c: int, n: int, T, L, mem, report: m.memory):
        """Keeps where active contact n, candidate c, is."""
        at = REPORT * n
        m.keep(mem, L.near + c, at + ACTS, t, report, b, 1)
        m.keep(mem, L.gap + c, at + GAP, t, report, b, 1)
        m.keep(mem, L.point + 3 * c, at + PLACE, t, report, b, 3)
        if c >= T.first_paired:
            m.keep(mem, L.normal + 3 * (c - T.first_paired), at + AWAY, t, report, b, 3)

    @m.func
    def report_slot(b, t, c: int, n: int, T, L, mem, report: m.memory):
        """Keeps where the contact in slot n is."""
        at = REPORT * n
        own = L.slot + SLOT * n
        m.keep(mem, own + SLOT_NEAR, at + ACTS, t, report, b, 1)
        m.keep(mem, own + SLOT_GAP, at + GAP, t, report, b, 1)
        m.keep(mem, own + SLOT_POINT, at + PLACE, t, report, b, 3)
        m.keep(mem, own + SLOT_NORMAL, at + AWAY, t, report, b, 3)

    return report_slot if slotted else report_contact


@cache
def report_kernels(real) -> types.SimpleNamespace:
    """Kernels over the clusters of a batch, and the structs of their arguments: `count` and `write` count and write the contacts of the
    last step, `depths` writes what :mod:`kernels.collision.ration` needs to know of each, if there is no room for all."""
    vec3 = wp.types.vector(3, real)
    wrench = wp.types.vector(6, real)
    transform = wp.types.transformation(real)

    @wp.struct
    class Places:
        # numbers kept of a contact, and the first candidate that is a pair of shapes
        rows: int
        first_paired: int
        # where the candidates of contacts in slots are among what is kept, -1 if contacts are not in slots
        candidates_at: int
        # of each candidate: the collider or pair, and the tree about whose origin its point is
        candidate_of: wp.array[int]
        candidate_tree: wp.array[int]
        # of each cluster: shapes and planes of colliders, both shapes of pairs, and the first articulation
        shapes: wp.array2d[int]
        planes: wp.array2d[int]
        ones: wp.array2d[int]
        twos: wp.array2d[int]
        articulation: wp.array[int]

    @wp.struct
    class Memory:
        # what a step keeps of a batch: active contacts, their forces, and where they are
        kept_active: wp.array2d[int]
        kept: wp.array3d[real]
        report: wp.array3d[real]
        # the place of each cluster in these, empty if they are in the order of the batch
        place: wp.array[int]

    @wp.struct
    class Scene:
        # poses of bodies, and origins of articulations, in the middle of the step
        body_q: wp.array[transform]
        origin: wp.array[vec3]
        # arrays of the model
        shape_body: wp.array[int]
        shape_transform: wp.array[transform]
        shape_margin: wp.array[real]
        body_com: wp.array[vec3]

    @wp.struct
    class ContactList:
        # arrays of a list of contacts; `force` may be empty
        shape0: wp.array[int]
        shape1: wp.array[int]
        point0: wp.array[vec3]
        point1: wp.array[vec3]
        normal: wp.array[vec3]
        margin0: wp.array[real]
        margin1: wp.array[real]
        force: wp.array[wrench]

    @wp.kernel(module="unique", enable_backward=False)
    def count(
        P: Places,
        K: Memory,
        # out:
        counts: wp.array[int],
    ):
        a = wp.tid()
        width = K.report.shape[2]
        b = listed_number(K.place, a) // width
        lane = listed_number(K.place, a) % width
        found = int(0)
        for n in range(K.kept_active[b, 0]):
            if K.report[b, REPORT * n + ACTS, lane] < real(0.0):
                found += 1
        counts[P.articulation[a]] = found

    @wp.func
    def to_body(x: vec3, body: int, body_q: wp.array[transform]) -> vec3:
        """The point x of the world in the frame of a body; -1 is the world."""
        if body >= 0:
            return wp.transform_point(wp.transform_inverse(body_q[body]), x)
        return x

    @wp.kernel(module="unique", enable_backward=False)
    def depths(
        P: Places,
        K: Memory,
        room: int,
        starts: wp.array[int],
        # out:
        numbers: wp.array[real],
    ):
        if starts[starts.shape[0] - 1] <= room:
            return
        a = wp.tid()
        width = K.report.shape[2]
        b = listed_number(K.place, a) // width
        lane = listed_number(K.place, a) % width
        k = int(starts[P.articulation[a]])
        for n in range(K.kept_active[b, 0]):
            if K.report[b, REPORT * n + ACTS, lane] < real(0.0):
                numbers[2 * k] = K.report[b, REPORT * n + GAP, lane]
                numbers[2 * k + 1] = real(0.0)
                k += 1

    @wp.kernel(module="unique", enable_backward=False)
    def write(
        P: Places,
        K: Memory,
        M: Scene,
        starts: wp.array[int],
        # if there is no room for all: which contacts are kept, and the place of the first one of each cluster
        numbers: wp.array[real],
        moved: wp.array[int],
        # out:
        C: ContactList,
    ):
        a = wp.tid()
        width = K.report.shape[2]
        b = listed_number(K.place, a) // width
        lane = listed_number(K.place, a) % width
        first = P.articulation[a]
        i = int(starts[first])
        k = int(i)
        end = starts[first + 1]
        rationed = numbers.shape[0] > 0 and starts[starts.shape[0] - 1] > C.shape0.shape[0]
        if rationed:
            i = moved[first]
        for n in range(K.kept_active[b, 0]):
            if k >= end or i >= C.shape0.shape[0]:
                return
            at = REPORT * n
            if K.report[b, at + ACTS, lane] < real(0.0):
                k += 1
                if rationed:
                    if numbers[2 * k - 1] < real(0.0):
                        continue
                c = K.kept_active[b, 1 + n]
                if P.candidates_at >= 0:
                    c = int(K.kept[b, P.candidates_at + n, lane])
                s = P.candidate_of[c]
                x = M.origin[first + P.candidate_tree[c]]
                x += vec3(
                    K.report[b, at + PLACE, lane], K.report[b, at + PLACE + 1, lane], K.report[b, at + PLACE + 2, lane]
                )
                p = P.rows * n
                f = vec3(K.kept[b, p, lane], K.kept[b, p + 1, lane], K.kept[b, p + 2, lane])
                turn = vec3(real(0.0), real(0.0), real(0.0))
                if P.rows == 6:
                    turn = vec3(K.kept[b, p + 3, lane], K.kept[b, p + 4, lane], K.kept[b, p + 5, lane])
                one = int(0)
                two = int(0)
                up = vec3(real(0.0), real(0.0), real(0.0))
                if c < P.first_paired:
                    one = P.planes[a, s]
                    two = P.shapes[a, s]
                    q = wp.transform_get_rotation(M.shape_transform[one])
                    up = wp.quat_rotate(q, vec3(real(0.0), real(0.0), real(1.0)))
                    if P.candidates_at < 0:
                        # forces on planes are kept along the normal and both tangents
                        f = wp.quat_rotate(q, vec3(f[1], f[2], f[0]))
                        turn = wp.quat_rotate(q, vec3(turn[1], turn[2], turn[0]))
                else:
                    one = P.ones[a, s]
                    two = P.twos[a, s]
                    up = vec3(
                        K.report[b, at + AWAY, lane], K.report[b, at + AWAY + 1, lane], K.report[b, at + AWAY + 2, lane]
                    )
                half = real(0.5) * (K.report[b, at + GAP, lane] + M.shape_margin[one] + M.shape_margin[two])
                C.shape0[i] = one
                C.shape1[i] = two
                C.point0[i] = to_body(x - up * half, M.shape_body[one], M.body_q)
                C.point1[i] = to_body(x + up * half, M.shape_body[two], M.body_q)
                C.normal[i] = up
                C.margin0[i] = M.shape_margin[one]
                C.margin1[i] = M.shape_margin[two]
                if C.force.shape[0] > 0:
                    # what is kept acts on the second shape
                    arm = x
                    if M.shape_body[one] >= 0:
                        arm = x - wp.transform_point(M.body_q[M.shape_body[one]], M.body_com[M.shape_body[one]])
                    moment = wp.cross(f, arm) - turn
                    C.force[i] = wrench(-f[0], -f[1], -f[2], moment[0], moment[1], moment[2])
                i += 1

    return types.SimpleNamespace(
        count=count, depths=depths, write=write, Places=Places, Memory=Memory, Scene=Scene, ContactList=ContactList
    )


@cache
def row_axes(real):
    """The function ``(f, n)`` that gives a vector in world axes, from its components along n and both tangents of n."""
    vec3 = wp.types.vector(3, real)

    @wp.func
    def from_row_axes(f: vec3, n: vec3) -> vec3:
        # the basis of `tangent` and `second_tangent` in kernels.spatial
        sign = real(1.0)
        if n[2] < real(0.0):
            sign = real(-1.0)
        g = -real(1.0) / (sign + n[2])
        h = n[0] * n[1] * g
        one = vec3(real(1.0) + sign * n[0] * n[0] * g, sign * h, -sign * n[0])
        two = vec3(h, sign + n[1] * n[1] * g, -n[1])
        return f[0] * n + f[1] * one + f[2] * two

    return from_row_axes


@cache
def handed_force_kernel(real):
    """Kernel over the contacts of a list: the wrenches of those that a batch was handed."""
    vec3 = wp.types.vector(3, real)
    wrench = wp.types.vector(6, real)
    transform = wp.types.transformation(real)
    from_row_axes, to_core = row_axes(real), core_function(real)

    @wp.func
    def in_world(x: vec3, body: int, body_q: wp.array[transform]) -> vec3:
        if body >= 0:
            return wp.transform_point(body_q[body], x)
        return x

    @wp.kernel(module="unique", enable_backward=False)
    def handed_forces(
        rows: int,
        first_paired: int,
        home: wp.array[int],
        given: wp.array3d[real],
        kept_active: wp.array2d[int],
        kept: wp.array3d[real],
        shape0: wp.array[int],
        shape1: wp.array[int],
        point0: wp.array[vec3],
        point1: wp.array[vec3],
        normal: wp.array[vec3],
        margin0: wp.array[real],
        margin1: wp.array[real],
        # poses in the middle of the step
        body_q: wp.array[transform],
        shape_body: wp.array[int],
        body_com: wp.array[vec3],
        shape_type: wp.array[int],
        shape_transform: wp.array[transform],
        shape_scale: wp.array[vec3],
        # out:
        force: wp.array[wrench],
    ):
        i = wp.tid()
        if home[i] == 0:
            return
        candidates = given.shape[1] // GIVEN
        width = given.shape[2]
        place = home[i] // 2 - 1
        a = place // candidates
        c = place % candidates
        b = a // width
        lane = a % width
        found = int(-1)
        for n in range(kept_active[b, 0]):
            if kept_active[b, 1 + n] == c:
                found = n
        if found < 0:
            return
        p = rows * found
        f = vec3(kept[b, p, lane], kept[b, p + 1, lane], kept[b, p + 2, lane])
        turn = vec3(real(0.0), real(0.0), real(0.0))
        if rows == 6:
            turn = vec3(kept[b, p + 3, lane], kept[b, p + 4, lane], kept[b, p + 5, lane])
        if c < first_paired:
            at = GIVEN * c + GIVEN_NORMAL
            axis = vec3(given[b, at, lane], given[b, at + 1, lane], given[b, at + 2, lane])
            f = from_row_axes(f, axis)
            turn = from_row_axes(turn, axis)
        up = normal[i]
        # as in the step: spheres and capsules touch with their cores
        inwards = to_core(shape0[i], point0[i], shape_body, shape_type, shape_transform, shape_scale)
        away = to_core(shape1[i], point1[i], shape_body, shape_type, shape_transform, shape_scale)
        one = in_world(point0[i] + inwards, shape_body[shape0[i]], body_q)
        two = in_world(point1[i] + away, shape_body[shape1[i]], body_q)
        first = margin0[i] + wp.length(inwards)
        second = margin1[i] + wp.length(away)
        half = real(0.5) * (wp.dot(up, two - one) - first - second)
        # what is kept acts on the second shape, on whose point the place of the contact depends, and what is written on shape 0
        arm = one + up * (half + first)
        if home[i] % 2 == 0:
            f = -f
            turn = -turn
            arm = two - up * (half + second)
        if shape_body[shape0[i]] >= 0:
            arm = arm - wp.transform_point(body_q[shape_body[shape0[i]]], body_com[shape_body[shape0[i]]])
        moment = wp.cross(arm, f) + turn
        force[i] = wrench(f[0], f[1], f[2], moment[0], moment[1], moment[2])

    return handed_forces


@cache
def force_kernel(real):
    """Kernel over clusters: adds up the contact force on each shape from the forces that a step keeps for its warm start."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)
    from_row_axes = row_axes(real)

    @wp.kernel(module="unique", enable_backward=False)
    def gather_forces(
        rows: int,
        first_paired: int,
        candidate_collider: wp.array[int],
        shapes: wp.array2d[int],
        planes: wp.array2d[int],
        pair_table: wp.array[int],
        # where the pairs begin in it
        first_pair: int,
        pair_shapes: wp.array2d[int],
        shape_transform: wp.array[transform],
        kept_active: wp.array2d[int],
        kept: wp.array3d[real],
        # where the candidates of contacts in slots are among what is kept, -1 if contacts are not in slots
        candidates_at: int,
        # the place of each cluster in what is kept, empty if they are in the order of the batch
        place: wp.array[int],
        # contacts that were handed over; without columns if the step found them
        given: wp.array3d[real],
        # out:
        force: wp.array[vec3],
    ):
        a = wp.tid()
        width = kept.shape[2]
        b = listed_number(place, a) // width
        lane = listed_number(place, a) % width
        for n in range(kept_active[b, 0]):
            c = kept_active[b, 1 + n]
            if candidates_at >= 0:
                c = int(kept[b, candidates_at + n, lane])
                if c < 0:
                    continue
            s = candidate_collider[c]
            f = vec3(kept[b, rows * n, lane], kept[b, rows * n + 1, lane], kept[b, rows * n + 2, lane])
            if c >= first_paired:
                # in world axes, from the first shape to the second one
                row = first_pair + PAIR_TABLE * s
                one = pair_shapes[a, pair_table[row]]
                two = pair_shapes[a, pair_table[row + 1]]
                # fixed shapes may be those of several clusters
                if pair_table[row + 3] >= 0:
                    force[one] = force[one] - f
                if pair_table[row + 2] >= 0:
                    force[two] = force[two] + f
                continue
            shape = shapes[a, s]
            if shape < 0:
                # a place that the cluster has no shape for
                continue
            if candidates_at >= 0:
                force[shape] = force[shape] + f
                continue
            if given.shape[1] > 0:
                at = GIVEN * c + GIVEN_NORMAL
                up = vec3(given[b, at, lane], given[b, at + 1, lane], given[b, at + 2, lane])
                force[shape] = force[shape] + from_row_axes(f, up)
                continue
            q = wp.transform_get_rotation(shape_transform[planes[a, s]])
            force[shape] = force[shape] + wp.quat_rotate(q, vec3(f[1], f[2], f[0]))

    return gather_forces
