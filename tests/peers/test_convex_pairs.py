"""Distances of cylinders, cones, ellipsoids and hulls against those of MuJoCo and coal (PyPI package ``coal``).

Distances of shapes that are apart are the same. Both libraries find the depth of shapes that overlap by an expanding polytope with few
vertices: some of their depths exceed the smallest one, and some of MuJoCo for ellipsoids are smaller than that of any direction.
"""

import numpy as np
import pytest
from newton_like.kernels.collision.plane import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, SPHERE

from tests.peers import test_pairs as peers
from tests.support.pairs import contact_points, random_shapes

# the kernels take long to compile, and faster tests cover the same code
pytestmark = pytest.mark.slow

mujoco = pytest.importorskip("mujoco")

N = 400
IN_MUJOCO = [(k, o) for o in (CYLINDER, ELLIPSOID) for k in (SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID) if k <= o]
IN_COAL = [(k, o) for o in (CYLINDER, CONE, ELLIPSOID, HULL) for k in range(o + 1)]


def assert_same(distance: np.ndarray, theirs: np.ndarray, exact: float):
    apart = distance > 1.0e-3
    assert 20 < apart.sum() < N - 20
    error = abs(theirs - distance)[apart]
    assert np.quantile(error, 0.99) < exact
    assert error.max() < 1.0e-3
    deep = distance < -1.0e-3
    assert np.quantile((theirs - distance)[deep], 0.9) < 2.0e-3 + exact


@pytest.mark.parametrize(("kind", "other"), IN_MUJOCO)
def test_distances_are_those_of_mujoco(rng, kind, other, monkeypatch):
    monkeypatch.setitem(peers.NAMES, ELLIPSOID, "ellipsoid")
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    distance = contact_points(kind, other, a, b).of_nearest("distance")
    assert_same(distance, peers.mujoco_distances(kind, other, a, b), 1.0e-5)


@pytest.mark.parametrize(("kind", "other"), IN_COAL)
def test_distances_are_those_of_coal(rng, kind, other):
    coal = pytest.importorskip("coal")
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)

    def shape(k: int, s, i: int):
        if k == ELLIPSOID:
            return coal.Ellipsoid(*s.extent[i])
        if k == CONE:
            return coal.Cone(s.extent[i, 0], 2.0 * s.extent[i, 1])
        if k == HULL:
            points = coal.StdVec_Vec3s()
            points.extend(list(s.vertices))
            return coal.Convex.convexHull(points, True, "Qt")
        return peers.coal_shape(coal, k, s.extent[i])

    distance = contact_points(kind, other, a, b).of_nearest("distance")
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    theirs = np.empty(N)
    for i in range(N):
        places = [coal.Transform3s(s.axes[i], s.centre[i]) for s in (a, b)]
        theirs[i] = coal.distance(
            shape(kind, a, i), places[0], shape(other, b, i), places[1], request, coal.DistanceResult()
        )
    assert_same(distance, theirs, 1.0e-4)
