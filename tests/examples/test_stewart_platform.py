"""The example with platforms on six legs: lengths of legs, and platforms that follow their paths."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from examples import stewart_platform
from examples.blocks import simulate
from newton_like import dynamics


def test_lengths_of_legs_are_those_of_the_model(rng):
    """The drives of a world whose loops are closed at a pose of the platform."""
    model = stewart_platform.platform().finalize("cpu")
    state = model.state()
    place = stewart_platform.HOME + rng.uniform(-0.05, 0.05, 3)
    turn = Rotation.from_rotvec(rng.uniform(-0.2, 0.2, 3))
    dynamics.set_joint_positions(model, state, [*place, *turn.as_quat()], "free")
    dynamics.assemble(model, state, fixed=["free"])
    drives = [f"drive_{k}" for k in range(stewart_platform.LEGS)]
    found = dynamics.joint_positions(model, state, drives).numpy()[0]
    wanted = stewart_platform.lengths(place[None], Rotation.from_quat(turn.as_quat()[None]))[0]
    # gaps of 1e-5 m are left in single precision
    np.testing.assert_allclose(found + stewart_platform.HOME_LENGTH, wanted, rtol=0, atol=3e-5)


@pytest.mark.slow
def test_platforms_follow_their_paths():
    scene = stewart_platform.build(3, 1.0 / 240.0, "cpu", 1)
    simulate(scene, round(stewart_platform.TEST_TIME / scene.frame_time), "move", True)
    stewart_platform.check(scene)
    # platforms that are held by nothing fall
    scene.poses[-1][0, 0, 2] -= 0.01
    with pytest.raises(AssertionError, match=r"platform.* mm .*path"):
        stewart_platform.check(scene)
