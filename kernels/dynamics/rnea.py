"""Bias forces by the recursive Newton-Euler algorithm (Luh, Walker and Paul 1980; Featherstone 2008, table 5.1).

With all joint accelerations zero and the world accelerating upward by -g, every body carries its drift a:

    f = m a_com,   n = I alpha + w x I w   (about the centre of mass),   h_i = S_i . (sum of f, n over the subtree)
"""

import types


def rnea_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``bias_forces``."""

    @m.func
    def bias_accelerations(b: int, t: int, vel: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """The acceleration of every body while all qdd are zero, gravity included."""
        m.put6(mem, L.drift + 6 * T.bodies, t, m.spatial(m.neg3(m.gravity(P, b)), m.zero3()))
        for k in range(T.bodies):
            a = m.add6(m.get6(mem, L.drift + 6 * T.parent[k], t), m.joint_drift(t, k, vel, T, L, mem))
            m.put6(mem, L.drift + 6 * k, t, a)

    @m.func
    def body_load(b: int, t: int, k: int, P: m.Params, L: m.Layout, mem: m.memory) -> m.Spatial:
        """The wrench, about the origin, that gives body k its drift."""
        v = m.get6(mem, L.twist + 6 * k, t)
        a = m.get6(mem, L.drift + 6 * k, t)
        c = m.get3(mem, L.com + 3 * k, t)
        i = m.sym_rotate(m.body_inertia(P, b, k), m.get9(mem, L.rot + 9 * k, t))
        at_com = m.add3(m.velocity_at(a, c), m.cross(v.w, m.velocity_at(v, c)))
        f = m.scale3(at_com, m.body_param(P, b, 10 * k))
        n = m.add3(m.sym_apply(i, a.w), m.cross(v.w, m.sym_apply(i, v.w)))
        return m.spatial(f, m.add3(n, m.cross(c, f)))

    @m.shared
    def bias_forces(b: int, t: int, vel: int, out: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """out <- -h, the bias forces (Coriolis, centrifugal, gyroscopic, gravity) at the velocities `vel`, on the other side of the
        equation of motion. The bodies' twists must be those of `vel`."""
        bias_accelerations(b, t, vel, T, P, L, mem)
        for back in range(T.bodies):
            k = T.bodies - 1 - back
            f = body_load(b, t, k, P, L, mem)
            for i in range(T.child_at[k], T.child_at[k + 1]):
                f = m.add6(f, m.get6(mem, L.load + 6 * T.child[i], t))
            m.put6(mem, L.load + 6 * k, t, f)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                m.put(mem, out + i, t, m.neg(m.dot6(m.get6(mem, L.subspace + 6 * i, t), f)))

    @m.func
    def eval_bias_forces(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """vector <- h, in the representation T.base"""
        m.prepare(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.columns, mem)
        bias_forces(b, t, L.v, L.vector, T, P, L, mem)
        for i in range(T.dofs):
            m.put(mem, L.vector + i, t, m.neg(m.get(mem, L.vector + i, t)))

    return types.SimpleNamespace(
        **vars(m), bias_accelerations=bias_accelerations, body_load=body_load, bias_forces=bias_forces,
        eval_bias_forces=eval_bias_forces,
    )  # fmt: skip
