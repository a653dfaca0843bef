"""Triangles of a mesh that are near a shape, one at a time in every world: a tree of boxes in depth-first order.

A node whose box is not touched is left for the node that follows its part of the tree, so no stack is needed.
"""

import types

import warp as wp

from newton_like.kernels.collision.surfaces.records import (  # isort: skip
    CELLS, CORNERS_OF_TRIANGLE, CURSOR, FACTORS, HIGH, LOW, MESH_HEAD, MIDDLE, NEXT, NODE, NODE_HIGH, NODE_LOW, NODE_NEXT,
    NODE_TRIANGLE, NODES,
)  # fmt: skip


def mesh_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``open_mesh``, ``next_of_mesh`` and ``load_of_mesh``."""
    real = m.real

    @m.func
    def open_mesh(t, at: int, L, mem, T):
        """Starts the search in the box of ``surface_work``."""
        m.put(mem, L.surface_work + CURSOR, t, m.fill(real(0.0)))
        m.put(mem, L.surface_work + CELLS, t, m.fill(T.surface_table[at + NODES]))

    @m.func
    def node_number(at: int, index: m.lane, i: int, T) -> m.lane:
        """Number i of a node."""
        return m.look_up(T.surface_table, at + MESH_HEAD + i, m.mul(m.fill(real(NODE)), index))

    @m.func
    def overlap(low: m.lane, high: m.lane, from_: m.lane, to: m.lane, where: m.lane) -> m.lane:
        """`where` if two intervals overlap, else zero."""
        zero = m.fill(real(0.0))
        return m.where_lt(high, from_, zero, m.where_lt(to, low, zero, where))

    @m.func
    def next_of_mesh(t, at: int, L, mem, T):
        """NEXT <- the next triangle of the search whose box touches the box, -1 where there is none."""
        w = L.surface_work
        zero = m.fill(real(0.0))
        one = m.fill(real(1.0))
        half = m.fill(real(0.5))
        low = m.get3(mem, w + LOW, t)
        high = m.get3(mem, w + HIGH, t)
        count = m.get(mem, w + CELLS, t)
        cursor = m.get(mem, w + CURSOR, t)
        last = m.sub(count, one)
        found = m.fill(real(-1.0))
        going = m.where_lt(cursor, count, one, zero)
        while m.any_lt(zero, going):
            node = m.smaller(cursor, last)
            hit = overlap(low.x, high.x, node_number(at, node, NODE_LOW, T), node_number(at, node, NODE_HIGH, T), going)
            hit = overlap(
                low.y, high.y, node_number(at, node, NODE_LOW + 1, T), node_number(at, node, NODE_HIGH + 1, T), hit
            )
            hit = overlap(
                low.z, high.z, node_number(at, node, NODE_LOW + 2, T), node_number(at, node, NODE_HIGH + 2, T), hit
            )
            following = m.where_lt(half, hit, m.add(cursor, one), node_number(at, node, NODE_NEXT, T))
            triangle = node_number(at, node, NODE_TRIANGLE, T)
            hit = m.where_lt(triangle, zero, zero, hit)
            found = m.where_lt(half, hit, triangle, found)
            cursor = m.where_lt(half, going, following, cursor)
            going = m.where_lt(half, hit, zero, going)
            going = m.where_lt(cursor, count, going, zero)
        m.put(mem, w + CURSOR, t, cursor)
        m.put(mem, w + NEXT, t, found)

    @m.shared
    def load_of_mesh(t: int, at: int, L, mem, T):
        """Stores the corners of the triangle NEXT and of its neighbours."""
        w = L.surface_work
        index = m.mul(m.fill(real(CORNERS_OF_TRIANGLE)), m.larger(m.get(mem, w + NEXT, t), m.fill(real(0.0))))
        nodes = wp.int32(T.surface_table[at + NODES])
        first = at + MESH_HEAD + NODE * nodes
        factors = m.get3(mem, w + FACTORS, t)
        middle = m.get3(mem, w + MIDDLE, t)
        for i in range(int(6)):
            x = m.look_up(T.surface_table, first + 3 * i, index)
            y = m.look_up(T.surface_table, first + 3 * i + 1, index)
            z = m.look_up(T.surface_table, first + 3 * i + 2, index)
            p = m.vec(m.mul(factors.x, x), m.mul(factors.y, y), m.mul(factors.z, z))
            m.put3(mem, w + 3 * i, t, m.sub3(p, middle))

    return locals()
