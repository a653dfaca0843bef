"""Passive joint forces, rates of a mechanism's state, and the order and conserved quantities of integrators."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.dynamics.system import LIMITS, SPRINGS, STATIC_FRICTION, VISCOUS_FRICTION
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder
from newton_like.dynamics import (
    FlatTerrain,
    SoftContact,
    SoftContactParameters,
    forward_dynamics,
    integrate,
    joint_friction_forces,
    joint_limit_forces,
    joint_spring_forces,
    mechanical_energy,
    position_rate,
    state_rate,
    system,
    total_momentum,
    velocity_rate,
)
from newton_like.dynamics.coordinates.configuration import positions
from newton_like.dynamics.integrators import _STAGE
from newton_like.programs.program import Field
from newton_like.programs.run import _numbers_of
from newton_like.types import VelRepr
from tests.support.kinematic_cases import every_kind, forest, gradient_errors, moving_state, real_array
from tests.support.random_trees import random_inertia, random_state, random_tree
from tests.support.traced import run_traced

METHODS = {"semi_implicit": 1, "explicit": 1, "heun": 2, "rk4": 4}
"""Every method and its order."""

TURNING = (JointType.BALL, JointType.FREE, JointType.REVOLUTE, JointType.D6)


def dense(model, values):
    """One number a dof as ``[articulation_count, max_dofs_per_articulation]``."""
    start, end = model.articulation_start.numpy(), model.articulation_end.numpy()
    first = model.joint_qd_start.numpy()
    out = np.zeros((model.articulation_count, model.max_dofs_per_articulation))
    for a in range(len(out)):
        dofs = slice(first[start[a]], first[end[a]])
        out[a, : dofs.stop - dofs.start] = values[dofs]
    return out


def by_coordinate(model, values):
    """``[articulation_count, most coordinates]`` as one number a coordinate."""
    start, end = model.articulation_start.numpy(), model.articulation_end.numpy()
    first = model.joint_q_start.numpy()
    parts = [v[: first[e] - first[s]] for v, s, e in zip(values, start, end, strict=False)]
    return np.concatenate(parts)


def traced_joint_forces(model, q, qd, bits, friction_speed=0.0):
    program = system._joint_program(Field("force", "dofs")).ask(force_terms=bits)
    limits = [model.joint_limit_ke.numpy(), model.joint_limit_kd.numpy()]
    (found,) = run_traced(model, program, [q, qd, None, *limits, [friction_speed]])
    return found.reshape(model.articulation_count, -1)


def traced_position_rate(model, q, qd, gain):
    most = positions(model)
    (found,) = run_traced(model, system._RATE.ask(result_size=most), [q, qd, [gain]])
    return by_coordinate(model, found.reshape(-1, most))


def moved(model, q, qd, dt):
    """Coordinates after a time at constant velocities."""
    return run_traced(model, _STAGE, [q, qd, qd, None, None, None, [dt, 0.0, 0.0, 0.0]])[0]


# ----------------------------------------------------------------------------------------------- forces of the joints


def test_friction_opposes_motion(rng):
    """The closed form, for any robot: even within the speed of friction, whole beyond it; damping besides."""
    model = forest(rng, robots=4, joints=9, friction=True).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    speed = 0.7
    found = traced_joint_forces(model, q, qd, STATIC_FRICTION | VISCOUS_FRICTION, speed)
    expected = -model.joint_friction.numpy() * np.clip(qd / speed, -1, 1) - model.joint_damping.numpy() * qd
    assert np.abs(expected).max() > 0.1
    # a handful of roundings
    np.testing.assert_allclose(found, dense(model, expected), rtol=1e-14, atol=1e-14)
    sign = traced_joint_forces(model, q, qd, STATIC_FRICTION)
    np.testing.assert_allclose(sign, dense(model, -model.joint_friction.numpy() * np.sign(qd)), rtol=1e-14, atol=0.0)


def test_limits_push_back_and_damp_while_they_are_violated(rng):
    """-k d - c qd beyond a limit, for both signs of d; a damper proportional to the spring's force would fail."""
    model = forest(rng, robots=4, joints=9, limits=True).finalize("cpu", dtype=wp.float64)
    model.joint_limit_ke.assign(rng.uniform(10.0, 100.0, model.joint_dof_count))
    model.joint_limit_kd.assign(rng.uniform(0.5, 5.0, model.joint_dof_count))
    q, qd = random_state(model, rng)
    coordinate = np.full(model.joint_dof_count, np.nan)
    q_start, dof_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    for j in range(model.joint_count):
        if dof_start[j + 1] - dof_start[j] == q_start[j + 1] - q_start[j]:
            coordinate[dof_start[j] : dof_start[j + 1]] = q[q_start[j] : q_start[j + 1]]
    # in turn below, within and above
    lower = coordinate + rng.uniform(0.1, 0.5, coordinate.size) - np.resize([0.0, 0.5, 1.0], coordinate.size)
    upper = lower + 0.4
    lower, upper = np.nan_to_num(lower, nan=-np.inf), np.nan_to_num(upper, nan=np.inf)
    model.joint_limit_lower.assign(lower)
    model.joint_limit_upper.assign(upper)
    found = traced_joint_forces(model, q, qd, LIMITS)
    below, above = coordinate < lower, coordinate > upper
    assert below.any()
    assert above.any()
    depth = np.where(below, coordinate - lower, np.where(above, coordinate - upper, 0.0))
    expected = -model.joint_limit_ke.numpy() * depth - model.joint_limit_kd.numpy() * qd * (below | above)
    np.testing.assert_allclose(found, dense(model, expected), rtol=1e-13, atol=1e-13)


