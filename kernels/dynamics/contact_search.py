"""The search for the forces of rigid contact, a sweep at a time: code without loops, as gradients need it, stays short.

What `rigid_contact` does in one program is done here by several that hand each other what they find: one makes the blocks of all points,
one sweeps over them once, one says what came of it.
"""

import types

from newton_like.kernels.dynamics.rigid_contact import BEFORE, BLOCK, START


def contact_search_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the programs of a search: ``eval_contact_blocks``, ``eval_impact_blocks``, ``eval_contact_sweep``,
    ``eval_impact_bounce``, ``eval_contact_results`` and ``eval_impact_results``."""

    @m.func
    def open_search(t, T, L, mem):
        """z, previous_z, momentum, point_force and what changes of the blocks <- search."""
        at = L.search
        for i in range(T.dofs):
            m.put(mem, L.z + i, t, m.get(mem, at + i, t))
            m.put(mem, L.previous_z + i, t, m.get(mem, at + T.columns + i, t))
        m.put(mem, L.momentum, t, m.get(mem, at + 2 * T.columns, t))
        at = at + 2 * T.columns + 1
        for i in range(T.points):
            m.put3(mem, L.contact + BLOCK * i + START, t, m.get3(mem, at + 9 * i, t))
            m.put3(mem, L.contact + BLOCK * i + BEFORE, t, m.get3(mem, at + 9 * i + 3, t))
            m.put3(mem, L.point_force + 3 * i, t, m.get3(mem, at + 9 * i + 6, t))

    @m.func
    def close_search(t, T, L, mem):
        """found <- the same."""
        at = L.found
        m.clear(t, at, 2 * T.columns, mem)
        for i in range(T.dofs):
            m.put(mem, at + i, t, m.get(mem, L.z + i, t))
            m.put(mem, at + T.columns + i, t, m.get(mem, L.previous_z + i, t))
        m.put(mem, at + 2 * T.columns, t, m.get(mem, L.momentum, t))
        at = at + 2 * T.columns + 1
        for i in range(T.points):
            m.put3(mem, at + 9 * i, t, m.get3(mem, L.contact + BLOCK * i + START, t))
            m.put3(mem, at + 9 * i + 3, t, m.get3(mem, L.contact + BLOCK * i + BEFORE, t))
            m.put3(mem, at + 9 * i + 6, t, m.get3(mem, L.point_force + 3 * i, t))

    @m.func
    def clear_blocks(t, T, L, mem):
        """Of points that nothing moves, nobody else writes them."""
        m.clear(t, L.contact, BLOCK * T.points, mem)
        m.clear(t, L.contact_y, 3 * T.reach * T.points, mem)

    @m.func
    def eval_contact_blocks(b, t, T, P, L, mem):
        """contact, contact_y, h, root, point_depth <- see `contact_blocks`; found <- where a search starts"""
        clear_blocks(t, T, L, mem)
        m.contact_blocks(b, t, T, P, L, mem)
        m.begin_search(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_impact_blocks(b, t, T, P, L, mem):
        """contact, contact_y, h, root <- see `impact_blocks`; found <- where a search starts"""
        clear_blocks(t, T, L, mem)
        m.impact_blocks(b, t, T, P, L, mem)
        m.begin_search(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_contact_sweep(b, t, T, P, L, mem):
        """found <- search after a sweep"""
        open_search(t, T, L, mem)
        m.sweep_points(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_impact_bounce(b, t, T, P, L, mem):
        """impulse, acceleration, next_contact <- see `bounce`; found <- where the second search starts"""
        open_search(t, T, L, mem)
        m.bounce(t, T, L, mem)
        for i in range(BLOCK * T.points):
            m.put(mem, L.next_contact + i, t, m.get(mem, L.contact + i, t))
        m.begin_search(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_contact_results(b, t, T, P, L, mem):
        """point_force, vector, second <- from the end of a search"""
        m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.columns, mem)
        open_search(t, T, L, mem)
        m.contact_results(t, T, L, mem)

    @m.func
    def eval_impact_results(b, t, T, P, L, mem):
        """point_force, next_v <- from the end of a search"""
        open_search(t, T, L, mem)
        m.impact_results(t, T, L, mem)

    return locals()
