"""Momentum, centre of mass, energy and inertias: laws over random trees, an independent reference, and pinocchio."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder, dynamics, eval_mass_matrix
from newton_like.dynamics.internal import common
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.dynamics_cases import Case, cases, motion
from tests.support.kinematic_cases import forest
from tests.support.paths import ROBOTS
from tests.support.random_trees import random_inertia, random_state, random_tree
from tests.support.traced import run_by_numpy, run_traced, run_traced_adjoint

REPRS = [None, *VelRepr]

# Sums over ten bodies of products of some hundred roundings of 1e-16, of numbers of up to a hundred.
CLOSE = dict(rtol=1e-11, atol=1e-10)
# Central differences: truncation of 1e-12 times third derivatives, and roundings of 1e-14 over steps of 1e-6 of numbers of up to 1e3.
SMOOTH = dict(rtol=1e-6, atol=2e-5)


def test_momenta_and_energies_are_those_of_the_bodies(rng, by_numpy):
    """Sums over the bodies, straight from the definitions, about every point and along all axes."""
    for case in cases(rng):
        tree, q, qd = case.tree, case.q, case.qd
        kinetic, potential = reference.kinetic_energy(tree, q, qd), reference.potential_energy(tree, q)
        np.testing.assert_allclose(case.get(dynamics.kinetic_energy), kinetic, **CLOSE)
        np.testing.assert_allclose(case.get(dynamics.potential_energy), potential, **CLOSE)
        np.testing.assert_allclose(case.get(dynamics.mechanical_energy), kinetic + potential, **CLOSE)
        at_origin = reference.momentum(tree, q, qd)
        mass = tree.body_mass.sum()
        com = tree.body_mass @ reference._centres(tree, q) / mass
        np.testing.assert_allclose(case.get(dynamics.com_position), com, **CLOSE)
        np.testing.assert_allclose(mass * case.get(dynamics.com_velocity), at_origin[:3], **CLOSE)
        for repr in VelRepr:
            p, R = case.place(repr)
            expected = np.linalg.inv(motion(p, R)).T @ at_origin
            np.testing.assert_allclose(case.get(dynamics.total_momentum, repr=repr), expected, **CLOSE)
            expected = np.linalg.inv(motion(com, R)).T @ at_origin
            np.testing.assert_allclose(case.get(dynamics.centroidal_momentum, repr=repr), expected, **CLOSE)


PAIRS = [
    (dynamics.total_momentum, dynamics.total_momentum_jacobian),
    (dynamics.centroidal_momentum, dynamics.centroidal_momentum_jacobian),
    (dynamics.average_velocity, dynamics.average_velocity_jacobian),
    (dynamics.average_centroidal_velocity, dynamics.average_centroidal_velocity_jacobian),
]


@pytest.mark.slow
@pytest.mark.parametrize(("vector", "jacobian"), PAIRS)
def test_jacobians_times_velocities(rng, by_numpy, vector, jacobian):
    """J nu is the quantity, for all representations of nu and of the result."""
    for case in cases(rng):
        for out_repr in VelRepr:
            expected = case.get(vector, repr=out_repr)
            for repr in REPRS:
                J = case.get(jacobian, repr=repr, out_repr=out_repr)
                assert J.shape == (6, len(case.qd))
                np.testing.assert_allclose(J @ case.velocities(repr), expected, **CLOSE)


@pytest.mark.slow
def test_jacobian_of_the_centre_of_mass(rng, by_numpy):
    """J nu is the derivative of the position; its bias that of the velocity, less J nu_dot."""
    for case in cases(rng):
        velocity = case.get(dynamics.com_velocity)
        moved = case.along(lambda q, qd, c=case: c.get(dynamics.com_position, state=c.at(q, qd)))
        np.testing.assert_allclose(velocity, moved, **SMOOTH)
        accelerations = reference.body_accelerations(case.tree, case.q, case.qd, np.zeros(len(case.qd)))
        mass = case.tree.body_mass
        expected = mass @ accelerations[:, :3] / mass.sum()
        np.testing.assert_allclose(case.get(dynamics.com_bias_acceleration), expected, **CLOSE)
        for repr in REPRS:
            J = case.get(dynamics.com_jacobian, repr=repr)
            np.testing.assert_allclose(J @ case.velocities(repr), velocity, **CLOSE)
            nu_dot = case.along(lambda q, qd, c=case, r=repr: c.velocities(r, q, qd))
            actual = J @ nu_dot + case.get(dynamics.com_bias_acceleration, repr=repr)
            np.testing.assert_allclose(actual, expected, **SMOOTH)


@pytest.mark.slow
def test_bias_of_the_centroidal_momentum(rng, by_numpy):
    """h_G_dot = A nu_dot + A_dot nu along a motion, in all representations of both."""
    for case in cases(rng):
        qdd = rng.normal(size=len(case.qd))
        for out_repr in (VelRepr.MIXED, VelRepr.BODY):
            rate = case.along(
                lambda q, qd, c=case, o=out_repr: c.get(dynamics.centroidal_momentum, state=c.at(q, qd), repr=o), qdd
            )
            for repr in REPRS:
                nu_dot = case.along(lambda q, qd, c=case, r=repr: c.velocities(r, q, qd), qdd)
                A = case.get(dynamics.centroidal_momentum_jacobian, repr=repr, out_repr=out_repr)
                bias = case.get(dynamics.centroidal_momentum_bias, repr=repr, out_repr=out_repr)
                np.testing.assert_allclose(A @ nu_dot + bias, rate, **SMOOTH)


def test_kinetic_energy_is_that_of_the_mass_matrix(rng, by_numpy):
    for case in cases(rng):
        H = eval_mass_matrix(case.model, case.state).numpy()[0]
        np.testing.assert_allclose(case.get(dynamics.kinetic_energy), 0.5 * case.qd @ H @ case.qd, **CLOSE)


@pytest.mark.slow
def test_momentum_of_a_floating_robot_is_the_first_rows_of_its_mass_matrix(rng, by_numpy):
    for case in cases(rng, armature=False):
        if case.floating:
            H = eval_mass_matrix(case.model, case.state).numpy()[0]
            units = np.eye(len(case.qd))
            for repr in VelRepr:
                T = np.stack([case.velocities(repr, qd=unit) for unit in units], axis=1)
                inverse = np.linalg.inv(T)
                J = case.get(dynamics.total_momentum_jacobian, repr=repr, out_repr=repr)
                np.testing.assert_allclose(J, (inverse.T @ H @ inverse)[:6], **CLOSE)
                # and the block of the base is the inertia of the locked robot
                np.testing.assert_allclose(J[:, :6], case.get(dynamics.locked_spatial_inertia, repr=repr), **CLOSE)


def test_power_is_the_rate_of_the_energy(rng, by_numpy):
    """tau . v + sum w . twist = dE/dt, gravity included in E and armature in the kinetic energy."""
    for case in cases(rng):
        tree, n = case.tree, len(case.qd)
        tree.joint_damping = np.zeros(n)
        tau, wrenches = rng.normal(size=n), rng.normal(size=(tree.body_count, 6))
        qdd = reference.forward_dynamics(tree, case.q, case.qd, tau, wrenches)
        rate = case.along(lambda q, qd, c=case: c.get(dynamics.mechanical_energy, state=c.at(q, qd)), qdd)
        twists = reference.body_velocities(tree, case.q, case.qd)
        np.testing.assert_allclose(rate, tau @ case.qd + (wrenches * twists).sum(), **SMOOTH)


def test_gravity_alone_changes_only_linear_momentum(rng, by_numpy):
    """A floating robot in free flight: A nu_dot + A_dot nu is (m g, 0)."""
    for case in cases(rng, armature=False):
        if case.tree.joint_type[0] == reference.FREE:
            case.tree.joint_damping = np.zeros(len(case.qd))
            qdd = reference.forward_dynamics(case.tree, case.q, case.qd)
            A, bias = (case.get(f) for f in (dynamics.centroidal_momentum_jacobian, dynamics.centroidal_momentum_bias))
            weight = case.tree.body_mass.sum() * case.tree.body_gravity[0]
            # accelerations come from a linear system of condition 1e4
            np.testing.assert_allclose(A @ qdd + bias, [*weight, 0, 0, 0], rtol=1e-8, atol=1e-8 * np.abs(bias).max())


@pytest.mark.slow
def test_inertias_of_links_and_subtrees(rng, by_numpy):
    """Of links from their parameters; of subtrees as sums; of the whole that of the first link's subtree."""
    for case in cases(rng):
        tree = case.tree
        poses = reference.body_poses(tree, case.q)
        at_origin = []
        for j in range(tree.joint_count):
            body = tree.joint_child[j]
            R = Rotation.from_quat(poses[body, 3:]).as_matrix()
            c, m = reference._centres(tree, case.q)[body], tree.body_mass[body]
            at_com = np.diag([m, m, m, 0.0, 0.0, 0.0])
            at_com[3:, 3:] = R @ tree.body_inertia[body] @ R.T
            X = motion(c, np.eye(3))
            at_origin.append(X.T @ at_com @ X)
        subtree = [at_origin[j].copy() for j in range(tree.joint_count)]
        owner = {int(tree.joint_child[j]): j for j in range(tree.joint_count)}
        for j in reversed(range(tree.joint_count)):
            if tree.joint_parent[j] >= 0:
                subtree[owner[int(tree.joint_parent[j])]] += subtree[j]
        for repr in VelRepr:
            single = case.get(dynamics.link_spatial_inertia, repr=repr)
            carried = case.get(dynamics.crb_inertia, repr=repr)
            for j in range(tree.joint_count):
                body = tree.joint_child[j]
                R = Rotation.from_quat(poses[body, 3:]).as_matrix()
                p = {VelRepr.COM: reference._centres(tree, case.q)[body], VelRepr.INERTIAL: np.zeros(3)}.get(
                    repr, poses[body, :3]
                )
                back = np.linalg.inv(motion(p, R if repr == VelRepr.BODY else np.eye(3)))
                np.testing.assert_allclose(single[j], back.T @ at_origin[j] @ back, **CLOSE)
                np.testing.assert_allclose(carried[j], back.T @ subtree[j] @ back, **CLOSE)
            whole = case.get(dynamics.locked_spatial_inertia, repr=repr)
            np.testing.assert_allclose(whole, carried[0], **CLOSE)
            R = case.place(repr)[1]
            back = np.linalg.inv(motion(case.get(dynamics.com_position), R))
            centroidal = case.get(dynamics.locked_centroidal_inertia, repr=repr)
            np.testing.assert_allclose(centroidal, back.T @ subtree[0] @ back, **CLOSE)
            # about the centre of mass the mass does not couple with the moments
            assert not centroidal[:3, 3:].any()


