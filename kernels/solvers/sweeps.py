"""Sweeps over all constraint rows of a block of worlds: projected Gauss-Seidel, and where bodies may touch each other more than that.

An impulse passes about one contact a sweep, so a pile needs many sweeps. There, impulses are extrapolated along their change (Nesterov
1983), with restarts (O'Donoghue and Candes 2015), and sweeps go on until the velocities settle. After some sweeps forwards, sweeps come in
pairs, one backwards and one forwards: symmetric Gauss-Seidel descends in a symmetric metric, so it can be accelerated, while many
extrapolated sweeps in one direction diverge. These start anew where a sweep changes much more than the one before.

Sweeps of a robot alone with couplings, loop joints or tendons go on as well, without extrapolation.

A robot whose links touch each other has other contacts in each world. There, contacts of a block of several worlds are packed. The first
sweeps start from mixtures of the results of those before them (`kernels.solvers.mixing`), and worlds that have not settled after some
sweeps are solved one at a time by steps of Newton (`kernels.solvers.finish`). For worlds with too many rows, and where a thread has one
world, steps of Newton alternate with extrapolated sweeps (`kernels.solvers.polish`).
"""

import types

import warp as wp
from newton_like.kernels.solvers.mixing import FRESH
from newton_like.kernels.solvers.packed import GROWN, WILD
from newton_like.kernels.solvers.polish import STILL
from newton_like.kernels.solvers.rows.dof_rows import DOF_IMPULSES
from newton_like.kernels.tree import FRICTION, VELOCITY, VELOCITY_LIMIT

FORWARDS = 64
"""Sweeps in one direction before pairs of sweeps."""

ROUNDS = 3
"""Rounds of further sweeps, each with as many sweeps as there were before it."""

LONGEST = 2**ROUNDS
"""All sweeps, at most, in units of ``iterations``."""

EARLY = 0.01
"""A world is done after half of ``iterations`` if these sweeps changed its velocities by less than this part of `tolerance`."""

FOLLOWING = 3
"""Sweeps after a step of Newton."""

SINGLY, ALTERNATELY = 6, 3
"""Sweeps before the first steps of Newton, in quarters of ``iterations``: where worlds are solved one at a time, and otherwise."""

LOOK = 2
"""Before the first steps of Newton, there is a look at the changes after so many sweeps."""

MIXED = 8 * LOOK
"""So many sweeps over packed contacts start from mixtures, at most. They come near the solution in fewer sweeps than extrapolated ones, but
many of them need not converge, as where torsional friction depends on the normal forces. A multiple of `LOOK`. With the default settings,
these are all sweeps before the first steps of Newton."""

EARLY_STILL = 0.5 * STILL
"""A world is done at these looks after a sweep that changed its velocities by less than this part of `tolerance`."""


