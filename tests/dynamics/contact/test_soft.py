"""Contact points, terrain and soft contact: the law against its formulas, equilibria, sliding, and errors."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from scipy.integrate import solve_ivp
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder
from newton_like.dynamics import (
    ContactPoints,
    FlatTerrain,
    HeightfieldTerrain,
    PlaneTerrain,
    SoftContact,
    SoftContactParameters,
    contact_point_jacobian_derivatives,
    contact_point_jacobians,
    contact_point_poses,
    contact_point_positions,
    contact_point_velocities,
    estimate_soft_contact_parameters,
    forward_dynamics,
    in_contact,
    integrate,
    link_contact_forces,
    soft_contact_forces,
    state_rate,
)
from newton_like.dynamics.internal import common
from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.types import VelRepr
from tests.dynamics.test_integrators import dense, moved
from tests.support.kinematic_cases import bodies_at, forest, gradient_errors, moving_state, real_array
from tests.support.random_trees import random_state, random_transform
from tests.support.traced import run_traced

BARE = ModelBuilder.ShapeConfig(density=0.0)


@pytest.fixture
def by_numpy(monkeypatch):
    """Functions run by NumPy, in double precision and without a compiler."""

    def run(model, program, arrays, mask=None):
        inputs = len(program.inputs)
        found = run_traced(model, program, [None if a is None else a.numpy() for a in arrays[:inputs]])
        for array, values in zip(arrays[inputs:], found, strict=True):
            array.assign(values.reshape(array.shape))

    monkeypatch.setattr(common, "run", run)


def some_points(rng, model, count=3):
    """Points on half of the bodies."""
    chosen = rng.choice(model.body_count, max(model.body_count // 2, 1), replace=False)
    return ContactPoints(model, {int(b): 0.2 * rng.normal(size=(count, 3)) for b in chosen})


def bodies_of(model, points):
    """Body of every point, -1 without a point, ``[articulation_count, count]``."""
    start = model.articulation_start.numpy()[: model.articulation_count, None]
    child = model.joint_child.numpy()
    return np.where(points.link >= 0, child[np.maximum(start + points.link, 0)], -1)


def reference_kinematics(model, q, qd, points):
    """Positions and velocities of the points, and centres of mass of their bodies, from `eval_fk`."""
    pose, twist = bodies_at(model, q, qd)
    body = bodies_of(model, points)
    R = Rotation.from_quat(pose[:, 3:]).as_matrix()
    com = pose[:, :3] + np.einsum("bij,bj->bi", R, model.body_com.numpy())
    x = pose[body, :3] + np.einsum("apij,apj->api", R[body], points.position)
    v = twist[body, :3] + np.cross(twist[body, 3:], x - com[body])
    return body, x, v, com


def law(depth, n, v, m, K, D, mu, p, q):
    """The specification's formulas for one point: force and rate of the tangential state."""
    if depth <= 0.0:
        return np.zeros(3), -(K / D) * m
    normal = max(0.0, K * depth ** (1 + p) - D * depth**q * (n @ v))
    v_t, m_t = v - n * (n @ v), m - n * (n @ m)
    tangential = -(K * depth**p * m_t + D * depth**q * v_t)
    if np.linalg.norm(tangential) <= mu * normal:
        return n * normal + tangential, v_t
    tangential *= mu * normal / np.linalg.norm(tangential)
    return n * normal + tangential, -(tangential + K * depth**p * m_t) / (D * depth**q)


def box_on_four_points(mass=1.0, worlds=1):
    """Boxes of 20 cm with points on the corners of their bottoms."""
    builder, scene = ModelBuilder(), ModelBuilder()
    box = builder.add_body(mass=mass, inertia=mass / 150 * np.eye(3), label="box")
    builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1, cfg=BARE)
    scene.replicate(builder, worlds)
    return scene


CORNERS = {"box": [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]}

# ----------------------------------------------------------------------------------------------- points


