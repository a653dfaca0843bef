"""Limits of ball joints: of the whole rotation, as MuJoCo has them, and of the swing of an axis, a cone as USD has it."""

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import BodyFlags, ModelBuilder, ModelFlags, dynamics
from newton_like.geometry.transforms import quat_from_axis_angle, quat_inverse, quat_multiply, quat_rotate
from newton_like.importers.mjcf import MjcfWarning
from newton_like.solvers import SolverFeatherstone, SolverXPBD

pytestmark = pytest.mark.slow

X = np.array([1.0, 0.0, 0.0])


def random_turn(rng, angle: float | None = None) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q) if angle is None else quat_from_axis_angle(rng.normal(size=3), angle)


def angle_of(q) -> np.ndarray:
    return 2.0 * np.arctan2(np.linalg.norm(q[..., :3], axis=-1), np.abs(q[..., 3]))


def swing_of(q) -> np.ndarray:
    x = quat_rotate(q, X)
    return np.arctan2(np.linalg.norm(x[..., 1:], axis=-1), x[..., 0])


def chain_of_file(rng, balls: int = 3) -> tuple[str, np.ndarray]:
    """A chain of ball joints with soft limits of random settings, and these limits [rad]."""
    xml, tail, limits = "", "", rng.uniform(0.3, 0.7, balls)
    for i, limit in enumerate(limits):
        # an impedance below 1 is softer than a step
        imp = f"{rng.uniform(0.5, 0.9)} {rng.uniform(0.9, 0.97)} {rng.uniform(0.01, 0.1)} {rng.uniform(0.3, 0.7)} {rng.uniform(1.0, 3.0)}"
        settings = f'solreflimit="{rng.uniform(0.02, 0.06)} {rng.uniform(0.7, 1.2)}" solimplimit="{imp}" margin="{rng.uniform(0.0, 0.1)}"'
        place, end = (" ".join(map(str, rng.uniform(0.05, 0.2, 3))) for _ in range(2))
        xml += (
            f'<body pos="{place}"><joint name="ball_{i}" type="ball" pos="{rng.uniform(0.0, 0.02)} 0 0" range="0 {np.degrees(limit)}"'
            f' {settings} damping=".002"/><geom type="capsule" size=".02" fromto="0 0 0 {end}" contype="0" conaffinity="0"/>'
        )
        tail += "</body>"
    return f'<mujoco><option timestep="0.0005"/><worldbody>{xml}{tail}</worldbody></mujoco>', limits


def to_mujoco(data, q: np.ndarray, w: np.ndarray) -> None:
    """Rotations and angular velocities in the axes of the parents, ``[balls, 4]`` and ``[balls, 3]``; MuJoCo has those of the children."""
    data.qpos[:] = np.roll(q, 1, axis=1).ravel()
    data.qvel[:] = quat_rotate(quat_inverse(q), w).ravel()


def test_accelerations_beyond_limits_are_those_of_mujoco(rng):
    for _ in range(3):
        xml, limits = chain_of_file(rng)
        builder = ModelBuilder()
        builder.add_mjcf(xml)
        np.testing.assert_allclose(builder.joint_max_angle, limits, rtol=1e-12)
        model = builder.finalize(dtype=wp.float64)
        solver, start, end = (
            SolverFeatherstone(model, evaluator="general", iterations=200),
            model.state(),
            model.state(),
        )
        peer = mujoco.MjModel.from_xml_string(xml)
        peer.opt.tolerance, peer.opt.iterations = 1e-14, 200
        data = mujoco.MjData(peer)
        acting = 0
        for _ in range(4):
            q = np.array([random_turn(rng, limit + rng.uniform(-0.1, 0.15)) for limit in limits])
            w = rng.normal(size=(len(limits), 3))
            to_mujoco(data, q, w)
            mujoco.mj_forward(peer, data)
            acting += (data.efc_force != 0.0).sum()
            expected = quat_rotate(q, data.qacc.reshape(-1, 3))
            start.joint_q.assign(q.ravel())
            start.joint_qd.assign(w.ravel())
            dt = 1e-6
            solver.step(start, end, dt=dt)
            found = (end.joint_qd.numpy() - w.ravel()).reshape(-1, 3) / dt
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=2e-4 * np.abs(expected).max())
        assert acting >= 4


