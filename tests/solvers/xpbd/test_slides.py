"""Slides: passes over chains that dampers hold do not converge, and must not add energy; contacts at an angle to a slide stop its body."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import newton_like as nl
from tests.solvers.xpbd.scenes import energies, of_worlds, random_chain, random_coordinates, started, xpbd

WORLDS = 128


@pytest.mark.filterwarnings("ignore:.*nearly vanishes.*")
@pytest.mark.parametrize("dof", [{"damping": 1e4}, {"velocity_limit": 0.3}], ids=lambda dof: next(iter(dof)))
def test_chains_of_slides_with_strong_dampers_or_limits_of_velocity_gain_no_energy(dof, rng):
    """Of 640 chains on a fixed base, none gained more than 0.1 J. Of 128 with rows of dampers that close at most 1 m/s of what later joints
    moved them, or forget what is left, 15 did with dampers and 7 with limits of velocity."""
    scene = nl.ModelBuilder()
    for _ in range(WORLDS):
        scene.add_world(random_chain(rng, "prismatic", floating=False, links=3, **dof))
    model = scene.finalize("cpu")
    state = started(model, random_coordinates(model, rng), rng.normal(size=model.joint_dof_count))
    solver, first, found = xpbd(model), of_worlds(model, energies(model, state)), []
    for _ in range(240):
        solver.step(state, state, dt=1 / 240)
        found.append(of_worlds(model, energies(model, state)))
    assert (~(np.array(found) < first + 0.1).all(axis=0)).sum() <= 1


def test_bodies_on_slides_stop_at_slopes_that_they_meet_at_an_angle(rng):
    """Spheres run along slides into faces of fixed boxes: the slide takes what a face pushes across it, and nothing rebounds."""
    builder, start, cosine, radius = nl.ModelBuilder(), 0.05, rng.uniform(0.2, 1.0, WORLDS), 0.1
    for c in cosine:
        world, frame = nl.ModelBuilder(), Rotation.random(None, rng)
        world.default_shape_cfg.mu = rng.uniform(0.0, 0.8)
        along, side = frame.as_matrix()[:, 0], frame.as_matrix()[:, 1]
        normal = np.sqrt(1.0 - c * c) * side - c * along
        turn = Rotation.align_vectors([normal], [[0.0, 0.0, 1.0]])[0].as_quat()
        centre = start * along - (radius + 0.5) * normal
        world.add_shape_box(-1, xform=(*centre, *turn), hx=0.5, hy=0.5, hz=0.5)
        body = world.add_link()
        world.add_shape_sphere(body, radius=radius, cfg=nl.ShapeConfig(density=rng.uniform(100.0, 5000.0)))
        world.add_articulation([world.add_joint_prismatic(-1, body, axis=along)])
        builder.add_world(world)
    model = builder.finalize("cpu")
    model.set_gravity((0, 0, 0))
    solver, state = xpbd(model), model.state()
    state.joint_qd.fill_(1.0)
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(60):
        solver.step(state, state, dt=1 / 240)
    assert abs(state.joint_qd.numpy()).max() < 0.02
    assert abs(state.joint_q.numpy() - start).max() < 2e-3
