"""Integration on the manifold.

A step is drift, kick, drift (position Verlet; Hairer, Lubich and Wanner 2003): half a step with the old velocity, all forces in the
configuration reached there, half a step with the new velocity. Bias forces are quadratic in the velocity; they are taken at the middle
of the old and the new one (in the manner of Kahan's method), found by one fixed-point iteration. The new one is that without drives
and applied forces, which limits may yet take back. Passive motion is second order, and its energy drifts in third order only; the
sequence of middle configurations is that of semi-implicit Euler, with its stability for stiff implicit forces and constraints.
"""

import types


def integrate_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``integrate`` and ``centre_bias``."""

    @m.func
    def integrate(b: int, t: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """q <- q + dt v, joint by joint."""
        for k in range(T.bodies):
            m.integrate_joint(b, t, k, dt, T, P, L, mem)

    @m.shared
    def centre_bias(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """tau <- tau with the bias forces at the middle of the velocities v and u."""
        half = m.fill(m.real(0.5))
        for i in range(T.dofs):
            m.put(mem, L.middle + i, t, m.mul(half, m.add(m.get(mem, L.v + i, t), m.get(mem, L.u + i, t))))
        for k in range(T.bodies):
            m.move_body(t, k, L.middle, T, L, mem)
        m.bias_forces(b, t, L.middle, L.middle + T.dofs, T, P, L, mem)
        for i in range(T.dofs):
            change = m.sub(m.get(mem, L.middle + T.dofs + i, t), m.get(mem, L.bias + i, t))
            m.put(mem, L.tau + i, t, m.add(m.get(mem, L.tau + i, t), change))

    return types.SimpleNamespace(**vars(m), integrate=integrate, centre_bias=centre_bias)
