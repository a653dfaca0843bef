"""Parameters of the joints, bodies and gravity of articulations: rotations of anchors and axes, masses."""

import types

import warp as wp
from newton_like.kernels.parameters.gather import gather_functions

from newton_like.kernels.tree import (  # isort: skip
    AXIS, AXIS_IN_PARENT, BODY, CENTRE_OF_MASS, CHILD_POS, CHILD_QUAT_INVERSE, DISTANCE_MAX, DISTANCE_MIN, DOF, HALF_TURN_QUAT,
    HOME_QUAT, INERTIA, JOINT, MASS, PARENT_POS, PARENT_QUAT,
)  # fmt: skip


def tree_kernels(real, module) -> types.SimpleNamespace:
    """For the scalar type `real`, in a module of Warp: the kernels `joints`, `bodies` and `gravities` with the structs of their
    arguments."""

    # kernels see names, and no attributes
    f = gather_functions(real)
    Target = f.Target
    Batch = f.Batch
    give = f.give
    give_of_body = f.give_of_body
    give3 = f.give3
    give4 = f.give4
    articulation = f.articulation
    fetch = f.fetch
    whole = f.whole
    fetch3 = f.fetch3
    watch = f.watch
    watch3 = f.watch3
    give_turn = f.give_turn
    news = f.news
    watch_axis = f.watch_axis
    watch_order = f.watch_order
    prescribed = f.prescribed
    turned = f.turned

    @wp.struct
    class JointTables:
        # of each joint and of each dof: its place in the arrays of the model, from the first one of the articulation on
        slot: wp.array[int]
        dof_slot: wp.array[int]
        # of each joint: its first dof, then the end; and whether it limits the distance of its anchors
        dof_at: wp.array[int]
        distant: wp.array[int]
        # the place in the articulation of the body that moves each joint, if that body may be kinematic; else -1
        driver: wp.array[int]
        # of each dof: whether it has an axis of its own
        has_coordinate: wp.array[int]

    @wp.struct
    class JointArrays:
        # arrays of the model, as numbers in a row
        joint_parent: wp.array[int]
        joint_ancestor: wp.array[int]
        body_q: wp.array[real]
        body_flags: wp.array[int]
        joint_X_p: wp.array[real]
        joint_X_c: wp.array[real]
        joint_min_distance: wp.array[real]
        joint_max_distance: wp.array[real]
        joint_axis: wp.array[real]

    @wp.struct
    class BodyTables:
        # of each body: its place in the articulation
        slot: wp.array[int]
        # the place in the articulation of the body that moves each body, if that body may be kinematic; else -1
        driver: wp.array[int]

    @wp.struct
    class BodyArrays:
        # arrays of the model, as numbers in a row
        body_flags: wp.array[int]
        body_mass: wp.array[real]
        body_com: wp.array[real]
        body_inertia: wp.array[real]

    @wp.kernel(module=module, enable_backward=False)
    def joints(G: Target, B: Batch, T: JointTables, M: JointArrays, joint_at: int, axis_at: int):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            j = B.joint_start + B.joint_stride * i + whole(T.slot, k)
            x_p = fetch3(M.joint_X_p, 7 * j)
            x_c = fetch3(M.joint_X_c, 7 * j)
            p = fetch3(M.joint_X_p, 7 * j + 3)
            p_w = fetch(M.joint_X_p, 7 * j + 6)
            c = -fetch3(M.joint_X_c, 7 * j + 3)
            c_w = fetch(M.joint_X_c, 7 * j + 6)
            parent = whole(M.joint_parent, j)
            if parent >= 0 and whole(M.joint_ancestor, j) < 0:
                # a body that rests carries the joint
                v = fetch3(M.body_q, 7 * parent + 3)
                w = fetch(M.body_q, 7 * parent + 6)
                x_p = fetch3(M.body_q, 7 * parent) + turned(v, w, x_p)
                rest = w * p + p_w * v + wp.cross(v, p)
                p_w = w * p_w - wp.dot(v, p)
                p = rest
            at = joint_at + JOINT * k
            give_turn(G, lane, at + PARENT_QUAT, p, p_w)
            if news(G, at + PARENT_POS, x_p):
                give3(G, lane, at + PARENT_POS, x_p)
                watch(G, x_p[0] + x_p[1] + x_p[2])
            give_turn(G, lane, at + CHILD_QUAT_INVERSE, c, c_w)
            if news(G, at + CHILD_POS, x_c):
                give3(G, lane, at + CHILD_POS, x_c)
                watch(G, x_c[0] + x_c[1] + x_c[2])
            home_w = p_w * c_w - wp.dot(p, c)
            give4(G, lane, at + HOME_QUAT, p_w * c + c_w * p + wp.cross(p, c), home_w)
            shortest = fetch(M.joint_min_distance, j)
            longest = fetch(M.joint_max_distance, j)
            if whole(T.distant, k) != 0:
                if shortest >= wp.float64(0.0) and longest >= wp.float64(0.0):
                    watch_order(G, shortest, longest)
                watch_order(G, shortest, shortest)
                watch_order(G, longest, longest)
            if prescribed(whole(T.driver, k), B.body_start + B.body_stride * i, M.body_flags):
                shortest = wp.float64(-1.0)
                longest = wp.float64(-1.0)
            # other joints have no distances, whatever stands there
            if shortest == shortest:
                give(G, lane, at + DISTANCE_MIN, shortest)
            if longest == longest:
                give(G, lane, at + DISTANCE_MAX, longest)
            for d in range(whole(T.dof_at, k), whole(T.dof_at, k + 1)):
                axis = fetch3(M.joint_axis, 3 * (B.qd_start + B.qd_stride * i + whole(T.dof_slot, d)))
                if whole(T.has_coordinate, d) != 0:
                    watch_axis(G, axis)
                else:
                    watch(G, axis[0] + axis[1] + axis[2])
                to = axis_at + DOF * d
                give3(G, lane, to + AXIS, axis)
                give3(G, lane, to + AXIS_IN_PARENT, turned(p, p_w, axis))
                # X_p (axis, 0) inverse X_c
                half = p_w * axis + wp.cross(p, axis)
                half_w = -wp.dot(p, axis)
                turn = half_w * c + c_w * half + wp.cross(half, c)
                turn_w = half_w * c_w - wp.dot(half, c)
                give4(G, lane, to + HALF_TURN_QUAT, turn, turn_w)

    @wp.kernel(module=module, enable_backward=False)
    def bodies(G: Target, B: Batch, T: BodyTables, M: BodyArrays, body_at: int):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            j = B.body_start + B.body_stride * i + whole(T.slot, k)
            at = body_at + BODY * k
            # forces do not act on a kinematic body and bodies that are fixed to it: their inertia does not count
            felt = wp.float64(1.0)
            if prescribed(whole(T.driver, k), B.body_start + B.body_stride * i, M.body_flags):
                felt = wp.float64(0.0)
            give_of_body(G, lane, at + MASS, felt * fetch(M.body_mass, j))
            watch3(G, M.body_com, 3 * j)
            for a in range(3):
                give_of_body(G, lane, at + CENTRE_OF_MASS + a, fetch(M.body_com, 3 * j + a))
            half = wp.float64(0.5) * felt
            for a in range(3):
                give_of_body(G, lane, at + INERTIA + a, felt * fetch(M.body_inertia, 9 * j + 4 * a))
            xy = half * (fetch(M.body_inertia, 9 * j + 1) + fetch(M.body_inertia, 9 * j + 3))
            xz = half * (fetch(M.body_inertia, 9 * j + 2) + fetch(M.body_inertia, 9 * j + 6))
            yz = half * (fetch(M.body_inertia, 9 * j + 5) + fetch(M.body_inertia, 9 * j + 7))
            give_of_body(G, lane, at + INERTIA + 3, xy)
            give_of_body(G, lane, at + INERTIA + 4, xz)
            give_of_body(G, lane, at + INERTIA + 5, yz)

    @wp.kernel(module=module, enable_backward=False)
    def gravities(G: Target, gravity_at: int, world: wp.array[int], gravity: wp.array[real]):
        at_lane, _ = wp.tid()
        i, lane = articulation(G, at_lane)
        if i >= 0:
            watch3(G, gravity, 3 * world[i])
            give3(G, lane, gravity_at, fetch3(gravity, 3 * world[i]))

    return types.SimpleNamespace(
        JointTables=JointTables, JointArrays=JointArrays, BodyTables=BodyTables, BodyArrays=BodyArrays, joints=joints, bodies=bodies,
        gravities=gravities,
    )  # fmt: skip
