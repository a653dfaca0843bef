"""Motions whose solution is known in closed form: pendulums, projectiles, tops, sliding, bouncing and rolling bodies."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation
from scipy.special import ellipk

from newton_like import JointDofConfig, JointType, ModelBuilder, ShapeConfig
from tests.support.random_trees import random_inertia, random_transform, random_unit
from tests.support.simulate import GRAVITY, Simulation, worlds_of

BALL_RADIUS = 0.1


def crossing_times(values: np.ndarray, dt: float) -> np.ndarray:
    """When values, sampled after every step, change sign, by linear interpolation: good to (dt omega)^3 dt."""
    i = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    return dt * (i + 1 + values[i] / (values[i] - values[i + 1]))


def on_plane(mu: float, *, tilt=0.0, thrown=(0, 0, 0, 0, 0, 0), lift=0.0, half=None, **material) -> ModelBuilder:
    """A ball, or a box with half sides `half`, lying on a plane turned about y by `tilt` [rad]; x points uphill for tilt < 0."""
    builder = ModelBuilder()
    R = Rotation.from_rotvec([0.0, tilt, 0.0])
    cfg = ShapeConfig(mu=mu, **material)
    height = BALL_RADIUS if half is None else half[2]
    body = builder.add_body(xform=(*R.apply([0.0, 0.0, height + lift]), *R.as_quat()))
    if half is None:
        builder.add_shape_sphere(body, radius=BALL_RADIUS, cfg=cfg)
    else:
        builder.add_shape_box(body, hx=half[0], hy=half[1], hz=half[2], cfg=cfg)
    builder.add_shape_plane(xform=(0, 0, 0, *R.as_quat()), width=0.0, length=0.0, cfg=cfg)
    builder.joint_qd[:] = [float(x) for x in np.concatenate([R.apply(thrown[:3]), R.apply(thrown[3:])])]
    return builder


# ---------------------------------------------------------------------------------------------------- passive motion


def test_angular_damping_slows_the_spin_of_floating_bodies_alone(rng):
    """A ball keeps its axis and its linear momentum; its spin is w0 exp(-c t). A hinge keeps its speed."""
    rate, spin, push = rng.uniform(0.5, 3.0), rng.normal(size=3), rng.normal(size=3)
    builder = ModelBuilder(gravity=0.0)
    ball = builder.add_body(mass=2.0, inertia=0.3 * np.eye(3), com=rng.normal(size=3))
    wheel = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, wheel)])
    builder.joint_qd[:] = [*push.tolist(), *spin.tolist(), 2.0]
    simulation = Simulation(worlds_of([builder]), 1e-2, dtype=wp.float64, angular_damping=rate)
    simulation.run(1.0)
    expected = [*push, *(spin * np.exp(-rate)), 2.0]
    np.testing.assert_allclose(simulation.state.joint_qd.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(simulation.state.body_qd.numpy()[ball], expected[:6], rtol=1e-12)


def test_pendulums_swing_with_the_period_of_the_elliptic_integral(rng):
    amplitudes = np.array([0.01, 0.3, 1.0, 2.0, 3.0])
    builders, natural = [], []
    for amplitude in amplitudes:
        mass, length, inertia = rng.uniform(0.5, 2.0), rng.uniform(0.3, 1.0), rng.uniform(0.01, 0.05)
        builder = ModelBuilder()
        link = builder.add_link(
            mass=mass, com=(0, 0, -length), inertia=np.diag([0.03, inertia, 0.03]) + 0.02 * np.eye(3)
        )
        X = random_transform(rng)
        X[3:] = Rotation.from_rotvec([0, 0, rng.uniform(-3, 3)]).as_quat()
        builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0), parent_xform=X)])
        builder.joint_q[:] = [amplitude]
        builders.append(builder)
        natural.append(np.sqrt(mass * GRAVITY * length / (inertia + 0.02 + mass * length**2)))
    simulation = Simulation(worlds_of(builders), 1e-3, dtype=wp.float64)
    angles = simulation.run(10.0, lambda: simulation.q[:, 0])
    expected = 4.0 * ellipk(np.sin(amplitudes / 2.0) ** 2) / np.array(natural)
    for w, period in enumerate(expected):
        times = crossing_times(angles[:, w], simulation.dt)
        assert len(times) >= 3
        measured = 2.0 * (times[-1] - times[0]) / (len(times) - 1)
        # The phase error of a symplectic step of second order is (omega dt)^2 / 24, omega < 6 /s: 2e-6. Near the top (3 rad) a period
        # depends on energy logarithmically, which multiplies it by some ten.
        assert abs(measured / period - 1.0) < 2e-5
        # As high at the last swing as at the first.
        assert abs(np.abs(angles[:2000, w]).max() - np.abs(angles[-5000:, w]).max()) < 1e-4


def test_the_centre_of_mass_of_a_projectile_follows_the_parabola_exactly(rng):
    builders = []
    for _ in range(8):
        builder = ModelBuilder()
        mass = rng.uniform(0.5, 2.0)
        body = builder.add_body(
            mass=mass, com=0.2 * rng.normal(size=3), inertia=random_inertia(rng, mass), xform=random_transform(rng)
        )
        assert body == 0
        builder.joint_qd[:] = (3.0 * rng.normal(size=6)).tolist()
        builders.append(builder)
    simulation = Simulation(worlds_of(builders), 1.0 / 60.0, dtype=wp.float64)
    coms = simulation.model.body_com.numpy()

    def centres():
        X = simulation.poses[:, 0]
        return X[:, :3] + Rotation.from_quat(X[:, 3:]).apply(coms)

    simulation.run(simulation.dt)  # poses agree with coordinates from the first step on
    start, velocity = centres(), simulation.velocities[:, 0, :3]
    seconds = 2.0
    simulation.run(seconds)
    g = np.array([0, 0, -GRAVITY])
    # Drift, kick, drift is exact for a constant force: a few hundred roundings of ten metres.
    np.testing.assert_allclose(centres(), start + seconds * velocity + 0.5 * seconds**2 * g, atol=1e-11)
    np.testing.assert_allclose(simulation.velocities[:, 0, :3], velocity + seconds * g, atol=1e-11)


@pytest.mark.parametrize("kind", [JointType.BALL, JointType.FREE])
def test_a_symmetric_body_precesses_about_its_angular_momentum(rng, kind):
    # Euler's torque-free top: the figure axis turns about L at the rate L / I1, at a fixed angle.
    i1, i3 = 0.08, 0.05
    builders, spins, axes = [], [], []
    for _ in range(6):
        builder = ModelBuilder(gravity=0.0)
        link = builder.add_link(mass=1.0, inertia=np.diag([i1, i1, i3]))
        joint = builder.add_joint_ball(-1, link) if kind == JointType.BALL else builder.add_joint_free(link)
        builder.add_articulation([joint])
        R = Rotation.random(None, rng)
        builder.joint_q[-4:] = R.as_quat().tolist()
        axis, spin = R.apply([0, 0, 1]), 4.0 * random_unit(rng)
        builder.joint_qd[-3:] = spin.tolist()
        builders.append(builder)
        spins.append(spin)
        axes.append(axis)
    spins, axes = np.array(spins), np.array(axes)
    momentum = i1 * spins + (i3 - i1) * np.sum(spins * axes, axis=1, keepdims=True) * axes
    simulation = Simulation(worlds_of(builders), 1e-3, dtype=wp.float64)
    seconds = 2.0
    simulation.run(seconds)
    turn = Rotation.from_rotvec(momentum / i1 * seconds)
    actual = Rotation.from_quat(simulation.q[:, -4:]).apply([0.0, 0.0, 1.0])
    # Second order: (omega dt)^2 / 12 of an angle of up to 8 rad is 1e-5.
    np.testing.assert_allclose(actual, turn.apply(axes), atol=3e-5)


def test_energy_and_angular_momentum_of_a_torque_free_body_stay(rng):
    builders = []
    for _ in range(8):
        builder = ModelBuilder(gravity=0.0)
        builder.add_body(
            mass=1.0, com=0.1 * rng.normal(size=3), inertia=random_inertia(rng, 1.0), xform=random_transform(rng)
        )
        builder.joint_qd[:] = np.concatenate([rng.normal(size=3), 4.0 * random_unit(rng)]).tolist()
        builders.append(builder)
    simulation = Simulation(worlds_of(builders), 1e-3, dtype=wp.float64)
    inertias = simulation.model.body_inertia.numpy()

    def turning():
        R = Rotation.from_quat(simulation.poses[:, 0, 3:]).as_matrix()
        w = simulation.velocities[:, 0, 3:]
        L = np.einsum("wij,wjk,wlk,wl->wi", R, inertias, R, w)
        return np.concatenate([L, 0.5 * np.sum(L * w, axis=1, keepdims=True)], axis=1)

    seen = simulation.run(10.0, turning, every=100)
    size = np.linalg.norm(seen[0, :, :3], axis=1)[:, None]
    # Second order, bounded: (omega dt)^2 of 1.6e-5, times the ratio of inertias (below 10) for a spin that tumbles. An error of first
    # order would be 4e-3 a radian, and there are 40.
    assert np.max(np.abs(seen[:, :, :3] - seen[0, :, :3]) / size) < 3e-4
    assert np.max(np.abs(seen[:, :, 3] / seen[0, :, 3] - 1.0)) < 3e-4


def test_a_spinning_top_precesses_steadily(rng):
    # About its tip, with w3 the spin about its axis and Omega the rate of precession at the tilt theta:
    # m g l = Omega (I3 w3 - I1 Omega cos theta)     (Goldstein, Classical Mechanics, 5.7)
    builders, rates, tilts = [], [], []
    mass, length, i1_com, i3 = 0.5, 0.1, 0.0008, 0.0006
    i1 = i1_com + mass * length**2
    for _ in range(6):
        theta, rate, heading = rng.uniform(0.3, 1.2), rng.uniform(2.0, 6.0), rng.uniform(-3, 3)
        w3 = (mass * GRAVITY * length / rate + i1 * rate * np.cos(theta)) / i3
        builder = ModelBuilder()
        link = builder.add_link(mass=mass, com=(0, 0, length), inertia=np.diag([i1_com, i1_com, i3]))
        builder.add_articulation([builder.add_joint_ball(-1, link)])
        R = Rotation.from_euler("ZY", [heading, theta])
        builder.joint_q[:] = R.as_quat().tolist()
        builder.joint_qd[:] = ((w3 - rate * np.cos(theta)) * R.apply([0, 0, 1]) + [0, 0, rate]).tolist()
        builders.append(builder)
        rates.append(rate)
        tilts.append((theta, heading))
    theta, heading = np.array(tilts).T
    times = 0.1 * np.arange(1, 11)[:, None]

    def errors(dt):
        simulation = Simulation(worlds_of(builders), dt, dtype=wp.float64)
        axes = simulation.run(
            1.0, lambda: Rotation.from_quat(simulation.q).apply([0.0, 0.0, 1.0]), every=round(0.1 / dt)
        )
        azimuth = np.arctan2(axes[:, :, 1], axes[:, :, 0]) - heading - times * rates
        return np.stack([np.arccos(axes[:, :, 2]) - theta, (azimuth + np.pi) % (2.0 * np.pi) - np.pi])

    coarse, fine = errors(2e-4), errors(1e-4)
    # The spin, up to 500 rad/s, turns by 0.1 rad in a coarse step: errors of its square, 1e-2, of up to 6 rad.
    assert np.abs(coarse).max() < 6e-2
    # They are of second order: their extrapolation leaves the next order, 1e-2 of them, and of the fine ones again.
    assert np.abs((4.0 * fine - coarse) / 3.0).max() < 1e-3


# ---------------------------------------------------------------------------------------------------- drives


def test_a_drive_sags_by_load_over_gain(rng):
    masses, gains = rng.uniform(0.5, 5.0, 6), 10.0 ** rng.uniform(2.0, 5.0, 6)
    builders = []
    for mass, gain in zip(masses, gains, strict=True):
        builder = ModelBuilder()
        link = builder.add_link(mass=mass, inertia=np.eye(3))
        drive = JointDofConfig(axis=(0, 0, 1), target_ke=gain, target_kd=2.0 * np.sqrt(gain * mass))
        builder.add_articulation([builder.add_joint(JointType.PRISMATIC, -1, link, linear_axes=[drive])])
        builders.append(builder)
    simulation = Simulation(worlds_of(builders), 1.0 / 240.0, dtype=wp.float64)
    simulation.run(10.0)
    # Critically damped with omega > sqrt(100 / 5) = 4.5 /s: after 10 s (45 + 1) e^-45 of the sag is left; rest is exact.
    np.testing.assert_allclose(simulation.q[:, 0], -masses * GRAVITY / gains, rtol=1e-9)


# ---------------------------------------------------------------------------------------------------- contact and friction


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_a_block_stays_on_a_slope_below_the_angle_of_friction_and_slides_above(rng, dtype):
    tilt = rng.uniform(0.1, 0.6, 8)
    factor = np.array([0.3, 0.7, 0.9, 0.97, 1.03, 1.1, 1.5, 3.0])  # mu / tan(tilt)
    mu = factor * np.tan(tilt)
    half = (0.2, 0.15, 0.02)  # too flat to tip over: mu < hx / hz
    builders = [on_plane(m, tilt=a, half=half) for m, a in zip(mu, tilt, strict=True)]
    simulation = Simulation(worlds_of(builders), 1.0 / 240.0, dtype=dtype)
    downhill = np.stack([np.cos(tilt), np.zeros(8), -np.sin(tilt)], axis=1)

    def along():
        state = simulation.poses[:, 0, :3], simulation.velocities[:, 0, :3]
        return np.stack([np.sum(x * downhill, axis=1) for x in state])

    simulation.run(0.5)  # comes to rest on the plane, or starts to slide
    (start, speed), (end, later) = along(), simulation.run(1.0, along)[-1]
    acceleration = GRAVITY * (np.sin(tilt) - mu * np.cos(tilt))
    slides = factor < 1.0
    # The normal force is that of the weight from the first tenth of a second on. What is left is that sweeps end before they converged:
    # a thousandth of the weight.
    np.testing.assert_allclose((later - speed)[slides], acceleration[slides], atol=1e-3 * GRAVITY)
    # Rest: no creep beyond 0.1 mm a second.
    assert np.abs(end - start)[~slides].max() < 1e-4
    assert np.abs(later)[~slides].max() < 1e-4


def test_a_block_thrown_over_the_ground_stops_where_friction_has_taken_its_energy(rng):
    mu, speed = rng.uniform(0.1, 0.8, 8), rng.uniform(0.5, 2.0, 8)
    heading = rng.uniform(-np.pi, np.pi, 8)
    throws = [(v * np.cos(a), v * np.sin(a), 0, 0, 0, 0) for v, a in zip(speed, heading, strict=True)]
    builders = [on_plane(m, half=(0.2, 0.2, 0.01), thrown=v) for m, v in zip(mu, throws, strict=True)]
    simulation = Simulation(worlds_of(builders), 1.0 / 1000.0)
    simulation.run(3.0)  # the longest slide takes 2.04 s
    distance = speed**2 / (2.0 * mu * GRAVITY)
    expected = distance[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=1)
    # First order: a kick lasts a whole step, v dt / 2 = 1 mm; sweeps that have not converged cost as on the slope.
    np.testing.assert_allclose(simulation.poses[:, 0, :2], expected, atol=2e-3, rtol=2e-3)
    assert np.abs(simulation.qd).max() < 1e-4


def test_a_ball_bounces_to_the_square_of_its_restitution():
    restitution = np.array([0.0, 0.3, 0.5, 0.7, 0.9, 1.0])
    drop, dt = 1.0, 1.0 / 1000.0
    simulation = Simulation(worlds_of(on_plane(0.5, lift=drop, restitution=e) for e in restitution), dt)
    heights = simulation.run(6.0, lambda: simulation.poses[:, 0, 2] - BALL_RADIUS)
    first = round(np.sqrt(2.0 * drop / GRAVITY) / dt)
    speed = np.sqrt(2.0 * GRAVITY * drop)
    for w, e in enumerate(restitution):
        flight = round(2.0 * e * speed / GRAVITY / dt)
        apex = heights[first + 5 : first + 5 + max(flight - 10, 1), w].max()
        # The moment of impact is known to a step: v dt = 4.4 mm of height, twice.
        assert abs(apex - e**2 * drop) < 2.0 * speed * dt
    # Elastic: no height is lost or won over five bounces but that at each impact. Never through the ground.
    assert abs(heights[-2000:, -1].max() - drop) < 0.02 * drop
    # An impact lies within a step of the surface, and less than that below.
    assert heights.min() > -speed * dt
    assert heights[:, -1].max() < 1.01 * drop


def test_a_sliding_ball_rolls_at_five_sevenths_of_its_speed(rng):
    mu, speed = rng.uniform(0.2, 1.0, 6), rng.uniform(0.5, 2.0, 6)
    builders = [on_plane(m, thrown=(v, 0, 0, 0, 0, 0)) for m, v in zip(mu, speed, strict=True)]
    simulation = Simulation(worlds_of(builders), 1.0 / 240.0)
    simulation.run(0.1)
    # Still sliding where 2 v / (7 mu g) > 0.1 s. First order: one step of friction at most.
    slides = 2.0 * speed / (7.0 * mu * GRAVITY) > 0.11
    np.testing.assert_allclose(
        simulation.velocities[slides, 0, 0],
        (speed - 0.1 * mu * GRAVITY)[slides],
        atol=mu.max() * GRAVITY * simulation.dt,
    )
    simulation.run(1.0)  # 2 v / (7 mu g) is below 0.3 s
    # Angular momentum about the contact point stays, whatever the step: rounding alone, and the sinking of 0.04 mm of 100.
    np.testing.assert_allclose(simulation.velocities[:, 0, 0], 5.0 / 7.0 * speed, rtol=1e-3)
    np.testing.assert_allclose(simulation.velocities[:, 0, 4], 5.0 / 7.0 * speed / BALL_RADIUS, rtol=2e-3)


def test_torsional_friction_stops_a_spinning_ball():
    # The torque mu_torsional m g brakes the inertia 2/5 m r^2.
    coefficient = np.array([0.001, 0.002, 0.005])
    spin = 20.0
    builders = [on_plane(0.5, thrown=(0, 0, 0, 0, 0, spin), mu_torsional=c) for c in coefficient]
    simulation = Simulation(worlds_of(builders), 1.0 / 240.0)
    rate = coefficient * GRAVITY / (0.4 * BALL_RADIUS**2)
    seen = simulation.run(2.0, lambda: simulation.velocities[:, 0, 5])
    times = simulation.dt * np.arange(1, len(seen) + 1)[:, None]
    # The normal force grows to the weight within some time constants; that costs a step or two of braking.
    np.testing.assert_allclose(seen, np.maximum(spin - rate * times, 0.0), atol=3.0 * rate.max() * simulation.dt)
    assert np.abs(seen[-1][rate * 2.0 > 1.1 * spin]).max() < 1e-4


def test_rolling_friction_stops_a_rolling_ball():
    # About the contact point: the torque mu_rolling m g brakes the inertia 7/5 m r^2.
    coefficient = np.array([0.001, 0.002, 0.005])
    speed = 0.5
    builders = [on_plane(1.0, thrown=(speed, 0, 0, 0, speed / BALL_RADIUS, 0), mu_rolling=c) for c in coefficient]
    simulation = Simulation(worlds_of(builders), 1.0 / 240.0)
    rate = coefficient * GRAVITY / (1.4 * BALL_RADIUS)
    seen = simulation.run(2.0, lambda: simulation.velocities[:, 0, 0])
    times = simulation.dt * np.arange(1, len(seen) + 1)[:, None]
    # As for spinning; the arm of friction is shorter by the sinking, 4e-4 of it.
    np.testing.assert_allclose(
        seen, np.maximum(speed - rate * times, 0.0), atol=3.0 * rate.max() * simulation.dt + 1e-3 * speed
    )
    assert np.abs(seen[-1][rate * 2.0 > 1.1 * speed]).max() < 1e-4
