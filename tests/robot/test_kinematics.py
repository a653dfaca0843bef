"""Poses, Jacobians and velocities of links from their definitions: poses by matrix exponentials, Jacobians by differences of poses."""

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import cross_matrix, link_poses, random_pose, random_robot
from tests.support.robot_calls import random_input, shuffled_state

STEP = 1e-6
SLACK = 3e-8  # of central differences with this step, for robots of some metres


class Case:
    """A robot at random coordinates, and its poses from the definition."""

    def __init__(self, rng, joints: int = 9, unit: bool = False):
        self.base = random_robot(rd, rng.integers(2**32), joints, unit=unit, helical=not unit)[0][0]
        self.robot = rd.Robot(rd.RobotConfiguration("case", self.base))
        self.state = shuffled_state(self.robot, rng)
        self.q = random_input(self.state, "q", rng)
        self.state.q, self._poses = self.q, {}

    def poses(self, q) -> dict[str, np.ndarray]:
        """Of all links in the base link."""
        key = tuple(q)
        if key not in self._poses:
            self._poses[key] = link_poses(self.base, dict(zip(self.state.joint_names, q, strict=True)))
        return self._poses[key]

    def pose(self, ref: int, target: int, q=None) -> np.ndarray:
        """Of the target link in the reference link."""
        poses = self.poses(self.q if q is None else q)
        ref, target = self.state.link_names[ref], self.state.link_names[target]
        return np.linalg.inv(poses[ref]) @ poses[target]

    def pairs(self, rng, count: int = 4):
        """Links, among them the base link as reference, as target, and one link twice."""
        n, base = len(self.state.link_names), self.state.base_link_idx
        return [(base, n - 1), (n - 1, base), (1, 1), *map(tuple, rng.integers(0, n, (count, 2)).tolist())]


def twist(rate: np.ndarray) -> np.ndarray:
    """``[w, v]`` of a matrix ``[[w], v]``."""
    w = 0.5 * np.array([rate[2, 1] - rate[1, 2], rate[0, 2] - rate[2, 0], rate[1, 0] - rate[0, 1]])
    return np.concatenate([w, rate[:3, 3]])


def adjoint(T: np.ndarray) -> np.ndarray:
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [cross_matrix(p) @ R, R]])


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("joints", [1, 5, 12])
def test_poses(rng, joints, unit):
    case = Case(rng, joints, unit)
    for _ in range(2):
        for ref in range(joints + 1):
            for target in range(joints + 1):
                T = case.robot.compute_transformation(case.state, ref, target)
                np.testing.assert_allclose(T, case.pose(ref, target), atol=1e-12)
        case.q = 3.0 * random_input(case.state, "q", rng)
        case.state.q = case.q


@pytest.mark.parametrize("unit", [True, False])
def test_jacobians_are_derivatives_of_poses(rng, unit):
    case = Case(rng, unit=unit)
    for ref, target in case.pairs(rng):
        space = case.robot.compute_space_jacobian(case.state, ref, target)
        body = case.robot.compute_body_jacobian(case.state, ref, target)
        T = case.pose(ref, target)
        assert space.shape == body.shape == (6, len(case.q))
        for i, unit_vector in enumerate(np.eye(len(case.q))):
            ahead, behind = (case.pose(ref, target, case.q + sign * STEP * unit_vector) for sign in (1, -1))
            rate = (ahead - behind) / (2.0 * STEP)
            np.testing.assert_allclose(space[:, i], twist(rate @ np.linalg.inv(T)), atol=SLACK)
            np.testing.assert_allclose(body[:, i], twist(np.linalg.inv(T) @ rate), atol=SLACK)
        np.testing.assert_allclose(space, adjoint(T) @ body, atol=1e-12)


def test_oblique_axes_of_length_1(rng):
    """The norm of a unit vector in any direction is 1 up to rounding. Coordinates of such joints are used as they are; other screws have a
    factor."""
    links = [rd.Link(f"link{i}") for i in range(25)]
    for i, axis in enumerate(rng.normal(size=(24, 3))):
        make = rd.Joint.make_revolute if i % 3 else rd.Joint.make_prismatic
        joint = make(f"joint{i}", random_pose(rng), axis / np.linalg.norm(axis))
        joint.connect_links(links[i], links[i + 1], random_pose(rng))
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]))
    state = robot.make_state()
    assert state.core.scale is None
    state.q = rng.normal(size=24)
    poses = link_poses(links[0], dict(zip(state.joint_names, state.q, strict=True)))
    for k in (1, 24):
        np.testing.assert_allclose(robot.compute_transformation(state, 0, k), poses[f"link{k}"], rtol=0, atol=1e-12)
    rd.Joint.make("joint24", 2.0 * joint.S).connect_links(links[24], rd.Link("link25"))
    longer = rd.Robot(rd.RobotConfiguration("case", links[0])).make_state()
    np.testing.assert_array_equal(longer.core.scale[:24], 1.0)
    np.testing.assert_allclose(longer.core.scale[24], 2.0, rtol=1e-14)


