"""Controls and activations that are no numbers show in the state of their world, and in no other world."""

import numpy as np
import pytest

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone

pytestmark = pytest.mark.slow

ARM = """<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis="0 1 0" range="-90 90"/>
<geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/><site name="s"/></body></worldbody>
<tendon><fixed name="f"><joint joint="j" coef="1"/></fixed></tendon><actuator>{}</actuator></mujoco>"""
ACTUATORS = {
    "muscle": '<muscle joint="j" force="5"/>',
    "filter": '<general joint="j" dyntype="filter" dynprm=".1" gainprm="2" ctrlrange="-1 1" actearly="true"/>',
    "force range": '<general joint="j" dyntype="filterexact" dynprm=".1" gainprm="2" forcerange="-1 1"/>',
    "activation range": '<intvelocity joint="j" kp="3" actrange="-1 1"/>',
    "no activation": '<general joint="j" gainprm="2 1" gaintype="affine" ctrlrange="-1 1" forcerange="-1 1"/>',
    "site": '<motor site="s" gear="0 0 0 0 1 0" ctrlrange="-1 1" forcerange="-1 1"/>',
}


@pytest.mark.parametrize("array", ["ctrl", "act"])
@pytest.mark.parametrize("kind", ACTUATORS)
def test_a_world_with_such_a_number_is_sick_and_alone(rng, kind, array):
    robot, builder = ModelBuilder(), ModelBuilder()
    robot.add_mjcf(ARM.format(ACTUATORS[kind]))
    builder.replicate(robot, 3)
    model = builder.finalize("cpu")
    if array == "act" and kind in ("no activation", "site"):
        return
    control = rng.uniform(0.2, 0.9, 3)
    results = []
    for number in (control[1], np.nan):
        solver, state, controls = SolverFeatherstone(model, evaluator="general"), model.state(), model.control()
        numbers = control.copy()
        numbers[1] = number
        controls.actuator_ctrl = numbers if array == "ctrl" else control
        if array == "act":
            state.actuator_act.assign(numbers)
            np.testing.assert_array_equal(solver.check(state), np.isfinite(numbers))
        for _ in range(2):
            solver.step(state, state, controls, dt=1 / 240)
        np.testing.assert_array_equal(solver.check(state), np.isfinite(numbers))
        results.append(state.joint_q.numpy())
    np.testing.assert_array_equal(results[0][[0, 2]], results[1][[0, 2]])


def test_infinite_controls_are_at_the_ends_of_their_ranges():
    results = []
    for ctrl in (np.inf, 1.0):
        builder = ModelBuilder()
        builder.add_mjcf(ARM.format(ACTUATORS["filter"]))
        model = builder.finalize("cpu")
        solver, state, controls = SolverFeatherstone(model, evaluator="general"), model.state(), model.control()
        controls.actuator_ctrl.assign([ctrl])
        solver.step(state, state, controls, dt=1 / 240)
        results.append(state.joint_qd.numpy()[0])
    assert results[0] == results[1] > 0.0
