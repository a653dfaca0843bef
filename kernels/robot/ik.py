"""Inverse kinematics: joint positions at which links have given poses.

The tree lists ``T.points`` goals and ``T.result_size`` dofs that change. ``T.point_body`` has, after the three links of
`kernels.robot.relative`, the target link and the reference link of each goal; the dofs; and for each goal and dof the number 1 if the dof
moves the target link only, -1 if it moves the reference link only, else 0.

``L.goals`` has for each goal a position and a rotation matrix in the frame of the reference link; then a factor on the damping; and 1 if
there is something to do, else 0. ``L.ik_settings`` has the lower and the upper limits of all dofs, the weights of rotation and position of
each goal, and the numbers below.
"""

import types

GOAL = 12

ROTATION_TOLERANCE, POSITION_TOLERANCE, ITERATIONS, LONGEST_STEP = range(4)
"""Places in the settings, after limits and weights."""

COST, ROTATION_ERROR, POSITION_ERROR, COUNT, DAMPING, RUNNING = range(6)
"""Places in the result, after the joint positions."""
RESULT = 6

LEAST_DAMPING = 1.0e-12  # added to the damping
LEAST_FACTOR = 1.0e-3  # of the damping on the cost
SMALLEST_STEP = 1.0e-9  # change of all joints [rad or m] below which an iteration ends


