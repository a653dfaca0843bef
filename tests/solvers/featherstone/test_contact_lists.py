"""Lists of the contacts of a step with their forces: balance of momentum, sums, places, worlds, edits, capacity and errors."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import CollisionPipeline, Contacts, ModelBuilder, ModelFlags, ShapeConfig, ShapeFlags, assets, eval_fk
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_unit
from tests.support.simulate import GRAVITY, Simulation, worlds_of

DT = 1.0 / 240.0


class Listed:
    """The contacts of a list as NumPy arrays, of which `force` and `torque` act on shape 0."""

    def __init__(self, contacts):
        n = min(int(contacts.rigid_contact_count.numpy()[0]), contacts.rigid_contact_max)
        for name in ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1"):
            setattr(self, name, getattr(contacts, f"rigid_contact_{name}").numpy()[:n].copy())
        self.wrench = contacts.force.numpy()[:n].astype(np.float64)
        self.force, self.torque, self.count = self.wrench[:, :3], self.wrench[:, 3:], n


class Watched(Simulation):
    """A simulation that asks for contacts."""

    def __init__(self, builder, dt=DT, edit=None, **options):
        def ask(model):
            model.request_contact_attributes("force")
            if edit is not None:
                edit(model)

        super().__init__(builder, dt, edit=ask, **options)
        self.contacts = self.model.contacts()

    def listed(self) -> Listed:
        self.solver.update_contacts(self.contacts, self.state)
        assert self.contacts.dropped == 0
        return Listed(self.contacts)


def middle(poses, velocities, dt):
    """Poses of free bodies half a step before they have these poses and velocities; their frames are at their centres of mass."""
    turn = Rotation.from_rotvec(-0.5 * dt * velocities[:, 3:])
    return poses[:, :3] - 0.5 * dt * velocities[:, :3], turn * Rotation.from_quat(poses[:, 3:])


def heap(rng, turning: float) -> ModelBuilder:
    """Cubes and balls, whose inertia is the same about all axes, that fall on the ground, on fixed shapes and on each other."""
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(mu=rng.uniform(0.2, 1.0)))
    builder.add_shape_box(-1, xform=(0.3, 0.0, 0.05, 0, 0, 0, 1), hx=0.1, hy=0.5, hz=0.05)
    for i in range(6):
        cfg = ShapeConfig(mu=rng.uniform(0.2, 1.0), mu_torsional=turning, mu_rolling=turning, density=500.0)
        turn = Rotation.from_rotvec(rng.normal(size=3)).as_quat()
        body = builder.add_body(xform=(*rng.uniform(-0.15, 0.15, 2), 0.15 + 0.2 * i, *turn))
        if i % 2:
            builder.add_shape_sphere(body, radius=0.1, cfg=cfg)
        else:
            builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=cfg)
    return builder


def check_momentum(model, listed: Listed, before, after, poses) -> tuple:
    """Asserts that forces and torques of contacts change the velocities of bodies in a step, given the poses after it. Returns the places
    of bodies in the middle of the step, and their turns; the last is the world."""
    mass, inertia = model.body_mass.numpy(), model.body_inertia.numpy()[:, 0, 0]
    body = np.append(model.shape_body.numpy(), -1)
    place, turn = middle(poses, after, DT)
    force, torque = np.zeros((2, model.body_count + 1, 3))
    one, two = body[listed.shape0], body[listed.shape1]
    np.add.at(force, one, listed.force)
    np.add.at(torque, one, listed.torque)
    # the same wrench about the other centre of mass, with the opposite sign
    place, turn = np.append(place, np.zeros((1, 3)), axis=0), [*turn, Rotation.identity()]
    arm = place[one] - place[two]
    np.add.at(force, two, -listed.force)
    np.add.at(torque, two, -(listed.torque + np.cross(arm, listed.force)))
    change = after - before
    weight = np.outer(mass, [0.0, 0.0, -GRAVITY])
    size = GRAVITY * mass.max()
    np.testing.assert_allclose(mass[:, None] * change[:, :3] / DT, force[:-1] + weight, atol=2.0e-3 * size)
    np.testing.assert_allclose(inertia[:, None] * change[:, 3:] / DT, torque[:-1], atol=3.0e-4 * size)
    return place, turn


@pytest.mark.parametrize("turning", [0.0, 0.01])
def test_forces_and_torques_of_contacts_change_the_momentum_of_each_body(rng, turning):
    """m (v' - v) = dt (sum f + m g) and I (w' - w) = dt sum t, where shape 1 feels the opposite force at the same point."""
    simulation = Watched(worlds_of([heap(rng, turning) for _ in range(3)]))
    model = simulation.model
    size = GRAVITY * model.body_mass.numpy().max()
    body = np.append(model.shape_body.numpy(), -1)
    for _ in range(4):
        simulation.run(0.2)
        before = simulation.velocities.reshape(-1, 6)
        simulation.run(DT)
        after, poses = simulation.velocities.reshape(-1, 6), simulation.poses.reshape(-1, 7)
        listed = simulation.listed()
        place, turn = check_momentum(model, listed, before, after, poses)
        one, two = body[listed.shape0], body[listed.shape1]
        # both points are on the line of the normal, about the middle point where the force acts
        ends = [
            np.array([turn[b].apply(x) for b, x in zip(bodies, points, strict=True)]).reshape(-1, 3) + place[bodies]
            for bodies, points in ((one, listed.point0), (two, listed.point1))
        ]
        gap = np.einsum("ni,ni->n", ends[1] - ends[0], listed.normal)
        np.testing.assert_allclose(ends[1] - ends[0], gap[:, None] * listed.normal, atol=2.0e-6)
        x = 0.5 * (ends[0] + ends[1])
        lever = np.linalg.norm(listed.torque - np.cross(x - place[one], listed.force), axis=1)
        strength = np.linalg.norm(listed.force, axis=1)
        assert (lever <= 2.0 * turning * strength + 1.0e-5 * size).all()
        normal = np.einsum("ni,ni->n", listed.force, listed.normal)
        assert (normal <= 1.0e-4 * size).all(), "contacts push"
    assert listed.count > 20
    assert turning == 0.0 or lever.max() > 1.0e-3 * size


def test_sums_over_contacts_are_the_forces_on_shapes(rng):
    simulation = Watched(worlds_of([heap(rng, 0.0) for _ in range(2)]))
    simulation.run(0.7)
    listed, model = simulation.listed(), simulation.model
    total = np.zeros((model.shape_count, 3))
    np.add.at(total, listed.shape0, listed.force)
    np.add.at(total, listed.shape1, -listed.force)
    total[model.shape_body.numpy() < 0] = 0.0
    forces = simulation.solver.contact_forces().numpy()
    np.testing.assert_allclose(total, forces, atol=1.0e-5 * np.abs(forces).max())


def test_a_box_at_rest_feels_its_weight_at_its_corners():
    builder = ModelBuilder()
    builder.add_ground_plane()
    body = builder.add_body(xform=(0.4, -0.2, 0.3, 0, 0, 0, 1))
    builder.add_shape_box(body, hx=0.1, hy=0.2, hz=0.3)
    simulation = Watched(worlds_of([builder] * 3))
    simulation.run(1.0)
    listed, mass = simulation.listed(), simulation.model.body_mass.numpy()[0]
    assert listed.count == 12
    for w in range(3):
        part = slice(4 * w, 4 * w + 4)
        np.testing.assert_allclose(
            listed.force[part].sum(axis=0), [0, 0, -mass * GRAVITY], atol=1.0e-4 * mass * GRAVITY
        )
        np.testing.assert_allclose(listed.normal[part], [[0, 0, 1]] * 4)
        assert {tuple(x) for x in np.round(listed.point1[part], 4)} == {
            (x, y, np.float32(-0.3)) for x in np.float32([0.1, -0.1]) for y in np.float32([0.2, -0.2])
        }
        np.testing.assert_allclose(listed.point0[part, 2], 0.0, atol=1.0e-7)
        worlds, bodies = simulation.model.shape_world.numpy(), simulation.model.shape_body.numpy()
        assert (worlds[listed.shape0[part]] == w).all() and (bodies[listed.shape0[part]] == -1).all()
        assert (worlds[listed.shape1[part]] == w).all() and (bodies[listed.shape1[part]] == w).all()


def test_contacts_of_robots_on_a_slope_are_where_their_links_are(rng):
    """Joints, a tilted plane, margins: the points of balls are on their surfaces, and on the plane below them in the middle of the step."""
    normal = random_unit(rng) * [0.2, 0.2, 0.0] + [0, 0, 1.0]
    normal /= np.linalg.norm(normal)
    builder = ModelBuilder()
    cfg = ShapeConfig(margin=0.01, mu=0.3)
    builder.add_shape_plane(plane=(*normal, 0.0), cfg=cfg)
    chain, last, joints = [], -1, []
    for i in range(3):
        link = builder.add_link()
        builder.add_shape_sphere(link, xform=(0.0, 0.0, 0.0, 0, 0, 0, 1), radius=0.1 + 0.02 * i, cfg=cfg)
        if last < 0:
            joints.append(builder.add_joint_free(link))
        else:
            joints.append(builder.add_joint_revolute(last, link, axis=(0, 1, 0), parent_xform=(0.4, 0, 0, 0, 0, 0, 1)))
        chain.append(link)
        last = link
    builder.add_articulation(joints)
    builder.joint_q[:3] = (normal * 0.13).tolist()
    simulation = Watched(worlds_of([builder] * 2))
    simulation.run(0.5)
    q = simulation.q.copy()
    simulation.run(DT)
    listed, model = simulation.listed(), simulation.model
    assert listed.count >= 4
    radius = model.shape_scale.numpy()[listed.shape1, 0]
    np.testing.assert_allclose(np.linalg.norm(listed.point1, axis=1), radius, rtol=1.0e-5)
    np.testing.assert_allclose(listed.normal, np.broadcast_to(normal, (listed.count, 3)), atol=1.0e-6)
    np.testing.assert_allclose(listed.point0 @ normal, 0.0, atol=1.0e-6)
    np.testing.assert_allclose([listed.margin0, listed.margin1], 0.01)
    # the base of each world, a ball, is below its place in the middle of the step
    base = np.flatnonzero(np.isin(model.shape_body.numpy()[listed.shape1], [0, 3]))
    between = 0.5 * (q + simulation.q)[:, :3]
    along = listed.point0[base] - between
    np.testing.assert_allclose(along - np.outer(along @ normal, normal), 0.0, atol=1.0e-4)
    assert len(base) == 2


def test_worlds_do_not_mix(rng):
    """Each world has the same contacts, bit by bit, in a model of its own; those of a world are in one run."""
    seeds = rng.integers(2**31, size=3)
    builders = [heap(np.random.default_rng(seed), 0.0) for seed in seeds]
    together = Watched(worlds_of(builders))
    together.run(0.6)
    listed, model = together.listed(), together.model
    world = np.maximum(model.shape_world.numpy()[listed.shape0], model.shape_world.numpy()[listed.shape1])
    assert (np.diff(world) >= 0).all() and set(world) == {0, 1, 2}
    for w, builder in enumerate(builders):
        alone = Watched(worlds_of([builder]))
        alone.run(0.6)
        one, mine = alone.listed(), world == w
        assert one.count == mine.sum()
        for name in ("point0", "point1", "normal", "wrench"):
            assert np.array_equal(getattr(one, name), getattr(listed, name)[mine]), name


def falling() -> ModelBuilder:
    """A ball that rests on the ground, beside a box."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for i in range(2):
        body = builder.add_body(xform=(float(i), 0.0, 0.1, 0, 0, 0, 1))
        (builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1) if i else builder.add_shape_sphere(body, radius=0.1))
    return builder


