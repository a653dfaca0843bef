"""Contact points of hulls that lie on a box with a face that is not regular."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from newton_like import Heightfield, Mesh, ModelBuilder

WORLDS = 64
HALF_HEIGHT = 0.05


def parallelogram(rng) -> np.ndarray:
    """Corners of a parallelogram with sides of 10 to 20 cm and angles of 50 to 130 degrees, ``[4, 2]``."""
    (a, c), angle = rng.uniform(0.1, 0.2, 2), np.radians(rng.uniform(50.0, 130.0))
    sides = np.array([[a, 0.0], [c * np.cos(angle), c * np.sin(angle)]])
    return np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) @ sides


def prism(corners: np.ndarray) -> Mesh:
    points = np.concatenate([np.c_[corners, np.full(len(corners), z)] for z in (-HALF_HEIGHT, HALF_HEIGHT)])
    return Mesh(points, ConvexHull(points).simplices, compute_inertia=False)


def add_ground(scene: ModelBuilder, kind: str) -> int:
    """Level ground at height 0; of a surface, cells have sides of 5 cm."""
    if kind == "box":
        return scene.add_shape_box(-1, xform=(0.0, 0.0, -0.1, 0.0, 0.0, 0.0, 1.0), hx=1.0, hy=1.0, hz=0.1)
    if kind == "height field":
        return scene.add_shape_heightfield(heightfield=Heightfield(np.zeros((41, 41)), 41, 41, hx=1.0, hy=1.0))
    x, y = (0.05 * (i.ravel() - 20.0) for i in np.indices((41, 41)))
    corner = (41 * np.arange(40)[:, None] + np.arange(40)).ravel()
    triangles = [corner, corner + 41, corner + 1], [corner + 1, corner + 41, corner + 42]
    triangles = np.concatenate([np.stack(x, axis=1) for x in triangles])
    return scene.add_shape_mesh(-1, mesh=Mesh(np.stack([x, y, 0.0 * x], axis=1), triangles, compute_inertia=False))


def points_on_ground(pieces: list[np.ndarray], rng, kind: str = "box") -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The contact points of a prism on each of these polygons, and the places of its corners, ``[number, 2]`` for each world."""
    scene, places = ModelBuilder(), []
    for corners in pieces:
        world = ModelBuilder()
        turn, place = Rotation.from_euler("z", rng.uniform(0.0, 2.0 * np.pi)), rng.uniform(-0.5, 0.5, 2)
        body = world.add_body(xform=(*place, HALF_HEIGHT - 1.0e-5, *turn.as_quat()))
        world.add_shape_convex_hull(body, mesh=prism(corners))
        scene.add_world(world)
        places.append(turn.apply(np.c_[corners, np.zeros(len(corners))])[:, :2] + place)
    ground = add_ground(scene, kind)
    model = scene.finalize("cpu")
    contacts = model.contacts()
    model.collide(model.state(), contacts)
    count = int(contacts.rigid_contact_count.numpy()[0])
    first, second = (x.numpy()[:count] for x in (contacts.rigid_contact_shape0, contacts.rigid_contact_shape1))
    # points are in the frames of bodies; the ground is in that of the world
    points = (contacts.rigid_contact_point0.numpy()[:count], contacts.rigid_contact_point1.numpy()[:count])
    on_ground = np.where((first == ground)[:, None], *points)[:, :2]
    world_of = model.shape_world.numpy()[np.where(first == ground, second, first)]
    return [on_ground[world_of == w] for w in range(len(pieces))], places


def test_each_corner_of_a_parallelogram_is_a_contact_point(rng):
    """A parallelogram has four corners, which all carry a part of the weight, however it is turned about the normal."""
    for found, corners in zip(*points_on_ground([parallelogram(rng) for _ in range(WORLDS)], rng), strict=True):
        assert len(found) == 4
        assert np.linalg.norm(found[:, None] - corners, axis=2).min(axis=0).max() < 1.0e-4


def polygon(rng, number: int) -> np.ndarray:
    """Corners of a convex polygon, which are on a circle of 20 cm at irregular angles, ``[number, 2]``."""
    gaps = rng.uniform(0.5, 1.5, number)
    angles = 2.0 * np.pi * np.cumsum(gaps) / gaps.sum()
    return 0.1 * np.c_[np.cos(angles), np.sin(angles)]


@pytest.mark.parametrize("number", [5, 6, 7, 8])
def test_each_corner_of_a_polygon_is_a_contact_point(rng, number):
    """Corners may be close to each other, and angles flat: a body whose weight is near a corner that is left out rocks."""
    for found, corners in zip(*points_on_ground([polygon(rng, number) for _ in range(WORLDS)], rng), strict=True):
        assert len(found) == number
        assert np.linalg.norm(found[:, None] - corners, axis=2).min(axis=0).max() < 1.0e-4


@pytest.mark.parametrize("kind", ["height field", "mesh"])
@pytest.mark.parametrize("number", [4, 6, 8])
def test_each_corner_of_a_polygon_on_a_surface_is_a_contact_point(rng, kind, number):
    """Points where edges of triangles cross the face are between its corners. Where such a point is next to a corner, it may take the
    place of it: 1.8 mm at most with ten seeds."""
    pieces = [polygon(rng, number) for _ in range(WORLDS)]
    for found, corners in zip(*points_on_ground(pieces, rng, kind), strict=True):
        assert np.linalg.norm(found[:, None] - corners, axis=2).min(axis=0).max() < 4.0e-3
