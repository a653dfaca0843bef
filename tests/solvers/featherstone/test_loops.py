"""Loop joints in SolverFeatherstone: accelerations and forces, gaps, energy, and the motion of MuJoCo."""

import warnings

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import JointDofConfig, JointTargetMode, JointType, ModelBuilder, ModelFlags, dynamics, eval_fk
from newton_like.solvers import SolverFeatherstone
from tests.support.loops import closed, four_bar, loop_coordinates, started

LOOPS = ((JointType.BALL, 2, 5), (JointType.REVOLUTE, -1, 4))
SINGLE = (JointType.REVOLUTE, JointType.PRISMATIC)


@pytest.mark.parametrize("floating", [True, False])
def test_accelerations_and_forces_are_those_of_the_dynamics_library(rng, floating):
    """At a step of 1e-5 s, the change of the velocity over dt is the acceleration at the middle of the step, to O(dt). The first step also
    closes the gap of dt^2 / 8 k that half a step opens."""
    tree, q = closed(rng, LOOPS, floating=floating, types=SINGLE, damping=False, joints=9)
    scene = ModelBuilder()
    scene.replicate(tree, 2)
    model = scene.finalize("cpu", dtype=wp.float64)
    state, dofs = started(model, q, rng)
    solver, dt = SolverFeatherstone(model, evaluator="general"), 1.0e-5
    for _ in range(3):
        before = state.joint_qd.numpy().copy()
        a, force = (x.numpy() for x in dynamics.constrained_dynamics(model, state, time_constant=None))
        solver.step(state, state, None, None, dt)
    got = ((state.joint_qd.numpy() - before) / dt)[dofs]
    size = np.abs(a).max()
    # accelerations change by about size^1.5 dt within a step, gaps of 1e-16 are closed in dt
    np.testing.assert_allclose(got, a[:, : got.shape[1]], rtol=0, atol=1e-3 * size)
    K = dynamics.constraint_jacobian(model, state)[0].numpy()
    pull, same = (np.einsum("ari,ar->ai", K, f) for f in (solver.loop_forces().numpy(), force))
    np.testing.assert_allclose(pull, same, rtol=0, atol=2e-3 * np.abs(same).max())


def energy(model, state) -> np.ndarray:
    total = dynamics.kinetic_energy(model, state).numpy() + dynamics.potential_energy(model, state).numpy()
    return total.astype(np.float64)


def test_a_four_bar_keeps_its_energy_and_stays_closed(rng):
    """For ten seconds, started at rest from anywhere. The error of the energy is that of the time step, and does not grow: its largest
    values in both halves are alike. Gaps are those between the middle of a step and its end, dt^2 / 8 times the acceleration of an end."""
    bars = [four_bar(rng) for _ in range(16)]
    scene = ModelBuilder()
    for builder, _ in bars:
        scene.add_world(builder)
    model = scene.finalize("cpu", dtype=wp.float64)
    state = model.state()
    state.joint_q.assign(loop_coordinates(model, np.concatenate([q for _, q in bars])))
    eval_fk(model, state.joint_q, state.joint_qd, state)
    solver, start, dt = SolverFeatherstone(model, evaluator="general"), energy(model, state), 1.0 / 480.0
    errors, gaps, speeds = [], [], []
    for i in range(4800):
        solver.step(state, state, None, None, dt)
        if i % 10 == 0:
            errors.append(np.abs(energy(model, state) - start))
            gaps.append(np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max())
            speeds.append(np.abs(state.joint_qd.numpy()).max())
    # what the mechanism can store: its weight times its height
    scale = 9.81 * 2.0 * 1.05 * 0.5
    assert np.max(errors) < 1.0e-3 * scale
    assert np.max(errors[240:]) < 2.0 * np.max(errors[:240]) + 1e-5 * scale
    assert max(gaps) < 0.5 * dt**2 * max(speeds) ** 2 + 2e-6


