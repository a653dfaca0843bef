"""The solution of single worlds, after the sweeps of their block.

Most worlds of a block settle after a few sweeps. A sweep for the others costs as much as one for all, so they are solved one at a time:
with the rows of the matrix G = Y YT, changes of impulses p change velocities u = Y z, and need no dofs.

Steps of Newton follow each other without sweeps between them (see `kernels.solvers.semismooth`), until the impulses are as near to their
goals as `tolerance` asks for. Whole steps are made, also where they lead away from the goals, because they often have to cross a hill to
the right set of rows. A shorter step would end at the next change of that set. After PATIENCE steps in a row that do not come nearer, the
nearest impulses come back (the watchdog of Chamberlain, Lemarechal, Pedersen and Powell 1982) and extrapolated sweeps follow (see
`kernels.solvers.sweeps`). Rows of contacts between the same two bodies depend on each other, so impulses may grow against each other; after
a step that leads far `AWAY`, changes of impulses are resisted more (Levenberg 1944, Marquardt 1963; here it is a proximal step, which
leaves the solution as it is). A step that leads `TOO_FAR` is taken back first.

The code is native and computes with vectors along the rows of a world.
"""

import types

import warp as wp
from newton_like.kernels.collision.pairs.records import SLOT, SLOT_IDS
from newton_like.kernels.rows import MASS, SOFTNESS, TARGET
from newton_like.kernels.simd import FUSE
from newton_like.kernels.solvers.packed import MOST_DOFS
from newton_like.kernels.solvers.polish import ALONG, STILL, along_code
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
from newton_like.kernels.solvers.rows.slots import WORDS, chain_bits_code
from newton_like.kernels.solvers.semismooth import AXES, BLOCKS, MOST_ROWS, OF_LOOKS, each, look_code, step_code, sums
from newton_like.kernels.solvers.single import BESIDE, beside_code

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

ROUNDS = 24
"""Rounds of steps and sweeps, at most."""

FAR = 2.0
"""A world is solved if its distance, squared, is less than this multiple of the bound of the change by a sweep."""

NEARER = 0.8
"""A step is good where it reduces the distance, squared, to less than this part."""

AWAY = 10.0
"""Changes are resisted more after a step that raises the distance, squared, by more than this factor."""

TOO_FAR = 1.0e4
"""A step is taken back where it raises the distance, squared, by more than this factor, unless changes are resisted as much as possible."""

PATIENCE = 5
"""Sweeps follow after so many steps of Newton that are not good."""

PULL, PULL_MOST = 1.0e-3, 0.1
"""Part of the response of a row by which a change of its impulse is resisted, at first and at most."""

PULL_UP, PULL_DOWN = 10.0, 0.5
"""Its factors after steps that lead far away, and after those that are good."""

PLAIN_SWEEPS = 6
"""Sweeps where steps of Newton do not help."""


def _disc(x: str, y: str, bound: str, first: str, second: str) -> str:
    """Statements: the impulses `first` and `second` <- (x, y) in the disc of radius `bound`; their changes are d_x and d_y."""
    return f"""const real_t far = {x} * {x} + {y} * {y}, most = {bound};
        const real_t shrink = far > most * most ? most / wp::sqrt(far) : real_t(1);
        const real_t d_{x} = {x} * shrink - P[{first}], d_{y} = {y} * shrink - P[{second}];
        P[{first}] = P[{first}] + d_{x}; P[{second}] = P[{second}] + d_{y};"""