def test_points_of_shapes_are_on_their_surfaces(rng):
    """Corners, rims, tips, vertices; spheres and their like as far from the middle as they should be."""
    vertices = rng.normal(size=(20, 3))
    hull = ConvexHull(vertices)
    frame = random_transform(rng)
    pose = {"xform": frame, "cfg": BARE}
    R = Rotation.from_quat(frame[3:])

    def of(add, **options):
        builder = ModelBuilder()
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        add(builder, body)
        points = ContactPoints(builder.finalize("cpu", dtype=wp.float64), **options)
        assert (points.link == 0).all()
        return R.inv().apply(points.position[0] - frame[:3])

    x = of(lambda b, i: b.add_shape_box(i, hx=1.0, hy=2.0, hz=3.0, **pose))
    assert len(x) == 8
    np.testing.assert_allclose(np.abs(x), np.tile([1.0, 2.0, 3.0], (8, 1)), rtol=1e-12)
    assert len(np.unique(np.sign(x), axis=0)) == 8
    x = of(lambda b, i: b.add_shape_sphere(i, radius=0.4, **pose), sphere_points=50)
    assert len(x) == 50
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 0.4, rtol=1e-12)
    # spread evenly: no direction of space is further from a point than 30 degrees
    directions = rng.normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    assert (directions @ x.T / 0.4).max(axis=1).min() > np.cos(np.pi / 6)
    x = of(lambda b, i: b.add_shape_ellipsoid(i, rx=0.4, ry=0.5, rz=0.6, **pose))
    np.testing.assert_allclose(np.linalg.norm(x / [0.4, 0.5, 0.6], axis=1), 1.0, rtol=1e-12)
    x = of(lambda b, i: b.add_shape_capsule(i, radius=0.1, half_height=0.3, **pose))
    nearest = np.clip(x[:, 2], -0.3, 0.3)[:, None] * [0.0, 0.0, 1.0]
    np.testing.assert_allclose(np.linalg.norm(x - nearest, axis=1), 0.1, rtol=1e-12)
    assert x[:, 2].max() == pytest.approx(0.4)
    assert x[:, 2].min() == pytest.approx(-0.4)
    x = of(lambda b, i: b.add_shape_cylinder(i, radius=0.1, half_height=0.3, **pose), rim_points=12)
    assert len(x) == 24
    np.testing.assert_allclose(np.hypot(x[:, 0], x[:, 1]), 0.1, rtol=1e-12)
    assert sorted(np.round(x[:, 2], 12)) == [-0.3] * 12 + [0.3] * 12
    x = of(lambda b, i: b.add_shape_cone(i, radius=0.1, half_height=0.3, **pose))
    assert len(x) == 9
    np.testing.assert_allclose(x[-1], [0.0, 0.0, 0.3], atol=1e-12)
    mesh = Mesh(vertices, hull.simplices, is_solid=False)
    x = of(lambda b, i: b.add_shape_convex_hull(i, mesh=mesh, scale=(1.0, 2.0, 0.5), **pose))
    order = np.lexsort(x.T)
    expected = vertices[hull.vertices] * [1.0, 2.0, 0.5]
    np.testing.assert_allclose(x[order], expected[np.lexsort(expected.T)], atol=1e-6)


def test_robots_of_one_shape_may_have_different_points(rng, by_numpy):
    """A box, a ball without shapes that collide, and a ball: all three are one free body to the programs."""
    scene = ModelBuilder()
    for k in range(3):
        body = scene.add_body(mass=1.0, inertia=np.eye(3), xform=(0, 0, 0.5 * k, 0, 0, 0, 1))
        if k == 0:
            scene.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=BARE)
        if k == 2:
            scene.add_shape_sphere(body, radius=0.2, cfg=BARE)
    model = scene.finalize("cpu", dtype=wp.float64)
    points = ContactPoints(model, sphere_points=12)
    assert points.count == 12
    assert (points.link >= 0).sum(axis=1).tolist() == [8, 0, 12]
    contact = SoftContact(model, points, FlatTerrain(10.0), SoftContactParameters())
    ground = soft_contact_forces(model, model.state(), contact)
    assert ((ground.depth.numpy() > 0.0) == (points.link >= 0)).all()
    assert ((ground.points.numpy() != 0.0).any(axis=2) == (points.link >= 0)).all()


