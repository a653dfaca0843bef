"""Joints between bodies in maximal coordinates, as blocks of six rows.

A joint has a frame on its parent and one on its child. Rows of translations lie along the axes of the parent's frame, rows of rotations
along the axes about which the joint turns. A row is *locked* or *free*. Locked rows close the pose after the next drift: with the gap C
there, the velocities change by -C / h (position-based dynamics: Mueller et al. 2020; small sub-steps: Macklin et al. 2019). Free rows are
degrees of freedom. All impulses of a joint are found together: with the Cholesky factor of J M^-1 JT, locked rows first, the impulses of
the locked rows are eliminated, and what is left is the inertia that a degree of freedom feels between these two bodies. Along it act

    drive      within its effort limit, h (ke (q* - q - h u) + kd* u* - kd u + feed-forward)
    passive    h (-stiffness (q + h u - rest) - damping u + force) + armature (before - u)
    friction   at most h times the loss, against u; the loss is that in motion where u is faster than REST_SPEED as the sub-step begins
    limits     of position and velocity, as bounds of u

at the new velocity u. The sum is monotone in u, so that one passage through the cases finds u. Joints with several degrees of freedom pass
through them in turn.
"""

import types

# Constants of a joint: places of the frames about the centres of mass, in link axes; orientations of the frames of translations (parent)
# and
# of rotations (parent, child) in link axes; signs of the third axes; then those of the degrees of freedom.
PARENT_AT, CHILD_AT, LINEAR_FRAME, PARENT_FRAME, CHILD_FRAME, LINEAR_SIGN, ANGULAR_SIGN, REST_TURN = (
    0,
    3,
    6,
    10,
    14,
    18,
    19,
    20,
)
DOFS_AT = 24
# of a degree of freedom
DOF_NUMBERS = 14
(KE, KD, KV, EFFORT, SPEED, LOSS, LOSS_IN_MOTION, LOWER, UPPER, ARMATURE, DAMPING, STIFFNESS, REST, CLIP) = range(
    DOF_NUMBERS
)
JOINT_NUMBERS = DOFS_AT + 6 * DOF_NUMBERS

# Numbers that are written in a sub-step: directions of rows, arms of the anchor, factor, impulses of free rows, what acts along them, ...
ROWS, PARENT_ARM, CHILD_ARM, FACTOR, IMPULSE, ACTS = 0, 18, 21, 24, 45, 51
# ... scratch: angular parts of rows, right-hand side
PARENT_TURNS, CHILD_TURNS, RIGHT = 99, 117, 135
# ... positions of free rows, with angles that count turns; and joint_q of the angles when it was read last
POSITION, GIVEN = 141, 147
# ... and the velocities along the locked rows that close their gaps
AIM = 150
# ... and of free rows, the velocity of the rotor after its last impulse
ROTOR = 156
# ... and by how much this was faster than the joint at the end of the sub-step
LEAD = 162
# ... and of other rows, what they close in this sub-step of the differences between the velocity after their last impulse and that at
# the end of the sub-step
DRIFT = 168
# ... and what they have yet to close of these differences; the share of a sub-step is that of the gaps of locked rows
OWED = 174
# ... and the inverse inertias of the parent and of the child
RESPONSES = 180
# ... and the share of OVER in this sub-step
CALM = 192
JOINT_WORK = 193
# a velocity of a rotor or an angle that is not known
UNKNOWN = 1.0e10
# what acts along a free row: push and slope of the drive, its limit, push and slope of the passive part, friction, bounds of the velocity
DRIVE, DRIVE_SLOPE, MOST, PASSIVE, PASSIVE_SLOPE, STICK, LEAST_SPEED, MOST_SPEED = range(8)
ACT_NUMBERS = 8

# Kinds of joints, and the columns of the table of blocks: kind, numbers of free translations and rotations, first slot of the parent and
# of the child where slots are consecutive, and whether trees solve the joints, see `newton_like.kernels.solvers.xpbd.trees`
AXES, TURNS, LENGTH = range(3)
KIND, LINEAR, ANGULAR, PARENT_RUN, CHILD_RUN, IN_TREE = range(6)
BLOCK_COLUMNS = 6

# Share of a position error beyond a limit that a step takes back.
RECOVERY = 0.2

# Largest turn of a body in a sub-step by the closure of gaps, where these close faster than `max_depenetration_speed` [rad].
CLOSING_TURN = 0.1

