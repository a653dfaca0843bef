"""Rigid and relaxed rigid contact: optimality of the forces, boxes at rest and on slopes, impacts, closed forms, and errors."""

import numpy as np
import pytest
import warp as wp
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, eval_fk
from newton_like.dynamics import (
    ContactPoints,
    FlatTerrain,
    HeightfieldTerrain,
    PlaneTerrain,
    RelaxedRigidContactParameters,
    RigidContact,
    RigidContactParameters,
    contact_point_jacobian_derivatives,
    contact_point_jacobians,
    contact_point_positions,
    forward_dynamics,
    impact,
    in_contact,
    integrate,
    link_contact_forces,
    link_names,
    mass_matrix,
    rigid_contact_forces,
)
from newton_like.dynamics.internal import common
from newton_like.types import VelRepr
from tests.dynamics.contact.test_soft import CORNERS, box_on_four_points, some_points
from tests.dynamics.test_integrators import dense
from tests.support.kinematic_cases import forest, moving_state
from tests.support.random_trees import random_state
from tests.support.traced import run_by_numpy

G = 9.81


@pytest.fixture
def numpy_run(monkeypatch):
    """A switch: from then on functions run by NumPy, in double precision and without a compiler."""
    return lambda: monkeypatch.setattr(common, "run", run_by_numpy)


def general(scene, dtype=wp.float64):
    model = scene.finalize("cpu", dtype=dtype)
    model.evaluator = "general"
    return model


def point_masses(worlds=1, mass=0.7):
    builder, scene = ModelBuilder(), ModelBuilder()
    builder.add_body(mass=mass, inertia=np.eye(3), label="point")
    scene.replicate(builder, worlds)
    return general(scene)


def floating_case(rng, worlds=4):
    """Random robots that float, so that any point can give way, about half of whose points are below a slope."""
    model = general(forest(rng, worlds=worlds, joints=6, floating=True))
    points = some_points(rng, model, 1)
    state, _, qd = moving_state(model, rng)
    normal = np.array([0.1, 0.2, 1.0])
    height = contact_point_positions(model, state, points).numpy()[points.link >= 0] @ normal
    return model, points, state, qd, PlaneTerrain(normal, np.median(height) + 0.01)


def place(state, q, qd=None):
    state.joint_q.assign(np.asarray(q, dtype=float).ravel())
    if qd is not None:
        state.joint_qd.assign(np.asarray(qd, dtype=float).ravel())
    return state


def impedance(depth, low, high, width, midpoint, power):
    """The formula of solimp in MuJoCo's documentation."""
    x = np.minimum(depth / width, 1.0)
    first = x**power / midpoint ** (power - 1)
    second = 1 - (1 - x) ** power / (1 - midpoint) ** (power - 1)
    return low + np.where(x < midpoint, first, second) * (high - low)


def problem(model, state, qd, points, plane, depth, parameters, tau, pushes):
    """A, J nu_dot_free + J_dot nu - a, R and velocities of every point, from Jacobians and mass matrices."""
    J = contact_point_jacobians(model, state, points).numpy()[:, :, :3]
    J_dot = contact_point_jacobian_derivatives(model, state, points).numpy()[:, :, :3]
    M, nu = mass_matrix(model, state).numpy(), dense(model, qd)
    free = forward_dynamics(model, state, tau, pushes).numpy()
    start = model.articulation_start.numpy()[:-1, None]
    mass = model.body_mass.numpy()[model.joint_child.numpy()[start + np.maximum(points.link, 0)]]
    for a in range(model.articulation_count):
        on = np.flatnonzero((points.link[a] >= 0) & (depth[a] > 0.0))
        if not len(on):
            continue
        used = np.flatnonzero(np.diag(M[a]) != 0.0)
        rows = J[a, on][..., used].reshape(-1, len(used))
        A = rows @ np.linalg.solve(M[a][np.ix_(used, used)], rows.T)
        v = J[a, on] @ nu[a]
        if isinstance(parameters, RigidContactParameters):
            K, D, xi = parameters.time_constant**-2, 2 / parameters.time_constant, np.ones(len(on))
        else:
            p = parameters
            K, D = (p.d_max * p.time_constant * p.damping_ratio) ** -2, 2 / (p.d_max * p.time_constant)
            xi = impedance(depth[a, on], p.d_min, p.d_max, p.width, p.midpoint, p.power)
        mu = parameters.mu
        R = 2 * mu**2 * (1 + mu**2) * (1 - xi) / (xi * mass[a, on])
        wanted = (K * xi * depth[a, on])[:, None] * plane.normal - D * v
        yield a, on, A, (J[a, on] @ free[a] + J_dot[a, on] @ nu[a] - wanted), R


