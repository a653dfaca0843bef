"""Contacts of moving shapes with height fields and fixed triangle meshes: laws, and comparisons with planes, boxes and MuJoCo."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from newton_like import Heightfield, Mesh, ModelBuilder, ShapeConfig
from tests.support.simulate import GRAVITY, Simulation, worlds_of

# the kernels of steps with surfaces take long to compile
pytestmark = pytest.mark.slow

KINDS = ("sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "hull")


def add_body(builder, kind: str, pose, cfg=None, size: float = 1.0) -> int:
    """A body of about 0.2 m with a shape of a kind."""
    body = builder.add_body(xform=pose)
    cfg, s = cfg or ShapeConfig(), size
    lying = (0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))
    add = dict(
        sphere=lambda: builder.add_shape_sphere(body, radius=0.1 * s, cfg=cfg),
        capsule=lambda: builder.add_shape_capsule(body, xform=lying, radius=0.06 * s, half_height=0.1 * s, cfg=cfg),
        box=lambda: builder.add_shape_box(body, hx=0.12 * s, hy=0.1 * s, hz=0.07 * s, cfg=cfg),
        cylinder=lambda: builder.add_shape_cylinder(body, radius=0.1 * s, half_height=0.07 * s, cfg=cfg),
        cone=lambda: builder.add_shape_cone(body, radius=0.1 * s, half_height=0.07 * s, cfg=cfg),
        ellipsoid=lambda: builder.add_shape_ellipsoid(body, rx=0.12 * s, ry=0.1 * s, rz=0.07 * s, cfg=cfg),
        hull=lambda: builder.add_shape_convex_hull(body, mesh=wedge(s), cfg=cfg),
    )
    add[kind]()
    return body


def wedge(s: float) -> Mesh:
    points = s * np.array([[x, y, z] for x in (-0.1, 0.1) for y, z in ((-0.08, -0.06), (0.08, -0.06), (0.02, 0.08))])
    hull = ConvexHull(points)
    corners = points[hull.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outward = np.einsum("ij,ij->i", normal, hull.equations[:, :3]) > 0.0
    return Mesh(points, np.where(outward[:, None], hull.simplices, hull.simplices[:, ::-1]).ravel())


def field(heights, half: float) -> Heightfield:
    heights = np.asarray(heights, dtype=float)
    return Heightfield(heights, *heights.shape, half, half, float(heights.min()), float(heights.max()))


def grid_mesh(n: int, half: float) -> Mesh:
    """A level square of 2 n^2 triangles."""
    x, y = np.meshgrid(np.linspace(-half, half, n + 1), np.linspace(-half, half, n + 1))
    number = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    faces = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])
    return Mesh(np.stack([x, y, 0.0 * x], -1).reshape(-1, 3), faces.ravel(), is_solid=False)


def add_ground(builder, ground: str, pose=(0, 0, 0, 0, 0, 0, 1), cfg=None) -> None:
    """A level surface at the pose."""
    if ground == "plane":
        builder.add_shape_plane(width=0.0, length=0.0, xform=pose, cfg=cfg)
    elif ground == "field":
        builder.add_shape_heightfield(heightfield=field(np.zeros((31, 41)), 2.0), xform=pose, cfg=cfg)
    else:
        builder.add_shape_mesh(-1, mesh=grid_mesh(24, 2.0), xform=pose, cfg=cfg)


def on_ground(ground: str, bodies, pose=(0, 0, 0, 0, 0, 0, 1), cfg=None, **options) -> Simulation:
    """One world of bodies (kind, pose), which do not touch each other."""
    builder = ModelBuilder()
    add_ground(builder, ground, pose, cfg)
    for kind, place in bodies:
        group = ShapeConfig(collision_group=-1) if cfg is None else cfg
        world = ModelBuilder()
        add_body(world, kind, place, group)
        builder.add_world(world)
    return Simulation(builder, **options)


def interpolated(heights, half: float, x, y) -> np.ndarray:
    """Height of the triangles of a field at places x, y; each cell is cut from its first to its last corner."""
    n = heights.shape[0] - 1
    u, v = (np.asarray(x) + half) / (2 * half) * n, (np.asarray(y) + half) / (2 * half) * n
    c, r = np.clip(u.astype(int), 0, n - 1), np.clip(v.astype(int), 0, n - 1)
    s, t = u - c, v - r
    a, b, d, e = heights[r, c], heights[r, c + 1], heights[r + 1, c + 1], heights[r + 1, c]
    return np.where(s > t, a + s * (b - a) + t * (d - b), a + t * (e - a) + s * (d - e))


@pytest.mark.parametrize("ground", ["field", "mesh"])
def test_level_surface_is_a_plane(rng, ground):
    """Bodies of all kinds that fall, roll and slide move on a level surface of many triangles as on a plane."""
    bodies, speeds = [], []
    for kind in KINDS:
        place = [*rng.uniform(-0.5, 0.5, 2), 0.2, *Rotation.from_euler("z", rng.uniform(-3, 3)).as_quat()]
        bodies.append((kind, place))
        speeds.append([*rng.uniform(-0.6, 0.6, 2), 0.0, 0.0, 0.0, rng.uniform(-1, 1)])
    ours, other = on_ground(ground, bodies), on_ground("plane", bodies)
    for simulation in (ours, other):
        simulation.set_state(qd=np.ravel(speeds))
    for _ in range(4):
        ours.run(0.25)
        other.run(0.25)
    np.testing.assert_allclose(ours.poses[:, 0, :3], other.poses[:, 0, :3], atol=4e-3)
    # bodies that are at rest are at rest at the same height
    np.testing.assert_allclose(ours.q[:, 2], other.q[:, 2], atol=1e-3)


@pytest.mark.parametrize("ground", ["field", "mesh"])
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_inner_edges_do_not_catch(rng, ground, kind):
    """Without friction a body slides over hundreds of triangles and keeps its velocity and its orientation."""
    smooth = ShapeConfig(mu=0.0)
    angle = rng.uniform(0.0, 2.0 * np.pi)
    speed = 2.0 * np.array([np.cos(angle), np.sin(angle)])
    height = 0.1 if kind == "sphere" else 0.07
    start = [*(-0.6 * speed), height, *Rotation.from_euler("z", rng.uniform(-3, 3)).as_quat()]
    simulation = on_ground(ground, [(kind, start)], cfg=smooth)
    simulation.set_state(qd=[*speed, 0.0, 0.0, 0.0, 0.0])
    seen = simulation.run(1.2, lambda: simulation.qd[0].copy())
    np.testing.assert_allclose(seen[:, :2], np.broadcast_to(speed, (len(seen), 2)), atol=2e-3)
    np.testing.assert_allclose(seen[:, 2:], 0.0, atol=2e-2)


@pytest.mark.parametrize("ground", ["field", "mesh"])
@pytest.mark.parametrize("kind", ["box", "cylinder"])
def test_tilted_surface_holds_up_to_the_angle_of_friction(ground, kind):
    """A body on a tilted surface sticks below mu = tan(angle), and slides down with g (sin - mu cos) above."""
    angle = 0.3
    tilt = Rotation.from_euler("y", angle)
    for share in (0.97, 1.03):
        mu = np.tan(angle) / share
        height = 0.07
        pose = (*tilt.apply([-0.7, 0.013, height]), *tilt.as_quat())
        simulation = on_ground(ground, [(kind, pose)], pose=(0, 0, 0, *tilt.as_quat()), cfg=ShapeConfig(mu=float(mu)))
        simulation.run(0.2)
        before = np.linalg.norm(simulation.qd[0, :3])
        simulation.run(1.0)
        after = np.linalg.norm(simulation.qd[0, :3])
        if share < 1.0:
            assert after < 1e-3
        else:
            gain = GRAVITY * (np.sin(angle) - mu * np.cos(angle))
            np.testing.assert_allclose(after - before, gain, rtol=0.06)


def test_mesh_of_a_box_is_the_box(rng):
    """Bodies of all kinds that fall onto a box come to rest on its mesh at the same height, beside its edges too."""
    place = (0.0, 0.0, -0.4, *Rotation.from_euler("z", 0.4).as_quat())
    results = []
    spots = rng.uniform(-0.25, 0.25, (len(KINDS), 2))
    for mesh in (False, True):
        builder = ModelBuilder()
        if mesh:
            builder.add_shape_mesh(-1, mesh=Mesh.create_box(0.5, 0.5, 0.4), xform=place)
        else:
            builder.add_shape_box(-1, hx=0.5, hy=0.5, hz=0.4, xform=place)
        for kind, spot in zip(KINDS, spots, strict=True):
            world = ModelBuilder()
            add_body(world, kind, (*spot, 0.15, 0, 0, 0, 1))
            builder.add_world(world)
        simulation = Simulation(builder)
        simulation.run(1.0)
        results.append(simulation.q[:, :7])
    np.testing.assert_allclose(results[1][:, :3], results[0][:, :3], atol=3e-3)


def test_sphere_in_a_bowl_keeps_its_energy():
    """Without friction a sphere slides to and fro in a parabolic bowl: the period is that of its centre's path, and energy stays."""
    n, half, radius = 161, 1.0, 0.05
    x, y = np.meshgrid(np.linspace(-half, half, n), np.linspace(-half, half, n))
    curve = 0.5
    heights = 0.5 * curve * (x * x + y * y)
    builder = ModelBuilder()
    smooth = ShapeConfig(mu=0.0)
    builder.add_shape_heightfield(heightfield=field(heights, half), cfg=smooth)
    body = builder.add_body(xform=(0.3, 0.01, 0.5 * curve * 0.09 + radius * np.hypot(1.0, 0.15), 0, 0, 0, 1))
    builder.add_shape_sphere(body, radius=radius, cfg=smooth)
    simulation = Simulation(builder)
    seen = simulation.run(4.0, lambda: np.concatenate([simulation.q[0, :3], simulation.qd[0, :3]]))
    energy = 0.5 * np.sum(seen[:, 3:] ** 2, axis=1) + GRAVITY * seen[:, 2]
    rise = GRAVITY * 0.5 * curve * 0.09
    assert np.abs(energy - energy[0]).max() < 0.05 * rise
    # the centre is on a parallel curve with the curvature 1 / (1 / curve - radius) at its lowest point
    turns = np.flatnonzero(np.diff(np.sign(seen[:, 0])))
    period = 2.0 * np.mean(np.diff(turns)) * simulation.dt
    expected = 2.0 * np.pi * np.sqrt((1.0 / curve - radius) / GRAVITY)
    np.testing.assert_allclose(period, expected, rtol=0.02)


