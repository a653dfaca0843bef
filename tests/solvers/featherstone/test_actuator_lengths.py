"""Actuators whose forces depend on the length of a ball joint, a free joint or a site are those of MuJoCo."""

import warnings

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.model.actuators import Actuator
from newton_like.solvers import SolverFeatherstone

SERVO = 'gainprm="3" biastype="affine" biasprm=".2 -4 -.5"'
SCENE = """<mujoco><worldbody><site name="w" pos=".1 .2 .3" euler="20 -40 70"/>
<body name="a" pos="0 0 1" euler="30 20 10"><joint name="ball" type="ball" pos=".02 0 .01"/>
<geom type="box" size=".1 .2 .05" pos=".1 0 0" contype="0" conaffinity="0"/><site name="s" pos=".1 .1 0" euler="10 50 -30"/>
<body pos=".2 0 0"><joint name="hinge" axis="0 1 1"/><geom type="box" size=".1 .05 .04" contype="0" conaffinity="0"/>
<site name="t" pos="0 .1 .1" euler="-60 10 20"/></body></body>
<body name="f" pos="1 0 1" euler="30 20 10"><freejoint name="free"/><geom type="box" size=".1 .05 .2" contype="0" conaffinity="0"/>
<site name="u" euler="0 45 90"/></body></worldbody><actuator>{}</actuator></mujoco>"""
CASES = {
    "ball": f'<general joint="ball" gear=".5 1 -2" {SERVO}/>',
    "ball, in the parent": f'<general jointinparent="ball" gear=".5 1 -2" {SERVO}/>',
    "position servo of a ball": '<position joint="ball" gear="0 1 0" kp="4" kv=".3"/>',
    "muscle of a ball": '<muscle joint="ball" gear="0 .5 1" force="5" lengthrange="-3 3"/>',
    "free": f'<general joint="free" gear=".5 1 -2 .1 .2 .3" {SERVO}/>',
    "site": f'<general site="t" gear=".5 1 -2 .1 .2 .3" {SERVO}/>',
    "site, turned relative to the world": f'<general site="t" refsite="w" gear="0 0 0 .4 .2 -.3" {SERVO}/>',
    "site, relative to a body that carries it": f'<general site="t" refsite="s" gear="1 .5 0 .4 .2 -.3" {SERVO}/>',
    "site of a floating body": f'<general site="u" refsite="w" gear=".3 0 1 .4 .2 -.3" {SERVO}/>',
}


def put(model, data, ours, state) -> None:
    """Coordinates and velocities of MuJoCo in a state; anchors are frames of bodies, whose centres of mass are those of MuJoCo."""
    q, v = state.joint_q.numpy(), state.joint_qd.numpy()
    turn = np.zeros(9)
    (w, *xyz), free = data.qpos[:4], data.qpos[5:12]
    q[:4], q[4] = (*xyz, w), data.qpos[4]
    q[5:] = *free[:3], *free[4:], free[3]
    mujoco.mju_quat2Mat(turn, data.qpos[:4])
    v[:3], v[3] = turn.reshape(3, 3) @ data.qvel[:3], data.qvel[3]
    mujoco.mju_quat2Mat(turn, free[3:])
    v[4:7], v[7:] = data.qvel[4:7], turn.reshape(3, 3) @ data.qvel[7:]
    state.joint_q.assign(q)
    state.joint_qd.assign(v)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.slow
def test_accelerations_are_those_of_mujoco(rng, kind):
    text, dt = SCENE.format(CASES[kind]), 1e-7
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = builder.add_mjcf(text)
    assert [actuator.drive for actuator in report.actuators] == ["actuator_ctrl"]
    ours = builder.finalize("cpu", dtype=wp.float64)
    solver = SolverFeatherstone(ours, evaluator="general", width=1)
    for _ in range(5):
        turns = rng.normal(size=(2, 4))
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        data.qpos[:] = [*turns[0], *rng.uniform(-1.0, 1.0, 4), *turns[1]]
        data.qvel[:] = rng.normal(size=model.nv)
        data.ctrl[:] = rng.uniform(0.0, 1.0)
        data.act[:] = rng.uniform(0.0, 1.0, model.na)
        mujoco.mj_forward(model, data)
        state, later, out, control = ours.state(), ours.state(), ours.state(), ours.control()
        put(model, data, ours, state)
        before = state.joint_qd.numpy().copy()
        control.actuator_ctrl.assign(data.ctrl)
        if model.na:
            state.actuator_act.assign(data.act)
        data.qvel[:] += dt * data.qacc
        mujoco.mj_integratePos(model, data.qpos, data.qvel, dt)
        put(model, data, ours, later)
        solver.step(state, out, control, dt=dt)
        expected, found = (later.joint_qd.numpy() - before) / dt, (out.joint_qd.numpy() - before) / dt
        np.testing.assert_allclose(found, expected, atol=1e-4 * abs(expected).max())


def test_a_muscle_on_a_length_that_is_always_zero_stays_data():
    text = SCENE.format('<muscle name="m" site="t" gear="1 0 0 0 0 0" force="5" lengthrange="0 1"/>')
    with pytest.warns(UserWarning, match="always zero"):
        report = ModelBuilder().add_mjcf(text)
    assert report.actuators[0].drive is None


def test_actuators_on_sites_of_the_world_only_stay_data():
    """In MuJoCo their forces have no effect."""
    builder = ModelBuilder()
    with pytest.warns(UserWarning, match=r"m \(general: forces on sites of the world only"):
        report = builder.add_mjcf(SCENE.format(f'<general name="m" site="w" gear="1 0 0 0 0 0" {SERVO}/>'))
    assert report.actuators[0].drive is None and not builder.actuators


def test_sites_of_no_articulation_or_of_two_are_refused_by_name():
    for sites, told in (("w", "acts on sites of the world only"), ("su", "acts between 2 articulations.*merge_art")):
        builder = ModelBuilder()
        report = builder.add_mjcf(SCENE.format(""))
        target, *reference = (report.sites[name] for name in sites)
        reference = reference[0] if reference else -1
        push = Actuator(label="m", transmission="site", target=target, reference=reference, gear=(1, 0, 0, 0, 0, 0))
        builder.add_actuator(push)
        with pytest.raises(ValueError, match=rf"actuator 'm' \(index 0\) {told}"):
            SolverFeatherstone(builder.finalize("cpu"), evaluator="general")
