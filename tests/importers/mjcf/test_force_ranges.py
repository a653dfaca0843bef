"""Ranges of forces of actuators that share a joint or a tendon are those of MuJoCo."""

import warnings

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone

BAR = """<mujoco><option gravity="0 0 0"/><worldbody><site name="w" pos=".1 0 1.5"/><body pos="0 0 1"><joint name="j" axis="0 1 0"/>
<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="s" pos=".3 0 0"/></body></worldbody>
<tendon><spatial name="t" {}><site site="w"/><site site="s"/></spatial></tendon><actuator>{}</actuator></mujoco>"""
LIMITED = 'actuatorfrcrange="-1 1" actuatorfrclimited="true"'
CASES = {
    "two motors": ("", '<motor joint="j" forcerange="-1 1"/><motor joint="j"/>'),
    "two limited motors": ("", '<motor joint="j" forcerange="-1 1"/><motor joint="j" forcerange="-3 .5" gear="2"/>'),
    "servos": ("", '<position joint="j" kp="5"/><velocity joint="j" kv="2" forcerange="-.1 .1"/>'),
    "motors of a tendon": ("", '<motor tendon="t" forcerange="-1 1"/><motor tendon="t" gear="2"/>'),
    "a tendon": (LIMITED, '<motor tendon="t" gear="3"/>'),
    "a tendon, backwards": (LIMITED, '<motor tendon="t" gear="-3"/>'),
    "a tendon with an activation": (
        LIMITED,
        '<general tendon="t" gear="3" dyntype="filter" dynprm=".1"/>',
    ),
    "a servo of two ranges": ("", '<position joint="j" kp="5" gear="2" forcerange="-1 .3"/>'),
    "a motor of two ranges": ("", '<motor joint="j" gear="-2" forcerange="-1 .3"/>'),
    "a velocity servo of a tendon of two ranges": (
        'actuatorfrcrange="-1 .5" actuatorfrclimited="true"',
        '<velocity tendon="t" kv="5" gear="3"/>',
    ),
    "no ranges": ("", '<position joint="j" kp="5"/><velocity joint="j" kv="2"/>'),
}


def write_controls(report, control, values) -> None:
    """As the guide has it."""
    arrays = {name: getattr(control, name).numpy() for name in {a.drive for a in report.actuators}}
    for actuator in report.actuators:
        arrays[actuator.drive][actuator.index] = 0.0
    for actuator, value in zip(report.actuators, values, strict=True):
        arrays[actuator.drive][actuator.index] += actuator.factor * value + actuator.offset
    for name, numbers in arrays.items():
        getattr(control, name).assign(numbers)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.slow
def test_accelerations_are_those_of_mujoco(rng, kind):
    _compare(rng, BAR.format(*CASES[kind]))


def _compare(rng, text: str) -> None:
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = builder.add_mjcf(text)
    ours = builder.finalize("cpu", dtype=wp.float64)
    solver = SolverFeatherstone(ours, evaluator="general", width=1)
    for _ in range(4):
        controls = rng.uniform(-6.0, 6.0, model.nu)
        data.ctrl[:] = controls
        data.act[:] = controls[: model.na]
        mujoco.mj_forward(model, data)
        state, out, control = ours.state(), ours.state(), ours.control()
        write_controls(report, control, controls)
        if model.na:
            state.actuator_act.assign(data.act)
        solver.step(state, out, control, dt=1e-6)
        np.testing.assert_allclose(out.joint_qd.numpy()[0] / 1e-6, data.qacc[0], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("gear", [2.0, -3.0])
def test_forces_of_a_joint_stay_in_a_range_that_is_not_symmetric(rng, gear):
    text = BAR.format("", f'<position joint="j" kp="5" gear="{gear}"/>').replace(
        "axis=", 'actuatorfrcrange="-.4 2" actuatorfrclimited="true" axis='
    )
    _compare(rng, text)


def test_ranges_that_are_not_symmetric_keep_the_drive_of_motors_whose_controls_stay_within():
    def actuator(text: str):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return ModelBuilder().add_mjcf(BAR.format("", text)).actuators[0].drive

    assert actuator('<motor joint="j" forcerange="-1 5" ctrlrange="-1 1"/>') == "joint_f"
    assert actuator('<motor joint="j" forcerange="-1 5" ctrlrange="-2 1"/>') == "actuator_ctrl"
    assert actuator('<position joint="j" kp="5" forcerange="-1 1"/>') == "joint_target_q"
    assert actuator('<position joint="j" kp="5" forcerange="-1 2"/>') == "actuator_ctrl"


def test_actuators_are_said_to_be_combined_only_where_they_are():
    def remarks(actuators: str) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ModelBuilder().add_mjcf(BAR.format("", actuators))
        return [str(w.message) for w in caught if "combined" in str(w.message)]

    assert remarks('<position joint="j" kp="5"/><velocity joint="j" kv="2"/>')
    assert not remarks('<intvelocity joint="j" kp="3" actrange="-1 1"/><motor joint="j"/>')
    assert not remarks('<position joint="j" kp="5"/><velocity joint="j" kv="2" forcerange="-.1 .1"/>')


@pytest.mark.parametrize(
    ("actuators", "tendon", "said"),
    [
        ('<motor joint="j"/>', "", False),
        ('<motor joint="j" gear="2"/><motor joint="j"/>', "", False),
        ('<muscle joint="j" force="9" lengthrange="-1 1"/>', "", False),
        ('<muscle joint="j" force="9" lengthrange="-1 1"/><motor joint="j"/>', "", True),
        ('<motor tendon="t"/>', "", True),
        ('<motor site="s" gear="1 0 0 0 0 0"/>', "", True),
        ('<motor site="w" gear="1 0 0 0 0 0"/>', "", False),
        ('<motor tendon="f"/>', '<fixed name="f"><joint joint="j" coef="1"/></fixed>', True),
        ('<motor tendon="f"/>', '<fixed name="f"><joint joint="k" coef="1"/></fixed>', False),
    ],
)
def test_a_remark_names_joints_whose_range_does_not_hold_for_the_sum_of_forces(actuators, tendon, said):
    text = BAR.format("", actuators).replace('name="j"', 'name="j" actuatorfrcrange="-1 1"')
    text = text.replace("</tendon>", f"{tendon}</tendon>")
    text = text.replace("</worldbody>", '<body><joint name="k"/><geom size=".1" contype="0"/></body></worldbody>')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = ModelBuilder().add_mjcf(text)
    named = [names for remark, names in report.remarks.items() if "actuatorfrcrange" in remark]
    assert named == ([["j"]] if said else [])


@pytest.mark.parametrize("gravcomp", [0.0, 0.7])
@pytest.mark.parametrize("joint", ["", 'actuatorgravcomp="true"', 'actuatorfrcrange="-1 1" actuatorgravcomp="true"'])
def test_a_remark_names_joints_whose_range_does_not_hold_for_compensated_weight(joint, gravcomp):
    text = BAR.format("", '<motor joint="j"/>').replace('name="j"', f'name="j" {joint}')
    text = text.replace("<body", f'<body gravcomp="{gravcomp}"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = ModelBuilder().add_mjcf(text)
    named = [names for remark, names in report.remarks.items() if "actuatorgravcomp" in remark]
    assert named == ([["j"]] if "frcrange" in joint and gravcomp else [])
