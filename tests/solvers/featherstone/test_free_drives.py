"""Springs and drives of position along FREE and DISTANCE joints, against the closed form of an implicit step."""

import numpy as np
import pytest
import warp as wp

from newton_like import JointTargetMode, JointType, ModelBuilder
from newton_like.geometry.transforms import (
    quat_from_axis_angle,
    quat_inverse,
    quat_multiply,
    quat_rotate,
    quat_to_matrix,
)
from newton_like.solvers import SolverFeatherstone

DT = 0.01


def turn(rng, angle: float) -> np.ndarray:
    return quat_from_axis_angle(rng.normal(size=3), angle)


def rotation_vector(q: np.ndarray) -> np.ndarray:
    q = q * np.sign(q[3])
    return q[:3] * 2.0 * np.arctan2(np.linalg.norm(q[:3]), q[3]) / np.linalg.norm(q[:3])


def floating_body(rng, kind: JointType, worlds: int):
    """Worlds with one body each, whose anchors and centre of mass are anywhere, without gravity."""
    builder = ModelBuilder()
    inertia = np.diag(rng.uniform(0.6, 1.0, 3)) + 0.05
    body = builder.add_link(mass=rng.uniform(1.0, 3.0), com=rng.normal(size=3), inertia=inertia)
    frames = [np.r_[rng.normal(size=3), turn(rng, 1.0)] for _ in range(2)]
    anchors = dict(parent_xform=frames[0], child_xform=frames[1])
    if kind is JointType.FREE:
        joint = builder.add_joint_free(body, **anchors)
    else:
        joint = builder.add_joint_distance(-1, body, max_distance=-1.0, **anchors)
    builder.add_articulation([joint])
    scene = ModelBuilder()
    scene.replicate(builder, worlds)
    scene.request_state_attributes("mujoco:qfrc_actuator")
    model = scene.finalize(dtype=wp.float64)
    model.set_gravity((0.0, 0.0, 0.0))
    return model


@pytest.mark.parametrize("kind", [JointType.FREE, JointType.DISTANCE], ids=["free", "distance"])
@pytest.mark.parametrize("what", ["spring", "drive"])
def test_an_implicit_step_from_rest_has_its_closed_form(kind, what, rng):
    worlds = 3
    model = floating_body(rng, kind, worlds)
    gain = rng.uniform(10.0, 1000.0, (worlds, 6))
    gain[1] = 0.0  # nothing acts in this world
    poses, goals = (
        np.array([np.r_[rng.normal(size=3), turn(rng, rng.uniform(0.1, 3.0))] for _ in range(worlds)]) for _ in "ab"
    )
    control = model.control()
    if what == "spring":
        model.joint_stiffness = gain.ravel()
        model.joint_rest_q = goals.ravel()
    else:
        model.joint_target_mode = np.full(6 * worlds, JointTargetMode.POSITION)
        model.joint_target_ke = gain.ravel()
        control.joint_target_q.assign(goals.ravel())
    solver, before, after = SolverFeatherstone(model, evaluator="general"), model.state(), model.state()
    before.joint_q.assign(poses.ravel())
    solver.step(before, after, control, None, DT)
    velocities = after.joint_qd.numpy().reshape(worlds, 6)
    forces = after.mujoco.qfrc_actuator.numpy().reshape(worlds, 6)
    frame, com, inertia = model.joint_X_c.numpy()[0], model.body_com.numpy()[0], model.body_inertia.numpy()[0]
    place = quat_rotate(quat_inverse(frame[3:]), com - frame[:3])
    for w, (pose, goal) in enumerate(zip(poses, goals, strict=True)):
        error = np.r_[
            goal[:3] + quat_rotate(goal[3:], place) - pose[:3] - quat_rotate(pose[3:], place),
            rotation_vector(quat_multiply(goal[3:], quat_inverse(pose[3:]))),
        ]
        mass = np.zeros((6, 6))
        r = quat_to_matrix(quat_multiply(pose[3:], quat_inverse(frame[3:])))
        mass[:3, :3], mass[3:, 3:] = model.body_mass.numpy()[0] * np.eye(3), r @ inertia @ r.T
        expected = np.linalg.solve(mass + DT**2 * np.diag(gain[w]), DT * gain[w] * error)
        np.testing.assert_allclose(velocities[w], expected, rtol=1e-9, atol=1e-12)
        acting = gain[w] * error if what == "drive" else np.zeros(6)
        np.testing.assert_allclose(forces[w], acting, rtol=1e-9, atol=1e-12)


def test_a_drive_holds_a_pose_with_a_force_within_its_limit(rng):
    """A constant force displaces the centre of mass by force over stiffness, and a drive that may not give this force lets go."""
    model = floating_body(rng, JointType.FREE, 2)
    model.joint_target_mode = np.full(12, JointTargetMode.POSITION_VELOCITY)
    model.joint_target_ke = np.full(12, 500.0)
    model.joint_target_kd = np.full(12, 60.0)
    model.joint_effort_limit = np.repeat([1.0e6, 2.0], 6)
    solver, state, control = SolverFeatherstone(model, evaluator="general"), model.state(), model.control()
    pose = np.r_[rng.normal(size=3), turn(rng, 1.0)]
    for joint_q in (state.joint_q, control.joint_target_q):
        joint_q.assign(np.tile(pose, 2))
    force = np.array([10.0, 0.0, 0.0])
    control.joint_f.assign(np.tile(np.r_[force, 0.0, 0.0, 0.0], 2))
    for _ in range(400):
        solver.step(state, state, control, None, DT)
    q, qd = state.joint_q.numpy().reshape(2, 7), state.joint_qd.numpy().reshape(2, 6)
    parent = model.joint_X_p.numpy()[0, 3:]
    np.testing.assert_allclose(q[0, :3] - pose[:3], quat_rotate(quat_inverse(parent), force) / 500.0, atol=1e-8)
    np.testing.assert_allclose(q[0, 3:], pose[3:], atol=1e-8)
    assert np.linalg.norm(qd[1, :3]) > 4.0
