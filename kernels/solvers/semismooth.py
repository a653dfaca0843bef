"""Goals of the impulses of a single world, and steps of Newton towards them.

The goal of a row, or of the two rows of a disc, is the impulse that its law asks for with the velocities as they are: its projected
impulse. Impulses are a solution where they are their goals. This is a system of equations with corners; on each side of them, rows press
or not, stick or slide, and it is smooth. A step of Newton solves the equations of the side on which the goals are (Alart and Curnier 1991;
semismooth Newton methods, Qi and Sun 1993; with bounds alone they are active set methods, Hintermueller, Ito and Kunisch 2003). A look at
the goals takes less than a tenth of the time of a sweep, because rows do not wait for each other.

The code is native and computes with vectors along the rows of a world: first the normals of all contacts, then the rows along their first
tangents, along their second ones, and about their axes, then those of dofs. So a look at all contacts is a few operations on vectors.
"""

import warp as wp
from newton_like.kernels.layout import SINGLE_ROWS
from newton_like.kernels.rows import MASS, SOFTNESS, TARGET
from newton_like.kernels.solvers.polish import ALONG, elimination_code, equations_code
from newton_like.kernels.solvers.rows.contact_rows import (
    CONTACT,
    MU_ROLL,
    MU_SLIDE,
    MU_SPIN,
    NORMAL_SLIDE_1,
    NORMAL_SLIDE_2,
    ROLL_STEP,
    SLIDE_STEP,
    SPIN_MASS,
)
from newton_like.kernels.solvers.rows.dof_rows import INVERSE_RESPONSE, RESPONSE, SIDE

MOST_ROWS = SINGLE_ROWS
"""Worlds with more rows are left to the sweeps of the block."""

MOST_ACTING = 64
"""With more rows that act, there are sweeps without steps of Newton."""

OF_LOOKS = (
    MASS, SOFTNESS, TARGET, NORMAL_SLIDE_1, NORMAL_SLIDE_2, SLIDE_STEP, MU_SLIDE, SPIN_MASS, ROLL_STEP, MU_SPIN, MU_ROLL,
)  # fmt: skip
"""Numbers of the law of a contact that count here. Those from number AXES on are of rows about axes."""

AXES = 7

BLOCKS = MOST_ROWS // ALONG


def each(statements: str) -> str:
    """C++ statements for each vector j of the impulses of a world's rows."""
    return f"for (int kind = 0; kind < kinds; ++kind) for (int j = {BLOCKS} * kind; j < {BLOCKS} * kind + n; ++j) {{ {statements} }}"


def sums(result: str, count: str, terms: str) -> str:
    """C++ statements: the vectors ``result[j]``, j < n, <- the sums of ``terms`` over i < count, where ``{j}`` is the place of vector j.
    Several vectors at a time stay in registers."""

    def block(vectors: int) -> str:
        zeros = ", ".join(f"s{v} = 0" for v in range(vectors))
        adds = "".join(f"s{v} = s{v} + {terms.format(j=f'j + {v}')};" for v in range(vectors))
        puts = "".join(f"{result}[j + {v}] = s{v};" for v in range(vectors))
        return f"for (; j + {vectors} <= n; j += {vectors}) {{ row_t {zeros}; for (int i = 0; i < {count}; ++i) {{ {adds} }} {puts} }}"

    return f"{{ int j = 0; {block(4)} {block(3)} {block(2)} {block(1)} }}"