def test_lists_without_contacts_are_empty():
    builder = falling()
    builder.joint_q[2], builder.joint_q[9] = 5.0, 6.0
    simulation = Watched(worlds_of([builder] * 2))
    assert simulation.listed().count == 0, "before the first step"
    simulation.run(0.1)
    assert simulation.listed().count == 0
    bare = ModelBuilder()
    bare.add_body(mass=1.0, inertia=np.eye(3))
    simulation = Watched(worlds_of([bare]))
    simulation.run(0.1)
    assert simulation.listed().count == 0


def test_contacts_beyond_the_capacity_are_counted():
    simulation = Watched(worlds_of([falling()] * 2))
    simulation.run(0.5)
    full, small = simulation.listed(), simulation.model.contacts(3)
    simulation.solver.update_contacts(small, simulation.state)
    assert full.count == 10 and small.dropped == 7
    forces = full.wrench.astype(np.float32)
    assert all((forces == force).all(axis=1).any() for force in small.force.numpy())


def test_the_state_of_the_last_step_is_the_default():
    simulation = Watched(worlds_of([falling()]))
    simulation.run(0.5)
    listed = simulation.listed()
    simulation.solver.update_contacts(simulation.contacts)
    again = Listed(simulation.contacts)
    assert np.array_equal(listed.point0, again.point0) and np.array_equal(listed.wrench, again.wrench)


