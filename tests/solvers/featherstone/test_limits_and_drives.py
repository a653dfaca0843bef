"""Limits of position, velocity and effort, dry friction, joints that follow others, and distances that are kept."""

import numpy as np
import pytest
import warp as wp

from newton_like import JointDofConfig, JointTargetMode, JointType, ModelBuilder, eval_fk
from newton_like.solvers import SolverFeatherstone
from tests.support.mechanisms import quadruped, random_start
from tests.support.paths import ROBOTS
from tests.support.random_trees import random_inertia, random_transform, random_tree, random_unit
from tests.support.simulate import GRAVITY, Simulation, worlds_of

PANDA = ROBOTS / "panda_description/urdf/panda.urdf"


def slider(mass: float = 1.0, speed: float = 0.0, gravity: float = 0.0, q: float = 0.0, **settings) -> ModelBuilder:
    """A mass on a vertical slide."""
    builder = ModelBuilder(gravity=gravity)
    link = builder.add_link(mass=mass, inertia=mass * np.eye(3))
    axis = JointDofConfig(axis=(0, 0, 1), **settings)
    builder.add_articulation([builder.add_joint(JointType.PRISMATIC, -1, link, linear_axes=[axis])])
    builder.joint_q[:], builder.joint_qd[:] = [q], [speed]
    return builder


# ---------------------------------------------------------------------------------------------------- position limits


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_position_limits_stop_without_bounce_or_penetration(rng, dtype):
    speeds = np.concatenate([10.0 ** rng.uniform(-1.0, 1.5, 8), -(10.0 ** rng.uniform(-1.0, 1.5, 8))])
    scene = worlds_of(slider(10.0 ** rng.uniform(-1, 1), v, limit_lower=-0.3, limit_upper=0.5) for v in speeds)
    simulation = Simulation(scene, dtype=dtype)
    seen = simulation.run(6.0, lambda: np.stack([simulation.q[:, 0], simulation.qd[:, 0]]))
    q, qd = seen[:, 0], seen[:, 1]
    # A limit may be reached within a step but not passed; half a drift at the old speed is all that can go beyond.
    beyond = np.maximum(q - 0.5, -0.3 - q).max(axis=0)
    assert (beyond < 0.51 * simulation.dt * np.abs(speeds) + 1e-6).all()
    # No restitution, but the overshoot of half a drift, v dt / 2, is pushed out at 1 / (0.2 s) of it: 1 % of the speed of impact at
    # dt = 1/240 s.
    back = np.max(-np.sign(speeds) * qd, axis=0)
    print("turned back:", (back / np.abs(speeds)).max())
    assert (back < 0.012 * np.abs(speeds) + 1e-6).all()
    # All energy is lost in few impacts.
    assert (np.abs(qd[-1]) < 0.05 * np.abs(speeds)).all()


def test_limits_carry_loads(rng):
    masses = rng.uniform(0.1, 20.0, 8)
    simulation = Simulation(
        worlds_of(slider(m, gravity=-GRAVITY, q=0.1, limit_lower=-0.2) for m in masses), dtype=wp.float64
    )
    simulation.run(4.0)
    # A spring-damper of natural frequency 1 / 1 ms per unit of mass: the same sinking g (1 ms)^2 for all, reached as exp(-t / 0.2 s).
    np.testing.assert_allclose(-0.2 - simulation.q[:, 0], GRAVITY * 0.001**2, rtol=1e-6)


def test_trees_stay_within_their_limits(rng):
    # Chains with limits on every axis, thrown about by gravity and random forces.
    types = (JointType.REVOLUTE, JointType.PRISMATIC, JointType.D6)
    scene = worlds_of(random_tree(rng, joints=6, types=types, limits=True, size=0.2) for _ in range(16))
    simulation = Simulation(scene)
    model = simulation.model
    low, high = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    simulation.set_state(0.9 * rng.uniform(low, high), rng.normal(size=model.joint_dof_count))
    simulation.control.joint_f.assign(2.0 * rng.normal(size=model.joint_dof_count))

    def state():
        return np.stack([simulation.state.joint_q.numpy(), simulation.state.joint_qd.numpy()])

    seen = simulation.run(3.0, state)
    beyond = np.maximum(seen[:, 0] - high, low - seen[:, 0])
    # A drift at the fastest speed, and what a limit gives way that carries a chain far heavier than the inertia about its own axis (its
    # softness is per unit of that), or that eight sweeps leave where an impact hits several limits: mostly below 0.02, rarely 0.06.
    fastest = np.abs(seen[:, 1]).max(axis=0)
    print("beyond limits:", (beyond.max(axis=0) - simulation.dt * fastest).max(), beyond.max())
    assert (beyond.max(axis=0) < simulation.dt * fastest + 1e-1).all()
    assert np.quantile(beyond.max(axis=0) - simulation.dt * fastest, 0.98) < 2e-2
    assert np.count_nonzero(beyond.max(axis=0) > -1e-3) > 16  # limits were reached


