"""Mass and Coriolis matrices, bias and gravity forces, inverse and forward dynamics: laws over random trees, definitions, pinocchio."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder, dynamics, eval_inverse_dynamics
from newton_like.dynamics import forces
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.dynamics_cases import STEP, Case, cases, motion
from tests.support.kinematic_cases import forest
from tests.support.paths import ROBOTS
from tests.support.random_trees import random_state, random_tree
from tests.support.traced import run_by_numpy

REPRS = [None, *VelRepr]
METHODS = ["aba", "crb"]

# Some hundred roundings of 1e-16 in sums of a dozen terms, relative to the largest: about 1e-13.
EXACT = 1e-11
# Solutions of linear systems: the same times the condition of the mass matrices of these trees, 1e2 to 1e4.
SOLVED = 1e-8
# Central differences with steps of 1e-6 of numbers of 1 to 1e3: truncation of 1e-12 times third derivatives, roundings of 1e-14 / 1e-6.
SMOOTH = 1e-6


def close(actual, expected, tolerance=EXACT, scale=1.0):
    """Equal but for `tolerance` times the largest entry, or `scale` where that is larger."""
    size = max(scale, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * size)


def wrenches(case, rng, repr):
    """Random wrenches on links: as functions take them, and as the reference does (by body, world axes, about the centre of mass)."""
    tree = case.tree
    body_f = 3.0 * rng.normal(size=(tree.body_count, 6))
    poses = reference.body_poses(tree, case.q)
    given = np.zeros_like(body_f)
    for b, pose in enumerate(poses):
        R = Rotation.from_quat(pose[3:]).as_matrix()
        c = pose[:3] + R @ tree.body_com[b]
        p = {VelRepr.COM: c, VelRepr.INERTIAL: np.zeros(3)}.get(repr, pose[:3])
        axes = R if repr == VelRepr.BODY else np.eye(3)
        force, torque = body_f[b, :3], body_f[b, 3:] + np.cross(c - p, body_f[b, :3])
        given[b] = np.concatenate([axes.T @ force, axes.T @ torque])
    return given, body_f


def representations(case):
    """All where there is a velocity to represent."""
    return REPRS if case.floating else [None, VelRepr.BODY]


def base_map(case, repr, q=None):
    """The matrix that takes velocities of the joints to those with the base's in a representation."""
    n = len(case.qd)
    return np.stack([case.velocities(repr, q, unit) for unit in np.eye(n)], axis=1)


def accelerations(case, repr, qdd):
    """Derivative of the velocities in a representation, along a motion with accelerations qdd of the joints."""
    return case.along(lambda q, qd: case.velocities(repr, q, qd), qdd)


# --------------------------------------------------------------------------------------------------- definitions


@pytest.mark.slow
def test_matrices_and_forces_follow_from_the_definitions(rng, by_numpy):
    """In the joints' velocities: agrees with d'Alembert's principle summed over bodies, for all joint types, with armature."""
    for case in cases(rng):
        tree, q, qd = case.tree, case.q, case.qd
        M = reference.mass_matrix(tree, q)
        close(case.get(dynamics.mass_matrix), M)
        close(case.get(dynamics.mass_matrix_inverse), np.linalg.inv(M), SOLVED)
        close(case.get(dynamics.bias_forces), reference.bias_forces(tree, q, qd))
        close(case.get(dynamics.gravity_forces), reference.bias_forces(tree, q, 0.0 * qd))
        qdd = rng.normal(size=len(qd))
        for repr in VelRepr:
            given, body_f = wrenches(case, rng, repr)
            expected = reference.inverse_dynamics(tree, q, qd, qdd, body_f)
            options = dict(link_forces=given, link_forces_repr=repr)
            close(case.get(dynamics.inverse_dynamics, joint_acceleration=qdd, **options), expected)
            for method in METHODS:
                found = case.get(dynamics.forward_dynamics, joint_forces=expected, method=method, **options)
                close(found, qdd, SOLVED)


