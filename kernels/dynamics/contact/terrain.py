"""Terrain below points: the tangent plane of a heightfield with bilinear interpolation."""

from functools import cache

import warp as wp


@cache
def heightfield_kernel(real):
    """Kernel over articulations and points: normal n and offset c of the tangent plane n.x = c of the field below (or above) a point.

    Beyond the edges the field continues horizontally at the heights of the edge.
    """
    vec3 = wp.types.vector(3, real)

    @wp.kernel(module="unique")
    def kernel(
        points: wp.array3d[real],
        heights: wp.array2d[real],
        x0: real,
        y0: real,
        dx: real,
        dy: real,
        # out:
        ground: wp.array3d[real],
    ):
        a, i = wp.tid()
        x = (points[a, i, 0] - x0) / dx
        y = (points[a, i, 1] - y0) / dy
        columns = heights.shape[1]
        rows = heights.shape[0]
        u = wp.clamp(x, real(0.0), real(columns - 1))
        v = wp.clamp(y, real(0.0), real(rows - 1))
        c = wp.clamp(int(u), 0, columns - 2)
        r = wp.clamp(int(v), 0, rows - 2)
        s = u - real(c)
        t = v - real(r)
        h00 = heights[r, c]
        h01 = heights[r, c + 1]
        h10 = heights[r + 1, c]
        h11 = heights[r + 1, c + 1]
        slope_x = ((real(1.0) - t) * (h01 - h00) + t * (h11 - h10)) / dx
        slope_y = ((real(1.0) - s) * (h10 - h00) + s * (h11 - h01)) / dy
        height = (real(1.0) - t) * ((real(1.0) - s) * h00 + s * h01) + t * ((real(1.0) - s) * h10 + s * h11)
        if u != x:
            slope_x = real(0.0)
        if v != y:
            slope_y = real(0.0)
        n = wp.normalize(vec3(-slope_x, -slope_y, real(1.0)))
        ground[a, i, 0] = n[0]
        ground[a, i, 1] = n[1]
        ground[a, i, 2] = n[2]
        ground[a, i, 3] = n[0] * points[a, i, 0] + n[1] * points[a, i, 1] + n[2] * height

    return kernel


@cache
def touching_kernel(real):
    """Kernel over articulations and links: whether any contact point of a link is below the ground."""

    @wp.kernel(module="unique", enable_backward=False)
    def kernel(
        depth: wp.array2d[real],
        link: wp.array2d[int],
        # out:
        touching: wp.array2d[wp.bool],
    ):
        a, k = wp.tid()
        found = bool(False)
        for i in range(depth.shape[1]):
            if link[a, i] == k and depth[a, i] > real(0.0):
                found = True
        touching[a, k] = found

    return kernel