@pytest.mark.slow
def test_average_velocity_has_the_momentum(rng, by_numpy):
    """I v = h; and a robot that moves as one rigid body has the velocity of its base."""
    for case in cases(rng):
        still = np.zeros(len(case.qd))
        still[:6] = case.qd[:6]
        for repr in VelRepr:
            I, h = (case.get(f, repr=repr) for f in (dynamics.locked_spatial_inertia, dynamics.total_momentum))
            # solving costs the condition of I, of up to 1e4
            solved = dict(rtol=1e-9, atol=1e-9 * np.abs(h).max())
            np.testing.assert_allclose(I @ case.get(dynamics.average_velocity, repr=repr), h, **solved)
            I, h = (case.get(f, repr=repr) for f in (dynamics.locked_centroidal_inertia, dynamics.centroidal_momentum))
            np.testing.assert_allclose(I @ case.get(dynamics.average_centroidal_velocity, repr=repr), h, **solved)
            if case.floating:
                average = case.get(dynamics.average_velocity, repr=repr, state=case.at(case.q, still))
                np.testing.assert_allclose(average, case.velocities(repr, qd=still)[:6], rtol=1e-8, atol=1e-8)


def test_average_velocity_of_mass_without_inertia(rng, by_numpy):
    """The angular velocity of point masses on a line is zero about the line; that of a single point mass is zero."""
    for count in (1, 2):
        builder = ModelBuilder()
        parent, joints = -1, []
        for _ in range(count):
            link = builder.add_link(mass=rng.uniform(0.5, 2.0), com=rng.normal(size=3))
            joints.append(
                builder.add_joint_revolute(
                    parent, link, axis=rng.normal(size=3), parent_xform=(*rng.normal(size=3), 0, 0, 0, 1)
                )
            )
            parent = link
        builder.add_articulation(joints)
        model = builder.finalize("cpu", dtype=wp.float64)
        case = Case(model, *random_state(model, rng))
        inertia = case.get(dynamics.locked_centroidal_inertia)[3:, 3:]
        velocity, momentum = case.get(dynamics.average_centroidal_velocity), case.get(dynamics.centroidal_momentum)
        np.testing.assert_allclose(velocity[:3], case.get(dynamics.com_velocity), **CLOSE)
        np.testing.assert_allclose(inertia @ velocity[3:], momentum[3:], **CLOSE)
        a, b = reference._centres(case.tree, case.q)[[0, -1]]
        np.testing.assert_allclose(velocity[3:] @ (b - a), 0.0, atol=1e-10)
        if count == 1:
            np.testing.assert_allclose(velocity[3:], 0.0, atol=1e-10)