def test_falls_against_limits_are_those_of_mujoco(rng):
    for _ in range(2):
        xml, _ = chain_of_file(rng)
        builder = ModelBuilder()
        builder.add_mjcf(xml)
        model = builder.finalize(dtype=wp.float64)
        solver, state = SolverFeatherstone(model, evaluator="general", iterations=30), model.state()
        peer = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(peer)
        acting = 0
        for _ in range(600):
            mujoco.mj_step(peer, data)
            solver.step(state, state, dt=peer.opt.timestep)
            acting += data.nefc > 0
        assert acting > 100
        found = state.joint_q.numpy().reshape(-1, 4)
        expected = np.roll(data.qpos.reshape(-1, 4), -1, axis=1)
        apart = angle_of(quat_multiply(found, quat_inverse(expected)))
        assert apart.max() < 0.02, f"after 0.3 s and {acting} steps at limits"


def robot(rng, mass: float = 1.0, **limits) -> ModelBuilder:
    """A hinge, and two ball joints with limits on it."""
    builder = ModelBuilder()
    base = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))
    arm = builder.add_link(mass=0.5 * mass, com=(0.1, 0.0, 0.0), inertia=mass * np.diag([1e-3, 2e-3, 2e-3]))
    tip = builder.add_link(mass=0.3 * mass, com=(0.1, 0.02, 0.0), inertia=mass * np.diag([5e-4, 1e-3, 1e-3]))
    frames = {f"{end}_xform": (*rng.uniform(-0.1, 0.1, 3), *random_turn(rng)) for end in ("parent", "child")}
    joints = [
        builder.add_joint_revolute(-1, base, axis=(0, 1, 0)),
        builder.add_joint_ball(base, arm, **frames, **limits, label="shoulder"),
        builder.add_joint_ball(arm, tip, parent_xform=(0.2, 0, 0, 0, 0, 0, 1), max_angle=0.4, label="wrist"),
    ]
    builder.add_articulation(joints)
    return builder


@pytest.mark.parametrize("limits", [{"max_angle": 0.6}, {"max_swing": 0.5}, {"max_angle": 1.0, "max_swing": 0.4}])
def test_rotations_stay_within_their_limits(rng, limits):
    """A body that meets a limit in a step goes on for half a step at most. Rotations about the axis of a cone are free."""
    scene = ModelBuilder()
    scene.replicate(robot(rng, **limits), 8)
    model = scene.finalize()
    solver, state, dt = SolverFeatherstone(model, evaluator="general"), model.state(), 1 / 480
    speeds = rng.normal(size=(8, 7))
    state.joint_qd.assign(speeds.ravel())
    most, fastest = np.zeros(3), 0.0
    for _ in range(480):
        fastest = max(
            fastest, np.linalg.norm(state.joint_qd.numpy().reshape(8, 7)[:, 1:].reshape(8, 2, 3), axis=2).max()
        )
        solver.step(state, state, dt=dt)
        q = state.joint_q.numpy().reshape(8, 9)
        most = np.maximum(most, [angle_of(q[:, 1:5]).max(), swing_of(q[:, 1:5]).max(), angle_of(q[:, 5:]).max()])
    beyond = 0.5 * dt * fastest + 2e-3
    angle, swing = limits.get("max_angle", np.pi), limits.get("max_swing", np.pi)
    assert (most < np.array([angle, swing, 0.4]) + beyond).all()
    assert most[2] > 0.39 and (most[0] > angle - 0.01 or most[1] > swing - 0.01), "limits are met"


