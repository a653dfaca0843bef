"""Contacts with more than a normal and two tangents: torsional and rolling friction, and softness as MuJoCo states it.

Torsional friction is an angular impulse about the normal, of at most the coefficient times the normal impulse; rolling friction is one in
the plane of the contact, likewise. Coefficients are lengths. A contact that is soft by `solref` and `solimp` has the law of
`newton_like.kernels.solvers.rows.contact_law` over a sub-step: u + R p = (1 - h b) v + h k d r, with the normal velocity v and the depth r
before. R is a share of the mean inverse masses of the bodies, which are those of the initial configuration, as `body_invweight0` of MuJoCo.
"""

import types

import warp as wp
from newton_like.kernels.solvers.rows.contact_law import impedance_program
from newton_like.kernels.solvers.xpbd.order import tangent_function
from newton_like.kernels.solvers.xpbd.touching import APPROACH, GAP, MU_AT, NORMAL_AT, SUMS

from newton_like.kernels.tree import (  # isort: skip
    LAW, LAW_BY_RULE, LAW_DAMPING, LAW_IMPEDANCE, LAW_IMPEDANCE_MOST, LAW_INVERSE_WIDTH, LAW_MIDPOINT, LAW_MOST, LAW_MU, LAW_POWER,
    LAW_SOFT, LAW_STIFFNESS,
)  # fmt: skip

LAW_COLUMNS = LAW + 4
"""Numbers of a law: those of `newton_like.kernels.tree`, then the shares that the sliding friction of the first shape, of the second one
and the larger of both have in that of the contact."""

# Numbers of a contact: coefficients of torsional and rolling friction, one where it is soft, sum of the mean inverse masses; impulses about
# the normal and both tangents, their inverse responses; R and target of the soft row
TORSIONAL, ROLLING, SOFT, WEIGHT, TURNS_AT, TURN_MASSES, COMPLIANCE, TARGET = 0, 1, 2, 3, 4, 7, 10, 11
EXTRA_NUMBERS = 12


def no_law_program(m: types.SimpleNamespace) -> dict:
    """The functions of :func:`contact_law_program` for contacts without laws: they do nothing."""
    real, lane, Vec3 = m.real, m.lane, m.Vec3

    @m.func
    def law_prepare(K: wp.ref[m.Touching], k: int, valid: int, ia: m.Sym3, ib: m.Sym3, h: real, push_speed: real):
        """There is no law."""

    @m.func
    def law_start(K: wp.ref[m.Touching], k: int, B: wp.array[real], A: m.BodyRef, C: m.BodyRef, n: Vec3):
        """There is no law."""

    @m.func
    def law_change(K: wp.ref[m.Touching], k: int, speed: lane, old: lane, mass: lane, change: lane, relax: int) -> lane:
        return change

    @m.func
    def law_give(K: wp.ref[m.Touching], k: int, mass: lane, give: lane, relax: int) -> lane:
        return give

    @m.func
    def law_solve(
        K: wp.ref[m.Touching], k: int, valid: int, B: wp.array[real], A: m.BodyRef, C: m.BodyRef, n: Vec3, normal: lane,
        relax: int,
    ):  # fmt: skip
        """There is no law."""

    return dict(
        law_prepare=law_prepare, law_start=law_start, law_change=law_change, law_give=law_give, law_solve=law_solve
    )


