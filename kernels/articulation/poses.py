"""Kernels that turn poses and velocities of root links into coordinates and velocities of their joints.

A free joint has the pose X_j between its anchors: the link is at X_parent X_p X_j X_c^-1. Its velocity is that of the child's centre of
mass and the angular velocity, in the axes of the parent's anchor. Here the parent is the world.
"""

import types
from functools import cache

import warp as wp


@cache
def pose_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`, over chosen instances: `put_poses`, `put_velocities`, `put_anchors`."""
    vec3 = wp.types.vector(3, real)
    quat = wp.types.quaternion(real)
    transform = wp.types.transformation(real)

    @wp.func
    def chosen(rows: wp.array[int], a: int) -> int:
        i = a
        if rows.shape[0] > 0:
            i = rows[a]
        return i

    @wp.func
    def pose_in(values: wp.array2d[real], a: int) -> transform:
        q = quat(values[a, 3], values[a, 4], values[a, 5], values[a, 6])
        return transform(vec3(values[a, 0], values[a, 1], values[a, 2]), wp.normalize(q))

    @wp.func
    def link_pose(values: wp.array2d[real], a: int, frame: transform, of_com: bool) -> transform:
        pose = pose_in(values, a)
        if of_com:
            pose = wp.transform_multiply(pose, wp.transform_inverse(frame))
        return pose

    @wp.kernel(module="unique", enable_backward=False)
    def put_poses(
        rows: wp.array[int],
        values: wp.array2d[real],
        # whether poses are those of centres of mass, and their frames
        of_com: bool,
        com: wp.array2d[transform],
        joint: wp.array[int],
        joint_X_p: wp.array[transform],
        joint_X_c: wp.array[transform],
        # out:
        coords: wp.array2d[real],
    ):
        a = wp.tid()
        i = chosen(rows, a)
        pose = link_pose(values, a, com[i, 0], of_com)
        x = wp.transform_multiply(
            wp.transform_inverse(joint_X_p[joint[i]]), wp.transform_multiply(pose, joint_X_c[joint[i]])
        )
        p = wp.transform_get_translation(x)
        q = wp.transform_get_rotation(x)
        for k in range(3):
            coords[i, k] = p[k]
        for k in range(4):
            coords[i, 3 + k] = q[k]

    @wp.kernel(module="unique", enable_backward=False)
    def put_velocities(
        rows: wp.array[int],
        values: wp.array2d[real],
        # whether velocities are those of link frames
        of_link: bool,
        com: wp.array2d[transform],
        joint: wp.array[int],
        joint_X_p: wp.array[transform],
        joint_X_c: wp.array[transform],
        coords: wp.array2d[real],
        # out:
        dofs: wp.array2d[real],
    ):
        a = wp.tid()
        i = chosen(rows, a)
        v = vec3(values[a, 0], values[a, 1], values[a, 2])
        w = vec3(values[a, 3], values[a, 4], values[a, 5])
        anchor = wp.transform_get_rotation(joint_X_p[joint[i]])
        if of_link:
            q = quat(coords[i, 3], coords[i, 4], coords[i, 5], coords[i, 6])
            q = anchor * wp.normalize(q) * wp.quat_inverse(wp.transform_get_rotation(joint_X_c[joint[i]]))
            v = v + wp.cross(w, wp.quat_rotate(q, wp.transform_get_translation(com[i, 0])))
        v = wp.quat_rotate_inv(anchor, v)
        w = wp.quat_rotate_inv(anchor, w)
        for k in range(3):
            dofs[i, k] = v[k]
            dofs[i, 3 + k] = w[k]

    @wp.kernel(module="unique", enable_backward=False)
    def put_anchors(
        rows: wp.array[int],
        values: wp.array2d[real],
        of_com: bool,
        com: wp.array2d[transform],
        joint: wp.array[int],
        joint_X_c: wp.array[transform],
        # out: anchors in the world of joints that fix roots
        joint_X_p: wp.array[transform],
    ):
        a = wp.tid()
        i = chosen(rows, a)
        joint_X_p[joint[i]] = wp.transform_multiply(link_pose(values, a, com[i, 0], of_com), joint_X_c[joint[i]])

    return types.SimpleNamespace(put_poses=put_poses, put_velocities=put_velocities, put_anchors=put_anchors)
