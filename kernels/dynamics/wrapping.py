"""Paths that wrap around spheres and cylinders, in lanes; `newton_like.geometry.wrapping` states the same in NumPy.

In the plane, with both ends x and y outside a circle of radius r about the origin: a tangent from x touches the circle at

    r / |x|^2 (r x -+ sqrt(|x|^2 - r^2) x'),    x' = x turned by a right angle,

at the angle atan(sqrt(|x|^2 - r^2) / r) from x. So the arc has the angle from x to y less those of both tangents. A path touches a circle
from the inside where its parts have equal angles with the radius, which is found by bisection of the direction.
"""

import math
import types

import numpy as np
import warp as wp
from newton_like.kernels.tree import IN_CYLINDER, IN_SPHERE, ROUND_CYLINDER, ROUND_SPHERE

SINGLE_HALVINGS, DOUBLE_HALVINGS = 22, 50
"""Bisections for the point inside a circle."""


def wrapping_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``wrap_path``."""
    real = m.real
    wrap_halvings = DOUBLE_HALVINGS if real in (wp.float64, np.float64) else SINGLE_HALVINGS

    @m.struct
    class Wrap:
        """One where a path wraps, else zero; the points between which it does, and the length between them."""

        on: m.lane
        first: m.Vec3
        last: m.Vec3
        arc: m.lane

    @m.func
    def root_above(square: m.lane) -> m.lane:
        """The square root, at least 1e-12: of lengths that are divisors."""
        return m.sqrt(m.larger(square, m.fill(real(1.0e-24))))

    @m.func
    def flat_cross(a: m.Vec3, b: m.Vec3) -> m.lane:
        return m.fnma(a.y, b.x, m.mul(a.x, b.y))

    @m.func
    def flat_dot(a: m.Vec3, b: m.Vec3) -> m.lane:
        return m.fma(a.y, b.y, m.mul(a.x, b.x))

    @m.func
    def flat_length(a: m.Vec3) -> m.lane:
        return root_above(flat_dot(a, a))

    @m.func
    def tangent_touch(x: m.Vec3, r: m.lane, sign: m.lane) -> m.Vec3:
        """The point where a tangent from x touches the circle, in the plane z = 0."""
        square = m.larger(flat_dot(x, x), m.fill(real(1.0e-12)))
        root = m.mul(sign, root_above(m.fnma(r, r, square)))
        share = m.div(r, square)
        a = m.mul(share, m.fma(root, x.y, m.mul(r, x.x)))
        b = m.mul(share, m.fnma(root, x.x, m.mul(r, x.y)))
        return m.vec(a, b, m.fill(real(0.0)))

    @m.func
    def tangent_angle(x: m.Vec3, r: m.lane) -> m.lane:
        square = m.fnma(r, r, flat_dot(x, x))
        return m.atan2(root_above(square), r)

    @m.func
    def reach_of_line(x: m.Vec3, y: m.Vec3) -> m.lane:
        """The squared distance of the segment x y from the origin, in the plane."""
        d = m.vec(m.sub(y.x, x.x), m.sub(y.y, x.y), m.fill(real(0.0)))
        share = m.div(m.neg(flat_dot(x, d)), m.larger(flat_dot(d, d), m.fill(real(1.0e-24))))
        share = m.larger(m.fill(real(0.0)), m.smaller(share, m.fill(real(1.0))))
        near = m.fma3(d, share, x)
        return flat_dot(near, near)

    @m.func
    def wrap_outside(x: m.Vec3, y: m.Vec3, side: m.Vec3, sided: int, r: m.lane) -> Wrap:
        """In the plane; the third coordinates are left out."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        turned = flat_cross(x, y)
        turn = m.where_lt(turned, zero, m.neg(one), one)
        # nothing wraps where an end is at the center; the angle has a finite derivative there too
        along = flat_dot(x, y)
        size = m.fma(along, along, m.mul(turned, turned))
        along = m.where_lt(size, m.fill(real(1.0e-30)), one, along)
        wedge = m.atan2(m.mul(turn, turned), along)
        on = m.where_lt(reach_of_line(x, y), m.mul(r, r), one, zero)
        if sided != 0:
            behind = m.smaller(m.mul(turn, flat_cross(side, x)), m.mul(turn, flat_cross(y, side)))
            far = m.where_lt(zero, behind, one, zero)
            on = m.larger(on, far)
            wedge = m.where_lt(zero, far, m.sub(m.fill(real(2.0 * math.pi)), wedge), wedge)
            turn = m.where_lt(zero, far, m.neg(turn), turn)
        angle = m.sub(wedge, m.add(tangent_angle(x, r), tangent_angle(y, r)))
        return Wrap(on, tangent_touch(x, r, m.neg(turn)), tangent_touch(y, r, turn), m.mul(r, m.larger(angle, zero)))

    @m.func
    def tilt(x: m.Vec3, way: m.Vec3, r: m.lane) -> m.lane:
        """The sine of the angle between a radius along `way` and the line from its end to x."""
        d = m.fnma3(way, r, x)
        return m.div(flat_cross(x, way), flat_length(d))

    @m.func
    def tilt_rate(x: m.Vec3, way: m.Vec3, r: m.lane) -> m.lane:
        """The derivative of the tilt, as the direction turns."""
        length = flat_length(m.fnma3(way, r, x))
        sine = m.div(flat_cross(x, way), length)
        return m.sub(m.div(flat_dot(x, way), length), m.div(m.mul(r, m.mul(sine, sine)), length))

    @m.func
    def wrap_inside(x: m.Vec3, y: m.Vec3, r: m.lane) -> Wrap:
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        low = m.vec(m.div(x.x, flat_length(x)), m.div(x.y, flat_length(x)), zero)
        high = m.vec(m.div(y.x, flat_length(y)), m.div(y.y, flat_length(y)), zero)
        turn = m.where_lt(flat_cross(x, y), zero, m.neg(one), one)
        opposite = m.where_lt(flat_dot(low, high), m.fill(real(-1.0 + 1.0e-6)), zero, one)
        on = m.where_lt(m.mul(r, r), reach_of_line(x, y), opposite, zero)
        for _ in range(wrap_halvings):
            way = m.add3(low, high)
            way = m.scale3(way, m.rcp(flat_length(way)))
            slope = m.mul(turn, m.add(tilt(x, way, r), tilt(y, way, r)))
            low = m.vec(m.where_lt(slope, zero, way.x, low.x), m.where_lt(slope, zero, way.y, low.y), zero)
            high = m.vec(m.where_lt(slope, zero, high.x, way.x), m.where_lt(slope, zero, high.y, way.y), zero)
        way = m.add3(low, high)
        way = m.scale3(way, m.rcp(flat_length(way)))
        # one step of Newton's method from a constant start has the derivatives of the solution, by the implicit function theorem
        way = m.vec(m.detach(way.x), m.detach(way.y), zero)
        rate = m.detach(m.add(tilt_rate(x, way, r), tilt_rate(y, way, r)))
        steep = m.where_lt(m.mul(rate, rate), m.fill(real(1.0e-8)), zero, one)
        step = m.div(m.mul(steep, m.add(tilt(x, way, r), tilt(y, way, r))), m.add(rate, m.sub(one, steep)))
        way = m.vec(m.fma(step, way.y, way.x), m.fnma(step, way.x, way.y), zero)
        way = m.scale3(way, m.mul(r, m.rcp(flat_length(way))))
        return Wrap(on, way, way, zero)

    @m.func
    def plane_axis(x: m.Vec3, y: m.Vec3) -> m.Vec3:
        """A unit vector at right angles to x and y; to x alone where both are on a line with the origin."""
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        n = m.cross(x, y)
        square = m.dot(x, x)
        line = m.mul(m.fill(real(1.0e-12)), m.mul(square, m.dot(y, y)))
        other = m.cross(x, m.vec(one, zero, zero))
        steep = m.where_lt(m.mul(m.fill(real(0.5)), square), m.mul(x.x, x.x), one, zero)
        upright = m.cross(x, m.vec(zero, one, zero))
        other = m.fma3(m.sub3(upright, other), steep, other)
        on = m.where_lt(m.dot(n, n), line, one, zero)
        n = m.fma3(m.sub3(other, n), on, n)
        return m.scale3(n, m.rcp(m.sqrt(m.larger(m.dot(n, n), m.fill(real(1.0e-30))))))

    @m.func
    def wrap_path(kind: int, x: m.Vec3, y: m.Vec3, side: m.Vec3, sided: int, r: m.lane) -> Wrap:
        """How a path from x to y wraps around a sphere about the origin, or a cylinder about the z axis; `sided`: whether there is a side
        site, at `side`."""
        zero = m.fill(real(0.0))
        a = x
        b = y
        s = side
        way = m.zero3()
        f = m.zero3()
        if kind == ROUND_SPHERE or kind == IN_SPHERE:
            way = m.scale3(x, m.rcp(root_above(m.dot(x, x))))
            f = m.cross(plane_axis(x, y), way)
            a = m.vec(m.dot(x, way), m.dot(x, f), zero)
            b = m.vec(m.dot(y, way), m.dot(y, f), zero)
            s = m.vec(m.dot(side, way), m.dot(side, f), zero)
        w = Wrap(zero, a, b, zero)
        if kind == IN_SPHERE or kind == IN_CYLINDER:
            w = wrap_inside(a, b, r)
        else:
            w = wrap_outside(a, b, s, sided, r)
        nearer = m.smaller(flat_dot(a, a), flat_dot(b, b))
        on = m.where_lt(m.mul(r, r), nearer, w.on, zero)
        first = m.fma3(f, w.first.y, m.scale3(way, w.first.x))
        last = m.fma3(f, w.last.y, m.scale3(way, w.last.x))
        arc = w.arc
        if kind == ROUND_CYLINDER or kind == IN_CYLINDER:
            before = flat_length(m.sub3(a, w.first))
            after = flat_length(m.sub3(b, w.last))
            rise = m.div(m.sub(y.z, x.z), m.larger(m.add(before, m.add(arc, after)), m.fill(real(1.0e-12))))
            up = m.mul(rise, arc)
            start = m.fma(rise, before, x.z)
            first = m.vec(w.first.x, w.first.y, start)
            last = m.vec(w.last.x, w.last.y, m.add(start, up))
            # derivatives stay finite where nothing wraps
            arc = root_above(m.fma(up, up, m.mul(arc, arc)))
        return Wrap(on, first, last, arc)

    return locals()