@pytest.mark.slow
def test_points_move_as_their_bodies_do(rng, by_numpy):
    """Positions and velocities from the bodies' poses and twists; J nu = v; dJ/dt by central differences."""
    model = forest(rng, worlds=2, joints=6).finalize("cpu", dtype=wp.float64)
    points = some_points(rng, model)
    state, q, qd = moving_state(model, rng)
    body, x, v, _ = reference_kinematics(model, q, qd, points)
    on = body >= 0
    # a few dozen roundings of numbers of up to ten
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(contact_point_positions(model, state, points).numpy()[on], x[on], **close)
    np.testing.assert_allclose(contact_point_velocities(model, state, points).numpy()[on], v[on], **close)
    poses = contact_point_poses(model, state, points).numpy()[on]
    np.testing.assert_allclose(poses[:, :3], x[on], **close)
    turns = Rotation.from_quat(poses[:, 3:]) * Rotation.from_quat(bodies_at(model, q, qd)[0][body[on], 3:]).inv()
    assert turns.magnitude().max() < 1e-7
    J = contact_point_jacobians(model, state, points).numpy()
    np.testing.assert_allclose(np.einsum("apid,ad->api", J, dense(model, qd))[on][:, :3], v[on], **close)
    for kind in (VelRepr.MIXED, VelRepr.BODY):
        found = contact_point_jacobian_derivatives(model, state, points, out_repr=kind).numpy()
        near = []
        for step in (1e-5, -1e-5):
            there = SimpleNamespace(joint_q=real_array(model, moved(model, q, qd, step)), joint_qd=state.joint_qd)
            near.append(contact_point_jacobians(model, there, points, out_repr=kind).numpy())
        # truncation: third derivatives of some 100 times step^2; rounding: 1e-16 / step
        np.testing.assert_allclose(found[on], ((near[0] - near[1]) / 2e-5)[on], rtol=1e-7, atol=1e-7)


# ----------------------------------------------------------------------------------------------- terrain


def test_heightfields_interpolate(rng):
    """Host and kernel agree, at heights of the grid, between and beyond; normals are at right angles to central differences."""
    field = HeightfieldTerrain(rng.normal(size=(5, 7)), (-1.0, 2.0), (0.5, 0.25))
    r, c = np.mgrid[:5, :7]
    np.testing.assert_allclose(field.height(-1.0 + 0.5 * c, 2.0 + 0.25 * r), field.heights, rtol=1e-12, atol=1e-12)
    x, y = rng.uniform(-2, 3, (2, 500))
    y = 2.5 + 0.4 * y
    n, h = field.normals(x, y), field.height(x, y)
    step = 1e-6
    for along, way in ((0, (step, 0.0)), (1, (0.0, step))):
        slope = (field.height(x + way[0], y + way[1]) - field.height(x - way[0], y - way[1])) / (2 * step)
        crossing = np.abs(slope + n[:, along] / n[:, 2]) > 1e-6
        # differences across an edge of a cell are one side's and the other's
        assert crossing.mean() < 0.01
    model = ModelBuilder().finalize("cpu", dtype=wp.float64)
    points = np.stack([x, y, rng.normal(size=500)], axis=1)[None]
    out = wp.zeros((1, 500, 4), dtype=wp.float64, device="cpu")
    plane = field.ground(model, wp.array(points, dtype=wp.float64, device="cpu"), out).numpy()[0]
    np.testing.assert_allclose(plane[:, :3], n, rtol=1e-12, atol=1e-12)
    surface = np.stack([x, y, h], axis=1)
    np.testing.assert_allclose(plane[:, 3], (n * surface).sum(axis=1), rtol=1e-12, atol=1e-12)


