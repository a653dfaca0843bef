"""Bodies with a small moment of inertia about one axis, in contact: a short arm on that axis couples friction and normal impulse."""

import numpy as np
import pytest

import newton_like as nl
from tests.solvers.xpbd.scenes import energies, started, xpbd

COUNT = 48


def random_inertia(rng, mass: float, size: float) -> np.ndarray:
    """An inertia with principal moments in ratios of up to 1000, which satisfy the triangle inequality, about random axes."""
    least = 10.0 ** rng.uniform(-3.0, 0.0)
    moments = np.array([least, max(rng.uniform(1.0 - least, 1.0), least), 1.0])
    moments[2] = min(1.0, moments[0] + moments[1])
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0] if rng.uniform() < 0.5 else np.eye(3)[rng.permutation(3)]
    return 0.5 * mass * (size * rng.uniform(0.5, 1.0)) ** 2 * (axes.T * moments) @ axes


def thin_bodies(rng, restitution: float = 0.0) -> nl.ModelBuilder:
    """Boxes, capsules, cylinders and compounds of spheres above a plane, one a world, that turn and move."""
    builder = nl.ModelBuilder()
    for _ in range(COUNT):
        world = nl.ModelBuilder()
        mass, size = 10.0 ** rng.uniform(-2.0, 1.0), 10.0 ** rng.uniform(-1.5, -0.5)
        body = world.add_link(mass=mass, inertia=random_inertia(rng, mass, size))
        cfg = nl.ShapeConfig(density=0.0, mu=rng.uniform(0.2, 1.2), restitution=restitution)
        x, y, z = size * rng.uniform(0.2, 1.0, size=3)
        kind = rng.integers(4)
        if kind == 0:
            world.add_shape_box(body, hx=x, hy=y, hz=z, cfg=cfg)
        elif kind == 1:
            world.add_shape_capsule(body, radius=0.4 * x, half_height=y, cfg=cfg)
        elif kind == 2:
            world.add_shape_cylinder(body, radius=0.6 * x, half_height=y, cfg=cfg)
        else:
            for _ in range(rng.integers(2, 5)):
                place = (*size * rng.uniform(-1.0, 1.0, size=3), 0.0, 0.0, 0.0, 1.0)
                world.add_shape_sphere(body, xform=place, radius=size * rng.uniform(0.1, 0.4), cfg=cfg)
        world.add_articulation([world.add_joint_free(body)])
        turn = rng.normal(size=4)
        world.joint_q[:] = [0.0, 0.0, 2.0 * size + rng.uniform(0.0, 1.0), *turn / np.linalg.norm(turn)]
        world.joint_qd[:] = [*rng.normal(size=3), *3.0 * rng.normal(size=3)]
        builder.add_world(world)
    builder.add_ground_plane(cfg=nl.ShapeConfig(mu=0.8, restitution=restitution))
    return builder


def history(model, steps: int) -> np.ndarray:
    """Energies before the first step and after each step, as shares of the first ones, ``[steps + 1, bodies]``."""
    solver, state = xpbd(model), started(model)
    found = [energies(model, state)]
    for _ in range(steps):
        solver.step(state, state, dt=1 / 240)
        found.append(energies(model, state))
    return np.array(found) / found[0]


def test_a_thin_body_that_falls_gains_no_energy(rng):
    """The energy never exceeds that of the start. Where an impact took more than it should, later sub-steps give back a part of it."""
    share = history(thin_bodies(rng).finalize("cpu"), 480)
    assert np.isfinite(share).all()
    assert share.max() < 1.0 + 1e-3
    # 10 % of the start at most were given back in 20 drawn scenes
    assert (share - np.minimum.accumulate(share, axis=0)).max() < 0.25


def test_a_thin_body_that_rebounds_gains_little_energy(rng):
    """Rebounds of several contacts at once are not found together: one of 576 drawn bodies gained 41 %, see the limits in the docs."""
    share = history(thin_bodies(rng, restitution=0.5).finalize("cpu"), 480)
    assert np.isfinite(share).all()
    assert share.max() < 2.0
    assert (share.max(axis=0) < 1.0 + 1e-2).mean() > 0.9


@pytest.mark.parametrize("shape", ["box", "spheres"])
def test_a_thin_leg_that_falls_comes_to_rest(shape, rng):
    """A leg of a quadruped of 0.16 m whose moment of inertia about its axis is 1e-6 kg m^2, with 16 orientations."""
    builder, moments, mass = nl.ModelBuilder(), [1.36e-4, 1.36e-4, 1.0e-6], 0.031
    for _ in range(16):
        world = nl.ModelBuilder()
        body = world.add_link(mass=mass, inertia=np.diag(moments))
        cfg = nl.ShapeConfig(density=0.0)
        if shape == "box":
            world.add_shape_box(body, hx=0.025, hy=0.025, hz=0.08, cfg=cfg)
        else:
            for place in ((0.02, 0.0, -0.08), (-0.01, 0.02, 0.08)):
                world.add_shape_sphere(body, xform=(*place, 0, 0, 0, 1), radius=0.025, cfg=cfg)
        world.add_articulation([world.add_joint_free(body)])
        turn = rng.normal(size=4)
        world.joint_q[:] = [0.0, 0.0, 0.6, *turn / np.linalg.norm(turn)]
        builder.add_world(world)
    builder.add_ground_plane()
    share = history(builder.finalize("cpu"), 480)
    assert share.max() < 1.0 + 1e-3
    # a leg on its side has 4 %, one on its end 13 %
    assert share[-1].max() < 0.2
