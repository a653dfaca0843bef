"""Articulated inertias, what is left of an impulse, and segments of the laws of degrees of freedom.

An articulated inertia maps a change of the velocity of a body at a point, with its subtree hanging on it, to the impulse that makes it
(Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7). All are in world axes.
"""

import types

import warp as wp
from newton_like.kernels.registration import inlined

from newton_like.kernels.solvers.xpbd.joints import (  # isort: skip
    DRIVE, DRIVE_SLOPE, LEAST_SPEED, MOST, MOST_SPEED, PASSIVE, PASSIVE_SLOPE, STICK,
)  # fmt: skip


def articulated_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the structs ``Whole`` and ``Turning``, functions over them, and ``segment``."""
    real, lane, Vec3, Sym3 = m.real, m.lane, m.Vec3, m.Sym3

    @wp.struct
    class Segment:
        """The law of a free row near its velocity: the velocity `at` where `held` is positive, else the impulse `at` - `slope` u; `limited`
        is positive where a limit holds it."""

        held: lane
        limited: lane
        at: lane
        slope: lane

    @wp.struct
    class Whole:
        """An inertia at a point, and the impulse b and the angular impulse t that are lacking. A change v of the velocity and w of the
        angular velocity takes the impulse l v + (x.w, y.w, z.w) and the angular impulse v_x x + v_y y + v_z z + h w."""

        l: Sym3
        x: Vec3
        y: Vec3
        z: Vec3
        h: Sym3
        b: Vec3
        t: Vec3

    @wp.struct
    class Turning:
        """A change of velocity and of angular velocity."""

        v: Vec3
        w: Vec3

    @inlined
    def sym_x(s: Sym3) -> Vec3:
        return m.vec(s.xx, s.xy, s.xz)

    @inlined
    def sym_y(s: Sym3) -> Vec3:
        return m.vec(s.xy, s.yy, s.yz)

    @inlined
    def sym_z(s: Sym3) -> Vec3:
        return m.vec(s.xz, s.yz, s.zz)

    @inlined
    def add_own(a: wp.ref[Whole], motion: wp.ref[m.Motion], own: Sym3):
        """Adds the inertia of bodies at their centres of mass; lanes without a body have one, too."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        mass = m.where_lt(zero, motion.mass, m.div(one, motion.mass), one)
        a.l.xx = m.add(a.l.xx, mass)
        a.l.yy = m.add(a.l.yy, mass)
        a.l.zz = m.add(a.l.zz, mass)
        a.h = m.sym_add(a.h, own)

    @inlined
    def clear(a: wp.ref[Whole]):
        zero = m.fill(real(0.0))
        a.l = m.sym(zero, zero, zero, zero, zero, zero)
        a.x = m.zero3()
        a.y = m.zero3()
        a.z = m.zero3()
        a.h = m.sym(zero, zero, zero, zero, zero, zero)
        a.b = m.zero3()
        a.t = m.zero3()

    @m.func
    def shift(a: wp.ref[Whole], r: Vec3):
        """Moves an inertia to a point that lies at r."""
        ox = m.vec(a.x.x, a.y.x, a.z.x)
        oy = m.vec(a.x.y, a.y.y, a.z.y)
        oz = m.vec(a.x.z, a.y.z, a.z.z)
        a.x = m.cross_plus(sym_x(a.l), r, a.x)
        a.y = m.cross_plus(sym_y(a.l), r, a.y)
        a.z = m.cross_plus(sym_z(a.l), r, a.z)
        sx = m.cross(ox, r)
        sy = m.cross(oy, r)
        sz = m.cross(oz, r)
        tx = m.cross(m.vec(a.x.x, a.y.x, a.z.x), r)
        ty = m.cross(m.vec(a.x.y, a.y.y, a.z.y), r)
        tz = m.cross(m.vec(a.x.z, a.y.z, a.z.z), r)
        a.h = m.sym(
            m.add(a.h.xx, m.add(sx.x, tx.x)),
            m.add(a.h.yy, m.add(sy.y, ty.y)),
            m.add(a.h.zz, m.add(sz.z, tz.z)),
            m.add(a.h.xy, m.add(sx.y, ty.x)),
            m.add(a.h.xz, m.add(sx.z, tz.x)),
            m.add(a.h.yz, m.add(sy.z, tz.y)),
        )

    @inlined
    def less(s: Sym3, p: Vec3, q: Vec3) -> Sym3:
        """s - p q^T, for p along q."""
        return m.sym(
            m.fnma(p.x, q.x, s.xx),
            m.fnma(p.y, q.y, s.yy),
            m.fnma(p.z, q.z, s.zz),
            m.fnma(p.x, q.y, s.xy),
            m.fnma(p.x, q.z, s.xz),
            m.fnma(p.y, q.z, s.yz),
        )

    @inlined
    def released(a: wp.ref[Whole], p: Vec3, turn: Vec3, inverse: lane):
        """Takes away what a row does not resist, whose response is the impulse (p, turn)."""
        q = m.scale3(p, inverse)
        w = m.scale3(turn, inverse)
        a.l = less(a.l, q, p)
        a.x = m.fnma3(turn, q.x, a.x)
        a.y = m.fnma3(turn, q.y, a.y)
        a.z = m.fnma3(turn, q.z, a.z)
        a.h = less(a.h, w, turn)

    @inlined
    def lack_of(a: wp.ref[Whole], v: Vec3, w: Vec3) -> Vec3:
        """The impulse that is lacking after these changes of velocity."""
        p = m.sym_apply(a.l, v)
        return m.sub3(a.b, m.vec(m.add(p.x, m.dot(a.x, w)), m.add(p.y, m.dot(a.y, w)), m.add(p.z, m.dot(a.z, w))))

    @inlined
    def turn_lack_of(a: wp.ref[Whole], v: Vec3, w: Vec3) -> Vec3:
        """The angular impulse that is lacking after these changes."""
        p = m.fma3(a.x, v.x, m.fma3(a.y, v.y, m.scale3(a.z, v.z)))
        return m.sub3(a.t, m.add3(p, m.sym_apply(a.h, w)))

    @m.func
    def sym_inverse(a: Sym3) -> Sym3:
        """The inverse of a positive definite matrix. It is scaled first: products of three moments of inertia of small bodies are below the
        numbers of single precision."""
        scale = m.rcp(m.add(a.xx, m.add(a.yy, a.zz)))
        s = m.sym(
            m.mul(a.xx, scale), m.mul(a.yy, scale), m.mul(a.zz, scale), m.mul(a.xy, scale), m.mul(a.xz, scale),
            m.mul(a.yz, scale),
        )  # fmt: skip
        xx = m.fnma(s.yz, s.yz, m.mul(s.yy, s.zz))
        xy = m.fnma(s.xy, s.zz, m.mul(s.xz, s.yz))
        xz = m.fnma(s.xz, s.yy, m.mul(s.xy, s.yz))
        yy = m.fnma(s.xz, s.xz, m.mul(s.xx, s.zz))
        yz = m.fnma(s.xx, s.yz, m.mul(s.xy, s.xz))
        zz = m.fnma(s.xy, s.xy, m.mul(s.xx, s.yy))
        whole = m.fma(s.xx, xx, m.fma(s.xy, xy, m.mul(s.xz, xz)))
        inverse = m.mul(m.rcp(whole), scale)
        return m.sym(
            m.mul(xx, inverse), m.mul(yy, inverse), m.mul(zz, inverse), m.mul(xy, inverse), m.mul(xz, inverse),
            m.mul(yz, inverse),
        )  # fmt: skip

    @inlined
    def size_of(x: lane) -> lane:
        return m.larger(x, m.neg(x))

    @m.func
    def segment(J: m.memory, at: int, inertia: lane, away: lane) -> Segment:
        """The segment of the law at `at` where a free row with this inertia has the momentum `away` without an impulse of the row."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        drive = m.get(J, at + DRIVE, 0)
        slope = m.get(J, at + DRIVE_SLOPE, 0)
        most = m.get(J, at + MOST, 0)
        passive = m.get(J, at + PASSIVE, 0)
        passive_slope = m.get(J, at + PASSIVE_SLOPE, 0)
        loss = m.get(J, at + STICK, 0)
        soft = m.rcp(m.add(inertia, m.add(slope, passive_slope)))
        loose = m.rcp(m.add(inertia, passive_slope))
        away = m.add(away, passive)
        # without friction
        u = m.mul(m.add(away, drive), soft)
        given = m.fnma(slope, u, drive)
        clipped = m.larger(m.neg(most), m.smaller(given, most))
        u = m.where_lt(most, size_of(given), m.mul(m.add(away, clipped), loose), u)
        # with friction
        against = m.where_lt(u, zero, loss, m.neg(loss))
        slowed = m.mul(m.add(away, m.add(drive, against)), soft)
        given = m.fnma(slope, slowed, drive)
        clipped = m.larger(m.neg(most), m.smaller(given, most))
        beyond = m.sub(size_of(given), most)
        slowed = m.where_lt(zero, beyond, m.mul(m.add(away, m.add(clipped, against)), loose), slowed)
        forwards = m.where_lt(u, zero, m.neg(slowed), slowed)
        rests = m.where_lt(zero, forwards, zero, m.where_lt(zero, loss, one, zero))
        u = m.where_lt(zero, rests, zero, slowed)
        within = m.larger(m.get(J, at + LEAST_SPEED, 0), m.smaller(u, m.get(J, at + MOST_SPEED, 0)))
        out = Segment()
        out.limited = m.where_lt(within, u, one, m.where_lt(u, within, one, zero))
        out.held = m.larger(out.limited, rests)
        driven = m.where_lt(zero, beyond, clipped, drive)
        out.at = m.where_lt(zero, out.held, within, m.add(driven, m.add(passive, against)))
        out.slope = m.add(m.where_lt(zero, beyond, zero, slope), passive_slope)
        return out

    kept = (
        "Whole", "Turning", "add_own", "clear", "shift", "released", "lack_of", "turn_lack_of", "sym_inverse", "segment",
    )  # fmt: skip
    return {name: value for name, value in locals().items() if name in kept}
