"""Contacts with the world of bodies that a joint with the world lets turn about a point, but not move, or move along a line, but not turn.

Hinges, universal and ball joints let a body turn.
The joint takes all of an impulse p at such a contact that it does not leave to the body. With the anchor at -d from the centre of mass and
the arm r from there, the body turns by

    dw = W ((r + d) x p),   dv = dw x d,   W = A (A^T (I + m [d]^T [d]) A)^-1 A^T

with the inertia I about the centre of mass and the free axes A. The contact and the joint then do not work against each other where the
joint holds the body in a fixed shape. Where a contact cannot turn the body, it has no impulse, and so no friction; and no contact that
pushes turns the body faster than one at the end of its radius of gyration.

A slide in the direction s leaves dv = s (s . p) / m and no turn. With a unit vector a across s, this is the velocity dw x d of

    d = s x a,   dw = W (d x p),   W = a a^T / m

The body has this velocity without the turn.
"""

import types

import warp as wp
from newton_like.kernels.registration import inlined
from newton_like.kernels.solvers.xpbd.bodies import BODY_INERTIA, INVERSE_MASS, QUAT, place_in_chunk
from newton_like.kernels.solvers.xpbd.order import is_fast_function
from newton_like.kernels.solvers.xpbd.touching import CONTACT_NUMBERS, MASS

# columns of the table of bodies: the number of free axes, 0 for bodies on no pivot, 4 for bodies on a slide; an axis in world axes, and one
# in link axes: that of a hinge, both of a universal joint, and the first one of a slide; the anchor in link axes
AXES, FIXED_AXIS, OWN_AXIS, ANCHOR = 0, 1, 4, 7
PIVOT_COLUMNS = 10
ONE, ALL, SLIDE = 1, 3, 4

# Numbers of a contact: for both bodies, 1 if it is held fast, 2 if it is on a pivot, 3 if it is on a slide, else 0; from the anchor to the
# centre of mass and W, in link axes; the same in a sub-step, in world axes; and the share of the push that the contact has
STATUS_A, STATUS_B = CONTACT_NUMBERS, CONTACT_NUMBERS + 1
OWN_LEVER, OWN_TURNING, LEVER, TURNING, SHARE = (CONTACT_NUMBERS + i for i in (2, 5, 11, 14, 20))
PIVOT_NUMBERS = 21

IN_VAIN = 1.0e-6
"""Response to a normal impulse, in inverse masses of the body, below which a contact acts on the joint alone."""

LEAST_SHARE = 1.0e-6
"""What is added to the responses along the tangents, in the larger one of them, for the inverse of both."""

ON_PIVOT_SHARE = 1.0e-2
"""The same for bodies on pivots: all impulses at a contact may act on the only free axis."""


def no_pivot_program(m: types.SimpleNamespace) -> dict:
    """The functions of :func:`pivot_program` where no body is on a pivot."""
    real, lane, Vec3, Sym3 = m.real, m.lane, m.Vec3, m.Sym3
    Touching, BodyRef, Motion = m.Touching, m.BodyRef, m.Motion

    @inlined
    def pair_responses(K: wp.ref[Touching], k: int, ia: Sym3, ib: Sym3, ra: Vec3, rb: Vec3) -> m.Responses:
        return m.own_responses(ia, ib, ra, rb)

    @inlined
    def seen(K: wp.ref[Touching], k: int, second: int, motion: wp.ref[Motion], x: Vec3) -> Vec3:
        return x

    @m.func
    def pivot_prepare(K: wp.ref[Touching], k: int, valid: int, pose_a: wp.ref[m.Pose], pose_b: wp.ref[m.Pose]):
        """There is no pivot."""

    @inlined
    def turn_response(K: wp.ref[Touching], k: int, second: int, w: Sym3) -> Sym3:
        return w

    @inlined
    def moved_mass(K: wp.ref[Touching], k: int, second: int, mass: lane) -> lane:
        return mass

    @m.func
    def pivot_limit(K: wp.ref[Touching], k: int, valid: int, mass_a: lane, mass_b: lane):
        """There is no pivot."""

    @inlined
    def least_share(K: wp.ref[Touching], k: int) -> lane:
        return m.fill(real(LEAST_SHARE))

    @inlined
    def pushed(K: wp.ref[Touching], k: int, push: lane) -> lane:
        return push

    @inlined
    def push_pair(
        K: wp.ref[Touching], k: int, B: wp.array[real], A: BodyRef, C: BodyRef, motion_a: wp.ref[Motion], motion_b: wp.ref[Motion],
        ra: Vec3, rb: Vec3, p: Vec3,
    ):  # fmt: skip
        """Gives bodies with these motions the impulses p and -p, at the arms rb and ra."""
        m.motion_add(B, C, motion_b, p, m.sym_apply(m.body_response(B, C), m.cross(rb, p)))
        turn = m.sym_apply(m.body_response(B, A), m.neg3(m.cross(ra, p)))
        m.motion_add(B, A, motion_a, m.neg3(p), turn)

    @m.func
    def turn_pair(K: wp.ref[Touching], k: int, B: wp.array[real], A: BodyRef, C: BodyRef, turn: Vec3):
        """Gives bodies the angular impulses `turn` and its opposite."""
        m.body_push(B, C, m.zero3(), turn)
        m.body_push(B, A, m.zero3(), m.neg3(turn))

    return {name: value for name, value in locals().items() if name not in ("m", "real", "lane", "Vec3", "Sym3")}


