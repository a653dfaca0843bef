"""The example of a bridge of planks."""

import numpy as np
import pytest

from examples import chain_bridge
from examples.blocks import simulate


def test_the_bridge_starts_closed():
    """The arc has equal parts and ends on the other bank."""
    points = chain_bridge.arc(6.0, 5.5, 24)
    np.testing.assert_allclose(np.linalg.norm(np.diff(points, axis=0), axis=1), 0.25, rtol=1e-12)
    np.testing.assert_allclose(points[-1], [5.5, 0.0], atol=1e-9)


@pytest.mark.slow
def test_crates_lie_on_the_bridge():
    scene = chain_bridge.build(1, 1.0 / 240.0, "cpu", 1)
    simulate(scene, round(chain_bridge.TEST_TIME / scene.frame_time), "fall", True)
    chain_bridge.check(scene)
    scene.gap[-1] = 1.0
    with pytest.raises(AssertionError, match="hinge"):
        chain_bridge.check(scene)
