"""Contact points of hulls that lie on a box with a face that is not regular."""

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from newton_like import Mesh, ModelBuilder

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


def test_each_corner_of_a_parallelogram_is_a_contact_point(rng):
    """A parallelogram has four corners, which all carry a part of the weight, however it is turned about the normal."""
    scene = ModelBuilder()
    places = []
    for _ in range(WORLDS):
        world, corners = ModelBuilder(), parallelogram(rng)
        turn, place = Rotation.from_euler("z", rng.uniform(0.0, 2.0 * np.pi)), rng.uniform(-0.5, 0.5, 2)
        body = world.add_body(xform=(*place, HALF_HEIGHT - 1.0e-5, *turn.as_quat()))
        world.add_shape_convex_hull(body, mesh=prism(corners))
        scene.add_world(world)
        places.append(turn.apply(np.c_[corners, np.zeros(4)])[:, :2] + place)
    ground = scene.add_shape_box(-1, xform=(0.0, 0.0, -0.1, 0.0, 0.0, 0.0, 1.0), hx=1.0, hy=1.0, hz=0.1)
    model = scene.finalize("cpu")
    contacts = model.contacts()
    model.collide(model.state(), contacts)
    count = int(contacts.rigid_contact_count.numpy()[0])
    first, second = (x.numpy()[:count] for x in (contacts.rigid_contact_shape0, contacts.rigid_contact_shape1))
    # points are in the frames of bodies; the ground is in that of the world
    points = (contacts.rigid_contact_point0.numpy()[:count], contacts.rigid_contact_point1.numpy()[:count])
    on_ground = np.where((first == ground)[:, None], *points)[:, :2]
    world_of = model.shape_world.numpy()[np.where(first == ground, second, first)]
    for w in range(WORLDS):
        found = on_ground[world_of == w]
        assert len(found) == 4
        distances = np.linalg.norm(found[:, None] - places[w][None], axis=2)
        assert distances.min(axis=0).max() < 1.0e-4
