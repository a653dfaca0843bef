"""How orientations vary where a trace is to be differentiated (``m.varied``).

They are constants there, and vary by rotation vectors, three numbers a body in world axes: what turns a body turns all that it carries by
the same vector (Bloesch et al. 2016), and nothing goes back through quaternions. ``variation(a)`` is zero and varies as a does.
"""

import types


def variation_rules(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: what keeps a body's rotation vector, at ``L.turn``, and applies it to what the body carries."""
    real = m.real

    @m.func
    def vary_with_parent(t, k: int, p: int, L, mem):
        """Body k varies as body p does, which carries it."""
        m.put3(mem, L.turn + 3 * k, t, m.get3(mem, L.turn + 3 * p, t))

    @m.func
    def vary_about(t, k: int, axis: m.Vec3, qi: int, L, mem):
        """Body k also varies with the angle at qi."""
        turn = m.get3(mem, L.turn + 3 * k, t)
        m.put3(mem, L.turn + 3 * k, t, m.fma3(axis, m.variation(m.get(mem, qi, t)), turn))

    @m.func
    def vary_with(t, k: int, q: m.Quat, L, mem):
        """Body k also varies with the orientation q."""
        d = m.quat(m.variation(q.x), m.variation(q.y), m.variation(q.z), m.variation(q.w))
        d = m.quat_multiply(d, m.quat_conjugate(m.quat_detach(q)))
        turn = m.get3(mem, L.turn + 3 * k, t)
        m.put3(mem, L.turn + 3 * k, t, m.fma3(m.vec(d.x, d.y, d.z), m.fill(real(2.0)), turn))

    @m.func
    def varied_axes(t, k: int, r: m.Mat33, L, mem) -> m.Mat33:
        """The axes r, carried by body k."""
        a = m.get3(mem, L.turn + 3 * k, t)
        return m.rows(
            m.fma3(r.z, a.y, m.fnma3(r.y, a.z, r.x)),
            m.fma3(r.x, a.z, m.fnma3(r.z, a.x, r.y)),
            m.fma3(r.y, a.x, m.fnma3(r.x, a.y, r.z)),
        )

    @m.func
    def varied_quat(t, k: int, q: m.Quat, L, mem) -> m.Quat:
        """The orientation q, carried by body k."""
        a = m.scale3(m.get3(mem, L.turn + 3 * k, t), m.fill(real(0.5)))
        d = m.quat_multiply(m.quat(a.x, a.y, a.z, m.fill(real(0.0))), q)
        return m.quat(m.add(q.x, d.x), m.add(q.y, d.y), m.add(q.z, d.z), m.add(q.w, d.w))

    return locals()
