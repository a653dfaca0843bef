"""Rows of soft connects and welds, as MuJoCo has them.

Forces along a line between anchors act at the anchor of each link, and not both at that of the child: J is the difference of the velocities
of the anchors along a. The turning of a, which is fixed to the parent, does not count.

The rotation from the frame of the parent to that of the child has a unit quaternion with the vector part v, in world axes, and the scalar
w >= 0. Its three rows are, for the axes a of the parent's frame and the relative angular velocity u:

    tilt      g = 2 a . v          W = (0, w a + v x a)

so that g'' = W . u' - 1/2 (a . v) u . u. MuJoCo's error is half as large, see ``ANGLE_SHARE``.
"""

import types

from newton_like.kernels.dynamics.loops import CHILD_ANCHOR, LOOP, PARENT_ANCHOR, PARENT_DIRECTION

BETWEEN = 2
"""Where the vectors of a tilt have what `relative_turn` reads. The axis is its PARENT_DIRECTION."""


def equality_row_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``put_ends``, ``ends_acceleration``, ``relative_turn``, ``tilt_error``, ``tilt_wrench`` and
    ``tilt_acceleration``."""
    real = m.real

    @m.func
    def add_end(t, r: int, k: int, anchor: int, sign: m.lane, at: int, T, L, mem):
        """Adds the entries of the velocity of an anchor, which is on body k, to row r at `at`."""
        if k < T.bodies:
            leaf = T.leaf[k]
            if leaf >= 0:
                n = m.scale3(m.loop_vector(t, r, PARENT_DIRECTION, m.loop_body(r, T), L, mem), sign)
                w = m.spatial(n, m.cross(m.loop_anchor(t, r, anchor, k, L, mem), n))
                for d in range(T.depth[leaf] + 1):
                    i = T.chain[T.chain_at[leaf] + d]
                    x = m.dot6_plus(w, m.get6(mem, L.subspace + 6 * i, t), m.get(mem, at + i, t))
                    m.put(mem, at + i, t, x)

    @m.func
    def put_ends(t, r: int, at: int, T, L, mem):
        """Stores the nonzero entries of a row whose forces act at both anchors at `at`, which is zero before."""
        add_end(t, r, m.loop_body(T.loop_rows + r, T), CHILD_ANCHOR, m.fill(real(1.0)), at, T, L, mem)
        add_end(t, r, m.loop_body(r, T), PARENT_ANCHOR, m.fill(real(-1.0)), at, T, L, mem)

    @m.func
    def end_acceleration(t, r: int, k: int, anchor: int, L, mem) -> m.Vec3:
        x = m.loop_anchor(t, r, anchor, k, L, mem)
        v = m.get6(mem, L.twist + 6 * k, t)
        return m.cross_plus(v.w, m.velocity_at(v, x), m.velocity_at(m.get6(mem, L.drift + 6 * k, t), x))

    @m.func
    def ends_acceleration(t, r: int, T, L, mem) -> m.lane:
        """g'' of such a row where no joint accelerates."""
        p = m.loop_body(r, T)
        n = m.loop_vector(t, r, PARENT_DIRECTION, p, L, mem)
        x = end_acceleration(t, r, m.loop_body(T.loop_rows + r, T), CHILD_ANCHOR, L, mem)
        return m.dot(n, m.sub3(x, end_acceleration(t, r, p, PARENT_ANCHOR, L, mem)))

    @m.func
    def relative_turn(t, r: int, at: int, T, L, mem) -> m.Quat:
        """The rotation from the frame of the parent of row r to that of the child, in world axes, with a scalar part of at least 0.

        Vector `at` of the row has the orientation of the anchor of the child in its link, times the inverse of that of the parent.
        """
        between = m.get4(mem, L.loop + LOOP * r + at, t)
        q = m.quat_multiply(m.get4(mem, L.quat + 4 * m.loop_body(T.loop_rows + r, T), t), between)
        q = m.quat_multiply(q, m.quat_conjugate(m.get4(mem, L.quat + 4 * m.loop_body(r, T), t)))
        side = m.where_lt(q.w, m.fill(real(0.0)), m.fill(real(-1.0)), m.fill(real(1.0)))
        return m.quat(m.mul(side, q.x), m.mul(side, q.y), m.mul(side, q.z), m.mul(side, q.w))

    @m.func
    def tilt_error(t, r: int, T, L, mem) -> m.lane:
        q = relative_turn(t, r, BETWEEN, T, L, mem)
        a = m.loop_vector(t, r, PARENT_DIRECTION, m.loop_body(r, T), L, mem)
        return m.mul(m.fill(real(2.0)), m.dot(a, m.vec(q.x, q.y, q.z)))

    @m.func
    def tilt_wrench(t, r: int, T, L, mem) -> m.Spatial:
        q = relative_turn(t, r, BETWEEN, T, L, mem)
        a = m.loop_vector(t, r, PARENT_DIRECTION, m.loop_body(r, T), L, mem)
        return m.spatial(m.zero3(), m.fma3(a, q.w, m.cross(m.vec(q.x, q.y, q.z), a)))

    @m.func
    def tilt_acceleration(t, r: int, T, L, mem) -> m.lane:
        """g'' where no joint accelerates."""
        p = m.get6(mem, L.twist + 6 * m.loop_body(r, T), t)
        c = m.get6(mem, L.twist + 6 * m.loop_body(T.loop_rows + r, T), t)
        u = m.sub3(c.w, p.w)
        w = tilt_wrench(t, r, T, L, mem)
        bend = m.mul(m.fill(real(-0.25)), m.mul(tilt_error(t, r, T, L, mem), m.dot(u, u)))
        bend = m.sub(bend, m.dot(w.w, m.cross(p.w, c.w)))
        return m.dot6_plus(w, m.across(t, r, L.drift, T, mem), bend)

    return locals()
