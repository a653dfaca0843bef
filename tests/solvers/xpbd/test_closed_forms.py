"""Motions with closed forms, and their order in the time step."""

import numpy as np
import pytest
import warp as wp
from scipy.special import ellipk

import newton_like as nl
from newton_like.solvers import SolverXPBD
from tests.solvers.xpbd.scenes import after, gaps, masses, pendulum, started, xpbd


def test_a_thrown_body_flies_a_parabola(rng):
    builder = nl.ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=0.1 * np.eye(3))
    model = builder.finalize("cpu", dtype=wp.float64)
    speed = rng.normal(size=3)
    state = started(model, joint_qd=[*speed, 0, 0, 0])
    after(xpbd(model), state, 0.5, 1 / 240)
    expected = 0.5 * speed - np.array([0, 0, 0.5 * 9.81 * 0.25])
    assert body == 0
    assert state.body_q.numpy()[0, :3] == pytest.approx(expected, abs=1e-12)
    assert state.joint_q.numpy()[:3] == pytest.approx(expected, abs=1e-12)


def test_gravity_acts_by_world(rng):
    one = nl.ModelBuilder()
    one.add_body(mass=2.0, inertia=0.1 * np.eye(3))
    scene = nl.ModelBuilder()
    scene.replicate(one, 3)
    model = scene.finalize("cpu")
    fields = rng.normal(size=(3, 3)).astype(np.float32)
    for i, field in enumerate(fields):
        model.set_gravity(field, world=i)
    state = after(xpbd(model), started(model), 0.25, 1 / 240)
    assert state.body_qd.numpy()[:, :3] == pytest.approx(0.25 * fields, rel=1e-4, abs=1e-5)


def test_forces_and_torques_accelerate_a_body(rng):
    builder = nl.ModelBuilder(gravity=0.0)
    builder.add_body(mass=2.0, inertia=np.diag([0.1, 0.1, 0.1]))
    model = builder.finalize("cpu")
    wrench = rng.normal(size=6)
    state = started(model)
    state.body_f.assign(wrench[None].astype(np.float32))
    control = model.control()
    control.joint_f.assign(wrench.astype(np.float32))
    after(xpbd(model), state, 0.5, 1 / 240, control)
    expected = 2.0 * 0.5 * wrench / np.repeat([2.0, 0.1], 3)
    # rounding of 120 steps in single precision; the largest component sets the scale
    assert state.body_qd.numpy()[0] == pytest.approx(expected, abs=1e-4 * abs(expected).max())


def test_a_pendulum_swings_in_its_period(rng):
    """A rod released at rest comes back after 4 K(sin(a / 2)) / w, with an error of second order."""
    model = pendulum(1).finalize("cpu", dtype=wp.float64)
    angle = 1.2
    inertia = 0.25 + 1.0 / 12.0
    period = 4.0 * np.sqrt(inertia / (9.81 * 0.5)) * ellipk(np.sin(0.5 * angle) ** 2)
    errors = []
    for steps in (60, 120):
        state = started(model, [0.5 * np.pi - angle])
        solver = xpbd(model, substeps=2)
        for _ in range(steps):
            solver.step(state, state, dt=period / steps)
        errors.append(abs(state.joint_q.numpy()[0] - (0.5 * np.pi - angle)) + abs(state.joint_qd.numpy()[0]))
    assert errors[0] < 2e-2
    assert errors[1] < 0.3 * errors[0]


def test_a_free_body_turns_as_euler_says(rng):
    """A symmetric body precesses about its angular momentum at the rate L / I1."""
    builder = nl.ModelBuilder(gravity=0.0)
    builder.add_body(mass=1.0, inertia=np.diag([0.2, 0.2, 0.3]))
    model = builder.finalize("cpu", dtype=wp.float64)
    spin = np.array([1.5, 0.0, 2.0])
    momentum = np.diag([0.2, 0.2, 0.3]) @ spin
    errors = []
    for dt in (1 / 120, 1 / 240):
        state = started(model, joint_qd=[0, 0, 0, *spin])
        after(xpbd(model, substeps=1), state, 1.0, dt)
        axis = momentum / np.linalg.norm(momentum)
        angle = np.linalg.norm(momentum) / 0.2
        turned = (
            spin * np.cos(angle) + np.cross(axis, spin) * np.sin(angle) + axis * (axis @ spin) * (1 - np.cos(angle))
        )
        errors.append(abs(state.body_qd.numpy()[0, 3:] - turned).max())
    assert errors[0] < 1e-3
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.slow
def test_a_hanging_chain_is_stretched_by_little(rng):
    """Ten links of 0.1 kg carry 10 kg: gaps shrink with the square of the sub-steps."""
    builder, joints, parent = nl.ModelBuilder(), [], -1
    for i in range(10):
        link = builder.add_link(
            mass=0.1 if i < 9 else 10.0, com=(0, 0, -0.05), inertia=(1e-4 if i < 9 else 1e-2) * np.eye(3)
        )
        at = (0, 0, -0.1 if i else 0.0, 0, 0, 0, 1)
        joints.append(builder.add_joint_ball(parent, link, parent_xform=at))
        parent = link
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    found = []
    for substeps in (8, 16):
        state = after(xpbd(model, substeps=substeps, angular_damping=2.0), started(model), 1.0, 1 / 240)
        found.append(gaps(model, state).max())
    assert masses(model).sum() == pytest.approx(10.9)
    assert found[0] < 1e-3
    assert found[1] < 0.4 * found[0] + 1e-6


def test_kinematic_bodies_keep_their_motion(rng):
    """A turntable turns steadily and carries an arm along; nothing changes its velocity, bit by bit."""
    builder = nl.ModelBuilder()
    table = builder.add_link(is_kinematic=True, mass=1.0, inertia=0.1 * np.eye(3))
    arm = builder.add_link(mass=1.0, com=(0.3, 0, 0), inertia=0.01 * np.eye(3))
    joints = [builder.add_joint_revolute(-1, table, axis=(0, 0, 1)), builder.add_joint_fixed(table, arm)]
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    state = started(model, joint_qd=[2.0])
    after(xpbd(model), state, 1.0, 1 / 240)
    assert state.body_qd.numpy()[0].tolist() == [0, 0, 0, 0, 0, 2.0]
    assert state.joint_q.numpy()[0] == pytest.approx(2.0, abs=1e-5)
    assert state.body_qd.numpy()[1, 5] == pytest.approx(2.0, abs=1e-3)


def test_angles_count_turns(rng):
    model = pendulum(1).finalize("cpu")
    model.set_gravity((0.0, 0.0, 0.0))
    state = started(model, joint_qd=[9.0])
    after(SolverXPBD(model, width=8), state, 2.0, 1 / 240)
    assert state.joint_q.numpy()[0] == pytest.approx(18.0, rel=1e-3)
