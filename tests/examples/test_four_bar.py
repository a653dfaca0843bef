"""The example with four-bar linkages: closed angles, coupler curves, and the check of its energy."""

import numpy as np
import pytest

from examples import four_bar
from examples.blocks import simulate


def test_angles_close_the_linkage(rng):
    lengths = np.array([four_bar.GROUND, four_bar.CRANK, four_bar.COUPLER, four_bar.ROCKER]) * rng.uniform(
        0.95, 1.05, (50, 4)
    )
    angles = four_bar.closed_angles(lengths, rng.uniform(-np.pi, np.pi, 50))
    ends = (lengths[:, 1:] * np.exp(1j * angles)).sum(axis=1)
    np.testing.assert_allclose(ends, lengths[:, 0], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_linkages_keep_their_energy_and_distances():
    """The middle of the coupler stays at half its length from the end of the crank, which is a crank away from the hinge."""
    scene = four_bar.build(3, 1.0 / 480.0, "cpu", 2)
    simulate(scene, round(four_bar.TEST_TIME / scene.frame_time), "swing", True)
    four_bar.check(scene)
    places = np.array(scene.poses)[:, :, 1, [0, 2]]
    half = np.linalg.norm(scene.curves() - places, axis=2)
    np.testing.assert_allclose(half, np.broadcast_to(0.5 * scene.lengths[:, 2], half.shape), rtol=1e-5)
    np.testing.assert_allclose(
        np.linalg.norm(places, axis=2), np.broadcast_to(scene.lengths[:, 1], half.shape), rtol=1e-5
    )
    scene.energy[-1][0] *= 1.5
    with pytest.raises(AssertionError, match="energy"):
        four_bar.check(scene)