def surface_points(rng, kind: str, size: float) -> np.ndarray:
    """Points on a shape of `add_body` that touch first: corners, rims and others."""
    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if kind == "sphere":
        return 0.1 * size * directions
    if kind == "capsule":
        end = np.where(directions[:, :1] > 0.0, 1.0, -1.0) * np.array([0.1 * size, 0.0, 0.0])
        along = rng.uniform(-1, 1, (4000, 1)) * np.array([0.1 * size, 0.0, 0.0])
        across = directions * [0.0, 1.0, 1.0]
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        return np.concatenate([end + 0.06 * size * directions, along + 0.06 * size * across])
    half = size * np.array([0.12, 0.1, 0.07])
    if kind == "ellipsoid":
        return half * directions
    if kind == "hull":
        corners = wedge(size).vertices
        return np.concatenate([corners, rng.dirichlet(np.full(len(corners), 0.3), 4000) @ corners])
    if kind in ("cylinder", "cone"):
        angle, share = rng.uniform(0.0, 2.0 * np.pi, (2000, 1)), rng.uniform(size=(2000, 1))
        rim = np.concatenate([0.1 * np.cos(angle), 0.1 * np.sin(angle), 0.0 * angle - 0.07], axis=1)
        bottom = rim * np.concatenate([np.sqrt(share), np.sqrt(share), 1.0 + 0.0 * share], axis=1)
        if kind == "cone":
            side = share * rim + (1.0 - share) * [0.0, 0.0, 0.07]
            return size * np.concatenate([rim, bottom, side, [[0.0, 0.0, 0.07]]])
        return size * np.concatenate([rim, bottom, rim * [1, 1, -1], bottom * [1, 1, -1]])
    return half * np.clip(3.0 * directions, -1.0, 1.0)


