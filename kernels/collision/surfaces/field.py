"""Triangles of a height field that are near a shape, one at a time in every world.

The cell of column c and row r has two triangles: (c, r), (c + 1, r), (c + 1, r + 1), and (c, r), (c + 1, r + 1), (c, r + 1), with the
numbers 2 k and 2 k + 1 for k = c + columns r. Beyond the edges the neighbours of triangles go straight down.
"""

import types

from newton_like.kernels.collision.plane import FAR

from newton_like.kernels.collision.surfaces.records import (  # isort: skip
    APEX, CELLS, COLUMNS, CURSOR, FACTORS, FIELD_HEAD, FIRST_X, FIRST_Y, HIGH, HIGHEST, LEVELS, LOW, MIDDLE, NEXT, ROWS_OF_FIELD, STEP_X,
    STEP_Y, WINDOW,
)  # fmt: skip


def field_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``field_height_within``, ``open_field``, ``next_of_field``, ``load_of_field`` and ``field_below``."""
    real = m.real

    @m.func
    def cell_of(x: m.lane, first: m.lane, step: m.lane, count: m.lane) -> m.lane:
        """The column of cells that x is in, or the nearest one; `count` is the number of columns of heights."""
        last = m.sub(count, m.fill(real(2.0)))
        return m.within(m.floor(m.div(m.sub(x, first), step)), m.fill(real(0.0)), last)

    @m.func
    def field_height_within(at: int, x: m.lane, y: m.lane, radius_x: m.lane, radius_y: m.lane, T) -> m.lane:
        """A height that the field does not exceed within a box about x, y; in numbers of the table at `at`."""
        table = T.surface_table
        columns = m.fill(table[at + COLUMNS])
        rows = m.fill(table[at + ROWS_OF_FIELD])
        step_x = m.fill(table[at + STEP_X])
        step_y = m.fill(table[at + STEP_Y])
        one = m.fill(real(1.0))
        column = cell_of(x, m.fill(table[at + FIRST_X]), step_x, columns)
        row = cell_of(y, m.fill(table[at + FIRST_Y]), step_y, rows)
        wide = m.sub(columns, one)
        size = m.mul(wide, m.sub(rows, one))
        cells = m.add(one, m.larger(m.div(radius_x, step_x), m.div(radius_y, step_y)))
        level = m.fill(real(0.0))
        reach = m.fill(real(1.0))
        for _level in range(LEVELS - 1):
            level = m.where_lt(reach, cells, m.add(level, one), level)
            reach = m.add(reach, reach)
        start = m.mul(columns, rows)
        index = m.add(m.fma(level, size, start), m.fma(row, wide, column))
        height = m.look_up(table, at + FIELD_HEAD, index)
        return m.where_lt(reach, cells, m.fill(table[at + HIGHEST]), height)

    @m.func
    def open_field(t, at: int, L, mem, T):
        """Starts the search in the box of ``surface_work``."""
        table = T.surface_table
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        columns = m.fill(table[at + COLUMNS])
        rows = m.fill(table[at + ROWS_OF_FIELD])
        first = m.vec(m.fill(table[at + FIRST_X]), m.fill(table[at + FIRST_Y]), zero)
        step = m.vec(m.fill(table[at + STEP_X]), m.fill(table[at + STEP_Y]), zero)
        low = m.get3(mem, w + LOW, t)
        high = m.get3(mem, w + HIGH, t)
        c0 = cell_of(low.x, first.x, step.x, columns)
        c1 = cell_of(high.x, first.x, step.x, columns)
        r0 = cell_of(low.y, first.y, step.y, rows)
        r1 = cell_of(high.y, first.y, step.y, rows)
        wide = m.add(m.sub(c1, c0), one)
        cells = m.mul(wide, m.add(m.sub(r1, r0), one))
        # boxes beside the field
        cells = m.where_lt(high.x, first.x, zero, cells)
        cells = m.where_lt(high.y, first.y, zero, cells)
        cells = m.where_lt(m.fma(m.sub(columns, one), step.x, first.x), low.x, zero, cells)
        cells = m.where_lt(m.fma(m.sub(rows, one), step.y, first.y), low.y, zero, cells)
        m.put(mem, w + CURSOR, t, zero)
        m.put(mem, w + CELLS, t, m.add(cells, cells))
        m.put3(mem, w + WINDOW, t, m.vec(c0, r0, wide))

    @m.func
    def next_of_field(t, at: int, L, mem, T):
        """NEXT <- the next triangle of the search that is not below the box, -1 where there is none."""
        table = T.surface_table
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        columns = m.fill(table[at + COLUMNS])
        rows = m.fill(table[at + ROWS_OF_FIELD])
        low = m.get(mem, w + LOW + 2, t)
        window = m.get3(mem, w + WINDOW, t)
        count = m.get(mem, w + CELLS, t)
        cursor = m.get(mem, w + CURSOR, t)
        found = m.fill(real(-1.0))
        going = m.where_lt(cursor, count, one, zero)
        while m.any_lt(zero, going):
            cell = m.floor(m.mul(half, cursor))
            upper = m.fnma(m.fill(real(2.0)), cell, cursor)
            row = m.floor(m.div(m.add(cell, half), window.z))
            column = m.add(m.fnma(row, window.z, cell), window.x)
            row = m.within(m.add(row, window.y), zero, m.sub(rows, m.fill(real(2.0))))
            column = m.within(column, zero, m.sub(columns, m.fill(real(2.0))))
            index = m.fma(row, columns, column)
            across = m.add(index, m.add(columns, one))
            beside = m.add(index, m.where_lt(half, upper, columns, one))
            height = m.larger(
                m.look_up(table, at + FIELD_HEAD, index),
                m.larger(m.look_up(table, at + FIELD_HEAD, across), m.look_up(table, at + FIELD_HEAD, beside)),
            )
            hit = m.where_lt(low, height, going, zero)
            found = m.where_lt(half, hit, m.fma(index, m.fill(real(2.0)), upper), found)
            cursor = m.add(cursor, going)
            going = m.where_lt(half, hit, zero, going)
            going = m.where_lt(cursor, count, going, zero)
        m.put(mem, w + CURSOR, t, cursor)
        m.put(mem, w + NEXT, t, found)

    @m.func
    def field_point(t, at: int, column: m.lane, row: m.lane, L, mem, T) -> m.Vec3:
        """The place of a height relative to the shape's centre. The height of what is beyond the edge is that of the edge."""
        table = T.surface_table
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        columns = m.fill(table[at + COLUMNS])
        c = m.within(column, zero, m.sub(columns, one))
        r = m.within(row, zero, m.sub(m.fill(table[at + ROWS_OF_FIELD]), one))
        x = m.fma(column, m.fill(table[at + STEP_X]), m.fill(table[at + FIRST_X]))
        y = m.fma(row, m.fill(table[at + STEP_Y]), m.fill(table[at + FIRST_Y]))
        z = m.look_up(table, at + FIELD_HEAD, m.fma(r, columns, c))
        factors = m.get3(mem, w + FACTORS, t)
        place = m.vec(m.mul(factors.x, x), m.mul(factors.y, y), m.mul(factors.z, z))
        return m.sub3(place, m.get3(mem, w + MIDDLE, t))

    @m.func
    def field_apex(t, at: int, column: m.lane, row: m.lane, edge: m.Vec3, L, mem, T) -> m.Vec3:
        """The same for the corner of a neighbour at an edge that starts at `edge`."""
        table = T.surface_table
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        p = field_point(t, at, column, row, L, mem, T)
        beyond = m.where_lt(m.smaller(column, row), zero, one, zero)
        last = m.sub(m.fill(table[at + COLUMNS]), one)
        beyond = m.where_lt(last, column, one, beyond)
        last = m.sub(m.fill(table[at + ROWS_OF_FIELD]), one)
        beyond = m.where_lt(last, row, one, beyond)
        drop = m.add(m.fill(table[at + STEP_X]), m.fill(table[at + STEP_Y]))
        drop = m.mul(drop, m.sign_of(m.get(mem, L.surface_work + FACTORS + 2, t)))
        down = m.vec(edge.x, edge.y, m.sub(edge.z, drop))
        return m.where3_lt(zero, beyond, down, p)

    @m.shared
    def load_of_field(t: int, at: int, neighbours: int, L, mem, T):
        """Stores the corners of the triangle NEXT; if `neighbours` is 1, those of its neighbours, once its own are stored."""
        table = T.surface_table
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        number = m.larger(m.get(mem, w + NEXT, t), zero)
        columns = m.fill(table[at + COLUMNS])
        cell = m.floor(m.mul(half, number))
        u = m.fnma(m.fill(real(2.0)), cell, number)
        v = m.sub(one, u)
        r = m.floor(m.div(m.add(cell, half), columns))
        c = m.fnma(r, columns, cell)
        after = m.add(c, one)
        above = m.add(r, one)
        if neighbours == 0:
            m.put3(mem, w, t, field_point(t, at, c, r, L, mem, T))
            m.put3(mem, w + 3, t, field_point(t, at, after, m.add(r, u), L, mem, T))
            m.put3(mem, w + 6, t, field_point(t, at, m.add(c, v), above, L, mem, T))
        else:
            p = m.get3(mem, w, t)
            q = m.get3(mem, w + 3, t)
            s = m.get3(mem, w + 6, t)
            m.put3(mem, w + APEX, t, field_apex(t, at, m.add(c, u), m.sub(r, v), p, L, mem, T))
            m.put3(mem, w + APEX + 3, t, field_apex(t, at, m.add(after, v), m.add(above, u), q, L, mem, T))
            m.put3(mem, w + APEX + 6, t, field_apex(t, at, m.sub(c, u), m.add(r, v), s, L, mem, T))

    @m.func
    def field_below(t, at: int, x: m.Vec3, L, mem, T) -> m.lane:
        """One where the field is straight above or below the point x, which is relative to the shape's centre; NEXT <- the triangle
        there."""
        table = T.surface_table
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        factors = m.get3(mem, w + FACTORS, t)
        p = m.add3(x, m.get3(mem, w + MIDDLE, t))
        columns = m.fill(table[at + COLUMNS])
        rows = m.fill(table[at + ROWS_OF_FIELD])
        u = m.div(m.sub(m.div(p.x, factors.x), m.fill(table[at + FIRST_X])), m.fill(table[at + STEP_X]))
        v = m.div(m.sub(m.div(p.y, factors.y), m.fill(table[at + FIRST_Y])), m.fill(table[at + STEP_Y]))
        c = m.within(m.floor(u), zero, m.sub(columns, m.fill(real(2.0))))
        r = m.within(m.floor(v), zero, m.sub(rows, m.fill(real(2.0))))
        upper = m.where_lt(m.sub(u, c), m.sub(v, r), one, zero)
        m.put(mem, w + NEXT, t, m.fma(m.fill(real(2.0)), m.fma(r, columns, c), upper))
        inside = m.where_lt(m.smaller(u, v), zero, zero, one)
        inside = m.where_lt(m.sub(columns, one), u, zero, inside)
        inside = m.where_lt(m.sub(rows, one), v, zero, inside)
        return m.where_lt(m.magnitude(p.z), m.fill(real(FAR)), inside, zero)

    return locals()