def _sweep_code() -> str:
    """C++ lambda ``sweep``: one Gauss-Seidel visit of all rows, as in `dof_sweep` and `packed_sweep`. Returns the change of z, squared."""
    return f"""
        auto sweep = [&]() -> real_t {{
            {each("BEFORE[j] = IMPULSES[j];")}
            for (int j = 0; j < n; ++j) WAS[j] = U[j];
            for (int k = 0; k < dofs; ++k) {{
                const int i = of_dofs + k;
                auto c = [&](int number) {{ return dof_laws[number * {MOST_ROWS} + k]; }};
                const real_t a = c({RESPONSE}), inverse = c({INVERSE_RESPONSE}), most = friction[k];
                real_t v = u[i];
                real_t next = P[i] - v * inverse;
                next = next < -most ? -most : next > most ? most : next;
                real_t change = next - P[i], total = change;
                P[i] = next; v = v + a * change;
                if (hard(k)) {{
                    const real_t most = fastest[k];
                    real_t& pv = P[{MOST_ROWS} + i]; real_t& pp = P[2 * {MOST_ROWS} + i];
                    if (most > 0) {{
                        const real_t free = v - a * pv, held = free < -most ? -most : free > most ? most : free;
                        change = (held - free) * inverse - pv;
                        pv = pv + change; total = total + change; v = v + a * change;
                    }}
                    if (c({MASS}) > 0) {{
                        const real_t side = c({SIDE}), old = side * pp;
                        const real_t error = (side * v - c({TARGET})) * c({MASS});
                        const real_t goal = (old - error) - c({SOFTNESS}) * old;
                        change = side * ((goal > 0 ? goal : real_t(0)) - old);
                        pp = pp + change; total = total + change;
                    }}
                }}
                const row_t* const g0 = G + i * n;
                for (int j = 0; j < n; ++j) U[j] = U[j] + g0[j] * total;
            }}
            for (int s = 0; s < slots; ++s) {{
                auto c = [&](int number) {{ return laws[number * {MOST_ROWS} + s]; }};
                const int i1 = slots + s, i2 = slots + i1;
                const real_t old = P[s], error = (u[s] - c({TARGET})) * c({MASS});
                const real_t goal = (old - error) - c({SOFTNESS}) * old, pn = goal > 0 ? goal : real_t(0), dn = pn - old;
                P[s] = pn;
                const row_t* const g0 = G + s * n; const row_t* const g1 = G + i1 * n; const row_t* const g2 = G + i2 * n;
                {{
                    const real_t s1 = P[i1] - (c({NORMAL_SLIDE_1}) * dn + u[i1]) * c({SLIDE_STEP});
                    const real_t s2 = P[i2] - (c({NORMAL_SLIDE_2}) * dn + u[i2]) * c({SLIDE_STEP});
                    {_disc("s1", "s2", f"c({MU_SLIDE}) * pn", "i1", "i2")}
                    for (int j = 0; j < n; ++j) U[j] = ((U[j] + g0[j] * dn) + g1[j] * d_s1) + g2[j] * d_s2;
                }}
                if (rows == 6) {{
                    const int i3 = slots + i2, i4 = slots + i3, i5 = slots + i4;
                    const row_t* const g3 = G + i3 * n; const row_t* const g4 = G + i4 * n; const row_t* const g5 = G + i5 * n;
                    const real_t bound = c({MU_SPIN}) * pn, aim = P[i3] - u[i3] * c({SPIN_MASS});
                    const real_t held = aim < -bound ? -bound : aim > bound ? bound : aim, turn = held - P[i3];
                    P[i3] = held;
                    for (int j = 0; j < n; ++j) U[j] = U[j] + g3[j] * turn;
                    const real_t r1 = P[i4] - u[i4] * c({ROLL_STEP}), r2 = P[i5] - u[i5] * c({ROLL_STEP});
                    {_disc("r1", "r2", f"c({MU_ROLL}) * pn", "i4", "i5")}
                    for (int j = 0; j < n; ++j) U[j] = (U[j] + g4[j] * d_r1) + g5[j] * d_r2;
                }}
            }}
            row_t sums = 0;
            for (int j = 0; j < n; ++j) {{
                row_t change = IMPULSES[j] - BEFORE[j];
                for (int k = 1; k < kinds; ++k) change = change + (IMPULSES[{BLOCKS} * k + j] - BEFORE[{BLOCKS} * k + j]);
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
            {each("back = back + (START[j] - IMPULSES[j]) * (IMPULSES[j] - SWEPT[j]);")}
            const real_t old = total(back) > 0 ? real_t(1) : pace;
            pace = real_t(0.5) * wp::sqrt(real_t(4) * old * old + real_t(1)) + real_t(0.5);
            const real_t further = (old - real_t(1)) / pace;
            {each("const row_t p = IMPULSES[j]; IMPULSES[j] = START[j] = further * (p - SWEPT[j]) + p; SWEPT[j] = p;")}
            for (int j = 0; j < n; ++j) {{ const row_t x = U[j]; U[j] = further * (x - SWEPT_U[j]) + x; SWEPT_U[j] = x; }}
        }};
        auto begin = [&]() {{
            pace = 1;
            {each("START[j] = SWEPT[j] = IMPULSES[j];")}
            for (int j = 0; j < n; ++j) SWEPT_U[j] = U[j];
        }};"""


