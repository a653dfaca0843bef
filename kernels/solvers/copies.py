"""Copies of the velocities and impulses of a block of worlds, which the sweeps set aside and take back."""

import types

import warp as wp
from newton_like.kernels.simd import register_code, simd_types
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES


def _copy_code(width: int, real) -> str:
    """C++ body of ``copy_rows``."""
    return f"""{{{simd_types(width, real)}{register_code(width, on="where")}
        simd* const M = (simd*)mem.data; const int rows = T.contact_rows;
        auto copy = [&](simd* kept, simd* own, int n) {{
            if (back) for (int i = 0; i < n; ++i) own[i] = on > 0 ? kept[i] : own[i];
            else for (int i = 0; i < n; ++i) kept[i] = on > 0 ? own[i] : kept[i]; }};
        copy(M + z, M + L.z, T.dofs);
        for (int a = first; a < visited; ++a)
            copy(M + impulse + rows * a, M + (packed ? L.packed_impulse + rows * a : L.impulse + rows * active.data[a]), rows);
        const int limited = impulse + rows * contacts;
        for (int k = 0; k < limits; ++k) {{
            // of dofs without hard limits, friction alone has an impulse
            const int row = active.data[T.candidates + k];
            copy(M + limited + {DOF_IMPULSES} * k, M + L.dof_impulse + {DOF_IMPULSES} * (row / 2), row % 2 ? {DOF_IMPULSES} : 1);
        }}
        copy(M + limited + {DOF_IMPULSES} * limits, M + L.coupling_impulse, T.bonds); }}"""


def copies_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``copy_rows``."""
    if not hasattr(m, "width"):
        # numbers of a trace
        return dict(copy_rows=None)
    real = m.real
    if m.width > 1:

        @wp.func_native(_copy_code(m.width, m.real))
        def copy_rows(
            t: int,
            where: m.lane,
            back: int,
            z: int,
            impulse: int,
            packed: int,
            first: int,
            visited: int,
            contacts: int,
            limits: int,
            T: wp.ref[m.Tree],
            L: wp.ref[m.Layout],
            mem: m.memory,
            active: wp.array2d[int],
        ):
            """Copies z to the row `z`, and the impulses of active rows to the row `impulse`, where `where` is positive: those of contacts
            first, then those of limits and of couplings.

            Args:
                t: the thread.
                where: which worlds.
                back: 1: from these rows to z and the impulses.
                z, impulse: the first lanes of these rows.
                packed: 1: the impulses of contacts are in slots.
                first, visited: contacts, or slots, from number `first` on and before number `visited` are copied.
                contacts, limits: number of active contacts and of listed limits.
            """

        return dict(copy_rows=copy_rows)

    @m.func
    def copy_one(t, where: m.lane, back: int, kept: int, own: int, mem):
        zero = m.fill(real(0.0))
        if back != 0:
            m.put(mem, own, t, m.where_lt(zero, where, m.get(mem, kept, t), m.get(mem, own, t)))
        else:
            m.put(mem, kept, t, m.where_lt(zero, where, m.get(mem, own, t), m.get(mem, kept, t)))

    @m.shared
    def copy_rows(
        t: int, where: m.lane, back: int, z: int, impulse: int, packed: int, first: int, visited: int, contacts: int, limits: int,
        T, L, mem, active: wp.array2d[int],
    ):  # fmt: skip
        """The same for one world, whose contacts are not in slots."""
        rows = T.contact_rows
        for i in range(T.dofs):
            copy_one(t, where, back, z + i, L.z + i, mem)
        for a in range(first, visited):
            for i in range(rows):
                copy_one(t, where, back, impulse + rows * a + i, L.impulse + rows * active[a, t] + i, mem)
        limited = impulse + rows * contacts
        for k in range(limits):
            at = L.dof_impulse + DOF_IMPULSES * (active[T.candidates + k, t] // 2)
            for i in range(DOF_IMPULSES):
                copy_one(t, where, back, limited + DOF_IMPULSES * k + i, at + i, mem)
        for i in range(T.bonds):
            copy_one(t, where, back, limited + DOF_IMPULSES * limits + i, L.coupling_impulse + i, mem)

    return dict(copy_rows=copy_rows)
