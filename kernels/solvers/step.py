"""A whole step of a block of worlds, as a short list of stages.

The stages come in a namespace: the general ones below, or the same ones specialised for one robot. The kernel that strings them
together, and decides which constraint rows some world of the block needs, is written once.
"""

import types

import warp as wp

from newton_like.kernels.solvers.dof_rows import ROW as DOF_ROW


def general_stages(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The stages of a step over the numbers of `m`, for any robot."""
    real = m.real

    @m.func
    def smooth(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """Kinematics, bias forces, drives, joint-space inertia and its factors."""
        m.forward_kinematics(b, t, T, P, L, mem)
        m.bias_forces(b, t, T, P, L, mem)
        m.joint_space_inertia(b, t, T, P, L, mem)
        m.apply_drives(b, t, m.fill(o.dt), T, P, L, mem)
        m.factorize(t, T, L, mem)

    @m.func
    def wrenches(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """External wrenches on bodies."""
        m.apply_wrenches(t, T, L, mem)

    @m.func
    def predict(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """The velocity without constraints, which degrees of freedom it would take beyond a limit, and candidate contacts."""
        dt = m.fill(o.dt)
        m.whiten(t, dt, T, L, mem)
        m.unwhiten(t, T, L, mem)
        for i in range(T.dofs):
            if T.dof_limits[i] != 0:
                m.put(mem, L.dof_need + i, t, m.dof_need(b, t, i, dt, T, P, L, mem))
        for s in range(T.first_hull):
            m.detect(b, t, s, dt, T, P, L, mem)
        m.put(mem, L.go, t, m.fill(real(1.0)))

    @m.func
    def contact_build(
        b: int, t: int, a: int, c: int, s: int, k: int, pl: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory
    ):
        m.contact_build(b, t, a, c, s, k, pl, o, T, P, L, mem)

    @m.func
    def contact_sweep(b: int, t: int, a: int, c: int, k: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        m.contact_sweep(t, a, c, k, T, L, mem)

    @m.func
    def dof_build(b: int, t: int, i: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        m.dof_build(b, t, i, m.fill(o.dt), T, P, L, mem)

    @m.func
    def dof_sweep(b: int, t: int, i: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        m.dof_sweep(b, t, i, m.fill(o.dt), T, P, L, mem)

    @m.func
    def recheck(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """The constrained velocity, and which limits it breaks that no row was set up for: dof_need and go, negative and one there."""
        m.unwhiten(t, T, L, mem)
        dt = m.fill(o.dt)
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        go = zero
        for i in range(T.dofs):
            if T.dof_limits[i] != 0:
                worse = m.dof_violation(b, t, i, dt, T, P, L, mem)
                m.put(mem, L.dof_fresh + i, t, worse)
                go = m.where_lt(worse, zero, one, go)
        m.put(mem, L.go, t, go)

    @m.func
    def finish(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """The new configuration, and the poses and velocities of all bodies in it."""
        m.integrate(b, t, m.fill(o.dt), T, P, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.write_bodies(b, t, T, P, L, mem)

    own = ("m", "real")
    return types.SimpleNamespace(**{k: v for k, v in locals().items() if k not in own})


def batch_struct(m: types.SimpleNamespace):
    """Where the worlds of a batch lie in the flat public arrays: first number of the first world, and stride from world to world."""

    @wp.struct
    class Batch:
        count: int
        q_start: int
        q_stride: int
        qs: int
        qd_start: int
        qd_stride: int
        qds: int
        body_start: int
        body_stride: int
        bodies: int
        kept: int
        # which inputs there are
        has_force: int
        has_target_q: int
        has_target_qd: int
        has_act: int
        has_wrench: int

    return Batch


def step_kernel(m: types.SimpleNamespace, stages: types.SimpleNamespace, Batch, flags: str | None = None):
    """The Warp kernel that steps block ``first + tid`` with the given stages. Control flow is the same for all lanes of a block."""
    real = m.real
    options = {} if flags is None else {"cpu_compiler_flags": flags}
    smooth, wrenches, predict, recheck, finish = stages.smooth, stages.wrenches, stages.predict, stages.recheck, stages.finish
    contact_build, contact_sweep = stages.contact_build, stages.contact_sweep
    dof_build, dof_sweep = stages.dof_build, stages.dof_sweep

    @wp.func
    def load(mem: m.memory, at: int, t: int, a: wp.array[real], present: int, start: int, stride: int, n: int, b: int, count: int):
        if present != 0:
            m.stage_in(mem, at, t, a, start, stride, n, b, count)
        else:
            for i in range(n):
                m.put(mem, at + i, t, m.fill(real(0.0)))

    @wp.func
    def find_contacts(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory, active: wp.array2d[int]) -> int:
        """Lists the candidates that are near in some world of the block; the impulses of the others are forgotten."""
        zero = m.fill(real(0.0))
        for s in range(T.first_hull, T.colliders):
            c = T.collider_candidate[s]
            if m.any_lt(m.hull_clearance(b, t, s, m.fill(o.dt), T, P, L, mem), zero):
                m.detect(b, t, s, m.fill(o.dt), T, P, L, mem)
            else:
                for i in range(T.collider_candidate[s + 1] - c):
                    m.put(mem, L.near + c + i, t, m.fill(real(1.0)))
        n = int(0)
        for c in range(T.candidates):
            if m.any_lt(m.get(mem, L.near + c, t), zero):
                active[n, t] = c
                n = n + 1
            else:
                for j in range(T.contact_rows):
                    m.put(mem, L.impulse + T.contact_rows * c + j, t, zero)
        return n

    @wp.func
    def find_limits(t: int, at: int, first: int, T: m.Tree, L: m.Layout, mem: m.memory, active: wp.array2d[int]) -> int:
        """Lists the degrees of freedom that need a row in some world, from place `first` on."""
        zero = m.fill(real(0.0))
        n = int(0)
        for i in range(T.dofs):
            if T.dof_limits[i] != 0:
                if m.any_lt(m.get(mem, at + i, t), zero):
                    active[first + n, t] = i
                    n = n + 1
        return n

    @wp.func
    def sweep(b: int, t: int, contacts: int, limits: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory,
              active: wp.array2d[int]):  # fmt: skip
        """Projected Gauss-Seidel over all rows, always in the same order; contacts have the last word."""
        for _ in range(o.iterations):
            for e in range(T.couplings):
                m.coupling_sweep(t, e, T, L, mem)
            for n in range(limits):
                dof_sweep(b, t, active[T.candidates + n, t], o, T, P, L, mem)
            for a in range(contacts):
                c = active[a, t]
                contact_sweep(b, t, a, c, T.candidate_body[c], o, T, P, L, mem)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def step(
        first: int,
        workers: int,
        B: Batch,
        T: m.Tree,
        P: m.Params,
        L: m.Layout,
        o: m.Options,
        # State in:
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
        body_f: wp.array[real],
        # Control:
        joint_f: wp.array[real],
        target_q: wp.array[real],
        target_qd: wp.array[real],
        act: wp.array[real],
        # Solver:
        mem: m.memory,
        active: wp.array2d[int],
        kept: m.memory,
        # State out:
        joint_q_out: wp.array[real],
        joint_qd_out: wp.array[real],
        body_q: wp.array[real],
        body_qd: wp.array[real],
    ):
        b = wp.tid() + first
        t = wp.tid() % workers
        zero = m.fill(real(0.0))
        load(mem, L.q, t, joint_q, 1, B.q_start, B.q_stride, B.qs, b, B.count)
        load(mem, L.v, t, joint_qd, 1, B.qd_start, B.qd_stride, B.qds, b, B.count)
        load(mem, L.force, t, joint_f, B.has_force, B.qd_start, B.qd_stride, B.qds, b, B.count)
        load(mem, L.target_q, t, target_q, B.has_target_q, B.q_start, B.q_stride, B.qs, b, B.count)
        load(mem, L.target_v, t, target_qd, B.has_target_qd, B.qd_start, B.qd_stride, B.qds, b, B.count)
        load(mem, L.act, t, act, B.has_act, B.qd_start, B.qd_stride, B.qds, b, B.count)
        m.recall(mem, L.impulse, t, kept, b, B.kept)

        smooth(b, t, o, T, P, L, mem)
        if B.has_wrench != 0:
            if m.any_nonzero(body_f, 6 * B.body_start, 6 * B.body_stride, 6 * B.bodies, b, B.count):
                m.stage_in(mem, L.wrench, t, body_f, 6 * B.body_start, 6 * B.body_stride, 6 * B.bodies, b, B.count)
                wrenches(b, t, o, T, P, L, mem)
        predict(b, t, o, T, P, L, mem)

        contacts = find_contacts(b, t, o, T, P, L, mem, active)
        limits = find_limits(t, L.dof_need, T.candidates, T, L, mem, active)
        for i in range(T.dofs):
            if T.dof_limits[i] != 0:
                for j in range(4):
                    at = L.dof_impulse + 4 * i + j
                    m.put(mem, at, t, m.where_lt(m.get(mem, L.dof_need + i, t), zero, m.get(mem, at, t), zero))
        for e in range(T.couplings):
            m.coupling_build(b, t, e, o, T, P, L, mem)
        for n in range(limits):
            dof_build(b, t, active[T.candidates + n, t], o, T, P, L, mem)
        for a in range(contacts):
            c = active[a, t]
            s = T.candidate_collider[c]
            contact_build(b, t, a, c, s, T.candidate_body[c], T.collider_plane[s], o, T, P, L, mem)
        sweep(b, t, contacts, limits, o, T, P, L, mem, active)

        recheck(b, t, o, T, P, L, mem)
        if m.any_lt(zero, m.get(mem, L.go, t)):
            # some world went beyond a limit nobody foresaw: those worlds alone get the missing rows and sweep again
            late = find_limits(t, L.dof_fresh, T.candidates + limits, T, L, mem, active)
            fresh = int(0)
            for n in range(late):
                i = active[T.candidates + limits + n, t]
                if m.any_lt(m.get(mem, L.dof_need + i, t), zero):
                    # the row is there, for other worlds
                    at = L.dof_row + DOF_ROW * i
                    m.put(mem, at, t, m.where_lt(m.get(mem, L.dof_fresh + i, t), zero, m.fill(real(1.0)), m.get(mem, at, t)))
                else:
                    m.put(mem, L.dof_need + i, t, m.get(mem, L.dof_fresh + i, t))
                    dof_build(b, t, i, o, T, P, L, mem)
                    active[T.candidates + limits + fresh, t] = i
                    fresh = fresh + 1
            sweep(b, t, contacts, limits + fresh, o, T, P, L, mem, active)
            m.unwhiten(t, T, L, mem)

        for i in range(B.kept):
            m.put(mem, L.impulse + i, t, m.mul(m.fill(o.inverse_dt), m.get(mem, L.impulse + i, t)))
        m.keep(mem, L.impulse, t, kept, b, B.kept)
        finish(b, t, o, T, P, L, mem)
        m.stage_out(mem, L.q, t, joint_q_out, B.q_start, B.q_stride, B.qs, b, B.count)
        m.stage_out(mem, L.v, t, joint_qd_out, B.qd_start, B.qd_stride, B.qds, b, B.count)
        m.stage_out(mem, L.body_q, t, body_q, 7 * B.body_start, 7 * B.body_stride, 7 * B.bodies, b, B.count)
        m.stage_out(mem, L.body_qd, t, body_qd, 6 * B.body_start, 6 * B.body_stride, 6 * B.bodies, b, B.count)

    return step
