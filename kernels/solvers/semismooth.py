"""Goals of the impulses of a single world, and steps of Newton towards them.

The goal of a row, or of the two rows of a disc, is the impulse that its law asks for with the velocities as they are: its projected
impulse. Impulses are a solution where they are their goals. This is a system of equations with corners; on each side of them, rows press
or not, stick or slide, and it is smooth. A step of Newton solves the equations of the side on which the goals are (Alart and Curnier 1991;
semismooth Newton methods, Qi and Sun 1993; with bounds alone they are active set methods, Hintermueller, Ito and Kunisch 2003). A look at
the goals takes less than a tenth of the time of a sweep, because rows do not wait for each other.

The code is native and computes with vectors along the rows of a world.
"""

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
from newton_like.kernels.solvers.rows.dof_rows import DOF_ROW, INVERSE_RESPONSE, RESPONSE, SIDE

MOST_ROWS = SINGLE_ROWS
"""Worlds with more rows are left to the sweeps of the block."""

MOST_ACTING = 64
"""With more rows that act, there are sweeps without steps of Newton."""

RUN = 8
"""Numbers that are copied together."""

BLOCKS = MOST_ROWS // ALONG


def each(statements: str) -> str:
    """C++ statements for each vector j of the impulses of a world's rows."""
    return f"for (int kind = 0; kind < 3; ++kind) for (int j = {BLOCKS} * kind; j < {BLOCKS} * kind + n; ++j) {{ {statements} }}"


def look_code() -> str:
    """C++ lambda ``look``: `goal` <- what all impulses would become if each row or disc alone followed its law; which contacts press and
    stick there. Returns how far that is, squared, in the norm of the response of each row."""
    return f"""
        auto look = [&]() -> real_t {{
            real_t sum = 0;
            for (int s = 0; s < slots; ++s) {{
                const int i = rows * s;
                const real_t* const c = coefficients + {CONTACT} * s;
                const real_t old = P[i], error = (u[i] - c[{TARGET}]) * c[{MASS}];
                const real_t aim = (old - error) - c[{SOFTNESS}] * old, pn = aim > 0 ? aim : real_t(0), dn = pn - old;
                const real_t s1 = P[i + 1] - (c[{NORMAL_SLIDE_1}] * dn + u[i + 1]) * c[{SLIDE_STEP}];
                const real_t s2 = P[i + 2] - (c[{NORMAL_SLIDE_2}] * dn + u[i + 2]) * c[{SLIDE_STEP}];
                const real_t far = s1 * s1 + s2 * s2, most = c[{MU_SLIDE}] * pn;
                const real_t shrink = far > most * most ? most / wp::sqrt(far) : real_t(1);
                goal[i] = pn; goal[i + 1] = s1 * shrink; goal[i + 2] = s2 * shrink;
                const real_t d1 = goal[i + 1] - P[i + 1], d2 = goal[i + 2] - P[i + 2];
                presses[s] = pn > 0 && c[{MASS}] > 0; sticks[s] = far < most * most;
                sum = sum + (dn * dn * inverse[s][0] + (d1 * d1 + d2 * d2) * inverse[s][1]);
                if (rows == 6) {{
                    const real_t bound = c[{MU_SPIN}] * pn, spin = P[i + 3] - u[i + 3] * c[{SPIN_MASS}];
                    goal[i + 3] = spin < -bound ? -bound : spin > bound ? bound : spin;
                    const real_t r1 = P[i + 4] - u[i + 4] * c[{ROLL_STEP}], r2 = P[i + 5] - u[i + 5] * c[{ROLL_STEP}];
                    const real_t turn = r1 * r1 + r2 * r2, limit = c[{MU_ROLL}] * pn;
                    const real_t less = turn > limit * limit ? limit / wp::sqrt(turn) : real_t(1);
                    goal[i + 4] = r1 * less; goal[i + 5] = r2 * less;
                    const real_t d3 = goal[i + 3] - P[i + 3], d4 = goal[i + 4] - P[i + 4], d5 = goal[i + 5] - P[i + 5];
                    spins[s] = -bound < spin && spin < bound; rolls[s] = turn < limit * limit;
                    sum = sum + (d3 * d3 * inverse[s][2] + (d4 * d4 + d5 * d5) * inverse[s][3]);
                }}
            }}
            for (int k = 0; k < dofs; ++k) {{
                const int i = dof_row[k];
                const real_t* const c = dof_coefficients + {DOF_ROW} * k;
                const real_t a = c[{RESPONSE}], most = friction[k], next = P[i] - u[i] * c[{INVERSE_RESPONSE}];
                goal[i] = next < -most ? -most : next > most ? most : next;
                dof_sticks[k] = -most < next && next < most;
                real_t change = goal[i] - P[i];
                if (!dof_hard[k]) {{ sum = sum + change * change * a; continue; }}
                const real_t most_speed = fastest[k];
                const real_t pv = P[{MOST_ROWS} + i], pp = P[2 * {MOST_ROWS} + i];
                real_t v = u[i] + a * change, more = 0, last = 0;
                if (most_speed > 0) {{
                    const real_t free = v - a * pv, held = free < -most_speed ? -most_speed : free > most_speed ? most_speed : free;
                    more = (held - free) * c[{INVERSE_RESPONSE}] - pv; v = v + a * more;
                }}
                if (c[{MASS}] > 0) {{
                    const real_t side = c[{SIDE}], old = side * pp, error = (side * v - c[{TARGET}]) * c[{MASS}];
                    const real_t aim = (old - error) - c[{SOFTNESS}] * old;
                    last = side * ((aim > 0 ? aim : real_t(0)) - old);
                }}
                goal[{MOST_ROWS} + i] = pv + more; goal[2 * {MOST_ROWS} + i] = pp + last;
                change = (change + more) + last;
                sum = sum + change * change * a;
            }}
            return sum;
        }};"""


