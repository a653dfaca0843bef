"""Parameters of contacts: of colliders with their planes, of pairs of shapes, of laws of contact, and of planes."""

import types

import warp as wp
from newton_like.kernels.parameters.gather import gather_functions

from newton_like.kernels.tree import (  # isort: skip
    CENTER, COLLIDER, DAMPING_RATIO, GAP, HALF_LENGTH, LAW, LAW_MU, LAW_SHIFT, MARGIN, MU, MU_ROLLING, MU_TORSIONAL, NORMAL, OFFSET,
    OFFSET_1, OFFSET_2, OMEGA, PLANE, RADIUS, RESTITUTION, ROTATION, SIZE, SURFACE, TANGENT_1, TANGENT_2,
)  # fmt: skip

FAR = 1.0e10
"""Half an edge of an infinite plane, and a distance at which nothing touches [m]."""

MOST = 1.7e308
"""Numbers above this value count as infinite."""

SQUARES, LARGEST = 4, 8
"""The form of a shape: how many sizes it has, 0 for hulls. The bounding radius is their sum; with SQUARES added to the form, the root of
the sum of their squares; with LARGEST, the largest."""

LAW_TABLE = LAW + 4
"""Numbers of a law in the table that its record is made of: those of the record, the shares of the first shape's, the second one's and the
larger sliding friction, and the margin of a pair, -1 for none."""