def test_contacts_of_several_steps_are_those_of_the_last_one(rng):
    """substeps=3 with 3 dt lists what the last of three steps of dt lists."""
    seed, lists = rng.integers(2**31), []
    for count in (1, 3):
        simulation = Watched(worlds_of([heap(np.random.default_rng(seed), 0.0)]), count * DT, substeps=count)
        simulation.run(120 * DT)
        lists.append(simulation.listed())
    assert lists[0].count == lists[1].count > 3
    for name in ("point0", "point1", "normal", "wrench"):
        assert np.array_equal(getattr(lists[0], name), getattr(lists[1], name)), name


def test_reset_worlds_have_no_contacts():
    simulation = Watched(worlds_of([falling()] * 3))
    simulation.run(0.5)
    simulation.solver.reset(simulation.state, [1])
    listed = simulation.listed()
    assert listed.count == 10
    assert set(simulation.model.shape_world.numpy()[listed.shape1]) == {0, 2}


def test_edits_of_the_model_reach_the_list():
    simulation = Watched(worlds_of([falling()] * 2))
    model = simulation.model
    simulation.run(0.5)
    mass = model.body_mass.numpy()
    mass[0] *= 2.0
    model.body_mass.assign(mass)
    simulation.solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    simulation.run(1.0)
    listed = simulation.listed()
    ball = listed.shape1 == np.flatnonzero(model.shape_body.numpy() == 0)[0]
    np.testing.assert_allclose(listed.force[ball].sum(axis=0), [0, 0, -GRAVITY * mass[0]], rtol=1.0e-3, atol=1.0e-3)
    flags = model.shape_flags.numpy()
    flags[np.flatnonzero(model.shape_body.numpy() == 0)] &= ~int(ShapeFlags.COLLIDE_SHAPES)
    model.shape_flags.assign(flags)
    simulation.solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    with pytest.raises(ValueError, match="no step since"):
        simulation.listed()
    simulation.run(0.1)
    assert simulation.listed().count == 9


