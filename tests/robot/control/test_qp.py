"""Inverse kinematics by quadratic programs."""

import itertools
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from newton_like import assets
from newton_like import robot as rd
from newton_like.robot.control.task_space import pose_error, task_jacobian
from newton_like.robot.nearest import Capsules
from tests.support.arms import arm, reachable
from tests.support.robot_calls import shuffled_state

pytest.importorskip("daqp")


def made(rng, **options):
    robot = arm(rng, **options)
    state = shuffled_state(robot, rng)
    state.set_q(rng.uniform(-1.0, 1.0, len(state.joint_names)))
    return robot, state, state.link_names.index("tool_a")


def near_goal(robot, state, rng, tool, size: float = 0.3):
    other = robot.make_state(state.link_names, state.joint_names)
    other.set_q(state.q + size * rng.uniform(-1.0, 1.0, len(state.joint_names)))
    return robot.compute_transformation(other, state.base_link_idx, tool)


def test_near_goals_are_reached_within_limits(rng):
    robot, state, tool = made(rng)
    before = state.q
    goal = near_goal(robot, state, rng, tool)
    path = rd.solve_ik_qp(robot, state, rd.PoseTask(tool, goal))
    assert path.success and path.status == "reached"
    np.testing.assert_array_equal(path.q[0], before)
    np.testing.assert_array_equal(state.q, before)
    assert (path.q >= robot.get_limit_q_lower(state)).all() and (path.q <= robot.get_limit_q_upper(state)).all()
    state.set_q(path.q[-1])
    found = robot.compute_transformation(state, state.base_link_idx, tool)
    np.testing.assert_allclose(found, goal, rtol=0, atol=3e-4)


def test_velocities_keep_their_limits(rng):
    robot, state, tool = made(rng)
    goal = reachable(robot, state, rng, tool)
    path = rd.solve_ik_qp(robot, state, rd.PoseTask(tool, goal), dt=0.01, steps=60)
    speed = np.abs(np.diff(path.q, axis=0)) / 0.01
    assert len(speed) and speed.max() <= 2.0 * (1.0 + 1e-9)


def test_a_step_is_the_least_of_its_cost(rng):
    """Against a general optimiser of SciPy, with limits that are active."""
    robot, state, tool = made(rng, limit=1.1)
    goal, posture = reachable(robot, state, rng, tool), rng.uniform(-1.0, 1.0, 7)
    task = rd.PoseTask(tool, goal, rotation_weight=0.7, position_weight=1.3, gain=0.8)
    step = rd.solve_qp_step(robot, state, task, damping=0.1, posture=posture, posture_weight=0.2, longest_step=0.7)
    assert step.success and step.status == "optimal"
    T, J = task_jacobian(robot, state, tool, state.base_link_idx)
    e, w = pose_error(goal, T), np.repeat([0.7, 1.3], 3)

    def cost(x):
        r = np.concatenate([w * (J @ x - 0.8 * e), 0.2 * (x - posture + state.q), 0.1 * x])
        return 0.5 * r @ r

    limits = robot.get_limit_q_lower(state) - state.q, robot.get_limit_q_upper(state) - state.q
    bounds = list(zip(*(x.clip(-0.7, 0.7) for x in limits), strict=True))
    best = minimize(cost, np.zeros(7), bounds=bounds, method="L-BFGS-B", options=dict(ftol=1e-15, gtol=1e-10))
    assert cost(step.dq) <= best.fun + 1e-9
    np.testing.assert_allclose(step.dq, best.x, atol=1e-4)


@pytest.mark.slow
def test_capsules_keep_their_distance(rng):
    """On a way that leads through an obstacle without the constraint, if there is one."""
    robot, state, tool = made(rng)
    lower, upper = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
    some = robot.make_state(state.link_names, state.joint_names)
    some.set_q(rng.uniform(lower, upper, (200, 7)))
    free = np.flatnonzero(robot.compute_distances(some).distance.min(axis=1) > 0.1)
    start, end = rng.choice(free, 2, replace=False)
    goal = robot.compute_transformation(some, state.base_link_idx, tool)[end]
    state.set_q(some.q[start])
    path = rd.solve_ik_qp(robot, state, rd.PoseTask(tool, goal), safe_distance=0.05, longest_step=0.02, steps=150)
    some.set_q(path.q)
    # steps are linearised
    assert robot.compute_distances(some).distance.min() > 0.05 - 0.005
    step = rd.solve_qp_step(robot, state, rd.PoseTask(tool, goal), safe_distance=0.05, nearest=100, approach=0.3)
    found = robot.compute_distances(state, jacobian=True)
    assert (found.jacobian @ step.dq >= -0.3 * (found.distance - 0.05) - 1e-8).all()