# ---------------------------------------------------------------------------------------------------- velocity limits


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_velocity_limits_cap_what_forces_do(rng, sign):
    limits = rng.uniform(0.2, 3.0, 8)
    simulation = Simulation(
        worlds_of(slider(gravity=sign * GRAVITY, velocity_limit=v) for v in limits), dtype=wp.float64
    )
    seen = simulation.run(1.0, lambda: simulation.qd[:, 0])
    times = simulation.dt * np.arange(1, len(seen) + 1)[:, None]
    # Free fall up to the limit, then the limit: exact, but that a limit counts as broken from 1.0001 times itself on.
    np.testing.assert_allclose(seen, sign * np.minimum(GRAVITY * times, limits), rtol=1.1e-4)


def test_a_state_beyond_its_velocity_limit_is_slowed_at_once():
    simulation = Simulation(worlds_of(slider(speed=v, velocity_limit=2.0) for v in (5.0, -5.0, 1.0)), dtype=wp.float64)
    simulation.run(simulation.dt)
    np.testing.assert_allclose(simulation.qd[:, 0], [2.0, -2.0, 1.0], rtol=1e-9)


# ---------------------------------------------------------------------------------------------------- drives


def test_robots_that_are_driven_hard_stay_within_their_velocity_limits(rng):
    """In every joint and every step, by large and small excesses. In free flight the momentum stays."""
    worlds, steps = 8, 120
    builder = quadruped(0.0, 0.0)
    builder.joint_velocity_limit[6:] = rng.uniform(1.0, 8.0, 12).tolist()
    model = worlds_of([builder] * worlds).finalize("cpu", dtype=wp.float64)
    model.set_gravity((0.0, 0.0, 0.0))
    solver, state, control = SolverFeatherstone(model, evaluator="general"), model.state(), model.control()
    q, qd = random_start(model, range(worlds), height=(50.0, 60.0))
    state.joint_q, state.joint_qd = q.ravel(), qd.ravel()
    limit = np.tile(builder.joint_velocity_limit[6:], worlds)
    held = slice(6, None)

    mass = model.body_mass.numpy().reshape(worlds, -1, 1)

    def momentum():
        return (mass * state.body_qd.numpy().reshape(worlds, -1, 6)[:, :, :3]).sum(axis=1)

    eval_fk(model, state.joint_q, state.joint_qd, state)
    start, at_limits = momentum(), 0
    for i in range(steps):
        if i % 10 == 0:
            force = np.zeros((worlds, 18))
            force[:, held] = rng.uniform(-20.0, 20.0, (worlds, 12))
            control.joint_f = force.ravel()
        solver.step(state, state, control)
        speed = np.abs(state.joint_qd.numpy().reshape(worlds, -1)[:, held]).ravel()
        assert (speed <= limit * (1.0 + 1e-12)).all()
        at_limits += np.count_nonzero(speed > 0.999 * limit)
    # but for the error of the time step
    assert np.abs(momentum() - start).max() < 0.01 * np.abs(start).max()
    assert at_limits > steps * worlds


def test_a_drive_lifts_what_its_effort_limit_can_lift(rng):
    masses = rng.uniform(0.2, 5.0, 8)
    factor = np.array([0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0])
    builders = [
        slider(m, gravity=-GRAVITY, target_ke=1e4, target_kd=100.0, target_q=1.0, effort_limit=f * m * GRAVITY)
        for m, f in zip(masses, factor, strict=True)
    ]
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    simulation.run(0.25)
    # Saturated: the difference of limit and weight accelerates it (2 m g for 0.25 s is 0.3 m, still below the target). Drift, kick,
    # drift is exact for constant forces.
    acceleration = (factor - 1.0) * GRAVITY
    np.testing.assert_allclose(simulation.qd[:, 0], 0.25 * acceleration, atol=1e-9)
    np.testing.assert_allclose(simulation.q[:, 0], 0.5 * 0.25**2 * acceleration, atol=1e-9)