def test_a_heightfield_source_gives_its_terrain(rng):
    source = Heightfield(rng.normal(size=12), 3, 4, hx=1.5, hy=1.0)
    field = HeightfieldTerrain.from_heightfield(source, (0.1, 0.2, 0.3))
    expected = 0.3 + source.min_z + source.data * (source.max_z - source.min_z)
    np.testing.assert_allclose(field.heights, expected)
    assert field.height(0.1 - 1.5, 0.2 - 1.0) == pytest.approx(expected[0, 0])
    assert field.height(0.1 + 1.5, 0.2 + 1.0) == pytest.approx(expected[-1, -1])


@pytest.mark.slow
def test_a_heightfield_that_is_a_plane_is_one(rng):
    """The same forces, states and wrenches, in single precision as in double."""
    level = PlaneTerrain((0.2, -0.3, 1.0))
    y, x = np.mgrid[-20:21, -20:21].astype(float)
    scene = forest(rng, worlds=2, joints=4)
    found = {}
    for dtype in (wp.float64, wp.float32):
        model = scene.finalize("cpu", dtype=dtype)
        if dtype is wp.float64:
            q, qd = random_state(model, rng)
            given = {int(b): 0.2 * rng.normal(size=(2, 3)) for b in rng.choice(model.body_count, 4, replace=False)}
        state = model.state()
        state.joint_q.assign(q)
        state.joint_qd.assign(qd)
        points = ContactPoints(model, given)
        if dtype is wp.float64:
            # half of the points are below
            places = contact_point_positions(model, state, points).numpy()
            places = places[places.any(axis=-1)]
            above = np.median(places[:, 2] - level.height(places[:, 0], places[:, 1]))
            plane = PlaneTerrain(level.normal, above)
            field = HeightfieldTerrain(plane.height(x, y), (-20.0, -20.0), (1.0, 1.0))
        slips = real_array(
            model, 0.01 * np.random.default_rng(1).normal(size=(model.articulation_count, points.count, 3))
        )
        parameters = SoftContactParameters(1e3, 50.0, 0.6)
        for name, terrain in (("plane", plane), ("field", field)):
            contact = SoftContact(model, points, terrain, parameters)
            found[dtype, name] = [a.numpy() for a in soft_contact_forces(model, state, contact, slips)]
    exact = found[wp.float64, "plane"]
    assert (exact[2] > 0.0).any()
    for key, tolerance in (
        ((wp.float64, "field"), 1e-11),
        ((wp.float32, "plane"), 1e-4),
        ((wp.float32, "field"), 1e-4),
    ):
        for actual, expected in zip(found[key], exact, strict=True):
            scale = max(np.abs(expected).max(), 1.0)
            # roundings of heights of up to ten metres, through stiff springs; single precision: the bound of the issue
            np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale)


# ----------------------------------------------------------------------------------------------- the law


