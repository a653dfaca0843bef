"""Newton's steps for the impulses of single worlds, between sweeps.

Sweeps converge slowly where contacts, limits and friction of joints act on each other along a chain of links. The last sweep tells which
rows press, which stick and which slide. With these sets, the conditions on all rows that act are equations, and a step of Newton solves
them at once (Alart and Curnier 1991; alternating with sweeps as Silcowitz, Niebuhr and Erleben 2010, who keep the direction of friction):

    normal      y.z + (softness / mass) p = target           limit of a dof   the same
    stick       y.z = 0                                      friction of a dof that sticks   the same
    slide       p_t = mu p_n w / |w|,  w = p_t - step y_t.z

z is linear in the impulses. All other impulses stay: zero, or friction of dofs at its bound. A small multiple of the change of an impulse
is added to its row, because rows may depend on each other. The code is native and computes one world at a time: worlds of a block have
other rows, and only some of them need it. It computes with vectors along the rows of a world of a block; a thread with one world, as on a
GPU, computes with single numbers, on the rows of the list of active contacts.
"""

import types

import warp as wp
from newton_like.kernels.rows import MASS, SOFTNESS, TARGET
from newton_like.kernels.simd import C_NAME, FUSE
from newton_like.kernels.solvers.packed import MOST_DOFS
from newton_like.kernels.solvers.rows.contact_rows import CONTACT, MU_ROLL, MU_SLIDE, MU_SPIN, SLIDE_STEP
from newton_like.kernels.solvers.rows.dof_rows import (
    DOF_IMPULSES,
    DOF_ROW,
    HARD,
    OF_FRICTION,
    OF_POSITION,
    OF_VELOCITY,
    SIDE,
)
from newton_like.kernels.solvers.rows.slots import chain_bits_code, take_row_code

MOST_ROWS = 32
"""Worlds with more rows that act are left to the sweeps: a step takes a time that grows with the cube of this number."""

STILL = 0.2
"""A world for which steps of Newton are made is done after a sweep that changed its velocities by less than this part of `tolerance`."""

PROXIMAL = 1.0e-5
"""Part of the response of a row by which a change of its impulse is resisted."""

INSIDE = 0.99999
"""Friction below this part of its bound sticks."""

ALONG = 16
"""Numbers of a vector along the rows of a world. Results do not depend on the width of a block."""

COLUMNS = MOST_ROWS + 4
"""Numbers of a row of the equations of a thread with one world. The right side is the column behind the last row that acts; statements
that compute four columns or rows at a time may reach three further."""

ONE_WORLD = (MOST_ROWS + 3) * COLUMNS + MOST_ROWS
"""Numbers of the equations and pivots of a thread with one world. They are in its memory, where neighbouring threads of a GPU read
neighbouring words and which is as large as there are worlds. A GPU reserves the local arrays of a thread, 5 kB here, for all threads that
it might run at once, which are some 270,000: more than 1 GB."""

ROW_LISTS = 5 * MOST_ROWS
"""Integers of a thread with one world that list the rows that act."""


def along_code(real) -> str:
    """C++ statements: the types ``real_t``, ``row_t``, a vector along rows, and ``part_t``, of PART numbers as a register holds them; and
    the lambda ``total``, the sum of the numbers of a vector."""
    return f"""typedef {C_NAME[real]} real_t;
        typedef real_t row_t __attribute__((ext_vector_type({ALONG}), aligned({4 if real is wp.float32 else 8})));
#ifdef __AVX512F__
        enum {{ PART = {ALONG} }};
#else
        enum {{ PART = {ALONG // 2} }};
#endif
        typedef real_t part_t __attribute__((ext_vector_type(PART), aligned({4 if real is wp.float32 else 8})));
        auto total = [](const row_t& x) {{
            real_t sums[{ALONG // 2}];
            for (int i = 0; i < {ALONG // 2}; ++i) sums[i] = x[i] + x[i + {ALONG // 2}];
            for (int n = {ALONG // 4}; n > 0; n /= 2) for (int i = 0; i < n; ++i) sums[i] = sums[i] + sums[i + n];
            return sums[0];
        }};"""


