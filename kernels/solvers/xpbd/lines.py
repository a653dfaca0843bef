"""Relations along lengths: mimic joints, polynomials between joints, and tendons, as rows over several bodies.

A line has a length. It is a sum of coordinates of joints with coefficients and of pieces of paths between sites (a tendon), or the error
of an equation between two coordinates, q1 - c0 - c1 q2 - ... - c4 q2^4. The row of a line has a wrench on each of its bodies. A path pulls
the points where it is fixed, or where it touches a shape (see `newton_like.kernels.dynamics.tendons`). A coordinate of a joint acts along
the free row of the joint, together with the impulses of its locked rows that keep the anchors closed: they follow from the factor of the
joint. So the row moves both bodies about the joint, and its inertia is that which the degree of freedom has between these two bodies.

Along a line act the same forces as along a degree of freedom of a joint, see `newton_like.kernels.solvers.xpbd.joints`. A sub-step closes
the whole error of an equation, at no more than the speed at which shapes are separated.
"""

import types

import warp as wp
from newton_like.kernels.tree import STRAIGHT

from newton_like.kernels.solvers.xpbd.joints import (  # isort: skip
    ACT_NUMBERS, CHILD_ARM, DRIVE, DRIVE_SLOPE, FACTOR, KEPT_OF_EQUATIONS, LEAST_SPEED, MOST, MOST_SPEED,
    PARENT_ARM, PASSIVE, PASSIVE_SLOPE, POSITION, RECOVERY, ROWS, STICK,
)  # fmt: skip

# Columns of the table of lines: kind, first pair and the end, first body and the end, first number of the work memory.
LINE_KIND, FIRST_PAIR, LAST_PAIR, FIRST_BODY, LAST_BODY, WORK_AT = range(6)
LINE_COLUMNS = 6
TENDON_LINE, EQUATION = range(2)

# Columns of the table of pairs: what it is, bodies of the line at its start and end, and of the shape and the side site (-1: none); of a
# joint the number of the free row and the numbers of free translations and rotations.
PAIR_KIND, PAIR_FROM, PAIR_TO, PAIR_AROUND, PAIR_BESIDE, PAIR_DOF, PAIR_LINEAR, PAIR_ANGULAR = range(8)
PAIR_COLUMNS = 8
ALONG_JOINT = -1
"""Kind of a pair that is a coordinate of a joint; others are the pieces of `newton_like.kernels.tree`."""

# Constants of a line: offset, coefficients of the powers of q2, and those of what acts along it.
LINE_OFFSET, LINE_POWERS = 0, 1
(
    LINE_STIFFNESS, LINE_DAMPING, LINE_REST_LOWER, LINE_REST_UPPER, LINE_KE, LINE_KD, LINE_EFFORT, LINE_FRICTION, LINE_LOWER, LINE_UPPER,
) = range(5, 15)  # fmt: skip
LINE_NUMBERS = 15

# Constants of a pair: coefficient or inverse divisor, both sites and the centre of the shape about centres of mass in link axes, axes of
# the shape, radius, side site.
PAIR_SCALE, PAIR_START, PAIR_END, PAIR_CENTER, PAIR_AXES, PAIR_RADIUS, PAIR_SIDE = 0, 1, 4, 7, 10, 19, 20
PAIR_NUMBERS = 23

# Work memory of a line: kept impulse, inverse inertia, length, what acts along it, impulses of locked rows; then a wrench for each body.
LINE_IMPULSE, LINE_RESPONSE, LINE_LENGTH, LINE_ACTS = 0, 1, 2, 3
LINE_LOCKED = LINE_ACTS + ACT_NUMBERS
LINE_WRENCHES = LINE_LOCKED + 6