def test_contacts_must_be_requested_before_the_step():
    simulation = Simulation(worlds_of([falling()]))
    simulation.run(0.5)
    solver, model = simulation.solver, simulation.model
    before = model.contacts()
    assert before.force is None
    with pytest.raises(ValueError, match="request_contact_attributes"):
        solver.update_contacts(before)
    model.request_contact_attributes("force")
    with pytest.raises(ValueError, match="request_contact_attributes"):
        solver.update_contacts(model.contacts())
    simulation.run(DT)
    contacts = model.contacts()
    solver.update_contacts(contacts, simulation.state)
    assert contacts.rigid_contact_count.numpy()[0] == 5 and contacts.force.numpy().any()
    # places alone
    solver.update_contacts(before, simulation.state)
    assert before.rigid_contact_count.numpy()[0] == 5
    assert CollisionPipeline(model).contacts().force is not None


def test_found_contacts_have_no_forces():
    """A list that collide fills does not keep the forces of other contacts."""
    simulation = Watched(worlds_of([falling()]))
    simulation.run(0.5)
    simulation.listed()
    simulation.model.collide(simulation.state, simulation.contacts)
    assert simulation.contacts.rigid_contact_count.numpy()[0] == 5
    assert not simulation.contacts.force.numpy().any()


def test_wrong_arguments_are_named(rng):
    simulation = Watched(worlds_of([falling()]))
    simulation.run(DT)
    solver, model, other = simulation.solver, simulation.model, worlds_of([falling()] * 2).finalize("cpu")
    with pytest.raises(ValueError, match="attribute 'forces'"):
        model.request_contact_attributes("forces")
    with pytest.raises(TypeError, match="3"):
        model.request_contact_attributes(3)
    with pytest.raises(ValueError, match="contacts"):
        solver.update_contacts(other.contacts())
    with pytest.raises(TypeError, match="contacts"):
        solver.update_contacts(simulation.state)
    with pytest.raises(ValueError, match="state"):
        solver.update_contacts(simulation.contacts, other.state())
    with pytest.raises(TypeError, match="state"):
        solver.update_contacts(simulation.contacts, 3)
    with pytest.raises(ValueError, match="soft_contact_max"):
        Contacts(3, 2)
    with pytest.raises(ValueError, match="attribute 'impulse'"):
        Contacts(3, requested_attributes={"impulse"})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadruped.urdf", "humanoid.xml"])