def test_distances_that_no_step_reaches_do_not_throw_the_robot(rng):
    robot, state, tool = made(rng)
    state.set_q(np.zeros(7))
    for options in ({}, dict(dt=1e-3)):
        step = rd.solve_qp_step(robot, state, rd.PoseTask(tool, np.eye(4)), safe_distance=3.0, **options)
        found = robot.compute_distances(state, jacobian=True)
        assert step.success and step.too_near == found.links
        moves = np.abs(found.jacobian).max(axis=1) > 1e-9
        assert moves.any() and (found.jacobian @ step.dq > -1e-9)[np.argsort(found.distance)[:8]].all()
        path = rd.solve_ik_qp(robot, state, rd.PoseTask(tool, np.eye(4)), safe_distance=3.0, steps=20, **options)
        assert not path.success and path.too_near == found.links


def chain(lengths, post=None, limit: float | None = None, radius: float = 0.05, gap: float = 0.02) -> rd.Robot:
    """Links that turn about z, each with a capsule along x that begins and ends `gap` beside the joints; and a post along z."""
    before, T = rd.Link("base", np.eye(6)), np.eye(4)
    base = before
    if post is not None:
        base.add_collision(capsule("post", [*post, -1.0], [*post, 1.0], radius, 1, 2))
    for i, length in enumerate(lengths):
        link, joint = rd.Link(f"l{i}", np.eye(6)), rd.Joint.make_revolute(f"j{i}")
        if limit is not None:
            joint.set_limit_q(-limit, limit)
        joint.set_limit_qdot(-1.0, 1.0)
        joint.connect_links(before, link, T)
        bits = (2, 1) if post is not None else (1, 1)
        link.add_collision(capsule("c", [gap, 0.5 * gap, 0.0], [length - gap, 0.5 * gap, 0.0], radius, *bits))
        before, T = link, np.eye(4)
        T[0, 3] = length
    tool = rd.Link("tool", np.zeros((6, 6)))
    rd.Joint.make_fixed("hold").connect_links(before, tool, T)
    return rd.Robot(rd.RobotConfiguration("chain", base), evaluator="general")


def capsule(name, start, end, radius, coltype, colaffinity) -> rd.Collision:
    collision = rd.Collision(name)
    collision.add_geom(rd.GeomCapsule(np.array(start, float), np.array(end, float), radius, coltype, colaffinity))
    return collision


def test_capsules_that_always_overlap_do_not_stop_a_motion(rng):
    """Capsules of adjacent links overlap at all angles of their joint, by slightly different amounts."""
    robot = chain([0.3] * 3)
    state, goal = robot.make_state(["base", "tool"], []), rng.uniform(0.3, 0.6, 3)
    state.q = goal
    task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
    state.q = [0.0, 0.1, 0.0]
    path = rd.solve_ik_qp(robot, state, task, safe_distance=0.02)
    assert path.success
    np.testing.assert_allclose(path.q[-1], goal, atol=2e-3)
    assert sorted(sorted(names) for names in path.too_near) == [["l0", "l1"], ["l1", "l2"]]
    far = [set(names) for names in robot.compute_distances(state).links].index({"l0", "l2"})
    others = rd.solve_ik_qp(robot, state, task, safe_distance=0.02, pairs=[far])
    assert others.success and others.too_near == []


def test_small_derivatives_do_not_throw_the_robot(rng):
    """Of capsules that overlap in some configurations: the derivative of their distance vanishes at an extended joint."""
    robot = chain([0.3, 0.3], gap=0.04, radius=0.02)
    state = robot.make_state(["base", "tool"], [])
    for angle in (0.0, 1e-6, 1e-4):
        # the ends of the capsules are nearest at some angle
        angles = np.linspace(-3.0, 3.0, 2001)
        many = robot.make_state(["base", "tool"], [])
        many.q = np.stack([0.0 * angles, angles], axis=1)
        nearest = angles[np.argmin(robot.compute_distances(many).distance[:, 0])]
        state.q = [0.3, nearest + angle]
        task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
        step = rd.solve_qp_step(robot, state, task, safe_distance=2.0)
        assert step.success and np.abs(step.dq).max() < 1.0 and len(step.too_near) == 1


