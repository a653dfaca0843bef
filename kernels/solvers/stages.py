"""The stages of a step over any numbers, for any robot, and those of clusters that lack a feature, which do nothing."""

import types

import warp as wp
from newton_like.kernels.solvers.rows.dof_rows import SETTLED
from newton_like.kernels.tree import EFFORT, POSITION, PRESCRIBED, VELOCITY


def general_stages(m: types.SimpleNamespace, closed: bool = False, tensed: bool = False) -> types.SimpleNamespace:
    """The stages of a step over the numbers of `m`, for any robot; `closed`: also for those with loop joints; `tensed`: with tendons."""
    real = m.real

    @m.func
    def leave_velocity(t, T, L, mem):
        pass

    close_velocity = m.close_velocity if closed else leave_velocity

    @m.func
    def whiten_bias(t, dt: m.lane, T, L, mem):
        m.whiten(t, dt, L.bias, T, L, mem)

    @m.func
    def whiten_tense(t, dt: m.lane, T, L, mem):
        m.put_sums(t, L.trial, L.bias, L.tendon_tau, T.dofs, mem)
        m.whiten(t, dt, L.trial, T, L, mem)

    whiten_passive = whiten_tense if tensed else whiten_bias

    @m.func
    def factor_inertia(b, t, dt: m.lane, T, P, L, mem):
        m.joint_space_inertia(b, t, T, P, L, mem)
        m.add_diagonal(b, t, dt, T, P, L, mem)
        m.factorize(b, t, T, P, L, mem)

    @m.func
    def find_excess(b, t, dt: m.lane, T, P, L, mem):
        """Which drives exceed their effort limit at the velocity u; over <- whether any does."""
        over = m.fill(real(0.0))
        for i in range(T.dofs):
            if T.dof_limits[i] & EFFORT:
                x = m.drive_excess(b, t, i, dt, P, L, mem)
                m.put(mem, L.excess + i, t, x)
                over = m.larger(over, m.mul(x, x))
        m.put(mem, L.over, t, over)

    @m.func
    def free_velocity(b, t, dt: m.lane, T, P, L, mem):
        """The velocity without constraints, and which limits it asks rows for."""
        for i in range(T.dofs):
            m.put(mem, L.trial + i, t, m.add(m.get(mem, L.tau + i, t), m.get(mem, L.bias + i, t)))
        m.whiten(t, dt, L.trial, T, L, mem)
        m.unwhiten(t, T, L, mem)
        find_excess(b, t, dt, T, P, L, mem)
        for i in range(T.dofs):
            if T.dof_limits[i] & (VELOCITY | POSITION):
                m.put(mem, L.dof_need + i, t, m.dof_need(b, t, i, dt, T, P, L, mem))

    @m.func
    def smooth(b, t, o, T, P, L, mem):
        """Half a step of drift; kinematics, bias forces, drives, joint-space inertia and its factors there."""
        m.integrate(b, t, m.mul(m.fill(real(0.5)), m.fill(o.dt)), T, P, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.bias_forces(b, t, L.v, L.bias, T, P, L, mem)
        m.apply_drives(b, t, m.fill(o.dt), T, P, L, mem)
        factor_inertia(b, t, m.fill(o.dt), T, P, L, mem)

    @m.func
    def wrenches(b, t, o, T, P, L, mem):
        """External wrenches on bodies."""
        m.apply_wrenches(t, T, L, mem)

    @m.func
    def predict(b, t, o, T, P, L, mem):
        """One more iteration for centred bias forces, the velocity without constraints, and the candidate contacts. Loop joints and tendons
        count for the bias forces."""
        whiten_passive(t, m.fill(o.dt), T, L, mem)
        close_velocity(t, T, L, mem)
        m.unwhiten(t, T, L, mem)
        m.centre_bias(b, t, m.fill(o.dt), T, P, L, mem)
        free_velocity(b, t, m.fill(o.dt), T, P, L, mem)
        for s in range(T.first_guarded):
            m.detect(b, t, s, m.fill(o.dt), T, P, L, mem)
        for s in range(T.first_guarded, T.colliders):
            m.put(mem, L.clear + s, t, m.clearance(b, t, s, m.fill(o.dt), T, P, L, mem))

    @m.func
    def detect(b, t, s: int, o, T, P, L, mem):
        """The candidate contacts of a collider that is near in some world."""
        m.detect(b, t, s, m.fill(o.dt), T, P, L, mem)

    @m.func
    def saturate(b, t, o, T, P, L, mem):
        """Drives beyond their limit give just that, and the velocity without constraints follows anew."""
        m.saturate(b, t, m.fill(o.dt), T, P, L, mem)
        factor_inertia(b, t, m.fill(o.dt), T, P, L, mem)
        free_velocity(b, t, m.fill(o.dt), T, P, L, mem)

    @m.func
    def contact_build(b, t, a: int, c: int, s: int, k: int, pl: int, o, T, P, L, mem):
        m.contact_build(b, t, a, c, s, k, pl, o, T, P, L, mem)

    @m.func
    def contact_sweep(b, t, a: int, c: int, k: int, o, T, P, L, mem):
        m.contact_sweep(t, a, c, k, T, L, mem)

    @m.func
    def dof_build(b, t, i: int, full: int, o, T, P, L, mem):
        m.dof_build(b, t, i, full, o, T, P, L, mem)

    @m.func
    def dof_sweep(b, t, i: int, full: int, o, T, P, L, mem):
        m.dof_sweep(b, t, i, full, m.fill(o.dt), T, P, L, mem)

    @m.func
    def friction_sweep(b, t, o, T, P, L, mem):
        m.friction_sweep(b, t, m.fill(o.dt), T, P, L, mem)

    @m.func
    def tendon_sweep(b, t, n: int, parts: int, o, T, P, L, mem):
        m.tendon_sweep(t, n, parts, T, L, mem)

    @m.func
    def recheck(b, t, o, T, P, L, mem):
        """The constrained velocity, and which limits it breaks: those that no row enforced (fresh), and speeds that sweeps left. over is
        positive where there are any that a further solution has to mend."""
        dt = m.fill(o.dt)
        zero = m.fill(real(0.0))
        m.unwhiten(t, T, L, mem)
        find_excess(b, t, dt, T, P, L, mem)
        m.put(mem, L.speeding, t, m.speeding(b, t, m.fill(real(1.0)), T, P, L, mem))
        unsettled = m.speeding(b, t, m.fill(real(SETTLED)), T, P, L, mem)
        m.put(mem, L.unsettled, t, unsettled)
        over = m.larger(m.get(mem, L.over, t), unsettled)
        for i in range(T.dofs):
            if T.dof_limits[i] & (VELOCITY | POSITION):
                worse = m.dof_violation(b, t, i, dt, T, P, L, mem)
                m.put(mem, L.dof_fresh + i, t, worse)
                over = m.where_lt(worse, zero, m.fill(real(1.0)), over)
        m.put(mem, L.over, t, over)

    @m.func
    def finish(b, t, o, T, P, L, mem):
        """The other half of the drift, and the poses and velocities of all bodies there; the accelerations of the step."""
        m.damp_spins(t, m.fill(o.spin_share), T, L, mem)
        for i in range(T.dofs):
            u = m.get(mem, L.u + i, t)
            if T.dof_limits[i] & PRESCRIBED:
                u = m.where_prescribed(P, b, i, m.get(mem, L.v + i, t), u)
            m.put(mem, L.joint_qdd + i, t, m.mul(m.fill(o.inverse_dt), m.sub(u, m.get(mem, L.v + i, t))))
            m.put(mem, L.v + i, t, u)
        m.integrate(b, t, m.mul(m.fill(real(0.5)), m.fill(o.dt)), T, P, L, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        m.write_bodies(b, t, T, P, L, mem)

    coupling_build, coupling_sweep, detect_hull = m.coupling_build, m.coupling_sweep, m.detect
    find_pairs, pair_build = m.find_pairs, m.pair_build
    closure_rows, closure_build, closure_sweep = m.closure_rows, m.closure_build, m.closure_sweep
    closure_correct, closure_load = m.closure_correct_tied if tensed else m.closure_correct, m.closure_load
    tendon_load, tendon_forces, tendon_build = m.tendon_load, m.tendon_forces, m.tendon_build
    tendon_hold, tendon_report = m.tendon_hold, m.tendon_report
    actuate, actuator_forces, adhere, relieve = m.actuate, m.actuator_forces, m.adhere, m.relieve
    recall_feature, keep_feature, forget_feature = m.recall_feature, m.keep_feature, m.forget_feature
    own = (
        "m", "real", "closed", "tensed", "close_velocity", "leave_velocity", "whiten_bias", "whiten_tense", "whiten_passive",
        "factor_inertia", "find_excess", "free_velocity",
    )  # fmt: skip
    return types.SimpleNamespace(**{k: v for k, v in locals().items() if k not in own})


def stages_without_pairs(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The stages of a step that concern pairs, for clusters without any: they do nothing."""

    @wp.func_native("")
    def pair_build(
        b: int, t: int, a: int, c: int, p: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory
    ): ...

    @wp.func_native("")
    def recall_feature(b: int, t: int, c: int, n: int, T: m.Tree, L: m.Layout, mem: m.memory, kept: m.memory): ...

    @wp.func_native("")
    def keep_feature(b: int, t: int, c: int, n: int, T: m.Tree, L: m.Layout, mem: m.memory, kept: m.memory): ...

    @wp.func_native("")
    def forget_feature(t: int, c: int, T: m.Tree, L: m.Layout, mem: m.memory): ...

    return types.SimpleNamespace(
        find_pairs=m.no_pairs, pair_build=pair_build, recall_feature=recall_feature, keep_feature=keep_feature,
        forget_feature=forget_feature,
    )  # fmt: skip


def stages_without_loops(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The stages of a step that concern loop joints, for clusters without any: they do nothing."""

    @wp.func_native("")
    def closure_load(b: int, t: int, first_here: bool, T: m.Tree, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def closure_rows(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def closure_correct(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def closure_build(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def closure_sweep(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    return types.SimpleNamespace(
        closure_load=closure_load, closure_rows=closure_rows, closure_build=closure_build, closure_sweep=closure_sweep,
        closure_correct=closure_correct,
    )  # fmt: skip


def stages_without_actuators(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The stages of a step that concern actuators, for clusters without any: they do nothing."""

    @wp.func_native("")
    def actuate(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def actuator_forces(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def relieve(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def adhere(
        b: int, t: int, contacts: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory, active: wp.array2d[int]
    ): ...  # fmt: skip

    return types.SimpleNamespace(actuate=actuate, actuator_forces=actuator_forces, adhere=adhere, relieve=relieve)


def stages_without_tendons(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The stages of a step that concern tendons, for clusters without any: they do nothing."""

    @wp.func_native("")
    def tendon_load(b: int, t: int, first_here: bool, T: m.Tree, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def tendon_forces(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

    @wp.func_native("")
    def tendon_builds(
        b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory, active: wp.array2d[int]
    ): ...

    @wp.func_native("")
    def tendon_sweeps(
        b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory, active: wp.array2d[int]
    ): ...

    @wp.func_native("")
    def tendon_sweeps_back(
        b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory, active: wp.array2d[int]
    ): ...

    @wp.func_native("")
    def tendon_report(t: int, T: m.Tree, L: m.Layout, mem: m.memory): ...

    return types.SimpleNamespace(
        tendon_forces=tendon_forces, tendon_builds=tendon_builds, tendon_sweeps=tendon_sweeps, tendon_sweeps_back=tendon_sweeps_back,
        tendon_load=tendon_load, tendon_report=tendon_report,
    )  # fmt: skip
