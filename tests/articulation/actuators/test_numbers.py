"""Gains, limits and other numbers of actuators by world: where they come from, how they are written, and that they act."""

import warnings

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import (
    Articulation,
    DCMotorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    NetworkActuatorCfg,
    RemotizedPDActuatorCfg,
    SimulationContext,
)
from tests.articulation.robots import WORLDS, numbers, scene, walker

ALL, JOINTS = ".*", 4
OF_MODEL = {
    "joint_target_ke": "joint_stiffness",
    "joint_target_kd": "joint_damping",
    "joint_armature": "joint_armature",
    "joint_damping": "joint_viscous_friction_coeff",
    "joint_friction": "joint_friction_coeff",
    "joint_velocity_limit": "joint_vel_limits",
    "joint_effort_limit": "joint_effort_limits",
}
"""Arrays of the model, and the data that read them."""


def test_numbers_that_a_group_leaves_out_are_those_of_each_world(rng):
    model = scene(rng)
    given = {}
    for name in OF_MODEL:
        array = getattr(model, name)
        view = array.numpy().reshape(WORLDS, -1)[:, 6:]
        view[:] = given[name] = rng.uniform(0.5, 2.0, (WORLDS, JOINTS)).astype(np.float32)
    sim = SimulationContext(model, evaluator="general")
    robot = Articulation(
        sim, "walker", actuators={"a": ImplicitActuatorCfg("left.*", armature={".*hip.*": 3.0}), "b": ImplicitActuatorCfg("right.*")}
    )  # fmt: skip
    given["joint_armature"][:, 0] = 3.0
    for name, source in OF_MODEL.items():
        np.testing.assert_array_equal(getattr(robot.data, source).numpy(), given[name], err_msg=name)
    np.testing.assert_array_equal(robot.data.soft_joint_vel_limits.numpy(), given["joint_velocity_limit"])
    # and they are those of the efforts that are reported
    error = 0.01
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.set_joint_position_target(error)
    robot.write_data_to_sim()
    wanted = given["joint_target_ke"] * np.float32(error)
    np.testing.assert_allclose(robot.data.applied_torque.numpy(), wanted, rtol=1e-6)
    model = scene(rng)
    limits = rng.uniform(0.5, 2.0, (WORLDS, JOINTS)).astype(np.float32)
    model.joint_effort_limit.numpy().reshape(WORLDS, -1)[:, 6:] = limits
    robot = Articulation(model, "walker", actuators={"a": IdealPDActuatorCfg(ALL, stiffness=1e3, damping=0.0)})
    np.testing.assert_array_equal(robot.actuators["a"].effort_limit.numpy(), limits)
    model.joint_friction.numpy().reshape(WORLDS, -1)[:, 6:] = np.arange(WORLDS)[:, None]
    with pytest.raises(ValueError, match=r"dynamic_friction of joint 'left_knee_joint'"):
        Articulation(
            model,
            "walker",
            actuators={"a": IdealPDActuatorCfg(ALL, dynamic_friction={"left_knee.*": 0.5, ".*(hip|right).*": 0.0})},
        )


def groups(rng, **common) -> Articulation:
    """Explicit actuators of evenly and of unevenly spaced joints, and an implicit one; at rest, 0.1 rad from their targets."""
    gains = dict(stiffness=60.0, damping=2.0, effort_limit=100.0)
    actuators = {
        "uneven": IdealPDActuatorCfg(["left.*", "right_knee_joint"], **gains),
        "drive": ImplicitActuatorCfg("right_hip_joint", **gains),
    }
    robot = walker(rng, actuators=actuators, gravity=0.0, floating=False, **common)
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.set_joint_position_target(0.1)
    return robot


def efforts(robot) -> np.ndarray:
    """Efforts that are reported in a step from rest."""
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.write_data_to_sim()
    robot.sim.step()
    return numbers(robot.data.applied_torque)