@pytest.mark.parametrize("exponents", [(0.5, 0.5), (0.7, 0.3), (0.0, 1.0)])
def test_forces_and_rates_follow_the_formulas(rng, by_numpy, exponents):
    """Free, sticking, slipping and leaving points of random robots on a tilted plane, and the wrenches of their links."""
    model = forest(rng, worlds=3, joints=6).finalize("cpu", dtype=wp.float64)
    points = some_points(rng, model)
    state = model.state()
    plane = PlaneTerrain(rng.normal(size=3) * 0.3 + [0, 0, 1], 0.1)
    count = model.articulation_count
    K, D, mu = 10 ** rng.uniform(2, 3, count), 10 ** rng.uniform(1, 2, count), rng.uniform(0.05, 1.0, count)
    contact = SoftContact(model, points, plane, SoftContactParameters(K, D, mu, *exponents))
    seen = {"free": 0, "stick": 0, "slip": 0, "leave": 0}
    for speed in (0.01, 1.0, 10.0):
        q, qd = random_state(model, rng, speed=speed)
        state.joint_q.assign(q)
        state.joint_qd.assign(qd)
        m = 10.0 ** rng.uniform(-3, -0.5, (*contact.shape[:2], 1)) * rng.normal(size=contact.shape)
        given = rng.normal(size=(model.body_count, 6))
        found = soft_contact_forces(model, state, contact, m, link_forces=given)
        forces, rates, depths, wrenches = (a.numpy() for a in found)
        body, x, v, com = reference_kinematics(model, q, qd, points)
        links = {}
        for a, i in np.argwhere(body >= 0):
            depth = (plane.height(x[a, i, 0], x[a, i, 1]) - x[a, i, 2]) * plane.normal[2]
            expected = law(depth, plane.normal, v[a, i], m[a, i], K[a], D[a], mu[a], *exponents)
            scale = K[a] + np.abs(expected[0]).max()
            np.testing.assert_allclose(forces[a, i], expected[0], rtol=0.0, atol=1e-11 * scale)
            # the formula for slipping points loses digits to cancellation where they are hardly in the ground
            np.testing.assert_allclose(rates[a, i], expected[1], rtol=1e-7, atol=1e-7 * (speed + K[a] / D[a]))
            assert depths[a, i] == pytest.approx(max(depth, 0.0), rel=1e-10, abs=1e-12)
            v_t = v[a, i] - plane.normal * (plane.normal @ v[a, i])
            pushed = expected[0] @ plane.normal > 0.0
            sticks = np.array_equal(expected[1], v_t)
            seen["free" if depth <= 0.0 else "leave" if not pushed else "stick" if sticks else "slip"] += 1
            key = (a, points.link[a, i], body[a, i])
            force, torque = links.get(key, (0.0, 0.0))
            links[key] = (force + forces[a, i], torque + np.cross(x[a, i] - com[body[a, i]], forces[a, i]))
        ground = link_contact_forces(model, state, contact, m, repr=VelRepr.MIXED).numpy()
        pose = bodies_at(model, q, qd)[0]
        for (a, k, b), (force, torque) in links.items():
            size = {"rtol": 0.0, "atol": 1e-11 * (K[a] + np.abs(force).max())}
            np.testing.assert_allclose(wrenches[a, k], np.concatenate([force, torque]) + given[b], **size)
            about_origin = torque + np.cross(com[b] - pose[b, :3], force)
            np.testing.assert_allclose(ground[a, k], np.concatenate([force, about_origin]), **size)
    assert min(seen["free"], seen["stick"], seen["slip"]) > 0, seen


