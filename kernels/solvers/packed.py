"""Native code of sweeps over contacts of worlds in which bodies may touch each other, and packed contacts.

Worlds of a block touch in different places: of a humanoid that lies, a world has a dozen contacts, and the worlds of a block together
sixty. After the first sweeps, the contacts of worlds that have not settled are packed into slots: slot n is contact n of each of them. Its
rows have an entry for each degree of freedom, because the bodies differ from world to world; bits tell which pairs of successive degrees
of freedom some world needs. The code is native, because registers hold all that a visit carries.
"""

import types

import warp as wp
from newton_like.kernels.rows import MASS, SOFTNESS, TARGET
from newton_like.kernels.simd import C_NAME, FUSE, shrink_code, simd_types
from newton_like.kernels.solvers.rows.contact_rows import (
    CONTACT,
    MU_ROLL,
    MU_SLIDE,
    MU_SPIN,
    NORMAL_NORMAL,
    NORMAL_SLIDE_1,
    NORMAL_SLIDE_2,
    ON,
    ROLL_STEP,
    SLIDE_11,
    SLIDE_12,
    SLIDE_22,
    SLIDE_STEP,
    SPIN_MASS,
)
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES
from newton_like.kernels.tree import PAIR_TABLE, SHAPE_TABLE

INNER = 2
"""Visits of a contact in a slot in a sweep, one after the other. Those after the first one need no rows."""

MOST_DOFS = 128
"""Of a robot with packed contacts: bits tell pairs of them."""

WILD = 16.0
"""Where the velocities change by more than the square root of this times their first change, in the norm of the kinetic energy,
impulses are extrapolated no further: with much friction, extrapolated sweeps may diverge where plain ones converge."""

GROWN = 1.5
"""Extrapolation starts anew where a sweep changes the impulses by more than the square root of this times what the sweep before changed.
Extrapolated sweeps in one direction may diverge where bodies share many contacts, and where they jam. The changes of sweeps that converge
grow a little now and then: with a smaller number, sweeps over towers and walls lose their pace."""


def _pack_code(width: int, real) -> str:
    """C++ body of ``pack_contacts``."""
    number = C_NAME[real]
    return f"""{{ {simd_types(width, real)}
        simd* const M = (simd*)mem.data; {number}* const F = ({number}*)mem.data;
        const int D = T.dofs, rows = T.contact_rows;
        int* const bits = active.data + T.candidates + T.dofs;
        const int* const table = T.pair_table.data + {SHAPE_TABLE} * T.shapes + {PAIR_TABLE} * (T.pairs + 1);
        // numbers of a contact: the candidate's or the active contact's, then the slot's
        const int to[3] = {{L.packed_impulse, L.packed_swept, L.packed_start}};
        int count[{width}], slots = 0;
        bool chosen[{width}];
        for (int l = 0; l < {width}; ++l) {{
            count[l] = 0;
            chosen[l] = !(F[(size_t)L.settled * {width} + l] > 0);
            F[(size_t)L.packed_worlds * {width} + l] = 0;
        }}
        for (int a = 0; a < contacts; ++a) {{
            const {number}* const on = F + (size_t)(L.contact + {CONTACT} * a + {ON}) * {width};
            int lane[{width}], n = 0;
            for (int l = 0; l < {width}; ++l) if (chosen[l] && on[l] > 0) lane[n++] = l;
            if (n == 0) continue;
            const int c = active.data[a], size = table[2 * c + 1];
            const int* const dofs = T.pair_table.data + table[2 * c];
            unsigned part[2] = {{0, 0}};
            for (int k = 0; k < size; ++k) part[dofs[k] >> 6] |= 1u << ((dofs[k] >> 1) & 31);
            const int from[3] = {{L.impulse + rows * c, L.swept_impulse + rows * a, L.start_impulse + rows * a}};
            for (int j = 0; j < n; ++j) {{
                const int l = lane[j], s = count[l]++;
                if (s == slots) {{
                    ++slots;
                    // the bits replace the span of active contact s, which is not read any more
                    for (int i = 0; i < 2; ++i) bits[2 * s + i] = 0;
                    for (int i = 0; i < {CONTACT}; ++i) M[L.packed + {CONTACT} * s + i] = simd(0);
                    for (int q = 0; q < 3; ++q) for (int i = 0; i < rows; ++i) M[to[q] + rows * s + i] = simd(0);
                    for (int i = 0; i < rows * D; ++i) M[L.packed_y + rows * D * s + i] = simd(0);
                }}
                for (int i = 0; i < 2; ++i) bits[2 * s + i] |= (int)part[i];
                for (int i = 0; i < {CONTACT}; ++i)
                    F[(size_t)(L.packed + {CONTACT} * s + i) * {width} + l] = F[(size_t)(L.contact + {CONTACT} * a + i) * {width} + l];
                for (int q = 0; q < 3; ++q) for (int i = 0; i < rows; ++i)
                    F[(size_t)(to[q] + rows * s + i) * {width} + l] = F[(size_t)(from[q] + i) * {width} + l];
                for (int r = 0; r < rows; ++r) {{
                    {number}* const new_row = F + (size_t)(L.packed_y + D * (rows * s + r)) * {width} + l;
                    const {number}* const row = F + (size_t)(L.contact_y + T.reach * (rows * a + r)) * {width} + l;
                    for (int k = 0; k < size; ++k) new_row[(size_t)dofs[k] * {width}] = row[(size_t)k * {width}];
                }}
            }}
        }}
        for (int l = 0; l < {width}; ++l) if (chosen[l]) F[(size_t)L.packed_worlds * {width} + l] = 1 + count[l];
        return slots; }}"""


