"""Adhesion: actuators that press a body onto what it touches hold it as in MuJoCo, and let go below its weight."""

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone

# the motor without force has a row, so that the kernel is that of the other tests of actuators
UNDER = """
<mujoco><option timestep="0.002" cone="elliptic"/><default><geom solref=".02 1" condim="3" friction=".6 0 0"/></default>
<worldbody>{ceiling}<body name="b" pos="0 0 -.0995"><freejoint/><site name="s"/><geom type="box" size=".1 .1 .1" mass="1"/></body>
</worldbody>
<actuator><adhesion body="b" ctrlrange="0 1" gain="{gain}"/><general site="s" gainprm="0"/></actuator></mujoco>
"""
CEILING = {
    "plane": '<geom type="plane" size="0 0 1" zaxis="0 0 -1"/>',
    "box": '<geom type="box" size="1 1 .1" pos="0 0 .1"/>',
}


def hung(gain: float, ctrl: float, ceiling: str, seconds: float = 0.4, **options):
    """Heights after some time in MuJoCo and here, and the velocities here."""
    xml = UNDER.format(gain=gain, ceiling=CEILING[ceiling])
    mj = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(mj)
    data.ctrl[0] = ctrl
    builder = ModelBuilder()
    report = builder.add_mjcf(xml)
    assert [actuator.drive for actuator in report.actuators] == ["actuator_ctrl"] * 2
    model = builder.finalize("cpu", dtype=wp.float64)
    state, control = model.state(), model.control()
    control.actuator_ctrl = [ctrl, 0.0]
    solver = SolverFeatherstone(model, **{"evaluator": "general", "width": 1, **options})
    for _ in range(round(seconds / 0.002)):
        mujoco.mj_step(mj, data)
        solver.step(state, state, control, dt=0.002)
    return data.qpos[2], float(state.joint_q.numpy()[2]), state.joint_qd.numpy()


@pytest.mark.parametrize("ceiling", ["plane", pytest.param("box", marks=pytest.mark.slow)])
def test_a_box_hangs_from_a_ceiling_as_in_mujoco(ceiling, rng):
    """The depth in the ceiling is that of MuJoCo's soft contact, which depends on how the force is shared among contacts."""
    ctrl = float(rng.uniform(0.45, 1.0))
    theirs, ours, _ = hung(30.0, ctrl, ceiling)
    assert theirs > -0.101
    # both relax to the same rest, exp(-0.4 / 0.02) from where they begin
    assert abs(ours - theirs) < 1e-7


def test_a_box_falls_where_the_force_is_below_its_weight(rng):
    weight = 9.81
    gain = weight * float(rng.uniform(0.3, 0.95))
    theirs, ours, _ = hung(gain, 1.0, "plane")
    # free fall after at most some steps in contact
    assert theirs < -0.5
    assert abs(ours - theirs) < 0.02


def test_adhesion_acts_where_shapes_touch_without_penetration(rng):
    """A box on a wall at a gap of zero, up to rounding: only the force of the actuator could press it onto the wall."""
    xml = UNDER.format(gain=60.0, ceiling=CEILING["plane"]).replace('timestep="0.002"', 'gravity="9.81 0 0"')
    moved = []
    for gap in (0.0, 1e-8, 1e-4):
        builder = ModelBuilder()
        builder.add_mjcf(xml.replace("-.0995", f"{-0.1 - gap:.9f}"))
        model = builder.finalize("cpu", dtype=wp.float64)
        state, control = model.state(), model.control()
        control.actuator_ctrl = [float(rng.uniform(0.6, 1.0)), 0.0]
        solver = SolverFeatherstone(model, evaluator="general", width=1)
        for _ in range(100):
            solver.step(state, state, control, dt=0.002)
        moved.append(float(state.joint_q.numpy()[0]))
    # fall of 0.2 s: 0.196 m
    assert abs(moved[0]) < 1e-3
    assert abs(moved[1]) < 1e-3
    assert moved[2] > 0.19


def test_adhesion_gives_friction_its_bound(rng):
    """A box on a wall without other forces slides or sticks by mu times the force of the actuator."""
    force, mu = float(rng.uniform(10.0, 40.0)), 0.6
    for share, holds in ((0.8, True), (1.2, False)):
        xml = UNDER.format(gain=force, ceiling=CEILING["plane"]).replace('timestep="0.002"', 'gravity="0 0 0"')
        builder = ModelBuilder()
        builder.add_mjcf(xml)
        model = builder.finalize("cpu", dtype=wp.float64)
        state, control = model.state(), model.control()
        control.actuator_ctrl = [1.0, 0.0]
        solver = SolverFeatherstone(model, evaluator="general", width=1)
        for k in range(200):
            pull = np.zeros(6)
            pull[0] = share * mu * force * min(1.0, k / 50)
            state.body_f.assign(pull.reshape(1, 6))
            solver.step(state, state, control, dt=0.002)
        speed = abs(float(state.joint_qd.numpy()[0]))
        # without friction's bound it would move at share mu force t
        assert (speed < 1e-3) == holds
        if not holds:
            # the pull grows for 0.1 s, and is above the bound for the last sixth of that
            time = 0.3 + 0.5 * 0.1 / 6.0
            assert abs(speed - (share - 1.0) * mu * force * time) < 0.02 * speed


@pytest.mark.slow
def test_specialised_code_adheres_as_general_code_does():
    """Velocities at rest differ by rounding errors of double precision (3e-15 m/s were seen)."""
    found = [hung(30.0, 0.7, "plane", evaluator=evaluator, width=8)[2] for evaluator in ("general", "specialised")]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-12)