@pytest.mark.slow
def test_a_thrown_point_moves_as_its_equations_say(rng):
    """A point mass lands on a slope, slides, sticks: position, velocity and tangential state by another integrator."""
    builder = ModelBuilder()
    builder.add_body(mass=0.5, inertia=np.eye(3), label="point")
    model = builder.finalize("cpu", dtype=wp.float64)
    plane, K, D, mu = PlaneTerrain((0.3, 0.1, 1.0)), 4.0e3, 200.0, 0.6
    contact = SoftContact(model, ContactPoints(model, {"point": [(0, 0, 0)]}), plane, SoftContactParameters(K, D, mu))
    n, start = plane.normal, np.array([0.0, 0.0, 0.02, *rng.uniform(-1, 1, 2), -1.0, 0.0, 0.0, 0.0])

    def rate(t, y):
        depth = (plane.height(y[0], y[1]) - y[2]) * n[2]
        force, m_rate = law(depth, n, y[3:6], y[6:], K, D, mu, 0.5, 0.5)
        return np.concatenate([y[3:6], force / 0.5 + [0, 0, -9.81], m_rate])

    expected = solve_ivp(rate, (0.0, 0.4), start, rtol=1e-9, atol=1e-11, max_step=1e-3, t_eval=[0.05, 0.1, 0.4]).y.T
    state, slip, at = model.state(), contact.state(), 0
    state.joint_q.assign([*start[:3], 0, 0, 0, 1])
    state.joint_qd.assign([*start[3:6], 0, 0, 0])
    for step, reached in ((500, expected[0]), (1000, expected[1]), (4000, expected[2])):
        for _ in range(step - at):
            integrate(model, state, state, 1e-4, "rk4", contact=contact, contact_state=slip)
        at = step
        found = np.concatenate([state.joint_q.numpy()[:3], state.joint_qd.numpy()[:3], slip.numpy()[0, 0]])
        # the damper sets in as the square root of the depth: with an error of the velocity of D / m dt^1.5, 4e-4, at each impact,
        # and one of what follows from it within a few milliseconds
        np.testing.assert_allclose(found[3:6], reached[3:6], rtol=0.0, atol=1e-3)
        np.testing.assert_allclose(found[:3], reached[:3], rtol=0.0, atol=5e-5)
        np.testing.assert_allclose(found[6:], reached[6:], rtol=0.0, atol=5e-5)
    assert np.abs(expected[1][6:]).max() > 1e-4


# ----------------------------------------------------------------------------------------------- bodies on the ground


@pytest.mark.slow
def test_a_box_settles_as_deep_as_it_was_told():
    """1 kg on four points, one millimetre: 1.000 mm, level, and at rest; and the estimate's closed form."""
    model = box_on_four_points().finalize("cpu", dtype=wp.float64)
    points = ContactPoints(model, CORNERS)
    parameters = estimate_soft_contact_parameters(model, 0.5, 4, 1.0, 1e-3, points=points)
    np.testing.assert_allclose(parameters.stiffness, 9.81 / 4 / 1e-3**1.5, rtol=1e-12)
    np.testing.assert_allclose(parameters.damping, 2 * np.sqrt(9.81 / 4 / 1e-3**1.5), rtol=1e-12)
    contact = SoftContact(model, points, FlatTerrain(0.3), parameters)
    state, slip = model.state(), contact.state()
    state.joint_q.assign([0.0, 0.0, 0.41, 0.0, 0.0, 0.0, 1.0])
    assert not in_contact(model, state, contact).numpy().any()
    for _ in range(1000):
        integrate(model, state, state, 1e-3, "rk4", contact=contact, contact_state=slip)
    assert in_contact(model, state, contact).numpy().all()
    depth = soft_contact_forces(model, state, contact, slip).depth.numpy()
    np.testing.assert_allclose(depth, 1e-3, rtol=1e-6)
    assert np.abs(state.joint_qd.numpy()).max() < 1e-8
    total = link_contact_forces(model, state, contact, slip).numpy()[0, 0]
    np.testing.assert_allclose(total, [0, 0, 9.81, 0, 0, 0], atol=1e-6)


@pytest.mark.slow
def test_a_box_on_a_slope_sticks_below_its_angle_of_friction_and_slides_above():
    """mu = 1.05 tan(angle) holds it; mu = 0.95 tan(angle) lets it go with g (sin - mu cos)."""
    angle = 0.3
    model = box_on_four_points(worlds=2).finalize("cpu", dtype=wp.float64)
    mu = np.tan(angle) * np.array([1.05, 0.95])
    points = ContactPoints(model, CORNERS)
    estimate = estimate_soft_contact_parameters(model, 0.0, 4, 1.0, 1e-3, points=points)
    parameters = SoftContactParameters(estimate.stiffness, estimate.damping, mu)
    contact = SoftContact(model, points, PlaneTerrain((-np.sin(angle), 0, np.cos(angle))), parameters)
    turn = Rotation.from_rotvec([0, -angle, 0])
    state, slip = model.state(), contact.state()
    state.joint_q.assign(np.tile([*turn.apply([0, 0, 0.099]), *turn.as_quat()], 2))
    speeds = []
    for step in range(1200):
        integrate(model, state, state, 1e-3, "rk4", contact=contact, contact_state=slip)
        if step in (799, 1199):
            speeds.append(turn.inv().apply(state.joint_qd.numpy().reshape(2, 6)[:, :3]))
    assert np.abs(speeds[-1][0]).max() < 1e-6
    downhill = (speeds[0] - speeds[1])[1, 0] / 0.4
    # it rocks a little still
    assert downhill == pytest.approx(9.81 * (np.sin(angle) - mu[1] * np.cos(angle)), rel=1e-3)