def test_bodies_rest_on_rough_fields_without_sinking(rng):
    """Boxes dropped onto random fields come to rest; capsules may roll on, as nothing resists that. None of the points of bodies at rest is
    far below the surface, and some touch it."""
    n, half = 21, 1.0
    heights = rng.uniform(0.0, 0.08, (n, n))
    kinds = ("capsule", "box") * 8
    builder = ModelBuilder()
    builder.add_shape_heightfield(heightfield=field(heights, half), cfg=ShapeConfig(mu=1.0))
    for kind in kinds:
        world = ModelBuilder()
        turn = Rotation.random(random_state=int(rng.integers(1 << 30))).as_quat()
        add_body(world, kind, (*rng.uniform(-0.4, 0.4, 2), 0.35, *turn), ShapeConfig(mu=1.0))
        builder.add_world(world)
    simulation = Simulation(builder)
    # a box that stands on an edge between two bumps rocks for some seconds, one of a hundred
    for _ in range(5):
        simulation.run(3.0)
        still = np.abs(simulation.qd).max(axis=1) < 0.1
        if still[1::2].all():
            break
    assert still[1::2].all()
    for w in np.flatnonzero(still):
        points = surface_points(rng, kinds[w], 1.0)
        places = Rotation.from_quat(simulation.q[w, 3:7]).apply(points) + simulation.q[w, :3]
        clear = places[:, 2] - interpolated(heights, half, places[:, 0], places[:, 1])
        # vertical distances on slopes of up to 1
        assert -5e-3 < clear.min() < 5e-3


