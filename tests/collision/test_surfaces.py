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
