"""Sweeps over all constraint rows of a block of worlds: projected Gauss-Seidel, and where bodies may touch each other more than that.

An impulse passes about one contact a sweep, so a pile needs many sweeps. There, impulses are extrapolated along their change by the last
sweep (Nesterov 1983), with restarts (O'Donoghue and Candes 2015), and sweeps go on until the velocities settle.
"""

import types

import warp as wp
from newton_like.kernels.solvers.dof_rows import DOF_IMPULSES

ROUNDS = 3
"""Rounds of further sweeps, each with as many sweeps as there were before it."""


def sweep_functions(m: types.SimpleNamespace, stages: types.SimpleNamespace) -> types.SimpleNamespace:
    """``sweep_once``, and for clusters with pairs ``begin_to_extrapolate``, ``extrapolate`` and ``settle``.

    Args:
        m: the programs' namespace.
        stages: those of a step, general or specialised.
    """
    real = m.real
    coupling_sweep, friction_sweep, dof_sweep = stages.coupling_sweep, stages.friction_sweep, stages.dof_sweep
    contact_sweep, pair_sweep = stages.contact_sweep, stages.pair_sweep

    @m.func
    def sweep_once(b, t, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """One visit of all rows, always in the same order; contacts have the last word."""
        for e in range(T.couplings):
            coupling_sweep(t, e, T, L, mem)
        if plain:
            friction_sweep(b, t, o, T, P, L, mem)
        else:
            for n in range(limits):
                i = active[T.candidates + n, t]
                dof_sweep(b, t, i // 2, i % 2, o, T, P, L, mem)
        for a in range(contacts):
            c = active[a, t]
            if c < T.first_paired:
                contact_sweep(b, t, a, c, T.candidate_body[c], o, T, P, L, mem)
            else:
                pair_sweep(t, a, c, T.candidate_collider[c], T, L, mem)

    @m.func
    def impulse_at(n: int, contacts: int, limits: int, t, T, L, active: wp.array2d[int]) -> int:
        """Where impulse n of active rows is: those of contacts, then those of limits, then those of couplings."""
        rows = T.contact_rows
        at = L.coupling_impulse + n - rows * contacts - DOF_IMPULSES * limits
        if n < rows * contacts:
            at = L.impulse + rows * active[n // rows, t] + n % rows
        elif n < rows * contacts + DOF_IMPULSES * limits:
            k = n - rows * contacts
            at = L.dof_impulse + DOF_IMPULSES * (active[T.candidates + k // DOF_IMPULSES, t] // 2) + k % DOF_IMPULSES
        return at

    @m.func
    def begin_to_extrapolate(t, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        for n in range(T.contact_rows * contacts + DOF_IMPULSES * limits + T.couplings):
            p = m.get(mem, impulse_at(n, contacts, limits, t, T, L, active), t)
            m.put(mem, L.start_impulse + n, t, p)
            m.put(mem, L.swept_impulse + n, t, p)
        m.copy(t, L.swept_z, L.z, T.dofs, mem)
        m.put(mem, L.pace, t, m.fill(real(1.0)))

    @m.func
    def extrapolate(t, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """Moves impulses and z on along their change by the last sweep (Nesterov 1983), where the sweep does not turn back against the one
        before (O'Donoghue and Candes 2015)."""
        one = m.fill(real(1.0))
        back = m.fill(real(0.0))
        count = T.contact_rows * contacts + DOF_IMPULSES * limits + T.couplings
        for n in range(count):
            p = m.get(mem, impulse_at(n, contacts, limits, t, T, L, active), t)
            way = m.sub(p, m.get(mem, L.swept_impulse + n, t))
            back = m.fma(m.sub(m.get(mem, L.start_impulse + n, t), p), way, back)
        old = m.where_lt(m.fill(real(0.0)), back, one, m.get(mem, L.pace, t))
        new = m.fma(m.fill(real(0.5)), m.sqrt(m.fma(m.fill(real(4.0)), m.mul(old, old), one)), m.fill(real(0.5)))
        m.put(mem, L.pace, t, new)
        further = m.div(m.sub(old, one), new)
        for n in range(count):
            at = impulse_at(n, contacts, limits, t, T, L, active)
            p = m.get(mem, at, t)
            start = m.fma(further, m.sub(p, m.get(mem, L.swept_impulse + n, t)), p)
            m.put(mem, at, t, start)
            m.put(mem, L.start_impulse + n, t, start)
            m.put(mem, L.swept_impulse + n, t, p)
        for i in range(T.dofs):
            z = m.get(mem, L.z + i, t)
            m.put(mem, L.z + i, t, m.fma(further, m.sub(z, m.get(mem, L.swept_z + i, t)), z))
            m.put(mem, L.swept_z + i, t, z)

    @m.func
    def settle(b, t, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """Sweeps on until the last sweep changed the velocities of every world of the block by no more than `tolerance`, in the norm of the
        kinetic energy, of the change by all impulses, but at most 2^ROUNDS times as often as before. A world keeps the result of the
        first round after which that holds."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        all_impulses = T.contact_rows * T.candidates + T.couplings + T.limit_rows
        m.put(mem, L.settled, t, zero)
        more = o.iterations
        for _ in range(ROUNDS):
            change = zero
            whole = zero
            for i in range(T.dofs):
                z = m.get(mem, L.z + i, t)
                d = m.sub(z, m.get(mem, L.swept_z + i, t))
                change = m.fma(d, d, change)
                e = m.sub(z, m.get(mem, L.free_z + i, t))
                whole = m.fma(e, e, whole)
            bound = m.mul(m.fill(o.tolerance * o.tolerance), whole)
            open = m.where_lt(bound, change, one, zero)
            old = m.get(mem, L.settled, t)
            if not m.any_lt(old, open):
                break
            # 1 for a world that settles now
            now = m.mul(m.sub(one, old), m.sub(one, open))
            for i in range(T.dofs):
                kept = m.get(mem, L.settled_z + i, t)
                m.put(mem, L.settled_z + i, t, m.where_lt(zero, now, m.get(mem, L.z + i, t), kept))
            for i in range(all_impulses):
                kept = m.get(mem, L.settled_impulse + i, t)
                m.put(mem, L.settled_impulse + i, t, m.where_lt(zero, now, m.get(mem, L.impulse + i, t), kept))
            m.put(mem, L.settled, t, m.add(old, now))
            for _sweep in range(more):
                extrapolate(t, contacts, limits, T, L, mem, active)
                sweep_once(b, t, contacts, limits, plain, o, T, P, L, mem, active)
            more = more + more
        old = m.get(mem, L.settled, t)
        for i in range(T.dofs):
            kept = m.get(mem, L.settled_z + i, t)
            m.put(mem, L.z + i, t, m.where_lt(zero, old, kept, m.get(mem, L.z + i, t)))
        for i in range(all_impulses):
            kept = m.get(mem, L.settled_impulse + i, t)
            m.put(mem, L.impulse + i, t, m.where_lt(zero, old, kept, m.get(mem, L.impulse + i, t)))

    return types.SimpleNamespace(
        sweep_once=sweep_once, begin_to_extrapolate=begin_to_extrapolate, extrapolate=extrapolate, settle=settle
    )