def step_code() -> str:
    """C++ lambda ``newton``: `way` and `WAY_U` <- Newton's step of impulses and velocities, for the rows that act at the goals of the last
    look. Impulses that do not act change to these goals. Returns whether there is a step."""

    def row(i: str, impulse: str, kind: str, aim: str = "0") -> str:
        named = f"from[m] = {i}; place[m] = {impulse}; kind[m] = {kind}; record_of[m] = record[{i}]; aims[m] = {aim};"
        return f"{{ {named} acts[{impulse}] = true; ++m; }}"

    def turning(i: str, inside: str) -> str:
        """Statement: a row of spin or rolling that sticks or is at its bound, which is in proportion to the normal impulse."""
        return (
            f"if ({inside}) {row(i, i, 'STICK')} else if (goal[{i}] != 0) {row(i, i, 'BOUND', f'goal[{i}] / goal[i]')}"
        )

    return f"""
        auto newton = [&](real_t pull) -> bool {{
            enum {{ NORMAL, STICK, SLIDE, LIMIT, BOUND }};
            int from[{MOST_ACTING} + 8], place[{MOST_ACTING} + 8], kind[{MOST_ACTING} + 8], record_of[{MOST_ACTING} + 8], m = 0;
            real_t aims[{MOST_ACTING} + 8];
            bool acts[3 * {MOST_ROWS}] = {{}};
            for (int s = 0; s < slots; ++s) {{
                const int i = rows * s;
                if (!presses[s]) continue;
                if (m + rows > {MOST_ACTING}) return false;
                {row("i", "i", "NORMAL")}
                {row("i + 1", "i + 1", "sticks[s] ? STICK : SLIDE")}
                {row("i + 2", "i + 2", "sticks[s] ? STICK : SLIDE")}
                if (rows == 6) {{ {turning("i + 3", "spins[s]")} {turning("i + 4", "rolls[s]")} {turning("i + 5", "rolls[s]")} }}
            }}
            for (int k = 0; k < dofs; ++k) {{
                const int i = dof_row[k];
                const real_t fast = dof_hard[k] ? goal[{MOST_ROWS} + i] : real_t(0), most = fastest[k];
                const bool pushed = dof_hard[k] && goal[2 * {MOST_ROWS} + i] != 0;
                if (m + dof_sticks[k] + (fast != 0 || pushed) > {MOST_ACTING}) return false;
                if (dof_sticks[k]) {row("i", "i", "STICK")}
                // a limit of the position that asks for a higher velocity gives way, if it is soft, or else prevails
                const real_t* const c = dof_coefficients + {DOF_ROW} * k;
                const real_t aim = fast < 0 ? most : -most;
                const bool both = fast != 0 && pushed && c[{SOFTNESS}] > 0;
                if (both) {{
                    const real_t held = (c[{SIDE}] * c[{TARGET}] - aim) * c[{MASS}] / c[{SOFTNESS}];
                    // both pull at one row: what the one loses the other gains
                    const real_t pushes = held * c[{SIDE}] > 0 ? held : real_t(0);
                    P[{MOST_ROWS} + i] = P[{MOST_ROWS} + i] + (P[2 * {MOST_ROWS} + i] - pushes);
                    P[2 * {MOST_ROWS} + i] = goal[2 * {MOST_ROWS} + i] = pushes;
                }}
                if (fast != 0 && (both || !pushed)) {row("i", f"{MOST_ROWS} + i", "STICK", "aim")}
                else if (pushed) {row("i", f"2 * {MOST_ROWS} + i", "LIMIT")}
            }}
            if (m == 0) return false;
            const int all = n;
            // rows of G that were not needed before
            int needed[{MOST_ROWS}], more = 0;
            auto need = [&](int i) {{ if (!known[i]) {{ known[i] = true; needed[more++] = i; }} }};
            for (int i = 0; i < m; ++i) need(from[i]);
            int changed[{MOST_ROWS}], changes = 0;
            real_t change[{MOST_ROWS}];
            for (int i = 0; i < R; ++i) {{
                real_t sum = 0;
                for (int p = i; p < 3 * {MOST_ROWS}; p += {MOST_ROWS}) if (!acts[p] && goal[p] != P[p]) {{
                    sum = sum + (goal[p] - P[p]); P[p] = goal[p]; }}
                if (sum != 0) {{ need(i); change[changes] = sum; changed[changes++] = i; }}
            }}
            products(needed, more);
            for (int q = 0; q < changes; ++q) for (int j = 0; j < all; ++j) U[j] = U[j] + G[changed[q] * all + j] * change[q];
            {each("WAY[j] = row_t(0);")}
            {{
                const int n = (m + {ALONG - 1}) / {ALONG}, wide = {ALONG} * n;
                row_t S[{MOST_ACTING} * {MOST_ACTING // ALONG} + 1]; real_t* const g = (real_t*)S;
                real_t u_of[{MOST_ACTING}], x[{MOST_ACTING}];
                // rows that act next to each other are copied together, RUN numbers at a time; the next ones replace what is too much
                int run[{MOST_ACTING}], runs = 0;
                for (int i = 1; i <= m; ++i) if (i == m || from[i] != from[i - 1] + 1) run[runs++] = i;
                for (int i = 0; i < m; ++i) {{
                    const real_t* const row = (const real_t*)(G + from[i] * all);
                    u_of[i] = u[from[i]];
                    for (int r = 0, begin = 0; r < runs; begin = run[r++]) for (int j = 0; j < run[r] - begin; j += {RUN})
                        __builtin_memcpy(g + i * wide + begin + j, row + from[begin] + j, {RUN} * sizeof(real_t));
                    for (int j = m; j < wide; ++j) g[i * wide + j] = 0;
                }}
                auto I = [&](int i) -> real_t& {{ return P[place[i]]; }};
                auto aim = [&](int i) {{ return aims[i]; }};
                auto A = [&](int i) {{ return coefficients[i]; }};
                {{
                    real_t* const u = u_of; const int* const record = record_of; row_t* const G = S;
                    {equations_code("n", "row_t", "(G + {} * n)", "pull")}
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
                for (int j = 0; j < all; ++j) WAY_U[j] = 0;
                for (int i = 0; i < m; ++i) {{
                    way[place[i]] = x[i];
                    const row_t* const row = G + from[i] * all;
                    for (int j = 0; j < all; ++j) WAY_U[j] = WAY_U[j] + row[j] * x[i];
                }}
            }}
            return true;
        }};"""
