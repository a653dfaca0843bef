"""Shapes that overlap because joints hold them in each other: pushing them apart adds little energy."""

import numpy as np
import pytest

import newton_like as nl
from newton_like import dynamics
from newton_like.solvers import SolverFeatherstone, SolverXPBD
from tests.articulation.robots import add_robot

WORLDS, MASS = 8, 5.0


def walkers(rng, robot: int):
    """Robots above the ground, in random states without motion. Their hips and knees overlap, whatever the angles of their joints."""
    one = nl.ModelBuilder()
    add_robot(one, np.random.default_rng(robot))
    for body in range(one.body_count):
        one.add_shape_sphere(body, radius=0.08, cfg=nl.ShapeConfig(density=0.0))
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(one, WORLDS)
    model = builder.finalize("cpu")
    q = model.joint_q.numpy().reshape(WORLDS, -1)
    q[:, 2], q[:, 3:7] = 0.4, rng.normal(size=(WORLDS, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    q[:, 7:] = rng.uniform(-1.0, 1.0, (WORLDS, 4))
    model.joint_q.assign(q.ravel())
    state = model.state()
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    return model, state


def gained(model, state, solver, steps: int = 200) -> float:
    """The largest energy of a world above its first one [J]."""

    def energy() -> np.ndarray:
        return dynamics.kinetic_energy(model, state).numpy() + dynamics.potential_energy(model, state).numpy()

    start, most = energy(), 0.0
    for _ in range(steps):
        solver.step(state, state)
        most = max(most, (energy() - start).max())
    return most


# a push v adds up to m v^2; without the bounds on pushes, the sum is between hundreds and millions of joules
MOST = 4.0 * MASS


@pytest.mark.parametrize("robot", [3, 21, 32, 51])
def test_generalized_coordinates_gain_little_energy(rng, robot):
    model, state = walkers(rng, robot)
    solver = SolverFeatherstone(model, evaluator="general", max_depenetration_speed=1.0)
    assert gained(model, state, solver) < MOST


@pytest.mark.slow
@pytest.mark.parametrize("robot", [3, 21, 51, 10])
def test_maximal_coordinates_gain_little_energy(rng, robot):
    model, state = walkers(rng, robot)
    solver = SolverXPBD(model, max_depenetration_speed=1.0)
    # the joints are solved with a few iterations
    assert gained(model, state, solver, 100) < 5.0 * MOST


def carts(rng):
    """Carts around fixed rails, with poles on them, without weight."""
    builder = nl.ModelBuilder()
    for _ in range(WORLDS):
        # the pole stands on the cart
        world, side, rail = nl.ModelBuilder(), rng.uniform(0.08, 0.12), rng.uniform(0.01, 0.02)
        world.add_shape_box(-1, hx=rail, hy=4.0, hz=rail)
        cart, pole = world.add_link(), world.add_link()
        world.add_shape_box(cart, hx=side, hy=2.0 * side, hz=side)
        world.add_shape_box(pole, hx=0.02, hy=0.02, hz=0.3, cfg=nl.ShapeConfig(density=300.0))
        slide = world.add_joint_prismatic(-1, cart, axis=(0, 1, 0))
        hinge = world.add_joint_revolute(
            cart,
            pole,
            axis=(1, 0, 0),
            parent_xform=(side + 0.03, 0, 0, 0, 0, 0, 1),
            child_xform=(0, 0, -0.3, 0, 0, 0, 1),
        )
        world.add_articulation([slide, hinge])
        builder.add_world(world)
    model = builder.finalize("cpu")
    model.set_gravity((0, 0, 0))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("speed", [0.0, 0.5])
def test_carts_that_overlap_their_fixed_rails_move_as_without_contacts(rng, speed):
    """The rails push the carts in directions in which their joints hold them. A cart and its pole that move along the rail keep their
    velocity: no friction brakes them."""
    model = carts(rng)
    solver, state = SolverXPBD(model), model.state()
    start = np.tile([speed, 0.0], WORLDS)
    state.joint_qd.assign(start)
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(240):
        solver.step(state, state, dt=1 / 240)
    # with forces of these contacts, poles turn at 0.01 to 1 rad/s for ever, and carts stop
    assert state.joint_qd.numpy() == pytest.approx(start, abs=1e-4)
