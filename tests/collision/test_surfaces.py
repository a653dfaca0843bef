"""Tables of fixed meshes and height fields."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.collision import surfaces


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
