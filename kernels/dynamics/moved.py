"""Coordinates, and poses of bodies, a time before or after a state, at constant joint velocities."""

import types


def moved_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_moved`` and ``eval_displaced``."""

    @m.func
    def eval_moved(b, t, T, P, L, mem):
        """body_q, origin <- poses of bodies, and the reference point of the tree, at q moved by the time at `weights` with v."""
        for k in range(T.bodies):
            m.retract_joint(b, t, k, m.get(mem, L.weights, t), L.v, L.q, T, P, L, mem)
        m.eval_fk(b, t, T, P, L, mem)

    @m.func
    def eval_displaced(b, t, T, P, L, mem):
        """q <- q moved by the velocities v in the time 1"""
        for k in range(T.bodies):
            m.retract_joint(b, t, k, m.fill(m.real(1.0)), L.v, L.q, T, P, L, mem)

    return locals()
