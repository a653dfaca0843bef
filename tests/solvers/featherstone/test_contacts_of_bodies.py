"""Contacts between bodies that move, and of bodies with fixed shapes other than planes: laws of impact, momentum, rest and rolling."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointType, Mesh, ModelBuilder, ShapeConfig
from newton_like.solvers import SolverFeatherstone
from tests.support import reference
from tests.support.random_trees import random_state, random_unit
from tests.support.simulate import GRAVITY, Simulation, worlds_of

INSTANT = 1.0e-8
"""A time step in which nothing moves: what changes are velocities, by impacts."""


BOUNCY = ShapeConfig(restitution=0.5)
"""Impacts of these are rigid; others act through a spring and damper, whose impulse in an instant is next to nothing."""


def ball(builder, x, radius=0.1, density=1000.0, **surface) -> int:
    body = builder.add_body(xform=(*x, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=radius, cfg=ShapeConfig(density=density, **surface))
    return body


def knot(builder, rng, place, links: int = 4) -> None:
    """A floating body with chains of capsules, which overlap each other."""
    base = builder.add_link(xform=(*place, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(base, radius=0.3, cfg=BOUNCY)
    joints, ends = [builder.add_joint_free(base)], [base, base]
    for i in range(links):
        link = builder.add_link()
        builder.add_shape_capsule(link, radius=0.1, half_height=0.2, cfg=BOUNCY)
        anchor = (*rng.uniform(-0.1, 0.1, 3), 0.0, 0.0, 0.0, 1.0)
        joints.append(
            builder.add_joint_revolute(
                ends[i % 2],
                link,
                axis=tuple(random_unit(rng)),
                parent_xform=anchor,
                child_xform=(0, 0, -0.2, 0, 0, 0, 1),
            )
        )
        ends[i % 2] = link
    builder.add_articulation(joints)


def knots(rng, worlds: int = 4) -> ModelBuilder:
    """Worlds of two knots that overlap; one world in which a knot is alone."""
    builders = []
    for i in range(worlds):
        builder = ModelBuilder(gravity=0.0)
        knot(builder, rng, (0.0, 0.0, 0.0))
        if i:
            knot(builder, rng, (0.4, 0.0, 0.0))
        builders.append(builder)
    return worlds_of(builders)


def precisions(single: float, double: float):
    """Parameters: scalar types with their tolerances, which are those of rounding. Kernels of double precision are compiled in CI only."""
    return pytest.mark.parametrize(
        ("dtype", "tolerance"), [(wp.float32, single), pytest.param(wp.float64, double, marks=pytest.mark.slow)]
    )


@precisions(3.0e-5, 1.0e-6)
def test_contacts_of_bodies_keep_momentum(rng, dtype, tolerance):
    """Impulses on two bodies of one robot or of two are opposite and on one line, whatever parts of their chains are the same."""
    simulation = Simulation(knots(rng, 8), INSTANT, dtype=dtype)
    model = simulation.model
    q, qd = random_state(model, rng)
    for j in np.flatnonzero(model.joint_type.numpy() == JointType.FREE):
        # bases stay where they overlap
        first = model.joint_q_start.numpy()[j]
        q[first : first + 7] = model.joint_q.numpy()[first : first + 7]
    simulation.set_state(q, qd)
    q, before = simulation.state.joint_q.numpy().copy(), simulation.state.joint_qd.numpy().copy()
    hits = []
    trees = [reference.Tree.from_model(simulation.model, w) for w in range(simulation.worlds)]
    simulation.run(INSTANT)
    after = simulation.state.joint_qd.numpy()
    for tree in trees:
        hits.append(np.abs(after - before)[tree.dofs].max())
        old, new = (reference.momentum(tree, q[tree.coords], x[tree.dofs]) for x in (before, after))
        # gyroscopic forces act for 1e-8 s
        np.testing.assert_allclose(new, old, atol=tolerance * np.abs(old).max())
    assert sum(np.array(hits[1:]) > 1.0e-2) >= 5


@precisions(2.0e-6, 1.0e-9)
@pytest.mark.parametrize("bounce", [0.0, 1.0])
def test_head_on_impact_follows_newtons_law(rng, bounce, dtype, tolerance):
    """v1' = v1 - (1 + e) m2 / (m1 + m2) (v1 - v2), and likewise for the second ball."""
    builders, masses = [], rng.uniform(0.5, 5.0, (6, 2))
    for m in masses:
        builder = ModelBuilder(gravity=0.0)
        way = random_unit(rng)
        for i, side in enumerate((-1.0, 1.0)):
            ball(builder, 0.0999999 * side * way, density=m[i] / (4.0 / 3.0 * np.pi * 1.0e-3), restitution=bounce)
        builder.joint_qd[0:3], builder.joint_qd[6:9] = (2.0 * way).tolist(), (-1.0 * way).tolist()
        builders.append(builder)
    # an impact without bounce acts through a spring and damper, whose overlap is gone after a while
    dt, seconds = (1.0e-4, 1.0e-4) if bounce else (1.0 / 240.0, 1.0)
    simulation = Simulation(worlds_of(builders), dt, dtype=dtype)
    way = simulation.qd[:, :3] / 2.0
    simulation.run(seconds)
    speeds = np.einsum("wi,wbi->wb", way, simulation.qd.reshape(6, 2, 6)[:, :, :3])
    change = (1.0 + bounce) * 3.0 * masses[:, ::-1] / masses.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(speeds, [2.0, -1.0] + change * [-1.0, 1.0], atol=tolerance if bounce else 0.05)


