"""The solution of single worlds, after the sweeps of their block.

Most worlds of a block settle after a few sweeps. A sweep for the others costs as much as one for all, so they are solved one at a time:
with the matrix G = Y YT of all rows of a world, sweeps change impulses p and velocities u = Y z, and need no dofs. Steps of Newton (see
`kernels.solvers.polish`) alternate with sweeps. A step is halved until the sweeps after it change less than those before it; where that
fails, extrapolated sweeps follow (see `kernels.solvers.sweeps`).

The code is native and computes with vectors along the rows of a world.
"""

import types

import warp as wp
from newton_like.kernels.rows import MASS, SOFTNESS, TARGET
from newton_like.kernels.simd import FUSE
from newton_like.kernels.solvers.packed import MOST_DOFS
from newton_like.kernels.solvers.polish import (
    ALONG,
    INSIDE,
    STILL,
    along_code,
    elimination_code,
    equations_code,
    products_code,
)
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
from newton_like.kernels.solvers.rows.slots import chain_bits_code, take_row_code

from newton_like.kernels.solvers.rows.dof_rows import (  # isort: skip
    DOF_IMPULSES,
    DOF_ROW,
    HARD,
    INVERSE_RESPONSE,
    OF_FRICTION,
    OF_POSITION,
    OF_VELOCITY,
    RESPONSE,
    SIDE,
)

MOST_ROWS = 96
"""Worlds with more rows are left to the sweeps of the block."""

MOST_ACTING = 64
"""With more rows that act, there are sweeps without steps of Newton."""

ROUNDS = 24
"""Rounds of steps and sweeps, at most."""

TRIALS = 2
"""Lengths of a step of Newton that are tried: the whole step and a half."""

RUN = 8
"""Numbers that are copied together."""

TRIAL_SWEEPS, PLAIN_SWEEPS = 1, 6
"""Sweeps after a step of Newton, and where there is none."""


BLOCKS = MOST_ROWS // ALONG


def _each(statements: str) -> str:
    """C++ statements for each vector j of the impulses of a world's rows."""
    return f"for (int kind = 0; kind < 3; ++kind) for (int j = {BLOCKS} * kind; j < {BLOCKS} * kind + n; ++j) {{ {statements} }}"


def _disc(x: str, y: str, bound: str, first: str) -> str:
    """Statements: the impulses `first` and the next one <- (x, y) in the disc of radius `bound`; their changes are d_x and d_y."""
    return f"""const real_t far = {x} * {x} + {y} * {y}, most = {bound};
        const real_t shrink = far > most * most ? most / wp::sqrt(far) : real_t(1);
        const real_t d_{x} = {x} * shrink - P[{first}], d_{y} = {y} * shrink - P[{first} + 1];
        P[{first}] = P[{first}] + d_{x}; P[{first} + 1] = P[{first} + 1] + d_{y};"""