def test_a_saturated_drive_is_released_at_its_target(rng):
    masses, factor = rng.uniform(0.2, 5.0, 8), rng.uniform(1.2, 3.0, 8)
    builders = [
        slider(m, gravity=-GRAVITY, target_ke=1e4, target_kd=600.0, target_q=1.0, effort_limit=f * m * GRAVITY)
        for m, f in zip(masses, factor, strict=True)
    ]
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    simulation.run(20.0)
    # Rest at the sag of weight over gain. Gains critical for a mass of 9 kg, so all settle; arriving saturated costs some swings.
    np.testing.assert_allclose(simulation.q[:, 0], 1.0 - masses * GRAVITY / 1e4, atol=1e-6)


def test_effort_drives_are_clipped_and_joint_forces_are_not():
    builders = [
        slider(effort_limit=3.0, actuator_mode=JointTargetMode.EFFORT),
        slider(effort_limit=3.0, actuator_mode=JointTargetMode.NONE),
        slider(effort_limit=30.0, actuator_mode=JointTargetMode.EFFORT),
    ]
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    simulation.control.joint_f.assign([10.0, 10.0, 10.0])
    simulation.run(1.0)
    np.testing.assert_allclose(simulation.qd[:, 0], [3.0, 10.0, 10.0], rtol=1e-9)  # rounding


def test_velocity_drives_reach_their_velocity(rng):
    targets = rng.uniform(-3.0, 3.0, 8)
    drive = {"target_kd": 50.0, "actuator_mode": JointTargetMode.VELOCITY}
    simulation = Simulation(worlds_of(slider(target_qd=v, **drive) for v in targets), dtype=wp.float64)
    simulation.run(1.0)
    np.testing.assert_allclose(simulation.qd[:, 0], targets, rtol=1e-9)  # exp(-50) is left


# ---------------------------------------------------------------------------------------------------- dry friction


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_dry_friction_holds_below_its_threshold_and_brakes_above(rng, dtype):
    friction = rng.uniform(0.5, 5.0, 8)
    factor = np.array([0.3, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 3.0]) * np.where(rng.random(8) < 0.5, -1.0, 1.0)
    simulation = Simulation(worlds_of(slider(friction=f) for f in friction), dtype=dtype)
    simulation.control.joint_f.assign(factor * friction)
    simulation.run(1.0)
    expected = np.sign(factor) * np.maximum(np.abs(factor) - 1.0, 0.0) * friction
    # Exact to rounding: 240 of them, of forces of 15 N for a second on 1 kg.
    np.testing.assert_allclose(simulation.qd[:, 0], expected, atol=2e-4 if dtype == wp.float32 else 1e-9)
    assert np.abs(simulation.q[np.abs(factor) < 1.0]).max() < (1e-6 if dtype == wp.float32 else 1e-12)


def test_dry_friction_takes_the_energy_of_motion(rng):
    friction, speed = rng.uniform(0.5, 5.0, 8), rng.uniform(-2.0, 2.0, 8)
    simulation = Simulation(worlds_of(slider(friction=f, speed=v) for f, v in zip(friction, speed, strict=True)))
    simulation.run(5.0)
    # v^2 / (2 f); the last step stops within itself, which is v dt / 2 at a speed of f dt.
    np.testing.assert_allclose(
        simulation.q[:, 0], np.sign(speed) * speed**2 / (2.0 * friction), atol=5.0 * simulation.dt**2 + 1e-5
    )
    assert np.abs(simulation.qd).max() < 1e-6


# ---------------------------------------------------------------------------------------------------- couplings


