"""Tables of fixed meshes and height fields."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import newton_like as nl
from newton_like.collision import closest_points, surfaces


def fixed_surfaces(visual_cells: int) -> nl.Model:
    """A height field that collides, a mesh that collides, and a larger mesh that does not."""
    builder = nl.ModelBuilder()
    builder.add_shape_heightfield(heightfield=nl.Heightfield(np.zeros((4, 4)), 4, 4, hx=1.0, hy=1.0))
    builder.add_shape_mesh(-1, mesh=grid(4))
    builder.add_shape_mesh(-1, mesh=grid(visual_cells), cfg=builder.ShapeConfig(has_shape_collision=False))
    return builder.finalize("cpu")


def grid(cells: int) -> nl.Mesh:
    x, y = np.meshgrid(np.arange(cells + 1.0), np.arange(cells + 1.0), indexing="ij")
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    one = np.stack([corner, corner + cells + 1, corner + 1], axis=1)
    two = np.stack([corner + 1, corner + cells + 1, corner + cells + 2], axis=1)
    places = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    return nl.Mesh(places, np.concatenate([one, two]).ravel(), compute_inertia=False)


def test_only_shapes_that_collide_have_tables(monkeypatch):
    few, many = surfaces.surfaces_of(fixed_surfaces(3)), surfaces.surfaces_of(fixed_surfaces(30))
    assert few.shapes == many.shapes == [0, 1]
    assert len(few.table) == len(many.table)
    monkeypatch.setattr(surfaces, "LARGEST_TABLE", len(surfaces.mesh_table(grid(30))))
    surfaces.surfaces_of(fixed_surfaces(30))


def test_a_shape_that_begins_to_collide_gets_a_table(monkeypatch):
    model = fixed_surfaces(30)
    kept = surfaces.surfaces_of(model)
    assert surfaces.surfaces_of(model) is kept
    model.shape_flags.numpy()[2] |= int(nl.ShapeFlags.COLLIDE_SHAPES)
    assert surfaces.surfaces_of(model).shapes == [0, 1, 2]
    model._surfaces = None
    monkeypatch.setattr(surfaces, "LARGEST_TABLE", len(surfaces.mesh_table(grid(30))))
    with pytest.raises(ValueError, match="shape"):
        surfaces.surfaces_of(model)


def front(mesh: nl.Mesh) -> np.ndarray:
    """The sum of the areas of a mesh's table, each along the front side of its triangle [m^2]."""
    table = surfaces.mesh_table(mesh)
    faces = int(table[1])
    corners = table[len(table) - 18 * faces :].reshape(faces, 6, 3)[:, :3]
    return 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]).sum(axis=0)


