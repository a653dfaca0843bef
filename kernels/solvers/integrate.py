"""Integration on the manifold.

A step is drift, kick, drift (position Verlet; Hairer, Lubich and Wanner 2003): half a step with the old velocity, all forces in the
configuration reached there, half a step with the new velocity. Bias forces are quadratic in the velocity; they are taken at the middle
of the old and the new one (in the manner of Kahan's method), found by fixed-point iteration. The new one is that without drives
and applied forces, which limits may yet take back. Passive motion is second order, and its energy drifts in third order only; the
sequence of middle configurations is that of semi-implicit Euler, with its stability for stiff implicit forces and constraints.

One iteration is enough while velocities hardly turn within a step. Where it changes them by more than ENOUGH, there are two more,
and where the last one still changes them by more than EXACT, another four: so the energy of a free body stays, however fast it
spins. Where even these have not settled, or one changes the velocity by as much as itself, the motion is too fast for the time
step, and forces that are quadratic in the velocity are left out of it.

Trees that are not rigid gain or lose energy beside that: see `kernels.solvers.balance`, which from FAST on takes back what is gained.
"""

import types

from newton_like.kernels.tree import PRESCRIBED

# Changes of the velocity by an iteration, squared, over its square.
ENOUGH, EXACT, UNSETTLED = 4.0e-6, 1.0e-8, 1.0e-4
# The same of the first iteration; a trotting robot is at 1e-9. Lower, and the accelerations of arms that move at some rad/s are not
# those that their forces give.
FAST = 4.0e-5


def integrate_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``integrate``, ``damp_spins`` and ``centre_bias``."""

    @m.func
    def integrate(b, t, dt: m.lane, T, P, L, mem):
        """q <- q + dt v, joint by joint."""
        for k in range(T.bodies):
            m.retract_joint(b, t, k, dt, L.v, L.q, T, P, L, mem)

    @m.func
    def damp_spins(t, share: m.lane, T, L, mem):
        """u <- with `share` of the angular velocities of floating bodies."""
        for k in range(T.bodies):
            m.scale_spin(t, k, share, L.u, T, mem)

    @m.shared
    def centre_bias(b, t, dt: m.lane, T, P, L, mem):
        """bias <- the bias forces at the middle of the velocities v and u, for trees whose ``bias_change`` is positive; ``bias_share``
        of their sum counts as the middle. ``bias_change`` <- by how much that changes the new velocity, squared, over its square,
        in the norm of the kinetic energy (coupled terms left out)."""
        zero = m.fill(m.real(0.0))
        for k in range(T.trees):
            on = m.get(mem, L.bias_change + k, t)
            share = m.get(mem, L.bias_share + k, t)
            size = zero
            for i in range(T.dof_at[m.tree_start(k, T)], T.dof_at[m.tree_start(k + 1, T)]):
                middle = m.mul(share, m.add(m.get(mem, L.v + i, t), m.get(mem, L.u + i, t)))
                m.put(mem, L.middle + i, t, m.where_lt(zero, on, middle, m.get(mem, L.middle + i, t)))
                z = m.get(mem, L.z + i, t)
                if T.dof_limits[i] & PRESCRIBED:
                    z = m.where_prescribed(P, b, i, zero, z)
                size = m.fma(z, z, size)
            m.put(mem, L.bias_size + k, t, size)
        for k in range(T.bodies):
            m.move_body(t, k, L.middle, T, L, mem)
        m.bias_forces(b, t, L.middle, L.trial, T, P, L, mem)
        for k in range(T.trees):
            change = zero
            for i in range(T.dof_at[m.tree_start(k, T)], T.dof_at[m.tree_start(k + 1, T)]):
                new = m.get(mem, L.trial + i, t)
                x = m.mul(m.get(mem, L.root + i, t), m.sub(new, m.get(mem, L.bias + i, t)))
                change = m.fma(x, x, change)
                m.put(mem, L.bias + i, t, new)
            size = m.larger(m.get(mem, L.bias_size + k, t), m.fill(m.real(1.0e-30)))
            m.put(mem, L.bias_change + k, t, m.div(m.mul(m.mul(dt, dt), change), size))

    return locals()