@pytest.mark.slow
def test_forces_as_controls_take_them(rng, by_numpy):
    """`eval_inverse_dynamics` gives world wrenches at the centre of mass for every FREE and DISTANCE joint."""
    for case in cases(rng):
        qdd = rng.normal(size=len(case.qd))
        joint_f = eval_inverse_dynamics(case.model, case.state, wp.array(qdd, dtype=wp.float64)).numpy()
        expected = reference.inverse_dynamics(case.tree, case.q, case.qd, qdd)
        close(reference.generalized_forces(case.tree, case.q, joint_f), expected)
        at_rest = eval_inverse_dynamics(case.model, case.state).numpy()
        close(reference.generalized_forces(case.tree, case.q, at_rest), case.get(dynamics.bias_forces))


@pytest.mark.slow
def test_gravity_forces_are_the_slope_of_the_potential_energy(rng, by_numpy):
    for case in cases(rng):
        for repr in representations(case):
            back = np.linalg.inv(base_map(case, repr))

            def energy(step, back=back, case=case):
                return reference.potential_energy(case.tree, reference.displace(case.tree, case.q, back @ step, 1.0))

            slope = [(energy(STEP * unit) - energy(-STEP * unit)) / (2.0 * STEP) for unit in np.eye(len(case.qd))]
            # INERTIAL turns move bodies by lever times angle: energies of 1e2 J, rounded at 1e-14 / 1e-6
            close(case.get(dynamics.gravity_forces, repr=repr), slope, SMOOTH)


# ------------------------------------------------------------------------------------------------ representations


@pytest.mark.slow
def test_kinetic_energy_is_the_same_in_every_representation(rng, by_numpy):
    for case in cases(rng):
        expected = reference.kinetic_energy(case.tree, case.q, case.qd)
        for repr in representations(case):
            nu = case.velocities(repr)
            close(0.5 * nu @ case.get(dynamics.mass_matrix, repr=repr) @ nu, expected)


@pytest.mark.slow
def test_representations_are_transformed_as_the_formulas_say(rng, by_numpy):
    """From BODY, with nu_B = T nu: M = T' M_B T, C = T' (M_B T_dot + C_B T), h = T' (h_B + M_B T_dot nu), g = T' g_B."""
    case = next(cases(rng))
    x, c, R = case.pose()
    v, w = np.split(reference.body_velocities(case.tree, case.q, case.qd)[case.base], 2)
    v = v + np.cross(w, x - c)
    M, C = (case.get(f, repr=VelRepr.BODY) for f in (dynamics.mass_matrix, dynamics.coriolis_matrix))
    h, g = (case.get(f, repr=VelRepr.BODY) for f in (dynamics.bias_forces, dynamics.gravity_forces))
    W, n = reference.cross_matrix(w), len(case.qd)
    rotation, zero = motion(np.zeros(3), R), np.zeros((3, 3))
    at_origin = np.block([[W, reference.cross_matrix(v - np.cross(w, x))], [zero, W]])
    arm, moving = reference.cross_matrix(c - x), reference.cross_matrix(np.cross(w, c - x))
    com = np.block([[np.eye(3), arm], [zero, np.eye(3)]])
    com_rate = np.block([[-W, moving - W @ arm], [zero, -W]])
    rates = {
        VelRepr.BODY: (np.eye(6), np.zeros((6, 6))),
        VelRepr.MIXED: (rotation, -rotation @ np.block([[W, zero], [zero, W]])),
        VelRepr.INERTIAL: (motion(x, R), -motion(x, R) @ at_origin),
        VelRepr.COM: (rotation @ com, rotation @ com_rate),
    }
    for repr, (T6, rate6) in rates.items():
        T, rate = np.eye(n), np.zeros((n, n))
        T[:6, :6], rate[:6, :6] = T6, rate6
        nu = case.velocities(repr)
        close(T @ nu, case.velocities(VelRepr.BODY))
        close(case.get(dynamics.mass_matrix, repr=repr), T.T @ M @ T)
        close(case.get(dynamics.coriolis_matrix, repr=repr), T.T @ (M @ rate + C @ T))
        close(case.get(dynamics.bias_forces, repr=repr), T.T @ (h + M @ rate @ nu))
        close(case.get(dynamics.gravity_forces, repr=repr), T.T @ g)
        acceleration = rng.normal(size=n)
        turned = T @ acceleration + rate @ nu
        close(
            case.get(dynamics.inverse_dynamics, joint_acceleration=acceleration, repr=repr),
            T.T @ case.get(dynamics.inverse_dynamics, joint_acceleration=turned, repr=VelRepr.BODY),
        )


