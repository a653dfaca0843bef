"""Contact points of a pair of shapes of any two kinds."""

import types

from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, SPHERE

CLOSED = frozenset((
    (SPHERE, SPHERE), (SPHERE, CAPSULE), (SPHERE, BOX), (SPHERE, CYLINDER),
    (CAPSULE, CAPSULE), (CAPSULE, BOX), (CAPSULE, CYLINDER), (BOX, BOX), (BOX, CYLINDER),
))  # fmt: skip
"""Pairs of kinds with programs of their own. The others have one in common, ``convex_points``."""


def pair_dispatch(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``pair_points`` of all pairs."""
    return dispatch_of(m, None)


def dispatch_of(m: types.SimpleNamespace, pairs: frozenset | None) -> dict:
    """For the namespace `m`: ``pair_points``.

    Args:
        pairs: the pairs of kinds, the lower one first, that it is for; it does nothing with others, and takes less time to compile.
            None: all pairs.
    """

    @m.func
    def nothing(t, L, mem):
        """A pair that does not occur."""

    @m.func
    def no_cylinder(b, t, T, P, L, mem):
        """Does nothing, with the arguments of ``capsule_cylinder`` and ``box_cylinder``."""

    @m.func
    def no_convex_points(
        b, t, kind: int, other: int, hull_a: int, count_a: int, hull_b: int, count_b: int, T, P, L, mem
    ):
        """Does nothing, with the arguments of ``convex_points``."""

    def chosen(one: int, two: int, program, otherwise=nothing):
        return program if pairs is None or (one, two) in pairs else otherwise

    sphere_sphere = chosen(SPHERE, SPHERE, m.sphere_sphere)
    sphere_capsule = chosen(SPHERE, CAPSULE, m.sphere_capsule)
    sphere_box = chosen(SPHERE, BOX, m.sphere_box)
    sphere_cylinder = chosen(SPHERE, CYLINDER, m.sphere_cylinder)
    capsule_capsule = chosen(CAPSULE, CAPSULE, m.capsule_capsule)
    capsule_box = chosen(CAPSULE, BOX, m.capsule_box)
    capsule_cylinder = chosen(CAPSULE, CYLINDER, m.capsule_cylinder, no_cylinder)
    box_box = chosen(BOX, BOX, m.box_box)
    box_cylinder = chosen(BOX, CYLINDER, m.box_cylinder, no_cylinder)
    convex_points = m.convex_points if pairs is None or pairs - CLOSED else no_convex_points

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
            sphere_sphere(t, L, mem)
        elif kind == SPHERE and other == CAPSULE:
            sphere_capsule(t, L, mem)
        elif kind == SPHERE and other == BOX:
            sphere_box(t, L, mem)
        elif kind == SPHERE and other == CYLINDER:
            sphere_cylinder(t, L, mem)
        elif kind == CAPSULE and other == CAPSULE:
            capsule_capsule(t, L, mem)
        elif kind == CAPSULE and other == BOX:
            capsule_box(t, L, mem)
        elif kind == CAPSULE and other == CYLINDER:
            capsule_cylinder(b, t, T, P, L, mem)
        elif kind == BOX and other == BOX:
            box_box(t, L, mem)
        elif kind == BOX and other == CYLINDER:
            box_cylinder(b, t, T, P, L, mem)
        else:
            closed = int(0)
        if closed == 0:
            convex_points(b, t, kind, other, hull_a, count_a, hull_b, count_b, T, P, L, mem)

    return {"pair_points": pair_points}
