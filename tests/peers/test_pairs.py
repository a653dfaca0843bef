"""Contact points of pairs of shapes against those of MuJoCo and coal (PyPI package ``coal``).

Differences of MuJoCo 4.0: the depth of a capsule whose axis cuts a box is not that of the shortest way out;
the depth of some boxes, one in a thousand, differs by some per cent (tests/collision/pairs/test_box.py has the closed form).
Differences of coal 3.0: the same of some spheres whose centres are inside a cylinder.
"""

import numpy as np
import pytest
from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, SPHERE

from tests.support.pairs import Shapes, contact_points, random_shapes

mujoco = pytest.importorskip("mujoco")

N = 500
PAIRS = [
    (SPHERE, SPHERE),
    (SPHERE, CAPSULE),
    (SPHERE, BOX),
    (SPHERE, CYLINDER),
    (CAPSULE, CAPSULE),
    (CAPSULE, BOX),
    (BOX, BOX),
]
NAMES = {SPHERE: "sphere", CAPSULE: "capsule", BOX: "box", CYLINDER: "cylinder"}


def mujoco_distances(kind: int, other: int, a: Shapes, b: Shapes) -> np.ndarray:
    geoms = "".join(f'<geom type="{NAMES[k]}" size="1 1 1"/>' for k in (kind, other))
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    found = np.empty(len(a))
    for i in range(len(a)):
        for g, s in enumerate((a, b)):
            model.geom_size[g] = s.extent[i]
            model.geom_rbound[g] = 2.0 * s.extent[i].sum()
            data.geom_xpos[g], data.geom_xmat[g] = s.centre[i], s.axes[i].ravel()
        found[i] = mujoco.mj_geomDistance(model, data, 0, 1, 100.0, None)
    return found


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_distances_are_those_of_mujoco(rng, kind, other):
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    distance = contact_points(kind, other, a, b).of_nearest("distance")
    theirs = mujoco_distances(kind, other, a, b)
    known = distance > -a.extent[:, 0] if (kind, other) == (CAPSULE, BOX) else np.full(N, True)
    assert known.sum() > N / 2
    error = abs(theirs - distance)[known]
    assert np.quantile(error, 0.98 if kind == BOX else 1.0) < 1.0e-9
    assert error.max() < 0.1


def coal_shape(coal, kind: int, size: np.ndarray):
    if kind == SPHERE:
        return coal.Sphere(size[0])
    if kind == BOX:
        return coal.Box(*(2.0 * size))
    return (coal.Capsule if kind == CAPSULE else coal.Cylinder)(size[0], 2.0 * size[1])


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_distances_and_normals_are_those_of_coal(rng, kind, other):
    coal = pytest.importorskip("coal")
    a, b = random_shapes(rng, kind, N), random_shapes(rng, other, N)
    p = contact_points(kind, other, a, b)
    distance = p.of_nearest("distance")
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    theirs, normal = np.empty(N), np.empty((N, 3))
    for i in range(N):
        result = coal.DistanceResult()
        places = [coal.Transform3s(s.axes[i], s.centre[i]) for s in (a, b)]
        theirs[i] = coal.distance(
            coal_shape(coal, kind, a.extent[i]),
            places[0],
            coal_shape(coal, other, b.extent[i]),
            places[1],
            request,
            result,
        )
        normal[i] = result.normal
    known = distance > -a.extent[:, 0] if (kind, other) == (SPHERE, CYLINDER) else np.full(N, True)
    assert known.sum() > N / 2
    # the search of coal ends at differences of 1e-6
    np.testing.assert_allclose(theirs[known], distance[known], atol=1.0e-6)
    # those of boxes that touch with a face and with edges nearly as much may differ
    turned = np.linalg.norm(normal - p.of_nearest("normal"), axis=1)[known]
    assert np.quantile(turned, 0.98 if kind == BOX else 1.0) < 1.0e-8
