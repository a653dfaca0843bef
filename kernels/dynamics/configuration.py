"""Coordinates of whole articulations as points of their manifold, joint by joint."""

import types


def configuration_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_configuration``, ``eval_local_coordinates``, ``eval_global_coordinates`` and
    ``eval_velocity_of_rate``.

    What an articulation has less of than the largest one is zero in the results: no program writes there, and memory is zero when it
    is made.
    """

    @m.func
    def eval_configuration(b, t, T, P, L, mem):
        """third <- coordinates as ``T.configuration_mode`` asks for them: q normalised or made principal, or of no motion."""
        for k in range(T.bodies):
            m.choose_joint(t, k, L.third, T, L, mem)

    @m.func
    def eval_local_coordinates(b, t, T, P, L, mem):
        """vector, third <- local coordinates of q about the coordinates at `second`, and their rates at the velocities v."""
        for k in range(T.bodies):
            m.local_joint(b, t, k, T, P, L, mem)

    @m.func
    def eval_global_coordinates(b, t, T, P, L, mem):
        """third <- the coordinates whose local ones about q are at `vector`."""
        for k in range(T.bodies):
            m.global_joint(t, k, T, L, mem)

    @m.func
    def eval_velocity_of_rate(b, t, T, P, L, mem):
        """vector <- the velocities with which q changes at the rates at `second`."""
        for k in range(T.bodies):
            m.velocity_of_rate(b, t, k, T, P, L, mem)

    return locals()