def look_code() -> str:
    """C++ lambda ``look``: `goal` <- what all impulses would become if each row or disc alone followed its law; which contacts press and
    stick there. Returns how far that is, squared, in the norm of the response of each row."""
    return f"""
        typedef bool bits_t __attribute__((ext_vector_type({ALONG})));
        auto bits = [](auto where) -> unsigned {{
            const bits_t found = __builtin_convertvector(where, bits_t);
            unsigned short all; __builtin_memcpy(&all, &found, sizeof(all));
            return all;
        }};
        row_t LANE; for (int i = 0; i < {ALONG}; ++i) LANE[i] = i;
        auto look = [&]() -> real_t {{
            const row_t zero = 0, one = 1;
            row_t sum = 0;
            auto load = [](const real_t* from) {{ row_t x; __builtin_memcpy(&x, from, sizeof(x)); return x; }};
            auto put = [&](int i, const row_t& x) {{ __builtin_memcpy(goal + i, &x, sizeof(x)); }};
            auto shorter = [&](const row_t& square, const row_t& most) {{
                const row_t length = __builtin_elementwise_sqrt(square);
                return square > most * most ? most / (square > 0 ? length : one) : one;
            }};
            presses = sticks = spins = rolls = 0;
            // from the last ones on: goals of the next kind replace those behind the last contact, which are zero
            for (int s = (slots + {ALONG - 1}) / {ALONG} * {ALONG} - {ALONG}; s >= 0; s -= {ALONG}) {{
                const auto on = LANE < real_t(slots - s);
                auto C = [&](int number) {{ return LAWS_OF[(number * {MOST_ROWS} + s) / {ALONG}]; }};
                auto I = [&](int kind) {{ return on ? load(P + slots * kind + s) : zero; }};
                auto V = [&](int kind) {{ return load(u + slots * kind + s); }};
                auto inverse = [&](int number) {{ return INVERSE[number * {BLOCKS} + s / {ALONG}]; }};
                const row_t old = I(0), p1 = I(1), p2 = I(2), mass = C({MASS}), step = C({SLIDE_STEP});
                const row_t error = (V(0) - C({TARGET})) * mass, aim = (old - error) - C({SOFTNESS}) * old;
                const row_t pn = aim > 0 ? aim : zero, dn = pn - old;
                const row_t s1 = p1 - (C({NORMAL_SLIDE_1}) * dn + V(1)) * step, s2 = p2 - (C({NORMAL_SLIDE_2}) * dn + V(2)) * step;
                const row_t far = s1 * s1 + s2 * s2, most = C({MU_SLIDE}) * pn, shrink = shorter(far, most);
                const row_t goal1 = s1 * shrink, goal2 = s2 * shrink, d1 = goal1 - p1, d2 = goal2 - p2;
                put(s, pn); put(slots + s, goal1); put(2 * slots + s, goal2);
                presses |= bits(pn > 0 & mass > 0) << s; sticks |= bits(far < most * most) << s;
                sum = sum + (dn * dn * inverse(0) + (d1 * d1 + d2 * d2) * inverse(1));
                if (rows == 6) {{
                    const row_t p3 = I(3), p4 = I(4), p5 = I(5), roll = C({ROLL_STEP});
                    const row_t bound = C({MU_SPIN}) * pn, spin = p3 - V(3) * C({SPIN_MASS});
                    const row_t held = spin < -bound ? -bound : spin > bound ? bound : spin;
                    const row_t r1 = p4 - V(4) * roll, r2 = p5 - V(5) * roll;
                    const row_t turn = r1 * r1 + r2 * r2, limit = C({MU_ROLL}) * pn, less = shorter(turn, limit);
                    const row_t goal4 = r1 * less, goal5 = r2 * less, d3 = held - p3, d4 = goal4 - p4, d5 = goal5 - p5;
                    put(3 * slots + s, held); put(4 * slots + s, goal4); put(5 * slots + s, goal5);
                    spins |= bits(-bound < spin & spin < bound) << s; rolls |= bits(turn < limit * limit) << s;
                    sum = sum + (d3 * d3 * inverse(2) + (d4 * d4 + d5 * d5) * inverse(3));
                }}
            }}
            for (int k = 0; k < dofs; k += {ALONG}) {{
                const int j = k / {ALONG}, i = of_dofs + k;
                const row_t p = load(P + i), most = FRICTION[j];
                const row_t next = p - load(u + i) * LAWS_OF[({CONTACT} + {INVERSE_RESPONSE}) * {BLOCKS} + j];
                const row_t held = next < -most ? -most : next > most ? most : next, change = held - p;
                put(i, held);
                dof_sticks[j] = bits(-most < next & next < most);
                sum = sum + change * change * LOOSE[j];
            }}
            real_t rest = 0;
            for (int h = 0; h < hards; ++h) {{
                const int k = hard_dofs[h], i = of_dofs + k;
                auto c = [&](int number) {{ return dof_laws[number * {MOST_ROWS} + k]; }};
                const real_t a = c({RESPONSE}), most_speed = fastest[k];
                const real_t pv = P[{MOST_ROWS} + i], pp = P[2 * {MOST_ROWS} + i];
                real_t change = goal[i] - P[i], v = u[i] + a * change, more = 0, last = 0;
                if (most_speed > 0) {{
                    const real_t free = v - a * pv, held = free < -most_speed ? -most_speed : free > most_speed ? most_speed : free;
                    more = (held - free) * c({INVERSE_RESPONSE}) - pv; v = v + a * more;
                }}
                if (c({MASS}) > 0) {{
                    const real_t side = c({SIDE}), old = side * pp, error = (side * v - c({TARGET})) * c({MASS});
                    const real_t aim = (old - error) - c({SOFTNESS}) * old;
                    last = side * ((aim > 0 ? aim : real_t(0)) - old);
                }}
                goal[{MOST_ROWS} + i] = pv + more; goal[2 * {MOST_ROWS} + i] = pp + last;
                change = (change + more) + last;
                rest = rest + change * change * a;
            }}
            return total(sum) + rest;
        }};"""


