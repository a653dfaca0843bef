"""All joints of a tree at once: an articulated-body recursion in maximal coordinates.

The first pass over joints of a sub-step solves the joints of trees exactly. From the leaves to the roots, the impulse p that a joint gives
to its child is expressed by the change x of the velocity of the parent at the anchor, p = A x - b, with the articulated inertia A of the
child and what its subtree lacks (Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7, with impulses instead of forces). Locked
rows have given changes of velocity. A free row has one segment of its law, p = t - s u, or a given velocity where a limit or friction
holds it. From the roots to the leaves follow the changes of the velocities and the impulses of free rows. The segment is that of the
velocity which the row has if the velocity of the parent goes on to change as before. Further passes tell the trees of other impulses;
they take the segments at the velocities now, and a limit that holds a row holds it until the next sub-step. Where no segment changes,
articulated inertias stay.

Velocities and impulses are those of anchors, in world axes. Rows of a joint are perpendicular to each other.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.registration import inlined
from newton_like.kernels.simd import COPYING
from newton_like.kernels.solvers.xpbd.bodies import BODY_INERTIA

from newton_like.kernels.solvers.xpbd.joints import (  # isort: skip
    ACTS, ACT_NUMBERS, AIM, CHILD_ARM, IMPULSE, JOINT_WORK, PARENT_ARM,
    ROTOR, ROWS,
)  # fmt: skip
from newton_like.kernels.solvers.xpbd.rows import copy_function, rows_access  # isort: skip

# Numbers of bodies of trees, in rows of the chunk: articulated inertia of the children and what they lack, change of the velocity, the
# velocity that is expected after the sub-step, that before the forces of the sub-step, and how that changed since the sub-step before
PARTS, CHANGE, EXPECTED, BEFORE, PACE = 0, 27, 33, 39, 45
TREE_NUMBERS = 51

# Columns of the table of blocks: lanes with a joint, numbers of free translations and rotations, block of joints, whether the joints of the
# lanes are copied to this block, first parent, child and child with children where they are consecutive, whether a child has children, how
# the sums of parents are found, whether forces move the parent
COUNT, LINEAR, ANGULAR, BLOCK, COPIED, PARENT_RUN, CHILD_RUN, BELOW_RUN, HAS_CHILDREN, SUMS, MOVED = range(11)
TREE_COLUMNS = 11
# Children of a block are the first ones of their parents, or are added to the sum of earlier ones; or lanes follow each other
FIRST, ADD, MIXED = range(3)
# Columns of the table of blocks of roots
ROOT_COUNT, ROOT_RUN = range(2)

# Numbers of a block: change of the velocity along locked rows, own inertia of the child in world axes, articulated inertia at the anchor;
# of a free row: response to the row (an impulse), its inverse inertia, inertia, change, impulse without a change of the parent, velocity,
# and the segment of its law
LOCKED, OWN, AT_ANCHOR, FREE_ROWS = 0, 6, 12, 33
SEEN, SEEN_TURN, INVERSE = 0, 3, 6
INERTIA, CHANGES, HELD_BY, SPEED_NOW, HELD, LIMITED, LAW_AT, LAW_SLOPE = range(7, 15)
FREE_NUMBERS = 15
MOST_FREE = 5
TREE_WORK = FREE_ROWS + MOST_FREE * FREE_NUMBERS


def tree_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``Trees``, and functions over blocks of bodies and joints of trees."""
    real, lane, Sym3, width = m.real, m.lane, m.Sym3, m.width
    Whole, Turning, segment = m.Whole, m.Turning, m.segment

    @wp.struct
    class Trees:
        """Joints of trees in blocks, from the leaves to the roots.

        blocks, root_blocks: see the columns above; joint: where the numbers of the joint of a lane begin in `of_joints`, the work memory of
        joints; parent, child, root: slots; below: those of children that have children, else one without children; rank: of children among
        those of the parent; stages: first block and end of those that share no parent; stage_at, root_at: of chunks the first
        stage and the first block of roots; changed: of chunks, whether segments changed; body: numbers of bodies.
        """

        blocks: wp.array2d[int]
        root_blocks: wp.array2d[int]
        joint: wp.array[int]
        parent: wp.array[int]
        child: wp.array[int]
        below: wp.array[int]
        rank: wp.array[int]
        root: wp.array[int]
        stages: wp.array2d[int]
        stage_at: wp.array[int]
        root_at: wp.array[int]
        changed: wp.array[int]
        work: m.memory
        joints: m.memory
        of_joints: wp.array[real]
        body: wp.array[real]

    copy = copy_function(m)
    fetch_whole, deposit_whole, add_wholes = rows_access(m, Whole, 27)
    fetch_change, deposit_change, add_changes = rows_access(m, Turning, 6)

    @inlined
    def own_inertia(B: wp.array[real], r: m.BodyRef, motion: wp.ref[m.Motion]) -> Sym3:
        """The moments of inertia of bodies in world axes."""
        pose = m.body_pose(B, r)
        turn = m.sym_rotate(m.body_sym(B, r, BODY_INERTIA), m.quat_to_matrix(pose.turn))
        none = m.sub(m.fill(real(1.0)), motion.dynamic)
        return m.sym(m.add(turn.xx, none), m.add(turn.yy, none), m.add(turn.zz, none), turn.xy, turn.xz, turn.yz)

    @m.func
    def tree_before(T: wp.ref[Trees], B: wp.array[real], r: m.BodyRef, tree_at: int):
        """Remembers the velocities of bodies in slots that follow each other, and those that are expected after this sub-step: they go on
        to change by the smaller one of the last two changes."""
        motion = m.body_motion(B, r)
        at = tree_at + r.first
        zero = m.fill(real(0.0))
        for i in range(6):
            now = motion.vel.x
            if i == 1:
                now = motion.vel.y
            if i == 2:
                now = motion.vel.z
            if i == 3:
                now = motion.spin.x
            if i == 4:
                now = motion.spin.y
            if i == 5:
                now = motion.spin.z
            change = m.sub(now, m.fetch_run(T.body, at + (BEFORE + i) * r.stride))
            pace = m.fetch_run(T.body, at + (PACE + i) * r.stride)
            m.deposit_run(T.body, at + (BEFORE + i) * r.stride, now)
            m.deposit_run(T.body, at + (PACE + i) * r.stride, change)
            # products of small numbers would be denormal
            small = m.add(m.larger(zero, m.smaller(change, pace)), m.smaller(zero, m.larger(change, pace)))
            m.deposit_run(T.body, at + (EXPECTED + i) * r.stride, m.add(now, small))

    @m.func
    def tree_copy(T: wp.ref[Trees], n: int):
        """Copies the numbers of the joints of a block whose lanes are not those of a block of joints."""
        if T.blocks[n, COPIED] != 0:
            joint = m.listed(T.joint, n * width, width, 0)
            count = T.blocks[n, COUNT]
            to = T.blocks[n, BLOCK] * JOINT_WORK
            copy(T.of_joints, joint, count, to, ROWS, CHILD_ARM + 3)
            copy(T.of_joints, joint, count, to, AIM, AIM + 6)
            copy(T.of_joints, joint, count, to, ACTS, ACTS + MOST_FREE * ACT_NUMBERS)

    @m.func
    def tree_rows(T: wp.ref[Trees], n: int, B: wp.array[real], body_at: int, stride: int, again: int) -> int:
        """Finds the changes of velocity along the locked rows of block n, and the velocities of free rows; `again`: in a further pass, also
        the segments of their laws. Returns 1 if one of these changed more than its offset, else 0."""
        linear = T.blocks[n, LINEAR]
        angular = T.blocks[n, ANGULAR]
        work = n * TREE_WORK
        j = T.blocks[n, BLOCK] * JOINT_WORK
        J = T.joints
        W = T.work
        zero = m.fill(real(0.0))
        parent = m.body_ref(body_at, stride, T.blocks[n, PARENT_RUN], m.listed(T.parent, n * width, width, 0))
        child = m.body_ref(body_at, stride, T.blocks[n, CHILD_RUN], m.listed(T.child, n * width, width, 0))
        motion_a = m.body_motion(B, parent)
        motion_b = m.body_motion(B, child)
        moves = m.cross_plus(motion_b.spin, m.get3(J, j + CHILD_ARM, 0), motion_b.vel)
        moves = m.sub3(moves, m.cross_plus(motion_a.spin, m.get3(J, j + PARENT_ARM, 0), motion_a.vel))
        turns = m.sub3(motion_b.spin, motion_a.spin)
        v = m.zero3()
        w = m.zero3()
        i = int(0)
        while i < 3 - linear:
            d = m.get3(J, j + ROWS + 3 * i, 0)
            v = m.fma3(d, m.sub(m.get(J, j + AIM + i, 0), m.dot(d, moves)), v)
            i += 1
        while i < 6 - linear - angular:
            d = m.get3(J, j + ROWS + 3 * i, 0)
            w = m.fma3(d, m.sub(m.get(J, j + AIM + i, 0), m.dot(d, turns)), w)
            i += 1
        m.put3(W, work + LOCKED, 0, v)
        m.put3(W, work + LOCKED + 3, 0, w)
        if again == 0:
            m.put_sym(W, work + OWN, 0, own_inertia(B, child, motion_b))
        changed = int(0)
        free = int(0)
        while free < linear + angular:
            d = m.get3(J, j + ROWS + 3 * (i + free), 0)
            at = work + FREE_ROWS + FREE_NUMBERS * free
            u = m.dot(d, turns)
            if free < linear:
                u = m.dot(d, moves)
            m.put(W, at + SPEED_NOW, 0, u)
            if again != 0:
                inertia = m.get(W, at + INERTIA, 0)
                law = segment(
                    J, j + ACTS + ACT_NUMBERS * free, inertia, m.sub(m.mul(inertia, u), m.get(J, j + IMPULSE + free, 0))
                )
                # a limit that holds a row holds it for this sub-step
                limited = m.get(W, at + LIMITED, 0)
                held = m.larger(limited, law.held)
                law.at = m.where_lt(zero, limited, m.get(W, at + LAW_AT, 0), law.at)
                off = m.sub(held, m.get(W, at + HELD, 0))
                bend = m.sub(law.slope, m.get(W, at + LAW_SLOPE, 0))
                if m.any_lt(zero, m.fma(off, off, m.mul(bend, bend))):
                    changed = 1
                m.put(W, at + HELD, 0, held)
                m.put(W, at + LIMITED, 0, m.larger(limited, law.limited))
                m.put(W, at + LAW_AT, 0, law.at)
                m.put(W, at + LAW_SLOPE, 0, law.slope)
            free += 1
        return changed

    @inlined
    def inverse_of(held: lane, inertia: lane, slope: lane) -> lane:
        zero = m.fill(real(0.0))
        return m.where_lt(zero, held, zero, m.rcp(m.add(inertia, slope)))

    @m.func
    def free_change(W: m.memory, at: int, u: lane, lack: lane, impulse: lane):
        """Stores the change of the velocity of a free row, and its impulse, if the parent keeps its velocity."""
        zero = m.fill(real(0.0))
        at_law = m.get(W, at + LAW_AT, 0)
        change = m.add(lack, m.sub(m.fnma(m.get(W, at + LAW_SLOPE, 0), u, at_law), impulse))
        change = m.mul(m.get(W, at + INVERSE, 0), change)
        change = m.where_lt(zero, m.get(W, at + HELD, 0), m.sub(at_law, u), change)
        m.put(W, at + CHANGES, 0, change)
        m.put(W, at + HELD_BY, 0, m.sub(impulse, lack))

    @m.func
    def tree_up(T: wp.ref[Trees], n: int, B: wp.array[real], body_at: int, stride: int, tree_at: int, again: int):
        """What the children of block n, with their subtrees, do to their parents; `again`: in a further pass."""
        linear = T.blocks[n, LINEAR]
        angular = T.blocks[n, ANGULAR]
        count = T.blocks[n, COUNT]
        work = n * TREE_WORK
        j = T.blocks[n, BLOCK] * JOINT_WORK
        J = T.joints
        W = T.work
        zero = m.fill(real(0.0))
        parents = m.listed(T.parent, n * width, width, 0)
        children = m.listed(T.child, n * width, width, 0)
        child = m.body_ref(body_at, stride, T.blocks[n, CHILD_RUN], children)
        parent = m.body_ref(body_at, stride, T.blocks[n, PARENT_RUN], parents)
        a = Whole()
        if T.blocks[n, HAS_CHILDREN] != 0:
            below = m.listed(T.below, n * width, width, 0)
            fetch_whole(T.body, tree_at + PARTS * stride, stride, T.blocks[n, BELOW_RUN], below, a)
        else:
            m.clear(a)
        motion = m.body_motion(B, child)
        m.add_own(a, motion, m.get_sym(W, work + OWN, 0))
        ra = m.get3(J, j + PARENT_ARM, 0)
        rb = m.get3(J, j + CHILD_ARM, 0)
        m.shift(a, rb)
        a.t = m.sub3(a.t, m.cross(rb, a.b))
        m.put_sym(W, work + AT_ANCHOR, 0, a.l)
        m.put3(W, work + AT_ANCHOR + 6, 0, a.x)
        m.put3(W, work + AT_ANCHOR + 9, 0, a.y)
        m.put3(W, work + AT_ANCHOR + 12, 0, a.z)
        m.put_sym(W, work + AT_ANCHOR + 15, 0, a.h)
        v = m.get3(W, work + LOCKED, 0)
        w = m.get3(W, work + LOCKED + 3, 0)
        b = m.lack_of(a, v, w)
        a.t = m.turn_lack_of(a, v, w)
        a.b = b
        lead = Turning()
        lead.v = m.zero3()
        lead.w = m.zero3()
        if again == 0 and T.blocks[n, MOVED] != 0:
            # the change of the parent that is expected
            fetch_change(T.body, tree_at + EXPECTED * stride, stride, T.blocks[n, PARENT_RUN], parents, lead)
            motion_a = m.body_motion(B, parent)
            lead.w = m.sub3(lead.w, motion_a.spin)
            lead.v = m.cross_plus(lead.w, ra, m.sub3(lead.v, motion_a.vel))
        free = int(0)
        while free < linear + angular:
            d = m.get3(J, j + ROWS + 3 * (6 - linear - angular + free), 0)
            at = work + FREE_ROWS + FREE_NUMBERS * free
            s = m.vec(m.dot(a.x, d), m.dot(a.y, d), m.dot(a.z, d))
            turn = m.sym_apply(a.h, d)
            lack = m.dot(d, a.t)
            inertia = m.dot(d, turn)
            if free < linear:
                s = m.sym_apply(a.l, d)
                turn = m.fma3(a.x, d.x, m.fma3(a.y, d.y, m.scale3(a.z, d.z)))
                lack = m.dot(d, a.b)
                inertia = m.dot(d, s)
            m.put3(W, at + SEEN, 0, s)
            m.put3(W, at + SEEN_TURN, 0, turn)
            m.put(W, at + INERTIA, 0, inertia)
            u = m.get(W, at + SPEED_NOW, 0)
            impulse = m.get(J, j + IMPULSE + free, 0)
            if again == 0:
                impulse = zero
                away = m.sub(m.fma(inertia, u, lack), m.dot_plus(s, lead.v, m.dot(turn, lead.w)))
                law = segment(J, j + ACTS + ACT_NUMBERS * free, inertia, away)
                m.put(W, at + HELD, 0, law.held)
                m.put(W, at + LIMITED, 0, law.limited)
                m.put(W, at + LAW_AT, 0, law.at)
                m.put(W, at + LAW_SLOPE, 0, law.slope)
            inverse = inverse_of(m.get(W, at + HELD, 0), inertia, m.get(W, at + LAW_SLOPE, 0))
            m.put(W, at + INVERSE, 0, inverse)
            free_change(W, at, u, lack, impulse)
            m.released(a, s, turn, inverse)
            change = m.get(W, at + CHANGES, 0)
            a.b = m.fnma3(s, change, a.b)
            a.t = m.fnma3(turn, change, a.t)
            free += 1
        if T.blocks[n, MOVED] != 0:
            m.shift(a, m.neg3(ra))
            a.t = m.cross_plus(ra, a.b, a.t)
            if T.blocks[n, SUMS] == ADD:
                sum = Whole()
                fetch_whole(T.body, tree_at + PARTS * stride, stride, T.blocks[n, PARENT_RUN], parents, sum)
                a.l = m.sym_add(a.l, sum.l)
                a.x = m.add3(a.x, sum.x)
                a.y = m.add3(a.y, sum.y)
                a.z = m.add3(a.z, sum.z)
                a.h = m.sym_add(a.h, sum.h)
                a.b = m.add3(a.b, sum.b)
                a.t = m.add3(a.t, sum.t)
            if T.blocks[n, SUMS] == MIXED:
                add_wholes(
                    T.body, tree_at + PARTS * stride, stride, parents, m.listed(T.rank, n * width, width, 0), count, a
                )
            else:
                deposit_whole(T.body, tree_at + PARTS * stride, stride, T.blocks[n, PARENT_RUN], parents, count, a)

    @m.func
    def tree_lack(T: wp.ref[Trees], n: int, stride: int, tree_at: int):
        """The part of ``tree_up`` that is left where articulated inertias stay."""
        linear = T.blocks[n, LINEAR]
        angular = T.blocks[n, ANGULAR]
        count = T.blocks[n, COUNT]
        work = n * TREE_WORK
        j = T.blocks[n, BLOCK] * JOINT_WORK
        J = T.joints
        W = T.work
        parents = m.listed(T.parent, n * width, width, 0)
        lack_at = tree_at + (PARTS + 21) * stride
        sum = Turning()
        sum.v = m.zero3()
        sum.w = m.zero3()
        if T.blocks[n, HAS_CHILDREN] != 0:
            below = m.listed(T.below, n * width, width, 0)
            fetch_change(T.body, lack_at, stride, T.blocks[n, BELOW_RUN], below, sum)
        a = Whole()
        a.b = sum.v
        a.t = m.sub3(sum.w, m.cross(m.get3(J, j + CHILD_ARM, 0), a.b))
        a.l = m.get_sym(W, work + AT_ANCHOR, 0)
        a.x = m.get3(W, work + AT_ANCHOR + 6, 0)
        a.y = m.get3(W, work + AT_ANCHOR + 9, 0)
        a.z = m.get3(W, work + AT_ANCHOR + 12, 0)
        a.h = m.get_sym(W, work + AT_ANCHOR + 15, 0)
        v = m.get3(W, work + LOCKED, 0)
        w = m.get3(W, work + LOCKED + 3, 0)
        b = m.lack_of(a, v, w)
        t = m.turn_lack_of(a, v, w)
        free = int(0)
        while free < linear + angular:
            d = m.get3(J, j + ROWS + 3 * (6 - linear - angular + free), 0)
            at = work + FREE_ROWS + FREE_NUMBERS * free
            lack = m.dot(d, t)
            if free < linear:
                lack = m.dot(d, b)
            free_change(W, at, m.get(W, at + SPEED_NOW, 0), lack, m.get(J, j + IMPULSE + free, 0))
            change = m.get(W, at + CHANGES, 0)
            b = m.fnma3(m.get3(W, at + SEEN, 0), change, b)
            t = m.fnma3(m.get3(W, at + SEEN_TURN, 0), change, t)
            free += 1
        if T.blocks[n, MOVED] != 0:
            t = m.cross_plus(m.get3(J, j + PARENT_ARM, 0), b, t)
            if T.blocks[n, SUMS] == ADD:
                fetch_change(T.body, lack_at, stride, T.blocks[n, PARENT_RUN], parents, sum)
                b = m.add3(b, sum.v)
                t = m.add3(t, sum.w)
            sum.v = b
            sum.w = t
            if T.blocks[n, SUMS] == MIXED:
                add_changes(T.body, lack_at, stride, parents, m.listed(T.rank, n * width, width, 0), count, sum)
            else:
                deposit_change(T.body, lack_at, stride, T.blocks[n, PARENT_RUN], parents, count, sum)

    @m.func
    def tree_root(T: wp.ref[Trees], n: int, B: wp.array[real], body_at: int, stride: int, tree_at: int):
        """Changes the velocities of the roots of block n by what their subtrees lack."""
        count = T.root_blocks[n, ROOT_COUNT]
        run = T.root_blocks[n, ROOT_RUN]
        roots = m.listed(T.root, n * width, width, 0)
        r = m.body_ref(body_at, stride, run, roots)
        motion = m.body_motion(B, r)
        a = Whole()
        fetch_whole(T.body, tree_at + PARTS * stride, stride, run, roots, a)
        m.add_own(a, motion, own_inertia(B, r, motion))
        # without the velocity, of which l v = b - c w
        inverse = m.sym_inverse(a.l)
        cx = m.vec(a.x.x, a.y.x, a.z.x)
        cy = m.vec(a.x.y, a.y.y, a.z.y)
        cz = m.vec(a.x.z, a.y.z, a.z.z)
        kx = m.sym_apply(inverse, cx)
        ky = m.sym_apply(inverse, cy)
        kz = m.sym_apply(inverse, cz)
        left = m.sym(
            m.sub(a.h.xx, m.dot(cx, kx)),
            m.sub(a.h.yy, m.dot(cy, ky)),
            m.sub(a.h.zz, m.dot(cz, kz)),
            m.sub(a.h.xy, m.dot(cx, ky)),
            m.sub(a.h.xz, m.dot(cx, kz)),
            m.sub(a.h.yz, m.dot(cy, kz)),
        )
        t = m.sub3(a.t, m.vec(m.dot(kx, a.b), m.dot(ky, a.b), m.dot(kz, a.b)))
        out = Turning()
        out.w = m.sym_apply(m.sym_inverse(left), t)
        v = m.sym_apply(inverse, a.b)
        out.v = m.fnma3(kx, out.w.x, m.fnma3(ky, out.w.y, m.fnma3(kz, out.w.z, v)))
        deposit_change(T.body, tree_at + CHANGE * stride, stride, run, roots, count, out)
        motion.vel = m.add3(motion.vel, out.v)
        motion.spin = m.add3(motion.spin, out.w)
        m.deposit_motion(B, body_at, roots, motion)

    @m.func
    def tree_down(T: wp.ref[Trees], n: int, B: wp.array[real], body_at: int, stride: int, tree_at: int, rotors: int):
        """Changes the velocities of the children of block n, and stores the impulses of free rows."""
        linear = T.blocks[n, LINEAR]
        angular = T.blocks[n, ANGULAR]
        count = T.blocks[n, COUNT]
        work = n * TREE_WORK
        j = T.blocks[n, BLOCK] * JOINT_WORK
        J = T.joints
        W = T.work
        x = Turning()
        x.v = m.zero3()
        x.w = m.zero3()
        if T.blocks[n, MOVED] != 0:
            parents = m.listed(T.parent, n * width, width, 0)
            fetch_change(T.body, tree_at + CHANGE * stride, stride, T.blocks[n, PARENT_RUN], parents, x)
        w = x.w
        v = m.cross_plus(w, m.get3(J, j + PARENT_ARM, 0), x.v)
        free = linear + angular - 1
        while free >= 0:
            at = work + FREE_ROWS + FREE_NUMBERS * free
            d = m.get3(J, j + ROWS + 3 * (6 - linear - angular + free), 0)
            given = m.dot_plus(m.get3(W, at + SEEN, 0), v, m.dot(m.get3(W, at + SEEN_TURN, 0), w))
            change = m.fnma(m.get(W, at + INVERSE, 0), given, m.get(W, at + CHANGES, 0))
            impulse = m.fma(m.get(W, at + INERTIA, 0), change, m.add(given, m.get(W, at + HELD_BY, 0)))
            m.put(J, j + IMPULSE + free, 0, impulse)
            if rotors != 0:
                m.put(J, j + ROTOR + free, 0, m.add(m.get(W, at + SPEED_NOW, 0), change))
            if T.blocks[n, COPIED] != 0:
                joint = m.listed(T.joint, n * width, width, 0)
                m.deposit(T.of_joints, (IMPULSE + free) * width, -1, joint, count, impulse)
                if rotors != 0:
                    rotor = m.get(J, j + ROTOR + free, 0)
                    m.deposit(T.of_joints, (ROTOR + free) * width, -1, joint, count, rotor)
            if free < linear:
                v = m.fma3(d, change, v)
            else:
                w = m.fma3(d, change, w)
            free -= 1
        v = m.add3(v, m.get3(W, work + LOCKED, 0))
        w = m.add3(w, m.get3(W, work + LOCKED + 3, 0))
        x.v = m.sub3(v, m.cross(w, m.get3(J, j + CHILD_ARM, 0)))
        x.w = w
        children = m.listed(T.child, n * width, width, 0)
        if T.blocks[n, HAS_CHILDREN] != 0:
            deposit_change(T.body, tree_at + CHANGE * stride, stride, T.blocks[n, CHILD_RUN], children, count, x)
        child = m.body_ref(body_at, stride, T.blocks[n, CHILD_RUN], children)
        motion = m.body_motion(B, child)
        motion.vel = m.add3(motion.vel, x.v)
        motion.spin = m.add3(motion.spin, x.w)
        m.deposit_motion(B, body_at, children, motion)

    kept = ("Trees", "tree_before", "tree_copy", "tree_rows", "tree_up", "tree_lack", "tree_root", "tree_down")
    return {name: value for name, value in locals().items() if name in kept}


@cache
def forget_motion(real):
    """Kernel over bodies that clears how their velocities changed, of chosen worlds. `at`: where the number `BEFORE` of a body stands;
    `apart`: distance of rows."""

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def forget(
        at: wp.array[int], apart: wp.array[int], world: wp.array[int], mask: wp.array[bool], numbers: wp.array[real]
    ):
        b = wp.tid()
        if mask[world[b]]:
            for i in range(TREE_NUMBERS - BEFORE):
                numbers[at[b] + i * apart[b]] = real(0.0)

    return forget
