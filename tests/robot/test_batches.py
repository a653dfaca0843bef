"""Batches: results of each configuration are those of that configuration alone, bit by bit."""

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import random_robot
from tests.support.robot_calls import CALLS, INPUTS, random_input, shuffled_state, two_links, width

COUNTS = (1, 7, 8, 9, 300)


def made(rng, evaluator: str, joints: int = 7, unit: bool = False):
    base = random_robot(rd, rng.integers(2**32), joints, unit=unit, helical=True)[0][0]
    robot = rd.Robot(rd.RobotConfiguration("case", base), evaluator=evaluator)
    return robot, shuffled_state(robot, rng)


def check(rng, robot, state, count: int, shared: tuple[str, ...] = (), calls=CALLS, links=None):
    """Compares a batch with its configurations one by one; the inputs `shared` are one for the whole batch."""
    links = two_links(robot, state, rng) if links is None else links
    for name in INPUTS:
        setattr(state, name, random_input(state, name, rng, None if name in shared else count))
    results = {name: call(robot, state, *links) for name, call in calls.items()}
    one = robot.make_state(state.link_names, state.joint_names)
    for i in range(count) if count < 20 else rng.choice(count, 12, replace=False):
        for name in INPUTS:
            value = getattr(state, name)
            setattr(one, name, value if name in shared else value[i])
        for name, call in calls.items():
            expected = call(robot, one, *links)
            found = results[name]
            if found.shape == expected.shape:
                # the function reads no input that is a batch
                assert shared
            else:
                assert found.shape == (count, *expected.shape)
                found = found[i]
            np.testing.assert_array_equal(found, expected, err_msg=name)
    return results


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("count", COUNTS)
def test_general_code(rng, count, unit):
    check(rng, *made(rng, "general", unit=unit), count)


@pytest.mark.parametrize(
    "shared", [("q",), ("qdot",), ("V0", "Vdot0"), ("q", "qdot", "qddot"), INPUTS[1:]], ids=",".join
)
def test_inputs_that_a_batch_shares(rng, shared):
    check(rng, *made(rng, "general"), 9, shared)


@pytest.mark.parametrize("evaluator", ["general", pytest.param("specialised", marks=pytest.mark.slow)])
@pytest.mark.parametrize("each", [False, True])
def test_gravity_of_a_batch_is_that_of_its_configurations(rng, evaluator, each):
    """Without an angular acceleration of the base link, batches have code of their own; also with one acceleration for each."""
    robot, state = made(rng, evaluator, 5)
    state.q = random_input(state, "q", rng, 9)
    gravity = np.zeros((9, 6) if each else 6)
    gravity[..., 3:] = rng.normal(size=(*gravity.shape[:-1], 3))
    state.set_gravity(gravity)
    found, one = robot.compute_gravity_term(state), robot.make_state(state.link_names, state.joint_names)
    for i in range(9):
        one.q = state.q[i]
        one.set_gravity(gravity[i] if each else gravity)
        np.testing.assert_array_equal(robot.compute_gravity_term(one), found[i])


def test_one_configuration_runs_in_two_lanes_at_most(rng):
    """Lanes without a configuration take time, too."""
    robot, state = made(rng, "auto")
    links = two_links(robot, state, rng)
    for call in CALLS.values():
        call(robot, state, *links)
    robot.compute_distances(state)
    assert robot.core.single.m.width <= 2
    assert robot.core._machine is None, "numbers for batches were made"


def test_the_batch_of_a_function_is_that_of_its_inputs(rng):
    """Functions of q have one result if only velocities are a batch."""
    robot, state = made(rng, "general")
    state.qdot = random_input(state, "qdot", rng, 5)
    n = len(state.joint_names)
    assert robot.compute_mass_matrix(state).shape == (n, n)
    assert robot.compute_gravity_term(state).shape == (n,)
    assert robot.compute_body_velocity(state, 0, 1).shape == (5, 6)
    robot.compute_inverse_dynamics(state)
    assert state.tau.shape == (5, n) and state.batch_size == 5
    state.qdot = np.zeros(n)
    assert state.batch_size is None
    state.set_gravity(rng.normal(size=(4, 6)))
    assert robot.compute_gravity_term(state).shape == (4, n)


def test_batches_of_different_sizes_are_named(rng):
    robot, state = made(rng, "general")
    state.q, state.qdot = random_input(state, "q", rng, 5), random_input(state, "qdot", rng, 6)
    for call in (lambda: robot.compute_inverse_dynamics(state), lambda: robot.compute_body_velocity(state, 0, 1)):
        with pytest.raises(ValueError, match=r"q.* 5.*qdot.* 6"):
            call()
    assert robot.compute_mass_matrix(state).shape[0] == 5


