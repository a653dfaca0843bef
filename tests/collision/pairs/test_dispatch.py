"""Contact points of pairs of any kinds, whatever the lanes."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.collision.plane import BOX, CAPSULE, CYLINDER, SPHERE

from tests.support.pairs import REALS, contact_points, random_shapes

CLOSED = [
    (SPHERE, SPHERE),
    (SPHERE, CAPSULE),
    (SPHERE, BOX),
    (SPHERE, CYLINDER),
    (CAPSULE, CAPSULE),
    (CAPSULE, BOX),
    (BOX, BOX),
]
"""Pairs of kinds with closed forms."""


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize(("kind", "other"), [*CLOSED, (CAPSULE, CYLINDER)])
def test_numbers_of_all_magnitudes_are_finite(rng, kind, other, real):
    """Sizes from nothing and a micrometre to a thousand kilometres, near and far, with equal axes or not: there is a unit normal."""
    n = 4000
    a, b = random_shapes(rng, kind, n), random_shapes(rng, other, n)
    for s in (a, b):
        s.extent *= 10.0 ** rng.uniform(-6.0, 6.0, (n, 3)) * (rng.random((n, 3)) > 0.1)
        s.centre *= 10.0 ** rng.uniform(-8.0, 6.0, (n, 1))
        s.axes = np.where(rng.random((n, 1, 1)) < 0.3, np.eye(3), s.axes)
    p = contact_points(kind, other, a, b, real)
    for numbers in (p.place, p.normal, p.distance, p.feature):
        assert np.isfinite(numbers).all()
    assert p.found[:, 0].all()
    tolerance = 1.0e-4 if real is wp.float32 else 1.0e-9
    np.testing.assert_allclose(np.linalg.norm(p.normal, axis=2)[p.found], 1.0, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 16])
def test_the_width_of_lanes_does_not_matter(rng, width):
    for kind, other in [*CLOSED, (BOX, CYLINDER)]:
        a, b = random_shapes(rng, kind, 500), random_shapes(rng, other, 500)
        one, two = contact_points(kind, other, a, b), contact_points(kind, other, a, b, width=width)
        np.testing.assert_array_equal(one.found, two.found)
        np.testing.assert_array_equal(one.feature[one.found], two.feature[one.found])
        np.testing.assert_allclose(one.distance, two.distance, rtol=0.0, atol=1.0e-9)
        np.testing.assert_allclose(one.place[one.found], two.place[one.found], rtol=0.0, atol=1.0e-6)
        np.testing.assert_allclose(one.normal[one.found], two.normal[one.found], rtol=0.0, atol=1.0e-6)
