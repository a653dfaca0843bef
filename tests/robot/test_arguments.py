"""Checks of arguments of the robot package."""

import pytest

from newton_like.robot.arguments import RIGID_TOLERANCE, check_rigid
from newton_like.robot.errors import RobotError
from tests.support.random_robots import random_pose


def is_rigid(T) -> bool:
    try:
        check_rigid(T, "T")
    except RobotError:
        return False
    return True


@pytest.mark.parametrize("mirrored", [False, True])
def test_one_matrix_is_checked_as_each_of_a_batch(rng, mirrored):
    """Entries that deviate by less and by more than the tolerance."""
    verdicts = []
    for size in RIGID_TOLERANCE * 10.0 ** rng.uniform(-2.0, 2.0, 200):
        T = random_pose(rng)
        if mirrored:
            T[:3, :3] *= -1.0
        T.flat[rng.integers(16)] += size
        verdicts.append(is_rigid(T))
        assert verdicts[-1] == is_rigid(T[None])
    assert any(verdicts) != mirrored and not all(verdicts)
