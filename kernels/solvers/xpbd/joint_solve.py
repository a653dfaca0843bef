"""The two passes over joints of a sub-step: their rows at the pose now, and the impulses that close the pose after the next drift.

Short loops over rows are written with `while`: those over a range, whose step Warp does not know, take longer than what they do. Vectors
are not chosen by `if` in them, because Warp then keeps both in memory.
"""

import types

import warp as wp
from newton_like.kernels.registration import inlined
from newton_like.kernels.solvers.xpbd.bodies import POS

from newton_like.kernels.solvers.xpbd.joints import (  # isort: skip
    ACTS, ACT_NUMBERS, AIM, ANGULAR, ANGULAR_SIGN, ARMATURE, CALM, CALM_TURN, CHILD_ARM, CHILD_AT, CHILD_FRAME, CHILD_RUN, CLIP,
    CLOSING_TURN, CLOSING_TURN_OF_TREES, DAMPING, DOFS_AT, DOF_NUMBERS, DRIFT, DRIVE, DRIVE_SLOPE, EFFORT, FACTOR, GIVEN, IMPULSE,
    IN_TREE, JOINT_NUMBERS, JOINT_WORK, KD, KE, KEPT_OF_HARD, KIND, KV, LEAD, LEAST_SPEED, LENGTH, LINEAR, LINEAR_FRAME, LINEAR_SIGN,
    LOSS, LOSS_IN_MOTION, LOWER, MOST, MOST_SPEED, NEAR, OVER_SLIDE, OVER_TURN, OWED, PARENT_ARM, PARENT_AT, PARENT_FRAME, PARENT_RUN,
    PARENT_TURNS, PASSIVE, PASSIVE_SLOPE, POSITION, RECOVERY, RESPONSES, REST, REST_TURN, RIGHT, ROTOR, ROWS, SOFT, SPEED, STICK,
    STIFFNESS, TURNS, UPPER,
)  # fmt: skip
from newton_like.kernels.tree import REST_SPEED  # isort: skip

CATCH = 0.1
"""Largest velocity at which a joint catches up with its rotor, as a share of its own velocity."""

FORGOTTEN = 1.0e9
"""Velocities of rotors from which on they are forgotten: rotors then have the velocities of their joints."""