def _drop_code(width: int, real) -> str:
    """C++ body of ``drop_settled``."""
    number = C_NAME[real]
    return f"""{{ {number}* const F = ({number}*)mem.data; {number}* const worlds = F + (size_t)L.packed_worlds * {width};
        const {number}* const settled = F + (size_t)L.settled * {width}; const int rows = T.contact_rows;
        bool goes[{width}], some = false; int count[{width}], slots = 0;
        for (int l = 0; l < {width}; ++l) {{
            count[l] = 0; goes[l] = worlds[l] > 0 && settled[l] > 0; some |= goes[l];
            if (!goes[l] && worlds[l] > slots + 1) slots = (int)worlds[l] - 1;
        }}
        if (some) for (int a = 0; a < contacts; ++a) for (int l = 0; l < {width}; ++l)
            if (goes[l] && F[(size_t)(L.contact + {CONTACT} * a + {ON}) * {width} + l] > 0) {{
                const int s = count[l]++;
                for (int r = 0; r < rows; ++r) F[(size_t)(L.impulse + rows * active.data[a] + r) * {width} + l] =
                    F[(size_t)(L.packed_impulse + rows * s + r) * {width} + l];
            }}
        for (int l = 0; l < {width}; ++l) if (goes[l]) worlds[l] = 0;
        return slots; }}"""


def _unpack_code(width: int, real) -> str:
    """C++ body of ``unpack_impulses``."""
    number = C_NAME[real]
    return f"""{{ {number}* const F = ({number}*)mem.data; const int rows = T.contact_rows;
        const int from[3] = {{L.packed_impulse, L.packed_swept, L.packed_start}};
        int count[{width}];
        for (int l = 0; l < {width}; ++l) count[l] = 0;
        for (int a = 0; a < contacts; ++a) {{
            const int to[3] = {{L.impulse + rows * active.data[a], L.swept_impulse + rows * a, L.start_impulse + rows * a}};
            for (int l = 0; l < {width}; ++l) {{
                const bool on = F[(size_t)(L.contact + {CONTACT} * a + {ON}) * {width} + l] > 0;
                if (!on || !(F[(size_t)L.packed_worlds * {width} + l] > 0)) continue;
                const int s = count[l]++;
                for (int q = 0; q < 3; ++q) for (int r = 0; r < rows; ++r)
                    F[(size_t)(to[q] + r) * {width} + l] = F[(size_t)(from[q] + rows * s + r) * {width} + l];
            }}
        }} }}"""


