"""Momentum, centre of mass, energy and inertias of whole mechanisms, subtrees and links.

Sums over bodies are taken about the mechanism's centre of mass c, where momentum and inertia are smallest, so that shifting them to
another point loses no digits (Orin, Goswami and Lee 2013, "Centroidal dynamics of a humanoid robot"):

    column of the centroidal momentum matrix   I_c S_i            I_c: composite inertia of the bodies that dof i moves
    its bias                                   sum of (f, n)      wrenches of the bodies' bias accelerations, without gravity
    average velocity                           I^-1 h             I: the inertia with all joints locked
"""

import types

import numpy as np
import warp as wp
from newton_like.kernels.tree import ARMATURE, BODY_FIXED

# T.quantity for eval_momentum and eval_momentum_matrix; about c if CENTROIDAL is added, else about the point of the base's representation
MOMENTUM, AVERAGE, CENTROIDAL = 0, 2, 1
CENTRE = 4
# and eval_inertia
LINK, SUBTREE, WHOLE, WHOLE_CENTROIDAL = range(4)
# and eval_energy
KINETIC, POTENTIAL, MECHANICAL = range(3)
# and eval_links
LINK_MASS, LINK_CENTRE, LINK_POTENTIAL = range(3)

TINY = 1.0e-18
"""Masses [kg] and inertias [kg m^2] below this value count as zero. The square of its inverse is in the range of float32."""


