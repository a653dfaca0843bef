"""Newton's steps for the impulses of single worlds, between sweeps.

Sweeps converge slowly where contacts, limits and friction of joints act on each other along a chain of links. The last sweep tells which
rows press, which stick and which slide. With these sets, the conditions on all rows that act are equations, and a step of Newton solves
them at once (Alart and Curnier 1991; alternating with sweeps as Silcowitz, Niebuhr and Erleben 2010, who keep the direction of friction):

    normal      y.z + (softness / mass) p = target           limit of a dof   the same
    stick       y.z = 0                                      friction of a dof that sticks   the same
    slide       p_t = mu p_n w / |w|,  w = p_t - step y_t.z

z is linear in the impulses. All other impulses stay: zero, or friction of dofs at its bound. A small multiple of the change of an impulse
is added to its row, because rows may depend on each other. The code is native and computes one world at a time: worlds of a block have
other rows, and only some of them need it.
"""

import types

import warp as wp
from newton_like.kernels.rows import MASS, SOFTNESS, TARGET
from newton_like.kernels.simd import C_NAME, FUSE
from newton_like.kernels.solvers.contact_rows import CONTACT, MU_ROLL, MU_SLIDE, MU_SPIN, SLIDE_STEP
from newton_like.kernels.solvers.dof_rows import (
    DOF_IMPULSES,
    DOF_ROW,
    HARD,
    OF_FRICTION,
    OF_POSITION,
    OF_VELOCITY,
    SIDE,
)
from newton_like.kernels.solvers.packed import MOST_DOFS

MOST_ROWS = 32
"""Worlds with more rows that act are left to the sweeps: a step takes a time that grows with the cube of this number."""

PROXIMAL = 1.0e-5
"""Part of the response of a row by which a change of its impulse is resisted."""

INSIDE = 0.99999
"""Friction below this part of its bound sticks."""


def _choose_code() -> str:
    """Statements: lists the rows that act, with the place of their numbers, of their impulses and of their records."""

    def row(at: str, impulse: str, kind: int | str, record: str, dof: str = "-1") -> str:
        return (
            f"{{ from[m] = {at}; place[m] = {impulse}; kind[m] = {kind}; record[m] = {record}; dof[m] = {dof}; ++m; }}"
        )

    stick = row("L.dof_y + T.reach * i", f"p + {OF_FRICTION}", "STICK", "at", "i")
    limit = row("L.dof_y + T.reach * i", f"p + {OF_POSITION}", "LIMIT", "at", "i")
    return f"""
        for (int s = 0; s < slots; ++s) {{
            const int p = L.packed_impulse + rows * s, at = L.packed + {CONTACT} * s, y = L.packed_y + D * rows * s;
            const real_t push = A(p), one = A(p + 1), two = A(p + 2), bound = A(at + {MU_SLIDE}) * push * real_t({INSIDE});
            if (!(push > 0) || !(A(at + {MASS}) > 0)) continue;
            if (m + rows > {MOST_ROWS}) return false;
            const bool sticks = one * one + two * two < bound * bound;
            {row("y", "p", "NORMAL", "at")}
            {row("y + D", "p + 1", "sticks ? STICK : SLIDE", "at")}
            {row("y + 2 * D", "p + 2", "sticks ? STICK : SLIDE", "at")}
            if (rows == 6) {{
                const real_t spin = A(p + 3), most = A(at + {MU_SPIN}) * push, first = A(p + 4), second = A(p + 5);
                const real_t turn = A(at + {MU_ROLL}) * push * real_t({INSIDE});
                if ((spin < 0 ? -spin : spin) < most) {row("y + 3 * D", "p + 3", "STICK", "at")}
                if (first * first + second * second < turn * turn) {{
                    {row("y + 4 * D", "p + 4", "STICK", "at")} {row("y + 5 * D", "p + 5", "STICK", "at")} }}
            }}
        }}
        for (int q = 0; q < limits; ++q) {{
            const int of = list[q], i = of / 2, p = L.dof_impulse + {DOF_IMPULSES} * i, at = L.dof_row + {DOF_ROW} * i;
            const real_t held = A(p + {OF_FRICTION});
            const bool sticks = (held < 0 ? -held : held) < A(L.friction_bound + q);
            // a velocity at its limit stays there, with its impulse
            const bool limited = of % 2 != 0 && A(at + {HARD}) > 0 && A(p + {OF_VELOCITY}) == 0 && A(p + {OF_POSITION}) != 0;
            // dofs that are listed for other worlds of the block do not count
            if (m + sticks + limited > {MOST_ROWS}) return false;
            if (sticks) {stick}
            if (limited) {limit}
        }}"""


