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
        low, high = actuator.ctrlrange or (value, value)
        arrays[actuator.drive][actuator.index] += actuator.factor * min(max(value, low), high) + actuator.offset
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
            acts = np.zeros(len(state.actuator_act))
            acts[[actuator.act for actuator in report.actuators if actuator.activated]] = data.act
            state.actuator_act.assign(acts)
        solver.step(state, out, control, dt=1e-6)
        np.testing.assert_allclose(out.joint_qd.numpy()[0] / 1e-6, data.qacc[0], rtol=1e-3)


@pytest.mark.parametrize("flag", ["enable", "disable"])
def test_controls_beyond_their_range(rng, flag):
    """Of a drive, and of an actuator that the step knows; without clamping they act as they are, also where a range of forces holds only
    within the range of controls."""
    actuators = '<motor joint="j" ctrlrange="-1 2" forcerange="-1 5"/><general joint="j" ctrlrange="-.5 .7" dyntype="filter" dynprm=".1"/>'
    option = f'<mujoco><option><flag clampctrl="{flag}"/></option>'
    text = BAR.format("", actuators)
    assert text.count("<mujoco>") == 1
    _compare(rng, text.replace("<mujoco>", option))


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
    ("actuators", "tendon", "summed"),
    [
        ('<motor joint="j"/>', "", False),
        ('<motor joint="j" gear="2"/><motor joint="j"/>', "", False),
        ('<motor joint="j" gear="2"/><motor joint="j" forcerange="-1 1"/>', "", True),
        ('<muscle joint="j" force="9" lengthrange="-1 1"/>', "", False),
        ('<muscle joint="j" force="9" lengthrange="-1 1"/><motor joint="j"/>', "", True),
        ('<motor tendon="t"/>', "", True),
        ('<motor site="s" gear="1 0 0 0 0 0"/>', "", True),
        ('<motor site="w" gear="1 0 0 0 0 0"/>', "", False),
        ('<motor tendon="f"/>', '<fixed name="f"><joint joint="j" coef="1"/></fixed>', True),
        ('<motor tendon="f"/>', '<fixed name="f"><joint joint="k" coef="1"/></fixed>', False),
    ],
)
def test_the_range_of_a_joint_holds_for_a_sum_where_several_forces_act(actuators, tendon, summed):
    text = BAR.format("", actuators).replace('name="j"', 'name="j" actuatorfrcrange="-1 1"')
    text = text.replace("</tendon>", f"{tendon}</tendon>")
    text = text.replace("</worldbody>", '<body><joint name="k"/><geom size=".1" contype="0"/></body></worldbody>')
    builder, report = _read(text)
    assert not any("actuatorfrcrange" in remark for remark in report.remarks)
    rules = _sums(builder)
    assert rules == ({report.dofs["j"]: 1} if summed else {})
    assert builder.joint_effort_limit[report.dofs["j"]] == 1.0


@pytest.mark.parametrize("gravcomp", [0.0, 0.7])
@pytest.mark.parametrize("joint", ["", 'actuatorgravcomp="true"', 'actuatorfrcrange="-1 2" actuatorgravcomp="true"'])
def test_the_range_of_a_joint_holds_for_compensated_weight(joint, gravcomp):
    text = BAR.format("", '<position joint="j" kp="3"/>').replace('name="j"', f'name="j" {joint}')
    builder, report = _read(text.replace("<body", f'<body gravcomp="{gravcomp}"'))
    summed = "frcrange" in joint and gravcomp > 0.0
    for name, value in (("effort_rules", 1), ("effort_middle", 0.5), ("jnt_actgravcomp", 1)):
        assert _sums(builder, name) == ({report.dofs["j"]: value} if summed else {})
    if summed:
        assert report.actuators[0].drive == "joint_target_q"
        assert builder.joint_effort_limit[report.dofs["j"]] == 1.5


def _read(text: str):
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder, builder.add_mjcf(text)


def _sums(builder, name: str = "effort_rules") -> dict:
    found = builder.custom_attributes.get(f"mujoco:{name}")
    return {} if found is None else dict(found.values)


