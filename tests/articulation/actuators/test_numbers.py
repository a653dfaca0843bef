"""Gains, limits and other numbers of actuators by world: where they come from, how they are written, and that they act."""

import numpy as np
import pytest

from newton_like.articulation import Articulation, IdealPDActuatorCfg, ImplicitActuatorCfg, SimulationContext
from tests.articulation.robots import WORLDS, scene

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
    numbers = {}
    for name in OF_MODEL:
        array = getattr(model, name)
        view = array.numpy().reshape(WORLDS, -1)[:, 6:]
        view[:] = numbers[name] = rng.uniform(0.5, 2.0, (WORLDS, JOINTS)).astype(np.float32)
    sim = SimulationContext(model, evaluator="general")
    robot = Articulation(
        sim, "walker", actuators={"a": ImplicitActuatorCfg("left.*", armature={".*hip.*": 3.0}), "b": ImplicitActuatorCfg("right.*")}
    )  # fmt: skip
    numbers["joint_armature"][:, 0] = 3.0
    for name, source in OF_MODEL.items():
        np.testing.assert_array_equal(getattr(robot.data, source).numpy(), numbers[name], err_msg=name)
    np.testing.assert_array_equal(robot.data.soft_joint_vel_limits.numpy(), numbers["joint_velocity_limit"])
    # and they are those of the efforts that are reported
    error = 0.01
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.set_joint_position_target(error)
    robot.write_data_to_sim()
    wanted = numbers["joint_target_ke"] * np.float32(error)
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