def _equations_code() -> str:
    """Statements: G x = the rest of the equations of all rows, from G = Y YT and the velocities u = Y z."""
    return f"""
        for (int i = 0; i < m; ++i) {{
            real_t* const one = g + i * wide;
            const int at = record[i];
            const real_t own = one[i] * real_t({PROXIMAL}), p = A(place[i]);
            if (kind[i] == STICK) {{ one[i] = one[i] + own; x[i] = -u[i]; }}
            else if (kind[i] != SLIDE) {{
                const real_t give = A(at + {SOFTNESS}) / A(at + {MASS}), side = kind[i] == LIMIT ? A(at + {SIDE}) : real_t(1);
                one[i] = one[i] + (own + give);
                x[i] = (side * A(at + {TARGET}) - u[i]) - give * p;
            }} else {{
                real_t* const two = one + wide;
                const real_t step = A(at + {SLIDE_STEP}), mu = A(at + {MU_SLIDE}), push = A(place[i] - 1), p2 = A(place[i] + 1);
                const real_t w1 = p - step * u[i], w2 = p2 - step * u[i + 1];
                const real_t inverse = real_t(1) / wp::sqrt(w1 * w1 + (w2 * w2 + real_t(1e-30))), h1 = w1 * inverse, h2 = w2 * inverse;
                const real_t part = mu * push * inverse, share = part < 1 ? part : real_t(1);
                // d (w / |w|) = (1 - h hT) dw / |w|
                const real_t c11 = share * (1 - h1 * h1), c12 = -share * h1 * h2, c22 = share * (1 - h2 * h2);
                for (int j = 0; j < n; ++j) {{
                    const v8 first = G[i * n + j], second = G[(i + 1) * n + j];
                    G[i * n + j] = (first * c11 + second * c12) * step;
                    G[(i + 1) * n + j] = (first * c12 + second * c22) * step;
                }}
                one[i] = one[i] + (1 - c11); one[i + 1] = one[i + 1] - c12;
                two[i] = two[i] - c12; two[i + 1] = two[i + 1] + (1 - c22);
                one[i - 1] = one[i - 1] - mu * h1; two[i - 1] = two[i - 1] - mu * h2;
                x[i] = mu * push * h1 - p; x[i + 1] = mu * push * h2 - p2;
                ++i;
            }}
        }}"""