def _extrapolate_code(width: int, real) -> str:
    """C++ body of ``extrapolate_impulses``."""

    def each(statements: str) -> str:
        """Statements for n impulses at p, with those after the last sweep and at its start, of contacts, limits and couplings."""
        body = f"for (int i = 0; i < n; ++i) {{ {statements} }}"
        return f"""for (int a = 0; a < visited; ++a) {{
                simd* const p = M + (packed ? L.packed_impulse + rows * a : L.impulse + rows * active.data[a]);
                simd* const swept = M + (packed ? L.packed_swept : L.swept_impulse) + rows * a;
                simd* const start = M + (packed ? L.packed_start : L.start_impulse) + rows * a;
                const int n = rows; {body} }}
            for (int k = 0; k < limits; ++k) {{
                // of dofs without hard limits, friction alone has an impulse
                const int row = active.data[T.candidates + k], n = row % 2 ? {DOF_IMPULSES} : 1;
                const int place = rows * contacts + {DOF_IMPULSES} * k;
                simd* const p = M + L.dof_impulse + {DOF_IMPULSES} * (row / 2);
                simd* const swept = M + L.swept_impulse + place; simd* const start = M + L.start_impulse + place; {body} }}
            {{
                const int n = T.bonds, place = rows * contacts + {DOF_IMPULSES} * limits;
                simd* const p = M + L.coupling_impulse;
                simd* const swept = M + L.swept_impulse + place; simd* const start = M + L.start_impulse + place; {body} }}"""

    back = "const simd way = p[i] - swept[i], turn = start[i] - p[i]; back = back + turn * way; change = change + turn * turn;"
    on = "const simd old = p[i], moved = further * (old - swept[i]) + old; p[i] = moved; start[i] = moved; swept[i] = old;"
    return f"""{{{FUSE}{simd_types(width, real)}
        simd* const M = (simd*)mem.data; const int rows = T.contact_rows;
        simd back = 0, change = 0;
        {each(back)}
        simd last_pace = M[L.pace];
        // steps of Newton between packed sweeps change the velocities, too
        if (!packed) {{
            simd all = 0;
            for (int i = 0; i < T.dofs; ++i) {{ const simd way = M[L.z + i] - M[L.swept_z + i]; all = all + way * way; }}
            const simd first = M[L.first_way] > 0 ? M[L.first_way] : all;
            M[L.first_way] = first;
            last_pace = all > real_t({WILD}) * first ? simd(0) : last_pace;
            const simd last = M[L.sweep_change], grown = real_t({GROWN}) * last;
            back = last > 0 ? (change > grown ? simd(1) : back) : back;
            M[L.sweep_change] = last < 0 ? last : change;
        }}
        const simd old_pace = back > 0 ? simd(1) : last_pace;
        const simd square = old_pace * old_pace;
        const simd pace = real_t(0.5) * __builtin_elementwise_sqrt(real_t(4) * square + real_t(1)) + real_t(0.5);
        M[L.pace] = last_pace > 0 ? pace : simd(0);
        const simd further = last_pace > 0 ? (old_pace - real_t(1)) / pace : simd(0);
        {each(on)}
        for (int i = 0; i < T.dofs; ++i) {{
            const simd z = M[L.z + i];
            M[L.z + i] = further * (z - M[L.swept_z + i]) + z;
            M[L.swept_z + i] = z;
        }} }}"""


