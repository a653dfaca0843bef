"""Kernels of wrenches on bodies of loop joints, spatial tendons and shares of weight.

A force f of a row of a loop joint acts as its Jacobian says, see `kernels.dynamics.loops`. Along the direction n that turns with the
parent, the force f n acts on the child and -f n on the parent, both at the child's anchor. A row that keeps n of the parent and u of the
child at right angles has the torque f u x n on the child and its opposite on the parent. A force f along a piece of a tendon from x to y,
which shortens it if negative, is f d at y and -f d at x, with d = (y - x) / |y - x|.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.dynamics.loops import ANGULAR, CHILD_ANCHOR, CHILD_DIRECTION, LINEAR, PARENT_DIRECTION

KIND, PARENT, CHILD = range(3)
"""Columns of a row of a loop joint: its kind, and the bodies of its parent and its child."""

TENDON, FIRST, LAST = range(3)
"""Columns of a straight piece of a tendon: the tendon, and the sites at its ends."""


@cache
def pull_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`: `close` over articulations, `pull` by one thread for all pieces, `relieve` over bodies."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)
    spatial = wp.types.vector(6, real)

    @wp.func
    def push(
        body: int,
        x: vec3,
        f: vec3,
        n: vec3,
        body_q: wp.array[transform],
        com: wp.array[vec3],
        wrench: wp.array[spatial],
    ):
        """Adds a force at x and a torque."""
        if body >= 0:
            torque = n + wp.cross(x - wp.transform_point(body_q[body], com[body]), f)
            wrench[body] = wrench[body] + spatial(f[0], f[1], f[2], torque[0], torque[1], torque[2])

    @wp.func
    def place(body: int, x: vec3, body_q: wp.array[transform]) -> vec3:
        y = x
        if body >= 0:
            y = wp.transform_point(body_q[body], x)
        return y

    @wp.func
    def direction(body: int, x: vec3, body_q: wp.array[transform]) -> vec3:
        y = x
        if body >= 0:
            y = wp.quat_rotate(wp.transform_get_rotation(body_q[body]), x)
        return y

    @wp.func
    def number3(numbers: wp.array3d[real], a: int, r: int, at: int) -> vec3:
        return vec3(numbers[a, r, at], numbers[a, r, at + 1], numbers[a, r, at + 2])

    @wp.kernel(module="unique", enable_backward=False)
    def close(
        # kinds of rows, bodies of parents and children; anchors in parent and child, directions in parent and child
        table: wp.array3d[int],
        numbers: wp.array3d[real],
        force: wp.array2d[real],
        body_q: wp.array[transform],
        body_com: wp.array[vec3],
        # out:
        wrench: wp.array[spatial],
    ):
        a = wp.tid()
        for r in range(force.shape[1]):
            kind = table[a, r, KIND]
            parent = table[a, r, PARENT]
            child = table[a, r, CHILD]
            f = vec3()
            n = vec3()
            along = direction(parent, number3(numbers, a, r, PARENT_DIRECTION), body_q) * force[a, r]
            if kind == wp.static(LINEAR):
                f = along
            if kind == wp.static(ANGULAR):
                n = wp.cross(direction(child, number3(numbers, a, r, CHILD_DIRECTION), body_q), along)
            if kind == wp.static(LINEAR) or kind == wp.static(ANGULAR):
                x = place(child, number3(numbers, a, r, CHILD_ANCHOR), body_q)
                push(child, x, f, n, body_q, body_com, wrench)
                push(parent, x, -f, -n, body_q, body_com, wrench)

    @wp.kernel(module="unique", enable_backward=False)
    def pull(
        # tendons and sites of pieces, and their factors
        table: wp.array2d[int],
        factor: wp.array[real],
        force: wp.array[real],
        shape_body: wp.array[int],
        shape_transform: wp.array[transform],
        body_q: wp.array[transform],
        body_com: wp.array[vec3],
        # out:
        wrench: wp.array[spatial],
    ):
        for i in range(table.shape[0]):
            first = shape_body[table[i, FIRST]]
            last = shape_body[table[i, LAST]]
            x = place(first, wp.transform_get_translation(shape_transform[table[i, FIRST]]), body_q)
            y = place(last, wp.transform_get_translation(shape_transform[table[i, LAST]]), body_q)
            f = wp.normalize(y - x) * (force[table[i, TENDON]] * factor[i])
            push(last, y, f, vec3(), body_q, body_com, wrench)
            push(first, x, -f, vec3(), body_q, body_com, wrench)

    @wp.kernel(module="unique", enable_backward=False)
    def relieve(
        share: wp.array[wp.float32],
        mass: wp.array[real],
        world: wp.array[int],
        gravity: wp.array[vec3],
        # out:
        wrench: wp.array[spatial],
    ):
        b = wp.tid()
        f = gravity[wp.max(world[b], 0)] * (-real(share[b]) * mass[b])
        wrench[b] = wrench[b] + spatial(f[0], f[1], f[2], real(0.0), real(0.0), real(0.0))

    return types.SimpleNamespace(close=close, pull=pull, relieve=relieve)