def test_nothing_falls_through(rng):
    """Bodies of all kinds hit random fields and a mesh at 10 m/s and stay above it."""
    n, half = 17, 2.0
    heights = rng.uniform(0.0, 0.2, (n, n))
    for mesh in (False, True):
        builder = ModelBuilder()
        if mesh:
            flat = grid_mesh(n - 1, half)
            corners = flat.vertices + heights.reshape(-1, 1) * np.array([0.0, 0.0, 1.0])
            builder.add_shape_mesh(-1, mesh=Mesh(corners, flat.indices, is_solid=False))
        else:
            builder.add_shape_heightfield(heightfield=field(heights, half))
        for kind in KINDS * 3:
            world = ModelBuilder()
            turn = Rotation.random(random_state=int(rng.integers(1 << 30))).as_quat()
            add_body(world, kind, (*rng.uniform(-0.5, 0.5, 2), 0.6, *turn))
            builder.add_world(world)
        simulation = Simulation(builder)
        speeds = np.zeros((3 * len(KINDS), 6))
        speeds[:, 2], speeds[:, 3:] = -10.0, rng.uniform(-5, 5, (3 * len(KINDS), 3))
        simulation.set_state(qd=speeds)
        seen = simulation.run(0.7, lambda s=simulation: s.q[:, :3].copy())
        assert np.isfinite(seen).all()
        inside = np.abs(seen[-1, :, :2]).max(axis=1) < half - 0.2
        assert inside.sum() > len(KINDS)
        below = seen[-1, :, 2] - interpolated(heights, half, seen[-1, :, 0], seen[-1, :, 1])
        assert below[inside].min() > 0.0


