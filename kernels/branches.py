"""Forward and inverse kinematics of selected joints: the results of whole articulations are applied to the selected bodies and
coordinates only."""

from functools import cache
from types import SimpleNamespace

import warp as wp


@cache
def branch_kernels(real, transform, spatial_vector) -> SimpleNamespace:
    """``move_bodies`` and ``copy_joints`` for one scalar type and its transforms and spatial vectors."""

    @wp.func
    def is_chosen(
        joint: int, joint_child: wp.array[int], body_flags: wp.array[int], flags: int, joints: wp.array[bool]
    ):
        if joints and not joints[joint]:
            return False
        return (body_flags[joint_child[joint]] & flags) != 0

    @wp.kernel(module="unique")
    def move_bodies(
        starts: wp.array[int],
        ends: wp.array[int],
        articulations: wp.array[bool],
        joint_parent: wp.array[int],
        joint_child: wp.array[int],
        joint_ancestor: wp.array[int],
        body_com: wp.array[wp.types.vector(3, real)],
        body_flags: wp.array[int],
        flags: int,
        joints: wp.array[bool],
        full_q: wp.array[transform],
        full_qd: wp.array[spatial_vector],
        # out:
        body_q: wp.array[transform],
        body_qd: wp.array[spatial_vector],
    ):
        """Moves the children of the selected joints. Their poses and velocities relative to their parents become those in ``full_q`` and
        ``full_qd``, the results for all joints."""
        a = wp.tid()
        if articulations and not articulations[a]:
            return
        for j in range(starts[a], ends[a]):
            if is_chosen(j, joint_child, body_flags, flags, joints):
                c = joint_child[j]
                if joint_ancestor[j] < 0:
                    body_q[c] = full_q[c]
                    body_qd[c] = full_qd[c]
                else:
                    p = joint_parent[j]
                    change = body_q[p] * wp.transform_inverse(full_q[p])
                    pose = change * full_q[c]
                    turn = wp.transform_get_rotation(change)
                    w, v = wp.spatial_bottom(full_qd[p]), wp.spatial_top(full_qd[p])
                    arm = wp.transform_point(full_q[c], body_com[c]) - wp.transform_point(full_q[p], body_com[p])
                    relative_v = wp.spatial_top(full_qd[c]) - v - wp.cross(w, arm)
                    relative_w = wp.spatial_bottom(full_qd[c]) - w
                    new_w, new_v = wp.spatial_bottom(body_qd[p]), wp.spatial_top(body_qd[p])
                    new_arm = wp.transform_point(pose, body_com[c]) - wp.transform_point(body_q[p], body_com[p])
                    body_q[c] = pose
                    body_qd[c] = spatial_vector(
                        new_v + wp.cross(new_w, new_arm) + wp.quat_rotate(turn, relative_v),
                        new_w + wp.quat_rotate(turn, relative_w),
                    )

    @wp.kernel(module="unique")
    def copy_joints(
        starts: wp.array[int],
        ends: wp.array[int],
        articulations: wp.array[bool],
        joint_child: wp.array[int],
        body_flags: wp.array[int],
        flags: int,
        joint_q_start: wp.array[int],
        joint_qd_start: wp.array[int],
        full_q: wp.array[real],
        full_qd: wp.array[real],
        # out:
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
    ):
        """Copies coordinates and velocities of the joints whose child bodies have at least one of the flags."""
        a = wp.tid()
        if articulations and not articulations[a]:
            return
        for j in range(starts[a], ends[a]):
            if (body_flags[joint_child[j]] & flags) != 0:
                for i in range(joint_q_start[j], joint_q_start[j + 1]):
                    joint_q[i] = full_q[i]
                for i in range(joint_qd_start[j], joint_qd_start[j + 1]):
                    joint_qd[i] = full_qd[i]

    return SimpleNamespace(move_bodies=move_bodies, copy_joints=copy_joints)
