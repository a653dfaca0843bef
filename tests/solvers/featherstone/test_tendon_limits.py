"""Limits of tendons are as soft as in MuJoCo in all poses, and bounded where no pose can keep them."""

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags
from newton_like.solvers.featherstone.loop_weights import tendon_weights
from tests.support.simulate import Simulation
from tests.support.tendons import chain

BAR = """<mujoco><option timestep="{}"/><worldbody><site name="w" pos="0 0 1.2"/><body pos="0 0 1">
<joint name="j" axis="0 1 0" damping=".05"/>
<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="s" pos=".3 0 0"/></body></worldbody>
<tendon><spatial name="t" limited="true" {}><site site="w"/><site site="s"/></spatial></tendon>
<actuator><motor tendon="t"/></actuator></mujoco>"""
"""The tendon is between 0.1 and 0.5 long. The motor is idle; with it, the kernel is that of the tests of actuators."""
DT = 1.0 / 240.0


def both(limits: str, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Speeds of the bar after each step, in MuJoCo and here."""
    text = BAR.format(DT, limits)
    model = mujoco.MjModel.from_xml_string(text)
    data, want = mujoco.MjData(model), []
    builder = ModelBuilder()
    builder.add_mjcf(text)
    sim = Simulation(builder, DT, dtype=wp.float64, width=1)
    for _ in range(round(seconds / DT)):
        mujoco.mj_step(model, data)
        want.append(data.qvel[0])
    return np.array(want), sim.run(seconds, lambda: sim.qd[0, 0])


@pytest.mark.parametrize("limits", ['range=".51 1"', 'range="0 .05"'], ids=["long", "short"])
@pytest.mark.slow
def test_limits_out_of_reach_pull_no_harder_than_in_mujoco(limits):
    want, got = both(limits, 3.0)
    assert abs(np.abs(got).max() / np.abs(want).max() - 1.0) < 0.02
    assert abs(got[-1] - want[-1]) < 0.1


def test_limits_are_those_of_mujoco_in_all_poses(rng):
    """The bar turns from the initial pose to one in which the tendon feels a fraction of the inertia there."""
    solref = f"{rng.uniform(0.04, 0.08)} {rng.uniform(0.7, 1.3)}"
    want, got = both(f'range="{rng.uniform(0.46, 0.49)} 1" solreflimit="{solref}"', 1.0)
    np.testing.assert_allclose(got, want, atol=0.02 * np.abs(want).max())


def test_weights_are_those_of_mujoco(rng):
    text = chain(rng).replace("<mujoco>", "<mujoco><default><tendon limited='true' range='0 9'/></default>")
    text = text.replace('<spatial name="a"', f'<spatial name="a" armature="{rng.uniform(0.1, 2.0)}"')
    model = mujoco.MjModel.from_xml_string(text)
    builder = ModelBuilder()
    builder.add_mjcf(text)
    ours = builder.finalize("cpu", dtype=wp.float64)
    np.testing.assert_allclose(tendon_weights(ours)[0], model.tendon_invweight0, rtol=1e-4)
    ours.body_mass.assign(2.0 * ours.body_mass.numpy())
    ours.body_inertia.assign(2.0 * ours.body_inertia.numpy())
    ours.tendon_armature.assign(2.0 * ours.tendon_armature.numpy())
    ours.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    np.testing.assert_allclose(tendon_weights(ours)[0], 0.5 * model.tendon_invweight0, rtol=1e-4)
