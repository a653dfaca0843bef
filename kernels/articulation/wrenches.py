"""Kernels of external wrenches on bodies: composed in link and in world axes, applied in the poses of the moment.

A composed wrench is kept in two parts. The part in link axes turns with the body: force f and torque about the centre of mass. The part in
world axes is a force F, a torque, and, for forces at points P that are fixed in the world, the sum of P x F and F of these, so that the
torque about the centre of mass x of the moment is

    torque + sum (P x F) - x x sum F
"""

import types
from functools import cache

import warp as wp

COMPOSED = 18
"""Numbers of a composed wrench: force and torque in link axes; force and torque in world axes; sums of P x F and of F at points."""


@cache
def wrench_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`: `compose` and `clear` over chosen instances and bodies, `apply` over instances and bodies."""
    vec3 = wp.types.vector(3, real)
    spatial = wp.types.vector(6, real)
    transform = wp.types.transformation(real)

    @wp.func
    def get3(a: wp.array3d[real], i: int, k: int, at: int) -> vec3:
        return vec3(a[i, k, at], a[i, k, at + 1], a[i, k, at + 2])

    @wp.func
    def put3(a: wp.array3d[real], i: int, k: int, at: int, x: vec3):
        a[i, k, at] = x[0]
        a[i, k, at + 1] = x[1]
        a[i, k, at + 2] = x[2]

    @wp.kernel(module="unique", enable_backward=False)
    def compose(
        # chosen instances and bodies; without entries: all
        rows: wp.array[int],
        items: wp.array[int],
        # of chosen ones; without entries: zeros
        forces: wp.array3d[real],
        torques: wp.array3d[real],
        points: wp.array3d[real],
        in_world: bool,
        add: bool,
        # out:
        composed: wp.array3d[real],
    ):
        a, b = wp.tid()
        i = a
        k = b
        if rows.shape[0] > 0:
            i = rows[a]
        if items.shape[0] > 0:
            k = items[b]
        if not add:
            for c in range(COMPOSED):
                composed[i, k, c] = real(0.0)
        f = vec3()
        n = vec3()
        if forces.shape[0] > 0:
            f = get3(forces, a, b, 0)
        if torques.shape[0] > 0:
            n = get3(torques, a, b, 0)
        if in_world:
            put3(composed, i, k, 6, get3(composed, i, k, 6) + f)
            put3(composed, i, k, 9, get3(composed, i, k, 9) + n)
            if points.shape[0] > 0:
                put3(composed, i, k, 12, get3(composed, i, k, 12) + wp.cross(get3(points, a, b, 0), f))
                put3(composed, i, k, 15, get3(composed, i, k, 15) + f)
        else:
            if points.shape[0] > 0:
                n = n + wp.cross(get3(points, a, b, 0), f)
            put3(composed, i, k, 0, get3(composed, i, k, 0) + f)
            put3(composed, i, k, 3, get3(composed, i, k, 3) + n)

    @wp.kernel(module="unique", enable_backward=False)
    def clear_wrenches(
        rows: wp.array[int],
        # out:
        composed: wp.array3d[real],
    ):
        a, k = wp.tid()
        i = a
        if rows.shape[0] > 0:
            i = rows[a]
        for c in range(COMPOSED):
            composed[i, k, c] = real(0.0)

    @wp.func
    def wrench_of(composed: wp.array3d[real], i: int, k: int, pose: transform, com: vec3) -> spatial:
        """Force and torque about the centre of mass, in world axes."""
        q = wp.transform_get_rotation(pose)
        x = wp.transform_get_translation(pose) + wp.quat_rotate(q, com)
        f = wp.quat_rotate(q, get3(composed, i, k, 0)) + get3(composed, i, k, 6)
        n = wp.quat_rotate(q, get3(composed, i, k, 3)) + get3(composed, i, k, 9)
        n = n + get3(composed, i, k, 12) - wp.cross(x, get3(composed, i, k, 15))
        return spatial(f[0], f[1], f[2], n[0], n[1], n[2])

    @wp.kernel(module="unique", enable_backward=False)
    def apply_wrenches(
        first: int,
        count: int,
        # of instances and bodies: indices; composed wrenches, one or both without entries
        body_of: wp.array2d[int],
        permanent: wp.array3d[real],
        instantaneous: wp.array3d[real],
        # Model and state:
        body_com: wp.array[vec3],
        body_q: wp.array[transform],
        # whether forces are added to those that are there
        adds: bool,
        # out:
        body_f: wp.array[spatial],
    ):
        t = first + wp.tid()
        i = t // count
        k = t % count
        body = body_of[i, k]
        total = spatial()
        if permanent.shape[0] > 0:
            total = total + wrench_of(permanent, i, k, body_q[body], body_com[body])
        if instantaneous.shape[0] > 0:
            total = total + wrench_of(instantaneous, i, k, body_q[body], body_com[body])
        if adds:
            total = total + body_f[body]
        body_f[body] = total

    return types.SimpleNamespace(compose=compose, clear=clear_wrenches, apply=apply_wrenches)
