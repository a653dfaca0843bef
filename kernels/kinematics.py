"""Forward kinematics of a whole articulation, from the root to the leaves."""

import types


def kinematics_program(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with ``forward_kinematics`` and ``write_bodies``."""

    @m.func
    def forward_kinematics(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """Poses, motion subspaces and twists of all bodies, from the q and v of the layout."""
        m.set_origin(b, t, T, P, L, mem)
        for k in range(T.bodies):
            m.place_body(b, t, k, T, P, L, mem)

    @m.func
    def write_bodies(b: int, t: int, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory):
        """Public poses and velocities, from the results of forward_kinematics."""
        for k in range(T.bodies):
            m.write_pose(t, k, T.body_slot[k], L, mem)

    return types.SimpleNamespace(**vars(m), forward_kinematics=forward_kinematics, write_bodies=write_bodies)
