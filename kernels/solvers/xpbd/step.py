"""The step of the solver in maximal coordinates.

A chunk is a group of worlds whose bodies stand together in memory. A thread of a CPU takes a chunk through all sub-steps, while the chunk
is in its cache; all threads together take a large world, and the threads of a block of a GPU a chunk. Lanes are bodies, joints or
contacts of any world of the chunk. Joints and contacts are ordered by colours: those of one colour share no body that moves. All sums are
taken in this order, so that the result of a world does not depend on the others.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.dynamics.wrapping import wrapping_program
from newton_like.kernels.lanes import extended, lane_math
from newton_like.kernels.registration import collection_paused
from newton_like.kernels.simd import GENERAL_FLAGS, module_options
from newton_like.kernels.solvers.xpbd.access import access_program
from newton_like.kernels.solvers.xpbd.articulated import articulated_program

from newton_like.kernels.solvers.xpbd.bodies import (  # isort: skip
    CHANGED, LOW_QUAT, NO_SPIN, POS, PUSH, QUAT, SHIFT, SPIN, SPIN_BEFORE, TORQUE, VEL, body_program, place_in_chunk,
)  # fmt: skip
from newton_like.kernels.solvers.xpbd.contact_laws import (
    EXTRA_NUMBERS,
    contact_law_program,
    law_functions,
    no_law_program,
)
from newton_like.kernels.solvers.xpbd.contacts import contact_program
from newton_like.kernels.solvers.xpbd.denormals import begin_without_denormals, end_without_denormals
from newton_like.kernels.solvers.xpbd.friction import friction_program
from newton_like.kernels.solvers.xpbd.joint_solve import joint_solve_program
from newton_like.kernels.solvers.xpbd.joints import IN_TREE, OVER, joint_program
from newton_like.kernels.solvers.xpbd.lines import line_program

from newton_like.kernels.solvers.xpbd.order import (  # isort: skip
    BODY_AT, COLOURS, DUMMY, FIRST_BLOCK, FIRST_SLOT, LAST_BLOCK, SLOTS, order_kernels,
)  # fmt: skip
from newton_like.kernels.solvers.xpbd.parts import joint_functions, line_functions, tree_functions
from newton_like.kernels.solvers.xpbd.pivots import PIVOT_NUMBERS, no_pivot_program, pivot_function, pivot_program
from newton_like.kernels.solvers.xpbd.rebounds import SPREADING, rebound_functions
from newton_like.kernels.solvers.xpbd.round import round_function
from newton_like.kernels.solvers.xpbd.team import SERIAL, share_start, wait_for_all
from newton_like.kernels.solvers.xpbd.touching import CONTACT_NUMBERS, touching_program
from newton_like.kernels.solvers.xpbd.trees import TREE_NUMBERS, tree_program
from newton_like.kernels.solvers.xpbd.wrenches import wrench_function
from newton_like.kernels.spatial import spatial_algebra

_LAYERS = (
    spatial_algebra,
    access_program,
    body_program,
    joint_program,
    joint_solve_program,
    articulated_program,
    tree_program,
    touching_program,
)

FURTHER = 4
"""Further passes over contacts that begin with an impact, before the drift and after it. Points of one face take an impact one after the
other: each pass leaves about an eighth of the turn."""

STRONG_FURTHER = 8
"""Passes that follow for contacts with long arms on a small moment of inertia. Kept impulses that are no longer needed would otherwise give
energy to the bodies: a pass takes back only a part of them."""

PROGRAMS = (
    *_LAYERS, no_pivot_program, pivot_program, friction_program, no_law_program, contact_law_program, contact_program,
    wrapping_program, line_program,
)  # fmt: skip
"""All programs of this folder, in the order in which they extend the namespace; some of them are for some models only."""


@cache
def maximal_math(width: int, real, lines: str = "", laws: bool = False, pivots: bool = False) -> types.SimpleNamespace:
    """The namespace of the programs of this folder, for one lane width and scalar type.

    Args:
        width: number of lanes.
        real: scalar type.
        lines: "": without lines; "lines": with lines, "wraps": with lines that wrap around shapes.
        laws: whether contacts have laws, see `newton_like.kernels.solvers.xpbd.contact_laws`.
        pivots: whether bodies on pivots touch the world, see `newton_like.kernels.solvers.xpbd.pivots`.
    """
    of_lines = {"": (), "lines": (line_program,), "wraps": (wrapping_program, line_program)}[lines]
    of_pivots = pivot_program if pivots else no_pivot_program
    of_contacts = (of_pivots, friction_program, contact_law_program if laws else no_law_program, contact_program)
    return extended(lane_math(width, real), (*_LAYERS, *of_contacts, *of_lines))


@cache
@collection_paused()
def xpbd_kernel(
    width: int,
    real,
    lines: str = "",
    laws: bool = False,
    joints: bool = True,
    pivots: bool = False,
    trees: bool = False,
):
    """The kernel over chunks, and the structs of its arguments: ``(kernel, Bodies, Joints, Listed, Settings, Lines, Laws,
    Team, Trees)``.

    Args:
        width: number of lanes.
        real: scalar type.
        lines, laws, pivots: see :func:`maximal_math`.
        joints: whether there are joints with laws; without them the kernel takes less time to compile.
        trees: whether joints of trees are solved at once, see `newton_like.kernels.solvers.xpbd.trees`.
    """
    m = maximal_math(width, real, lines, laws, pivots)
    joint_prepare, joint_start, joint_solve = joint_functions(m, joints)
    Lines, sweep_lines = line_functions(m, bool(lines))
    Trees, tree_before, solve_trees = tree_functions(m, trees)
    Listed, *_, of_contacts = order_kernels(real)
    colour_contacts, chain_kept, match_contacts, count_takers, take_contacts, keep_contacts = of_contacts
    round_contacts, (group_rebounds, drop_impulses) = round_function(real), rebound_functions(real)
    Laws, take_laws, keep_laws = law_functions(m, Listed, laws)
    vec3, twist6 = wp.types.vector(3, real), wp.types.vector(6, real)
    transform, quat = wp.types.transformation(real), wp.types.quaternion(real)
    Joints, Touching = m.Joints, m.Touching
    take_pivots = pivot_function(real, Listed, Touching, pivots)
    contact_numbers = CONTACT_NUMBERS + (PIVOT_NUMBERS if pivots else 0)

    @wp.struct
    class Bodies:
        """Bodies in slots, and the state.

        chunks: see `newton_like.kernels.solvers.xpbd.order`; of slots: body and world; of joints that leave a body free, by chunks: see
        `newton_like.kernels.solvers.xpbd.wrenches`, and whether forces move none of the parents and all children differ; of joints: the
        anchor in the parent; of degrees of freedom: effort limit and mode of the drive; of bodies: inverse mass, zero for kinematic ones,
        and centre of mass.
        """

        chunks: wp.array2d[int]
        slot_body: wp.array[int]
        slot_world: wp.array[int]
        wrenches: wp.array2d[int]
        wrench_start: wp.array[int]
        apart: int
        anchor: wp.array[transform]
        effort_limit: wp.array[real]
        mode: wp.array[int]
        inverse_mass: wp.array[real]
        com: wp.array[vec3]
        gravity: wp.array[vec3]
        numbers: wp.array[real]
        body_q: wp.array[transform]
        body_qd: wp.array[twist6]
        body_f: wp.array[twist6]
        joint_f: wp.array[real]
        joint_act: wp.array[real]
        next_q: wp.array[transform]
        next_qd: wp.array[twist6]

    @wp.struct
    class Settings:
        dt: real
        substeps: int
        iterations: int
        contacts: int
        push_speed: real
        rebound_speed: real
        spin_share: real
        impulse_scale: real
        kept_share: real

    @wp.struct
    class Team:
        """The threads that compute a chunk together, see `newton_like.kernels.solvers.xpbd.team`.

        block: whether they are the threads of a block of a GPU; colours: those whose contacts they share; stages: of joints the first
        block, the end, one if one thread computes them, and one if they have the last colour; stage_at: of chunks the first stage.
        """

        member: int
        members: int
        block: int
        pause: wp.uint64
        sync: wp.array[int]
        stages: wp.array2d[int]
        stage_at: wp.array[int]
        colours: int

    @wp.func
    def put3(numbers: wp.array[real], at: int, stride: int, slot: int, i: int, x: vec3):
        for k in range(3):
            numbers[place_in_chunk(at, stride, slot, i + k)] = x[k]

    @wp.func
    def read3(numbers: wp.array[real], at: int, stride: int, slot: int, i: int) -> vec3:
        x = vec3()
        for k in range(3):
            x[k] = numbers[place_in_chunk(at, stride, slot, i + k)]
        return x

    load_wrenches = wrench_function(real, Bodies, read3, put3)

    @wp.func
    def pose_of(G: wp.ref[Bodies], k: int, at: int, stride: int, slot: int) -> transform:
        """The pose of body k by its numbers."""
        q = quat()
        for i in range(4):
            q[i] = G.numbers[place_in_chunk(at, stride, slot, QUAT + i)]
        place = read3(G.numbers, at, stride, slot, POS) + read3(G.numbers, at, stride, slot, SHIFT)
        return transform(place - wp.quat_rotate(q, G.com[k]), q)

    @wp.func
    def load_pose(G: wp.ref[Bodies], k: int, at: int, stride: int, slot: int):
        """Takes the pose of body k. If it is that of the end of the last step, its rounding errors are known."""
        pose = G.body_q[k]
        last = pose_of(G, k, at, stride, slot)
        same = int(1)
        for i in range(7):
            if pose[i] != last[i]:
                same = 0
        if same != 0:
            shift = read3(G.numbers, at, stride, slot, SHIFT)
            place = read3(G.numbers, at, stride, slot, POS)
            start = place + shift
            put3(G.numbers, at, stride, slot, POS, start)
            put3(G.numbers, at, stride, slot, SHIFT, shift - (start - place))
        else:
            zero = vec3(real(0.0), real(0.0), real(0.0))
            never = real(NO_SPIN)
            turn = wp.transform_get_rotation(pose)
            q = wp.normalize(turn)
            if wp.isnan(wp.dot(turn, turn)):
                # `normalize` makes the identity of it
                q = turn
            put3(G.numbers, at, stride, slot, POS, wp.transform_get_translation(pose) + wp.quat_rotate(q, G.com[k]))
            put3(G.numbers, at, stride, slot, SHIFT, zero)
            put3(G.numbers, at, stride, slot, SPIN_BEFORE, vec3(never, never, never))
            for i in range(4):
                G.numbers[place_in_chunk(at, stride, slot, QUAT + i)] = q[i]
                G.numbers[place_in_chunk(at, stride, slot, LOW_QUAT + i)] = real(0.0)

    @wp.func
    def load_bodies(G: wp.ref[Bodies], at: int, stride: int, first: int, begin: int, end: int):
        zero = vec3(real(0.0), real(0.0), real(0.0))
        for s in range(begin, end):
            k = G.slot_body[first + s]
            v = zero
            w = zero
            push = zero
            turn = zero
            if k >= 0:
                load_pose(G, k, at, stride, s)
                twist = G.body_qd[k]
                v = vec3(twist[0], twist[1], twist[2])
                w = vec3(twist[3], twist[4], twist[5])
                mass = G.inverse_mass[k]
                changed = real(0.0)
                if mass > real(0.0):
                    last_v = read3(G.numbers, at, stride, s, VEL)
                    last_w = read3(G.numbers, at, stride, s, SPIN)
                    for i in range(3):
                        if v[i] != last_v[i] or w[i] != last_w[i]:
                            changed = real(1.0)
                G.numbers[place_in_chunk(at, stride, s, CHANGED)] = changed
                if mass > real(0.0):
                    f = G.body_f[k]
                    push = vec3(f[0], f[1], f[2])
                    turn = vec3(f[3], f[4], f[5])
                    push = push * mass + G.gravity[G.slot_world[first + s]]
            put3(G.numbers, at, stride, s, VEL, v)
            put3(G.numbers, at, stride, s, SPIN, w)
            put3(G.numbers, at, stride, s, PUSH, push)
            put3(G.numbers, at, stride, s, TORQUE, turn)

    @wp.func
    def store_bodies(G: wp.ref[Bodies], at: int, stride: int, first: int, begin: int, end: int, spin_share: real):
        for s in range(begin, end):
            k = G.slot_body[first + s]
            if k >= 0:
                v = read3(G.numbers, at, stride, s, VEL)
                w = read3(G.numbers, at, stride, s, SPIN)
                if G.inverse_mass[k] > real(0.0):
                    w = w * spin_share
                    put3(G.numbers, at, stride, s, SPIN, w)
                G.next_q[k] = pose_of(G, k, at, stride, s)
                G.next_qd[k] = twist6(v[0], v[1], v[2], w[0], w[1], w[2])

    @wp.func
    def parallel_colours(N: wp.ref[Listed], c: int, members: int) -> int:
        """How many colours the members of a team share; one of them computes the others, which have few contacts."""
        colours = int(0)
        if members > 1:
            colours = COLOURS - 1
            few = SERIAL * width
            while colours > 0 and N.colour_start[c, colours] - N.colour_start[c, colours - 1] < few:
                colours -= 1
        return colours

    @wp.func
    def pass_contacts(
        stage: int, N: wp.ref[Listed], c: int, colour: int, K: wp.ref[Touching], first: int, end: int, most: int, B: wp.array[real],
        at: int, stride: int, h: real, sub: int, o: wp.ref[Settings],
    ):  # fmt: skip
        """Passes over contacts that share no body that moves, `most` at a time."""
        k = int(first)
        while k < end:
            valid = wp.min(most, end - k)
            if stage == 0:
                begins = m.contact_prepare(K, k, valid, B, at, stride, h, o.push_speed, o.rebound_speed)
                if begins % 2 != 0:
                    N.impact[c, colour] = sub + 1
                    N.impact[c, COLOURS] = sub + 1
                if begins >= 2:
                    N.impact[c, COLOURS + 2] = sub + 1
            if stage == 1:
                m.contact_start(K, k, valid, B, at, stride)
            if stage >= 2:
                relax = (stage - 2) % 2
                further = m.contact_solve(
                    K, k, valid, B, at, stride, h, relax, (stage - 2) // 2, o.push_speed, o.rebound_speed
                )
                if further != 0:
                    N.impact[c, colour] = sub + 1
                    N.impact[c, COLOURS + 1] = sub + 1
            k += valid

    @wp.func
    def sweep_contacts(
        stage: int, N: wp.ref[Listed], c: int, K: wp.ref[Touching], B: wp.array[real], at: int, stride: int, h: real,
        sub: int, o: wp.ref[Settings], M: wp.ref[Team],
    ):  # fmt: skip
        """Passes over all contacts of a chunk, colour by colour: 0 prepares them, 1 applies kept impulses, 2 solves, 3 relaxes; 4 and 5 do
        so again with those that begin with an impact, 6 and 7 with those that need more passes, 9 with groups that rebound."""
        for colour in range(K.colours):
            if stage < 4 or stage >= 8 or N.impact[c, colour] == sub + 1:
                start = N.colour_start[c, colour]
                end = N.colour_start[c, colour + 1]
                most = int(width)
                if colour == COLOURS - 1:
                    most = 1
                if M.members > 1:
                    if colour < M.colours:
                        # shares end where lanes do
                        first = int(start)
                        full = (end - first + width - 1) // width
                        start = first + width * share_start(full, M.member, M.members)
                        end = wp.min(first + width * share_start(full, M.member + 1, M.members), end)
                    elif M.member != 0:
                        end = start
                pass_contacts(stage, N, c, colour, K, start, end, most, B, at, stride, h, sub, o)
                if colour < M.colours:
                    wait_for_all(M.sync, c, M.members, M.pause)
        wait_for_all(M.sync, c, M.members, M.pause)

    @wp.func
    def sweep_joints(
        stage: int,
        J: wp.ref[Joints],
        c: int,
        B: wp.array[real],
        at: int,
        stride: int,
        h: real,
        share: real,
        over: real,
        M: wp.ref[Team],
    ):
        """Passes over the joints of a chunk that are not in trees, colour by colour: 1 applies this share of kept impulses, 2 solves, 3
        solves in the order of second passes, see `newton_like.solvers.xpbd.colours`. Passes over-relax by `over`, but for the joints of the
        last colour."""
        first = M.stage_at[c]
        behind = M.stage_at[c + 1]
        turns = behind
        if behind > first:
            turns = behind - M.stages[behind - 1, 3]
        for k in range(first, behind):
            n = k
            more = real(over)
            if k >= turns:
                more = real(0.0)
            if stage == 3 and k < turns:
                n = first + turns - 1 - k
            begin = M.stages[n, 0]
            count = M.stages[n, 1] - begin
            start = begin + share_start(count, M.member, M.members)
            end = begin + share_start(count, M.member + 1, M.members)
            if M.stages[n, 2] != 0:
                # colours with few joints follow each other in one stage
                start = begin
                end = begin
                if M.member == 0:
                    end = M.stages[n, 1]
            for i in range(start, end):
                b = i
                if stage == 3:
                    b = start + end - 1 - i
                if J.blocks[b, IN_TREE] == 0:
                    if stage == 1:
                        joint_start(J, b, B, at, stride, share)
                    else:
                        joint_solve(J, b, B, at, stride, more, h)
            wait_for_all(M.sync, c, M.members, M.pause)

    options = module_options(GENERAL_FLAGS, width)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def step(
        first: int,
        G: Bodies,
        J: Joints,
        X: Lines,
        N: Listed,
        R: Laws,
        T: Trees,
        body_a: wp.array[int],
        body_b: wp.array[int],
        numbers: wp.array[real],
        M: Team,
        o: Settings,
    ):
        c = first + wp.tid()
        mode = begin_without_denormals()
        if M.block != 0:
            c = first + wp.tid() // M.members
            M.member = wp.tid() % M.members
        at = G.chunks[c, BODY_AT]
        stride = G.chunks[c, SLOTS]
        first_slot = G.chunks[c, FIRST_SLOT]
        tree_at = TREE_NUMBERS * first_slot
        begin = G.chunks[c, FIRST_BLOCK]
        behind = G.chunks[c, LAST_BLOCK]
        h = o.dt / real(o.substeps)
        over = real(OVER)
        if o.iterations == 1:
            over = real(0.0)
        B = G.numbers
        blocks = stride // width
        # the bodies and joints of this member
        one = share_start(blocks, M.member, M.members)
        end = share_start(blocks, M.member + 1, M.members)
        own = begin + share_start(behind - begin, M.member, M.members)
        last = begin + share_start(behind - begin, M.member + 1, M.members)
        load_bodies(G, at, stride, first_slot, one * width, end * width)
        K = Touching()
        if M.member == 0 and o.contacts != 0:
            colour_contacts(N, c, first_slot, stride)
            chain_kept(N, c, first_slot, stride)
        wait_for_all(M.sync, c, M.members, M.pause)
        if G.apart != 0:
            i = G.wrench_start[c]
            share = G.wrench_start[c + 1] - i
            own_first = i + share_start(share, M.member, M.members)
            load_wrenches(G, own_first, i + share_start(share, M.member + 1, M.members), at, stride)
        elif M.member == 0:
            load_wrenches(G, G.wrench_start[c], G.wrench_start[c + 1], at, stride)
        M.colours = 0
        # the contacts of this member
        start = int(0)
        stop = int(0)
        if o.contacts != 0:
            M.colours = parallel_colours(N, c, M.members)
            K.numbers = numbers
            K.body_a = body_a
            K.body_b = body_b
            K.first = N.start[c]
            K.colours = 0
            while K.colours < COLOURS and N.colour_start[c, K.colours] < N.start[c + 1] - N.start[c]:
                K.colours += 1
            K.at = contact_numbers * (N.start[c] + c * width)
            K.room = N.start[c + 1] - N.start[c] + width
            K.dummy = G.chunks[c, DUMMY]
            K.report = N.report
            K.extra_at = EXTRA_NUMBERS * (N.start[c] + c * width)
            K.extra = R.extra
            K.law = R.law
            K.laws = R.laws
            count = N.start[c + 1] - N.start[c]
            start = N.start[c] + share_start(count, M.member, M.members)
            stop = N.start[c] + share_start(count, M.member + 1, M.members)
            match_contacts(N, first_slot, stride, start, stop)
            wait_for_all(M.sync, c, M.members, M.pause)
            if M.member == 0:
                count_takers(N, c)
            wait_for_all(M.sync, c, M.members, M.pause)
            take_contacts(N, c, start, stop, K.at, K.room, h, numbers, body_a, body_b)
            take_pivots(N, K, c, start, stop, B, at, stride)
            round_contacts(N, c, start, stop, K.at, K.room, B, at, stride, numbers, body_a, body_b)
            take_laws(N, R, K, c, start, stop, h, numbers)
        wait_for_all(M.sync, c, M.members, M.pause)
        whole = m.fill(h)
        half = m.fill(real(0.5) * h)
        for i in range(one, end):
            m.body_drift(B, m.body_ref(at, stride, i * width, m.counted(i * width)), half)
        wait_for_all(M.sync, c, M.members, M.pause)
        for sub in range(o.substeps):
            for b in range(own, last):
                joint_prepare(J, b, B, at, stride, h, o.push_speed, int(sub == 0))
            if J.measured != 0:
                # lines read joints that other members prepare
                wait_for_all(M.sync, c, M.members, M.pause)
            if M.member == 0:
                sweep_lines(0, X, c, B, at, stride, h, o.push_speed)
            K.strong = 0
            if o.contacts != 0:
                sweep_contacts(0, N, c, K, B, at, stride, h, sub, o, M)
            else:
                wait_for_all(M.sync, c, M.members, M.pause)
            for i in range(one, end):
                r = m.body_ref(at, stride, i * width, m.counted(i * width))
                tree_before(T, B, r, tree_at)
                m.body_kick(B, r, whole)
            wait_for_all(M.sync, c, M.members, M.pause)
            scale = o.kept_share
            if sub == 0:
                scale = scale * o.impulse_scale
            if J.acting != 0:
                sweep_joints(1, J, c, B, at, stride, h, scale, over, M)
            if M.member == 0:
                sweep_lines(1, X, c, B, at, stride, h, scale)
            wait_for_all(M.sync, c, M.members, M.pause)
            if o.contacts != 0:
                sweep_contacts(1, N, c, K, B, at, stride, h, sub, o, M)
            hit = int(0)
            strong = int(0)
            if o.contacts != 0:
                if N.impact[c, COLOURS] == sub + 1:
                    hit = 1
            for sweep in range(o.iterations):
                solve_trees(T, c, B, at, stride, tree_at, J.rotors, sweep, M.member, M.members, M.pause, M.sync)
                sweep_joints(2 + sweep % 2, J, c, B, at, stride, h, scale, over, M)
                if M.member == 0:
                    sweep_lines(2, X, c, B, at, stride, h, o.push_speed)
                wait_for_all(M.sync, c, M.members, M.pause)
                if o.contacts != 0:
                    sweep_contacts(2, N, c, K, B, at, stride, h, sub, o, M)
            if o.contacts != 0:
                if N.impact[c, COLOURS + 1] == sub + 1:
                    strong = 1
                    hit = 1
            for _further in range(hit * FURTHER):
                sweep_contacts(4, N, c, K, B, at, stride, h, sub, o, M)
            for _further in range(strong * STRONG_FURTHER):
                sweep_contacts(6, N, c, K, B, at, stride, h, sub, o, M)
            for i in range(one, end):
                r = m.body_ref(at, stride, i * width, m.counted(i * width))
                if sub + 1 < o.substeps:
                    m.body_drift(B, r, whole)
                else:
                    m.body_drift(B, r, half)
            wait_for_all(M.sync, c, M.members, M.pause)
            if o.contacts != 0:
                sweep_contacts(3, N, c, K, B, at, stride, h, sub, o, M)
            for _further in range(hit * FURTHER):
                sweep_contacts(5, N, c, K, B, at, stride, h, sub, o, M)
            for _further in range(strong * STRONG_FURTHER):
                sweep_contacts(7, N, c, K, B, at, stride, h, sub, o, M)
            if o.contacts != 0:
                if N.impact[c, COLOURS + 2] == sub + 1:
                    if M.member == 0:
                        N.impact[c, COLOURS + 3] = group_rebounds(
                            N, c, first_slot, K.at, K.room, B, at, stride, o.rebound_speed, numbers, body_a, body_b
                        )
                    wait_for_all(M.sync, c, M.members, M.pause)
                    for _further in range(N.impact[c, COLOURS + 3] * SPREADING):
                        sweep_contacts(9, N, c, K, B, at, stride, h, sub, o, M)
                    if M.member == 0 and N.impact[c, COLOURS + 3] != 0:
                        drop_impulses(N, c, K.at, K.room, numbers, K.extra_at, K.extra)
                    wait_for_all(M.sync, c, M.members, M.pause)
        store_bodies(G, at, stride, first_slot, one * width, end * width, o.spin_share)
        if o.contacts != 0:
            keep_contacts(N, c, start, stop, K.at, K.room, B, at, stride, h, o.dt, numbers, body_a, body_b)
            keep_laws(N, R, K, c, start, stop, h)
        end_without_denormals(mode)

    return step, Bodies, Joints, Listed, Settings, Lines, Laws, Team, Trees
