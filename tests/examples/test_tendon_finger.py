"""The example with tendon-driven fingers: its paths, and its check."""

import numpy as np
import pytest

from examples import tendon_finger
from examples.blocks import simulate


@pytest.mark.slow
def test_fingers_bend_and_flexors_only_pull():
    scene = tendon_finger.build(3, 1.0 / 240.0, "cpu", 2)
    simulate(scene, round(tendon_finger.TEST_TIME / scene.frame_time), "bend", True)
    tendon_finger.check(scene)
    # at the start each tendon has the length of its line
    np.testing.assert_allclose(scene.lengths[0], scene.line, rtol=0, atol=1e-6)
    assert np.array(scene.forces)[1:].max() < 1.0
    # springs of other stiffness bend the joints otherwise
    assert np.ptp(np.array(scene.angles), axis=1).max() > 0.01
    scene.lengths[-1][0] += 0.01
    with pytest.raises(AssertionError, match="misses"):
        tendon_finger.check(scene)
