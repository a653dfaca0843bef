"""Factorisation M = LT D L of a joint-space inertia with the sparsity of its tree (Featherstone 2008, table 6.3), and solves.

The step uses *whitened* velocities z = sqrt(D) L v, for which the kinetic energy is z.z / 2. In these a constraint row has entries only
for the chain of the constrained body, see `kernels.rows`, so its cost is proportional to the depth of the body.

Links of little or no mass connect their joints to one joint with several axes. Where these line up, a pivot is a small difference of large
numbers. Rounding errors of a pivot, relative to it, are those of the inertias of all its ancestors, so that a pivot that rounding made
too small makes the pivots of its ancestors negative. The step holds such a pivot at `LEAST` times its value before the other degrees of
freedom of the same joint gave way: an armature that is there only in these configurations. The pivot of a link behind them that has mass
and nearly no inertia about its axis is no more than rounding errors of the mass it is computed from, and is held above `RESOLVED` of these.
Pivots of trees without such links are held above 1e-12.

The dynamics library adds the armature only when it inverts a pivot. A pivot without armature that is below the rounding error of its
subtraction counts as zero; if the armature is also zero, its degree of freedom is locked.
"""

import types

import numpy as np
import warp as wp
from newton_like.kernels.tree import ARMATURE, COMPOUND, POSITION, VELOCITY

NOISE = 16.0
"""A pivot counts as zero below this number of rounding errors of the inertia that its degree of freedom moves."""

RESOLVED = 64.0
"""A pivot of a tree with light links is held above this number of rounding errors of the largest moments of inertia that it is a sum of. 16
are too few in a chain of a hundred links."""
LEAST = {wp.float32: 2.0**-10, wp.float64: 2.0**-30}
"""Smallest share of a pivot of a light link that is left where its axes line up. With e, the machine epsilon, times the number of such
pivots in a row, an elimination leaves errors of e / LEAST in an off-diagonal, and of e^2 / LEAST^3 in the next pivot: it must be well above
e^(2/3)."""
LEAST_LIMITED = 2.0**-10
"""The smallest share of degrees of freedom with limits. The constraint rows of two limited joints that line up differ by this share, and
sweeps need its inverse to settle them."""
LIGHT = 1.0e-3
"""A link is light below this part of the mass that it carries."""


def rounding(m: types.SimpleNamespace) -> float:
    """The machine epsilon of the scalar type."""
    return float(np.finfo(np.float64 if m.real in (wp.float64, np.float64) else np.float32).eps)