# ----------------------------------------------------------------------------------------------- the law

LAWS = {
    "rigid": RigidContactParameters(0.6, 0.05),
    "relaxed": RelaxedRigidContactParameters(0.6, 0.05, 0.7, 0.3, 0.8, 0.4, 0.3, 3.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("friction", ["convex", "coulomb"])
@pytest.mark.parametrize("law", LAWS)
def test_forces_are_optimal(rng, numpy_run, law, friction):
    """Random robots on a slope: f in the friction cone, w = (A + R) f + c in its dual (Coulomb: after mu |w_t| is added), f.w = 0. The
    convex problem has no other solutions; where it is small, SLSQP finds none that is lower. No force where nothing touches."""
    model, points, state, qd, plane = floating_case(rng)
    parameters = LAWS[law]
    tau, pushes = rng.normal(size=model.joint_dof_count), rng.normal(size=(model.body_count, 6))
    contact = RigidContact(model, points, plane, parameters, friction=friction, sweeps=3000)
    found = rigid_contact_forces(model, state, contact, tau, pushes)
    forces, depth = found.points.numpy(), found.depth.numpy()
    numpy_run()
    assert (forces[depth == 0.0] == 0.0).all()
    # with the wrenches of the ground, forward dynamics finds the same accelerations
    with_them = forward_dynamics(model, state, tau, found.links).numpy()
    np.testing.assert_allclose(found.accelerations.numpy(), with_them, rtol=0.0, atol=1e-9 * np.abs(with_them).max())
    n, mu, seen = plane.normal, parameters.mu, {"touch": 0, "slip": 0, "leave": 0}
    for a, on, A, c, R in problem(model, state, qd, points, plane, depth, parameters, tau, pushes):
        f = forces[a, on]
        w = (A @ f.ravel()).reshape(-1, 3) + R[:, None] * f + c
        f_n, w_n = f @ n, w @ n
        f_t, w_t = (np.linalg.norm(x - np.outer(x @ n, n), axis=1) for x in (f, w))
        if friction == "coulomb":
            w, w_n = w + np.outer(mu * w_t, n), w_n + mu * w_t
        # the sweeps' last digits, of forces through inertias that differ by a thousand
        size = np.abs(c).max()
        assert (f_t <= mu * f_n + 1e-9 * np.abs(f).max()).all()
        assert (w_n >= mu * w_t - 1e-6 * size).all()
        assert np.abs((f * w).sum(axis=1)).max() <= 1e-6 * size * max(np.abs(f).max(), 1.0)
        seen["touch"] += len(on)
        seen["slip"] += int((w_t > 1e-3 * size).sum())
        seen["leave"] += int((f_n < 1e-9).sum())
        if friction == "convex" and len(on) <= 2:
            H = A + np.diag(np.repeat(R, 3))
            scale = np.sqrt(np.diag(H))

            def cost(y, H=H, c=c, scale=scale):
                x = y / scale
                return 0.5 * x @ H @ x + x @ c.ravel()

            cone = [
                {"type": "ineq", "fun": lambda y, i=i, s=scale: _room((y / s).reshape(-1, 3)[i], n, mu)}
                for i in range(len(on))
            ]
            cone += [
                {"type": "ineq", "fun": lambda y, i=i, s=scale: (y / s).reshape(-1, 3)[i] @ n} for i in range(len(on))
            ]
            other = minimize(
                cost, np.tile(n, len(on)) * scale, method="SLSQP", constraints=cone, options={"maxiter": 500}
            )
            # it leaves the cone by rounding, which can pay where contacts are stiff
            lowest, inside = cost(f.ravel() * scale), _into_cone((other.x / scale).reshape(-1, 3), n, mu)
            assert lowest <= cost(inside.ravel() * scale) + 1e-4 * abs(lowest) + 1e-5 * size
    assert seen["touch"] > 8, seen
    assert seen["slip"] > 0, seen


def _room(f, n, mu):
    f_t = f - (f @ n) * n
    return (mu * (f @ n)) ** 2 - f_t @ f_t


def _into_cone(f, n, mu):
    """Forces ``[n, 3]`` with tangential parts shortened, and pulls left out."""
    f_n = np.maximum(f @ n, 0.0)
    f_t = f - np.outer(f @ n, n)
    length = np.linalg.norm(f_t, axis=1)
    share = np.minimum(1.0, mu * f_n / np.where(length > 0.0, length, 1.0))
    return np.outer(f_n, n) + share[:, None] * f_t


@pytest.mark.slow
def test_links_in_contact(rng, numpy_run):
    """Their wrenches are those of the forces on their points; those touch that have a point below the ground."""
    model, points, state, _, slope = floating_case(rng)
    numpy_run()
    contact = RigidContact(model, points, slope, LAWS["relaxed"], sweeps=3)
    tau = wp.array(rng.normal(size=model.joint_dof_count), dtype=wp.float64)
    found = rigid_contact_forces(model, state, contact, tau, link_forces_repr=VelRepr.MIXED)
    wrenches = link_contact_forces(model, state, contact, joint_forces=tau, repr=VelRepr.MIXED).numpy()
    np.testing.assert_array_equal(wrenches, found.links.numpy())
    touching = in_contact(model, state, contact).numpy()
    expected = np.zeros_like(touching)
    for a, i in zip(*np.nonzero(found.depth.numpy() > 0.0), strict=True):
        expected[a, points.link[a, i]] = True
    np.testing.assert_array_equal(touching, expected)
    assert touching.any()
    order = [int(i) for i in rng.permutation(touching.shape[1])]
    np.testing.assert_array_equal(in_contact(model, state, contact, order).numpy(), touching[:, order])
    index = int(points.link[0, 0])
    name = link_names(model)[index]
    np.testing.assert_array_equal(in_contact(model, state, contact, name).numpy()[:1], touching[:1, [index]])
    with pytest.raises(KeyError, match="no_such_link"):
        in_contact(model, state, contact, ["no_such_link"])
    with pytest.raises(ValueError, match=r"contact_state.*RigidContact"):
        link_contact_forces(model, state, contact, tau)


@pytest.mark.slow
def test_relaxed_contact_tends_to_rigid(rng):
    """d_min = d_max = 1 - e: accelerations differ from the rigid ones in proportion to e, and not at all for e = 0."""
    model, points, state, _, plane = floating_case(rng)

    def accelerations(parameters):
        contact = RigidContact(model, points, plane, parameters, sweeps=3000)
        return rigid_contact_forces(model, state, contact).accelerations.numpy()

    rigid = accelerations(RigidContactParameters(0.6, 0.05))
    scale = np.abs(rigid).max()
    errors = []
    for e in (0.0, 1e-6, 1e-5):
        d = 1.0 - e
        found = accelerations(RelaxedRigidContactParameters(0.6, 0.05 / d, 1.0, d, d))
        errors.append(np.abs(found - rigid).max() / scale)
    # the last digits of the sweeps; then the ratio of the softnesses, bent where points change between sticking and slipping
    assert errors[0] < 1e-9
    assert 3.0 < errors[2] / errors[1] < 30.0
    assert errors[2] < 0.05


def test_a_point_rests_as_deep_as_the_formula_says(numpy_run):
    """At rest R m g = K xi d: solved by hand where xi is constant and beyond the width; there the acceleration is zero. In between, the
    force of a point is (g + K xi d) / (1 / m + R)."""
    numpy_run()
    m, mu = 0.7, 0.6
    model = point_masses(2, m)
    points = ContactPoints(model, {"point": [(0, 0, 0)]})
    softness = 2 * mu**2 * (1 + mu**2)
    rest = {}
    for low, width in ((0.8, 1.0), (0.3, 1e-6)):
        time, ratio, high = 0.04, 0.8, 0.8
        depth = softness * (1 - high) / high**2 * G * (high * time * ratio) ** 2
        parameters = RelaxedRigidContactParameters(mu, time, ratio, low, high, width)
        contact = RigidContact(model, points, FlatTerrain(0.0), parameters, sweeps=20)
        state = place(model.state(), [[0, 0, -depth, 0, 0, 0, 1]] * 2)
        found = rigid_contact_forces(model, state, contact)
        # solved by 80 steps that halve the error and more
        np.testing.assert_allclose(found.points.numpy()[:, 0], [[0, 0, m * G]] * 2, atol=1e-9)
        np.testing.assert_allclose(found.accelerations.numpy(), 0.0, atol=1e-9)
        rest[low] = depth
    assert rest[0.8] == rest[0.3]
    law = dict(low=0.2, high=0.9, width=0.02, midpoint=0.3, power=2.5)
    depths = np.array([0.004, 0.011])
    xi = impedance(depths, **law)
    parameters = RelaxedRigidContactParameters(mu, 0.04, 1.0, *law.values())
    contact = RigidContact(model, points, FlatTerrain(0.0), parameters, sweeps=20)
    state = place(model.state(), [[0, 0, -d, 0, 0, 0, 1] for d in depths])
    expected = (G + xi * depths / (0.9 * 0.04) ** 2) / (1 / m + softness * (1 - xi) / xi / m)
    found = rigid_contact_forces(model, state, contact).points.numpy()[:, 0]
    np.testing.assert_allclose(found, np.outer(expected, [0, 0, 1]), rtol=1e-9, atol=1e-9)


# ----------------------------------------------------------------------------------------------- boxes


@pytest.mark.slow
def test_a_box_rests():
    """Its weight is carried, it does not accelerate; in the air it falls, in motion it is stopped within the time constant."""
    model = general(box_on_four_points(mass=2.0, worlds=4))
    contact = RigidContact(model, ContactPoints(model, CORNERS), FlatTerrain(0.3), RigidContactParameters(0.5, 0.02))
    q = np.tile([0.0, 0, 0.4, 0, 0, 0, 1], (4, 1))
    q[1, 2] += 1e-6
    q[2, 2] -= 1e-3
    qd = np.zeros((4, 6))
    qd[3, 2], qd[3, 0] = -0.1, 0.01
    q[3, 2] -= 1e-9
    q[0, 2] -= 1e-12
    found = rigid_contact_forces(model, place(model.state(), q, qd), contact)
    a = found.accelerations.numpy()
    # depths of a picometre, and the sweeps' last digits
    np.testing.assert_allclose(found.links.numpy()[0, 0], [0, 0, 2.0 * G, 0, 0, 0], atol=1e-7)
    np.testing.assert_allclose(a[0], 0.0, atol=1e-7)
    np.testing.assert_allclose(a[1], [0, 0, -G, 0, 0, 0], atol=1e-12)
    assert (found.points.numpy()[1] == 0.0).all()
    # depth / T^2, and -2 v / T
    np.testing.assert_allclose(a[2], [0, 0, 1e-3 / 4e-4, 0, 0, 0], atol=1e-7)
    np.testing.assert_allclose(a[3], [-1.0, 0, 10.0, 0, 0, 0], atol=1e-5)


@pytest.mark.parametrize("friction", ["convex", "coulomb"])
def test_a_box_on_a_slope_sticks_below_its_angle_of_friction_and_slides_above(friction):
    """Coulomb: at g (sin - mu cos) down the slope. Convex: at that by 1 + mu^2, and mu times as fast up from it."""
    angle = 0.3
    model = general(box_on_four_points(worlds=2))
    mu = np.tan(angle) * np.array([1.05, 0.95])
    plane = PlaneTerrain((-np.sin(angle), 0, np.cos(angle)))
    contact = RigidContact(
        model, ContactPoints(model, CORNERS), plane, RigidContactParameters(mu), friction=friction, sweeps=200
    )
    turn = Rotation.from_rotvec([0, -angle, 0])
    q = np.tile([*turn.apply([0, 0, 0.1 - 1e-12]), *turn.as_quat()], (2, 1))
    found = rigid_contact_forces(model, place(model.state(), q), contact)
    a = found.accelerations.numpy()
    # depths of a picometre, and the residual after 200 sweeps
    np.testing.assert_allclose(a[0], 0.0, atol=1e-7)
    slide = -G * (np.sin(angle) - mu[1] * np.cos(angle))
    expected = [slide, 0, 0] if friction == "coulomb" else np.array([slide, 0, -mu[1] * slide]) / (1 + mu[1] ** 2)
    np.testing.assert_allclose(turn.inv().apply(a[1, :3]), expected, atol=1e-7)
    np.testing.assert_allclose(a[1, 3:], 0.0, atol=1e-6)


# ----------------------------------------------------------------------------------------------- impacts


def energy(model, state, qd):
    nu = dense(model, qd)
    return 0.5 * np.einsum("ai,aij,aj->a", nu, mass_matrix(model, state).numpy(), nu)


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_impacts_never_pull_and_never_add_energy(rng, numpy_run, restitution):
    """Random robots in flight, deep in the ground: no kinetic energy comes from impacts, impulses are in the friction cone, after it
    nothing goes further in, and where every point separated velocities stay as they were. However few the sweeps, energy does not grow."""
    model, points, state, qd, plane = floating_case(rng)
    n, mu = plane.normal, 0.6
    results = {}
    for sweeps in (1, 3, 2000):
        law = RigidContactParameters(mu, restitution=restitution)
        contact = RigidContact(model, points, plane, law, sweeps=sweeps)
        results[sweeps] = impact(model, state, contact)
    depth = rigid_contact_forces(model, state, contact).depth.numpy()
    numpy_run()
    J = contact_point_jacobians(model, state, points).numpy()[:, :, :3]
    before, on = energy(model, state, qd), (depth > 0.0) & (points.link >= 0)
    for found in results.values():
        after = energy(model, state, found.joint_qd.numpy())
        # rounding of energies
        assert (after <= before * (1.0 + 1e-12)).all()
        p = found.points.numpy()
        assert (np.linalg.norm(p - (p @ n)[..., None] * n, axis=2) <= mu * (p @ n) + 1e-9 * np.abs(p).max()).all()
        assert (p[~on] == 0.0).all()
    v = (np.einsum("apid,ad->api", J, dense(model, qd)) @ n)[on]
    u = (np.einsum("apid,ad->api", J, dense(model, results[2000].joint_qd.numpy())) @ n)[on]
    assert u.min() > -1e-6 * np.abs(v).max()
    assert (v < 0.0).any()
    apart = [a for a in range(len(on)) if on[a].any() and ((J[a] @ dense(model, qd)[a]) @ n)[on[a]].min() > 0.0]
    changed = np.abs(dense(model, results[2000].joint_qd.numpy()) - dense(model, qd)).max(axis=1)
    assert (changed[apart] == 0.0).all()
    assert (changed[on.any(axis=1)] > 0.0).any()


@pytest.mark.slow
def test_a_thrown_box_lands_and_bounces():
    """Flat on four corners: velocity -e u, sticking in the plane where friction allows, slowed by mu (1 + e) u else; leaving: untouched."""
    model = general(box_on_four_points(worlds=3))
    q = np.tile([0.0, 0, 0.1 - 1e-9, 0, 0, 0, 1], (3, 1))
    qd = np.zeros((3, 6))
    qd[0, 2], qd[1, 2], qd[2, 2] = -2.0, -2.0, 2.0
    qd[1, 0], qd[2, 0] = 9.0, 3.0
    for e in (0.0, 0.5):
        mu = 0.3
        contact = RigidContact(
            model, ContactPoints(model, CORNERS), parameters=RigidContactParameters(0.0, restitution=e), sweeps=100
        )
        after = impact(model, place(model.state(), q, qd), contact).joint_qd.numpy().reshape(3, 6)
        # the residual after 100 sweeps
        np.testing.assert_allclose(after[0], [0, 0, 2.0 * e, 0, 0, 0], atol=1e-7)
        np.testing.assert_allclose(after[1], [9.0, 0, 2.0 * e, 0, 0, 0], atol=1e-7)
        np.testing.assert_array_equal(after[2], qd[2])
    builder = ModelBuilder()
    builder.add_body(mass=0.7, inertia=np.eye(3) * 1e6, label="point")
    model = general(builder)
    law = RigidContactParameters(mu, restitution=0.5)
    contact = RigidContact(model, ContactPoints(model, {"point": [(0, 0, 0)]}), parameters=law)
    state = place(model.state(), [0, 0, -0.01, 0, 0, 0, 1], [9.0, 0, -2.0, 0, 0, 0])
    after = impact(model, state, contact, out=(state.joint_qd, None)).joint_qd
    assert after is state.joint_qd
    np.testing.assert_allclose(after.numpy(), [9.0 - 1.5 * mu * 2.0, 0, 1.0, 0, 0, 0], atol=1e-6)


@pytest.mark.slow
def test_integrated_boxes_stick_slide_and_bounce():
    """Below its angle of friction a box stays, above it moves as under g (sin - mu cos); dropped, it rises to e^2 of its height."""
    angle, dt = 0.3, 1e-3
    model = general(box_on_four_points(worlds=3))
    turn = Rotation.from_rotvec([0, -angle, 0])
    mu, e = np.tan(angle) * np.array([1.05, 0.5, 0.0]), np.array([0.0, 0.0, 0.7])
    plane = PlaneTerrain((-np.sin(angle), 0, np.cos(angle)))
    law = RigidContactParameters(mu, 0.01, restitution=e)
    contact = RigidContact(model, ContactPoints(model, CORNERS), plane, law, sweeps=200)
    height = np.array([-1e-9, -1e-9, 0.05])
    q = np.stack([[*turn.apply([0, 0, 0.1 + h]), *turn.as_quat()] for h in height])
    state, steps, heights = place(model.state(), q), 250, []
    # the third falls along the normal of its slope
    push = np.zeros((3, 1, 6))
    pull = model.body_mass.numpy()[2] * G
    push[2, 0, :3] = pull * (np.array([0, 0, 1.0]) - plane.normal)
    for _ in range(steps):
        integrate(model, state, state, dt, link_forces=push, contact=contact, passive=())
        heights.append((state.joint_q.numpy().reshape(3, 7)[:, :3] @ plane.normal) - 0.1)
    heights = np.array(heights)
    q, v = (x.numpy().reshape(3, -1) for x in (state.joint_q, state.joint_qd))
    gone = turn.inv().apply(q[:, :3])
    time, slide = steps * dt, -G * (np.sin(angle) - mu[1] * np.cos(angle))
    # a point slightly above the ground falls for a step without friction
    late = mu[1] * G * dt
    np.testing.assert_allclose(gone[0], [0, 0, 0.1], atol=1e-5)
    np.testing.assert_allclose(turn.inv().apply(v[1, :3]), [slide * time, 0, 0], atol=2 * late)
    np.testing.assert_allclose(gone[1], [slide * time**2 / 2, 0, 0.1], atol=2 * late * time)
    fallen = int(np.sqrt(2 * height[2] / G) / dt)
    assert (heights[: fallen - 1, 2] > 0.0).all()
    # one step is 1 mm at the speed of the impact
    np.testing.assert_allclose(heights[fallen + 2 :, 2].max(), e[2] ** 2 * height[2], atol=1e-3)
    assert heights[:, 2].min() > -2e-3
    with pytest.raises(ValueError, match=r"contact_state.*RigidContact"):
        integrate(model, state, state, dt, contact=contact, contact_state=push)


# ----------------------------------------------------------------------------------------------- evaluators, gradients, arguments


@pytest.mark.slow
def test_compiled_in_both_precisions_and_by_numpy(rng, numpy_run):
    """The same numbers; on a heightfield that is a plane too; wrenches in another representation; into given arrays."""
    scene = forest(rng, worlds=2, joints=4, floating=True)
    law = RelaxedRigidContactParameters(0.6, 0.05, 1.0, 0.5, 0.8, 0.3, restitution=0.4)
    models = {dtype: general(scene, dtype) for dtype in (wp.float64, wp.float32)}
    q, qd = random_state(models[wp.float64], rng)
    given = {int(b): 0.2 * rng.normal(size=(1, 3)) for b in rng.choice(models[wp.float64].body_count, 4, replace=False)}
    state = place(models[wp.float64].state(), q, qd)
    eval_fk(models[wp.float64], state.joint_q, state.joint_qd, state)
    # half a metre above the second lowest of the four bodies
    plane = PlaneTerrain((0.1, 0.2, 1.0), 0.5 + np.sort(state.body_q.numpy()[list(given), :3] @ [0.1, 0.2, 1.0])[1])
    y, x = np.mgrid[-20:21, -20:21].astype(float)
    field = HeightfieldTerrain(plane.height(x, y), (-20.0, -20.0), (1.0, 1.0))
    found = {}

    def results(model, terrain):
        contact = RigidContact(model, ContactPoints(model, given), terrain, law, sweeps=12)
        state = place(model.state(), q, qd)
        forces = rigid_contact_forces(model, state, contact, link_forces_repr=VelRepr.MIXED, repr=VelRepr.COM)
        return [a.numpy() for a in (*forces, *impact(model, state, contact))]

    for dtype, model in models.items():
        found[dtype] = results(model, plane)
    numpy_run()
    exact = results(models[wp.float64], plane)
    other = results(models[wp.float64], field)
    assert (exact[0] != 0.0).any()
    for k, expected in enumerate(exact):
        scale = np.abs(expected).max()
        # rounding, through stiff springs; single precision: the bound of the issue
        np.testing.assert_allclose(found[wp.float64][k], expected, rtol=0.0, atol=1e-11 * scale)
        np.testing.assert_allclose(other[k], expected, rtol=0.0, atol=1e-9 * scale)
        np.testing.assert_allclose(found[wp.float32][k], expected, rtol=0.0, atol=1e-4 * scale)


@pytest.mark.slow
def test_gradients(rng):
    """Of a sliding point's acceleration with respect to height, velocity and the law's constants, against central differences."""
    builder = ModelBuilder()
    builder.add_body(mass=0.7, inertia=np.eye(3), label="point")
    model = builder.finalize("cpu", dtype=wp.float64, requires_grad=True)
    points = ContactPoints(model, {"point": [(0.1, 0.2, -0.1)]})
    contact = RigidContact(model, points, parameters=RelaxedRigidContactParameters(0.4, 0.05, width=0.1), sweeps=20)
    weights, law = rng.normal(size=6), contact.law.numpy()
    start = np.concatenate([[0.06], [0.3, 0.1, -0.2, 0.1, 0.2, 0.3], law[0, :8]])

    def run(x):
        state = place(model.state(), [0, 0, x[0], 0, 0, 0, 1], x[1:7])
        contact.law.assign(np.append(x[7:], 0.0)[None])
        with wp.Tape() as tape:
            a = rigid_contact_forces(model, state, contact).accelerations
        return state, tape, a

    state, tape, a = run(start)
    a.grad.assign(weights[None])
    tape.backward()
    found = [state.joint_q.grad.numpy()[2:3], state.joint_qd.grad.numpy(), contact.law.grad.numpy()[0, :8]]
    steps = np.diag(1e-6 * np.abs(start))
    expected = [((run(start + h)[2].numpy() - run(start - h)[2].numpy()) @ weights)[0] / (2 * h.sum()) for h in steps]
    assert np.abs(expected).max() > 1.0
    # truncation 1e-12; rounding of accelerations of a hundred, 1e-14, by steps of 1e-7
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_gradients_of_an_impact(rng):
    """Of velocities after it by those before and by the masses, with more visits than code without loops could have."""
    model = box_on_four_points().finalize("cpu", dtype=wp.float64, requires_grad=True)
    law = RigidContactParameters(0.5, 0.02, restitution=0.5)
    contact = RigidContact(model, parameters=law, sweeps=200)
    start = np.concatenate([0.3 * rng.normal(size=2), [-1.0], 0.3 * rng.normal(size=3), model.body_mass.numpy()])
    weights, tilt = rng.normal(size=6), Rotation.from_rotvec(0.2 * rng.normal(size=3)).as_quat()

    def run(x):
        state = place(model.state(), [0, 0, 0.1, *tilt], x[:6])
        model.body_mass.assign(x[6:])
        model.notify_changed()
        with wp.Tape() as tape:
            after = impact(model, state, contact).joint_qd
        return state, tape, after

    state, tape, after = run(start)
    after.grad.assign(weights)
    tape.backward()
    found = np.concatenate([state.joint_qd.grad.numpy(), model.body_mass.grad.numpy()])
    steps = 1e-6 * np.eye(7)
    expected = [(run(start + h)[2].numpy() - run(start - h)[2].numpy()) @ weights / 2e-6 for h in steps]
    # it changes, and how depends on the velocities
    assert np.abs(expected[:6] - weights).max() > 0.1
    # rounding of velocities of one, by steps of 1e-6
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_what_is_refused():
    model = general(box_on_four_points())
    other = general(box_on_four_points())
    state, contact = model.state(), RigidContact(model)
    with pytest.raises(ValueError, match=r"contact.*RigidContact"):
        rigid_contact_forces(other, other.state(), contact)
    with pytest.raises(TypeError, match=r"contact.*RigidContact\(model, ...\).*ContactPoints"):
        impact(model, state, contact.points)
    with pytest.raises(ValueError, match=r"friction='viscous'.*'coulomb'.*'convex'"):
        RigidContact(model, friction="viscous")
    with pytest.raises(ValueError, match=r"sweeps 0.*1"):
        RigidContact(model, sweeps=0)
    with pytest.raises(TypeError, match=r"parameters.*RigidContactParameters.*RelaxedRigid"):
        RigidContact(model, parameters=0.5)
    for wrong in ({"mu": -0.1}, {"time_constant": 0.0}, {"restitution": 1.1}, {"mu": np.nan}):
        with pytest.raises(ValueError, match=rf"^{next(iter(wrong))}\b"):
            RigidContactParameters(**wrong)
    wrong = {
        "d_min": 0.0,
        "d_max": 1.5,
        "width": 0.0,
        "midpoint": 1.0,
        "power": 0.5,
        "damping_ratio": 0.0,
        "mu": [[1.0]],
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=rf"^{name}\b"):
            RelaxedRigidContactParameters(**{name: value})
    with pytest.raises(TypeError, match=r"mu"):
        RigidContactParameters("much")
    with pytest.raises(ValueError, match=r"mu.*3.*1"):
        RigidContact(model, parameters=RigidContactParameters([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match=r"d_min 0.9.*d_max.*0.5"):
        RigidContact(model, parameters=RelaxedRigidContactParameters(d_max=0.5))
    with pytest.raises(ValueError, match=r"out.*2.*1"):
        impact(model, state, contact, out=(None,))
    builder = ModelBuilder()
    link = builder.add_link(mass=0.0, label="ghost")
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0), armature=1.0)])
    ghost = builder.finalize("cpu")
    with pytest.raises(ValueError, match=r"body 'ghost' \(index 0\).*mass"):
        RigidContact(ghost, ContactPoints(ghost, {"ghost": [(0, 0, 0)]}), parameters=RelaxedRigidContactParameters())
