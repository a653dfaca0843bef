"""Lengths of tendons and their derivatives.

The length of a tendon is the sum of its offset and its items. An item is a coordinate of a joint with its coefficient, or a piece of a path
between two sites, divided by the divisor of its pulley: a straight line, or one that wraps around a sphere or cylinder. The points where a
path touches a shape move with the body of the shape: moving them along the surface does not change the length to first order. So the
derivative of a piece is that of straight lines between points fixed to bodies,

    dL/dt = sum of d . (v_end - v_start),    d: unit vector from start to end.

A table has `ITEM` integers for each item, and the record of a tendon has `TENDON` numbers, followed by `ITEM_NUMBERS` for each item.
"""

import types

from newton_like.kernels.tree import CRANK, MASSIVE, STRAIGHT, TURNING, WRENCH

# Kinds of items are JOINT and those of pieces in `kernels.tree`.
JOINT = 0

# Integers of an item: its kind; of a JOINT the dof and the coordinate; of a piece the bodies of both sites, of the shape, and of the side
# site (-1: none); of a WRENCH or TURNING the bodies that it acts on and that it is relative to, and the body of its axes; of a CRANK the
# bodies of slider and crank. Bodies from T.bodies on are the world as each tree has it.
ITEM = 5
KIND, FROM, TO, AROUND, BESIDE = range(ITEM)

# Numbers of an item: the coefficient or the inverse divisor, the places of both sites, the pose of the shape, its radius and the place of
# the side site, in frames of their bodies. Of a WRENCH: one if its length is a distance, the points on both bodies at START and END, the
# force at CENTER and the torque at SIDE; of TURNING also, at AXES, how the body is turned relative to the other one where the angle is
# zero. Of a CRANK: the places of slider and crank, the axis at CENTER, the length of the rod at RADIUS.
ITEM_NUMBERS = 23
SCALE, START, END, CENTER, AXES, RADIUS, SIDE = 0, 1, 4, 7, 10, 19, 20

# Numbers of a tendon. The drive is KE (target - L) + KD (target velocity - dL/dt) + its effort, within the effort limit. Limits are springs
# of the stiffness LIMIT_KE, or follow their law where it is negative, with the inverse mass LIMIT_WEIGHT.
TENDON = 14
(
    OFFSET, STIFFNESS, DAMPING, ARMATURE, REST_LOWER, REST_UPPER, KE, KD, EFFORT_LIMIT, FRICTION, LIMIT_LOWER, LIMIT_UPPER,
    LIMIT_KE, LIMIT_WEIGHT,
) = range(TENDON)  # fmt: skip


