"""Quantities of root links: frames of the link and of its centre of mass, velocities in root axes, gravity and heading.

A row of the result has the numbers of one instance, from the offsets below. With the pose (p, R) of the link, the centre of mass c in the
link frame, the velocity v of the centre of mass and the angular velocity w:

    velocity of the link's origin  = v - w x R c
    pose of the centre of mass     = (p + R c, R R_c), where R_c turns the link axes to the principal axes
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.batched import GENERAL_FLAGS

LINK_STATE, COM_STATE, ROOT_STATE = 0, 13, 26
"""Pose and velocity of the link; of the centre of mass; pose of the link with the velocity of the centre of mass."""
LINK_VELOCITY_B, COM_VELOCITY_B, GRAVITY_B, HEADING = 39, 42, 45, 48
"""Linear velocities in root axes (link, centre of mass), the direction of gravity in root axes, and the heading."""
ANGULAR_VELOCITY_B = 49
ROOT_SIZE = 52

BODY_SIZE = 39
"""Numbers of a body: its states as the first three of a root."""


@cache
def state_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`: `root` over instances, `bodies` over bodies of instances, `wxyz` over rows."""
    vec3 = wp.types.vector(3, real)
    quat = wp.types.quaternion(real)
    transform = wp.types.transformation(real)
    spatial = wp.types.vector(6, real)

    # pointers: an index of Warp costs a product with the stride
    @wp.func_native("for (int k = 0; k < 3; ++k) out.data[at + k] = x[k];")
    def put3(out: wp.array[real], at: int, x: vec3): ...

    @wp.func_native("out.data[at] = q.x; out.data[at + 1] = q.y; out.data[at + 2] = q.z; out.data[at + 3] = q.w;")
    def put4(out: wp.array[real], at: int, q: quat): ...

    @wp.func
    def put_states(out: wp.array[real], at: int, pose: transform, c: vec3, turn: quat, v: vec3, w: vec3):
        """Writes the three states of a body. Returns the velocity of the link's origin."""
        p = wp.transform_get_translation(pose)
        q = wp.transform_get_rotation(pose)
        arm = wp.quat_rotate(q, c)
        at_link = v - wp.cross(w, arm)
        put3(out, at + LINK_STATE, p)
        put4(out, at + LINK_STATE + 3, q)
        put3(out, at + LINK_STATE + 7, at_link)
        put3(out, at + LINK_STATE + 10, w)
        put3(out, at + COM_STATE, p + arm)
        put4(out, at + COM_STATE + 3, q * turn)
        put3(out, at + COM_STATE + 7, v)
        put3(out, at + COM_STATE + 10, w)
        put3(out, at + ROOT_STATE, p)
        put4(out, at + ROOT_STATE + 3, q)
        put3(out, at + ROOT_STATE + 7, v)
        put3(out, at + ROOT_STATE + 10, w)
        return at_link

    options = {"cpu_compiler_flags": GENERAL_FLAGS}

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def root(
        first: int,
        # of instances: root body, world, centre of mass with the turn to principal axes; `own` is 0 where it is that of the first one
        body_of: wp.array[int],
        world_of: wp.array[int],
        own: int,
        com: wp.array2d[transform],
        # Model and state:
        gravity: wp.array[vec3],
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        # out:
        out: wp.array[real],
    ):
        i = first + wp.tid()
        at = i * ROOT_SIZE
        pose = body_q[body_of[i]]
        twist = body_qd[body_of[i]]
        frame = com[i * own, 0]
        c = wp.transform_get_translation(frame)
        turn = wp.transform_get_rotation(frame)
        v = vec3(twist[0], twist[1], twist[2])
        w = vec3(twist[3], twist[4], twist[5])
        at_link = put_states(out, at, pose, c, turn, v, w)
        q = wp.transform_get_rotation(pose)
        put3(out, at + LINK_VELOCITY_B, wp.quat_rotate_inv(q, at_link))
        put3(out, at + COM_VELOCITY_B, wp.quat_rotate_inv(q, v))
        put3(out, at + ANGULAR_VELOCITY_B, wp.quat_rotate_inv(q, w))
        g = gravity[world_of[i]]
        size = wp.length(g)
        if size > real(0.0):
            g = g / size
        put3(out, at + GRAVITY_B, wp.quat_rotate_inv(q, g))
        one = real(1.0)
        two = real(2.0)
        out[at + HEADING] = wp.atan2(two * (q[0] * q[1] + q[3] * q[2]), one - two * (q[1] * q[1] + q[2] * q[2]))

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def bodies(
        first: int,
        count: int,
        # of instances and bodies: indices, centres of mass with the turn to principal axes; `own` as above
        body_of: wp.array2d[int],
        own: int,
        com: wp.array2d[transform],
        # State:
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        # out:
        out: wp.array[real],
    ):
        n = first + wp.tid()
        i = n // count
        k = n % count
        twist = body_qd[body_of[i, k]]
        frame = com[i * own, k]
        put_states(
            out, n * BODY_SIZE, body_q[body_of[i, k]], wp.transform_get_translation(frame), wp.transform_get_rotation(frame),
            vec3(twist[0], twist[1], twist[2]), vec3(twist[3], twist[4], twist[5]),
        )  # fmt: skip

    @wp.kernel(module="unique", enable_backward=False)
    def wxyz(
        # where the quaternion begins in a row
        at: int,
        rows: wp.array2d[real],
        # out:
        out: wp.array2d[real],
    ):
        i, j = wp.tid()
        k = j
        if j >= at and j < at + 4:
            k = at + (j - at + 3) % 4
        out[i, j] = rows[i, k]

    return types.SimpleNamespace(root=root, bodies=bodies, wxyz=wxyz)
