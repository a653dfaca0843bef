"""Soft contact of points on links with the ground: Hunt and Crossley's normal force, and friction with a tangential state.

With the depth d of a point below the ground (normal n), its velocity v, and its tangential state m (a displacement):

    f_n = max(0, K d^(1+p) - D d^q n.v)                                       (Hunt and Crossley 1975)
    f_t = -s (K d^p m_t + D d^q v_t)          s: 1 if the point sticks, else such that |f_t| = mu f_n
    dm/dt = s v_t - (1 - s) (K / D) d^(p-q) m_t                               (Azad and Featherstone 2010)

The last line is v_t while the point sticks, -(f_t + K d^p m_t) / (D d^q) while it slips, and -(K / D) m without contact, with s = 0
and 1 in place of d^(p-q). The formula covers these cases without cancellation.
"""

import types

from newton_like.kernels.tree import NATIVE

# Bits of T.contact_law.
SQUARE_ROOTS, ONE_PLANE = 1, 2

LAW = 5  # K, D, mu, p, q
STIFFNESS, DAMPING, MU, P_EXPONENT, Q_EXPONENT = range(LAW)


def soft_contact_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_soft_contact``."""
    real = m.real

    @m.func
    def ground_of(i: int, T, L) -> int:
        """First row of the ground plane below point i: normal, then offset."""
        at = L.point_ground
        if (T.contact_law & ONE_PLANE) == 0:
            at = at + 4 * i
        return at

    @m.func
    def point_depth(t, i: int, n: m.Vec3, x: m.Vec3, T, L, mem) -> m.lane:
        """Depth of point i at x below the ground plane of normal n; negative above."""
        level = m.sub(m.get(mem, ground_of(i, T, L) + 3, t), m.dot(n, m.get3(mem, L.origin, t)))
        return m.sub(level, m.dot(n, x))

    @m.func
    def point_contact(t, i: int, k: int, T, L, mem) -> m.Spatial:
        """Returns the wrench of the ground on contact point i of body k about the reference point. Stores the point's force, depth and
        rate of the tangential state."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        tiny = m.fill(real(1.0e-20))
        stiffness = m.get(mem, L.point_law + STIFFNESS, t)
        damping = m.get(mem, L.point_law + DAMPING, t)
        n = m.get3(mem, ground_of(i, T, L), t)
        x = m.frame_place(t, i, k, T, L, mem)
        v = m.velocity_at(m.get6(mem, L.twist + 6 * k, t), x)
        depth = m.mul(m.get(mem, L.point_on + i, t), m.larger(point_depth(t, i, n, x, T, L, mem), zero))
        # d^p, d^q and d^(p-q); without contact 0, 0 and 1
        some = m.larger(depth, tiny)
        power_p = m.sqrt(some)
        power_q = power_p
        ratio = one
        if (T.contact_law & SQUARE_ROOTS) == 0:
            log = m.log(some)
            p = m.get(mem, L.point_law + P_EXPONENT, t)
            q = m.get(mem, L.point_law + Q_EXPONENT, t)
            power_p = m.exp(m.mul(p, log))
            power_q = m.exp(m.mul(q, log))
            ratio = m.where_lt(zero, depth, m.exp(m.mul(m.sub(p, q), log)), one)
        spring = m.where_lt(zero, depth, m.mul(stiffness, power_p), zero)
        damper = m.where_lt(zero, depth, m.mul(damping, power_q), zero)
        rise = m.dot(n, v)
        push = m.larger(m.fnma(damper, rise, m.mul(spring, depth)), zero)
        slip = m.get3(mem, L.point_slip + 3 * i, t)
        v_t = m.fnma3(n, rise, v)
        slip_t = m.fnma3(n, m.dot(n, slip), slip)
        drag = m.fma3(slip_t, spring, m.scale3(v_t, damper))
        length = m.sqrt(m.larger(m.dot(drag, drag), m.fill(real(1.0e-30))))
        most = m.mul(m.get(mem, L.point_law + MU, t), push)
        # s is zero without contact and where the normal force is clamped at zero
        share = m.where_lt(zero, push, m.smaller(m.div(most, length), one), zero)
        force = m.fnma3(drag, share, m.scale3(n, push))
        relax = m.mul(m.mul(m.sub(one, share), ratio), m.div(stiffness, damping))
        away = m.vec(
            m.where_lt(zero, depth, slip_t.x, slip.x),
            m.where_lt(zero, depth, slip_t.y, slip.y),
            m.where_lt(zero, depth, slip_t.z, slip.z),
        )
        m.put3(mem, L.point_slip_rate + 3 * i, t, m.fnma3(away, relax, m.scale3(v_t, share)))
        m.put3(mem, L.point_force + 3 * i, t, force)
        m.put(mem, L.point_depth + i, t, depth)
        return m.spatial(force, m.cross(x, force))

    @m.func
    def eval_soft_contact(b, t, T, P, L, mem):
        """point_force, point_slip_rate, point_depth <- force, rate of the tangential state and depth of every contact point; second <-
        wrenches on the links in ``T.output_repr``: the given wrenches (in ``T.wrench_repr``) plus contact."""
        m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.point_force, 3 * T.points, mem)
        m.clear(t, L.point_slip_rate, 3 * T.points, mem)
        m.clear(t, L.point_depth, T.points, mem)
        m.clear(t, L.second, 6 * T.links, mem)
        m.clear(t, L.load, 6 * T.bodies, mem)
        if T.wrench_repr != NATIVE:
            for k in range(T.bodies):
                m.put6(mem, L.load + 6 * k, t, m.link_wrench(t, k, T, L, mem))
        for i in range(T.points):
            k = T.point_body[i]
            if k >= 0:
                f = m.add6(m.get6(mem, L.load + 6 * k, t), point_contact(t, i, k, T, L, mem))
                m.put6(mem, L.load + 6 * k, t, f)
        for k in range(T.bodies):
            place = m.place_of(t, k, T.output_repr, L, mem)
            f = m.wrench_as(T.output_repr, m.get6(mem, L.load + 6 * k, t), place, m.get9(mem, L.rot + 9 * k, t))
            m.put6(mem, L.second + 6 * k, t, f)

    return locals()