def test_body_below_a_field_is_pushed_out(rng):
    """A field is solid below: bodies whose middle is below it come out on top, however deep they are."""
    builder = ModelBuilder()
    builder.add_shape_heightfield(heightfield=field(rng.uniform(0.0, 0.02, (41, 41)), 2.0))
    for kind in KINDS:
        world = ModelBuilder()
        add_body(world, kind, (*rng.uniform(-0.5, 0.5, 2), -0.4, 0, 0, 0, 1))
        builder.add_world(world)
    simulation = Simulation(builder)
    simulation.run(1.5)
    assert (simulation.q[:, 2] > 0.03).all()
    assert (simulation.q[:, 2] < 0.3).all()


def test_sunk_bodies_come_out_of_a_steep_field(rng):
    """Bodies that start some centimetres deep in a field with slopes of 30 degrees, with their middle above it, come out on top."""
    n, half = 21, 1.0
    heights = rng.uniform(0.0, 0.08, (n, n))
    builder = ModelBuilder()
    builder.add_shape_heightfield(heightfield=field(heights, half))
    kinds = KINDS * 6
    for kind in kinds:
        world = ModelBuilder()
        x, y = rng.uniform(-0.5, 0.5, 2)
        turn = Rotation.random(random_state=int(rng.integers(1 << 30))).as_quat()
        above = rng.uniform(0.02, 0.06)
        add_body(world, kind, (x, y, float(interpolated(heights, half, x, y)) + above, *turn))
        builder.add_world(world)
    simulation = Simulation(builder)
    fastest = simulation.run(3.0, lambda: np.abs(simulation.qd).max())
    assert np.max(fastest) < 40.0
    sunk = []
    for w, kind in enumerate(kinds):
        places = Rotation.from_quat(simulation.q[w, 3:7]).apply(surface_points(rng, kind, 1.0)) + simulation.q[w, :3]
        inside = np.abs(places[:, :2]).max(axis=1) < half
        clear = places[:, 2] - interpolated(heights, half, places[:, 0], places[:, 1])
        if clear[inside].min(initial=0.0) < -0.012:
            sunk.append(kind)
    # one that turns over in a hole may take longer
    assert len(sunk) <= 1, sunk


def scene(rng, worlds: int) -> tuple[ModelBuilder, np.ndarray]:
    heights = rng.uniform(0.0, 0.1, (21, 21))
    builder = ModelBuilder()
    builder.add_shape_heightfield(heightfield=field(heights, 1.0))
    world = ModelBuilder()
    for i, kind in enumerate(("sphere", "capsule", "box")):
        add_body(world, kind, (0.35 * (i - 1), 0.0, 0.25, 0, 0, 0, 1))
    builder.replicate(world, worlds)
    start = np.tile([*([0.0] * 18)], (worlds, 1)) + rng.uniform(-1.0, 1.0, (worlds, 18))
    return builder, start


def test_bits_do_not_depend_on_the_batch(rng):
    """A world has the same bits alone, at any place, with any number of threads; a world that is not finite stays alone."""
    seed = int(rng.integers(1 << 30))
    builder, start = scene(np.random.default_rng(seed), 40)
    many = Simulation(builder, threads=2)
    many.set_state(qd=start)
    broken = start.copy()
    broken[5] = np.nan
    other = Simulation(scene(np.random.default_rng(seed), 40)[0], threads=1)
    other.set_state(qd=broken)
    one = Simulation(scene(np.random.default_rng(seed), 1)[0])
    one.set_state(qd=start[23])
    for simulation in (many, other, one):
        simulation.run(0.5)
    assert np.array_equal(one.q[0], many.q[23])
    good = np.arange(40) != 5
    assert np.array_equal(other.q[good], many.q[good])
    assert np.isfinite(many.q).all()


