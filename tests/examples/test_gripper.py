"""The example in which arms carry cubes by friction."""

import numpy as np
import pytest
import warp as wp

from examples import blocks, gripper


@pytest.fixture(autouse=True)
def _log_level(monkeypatch):
    # the example makes Warp quiet, and the tests after these should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)


@pytest.fixture(scope="module")
def carried() -> gripper.Grasps:
    """Six arms after the motion, with the default settings of the solver."""
    scene = gripper.Grasps(6, 1.0 / 240.0, "cpu", 0)
    blocks.simulate(scene, round(gripper.TEST_TIME / scene.frame_time), "test", quiet=True)
    return scene


def test_cubes_are_carried_and_put_down(carried):
    gripper.check(carried)


def test_inverse_kinematics_puts_the_pads_around_the_cubes(carried):
    """After the hand went down, the grasp is where the cube is."""
    cube, hand = np.moveaxis(carried.poses[gripper.frame_at(carried, "down")], 1, 0)
    # the drives sag by a millimetre, and the hand moves on when the frame ends
    np.testing.assert_allclose(hand[:, :3] - [0.0, 0.0, gripper.GRASP], cube[:, :3], atol=7.0e-3)


def test_without_friction_nothing_is_lifted(monkeypatch):
    monkeypatch.setattr(gripper, "FRICTION", 0.0)
    scene = gripper.Grasps(2, 1.0 / 240.0, "cpu", 0)
    blocks.simulate(scene, round(gripper.TEST_TIME / scene.frame_time), "test", quiet=True)
    assert scene.healthy.all()
    with pytest.raises(AssertionError, match=r"2 of 2.*lifted.*world 0"):
        gripper.check(scene)


def test_the_command_line_runs(capsys):
    gripper.main(["--world-count", "1", "--num-frames", "3", "--quiet"])
    assert "masses" in capsys.readouterr().out
