"""Coordinates of articulations on their configuration manifold."""

import types


def configuration_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_configuration``, ``eval_local_coordinates``, ``eval_global_coordinates`` and
    ``eval_velocity_of_rate``.

    Results have the size of the largest articulation. Entries beyond the size of a smaller one are zero: no program writes them, and
    memory is allocated with zeros.
    """

    @m.func
    def eval_configuration(b, t, T, P, L, mem):
        """third <- q normalised, q made principal, or the zero configuration, selected by ``T.configuration_mode``."""
        for k in range(T.bodies):
            m.choose_joint(t, k, L.third, T, L, mem)

    @m.func
    def eval_local_coordinates(b, t, T, P, L, mem):
        """vector, third <- local coordinates of q about the coordinates at `second`, and their rates at the velocities v."""
        for k in range(T.bodies):
            m.local_joint(b, t, k, T, P, L, mem)

    @m.func
    def eval_global_coordinates(b, t, T, P, L, mem):
        """third <- the coordinates with the local coordinates `vector` about q."""
        for k in range(T.bodies):
            m.global_joint(t, k, T, L, mem)

    @m.func
    def eval_velocity_of_rate(b, t, T, P, L, mem):
        """vector <- the velocities at which q has the time derivative `second`."""
        for k in range(T.bodies):
            m.velocity_of_rate(b, t, k, T, P, L, mem)

    return locals()
