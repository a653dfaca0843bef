"""Kernels that collect a list of contacts from candidates, and that assign a list of contacts to the candidates of the solver.

Lists are ordered by articulation and candidate on every device.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.batched import batch_kernel
from newton_like.kernels.collision.cores import core_function
from newton_like.kernels.collision.plane import FAR
from newton_like.kernels.parameters.contacts import LAW_TABLE
from newton_like.kernels.simd import GENERAL_FLAGS, module_options, simd_types, valid_code

from newton_like.kernels.tree import (  # isort: skip
    GIVEN, GIVEN_MARGIN, GIVEN_NORMAL, GIVEN_ON, GIVEN_OTHER_MARGIN, GIVEN_OTHER_POINT, GIVEN_POINT, GIVEN_SURFACE,
    LAW, LAW_BY_RULE, LAW_MU, LAW_SHIFT, MU, MU_ROLLING, MU_TORSIONAL, OMEGA,
)  # fmt: skip

LOOKAHEAD = 1.0 / 120.0
"""Contacts are detected between shapes that come within their gap of each other in twice this time [s]."""


def detect_kernel(m, pairs: bool = True, surfaces: bool = False):
    """Kernel over blocks: computes the candidates of all colliders from the poses and velocities of bodies.

    Args:
        m: the namespace of a step.
        pairs: whether there are pairs of shapes on bodies; without them the kernel takes a third of the time to compile.
        surfaces: whether shapes may touch height fields or meshes.
    """
    real = m.real

    @wp.func
    def look_at_none(b: int, t: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """There are no pairs."""

    look = m.look_at_pairs_and_surfaces if surfaces else m.look_at_pairs if pairs else look_at_none

    @wp.func
    def compute(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        for i in range(T.trees):
            m.put3(mem, L.origin + 3 * i, t, m.zero3())
        for k in range(T.bodies):
            pose = L.body_q + 7 * T.body_slot[k]
            velocity = L.body_qd + 6 * T.body_slot[k]
            q = m.quat_normalize(m.get4(mem, pose + 3, t))
            r = m.quat_to_matrix(q)
            x = m.get3(mem, pose, t)
            w = m.get3(mem, velocity + 3, t)
            com = m.apply_plus(r, m.body_com(P, b, k), x)
            m.put4(mem, L.quat + 4 * k, t, q)
            m.put9(mem, L.rot + 9 * k, t, r)
            m.put3(mem, L.pos + 3 * k, t, x)
            m.put6(mem, L.twist + 6 * k, t, m.spatial(m.cross_plus(com, w, m.get3(mem, velocity, t)), w))
        ahead = m.fill(real(LOOKAHEAD))
        for s in range(T.colliders):
            near = bool(True)
            if s >= T.first_guarded:
                near = m.any_lt(m.clearance(b, t, s, ahead, T, P, L, mem), m.fill(real(0.0)))
            if near:
                m.detect(b, t, s, ahead, T, P, L, mem)
            else:
                for c in range(T.collider_candidate[s], T.collider_candidate[s + 1]):
                    m.put(mem, L.near + c, t, m.fill(real(FAR)))
        look(b, t, ahead, T, P, L, mem)

    return batch_kernel(types.SimpleNamespace(**vars(m), take_near=_take_near(m)), compute, result="take_near")


def _take_near(m):
    """The function that stores the contacts of a block, the candidates with negative ``near``, in their order. The four results are their
    number, their gaps and candidates, their points, and the normals of those of pairs (without pairs there are three)."""
    real, width = m.real, m.width
    if width == 1:

        @wp.func
        def put(piece: m.Piece, b: int, i: int, x: real):
            # adding zero turns -0 into +0, as at other widths
            piece.numbers[piece.start + b * piece.stride + i] = x + real(0.0)

        @wp.func
        def take_near(
            b: int, t: int, B: m.Batch, results: int, pieces: wp.array[m.Piece], mask: wp.array[bool], mem: wp.array2d[real],
        ):  # fmt: skip
            candidates = pieces[2].size // 3
            before = int(candidates)
            if results > 3:
                before -= pieces[3].size // 3
            n = int(0)
            paired = int(0)
            for c in range(candidates):
                if mem[pieces[0].row + c, t] < real(0.0):
                    put(pieces[1], b, 2 * n, mem[pieces[1].row + c, t])
                    put(pieces[1], b, 2 * n + 1, real(c))
                    for j in range(3):
                        put(pieces[2], b, 3 * n + j, mem[pieces[2].row + 3 * c + j, t])
                    if c >= before:
                        for j in range(3):
                            put(pieces[3], b, 3 * paired + j, mem[pieces[3].row + 3 * (c - before) + j, t])
                        paired += 1
                    n += 1
            put(pieces[0], b, 0, real(n))

        return take_near

    put = f"""
        auto put = [&](int q, int i, int k, real_t x) {{
            const auto& piece = pieces.data[q];
            piece.numbers.data[piece.start + (size_t)piece.stride * (b * {width} + k) + i] = x + real_t(0);
        }};
        auto at = [&](int q, int i, int k) {{ return ((const real_t*)(mem.data + pieces.data[q].row + i))[k]; }};
    """
    near = f"""
        const int count = B.count, valid = {valid_code(width)}, candidates = pieces.data[2].size / 3;
        const int before = results > 3 ? candidates - pieces.data[3].size / 3 : candidates;
        int n[{width}] = {{}}, paired[{width}] = {{}};
        for (int c = 0; c < candidates; ++c) {{
            simd x; __builtin_memcpy(&x, mem.data + pieces.data[0].row + c, sizeof(simd));
            if (__builtin_reduce_or((simdi)(x < 0)) == 0) continue;
            for (int k = 0; k < valid; ++k) {{
                if (!(x[k] < 0)) continue;
                const int i = n[k]++;
                put(1, 2 * i, k, at(1, c, k));
                put(1, 2 * i + 1, k, c);
                for (int j = 0; j < 3; ++j) put(2, 3 * i + j, k, at(2, 3 * c + j, k));
                if (c < before) continue;
                const int p = paired[k]++;
                for (int j = 0; j < 3; ++j) put(3, 3 * p + j, k, at(3, 3 * (c - before) + j, k));
            }}
        }}
        for (int k = 0; k < valid; ++k) put(0, 0, k, n[k]);
    """

    @wp.func_native(f"{simd_types(width, real)} {put} {near}")
    def take_contacts(b: int, B: m.Batch, results: int, pieces: wp.array[m.Piece], mem: m.memory): ...

    @wp.func
    def take_near(
        b: int, t: int, B: m.Batch, results: int, pieces: wp.array[m.Piece], mask: wp.array[bool], mem: m.memory
    ):
        take_contacts(b, B, results, pieces, mem)

    return take_near


@cache
def collect_kernels(real):
    """Kernels ``(count, add_up, write)``. The first and the last, over articulations, count the contacts of :func:`detect_kernel` and write
    them to a list. The second, a single thread, finds the places in the list from the counts."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)
    options = module_options(GENERAL_FLAGS, 8)

    @wp.func
    def in_body(body_q: wp.array[transform], body: int, x: vec3) -> vec3:
        pose = body_q[body]
        return wp.quat_rotate_inv(wp.transform_get_rotation(pose), x - wp.transform_get_translation(pose))

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def count(found: wp.array[real], counts: wp.array[int]):
        a = wp.tid()
        counts[a] = int(found[a])

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def add_up(first_thread: int, found: wp.array[real], starts: wp.array[int], total: wp.array[int]):
        n = int(0)
        for a in range(found.shape[0]):
            starts[a] = n
            n += int(found[a])
        starts[found.shape[0]] = n
        if total.shape[0] > 0:
            total[0] = n

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def write(
        first_thread: int,
        # of each articulation: number of contacts, and place of the first one among gaps and points, and among normals of pairs
        found: wp.array[real],
        first: wp.array[int],
        first_normal: wp.array[int],
        # the gap and the candidate of each contact
        gap: wp.array[real],
        point: wp.array[vec3],
        normals: wp.array[vec3],
        # of each articulation: number of candidates before those of pairs, where its candidates are, and factor of the steps of shapes
        before_pairs: wp.array[int],
        row: wp.array[int],
        copy: wp.array[int],
        shape: wp.array2d[int],
        plane: wp.array2d[int],
        starts: wp.array[int],
        # Model:
        shape_body: wp.array[int],
        shape_transform: wp.array[transform],
        shape_margin: wp.array[real],
        body_q: wp.array[transform],
        # out:
        shape0: wp.array[int],
        shape1: wp.array[int],
        point0: wp.array[vec3],
        point1: wp.array[vec3],
        normal: wp.array[vec3],
        margin0: wp.array[real],
        margin1: wp.array[real],
    ):
        a = first_thread + wp.tid()
        start = starts[a]
        pair = first_normal[a]
        n = int(start - 1)
        for i in range(int(found[a])):
            k = first[a] + i
            c = int(gap[2 * k + 1])
            if c < 0:
                # `kernels.collision.ration` dropped it
                if -1 - c >= before_pairs[a]:
                    pair += 1
                continue
            n += 1
            if n >= shape0.shape[0]:
                break
            s = shape[0, row[a] + c] + copy[a] * shape[1, row[a] + c]
            p = plane[0, row[a] + c] + copy[a] * plane[1, row[a] + c]
            x = point[k]
            up = vec3(real(0.0), real(0.0), real(1.0))
            if c >= before_pairs[a]:
                up = normals[pair]
                pair += 1
            else:
                up = wp.quat_rotate(wp.transform_get_rotation(shape_transform[p]), up)
            half = real(0.5) * (gap[2 * k] + shape_margin[s] + shape_margin[p])
            shape0[n] = p
            shape1[n] = s
            one = x - up * half
            two = x + up * half
            if shape_body[p] >= 0:
                one = in_body(body_q, shape_body[p], one)
            if shape_body[s] >= 0:
                two = in_body(body_q, shape_body[s], two)
            point0[n] = one
            point1[n] = two
            normal[n] = up
            margin0[n] = shape_margin[p]
            margin1[n] = shape_margin[s]

    return count, add_up, write


