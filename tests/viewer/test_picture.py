"""Pictures: all shapes are drawn at the positions that a camera sees."""

import numpy as np
import pytest
import trimesh
from newton_like.assets import path as asset

from newton_like import ModelBuilder
from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.geometry.outline import corner_normals, triangles
from newton_like.geometry.shapes import mass_properties
from newton_like.types import GeoType
from newton_like.viewer import bounds, picture
from newton_like.viewer.camera import Camera
from newton_like.viewer.raster import Raster
from newton_like.viewer.skeleton import COLORS, skeleton

SHAPES = [
    (GeoType.BOX, (0.3, 0.2, 0.1)),
    (GeoType.SPHERE, (0.4, 0.0, 0.0)),
    (GeoType.ELLIPSOID, (0.3, 0.2, 0.5)),
    (GeoType.CAPSULE, (0.2, 0.4, 0.0)),
    (GeoType.CYLINDER, (0.2, 0.4, 0.0)),
    (GeoType.CONE, (0.3, 0.5, 0.0)),
]


@pytest.mark.parametrize("kind, scale", SHAPES)
def test_outlines_enclose_the_shapes(kind, scale):
    """Volume and centre of the triangles are those of the shape, up to the error of 24 segments."""
    vertices, faces = triangles(kind, scale)
    solid = trimesh.Trimesh(vertices, faces)
    mass, com, _ = mass_properties(kind, scale, 1.0)
    assert solid.is_watertight
    # a circle of 24 corners has 1 - sin(2 pi / 24) / (2 pi / 24) = 1.1 % less area; a ball with twelve rows loses that three times and more
    assert mass * 0.94 < solid.volume <= mass * (1.0 + 1e-9)
    np.testing.assert_allclose(solid.center_mass, com, atol=0.01)


@pytest.mark.parametrize(
    "factors", [(1.0, 1.0, 1.0), (-1.0, 2.0, 1.0), (1.0, -2.0, 3.0), (-1.0, -1.0, 1.0), (1.0, 2.0, -1.0)]
)
def test_mirrored_height_fields_keep_their_front_side(rng, factors):
    """It is where heights grow, on which bodies lie."""
    field = Heightfield(rng.random((4, 5)), 4, 5, hx=1.0, hy=2.0)
    vertices, faces = triangles(GeoType.HFIELD, factors, field)
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (normals[:, 2] * factors[2] > 0.0).all()


@pytest.mark.parametrize("kind, scale", SHAPES)
def test_corner_normals_are_those_of_the_surface(kind, scale):
    """They point outward, and are at most half of a step of the round parts off the normal of the true surface."""
    vertices, faces = triangles(kind, scale)
    normals = corner_normals(vertices, faces)
    assert normals.shape == (len(faces), 3, 3)
    flat = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    cosine = np.einsum("fij,fj->fi", normals, flat)
    cosine /= np.linalg.norm(normals, axis=2) * np.linalg.norm(flat, axis=1)[:, None]
    # neighbours differ by less than the crease of 35 degrees, so their mean does
    assert cosine.min() > np.cos(np.radians(35.0))
    if kind == GeoType.BOX:
        np.testing.assert_allclose(cosine, 1.0)
    if kind == GeoType.SPHERE:
        along = np.einsum("fij,fij->fi", normals, vertices[faces]) / np.linalg.norm(normals, axis=2) / scale[0]
        # a step is 15 degrees around and 16 from pole to pole
        assert along.min() > np.cos(np.radians(8.2))


def covered(triangle: np.ndarray, column, row) -> np.ndarray:
    """Whether the middles of samples are inside of a triangle, by the signs of three areas."""
    a, b, c = triangle[:, :2]
    p = np.stack([column + 0.5, row + 0.5], axis=-1)

    def side(u, v):
        return (v[0] - u[0]) * (p[:, 1] - u[1]) - (v[1] - u[1]) * (p[:, 0] - u[0])

    sides = np.stack([side(a, b), side(b, c), side(c, a)])
    return (sides > 0).all(axis=0) | (sides < 0).all(axis=0)


