"""Forward dynamics by the articulated-body algorithm (Featherstone 2008, table 7.1), or from the joint-space inertia.

The backward pass reduces a joint of several degrees of freedom one degree at a time, the last one first. With the articulated
inertia I and bias force p of the body, reduced by the later degrees of freedom,

    U_i = I S_i,   d_i = S_i . U_i + armature_i,   u_i = tau_i - S_i . p,   I <- I - U_i U_i^T / d_i,   p <- p + U_i u_i / d_i

The forward pass computes qdd_i = (u_i - U_i . a) / d_i from the acceleration a of the link before the i-th axis.
"""

import types

from newton_like.kernels.tree import NATIVE


def aba_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_forward_dynamics`` (articulated bodies) and ``eval_forward_dynamics_crb``."""
    real = m.real

    @m.struct
    class Articulated:
        """A symmetric 6 x 6 inertia [[a, h], [h^T, i]] that maps spatial accelerations about the reference point to spatial forces."""

        a: m.Sym3
        h: m.Mat33
        i: m.Sym3

    @m.func
    def get21(mem, at: int, t) -> Articulated:
        return Articulated(m.get_sym(mem, at, t), m.get9(mem, at + 6, t), m.get_sym(mem, at + 15, t))

    @m.func
    def put21(mem, at: int, t, r: Articulated):
        m.put_sym(mem, at, t, r.a)
        m.put9(mem, at + 6, t, r.h)
        m.put_sym(mem, at + 15, t, r.i)

    @m.func
    def sym_less(s: m.Sym3, u: m.Vec3, w: m.Vec3) -> m.Sym3:
        """s - u w^T, which is symmetric"""
        return m.sym(
            m.fnma(u.x, w.x, s.xx), m.fnma(u.y, w.y, s.yy), m.fnma(u.z, w.z, s.zz),
            m.fnma(u.x, w.y, s.xy), m.fnma(u.x, w.z, s.xz), m.fnma(u.y, w.z, s.yz),
        )  # fmt: skip

    @m.func
    def rigid(i: m.Inertia) -> Articulated:
        zero = m.fill(real(0.0))
        # -[first moment]
        h = m.rows(m.vec(zero, i.h.z, m.neg(i.h.y)), m.vec(m.neg(i.h.z), zero, i.h.x), m.vec(i.h.y, m.neg(i.h.x), zero))
        return Articulated(m.sym(i.m, i.m, i.m, zero, zero, zero), h, i.i)

    @m.func
    def articulated_add(p: Articulated, q: Articulated) -> Articulated:
        h = m.rows(m.add3(p.h.x, q.h.x), m.add3(p.h.y, q.h.y), m.add3(p.h.z, q.h.z))
        return Articulated(m.sym_add(p.a, q.a), h, m.sym_add(p.i, q.i))

    @m.func
    def articulated_less(p: Articulated, u: m.Spatial, s: m.lane) -> Articulated:
        """p - s u u^T"""
        w = m.spatial(m.scale3(u.v, s), m.scale3(u.w, s))
        h = m.rows(m.fnma3(u.w, w.v.x, p.h.x), m.fnma3(u.w, w.v.y, p.h.y), m.fnma3(u.w, w.v.z, p.h.z))
        return Articulated(sym_less(p.a, w.v, u.v), h, sym_less(p.i, w.w, u.w))

    @m.func
    def articulated_apply(p: Articulated, s: m.Spatial) -> m.Spatial:
        return m.spatial(m.apply_plus(p.h, s.w, m.sym_apply(p.a, s.v)), m.sym_apply_plus(p.i, s.w, m.apply_t(s.v, p.h)))

    @m.func
    def give_way(b, t, k: int, T, P, L, mem):
        """articulated, load <- the articulated inertia and bias force of body k, reduced by its joint: the terms added to its parent's.

        lever <- U; pivot <- 1 / d; tau <- u.
        """
        first = T.dof_at[k]
        n = T.linear[k] + T.angular[k]
        total = get21(mem, L.articulated + 21 * k, t)
        p = m.get6(mem, L.load + 6 * k, t)
        for i in range(first, first + n):
            s = m.get6(mem, L.subspace + 6 * i, t)
            m.put6(mem, L.lever + 6 * i, t, articulated_apply(total, s))
            scale = m.dot_plus(s.w, m.sym_apply(total.i, s.w), m.dot(s.v, m.sym_apply(total.a, s.v)))
            m.put(mem, L.pivot + i, t, scale)
        for i in range(first + n - 1, first - 1, -1):
            s = m.get6(mem, L.subspace + 6 * i, t)
            u = m.get6(mem, L.lever + 6 * i, t)
            inverse = m.inverse_pivot(b, i, m.dot6(s, u), m.get(mem, L.pivot + i, t), P)
            left = m.sub(m.get(mem, L.tau + i, t), m.dot6(s, p))
            m.put(mem, L.pivot + i, t, inverse)
            m.put(mem, L.tau + i, t, left)
            for j in range(first, i):
                x = m.get6(mem, L.lever + 6 * j, t)
                y = m.mul(m.dot6(m.get6(mem, L.subspace + 6 * j, t), u), inverse)
                m.put6(mem, L.lever + 6 * j, t, m.spatial(m.fnma3(u.v, y, x.v), m.fnma3(u.w, y, x.w)))
            p = m.fma6(u, m.mul(left, inverse), p)
            total = articulated_less(total, u, inverse)
        c = m.get6(mem, L.drift + 6 * k, t)
        put21(mem, L.articulated + 21 * k, t, total)
        m.put6(mem, L.load + 6 * k, t, m.add6(p, articulated_apply(total, c)))

    @m.func
    def base_forces(b, t, T, P, L, mem):
        """tau <- the given forces; those of a floating base are converted from the representation T.output_repr to its joint's."""
        m.copy(t, L.tau, L.force, T.dofs, mem)
        if T.free_root != 0 and T.output_repr != NATIVE:
            f = m.get6(mem, L.force, t)
            f = m.wrench_from(T.output_repr, f, m.place_of(t, 0, T.output_repr, L, mem), m.get9(mem, L.rot, t))
            for i in range(6):
                m.put(mem, L.tau + i, t, m.dot6(m.get6(mem, L.subspace + 6 * i, t), f))

    @m.func
    def base_accelerations(t, T, L, mem):
        """Converts the accelerations of a floating base at L.vector from its joint's velocities to the representation T.output_repr."""
        if T.free_root != 0 and T.output_repr != NATIVE:
            a = m.joint_drift(t, 0, L.v, T, L, mem)
            for i in range(6):
                a = m.fma6(m.get6(mem, L.subspace + 6 * i, t), m.get(mem, L.vector + i, t), a)
            v = m.get6(mem, L.twist, t)
            u = m.acceleration_as(T.output_repr, a, v, m.place_of(t, 0, T.output_repr, L, mem), m.get9(mem, L.rot, t))
            m.put6(mem, L.vector, t, u)

    @m.func
    def eval_forward_dynamics(b, t, T, P, L, mem):
        """vector <- accelerations under the forces `force` and the wrenches of links, in the representation T.output_repr"""
        m.forward_kinematics(b, t, T, P, L, mem)
        base_forces(b, t, T, P, L, mem)
        still = m.spatial(m.zero3(), m.zero3())
        for k in range(T.bodies - 1, -1, -1):
            m.put6(mem, L.drift + 6 * k, t, m.joint_drift(t, k, L.v, T, L, mem))
            total = rigid(m.link_inertia(b, t, k, P, L, mem))
            p = m.inertial_wrench(b, t, k, still, P, L, mem)
            if T.wrench_repr != NATIVE:
                f = m.link_wrench(t, k, T, L, mem)
                p = m.spatial(m.sub3(p.v, f.v), m.sub3(p.w, f.w))
            for i in range(T.child_at[k], T.child_at[k + 1]):
                total = articulated_add(total, get21(mem, L.articulated + 21 * T.child[i], t))
                p = m.add6(p, m.get6(mem, L.load + 6 * T.child[i], t))
            put21(mem, L.articulated + 21 * k, t, total)
            m.put6(mem, L.load + 6 * k, t, p)
            give_way(b, t, k, T, P, L, mem)
        m.clear(t, L.vector, T.columns, mem)
        m.put6(mem, L.drift + 6 * T.bodies, t, m.spatial(m.neg3(m.gravity(P, b)), m.zero3()))
        for k in range(T.bodies):
            a = m.add6(m.get6(mem, L.drift + 6 * T.parent[k], t), m.get6(mem, L.drift + 6 * k, t))
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                pull = m.dot6(m.get6(mem, L.lever + 6 * i, t), a)
                x = m.mul(m.sub(m.get(mem, L.tau + i, t), pull), m.get(mem, L.pivot + i, t))
                m.put(mem, L.vector + i, t, x)
                a = m.fma6(m.get6(mem, L.subspace + 6 * i, t), x, a)
            m.put6(mem, L.drift + 6 * k, t, a)
        base_accelerations(t, T, L, mem)

    @m.func
    def residual(b, t, out: int, T, P, L, mem):
        """out <- tau - ID(q, nu, nu_dot), with nu_dot at L.acceleration"""
        m.newton_euler(b, t, out, T, P, L, mem)
        for i in range(T.dofs):
            m.put(mem, out + i, t, m.sub(m.get(mem, L.tau + i, t), m.get(mem, out + i, t)))

    @m.func
    def accelerating_forces(b, t, out: int, T, P, L, mem):
        """out <- tau - h, after the kinematics; vector, acceleration <- zeros."""
        m.forward_kinematics(b, t, T, P, L, mem)
        base_forces(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.columns, mem)
        m.clear(t, L.acceleration, T.dofs, mem)
        residual(b, t, out, T, P, L, mem)

    @m.func
    def eval_forward_dynamics_crb(b, t, T, P, L, mem):
        """The same as eval_forward_dynamics, by solving M qdd = tau - h."""
        accelerating_forces(b, t, L.vector, T, P, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        m.factorize_apart(b, t, T, P, L, mem)
        m.solve(t, L.vector, T, L, mem)
        base_accelerations(t, T, L, mem)

    return locals()
