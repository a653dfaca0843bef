"""Servos of MJCF files that are actuators of the model: groups of the asset replace them, and others are named."""

import warnings

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import Articulation, IdealPDActuatorCfg, ImplicitActuatorCfg, SimulationContext
from tests.articulation.robots import numbers

WORLDS = 3
ARM = """
<mujoco model="arm"><worldbody>
  <body><joint name="shoulder" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/>
    <body pos="0.3 0 0"><joint name="elbow" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/>
    </body></body></worldbody>
<actuator>
  <position name="turn" joint="shoulder" kp="50" kv="5" gear="-2" {turn}/>
  <position name="bend" joint="elbow" kp="30" {bend}/>
  <velocity name="brake" joint="elbow" kv="3" {bend}/>
  <muscle name="biceps" joint="elbow" force="20" lengthrange="-2 2"/>
</actuator></mujoco>"""
OWN_RANGES = {"turn": 'forcerange="-4 1"', "bend": 'forcerange="-6 6"'}


def arm(**ranges) -> SimulationContext:
    one, builder = nl.ModelBuilder(gravity=0.0), nl.ModelBuilder(gravity=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # several servos make one drive
        one.add_mjcf(ARM.format(**{"turn": "", "bend": "", **ranges}))
    builder.replicate(one, WORLDS)
    return SimulationContext(builder.finalize("cpu"), dt=1 / 240, evaluator="general")


def test_groups_take_the_numbers_of_servos_and_replace_them():
    sim = arm(**OWN_RANGES)
    with pytest.warns(UserWarning, match=r"'elbow' \('arm/bend', 'arm/brake'\).*Control.actuator_ctrl") as told:
        robot = Articulation(sim, "arm", actuators={"a": ImplicitActuatorCfg("shoulder")})
    assert len(told) == 1 and "shoulder" not in str(told[0].message) and told[0].filename == __file__
    gears = sim.model.actuator_gear.numpy().reshape(WORLDS, 4, -1)[..., 0]
    np.testing.assert_array_equal(gears, np.tile([0.0, 1.0, 1.0, 1.0], (WORLDS, 1)))
    for name, wanted in (("stiffness", 200.0), ("damping", 20.0), ("effort_limits", 8.0)):
        assert (numbers(getattr(robot.data, f"joint_{name}"))[:, 0] == wanted).all(), name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = Articulation(
            sim, "arm", actuators={"a": IdealPDActuatorCfg(".*", damping=4.0, effort_limit={"elbow": 7.0})}
        )
    np.testing.assert_array_equal(gears, np.tile([0.0, 0.0, 0.0, 1.0], (WORLDS, 1)))
    group = robot.actuators["a"]
    for name, wanted in (("stiffness", [200.0, 30.0]), ("damping", [4.0, 4.0]), ("effort_limit", [8.0, 7.0])):
        np.testing.assert_array_equal(numbers(getattr(group, name)), np.tile(wanted, (WORLDS, 1)), err_msg=name)
    robot = Articulation(arm(**OWN_RANGES), "arm", actuators={"a": ImplicitActuatorCfg(".*")})
    np.testing.assert_array_equal(numbers(robot.data.joint_damping), np.tile([20.0, 3.0], (WORLDS, 1)))
    np.testing.assert_array_equal(numbers(robot.data.joint_effort_limits), np.tile([8.0, 12.0], (WORLDS, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ImplicitActuatorCfg, IdealPDActuatorCfg])
def test_motion_is_that_of_the_group_alone(kind, rng):
    """The same arm whose servos are drives moves in the same way."""
    ends = []
    targets = rng.uniform(-0.5, 0.5, (WORLDS, 2))
    for ranges in (OWN_RANGES, {}):
        sim = arm(**ranges)
        robot = Articulation(sim, "arm", actuators={"a": kind(".*", stiffness=20.0, damping=2.0, effort_limit=3.0)})
        robot.set_joint_position_target(targets)
        for _ in range(240):
            sim.advance(robot)
        ends.append(numbers(robot.data.joint_pos))
    np.testing.assert_allclose(*ends, atol=1e-5)
    assert abs(ends[0] - targets).max() < 0.05