@cache
def hand_over_kernels(real):
    """Kernels ``(keys, place, clear)``: the first two assign a list of contacts, in any order, to the solver's candidates, the third takes
    them away again."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)
    to_core = core_function(real)

    @wp.kernel(module="unique", enable_backward=False)
    def keys(
        first: int,
        count: wp.array[int],
        shape0: wp.array[int],
        shape1: wp.array[int],
        # of each shape: 0 fixed, 1 moved by forces, 2 kinematic; and its body
        moves: wp.array[int],
        shape_body: wp.array[int],
        # pairs of shapes on bodies as 2^32 smaller + larger index, in ascending order
        pairs: wp.array[wp.int64],
        key: wp.array[int],
        value: wp.array[int],
    ):
        """key <- the shape that forces move of each contact with one on no body; of two shapes on bodies, of which forces move one or both,
        the number of shapes and the rank of the pair; else 2147483647. value <- the contact's index."""
        i = first + wp.tid()
        value[i] = i
        key[i] = 2147483647
        if i < count[0] and i < shape0.shape[0]:
            a = shape0[i]
            b = shape1[i]
            if a >= 0 and a < moves.shape[0] and b >= 0 and b < moves.shape[0]:
                if moves[a] == 1 and shape_body[b] < 0:
                    key[i] = a
                elif moves[b] == 1 and shape_body[a] < 0:
                    key[i] = b
                elif moves[a] == 1 or moves[b] == 1:
                    code = wp.int64(wp.min(a, b)) * wp.int64(4294967296) + wp.int64(wp.max(a, b))
                    n = wp.lower_bound(pairs, code)
                    if n < pairs.shape[0]:
                        if pairs[n] == code:
                            key[i] = moves.shape[0] + n

    @wp.func
    def pair_with_law(one: int, two: int, codes: wp.array[wp.int64]) -> int:
        """The place of two shapes among the pairs with laws of their own, -1 for none."""
        code = wp.int64(wp.min(one, two)) * wp.int64(4294967296) + wp.int64(wp.max(one, two))
        n = wp.lower_bound(codes, code)
        if n < codes.shape[0]:
            if codes[n] == code:
                return n
        return -1

    @wp.func
    def put_law(
        table: wp.array[wp.float64], start: int, own: int, other: int, material: wp.array2d[real], margin: real,
        given: wp.array3d[real], surface: int, laws: wp.array3d[real], row: int, b: int, lane: int,
    ):  # fmt: skip
        """Stores a law, as the kernel `laws` of `kernels.parameters.contacts`, and its friction as that of the surface."""
        for j in range(LAW):
            laws[b, row + j, lane] = real(table[start + j])
        x = wp.float64(material[MU, own])
        y = wp.float64(material[MU, other])
        mu = (
            table[start + LAW] * x
            + table[start + LAW + 1] * y
            + table[start + LAW + 2] * wp.max(x, y)
            + table[start + LAW_MU]
        )
        laws[b, row + LAW_MU, lane] = real(mu)
        # a pair has a margin of its own, or none
        shift = real(0.0)
        if table[start + LAW + 3] >= wp.float64(0.0):
            shift = margin - real(table[start + LAW + 3])
        laws[b, row + LAW_SHIFT, lane] = shift
        if table[start + LAW_BY_RULE] > wp.float64(0.5):
            given[b, surface + MU, lane] = real(mu)
            given[b, surface + MU_TORSIONAL, lane] = real(table[start + LAW_MU + 1])
            given[b, surface + MU_ROLLING, lane] = real(table[start + LAW_MU + 2])

    @wp.kernel(module="unique", enable_backward=False)
    def place(
        first: int,
        key: wp.array[int],
        value: wp.array[int],
        # of each shape, then of each pair: the articulation of the batch, or -1, the first candidate, the number of candidates, and the
        # shape that normals point to
        articulation: wp.array[int],
        candidate: wp.array[int],
        room: wp.array[int],
        second: wp.array[int],
        shape0: wp.array[int],
        shape1: wp.array[int],
        point0: wp.array[vec3],
        point1: wp.array[vec3],
        normal: wp.array[vec3],
        margin0: wp.array[real],
        margin1: wp.array[real],
        shape_body: wp.array[int],
        shape_type: wp.array[int],
        shape_transform: wp.array[transform],
        shape_scale: wp.array[vec3],
        material: wp.array2d[real],
        # laws of contacts, see `newton_like.collision.laws.ListedLaws`; no classes: contacts have none
        class_of: wp.array[int],
        of_classes: wp.array[wp.float64],
        codes: wp.array[wp.int64],
        of_pairs: wp.array[wp.float64],
        classes: int,
        law_at: int,
        # out:
        given: wp.array3d[real],
        used: wp.array[int],
        home: wp.array[int],
        laws: wp.array3d[real],
    ):
        """Stores the n-th contact of a shape or pair as its n-th candidate. For each stored contact, used <- 1, and home <- the candidate,
        counted over all clusters from 1 on, times 2, plus 1 if the normal was turned round."""
        n = first + wp.tid()
        s = key[n]
        if s == 2147483647:
            return
        a = articulation[s]
        if a < 0:
            return
        slots = room[s]
        rank = int(0)
        while rank < slots and n - rank - 1 >= 0:
            if key[n - rank - 1] != s:
                break
            rank += 1
        if rank >= slots:
            return
        i = value[n]
        own = second[s]
        width = given.shape[2]
        at = GIVEN * (candidate[s] + rank)
        b = a // width
        lane = a % width
        other = shape0[i]
        mine = point1[i]
        theirs = point0[i]
        up = normal[i]
        near = margin1[i]
        far = margin0[i]
        turned = int(0)
        if shape0[i] == own:
            turned = 1
            other = shape1[i]
            mine = point0[i]
            theirs = point1[i]
            up = -normal[i]
            near = margin0[i]
            far = margin1[i]
        # points of spheres and capsules are those of their cores, which have the radius as a margin
        inwards = to_core(own, mine, shape_body, shape_type, shape_transform, shape_scale)
        away = to_core(other, theirs, shape_body, shape_type, shape_transform, shape_scale)
        given[b, at + GIVEN_ON, lane] = real(1.0)
        for j in range(3):
            given[b, at + GIVEN_POINT + j, lane] = mine[j] + inwards[j]
            given[b, at + GIVEN_OTHER_POINT + j, lane] = theirs[j] + away[j]
            given[b, at + GIVEN_NORMAL + j, lane] = up[j]
        given[b, at + GIVEN_MARGIN, lane] = near + wp.length(inwards)
        given[b, at + GIVEN_OTHER_MARGIN, lane] = far + wp.length(away)
        # means of the materials of both shapes; `material` has a time constant in the row OMEGA
        for j in range(material.shape[0]):
            mean = real(0.5) * (material[j, own] + material[j, other])
            if j == OMEGA:
                mean = real(1.0) / wp.max(mean, real(1.0e-6))
            given[b, at + GIVEN_SURFACE + j, lane] = mean
        if classes > 0:
            row = law_at + LAW * (candidate[s] + rank)
            pair = pair_with_law(own, other, codes)
            if pair >= 0:
                put_law(
                    of_pairs,
                    LAW_TABLE * pair,
                    own,
                    other,
                    material,
                    near + far,
                    given,
                    at + GIVEN_SURFACE,
                    laws,
                    row,
                    b,
                    lane,
                )
            else:
                put_law(
                    of_classes, LAW_TABLE * (class_of[own] * classes + class_of[other]), own, other, material, near + far, given,
                    at + GIVEN_SURFACE, laws, row, b, lane,
                )  # fmt: skip
        used[i] = 1
        home[i] = 2 * (a * (given.shape[1] // GIVEN) + candidate[s] + rank + 1) + turned

    @wp.kernel(module="unique", enable_backward=False)
    def clear(first: int, home: wp.array[int], given: wp.array3d[real]):
        """Sets the numbers of candidates to zero that `place` stored; `home` as that kernel left it."""
        c = home[first + wp.tid()] // 2 - 1
        if c < 0:
            return
        candidates = given.shape[1] // GIVEN
        width = given.shape[2]
        a = c // candidates
        at = GIVEN * (c - a * candidates)
        for j in range(GIVEN):
            given[a // width, at + j, a % width] = real(0.0)

    return keys, place, clear
