"""Rebounds that spread through bodies that touch each other.

The law of restitution is that of Newton, for all contacts of a group at once: each contact that takes up an impulse ends with the velocity
of its rebound, or with none if it had no impact. One pass after the other brings the contacts of a group there.
"""

from functools import cache

import warp as wp
from newton_like.kernels.solvers.xpbd.bodies import INVERSE_MASS, place_in_chunk
from newton_like.kernels.solvers.xpbd.contact_laws import TURNS_AT
from newton_like.kernels.solvers.xpbd.order import is_fast_function, order_struct
from newton_like.kernels.solvers.xpbd.touching import APPROACH, IMPACT, IMPULSES, REBOUND

SPREADING = 16
"""Passes over such a group. In a row of five equal balls of which the first one hits the others, the error of the energy is then 0.1 %."""

REACH = 16
"""Rounds in which groups grow."""

IN_GROUP = 4
"""What the number IMPACT of a contact is in the passes over groups."""


@cache
def rebound_functions(real):
    """The functions ``group_rebounds`` and ``drop_impulses`` over the contacts of a chunk."""
    Listed, is_fast = order_struct(real), is_fast_function(real)

    @wp.func
    def is_moved(N: wp.ref[Listed], shape: int, B: wp.array[real], body_at: int, stride: int, slot: int) -> bool:
        """Whether contacts move the body of a shape, which is in this slot."""
        if is_fast(N, N.shape_body[shape]):
            return False
        return B[place_in_chunk(body_at, stride, slot, INVERSE_MASS)] > real(0.0)

    @wp.func
    def group_rebounds(
        N: wp.ref[Listed], c: int, first_slot: int, at: int, room: int, B: wp.array[real], body_at: int, stride: int,
        rebound_speed: real, numbers: wp.array[real], body_a: wp.array[int], body_b: wp.array[int],
    ) -> int:  # fmt: skip
        """Sets IMPACT of the contacts of groups that rebounds may reach, and zero for others. Returns 1 if there is a group, else 0."""
        start = N.start[c]
        count = N.start[c + 1] - start
        none = wp.uint64(0)
        one = wp.uint64(1)
        has_contact = wp.uint64(2)
        has_more = wp.uint64(3)
        for k in range(count):
            N.taken[first_slot + body_a[start + k]] = none
            N.taken[first_slot + body_b[start + k]] = none
        for k in range(count):
            j = at + k
            if (
                numbers[j + APPROACH * room] < -rebound_speed
                and numbers[j + REBOUND * room] > real(0.0)
                and numbers[j + IMPULSES * room] > real(0.0)
            ):
                a = body_a[start + k]
                b = body_b[start + k]
                if is_moved(N, N.now_shape0[start + k], B, body_at, stride, a):
                    N.taken[first_slot + a] = one
                if is_moved(N, N.now_shape1[start + k], B, body_at, stride, b):
                    N.taken[first_slot + b] = one
        grown = int(0)
        while grown < REACH and grown >= 0:
            grows = int(0)
            for k in range(count):
                a = body_a[start + k]
                b = body_b[start + k]
                if (
                    numbers[at + k + IMPULSES * room] > real(0.0)
                    and is_moved(N, N.now_shape0[start + k], B, body_at, stride, a)
                    and is_moved(N, N.now_shape1[start + k], B, body_at, stride, b)
                    and N.taken[first_slot + a] != N.taken[first_slot + b]
                ):
                    grows = int(1)
                    N.taken[first_slot + a] = one
                    N.taken[first_slot + b] = one
            grown += 1
            if grows == 0:
                grown = int(-1)
        # a single contact has its rebound already: groups have a body with several contacts
        several = int(0)
        for k in range(count):
            for side in range(2):
                body = body_a[start + k]
                if side == 1:
                    body = body_b[start + k]
                if N.taken[first_slot + body] == has_contact:
                    N.taken[first_slot + body] = has_more
                    several = 1
                if N.taken[first_slot + body] == one:
                    N.taken[first_slot + body] = has_contact
        for k in range(count):
            member = real(0.0)
            if (
                N.taken[first_slot + body_a[start + k]] == has_more
                or N.taken[first_slot + body_b[start + k]] == has_more
            ):
                member = real(IN_GROUP)
            numbers[at + k + IMPACT * room] = member
        return several

    @wp.func
    def drop_impulses(
        N: wp.ref[Listed], c: int, at: int, room: int, numbers: wp.array[real], extra_at: int, extra: wp.array[real]
    ):
        """The impulses of groups are not kept: the next sub-step would give them to the bodies once more, and two passes would not take all
        of them back."""
        for k in range(N.start[c + 1] - N.start[c]):
            if numbers[at + k + IMPACT * room] == real(IN_GROUP):
                for x in range(3):
                    numbers[at + k + (IMPULSES + x) * room] = real(0.0)
                    # those of contacts with laws
                    if extra.shape[0] > 0:
                        extra[extra_at + k + (TURNS_AT + x) * room] = real(0.0)

    return group_rebounds, drop_impulses