TIED = """
<mujoco>
  <option timestep="0.0005" integrator="implicitfast"/>
  <default><geom contype="0" conaffinity="0" density="500"/></default>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
      <body name="b" pos="0.4 0 0">
        <joint type="ball"/>
        <geom type="capsule" fromto="0 0 0 0.3 0.1 0.2" size="0.03"/>
      </body>
    </body>
    <body name="c" pos="0.1 0.4 1.1">
      <joint type="hinge" axis="1 0.2 0"/>
      <geom type="capsule" fromto="0 0 0 0.6 -0.3 0.1" size="0.03"/>
    </body>
    <body name="d" pos="0.3 0.8 1.3">
      <freejoint/>
      <geom type="box" size="0.1 0.05 0.04"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="b" body2="c" anchor="0.3 0.1 0.2" solref="0.001 1" solimp="0.9999 0.9999 0.001"/>
    <weld body1="c" body2="d" solref="0.001 1" solimp="0.9999 0.9999 0.001"/>
  </equality>
</mujoco>
"""


def test_connects_and_welds_move_as_in_mujoco(rng):
    """A fall of 0.2 s. Semi-implicit Euler of MuJoCo is wrong by g t dt / 2 = 5e-4 m after the time t."""
    builder = ModelBuilder()
    builder.add_mjcf(TIED)
    model = builder.finalize("cpu", dtype=wp.float64)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    peer = mujoco.MjModel.from_xml_string(TIED)
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    starts = data.xipos[1:].copy()
    for _ in range(400):
        solver.step(state, state, None, None, 0.0005)
        mujoco.mj_step(peer, data)
    mujoco.mj_kinematics(peer, data)
    mujoco.mj_comPos(peer, data)
    names = [peer.body(i).name for i in range(1, peer.nbody)]
    found = {label.split("/")[-1]: i for i, label in enumerate(model.body_label)}
    poses, com = state.body_q.numpy(), model.body_com.numpy()
    places = np.array([wp.transform_point(wp.transform(*poses[found[n]]), wp.vec3(*com[found[n]])) for n in names])
    moved = np.linalg.norm(data.xipos[1:] - starts, axis=1)
    assert moved.max() > 0.05
    np.testing.assert_allclose(places, data.xipos[1:], rtol=0, atol=5e-4)


def test_worlds_with_other_anchors_have_the_bits_that_they_have_alone(rng):
    bars = [four_bar(rng) for _ in range(3)]
    results = []
    for chosen in ([0], [1], [2], [0, 1, 2]):
        scene = ModelBuilder()
        for i in chosen:
            scene.add_world(bars[i][0])
        model = scene.finalize("cpu", dtype=wp.float64)
        state = model.state()
        state.joint_q.assign(loop_coordinates(model, np.concatenate([bars[i][1] for i in chosen])))
        solver = SolverFeatherstone(model, evaluator="general")
        for _ in range(50):
            solver.step(state, state, None, None, 1.0 / 240.0)
        results.append(state.joint_qd.numpy().reshape(len(chosen), -1)[:, :3])
    np.testing.assert_array_equal(np.concatenate(results[:3]), results[3])


def test_an_edited_anchor_moves_the_end_of_the_chain(rng):
    builder, q = four_bar(rng)
    model = builder.finalize("cpu", dtype=wp.float64)
    state = model.state()
    state.joint_q.assign(loop_coordinates(model, q))
    solver = SolverFeatherstone(model, evaluator="general")
    solver.step(state, state)
    frames = model.joint_X_p.numpy()
    frames[3, 2] += 0.01
    model.joint_X_p.assign(frames)
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1e-4
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    for _ in range(60):
        solver.step(state, state)
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 2e-3
    forces = solver.loop_forces().numpy()
    assert np.abs(forces).max() > 0.1