def _visit_code(width: int, real, listed: bool) -> str:
    """C++ body of a visit of contact a, which is `listed` or in slot a. Products are two sums that a processor computes in parallel."""

    def over(first: str, last: str) -> str:
        """Statements: a loop over pairs of entries k and k + 1, which have the dofs d and e; `last` is for one without a partner."""
        if listed:
            return f"""int k = 0; for (; k + 1 < size; k += 2) {{ const int d = dofs[k], e = dofs[k + 1]; {first} }}
                if (k < size) {{ const int d = dofs[k]; {last} }}"""
        return f"""for (unsigned long long left = members; left; left &= left - 1) {{
                const size_t k = 2 * __builtin_ctzll(left), d = k, e = k + 1;
                if (e < D) {{ {first} }} else {{ {last} }} }}"""

    def rows_from(row: int, n: int) -> str:
        """Statements: pointers to n successive rows, so that entries have short addresses."""
        return "".join(f"const simd* const Y{i} = rows_of + {row + i} * stride;" for i in range(n))

    def products(names: str, row: int) -> str:
        """Statements: the products of successive rows with the velocities."""
        even = "".join(f"even{n} = even{n} + Y{i}[k] * v;" for i, n in enumerate(names))
        odd = "".join(f"odd{n} = odd{n} + Y{i}[k + 1] * w;" for i, n in enumerate(names))
        loop = over(f"const simd v = Z[d], w = Z[e]; {even} {odd}", f"const simd v = Z[d]; {even}")
        sums = "".join(f"simd even{n} = 0, odd{n} = 0;" for n in names)
        total = "".join(f"simd {n} = even{n} + odd{n};" for n in names)
        return f"{sums} {{ {rows_from(row, len(names))} {loop} }} {total}"

    def moved(changes: tuple, row: int) -> str:
        """Statements: the velocities <- those with these changes of the impulses of successive rows."""

        def line(z: str, k: str) -> str:
            value = f"Z[{z}]"
            for i, p in enumerate(changes):
                value = f"({value} + Y{i}[{k}] * {p})"
            return f"Z[{z}] = {value};"

        loop = over(line("d", "k") + line("e", "k + 1"), line("d", "k"))
        return f"{{ {rows_from(row, len(changes))} {loop} }}"

    def disc(x: str, y: str, bound: str, at: int) -> str:
        """Statements: the impulses at p + at, p + at + 1 <- (x, y) in the disc of radius `bound`; d_x, d_y <- their changes."""
        return f"""simd d_{x}, d_{y}; {{
            const simd square = {x} * {x} + ({y} * {y} + real_t(1.0e-30)), bound = {bound};
            simd shrink; {shrink_code(width, real, "shrink")}
            const simd one = p[{at}], two = p[{at + 1}], short_one = {x} * shrink, short_two = {y} * shrink;
            const simd new_one = on * (short_one - one) + one, new_two = on * (short_two - two) + two;
            p[{at}] = new_one; p[{at + 1}] = new_two; d_{x} = new_one - one; d_{y} = new_two - two; }}"""

    if listed:
        place = f"""const int* const dofs = T.pair_table.data + at; const size_t stride = T.reach;
            simd* const p = M + L.impulse + rows * c; const simd* const R = M + L.contact + {CONTACT} * a;
            const simd* const rows_of = M + L.contact_y + stride * rows * a;"""
    else:
        place = f"""const size_t stride = T.dofs, D = T.dofs; const int* const bits = active.data + T.candidates + T.dofs + 2 * a;
            const unsigned long long members = (unsigned)bits[0] | (unsigned long long)(unsigned)bits[1] << 32;
            simd* const p = M + L.packed_impulse + rows * a; const simd* const R = M + L.packed + {CONTACT} * a;
            const simd* const rows_of = M + L.packed_y + stride * rows * a;"""
    law = f"""const simd error = (x - R[{TARGET}]) * R[{MASS}];
        const simd goal = (old - error) - R[{SOFTNESS}] * old;
        const simd dn = on * ((goal > 0 ? goal : simd(0)) - old), pn = old + dn;
        p[0] = pn;
        const simd s1 = p[1] - (R[{NORMAL_SLIDE_1}] * dn + y) * R[{SLIDE_STEP}];
        const simd s2 = p[2] - (R[{NORMAL_SLIDE_2}] * dn + z) * R[{SLIDE_STEP}];
        {disc("s1", "s2", f"R[{MU_SLIDE}] * pn", 1)}"""
    # visits of the normal and of both tangents, between which velocities change by the response matrix alone. A visit waits for each of its
    # operations in turn, so what does not depend on the velocities is computed apart. Where no contact acts, masses and impulses are zero
    again = f"""const simd first_1 = p[1], first_2 = p[2], n1 = R[{NORMAL_SLIDE_1}], n2 = R[{NORMAL_SLIDE_2}];
        const simd mass = R[{MASS}], soft = R[{SOFTNESS}], aim = R[{TARGET}] * mass, step = R[{SLIDE_STEP}], c1 = n1 * step, c2 = n2 * step;
        simd pn = old, p1 = first_1, p2 = first_2;
        for (int visit = 0; ; ++visit) {{
            const simd apart = (aim - soft * pn) + pn, apart_1 = p1 - y * step, apart_2 = p2 - z * step;
            const simd goal = apart - mass * x, before = pn, before_1 = p1, before_2 = p2;
            pn = goal > 0 ? goal : simd(0);
            const simd dn = pn - before, s1 = apart_1 - c1 * dn, s2 = apart_2 - c2 * dn;
            const simd square = s1 * s1 + (s2 * s2 + real_t(1.0e-30)), bound = R[{MU_SLIDE}] * pn;
            simd shrink; {shrink_code(width, real, "shrink")}
            p1 = s1 * shrink; p2 = s2 * shrink;
            if (visit == {INNER - 1}) break;
            const simd d_1 = p1 - before_1, d_2 = p2 - before_2;
            x = ((x + R[{NORMAL_NORMAL}] * dn) + n1 * d_1) + n2 * d_2;
            y = ((y + n1 * dn) + R[{SLIDE_11}] * d_1) + R[{SLIDE_12}] * d_2;
            z = ((z + n2 * dn) + R[{SLIDE_12}] * d_1) + R[{SLIDE_22}] * d_2;
        }}
        p[0] = pn; p[1] = p1; p[2] = p2;
        const simd dn = pn - old, d_s1 = p1 - first_1, d_s2 = p2 - first_2;"""
    return f"""{{{FUSE}{simd_types(width, real)}
        simd* const M = (simd*)mem.data; simd* const Z = M + L.z; const int rows = T.contact_rows; {place}
        const simd on = R[{ON}], old = p[0];
        {products("xyz", 0)}
        {law if listed else again}
        {moved(("dn", "d_s1", "d_s2"), 0)}
        if (rows == 6) {{
            {products("i", 3)}
            const simd spin = p[3], bound = R[{MU_SPIN}] * pn;
            const simd aim = spin - i * R[{SPIN_MASS}];
            const simd held = bound < aim ? bound : aim;
            const simd d_spin = on * ((-bound > held ? -bound : held) - spin);
            p[3] = spin + d_spin;
            {moved(("d_spin",), 3)}
            {products("jg", 4)}
            const simd r1 = p[4] - j * R[{ROLL_STEP}], r2 = p[5] - g * R[{ROLL_STEP}];
            {disc("r1", "r2", f"R[{MU_ROLL}] * pn", 4)}
            {moved(("d_r1", "d_r2"), 4)}
        }} }}"""


