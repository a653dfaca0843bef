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
    """C++ statements: ``see(k)``, where the numbers of the world l in region k of memory are, after ``bring(most)`` for up to `most` slots.

    Where several worlds are to be solved, their numbers are moved side by side, in squares of `width` numbers of `width` worlds that are
    transposed in registers: in the memory of lanes, each number of a world is in a line of the cache of its own.
    """
    shuffles, columns = transpose_code(width, real)
    loads = "".join(f"const simd r{k} = from[j + {k} < count[q] ? j + {k} : count[q] - 1];" for k in range(width))
    stores = "".join(f"__builtin_memcpy(to + (size_t){k} * span, &{x}, sizeof(simd));" for k, x in enumerate(columns))
    return f"""
        {simd_types(width, real)}
        struct seen_t {{ const real_t* data; size_t step; real_t operator[](int i) const {{ return data[i * step]; }} }};
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
        auto see = [&](int l, int q) {{
            if (beside) return seen_t{{F + (size_t)L.beside * {width} + (size_t)l * span + place[q], 1}};
            return seen_t{{F + (size_t)at[q] * {width} + l, {width}}};
        }};"""
