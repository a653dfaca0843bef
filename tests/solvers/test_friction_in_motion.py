"""Dry friction of joints that is smaller in motion than at rest (``joint_friction_ratio``): a sled on rails has closed forms."""

import warnings

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.tree import REST_SPEED

import newton_like as nl
from newton_like import dynamics
from newton_like.solvers import SolverFeatherstone
from tests.solvers.xpbd.scenes import xpbd

DT = 1.0 / 500.0
SOLVERS = {
    "featherstone": lambda model: SolverFeatherstone(model, evaluator="general"),
    "xpbd": lambda model: xpbd(model, update_joints=True),
}


def sled(mass: float, friction: float, ratio: float, worlds: int = 1, loop: bool = False) -> nl.Model:
    """A body on a rail along x; with `loop`, a free body on a rail that closes a loop."""
    robot = nl.ModelBuilder(gravity=0.0)
    body = robot.add_link(mass=mass, inertia=np.eye(3))
    rail = dict(axis=(1, 0, 0), friction=friction, friction_ratio=ratio, label="rail")
    if loop:
        robot.add_articulation([robot.add_joint_free(body)])
        robot.add_joint_prismatic(-1, body, **rail)
    else:
        robot.add_articulation([robot.add_joint_prismatic(-1, body, **rail)])
    scene = nl.ModelBuilder(gravity=0.0)
    scene.replicate(robot, worlds)
    return scene.finalize("cpu", dtype=wp.float64)


def run(solver, state, force: np.ndarray, seconds: float) -> np.ndarray:
    """Velocities along x of all worlds after pushing each with its force, ``[worlds]``."""
    wrench = np.zeros((len(force), 6))
    wrench[:, 0] = force
    for _ in range(round(seconds / DT)):
        state.body_f.assign(wrench)
        solver.step(state, state, dt=DT)
    return state.body_qd.numpy()[:, 0].copy()


@pytest.mark.parametrize(
    ("kind", "loop"),
    [
        ("featherstone", False),
        ("xpbd", False),
        pytest.param("featherstone", True, marks=pytest.mark.slow),
        pytest.param("xpbd", True, marks=pytest.mark.slow),
    ],
)
def test_a_sled_rests_breaks_away_and_coasts(rng, kind, loop):
    """Below the friction at rest the sled stays; above it, its acceleration is (F - r f) / m; in motion, a force between r f and f keeps
    it moving; coasting, it loses r f / m a second, and it stays where it stops."""
    mass, friction, ratio = rng.uniform(0.5, 3.0), rng.uniform(2.0, 8.0), rng.uniform(0.3, 0.8)
    shares = np.array([0.5, 0.95, 1.1, -1.4])
    model = sled(mass, friction, ratio, len(shares), loop)
    solver, state = SOLVERS[kind](model), model.state()
    moving, sign = np.abs(shares) > 1.0, np.sign(shares)
    v = run(solver, state, friction * shares, 0.2)
    # the solvers' sweeps end within 1e-5 of the bound
    assert np.abs(v[~moving]).max() < 1e-4 * friction / mass
    expected = (np.abs(shares) - ratio) * friction * 0.2 / mass
    # friction at rest acts in the substeps that begin below the speed of rest: the first one, and more where the force is little above it
    part = friction * DT / (solver.substeps * mass)
    first = (1.0 - ratio) * part * np.maximum(np.ceil(REST_SPEED / ((np.abs(shares) - 1.0) * part)), 1.0)
    np.testing.assert_allclose(np.abs(v[moving]), (expected - first)[moving], rtol=1e-3)
    between = 0.5 * (1.0 + ratio)
    w = run(solver, state, friction * between * sign, 0.1)
    gained = (between - ratio) * friction * 0.1 / mass
    np.testing.assert_allclose(np.abs(w - v)[moving], gained, rtol=1e-3)
    assert np.abs(w[~moving]).max() < 1e-4 * friction / mass
    coasting = 0.5 * np.abs(w[moving]).min() * mass / (ratio * friction)
    x = run(solver, state, 0.0 * shares, coasting)
    lost = ratio * friction * round(coasting / DT) * DT / mass
    np.testing.assert_allclose(np.abs(w - x)[moving], lost, rtol=1e-3)
    rest = run(solver, state, 0.0 * shares, 2.0 * np.abs(w).max() * mass / (ratio * friction))
    assert np.abs(rest).max() < 1e-4 * friction / mass
    held = run(solver, state, 0.95 * friction * sign, 0.1)
    assert np.abs(held).max() < 1e-4 * friction / mass


@pytest.mark.parametrize("kind", SOLVERS)
def test_edits_act_at_the_next_step(rng, kind):
    """A sled that is pushed with a force between both frictions moves on, until the ratio becomes one."""
    mass, friction = rng.uniform(0.5, 3.0), rng.uniform(2.0, 8.0)
    model = sled(mass, friction, 1.0)
    solver, state = SOLVERS[kind](model), model.state()
    for ratio in (0.2, 1.0):
        model.joint_friction_ratio.fill_(ratio)
        solver.notify_model_changed(nl.ModelFlags.JOINT_DOF_PROPERTIES)
        state.joint_qd.fill_(1.0)
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
        v = run(solver, state, np.array([0.6 * friction]), 0.05)
        np.testing.assert_allclose(v - 1.0, (0.6 - ratio) * friction * 0.05 / mass, rtol=1e-3)