ARM = """<mujoco><compiler angle="radian"/><worldbody><site name="w" pos="0 .1 .5"/><body {weight}><joint name="a" axis="0 1 0" {a}/>
<geom type="capsule" size=".02" fromto="0 0 0 .3 0 .1" mass=".5" contype="0"/><site name="e" pos=".3 0 .1"/><body pos=".3 0 .1" {weight}>
<joint name="d" axis="0 1 0" {d}/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 .1" mass=".5" contype="0"/>
<site name="f" pos=".3 0 .1"/></body></body></worldbody><tendon><spatial name="t" {t}><site site="w"/><site site="e"/></spatial>
<spatial name="l"><site site="w"/><site site="f"/></spatial>
<fixed name="x"><joint joint="a" coef=".5"/><joint joint="d" coef="-.3"/></fixed>
</tendon><actuator>{actuators}</actuator></mujoco>"""
MUSCLE = '<muscle joint="a" force="20" lengthrange="-1 1"/>'
PULL = '<muscle tendon="t" force="20" lengthrange=".1 1"/>'
EVEN, UNEVEN, WEIGHT = 'actuatorfrcrange="-1 1"', 'actuatorfrcrange="-1 3"', 'actuatorgravcomp="true"'
ELBOW, TENDON = 'actuatorfrcrange="-.5 1.5"', 'actuatorfrcrange="-2 3"'
SUMS = {
    "a muscle and a motor": dict(a=EVEN, actuators=MUSCLE + '<motor joint="a" gear="2"/>'),
    "a muscle and a servo": dict(a=UNEVEN, actuators=MUSCLE + '<position joint="a" kp="8" kv=".5"/>'),
    "a servo with a range": dict(
        a=UNEVEN, actuators='<position joint="a" kp="8" kv=".5" forcerange="-2 2"/><motor joint="a" gear="3"/>'
    ),
    "motors": dict(a=UNEVEN, actuators='<motor joint="a" gear="3"/><motor joint="a" gear="-4"/>'),
    "a motor and servos": dict(
        a=UNEVEN, d=EVEN,
        actuators='<motor joint="a" gear="3"/><position joint="a" kp="2" kv=".1"/><velocity joint="d" kv=".3"/><motor joint="d" gear="2"/>',
    ),
    "a filtered motor and a servo": dict(
        a=EVEN, actuators='<general joint="a" dyntype="filter" dynprm=".1" gainprm="3"/><position joint="a" kp="2" kv=".1"/>'
    ),
    "a motor and a filtered servo": dict(
        a=UNEVEN, actuators='<position joint="a" timeconst=".1" kp="3" kv=".1"/><motor joint="a" gear="3"/>'
    ),
    "a servo of a tendon": dict(
        a=EVEN, d=ELBOW, actuators='<position tendon="l" kp="50" kv="1"/><position joint="d" kp="3"/>'
    ),
    "a fixed tendon": dict(d=ELBOW, actuators='<position tendon="x" kp="50" kv="1"/><motor joint="d" gear="3"/>'),
    "a site": dict(a=EVEN, actuators='<motor site="f" gear="10 0 20 0 0 0"/><motor joint="a"/>'),
    "a muscle and a motor of a tendon": dict(t=TENDON, actuators='<motor tendon="t" gear="20"/>' + PULL),
    "gears of a tendon": dict(t=TENDON, actuators='<motor tendon="t" gear="2"/><motor tendon="t" gear="-3"/>'),
    "ranges of a tendon and of its motors": dict(
        t=TENDON,
        actuators='<general tendon="t" gainprm="9" forcerange="-1 1"/><position tendon="t" kp="20" gear="2" forcerange="-4 1"/>' + PULL,
    ),
    "a motor with windings and a servo of a tendon": dict(
        t='actuatorfrcrange="-.4 .3"',
        actuators='<position tendon="t" kp="20"/><dcmotor tendon="t" motorconst="1 1" resistance="1" cogging="3 6 .4" saturation="1 0 0"/>',
    ),
    "a tendon and a joint": dict(
        a='actuatorfrcrange="-.3 .4"', t=TENDON,
        actuators='<position tendon="t" kp="20" gear="2"/><motor joint="a"/>' + PULL,
    ),
    "weight and a servo": dict(
        a=f"{EVEN} {WEIGHT}", weight='gravcomp=".8"', actuators='<position joint="a" kp="5" kv=".1"/>'
    ),
    "weight and motors": dict(
        a=f"{UNEVEN} {WEIGHT}", d=f'actuatorfrcrange="-.2 .1" {WEIGHT}', weight='gravcomp="1.5"',
        actuators='<motor joint="a" forcerange="-1 2"/><motor joint="d"/>',
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", SUMS)
def test_sums_of_forces_are_those_of_mujoco(rng, kind):
    text = ARM.format(**{"a": "", "d": "", "t": "", "weight": "", **SUMS[kind]})
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    builder, report = _read(text)
    ours = builder.finalize("cpu", dtype=wp.float64)
    solver = SolverFeatherstone(ours, evaluator="general", width=1, iterations=100, tolerance=0.0)
    dofs = [report.dofs[name] for name in "ad"]
    for _ in range(8):
        data.qpos[:], data.qvel[:] = rng.uniform(-0.9, 0.9, 2), rng.normal(size=2)
        data.ctrl[:], data.act[:] = rng.uniform(-1.0, 1.0, model.nu), rng.uniform(0.0, 1.0, model.na)
        data.ctrl[:] = np.where(model.actuator_ctrllimited, np.abs(data.ctrl), data.ctrl)
        mujoco.mj_forward(model, data)
        state, out, control = ours.state(), ours.state(), ours.control()
        q, v = np.zeros(2), np.zeros(2)
        q[dofs], v[dofs] = data.qpos, data.qvel
        state.joint_q.assign(q)
        state.joint_qd.assign(v)
        write_controls(report, control, data.ctrl)
        if model.na:
            acts = np.zeros(len(state.actuator_act))
            for actuator, at, count in zip(report.actuators, model.actuator_actadr, model.actuator_actnum, strict=True):
                if count:
                    acts[actuator.index] = data.act[at]
            state.actuator_act.assign(acts)
        solver.step(state, out, control, dt=1e-7)
        found = (out.joint_qd.numpy() - v)[dofs] / 1e-7
        np.testing.assert_allclose(found, data.qacc, atol=1e-4 * np.abs(data.qacc).max())


@pytest.mark.slow
def test_specialised_steps_keep_sums_of_forces_to_the_bit(rng):
    builder, _ = _read(ARM.format(**{"a": "", "d": "", "t": "", "weight": "", **SUMS["weight and motors"]}))
    scene = ModelBuilder()
    scene.replicate(builder, 3)
    model = scene.finalize("cpu")
    state, control = model.state(), model.control()
    state.joint_q.assign(rng.uniform(-0.9, 0.9, 6))
    control.joint_f.assign(rng.uniform(-1.0, 1.0, 6))
    control.actuator_ctrl.assign(rng.uniform(-3.0, 3.0, 3))
    found = []
    for evaluator in ("general", "specialised"):
        solver, out = SolverFeatherstone(model, evaluator=evaluator), model.state()
        solver.step(state, out, control, dt=2e-3)
        solver.step(out, out, control, dt=2e-3)
        found.append(out.joint_qd.numpy())
    np.testing.assert_array_equal(*found)
