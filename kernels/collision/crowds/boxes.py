"""Boxes about the shapes of crowds, along the axes of the world, and the pairs of shapes whose boxes overlap.

Each crowd has a tree of boxes over its shapes, in the order of a curve that fills space (Morton 1966); the shapes on no body that belong
to all worlds have one of their own. A node holds eight boxes. The tree is implicit: node i of a level holds nodes or shapes 8 i to 8 i + 7
of the level below. Its order decides how long the search takes, and not what it finds.

A row is a shape on a body that moves. It lists its partners: planes, shapes that do not move, and the shapes on other bodies that have a
higher index, in the order of their indices. So the order of pairs does not depend on the search, nor on other worlds.
"""

from functools import cache

import warp as wp
from newton_like.kernels.collision.collect import LOOKAHEAD
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, SPHERE
from newton_like.kernels.collision.surfaces.records import FIELD, TRIANGLES
from newton_like.kernels.simd import GENERAL_FLAGS, module_options

PLANE = -1
"""The kind of planes, beside those of `kernels.collision.plane` and `kernels.collision.surfaces.records`."""

LEVELS = 9
"""Largest number of levels of a tree: 8 to this power is above 1e8 shapes."""

NODE = 48
"""Numbers of a node: of its eight boxes the lower corners, x of all, then y, then z, and the same of the upper corners."""

KEPT = 24
"""Partners of a row that are kept between counting and writing; rows with more are searched again."""

_CELLS = 65535.0
"""Cells of the curve along each axis, less one."""

_FAR = 1.0e30


@cache
def crowd_module(real, width: int = 1):
    """The module of these kernels: they are needed together, and compile at once in less time."""
    module = wp.get_module(f"newton_like.crowds.{real.__name__}.{width}")
    # sums and products are rounded one by one, on all devices
    module.options.update(enable_backward=False, fuse_fp=False, **module_options(GENERAL_FLAGS, 8))
    return module


@cache
def crowd_struct(real):
    """The struct of all crowds of a model."""
    vec3 = wp.types.vector(3, real)
    transform, twist6, quat = wp.types.transformation(real), wp.types.vector(6, real), wp.types.quaternion(real)

    @wp.struct
    class Crowd:
        # of items, the shapes that trees hold, tree by tree: the shape, and the tree; of trees: their first items, and the end
        shape: wp.array[int]
        tree: wp.array[int]
        first: wp.array[int]
        # of trees: the number of levels, and of each level the first node; of nodes of the lowest level: the tree
        levels: wp.array[int]
        level_at: wp.array2d[int]
        tree_of_node: wp.array[int]
        # the tree of shapes that belong to all worlds, -1: there is none
        shared: int
        # items in the order of the curve, eight for each node of the lowest level, -1 for none; and all nodes
        order: wp.array[int]
        nodes: wp.array[real]
        # boxes of items along the axes of the world; and in axes of their own about a core: the middle, the orientation, half sides; then
        # the distance of the surface from the core, the radius of a ball about the middle, and how far from the surface contacts may be
        low: wp.array[vec3]
        high: wp.array[vec3]
        middle: wp.array[vec3]
        turn: wp.array[quat]
        half: wp.array[vec3]
        extent: wp.array[vec3]
        # of rows, KEPT partners at most as the search finds them
        near: wp.array[int]
        # of rows: the item; of trees: their planes and height fields
        row: wp.array[int]
        floor: wp.array[int]
        first_floor: wp.array[int]
        # of shapes: kind and class; whether they move; the box of a hull or mesh in the axes of the shape, without
        # the factors of a mesh
        kind: wp.array[int]
        sort: wp.array[int]
        # the place in the order of partners: shapes of all worlds, then others
        rank: wp.array[int]
        moves: wp.array[int]
        hull_low: wp.array[vec3]
        hull_high: wp.array[vec3]
        hull_first: wp.array[int]
        hull_count: wp.array[int]
        hull_points: wp.array[vec3]
        # pairs that are filtered, as 2^32 smaller + larger index, in ascending order
        filters: wp.array[wp.int64]
        # of two classes: the group of pairs, -1: contacts are not looked for
        group: wp.array2d[int]
        # Model and State
        shape_body: wp.array[int]
        shape_group: wp.array[int]
        shape_transform: wp.array[transform]
        shape_scale: wp.array[vec3]
        shape_margin: wp.array[real]
        shape_gap: wp.array[real]
        shape_radius: wp.array[real]
        body_com: wp.array[vec3]
        body_q: wp.array[transform]
        body_qd: wp.array[twist6]

    return Crowd