def test_a_ratio_of_one_changes_no_bit(rng):
    """The friction of a joint without a ratio, beside another joint with one."""
    ends, force = [], rng.uniform(-9.0, 9.0, 2)
    for ratio in (1.0, 0.5):
        robot = nl.ModelBuilder(gravity=0.0)
        for r in (1.0, ratio):
            body = robot.add_link(mass=1.3, inertia=np.eye(3))
            robot.add_articulation([robot.add_joint_revolute(-1, body, friction=0.8, friction_ratio=r)])
        model = robot.finalize("cpu", dtype=wp.float64)
        solver, state, control = SOLVERS["featherstone"](model), model.state(), model.control()
        control.joint_f.assign(force)
        for _ in range(20):
            solver.step(state, state, control, dt=DT)
        ends.append(state.joint_qd.numpy())
    assert ends[0][0] == ends[1][0]


def test_smooth_friction_is_that_in_motion(rng):
    """``dynamics.joint_friction_forces`` beyond the speed of its transition: -r f sign(v)."""
    mass, friction, ratio = rng.uniform(0.5, 3.0), rng.uniform(2.0, 8.0), rng.uniform(0.3, 0.8)
    model = sled(mass, friction, ratio, 2)
    state = model.state()
    state.joint_qd.assign([0.7, -0.2])
    np.testing.assert_allclose(
        dynamics.joint_friction_forces(model, state).numpy().ravel(),
        ratio * friction * np.array([-1.0, 1.0]),
        rtol=1e-14,
    )


@pytest.mark.parametrize(("value", "message"), [(1.2, "above 1"), (-0.1, "below 0"), (float("nan"), "NaN|nan")])
def test_ratios_out_of_range_are_refused_by_name(value, message):
    with pytest.raises(ValueError, match=f"(?s)friction_ratio.*({message})"):
        sled(1.0, 1.0, value)
    model = sled(1.0, 1.0, 0.5)
    solver = SOLVERS["featherstone"](model)
    model.joint_friction_ratio.fill_(value)
    with pytest.raises(ValueError, match="joint_friction_ratio"):
        solver.notify_model_changed(nl.ModelFlags.JOINT_DOF_PROPERTIES)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_specialised_steps_have_the_bits_of_general_ones(rng, dtype):
    """Hinges and a ball joint in motion and at rest, with a contact, so that sweeps of robots alone use the bounds, too."""
    robot, worlds = nl.ModelBuilder(), 5
    one, two = (robot.add_link(mass=1.0, inertia=np.eye(3) * 0.02) for _ in range(2))
    robot.add_shape_sphere(two, radius=0.1)
    pose = (0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0)
    hinge = robot.add_joint_revolute(-1, one, axis=(0, 1, 0), parent_xform=pose, friction=0.5, friction_ratio=0.4)
    ball = robot.add_joint_ball(one, two, parent_xform=(0.2, 0, -0.15, 0, 0, 0, 1), friction=0.3, friction_ratio=0.6)
    robot.add_articulation([hinge, ball])
    scene = nl.ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(robot, worlds)
    model = scene.finalize("cpu", dtype=dtype)
    start, ends = rng.normal(size=model.joint_dof_count) * (rng.random(model.joint_dof_count) < 0.6), []
    for evaluator in ("general", "specialised"):
        solver, state = SolverFeatherstone(model, evaluator=evaluator), model.state()
        state.joint_qd.assign(start)
        for _ in range(100):
            solver.step(state, state, dt=DT)
        ends.append(np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy()]))
    np.testing.assert_array_equal(*ends)
    assert np.isfinite(ends[0]).all()


@pytest.mark.parametrize("joint", ["revolute", "ball", "d6"])
def test_ratios_come_back_from_usd(rng, joint, tmp_path):
    ratio, robot = float(rng.uniform(0.1, 0.9)), nl.ModelBuilder()
    link = robot.add_link(mass=1.0, inertia=np.eye(3))
    if joint == "d6":
        axes = [nl.JointDofConfig(axis=axis, friction=1.0, friction_ratio=r) for axis, r in (("x", ratio), ("y", 1.0))]
        added = robot.add_joint_d6(-1, link, angular_axes=axes)
    else:
        added = getattr(robot, f"add_joint_{joint}")(-1, link, friction=1.0, friction_ratio=ratio)
    robot.add_articulation([added])
    nl.usd.write(robot.finalize("cpu"), tmp_path / "robot.usda")
    back = nl.ModelBuilder()
    back.add_usd(tmp_path / "robot.usda")
    np.testing.assert_allclose(back.joint_friction_ratio, robot.joint_friction_ratio, rtol=1e-6)


def test_graphs_see_ratios_of_friction_that_an_edit_adds(rng):
    """The model declares that friction varies, and has none when the graph is captured."""
    model = sled(1.0, 0.0, 0.5)
    solver = SolverFeatherstone(model, evaluator="general", varying=("joint_friction",))
    state, friction = model.state(), rng.uniform(2.0, 8.0)
    with wp.ScopedCapture("cpu") as capture:
        solver.step(state, state, dt=DT)
    model.joint_friction.fill_(friction)
    with warnings.catch_warnings():
        # the solver would warn of other tables
        warnings.simplefilter("error")
        solver.notify_model_changed(nl.ModelFlags.JOINT_DOF_PROPERTIES)
    state.joint_qd.fill_(1.0)
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    state.body_f.assign([[0.8 * friction, 0.0, 0.0, 0.0, 0.0, 0.0]])
    for _ in range(25):
        wp.capture_launch(capture.graph)
    np.testing.assert_allclose(state.joint_qd.numpy() - 1.0, 0.3 * friction * 25 * DT, rtol=1e-3)
