"""Rigid bodies in maximal coordinates: records, free motion and impulses.

A sub-step of length h moves a body freely by a drift with the momenta constant: the velocity v of the centre of mass, and the angular
momentum L = I w about it. The orientation turns by exp(h w) with

    w = I(R exp(h/2 w))^-1 (L cos a + (1 - cos a) (w . L) w / |w|^2),   a = h |w| / 2

where the bracket is the mean of L before and after as the body at the middle of the drift sees it. Its change by the drift, times w, is
zero, so that the energy is kept, too (an implicit midpoint rule on the rotation group; Hairer, Lubich and Wanner 2006, chapter IV). The
equation is iterated, for fast bodies more than once. Forces and constraints change the velocities between two drifts. This is the
leapfrog method, and with constraints that hold after the next drift the SHAKE method (Ryckaert, Ciccotti and Berendsen 1977).

Rounding. A place is the sum of that at the start of the step and of a small shift, and an orientation has a low part, to which the rounding
errors of turns are added (Kahan 1965). Angular momenta are kept from drift to drift and from step to step as long as nothing changes the
angular velocity, and are not found from it again.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.registration import inlined
from newton_like.kernels.simd import COPYING
from newton_like.kernels.solvers.xpbd.eights import eight_access

# Numbers of a body that stand side by side, in groups of eight (see `newton_like.kernels.solvers.xpbd.eights`): velocity, angular velocity
# (world axes), inverse mass, and one for bodies that forces move ...
MOTION, VEL, SPIN, INVERSE_MASS, DYNAMIC = 0, 0, 3, 6, 7
# ... inverse inertia in world axes ...
RESPONSE = 8
# ... orientation, and shift of the centre of mass since the start of the step; and one for bodies whose velocities at the start of the step
# are not those of the end of the last one
POSE, QUAT, SHIFT, CHANGED = 16, 16, 20, 23
LINE = 32
"""Number of these numbers, and of unused ones that fill the lines of the cache. They stand at the beginning of a chunk: a contact or joint
fetches few lines of the cache of each of its bodies, and members of a team do not write to the same lines."""

# Numbers of a body that stand in rows of the chunk: centre of mass at the start of the step; constants of a step: inertia and inverse
# inertia in link axes, acceleration by gravity and external forces, external torque ...
POS, BODY_INERTIA, BODY_INVERSE, PUSH, TORQUE = LINE, 35, 41, 47, 50
# ... and the low part of the orientation, and the angular momentum of a body with the angular velocity of the last row
LOW_QUAT, MOMENTUM, SPIN_BEFORE = 53, 57, 60
BODY_NUMBERS = 64

NO_SPIN = 1.0e30
"""An angular velocity that no body has."""

CLOSE = 1.0e-8
"""Square of the error of the turn of a drift, below which it is not iterated further [rad^2]."""

TURNS = 4
"""Largest number of iterations of the turn of a drift."""


@wp.func
def place_in_chunk(at: int, stride: int, slot: int, i: int) -> int:
    """Where number i of the body in a slot stands.

    Args:
        at, stride: the first number of the chunk, and the number of its slots.
    """
    if i < LINE:
        return at + slot * LINE + i
    return at + i * stride + slot


def body_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``BodyRef``, and functions over bodies."""
    real, lane, ints = m.real, m.lane, m.ints

    @wp.struct
    class Motion:
        """Velocity, angular velocity, inverse mass, and one for bodies that forces move."""

        vel: m.Vec3
        spin: m.Vec3
        mass: lane
        dynamic: lane

    @wp.struct
    class Response:
        """Inverse inertia in world axes."""

        inertia: m.Sym3
        rest: lane
        rest_too: lane

    @wp.struct
    class Pose:
        """Orientation, shift of the centre of mass since the start of the step, and `CHANGED`."""

        turn: m.Quat
        shift: m.Vec3
        changed: lane

    fetch_motion, deposit_motion = eight_access(m, Motion, LINE)
    fetch_response, deposit_response = eight_access(m, Response, LINE)
    fetch_pose, deposit_pose = eight_access(m, Pose, LINE)

    @wp.struct
    class BodyRef:
        """Bodies of lanes.

        at: the first number of the chunk; stride: distance of rows; slot: slots; first: that of slots in turn, else -1.
        """

        at: int
        stride: int
        first: int
        slot: ints

    @m.func
    def body_ref(at: int, stride: int, first: int, slot: ints) -> BodyRef:
        r = BodyRef()
        r.at = at
        r.stride = stride
        r.first = first
        r.slot = slot
        return r

    @inlined
    def body_motion(B: wp.array[real], r: BodyRef) -> Motion:
        out = Motion()
        fetch_motion(B, r.at + MOTION, r.slot, out)
        return out

    @inlined
    def body_response(B: wp.array[real], r: BodyRef) -> m.Sym3:
        out = Response()
        fetch_response(B, r.at + RESPONSE, r.slot, out)
        return out.inertia

    @inlined
    def body_pose(B: wp.array[real], r: BodyRef) -> Pose:
        out = Pose()
        fetch_pose(B, r.at + POSE, r.slot, out)
        return out

    @inlined
    def body_number(B: wp.array[real], r: BodyRef, i: int) -> lane:
        """Number i of bodies, of those that stand in rows."""
        return m.fetch(B, r.at + i * r.stride, r.first, r.slot)

    @inlined
    def run_number(B: wp.array[real], r: BodyRef, i: int) -> lane:
        """The same of bodies in slots that follow each other; so are those of the next functions."""
        return m.fetch_run(B, r.at + i * r.stride + r.first)

    @inlined
    def run_put(B: wp.array[real], r: BodyRef, i: int, x: lane):
        m.deposit_run(B, r.at + i * r.stride + r.first, x)

    @inlined
    def run_vec(B: wp.array[real], r: BodyRef, i: int) -> m.Vec3:
        return m.vec(run_number(B, r, i), run_number(B, r, i + 1), run_number(B, r, i + 2))

    @inlined
    def run_put_vec(B: wp.array[real], r: BodyRef, i: int, a: m.Vec3):
        run_put(B, r, i, a.x)
        run_put(B, r, i + 1, a.y)
        run_put(B, r, i + 2, a.z)

    @inlined
    def run_turn(B: wp.array[real], r: BodyRef, i: int) -> m.Quat:
        return m.quat(run_number(B, r, i), run_number(B, r, i + 1), run_number(B, r, i + 2), run_number(B, r, i + 3))

    @inlined
    def run_put_turn(B: wp.array[real], r: BodyRef, i: int, q: m.Quat):
        run_put(B, r, i, q.x)
        run_put(B, r, i + 1, q.y)
        run_put(B, r, i + 2, q.z)
        run_put(B, r, i + 3, q.w)

    @inlined
    def run_sym(B: wp.array[real], r: BodyRef, i: int) -> m.Sym3:
        a = run_vec(B, r, i)
        c = run_vec(B, r, i + 3)
        return m.sym(a.x, a.y, a.z, c.x, c.y, c.z)

    @inlined
    def body_vec(B: wp.array[real], r: BodyRef, i: int) -> m.Vec3:
        return m.vec(body_number(B, r, i), body_number(B, r, i + 1), body_number(B, r, i + 2))

    @inlined
    def body_sym(B: wp.array[real], r: BodyRef, i: int) -> m.Sym3:
        a = body_vec(B, r, i)
        c = body_vec(B, r, i + 3)
        return m.sym(a.x, a.y, a.z, c.x, c.y, c.z)

    @m.func
    def body_place(B: wp.array[real], r: BodyRef) -> m.Vec3:
        """Centres of mass."""
        pose = body_pose(B, r)
        return m.add3(body_vec(B, r, POS), pose.shift)

    @m.func
    def middle_spin(q: m.Quat, w: m.Vec3, momentum: m.Vec3, inverse: m.Sym3, h: lane) -> m.Vec3:
        """The angular velocity at the middle of a drift that turns bodies by h w."""
        two = m.fill(real(2.0))
        part = m.quat_exp(m.scale3(w, m.mul(m.fill(real(0.25)), h)))
        axis = m.vec(part.x, part.y, part.z)
        mean = m.scale3(momentum, m.fma(m.mul(two, part.w), part.w, m.fill(real(-1.0))))
        mean = m.fma3(axis, m.mul(two, m.dot(axis, momentum)), mean)
        return m.turned_apply(inverse, m.quat_to_matrix(m.quat_multiply(part, q)), mean)

    @m.func
    def add_to(sum: lane, x: lane) -> tuple[lane, lane]:
        """A sum and its rounding error."""
        new = m.add(sum, x)
        taken = m.sub(new, sum)
        return new, m.add(m.sub(sum, m.sub(new, taken)), m.sub(x, taken))

    @m.func
    def body_turn_on(B: wp.array[real], r: BodyRef, q: m.Quat, w: m.Vec3, h: lane) -> m.Quat:
        """The orientations of bodies after they turned with the angular velocity w for the time h."""
        part = m.quat_exp(m.scale3(w, m.mul(m.fill(real(0.5)), h)))
        one = m.fill(real(1.0))
        # cos - 1 from the sine; beyond a quarter of a turn as it is
        sine = m.fma(part.x, part.x, m.fma(part.y, part.y, m.mul(part.z, part.z)))
        less = m.neg(m.div(sine, m.add(one, m.larger(part.w, m.fill(real(0.0))))))
        less = m.where_lt(part.w, m.fill(real(0.1)), m.sub(part.w, one), less)
        d = m.quat_multiply(m.quat(part.x, part.y, part.z, less), q)
        square = m.fma(q.x, q.x, m.fma(q.y, q.y, m.fma(q.z, q.z, m.mul(q.w, q.w))))
        unit = m.mul(m.fill(real(0.5)), m.sub(one, square))
        low = run_turn(B, r, LOW_QUAT)
        x, lx = add_to(q.x, m.fma(q.x, unit, m.add(d.x, low.x)))
        y, ly = add_to(q.y, m.fma(q.y, unit, m.add(d.y, low.y)))
        z, lz = add_to(q.z, m.fma(q.z, unit, m.add(d.z, low.z)))
        c, lc = add_to(q.w, m.fma(q.w, unit, m.add(d.w, low.w)))
        run_put_turn(B, r, LOW_QUAT, m.quat(lx, ly, lz, lc))
        return m.quat(x, y, z, c)

    @m.func
    def body_drift(B: wp.array[real], r: BodyRef, h: lane):
        """Moves bodies in slots that follow each other freely for the time h, and computes their inverse inertia in world axes. Kinematic
        bodies keep their velocities."""
        zero = m.fill(real(0.0))
        motion = body_motion(B, r)
        pose = body_pose(B, r)
        w = motion.spin
        q = pose.turn
        dynamic = motion.dynamic
        inertia = run_sym(B, r, BODY_INERTIA)
        inverse = run_sym(B, r, BODY_INVERSE)
        pose.shift = m.fma3(motion.vel, h, pose.shift)
        change = m.sub3(w, run_vec(B, r, SPIN_BEFORE))
        moved = m.dot(change, change)
        momentum = run_vec(B, r, MOMENTUM)
        if m.any_lt(zero, moved):
            momentum = m.where3_lt(zero, moved, m.turned_apply(inertia, m.quat_to_matrix(q), w), momentum)
        close = m.fill(real(CLOSE))
        middle = m.fma3(m.sub3(middle_spin(q, w, momentum, inverse, h), w), dynamic, w)
        off = m.scale3(m.sub3(middle, w), h)
        error = m.dot(off, off)
        for _turn in range(TURNS - 1):
            if m.any_lt(close, error):
                new = m.fma3(m.sub3(middle_spin(q, middle, momentum, inverse, h), w), dynamic, w)
                off = m.scale3(m.sub3(new, middle), h)
                middle = m.where3_lt(close, error, new, middle)
                error = m.where_lt(close, error, m.dot(off, off), error)
        pose.turn = body_turn_on(B, r, q, middle, h)
        deposit_pose(B, r.at + POSE, r.slot, pose)
        turn = m.quat_to_matrix(pose.turn)
        response = Response()
        response.inertia = m.sym_rotate(inverse, turn)
        deposit_response(B, r.at + RESPONSE, r.slot, response)
        # the change, because rounding errors of the product of the inertia and its inverse would add up
        lack = m.sub3(momentum, m.turned_apply(inertia, turn, w))
        motion.spin = m.fma3(m.sym_apply(response.inertia, lack), dynamic, w)
        deposit_motion(B, r.at + MOTION, r.slot, motion)
        run_put_vec(B, r, SPIN_BEFORE, motion.spin)
        run_put_vec(B, r, MOMENTUM, momentum)

    @m.func
    def body_swing(B: wp.array[real], r: BodyRef, q: m.Quat, w: m.Vec3) -> m.Vec3:
        """The angular acceleration of free motion (Euler's equation)."""
        momentum = m.turned_apply(body_sym(B, r, BODY_INERTIA), m.quat_to_matrix(q), w)
        return m.sym_apply(body_response(B, r), m.cross(momentum, w))

    @m.func
    def body_kick(B: wp.array[real], r: BodyRef, h: lane):
        """Adds the forces of a sub-step to bodies in slots that follow each other."""
        motion = body_motion(B, r)
        motion.vel = m.fma3(run_vec(B, r, PUSH), h, motion.vel)
        turn = m.sym_apply(body_response(B, r), run_vec(B, r, TORQUE))
        motion.spin = m.fma3(turn, h, motion.spin)
        deposit_motion(B, r.at + MOTION, r.slot, motion)

    @inlined
    def motion_add(B: wp.array[real], r: BodyRef, motion: wp.ref[Motion], p: m.Vec3, dw: m.Vec3):
        """Adds an impulse p and an angular velocity dw to bodies with this motion."""
        motion.vel = m.add3(motion.vel, m.scale3(p, motion.mass))
        motion.spin = m.add3(motion.spin, dw)
        deposit_motion(B, r.at + MOTION, r.slot, motion)

    @m.func
    def body_push(B: wp.array[real], r: BodyRef, p: m.Vec3, turn: m.Vec3):
        """Adds an impulse p and an angular impulse about the centre of mass."""
        motion = body_motion(B, r)
        motion_add(B, r, motion, p, m.sym_apply(body_response(B, r), turn))

    return {name: value for name, value in locals().items() if name not in ("m", "real", "lane", "ints")}


@cache
def forget_poses(real):
    """Two kernels that clear what is kept of chosen worlds: over bodies, the rounding errors of poses and the angular momenta (`place` is
    where the real part of the orientation of a body stands); over worlds, the numbers of the slot of fixed bodies (`at` and `stride` are
    those of `place_in_chunk`). NaN of a joint on the world gets into these numbers."""

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def forget(place: wp.array[int], world: wp.array[int], mask: wp.array[bool], numbers: wp.array[real]):
        b = wp.tid()
        if mask[wp.max(world[b], 0)]:
            # a pose that no body has
            numbers[place[b]] = real(2.0)

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def forget_fixed(
        at: wp.array[int], stride: wp.array[int], slot: wp.array[int], mask: wp.array[bool], numbers: wp.array[real]
    ):
        w = wp.tid()
        if mask[w]:
            for i in range(BODY_NUMBERS):
                numbers[place_in_chunk(at[w], stride[w], slot[w], i)] = real(0.0)
            numbers[place_in_chunk(at[w], stride[w], slot[w], QUAT + 3)] = real(1.0)

    return forget, forget_fixed
