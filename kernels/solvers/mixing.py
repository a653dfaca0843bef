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
        simd* const M = (simd*)mem.data; const int rows = T.contact_rows, D = T.dofs, *const listed = active.data + T.candidates;
        const int of_dofs = L.dof_impulse, of_limits = L.swept_impulse + rows * contacts, before_limits = L.start_impulse + rows * contacts;
        // the same number in all worlds
        const int known = (int)((const real_t*)(M + L.pace))[0];
        M[L.pace] = M[L.pace] + real_t(1);
        auto each = [&](auto mix) {{
            mix(L.z, L.swept_z, L.mix_way, D);
            mix(L.packed_impulse, L.packed_swept, L.packed_start, rows * slots);
            for (int k = 0; k < limits; ++k) {{
                // of dofs without hard limits, friction alone has an impulse
                const int row = listed[k], place = {DOF_IMPULSES} * k;
                mix(of_dofs + {DOF_IMPULSES} * (row / 2), of_limits + place, before_limits + place, row % 2 ? {DOF_IMPULSES} : 1);
            }} }};
        simd* const residual = M + L.mix_residual; simd* const change = M + L.mix_change;
        const simd* const z = M + L.z; const simd* const start = M + L.sweep_z;
        if (known < 1) {{
            // memory holds anything before the first changes
            if (known == 0) for (int i = 0; i < D; ++i) residual[i] = z[i] - start[i];
            each([&](int at, int last, int older, int n) {{ for (int i = 0; i < n; ++i) M[last + i] = M[at + i]; }});
            return;
        }}
        const simd zero = 0, one = 1;
        simd a11 = 0, a12 = 0, a22 = 0, b1 = 0, b2 = 0;
        for (int i = 0; i < D; ++i) {{
            const simd f = z[i] - start[i], df = f - residual[i], older = known > 1 ? change[i] : zero;
            a11 = a11 + df * df; a12 = a12 + df * older; a22 = a22 + older * older; b1 = b1 + df * f; b2 = b2 + older * f;
            residual[i] = f; change[i] = df;
        }}
        const simd square = a11 * a22, det = square - a12 * a12;
        const simd c2 = det > real_t({APART}) * square ? (a11 * b2 - a12 * b1) / (det > 0 ? det : one) : zero;
        const simd c1 = a11 > 0 ? (b1 - a12 * c2) / (a11 > 0 ? a11 : one) : zero;
        if (known == 1) each([&](int at, int last, int older, int n) {{
            for (int i = 0; i < n; ++i) {{
                const simd g = M[at + i], dg = g - M[last + i];
                M[last + i] = g; M[older + i] = dg; M[at + i] = g - c1 * dg;
            }} }});
        else each([&](int at, int last, int older, int n) {{
            for (int i = 0; i < n; ++i) {{
                const simd g = M[at + i], dg = g - M[last + i], before = M[older + i];
                M[last + i] = g; M[older + i] = dg; M[at + i] = (g - c1 * dg) - c2 * before;
            }} }}); }}"""


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