def _columns_code(real) -> str:
    """C++ statements: the rows and columns of G that act, in S. Their columns are chosen in registers: from the vectors of a row where one
    register holds a vector, and otherwise number by number, a register at a time."""
    half = ALONG // 2
    numbers = ", ".join(f"row[c[{q}]]" for q in range(half))
    loads = f"""
                typedef real_t half_t __attribute__((ext_vector_type({half})));
                half_t PLACE; for (int q = 0; q < {half}; ++q) PLACE[q] = q;
                for (int i = m; i < wide; ++i) from[i] = from[0];
                for (int k = 0; k < wide; k += {half}) {{
                    const int* const c = from + k;
                    for (int i = 0; i < m; ++i) {{
                        half_t found = 0;
                        if (k < m) {{
                            const real_t* const row = (const real_t*)(G + from[i] * all);
                            const half_t listed = {{{numbers}}};
                            found = PLACE < real_t(m - k) ? listed : found;
                        }}
                        __builtin_memcpy(g + i * wide + k, &found, sizeof(found));
                    }}
                }}"""
    if real is not wp.float32:
        return loads
    return f"""
#ifdef __AVX512F__
                typedef int places_t __attribute__((ext_vector_type({ALONG}), aligned(4)));
                for (int i = m; i < wide; ++i) from[i] = -1;
                for (int k = 0; k < n; ++k) {{
                    const places_t at = *(const places_t*)(from + {ALONG} * k), of = at >> {ALONG.bit_length() - 1};
                    for (int i = 0; i < m; ++i) {{
                        row_t found = 0;
                        for (int j = 0; j < all; ++j)
                            found = of == j ? (row_t)__builtin_ia32_permvarsf512(G[from[i] * all + j], at) : found;
                        S[i * n + k] = found;
                    }}
                }}
#else
{loads}
#endif"""


