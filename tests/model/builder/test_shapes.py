"""Methods of builders for shapes that exist: meshes become hulls."""

import numpy as np
import pytest
import trimesh

from newton_like import GeoType, Mesh, ModelBuilder, ShapeConfig


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
        ({"method": "coacd"}, ValueError, "method='coacd'"),
        ({"method": "bounding_box"}, ValueError, "method='bounding_box'"),
        ({"keep_visual_shapes": True}, ValueError, "keep_visual_shapes"),
        ({"shape_indices": [2]}, ValueError, r"shape.*\(index 2\).*no mesh"),
        ({"shape_indices": [7]}, IndexError, "shape_indices"),
        ({"shape_indices": 0}, TypeError, "shape_indices"),
    ):
        with pytest.raises(error, match=named):
            builder.approximate_meshes(**options)
    assert builder.shape_type[0] == GeoType.MESH
