"""Factorisation M = LT D L of a joint-space inertia with the sparsity of its tree (Featherstone 2008, table 6.3), and solves.

The step works in *whitened* velocities z = sqrt(D) L v, for which the kinetic energy is z.z / 2. A constraint with Jacobian row J
becomes y = D^-1/2 L^-T JT there: J v = y.z, J M^-1 JT = y.y, and an impulse p adds p y to z. Only the chain of the constrained
body enters y, so a row costs its depth and not the number of degrees of freedom.

The dynamics library keeps the armature apart until a pivot is divided by: without armature, a pivot that is lost in the rounding of
what it is a difference of counts as zero, and its degree of freedom as locked.
"""

import types

import numpy as np
import warp as wp
from newton_like.kernels.tree import ARMATURE

NOISE = 16.0
"""Roundings of the inertia that a degree of freedom moves below which its pivot counts as zero."""


def rounding(m: types.SimpleNamespace) -> float:
    """The distance of 1 from the next number."""
    return float(np.finfo(np.float64 if m.real in (wp.float64, np.float64) else np.float32).eps)


def factor_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``factorize``, ``whiten``, ``unwhiten`` and ``half_solve``; ``factorize_apart`` and ``solve``."""
    real = m.real
    noise = NOISE * rounding(m)

    @m.func
    def eliminate(t: int, k: int, inverse: m.lane, T: m.Tree, L: m.Layout, mem: m.memory):
        """Row k of h <- that of L, rows of its ancestors <- less what it takes; `inverse` of its pivot."""
        row = L.h + T.row[k]
        at = T.chain_at[k]
        depth = T.depth[k]
        for back_d in range(depth):
            d = depth - 1 - back_d
            above = L.h + T.row[T.chain[at + d]]
            ratio = m.mul(m.get(mem, row + d, t), inverse)
            for e in range(d + 1):
                m.put(mem, above + e, t, m.fnma(ratio, m.get(mem, row + e, t), m.get(mem, above + e, t)))
            m.put(mem, row + d, t, ratio)

    @m.shared
    def factorize(t: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """Rows of h <- L (unit diagonal left out), root <- D^-1/2."""
        for back in range(T.dofs):
            k = T.dofs - 1 - back
            pivot = m.get(mem, L.h + T.row[k] + T.depth[k], t)
            inverse = m.rcp(m.larger(pivot, m.fill(real(1.0e-12))))
            m.put(mem, L.root + k, t, m.sqrt(inverse))
            eliminate(t, k, inverse, T, L, mem)

    @m.func
    def inverse_pivot(b: int, i: int, inertia: m.lane, scale: m.lane, P: m.Params) -> m.lane:
        """1 / (inertia + armature of dof i), 0 where there is neither: an inertia within the rounding of `scale` is none."""
        zero = m.fill(real(0.0))
        felt = m.where_lt(m.mul(m.fill(real(noise)), scale), inertia, inertia, zero)
        pivot = m.add(felt, m.gain(P, b, i, ARMATURE))
        safe = m.where_lt(zero, pivot, pivot, m.fill(real(1.0)))
        return m.where_lt(zero, pivot, m.rcp(safe), zero)

    @m.func
    def factorize_apart(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """Rows of h <- L of h with armature, pivot <- D^-1, zero for locked dofs. The composite inertias are those of h."""
        for k in range(T.bodies):
            i = m.get10(mem, L.composite + 10 * k, t)
            for dof in range(T.dof_at[k], T.dof_at[k + 1]):
                s = m.get6(mem, L.subspace + 6 * dof, t)
                m.put(mem, L.pivot + dof, t, m.fma(i.m, m.dot(s.v, s.v), m.dot(s.w, m.sym_apply(i.i, s.w))))
        for back in range(T.dofs):
            k = T.dofs - 1 - back
            pivot = m.get(mem, L.h + T.row[k] + T.depth[k], t)
            inverse = inverse_pivot(b, k, pivot, m.get(mem, L.pivot + k, t), P)
            m.put(mem, L.pivot + k, t, inverse)
            eliminate(t, k, inverse, T, L, mem)

    @m.func
    def transposed_solve(t: int, x: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """x <- L^-T x, in place, for a row x of all dofs."""
        for back in range(T.dofs):
            k = T.dofs - 1 - back
            y = m.get(mem, x + k, t)
            for d in range(T.depth[k]):
                j = x + T.chain[T.chain_at[k] + d]
                m.put(mem, j, t, m.fnma(m.get(mem, L.h + T.row[k] + d, t), y, m.get(mem, j, t)))

    @m.func
    def solve(t: int, x: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """x <- L^-1 D^-1 L^-T x, in place, after factorize_apart"""
        transposed_solve(t, x, T, L, mem)
        for k in range(T.dofs):
            y = m.mul(m.get(mem, L.pivot + k, t), m.get(mem, x + k, t))
            for d in range(T.depth[k]):
                j = x + T.chain[T.chain_at[k] + d]
                y = m.fnma(m.get(mem, L.h + T.row[k] + d, t), m.get(mem, j, t), y)
            m.put(mem, x + k, t, y)

    @m.func
    def whiten_row(t: int, y: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """y <- D^-1/2 L^-T y, in place, for a row y of all dofs."""
        transposed_solve(t, y, T, L, mem)
        for k in range(T.dofs):
            m.put(mem, y + k, t, m.mul(m.get(mem, L.root + k, t), m.get(mem, y + k, t)))

    @m.shared
    def whiten(t: int, dt: m.lane, force: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """z <- sqrt(D) L v + dt D^-1/2 L^-T f: the whitened velocity after a step under the generalized forces f at `force`."""
        for i in range(T.dofs):
            m.put(mem, L.u + i, t, m.get(mem, force + i, t))
        for back in range(T.dofs):
            k = T.dofs - 1 - back
            row = L.h + T.row[k]
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
    def unwhiten(t: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """u <- L^-1 D^-1/2 z"""
        for k in range(T.dofs):
            row = L.h + T.row[k]
            at = T.chain_at[k]
            u = m.mul(m.get(mem, L.root + k, t), m.get(mem, L.z + k, t))
            for d in range(T.depth[k]):
                u = m.fnma(m.get(mem, row + d, t), m.get(mem, L.u + T.chain[at + d], t), u)
            m.put(mem, L.u + k, t, u)

    @m.func
    def half_solve(t: int, leaf: int, y: int, T: m.Tree, L: m.Layout, mem: m.memory):
        """y <- D^-1/2 L^-T y, in place, for a row y that is listed along the chain of dof `leaf`."""
        at = T.chain_at[leaf]
        depth = T.depth[leaf]
        for back in range(depth + 1):
            d = depth - back
            k = T.chain[at + d]
            row = L.h + T.row[k]
            x = m.get(mem, y + d, t)
            for e in range(d):
                m.put(mem, y + e, t, m.fnma(m.get(mem, row + e, t), x, m.get(mem, y + e, t)))
            m.put(mem, y + d, t, m.mul(m.get(mem, L.root + k, t), x))

    @m.func
    def chain_dot(t: int, leaf: int, y: int, T: m.Tree, L: m.Layout, mem: m.memory) -> m.lane:
        """y . z, in two sums that do not wait for each other."""
        at = T.chain_at[leaf]
        n = T.depth[leaf] + 1
        even = m.fill(real(0.0))
        odd = m.fill(real(0.0))
        for half in range(n // 2):
            d = 2 * half
            even = m.fma(m.get(mem, y + d, t), m.get(mem, L.z + T.chain[at + d], t), even)
            odd = m.fma(m.get(mem, y + d + 1, t), m.get(mem, L.z + T.chain[at + d + 1], t), odd)
        if n % 2 == 1:
            even = m.fma(m.get(mem, y + n - 1, t), m.get(mem, L.z + T.chain[at + n - 1], t), even)
        return m.add(even, odd)

    @m.func
    def chain_add(t: int, leaf: int, y: int, p: m.lane, T: m.Tree, L: m.Layout, mem: m.memory):
        """z <- z + p y"""
        at = T.chain_at[leaf]
        for d in range(T.depth[leaf] + 1):
            z = L.z + T.chain[at + d]
            m.put(mem, z, t, m.fma(m.get(mem, y + d, t), p, m.get(mem, z, t)))

    @m.func
    def row_product(t: int, leaf: int, y: int, w: int, T: m.Tree, mem: m.memory) -> m.lane:
        """y . w for two rows of one chain"""
        u = m.fill(real(0.0))
        for d in range(T.depth[leaf] + 1):
            u = m.fma(m.get(mem, y + d, t), m.get(mem, w + d, t), u)
        return u

    own = ("m", "real", "noise")
    return types.SimpleNamespace(**{**vars(m), **{k: v for k, v in locals().items() if k not in own}})
