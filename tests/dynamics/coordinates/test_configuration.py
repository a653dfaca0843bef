"""Coordinates as points of a manifold: laws of local coordinates, normal, principal, zero and random values."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder, dynamics
from newton_like.compiler.trace import Trace
from newton_like.programs.run import find_batches
from newton_like.programs.tracing import traced_programs
from tests.support import reference
from tests.support.kinematic_cases import QUATERNION, every_kind, forest, gradient_errors, real_array, same_sign
from tests.support.random_trees import random_state
from tests.support.traced import evaluate, run_by_numpy

BODY = {"mass": 1.0, "inertia": np.diag([0.1, 0.2, 0.25])}


def single(kind, **frames):
    """A model of one joint."""
    builder = ModelBuilder()
    link = builder.add_link(com=(0.3, -0.2, 0.4), **BODY)
    add = {JointType.BALL: builder.add_joint_ball, JointType.FREE: builder.add_joint_free}[kind]
    joint = add(-1, link, **frames) if kind == JointType.BALL else add(link, **frames)
    builder.add_articulation([joint])
    return builder.finalize("cpu", dtype=wp.float64)


def at(model, q, qd=None):
    qd = np.zeros(model.joint_dof_count) if qd is None else qd
    return SimpleNamespace(joint_q=real_array(model, q), joint_qd=real_array(model, qd))


def flat(model, rows, starts):
    """The numbers of all articulations, one after the other, without padding."""
    ends = starts.numpy()[model.articulation_end.numpy()] - starts.numpy()[model.articulation_start.numpy()[:-1]]
    return np.concatenate([row[:n] for row, n in zip(rows.numpy(), ends, strict=True)])


def coords(model, rows):
    return flat(model, rows, model.joint_q_start)


def dofs(model, rows):
    return flat(model, rows, model.joint_qd_start)


def local(model, q, qd, q0):
    phi, rate = dynamics.local_coordinates(model, at(model, q, qd), q0)
    return dofs(model, phi), dofs(model, rate)


def pose(q):
    H = np.eye(4)
    H[:3, :3], H[:3, 3] = Rotation.from_quat(q[3:]).as_matrix(), q[:3]
    return H


# ----------------------------------------------------------------------------------------------- local coordinates


@pytest.mark.slow
def test_local_and_global_coordinates_undo_each_other(rng, by_numpy):
    """Every joint type: global(q0, local(q0, q)) = q, and local(q0, q0) = 0."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    (q, qd), (q0, _) = random_state(model, rng), random_state(model, rng)
    phi, _ = local(model, q, qd, q0)
    back = coords(model, dynamics.global_coordinates(model, q0, phi))
    # a few roundings of numbers up to 5
    np.testing.assert_allclose(same_sign(model, back, q), q, rtol=0.0, atol=1e-14)
    # conj(q) q has a vector part of roundings
    np.testing.assert_allclose(local(model, q, qd, q)[0], 0.0, atol=1e-15)


def test_phi_is_the_logarithm_of_the_relative_pose(rng, by_numpy):
    """expm(phi as a twist of the child's anchor) = inverse(H0) H, linear part first; BALL: the same for rotations."""
    model = single(JointType.FREE)
    (q, qd), (q0, _) = random_state(model, rng), random_state(model, rng)
    phi, _ = local(model, q, qd, q0)
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = reference.cross_matrix(phi[3:]), phi[:3]
    np.testing.assert_allclose(expm(twist), np.linalg.inv(pose(q0)) @ pose(q), atol=1e-14)
    model = single(JointType.BALL)
    (q, qd), (q0, _) = random_state(model, rng), random_state(model, rng)
    expected = (Rotation.from_quat(q0).inv() * Rotation.from_quat(q)).as_rotvec()
    np.testing.assert_allclose(local(model, q, qd, q0)[0], expected, atol=1e-14)


