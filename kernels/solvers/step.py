"""A whole step of a block of worlds, as a short list of stages.

The stages come in a namespace: the general ones of `kernels.solvers.stages`, or the same ones specialised for one robot. The kernel that
strings them together, and decides which constraint rows some world of the block needs, is written once.
"""

import types
from typing import NamedTuple

import warp as wp
from newton_like.kernels.collision.pairs.records import SLOT, SLOT_FEATURE, SLOT_IDS
from newton_like.kernels.collision.report import report_function
from newton_like.kernels.pieces import step_moves
from newton_like.kernels.simd import GENERAL_FLAGS, module_options
from newton_like.kernels.solvers.integrate import ENOUGH, EXACT, FAST, UNSETTLED
from newton_like.kernels.solvers.rows.deep import deep_function
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES, HELD, OF_VELOCITY
from newton_like.kernels.solvers.stages import (
    stages_without_actuators,
    stages_without_loops,
    stages_without_pairs,
    stages_without_tendons,
)
from newton_like.kernels.solvers.sweeps import sweep_function
from newton_like.kernels.solvers.tendons import tendon_loops
from newton_like.kernels.tree import FRICTION, GIVEN, GIVEN_ON, POSITION, VELOCITY

# Largest number of further solutions of a step. Each starts from the impulses of the previous one: the first where any limit is broken,
# the others where a velocity is above its limit.
AGAIN = 3


class Features(NamedTuple):
    """What the clusters of a step have. The kernel has no code for features that they lack.

    Attributes:
        given: contacts are handed over, and not looked for.
        paired: bodies may touch each other.
        surfaces: there are height fields or meshes.
        closed: there are loop joints.
        tensed: there are tendons.
        actuated: there are actuators, or bodies that are relieved of weight.
        bonded: sweeps go on because of couplings, loop joints or tendons.
        slotted: contacts are in slots, see `kernels.collision.pairs.gathered`.
        summed: sums of forces of actuators have ranges, see `kernels.solvers.force_ranges`.
    """

    given: bool = False
    paired: bool = False
    surfaces: bool = False
    closed: bool = False
    tensed: bool = False
    actuated: bool = False
    bonded: bool = False
    slotted: bool = False
    summed: bool = False