def test_evaluators_agree_bit_by_bit(rng):
    scene = ModelBuilder()
    scene.replicate(robot(rng, max_angle=0.9, max_swing=0.4), 5)
    model = scene.finalize()
    speeds, runs = 3.0 * rng.normal(size=model.joint_dof_count), []
    for evaluator in ("general", "specialised"):
        solver, state = SolverFeatherstone(model, evaluator=evaluator), model.state()
        state.joint_qd.assign(speeds)
        for _ in range(100):
            solver.step(state, state, dt=1 / 240)
        runs.append(state.joint_q.numpy())
    np.testing.assert_array_equal(*runs)


def bob(**limits) -> ModelBuilder:
    """A point mass, 0.5 m from a ball joint whose x axis points down."""
    builder = ModelBuilder(gravity=-10.0)
    link = builder.add_link(mass=2.0, com=(0.5, 0.0, 0.0), inertia=1e-5 * np.eye(3))
    down = quat_from_axis_angle((0, 1, 0), 0.5 * np.pi)
    builder.add_articulation([builder.add_joint_ball(-1, link, parent_xform=(0, 0, 0, *down), **limits)])
    return builder


@pytest.mark.parametrize("name", ["max_angle", "max_swing"])
def test_a_bob_circles_along_its_limit_at_constant_speed(name):
    """A conical pendulum that is too fast for its cone: gravity has no part along the circle, and the limit exerts no torque about the
    vertical. Without a spin about its own axis, its rotation is a swing only, so that both limits are the same."""
    limit, rate = 0.6, 8.0
    model = bob(**{name: limit}).finalize(dtype=wp.float64)
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_q.assign(quat_from_axis_angle((0, 1, 0), limit))
    # of a swing about a turning axis: about the cone's axis, and back about the own one
    vertical, own = rate * X, -rate * quat_rotate(quat_from_axis_angle((0, 1, 0), limit), X)
    state.joint_qd.assign(vertical + own)
    dt, turned, before = 1e-3, 0.0, None
    for _ in range(1000):
        solver.step(state, state, dt=dt)
        q = state.joint_q.numpy()
        assert abs(swing_of(q) - limit) < 2e-4
        x = quat_rotate(q, X)
        about = np.arctan2(x[2], x[1])
        turned += 0.0 if before is None else (about - before + np.pi) % (2.0 * np.pi) - np.pi
        before = about
    assert abs(turned) == pytest.approx(rate * 0.999, rel=2e-3)


def test_limits_add_no_energy(rng):
    """Without gravity, nothing else acts. Single impacts are right to first order in the time step only."""
    scene = ModelBuilder(gravity=0.0)
    for _ in range(4):
        scene.add_world(robot(rng, max_angle=0.5))
    model = scene.finalize(dtype=wp.float64)
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_qd.assign(rng.normal(size=model.joint_dof_count))
    start = dynamics.kinetic_energy(model, state).numpy()
    least = start.copy()
    for _ in range(1200):
        solver.step(state, state, dt=1 / 480)
        now = dynamics.kinetic_energy(model, state).numpy()
        assert (now <= least + 0.05 * start).all() and (now <= 1.001 * start).all()
        least = np.minimum(now, least)
    assert (now < 0.95 * start).any(), "some limits were met"


def resting(model, solver=None, seconds: float = 2.0) -> np.ndarray:
    """Angles of bobs without damping, which are led by their limits."""
    solver, state = solver or SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_qd.assign(np.tile([0.0, 2.0, 0.0], model.joint_count))
    most = np.zeros(model.joint_count)
    for _ in range(int(240 * seconds)):
        solver.step(state, state, dt=1 / 240)
        most = np.maximum(most, angle_of(state.joint_q.numpy().reshape(-1, 4)))
    return most


def test_worlds_have_limits_of_their_own_and_edits_change_them():
    limits = np.array([0.05, 0.1, 0.2])
    scene = ModelBuilder()
    for limit in limits:
        scene.add_world(bob(max_angle=limit))
    model = scene.finalize()
    solver = SolverFeatherstone(model, evaluator="general")
    np.testing.assert_allclose(resting(model, solver), limits, atol=5e-3)
    model.joint_max_angle.assign(limits[::-1].copy())
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    np.testing.assert_allclose(resting(model, solver), limits[::-1], atol=5e-3)
    model.joint_max_angle.assign([-1.0, 0.1, -1.0])
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    found = resting(model, solver)
    assert found[1] == pytest.approx(0.1, abs=5e-3) and (found[[0, 2]] > 0.35).all()


