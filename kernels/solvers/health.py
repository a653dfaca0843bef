"""Finds worlds with finite coordinates and bounded speeds, and resets worlds."""

import types
from functools import cache

import warp as wp
from newton_like.kernels.pieces import listed_number
from newton_like.kernels.simd import C_NAME, COPYING


@cache
def health_kernels(real):
    """Kernels for the scalar type `real`: `examine` and `restore` over articulations, `examine_bodies` and `release` over bodies, `inspect`
    and `rouse` over actuators, `spread` over numbers."""

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def examine(
        # Model:
        articulation_start: wp.array[int],
        articulation_world: wp.array[int],
        joint_q_start: wp.array[int],
        joint_qd_start: wp.array[int],
        highest_speed: real,
        # State:
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
        # out:
        sick: wp.array[wp.bool],
    ):
        a = wp.tid()
        first = articulation_start[a]
        end = articulation_start[a + 1]
        good = bool(True)
        for i in range(joint_q_start[first], joint_q_start[end]):
            if not wp.isfinite(joint_q[i]):
                good = False
        for i in range(joint_qd_start[first], joint_qd_start[end]):
            if not wp.abs(joint_qd[i]) < highest_speed:
                good = False
        if not good:
            # every writer writes the same value
            sick[wp.max(articulation_world[a], 0)] = True

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def examine_bodies(
        # Model:
        body_world: wp.array[int],
        highest_speed: real,
        # State:
        body_q: wp.array[real],
        body_qd: wp.array[real],
        # out:
        sick: wp.array[wp.bool],
    ):
        b = wp.tid()
        good = bool(True)
        for i in range(7):
            if not wp.isfinite(body_q[7 * b + i]):
                good = False
        for i in range(6):
            if not wp.abs(body_qd[6 * b + i]) < highest_speed:
                good = False
        if not good:
            sick[wp.max(body_world[b], 0)] = True

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def inspect(
        actuator_world: wp.array[int],
        actuator_act: wp.array[real],
        # out:
        sick: wp.array[wp.bool],
    ):
        i = wp.tid()
        if not wp.isfinite(actuator_act[i]):
            sick[wp.max(actuator_world[i], 0)] = True

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def restore(
        mask: wp.array[wp.bool],
        articulation_start: wp.array[int],
        articulation_world: wp.array[int],
        joint_q_start: wp.array[int],
        joint_qd_start: wp.array[int],
        initial_q: wp.array[real],
        initial_qd: wp.array[real],
        # out:
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
        chosen: wp.array[wp.bool],
    ):
        a = wp.tid()
        chosen[a] = mask[wp.max(articulation_world[a], 0)]
        if chosen[a]:
            first = articulation_start[a]
            end = articulation_start[a + 1]
            for i in range(joint_q_start[first], joint_q_start[end]):
                joint_q[i] = initial_q[i]
            for i in range(joint_qd_start[first], joint_qd_start[end]):
                joint_qd[i] = initial_qd[i]

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def release(
        mask: wp.array[wp.bool],
        body_world: wp.array[int],
        # out:
        body_f: wp.array[real],
    ):
        i = wp.tid()
        if mask[wp.max(body_world[i], 0)]:
            for j in range(6):
                body_f[6 * i + j] = real(0.0)

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def rouse(
        mask: wp.array[wp.bool],
        actuator_world: wp.array[int],
        initial: wp.array[real],
        # out:
        actuator_act: wp.array[real],
    ):
        i = wp.tid()
        if mask[wp.max(actuator_world[i], 0)]:
            actuator_act[i] = initial[i]

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def spread(
        rows: wp.array2d[real],
        worlds: wp.array[int],
        # out:
        numbers: wp.array[real],
    ):
        """rows[i] are the numbers of world worlds[i], or of world i if there are no `worlds`; a single row is that of all"""
        i, j = wp.tid()
        w = i
        if worlds:
            w = worlds[i]
        numbers[w * rows.shape[1] + j] = rows[wp.min(i, rows.shape[0] - 1), j]

    return types.SimpleNamespace(
        examine=examine,
        examine_bodies=examine_bodies,
        inspect=inspect,
        restore=restore,
        release=release,
        rouse=rouse,
        spread=spread,
    )


@cache
def forget_kernel(real):
    """Kernel over the blocks of a batch: forgets the remembered forces of the chosen articulations."""
    code = """
    char* at = (char*)kept.data + (long long)b * kept.strides[0];
    const long long count = (long long)kept.shape[1] * kept.shape[2];
    if (kept.strides[1] == kept.shape[2] * (int)sizeof(real)) {
        real* row = (real*)at;
        for (long long i = 0; i < count; ++i) row[i] = real(0);
    } else
        for (int i = 0; i < kept.shape[1]; ++i)
            for (int l = 0; l < kept.shape[2]; ++l) *(real*)(at + (long long)i * kept.strides[1] + l * kept.strides[2]) = real(0);
    """

    # pointers: a block is one piece of memory on a CPU
    @wp.func_native(f"typedef {C_NAME[real]} real;{code}")
    def clear_block(b: int, kept: wp.array3d[real]): ...

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def forget(mask: wp.array[wp.bool], world: wp.array[int], order: wp.array[int], kept: wp.array3d[real]):
        """kept is [block, place, lane]; the articulations of a block are in the order of the batch if `order` is empty"""
        b = wp.tid()
        width = kept.shape[2]
        first = b * width
        lanes = wp.min(width, world.shape[0] - first)
        chosen = int(0)
        for l in range(lanes):
            if mask[wp.max(world[listed_number(order, first + l)], 0)]:
                chosen = chosen + 1
        if chosen == lanes:
            clear_block(b, kept)
        elif chosen > 0:
            for l in range(lanes):
                if mask[wp.max(world[listed_number(order, first + l)], 0)]:
                    for i in range(kept.shape[1]):
                        kept[b, i, l] = real(0.0)

    return forget
