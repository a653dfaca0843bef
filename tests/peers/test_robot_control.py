"""Controllers and inverse kinematics of a Panda arm against pinocchio."""

import numpy as np
import pytest

from newton_like import robot as rd
from newton_like.robot.control.task_space import pose_error, task_motion
from tests.support.paths import ROBOTS
from tests.support.random_robots import random_pose

pin = pytest.importorskip("pinocchio")

FILE = ROBOTS / "panda_description/urdf/panda.urdf"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"{FILE} does not exist")


@pytest.fixture
def panda(rng):
    """The robot at a random state, and pinocchio's model and data at the same one."""
    with pytest.warns(UserWarning):
        robot = rd.Robot(rd.load_robot_from_urdf(str(FILE), "panda_link0"))
    state = robot.make_state(["panda_link0", "panda_hand"])
    lower, upper = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
    state.set_q(rng.uniform(lower, upper))
    state.set_qdot(rng.normal(size=robot.dof))
    state.set_gravity([0.0, 0.0, 0.0, 0.0, 0.0, -9.81])
    model = pin.buildModelFromUrdf(str(FILE))
    assert [model.names[i + 1] for i in range(model.nq)] == state.joint_names
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    return robot, state, model, model.createData(), model.getFrameId("panda_hand")


def test_torques(panda, rng):
    robot, state, model, data, _ = panda
    q, v = state.q, state.qdot
    np.testing.assert_allclose(
        rd.gravity_compensation(robot, state), pin.computeGeneralizedGravity(model, data, q), atol=1e-9
    )
    wanted = rng.normal(size=(3, robot.dof))
    tau = rd.computed_torque(robot, state, *wanted, 20.0, 9.0)
    a = wanted[2] + 9.0 * (wanted[1] - v) + 20.0 * (wanted[0] - q)
    np.testing.assert_allclose(tau, pin.rnea(model, data, q, v, a), atol=1e-7)


def test_task_motion_and_impedance(panda, rng):
    robot, state, model, data, frame = panda
    q, v, axes = state.q, state.qdot, pin.LOCAL_WORLD_ALIGNED
    now = task_motion(robot, state, 1, 0)
    pin.computeAllTerms(model, data, q, v)
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    pin.updateFramePlacements(model, data)
    moved = pin.getFrameVelocity(model, data, frame, axes)
    drift = pin.getFrameClassicalAcceleration(model, data, frame, axes)
    J = pin.computeFrameJacobian(model, data, q, frame, axes)
    np.testing.assert_allclose(now.T, data.oMf[frame].homogeneous, atol=1e-9)
    np.testing.assert_allclose(now.velocity, np.concatenate([moved.angular, moved.linear]), atol=1e-9)
    np.testing.assert_allclose(now.drift, np.concatenate([drift.angular, drift.linear]), atol=1e-9)
    np.testing.assert_allclose(now.J, np.concatenate([J[3:], J[:3]]), atol=1e-9)
    T = pin.SE3(random_pose(rng))
    K, D = rng.uniform(1.0, 50.0, (2, 6))
    tau = rd.task_space_impedance(robot, state, 1, T.homogeneous, stiffness=K, damping=D)
    e = np.concatenate([pin.log3(T.rotation @ now.T[:3, :3].T), T.translation - now.T[:3, 3]])
    np.testing.assert_allclose(pose_error(T.homogeneous, now.T), e, atol=1e-9)
    np.testing.assert_allclose(
        tau, now.J.T @ (K * e - D * now.velocity) + pin.nonLinearEffects(model, data, q, v), atol=1e-7
    )


def test_solutions_have_the_poses_that_were_asked_for(panda, rng):
    robot, state, model, data, frame = panda
    lower, upper = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
    goals = []
    for q in rng.uniform(lower, upper, (32, robot.dof)):
        pin.framesForwardKinematics(model, data, q)
        goals.append(data.oMf[frame].homogeneous.copy())
    found = rd.solve_ik(robot, state, 1, np.array(goals), starts=16)
    assert found.success.mean() > 0.9
    for q, goal, success in zip(found.q, goals, found.success, strict=True):
        pin.framesForwardKinematics(model, data, q)
        if success:
            np.testing.assert_allclose(data.oMf[frame].homogeneous, goal, rtol=0, atol=3e-6)