def contact_law_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``law_prepare``, ``law_start``, ``law_change``, ``law_give`` and ``law_solve``, which the functions over
    contacts call."""
    real, lane, Vec3 = m.real, m.lane, m.Vec3
    impedance_curve = impedance_program(m)["impedance_curve"]

    @m.func
    def extra(K: wp.ref[m.Touching], i: int, k: int) -> lane:
        return m.fetch_run(K.extra, K.extra_at + i * K.room + k)

    @m.func
    def extra_put(K: wp.ref[m.Touching], i: int, k: int, valid: int, x: lane):
        m.deposit_some(K.extra, K.extra_at + i * K.room + k, valid, x)

    @m.func
    def law_number(K: wp.ref[m.Touching], i: int, k: int, valid: int) -> lane:
        return m.fetch(K.laws, i, -1, m.listed(K.law, K.first + k, valid, 0))

    @m.func
    def turn_mass(n: Vec3, ia: m.Sym3, ib: m.Sym3) -> lane:
        k = m.dot_plus(n, m.sym_apply(ib, n), m.dot(n, m.sym_apply(ia, n)))
        tiny = m.fill(real(1.0e-20))
        return m.where_lt(tiny, k, m.rcp(m.larger(k, tiny)), m.fill(real(0.0)))

    @m.func
    def law_prepare(K: wp.ref[m.Touching], k: int, valid: int, ia: m.Sym3, ib: m.Sym3, h: real, push_speed: real):
        """Computes inverse responses of the turns, and the soft rows."""
        n = m.vec_of_contact(K, NORMAL_AT, k)
        extra_put(K, TURN_MASSES, k, valid, turn_mass(n, ia, ib))
        extra_put(K, TURN_MASSES + 1, k, valid, turn_mass(m.tangent(n), ia, ib))
        extra_put(K, TURN_MASSES + 2, k, valid, turn_mass(m.second_tangent(n), ia, ib))
        one = m.fill(real(1.0))
        dt = m.fill(h)
        depth = m.larger(m.fill(real(0.0)), m.neg(m.of_contact(K, GAP, k)))
        before = m.of_contact(K, APPROACH, k)
        most = law_number(K, LAW_IMPEDANCE_MOST, k, valid)
        x = m.smaller(m.mul(depth, law_number(K, LAW_INVERSE_WIDTH, k, valid)), one)
        low = law_number(K, LAW_IMPEDANCE, k, valid)
        d = impedance_curve(x, low, most, law_number(K, LAW_MIDPOINT, k, valid), law_number(K, LAW_POWER, k, valid))
        # a time constant is at least two sub-steps long
        damping = m.div(m.smaller(m.mul(dt, law_number(K, LAW_DAMPING, k, valid)), one), most)
        stiffness = m.mul(m.mul(dt, dt), law_number(K, LAW_STIFFNESS, k, valid))
        stiffness = m.div(m.smaller(stiffness, law_number(K, LAW_MOST, k, valid)), m.mul(most, most))
        fastest = m.pushed(K, k, m.fill(push_speed))
        push = m.smaller(fastest, m.mul(m.mul(stiffness, m.mul(d, depth)), m.fill(real(1.0) / h)))
        extra_put(K, COMPLIANCE, k, valid, m.mul(extra(K, WEIGHT, k), m.div(m.sub(one, d), d)))
        extra_put(K, TARGET, k, valid, m.add(m.fnma(damping, before, before), push))

    @m.func
    def whole_turn(K: wp.ref[m.Touching], k: int, n: Vec3) -> Vec3:
        turn = m.fma3(m.tangent(n), extra(K, TURNS_AT + 1, k), m.scale3(n, extra(K, TURNS_AT, k)))
        return m.fma3(m.second_tangent(n), extra(K, TURNS_AT + 2, k), turn)

    @m.func
    def law_start(K: wp.ref[m.Touching], k: int, B: wp.array[real], A: m.BodyRef, C: m.BodyRef, n: Vec3):
        """Applies the angular impulses of the sub-step before."""
        m.turn_pair(K, k, B, A, C, whole_turn(K, k, n))

    @m.func
    def law_change(K: wp.ref[m.Touching], k: int, speed: lane, old: lane, mass: lane, change: lane, relax: int) -> lane:
        """The change of the normal impulse; `change` for contacts that are not soft by a law."""
        zero = m.fill(real(0.0))
        soft = zero
        if relax == 0:
            compliance = extra(K, COMPLIANCE, k)
            lack = m.fnma(compliance, old, m.sub(extra(K, TARGET, k), speed))
            soft = m.div(m.mul(mass, lack), m.fma(compliance, mass, m.fill(real(1.0))))
            # shapes that are apart do not feel each other
            soft = m.where_lt(m.of_contact(K, GAP, k), zero, soft, m.neg(old))
        return m.where_lt(m.fill(real(0.5)), extra(K, SOFT, k), soft, change)

    @m.func
    def law_give(K: wp.ref[m.Touching], k: int, mass: lane, give: lane, relax: int) -> lane:
        """How much of a change of the normal velocity the normal impulse takes back; `give` for contacts that are not soft by a law."""
        zero = m.fill(real(0.0))
        soft = zero
        if relax == 0:
            soft = m.rcp(m.fma(extra(K, COMPLIANCE, k), mass, m.fill(real(1.0))))
            soft = m.where_lt(m.of_contact(K, GAP, k), zero, soft, zero)
        return m.where_lt(m.fill(real(0.5)), extra(K, SOFT, k), soft, give)

    @m.func
    def law_solve(
        K: wp.ref[m.Touching], k: int, valid: int, B: wp.array[real], A: m.BodyRef, C: m.BodyRef, n: Vec3, normal: lane,
        relax: int,
    ):  # fmt: skip
        """Updates the angular impulses of contacts with these normal impulses."""
        t1 = m.tangent(n)
        t2 = m.second_tangent(n)
        motion_a = m.body_motion(B, A)
        motion_b = m.body_motion(B, C)
        w = m.sub3(m.seen(K, k, 1, motion_b, motion_b.spin), m.seen(K, k, 0, motion_a, motion_a.spin))
        bound = m.mul(extra(K, TORSIONAL, k), normal)
        old = extra(K, TURNS_AT, k)
        new = m.fnma(m.dot(n, w), extra(K, TURN_MASSES, k), old)
        new = m.larger(m.neg(bound), m.smaller(new, bound))
        old1 = extra(K, TURNS_AT + 1, k)
        old2 = extra(K, TURNS_AT + 2, k)
        bound = m.mul(extra(K, ROLLING, k), normal)
        mass1 = extra(K, TURN_MASSES + 1, k)
        mass2 = extra(K, TURN_MASSES + 2, k)
        new1, new2 = m.in_cone(old1, old2, m.dot(t1, w), m.dot(t2, w), mass1, mass2, bound)
        extra_put(K, TURNS_AT, k, valid, new)
        extra_put(K, TURNS_AT + 1, k, valid, new1)
        extra_put(K, TURNS_AT + 2, k, valid, new2)
        turn = m.fma3(t1, m.sub(new1, old1), m.scale3(n, m.sub(new, old)))
        m.turn_pair(K, k, B, A, C, m.fma3(t2, m.sub(new2, old2), turn))
        if relax != 0 and K.report != 0:
            m.add_vec_of_contact(K, SUMS + 3, k, valid, whole_turn(K, k, n))

    return dict(
        law_prepare=law_prepare, law_start=law_start, law_change=law_change, law_give=law_give, law_solve=law_solve
    )


def law_functions(m: types.SimpleNamespace, Listed, laws: bool):
    """The struct ``Laws`` of what laws read, and functions over the contacts of a chunk that take their numbers and keep their angular
    impulses.

    Args:
        m: the namespace.
        Listed: the struct of a list of contacts.
        laws: whether there are laws; without them the functions do nothing.
    """
    real = m.real
    vec3, tangent_of = wp.types.vector(3, real), tangent_function(real)

    @wp.struct
    class Laws:
        """Laws of pairs of classes of shapes, and what is known of shapes and bodies.

        extra, law: numbers of contacts, and the first number of the law of each; laws: ``[classes, classes, LAW_COLUMNS]``; class_of,
        torsional, rolling: of shapes; weight: mean inverse masses of bodies; kept, now: torques on shape 1 of the step before and of
        this one.
        """

        extra: wp.array[real]
        law: wp.array[int]
        laws: wp.array[real]
        classes: int
        class_of: wp.array[int]
        torsional: wp.array[real]
        rolling: wp.array[real]
        weight: wp.array[real]
        kept: wp.array[vec3]
        now: wp.array[vec3]

    @wp.func
    def no_take(
        N: wp.ref[Listed], R: wp.ref[Laws], K: wp.ref[m.Touching], c: int, begin: int, end: int, h: real, numbers: wp.array[real]
    ):  # fmt: skip
        """There is no law."""

    @wp.func
    def no_keep(N: wp.ref[Listed], R: wp.ref[Laws], K: wp.ref[m.Touching], c: int, begin: int, end: int, h: real):
        """There is no law."""

    if not laws:
        return Laws, no_take, no_keep

    @wp.func
    def direction(numbers: wp.array[real], j: int, room: int) -> vec3:
        at = j + NORMAL_AT * room
        return vec3(numbers[at], numbers[at + room], numbers[at + 2 * room])

    @wp.func
    def take_laws(
        N: wp.ref[Listed], R: wp.ref[Laws], K: wp.ref[m.Touching], c: int, begin: int, end: int, h: real, numbers: wp.array[real]
    ):  # fmt: skip
        """Stores the numbers of the laws of the contacts of chunk c at places `begin` to `end`. Needs `take_contacts`."""
        for k in range(begin, end):
            i = N.ordered[k]
            s0 = N.shape0[i]
            s1 = N.shape1[i]
            law = LAW_COLUMNS * (R.class_of[s0] * R.classes + R.class_of[s1])
            R.law[k] = law
            j = K.extra_at + k - N.start[c]
            at = K.at + k - N.start[c]
            half = real(0.5)
            torsional = half * (R.torsional[s0] + R.torsional[s1])
            rolling = half * (R.rolling[s0] + R.rolling[s1])
            if R.laws[law + LAW_BY_RULE] > half:
                x = N.mu[s0]
                y = N.mu[s1]
                mu = R.laws[law + LAW] * x + R.laws[law + LAW + 1] * y + R.laws[law + LAW + 2] * wp.max(x, y)
                numbers[at + MU_AT * K.room] = mu + R.laws[law + LAW_MU]
                torsional = R.laws[law + LAW_MU + 1]
                rolling = R.laws[law + LAW_MU + 2]
            weight = real(0.0)
            if N.shape_body[s0] >= 0:
                weight += R.weight[N.shape_body[s0]]
            if N.shape_body[s1] >= 0:
                weight += R.weight[N.shape_body[s1]]
            K.extra[j + TORSIONAL * K.room] = torsional
            K.extra[j + ROLLING * K.room] = rolling
            K.extra[j + SOFT * K.room] = R.laws[law + LAW_SOFT]
            K.extra[j + WEIGHT * K.room] = weight
            turn = vec3(real(0.0), real(0.0), real(0.0))
            old = N.colour[k]
            if old >= 0:
                turn = R.kept[old] / real(N.kept_takers[old]) * h
            n = direction(numbers, at, K.room)
            t1 = tangent_of(n)
            K.extra[j + TURNS_AT * K.room] = wp.dot(turn, n)
            K.extra[j + (TURNS_AT + 1) * K.room] = wp.dot(turn, t1)
            K.extra[j + (TURNS_AT + 2) * K.room] = wp.dot(turn, wp.cross(n, t1))

    @wp.func
    def keep_laws(N: wp.ref[Listed], R: wp.ref[Laws], K: wp.ref[m.Touching], c: int, begin: int, end: int, h: real):
        """Stores the torques of the contacts of chunk c at places `begin` to `end`, for the next step."""
        for k in range(begin, end):
            j = K.extra_at + k - N.start[c]
            n = direction(K.numbers, K.at + k - N.start[c], K.room)
            t1 = tangent_of(n)
            turn = n * K.extra[j + TURNS_AT * K.room] + t1 * K.extra[j + (TURNS_AT + 1) * K.room]
            turn = turn + wp.cross(n, t1) * K.extra[j + (TURNS_AT + 2) * K.room]
            R.now[k] = turn / h

    return Laws, take_laws, keep_laws
