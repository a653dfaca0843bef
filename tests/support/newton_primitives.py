"""Newton's functions ``geometry.collide_*`` by the narrow phase of newton_like, so that Newton's own tests of them test it.

The functions of newton_like work with memory of a worker; here that memory is an array of a thread. Contacts that Newton does not list
because they are beyond its margin have the distance `MAXVAL`, as there. Steps find contacts of capsules, boxes and cylinders with planes
from the tables of a model, so these functions find nothing here.
"""

from types import SimpleNamespace

import warp as wp
from newton_like.kernels.collision.pairs.work import LIMIT, PER_UNIT
from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, ELLIPSOID, FAR, SPHERE
from newton_like.kernels.layout import STEP, STEP_ROWS, sizes, stack

from newton_like.collision.closest import _COUNTS
from newton_like.programs.robot import namespace

from newton_like.kernels.collision.pairs.records import (  # isort: skip
    AWAY, AXES, DISTANCE, EXTENT, PAIR_COUNTS, PLACE, POINT, SHAPE,
)  # fmt: skip

MAXVAL = 1.0e10

vec8 = wp.types.vector(8, wp.float32)
mat23 = wp.types.matrix((2, 3), wp.float32)
mat43 = wp.types.matrix((4, 3), wp.float32)
mat83 = wp.types.matrix((8, 3), wp.float32)