def factor_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``factorize``, ``whiten`` and ``unwhiten``; ``factorize_apart`` and ``solve``."""
    real = m.real
    noise, resolved = NOISE * rounding(m), RESOLVED * rounding(m)
    free = LEAST[wp.float64 if m.real in (wp.float64, np.float64) else wp.float32]
    limited = LEAST_LIMITED

    @m.func
    def eliminate(t, k: int, inverse: m.lane, T, L, mem):
        """Row k of h <- row k of L; subtracts its outer product from the rows of its ancestors. `inverse` is the inverse of its pivot."""
        row = L.h + T.chain_at[k]
        at = T.chain_at[k]
        depth = T.depth[k]
        for d in range(depth - 1, -1, -1):
            above = L.h + T.chain_at[T.chain[at + d]]
            ratio = m.mul(m.get(mem, row + d, t), inverse)
            for e in range(d + 1):
                m.put(mem, above + e, t, m.fnma(ratio, m.get(mem, row + e, t), m.get(mem, above + e, t)))
            m.put(mem, row + d, t, ratio)

    @m.func
    def may_line_up(b, t, T, P, L, mem) -> m.lane:
        """Negative where links of little or no mass may connect joints, or a joint has several axes: a test that costs little."""
        margin = m.fill(real(1.0))
        for k in range(T.bodies):
            if T.kind[k] == COMPOUND:
                margin = m.fill(real(-1.0))
            if T.dof_at[k] < T.dof_at[k + 1]:
                total = m.get(mem, L.composite + 10 * k, t)
                margin = m.smaller(margin, m.fnma(m.fill(real(LIGHT)), total, m.body_mass(P, b, k)))
        return margin

    @m.func
    def find_light(t, T, L, mem):
        """light <- 1 for bodies that, with all that is fixed to them, are light beside what they carry on moving joints, else 0.
        L.composite must have the composite inertias from joint_space_inertia."""
        for k in range(T.bodies - 1, -1, -1):
            carried = m.fill(real(0.0))
            for i in range(T.child_at[k], T.child_at[k + 1]):
                c = T.child[i]
                moved = L.carried + c
                if T.dof_at[c] < T.dof_at[c + 1]:
                    moved = L.composite + 10 * c
                carried = m.add(carried, m.get(mem, moved, t))
            m.put(mem, L.carried + k, t, carried)
            total = m.get(mem, L.composite + 10 * k, t)
            least = m.mul(m.fill(real(LIGHT)), total)
            m.put(mem, L.light + k, t, m.where_lt(m.sub(total, carried), least, m.fill(real(1.0)), m.fill(real(0.0))))

    @m.func
    def share(i: int, T) -> m.lane:
        """The smallest share of its pivot that is left to dof i."""
        least = m.fill(real(free))
        if T.dof_limits[i] & (VELOCITY | POSITION):
            least = m.fill(real(limited))
        return least

    @m.func
    def note_errors(t, T, L, mem):
        """root <- the rounding error of each dof's inertia, over the dof's share: that of the largest moments that the inertia is a sum of.
        L.composite must have the composite inertias from joint_space_inertia."""
        for k in range(T.bodies):
            total = m.get10(mem, L.composite + 10 * k, t)
            moments = m.add(total.i.xx, m.add(total.i.yy, total.i.zz))
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * i, t)
                size = m.fma(total.m, m.dot(s.v, s.v), m.mul(moments, m.dot(s.w, s.w)))
                m.put(mem, L.root + i, t, m.div(m.mul(m.fill(real(resolved)), size), share(i, T)))

    @m.func
    def note_pivot(t, j: int, on: m.lane, T, L, mem):
        """root of dof j <- its pivot so far, where that is larger and `on` is one."""
        pivot = m.get(mem, L.h + T.chain_at[j] + T.depth[j], t)
        m.put(mem, L.root + j, t, m.larger(m.get(mem, L.root + j, t), m.mul(on, pivot)))

    @m.func
    def note_pivots(t, k: int, i: int, T, L, mem):
        """Notes the pivots of what moves body k beside its dof i without mass in between: other dofs of its joint, and light bodies."""
        on = m.fill(real(1.0))
        if T.kind[k] == COMPOUND:
            for j in range(T.dof_at[k], i):
                note_pivot(t, j, on, T, L, mem)
        above = T.parent[k]
        while above < T.bodies:
            if T.dof_at[above] < T.dof_at[above + 1]:
                on = m.mul(on, m.get(mem, L.light + above, t))
                if not m.any_lt(m.fill(real(0.0)), on):
                    return
                for j in range(T.dof_at[above], T.dof_at[above + 1]):
                    note_pivot(t, j, on, T, L, mem)
            above = T.parent[above]

    @m.func
    def factorize_held(t, T, L, mem):
        """As factorize, with pivots of light links held."""
        find_light(t, T, L, mem)
        note_errors(t, T, L, mem)
        for k in range(T.bodies - 1, -1, -1):
            for i in range(T.dof_at[k + 1] - 1, T.dof_at[k] - 1, -1):
                pivot = m.get(mem, L.h + T.chain_at[i] + T.depth[i], t)
                least = m.fma(share(i, T), m.get(mem, L.root + i, t), m.fill(real(1.0e-12)))
                inverse = m.rcp(m.larger(pivot, least))
                m.put(mem, L.root + i, t, m.sqrt(inverse))
                note_pivots(t, k, i, T, L, mem)
                eliminate(t, i, inverse, T, L, mem)

    @m.shared
    def factorize(b, t, T, P, L, mem):
        """Rows of h <- L (unit diagonal left out), root <- D^-1/2. L.composite must have the composite inertias from
        joint_space_inertia."""
        if m.any_lt(may_line_up(b, t, T, P, L, mem), m.fill(real(0.0))):
            factorize_held(t, T, L, mem)
        else:
            for k in range(T.dofs - 1, -1, -1):
                pivot = m.get(mem, L.h + T.chain_at[k] + T.depth[k], t)
                inverse = m.rcp(m.larger(pivot, m.fill(real(1.0e-12))))
                m.put(mem, L.root + k, t, m.sqrt(inverse))
                eliminate(t, k, inverse, T, L, mem)

    @m.func
    def inverse_pivot(b, i: int, inertia: m.lane, scale: m.lane, P) -> m.lane:
        """1 / (inertia + armature of dof i), or 0 if both are zero. An inertia below the rounding error of `scale` counts as zero."""
        zero = m.fill(real(0.0))
        felt = m.where_lt(m.mul(m.fill(real(noise)), scale), inertia, inertia, zero)
        pivot = m.add(felt, m.gain(P, b, i, ARMATURE))
        safe = m.where_lt(zero, pivot, pivot, m.fill(real(1.0)))
        return m.where_lt(zero, pivot, m.rcp(safe), zero)

    @m.func
    def factorize_apart(b, t, T, P, L, mem):
        """Rows of h <- L of the factorisation of h with armature; pivot <- D^-1, zero for locked dofs. L.composite must have the
        composite inertias from joint_space_inertia."""
        for k in range(T.bodies):
            i = m.get10(mem, L.composite + 10 * k, t)
            for dof in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * dof, t)
                m.put(mem, L.pivot + dof, t, m.fma(i.m, m.dot(s.v, s.v), m.dot(s.w, m.sym_apply(i.i, s.w))))
        for k in range(T.dofs - 1, -1, -1):
            pivot = m.get(mem, L.h + T.chain_at[k] + T.depth[k], t)
            inverse = inverse_pivot(b, k, pivot, m.get(mem, L.pivot + k, t), P)
            m.put(mem, L.pivot + k, t, inverse)
            eliminate(t, k, inverse, T, L, mem)

    @m.func
    def solve(t, x: int, T, L, mem):
        """x <- L^-1 D^-1 L^-T x, in place, after factorize_apart"""
        m.transposed_solve(t, x, T, L, mem)
        for k in range(T.dofs):
            y = m.mul(m.get(mem, L.pivot + k, t), m.get(mem, x + k, t))
            for d in range(T.depth[k]):
                j = x + T.chain[T.chain_at[k] + d]
                y = m.fnma(m.get(mem, L.h + T.chain_at[k] + d, t), m.get(mem, j, t), y)
            m.put(mem, x + k, t, y)

    @m.shared
    def whiten(t, dt: m.lane, force: int, T, L, mem):
        """z <- sqrt(D) L v + dt D^-1/2 L^-T f: the whitened velocity after a step under the generalized forces f at `force`."""
        m.copy(t, L.u, force, T.dofs, mem)
        for k in range(T.dofs - 1, -1, -1):
            row = L.h + T.chain_at[k]
            at = T.chain_at[k]
            x = m.get(mem, L.u + k, t)
            w = m.get(mem, L.v + k, t)
            for d in range(T.depth[k]):
                j = T.chain[at + d]
                factor = m.get(mem, row + d, t)
                w = m.fma(factor, m.get(mem, L.v + j, t), w)
                m.put(mem, L.u + j, t, m.fnma(factor, x, m.get(mem, L.u + j, t)))
            root = m.get(mem, L.root + k, t)
            m.put(mem, L.z + k, t, m.fma(m.mul(dt, root), x, m.div(w, root)))

    @m.shared
    def unwhiten(t, T, L, mem):
        """u <- L^-1 D^-1/2 z"""
        for k in range(T.dofs):
            row = L.h + T.chain_at[k]
            at = T.chain_at[k]
            u = m.mul(m.get(mem, L.root + k, t), m.get(mem, L.z + k, t))
            for d in range(T.depth[k]):
                u = m.fnma(m.get(mem, row + d, t), m.get(mem, L.u + T.chain[at + d], t), u)
            m.put(mem, L.u + k, t, u)

    return locals()