def test_the_nearest_triangle_is_seen(rng):
    """Against every triangle looked at for every sample."""
    width, height = 40, 30
    corners = rng.uniform([-10, -10, 0.5], [width + 10, height + 10, 2.0], (25, 3, 3))
    normals = rng.normal(size=(25, 3, 3))
    raster = Raster(width, height)
    raster.draw(corners[:10], np.arange(10), normals[:10])
    raster.draw(corners[10:], np.arange(10, 25), normals[10:])
    row, column = np.divmod(np.arange(width * height), width)
    near, number, normal = np.zeros(width * height), np.full(width * height, -1), np.zeros((width * height, 3))
    for k, triangle in enumerate(corners):
        inside = np.flatnonzero(covered(triangle, column, row))
        matrix = np.vstack([triangle[:, :2].T, np.ones(3)])
        weights = np.linalg.solve(matrix, np.stack([column[inside] + 0.5, row[inside] + 0.5, np.ones(len(inside))]))
        found = triangle[:, 2] @ weights
        first = found > near[inside]
        near[inside[first]], number[inside[first]] = found[first], k
        normal[inside[first]] = ((normals[k] * triangle[:, 2:]).T @ weights).T[first]
    # nearness is float32, which may decide otherwise where two are equally near to 1e-6; corners of random triangles do not meet
    np.testing.assert_allclose(raster.near, near, atol=1e-5)
    assert (raster.number != number).mean() < 0.002
    same = raster.number == number
    # of weights that are good to float32 at the edges of slivers
    np.testing.assert_allclose(raster.normal[same], normal[same], atol=1e-3)


def test_neighbours_leave_no_gap(rng):
    """A fan of triangles around a point covers the polygon: no sample inside of it is missed."""
    angles = np.sort(rng.uniform(0.0, 2.0 * np.pi, 40))
    rim = 60.0 + 55.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    hub = rng.uniform(50.0, 70.0, 2)
    fan = np.array([[hub, rim[i], rim[(i + 1) % 40]] for i in range(40)])
    raster = Raster(120, 120, normals=False)
    raster.draw(np.concatenate([fan, np.ones((40, 3, 1))], axis=2), np.zeros(40, dtype=int))
    row, column = np.divmod(np.arange(120 * 120), 120)
    inside = np.any([covered(t, column, row) for t in fan], axis=0)
    assert inside.sum() > 5000
    assert (raster.number[inside] == 0).all()


@pytest.mark.parametrize("opacity, samples", [(1.0, 4), (0.75, 3), (0.5, 2), (0.25, 1), (0.05, 1), (0.0, 0)])
def test_glass_covers_its_part_of_a_pixel(opacity, samples):
    square = np.array([[[0, 0, 1], [8, 0, 1], [8, 8, 1]], [[0, 0, 1], [8, 8, 1], [0, 8, 1.0]]])
    for number in range(4):
        raster = Raster(8, 8, normals=False)
        raster.draw(square, np.full(2, number), opacity=opacity)
        pixels = (raster.number.reshape(4, 2, 4, 2) == number).sum(axis=(1, 3))
        np.testing.assert_array_equal(pixels, samples)


def test_the_camera_finds_back_what_it_projects(rng):
    axes = trimesh.transformations.random_rotation_matrix(rng.random(3))[:3, :3]
    camera = Camera(axes[:, 1], axes, rng.normal(size=3), 2.0, 10.0, 123.0, (320.0, 240.0))
    points = camera.middle + rng.uniform(-1.0, 1.0, (100, 3))
    column, row, near = camera.project(points).T
    # float32 of places some metres from the middle
    np.testing.assert_allclose(camera.place(column, row, near) @ axes.T + camera.middle, points, atol=1e-5)
    # farther along the line of sight is less near, and the line meets one sample
    away = points - 0.1 * (camera.middle + 10.0 * axes[:, 2] - points)
    there = camera.project(away)
    np.testing.assert_allclose(there[:, :2], np.stack([column, row], axis=1), atol=1e-8)
    assert (there[:, 2] < near).all()


def drawn(model, **options) -> np.ndarray:
    pytest.importorskip("matplotlib")
    figure = picture(model, size=(3.0, 3.0), **options)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def balls(up: str, places: dict):
    builder = ModelBuilder(up_axis=up)
    for color, place in places.items():
        builder.add_shape_sphere(-1, radius=0.05 if color == GREEN else 0.2, color=color, xform=(*place, 0, 0, 0, 1))
    return builder.finalize("cpu")


def middle_of(image: np.ndarray, channel: int) -> np.ndarray:
    """Column and row of the pixels of a primary colour."""
    others = np.delete(image, channel, axis=2).max(axis=2)
    rows, columns = np.nonzero(image[..., channel] > others + 60)
    assert len(rows) > 20
    return np.array([columns.mean(), rows.mean()])