@precisions(2.0e-6, 1.0e-9)
def test_a_row_of_balls_hands_on_the_impact(dtype, tolerance):
    """Newton's cradle with gaps: the last ball leaves with the velocity of the first one."""
    builder = ModelBuilder(gravity=0.0)
    for i in range(5):
        ball(builder, (0.21 * i, 0.0, 0.0), restitution=1.0, mu=0.0)
    builder.joint_qd[0] = 1.5
    simulation = Simulation(worlds_of([builder]), 1.0 / 960.0, dtype=dtype)
    simulation.run(0.2)
    speeds = simulation.qd.reshape(5, 6)[:, 0]
    np.testing.assert_allclose(speeds, [0.0, 0.0, 0.0, 0.0, 1.5], atol=tolerance)


def test_a_pile_rests_on_the_ground():
    """Balls on a line above each other: each feels the weight of those above."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for i in range(3):
        ball(builder, (0.0, 0.0, 0.1 + 0.2 * i))
    simulation = Simulation(worlds_of([builder] * 2))
    simulation.run(1.0)
    mass = simulation.model.body_mass.numpy()[0]
    force = simulation.solver.contact_forces().numpy()
    moving = simulation.model.shape_body.numpy() >= 0
    # the net force of contacts carries the ball's own weight
    np.testing.assert_allclose(force[moving], [[0.0, 0.0, GRAVITY * mass]] * 6, rtol=1.0e-3, atol=1.0e-6)
    assert (np.abs(np.diff(simulation.poses[:, :, 2], axis=1) - 0.2) < 1.0e-3).all()


@pytest.mark.parametrize("shape", ["sphere", "capsule", "box"])
def test_balls_rest_on_fixed_shapes_of_the_world(shape):
    builder = ModelBuilder()
    add = {
        "sphere": lambda: builder.add_shape_sphere(-1, radius=0.5),
        "capsule": lambda: builder.add_shape_capsule(-1, radius=0.5, half_height=0.3),
        "box": lambda: builder.add_shape_box(-1, hx=0.5, hy=0.5, hz=0.5),
    }[shape]
    add()
    top = 0.8 if shape == "capsule" else 0.5
    ball(builder, (0.0, 0.0, top + 0.1))
    simulation = Simulation(worlds_of([builder] * 2))
    simulation.run(0.5)
    # a contact gives way by g T^2, with the default time constant T
    np.testing.assert_allclose(simulation.poses[:, 0, :3], [[0.0, 0.0, top + 0.1]] * 2, atol=0.03)
    assert np.abs(simulation.qd).max() < 1.0e-2


def test_a_sliding_ball_ends_rolling_on_a_box():
    """A solid ball that slides without spin rolls with 5/7 of its speed in the end."""
    builder = ModelBuilder()
    builder.add_shape_box(-1, xform=(0.0, 0.0, -0.5, 0.0, 0.0, 0.0, 1.0), hx=50.0, hy=5.0, hz=0.5)
    ball(builder, (0.0, 0.0, 0.1), mu=0.3)
    builder.joint_qd[0] = 2.0
    simulation = Simulation(worlds_of([builder]), 1.0 / 480.0)
    simulation.run(1.0)
    v, w = simulation.qd[0, :3], simulation.qd[0, 3:]
    np.testing.assert_allclose(v[0], 2.0 * 5.0 / 7.0, rtol=5.0e-3)
    np.testing.assert_allclose(w[1], v[0] / 0.1, rtol=5.0e-3)


def test_a_kinematic_body_pushes_a_ball():
    builder = ModelBuilder(gravity=0.0)
    pusher = ball(builder, (0.0, 0.0, 0.0))
    builder.body_flags[pusher] = 2
    ball(builder, (0.25, 0.0, 0.0))
    builder.joint_qd[0] = 0.5
    simulation = Simulation(worlds_of([builder]))
    simulation.run(0.5)
    np.testing.assert_allclose(simulation.qd.reshape(2, 6)[:, 0], [0.5, 0.5], rtol=1.0e-3)


def test_worlds_do_not_depend_on_each_other(rng):
    """A world has the same bits alone and among others, one of which is not a number."""

    def scene(worlds):
        return worlds_of([b for _, b in zip(range(worlds), piles, strict=False)])

    piles = []
    for _ in range(11):
        builder = ModelBuilder()
        builder.add_ground_plane()
        for i in range(3):
            ball(builder, (*rng.uniform(-0.02, 0.02, 2), 0.12 + 0.21 * i), mu=0.4)
        piles.append(builder)
    many, one = Simulation(scene(11)), Simulation(scene(1))
    q = many.q
    q[4, 0] = np.nan
    many.set_state(q)
    for simulation in (many, one):
        simulation.run(0.5)
    assert np.isnan(many.q[4]).any()
    assert np.isfinite(np.delete(many.q, 4, axis=0)).all()
    np.testing.assert_array_equal(many.q[0], one.q[0])


@pytest.mark.slow
def test_both_evaluators_give_the_same_bits(rng):
    simulation = Simulation(knots(rng, 2), dtype=wp.float32)
    model = simulation.model
    special = SolverFeatherstone(model, evaluator="specialised")
    _, qd = random_state(model, rng)
    states = []
    for solver in (simulation.solver, special):
        state = model.state()
        state.joint_qd.assign(qd)
        for _ in range(20):
            solver.step(state, state)
        states.append(state.joint_q.numpy())
    np.testing.assert_array_equal(*states)


def block(builder, place, half, density=1000.0) -> int:
    body = builder.add_body(xform=(*place, 0.0, 0.0, 0.0, 1.0))
    hx, hy, hz = half
    builder.add_shape_box(body, hx=hx, hy=hy, hz=hz, cfg=ShapeConfig(density=density, mu=0.0))
    return body


@precisions(2.0e-5, 1.0e-9)
def test_a_wedge_pushes_two_blocks_apart(rng, dtype, tolerance):
    """The blocks move with a tan(half angle), where a = F / (M + 2 m tan^2(half angle)) is the acceleration of the wedge."""
    slopes, forces, builders = np.tan(rng.uniform(0.2, 0.4, 4)), rng.uniform(50.0, 500.0, 4), []
    for slope in slopes:
        builder = ModelBuilder(gravity=0.0)
        builder.add_ground_plane(cfg=ShapeConfig(mu=0.0))
        # flat blocks, which the wedge does not tip
        for side in (-1.0, 1.0):
            block(builder, (side * 0.62, 0.0, 0.1), (0.6, 0.3, 0.1))
        points = [(x * slope, y, z) for y in (-0.2, 0.2) for x, z in ((0.0, 0.0), (1.0, 1.0), (-1.0, 1.0))]
        triangles = [0, 1, 2, 3, 5, 4, 0, 2, 5, 0, 5, 3, 1, 4, 5, 1, 5, 2, 0, 3, 4, 0, 4, 1]
        wedge = builder.add_body(xform=(0.0, 0.0, 0.2 - 0.02 / slope, 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_convex_hull(wedge, mesh=Mesh(np.array(points), np.array(triangles)), cfg=ShapeConfig(mu=0.0))
        builders.append(builder)
    simulation = Simulation(worlds_of(builders), 1.0 / 480.0, dtype=dtype)
    mass = simulation.model.body_mass.numpy().reshape(4, 3).astype(np.float64)
    wrench = np.zeros((4, 3, 6))
    wrench[:, 2, 2] = -forces
    simulation.push(wrench)
    seconds = 0.1
    simulation.run(seconds)
    velocity = simulation.velocities[..., :3]
    acceleration = forces / (mass[:, 2] + 2.0 * mass[:, 0] * slopes**2)
    np.testing.assert_allclose(velocity[:, 2, 2], -acceleration * seconds, rtol=0.01)
    np.testing.assert_allclose(velocity[:, 1, 0], acceleration * slopes * seconds, rtol=0.01)
    # both sides are pushed alike, as far as the sweeps converge; momentum is exact to rounding
    np.testing.assert_allclose(velocity[:, 0, 0], -velocity[:, 1, 0], rtol=1.0e-3)
    momentum = mass * velocity[..., 0]
    np.testing.assert_allclose(momentum.sum(axis=1), 0.0, atol=tolerance * np.abs(momentum).max())


def test_elastic_bounces_on_a_box_keep_energy(rng):
    builders = []
    for height in rng.uniform(0.2, 1.0, 4):
        builder = ModelBuilder()
        builder.add_shape_box(
            -1, xform=(0.0, 0.0, -0.5, 0.0, 0.0, 0.0, 1.0), hx=1.0, hy=1.0, hz=0.5, cfg=ShapeConfig(restitution=1.0)
        )
        ball(builder, (0.0, 0.0, 0.1 + height), restitution=1.0)
        builders.append(builder)
    simulation = Simulation(worlds_of(builders))

    def energy():
        return GRAVITY * (simulation.poses[:, 0, 2] - 0.1) + 0.5 * (simulation.velocities[:, 0, :3] ** 2).sum(axis=1)

    start = energy()
    seen = simulation.run(3.0, lambda: (energy(), simulation.velocities[:, 0, 2]))
    np.testing.assert_allclose(seen[:, 0], np.broadcast_to(start, seen[:, 0].shape), rtol=0.02)
    # each of them flew up again
    assert (seen[:, 1].max(axis=0) > 1.0).all()


def test_tilted_boxes_without_friction_keep_their_energy_in_elastic_impacts(rng):
    """An impact at a corner turns a box onto corners that are still above the ground."""
    builders = []
    for _ in range(8):
        builder = ModelBuilder()
        builder.default_shape_cfg.mu, builder.default_shape_cfg.restitution = 0.0, 1.0
        builder.add_ground_plane()
        axis = random_unit(rng) * rng.uniform(0.05, 0.15)
        body = builder.add_body(xform=(0.0, 0.0, rng.uniform(0.4, 0.6), *Rotation.from_rotvec(axis).as_quat()))
        # equal moments of inertia: the free flight keeps energy to rounding
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        builders.append(builder)
    simulation = Simulation(worlds_of(builders))
    mass, inertia = simulation.model.body_mass.numpy()[0], simulation.model.body_inertia.numpy()[0, 0, 0]

    def energy():
        v = simulation.velocities[:, 0]
        kinetic = 0.5 * mass * (v[:, :3] ** 2).sum(axis=1) + 0.5 * inertia * (v[:, 3:] ** 2).sum(axis=1)
        return kinetic + mass * GRAVITY * simulation.poses[:, 0, 2]

    start = energy()
    seen = simulation.run(2.0, lambda: (energy(), simulation.velocities[:, 0, 2]))
    np.testing.assert_allclose(seen[:, 0], np.broadcast_to(start, seen[:, 0].shape), rtol=0.02)
    assert (seen[:, 1].max(axis=0) > 1.0).all()


def tumbling(rng) -> ModelBuilder:
    """Bodies of several kinds that fall over each other."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for i in range(4):
        turn = Rotation.random(random_state=rng).as_quat()
        body = builder.add_body(xform=(*rng.uniform(-0.05, 0.05, 2), 0.2 + 0.2 * i, *turn))
        if i % 2:
            builder.add_shape_box(body, hx=0.1, hy=0.08, hz=0.06)
        else:
            builder.add_shape_cylinder(body, radius=0.08, half_height=0.1)
    builder.joint_qd[:] = rng.normal(size=24).tolist()
    return builder