@pytest.mark.slow
def test_phi_dot_is_the_rate_of_phi_along_the_motion(rng, by_numpy):
    """Central differences along the flow of the velocities, for every joint type."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    tree = reference.Tree.from_model(model)
    (q, qd), (q0, _) = random_state(model, rng), random_state(model, rng)
    step = 1e-5
    ends = [local(model, reference.displace(tree, q, qd, s * step), qd, q0)[0] for s in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * step)
    # rounding 1e-16 / 1e-5 of numbers of some 10; third derivatives, up to 1e4 a little before phi jumps, times 1e-10 / 6
    close = np.abs(local(model, q, qd, q0)[1] - expected) < 1e-8 + 1e-6 * np.abs(expected)
    far = np.abs(local(model, q, qd, q0)[0]) > 3.1
    assert (close | far).all()


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 1e-4, 1.0, 3.0, np.pi - 1e-6, np.pi - 1e-10])
def test_rates_of_rotation_vectors_are_exact_down_to_zero_and_up_to_pi(rng, by_numpy, angle):
    """With the angular velocity w in the axes of R0 (Bullo and Murray 1995): the part of w along phi stays, the other one becomes
    (a/2) cot(a/2) w - phi x w / 2."""
    model = single(JointType.BALL)
    axis = Rotation.random(None, rng).as_matrix()
    q0 = Rotation.random(None, rng)
    q = (q0 * Rotation.from_rotvec(angle * axis[0])).as_quat()
    along, across = rng.normal(size=2)
    w = along * axis[0] + across * axis[1]
    phi, rate = local(model, q, q0.apply(w), q0.as_quat())
    # the quaternion's own rounding, doubled
    np.testing.assert_allclose(phi, angle * axis[0], atol=2e-15)
    half = angle / 2
    c = half / np.tan(half) if half else 1.0
    expected = along * axis[0] + across * (c * axis[1] - half * axis[2])
    np.testing.assert_allclose(rate, expected, atol=2e-14)


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1e-2, 1.9, 2.1, 3.0, np.pi - 1e-9])
def test_poses_near_and_far_keep_their_digits(rng, by_numpy, size):
    """Round trip of a pose from phi, at the sizes where series meet closed forms and where rotations end."""
    model = single(JointType.FREE)
    q0, _ = random_state(model, rng)
    turn = rng.normal(size=3)
    phi = np.concatenate([size * rng.normal(size=3), size * turn / np.linalg.norm(turn)])
    q = coords(model, dynamics.global_coordinates(model, q0, phi))
    # positions of some metres, and quaternions, are rounded; phi's linear part is up to pi/2 times the distance
    np.testing.assert_allclose(local(model, q, np.zeros(6), q0)[0], phi, rtol=0.0, atol=2e-14)


@pytest.mark.parametrize("angle", [4.0, 7.5])
def test_global_coordinates_take_turns_beyond_pi(rng, by_numpy, angle):
    model = single(JointType.FREE)
    q0, _ = random_state(model, rng)
    axis = rng.normal(size=3)
    phi = np.concatenate([rng.normal(size=3), angle * axis / np.linalg.norm(axis)])
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = reference.cross_matrix(phi[3:]), phi[:3]
    q = coords(model, dynamics.global_coordinates(model, q0, phi))
    np.testing.assert_allclose(pose(q), pose(q0) @ expm(twist), atol=1e-13)


def test_the_series_of_the_logarithm_is_the_closed_form():
    """c(s) and its slope against their closed forms where these lose few digits."""
    trace = Trace()
    m = traced_programs(trace, lambda i: None, np.float64)
    s = m.get(None, 0, "t")
    m.put(None, 1, "t", m.log_factor(s))
    m.put(None, 2, "t", m.log_factor_slope(s))
    values = np.linspace(1.0, np.pi**2, 50)
    out = evaluate(trace, {0: values}, np.zeros((50, 1)))
    x = np.sqrt(values) / 2
    c = (1 - x / np.tan(x)) / values
    slope = (-(1 / np.tan(x) - x / np.sin(x) ** 2) / (4 * np.sqrt(values)) - c) / values
    # rounding of 1 - x cot x, a tenth of one, and of the slope's difference, a sixtieth
    np.testing.assert_allclose(out[1], c, rtol=1e-14)
    np.testing.assert_allclose(out[2], slope, rtol=1e-13)


# --------------------------------------------------------------------------------------------------- chosen values


@pytest.mark.slow
def test_normal_configurations_have_unit_quaternions_and_the_same_poses(rng, by_numpy):
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    q, _ = random_state(model, rng)
    scaled, start = q.copy(), model.joint_q_start.numpy()
    for j in np.flatnonzero(np.isin(model.joint_type.numpy(), QUATERNION)):
        scaled[start[j + 1] - 4 : start[j + 1]] *= rng.uniform(0.1, 10.0)
    normal = coords(model, dynamics.normalize_configuration(model, at(model, scaled)))
    np.testing.assert_allclose(normal, q, rtol=0.0, atol=1e-15)
    model = single(JointType.BALL)
    np.testing.assert_array_equal(dynamics.normalize_configuration(model, at(model, np.zeros(4))), [[0, 0, 0, 1]])


@pytest.mark.slow
def test_principal_values_are_the_same_poses_in_their_ranges(rng, by_numpy):
    """w >= 0, angles in (-pi, pi]; slides, and angles that are there, keep their bits."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    q, _ = random_state(model, rng)
    tree, start, dims = reference.Tree.from_model(model), model.joint_q_start.numpy(), model.joint_dof_dim.numpy()
    turned = q.copy()
    for j, kind in enumerate(model.joint_type.numpy()):
        if kind in QUATERNION:
            s = slice(start[j + 1] - 4, start[j + 1])
            turned[s] *= -np.sign(turned[s][3])
        else:
            s = slice(start[j] + dims[j, 0], start[j + 1])
            turned[s] += 2 * np.pi * rng.integers(-9, 10, size=s.stop - s.start)
    value = coords(model, dynamics.principal_value(model, at(model, turned)))
    # 9 turns are rounded to 1e-14
    np.testing.assert_allclose(
        reference.body_poses(tree, value)[:, :3], reference.body_poses(tree, q)[:, :3], atol=1e-12
    )
    for j, kind in enumerate(model.joint_type.numpy()):
        if kind in QUATERNION:
            assert value[start[j + 1] - 1] >= 0.0
        else:
            angles = value[start[j] + dims[j, 0] : start[j + 1]]
            assert ((angles > -np.pi) & (angles <= np.pi)).all()
    again = coords(model, dynamics.principal_value(model, at(model, value)))
    same = np.ones(len(value), bool)
    for j in np.flatnonzero(np.isin(model.joint_type.numpy(), QUATERNION)):
        same[start[j + 1] - 4 : start[j + 1]] = False
    np.testing.assert_array_equal(again[same], value[same])