@pytest.mark.parametrize("ground", ["field", "mesh"])
def test_bits_do_not_depend_on_where_other_worlds_touch(rng, ground):
    """Boxes that tumble over hills have the same bits beside others and alone: which points are near differs from world to world."""
    n, worlds = 41, 24
    heights = rng.uniform(-0.02, 0.02, (n, n))
    hills = grid_mesh(n - 1, 1.0)
    hills = Mesh(hills.vertices + np.outer(heights.ravel(), (0.0, 0.0, 1.0)), hills.indices, is_solid=False)
    body = ModelBuilder()
    body.add_shape_box(body.add_body(), hx=0.08, hy=0.06, hz=0.04)
    poses = np.hstack(
        [rng.uniform(-0.5, 0.5, (worlds, 2)), np.full((worlds, 1), 0.1), Rotation.random(worlds, rng).as_quat()]
    )
    velocities = rng.normal(size=(worlds, 6)) * (0.5, 0.5, 0.2, 3.0, 3.0, 3.0)

    def places(chosen) -> np.ndarray:
        builder = ModelBuilder()
        if ground == "field":
            builder.add_shape_heightfield(heightfield=field(heights, 1.0))
        else:
            builder.add_shape_mesh(-1, mesh=hills)
        builder.replicate(body, len(chosen))
        simulation = Simulation(builder)
        simulation.set_state(q=poses[chosen], qd=velocities[chosen])
        simulation.run(0.5)
        return simulation.q

    together = places(np.arange(worlds))
    alone = np.concatenate([places([world]) for world in range(worlds)])
    np.testing.assert_array_equal(together, alone)


def test_worlds_with_fields_of_their_own(rng):
    """Each world touches its own field."""
    builders, levels = [], rng.uniform(-0.5, 0.5, 3)
    for level in levels:
        world = ModelBuilder()
        world.add_shape_heightfield(heightfield=Heightfield(np.zeros((5, 5)), 5, 5, 1.0, 1.0, level, level))
        add_body(world, "sphere", (0.1, 0.05, level + 0.15, 0, 0, 0, 1))
        builders.append(world)
    simulation = Simulation(worlds_of(builders))
    simulation.run(0.5)
    np.testing.assert_allclose(simulation.q[:, 2], levels + 0.1, atol=1e-3)


def touch_heights_of_mujoco(heights, half: float, kinds, places, turns, low: float, high: float) -> np.ndarray:
    """Heights at which bodies that come down onto a field touch it first."""
    mujoco = pytest.importorskip("mujoco")
    forms = dict(
        sphere="type='sphere' size='0.1'",
        capsule="type='capsule' size='0.06 0.1' quat='0.70710678 0 0.70710678 0'",
        box="type='box' size='0.12 0.1 0.07'",
        cylinder="type='cylinder' size='0.1 0.07'",
        ellipsoid="type='ellipsoid' size='0.12 0.1 0.07'",
        hull="type='mesh' mesh='wedge'",
    )
    vertices = " ".join(str(x) for x in wedge(1.0).vertices.ravel())
    found = []
    for kind, place, turn in zip(kinds, places, turns, strict=True):
        text = f"""<mujoco><asset><hfield name='h' nrow='{heights.shape[0]}' ncol='{heights.shape[1]}' size='{half} {half}
        {np.ptp(heights)} 0.5'/><mesh name='wedge' vertex='{vertices}' inertia='convex'/></asset><worldbody>
        <geom type='hfield' hfield='h' pos='0 0 {heights.min()}'/>
        <body name='b'><freejoint/><geom {forms[kind]} mass='1'/></body></worldbody></mujoco>"""
        model = mujoco.MjModel.from_xml_string(text)
        model.hfield_data[:] = ((heights - heights.min()) / np.ptp(heights)).ravel()
        data = mujoco.MjData(model)
        below, above = low, high
        for _ in range(26):
            middle = 0.5 * (below + above)
            data.qpos[:3], data.qpos[3:] = [*place, middle], turn[[3, 0, 1, 2]]
            mujoco.mj_forward(model, data)
            below, above = (middle, above) if data.ncon else (below, middle)
        found.append(above)
    return np.array(found)