def momentum_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_momentum``, ``eval_momentum_matrix``, ``eval_momentum_bias``, ``eval_inertia``, ``eval_energy``,
    ``eval_total_mass`` and ``eval_links``."""
    real = m.real
    # moments of inertia below this fraction of the trace count as zero: their rounding errors are a few units of 1e-7 or 1e-16
    negligible = 1.0e-13 if real in (wp.float64, np.float64) else 1.0e-6

    @m.func
    def own_inertia(b, t, k: int, p: m.Vec3, P, L, mem) -> m.Inertia:
        """The inertia of body k about the point p."""
        at_com = m.sym_rotate(m.body_inertia(P, b, k), m.get9(mem, L.rot + 9 * k, t))
        return m.inertia_of(m.body_mass(P, b, k), m.sub3(m.get3(mem, L.com + 3 * k, t), p), at_com)

    @m.func
    def inverse_mass(mass: m.lane) -> m.lane:
        return m.rcp(m.larger(mass, m.fill(real(TINY))))

    @m.func
    def centre_of_mass(b, t, T, P, L, mem) -> m.Vec3:
        """The centre of mass of all bodies; the reference point if there is no mass."""
        mass = m.fill(real(0.0))
        h = m.zero3()
        for k in range(T.bodies):
            one = m.body_mass(P, b, k)
            mass = m.add(mass, one)
            h = m.fma3(m.get3(mem, L.com + 3 * k, t), one, h)
        return m.scale3(h, inverse_mass(mass))

    @m.func
    def whole_inertia(b, t, p: m.Vec3, T, P, L, mem) -> m.Inertia:
        """The inertia of all bodies about the point p."""
        total = own_inertia(b, t, 0, p, P, L, mem)
        for k in range(1, T.bodies):
            total = m.inertia_add(total, own_inertia(b, t, k, p, P, L, mem))
        return total

    @m.func
    def seen_from(s: m.Spatial, p: m.Vec3) -> m.Spatial:
        """Shifts a twist from the reference point to the point p."""
        return m.spatial(m.velocity_at(s, p), s.w)

    @m.func
    def whole_momentum(b, t, p: m.Vec3, T, P, L, mem) -> m.Spatial:
        """The momentum of all bodies about the point p."""
        h = m.spatial(m.zero3(), m.zero3())
        for k in range(T.bodies):
            v = m.get6(mem, L.twist + 6 * k, t)
            c = m.get3(mem, L.com + 3 * k, t)
            f = m.scale3(m.velocity_at(v, c), m.body_mass(P, b, k))
            n = m.turned_apply(m.body_inertia(P, b, k), m.get9(mem, L.rot + 9 * k, t), v.w)
            h = m.spatial(m.add3(h.v, f), m.add3(h.w, m.cross_plus(m.sub3(c, p), f, n)))
        return h

    @m.func
    def sym_inverse(s: m.Sym3) -> m.Sym3:
        """The inverse of an inertia by its LDL^T decomposition. If the inertia about an axis is zero (all mass lies on the axis), the
        result is the pseudo-inverse, which is zero about that axis. The inverse of a zero inertia is zero."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        trace = m.add(s.xx, m.add(s.yy, s.zz))
        limit = m.fma(m.fill(real(negligible)), trace, m.fill(real(TINY)))
        r0 = m.where_lt(limit, s.xx, m.rcp(m.larger(s.xx, limit)), zero)
        a = m.mul(s.xy, r0)
        c = m.mul(s.xz, r0)
        d1 = m.fnma(a, s.xy, s.yy)
        r1 = m.where_lt(limit, d1, m.rcp(m.larger(d1, limit)), zero)
        e = m.mul(m.fnma(c, s.xy, s.yz), r1)
        d2 = m.fnma(e, m.mul(e, d1), m.fnma(c, s.xz, s.zz))
        r2 = m.where_lt(limit, d2, m.rcp(m.larger(d2, limit)), zero)
        g = m.sub(m.mul(a, e), c)
        xy = m.fnma(a, r1, m.neg(m.mul(m.mul(g, e), r2)))
        inverse = m.sym(
            m.fma(m.mul(g, g), r2, m.fma(m.mul(a, a), r1, r0)), m.fma(m.mul(e, e), r2, r1), r2,
            xy, m.mul(g, r2), m.neg(m.mul(e, r2)),
        )  # fmt: skip
        # n: the axis with zero inertia, from the transposed inverse of L; the result is projected onto its complement
        w0 = m.where_lt(limit, s.xx, zero, one)
        w1 = m.where_lt(limit, d1, zero, one)
        w2 = m.where_lt(limit, d2, zero, one)
        n = m.vec(m.fma(w2, g, m.fnma(w1, a, w0)), m.fnma(w2, e, w1), w2)
        square = m.larger(m.dot(n, n), one)
        u = m.scale3(m.sym_apply(inverse, n), m.rcp(square))
        half = m.mul(m.fill(real(0.5)), m.mul(m.dot(n, u), m.rcp(square)))
        z = m.fnma3(n, half, u)
        return m.sym(
            m.fnma(m.mul(m.fill(real(2.0)), z.x), n.x, inverse.xx),
            m.fnma(m.mul(m.fill(real(2.0)), z.y), n.y, inverse.yy),
            m.fnma(m.mul(m.fill(real(2.0)), z.z), n.z, inverse.zz),
            m.fnma(z.x, n.y, m.fnma(z.y, n.x, inverse.xy)),
            m.fnma(z.x, n.z, m.fnma(z.z, n.x, inverse.xz)),
            m.fnma(z.y, n.z, m.fnma(z.z, n.y, inverse.yz)),
        )

    @m.func
    def asked_place(t, centroidal: int, c: m.Vec3, T, L, mem) -> m.Vec3:
        """The point of the results, relative to c: the point of the representation of body 0, or c itself."""
        p = m.zero3()
        if centroidal == 0:
            p = m.sub3(m.place_of(t, 0, T.output_repr, L, mem), c)
        return p

    @m.func
    def along(kind: int, a: m.Vec3, r: m.Mat33) -> m.Vec3:
        """A world vector along the axes of a representation; r rotates from the axes of the first link to the world's."""
        return m.turned_back(kind, m.spatial(a, m.zero3()), r).v

    @m.func
    def eval_momentum(b, t, T, P, L, mem):
        """vector <- momentum or average velocity, second <- position of the centre of mass, third <- its velocity"""
        m.prepare(b, t, T, P, L, mem)
        c = centre_of_mass(b, t, T, P, L, mem)
        inertia = whole_inertia(b, t, c, T, P, L, mem)
        h = whole_momentum(b, t, c, T, P, L, mem)
        p = asked_place(t, T.quantity % 2, c, T, L, mem)
        r = m.get9(mem, L.rot, t)
        v = m.scale3(h.v, inverse_mass(inertia.m))
        if T.quantity < AVERAGE:
            m.put6(mem, L.vector, t, m.wrench_as(T.output_repr, h, p, r))
        else:
            w = m.sym_apply(sym_inverse(inertia.i), h.w)
            m.put6(mem, L.vector, t, m.twist_as(T.output_repr, m.spatial(v, w), p, r))
        m.put3(mem, L.second, t, m.add3(c, m.get3(mem, L.origin, t)))
        m.put3(mem, L.third, t, along(T.output_repr, v, r))

    @m.func
    def eval_momentum_matrix(b, t, T, P, L, mem):
        """matrix <- the matrix from velocities to the momentum, the average velocity or the velocity of the centre of mass"""
        m.clear(t, L.v, T.dofs, mem)
        m.prepare(b, t, T, P, L, mem)
        c = centre_of_mass(b, t, T, P, L, mem)
        p = asked_place(t, T.quantity % 2, c, T, L, mem)
        r = m.get9(mem, L.rot, t)
        inertia = whole_inertia(b, t, c, T, P, L, mem)
        inverse = sym_inverse(inertia.i)
        over_mass = inverse_mass(inertia.m)
        rows = int(6)
        if T.quantity == CENTRE:
            rows = 3
        m.clear(t, L.matrix, rows * T.columns, mem)
        for k in range(T.bodies - 1, -1, -1):
            total = own_inertia(b, t, k, c, P, L, mem)
            for i in range(T.child_at[k], T.child_at[k + 1]):
                total = m.inertia_add(total, m.get10(mem, L.composite + 10 * T.child[i], t))
            m.put10(mem, L.composite + 10 * k, t, total)
            for i in range(T.dof_at[k], T.dof_at[k + 1]):
                h = m.momentum(total, seen_from(m.get6(mem, L.subspace + 6 * i, t), c))
                at = L.matrix + i
                if T.quantity < AVERAGE:
                    h = m.wrench_as(T.output_repr, h, p, r)
                else:
                    h = m.spatial(m.scale3(h.v, over_mass), m.sym_apply(inverse, h.w))
                    if T.quantity < CENTRE:
                        h = m.twist_as(T.output_repr, h, p, r)
                    else:
                        h = m.turned_back(T.output_repr, h, r)
                m.put3_apart(mem, at, T.columns, t, h.v)
                if T.quantity < CENTRE:
                    m.put3_apart(mem, at + 3 * T.columns, T.columns, t, h.w)

    @m.func
    def eval_momentum_bias(b, t, T, P, L, mem):
        """vector <- the rate of the centroidal momentum, second <- the acceleration of the centre of mass, both at constant nu"""
        m.prepare(b, t, T, P, L, mem)
        m.put6(mem, L.drift + 6 * T.bodies, t, m.spatial(m.zero3(), m.zero3()))
        f = m.spatial(m.zero3(), m.zero3())
        mass = m.fill(real(0.0))
        for k in range(T.bodies):
            a = m.add6(m.get6(mem, L.drift + 6 * T.parent[k], t), m.joint_drift(t, k, L.v, T, L, mem))
            m.put6(mem, L.drift + 6 * k, t, a)
            f = m.add6(f, m.own_load(b, t, k, P, L, mem))
            mass = m.add(mass, m.body_mass(P, b, k))
        c = centre_of_mass(b, t, T, P, L, mem)
        r = m.get9(mem, L.rot, t)
        rate = m.spatial(f.v, m.cross_plus(f.v, c, f.w))
        if T.output_repr == BODY_FIXED:
            # the axes rotate with the base
            h = whole_momentum(b, t, c, T, P, L, mem)
            v = m.get6(mem, L.twist, t)
            rate = m.spatial(m.cross_plus(h.v, v.w, rate.v), m.cross_plus(h.w, v.w, rate.w))
        m.put6(mem, L.vector, t, m.wrench_as(T.output_repr, rate, m.zero3(), r))
        m.put3(mem, L.second, t, along(T.output_repr, m.scale3(rate.v, inverse_mass(mass)), r))

    @m.func
    def put_row6(t, at: int, a: m.Vec3, b: m.Vec3, mem):
        m.put3(mem, at, t, a)
        m.put3(mem, at + 3, t, b)

    @m.func
    def put_inertia(t, at: int, kind: int, s: m.Inertia, r: m.Mat33, mem):
        """Stores the 6 x 6 matrix of an inertia, which maps twists about its point to momenta, along world axes or the axes r."""
        h = s.h
        i = s.i
        if kind == BODY_FIXED:
            h = m.apply_t(h, r)
            i = m.sym_rotate(i, m.rows(m.column(r, 0), m.column(r, 1), m.column(r, 2)))
        zero = m.fill(real(0.0))
        put_row6(t, at, m.vec(s.m, zero, zero), m.vec(zero, h.z, m.neg(h.y)), mem)
        put_row6(t, at + 6, m.vec(zero, s.m, zero), m.vec(m.neg(h.z), zero, h.x), mem)
        put_row6(t, at + 12, m.vec(zero, zero, s.m), m.vec(h.y, m.neg(h.x), zero), mem)
        put_row6(t, at + 18, m.vec(zero, m.neg(h.z), h.y), m.vec(i.xx, i.xy, i.xz), mem)
        put_row6(t, at + 24, m.vec(h.z, zero, m.neg(h.x)), m.vec(i.xy, i.yy, i.yz), mem)
        put_row6(t, at + 30, m.vec(m.neg(h.y), h.x, zero), m.vec(i.xz, i.yz, i.zz), mem)

    @m.func
    def inertia_from(s: m.Inertia, p: m.Vec3) -> m.Inertia:
        """Shifts an inertia from its point to the point p, relative to it."""
        g = m.fma3(s.h, m.fill(real(-2.0)), m.scale3(p, s.m))
        half = m.fill(real(-0.5))
        h = m.fnma3(p, s.m, s.h)
        i = m.sym(
            m.fma(g.y, p.y, m.fma(g.z, p.z, s.i.xx)),
            m.fma(g.x, p.x, m.fma(g.z, p.z, s.i.yy)),
            m.fma(g.x, p.x, m.fma(g.y, p.y, s.i.zz)),
            m.fma(half, m.fma(g.x, p.y, m.mul(g.y, p.x)), s.i.xy),
            m.fma(half, m.fma(g.x, p.z, m.mul(g.z, p.x)), s.i.xz),
            m.fma(half, m.fma(g.y, p.z, m.mul(g.z, p.y)), s.i.yz),
        )
        return m.Inertia(s.m, h, i)

    @m.func
    def eval_inertia(b, t, T, P, L, mem):
        """matrix <- 6 x 6 inertias of every link, of every subtree, or of the whole mechanism"""
        m.clear(t, L.v, T.dofs, mem)
        m.prepare(b, t, T, P, L, mem)
        if T.quantity < WHOLE:
            m.clear(t, L.matrix, 36 * T.links, mem)
            for k in range(T.bodies - 1, -1, -1):
                p = m.place_of(t, k, T.output_repr, L, mem)
                r = m.get9(mem, L.rot + 9 * k, t)
                if T.quantity == LINK:
                    put_inertia(t, L.matrix + 36 * k, T.output_repr, own_inertia(b, t, k, p, P, L, mem), r, mem)
                else:
                    total = m.composite_inertia(b, t, k, T, P, L, mem)
                    m.put10(mem, L.composite + 10 * k, t, total)
                    put_inertia(t, L.matrix + 36 * k, T.output_repr, inertia_from(total, p), r, mem)
        else:
            c = centre_of_mass(b, t, T, P, L, mem)
            total = whole_inertia(b, t, c, T, P, L, mem)
            # zero about the centre of mass; removes rounding errors
            total.h = m.zero3()
            p = asked_place(t, T.quantity - WHOLE, c, T, L, mem)
            put_inertia(t, L.matrix, T.output_repr, inertia_from(total, p), m.get9(mem, L.rot, t), mem)

    @m.func
    def eval_energy(b, t, T, P, L, mem):
        """vector <- kinetic energy (of bodies and armature), potential energy in gravity, or their sum"""
        m.prepare(b, t, T, P, L, mem)
        kinetic = m.fill(real(0.0))
        potential = m.fill(real(0.0))
        if T.quantity != POTENTIAL:
            for k in range(T.bodies):
                s = m.get6(mem, L.twist + 6 * k, t)
                v = m.velocity_at(s, m.get3(mem, L.com + 3 * k, t))
                kinetic = m.fma(m.body_mass(P, b, k), m.dot(v, v), kinetic)
                w = m.apply_t(s.w, m.get9(mem, L.rot + 9 * k, t))
                kinetic = m.dot_plus(w, m.sym_apply(m.body_inertia(P, b, k), w), kinetic)
            for i in range(T.dofs):
                speed = m.get(mem, L.v + i, t)
                kinetic = m.fma(m.mul(m.gain(P, b, i, ARMATURE), speed), speed, kinetic)
        if T.quantity != KINETIC:
            c = centre_of_mass(b, t, T, P, L, mem)
            mass = m.fill(real(0.0))
            for k in range(T.bodies):
                mass = m.add(mass, m.body_mass(P, b, k))
            height = m.dot(m.gravity(P, b), m.add3(c, m.get3(mem, L.origin, t)))
            potential = m.neg(m.mul(mass, height))
        m.put(mem, L.vector, t, m.fma(m.fill(real(0.5)), kinetic, potential))

    @m.func
    def eval_total_mass(b, t, T, P, L, mem):
        """vector <- the mass of all bodies"""
        mass = m.fill(real(0.0))
        for k in range(T.bodies):
            mass = m.add(mass, m.body_mass(P, b, k))
        m.put(mem, L.vector, t, mass)

    @m.func
    def eval_links(b, t, T, P, L, mem):
        """vector <- masses, positions of the centres of mass, or potential energies in gravity of the links at T.point_body"""
        if T.quantity != LINK_MASS:
            m.clear(t, L.v, T.dofs, mem)
            m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.components * T.points, mem)
        for i in range(T.points):
            k = m.frame_body(i, T)
            if k >= 0 and k < T.bodies:
                at = L.vector + T.components * i
                if T.quantity == LINK_MASS:
                    m.put(mem, at, t, m.body_mass(P, b, k))
                else:
                    c = m.add3(m.get3(mem, L.com + 3 * k, t), m.get3(mem, L.origin, t))
                    if T.quantity == LINK_CENTRE:
                        m.put3(mem, at, t, c)
                    else:
                        m.put(mem, at, t, m.neg(m.mul(m.body_mass(P, b, k), m.dot(m.gravity(P, b), c))))

    return locals()