def test_a_graph_reads_edited_anchors(rng):
    """The numbers of the rows stay where they are in memory."""
    builder, q = four_bar(rng)
    results = []
    for captured in (False, True):
        model = builder.finalize("cpu", dtype=wp.float64)
        state = model.state()
        state.joint_q.assign(loop_coordinates(model, q))
        solver = SolverFeatherstone(model, evaluator="general")
        solver.step(state, state)
        with wp.ScopedCapture("cpu") as capture:
            solver.step(state, state)
        frames = model.joint_X_p.numpy()
        frames[3, 2] += 0.001
        model.joint_X_p.assign(frames)
        with warnings.catch_warnings():
            # the notice of a graph that has numbers of an edited array
            warnings.simplefilter("ignore")
            solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
        solver.step(state, state)
        for _ in range(3):
            if captured:
                wp.capture_launch(capture.graph)
            else:
                solver.step(state, state)
        results.append(state.joint_qd.numpy())
    np.testing.assert_array_equal(*results)


ARM = """<mujoco><option timestep=".002"/><worldbody><body pos="0 0 1"><joint axis="0 1 0"/><geom size=".02" mass=".3" pos=".1 0 0"/>
<body pos=".2 0 0"><joint axis="0 1 0"/><geom size=".02" mass=".3" pos=".1 0 0"/><site name="end" pos=".2 0 0"/></body></body>
<site name="there" pos="{} 0 {}"/></worldbody><equality><connect site1="end" site2="there"/></equality></mujoco>"""


@pytest.mark.parametrize("place", [(0.35, 1.0), (0.3, 1.05), (0.42, 1.0), (3.0, 1.0), (0.6, 1.2)])
@pytest.mark.slow
def test_an_open_loop_closes_slowly_and_one_that_cannot_close_stays_finite(place):
    """An arm of 0.4 m starts 2 to 6 cm from the place that its end is connected to, or cannot reach it. The end moves at
    `max_depenetration_speed` at most, so that the arm turns at about v / 0.06 m."""
    builder = ModelBuilder()
    builder.add_mjcf(ARM.format(*place))
    model = builder.finalize("cpu")
    state = model.state()
    q = model.joint_q.numpy()
    q[:2] = 0.3, -0.6
    state.joint_q.assign(q)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    reachable = np.hypot(place[0], place[1] - 1.0) < 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("error" if reachable else "ignore")
        if not reachable:
            with pytest.raises(ValueError, match=r"cannot be closed.*these stay open.*'mujoco/.*by"):
                SolverFeatherstone(model, evaluator="general")
        solver = SolverFeatherstone(model, evaluator="general", unsatisfied_constraints="warn")
    fastest = 0.0
    for _ in range(300):
        solver.step(state, state, None, None, 0.002)
        fastest = max(fastest, np.abs(state.joint_qd.numpy()).max())
    a, b = state.joint_q.numpy()[:2]
    end = 0.2 * np.array([np.cos(a) + np.cos(a + b), -np.sin(a) - np.sin(a + b)]) + [0.0, 1.0]
    assert np.isfinite(fastest) and fastest < (25.0 if reachable else 500.0)
    gap = np.linalg.norm(end - place)
    # the arm is stretched, or nearly so
    assert gap < (1e-4 if reachable else np.hypot(place[0], place[1] - 1.0) - 0.4 + 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [wp.float64, wp.float32])