def _sweep_code() -> str:
    """C++ lambda ``sweep``: one Gauss-Seidel visit of all rows, as in `dof_sweep` and `packed_sweep`. Returns the change of z, squared."""
    return f"""
        auto sweep = [&]() -> real_t {{
            {_each("BEFORE[j] = IMPULSES[j];")}
            for (int j = 0; j < n; ++j) WAS[j] = U[j];
            for (int k = 0; k < dofs; ++k) {{
                const int i = dof_row[k];
                const real_t* const c = dof_law[k];
                const real_t a = c[{RESPONSE}], inverse = c[{INVERSE_RESPONSE}], most = friction[k];
                real_t v = u[i];
                real_t next = P[i] - v * inverse;
                next = next < -most ? -most : next > most ? most : next;
                real_t change = next - P[i], total = change;
                P[i] = next; v = v + a * change;
                if (dof_hard[k]) {{
                    const real_t fastest = A(L.velocity_bound + dof_place[k]);
                    real_t& pv = P[{MOST_ROWS} + i]; real_t& pp = P[2 * {MOST_ROWS} + i];
                    if (fastest > 0) {{
                        const real_t free = v - a * pv, held = free < -fastest ? -fastest : free > fastest ? fastest : free;
                        change = (held - free) * inverse - pv;
                        pv = pv + change; total = total + change; v = v + a * change;
                    }}
                    if (c[{MASS}] > 0) {{
                        const real_t side = c[{SIDE}], old = side * pp;
                        const real_t error = (side * v - c[{TARGET}]) * c[{MASS}];
                        const real_t goal = (old - error) - c[{SOFTNESS}] * old;
                        change = side * ((goal > 0 ? goal : real_t(0)) - old);
                        pp = pp + change; total = total + change;
                    }}
                }}
                const row_t* const g0 = G + i * n;
                for (int j = 0; j < n; ++j) U[j] = U[j] + g0[j] * total;
            }}
            for (int s = 0; s < slots; ++s) {{
                const int i = rows * s;
                const real_t* const c = laws[s];
                const real_t old = P[i], error = (u[i] - c[{TARGET}]) * c[{MASS}];
                const real_t goal = (old - error) - c[{SOFTNESS}] * old, pn = goal > 0 ? goal : real_t(0), dn = pn - old;
                P[i] = pn;
                const row_t* const g0 = G + i * n; const row_t* const g1 = g0 + n; const row_t* const g2 = g1 + n;
                {{
                    const real_t s1 = P[i + 1] - (c[{NORMAL_SLIDE_1}] * dn + u[i + 1]) * c[{SLIDE_STEP}];
                    const real_t s2 = P[i + 2] - (c[{NORMAL_SLIDE_2}] * dn + u[i + 2]) * c[{SLIDE_STEP}];
                    {_disc("s1", "s2", f"c[{MU_SLIDE}] * pn", "i + 1")}
                    for (int j = 0; j < n; ++j) U[j] = ((U[j] + g0[j] * dn) + g1[j] * d_s1) + g2[j] * d_s2;
                }}
                if (rows == 6) {{
                    const real_t bound = c[{MU_SPIN}] * pn, aim = P[i + 3] - u[i + 3] * c[{SPIN_MASS}];
                    const real_t held = aim < -bound ? -bound : aim > bound ? bound : aim, turn = held - P[i + 3];
                    P[i + 3] = held;
                    for (int j = 0; j < n; ++j) U[j] = U[j] + g2[n + j] * turn;
                    const real_t r1 = P[i + 4] - u[i + 4] * c[{ROLL_STEP}], r2 = P[i + 5] - u[i + 5] * c[{ROLL_STEP}];
                    {_disc("r1", "r2", f"c[{MU_ROLL}] * pn", "i + 4")}
                    for (int j = 0; j < n; ++j) U[j] = (U[j] + g2[2 * n + j] * d_r1) + g2[3 * n + j] * d_r2;
                }}
            }}
            row_t sums = 0;
            for (int j = 0; j < n; ++j) {{
                row_t change = IMPULSES[j] - BEFORE[j];
                for (int k = 1; k < 3; ++k) change = change + (IMPULSES[{BLOCKS} * k + j] - BEFORE[{BLOCKS} * k + j]);
                sums = sums + change * (U[j] - WAS[j]);
            }}
            const real_t sum = total(sums);
            return sum > 0 ? sum : real_t(0);
        }};"""


def _extrapolate_code() -> str:
    """C++ lambda ``go_on``: moves impulses and velocities on along their change by the last sweep, as `extrapolate_impulses` does."""
    return f"""
        auto go_on = [&]() {{
            row_t back = 0;
            {_each("back = back + (START[j] - IMPULSES[j]) * (IMPULSES[j] - SWEPT[j]);")}
            const real_t old = total(back) > 0 ? real_t(1) : pace;
            pace = real_t(0.5) * wp::sqrt(real_t(4) * old * old + real_t(1)) + real_t(0.5);
            const real_t further = (old - real_t(1)) / pace;
            {_each("const row_t p = IMPULSES[j]; IMPULSES[j] = START[j] = further * (p - SWEPT[j]) + p; SWEPT[j] = p;")}
            for (int j = 0; j < n; ++j) {{ const row_t x = U[j]; U[j] = further * (x - SWEPT_U[j]) + x; SWEPT_U[j] = x; }}
        }};
        auto begin = [&]() {{
            pace = 1;
            {_each("START[j] = SWEPT[j] = IMPULSES[j];")}
            for (int j = 0; j < n; ++j) SWEPT_U[j] = U[j];
        }};"""