def packed_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``pack_contacts``, ``drop_settled``, ``packed_sweep``, ``unpack_impulses``, ``extrapolate_impulses`` and
    ``listed_visit``, for lanes of several worlds."""
    if not hasattr(m, "width") or m.width == 1:
        # numbers of a trace, or one world
        names = (
            "pack_contacts", "drop_settled", "packed_sweep", "unpack_impulses", "listed_visit", "extrapolate_impulses",
        )  # fmt: skip
        return dict.fromkeys(names)

    @wp.func_native(_pack_code(m.width, m.real))
    def pack_contacts(
        t: int, contacts: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """Copies the rows, coefficients and impulses of the active contacts of worlds that have not settled to slots. Returns the number of
        slots."""

    @wp.func_native(_drop_code(m.width, m.real))
    def drop_settled(
        t: int, contacts: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ) -> int:
        """The impulses of active contacts of worlds that have settled since their contacts were packed <- those of the slots, which do not
        count any more. Returns how many slots the other worlds have."""

    @wp.func_native(_visit_code(m.width, m.real, listed=False))
    def packed_sweep(t: int, a: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]):
        """One Gauss-Seidel visit of the contacts in slot a."""

    @wp.func_native(_visit_code(m.width, m.real, listed=True))
    def listed_visit(t: int, a: int, c: int, at: int, size: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory):
        """One Gauss-Seidel visit of active contact a, candidate c, whose rows have the `size` dofs that the table of pairs lists from `at`
        on."""

    @wp.func_native(_unpack_code(m.width, m.real))
    def unpack_impulses(
        t: int, contacts: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]
    ):
        """The impulses of active contacts <- those of the slots."""

    @wp.func_native(_extrapolate_code(m.width, m.real))
    def extrapolate_impulses(
        t: int, contacts: int, visited: int, packed: int, limits: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory,
        active: wp.array2d[int],
    ):  # fmt: skip
        """``extrapolate`` of `kernels.solvers.sweeps`; the impulses of contacts are those of `visited` slots, if `packed`."""

    return {
        "pack_contacts": pack_contacts, "drop_settled": drop_settled, "packed_sweep": packed_sweep,
        "unpack_impulses": unpack_impulses, "listed_visit": listed_visit,
        "extrapolate_impulses": extrapolate_impulses,
    }  # fmt: skip
