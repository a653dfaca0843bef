"""The kernel that writes joint-space inertias as dense matrices."""

import types
from functools import cache

import warp as wp
from newton_like.kernels.dynamics.crba import crba_program
from newton_like.kernels.kinematics import kinematics_programs


@cache
def mass_matrix_kernels(width: int, real, backward: bool) -> types.SimpleNamespace:
    """The programs' namespace over lanes of `width` worlds, with the kernel ``eval_mass_matrix``.

    Args:
        width: worlds a thread.
        real: scalar type.
        backward: whether the kernel can be differentiated (width 1).
    """
    m = crba_program(kinematics_programs(width, real))
    return types.SimpleNamespace(**vars(m), eval_mass_matrix=eval_mass_matrix(m, backward))


def eval_mass_matrix(m: types.SimpleNamespace, backward: bool):
    """The kernel of ``eval_mass_matrix``: block ``first + tid``."""
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
        H: wp.array[real],
    ):
        b = wp.tid() + first
        t = wp.tid() % workers
        zero = m.fill(real(0.0))
        if m.wanted(b, B, mask):
            m.stage_in(mem, L.q, t, joint_q, B.q_start, B.q_stride, B.qs, b, B.count)
            for i in range(T.dofs):
                m.put(mem, L.v + i, t, zero)
            m.forward_kinematics(b, t, T, P, L, mem)
            m.joint_space_inertia(b, t, T, P, L, mem)
            size = B.dofs * B.dofs
            for i in range(size):
                m.put(mem, L.matrix + i, t, zero)
            for i in range(T.dofs):
                depth = T.depth[i]
                for d in range(depth):
                    j = T.chain[T.chain_at[i] + d]
                    x = m.get(mem, L.h + T.row[i] + d, t)
                    m.put(mem, L.matrix + i * B.dofs + j, t, x)
                    m.put(mem, L.matrix + j * B.dofs + i, t, x)
                diagonal = m.add(m.get(mem, L.h + T.row[i] + depth, t), m.gain(P, b, i, 0))
                m.put(mem, L.matrix + i * B.dofs + i, t, diagonal)
            m.store(mem, L.matrix, t, H, B.start * size, B.stride * size, size, b, B, mask)

    return kernel