@pytest.mark.slow
def test_accelerations_are_the_derivatives_of_the_velocities(rng, by_numpy):
    """Accelerations in every representation agree with the joints' accelerations, for forward and inverse dynamics."""
    for case in cases(rng):
        tau = 3.0 * rng.normal(size=len(case.qd))
        qdd = case.get(dynamics.forward_dynamics, joint_forces=tau)
        for repr in representations(case):
            there = base_map(case, repr)
            given = np.linalg.solve(there.T, tau)
            nu_dot = case.get(dynamics.forward_dynamics, joint_forces=given, repr=repr)
            close(nu_dot, accelerations(case, repr, qdd), SMOOTH)
            close(case.get(dynamics.inverse_dynamics, joint_acceleration=nu_dot, repr=repr), given, SOLVED)


# ------------------------------------------------------------------------------------------------------ identities


def test_inverse_and_forward_dynamics_undo_each_other(rng, by_numpy):
    """RNEA(FD(tau)) = tau, ABA = CRB, and M nu_dot + h - J' f = tau, in every representation of base and wrenches."""
    for case in cases(rng):
        tau = 3.0 * rng.normal(size=len(case.qd))
        for repr, of_forces in zip(representations(case), rng.permutation([*VelRepr, VelRepr.COM]), strict=False):
            given, _ = wrenches(case, rng, VelRepr(of_forces))
            options = dict(link_forces=given, link_forces_repr=VelRepr(of_forces), repr=repr)
            aba, crb = (
                case.get(dynamics.forward_dynamics, joint_forces=tau, method=method, **options) for method in METHODS
            )
            close(aba, crb, SOLVED)
            close(
                case.get(dynamics.inverse_dynamics, joint_acceleration=aba, **options), tau, SOLVED, np.abs(aba).max()
            )
            M = case.get(dynamics.mass_matrix, repr=repr)
            pushed = case.get(dynamics.inverse_dynamics, **options)
            close(M @ aba, tau - pushed, SOLVED, np.abs(M).max() * np.abs(aba).max())


@pytest.mark.slow
def test_inverse_of_the_mass_matrix(rng, by_numpy):
    for case in cases(rng):
        for repr in representations(case):
            M, inverse = (case.get(f, repr=repr) for f in (dynamics.mass_matrix, dynamics.mass_matrix_inverse))
            np.testing.assert_array_equal(M, M.T)
            close(inverse, inverse.T)
            close(M @ inverse, np.eye(len(M)), SOLVED)


@pytest.mark.slow
def test_coriolis_matrix(rng, by_numpy):
    """C nu = h - g, and the rate of the mass matrix is C + C'."""
    for case in cases(rng):
        for repr in representations(case):
            C = case.get(dynamics.coriolis_matrix, repr=repr)
            bias = case.get(dynamics.bias_forces, repr=repr) - case.get(dynamics.gravity_forces, repr=repr)
            close(C @ case.velocities(repr), bias)

            def mass(q, qd, repr=repr, case=case):
                return case.get(dynamics.mass_matrix, state=case.at(q, qd), repr=repr)

            rate = case.along(mass)
            close(C + C.T, rate, SMOOTH, np.abs(C).max())


def test_coriolis_matrix_of_a_double_pendulum_is_that_of_the_books(rng, by_numpy):
    """The Christoffel symbols (Spong, Hutchinson and Vidyasagar 2006, section 7.3): C = s [[-qd2, -qd1 - qd2], [qd1, 0]]."""
    builder = ModelBuilder()
    m, l1, l2 = rng.uniform(0.5, 2.0, 3)
    first, second = (builder.add_link(mass=m, inertia=np.diag([0.1, 0.1, 0.1])) for _ in range(2))
    joints = [
        builder.add_joint_revolute(-1, first, axis="y", child_xform=(-l1, 0, 0, 0, 0, 0, 1)),
        builder.add_joint_revolute(first, second, axis="y", child_xform=(-l2, 0, 0, 0, 0, 0, 1)),
    ]
    builder.add_articulation(joints)
    model = builder.finalize("cpu", dtype=wp.float64)
    q, qd = rng.uniform(-3.0, 3.0, 2), rng.normal(size=2)
    s = m * l1 * l2 * np.sin(q[1])
    # the second link hangs at the first one's centre of mass, at l1
    expected = s * np.array([[-qd[1], -qd[0] - qd[1]], [qd[0], 0.0]])
    close(Case(model, q, qd).get(dynamics.coriolis_matrix), expected)


