"""Errors of poses."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like.robot.control.task_space import rotation_vector


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 0.5, 3.0, np.pi])
def test_rotation_vectors(rng, angle):
    axes = rng.normal(size=(50, 3))
    turns = angle * axes / np.linalg.norm(axes, axis=1, keepdims=True)
    R = Rotation.from_rotvec(turns).as_matrix()
    found = rotation_vector(R)
    # for half a turn, the opposite vector is the same rotation
    size = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(size, angle, atol=1e-14)
    np.testing.assert_allclose(Rotation.from_rotvec(found).as_matrix(), R, atol=1e-14)
    # one matrix and many take different ways with the same bits
    np.testing.assert_array_equal([rotation_vector(one) for one in R], found)


def test_rotation_vectors_near_half_a_turn_and_near_none(rng):
    """Half a turn less something has one vector only."""
    angles = np.concatenate(
        [rng.uniform(0.0, np.pi, 100), np.pi - 10.0 ** rng.uniform(-12, -1, 100), 10.0 ** rng.uniform(-12, -1, 100)]
    )
    axes = rng.normal(size=(300, 3))
    vectors = angles[:, None] * axes / np.linalg.norm(axes, axis=1, keepdims=True)
    np.testing.assert_allclose(rotation_vector(Rotation.from_rotvec(vectors).as_matrix()), vectors, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(rotation_vector(np.eye(3)), np.zeros(3))
