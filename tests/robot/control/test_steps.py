"""Steps of quadratic programs for random robots among random capsules."""

import numpy as np
import pytest

from newton_like import robot as rd
from newton_like.robot.control import qp
from newton_like.robot.nearest import capsules_of
from tests.robot.control.test_qp import chain
from tests.support.cluttered import cluttered_robot
from tests.support.random_robots import random_pose

pytest.importorskip("daqp")

SLACK = 1.001e-4
"""How much nearer than allowed capsules may be [m]."""


def ends(robot, state) -> tuple[np.ndarray, np.ndarray]:
    """The limits of positions, or those of one turn."""
    return robot.get_limit_q_lower(state).clip(-3.0, None), robot.get_limit_q_upper(state).clip(None, 3.0)


def random_tasks(state, rng) -> list[rd.PoseTask]:
    """Goals that are within reach or far out of it."""
    return [
        rd.PoseTask(int(link), random_pose(rng, rng.choice([0.5, 50.0])), rotation_weight=rng.choice([0.0, 1.0]))
        for link in rng.integers(1, len(state.link_names), rng.integers(1, 3))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("dt", [None, 0.01])
@pytest.mark.parametrize("longest", [0.2, 0.05])
def test_steps_keep_what_they_are_to_keep(rng, dt, longest):
    """Zero keeps the limits of velocities, and brings no joint and no capsule farther away, so there always is a step."""
    for _ in range(8):
        robot = cluttered_robot(rng)
        state = robot.make_state()
        low, high = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
        for _ in range(3):
            q = rng.uniform(*ends(robot, state))
            beyond = rng.integers(len(q))
            q[beyond] += rng.choice([0.0, 0.0, 0.4])
            state.q, safe = q, rng.choice([0.0, 0.05, 0.5])
            options = {} if longest == 0.2 else dict(longest_step=longest)
            step = rd.solve_qp_step(robot, state, random_tasks(state, rng), dt=dt, safe_distance=safe, **options)
            assert step.success, step.status
            assert np.abs(step.dq).max() <= longest * (1.0 + 1e-9)
            if dt:
                speeds = robot.get_limit_qdot_lower(state), robot.get_limit_qdot_upper(state)
                assert (dt * speeds[0] <= step.dq + 1e-12).all() and (step.dq <= dt * speeds[1] + 1e-12).all()
            after = q + step.dq
            assert (np.minimum(low, q) - 1e-12 <= after).all() and (after <= np.maximum(high, q) + 1e-12).all()
            before = robot.compute_distances(state).distance
            state.q = after
            found = robot.compute_distances(state).distance
            counts = (before >= 0.0) | often_apart(robot, rng)
            assert (found[counts] >= np.minimum(before, safe)[counts] - SLACK).all()


def often_apart(robot, rng) -> np.ndarray:
    """Pairs that are apart in a quarter of random configurations; others may count as overlapping in all."""
    many = robot.make_state()
    many.q = rng.uniform(*ends(robot, many), (40, robot.dof))
    return (robot.compute_distances(many).distance >= 0.0).mean(axis=0) > 0.25


def test_the_longest_step_holds_for_radians(rng):
    """The coordinate of a joint whose screw has the length 2 changes by half of it."""
    base, link = rd.Link("base", np.eye(6)), rd.Link("link", np.eye(6))
    rd.Joint.make("turn", [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]).connect_links(base, link)
    robot = rd.Robot(rd.RobotConfiguration("one", base))
    state, goal, angle = robot.make_state(["base", "link"]), np.eye(4), rng.uniform(1.0, 2.0)
    goal[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    step = rd.solve_qp_step(robot, state, rd.PoseTask(1, goal), longest_step=0.3)
    np.testing.assert_allclose(step.dq, 0.15, rtol=1e-9)


def test_no_step_is_shorter_than_least_velocities_ask_for(rng):
    """A joint that has to turn can neither stand still, nor turn more than the longest step, nor stop at a limit."""
    base, link = rd.Link("base", np.eye(6)), rd.Link("link", np.eye(6))
    joint = rd.Joint.make_revolute("turn")
    joint.connect_links(base, link)
    joint.set_limit_q(-1.0, 1.0)
    joint.set_limit_qdot(0.5, 1.0)
    robot = rd.Robot(rd.RobotConfiguration("one", base))
    state = robot.make_state(["base", "link"])
    task = rd.PoseTask(1, np.eye(4))
    step = rd.solve_qp_step(robot, state, task, dt=0.1)
    assert step.success
    np.testing.assert_allclose(step.dq, 0.05, rtol=1e-9)
    for q, longest in ((0.0, 0.01), (0.98, 0.2)):
        state.q = [q]
        step = rd.solve_qp_step(robot, state, task, dt=0.1, longest_step=longest)
        assert not step.success and step.status == "infeasible" and not step.dq.any()


def test_a_path_has_no_steps_that_are_shorter_than_least_velocities_ask_for(rng):
    """A bar that has to turn by 1.8 rad at least in a step, and a thin post on its way behind which the goal is."""
    for angle in rng.uniform(1.35, 1.5, 4):
        robot = chain([1.0], post=(0.9 * np.cos(angle), 0.9 * np.sin(angle)), radius=0.001, gap=0.0)
        state = robot.make_state(["base", "tool"], [])
        robot.joints[0].set_limit_qdot(0.9, 1.0)
        state.q = [2.0]
        task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
        state.q = [0.0]
        options = dict(dt=2.0, safe_distance=0.0, approach=1.0, longest_step=2.5)
        path = rd.solve_ik_qp(robot, state, task, **options)
        assert (np.diff(path.q[:, 0]) >= 1.8 - 1e-9).all()
        assert not path.success and path.status == "infeasible" and len(path.q) == 1
        # a joint that may stand still is shortened
        robot.joints[0].set_limit_qdot(-1.0, 1.0)
        path = rd.solve_ik_qp(robot, state, task, **options)
        assert not path.success and 0.0 < path.q.max() < angle


@pytest.mark.filterwarnings("error")
def test_missing_limits_of_long_steps(rng):
    """Products of limits that are missing and a time above 1 s have no warning, nor have those of infinite limits and parts of the way
    back from beyond a limit."""
    links = [rd.Link(f"l{i}", np.eye(6)) for i in range(4)]
    for i in range(3):
        rd.Joint.make_revolute(f"j{i}").connect_links(links[i], links[i + 1])
    robot = rd.Robot(rd.RobotConfiguration("chain", links[0]), evaluator="general")
    state = robot.make_state(["l0", "l3"], ["j0", "j1", "j2"])
    task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
    state.q = q = rng.uniform(0.1, 0.15, 3)
    step = rd.solve_qp_step(robot, state, task, dt=2.0)
    assert step.success
    # the axes coincide
    np.testing.assert_allclose(step.dq.sum(), -q.sum(), rtol=1e-6)
    first, second, third = robot.joints
    first.set_limit_q(-np.inf, np.inf)
    second.set_limit_q(-0.05, 0.05)
    assert rd.solve_qp_step(robot, state, task, dt=2.0).success
    # at its limit it has to go on
    third.set_limit_q(-np.inf, float(q[2]))
    third.set_limit_qdot(0.5, np.inf)
    step = rd.solve_qp_step(robot, state, task, dt=2.0)
    assert not step.success and step.status == "infeasible"


def test_there_must_be_goals(rng):
    robot = cluttered_robot(rng)
    state = robot.make_state()
    for call in (rd.solve_qp_step, rd.solve_ik_qp):
        with pytest.raises(ValueError, match="tasks"):
            call(robot, state, [])
    nothing = rd.PoseTask(1, random_pose(rng), rotation_weight=0.0, position_weight=0.0)
    with pytest.raises(rd.RobotError, match="weight"):
        rd.solve_ik_qp(robot, state, nothing)
    # a task can be switched off while others or a posture move the robot
    step = rd.solve_qp_step(robot, state, nothing, posture=np.full(robot.dof, 0.1), longest_step=4.0, damping=1e-6)
    inside = np.clip(0.1, robot.get_limit_q_lower(state), robot.get_limit_q_upper(state))
    assert step.success
    np.testing.assert_allclose(step.dq, inside, atol=1e-6)


@pytest.mark.slow
def test_bounds_of_distances_only_save_time(rng, monkeypatch):
    """Steps are the same if no bound ever suffices. Some bounds do suffice."""
    saved, told = [], qp.distance_bounds
    # about every second robot shows a bound that suffices
    while len(saved) < 8 or not (any(saved) or len(saved) > 40):
        robot = cluttered_robot(rng)
        state = robot.make_state()
        state.q = rng.uniform(*ends(robot, state))
        tasks, options = random_tasks(state, rng), dict(dt=0.01, safe_distance=rng.choice([0.0, 0.05]))
        near = robot.compute_distances(state).distance
        step = rd.solve_qp_step(robot, state, tasks, **options)
        with monkeypatch.context() as patch:
            patch.setattr(qp, "distance_bounds", lambda *a: np.full_like(told(*a), 1e9))
            other = rd.solve_qp_step(robot, state, tasks, **options)
        np.testing.assert_array_equal(step.dq, other.dq)
        assert (step.status, step.success, step.too_near) == (other.status, other.success, other.too_near)
        bounds = told(state.core, capsules_of(state.core), None, state.q, state.q + step.dq)
        least = near - bounds @ np.abs(step.dq)
        saved.append(bool((least >= np.minimum(near, options["safe_distance"]) - 1e-4).all()))
    assert any(saved)
