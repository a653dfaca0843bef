"""`approximate_meshes`: meshes become hulls, convex parts, boxes and spheres."""

import sys

import numpy as np
import pytest
import trimesh

from newton_like import GeoType, Mesh, Model, ModelBuilder, ShapeConfig, ShapeFlags
from newton_like.collision import closest_points
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.solvers import SolverFeatherstone


def ring_builder(rng) -> ModelBuilder:
    """A body above the ground with a torus that collides and one that does not, a sphere, and the ground."""
    ring = trimesh.creation.torus(0.3, 0.1, 12, 6)
    mesh = Mesh(ring.vertices + rng.normal(scale=1e-3, size=ring.vertices.shape), ring.faces)
    builder = ModelBuilder()
    body = builder.add_body(xform=(0, 0, 0.05, 0, 0, 0, 1))
    builder.add_shape_mesh(body, mesh=mesh)
    builder.add_shape_mesh(body, mesh=mesh, cfg=ShapeConfig(has_shape_collision=False))
    builder.add_shape_sphere(body, radius=0.01)
    builder.add_ground_plane()
    return builder


def test_meshes_become_hulls_with_the_same_contacts(rng):
    builder = ring_builder(rng)
    mass, inertia = list(builder.body_mass), list(builder.body_inertia)
    model = builder.finalize("cpu")
    before = model.collide(model.state())
    assert builder.approximate_meshes() == {0}
    assert builder.shape_type[:2] == [GeoType.CONVEX_MESH, GeoType.MESH]
    assert (builder.body_mass, builder.body_inertia) == (mass, inertia)
    model = builder.finalize("cpu")
    after = model.collide(model.state())
    assert after.rigid_contact_count.numpy()[0] == before.rigid_contact_count.numpy()[0] > 0
    np.testing.assert_array_equal(after.rigid_contact_point1.numpy(), before.rigid_contact_point1.numpy())
    assert builder.approximate_meshes("convex_hull", [1]) == {1}
    assert builder.shape_type[1] == GeoType.CONVEX_MESH


def test_other_approximations_are_refused_by_name(rng):
    builder = ring_builder(rng)
    for options, error, named in (
        ({"method": "vhacd"}, ValueError, "method='vhacd'.*'coacd'"),
        ({"method": "bounding_box", "threshold": 0.1}, TypeError, "bounding_box.*threshold"),
        ({"method": "coacd", "treshold": 0.1}, TypeError, "treshold.*threshold"),
        ({"keep_visual_shapes": 2}, TypeError, "keep_visual_shapes"),
        ({"shape_indices": [2]}, ValueError, r"shape.*\(index 2\).*no mesh"),
        ({"shape_indices": [7]}, IndexError, "shape_indices"),
        ({"shape_indices": 0}, TypeError, "shape_indices"),
    ):
        with pytest.raises(error, match=named):
            builder.approximate_meshes(**options)
    assert builder.shape_type[0] == GeoType.MESH and builder.shape_count == 4


def random_rotation(rng):
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def points_of(builder, shape: int, mesh: Mesh, scale) -> np.ndarray:
    """Vertices of a mesh that was in the frame of the body, in the frame of a shape."""
    x = np.asarray(builder.shape_transform[shape])
    return (mesh.vertices * scale - x[:3]) @ quat_to_matrix(x[3:])


@pytest.mark.parametrize("method", ["bounding_box", "bounding_sphere"])
def test_boxes_and_spheres_enclose_the_mesh(method, rng):
    scale = rng.uniform(0.5, 2.0, size=3)
    half = rng.uniform(0.1, 1.0, size=3)
    corners = np.array(np.meshgrid(*([-1.0, 1.0],) * 3)).reshape(3, -1).T * half
    inside = rng.uniform(-1.0, 1.0, size=(200, 3)) * half
    turned = np.concatenate([corners, inside]) @ quat_to_matrix(random_rotation(rng)).T + rng.normal(size=3)
    mesh = Mesh(turned / scale, trimesh.convex.convex_hull(turned / scale).faces % len(turned), compute_inertia=False)
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0)
    builder.add_shape_mesh(body, mesh=mesh, scale=scale, cfg=ShapeConfig(density=0.0))
    assert builder.approximate_meshes(method, raise_on_failure=True) == {0}
    seen = points_of(builder, 0, mesh, scale)
    size = np.asarray(builder.shape_scale[0])
    if method == "bounding_box":
        assert builder.shape_type == [GeoType.BOX]
        assert (np.abs(seen) <= size * (1 + 1e-9)).all()
        np.testing.assert_allclose(np.sort(size), np.sort(half), rtol=1e-6)  # the box that the points were drawn in
    else:
        assert builder.shape_type == [GeoType.SPHERE]
        reach = np.linalg.norm(seen, axis=1).max()
        assert reach <= size[0] * (1 + 1e-9)
        np.testing.assert_allclose(size[0], np.linalg.norm(half), rtol=1e-6)  # opposite corners of the box touch it
    assert builder.shape_source == [None] and builder.body_mass == [1.0]


