"""Kernels between steps: what a reset forgets of joints and lines, and full turns of angles."""

from functools import cache

import warp as wp
from newton_like.kernels.simd import COPYING
from newton_like.kernels.solvers.xpbd.joints import GIVEN, IMPULSE, ROTOR, UNKNOWN
from newton_like.kernels.solvers.xpbd.lines import LINE_IMPULSE, WORK_AT


@cache
def forget_kernels(real):
    """Kernels over blocks and lanes that set the kept impulses of joints and of lines in chosen worlds to zero."""

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def forget_joints(world: wp.array2d[int], mask: wp.array[bool], work: wp.array3d[real]):
        b, k = wp.tid()
        unknown = real(UNKNOWN)
        if world[b, k] >= 0:
            if mask[world[b, k]]:
                for i in range(6):
                    work[b, IMPULSE + i, k] = real(0.0)
                    work[b, ROTOR + i, k] = unknown
                for i in range(3):
                    # angles are taken from joint_q again
                    work[b, GIVEN + i, k] = unknown

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def forget_lines(blocks: wp.array2d[int], world: wp.array2d[int], mask: wp.array[bool], work: wp.array2d[real]):
        n, k = wp.tid()
        if world[n, k] >= 0:
            if mask[world[n, k]]:
                work[blocks[n, WORK_AT] + LINE_IMPULSE, k] = real(0.0)

    return forget_joints, forget_lines


@cache
def turn_kernel(real):
    """Kernel over degrees of freedom: brings angles to the full turn that is nearest to the angles before."""

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def count_turns(coordinate: wp.array[int], before: wp.array[real], joint_q: wp.array[real]):
        i = coordinate[wp.tid()]
        turn = real(6.283185307179586)
        joint_q[i] = joint_q[i] + turn * wp.floor((before[i] - joint_q[i]) / turn + real(0.5))

    return count_turns
