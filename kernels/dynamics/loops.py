"""Joints that close loops, as rows of a constraint on the accelerations of trees, and the dynamics under it.

A row says that a number g stays zero (n: a direction fixed to the parent, c and p: the anchors of child and parent, u: a direction
fixed to the child; all in world axes):

    linear    g = n . (c - p)      row n . (J_c - J_p) at c       bias n . (a_c - a_p at c - 2 w_p x y),   y = v_c - v_p at c
    angular   g = n . u            row (u x n) . (J_wc - J_wp)    bias (u x n) . (a_wc - a_wp) + (u x n)' . (w_c - w_p)

so that row . v = g', and row . v' + bias = g''.
"""

from functools import cache
from types import SimpleNamespace

import warp as wp

NO_ROW, LINEAR, ANGULAR = range(3)

PROXIMAL_STEPS = 5


@cache
def loop_kernels(real) -> SimpleNamespace:
    """Kernels ``jacobian`` and ``bias`` over articulations and rows, and ``solve`` over articulations."""
    double = real is wp.float64
    vec3, quat = (wp.vec3d, wp.quatd) if double else (wp.vec3, wp.quat)
    softness = 1.0e-8 if double else 1.0e-5
    smallest = 1.0e-30

    @wp.struct
    class Rows:
        """``[articulation, row]``: what a row is; the links of parent and child, -1 for the world; anchors and directions in their
        link frames."""

        kind: wp.array2d[int]
        parent: wp.array2d[int]
        child: wp.array2d[int]
        parent_at: wp.array2d[vec3]
        child_at: wp.array2d[vec3]
        parent_axis: wp.array2d[vec3]
        child_axis: wp.array2d[vec3]

    @wp.func
    def get3(a: wp.array3d[real], i: int, k: int, at: int) -> vec3:
        r = vec3()
        if k >= 0:
            r = vec3(a[i, k, at], a[i, k, at + 1], a[i, k, at + 2])
        return r

    @wp.func
    def turned(x: wp.array3d[real], i: int, k: int, v: vec3) -> vec3:
        r = v
        if k >= 0:
            r = wp.quat_rotate(quat(x[i, k, 3], x[i, k, 4], x[i, k, 5], x[i, k, 6]), v)
        return r

    @wp.func
    def turning_row(n: vec3, u: vec3) -> vec3:
        return wp.cross(u, n)

    @wp.kernel(module="unique", enable_backward=False)
    def jacobian(
        rows: Rows,
        transforms: wp.array3d[real],
        jacobians: wp.array4d[real],
        # out:
        matrix: wp.array3d[real],
        error: wp.array2d[real],
    ):
        a, r = wp.tid()
        kind = rows.kind[a, r]
        p = rows.parent[a, r]
        c = rows.child[a, r]
        n = turned(transforms, a, p, rows.parent_axis[a, r])
        u = turned(transforms, a, c, rows.child_axis[a, r])
        from_parent = turned(transforms, a, p, rows.parent_at[a, r])
        from_child = turned(transforms, a, c, rows.child_at[a, r])
        apart = get3(transforms, a, c, 0) + from_child - get3(transforms, a, p, 0) - from_parent
        g = real(0.0)
        if kind == LINEAR:
            g = wp.dot(n, apart)
        if kind == ANGULAR:
            g = wp.dot(n, u)
        error[a, r] = g
        about = turning_row(n, u)
        at_parent = from_parent + apart
        for j in range(matrix.shape[2]):
            x = real(0.0)
            for side in range(2):
                k = c
                sign = real(1.0)
                at = from_child
                if side == 1:
                    k = p
                    sign = real(-1.0)
                    at = at_parent
                if k >= 0:
                    v = vec3(jacobians[a, k, 0, j], jacobians[a, k, 1, j], jacobians[a, k, 2, j])
                    w = vec3(jacobians[a, k, 3, j], jacobians[a, k, 4, j], jacobians[a, k, 5, j])
                    if kind == LINEAR:
                        x = x + sign * wp.dot(n, v + wp.cross(w, at))
                    if kind == ANGULAR:
                        x = x + sign * wp.dot(about, w)
            matrix[a, r, j] = x

    @wp.kernel(module="unique", enable_backward=False)
    def bias(
        rows: Rows,
        transforms: wp.array3d[real],
        velocities: wp.array3d[real],
        accelerations: wp.array3d[real],
        # out:
        result: wp.array2d[real],
    ):
        a, r = wp.tid()
        kind = rows.kind[a, r]
        p = rows.parent[a, r]
        c = rows.child[a, r]
        n = turned(transforms, a, p, rows.parent_axis[a, r])
        u = turned(transforms, a, c, rows.child_axis[a, r])
        from_parent = turned(transforms, a, p, rows.parent_at[a, r])
        from_child = turned(transforms, a, c, rows.child_at[a, r])
        apart = get3(transforms, a, c, 0) + from_child - get3(transforms, a, p, 0) - from_parent
        at_parent = from_parent + apart
        w_p = get3(velocities, a, p, 3)
        w_c = get3(velocities, a, c, 3)
        turn_p = get3(accelerations, a, p, 3)
        turn_c = get3(accelerations, a, c, 3)
        k = real(0.0)
        if kind == LINEAR:
            y = get3(velocities, a, c, 0) + wp.cross(w_c, from_child)
            y = y - get3(velocities, a, p, 0) - wp.cross(w_p, at_parent)
            a_c = get3(accelerations, a, c, 0) + wp.cross(turn_c, from_child)
            a_c = a_c + wp.cross(w_c, wp.cross(w_c, from_child))
            a_p = get3(accelerations, a, p, 0) + wp.cross(turn_p, at_parent)
            a_p = a_p + wp.cross(w_p, wp.cross(w_p, at_parent))
            k = wp.dot(n, a_c - a_p - real(2.0) * wp.cross(w_p, y))
        if kind == ANGULAR:
            about = turning_row(n, u)
            rate = wp.cross(wp.cross(w_c, u), n) + wp.cross(u, wp.cross(w_p, n))
            k = wp.dot(about, turn_c - turn_p) + wp.dot(rate, w_c - w_p)
        result[a, r] = k

    @wp.func
    def factorize(a: int, n: int, m: wp.array3d[real]):
        """m <- its Cholesky factor, in the lower half (Golub and Van Loan 2013, algorithm 4.2.1)."""
        for j in range(n):
            d = m[a, j, j]
            for i in range(j):
                d = d - m[a, j, i] * m[a, j, i]
            d = wp.sqrt(wp.max(d, real(smallest)))
            m[a, j, j] = d
            for i in range(j + 1, n):
                x = m[a, i, j]
                for k in range(j):
                    x = x - m[a, i, k] * m[a, j, k]
                m[a, i, j] = x / d

    @wp.kernel(module="unique", enable_backward=False)
    def solve(
        dofs: wp.array[int],
        rows: Rows,
        mass: wp.array3d[real],
        load: wp.array2d[real],
        force: wp.array2d[real],
        velocity: wp.array2d[real],
        matrix: wp.array3d[real],
        drift: wp.array2d[real],
        error: wp.array2d[real],
        frequency: real,
        # scratch:
        root: wp.array3d[real],
        whitened: wp.array3d[real],
        delassus: wp.array3d[real],
        wanted: wp.array2d[real],
        step: wp.array2d[real],
        # out:
        acceleration: wp.array2d[real],
        multiplier: wp.array2d[real],
    ):
        """acceleration, multiplier <- of M a + h = tau + K^T l, K a = -k - 2 f K v - f^2 g.

        With M = L L^T and Y = L^-1 K^T: (Y^T Y) l = b, a = L^-T (L^-1 (tau - h) + Y l). Y^T Y may be singular, and its solution is
        approached by proximal steps l <- l + (Y^T Y + s 1)^-1 (b - Y^T Y l) (Carpentier, Budhiraja and Mansard 2021).
        """
        a = wp.tid()
        n = dofs[a]
        count = matrix.shape[1]
        f = frequency
        for i in range(n):
            for j in range(i + 1):
                root[a, i, j] = mass[a, i, j]
        factorize(a, n, root)
        for i in range(n):
            x = force[a, i] - load[a, i]
            for j in range(i):
                x = x - root[a, i, j] * acceleration[a, j]
            acceleration[a, i] = x / root[a, i, i]
        largest = real(smallest)
        for r in range(count):
            speed = real(0.0)
            for i in range(n):
                speed = speed + matrix[a, r, i] * velocity[a, i]
                x = matrix[a, r, i]
                for j in range(i):
                    x = x - root[a, i, j] * whitened[a, r, j]
                whitened[a, r, i] = x / root[a, i, i]
            b = -drift[a, r] - real(2.0) * f * speed - f * f * error[a, r]
            for i in range(n):
                b = b - whitened[a, r, i] * acceleration[a, i]
            if rows.kind[a, r] == NO_ROW:
                b = real(0.0)
            wanted[a, r] = b
            multiplier[a, r] = real(0.0)
            for s in range(r + 1):
                x = real(0.0)
                for i in range(n):
                    x = x + whitened[a, r, i] * whitened[a, s, i]
                delassus[a, r, s] = x
                if r == s:
                    largest = wp.max(largest, x)
        soft = real(softness) * largest
        for r in range(count):
            delassus[a, r, r] = delassus[a, r, r] + soft
        factorize(a, count, delassus)
        for _ in range(PROXIMAL_STEPS):
            # what is left of b - Y^T Y l, by way of Y l
            for r in range(count):
                step[a, r] = wanted[a, r]
            for i in range(n):
                x = real(0.0)
                for r in range(count):
                    x = x + whitened[a, r, i] * multiplier[a, r]
                for r in range(count):
                    step[a, r] = step[a, r] - whitened[a, r, i] * x
            for r in range(count):
                x = step[a, r]
                for s in range(r):
                    x = x - delassus[a, r, s] * step[a, s]
                step[a, r] = x / delassus[a, r, r]
            for back in range(count):
                r = count - 1 - back
                x = step[a, r]
                for s in range(r + 1, count):
                    x = x - delassus[a, s, r] * step[a, s]
                step[a, r] = x / delassus[a, r, r]
                multiplier[a, r] = multiplier[a, r] + step[a, r]
        for i in range(n):
            x = acceleration[a, i]
            for r in range(count):
                x = x + whitened[a, r, i] * multiplier[a, r]
            acceleration[a, i] = x
        for back in range(n):
            i = n - 1 - back
            x = acceleration[a, i]
            for j in range(i + 1, n):
                x = x - root[a, j, i] * acceleration[a, j]
            acceleration[a, i] = x / root[a, i, i]

    return SimpleNamespace(Rows=Rows, jacobian=jacobian, bias=bias, solve=solve)