def test_power_is_the_rate_of_the_energy(rng, by_numpy):
    """tau . nu + sum of wrenches . twists = d/dt of kinetic and potential energy."""
    for case in cases(rng):
        tree, tau = case.tree, 3.0 * rng.normal(size=len(case.qd))
        given, body_f = wrenches(case, rng, VelRepr.BODY)
        qdd = case.get(dynamics.forward_dynamics, joint_forces=tau, link_forces=given, link_forces_repr=VelRepr.BODY)
        power = tau @ case.qd + np.sum(body_f * reference.body_velocities(tree, case.q, case.qd))

        def energy(q, qd, tree=tree):
            return reference.kinetic_energy(tree, q, qd) + reference.potential_energy(tree, q)

        close(case.along(energy, qdd), power, SMOOTH, 1e2)


@pytest.mark.slow
def test_wrenches_by_body_and_by_link_are_the_same(rng, by_numpy):
    """The order of bodies differs from that of joints."""
    for case in cases(rng):
        tau, body_f = rng.normal(size=len(case.qd)), rng.normal(size=(case.tree.body_count, 6))
        by_link = body_f[case.tree.joint_child][None]
        kind = wp.spatial_vectord
        for method in METHODS:
            results = [
                case.get(dynamics.forward_dynamics, joint_forces=tau, link_forces=f, method=method)
                for f in (body_f, by_link, wp.array(body_f, dtype=kind))
            ]
            np.testing.assert_array_equal(results[0], results[1])
            np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.slow
def test_forces_in_frames_are_wrenches_of_links(rng, by_numpy):
    """Their power agrees with the frame's velocity in every representation. They are added to earlier wrenches, or replace them."""
    for case in cases(rng):
        link = int(rng.integers(case.tree.body_count))
        offset = [*rng.normal(size=3), *Rotation.random(None, rng).as_quat()]
        frame = (link, offset)
        names = list(VelRepr)
        before = rng.normal(size=(1, case.tree.body_count, 6))
        for repr, of_links in product(names, names):
            f = rng.normal(size=6)
            options = dict(repr=repr, link_forces_repr=of_links)
            added = case.get(dynamics.frame_forces, frames=frame, forces=f, **options)
            twist = case.get(dynamics.link_velocity, link=link, repr=of_links)
            carried = case.get(dynamics.frame_velocity, frame=frame, repr=repr)
            close(added[link] @ twist, f @ carried)
            assert not np.delete(added, link, axis=0).any()
            twice = case.get(
                dynamics.frame_forces, frames=[frame, frame], forces=np.stack([f, f]), link_forces=before, **options
            )
            close(twice, before[0] + 2.0 * added)
            replaced = case.get(
                dynamics.frame_forces, frames=frame, forces=f[None], link_forces=before, replace=True, **options
            )
            close(replaced[link], added[link])
            np.testing.assert_array_equal(np.delete(replaced, link, 0), np.delete(before[0], link, 0))
        push = rng.normal(size=3)
        as_frame = case.get(dynamics.frame_forces, frames=(link, [*offset[:3], 0, 0, 0, 1]), forces=[*push, 0, 0, 0])
        close(case.get(dynamics.point_forces, links=link, points=[offset[:3]], forces=[push]), as_frame)


# ------------------------------------------------------------------------------------------------------- pinocchio

# Both are exact to a few hundred roundings, relative to the largest number.
PINOCCHIO = 1e-9


def pinocchio_bridge(case):
    pytest.importorskip("pinocchio")
    from tests.support.pinocchio_bridge import PinocchioBridge

    return PinocchioBridge(case.model)


