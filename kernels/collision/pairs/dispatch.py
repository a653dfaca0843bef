"""Contact points of a pair of shapes of any two kinds."""

import types

from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, SPHERE


def pair_dispatch(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``pair_points``."""

    @m.shared
    def pair_points(b, t, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int, T, P, L, mem):
        """manifold <- the contact points of the two shapes in ``pair_shapes``.

        Args:
            kind, other: kinds of the two shapes, of `kernels.collision.plane`; kind <= other. The same in all worlds.
            hull_a, count_a: first vertex of a hull among the parameters, and the number of vertices, of the first shape.
            hull_b, count_b: the same of the second shape.
        """
        m.clear_manifold(t, L, mem)
        closed = int(1)
        if kind == SPHERE and other == SPHERE:
            m.sphere_sphere(t, L, mem)
        elif kind == SPHERE and other == CAPSULE:
            m.sphere_capsule(t, L, mem)
        elif kind == SPHERE and other == BOX:
            m.sphere_box(t, L, mem)
        elif kind == SPHERE and other == CYLINDER:
            m.sphere_cylinder(t, L, mem)
        elif kind == CAPSULE and other == CAPSULE:
            m.capsule_capsule(t, L, mem)
        elif kind == CAPSULE and other == BOX:
            m.capsule_box(t, L, mem)
        elif kind == CAPSULE and other == CYLINDER:
            m.capsule_cylinder(b, t, T, P, L, mem)
        elif kind == BOX and other == BOX:
            m.box_box(t, L, mem)
        else:
            closed = int(0)
        if closed == 0:
            m.convex_points(b, t, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)

    return locals()
