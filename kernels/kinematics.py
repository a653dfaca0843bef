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

    @m.shared
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

    @m.func
    def jacobian_column(t: int, k: int, dof: int, L: m.Layout, mem: m.memory) -> m.Spatial:
        """The velocity of the centre of mass of body k and its angular velocity, for a unit velocity of dof."""
        s = m.get6(mem, L.subspace + 6 * dof, t)
        return m.spatial(m.velocity_at(s, m.get3(mem, L.com + 3 * k, t)), s.w)

    own = ("m",)
    return types.SimpleNamespace(**{**vars(m), **{k: v for k, v in locals().items() if k not in own}})


@cache
def kinematics_programs(width: int, real) -> types.SimpleNamespace:
    """The programs of kinematics over lanes of `width` worlds, and the struct ``Places``."""
    m = joint_dispatch(tree_structs(spatial_algebra(lane_math(width, real))))
    m = kinematics_program(inverse_joint_dispatch(m))
    return selection_program(types.SimpleNamespace(**vars(m), Places=places_struct()))


@cache
def kinematics_kernels(width: int, real, backward: bool) -> types.SimpleNamespace:
    """The programs of kinematics and the kernels of this file.

    Args:
        width: worlds a thread.
        real: scalar type.
        backward: whether the kernels can be differentiated (width 1).
    """
    m = kinematics_programs(width, real)
    kernels = {kernel.__name__: kernel(m, backward) for kernel in (eval_fk, eval_ik, eval_jacobian)}
    return types.SimpleNamespace(**vars(m), **kernels)


def places_struct():
    """Where a batch lies in the flat public arrays: first entry of its first articulation, and stride to the next."""

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


def selection_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``wanted`` and ``store``, which look at the mask of articulations if there is one."""
    real = m.real

    @wp.func
    def wanted(b: int, B: m.Places, mask: wp.array[bool]) -> bool:
        """Whether any articulation of block b is selected."""
        if B.masked == 0:
            return True
        return m.any_selected(mask, B.start, B.stride, b, B.count)

    @wp.func
    def store(
        mem: m.memory, at: int, t: int, a: wp.array[real], start: int, stride: int, n: int, b: int, B: m.Places,
        mask: wp.array[bool],
    ):  # fmt: skip
        """Writes rows of memory back, of the selected articulations of block b."""
        if B.masked != 0:
            m.stage_out_where(mem, at, t, a, start, stride, n, b, B.count, mask, B.start, B.stride)
        else:
            m.stage_out(mem, at, t, a, start, stride, n, b, B.count)

    return types.SimpleNamespace(**vars(m), wanted=wanted, store=store)


def eval_fk(m: types.SimpleNamespace, backward: bool):
    """The kernel of ``eval_fk``: block ``first + tid``."""
    real = m.real

    @wp.kernel(module="unique", enable_backward=backward)
    def kernel(
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
        if m.wanted(b, B, mask):
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

    return kernel


def eval_ik(m: types.SimpleNamespace, backward: bool):
    """The kernel of ``eval_ik``: block ``first + tid``."""
    real = m.real

    @wp.kernel(module="unique", enable_backward=backward)
    def kernel(
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
        if m.wanted(b, B, mask):
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

    return kernel


def eval_jacobian(m: types.SimpleNamespace, backward: bool):
    """The kernel of ``eval_jacobian``: block ``first + tid``."""
    real = m.real

    @wp.kernel(module="unique", enable_backward=backward)
    def kernel(
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
        # Out:
        J: wp.array[real],
    ):
        b = wp.tid() + first
        t = wp.tid() % workers
        zero = m.fill(real(0.0))
        if m.wanted(b, B, mask):
            m.stage_in(mem, L.q, t, joint_q, B.q_start, B.q_stride, B.qs, b, B.count)
            for i in range(T.dofs):
                m.put(mem, L.v + i, t, zero)
            m.forward_kinematics(b, t, T, P, L, mem)
            # six rows of a link at a time; links that an articulation lacks have zeros
            size = 6 * B.dofs
            for k in range(B.links):
                at = L.matrix + k * B.apart * size
                for i in range(size):
                    m.put(mem, at + i, t, zero)
                if k < T.bodies:
                    leaf = T.leaf[k]
                    if leaf >= 0:
                        for d in range(T.depth[leaf] + 1):
                            dof = T.chain[T.chain_at[leaf] + d]
                            s = m.jacobian_column(t, k, dof, L, mem)
                            m.put(mem, at + dof, t, s.v.x)
                            m.put(mem, at + B.dofs + dof, t, s.v.y)
                            m.put(mem, at + 2 * B.dofs + dof, t, s.v.z)
                            m.put(mem, at + 3 * B.dofs + dof, t, s.w.x)
                            m.put(mem, at + 4 * B.dofs + dof, t, s.w.y)
                            m.put(mem, at + 5 * B.dofs + dof, t, s.w.z)
                start = (B.start * B.links + k) * size
                m.store(mem, at, t, J, start, B.stride * B.links * size, size, b, B, mask)

    return kernel