def _newton_code(width: int, real) -> str:
    """C++ body of ``newton_steps``."""
    number = C_NAME[real]
    blocks = MOST_ROWS // 8
    return f"""{{{FUSE}
        typedef {number} real_t; typedef real_t v8 __attribute__((ext_vector_type(8), aligned({4 if real is wp.float32 else 8})));
        enum {{ NORMAL, STICK, SLIDE, LIMIT }};
        real_t* const F = (real_t*)mem.data;
        const int D = T.dofs, rows = T.contact_rows;
        const int* const list = active.data + T.candidates;
        auto step = [&](int l) -> bool {{
        auto A = [=](int i) -> real_t& {{ return F[(size_t)i * {width} + l]; }};
        const int slots = (int)A(L.packed_worlds) - 1;
        int from[{MOST_ROWS}], place[{MOST_ROWS}], kind[{MOST_ROWS}], record[{MOST_ROWS}], dof[{MOST_ROWS}], m = 0;
        {_choose_code()}
        if (m == 0) return false;
        // Y has a column of 8 n numbers for each dof
        const int n = (m + 7) / 8, wide = 8 * n;
        v8 Y[{MOST_DOFS} * {blocks}], G[{MOST_ROWS} * {blocks}], U[{blocks}];
        real_t* const y = (real_t*)Y; real_t* const g = (real_t*)G; real_t* const u = (real_t*)U;
        real_t x[{MOST_ROWS}];
        for (int k = 0; k < D * n; ++k) Y[k] = v8(0);
        for (int i = 0; i < m; ++i) {{
            if (dof[i] < 0) for (int k = 0; k < D; ++k) y[k * wide + i] = A(from[i] + k);
            else {{
                const int* const c = T.chain.data + T.chain_at.data[dof[i]];
                for (int d = 0; d <= T.depth.data[dof[i]]; ++d) y[c[d] * wide + i] = A(from[i] + d);
            }}
        }}
        for (int j = 0; j < n; ++j) {{
            v8 sum = 0;
            for (int k = 0; k < D; ++k) sum = sum + Y[k * n + j] * A(L.z + k);
            U[j] = sum;
        }}
        for (int i = 0; i < m; i += 4) for (int j = 0; j < n; ++j) {{
            v8 a = 0, b = 0, c = 0, d = 0;
            for (int k = 0; k < D; ++k) {{
                const v8 w = Y[k * n + j]; const real_t* const r = y + k * wide + i;
                a = a + w * r[0]; b = b + w * r[1]; c = c + w * r[2]; d = d + w * r[3];
            }}
            G[i * n + j] = a; G[(i + 1) * n + j] = b; G[(i + 2) * n + j] = c; G[(i + 3) * n + j] = d;
        }}
        {_equations_code()}
        for (int k = 0; k < m; ++k) {{
            const real_t inverse = real_t(1) / g[k * wide + k];
            u[k] = inverse;
            for (int i = k + 1; i < m; ++i) {{
                const real_t f = g[i * wide + k] * inverse;
                if (f == 0) continue;
                x[i] = x[i] - f * x[k];
                for (int j = k / 8; j < n; ++j) G[i * n + j] = G[i * n + j] - G[k * n + j] * f;
            }}
        }}
        real_t largest = 0;
        for (int k = m - 1; k >= 0; --k) {{
            real_t rest = x[k];
            for (int j = k + 1; j < m; ++j) rest = rest - g[k * wide + j] * x[j];
            x[k] = rest * u[k];
            const real_t size = x[k] < 0 ? -x[k] : x[k];
            if (!(size <= largest)) largest = size;
        }}
        if (!(largest < real_t(1e10))) return false;
        for (int i = 0; i < m; ++i) A(place[i]) = A(place[i]) + x[i];
        for (int i = m; i < wide; ++i) x[i] = 0;
        for (int k = 0; k < D; ++k) {{
            v8 sum = 0;
            for (int j = 0; j < n; ++j) {{ v8 w; __builtin_memcpy(&w, x + 8 * j, sizeof(v8)); sum = sum + Y[k * n + j] * w; }}
            A(L.z + k) = A(L.z + k) + (((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7])));
        }}
        return true; }};
        real_t* const tried = F + (size_t)L.tried * {width};
        for (int l = 0; l < {width}; ++l) if (tried[l] > 0 && !step(l)) tried[l] = 0; }}"""


def polish_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``newton_steps``, for lanes of several worlds."""
    if not hasattr(m, "width") or m.width == 1:
        # numbers of a trace, or one world
        return dict(newton_steps=None)

    @wp.func_native(_newton_code(m.width, m.real))
    def newton_steps(
        t: int, limits: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ):
        """A step of Newton for the impulses of each world whose contacts are packed and for which ``tried`` is positive, and z; ``tried``
        <- zero where there is none."""

    return dict(newton_steps=newton_steps)
