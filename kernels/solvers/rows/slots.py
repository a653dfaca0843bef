"""Constraint rows of contacts in slots, see `kernels.collision.pairs.gathered`.

The contacts in a slot are those of other bodies in each world. So a row has an entry for each degree of freedom that moves one of these
bodies in some world, and zeros in the other worlds. The code is native: it walks along the chains of each world by itself.
"""

import types

import numpy as np
import warp as wp
from newton_like.kernels.collision.pairs.records import (
    SLOT,
    SLOT_FEATURE,
    SLOT_GAP,
    SLOT_IDS,
    SLOT_MATERIAL,
    SLOT_NEAR,
    SLOT_NORMAL,
    SLOT_POINT,
)
from newton_like.kernels.simd import C_NAME, FUSE, simd_types
from newton_like.kernels.solvers.packed import MOST_DOFS
from newton_like.kernels.solvers.rows.contact_rows import CONTACT

# Of the rows of a slot, in ``slot_work``: the products nn, n1, n2, a11, a12 and a22, the velocity along the normal before the step, and the
# two tangents.
SLOT_WORK = 13
OF_PRODUCTS, OF_SPEED, OF_TANGENTS = 0, 6, 7


WORDS = MOST_DOFS // 32
"""Of the bits of the members of a chain."""

ROOT = 6
"""Degrees of freedom of a free root, which begin all chains of its robot."""


def chain_bits_code(width: int) -> str:
    """C++ statement: where the bits of the chains of all degrees of freedom are, WORDS integers of each, see :func:`chain_bits`."""
    return f"int* const chain_bits = active.data + 3 * T.candidates + T.dofs + {2 + width} * T.pairs;"


def take_row_code(slot: str, start: str) -> str:
    """C++ statements of code for one world: column i of y, whose rows have `wide` numbers, <- the row of the contact in a slot. The row
    starts at lane `start` of memory; ``A`` reads numbers of the world. Entries of other degrees of freedom are zero, and are not read."""
    return f"""{{
            const int ids = L.slot + {SLOT} * ({slot}) + {SLOT_IDS}, leaf = (int)A(ids + 1), other = (int)A(ids + 2);
            for (int q = 0; q < (D + 31) / 32; ++q) {{
                const int one = leaf < 0 ? 0 : chain_bits[{WORDS} * leaf + q], two = other < 0 ? 0 : chain_bits[{WORDS} * other + q];
                for (unsigned left = (unsigned)(one | two); left; left &= left - 1) {{
                    const int k = 32 * q + __builtin_ctz(left); y[k * wide + i] = A({start} + k); }}
            }} }}"""