def compare_with_pinocchio(case: Case) -> None:
    """Momentum and its matrix and bias, the centre of mass, and energies."""
    import pinocchio as pin

    from tests.support.pinocchio_bridge import PinocchioBridge

    bridge = PinocchioBridge(case.model)
    q = bridge.q_pin(case.q)
    T, drift = bridge.velocity_map(case.q, case.qd)
    v, robot, data = T @ case.qd, bridge.model, bridge.data

    def close(function, expected):
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(case.get(function), expected, rtol=0.0, atol=1e-9 * scale)

    pin.ccrba(robot, data, q, v)
    close(dynamics.centroidal_momentum_jacobian, data.Ag @ T)
    close(dynamics.centroidal_momentum, data.hg.vector)
    close(dynamics.locked_centroidal_inertia, data.Ig.matrix())
    pin.computeCentroidalMomentumTimeVariation(robot, data, q, v, drift)
    close(dynamics.centroidal_momentum_bias, data.dhg.vector)
    close(dynamics.com_jacobian, pin.jacobianCenterOfMass(robot, data, q) @ T)
    pin.centerOfMass(robot, data, q, v, drift)
    close(dynamics.com_position, data.com[0])
    close(dynamics.com_velocity, data.vcom[0])
    close(dynamics.com_bias_acceleration, data.acom[0])
    close(dynamics.kinetic_energy, pin.computeKineticEnergy(robot, data, q, v))
    close(dynamics.potential_energy, pin.computePotentialEnergy(robot, data, q))


