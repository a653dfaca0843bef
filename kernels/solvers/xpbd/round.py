"""Contacts of round shapes: spheres and capsules, and cylinders that touch with their sides.

The point of a contact is fixed to a body during a step, so that the point of a ball that rolls would move away from the place where it
touches. The contact of a round shape has the point of its axis next to it instead, and the radius as a margin.
"""

from functools import cache

import warp as wp
from newton_like.kernels.solvers.xpbd.bodies import POS, QUAT, place_in_chunk
from newton_like.kernels.solvers.xpbd.order import order_struct
from newton_like.kernels.solvers.xpbd.touching import APART, MARGINS, POINT_A, POINT_B, RADIUS_A, RADIUS_B

SIDE = 0.02
"""Cosine between normal and axis up to which a cylinder touches with its side."""


@cache
def round_function(real):
    """The function ``round_contacts`` over the contacts of a chunk."""
    vec3, quat = wp.types.vector(3, real), wp.types.quaternion(real)
    Listed = order_struct(real)

    @wp.func
    def round_side(
        N: wp.ref[Listed], shape: int, slot: int, n: vec3, point: int, radius: int, at: int, room: int, B: wp.array[real], body_at: int,
        stride: int, numbers: wp.array[real],
    ):  # fmt: skip
        """Moves the point of a round shape to its axis, against the normal n that points away from it."""
        r = N.round_radius[shape]
        axis = N.round_axis[shape]
        numbers[at + radius * room] = real(0.0)
        if r > real(0.0):
            q = quat()
            for x in range(4):
                q[x] = B[place_in_chunk(body_at, stride, slot, QUAT + x)]
            own = wp.quat_rotate_inv(q, n)
            if wp.abs(wp.dot(own, axis)) < real(SIDE):
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
