"""Which contacts of a list can be solved side by side, and which of them were there in the step before.

Contacts get colours: two contacts of one colour share no body that moves, so that their impulses can be updated at once. Every contact
takes the first colour that is free at both of its bodies, in the order of the list; the colours of a world do not depend on other worlds.
The last colour holds those contacts for which none was free, and these are updated one by one.
"""

from functools import cache

import warp as wp
from newton_like.kernels.simd import COPYING, GENERAL_FLAGS, module_options
from newton_like.kernels.solvers.xpbd.bodies import INVERSE_MASS, place_in_chunk

from newton_like.kernels.solvers.xpbd.touching import (  # isort: skip
    BEGUN, BELOW, BIAS, DEEP_GIVE, GIVE, HELD, IMPULSES, MARGINS, MU_AT, NORMAL_AT, POINT_A, POINT_B, REBOUND, SUMS,
)  # fmt: skip

COLOURS = 64
"""Number of colours; the last one is for contacts that are updated one by one."""

STIFFEST = 0.5
"""Largest stiffness h w (2 z + h w) of a contact between bodies of one articulation, and, while they overlap deeply, between the world and
a body with joints: its impulse then goes down by two thirds in a sub-step that does not need it. Joints may hold such bodies in each other,
and the impulses of a stiff contact would grow without bound."""

NEVER = 1.0e30
"""A speed that no impact has [m/s]."""

IMPACT_SPEED = 0.2
"""Speed from which on an impact is solved in further passes [m/s]."""

FALLS = 0.98
"""Least share of the normal impulse of the sub-step before that a contact keeps as it is."""

FAR = 1.0e6
"""Distance of shapes whose contact has no force [m]."""

ACROSS = 1.0e-3
"""Largest cosine between the normal of a contact and the only direction of motion of its body, of contacts that have no force."""

ANCHORED, HELD_FAST = 1, 2
"""Marks of bodies: a joint connects them to the world; fixed joints hold them to the world, and contacts do not move them."""

RISES = 1.1
"""Largest normal impulse that a contact of a body with joints keeps, as a multiple of that kept the sub-step before. It rises further by as
much as changes the velocity of the heavier body by `STOPS`."""

STOPS = 0.01
"""If the normal impulse of two bodies, or of a body with joints on the ground, is less than that of the sub-step before, by at least as
much as changes the velocity of the heavier one by this [m/s], it is the impulse of an impact that ends."""

FASTER = 60.0
"""How many times faster than by itself the kept impulse of such a contact goes down. By itself, it does so slowly in passes over a light
body between a heavy one and the ground, and would throw up the heavy one."""

# columns of the table of chunks
(BODY_AT, SLOTS, FIRST_SLOT, DUMMY, FIRST_BLOCK, LAST_BLOCK, FIRST_WORLD, LAST_WORLD) = range(8)
CHUNK_COLUMNS = 8


@cache
def order_struct(real):
    """The struct of a list of contacts, and what is known of shapes and of the contacts of the step before."""
    vec3, wrench6, quat = wp.types.vector(3, real), wp.types.vector(6, real), wp.types.quaternion(real)

    @wp.struct
    class Listed:
        count: wp.array[int]
        shape0: wp.array[int]
        shape1: wp.array[int]
        point0: wp.array[vec3]
        point1: wp.array[vec3]
        normal: wp.array[vec3]
        margin0: wp.array[real]
        margin1: wp.array[real]
        # of shapes: the body, and the material
        shape_body: wp.array[int]
        mu: wp.array[real]
        restitution: wp.array[real]
        time_constant: wp.array[real]
        damping_ratio: wp.array[real]
        # radius of round shapes, -1 of ellipsoids, else 0; axes of cylinders in link axes, squares of half axes of ellipsoids, else zero;
        # orientations of shapes
        round_radius: wp.array[real]
        round_axis: wp.array[vec3]
        round_turn: wp.array[quat]
        # of bodies: chunk and slot, whether forces move them, their articulation or -1, whether a joint connects them to the world, whether
        # joints constrain them, and their world; `body_rail`: the direction of the only motion that a joint with the world leaves to a
        # body, or zero; `body_pivot`: see `newton_like.kernels.solvers.xpbd.pivots`; of worlds: the slot of their fixed bodies
        body_chunk: wp.array[int]
        body_slot: wp.array[int]
        body_moves: wp.array[int]
        body_tree: wp.array[int]
        body_anchored: wp.array[int]
        body_rail: wp.array[vec3]
        body_pivot: wp.array2d[real]
        body_held: wp.array[int]
        body_world: wp.array[int]
        fixed_slot: wp.array[int]
        body_com: wp.array[vec3]
        # of chunks: the first contact, and behind the last one the end; the contacts of each chunk in the order of the list
        start: wp.array[int]
        chosen: wp.array[int]
        # contacts by colour; `colour` then holds the contact of the step before that is nearest
        ordered: wp.array[int]
        colour_start: wp.array2d[int]
        colour: wp.array[int]
        # of each colour of a chunk the last sub-step, counted from 1, in which a contact begins with an impact; behind them that of all,
        # those in which contacts need more passes and rebound, and whether rebounds reach other contacts
        impact: wp.array2d[int]
        taken: wp.array[wp.uint64]
        # contacts of the step before, and forces
        kept_start: wp.array[int]
        kept_shape0: wp.array[int]
        kept_shape1: wp.array[int]
        kept_point: wp.array[vec3]
        kept_force: wp.array[vec3]
        kept_next: wp.array[int]
        kept_takers: wp.array[int]
        kept_head: wp.array[int]
        # the same of this step
        now_shape0: wp.array[int]
        now_shape1: wp.array[int]
        now_point: wp.array[vec3]
        now_force: wp.array[vec3]
        # whether forces are reported; of each contact of the list the wrench on the body of shape 0, about its centre of mass
        report: int
        wrench: wp.array[wrench6]

    return Listed


