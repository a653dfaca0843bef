"""The numbers of single worlds of a block, side by side.

In the memory of lanes, each number of a world is in a line of the cache of its own. Code for one world after the other reads them faster
where they stand side by side: squares of numbers and worlds are transposed in registers.
"""

from newton_like.kernels.simd import simd_types, transpose_code
from newton_like.kernels.solvers.rows.contact_rows import CONTACT
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES, DOF_ROW

BESIDE = 4
"""Numbers of the worlds of a block are moved side by side if so many are solved."""

REGIONS = ("rows", "dof_rows", "laws", "dof_laws", "impulses_of", "dof_impulses_of", "z_of", "free_of")


def beside_code(width: int, real) -> str:
    """C++ statements: the lambda ``see(l, k, apart)``, which gives a function that reads the numbers of world l in region k: in the memory
    of lanes, with ``far_t()``, or side by side, with ``near_t()``, after ``bring(most)`` has moved those of up to `most` slots."""
    shuffles, columns = transpose_code(width, real)
    loads = "".join(f"const simd r{k} = from[j + {k} < count[q] ? j + {k} : count[q] - 1];" for k in range(width))
    stores = "".join(f"__builtin_memcpy(to + (size_t){k} * span, &{x}, sizeof(simd));" for k, x in enumerate(columns))
    return f"""
        {simd_types(width, real)}
        struct near_t {{ enum {{ step = 1 }}; }}; struct far_t {{ enum {{ step = {width} }}; }};
        enum {{ {", ".join(name.upper() for name in REGIONS)}, ALL }};
        const int at[ALL] = {{L.packed_y, L.dof_y, L.packed, L.dof_row, L.packed_impulse, L.dof_impulse, L.z, L.free_z}};
        int place[ALL], span = 0;
        bool beside = false;
        auto bring = [&](int most) {{
            const int count[ALL] = {{
                D * rows * most, T.reach * D, {CONTACT} * most, {DOF_ROW} * D, rows * most, {DOF_IMPULSES} * D, D, D}};
            for (int q = 0; q < ALL; ++q) {{ place[q] = span; span += (count[q] + {width - 1}) / {width} * {width}; }}
            beside = true;
            for (int q = 0; q < ALL; ++q) {{
                const simd* const from = (const simd*)mem.data + at[q];
                for (int j = 0; j < count[q]; j += {width}) {{
                    real_t* const to = F + (size_t)L.beside * {width} + place[q] + j;
                    {loads} {shuffles} {stores}
                }}
            }}
        }};
        auto see = [&](int l, int q, auto apart) {{
            const real_t* const data = apart.step == 1 ? F + (size_t)L.beside * {width} + (size_t)l * span + place[q]
                : F + (size_t)at[q] * {width} + l;
            return [data](int i) {{ return data[(size_t)i * decltype(apart)::step]; }};
        }};"""