def line_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``Lines``, ``line_prepare``, ``line_start`` and ``line_solve``, over blocks of lines of one
    structure. The namespace has ``wrap_path`` if paths wrap around shapes."""
    real, lane, Vec3, width = m.real, m.lane, m.Vec3, m.width
    wraps = hasattr(m, "wrap_path")

    @wp.struct
    class Lines:
        """Lines in blocks.

        of_chunk: first block of each chunk, and the end; blocks, pairs: tables; slot: of each body of a line and lane; place: of each pair
        and lane, the first number of the joint in `joints`, the work memory of joints; tendon: of each line the index in the controls.
        """

        of_chunk: wp.array[int]
        blocks: wp.array2d[int]
        pairs: wp.array2d[int]
        slot: wp.array[int]
        place: wp.array[int]
        tendon: wp.array[int]
        numbers: m.memory
        pair_numbers: m.memory
        work: m.memory
        joints: wp.array[real]
        force: wp.array[real]
        target_q: wp.array[real]
        target_qd: wp.array[real]

    @m.func
    def line_body(X: wp.ref[Lines], b: int, at: int, stride: int) -> m.BodyRef:
        return m.body_ref(at, stride, -1, m.listed(X.slot, b * width, width, 0))

    @m.func
    def add_pull(X: wp.ref[Lines], n: int, b: int, f: Vec3, turn: Vec3):
        """Adds a wrench about the centre of mass to the row of body b."""
        at = X.blocks[n, WORK_AT] + LINE_WRENCHES + 6 * (b - X.blocks[n, FIRST_BODY])
        m.put3(X.work, at, 0, m.add3(m.get3(X.work, at, 0), f))
        m.put3(X.work, at + 3, 0, m.add3(m.get3(X.work, at + 3, 0), turn))

    @m.func
    def pair_vec(X: wp.ref[Lines], p: int, i: int) -> Vec3:
        return m.get3(X.pair_numbers, PAIR_NUMBERS * p + i, 0)

    @m.func
    def point_on(X: wp.ref[Lines], B: wp.array[real], b: int, x: Vec3, at: int, stride: int) -> Vec3:
        """A point of body b, in world axes."""
        r = line_body(X, b, at, stride)
        pose = m.body_pose(B, r)
        return m.apply_plus(m.quat_to_matrix(pose.turn), x, m.body_place(B, r))

    @m.func
    def add_line(
        X: wp.ref[Lines], n: int, B: wp.array[real], a: int, c: int, x: Vec3, y: Vec3, scale: lane, at: int, stride: int
    ) -> lane:
        """The length of a straight line from x on body a to y on body c, times the scale; the row gets its derivative."""
        d = m.sub3(y, x)
        length = m.sqrt(m.larger(m.dot(d, d), m.fill(real(1.0e-20))))
        f = m.scale3(d, m.div(scale, length))
        arm_a = m.sub3(x, m.body_place(B, line_body(X, a, at, stride)))
        arm_c = m.sub3(y, m.body_place(B, line_body(X, c, at, stride)))
        add_pull(X, n, c, f, m.cross(arm_c, f))
        add_pull(X, n, a, m.neg3(f), m.neg3(m.cross(arm_a, f)))
        return m.mul(scale, length)

    @m.func
    def add_straight(X: wp.ref[Lines], n: int, p: int, B: wp.array[real], at: int, stride: int) -> lane:
        a = X.pairs[p, PAIR_FROM]
        c = X.pairs[p, PAIR_TO]
        x = point_on(X, B, a, pair_vec(X, p, PAIR_START), at, stride)
        y = point_on(X, B, c, pair_vec(X, p, PAIR_END), at, stride)
        return add_line(X, n, B, a, c, x, y, m.get(X.pair_numbers, PAIR_NUMBERS * p + PAIR_SCALE, 0), at, stride)

    if wraps:

        @m.func
        def add_piece(X: wp.ref[Lines], n: int, p: int, B: wp.array[real], at: int, stride: int) -> lane:
            """The length of a piece of a path."""
            if X.pairs[p, PAIR_KIND] == STRAIGHT:
                return add_straight(X, n, p, B, at, stride)
            a = X.pairs[p, PAIR_FROM]
            c = X.pairs[p, PAIR_TO]
            around = X.pairs[p, PAIR_AROUND]
            x = point_on(X, B, a, pair_vec(X, p, PAIR_START), at, stride)
            y = point_on(X, B, c, pair_vec(X, p, PAIR_END), at, stride)
            center = point_on(X, B, around, pair_vec(X, p, PAIR_CENTER), at, stride)
            own = m.rows(pair_vec(X, p, PAIR_AXES), pair_vec(X, p, PAIR_AXES + 3), pair_vec(X, p, PAIR_AXES + 6))
            pose = m.body_pose(B, line_body(X, around, at, stride))
            turn = m.quat_to_matrix(pose.turn)
            side = m.zero3()
            sided = int(0)
            if X.pairs[p, PAIR_BESIDE] >= 0:
                sided = 1
                side = point_on(X, B, X.pairs[p, PAIR_BESIDE], pair_vec(X, p, PAIR_SIDE), at, stride)
                side = m.apply_t(m.apply_t(m.sub3(side, center), turn), own)
            here = m.apply_t(m.apply_t(m.sub3(x, center), turn), own)
            there = m.apply_t(m.apply_t(m.sub3(y, center), turn), own)
            radius = m.get(X.pair_numbers, PAIR_NUMBERS * p + PAIR_RADIUS, 0)
            w = m.wrap_path(X.pairs[p, PAIR_KIND], here, there, side, sided, radius)
            first = m.apply_plus(turn, m.apply(own, w.first), center)
            last = m.apply_plus(turn, m.apply(own, w.last), center)
            scale = m.get(X.pair_numbers, PAIR_NUMBERS * p + PAIR_SCALE, 0)
            on = m.mul(w.on, scale)
            length = add_line(X, n, B, a, c, x, y, m.sub(scale, on), at, stride)
            length = m.add(length, add_line(X, n, B, a, around, x, first, on, at, stride))
            length = m.add(length, add_line(X, n, B, around, c, last, y, on, at, stride))
            return m.fma(on, w.arc, length)

    else:
        add_piece = add_straight

    @m.func
    def of_place(X: wp.ref[Lines], p: int, i: int) -> lane:
        """Number i of the joint of a pair."""
        return m.fetch(X.joints, i * width, -1, m.listed(X.place, p * width, width, 0))

    @m.func
    def add_joint(X: wp.ref[Lines], n: int, p: int, scale: lane):
        """The row gets the wrenches along a degree of freedom, and those of the locked rows of its joint that follow."""
        linear = X.pairs[p, PAIR_LINEAR]
        locked = 6 - linear - X.pairs[p, PAIR_ANGULAR]
        row = locked + X.pairs[p, PAIR_DOF]
        scratch = X.blocks[n, WORK_AT] + LINE_LOCKED
        for back in range(locked):
            i = locked - 1 - back
            y = m.neg(of_place(X, p, FACTOR + row * (row + 1) // 2 + i))
            for k in range(i + 1, locked):
                y = m.fnma(of_place(X, p, FACTOR + k * (k + 1) // 2 + i), m.get(X.work, scratch + k, 0), y)
            m.put(X.work, scratch + i, 0, m.mul(y, of_place(X, p, FACTOR + i * (i + 1) // 2 + i)))
        f = m.zero3()
        turn = m.zero3()
        for i in range(locked + 1):
            r = i
            x = scale
            if i == locked:
                r = row
            else:
                x = m.mul(scale, m.get(X.work, scratch + i, 0))
            d = m.vec(of_place(X, p, ROWS + 3 * r), of_place(X, p, ROWS + 3 * r + 1), of_place(X, p, ROWS + 3 * r + 2))
            if (r >= 3 - linear and r < locked) or r >= locked + linear:
                turn = m.fma3(d, x, turn)
            else:
                f = m.fma3(d, x, f)
        child = m.vec(of_place(X, p, CHILD_ARM), of_place(X, p, CHILD_ARM + 1), of_place(X, p, CHILD_ARM + 2))
        parent = m.vec(of_place(X, p, PARENT_ARM), of_place(X, p, PARENT_ARM + 1), of_place(X, p, PARENT_ARM + 2))
        add_pull(X, n, X.pairs[p, PAIR_TO], f, m.cross_plus(child, f, turn))
        add_pull(X, n, X.pairs[p, PAIR_FROM], m.neg3(f), m.neg3(m.cross_plus(parent, f, turn)))

    @m.func
    def line_number(X: wp.ref[Lines], n: int, i: int) -> lane:
        return m.get(X.numbers, LINE_NUMBERS * n + i, 0)

    @m.func
    def put_line_acts(X: wp.ref[Lines], n: int, length: lane, h: real, push_speed: real):
        """Stores what acts along a line of this length."""
        at = X.blocks[n, WORK_AT] + LINE_ACTS
        dt = m.fill(h)
        zero = m.fill(real(0.0))
        fastest = m.fill(push_speed)
        slow = m.fill(real(RECOVERY) / h)
        for i in range(ACT_NUMBERS):
            m.put(X.work, at + i, 0, zero)
        if X.blocks[n, LINE_KIND] == EQUATION:
            # the whole error, as locked rows close small gaps: a slower closure makes trees unstable
            speed = m.neg(m.mul(length, m.fill(real(1.0) / h)))
            speed = m.larger(m.neg(fastest), m.smaller(fastest, speed))
            m.put(X.work, at + LEAST_SPEED, 0, speed)
            m.put(X.work, at + MOST_SPEED, 0, speed)
        else:
            ids = m.listed(X.tendon, n * width, width, 0)
            ke = line_number(X, n, LINE_KE)
            kd = line_number(X, n, LINE_KD)
            lack = m.sub(m.fetch(X.target_q, 0, -1, ids), length)
            drive = m.fma(kd, m.fetch(X.target_qd, 0, -1, ids), m.fma(ke, lack, m.fetch(X.force, 0, -1, ids)))
            m.put(X.work, at + DRIVE, 0, m.mul(dt, drive))
            m.put(X.work, at + DRIVE_SLOPE, 0, m.mul(dt, m.fma(dt, ke, kd)))
            m.put(X.work, at + MOST, 0, m.mul(dt, line_number(X, n, LINE_EFFORT)))
            # slack between both rest lengths
            stretch = m.larger(m.sub(length, line_number(X, n, LINE_REST_UPPER)), zero)
            stretch = m.add(stretch, m.smaller(m.sub(length, line_number(X, n, LINE_REST_LOWER)), zero))
            stiffness = m.where_lt(zero, m.mul(stretch, stretch), line_number(X, n, LINE_STIFFNESS), zero)
            m.put(X.work, at + PASSIVE, 0, m.neg(m.mul(dt, m.mul(stiffness, stretch))))
            slope = m.fma(dt, stiffness, line_number(X, n, LINE_DAMPING))
            m.put(X.work, at + PASSIVE_SLOPE, 0, m.mul(dt, slope))
            m.put(X.work, at + STICK, 0, m.mul(dt, line_number(X, n, LINE_FRICTION)))
            rate = m.fill(real(1.0) / h)
            below = m.sub(line_number(X, n, LINE_LOWER), length)
            above = m.sub(line_number(X, n, LINE_UPPER), length)
            least = m.where_lt(zero, below, m.smaller(m.mul(below, slow), fastest), m.mul(below, rate))
            most = m.where_lt(above, zero, m.larger(m.mul(above, slow), m.neg(fastest)), m.mul(above, rate))
            m.put(X.work, at + LEAST_SPEED, 0, least)
            m.put(X.work, at + MOST_SPEED, 0, most)

    @m.func
    def line_prepare(X: wp.ref[Lines], n: int, B: wp.array[real], body_at: int, stride: int, h: real, push_speed: real):
        """Computes the row of the lines of block n, and what acts along it. Needs the joints at the poses now."""
        at = X.blocks[n, WORK_AT]
        first = X.blocks[n, FIRST_BODY]
        zero = m.fill(real(0.0))
        for i in range(6 * (X.blocks[n, LAST_BODY] - first)):
            m.put(X.work, at + LINE_WRENCHES + i, 0, zero)
        length = line_number(X, n, LINE_OFFSET)
        begin = X.blocks[n, FIRST_PAIR]
        for p in range(begin, X.blocks[n, LAST_PAIR]):
            scale = m.get(X.pair_numbers, PAIR_NUMBERS * p + PAIR_SCALE, 0)
            if X.pairs[p, PAIR_KIND] == ALONG_JOINT:
                q = of_place(X, p, POSITION + X.pairs[p, PAIR_DOF])
                if X.blocks[n, LINE_KIND] == EQUATION and p > begin:
                    value = zero
                    slope = zero
                    for back in range(4):
                        c = line_number(X, n, LINE_POWERS + 3 - back)
                        slope = m.fma(slope, q, m.mul(m.fill(real(4 - back)), c))
                        value = m.fma(value, q, c)
                    length = m.fnma(value, q, length)
                    add_joint(X, n, p, m.neg(slope))
                else:
                    length = m.fma(scale, q, length)
                    add_joint(X, n, p, scale)
            else:
                length = m.add(length, add_piece(X, n, p, B, body_at, stride))
        response = zero
        for b in range(first, X.blocks[n, LAST_BODY]):
            r = line_body(X, b, body_at, stride)
            f = m.get3(X.work, at + LINE_WRENCHES + 6 * (b - first), 0)
            turn = m.get3(X.work, at + LINE_WRENCHES + 6 * (b - first) + 3, 0)
            motion = m.body_motion(B, r)
            response = m.fma(m.dot(f, f), motion.mass, response)
            response = m.dot_plus(turn, m.sym_apply(m.body_response(B, r), turn), response)
        m.put(X.work, at + LINE_RESPONSE, 0, response)
        m.put(X.work, at + LINE_LENGTH, 0, length)
        put_line_acts(X, n, length, h, push_speed)

    @m.func
    def push_line(X: wp.ref[Lines], n: int, B: wp.array[real], x: lane, body_at: int, stride: int):
        """Applies the impulse x along the lines of block n."""
        at = X.blocks[n, WORK_AT]
        first = X.blocks[n, FIRST_BODY]
        for b in range(first, X.blocks[n, LAST_BODY]):
            f = m.scale3(m.get3(X.work, at + LINE_WRENCHES + 6 * (b - first), 0), x)
            turn = m.scale3(m.get3(X.work, at + LINE_WRENCHES + 6 * (b - first) + 3, 0), x)
            m.body_push(B, line_body(X, b, body_at, stride), f, turn)

    @m.func
    def line_start(X: wp.ref[Lines], n: int, B: wp.array[real], body_at: int, stride: int, h: real, scale: real):
        """Applies the impulse of the sub-step before, times `scale`, and at most times `KEPT_OF_EQUATIONS` of equations."""
        at = X.blocks[n, WORK_AT] + LINE_IMPULSE
        kept = real(scale)
        if X.blocks[n, LINE_KIND] == EQUATION:
            kept = wp.min(kept, real(KEPT_OF_EQUATIONS))
        x = m.mul(m.fill(kept), m.get(X.work, at, 0))
        m.put(X.work, at, 0, x)
        push_line(X, n, B, x, body_at, stride)

    @m.func
    def line_solve(X: wp.ref[Lines], n: int, B: wp.array[real], body_at: int, stride: int, h: real):
        """Updates the impulses of the lines of block n."""
        at = X.blocks[n, WORK_AT]
        first = X.blocks[n, FIRST_BODY]
        u = m.fill(real(0.0))
        for b in range(first, X.blocks[n, LAST_BODY]):
            r = line_body(X, b, body_at, stride)
            motion = m.body_motion(B, r)
            u = m.dot_plus(m.get3(X.work, at + LINE_WRENCHES + 6 * (b - first), 0), motion.vel, u)
            u = m.dot_plus(m.get3(X.work, at + LINE_WRENCHES + 6 * (b - first) + 3, 0), motion.spin, u)
        old = m.get(X.work, at + LINE_IMPULSE, 0)
        change = m.free_update(u, m.get(X.work, at + LINE_RESPONSE, 0), old, X.work, at + LINE_ACTS)
        m.put(X.work, at + LINE_IMPULSE, 0, m.add(old, change))
        push_line(X, n, B, change, body_at, stride)

    kept = ("Lines", "line_prepare", "line_start", "line_solve")
    return {name: value for name, value in locals().items() if name in kept}
