"""Kernels of contact sensors: sums of contact forces by sensing object and counterpart.

Each contact has two entries, one for each of its shapes. Entries are sorted by the row of the sensing object, so that one thread adds the
forces of a row, in the order of the list.
"""

import types
from functools import cache

import warp as wp

NO_ROW = 2147483647


@cache
def sensor_kernels(real):
    """Kernels for the scalar type `real`: `place` over sensing objects, `list_rows` over contacts, `add_forces` over sensing objects."""
    vec3 = wp.types.vector(3, real)
    wrench = wp.types.vector(6, real)
    transform = wp.types.transformation(real)

    @wp.func
    def pose(body: int, body_q: wp.array[transform]) -> transform:
        """The pose of a body; -1 is the world."""
        if body >= 0:
            return body_q[body]
        return wp.transform_identity(dtype=real)

    @wp.kernel(module="unique", enable_backward=False)
    def place(
        indices: wp.array[int],
        of_shapes: bool,
        shape_body: wp.array[int],
        shape_transform: wp.array[transform],
        body_q: wp.array[transform],
        # out:
        transforms: wp.array[transform],
    ):
        i = wp.tid()
        s = indices[i]
        if of_shapes:
            transforms[i] = wp.transform_multiply(pose(shape_body[s], body_q), shape_transform[s])
        else:
            transforms[i] = body_q[s]

    @wp.kernel(module="unique", enable_backward=False)
    def list_rows(
        count: wp.array[int],
        shape0: wp.array[int],
        shape1: wp.array[int],
        row_of: wp.array[int],
        # out: the row of each entry, and the entry: twice the contact, and one more for its second shape
        row: wp.array[int],
        entry: wp.array[int],
    ):
        i = wp.tid()
        for side in range(2):
            e = 2 * i + side
            row[e] = NO_ROW
            entry[e] = e
            if i < count[0]:
                s = shape0[i]
                if side == 1:
                    s = shape1[i]
                if s >= 0 and s < row_of.shape[0]:
                    if row_of[s] >= 0:
                        row[e] = row_of[s]

    @wp.func
    def surface_point(x: vec3, body: int, offset: vec3, body_q: wp.array[transform]) -> vec3:
        return wp.transform_point(pose(body, body_q), x) + offset

    @wp.func
    def column_for(shape: int, world: int, shape_world: wp.array[int], column_of: wp.array[int]) -> int:
        """The column of a shape in a row of a world, -1 for none; worlds share columns. World -1: all shapes are of one world."""
        if shape < 0 or shape >= column_of.shape[0]:
            return -1
        if shape_world[shape] >= 0 and world >= 0 and shape_world[shape] != world:
            return -1
        return column_of[shape]

    @wp.kernel(module="unique", enable_backward=False)
    def add_forces(
        # sorted rows of entries
        entries: int,
        row: wp.array[int],
        entry: wp.array[int],
        row_world: wp.array[int],
        column_of: wp.array[int],
        # contacts:
        shape0: wp.array[int],
        shape1: wp.array[int],
        point0: wp.array[vec3],
        point1: wp.array[vec3],
        normal: wp.array[vec3],
        margin0: wp.array[real],
        margin1: wp.array[real],
        force: wp.array[wrench],
        # Model and state; no poses: no positions
        shape_body: wp.array[int],
        shape_world: wp.array[int],
        body_q: wp.array[transform],
        # out, each may be empty; matrices and weights are zero:
        total: wp.array[vec3],
        total_friction: wp.array[vec3],
        matrix: wp.array2d[vec3],
        matrix_friction: wp.array2d[vec3],
        position: wp.array2d[vec3],
        weight: wp.array2d[real],
    ):
        r = wp.tid()
        zero = vec3(real(0.0), real(0.0), real(0.0))
        # the first entry of the row
        low = int(0)
        high = int(entries)
        while low < high:
            middle = (low + high) // 2
            if row[middle] < r:
                low = middle + 1
            else:
                high = middle
        whole = zero
        whole_friction = zero
        for k in range(low, entries):
            if row[k] != r:
                break
            i = entry[k] // 2
            f = vec3(force[i][0], force[i][1], force[i][2])
            other = shape1[i]
            if entry[k] % 2 == 1:
                f = -f
                other = shape0[i]
            n = normal[i]
            square = wp.dot(n, n)
            friction = f
            if square > real(0.0):
                friction = f - n * (wp.dot(f, n) / square)
            whole += f
            whole_friction += friction
            column = column_for(other, row_world[r], shape_world, column_of)
            if column >= 0:
                matrix[r, column] = matrix[r, column] + f
                matrix_friction[r, column] = matrix_friction[r, column] + friction
                if body_q.shape[0] > 0:
                    size = wp.length(f)
                    one = surface_point(point0[i], shape_body[shape0[i]], n * margin0[i], body_q)
                    two = surface_point(point1[i], shape_body[shape1[i]], n * (-margin1[i]), body_q)
                    position[r, column] = position[r, column] + (one + two) * (real(0.5) * size)
                    weight[r, column] = weight[r, column] + size
        if total.shape[0] > 0:
            total[r] = whole
            total_friction[r] = whole_friction
        # weighted sums become means, once each
        for k in range(low, entries):
            if row[k] != r or matrix.shape[1] == 0:
                break
            other = shape1[entry[k] // 2]
            if entry[k] % 2 == 1:
                other = shape0[entry[k] // 2]
            column = column_for(other, row_world[r], shape_world, column_of)
            if column >= 0:
                size = weight[r, column]
                weight[r, column] = real(0.0)
                if size > real(0.0):
                    position[r, column] = position[r, column] / size

    return types.SimpleNamespace(place=place, list_rows=list_rows, add_forces=add_forces)
