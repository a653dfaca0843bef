"""Semi-implicit integration on the manifold: the new velocity moves the old configuration."""

import types


def integrate_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``integrate``."""

    @m.func
    def integrate(b: int, t: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """q <- q + dt v, joint by joint."""
        for k in range(T.bodies):
            m.integrate_joint(b, t, k, dt, T, P, L, mem)

    return types.SimpleNamespace(**vars(m), integrate=integrate)