def test_flat_meshes_have_no_box():
    builder = ModelBuilder()
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [0, 1, 2, 1, 3, 2], compute_inertia=False)
    builder.add_shape_mesh(-1, mesh=mesh, label="sheet")
    with pytest.raises(ValueError, match=r"sheet.*plane"):
        builder.approximate_meshes("bounding_box", raise_on_failure=True)
    with pytest.warns(UserWarning, match=r"sheet.*plane.*convex hull"):
        builder.approximate_meshes("bounding_box")
    assert builder.shape_type == [GeoType.CONVEX_MESH]


def test_visual_copies_are_drawn_and_do_not_collide(rng):
    builder = ring_builder(rng)
    mesh = builder.shape_source[0]
    builder.approximate_meshes("bounding_sphere", keep_visual_shapes=True)
    assert builder.shape_type == [GeoType.SPHERE, GeoType.MESH, GeoType.SPHERE, GeoType.PLANE, GeoType.MESH]
    assert builder.shape_source[4] is mesh and builder.shape_label[4] == f"{builder.shape_label[0]}_visual"
    assert builder.shape_flags[4] == ShapeFlags.VISIBLE
    assert not builder.shape_flags[0] & ShapeFlags.VISIBLE and builder.shape_flags[0] & ShapeFlags.COLLIDE_SHAPES
    assert builder.shape_color[4] == builder.shape_color[0]


@pytest.mark.slow
def test_convex_parts_cover_a_ring_and_leave_its_hole_open(rng):
    """Random points of the ring lie in a part, points of the parts near the ring, and a ball fits into the hole."""
    pytest.importorskip("coacd")
    ring = trimesh.creation.torus(0.3, 0.1, 16, 10)
    turn = quat_to_matrix(random_rotation(rng))
    mesh = Mesh(ring.vertices @ turn.T, ring.faces)
    builder = ModelBuilder()
    body = builder.add_body()
    builder.add_custom_attribute(
        ModelBuilder.CustomAttribute(name="tag", frequency=Model.AttributeFrequency.SHAPE, dtype=int, default=0)
    )
    cfg = ShapeConfig(mu=0.3, collision_group=2)
    builder.add_shape_mesh(body, mesh=mesh, cfg=cfg, label="ring", custom_attributes={"tag": 7})
    ball = builder.add_body()
    builder.add_shape_sphere(ball, radius=0.17, cfg=ShapeConfig(collision_group=2))
    other = builder.add_body(xform=(5, 0, 0, 0, 0, 0, 1))
    builder.add_shape_sphere(other, radius=0.1)
    builder.add_shape_collision_filter_pair(0, 2)
    mass = list(builder.body_mass)
    assert builder.approximate_meshes("coacd", raise_on_failure=True) == {0}
    parts = [s for s in range(builder.shape_count) if builder.shape_body[s] == body]
    assert len(parts) >= 5 and {builder.shape_type[s] for s in parts} == {GeoType.CONVEX_MESH}
    assert builder.body_mass == mass
    assert {builder.shape_material_mu[s] for s in parts} == {0.3}
    assert {builder.shape_collision_group[s] for s in parts} == {2}
    assert [builder.shape_label[s] for s in parts[1:]] == [f"ring_convex_{i}" for i in range(1, len(parts))]
    assert {builder.custom_attributes["tag"].values[s] for s in parts} == {7}
    filters = builder.shape_collision_filter_pairs
    assert all((2, s) in filters and (1, s) not in filters for s in parts)
    assert all((a, b) in filters for a in parts for b in parts if a < b)

    hulls = [trimesh.convex.convex_hull(builder.shape_source[s].vertices) for s in parts]
    around, out, turned = (
        rng.uniform(0, 2 * np.pi, 500),
        0.09 * np.sqrt(rng.uniform(size=500)),
        rng.uniform(0, 2 * np.pi, 500),
    )
    reach = 0.3 + out * np.cos(turned)
    inside = np.stack([reach * np.cos(around), reach * np.sin(around), out * np.sin(turned)], axis=1) @ turn.T
    depth = [((h.triangles_center - inside[:, None]) * h.face_normals).sum(axis=2).min(axis=1) for h in hulls]
    assert np.mean(np.max(depth, axis=0) > 0.0) > 0.95  # a part has the point on the inner side of all its faces
    volume = sum(h.volume for h in hulls)
    assert ring.volume * 0.97 < volume < ring.volume * 1.2

    model = builder.finalize("cpu")
    pairs = np.array([(s, 1) for s in parts])
    assert (
        closest_points(model, model.state(), pairs).distance.numpy().min() > 0.0
    )  # the hull of the ring contains the ball