def test_a_follower_follows_and_shares_its_load(rng):
    # Two masses on slides, q2 = c0 + c1 q1: they fall as one with the inertia m1 + c1^2 m2 under m1 g + c1 m2 g.
    ratios, offsets, masses = rng.uniform(-2.0, 2.0, 8), rng.uniform(-0.5, 0.5, 8), rng.uniform(0.5, 2.0, (8, 2))
    builders = []
    for c1, c0, pair in zip(ratios, offsets, masses, strict=True):
        builder = ModelBuilder()
        links = [builder.add_link(mass=m, inertia=np.eye(3)) for m in pair]
        joints = [builder.add_joint_fixed(-1, builder.add_link(mass=1.0, inertia=np.eye(3)))]
        joints += [builder.add_joint_prismatic(2, link, axis=(0, 0, 1)) for link in links]
        builder.add_articulation(joints)
        builder.set_joint_mimic(joints[2], joints[1], coeffs=(c0, c1))
        builder.joint_q[:] = [0.0, c0]
        builders.append(builder)
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    simulation.run(1.0)
    m1, m2 = masses.T
    acceleration = -GRAVITY * (m1 + ratios * m2) / (m1 + ratios**2 * m2)
    # A single coupling: a row solved exactly in its first sweep.
    np.testing.assert_allclose(simulation.qd[:, 0], acceleration, rtol=1e-6)
    np.testing.assert_allclose(simulation.q[:, 1], offsets + ratios * simulation.q[:, 0], atol=1e-9)


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
@pytest.mark.skipif(not PANDA.exists(), reason=f"{PANDA} is not there")
def test_the_fingers_of_a_panda_move_together(rng):
    builder = ModelBuilder()
    builder.default_joint_cfg.target_ke, builder.default_joint_cfg.target_kd = 1000.0, 50.0
    builder.add_urdf(PANDA, hide_visuals=True)
    follower = next(j for j, reference in enumerate(builder.joint_mimic_joint) if reference >= 0)
    reference = builder.joint_mimic_joint[follower]
    simulation = Simulation(builder, dtype=wp.float64)
    at = [builder.joint_q_start[j] for j in (reference, follower)]
    # Only the leading finger is driven, the whole arm swings.
    targets = simulation.control.joint_target_q.numpy()
    gains = simulation.model.joint_target_ke.numpy()
    gains[builder.joint_qd_start[follower]] = 0.0
    simulation.model.joint_target_ke.assign(gains)
    simulation.solver.notify_model_changed()
    targets[: at[0]] += 0.3 * rng.normal(size=at[0])
    targets[at[0]] = 0.03
    simulation.control.joint_target_q.assign(targets)
    fingers = simulation.run(2.0, lambda: simulation.q[0, at])
    # The follower lags by the residual of coupled sweeps: a tenth of a millimetre, of 30.
    assert np.abs(fingers[:, 0] - fingers[:, 1]).max() < 1e-4
    assert abs(fingers[-1, 1] - 0.03) < 1e-3


def tethered(rng, low: float, high: float, distance: float, speed: float, gravity: float = 0.0) -> ModelBuilder:
    """A body on a tether between random anchors, flying in a random direction."""
    builder = ModelBuilder(gravity=gravity)
    child = random_transform(rng, 0.1)
    link = builder.add_link(mass=1.0, com=0.05 * rng.normal(size=3), inertia=random_inertia(rng, 1.0))
    joint = builder.add_joint_distance(
        -1, link, min_distance=low, max_distance=high, parent_xform=random_transform(rng, 0.3), child_xform=child
    )
    builder.add_articulation([joint])
    builder.joint_q[:3] = (distance * random_unit(rng)).tolist()
    builder.joint_qd[:] = [*(speed * random_unit(rng)), *rng.normal(size=3)]
    return builder


@pytest.mark.parametrize("dtype", [pytest.param(wp.float32, marks=pytest.mark.slow), wp.float64])
def test_distances_stay_between_their_bounds(rng, dtype):
    builders = [tethered(rng, 0.3, 0.8, rng.uniform(0.3, 0.8), rng.uniform(0, 3), g) for g in [0, -GRAVITY] * 8]
    builders += [tethered(rng, -1.0, 0.5, 0.5, 2.0, -GRAVITY), tethered(rng, 0.5, -1.0, 0.5, 2.0, -GRAVITY)]
    low, high = np.array([0.3] * 16 + [0.0, 0.5]), np.array([0.8] * 17 + [np.inf])
    high[16] = 0.5
    simulation = Simulation(worlds_of(builders), dtype=dtype)

    def state():
        return np.stack([np.linalg.norm(simulation.q[:, :3], axis=1), np.linalg.norm(simulation.qd, axis=1)])

    seen = simulation.run(4.0, state)
    length, speed = seen[:, 0], seen[:, 1].max(axis=0)
    # Half a drift of the fastest anchor (which is within 0.3 m of the centre of mass), and its curvature over a step.
    slack = 1.5 * speed * simulation.dt
    assert (length.max(axis=0) < high + slack).all()
    assert (length.min(axis=0) > low - slack).all()
    # Bounds were reached, and the body without an upper bound moved away.
    assert np.count_nonzero(length.max(axis=0) > high - 1e-2) > 4
    assert length[-1, 17] > 5.0


def test_a_hanging_weight_rests_at_the_longest_distance(rng):
    builders = [tethered(rng, -1.0, r, 0.5 * r, 0.0, -GRAVITY) for r in rng.uniform(0.3, 1.0, 8)]
    longest = np.array([b.joint_max_distance[0] for b in builders])
    for builder in builders:
        builder.joint_qd[:] = [0.0] * 6
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    length = simulation.run(3.0, lambda: np.linalg.norm(simulation.q[:, :3], axis=1))
    # It swings, with an anchor that whips round at up to 8 m/s. What a step moves beyond the linear row is counted in, but for what the
    # impulses of the same step change of it: (8 m/s dt)^2 / r of 2 mm, now and then.
    assert (length[360:].max(axis=0) - longest < 8e-3).all()
    assert np.median(length[360:].max(axis=0) - longest) < 1e-3


