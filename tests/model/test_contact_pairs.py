"""Pairs of shapes that may touch."""

import numpy as np
import pytest

import newton_like as nl


def mixed(rng, worlds: int, module=nl):
    """Bodies with several shapes in random groups, some filtered, in worlds and beside them."""
    scene = module.ModelBuilder()
    for _ in range(2):
        scene.add_shape_box(-1, hx=0.1, hy=0.1, hz=0.1)
    for _ in range(worlds):
        one = module.ModelBuilder()
        for _ in range(int(rng.integers(1, 5))):
            body = one.add_body(mass=1.0, inertia=((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)))
            for _ in range(int(rng.integers(1, 4))):
                group, collides = int(rng.integers(-2, 3)), bool(rng.random() < 0.8)
                cfg = module.ModelBuilder.ShapeConfig(density=0.0, collision_group=group, has_shape_collision=collides)
                one.add_shape_sphere(body, radius=0.1, cfg=cfg)
        one.add_shape_sphere(-1, radius=0.1)
        for _ in range(int(rng.integers(0, 4))):
            if one.shape_count > 1:
                one.add_shape_collision_filter_pair(*rng.choice(one.shape_count, 2, replace=False).tolist())
        scene.add_world(one)
    return scene.finalize("cpu")


@pytest.mark.parametrize("worlds", [0, 1, 5])
def test_pairs_that_may_touch_are_those_of_newton(rng, worlds):
    newton = pytest.importorskip("newton")
    seed = int(rng.integers(1 << 30))
    own, other = (mixed(np.random.default_rng(seed), worlds, module) for module in (nl, newton))
    expected = other.shape_contact_pairs.numpy().reshape(-1, 2)
    pairs = own.shape_contact_pairs.numpy().reshape(-1, 2)
    assert own.shape_contact_pair_count == len(pairs) == other.shape_contact_pair_count
    assert set(map(tuple, pairs.tolist())) == set(map(tuple, expected.tolist()))
    world = np.maximum(*own.shape_world.numpy()[pairs].T) if len(pairs) else np.zeros(0)
    assert (np.diff(world) >= 0).all() and (pairs[:, 0] < pairs[:, 1]).all()
    with pytest.raises(AttributeError, match="shape_contact_pairs"):
        own.shape_contact_pairs = own.shape_contact_pairs


def test_warnings_of_open_meshes_name_the_shape_and_its_body():
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    # made as importers make it: its mass is not asked for before a shape needs it
    mesh = nl.Mesh(corners, [0, 2, 1, 0, 1, 3, 0, 3, 2], compute_inertia=False)
    builder = nl.ModelBuilder()
    body = builder.add_body(label="cup")
    with pytest.warns(UserWarning, match=r"^shape 'wall' \(index 0\) of body 'cup': mesh is not closed"):
        builder.add_shape_mesh(body, mesh=mesh, label="wall")
    with pytest.warns(UserWarning, match="^mesh is not closed"):
        nl.Mesh(corners, [0, 2, 1, 0, 1, 3, 0, 3, 2])