def test_open_meshes_keep_their_front_side_wherever_their_origin_is(rng):
    """A level ground, seen from above, above and below its origin; a dish that opens upwards; a tube seen from inside."""
    ground, rim = grid(5), np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)
    dish = np.concatenate([rim, [[0.0, 0.0, -rng.uniform(0.1, 3.0)]]])
    for height in rng.uniform(-3.0, 3.0, 8):
        for vertices, faces, area in (
            (ground.vertices, ground.indices, 25.0),
            (dish, np.array([[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]), 4.0),
        ):
            moved = nl.Mesh(vertices + np.array([0.0, 0.0, height]), faces, compute_inertia=False)
            np.testing.assert_allclose(front(moved), [0.0, 0.0, area], atol=1e-9)
    wall = np.array(
        [[k, (k + 1) % 4, k + 4] for k in range(4)] + [[(k + 1) % 4, (k + 1) % 4 + 4, k + 4] for k in range(4)]
    )
    tube = np.concatenate([rim, rim + np.array([0.0, 0.0, 2.0])])
    for faces in (wall, wall[:, ::-1]):
        table = surfaces.mesh_table(nl.Mesh(tube, faces, compute_inertia=False))
        corners = table[-18 * 8 :].reshape(8, 6, 3)[:, :3]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        outward = np.einsum("ij,ij->i", normal[:, :2], corners.mean(axis=1)[:, :2]) > 0.0
        assert np.all(outward == (faces is wall))


def test_closed_meshes_have_their_front_side_outside(rng):
    box = nl.Mesh.create_box(0.5, 0.4, 0.3)
    for faces in (box.indices.reshape(-1, 3), box.indices.reshape(-1, 3)[:, ::-1]):
        table = surfaces.mesh_table(nl.Mesh(box.vertices + rng.uniform(-3.0, 3.0, 3), faces))
        corners = table[-18 * 12 :].reshape(12, 6, 3)[:, :3]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        assert np.all(np.einsum("ij,ij->i", normal, corners.mean(axis=1) - corners.mean(axis=(0, 1))) > 0.0)


SIZES = dict(
    box=dict(hx=0.02, hy=0.012, hz=0.005),
    cylinder=dict(radius=0.015, half_height=0.006),
    cone=dict(radius=0.008, half_height=0.02),
    ellipsoid=dict(rx=0.02, ry=0.004, rz=0.013),
    sphere=dict(radius=0.01),
)


def extent_below(kind: str, turn: np.ndarray) -> float:
    """How far a shape of SIZES reaches below its centre [m]."""
    s, (x, y, z) = SIZES[kind], turn[2]
    return dict(
        box=lambda: s["hx"] * abs(x) + s["hy"] * abs(y) + s["hz"] * abs(z),
        cylinder=lambda: s["radius"] * np.hypot(x, y) + s["half_height"] * abs(z),
        cone=lambda: max(s["radius"] * np.hypot(x, y) + s["half_height"] * z, -s["half_height"] * z),
        ellipsoid=lambda: np.linalg.norm([s["rx"] * x, s["ry"] * y, s["rz"] * z]),
        sphere=lambda: s["radius"],
    )[kind]()


def contacts_of_bodies(
    rng, ground: nl.Mesh, kind: str, sunk: tuple[float, float], centre=(0.0, 0.0), spread: float = 0.3
):
    """Contacts of 16 bodies, each in its own world, whose middles are `sunk` (shares of their extents, from and to) below 0.

    Returns the worlds of the contacts, their distances [m], the components upwards of the directions in which they push, and how deep
    each body reaches below zero [m].
    """
    builder, depths = nl.ModelBuilder(), []
    builder.add_shape_mesh(-1, mesh=ground)
    for _ in range(16):
        turn = Rotation.random(random_state=rng)
        while np.abs(turn.as_matrix()[2]).max() > 0.999:
            # points of faces that lie flat are those above the triangle alone
            turn = Rotation.random(random_state=rng)
        below, above = (extent_below(kind, sign * turn.as_matrix()) for sign in (1.0, -1.0))
        height = -rng.uniform(*sunk) * min(below, above)
        world = nl.ModelBuilder()
        body = world.add_body(xform=(*rng.uniform(-spread, spread, 2), height, *turn.as_quat()))
        getattr(world, f"add_shape_{kind}")(body, **SIZES[kind])
        builder.add_world(world)
        depths.append(below - height)
    model = builder.finalize("cpu")
    contacts = model.collide(model.state())
    count = int(contacts.rigid_contact_count.numpy()[0])
    poses, bodies = model.body_q.numpy().astype(float), model.shape_body.numpy()
    shapes = [getattr(contacts, f"rigid_contact_shape{i}").numpy()[:count] for i in (0, 1)]
    assert np.all(shapes[1] == 0), "the mesh is the second shape"
    points = [getattr(contacts, f"rigid_contact_point{i}").numpy()[:count].astype(float) for i in (0, 1)]
    own = poses[bodies[shapes[0]]]
    points[0] = own[:, :3] + Rotation.from_quat(own[:, 3:]).apply(points[0])
    normal = contacts.rigid_contact_normal.numpy()[:count].astype(float)
    distance = np.einsum("ij,ij->i", points[1] - points[0], normal)
    return model.shape_world.numpy()[shapes[0]], distance, -normal[:, 2], np.array(depths)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("ground", ["sheet", "block"])
def test_bodies_with_their_middle_behind_a_mesh_touch_it(rng, kind, ground):
    """They are as deep as in a plane, and the mesh pushes them out of its front side."""
    sheet, block = grid(2), nl.Mesh.create_box(1.0, 1.0, 0.5)
    mesh = nl.Mesh(sheet.vertices - [1.0, 1.0, 0.0], sheet.indices, compute_inertia=False)
    if ground == "block":
        mesh = nl.Mesh(block.vertices - [0.0, 0.0, 0.5], block.indices)
    world, distance, up, depth = contacts_of_bodies(rng, mesh, kind, (0.02, 0.9))
    assert set(world) == set(range(16))
    deepest = np.array([distance[world == w].min() for w in range(16)])
    np.testing.assert_allclose(deepest, -depth, atol=2e-5)
    assert np.all(up > 0.999)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIZES)
