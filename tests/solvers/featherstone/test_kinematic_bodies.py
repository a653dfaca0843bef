"""Kinematic bodies: they keep the velocity that they were given, bit by bit, and carry other bodies as if they had infinite mass."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import BodyFlags, JointDofConfig, ModelBuilder, ModelFlags, ShapeConfig
from newton_like.dynamics import forward_dynamics, mass_matrix
from newton_like.solvers import SolverFeatherstone
from tests.support import reference
from tests.support.mechanisms import mechanism, random_commands, random_start, same_robot
from tests.support.mechanisms import worlds_of as copies_of
from tests.support.mujoco_bridge import MujocoBridge
from tests.support.random_trees import random_state, random_transform, random_tree, random_unit
from tests.support.simulate import GRAVITY, Simulation, worlds_of

DT = 1.0 / 240.0
TREES = 24
BOTH = pytest.mark.parametrize("dtype", [wp.float32, wp.float64])


def trees_on_kinematic_roots(rng, **options) -> tuple[ModelBuilder, np.ndarray]:
    """A world for each of many random trees, of which two in three hang on a kinematic body, and which do."""
    builders = [random_tree(rng, joints=int(rng.integers(1, 9)), **options) for _ in range(TREES)]
    kinematic = np.arange(TREES) % 3 > 0
    for builder, prescribed in zip(builders, kinematic, strict=True):
        if prescribed:
            builder.body_flags[builder.joint_child[0]] = int(BodyFlags.KINEMATIC)
    return worlds_of(builders), kinematic


def prescribed_dofs(model) -> np.ndarray:
    """Which dofs move kinematic bodies, ``[dofs]`` bool."""
    flags, child = model.body_flags.numpy(), model.joint_child.numpy()
    return np.repeat(flags[child] == BodyFlags.KINEMATIC, np.diff(model.joint_qd_start.numpy()))


@pytest.mark.slow
def test_accelerations_are_those_of_a_tree_whose_root_does_not_accelerate(rng):
    """M qdd + bias = tau in the rows of the other dofs, and qdd = 0 for those of the kinematic root, with M and the forces of dense
    dynamics in NumPy and of MuJoCo. Joints of all types, forces on everything."""
    scene, _ = trees_on_kinematic_roots(rng, stiffness=True)
    simulation = Simulation(scene, 1.0e-7, dtype=wp.float64)
    model, prescribed = simulation.model, prescribed_dofs(simulation.model)
    assert 0 < prescribed.sum() < len(prescribed)
    q, qd = random_state(model, rng)
    joint_f, body_f = 3.0 * rng.normal(size=len(qd)), 3.0 * rng.normal(size=(model.body_count, 6))
    simulation.set_state(q, qd)
    simulation.control.joint_f.assign(joint_f)
    simulation.state.body_f.assign(body_f)
    simulation.run(simulation.dt)
    new = simulation.state.joint_qd.numpy()
    np.testing.assert_array_equal(new[prescribed], qd[prescribed])
    for w in range(TREES):
        tree = reference.Tree.from_model(model, w)
        free = ~prescribed[tree.dofs]
        here, speed = q[tree.coords], qd[tree.dofs]
        bias = reference.inverse_dynamics(tree, here, speed, np.zeros(tree.dof_count), body_f[tree.bodies])
        tau = reference.generalized_forces(tree, here, joint_f[tree.dofs])
        dense = reference.mass_matrix(tree, here), tau + reference.passive_forces(tree, here, speed) - bias
        bridge = MujocoBridge(model, world=w)
        mass = bridge.mass_matrix(here)
        mujoco = mass, mass @ bridge.forward_dynamics(here, speed, tau, body_f[tree.bodies])
        actual = ((new[tree.dofs] - speed) / simulation.dt)[free]
        for mass, force in (dense, mujoco):
            expected = np.linalg.solve(mass[np.ix_(free, free)], force[free])
            assert np.abs(actual - expected).max(initial=0.0) < 1e-4 * (1.0 + np.abs(expected).max(initial=0.0))


@BOTH
@pytest.mark.slow
def test_nothing_changes_the_velocity_of_a_kinematic_body(rng, dtype):
    """A robot with every kind of joint, shape, drive, limit, friction and coupling, in the ground and in the air, pushed at random: the
    velocity of its kinematic base keeps every bit, and its pose is the integral of that velocity."""
    robot, worlds = same_robot(mechanism), 6
    robot.body_flags[0] = int(BodyFlags.KINEMATIC)
    simulation = Simulation(copies_of(robot, worlds, slope=True), DT, dtype=dtype, angular_damping=0.5)
    model, keys = simulation.model, range(worlds)
    q, qd = random_start(model, keys)
    # not so low that limbs have no way out
    q[:, 2], qd[:, 2] = rng.uniform(0.1, 0.4, worlds), rng.uniform(0.0, 0.5, worlds)
    qd[::2, :6] = 0.0
    simulation.set_state(q, qd)
    start, given = simulation.q[:, :7].copy(), simulation.qd[:, :6].copy()
    steps = 240
    for i in range(steps):
        if i % 6 == 0:
            commands = random_commands(model, keys, i * DT)
            commands["joint_f"][:, :6] *= 1e4
            commands["body_f"][:, 0] *= 1e4
            for name, values in commands.items():
                array = getattr(simulation.state if name == "body_f" else simulation.control, name)
                array.assign(values.reshape(-1, 6) if name == "body_f" else values.ravel())
        simulation.run(DT)
        np.testing.assert_array_equal(simulation.qd[:, :6], given)
    assert np.median(np.abs(simulation.qd[:, 6:] - qd[:, 6:]).max(axis=1)) > 0.1
    rounding = steps * (1e-6 if dtype is wp.float32 else 1e-15)
    turned = Rotation.from_rotvec(steps * DT * given[:, 3:])
    expected = turned * Rotation.from_quat(start[:, 3:])
    assert (expected.inv() * Rotation.from_quat(simulation.q[:, 3:7])).magnitude().max() < 20 * rounding
    com = model.body_com.numpy().reshape(worlds, -1, 3)[:, 0].astype(float)

    def centre(q):
        return q[:, :3] + Rotation.from_quat(q[:, 3:7]).apply(com)

    moved = centre(simulation.q) - centre(start)
    np.testing.assert_allclose(moved, steps * DT * given[:, :3], atol=20 * rounding * (1.0 + np.abs(given).max()))


def cart(joint="prismatic", axis=(1.0, 0.0, 0.0), mass=0.0, gravity=(0.0, 0.0, -GRAVITY)) -> ModelBuilder:
    """A double pendulum on a kinematic body, which slides along an axis or turns about it, or is fixed."""
    builder = ModelBuilder(gravity=gravity)
    base = builder.add_link(mass=mass, inertia=mass * np.eye(3), is_kinematic=True)
    root = {} if joint == "fixed" else {"axis": axis}
    joints, parent = [getattr(builder, f"add_joint_{joint}")(-1, base, **root)], base
    for i in range(2):
        link = builder.add_link(mass=1.0 + i, com=(0.0, 0.0, -0.2), inertia=0.01 * np.eye(3))
        at = (0.1, 0.0, 0.0 if i == 0 else -0.4, 0.0, 0.0, 0.0, 1.0)
        joints.append(builder.add_joint_revolute(parent, link, axis=(0.0, 1.0, 0.3 * i), parent_xform=at))
        parent = link
    builder.add_articulation(joints)
    builder.joint_q[-2:] = [1.0, -0.5]
    return builder


def swing(builder, speed, seconds=2.0, dtype=wp.float64, dt=DT, **options):
    """Coordinates and velocities of the joints after every step, with the root at a velocity."""
    simulation = Simulation(builder, dt, dtype=dtype, **options)
    simulation.set_state(qd=[speed, *np.zeros(simulation.model.joint_dof_count - 1)])
    return simulation.run(seconds, lambda: np.concatenate([simulation.q[0], simulation.qd[0]]))


def test_a_pendulum_swings_on_a_cart_as_on_the_world(rng):
    """Galilei: at any constant velocity of the cart, and whatever its mass."""
    fixed = Simulation(cart("fixed"), DT, dtype=wp.float64)
    still = fixed.run(2.0, lambda: np.concatenate([fixed.q[0], fixed.qd[0]]))
    for mass in (0.0, float(rng.uniform(1.0, 1e4))):
        resting = swing(cart(axis=random_unit(rng), mass=mass), 0.0)
        np.testing.assert_allclose(resting[:, [1, 2, 4, 5]], still, atol=1e-10)
        speed = float(rng.uniform(0.5, 3.0))
        moving = swing(cart(axis=random_unit(rng), mass=mass), speed)
        np.testing.assert_array_equal(moving[:, 3], speed)
        # energy that the step adds to fast motion is taken back on carts at rest alone
        np.testing.assert_allclose(moving[:240, [1, 2]], still[:240, :2], atol=1e-3)


@pytest.mark.parametrize("speed", [1.0, 20.0])
def test_a_kinematic_root_at_rest_is_a_fixed_one(rng, speed):
    """Also where the links turn so fast that the solver takes back energy."""
    frames, axes, qd = (
        [random_transform(rng, 0.2) for _ in range(4)],
        [random_unit(rng) for _ in range(4)],
        speed * rng.normal(size=4),
    )
    paths = []
    for kind in ("fixed", "free", "ball"):
        builder = ModelBuilder()
        parent = builder.add_link(is_kinematic=True)
        joints = [getattr(builder, f"add_joint_{kind}")(parent=-1, child=parent)]
        for frame, axis in zip(frames, axes, strict=True):
            link = builder.add_link(mass=1.0, com=frame[:3], inertia=0.02 * np.eye(3))
            joints.append(builder.add_joint_revolute(parent, link, axis=axis, parent_xform=frame))
            parent = link
        builder.add_articulation(joints)
        simulation = Simulation(builder, DT, dtype=wp.float64)
        simulation.set_state(qd=[*np.zeros(simulation.qd.size - 4), *qd])
        paths.append(simulation.run(0.5, lambda s=simulation: s.qd[0, -4:].copy()))
    np.testing.assert_allclose(paths[1], paths[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(paths[2], paths[0], rtol=1e-9, atol=1e-9)


def test_an_accelerated_cart_is_felt_through_inertial_forces(rng):
    """On a cart with the acceleration a, the motion is that on a cart at rest in gravity less a. The joint forces -M a, of the columns of
    the root, make it so; the velocity of the cart is set before each step. Joint forces act in first order of the step."""
    acceleration, errors = float(rng.uniform(1.0, 4.0)), []
    for dt in (DT, 0.25 * DT):
        simulation = Simulation(cart(), dt, dtype=wp.float64)
        tilted = Simulation(cart(gravity=(-acceleration, 0.0, -GRAVITY)), dt, dtype=wp.float64)
        state, middle, worst = simulation.state, simulation.model.state(), 0.0
        for i in range(round(0.5 / dt)):
            qd = state.joint_qd.numpy().copy()
            qd[0] = acceleration * (i + 0.5) * dt
            state.joint_qd.assign(qd)
            # forces act in the middle of a step
            middle.joint_q.assign(state.joint_q.numpy() + 0.5 * dt * qd)
            inertia = mass_matrix(simulation.model, middle).numpy().reshape(3, 3)
            simulation.control.joint_f.assign([0.0, *-acceleration * inertia[1:, 0]])
            simulation.run(dt)
            tilted.run(dt)
            worst = max(worst, np.abs(simulation.q - tilted.q)[0, 1:].max())
        errors.append(worst)
        assert simulation.q[0, 0] == pytest.approx(0.5 * acceleration * 0.5**2, rel=1e-9)
    assert errors[0] < 0.01
    assert errors[1] < 0.4 * errors[0]


def test_a_bead_on_a_turning_rod_moves_out_by_the_centrifugal_force(rng):
    """r = r0 cosh(w t), in second order of the step."""
    turn, start = float(rng.uniform(1.0, 3.0)), float(rng.uniform(0.1, 0.5))
    errors = []
    for dt in (DT, 0.5 * DT):
        builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
        rod = builder.add_link(mass=1.0, inertia=np.eye(3), is_kinematic=True)
        bead = builder.add_link(mass=2.0, inertia=0.1 * np.eye(3))
        joints = [builder.add_joint_revolute(-1, rod, axis=(0, 0, 1))]
        joints.append(builder.add_joint_prismatic(rod, bead, axis=(1, 0, 0)))
        builder.add_articulation(joints)
        builder.joint_q[1] = start
        path = swing(builder, turn, 1.0, dt=dt)
        np.testing.assert_array_equal(path[:, 2], turn)
        errors.append(abs(path[-1, 1] / (start * np.cosh(turn)) - 1.0))
    assert errors[0] < 1e-3
    assert errors[1] < 0.3 * errors[0]


def test_a_body_that_no_force_holds_moves_straight_beside_a_turning_base(rng):
    """A FREE joint below a kinematic body that turns and moves: the velocity of the centre of mass in the world stays, in second order of
    the step."""
    frames, speed, errors = random_transform(rng, 0.3), rng.normal(size=12), []
    for dt in (DT, 0.5 * DT):
        builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
        base = builder.add_link(is_kinematic=True)
        body = builder.add_link(mass=1.0, com=(0.1, 0.0, 0.2), inertia=np.eye(3))
        joints = [builder.add_joint_free(base), builder.add_joint_free(body, parent=base, parent_xform=frames)]
        builder.add_articulation(joints)
        simulation = Simulation(builder, dt, dtype=wp.float64)
        simulation.set_state(qd=speed)
        velocities = simulation.run(0.5, lambda s=simulation: s.velocities[0, 1, :3].copy())
        errors.append(np.abs(velocities[-1] - velocities[0]).max())
    assert errors[0] < 0.01
    assert errors[1] < 0.3 * errors[0]


def test_a_pendulum_on_a_turning_base_has_its_equilibrium(rng):
    """cos(angle) = g / (w^2 l) for a point mass on a hinge that turns with the base."""
    length, turn = 0.5, float(rng.uniform(6.0, 8.0))
    builder = ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    base = builder.add_link(is_kinematic=True)
    bob = builder.add_link(mass=1.0, com=(0.0, 0.0, -length), inertia=np.zeros((3, 3)))
    joints = [builder.add_joint_revolute(-1, base, axis=(0, 0, 1))]
    joints.append(builder.add_joint_revolute(base, bob, axis=(0, 1, 0), damping=0.5))
    builder.add_articulation(joints)
    builder.joint_q[1] = 0.5
    path = swing(builder, turn, 10.0)
    assert np.cos(path[-1, 1]) == pytest.approx(GRAVITY / (turn**2 * length), rel=1e-4)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "ball", "d6", "distance", "free", "fixed"])
@pytest.mark.slow
def test_roots_of_all_types_keep_what_was_prescribed(rng, kind):
    """With drives, limits, springs, friction and armature of their own, none of which acts on them."""
    builder = ModelBuilder()
    root = builder.add_link(mass=1.0, inertia=np.eye(3), is_kinematic=True)
    tip = builder.add_link(mass=5.0, com=(0.3, 0.0, 0.0), inertia=0.1 * np.eye(3))
    settings = dict(target_ke=100.0, target_kd=10.0, damping=1.0, stiffness=5.0, friction=2.0, armature=0.1)
    limits = dict(limit_lower=-0.01, limit_upper=0.01, velocity_limit=0.1, effort_limit=1.0)
    axes = [JointDofConfig(axis=axis, **settings, **limits) for axis in np.eye(3)[:2]]
    add = {
        "revolute": lambda: builder.add_joint_revolute(-1, root, axis=(0, 0, 1), **settings, **limits),
        "prismatic": lambda: builder.add_joint_prismatic(-1, root, axis=(0, 0, 1), **settings, **limits),
        "ball": lambda: builder.add_joint_ball(-1, root, **settings),
        "d6": lambda: builder.add_joint_d6(-1, root, linear_axes=axes, angular_axes=axes),
        "distance": lambda: builder.add_joint_distance(-1, root, min_distance=0.1, max_distance=0.2),
        "free": lambda: builder.add_joint_free(root),
        "fixed": lambda: builder.add_joint_fixed(-1, root),
    }
    joints = [add[kind](), builder.add_joint_revolute(root, tip, axis=(0, 1, 0), **settings, limit_lower=-0.2)]
    builder.add_articulation(joints)
    for dtype in (wp.float32, wp.float64):
        simulation = Simulation(builder, DT, dtype=dtype, angular_damping=1.0)
        dofs = simulation.qd.shape[1] - 1
        speed = rng.normal(size=dofs)
        simulation.set_state(qd=[*speed, 0.0])
        simulation.push([[1e3, 2e3, 3e3, 1e2, 2e2, 3e2], [0.0] * 6])
        simulation.control.joint_f.assign([1e4] * dofs + [0.0])
        given, before = simulation.qd[0, :dofs].copy(), simulation.q.copy()
        simulation.run(0.5)
        np.testing.assert_array_equal(simulation.qd[0, :dofs], given)
        assert np.isfinite(simulation.q).all()
        assert kind == "fixed" or np.abs(simulation.q - before)[0, :-1].max() > 1e-5


def legged() -> ModelBuilder:
    """A base on a slider with a leg that drags its foot over the ground."""
    builder = ModelBuilder()
    base = builder.add_link(mass=3.0, inertia=0.1 * np.eye(3))
    leg = builder.add_link(mass=0.5, com=(0.0, 0.0, -0.1), inertia=0.005 * np.eye(3))
    limits = dict(limit_lower=-0.4, limit_upper=0.6, velocity_limit=8.0, effort_limit=20.0)
    joints = [builder.add_joint_prismatic(-1, base, axis=(1.0, 0.0, 0.0), parent_xform=(0, 0, 0.3, 0, 0, 0, 1))]
    joints.append(
        builder.add_joint_revolute(base, leg, axis=(0, 1, 0), target_ke=30.0, target_kd=1.0, friction=0.1, **limits)
    )
    builder.add_articulation(joints)
    builder.joint_q[1] = 0.59
    foot = ShapeConfig(density=0.0, mu=0.2, restitution=0.5)
    builder.add_shape_sphere(leg, xform=(0, 0, -0.3, 0, 0, 0, 1), radius=0.05, cfg=foot)
    builder.add_shape_sphere(base, radius=0.1)
    return builder


def run_legged(evaluator, dtype, flags, speed, steps=120, edit=None, **options):
    """Everything public of worlds of which each has its own flag and speed of the base, ``[step, world, n]``."""
    model = copies_of(legged(), len(flags)).finalize("cpu", dtype=dtype)
    solver = SolverFeatherstone(model, evaluator=evaluator, unsupported_contacts="ignore", **options)

    def assign(flags):
        values = model.body_flags.numpy()
        values[::2] = flags
        model.body_flags.assign(values)
        solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)

    state = model.state()
    assign(flags)
    state.joint_qd.assign(np.stack([speed, np.zeros(len(speed))], axis=1).ravel())
    path = []
    for i in range(steps):
        if edit is not None and i == steps // 2:
            assign(edit)
        solver.step(state, state, None, None, DT)
        force = solver.contact_forces().numpy()[model.shape_world.numpy() >= 0]
        arrays = (state.joint_q, state.joint_qd, state.body_q, state.body_qd, force)
        path.append(np.hstack([(a if a is force else a.numpy()).reshape(len(flags), -1) for a in arrays]))
    return np.array(path)


D, K = int(BodyFlags.DYNAMIC), int(BodyFlags.KINEMATIC)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_specialised_code_does_the_same_bit_by_bit_also_after_flags_were_edited(dtype):
    flags, edit = [D, K, K], [D, D, K]
    speed = np.array([0.0, 0.3, -0.2])
    general = run_legged("general", dtype, flags, speed, edit=edit)
    for varying in ((), ("body_flags",)):
        special = run_legged("specialised", dtype, flags, speed, edit=edit, varying=varying)
        assert general.tobytes() == special.tobytes()
    given = speed.astype(np.float32 if dtype is wp.float32 else np.float64)
    np.testing.assert_array_equal(general[:60, 1, 2], given[1])
    np.testing.assert_array_equal(general[:, 2, 2], given[2])
    assert np.abs(general[60:, 1, 2] - given[1]).max() > 0.1


@pytest.mark.slow
def test_worlds_do_not_feel_which_bodies_are_kinematic_in_others():
    flags, speed = np.array([K, D, K, D, D, K]), np.array([0.3, 0.0, -0.2, 0.2, -0.1, 0.0])
    together = run_legged("general", wp.float64, flags, speed)
    for w in range(len(flags)):
        alone = run_legged("general", wp.float64, flags[w : w + 1], speed[w : w + 1])
        assert alone.tobytes() == together[:, w : w + 1].tobytes()


def hopper(kinematic: bool, restitution: float) -> ModelBuilder:
    """Two links that hang on a base which moves down a slope, with balls at their ends."""
    builder = ModelBuilder()
    bounce = ShapeConfig(density=0.0, mu=0.6, restitution=restitution)
    base = builder.add_link(mass=1.0 if kinematic else 1e9, inertia=np.eye(3), is_kinematic=kinematic)
    slope = dict(axis=(0.6, 0.0, -0.8), parent_xform=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0))
    joints, parent = [builder.add_joint_prismatic(-1, base, **slope)], base
    for i in range(2):
        link = builder.add_link(mass=1.0, com=(0.0, 0.0, -0.15), inertia=0.01 * np.eye(3))
        at = (0.0, 0.0, -0.3 * i, 0.0, 0.0, 0.0, 1.0)
        joints.append(
            builder.add_joint_revolute(
                parent, link, axis=(0, 1, 0), parent_xform=at, friction=0.1, limit_lower=-1.2, limit_upper=1.2
            )
        )
        builder.add_shape_sphere(link, xform=(0, 0, -0.3, 0, 0, 0, 1), radius=0.03, cfg=bounce)
        parent = link
    builder.add_articulation(joints)
    return builder


@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_a_kinematic_base_is_a_base_of_infinite_mass(rng, restitution):
    """Impacts, friction and limits of links that hang on a moving base: a base of 1e9 kg, without gravity on it, moves them alike. The
    links are slow beside the step: where they are fast, bias forces are less exact on a heavy base, whose energy counts there."""
    worlds, steps = 64, 8
    q = np.stack([np.zeros(worlds), *rng.uniform(-1.25, 1.25, (2, worlds))], axis=1)
    qd = np.stack([rng.uniform(0.5, 2.0, worlds), *np.zeros((2, worlds))], axis=1)
    paths = []
    for kinematic in (True, False):
        scene = copies_of(hopper(kinematic, restitution), worlds)
        scene.shape_material_restitution[-1] = restitution
        simulation = Simulation(scene, DT / 8, dtype=wp.float64)
        simulation.set_state(q, qd)
        if not kinematic:
            simulation.push([[0.0, 0.0, 1e9 * GRAVITY, 0.0, 0.0, 0.0], *np.zeros((2, 6))])
        paths.append(simulation.run(steps * simulation.dt, lambda s=simulation: s.qd[:, 1:].copy()))
    error = np.abs(paths[0] - paths[1]).max(axis=(0, 2)) / (1.0 + np.abs(paths[1]).max(axis=(0, 2)))
    assert (np.abs(paths[1]).max(axis=(0, 2)) > 1.0).sum() > 5
    # typical errors are 1e-7 to 1e-5, by where limits and impacts fall within a step
    assert np.median(error) < 3e-5
    assert (error < 1e-3).mean() > 0.95


@pytest.mark.slow
def test_shapes_of_kinematic_bodies_touch_nothing_that_moves_them():
    """A kinematic base goes through the ground, and no contact force is told; what is welded to it does likewise."""
    builder = ModelBuilder()
    base = builder.add_link(mass=1.0, inertia=np.eye(3), is_kinematic=True)
    plate = builder.add_link(mass=1.0, inertia=np.eye(3))
    joints = [builder.add_joint_free(base), builder.add_joint_fixed(base, plate)]
    builder.add_articulation(joints)
    builder.joint_q[2] = 0.3
    builder.add_shape_sphere(base, radius=0.2)
    builder.add_shape_box(plate, hx=0.1, hy=0.1, hz=0.1)
    simulation = Simulation(copies_of(builder, 2), DT)
    simulation.set_state(qd=np.tile([0.0, 0.0, -1.0, 0.0, 0.0, 0.0], 2))
    forces = simulation.run(0.6, lambda: simulation.solver.contact_forces().numpy())
    assert not forces.any()
    # rounding of 144 steps in single precision
    np.testing.assert_allclose(simulation.q[:, 2], -0.3, atol=1e-5)
    contacts = simulation.model.contacts()
    simulation.model.collide(simulation.state, contacts)
    assert contacts.rigid_contact_count.numpy()[0] > 0
    simulation.solver.step(simulation.state, simulation.state, None, contacts, DT)
    assert simulation.solver.unused_contacts() == contacts.rigid_contact_count.numpy()[0]
    np.testing.assert_array_equal(simulation.qd[:, 2], -1.0)


def two_balls(**kinds) -> ModelBuilder:
    builder = ModelBuilder()
    for i, (name, kinematic) in enumerate(kinds.items()):
        body = builder.add_body(mass=1.0, inertia=np.eye(3), is_kinematic=kinematic, xform=(i, 0, 1, 0, 0, 0, 1))
        builder.add_shape_sphere(body, radius=0.1, label=name)
    return builder


@pytest.mark.slow
def test_kinematic_bodies_push_bodies_that_become_dynamic():
    simulation = Simulation(two_balls(paddle=True, other=True), dtype=wp.float64)
    model = simulation.model
    model.gravity.zero_()
    simulation.solver.notify_model_changed(ModelFlags.MODEL_PROPERTIES)
    q = model.joint_q.numpy()
    q[7] = 0.15
    simulation.set_state(q)
    simulation.run(DT)
    assert not simulation.state.joint_qd.numpy().any(), "two kinematic bodies do not touch"
    flags = model.body_flags.numpy()
    flags[1] = D
    model.body_flags.assign(flags)
    simulation.solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)
    simulation.run(DT)
    speeds = simulation.state.joint_qd.numpy().reshape(2, 6)[:, 0]
    assert speeds[0] == 0.0
    assert speeds[1] > 1.0e-3


def test_edited_flags_are_checked():
    simulation = Simulation(cart())
    model = simulation.model
    for value, body, message in ((K, 1, "kinematic"), (3, 0, "flags")):
        flags = np.full(3, D)
        flags[body] = value
        model.body_flags.assign(flags)
        with pytest.raises(ValueError, match=rf"body '{model.body_label[body]}' \(index {body}\).*{message}"):
            simulation.solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)
    model.body_flags.assign([K, D, D])
    simulation.solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)
    simulation.run(DT)


def test_a_body_without_mass_may_be_kinematic_and_not_dynamic():
    builder = ModelBuilder()
    builder.add_body(is_kinematic=True, label="ghost")
    simulation = Simulation(builder)
    simulation.set_state(qd=[1.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    simulation.run(1.0)
    np.testing.assert_allclose(simulation.q[0, :3], [1.0, 0.0, 0.0], atol=1e-4)
    simulation.model.body_flags.assign([D])
    with pytest.raises(ValueError, match="ghost"):
        simulation.solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)


def test_a_body_is_kinematic_or_dynamic_as_its_flag_says_now(rng):
    """Gravity accelerates it only while it is dynamic."""
    simulation = Simulation(two_balls(ball=True), DT, dtype=wp.float64)
    model, given = simulation.model, rng.normal(size=6)
    simulation.set_state(qd=given)
    for kind in (K, D, K):
        model.body_flags.assign([kind])
        simulation.solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)
        before = simulation.qd[0]
        simulation.run(0.25)
        fallen = before[2] - simulation.qd[0, 2]
        assert fallen == (0.0 if kind == K else pytest.approx(0.25 * GRAVITY))


def test_a_kinematic_body_that_worlds_share_moves_once():
    """A body of world -1, beside worlds of which each has a body of its own."""
    scene = two_balls(shared=True)
    for _ in range(3):
        scene.begin_world()
        scene.add_body(mass=1.0, inertia=np.eye(3), is_kinematic=False)
        scene.end_world()
    model = scene.finalize("cpu", dtype=wp.float64)
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    qd = np.zeros((4, 6))
    qd[:, 0] = 1.0
    state.joint_qd.assign(qd.ravel())
    for _ in range(24):
        solver.step(state, state, None, None, DT)
    poses = state.body_q.numpy()
    np.testing.assert_allclose(poses[0, :3], [24 * DT, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(poses[1:, 2], -0.5 * GRAVITY * (24 * DT) ** 2, rtol=0.05)


def test_the_dynamics_library_does_not_look_at_flags(rng):
    scene, _ = trees_on_kinematic_roots(rng)
    model = scene.finalize("cpu")
    state = model.state()
    state.joint_q.assign(random_state(model, rng)[0])
    results = []
    for flag in (K, D):
        flags = model.body_flags.numpy()
        flags[flags == K] = flag
        model.body_flags.assign(flags)
        model.notify_changed(ModelFlags.BODY_PROPERTIES)
        results.append(forward_dynamics(model, state).numpy().copy())
    np.testing.assert_array_equal(*results)


def test_flags_are_taken_over_in_the_worlds_of_the_mask():
    scene = copies_of(two_balls(ball=False), 3)
    scene.body_flags[2] = K
    simulation = Simulation(scene, DT, dtype=wp.float64)
    simulation.model.body_flags.fill_(K)
    simulation.solver.notify_model_changed(ModelFlags.BODY_PROPERTIES, [1])
    simulation.run(0.1)
    np.testing.assert_allclose(simulation.qd[:, 2], [-0.1 * GRAVITY, 0.0, 0.0])


@pytest.mark.parametrize("leader", [0, 1])
def test_a_joint_that_is_coupled_with_a_prescribed_one_follows_it(rng, leader):
    """Whichever of them is the mimic joint."""
    builder = cart("revolute")
    builder.joint_q[1:] = [0.1, 0.0]
    ratio = float(rng.uniform(0.5, 1.0))
    builder.set_joint_mimic(
        1 - leader, leader, coeffs=(0.1 if leader == 0 else -0.1 / ratio, ratio if leader == 0 else 1.0 / ratio)
    )
    path = swing(builder, 0.5, 1.0)
    np.testing.assert_array_equal(path[:, 3], 0.5)
    np.testing.assert_allclose(path[-1, 1], 0.1 + ratio * path[-1, 0], atol=1e-6)


def test_flags_that_are_edited_in_lots_of_worlds_act_in_each():
    """The array is edited in all worlds; edits name some of the worlds, one lot after the other."""
    builder = ModelBuilder()
    link = builder.add_link(is_kinematic=True, mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_prismatic(-1, link, axis=(0, 0, 1))])
    model = copies_of(builder, 4).finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    model.body_flags.fill_(int(BodyFlags.DYNAMIC))
    falling = np.zeros(4, bool)
    for lot in ([0, 1], [2], [3]):
        solver.notify_model_changed(ModelFlags.BODY_PROPERTIES, lot)
        falling[lot] = True
        state.joint_qd.zero_()
        solver.step(state, state, dt=0.01)
        np.testing.assert_array_equal(state.joint_qd.numpy() < -0.05, falling)