# The same of joints that are solved with their trees, whose closure moves the tree as a whole. Of 24 Unitree G1 that fell from 0.9 to 1.6 m
# without drives, 11 gained more than 2 % of their energy with 0.1, two with 0.03, and none with 0.015. Smaller turns make gaps wider.
CLOSING_TURN_OF_TREES = 0.015

# Largest turn of a body in a sub-step whose curvature the rows follow [rad].
MOST_TURN = 0.25

# Largest share of the impulse of a hard row that a sub-step starts from: of a kept distance, a position limit, dry friction that holds,
# or of drives, springs and dampers that are stiffer than SOFT. Larger shares are unstable where locked rows, which start from
# nothing, act in nearly the same direction, for any number of iterations: what closed the last error is then part of the next impulse.
KEPT_OF_HARD = 0.25

# That of an equation. Lines do not over-relax.
KEPT_OF_EQUATIONS = 0.5

# Passes over joints close this much more than what locked rows lack (successive over-relaxation), but for the joints of the last colour,
# after which contacts see the velocities: more of the weight of a tree arrives at its base. Kept impulses of hard rows of 0.5 made light
# links between heavy ones tremble then.
OVER = 0.5

# Turn of a body from which on a joint does not over-relax [rad/s]: what passes leave of a constraint would add energy to its motion. Of 32
# passive double pendulums, the median gained 2e-4 of its energy in 10 s, and one 2.5e-3.
CALM_TURN = 0.5

# Most velocity that over-relaxation adds, per length of a sub-step [m/s^2, rad/s^2]: above what weights need, below what impacts bring.
OVER_SLIDE = 400.0
OVER_TURN = 4000.0

# Slope of a row times its response, up to which it is soft: shares of 0.8 are stable up to about 4 for springs, and beyond for dampers.
SOFT = 3.0

# Bounds of the velocity below which a position limit counts as reached [rad/s, m/s].
NEAR = 0.1


