"""The example in which humanoids with self-collision fall."""

import numpy as np
import pytest
import warp as wp

from examples import blocks, humanoid_fall


@pytest.fixture(autouse=True)
def _log_level(monkeypatch):
    # the example makes Warp quiet, and the tests after these should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)


@pytest.fixture(scope="module")
def fallen() -> humanoid_fall.Falls:
    scene = humanoid_fall.Falls(4, 1.0 / 240.0, "cpu", 0)
    blocks.simulate(scene, round(humanoid_fall.TEST_TIME / scene.frame_time), "test", quiet=True)
    return scene


@pytest.mark.slow
def test_humanoids_come_to_rest_without_overlaps(fallen):
    humanoid_fall.check(fallen)


def test_the_ground_carries_their_weight(fallen):
    """The forces of contacts between limbs add up to nothing."""
    model = fallen.model
    force = fallen.solver.contact_forces().numpy()
    world = model.shape_world.numpy()
    weight = 9.81 * np.bincount(model.body_world.numpy(), model.body_mass.numpy())
    for i in range(fallen.worlds):
        np.testing.assert_allclose(force[world == i].sum(axis=0), [0.0, 0.0, weight[i]], atol=0.02 * weight[i])


@pytest.mark.slow
def test_poses_with_limbs_in_each_other_are_drawn_again(monkeypatch):
    scene = humanoid_fall.Falls(16, 1.0 / 240.0, "cpu", 0)
    assert humanoid_fall.depths(scene.model, scene.state).max() <= humanoid_fall.START_DEPTH
    monkeypatch.setattr(humanoid_fall, "START_DEPTH", 1.0)
    scene = humanoid_fall.Falls(16, 1.0 / 240.0, "cpu", 0)
    assert humanoid_fall.depths(scene.model, scene.state).max() > humanoid_fall.TEST_DEPTH
    # after the first step, which compiles, worlds start again from these poses
    np.testing.assert_array_equal(scene.state.joint_q.numpy(), scene.model.joint_q.numpy())


def test_the_command_line_runs(capsys):
    humanoid_fall.main(["--world-count", "1", "--num-frames", "3", "--quiet"])
    assert "overlap" in capsys.readouterr().out
