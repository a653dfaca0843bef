"""Contacts between bodies in maximal coordinates: a normal row, and friction in its plane.

The rows stand at the pose in the middle of a sub-step and keep their impulses p from one sub-step to the next. While the surfaces are
apart by the gap g, the normal velocity is at least -g / h: they touch after the drift at the earliest. Surfaces that overlap have an
implicit spring with the natural frequency w and damping ratio z of the material; over a step of length h it is

    u + b g = -s k p / m,   b = w / (2 z + h w),   m = h w (2 z + h w) / (1 + h w (2 z + h w)),   s = 1 - m

with the inverse mass k of the row (Catto, Soft Constraints, 2011). It pushes no faster than a largest speed. After the drift, a pass over
the contacts that carry an impulse takes away the velocity that closed a gap or pushed surfaces apart, and gives rebounds their velocity
(Catto, Solver2D, 2024). Friction is bounded by the friction coefficient times the normal impulse of the moment (Coulomb's cone).
"""

import types

import warp as wp
from newton_like.kernels.solvers.xpbd.order import FALLS, FASTER, NEVER, RISES, STOPS

from newton_like.kernels.solvers.xpbd.touching import (  # isort: skip
    APART, APPROACH, ARM_A, ARM_B, AT_MOST, BEGUN, BELOW, BIAS, DEEP_GIVE, GAP, GIVE, HELD, IMPACT, IMPULSES, MARGINS, MASS, MU_AT,
    NORMAL_AT, POINT_A, POINT_B, RADIUS_A, RADIUS_B, REBOUND, SLIP, SUMS,
)  # fmt: skip

DEEP_TIME = 0.01
"""Shapes overlap deeply if the largest speed of a push takes longer than this to part them [s]."""