def test_minus_pi_is_pi(by_numpy):
    builder = ModelBuilder()
    links = [builder.add_link(**BODY) for _ in range(2)]
    joints = [builder.add_joint_revolute(-1, links[0]), builder.add_joint_revolute(links[0], links[1])]
    builder.add_articulation(joints)
    model = builder.finalize("cpu", dtype=wp.float64)
    value = dynamics.principal_value(model, at(model, [-np.pi, 1000.0 * np.pi + 1.0])).numpy()
    np.testing.assert_allclose(value, [[np.pi, 1.0]], rtol=0.0, atol=1e-12)


def test_in_the_zero_configuration_joints_are_the_identity(rng, by_numpy):
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    zero = dynamics.zero_configuration(model)
    for pose in dynamics.joint_transforms(model, at(model, coords(model, zero))).numpy():
        moved = pose[np.abs(pose).max(axis=1) > 0.0]
        # rounding along a chain of frames some metres apart
        np.testing.assert_allclose(
            moved * np.sign(moved[:, 6:]), np.tile([0, 0, 0, 0, 0, 0, 1.0], (len(moved), 1)), atol=1e-14
        )


def test_random_rotations_are_uniform_and_what_has_limits_keeps_them(rng, by_numpy):
    """E[q q^T] = 1/4 for uniform unit quaternions; uniform numbers have their mean and their spread."""
    builder = ModelBuilder()
    joints, link = [], -1
    for add, options in (
        (builder.add_joint_ball, {}),
        (builder.add_joint_revolute, {"limit_lower": 0.5, "limit_upper": 1.0}),
        (builder.add_joint_revolute, {"limit_lower": -10.0, "limit_upper": 20.0}),
        (builder.add_joint_revolute, {"limit_lower": 1.0}),
        (builder.add_joint_revolute, {}),
        (builder.add_joint_prismatic, {"limit_lower": -3.0, "limit_upper": 5.0}),
        (builder.add_joint_prismatic, {}),
        (builder.add_joint_prismatic, {"limit_upper": -4.0}),
    ):
        child = builder.add_link(**BODY)
        joints.append(add(link, child, **options))
        link = child
    builder.add_articulation(joints)
    scene = ModelBuilder()
    worlds = 4000
    scene.replicate(builder, worlds)
    model = scene.finalize("cpu", dtype=wp.float64)
    q = dynamics.rand_configuration(model, rng).numpy()
    ball, rest = q[:, :4], q[:, 4:]
    np.testing.assert_allclose(np.linalg.norm(ball, axis=1), 1.0, atol=1e-15)
    # entries of q q^T deviate by less than 0.2, their means by less than 0.2 / sqrt(4000), times five
    np.testing.assert_allclose(ball.T @ ball / worlds, np.eye(4) / 4, atol=5 * 0.2 / np.sqrt(worlds))
    ranges = [
        (0.5, 1.0),
        (-np.pi, np.pi),
        (1.0, 1.0 + 2 * np.pi),
        (-np.pi, np.pi),
        (-3.0, 5.0),
        (-1.0, 1.0),
        (-6.0, -4.0),
    ]
    for values, (low, high) in zip(rest.T, ranges, strict=True):
        width = high - low
        assert values.min() >= low - 1e-14
        assert values.max() <= high + 1e-14
        # the outermost of 4000 is within 1 % of the end but once in 1e17 runs; the mean has the spread 0.29 / sqrt(4000)
        assert values.min() < low + 0.01 * width
        assert values.max() > high - 0.01 * width
        assert values.mean() == pytest.approx((low + high) / 2, abs=5 * 0.29 * width / np.sqrt(worlds))