@cache
def box_kernels(real):
    """Kernels that compute the boxes of items, order items along the curve, and build the trees; see :func:`row_kernels` for the search."""
    Crowd = crowd_struct(real)
    vec3, transform = wp.types.vector(3, real), wp.types.transformation(real)

    @wp.func
    def half_sides(size: vec3, kind: int) -> vec3:
        """Half the sides of the box about the core of a shape."""
        half = vec3(size[0], size[0], size[1])
        if kind == SPHERE:
            half = vec3(real(0.0), real(0.0), real(0.0))
        if kind == CAPSULE:
            half = vec3(real(0.0), real(0.0), size[1])
        if kind == BOX or kind == ELLIPSOID:
            half = size
        return half

    @wp.kernel(module=crowd_module(real), enable_backward=False)
    def bound(first: int, shares: int, C: Crowd):
        """The boxes of items, with what a shape can touch in two steps."""
        n = C.shape.shape[0]
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        for i in range(start, wp.min(start + each, n)):
            s = C.shape[i]
            k = C.shape_body[s]
            kind = C.kind[s]
            size = C.shape_scale[s]
            pose = C.shape_transform[s]
            middle = vec3(real(0.0), real(0.0), real(0.0))
            half = half_sides(size, kind)
            outside = real(0.0)
            ball = wp.length(half)
            if kind == SPHERE or kind == CAPSULE:
                outside = size[0]
                ball = ball + outside
            if kind == CYLINDER or kind == CONE:
                ball = wp.sqrt(size[0] * size[0] + size[1] * size[1])
            if kind == ELLIPSOID:
                ball = wp.max(size)
            if kind == HULL or kind == TRIANGLES:
                one = C.hull_low[s]
                two = C.hull_high[s]
                if kind == TRIANGLES:
                    one = wp.cw_mul(one, size)
                    two = wp.cw_mul(two, size)
                middle = (one + two) * real(0.5)
                half = wp.abs(two - one) * real(0.5)
                ball = wp.length(half)
                if kind == HULL:
                    ball = wp.min(ball, C.shape_radius[s] + wp.length(middle))
            reach = C.shape_margin[s] + C.shape_gap[s]
            if k >= 0:
                body = C.body_q[k]
                twist = C.body_qd[k]
                turn = wp.normalize(wp.transform_get_rotation(body))
                w = vec3(twist[3], twist[4], twist[5])
                pose = wp.transform_multiply(transform(wp.transform_get_translation(body), turn), pose)
                arm = wp.transform_get_translation(pose) - wp.transform_get_translation(body)
                u = vec3(twist[0], twist[1], twist[2]) + wp.cross(w, arm - wp.quat_rotate(turn, C.body_com[k]))
                ahead = real(2.0 * LOOKAHEAD)
                spin = wp.length(w)
                speed = wp.length(u) + spin * (ball + wp.length(middle))
                # contact points lie within this distance of the shape
                reach = reach + ahead * speed * (real(1.0) + ahead * spin)
            own = wp.normalize(wp.transform_get_rotation(pose))
            axes = wp.quat_to_matrix(own)
            x = wp.transform_get_translation(pose) + axes * middle
            # a little more for rounding
            more = real(1.0e-5) * (ball + wp.length(x))
            reach = reach + more
            span = vec3(real(0.0), real(0.0), real(0.0))
            for j in range(3):
                wide = wp.abs(axes[j, 0]) * half[0] + wp.abs(axes[j, 1]) * half[1] + wp.abs(axes[j, 2]) * half[2]
                span[j] = wp.min(wide + outside, ball) + reach
            C.low[i] = x - span
            C.high[i] = x + span
            C.middle[i] = x
            C.turn[i] = own
            C.half[i] = half
            C.extent[i] = vec3(outside, ball, reach)

    @wp.func
    def spread(x: wp.int64) -> wp.int64:
        """The bits of a number below 2^16, three places apart."""
        x = (x | (x << wp.int64(16))) & wp.int64(0x0000FF0000FF)
        x = (x | (x << wp.int64(8))) & wp.int64(0x00F00F00F00F)
        x = (x | (x << wp.int64(4))) & wp.int64(0x0C30C30C30C3)
        return (x | (x << wp.int64(2))) & wp.int64(0x249249249249)

    @wp.func
    def cell(x: real, low: real, scale: real) -> wp.int64:
        place = (x - low) * scale
        # also where a place is not a number
        if not (place > real(0.0)):
            return wp.int64(0)
        if place > real(_CELLS):
            return wp.int64(_CELLS)
        return wp.int64(place)

    @wp.kernel(module=crowd_module(real), enable_backward=False)
    def place(C: Crowd, key: wp.array[wp.int64], item: wp.array[int]):
        """key, item <- the places of items along the curve of their tree."""
        t = wp.tid()
        low = vec3(real(_FAR), real(_FAR), real(_FAR))
        high = -low
        for i in range(C.first[t], C.first[t + 1]):
            x = (C.low[i] + C.high[i]) * real(0.5)
            for j in range(3):
                if x[j] < low[j]:
                    low[j] = x[j]
                if x[j] > high[j]:
                    high[j] = x[j]
        scale = vec3(real(0.0), real(0.0), real(0.0))
        for j in range(3):
            if high[j] > low[j]:
                scale[j] = real(_CELLS) / (high[j] - low[j])
        for i in range(C.first[t], C.first[t + 1]):
            x = (C.low[i] + C.high[i]) * real(0.5)
            code = spread(cell(x[0], low[0], scale[0]))
            code = code | (spread(cell(x[1], low[1], scale[1])) << wp.int64(1))
            code = code | (spread(cell(x[2], low[2], scale[2])) << wp.int64(2))
            key[i] = (wp.int64(t) << wp.int64(48)) | code
            item[i] = i

    @wp.kernel(module=crowd_module(real), enable_backward=False)
    def plant(first: int, shares: int, C: Crowd, item: wp.array[int]):
        """The lowest level of all trees, from items in the order of the curve."""
        n = C.tree_of_node.shape[0]
        # Warp unrolls loops over constants
        eight = int(8)
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        for g in range(start, wp.min(start + each, n)):
            t = C.tree_of_node[g]
            at = C.first[t] + 8 * (g - C.level_at[t, 0])
            for k in range(eight):
                low = vec3(real(_FAR), real(_FAR), real(_FAR))
                high = -low
                i = int(-1)
                if at + k < C.first[t + 1]:
                    i = item[at + k]
                    low = C.low[i]
                    high = C.high[i]
                C.order[8 * g + k] = i
                for j in range(3):
                    C.nodes[NODE * g + 8 * j + k] = low[j]
                    C.nodes[NODE * g + 24 + 8 * j + k] = high[j]

    @wp.kernel(module=crowd_module(real), enable_backward=False)
    def grow(C: Crowd):
        """The other levels of a tree."""
        t = wp.tid()
        eight = int(8)
        below = (C.first[t + 1] - C.first[t] + 7) // 8
        for level in range(1, C.levels[t]):
            here = (below + 7) // 8
            for g in range(here):
                at = NODE * (C.level_at[t, level] + g)
                for k in range(eight):
                    child = NODE * (C.level_at[t, level - 1] + 8 * g + k)
                    for j in range(3):
                        low = real(_FAR)
                        high = real(-_FAR)
                        if 8 * g + k < below:
                            for c in range(eight):
                                # boxes without a place are left out
                                x = C.nodes[child + 8 * j + c]
                                y = C.nodes[child + 24 + 8 * j + c]
                                if x < low:
                                    low = x
                                if y > high:
                                    high = y
                        C.nodes[at + 8 * j + k] = low
                        C.nodes[at + 24 + 8 * j + k] = high
            below = here

    return bound, place, plant, grow