@pytest.mark.slow
def test_worlds_share_the_parts(rng):
    pytest.importorskip("coacd")
    robot = ring_builder(rng)
    robot.approximate_meshes("coacd")
    scene = ModelBuilder()
    scene.replicate(robot, 3)
    parts = [id(mesh) for mesh in robot.shape_source if mesh is not None]
    assert [id(mesh) for mesh in scene.shape_source if mesh is not None] == 3 * parts
    late = ModelBuilder()
    late.replicate(ring_builder(rng), 2)
    with pytest.raises(ValueError, match=r"world 0.*before replicate"):
        late.approximate_meshes("coacd")


@pytest.mark.slow
def test_shapes_that_attributes_refer_to_are_not_divided(rng):
    pytest.importorskip("coacd")
    builder = ring_builder(rng)
    builder.add_custom_attribute(
        ModelBuilder.CustomAttribute(
            name="favourite", frequency=Model.AttributeFrequency.BODY, dtype=int, default=-1, references="shape"
        )
    )
    builder.custom_attributes["favourite"].values[0] = 0
    with pytest.raises(ValueError, match=r"favourite.*refers"):
        builder.approximate_meshes("coacd")


def test_coacd_is_named_where_it_is_missing(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "coacd", None)
    builder = ring_builder(rng)
    with pytest.raises(ModuleNotFoundError, match=r"newton-like\[decomposition\]"):
        builder.approximate_meshes("coacd", raise_on_failure=True)
    with pytest.warns(UserWarning, match="convex hull"):
        builder.approximate_meshes("coacd")
    assert builder.shape_type[0] == GeoType.CONVEX_MESH and builder.shape_count == 4


@pytest.mark.slow
def test_a_cup_holds_a_ball(rng):
    """A ball that falls into a cup rests on its floor; with the hull of the cup it rests on the rim."""
    pytest.importorskip("coacd")
    walls = [
        trimesh.creation.box(size, trimesh.transformations.translation_matrix(place))
        for size, place in (
            ((0.3, 0.3, 0.03), (0, 0, -0.085)),
            ((0.03, 0.3, 0.2), (0.135, 0, 0)),
            ((0.03, 0.3, 0.2), (-0.135, 0, 0)),
            ((0.3, 0.03, 0.2), (0, 0.135, 0)),
            ((0.3, 0.03, 0.2), (0, -0.135, 0)),
        )
    ]
    cup = trimesh.util.concatenate(walls)
    heights = {}
    for method in ("convex_hull", "coacd"):
        builder = ModelBuilder()
        builder.add_ground_plane()
        body = builder.add_body(xform=(0, 0, 0.1, 0, 0, 0, 1))
        builder.add_shape_mesh(
            body, mesh=Mesh(cup.vertices, cup.faces, compute_inertia=False), cfg=ShapeConfig(density=500.0)
        )
        ball = builder.add_body(xform=(*rng.uniform(-0.03, 0.03, size=2), 0.35, 0, 0, 0, 1))
        builder.add_shape_sphere(ball, radius=0.05)
        builder.approximate_meshes(method, raise_on_failure=True)
        model = builder.finalize("cpu")
        solver, state, control = SolverFeatherstone(model), model.state(), model.control()
        for _ in range(400):
            solver.step(state, state, control, None, 1.0 / 200.0)
        heights[method] = state.body_q.numpy()[ball, 2]
    assert abs(heights["coacd"] - 0.08) < 3e-3
    assert heights["convex_hull"] > 0.2
