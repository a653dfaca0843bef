"""Contacts of round shapes: spheres and capsules, cylinders that touch with their sides, and ellipsoids.

The point of a contact is fixed to a body during a step, so that the point of a ball that rolls would move away from the place where it
touches. The contact of a round shape has the point of its axis next to it instead, and the radius as a margin. An ellipsoid has the centre
of curvature along the way on which its contact moves over it.
"""

from functools import cache

import warp as wp
from newton_like.kernels.solvers.xpbd.bodies import POS, QUAT, SPIN, place_in_chunk
from newton_like.kernels.solvers.xpbd.order import order_struct
from newton_like.kernels.solvers.xpbd.touching import APART, MARGINS, POINT_A, POINT_B, RADIUS_A, RADIUS_B

SIDE = 0.02
"""Cosine between normal and axis up to which a cylinder touches with its side."""

FLATTEST = 4.0
"""Largest radius of curvature of an ellipsoid, divided by its largest half axis."""


@cache
def round_function(real):
    """The function ``round_contacts`` over the contacts of a chunk."""
    vec3, quat = wp.types.vector(3, real), wp.types.quaternion(real)
    Listed = order_struct(real)

    @wp.func
    def curvature_radius(squares: vec3, n: vec3, spin: vec3):
        """The radius of curvature of an ellipsoid where its normal is n, along the way of the normal over it while it turns; n and `spin`
        in the axes of the ellipsoid; `squares`: of its half axes."""
        # second derivatives of the distance of the tangent plane from the centre, by the normal
        scaled = wp.cw_mul(squares, n)
        h = wp.sqrt(wp.dot(n, scaled))
        way = wp.cross(spin, n)
        length = wp.dot(way, way)
        along = wp.dot(way, scaled)
        r = (wp.dot(way, wp.cw_mul(squares, way)) - along * along / (h * h)) / (h * wp.max(length, real(1.0e-20)))
        if length < real(1.0e-6):
            r = real(0.5) * (squares[0] + squares[1] + squares[2] - wp.dot(scaled, scaled) / (h * h)) / h
        return wp.min(r, real(FLATTEST) * wp.sqrt(wp.max(squares)))

    @wp.func
    def round_side(
        N: wp.ref[Listed], shape: int, slot: int, n: vec3, point: int, radius: int, at: int, room: int, B: wp.array[real], body_at: int,
        stride: int, numbers: wp.array[real],
    ):  # fmt: skip
        """Moves the point of a round shape to its axis, against the normal n that points away from it."""
        r = N.round_radius[shape]
        numbers[at + radius * room] = real(0.0)
        if r != real(0.0):
            q = quat()
            for x in range(4):
                q[x] = B[place_in_chunk(body_at, stride, slot, QUAT + x)]
            own = wp.quat_rotate_inv(q, n)
            sharp = wp.abs(wp.dot(own, N.round_axis[shape])) >= real(SIDE)
            if r < real(0.0):
                spin = vec3()
                for x in range(3):
                    spin[x] = B[place_in_chunk(body_at, stride, slot, SPIN + x)]
                turn = N.round_turn[shape]
                there = wp.quat_rotate_inv(turn, wp.quat_rotate_inv(q, spin))
                r = curvature_radius(N.round_axis[shape], wp.quat_rotate_inv(turn, own), there)
                sharp = False
            if not sharp:
                numbers[at + radius * room] = r
                numbers[at + MARGINS * room] = numbers[at + MARGINS * room] + r
                for x in range(3):
                    numbers[at + (point + x) * room] = numbers[at + (point + x) * room] - r * own[x]

    @wp.func
    def round_contacts(
        N: wp.ref[Listed], c: int, begin: int, end: int, at: int, room: int, B: wp.array[real], body_at: int, stride: int,
        numbers: wp.array[real], body_a: wp.array[int], body_b: wp.array[int],
    ):  # fmt: skip
        """Stores how far bodies are apart, and moves the points of round shapes, of the contacts of chunk c at places
        `begin` to `end`. Needs `take_contacts`, and poses of bodies."""
        for k in range(begin, end):
            i = N.ordered[k]
            j = at + k - N.start[c]
            n = N.normal[i]
            for x in range(3):
                there = B[place_in_chunk(body_at, stride, body_b[k], POS + x)]
                numbers[j + (APART + x) * room] = there - B[place_in_chunk(body_at, stride, body_a[k], POS + x)]
            round_side(N, N.shape0[i], body_a[k], n, POINT_A, RADIUS_A, j, room, B, body_at, stride, numbers)
            round_side(N, N.shape1[i], body_b[k], -n, POINT_B, RADIUS_B, j, room, B, body_at, stride, numbers)

    return round_contacts