@pytest.mark.parametrize("up", "XYZ")
def test_up_is_up_and_near_is_in_front(up):
    """Three balls: one above the others, a small one behind another."""
    axis = "XYZ".index(up)
    above, forward = np.eye(3)[axis], np.eye(3)[axis - 2]
    image = drawn(balls(up, {RED: above, GREEN: -forward, BLUE: forward}), azimuth=0.0, elevation=0.0)
    red, blue = middle_of(image, 0), middle_of(image, 2)
    # the eye is on the side of `forward`, which hides the ball behind it; rounding to pixels of 300
    assert abs(red[0] - blue[0]) < 3.0 and red[1] < blue[1] - 50.0
    assert not (image[..., 1] > image[..., [0, 2]].max(axis=2) + 60).any()
    np.testing.assert_array_equal(image[2, 2], 255)


def test_right_is_right():
    """The eye at -y of a Z-up scene has +x to its right."""
    image = drawn(balls("Z", {RED: (-1, 0, 0), BLUE: (1, 0, 0)}), azimuth=-90.0, elevation=0.0)
    assert middle_of(image, 0)[0] < middle_of(image, 2)[0] - 50.0


def test_shadows_fall_on_the_floor():
    """Below a ball, away from the lamp, the floor is darker than far from it."""
    builder = ModelBuilder()
    builder.add_ground_plane(color=(0.5, 0.5, 0.5))
    builder.add_shape_sphere(-1, radius=0.5, color=RED, xform=(0, 0, 0.6, 0, 0, 0, 1))
    image = drawn(builder.finalize("cpu"), elevation=40.0)
    grey = np.ptp(image, axis=2) < 20
    assert image[grey].min() < 150 and (image[grey].max(axis=1) > 210).mean() > 0.5


def test_all_worlds_or_one():
    robot = ModelBuilder()
    body = robot.add_body()
    robot.add_shape_sphere(body, radius=0.2, color=RED)
    scene = ModelBuilder()
    scene.replicate(robot, 3, spacing=(2.0, 0.0, 0.0))
    model = scene.finalize("cpu")
    areas = [(np.ptp(drawn(model, world=w), axis=2) > 60).mean() for w in (0, None)]
    # one ball fills the picture, three in a row are a third or less as wide
    assert areas[1] < 0.5 * areas[0]


def test_the_camera_does_not_follow_within_an_extent():
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=0.2, color=RED)
    body = builder.add_body(xform=(1, 0, 0, 0, 0, 0, 1))
    builder.add_shape_sphere(body, radius=0.2, color=BLUE)
    model = builder.finalize("cpu")
    state = model.state()
    state.body_q.assign([[0, 0, 1, 0, 0, 0, 1]])
    boxes = np.array([bounds(model), bounds(model, state)])
    # spheres of 24 corners are up to one percent smaller
    np.testing.assert_allclose(boxes[0], [[-0.2, -0.2, -0.2], [1.2, 0.2, 0.2]], atol=0.01)
    np.testing.assert_allclose(boxes[1], [[-0.2, -0.2, -0.2], [0.2, 0.2, 1.2]], atol=0.01)
    extent = (boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0))
    places = [middle_of(drawn(model, state=s, extent=extent), 0) for s in (None, state)]
    np.testing.assert_allclose(places[0], places[1], atol=1.0)
    free = [middle_of(drawn(model, state=s), 0) for s in (None, state)]
    assert np.abs(free[0] - free[1]).max() > 20.0


def test_what_only_collides_is_glass_and_can_be_asked_for():
    builder = ModelBuilder()
    seen, unseen = builder.add_body(), builder.add_body(xform=(1, 0, 0, 0, 0, 0, 1))
    builder.add_shape_sphere(seen, radius=0.3, color=RED)
    cfg = builder.default_shape_cfg.copy(is_visible=False)
    builder.add_shape_sphere(unseen, radius=0.3, color=BLUE, cfg=cfg)
    model = builder.finalize("cpu")
    glass, solid = (drawn(model, collisions=flag, azimuth=-90.0) for flag in (False, True))

    def white_in_blue(image):
        columns, rows = middle_of(image, 2).round().astype(int)
        return image[rows, columns, :2].min()

    # 0.35 of a surface covers two of four samples; half of the rest is paper
    assert white_in_blue(glass) > 100 and white_in_blue(solid) < 60