@pytest.mark.parametrize("way", ["write", "assign", "set"])
def test_gains_of_explicit_actuators_are_set_by_world(rng, way):
    """They act at once, on the efforts of these worlds only, whichever way they are set, and add no drive of the step."""
    robot = groups(rng)
    uneven, joints = robot.actuators["uneven"], robot.actuators["uneven"].joint_indices
    np.testing.assert_allclose(efforts(robot), 6.0, rtol=1e-5)
    stiffness = rng.uniform(20.0, 90.0, (WORLDS, 3)).astype(np.float32)
    rows = [0, 3]
    if way == "assign":
        rows = list(range(WORLDS))
        uneven.stiffness = stiffness
        uneven.damping = 0.5 * stiffness
    elif way == "set":
        uneven.set_numbers(rows, stiffness=stiffness[rows], damping=0.5 * stiffness[rows])
    else:
        robot.write_joint_stiffness_to_sim(stiffness[rows], joints, rows)
        robot.write_joint_damping_to_sim(0.5 * stiffness, joints, np.isin(np.arange(WORLDS), rows))
    wanted = np.full((WORLDS, JOINTS), 6.0)
    wanted[np.ix_(rows, joints)] = 0.1 * stiffness[rows]
    np.testing.assert_allclose(efforts(robot), wanted, rtol=1e-5)
    for name in ("stiffness", "damping"):
        own, read = getattr(uneven, name).numpy(), getattr(robot.data, f"joint_{name}").numpy()[:, joints]
        np.testing.assert_array_equal(own, read)
        np.testing.assert_array_equal(read[rows], stiffness[rows] * (1.0 if name == "stiffness" else 0.5))
    assert (robot.data.default_joint_stiffness.numpy() == 60.0).all()
    assert (robot.data.default_joint_damping.numpy() == 2.0).all()


def test_explicit_actuators_alone_move_their_joints(rng):
    """The motion is that of the reported efforts as feed-forward commands of joints without gains, bit for bit."""
    seed, ends, given = int(rng.integers(1 << 30)), [], []
    for own in (True, False):
        actuators = {"a": IdealPDActuatorCfg(ALL, stiffness=60.0 * own, damping=2.0 * own)}
        robot = walker(np.random.default_rng(seed), actuators=actuators)
        if own:
            robot.write_joint_stiffness_to_sim(np.linspace(20.0, 80.0, WORLDS)[:, None])
            robot.set_joint_position_target(0.3)
        for step in range(5):
            if not own:
                robot.set_joint_effort_target(given[step])
            robot.write_data_to_sim()
            given.append(robot.data.applied_torque.numpy().copy())
            robot.sim.step()
        ends.append(robot.data.joint_pos.numpy().copy())
    np.testing.assert_array_equal(*ends)


def test_effort_limits_that_are_written_are_those_of_the_actuator(rng):
    """They are read back, act, and bound the reported efforts; beside those of a table, too."""
    robot, rows = groups(rng), [1, 4]
    limits = rng.uniform(0.5, 2.0, (2, JOINTS)).astype(np.float32)
    robot.write_joint_effort_limit_to_sim(limits, env_ids=rows)
    np.testing.assert_array_equal(robot.data.joint_effort_limits.numpy()[rows], limits)
    found, wanted = efforts(robot), np.full((WORLDS, JOINTS), 6.0)
    wanted[rows] = limits
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    uneven, drive = robot.actuators["uneven"], robot.actuators["drive"]
    np.testing.assert_array_equal(uneven.effort_limit.numpy()[rows], limits[:, uneven.joint_indices])
    uneven.effort_limit, drive.effort_limit = 3.0, [[1.0]] * WORLDS
    wanted = np.array([1.0 if j in drive.joint_indices else 3.0 for j in range(JOINTS)])
    found = efforts(robot)
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(found[rows][:, uneven.joint_indices], 3.0)
    table = RemotizedPDActuatorCfg(ALL, stiffness=60.0, damping=0.0, joint_parameter_lookup=[(-1.0, 5.0), (1.0, 5.0)])
    robot = walker(rng, actuators={"a": table})
    robot.set_joint_position_target(9.0)
    robot.write_joint_effort_limit_to_sim(2.0, env_ids=[2])
    robot.write_data_to_sim()
    np.testing.assert_array_equal(robot.data.applied_torque.numpy()[:, 0], [5.0, 5.0, 2.0, 5.0, 5.0])