def test_pinocchio_finds_the_same(rng, by_numpy):
    pytest.importorskip("pinocchio")
    for _ in range(3):
        for floating in (True, False):
            # pinocchio has no armature of free bodies, nor one that turns; it forgets links that are welded to the world
            tree = random_tree(rng, floating=floating, armature=False)
            while tree.joint_type[0] == JointType.FIXED:
                tree = random_tree(rng, floating=floating, armature=False)
            model = tree.finalize("cpu", dtype=wp.float64)
            compare_with_pinocchio(Case(model, *random_state(model, rng)))


@pytest.mark.parametrize("name", ["go2", "panda", "simple_humanoid", "tiago"])
def test_pinocchio_finds_the_same_for_robots(rng, by_numpy, name):
    pytest.importorskip("pinocchio")
    files = sorted((ROBOTS / f"{name}_description").glob("*/*.urdf"))
    if not files:
        pytest.skip("example-robot-data is not there")
    builder = ModelBuilder()
    # welded links move with the world, which has no momentum in pinocchio
    builder.add_urdf(files[0], floating=True, hide_visuals=True)
    model = builder.finalize("cpu", dtype=wp.float64)
    compare_with_pinocchio(Case(model, *random_state(model, rng)))


VECTORS = [a for a, _ in PAIRS]
JACOBIANS = [b for _, b in PAIRS]
FUNCTIONS = [
    *VECTORS, *JACOBIANS, dynamics.centroidal_momentum_bias, dynamics.locked_spatial_inertia,
    dynamics.locked_centroidal_inertia, dynamics.com_position, dynamics.com_velocity, dynamics.com_jacobian,
    dynamics.com_bias_acceleration, dynamics.kinetic_energy, dynamics.potential_energy, dynamics.mechanical_energy,
    dynamics.link_spatial_inertia, dynamics.crb_inertia,
]  # fmt: skip