def test_links_without_visuals_are_invisible_among_others_that_have_some():
    """For example keep-out boxes around the hands of robots; a robot without visuals shows its collisions."""
    from newton_like.types import ShapeFlags

    box = "<geometry><box size='1 1 1'/></geometry>"
    seen, guard = f"<visual>{box}</visual>", f"<collision>{box}</collision>"
    joint = "<joint name='j' type='fixed'><parent link='a'/><child link='b'/></joint>"
    for first, visible in ((seen + guard, [False, True, False]), (guard, [True, True])):
        builder = ModelBuilder()
        builder.add_urdf(f"<robot name='r'><link name='a'>{first}</link><link name='b'>{guard}</link>{joint}</robot>")
        assert [bool(flags & ShapeFlags.VISIBLE) for flags in builder.shape_flags] == visible


def test_bodies_without_shapes_have_bones(rng):
    builder = ModelBuilder()
    robot = builder.add_urdf(asset("quadruped.urdf"), floating=True)
    model = builder.finalize("cpu")
    poses = model.body_q.numpy().astype(float)
    assert skeleton(model, poses, None, set(robot.links.values())) == []
    bones = skeleton(model, poses, None, set())
    corners = np.concatenate([vertices for vertices, *_ in bones])
    # they reach as far as the robot's joints, which are nearly its size
    assert np.all(corners.min(axis=0) < poses[:, :3].min(axis=0) + 0.02)
    assert np.all(corners.max(axis=0) > poses[:, :3].max(axis=0) - 0.02)
    bare = ModelBuilder()
    bare.add_body(mass=1.0, inertia=np.eye(3))
    assert (drawn(bare.finalize("cpu")) < 200).any()
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"shapes.*bodies"):
        picture(ModelBuilder().finalize("cpu"))


def test_movable_joints_are_seen_among_fixed_ones(rng):
    """Links on fixed joints may have their frames where a movable joint is, on either side of it."""
    builder, last, joints = ModelBuilder(), -1, []
    for kind in ("fixed", "revolute", "fixed", "fixed", "revolute", "fixed"):
        link = builder.add_link(mass=1.0, inertia=np.eye(3))
        # each movable joint is in one place with the fixed ones around it
        xform = (*(rng.uniform(0.5, 1.0, 3) if kind == "fixed" and len(joints) == 3 else (0, 0, 0)), 0, 0, 0, 1)
        joints.append(getattr(builder, f"add_joint_{kind}")(last, link, parent_xform=xform))
        last = link
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    poses = np.tile(np.eye(7)[6], (6, 1))
    poses[3:, :3] = np.array(builder.joint_X_p)[3, :3]
    bones = skeleton(model, poses, None, set())
    places = {colour: [] for colour in COLORS}
    for vertices, _, colour in bones:
        # rods have other numbers of vertices
        if len(vertices) == len(bones[0][0]):
            places[colour].append(vertices.mean(axis=0))
    assert len(places[COLORS[0]]) == 2 and not places[COLORS[1]]
    assert np.linalg.norm(places[COLORS[0]][1] - places[COLORS[0]][0]) > 0.5


@pytest.mark.slow
def test_walls_do_not_hide_the_scene():
    """An upright endless plane between the eye and the scene: the eye goes to its other side."""
    for side in (1.0, -1.0):
        builder = ModelBuilder()
        builder.add_shape_plane((0.0, side, 0.0, 0.0), width=0.0, length=0.0)
        builder.add_shape_sphere(-1, radius=0.5, color=RED, xform=(0, side, 0, 0, 0, 0, 1))
        image = drawn(builder.finalize("cpu"))
        middle_of(image, 0)
        assert (image < 250).all(axis=2).mean() > 0.2, "the wall is not there"


def test_titles_have_room(tmp_path):
    pytest.importorskip("matplotlib")
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_box(-1, hx=0.5, hy=0.25, hz=2.0)
    model = builder.finalize("cpu")
    figure = picture(model, title="name\ncounts", path=tmp_path / "box.png", size=(3.0, 2.0))
    assert [text.get_text() for text in figure.texts] == ["name", "counts", "1 x 0.5 x 4 m; lines 1 m apart"]
    with pytest.raises(OSError, match="nowhere"):
        picture(model, path=tmp_path / "nowhere" / "ball.png")
    for change, error, words in (
        ({"world": 1}, IndexError, r"world 1.*1"),
        ({"state": 3}, TypeError, "State"),
        ({"size": (8, 0)}, ValueError, r"size.*\b0\b"),
        ({"azimuth": np.nan}, ValueError, "azimuth .*nan"),
    ):
        with pytest.raises(error, match=words):
            picture(model, **change)