def test_bodies_touch_first_where_they_do_in_mujoco(rng):
    """Bodies of random orientations that come down onto a random field touch it first at the height of MuJoCo: corners on faces, edges on
    edges, and peaks under faces."""
    n, half, each = 15, 1.0, 12
    heights = rng.uniform(0.0, 0.12, (n, n))
    kinds = [kind for kind in KINDS if kind != "cone"] * each
    places = rng.uniform(-0.6, 0.6, (len(kinds), 2))
    turns = Rotation.random(len(kinds), random_state=int(rng.integers(1 << 30))).as_quat()
    low, high = 0.02, 0.35
    expected = touch_heights_of_mujoco(heights, half, kinds, places, turns, low, high)
    builder = ModelBuilder()
    builder.add_shape_heightfield(heightfield=field(heights, half))
    for kind in kinds:
        world = ModelBuilder()
        add_body(world, kind, (0, 0, 0, 0, 0, 0, 1))
        builder.add_world(world)
    model = builder.finalize("cpu")
    state, contacts, worlds = model.state(), model.contacts(), model.shape_world.numpy()
    # bodies much deeper are not looked at
    below, above = expected - 0.02, expected + 0.02
    for _ in range(26):
        middle = 0.5 * (below + above)
        poses = np.concatenate([places, middle[:, None], turns], axis=1)
        state.body_q.assign(poses)
        model.collide(state, contacts)
        count = int(contacts.rigid_contact_count.numpy()[0])
        of = np.maximum(
            *(worlds[x.numpy()[:count]] for x in (contacts.rigid_contact_shape0, contacts.rigid_contact_shape1))
        )
        moving, fixed = contacts.rigid_contact_point0.numpy()[:count], contacts.rigid_contact_point1.numpy()[:count]
        moving = Rotation.from_quat(turns[of]).apply(moving) + poses[of, :3]
        gap = np.einsum("ij,ij->i", contacts.rigid_contact_normal.numpy()[:count], fixed - moving)
        touches = np.zeros(len(kinds), dtype=bool)
        np.logical_or.at(touches, of, gap < 0.0)
        below, above = np.where(touches, middle, below), np.where(touches, above, middle)
    np.testing.assert_allclose(above, expected, atol=2e-4)


def test_contact_forces_carry_the_weight(rng):
    """Forces of the contacts of bodies at rest on a surface add up to their weight."""
    for ground in ("field", "mesh"):
        builder = ModelBuilder()
        add_ground(builder, ground)
        add_body(builder, "box", (0.013, 0.021, 0.08, *Rotation.from_euler("z", 0.3).as_quat()))
        simulation = Simulation(builder, edit=lambda m: m.request_contact_attributes("force"))
        simulation.run(1.0)
        contacts = simulation.model.contacts()
        simulation.solver.update_contacts(contacts, simulation.state)
        count = int(contacts.rigid_contact_count.numpy()[0])
        assert count == 4
        force = contacts.force.numpy()[:count, :3].sum(axis=0)
        mass = float(simulation.model.body_mass.numpy()[0])
        np.testing.assert_allclose(np.abs(force), [0.0, 0.0, mass * GRAVITY], atol=2e-3 * mass * GRAVITY)


def test_too_large_surface_is_named():
    builder = ModelBuilder()
    builder.add_shape_heightfield(heightfield=Heightfield(np.zeros((1700, 1700)), 1700, 1700), label="moon")
    add_body(builder, "sphere", (0, 0, 1, 0, 0, 0, 1))
    with pytest.raises(ValueError, match=r"'moon'"):
        Simulation(builder)


