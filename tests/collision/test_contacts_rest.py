"""Bodies at rest on planes: how high, how still and under which forces, and which shapes may touch at all."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, ShapeConfig
from newton_like.geometry.mesh import Mesh
from tests.support.random_trees import random_unit
from tests.support.simulate import GRAVITY, Simulation, worlds_of

UPRIGHT, LYING = Rotation.identity(), Rotation.from_rotvec([0.0, np.pi / 2.0, 0.0])
DEFAULT_SINK = GRAVITY * ShapeConfig().time_constant ** 2
"""By how much a body with one contact below its centre of mass sinks [m]."""


def frustum() -> Mesh:
    """A truncated pyramid, 0.2 below its frame."""
    corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]], float)
    points = np.concatenate([np.c_[0.3 * corners, np.full(4, -0.2)], np.c_[0.2 * corners, np.full(4, 0.25)]])
    sides = [[i, (i + 1) % 4, 4 + (i + 1) % 4] for i in range(4)] + [[i, 4 + (i + 1) % 4, 4 + i] for i in range(4)]
    triangles = [[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], *sides]
    return Mesh(points, np.array(triangles)[:, ::-1].ravel())


# name: shape method, sizes, orientation, height of the frame above the plane, whether it cannot roll
RESTING = {
    "sphere": ("sphere", {"radius": 0.13}, UPRIGHT, 0.13, False),
    "box": ("box", {"hx": 0.2, "hy": 0.15, "hz": 0.1}, UPRIGHT, 0.1, True),
    "box on its side": ("box", {"hx": 0.2, "hy": 0.15, "hz": 0.1}, LYING, 0.2, True),
    "capsule, lying": ("capsule", {"radius": 0.1, "half_height": 0.2}, LYING, 0.1, False),
    "capsule, standing": ("capsule", {"radius": 0.1, "half_height": 0.2}, UPRIGHT, 0.3, False),
    "cylinder, lying": ("cylinder", {"radius": 0.1, "half_height": 0.2}, LYING, 0.1, False),
    "cylinder, standing": ("cylinder", {"radius": 0.1, "half_height": 0.2}, UPRIGHT, 0.2, True),
    "cone": ("cone", {"radius": 0.2, "half_height": 0.15}, UPRIGHT, 0.15, True),
    "ellipsoid": ("ellipsoid", {"rx": 0.3, "ry": 0.2, "rz": 0.1}, UPRIGHT, 0.1, False),
    "frustum": ("convex_hull", {}, UPRIGHT, 0.2, True),
}


def resting(name: str, tilt: Rotation = UPRIGHT, lift: float = 0.0, cfg=None, plane_cfg=None, **plane) -> ModelBuilder:
    """A body of `RESTING` above the plane through the origin that is turned by `tilt`."""
    method, sizes, orientation, height, _ = RESTING[name]
    sizes = {"mesh": frustum()} if name == "frustum" else sizes
    builder = ModelBuilder()
    builder.add_shape_plane(
        xform=(0, 0, 0, *tilt.as_quat()), cfg=plane_cfg or cfg, **({"width": 0.0, "length": 0.0} | plane)
    )
    body = builder.add_body(xform=(*tilt.apply([0, 0, height + lift]), *(tilt * orientation).as_quat()))
    getattr(builder, f"add_shape_{method}")(body, cfg=cfg, **sizes)
    return builder


def heights(simulation) -> np.ndarray:
    return simulation.poses[:, 0, 2]


def weights(model) -> np.ndarray:
    return GRAVITY * model.body_mass.numpy().astype(np.float64)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_shapes_rest_at_their_height_without_drifting(dtype):
    simulation = Simulation(worlds_of(resting(n, lift=0.01) for n in RESTING), dtype=dtype)
    model = simulation.model
    simulation.run(2.0)
    before = simulation.poses[:, 0]
    expected = np.array([r[3] for r in RESTING.values()])
    # Contacts away from the centre of mass give way more easily: up to (1 + 3 + 3) / 4 of the sinking with one contact for a box, more
    # for a cylinder on eight points of its rim. Float32 adds its rounding of 1e-8 over the softness.
    sink = expected - before[:, 2]
    assert sink.min() > 0.1 * DEFAULT_SINK
    assert sink.max() < 4.0 * DEFAULT_SINK
    assert np.abs(simulation.velocities).max() < 1e-3
    forces = simulation.solver.contact_forces().numpy().reshape(len(RESTING), 2, 3).astype(np.float64)
    shape_body = model.shape_body.numpy().reshape(len(RESTING), 2)
    np.testing.assert_array_equal(shape_body[:, 0], -1)
    # The body is held against its weight; a sweep that has not converged leaves a thousandth.
    weight = weights(model)
    np.testing.assert_allclose(forces[:, 1] / weight[:, None], np.tile([0, 0, 1.0], (len(RESTING), 1)), atol=2e-3)
    simulation.run(5.0)
    after = simulation.poses[:, 0]
    assert np.abs(after[:, 2] - before[:, 2]).max() < 5e-6  # a micrometre a second
    # Friction holds but for rounding: a penetration of 0.01 mm is known to 1e-3 in float32, which leaves forces along the plane. What can
    # roll may do so slowly.
    creep = 1e-6 if dtype == wp.float64 else 1e-4
    slow = np.array([creep if r[4] else 1e-3 for r in RESTING.values()])
    assert (np.linalg.norm(after[:, :2] - before[:, :2], axis=1) < slow).all()


def test_shapes_rest_on_tilted_planes(rng):
    names = [n for n, r in RESTING.items() if r[4]]
    tilts = [Rotation.from_rotvec(rng.uniform(0.1, 0.35) * np.append(random_unit(rng)[:2], 0)) for _ in names]
    simulation = Simulation(worlds_of(resting(n, t) for n, t in zip(names, tilts, strict=True)))
    simulation.run(1.0)
    before = simulation.poses[:, 0]
    normals = np.array([t.apply([0, 0, 1]) for t in tilts])
    sink = np.array([RESTING[n][3] for n in names]) - np.sum(before[:, :3] * normals, axis=1)
    # As on level ground; the corners downhill carry more, up to twice as much.
    assert np.abs(sink).max() < 8.0 * DEFAULT_SINK
    forces = simulation.solver.contact_forces().numpy().reshape(len(names), 2, 3)[:, 1].astype(np.float64)
    np.testing.assert_allclose(
        forces / weights(simulation.model)[:, None], np.tile([0, 0, 1.0], (len(names), 1)), atol=5e-3
    )
    simulation.run(5.0)
    # Friction holds: no more than 20 micrometres a second (mu is 1, the steepest plane has 0.36).
    assert np.linalg.norm(simulation.poses[:, 0, :3] - before[:, :3], axis=1).max() < 1e-4


def test_softness_is_the_sinking_it_documents(rng):
    # A single contact below the centre of mass sinks by g time_constant^2, with the mean time constant of both shapes, for any damping.
    count = 12
    constants, ratios = 10.0 ** rng.uniform(-2.5, -1.3, (count, 2)), rng.uniform(0.3, 2.0, (count, 2))
    builders = [
        resting("sphere", cfg=ShapeConfig(time_constant=t[0], damping_ratio=z[0]),
                plane_cfg=ShapeConfig(time_constant=t[1], damping_ratio=z[1]))
        for t, z in zip(constants, ratios, strict=True)
    ]  # fmt: skip
    simulation = Simulation(worlds_of(builders), dtype=wp.float64)
    simulation.run(5.0)
    sink = GRAVITY * constants.mean(axis=1) ** 2
    # The slowest decays as exp(-zeta t / time_constant) or, overdamped, as exp(-t / (4 time_constant)), with a constant below 0.2 s; rest
    # is an exact fixed point.
    np.testing.assert_allclose(0.13 - heights(simulation), sink, rtol=1e-6)


def test_corners_sink_by_their_load_and_effective_mass():
    # Each corner of a box carries a quarter; its point has the inverse effective mass A = 1 / m + |point x normal|^2 of the inertia.
    simulation = Simulation(
        worlds_of([resting("box", cfg=ShapeConfig(time_constant=0.02, damping_ratio=1.0))]), dtype=wp.float64
    )
    simulation.run(3.0)
    model = simulation.model
    mass, inertia = float(model.body_mass.numpy()[0]), np.diag(model.body_inertia.numpy()[0])
    A = 1.0 / mass + 0.15**2 / inertia[0] + 0.2**2 / inertia[1]
    # An exact fixed point, reached by sweeps whose error shrinks at least tenfold in ten steps.
    np.testing.assert_allclose(0.1 - heights(simulation), 0.25 * mass * GRAVITY * A * 0.02**2, rtol=1e-4)


def test_a_loaded_contact_moves_as_its_spring_and_damper():
    # Put on the plane at rest: x'' = -g - 2 zeta omega x' - omega^2 x, omega = 1 / time_constant.
    omega, ratios = 20.0, np.array([0.4, 0.7, 1.0001, 2.0])
    builders = [resting("sphere", cfg=ShapeConfig(time_constant=1.0 / omega, damping_ratio=z)) for z in ratios]
    dt = 1.0 / 4000.0
    simulation = Simulation(worlds_of(builders), dt, dtype=wp.float64)
    seen = simulation.run(0.5, lambda: heights(simulation) - 0.13)
    t = dt * np.arange(1, len(seen) + 1)[:, None]
    root = np.sqrt((ratios**2 - 1.0).astype(complex))
    a, b = omega * (-ratios + root), omega * (-ratios - root)
    decay = ((b * np.exp(a * t) - a * np.exp(b * t)) / (b - a)).real
    expected = -GRAVITY / omega**2 * (1.0 - decay)
    # First order: omega dt = 0.5 % of the depth.
    np.testing.assert_allclose(seen, expected, atol=0.01 * GRAVITY / omega**2)


def test_margins_lift_the_surfaces(rng):
    margins = rng.uniform(0.0, 0.05, (6, 2))
    names = ["sphere", "box", "capsule, lying", "cylinder, standing", "ellipsoid", "frustum"]
    builders = [
        resting(n, lift=0.11, cfg=ShapeConfig(margin=m[0]), plane_cfg=ShapeConfig(margin=m[1]))
        for n, m in zip(names, margins, strict=True)
    ]
    simulation = Simulation(worlds_of(builders))
    simulation.run(2.0)
    expected = np.array([RESTING[n][3] for n in names]) + margins.sum(axis=1)
    sink = expected - heights(simulation)
    assert sink.min() > 0.0
    assert sink.max() < 4.0 * DEFAULT_SINK


def test_groups_and_filters_decide_who_touches():
    groups = [(1, 1), (1, 2), (0, 1), (1, 0), (-1, 1), (-1, -1), (-1, -2), (2, 2), (3, -2), (0, 0), (0, -1)]
    # Group 0 does not collide; a positive group collides with itself and negative groups, a negative group with all except itself.
    touches = [True, False, False, False, True, False, True, True, True, False, False]
    builders = [
        resting("sphere", cfg=ShapeConfig(collision_group=a), plane_cfg=ShapeConfig(collision_group=b))
        for a, b in groups
    ]
    filtered = resting("sphere")
    filtered.add_shape_collision_filter_pair(0, 1)
    ghost = resting("sphere", cfg=ShapeConfig(has_shape_collision=False), plane_cfg=ShapeConfig())
    simulation = Simulation(worlds_of([*builders, filtered, ghost]))
    simulation.run(0.5)
    fallen = 0.13 - 0.5 * GRAVITY * 0.5**2
    expected = np.where([*touches, False, False], 0.13, fallen)
    # Rest is 0.01 mm lower; free fall is exact to rounding.
    np.testing.assert_allclose(heights(simulation), expected, atol=2.0 * DEFAULT_SINK)


def test_a_finite_plane_ends_at_its_edges():
    # Extents of 2 m along x and 1 m along y: spheres whose centres are within are held, others fall.
    places = [
        (0.95, 0.0),
        (1.05, 0.0),
        (0.0, 0.45),
        (0.0, 0.55),
        (-0.95, -0.45),
        (-1.05, 0.45),
        (0.0, -0.55),
        (-1.05, 0.0),
    ]
    builders = []
    for x, y in places:
        builder = resting("sphere", width=2.0, length=1.0)
        builder.joint_q[:2] = [x, y]
        builders.append(builder)
    simulation = Simulation(worlds_of(builders))
    simulation.run(0.5)
    inside = np.array([abs(x) < 1.0 and abs(y) < 0.5 for x, y in places])
    np.testing.assert_allclose(
        heights(simulation), np.where(inside, 0.13, 0.13 - 0.5 * GRAVITY * 0.5**2), atol=2.0 * DEFAULT_SINK
    )


def test_hulls_touch_with_every_vertex_below_the_plane(rng):
    # Up to four vertices below the plane, and a wider ring a little above it: all of those below carry the shape. One that is left out
    # sinks, and what pushes it out later adds energy: a robot that rocked from vertex to vertex climbed so by 0.06 J a second.
    cases = [("line", n) for n in (2, 2, 3, 3)] + [("round", n) for n in (3, 3, 4, 4, 4)]
    builders, below = [], []
    for kind, n in cases:
        depth = 1e-4 * rng.uniform(0.3, 1.0, n)
        if kind == "line":
            # of three in a row the middle one is the deepest, or it were no vertex
            depth = np.sort(depth)[[1, 2, 0][:n]] if n == 3 else depth
            angle = rng.uniform(0.0, np.pi)
            xy = np.outer([-0.1, 0.0, 0.1] if n == 3 else [-0.1, 0.1], [np.cos(angle), np.sin(angle)])
        else:
            angle = 2.0 * np.pi * (np.arange(n) + rng.uniform(0.0, 0.3, n)) / n
            xy = 0.1 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        ring = 2.0 * np.pi * (np.arange(24) + rng.uniform(0.0, 0.5, 24)) / 24
        wide = np.stack([0.2 * np.cos(ring), 0.2 * np.sin(ring), rng.uniform(1e-3, 4e-3, 24)], axis=1)
        points = np.concatenate([np.c_[xy, -depth], wide, [[0.0, 0.0, 0.2]]])
        builder = ModelBuilder()
        builder.add_ground_plane()
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        hull = ConvexHull(points)
        corners = points[hull.simplices]
        outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        inverted = np.sum(outward * hull.equations[:, :3], axis=1) < 0.0
        triangles = np.where(inverted[:, None], hull.simplices[:, ::-1], hull.simplices)
        builder.add_shape_convex_hull(body, mesh=Mesh(points, triangles.ravel()))
        builders.append(builder)
        below.append(np.c_[xy, -depth])
    model = worlds_of(builders).finalize("cpu")
    contacts = model.collide(model.state())
    count = int(contacts.rigid_contact_count.numpy()[0])
    world = model.shape_world.numpy()[contacts.rigid_contact_shape1.numpy()[:count]]
    points = contacts.rigid_contact_point1.numpy()[:count].astype(np.float64)
    for w, expected in enumerate(below):
        found = points[world == w]
        found = found[found[:, 2] < 0.0]
        distance = np.linalg.norm(expected[:, None] - found[None], axis=2).min(axis=1)
        assert distance.max() < 1e-6, (cases[w], expected, found)  # vertices in float32


def test_dropped_boxes_and_capsules_come_to_rest_as_in_mujoco(rng):
    mujoco = pytest.importorskip("mujoco")
    from tests.support.mujoco_bridge import MujocoBridge

    names = ["box", "box", "box", "capsule, lying", "capsule, lying", "capsule, lying"]
    builders = []
    for name in names:
        builder = resting(name, lift=0.3)
        turn = Rotation.from_rotvec(rng.uniform(0.1, 0.4) * random_unit(rng))
        builder.joint_q[3:] = (turn * Rotation.from_quat(builder.joint_q[3:])).as_quat().tolist()
        builders.append(builder)
    simulation = Simulation(worlds_of(builders))
    simulation.run(5.0)
    expected = np.array([RESTING[n][3] for n in names])
    force = simulation.solver.contact_forces().numpy().reshape(len(names), 2, 3)[:, 1].astype(np.float64)
    weight = weights(simulation.model)
    np.testing.assert_allclose(heights(simulation), expected, atol=1e-3)
    np.testing.assert_allclose(force[:, 2], weight, rtol=1e-2)
    for w in range(len(names)):
        bridge = MujocoBridge(simulation.model, world=w, contacts=True)
        q = simulation.model.joint_q.numpy().reshape(len(names), 7)[w].astype(np.float64)
        bridge.data.qpos[:] = np.concatenate([q[:3], q[[6, 3, 4, 5]]])
        bridge.model.opt.timestep = 1.0 / 1000.0
        for _ in range(5000):
            mujoco.mj_step(bridge.model, bridge.data)
        # The acceptance of the task: 1 mm.
        assert abs(bridge.data.qpos[2] - heights(simulation)[w]) < 1e-3
        assert abs(bridge.data.qfrc_constraint[2] / force[w, 2] - 1.0) < 1e-2


# ---------------------------------------------------------------------------------------------------- contacts that are handed over


def run_with(simulation, seconds: float, contacts_of) -> None:
    """Steps with the contacts that ``contacts_of(state)`` gives."""
    for _ in range(round(seconds / simulation.dt)):
        contacts = contacts_of(simulation.state)
        simulation.solver.step(simulation.state, simulation.state, simulation.control, contacts, simulation.dt)


@pytest.mark.slow
def test_contacts_from_collide_give_the_same_rest():
    simulation = Simulation(worlds_of(resting(n, lift=0.01) for n in RESTING))
    run_with(simulation, 2.0, simulation.model.collide)
    assert simulation.solver.unused_contacts() == 0
    found = Simulation(worlds_of(resting(n, lift=0.01) for n in RESTING))
    found.run(2.0)
    # Contacts of the list are found half a drift earlier; at rest that is nothing. The rest is what a sinking of 0.01 mm can differ.
    np.testing.assert_allclose(heights(simulation), heights(found), atol=2e-5)
    assert np.abs(simulation.velocities).max() < 1e-3


@pytest.mark.slow
def test_hulls_use_all_contacts_with_shapes_around_them(rng):
    """A hexagonal prism in a corner has a face on the floor, and one at each of two walls."""
    turn = np.pi / 3.0 * np.arange(6)
    corners = np.concatenate([np.c_[0.1 * np.cos(turn), 0.1 * np.sin(turn), np.full(6, z)] for z in (-0.1, 0.1)])
    prism = Mesh(corners, ConvexHull(corners).simplices, compute_inertia=False)
    builder = ModelBuilder()
    builder.add_shape_box(-1, xform=(0, 0, -0.5, 0, 0, 0, 1), hx=1.0, hy=1.0, hz=0.5)
    for angle in (0.0, np.pi / 3.0):
        out, turned = np.array([np.sin(angle), np.cos(angle), 0.0]), Rotation.from_euler("z", -angle).as_quat()
        place = out * (0.1 * np.cos(np.pi / 6.0) + 0.5 - 1.0e-5)
        builder.add_shape_box(-1, xform=(*place, *turned), hx=0.3, hy=0.5, hz=0.3)
    builder.add_shape_convex_hull(builder.add_body(xform=(0, 0, 0.1 - 1.0e-5, 0, 0, 0, 1)), mesh=prism)
    simulation = Simulation(builder)
    contacts = simulation.model.collide(simulation.state)
    assert contacts.rigid_contact_count.numpy()[0] == 6 + 4 + 4
    run_with(simulation, 0.5, simulation.model.collide)
    assert simulation.solver.unused_contacts() == 0
    assert np.abs(simulation.velocities).max() < 1e-3


def given(model, rows):
    """A list of contacts from rows (shape0, shape1, point0, point1, normal)."""
    contacts = model.contacts(len(rows))
    columns = [np.array([r[i] for r in rows]) for i in range(5)]
    names = ("shape0", "shape1", "point0", "point1", "normal")
    for name, column in zip(names, columns, strict=True):
        getattr(contacts, f"rigid_contact_{name}").assign(column)
    contacts.rigid_contact_count.assign([len(rows)])
    return contacts


@pytest.mark.slow
@pytest.mark.parametrize("swapped", [False, True])
def test_a_ball_rests_on_a_fixed_box_by_contacts_of_the_user(swapped):
    builder = ModelBuilder()
    builder.default_shape_cfg = ShapeConfig(time_constant=0.002, damping_ratio=1.0)
    box = builder.add_shape_box(-1, xform=(0, 0, 0.5, 0, 0, 0, 1), hx=1.0, hy=1.0, hz=0.5)
    body = builder.add_body(xform=(0.2, 0.1, 1.15, 0, 0, 0, 1))
    ball = builder.add_shape_sphere(body, radius=0.1)
    simulation = Simulation(builder, unsupported_contacts="ignore")

    def contacts_of(state):
        X = state.body_q.numpy()[0].astype(np.float64)
        lowest = Rotation.from_quat(X[3:]).inv().apply([0, 0, -0.1])
        top = [X[0], X[1], 1.0]
        if swapped:
            return given(simulation.model, [(ball, box, lowest, top, [0, 0, -1.0])])
        return given(simulation.model, [(box, ball, top, lowest, [0, 0, 1.0])])

    run_with(simulation, 1.0, contacts_of)
    assert simulation.solver.unused_contacts() == 0
    # The documented sinking of one contact, to a tenth: 1.1 m in float32 is known to 1e-7.
    np.testing.assert_allclose(1.1 - heights(simulation), GRAVITY * 0.002**2, rtol=0.1)


def test_contacts_without_a_use_are_counted_by_world(rng):
    """A ball uses eight contacts with the ground; further ones count for its world, and those of shapes that do not exist for none."""
    ball, builder = ModelBuilder(), ModelBuilder()
    ball.add_shape_sphere(ball.add_body(xform=(0, 0, 0.1, 0, 0, 0, 1)), radius=0.1)
    builder.replicate(ball, 5)
    ground = builder.add_ground_plane()
    simulation = Simulation(builder)
    numbers, wrong = rng.integers(0, 13, 5), int(rng.integers(1, 4))
    rows = [(ground, w, [0, 0, 0], [0, 0, -0.1], [0, 0, 1.0]) for w in range(5) for _ in range(numbers[w])]
    rows += [(ground, 99, [0, 0, 0], [0, 0, -0.1], [0, 0, 1.0])] * wrong
    contacts = given(simulation.model, [rows[i] for i in rng.permutation(len(rows))])
    contacts.rigid_contact_count.assign([len(rows) + 7])  # seven had no room
    assert simulation.solver.unused_contacts_by_world().tolist() == [0] * 6
    run_with(simulation, simulation.dt, lambda _: contacts)
    unused = simulation.solver.unused_contacts_by_world()
    assert unused.tolist() == [*np.maximum(numbers - 8, 0).tolist(), wrong + 7]
    assert unused.sum() == simulation.solver.unused_contacts()


@pytest.mark.slow
def test_contacts_without_a_use_are_counted():
    builder = ModelBuilder()
    box = builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.5)
    other = builder.add_shape_box(-1, xform=(0, 0, 1, 0, 0, 0, 1), hx=1.0, hy=1.0, hz=0.5)
    balls = [builder.add_shape_sphere(builder.add_body(xform=(i, 0, 0.6, 0, 0, 0, 1)), radius=0.1) for i in range(2)]
    simulation = Simulation(builder, unsupported_contacts="ignore")

    def row(a, b):
        return (a, b, [0, 0, 0.5], [0, 0, -0.1], [0, 0, 1.0])

    def unused(rows):
        run_with(simulation, simulation.dt, lambda _: given(simulation.model, rows))
        return simulation.solver.unused_contacts()

    assert unused([row(box, balls[0])]) == 0
    assert unused([row(box, other)]) == 1  # two fixed shapes
    assert unused([row(balls[0], balls[1])]) == 0
    assert unused([row(balls[0], balls[1])] * 2) == 1  # more than one of two balls
    assert unused([row(box, 99), row(box, balls[1])]) == 1  # a shape that does not exist
    assert unused([row(box, balls[0])] * 8 + [row(box, balls[1])] * 8) == 0
    assert unused([row(box, balls[0])] * 11 + [row(box, balls[1])]) == 3  # more than eight of one shape
    contacts = given(simulation.model, [row(box, balls[0])] * 2)
    contacts.rigid_contact_count.assign([5])  # three had no room
    run_with(simulation, simulation.dt, lambda _: contacts)
    assert simulation.solver.unused_contacts() == 3