@pytest.mark.parametrize("dtype", [pytest.param(wp.float32, marks=pytest.mark.slow), wp.float64])
def test_distances_that_start_outside_their_bounds_return_at_a_bounded_speed(rng, dtype):
    """A mass point at rest: the speed is a fifth of the gap a step, at most that at which shapes are separated."""
    gaps = np.concatenate([10.0 ** rng.uniform(-4.0, -2.0, 8), rng.uniform(0.02, 1.0, 8), [1.0, 1.0]])
    far = rng.permutation(len(gaps)) % 2 == 0
    bound = rng.uniform(1.1, 2.0)
    mass, limit = 10.0 ** rng.uniform(-1.0, 1.0, len(gaps)), rng.uniform(2.1, 3.0, len(gaps))
    start = np.where(far, limit + gaps, limit - gaps)
    builders = []
    for m, x, r, longest in zip(mass, start, limit, far, strict=True):
        builder = ModelBuilder(gravity=0.0)
        link = builder.add_link(mass=m, inertia=random_inertia(rng, m))
        ends = dict(min_distance=-1.0, max_distance=r) if longest else dict(min_distance=r, max_distance=-1.0)
        builder.add_articulation([builder.add_joint_distance(-1, link, **ends)])
        builder.joint_q[:3] = (x * random_unit(rng)).tolist()
        builders.append(builder)
    simulation = Simulation(worlds_of(builders), dtype=dtype, max_depenetration_speed=bound)
    seen = simulation.run(
        1.0, lambda: np.stack([np.linalg.norm(part[:, :3], axis=1) for part in (simulation.q, simulation.qd)])
    )
    speed = np.minimum(0.2 * gaps / simulation.dt, bound)
    # velocities change at the middle of a step
    moved = speed * simulation.dt * (np.arange(len(seen)) + 0.5)[:, None]
    length = np.where(far, start - moved, start + moved)
    np.testing.assert_allclose(seen[:, 0], length, atol=1e-4 if dtype is wp.float32 else 1e-9)
    assert (np.where(far, limit - seen[-1, 0], seen[-1, 0] - limit) > 0.0).all()
    kinetic = 0.5 * mass * seen[:, 1] ** 2
    assert (kinetic <= 0.5 * mass * bound**2 * (1.0 + 1e-5)).all()
    np.testing.assert_allclose(seen[-1, 1], speed, rtol=1e-4, atol=5e-5 if dtype is wp.float32 else 0.0)


def test_a_tethered_body_circles_at_the_longest_distance(rng):
    # A mass point flies into the end of its tether: the radial speed is lost, the angular momentum stays, and so does the distance.
    radius, speed = rng.uniform(0.3, 1.0, 8), rng.uniform(0.5, 4.0, 8)
    builders = []
    for r, v in zip(radius, speed, strict=True):
        builder = ModelBuilder(gravity=0.0)
        link = builder.add_link(mass=1.0, inertia=random_inertia(rng, 1.0))
        builder.add_articulation([builder.add_joint_distance(-1, link, min_distance=-1.0, max_distance=r)])
        x = random_unit(rng)
        builder.joint_q[:3] = (0.9 * r * x).tolist()
        builder.joint_qd[:3] = (v * np.cross(x, random_unit(rng)) + 0.1 * v * x).tolist()
        builders.append(builder)
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)

    def momentum():
        return np.cross(simulation.q[:, :3], simulation.qd[:, :3])

    simulation.run(2.0)
    start, turned = momentum(), speed * simulation.dt / radius
    seen = simulation.run(4.0, lambda: np.linalg.norm(simulation.q[:, :3], axis=1))
    # Between two middles of steps on the circle a body is nearer by 1 - cos(half a step's turn), and no farther.
    assert (seen < radius * (1.0 + 1e-6)).all()
    assert (seen > radius * (1.0 - turned**2)).all()
    # Central impulses at the middle, drifts along straight lines: both keep it.
    np.testing.assert_allclose(momentum(), start, rtol=1e-9, atol=1e-12)
    # So the speed stays as well.
    tangential = np.linalg.norm(start, axis=1) / radius
    np.testing.assert_allclose(np.linalg.norm(simulation.qd[:, :3], axis=1), tangential, rtol=1e-3)