@cache
def is_fast_function(real):
    """The function ``is_fast``: whether contacts do not move a body, -1 for the world."""
    Listed = order_struct(real)

    @wp.func
    def is_fast(N: wp.ref[Listed], body: int) -> bool:
        if body < 0:
            return True
        return N.body_anchored[body] == HELD_FAST

    return is_fast


@cache
def tangent_function(real):
    """The function ``tangent_of``, for scalars: a tangent of a unit normal."""
    vec3 = wp.types.vector(3, real)

    @wp.func
    def tangent_of(n: vec3) -> vec3:
        sign = real(1.0)
        if n[2] < real(0.0):
            sign = real(-1.0)
        f = -real(1.0) / (sign + n[2])
        return vec3(real(1.0) + sign * n[0] * n[0] * f, sign * n[0] * n[1] * f, -sign * n[0])

    return tangent_of


@cache
def order_kernels(real):
    """The struct of lists, the kernels that give contacts to chunks and that forget forces, kernels that give contacts to chunks on a GPU,
    and functions over the contacts of a chunk."""
    vec3, wrench6 = wp.types.vector(3, real), wp.types.vector(6, real)
    Listed, tangent_of, is_fast = order_struct(real), tangent_function(real), is_fast_function(real)

    @wp.func
    def moving_body(N: wp.ref[Listed], i: int) -> int:
        """The body by which contact i belongs to a chunk; -1: no force moves a body of it."""
        count = N.shape_body.shape[0]
        a = N.shape0[i]
        b = N.shape1[i]
        if a < 0 or b < 0 or a >= count or b >= count:
            return -1
        one = N.shape_body[a]
        two = N.shape_body[b]
        if one == two:
            return -1
        if two >= 0:
            if N.body_moves[two] != 0:
                return two
        if one >= 0:
            if N.body_moves[one] != 0:
                return one
        return -1

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, 8))
    def share_out(N: Listed):
        """Counts the contacts of every chunk and lists them, chunk by chunk."""
        chunks = N.start.shape[0] - 1
        total = wp.min(N.count[0], N.shape0.shape[0])
        for c in range(chunks + 1):
            N.start[c] = 0
        for i in range(total):
            k = moving_body(N, i)
            if k >= 0:
                c = N.body_chunk[k] + 1
                N.start[c] = N.start[c] + 1
        for c in range(chunks):
            N.start[c + 1] = N.start[c + 1] + N.start[c]
        # each start is a counter while the lists are filled, and then moves back
        for i in range(total):
            k = moving_body(N, i)
            if k >= 0:
                c = N.body_chunk[k]
                N.chosen[N.start[c]] = i
                N.start[c] = N.start[c] + 1
        for back in range(chunks):
            c = chunks - back
            N.start[c] = N.start[c - 1]
        N.start[0] = 0

    @wp.kernel(module="unique", enable_backward=False)
    def name_chunks(N: Listed, chunk: wp.array[int]):
        """chunk <- that of each contact, behind the last chunk for those that belong to none; chosen <- all contacts in turn. Sorted by
        chunks, with the order kept within a chunk, ``chosen`` is that of `share_out`. For GPUs."""
        i = wp.tid()
        k = int(-1)
        if i < N.count[0]:
            k = moving_body(N, i)
        N.chosen[i] = i
        chunk[i] = N.start.shape[0] - 1
        if k >= 0:
            chunk[i] = N.body_chunk[k]

    @wp.kernel(module="unique", enable_backward=False)
    def find_starts(N: Listed, chunk: wp.array[int], contacts: int):
        """start <- the first of the sorted contacts of each chunk."""
        c = wp.tid()
        first = int(0)
        end = int(contacts)
        while first < end:
            middle = (first + end) // 2
            if chunk[middle] < c:
                first = middle + 1
            else:
                end = middle
        N.start[c] = first

    @wp.func
    def slot_of(N: wp.ref[Listed], body: int, world: int) -> int:
        if body < 0:
            return N.fixed_slot[wp.max(world, 0)]
        return N.body_slot[body]

    @wp.func
    def colour_contacts(N: wp.ref[Listed], c: int, first_slot: int, slots: int):
        """Orders the contacts of chunk c by colours. The contacts of colour i begin at colour_start[c, i], counted from the first one of
        the chunk."""
        start = N.start[c]
        end = N.start[c + 1]
        for i in range(slots):
            N.taken[first_slot + i] = wp.uint64(0)
        for i in range(COLOURS + 1):
            N.colour_start[c, i] = 0
            N.impact[c, i] = 0
        N.impact[c, COLOURS + 1] = 0
        N.impact[c, COLOURS + 2] = 0
        N.impact[c, COLOURS + 3] = 0
        for k in range(start, end):
            i = N.chosen[k]
            a = N.shape_body[N.shape0[i]]
            b = N.shape_body[N.shape1[i]]
            used = wp.uint64(0)
            if not is_fast(N, a):
                if N.body_moves[a] != 0:
                    used = used | N.taken[first_slot + N.body_slot[a]]
            if not is_fast(N, b):
                if N.body_moves[b] != 0:
                    used = used | N.taken[first_slot + N.body_slot[b]]
            colour = int(0)
            while colour < COLOURS - 1 and ((used >> wp.uint64(colour)) & wp.uint64(1)) != wp.uint64(0):
                colour += 1
            bit = wp.uint64(1) << wp.uint64(colour)
            if a >= 0:
                N.taken[first_slot + N.body_slot[a]] = N.taken[first_slot + N.body_slot[a]] | bit
            if b >= 0:
                N.taken[first_slot + N.body_slot[b]] = N.taken[first_slot + N.body_slot[b]] | bit
            N.colour[k] = colour
            N.colour_start[c, colour] = N.colour_start[c, colour] + 1
        n = int(0)
        for i in range(COLOURS + 1):
            here = N.colour_start[c, i]
            N.colour_start[c, i] = n
            n += here
        for k in range(start, end):
            i = N.colour[k]
            at = N.colour_start[c, i]
            N.ordered[start + at] = N.chosen[k]
            N.colour_start[c, i] = at + 1
        # each start has moved on to the next one
        for back in range(COLOURS):
            i = COLOURS - back
            N.colour_start[c, i] = N.colour_start[c, i - 1]
        N.colour_start[c, 0] = 0

    @wp.func
    def chain_of(s0: int, s1: int, slots: int) -> int:
        """The chain that holds the contacts of two shapes; those of one body are in many chains."""
        mixed = wp.uint32(s0) * wp.uint32(1540483477) + wp.uint32(s1) * wp.uint32(668265261)
        return int((mixed ^ (mixed >> wp.uint32(15))) % wp.uint32(slots))

    @wp.func
    def nearest_kept(N: wp.ref[Listed], first_slot: int, slots: int, i: int) -> int:
        """The contact of the step before that has the shapes of contact i and is nearest to its point of shape 1; -1: none."""
        s0 = N.shape0[i]
        s1 = N.shape1[i]
        point = N.point1[i]
        k = N.kept_head[first_slot + chain_of(s0, s1, slots)]
        best = real(1.0e30)
        found = int(-1)
        while k >= 0:
            if N.kept_shape0[k] == s0 and N.kept_shape1[k] == s1:
                d = N.kept_point[k] - point
                far = wp.dot(d, d)
                if far < best:
                    best = far
                    found = k
            k = N.kept_next[k]
        return found

    @wp.func
    def chain_kept(N: wp.ref[Listed], c: int, first_slot: int, slots: int):
        """Lists the contacts of the step before in as many chains as there are slots."""
        for i in range(slots):
            N.kept_head[first_slot + i] = -1
        start = N.kept_start[c]
        for back in range(N.kept_start[c + 1] - start):
            k = N.kept_start[c + 1] - 1 - back
            at = first_slot + chain_of(N.kept_shape0[k], N.kept_shape1[k], slots)
            N.kept_next[k] = N.kept_head[at]
            N.kept_head[at] = k
            N.kept_takers[k] = 0

    @wp.func
    def match_contacts(N: wp.ref[Listed], first_slot: int, slots: int, begin: int, end: int):
        """colour <- the contact of the step before that is nearest to each contact at places `begin` to `end`. Colours are no longer
        needed."""
        for k in range(begin, end):
            N.colour[k] = nearest_kept(N, first_slot, slots, N.ordered[k])

    @wp.func
    def count_takers(N: wp.ref[Listed], c: int):
        """Counts the contacts of chunk c that are nearest to the same old one. They share its force equally."""
        for k in range(N.start[c], N.start[c + 1]):
            old = N.colour[k]
            if old >= 0:
                N.kept_takers[old] = N.kept_takers[old] + 1

    @wp.func
    def same_pair(N: wp.ref[Listed], i: int, a: int, b: int) -> bool:
        """Whether contact i of the list, if there is one, is between the bodies a and b."""
        if i < 0 or i >= N.shape0.shape[0]:
            return False
        if i >= N.count[0]:
            return False
        s0 = N.shape0[i]
        s1 = N.shape1[i]
        if s0 < 0 or s1 < 0 or s0 >= N.shape_body.shape[0] or s1 >= N.shape_body.shape[0]:
            return False
        return N.shape_body[s0] == a and N.shape_body[s1] == b

    @wp.func
    def take_contacts(
        N: wp.ref[Listed], c: int, begin: int, end: int, at: int, room: int, h: real, numbers: wp.array[real], body_a: wp.array[int],
        body_b: wp.array[int],
    ):  # fmt: skip
        """Stores the numbers of the contacts of chunk c at places `begin` to `end`, in the order of colours."""
        half = real(0.5)
        for k in range(begin, end):
            i = N.ordered[k]
            s0 = N.shape0[i]
            s1 = N.shape1[i]
            a = N.shape_body[s0]
            b = N.shape_body[s1]
            world = int(0)
            if b >= 0:
                world = N.body_world[b]
            if a >= 0:
                world = wp.max(world, N.body_world[a])
            body_a[k] = slot_of(N, a, world)
            body_b[k] = slot_of(N, b, world)
            p0 = N.point0[i]
            p1 = N.point1[i]
            force = vec3(real(0.0), real(0.0), real(0.0))
            old = N.colour[k]
            if old >= 0:
                force = N.kept_force[old] / real(N.kept_takers[old])
            N.now_shape0[k] = s0
            N.now_shape1[k] = s1
            N.now_point[k] = p1
            if a >= 0:
                p0 = p0 - N.body_com[a]
            if b >= 0:
                p1 = p1 - N.body_com[b]
            n = N.normal[i]
            t1 = tangent_of(n)
            t2 = wp.cross(n, t1)
            j = at + k - N.start[c]
            for x in range(3):
                numbers[j + (POINT_A + x) * room] = p0[x]
                numbers[j + (POINT_B + x) * room] = p1[x]
                numbers[j + (NORMAL_AT + x) * room] = n[x]
            numbers[j + MARGINS * room] = N.margin0[i] + N.margin1[i]
            numbers[j + MU_AT * room] = half * (N.mu[s0] + N.mu[s1])
            numbers[j + REBOUND * room] = half * (N.restitution[s0] + N.restitution[s1])
            w = real(1.0) / wp.max(half * (N.time_constant[s0] + N.time_constant[s1]), real(1.0e-6))
            z = half * (N.damping_ratio[s0] + N.damping_ratio[s1])
            reach = real(2.0) * z + h * w
            stiff = h * w * reach
            stiffest = real(STIFFEST)
            if a >= 0 and b >= 0:
                if N.body_tree[a] >= 0 and N.body_tree[a] == N.body_tree[b]:
                    stiff = wp.min(stiff, stiffest)
            numbers[j + BIAS * room] = w / reach
            numbers[j + GIVE * room] = stiff / (real(1.0) + stiff)
            anchored = bool(False)
            fast_a = is_fast(N, a)
            fast_b = is_fast(N, b)
            own = b
            if fast_b:
                own = a
            if (fast_a or fast_b) and own >= 0:
                if N.body_held[own] != 0:
                    stiff = wp.min(stiff, stiffest)
                anchored = N.body_anchored[own] != 0
                # A contact along whose normal the joint does not let the body move acts on the joint alone, and its friction
                # would brake the body.
                rail = N.body_rail[own]
                if wp.dot(rail, rail) > real(0.0) and wp.abs(wp.dot(rail, n)) < real(ACROSS):
                    numbers[j + MARGINS * room] = real(-FAR)
            numbers[j + DEEP_GIVE * room] = stiff / (real(1.0) + stiff)
            numbers[j + IMPULSES * room] = wp.max(real(0.0), wp.dot(force, n)) * h
            numbers[j + (IMPULSES + 1) * room] = wp.dot(force, t1) * h
            numbers[j + (IMPULSES + 2) * room] = wp.dot(force, t2) * h
            # points of one face follow each other in the list
            below = real(-NEVER)
            if same_pair(N, i - 1, a, b) or same_pair(N, i + 1, a, b):
                below = real(-IMPACT_SPEED)
            numbers[j + BELOW * room] = below
            numbers[j + BEGUN * room] = numbers[j + IMPULSES * room]
            held = int(0)
            # the impulses with which a body that is anchored in a fixed shape shakes would grow further
            if not anchored:
                if not fast_a:
                    held = N.body_held[a]
                if not fast_b:
                    held = wp.max(held, N.body_held[b])
            numbers[j + HELD * room] = real(held)
            if N.report != 0:
                for x in range(6):
                    numbers[j + (SUMS + x) * room] = real(0.0)

    @wp.func
    def keep_contacts(
        N: wp.ref[Listed], c: int, begin: int, end: int, at: int, room: int, B: wp.array[real], body_at: int, stride: int, h: real,
        dt: real, numbers: wp.array[real], body_a: wp.array[int], body_b: wp.array[int],
    ):  # fmt: skip
        """Stores the forces on shape 1 of the contacts of chunk c at places `begin` to `end`, in world axes, for the next step; and, if
        asked for, the mean wrenches on shape 0 over a step of length dt."""
        for k in range(begin, end):
            j = at + k - N.start[c]
            n = vec3(
                numbers[j + NORMAL_AT * room], numbers[j + (NORMAL_AT + 1) * room], numbers[j + (NORMAL_AT + 2) * room]
            )
            t1 = tangent_of(n)
            t2 = wp.cross(n, t1)
            f = n * numbers[j + IMPULSES * room] + t1 * numbers[j + (IMPULSES + 1) * room]
            f = f + t2 * numbers[j + (IMPULSES + 2) * room]
            # as in contact_start
            begun = numbers[j + BEGUN * room]
            normal = numbers[j + IMPULSES * room]
            mass_a = B[place_in_chunk(body_at, stride, body_a[k], INVERSE_MASS)]
            mass_b = B[place_in_chunk(body_at, stride, body_b[k], INVERSE_MASS)]
            if is_fast(N, N.shape_body[N.now_shape0[k]]):
                mass_a = real(0.0)
            if is_fast(N, N.shape_body[N.now_shape1[k]]):
                mass_b = real(0.0)
            stops = real(STOPS)
            response = wp.min(mass_a, mass_b)
            if response == real(0.0):
                response = numbers[j + HELD * room] * wp.max(mass_a, mass_b)
            if normal < real(FALLS) * begun:
                fall = (begun - normal) * response - stops
                if fall > real(0.0):
                    f = f * wp.max(real(0.0), real(1.0) - real(FASTER) * fall / (begun * response))
            elif numbers[j + HELD * room] > real(0.0):
                most = real(RISES) * begun + stops / wp.max(response, real(1.0e-20))
                if most < normal:
                    f = f * (most / normal)
            N.now_force[k] = f / h
            if N.report != 0:
                w = wrench6(real(0.0))
                for x in range(6):
                    w[x] = -numbers[j + (SUMS + x) * room] / dt
                N.wrench[N.ordered[k]] = w

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def forget(N: Listed, mask: wp.array[bool], turn: wp.array[vec3]):
        """Sets the kept forces and torques of chosen worlds to zero."""
        k = wp.tid()
        if k >= N.kept_start[N.kept_start.shape[0] - 1]:
            return
        body = N.shape_body[N.kept_shape1[k]]
        if body < 0:
            body = N.shape_body[N.kept_shape0[k]]
        if mask[N.body_world[body]]:
            N.kept_force[k] = vec3(real(0.0), real(0.0), real(0.0))
            if k < turn.shape[0]:
                turn[k] = vec3(real(0.0), real(0.0), real(0.0))

    return (
        Listed,
        share_out,
        forget,
        (name_chunks, find_starts),
        (colour_contacts, chain_kept, match_contacts, count_takers, take_contacts, keep_contacts),
    )
