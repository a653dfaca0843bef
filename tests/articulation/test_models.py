"""Models of other kinds: double precision, without worlds, with D6 joints, with irregular arrays."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.articulation import Articulation, DCMotorCfg, DelayedPDActuatorCfg, RigidObject, SimulationContext
from tests.articulation.robots import add_robot, random_states, scene, shake


@pytest.mark.slow
def test_double_precision_agrees_with_single_precision(rng):
    found = []
    for dtype in (wp.float32, wp.float64):
        own = np.random.default_rng(5)
        one = nl.ModelBuilder()
        add_robot(one, own)
        builder = nl.ModelBuilder()
        builder.replicate(one, 19)
        cfg = DCMotorCfg(".*", stiffness=20.0, damping=1.0, effort_limit=5.0, velocity_limit=4.0, saturation_effort=8.0)
        late = DelayedPDActuatorCfg("right.*", stiffness=20.0, damping=1.0, effort_limit=5.0, min_delay=1, max_delay=2)
        cfg.joint_names_expr = "left.*"
        sim = SimulationContext(builder.finalize("cpu", dtype=dtype), evaluator="general")
        robot = Articulation(sim, "walker", actuators={"a": cfg, "b": late})
        shake(robot, own)
        robot.set_external_force_and_torque([1.0, 2.0, 3.0], None, [0.1, 0.0, 0.0])
        for _ in range(4):
            robot.set_joint_position_target(own.normal(size=(19, 4)))
            robot.write_data_to_sim()
            sim.step()
        d = robot.data
        assert d.root_state_w.dtype is dtype and d.joint_acc.dtype is dtype
        names = (
            "root_com_state_w",
            "root_com_lin_vel_b",
            "projected_gravity_b",
            "heading_w",
            "body_com_state_w",
            "joint_pos",
        )
        names += ("applied_torque", "root_quat_w_wxyz", "body_com_pose_b")
        found.append({name: getattr(d, name).numpy().astype(float) for name in names})
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], rtol=2e-3, atol=2e-3, err_msg=name)


def test_a_model_without_worlds_is_one_instance(rng):
    builder = nl.ModelBuilder()
    add_robot(builder, rng)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), evaluator="general"), "walker")
    assert robot.num_instances == 1
    state = random_states(rng, 1)
    robot.write_root_state_to_sim(state)
    np.testing.assert_allclose(robot.data.root_pos_w.numpy(), state[:, :3], atol=1e-6)
    robot.write_joint_stiffness_to_sim(3.0, joint_ids=[1], env_ids=[0])
    assert robot.data.joint_stiffness.numpy()[0, 1] == 3.0
    robot.write_data_to_sim()
    robot.sim.step()
    robot.reset_to([0])
    np.testing.assert_allclose(robot.data.root_state_w.numpy(), robot.data.default_root_state.numpy(), atol=1e-6)


def test_axes_of_a_d6_joint_are_joints_with_numbers(rng):
    one = nl.ModelBuilder()
    base, arm = (one.add_link(mass=1.0, inertia=0.1 * np.eye(3), label=f"m/{name}") for name in ("base", "arm"))
    axis = nl.ModelBuilder.JointDofConfig
    joints = [one.add_joint_fixed(-1, base, label="m/root")]
    joints.append(
        one.add_joint_d6(
            base, arm, linear_axes=[axis(axis="x")], angular_axes=[axis(axis="y"), axis(axis="z")], label="m/wrist"
        )
    )
    one.add_articulation(joints, label="m")
    builder = nl.ModelBuilder()
    builder.replicate(one, 3)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), evaluator="general"), "m")
    assert robot.joint_names == ["wrist:0", "wrist:1", "wrist:2"]
    robot.write_joint_position_to_sim([0.1, 0.2, 0.3], env_ids=[1])
    np.testing.assert_allclose(robot.data.joint_pos.numpy()[1], [0.1, 0.2, 0.3], rtol=1e-6)
    np.testing.assert_allclose(robot.data.body_pos_w.numpy()[1, 1], [0.1, 0.0, 0.0], atol=1e-6)


def test_joints_of_an_mjcf_file_have_their_names_in_the_file():
    """Two slides and a hinge are one D6 joint of the model, and a body with hinges at two places has two joints."""
    text = """
    <mujoco model="cart"><worldbody><body name="base">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/><joint name="turn" axis="0 1 0"/>
      <geom size="0.1"/>
      <body name="arm"><joint name="swing" axis="1 0 0"/><joint name="lift" axis="0 1 0" pos="0.1 0 0"/><geom size="0.1"/></body>
    </body></worldbody></mujoco>"""
    one = nl.ModelBuilder()
    one.add_mjcf(text)
    builder = nl.ModelBuilder()
    builder.replicate(one, 2)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), evaluator="general"), one.articulation_label[0])
    assert robot.joint_names == ["x", "z", "turn", "swing", "lift"]
    assert robot.find_joints(["lift", "turn"], preserve_order=True) == ([4, 2], ["lift", "turn"])
    robot.write_joint_position_to_sim([[0.2, 0.3]], joint_ids=[0, 1])
    np.testing.assert_allclose(robot.data.body_pos_w.numpy()[:, 0], [[0.2, 0.0, 0.3]] * 2, atol=1e-6)


def test_what_assets_do_not_have_is_named(rng):
    ball = nl.ModelBuilder()
    links = [ball.add_link(mass=1.0, inertia=np.eye(3), label=f"b/{i}") for i in range(2)]
    ball.add_articulation(
        [ball.add_joint_free(links[0], label="b/root"), ball.add_joint_ball(*links, label="b/socket")], label="b"
    )
    with pytest.raises(ValueError, match=r"'b/socket'.*'b'.*ball"):
        Articulation(ball.finalize("cpu"), "b")
    uneven = nl.ModelBuilder()
    for extra in (0, 1, 0):
        one = nl.ModelBuilder()
        for _ in range(extra):
            one.add_body(mass=1.0, inertia=np.eye(3))
        add_robot(one, np.random.default_rng(1))
        uneven.add_world(one)
    with pytest.raises(ValueError, match=r"'walker'.*irregular"):
        Articulation(uneven.finalize("cpu"), "walker")
    with pytest.raises(TypeError, match=r"\bmodel\b.*\bModel\b"):
        RigidObject(3, "walker")
    with pytest.raises(ValueError, match=r"soft_joint_pos_limit_factor.*\b2\b"):
        Articulation(scene(rng), "walker", soft_joint_pos_limit_factor=2)