def test_a_start_beyond_limits_comes_back_between_capsules(rng):
    """Bounds of one step and linearised distances contradict each other; smaller steps do not."""
    for post, start in (((0.6, 0.53), (-0.068, -2.669, -0.38)), ((0.3, -0.7), (-0.278, -2.395, -1.062))):
        robot = chain([0.3] * 3, post=post, limit=1.2, radius=0.02, gap=0.0)
        state = robot.make_state(["base", "tool"], [])
        state.q = np.clip(start, -1.2, 1.2)
        task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
        state.q = start
        path = rd.solve_ik_qp(robot, state, task, safe_distance=0.01)
        assert path.success, path.status


def test_success_needs_capsules_that_keep_their_distance(rng):
    """A bar that is too near to a post at the start."""
    robot = chain([1.0], post=(0.9, 0.0), radius=0.02, gap=0.0)
    state, start = robot.make_state(["base", "tool"], []), rng.uniform(0.046, 0.05)
    for end, reached in ((start, False), (rng.uniform(0.2, 1.0), True)):
        state.q = [end]
        task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
        state.q = [start]
        assert 0.0 < robot.compute_distances(state).distance.min() < 0.01
        path = rd.solve_ik_qp(robot, state, task, safe_distance=0.05)
        assert path.success == reached and path.too_near == []
        assert (np.diff(path.q[:, 0]) >= -1e-9).all()


@pytest.mark.parametrize("longest_step", [0.3, 2.5])
def test_long_steps_do_not_go_through_thin_posts(rng, longest_step):
    """A link that turns by 2 rad, with a post in its way at a random angle."""
    for angle in rng.uniform(0.4, 1.6, 5):
        radius = rng.uniform(0.3, 0.9)
        robot = chain([1.0], post=(radius * np.cos(angle), radius * np.sin(angle)), radius=0.001, gap=0.0)
        state = robot.make_state(["base", "tool"], [])
        state.q = [2.0]
        task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
        state.q = [0.0]
        path = rd.solve_ik_qp(robot, state, task, safe_distance=0.0, longest_step=longest_step)
        assert not path.success and 0.0 < path.q.max() < angle
        assert rd.solve_ik_qp(robot, state, task, longest_step=longest_step).success


def test_joints_beyond_their_limits_move_back(rng):
    robot, state, tool = made(rng)
    q = np.zeros(7)
    q[2] = 2.9
    state.set_q(q)
    step = rd.solve_qp_step(robot, state, rd.PoseTask(tool, near_goal(robot, state, rng, tool)), dt=0.1)
    assert step.success
    np.testing.assert_allclose(step.dq[2], -0.2, atol=1e-9)


@pytest.mark.parametrize("options", [{}, dict(dt=0.02)])
def test_success_needs_joints_within_their_limits(rng, options):
    """From a start 1 rad beyond a limit, for the pose that the link has there: another joint on the same axis reaches it."""
    links = [rd.Link(name, np.eye(6)) for name in ("base", "middle", "tip")]
    for i in range(2):
        joint = rd.Joint.make_revolute(f"j{i}")
        joint.connect_links(links[i], links[i + 1])
        joint.set_limit_q(*[(-1.0, 1.0), (-3.0, 3.0)][i])
        joint.set_limit_qdot(-2.0, 2.0)
    robot = rd.Robot(rd.RobotConfiguration("two joints", links[0]))
    state = robot.make_state(["base", "tip"], ["j0", "j1"])
    state.set_q(np.array([2.0, rng.uniform(-1.0, 1.0)]))
    task = rd.PoseTask(1, robot.compute_transformation(state, 0, 1))
    path = rd.solve_ik_qp(robot, state, task, steps=300, **options)
    assert path.success and path.status == "reached" and len(path.q) > 2
    lower, upper = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
    assert (path.q[-1] >= lower).all() and (path.q[-1] <= upper).all()
    # the joint moves towards its limit only, and stays within it
    assert (np.diff(path.q[:, 0])[path.q[:-1, 0] > 1.0] < 0.0).all()
    assert (path.q[:, 1] >= -3.0).all() and (path.q[:, 1] <= 3.0).all()
    short = rd.solve_ik_qp(robot, state, task, steps=2, **options)
    assert not short.success and short.status == "steps" and short.q[-1, 0] > 1.0