def contact_kernels(real, module, module_of_pairs) -> types.SimpleNamespace:
    """For the scalar type `real`, in a module of Warp: the kernels `colliders` and `planes`, and in another one, for models with pairs of
    shapes or soft rows, `pairs`, `laws` and `weights`; with the structs of their arguments."""

    # kernels see names, and no attributes
    f = gather_functions(real)
    Target = f.Target
    Batch = f.Batch
    give = f.give
    give3 = f.give3
    articulation = f.articulation
    fetch = f.fetch
    whole = f.whole
    fetch3 = f.fetch3
    watch = f.watch
    watch_quaternion = f.watch_quaternion
    watch_sizes = f.watch_sizes
    give_turn = f.give_turn
    news = f.news
    is_new = f.is_new
    watch_order = f.watch_order
    watch_pair = f.watch_pair
    prescribed = f.prescribed
    turned = f.turned

    @wp.struct
    class ColliderTables:
        # of each articulation and collider: its shape, its plane, and whether the two may touch
        shapes: wp.array2d[int]
        planes: wp.array2d[int]
        allowed: wp.array2d[wp.bool]
        # the form of each, see above
        forms: wp.array[int]
        # the place in the articulation of the body that moves each collider, if that body may be kinematic; else -1
        driver: wp.array[int]
        # whether contacts have rows about their normal and for rolling
        turning: int

    @wp.struct
    class PairTables:
        # of each articulation and pair: whether the two may touch
        allowed: wp.array2d[wp.bool]
        # the bodies that move both shapes, as for colliders, -2 for none
        driver_one: wp.array[int]
        driver_two: wp.array[int]

    @wp.struct
    class LawTables:
        # of each articulation and contact: both shapes, then -1 for position limits
        one: wp.array2d[int]
        two: wp.array2d[int]
        # those of `newton_like.collision.laws`, and how many numbers those of one articulation have; 0: they are the same for all
        table: wp.array[real]
        stride: int

    @wp.struct
    class ShapeArrays:
        # arrays of the model, as numbers in a row
        body_flags: wp.array[int]
        shape_scale: wp.array[real]
        shape_transform: wp.array[real]
        shape_collision_radius: wp.array[real]
        shape_margin: wp.array[real]
        shape_gap: wp.array[real]
        shape_material_mu: wp.array[real]
        shape_material_restitution: wp.array[real]
        shape_material_time_constant: wp.array[real]
        shape_material_damping_ratio: wp.array[real]
        shape_material_mu_torsional: wp.array[real]
        shape_material_mu_rolling: wp.array[real]

    @wp.func
    def bounding_radius(form: int, size: wp.vec3d):
        """Of a shape with sizes, about its origin."""
        none = wp.float64(0.0)
        y = wp.where((form & 3) > 1, size[1], none)
        z = wp.where((form & 3) > 2, size[2], none)
        radius = size[0] + y + z
        if (form & SQUARES) != 0:
            radius = wp.length(wp.vec3d(size[0], y, z))
        if (form & LARGEST) != 0:
            radius = wp.max(wp.vec3d(size[0], y, z))
        return radius

    @wp.kernel(module=module, enable_backward=False)
    def colliders(G: Target, B: Batch, T: ColliderTables, M: ShapeArrays, collider_at: int):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            s = T.shapes[i, k]
            g = T.planes[i, k]
            at = collider_at + COLLIDER * k
            half = wp.float64(0.5)
            size = fetch3(M.shape_scale, 3 * s)
            center = fetch3(M.shape_transform, 7 * s)
            turn = fetch3(M.shape_transform, 7 * s + 3)
            turn_w = fetch(M.shape_transform, 7 * s + 6)
            radius = fetch(M.shape_collision_radius, s)
            if news(G, at + SIZE, size) or is_new(G, at + RADIUS, radius):
                give3(G, lane, at + SIZE, size)
                watch(G, size[0] + size[1] + size[2])
                watch_order(G, wp.float64(0.0), radius)
                watch(G, radius)
                form = whole(T.forms, k)
                if form != 0:
                    watch_sizes(G, size)
                    # a shape that was enlarged
                    bound = bounding_radius(form, size)
                    if bound > wp.float64(1.0 + 1.0e-5) * radius:
                        radius = bound
                give(G, lane, at + RADIUS, radius)
            if news(G, at + CENTER, center):
                give3(G, lane, at + CENTER, center)
                watch(G, center[0] + center[1] + center[2])
            give_turn(G, lane, at + ROTATION, turn, turn_w)
            surface = at + SURFACE
            sliding = half * (fetch(M.shape_material_mu, s) + fetch(M.shape_material_mu, g))
            give(G, lane, surface + MU, sliding)
            bounce = fetch(M.shape_material_restitution, s) + fetch(M.shape_material_restitution, g)
            give(G, lane, surface + RESTITUTION, half * bounce)
            time = half * (fetch(M.shape_material_time_constant, s) + fetch(M.shape_material_time_constant, g))
            give(G, lane, surface + OMEGA, wp.float64(1.0) / wp.max(time, wp.float64(1.0e-6)))
            damping = fetch(M.shape_material_damping_ratio, s) + fetch(M.shape_material_damping_ratio, g)
            give(G, lane, surface + DAMPING_RATIO, half * damping)
            torsional = half * (fetch(M.shape_material_mu_torsional, s) + fetch(M.shape_material_mu_torsional, g))
            rolling = half * (fetch(M.shape_material_mu_rolling, s) + fetch(M.shape_material_mu_rolling, g))
            most = wp.float64(MOST)
            watch_pair(G, M.shape_material_mu, s, g, most)
            watch_pair(G, M.shape_material_restitution, s, g, wp.float64(1.0))
            watch_pair(G, M.shape_material_time_constant, s, g, most)
            watch_pair(G, M.shape_material_damping_ratio, s, g, most)
            watch_pair(G, M.shape_material_mu_torsional, s, g, most)
            watch_pair(G, M.shape_material_mu_rolling, s, g, most)
            watch_pair(G, M.shape_margin, s, g, most)
            watch_pair(G, M.shape_gap, s, g, most)
            give(G, lane, surface + MU_TORSIONAL, torsional)
            give(G, lane, surface + MU_ROLLING, rolling)
            give(G, lane, surface + MARGIN, fetch(M.shape_margin, s) + fetch(M.shape_margin, g))
            gap = fetch(M.shape_gap, s) + fetch(M.shape_gap, g)
            # contacts do not act on a kinematic body and bodies that are fixed to it
            if not T.allowed[i, k] or prescribed(whole(T.driver, k), B.body_start + B.body_stride * i, M.body_flags):
                gap = wp.float64(-FAR)
            give(G, lane, surface + GAP, gap)
            if T.turning == 0 and (torsional != wp.float64(0.0) or rolling != wp.float64(0.0)):
                G.status[2] = True

    @wp.kernel(module=module_of_pairs, enable_backward=False)
    def pairs(G: Target, B: Batch, T: PairTables, body_flags: wp.array[int], pair_at: int):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            first = B.body_start + B.body_stride * i
            one = whole(T.driver_one, k)
            two = whole(T.driver_two, k)
            # no force moves either of the two
            fixed = one == -2 or prescribed(one, first, body_flags)
            fixed = fixed and (two == -2 or prescribed(two, first, body_flags))
            shift = wp.float64(0.0)
            if fixed or not T.allowed[i, k]:
                shift = wp.float64(-FAR)
            give(G, lane, pair_at + k, shift)

    @wp.kernel(module=module_of_pairs, enable_backward=False)
    def laws(G: Target, T: LawTables, M: ShapeArrays, law_at: int):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            s, g = T.one[i, k], T.two[i, k]
            at = law_at + LAW * k
            start = T.stride * i + LAW_TABLE * k
            for j in range(LAW):
                if s < 0 or (j != LAW_MU and j != LAW_SHIFT):
                    give(G, lane, at + j, fetch(T.table, start + j))
            if s < 0:
                continue
            # of sliding friction there are shares of both numbers and of their maximum, and a number
            x = fetch(M.shape_material_mu, s)
            y = fetch(M.shape_material_mu, g)
            mu = fetch(T.table, start + LAW) * x + fetch(T.table, start + LAW + 1) * y
            mu = mu + fetch(T.table, start + LAW + 2) * wp.max(x, y) + fetch(T.table, start + LAW_MU)
            give(G, lane, at + LAW_MU, mu)
            # a pair has a margin of its own, or none
            shift = fetch(T.table, start + LAW + 3)
            if shift >= wp.float64(0.0):
                shift = fetch(M.shape_margin, s) + fetch(M.shape_margin, g) - shift
            else:
                shift = wp.float64(0.0)
            give(G, lane, at + LAW_SHIFT, shift)

    @wp.kernel(module=module_of_pairs, enable_backward=False)
    def weights(G: Target, inverse: wp.array[real], weight_at: int):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            give(G, lane, weight_at + k, fetch(inverse, G.items * i + k))

    @wp.kernel(module=module, enable_backward=False)
    def planes(G: Target, M: ShapeArrays, planes: wp.array2d[int], finite: wp.array[int], plane_at: int):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            g = planes[i, k]
            at = plane_at + PLANE * k
            x = fetch3(M.shape_transform, 7 * g)
            v = fetch3(M.shape_transform, 7 * g + 3)
            w = fetch(M.shape_transform, 7 * g + 6)
            watch_quaternion(G, v, w)
            none = wp.float64(0.0)
            one = wp.float64(1.0)
            normal = turned(v, w, wp.vec3d(none, none, one))
            tangent_1 = turned(v, w, wp.vec3d(one, none, none))
            tangent_2 = turned(v, w, wp.vec3d(none, one, none))
            offset = wp.dot(normal, x)
            # NaN and infinity in a factor are in the sum, too
            watch_order(G, none, fetch(M.shape_scale, 3 * g))
            watch_order(G, none, fetch(M.shape_scale, 3 * g + 1))
            watch(G, offset + x[0] + x[1] + x[2] + fetch(M.shape_scale, 3 * g) + fetch(M.shape_scale, 3 * g + 1))
            give3(G, lane, at + NORMAL, normal)
            give3(G, lane, at + TANGENT_1, tangent_1)
            give3(G, lane, at + TANGENT_2, tangent_2)
            give(G, lane, at + OFFSET, offset)
            give(G, lane, at + OFFSET_1, wp.dot(tangent_1, x))
            give(G, lane, at + OFFSET_2, wp.dot(tangent_2, x))
            for a in range(2):
                half = wp.float64(0.5) * fetch(M.shape_scale, 3 * g + a)
                if half > none:
                    if finite[k] == 0:
                        G.status[2] = True
                else:
                    half = wp.float64(FAR)
                give(G, lane, at + HALF_LENGTH + a, half)

    return types.SimpleNamespace(
        ColliderTables=ColliderTables, PairTables=PairTables, LawTables=LawTables, ShapeArrays=ShapeArrays, colliders=colliders,
        pairs=pairs, laws=laws, weights=weights, planes=planes,
    )  # fmt: skip
