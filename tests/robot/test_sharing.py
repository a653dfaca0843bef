"""One robot in several threads, and robots whose links are connected in another way after they were made."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import newton_like.robot as rd
from tests.support.random_robots import random_pose, random_robot


def made(seed: int, joints: int = 8):
    links, edges = random_robot(rd, seed, joints, unit=True)
    return rd.Robot(rd.RobotConfiguration("case", links[0]), evaluator="general"), links, edges


def results(robot, state, q) -> list[np.ndarray]:
    """Results of a batch, with the memory that batches share."""
    state.q = q
    last = len(robot.links) - 1
    return [
        robot.compute_transformation(state, 0, last),
        robot.compute_body_jacobian(state, 1, last),
        robot.compute_mass_matrix(state),
        robot.compute_total_inertial(state, 1),
    ]


def test_threads_with_states_of_their_own_share_a_robot(rng):
    robot, _, _ = made(int(rng.integers(1 << 30)))
    batches = rng.normal(size=(4, 25, 6, robot.dof))
    expected = [[results(robot, robot.make_state(), q) for q in each] for each in batches]

    def work(each) -> list:
        state = robot.make_state()
        return [results(robot, state, q) for q in each]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, batches))
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


@pytest.mark.slow
def test_inverse_kinematics_in_threads(rng):
    robot, _, _ = made(int(rng.integers(1 << 30)), 7)
    last = len(robot.links) - 1
    state = robot.make_state()
    state.q = rng.uniform(-1, 1, (4, robot.dof))
    goals = robot.compute_transformation(state, 0, last)

    def solve(goal) -> np.ndarray:
        return rd.solve_ik(robot, robot.make_state(), last, goal, starts=4).q

    alone = [solve(goal) for goal in goals]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            np.testing.assert_array_equal(list(pool.map(solve, goals)), alone)


@pytest.mark.slow
def test_a_robot_keeps_its_tree(rng):
    """Also where models are made of it and inverse kinematics walks along it."""
    robot, links, edges = made(int(rng.integers(1 << 30)))
    for joint in edges:
        joint.set_limit_q(-10.0, 10.0)
        joint.set_limit_qdot(-2.0, 2.0)
    state, last = robot.make_state(), len(links) - 1
    # within the limits, where inverse kinematics starts
    q = rng.uniform(robot.get_limit_q_lower(state), robot.get_limit_q_upper(state))[None]
    before = results(robot, state, q)
    frames = [np.array(robot.to_builder().joint_X_p[i]) for i in range(len(edges) + 1)]
    joint = edges[-1]
    joint.disconnect()
    joint.connect_links(links[0], links[-1], random_pose(rng))
    for a, b in zip(results(robot, state, q), before, strict=True):
        np.testing.assert_array_equal(a, b)
    for i, frame in enumerate(frames):
        np.testing.assert_array_equal(np.array(robot.to_builder().joint_X_p[i]), frame)
    state.q = q[0]
    goal = robot.compute_transformation(state, 0, last)
    joint.disconnect()
    assert rd.solve_ik(robot, state, last, goal).success


def test_joints_are_found_by_index_and_not_by_label():
    """The root joint of a model has a name that another joint may have, too."""
    links = [rd.Link(name) for name in ("base", "upper", "lower")]
    for name, parent, child in (("arm_base", 0, 1), ("elbow", 1, 2)):
        rd.Joint.make_revolute(name).connect_links(links[parent], links[child])
    robot = rd.Robot(rd.RobotConfiguration("arm", links[0]), evaluator="general")
    state = robot.make_state([], ["arm_base", "elbow"])
    state.q = [0.1, 0.2]
    assert list(robot.to_builder(state).joint_q) == [0.1, 0.2]


def test_a_configuration_without_inertia_leaves_the_others_of_a_batch_alone(rng):
    """A point mass is on the axis of a joint in one configuration of the batch only."""
    links = [rd.Link("base"), rd.Link("carriage", np.zeros((6, 6)))]
    G = np.zeros((6, 6))
    G[3:, 3:] = 2.0 * np.eye(3)
    links.append(rd.Link("mass", G))
    rd.Joint.make_revolute("turn").connect_links(links[0], links[1])
    rd.Joint.make_prismatic("slide", axis=[1, 0, 0]).connect_links(links[1], links[2])
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]), evaluator="general")
    state = robot.make_state(["base", "mass"], ["turn", "slide"])
    q = rng.uniform(0.2, 1.0, (6, 2))
    q[2, 1] = 0.0
    state.q = q
    found = robot.compute_reflective_inertia(state, 0, 1)
    single = robot.make_state(["base", "mass"], ["turn", "slide"])
    for i, row in enumerate(q):
        single.q = row
        np.testing.assert_array_equal(robot.compute_reflective_inertia(single, 0, 1), found[i])


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda robot: pickle.loads(pickle.dumps(robot))])
def test_copies_are_robots_of_their_own(rng, again):
    links, _ = random_robot(rd, int(rng.integers(1 << 30)), 6)
    robot = rd.Robot(rd.RobotConfiguration("robot", links[0]), evaluator="general")
    state = robot.make_state()
    other = again(robot)
    there = other.make_state()
    state.q = there.q = rng.normal(size=robot.dof)
    np.testing.assert_array_equal(robot.compute_mass_matrix(state), other.compute_mass_matrix(there))
    with pytest.raises(rd.RobotError, match="another robot"):
        other.compute_mass_matrix(state)
    assert (other.base is robot.base) == (again is copy.copy)


@pytest.mark.parametrize("unit", [True, False])
def test_states_that_get_the_memory_of_others_are_new(rng, unit):
    """States that are made after others are gone have the results of states of another robot, and begin with zeros."""
    seed = int(rng.integers(1 << 30))
    robot, other = (
        rd.Robot(rd.RobotConfiguration("case", random_robot(rd, seed, 8, unit=unit)[0][0]), evaluator="general")
        for _ in range(2)
    )
    listed = [robot.link_names[::-1], robot.link_names[2:], []]
    found = []
    for k in range(12):
        links = listed[k % 3]
        state, n = robot.make_state(links, []), robot.dof
        fresh = other.make_state(links, [])
        values = (state.q, state.qdot, state.qddot, state.tau, state.V0, state.Vdot0)
        assert not any(x.any() for x in values) and state.link_names == fresh.link_names
        if k % 4 == 3:
            # the memory of batches is not handed on
            state.q = rng.normal(size=(3, n))
            robot.compute_mass_matrix(state)
            continue
        link = int(rng.integers(len(robot.links)))
        results = []
        for each, of in ((state, robot), (fresh, other)):
            if each is fresh:
                each.q, each.qdot, each.V0 = state.q, state.qdot, state.V0
            elif k % 2:
                each.q, each.qdot, each.V0 = rng.normal(size=n), rng.normal(size=n), rng.normal(size=6)
            of.compute_inverse_dynamics(each)
            results.append(
                [of.compute_transformation(each, 1, link), of.compute_body_jacobian(each, 1, link), of.compute_mass_matrix(each), each.tau,
                 of.compute_gravity_term(each), of.compute_body_velocity(each, 1, link)]
            )  # fmt: skip
        assert all(np.array_equal(x, y) for x, y in zip(*results, strict=True))
        found.append((results[0], [x.copy() for x in results[0]]))
    assert all(np.array_equal(x, y) for kept, copies in found for x, y in zip(kept, copies, strict=True))
