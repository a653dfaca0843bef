"""Kernels of arrays of states that exist on request: accelerations of bodies, wrenches through joints, and forces of drives.

The wrench that the parent exerts on a body through its joint follows from the motion of all bodies behind it (Featherstone 2008, section
5.3, from the leaves to the root): with the mass m, the inertia I about the centre of mass x, its acceleration a and the angular
acceleration alpha,

    f = m (a - g) - f_external - f_contacts + sum f_children
    n = I alpha + w x I w - n_external - n_contacts + sum (n_child + (x_child - x) x f_child)

The force of a drive is ke (q* - q) + kd (qd* - qd) + its feed-forward force, as its mode says, within the effort limit.
"""

import types
from functools import cache

import warp as wp

POSITION, VELOCITY = 1, 2
"""Bits of the modes of drives that follow a position, and a velocity."""

FLOATS, BY_AXES, TURNS = range(3)
"""How far a joint is from its position target: a displacement of the centre of mass and a rotation vector, for FREE and DISTANCE joints;
a difference for each axis; a rotation vector."""


@cache
def requested_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`: `change` over numbers, `spread` and `transmit` over articulations, `find_ranges` over contacts,
    `drive` over joints."""
    vec3 = wp.types.vector(3, real)
    mat33 = wp.types.matrix((3, 3), real)
    quat = wp.types.quaternion(real)
    transform = wp.types.transformation(real)
    spatial = wp.types.vector(6, real)

    @wp.kernel(module="unique", enable_backward=False)
    def change(
        now: wp.array[real],
        inverse_dt: real,
        # in: numbers before the step; out: their mean rate
        rate: wp.array[real],
    ):
        i = wp.tid()
        rate[i] = (now[i] - rate[i]) * inverse_dt

    @wp.kernel(module="unique", enable_backward=False)
    def spread(
        # Model:
        start: wp.array[int],
        end: wp.array[int],
        joint_child: wp.array[int],
        # of links by articulation
        acceleration: wp.array3d[real],
        # out:
        body_qdd: wp.array[spatial],
    ):
        a = wp.tid()
        for k in range(end[a] - start[a]):
            b = joint_child[start[a] + k]
            for c in range(6):
                body_qdd[b][c] = acceleration[a, k, c]

    @wp.func
    def world_of_contact(i: int, shape0: wp.array[int], shape1: wp.array[int], shape_world: wp.array[int]) -> int:
        w = shape_world[shape0[i]]
        if w < 0:
            w = shape_world[shape1[i]]
        return wp.max(w, 0)

    @wp.kernel(module="unique", enable_backward=False)
    def find_ranges(
        count: wp.array[int],
        most: int,
        shape0: wp.array[int],
        shape1: wp.array[int],
        shape_world: wp.array[int],
        # out: first contact of each world, and the one behind its last
        ranges: wp.array2d[int],
    ):
        i = wp.tid()
        n = wp.min(count[0], most)
        if i < n:
            w = world_of_contact(i, shape0, shape1, shape_world)
            if i == 0 or world_of_contact(wp.max(i - 1, 0), shape0, shape1, shape_world) != w:
                ranges[w, 0] = i
            if i == n - 1 or world_of_contact(wp.min(i + 1, n - 1), shape0, shape1, shape_world) != w:
                ranges[w, 1] = i + 1

    @wp.kernel(module="unique", enable_backward=False)
    def all_contacts(
        count: wp.array[int],
        most: int,
        # out:
        ranges: wp.array2d[int],
    ):
        w = wp.tid()
        ranges[w, 0] = 0
        ranges[w, 1] = wp.min(count[0], most)

    @wp.func
    def centre(body: int, body_q: wp.array[transform], body_com: wp.array[vec3]) -> vec3:
        return wp.transform_point(body_q[body], body_com[body])

    @wp.func
    def put(out: wp.array[spatial], body: int, f: vec3, n: vec3):
        out[body] = out[body] + spatial(f[0], f[1], f[2], n[0], n[1], n[2])

    @wp.kernel(module="unique", enable_backward=False)
    def transmit(
        # Model: articulation_of has the articulation of each body
        start: wp.array[int],
        end: wp.array[int],
        world: wp.array[int],
        joint_parent: wp.array[int],
        joint_child: wp.array[int],
        articulation_of: wp.array[int],
        gravity: wp.array[vec3],
        mass: wp.array[real],
        inertia: wp.array[mat33],
        body_com: wp.array[vec3],
        shape_body: wp.array[int],
        # state, external wrenches, accelerations, contacts
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        wrench: wp.array[spatial],
        body_qdd: wp.array[spatial],
        ranges: wp.array2d[int],
        shape0: wp.array[int],
        shape1: wp.array[int],
        force: wp.array[spatial],
        # out:
        body_parent_f: wp.array[spatial],
    ):
        a = wp.tid()
        w = wp.max(world[a], 0)
        for j in range(start[a], end[a]):
            b = joint_child[j]
            r = wp.quat_to_matrix(wp.transform_get_rotation(body_q[b]))
            own = r * inertia[b] * wp.transpose(r)
            spin = vec3(body_qd[b][3], body_qd[b][4], body_qd[b][5])
            f = (vec3(body_qdd[b][0], body_qdd[b][1], body_qdd[b][2]) - gravity[w]) * mass[b]
            n = own * vec3(body_qdd[b][3], body_qdd[b][4], body_qdd[b][5]) + wp.cross(spin, own * spin)
            body_parent_f[b] = spatial(f[0], f[1], f[2], n[0], n[1], n[2]) - wrench[b]
        if ranges.shape[0] > 0:
            for c in range(ranges[w, 0], ranges[w, 1]):
                # acts on the first shape, about the centre of mass of its body; about the origin of the world if it has none
                f = vec3(force[c][0], force[c][1], force[c][2])
                n = vec3(force[c][3], force[c][4], force[c][5])
                one = shape_body[shape0[c]]
                two = shape_body[shape1[c]]
                x = vec3()
                if one >= 0:
                    x = centre(one, body_q, body_com)
                    if articulation_of[one] == a:
                        put(body_parent_f, one, -f, -n)
                if two >= 0:
                    if articulation_of[two] == a:
                        put(body_parent_f, two, f, n + wp.cross(x - centre(two, body_q, body_com), f))
        for back in range(end[a] - start[a]):
            j = end[a] - 1 - back
            p = joint_parent[j]
            if p >= 0:
                b = joint_child[j]
                f = vec3(body_parent_f[b][0], body_parent_f[b][1], body_parent_f[b][2])
                n = vec3(body_parent_f[b][3], body_parent_f[b][4], body_parent_f[b][5])
                arm = centre(b, body_q, body_com) - centre(p, body_q, body_com)
                put(body_parent_f, p, f, n + wp.cross(arm, f))

    @wp.func
    def rotation_vector(q: quat) -> vec3:
        v = vec3(q[0], q[1], q[2])
        w = q[3]
        if w < real(0.0):
            v = -v
            w = -w
        size = wp.length(v)
        share = real(2.0)
        if size > real(0.0):
            share = real(2.0) * wp.atan2(size, w) / size
        return v * share

    @wp.func
    def turn_at(q: int, coordinates: wp.array[real]) -> quat:
        return wp.normalize(quat(coordinates[q], coordinates[q + 1], coordinates[q + 2], coordinates[q + 3]))

    @wp.func
    def point_at(q: int, coordinates: wp.array[real], place: vec3) -> vec3:
        """A point of the child in the parent's anchor frame, from its place in the child's anchor frame."""
        anchor = vec3(coordinates[q], coordinates[q + 1], coordinates[q + 2])
        return anchor + wp.quat_rotate(turn_at(q + 3, coordinates), place)

    @wp.func
    def error_of(kind: int, q: int, i: int, com: vec3, joint_q: wp.array[real], target_q: wp.array[real]) -> real:
        """From the coordinates to the target along dof i of a joint whose coordinates begin at q; the centre of mass `com` is in the
        child's anchor frame."""
        error = real(0.0)
        if kind == wp.static(FLOATS):
            if i < 3:
                error = (point_at(q, target_q, com) - point_at(q, joint_q, com))[i]
            else:
                error = rotation_vector(turn_at(q + 3, target_q) * wp.quat_inverse(turn_at(q + 3, joint_q)))[i - 3]
        if kind == wp.static(BY_AXES):
            error = target_q[q + i] - joint_q[q + i]
        if kind == wp.static(TURNS):
            error = rotation_vector(turn_at(q, target_q) * wp.quat_inverse(turn_at(q, joint_q)))[i]
        return error

    @wp.kernel(module="unique", enable_backward=False)
    def drive(
        # Model: kind of targets of each joint, and -1 where there is no drive
        kind_of: wp.array[int],
        q_start: wp.array[int],
        qd_start: wp.array[int],
        mode: wp.array[int],
        ke: wp.array[real],
        kd: wp.array[real],
        effort_limit: wp.array[real],
        child: wp.array[int],
        anchor: wp.array[transform],
        body_com: wp.array[vec3],
        # state and control before the step
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
        target_q: wp.array[real],
        target_qd: wp.array[real],
        act: wp.array[real],
        # out:
        force: wp.array[real],
    ):
        j = wp.tid()
        kind = kind_of[j]
        com = wp.transform_point(wp.transform_inverse(anchor[j]), body_com[child[j]])
        for d in range(qd_start[j], qd_start[j + 1]):
            f = real(0.0)
            if kind >= 0:
                f = act[d]
                if (mode[d] & wp.static(POSITION)) != 0:
                    f += ke[d] * error_of(kind, q_start[j], d - qd_start[j], com, joint_q, target_q)
                if (mode[d] & wp.static(VELOCITY)) != 0:
                    f += kd[d] * target_qd[d]
                if (mode[d] & wp.static(POSITION | VELOCITY)) != 0:
                    f -= kd[d] * joint_qd[d]
                f = wp.clamp(f, -effort_limit[d], effort_limit[d])
            force[d] = f

    return types.SimpleNamespace(
        change=change, spread=spread, find_ranges=find_ranges, all_contacts=all_contacts, transmit=transmit, drive=drive
    )
