"""Records of the narrow phase: what it reads of two shapes, and the contact points that it writes.

All lengths are in metres. Positions are relative to the centre of the first shape of the pair, axes are those of the world. Kinds are those
of `kernels.collision.plane`; the first shape has the lower kind.
"""

from newton_like.kernels.collision.plane import BOX, CAPSULE, SPHERE

# A shape, at L.pair_shapes + SHAPE * i in memory: the place of its centre, its axes (the rotation from the shape to the world, by rows),
# and its size as in Model.shape_scale. The vertices of a hull are parameters.
SHAPE = 15
CENTRE, AXES, EXTENT = 0, 3, 12

# A contact point, at L.manifold + POINT * i: the place halfway between both surfaces; the normal, from the first shape to the second; the
# signed distance of the surfaces along the normal, negative if they overlap, FAR where there is no point; and a number that tells which
# features touch, equal for the same contact in successive steps.
POINT = 8
PLACE, AWAY, DISTANCE, FEATURE = 0, 3, 6, 7

POINTS_OF_A_PAIR = 4
"""Largest number of contact points of a pair."""


def points_of(kind: int, other: int) -> int:
    """Number of contact points of a pair of kinds, the lower one first."""
    if kind == SPHERE:
        return 1
    if kind == CAPSULE and other <= BOX:
        return 2
    return POINTS_OF_A_PAIR


# Rows of ``pair_work``, in which the search for contact points of convex shapes works. Lengths there are in units of the pair's size, so that
# tolerances are plain numbers. Positions are relative to the centre of the first shape, axes are those of the world.

SMALLEST = 1.0e-30
"""Squares of lengths in units below this number are zero."""

# Both shapes as in `kernels.collision.pairs.records`, and one over the unit of length.
SHAPES, PER_UNIT = 0, 2 * SHAPE

# The simplex of the distance search: a point of the difference of both shapes less the point whose distance is computed, and the point of
# the first shape that it comes from.
CORNER = 6
SIMPLEX = PER_UNIT + 1

# The polytope of the depth search. A face has its outward unit normal, its distance from the origin and three vertices.
VISITS = 20
"""Vertices that the depth search adds to a tetrahedron, at most."""
VERTICES, FACES, FACE = 4 + VISITS, 4 + 2 * VISITS, 7
OFFSET, CORNERS = 3, 4
VERTEX_AT = SIMPLEX + 4 * CORNER
FACE_AT = VERTEX_AT + 3 * VERTICES
# one face more than there can be, for worlds that have none to store
SEEN_AT = FACE_AT + FACE * (FACES + 1)
SEEN_CORNERS_AT = SEEN_AT + FACES + 1
HORIZON_AT = SEEN_CORNERS_AT + 3 * FACES
# the visit that last removed a face with an edge from a vertex to another one, and an entry for worlds that have none
EDGE_AT = HORIZON_AT + 2 * (3 * FACES + 1)
EDGES = VERTICES * VERTICES

# The part of the surface of each shape that faces the other one, its patch: corners of a polygon, with two coordinates in a plane
# perpendicular to the normal and the height along the normal; and lines a x + b y = c with the polygon on the side where a x + b y is less.
PATCH_CORNERS = 8
PATCH_AT = EDGE_AT + EDGES + 1
LINES = 3 * PATCH_CORNERS
PATCH = 2 * LINES

# A candidate for a contact point: its two coordinates in the plane, the height halfway between both surfaces, and their distance along the
# normal, FAR where there is none. Every edge of a patch has two candidates; the last candidate is the closest point of both shapes.
CANDIDATE = 4
CANDIDATES = 4 * PATCH_CORNERS + 1
CANDIDATE_AT = PATCH_AT + 2 * PATCH
WORK = CANDIDATE_AT + CANDIDATE * CANDIDATES

PAIR_COUNTS = dict(pair_numbers=2 * SHAPE, manifold_numbers=POINTS_OF_A_PAIR * POINT, pair_work_numbers=WORK)
"""Sizes of these records, as counts of `kernels.layout`."""
