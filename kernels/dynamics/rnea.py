"""Inverse dynamics by the recursive Newton-Euler algorithm (Luh, Walker and Paul 1980; Featherstone 2008, table 5.1).

Gravity is included as an acceleration -g of the world. The force and moment that give a body its acceleration, and the joint forces, are

    f = m a_com,   n = I alpha + w x I w   (about the centre of mass),   tau_i = S_i . (sum of f, n over the subtree)

The bias forces are the joint forces at zero joint accelerations; the bodies then have their bias accelerations (`drift`).
"""

import types

from newton_like.kernels.tree import ARMATURE, COM, NATIVE


def rnea_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``bias_forces``, ``newton_euler``, and the programs of inverse dynamics."""

    @m.func
    def bias_accelerations(b, t, vel: int, T, P, L, mem):
        """drift <- the acceleration of every body at zero qdd, with gravity."""
        for i in range(T.trees):
            m.put6(mem, L.drift + 6 * (T.bodies + i), t, m.spatial(m.neg3(m.gravity(P, b)), m.zero3()))
        for k in range(T.bodies):
            a = m.add6(m.get6(mem, L.drift + 6 * T.parent[k], t), m.joint_drift(t, k, vel, T, L, mem))
            m.put6(mem, L.drift + 6 * k, t, a)

    @m.func
    def with_force(b, t, k: int, a: m.Spatial, n: m.Vec3, P, L, mem) -> m.Spatial:
        """The wrench about the origin of the moment n and the force that gives body k the acceleration a."""
        v = m.get6(mem, L.twist + 6 * k, t)
        c = m.get3(mem, L.com + 3 * k, t)
        at_com = m.cross_plus(v.w, m.velocity_at(v, c), m.velocity_at(a, c))
        f = m.scale3(at_com, m.body_mass(P, b, k))
        return m.spatial(f, m.cross_plus(c, f, n))

    @m.func
    def inertial_wrench(b, t, k: int, a: m.Spatial, P, L, mem) -> m.Spatial:
        """The wrench about the origin that gives body k the acceleration a."""
        w = m.get3(mem, L.twist + 6 * k + 3, t)
        i = m.sym_rotate(m.body_inertia(P, b, k), m.get9(mem, L.rot + 9 * k, t))
        n = m.cross_plus(w, m.sym_apply(i, w), m.sym_apply(i, a.w))
        return with_force(b, t, k, a, n, P, L, mem)

    @m.func
    def body_load(b, t, k: int, P, L, mem) -> m.Spatial:
        """The wrench about the origin that gives body k the acceleration at L.drift."""
        return inertial_wrench(b, t, k, m.get6(mem, L.drift + 6 * k, t), P, L, mem)

    @m.func
    def own_load(b, t, k: int, P, L, mem) -> m.Spatial:
        """The same as body_load, computed in the axes of the body. This is cheaper if the inertia in world axes is not used elsewhere."""
        a = m.get6(mem, L.drift + 6 * k, t)
        i = m.body_inertia(P, b, k)
        r = m.get9(mem, L.rot + 9 * k, t)
        w = m.apply_t(m.get3(mem, L.twist + 6 * k + 3, t), r)
        n = m.cross_plus(w, m.sym_apply(i, w), m.sym_apply(i, m.apply_t(a.w, r)))
        return with_force(b, t, k, a, m.apply(r, n), P, L, mem)

    @m.shared
    def bias_forces(b, t, vel: int, out: int, T, P, L, mem):
        """out <- -h, the negative bias forces (Coriolis, centrifugal, gyroscopic, gravity) at the velocities `vel`. L.twist must have the
        twists for these velocities."""
        bias_accelerations(b, t, vel, T, P, L, mem)
        for k in range(T.bodies - 1, -1, -1):
            f = body_load(b, t, k, P, L, mem)
            for i in range(T.child_at[k], T.child_at[k + 1]):
                f = m.add6(f, m.get6(mem, L.load + 6 * T.child[i], t))
            m.put6(mem, L.load + 6 * k, t, f)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                m.put(mem, out + i, t, m.neg(m.dot6(m.get6(mem, L.subspace + 6 * i, t), f)))

    @m.func
    def link_wrench(t, k: int, T, L, mem) -> m.Spatial:
        """The wrench about the origin that is given for link k in the representation T.wrench_repr."""
        at = 6 * T.body_slot[k]
        if T.wrenches_by_link == 1:
            at = 6 * k
        p = m.place_of(t, k, T.wrench_repr, L, mem)
        return m.wrench_from(T.wrench_repr, m.get6(mem, L.wrenches + at, t), p, m.get9(mem, L.rot + 9 * k, t))

    @m.func
    def newton_euler(b, t, out: int, T, P, L, mem):
        """out <- M nu_dot + h, less the given wrenches of links unless T.wrench_repr is NATIVE; nu_dot at L.acceleration."""
        turned = m.turned_base(T)
        m.body_accelerations(t, m.neg3(m.gravity(P, b)), T, L, mem)
        for k in range(T.bodies - 1, -1, -1):
            f = own_load(b, t, k, P, L, mem)
            if T.wrench_repr != NATIVE:
                w = link_wrench(t, k, T, L, mem)
                f = m.spatial(m.sub3(f.v, w.v), m.sub3(f.w, w.w))
            for i in range(T.child_at[k], T.child_at[k + 1]):
                f = m.add6(f, m.get6(mem, L.load + 6 * T.child[i], t))
            if k == 0 and turned == 1:
                a = m.get6(mem, L.drift, t)
                a = m.spatial(m.add3(a.v, m.gravity(P, b)), a.w)
                c = m.get3(mem, L.com, t)
                moved = m.acceleration_as(COM, a, m.get6(mem, L.twist, t), c, m.get9(mem, L.rot, t))
                f = m.add6(f, m.base_armature(b, t, moved, P, L, mem))
            m.put6(mem, L.load + 6 * k, t, f)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                x = m.dot6(m.get6(mem, L.subspace + 6 * i, t), f)
                if k > 0 or turned == 0:
                    x = m.fma(m.gain(P, b, i, ARMATURE), m.get(mem, L.acceleration + i, t), x)
                m.put(mem, out + i, t, x)

    @m.func
    def eval_inverse_dynamics(b, t, T, P, L, mem):
        """vector <- M nu_dot + h - the given wrenches, in the representation T.base_repr, or in that of Control.joint_f if T.world_wrench
        is 1"""
        m.prepare(b, t, T, P, L, mem)
        if T.world_wrench == 0:
            m.clear(t, L.vector, T.columns, mem)
        newton_euler(b, t, L.vector, T, P, L, mem)
        if T.world_wrench == 1:
            # the result has the dofs of this articulation only
            for k in range(T.bodies):
                m.joint_wrench(t, k, L.vector, T, L, mem)

    @m.func
    def eval_bias_forces(b, t, T, P, L, mem):
        """vector <- h, in the representation T.base_repr"""
        m.clear(t, L.acceleration, T.dofs, mem)
        eval_inverse_dynamics(b, t, T, P, L, mem)

    @m.func
    def eval_gravity_forces(b, t, T, P, L, mem):
        """vector <- g, in the representation T.base_repr"""
        m.clear(t, L.v, T.dofs, mem)
        m.prepare(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.columns, mem)
        up = m.neg3(m.gravity(P, b))
        for k in range(T.bodies - 1, -1, -1):
            f = m.scale3(up, m.body_mass(P, b, k))
            load = m.spatial(f, m.cross(m.get3(mem, L.com + 3 * k, t), f))
            for i in range(T.child_at[k], T.child_at[k + 1]):
                load = m.add6(load, m.get6(mem, L.load + 6 * T.child[i], t))
            m.put6(mem, L.load + 6 * k, t, load)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                m.put(mem, L.vector + i, t, m.dot6(m.get6(mem, L.subspace + 6 * i, t), load))

    @m.func
    def eval_frame_forces(b, t, T, P, L, mem):
        """third <- the wrenches of links plus those at `second` on frames. The latter are in the representation T.output_repr of their
        frames, and only forces if T.components is 3. If T.replace_wrenches is 1, they replace the wrenches of the frames' links."""
        m.clear(t, L.v, T.dofs, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.copy(t, L.third, L.wrenches, 6 * T.links, mem)
        if T.replace_wrenches == 1:
            for i in range(T.points):
                if m.frame_body(i, T) >= 0:
                    m.clear(t, L.third + 6 * m.frame_body(i, T), 6, mem)
        for i in range(T.points):
            k = m.frame_body(i, T)
            if k >= 0:
                f = m.spatial(m.get3(mem, L.second + T.components * i, t), m.zero3())
                if T.components == 6:
                    f = m.get6(mem, L.second + 6 * i, t)
                f = m.wrench_from(
                    T.output_repr, f, m.output_place(t, i, k, T, L, mem), m.frame_axes(t, i, k, T, L, mem)
                )
                f = m.wrench_as(
                    T.wrench_repr, f, m.place_of(t, k, T.wrench_repr, L, mem), m.get9(mem, L.rot + 9 * k, t)
                )
                m.put6(mem, L.third + 6 * k, t, m.add6(m.get6(mem, L.third + 6 * k, t), f))

    return locals()
