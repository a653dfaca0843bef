"""Contacts of a step with their forces, as a list.

A step keeps, for each active contact of a block, where the contact is in each world. Kernels over clusters count the contacts of each
cluster, and write them one after the other.
"""

import types
from functools import cache

import warp as wp

# An active contact, at REPORT * n: negative where it acts; the distance of the surfaces; the point halfway between them, about the origin
# of a tree; and for pairs of shapes the normal.
REPORT = 8
ACTS, GAP, PLACE, AWAY = 0, 1, 2, 5


def report_function(m: types.SimpleNamespace):
    """For the namespace `m`: ``report_contact``, which a step calls for each active contact."""

    @m.func
    def report_contact(b, t, c: int, n: int, T, L, mem, report: m.memory):
        """Keeps where active contact n, candidate c, is."""
        at = REPORT * n
        m.keep(mem, L.near + c, at + ACTS, t, report, b, 1)
        m.keep(mem, L.gap + c, at + GAP, t, report, b, 1)
        m.keep(mem, L.point + 3 * c, at + PLACE, t, report, b, 3)
        if c >= T.first_paired:
            m.keep(mem, L.normal + 3 * (c - T.first_paired), at + AWAY, t, report, b, 3)

    return report_contact


@cache
def report_kernels(real):
    """Kernels ``(count, write)`` over the clusters of a batch: they count and write the contacts of the last step."""
    vec3 = wp.types.vector(3, real)
    wrench = wp.types.vector(6, real)
    transform = wp.types.transformation(real)

    @wp.kernel(module="unique", enable_backward=False)
    def count(
        kept_active: wp.array2d[int],
        report: wp.array3d[real],
        # of each cluster the first articulation
        articulation: wp.array[int],
        # out:
        counts: wp.array[int],
    ):
        a = wp.tid()
        width = report.shape[2]
        b = a // width
        found = int(0)
        for n in range(kept_active[b, 0]):
            if report[b, REPORT * n + ACTS, a % width] < real(0.0):
                found += 1
        counts[articulation[a]] = found

    @wp.func
    def to_body(x: vec3, body: int, body_q: wp.array[transform]) -> vec3:
        """The point x of the world in the frame of a body; -1 is the world."""
        if body >= 0:
            return wp.transform_point(wp.transform_inverse(body_q[body]), x)
        return x

    @wp.kernel(module="unique", enable_backward=False)
    def write(
        rows: int,
        first_paired: int,
        # of each candidate: the collider or pair, and the tree about whose origin its point is
        candidate_of: wp.array[int],
        candidate_tree: wp.array[int],
        # of each cluster: shapes and planes of colliders, both shapes of pairs, and the first articulation
        shapes: wp.array2d[int],
        planes: wp.array2d[int],
        ones: wp.array2d[int],
        twos: wp.array2d[int],
        articulation: wp.array[int],
        kept_active: wp.array2d[int],
        kept: wp.array3d[real],
        report: wp.array3d[real],
        starts: wp.array[int],
        # poses of bodies, and origins of articulations, in the middle of the step
        body_q: wp.array[transform],
        origin: wp.array[vec3],
        # Model:
        shape_body: wp.array[int],
        shape_transform: wp.array[transform],
        shape_margin: wp.array[real],
        body_com: wp.array[vec3],
        # out:
        shape0: wp.array[int],
        shape1: wp.array[int],
        point0: wp.array[vec3],
        point1: wp.array[vec3],
        normal: wp.array[vec3],
        margin0: wp.array[real],
        margin1: wp.array[real],
        force: wp.array[wrench],
    ):
        a = wp.tid()
        width = report.shape[2]
        b = a // width
        lane = a % width
        first = articulation[a]
        i = starts[first]
        end = wp.min(starts[first + 1], shape0.shape[0])
        for n in range(kept_active[b, 0]):
            if i >= end:
                return
            at = REPORT * n
            if report[b, at + ACTS, lane] < real(0.0):
                c = kept_active[b, 1 + n]
                s = candidate_of[c]
                x = origin[first + candidate_tree[c]]
                x += vec3(report[b, at + PLACE, lane], report[b, at + PLACE + 1, lane], report[b, at + PLACE + 2, lane])
                p = rows * n
                f = vec3(kept[b, p, lane], kept[b, p + 1, lane], kept[b, p + 2, lane])
                turn = vec3(real(0.0), real(0.0), real(0.0))
                if rows == 6:
                    turn = vec3(kept[b, p + 3, lane], kept[b, p + 4, lane], kept[b, p + 5, lane])
                one = int(0)
                two = int(0)
                up = vec3(real(0.0), real(0.0), real(0.0))
                if c < first_paired:
                    one = planes[a, s]
                    two = shapes[a, s]
                    # forces on planes are kept along the normal and both tangents
                    q = wp.transform_get_rotation(shape_transform[one])
                    up = wp.quat_rotate(q, vec3(real(0.0), real(0.0), real(1.0)))
                    f = wp.quat_rotate(q, vec3(f[1], f[2], f[0]))
                    turn = wp.quat_rotate(q, vec3(turn[1], turn[2], turn[0]))
                else:
                    one = ones[a, s]
                    two = twos[a, s]
                    up = vec3(
                        report[b, at + AWAY, lane], report[b, at + AWAY + 1, lane], report[b, at + AWAY + 2, lane]
                    )
                half = real(0.5) * (report[b, at + GAP, lane] + shape_margin[one] + shape_margin[two])
                shape0[i] = one
                shape1[i] = two
                point0[i] = to_body(x - up * half, shape_body[one], body_q)
                point1[i] = to_body(x + up * half, shape_body[two], body_q)
                normal[i] = up
                margin0[i] = shape_margin[one]
                margin1[i] = shape_margin[two]
                if force.shape[0] > 0:
                    # what is kept acts on the second shape
                    arm = x
                    if shape_body[one] >= 0:
                        arm = x - wp.transform_point(body_q[shape_body[one]], body_com[shape_body[one]])
                    moment = wp.cross(f, arm) - turn
                    force[i] = wrench(-f[0], -f[1], -f[2], moment[0], moment[1], moment[2])
                i += 1

    return count, write