def sweep_function(m: types.SimpleNamespace, stages: types.SimpleNamespace, paired: bool, bonded: bool, slotted: bool):
    """The function that sweeps over the rows of a step.

    Args:
        m: the programs' namespace.
        stages: those of a step, general or specialised.
        paired: whether bodies may touch each other.
        bonded: whether there are couplings, loop joints or tendons.
        slotted: whether the active contacts are in slots from the start.
    """
    real = m.real
    coupling_sweep, friction_sweep, dof_sweep = stages.coupling_sweep, stages.friction_sweep, stages.dof_sweep
    contact_sweep, closure_sweep = stages.contact_sweep, stages.closure_sweep
    tendon_sweeps, tendon_sweeps_back = stages.tendon_sweeps, stages.tendon_sweeps_back

    # called at several places if sweeps go on
    own = m.shared if bonded else m.func

    @own
    def sweep_lone(
        b: int, t: int, sweeps: int, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]
    ):
        """So many sweeps over all rows of a lone robot; always in the same order, contacts last."""
        for _sweep in range(sweeps):
            for e in range(T.couplings):
                coupling_sweep(t, e, T, L, mem)
            closure_sweep(b, t, o, T, P, L, mem)
            tendon_sweeps(b, t, o, T, P, L, mem, active)
            if plain:
                friction_sweep(b, t, o, T, P, L, mem)
            else:
                for n in range(limits):
                    i = active[T.candidates + n, t]
                    dof_sweep(b, t, i // 2, i % 2, o, T, P, L, mem)
            for a in range(contacts):
                c = active[a, t]
                contact_sweep(b, t, a, c, T.candidate_body[c], o, T, P, L, mem)

    @m.func
    def sweep_rows(b, t, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """``iterations`` sweeps over all rows of a lone robot."""
        sweep_lone(b, t, o.iterations, contacts, limits, plain, o, T, P, L, mem, active)

    if not paired and not bonded:
        return sweep_rows

    @m.func
    def visit_listed(t, a: int, packed: int, T, L, mem, active: wp.array2d[int]):
        spans = T.candidates + T.dofs
        m.listed_sweep(t, a, active[a, t], active[spans + 2 * a, t], active[spans + 2 * a + 1, t], T, L, mem)

    @m.func
    def visit_any(t, a: int, packed: int, T, L, mem, active: wp.array2d[int]):
        """A visit of active contact a, or if `packed` of the contacts in slot a."""
        if packed != 0:
            m.packed_sweep(t, a, T, L, mem, active)
        else:
            spans = T.candidates + T.dofs
            m.listed_visit(t, a, active[a, t], active[spans + 2 * a, t], active[spans + 2 * a + 1, t], T, L, mem)

    # one world has only its own contacts
    can_pack = paired and m.width > 1
    visit_contact = visit_any if can_pack else visit_listed

    @m.shared
    def sweep_forwards(
        b: int, t: int, visited: int, packed: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]
    ):
        """One visit of all rows, those of `visited` contacts or, if `packed`, slots; contacts come last."""
        for e in range(T.couplings):
            coupling_sweep(t, e, T, L, mem)
        closure_sweep(b, t, o, T, P, L, mem)
        tendon_sweeps(b, t, o, T, P, L, mem, active)
        if plain:
            friction_sweep(b, t, o, T, P, L, mem)
        else:
            for n in range(limits):
                i = active[T.candidates + n, t]
                dof_sweep(b, t, i // 2, i % 2, o, T, P, L, mem)
        for a in range(visited):
            visit_contact(t, a, packed, T, L, mem, active)

    @m.shared
    def sweep_backwards(
        b: int, t: int, visited: int, packed: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]
    ):
        """One visit of all rows in the opposite order."""
        for n in range(visited):
            visit_contact(t, visited - 1 - n, packed, T, L, mem, active)
        if plain:
            friction_sweep(b, t, o, T, P, L, mem)
        else:
            for n in range(limits):
                i = active[T.candidates + limits - 1 - n, t]
                dof_sweep(b, t, i // 2, i % 2, o, T, P, L, mem)
        tendon_sweeps_back(b, t, o, T, P, L, mem, active)
        closure_sweep(b, t, o, T, P, L, mem)
        for e in range(T.couplings):
            coupling_sweep(t, T.couplings - 1 - e, T, L, mem)

    @m.func
    def list_spans(t, contacts: int, T, active: wp.array2d[int]):
        """Behind the active contacts and dofs <- where the table of pairs lists the dofs of each active contact, and how many they are. The
        rows of active contacts in the table are far apart, and sweeps read them often."""
        spans = T.candidates + T.dofs
        for a in range(contacts):
            row = m.candidate_row(active[a, t], T)
            active[spans + 2 * a, t] = T.pair_table[row]
            active[spans + 2 * a + 1, t] = T.pair_table[row + 1]

    @m.func
    def begin_to_extrapolate(t, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """Notes the impulses and z with which the first sweep starts."""
        one = m.fill(real(1.0))
        m.copy_rows(t, one, 0, L.swept_z, L.start_impulse, 0, 0, contacts, contacts, limits, T, L, mem, active)
        m.copy_rows(t, one, 0, L.round_z, L.swept_impulse, 0, 0, contacts, contacts, limits, T, L, mem, active)
        m.put(mem, L.pace, t, one)
        m.put(mem, L.first_way, t, m.fill(real(0.0)))
        m.put(mem, L.sweep_change, t, m.fill(real(0.0)))

    @m.struct
    class Change:
        # how far the last sweep turned impulses back against their change before it, and by how much it changed them, squared
        back: m.lane
        size: m.lane

    @m.func
    def change_of(t, at: int, first: int, n: int, sum: Change, L, mem) -> Change:
        """`sum` and the part of the impulses from `at` on, the active ones from `first` on."""
        back = sum.back
        size = sum.size
        for i in range(n):
            p = m.get(mem, at + i, t)
            way = m.sub(p, m.get(mem, L.swept_impulse + first + i, t))
            turn = m.sub(m.get(mem, L.start_impulse + first + i, t), p)
            back = m.fma(turn, way, back)
            size = m.fma(turn, turn, size)
        return Change(back, size)

    @m.func
    def go_on(t, at: int, first: int, n: int, further: m.lane, L, mem):
        """Moves the impulses from `at` on, the active ones from `first` on, on along their change by the last sweep."""
        for i in range(n):
            p = m.get(mem, at + i, t)
            start = m.fma(further, m.sub(p, m.get(mem, L.swept_impulse + first + i, t)), p)
            m.put(mem, at + i, t, start)
            m.put(mem, L.start_impulse + first + i, t, start)
            m.put(mem, L.swept_impulse + first + i, t, p)

    @m.shared
    def extrapolate_listed(
        t: int, contacts: int, visited: int, packed: int, limits: int, T, L, mem, active: wp.array2d[int]
    ):
        """Moves impulses and z on along their change by the last sweep or pair of sweeps (Nesterov 1983), where that does not turn back
        against the change before (O'Donoghue and Candes 2015), has not `GROWN`, and is not `WILD`."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        change = Change(zero, zero)
        rows = T.contact_rows
        of_limits = rows * contacts
        of_couplings = of_limits + DOF_IMPULSES * limits
        for a in range(contacts):
            change = change_of(t, L.impulse + rows * active[a, t], rows * a, rows, change, L, mem)
        for k in range(limits):
            at = L.dof_impulse + DOF_IMPULSES * (active[T.candidates + k, t] // 2)
            change = change_of(t, at, of_limits + DOF_IMPULSES * k, DOF_IMPULSES, change, L, mem)
        change = change_of(t, L.coupling_impulse, of_couplings, T.bonds, change, L, mem)
        back = change.back
        pace = m.get(mem, L.pace, t)
        # steps of Newton between packed sweeps change the velocities, too
        if packed == 0:
            way = m.squared_distance(t, L.z, L.swept_z, T.dofs, mem)
            first = m.get(mem, L.first_way, t)
            first = m.where_lt(zero, first, first, way)
            m.put(mem, L.first_way, t, first)
            pace = m.where_lt(m.mul(m.fill(real(WILD)), first), way, zero, pace)
            last = m.get(mem, L.sweep_change, t)
            grown = m.mul(m.fill(real(GROWN)), last)
            back = m.where_lt(zero, last, m.where_lt(grown, change.size, one, back), back)
            m.put(mem, L.sweep_change, t, m.where_lt(last, zero, last, change.size))
        old = m.where_lt(zero, back, one, pace)
        new = m.fma(m.fill(real(0.5)), m.sqrt(m.fma(m.fill(real(4.0)), m.mul(old, old), one)), m.fill(real(0.5)))
        m.put(mem, L.pace, t, m.where_lt(zero, pace, new, zero))
        further = m.where_lt(zero, pace, m.div(m.sub(old, one), new), zero)
        for a in range(contacts):
            go_on(t, L.impulse + rows * active[a, t], rows * a, rows, further, L, mem)
        for k in range(limits):
            at = L.dof_impulse + DOF_IMPULSES * (active[T.candidates + k, t] // 2)
            go_on(t, at, of_limits + DOF_IMPULSES * k, DOF_IMPULSES, further, L, mem)
        go_on(t, L.coupling_impulse, of_couplings, T.bonds, further, L, mem)
        for i in range(T.dofs):
            z = m.get(mem, L.z + i, t)
            m.put(mem, L.z + i, t, m.fma(further, m.sub(z, m.get(mem, L.swept_z + i, t)), z))
            m.put(mem, L.swept_z + i, t, z)

    @m.shared
    def extrapolate_any(
        t: int, contacts: int, visited: int, packed: int, limits: int, T, L, mem, active: wp.array2d[int]
    ):
        """The same for several worlds."""
        m.extrapolate_impulses(t, contacts, visited, packed, limits, T, L, mem, active)

    extrapolate = extrapolate_any if can_pack else extrapolate_listed

    @m.func
    def sweep_extrapolated(
        b, t, done: int, more: int, contacts: int, visited: int, packed: int, limits: int, plain: bool, o, T, P, L, mem,
        active: wp.array2d[int],
    ):  # fmt: skip
        """So many more sweeps after those that are done, each after an extrapolation; after FORWARDS, pairs of sweeps, backwards and
        forwards."""
        forwards = wp.clamp(FORWARDS - done, 0, more)
        for _sweep in range(forwards):
            extrapolate(t, contacts, visited, packed, limits, T, L, mem, active)
            sweep_forwards(b, t, visited, packed, limits, plain, o, T, P, L, mem, active)
        if done + forwards == FORWARDS:
            m.put(mem, L.pace, t, m.fill(real(1.0)))
            m.put(mem, L.sweep_change, t, m.fill(real(-1.0)))
        for _pair in range((more - forwards + 1) // 2):
            extrapolate(t, contacts, visited, packed, limits, T, L, mem, active)
            sweep_backwards(b, t, visited, packed, limits, plain, o, T, P, L, mem, active)
            sweep_forwards(b, t, visited, packed, limits, plain, o, T, P, L, mem, active)

    @m.func
    def sweep_plainly(
        b, t, done: int, more: int, contacts: int, visited: int, packed: int, limits: int, plain: bool, o, T, P, L, mem,
        active: wp.array2d[int],
    ):  # fmt: skip
        """So many more sweeps. Extrapolated sweeps over tendons, loop joints and limits that act against each other diverge."""
        sweep_lone(b, t, more, contacts, limits, plain, o, T, P, L, mem, active)

    sweep_on = sweep_extrapolated if paired else sweep_plainly

    @m.func
    def no_slots(t, contacts: int, T, L, mem, active: wp.array2d[int]) -> int:
        return contacts

    @m.func
    def no_impulses(t, contacts: int, T, L, mem, active: wp.array2d[int]):
        pass

    @m.func
    def finish_none(t, limits: int, tolerance: m.lane, T, L, mem, active: wp.array2d[int]):
        pass

    @m.func
    def open_slots(t, contacts: int, T, L, mem, active: wp.array2d[int]) -> int:
        m.open_slots(t, L, mem)
        return contacts

    @m.func
    def drop_slots(t, contacts: int, T, L, mem, active: wp.array2d[int]) -> int:
        return m.drop_slots(L, mem)

    if slotted:
        pack, drop, unpack = open_slots, drop_slots, no_impulses
        newton_steps, finish = m.newton_of_slots, m.finish_slots
    elif can_pack:
        pack, drop, unpack = m.pack_contacts, m.drop_settled, m.unpack_impulses
        newton_steps, finish = m.newton_steps, m.finish_worlds
    else:
        pack, drop, unpack = no_slots, no_slots, no_impulses
        newton_steps, finish = m.newton_steps, finish_none

    @m.func
    def keep_settled(t, now: m.lane, first: int, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """The results of worlds that settle `now`: their z, and the impulses of active rows, those of contacts from number `first` on."""
        m.copy_rows(t, now, 0, L.settled_z, L.settled_impulse, 0, first, contacts, contacts, limits, T, L, mem, active)

    @m.func
    def take_settled(t, old: m.lane, first: int, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """Gives worlds that have settled, where `old` is positive, their results."""
        m.copy_rows(t, old, 1, L.settled_z, L.settled_impulse, 0, first, contacts, contacts, limits, T, L, mem, active)

    @m.func
    def moving_worlds(t, early: bool, o, T, L, mem) -> m.lane:
        """One for worlds whose velocities have not settled. Unless this is the `early` look, the next round begins here."""
        change = m.squared_distance(t, L.z, L.round_z, T.dofs, mem)
        whole = m.squared_distance(t, L.z, L.free_z, T.dofs, mem)
        if not early:
            m.copy(t, L.round_z, L.z, T.dofs, mem)
        bound = m.fill(o.tolerance * o.tolerance)
        if early:
            bound = m.mul(bound, m.fill(real(EARLY * EARLY)))
        return m.where_lt(m.mul(bound, whole), change, m.fill(real(1.0)), m.fill(real(0.0)))

    @m.func
    def moving_lone(t, early: bool, o, T, L, mem) -> m.lane:
        """The same for lone robots, where each look begins a round: a robot in motion changes the impulses of the step before by more than
        `tolerance`."""
        moving = moving_worlds(t, early, o, T, L, mem)
        m.copy(t, L.round_z, L.z, T.dofs, mem)
        return moving

    look = moving_worlds if paired else moving_lone

    @m.func
    def settle(b, t, done: int, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """Sweeps on, after those that are `done`, until a round of sweeps changed the velocities of every world of the block by no more
        than `tolerance`, in the norm of the kinetic energy, of the change by all impulses, but at most LONGEST times as often as
        ``iterations`` says. The first round begins with the impulses of the step before; after half of it there is an early look, see
        `EARLY`. A world keeps the result of the first look for which that holds. With ``T.polished``, sweeps after the early look are over
        the contacts of worlds that have not settled, alone; those of the others stay as they are."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        packed = int(0)
        visited = int(contacts)
        first = int(0)
        if T.polished != 0:
            # impulses of contacts of worlds that have settled do not change
            first = int(contacts)
        m.put(mem, L.settled, t, zero)
        all_done = bool(False)
        while done < o.iterations * LONGEST and not all_done:
            early = done < o.iterations
            moving = look(t, early, o, T, L, mem)
            old = m.get(mem, L.settled, t)
            if m.any_lt(old, moving):
                # 1 for a world that settles now
                now = m.mul(m.sub(one, old), m.sub(one, moving))
                if m.any_lt(zero, now):
                    keep_settled(t, now, first, contacts, limits, T, L, mem, active)
                    m.put(mem, L.settled, t, m.add(old, now))
                if packed != 0:
                    # contact n of each world stays in slot n
                    visited = drop(t, contacts, T, L, mem, active)
                elif T.polished != 0:
                    visited = pack(t, contacts, T, L, mem, active)
                    packed = 1
                more = int(done)
                if early:
                    more = o.iterations - done
                sweep_on(b, t, done, more, contacts, visited, packed, limits, plain, o, T, P, L, mem, active)
                done = done + more
            else:
                all_done = bool(True)
        if packed != 0:
            unpack(t, contacts, T, L, mem, active)
        old = m.get(mem, L.settled, t)
        if m.any_lt(zero, old):
            take_settled(t, old, first, contacts, limits, T, L, mem, active)

    @m.func
    def first_sweeps(o) -> int:
        """How many sweeps come before the early look."""
        done = int(o.iterations)
        if o.iterations > 3:
            done = o.iterations // 2
        return done

    @m.func
    def sweep_bonded(b, t, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """Sweeps over all rows of a lone robot until the velocities settle. The first round begins after a quarter of ``iterations``."""
        before = o.iterations // 4
        sweep_lone(b, t, before, contacts, limits, plain, o, T, P, L, mem, active)
        m.copy(t, L.round_z, L.z, T.dofs, mem)
        done = first_sweeps(o)
        sweep_lone(b, t, done - before, contacts, limits, plain, o, T, P, L, mem, active)
        settle(b, t, done, contacts, limits, plain, o, T, P, L, mem, active)

    if not paired:
        return sweep_bonded

    @m.func
    def mix_or_extrapolate(
        t, mixed: bool, contacts: int, slots: int, packed: int, limits: int, T, L, mem, active: wp.array2d[int]
    ):
        """z and the impulses <- those with which the next sweep starts."""
        if mixed:
            m.mix_sweeps(contacts, slots, limits, T, L, mem, active)
        else:
            extrapolate(t, contacts, slots, packed, limits, T, L, mem, active)

    @m.func
    def only_extrapolate(
        t, mixed: bool, contacts: int, slots: int, packed: int, limits: int, T, L, mem, active: wp.array2d[int]
    ):
        extrapolate(t, contacts, slots, packed, limits, T, L, mem, active)

    @m.func
    def begin_to_mix(t, contacts: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """There are no sweeps yet."""
        m.copy(t, L.sweep_z, L.z, T.dofs, mem)
        m.put(mem, L.pace, t, m.fill(real(FRESH)))

    if can_pack:
        begin, accelerate = begin_to_mix, mix_or_extrapolate
    else:
        begin, accelerate = begin_to_extrapolate, only_extrapolate

    @m.func
    def sweep_packed(
        b, t, sweeps: int, mixed: bool, contacts: int, slots: int, limits: int, plain: bool, o, T, P, L, mem,
        active: wp.array2d[int],
    ) -> m.lane:  # fmt: skip
        """So many sweeps, each from a mixture if `mixed`, otherwise after an extrapolation. Returns the change of z by the last one,
        squared. For one world alone, the slots are its active contacts, and nothing is mixed."""
        packed = int(1)
        for _sweep in range(sweeps):
            accelerate(t, mixed, contacts, slots, packed, limits, T, L, mem, active)
            m.copy(t, L.sweep_z, L.z, T.dofs, mem)
            sweep_forwards(b, t, slots, packed, limits, plain, o, T, P, L, mem, active)
        return m.squared_distance(t, L.z, L.sweep_z, T.dofs, mem)

    @m.func
    def still_moving(t, share: real, o, T, L, mem) -> m.lane:
        """One for worlds whose last sweep changed the velocities by more than this share of the tolerance."""
        whole = m.squared_distance(t, L.z, L.free_z, T.dofs, mem)
        bound = m.mul(m.fill(share * share), m.fill(o.tolerance * o.tolerance))
        return m.where_lt(m.mul(bound, whole), m.get(mem, L.sweep_change, t), m.fill(real(1.0)), m.fill(real(0.0)))

    in_slots = int(can_pack)
    quarters = SINGLY if can_pack else ALTERNATELY

    @m.func
    def note_impulses(t, contacts: int, slots: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """Notes z and the impulses, before steps of Newton."""
        one = m.fill(real(1.0))
        m.copy_rows(t, one, 0, L.round_z, L.aside_impulse, in_slots, 0, slots, contacts, limits, T, L, mem, active)

    @m.func
    def take_back(t, worse: m.lane, contacts: int, slots: int, limits: int, T, L, mem, active: wp.array2d[int]):
        """Gives worlds where `worse` is positive the z and impulses that were set aside."""
        m.copy_rows(t, worse, 1, L.round_z, L.aside_impulse, in_slots, 0, slots, contacts, limits, T, L, mem, active)

    @m.func
    def slow_pace(t, where: m.lane, L, mem):
        """The next extrapolation has no effect in worlds where `where` is positive."""
        one = m.fill(real(1.0))
        m.put(mem, L.pace, t, m.where_lt(m.fill(real(0.0)), where, one, m.get(mem, L.pace, t)))

    @m.func
    def sweep_robot(b, t, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """Sweeps over the rows of a robot alone, and steps of Newton, until a sweep changes the velocities of every world of the block by
        less than STILL times `tolerance`, in the norm of the kinetic energy, of the change by all impulses. Before the first step of
        Newton, looks find worlds that have settled: the impulses of the step before are right for a robot at rest. Then worlds are solved
        one at a time. What is left are worlds with too many rows, or a thread with one world: there, steps of Newton alternate with
        sweeps. A step is taken back where the sweeps after it change more than those before; the next sweeps of such a world are without
        one."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        first = int(0)
        if not slotted:
            # impulses of contacts of worlds that have settled do not change
            first = int(contacts)
        m.put(mem, L.settled, t, zero)
        m.put(mem, L.resting, t, zero)
        for n in range(limits):
            i = active[T.candidates + n, t] // 2
            bound = zero
            if T.dof_limits[i] & FRICTION:
                bound = m.friction_bound(b, t, i, m.fill(o.dt), T, P, L, mem)
            m.put(mem, L.friction_bound + n, t, bound)
            fastest = zero
            if T.dof_limits[i] & VELOCITY:
                fastest = m.gain(P, b, i, VELOCITY_LIMIT)
            m.put(mem, L.velocity_bound + n, t, fastest)
        begin(t, contacts, limits, T, L, mem, active)
        slots = pack(t, contacts, T, L, mem, active)
        before_steps = wp.max(quarters * o.iterations // 4, 1)
        done = int(0)
        all_done = bool(False)
        while done < before_steps and not all_done:
            sweeps = wp.min(LOOK, before_steps - done)
            change = sweep_packed(b, t, sweeps, done < MIXED, contacts, slots, limits, plain, o, T, P, L, mem, active)
            m.put(mem, L.sweep_change, t, change)
            done = done + sweeps
            if can_pack and done == wp.min(MIXED, before_steps):
                # from here on, sweeps are extrapolated
                slow_pace(t, one, L, mem)
            if done < before_steps:
                # worlds that have settled need no more sweeps of their slots
                moving = still_moving(t, real(EARLY_STILL), o, T, L, mem)
                old = m.get(mem, L.settled, t)
                if m.any_lt(old, moving):
                    now = m.mul(m.sub(one, old), m.sub(one, moving))
                    if m.any_lt(zero, now):
                        keep_settled(t, now, first, contacts, limits, T, L, mem, active)
                        m.put(mem, L.settled, t, m.add(old, now))
                        slots = drop(t, contacts, T, L, mem, active)
                else:
                    all_done = bool(True)
        # worlds that have not settled are solved one at a time, but for those with too many rows
        finished = bool(not can_pack)
        while done < o.iterations * LONGEST and not all_done:
            moving = still_moving(t, real(STILL), o, T, L, mem)
            old = m.get(mem, L.settled, t)
            if m.any_lt(old, moving):
                # 1 for a world that settles now
                now = m.mul(m.sub(one, old), m.sub(one, moving))
                if m.any_lt(zero, now):
                    keep_settled(t, now, first, contacts, limits, T, L, mem, active)
                    old = m.add(old, now)
                    m.put(mem, L.settled, t, old)
                slots = drop(t, contacts, T, L, mem, active)
                if not finished:
                    finish(t, limits, m.fill(o.tolerance), T, L, mem, active)
                    finished = bool(True)
                else:
                    note_impulses(t, contacts, slots, limits, T, L, mem, active)
                    m.put(mem, L.tried, t, m.mul(m.sub(one, old), m.sub(one, m.get(mem, L.resting, t))))
                    newton_steps(t, contacts, limits, T, L, mem, active)
                    tried = m.get(mem, L.tried, t)
                    slow_pace(t, tried, L, mem)
                    before = m.get(mem, L.sweep_change, t)
                    after = sweep_packed(
                        b, t, FOLLOWING, False, contacts, slots, limits, plain, o, T, P, L, mem, active
                    )
                    worse = m.mul(tried, m.sub(one, m.where_lt(after, before, one, zero)))
                    if m.any_lt(zero, worse):
                        take_back(t, worse, contacts, slots, limits, T, L, mem, active)
                        slow_pace(t, worse, L, mem)
                    m.put(mem, L.resting, t, worse)
                    m.put(mem, L.sweep_change, t, m.where_lt(zero, worse, before, after))
                    done = done + FOLLOWING
            else:
                all_done = bool(True)
        unpack(t, contacts, T, L, mem, active)
        old = m.get(mem, L.settled, t)
        if m.any_lt(zero, old):
            take_settled(t, old, first, contacts, limits, T, L, mem, active)

    @m.func
    def sweep_listed(b, t, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """Sweeps over all rows until the velocities settle."""
        begin_to_extrapolate(t, contacts, limits, T, L, mem, active)
        packed = int(0)
        sweep_forwards(b, t, contacts, packed, limits, plain, o, T, P, L, mem, active)
        done = first_sweeps(o)
        sweep_on(b, t, 1, done - 1, contacts, contacts, packed, limits, plain, o, T, P, L, mem, active)
        # also without contacts, so that a world does not depend on those of its block
        settle(b, t, done, contacts, limits, plain, o, T, P, L, mem, active)

    if slotted:
        return sweep_robot

    @m.func
    def sweep_any(b, t, contacts: int, limits: int, plain: bool, o, T, P, L, mem, active: wp.array2d[int]):
        """Sweeps over all rows until the velocities settle, with steps of Newton for a robot alone without rows that couple joints."""
        list_spans(t, contacts, T, active)
        if T.polished != 0 and T.bonds == 0:
            sweep_robot(b, t, contacts, limits, plain, o, T, P, L, mem, active)
        else:
            sweep_listed(b, t, contacts, limits, plain, o, T, P, L, mem, active)

    return sweep_any