def test_loop_joints_may_lie_between_articulations_that_may_touch(rng, dtype):
    """Linkages and a free box of one world, far from each other, move as they do alone: with limits, drives, friction and mimic joints."""
    parts, starts = [], []
    for i in range(4):
        builder = ModelBuilder()
        if i == 1:
            body = builder.add_body(mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]), com=rng.normal(size=3) * 0.05)
            builder.add_shape_sphere(body, radius=0.05)
            q = np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0])
        else:
            settings = dict(
                damping=rng.uniform(0.0, 0.1), friction=rng.uniform(0.0, 0.1), armature=rng.uniform(0.0, 0.01)
            )
            settings |= dict(target_ke=rng.uniform(0.0, 5.0), target_kd=0.1)
            builder, q = four_bar(rng)
            builder.add_shape_sphere(builder.joint_child[0], radius=0.02)
            crank, knob = (builder.add_link(mass=0.3, inertia=0.01 * np.eye(3)) for _ in range(2))
            joints = [
                builder.add_joint_revolute(-1, crank, axis=(1.0, 0.0, 0.0)),
                builder.add_joint_revolute(crank, knob, axis=(0.0, 1.0, 0.0)),
            ]
            builder.add_articulation(joints)
            builder.set_joint_mimic(joints[1], joints[0], coeffs=(0.1, -0.7))
            builder.add_shape_sphere(knob, radius=0.02)
            # the coordinate of the loop joint lies between those of both articulations
            q = np.concatenate([q, [0.0], [0.2, 0.1 - 0.7 * 0.2]])
            settings = dict(damping=0.1, friction=0.1, armature=0.01, target_ke=5.0, limit_upper=3.0)
            for name, most in settings.items():
                numbers = getattr(builder, f"joint_{name}")
                numbers[:3], numbers[4] = rng.uniform(0.1 * most, most, 3), rng.uniform(0.1 * most, most)
            builder.joint_target_kd[:3], builder.joint_target_kd[4] = [0.1] * 3, 0.1
            builder.joint_target_mode[:5] = [JointTargetMode.POSITION] * 5
            builder.joint_target_ke[3] = 0.0
        parts.append(builder)
        starts.append(q)
    scene = ModelBuilder()
    for i, builder in enumerate(parts):
        scene.add_builder(builder, xform=(0.0, 20.0 * i, 0.0, 0.0, 0.0, 0.0, 1.0))
    world = ModelBuilder()
    world.replicate(scene, 3)
    together = world.finalize("cpu", dtype=dtype)
    solver, state, control = SolverFeatherstone(together, evaluator="general"), together.state(), together.control()
    assert len(solver._steppers) == 1
    places = np.concatenate([[0], np.cumsum([len(q) for q in starts])])
    q = np.concatenate(starts)
    q[places[1] : places[1] + 3] += [0.0, 20.0, 0.0]
    state.joint_q.assign(np.tile(q, 3))
    targets = rng.uniform(-0.2, 0.2, len(control.joint_target_q))
    targets = np.tile(targets[: len(targets) // 3], 3)
    control.joint_target_q.assign(targets)
    speeds = []
    for i, (builder, q) in enumerate(zip(parts, starts, strict=True)):
        alone = builder.finalize("cpu", dtype=dtype)
        own, its = alone.state(), alone.control()
        own.joint_q.assign(q)
        its.joint_target_q.assign(targets[places[i] : places[i + 1]])
        speeds.append((alone, SolverFeatherstone(alone, evaluator="general"), own, its))
    # rounding of poses 60 m away
    close = 1e-7 if dtype is wp.float64 else 2e-3
    for _ in range(120):
        solver.step(state, state, control, None, 1.0 / 480.0)
        for _, single, own, its in speeds:
            single.step(own, own, its, None, 1.0 / 480.0)
    found = state.joint_q.numpy().reshape(3, -1)
    for i, (_, _, own, _) in enumerate(speeds):
        mine = found[:, places[i] : places[i + 1]].copy()
        if i == 1:
            mine[:, 1] -= 20.0
        assert np.abs(mine - own.joint_q.numpy()).max() < close
        moved = np.abs(own.joint_q.numpy() - starts[i]).max()
        assert moved > 0.01


def test_disabled_loop_joints_have_no_rows(rng):
    """The chain falls as one that was never closed; enabled again, the joint closes the loop again."""
    builder, q = four_bar(rng)
    results = []
    for closed_before in (False, True):
        scene = ModelBuilder()
        scene.add_builder(builder)
        scene.joint_enabled[3] = closed_before
        model = scene.finalize("cpu", dtype=wp.float64)
        state = model.state()
        state.joint_q.assign(loop_coordinates(model, q))
        solver = SolverFeatherstone(model, evaluator="general")
        if closed_before:
            solver.step(state, model.state())
            model.joint_enabled.assign([True, True, True, False])
            solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
        for _ in range(30):
            solver.step(state, state)
        results.append(state.joint_q.numpy())
        assert np.abs(dynamics.joint_positions(model, state).numpy() - q).max() > 1e-3
        assert not solver.loop_forces().numpy().any()
    np.testing.assert_array_equal(*results)
    model.joint_enabled.assign([True] * 4)
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    solver.reset(state, None, loop_coordinates(model, q), np.zeros(4))
    for _ in range(30):
        solver.step(state, state)
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1e-4


def test_two_free_bodies_on_a_loop_joint_are_one_articulation_with_two_trees(rng):
    """As two articulations they are refused, with this cure. Their momenta stay as they are, and the joint stays closed."""
    builders = [ModelBuilder(gravity=0.0) for _ in range(2)]
    masses, places = rng.uniform(0.5, 2.0, 2), 0.2 * rng.normal(size=(2, 3))
    for builder, together in zip(builders, (False, True), strict=True):
        links = [builder.add_link(mass=mass, inertia=0.02 * mass * np.eye(3)) for mass in masses]
        joints = [builder.add_joint_free(link) for link in links]
        for listed in [joints] if together else [joints[:1], joints[1:]]:
            builder.add_articulation(listed)
        ends = {f"{end}_xform": (*place, 0, 0, 0, 1) for end, place in zip(("parent", "child"), places, strict=True)}
        builder.add_joint_ball(*links, label="link", **ends)
        builder.joint_q[7:10] = places[0] - places[1]
    apart = builders[0].finalize("cpu", dtype=wp.float64)
    told = r"'link' \(index 2\) connects the articulations 'articulation_0' \(index 0\) and 'articulation_1'.* builder.merge_articulations"
    for refusing in (SolverFeatherstone, lambda model: dynamics.constraint_jacobian(model, model.state())):
        with pytest.raises(ValueError, match=told):
            refusing(apart)
    model = builders[1].finalize("cpu", dtype=wp.float64)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    state.joint_qd.assign([*rng.normal(size=12), 0.0, 0.0, 0.0])
    momenta = []
    for _ in range(200):
        # the first step makes the velocities agree, with impulses that are opposite
        solver.step(state, state, None, None, 1.0e-3)
        v, w = np.split(state.body_qd.numpy(), 2, axis=1)
        p = masses[:, None] * v
        turn = np.cross(state.body_q.numpy()[:, :3], p) + 0.02 * masses[:, None] * w
        momenta.append([*p.sum(axis=0), *turn.sum(axis=0)])
    np.testing.assert_allclose(momenta, momenta[:1] * 200, rtol=0, atol=1e-4 * np.abs(momenta[0]).max())
    assert np.abs(state.joint_q.numpy()[:3]).max() > 0.01
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1e-5


def test_a_loop_joint_without_rows_has_no_effect():
    results = []
    for with_joint in (False, True):
        chain = ModelBuilder()
        link = chain.add_link(mass=1.0, com=(0.1, 0, 0), inertia=0.01 * np.eye(3))
        chain.add_articulation([chain.add_joint_revolute(-1, link, axis=(0, 1, 0))])
        if with_joint:
            chain.add_joint_free(link, label="loose")
        model = chain.finalize("cpu", dtype=wp.float64)
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        for _ in range(10):
            solver.step(state, state)
        assert solver.loop_forces().shape == (1, 0)
        results.append(state.joint_q.numpy()[:1])
    np.testing.assert_array_equal(*results)


@pytest.mark.slow
def test_both_evaluators_give_the_same_bits(rng):
    bars = [four_bar(rng) for _ in range(3)]
    results = []
    for evaluator in ("general", "specialised"):
        scene = ModelBuilder()
        for builder, _ in bars:
            scene.add_world(builder)
        model = scene.finalize("cpu", dtype=wp.float64)
        state = model.state()
        state.joint_q.assign(loop_coordinates(model, np.concatenate([q for _, q in bars])))
        solver = SolverFeatherstone(model, evaluator=evaluator)
        for _ in range(100):
            solver.step(state, state)
        results.append(np.hstack([state.joint_q.numpy(), state.joint_qd.numpy(), solver.loop_forces().numpy().ravel()]))
    np.testing.assert_array_equal(*results)


@pytest.mark.slow
def test_two_linkages_that_touch_stay_closed(rng):
    """One lies on the other. Several worlds in lanes and single worlds are swept by other code, and have the same velocities and forces."""
    scene, start = ModelBuilder(), []
    for _ in range(8):
        pair = ModelBuilder()
        for x in (0.0, 0.3):
            builder, q = four_bar(rng)
            for body in range(3):
                builder.add_shape_capsule(body, xform=(0.1, 0, 0, 0, 0.7071, 0, 0.7071), radius=0.03, half_height=0.06)
            pair.add_builder(builder, xform=(x, 0, 0, 0, 0, 0, 1))
            start.append(q)
        scene.add_world(pair)
    model = scene.finalize("cpu", dtype=wp.float64)
    assert model.articulation_count == 16
    state = model.state()
    state.joint_q.assign(loop_coordinates(model, np.concatenate(start)))
    many, single = (SolverFeatherstone(model, width=w, evaluator="general", tolerance=0.0) for w in (8, 1))
    touched, apart = 0, []
    for k in range(120):
        before = state.joint_q.numpy(), state.joint_qd.numpy()
        many.step(state, state)
        touching = np.abs(many.contact_forces().numpy()).max() > 0.0
        if not touching and k % 8:
            continue
        touched += touching
        found = []
        for solver in (many, single):
            again = model.state()
            solver.reset(again, None, *before)
            out = model.state()
            solver.step(again, out)
            found.append((out.joint_qd.numpy(), solver.loop_forces().numpy()))
        gap = np.abs(dynamics.constraint_jacobian(model, out)[1].numpy()).max()
        speed = np.abs(found[0][0]).max()
        assert gap < 0.5 * (speed / 240.0) ** 2 + 1e-4
        apart.append(max(np.abs(a - b).max() / (1.0 + np.abs(b).max()) for a, b in zip(*found, strict=True)))
    assert touched
    # at impacts, rounding decides where extrapolation begins anew, and sweeps end before they converge
    assert np.median(apart) < 1e-8 and np.quantile(apart, 0.75) < 1e-5 and np.max(apart) < 0.5


@pytest.mark.parametrize(("edit", "told"), [(dict(stiffness=1.0), "stiffness"), (dict(friction=0.5), "friction")])
def test_loop_joints_with_three_free_rotations_have_no_forces_along_them(rng, edit, told):
    builder, _ = four_bar(rng)
    free = dict(limit_lower=-np.inf, limit_upper=np.inf)
    axes = [JointDofConfig(axis=axis, **free, **edit) for axis in np.eye(3)]
    builder.add_joint_d6(-1, builder.body_count - 1, angular_axes=axes, label="extra")
    with pytest.raises(ValueError, match=rf"'extra'.*{told}"):
        SolverFeatherstone(builder.finalize("cpu", dtype=wp.float64))


LEG = """
<body name="thigh{i}" pos="{x} {y} 0">
  <joint name="hip{i}" axis="0 1 0" damping="0.1" armature="0.01"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" mass="0.5"/>
  <body name="calf{i}" pos="0 0 -0.2">
    <joint name="knee{i}" axis="0 1 0" damping="0.1" armature="0.01"/>
    <geom type="capsule" fromto="0.03 0 0 -0.05 0 -0.2" size="0.015" mass="0.2"/>
    <geom type="sphere" pos="-0.05 0 -0.2" size="0.02" mass="0.05" contype="1" conaffinity="1"/>
  </body>
</body>
<body name="crank{i}" pos="{x} {y} 0">
  <joint name="motor{i}" axis="0 1 0" damping="0.1" armature="0.01"/>
  <geom type="capsule" fromto="0 0 0 0.05 0 0" size="0.01" mass="0.1"/>
  <body name="rod{i}" pos="0.05 0 0">
    <joint name="pin{i}" axis="0 1 0" damping="0.01" armature="0.001"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.01" mass="0.1"/>
  </body>
</body>
"""
LEGS = [(x, y) for x in (0.2, -0.2) for y in (0.1, -0.1)]
QUADRUPED = f"""
<mujoco>
  <option timestep="0.002"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom type="plane" size="10 10 1" contype="1" conaffinity="1"/>
    <body name="trunk" pos="0 0 0.42">
      <freejoint/>
      <geom type="box" size="0.25 0.1 0.05" mass="6"/>
      {"".join(LEG.format(i=i, x=x, y=y) for i, (x, y) in enumerate(LEGS))}
    </body>
  </worldbody>
  <equality>
    {"".join(f'<connect body1="rod{i}" body2="calf{i}" anchor="0 0 -0.2"/>' for i in range(4))}
  </equality>
  <actuator>
    {"".join(f'<position joint="{j}{i}" kp="200" kv="4"/>' for i in range(4) for j in ("hip", "motor"))}
  </actuator>
</mujoco>
"""


def test_a_quadruped_with_loops_in_its_legs_stands_as_in_mujoco():
    """Parallelograms move the calves. Contacts and loops of MuJoCo give way by some millimetres, and feet creep while the robot settles."""
    builder = ModelBuilder()
    builder.add_mjcf(QUADRUPED)
    model = builder.finalize("cpu", dtype=wp.float64)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    peer = mujoco.MjModel.from_xml_string(QUADRUPED)
    data = mujoco.MjData(peer)
    for _ in range(500):
        solver.step(state, state, None, None, 0.002)
        mujoco.mj_step(peer, data)
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1e-5
    assert np.abs(data.qvel).max() < 0.05 and np.abs(state.joint_qd.numpy()).max() < 0.05
    assert (np.abs(state.joint_q.numpy()[:3] - data.qpos[:3]) < [0.02, 0.005, 0.005]).all()
    weight = 9.81 * float(peer.body_mass.sum())
    np.testing.assert_allclose(solver.contact_forces().numpy().sum(axis=0), [0, 0, weight], rtol=0, atol=0.02 * weight)


@pytest.mark.parametrize("dtype", [pytest.param(wp.float32, marks=pytest.mark.slow), wp.float64])
def test_a_connection_that_holds_anyway_changes_nothing(rng, dtype):
    """It ties a link to its parent at a point of the axis of its hinge: no joint moves its rows, which are rounding errors."""
    axis = rng.normal(size=3)
    place = 0.1 * axis / np.linalg.norm(axis)
    text = """<mujoco><worldbody><body name="d" pos="0 0 1"><joint axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
        <body name="c" pos=".3 0 0"><joint axis="{} {} {}"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body></body>
        </worldbody>{}</mujoco>"""
    tie = '<equality><connect body1="c" body2="d" anchor="{} {} {}"/></equality>'.format(*place)
    found = []
    for equality in ("", tie):
        builder = ModelBuilder()
        builder.add_mjcf(text.format(*axis, equality))
        model = builder.finalize("cpu", dtype=dtype)
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        for _ in range(240):
            solver.step(state, state, None, None, 1 / 480)
        found.append(state.joint_q.numpy()[:2])
    assert abs(found[0]).min() > 0.01
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-4 if dtype is wp.float32 else 1e-9)