def test_springs_pull_to_the_rest_position(rng):
    """-k (q - rest); of a BALL joint -k times the rotation vector from its rest, in the parent's anchor axes."""
    model = forest(rng, robots=4, joints=9, stiffness=True).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    found = traced_joint_forces(model, q, qd, SPRINGS)
    rest, strain = model.joint_rest_q.numpy(), np.zeros(model.joint_dof_count)
    q_start, dof_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    for j, kind in enumerate(model.joint_type.numpy()):
        here, dofs = slice(q_start[j], q_start[j + 1]), slice(dof_start[j], dof_start[j + 1])
        if kind == JointType.BALL:
            turn = Rotation.from_quat(q[here]) * Rotation.from_quat(rest[here]).inv()
            strain[dofs] = turn.as_rotvec()
        elif kind not in (JointType.FREE, JointType.DISTANCE):
            strain[dofs] = q[here] - rest[here]
    expected = dense(model, -model.joint_stiffness.numpy() * strain)
    assert np.abs(expected).max() > 0.1
    # the rotation vector near a half turn loses a few digits
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


# ----------------------------------------------------------------------------------------------- rates


@pytest.mark.slow
def test_position_rate_is_the_derivative_of_motion(rng):
    """Every joint type: central differences of the coordinates along constant velocities."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    step = 1e-5
    expected = (moved(model, q, qd, step) - moved(model, q, qd, -step)) / (2 * step)
    # truncation: third derivatives of some 10 times step^2; rounding: 1e-16 / step
    np.testing.assert_allclose(traced_position_rate(model, q, qd, 0.3), expected, rtol=1e-8, atol=1e-8)


def test_quaternions_are_drawn_to_unit_length(rng):
    """d|q|/dt = gain |w| (1 - |q|) |q| / 2."""
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_ball(-1, link)])
    model = builder.finalize("cpu", dtype=wp.float64)
    for length in (0.5, 1.0, 1.5):
        q, w = length * Rotation.random(None, rng).as_quat(), rng.normal(size=3)
        rate = traced_position_rate(model, q, w, 0.8)
        assert q @ rate / length == pytest.approx(0.4 * np.linalg.norm(w) * (1 - length) * length, rel=1e-12, abs=1e-15)
        assert q @ traced_position_rate(model, q, w, 0.0) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(wp.float64, 1e-12), pytest.param(wp.float32, 1e-4, marks=pytest.mark.slow)]
)
def test_rates_are_those_of_their_parts(rng, dtype, tolerance):
    """velocity_rate is forward dynamics under all forces; compiled programs agree with traces."""
    acts = False
    while not acts:
        # robots drawn at random may have no friction, or be within their limits
        model = forest(rng, worlds=3, joints=5, friction=True, stiffness=True, limits=True).finalize("cpu", dtype=dtype)
        state, q, qd = moving_state(model, rng)
        friction = joint_friction_forces(model, state, friction_speed=0.1).numpy()
        limits = joint_limit_forces(model, state).numpy()
        springs = joint_spring_forces(model, state).numpy()
        acts = all(np.abs(forces).max() > 0.0 for forces in (friction, limits, springs))
    tau = rng.normal(size=model.joint_dof_count)
    given = real_array(model, tau)
    total = dense(model, given.numpy()) + friction + limits + springs
    expected = forward_dynamics(model, state, real_array(model, total)).numpy()
    found = velocity_rate(model, state, given, friction_speed=0.1).numpy()
    # sums in another order, of forces up to 1e4 times as large as accelerations
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * scale)
    alone = velocity_rate(model, state, given, passive=()).numpy()
    np.testing.assert_array_equal(alone, forward_dynamics(model, state, given).numpy())
    whole = state_rate(model, state, given, friction_speed=0.1)
    np.testing.assert_array_equal(whole.joint_qd.numpy(), found)
    np.testing.assert_array_equal(whole.joint_q.numpy(), position_rate(model, state).numpy())
    assert whole.contact is None
    # launches are recorded once, because recording takes a hundred times as long: for intermediate results, and for numbers from the host
    calls = [lambda: velocity_rate(model, state, tau), lambda: state_rate(model, state, tau)]
    calls += [lambda: forward_dynamics(model, state, tau)]
    results = [call() for call in calls]
    recorded = list(_numbers_of(model).recorded)
    tau *= 2.0
    again = [call() for call in calls]
    assert set(_numbers_of(model).recorded) == set(recorded)
    assert (again[2].numpy() != results[2].numpy()).any()
    np.testing.assert_array_equal(again[2].numpy(), forward_dynamics(model, state, real_array(model, tau)).numpy())
    if dtype is wp.float64:
        np.testing.assert_allclose(friction, traced_joint_forces(model, q, qd, 3, 0.1), rtol=1e-12, atol=1e-12)
        traced = traced_position_rate(model, q, qd, 0.1)
        np.testing.assert_allclose(by_coordinate(model, whole.joint_q.numpy()), traced, rtol=1e-12, atol=1e-12)


# ----------------------------------------------------------------------------------------------- integrators


def after(model, q, qd, time, steps, method, **options):
    """Coordinates and velocities after a time."""
    state = model.state()
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    for _ in range(steps):
        integrate(model, state, state, time / steps, method, **options)
    return np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy()])


@pytest.mark.slow
def test_methods_have_their_orders(rng):
    """On floating trees with ball and free joints and joints of several axes, under gravity and damping: halving the step divides
    the error by 2, 2, 4 and 16."""
    scene = ModelBuilder()
    for _ in range(2):
        scene.add_builder(random_tree(rng, joints=4, types=TURNING, floating=True))
    model = scene.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    # springs of BALL joints jump at half a turn
    forces = {"passive": ("friction", "limits"), "joint_forces": rng.normal(size=model.joint_dof_count)}
    exact = after(model, q, qd, 0.05, 160, "rk4", **forces)
    for method, order in METHODS.items():
        coarse, fine = (np.linalg.norm(after(model, q, qd, 0.05, n, method, **forces) - exact) for n in (10, 20))
        # not the same in the limit only: the next order is some 10 % of the error; a method of another order is off by 1
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.4), method


@pytest.mark.slow
def test_a_tumbling_body_keeps_energy_and_momentum_at_the_order_of_the_method(rng):
    builder = ModelBuilder(gravity=0.0)
    body = builder.add_link(mass=1.3, com=0.2 * rng.normal(size=3), inertia=random_inertia(rng, 1.3))
    frames = {"parent_xform": (1, 2, 3, *Rotation.random(None, rng).as_quat())}
    builder.add_articulation([builder.add_joint_free(body, **frames)])
    model = builder.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    qd[3:] *= 5.0 / np.linalg.norm(qd[3:])

    def kept(state):
        momentum = total_momentum(model, state, repr=VelRepr.COM).numpy()[0]
        return mechanical_energy(model, state).numpy()[0], momentum

    state = model.state()
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    energy, momentum = kept(state)
    for method, order in METHODS.items():
        errors = []
        for steps in (50, 100):
            end, worst = model.state(), np.zeros(2)
            end.assign(state)
            for _ in range(steps):
                integrate(model, end, end, 0.5 / steps, method)
                e, p = kept(end)
                # the centre of mass has no acceleration
                np.testing.assert_allclose(p[:3], momentum[:3], rtol=1e-12, atol=1e-12)
                worst = np.maximum(worst, [abs(e - energy), np.linalg.norm(p[3:] - momentum[3:])])
            errors.append(worst)
        # the order or better (energy may have one more), unless nothing but rounding is left, or the first term of one error happens
        # to be far smaller than that of the other; the next order is a part of the error, and a method of another order is off by 1
        small = errors[1] < np.maximum(1e-12, 0.01 * errors[1].max())
        assert np.all((errors[1] <= errors[0] / 2.0 ** (order - 0.7)) | small), (method, errors)


def test_forces_may_depend_on_the_state(rng):
    """A mass on a spring that is a function of the state, in the end where the cosine is; Runge-Kutta's order is 4 still."""
    builder = ModelBuilder(gravity=0.0)
    link = builder.add_link(mass=2.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_prismatic(-1, link, axis=(1, 0, 0))])
    model = builder.finalize("cpu", dtype=wp.float64)
    w = 3.0

    def spring(state):
        return -2.0 * w * w * state.joint_q.numpy()

    expected = np.array([np.cos(w), -w * np.sin(w)])
    errors = [np.linalg.norm(after(model, [1], [0], 1.0, n, "rk4", joint_forces=spring) - expected) for n in (10, 20)]
    # the error of one period in ten steps: (w dt)^5 / 120 a step
    assert errors[0] < 1e-2
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.3)