def _choose_code(contacts: str, stride: str, contact: str) -> str:
    """Statements: list the rows that act, with the places of their numbers, impulses and records, and whose they are; or return false.

    Args:
        contacts: begins a loop over contacts that sets the places ``p`` of the impulses, ``at`` of the record and ``y`` of the rows.
        stride: from one row of a contact to the next.
        contact: what `owner` shall be for its rows; for a dof, it is ``-1 - dof``.
    """

    def row(at: str, impulse: str, kind: int | str, owner: str) -> str:
        return f"{{ from[m] = {at}; place[m] = {impulse}; kind[m] = {kind}; record[m] = at; owner[m] = {owner}; ++m; }}"

    def of_contact(n: int, kind: str) -> str:
        return row(f"y + {stride} * {n}", f"p + {n}", kind, contact)

    stick = row("L.dof_y + T.reach * i", f"p + {OF_FRICTION}", "STICK", "-1 - i")
    limit = row("L.dof_y + T.reach * i", f"p + {OF_POSITION}", "LIMIT", "-1 - i")
    return f"""
        {contacts}
            const real_t push = A(p), one = A(p + 1), two = A(p + 2), bound = A(at + {MU_SLIDE}) * push * real_t({INSIDE});
            if (!(push > 0) || !(A(at + {MASS}) > 0)) continue;
            const bool sticks = one * one + two * two < bound * bound;
            bool spins = false, rolls = false;
            if (rows == 6) {{
                const real_t spin = A(p + 3), most = A(at + {MU_SPIN}) * push, first = A(p + 4), second = A(p + 5);
                const real_t turn = A(at + {MU_ROLL}) * push * real_t({INSIDE});
                spins = (spin < 0 ? -spin : spin) < most; rolls = first * first + second * second < turn * turn;
            }}
            // rows that no friction of this world needs do not count
            if (m + 3 + spins + 2 * rolls > {MOST_ROWS}) return false;
            {of_contact(0, "NORMAL")}
            {of_contact(1, "sticks ? STICK : SLIDE")}
            {of_contact(2, "sticks ? STICK : SLIDE")}
            if (spins) {of_contact(3, "STICK")}
            if (rolls) {{ {of_contact(4, "STICK")} {of_contact(5, "STICK")} }}
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


def products_code(count: str) -> str:
    """Statements: G <- Y YT of so many rows. Y has a column of ALONG n numbers for each of D dofs."""
    return f"""
        for (int i = 0; i < {count}; i += 4) for (int j = 0; j < n; ++j) {{
            row_t a = 0, b = 0, c = 0, d = 0;
            for (int k = 0; k < D; ++k) {{
                const row_t w = Y[k * n + j]; const real_t* const r = y + k * wide + i;
                a = a + w * r[0]; b = b + w * r[1]; c = c + w * r[2]; d = d + w * r[3];
            }}
            G[i * n + j] = a; G[(i + 1) * n + j] = b; G[(i + 2) * n + j] = c; G[(i + 3) * n + j] = d;
        }}"""


def equations_code(count: str, number: str, row: str, pull: str = f"real_t({PROXIMAL})", apart: int = 1) -> str:
    """Statements: G x = the rest of the equations of all rows, from G = Y YT, the velocities u = Y z, the impulses ``I(i)`` and
    the velocities ``aim(i)`` of rows that stick.

    Args:
        count: of the entries of a row of G.
        number: their type.
        row: of G, where an entry of row ``{}`` is.
        pull: part of the response of a row by which a change of its impulse is resisted.
        apart: how far the numbers of a record are from each other.
    """
    return f"""
        for (int i = 0; i < m; ++i) {{
            const auto one = g + i * wide;
            const int at = record[i];
            const real_t own = one[i] * {pull}, p = I(i);
            if (kind[i] == STICK) {{ one[i] = one[i] + own; x[i] = aim(i) - u[i]; }}
            else if (kind[i] != SLIDE) {{
                const real_t give = A(at + {apart * SOFTNESS}) / A(at + {apart * MASS});
                const real_t side = kind[i] == LIMIT ? A(at + {apart * SIDE}) : real_t(1);
                one[i] = one[i] + (own + give);
                x[i] = (side * A(at + {apart * TARGET}) - u[i]) - give * p;
            }} else {{
                const auto two = one + wide;
                const real_t step = A(at + {apart * SLIDE_STEP}), mu = A(at + {apart * MU_SLIDE}), push = I(i - 1), p2 = I(i + 1);
                const real_t w1 = p - step * u[i], w2 = p2 - step * u[i + 1];
                const real_t inverse = real_t(1) / wp::sqrt(w1 * w1 + (w2 * w2 + real_t(1e-30))), h1 = w1 * inverse, h2 = w2 * inverse;
                const real_t part = mu * push * inverse, share = part < 1 ? part : real_t(1);
                // d (w / |w|) = (1 - h hT) dw / |w|
                const real_t c11 = share * (1 - h1 * h1), c12 = -share * h1 * h2, c22 = share * (1 - h2 * h2);
                for (int j = 0; j < {count}; ++j) {{
                    const {number} first = {row.format("i")}[j], second = {row.format("(i + 1)")}[j];
                    {row.format("i")}[j] = (first * c11 + second * c12) * step;
                    {row.format("(i + 1)")}[j] = (first * c12 + second * c22) * step;
                }}
                one[i] = one[i] + (1 - c11); one[i + 1] = one[i + 1] - c12;
                two[i] = two[i] - c12; two[i + 1] = two[i + 1] + (1 - c22);
                one[i - 1] = one[i - 1] - mu * h1; two[i - 1] = two[i - 1] - mu * h2;
                x[i] = mu * push * h1 - p; x[i + 1] = mu * push * h2 - p2;
                ++i;
            }}
        }}"""


def elimination_code() -> str:
    """Statements: x <- the solution of G x = x, by elimination in G, four columns at a time; `largest` <- the largest number of the
    solution. The inverse pivots go to u."""
    return """
        part_t* const parts = (part_t*)G; const int across = wide / PART, used = (m + PART - 1) / PART;
        // further rows without an effect
        const int end = (m + 3) / 4 * 4;
        for (int i = m; i < end; ++i) {
            for (int j = 0; j < wide; ++j) g[i * wide + j] = 0;
            g[i * wide + i] = 1; x[i] = 0;
        }
        for (int k = 0; k < end; k += 4) {
            const int first = k / PART, last = k + 4;
            // the square of the four pivots stays in registers
            const real_t* const a = g + k * wide + k; const real_t* const b = a + wide; const real_t* const c = b + wide;
            const real_t* const d = c + wide;
            const real_t u0 = real_t(1) / a[0], a1 = a[1], a2 = a[2], a3 = a[3], b0 = b[0] * u0, c0 = c[0] * u0, d0 = d[0] * u0;
            const real_t u1 = real_t(1) / (b[1] - a1 * b0), b2 = b[2] - a2 * b0, b3 = b[3] - a3 * b0;
            const real_t c1 = (c[1] - a1 * c0) * u1, d1 = (d[1] - a1 * d0) * u1;
            const real_t u2 = real_t(1) / ((c[2] - a2 * c0) - b2 * c1), c3 = (c[3] - a3 * c0) - b3 * c1;
            const real_t d2 = ((d[2] - a2 * d0) - b2 * d1) * u2;
            const real_t u3 = real_t(1) / (((d[3] - a3 * d0) - b3 * d1) - c3 * d2);
            const real_t x0 = x[k], x1 = x[k + 1] - b0 * x0, x2 = (x[k + 2] - c0 * x0) - c1 * x1;
            const real_t x3 = ((x[k + 3] - d0 * x0) - d1 * x1) - d2 * x2;
            u[k] = u0; u[k + 1] = u1; u[k + 2] = u2; u[k + 3] = u3; x[k + 1] = x1; x[k + 2] = x2; x[k + 3] = x3;
            part_t* const top = parts + k * across;
            for (int j = first; j < used; ++j) {
                const part_t p = top[j], q = top[across + j] - p * b0, r = (top[2 * across + j] - p * c0) - q * c1;
                top[across + j] = q; top[2 * across + j] = r;
                top[3 * across + j] = ((top[3 * across + j] - p * d0) - q * d1) - r * d2;
            }
            for (int i = last; i < m; ++i) {
                const real_t* const r = g + i * wide + k;
                const real_t f0 = r[0] * u0, f1 = (r[1] - f0 * a1) * u1, f2 = ((r[2] - f0 * a2) - f1 * b2) * u2;
                const real_t f3 = (((r[3] - f0 * a3) - f1 * b3) - f2 * c3) * u3;
                x[i] = (((x[i] - f0 * x0) - f1 * x1) - f2 * x2) - f3 * x3;
                part_t* const own = parts + i * across; const part_t* const row = parts + k * across;
                for (int j = first; j < used; ++j)
                    own[j] = (((own[j] - row[j] * f0) - row[across + j] * f1) - row[2 * across + j] * f2) - row[3 * across + j] * f3;
            }
        }
        real_t largest = 0;
        auto found = [&](int k, real_t rest) {
            const real_t value = rest * u[k], size = value < 0 ? -value : value;
            x[k] = value;
            if (!(size <= largest)) largest = size;
            return value;
        };
        for (int k = end - 4; k >= 0; k -= 4) {
            const real_t* const a = g + k * wide + k; const real_t* const b = a + wide; const real_t* const c = b + wide;
            const real_t x3 = found(k + 3, x[k + 3]), x2 = found(k + 2, x[k + 2] - c[3] * x3);
            const real_t x1 = found(k + 1, (x[k + 1] - b[3] * x3) - b[2] * x2);
            const real_t x0 = found(k, ((x[k] - a[3] * x3) - a[2] * x2) - a[1] * x1);
            for (int i = 0; i < k; ++i) {
                const real_t* const r = g + i * wide + k;
                x[i] = (((x[i] - r[3] * x3) - r[2] * x2) - r[1] * x1) - r[0] * x0;
            }
        }"""


def _newton_code(width: int, real, slotted: bool) -> str:
    """C++ body of ``newton_steps`` for several worlds, or of ``newton_of_slots``."""
    take = "for (int k = 0; k < D; ++k) y[k * wide + i] = A(from[i] + k);"
    if slotted:
        take = take_row_code("owner[i]", "from[i]")
    slots = f"""for (int s = 0; s < slots; ++s) {{
            const int p = L.packed_impulse + rows * s, at = L.packed + {CONTACT} * s, y = L.packed_y + D * rows * s;"""
    blocks = MOST_ROWS // ALONG
    return f"""{{{FUSE}
        {along_code(real)}
        enum {{ NORMAL, STICK, SLIDE, LIMIT }};
        real_t* const F = (real_t*)mem.data;
        const int D = T.dofs, rows = T.contact_rows;
        const int* const list = active.data + T.candidates;
        {chain_bits_code(width) if slotted else ""}
        auto step = [&](int l) -> bool {{
        auto A = [=](int i) -> real_t& {{ return F[(size_t)i * {width} + l]; }};
        const int slots = (int)A(L.packed_worlds) - 1;
        int from[{MOST_ROWS}], place[{MOST_ROWS}], kind[{MOST_ROWS}], record[{MOST_ROWS}], owner[{MOST_ROWS}], m = 0;
        {_choose_code(slots, "D", "s")}
        if (m == 0) return false;
        // Y has a column of {ALONG} n numbers for each dof
        const int n = (m + {ALONG - 1}) / {ALONG}, wide = {ALONG} * n;
        row_t Y[{MOST_DOFS} * {blocks}], G[{MOST_ROWS} * {blocks}], U[{blocks}];
        real_t* const y = (real_t*)Y; real_t* const g = (real_t*)G; real_t* const u = (real_t*)U;
        real_t x[{MOST_ROWS}];
        for (int k = 0; k < D * n; ++k) Y[k] = row_t(0);
        for (int i = 0; i < m; ++i) {{
            const int dof = -1 - owner[i];
            if (dof < 0) {take} else {{
                const int* const c = T.chain.data + T.chain_at.data[dof];
                for (int d = 0; d <= T.depth.data[dof]; ++d) y[c[d] * wide + i] = A(from[i] + d);
            }}
        }}
        for (int j = 0; j < n; ++j) {{
            row_t sum = 0;
            for (int k = 0; k < D; ++k) sum = sum + Y[k * n + j] * A(L.z + k);
            U[j] = sum;
        }}
        {products_code("m")}
        auto I = [&](int i) -> real_t& {{ return A(place[i]); }};
        auto aim = [](int) {{ return real_t(0); }};
        {equations_code("n", "row_t", "(G + {} * n)")}
        {elimination_code()}
        if (!(largest < real_t(1e10))) return false;
        for (int i = 0; i < m; ++i) A(place[i]) = A(place[i]) + x[i];
        for (int i = m; i < wide; ++i) x[i] = 0;
        for (int k = 0; k < D; ++k) {{
            row_t sum = 0;
            for (int j = 0; j < n; ++j) {{ row_t w; __builtin_memcpy(&w, x + {ALONG} * j, sizeof(row_t)); sum = sum + Y[k * n + j] * w; }}
            A(L.z + k) = A(L.z + k) + total(sum);
        }}
        return true; }};
        real_t* const tried = F + (size_t)L.tried * {width};
        for (int l = 0; l < {width}; ++l) if (tried[l] > 0 && !step(l)) tried[l] = 0; }}"""


def _one_world_code(real) -> str:
    """C++ body of ``newton_step`` for a thread with one world."""
    number = C_NAME[real]
    listed = f"""for (int s = 0; s < contacts; ++s) {{
            const int p = L.impulse + rows * active_at[s], at = L.contact + {CONTACT} * s, y = L.contact_y + T.reach * rows * s;"""
    # of row i: the number of its entries, and their dofs
    span = """const int own = owner[i]; const bool single = own < 0;
            const int* const c = single ? T.chain.data + T.chain_at.data[-1 - own] : T.pair_table.data + spans[2 * own];
            const int size = single ? T.depth.data[-1 - own] + 1 : spans[2 * own + 1];"""
    lists = ", ".join(
        f"{name} = spans + (2 * T.candidates + {i * MOST_ROWS})"
        for i, name in enumerate(("from", "place", "kind", "record", "owner"))
    )

    def strided(name: str, number: str) -> str:
        """Statement: a type of numbers that are not side by side in memory."""
        return f"""struct {name} {{ {number}* data; size_t step;
            CUDA_CALLABLE {number}& operator[](int i) const {{ return data[(size_t)i * step]; }}
            CUDA_CALLABLE {number}& operator()(int i) const {{ return data[(size_t)i * step]; }}
            CUDA_CALLABLE {name} operator+(int i) const {{ return {{data + (size_t)i * step, step}}; }} }};"""

    def four(at: str, step: str, factor: str, other: str, last: str) -> str:
        """Statements: four numbers, `step` apart from `at` on, minus sums of k products; then times `last`."""
        place = [f"{at} + {i} * {step}" for i in range(4)]
        loads = "".join(f"real_t s{i} = g[{place[i]}];" for i in range(4))
        sums = "".join(f"s{i} = s{i} - f * g[{other} + {i} * {step}];" for i in range(4))
        stores = "".join(f"g[{place[i]}] = s{i}{last};" for i in range(4))
        return f"{loads} for (int q = 0; q < k; ++q) {{ const real_t f = g[{factor}]; {sums} }} {stores}"

    return f"""{{ typedef {number} real_t; {strided("Numbers", number)} {strided("Integers", "int")}
        enum {{ NORMAL, STICK, SLIDE, LIMIT, wide = {COLUMNS} }};
        const Numbers A = {{mem.data + t, (size_t)mem.shape[1]}};
        const Integers active_at = {{active.data + t, (size_t)active.shape[1]}};
        const int D = T.dofs, rows = T.contact_rows;
        const Integers list = active_at + T.candidates, spans = list + D;
        const Integers {lists};
        int m = 0;
        {_choose_code(listed, "T.reach", "s")}
        if (m == 0) return false;
        const Numbers g = A + L.newton, u = g + {(MOST_ROWS + 3) * COLUMNS}, w = u + {MOST_ROWS}, Z = A + L.z;
        // the right side is column m
        const Numbers x = {{(g + m).data, wide * g.step}};
        // three rows with an entry for each dof
        for (int k = 0; k < 3 * D; ++k) w[k] = 0;
        for (int i = 0, n; i < m; i += n) {{
            {span}
            n = kind[i] == NORMAL ? 3 : 1;
            for (int r = 0; r < n; ++r) {{
                const Numbers Y = A + from[i + r];
                real_t sum = 0;
                for (int k = 0; k < size; ++k) {{ const real_t y = Y[k]; w[3 * c[k] + r] = y; sum = sum + y * Z[c[k]]; }}
                u[i + r] = sum;
            }}
            const int first = i;
            for (int i = 0; i < first + n; ++i) {{
                {span}
                const Numbers Y = A + from[i];
                real_t a = 0, b = 0, d = 0;
                if (n == 1) for (int k = 0; k < size; ++k) a = a + Y[k] * w[3 * c[k]];
                else for (int k = 0; k < size; ++k) {{
                    const real_t y = Y[k]; const Numbers v = w + 3 * c[k];
                    a = a + y * v[0]; b = b + y * v[1]; d = d + y * v[2];
                }}
                g[i * wide + first] = a; g[first * wide + i] = a;
                if (n == 3) {{
                    g[i * wide + first + 1] = b; g[(first + 1) * wide + i] = b;
                    g[i * wide + first + 2] = d; g[(first + 2) * wide + i] = d;
                }}
            }}
            for (int k = 0; k < size; ++k) for (int r = 0; r < n; ++r) w[3 * c[k] + r] = 0;
        }}
        auto I = [&](int i) -> real_t& {{ return A(place[i]); }};
        auto aim = [](int) {{ return real_t(0); }};
        {equations_code("m", "real_t", "(g + {} * wide)")}
        for (int i = 0; i < m; ++i) for (int j = m + 1; j < m + 4; ++j) g[i * wide + j] = 0;
        for (int i = m; i < m + 3; ++i) for (int j = 0; j < m + 4; ++j) g[i * wide + j] = 0;
        // row k of the upper factor and of the right side, then column k of the lower factor: sums are in registers
        for (int k = 0; k < m; ++k) {{
            for (int j = k; j <= m; j += 4) {{ {four("k * wide + j", "1", "k * wide + q", "q * wide + j", "")} }}
            const real_t inverse = real_t(1) / g[k * wide + k];
            u[k] = inverse;
            for (int i = k + 1; i < m; i += 4) {{ {four("i * wide + k", "wide", "q * wide + k", "i * wide + q", " * inverse")} }}
        }}
        real_t largest = 0;
        for (int k = m - 1; k >= 0; --k) {{
            real_t rest = x[k];
            for (int j = k + 1; j < m; ++j) rest = rest - g[k * wide + j] * x[j];
            rest = rest * u[k];
            x[k] = rest;
            const real_t size = rest < 0 ? -rest : rest;
            if (!(size <= largest)) largest = size;
        }}
        if (!(largest < real_t(1e10))) return false;
        for (int i = 0; i < m; ++i) {{
            {span}
            const real_t p = x[i]; const Numbers Y = A + from[i];
            A(place[i]) = A(place[i]) + p;
            for (int k = 0; k < size; ++k) Z[c[k]] = Z[c[k]] + Y[k] * p;
        }}
        return true; }}"""


def polish_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``newton_steps``, and ``newton_of_slots`` for lanes of several worlds."""
    if not hasattr(m, "width"):
        # numbers of a trace
        return dict(newton_steps=None)
    if m.width == 1:
        return dict(newton_steps=_one_world(m))

    @wp.func_native(_newton_code(m.width, m.real, slotted=False))
    def newton_steps(
        t: int,
        contacts: int,
        limits: int,
        T: wp.ref[m.Tree],
        L: wp.ref[m.Layout],
        mem: m.memory,
        active: wp.array2d[int],
    ):
        """A step of Newton for the impulses of each world whose contacts are packed and for which ``tried`` is positive, and z; ``tried``
        <- zero where there is none."""

    @wp.func_native(_newton_code(m.width, m.real, slotted=True))
    def newton_of_slots(
        t: int,
        contacts: int,
        limits: int,
        T: wp.ref[m.Tree],
        L: wp.ref[m.Layout],
        mem: m.memory,
        active: wp.array2d[int],
    ):
        """The same for contacts that are in slots from the start."""

    return dict(newton_steps=newton_steps, newton_of_slots=newton_of_slots)


def _one_world(m: types.SimpleNamespace):
    """``newton_steps`` of a thread with one world."""
    real = m.real

    @wp.func_native(_one_world_code(m.real))
    def newton_step(
        t: int,
        contacts: int,
        limits: int,
        T: wp.ref[m.Tree],
        L: wp.ref[m.Layout],
        mem: m.memory,
        active: wp.array2d[int],
    ) -> bool:
        """A step of Newton for the impulses of the active contacts and limits, and z. Returns whether there is one."""

    @m.shared
    def newton_steps(t: int, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """The same as for several worlds."""
        if real(0.0) < m.get(mem, L.tried, t):
            if not newton_step(t, contacts, limits, T, L, mem, active):
                m.put(mem, L.tried, t, real(0.0))

    return newton_steps