def test_bodies_on_a_thin_plate_do_not_touch_its_back(rng, kind):
    """A body that has sunk into a plate of 1 mm, and reaches through it, is pushed out of the side that its middle is in front of."""
    plate = nl.Mesh.create_box(1.0, 1.0, 0.0005)
    mesh = nl.Mesh(plate.vertices - [0.0, 0.0, 0.0005], plate.indices)
    world, _, up, _ = contacts_of_bodies(rng, mesh, kind, (-0.9, -0.1))
    assert set(world) == set(range(16))
    assert np.all(up > 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIZES)
def test_bodies_beside_an_open_mesh_do_not_touch_it(rng, kind):
    """Below its level and beside its boundary, at its corners, too."""
    sheet = grid(2)
    for corner in ([0.3 + 0.03, -1.0, 0.0], [0.3 + 0.03, 0.3 + 0.03, 0.0]):
        mesh = nl.Mesh(sheet.vertices + corner, sheet.indices, compute_inertia=False)
        world, *_ = contacts_of_bodies(
            rng, mesh, kind, (0.02, 0.9), centre=(0.29, 0.29 if corner[1] > 0.0 else 0.0), spread=0.0
        )
        assert len(world) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "cylinder", "ellipsoid"])
def test_rods_that_pass_below_an_open_mesh_and_rise_beyond_its_edge_do_not_touch_it(rng, kind):
    """Both ends are on different sides of its plane."""
    mesh = nl.Mesh(
        [[-0.5, -0.5, 0], [0.5, -0.5, 0], [0.5, 0.5, 0], [-0.5, 0.5, 0]], [[0, 1, 2], [0, 2, 3]], compute_inertia=False
    )
    size = dict(
        box=dict(hx=0.02, hy=0.05, hz=1.0),
        cylinder=dict(radius=0.03, half_height=1.0),
        ellipsoid=dict(rx=0.04, ry=0.03, rz=1.0),
    )
    builder = nl.ModelBuilder()
    builder.add_shape_mesh(-1, mesh=mesh)
    for _ in range(16):
        # along the z axis of the rod, which is 0.1 m below the edge of the sheet
        end = np.array([1.0, 0.0, rng.uniform(0.4, 0.6)])
        height = 0.5 * end[2] + 0.1
        turn = Rotation.from_rotvec([0.0, np.arctan2(end[0], end[2]), 0.0])
        world = nl.ModelBuilder()
        body = world.add_body(xform=(rng.uniform(-0.02, 0.02), rng.uniform(-0.2, 0.2), -height, *turn.as_quat()))
        getattr(world, f"add_shape_{kind}")(body, **size[kind])
        builder.add_world(world)
    model = builder.finalize("cpu")
    contacts = model.collide(model.state())
    assert contacts.rigid_contact_count.numpy()[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in SIZES if kind != "sphere"])