def compare_with_pinocchio(case, rng):
    bridge = pinocchio_bridge(case)
    q, qd = case.q, case.qd
    vector = rng.normal(size=len(qd))
    size = np.abs(bridge.mass_matrix(q)).max()
    close(case.get(dynamics.mass_matrix), bridge.mass_matrix(q), PINOCCHIO)
    close(case.get(dynamics.bias_forces), bridge.bias_forces(q, qd), PINOCCHIO, size)
    close(case.get(dynamics.gravity_forces), bridge.bias_forces(q, 0.0 * qd), PINOCCHIO, size)
    tau = bridge.inverse_dynamics(q, qd, vector)
    close(case.get(dynamics.inverse_dynamics, joint_acceleration=vector), tau, PINOCCHIO, size)
    for method in METHODS:
        expected = bridge.forward_dynamics(q, qd, tau)
        close(case.get(dynamics.forward_dynamics, joint_forces=tau, method=method), expected, PINOCCHIO)


def test_pinocchio_finds_the_same(rng, by_numpy):
    for _ in range(4):
        model = random_tree(rng, joints=7).finalize("cpu", dtype=wp.float64)
        compare_with_pinocchio(Case(model, *random_state(model, rng)), rng)


@pytest.mark.parametrize("name", ["go2", "panda", "simple_humanoid", "tiago"])
@pytest.mark.parametrize("floating", [True, False])
def test_pinocchio_finds_the_same_of_robots(rng, by_numpy, name, floating):
    files = sorted((ROBOTS / f"{name}_description").glob("*/*.urdf"))
    if not files:
        pytest.skip("example-robot-data is not there")
    builder = ModelBuilder()
    builder.add_urdf(files[0], floating=floating, hide_visuals=True)
    model = builder.finalize("cpu", dtype=wp.float64)
    compare_with_pinocchio(Case(model, *random_state(model, rng)), rng)


def test_pinocchio_finds_the_same_coriolis_matrix(rng, by_numpy):
    """Of joints whose axes are fixed in a link, for which it is right; armature moves with no link and has no part in it."""
    pin = pytest.importorskip("pinocchio")
    kinds = [JointType.PRISMATIC, JointType.REVOLUTE, JointType.BALL, JointType.FREE, JointType.FIXED]
    for _ in range(4):
        model = random_tree(rng, joints=8, types=kinds, armature=False).finalize("cpu", dtype=wp.float64)
        case = Case(model, *random_state(model, rng))
        bridge = pinocchio_bridge(case)
        T = bridge.velocity_map(case.q)[0]
        q, v = bridge.q_pin(case.q), T @ case.qd
        M = pin.crba(bridge.model, bridge.data, q)
        M = np.triu(M) + np.triu(M, 1).T
        C = pin.computeCoriolisMatrix(bridge.model, bridge.data, q, v)
        expected = T.T @ (M @ map_rate(case, bridge) + C @ T)
        close(case.get(dynamics.coriolis_matrix), expected, PINOCCHIO)


def map_rate(case, bridge):
    """Derivative of the bridge's `velocity_map`: R' = [w] R for the turn R from child to parent anchor."""
    tree, rate = case.tree, np.zeros((bridge.model.nv, len(case.qd)))
    for j, s, v, _, to in bridge._blocks():
        kind = tree.joint_type[j]
        if kind == reference.BALL:
            W = reference.cross_matrix(case.qd[v])
            rate[to, v] = -Rotation.from_quat(case.q[s]).as_matrix().T @ W
        if kind in (reference.FREE, reference.DISTANCE):
            R = Rotation.from_quat(case.q[s][3:]).as_matrix()
            W = reference.cross_matrix(case.qd[v][3:])
            arm = reference.cross_matrix(R @ reference.com_in_child_anchor(tree, j))
            zero = np.zeros((3, 3))
            rate[to, v] = np.block([[-R.T @ W, -R.T @ arm @ W], [zero, -R.T @ W]])
    return rate


# --------------------------------------------------------------------------------------------------------- kernels


SOLUTIONS = (1, 6, 7)
"""Places of the mass matrix's inverse and of forward dynamics among the results of `every_function`."""