def test_detected_collisions_of_a_batch(rng):
    robot, state = made(rng, "general")
    state.q = random_input(state, "q", rng, 9)
    one = robot.make_state(state.link_names, state.joint_names)
    found = robot.detect_collisions_or_nearest_links(state, 4)
    assert len(found) == 9
    for q, results in zip(state.q, found, strict=True):
        one.q = q
        expected = robot.detect_collisions_or_nearest_links(one, 4)
        for a, b in zip(results, expected, strict=True):
            assert (a.link1, a.link2, a.distance) == (b.link1, b.link2, b.distance)
            for name in ("position1", "position2", "surface1", "surface2", "normal"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    names = [[(x.link1, x.link2) for x in results] for results in found]
    assert [[(x.link1, x.link2) for x in results] for results in found[2:7:2]] == names[2:7:2]
    assert [(x.link1, x.link2) for x in found[-1]] == names[-1]
    for outside in (9, -10):
        with pytest.raises(IndexError):
            found[outside]


@pytest.mark.slow
def test_orders_of_a_batch(rng):
    """States of one robot with other orders of joints, in turns."""
    robot, state = made(rng, "general")
    states = [state, *(shuffled_state(robot, rng) for _ in range(2))]
    for count in (3, 9, 3):
        for state in states:
            check(rng, robot, state, count)


@pytest.mark.slow
def test_more_batch_sizes_than_are_kept(rng):
    robot, state = made(rng, "general")
    for count in [*range(1, 14), 1, 2]:
        check(rng, robot, state, count, calls={name: CALLS[name] for name in ("mass_matrix", "distances")})


@pytest.mark.slow
def test_specialised_code(rng):
    """Of a small robot, for the functions whose code is compiled for the robot and for two links."""
    robot, state = made(rng, "specialised", 3)
    calls = {name: CALLS[name] for name in ("space_jacobian", "inverse_dynamics")}
    for count in (1, 9):
        check(rng, robot, state, count, calls=calls, links=(0, 1))
    check(rng, robot, state, 8, ("q", "V0"), calls=calls, links=(0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [True, False])
def test_specialised_code_of_all_functions(rng, unit):
    robot, state = made(rng, "specialised", 9, unit)
    links = two_links(robot, state, rng)
    for count in COUNTS:
        check(rng, robot, state, count, links=links)
    check(rng, robot, state, 9, ("qdot", "V0"), links=links)


@pytest.mark.slow
def test_specialised_code_of_many_links(rng):
    """More pairs of links than are compiled: the frames alone are specialised for the others."""
    robot, state = made(rng, "specialised", 12)
    calls = {name: CALLS[name] for name in ("transformation", "body_velocity")}
    for _ in range(12):
        check(rng, robot, state, 9, calls=calls)


@pytest.mark.slow
def test_automatic_choice_of_the_code(rng):
    """Large batches are computed by specialised code, with the results of general code."""
    seed = rng.integers(2**32)
    results = []
    for evaluator in ("auto", "general"):
        robot = rd.Robot(rd.RobotConfiguration("", random_robot(rd, seed, 6)[0][0]), evaluator=evaluator)
        state = robot.make_state()
        numbers = np.random.default_rng(seed)
        for name in INPUTS:
            setattr(state, name, numbers.normal(size=(300, width(state, name))))
        results.append([call(robot, state, 0, 1) for call in CALLS.values()])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("evaluator", "fixed"),
    [("general", True), ("general", False), pytest.param("specialised", True, marks=pytest.mark.slow)],
)
def test_robots_without_joints_that_move(rng, evaluator, fixed):
    """Results have no columns; poses and inertias are there, and the inertia that is felt is zero."""
    base, links = rd.Link("base", 2.0 * np.eye(6)), 1
    if fixed:
        link, links = rd.Link("link"), 2
        rd.Joint.make_fixed("joint").connect_links(base, link)
    robot = rd.Robot(rd.RobotConfiguration("", base), evaluator=evaluator)
    state, at = robot.make_state(), (0, links - 1)
    sizes = {
        "mass_matrix": (0, 0),
        "gravity_term": (0,),
        "inverse_dynamics": (0,),
        "space_jacobian": (6, 0),
        "com_jacobian": (3, 0),
    }
    for count in (None, 3):
        batch = () if count is None else (count,)
        for name in INPUTS:
            setattr(state, name, random_input(state, name, rng, count))
        for name, size in sizes.items():
            assert CALLS[name](robot, state, *at).shape == (*batch, *size)
        np.testing.assert_array_equal(robot.compute_reflective_inertia(state, *at), np.zeros((*batch, 6, 6)))
        T = robot.compute_transformation(state, *at)
        np.testing.assert_array_equal(T, np.broadcast_to(np.eye(4), (*batch, 4, 4)))
        G = sum(robot.get_link(state, i).inertia for i in range(links))
        np.testing.assert_array_equal(robot.compute_total_inertial(state, 0), np.broadcast_to(G, (*batch, 6, 6)))
