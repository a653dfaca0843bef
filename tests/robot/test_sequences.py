"""Nothing is stale: after any sequence of setters, functions and changes of a robot, results equal those of a new state, bit by bit."""

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import random_pose, random_robot
from tests.support.robot_calls import CALLS, INPUTS, random_input, randomize, two_links, width

SIZES = (None, None, 1, 3, 9, 17)


def made(rng, joints: int, unit: bool) -> rd.Robot:
    base = random_robot(rd, rng.integers(2**32), joints, unit=unit)[0][0]
    return rd.Robot(rd.RobotConfiguration("case", base), evaluator="general")


def state_of(robot, rng) -> rd.State:
    """A state of a robot with links and joints in a random order."""
    names = (robot.link_names, robot.joint_names)
    return robot.make_state(*[[str(x) for x in rng.permutation(x)[: rng.integers(len(x) + 1)]] for x in names])


def result(call, robot, state, links) -> np.ndarray | None:
    """A copy of a result. None: the inputs that the call reads are batches of different sizes."""
    try:
        return np.array(call(robot, state, *links))
    except rd.ShapeError as error:
        assert "configurations" in str(error)
        return None


def set_some(state, rng, usual: int) -> None:
    """Sets one input or all of them, to one configuration or a batch, which mostly has the usual size."""
    count = (usual, usual, usual, None, None, SIZES[rng.integers(len(SIZES))])[rng.integers(6)]
    if rng.integers(3) == 0:
        randomize(state, rng, count)
        return
    name = INPUTS[rng.integers(len(INPUTS))]
    value = random_input(state, name, rng, count)
    kind = rng.integers(4)
    if kind == 0:
        getattr(state, f"set_{name}")(value.tolist())
    elif kind == 1 and count is None and width(state, name) > 1:
        getattr(state, f"set_{name}")(value[:, None])
    elif kind == 2 and name == "Vdot0":
        state.set_gravity(value)
    else:
        setattr(state, name, value)