def ik_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``ik_begin`` and ``ik_advance``, and ``eval_robot_ik``, which calls them until all lanes are done."""
    real = m.real

    @m.func
    def ik_dof(c: int, T) -> int:
        """The dof of column c."""
        return T.point_body[3 + 2 * T.points + c]

    @m.func
    def ik_setting(t, i: int, T, L, mem) -> m.lane:
        return m.get(mem, L.ik_settings + 2 * T.dofs + 2 * T.points + i, t)

    @m.func
    def between_limits(x: m.lane, dof: int, t, T, L, mem) -> m.lane:
        """The nearest position to x between the limits of a dof."""
        return m.smaller(m.larger(x, m.get(mem, L.ik_settings + dof, t)), m.get(mem, L.ik_settings + T.dofs + dof, t))

    @m.func
    def ik_begin(t, T, L, mem) -> bool:
        """Moves all joints between their limits. Returns whether anything is to be done in any lane. The rotations of the goals become
        quaternions."""
        for i in range(T.points):
            goal = L.goals + GOAL * i + 3
            m.put4(mem, goal, t, m.quat_of(m.get9(mem, goal, t)))
        for dof in range(T.dofs):
            m.put(mem, L.q + dof, t, between_limits(m.get(mem, L.q + dof, t), dof, t, T, L, mem))
        m.copy(t, L.ik_result, L.q, T.dofs, mem)
        at = L.ik_result + T.dofs
        running = m.get(mem, L.goals + GOAL * T.points + 1, t)
        m.put(mem, at + COST, t, m.fill(real(1.0e300)))
        m.put(mem, at + ROTATION_ERROR, t, m.fill(real(0.0)))
        m.put(mem, at + POSITION_ERROR, t, m.fill(real(0.0)))
        m.put(mem, at + COUNT, t, m.fill(real(0.0)))
        m.put(mem, at + DAMPING, t, m.get(mem, L.goals + GOAL * T.points, t))
        m.put(mem, at + RUNNING, t, running)
        return m.any_lt(m.fill(real(0.0)), running)

    @m.func
    def ik_errors(t, T, L, mem) -> m.Vec3:
        """ik_error <- the weighted rotation vector and translation from each target to its goal, along the axes of its reference link.
        Returns the half sum of their squares, and the largest rotation and translation."""
        half = m.fill(real(0.5))
        zero = m.fill(real(0.0))
        cost = zero
        rotation = zero
        position = zero
        for i in range(T.points):
            target = T.point_body[3 + 2 * i]
            ref = T.point_body[4 + 2 * i]
            r = m.get9(mem, L.rot + 9 * ref, t)
            x = m.apply_t(m.sub3(m.get3(mem, L.pos + 3 * target, t), m.get3(mem, L.pos + 3 * ref, t)), r)
            now = m.quat_multiply(
                m.quat_conjugate(m.get4(mem, L.quat + 4 * ref, t)), m.get4(mem, L.quat + 4 * target, t)
            )
            goal = L.goals + GOAL * i
            d = m.sub3(m.get3(mem, goal, t), x)
            w = m.quat_log(m.quat_multiply(m.get4(mem, goal + 3, t), m.quat_conjugate(now)))
            weights = L.ik_settings + 2 * T.dofs + 2 * i
            weight = m.get(mem, weights, t)
            square = m.dot(w, w)
            rotation = m.larger(rotation, m.where_lt(zero, weight, square, zero))
            cost = m.fma(m.mul(weight, weight), square, cost)
            m.put3(mem, L.ik_error + 6 * i, t, m.scale3(w, weight))
            weight = m.get(mem, weights + 1, t)
            square = m.dot(d, d)
            position = m.larger(position, m.where_lt(zero, weight, square, zero))
            cost = m.fma(m.mul(weight, weight), square, cost)
            m.put3(mem, L.ik_error + 6 * i + 3, t, m.scale3(d, weight))
        return m.vec(m.mul(half, cost), m.sqrt(rotation), m.sqrt(position))

    @m.func
    def ik_jacobian(t, T, L, mem):
        """ik_columns <- the negative derivative of ik_error with respect to the listed dofs, by rows."""
        columns = T.result_size
        for i in range(T.points):
            x = m.get3(mem, L.pos + 3 * T.point_body[3 + 2 * i], t)
            r = m.get9(mem, L.rot + 9 * T.point_body[4 + 2 * i], t)
            weights = L.ik_settings + 2 * T.dofs + 2 * i
            turn = m.get(mem, weights, t)
            move = m.get(mem, weights + 1, t)
            for c in range(columns):
                at = L.ik_columns + 6 * columns * i + c
                sign = T.point_body[3 + 2 * T.points + columns + columns * i + c]
                w = m.zero3()
                v = m.zero3()
                if sign != 0:
                    s = m.get6(mem, L.subspace + 6 * ik_dof(c, T), t)
                    w = m.scale3(m.apply_t(s.w, r), turn)
                    v = m.scale3(m.apply_t(m.velocity_at(s, x), r), move)
                if sign < 0:
                    w = m.neg3(w)
                    v = m.neg3(v)
                m.put3_apart(mem, at, columns, t, w)
                m.put3_apart(mem, at + 3 * columns, columns, t, v)

    @m.func
    def ik_forces(t, damping: m.lane, T, L, mem):
        """ik_force <- (J J^T + damping)^-1 ik_error with the rows J of ik_columns, by Cholesky's factors."""
        n = 6 * T.points
        columns = T.result_size
        for i in range(n):
            row = L.ik_gram + (i * (i + 1)) // 2
            for j in range(i + 1):
                x = m.fill(real(0.0))
                if i == j:
                    x = damping
                for c in range(columns):
                    x = m.fma(
                        m.get(mem, L.ik_columns + columns * i + c, t), m.get(mem, L.ik_columns + columns * j + c, t), x
                    )
                other = L.ik_gram + (j * (j + 1)) // 2
                for k in range(j):
                    x = m.fnma(m.get(mem, row + k, t), m.get(mem, other + k, t), x)
                if i == j:
                    m.put(mem, row + j, t, m.rcp(m.sqrt(m.larger(x, m.fill(real(1.0e-30))))))
                else:
                    m.put(mem, row + j, t, m.mul(x, m.get(mem, other + j, t)))
            x = m.get(mem, L.ik_error + i, t)
            for k in range(i):
                x = m.fnma(m.get(mem, row + k, t), m.get(mem, L.ik_force + k, t), x)
            m.put(mem, L.ik_force + i, t, m.mul(x, m.get(mem, row + i, t)))
        for k in range(n):
            i = n - 1 - k
            x = m.get(mem, L.ik_force + i, t)
            for j in range(i + 1, n):
                x = m.fnma(m.get(mem, L.ik_gram + (j * (j + 1)) // 2 + i, t), m.get(mem, L.ik_force + j, t), x)
            m.put(mem, L.ik_force + i, t, m.mul(x, m.get(mem, L.ik_gram + (i * (i + 1)) // 2 + i, t)))

    @m.func
    def ik_column_dot(t, c: int, at: int, T, L, mem) -> m.lane:
        """The product of column c and the rows from `at` on."""
        x = m.fill(real(0.0))
        for i in range(6 * T.points):
            x = m.fma(m.get(mem, L.ik_columns + T.result_size * i + c, t), m.get(mem, at + i, t), x)
        return x

    @m.func
    def ik_hold(t, T, L, mem) -> bool:
        """For dofs that a step would move beyond a limit: ik_step <- the way to the limit. The motion is taken from ik_error, and the
        columns are cleared. Returns whether there are any."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        some = bool(False)
        for c in range(T.result_size):
            dof = ik_dof(c, T)
            q = m.get(mem, L.q + dof, t)
            d = ik_column_dot(t, c, L.ik_force, T, L, mem)
            allowed = m.sub(between_limits(m.add(q, d), dof, t, T, L, mem), q)
            excess = m.sub(m.add(q, d), between_limits(m.add(q, d), dof, t, T, L, mem))
            held = m.where_lt(zero, m.mul(excess, excess), one, zero)
            step = m.mul(held, allowed)
            m.put(mem, L.ik_step + c, t, step)
            if m.any_lt(zero, held):
                some = True
                free = m.sub(one, held)
                for i in range(6 * T.points):
                    at = L.ik_columns + T.result_size * i + c
                    x = m.get(mem, at, t)
                    m.put(mem, L.ik_error + i, t, m.fnma(x, step, m.get(mem, L.ik_error + i, t)))
                    m.put(mem, at, t, m.mul(free, x))
        return some

    @m.func
    def ik_step_of(t, damping: m.lane, T, L, mem):
        """ik_step <- a Levenberg-Marquardt step. Dofs that would pass a limit go to the limit, and the other ones make up for them; see
        Baerlocher and Boulic (2004)."""
        ik_jacobian(t, T, L, mem)
        ik_forces(t, damping, T, L, mem)
        if ik_hold(t, T, L, mem):
            ik_forces(t, damping, T, L, mem)
        longest = m.fill(real(0.0))
        for c in range(T.result_size):
            d = m.add(m.get(mem, L.ik_step + c, t), ik_column_dot(t, c, L.ik_force, T, L, mem))
            m.put(mem, L.ik_step + c, t, d)
            longest = m.larger(longest, m.mul(d, d))
        most = ik_setting(t, LONGEST_STEP, T, L, mem)
        share = m.smaller(m.fill(real(1.0)), m.mul(most, m.rcp(m.larger(m.sqrt(longest), m.fill(real(1.0e-30))))))
        for c in range(T.result_size):
            m.put(mem, L.ik_step + c, t, m.mul(share, m.get(mem, L.ik_step + c, t)))

    @m.func
    def ik_advance(t, T, L, mem) -> bool:
        """From the frames of q: keeps q if it is better than the best so far, and moves on from there; otherwise goes back half the way
        to the best. Returns whether any lane goes on."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        at = L.ik_result + T.dofs
        running = m.get(mem, at + RUNNING, t)
        best = m.get(mem, at + COST, t)
        now = ik_errors(t, T, L, mem)
        better = m.mul(running, m.where_lt(now.x, best, one, zero))
        cost = m.where_lt(zero, better, now.x, best)
        m.put(mem, at + COST, t, cost)
        m.put(mem, at + ROTATION_ERROR, t, m.where_lt(zero, better, now.y, m.get(mem, at + ROTATION_ERROR, t)))
        m.put(mem, at + POSITION_ERROR, t, m.where_lt(zero, better, now.z, m.get(mem, at + POSITION_ERROR, t)))
        factor = m.get(mem, at + DAMPING, t)
        factor = m.where_lt(
            zero, better, m.larger(m.mul(half, factor), m.fill(real(LEAST_FACTOR))), m.mul(m.fill(real(4.0)), factor)
        )
        m.put(mem, at + DAMPING, t, m.where_lt(zero, running, factor, m.get(mem, at + DAMPING, t)))
        # a finished lane has no error here, so that its numbers stay finite
        far = m.where_lt(now.y, ik_setting(t, ROTATION_TOLERANCE, T, L, mem), zero, one)
        far = m.where_lt(now.z, ik_setting(t, POSITION_TOLERANCE, T, L, mem), far, one)
        going = m.mul(running, m.sub(one, m.mul(better, m.sub(one, far))))
        ik_step_of(t, m.fma(factor, cost, m.fill(real(LEAST_DAMPING))), T, L, mem)
        longest = zero
        for c in range(T.result_size):
            dof = ik_dof(c, T)
            q = m.get(mem, L.q + dof, t)
            kept = m.where_lt(zero, better, q, m.get(mem, L.ik_result + dof, t))
            m.put(mem, L.ik_result + dof, t, kept)
            forward = between_limits(m.add(q, m.get(mem, L.ik_step + c, t)), dof, t, T, L, mem)
            ahead = m.where_lt(zero, better, forward, m.mul(half, m.add(q, kept)))
            m.put(mem, L.q + dof, t, m.where_lt(zero, going, ahead, kept))
            d = m.sub(ahead, kept)
            longest = m.larger(longest, m.mul(d, d))
        going = m.mul(going, m.where_lt(longest, m.fill(real(SMALLEST_STEP * SMALLEST_STEP)), zero, one))
        count = m.add(m.get(mem, at + COUNT, t), running)
        m.put(mem, at + COUNT, t, count)
        going = m.mul(going, m.where_lt(count, ik_setting(t, ITERATIONS, T, L, mem), one, zero))
        m.put(mem, at + RUNNING, t, going)
        return m.any_lt(zero, going)

    @m.func
    def eval_robot_ik(b, t, T, P, L, mem):
        """ik_result <- the best joint positions, their errors, and how often they were computed."""
        running = ik_begin(t, T, L, mem)
        while running:
            m.robot_frames(b, t, T, P, L, mem)
            running = ik_advance(t, T, L, mem)

    return locals()