def test_random_numbers_follow_their_seed(rng, by_numpy):
    model = forest(rng, worlds=2).finalize("cpu", dtype=wp.float64)
    for function in (dynamics.rand_configuration, dynamics.rand_velocity):
        first, again, other = (function(model, seed).numpy() for seed in (7, 7, 8))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
    v = dynamics.rand_velocity(model, 1).numpy()
    sizes = [n for n in (np.count_nonzero(row) for row in v)]
    start = model.joint_qd_start.numpy()
    counts = start[model.articulation_end.numpy()] - start[model.articulation_start.numpy()[:-1]]
    assert sizes == counts.tolist()


def test_velocities_and_rates_of_coordinates_undo_each_other(rng, by_numpy):
    """The rate is that of central differences along the flow, and leads back to the velocity."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    tree = reference.Tree.from_model(model)
    q, qd = random_state(model, rng)
    rate = coords(model, dynamics.position_rate(model, at(model, q, qd), regularisation=0.0))
    step = 1e-6
    ends = [reference.displace(tree, q, qd, s * step) for s in (1, -1)]
    np.testing.assert_allclose(
        rate, (same_sign(model, ends[0], q) - same_sign(model, ends[1], q)) / (2 * step), atol=1e-8
    )
    back = dofs(model, dynamics.velocity_of_position_rate(model, at(model, q), rate))
    np.testing.assert_allclose(back, qd, rtol=0.0, atol=1e-13)
    # the component along a quaternion is ignored
    for j in np.flatnonzero(np.isin(model.joint_type.numpy(), QUATERNION)):
        s = slice(tree.joint_q_start[j + 1] - 4, tree.joint_q_start[j + 1])
        rate[s] += 0.7 * q[s]
    back = dofs(model, dynamics.velocity_of_position_rate(model, at(model, q), rate))
    np.testing.assert_allclose(back, qd, rtol=0.0, atol=1e-13)


# -------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [wp.float64, wp.float32])
def test_kernels_do_what_the_programs_say(rng, monkeypatch, dtype):
    """Compiled, on several robots and worlds, against NumPy in double precision."""
    builder = forest(rng, worlds=3, joints=6)
    model, exact = builder.finalize("cpu", dtype=dtype), builder.finalize("cpu", dtype=wp.float64)
    (q, qd), (q0, _) = random_state(model, rng), random_state(model, rng)
    phi = rng.normal(size=model.joint_dof_count)

    def results(model):
        state = at(model, q, qd)
        found = [f(model, state) for f in (dynamics.normalize_configuration, dynamics.principal_value)]
        found += [dynamics.zero_configuration(model), dynamics.rand_configuration(model, 3)]
        found += [*dynamics.local_coordinates(model, state, q0), dynamics.global_coordinates(model, q0, phi)]
        found += [dynamics.velocity_of_position_rate(model, state, q0)]
        return [a.numpy() for a in found]

    model.evaluator = "general"
    actual = results(model)
    with monkeypatch.context() as patch:
        patch.setattr("newton_like.dynamics.internal.common.run", run_by_numpy)
        expected = results(exact)
    for a, b in zip(actual, expected, strict=True):
        # float32: a rotation near pi loses what its angle is short of it, in the derivative
        tolerance = 1e-12 if dtype is wp.float64 else 1e-4
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_rows_may_be_given_where_flat_arrays_are(rng, by_numpy):
    """q0 and phi as ``[articulation_count, ...]``, with padding, which is not read."""
    model = forest(rng, worlds=2).finalize("cpu", dtype=wp.float64)
    (q, qd), (q0, _) = random_state(model, rng), random_state(model, rng)
    rows = dynamics.normalize_configuration(model, at(model, q0))
    flat_phi, flat_rate = dynamics.local_coordinates(model, at(model, q, qd), q0)
    phi, rate = dynamics.local_coordinates(model, at(model, q, qd), rows)
    np.testing.assert_allclose(phi.numpy(), flat_phi.numpy(), atol=1e-14)
    np.testing.assert_allclose(rate.numpy(), flat_rate.numpy(), atol=1e-13)
    back = dynamics.global_coordinates(model, rows, phi)
    np.testing.assert_allclose(same_sign(model, coords(model, back), q), q, atol=1e-13)
    out = dynamics.global_coordinates(model, q0, phi, out=wp.zeros(back.shape, dtype=wp.float64, device="cpu"))
    np.testing.assert_allclose(out.numpy(), back.numpy(), atol=1e-14)


@pytest.mark.slow
def test_gradients_are_those_of_central_differences(rng):
    builder = ModelBuilder()
    links = [builder.add_link(com=rng.normal(size=3), **BODY) for _ in range(2)]
    builder.add_articulation([builder.add_joint_free(links[0]), builder.add_joint_ball(links[0], links[1])])
    model = builder.finalize("cpu", dtype=wp.float64)
    (q, qd), (q0, _) = random_state(model, rng), random_state(model, rng)

    def charts(q, qd):
        return list(dynamics.local_coordinates(model, SimpleNamespace(joint_q=q, joint_qd=qd), q0))

    # differences of 1e-6: rounding 1e-16 / 1e-6; third derivatives times 1e-12, large only where phi is about to jump
    errors = gradient_errors(charts, [q, qd], rng)
    assert max(errors) < 1e-5


def test_bad_input_is_named(rng):
    model = forest(rng, worlds=2).finalize("cpu", dtype=wp.float64)
    state = model.state()
    q = model.joint_q.numpy()
    with pytest.raises(ValueError, match=r"q0.*\(3,\)"):
        dynamics.local_coordinates(model, state, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"q0.*finite"):
        dynamics.local_coordinates(model, state, np.full(len(q), np.nan))
    with pytest.raises(TypeError, match=r"q0.*float32.*float64"):
        dynamics.local_coordinates(model, state, wp.array(q, dtype=wp.float32, device="cpu"))
    with pytest.raises(TypeError, match="q0"):
        dynamics.local_coordinates(model, state, object())
    with pytest.raises(ValueError, match=r"phi.*\(1,\)"):
        dynamics.global_coordinates(model, q, [1.0])
    with pytest.raises(ValueError, match=r"rate .*shape"):
        dynamics.velocity_of_position_rate(model, state, np.zeros((1, 1)))
    with pytest.raises(ValueError, match=r"^out .*shape"):
        dynamics.zero_configuration(model, out=wp.zeros((1, 1), dtype=wp.float64, device="cpu"))
    with pytest.raises(ValueError, match=r"^out .*shape"):
        dynamics.rand_velocity(model, out=wp.zeros((1, 1), dtype=wp.float64, device="cpu"))
    with pytest.raises(TypeError, match=r"seed.*numpy\.random\.Generator"):
        dynamics.rand_configuration(model, "seven")
    with pytest.raises(ValueError, match=r"out.*2.*1"):
        dynamics.local_coordinates(model, state, q, out=[None])
    other = ModelBuilder()
    other.add_body(mass=1.0, inertia=np.eye(3))
    with pytest.raises(ValueError, match=r"state\.joint_q .*shape"):
        dynamics.normalize_configuration(model, other.finalize("cpu", dtype=wp.float64).state())
    empty = ModelBuilder().finalize("cpu")
    assert dynamics.zero_configuration(empty).shape == (0, 0)
    assert find_batches(empty) == []