def step_code(real) -> str:
    """C++ lambda ``newton``: `way` and `WAY_U` <- Newton's step of impulses and velocities, for the rows that act at the goals of the last
    look. Impulses that do not act change to these goals. Returns whether there is a step."""

    def row(i: str, impulse: str, kind: str, aim: str = "0") -> str:
        return f"act({i}, {impulse}, {kind}, {aim});"

    def turning(i: str, inside: str) -> str:
        """Statement: a row of spin or rolling that sticks or is at its bound, which is in proportion to the normal impulse."""
        bound = row(f"{i} * slots + s", f"{i} * slots + s", "BOUND", f"goal[{i} * slots + s] / goal[s]")
        return f"if ({inside} >> s & 1) {row(f'{i} * slots + s', f'{i} * slots + s', 'STICK')} else if (goal[{i} * slots + s] != 0) {bound}"

    return f"""
        auto newton = [&](real_t pull) -> bool {{
            enum {{ NORMAL, STICK, SLIDE, LIMIT, BOUND }};
            int from[{MOST_ACTING} + {ALONG}], place[{MOST_ACTING} + 8], kind[{MOST_ACTING} + 8], record_of[{MOST_ACTING} + 8], m = 0;
            real_t aims[{MOST_ACTING} + 8];
            auto act = [&](int i, int at, int what, real_t aim) {{
                from[m] = i; place[m] = at; kind[m] = what; record_of[m] = record[i]; aims[m] = aim; ++m;
            }};
            for (unsigned left = presses; left; left &= left - 1) {{
                const int s = __builtin_ctz(left), tangent = sticks >> s & 1 ? STICK : SLIDE;
                if (m + rows > {MOST_ACTING}) return false;
                {row("s", "s", "NORMAL")}
                {row("slots + s", "slots + s", "tangent")}
                {row("2 * slots + s", "2 * slots + s", "tangent")}
                if (rows == 6) {{ {turning("3", "spins")} {turning("4", "rolls")} {turning("5", "rolls")} }}
            }}
            for (int j = 0; {ALONG} * j < dofs; ++j) for (unsigned left = dof_sticks[j] | hard_bits[j]; left; left &= left - 1) {{
                const int k = {ALONG} * j + __builtin_ctz(left), i = of_dofs + k;
                if (!hard(k)) {{
                    if (m == {MOST_ACTING}) return false;
                    {row("i", "i", "STICK")}
                    continue;
                }}
                auto c = [&](int number) {{ return dof_laws[number * {MOST_ROWS} + k]; }};
                const real_t fast = goal[{MOST_ROWS} + i], most = fastest[k];
                const bool pushed = goal[2 * {MOST_ROWS} + i] != 0, holds = dof_sticks[j] >> k % {ALONG} & 1;
                if (m + holds + (fast != 0 || pushed) > {MOST_ACTING}) return false;
                if (holds) {row("i", "i", "STICK")}
                // a limit of the position that asks for a higher velocity gives way, if it is soft, or else prevails
                const real_t aim = fast < 0 ? most : -most;
                const bool both = fast != 0 && pushed && c({SOFTNESS}) > 0;
                if (both) {{
                    const real_t held = (c({SIDE}) * c({TARGET}) - aim) * c({MASS}) / c({SOFTNESS});
                    // both pull at one row: what the one loses the other gains
                    const real_t pushes = held * c({SIDE}) > 0 ? held : real_t(0);
                    P[{MOST_ROWS} + i] = P[{MOST_ROWS} + i] + (P[2 * {MOST_ROWS} + i] - pushes);
                    P[2 * {MOST_ROWS} + i] = goal[2 * {MOST_ROWS} + i] = pushes;
                }}
                if (fast != 0 && (both || !pushed)) {row("i", f"{MOST_ROWS} + i", "STICK", "aim")}
                else if (pushed) {row("i", f"2 * {MOST_ROWS} + i", "LIMIT")}
            }}
            if (m == 0) return false;
            const int all = n;
            // rows of G that were not needed before
            int needed[{MOST_ROWS} + 1], more = 0;
            auto need = [&](int i) {{ needed[more] = i; more += !known[i]; known[i] = true; }};
            for (int i = 0; i < m; ++i) {{ need(from[i]); goal[place[i]] = P[place[i]]; }}
            int changed[{MOST_ROWS}], changes = 0;
            row_t CHANGE[{BLOCKS}]; const real_t* const change = (const real_t*)CHANGE;
            for (int j = 0; j < n; ++j) {{
                row_t sum = 0;
                for (int q = j; q < kinds * {BLOCKS}; q += {BLOCKS}) {{ sum = sum + (GOAL[q] - IMPULSES[q]); IMPULSES[q] = GOAL[q]; }}
                CHANGE[j] = sum;
                for (unsigned left = bits(sum != 0); left; left &= left - 1) changed[changes++] = {ALONG} * j + __builtin_ctz(left);
            }}
            for (int q = 0; q < changes; ++q) need(changed[q]);
            products(needed, more);
            for (int q = 0; q < changes; ++q) for (int j = 0; j < all; ++j) U[j] = U[j] + G[changed[q] * all + j] * change[changed[q]];
            {each("WAY[j] = row_t(0);")}
            {{
                const int n = (m + {ALONG - 1}) / {ALONG}, wide = {ALONG} * n;
                row_t S[{MOST_ACTING} * {MOST_ACTING // ALONG} + 1]; real_t* const g = (real_t*)S;
                real_t u_of[{MOST_ACTING}], x[{MOST_ACTING}];
                {_columns_code(real)}
                for (int i = 0; i < m; ++i) u_of[i] = u[from[i]];
                auto I = [&](int i) -> real_t& {{ return P[place[i]]; }};
                auto aim = [&](int i) {{ return aims[i]; }};
                auto A = [&](int i) {{ return laws[i]; }};
                {{
                    real_t* const u = u_of; const int* const record = record_of; row_t* const G = S;
                    {equations_code("n", "row_t", "(G + {} * n)", "pull", MOST_ROWS)}
                    // the normal row of a contact comes before its others
                    for (int i = 0, normal = 0; i < m; ++i) {{
                        if (kind[i] == NORMAL) normal = i;
                        if (kind[i] != BOUND) continue;
                        for (int j = 0; j < wide; ++j) g[i * wide + j] = 0;
                        g[i * wide + i] = 1; g[i * wide + normal] = -aims[i];
                        x[i] = aims[i] * I(normal) - I(i);
                    }}
                    {elimination_code()}
                    if (!(largest < real_t(1e10))) return false;
                }}
                for (int i = 0; i < m; ++i) way[place[i]] = x[i];
                {{ const int n = all; {sums("WAY_U", "m", "G[from[i] * n + {j}] * x[i]")} }}
            }}
            return true;
        }};"""
