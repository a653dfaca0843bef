"""Inverse kinematics in lanes."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like import robot as rd
from tests.support.arms import arm, reachable
from tests.support.random_robots import random_robot
from tests.support.robot_calls import shuffled_state


def limits(robot, state):
    return robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)


def errors(T, goal) -> tuple[np.ndarray, np.ndarray]:
    """Angles and distances between poses."""
    turn = Rotation.from_matrix((goal[..., :3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2)).reshape(-1, 3, 3)).magnitude()
    return turn.reshape(goal.shape[:-2]), np.linalg.norm(goal[..., :3, 3] - T[..., :3, 3], axis=-1)


def poses(robot, state, q, target, ref=None):
    other = robot.make_state(state.link_names, state.joint_names)
    other.set_q(q)
    return robot.compute_transformation(other, state.base_link_idx if ref is None else ref, target)


def start_of(robot, rng, **options):
    state = shuffled_state(robot, rng)
    return state, state.link_names.index(options.get("link", "tool_a"))


def test_reachable_poses_are_reached(rng):
    robot = arm(rng)
    state, tool = start_of(robot, rng)
    state.set_q(rng.uniform(-1.0, 1.0, 7))
    goals = reachable(robot, state, rng, tool, 64)
    found = rd.solve_ik(robot, state, tool, goals, starts=16)
    turn, move = errors(poses(robot, state, found.q, tool), goals)
    assert found.success.mean() > 0.95
    # the forward kinematics says the same
    np.testing.assert_allclose(found.rotation_error, turn, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.position_error, move, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.success, (found.rotation_error < 1e-6) & (found.position_error < 1e-6))


def test_limits_hold_and_the_state_stays(rng):
    """Also for goals that are out of reach, and from a start that is beyond the limits."""
    robot = arm(rng, limit=0.6)
    state, tool = start_of(robot, rng)
    state.set_q(rng.uniform(-2.0, 2.0, 7))
    before, lower, upper = state.q, *limits(robot, state)
    goals = np.tile(np.eye(4), (40, 1, 1))
    goals[:, :3, :3] = Rotation.random(40, random_state=rng).as_matrix()
    goals[:, :3, 3] = rng.normal(size=(40, 3))
    found = rd.solve_ik(robot, state, tool, goals, starts=3)
    assert (found.q >= lower).all() and (found.q <= upper).all()
    np.testing.assert_array_equal(state.q, before)
    assert state.q.shape == before.shape


def test_limits_are_those_of_the_call(rng):
    """Limits that are set, and set back, between calls."""
    robot = arm(rng)
    state, tool = start_of(robot, rng)
    state.set_q(rng.uniform(-1.0, 1.0, 7))
    goal = reachable(robot, state, rng, tool)
    first = rd.solve_ik(robot, state, tool, goal)
    joint = robot.joints[int(rng.integers(7))]
    before, at = joint.limit_q, state.joint_names.index(joint.name)
    q = first.q[at]
    joint.limit_q = (q + 0.1, q + 0.2)
    assert q + 0.1 <= rd.solve_ik(robot, state, tool, goal).q[at] <= q + 0.2
    joint.limit_q = before
    np.testing.assert_array_equal(rd.solve_ik(robot, state, tool, goal).q, first.q)


def test_goals_of_a_batch_are_solved_as_alone(rng):
    robot = arm(rng)
    state, tool = start_of(robot, rng)
    goals = reachable(robot, state, rng, tool, 11)
    goals[3, :3, 3] += 5.0
    starts = rng.uniform(-1.0, 1.0, (11, 7))
    state.set_q(starts)
    together = rd.solve_ik(robot, state, tool, goals, starts=4)
    alone = robot.make_state(state.link_names, state.joint_names)
    for i, goal in enumerate(goals):
        alone.set_q(starts[i])
        for whole, one in zip(together, rd.solve_ik(robot, alone, tool, goal, starts=4), strict=True):
            np.testing.assert_array_equal(whole[i], one)
    state.set_q(starts[0])
    one_start = rd.solve_ik(robot, state, tool, goals, starts=4)
    alone.set_q(starts[0])
    np.testing.assert_array_equal(one_start.q[5], rd.solve_ik(robot, alone, tool, goals[5], starts=4).q)


@pytest.mark.slow
def test_specialised_code_has_the_same_bits(rng):
    robot = arm(rng)
    state, tool = start_of(robot, rng)
    special = rd.Robot(robot.configuration, evaluator="specialised")
    other = special.make_state(state.link_names, state.joint_names)
    goals = reachable(robot, state, rng, tool, 20)
    for x, y in zip(rd.solve_ik(robot, state, tool, goals), rd.solve_ik(special, other, tool, goals), strict=True):
        np.testing.assert_array_equal(x, y)


def test_unreachable_goals_are_reported_with_the_nearest_pose(rng):
    """A planar arm of two links that is asked for a point far away stretches towards it."""
    links = [rd.Link(name, np.eye(6)) for name in ("base", "upper", "lower", "tip")]
    T = np.eye(4)
    T[0, 3] = 1.0
    for i, pose in enumerate((np.eye(4), T)):
        rd.Joint.make_revolute(f"j{i}").connect_links(links[i], links[i + 1], pose, np.eye(4))
    rd.Joint.make_fixed("j2").connect_links(links[2], links[3], T, np.eye(4))
    robot = rd.Robot(rd.RobotConfiguration("planar", links[0]))
    state = robot.make_state(["base", "tip"])
    state.set_q(rng.uniform(0.2, 1.0, 2))
    angle = rng.uniform(-3.0, 3.0)
    goal = np.eye(4)
    goal[:2, 3] = 3.0 * np.array([np.cos(angle), np.sin(angle)])
    found = rd.solve_ik(robot, state, 1, goal, weights=(0.0, 1.0))
    assert not found.success
    np.testing.assert_allclose(found.position_error, 1.0, atol=1e-5)
    tip = poses(robot, state, found.q, 1)
    np.testing.assert_allclose(tip[:2, 3], 2.0 / 3.0 * goal[:2, 3], atol=1e-2)


def test_joints_without_limits_end_within_half_a_turn_of_the_start(rng):
    robot = arm(rng, continuous=7)
    state, tool = start_of(robot, rng)
    start = rng.uniform(-30.0, 30.0, 7)
    state.set_q(start)
    goals = reachable(robot, state, rng, tool, 32)
    found = rd.solve_ik(robot, state, tool, goals)
    assert found.success.any()
    assert np.abs(found.q - start).max() <= np.pi + 1e-9
    turn, move = errors(poses(robot, state, found.q, tool), goals)
    assert turn[found.success].max() < 2e-6 and move[found.success].max() < 2e-6


@pytest.mark.parametrize("far", [1e7, 1e300, 1e308])
def test_limits_that_are_far_away(rng, far):
    """Those of both sides, of one side, and of a joint that is there. Goals out of reach have further starts, too."""
    robot = arm(rng)
    state, tool = start_of(robot, rng)
    for joint, limit in zip(robot.joints, ((-far, far), (-far, 2.0), (-2.0, far)), strict=False):
        joint.set_limit_q(*limit)
    state.set_q(rng.uniform(-1.0, 1.0, 7))
    goals = poses(robot, state, rng.uniform(-2.0, 2.0, (32, 7)), tool)
    found = rd.solve_ik(robot, state, tool, goals, starts=16)
    assert found.success.mean() > 0.9
    lower, upper = limits(robot, state)
    assert (found.q >= lower).all() and (found.q <= upper).all()
    turn, move = errors(poses(robot, state, found.q, tool), goals)
    assert turn[found.success].max() < 2e-6 and move[found.success].max() < 2e-6
    goals[:, :3, 3] += 9.0
    assert not rd.solve_ik(robot, state, tool, goals, starts=3).success.any()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_limits_on_one_far_side(rng, sign):
    """All positions of a sliding joint are millions of metres away."""
    base, tip = rd.Link("base", np.eye(6)), rd.Link("tip", np.eye(6))
    joint = rd.Joint.make_prismatic("slide")
    joint.set_limit_q(*sorted((5e6 * sign, 6e6 * sign)))
    joint.connect_links(base, tip)
    robot = rd.Robot(rd.RobotConfiguration("slide", base))
    state = robot.make_state(["base", "tip"])
    found = rd.solve_ik(robot, state, 1, np.eye(4), starts=3)
    assert not found.success and found.q[0] == 5e6 * sign


@pytest.mark.slow
def test_two_hands_and_a_moving_reference(rng):
    """One hand has a pose in the base, the other one in the first hand; joints that move neither stay."""
    robot = arm(rng, hands=2)
    state = shuffled_state(robot, rng)
    left, right = (state.link_names.index(f"tool_{x}") for x in "ab")
    other = robot.make_state(state.link_names, state.joint_names)
    other.set_q(rng.uniform(-1.5, 1.5, (16, 14)))
    goals = [
        robot.compute_transformation(other, state.base_link_idx, left),
        robot.compute_transformation(other, left, right),
    ]
    state.set_q(rng.uniform(-0.5, 0.5, 14))
    found = rd.solve_ik(robot, state, [left, right], goals, [state.base_link_idx, left], starts=8)
    assert found.success.mean() > 0.5
    for goal, link, ref in zip(goals, (left, right), (state.base_link_idx, left), strict=True):
        turn, move = errors(poses(robot, state, found.q, link, ref), goal)
        assert turn[found.success].max() < 2e-6 and move[found.success].max() < 2e-6
    # out of reach, so that there are several starts
    goals[0][3, :3, 3] += 9.0
    one = rd.solve_ik(robot, state, left, goals[0])
    still = [i for i, name in enumerate(state.joint_names) if name.startswith("joint_b")]
    np.testing.assert_array_equal(one.q[:, still], np.tile(state.q[still], (16, 1)))


@pytest.mark.parametrize("unit", [True, False])
def test_errors_follow_the_forward_kinematics_of_random_robots(rng, unit):
    """Branches, sliding and helical joints, and coordinates in other units."""
    links, _ = random_robot(rd, rng.integers(2**32), 8, unit=unit, helical=not unit)
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]))
    state = shuffled_state(robot, rng)
    lower, upper = limits(robot, state)
    goal_state = robot.make_state(state.link_names, state.joint_names)
    goal_state.set_q(rng.uniform(lower, upper, (12, len(lower))))
    target, ref = rng.choice(len(state.link_names), 2, replace=False)
    goals = robot.compute_transformation(goal_state, ref, target)
    found = rd.solve_ik(robot, state, target, goals, ref, starts=4)
    turn, move = errors(poses(robot, state, found.q, target, ref), goals)
    np.testing.assert_allclose(found.rotation_error, turn, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.position_error, move, rtol=0, atol=1e-9)
    assert (found.q >= lower).all() and (found.q <= upper).all()


def test_a_goal_that_is_met_needs_no_step(rng):
    robot = arm(rng)
    state, tool = start_of(robot, rng)
    q = rng.uniform(-1.0, 1.0, 7)
    state.set_q(q)
    found = rd.solve_ik(robot, state, tool, poses(robot, state, q, tool))
    assert found.success and found.iterations == 1
    np.testing.assert_array_equal(found.q, q)


def test_the_tree_is_that_of_the_robot(rng):
    """Joints that are disconnected, or connected to other links, after the robot was made."""
    links, joints = random_robot(rd, rng.integers(2**32), 8)
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]))
    state = shuffled_state(robot, rng)
    target, ref = rng.choice(len(state.link_names), 2, replace=False)
    goals = poses(robot, state, rng.uniform(-1.0, 1.0, (4, len(state.joint_names))), target, ref)
    before = [rd.solve_ik(robot, state, *x, starts=2) for x in ((target, goals, ref), (ref, goals, target))]
    # another robot of the same tree, which has not solved anything
    fresh = rd.Robot(robot.configuration)
    state = fresh.make_state(state.link_names, state.joint_names)
    for joint in joints:
        joint.disconnect()
    for i in range(2):
        if i:
            joints[-1].connect_links(rd.Link("stranger"), links[-1])
        after = [rd.solve_ik(fresh, state, *x, starts=2) for x in ((target, goals, ref), (ref, goals, target))]
        for one, two in zip(before, after, strict=True):
            for x, y in zip(one, two, strict=True):
                np.testing.assert_array_equal(x, y)


def test_positions_alone(rng):
    robot = arm(rng)
    state, tool = start_of(robot, rng)
    goals = reachable(robot, state, rng, tool, 16)
    goals[:, :3, :3] = Rotation.random(16, random_state=rng).as_matrix()
    found = rd.solve_ik(robot, state, tool, goals, weights=(0.0, 1.0))
    assert found.success.all() and (found.rotation_error == 0.0).all()
    np.testing.assert_allclose(poses(robot, state, found.q, tool)[:, :3, 3], goals[:, :3, 3], atol=2e-6)


@pytest.mark.parametrize(
    "change, error, word",
    [
        (dict(T_goal=np.eye(3)), rd.ShapeError, "T_goal"),
        (dict(T_goal=2.0 * np.eye(4)), rd.RobotError, "T_goal"),
        (dict(T_goal=np.full((4, 4), np.nan)), rd.RobotError, "T_goal"),
        (dict(target_link=99), IndexError, "99"),
        (dict(target_link=[]), rd.RobotError, "target_link"),
        (dict(target_link=[1, 2]), rd.ShapeError, "T_goal"),
        (dict(weights=(1.0, -1.0)), rd.RobotError, "weights"),
        (dict(weights=(0.0, 0.0)), rd.RobotError, "weights"),
        (dict(weights=(1.0,)), rd.ShapeError, "weights"),
        (dict(tolerance=(0.0, 1.0)), rd.RobotError, "tolerance"),
        (dict(iterations=0), rd.RobotError, "iterations"),
        (dict(starts=1.5), rd.RobotError, "starts"),
        (dict(starts=10**6), rd.RobotError, "starts"),
        (dict(seed=-1), rd.RobotError, "seed"),
    ],
)
def test_wrong_arguments_are_named(rng, change, error, word):
    robot = arm(rng)
    state = robot.make_state()
    arguments = dict(target_link=3, T_goal=np.eye(4)) | change
    with pytest.raises(error, match=word):
        rd.solve_ik(robot, state, **arguments)


def test_batches_of_different_sizes_are_refused(rng):
    robot = arm(rng)
    state = robot.make_state()
    state.set_q(np.zeros((3, 7)))
    with pytest.raises(rd.ShapeError, match="T_goal"):
        rd.solve_ik(robot, state, 3, np.tile(np.eye(4), (2, 1, 1)))
    foreign = arm(rng).make_state()
    with pytest.raises(rd.RobotError, match="another robot"):
        rd.solve_ik(robot, foreign, 3, np.eye(4))


@pytest.mark.parametrize("joints", [0, 7])
def test_links_that_no_joint_moves(rng, joints):
    """The base has its pose, or never gets it; so do links of a robot without joints."""
    robot = arm(rng, joints)
    state = robot.make_state()
    link = state.base_link_idx if joints else state.link_names.index("tool_a")
    goal = robot.compute_transformation(state, state.base_link_idx, link)
    assert rd.solve_ik(robot, state, link, goal).success
    goal[0, 3] += 1.0
    found = rd.solve_ik(robot, state, link, goal)
    assert not found.success
    np.testing.assert_array_equal(found.q, state.q)
    np.testing.assert_allclose(found.position_error, 1.0)