def step_kernel(
    m: types.SimpleNamespace,
    stages: types.SimpleNamespace,
    features: Features,
    flags: str = GENERAL_FLAGS,
    level: int | None = None,
):
    """The Warp kernel that steps block ``first + tid`` with the given stages. Control flow is the same for all lanes of a block.

    Args:
        m: the programs' namespace.
        stages: those of a step, general or specialised.
        features: of the clusters.
        flags: of the compiler for CPUs.
        level: of optimisation, or None for Warp's choice.
    """
    given, paired, surfaces, closed, tensed, actuated, bonded, slotted, summed = features
    if not closed:
        stages = types.SimpleNamespace(**{**vars(stages), **vars(stages_without_loops(m))})
    of_tendons = tendon_loops(m, stages) if tensed else stages_without_tendons(m)
    stages = types.SimpleNamespace(**{**vars(stages), **vars(of_tendons)})
    if not actuated:
        stages = types.SimpleNamespace(**{**vars(stages), **vars(stages_without_actuators(m))})
    if summed:
        stages = types.SimpleNamespace(**{**vars(stages), "actuator_forces": m.actuator_forces_in_ranges})
    if surfaces:
        stages = types.SimpleNamespace(**{**vars(stages), "find_pairs": m.find_pairs_and_surfaces})
    if not paired:
        stages = types.SimpleNamespace(**{**vars(stages), **vars(stages_without_pairs(m))})
    real = m.real
    options = module_options(flags, m.width, level)
    moves = step_moves(m, slotted)
    bring, take, any_given = moves.bring, moves.take, moves.any_given
    prefetch_inputs, prefetch_results = moves.prefetch_inputs, moves.prefetch_results
    smooth, wrenches, predict, saturate = stages.smooth, stages.wrenches, stages.predict, stages.saturate
    recheck, finish, detect, detect_hull = stages.recheck, stages.finish, stages.detect, stages.detect_hull
    coupling_build, contact_build = stages.coupling_build, stages.contact_build
    pair_build, dof_build = stages.pair_build, stages.dof_build
    find_pairs, recall_feature = stages.find_pairs, stages.recall_feature
    keep_feature, forget_feature = stages.keep_feature, stages.forget_feature
    closure_rows, closure_build, closure_sweep = stages.closure_rows, stages.closure_build, stages.closure_sweep
    closure_correct, closure_load = stages.closure_correct, stages.closure_load
    tendon_forces, tendon_builds, tendon_report = stages.tendon_forces, stages.tendon_builds, stages.tendon_report
    tendon_load = stages.tendon_load
    actuate, actuator_forces = stages.actuate, stages.actuator_forces
    adhere, relieve = stages.adhere, stages.relieve

    @m.func
    def one_tree(T) -> int:
        return 1

    @m.func
    def trees_of(T) -> int:
        return T.trees

    @m.func
    def never_wrenched(T) -> bool:
        return False

    @m.func
    def relieved(T) -> bool:
        return T.relieved != 0

    wrenched = relieved if actuated else never_wrenched

    # a cluster without pairs is a single tree
    trees = trees_of if paired else one_tree

    @m.func
    def any_above(bound: m.lane, at: int, t, T, mem) -> bool:
        """Whether a number of the trees at `at` is above `bound` in some world."""
        found = bool(False)
        for i in range(trees(T)):
            if m.any_lt(bound, m.get(mem, at + i, t)):
                found = bool(True)
        return found

    @m.func
    def plan_iterations(done: int, t, T, L, mem) -> int:
        """How many iterations for centred bias forces there shall have been, and in which worlds; `done` where that is enough."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        enough = m.fill(real(ENOUGH))
        hopeless = one
        planned = int(3)
        if done == 3:
            enough = m.fill(real(EXACT))
            planned = 7
        elif done == 7:
            enough = m.fill(real(UNSETTLED))
            hopeless = enough
            planned = 8
        if done == 8 or not any_above(enough, L.bias_change, t, T, mem):
            return done
        for i in range(trees(T)):
            change = m.get(mem, L.bias_change + i, t)
            m.put(mem, L.bias_change + i, t, m.where_lt(enough, change, one, zero))
            m.put(mem, L.bias_share + i, t, m.where_lt(hopeless, change, zero, m.get(mem, L.bias_share + i, t)))
        return planned

    @m.func
    def look_at_collider(b, t, s: int, o, T, P, L, mem) -> bool:
        """Whether candidates of collider s may be near, which are known then."""
        near = bool(True)
        if s >= T.first_guarded:
            near = m.any_lt(m.get(mem, L.clear + s, t), m.fill(real(0.0)))
            if near:
                if s < T.first_hull:
                    detect(b, t, s, o, T, P, L, mem)
                else:
                    detect_hull(b, t, s, m.fill(o.dt), T, P, L, mem)
        return near

    @m.func
    def find_contacts(b, t, o, T, P, L, mem, contacts_in: m.memory, active: wp.array2d[int]) -> int:
        """Lists the candidates that are near in some world of the block."""
        zero = m.fill(real(0.0))
        n = int(0)
        for s in range(T.colliders):
            if look_at_collider(b, t, s, o, T, P, L, mem):
                for c in range(T.collider_candidate[s], T.collider_candidate[s + 1]):
                    if m.any_lt(m.get(mem, L.near + c, t), zero):
                        active[n, t] = c
                        n = n + 1
        return find_pairs(b, t, n, m.fill(o.dt), T, P, L, mem, active)

    @m.func
    def fill_slots(b, t, o, T, P, L, mem, contacts_in: m.memory, active: wp.array2d[int]) -> int:
        """Gives the contacts of each world slots, which are the active contacts."""
        zero = m.fill(real(0.0))
        m.clear_slots(t, L, mem)
        slots = int(0)
        for s in range(T.colliders):
            if look_at_collider(b, t, s, o, T, P, L, mem):
                for c in range(T.collider_candidate[s], T.collider_candidate[s + 1]):
                    if m.any_lt(m.get(mem, L.near + c, t), zero):
                        slots = m.append_candidate(b, t, c, s, slots, T, P, L, mem, active)
        slots = m.gather_pairs(b, t, slots, m.fill(o.dt), T, P, L, mem, active)
        for n in range(slots):
            active[n, t] = n
        return slots

    @m.func
    def place_beside_fixed(b, t, c: int, o, T, L, mem):
        m.given_candidate(b, t, c, T.candidate_body[c], m.fill(o.dt), T, L, mem)

    @m.func
    def place_any(b, t, c: int, o, T, L, mem):
        if c < T.first_paired:
            place_beside_fixed(b, t, c, o, T, L, mem)
        else:
            m.given_pair_candidate(b, t, c, T.candidate_collider[c], T, L, mem)

    place_given = place_any if paired else place_beside_fixed

    @m.func
    def take_contacts(b, t, o, T, P, L, mem, contacts_in: m.memory, active: wp.array2d[int]) -> int:
        """Lists the candidates that some world of the block was handed."""
        zero = m.fill(real(0.0))
        n = int(0)
        if paired:
            m.weigh_trees(t, T, L, mem)
        for c in range(T.candidates):
            m.recall(mem, L.given + GIVEN * c + GIVEN_ON, GIVEN * c + GIVEN_ON, t, contacts_in, b, 1)
            if m.any_lt(zero, m.get(mem, L.given + GIVEN * c + GIVEN_ON, t)):
                m.recall(mem, L.given + GIVEN * c, GIVEN * c, t, contacts_in, b, GIVEN)
                place_given(b, t, c, o, T, L, mem)
                active[n, t] = c
                n = n + 1
        return n

    @m.func
    def build_on_plane(b, t, a: int, c: int, o, T, P, L, mem):
        s = T.candidate_collider[c]
        contact_build(b, t, a, c, s, T.candidate_body[c], T.collider_plane[s], o, T, P, L, mem)

    @m.func
    def build_of_any(b, t, a: int, c: int, o, T, P, L, mem):
        if c < T.first_paired:
            build_on_plane(b, t, a, c, o, T, P, L, mem)
        else:
            pair_build(b, t, a, c, T.candidate_collider[c], o, T, P, L, mem)

    @m.func
    def build_beside_fixed(b, t, a: int, c: int, o, T, P, L, mem):
        m.given_build(b, t, a, c, T.candidate_body[c], o, T, P, L, mem)

    @m.func
    def build_any_given(b, t, a: int, c: int, o, T, P, L, mem):
        if c < T.first_paired:
            build_beside_fixed(b, t, a, c, o, T, P, L, mem)
        else:
            m.given_pair_build(b, t, a, c, T.candidate_collider[c], o, T, P, L, mem)

    list_found = fill_slots if slotted else find_contacts
    list_contacts = take_contacts if given else list_found
    build_found = build_of_any if paired else build_on_plane
    build_given = build_any_given if paired else build_beside_fixed
    build_contact = build_given if given else build_found

    @m.func
    def build_listed(b, t, contacts: int, o, T, P, L, mem, active: wp.array2d[int]):
        for a in range(contacts):
            build_contact(b, t, a, active[a, t], o, T, P, L, mem)

    @m.func
    def build_slots(b, t, contacts: int, o, T, P, L, mem, active: wp.array2d[int]):
        for s in range(contacts):
            m.slot_build(b, t, s, o, T, P, L, mem, active)

    build_contacts = build_slots if slotted else build_listed

    @m.func
    def find_limits(t, T, L, mem, active: wp.array2d[int]) -> int:
        """Lists, behind the contacts, the degrees of freedom that need a row in some world, as 2 i or, with hard limits, 2 i + 1."""
        zero = m.fill(real(0.0))
        n = int(0)
        for i in range(T.dofs):
            limits = T.dof_limits[i]
            full = int(0)
            if (limits & (VELOCITY | POSITION)) != 0:
                need = m.get(mem, L.dof_need + i, t)
                for j in range(OF_VELOCITY, DOF_IMPULSES):
                    at = L.dof_impulse + DOF_IMPULSES * i + j
                    m.put(mem, at, t, m.where_lt(need, zero, m.get(mem, at, t), zero))
                if m.any_lt(need, zero):
                    full = 1
            if full + (limits & FRICTION) != 0:
                active[T.candidates + n, t] = 2 * i + full
                n = n + 1
        return n

    sweep = sweep_function(m, stages, paired, bonded, slotted)
    report_contact = report_function(m, slotted)
    push_deep = deep_function(m, slotted)

    @m.func
    def constrain(b, t, contacts: int, limits: int, o, T, P, L, mem, active: wp.array2d[int]):
        """Sets up all rows and sweeps them by projected Gauss-Seidel."""
        m.put(mem, L.warm_work, t, m.fill(real(0.0)))
        m.copy(t, L.free_z, L.z, T.dofs, mem)
        if T.prescribed != 0:
            m.set_aside(b, t, T, P, L, mem)
        for e in range(T.couplings):
            coupling_build(b, t, e, o, T, P, L, mem)
        closure_build(b, t, o, T, P, L, mem)
        tendon_builds(b, t, o, T, P, L, mem, active)
        for n in range(limits):
            i = active[T.candidates + n, t]
            dof_build(b, t, i // 2, i % 2, o, T, P, L, mem)
        build_contacts(b, t, contacts, o, T, P, L, mem, active)
        adhere(b, t, contacts, o, T, P, L, mem, active)
        if T.prescribed != 0:
            m.bring_back(b, t, T, P, L, mem)
        push_deep(b, t, contacts, o, T, P, L, mem, active)
        m.start_cold(t, contacts, limits, T, L, mem, active)
        # all dofs with friction are in the list: without a hard limit among them they are visited in one go
        plain = bool(limits > 0)
        for n in range(limits):
            if active[T.candidates + n, t] % 2 == 1:
                plain = bool(False)
        sweep(b, t, contacts, limits, plain, o, T, P, L, mem, active)
        if paired:
            m.hold_back(b, t, contacts, limits, T, P, L, mem, active)
        m.calm_bounces(b, t, contacts, limits, T, P, L, mem, active)
        # loops are swept last
        closure_sweep(b, t, o, T, P, L, mem)

    @m.func
    def as_forces(t, at: int, n: int, o, mem):
        """Impulses become forces."""
        m.scale_rows(t, at, n, m.fill(o.inverse_dt), mem)

    @m.func
    def forget(t, c: int, T, L, mem):
        """No force at candidate c."""
        m.clear(t, L.impulse + T.contact_rows * c, T.contact_rows, mem)

    @m.func
    def put_aside(t, i: int, n: int, o, L, mem):
        """Copies n impulses from number i on; they become forces."""
        m.copy(t, L.first_impulse + i, L.impulse + i, n, mem)
        as_forces(t, L.impulse + i, n, o, mem)

    @m.func
    def take_back(t, first: int, n: int, over: m.lane, L, mem):
        """Takes n impulses from the copy, from number `first` on, where over is not positive."""
        for i in range(first, first + n):
            old = m.get(mem, L.first_impulse + i, t)
            m.put(mem, L.impulse + i, t, m.where_lt(m.fill(real(0.0)), over, m.get(mem, L.impulse + i, t), old))

    @m.func
    def again(b, t, contacts: int, others: int, o, T, P, L, mem, active: wp.array2d[int]) -> int:
        """Solves once more with the limits that turned out to be broken, and with all of them where a speed has not settled. Worlds without
        a broken one keep what they had. over <- positive where a speed has not settled now. `others`: how many impulses there are beside
        those of contacts."""
        zero = m.fill(real(0.0))
        rows = T.contact_rows
        over = m.get(mem, L.over, t)
        speeding = m.get(mem, L.speeding, t)
        every = m.neg(m.get(mem, L.unsettled, t))
        for i in range(T.dofs):
            m.put(mem, L.first_u + i, t, m.get(mem, L.u + i, t))
            need = m.smaller(m.get(mem, L.dof_need + i, t), m.get(mem, L.dof_fresh + i, t))
            m.put(mem, L.dof_fresh + i, t, m.smaller(need, every))
        for a in range(contacts):
            put_aside(t, rows * active[a, t], rows, o, L, mem)
        put_aside(t, rows * T.candidates, others, o, L, mem)
        saturate(b, t, o, T, P, L, mem)
        closure_rows(b, t, o, T, P, L, mem)
        for i in range(T.dofs):
            m.put(mem, L.dof_need + i, t, m.smaller(m.get(mem, L.dof_need + i, t), m.get(mem, L.dof_fresh + i, t)))
        limits = find_limits(t, T, L, mem, active)
        constrain(b, t, contacts, limits, o, T, P, L, mem, active)
        recheck(b, t, o, T, P, L, mem)
        m.put(mem, L.speeding, t, m.where_lt(zero, over, m.get(mem, L.speeding, t), speeding))
        m.put(mem, L.over, t, m.where_lt(zero, over, m.get(mem, L.unsettled, t), zero))
        for i in range(T.dofs):
            old = m.get(mem, L.first_u + i, t)
            m.put(mem, L.u + i, t, m.where_lt(zero, over, m.get(mem, L.u + i, t), old))
        for a in range(contacts):
            take_back(t, rows * active[a, t], rows, over, L, mem)
        take_back(t, rows * T.candidates, others, over, L, mem)
        return limits

    @m.func
    def recall_candidates(b, t, T, L, mem, kept: m.memory, kept_active: wp.array2d[int]):
        """The forces of the step before come back to their candidates."""
        for n in range(kept_active[b, 0]):
            c = kept_active[b, 1 + n]
            m.recall(
                mem, L.impulse + T.contact_rows * c, L.kept_impulse + T.contact_rows * n, t, kept, b, T.contact_rows
            )
            recall_feature(b, t, c, n, T, L, mem, kept)

    @m.func
    def keep_candidates(
        b, t, contacts: int, o, T, L, mem, active: wp.array2d[int], kept: m.memory, kept_active: wp.array2d[int]
    ):
        """Keeps the forces of active contacts alone, in the order of their candidates; the rest of the memory stays zero."""
        rows = T.contact_rows
        for n in range(contacts):
            c = active[n, t]
            as_forces(t, L.impulse + rows * c, rows, o, mem)
            keep_feature(b, t, c, n, T, L, mem, kept)
            m.keep(mem, L.impulse + rows * c, L.kept_impulse + rows * n, t, kept, b, rows)
            forget(t, c, T, L, mem)
        for n in range(kept_active[b, 0]):
            c = kept_active[b, 1 + n]
            forget(t, c, T, L, mem)
            forget_feature(t, c, T, L, mem)
        for n in range(contacts):
            kept_active[b, 1 + n] = active[n, t]
        kept_active[b, 0] = contacts

    @m.func
    def recall_slots(b, t, T, L, mem, kept: m.memory, kept_active: wp.array2d[int]):
        """The same for contacts in slots, which the contacts of this step do not have yet."""
        n = kept_active[b, 0]
        m.recall(mem, L.old_impulse, L.kept_impulse, t, kept, b, T.contact_rows * n)
        m.recall(mem, L.old_feature, L.kept_feature, t, kept, b, n)
        m.recall(mem, L.old_pair, L.kept_old_pair, t, kept, b, n)

    @m.func
    def keep_slots(
        b, t, contacts: int, o, T, L, mem, active: wp.array2d[int], kept: m.memory, kept_active: wp.array2d[int]
    ):
        """Keeps the forces of contacts in slots, with their pairs and features."""
        rows = T.contact_rows
        as_forces(t, L.impulse, rows * contacts, o, mem)
        for n in range(contacts):
            m.slot_to_world(t, n, T, L, mem)
            m.keep(mem, L.slot + SLOT * n + SLOT_FEATURE, L.kept_feature + n, t, kept, b, 1)
            m.keep(mem, L.slot + SLOT * n + SLOT_IDS, L.kept_old_pair + n, t, kept, b, 1)
        m.keep(mem, L.impulse, L.kept_impulse, t, kept, b, rows * contacts)
        kept_active[b, 0] = contacts

    recall_contacts = recall_slots if slotted else recall_candidates
    keep_contacts = keep_slots if slotted else keep_candidates

    @m.func
    def no_shapes(b, t, first_here: bool, T, P, L, mem):
        pass

    load_shapes = m.load_shapes if slotted else no_shapes

    @m.func
    def match_none(b, t, contacts: int, T, L, mem, kept_active: wp.array2d[int]):
        pass

    @m.func
    def match_slots(b, t, contacts: int, T, L, mem, kept_active: wp.array2d[int]):
        m.recall_slots(t, contacts, kept_active[b, 0], T, L, mem)

    match_contacts = match_slots if slotted else match_none

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def step(
        first: int,
        columns: int,
        B: m.Batch,
        T: m.Tree,
        P: m.Params,
        L: m.Layout,
        o: m.Options,
        mask: wp.array[bool],
        # of articulations, where these are arranged
        order: wp.array[int],
        mem: m.memory,
        # scratch, what outlives a step (kept), and contacts that are handed over
        active: wp.array2d[int],
        kept: m.memory,
        kept_active: wp.array2d[int],
        contacts_in: m.memory,
        # places of active contacts; without lanes, nothing requested them
        report: m.memory,
        # in, wrenches first:
        inputs: int,
        pieces_in: wp.array[m.Piece],
        # out:
        outputs: int,
        pieces_out: wp.array[m.Piece],
    ):
        b = wp.tid() + first
        t = wp.tid() % columns
        zero = m.fill(real(0.0))
        bring(b, t, B, order, 1, inputs, pieces_in, mem)
        m.recall(mem, L.account, L.kept_account, t, kept, b, trees(T))
        m.recall(mem, L.owed, L.kept_owed, t, kept, b, trees(T))
        recall_contacts(b, t, T, L, mem, kept, kept_active)
        m.recall(mem, L.coupling_impulse, L.kept_coupling_impulse, t, kept, b, T.bonds)
        m.clear(t, L.dof_impulse, T.limit_rows, mem)
        if kept_active[b, T.candidates + 1] != 0:
            m.recall(mem, L.dof_impulse, L.kept_dof_impulse, t, kept, b, T.limit_rows)

        actuate(b, t, o, T, P, L, mem)
        # between stages, memory for the results of this block and inputs of the next one are read ahead
        prefetch_results(b, B, order, 0, 0, outputs, pieces_out)
        smooth(b, t, o, T, P, L, mem)
        prefetch_results(b, B, order, 1, 0, outputs, pieces_out)
        if wrenched(T) or any_given(b, B, order, pieces_in, 0):
            bring(b, t, B, order, 0, 1, pieces_in, mem)
            relieve(b, t, T, P, L, mem)
            wrenches(b, t, o, T, P, L, mem)
        # what is equal in all worlds stays in the memory of a worker
        first_here = bool(wp.tid() < columns)
        tendon_load(b, t, first_here, T, L, mem)
        tendon_forces(b, t, o, T, P, L, mem)
        actuator_forces(b, t, o, T, P, L, mem)
        for i in range(trees(T)):
            m.put(mem, L.bias_change + i, t, m.fill(real(1.0)))
            m.put(mem, L.bias_share + i, t, m.fill(real(0.5)))
        prefetch_results(b, B, order, 2, 0, outputs, pieces_out)
        closure_load(b, t, first_here, T, L, mem)
        load_shapes(b, t, first_here, T, P, L, mem)
        closure_rows(b, t, o, T, P, L, mem)
        prefetch_results(b, B, order, 3, 0, outputs, pieces_out)
        done = int(0)
        planned = int(1)
        while done < planned:
            predict(b, t, o, T, P, L, mem)
            done = done + 1
            if done == 1:
                # what could not be taken back yet is asked for again
                for i in range(trees(T)):
                    change = m.get(mem, L.bias_change + i, t)
                    m.put(mem, L.fastness + i, t, m.larger(change, m.get(mem, L.owed + i, t)))
            if done == planned:
                planned = plan_iterations(done, t, T, L, mem)
        for _ in range(o.drive_passes):
            if m.any_lt(zero, m.get(mem, L.over, t)):
                saturate(b, t, o, T, P, L, mem)
                closure_rows(b, t, o, T, P, L, mem)
        prefetch_inputs(b + 1, B, order, 0, 0, inputs, pieces_in)
        contacts = list_contacts(b, t, o, T, P, L, mem, contacts_in, active)
        match_contacts(b, t, contacts, T, L, mem, kept_active)
        limits = find_limits(t, T, L, mem, active)
        prefetch_inputs(b + 1, B, order, 1, 0, inputs, pieces_in)
        constrain(b, t, contacts, limits, o, T, P, L, mem, active)
        prefetch_inputs(b + 1, B, order, 2, 0, inputs, pieces_in)
        recheck(b, t, o, T, P, L, mem)
        for _ in range(AGAIN):
            if m.any_lt(zero, m.get(mem, L.over, t)):
                limits = again(b, t, contacts, T.bonds + T.limit_rows, o, T, P, L, mem, active)

        if report.shape[1] > 0:
            for n in range(contacts):
                report_contact(b, t, active[n, t], n, T, L, mem, report)
        closure_correct(b, t, o, T, P, L, mem)
        prefetch_inputs(b + 1, B, order, 3, 0, inputs, pieces_in)
        keep_contacts(b, t, contacts, o, T, L, mem, active, kept, kept_active)
        as_forces(t, L.coupling_impulse, T.bonds, o, mem)
        tendon_report(t, T, L, mem)
        m.keep(mem, L.coupling_impulse, L.kept_coupling_impulse, t, kept, b, T.bonds)
        m.keep(mem, L.tendon_force, L.kept_tendon_force, t, kept, b, T.tendons)
        if limits > 0:
            as_forces(t, L.dof_impulse, T.limit_rows, o, mem)
            m.keep(mem, L.dof_impulse, L.kept_dof_impulse, t, kept, b, T.limit_rows)
        kept_active[b, T.candidates + 1] = limits
        fast = m.fill(real(FAST))
        if any_above(fast, L.fastness, t, T, mem):
            # accelerations are changes of v, which is scratch here
            m.copy(t, L.first_u, L.v, T.dofs, mem)
            m.balance(b, t, m.fill(o.dt), fast, T, P, L, mem)
            m.copy(t, L.v, L.first_u, T.dofs, mem)
            m.keep(mem, L.account, L.kept_account, t, kept, b, trees(T))
            m.keep(mem, L.owed, L.kept_owed, t, kept, b, trees(T))
            m.put(mem, L.speeding, t, m.speeding(b, t, m.fill(real(1.0)), T, P, L, mem))
        if m.any_lt(zero, m.get(mem, L.speeding, t)):
            if m.any_lt(zero, m.speeding(b, t, m.fill(real(HELD)), T, P, L, mem)):
                m.slow_down(b, t, T, P, L, mem)
            m.hold_speeds(b, t, T, P, L, mem)
        finish(b, t, o, T, P, L, mem)
        take(b, t, B, order, outputs, pieces_out, mask, mem)

    return step