def change(robot, rng) -> None:
    """Changes capsules of a link, which are read when distances are computed."""
    link = robot.links[rng.integers(len(robot.links))]
    kind = rng.integers(3)
    if kind == 0 or not link.collisions:
        collision = rd.Collision("new")
        link.add_collision(collision)
    else:
        collision = link.collisions[rng.integers(len(link.collisions))]
    if kind == 1:
        collision.set_origin(random_pose(rng))
    else:
        collision.add_geom(rd.GeomCapsule(float(rng.uniform(0.0, 0.3)), 0.02, 1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [True, False])
def test_results_are_those_of_a_new_state(rng, unit):
    """Several robots, and several states of each, in turns."""
    robots = [made(rng, joints, unit) for joints in (3, 7)]
    states = [state_of(robot, rng) for robot in robots for _ in range(2)]
    usual = rng.permutation([1, 3, 9, 17])
    real = {name: 0 for name in CALLS}
    for i in range(160):
        k = rng.integers(len(states))
        state = states[k]
        robot = state.core.robot
        for _ in range(rng.integers(3)):
            set_some(state, rng, int(usual[k]))
        if rng.integers(8) == 0:
            change(robot, rng)
        if rng.integers(4) == 0:
            names = ("forward", "diff_forward", "2nd_diff_forward")
            getattr(robot, f"compute_{names[rng.integers(3)]}_kinematics")(state)
        name = list(CALLS)[i % len(CALLS)]
        links = two_links(robot, state, rng)
        found = result(CALLS[name], robot, state, links)
        new = robot.make_state(state.link_names, state.joint_names)
        for key in INPUTS:
            setattr(new, key, getattr(state, key))
        expected = result(CALLS[name], robot, new, links)
        # two errors are equal; an error and a result are not
        assert (found is None) == (expected is None), name
        if found is not None:
            np.testing.assert_array_equal(found, expected, err_msg=name)
            real[name] += 1
    assert sum(real.values()) > 0.8 * 160
    assert min(real.values()) > 0.3 * 160 / len(CALLS), real


def test_a_failed_setter_changes_nothing(rng):
    robot = made(rng, 6, False)
    state = robot.make_state()
    randomize(state, rng)
    links = two_links(robot, state, rng)
    before = {name: call(robot, state, *links) for name, call in CALLS.items()}
    for name in INPUTS:
        bad = random_input(state, name, rng)
        bad[-1] = np.nan
        for value in (bad, np.append(bad, 1.0), "text", np.full((2, len(bad)), np.inf)):
            with pytest.raises((ValueError, TypeError)):
                setattr(state, name, value)
    for name, call in CALLS.items():
        np.testing.assert_array_equal(call(robot, state, *links), before[name], err_msg=name)


def test_results_and_inputs_are_copies(rng):
    """Writing to a result, to an array that was set, or to one that was read, changes neither the state nor later results."""
    robot = made(rng, 6, True)
    for count in (None, 5):
        state = robot.make_state()
        given = {name: random_input(state, name, rng, count) for name in INPUTS}
        for name, value in given.items():
            setattr(state, name, value)
        links = two_links(robot, state, rng)
        kept = {name: np.array(value) for name, value in given.items()}
        for name, call in CALLS.items():
            first = call(robot, state, *links)
            copy = first.copy()
            first[...] = np.nan
            second = call(robot, state, *links)
            np.testing.assert_array_equal(second, copy, err_msg=name)
            assert second.flags.writeable and not np.shares_memory(first, second)
            for key, value in given.items():
                value[...] = np.nan
                getattr(state, key)[...] = np.nan
                np.testing.assert_array_equal(getattr(state, key), kept[key])
            np.testing.assert_array_equal(call(robot, state, *links), copy, err_msg=name)


def test_results_that_are_kept_do_not_change(rng):
    """Memory of results of batches is used again only when nobody holds them, also not a part of them."""
    robot = made(rng, 6, True)
    state = robot.make_state()
    kept = []
    for _ in range(6):
        randomize(state, rng, 20)
        M = robot.compute_mass_matrix(state)
        part = M[3:5, 0]
        kept.append((part, part.copy()))
        robot.compute_inverse_dynamics(state)
        kept.append((state.tau, state.tau.copy()))
        del M
    for value, copy in kept:
        np.testing.assert_array_equal(value, copy)


def test_limits_are_read_when_they_are_asked_for(rng):
    links, joints = random_robot(rd, rng.integers(2**32), 5, unit=True)
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]))
    state = state_of(robot, rng)
    joint = next(joint for joint in joints if not joint.is_fixed())
    i = state.joint_names.index(joint.name)
    before = robot.get_limit_q_lower(state)
    joint.set_limit_q(-7.0, 8.0)
    joint.set_limit_qdot(-5.0, 6.0)
    joint.set_limit_qddot(-3.0, 4.0)
    joint.set_limit_torque(9.0)
    expected = {
        "q_lower": -7,
        "q_upper": 8,
        "qdot_lower": -5,
        "qdot_upper": 6,
        "qddot_lower": -3,
        "qddot_upper": 4,
        "torque": 9,
    }
    for name, value in expected.items():
        assert getattr(robot, f"get_limit_{name}")(state)[i] == value
    others = np.delete(np.arange(len(before)), i)
    np.testing.assert_array_equal(robot.get_limit_q_lower(state)[others], before[others])


def test_a_robot_keeps_the_tree_that_it_was_made_from(rng):
    """Joints that are disconnected or connected later belong to new robots only."""
    links, joints = random_robot(rd, rng.integers(2**32), 7)
    configuration = rd.RobotConfiguration("case", links[0])
    robot = rd.Robot(configuration)
    state = robot.make_state()
    randomize(state, rng)
    names = robot.link_names
    two = two_links(robot, state, rng)
    before = {name: call(robot, state, *two) for name, call in CALLS.items()}
    joints[-1].disconnect()
    rd.Joint.make_revolute("more").connect_links(links[0], rd.Link("more"))
    new = robot.make_state()
    for key in INPUTS:
        setattr(new, key, getattr(state, key))
    for used in (state, new):
        assert used.link_names == names == robot.link_names
        for name, call in CALLS.items():
            np.testing.assert_array_equal(call(robot, used, *two), before[name], err_msg=name)
    assert set(rd.Robot(configuration).link_names) == {*names, "more"} - {links[-1].name}