def test_jacobians_of_exchanged_links_are_opposite(rng):
    """The twist of a in b, in the frame of b, is the opposite of the twist of b in a in the frame of b."""
    case = Case(rng)
    for ref, target in case.pairs(rng):
        space = case.robot.compute_space_jacobian(case.state, ref, target)
        np.testing.assert_allclose(space, -case.robot.compute_body_jacobian(case.state, target, ref), atol=1e-12)


def test_only_joints_between_two_links_have_columns(rng):
    case = Case(rng)
    path = {}
    for link in case.robot.links:
        joint = link.parent_joint
        path[link.name] = set() if joint is None else path[joint.parent_link.name] | {joint.name}
    for ref, target in case.pairs(rng):
        between = path[case.state.link_names[ref]] ^ path[case.state.link_names[target]]
        columns = case.robot.compute_body_jacobian(case.state, ref, target).any(axis=0)
        found = {name for name, column in zip(case.state.joint_names, columns, strict=True) if column}
        assert found == between & set(case.state.joint_names)


def test_body_velocity(rng):
    """V0 has no part in it: it is the velocity relative to the reference link."""
    case = Case(rng)
    case.state.qdot = random_input(case.state, "qdot", rng)
    case.state.V0 = rng.normal(size=6)
    for ref, target in case.pairs(rng):
        V = case.robot.compute_body_velocity(case.state, ref, target)
        J = case.robot.compute_body_jacobian(case.state, ref, target)
        assert V.shape == (6,)
        np.testing.assert_allclose(V, J @ case.state.qdot, atol=1e-12)


def test_center_of_mass(rng):
    """The mean of the centres of links with their masses as weights; a link behind a fixed joint counts alone."""
    case = Case(rng)
    robot, state = case.robot, case.state
    links = [robot.get_link(state, i) for i in range(len(state.link_names))]
    heavy = [i for i, link in enumerate(links) if link.mass > 0.0]
    everything = range(len(links))
    for ref in everything:
        centres = [(case.pose(ref, i) @ [*link.center_of_mass, 1.0])[:3] for i, link in enumerate(links)]
        some = [heavy[0], heavy[-1], heavy[0]]
        for given, chosen in (((), everything), ((heavy[1],), [heavy[1]]), ((some,), some), ((tuple(heavy),), heavy)):
            masses = np.array([links[i].mass for i in chosen])
            mean = masses @ np.array([centres[i] for i in chosen]) / masses.sum()
            np.testing.assert_allclose(robot.compute_center_of_mass(state, ref, *given), mean, atol=1e-12)
        by_name = robot.compute_center_of_mass(state, ref_link=ref, target_links=heavy)
        np.testing.assert_array_equal(by_name, robot.compute_center_of_mass(state, ref, heavy))
    assert [robot.compute_mass(state, i) for i in everything] == [link.mass for link in links]


@pytest.mark.parametrize("unit", [True, False])
def test_center_of_mass_jacobian(rng, unit):
    case = Case(rng, unit=unit)
    robot, state = case.robot, case.state
    heavy = [i for i in range(len(state.link_names)) if robot.compute_mass(state, i) > 0.0]
    for ref in (state.base_link_idx, 0, len(state.link_names) - 1):
        for given in ((), (heavy[0],), (heavy[-1],)):
            J = robot.compute_center_of_mass_jacobian(state, ref, *given)
            assert J.shape == (3, len(case.q))
            for i, unit_vector in enumerate(np.eye(len(case.q))):
                ends = []
                for sign in (1, -1):
                    state.q = case.q + sign * STEP * unit_vector
                    ends.append(robot.compute_center_of_mass(state, ref, *given))
                np.testing.assert_allclose(J[:, i], (ends[0] - ends[1]) / (2.0 * STEP), atol=SLACK)
            state.q = case.q


def test_total_inertial(rng):
    """The sum of the inertias of all links, moved to the reference frame."""
    case = Case(rng)
    for ref in range(len(case.state.link_names)):
        total = np.zeros((6, 6))
        for i in range(len(case.state.link_names)):
            A = adjoint(np.linalg.inv(case.pose(ref, i)))
            total += A.T @ case.robot.get_link(case.state, i).inertia @ A
        found = case.robot.compute_total_inertial(case.state, ref)
        np.testing.assert_allclose(found, total, atol=1e-12 * np.abs(total).max())
        np.testing.assert_array_equal(found, found.T)
