"""The memory that the narrow phase of convex shapes works in: places in the row ``pair_work``.

Lengths there are in units of the pair's size, so that tolerances are plain numbers. Positions are relative to the centre of the first
shape, axes are those of the world.
"""

POINTS_OF_A_HULL = 8
"""Largest number of contact points of a hull and a shape with flat faces."""

SMALLEST = 1.0e-30
"""Squares of lengths in units below this number are zero."""

# One over the unit of length.
PER_UNIT = 0

# How far from each other surfaces are looked at [m]: a search ends where the distance is larger.
LIMIT = 1

# Twice the share of the smaller shape in the pair's size, at most one: the unit of tolerances of contact points, in units of length.
FINE = 2

# The radius of each shape, in units.
OWN = 3

# The simplex of the distance search: a point of the difference of both shapes less the point whose distance is computed, and the point of
# the first shape that it comes from.
CORNER = 6
SIMPLEX = OWN + 2

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
# perpendicular to the normal and the height along the normal; lines a x + b y = c with the polygon on the side where a x + b y is less;
# and numbers of the corners, which stay the same while the shapes move.
PATCH_CORNERS = 8
PATCH_AT = EDGE_AT + EDGES + 1
LINES = 3 * PATCH_CORNERS
NUMBERS = 2 * LINES
PATCH = NUMBERS + PATCH_CORNERS

# A candidate for a contact point: its two coordinates in the plane, the height halfway between both surfaces, their distance along the
# normal, FAR where there is none, and a number that tells which corner or edge it is at. Every edge of a patch has two candidates; the
# last candidate is the closest point of both shapes.
CANDIDATE = 5
CANDIDATES = 4 * PATCH_CORNERS + 1
MOST_NUMBERS = 1024
"""Numbers of corners are below this one; of a hull with more vertices several have the same number."""
CANDIDATE_AT = PATCH_AT + 2 * PATCH

# The vertex of a hull that is farthest along a direction.
FARTHEST = CANDIDATE_AT + CANDIDATE * CANDIDATES

# The contact points of a hull: numbers of candidates and one where there is one; and the polygon from which more were looked for.
CHOSEN_AT = FARTHEST + 3
CHOSEN_HERE = CHOSEN_AT + POINTS_OF_A_HULL
RING_AT = CHOSEN_HERE + POINTS_OF_A_HULL

# Both shapes as in `kernels.collision.pairs.records`, last.
SHAPES = RING_AT + POINTS_OF_A_HULL
