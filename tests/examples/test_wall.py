"""The wall of bricks that a ball breaks."""

import numpy as np
import pytest
import warp as wp

from examples import wall


@pytest.fixture(autouse=True)
def _log_level(monkeypatch):
    # the examples make Warp quiet, and the tests after these should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)


@pytest.mark.slow
def test_the_example_passes_its_test(capsys):
    wall.main(["--test", "--quiet"])
    assert "test passed" in capsys.readouterr().out


@pytest.mark.slow
def test_benchmark_prints_rates(capsys):
    wall.main(["--num-frames", "3", "--benchmark", "--quiet"])
    assert "world-steps/s" in capsys.readouterr().out


def test_bricks_of_a_row_touch_and_do_not_overlap():
    places = wall.places().reshape(wall.ROWS, wall.COLUMNS, 3)
    assert np.allclose(np.diff(places[..., 1], axis=1), 2 * wall.HALF[1])
    assert np.allclose(np.diff(places[..., 2], axis=0), 2 * wall.HALF[2])