def test_two_hands(rng):
    robot, state, left = made(rng, hands=2)
    right = state.link_names.index("tool_b")
    tasks = [
        rd.PoseTask(left, near_goal(robot, state, rng, left)),
        rd.PoseTask(right, near_goal(robot, state, rng, right)),
    ]
    path = rd.solve_ik_qp(robot, state, tasks)
    assert path.success
    state.set_q(path.q[-1])
    for task in tasks:
        np.testing.assert_allclose(
            robot.compute_transformation(state, state.base_link_idx, task.link), task.pose, rtol=0, atol=3e-4
        )


def test_goals_out_of_reach_are_reported(rng):
    robot, state, tool = made(rng)
    goal = np.eye(4)
    goal[:3, 3] = 50.0
    path = rd.solve_ik_qp(robot, state, rd.PoseTask(tool, goal), steps=100)
    assert not path.success and path.status in ("stalled", "steps") and path.position_error > 1.0


def test_missing_solver_is_named(rng, monkeypatch):
    robot, state, tool = made(rng)
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(ImportError, match="daqp"):
        rd.solve_qp_step(robot, state, rd.PoseTask(tool, np.eye(4)))


@pytest.mark.parametrize(
    "task, options, word",
    [
        (dict(pose=np.eye(3)), {}, "pose"),
        (dict(gain=1.5), {}, "gain"),
        (dict(rotation_weight=-1.0), {}, "rotation_weight"),
        ({}, dict(dt=0.0), "dt"),
        ({}, dict(damping=0.0), "damping"),
        ({}, dict(longest_step=0.0), "longest_step"),
        ({}, dict(posture=np.zeros(3)), "posture"),
        ({}, dict(safe_distance=0.1, approach=2.0), "approach"),
        ({}, dict(safe_distance=0.1, nearest=0), "nearest"),
        ({}, dict(safe_distance=-0.1), "safe_distance"),
    ],
)
def test_wrong_arguments_are_named(rng, task, options, word):
    robot, state, tool = made(rng)
    with pytest.raises(rd.RobotError, match=word):
        rd.solve_qp_step(robot, state, rd.PoseTask(**(dict(link=tool, pose=np.eye(4)) | task)), **options)


def test_batches_are_refused(rng):
    robot, state, tool = made(rng)
    state.set_q(np.zeros((2, 7)))
    for call in (rd.solve_qp_step, rd.solve_ik_qp):
        with pytest.raises(rd.ShapeError, match="solve_ik"):
            call(robot, state, rd.PoseTask(tool, np.eye(4)))


@pytest.mark.slow
def test_true_distances_stay_safe_on_the_whole_path(rng):
    """A hand that is to reach behind the base, where linearised distances lead too near."""
    robot = rd.Robot(rd.load_robot_from_urdf(assets.path("wheeled_humanoid.urdf"), "base"), evaluator="general")
    state = robot.make_state(["base", "right_tool"])
    q, names = state.q, state.joint_names
    for name, x in {"elbow": -1.2, "shoulder_roll": 0.3}.items():
        q[names.index(f"left_{name}")], q[names.index(f"right_{name}")] = x, -x if "roll" in name else x
    state.q = q
    goal = robot.compute_transformation(state, 0, 1)
    goal[:3, 3] = np.array([0.1113, 0.1035, 0.3096]) + 0.02 * rng.normal(size=3)
    for options in ({}, {"longest_step": 0.05}, {"nearest": 27, "approach": 0.2}):
        path = rd.solve_ik_qp(
            robot, state, rd.PoseTask(1, goal, rotation_weight=0.0), safe_distance=0.03, steps=80, **options
        )
        many = robot.make_state(["base", "right_tool"])
        many.q = path.q
        # 0.1 mm less than the safe distance is allowed
        assert robot.compute_distances(many).distance.min() > 0.03 - 1.001e-4


def test_a_step_of_a_path_computes_distances_once_where_it_starts(rng, monkeypatch):
    """Further launches are for the places on the way, which are batches."""
    robot, state, tool = made(rng)
    calls, evaluate = [], Capsules.evaluate

    def counted(capsules, core, jacobian, *args):
        calls.append((core.size(("q",)), jacobian))
        return evaluate(capsules, core, jacobian, *args)

    monkeypatch.setattr(Capsules, "evaluate", counted)
    path = rd.solve_ik_qp(
        robot, state, rd.PoseTask(tool, near_goal(robot, state, rng, tool)), safe_distance=0.0, steps=20
    )
    at_starts = [jacobian for size, jacobian in calls if size is None]
    assert all(at_starts) and len(path.q) - 1 <= len(at_starts) <= len(path.q)