def test_wrenches_on_links_move_a_body(rng):
    """A constant force through the centre of mass, and gravity: a parabola, which Heun's method gives exactly."""
    builder = ModelBuilder()
    body = builder.add_body(mass=2.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3))
    model = builder.finalize("cpu", dtype=wp.float64)
    assert body == 0
    f = rng.normal(size=3)
    start = model.joint_q.numpy()
    end = after(model, start, np.zeros(6), 0.5, 3, "heun", link_forces=[[*f, 0, 0, 0]])
    a = f / 2.0 + [0, 0, -9.81]
    np.testing.assert_allclose(end[:3], start[:3] + 0.125 * a, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(end[7:10], 0.5 * a, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_in_place_and_far_away(rng):
    """A step writes the same bits to its own state; bodies follow; single precision; one kilometre away."""
    tree = random_tree(rng, joints=5, floating=True)
    model = tree.finalize("cpu")
    state, q, qd = moving_state(model, rng)
    other = model.state()
    integrate(model, state, other, 0.01, "rk4")
    far = model.state()
    far.assign(state)
    moved_q = state.joint_q.numpy().copy()
    moved_q[:3] += 1000.0
    far.joint_q.assign(moved_q)
    integrate(model, far, far, 0.01, "rk4")
    integrate(model, state, state, 0.01, "rk4")
    for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
        np.testing.assert_array_equal(getattr(state, name).numpy(), getattr(other, name).numpy())
    # velocities do not depend on the position of the robot
    np.testing.assert_array_equal(far.joint_qd.numpy(), other.joint_qd.numpy())
    expected = after(tree.finalize("cpu", dtype=wp.float64), q, qd, 0.01, 1, "rk4")
    found = np.concatenate([other.joint_q.numpy(), other.joint_qd.numpy()])
    # the bound for single precision
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.slow
def test_gradients_of_a_step_are_those_of_central_differences(rng):
    """Through all stages of Heun's method, to coordinates, velocities and joint forces."""
    tree = random_tree(rng, joints=2, types=(JointType.REVOLUTE, JointType.BALL), floating=False)
    model = tree.finalize("cpu", dtype=wp.float64)
    _, q, qd = moving_state(model, rng)

    def step(joint_q, joint_qd, tau):
        end = model.state(requires_grad=True)
        integrate(model, SimpleNamespace(joint_q=joint_q, joint_qd=joint_qd), end, 0.01, "heun", joint_forces=tau)
        return [end.joint_q, end.joint_qd]

    errors = gradient_errors(step, [q, qd, rng.normal(size=model.joint_dof_count)], rng)
    # central differences: rounding 1e-16 / 1e-6 of values of some 100, and third derivatives times 1e-12
    assert max(errors) < 1e-7


def test_what_makes_no_sense_is_refused(rng):
    model = forest(rng, worlds=2, joints=3).finalize("cpu")
    # Two worlds have an even number of coordinates; a body has seven.
    body = ModelBuilder()
    body.add_body(mass=1.0, inertia=np.eye(3))
    other = body.finalize("cpu")
    state = model.state()
    with pytest.raises(ValueError, match=r"method='euler'.*'semi_implicit'.*'explicit'.*'heun'.*'rk4'"):
        integrate(model, state, state, 0.01, "euler")
    with pytest.raises(ValueError, match=r"dt -0.1.*0"):
        integrate(model, state, state, -0.1)
    with pytest.raises(ValueError, match=r"dt"):
        integrate(model, state, state, np.nan)
    with pytest.raises(ValueError, match=r"state_out.joint_q .*shape"):
        integrate(model, state, other.state(), 0.01)
    with pytest.raises(ValueError, match=r"passive.*'brakes'.*'friction'"):
        velocity_rate(model, state, passive=("brakes",))
    with pytest.raises(TypeError, match="passive='limits'"):
        velocity_rate(model, state, passive="limits")
    with pytest.raises(ValueError, match=r"friction_speed -1.0.*0"):
        joint_friction_forces(model, state, friction_speed=-1)
    with pytest.raises(ValueError, match=r"regularisation -1.0.*0"):
        position_rate(model, state, regularisation=-1)
    with pytest.raises(ValueError, match="contact_state"):
        integrate(model, state, state, 0.01, contact_state=wp.zeros((1, 1, 3), dtype=wp.float32, device="cpu"))
    with pytest.raises(ValueError, match="contact_state"):
        state_rate(model, state, contact_state=wp.zeros((1, 1, 3), dtype=wp.float32, device="cpu"))
    contact = SoftContact(other, terrain=FlatTerrain(), parameters=SoftContactParameters())
    with pytest.raises(ValueError, match=r"contact .*model"):
        integrate(model, state, state, 0.01, contact=contact, contact_state=contact.state())
    with pytest.raises(TypeError, match="joint_forces"):
        integrate(model, state, state, 0.01, joint_forces="none")


def test_nothing_to_move_has_an_answer():
    empty = ModelBuilder().finalize("cpu")
    state = empty.state()
    integrate(empty, state, state, 0.01)
    assert position_rate(empty, state).shape == (0, 0)
