"""Variations of orientations in traces for differentiation (``m.varied``).

In these traces orientations are constants, and their variations are rotation vectors, three numbers a body in world axes. The rotation
vector of a body also applies to its descendants (Bloesch et al. 2016), so the adjoint does not differentiate quaternions.
``variation(a)`` has the value zero and the derivative of a.
"""

import types


def variation_rules(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: functions that accumulate a body's rotation vector at ``L.turn`` and apply it to vectors of the body."""
    real = m.real

    @m.func
    def vary_with_parent(t, k: int, p: int, L, mem):
        """The variation of body k starts as that of its parent, body p."""
        m.put3(mem, L.turn + 3 * k, t, m.get3(mem, L.turn + 3 * p, t))

    @m.func
    def vary_about(t, k: int, axis: m.Vec3, qi: int, L, mem):
        """Adds the variation of the angle at qi, about `axis`, to that of body k."""
        turn = m.get3(mem, L.turn + 3 * k, t)
        m.put3(mem, L.turn + 3 * k, t, m.fma3(axis, m.variation(m.get(mem, qi, t)), turn))

    @m.func
    def vary_with(t, k: int, q: m.Quat, L, mem):
        """Adds the variation of the orientation q to that of body k."""
        d = m.quat(m.variation(q.x), m.variation(q.y), m.variation(q.z), m.variation(q.w))
        d = m.quat_multiply(d, m.quat_conjugate(m.quat_detach(q)))
        turn = m.get3(mem, L.turn + 3 * k, t)
        m.put3(mem, L.turn + 3 * k, t, m.fma3(m.vec(d.x, d.y, d.z), m.fill(real(2.0)), turn))

    @m.func
    def varied_axes(t, k: int, r: m.Mat33, L, mem) -> m.Mat33:
        """The axes r with the variation of body k."""
        a = m.get3(mem, L.turn + 3 * k, t)
        return m.rows(
            m.fma3(r.z, a.y, m.fnma3(r.y, a.z, r.x)),
            m.fma3(r.x, a.z, m.fnma3(r.z, a.x, r.y)),
            m.fma3(r.y, a.x, m.fnma3(r.x, a.y, r.z)),
        )

    @m.func
    def varied_quat(t, k: int, q: m.Quat, L, mem) -> m.Quat:
        """The orientation q with the variation of body k."""
        a = m.scale3(m.get3(mem, L.turn + 3 * k, t), m.fill(real(0.5)))
        d = m.quat_multiply(m.quat(a.x, a.y, a.z, m.fill(real(0.0))), q)
        return m.quat(m.add(q.x, d.x), m.add(q.y, d.y), m.add(q.z, d.z), m.add(q.w, d.w))

    return locals()