def test_meshes_have_the_mean_colour_of_their_file(tmp_path, rng):
    """Of two squares, one twice as wide and as high as the other, and of another colour."""
    small, large = rng.integers(0, 256, (2, 3))
    faces = [[0, 1, 2], [0, 2, 3]]
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    parts = [
        trimesh.Trimesh(square, faces, face_colors=[*small, 255]),
        trimesh.Trimesh(2 * square, faces, face_colors=[*large, 255]),
    ]
    file = tmp_path / "squares.glb"
    trimesh.Scene(parts).export(file)
    # colours of files have 8 bits
    np.testing.assert_allclose(Mesh.from_file(file).color, (small + 4.0 * large) / 5.0 / 255.0, atol=1.0 / 255.0)
    plain = tmp_path / "plain.stl"
    trimesh.Trimesh(square, faces).export(plain)
    assert Mesh.from_file(plain).color is None


def test_textures_are_looked_at_where_they_are(tmp_path):
    image = pytest.importorskip("PIL.Image")
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    half = np.zeros((8, 8, 3), dtype=np.uint8)
    half[:4] = (0, 255, 0)
    half[4:] = (255, 0, 0)
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    file = tmp_path / "square.glb"
    for v, color in ((0.25, (1, 0, 0)), (0.75, (0, 1, 0))):
        # v counts from the lowest row
        visual = TextureVisuals(uv=np.full((4, 2), v), material=PBRMaterial(baseColorTexture=image.fromarray(half)))
        trimesh.Trimesh(square, [[0, 1, 2], [0, 2, 3]], visual=visual, process=False).export(file)
        np.testing.assert_allclose(Mesh.from_file(file).color, color, atol=0.01)


@pytest.mark.slow
def test_a_stage_that_was_written_looks_like_its_source(tmp_path):
    """The warehouse, in centimetres and Y up, and its export by `usd.write` give the same pixels."""
    from newton_like import usd

    images = []
    for source in (asset("warehouse.usda"), tmp_path / "again.usdc"):
        builder = ModelBuilder()
        builder.add_usd(source)
        model = builder.finalize("cpu")
        images.append(drawn(model, world=None))
        usd.write(model, tmp_path / "again.usdc")
    different = np.abs(images[0] - images[1]).max(axis=2) > 24
    # rounding to float32 moves an edge into the next sample here and there
    assert different.mean() < 0.002
    # it is no white sheet
    assert (images[0] < 200).any(axis=2).mean() > 0.1


@pytest.mark.slow
def test_height_fields_are_drawn_and_do_not_widen_the_view(rng):
    """A ball on level terrain that reaches behind the camera looks as on a small piece of it."""

    def view(reach: float | None):
        builder = ModelBuilder()
        builder.add_shape_sphere(builder.add_body(xform=(0, 0, 0.2, 0, 0, 0, 1)), radius=0.2)
        if reach is not None:
            field = Heightfield(np.zeros((81, 81)), 81, 81, reach, reach, 0.0, 0.0)
            builder.add_shape_heightfield(heightfield=field, color=(0.5, 0.4, 0.3))
        model = builder.finalize("cpu")
        return drawn(model, azimuth=-50.0, elevation=25.0), bounds(model)

    (large, box), (small, _), (none, alone) = view(rng.uniform(20.0, 40.0)), view(0.8), view(None)
    np.testing.assert_array_equal(box, alone)
    middle = len(large) // 2
    inside = (slice(middle - 100, middle + 100),) * 2
    assert np.abs(large[inside] - small[inside]).mean() < 2.0
    assert np.abs(large - none).mean() > 20.0
    corners = large[[0, 0, -1], [0, -1, 0]]  # the fourth is in the shadow of the ball
    assert np.abs(corners - corners[0]).max() < 12  # the ground fills the picture


@pytest.mark.parametrize("world", [1, [0, 1], None])
def test_poses_that_are_not_finite_are_refused_by_name(world, rng):
    body = ModelBuilder()
    body.add_shape_box(body.add_body(label="crate"), hx=0.1, hy=0.2, hz=0.3)
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(body, 2)
    model = scene.finalize("cpu")
    state, poses = model.state(), model.body_q.numpy().reshape(2, 7)
    poses[1, rng.integers(7)] = rng.choice([np.nan, np.inf])
    state.body_q.assign(poses)
    with pytest.raises(ValueError, match=r"body '.*crate' \(index 1\).*not finite.*diverged"):
        picture(model, state, world=world)
    picture(model, state, world=0)
