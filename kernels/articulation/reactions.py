"""A kernel of the wrenches that joints transmit, by the equations of `kernels.solvers.requested`, about the anchors of joints."""

import types
from functools import cache

import warp as wp


@cache
def reaction_kernels(real) -> types.SimpleNamespace:
    """The kernel for the scalar type `real`: `transmit` over instances."""
    vec3 = wp.types.vector(3, real)
    mat33 = wp.types.matrix((3, 3), real)
    transform = wp.types.transformation(real)
    spatial = wp.types.vector(6, real)

    @wp.func
    def get3(x: wp.array3d[real], i: int, k: int, at: int) -> vec3:
        return vec3(x[i, k, at], x[i, k, at + 1], x[i, k, at + 2])

    @wp.func
    def add3(x: wp.array3d[real], i: int, k: int, at: int, y: vec3):
        for c in range(3):
            x[i, k, at + c] = x[i, k, at + c] + y[c]

    @wp.func
    def centre(body: int, body_q: wp.array[transform], body_com: wp.array[vec3]) -> vec3:
        return wp.transform_point(body_q[body], body_com[body])

    @wp.kernel(module="unique", enable_backward=False)
    def transmit(
        # of instances: bodies, worlds; of bodies: places of their parents in the instance, joints; places of bodies of the model
        body_of: wp.array2d[int],
        world_of: wp.array[int],
        parent: wp.array[int],
        joint_of: wp.array2d[int],
        place_of: wp.array[int],
        # Model:
        gravity: wp.array[vec3],
        mass: wp.array[real],
        inertia: wp.array[mat33],
        body_com: wp.array[vec3],
        joint_X_c: wp.array[transform],
        shape_body: wp.array[int],
        # state, accelerations of centres of mass, contacts
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        body_f: wp.array[spatial],
        acceleration: wp.array3d[real],
        ranges: wp.array2d[int],
        shape0: wp.array[int],
        shape1: wp.array[int],
        force: wp.array[spatial],
        # out: about the anchor of the joint, link axes
        out: wp.array3d[real],
    ):
        i = wp.tid()
        count = body_of.shape[1]
        for k in range(count):
            b = body_of[i, k]
            r = wp.quat_to_matrix(wp.transform_get_rotation(body_q[b]))
            own = r * inertia[b] * wp.transpose(r)
            w = vec3(body_qd[b][3], body_qd[b][4], body_qd[b][5])
            f = (get3(acceleration, i, k, 0) - gravity[world_of[i]]) * mass[b] - vec3(
                body_f[b][0], body_f[b][1], body_f[b][2]
            )
            n = (
                own * get3(acceleration, i, k, 3)
                + wp.cross(w, own * w)
                - vec3(body_f[b][3], body_f[b][4], body_f[b][5])
            )
            for c in range(3):
                out[i, k, c] = f[c]
                out[i, k, 3 + c] = n[c]
        if ranges.shape[0] > 0:
            for c in range(ranges[world_of[i], 0], ranges[world_of[i], 1]):
                f = vec3(force[c][0], force[c][1], force[c][2])
                n = vec3(force[c][3], force[c][4], force[c][5])
                one = shape_body[shape0[c]]
                two = shape_body[shape1[c]]
                x = vec3()
                if one >= 0:
                    x = centre(one, body_q, body_com)
                    k = place_of[one]
                    if k >= 0 and body_of[i, wp.max(k, 0)] == one:
                        add3(out, i, k, 0, -f)
                        add3(out, i, k, 3, -n)
                if two >= 0:
                    k = place_of[two]
                    if k >= 0 and body_of[i, wp.max(k, 0)] == two:
                        add3(out, i, k, 0, f)
                        add3(out, i, k, 3, n + wp.cross(x - centre(two, body_q, body_com), f))
        for back in range(count):
            k = count - 1 - back
            b = body_of[i, k]
            f = get3(out, i, k, 0)
            n = get3(out, i, k, 3)
            x = centre(b, body_q, body_com)
            p = parent[k]
            if p >= 0:
                add3(out, i, p, 0, f)
                add3(out, i, p, 3, n + wp.cross(x - centre(body_of[i, p], body_q, body_com), f))
            pose = body_q[b]
            anchor = wp.transform_point(pose, wp.transform_get_translation(joint_X_c[joint_of[i, k]]))
            q = wp.transform_get_rotation(pose)
            n = wp.quat_rotate_inv(q, n + wp.cross(x - anchor, f))
            f = wp.quat_rotate_inv(q, f)
            for c in range(3):
                out[i, k, c] = f[c]
                out[i, k, 3 + c] = n[c]

    return types.SimpleNamespace(transmit=transmit)