def test_specialised_kernels_list_the_same_contacts(rng, name):
    """General and specialised steps have equal bits, and equal lists."""
    robot = ModelBuilder()
    add = robot.add_urdf if name.endswith("urdf") else robot.add_mjcf
    add(assets.path(name))
    robot.joint_q[2] = 1.0
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(robot, 9)
    lists = []
    for evaluator in ("general", "specialised"):
        model = scene.finalize("cpu", dtype=wp.float32)
        model.request_contact_attributes("force")
        solver, state, contacts = SolverFeatherstone(model, evaluator=evaluator), model.state(), model.contacts()
        velocity = state.joint_qd.numpy()
        velocity[:] = np.random.default_rng(7).normal(size=velocity.shape)
        state.joint_qd.assign(velocity)
        for _ in range(240):
            solver.step(state, state, dt=DT)
        solver.update_contacts(contacts, state)
        lists.append(Listed(contacts))
    assert lists[0].count == lists[1].count > 20
    for field in ("shape0", "shape1", "point0", "point1", "wrench"):
        assert np.array_equal(getattr(lists[0], field), getattr(lists[1], field)), field


def test_balls_and_capsules_roll_on_lists(rng):
    """They keep their height and their speed, at up to half a radian a step."""
    radius, worlds = rng.uniform(0.04, 0.08), 8
    for kind in ("sphere", "capsule"):
        world = ModelBuilder()
        body = world.add_body(xform=(0.0, 0.0, radius, 0.0, 0.0, 0.0, 1.0))
        if kind == "sphere":
            world.add_shape_sphere(body, radius=radius)
        else:
            along_y = (0.0, 0.0, 0.0, np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
            world.add_shape_capsule(body, xform=along_y, radius=radius, half_height=0.1)
        builder = ModelBuilder()
        builder.add_ground_plane()
        builder.replicate(world, worlds)
        model = builder.finalize("cpu")
        solver, state, contacts = SolverFeatherstone(model, evaluator="general"), model.state(), model.contacts()
        spin = rng.uniform(5.0, 120.0, worlds)
        velocities = np.zeros((worlds, 6))
        velocities[:, 0], velocities[:, 4] = spin * radius, spin
        state.joint_qd.assign(velocities.ravel())
        eval_fk(model, state.joint_q, state.joint_qd, state)
        for _ in range(120):
            model.collide(state, contacts)
            solver.step(state, state, contacts=contacts, dt=1 / 240)
        np.testing.assert_allclose(state.joint_q.numpy().reshape(worlds, 7)[:, 2], radius, rtol=1e-3)
        np.testing.assert_allclose(state.joint_qd.numpy().reshape(worlds, 6)[:, 4], spin, rtol=2e-3)
