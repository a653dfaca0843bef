"""Forward dynamics for reverse mode, by the implicit function theorem: accelerations x solve tau - ID(q, nu, x) = 0, so that

    d x = M^-1 (d tau - d ID(q, nu, x) at constant x)

(Carpentier and Mansard 2018, "Analytical derivatives of rigid body dynamics algorithms", section IV). The program computes
x + M^-1 (tau - ID(q, nu, x)), one step of iterative refinement, in which x and the factors of M are constants. The value is
that of forward dynamics, and its backward pass takes one solve and the adjoint of inverse dynamics.
"""

import types


def implicit_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``detach_rows`` and ``eval_forward_dynamics_implicit``."""

    @m.func
    def detach_rows(t, at: int, n: int, mem):
        for i in range(n):
            m.put(mem, at + i, t, m.detach(m.get(mem, at + i, t)))

    @m.func
    def eval_forward_dynamics_implicit(b, t, T, P, L, mem):
        """vector <- accelerations under the forces `force` and the wrenches of links, in the representation T.output_repr"""
        m.accelerating_forces(b, t, L.vector, T, P, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        m.factorize_apart(b, t, T, P, L, mem)
        for i in range(T.dofs):
            detach_rows(t, L.h + T.chain_at[i], T.depth[i] + 1, mem)
        detach_rows(t, L.pivot, T.dofs, mem)
        m.solve(t, L.vector, T, L, mem)
        for i in range(T.dofs):
            m.put(mem, L.acceleration + i, t, m.detach(m.get(mem, L.vector + i, t)))
        m.residual(b, t, L.vector, T, P, L, mem)
        m.solve(t, L.vector, T, L, mem)
        m.put_sums(t, L.vector, L.acceleration, L.vector, T.dofs, mem)
        m.base_accelerations(t, T, L, mem)

    return locals()