def primitives() -> dict:
    """The functions by their names in ``newton.geometry``."""
    m = namespace(1, wp.float32, STEP_ROWS)
    rows = (row for row in STEP if "pairs" in row.read_by.split())
    layout = stack(sizes(rows, SimpleNamespace(**PAIR_COUNTS, **_COUNTS)))
    size = wp.constant(layout["size"])
    shapes_at, manifold_at = wp.constant(layout["pair_shapes"]), wp.constant(layout["manifold"])
    work_at, corners_at = wp.constant(layout["pair_work"]), wp.constant(layout["corners"])

    @wp.struct
    class Points:
        distances: wp.vec4
        places: mat43
        normals: mat43

    @wp.func
    def around(axis: wp.vec3) -> wp.mat33:
        """A rotation that turns z to the axis."""
        other = wp.vec3(1.0, 0.0, 0.0)
        if wp.abs(axis[0]) > 0.7:
            other = wp.vec3(0.0, 1.0, 0.0)
        x = wp.normalize(wp.cross(other, axis))
        return wp.matrix_from_cols(x, wp.cross(axis, x), axis)

    @wp.func
    def layout_of_pair() -> m.Layout:
        L = m.Layout()
        L.pair_shapes = shapes_at
        L.manifold = manifold_at
        L.pair_work = work_at
        L.corners = corners_at
        return L

    @wp.func
    def put_shape(mem: wp.array2d[float], at: int, x: wp.vec3, r: wp.mat33, s: wp.vec3):
        for i in range(3):
            mem[at + i, 0] = x[i]
            mem[at + EXTENT + i, 0] = s[i]
            for j in range(3):
                mem[at + AXES + 3 * i + j, 0] = r[i, j]

    @wp.func
    def deepest_point(n: wp.vec3, o: wp.vec3, other: int, x: wp.vec3, r: wp.mat33, s: wp.vec3):
        """The distance of a shape from the plane through o, and the point halfway between both."""
        mem = wp.zeros(shape=(size, 1), dtype=float)
        T = m.Tree()
        P = m.Params()
        L = layout_of_pair()
        put_shape(mem, shapes_at, wp.vec3(0.0, 0.0, 0.0), wp.identity(n=3, dtype=float), wp.vec3(0.0, 0.0, 0.0))
        put_shape(mem, shapes_at + SHAPE, x - o, r, s)
        m.scale_pair(0, 0, SPHERE, other, 0, 0, 0, 0, T, P, L, mem)
        v = m.support(0, 0, 1, other, 0, 0, m.vec(-n[0], -n[1], -n[2]), T, P, L, mem)
        point = wp.vec3(v.x, v.y, v.z) / mem[work_at + PER_UNIT, 0]
        if other == SPHERE:
            point = point - s[0] * n
        distance = wp.dot(n, point)
        return distance, o + point - 0.5 * distance * n

    @wp.func
    def points_of_pair(
        kind: int, x: wp.vec3, r: wp.mat33, s: wp.vec3, other: int, x2: wp.vec3, r2: wp.mat33, s2: wp.vec3
    ) -> Points:
        mem = wp.zeros(shape=(size, 1), dtype=float)
        T = m.Tree()
        P = m.Params()
        L = layout_of_pair()
        put_shape(mem, shapes_at, wp.vec3(0.0, 0.0, 0.0), r, s)
        put_shape(mem, shapes_at + SHAPE, x2 - x, r2, s2)
        mem[work_at + LIMIT, 0] = FAR
        m.pair_points(0, 0, kind, other, 0, 0, 0, 0, T, P, L, mem)
        points = Points()
        for k in range(4):
            at = manifold_at + POINT * k
            points.distances[k] = wp.min(mem[at + DISTANCE, 0], MAXVAL)
            for i in range(3):
                points.places[k, i] = mem[at + PLACE + i, 0] + x[i]
                points.normals[k, i] = mem[at + AWAY + i, 0]
        return points

    @wp.func
    def first_place(points: Points) -> wp.vec3:
        return wp.vec3(points.places[0, 0], points.places[0, 1], points.places[0, 2])

    @wp.func
    def first_normal(points: Points) -> wp.vec3:
        return wp.vec3(points.normals[0, 0], points.normals[0, 1], points.normals[0, 2])

    @wp.func
    def two_rows(rows: mat43) -> mat23:
        return mat23(rows[0, 0], rows[0, 1], rows[0, 2], rows[1, 0], rows[1, 1], rows[1, 2])

    @wp.func
    def collide_sphere_sphere(pos1: wp.vec3, radius1: float, pos2: wp.vec3, radius2: float):
        one = wp.identity(n=3, dtype=float)
        p = points_of_pair(SPHERE, pos1, one, wp.vec3(radius1, 0.0, 0.0), SPHERE, pos2, one, wp.vec3(radius2, 0.0, 0.0))
        return p.distances[0], first_place(p), first_normal(p)

    @wp.func
    def collide_sphere_capsule(
        pos1: wp.vec3, radius1: float, pos2: wp.vec3, axis2: wp.vec3, radius2: float, half2: float
    ):
        one = wp.identity(n=3, dtype=float)
        s2 = wp.vec3(radius2, half2, 0.0)
        p = points_of_pair(SPHERE, pos1, one, wp.vec3(radius1, 0.0, 0.0), CAPSULE, pos2, around(axis2), s2)
        return p.distances[0], first_place(p), first_normal(p)

    @wp.func
    def collide_sphere_cylinder(
        pos1: wp.vec3, radius1: float, pos2: wp.vec3, axis2: wp.vec3, radius2: float, half2: float
    ):
        one = wp.identity(n=3, dtype=float)
        s2 = wp.vec3(radius2, half2, 0.0)
        p = points_of_pair(SPHERE, pos1, one, wp.vec3(radius1, 0.0, 0.0), CYLINDER, pos2, around(axis2), s2)
        return p.distances[0], first_place(p), first_normal(p)

    @wp.func
    def collide_sphere_box(pos1: wp.vec3, radius1: float, pos2: wp.vec3, rot2: wp.mat33, size2: wp.vec3):
        one = wp.identity(n=3, dtype=float)
        p = points_of_pair(SPHERE, pos1, one, wp.vec3(radius1, 0.0, 0.0), BOX, pos2, rot2, size2)
        return p.distances[0], first_place(p), first_normal(p)

    @wp.func
    def collide_capsule_capsule(
        pos1: wp.vec3, axis1: wp.vec3, radius1: float, half1: float, pos2: wp.vec3, axis2: wp.vec3, radius2: float, half2: float
    ):  # fmt: skip
        s = wp.vec3(radius1, half1, 0.0)
        s2 = wp.vec3(radius2, half2, 0.0)
        p = points_of_pair(CAPSULE, pos1, around(axis1), s, CAPSULE, pos2, around(axis2), s2)
        return wp.vec2(p.distances[0], p.distances[1]), two_rows(p.places), first_normal(p)

    @wp.func
    def collide_capsule_box(
        pos1: wp.vec3, axis1: wp.vec3, radius1: float, half1: float, pos2: wp.vec3, rot2: wp.mat33, size2: wp.vec3
    ):
        p = points_of_pair(CAPSULE, pos1, around(axis1), wp.vec3(radius1, half1, 0.0), BOX, pos2, rot2, size2)
        return wp.vec2(p.distances[0], p.distances[1]), two_rows(p.places), two_rows(p.normals)

    @wp.func
    def collide_box_box(
        pos1: wp.vec3, rot1: wp.mat33, size1: wp.vec3, pos2: wp.vec3, rot2: wp.mat33, size2: wp.vec3, margin: float = 0.0
    ):  # fmt: skip
        p = points_of_pair(BOX, pos1, rot1, size1, BOX, pos2, rot2, size2)
        distances = vec8()
        places = mat83()
        normals = mat83()
        for k in range(8):
            distances[k] = MAXVAL
        for k in range(4):
            if p.distances[k] <= margin:
                distances[k] = p.distances[k]
            for i in range(3):
                places[k, i] = p.places[k, i]
                normals[k, i] = p.normals[k, i]
        return distances, places, normals

    @wp.func
    def collide_plane_sphere(normal: wp.vec3, plane: wp.vec3, pos: wp.vec3, radius: float):
        one = wp.identity(n=3, dtype=float)
        distance, place = deepest_point(normal, plane, SPHERE, pos, one, wp.vec3(radius, 0.0, 0.0))
        return distance, place

    @wp.func
    def collide_plane_ellipsoid(normal: wp.vec3, plane: wp.vec3, pos: wp.vec3, rot: wp.mat33, size: wp.vec3):
        distance, place = deepest_point(normal, plane, ELLIPSOID, pos, rot, size)
        return distance, place, normal

    @wp.func
    def collide_plane_capsule(normal: wp.vec3, plane: wp.vec3, pos: wp.vec3, axis: wp.vec3, radius: float, half: float):
        return wp.vec2(MAXVAL, MAXVAL), mat23(), wp.mat33()

    @wp.func
    def collide_plane_box(normal: wp.vec3, plane: wp.vec3, pos: wp.vec3, rot: wp.mat33, size: wp.vec3):
        return wp.vec4(MAXVAL, MAXVAL, MAXVAL, MAXVAL), mat43(), normal

    @wp.func
    def collide_plane_cylinder(
        normal: wp.vec3, plane: wp.vec3, pos: wp.vec3, axis: wp.vec3, radius: float, half: float
    ):
        return wp.vec4(MAXVAL, MAXVAL, MAXVAL, MAXVAL), mat43(), normal

    return {name: function for name, function in locals().items() if name.startswith("collide_")}
