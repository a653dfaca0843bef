"""Representations of velocities, accelerations and wrenches of a frame, linear parts first.

A representation gives the components of the frame's spatial vector at a point and along axes (Traversaro and Saccon 2019, "Multibody
dynamics notation"):

    COM       velocity of the centre of mass, world axes
    MIXED     velocity of the frame's origin, world axes
    INERTIAL  velocity of the body's point at the world's origin, world axes
    BODY      velocity of the frame's origin, the frame's axes

A floating base has its native velocities, or those of a representation. ``prepare`` then replaces its motion subspace, and every algorithm
that reads the subspace gives matrices and forces in that representation.
"""

import types

from newton_like.kernels.tree import BODY_FIXED, COM, INERTIAL, NATIVE


def representation_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: conversions of spatial vectors; ``prepare``, the kinematics with a base representation; ``eval_velocity``
    and its inverse ``eval_native_velocity``."""
    real = m.real

    @m.func
    def turned_back(kind: int, s: m.Spatial, r: m.Mat33) -> m.Spatial:
        """Rotates s from world axes to those of the representation; r rotates from the frame's axes to the world's."""
        out = s
        if kind == BODY_FIXED:
            out = m.spatial(m.apply_t(s.v, r), m.apply_t(s.w, r))
        return out

    @m.func
    def turned_out(kind: int, s: m.Spatial, r: m.Mat33) -> m.Spatial:
        """The inverse of turned_back."""
        out = s
        if kind == BODY_FIXED:
            out = m.spatial(m.apply(r, s.v), m.apply(r, s.w))
        return out

    @m.func
    def reference_place(kind: int, x: m.Vec3, c: m.Vec3, o: m.Vec3) -> m.Vec3:
        """The point of a representation, relative to the reference point o, for a frame at x with the centre of mass c."""
        p = x
        if kind == COM:
            p = c
        if kind == INERTIAL:
            p = m.neg3(o)
        return p

    @m.func
    def twist_as(kind: int, v: m.Spatial, p: m.Vec3, r: m.Mat33) -> m.Spatial:
        """Components in a representation of the twist v about the reference point; p is the representation's point."""
        return turned_back(kind, m.spatial(m.velocity_at(v, p), v.w), r)

    @m.func
    def twist_from(kind: int, u: m.Spatial, p: m.Vec3, r: m.Mat33) -> m.Spatial:
        """The inverse of twist_as."""
        s = turned_out(kind, u, r)
        return m.spatial(m.cross_plus(p, s.w, s.v), s.w)

    @m.func
    def acceleration_as(kind: int, a: m.Spatial, v: m.Spatial, p: m.Vec3, r: m.Mat33) -> m.Spatial:
        """Time derivatives of the components of twist_as(v), from the spatial acceleration a and the twist v."""
        at = m.spatial(m.velocity_at(a, p), a.w)
        if kind < INERTIAL:
            at = m.spatial(m.cross_plus(v.w, m.velocity_at(v, p), at.v), at.w)
        return turned_back(kind, at, r)

    @m.func
    def wrench_as(kind: int, f: m.Spatial, p: m.Vec3, r: m.Mat33) -> m.Spatial:
        """Components in a representation of the wrench f about the reference point; f.v is the force, f.w the torque."""
        return turned_back(kind, m.spatial(f.v, m.cross_plus(f.v, p, f.w)), r)

    @m.func
    def wrench_from(kind: int, u: m.Spatial, p: m.Vec3, r: m.Mat33) -> m.Spatial:
        """The inverse of wrench_as."""
        s = turned_out(kind, u, r)
        return m.spatial(s.v, m.cross_plus(p, s.v, s.w))

    @m.func
    def place_of(t, k: int, kind: int, L, mem) -> m.Vec3:
        """The point of a representation of body k, relative to the reference point."""
        return reference_place(
            kind, m.get3(mem, L.pos + 3 * k, t), m.get3(mem, L.com + 3 * k, t), m.get3(mem, L.origin, t)
        )

    @m.func
    def change_base(t, T, L, mem):
        """Converts motion subspace and velocities of a floating base to the representation ``T.base_repr``."""
        if T.free_root != 0 and T.base_repr != NATIVE:
            r = m.get9(mem, L.rot, t)
            p = place_of(t, 0, T.base_repr, L, mem)
            m.put6(mem, L.v, t, twist_as(T.base_repr, m.get6(mem, L.twist, t), p, r))
            zero = m.fill(real(0.0))
            one = m.fill(real(1.0))
            x = m.vec(one, zero, zero)
            y = m.vec(zero, one, zero)
            z = m.vec(zero, zero, one)
            n = m.zero3()
            m.put6(mem, L.subspace, t, twist_from(T.base_repr, m.spatial(x, n), p, r))
            m.put6(mem, L.subspace + 6, t, twist_from(T.base_repr, m.spatial(y, n), p, r))
            m.put6(mem, L.subspace + 12, t, twist_from(T.base_repr, m.spatial(z, n), p, r))
            m.put6(mem, L.subspace + 18, t, twist_from(T.base_repr, m.spatial(n, x), p, r))
            m.put6(mem, L.subspace + 24, t, twist_from(T.base_repr, m.spatial(n, y), p, r))
            m.put6(mem, L.subspace + 30, t, twist_from(T.base_repr, m.spatial(n, z), p, r))

    @m.func
    def prepare(b, t, T, P, L, mem):
        """Forward kinematics at q and v; v <- nu, with base velocities in the representation ``T.base_repr``."""
        m.forward_kinematics(b, t, T, P, L, mem)
        change_base(t, T, L, mem)

    @m.func
    def eval_velocity(b, t, T, P, L, mem):
        """vector <- nu: joint velocities, with base velocities in the representation ``T.base_repr``"""
        prepare(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.columns, mem)
        for i in range(T.dofs):
            m.put(mem, L.vector + i, t, m.get(mem, L.v + i, t))

    @m.func
    def eval_native_velocity(b, t, T, P, L, mem):
        """next_v <- native joint velocities, from nu at `vector` in the representation ``T.base_repr``: the inverse of eval_velocity"""
        m.clear(t, L.v, T.dofs, mem)
        m.forward_kinematics(b, t, T, P, L, mem)
        for i in range(T.dofs):
            m.put(mem, L.next_v + i, t, m.get(mem, L.vector + i, t))
        if T.free_root != 0 and T.base_repr != NATIVE:
            p = place_of(t, 0, T.base_repr, L, mem)
            v = twist_from(T.base_repr, m.get6(mem, L.vector, t), p, m.get9(mem, L.rot, t))
            at = m.velocity_at(v, m.get3(mem, L.com, t))
            # the native velocities are along the axes of the parent's anchor, which the subspace contains
            for i in range(3):
                slide = m.get6(mem, L.subspace + 6 * i, t)
                turn = m.get6(mem, L.subspace + 6 * (3 + i), t)
                m.put(mem, L.next_v + i, t, m.dot(slide.v, at))
                m.put(mem, L.next_v + 3 + i, t, m.dot(turn.w, v.w))

    return locals()
