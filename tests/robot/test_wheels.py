"""Wheels of robots: any order of the joints, and batches."""

import itertools

import numpy as np
import pytest

import newton_like.robot as rd
from newton_like import assets

PLACES = {"fr": (0.3, -0.2), "fl": (0.3, 0.2), "rr": (-0.3, -0.2), "rl": (-0.3, 0.2)}


def robot_of(kind, names, params, T=None) -> rd.Robot:
    """A base with wheels at their places, joints of the mobile base in the order of `names`."""
    base, T = rd.Link("base"), np.eye(4) if T is None else T
    for name in sorted(names):
        pose = np.eye(4)
        pose[:2, 3] = PLACES[name]
        joint = rd.Joint.make_revolute(name, axis=T[:3, 1])
        joint.connect_links(base, rd.Link(f"{name}_link"), shifted(T, pose))
    return rd.Robot(rd.RobotConfiguration("case", base, kind(list(names), params, T)), evaluator="general")


def shifted(T, pose) -> np.ndarray:
    """A pose without rotation at the place of `pose` in the frame T."""
    result = np.eye(4)
    result[:3, 3] = (T @ pose)[:3, 3]
    return result


def frame(rng) -> np.ndarray:
    """A wheel frame somewhere in the base, turned about z."""
    T, a = np.eye(4), rng.uniform(-np.pi, np.pi)
    T[:2, :2] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
    T[:2, 3] = rng.normal(size=2)
    return T


@pytest.mark.parametrize(
    ("kind", "names", "params"),
    [
        (rd.MobileBaseDifferential, ("fr", "fl"), [0.4, 0.1]),
        (rd.MobileBaseMecanum, ("fr", "fl", "rr", "rl"), [0.3, 0.2, 0.1]),
    ],
)
def test_the_order_of_wheel_joints_does_not_matter(rng, kind, names, params):
    T = frame(rng)
    velocity, found = rng.normal(size=3), []
    for order in itertools.permutations(names):
        robot = robot_of(kind, order, params, T)
        state = robot.make_state([], sorted(names))
        robot.compute_mobility_inverse_diff_kinematics(state, velocity)
        found.append(state.qdot)
        base, link = robot.configuration.mobile_base, robot.base
        speeds = [state.qdot[sorted(names).index(name)] for name in order]
        slip = rd.slip(base, rd.wheel_axes(base, link), speeds, rd.wheel_roles(base, link))
        np.testing.assert_allclose(slip, 0.0, atol=1e-12)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-13)


def test_wheels_at_one_place_have_the_order_of_the_file(rng):
    T = frame(rng)

    def speeds(order) -> np.ndarray:
        base = rd.Link("base")
        for name in order:
            rd.Joint.make_revolute(name, axis=-T[:3, 1]).connect_links(base, rd.Link(f"{name}_link"))
        configuration = rd.RobotConfiguration("case", base, rd.MobileBaseDifferential(list(order), [0.4, 0.1], T))
        with pytest.warns(UserWarning, match=f"{order[0]} right") as found:
            robot = rd.Robot(configuration, evaluator="general")
        assert found[0].filename == __file__
        state = robot.make_state([], ["a", "b"])
        # the middle between the wheels rests
        robot.compute_mobility_inverse_diff_kinematics(state, [1.0, T[1, 3], -T[0, 3]])
        return state.qdot

    np.testing.assert_allclose(speeds("ab"), -speeds("ba"), rtol=1e-9)
    np.testing.assert_allclose(np.abs(speeds("ab")), 2.0)


@pytest.mark.parametrize("order", list(itertools.permutations(["fr", "fl", "rr", "rl"]))[::3])
def test_wheels_of_screws_without_a_side_are_checked(rng, order):
    """The screw of ``make_revolute(name, T, axis)`` tells front from rear, but not right from left."""
    T, base = frame(rng), rd.Link("base")
    for name in sorted(order):
        pose = np.eye(4)
        pose[:2, 3] = PLACES[name]
        rd.Joint.make_revolute(name, shifted(T, pose), T[:3, 1]).connect_links(base, rd.Link(f"{name}_link"))
    mobile = rd.MobileBaseMecanum(list(order), [0.3, 0.2, 0.1], T)
    if [name[0] for name in order] != list("ffrr"):
        with pytest.raises(rd.RobotError, match="contradict"):
            rd.wheel_roles(mobile, base)
    else:
        with pytest.warns(UserWarning, match=f"{order[0]} front right") as found:
            assert rd.wheel_roles(mobile, base) == [0, 1, 2, 3]
        assert found[0].filename == __file__


def test_batches_have_the_bits_of_single_configurations(rng):
    robot = rd.Robot(rd.load_robot_from_urdf(assets.path("wheeled_humanoid.urdf"), "base"), evaluator="general")
    velocities = rng.normal(size=(64, 3))
    many, one = robot.make_state(), robot.make_state()
    robot.compute_mobility_inverse_diff_kinematics(many, velocities)
    back = robot.compute_mobility_diff_kinematics(many)
    other = robot.make_state()
    robot.compute_mobility_inverse_diff_kinematics(other, velocities[:, 1:], velocities[:, 0])
    np.testing.assert_array_equal(other.qdot, many.qdot)
    for i, velocity in enumerate(velocities):
        robot.compute_mobility_inverse_diff_kinematics(one, velocity)
        np.testing.assert_array_equal(one.qdot, many.qdot[i])
        np.testing.assert_array_equal(robot.compute_mobility_diff_kinematics(one), back[i])
    with pytest.raises(rd.ShapeError, match=r"\(64, 2\).*\(3,\)"):
        robot.compute_mobility_inverse_diff_kinematics(other, velocities[:, 1:], velocities[0])


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (([0.1, 0.0], 0.2), dict(foo=1)),
        (([0.2, 0.5, 0.0],), dict(linear_velocity=[0.5, 0.0], angular_velocity=0.2)),
        ((), dict(body_velocity=[0.2, 0.5, 0.0], linear_velocity=[0.5, 0.0], angular_velocity=0.2)),
        (([0.1, 0.0],), dict(linear_velocity=[0.5, 0.0])),
        ((), dict(linear_velocity=[0.5, 0.0], foo=0.2)),
        ((), {}),
    ],
)
def test_velocities_of_a_base_have_one_form(args, named):
    robot = rd.Robot(rd.load_robot_from_urdf(assets.path("wheeled_humanoid.urdf"), "base"), evaluator="general")
    state = robot.make_state()
    with pytest.raises(TypeError, match=r"body_velocity.*linear_velocity, angular_velocity"):
        robot.compute_mobility_inverse_diff_kinematics(state, *args, **named)
    assert not state.qdot.any()


def test_velocities_of_a_base_by_name(rng):
    robot = rd.Robot(rd.load_robot_from_urdf(assets.path("wheeled_humanoid.urdf"), "base"), evaluator="general")
    state, (w, x, y) = robot.make_state(), rng.normal(size=3).tolist()
    robot.compute_mobility_inverse_diff_kinematics(state, [w, x, y])
    wanted = state.qdot
    for args, named in (
        ((), dict(body_velocity=[w, x, y])),
        (([x, y], w), {}),
        (([x, y],), dict(angular_velocity=w)),
        ((), dict(angular_velocity=w, linear_velocity=[x, y])),
    ):
        state.qdot = np.zeros(robot.dof)
        robot.compute_mobility_inverse_diff_kinematics(state, *args, **named)
        np.testing.assert_array_equal(state.qdot, wanted)