def test_worlds_do_not_depend_on_their_order(rng):
    heaps = [tumbling(rng) for _ in range(48)]
    ends = []
    for order in (heaps, heaps[::-1]):
        simulation = Simulation(worlds_of(order), threads=1)
        simulation.run(0.5)
        assert np.isfinite(simulation.q).all()
        ends.append(simulation.q)
    np.testing.assert_array_equal(ends[0], ends[1][::-1])


def test_steps_leave_no_impulses_and_features_in_the_memory_of_workers(rng):
    """They would reach other worlds, because a worker steps one block of worlds after the other in the same memory."""
    simulation = Simulation(worlds_of([tumbling(rng) for _ in range(16)]), threads=1)
    (stepper,) = simulation.solver._steppers
    places, numbers = stepper.work.layout, stepper.work.numbers
    found = 0
    for _ in range(60):
        simulation.run(simulation.dt)
        memory = stepper.work.memory[0].numpy()
        found = max(found, stepper.kept_active.numpy()[0, 0])
        for name, size in (
            ("impulse", 3 * numbers["candidates"]),
            ("feature", numbers["candidates"] - numbers["first_paired"]),
        ):
            assert not memory[places[name] : places[name] + size].any()
    # the memory was used: the worlds of drawn seeds have 8 contacts and more
    assert found > 3


def test_an_elastic_impact_of_one_body_leaves_others_at_rest(rng):
    """A cube of restitution 1 lands on a corner, and a box of restitution 0 rests beside it."""
    builder = ModelBuilder()
    builder.default_shape_cfg.mu = 0.0
    builder.add_ground_plane()
    turn = Rotation.from_rotvec(random_unit(rng) * rng.uniform(0.05, 0.15)).as_quat()
    cube = builder.add_body(xform=(0.0, 0.0, rng.uniform(0.4, 0.6), *turn))
    builder.add_shape_box(cube, hx=0.1, hy=0.1, hz=0.1, cfg=ShapeConfig(mu=0.0, restitution=1.0))
    box = builder.add_body(xform=(3.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    simulation = Simulation(worlds_of([builder]))
    seen = simulation.run(1.0, lambda: simulation.velocities[0, :, 2])
    assert seen[:, 0].max() > 0.5
    # rounding and what is left of the softness of the contact; 4e-3 m/s if the impact scaled the forces of both bodies
    assert abs(seen[:, 1]).max() < 1e-4
