"""The example with six kinds of actuators: efforts are those of the formulas, and the check finds others."""

import numpy as np
import pytest
import warp as wp

from examples import actuator_zoo, blocks


@pytest.fixture(autouse=True)
def _log_level(monkeypatch):
    # the example makes Warp quiet, and the tests after these should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)


@pytest.mark.slow
def test_the_example_passes_its_test_measures_and_plots(capsys, tmp_path):
    def run(*arguments: str) -> str:
        actuator_zoo.main([*arguments, "--quiet", "--world-count", "2"])
        return capsys.readouterr().out

    assert "test passed" in run("--test", "--num-frames", "200", "--viewer", "plot", "--output-path", str(tmp_path))
    assert (tmp_path / "actuator_zoo.png").stat().st_size > 20_000
    assert "median" in run("--benchmark", "--num-frames", "4")


@pytest.mark.slow
def test_the_check_finds_efforts_that_are_not_of_their_law(monkeypatch):
    scene = actuator_zoo.build(2, 1.0 / 240.0, "cpu", 0)
    blocks.simulate(scene, 130, "test", quiet=True)
    actuator_zoo.check(scene)
    wanted, low, high = actuator_zoo.laws(scene.recorded())
    # the sweep reaches no limit in so short a time, so that all laws but two are the same
    assert (np.clip(wanted, low, high) != wanted).mean() < 0.2
    monkeypatch.setattr(actuator_zoo, "LAG", actuator_zoo.LAG - 1)
    with pytest.raises(AssertionError, match=r"delayed PD.*computed"):
        actuator_zoo.check(scene)
