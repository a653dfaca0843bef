"""The parameters of a batch, gathered from the arrays of a model: the blocks of numbers that `newton_like.kernels.tree` lists.

Arrays of a model are read as numbers in a row. What does not depend on the state is worked out here, in double precision: rotations of
anchors and axes, drive gains by target mode, contact softness. A thread writes the block of one joint, degree of freedom, body, collider or
plane of one articulation.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.gather import EFFORT_MODE, gather_functions

from newton_like.kernels.tree import (  # isort: skip
    ARMATURE, AXIS, AXIS_IN_PARENT, BODY, CENTER, CENTRE_OF_MASS, CHILD_POS, CHILD_QUAT_INVERSE, CLIP_FORCE, COLLIDER, DAMPING,
    DAMPING_RATIO, DISTANCE_MAX, DISTANCE_MIN, DOF, EFFORT, EFFORT_LIMIT, FRICTION, FRICTION_LOSS, GAIN, GAP, HALF_LENGTH,
    HALF_TURN_QUAT, HOME_QUAT, INERTIA, JOINT, LAW, LAW_MU, LAW_SHIFT, LIMIT_DAMPING_RATIO, LIMIT_LOWER, LIMIT_OMEGA, LIMIT_UPPER,
    MARGIN, MASS, MIMIC_OFFSET, MIMIC_RATIO, MU, MU_ROLLING, MU_TORSIONAL, NORMAL, OFFSET, OFFSET_1, OFFSET_2, OMEGA, PARENT_POS,
    PARENT_QUAT, PLANE, POSITION, PRESCRIBED, PRESCRIBED_ARMATURE, RADIUS, RESTITUTION, REST_Q, ROTATION, SIZE, STIFFNESS,
    SURFACE, TANGENT_1, TANGENT_2, TARGET_KD, TARGET_KE, TARGET_VELOCITY_GAIN, VELOCITY, VELOCITY_LIMIT,
)  # fmt: skip

STOP_OMEGA, STOP_DAMPING_RATIO = 1000.0, 100.0
"""Natural frequency [rad/s] and damping ratio of joint limits, which give way as contacts do by default, see
:class:`newton_like.ShapeConfig`."""

FAR = 1.0e10
"""Half an edge of an infinite plane, and a distance at which nothing touches [m]."""

NO_LIMIT = 1.0e10
"""Limits from here on bind nothing: ``newton_like.types.MAXVAL``."""

MOST = 1.7e308
"""Numbers above this value count as infinite."""

WEAK = 1.0e5
"""Limits of effort (without a drive) and of velocity from here on bind nothing."""

SQUARES, LARGEST = 4, 8
"""The form of a shape: how many sizes it has, 0 for hulls. The bounding radius is their sum; with SQUARES added to the form, the root of
the sum of their squares; with LARGEST, the largest."""

LAW_TABLE = LAW + 4
"""Numbers of a law in the table that its record is made of: those of the record, the shares of the first shape's, the second one's and the
larger sliding friction, and the margin of a pair, -1 for none."""

POSITION_MODE, VELOCITY_MODE = 1, 2
"""Bits of ``newton_like.types.JointTargetMode``."""


@cache
def parameter_kernels(real) -> types.SimpleNamespace:
    """For the scalar type `real`: the struct `Target` and the kernels over the articulations of a batch and their joints, dofs, bodies,
    colliders, planes, or nothing (`gravities`); `copies` over numbers that do not differ between articulations."""

    # kernels see names, and no attributes
    f = gather_functions(real)
    Target = f.Target
    give = f.give
    give_of_body = f.give_of_body
    give3 = f.give3
    give4 = f.give4
    lane_of = f.lane_of
    articulation = f.articulation
    fetch = f.fetch
    whole = f.whole
    fetch3 = f.fetch3
    watch = f.watch
    watch3 = f.watch3
    watch_quaternion = f.watch_quaternion
    watch_sizes = f.watch_sizes
    give_turn = f.give_turn
    news = f.news
    is_new = f.is_new
    watch_axis = f.watch_axis
    watch_gains = f.watch_gains
    watch_order = f.watch_order
    watch_pair = f.watch_pair
    prescribed = f.prescribed
    turned = f.turned

    # one module: its kernels are needed together, and compile at once in half the time
    module = wp.get_module(f"newton_like.parameters.{real.__name__}")
    # sums and products are rounded one by one, on all devices
    module.options.update(enable_backward=False, fuse_fp=False)

    @wp.kernel(module=module, enable_backward=False)
    def joints(
        G: Target,
        joint_at: int,
        axis_at: int,
        joint_start: int,
        joint_stride: int,
        qd_start: int,
        qd_stride: int,
        dof_at: wp.array[int],
        # the place of each joint's body in the articulation, if that body may be kinematic; else -1
        driver: wp.array[int],
        body_start: int,
        body_stride: int,
        # whether each joint limits the distance of its anchors, and whether each dof has an axis of its own
        distant: wp.array[int],
        has_coordinate: wp.array[int],
        # Model:
        joint_parent: wp.array[int],
        joint_ancestor: wp.array[int],
        body_q: wp.array[real],
        body_flags: wp.array[int],
        joint_X_p: wp.array[real],
        joint_X_c: wp.array[real],
        joint_min_distance: wp.array[real],
        joint_max_distance: wp.array[real],
        joint_axis: wp.array[real],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            j = joint_start + joint_stride * i + k
            x_p = fetch3(joint_X_p, 7 * j)
            x_c = fetch3(joint_X_c, 7 * j)
            p = fetch3(joint_X_p, 7 * j + 3)
            p_w = fetch(joint_X_p, 7 * j + 6)
            c = -fetch3(joint_X_c, 7 * j + 3)
            c_w = fetch(joint_X_c, 7 * j + 6)
            parent = whole(joint_parent, j)
            if parent >= 0 and whole(joint_ancestor, j) < 0:
                # a body that rests carries the joint
                v = fetch3(body_q, 7 * parent + 3)
                w = fetch(body_q, 7 * parent + 6)
                x_p = fetch3(body_q, 7 * parent) + turned(v, w, x_p)
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
            shortest = fetch(joint_min_distance, j)
            longest = fetch(joint_max_distance, j)
            if whole(distant, k) != 0:
                if shortest >= wp.float64(0.0) and longest >= wp.float64(0.0):
                    watch_order(G, shortest, longest)
                watch_order(G, shortest, shortest)
                watch_order(G, longest, longest)
            if prescribed(whole(driver, k), body_start + body_stride * i, body_flags):
                shortest = wp.float64(-1.0)
                longest = wp.float64(-1.0)
            # other joints have no distances, whatever stands there
            if shortest == shortest:
                give(G, lane, at + DISTANCE_MIN, shortest)
            if longest == longest:
                give(G, lane, at + DISTANCE_MAX, longest)
            for d in range(whole(dof_at, k), whole(dof_at, k + 1)):
                axis = fetch3(joint_axis, 3 * (qd_start + qd_stride * i + d))
                if whole(has_coordinate, d) != 0:
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
    def bodies(
        G: Target,
        body_at: int,
        body_start: int,
        body_stride: int,
        slot: wp.array[int],
        # the place in the articulation of the body that moves each body, if it may be kinematic; else -1
        driver: wp.array[int],
        # Model:
        body_flags: wp.array[int],
        body_mass: wp.array[real],
        body_com: wp.array[real],
        body_inertia: wp.array[real],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            j = body_start + body_stride * i + whole(slot, k)
            at = body_at + BODY * k
            # forces do not act on a kinematic body and bodies that are fixed to it: their inertia does not count
            felt = wp.float64(1.0)
            if prescribed(whole(driver, k), body_start + body_stride * i, body_flags):
                felt = wp.float64(0.0)
            give_of_body(G, lane, at + MASS, felt * fetch(body_mass, j))
            watch3(G, body_com, 3 * j)
            for a in range(3):
                give_of_body(G, lane, at + CENTRE_OF_MASS + a, fetch(body_com, 3 * j + a))
            half = wp.float64(0.5) * felt
            for a in range(3):
                give_of_body(G, lane, at + INERTIA + a, felt * fetch(body_inertia, 9 * j + 4 * a))
            xy = half * (fetch(body_inertia, 9 * j + 1) + fetch(body_inertia, 9 * j + 3))
            xz = half * (fetch(body_inertia, 9 * j + 2) + fetch(body_inertia, 9 * j + 6))
            yz = half * (fetch(body_inertia, 9 * j + 5) + fetch(body_inertia, 9 * j + 7))
            give_of_body(G, lane, at + INERTIA + 3, xy)
            give_of_body(G, lane, at + INERTIA + 4, xz)
            give_of_body(G, lane, at + INERTIA + 5, yz)

    @wp.kernel(module=module, enable_backward=False)
    def gains(
        G: Target,
        gain_at: int,
        joint_start: int,
        joint_stride: int,
        q_start: int,
        q_stride: int,
        qd_start: int,
        qd_stride: int,
        # of each dof: the coordinates that its rest position and w of a rest orientation are, the joint whose mimic coefficients go with it
        # (-1: none), and whether there is a coordinate to limit
        rest_of: wp.array[int],
        rest_w_of: wp.array[int],
        mimic_of: wp.array[int],
        has_coordinate: wp.array[int],
        # the place of each dof's body in the articulation, if that body may be kinematic; else -1
        driver: wp.array[int],
        body_start: int,
        body_stride: int,
        # the limits that are looked at, as bits, and whether all dofs may get a drive
        limits: wp.array[int],
        driven: int,
        # Model:
        body_flags: wp.array[int],
        joint_target_mode: wp.array[int],
        joint_target_ke: wp.array[real],
        joint_target_kd: wp.array[real],
        joint_armature: wp.array[real],
        joint_damping: wp.array[real],
        joint_stiffness: wp.array[real],
        joint_effort_limit: wp.array[real],
        joint_velocity_limit: wp.array[real],
        joint_friction: wp.array[real],
        joint_limit_lower: wp.array[real],
        joint_limit_upper: wp.array[real],
        joint_rest_q: wp.array[real],
        joint_mimic_coeffs: wp.array[real],
        # out: whether some articulation is bound by a limit, five a dof
        binds: wp.array[wp.bool],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for d in range(share, G.items, G.sharing):
            j = qd_start + qd_stride * i + d
            at = gain_at + GAIN * d
            none = wp.float64(0.0)
            mode = whole(joint_target_mode, j)
            ke = none
            kd = none
            kv = none
            stiff = fetch(joint_target_ke, j)
            damp = fetch(joint_target_kd, j)
            if (mode & POSITION_MODE) != 0:
                ke = stiff
                kd = damp
            if (mode & VELOCITY_MODE) != 0:
                kd = damp
                kv = damp
            effort = fetch(joint_effort_limit, j)
            speed = fetch(joint_velocity_limit, j)
            friction = fetch(joint_friction, j)
            lower = fetch(joint_limit_lower, j)
            upper = fetch(joint_limit_upper, j)
            armature = fetch(joint_armature, j)
            damping = fetch(joint_damping, j)
            stiffness = fetch(joint_stiffness, j)
            far = wp.float64(NO_LIMIT)
            least = wp.min(wp.min(wp.min(stiff, damp), wp.min(armature, damping)), wp.min(stiffness, friction))
            rest = none
            if whole(rest_of, d) >= 0:
                rest = fetch(joint_rest_q, q_start + q_stride * i + whole(rest_of, d))
            offset = none
            ratio = none
            if whole(rest_w_of, d) >= 0:
                w = q_start + q_stride * i + whole(rest_w_of, d)
                offset = fetch(joint_rest_q, w)
                turn = fetch3(joint_rest_q, w - 3)
                watch_quaternion(G, turn, offset)
            if whole(mimic_of, d) >= 0:
                pair = 2 * (joint_start + joint_stride * i + whole(mimic_of, d))
                offset = fetch(joint_mimic_coeffs, pair)
                ratio = fetch(joint_mimic_coeffs, pair + 1)
            if whole(has_coordinate, d) != 0:
                watch_order(G, lower, upper)
            gains = stiff + damp + armature + damping + stiffness + friction + rest + offset + ratio
            watch_gains(G, gains, least, effort, speed, lower, upper, far, mode)
            kinematic = prescribed(whole(driver, d), body_start + body_stride * i, body_flags)
            if kinematic:
                mode = 0
                ke = none
                kd = none
                kv = none
                effort = far
                speed = far
                friction = none
                lower = -far
                upper = far
                armature = wp.float64(PRESCRIBED_ARMATURE)
                damping = none
                stiffness = none
            give(G, lane, at + ARMATURE, armature)
            give(G, lane, at + DAMPING, damping)
            give(G, lane, at + STIFFNESS, stiffness)
            give(G, lane, at + TARGET_KE, ke)
            give(G, lane, at + TARGET_KD, kd)
            give(G, lane, at + TARGET_VELOCITY_GAIN, kv)
            give(G, lane, at + EFFORT_LIMIT, effort)
            give(G, lane, at + VELOCITY_LIMIT, speed)
            give(G, lane, at + FRICTION_LOSS, friction)
            give(G, lane, at + LIMIT_LOWER, lower)
            give(G, lane, at + LIMIT_UPPER, upper)
            give(G, lane, at + LIMIT_OMEGA, wp.float64(STOP_OMEGA))
            give(G, lane, at + LIMIT_DAMPING_RATIO, wp.float64(STOP_DAMPING_RATIO))
            clip = none
            if mode == EFFORT_MODE:
                clip = wp.float64(1.0)
            give(G, lane, at + CLIP_FORCE, clip)
            give(G, lane, at + REST_Q, rest)
            give(G, lane, at + MIMIC_OFFSET, offset)
            give(G, lane, at + MIMIC_RATIO, ratio)
            weak = wp.float64(WEAK)
            bits = int(0)
            if effort < far and (driven != 0 or ke != none or kd != none or effort < weak or clip != none):
                bits = EFFORT
                binds[5 * d] = True
            if friction > none:
                bits = bits | FRICTION
                binds[5 * d + 1] = True
            if speed < weak:
                bits = bits | VELOCITY
                binds[5 * d + 2] = True
            if whole(has_coordinate, d) != 0 and (lower > -far or upper < far):
                bits = bits | POSITION
                binds[5 * d + 3] = True
            if kinematic:
                bits = bits | PRESCRIBED
                binds[5 * d + 4] = True
            if (bits & ~whole(limits, d)) != 0:
                G.status[1] = True

    @wp.func
    def bounding_radius(form: int, size: wp.vec3d):
        """Of a shape with sizes, about its origin."""
        none = wp.float64(0.0)
        y = wp.where((form & 3) > 1, size[1], none)
        z = wp.where((form & 3) > 2, size[2], none)
        radius = size[0] + y + z
        if (form & SQUARES) != 0:
            radius = wp.length(wp.vec3d(size[0], y, z))
        if (form & LARGEST) != 0:
            radius = wp.max(wp.vec3d(size[0], y, z))
        return radius

    @wp.kernel(module=module, enable_backward=False)
    def colliders(
        G: Target,
        collider_at: int,
        # of each articulation and collider: its shape, its plane, and whether the two may touch
        shapes: wp.array2d[int],
        planes: wp.array2d[int],
        allowed: wp.array2d[wp.bool],
        # the form of each, see above
        forms: wp.array[int],
        turning: int,
        # the place in the articulation of the body that moves each collider, if it may be kinematic; else -1
        driver: wp.array[int],
        body_start: int,
        body_stride: int,
        # Model:
        body_flags: wp.array[int],
        shape_scale: wp.array[real],
        shape_transform: wp.array[real],
        shape_collision_radius: wp.array[real],
        shape_margin: wp.array[real],
        shape_gap: wp.array[real],
        shape_material_mu: wp.array[real],
        shape_material_restitution: wp.array[real],
        shape_material_time_constant: wp.array[real],
        shape_material_damping_ratio: wp.array[real],
        shape_material_mu_torsional: wp.array[real],
        shape_material_mu_rolling: wp.array[real],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            s = shapes[i, k]
            g = planes[i, k]
            at = collider_at + COLLIDER * k
            half = wp.float64(0.5)
            size = fetch3(shape_scale, 3 * s)
            center = fetch3(shape_transform, 7 * s)
            turn = fetch3(shape_transform, 7 * s + 3)
            turn_w = fetch(shape_transform, 7 * s + 6)
            radius = fetch(shape_collision_radius, s)
            if news(G, at + SIZE, size) or is_new(G, at + RADIUS, radius):
                give3(G, lane, at + SIZE, size)
                watch(G, size[0] + size[1] + size[2])
                watch_order(G, wp.float64(0.0), radius)
                watch(G, radius)
                form = whole(forms, k)
                if form != 0:
                    watch_sizes(G, size)
                    # a shape that was enlarged
                    bound = bounding_radius(form, size)
                    if bound > wp.float64(1.0 + 1.0e-5) * radius:
                        radius = bound
                give(G, lane, at + RADIUS, radius)
            if news(G, at + CENTER, center):
                give3(G, lane, at + CENTER, center)
                watch(G, center[0] + center[1] + center[2])
            give_turn(G, lane, at + ROTATION, turn, turn_w)
            surface = at + SURFACE
            sliding = half * (fetch(shape_material_mu, s) + fetch(shape_material_mu, g))
            give(G, lane, surface + MU, sliding)
            bounce = fetch(shape_material_restitution, s) + fetch(shape_material_restitution, g)
            give(G, lane, surface + RESTITUTION, half * bounce)
            time = half * (fetch(shape_material_time_constant, s) + fetch(shape_material_time_constant, g))
            give(G, lane, surface + OMEGA, wp.float64(1.0) / wp.max(time, wp.float64(1.0e-6)))
            damping = fetch(shape_material_damping_ratio, s) + fetch(shape_material_damping_ratio, g)
            give(G, lane, surface + DAMPING_RATIO, half * damping)
            torsional = half * (fetch(shape_material_mu_torsional, s) + fetch(shape_material_mu_torsional, g))
            rolling = half * (fetch(shape_material_mu_rolling, s) + fetch(shape_material_mu_rolling, g))
            most = wp.float64(MOST)
            watch_pair(G, shape_material_mu, s, g, most)
            watch_pair(G, shape_material_restitution, s, g, wp.float64(1.0))
            watch_pair(G, shape_material_time_constant, s, g, most)
            watch_pair(G, shape_material_damping_ratio, s, g, most)
            watch_pair(G, shape_material_mu_torsional, s, g, most)
            watch_pair(G, shape_material_mu_rolling, s, g, most)
            watch_pair(G, shape_margin, s, g, most)
            watch_pair(G, shape_gap, s, g, most)
            give(G, lane, surface + MU_TORSIONAL, torsional)
            give(G, lane, surface + MU_ROLLING, rolling)
            give(G, lane, surface + MARGIN, fetch(shape_margin, s) + fetch(shape_margin, g))
            gap = fetch(shape_gap, s) + fetch(shape_gap, g)
            # contacts do not act on a kinematic body and bodies that are fixed to it
            if not allowed[i, k] or prescribed(whole(driver, k), body_start + body_stride * i, body_flags):
                gap = wp.float64(-FAR)
            give(G, lane, surface + GAP, gap)
            if turning == 0 and (torsional != wp.float64(0.0) or rolling != wp.float64(0.0)):
                G.status[2] = True

    @wp.kernel(module=module, enable_backward=False)
    def pairs(
        G: Target,
        pair_at: int,
        # of each articulation and pair: whether the two may touch; and the bodies that move both shapes, as for colliders, -2 for none
        allowed: wp.array2d[wp.bool],
        driver_one: wp.array[int],
        driver_two: wp.array[int],
        body_start: int,
        body_stride: int,
        # Model:
        body_flags: wp.array[int],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            first = body_start + body_stride * i
            one = whole(driver_one, k)
            two = whole(driver_two, k)
            # no force moves either of the two
            fixed = one == -2 or prescribed(one, first, body_flags)
            fixed = fixed and (two == -2 or prescribed(two, first, body_flags))
            shift = wp.float64(0.0)
            if fixed or not allowed[i, k]:
                shift = wp.float64(-FAR)
            give(G, lane, pair_at + k, shift)

    @wp.kernel(module=module, enable_backward=False)
    def laws(
        G: Target,
        law_at: int,
        # of each articulation and contact: both shapes, then -1 for position limits
        one: wp.array2d[int],
        two: wp.array2d[int],
        # those of `newton_like.collision.laws`, and how many numbers those of one articulation have; 0: they are the same for all
        table: wp.array[real],
        stride: int,
        # Model:
        shape_margin: wp.array[real],
        shape_material_mu: wp.array[real],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            s, g = one[i, k], two[i, k]
            at = law_at + LAW * k
            start = stride * i + LAW_TABLE * k
            for j in range(LAW):
                if s < 0 or (j != LAW_MU and j != LAW_SHIFT):
                    give(G, lane, at + j, fetch(table, start + j))
            if s < 0:
                continue
            # of sliding friction there are shares of both numbers and of their maximum, and a number
            x = fetch(shape_material_mu, s)
            y = fetch(shape_material_mu, g)
            mu = fetch(table, start + LAW) * x + fetch(table, start + LAW + 1) * y
            mu = mu + fetch(table, start + LAW + 2) * wp.max(x, y) + fetch(table, start + LAW_MU)
            give(G, lane, at + LAW_MU, mu)
            # a pair has a margin of its own, or none
            shift = fetch(table, start + LAW + 3)
            if shift >= wp.float64(0.0):
                shift = fetch(shape_margin, s) + fetch(shape_margin, g) - shift
            else:
                shift = wp.float64(0.0)
            give(G, lane, at + LAW_SHIFT, shift)

    @wp.kernel(module=module, enable_backward=False)
    def planes(
        G: Target,
        plane_at: int,
        planes: wp.array2d[int],
        finite: wp.array[int],
        # Model:
        shape_scale: wp.array[real],
        shape_transform: wp.array[real],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for k in range(share, G.items, G.sharing):
            g = planes[i, k]
            at = plane_at + PLANE * k
            x = fetch3(shape_transform, 7 * g)
            v = fetch3(shape_transform, 7 * g + 3)
            w = fetch(shape_transform, 7 * g + 6)
            watch_quaternion(G, v, w)
            none = wp.float64(0.0)
            one = wp.float64(1.0)
            normal = turned(v, w, wp.vec3d(none, none, one))
            tangent_1 = turned(v, w, wp.vec3d(one, none, none))
            tangent_2 = turned(v, w, wp.vec3d(none, one, none))
            offset = wp.dot(normal, x)
            # NaN and infinity in a factor are in the sum, too
            watch_order(G, none, fetch(shape_scale, 3 * g))
            watch_order(G, none, fetch(shape_scale, 3 * g + 1))
            watch(G, offset + x[0] + x[1] + x[2] + fetch(shape_scale, 3 * g) + fetch(shape_scale, 3 * g + 1))
            give3(G, lane, at + NORMAL, normal)
            give3(G, lane, at + TANGENT_1, tangent_1)
            give3(G, lane, at + TANGENT_2, tangent_2)
            give(G, lane, at + OFFSET, offset)
            give(G, lane, at + OFFSET_1, wp.dot(tangent_1, x))
            give(G, lane, at + OFFSET_2, wp.dot(tangent_2, x))
            for a in range(2):
                half = wp.float64(0.5) * fetch(shape_scale, 3 * g + a)
                if half > none:
                    if finite[k] == 0:
                        G.status[2] = True
                else:
                    half = wp.float64(FAR)
                give(G, lane, at + HALF_LENGTH + a, half)

    @wp.kernel(module=module, enable_backward=False)
    def gravities(G: Target, gravity_at: int, world: wp.array[int], gravity: wp.array[real]):
        at_lane, _ = wp.tid()
        i, lane = articulation(G, at_lane)
        if i >= 0:
            watch3(G, gravity, 3 * world[i])
            give3(G, lane, gravity_at, fetch3(gravity, 3 * world[i]))

    @wp.kernel(module=module, enable_backward=False)
    def copies(G: Target, start: int, first: wp.array[real]):
        at_lane, share = wp.tid()
        thread = G.first_lane + at_lane
        lane = lane_of(G, thread)
        for k in range(share, G.items, G.sharing):
            give(G, lane, start + k, wp.float64(first[start + k]))

    return types.SimpleNamespace(
        Target=Target, joints=joints, bodies=bodies, gains=gains, colliders=colliders, planes=planes, pairs=pairs, gravities=gravities,
        copies=copies, laws=laws,
    )  # fmt: skip