@cache
def row_kernels(real):
    """Kernels ``(search, write)`` over shares of rows, which count the partners of each row, and write the pairs."""
    Crowd = crowd_struct(real)
    vec3 = wp.types.vector(3, real)
    stack, mat33 = wp.types.vector(LEVELS, int), wp.types.matrix((3, 3), real)
    name = {wp.float32: "float", wp.float64: "double"}[real]

    @wp.func_native(
        f"const {name}* b = C.nodes.data + {NODE} * (size_t)node; int found = 0;"
        " for (int k = 0; k < 8; ++k)"
        " found |= ((b[k] <= high[0]) & (b[8 + k] <= high[1]) & (b[16 + k] <= high[2])"
        " & (b[24 + k] >= low[0]) & (b[32 + k] >= low[1]) & (b[40 + k] >= low[2])) << k;"
        " return found;"
    )
    def touched(C: wp.ref[Crowd], node: int, low: vec3, high: vec3) -> int:
        """Which of the eight boxes of a node overlap a box, as bits."""

    @wp.func_native("int k = 0; while (!((bits >> k) & 1)) ++k; return k;")
    def lowest(bits: int) -> int:
        """The place of the lowest bit that is set."""

    @wp.func
    def may_touch(C: wp.ref[Crowd], s: int, o: int) -> bool:
        a = C.shape_group[s]
        b = C.shape_group[o]
        if C.shape_body[s] == C.shape_body[o] or a == 0 or b == 0 or (C.moves[s] == 0 and C.moves[o] == 0):
            return False
        # groups above 0 touch themselves, and those below 0 all others
        if (a > 0 and b > 0) != (a == b):
            return False
        if C.filters.shape[0] > 0:
            code = wp.int64(wp.min(s, o)) * wp.int64(4294967296) + wp.int64(wp.max(s, o))
            n = wp.lower_bound(C.filters, code)
            if n < C.filters.shape[0]:
                if C.filters[n] == code:
                    return False
        return True

    @wp.func
    def beyond(x: vec3, half: vec3) -> real:
        """The distance of a point from a box about the origin."""
        y = wp.abs(x) - half
        y = vec3(wp.max(y[0], real(0.0)), wp.max(y[1], real(0.0)), wp.max(y[2], real(0.0)))
        return wp.length(y)

    @wp.func
    def apart(d: vec3, half: vec3, other: vec3, R: mat33, reach: real) -> bool:
        """Whether a face of the first box separates two boxes by more than `reach`; d: from middle to middle in the axes of the first box;
        R: from the axes of the second one to these."""
        for j in range(3):
            wide = wp.abs(R[j, 0]) * other[0] + wp.abs(R[j, 1]) * other[1] + wp.abs(R[j, 2]) * other[2]
            if wp.abs(d[j]) > half[j] + wide + reach:
                return True
        return False

    @wp.func
    def close(C: wp.ref[Crowd], i: int, j: int) -> bool:
        """Whether the oriented boxes of two items are close to each other. Boxes that only edges separate pass, as in
        `kernels.collision.pairs.boxes`."""
        one = C.extent[i]
        two = C.extent[j]
        reach = one[0] + two[0] + one[2] + two[2]
        d = C.middle[j] - C.middle[i]
        p = C.turn[i]
        q = C.turn[j]
        x = wp.quat_rotate_inv(p, d)
        y = wp.quat_rotate_inv(q, d)
        a = C.half[i]
        b = C.half[j]
        # the ball of either one and the box of the other
        if beyond(x, a) > two[1] + reach - two[0] or beyond(y, b) > one[1] + reach - one[0]:
            return False
        R = wp.quat_to_matrix(wp.quat_inverse(p) * q)
        return not (apart(x, a, b, R, reach) or apart(y, b, a, wp.transpose(R), reach))

    @wp.func
    def near_floor(C: wp.ref[Crowd], o: int, low: vec3, high: vec3) -> bool:
        """Whether a box reaches a plane. Height fields are near everywhere: their programs look at this."""
        if C.kind[o] == FIELD:
            return True
        pose = C.shape_transform[o]
        n = wp.quat_rotate(wp.normalize(wp.transform_get_rotation(pose)), vec3(real(0.0), real(0.0), real(1.0)))
        x = (low + high) * real(0.5) - wp.transform_get_translation(pose)
        return wp.dot(n, x) <= wp.dot(wp.abs(n), high - low) * real(0.5) + C.shape_margin[o] + C.shape_gap[o]

    @wp.func(inline=False)
    def partners_of(C: wp.ref[Crowd], r: int, at: int, end: int, out: wp.array[int]) -> int:
        """Counts the partners of a row. The first ones go to places `at` to `end` of `out`."""
        i = C.row[r]
        s = C.shape[i]
        own = C.tree[i]
        low = C.low[i]
        high = C.high[i]
        n = int(at)
        if C.moves[s] == 0:
            # rows of shapes that move have it as a partner
            return 0
        for f in range(C.first_floor[own], C.first_floor[own + 1]):
            o = C.floor[f]
            if may_touch(C, s, o) and near_floor(C, o, low, high):
                if n < end:
                    out[n] = o
                n += 1
        for turn in range(2):
            t = int(own)
            if turn == 1:
                t = C.shared
            if t >= 0 and (turn == 0 or t != own):
                # depth first: of each level the node, and which of its boxes are still to be looked at
                node = stack()
                left = stack()
                top = C.levels[t] - 1
                level = int(top)
                node[top] = 0
                left[top] = touched(C, C.level_at[t, top], low, high)
                while level <= top:
                    if left[level] == 0:
                        level += 1
                    else:
                        k = lowest(left[level])
                        left[level] = left[level] & (left[level] - 1)
                        e = 8 * node[level] + k
                        if level > 0:
                            level -= 1
                            node[level] = e
                            left[level] = touched(C, C.level_at[t, level] + e, low, high)
                        else:
                            j = C.order[8 * C.level_at[t, 0] + e]
                            o = C.shape[j]
                            if o > s or C.shape_body[o] < 0 or C.moves[o] == 0:
                                if may_touch(C, s, o):
                                    if close(C, i, j):
                                        if n < end:
                                            out[n] = o
                                        n += 1
        return n - at

    @wp.kernel(module=crowd_module(real), enable_backward=False)
    def search(first: int, shares: int, C: Crowd, counts: wp.array[int]):
        """counts <- the numbers of partners of rows."""
        n = C.row.shape[0]
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        for r in range(start, wp.min(start + each, n)):
            counts[r] = partners_of(C, r, KEPT * r, KEPT * (r + 1), C.near)

    @wp.kernel(module=crowd_module(real), enable_backward=False)
    def write(
        first: int,
        shares: int,
        C: Crowd,
        starts: wp.array[int],
        # out:
        owner: wp.array[int],
        partner: wp.array[int],
    ):
        """The pairs of each row, in the order of ranks."""
        n = C.row.shape[0]
        room = partner.shape[0]
        each = (n + shares - 1) // shares
        start = (first + wp.tid()) * each
        for r in range(start, wp.min(start + each, n)):
            at = starts[r]
            end = wp.min(starts[r + 1], room)
            if starts[r + 1] - at > KEPT:
                partners_of(C, r, at, end, partner)
            else:
                for k in range(at, end):
                    partner[k] = C.near[KEPT * r + k - at]
            for k in range(at, end):
                owner[k] = C.shape[C.row[r]]
                o = partner[k]
                p = int(k)
                while p > at and C.rank[partner[wp.max(p - 1, at)]] > C.rank[o]:
                    partner[p] = partner[p - 1]
                    p -= 1
                partner[p] = o

    return search, write
