"""All functions of a robot of the robot SDK by name, for tests that run each of them."""

import numpy as np


def centre_of_links(robot, state, ref, target):
    """The centre of mass of a list of links, one of them twice."""
    return robot.compute_center_of_mass(state, ref, [target, ref, target])


def torques(robot, state, ref, target):
    robot.compute_inverse_dynamics(state)
    return state.get_tau()


SHARED = {
    "transformation": lambda robot, state, ref, target: robot.compute_transformation(state, ref, target),
    "space_jacobian": lambda robot, state, ref, target: robot.compute_space_jacobian(state, ref, target),
    "body_jacobian": lambda robot, state, ref, target: robot.compute_body_jacobian(state, ref, target),
    "body_velocity": lambda robot, state, ref, target: robot.compute_body_velocity(state, ref, target),
    "center_of_mass": lambda robot, state, ref, target: robot.compute_center_of_mass(state, ref),
    "center_of_mass_of_link": lambda robot, state, ref, target: robot.compute_center_of_mass(state, ref, target),
    "center_of_mass_of_links": centre_of_links,
    "com_jacobian": lambda robot, state, ref, target: robot.compute_center_of_mass_jacobian(state, ref),
    "com_jacobian_of_link": lambda robot, state, ref, target: robot.compute_center_of_mass_jacobian(state, ref, target),
    "total_inertial": lambda robot, state, ref, target: robot.compute_total_inertial(state, ref),
    "gravity_term": lambda robot, state, ref, target: robot.compute_gravity_term(state),
    "inverse_dynamics": torques,
}
"""Of the vendor's library, too. Arguments: robot, state, and indices of a reference and a target link, which have mass."""

FIXED_SIZE = {
    "mass_matrix": lambda robot, state, ref, target: robot.compute_mass_matrix(state),
    "reflective_inertia": lambda robot, state, ref, target: robot.compute_reflective_inertia(state, ref, target),
}
"""Functions that crash in the vendor's library for robots of free size."""

OWN = {
    "distances": lambda robot, state, ref, target: robot.compute_distances(state).distance,
    "nearest_points": lambda robot, state, ref, target: np.stack(robot.compute_distances(state)[1:4], axis=-1),
    "distance_jacobian": lambda robot, state, ref, target: robot.compute_distances(state, jacobian=True).jacobian,
}
"""Functions of newton_like only."""

CALLS = SHARED | FIXED_SIZE | OWN
INPUTS = ("q", "qdot", "qddot", "V0", "Vdot0")


def width(state, name: str) -> int:
    """Numbers in an input of one configuration."""
    return 6 if name[0] == "V" else len(state.joint_names)


def random_input(state, name: str, rng, count: int | None = None) -> np.ndarray:
    return rng.normal(size=(width(state, name),) if count is None else (count, width(state, name)))


def randomize(state, rng, count: int | None = None) -> None:
    """Sets all inputs."""
    for name in INPUTS:
        setattr(state, name, random_input(state, name, rng, count))


def two_links(robot, state, rng) -> tuple[int, int]:
    """Indices of two different links with mass."""
    heavy = [i for i in range(len(state.link_names)) if robot.compute_mass(state, i) > 0.0]
    first, second = rng.choice(heavy, 2, replace=False)
    return int(first), int(second)


def shuffled_state(robot, rng):
    """A state that lists all links and joints in a random order."""
    links, joints = sorted(robot.get_link_names()), sorted(robot.get_joint_names())
    return robot.make_state([str(x) for x in rng.permutation(links)], [str(x) for x in rng.permutation(joints)])


def reach(robot, state, ref: int, target: int) -> float:
    """Ratio of the largest to the smallest eigenvalue of ``J M^-1 J^T`` of directions in which the target can move. The reflective inertia
    has a relative rounding error of some 1e-16 times the ratio."""
    J, M = robot.compute_body_jacobian(state, ref, target), robot.compute_mass_matrix(state)
    sizes = np.linalg.eigvalsh(J @ np.linalg.pinv(M, hermitian=True) @ J.T)
    # smaller ones are rounding errors
    sizes = sizes[sizes > 1e-14 * sizes[-1]]
    return sizes[-1] / sizes[0] if len(sizes) else 1.0