def options_of(function) -> dict:
    """Representations other than the default ones."""
    names = inspect.signature(function).parameters
    # where `out_repr` comes first, both are names of one argument
    order = list(names)
    both = "repr" in names and "out_repr" in names and order.index("out_repr") < order.index("repr")
    wanted = (("repr", VelRepr.INERTIAL), ("out_repr", VelRepr.BODY))[: 1 if both else 2]
    return {name: repr for name, repr in wanted if name in names}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [wp.float64, wp.float32])
def test_kernels_say_what_traces_say(rng, monkeypatch, dtype):
    """Two robots in three worlds: entries beyond the size of an articulation are zero, and `out` is reused."""
    scene = forest(rng, worlds=3, robots=2, joints=6)
    model, double = scene.finalize("cpu", dtype=dtype), scene.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    state, exact = (
        SimpleNamespace(joint_q=wp.array(q, dtype=d), joint_qd=wp.array(qd, dtype=d)) for d in (dtype, wp.float64)
    )
    # float32: some ten roundings of 6e-8 add up and cancel
    tolerance = 1e-12 if dtype is wp.float64 else 1e-4
    for function in FUNCTIONS:
        for options in ({}, options_of(function)):
            result = function(model, state, **options)
            assert result.dtype is dtype and result.shape[0] == 6
            with monkeypatch.context() as patch:
                patch.setattr(common, "run", run_by_numpy)
                expected = function(double, exact, **options).numpy()
            error = np.abs(result.numpy() - expected).max() / np.abs(expected).max()
            assert error < tolerance, (function.__name__, options)
            result.fill_(7.0)
            assert function(model, state, out=result, **options) is result
            assert np.abs(result.numpy() - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.slow
def test_nothing_is_lost_far_away(rng):
    """In float32, one kilometre from the origin, quantities relative to the robot have the same bits as at the origin."""
    model = random_tree(rng, floating=True, joints=6).finalize("cpu")
    q, qd = random_state(model, rng)
    far = q.copy()
    far[:3] += 1000.0
    states = [
        SimpleNamespace(joint_q=wp.array(x, dtype=wp.float32), joint_qd=wp.array(qd, dtype=wp.float32))
        for x in (q, far)
    ]
    absolute = (dynamics.com_position, dynamics.potential_energy, dynamics.mechanical_energy)
    for function in FUNCTIONS:
        if function not in absolute:
            near, there = (function(model, s).numpy() for s in states)
            np.testing.assert_array_equal(near, there)


def test_parameters_as_vectors_and_back(rng):
    """(m, c, I about c), or (m, m c, I about the link's origin), in which energies are linear."""
    model = forest(rng, worlds=2, robots=1, joints=5).finalize("cpu", dtype=wp.float64)
    old = [a.numpy().copy() for a in (model.body_mass, model.body_com, model.body_inertia)]
    plain, linear = (dynamics.inertial_parameters(model, linear=x).numpy() for x in (False, True))
    rows, cols = np.triu_indices(3)
    for k, (m, c, I) in enumerate(zip(*old, strict=True)):
        np.testing.assert_allclose(plain[k], [m, *c, *I[rows, cols]], rtol=1e-15)
        about_origin = I + m * (c @ c * np.eye(3) - np.outer(c, c))
        np.testing.assert_allclose(linear[k], [m, *(m * c), *about_origin[rows, cols]], rtol=1e-13, atol=1e-15)
    version = model.version
    for values, flag in ((plain, False), (linear, True)):
        for array in (model.body_mass, model.body_com, model.body_inertia):
            array.zero_()
        dynamics.set_inertial_parameters(model, values, linear=flag)
        for array, before in zip((model.body_mass, model.body_com, model.body_inertia), old, strict=True):
            np.testing.assert_allclose(array.numpy(), before, rtol=1e-12, atol=1e-14)
    assert model.version == version + 2
    np.testing.assert_allclose(model.body_inv_mass.numpy(), 1.0 / old[0], rtol=1e-12)


CHAINED = (JointType.REVOLUTE, JointType.PRISMATIC, JointType.BALL, JointType.D6)
"""Joints whose velocities do not depend on where centres of mass are."""


def test_energy_is_linear_in_the_linear_parameters(rng, by_numpy):
    """The energies that the bodies have one by one add up."""
    tree = random_tree(rng, joints=5, types=CHAINED, floating=False, armature=False)
    model = tree.finalize("cpu", dtype=wp.float64)
    case = Case(model, *random_state(model, rng))
    values = dynamics.inertial_parameters(model, linear=True).numpy()
    whole, share = case.get(dynamics.mechanical_energy), 0.0
    for k in range(len(values)):
        one = np.zeros_like(values)
        one[k] = values[k]
        dynamics.set_inertial_parameters(model, one, linear=True)
        share += case.get(dynamics.mechanical_energy)
    np.testing.assert_allclose(share, whole, **CLOSE)


@pytest.mark.slow
def test_gradients_reach_the_parameters(rng):
    """Through the tape to vectors of ten numbers, against the exact difference of a function that is linear in them."""
    tree = random_tree(rng, joints=3, types=CHAINED, floating=False)
    model = tree.finalize("cpu", dtype=wp.float64, requires_grad=True)
    q, qd = random_state(model, rng)
    state = SimpleNamespace(joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.array(qd, dtype=wp.float64))
    start = dynamics.inertial_parameters(model, linear=True).numpy()
    values = wp.array(start, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        dynamics.set_inertial_parameters(model, values, linear=True)
        h = dynamics.total_momentum(model, state)
    seed = rng.normal(size=6)
    h.grad.assign(seed[None])
    tape.backward()
    # small, because inertias that no body has are refused
    way = 1.0e-3 * rng.uniform(-1.0, 1.0, start.shape) * np.abs(start)
    dynamics.set_inertial_parameters(model, start + way, linear=True)
    difference = (dynamics.total_momentum(model, state).numpy() - h.numpy())[0] @ seed
    # linear: no truncation, and cancellation of some 1e-14 of numbers of one to ten
    np.testing.assert_allclose((values.grad.numpy() * way).sum(), difference, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_gradients_of_every_function(rng, monkeypatch):
    """By q, qd, masses, centres of mass and inertias, along a random direction, against central differences."""
    model = random_tree(rng, joints=5).finalize("cpu", dtype=wp.float64)
    case = Case(model, *random_state(model, rng))
    asked = []

    def run(model, program, arrays, mask=None):
        asked.append(program)

    monkeypatch.setattr(common, "run", run)
    for function in FUNCTIONS:
        function(model, case.state, **options_of(function))
    n, numbers = model.body_count, (model.body_mass, model.body_com, model.body_inertia)
    values = [a.numpy().copy() for a in numbers]
    way_q, way_qd = rng.normal(size=len(case.q)), rng.normal(size=len(case.qd))
    # of some hundredth of the numbers themselves
    ways = [0.01 * rng.normal(size=a.shape) for a in values]
    ways[2] = ways[2] + ways[2].transpose(0, 2, 1)
    rows, cols = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)
    way = np.concatenate([ways[0][:, None], ways[1], ways[2][:, rows, cols]], axis=1)

    def put(step):
        for array, value, direction in zip(numbers, values, ways, strict=True):
            array.assign(value + step * direction)
        model.notify_changed()

    assert len(asked) == len(FUNCTIONS)
    for function, program in zip(FUNCTIONS, asked, strict=True):
        inputs = [case.q, case.qd][: len(program.inputs)]
        (size,) = (f.length(model) for f in program.outputs)
        seed = rng.normal(size=size)
        *gradients, _ = run_traced_adjoint(model, program, inputs, [seed])
        actual = sum(g @ w for g, w in zip(gradients[:-1], (way_q, way_qd), strict=False))
        actual += (gradients[-1].reshape(n, 10) * way).sum()
        ends = []
        for step in (1e-6, -1e-6):
            put(step)
            moved = [case.q + step * way_q, case.qd + step * way_qd][: len(inputs)]
            ends.append(run_traced(model, program, moved)[0] @ seed)
        put(0.0)
        expected = (ends[0] - ends[1]) / 2e-6
        # cancellation of 1e-15 over 1e-6 of sums of up to 1e3, and third derivatives times 1e-12
        scale = max(1.0, abs(expected), *np.abs(ends))
        assert abs(actual - expected) < 1e-6 * scale, function.__name__


def test_masses_and_inertias_by_world(rng, by_numpy):
    """An edit of one world, some or all counts in just these."""
    scene = ModelBuilder()
    tree = random_tree(rng, joints=4, armature=False)
    scene.replicate(tree, 3)
    model = scene.finalize("cpu", dtype=wp.float64)
    q = np.tile(random_state(tree.finalize("cpu"), rng)[0], 3)
    state = SimpleNamespace(
        joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.zeros(model.joint_dof_count, dtype=wp.float64)
    )

    def masses():
        return dynamics.locked_spatial_inertia(model, state).numpy()[:, 0, 0]

    before = masses()
    body = tree.joint_child[2]
    old = tree.body_mass[body]
    name = tree.body_label[body]
    dynamics.set_link_mass(model, name, old + 1.0, world=1)
    np.testing.assert_allclose(masses() - before, [0.0, 1.0, 0.0], atol=1e-12)
    dynamics.set_link_mass(model, 2, [old + 2.0, old + 3.0], world=[2, 0])
    np.testing.assert_allclose(masses() - before, [3.0, 1.0, 2.0], atol=1e-12)
    dynamics.set_link_mass(model, name, old)
    np.testing.assert_allclose(masses(), before, rtol=1e-13)
    inertia = np.stack([random_inertia(rng, old) for _ in range(3)])
    dynamics.set_link_inertia(model, name, inertia)
    given = dynamics.link_spatial_inertia(model, state, repr=VelRepr.COM).numpy()[:, 2, 3:, 3:]
    for world, I in enumerate(inertia):
        np.testing.assert_allclose(np.linalg.eigvalsh(given[world]), np.linalg.eigvalsh(I), rtol=1e-10)


def test_wrong_arguments_are_refused(rng, by_numpy):
    model = forest(rng, worlds=2, joints=4).finalize("cpu")
    state = model.state()
    with pytest.raises(ValueError, match=r"repr='world'.*None.*VelRepr.COM"):
        dynamics.total_momentum(model, state, repr="world")
    with pytest.raises(ValueError, match=r"out_repr=None"):
        dynamics.locked_spatial_inertia(model, state, out_repr=None)
    with pytest.raises(ValueError, match="out_repr=9"):
        dynamics.centroidal_momentum_jacobian(model, state, out_repr=9)
    with pytest.raises(ValueError, match=r"out.*\(1,\).*\(4,\)"):
        dynamics.kinetic_energy(model, state, out=wp.zeros(1, dtype=wp.float32, device="cpu"))
    with pytest.raises(TypeError, match=r"out.*float64.*float32"):
        dynamics.com_position(model, state, out=wp.zeros((4, 3), dtype=wp.float64, device="cpu"))
    # Two worlds have an even number of coordinates; a body has seven.
    body = ModelBuilder()
    body.add_body(mass=1.0, inertia=np.eye(3))
    with pytest.raises(ValueError, match=r"state.joint_q .*shape"):
        dynamics.crb_inertia(model, body.finalize("cpu").state())
    with pytest.raises(ValueError, match=r"values.*\(3, 10\).*\(16, 10\)"):
        dynamics.set_inertial_parameters(model, np.zeros((3, 10)))
    with pytest.raises(ValueError, match=r"values.*finite"):
        dynamics.set_inertial_parameters(model, np.full((16, 10), np.nan))
    with pytest.raises(TypeError, match=r"linear.*True.*False"):
        dynamics.inertial_parameters(model, linear="yes")
    with pytest.raises(KeyError, match="link 'tree_0_link_7'"):
        dynamics.set_link_mass(model, "tree_0_link_7", 1.0)
    with pytest.raises(IndexError, match="world 2"):
        dynamics.set_link_mass(model, "tree_0_link_0", 1.0, world=2)
    with pytest.raises(ValueError, match=r"world 0.*link 3"):
        dynamics.set_link_mass(model, 3, 1.0)
    with pytest.raises(ValueError, match=r"mass.*\(3,\).*\(\).*\(2,\)"):
        dynamics.set_link_mass(model, "tree_0_link_0", [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"link 'tree_0_link_0' \(body \d+\): .*mass -1\b"):
        dynamics.set_link_mass(model, "tree_0_link_0", -1.0)
    with pytest.raises(ValueError, match="triangle inequality"):
        dynamics.set_link_inertia(model, "tree_0_link_0", np.diag([1.0, 1.0, 3.0]))
    with pytest.raises(TypeError, match="inertia"):
        dynamics.set_link_inertia(model, "tree_0_link_0", "heavy")