def test_default_parameters_come_from_the_robot(rng):
    """0.5 % of twice the height of the centre of mass above the lowest point, at rest on four points."""
    builder = ModelBuilder()
    body = builder.add_body(mass=3.0, com=(0, 0, 0.05), inertia=np.eye(3), xform=(1, 2, 3, 0, 0, 0, 1))
    builder.add_shape_sphere(body, radius=0.2, cfg=BARE)
    model = builder.finalize("cpu", dtype=wp.float64)
    contact = SoftContact(model)
    depth = 0.01 * 0.25
    assert contact.parameters.stiffness[0] == pytest.approx(3.0 * 9.81 / 4 / depth**1.5, rel=1e-12)
    assert isinstance(contact.terrain, FlatTerrain)


@pytest.mark.slow
def test_state_rate_counts_contact(rng):
    """Velocities and contact states change as under the wrenches of soft_contact_forces."""
    model = forest(rng, worlds=2, joints=4).finalize("cpu", dtype=wp.float64)
    state, _, _ = moving_state(model, rng)
    contact = SoftContact(model, some_points(rng, model), FlatTerrain(0.2), SoftContactParameters(1e3, 50.0))
    given = rng.normal(size=(model.body_count, 6))
    ground = soft_contact_forces(model, state, contact, link_forces=given)
    rate = state_rate(model, state, link_forces=given, contact=contact, passive=())
    expected = forward_dynamics(model, state, link_forces=ground.links).numpy()
    np.testing.assert_array_equal(rate.joint_qd.numpy(), expected)
    np.testing.assert_array_equal(rate.contact.numpy(), ground.state_rate.numpy())