def joint_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: directions and gaps of rows, their factor, and the impulse of a degree of freedom."""
    real, lane, Vec3, Quat = m.real, m.lane, m.Vec3, m.Quat

    @m.func
    def along_axes(r: m.Mat33, i: int) -> Vec3:
        """Axis i of a frame with the orientation r."""
        return m.column(r, i)

    @m.func
    def euler_turns(r: m.Mat33) -> Vec3:
        """The angles of r = Rx Ry Rz."""
        zero = m.fill(real(0.0))
        side = m.sqrt(m.fma(r.y.z, r.y.z, m.mul(r.z.z, r.z.z)))
        return m.vec(m.atan2(m.sub(zero, r.y.z), r.z.z), m.atan2(r.x.z, side), m.atan2(m.sub(zero, r.x.y), r.x.x))

    @m.func
    def hinge_turn(r: m.Mat33) -> lane:
        """The angle of a rotation about the x axis."""
        return m.atan2(m.sub(r.z.y, r.y.z), m.add(r.y.y, r.z.z))

    @m.func
    def small_turn(q: Quat) -> Vec3:
        """Twice the vector part of a unit quaternion with a positive real part: nearly the rotation vector of a small rotation."""
        zero = m.fill(real(0.0))
        two = m.where_lt(q.w, zero, m.fill(real(-2.0)), m.fill(real(2.0)))
        return m.scale3(m.vec(q.x, q.y, q.z), two)

    @m.func
    def unit3(a: Vec3) -> Vec3:
        return m.scale3(a, m.rcp(m.sqrt(m.larger(m.dot(a, a), m.fill(real(1.0e-12))))))

    @m.func
    def put_row(W: m.memory, at: int, row: int, a: Vec3):
        m.put3(W, at + ROWS + 3 * row, 0, a)

    @m.func
    def joint_rows(
        W: m.memory,
        at: int,
        kind: int,
        linear: int,
        angular: int,
        frame: m.Mat33,
        turn: m.Mat33,
        r: m.Mat33,
        sl: lane,
        sa: lane,
    ):
        """Stores the directions of all rows: locked translations, locked rotations, free translations, free rotations.

        Args:
            frame: axes of translations, in world axes; turn: those of rotations, of the parent.
            r: rotation of the child's frame against the parent's.
            sl, sa: signs of the third free axes.
        """
        locked = int(0)
        for i in range(linear, 3):
            put_row(W, at, locked, along_axes(frame, i))
            locked += 1
        x = along_axes(turn, 0)
        if kind == AXES:
            if angular == 0:
                put_row(W, at, locked, x)
                put_row(W, at, locked + 1, along_axes(turn, 1))
                put_row(W, at, locked + 2, along_axes(turn, 2))
                locked += 3
            if angular == 1:
                put_row(W, at, locked, along_axes(turn, 1))
                put_row(W, at, locked + 1, along_axes(turn, 2))
                locked += 2
            if angular == 2:
                y = m.apply(turn, m.column(r, 1))
                put_row(W, at, locked, unit3(m.cross(x, y)))
                locked += 1
        for i in range(linear):
            a = along_axes(frame, i)
            if i == 2:
                a = m.scale3(a, sl)
            put_row(W, at, locked + i, a)
        first = locked + linear
        if kind == TURNS:
            for i in range(3):
                put_row(W, at, first + i, along_axes(turn, i))
        else:
            if angular == 1:
                put_row(W, at, first, x)
            if angular == 2:
                put_row(W, at, first, x)
                put_row(W, at, first + 1, m.apply(turn, m.column(r, 1)))
            if angular == 3:
                # the rates of the angles are the products of the angular velocity with the dual basis of the axes
                z = m.apply(turn, m.column(r, 2))
                y = unit3(m.cross(z, x))
                volume = m.dot(x, m.cross(y, z))
                small = m.fill(real(1.0e-3))
                volume = m.rcp(m.where_lt(volume, small, small, volume))
                put_row(W, at, first, m.scale3(m.cross(y, z), volume))
                put_row(W, at, first + 1, y)
                put_row(W, at, first + 2, m.scale3(m.cross(x, y), m.mul(volume, sa)))

    @m.func
    def locked_gaps(W: m.memory, at: int, kind: int, linear: int, angular: int, gap: Vec3, q: Quat, frame: m.Mat33):
        """right <- the gaps of the locked rows, for the vector `gap` between the anchors and the rotation q of the child's frame against
        the parent's; `frame`: the axes of translations, in world axes."""
        out = at + RIGHT
        for i in range(linear, 3):
            m.put(W, out, 0, m.dot(along_axes(frame, i), gap))
            out += 1
        if kind == AXES:
            r = m.quat_to_matrix(q)
            if angular == 0:
                m.put3(W, out, 0, small_turn(q))
            if angular == 1:
                m.put(W, out, 0, m.neg(r.z.x))
                m.put(W, out + 1, 0, r.y.x)
            if angular == 2:
                m.put(W, out, 0, m.neg(r.x.y))

    @m.func
    def short_turn(w: Vec3, h: lane) -> Vec3:
        """The rotation vector of a body with the angular velocity w in the time h, or one of the length `MOST_TURN` along it."""
        turn = m.scale3(w, h)
        return m.scale3(turn, m.shrink(m.fill(real(MOST_TURN)), m.dot(turn, turn)))

    @m.func
    def bent(turn: Vec3, r: Vec3) -> Vec3:
        """The path of a point r that turns by the rotation vector `turn`, without its linear part `turn` x r."""
        square = m.dot(turn, turn)
        one = m.fill(real(1.0))
        # 1 - sin a / a, and (1 - cos a) / a^2
        sine = m.fnma(square, m.fill(real(1.0 / 42.0)), one)
        sine = m.fnma(m.mul(square, m.fill(real(1.0 / 20.0))), sine, one)
        sine = m.mul(m.mul(square, m.fill(real(1.0 / 6.0))), sine)
        cosine = m.fnma(square, m.fill(real(1.0 / 56.0)), one)
        cosine = m.fnma(m.mul(square, m.fill(real(1.0 / 30.0))), cosine, one)
        cosine = m.fnma(m.mul(square, m.fill(real(1.0 / 12.0))), cosine, one)
        cosine = m.mul(cosine, m.fill(real(0.5)))
        across = m.cross(turn, r)
        return m.fnma3(across, sine, m.scale3(m.cross(turn, across), cosine))

    @m.func
    def turned(turn: Vec3, r: Vec3) -> Vec3:
        """The direction r after a turn by the rotation vector `turn`."""
        return m.add3(r, m.add3(m.cross(turn, r), bent(turn, r)))

    @m.func
    def lever(r: Vec3, inertia: m.Sym3) -> lane:
        """The mean over the directions of an impulse at the arm r of the response of the turn, in velocities at the arm."""
        trace = m.add(inertia.xx, m.add(inertia.yy, inertia.zz))
        mean = m.sub(m.mul(m.dot(r, r), trace), m.dot(r, m.sym_apply(inertia, r)))
        return m.mul(m.fill(real(0.5)), mean)

    @m.func
    def closing_share(
        W: m.memory,
        at: int,
        linear: int,
        locked: int,
        ia: m.Sym3,
        ib: m.Sym3,
        mass: lane,
        least: lane,
        most: lane,
        va: Vec3,
        wa: Vec3,
        vb: Vec3,
        wb: Vec3,
        h: lane,
    ) -> lane:
        """The share of the gaps in `right` that a sub-step closes. More than `least` is closed only as far as it turns bodies by `most`:
        where their turns change the directions of rows, the closure of gaps could add energy in each sub-step."""
        zero = m.fill(real(0.0))
        tiny = m.fill(real(1.0e-20))
        ra = m.get3(W, at + PARENT_ARM, 0)
        rb = m.get3(W, at + CHILD_ARM, 0)
        sa = lever(ra, ia)
        sb = lever(rb, ib)
        whole = m.mul(most, m.add(mass, m.add(sa, sb)))
        aa = m.dot(ra, ra)
        bb = m.dot(rb, rb)
        wide = zero
        turn = zero
        apart = m.sub3(m.cross_plus(wb, rb, vb), m.cross_plus(wa, ra, va))
        turning = m.sub3(wb, wa)
        closes = zero
        arms = m.larger(aa, bb)
        for i in range(locked):
            x = m.get(W, at + RIGHT + i, 0)
            if i >= 3 - linear:
                turn = m.fma(x, x, turn)
                closes = m.fnma(m.mul(arms, x), m.dot(m.get3(W, at + ROWS + 3 * i, 0), turning), closes)
            else:
                wide = m.fma(x, x, wide)
                closes = m.fnma(x, m.dot(m.get3(W, at + ROWS + 3 * i, 0), apart), closes)
        size = m.fma(arms, turn, wide)
        closes = m.mul(closes, h)
        # the turns are those of the gap times s / (r (mass + sum of s))
        first = m.mul(wide, m.mul(m.mul(sa, sa), m.rcp(m.larger(aa, tiny))))
        last = m.mul(wide, m.mul(m.mul(sb, sb), m.rcp(m.larger(bb, tiny))))
        share = m.smaller(m.shrink(whole, m.larger(first, last)), m.shrink(most, turn))
        # a gap that closes by itself is not made to close faster
        share = m.where_lt(m.mul(least, m.sqrt(size)), closes, zero, share)
        # nor one of bodies whose turns the rows do not follow
        fast = m.mul(m.mul(h, h), m.larger(m.dot(wa, wa), m.dot(wb, wb)))
        share = m.where_lt(m.fill(real(MOST_TURN * MOST_TURN)), fast, zero, share)
        return m.larger(share, m.shrink(least, size))

    @m.func
    def put_aims(
        W: m.memory,
        at: int,
        linear: int,
        angular: int,
        va: Vec3,
        wa: Vec3,
        vb: Vec3,
        wb: Vec3,
        share: lane,
        h: lane,
        rate: lane,
    ):
        """Stores the velocities along the locked rows that close a share of their gaps, which are in `right`, in the time h. Rows hold at
        the pose now: the gaps that turns of both bodies open beyond them, by their curvature, are closed, too."""
        locked = 6 - linear - angular
        zero = m.fill(real(0.0))
        ra = m.get3(W, at + PARENT_ARM, 0)
        rb = m.get3(W, at + CHILD_ARM, 0)
        ta = short_turn(wa, h)
        tb = short_turn(wb, h)
        back = m.neg3(ta)
        path = m.sub3(bent(tb, rb), bent(ta, ra))
        apart = m.sub3(m.cross_plus(wb, rb, vb), m.cross_plus(wa, ra, va))
        apart = m.fma3(apart, h, path)
        turn = m.sub3(tb, ta)
        for i in range(locked):
            d = m.get3(W, at + ROWS + 3 * i, 0)
            off = zero
            if i < 3 - linear:
                off = m.dot(d, path)
                if linear > 0:
                    off = m.add(off, m.dot(m.sub3(turned(ta, d), d), apart))
            else:
                x = m.get3(W, at + ROWS + 3 * (locked + linear), 0)
                if angular == 0:
                    # of a rotation matrix, half the vector of its antisymmetric part
                    first = i - 3 + linear
                    y = m.get3(W, at + ROWS + 3 * (3 - linear + (first + 1) % 3), 0)
                    z = m.get3(W, at + ROWS + 3 * (3 - linear + (first + 2) % 3), 0)
                    sine = m.sub(m.dot(z, turned(back, turned(tb, y))), m.dot(y, turned(back, turned(tb, z))))
                    off = m.sub(m.mul(m.fill(real(0.5)), sine), m.dot(d, turn))
                if angular == 1:
                    off = m.dot(d, m.sub3(m.cross(x, turned(back, turned(tb, x))), turn))
                if angular == 2:
                    y = m.get3(W, at + ROWS + 3 * (locked + linear + 1), 0)
                    off = m.sub(m.dot(x, y), m.dot(turned(ta, x), turned(tb, y)))
                    off = m.sub(off, m.dot(d, turn))
            off = m.fma(share, m.get(W, at + RIGHT + i, 0), off)
            m.put(W, at + AIM + i, 0, m.neg(m.mul(off, rate)))

    @m.func
    def factor_rows(
        W: m.memory,
        at: int,
        n: int,
        first_angular: int,
        last_angular: int,
        first_free: int,
        ia: m.Sym3,
        ib: m.Sym3,
        mass: lane,
    ):
        """Stores the Cholesky factor of J M^-1 JT over n rows. Rows first_angular to last_angular - 1 and those from first_free on turn."""
        ra = m.get3(W, at + PARENT_ARM, 0)
        rb = m.get3(W, at + CHILD_ARM, 0)
        tiny = m.fill(real(1.0e-20))
        zero = m.fill(real(0.0))
        i = int(0)
        while i < n:
            d = m.get3(W, at + ROWS + 3 * i, 0)
            ja = d
            jb = d
            turns = (i >= first_angular and i < last_angular) or i >= first_free
            if not turns:
                ja = m.cross(ra, d)
                jb = m.cross(rb, d)
            m.put3(W, at + PARENT_TURNS + 3 * i, 0, ja)
            m.put3(W, at + CHILD_TURNS + 3 * i, 0, jb)
            wa = m.sym_apply(ia, ja)
            wb = m.sym_apply(ib, jb)
            j = int(0)
            while j <= i:
                other = (j >= first_angular and j < last_angular) or j >= first_free
                a = m.dot(wa, m.get3(W, at + PARENT_TURNS + 3 * j, 0))
                a = m.dot_plus(wb, m.get3(W, at + CHILD_TURNS + 3 * j, 0), a)
                if not turns and not other:
                    a = m.fma(mass, m.dot(d, m.get3(W, at + ROWS + 3 * j, 0)), a)
                m.put(W, at + FACTOR + i * (i + 1) // 2 + j, 0, a)
                j += 1
            i += 1
        i = int(0)
        while i < n:
            row = at + FACTOR + i * (i + 1) // 2
            j = int(0)
            while j <= i:
                row_j = at + FACTOR + j * (j + 1) // 2
                a = m.get(W, row + j, 0)
                k = int(0)
                while k < j:
                    a = m.fnma(m.get(W, row + k, 0), m.get(W, row_j + k, 0), a)
                    k += 1
                if j < i:
                    m.put(W, row + j, 0, m.mul(a, m.get(W, row_j + j, 0)))
                else:
                    # the inverse of the root; bodies that nothing moves have none
                    m.put(W, row + i, 0, m.where_lt(tiny, a, m.rcp(m.sqrt(m.larger(a, tiny))), zero))
                j += 1
            i += 1

    @m.func
    def free_speed(u: lane, response: lane, before: lane, push: lane, W: m.memory, c: int) -> lane:
        """The velocity without friction and limits: `before` without impulses of the row, and `push` added to them."""
        one = m.fill(real(1.0))
        passive = m.get(W, c + PASSIVE_SLOPE, 0)
        slope = m.get(W, c + DRIVE_SLOPE, 0)
        drive = m.get(W, c + DRIVE, 0)
        most = m.get(W, c + MOST, 0)
        add = m.add(m.get(W, c + PASSIVE, 0), push)
        within = m.div(m.fma(response, m.add(drive, add), before), m.fma(response, m.add(slope, passive), one))
        given = m.fnma(slope, within, drive)
        clipped = m.larger(m.neg(most), m.smaller(given, most))
        beyond = m.div(m.fma(response, m.add(clipped, add), before), m.fma(response, passive, one))
        size = m.larger(given, m.neg(given))
        return m.where_lt(most, size, beyond, within)

    @m.func
    def free_update(u: lane, response: lane, acc: lane, W: m.memory, c: int) -> lane:
        """The change of the impulse `acc` of a free row with the velocity u and the inverse inertia `response`."""
        zero = m.fill(real(0.0))
        tiny = m.fill(real(1.0e-20))
        before = m.fnma(response, acc, u)
        x = free_speed(u, response, before, zero, W, c)
        loss = m.get(W, c + STICK, 0)
        against = m.where_lt(x, zero, loss, m.neg(loss))
        slowed = free_speed(u, response, before, against, W, c)
        slowed = m.where_lt(zero, m.mul(slowed, x), slowed, m.mul(zero, x))
        x = m.where_lt(zero, loss, slowed, x)
        x = m.larger(m.get(W, c + LEAST_SPEED, 0), m.smaller(m.get(W, c + MOST_SPEED, 0), x))
        return m.where_lt(tiny, response, m.div(m.sub(x, u), m.larger(response, tiny)), zero)

    @m.func
    def rates_before(x: Vec3, z: Vec3, wa: Vec3, wb: Vec3, swing: Vec3, sa: lane, dt: lane) -> Vec3:
        """The rates of three angles a time dt ago, of free motion: x is fixed in the parent, z in the child; their dual basis as in
        `joint_rows`."""
        x0 = m.fnma3(m.cross(wa, x), dt, x)
        z0 = m.fnma3(m.cross(wb, z), dt, z)
        u = m.fnma3(swing, dt, m.sub3(wb, wa))
        y0 = unit3(m.cross(z0, x0))
        volume = m.dot(x0, m.cross(y0, z0))
        small = m.fill(real(1.0e-3))
        volume = m.rcp(m.where_lt(volume, small, small, volume))
        first = m.mul(m.dot(m.cross(y0, z0), u), volume)
        last = m.mul(m.dot(m.cross(x0, y0), u), m.mul(volume, sa))
        return m.vec(first, m.dot(y0, u), last)

    @m.func
    def nearest_turn(angle: lane, reference: lane) -> lane:
        """The angle plus the full turns that bring it nearest to the reference."""
        turn = m.fill(real(6.283185307179586))
        share = m.mul(m.sub(reference, angle), m.fill(real(0.15915494309189535)))
        return m.fma(turn, m.floor(m.add(share, m.fill(real(0.5)))), angle)

    @m.func
    def free_factor(W: m.memory, at: int, i: int, j: int, first: int) -> lane:
        """Entry (i, j) of the inverse inertia of the free rows, from row `first` on, without the locked ones; i >= j."""
        zero = m.fill(real(0.0))
        row = at + FACTOR + i * (i + 1) // 2
        other = at + FACTOR + j * (j + 1) // 2
        a = m.fill(real(0.0))
        k = int(first)
        while k < j:
            a = m.fma(m.get(W, row + k, 0), m.get(W, other + k, 0), a)
            k += 1
        inverse = m.get(W, other + j, 0)
        root = m.where_lt(zero, inverse, m.rcp(m.larger(inverse, m.fill(real(1.0e-20)))), zero)
        last = root
        if i != j:
            last = m.get(W, row + j, 0)
        return m.fma(last, root, a)

    @m.func
    def reduce_locked(W: m.memory, at: int, locked: int, rows: int):
        """right <- right minus what the impulses of the free rows do to the locked ones, in the factor's axes."""
        k = int(0)
        while k < locked:
            y = m.get(W, at + RIGHT + k, 0)
            i = int(locked)
            while i < rows:
                y = m.fnma(m.get(W, at + FACTOR + i * (i + 1) // 2 + k, 0), m.get(W, at + PARENT_TURNS + i, 0), y)
                i += 1
            m.put(W, at + RIGHT + k, 0, y)
            k += 1

    return {name: value for name, value in locals().items() if name not in ("m", "real", "lane", "Vec3", "Quat")}
