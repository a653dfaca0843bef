"""Records of the narrow phase: what it reads of two shapes, and the contact points that it writes.

All lengths are in metres. Positions are relative to the centre of the first shape of the pair, axes are those of the world. Kinds are those
of `kernels.collision.plane`; the first shape has the lower kind.
"""

from newton_like.kernels.collision.pairs.work import POINTS_OF_A_HULL, SHAPES
from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, ELLIPSOID, HULL, SPHERE

# A shape, at L.pair_shapes + SHAPE * i in memory: the place of its centre, its axes (the rotation from the shape to the world, by rows),
# and its size as in Model.shape_scale. The vertices of a hull are parameters.
SHAPE = 15
CENTRE, AXES, EXTENT = 0, 3, 12

# A contact point, at L.manifold + POINT * i: the place halfway between both surfaces; the normal, from the first shape to the second; the
# signed distance of the surfaces along the normal, negative if they overlap, FAR where there is no point; and a number that tells which
# features touch, equal for the same contact in successive steps.
POINT = 8
PLACE, AWAY, DISTANCE, FEATURE = 0, 3, 6, 7

# A corner of the part that two faces share, at L.corners + SHARED_CORNER * i: its height above the reference face and its two coordinates
# in that face, and its weight in the choice of contact points.
SHARED_CORNER = 4
HEIGHT, WEIGHT = 0, 3
SHARED_CORNERS = 12  # of two rectangles: four ends each of two pairs of edges, and four corners of the reference face

POINTS_OF_A_PAIR = 4
"""Largest number of contact points of a pair without a hull."""


POINTS_ON_SURFACE = 6
"""Largest number of contact points of a shape that is no hull with a height field or a mesh."""

MOST_POINTS = 10
"""Largest number of contact points of any two shapes: of a hull with a height field or a mesh."""


def points_of(kind: int, other: int) -> int:
    """Number of contact points of a pair of kinds, the lower one first. Kinds beyond those of `kernels.collision.plane` are surfaces."""
    if other > HULL:
        return 3 if kind == SPHERE else MOST_POINTS if kind == HULL else POINTS_ON_SURFACE
    if kind == SPHERE:
        return 1
    if kind == CAPSULE and other <= CYLINDER:
        return 2
    if other == HULL and kind >= BOX and kind != ELLIPSOID:
        return POINTS_OF_A_HULL
    return POINTS_OF_A_PAIR


# What is known of a shape in a step: its place about the origin of its tree; the radius of its bounding sphere; how far from its surface
# contacts are looked for; and its box: one if it was computed, its axes as those of a shape, its middle relative to the place, in world
# axes, and its half sides.
SHAPE_PLACE = 21
BOUND, REACH, BOX_KNOWN, BOX_AXES, BOX_MIDDLE, BOX_HALF = 3, 4, 5, 6, 15, 18

# A contact in a slot: negative where a world has it; the distance of the surfaces, the point halfway between them, the normal and the
# feature; the first candidate of the pair, or the candidate of a plane, and the last dofs of the chains of the second and the first body,
# -1 for none; and the material.
SLOT = 18
SLOT_NEAR, SLOT_GAP, SLOT_POINT, SLOT_NORMAL, SLOT_FEATURE, SLOT_IDS, SLOT_MATERIAL = 0, 1, 2, 5, 8, 9, 12

# Of the pairs that a visit looks at, each lane one of its own world: the place of the first shape; the twist of the second body less
# that of the first one; the sum of margins; and the sum of gaps, far below zero without a pair.
GATHERED = 11
OF_CENTRE, OF_TWIST, OF_MARGIN, OF_SLACK = 0, 3, 9, 10

# What visits need of a shape beside its place: its size, margin, gap and material.
SHAPE_MORE = 11

PAIR_COUNTS = dict(
    pair_numbers=2 * SHAPE,
    manifold_numbers=MOST_POINTS * POINT,
    corner_numbers=SHARED_CORNERS * SHARED_CORNER,
    place_numbers=SHAPE_PLACE,
    pair_work_numbers=SHAPES + 2 * SHAPE,
    matched_numbers=6 * MOST_POINTS,
)
"""Sizes of these records, as counts of `kernels.layout`."""
