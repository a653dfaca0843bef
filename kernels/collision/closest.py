"""Closest points of pairs of shapes, without a step: the search for the closest points of two convex shapes over lanes of pairs of the same
kinds, and closed forms for spheres in boxes and cylinders.

A slot is a number of a lane; a pair has one, and slots behind the last pair of a kind repeat it. Signed distances and normals are as in
`kernels.collision.pairs.records`. The solid side of a plane is below its normal.
"""

from functools import cache

import warp as wp
from newton_like.kernels.collision.pairs.work import PER_UNIT
from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, FAR, SPHERE
from newton_like.kernels.simd import GENERAL_FLAGS, module_options

from newton_like.kernels.collision.pairs.records import (  # isort: skip
    AWAY, AXES, CENTRE, DISTANCE, EXTENT, PLACE, SHAPE,
)  # fmt: skip

PLANE = -1
"""The kind of planes, for the kernels of this file."""


def search_kernel(m):
    """Kernel over threads: the closest points of blocks of pairs of the same kinds and hulls."""
    real = m.real

    @wp.func
    def plane_point(
        b: int, other: int, hull: int, count: int, T: m.Tree, P: m.Params, L: m.Layout, t: int, mem: m.memory
    ):
        """manifold <- the point of a convex shape that is deepest below the plane in the first place."""
        m.clear_manifold(t, L, mem)
        n = m.column(m.get9(mem, L.pair_shapes + AXES, t), 2)
        m.scale_pair(b, t, SPHERE, other, 0, 0, hull, count, T, P, L, mem)
        x = m.support(b, t, 1, other, hull, count, m.neg3(n), T, P, L, mem)
        x = m.scale3(x, m.rcp(m.get(mem, L.pair_work + PER_UNIT, t)))
        if other <= CAPSULE:
            x = m.fnma3(n, m.get(mem, L.pair_shapes + SHAPE + EXTENT, t), x)
        distance = m.dot(n, x)
        half = m.mul(m.fill(real(0.5)), distance)
        m.put_pair_point(t, 0, m.fnma3(n, half, x), n, distance, m.fill(real(1.0)), L, mem)

    @wp.func
    def core_point(
        b: int, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int, T: m.Tree, P: m.Params, L: m.Layout, t: int,
        mem: m.memory,
    ):  # fmt: skip
        """manifold <- the closest point of two convex shapes."""
        m.clear_manifold(t, L, mem)
        middle = m.scale_pair(b, t, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        far = m.fill(m.real(FAR))
        touch = m.core_touch(b, t, middle, far, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)
        unit = m.rcp(m.get(mem, L.pair_work + PER_UNIT, t))
        distance = m.mul(touch.distance, unit)
        x = m.scale3(touch.first, unit)
        # a sphere and a capsule are their core with a radius
        if kind <= CAPSULE:
            radius = m.get_shape(t, 0, L, mem).size.x
            distance = m.sub(distance, radius)
            x = m.fma3(touch.n, radius, x)
        if other <= CAPSULE:
            distance = m.sub(distance, m.get_shape(t, 1, L, mem).size.x)
        x = m.fma3(touch.n, m.mul(m.fill(real(0.5)), distance), x)
        m.put_pair_point(t, 0, x, touch.n, distance, m.fill(real(1.0)), L, mem)

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, m.width, quick=0))
    def search(
        first: int,
        last: int,
        threads: int,
        kind: int,
        other: int,
        hull_a: int,
        count_a: int,
        hull_b: int,
        count_b: int,
        T: m.Tree,
        P: m.Params,
        L: m.Layout,
        mem: m.memory,
        # one row a number, one column a block
        shapes: wp.array2d[m.lane],
        # out:
        points: wp.array2d[m.lane],
    ):
        t = wp.tid()
        for b in range(first + t, last, threads):
            for i in range(shapes.shape[0]):
                m.put(mem, L.pair_shapes + i, t, shapes[i, b])
            if kind < 0:
                plane_point(b, other, hull_b, count_b, T, P, L, t, mem)
            elif kind == SPHERE and other == BOX:
                m.clear_manifold(t, L, mem)
                m.sphere_box(t, L, mem)
            elif kind == SPHERE and other == CYLINDER:
                m.clear_manifold(t, L, mem)
                m.sphere_cylinder(t, L, mem)
            else:
                core_point(b, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, t, mem)
            for i in range(points.shape[0]):
                points[i, b] = m.get(mem, L.manifold + i, t)

    return search


@cache
def slot_kernels(real):
    """Kernels ``(place, write)`` over slots: what the search reads of shapes, and what it found."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)

    @wp.func
    def pose_of(s: int, body: wp.array[int], local: wp.array[transform], body_q: wp.array[transform]):
        pose = local[s]
        if body[s] >= 0:
            pose = wp.transform_multiply(body_q[body[s]], pose)
        return pose

    @wp.kernel(module="unique", enable_backward=False)
    def place(
        pair_of: wp.array[int],
        width: int,
        # of each pair: its shapes, that of the lower kind first
        one: wp.array[int],
        two: wp.array[int],
        # Model:
        shape_body: wp.array[int],
        shape_transform: wp.array[transform],
        shape_scale: wp.array[vec3],
        # State:
        body_q: wp.array[transform],
        # out: [numbers, blocks, width]
        shapes: wp.array3d[real],
    ):
        slot = wp.tid()
        p = pair_of[slot]
        b = slot // width
        lane = slot % width
        origin = wp.transform_get_translation(pose_of(one[p], shape_body, shape_transform, body_q))
        for i in range(2):
            s = one[p]
            if i == 1:
                s = two[p]
            pose = pose_of(s, shape_body, shape_transform, body_q)
            x = wp.transform_get_translation(pose) - origin
            axes = wp.quat_to_matrix(wp.normalize(wp.transform_get_rotation(pose)))
            at = SHAPE * i
            for j in range(3):
                shapes[at + CENTRE + j, b, lane] = x[j]
                shapes[at + EXTENT + j, b, lane] = shape_scale[s][j]
                for k in range(3):
                    shapes[at + AXES + 3 * j + k, b, lane] = axes[j, k]

    @wp.kernel(module="unique", enable_backward=False)
    def write(
        pair_of: wp.array[int],
        # of each slot: one for the slot whose result counts, and of each pair whether its shapes were swapped
        counts: wp.array[int],
        swapped: wp.array[int],
        width: int,
        one: wp.array[int],
        # Model:
        shape_body: wp.array[int],
        shape_transform: wp.array[transform],
        # State:
        body_q: wp.array[transform],
        # [numbers, blocks, width]
        points: wp.array3d[real],
        # out:
        distance: wp.array[real],
        point0: wp.array[vec3],
        point1: wp.array[vec3],
        normal: wp.array[vec3],
    ):
        slot = wp.tid()
        if counts[slot] == 0:
            return
        p = pair_of[slot]
        b = slot // width
        lane = slot % width
        d = points[DISTANCE, b, lane]
        x = vec3(points[PLACE, b, lane], points[PLACE + 1, b, lane], points[PLACE + 2, b, lane])
        n = vec3(points[AWAY, b, lane], points[AWAY + 1, b, lane], points[AWAY + 2, b, lane])
        x = x + wp.transform_get_translation(pose_of(one[p], shape_body, shape_transform, body_q))
        near = x - real(0.5) * d * n
        far = x + real(0.5) * d * n
        distance[p] = d
        if swapped[p] != 0:
            point0[p] = far
            point1[p] = near
            normal[p] = -n
        else:
            point0[p] = near
            point1[p] = far
            normal[p] = n

    return place, write
