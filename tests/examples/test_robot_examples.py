"""The examples of robots do what they say: hands follow paths or stay in place, and arms keep apart."""

import numpy as np
import pytest
import warp as wp

from examples import arm_ik, common, self_collision, wheeled, whole_body
from tests.support.random_robots import random_pose


def test_the_arm_follows_its_path_within_its_limits():
    robot = arm_ik.load()
    state = robot.make_state(["base", robot.link_names[-1]])
    path = arm_ik.poses(90)
    q = arm_ik.follow(robot, state, 1, path)
    assert (q >= robot.get_limit_q_lower(state)).all() and (q <= robot.get_limit_q_upper(state)).all()
    state.q = q
    np.testing.assert_allclose(robot.compute_transformation(state, 0, 1), path, atol=arm_ik.TEST_ERROR)


def test_hands_stay_in_place_while_the_base_drives(monkeypatch, capsys):
    # it makes Warp quiet, and the tests after this one should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)
    whole_body.main(["--test", "--quiet", "--num-frames", "150"])
    assert "test passed" in capsys.readouterr().out


def test_hands_out_of_reach_are_reported(monkeypatch):
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)
    monkeypatch.setattr(whole_body, "SPEED", 1.0)
    with pytest.raises(SystemExit, match=r"hands.*control step \d+.* rad .* m"):
        whole_body.main(["--quiet", "--num-frames", "100"])


def test_pose_errors_are_angles_and_distances(rng):
    pose, angle = random_pose(rng), rng.uniform(0.0, 3.0)
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    turn[:3, 3] = away = rng.normal(size=3)
    found = common.pose_errors(np.array([pose]), np.array([pose @ turn]))
    np.testing.assert_allclose(found, [[angle, np.linalg.norm(away)]], atol=1e-12)


def test_the_base_returns_to_where_it_started():
    """The velocities of a period add up to none, in the frame of the base."""
    times = np.linspace(0.0, 6.0, 301)[:-1]
    np.testing.assert_allclose(np.mean([whole_body.drive(t, 6.0) for t in times], axis=0), 0.0, atol=1e-12)


def test_arms_keep_apart():
    robot = wheeled.load("general")
    state = robot.make_state(["base"])
    q = self_collision.motion(state, 40)
    state.q = q
    assert robot.compute_distances(state).distance.min() < 0.0
    moved = self_collision.cleared(robot, state, q)
    state.q = moved
    assert robot.compute_distances(state).distance.min() > self_collision.CLEARANCE
    assert (moved >= robot.get_limit_q_lower(state)).all() and (moved <= robot.get_limit_q_upper(state)).all()
    # configurations that were clear stay as they are
    state.q = q
    clear = (robot.compute_distances(state).distance > 1.02 * self_collision.CLEARANCE).all(axis=1)
    assert clear.any()
    np.testing.assert_allclose(moved[clear], q[clear])


@pytest.mark.parametrize("example", [arm_ik, self_collision], ids=lambda x: x.__name__)
def test_examples_check_themselves(example, monkeypatch, capsys):
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)
    example.main(["--test", "--quiet", "--num-frames", "100"])
    assert "test passed" in capsys.readouterr().out


def test_marks_and_joints_are_drawn_where_they_are():
    robot = wheeled.load("general")
    state = robot.make_state(["base", "right_tool"])
    wheeled.set_joints(state, wheeled.READY)
    model, now = wheeled.drawn(robot, floating=True, marks=1)
    point = np.array([0.3, 0.2, 0.1])
    wheeled.show(model, robot, now, state.q, state.joint_names, base=(0.0, 0.0, 0.0), marks=[point])
    poses = dict(zip(model.body_label, now.body_q.numpy(), strict=True))
    assert poses["mark_0"][:3] == pytest.approx(point)
    # single precision
    assert poses["right_tool"][:3] == pytest.approx(robot.compute_transformation(state, 0, 1)[:3, 3], abs=1e-6)