def test_limits_come_to_a_model_without_any():
    model = bob().finalize()
    solver = SolverFeatherstone(model, evaluator="general")
    assert solver.loops is None, "a model without limits has no rows"
    assert resting(model, solver) > 0.35
    model.joint_max_swing.assign([0.2])
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    assert resting(model, solver) == pytest.approx([0.2], abs=5e-3)
    varying = SolverFeatherstone(bob().finalize(), evaluator="general", varying=("joint_max_angle",))
    assert resting(varying.model, varying) > 0.35
    varying.model.joint_max_angle.assign([0.2])
    varying.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    assert resting(varying.model, varying) == pytest.approx([0.2], abs=5e-3)
    varying.model.joint_max_angle.assign([np.nan])
    with pytest.raises(ValueError, match="joint_max_angle is nan"):
        varying.notify_model_changed(ModelFlags.JOINT_PROPERTIES)


def test_kinematic_bodies_have_no_limits():
    builder = bob(max_angle=0.1)
    builder.body_flags[0] = int(BodyFlags.KINEMATIC)
    model = builder.finalize()
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_qd.assign([0.0, 1.0, 0.0])
    for _ in range(120):
        solver.step(state, state, dt=1 / 240)
    assert angle_of(state.joint_q.numpy()) == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_array_equal(state.joint_qd.numpy(), [0.0, 1.0, 0.0])


def test_a_file_without_settings_has_rigid_limits_and_no_remark(recwarn):
    builder = ModelBuilder()
    builder.add_mjcf(
        '<mujoco><worldbody><body><joint type="ball" range="0 30"/><geom size=".1" pos=".3 0 0"/></body></worldbody></mujoco>'
    )
    assert not [w for w in recwarn if w.category is MjcfWarning]
    assert builder.joint_max_angle == pytest.approx([np.radians(30.0)])
    model = builder.finalize()
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    for _ in range(480):
        solver.step(state, state, dt=1 / 240)
    assert angle_of(state.joint_q.numpy()) == pytest.approx(np.radians(30.0), abs=1e-3)


def test_random_positions_are_within_limits_and_fill_them(rng):
    scene = ModelBuilder()
    for limits in ({"max_angle": 0.7}, {"max_swing": 1.2}, {"max_angle": 2.0, "max_swing": 0.5}, {}):
        for _ in range(300):
            scene.add_world(bob(**limits))
    model = scene.finalize()
    q = dynamics.random_joint_positions(model, rng).numpy().reshape(4, 300, 4)
    assert np.linalg.norm(q, axis=2) == pytest.approx(1.0, abs=1e-6)
    angle, swing = angle_of(q).max(axis=1), swing_of(q).max(axis=1)
    assert 0.6 < angle[0] < 0.7001 and 1.0 < swing[1] < 1.2001 and angle[1] > 2.5
    assert 1.7 < angle[2] < 2.0001 and 0.4 < swing[2] < 0.5001 and angle[3] > 2.8
    # angles of uniform rotations up to a have the distribution (x - sin x) / (a - sin a)
    a = 0.7
    share = np.sort(angle_of(q[0]))
    share = (share - np.sin(share)) / (a - np.sin(a))
    assert np.abs(share - (np.arange(300) + 0.5) / 300).max() < 0.12


def test_errors_name_the_joint():
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0)
    with pytest.raises(ValueError, match=r"'neck'.*max_angle -1 is negative"):
        builder.add_joint_ball(-1, link, max_angle=-1.0, label="neck")
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 0, 1), label="knee")])
    builder.joint_max_swing[0] = 0.5
    with pytest.raises(ValueError, match=r"'knee'.*max_swing 0.5"):
        builder.finalize()
    with pytest.raises(ValueError, match=r"'joint_0'.*max_angle 0.5.*SolverFeatherstone"):
        SolverXPBD(bob(max_angle=0.5).finalize())