def test_bodies_with_their_middle_behind_a_groove_touch_it(rng, kind):
    """The middle is straight below the edge at the bottom of the groove, and straight below neither of its walls."""
    slope = rng.uniform(0.5, 1.5)
    vertices = np.array([[x, y, slope * abs(x)] for y in (-1.0, 1.0) for x in (-1.0, 0.0, 1.0)])
    walls = nl.Mesh(vertices, [[0, 1, 3], [1, 4, 3], [1, 2, 4], [2, 5, 4]], compute_inertia=False)
    world, _, up, _ = contacts_of_bodies(rng, walls, kind, (0.02, 0.6), spread=1e-5)
    assert set(world) == set(range(16))
    assert np.all(up > 0.0)


def thin_meshes() -> dict[str, nl.Mesh]:
    """Closed convex meshes of a plate, of a rod with twelve sides along z, and of a blade."""
    plate = nl.Mesh.create_box(0.5, 0.3, 0.01)
    turn = 2.0 * np.pi * np.arange(12) / 12
    ring = np.stack([0.03 * np.cos(turn), 0.03 * np.sin(turn)], axis=1)
    rod = np.concatenate([np.column_stack([ring, np.full(12, z)]) for z in (-0.5, 0.5)])
    k, following = np.arange(12), (np.arange(12) + 1) % 12
    sides = [np.stack([k, following, k + 12], axis=1), np.stack([following, following + 12, k + 12], axis=1)]
    caps = np.stack([np.zeros(10, dtype=int), k[1:11], k[2:12]], axis=1)
    blade = [[x, y, z] for x in (-0.5, 0.5) for y, z in ((-0.3, 0.0), (0.3, 0.0), (0.0, 0.03))]
    faces = [[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3], [2, 3, 5]]
    return dict(
        plate=nl.Mesh(plate.vertices, plate.indices),
        rod=nl.Mesh(rod, np.concatenate([*sides, caps[:, ::-1], caps + 12])),
        blade=nl.Mesh(blade, faces),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plate", "rod", "blade"])
def test_shapes_beside_a_thin_closed_mesh_do_not_overlap_it(rng, name):
    """Capsules, cones and boxes of which a part is behind the planes of triangles. The reference is the distance from the convex hull."""
    count = 600
    mesh = thin_meshes()[name]
    low, high = mesh.vertices.min(axis=0) - 0.2, mesh.vertices.max(axis=0) + 0.2
    builder = nl.ModelBuilder()
    for i in range(count):
        world = nl.ModelBuilder()
        body = world.add_body(xform=(*rng.uniform(low, high), *Rotation.random(random_state=rng).as_quat()))
        a, b, c = rng.uniform(0.05, 0.2, 3)
        if i % 3 == 0:
            world.add_shape_capsule(body, radius=a, half_height=b)
        elif i % 3 == 1:
            world.add_shape_cone(body, radius=a, half_height=b)
        else:
            world.add_shape_box(body, hx=a, hy=b, hz=c)
        builder.add_world(world)
    builder.add_shape_mesh(-1, mesh=mesh)
    model = builder.finalize("cpu")
    hull = builder.add_shape_convex_hull(-1, mesh=mesh)
    peer = builder.finalize("cpu")
    pairs = np.stack([np.arange(count), np.full(count, hull)], axis=1)
    apart = closest_points(peer, peer.state(), pairs).distance.numpy() > 1e-3
    contacts = model.collide(model.state())
    found = int(contacts.rigid_contact_count.numpy()[0])
    shapes = contacts.rigid_contact_shape0.numpy()[:found]
    points = [getattr(contacts, f"rigid_contact_point{i}").numpy()[:found].astype(float) for i in (0, 1)]
    own = model.body_q.numpy().astype(float)[model.shape_body.numpy()[shapes]]
    points[0] = own[:, :3] + Rotation.from_quat(own[:, 3:]).apply(points[0])
    distance = np.einsum("ij,ij->i", points[1] - points[0], contacts.rigid_contact_normal.numpy()[:found])
    assert np.count_nonzero(apart) > 100
    assert not np.any(apart[shapes] & (distance < 0.0))
