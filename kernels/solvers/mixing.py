"""Mixtures of the results of sweeps over the rows of a robot, with which the next sweep starts.

A sweep takes impulses x to g(x), which is a solution where the change f = g - x is zero. From the last two changes of f, with those of g,
follow factors for which f would be zero if it were linear, in the least squares of the kinetic energy (Anderson 1965; Walker and Ni 2011):

    next x = g - c1 dg - c2 dg'     where |f - c1 df - c2 df'| is least,  df = f - f of the sweep before,  ' one sweep earlier

In whitened velocities z = sum y p that norm is the plain one, so the factors come from z alone. After a sweep, impulses are in their cones
again.

Nothing bounds the factors. They are large where sweeps converge slowly, which is where mixtures help, but then rounding makes z differ from
the sum of the impulses, and the mixtures of a map with kinks need not converge. So only the first sweeps are mixed, see
`kernels.solvers.sweeps`.
"""

import types

import warp as wp
from newton_like.kernels.simd import FUSE, simd_types
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES

FRESH = -1.0
"""``pace`` before the first sweep: the number of changes that are known, less one."""

APART = 1.0e-5
"""Squared sine of the angle between two changes of f, below which the older one does not count."""


def _mix_code(width: int, real) -> str:
    """C++ body of ``mix_sweeps``."""
    return f"""{{{FUSE}{simd_types(width, real)}
        simd* const M = (simd*)mem.data; const int rows = T.contact_rows;
        const simd zero = 0, one = 1, known = M[L.pace];
        simd a11 = 0, a12 = 0, a22 = 0, b1 = 0, b2 = 0;
        for (int i = 0; i < T.dofs; ++i) {{
            const simd f = M[L.z + i] - M[L.sweep_z + i];
            // memory holds anything before the first changes
            const simd df = known > 0 ? f - M[L.mix_residual + i] : zero, older = known > 1 ? M[L.mix_change + i] : zero;
            a11 = a11 + df * df; a12 = a12 + df * older; a22 = a22 + older * older; b1 = b1 + df * f; b2 = b2 + older * f;
            M[L.mix_residual + i] = f; M[L.mix_change + i] = df;
        }}
        const simd square = a11 * a22, det = square - a12 * a12;
        const simd c2 = det > real_t({APART}) * square ? (a11 * b2 - a12 * b1) / (det > 0 ? det : one) : zero;
        const simd c1 = a11 > 0 ? (b1 - a12 * c2) / (a11 > 0 ? a11 : one) : zero;
        M[L.pace] = known + one;
        auto mix = [&](int at, int last, int older, int n) {{
            for (int i = 0; i < n; ++i) {{
                const simd g = M[at + i], dg = known > 0 ? g - M[last + i] : zero, before = known > 1 ? M[older + i] : zero;
                M[last + i] = g; M[older + i] = dg;
                M[at + i] = (g - c1 * dg) - c2 * before;
            }} }};
        mix(L.z, L.swept_z, L.mix_way, T.dofs);
        mix(L.packed_impulse, L.packed_swept, L.packed_start, rows * slots);
        for (int k = 0; k < limits; ++k) {{
            // of dofs without hard limits, friction alone has an impulse
            const int row = active.data[T.candidates + k], place = rows * contacts + {DOF_IMPULSES} * k;
            mix(L.dof_impulse + {DOF_IMPULSES} * (row / 2), L.swept_impulse + place, L.start_impulse + place, row % 2 ? {DOF_IMPULSES} : 1);
        }} }}"""


def mixing_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``mix_sweeps``, for lanes of several worlds."""
    if not hasattr(m, "width") or m.width == 1:
        # numbers of a trace, or one world
        return dict(mix_sweeps=None)

    @wp.func_native(_mix_code(m.width, m.real))
    def mix_sweeps(
        contacts: int, slots: int, limits: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ):  # fmt: skip
        """z and the impulses, those of contacts in slots, <- those with which the next sweep starts. ``sweep_z`` is z before the last
        sweep."""

    return dict(mix_sweeps=mix_sweeps)
