"""Momentum, centre of mass, energy and inertias: laws over random trees, an independent reference, and pinocchio."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, dynamics, eval_mass_matrix
from newton_like.dynamics import common
from newton_like.types import VelRepr

from .support import reference
from .support.kinematic_cases import every_kind, forest, gradient_errors
from .support.random_trees import random_inertia, random_state, random_tree
from .support.traced import run_by_numpy

REPRS = [None, *VelRepr]

# Sums over ten bodies of products of some hundred roundings of 1e-16, of numbers of up to a hundred.
CLOSE = dict(rtol=1e-11, atol=1e-10)
# Central differences: truncation of 1e-12 times third derivatives, and roundings of 1e-14 over steps of 1e-6 of numbers of up to 1e3.
STEP = 1e-6
SMOOTH = dict(rtol=1e-6, atol=2e-5)


@pytest.fixture
def by_numpy(monkeypatch):
    monkeypatch.setattr(common, "run", run_by_numpy)
    monkeypatch.setattr("newton_like.kinematics.run", run_by_numpy)


class Case:
    """One robot with coordinates and velocities, and its own arrays without padding."""

    def __init__(self, model, q, qd):
        self.model, self.q, self.qd, self.tree = model, q, qd, reference.Tree.from_model(model)
        self.state = self.at(q, qd)
        self.floating = self.tree.joint_type[0] in (reference.FREE, reference.DISTANCE)
        self.base = int(self.tree.joint_child[0])

    def at(self, q, qd):
        return SimpleNamespace(joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.array(qd, dtype=wp.float64))

    def get(self, function, *, state=None, **options) -> np.ndarray:
        """What a function gives for this robot."""
        (result,) = function(self.model, self.state if state is None else state, **options).numpy()
        return result

    def pose(self, q=None):
        """Position, centre of mass and rotation matrix of the first link."""
        pose = reference.body_poses(self.tree, self.q if q is None else q)[self.base]
        R = Rotation.from_quat(pose[3:]).as_matrix()
        return pose[:3], pose[:3] + R @ self.tree.body_com[self.base], R

    def place(self, repr, q=None):
        """Point and axes of a representation of the first link."""
        x, c, R = self.pose(q)
        point = {VelRepr.COM: c, VelRepr.INERTIAL: np.zeros(3)}.get(repr, x)
        return point, R if repr == VelRepr.BODY else np.eye(3)

    def velocities(self, repr, q=None, qd=None):
        """Generalised velocities in a representation."""
        q, qd = self.q if q is None else q, self.qd if qd is None else qd
        nu = qd.copy()
        if self.floating and repr is not None:
            v, w = np.split(reference.body_velocities(self.tree, q, qd)[self.base], 2)
            p, R = self.place(repr, q)
            nu[:3], nu[3:6] = R.T @ (v + np.cross(w, p - self.pose(q)[1])), R.T @ w
        return nu

    def along(self, value, qdd=0.0):
        """Derivative of value(q, qd) along a motion with accelerations qdd (of joint_qd)."""
        ends = [
            value(reference.displace(self.tree, self.q, self.qd, s * STEP), self.qd + s * STEP * qdd) for s in (1, -1)
        ]
        return (ends[0] - ends[1]) / (2 * STEP)


def cases(rng, armature=True):
    """Floating and fixed bases, all joint types."""
    trees = [random_tree(rng, floating=f, joints=n, armature=armature) for f, n in ((True, 7), (False, 7), (None, 5))]
    if armature:
        trees[0].joint_armature[:6] = rng.uniform(0.0, 0.1, 6).tolist()
    for tree in trees:
        tree.gravity = tuple(rng.normal(size=3))
        model = tree.finalize("cpu", dtype=wp.float64)
        yield Case(model, *random_state(model, rng))


def motion(p, R):
    """X that takes twists about the origin, world axes, to those at p along the columns of R."""
    X = np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = R.T
    X[:3, 3:] = -R.T @ reference.cross_matrix(p)
    return X


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
        for repr in REPRS:
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


@pytest.mark.parametrize(("vector", "jacobian"), PAIRS)
def test_jacobians_times_velocities(rng, by_numpy, vector, jacobian):
    """J nu is the quantity, whatever the representation of nu and that of the result."""
    for case in cases(rng):
        for out_repr in VelRepr:
            expected = case.get(vector, repr=out_repr)
            for repr in REPRS:
                J = case.get(jacobian, repr=repr, out_repr=out_repr)
                assert J.shape == (6, len(case.qd))
                np.testing.assert_allclose(J @ case.velocities(repr), expected, **CLOSE)


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
    """Point masses on a line have no angular velocity about it; a single one has none at all."""
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


def test_pinocchio_finds_the_same(rng, by_numpy):
    pin = pytest.importorskip("pinocchio")
    from .support.pinocchio_bridge import PinocchioBridge

    close = dict(rtol=1e-9, atol=1e-9)
    for _ in range(3):
        for floating in (True, False):
            # pinocchio has no armature of free bodies, nor one that turns
            model = random_tree(rng, floating=floating, armature=False).finalize("cpu", dtype=wp.float64)
            case = Case(model, *random_state(model, rng))
            bridge = PinocchioBridge(model)
            q = bridge.q_pin(case.q)
            T, drift = bridge.velocity_map(case.q, case.qd)
            v, robot, data = T @ case.qd, bridge.model, bridge.data
            pin.ccrba(robot, data, q, v)
            A = case.get(dynamics.centroidal_momentum_jacobian)
            np.testing.assert_allclose(A, data.Ag @ T, **close)
            np.testing.assert_allclose(case.get(dynamics.centroidal_momentum), data.hg.vector, **close)
            np.testing.assert_allclose(case.get(dynamics.locked_centroidal_inertia), data.Ig.matrix(), **close)
            pin.computeCentroidalMomentumTimeVariation(robot, data, q, v, drift)
            np.testing.assert_allclose(case.get(dynamics.centroidal_momentum_bias), data.dhg.vector, **close)
            J = pin.jacobianCenterOfMass(robot, data, q)
            np.testing.assert_allclose(case.get(dynamics.com_jacobian), J @ T, **close)
            pin.centerOfMass(robot, data, q, v, drift)
            np.testing.assert_allclose(case.get(dynamics.com_position), data.com[0], **close)
            np.testing.assert_allclose(case.get(dynamics.com_velocity), data.vcom[0], **close)
            np.testing.assert_allclose(case.get(dynamics.com_bias_acceleration), data.acom[0], **close)
            kinetic, potential = pin.computeKineticEnergy(robot, data, q, v), pin.computePotentialEnergy(robot, data, q)
            np.testing.assert_allclose(case.get(dynamics.kinetic_energy), kinetic, **close)
            np.testing.assert_allclose(case.get(dynamics.potential_energy), potential, **close)
