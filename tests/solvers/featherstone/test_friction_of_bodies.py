"""Friction of boxes, spheres and cylinders on tilted boxes that are fixed or move: sticking, sliding, toppling and rolling."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, ShapeConfig
from tests.support.simulate import GRAVITY, Simulation, worlds_of

# the kernels take long to compile, and faster tests cover the same code
pytestmark = pytest.mark.slow

CREEP = 1.0e-4
"""Speed below which a body is at rest [m/s]: what a second of sliding with 1 % too little friction exceeds a hundredfold."""


def slope_frame(rng, angle: float) -> Rotation:
    """A frame whose x axis points down a slope, in a random direction."""
    return Rotation.from_euler("ZY", [rng.uniform(-np.pi, np.pi), angle])


def placed(frame: Rotation, *place) -> tuple:
    """The pose of a body at a place on a slope."""
    return (*frame.apply(place), *frame.as_quat())


def slope(builder: ModelBuilder, frame: Rotation, mu: float, half=(20.0, 5.0, 0.5)) -> None:
    """A fixed box whose upper face is the plane z = 0 of the frame."""
    hx, hy, hz = half
    builder.add_shape_box(-1, xform=placed(frame, 0.0, 0.0, -hz), hx=hx, hy=hy, hz=hz, cfg=ShapeConfig(mu=mu))


def box(builder: ModelBuilder, frame: Rotation, place, half, **surface) -> int:
    body = builder.add_body(xform=placed(frame, *place))
    hx, hy, hz = half
    builder.add_shape_box(body, hx=hx, hy=hy, hz=hz, cfg=ShapeConfig(**surface))
    return body


def along(frames: list[Rotation], vectors: np.ndarray) -> np.ndarray:
    """Vectors ``[worlds, 3]`` in the frames of the slopes."""
    return np.array([f.inv().apply(v) for f, v in zip(frames, vectors, strict=True)])


@pytest.mark.parametrize("below", ["fixed", "moving"])
def test_a_box_sticks_and_slips_at_the_angle_of_friction(rng, below):
    """With mu 1 % above tan(angle) it stays; with 1 % less, it slides with g (sin(angle) - mu cos(angle))."""
    builders, frames, expected = [], [], []
    for angle in rng.uniform(0.1, 0.5, 4):
        for factor in (1.01, 0.99):
            builder, frame, mu = ModelBuilder(), slope_frame(rng, angle), factor * np.tan(angle)
            if below == "moving":
                # a heavy box, which the rough slope holds
                slope(builder, frame, 2.0)
                box(builder, frame, (0.0, 0.0, 0.2), (3.0, 1.0, 0.2), mu=mu)
            else:
                slope(builder, frame, mu)
            height = 0.5 if below == "moving" else 0.1
            box(builder, frame, (0.0, 0.0, height), rng.uniform((0.1, 0.1, 0.1), (0.2, 0.2, 0.1)), mu=mu)
            builders.append(builder)
            frames.append(frame)
            expected.append(max(0.0, GRAVITY * (np.sin(angle) - mu * np.cos(angle))))
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    # the penetration of the start grows to that of rest at first
    simulation.run(0.5)
    first = along(frames, simulation.velocities[:, -1, :3])
    simulation.run(1.0)
    velocity, expected = along(frames, simulation.velocities[:, -1, :3]), np.array(expected)
    assert (np.abs(velocity[expected == 0.0]) < CREEP).all()
    assert (velocity[expected > 0.0, 0] > 80.0 * CREEP).all()
    np.testing.assert_allclose((velocity - first)[:, 0], expected, rtol=0.02, atol=CREEP)
    np.testing.assert_allclose(velocity[:, 1:], 0.0, atol=CREEP)
    if below == "moving":
        assert np.abs(simulation.velocities[:, 0]).max() < CREEP


def test_a_domino_topples_at_its_critical_angle(rng):
    """Its centre of mass is above the lower edge where tan(angle) = width / height."""
    builders, factors = [], []
    for height in rng.uniform(0.1, 2.0, 5):
        width = height * rng.uniform(0.15, 0.4)
        for factor in (0.99, 1.01):
            builder, frame = ModelBuilder(), slope_frame(rng, factor * np.arctan2(width, height))
            slope(builder, frame, 1.0)
            box(builder, frame, (0.0, 0.0, 0.5 * height), (0.5 * width, 0.5 * height, 0.5 * height), mu=1.0)
            builders.append(builder)
            factors.append(factor)
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    start = Rotation.from_quat(simulation.poses[:, 0, 3:])
    simulation.run(4.0)
    turned = np.degrees((start.inv() * Rotation.from_quat(simulation.poses[:, 0, 3:])).magnitude())
    np.testing.assert_array_equal(turned > 1.0, np.array(factors) > 1.0)
    assert turned[np.array(factors) > 1.0].min() > 10.0


@pytest.mark.parametrize(("shape", "share"), [("sphere", 5.0 / 7.0), ("cylinder", 2.0 / 3.0)])
def test_round_bodies_roll_down_a_slope(rng, shape, share):
    """A body with the moment of inertia k m r^2 rolls with g sin(angle) / (1 + k): k is 2/5 for a sphere, 1/2 for a cylinder."""
    builders, frames, angles, radii = [], [], rng.uniform(0.05, 0.4, 4), rng.uniform(0.05, 0.3, 4)
    for angle, radius in zip(angles, radii, strict=True):
        builder, frame = ModelBuilder(), slope_frame(rng, angle)
        slope(builder, frame, 1.0)
        body = builder.add_body(xform=placed(frame, -5.0, 0.0, radius))
        if shape == "sphere":
            builder.add_shape_sphere(body, radius=radius)
        else:
            across = (0.0, 0.0, 0.0, *Rotation.from_euler("x", 90, degrees=True).as_quat())
            builder.add_shape_cylinder(body, xform=across, radius=radius, half_height=2.0 * radius)
        builders.append(builder)
        frames.append(frame)
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    simulation.run(0.2)
    first = along(frames, simulation.velocities[:, 0, :3])
    simulation.run(1.0)
    velocity = along(frames, simulation.velocities[:, 0, :3])
    spin = along(frames, simulation.velocities[:, 0, 3:])
    np.testing.assert_allclose((velocity - first)[:, 0], share * GRAVITY * np.sin(angles), rtol=1.0e-3)
    np.testing.assert_allclose(spin[:, 1] * radii, velocity[:, 0], rtol=1.0e-3)
    np.testing.assert_allclose(velocity[:, 1], 0.0, atol=1.0e-3)
