"""Kernels that collect a list of contacts from candidates, and that assign a list of contacts to the candidates of the solver.

Lists are ordered by articulation and candidate on every device.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.batched import batch_kernel
from newton_like.kernels.collision.plane import FAR
from newton_like.kernels.simd import GENERAL_FLAGS, module_options, simd_types, valid_code

from newton_like.kernels.tree import (  # isort: skip
    GIVEN, GIVEN_MARGIN, GIVEN_NORMAL, GIVEN_ON, GIVEN_OTHER_MARGIN, GIVEN_OTHER_POINT, GIVEN_POINT, GIVEN_SURFACE,
    OMEGA,
)  # fmt: skip

LOOKAHEAD = 1.0 / 120.0
"""Contacts are detected between shapes that come within their gap of each other in twice this time [s]."""


def detect_kernel(m, surfaces: bool = False):
    """Kernel over blocks: computes the candidates of all colliders from the poses and velocities of bodies. `surfaces`: whether shapes may
    touch height fields or meshes."""
    look = m.look_at_pairs_and_surfaces if surfaces else m.look_at_pairs
    real = m.real

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
    """The function that stores the candidates of a block: of all ``near``, the first result; and of those that are near the gap, the point
    and, of pairs, the normal. Those of other candidates keep what they had."""
    real, width = m.real, m.width
    if width == 1:

        @wp.func
        def put(piece: m.Piece, b: int, t: int, i: int, mem: wp.array2d[real]):
            # adding zero turns -0 into +0, as at other widths
            piece.numbers[piece.start + b * piece.stride + i] = mem[piece.row + i, t] + real(0.0)

        @wp.func
        def take_near(
            b: int,
            t: int,
            B: m.Batch,
            results: int,
            pieces: wp.array[m.Piece],
            mask: wp.array[bool],
            mem: wp.array2d[real],
        ):
            count = pieces[0].size
            for c in range(count):
                put(pieces[0], b, t, c, mem)
                if mem[pieces[0].row + c, t] < real(0.0):
                    put(pieces[1], b, t, c, mem)
                    for j in range(3):
                        put(pieces[2], b, t, 3 * c + j, mem)
                    if results > 3:
                        pair = c - count + pieces[3].size // 3
                        if pair >= 0:
                            for j in range(3):
                                put(pieces[3], b, t, 3 * pair + j, mem)

        return take_near

    put = f"""
        auto put = [&](int q, int i, int k) {{
            const auto& piece = pieces.data[q];
            const real_t* from = (const real_t*)(mem.data + piece.row + i);
            piece.numbers.data[piece.start + (size_t)piece.stride * (b * {width} + k) + i] = from[k] + real_t(0);
        }};
    """
    near = f"""
        const int count = B.count, valid = {valid_code(width)}, candidates = pieces.data[0].size;
        const int before = results > 3 ? candidates - pieces.data[3].size / 3 : candidates;
        for (int c = 0; c < candidates; ++c) {{
            simd x; __builtin_memcpy(&x, mem.data + pieces.data[0].row + c, sizeof(simd));
            if (__builtin_reduce_or((simdi)(x < 0)) == 0) continue;
            for (int k = 0; k < valid; ++k) {{
                if (!(x[k] < 0)) continue;
                put(1, c, k);
                for (int j = 0; j < 3; ++j) put(2, 3 * c + j, k);
                if (c >= before) for (int j = 0; j < 3; ++j) put(3, 3 * (c - before) + j, k);
            }}
        }}
    """

    @wp.func_native(f"{simd_types(width, real)} {put} {near}")
    def take_contacts(b: int, B: m.Batch, results: int, pieces: wp.array[m.Piece], mem: m.memory): ...

    @wp.func
    def take_near(
        b: int, t: int, B: m.Batch, results: int, pieces: wp.array[m.Piece], mask: wp.array[bool], mem: m.memory
    ):
        m.take(b, t, B, 1, pieces, mask, mem)
        take_contacts(b, B, results, pieces, mem)

    return take_near


@cache
def collect_kernels(real):
    """Kernels ``(count, write)`` over articulations: they count and write the contacts, the candidates with negative ``near``."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)
    options = module_options(GENERAL_FLAGS, 8)

    # the loops go over all candidates, of which few are near
    @wp.func_native("int n = 0; for (int c = start; c < end; ++c) n += near.data[c] < 0; return n;")
    def count_near(near: wp.array[real], start: int, end: int) -> int: ...

    @wp.func_native("while (c < end && !(near.data[c] < 0)) ++c; return c;")
    def next_near(near: wp.array[real], c: int, end: int) -> int:
        """The first candidate from `c` on that is near, else `end`."""

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def count(
        first_thread: int, near: wp.array[real], first: wp.array[int], number: wp.array[int], counts: wp.array[int]
    ):
        a = first_thread + wp.tid()
        counts[a] = count_near(near, first[a], first[a] + number[a])

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def write(
        first_thread: int,
        near: wp.array[real],
        gap: wp.array[real],
        point: wp.array[vec3],
        first: wp.array[int],
        number: wp.array[int],
        shape: wp.array[int],
        plane: wp.array[int],
        # the normals of candidates of pairs: of each articulation the first one, and how many candidates come before these
        normals: wp.array[vec3],
        first_normal: wp.array[int],
        before_pairs: wp.array[int],
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
        n = starts[a]
        end = wp.min(starts[a + 1], shape0.shape[0])
        start = first[a]
        behind = start + number[a]
        c = next_near(near, start, behind)
        while c < behind and n < end:
            s = shape[c]
            p = plane[c]
            x = point[c]
            rank = c - start - before_pairs[a]
            up = vec3(real(0.0), real(0.0), real(1.0))
            if rank >= 0:
                up = normals[first_normal[a] + rank]
            else:
                up = wp.quat_rotate(wp.transform_get_rotation(shape_transform[p]), up)
            half = real(0.5) * (gap[c] + shape_margin[s] + shape_margin[p])
            shape0[n] = p
            shape1[n] = s
            one = x - up * half
            two = x + up * half
            if shape_body[p] >= 0:
                one = wp.transform_point(wp.transform_inverse(body_q[shape_body[p]]), one)
            if shape_body[s] >= 0:
                two = wp.transform_point(wp.transform_inverse(body_q[shape_body[s]]), two)
            point0[n] = one
            point1[n] = two
            normal[n] = up
            margin0[n] = shape_margin[p]
            margin1[n] = shape_margin[s]
            n += 1
            c = next_near(near, c + 1, behind)

    return count, write


@cache
def hand_over_kernels(real):
    """Kernels ``(keys, place, clear)``: the first two assign a list of contacts, in any order, to the solver's candidates, the third takes
    them away again."""
    vec3 = wp.types.vector(3, real)

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
        material: wp.array2d[real],
        given: wp.array3d[real],
        used: wp.array[int],
        home: wp.array[int],
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
        given[b, at + GIVEN_ON, lane] = real(1.0)
        for j in range(3):
            given[b, at + GIVEN_POINT + j, lane] = mine[j]
            given[b, at + GIVEN_OTHER_POINT + j, lane] = theirs[j]
            given[b, at + GIVEN_NORMAL + j, lane] = up[j]
        given[b, at + GIVEN_MARGIN, lane] = near
        given[b, at + GIVEN_OTHER_MARGIN, lane] = far
        # means of the materials of both shapes; `material` has a time constant in the row OMEGA
        for j in range(material.shape[0]):
            mean = real(0.5) * (material[j, own] + material[j, other])
            if j == OMEGA:
                mean = real(1.0) / wp.max(mean, real(1.0e-6))
            given[b, at + GIVEN_SURFACE + j, lane] = mean
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
