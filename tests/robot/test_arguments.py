"""Checks of arguments of the robot package."""

import numpy as np
import pytest

from newton_like.robot.arguments import RIGID_TOLERANCE, as_pose, as_pose_rows, check_rigid
from newton_like.robot.errors import RobotError, ShapeError
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


def test_rows_of_a_pose_are_refused_as_the_pose_is(rng):
    for _ in range(100):
        T = random_pose(rng)
        assert as_pose_rows(T, "T") == as_pose_rows(T.tolist(), "T") == as_pose(T.tolist(), "T").tolist() == T.tolist()
        T.flat[rng.integers(16)] = rng.choice([np.nan, np.inf, -np.inf])
        for given in (T, T.tolist(), np.asfortranarray(T)):
            for check in (as_pose, as_pose_rows):
                with pytest.raises(RobotError, match=r"\bT\b.*finite"):
                    check(given, "T")


@pytest.mark.parametrize(
    ("value", "error"), [(np.eye(3), ShapeError), ([[1.0] * 4] * 3, ShapeError), (np.eye(4) * 1j, TypeError), ("T", TypeError),
    ([[1.0, 2.0], [3.0]], ShapeError), (None, TypeError)],
)  # fmt: skip
def test_rows_of_other_things_are_errors_of_the_same_kind(value, error):
    for check in (as_pose, as_pose_rows):
        with pytest.raises(error, match="T "):
            check(value, "T")