def every_function(model, state, rng):
    """The results of every public function, with one launch of its kernel each."""
    n, count = model.max_dofs_per_articulation, model.articulation_count
    links = model.max_joints_per_articulation
    vector = rng.normal(size=(count, n))
    f = rng.normal(size=(count, links, 6))
    options = dict(link_forces=f, link_forces_repr=VelRepr.BODY, repr=VelRepr.MIXED)
    frames = [(1, [0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]), 2]
    return [
        dynamics.mass_matrix(model, state, repr=VelRepr.INERTIAL),
        dynamics.mass_matrix_inverse(model, state, repr=VelRepr.BODY),
        dynamics.coriolis_matrix(model, state, repr=VelRepr.COM),
        dynamics.bias_forces(model, state, repr=VelRepr.BODY),
        dynamics.gravity_forces(model, state),
        dynamics.inverse_dynamics(model, state, vector, **options),
        *(dynamics.forward_dynamics(model, state, vector, method=m, **options) for m in METHODS),
        dynamics.frame_forces(model, state, frames, f[:, :2], link_forces=f),
        eval_inverse_dynamics(model, state, rng.normal(size=model.joint_dof_count)),
    ]


# Float32 rounds at 6e-8. Solutions multiply their roundings by the condition of the mass matrix, which is seldom above 1e3.
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [(wp.float64, 1e-10), (wp.float32, 1e-4)])
def test_kernels_say_what_traces_say(rng, monkeypatch, dtype, tolerance):
    scene = forest(rng, worlds=3, robots=2, joints=5)
    model = scene.finalize("cpu", dtype=dtype)
    exact = scene.finalize("cpu", dtype=wp.float64)
    q, qd = (x.astype(np.float32).astype(np.float64) for x in random_state(model, rng))

    def state(real):
        return SimpleNamespace(joint_q=wp.array(q, dtype=real), joint_qd=wp.array(qd, dtype=real))

    seed = int(rng.integers(2**31))
    actual = every_function(model, state(dtype), np.random.default_rng(seed))
    from newton_like.dynamics.internal import common

    monkeypatch.setattr(common, "run", run_by_numpy)
    monkeypatch.setattr(forces, "run", run_by_numpy)
    expected = every_function(exact, state(wp.float64), np.random.default_rng(seed))
    # FREE joints of links turn about centres of mass and so on: columns of any size, which a factorisation does not mind
    scaled = [m / np.sqrt(np.outer(np.diag(m), np.diag(m))) for m in matrices_of(exact, state(wp.float64))]
    # five units of rounding times a condition of 300 are the 1e-4 of single precision
    conditions = [max(1.0, np.linalg.cond(m) / 3e2) for m in scaled]
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        assert a.dtype is dtype
        if a.ndim == 1:
            close(a.numpy(), e.numpy(), tolerance)
            continue
        for one, other, condition in zip(a.numpy(), e.numpy(), conditions, strict=True):
            close(one, other, tolerance * (condition if i in SOLUTIONS else 1.0))


def matrices_of(model, state):
    """The mass matrix of each articulation, without padding."""
    for m in dynamics.mass_matrix(model, state).numpy():
        n = np.count_nonzero(np.diag(m))
        yield m[:n, :n]


def test_selected_articulations_alone_are_written(rng):
    model = forest(rng, worlds=2, robots=2, joints=4).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    state = SimpleNamespace(joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.array(qd, dtype=wp.float64))
    joint_f = wp.full(model.joint_dof_count, 7.0, dtype=wp.float64)
    assert eval_inverse_dynamics(model, state, None, joint_f, mask=[True, False, False, True]) is joint_f
    whole, some = eval_inverse_dynamics(model, state).numpy(), joint_f.numpy()
    starts = model.joint_qd_start.numpy()[model.articulation_start.numpy()]
    np.testing.assert_array_equal(some[starts[1] : starts[3]], 7.0)
    np.testing.assert_array_equal(some[: starts[1]], whole[: starts[1]])
    np.testing.assert_array_equal(some[starts[3] :], whole[starts[3] :])


