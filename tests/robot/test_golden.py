"""The golden case of the robot SDK: numbers that were measured on the vendor's library, to the six digits that are given."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like import robot as rd
from tests.support.random_robots import spatial_inertia


def transform(p=(0.0, 0.0, 0.0), axis="z", degrees=0.0):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix(), p
    return T


@pytest.fixture
def golden():
    """The robot and its state; links base, l1, l2, l3, tool have the indices 0 to 4."""
    names = ("base", "l1", "l2")
    base, l1, l2 = (rd.Link(name) for name in names)
    l3 = rd.Link("l3", spatial_inertia(2.0, np.array([0.1, 0.0, 0.0]), np.diag([0.01, 0.02, 0.03])))
    tool = rd.Link("tool", np.zeros((6, 6)))
    rd.Joint.make_revolute("j1", np.eye(4), [0, 0, 1]).connect_links(base, l1, transform((0, 0, 1)))
    rd.Joint.make_revolute("j2", np.eye(4), [0, 0, 1]).connect_links(l1, l2, transform((0.2, 0, 0), "x", -90))
    rd.Joint.make_prismatic("j3", np.eye(4), [1, 0, 0]).connect_links(l2, l3, transform((0.5, 0, 0)))
    rd.Joint.make_fixed("j4").connect_links(l3, tool, transform((0, 0, 0.1)), transform(degrees=90))
    robot = rd.Robot(rd.RobotConfiguration("golden", base))
    state = robot.make_state(["base", "l1", "l2", "l3", "tool"], ["j1", "j2", "j3"])
    state.set_q([0.3, -0.4, 0.2])
    state.set_qdot([1.0, -2.0, 0.5])
    state.set_qddot([0.1, 0.2, -0.3])
    state.set_gravity([0, 0, 0, 0, 0, -9.81])
    return robot, state


BASE, TOOL = 0, 4


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=6e-7)


def test_kinematics(golden):
    robot, state = golden
    close(robot.compute_transformation(state, BASE, TOOL)[:3, 3], (0.777462, 0.345172, 1.272593))
    twist = (-0.921061, -0.389418, -2.0, -1.438942, -0.407894, 0.844743)
    close(robot.compute_body_velocity(state, BASE, TOOL), twist)
    close(robot.compute_body_jacobian(state, BASE, TOOL) @ state.qdot, twist)
    close(robot.compute_center_of_mass(state, BASE), (0.396216, 0.122564, 0.924614))


def test_dynamics(golden):
    robot, state = golden
    close(robot.compute_gravity_term(state), (0.0, -14.456973, 7.640388))
    robot.compute_inverse_dynamics(state)
    close(state.tau, (-0.242059, -17.782282, -1.085402))
    close(np.diag(robot.compute_mass_matrix(state)), (3.813855, 2.31, 2.0))
    reflective = np.diag(robot.compute_reflective_inertia(state, BASE, TOOL))
    close(reflective, (1.105673, 0.197644, 1.041535, 0.510127, 2.0, 0.930034))


def test_base_that_moves(golden):
    robot, state = golden
    state.set_V0(np.arange(1, 7) / 10)
    state.set_Vdot0(np.arange(1.0, 7.0))
    robot.compute_inverse_dynamics(state)
    close(state.tau, (13.37563, -4.294209, 8.507163))