def _several(vectors: int) -> str:
    """Statements: entries of the rows i0 to i3 of G, so many vectors at a time, from vector j on."""
    each = [(row, j, f"s{row}{j}") for row in range(4) for j in range(vectors)]
    loads = "".join(f"const row_t w{j} = Y[k * n + j + {j}];" for j in range(vectors))
    adds = "".join(f"{name} = {name} + w{j} * r[i{row}];" for row, j, name in each)
    puts = "".join(f"G[i{row} * n + j + {j}] = {name};" for row, j, name in each)
    return f"""for (; j + {vectors} <= n; j += {vectors}) {{
                    row_t {", ".join(f"{name} = 0" for *_, name in each)};
                    for (int q = 0; q < words; ++q) for (unsigned more = some[q]; more; more &= more - 1) {{
                        const int k = 32 * q + __builtin_ctz(more); const real_t* const r = y + k * wide; {loads} {adds} }}
                    {puts} }}"""


def _finish_code(width: int, real, slotted: bool) -> str:
    """C++ body of ``finish_worlds``, or of ``finish_slots``."""
    every = "for (int q = 0; q < words; ++q) every[q] = D - 32 * q < 32 ? (1u << (D - 32 * q)) - 1 : ~0u;"
    entries = "for (int q = 0; q < words; ++q) chosen[q] = every[q];"
    dofs = "every"
    if slotted:
        entries = f"""const int ids = L.slot + {SLOT} * s + {SLOT_IDS}, leaf = (int)A(ids + 1), other = (int)A(ids + 2);
            for (int q = 0; q < words; ++q) chosen[q] = (unsigned)((leaf < 0 ? 0 : chain_bits[{WORDS} * leaf + q])
                | (other < 0 ? 0 : chain_bits[{WORDS} * other + q]));"""
        dofs = f"(const unsigned*)chain_bits + {WORDS} * (list[q] / 2)"
    return f"""{{{FUSE}
        {along_code(real)}
        real_t* const F = (real_t*)mem.data;
        const int D = T.dofs, rows = T.contact_rows;
        const int* const list = active.data + T.candidates;
        const real_t still = real_t({STILL}) * tolerance[0];
        const int words = (D + 31) / 32;
        {chain_bits_code(width) if slotted else f"unsigned every[{WORDS}]; {every}"}
        {beside_code(width, real)}
        const real_t* const settled = F + (size_t)L.settled * {width};
        // entries of the rows of dofs in the list: where they are, their dofs, and whose they are
        int entries[{MOST_DOFS} * {MOST_DOFS}], count = 0;
        for (int q = 0; q < limits; ++q) {{
            const int dof = list[q] / 2; const int* const c = T.chain.data + T.chain_at.data[dof];
            for (int d = 0; d <= T.depth.data[dof]; ++d) entries[count++] = ((T.reach * dof + d) * {MOST_DOFS} + c[d]) * {MOST_DOFS} + q;
        }}
        int left = 0, most_slots = 0;
        for (int l = 0; l < {width}; ++l) {{
            const int slots = (int)F[(size_t)L.packed_worlds * {width} + l] - 1;
            if (settled[l] > 0 || rows * slots > {MOST_ROWS}) continue;
            ++left; if (slots > most_slots) most_slots = slots;
        }}
        if (left >= {BESIDE}) bring(most_slots);
        auto finish = [&](int l) -> bool {{
        auto A = [&](int i) -> real_t& {{ return F[(size_t)i * {width} + l]; }};
        const int slots = (int)A(L.packed_worlds) - 1, stride = T.contact_rows;
        // rows about axes count if this world needs them: results do not depend on friction in other worlds
        int rows = 3;
        if (stride == 6) for (int at = L.packed; at < L.packed + {CONTACT} * slots; at += {CONTACT})
            if (A(at + {MU_SPIN}) > 0 || A(at + {MU_ROLL}) > 0) rows = 6;
        const int of_dofs = rows * slots;
        // bits of the dofs of each row
        unsigned dofs_of_slots[{MOST_ROWS // 3} * {WORDS}];
        const unsigned* dofs_of[{MOST_ROWS}];
        int record[{MOST_ROWS}], dof_place[{MOST_ROWS}], row_of[{MOST_DOFS}], dofs = 0, R = of_dofs;
        if (R > {MOST_ROWS}) return false;
        // each number of the laws of all contacts, then of all dofs; zeros behind the last one
        row_t LAWS_OF[({CONTACT} + {DOF_ROW}) * {BLOCKS}], FRICTION[{BLOCKS}], LOOSE[{BLOCKS}], INVERSE[4 * {BLOCKS}];
        real_t* const laws = (real_t*)LAWS_OF; real_t* const dof_laws = laws + {CONTACT * MOST_ROWS};
        real_t* const friction = (real_t*)FRICTION; real_t* const loose = (real_t*)LOOSE; real_t* const inverse = (real_t*)INVERSE;
        // dofs with hard limits: all, bits of them, and their highest speeds
        int hard_dofs[{MOST_ROWS}], hards = 0, kinds = 1;
        unsigned hard_bits[{BLOCKS}]; real_t fastest[{MOST_ROWS}];
        auto hard = [&](int k) {{ return hard_bits[k / {ALONG}] >> k % {ALONG} & 1; }};
        // Y has a column of {ALONG} n numbers for each dof
        int n = 0, wide = 0;
        row_t Y[{MOST_DOFS} * {BLOCKS}], G[{MOST_ROWS} * {BLOCKS} + 1], U[{BLOCKS} + 1], WAS[{BLOCKS}], FREE[{BLOCKS}];
        row_t SWEPT_U[{BLOCKS}], WAY_U[{BLOCKS}], KEPT_U[{BLOCKS}], BEST_U[{BLOCKS}];
        real_t* const y = (real_t*)Y; real_t* const u = (real_t*)U;
        // impulses of contacts and friction of dofs, of velocity limits, and of position limits
        row_t IMPULSES[3 * {BLOCKS}], BEFORE[3 * {BLOCKS}], START[3 * {BLOCKS}], SWEPT[3 * {BLOCKS}], WAY[3 * {BLOCKS}];
        row_t KEPT[3 * {BLOCKS}], GIVEN[3 * {BLOCKS}], GOAL[3 * {BLOCKS}], BEST[3 * {BLOCKS}];
        real_t* const P = (real_t*)IMPULSES; real_t* const goal = (real_t*)GOAL; real_t* const way = (real_t*)WAY; real_t pace = 1;
        // reads the world; false if it has too many rows, or none
        auto read = [&](auto apart) -> bool {{
            const auto law = see(l, LAWS, apart), dof_law = see(l, DOF_LAWS, apart);
            const int of[] = {{{", ".join(str(x) for x in OF_LOOKS)}}};
            // what has no effect in this world is not read
            for (int q = 0; q < (rows == 6 ? {len(OF_LOOKS)} : {AXES}); ++q) {{
                for (int s = 0; s < slots; s += {ALONG}) LAWS_OF[(of[q] * {MOST_ROWS} + s) / {ALONG}] = row_t(0);
                for (int s = 0; s < slots; ++s) laws[of[q] * {MOST_ROWS} + s] = law({CONTACT} * s + of[q]);
            }}
            for (int i = 0; i < of_dofs; ++i) record[i] = i % slots;
            for (int j = 0; j < {BLOCKS} && {ALONG} * j < limits; ++j) {{
                FRICTION[j] = LOOSE[j] = LAWS_OF[({CONTACT} + {RESPONSE}) * {BLOCKS} + j] = row_t(0);
                LAWS_OF[({CONTACT} + {INVERSE_RESPONSE}) * {BLOCKS} + j] = row_t(0); hard_bits[j] = 0;
            }}
            for (int q = 0; q < limits; ++q) {{
                const int from = {DOF_ROW} * (list[q] / 2);
                const bool is_hard = list[q] % 2 != 0 && dof_law(from + {HARD}) > 0;
                const real_t bound = A(L.friction_bound + q);
                row_of[q] = -1;
                if (!is_hard && !(bound > 0)) continue;
                if (R == {MOST_ROWS}) return false;
                const real_t response = dof_law(from + {RESPONSE});
                friction[dofs] = bound; loose[dofs] = is_hard ? real_t(0) : response;
                dof_laws[{RESPONSE * MOST_ROWS} + dofs] = response;
                dof_laws[{INVERSE_RESPONSE * MOST_ROWS} + dofs] = dof_law(from + {INVERSE_RESPONSE});
                if (is_hard) {{
                    hard_bits[dofs / {ALONG}] |= 1u << dofs % {ALONG}; hard_dofs[hards++] = dofs;
                    for (int i = 0; i < {RESPONSE}; ++i) dof_laws[i * {MOST_ROWS} + dofs] = dof_law(from + i);
                    dof_laws[{SIDE * MOST_ROWS} + dofs] = dof_law(from + {SIDE});
                    fastest[dofs] = A(L.velocity_bound + q);
                }}
                dofs_of[R] = {dofs}; row_of[q] = R; record[R++] = {CONTACT * MOST_ROWS} + dofs; dof_place[dofs++] = q;
            }}
            if (R == 0) return false;
            n = (R + {ALONG - 1}) / {ALONG}; wide = {ALONG} * n;
            kinds = hards ? 3 : 1;
            for (int j = 0; j < 3 * {BLOCKS}; ++j) IMPULSES[j] = GOAL[j] = row_t(0);
            for (int k = 0; k < D * n; ++k) Y[k] = row_t(0);
            const auto contact_rows = see(l, ROWS, apart), dof_rows = see(l, DOF_ROWS, apart), impulses = see(l, IMPULSES_OF, apart);
            const auto dof_impulses = see(l, DOF_IMPULSES_OF, apart), z = see(l, Z_OF, apart), free_z = see(l, FREE_OF, apart);
            for (int s = 0; s < slots; ++s) {{
                for (int i = 0; i < rows; ++i) P[slots * i + s] = impulses(stride * s + i);
                unsigned* const chosen = dofs_of_slots + words * s;
                {entries}
                for (int i = 0; i < rows; ++i) dofs_of[slots * i + s] = chosen;
                for (int q = 0; q < words; ++q) for (unsigned more = chosen[q]; more; more &= more - 1) {{
                    const int k = 32 * q + __builtin_ctz(more), from = D * stride * s + k;
                    real_t* const to = y + k * wide + s;
                    to[0] = contact_rows(from); to[slots] = contact_rows(from + D); to[2 * slots] = contact_rows(from + 2 * D);
                    if (rows == 6) for (int i = 3; i < 6; ++i) to[slots * i] = contact_rows(from + i * D);
                }}
            }}
            for (int k = 0; k < dofs; ++k) {{
                const int i = of_dofs + k, p = {DOF_IMPULSES} * (list[dof_place[k]] / 2);
                P[i] = dof_impulses(p + {OF_FRICTION});
                if (!hard(k)) continue;
                P[{MOST_ROWS} + i] = dof_impulses(p + {OF_VELOCITY}); P[2 * {MOST_ROWS} + i] = dof_impulses(p + {OF_POSITION});
            }}
            for (int e = 0; e < count; ++e) {{
                const unsigned entry = entries[e], of = entry / {MOST_DOFS};
                const int i = row_of[entry % {MOST_DOFS}];
                if (i >= 0) y[of % {MOST_DOFS} * wide + i] = dof_rows(of / {MOST_DOFS});
            }}
            {each("GIVEN[j] = IMPULSES[j];")}
            real_t now[{MOST_DOFS}], free[{MOST_DOFS}];
            for (int k = 0; k < D; ++k) {{
                now[k] = z(k); free[k] = free_z(k);
            }}
            {sums("U", "D", "Y[i * n + {j}] * now[i]")}
            {sums("FREE", "D", "Y[i * n + {j}] * free[i]")}
            // looks read beyond the last row
            U[n] = row_t(0);
            return true;
        }};
        // the numbers of worlds with more slots are not side by side
        if (!(beside && stride * slots <= {MOST_ROWS} ? read(near_t()) : read(far_t()))) return false;
        // rows of G = Y YT, where they are needed
        bool known[{MOST_ROWS}] = {{}};
        auto products = [&](const int* list, int count) {{
            for (int q = 0; q < count; q += 4) {{
                const int last = count - 1, i0 = list[q], i1 = list[q + 1 < last ? q + 1 : last], i2 = list[q + 2 < last ? q + 2 : last];
                const int i3 = list[q + 3 < last ? q + 3 : last];
                unsigned some[{WORDS}];
                for (int q = 0; q < words; ++q) some[q] = (dofs_of[i0][q] | dofs_of[i1][q]) | (dofs_of[i2][q] | dofs_of[i3][q]);
                int j = 0;
                // several vectors at a time, so that sums do not wait for each other
#ifdef __AVX512F__
                {_several(3)} {_several(2)}
#endif
                {_several(1)}
            }}
        }};
        // bits of contacts that press, that stick, that do not turn; of dofs whose friction holds
        unsigned presses = 0, sticks = 0, spins = 0, rolls = 0, dof_sticks[{BLOCKS}];
        const int of[4] = {{{MASS}, {SLIDE_STEP}, {SPIN_MASS}, {ROLL_STEP}}};
        for (int q = 0; q < (rows == 6 ? 4 : 2); ++q) for (int j = 0; {ALONG} * j < slots; ++j) {{
            const row_t law = LAWS_OF[of[q] * {BLOCKS} + j], zero = 0;
            INVERSE[q * {BLOCKS} + j] = law > 0 ? real_t(1) / (law > 0 ? law : zero + 1) : zero;
        }}
        // the tolerance times the change of z by all impulses, squared
        auto bound = [&]() -> real_t {{
            row_t whole = 0;
            for (int j = 0; j < n; ++j)
                whole = whole + ((IMPULSES[j] + IMPULSES[{BLOCKS} + j]) + IMPULSES[2 * {BLOCKS} + j]) * (U[j] - FREE[j]);
            return still * still * total(whole);
        }};
        {_sweep_code()}
        {_extrapolate_code()}
        {look_code()}
        {step_code(real)}
        real_t merit = look();
        if (!(merit < real_t(1e30))) return false;
        bool done = merit <= real_t({FAR}) * bound();
        real_t pull = real_t({PULL});
        for (int round = 0; round < {ROUNDS} && !done; ++round) {{
            // steps of Newton, until some of them in a row have not come nearer
            real_t least = merit;
            {each("BEST[j] = IMPULSES[j];")}
            for (int j = 0; j < n; ++j) BEST_U[j] = U[j];
            for (int since = 0; since < {PATIENCE} && !done;) {{
                {each("KEPT[j] = IMPULSES[j];")}
                for (int j = 0; j < n; ++j) KEPT_U[j] = U[j];
                if (!newton(pull)) break;
                const real_t before = merit, more = pull * real_t({PULL_UP}), highest = real_t({PULL_MOST});
                {each("IMPULSES[j] = IMPULSES[j] + WAY[j];")}
                for (int j = 0; j < n; ++j) U[j] = U[j] + WAY_U[j];
                merit = look();
                if (!(merit < real_t({TOO_FAR}) * before) && pull < highest) {{
                    pull = more < highest ? more : highest;
                    {each("IMPULSES[j] = KEPT[j];")}
                    for (int j = 0; j < n; ++j) U[j] = KEPT_U[j];
                    merit = look();
                    continue;
                }}
                done = merit <= real_t({FAR}) * bound();
                pull = merit < real_t({NEARER}) * before ? pull * real_t({PULL_DOWN}) : merit > real_t({AWAY}) * before ? more : pull;
                pull = pull < real_t({PULL}) ? real_t({PULL}) : pull > highest ? highest : pull;
                since = merit < real_t({NEARER}) * least ? 0 : since + 1;
                if (merit < least) {{
                    least = merit;
                    {each("BEST[j] = IMPULSES[j];")}
                    for (int j = 0; j < n; ++j) BEST_U[j] = U[j];
                }}
            }}
            if (done) break;
            {each("IMPULSES[j] = BEST[j];")}
            for (int j = 0; j < n; ++j) U[j] = BEST_U[j];
            int others[{MOST_ROWS}], count = 0;
            for (int i = 0; i < R; ++i) if (!known[i]) {{ known[i] = true; others[count++] = i; }}
            products(others, count);
            begin();
            real_t change = sweep();
            for (int k = 1; k < {PLAIN_SWEEPS}; ++k) {{ go_on(); change = sweep(); }}
            merit = look();
            done = change <= bound() || merit <= real_t({FAR}) * bound();
        }}
        if (!(merit < real_t(1e30))) return false;
        for (int i = 0; i < rows; ++i) for (int s = 0; s < slots; ++s) A(L.packed_impulse + stride * s + i) = P[slots * i + s];
        for (int k = 0; k < dofs; ++k) {{
            const int i = of_dofs + k, p = L.dof_impulse + {DOF_IMPULSES} * (list[dof_place[k]] / 2);
            A(p + {OF_FRICTION}) = P[i];
            if (hard(k)) {{ A(p + {OF_VELOCITY}) = P[{MOST_ROWS} + i]; A(p + {OF_POSITION}) = P[2 * {MOST_ROWS} + i]; }}
        }}
        for (int j = 0; j < n; ++j) {{
            row_t sum = 0;
            for (int k = 0; k < kinds; ++k) sum = sum + (IMPULSES[{BLOCKS} * k + j] - GIVEN[{BLOCKS} * k + j]);
            WAY[j] = sum;
        }}
        for (int k = 0; k < D; ++k) {{
            row_t sum = 0;
            for (int j = 0; j < n; ++j) sum = sum + Y[k * n + j] * WAY[j];
            A(L.z + k) = A(L.z + k) + total(sum);
        }}
        return true; }};
        for (int l = 0; l < {width}; ++l)
            if (!(settled[l] > 0) && finish(l)) F[(size_t)L.sweep_change * {width} + l] = 0; }}"""


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