@pytest.mark.slow
def test_no_digits_are_lost_far_from_the_origin(rng):
    """A floating robot at 1 km gives the same bits as at the origin, but where base velocities move with a lever of that length."""
    model = random_tree(rng, joints=5, floating=True).finalize("cpu")
    q, qd = random_state(model, rng)
    far = q.copy()
    far[:3] += 1000.0
    tau = rng.normal(size=model.joint_dof_count)

    def results(q):
        state = SimpleNamespace(joint_q=wp.array(q, dtype=wp.float32), joint_qd=wp.array(qd, dtype=wp.float32))
        for repr in (None, VelRepr.COM, VelRepr.MIXED, VelRepr.BODY):
            yield dynamics.mass_matrix_inverse(model, state, repr=repr)
            yield dynamics.bias_forces(model, state, repr=repr)
            yield dynamics.forward_dynamics(model, state, tau, np.ones((1, 5, 6)), repr=repr)

    for a, b in zip(results(far), results(q), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


# -------------------------------------------------------------------------------------------------------- bad input


def test_bad_input_is_named(rng, by_numpy):
    model = random_tree(rng, joints=4, floating=True).finalize("cpu", dtype=wp.float64)
    case = Case(model, *random_state(model, rng))
    state, n = case.state, len(case.qd)

    def refuses(error, message, function, *args, **options):
        with pytest.raises(error, match=message):
            function(model, state, *args, **options)

    for f in (
        dynamics.mass_matrix, dynamics.mass_matrix_inverse, dynamics.coriolis_matrix, dynamics.bias_forces,
        dynamics.gravity_forces, dynamics.inverse_dynamics, dynamics.forward_dynamics,
    ):  # fmt: skip
        refuses(ValueError, "repr='world'", f, repr="world")
        refuses(ValueError, "^out .*shape", f, out=wp.zeros((1, 2), dtype=wp.float64))
        refuses(TypeError, "out .*float32", f, out=wp.zeros((1, n), dtype=wp.float32))
        with pytest.raises(TypeError, match="joint_q"):
            f(model, SimpleNamespace(joint_q=[0.0], joint_qd=state.joint_qd))
    refuses(ValueError, "joint_acceleration .*shape", dynamics.inverse_dynamics, np.zeros(n + 1))
    refuses(ValueError, "joint_acceleration .*finite", dynamics.inverse_dynamics, [np.nan] * n)
    refuses(TypeError, "joint_acceleration .*array", dynamics.inverse_dynamics, ["a"] * n)
    for f in (dynamics.inverse_dynamics, dynamics.forward_dynamics):
        refuses(ValueError, "link_forces .*shape", f, link_forces=np.zeros((7, 6)))
        refuses(ValueError, "link_forces .*finite", f, link_forces=np.full((4, 6), np.inf))
        refuses(ValueError, "link_forces_repr", f, link_forces=np.zeros((4, 6)), link_forces_repr=None)
    refuses(ValueError, "'rnea' .*'aba'.*'crb'", dynamics.forward_dynamics, method="rnea")
    refuses(ValueError, "joint_forces .*shape", dynamics.forward_dynamics, np.zeros((1, n + 1)))
    refuses(KeyError, "nothing", dynamics.frame_forces, "nothing", np.zeros(6))
    refuses(IndexError, "4", dynamics.frame_forces, 4, np.zeros(6))
    refuses(ValueError, "world", dynamics.frame_forces, None, np.zeros(6))
    refuses(ValueError, "^forces .*shape", dynamics.frame_forces, 0, np.zeros(3))
    refuses(ValueError, "repr", dynamics.frame_forces, 0, np.zeros(6), forces_repr=None)
    refuses(ValueError, "link_forces .*shape", dynamics.frame_forces, 0, np.zeros(6), link_forces=np.zeros((4, 6)))
    refuses(ValueError, "^forces .*shape", dynamics.point_forces, 0, [[0, 0, 0]], np.zeros((2, 3)))
    refuses(ValueError, "joint_qdd .*shape", eval_inverse_dynamics, np.zeros(n + 1))
    refuses(TypeError, "joint_f .*Warp array", eval_inverse_dynamics, None, np.zeros(n))
