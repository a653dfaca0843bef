"""Closest points of pairs of shapes against coal."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like.collision import closest_points
from tests.collision.test_closest import CORNERS, KINDS, Scene, numbers


def coal_shape(coal, kind: str, size):
    a, b, c = (float(x) for x in size)
    if kind == "hull":
        points = coal.StdVec_Vec3s()
        points.extend(list(CORNERS))
        return coal.Convex.convexHull(points, False, None)
    shapes = dict(
        sphere=lambda: coal.Sphere(a), capsule=lambda: coal.Capsule(a, 2 * b), box=lambda: coal.Box(2 * a, 2 * b, 2 * c),
        cylinder=lambda: coal.Cylinder(a, 2 * b), ellipsoid=lambda: coal.Ellipsoid(a, b, c), cone=lambda: coal.Cone(a, 2 * b),
    )  # fmt: skip
    return shapes[kind]()


def coal_distance(coal, scene: Scene, i: int, j: int) -> float:
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = 1.0e-9
    one, two = (
        (
            coal_shape(coal, scene.kinds[k], scene.sizes[k]),
            coal.Transform3s(Rotation.from_quat(scene.poses[k, 3:]).as_matrix(), scene.poses[k, :3]),
        )
        for k in (i, j)
    )
    return coal.distance(*one, *two, request, result)


@pytest.mark.parametrize(("dtype", "tolerance"), [(wp.float32, 3.0e-5), (wp.float64, 1.0e-7)])
def test_distances_of_shapes_that_are_apart_are_those_of_coal(rng, dtype, tolerance):
    coal = pytest.importorskip("coal")
    scene = Scene(rng, KINDS, extent=3.0)
    pairs = scene.pairs(rng)
    model = scene.model(dtype)
    distance, *_ = numbers(closest_points(model, model.state(), pairs))
    wanted = np.array([coal_distance(coal, scene, i, j) for i, j in pairs])
    apart = wanted > 1.0e-3
    assert apart.sum() > 100
    # a search ends where it gains less than rounding errors of the distance, which leaves a direction of about 3e-3 rad open
    np.testing.assert_allclose(distance[apart], wanted[apart], rtol=0.3 * tolerance, atol=tolerance)
    assert (distance[~apart] < 2.0e-3).all()
