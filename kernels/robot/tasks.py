"""One program for all quantities of a robot, selected by ``T.quantity``: one kernel serves all calls."""

import types

from newton_like.kernels.robot.newton_euler import LIFTED, MOVING, RESTING

(
    FRAMES, POSE, JACOBIAN, VELOCITY, CENTRE, CENTRE_JACOBIAN, TOTAL_INERTIA, OPERATIONAL, MASS_MATRIX, HOLDING, INVERSE_DYNAMICS,
    DISTANCES, DISTANCE_JACOBIAN, LIFTING, GAPS, NEAREST_POINTS,
) = range(16)  # fmt: skip
FRESH = 64
"""Added to a task: the frames are computed first. Otherwise those in the memory are used."""
MERGED = 128
"""Added to a task that reads masses: the centres of mass are computed first. Tasks of a robot with merged masses read different ones."""
SCALED = 256
"""Added to a task that reads frames, of a robot with coordinates whose units are not radians or metres."""


def robot_task_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``eval_robot`` and ``robot_task``."""

    @m.func
    def run_task(b, t, task: int, T, P, L, mem):
        """The result of a task, from the frames in the memory."""
        if (T.quantity & MERGED) != 0:
            m.place_masses(b, t, T, P, L, mem)
        if task == POSE:
            m.relative_pose(t, T, L, mem)
        if task == JACOBIAN:
            m.walked_jacobian(b, t, T, P, L, mem)
        if task == VELOCITY:
            m.relative_velocity(t, T, L, mem)
        if task == CENTRE:
            m.weighted_centre(b, t, T, P, L, mem)
        if task == CENTRE_JACOBIAN:
            m.weighted_centre_jacobian(b, t, T, P, L, mem)
        if task == TOTAL_INERTIA:
            m.total_inertia(b, t, T, P, L, mem)
        if task == OPERATIONAL:
            m.operational_inertia(b, t, T, P, L, mem)
        if task == MASS_MATRIX:
            m.joint_space_inertia(b, t, T, P, L, mem)
            m.unpack_rows(t, T, L, mem)
        if task == HOLDING:
            m.robot_inverse_dynamics(b, t, RESTING, T, P, L, mem)
        if task == LIFTING:
            m.robot_inverse_dynamics(b, t, LIFTED, T, P, L, mem)
        if task == INVERSE_DYNAMICS:
            m.robot_inverse_dynamics(b, t, MOVING, T, P, L, mem)
        if task == DISTANCES:
            m.capsule_distances(t, T, L, mem)
        if task == DISTANCE_JACOBIAN:
            m.distance_jacobian(t, T, L, mem)
        if task == GAPS:
            m.capsule_gaps(t, T, L, mem)
        if task == NEAREST_POINTS:
            m.points_of_axes(t, L, mem)

    @m.func
    def robot_task(b, t, T, P, L, mem):
        """The task ``T.quantity``, from the frames in the memory."""
        run_task(b, t, T.quantity % FRESH, T, P, L, mem)

    @m.func
    def eval_robot(b, t, T, P, L, mem):
        """The task ``T.quantity``."""
        if (T.quantity & FRESH) != 0:
            if (T.quantity & SCALED) != 0:
                m.scaled_frames(b, t, T, P, L, mem)
            else:
                m.robot_frames(b, t, T, P, L, mem)
        run_task(b, t, T.quantity % FRESH, T, P, L, mem)

    return locals()
