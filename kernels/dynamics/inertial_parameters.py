"""Conversion of the inertial parameters of bodies to vectors of ten numbers, and back. Both are differentiable by Warp's tape.

    (m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)

with the centre of mass c and the inertia about it. In the *linear* form the first moment m c replaces c, and the inertia is about the
link's origin, ``I + m (c.c 1 - c c^T)``; forces and energies are linear in these ten numbers (Atkeson, An and Hollerbach 1986).
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.dynamics.momentum import TINY


@cache
def parameter_kernels(real) -> types.SimpleNamespace:
    """Kernels ``read`` and ``write`` over bodies."""
    vec3 = wp.types.vector(3, real)
    mat33 = wp.types.matrix((3, 3), real)

    @wp.func
    def at_origin(mass: real, c: vec3) -> mat33:
        return mass * (wp.dot(c, c) * wp.identity(n=3, dtype=real) - wp.outer(c, c))

    @wp.kernel(module="unique")
    def read(
        linear: int,
        mass: wp.array[real],
        com: wp.array[vec3],
        inertia: wp.array[mat33],
        # out:
        values: wp.array2d[real],
    ):
        k = wp.tid()
        m = mass[k]
        h = com[k]
        i = real(0.5) * (inertia[k] + wp.transpose(inertia[k]))
        if linear != 0:
            i = i + at_origin(m, h)
            h = m * h
        values[k, 0] = m
        for a in range(3):
            values[k, 1 + a] = h[a]
            values[k, 4 + a] = i[0, a]
        values[k, 7] = i[1, 1]
        values[k, 8] = i[1, 2]
        values[k, 9] = i[2, 2]

    @wp.kernel(module="unique")
    def write(
        linear: int,
        values: wp.array2d[real],
        # out:
        mass: wp.array[real],
        com: wp.array[vec3],
        inertia: wp.array[mat33],
    ):
        k = wp.tid()
        m = values[k, 0]
        c = vec3(values[k, 1], values[k, 2], values[k, 3])
        i = mat33(
            values[k, 4], values[k, 5], values[k, 6],
            values[k, 5], values[k, 7], values[k, 8],
            values[k, 6], values[k, 8], values[k, 9],
        )  # fmt: skip
        if linear != 0:
            c = c / wp.max(m, real(TINY))
            i = i - at_origin(m, c)
        mass[k] = m
        com[k] = c
        inertia[k] = i

    return types.SimpleNamespace(read=read, write=write)