def tendon_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``find_tendon``, ``tendon_speed``, ``tendon_bend`` and ``eval_tendons``."""
    real = m.real
    tendon_in_step = "tendon" not in m.memory_rows

    @m.func
    def held_number(b, t, i: int, T, L, mem) -> m.lane:
        return m.param(T.tendon_uniform, T.tendon_varying, T.tendons_vary, b, i)

    @m.func
    def given_number(b, t, i: int, T, L, mem) -> m.lane:
        return m.get(mem, L.tendon + i, t)

    tendon_number = held_number if tendon_in_step else given_number

    @m.func
    def tendon_vec(b, t, i: int, T, L, mem) -> m.Vec3:
        return m.vec(
            tendon_number(b, t, i, T, L, mem),
            tendon_number(b, t, i + 1, T, L, mem),
            tendon_number(b, t, i + 2, T, L, mem),
        )

    @m.func
    def tendon_axes(b, t, i: int, T, L, mem) -> m.Mat33:
        first = tendon_vec(b, t, i, T, L, mem)
        second = tendon_vec(b, t, i + 3, T, L, mem)
        return m.rows(first, second, tendon_vec(b, t, i + 6, T, L, mem))

    @m.func
    def tree_with(k: int, T) -> int:
        """The tree of body k, or that whose world is k."""
        tree = k - T.bodies
        if k < T.bodies:
            tree = m.tree_of(k, T)
        return tree

    @m.func
    def tendon_shift(t, k: int, seen: int, T, L, mem) -> m.Vec3:
        """From the reference point of tree `seen` to that of body k."""
        tree = tree_with(k, T)
        shift = m.zero3()
        if tree != seen:
            shift = m.sub3(m.get3(mem, L.origin + 3 * tree, t), m.get3(mem, L.origin + 3 * seen, t))
        return shift

    @m.func
    def tendon_place(t, k: int, x: m.Vec3, seen: int, T, L, mem) -> m.Vec3:
        """Point x of body k, about the reference point of tree `seen`."""
        own = m.apply_plus(m.get9(mem, L.rot + 9 * k, t), x, m.get3(mem, L.pos + 3 * k, t))
        return m.add3(own, tendon_shift(t, k, seen, T, L, mem))

    @m.func
    def pull_body(t, k: int, other: int, x: m.Vec3, f: m.Vec3, seen: int, row: int, T, L, mem):
        """row <- + the velocity along f of point x of body k, but for dofs that move body `other` too."""
        if k < T.bodies:
            leaf = T.leaf[k]
            if leaf >= 0:
                arm = m.cross(m.sub3(x, tendon_shift(t, k, seen, T, L, mem)), f)
                for d in range(T.depth[leaf] + 1):
                    i = T.chain[T.chain_at[leaf] + d]
                    if m.moves_too(other, d, i, T) == 0:
                        s = m.get6(mem, L.subspace + 6 * i, t)
                        x1 = m.dot_plus(s.w, arm, m.dot_plus(s.v, f, m.get(mem, row + i, t)))
                        m.put(mem, row + i, t, x1)

    @m.func
    def add_line(t, k: int, other: int, x: m.Vec3, y: m.Vec3, scale: m.lane, seen: int, row: int, T, L, mem) -> m.lane:
        """The length of a line from point x of body k to point y of body `other`, times the scale; row <- + its derivative."""
        d = m.sub3(y, x)
        length = m.sqrt(m.larger(m.dot(d, d), m.fill(real(1.0e-24))))
        if k != other:
            f = m.scale3(d, m.div(scale, length))
            pull_body(t, k, other, x, m.neg3(f), seen, row, T, L, mem)
            pull_body(t, other, k, y, f, seen, row, T, L, mem)
        return m.mul(scale, length)

    @m.func
    def add_piece(b, t, item: int, at: int, row: int, T, L, mem) -> m.lane:
        """The length of piece `item` of a path, with its numbers from `at` on; row <- + its derivative."""
        kind = T.tendon_item[ITEM * item + KIND]
        k = T.tendon_item[ITEM * item + FROM]
        other = T.tendon_item[ITEM * item + TO]
        seen = tree_with(k, T)
        scale = tendon_number(b, t, at + SCALE, T, L, mem)
        x = tendon_place(t, k, tendon_vec(b, t, at + START, T, L, mem), seen, T, L, mem)
        y = tendon_place(t, other, tendon_vec(b, t, at + END, T, L, mem), seen, T, L, mem)
        length = m.fill(real(0.0))
        if kind == STRAIGHT or kind == MASSIVE:
            length = add_line(t, k, other, x, y, scale, seen, row, T, L, mem)
        else:
            around = T.tendon_item[ITEM * item + AROUND]
            beside = T.tendon_item[ITEM * item + BESIDE]
            center = tendon_place(t, around, tendon_vec(b, t, at + CENTER, T, L, mem), seen, T, L, mem)
            own = tendon_axes(b, t, at + AXES, T, L, mem)
            turn = m.get9(mem, L.rot + 9 * around, t)
            side = m.zero3()
            sided = 0
            if beside >= 0:
                sided = 1
                side = tendon_place(t, beside, tendon_vec(b, t, at + SIDE, T, L, mem), seen, T, L, mem)
                side = m.apply_t(m.apply_t(m.sub3(side, center), turn), own)
            from_here = m.apply_t(m.apply_t(m.sub3(x, center), turn), own)
            to_there = m.apply_t(m.apply_t(m.sub3(y, center), turn), own)
            w = m.wrap_path(kind, from_here, to_there, side, sided, tendon_number(b, t, at + RADIUS, T, L, mem))
            first = m.apply_plus(turn, m.apply(own, w.first), center)
            last = m.apply_plus(turn, m.apply(own, w.last), center)
            wraps = m.mul(w.on, scale)
            length = add_line(t, k, other, x, y, m.sub(scale, wraps), seen, row, T, L, mem)
            length = m.add(length, add_line(t, k, around, x, first, wraps, seen, row, T, L, mem))
            length = m.add(length, add_line(t, around, other, last, y, wraps, seen, row, T, L, mem))
            length = m.fma(wraps, w.arc, length)
        return length

    @m.func
    def turn_body(t, k: int, other: int, n: m.Vec3, row: int, T, L, mem):
        """row <- + the angular velocity along n of body k, but for dofs that move body `other` too."""
        if k < T.bodies:
            leaf = T.leaf[k]
            if leaf >= 0:
                for d in range(T.depth[leaf] + 1):
                    i = T.chain[T.chain_at[leaf] + d]
                    if m.moves_too(other, d, i, T) == 0:
                        s = m.get6(mem, L.subspace + 6 * i, t)
                        m.put(mem, row + i, t, m.dot_plus(s.w, n, m.get(mem, row + i, t)))

    @m.func
    def add_wrench(b, t, item: int, at: int, row: int, T, L, mem) -> m.lane:
        """The distance of two points along a force, times the scale; row <- + the velocity along the force and a torque of one body
        relative to the other."""
        k = T.tendon_item[ITEM * item + FROM]
        other = T.tendon_item[ITEM * item + TO]
        seen = tree_with(k, T)
        x = tendon_place(t, k, tendon_vec(b, t, at + START, T, L, mem), seen, T, L, mem)
        y = tendon_place(t, other, tendon_vec(b, t, at + END, T, L, mem), seen, T, L, mem)
        turn = m.get9(mem, L.rot + 9 * T.tendon_item[ITEM * item + AROUND], t)
        f = m.apply(turn, tendon_vec(b, t, at + CENTER, T, L, mem))
        n = m.apply(turn, tendon_vec(b, t, at + SIDE, T, L, mem))
        pull_body(t, k, other, x, f, seen, row, T, L, mem)
        turn_body(t, k, other, n, row, T, L, mem)
        pull_body(t, other, k, y, m.neg3(f), seen, row, T, L, mem)
        turn_body(t, other, k, m.neg3(n), row, T, L, mem)
        return m.mul(tendon_number(b, t, at + SCALE, T, L, mem), m.dot(f, m.sub3(x, y)))

    @m.func
    def wrench_angle(b, t, item: int, at: int, T, L, mem) -> m.lane:
        """The rotation vector of one body relative to the other, along the torque."""
        other = m.get9(mem, L.rot + 9 * T.tendon_item[ITEM * item + TO], t)
        turn = m.get9(mem, L.rot + 9 * T.tendon_item[ITEM * item + FROM], t)
        zero = tendon_axes(b, t, at + AXES, T, L, mem)
        now = m.rows(m.apply_t(turn.x, zero), m.apply_t(turn.y, zero), m.apply_t(turn.z, zero))
        back = m.rows(
            m.apply_t(m.column(now, 0), other), m.apply_t(m.column(now, 1), other), m.apply_t(m.column(now, 2), other)
        )
        angle = m.apply(other, m.neg3(m.quat_log(m.quat_of(back))))
        axes = m.get9(mem, L.rot + 9 * T.tendon_item[ITEM * item + AROUND], t)
        return m.dot(m.apply(axes, tendon_vec(b, t, at + SIDE, T, L, mem)), angle)

    @m.func
    def add_crank(b, t, item: int, at: int, row: int, T, L, mem) -> m.lane:
        """The place L of a slider along its axis a, where a rod of length r reaches the crank at x from the slider; row <- + its
        derivative. |x - L a| = r gives L = a.x - s with s^2 = (a.x)^2 + r^2 - |x|^2, and dL = (1 - a.x / s) d(a.x) + x.dx / s. Where
        the rod is too short, L = a.x, as in MuJoCo."""
        k = T.tendon_item[ITEM * item + FROM]
        other = T.tendon_item[ITEM * item + TO]
        seen = tree_with(k, T)
        start = tendon_place(t, k, tendon_vec(b, t, at + START, T, L, mem), seen, T, L, mem)
        end = tendon_place(t, other, tendon_vec(b, t, at + END, T, L, mem), seen, T, L, mem)
        axis = m.apply(m.get9(mem, L.rot + 9 * k, t), tendon_vec(b, t, at + CENTER, T, L, mem))
        x = m.sub3(end, start)
        along = m.dot(axis, x)
        rod = tendon_number(b, t, at + RADIUS, T, L, mem)
        zero = m.fill(real(0.0))
        square = m.sub(m.fma(along, along, m.mul(rod, rod)), m.dot(x, x))
        s = m.sqrt(m.larger(square, m.fill(real(1.0e-20))))
        inverse = m.where_lt(zero, square, m.rcp(s), zero)
        share = m.fnma(along, inverse, m.fill(real(1.0)))
        f = m.add3(m.scale3(axis, share), m.scale3(x, inverse))
        pull_body(t, other, k, end, f, seen, row, T, L, mem)
        pull_body(t, k, other, start, m.neg3(f), seen, row, T, L, mem)
        turn_body(t, k, other, m.scale3(m.cross(axis, x), share), row, T, L, mem)
        return m.sub(along, m.where_lt(zero, square, s, zero))

    @m.func
    def find_tendon(b, t, n: int, T, L, mem):
        """The length of tendon n, and its derivative with respect to the dofs. Needs placed bodies."""
        row = L.tendon_j + T.dofs * n
        at = TENDON * n
        m.clear(t, row, T.dofs, mem)
        length = tendon_number(b, t, at + OFFSET, T, L, mem)
        for item in range(T.tendon_at[n], T.tendon_at[n + 1]):
            numbers = TENDON * T.tendons + ITEM_NUMBERS * item
            if T.tendon_item[ITEM * item + KIND] == JOINT:
                i = T.tendon_item[ITEM * item + FROM]
                c = tendon_number(b, t, numbers + SCALE, T, L, mem)
                q = m.get(mem, L.q + T.tendon_item[ITEM * item + TO], t)
                length = m.fma(c, q, length)
                m.put(mem, row + i, t, m.add(c, m.get(mem, row + i, t)))
            elif T.tendon_item[ITEM * item + KIND] == WRENCH:
                length = m.add(length, add_wrench(b, t, item, numbers, row, T, L, mem))
            elif T.tendon_item[ITEM * item + KIND] == TURNING:
                length = m.add(length, add_wrench(b, t, item, numbers, row, T, L, mem))
                length = m.add(length, wrench_angle(b, t, item, numbers, T, L, mem))
            elif T.tendon_item[ITEM * item + KIND] == CRANK:
                length = m.add(length, add_crank(b, t, item, numbers, row, T, L, mem))
            else:
                length = m.add(length, add_piece(b, t, item, numbers, row, T, L, mem))
        m.put(mem, L.tendon_length + n, t, length)

    @m.func
    def tendon_speed(t, n: int, at: int, T, L, mem) -> m.lane:
        """dL/dt at the velocities from `at` on."""
        u = m.fill(real(0.0))
        row = L.tendon_j + T.dofs * n
        for i in range(T.tendon_span[n], T.tendon_span[n + 1]):
            k = T.tendon_span[i]
            u = m.fma(m.get(mem, row + k, t), m.get(mem, at + k, t), u)
        return u

    @m.func
    def point_motion(t, k: int, x: m.Vec3, T, L, mem) -> m.Spatial:
        """Velocity, and acceleration where no joint accelerates, of the point of body k that is at x. L.drift must have the result of
        newton_euler."""
        twist = m.get6(mem, L.twist + 6 * k, t)
        v = m.velocity_at(twist, x)
        return m.spatial(v, m.cross_plus(twist.w, v, m.velocity_at(m.get6(mem, L.drift + 6 * k, t), x)))

    @m.func
    def line_bend(b, t, item: int, at: int, T, L, mem) -> m.lane:
        """The second derivative of the length of a straight piece, where no joint accelerates: with x from start to end and d = x / |x|,
        d . x'' + (|x'|^2 - (d . x')^2) / |x|."""
        k = T.tendon_item[ITEM * item + FROM]
        other = T.tendon_item[ITEM * item + TO]
        start = tendon_vec(b, t, at + START, T, L, mem)
        end = tendon_vec(b, t, at + END, T, L, mem)
        # about the reference point of the tree of each
        x = tendon_place(t, k, start, tree_with(k, T), T, L, mem)
        y = tendon_place(t, other, end, tree_with(other, T), T, L, mem)
        line = m.sub3(tendon_place(t, other, end, tree_with(k, T), T, L, mem), x)
        inverse = m.rcp(m.sqrt(m.larger(m.dot(line, line), m.fill(real(1.0e-12)))))
        d = m.scale3(line, inverse)
        here = point_motion(t, k, x, T, L, mem)
        there = point_motion(t, other, y, T, L, mem)
        u = m.sub3(there.v, here.v)
        along = m.dot(d, u)
        across = m.fnma(along, along, m.dot(u, u))
        bend = m.fma(across, inverse, m.dot(d, m.sub3(there.w, here.w)))
        return m.mul(tendon_number(b, t, at + SCALE, T, L, mem), bend)

    @m.func
    def tendon_bend(b, t, n: int, T, L, mem) -> m.lane:
        """The second derivative of the length of tendon n, where no joint accelerates; zero for tendons without inertia."""
        bend = m.fill(real(0.0))
        for item in range(T.tendon_at[n], T.tendon_at[n + 1]):
            if T.tendon_item[ITEM * item + KIND] == MASSIVE:
                bend = m.add(bend, line_bend(b, t, item, TENDON * T.tendons + ITEM_NUMBERS * item, T, L, mem))
        return bend

    @m.func
    def eval_tendons(b, t, T, P, L, mem):
        """vector <- lengths; matrix <- their derivatives with respect to the dofs; second <- speeds."""
        m.forward_kinematics(b, t, T, P, L, mem)
        for n in range(T.tendons):
            find_tendon(b, t, n, T, L, mem)
            m.put(mem, L.vector + n, t, m.get(mem, L.tendon_length + n, t))
            m.put(mem, L.second + n, t, tendon_speed(t, n, L.v, T, L, mem))
            m.clear(t, L.matrix + T.columns * n, T.columns, mem)
            m.copy(t, L.matrix + T.columns * n, L.tendon_j + T.dofs * n, T.dofs, mem)

    return locals()