def test_numbers_of_motors_are_set_by_world(rng):
    top, stall, limit = (
        rng.uniform(*bounds, (WORLDS, JOINTS)).astype(np.float32) for bounds in ((1, 3), (5, 7), (3, 5))
    )
    motor = DCMotorCfg(ALL, stiffness=1e3, damping=0.0, effort_limit=1.0, velocity_limit=1.0, saturation_effort=1.0)
    robot = walker(rng, actuators={"a": motor})
    robot.set_joint_position_target(5.0)
    group = robot.actuators["a"]
    group.set_numbers(velocity_limit=top, saturation_effort=stall, effort_limit=limit)
    speed = numbers(robot.data.joint_vel)
    robot.write_data_to_sim()
    v = np.clip(speed, -top * (1 + limit / stall), top * (1 + limit / stall))
    np.testing.assert_allclose(
        robot.data.applied_torque.numpy(), np.minimum(stall * (1 - v / top), limit), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(robot.data.soft_joint_vel_limits.numpy(), top)
    for wrong, error, told in (
        (dict(stifness=1.0), TypeError, r"actuator 'a' \(DCMotor\).*'stifness'; did you mean 'stiffness'"),
        (dict(velocity_limit=0.0), ValueError, "actuator 'a': velocity_limit must be positive"),
        (dict(effort_limit=-1.0), ValueError, "actuator 'a': effort_limit -1 is below 0"),
        (dict(stiffness=-1.0), ValueError, "stiffness -1 is below 0"),
        (dict(damping=np.ones(3)), ValueError, r"damping has shape \(3,\)"),
    ):
        with pytest.raises(error, match=told):
            group.set_numbers(**wrong)
    with pytest.raises(IndexError, match="index 9"):
        group.set_numbers([9], stiffness=1.0)


def test_numbers_that_are_read_refuse_to_be_written(rng):
    robot = groups(rng)
    for group in robot.actuators.values():
        with pytest.raises(ValueError, match="read-only"):
            group.stiffness.numpy()[2] = 120.0
        for write in (
            lambda x: x.__setitem__(0, 1.0),
            lambda x: x.fill_(3.0),
            lambda x: x.zero_(),
            lambda x: x.assign(x),
        ):
            with pytest.raises(TypeError, match=rf"actuators\['{group.name}'\].damping = values.*set_numbers"):
                write(group.damping)


def test_attributes_that_a_group_does_not_have_are_not_set(rng):
    legs = walker(rng, actuators={"legs": IdealPDActuatorCfg(".*", stiffness=1.0, damping=0.1)}).actuators["legs"]
    with pytest.raises(AttributeError, match="IdealPDActuator has no attribute 'stifness'; did you mean 'stiffness'"):
        legs.stifness = 50.0
    legs.stiffness = 50.0
    assert (np.asarray(legs.stiffness) == 50.0).all() and not hasattr(legs, "stifness")


@pytest.mark.parametrize("name", ["stiffness", "damping", "armature", "friction", "viscous_friction", "gear_ratio"])
def test_infinite_numbers_that_are_no_limits_are_refused(rng, name):
    """An infinite gain was 1e10."""
    cfg = IdealPDActuatorCfg(".*", **{name: {".*hip.*": 1.0, "left_knee_joint": np.inf, "right_knee_joint": 1.0}})
    with pytest.raises(ValueError, match=f"'legs': {name} of joint 'left_knee_joint' is infinite"):
        walker(rng, actuators={"legs": cfg})


def test_networks_have_no_gains_to_write(rng):
    cfg = NetworkActuatorCfg("left.*", network=lambda x: 0 * x[:, 0], velocity_limit=1.0, saturation_effort=1.0)
    robot = walker(rng, actuators={"net": cfg})
    with pytest.raises(ValueError, match="'left_hip_joint' belongs to actuator 'net', a network"):
        robot.write_joint_stiffness_to_sim(3.0)
    robot.write_joint_stiffness_to_sim(3.0, robot.find_joints("right.*")[0])


MODES = nl.JointTargetMode


@pytest.mark.parametrize("mode", list(MODES))
def test_drives_of_joints_in_no_group_do_what_is_written(rng, mode):
    """Joints without gains in the model, in any mode: gains that are written act in the chosen worlds, by the formula of implicit drives,
    and the reported efforts are those of these gains. In the others, nothing acts and nothing is reported."""
    inertia, dt = rng.uniform(0.2, 0.5), 0.01
    one = nl.ModelBuilder(gravity=0.0)
    link = one.add_link(mass=1.0, inertia=np.eye(3) * inertia, label="link")
    joint = one.add_joint_revolute(-1, link, axis=(0, 0, 1), armature=0.0, actuator_mode=mode)
    one.add_articulation([joint], label="hinge")
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, WORLDS)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), dt=dt, evaluator="general"), "hinge")
    kp, kd, rows = rng.uniform(20.0, 90.0, (2, 1)), rng.uniform(0.5, 3.0, (2, 1)), [1, 3]
    robot.write_joint_damping_to_sim(kd, env_ids=rows)
    for stiff in (False, True):
        if stiff:
            robot.write_joint_stiffness_to_sim(kp, env_ids=rows)
        gains = np.zeros((2, WORLDS, 1))
        gains[:, rows] = kp * stiff, kd
        q, v, target, target_v = rng.normal(size=(4, WORLDS, 1))
        robot.write_joint_state_to_sim(q, v)
        robot.set_joint_position_target(target)
        robot.set_joint_velocity_target(target_v)
        robot.sim.advance(robot)
        w = numbers(robot.data.joint_vel)
        effort = gains[0] * (target - q - dt * (0.5 * v + w)) + gains[1] * (target_v - w)
        np.testing.assert_allclose(inertia * (w - v) / dt, effort, rtol=1e-3, atol=1e-3)
        wanted = gains[0] * (target - q) + gains[1] * (target_v - v)
        np.testing.assert_allclose(numbers(robot.data.applied_torque), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", list(MODES))
def test_drives_of_the_model_report_what_acts(rng, mode):
    """Joints in no group with gains in the model: what is reported before a step is what the step does, for each mode. Velocity targets
    of the model that drives do not follow do not act."""
    inertia, dt = 0.3, 1e-4
    one = nl.ModelBuilder(gravity=0.0)
    link = one.add_link(mass=1.0, inertia=np.eye(3) * inertia, label="link")
    joint = one.add_joint_revolute(
        -1, link, axis=(0, 0, 1), armature=0.0, actuator_mode=mode, target_ke=30.0, target_kd=2.0
    )
    one.add_articulation([joint], label="hinge")
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, WORLDS)
    builder.joint_target_qd[:] = [5.0] * WORLDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = builder.finalize("cpu")
    sim = SimulationContext(model, dt=dt, evaluator="general")
    robot = Articulation(sim, "hinge")
    for target_v in (None, rng.normal(size=(WORLDS, 1))):
        q, v = rng.normal(size=(2, WORLDS, 1))
        robot.write_joint_state_to_sim(q, v)
        if target_v is not None:
            robot.set_joint_velocity_target(target_v)
        robot.write_data_to_sim()
        sim.step()
        acts = inertia * (numbers(robot.data.joint_vel) - v) / dt
        found = numbers(robot.data.applied_torque)
        np.testing.assert_allclose(found, acts, rtol=5e-3, atol=0.05)
        if target_v is not None and mode in (MODES.POSITION, MODES.VELOCITY, MODES.POSITION_VELOCITY):
            wanted = 2.0 * (target_v - v) - 30.0 * q * (mode != MODES.VELOCITY)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
