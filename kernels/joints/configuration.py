"""Configuration manifolds of joints: normalisation, local coordinates and their inverse.

The functions depend on a joint only by whether one quaternion represents its rotation.

Local coordinates of a joint about coordinates q0 are differences of coordinates, except for rotations and poses:

    BALL  phi = log(inverse(R0) R)         FREE  phi = log(inverse(H0) H), linear part first

with R and H the rotation and the pose of the child's anchor in the parent's. With w = log(inverse(R0) R), s = |w|^2 and
d = inverse(R0) (p - p0), in closed form (Sola, Deray and Atchuthan 2018, "A micro Lie theory", appendices B and D)

    phi = (V^-1 d, w),   V^-1 d = d - w x d / 2 + c(s) w x (w x d),   c(s) = (1 - |w|/2 cot(|w|/2)) / s

    w' = V^-1 y for the relative angular velocity y in the axes of R0,   and the linear part is differentiated as it stands

which is the inverse right Jacobian times the child anchor's twist in its own axes, without forming the 6 x 6 matrix.

Coefficients of series are written as decimals, because Warp evaluates ``1.0 / 6.0`` in single precision.
"""

import types

# T.configuration_mode of eval_configuration
NORMAL, PRINCIPAL, ZERO = range(3)


def configuration_dispatch(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: functions of joints that normalise coordinates, compare them and add local coordinates to them."""
    real = m.real
    Vec3, Quat = m.Vec3, m.Quat

    @m.func
    def quat_principal(q: Quat) -> Quat:
        """q or -q, which represent the same rotation: the quaternion with w >= 0."""
        s = m.where_lt(q.w, m.fill(real(0.0)), m.fill(real(-1.0)), m.fill(real(1.0)))
        return m.quat(m.mul(q.x, s), m.mul(q.y, s), m.mul(q.z, s), m.mul(q.w, s))

    @m.func
    def principal_angle(a: m.lane) -> m.lane:
        """The equivalent angle in (-pi, pi]. An angle in this interval keeps its bits."""
        pi = m.fill(real(3.141592653589793))
        low = m.neg(pi)
        turned = m.atan2(m.sin(a), m.cos(a))
        turned = m.where_lt(low, turned, turned, pi)
        return m.where_lt(low, a, m.where_lt(pi, a, turned, a), turned)

    @m.func
    def choose_joint(t, k: int, out: int, T, L, mem):
        """Coordinates of joint k at `out` <- q normalised, q made principal, or the zero configuration."""
        mode = T.configuration_mode
        qi = L.q + T.q_at[k]
        to = out + T.q_at[k]
        n = T.linear[k] + T.angular[k]
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        shift = m.rotation_at(T.kind[k])
        if shift >= 0:
            if shift > 0:
                place = m.get3(mem, qi, t)
                if mode == ZERO:
                    place = m.zero3()
                m.put3(mem, to, t, place)
            q = m.get4(mem, qi + shift, t)
            # programs treat a zero quaternion as the identity
            empty = m.fma(q.x, q.x, m.fma(q.y, q.y, m.fma(q.z, q.z, m.mul(q.w, q.w))))
            q = m.quat(q.x, q.y, q.z, m.where_lt(zero, empty, q.w, one))
            if mode == ZERO:
                q = m.quat(zero, zero, zero, one)
            q = m.quat_normalize(q)
            if mode == PRINCIPAL:
                q = quat_principal(q)
            m.put4(mem, to + shift, t, q)
        else:
            for i in range(n):
                x = m.get(mem, qi + i, t)
                if mode == PRINCIPAL and i >= T.linear[k]:
                    x = principal_angle(x)
                if mode == ZERO:
                    x = zero
                m.put(mem, to + i, t, x)

    # ------------------------------------------------------------------------------------------- logarithms

    @m.func
    def log_pole(s: m.lane, square: m.lane) -> m.lane:
        return m.rcp(m.sub(square, s))

    @m.func
    def log_factor(s: m.lane) -> m.lane:
        """c(s) = (1 - x cot x) / s with x = sqrt(s) / 2, for 0 <= s <= pi^2.

        x cot x = 1 - 2 sum of x^2 / (k^2 pi^2 - x^2). The terms k = 1 and 2 are evaluated in this form, the others as a power series.
        Every summand is positive, so there is no cancellation.
        """
        two = m.fill(real(2.0))
        near = m.mul(
            two, m.add(log_pole(s, m.fill(real(39.47841760435743))), log_pole(s, m.fill(real(157.91367041742973))))
        )
        c = m.fill(real(6.25747115080577254e-26))
        c = m.fma(c, s, m.fill(real(2.22893266455370120e-23)))
        c = m.fma(c, s, m.fill(real(7.95557541071984463e-21)))
        c = m.fma(c, s, m.fill(real(2.85002212921379108e-18)))
        c = m.fma(c, s, m.fill(real(1.02801253753604606e-15)))
        c = m.fma(c, s, m.fill(real(3.75671620021579791e-13)))
        c = m.fma(c, s, m.fill(real(1.40882415747610478e-10)))
        c = m.fma(c, s, m.fill(real(5.58456839049441506e-08)))
        c = m.fma(c, s, m.fill(real(2.54381206886256203e-05)))
        return m.add(near, m.fma(c, s, m.fill(real(2.00075935568722260e-02))))

    @m.func
    def log_factor_slope(s: m.lane) -> m.lane:
        """dc/ds"""
        two = m.fill(real(2.0))
        one = log_pole(s, m.fill(real(39.47841760435743)))
        other = log_pole(s, m.fill(real(157.91367041742973)))
        near = m.mul(two, m.fma(one, one, m.mul(other, other)))
        c = m.fill(real(5.631724035725196e-25))
        c = m.fma(c, s, m.fill(real(1.783146131642961e-22)))
        c = m.fma(c, s, m.fill(real(5.568902787503891e-20)))
        c = m.fma(c, s, m.fill(real(1.7100132775282748e-17)))
        c = m.fma(c, s, m.fill(real(5.14006268768023e-15)))
        c = m.fma(c, s, m.fill(real(1.5026864800863192e-12)))
        c = m.fma(c, s, m.fill(real(4.2264724724283143e-10)))
        c = m.fma(c, s, m.fill(real(1.116913678098883e-07)))
        return m.add(near, m.fma(c, s, m.fill(real(2.54381206886256203e-05))))

    @m.func
    def unexp(w: Vec3, c: m.lane, y: Vec3) -> Vec3:
        """V^-1 y = y - w x y / 2 + c w x (w x y)"""
        turned = m.cross(w, y)
        return m.fma3(m.cross(w, turned), c, m.fnma3(turned, m.fill(real(0.5)), y))

    @m.func
    def unexp_rate(w: Vec3, w_dot: Vec3, c: m.lane, c_dot: m.lane, d: Vec3, d_dot: Vec3) -> Vec3:
        """The time derivative of V^-1 d."""
        turned = m.cross(w, d)
        change = m.cross_plus(w, d_dot, m.cross(w_dot, d))
        twice = m.cross_plus(w, change, m.cross(w_dot, turned))
        linear = m.fnma3(change, m.fill(real(0.5)), d_dot)
        return m.fma3(twice, c, m.fma3(m.cross(w, turned), c_dot, linear))

    @m.func
    def exp_on(w: Vec3, y: Vec3) -> Vec3:
        """V y = y + a w x y + e w x (w x y), a = (1 - cos |w|) / |w|^2, e = (|w| - sin |w|) / |w|^3."""
        s = m.dot(w, w)
        half = m.mul(m.fill(real(0.5)), m.sqrt(m.larger(s, m.fill(real(1.0e-24)))))
        chord = m.mul(m.sin(half), m.rcp(half))
        a = m.mul(m.fill(real(0.5)), m.mul(chord, chord))
        e = m.fill(real(-1.9572941063391263e-20))
        e = m.fma(e, s, m.fill(real(8.22063524662433e-18)))
        e = m.fma(e, s, m.fill(real(-2.8114572543455206e-15)))
        e = m.fma(e, s, m.fill(real(7.647163731819816e-13)))
        e = m.fma(e, s, m.fill(real(-1.6059043836821613e-10)))
        e = m.fma(e, s, m.fill(real(2.505210838544172e-08)))
        e = m.fma(e, s, m.fill(real(-2.7557319223985893e-06)))
        e = m.fma(e, s, m.fill(real(0.0001984126984126984)))
        e = m.fma(e, s, m.fill(real(-0.008333333333333333)))
        e = m.fma(e, s, m.fill(real(0.16666666666666666)))
        # the closed form has no cancellation beyond two radians
        one = m.fill(real(1.0))
        large = m.larger(s, one)
        angle = m.sqrt(large)
        closed = m.mul(m.sub(one, m.mul(m.sin(angle), m.rcp(angle))), m.rcp(large))
        e = m.where_lt(s, m.fill(real(4.0)), e, closed)
        turned = m.cross(w, y)
        return m.fma3(m.cross(w, turned), e, m.fma3(turned, a, y))

    @m.func
    def local_joint(b, t, k: int, T, P, L, mem):
        """vector, third <- local coordinates of joint k about the coordinates at `second`, and their rates."""
        dof = T.dof_at[k]
        at = T.q_at[k]
        shift = m.rotation_at(T.kind[k])
        if shift >= 0:
            turn = at + shift
            spin = dof + shift
            old = m.quat_normalize(m.get4(mem, L.second + turn, t))
            new = m.quat_normalize(m.get4(mem, L.q + turn, t))
            axes = m.quat_to_matrix(old)
            rate = m.get3(mem, L.v + spin, t)
            w = m.quat_log(m.quat_multiply(m.quat_conjugate(old), new))
            s = m.dot(w, w)
            c = log_factor(s)
            w_dot = unexp(w, c, m.apply_t(rate, axes))
            m.put3(mem, L.vector + spin, t, w)
            m.put3(mem, L.third + spin, t, w_dot)
            if shift > 0:
                d = m.apply_t(m.sub3(m.get3(mem, L.q + at, t), m.get3(mem, L.second + at, t)), axes)
                arm = m.apply(m.quat_to_matrix(new), m.child_com(b, k, P))
                d_dot = m.apply_t(m.cross_plus(arm, rate, m.get3(mem, L.v + dof, t)), axes)
                c_dot = m.mul(m.mul(m.fill(real(2.0)), log_factor_slope(s)), m.dot(w, w_dot))
                m.put3(mem, L.vector + dof, t, unexp(w, c, d))
                m.put3(mem, L.third + dof, t, unexp_rate(w, w_dot, c, c_dot, d, d_dot))
        else:
            for i in range(T.linear[k] + T.angular[k]):
                m.put(mem, L.vector + dof + i, t, m.sub(m.get(mem, L.q + at + i, t), m.get(mem, L.second + at + i, t)))
                m.put(mem, L.third + dof + i, t, m.get(mem, L.v + dof + i, t))

    @m.func
    def global_joint(t, k: int, T, L, mem):
        """third <- coordinates of joint k, from q and the local coordinates at `vector` about q."""
        dof = T.dof_at[k]
        at = T.q_at[k]
        shift = m.rotation_at(T.kind[k])
        if shift >= 0:
            turn = at + shift
            spin = dof + shift
            old = m.quat_normalize(m.get4(mem, L.q + turn, t))
            w = m.get3(mem, L.vector + spin, t)
            new = m.quat_multiply(old, m.quat_exp(m.scale3(w, m.fill(real(0.5)))))
            m.put4(mem, L.third + turn, t, m.quat_normalize(new))
            if shift > 0:
                d = m.apply(m.quat_to_matrix(old), exp_on(w, m.get3(mem, L.vector + dof, t)))
                m.put3(mem, L.third + at, t, m.add3(m.get3(mem, L.q + at, t), d))
        else:
            for i in range(T.linear[k] + T.angular[k]):
                m.put(mem, L.third + at + i, t, m.add(m.get(mem, L.q + at + i, t), m.get(mem, L.vector + dof + i, t)))

    @m.func
    def velocity_of_rate(b, t, k: int, T, P, L, mem):
        """vector <- velocities of joint k for the coordinate rates at `second`. The component of a rate along its quaternion is ignored."""
        dof = T.dof_at[k]
        at = T.q_at[k]
        shift = m.rotation_at(T.kind[k])
        if shift >= 0:
            turn = at + shift
            spin = dof + shift
            q = m.quat_normalize(m.get4(mem, L.q + turn, t))
            d = m.quat_multiply(m.get4(mem, L.second + turn, t), m.quat_conjugate(q))
            w = m.scale3(m.vec(d.x, d.y, d.z), m.fill(real(2.0)))
            m.put3(mem, L.vector + spin, t, w)
            if shift > 0:
                arm = m.apply(m.quat_to_matrix(q), m.child_com(b, k, P))
                m.put3(mem, L.vector + dof, t, m.cross_plus(w, arm, m.get3(mem, L.second + at, t)))
        else:
            m.copy(t, L.vector + dof, L.second + at, T.linear[k] + T.angular[k], mem)

    return locals()
