"""Parameters of degrees of freedom: gains of drives by target mode, springs, damping, friction, limits and mimic coefficients."""

import types

import warp as wp
from newton_like.kernels.parameters.gather import EFFORT_MODE, gather_functions

from newton_like.kernels.tree import (  # isort: skip
    ARMATURE, BITS, CLIP_FORCE, DAMPING, EFFORT, EFFORT_LIMIT, FRICTION, FRICTION_LOSS, FRICTION_RATIO, GAIN, LIMIT_DAMPING_RATIO,
    LIMIT_LOWER, LIMIT_OMEGA,
    LIMIT_UPPER, MIMIC_OFFSET, MIMIC_RATIO, POSITION, PRESCRIBED, PRESCRIBED_ARMATURE, REST_Q, STIFFNESS, TARGET_KD, TARGET_KE,
    SLIP, TARGET_VELOCITY_GAIN, VELOCITY, VELOCITY_LIMIT,
)  # fmt: skip

STOP_OMEGA, STOP_DAMPING_RATIO = 1000.0, 100.0
"""Natural frequency [rad/s] and damping ratio of joint limits, which give way as contacts do by default, see
:class:`newton_like.ShapeConfig`."""

SORTS = len(BITS)
"""Limits and friction of a dof that may bind, in the order of their bits."""

NO_LIMIT = 1.0e10
"""Limits from here on bind nothing: ``newton_like.types.MAXVAL``."""

WEAK = 1.0e5
"""Limits of effort (without a drive) and of velocity from here on bind nothing."""

POSITION_MODE, VELOCITY_MODE = 1, 2
"""Bits of ``newton_like.types.JointTargetMode``."""


def gain_kernels(real, module) -> types.SimpleNamespace:
    """For the scalar type `real`, in a module of Warp: the kernel `gains` with the structs of its arguments."""

    # kernels see names, and no attributes
    f = gather_functions(real)
    Target = f.Target
    Batch = f.Batch
    give = f.give
    articulation = f.articulation
    fetch = f.fetch
    whole = f.whole
    fetch3 = f.fetch3
    watch_quaternion = f.watch_quaternion
    watch_gains = f.watch_gains
    watch_order = f.watch_order
    prescribed = f.prescribed

    @wp.struct
    class GainTables:
        # of each dof: its place in the arrays of the model, from the first one of the articulation on
        dof_slot: wp.array[int]
        # of each dof: the coordinates that its rest position and w of a rest orientation are, the joint whose mimic coefficients go with it
        # (-1: none), and whether there is a coordinate to limit
        rest_of: wp.array[int]
        rest_w_of: wp.array[int]
        mimic_of: wp.array[int]
        has_coordinate: wp.array[int]
        # the place in the articulation of the body that moves each dof, if that body may be kinematic; else -1
        driver: wp.array[int]
        # the limits that are looked at, as bits, and whether all dofs may get a drive
        limits: wp.array[int]
        driven: int

    @wp.struct
    class GainArrays:
        # arrays of the model, as numbers in a row
        body_flags: wp.array[int]
        joint_target_mode: wp.array[int]
        joint_target_ke: wp.array[real]
        joint_target_kd: wp.array[real]
        joint_armature: wp.array[real]
        joint_damping: wp.array[real]
        joint_stiffness: wp.array[real]
        joint_effort_limit: wp.array[real]
        joint_velocity_limit: wp.array[real]
        joint_friction: wp.array[real]
        joint_friction_ratio: wp.array[real]
        joint_limit_lower: wp.array[real]
        joint_limit_upper: wp.array[real]
        joint_rest_q: wp.array[real]
        joint_mimic_coeffs: wp.array[real]

    @wp.kernel(module=module, enable_backward=False)
    def gains(
        G: Target,
        B: Batch,
        T: GainTables,
        M: GainArrays,
        gain_at: int,
        # out: whether some articulation is bound by a limit, SORTS a dof
        binds: wp.array[wp.bool],
    ):
        at_lane, share = wp.tid()
        i, lane = articulation(G, at_lane)
        if i < 0:
            return
        for d in range(share, G.items, G.sharing):
            j = B.qd_start + B.qd_stride * i + whole(T.dof_slot, d)
            at = gain_at + GAIN * d
            none = wp.float64(0.0)
            mode = whole(M.joint_target_mode, j)
            ke = none
            kd = none
            kv = none
            stiff = fetch(M.joint_target_ke, j)
            damp = fetch(M.joint_target_kd, j)
            if (mode & POSITION_MODE) != 0:
                ke = stiff
                kd = damp
            if (mode & VELOCITY_MODE) != 0:
                kd = damp
                kv = damp
            effort = fetch(M.joint_effort_limit, j)
            speed = fetch(M.joint_velocity_limit, j)
            friction = fetch(M.joint_friction, j)
            in_motion = fetch(M.joint_friction_ratio, j)
            lower = fetch(M.joint_limit_lower, j)
            upper = fetch(M.joint_limit_upper, j)
            armature = fetch(M.joint_armature, j)
            damping = fetch(M.joint_damping, j)
            stiffness = fetch(M.joint_stiffness, j)
            far = wp.float64(NO_LIMIT)
            least = wp.min(wp.min(wp.min(stiff, damp), wp.min(armature, damping)), wp.min(stiffness, friction))
            least = wp.min(least, wp.min(in_motion, wp.float64(1.0) - in_motion))
            rest = none
            if whole(T.rest_of, d) >= 0:
                rest = fetch(M.joint_rest_q, B.q_start + B.q_stride * i + whole(T.rest_of, d))
            offset = none
            ratio = none
            if whole(T.rest_w_of, d) >= 0:
                w = B.q_start + B.q_stride * i + whole(T.rest_w_of, d)
                offset = fetch(M.joint_rest_q, w)
                turn = fetch3(M.joint_rest_q, w - 3)
                watch_quaternion(G, turn, offset)
            if whole(T.mimic_of, d) >= 0:
                pair = 2 * (B.joint_start + B.joint_stride * i + whole(T.mimic_of, d))
                offset = fetch(M.joint_mimic_coeffs, pair)
                ratio = fetch(M.joint_mimic_coeffs, pair + 1)
            if whole(T.has_coordinate, d) != 0:
                watch_order(G, lower, upper)
            gains = stiff + damp + armature + damping + stiffness + friction + in_motion + rest + offset + ratio
            watch_gains(G, gains, least, effort, speed, lower, upper, far, mode)
            kinematic = prescribed(whole(T.driver, d), B.body_start + B.body_stride * i, M.body_flags)
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
            give(G, lane, at + FRICTION_RATIO, in_motion)
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
            if effort < far and (T.driven != 0 or ke != none or kd != none or effort < weak or clip != none):
                bits = EFFORT
                binds[SORTS * d] = True
            if friction > none:
                bits = bits | FRICTION
                binds[SORTS * d + 1] = True
            if in_motion != wp.float64(1.0) and not kinematic:
                # also without friction, which an edit may add
                bits = bits | SLIP
                binds[SORTS * d + 5] = True
            if speed < weak:
                bits = bits | VELOCITY
                binds[SORTS * d + 2] = True
            if whole(T.has_coordinate, d) != 0 and (lower > -far or upper < far):
                bits = bits | POSITION
                binds[SORTS * d + 3] = True
            if kinematic:
                bits = bits | PRESCRIBED
                binds[SORTS * d + 4] = True
            if (bits & ~whole(T.limits, d)) != 0:
                G.status[1] = True

    return types.SimpleNamespace(
        GainTables=GainTables, GainArrays=GainArrays, gains=gains,
    )  # fmt: skip
