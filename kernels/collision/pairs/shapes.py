"""The two shapes of a pair and their contact points, in memory; vectors that may be zero.

Programs of pairs compute relative to the centre of the first shape, so that no digits are lost far from the reference point.
"""

import types

import warp as wp

from newton_like.kernels.collision.pairs.records import (  # isort: skip
    AWAY, AXES, CENTRE, DISTANCE, EXTENT, FEATURE, PLACE, POINT, POINTS_OF_A_PAIR, SHAPE,
)  # fmt: skip
from newton_like.kernels.collision.pairs.work import POINTS_OF_A_HULL
from newton_like.kernels.collision.plane import FAR


def pair_shape_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``PairShape``, ``get_shape``, ``put_pair_point``, ``clear_manifold``, ``clear_more_points`` and
    ``unit_or``."""
    real = m.real
    # Lengths below this share of the sizes that they come from are rounding errors, and have no direction.
    ROUNDING = 1.0e-6 if real is wp.float32 else 1.0e-14
    # Sine of the angle of two edges below which they count as parallel. Their common perpendicular has an error of ROUNDING over this sine.
    LEAST_SINE = 1.0e-3 if real is wp.float32 else 1.0e-6

    @m.struct
    class PairShape:
        """The centre relative to that of the first shape, axes and size."""

        centre: m.Vec3
        axes: m.Mat33
        size: m.Vec3

    @m.func
    def get_shape(t, i: int, L, mem) -> PairShape:
        """Shape 0 or 1 of the pair."""
        at = L.pair_shapes + SHAPE * i
        centre = m.sub3(m.get3(mem, at + CENTRE, t), m.get3(mem, L.pair_shapes + CENTRE, t))
        return PairShape(centre, m.get9(mem, at + AXES, t), m.get3(mem, at + EXTENT, t))

    @m.func
    def put_pair_point(t, i: int, place: m.Vec3, n: m.Vec3, distance: m.lane, feature: m.lane, L, mem):
        """Stores contact point i. Its place is relative to the centre of the first shape, and its normal points to the second one."""
        at = L.manifold + POINT * i
        m.put3(mem, at + PLACE, t, m.add3(place, m.get3(mem, L.pair_shapes + CENTRE, t)))
        m.put3(mem, at + AWAY, t, n)
        m.put(mem, at + DISTANCE, t, distance)
        m.put(mem, at + FEATURE, t, feature)

    @m.func
    def clear_manifold(t, L, mem):
        """Stores that a pair without hulls has no contact points."""
        m.clear(t, L.manifold, POINTS_OF_A_PAIR * POINT, mem)
        far = m.fill(real(FAR))
        for i in range(POINTS_OF_A_PAIR):
            m.put(mem, L.manifold + POINT * i + DISTANCE, t, far)

    @m.func
    def clear_more_points(t, L, mem):
        """Clears the contact points that only hulls have."""
        far = m.fill(real(FAR))
        for i in range(POINTS_OF_A_PAIR, POINTS_OF_A_HULL):
            m.clear(t, L.manifold + POINT * i, POINT, mem)
            m.put(mem, L.manifold + POINT * i + DISTANCE, t, far)

    @m.func
    def magnitude(a: m.lane) -> m.lane:
        return m.larger(a, m.neg(a))

    @m.func
    def within(a: m.lane, low: m.lane, high: m.lane) -> m.lane:
        return m.smaller(m.larger(a, low), high)

    @m.func
    def sign_of(a: m.lane) -> m.lane:
        """-1 for a negative number, else 1."""
        return m.where_lt(a, m.fill(real(0.0)), m.fill(real(-1.0)), m.fill(real(1.0)))

    @m.func
    def tiny(size: m.lane) -> m.lane:
        """The length below which a difference of lengths of this size is rounding, and above zero."""
        return m.larger(m.mul(m.fill(real(ROUNDING)), size), m.fill(real(1.0e-15)))

    @m.func
    def unit_or(d: m.Vec3, length: m.lane, smallest: m.lane, other: m.Vec3) -> m.Vec3:
        """d / length, or `other` where length < smallest. `smallest` is positive."""
        s = m.rcp(m.larger(length, smallest))
        return m.where3_lt(length, smallest, other, m.scale3(d, s))

    return locals()