@pytest.mark.parametrize(
    "options, word",
    [
        (dict(dt=0.0), "dt"),
        (dict(speed=1.0), "speed"),
        (dict(damping=-1.0), "damping"),
        (dict(safe_distance=np.nan), "safe_distance"),
        (dict(posture=np.zeros(3)), "posture"),
        (dict(tolerance=(-1.0, -1.0)), "tolerance"),
        (dict(tolerance=np.ones((3, 2))), "tolerance"),
        (dict(pairs=[10**6]), "pairs"),
        (dict(posture_weight=np.nan), "posture_weight"),
        (dict(nearest=0), "nearest"),
        (dict(approach=0.0), "approach"),
        (dict(longest_step=-1.0), "longest_step"),
        (dict(steps=0), "steps"),
    ],
)
def test_options_of_a_path_are_checked_where_it_has_no_steps(rng, options, word):
    robot, state, tool = made(rng)
    goal = robot.compute_transformation(state, state.base_link_idx, tool)
    assert rd.solve_ik_qp(robot, state, rd.PoseTask(tool, goal)).success
    with pytest.raises((rd.RobotError, TypeError), match=word):
        rd.solve_ik_qp(robot, state, rd.PoseTask(tool, goal), **options)


def turning_arm(posts) -> rd.Robot:
    """A link that turns about z with a capsule at a radius of 0.9 m, and posts of the base; rigid capsules of one more link are near."""
    base, arm, hand = rd.Link("base"), rd.Link("arm"), rd.Link("hand")
    rd.Joint.make_revolute("turn").connect_links(base, arm)
    rd.Joint.make_fixed("hold").connect_links(arm, hand)
    for link, ends in ((arm, [([0.8, 0, 0], [1.0, 0, 0])]), (hand, [([0.8, 0, 0.03], [1.0, 0, 0.03])]), (base, posts)):
        collision = rd.Collision(link.name)
        for start, end in ends:
            collision.add_geom(rd.GeomCapsule(start, end, 0.01, 1, 1))
        link.add_collision(collision)
    return rd.Robot(rd.RobotConfiguration("turning", base), evaluator="general")


@pytest.mark.slow
def test_a_path_does_not_go_through_a_thin_post():
    """The post is between the places that the steps visit, and other pairs are nearer than it at each of them."""
    near = [
        ([0.9 * np.cos(a), 0.9 * np.sin(a), 0.06], [0.9 * np.cos(a), 0.9 * np.sin(a), 0.2])
        for a in np.linspace(-0.7, 0.7, 30)
    ]
    robot = turning_arm([*near, ([0.9, 0, -0.2], [0.9, 0, 0.0])])
    state, goal = robot.make_state(["base", "arm"]), np.eye(4)
    state.q = [-0.5]
    goal[:2, :2] = [[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]]
    path = rd.solve_ik_qp(robot, state, rd.PoseTask(1, goal), safe_distance=0.005)
    many = robot.make_state(["base", "arm"])
    many.q = np.concatenate([np.linspace(a, b, 50) for a, b in itertools.pairwise(path.q)])
    assert robot.compute_distances(many).distance.min() > 0.0
    assert not path.success and path.q[-1] < 0.0


def test_links_that_do_not_move_against_each_other_may_be_near():
    robot = turning_arm([])
    state, goal = robot.make_state(["base", "arm"]), np.eye(4)
    state.q = [-0.5]
    assert robot.compute_distances(state).distance.min() < 0.02
    goal[:2, :2] = [[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]]
    assert rd.solve_ik_qp(robot, state, rd.PoseTask(1, goal), safe_distance=0.02).success


@pytest.mark.parametrize("solve", [rd.solve_qp_step, rd.solve_ik_qp])
def test_contradictory_limits_are_named(rng, solve):
    """As in solve_ik: no step keeps them."""
    robot, state, tool = made(rng)
    joint = next(joint for joint in robot.joints if joint.name == state.joint_names[2])
    joint.set_limit_q_upper(0.0)
    joint.set_limit_q_lower(1.0)
    with pytest.raises(rd.RobotError, match=f"'{state.joint_names[2]}'.*1.*0"):
        solve(robot, state, rd.PoseTask(tool, near_goal(robot, state, rng, tool)))
