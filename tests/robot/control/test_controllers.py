"""Controllers: the accelerations and the rest positions that their torques cause."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like import robot as rd
from newton_like.robot.control.task_space import pose_error, task_motion
from newton_like.robot.core.calls import Calls
from tests.support.arms import arm
from tests.support.random_robots import random_pose, random_robot
from tests.support.robot_calls import randomize, shuffled_state

GRAVITY = np.array([0.0, 0.0, 0.0, 0.3, -0.2, -9.81])


def made(rng, count: int | None = None):
    """An arm in motion, on a base that moves."""
    robot = arm(rng)
    state = shuffled_state(robot, rng)
    randomize(state, rng, count)
    state.set_q(rng.uniform(-1.5, 1.5, state.q.shape))
    return robot, state, state.link_names.index("tool_a")


def accelerations(robot, state, tau) -> np.ndarray:
    """qddot by the mass matrix and the torques at rest accelerations."""
    other = robot.make_state(state.link_names, state.joint_names)
    for name in ("q", "qdot", "V0", "Vdot0"):
        setattr(other, name, getattr(state, name))
    robot.compute_inverse_dynamics(other)
    return np.linalg.solve(robot.compute_mass_matrix(state), (tau - other.tau)[..., None])[..., 0]


def unchanged(state):
    return {name: getattr(state, name) for name in ("q", "qdot", "qddot", "tau", "V0", "Vdot0")}


def close(found, expected, slack=1e-8):
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=slack * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("count", [None, 3])
def test_gravity_compensation_keeps_the_robot_at_rest(rng, count):
    robot, state, _ = made(rng, count)
    state.set_qdot(0.0 * state.qdot)
    state.set_V0(np.zeros(6))
    state.set_gravity(GRAVITY)
    tau = rd.gravity_compensation(robot, state)
    close(accelerations(robot, state, tau), np.zeros_like(tau))


@pytest.mark.parametrize("count", [None, 3])
def test_computed_torque_gives_linear_error_dynamics(rng, count):
    robot, state, _ = made(rng, count)
    before = unchanged(state)
    q, v, a = rng.normal(size=(3, *state.q.shape))
    kp, kd = rng.uniform(1.0, 50.0, (2, 7))
    tau = rd.computed_torque(robot, state, q, v, a, kp, np.diag(kd))
    close(accelerations(robot, state, tau), a + kd * (v - state.qdot) + kp * (q - state.q))
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(state, name), value)


def test_task_motion_is_the_derivative_of_the_pose(rng):
    """Velocity and drift against differences, relative to a link that moves too."""
    links, _ = random_robot(rd, rng.integers(2**32), 9, helical=True)
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]))
    state = shuffled_state(robot, rng)
    q, qdot = rng.normal(size=(2, len(state.joint_names)))
    target, ref = rng.choice(len(state.link_names), 2, replace=False)
    h = 1e-5

    def at(time):
        state.set_q(q + time * qdot)
        state.set_qdot(qdot)
        return task_motion(robot, state, target, ref)

    now, before, after = at(0.0), at(-h), at(h)
    close(now.velocity, pose_error(after.T, before.T) / (2.0 * h), 1e-6)
    close(now.drift, (after.velocity - before.velocity) / (2.0 * h), 1e-6)
    close(now.velocity, now.J @ qdot)


@pytest.mark.parametrize("count", [None, 3])
def test_operational_space_control_gives_the_task_acceleration(rng, count):
    robot, state, tool = made(rng, count)
    before = unchanged(state)
    T = random_pose(rng)
    V, A = rng.normal(size=(2, *state.q.shape[:-1], 6))
    kp, kd = rng.uniform(1.0, 50.0, (2, 6))
    posture = rng.normal(size=7)
    for options in ({}, dict(posture=posture, posture_kp=9.0, posture_kd=3.0)):
        tau = rd.operational_space_control(robot, state, tool, T, V, A, kp=kp, kd=kd, **options)
        now = task_motion(robot, state, tool, state.base_link_idx)
        a = (now.J @ accelerations(robot, state, tau)[..., None])[..., 0] + now.drift
        # with the posture, too: its torques do not accelerate the task
        close(a, A + kd * (V - now.velocity) + kp * pose_error(T, now.T), 1e-7)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(state, name), value)


def test_free_directions_follow_the_posture(rng):
    """With positions controlled alone, the null space has four dimensions, in which the joints accelerate as asked for."""
    robot, state, tool = made(rng)
    directions = np.array([False, False, False, True, True, True])
    rest, kd = rng.normal(size=7), rng.uniform(1.0, 5.0, 7)
    A = rng.normal(size=6)
    tau = rd.operational_space_control(
        robot,
        state,
        tool,
        np.eye(4),
        None,
        A,
        kp=0.0,
        kd=0.0,
        directions=directions,
        posture=rest,
        posture_kp=4.0,
        posture_kd=kd,
    )
    now = task_motion(robot, state, tool, state.base_link_idx)
    qddot = accelerations(robot, state, tau)
    close((now.J @ qddot + now.drift)[3:], A[3:], 1e-7)
    # what the posture does not get is in the space of M^-1 J^T
    lost = qddot - (4.0 * (rest - state.q) - kd * state.qdot)
    columns = np.linalg.solve(robot.compute_mass_matrix(state), now.J[3:].T)
    close(columns @ np.linalg.lstsq(columns, lost, rcond=None)[0], lost, 1e-7)


def test_singular_directions_are_left_out(rng):
    """A planar arm of two links cannot turn its tip independently, nor leave the plane."""
    links = [rd.Link(name, np.eye(6)) for name in ("base", "upper", "tip")]
    T = np.eye(4)
    T[0, 3] = 1.0
    for i, pose in enumerate((np.eye(4), T)):
        rd.Joint.make_revolute(f"j{i}").connect_links(links[i], links[i + 1], pose, np.eye(4))
    robot = rd.Robot(rd.RobotConfiguration("planar", links[0]))
    state = robot.make_state(["base", "tip"])
    state.set_q(rng.uniform(0.3, 1.0, 2))
    tau = rd.operational_space_control(robot, state, 1, np.eye(4), A_des=np.ones(6), kp=0.0, kd=0.0)
    assert np.isfinite(tau).all() and np.abs(tau).max() < 1e3


@pytest.mark.parametrize("count", [None, 3])
def test_impedance_balances_a_wrench_at_its_deflection(rng, count):
    """Where e = -K^-1 f, the torques and the wrench f on the link hold the robot at rest."""
    robot, state, tool = made(rng, count)
    state.set_qdot(np.zeros(7))
    state.set_V0(np.zeros(6))
    state.set_gravity(GRAVITY)
    before = unchanged(state)
    f = rng.normal(size=(*state.q.shape[:-1], 6))
    K = np.diag(rng.uniform(5.0, 50.0, 6))
    K[3:, 3:] += np.ones((3, 3))
    now = task_motion(robot, state, tool, state.base_link_idx)
    e = -np.linalg.solve(K, f[..., None])[..., 0]
    T = np.zeros_like(now.T)
    T[..., :3, :3] = Rotation.from_rotvec(e[..., :3]).as_matrix() @ now.T[..., :3, :3]
    T[..., :3, 3], T[..., 3, 3] = now.T[..., :3, 3] + e[..., 3:], 1.0
    tau = rd.task_space_impedance(robot, state, tool, T, stiffness=K, damping=3.0)
    outside = (np.swapaxes(now.J, -1, -2) @ f[..., None])[..., 0]
    close(accelerations(robot, state, tau + outside), np.zeros_like(tau))
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(state, name), value)


def test_impedance_damps_by_the_task_velocity(rng):
    robot, state, tool = made(rng)
    now = task_motion(robot, state, tool, state.base_link_idx)
    D, V = rng.uniform(1.0, 9.0, 6), rng.normal(size=6)
    wrench = rng.normal(size=6)
    free = rd.computed_torque(robot, state, state.q, state.qdot, np.zeros(7), 0.0, 0.0)
    tau = rd.task_space_impedance(robot, state, tool, now.T, V, stiffness=1.0, damping=D, wrench=wrench)
    close(tau - free, now.J.T @ (D * (V - now.velocity) + wrench))


def test_the_tree_is_that_of_the_robot(rng):
    """Joints that are disconnected, or connected to other links, after the robot was made."""
    robot = arm(rng, hands=2)
    state = shuffled_state(robot, rng)
    randomize(state, rng)
    target, ref = (state.link_names.index(name) for name in ("tool_a", "b5"))

    def torques():
        options = dict(stiffness=3.0, damping=2.0, reference_link=ref)
        T = np.eye(4)
        return [
            *rd.operational_space_control(robot, state, target, T, kp=3.0, kd=2.0, reference_link=ref),
            *rd.task_space_impedance(robot, state, target, T, **options),
            *task_motion(robot, state, target, ref).drift,
        ]

    before = torques()
    for joint in robot.joints:
        joint.disconnect()
    np.testing.assert_array_equal(torques(), before)
    robot.joints[-1].connect_links(rd.Link("stranger"), robot.get_link("b7"))
    np.testing.assert_array_equal(torques(), before)


@pytest.mark.parametrize("count", [None, 3])
@pytest.mark.parametrize("together", [False, True])
def test_joints_without_inertia_are_named(rng, count, together):
    """The last joint moves a link without inertia; or two joints on one axis have such a link between them."""
    links = [rd.Link(f"link{i}", np.eye(6) * rng.uniform(0.5, 2.0)) for i in range(5)]
    idle = {"j2", "j3"} if together else {"j3"}
    links[3 if together else 4] = rd.Link("empty", np.zeros((6, 6)))
    for i in range(4):
        pose = random_pose(rng)
        if together and i == 3:
            pose = np.eye(4)
            pose[2, 3] = 0.3
        rd.Joint.make_revolute(f"j{i}").connect_links(links[i], links[i + 1], pose, np.eye(4))
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]))
    state = robot.make_state(joint_names=["j3", "j1"])
    randomize(state, rng, count)
    with pytest.raises(rd.RobotError, match="inertia") as error:
        rd.operational_space_control(robot, state, 2, np.eye(4), kp=1.0, kd=1.0)
    assert {name for name in robot.joint_names if repr(name) in str(error.value)} == idle
    # other controllers need no inverse
    assert np.isfinite(rd.task_space_impedance(robot, state, 2, np.eye(4), stiffness=1.0, damping=1.0)).all()


@pytest.mark.parametrize("count", [None, 3])
def test_negative_inertias_are_named(rng, count):
    """The joints and the link whose inertia, read from a file, makes the mass matrix negative definite or indefinite."""
    for least in (-1.0, -50.0):
        moments = [1.0, least, 1.0] if least < -1.0 else [least] * 3
        bodies = "".join(
            f'<link name="l{i}"><inertial><mass value="{mass}"/><inertia ixx="{m}" iyy="{m}" izz="{m}" ixy="0" ixz="0" iyz="0"/>'
            "</inertial></link>"
            for i, (mass, m) in enumerate(zip((1.0, 1e-6, 1e-6, 1e-6), (1.0, *moments), strict=True))
        )
        joints = "".join(
            f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/><axis xyz="{axis}"/></joint>'
            for i, axis in enumerate(("0 0 1", "0 1 0", "1 0 0"))
        )
        with pytest.warns(UserWarning, match="negative principal moments"):
            found = rd.load_robot_from_urdf_data(f'<robot name="case">{bodies}{joints}</robot>', "l0")
        robot = rd.Robot(found, evaluator="general")
        state = robot.make_state()
        state.q = rng.uniform(-1.0, 1.0, (3,) if count is None else (count, 3))
        state.set_gravity(GRAVITY)
        values = np.linalg.eigvalsh(robot.compute_mass_matrix(state))
        assert (values < 0.0).any(axis=-1).all()
        with pytest.raises(rd.RobotError, match="negative") as error:
            rd.operational_space_control(robot, state, 3, np.eye(4), kp=1.0, kd=1.0)
        wrong = {f"l{i + 1}" for i, m in enumerate(moments) if m < 0.0}
        assert {name for name in robot.link_names if repr(name) in str(error.value)} == wrong
        assert any(repr(name) in str(error.value) for name in robot.joint_names)


def test_small_inertias_are_inertias(rng):
    """A finger of milligrams on an arm of tons."""
    links = [rd.Link(f"link{i}", 10.0 ** (3 - 3 * i) * np.eye(6)) for i in range(4)]
    for i in range(3):
        rd.Joint.make_revolute(f"j{i}").connect_links(links[i], links[i + 1], random_pose(rng), random_pose(rng))
    robot = rd.Robot(rd.RobotConfiguration("case", links[0]))
    state = robot.make_state()
    randomize(state, rng)
    assert np.isfinite(rd.operational_space_control(robot, state, 3, np.eye(4), kp=1.0, kd=1.0)).all()


def test_batches_do_not_cost_launches_of_one_configuration(rng, monkeypatch):
    """Desired motions of a batch and of one configuration in turns: launches are recorded once for each."""
    robot, state, _ = made(rng)
    recorded, record = [], Calls.record
    monkeypatch.setattr(Calls, "record", lambda *args, **named: recorded.append(1) or record(*args, **named))
    wanted = rng.normal(size=(3, 7)), rng.normal(size=(3, 4, 7))
    first = [rd.computed_torque(robot, state, *x, 2.0, 1.0) for x in wanted]
    assert len(recorded)
    recorded.clear()
    for _ in range(2):
        for x, tau in zip(wanted, first, strict=True):
            np.testing.assert_array_equal(rd.computed_torque(robot, state, *x, 2.0, 1.0), tau)
    assert not recorded


@pytest.mark.parametrize("joints", [1, 2, 3, 7])
def test_batches_equal_singles_bit_for_bit(rng, joints):
    """With matrices as gains, and with few joints: BLAS may take other routines for many rows than for one."""
    robot = arm(rng, joints=joints)
    state, one = (robot.make_state(["base", "tool_a"], []) for _ in range(2))
    randomize(state, rng, 9)
    six, some = ((lambda A: A @ A.T)(rng.normal(size=(n, n))) for n in (6, joints))
    wanted, goal, chosen = rng.normal(size=(3, joints)), random_pose(rng), rng.random(6) < 0.5
    chosen[rng.integers(6)] = True
    controllers = [
        lambda s: rd.computed_torque(robot, s, *wanted, some, some.T),
        lambda s: rd.operational_space_control(
            robot, s, 1, goal, kp=six, kd=2.0, posture=wanted[0], posture_kp=some, posture_kd=1.0
        ),
        lambda s: rd.operational_space_control(robot, s, 1, goal, kp=9.0, kd=six, directions=chosen),
        lambda s: rd.task_space_impedance(robot, s, 1, goal, stiffness=six, damping=six.T),
    ]
    for controller in controllers:
        many = controller(state)
        for i in range(9):
            for name in ("q", "qdot", "V0", "Vdot0"):
                setattr(one, name, getattr(state, name)[i])
            np.testing.assert_array_equal(controller(one), many[i])


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda r, s: rd.computed_torque(r, s, np.zeros(6), np.zeros(7), np.zeros(7), 1.0, 1.0), "q_des"),
        (lambda r, s: rd.computed_torque(r, s, np.zeros(7), np.zeros(7), np.full(7, np.nan), 1.0, 1.0), "qddot_des"),
        (lambda r, s: rd.computed_torque(r, s, *np.zeros((3, 7)), -1.0, 1.0), "kp"),
        (lambda r, s: rd.computed_torque(r, s, np.zeros((2, 7)), np.zeros((3, 7)), np.zeros(7), 1.0, 1.0), "q_des"),
        (lambda r, s: rd.operational_space_control(r, s, 1, np.eye(3), kp=1.0, kd=1.0), "T_des"),
        (lambda r, s: rd.operational_space_control(r, s, 1, np.eye(4), kp=np.ones(5), kd=1.0), "kp"),
        (
            lambda r, s: rd.operational_space_control(r, s, 1, np.eye(4), kp=1.0, kd=1.0, directions=[1, 2]),
            "directions",
        ),
        (lambda r, s: rd.task_space_impedance(r, s, 1, np.eye(4), stiffness=1.0, damping=np.ones((6, 5))), "damping"),
        (lambda r, s: rd.task_space_impedance(r, s, 1, np.eye(4), stiffness=1.0, damping=1.0, wrench=[1.0]), "wrench"),
    ],
)
def test_wrong_arguments_are_named(rng, call, word):
    robot, state, _ = made(rng)
    with pytest.raises(rd.RobotError, match=word):
        call(robot, state)
