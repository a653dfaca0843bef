"""Bounds of the distances of capsules on straight ways."""

import numpy as np
import pytest

from newton_like import robot as rd
from newton_like.robot.control.sweep import Sweep
from tests.support.random_robots import random_robot
from tests.support.robot_calls import shuffled_state


@pytest.mark.parametrize("pairs", [None, [1, 0]])
def test_distances_change_by_no_more_than_their_bounds(rng, pairs):
    """Of random trees with rotations, translations and screws, whose coordinates have other units."""
    for seed in rng.integers(1 << 30, size=5).tolist():
        links, _ = random_robot(rd, seed, 8, helical=True)
        robot = rd.Robot(rd.RobotConfiguration("robot", links[0]), evaluator="general")
        state = shuffled_state(robot, rng)
        n = len(state.joint_names)
        if len(robot.compute_distances(state).distance) < 2:
            continue
        sweep, many = Sweep(robot, state, pairs), shuffled_state(robot, rng)
        many = robot.make_state(state.link_names, state.joint_names)
        start, end = rng.normal(size=(2, n))
        many.q = start + np.linspace(0.0, 1.0, 50)[:, None] * (end - start)
        found = robot.compute_distances(many, pairs, jacobian=True)
        bounds = sweep._bounds(start, end)
        assert (np.abs(found.jacobian) <= bounds + 1e-12).all()
        assert (np.abs(np.diff(found.distance, axis=0)) <= bounds @ np.abs(end - start) / 49 + 1e-12).all()
        # joints that are not between two links do not move them against each other
        assert ((bounds == 0.0) == (np.abs(found.jacobian).max(axis=0) < 1e-12)).mean() > 0.9


def test_a_bound_is_the_lever_of_a_single_joint(rng):
    length, side = rng.uniform(0.5, 1.0, 2)
    base, arm = rd.Link("base", np.eye(6)), rd.Link("arm", np.eye(6))
    rd.Joint.make_revolute("turn").connect_links(base, arm)
    for link, ends in ((base, ([0, 5, 0], [0, 6, 0])), (arm, ([0, 0, 0], [length, side, 0]))):
        collision = rd.Collision(link.name)
        collision.add_geom(rd.GeomCapsule(*np.array(ends, dtype=float), 0.01, 1, 1))
        link.add_collision(collision)
    robot = rd.Robot(rd.RobotConfiguration("robot", base), evaluator="general")
    bounds = Sweep(robot, robot.make_state([], []), None)._bounds(np.zeros(1), np.ones(1))
    np.testing.assert_allclose(bounds, [[np.hypot(length, side)]])


@pytest.mark.slow
def test_ways_are_clear_as_far_as_a_dense_look_says(rng):
    """A bar that turns past small obstacles; only those that lie between places of the first look are hard to see."""
    robot = rd.Robot(rd.RobotConfiguration("robot", bar(rng)), evaluator="general")
    state, many = (robot.make_state([], []) for _ in range(2))
    answers = set()
    for _ in range(20):
        start, end = rng.uniform(-3.0, 3.0, (2, 1))
        state.q, many.q = start, start + np.linspace(0.0, 1.0, 20000)[:, None] * (end - start)
        near, lowest = robot.compute_distances(state), robot.compute_distances(many).distance.min(axis=0)
        floor = np.full(len(lowest), rng.uniform(0.0, 0.01))
        clear = Sweep(robot, state, None).is_clear(start, end, near, floor)
        # 0.1 mm may pass between two places
        assert clear == (lowest >= floor).all() or (lowest >= floor - 2e-4).all()
        answers.add(clear)
    assert answers == {True, False}


def bar(rng) -> rd.Link:
    base, arm = rd.Link("base", np.eye(6)), rd.Link("arm", np.eye(6))
    rd.Joint.make_revolute("turn").connect_links(base, arm)
    points = [(np.cos(a), np.sin(a), 0.0) for a in rng.uniform(-3.0, 3.0, 3)]
    for link, ends in ((arm, [((0.5, 0, 0), (1.2, 0, 0))]), (base, [(x, x) for x in points])):
        collision = rd.Collision(link.name)
        for one in ends:
            collision.add_geom(rd.GeomCapsule(*np.array(one, dtype=float), 0.0005, 1, 1))
        link.add_collision(collision)
    return base