def contact_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``contact_prepare``, ``contact_start`` and ``contact_solve``, over contacts that share no body that moves."""
    real, lane, Vec3, Touching = m.real, m.lane, m.Vec3, m.Touching
    of_contact, contact_put, vec_of_contact = m.of_contact, m.contact_put, m.vec_of_contact

    @m.func
    def contact_prepare(
        K: wp.ref[Touching], k: int, valid: int, B: wp.array[real], body_at: int, stride: int, h: real, push_speed: real,
        rebound_speed: real,
    ) -> int:  # fmt: skip
        """Computes arms, gaps and responses of the contacts k to k + valid - 1. Returns 1 if one of them begins with an impact, and 2 more
        if one may rebound."""
        A = m.body_ref(body_at, stride, -1, m.listed(K.body_a, K.first + k, valid, K.dummy))
        C = m.body_ref(body_at, stride, -1, m.listed(K.body_b, K.first + k, valid, K.dummy))
        n = vec_of_contact(K, NORMAL_AT, k)
        pose_a = m.body_pose(B, A)
        pose_b = m.body_pose(B, C)
        motion_a = m.body_motion(B, A)
        motion_b = m.body_motion(B, C)
        ra = m.apply(m.quat_to_matrix(pose_a.turn), vec_of_contact(K, POINT_A, k))
        rb = m.apply(m.quat_to_matrix(pose_b.turn), vec_of_contact(K, POINT_B, k))
        apart = m.add3(vec_of_contact(K, APART, k), m.sub3(pose_b.shift, pose_a.shift))
        between = m.add3(apart, m.sub3(rb, ra))
        gap = m.sub(m.dot(n, between), of_contact(K, MARGINS, k))
        # a round shape is touched below its axis, however it turns
        radius = of_contact(K, RADIUS_A, k)
        ra = m.fma3(n, radius, ra)
        between = m.fnma3(n, m.add(radius, of_contact(K, RADIUS_B, k)), between)
        rb = m.fnma3(n, of_contact(K, RADIUS_B, k), rb)
        # impulses act at one point, so that they keep the angular momentum: halfway between the points, but next to a round shape
        half = m.fill(real(0.5))
        zero = m.fill(real(0.0))
        side = m.where_lt(zero, of_contact(K, RADIUS_A, k), m.neg(half), zero)
        side = m.where_lt(zero, of_contact(K, RADIUS_B, k), half, side)
        along = m.scale3(m.fnma3(n, m.dot(n, between), between), side)
        ra = m.add3(m.fma3(between, half, ra), along)
        rb = m.add3(m.fnma3(between, half, rb), along)
        u = m.seen(K, k, 1, motion_b, m.cross_plus(motion_b.spin, rb, motion_b.vel))
        u = m.sub3(u, m.seen(K, k, 0, motion_a, m.cross_plus(motion_a.spin, ra, motion_a.vel)))
        approach = m.dot(n, u)
        if m.any_lt(approach, m.fill(-rebound_speed)):
            contact_put(K, SLIP, k, valid, m.dot(m.tangent(n), u))
            contact_put(K, SLIP + 1, k, valid, m.dot(m.second_tangent(n), u))
        contact_put(K, GAP, k, valid, gap)
        contact_put(K, APPROACH, k, valid, approach)
        # fast, and in touch before the next sub-step
        meets = m.where_lt(m.fma(approach, m.fill(h), gap), zero, m.fill(real(1.0)), zero)
        impact = m.where_lt(approach, of_contact(K, BELOW, k), meets, zero)
        contact_put(K, ARM_A, k, valid, ra.x)
        contact_put(K, ARM_A + 1, k, valid, ra.y)
        contact_put(K, ARM_A + 2, k, valid, ra.z)
        contact_put(K, ARM_B, k, valid, rb.x)
        contact_put(K, ARM_B + 1, k, valid, rb.y)
        contact_put(K, ARM_B + 2, k, valid, rb.z)
        contact_put(K, IMPACT, k, valid, impact)
        m.pivot_prepare(K, k, valid, pose_a, pose_b)
        own = m.pair_responses(K, k, m.body_response(B, A), m.body_response(B, C), ra, rb)
        mass = m.add(m.moved_mass(K, k, 0, motion_a.mass), m.moved_mass(K, k, 1, motion_b.mass))
        whole = m.add(motion_a.mass, motion_b.mass)
        if m.response_prepare(K, k, valid, n, own, mass, whole) != 0:
            K.strong = 1
        m.pivot_limit(K, k, valid, motion_a.mass, motion_b.mass)
        m.law_prepare(K, k, valid, m.turn_response(K, k, 0, own.ia), m.turn_response(K, k, 1, own.ib), h, push_speed)
        begins = int(0)
        if m.any_lt(zero, impact):
            begins = 1
        if m.any_lt(approach, m.fill(-rebound_speed)):
            rebounds = m.where_lt(approach, m.fill(-rebound_speed), of_contact(K, REBOUND, k), zero)
            if m.any_lt(zero, rebounds):
                begins = begins + 2
        return begins

    @m.func
    def contact_start(K: wp.ref[Touching], k: int, valid: int, B: wp.array[real], body_at: int, stride: int):
        """Applies the impulses of the sub-step before. Those of an impact between two bodies, or of a body with joints on the ground, are
        reduced as soon as they go down, see `FASTER`, and those of a body with joints rise slowly, see `RISES`."""
        A = m.body_ref(body_at, stride, -1, m.listed(K.body_a, K.first + k, valid, K.dummy))
        C = m.body_ref(body_at, stride, -1, m.listed(K.body_b, K.first + k, valid, K.dummy))
        motion_a = m.body_motion(B, A)
        motion_b = m.body_motion(B, C)
        n = vec_of_contact(K, NORMAL_AT, k)
        normal = of_contact(K, IMPULSES, k)
        begun = of_contact(K, BEGUN, k)
        least = m.mul(begun, m.fill(real(FALLS)))
        most = m.mul(begun, m.fill(real(RISES)))
        if m.any_lt(normal, least) or m.any_lt(most, normal):
            zero = m.fill(real(0.0))
            one = m.fill(real(1.0))
            tiny = m.fill(real(1.0e-20))
            held = of_contact(K, HELD, k)
            mass_a = m.moved_mass(K, k, 0, motion_a.mass)
            mass_b = m.moved_mass(K, k, 1, motion_b.mass)
            response = m.smaller(mass_a, mass_b)
            response = m.where_lt(zero, response, response, m.mul(held, m.larger(mass_a, mass_b)))
            # if an impact ends, its impulses as they are would push the bodies apart
            fall = m.fma(m.sub(begun, normal), response, m.fill(real(-STOPS)))
            share = m.div(m.mul(fall, m.fill(real(FASTER))), m.larger(m.mul(begun, response), tiny))
            share = m.where_lt(normal, least, m.smaller(m.larger(share, zero), one), zero)
            share = m.sub(one, share)
            # if one begins, joints have yet to tell the other bodies of it
            most = m.add(most, m.div(m.fill(real(STOPS)), m.larger(response, tiny)))
            rises = m.where_lt(most, normal, m.div(most, m.larger(normal, tiny)), one)
            share = m.where_lt(zero, held, m.smaller(share, rises), share)
            normal = m.mul(normal, share)
            contact_put(K, IMPULSES, k, valid, normal)
            contact_put(K, IMPULSES + 1, k, valid, m.mul(share, of_contact(K, IMPULSES + 1, k)))
            contact_put(K, IMPULSES + 2, k, valid, m.mul(share, of_contact(K, IMPULSES + 2, k)))
        contact_put(K, BEGUN, k, valid, normal)
        p = m.scale3(n, normal)
        p = m.fma3(m.tangent(n), of_contact(K, IMPULSES + 1, k), p)
        p = m.fma3(m.second_tangent(n), of_contact(K, IMPULSES + 2, k), p)
        ra = vec_of_contact(K, ARM_A, k)
        rb = vec_of_contact(K, ARM_B, k)
        m.push_pair(K, k, B, A, C, motion_a, motion_b, ra, rb, p)
        m.law_start(K, k, B, A, C, n)

    @m.func
    def contact_solve(
        K: wp.ref[Touching], k: int, valid: int, B: wp.array[real], body_at: int, stride: int, h: real, relax: int,
        again: int, push_speed: real, rebound_speed: real,
    ) -> int:  # fmt: skip
        """Updates the impulses of the contacts k to k + valid - 1. `relax`: the pass after the drift; `again`: a further pass over those
        that begin with an impact, in which others, and their bodies, keep their bits. Returns 1 if contacts need further passes, else 0."""
        zero = m.fill(real(0.0))
        further = int(0)
        solved = m.fill(real(1.0))
        if again != 0:
            solved = m.sub(of_contact(K, IMPACT, k), m.fill(real(again - 1)))
            if not m.any_lt(zero, solved):
                return 0
        A = m.body_ref(body_at, stride, -1, m.listed_where(K.body_a, K.first + k, valid, K.dummy, solved))
        C = m.body_ref(body_at, stride, -1, m.listed_where(K.body_b, K.first + k, valid, K.dummy, solved))
        motion_a = m.body_motion(B, A)
        motion_b = m.body_motion(B, C)
        n = vec_of_contact(K, NORMAL_AT, k)
        ra = vec_of_contact(K, ARM_A, k)
        rb = vec_of_contact(K, ARM_B, k)
        if relax != 0:
            # bodies have moved; one point again: that of the first body, or that next to a round shape
            pose_a = m.body_pose(B, A)
            pose_b = m.body_pose(B, C)
            apart = m.add3(vec_of_contact(K, APART, k), m.sub3(pose_b.shift, pose_a.shift))
            rb = m.sub3(ra, apart)
            wheel = m.where_lt(zero, of_contact(K, RADIUS_B, k), m.fill(real(1.0)), zero)
            along = m.scale3(m.sub3(vec_of_contact(K, ARM_B, k), rb), wheel)
            ra = m.add3(ra, along)
            rb = m.add3(rb, along)
        u = m.seen(K, k, 1, motion_b, m.cross_plus(motion_b.spin, rb, motion_b.vel))
        u = m.sub3(u, m.seen(K, k, 0, motion_a, m.cross_plus(motion_a.spin, ra, motion_a.vel)))
        speed = m.dot(n, u)
        old = of_contact(K, IMPULSES, k)
        mass = of_contact(K, MASS, k)
        t1 = m.tangent(n)
        t2 = m.second_tangent(n)
        old1 = of_contact(K, IMPULSES + 1, k)
        old2 = of_contact(K, IMPULSES + 2, k)
        v1 = m.dot(t1, u)
        v2 = m.dot(t2, u)
        change = zero
        one = m.fill(real(1.0))
        give = one
        if relax != 0:
            approach = of_contact(K, APPROACH, k)
            goal = zero
            if m.any_lt(approach, m.fill(-rebound_speed)):
                # friction at the end of a long arm may do work in a rebound (Kane 1984): the contact gives no more than it takes
                work = m.mul(old1, m.add(v1, of_contact(K, SLIP, k)))
                work = m.fma(old2, m.add(v2, of_contact(K, SLIP + 1, k)), work)
                most = m.neg(m.add(approach, m.div(work, m.larger(old, m.fill(real(1.0e-20))))))
                goal = m.mul(m.neg(of_contact(K, REBOUND, k)), approach)
                goal = m.larger(zero, m.smaller(goal, most))
                goal = m.where_lt(approach, m.fill(-rebound_speed), goal, zero)
                goal = m.where_lt(of_contact(K, AT_MOST, k), m.fill(real(NEVER)), zero, goal)
            change = m.where_lt(zero, old, m.mul(m.sub(goal, speed), mass), zero)
            give = m.where_lt(zero, old, one, zero)
        else:
            gap = of_contact(K, GAP, k)
            push = m.larger(m.mul(of_contact(K, BIAS, k), gap), m.pushed(K, k, m.fill(-push_speed)))
            give = of_contact(K, GIVE, k)
            deep = m.fill(-push_speed * real(DEEP_TIME))
            if m.any_lt(gap, deep):
                give = m.where_lt(gap, deep, of_contact(K, DEEP_GIVE, k), give)
            soft = m.mul(give, m.mul(m.add(speed, push), mass))
            soft = m.neg(m.fma(m.sub(one, give), old, soft))
            rigid = m.mul(m.neg(m.fma(gap, m.fill(real(1.0) / h), speed)), mass)
            change = m.where_lt(zero, gap, rigid, soft)
            give = m.where_lt(zero, gap, one, give)
            if again == 0 and K.strong != 0:
                fast = m.sub(m.larger(speed, m.neg(speed)), of_contact(K, AT_MOST, k))
                if m.any_lt(zero, fast):
                    further = 1
                    impact = of_contact(K, IMPACT, k)
                    contact_put(K, IMPACT, k, valid, m.where_lt(zero, fast, m.fill(real(2.0)), impact))
        change = m.law_change(K, k, speed, old, mass, change, relax)
        give = m.law_give(K, k, mass, give, relax)
        mu = of_contact(K, MU_AT, k)
        normal, new1, new2 = m.contact_impulses(K, k, v1, v2, old, old1, old2, change, give, mu)
        normal = m.where_lt(zero, solved, normal, old)
        contact_put(K, IMPULSES, k, valid, normal)
        new1 = m.where_lt(zero, solved, new1, old1)
        new2 = m.where_lt(zero, solved, new2, old2)
        contact_put(K, IMPULSES + 1, k, valid, new1)
        contact_put(K, IMPULSES + 2, k, valid, new2)
        p = m.scale3(n, m.sub(normal, old))
        p = m.fma3(t1, m.sub(new1, old1), m.fma3(t2, m.sub(new2, old2), p))
        if relax != 0 and K.report != 0:
            # the impulses after the first pass of this kind, and what further ones add
            whole = p
            if again == 0:
                whole = m.fma3(t1, new1, m.fma3(t2, new2, m.scale3(n, normal)))
            m.add_vec_of_contact(K, SUMS, k, valid, whole)
            m.add_vec_of_contact(K, SUMS + 3, k, valid, m.cross(ra, whole))
        m.push_pair(K, k, B, A, C, motion_a, motion_b, ra, rb, p)
        if again == 0:
            m.law_solve(K, k, valid, B, A, C, n, normal, relax)
        return further

    kept = ("contact_prepare", "contact_start", "contact_solve")
    return {name: value for name, value in locals().items() if name in kept}
