"""Kernels of joints: efforts of actuators, limits, dry friction at rest and in motion.

The efforts of a joint, with errors of position and velocity e = q* - q and ed = qd* - qd:

    PD                      computed = kp e + kd ed + feed-forward
    ideal PD                applied = computed within +-effort limit
    DC motor                applied = computed within the torque-speed line: with the stall effort s, the speed v without load, the limit l
                            and qd within +-v (1 + l / s):  from  max(-s (1 + qd / v), -l)  to  min(s (1 - qd / v), l)
    limits by position      applied = computed within +-limit(q), from a table, linear between its entries
    network                 computed = what a function of the user gave; then as DC motor
    implicit PD             targets go to the drive of the step; the numbers above are only reported
"""

import types
from functools import cache

import warp as wp

IMPLICIT, IDEAL, MOTOR, TABLE, NETWORK = range(5)
"""Laws of actuators. Joints without an actuator are IMPLICIT, with the gains of the model."""

DELAYED = 16
"""Added to a law: commands arrive later."""


@cache
def joint_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`: `actuate` over instances, `join_limits` and `stick` over instances and joints."""

    @wp.func
    def clamp(x: real, bound: real) -> real:
        return wp.max(-bound, wp.min(x, bound))

    @wp.func
    def looked_up(table: wp.array2d[real], first: int, count: int, q: real) -> real:
        """Linear interpolation in rows of a table; constant beyond its ends."""
        if q <= table[first, 0]:
            return table[first, 1]
        for k in range(first, first + count - 1):
            if q < table[k + 1, 0]:
                share = (q - table[k, 0]) / (table[k + 1, 0] - table[k, 0])
                return table[k, 1] + share * (table[k + 1, 1] - table[k, 1])
        return table[first + count - 1, 1]

    @wp.kernel(module="unique", enable_backward=False)
    def actuate(
        first: int,
        # of joints: laws, and the rows of their tables (first, count)
        law: wp.array[int],
        rows: wp.array2d[int],
        table: wp.array2d[real],
        # of instances and joints: gains, limits, stall effort, speed without load
        kp: wp.array2d[real],
        kd: wp.array2d[real],
        limit: wp.array2d[real],
        stall: wp.array2d[real],
        speed: wp.array2d[real],
        # commands, and those of steps before: [instance, slot, joint, 3]; number of commands since the reset; delays in steps
        target_q: wp.array2d[real],
        target_qd: wp.array2d[real],
        target_f: wp.array2d[real],
        history: wp.array4d[real],
        pushed: wp.array[int],
        delay: wp.array2d[int],
        # state, and efforts of networks
        joint_q: wp.array2d[real],
        joint_qd: wp.array2d[real],
        network: wp.array2d[real],
        # out: commands of drives, and what is reported
        drive_q: wp.array2d[real],
        drive_qd: wp.array2d[real],
        drive_f: wp.array2d[real],
        computed: wp.array2d[real],
        applied: wp.array2d[real],
    ):
        i = first + wp.tid()
        slots = history.shape[1]
        before = int(0)
        if slots > 0:
            before = pushed[i]
            pushed[i] = before + 1
        for j in range(law.shape[0]):
            aim_q = target_q[i, j]
            aim_qd = target_qd[i, j]
            feed = target_f[i, j]
            kind = law[j]
            if kind >= DELAYED:
                kind = kind - DELAYED
                here = before % slots
                history[i, here, j, 0] = aim_q
                history[i, here, j, 1] = aim_qd
                history[i, here, j, 2] = feed
                # the first command since the reset is as old as can be
                then = (before - wp.min(delay[i, j], before)) % slots
                aim_q = history[i, then, j, 0]
                aim_qd = history[i, then, j, 1]
                feed = history[i, then, j, 2]
            q = joint_q[i, j]
            qd = joint_qd[i, j]
            effort = kp[i, j] * (aim_q - q) + kd[i, j] * (aim_qd - qd) + feed
            if kind == NETWORK:
                effort = network[i, j]
            bound = limit[i, j]
            result = clamp(effort, bound)
            if kind == MOTOR or kind == NETWORK:
                top = speed[i, j]
                most = stall[i, j]
                v = clamp(qd, top * (real(1.0) + bound / most))
                high = wp.min(most * (real(1.0) - v / top), bound)
                low = wp.max(most * (real(-1.0) - v / top), -bound)
                result = wp.max(low, wp.min(effort, high))
            if kind == TABLE:
                result = clamp(effort, looked_up(table, rows[j, 0], rows[j, 1], q))
            computed[i, j] = effort
            applied[i, j] = result
            if kind == IMPLICIT:
                drive_q[i, j] = aim_q
                drive_qd[i, j] = aim_qd
                drive_f[i, j] = feed
            else:
                drive_f[i, j] = result

    @wp.kernel(module="unique", enable_backward=False)
    def join_limits(
        lower: wp.array2d[real],
        upper: wp.array2d[real],
        factor: real,
        # out: limits, and those of the share `factor` of the range about its middle
        limits: wp.array3d[real],
        soft: wp.array3d[real],
    ):
        i, j = wp.tid()
        a = lower[i, j]
        b = upper[i, j]
        limits[i, j, 0] = a
        limits[i, j, 1] = b
        middle = real(0.5) * (a + b)
        half = real(0.5) * factor * (b - a)
        soft[i, j, 0] = middle - half
        soft[i, j, 1] = middle + half

    @wp.kernel(module="unique", enable_backward=False)
    def stick(
        at_rest: wp.array2d[real],
        in_motion: wp.array2d[real],
        slow: real,
        joint_qd: wp.array2d[real],
        # out:
        friction: wp.array2d[real],
    ):
        i, j = wp.tid()
        bound = at_rest[i, j]
        if wp.abs(joint_qd[i, j]) > slow:
            bound = in_motion[i, j]
        friction[i, j] = bound

    return types.SimpleNamespace(actuate=actuate, join_limits=join_limits, stick=stick)