def test_distances_of_spheres_and_capsules_are_those_of_the_triangles(rng):
    """`collide` finds the distance of the closest point of random spheres and capsules from a random field, in double precision."""
    n, half = 13, 1.0
    heights = rng.uniform(0.0, 0.15, (n, n))
    builder = ModelBuilder()
    builder.add_shape_heightfield(heightfield=field(heights, half))
    kinds = ("sphere", "capsule") * 40
    for kind in kinds:
        world = ModelBuilder()
        add_body(world, kind, (0, 0, 0, 0, 0, 0, 1), ShapeConfig(gap=0.2))
        builder.add_world(world)
    model = builder.finalize("cpu", dtype=wp.float64)
    state, contacts = model.state(), model.contacts()
    poses = np.zeros((len(kinds), 7))
    for w in range(len(kinds)):
        x, y = rng.uniform(-0.7, 0.7, 2)
        poses[w] = [
            x,
            y,
            0.15 + rng.uniform(0.1, 0.25),
            *Rotation.random(random_state=int(rng.integers(1 << 30))).as_quat(),
        ]
    state.body_q.assign(poses)
    model.collide(state, contacts)
    count = int(contacts.rigid_contact_count.numpy()[0])
    shapes = contacts.rigid_contact_shape0.numpy()[:count], contacts.rigid_contact_shape1.numpy()[:count]
    points = contacts.rigid_contact_point0.numpy()[:count], contacts.rigid_contact_point1.numpy()[:count]
    normals = contacts.rigid_contact_normal.numpy()[:count]
    worlds = model.shape_world.numpy()
    corners = field_triangles(heights, half)
    checked = 0
    for w, kind in enumerate(kinds):
        turn, place = Rotation.from_quat(poses[w, 3:]), poses[w, :3]
        radius = 0.1 if kind == "sphere" else 0.06
        axis = np.zeros((1, 3)) if kind == "sphere" else np.linspace(-0.1, 0.1, 401)[:, None] * [[1.0, 0.0, 0.0]]
        expected = min(distance_of(place + turn.apply(a), corners) for a in axis) - radius
        found = []
        for k in np.flatnonzero((worlds[shapes[0]] == w) | (worlds[shapes[1]] == w)):
            moving = 0 if worlds[shapes[0][k]] == w else 1
            own = place + turn.apply(points[moving][k])
            sign = 1.0 if moving == 0 else -1.0
            found.append(float(np.dot(points[1 - moving][k] - own, sign * normals[k])))
        if expected < 0.05:
            assert found, (w, kind, expected)
            np.testing.assert_allclose(min(found), expected, atol=2e-5)
            checked += 1
    assert checked > 4


def field_triangles(heights, half: float) -> np.ndarray:
    n = heights.shape[0]
    x, y = np.meshgrid(np.linspace(-half, half, n), np.linspace(-half, half, n))
    p = np.stack([x, y, heights], axis=-1)
    a, b, c, d = p[:-1, :-1], p[:-1, 1:], p[1:, 1:], p[1:, :-1]
    return np.concatenate([np.stack([a, b, c], 2).reshape(-1, 3, 3), np.stack([a, c, d], 2).reshape(-1, 3, 3)])


def distance_of(x, corners) -> float:
    """Distance of a point from triangles."""
    a, b, c = corners[:, 0] - x, corners[:, 1] - x, corners[:, 2] - x
    best = np.inf
    for p, q in ((a, b), (b, c), (c, a)):
        edge = q - p
        s = np.clip(-np.einsum("ij,ij->i", p, edge) / np.einsum("ij,ij->i", edge, edge), 0.0, 1.0)
        best = min(best, np.linalg.norm(p + s[:, None] * edge, axis=1).min())
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    inside = np.ones(len(n), dtype=bool)
    for p, q in ((a, b), (b, c), (c, a)):
        inside &= np.einsum("ij,ij->i", n, np.cross(p, q)) > 0.0
    heights = np.abs(np.einsum("ij,ij->i", n, a))[inside]
    return float(min(best, heights.min(initial=np.inf)))
