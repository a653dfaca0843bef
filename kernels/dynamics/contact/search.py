"""The solution for the forces of rigid contact, one sweep at a time. Code for gradients has no loops; separate sweeps keep it short.

The programs split those of `kernels.dynamics.contact.rigid`: one computes the blocks of all points, one sweeps over them once, and one
computes the results. They pass the state of the iteration in the rows `search` and `found`.
"""

import types

from newton_like.kernels.dynamics.contact.rigid import BLOCK, START


def contact_search_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_contact_blocks``, ``eval_impact_blocks``, ``eval_contact_sweep``, ``eval_impact_bounce``,
    ``eval_contact_results`` and ``eval_impact_results``."""

    @m.func
    def carry(t, rows: int, place: int, n: int, out: int, mem):
        """Copies n rows from `rows` to `place` if `out` is 1, from `place` to `rows` if it is 0."""
        if out == 1:
            m.copy(t, place, rows, n, mem)
        else:
            m.copy(t, rows, place, n, mem)

    @m.func
    def carry_search(t, at: int, out: int, T, L, mem):
        """Copies z, previous_z, momentum, point_force and the changing part of the blocks to `at` (`out` 1) or from there (`out` 0)."""
        carry(t, L.z, at, T.dofs, out, mem)
        carry(t, L.previous_z, at + T.columns, T.dofs, out, mem)
        carry(t, L.momentum, at + 2 * T.columns, 1, out, mem)
        for i in range(T.points):
            place = at + 2 * T.columns + 1 + 9 * i
            carry(t, L.contact + BLOCK * i + START, place, 6, out, mem)
            carry(t, L.point_force + 3 * i, place + 6, 3, out, mem)

    @m.func
    def open_search(t, T, L, mem):
        """Loads the state of the iteration from `search`."""
        carry_search(t, L.search, 0, T, L, mem)

    @m.func
    def close_search(t, T, L, mem):
        """found <- the state of the iteration."""
        m.clear(t, L.found, 2 * T.columns, mem)
        carry_search(t, L.found, 1, T, L, mem)

    @m.func
    def clear_blocks(t, T, L, mem):
        """Clears the blocks and rows of all points, because those of points that no dof moves are not written otherwise."""
        m.clear(t, L.contact, BLOCK * T.points, mem)
        m.clear(t, L.contact_y, 3 * T.reach * T.points, mem)

    @m.func
    def eval_contact_blocks(b, t, T, P, L, mem):
        """contact, contact_y, h, root, point_depth <- see `contact_blocks`; found <- the start of the iteration"""
        clear_blocks(t, T, L, mem)
        m.contact_blocks(b, t, T, P, L, mem)
        m.begin_search(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_impact_blocks(b, t, T, P, L, mem):
        """contact, contact_y, h, root <- see `impact_blocks`; found <- the start of the iteration"""
        clear_blocks(t, T, L, mem)
        m.impact_blocks(b, t, T, P, L, mem)
        m.begin_search(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_contact_sweep(b, t, T, P, L, mem):
        """found <- `search` after one sweep"""
        open_search(t, T, L, mem)
        m.sweep_points(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_impact_bounce(b, t, T, P, L, mem):
        """impulse, acceleration, next_contact <- see `bounce`; found <- the start of the second iteration"""
        open_search(t, T, L, mem)
        m.bounce(t, T, L, mem)
        m.copy(t, L.next_contact, L.contact, BLOCK * T.points, mem)
        m.begin_search(t, T, L, mem)
        close_search(t, T, L, mem)

    @m.func
    def eval_contact_results(b, t, T, P, L, mem):
        """point_force, vector, second <- the results after the last sweep"""
        m.forward_kinematics(b, t, T, P, L, mem)
        m.clear(t, L.vector, T.columns, mem)
        open_search(t, T, L, mem)
        m.contact_results(t, T, L, mem)

    @m.func
    def eval_impact_results(b, t, T, P, L, mem):
        """point_force, next_v <- the results after the last sweep"""
        open_search(t, T, L, mem)
        m.impact_results(t, T, L, mem)

    return locals()