def joint_solve_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``joint_prepare`` and ``joint_solve``, over blocks of joints of one kind."""
    real, lane, ints, Vec3, width = m.real, m.lane, m.ints, m.Vec3, m.width

    @wp.struct
    class Joints:
        """Joints in blocks, and what drives them.

        blocks: see `newton_like.kernels.solvers.xpbd.joints`; parent, child, dof, coordinate: slots and indices of each joint; rotors:
        whether rows remember velocities, see `newton_like.solvers.xpbd.tables.remember_velocities`; acting: whether something acts along
        degrees of freedom; measured: whether lines read positions of joints; closing: whether joints close slowly, which `slow` names,
        one for each that does.
        """

        blocks: wp.array2d[int]
        parent: wp.array[int]
        child: wp.array[int]
        dof: wp.array[int]
        coordinate: wp.array[int]
        numbers: m.memory
        work: m.memory
        joint_q: wp.array[real]
        target_q: wp.array[real]
        target_qd: wp.array[real]
        joint_f: wp.array[real]
        joint_act: wp.array[real]
        rotors: int
        acting: int
        measured: int
        closing: int
        slow: m.memory

    @m.func
    def of_joint(J: wp.ref[Joints], b: int, i: int) -> lane:
        return m.get(J.numbers, b * JOINT_NUMBERS + i, 0)

    @m.func
    def row_speed(J: wp.ref[Joints], at: int, row: int, turns: bool, va: Vec3, wa: Vec3, vb: Vec3, wb: Vec3) -> lane:
        """The velocity along a row, from the velocities of both bodies."""
        d = m.get3(J.work, at + ROWS + 3 * row, 0)
        u = m.sub3(wb, wa)
        if not turns:
            one = m.cross_plus(wb, m.get3(J.work, at + CHILD_ARM, 0), vb)
            two = m.cross_plus(wa, m.get3(J.work, at + PARENT_ARM, 0), va)
            u = m.sub3(one, two)
        return m.dot(d, u)

    @m.func
    def slide_rate(
        J: wp.ref[Joints], at: int, row: int, va: Vec3, wa: Vec3, vb: Vec3, wb: Vec3, swing_a: Vec3, swing_b: Vec3
    ) -> lane:
        """The rate of the velocity along a row of translation while both bodies move freely: its direction is fixed in the parent."""
        d = m.get3(J.work, at + ROWS + 3 * row, 0)
        rb = m.get3(J.work, at + CHILD_ARM, 0)
        turn = m.cross(wb, rb)
        point = m.add3(vb, turn)
        apart = m.sub3(point, m.cross_plus(wa, m.get3(J.work, at + PARENT_ARM, 0), va))
        bend = m.cross_plus(swing_b, rb, m.sub3(m.cross(wb, turn), m.cross(wa, m.sub3(point, va))))
        bend = m.sub3(bend, m.cross(swing_a, m.get3(J.work, at + PARENT_ARM, 0)))
        return m.dot_plus(m.cross(wa, d), apart, m.dot(d, bend))

    @m.func
    def turn_rate(J: wp.ref[Joints], at: int, row: int, spin: Vec3, wa: Vec3, wb: Vec3, swing: Vec3) -> lane:
        """The same along a row of rotation, whose direction turns with the angular velocity `spin`."""
        d = m.get3(J.work, at + ROWS + 3 * row, 0)
        return m.dot_plus(m.cross(spin, d), m.sub3(wb, wa), m.dot(d, swing))

    @m.func
    def last_angle(J: wp.ref[Joints], at: int, i: int, dof: int, cs: ints) -> lane:
        """The angle of the sub-step before; or joint_q, if that has changed since it was read last."""
        given = m.fetch(J.joint_q, dof, -1, cs)
        seen = m.get(J.work, at + GIVEN + i, 0)
        m.put(J.work, at + GIVEN + i, 0, given)
        change = m.sub(given, seen)
        angle = m.get(J.work, at + POSITION + dof, 0)
        return m.where_lt(m.fill(real(0.0)), m.mul(change, change), given, angle)

    @m.func
    def put_acts(
        J: wp.ref[Joints],
        b: int,
        row: int,
        dof: int,
        ids: ints,
        u: lane,
        q: lane,
        lack: lane,
        strain: lane,
        h: real,
        push_speed: real,
        changed: lane,
        share: lane,
    ):
        """Stores what acts along a free row: u is the velocity of the joint at the end of the sub-step before, q its position, `lack` the
        way to the target, `strain` that from the rest position; `changed` is positive where velocities of bodies were set since then;
        `share`: that of its gaps which the joint closes."""
        c = b * JOINT_NUMBERS + DOFS_AT + DOF_NUMBERS * dof
        at = b * JOINT_WORK + ACTS + ACT_NUMBERS * dof
        P = J.numbers
        dt = m.fill(h)
        zero = m.fill(real(0.0))
        far = m.fill(real(FORGOTTEN))
        ke = m.get(P, c + KE, 0)
        stiffness = m.get(P, c + STIFFNESS, 0)
        armature = m.get(P, c + ARMATURE, 0)
        clip = m.get(P, c + CLIP, 0)
        force = m.fetch(J.joint_f, dof, -1, ids)
        given = m.fetch(J.joint_act, dof, -1, ids)
        if J.blocks[b, KIND] == LENGTH or (J.blocks[b, KIND] == TURNS and J.blocks[b, LINEAR] > 0):
            # forces of joints that leave a body free act as external wrenches
            force = zero
        if J.blocks[b, KIND] == LENGTH:
            given = zero
        drive = m.fma(m.get(P, c + KV, 0), m.fetch(J.target_qd, dof, -1, ids), given)
        drive = m.fma(ke, lack, m.fma(clip, force, drive))
        passive = m.fnma(stiffness, strain, m.fnma(clip, force, force))
        m.put(J.work, at + DRIVE, 0, m.mul(dt, drive))
        m.put(J.work, at + DRIVE_SLOPE, 0, m.mul(dt, m.fma(dt, ke, m.get(P, c + KD, 0))))
        m.put(J.work, at + MOST, 0, m.mul(dt, m.get(P, c + EFFORT, 0)))
        rotor = u
        if J.rotors != 0:
            # Impulses of later joints change the velocity of a joint, and not that of its rotor, until the next sub-step: otherwise rotors
            # would gain or lose momentum in each sub-step, of whatever length.
            rotor = m.get(J.work, b * JOINT_WORK + ROTOR + dof, 0)
            rotor = m.where_lt(rotor, far, rotor, u)
            rotor = m.where_lt(m.fill(real(0.0)), changed, u, rotor)
            # The joint catches up with the angle of its rotor, as anchors do with each other. Of a large lead, such as that after an
            # impact, a part is caught up with.
            lead = m.sub(rotor, u)
            lead = m.mul(lead, m.shrink(m.mul(m.fill(real(CATCH)), m.larger(u, m.neg(u))), m.mul(lead, lead)))
            place = b * JOINT_WORK + LEAD + dof
            before = m.where_lt(m.fill(real(0.0)), m.mul(lead, lead), m.get(J.work, place, 0), lead)
            m.put(J.work, place, 0, lead)
            rotor = m.add(rotor, m.sub(lead, before))
        m.put(J.work, at + PASSIVE, 0, m.fma(dt, passive, m.mul(armature, rotor)))
        m.put(J.work, at + PASSIVE_SLOPE, 0, m.fma(dt, m.fma(dt, stiffness, m.get(P, c + DAMPING, 0)), armature))
        loss = m.where_lt(
            m.fill(real(REST_SPEED * REST_SPEED)), m.mul(u, u), m.get(P, c + LOSS_IN_MOTION, 0), m.get(P, c + LOSS, 0)
        )
        m.put(J.work, at + STICK, 0, m.mul(dt, loss))
        rate = m.fill(real(1.0) / h)
        slow = m.fill(real(RECOVERY) / h)
        fastest = m.fill(push_speed)
        below = m.sub(m.get(P, c + LOWER, 0), q)
        above = m.sub(m.get(P, c + UPPER, 0), q)
        least = m.where_lt(zero, below, m.smaller(m.mul(below, slow), fastest), m.mul(below, rate))
        most = m.where_lt(above, zero, m.larger(m.mul(above, slow), m.neg(fastest)), m.mul(above, rate))
        if J.rotors != 0:
            # Rows that dampers, friction or limits of velocity hold close what later joints moved them, as locked rows do. Otherwise the
            # impulses that close locked rows act on them and get no answer, which makes chains of such joints unstable.
            drift = m.sub(m.get(J.work, b * JOINT_WORK + ROTOR + dof, 0), u)
            known = m.mul(drift, drift)
            drift = m.add(drift, m.get(J.work, b * JOINT_WORK + OWED + dof, 0))
            drift = m.where_lt(known, far, drift, zero)
            drift = m.where_lt(zero, changed, zero, drift)
            springs = m.where_lt(zero, m.get(P, c + LOSS, 0), zero, m.add(ke, stiffness))
            drift = m.where_lt(zero, m.add(springs, armature), zero, drift)
            drift = m.where_lt(m.smaller(most, m.neg(least)), fastest, zero, drift)
            if J.blocks[b, KIND] == LENGTH or J.blocks[b, IN_TREE] != 0:
                drift = zero
            closed = m.mul(share, drift)
            m.put(J.work, b * JOINT_WORK + OWED + dof, 0, m.sub(drift, closed))
            m.put(J.work, b * JOINT_WORK + DRIFT + dof, 0, closed)
        speed = m.get(P, c + SPEED, 0)
        m.put(J.work, at + LEAST_SPEED, 0, m.smaller(speed, m.larger(least, m.neg(speed))))
        m.put(J.work, at + MOST_SPEED, 0, m.larger(m.neg(speed), m.smaller(most, speed)))
        if J.measured != 0:
            m.put(J.work, b * JOINT_WORK + POSITION + dof, 0, q)
        if J.acting == 0:
            # only joint forces act, which need no start
            m.put(J.work, b * JOINT_WORK + IMPULSE + dof, 0, zero)

    @m.func
    def close_slowly(J: wp.ref[Joints], b: int, linear: int, locked: int, share: lane, way: real) -> lane:
        """The share of its gaps that a joint closes in a sub-step: of joints that close slowly, at most `way` of the distance and of the
        angle."""
        at = b * JOINT_WORK
        zero = m.fill(real(0.0))
        distance = zero
        angle = zero
        for i in range(locked):
            x = m.get(J.work, at + RIGHT + i, 0)
            if i < 3 - linear:
                distance = m.fma(x, x, distance)
            else:
                angle = m.fma(x, x, angle)
        most = m.shrink(m.fill(way), m.larger(distance, angle))
        return m.where_lt(zero, m.get(J.slow, b, 0), most, share)

    @m.func
    def joint_prepare(
        J: wp.ref[Joints],
        b: int,
        B: wp.array[real],
        body_at: int,
        stride: int,
        h: real,
        push_speed: real,
        first: int,
    ):
        """Computes rows, factor and forces of block b from poses and velocities of bodies; `first`: in the first sub-step of a step."""
        kind = J.blocks[b, KIND]
        linear = J.blocks[b, LINEAR]
        angular = J.blocks[b, ANGULAR]
        start = b * width
        A = m.body_ref(body_at, stride, J.blocks[b, PARENT_RUN], m.listed(J.parent, start, width, 0))
        C = m.body_ref(body_at, stride, J.blocks[b, CHILD_RUN], m.listed(J.child, start, width, 0))
        n0 = b * JOINT_NUMBERS
        at = b * JOINT_WORK
        pose_a = m.body_pose(B, A)
        pose_b = m.body_pose(B, C)
        motion_a = m.body_motion(B, A)
        motion_b = m.body_motion(B, C)
        qa = pose_a.turn
        qb = pose_b.turn
        offset = m.sub3(m.body_vec(B, C, POS), m.body_vec(B, A, POS))
        apart = m.add3(offset, m.sub3(pose_b.shift, pose_a.shift))
        arm = m.apply(m.quat_to_matrix(qb), m.get3(J.numbers, n0 + CHILD_AT, 0))
        along = m.add3(apart, arm)
        gap = m.sub3(along, m.apply(m.quat_to_matrix(qa), m.get3(J.numbers, n0 + PARENT_AT, 0)))
        m.put3(J.work, at + PARENT_ARM, 0, along)
        m.put3(J.work, at + CHILD_ARM, 0, arm)
        va = motion_a.vel
        wa = motion_a.spin
        vb = motion_b.vel
        wb = motion_b.spin
        ia = m.body_response(B, A)
        ib = m.body_response(B, C)
        mass = m.add(motion_a.mass, motion_b.mass)
        ids = m.listed(J.dof, start, width, 0)
        cs = m.listed(J.coordinate, start, width, 0)
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        dt = m.fill(h)
        fastest = m.larger(m.dot(wa, wa), m.dot(wb, wb))
        calm = m.fnma(m.fill(real(1.0) / real(CALM_TURN * CALM_TURN)), fastest, one)
        m.put(J.work, at + CALM, 0, m.larger(calm, zero))
        changed = zero
        if J.rotors != 0 and first != 0:
            changed = m.add(pose_a.changed, pose_b.changed)
        if kind == LENGTH:
            length = m.sqrt(m.dot(gap, gap))
            tiny = m.fill(real(1.0e-9))
            d = m.scale3(gap, m.rcp(m.larger(length, tiny)))
            d.x = m.where_lt(length, tiny, m.fill(real(1.0)), d.x)
            m.put3(J.work, at + ROWS, 0, d)
            u = row_speed(J, at, 0, False, va, wa, vb, wb)
            put_acts(J, b, 0, 0, ids, u, length, zero, zero, h, push_speed, changed, zero)
        else:
            fq = m.quat_multiply(qa, m.get4(J.numbers, n0 + PARENT_FRAME, 0))
            turn = m.quat_to_matrix(fq)
            q = m.quat_multiply(m.quat_conjugate(fq), m.quat_multiply(qb, m.get4(J.numbers, n0 + CHILD_FRAME, 0)))
            r = m.quat_to_matrix(q)
            frame = m.quat_to_matrix(m.quat_multiply(qa, m.get4(J.numbers, n0 + LINEAR_FRAME, 0)))
            sl = of_joint(J, b, LINEAR_SIGN)
            sa = of_joint(J, b, ANGULAR_SIGN)
            m.joint_rows(J.work, at, kind, linear, angular, frame, turn, r, sl, sa)
            locked = 6 - linear - angular
            # the same share of the rotation: joints that close the one faster than the other vibrate more and more
            m.locked_gaps(J.work, at, kind, linear, angular, gap, q, frame)
            most = real(CLOSING_TURN)
            if J.blocks[b, IN_TREE] != 0:
                most = real(CLOSING_TURN_OF_TREES)
            share = m.closing_share(
                J.work, at, linear, locked, ia, ib, mass, m.fill(push_speed * h), m.fill(most), va, wa, vb, wb, dt
            )
            if J.closing != 0:
                share = close_slowly(J, b, linear, locked, share, h * push_speed)
            m.put_aims(J.work, at, linear, angular, va, wa, vb, wb, share, dt, m.fill(real(1.0) / h))
            # angular accelerations of free motion
            swing_a = m.zero3()
            swing_b = m.zero3()
            if J.rotors != 0:
                swing_a = m.body_swing(B, A, qa, wa)
                swing_b = m.body_swing(B, C, qb, wb)
            for i in range(linear):
                u = row_speed(J, at, locked + i, False, va, wa, vb, wb)
                # a rotor has the velocity of the sub-step before
                u = m.fnma(dt, slide_rate(J, at, locked + i, va, wa, vb, wb, swing_a, swing_b), u)
                x = m.dot(m.get3(J.work, at + ROWS + 3 * (locked + i), 0), gap)
                lack = m.sub(m.fetch(J.target_q, i, -1, cs), x)
                strain = m.sub(x, of_joint(J, b, DOFS_AT + DOF_NUMBERS * i + REST))
                put_acts(J, b, locked + i, i, ids, u, x, lack, strain, h, push_speed, changed, share)
            turns = m.zero3()
            lacks = m.zero3()
            strains = m.zero3()
            if kind == TURNS:
                goal = m.quat_normalize(
                    m.quat(
                        m.fetch(J.target_q, linear, -1, cs),
                        m.fetch(J.target_q, linear + 1, -1, cs),
                        m.fetch(J.target_q, linear + 2, -1, cs),
                        m.fetch(J.target_q, linear + 3, -1, cs),
                    )
                )
                back = m.quat_conjugate(q)
                lacks = m.quat_log(m.quat_multiply(goal, back))
                strains = m.neg3(m.quat_log(m.quat_multiply(m.get4(J.numbers, n0 + REST_TURN, 0), back)))
            else:
                if angular == 1:
                    turns.x = m.hinge_turn(r)
                if angular > 1:
                    turns = m.euler_turns(r)
                if angular == 2:
                    turns.x = m.atan2(r.z.y, r.y.y)
                    turns.y = m.atan2(r.x.z, r.x.x)
                turns.z = m.mul(turns.z, sa)
                for i in range(angular):
                    angle = turns.x
                    if i == 1:
                        angle = turns.y
                    if i == 2:
                        angle = turns.z
                    angle = m.nearest_turn(angle, last_angle(J, at, i, linear + i, cs))
                    m.put(J.work, at + POSITION + linear + i, 0, angle)
                    lack = m.sub(m.fetch(J.target_q, linear + i, -1, cs), angle)
                    strain = m.sub(angle, of_joint(J, b, DOFS_AT + DOF_NUMBERS * (linear + i) + REST))
                    if i == 0:
                        turns.x = angle
                        lacks.x = lack
                        strains.x = strain
                    if i == 1:
                        turns.y = angle
                        lacks.y = lack
                        strains.y = strain
                    if i == 2:
                        turns.z = angle
                        lacks.z = lack
                        strains.z = strain
            past = m.zero3()
            if J.rotors != 0 and angular == 3:
                z = m.apply(turn, m.column(r, 2))
                past = m.rates_before(m.column(turn, 0), z, wa, wb, m.sub3(swing_b, swing_a), sa, dt)
            for i in range(angular):
                row = locked + linear + i
                u = row_speed(J, at, row, True, va, wa, vb, wb)
                # axes of a ball joint are fixed in the parent; the second axis of a joint is fixed in the child
                spin = wa
                if i == 1 and kind != TURNS:
                    spin = wb
                u = m.fnma(dt, turn_rate(J, at, row, spin, wa, wb, m.sub3(swing_b, swing_a)), u)
                if angular == 3 and kind != TURNS:
                    u = past.x
                    if i == 1:
                        u = past.y
                    if i == 2:
                        u = past.z
                angle = turns.x
                lack = lacks.x
                strain = strains.x
                if i == 1:
                    angle = turns.y
                    lack = lacks.y
                    strain = strains.y
                if i == 2:
                    angle = turns.z
                    lack = lacks.z
                    strain = strains.z
                put_acts(J, b, row, linear + i, ids, u, angle, lack, strain, h, push_speed, changed, share)
        rows = int(6)
        first_angular = 3 - linear
        last_angular = 6 - linear - angular
        first_free = 6 - angular
        if kind == LENGTH:
            rows = 1
            first_angular = 0
            last_angular = 0
            first_free = 6
        if J.blocks[b, IN_TREE] == 0:
            m.put_sym(J.work, at + RESPONSES, 0, ia)
            m.put_sym(J.work, at + RESPONSES + 6, 0, ib)
            m.factor_rows(J.work, at, rows, first_angular, last_angular, first_free, ia, ib, mass)

    @inlined
    def apply_rows(
        J: wp.ref[Joints], b: int, B: wp.array[real], A: m.BodyRef, C: m.BodyRef, motion_a: wp.ref[m.Motion],
        motion_b: wp.ref[m.Motion], linear: int, locked: int, rows: int, free_turns: int,
    ):  # fmt: skip
        """Finds the impulses of the locked rows, and applies those of all rows to both bodies, which have these motions."""
        at = b * JOINT_WORK
        W = J.work
        back = int(0)
        while back < locked:
            i = locked - 1 - back
            y = m.get(W, at + RIGHT + i, 0)
            k = int(i + 1)
            while k < locked:
                y = m.fnma(m.get(W, at + FACTOR + k * (k + 1) // 2 + i, 0), m.get(W, at + PARENT_TURNS + k, 0), y)
                k += 1
            m.put(W, at + PARENT_TURNS + i, 0, m.mul(y, m.get(W, at + FACTOR + i * (i + 1) // 2 + i, 0)))
            back += 1
        p = m.zero3()
        turn = m.zero3()
        i = int(0)
        while i < wp.min(3 - linear, locked):
            p = m.fma3(m.get3(W, at + ROWS + 3 * i, 0), m.get(W, at + PARENT_TURNS + i, 0), p)
            i += 1
        i = int(3 - linear)
        while i < locked:
            turn = m.fma3(m.get3(W, at + ROWS + 3 * i, 0), m.get(W, at + PARENT_TURNS + i, 0), turn)
            i += 1
        i = int(locked)
        while i < wp.min(free_turns, rows):
            p = m.fma3(m.get3(W, at + ROWS + 3 * i, 0), m.get(W, at + PARENT_TURNS + i, 0), p)
            i += 1
        i = int(free_turns)
        while i < rows:
            turn = m.fma3(m.get3(W, at + ROWS + 3 * i, 0), m.get(W, at + PARENT_TURNS + i, 0), turn)
            i += 1
        own = m.cross_plus(m.get3(W, at + CHILD_ARM, 0), p, turn)
        other = m.cross_plus(m.get3(W, at + PARENT_ARM, 0), p, turn)
        own = m.sym_apply(m.get_sym(W, at + RESPONSES + 6, 0), own)
        other = m.sym_apply(m.get_sym(W, at + RESPONSES, 0), other)
        m.motion_add(B, C, motion_b, p, own)
        m.motion_add(B, A, motion_a, m.neg3(p), m.neg3(other))

    @m.func
    def joint_solve(J: wp.ref[Joints], b: int, B: wp.array[real], body_at: int, stride: int, over: real, h: real):
        """Applies the impulses of block b that close the pose after the next drift, and those of locked rows for `over` times `CALM` more,
        within `OVER_SLIDE` and `OVER_TURN`."""
        kind = J.blocks[b, KIND]
        linear = J.blocks[b, LINEAR]
        angular = J.blocks[b, ANGULAR]
        start = b * width
        A = m.body_ref(body_at, stride, J.blocks[b, PARENT_RUN], m.listed(J.parent, start, width, 0))
        C = m.body_ref(body_at, stride, J.blocks[b, CHILD_RUN], m.listed(J.child, start, width, 0))
        at = b * JOINT_WORK
        W = J.work
        zero = m.fill(real(0.0))
        motion_a = m.body_motion(B, A)
        motion_b = m.body_motion(B, C)
        locked = 6 - linear - angular
        rows = int(6)
        free_turns = locked + linear
        if kind == LENGTH:
            locked = 0
            rows = 1
            free_turns = 6
        # velocities of the child against the parent
        moves = m.cross_plus(motion_b.spin, m.get3(W, at + CHILD_ARM, 0), motion_b.vel)
        moves = m.sub3(moves, m.cross_plus(motion_a.spin, m.get3(W, at + PARENT_ARM, 0), motion_a.vel))
        turns = m.sub3(motion_b.spin, motion_a.spin)
        more = m.mul(m.fill(over), m.get(W, at + CALM, 0))
        i = int(0)
        while i < locked:
            d = m.get3(W, at + ROWS + 3 * i, 0)
            y = m.sub(m.get(W, at + AIM + i, 0), m.dot(d, moves))
            if i >= 3 - linear:
                y = m.sub(m.get(W, at + AIM + i, 0), m.dot(d, turns))
            bound = real(OVER_SLIDE)
            if i >= 3 - linear:
                bound = real(OVER_TURN)
            most = m.fill(bound * h)
            y = m.add(y, m.larger(m.neg(most), m.smaller(m.mul(more, y), most)))
            row = at + FACTOR + i * (i + 1) // 2
            k = int(0)
            while k < i:
                y = m.fnma(m.get(W, row + k, 0), m.get(W, at + RIGHT + k, 0), y)
                k += 1
            m.put(W, at + RIGHT + i, 0, m.mul(y, m.get(W, row + i, 0)))
            i += 1
        if rows > locked:
            i = int(locked)
            while i < rows:
                d = m.get3(W, at + ROWS + 3 * i, 0)
                u = m.dot(d, moves)
                if i >= free_turns:
                    u = m.dot(d, turns)
                row = at + FACTOR + i * (i + 1) // 2
                k = int(0)
                while k < locked:
                    u = m.fma(m.get(W, row + k, 0), m.get(W, at + RIGHT + k, 0), u)
                    k += 1
                if J.rotors != 0:
                    u = m.sub(u, m.get(W, at + DRIFT + i - locked, 0))
                m.put(W, at + RIGHT + i, 0, u)
                m.put(W, at + PARENT_TURNS + i, 0, zero)
                i += 1
            passes = int(1)
            if rows - locked > 1:
                passes = 2
            for _turn in range(passes):
                i = int(locked)
                while i < rows:
                    acc = at + IMPULSE + i - locked
                    response = m.free_factor(W, at, i, i, locked)
                    old = m.get(W, acc, 0)
                    u = m.get(W, at + RIGHT + i, 0)
                    change = m.free_update(u, response, old, W, at + ACTS + ACT_NUMBERS * (i - locked))
                    if J.rotors != 0:
                        moved = m.add(m.get(W, at + DRIFT + i - locked, 0), m.fma(response, change, u))
                        m.put(W, at + ROTOR + i - locked, 0, moved)
                    m.put(W, acc, 0, m.add(old, change))
                    m.put(W, at + PARENT_TURNS + i, 0, m.add(m.get(W, at + PARENT_TURNS + i, 0), change))
                    j = int(locked)
                    while j < rows:
                        share = m.free_factor(W, at, wp.max(i, j), wp.min(i, j), locked)
                        m.put(W, at + RIGHT + j, 0, m.fma(share, change, m.get(W, at + RIGHT + j, 0)))
                        j += 1
                    i += 1
            m.reduce_locked(W, at, locked, rows)
        apply_rows(J, b, B, A, C, motion_a, motion_b, linear, locked, rows, free_turns)

    @m.func
    def joint_start(J: wp.ref[Joints], b: int, B: wp.array[real], body_at: int, stride: int, scale: real):
        """Applies the impulses of free rows of the sub-step before, times `scale`, and those of the locked rows that follow from them."""
        kind = J.blocks[b, KIND]
        linear = J.blocks[b, LINEAR]
        angular = J.blocks[b, ANGULAR]
        start = b * width
        A = m.body_ref(body_at, stride, J.blocks[b, PARENT_RUN], m.listed(J.parent, start, width, 0))
        C = m.body_ref(body_at, stride, J.blocks[b, CHILD_RUN], m.listed(J.child, start, width, 0))
        at = b * JOINT_WORK
        W = J.work
        locked = 6 - linear - angular
        rows = int(6)
        free_turns = locked + linear
        if kind == LENGTH:
            locked = 0
            rows = 1
            free_turns = 6
        if rows > locked:
            for k in range(locked):
                m.put(W, at + RIGHT + k, 0, m.fill(real(0.0)))
            for i in range(locked, rows):
                kept = m.fill(scale)
                hard = m.fill(wp.min(scale, real(KEPT_OF_HARD)))
                if kind == LENGTH:
                    kept = hard
                else:
                    c = at + ACTS + ACT_NUMBERS * (i - locked)
                    slope = m.add(m.get(W, c + DRIVE_SLOPE, 0), m.get(W, c + PASSIVE_SLOPE, 0))
                    slope = m.mul(slope, m.free_factor(W, at, i, i, locked))
                    kept = m.where_lt(m.fill(real(SOFT)), slope, hard, kept)
                    # friction that slips is as large as its bound
                    impulse = m.get(W, at + IMPULSE + i - locked, 0)
                    kept = m.where_lt(
                        m.larger(impulse, m.neg(impulse)),
                        m.mul(m.fill(real(0.999)), m.get(W, c + STICK, 0)),
                        hard,
                        kept,
                    )
                    room = m.smaller(m.get(W, c + MOST_SPEED, 0), m.neg(m.get(W, c + LEAST_SPEED, 0)))
                    kept = m.where_lt(room, m.fill(real(NEAR)), hard, kept)
                x = m.mul(kept, m.get(W, at + IMPULSE + i - locked, 0))
                m.put(W, at + IMPULSE + i - locked, 0, x)
                m.put(W, at + PARENT_TURNS + i, 0, x)
            m.reduce_locked(W, at, locked, rows)
            motion_a = m.body_motion(B, A)
            motion_b = m.body_motion(B, C)
            apply_rows(J, b, B, A, C, motion_a, motion_b, linear, locked, rows, free_turns)

    return {
        name: value for name, value in locals().items() if name not in ("m", "real", "lane", "ints", "Vec3", "width")
    }