def pivot_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``seen``, ``pivot_prepare``, ``pair_responses``, ``turn_response``, ``moved_mass``, ``pivot_limit``,
    ``least_share``, ``pushed``, ``push_pair`` and ``turn_pair``, which the functions over contacts call."""
    real, lane, Vec3, Sym3 = m.real, m.lane, m.Vec3, m.Sym3
    Touching, BodyRef, Motion = m.Touching, m.BodyRef, m.Motion
    of_contact, contact_put, vec_of_contact = m.of_contact, m.contact_put, m.vec_of_contact

    @inlined
    def sym_of_contact(K: wp.ref[Touching], i: int, k: int) -> Sym3:
        a = vec_of_contact(K, i, k)
        c = vec_of_contact(K, i + 3, k)
        return m.sym(a.x, a.y, a.z, c.x, c.y, c.z)

    @inlined
    def where_sym(a: lane, b: lane, s: Sym3, t: Sym3) -> Sym3:
        return m.sym(
            m.where_lt(a, b, s.xx, t.xx), m.where_lt(a, b, s.yy, t.yy), m.where_lt(a, b, s.zz, t.zz),
            m.where_lt(a, b, s.xy, t.xy), m.where_lt(a, b, s.xz, t.xz), m.where_lt(a, b, s.yz, t.yz),
        )  # fmt: skip

    @inlined
    def is_special(K: wp.ref[Touching], k: int) -> bool:
        """Whether a body of one of the contacts is held fast, on a pivot or on a slide."""
        return m.any_lt(m.fill(real(0.5)), m.add(of_contact(K, STATUS_A, k), of_contact(K, STATUS_B, k)))

    @inlined
    def seen(K: wp.ref[Touching], k: int, second: int, motion: wp.ref[Motion], x: Vec3) -> Vec3:
        """The velocities x of the first or second bodies as contacts see them: zero for those that are held fast, whose joints may have yet
        to take back what gravity or links on them did. Kinematic ones keep theirs."""
        zero = m.fill(real(0.0))
        status = of_contact(K, STATUS_A + second, k)
        fast = m.where_lt(status, m.fill(real(1.5)), m.mul(status, motion.dynamic), zero)
        return m.where3_lt(zero, fast, m.zero3(), x)

    @m.func
    def pivot_prepare(K: wp.ref[Touching], k: int, valid: int, pose_a: wp.ref[m.Pose], pose_b: wp.ref[m.Pose]):
        """Turns levers and responses with the bodies."""
        if is_special(K, k):
            one = m.fill(real(1.5))
            a = of_contact(K, STATUS_A, k)
            q = m.quat(
                m.where_lt(one, a, pose_a.turn.x, pose_b.turn.x), m.where_lt(one, a, pose_a.turn.y, pose_b.turn.y),
                m.where_lt(one, a, pose_a.turn.z, pose_b.turn.z), m.where_lt(one, a, pose_a.turn.w, pose_b.turn.w),
            )  # fmt: skip
            turn = m.quat_to_matrix(q)
            d = m.apply(turn, vec_of_contact(K, OWN_LEVER, k))
            contact_put(K, LEVER, k, valid, d.x)
            contact_put(K, LEVER + 1, k, valid, d.y)
            contact_put(K, LEVER + 2, k, valid, d.z)
            w = m.sym_rotate(sym_of_contact(K, OWN_TURNING, k), turn)
            contact_put(K, TURNING, k, valid, w.xx)
            contact_put(K, TURNING + 1, k, valid, w.yy)
            contact_put(K, TURNING + 2, k, valid, w.zz)
            contact_put(K, TURNING + 3, k, valid, w.xy)
            contact_put(K, TURNING + 4, k, valid, w.xz)
            contact_put(K, TURNING + 5, k, valid, w.yz)

    @inlined
    def turning_if(status: lane, w: Sym3, free: Sym3) -> Sym3:
        none = m.fill(real(0.0))
        fast = m.sym(none, none, none, none, none, none)
        return where_sym(status, m.fill(real(0.5)), free, where_sym(m.fill(real(1.5)), status, w, fast))

    @inlined
    def pair_responses(K: wp.ref[Touching], k: int, ia: Sym3, ib: Sym3, ra: Vec3, rb: Vec3) -> m.Responses:
        out = m.own_responses(ia, ib, ra, rb)
        if is_special(K, k):
            a = of_contact(K, STATUS_A, k)
            b = of_contact(K, STATUS_B, k)
            turning = m.fill(real(1.5))
            d = vec_of_contact(K, LEVER, k)
            w = sym_of_contact(K, TURNING, k)
            out.ia = turning_if(a, w, ia)
            out.ib = turning_if(b, w, ib)
            sliding = m.fill(real(2.5))
            out.ra = m.where3_lt(turning, a, m.where3_lt(sliding, a, d, m.add3(ra, d)), ra)
            out.rb = m.where3_lt(turning, b, m.where3_lt(sliding, b, d, m.add3(rb, d)), rb)
        return out

    @inlined
    def turn_response(K: wp.ref[Touching], k: int, second: int, w: Sym3) -> Sym3:
        """The responses w of the first or second bodies of contacts to angular impulses: none of those on a slide."""
        none = m.fill(real(0.0))
        fixed = m.sym(none, none, none, none, none, none)
        return where_sym(m.fill(real(2.5)), of_contact(K, STATUS_A + second, k), fixed, w)

    @inlined
    def moved_mass(K: wp.ref[Touching], k: int, second: int, mass: lane) -> lane:
        """The inverse masses `mass` of the first or second bodies of contacts; zero for those that are held fast, on a pivot or on a
        slide."""
        return m.where_lt(m.fill(real(0.5)), of_contact(K, STATUS_A + second, k), m.fill(real(0.0)), mass)

    @m.func
    def pivot_limit(K: wp.ref[Touching], k: int, valid: int, mass_a: lane, mass_b: lane):
        """Takes the impulses from contacts that cannot turn a body on a pivot, or move one on a slide, and stores the share of the push of
        the others."""
        one = m.fill(real(1.0))
        share = one
        if is_special(K, k):
            zero = m.fill(real(0.0))
            turning = m.fill(real(1.5))
            mass = m.where_lt(turning, of_contact(K, STATUS_A, k), mass_a, zero)
            mass = m.where_lt(turning, of_contact(K, STATUS_B, k), mass_b, mass)
            inverse = of_contact(K, MASS, k)
            # the square of the lever, in radii of gyration about the anchor
            square = m.rcp(m.larger(m.mul(inverse, mass), m.fill(real(1.0e-20))))
            kept = m.where_lt(square, m.fill(real(IN_VAIN)), zero, inverse)
            contact_put(K, MASS, k, valid, m.where_lt(zero, mass, kept, inverse))
            share = m.where_lt(zero, mass, m.sqrt(m.smaller(square, one)), one)
        contact_put(K, SHARE, k, valid, share)

    @inlined
    def least_share(K: wp.ref[Touching], k: int) -> lane:
        """What is added to the responses along the tangents, in the larger one of them."""
        turning = m.fill(real(1.5))
        least = m.fill(real(LEAST_SHARE))
        on_pivot = m.fill(real(ON_PIVOT_SHARE))
        least = m.where_lt(turning, of_contact(K, STATUS_A, k), on_pivot, least)
        return m.where_lt(turning, of_contact(K, STATUS_B, k), on_pivot, least)

    @inlined
    def pushed(K: wp.ref[Touching], k: int, push: lane) -> lane:
        """The largest velocity of a push, or its opposite."""
        return m.mul(push, of_contact(K, SHARE, k))

    @inlined
    def push_one(
        K: wp.ref[Touching], k: int, B: wp.array[real], r: BodyRef, motion: wp.ref[Motion], status: lane, p: Vec3, dw: Vec3
    ):  # fmt: skip
        """Gives bodies an impulse and turns them faster by dw; those on a pivot only turn, and those on a slide only move. Lanes without a
        contact have a body that forces do not move."""
        zero = m.fill(real(0.0))
        own = m.where3_lt(zero, motion.dynamic, dw, m.zero3())
        dv = m.cross(own, vec_of_contact(K, LEVER, k))
        motion.vel = m.add3(motion.vel, m.where3_lt(m.fill(real(1.5)), status, dv, m.zero3()))
        own = m.where3_lt(m.fill(real(2.5)), status, m.zero3(), own)
        m.motion_add(B, r, motion, m.where3_lt(m.fill(real(0.5)), status, m.zero3(), p), own)

    @inlined
    def push_pair(
        K: wp.ref[Touching], k: int, B: wp.array[real], A: BodyRef, C: BodyRef, motion_a: wp.ref[Motion], motion_b: wp.ref[Motion],
        ra: Vec3, rb: Vec3, p: Vec3,
    ):  # fmt: skip
        """Gives bodies with these motions the impulses p and -p, at the arms rb and ra."""
        own = pair_responses(K, k, m.body_response(B, A), m.body_response(B, C), ra, rb)
        wb = m.sym_apply(own.ib, m.cross(own.rb, p))
        wa = m.sym_apply(own.ia, m.neg3(m.cross(own.ra, p)))
        if is_special(K, k):
            push_one(K, k, B, C, motion_b, of_contact(K, STATUS_B, k), p, wb)
            push_one(K, k, B, A, motion_a, of_contact(K, STATUS_A, k), m.neg3(p), wa)
        else:
            m.motion_add(B, C, motion_b, p, wb)
            m.motion_add(B, A, motion_a, m.neg3(p), wa)

    @m.func
    def turn_pair(K: wp.ref[Touching], k: int, B: wp.array[real], A: BodyRef, C: BodyRef, turn: Vec3):
        """Gives bodies the angular impulses `turn` and its opposite."""
        own = pair_responses(K, k, m.body_response(B, A), m.body_response(B, C), m.zero3(), m.zero3())
        motion_a = m.body_motion(B, A)
        motion_b = m.body_motion(B, C)
        wb = m.sym_apply(turn_response(K, k, 1, own.ib), turn)
        wa = m.sym_apply(turn_response(K, k, 0, own.ia), m.neg3(turn))
        push_one(K, k, B, C, motion_b, of_contact(K, STATUS_B, k), m.zero3(), wb)
        push_one(K, k, B, A, motion_a, of_contact(K, STATUS_A, k), m.zero3(), wa)

    kept = (
        "seen",
        "pivot_prepare",
        "pair_responses",
        "turn_response",
        "moved_mass",
        "pivot_limit",
        "least_share",
        "pushed",
        "push_pair",
        "turn_pair",
    )
    return {name: value for name, value in locals().items() if name in kept}


def pivot_function(real, Listed, Touching, pivots: bool):
    """The function ``take_pivots`` over the contacts of a chunk.

    Args:
        real: scalar type.
        Listed, Touching: structs of contacts.
        pivots: whether there are pivots; without them the function does nothing.
    """
    vec3, mat33, quat = wp.types.vector(3, real), wp.types.matrix((3, 3), real), wp.types.quaternion(real)
    is_fast = is_fast_function(real)

    @wp.func
    def no_pivots(
        N: wp.ref[Listed], K: wp.ref[Touching], c: int, begin: int, end: int, B: wp.array[real], body_at: int, stride: int
    ):  # fmt: skip
        """There is no pivot."""

    if not pivots:
        return no_pivots

    @wp.func
    def read_table(N: wp.ref[Listed], body: int, column: int) -> vec3:
        x = vec3()
        for i in range(3):
            x[i] = N.body_pivot[body, column + i]
        return x

    @wp.func
    def on_slide(N: wp.ref[Listed], body: int) -> bool:
        return int(N.body_pivot[body, AXES]) == SLIDE

    @wp.func
    def line_of(N: wp.ref[Listed], body: int, B: wp.array[real], body_at: int, stride: int) -> vec3:
        """The axis of the table that stands in world axes, in link axes."""
        q = quat()
        for i in range(4):
            q[i] = B[place_in_chunk(body_at, stride, N.body_slot[body], QUAT + i)]
        return wp.quat_rotate_inv(q, read_table(N, body, FIXED_AXIS))

    @wp.func
    def across(along: vec3) -> vec3:
        """A unit vector across a direction."""
        least = vec3(real(0.0), real(0.0), real(0.0))
        if wp.abs(along[0]) < wp.abs(along[1]):
            if wp.abs(along[0]) < wp.abs(along[2]):
                least[0] = real(1.0)
            else:
                least[2] = real(1.0)
        elif wp.abs(along[1]) < wp.abs(along[2]):
            least[1] = real(1.0)
        else:
            least[2] = real(1.0)
        return wp.normalize(wp.cross(along, least))

    @wp.func
    def lever_of(N: wp.ref[Listed], body: int, B: wp.array[real], body_at: int, stride: int) -> vec3:
        """d of a body, in link axes."""
        if on_slide(N, body):
            along = line_of(N, body, B, body_at, stride)
            return wp.cross(along, across(along))
        return N.body_com[body] - read_table(N, body, ANCHOR)

    @wp.func
    def turning_of(N: wp.ref[Listed], body: int, B: wp.array[real], body_at: int, stride: int) -> mat33:
        """W of a body, in link axes."""
        zero = mat33()
        slot = N.body_slot[body]
        axes = int(N.body_pivot[body, AXES])
        inverse_mass = B[place_in_chunk(body_at, stride, slot, INVERSE_MASS)]
        if inverse_mass <= real(0.0):
            return zero
        if on_slide(N, body):
            a = across(line_of(N, body, B, body_at, stride))
            return inverse_mass * wp.outer(a, a)
        s = mat33()
        for i in range(3):
            s[i, i] = B[place_in_chunk(body_at, stride, slot, BODY_INERTIA + i)]
        s[0, 1] = B[place_in_chunk(body_at, stride, slot, BODY_INERTIA + 3)]
        s[0, 2] = B[place_in_chunk(body_at, stride, slot, BODY_INERTIA + 4)]
        s[1, 2] = B[place_in_chunk(body_at, stride, slot, BODY_INERTIA + 5)]
        s[1, 0] = s[0, 1]
        s[2, 0] = s[0, 2]
        s[2, 1] = s[1, 2]
        d = N.body_com[body] - read_table(N, body, ANCHOR)
        mass = real(1.0) / inverse_mass
        s = s + mass * (wp.dot(d, d) * wp.identity(n=3, dtype=real) - wp.outer(d, d))
        if axes == ALL:
            return wp.inverse(s)
        own = read_table(N, body, OWN_AXIS)
        if axes == ONE:
            return wp.outer(own, own) / wp.dot(own, s * own)
        fixed = line_of(N, body, B, body_at, stride)
        # two axes, the second one without its share of the first one
        s_fixed = s * fixed
        size = wp.dot(fixed, s_fixed)
        own = own - fixed * (wp.dot(own, s_fixed) / size)
        other = wp.dot(own, s * own)
        return wp.outer(fixed, fixed) / size + wp.outer(own, own) / wp.max(other, real(1.0e-6) * size)

    @wp.func
    def take_pivots(
        N: wp.ref[Listed], K: wp.ref[Touching], c: int, begin: int, end: int, B: wp.array[real], body_at: int, stride: int
    ):  # fmt: skip
        """Stores the numbers of pivots of the contacts of chunk c at places `begin` to `end`. Needs `take_contacts`."""
        for k in range(begin, end):
            i = N.ordered[k]
            a = N.shape_body[N.shape0[i]]
            b = N.shape_body[N.shape1[i]]
            at = K.at + k - N.start[c]
            status_a = real(0.0)
            status_b = real(0.0)
            fast_a = is_fast(N, a)
            fast_b = is_fast(N, b)
            if fast_a and a >= 0:
                status_a = real(1.0)
            if fast_b and b >= 0:
                status_b = real(1.0)
            body = int(-1)
            if fast_a and not fast_b:
                if N.body_pivot[b, AXES] > real(0.5):
                    body = b
                    status_b = real(2.0)
                    if on_slide(N, b):
                        status_b = real(3.0)
            if fast_b and not fast_a:
                if N.body_pivot[a, AXES] > real(0.5):
                    body = a
                    status_a = real(2.0)
                    if on_slide(N, a):
                        status_a = real(3.0)
            K.numbers[at + STATUS_A * K.room] = status_a
            K.numbers[at + STATUS_B * K.room] = status_b
            if body >= 0:
                d = lever_of(N, body, B, body_at, stride)
                w = turning_of(N, body, B, body_at, stride)
                for x in range(3):
                    K.numbers[at + (OWN_LEVER + x) * K.room] = d[x]
                    K.numbers[at + (OWN_TURNING + x) * K.room] = w[x, x]
                K.numbers[at + (OWN_TURNING + 3) * K.room] = w[0, 1]
                K.numbers[at + (OWN_TURNING + 4) * K.room] = w[0, 2]
                K.numbers[at + (OWN_TURNING + 5) * K.room] = w[1, 2]

    return take_pivots