@pytest.mark.slow
def test_gradients_are_those_of_central_differences(rng):
    """To coordinates, velocities, tangential states and the constants of the law, on a heightfield."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, com=0.1 * rng.normal(size=3), inertia=np.eye(3), label="body")
    model = builder.finalize("cpu", dtype=wp.float64)
    points = ContactPoints(model, {"body": 0.3 * rng.normal(size=(3, 3))})
    field = HeightfieldTerrain(1.0 + 0.1 * rng.normal(size=(8, 8)), (-4.0, -4.0), (1.1, 1.1))
    q, qd = random_state(model, rng)

    def forces(joint_q, joint_qd, slip, constants):
        contact = SoftContact(model, points, field, SoftContactParameters(50.0, 5.0, 0.7))
        contact.law = constants.reshape((1, 5))
        state = SimpleNamespace(joint_q=joint_q, joint_qd=joint_qd)
        found = soft_contact_forces(model, state, contact, slip.reshape((1, 3, 3)))
        return [found.points, found.state_rate, found.depth, found.links]

    inputs = [q, qd, 0.1 * rng.normal(size=9), np.array([50.0, 5.0, 0.7, 0.5, 0.5])]
    errors = gradient_errors(forces, inputs, rng)
    # central differences: rounding 1e-16 / 1e-6 of forces of some 100, and third derivatives of depth^1.5 times 1e-12
    assert max(errors) < 1e-6


# ----------------------------------------------------------------------------------------------- bad input


def test_what_makes_no_sense_is_refused(rng):
    model = box_on_four_points().finalize("cpu")
    other = box_on_four_points().finalize("cpu")
    state = model.state()
    with pytest.raises(KeyError, match=r"points.*'foot'"):
        ContactPoints(model, {"foot": [[0, 0, 0]]})
    with pytest.raises(IndexError, match=r"points: body 7"):
        ContactPoints(model, {7: [[0, 0, 0]]})
    with pytest.raises(KeyError, match=r"'bax'.*'box'"):
        ContactPoints(model, {"bax": [[0, 0, 0]]})
    with pytest.raises(ValueError, match=r"points.*'box'.*finite.*\[n, 3\].*\(3,\)"):
        ContactPoints(model, {"box": [0, 0, 0]})
    with pytest.raises(TypeError, match=r"points"):
        ContactPoints(model, [[0, 0, 0]])
    with pytest.raises(ValueError, match=r"points .*model"):
        contact_point_positions(model, state, ContactPoints(other))
    with pytest.raises(TypeError, match=r"points.*ContactPoints\(model, ...\)"):
        contact_point_positions(model, state, CORNERS)
    with pytest.raises(ValueError, match=r"out_repr=None.*VelRepr"):
        contact_point_jacobians(model, state, ContactPoints(model), out_repr=None)
    with pytest.raises(ValueError, match=r"normal.*plane"):
        PlaneTerrain((1, 0, 0))
    with pytest.raises(ValueError, match=r"\[2, 2\]"):
        HeightfieldTerrain([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"heights.*finite"):
        HeightfieldTerrain([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match=r"spacing.*0"):
        HeightfieldTerrain(np.zeros((2, 2)), spacing=(1, 0))
    for name, value, wanted in (
        ("stiffness", 0.0, "0"), ("damping", -1.0, "0"), ("mu", -0.1, "0"), ("p", np.nan, "finite"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{name} .*soft contact.*{wanted}"):
            SoftContactParameters(**{name: value})
    with pytest.raises(ValueError, match=r"stiffness.*3.*1"):
        SoftContact(model, parameters=SoftContactParameters(stiffness=[1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match=r"terrain.*FlatTerrain.*PlaneTerrain.*HeightfieldTerrain"):
        SoftContact(model, terrain=0.0)
    contact = SoftContact(model)
    with pytest.raises(ValueError, match=r"contact .*model"):
        soft_contact_forces(other, other.state(), contact)
    with pytest.raises(ValueError, match=r"contact_state.*\(1, 2, 3\).*\(1, 8, 3\)"):
        soft_contact_forces(model, state, contact, np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match=r"out_repr=None.*VelRepr"):
        link_contact_forces(model, state, contact, out_repr=None)
    with pytest.raises(ValueError, match=r"contact.*contact_state.*contact.state\(\)"):
        integrate(model, state, state, 0.01, contact=contact)
    with pytest.raises(ValueError, match=r"max_penetration"):
        estimate_soft_contact_parameters(model, points=ContactPoints(model, {"box": [[0, 0, 1]]}))
    with pytest.raises(ValueError, match=r"max_penetration -1.0.*0"):
        estimate_soft_contact_parameters(model, max_penetration=-1)
    with pytest.raises(ValueError, match=r"damping_ratio"):
        estimate_soft_contact_parameters(model, damping_ratio=0)
    builder = ModelBuilder(gravity=0.0)
    builder.add_body(mass=1.0, inertia=np.eye(3), label="adrift")
    with pytest.raises(ValueError, match=r"weight.*parameters"):
        SoftContact(builder.finalize("cpu"))
    sideways = ModelBuilder(up_axis="Y")
    sideways.add_body(mass=1.0, inertia=np.eye(3))
    with pytest.raises(ValueError, match=r"up axis.*Y.*Z"):
        SoftContact(sideways.finalize("cpu"), parameters=SoftContactParameters())
