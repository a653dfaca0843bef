"""Records of surfaces (height fields and triangle meshes on no body), and the memory in which their contacts are looked for.

All lengths are in metres. The search works in the axes of the surface, relative to the centre of the shape that touches it.
"""

from newton_like.kernels.collision.pairs.records import POINT
from newton_like.kernels.collision.pairs.work import PATCH_CORNERS
from newton_like.kernels.collision.plane import HULL

FIELD, TRIANGLES, TRIANGLE = range(HULL + 1, HULL + 4)
"""Kinds of shapes beside those of `kernels.collision.plane`: a height field, a triangle mesh, and one triangle of either. The last one is
the second shape of a pair while a surface is looked at."""

# Table of a height field: numbers of columns and rows; the place of the first height; distances of columns and rows; the largest height.
# Then come the heights, row by row, and for each level the largest height within 2^level cells of each cell, row by row. Heights and
# places are those of the source: factors of the shape are not applied.
COLUMNS, ROWS_OF_FIELD, FIRST_X, FIRST_Y, STEP_X, STEP_Y, HIGHEST, FIELD_HEAD = range(8)
LEVELS = 5

# Table of a mesh: numbers of nodes and triangles. Then come the nodes of a tree of boxes in depth-first order: the lower and upper corner,
# the node that follows if the box is not touched, and the triangle of a leaf, -1 of others. Then come triangles: three corners, and for
# each of the three edges, the first one from corner 0 to corner 1, the corner of the neighbour that is not on the edge.
NODES, MESH_HEAD = 0, 2
NODE, NODE_LOW, NODE_HIGH, NODE_NEXT, NODE_TRIANGLE = 8, 0, 3, 6, 7
CORNERS_OF_TRIANGLE = 18

# The triangle that is looked at: corners, the neighbours' corners, and the normal.
APEX, FACE = 9, 18
TRIANGLE_NUMBERS = 21

# What is found: four points of all shapes, two with other normals, four more of hulls, and the deepest one, as in
# `kernels.collision.pairs.records`, with normals out of the surface; their scores; one for worlds that have a point, and a point on another
# side; the normal of the first point and two directions across it, and a direction across both normals.
PLACES = 11
MORE = 6
FOUND = TRIANGLE_NUMBERS
SCORES = FOUND + POINT * PLACES
SIDES = SCORES + PLACES

# The directions in which the corners of a hull's face are farthest, and one where they are known.
WAYS = SIDES + 14
WAYS_KNOWN = WAYS + 3 * PATCH_CORNERS

# The place of the shape's centre in the axes of the surface, the axes of the surface, and its factors.
MIDDLE = WAYS_KNOWN + 1
SURFACE_AXES = MIDDLE + 3
FACTORS = SURFACE_AXES + 9
# The middle of the shape's box relative to its centre; how far from the surface contacts are looked for; the radius about the
# shape's centre.
INNER = FACTORS + 3
WITHIN = INNER + 3
ROUND = WITHIN + 1
# The box about the shape with that distance, in numbers of the table; the next cell or node; the number of cells; the first column and row
# of cells, and how many columns there are; and the triangle that comes next, -1 if there is none.
LOW = ROUND + 1
HIGH = LOW + 3
CURSOR = HIGH + 3
CELLS = CURSOR + 1
WINDOW = CELLS + 1
NEXT = WINDOW + 3
# One for ends of an axis that are below a height field; and the least deep point behind a mesh: its depth, place, normal and number. For a
# convex shape: the distance of its middle from the closest triangle that it is behind, its height above the plane of this triangle, one
# where it is straight below, one where the shape overlaps a triangle that its middle is in front of, the normal and the number of the
# triangle; and the height of its lowest point above a triangle that it may pass beside, and the number of this triangle.
SUNK = NEXT + 1
BEHIND = SUNK + 2
BEHIND_NUMBERS = 10
# the smallest distance of an end from what is in front of it
FRONT = BEHIND + BEHIND_NUMBERS
# One where a contact at a corner has yet to be compared with all triangles there, then the number of noted contacts, and these: the point
# on the surface, the normal, the place, the distance, the feature, one while no triangle speaks against it, the length of the way
# from the point against the normal that has to be inside of the surface, and one if the point is a corner. They are decided once there are
# more than UNSURES less PER_LOOK: one look at a triangle adds up to PER_LOOK.
MAYBE = FRONT + 1
UNSURE = MAYBE + 2
UNSURE_NUMBERS = 14
UNSURES, PER_LOOK = 8, 5
SURFACE_WORK = UNSURE + UNSURES * UNSURE_NUMBERS
