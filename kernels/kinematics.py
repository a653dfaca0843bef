"""Forward and inverse kinematics of whole articulations, and the kernels that run them over batches."""

import types
from functools import cache

import warp as wp

from newton_like.kernels.joints import inverse_joint_dispatch, joint_dispatch
from newton_like.kernels.lanes import lane_math
from newton_like.kernels.spatial import spatial_algebra
from newton_like.kernels.tree import tree_structs


def kinematics_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``forward_kinematics`` and ``write_bodies``."""

    @m.func
    def forward_kinematics(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """Poses, motion subspaces and twists of all bodies, from the q and v of the layout."""
        m.set_origin(b, t, T, P, L, mem)
        for k in range(T.bodies):
            m.place_body(b, t, k, T, P, L, mem)

    @m.func
    def write_bodies(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """Public poses and velocities, from the results of forward_kinematics."""
        for k in range(T.bodies):
            m.write_pose(t, k, T.body_slot[k], L, mem)

    return types.SimpleNamespace(**vars(m), forward_kinematics=forward_kinematics, write_bodies=write_bodies)


@cache
def kinematics_kernels(width: int, real, backward: bool) -> types.SimpleNamespace:
    """The programs' namespace over lanes of `width` worlds, with the struct ``Places`` and the kernels of this file.

    Args:
        width: worlds a thread.
        real: scalar type.
        backward: whether the kernels can be differentiated (width 1).
    """
    m = joint_dispatch(tree_structs(spatial_algebra(lane_math(width, real))))
    m = kinematics_program(inverse_joint_dispatch(m))
    m.Places = places_struct(m)
    m.store = store_program(m)
    return types.SimpleNamespace(**vars(m), eval_fk=fk_kernel(m, backward), eval_ik=ik_kernel(m, backward))


def places_struct(m: types.SimpleNamespace):
    """Where the articulations of a batch lie in the flat public arrays: first entry of the first one, and stride to the next."""

    @wp.struct
    class Places:
        count: int
        q_start: int
        q_stride: int
        qs: int
        qd_start: int
        qd_stride: int
        qds: int
        body_start: int
        body_stride: int
        bodies: int
        # whether the bodies fill their stretch of the body arrays without gaps
        dense: int
        # whether there is a mask; articulations of the model
        masked: int
        start: int
        stride: int
        # sizes of a Jacobian and of a mass matrix: most links and dofs of an articulation of the model
        links: int
        dofs: int
        # whether every row of memory is written once
        apart: int

    return Places


def store_program(m: types.SimpleNamespace):
    """The function that writes rows of memory back, of the selected articulations of a block."""
    real = m.real

    @wp.func
    def store(
        mem: m.memory,
        at: int,
        t: int,
        a: wp.array[real],
        start: int,
        stride: int,
        n: int,
        b: int,
        B: m.Places,
        mask: wp.array[bool],
    ):
        if B.masked != 0:
            m.stage_out_where(mem, at, t, a, start, stride, n, b, B.count, mask, B.start, B.stride)
        else:
            m.stage_out(mem, at, t, a, start, stride, n, b, B.count)

    return store


def fk_kernel(m: types.SimpleNamespace, backward: bool):
    """The kernel of ``eval_fk``: block ``first + tid``."""
    real = m.real

    @wp.kernel(module="unique", enable_backward=backward)
    def eval_fk(
        first: int,
        workers: int,
        B: m.Places,
        T: m.Tree,
        P: m.Params,
        L: m.Layout,
        mask: wp.array[bool],
        mem: m.memory,
        # State in:
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
        # State out:
        body_q: wp.array[real],
        body_qd: wp.array[real],
    ):
        b = wp.tid() + first
        t = wp.tid() % workers
        wanted = bool(True)
        if B.masked != 0:
            wanted = m.any_selected(mask, B.start, B.stride, b, B.count)
        if wanted:
            m.stage_in(mem, L.q, t, joint_q, B.q_start, B.q_stride, B.qs, b, B.count)
            m.stage_in(mem, L.v, t, joint_qd, B.qd_start, B.qd_stride, B.qds, b, B.count)
            m.set_origin(b, t, T, P, L, mem)
            for k in range(T.bodies):
                m.place_body(b, t, k, T, P, L, mem)
                slot = T.body_slot[k]
                if B.dense != 0:
                    m.write_pose(t, k, slot, L, mem)
                else:
                    m.write_pose(t, k, k, L, mem)
                    m.store(
                        mem, L.body_q + 7 * k, t, body_q, 7 * (B.body_start + slot), 7 * B.body_stride, 7, b, B, mask
                    )
                    m.store(
                        mem, L.body_qd + 6 * k, t, body_qd, 6 * (B.body_start + slot), 6 * B.body_stride, 6, b, B, mask
                    )
            if B.dense != 0:
                m.store(mem, L.body_q, t, body_q, 7 * B.body_start, 7 * B.body_stride, 7 * B.bodies, b, B, mask)
                m.store(mem, L.body_qd, t, body_qd, 6 * B.body_start, 6 * B.body_stride, 6 * B.bodies, b, B, mask)

    return eval_fk


def ik_kernel(m: types.SimpleNamespace, backward: bool):
    """The kernel of ``eval_ik``: block ``first + tid``."""
    real = m.real

    @wp.kernel(module="unique", enable_backward=backward)
    def eval_ik(
        first: int,
        workers: int,
        B: m.Places,
        T: m.Tree,
        P: m.Params,
        L: m.Layout,
        mask: wp.array[bool],
        mem: m.memory,
        # State in:
        body_q: wp.array[real],
        body_qd: wp.array[real],
        # State out:
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
    ):
        b = wp.tid() + first
        t = wp.tid() % workers
        wanted = bool(True)
        if B.masked != 0:
            wanted = m.any_selected(mask, B.start, B.stride, b, B.count)
        if wanted:
            if B.dense != 0:
                m.stage_in(mem, L.body_q, t, body_q, 7 * B.body_start, 7 * B.body_stride, 7 * B.bodies, b, B.count)
                m.stage_in(mem, L.body_qd, t, body_qd, 6 * B.body_start, 6 * B.body_stride, 6 * B.bodies, b, B.count)
            m.open_world(t, T, L, mem)
            for k in range(T.bodies):
                slot = T.body_slot[k]
                if B.dense != 0:
                    m.open_body(b, t, k, slot, P, L, mem)
                else:
                    start = B.body_start + slot
                    m.stage_in(mem, L.body_q + 7 * k, t, body_q, 7 * start, 7 * B.body_stride, 7, b, B.count)
                    m.stage_in(mem, L.body_qd + 6 * k, t, body_qd, 6 * start, 6 * B.body_stride, 6, b, B.count)
                    m.open_body(b, t, k, k, P, L, mem)
            for k in range(T.bodies):
                m.read_joint(b, t, k, T, P, L, mem)
            m.store(mem, L.q, t, joint_q, B.q_start, B.q_stride, B.qs, b, B, mask)
            m.store(mem, L.v, t, joint_qd, B.qd_start, B.qd_stride, B.qds, b, B, mask)

    return eval_ik
