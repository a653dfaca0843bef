"""Bodies on bodies and on fixed boxes come to rest: stacks, cylinders, capsules, and MuJoCo's rest of a box on a box."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, ShapeConfig
from tests.benchmarks.contact_scenes import SCENES
from tests.support.simulate import GRAVITY, Simulation, worlds_of

HALF = 0.1
LYING = tuple(Rotation.from_euler("x", 90, degrees=True).as_quat())


def stack(densities) -> ModelBuilder:
    """Boxes on each other, on the ground."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for i, density in enumerate(densities):
        body = builder.add_body(xform=(0.0, 0.0, HALF * (1 + 2 * i), 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_box(body, hx=HALF, hy=HALF, hz=HALF, cfg=ShapeConfig(density=density))
    return builder


def test_a_stack_of_ten_boxes_stands():
    simulation = Simulation(worlds_of([stack([1000.0] * 10)]))
    start = simulation.poses[..., :3]
    simulation.run(2.0)
    assert np.abs(simulation.poses[..., :3] - start).max() < 1.0e-3
    assert np.abs(simulation.velocities[..., :3]).max() < 5.0e-3
    mass = simulation.model.body_mass.numpy()
    moving = simulation.model.shape_body.numpy() >= 0
    force = simulation.solver.contact_forces().numpy()[moving]
    np.testing.assert_allclose(force[:, 2], GRAVITY * mass, rtol=0.05)


def test_a_stack_of_turned_boxes_comes_to_rest(rng):
    """Faces share eight corners, of which four are contact points. These stay the same, and their impulses with them."""
    builders = []
    for _ in range(8):
        builder = stack([1000.0] * 4)
        q = np.reshape(builder.joint_q, (4, 7))
        q[:, :2] = rng.uniform(-0.01, 0.01, (4, 2))
        half = 0.5 * rng.uniform(-0.3, 0.3, 4)
        q[:, 5], q[:, 6] = np.sin(half), np.cos(half)
        builder.joint_q = q.ravel().tolist()
        builders.append(builder)
    simulation = Simulation(worlds_of(builders))
    simulation.run(4.0)
    before = simulation.poses[..., :3].copy()
    fastest = simulation.run(0.5, lambda: np.abs(simulation.velocities[..., :3]).max())
    # at rest within the solver's `tolerance`: one stack in thirty rocks at 0.5 mm/s, by 2 micrometres
    assert fastest.max() < 1.0e-3
    assert np.abs(simulation.poses[..., :3] - before).max() < 1.0e-5


def test_a_light_box_carries_a_heavy_one():
    """1 kg below, 100 kg above: the penetration is a hundred times that of a box alone, and nothing moves."""
    volume = (2.0 * HALF) ** 3
    simulation = Simulation(worlds_of([stack([1.0 / volume, 100.0 / volume])]))
    start = simulation.poses[..., :3]
    simulation.run(2.0)
    np.testing.assert_allclose(simulation.model.body_mass.numpy(), [1.0, 100.0], rtol=1.0e-6)
    moved = simulation.poses[..., :3] - start
    assert np.abs(moved[..., :2]).max() < 1.0e-3
    # g T^2 for the mass of the light box, T = 1 ms, a hundred times over, at each of two faces
    sag = 101.0 * GRAVITY * 1.0e-6
    np.testing.assert_allclose(moved[0, :, 2], [-sag, -2.0 * sag], rtol=0.1)
    assert np.abs(simulation.velocities[..., :3]).max() < 5.0e-3


@pytest.mark.parametrize("pose", ["cap", "barrel"])
def test_a_cylinder_rests_on_a_box(rng, pose):
    """On its cap, and on its barrel, in any direction."""
    builders = []
    for yaw in rng.uniform(-np.pi, np.pi, 4):
        builder = ModelBuilder()
        turn = Rotation.from_euler("z", yaw)
        builder.add_shape_box(-1, xform=(0.0, 0.0, -0.5, *turn.as_quat()), hx=1.0, hy=2.0, hz=0.5)
        lying = Rotation.from_euler("z", rng.uniform(-np.pi, np.pi)) * Rotation.from_quat(LYING)
        turn, height = (turn, 0.2) if pose == "cap" else (lying, HALF)
        body = builder.add_body(xform=(0.0, 0.0, height, *turn.as_quat()))
        builder.add_shape_cylinder(body, radius=HALF, half_height=0.2)
        builders.append(builder)
    at_rest(Simulation(worlds_of(builders)))


def at_rest(simulation: Simulation) -> None:
    """Checks that nothing moves within a second, and that the forces of contacts carry the weights."""
    start = simulation.poses
    simulation.run(1.0)
    np.testing.assert_allclose(simulation.poses, start, atol=1.0e-4)
    np.testing.assert_allclose(simulation.velocities, 0.0, atol=1.0e-4)
    force = simulation.solver.contact_forces().numpy()[simulation.model.shape_body.numpy() >= 0]
    np.testing.assert_allclose(force[:, 2], GRAVITY * simulation.model.body_mass.numpy(), rtol=1.0e-3)
    np.testing.assert_allclose(force[:, :2], 0.0, atol=1.0e-2)


def test_a_capsule_rests_in_a_corner(rng):
    """It lies on the floor and is pressed against a wall, which answers with the force that presses."""
    builder = ModelBuilder()
    builder.add_shape_box(
        -1, xform=(0.0, 0.0, -0.5, 0.0, 0.0, 0.0, 1.0), hx=2.0, hy=2.0, hz=0.5, cfg=ShapeConfig(mu=0.0)
    )
    builder.add_shape_box(
        -1, xform=(0.6, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), hx=0.5, hy=2.0, hz=1.0, cfg=ShapeConfig(mu=0.0)
    )
    body = builder.add_body(xform=(0.0, 0.0, HALF, *LYING))
    builder.add_shape_capsule(body, radius=HALF, half_height=0.2, cfg=ShapeConfig(mu=0.0))
    simulation = Simulation(worlds_of([builder] * 2))
    start, press = simulation.poses, rng.uniform(10.0, 100.0, 2)
    wrench = np.zeros((2, 1, 6))
    wrench[:, 0, 0] = press
    simulation.push(wrench)
    simulation.run(2.0)
    np.testing.assert_allclose(simulation.poses, start, atol=1.0e-4)
    np.testing.assert_allclose(simulation.velocities, 0.0, atol=1.0e-4)
    force = simulation.solver.contact_forces().numpy()[simulation.model.shape_body.numpy() >= 0]
    weight = GRAVITY * simulation.model.body_mass.numpy()
    expected = np.stack([-press, np.zeros(2), weight], axis=1)
    np.testing.assert_allclose(force, expected, rtol=1.0e-3, atol=1.0e-3)


def test_many_sweeps_over_a_wall_converge():
    """Extrapolated sweeps in one direction would diverge: the velocities of 2000 sweeps are those of 500 sweeps."""
    scene = next(scene for scene in SCENES if scene.name == "wall")
    wall = scene.world()
    wall.add_ground_plane()
    simulation = Simulation(worlds_of([wall]))
    simulation.run(0.5)
    solver, q, qd = simulation.solver, simulation.q, simulation.qd
    ends = []
    solver.tolerance = 0.0
    for iterations in (62, 250):
        solver.iterations = iterations
        simulation.set_state(q, qd)
        simulation.run(simulation.dt)
        ends.append(simulation.qd)
    # a step of free fall would change a velocity by 0.04 m/s
    np.testing.assert_allclose(ends[0], ends[1], atol=1.0e-3)