def _step_code() -> str:
    """C++ lambda ``newton``: `way` and `WAY_U` <- Newton's step of impulses and velocities. Returns whether there is one."""

    def row(i: str, impulse: str, kind: str, aim: str = "0") -> str:
        named = f"from[m] = {i}; place[m] = {impulse}; kind[m] = {kind}; record_of[m] = record[{i}]; aims[m] = {aim};"
        return f"{{ {named} ++m; }}"

    return f"""
        auto newton = [&]() -> bool {{
            enum {{ NORMAL, STICK, SLIDE, LIMIT }};
            int from[{MOST_ACTING} + 8], place[{MOST_ACTING} + 8], kind[{MOST_ACTING} + 8], record_of[{MOST_ACTING} + 8], m = 0;
            real_t aims[{MOST_ACTING} + 8];
            for (int s = 0; s < slots; ++s) {{
                const int i = rows * s, at = record[i];
                const real_t push = P[i], bound = A(at + {MU_SLIDE}) * push * real_t({INSIDE});
                if (!(push > 0) || !(A(at + {MASS}) > 0)) continue;
                if (m + rows > {MOST_ACTING}) return false;
                const bool sticks = P[i + 1] * P[i + 1] + P[i + 2] * P[i + 2] < bound * bound;
                {row("i", "i", "NORMAL")}
                {row("i + 1", "i + 1", "sticks ? STICK : SLIDE")}
                {row("i + 2", "i + 2", "sticks ? STICK : SLIDE")}
                if (rows == 6) {{
                    const real_t spin = P[i + 3], most = A(at + {MU_SPIN}) * push, turn = A(at + {MU_ROLL}) * push * real_t({INSIDE});
                    if ((spin < 0 ? -spin : spin) < most) {row("i + 3", "i + 3", "STICK")}
                    if (P[i + 4] * P[i + 4] + P[i + 5] * P[i + 5] < turn * turn) {{
                        {row("i + 4", "i + 4", "STICK")} {row("i + 5", "i + 5", "STICK")} }}
                }}
            }}
            for (int k = 0; k < dofs; ++k) {{
                const int i = dof_row[k];
                const real_t held = P[i];
                const bool sticks = (held < 0 ? -held : held) < A(L.friction_bound + dof_place[k]);
                const real_t fast = P[{MOST_ROWS} + i], most = A(L.velocity_bound + dof_place[k]);
                const bool limited = dof_hard[k] && (fast != 0 || P[2 * {MOST_ROWS} + i] != 0);
                if (m + sticks + limited > {MOST_ACTING}) return false;
                if (sticks) {row("i", "i", "STICK")}
                if (limited && fast != 0) {row("i", f"{MOST_ROWS} + i", "STICK", "fast < 0 ? most : -most")}
                else if (limited) {row("i", f"2 * {MOST_ROWS} + i", "LIMIT")}
            }}
            if (m == 0) return false;
            const int all = n;
            {_each("WAY[j] = row_t(0);")}
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
                {{
                    real_t* const u = u_of; const int* const record = record_of; row_t* const G = S;
                    {equations_code("n", "row_t", "(G + {} * n)")}
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


def _finish_code(width: int, real, slotted: bool) -> str:
    """C++ body of ``finish_worlds``, or of ``finish_slots``."""
    take = "for (int k = 0; k < D; ++k) y[k * wide + i] = A(from + k);"
    if slotted:
        take = take_row_code("i / rows", "from")
    return f"""{{{FUSE}
        {along_code(real)}
        real_t* const F = (real_t*)mem.data;
        const int D = T.dofs, rows = T.contact_rows;
        const int* const list = active.data + T.candidates;
        const real_t still = real_t({STILL}) * tolerance[0];
        {chain_bits_code(width) if slotted else ""}
        auto finish = [&](int l) -> bool {{
        auto A = [=](int i) -> real_t& {{ return F[(size_t)i * {width} + l]; }};
        const int slots = (int)A(L.packed_worlds) - 1;
        int record[{MOST_ROWS}], dof_row[{MOST_ROWS}], dof_place[{MOST_ROWS}], dofs = 0, R = rows * slots;
        bool dof_hard[{MOST_ROWS}];
        // coefficients of contacts and dofs side by side
        real_t laws[{MOST_ROWS // 3}][{CONTACT}], dof_law[{MOST_ROWS}][{DOF_ROW}], friction[{MOST_ROWS}];
        if (R > {MOST_ROWS}) return false;
        for (int i = 0; i < R; ++i) record[i] = L.packed + {CONTACT} * (i / rows);
        for (int s = 0; s < slots; ++s) for (int i = 0; i < {CONTACT}; ++i) laws[s][i] = A(L.packed + {CONTACT} * s + i);
        for (int q = 0; q < limits; ++q) {{
            const int at = L.dof_row + {DOF_ROW} * (list[q] / 2);
            const bool hard = list[q] % 2 != 0 && A(at + {HARD}) > 0;
            if (!hard && !(A(L.friction_bound + q) > 0)) continue;
            if (R == {MOST_ROWS}) return false;
            for (int i = 0; i < {DOF_ROW}; ++i) dof_law[dofs][i] = A(at + i);
            friction[dofs] = A(L.friction_bound + q);
            dof_hard[dofs] = hard; dof_place[dofs] = q; dof_row[dofs++] = R; record[R++] = at;
        }}
        if (R == 0) return false;
        // Y has a column of {ALONG} n numbers for each dof
        const int n = (R + {ALONG - 1}) / {ALONG}, wide = {ALONG} * n;
        row_t Y[{MOST_DOFS} * {BLOCKS}], G[{MOST_ROWS} * {BLOCKS} + 1], U[{BLOCKS}], WAS[{BLOCKS}], FREE[{BLOCKS}];
        row_t SWEPT_U[{BLOCKS}], WAY_U[{BLOCKS}], KEPT_U[{BLOCKS}];
        real_t* const y = (real_t*)Y; real_t* const u = (real_t*)U;
        // impulses of contacts and friction of dofs, of velocity limits, and of position limits
        row_t IMPULSES[3 * {BLOCKS}], BEFORE[3 * {BLOCKS}], START[3 * {BLOCKS}], SWEPT[3 * {BLOCKS}], WAY[3 * {BLOCKS}];
        row_t KEPT[3 * {BLOCKS}], GIVEN[3 * {BLOCKS}];
        real_t* const P = (real_t*)IMPULSES; real_t* const way = (real_t*)WAY; real_t pace = 1;
        for (int j = 0; j < 3 * {BLOCKS}; ++j) IMPULSES[j] = row_t(0);
        for (int k = 0; k < D * n; ++k) Y[k] = row_t(0);
        for (int i = 0; i < rows * slots; ++i) {{
            const int from = L.packed_y + D * i;
            {take}
            P[i] = A(L.packed_impulse + i);
        }}
        for (int k = 0; k < dofs; ++k) {{
            const int i = dof_row[k], dof = list[dof_place[k]] / 2;
            const int from = L.dof_y + T.reach * dof, p = L.dof_impulse + {DOF_IMPULSES} * dof;
            const int* const c = T.chain.data + T.chain_at.data[dof];
            for (int d = 0; d <= T.depth.data[dof]; ++d) y[c[d] * wide + i] = A(from + d);
            P[i] = A(p + {OF_FRICTION});
            if (dof_hard[k]) {{ P[{MOST_ROWS} + i] = A(p + {OF_VELOCITY}); P[2 * {MOST_ROWS} + i] = A(p + {OF_POSITION}); }}
        }}
        {_each("GIVEN[j] = IMPULSES[j];")}
        for (int j = 0; j < n; ++j) {{
            row_t sum = 0, free = 0;
            for (int k = 0; k < D; ++k) {{ sum = sum + Y[k * n + j] * A(L.z + k); free = free + Y[k * n + j] * A(L.free_z + k); }}
            U[j] = sum; FREE[j] = free;
        }}
        {products_code("R")}
        // the tolerance times the change of z by all impulses, squared
        auto bound = [&]() -> real_t {{
            row_t whole = 0;
            for (int j = 0; j < n; ++j)
                whole = whole + ((IMPULSES[j] + IMPULSES[{BLOCKS} + j]) + IMPULSES[2 * {BLOCKS} + j]) * (U[j] - FREE[j]);
            return still * still * total(whole);
        }};
        {_sweep_code()}
        {_extrapolate_code()}
        {_step_code()}
        begin();
        real_t change = sweep();
        for (int round = 0; round < {ROUNDS} && change > bound(); ++round) {{
            bool better = false;
            if (newton()) {{
                {_each("KEPT[j] = IMPULSES[j];")}
                for (int j = 0; j < n; ++j) KEPT_U[j] = U[j];
                real_t part = 1;
                for (int trial = 0; trial < {TRIALS} && !better; ++trial) {{
                    {_each("IMPULSES[j] = KEPT[j] + part * WAY[j];")}
                    for (int j = 0; j < n; ++j) U[j] = KEPT_U[j] + part * WAY_U[j];
                    real_t after = 0;
                    for (int k = 0; k < {TRIAL_SWEEPS}; ++k) after = sweep();
                    better = after < change;
                    if (better) {{ change = after; begin(); }}
                    part = part * real_t(0.5);
                }}
                if (!better) {{
                    {_each("IMPULSES[j] = KEPT[j];")}
                    for (int j = 0; j < n; ++j) U[j] = KEPT_U[j];
                }}
            }}
            if (!better) for (int k = 0; k < {PLAIN_SWEEPS}; ++k) {{ go_on(); change = sweep(); }}
        }}
        if (!(change < real_t(1e30))) return false;
        for (int i = 0; i < rows * slots; ++i) A(L.packed_impulse + i) = P[i];
        for (int k = 0; k < dofs; ++k) {{
            const int i = dof_row[k], p = L.dof_impulse + {DOF_IMPULSES} * (list[dof_place[k]] / 2);
            A(p + {OF_FRICTION}) = P[i];
            if (dof_hard[k]) {{ A(p + {OF_VELOCITY}) = P[{MOST_ROWS} + i]; A(p + {OF_POSITION}) = P[2 * {MOST_ROWS} + i]; }}
        }}
        for (int j = 0; j < n; ++j) {{
            row_t sum = 0;
            for (int k = 0; k < 3; ++k) sum = sum + (IMPULSES[{BLOCKS} * k + j] - GIVEN[{BLOCKS} * k + j]);
            WAY[j] = sum;
        }}
        for (int k = 0; k < D; ++k) {{
            row_t sum = 0;
            for (int j = 0; j < n; ++j) sum = sum + Y[k * n + j] * WAY[j];
            A(L.z + k) = A(L.z + k) + total(sum);
        }}
        return true; }};
        for (int l = 0; l < {width}; ++l)
            if (!(F[(size_t)L.settled * {width} + l] > 0) && finish(l)) F[(size_t)L.sweep_change * {width} + l] = 0; }}"""


def finish_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``finish_worlds`` and ``finish_slots``, for lanes of several worlds."""
    if not hasattr(m, "width") or m.width == 1:
        # numbers of a trace, or one world
        return dict(finish_worlds=None)

    @wp.func_native(_finish_code(m.width, m.real, slotted=False))
    def finish_worlds(
        t: int,
        limits: int,
        tolerance: m.lane,
        T: wp.ref[m.Tree],
        L: wp.ref[m.Layout],
        mem: m.memory,
        active: wp.array2d[int],
    ):
        """Solves each world whose contacts are packed and that has not settled; `tolerance` is relative to the change of z by all
        impulses. ``sweep_change`` of these worlds <- zero, but for those with too many rows."""

    @wp.func_native(_finish_code(m.width, m.real, slotted=True))
    def finish_slots(
        t: int,
        limits: int,
        tolerance: m.lane,
        T: wp.ref[m.Tree],
        L: wp.ref[m.Layout],
        mem: m.memory,
        active: wp.array2d[int],
    ):
        """The same for contacts that are in slots from the start."""

    return dict(finish_worlds=finish_worlds, finish_slots=finish_slots)