def chain_bits(chain: np.ndarray, chain_at: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Bits of the members of the chains of all degrees of freedom, ``[dofs * WORDS]``, see `kernels.tree`."""
    bits = np.zeros((len(depth), WORDS), dtype=np.uint32)
    for d, (at, last) in enumerate(zip(chain_at, depth, strict=True)):
        members = chain[at : at + last + 1]
        np.bitwise_or.at(bits[d], members >> 5, np.uint32(1) << (members & 31).astype(np.uint32))
    return bits.ravel().view(np.int32)


def _rows_code(width: int, real) -> str:
    """C++ body of ``slot_rows``."""
    directions = ("N", "U1", "U2")
    rows = range(3)
    axes = f"const simd* const at_normal = R + {SLOT_NORMAL}; const simd* const tangents = work + {OF_TANGENTS};"
    axes += "".join(
        f"const simd {u}[3] = {{{', '.join(f'{place}[{first + k}]' for k in range(3))}}};"
        for u, place, first in (("N", "at_normal", 0), ("U1", "tangents", 0), ("U2", "tangents", 3))
    )

    def dot(a: str, b: str) -> str:
        return f"({a}[0] * {b}[0] + {a}[1] * {b}[1] + {a}[2] * {b}[2])"

    # the velocity of the point with a unit of the velocity of a degree of freedom
    cross = ((1, 2), (2, 0), (0, 1))
    linear = "".join(
        f"const simd v{i} = (S[{i}] + S[{3 + a}] * X[{b}]) - S[{3 + b}] * X[{a}];" for i, (a, b) in enumerate(cross)
    )
    linear += "".join(
        f"const simd j{i} = (v0 * {u}[0] + v1 * {u}[1] + v2 * {u}[2]) * w; Y[{i} * D + d] = j{i};"
        for i, u in enumerate(directions)
    )
    angular = "".join(f"Y[{i} * D + d] = {dot('(S + 3)', u)} * w;" for i, u in enumerate(directions))
    products = (("nn", 0, 0), ("n1", 0, 1), ("n2", 0, 2), ("a11", 1, 1), ("a12", 1, 2), ("a22", 2, 2))

    def each(statements: str) -> str:
        """Statements for each degree of freedom d that moves a body of the slot in some world; w tells whether it moves the second body
        less whether it moves the first one."""
        weight = "simdi(1) & (second[d >> 5] >> (d & 31))", "simdi(1) & (first_of[d >> 5] >> (d & 31))"
        return f"""for (int i = 0; i < n; ++i) {{ const int d = dofs[i]; const simd* const S = M + L.subspace + 6 * d;
            const simd w = __builtin_convertvector(({weight[0]}) - ({weight[1]}), simd); {statements} }}"""

    final = "".join(f"const simd x{i} = root * y{i}; Y[{i} * D + d] = x{i};" for i in rows)
    final += "".join(f"{name} = {name} + x{i} * x{j};" for name, i, j in products)
    common = "".join(f"sum{i}[e] = sum{i}[e] + h * y{i};" for i in rows)
    member = "".join(f"Y[{i} * D + c[e]] = Y[{i} * D + c[e]] - h * y{i};" for i in rows)
    # the sums of three entries of the root at a time stay in registers, with the rows of all other dofs
    apart = [(i, e) for e in range(3) for i in rows]
    zeros = "".join(f"simd r{i}{e} = 0;" for i, e in apart)
    adds = "".join(f"r{i}{e} = r{i}{e} + h{e} * y{i};" for i, e in apart)
    puts = "".join(f"sum{i}[e + {e}] = r{i}{e};" for i, e in apart)
    whole = "".join(f"const simd y{i} = Y[{i} * D + d];" for i in rows)
    less = "".join(f"const simd y{i} = Y[{i} * D + d] - sum{i}[d];" for i in rows)
    below = "const simd* const H = M + L.h + T.chain_at.data[d]; const simd root = M[L.root + d];"
    return f"""{{{FUSE}{simd_types(width, real)}
        simd* const M = (simd*)mem.data;
        const int D = T.dofs; simd* const Y = M + L.packed_y + D * (T.contact_rows * s + first);
        const simd* const R = M + L.slot + {SLOT} * s; simd* const work = M + L.slot_work;
        {chain_bits_code(width)}
        simdi second[{WORDS}], first_of[{WORDS}]; unsigned used[{WORDS}]; int dofs[{MOST_DOFS}], n = 0;
        const int words = (D + 31) / 32;
        // numbers of worlds in memory: a register whose numbers are written one after the other waits for each of them
        const simdi leaf = __builtin_convertvector(R[{SLOT_IDS + 1}], simdi), other = __builtin_convertvector(R[{SLOT_IDS + 2}], simdi);
        typedef decltype(+leaf[0]) integer;
        integer leaves[{width}], others[{width}], of_leaf[{width}], of_other[{width}];
        __builtin_memcpy(leaves, &leaf, sizeof(simdi)); __builtin_memcpy(others, &other, sizeof(simdi));
        int* const bits = active.data + T.candidates + T.dofs + 2 * s;
        bits[0] = 0; bits[1] = 0;
        // from the last one on
        for (int k = words - 1; k >= 0; --k) {{
            // no branches: where worlds have contacts is hard to predict
            for (int l = 0; l < {width}; ++l) {{
                const int a = leaves[l], b = others[l];
                of_leaf[l] = chain_bits[{WORDS} * (a < 0 ? 0 : a) + k] & ~(a >> 31);
                of_other[l] = chain_bits[{WORDS} * (b < 0 ? 0 : b) + k] & ~(b >> 31);
            }}
            __builtin_memcpy(second + k, of_leaf, sizeof(simdi)); __builtin_memcpy(first_of + k, of_other, sizeof(simdi));
            const unsigned all = (unsigned)__builtin_reduce_or(second[k] | first_of[k]);
            used[k] = all;
            for (unsigned left = all; left;) {{
                const int bit = 31 - __builtin_clz(left); left &= ~(1u << bit); dofs[n++] = 32 * k + bit;
            }}
            // pairs of degrees of freedom have entries, of which one may be zero
            const unsigned even = 0x55555555u, beside = (all & even) << 1 | (all >> 1 & even);
            for (unsigned left = beside & ~all; left; left &= left - 1) {{
                const int e = 32 * k + __builtin_ctz(left);
                if (e < D) for (int r = 0; r < 3; ++r) Y[r * D + e] = simd(0);
            }}
            // a bit of each pair, side by side
            unsigned pairs = (all | all >> 1) & even;
            pairs = (pairs | pairs >> 1) & 0x33333333u; pairs = (pairs | pairs >> 2) & 0x0f0f0f0fu;
            pairs = (pairs | pairs >> 4) & 0x00ff00ffu; pairs = (pairs | pairs >> 8) & 0x0000ffffu;
            bits[k >> 1] |= (int)(pairs << 16 * (k & 1));
        }}
        {axes}
        if (first == 0) {{
            const simd X[3] = {{R[{SLOT_POINT}], R[{SLOT_POINT + 1}], R[{SLOT_POINT + 2}]}}; simd speed = simd(0);
            {each(f"{linear} speed = speed + j0 * M[L.v + d];")}
            work[{OF_SPEED}] = speed;
        }} else {{ {each(angular)} }}
        {"".join(f"simd {name} = simd(0);" for name, *_ in products)}
        {"".join(f"simd sum{i}[{ROOT}]; for (int e = 0; e < {ROOT}; ++e) sum{i}[e] = simd(0);" for i in rows)}
        const int begin = T.free_root ? {ROOT} : 0;
        int i = 0, of_root = 0;
        for (; of_root < n && dofs[of_root] >= begin; ++of_root) {{
            const int d = dofs[of_root], depth = T.depth.data[d]; const int* const c = T.chain.data + T.chain_at.data[d];
            const simd* const H = M + L.h + T.chain_at.data[d]; {whole}
            for (int e = begin; e < depth; ++e) {{ const simd h = H[e]; {member} }}
        }}
        if (begin) for (int e = 0; e < {ROOT}; e += 3) {{
            {zeros}
            for (int q = 0; q < of_root; ++q) {{
                const int d = dofs[q]; const simd* const H = M + L.h + T.chain_at.data[d] + e;
                const simd h0 = H[0], h1 = H[1], h2 = H[2]; {whole} {adds}
            }}
            {puts}
        }}
        for (; i < of_root; ++i) {{ const int d = dofs[i]; const simd root = M[L.root + d]; {whole} {final} }}
        if (begin) for (int d = {ROOT} - 1; d >= 0 && i < n; --d) {{
            {below} {less}
            for (int e = 0; e < d; ++e) {{ const simd h = H[e]; {common} }}
            {final}
        }}
        {"".join(f"work[{OF_PRODUCTS} + {i}] = {name};" for i, (name, *_) in enumerate(products))} }}"""


def _push_code(width: int, real) -> str:
    """C++ body of ``slot_push``."""
    return f"""{{{FUSE}{simd_types(width, real)}
        simd* const M = (simd*)mem.data; simd* const Z = M + L.z;
        const int D = T.dofs, rows = T.contact_rows; const int* const bits = active.data + T.candidates + T.dofs + 2 * s;
        const simd* const p = M + L.impulse + rows * s + first; const simd* const Y = M + L.packed_y + D * (rows * s + first);
        for (int half = 0; half < 2; ++half) for (unsigned left = (unsigned)bits[half]; left; left &= left - 1) {{
            const int d = 64 * half + 2 * __builtin_ctz(left);
            for (int e = d; e < d + 2 && e < D; ++e) Z[e] = ((Z[e] + Y[e] * p[0]) + Y[D + e] * p[1]) + Y[2 * D + e] * p[2];
        }} }}"""


def _drop_code(width: int, real) -> str:
    """C++ body of ``drop_slots``."""
    number = C_NAME[real]
    return f"""{{ {number}* const F = ({number}*)mem.data; {number}* const worlds = F + (size_t)L.packed_worlds * {width};
        const {number}* const settled = F + (size_t)L.settled * {width}; int slots = 0;
        for (int l = 0; l < {width}; ++l) {{
            if (settled[l] > 0) worlds[l] = 0;
            if (worlds[l] > slots + 1) slots = (int)worlds[l] - 1;
        }}
        return slots; }}"""


def _recall_code(width: int, real) -> str:
    """C++ body of ``recall_impulses``."""
    number = C_NAME[real]
    return f"""{{ {number}* const F = ({number}*)mem.data; const int rows = T.contact_rows;
        for (int i = 0; i < rows * slots * {width}; ++i) F[(size_t)L.impulse * {width} + i] = 0;
        for (int l = 0; l < {width}; ++l) {{
            const {number}* const pairs = F + (size_t)L.old_pair * {width} + l;
            const {number}* const features = F + (size_t)L.old_feature * {width} + l;
            const int count = (int)F[(size_t)L.slot_count * {width} + l];
            int next = 0;
            for (int s = 0; s < count; ++s) {{
                const {number}* const slot = F + (size_t)(L.slot + {SLOT} * s) * {width} + l;
                const {number} pair = slot[{SLOT_IDS} * {width}], feature = slot[{SLOT_FEATURE} * {width}];
                int found = -1;
                // contacts keep their order, but for some
                for (int i = 0, k = next; i < remembered && found < 0; ++i, k = k + 1 < remembered ? k + 1 : 0)
                    if (pairs[k * {width}] == pair && features[k * {width}] == feature) found = k;
                if (found < 0) continue;
                {number}* const p = F + (size_t)(L.impulse + rows * s) * {width} + l;
                const {number}* const old = F + (size_t)(L.old_impulse + rows * found) * {width} + l;
                for (int i = 0; i < rows; ++i) p[i * {width}] = old[i * {width}];
                next = found + 1 < remembered ? found + 1 : 0;
            }}
        }} }}"""


def slot_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``slot_build``, ``recall_slots``, ``slot_to_world``, ``open_slots`` and ``drop_slots``, for lanes of several
    worlds."""
    if not hasattr(m, "width") or m.width == 1:
        return {}
    real = m.real

    @wp.func_native(_rows_code(m.width, m.real))
    def slot_rows(s: int, first: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]):
        """Stores the three whitened rows of slot s from number `first` on, those of velocities or, from 3 on, of angular velocities, along
        the normal and both tangents; their products; and bits of their degrees of freedom."""

    @wp.func_native(_push_code(m.width, m.real))
    def slot_push(s: int, first: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory, active: wp.array2d[int]):
        """z <- z with the impulses of three rows of slot s, from number `first` on."""

    @wp.func_native(_drop_code(m.width, m.real))
    def drop_slots(L: wp.ref[m.Layout], mem: m.memory) -> int:
        """Worlds that have settled have no slots any more. Returns how many slots the other worlds have."""

    @m.func
    def open_slots(t, L, mem):
        """All worlds have their slots."""
        m.put(mem, L.packed_worlds, t, m.add(m.get(mem, L.slot_count, t), m.fill(real(1.0))))

    @m.func
    def slot_products(t, L, mem) -> m.Products:
        """The products of three rows that were stored."""
        at = L.slot_work + OF_PRODUCTS
        return m.Products(
            m.get(mem, at, t), m.get(mem, at + 1, t), m.get(mem, at + 2, t), m.get(mem, at + 3, t), m.get(mem, at + 4, t),
            m.get(mem, at + 5, t),
        )  # fmt: skip

    @m.func
    def moving_mass(t, leaf: m.lane, L, mem) -> m.lane:
        """The mass of the robot where degrees of freedom move the body, whose chain ends with `leaf`; zero where there is none."""
        zero = m.fill(real(0.0))
        return m.where_lt(leaf, zero, zero, m.get(mem, L.tree_mass, t))

    @m.shared
    def slot_build(b: int, t: int, s: int, o, T, P, L, mem, active: wp.array2d[int]):
        """The rows of slot s, warm-started."""
        at = L.slot + SLOT * s
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        n = m.get3(mem, at + SLOT_NORMAL, t)
        m.put3(mem, L.slot_work + OF_TANGENTS, t, m.tangent(n))
        m.put3(mem, L.slot_work + OF_TANGENTS + 3, t, m.second_tangent(n))
        slot_rows(s, 0, T, L, mem, active)
        on = m.where_lt(m.get(mem, at + SLOT_NEAR, t), zero, one, zero)
        mass = moving_mass(t, m.get(mem, at + SLOT_IDS + 1, t), L, mem)
        mass = m.add(mass, moving_mass(t, m.get(mem, at + SLOT_IDS + 2, t), L, mem))
        before = m.get(mem, L.slot_work + OF_SPEED, t)
        gap = m.get(mem, at + SLOT_GAP, t)
        on = m.put_coefficients(t, s, gap, on, mass, before, slot_products(t, L, mem), at + SLOT_MATERIAL, o, T, L, mem)
        if T.contact_rows == 6:
            slot_rows(s, 3, T, L, mem, active)
            m.put_turning(t, L.contact + CONTACT * s, on, slot_products(t, L, mem), at + SLOT_MATERIAL, mem)
        p = L.impulse + T.contact_rows * s
        m.warm_work(t, p, L.contact + CONTACT * s, on, o, L, mem)
        for j in range(T.contact_rows // 3):
            m.put3(mem, p + 3 * j, t, m.scale3(m.get3(mem, p + 3 * j, t), m.mul(on, m.fill(o.dt))))
            slot_push(s, 3 * j, T, L, mem, active)

    @wp.func_native(_recall_code(m.width, m.real))
    def recall_impulses(slots: int, remembered: int, T: wp.ref[m.Tree], L: wp.ref[m.Layout], mem: m.memory):
        """The impulses of the contacts in all slots, in world axes <- those of the same contacts among the `remembered` ones, else zero."""

    @m.shared
    def recall_slots(t: int, slots: int, remembered: int, T, L, mem):
        """The same in row axes."""
        recall_impulses(slots, remembered, T, L, mem)
        for s in range(slots):
            n = m.get3(mem, L.slot + SLOT * s + SLOT_NORMAL, t)
            for a in range(T.contact_rows // 3):
                m.in_row_axes(t, L.impulse + T.contact_rows * s + 3 * a, n, mem)

    @m.func
    def slot_to_world(t, s: int, T, L, mem):
        """The impulses of slot s, in row axes, become vectors in world axes."""
        n = m.get3(mem, L.slot + SLOT * s + SLOT_NORMAL, t)
        for a in range(T.contact_rows // 3):
            m.in_world_axes(t, L.impulse + T.contact_rows * s + 3 * a, n, mem)

    return dict(
        slot_build=slot_build, recall_slots=recall_slots, slot_to_world=slot_to_world, open_slots=open_slots,
        drop_slots=drop_slots,
    )  # fmt: skip
