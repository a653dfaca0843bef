"""Spatial algebra over lanes: vectors, quaternions, rotations, twists, wrenches and rigid-body inertias.

Linear parts come first. All quantities of one articulation are expressed in world axes about one common reference point
(its origin), so that transforms between bodies are plain additions (Featherstone 2008, section 2.9) and no digits are lost
far from the world's origin.
"""

import types


def spatial_algebra(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: vectors, rotations, twists, wrenches and inertias of numbers of type ``m.lane``."""
    lane, add, sub, mul, fma, fnma, neg, rcp, fill = m.lane, m.add, m.sub, m.mul, m.fma, m.fnma, m.neg, m.rcp, m.fill
    real, memory = m.real, m.memory

    @m.struct
    class Vec3:
        x: lane
        y: lane
        z: lane

    @m.struct
    class Quat:
        x: lane
        y: lane
        z: lane
        w: lane

    @m.struct
    class Mat33:
        """Three rows."""

        x: Vec3
        y: Vec3
        z: Vec3

    @m.struct
    class Sym3:
        xx: lane
        yy: lane
        zz: lane
        xy: lane
        xz: lane
        yz: lane

    @m.struct
    class Spatial:
        """A twist (v of the body point at the reference point, w) or a wrench (f, torque about the reference point)."""

        v: Vec3
        w: Vec3

    @m.struct
    class Inertia:
        """A rigid body's (or a group's) mass, first moment and second moment about the reference point."""

        m: lane
        h: Vec3
        i: Sym3

    # constructors
    vec, quat, rows, sym, spatial = Vec3, Quat, Mat33, Sym3, Spatial

    @m.func
    def zero3() -> Vec3:
        return vec(fill(real(0.0)), fill(real(0.0)), fill(real(0.0)))

    @m.func
    def column(r: Mat33, i: int) -> Vec3:
        c = vec(r.x.x, r.y.x, r.z.x)
        if i == 1:
            c = vec(r.x.y, r.y.y, r.z.y)
        if i == 2:
            c = vec(r.x.z, r.y.z, r.z.z)
        return c

    @m.func
    def dot(a: Vec3, b: Vec3) -> lane:
        return fma(a.x, b.x, fma(a.y, b.y, mul(a.z, b.z)))

    @m.func
    def where3_lt(a: lane, b: lane, x: Vec3, y: Vec3) -> Vec3:
        """x where a < b, else y"""
        return vec(m.where_lt(a, b, x.x, y.x), m.where_lt(a, b, x.y, y.y), m.where_lt(a, b, x.z, y.z))

    @m.func
    def add3(a: Vec3, b: Vec3) -> Vec3:
        return vec(add(a.x, b.x), add(a.y, b.y), add(a.z, b.z))

    @m.func
    def sub3(a: Vec3, b: Vec3) -> Vec3:
        return vec(sub(a.x, b.x), sub(a.y, b.y), sub(a.z, b.z))

    @m.func
    def neg3(a: Vec3) -> Vec3:
        return vec(neg(a.x), neg(a.y), neg(a.z))

    @m.func
    def scale3(a: Vec3, s: lane) -> Vec3:
        return vec(mul(a.x, s), mul(a.y, s), mul(a.z, s))

    @m.func
    def fma3(a: Vec3, s: lane, c: Vec3) -> Vec3:
        return vec(fma(a.x, s, c.x), fma(a.y, s, c.y), fma(a.z, s, c.z))

    @m.func
    def fnma3(a: Vec3, s: lane, c: Vec3) -> Vec3:
        return vec(fnma(a.x, s, c.x), fnma(a.y, s, c.y), fnma(a.z, s, c.z))

    @m.func
    def cross(a: Vec3, b: Vec3) -> Vec3:
        return vec(fnma(a.z, b.y, mul(a.y, b.z)), fnma(a.x, b.z, mul(a.z, b.x)), fnma(a.y, b.x, mul(a.x, b.y)))

    @m.func
    def dot_plus(a: Vec3, b: Vec3, c: lane) -> lane:
        """a . b + c"""
        return fma(a.x, b.x, fma(a.y, b.y, fma(a.z, b.z, c)))

    @m.func
    def cross_plus(a: Vec3, b: Vec3, c: Vec3) -> Vec3:
        """a x b + c"""
        return vec(
            fma(a.y, b.z, fnma(a.z, b.y, c.x)), fma(a.z, b.x, fnma(a.x, b.z, c.y)), fma(a.x, b.y, fnma(a.y, b.x, c.z))
        )

    @m.func
    def apply(r: Mat33, v: Vec3) -> Vec3:
        return vec(dot(r.x, v), dot(r.y, v), dot(r.z, v))

    @m.func
    def apply_plus(r: Mat33, v: Vec3, c: Vec3) -> Vec3:
        """r v + c"""
        return vec(dot_plus(r.x, v, c.x), dot_plus(r.y, v, c.y), dot_plus(r.z, v, c.z))

    @m.func
    def apply_t(v: Vec3, r: Mat33) -> Vec3:
        """transpose(r) v"""
        return fma3(r.x, v.x, fma3(r.y, v.y, scale3(r.z, v.z)))

    # ------------------------------------------------------------------------------------------- quaternions, xyzw

    @m.func
    def quat_detach(q: Quat) -> Quat:
        """Returns `q`, as a constant in reverse mode."""
        return quat(m.detach(q.x), m.detach(q.y), m.detach(q.z), m.detach(q.w))

    @m.func
    def quat_multiply(a: Quat, b: Quat) -> Quat:
        return quat(
            fma(a.w, b.x, fma(a.x, b.w, fnma(a.z, b.y, mul(a.y, b.z)))),
            fma(a.w, b.y, fma(a.y, b.w, fnma(a.x, b.z, mul(a.z, b.x)))),
            fma(a.w, b.z, fma(a.z, b.w, fnma(a.y, b.x, mul(a.x, b.y)))),
            fnma(a.x, b.x, fnma(a.y, b.y, fnma(a.z, b.z, mul(a.w, b.w)))),
        )

    @m.func
    def quat_conjugate(a: Quat) -> Quat:
        return quat(neg(a.x), neg(a.y), neg(a.z), a.w)

    @m.func
    def quat_normalize(a: Quat) -> Quat:
        """The unit quaternion along a. A zero quaternion stays zero; quat_to_matrix maps it to the identity."""
        square = fma(a.x, a.x, fma(a.y, a.y, fma(a.z, a.z, mul(a.w, a.w))))
        s = rcp(m.sqrt(m.larger(square, fill(real(1.0e-30)))))
        return quat(mul(a.x, s), mul(a.y, s), mul(a.z, s), mul(a.w, s))

    @m.func
    def quat_to_matrix(q: Quat) -> Mat33:
        two = fill(real(2.0))
        one = fill(real(1.0))
        x = mul(q.x, two)
        y = mul(q.y, two)
        z = mul(q.z, two)
        return rows(
            vec(fnma(q.y, y, fnma(q.z, z, one)), fnma(q.w, z, mul(q.x, y)), fma(q.x, z, mul(q.w, y))),
            vec(fma(q.x, y, mul(q.w, z)), fnma(q.x, x, fnma(q.z, z, one)), fnma(q.w, x, mul(q.y, z))),
            vec(fnma(q.w, y, mul(q.x, z)), fma(q.y, z, mul(q.w, x)), fnma(q.x, x, fnma(q.y, y, one))),
        )

    @m.func
    def quat_about(axis: Vec3, half_angle: lane) -> Quat:
        s = m.sin(half_angle)
        return quat(mul(axis.x, s), mul(axis.y, s), mul(axis.z, s), m.cos(half_angle))

    @m.func
    def quat_exp(half: Vec3) -> Quat:
        """The rotation by the vector 2 half (radians), exact down to zero."""
        square = dot(half, half)
        angle = m.sqrt(m.larger(square, fill(real(1.0e-24))))
        s = mul(m.sin(angle), rcp(angle))
        return quat(mul(half.x, s), mul(half.y, s), mul(half.z, s), m.cos(angle))

    @m.func
    def quat_log(q: Quat) -> Vec3:
        """The rotation vector, of length at most pi, of a unit quaternion."""
        zero = fill(real(0.0))
        flip = m.where_lt(q.w, zero, fill(real(-1.0)), fill(real(1.0)))
        n = m.sqrt(m.larger(fma(q.x, q.x, fma(q.y, q.y, mul(q.z, q.z))), fill(real(1.0e-30))))
        s = mul(flip, mul(fill(real(2.0)), mul(m.atan2(n, mul(flip, q.w)), rcp(n))))
        return vec(mul(q.x, s), mul(q.y, s), mul(q.z, s))

    @m.func
    def quat_of(r: Mat33) -> Quat:
        """The unit quaternion of a rotation matrix, from its component that is largest (Shepperd 1978, "Quaternion from rotation
        matrix")."""
        one = fill(real(1.0))
        xx = add(one, sub(r.x.x, add(r.y.y, r.z.z)))
        yy = add(one, sub(r.y.y, add(r.x.x, r.z.z)))
        zz = add(one, sub(r.z.z, add(r.x.x, r.y.y)))
        ww = add(one, add(r.x.x, add(r.y.y, r.z.z)))
        xy = add(r.x.y, r.y.x)
        xz = add(r.x.z, r.z.x)
        yz = add(r.y.z, r.z.y)
        xw = sub(r.z.y, r.y.z)
        yw = sub(r.x.z, r.z.x)
        zw = sub(r.y.x, r.x.y)
        # four times the largest component, times the quaternion
        x = m.where_lt(xx, yy, xy, xx)
        y = m.where_lt(xx, yy, yy, xy)
        z = m.where_lt(xx, yy, yz, xz)
        w = m.where_lt(xx, yy, yw, xw)
        most = m.larger(xx, yy)
        x = m.where_lt(most, zz, xz, x)
        y = m.where_lt(most, zz, yz, y)
        z = m.where_lt(most, zz, zz, z)
        w = m.where_lt(most, zz, zw, w)
        most = m.larger(most, zz)
        x = m.where_lt(most, ww, xw, x)
        y = m.where_lt(most, ww, yw, y)
        z = m.where_lt(most, ww, zw, z)
        w = m.where_lt(most, ww, ww, w)
        return quat_normalize(quat(x, y, z, w))

    # ------------------------------------------------------------------------------------------- twists and wrenches

    @m.func
    def add6(a: Spatial, b: Spatial) -> Spatial:
        return spatial(add3(a.v, b.v), add3(a.w, b.w))

    @m.func
    def fma6(a: Spatial, s: lane, c: Spatial) -> Spatial:
        return spatial(fma3(a.v, s, c.v), fma3(a.w, s, c.w))

    @m.func
    def dot6(a: Spatial, b: Spatial) -> lane:
        return dot_plus(a.w, b.w, dot(a.v, b.v))

    @m.func
    def dot6_plus(a: Spatial, b: Spatial, c: lane) -> lane:
        """a . b + c"""
        return dot_plus(a.w, b.w, dot_plus(a.v, b.v, c))

    @m.func
    def cross_motion(a: Spatial, b: Spatial) -> Spatial:
        return spatial(cross_plus(a.w, b.v, cross(a.v, b.w)), cross(a.w, b.w))

    @m.func
    def velocity_at(t: Spatial, x: Vec3) -> Vec3:
        """Velocity of the body point that is at x (relative to the reference point)."""
        return cross_plus(t.w, x, t.v)

    # ------------------------------------------------------------------------------------------- inertias

    @m.func
    def sym_add(p: Sym3, q: Sym3) -> Sym3:
        return sym(add(p.xx, q.xx), add(p.yy, q.yy), add(p.zz, q.zz), add(p.xy, q.xy), add(p.xz, q.xz), add(p.yz, q.yz))

    @m.func
    def sym_apply(s: Sym3, v: Vec3) -> Vec3:
        return vec(
            fma(s.xx, v.x, fma(s.xy, v.y, mul(s.xz, v.z))),
            fma(s.xy, v.x, fma(s.yy, v.y, mul(s.yz, v.z))),
            fma(s.xz, v.x, fma(s.yz, v.y, mul(s.zz, v.z))),
        )

    @m.func
    def sym_apply_plus(s: Sym3, v: Vec3, c: Vec3) -> Vec3:
        """s v + c"""
        return vec(
            fma(s.xx, v.x, fma(s.xy, v.y, fma(s.xz, v.z, c.x))),
            fma(s.xy, v.x, fma(s.yy, v.y, fma(s.yz, v.z, c.y))),
            fma(s.xz, v.x, fma(s.yz, v.y, fma(s.zz, v.z, c.z))),
        )

    @m.func
    def turned_apply(s: Sym3, r: Mat33, v: Vec3) -> Vec3:
        """r s transpose(r) v"""
        return apply(r, sym_apply(s, apply_t(v, r)))

    @m.func
    def sym_rotate(s: Sym3, r: Mat33) -> Sym3:
        """r s transpose(r)"""
        x = sym_apply(s, r.x)
        y = sym_apply(s, r.y)
        z = sym_apply(s, r.z)
        return sym(dot(x, r.x), dot(y, r.y), dot(z, r.z), dot(x, r.y), dot(x, r.z), dot(y, r.z))

    @m.func
    def sym_rotate_plus(s: Sym3, r: Mat33, c: Sym3) -> Sym3:
        """r s transpose(r) + c"""
        x = sym_apply(s, r.x)
        y = sym_apply(s, r.y)
        z = sym_apply(s, r.z)
        return sym(
            dot_plus(x, r.x, c.xx), dot_plus(y, r.y, c.yy), dot_plus(z, r.z, c.zz),
            dot_plus(x, r.y, c.xy), dot_plus(x, r.z, c.xz), dot_plus(y, r.z, c.yz),
        )  # fmt: skip

    @m.func
    def sym_shift(s: Sym3, h: Vec3, c: Vec3) -> Sym3:
        """s, an inertia about the centre of mass c, about the reference point; h: the first moment (parallel-axis theorem)."""
        return sym(
            fma(h.y, c.y, fma(h.z, c.z, s.xx)),
            fma(h.x, c.x, fma(h.z, c.z, s.yy)),
            fma(h.x, c.x, fma(h.y, c.y, s.zz)),
            fnma(h.x, c.y, s.xy),
            fnma(h.x, c.z, s.xz),
            fnma(h.y, c.z, s.yz),
        )

    @m.func
    def inertia_of(mass: lane, c: Vec3, at_com: Sym3) -> Inertia:
        """Inertia about the reference point of a body with its centre of mass at c."""
        h = scale3(c, mass)
        return Inertia(mass, h, sym_shift(at_com, h, c))

    @m.func
    def turned_inertia_plus(mass: lane, c: Vec3, at_com: Sym3, r: Mat33, p: Inertia) -> Inertia:
        """p + the inertia about the reference point of a body with its centre of mass at c and the inertia `at_com` in its axes r."""
        h = scale3(c, mass)
        return Inertia(add(mass, p.m), add3(h, p.h), sym_shift(sym_rotate_plus(at_com, r, p.i), h, c))

    @m.func
    def zero_inertia() -> Inertia:
        z = fill(real(0.0))
        return Inertia(z, zero3(), sym(z, z, z, z, z, z))

    @m.func
    def inertia_add(p: Inertia, q: Inertia) -> Inertia:
        return Inertia(add(p.m, q.m), add3(p.h, q.h), sym_add(p.i, q.i))

    @m.func
    def momentum(i: Inertia, t: Spatial) -> Spatial:
        """Linear and angular momentum about the reference point of a body that moves with twist t."""
        return spatial(
            fma3(t.v, i.m, cross(t.w, i.h)),
            sym_apply_plus(i.i, t.w, cross(i.h, t.v)),
        )

    # ------------------------------------------------------------------------------------------- memory

    @m.func
    def get3(mem: memory, i: int, t: int) -> Vec3:
        return vec(m.get(mem, i, t), m.get(mem, i + 1, t), m.get(mem, i + 2, t))

    @m.func
    def put3(mem: memory, i: int, t: int, a: Vec3):
        m.put(mem, i, t, a.x)
        m.put(mem, i + 1, t, a.y)
        m.put(mem, i + 2, t, a.z)

    @m.func
    def put3_apart(mem: memory, i: int, stride: int, t: int, a: Vec3):
        """Stores a vector in rows `stride` apart."""
        m.put(mem, i, t, a.x)
        m.put(mem, i + stride, t, a.y)
        m.put(mem, i + 2 * stride, t, a.z)

    @m.func
    def get4(mem: memory, i: int, t: int) -> Quat:
        return quat(m.get(mem, i, t), m.get(mem, i + 1, t), m.get(mem, i + 2, t), m.get(mem, i + 3, t))

    @m.func
    def put4(mem: memory, i: int, t: int, a: Quat):
        m.put(mem, i, t, a.x)
        m.put(mem, i + 1, t, a.y)
        m.put(mem, i + 2, t, a.z)
        m.put(mem, i + 3, t, a.w)

    @m.func
    def get6(mem: memory, i: int, t: int) -> Spatial:
        return spatial(get3(mem, i, t), get3(mem, i + 3, t))

    @m.func
    def put6(mem: memory, i: int, t: int, a: Spatial):
        put3(mem, i, t, a.v)
        put3(mem, i + 3, t, a.w)

    @m.func
    def put6_apart(mem: memory, i: int, stride: int, t: int, a: Spatial):
        put3_apart(mem, i, stride, t, a.v)
        put3_apart(mem, i + 3 * stride, stride, t, a.w)

    @m.func
    def get9(mem: memory, i: int, t: int) -> Mat33:
        return rows(get3(mem, i, t), get3(mem, i + 3, t), get3(mem, i + 6, t))

    @m.func
    def put9(mem: memory, i: int, t: int, a: Mat33):
        put3(mem, i, t, a.x)
        put3(mem, i + 3, t, a.y)
        put3(mem, i + 6, t, a.z)

    @m.func
    def get_sym(mem: memory, i: int, t: int) -> Sym3:
        a = get3(mem, i, t)
        b = get3(mem, i + 3, t)
        return sym(a.x, a.y, a.z, b.x, b.y, b.z)

    @m.func
    def put_sym(mem: memory, i: int, t: int, a: Sym3):
        put3(mem, i, t, vec(a.xx, a.yy, a.zz))
        put3(mem, i + 3, t, vec(a.xy, a.xz, a.yz))

    @m.func
    def get10(mem: memory, i: int, t: int) -> Inertia:
        return Inertia(m.get(mem, i, t), get3(mem, i + 1, t), get_sym(mem, i + 4, t))

    @m.func
    def put10(mem: memory, i: int, t: int, a: Inertia):
        m.put(mem, i, t, a.m)
        put3(mem, i + 1, t, a.h)
        put_sym(mem, i + 4, t, a.i)

    if not hasattr(m, "width") or m.width == 1:
        # lanes of several worlds have native loops over rows

        @m.func
        def clear(t: int, at: int, n: int, mem: memory):
            """Sets n rows to zero."""
            zero = m.fill(real(0.0))
            for i in range(n):
                m.put(mem, at + i, t, zero)

        @m.func
        def copy(t: int, to: int, at: int, n: int, mem: memory):
            """Copies n rows from `at` on to the rows from `to` on."""
            for i in range(n):
                m.put(mem, to + i, t, m.get(mem, at + i, t))

        @m.func
        def put_sums(t: int, to: int, a: int, b: int, n: int, mem: memory):
            """Stores the sums of the n rows from a on and those from b on in the rows from `to` on."""
            for i in range(n):
                m.put(mem, to + i, t, m.add(m.get(mem, a + i, t), m.get(mem, b + i, t)))

        @m.func
        def scale_rows(t: int, at: int, n: int, factor: m.lane, mem: memory):
            """Multiplies n rows from `at` on by a factor."""
            for i in range(n):
                m.put(mem, at + i, t, m.mul(factor, m.get(mem, at + i, t)))

        @m.func
        def squared_distance(t: int, a: int, b: int, n: int, mem: memory) -> m.lane:
            """The sum of the squares of the differences of the n rows from a on and those from b on."""
            total = m.fill(real(0.0))
            for i in range(n):
                d = m.sub(m.get(mem, a + i, t), m.get(mem, b + i, t))
                total = m.fma(d, d, total)
            return total

    @m.func
    def tangent(n: Vec3) -> Vec3:
        """A unit vector across n, and with n x it a basis (Duff et al., Building an Orthonormal Basis, Revisited, 2017)."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        sign = m.where_lt(n.z, zero, m.neg(one), one)
        f = m.neg(m.rcp(m.add(sign, n.z)))
        g = m.mul(n.x, m.mul(n.y, f))
        return vec(m.fma(sign, m.mul(n.x, m.mul(n.x, f)), one), m.mul(sign, g), m.neg(m.mul(sign, n.x)))

    @m.func
    def second_tangent(n: Vec3) -> Vec3:
        """n x ``tangent``"""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        sign = m.where_lt(n.z, zero, m.neg(one), one)
        f = m.neg(m.rcp(m.add(sign, n.z)))
        g = m.mul(n.x, m.mul(n.y, f))
        return vec(g, m.fma(n.y, m.mul(n.y, f), sign), m.neg(n.y))

    return locals()
