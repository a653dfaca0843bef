"""Contact points of hulls that are thin, or much smaller than the shape they lie on, against the corners of a box."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

import newton_like as nl

CORNERS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
FACES = [
    [0, 1, 3],
    [0, 3, 2],
    [4, 7, 5],
    [4, 6, 7],
    [0, 4, 1],
    [1, 4, 5],
    [2, 3, 6],
    [3, 7, 6],
    [0, 2, 4],
    [2, 6, 4],
    [1, 5, 3],
    [3, 5, 7],
]
FLOORS = ["box", "hull", "cylinder", "cone"]


def add_floor(builder: nl.ModelBuilder, kind: str, size: float) -> None:
    """A fixed shape whose top is the plane z = 0, 1 m thick and `size` m to each side."""
    cfg = nl.ShapeConfig(gap=0.02)
    below, upside_down = (0, 0, -0.5, 0, 0, 0, 1), (0, 0, -0.5, 1, 0, 0, 0)
    if kind == "box":
        builder.add_shape_box(-1, hx=size, hy=size, hz=0.5, xform=below, cfg=cfg)
    elif kind == "hull":
        builder.add_shape_convex_hull(-1, mesh=nl.Mesh(CORNERS * [size, size, 0.5], FACES), xform=below, cfg=cfg)
    elif kind == "cylinder":
        builder.add_shape_cylinder(-1, radius=size, half_height=0.5, xform=below, cfg=cfg)
    else:
        builder.add_shape_cone(-1, radius=size, half_height=0.5, xform=upside_down, cfg=cfg)


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_a_flat_hull_touches_a_large_floor_with_its_lower_corners(rng, real):
    """Hulls of 10 to 20 cm and a height of 1 or 10 cm, which are tilted a little, so that gaps at the corners differ."""
    scene, lower = nl.ModelBuilder(), []
    for kind in FLOORS:
        for size in (0.5, 2.0, 10.0, 50.0, 300.0):
            for half_height in (0.005, 0.05):
                half = np.array([*rng.uniform(0.05, 0.1, 2), half_height])
                # by 0.05 mm at most from corner to corner
                tilt = Rotation.from_rotvec([*rng.uniform(-1.2e-4, 1.2e-4, 2), 0.0])
                # Contact points are the farthest ones along four directions, 0.9 rad from the axes of the floor. Along a direction that is
                # perpendicular to an edge, the lower one of both corners is chosen.
                yaw = rng.integers(4) * 0.5 * np.pi + rng.uniform(-0.5, 0.5)
                turn = tilt * Rotation.from_rotvec([0.0, 0.0, yaw])
                corners = turn.apply(CORNERS[CORNERS[:, 2] < 0.0] * half)
                at = np.array([*rng.uniform(-0.1, 0.1, 2), -corners[:, 2].min() - rng.uniform(0.0, 1.0e-4)])
                world = nl.ModelBuilder()
                add_floor(world, kind, size)
                body = world.add_body(xform=(*at, *turn.as_quat()))
                world.add_shape_convex_hull(body, mesh=nl.Mesh(CORNERS * half, FACES))
                scene.add_world(world)
                lower.append(corners + at)
    model = scene.finalize("cpu", dtype=real)
    contacts = model.collide(model.state())
    n = contacts.dropped + int(contacts.rigid_contact_count.numpy()[0])
    shapes = np.stack([contacts.rigid_contact_shape0.numpy()[:n], contacts.rigid_contact_shape1.numpy()[:n]], axis=1)
    points = np.stack([contacts.rigid_contact_point0.numpy()[:n], contacts.rigid_contact_point1.numpy()[:n]], axis=1)
    poses, bodies = model.body_q.numpy(), model.shape_body.numpy()[shapes]
    moved = Rotation.from_quat(poses[bodies][..., 3:].reshape(-1, 4)).apply(points.reshape(-1, 3)).reshape(n, 2, 3)
    points = np.where(bodies[..., None] < 0, points, moved + poses[bodies][..., :3])
    distance = np.sum((points[:, 1] - points[:, 0]) * contacts.rigid_contact_normal.numpy()[:n], axis=1)
    world = model.shape_world.numpy()[shapes[:, 0]]
    for i, corners in enumerate(lower):
        mine = np.flatnonzero(world == i)
        assert len(mine) == 4
        apart = np.linalg.norm(points[mine].mean(axis=1)[:, None, :2] - corners[None, :, :2], axis=2)
        nearest = apart.argmin(axis=1)
        assert sorted(nearest) == [0, 1, 2, 3]
        # edges of both shapes are at right angles to the normal up to the tilt
        np.testing.assert_allclose(apart.min(axis=1), 0.0, atol=2.0e-5)
        if real is wp.float64:
            # where the gap is smaller than a tolerance, it is that of the deepest point
            np.testing.assert_allclose(distance[mine], corners[nearest, 2], atol=3.0e-6)


@pytest.mark.filterwarnings("ignore:mesh is flat")
def test_a_flat_mesh_touches_a_large_floor_with_its_corners(rng):
    """A moving mesh without thickness, parallel to the floor."""
    scene = nl.ModelBuilder()
    for kind in FLOORS:
        for size in (0.5, 50.0):
            world = nl.ModelBuilder()
            add_floor(world, kind, size)
            body = world.add_body(xform=(0, 0, 0, 0, 0, 0, 1), mass=1.0, inertia=np.eye(3))
            square = CORNERS[CORNERS[:, 2] < 0.0] * [*rng.uniform(0.05, 0.1, 2), 0.0]
            world.add_shape_mesh(body, mesh=nl.Mesh(square, [[0, 1, 2], [1, 3, 2]]))
            scene.add_world(world)
    model = scene.finalize("cpu")
    contacts = model.collide(model.state())
    n = int(contacts.rigid_contact_count.numpy()[0])
    world = model.shape_world.numpy()[contacts.rigid_contact_shape0.numpy()[:n]]
    assert (np.bincount(world, minlength=model.world_count) == 4).all()
