"""The examples with multirotors: vehicles hold their places and fly through their gates, and the checks say which do not."""

import numpy as np
import pytest
import warp as wp

from examples import blocks, multirotor_hover, multirotor_race

EXAMPLES = pytest.mark.parametrize("example", [multirotor_hover, multirotor_race], ids=["hover", "race"])


@pytest.fixture(autouse=True)
def _log_level(monkeypatch):
    # the examples make Warp quiet, and the tests after these should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)


def run(example, capsys, *arguments: str) -> str:
    example.main([*arguments, "--quiet"])
    return capsys.readouterr().out


@EXAMPLES
def test_the_example_passes_its_test(example, capsys):
    assert "test passed" in run(example, capsys, "--test", "--world-count", "13")


@pytest.mark.slow
@EXAMPLES
def test_the_example_measures_and_plots(example, capsys, tmp_path):
    assert "median" in run(example, capsys, "--benchmark", "--world-count", "3", "--num-frames", "4")
    run(example, capsys, "--viewer", "plot", "--world-count", "3", "--num-frames", "12", "--output-path", str(tmp_path))
    assert (tmp_path / f"{example.__name__.rpartition('.')[2]}.png").stat().st_size > 20_000


def test_a_run_after_another_is_the_same():
    scene = multirotor_hover.build(4, 1.0 / 240.0, "cpu", 3)
    ends = []
    for _ in range(2):
        scene.reset()
        for _ in range(300):
            scene.advance()
        ends.append(scene.state.body_q.numpy().copy())
    assert np.array_equal(*ends)


def test_the_check_names_vehicles_that_leave_their_places(monkeypatch):
    monkeypatch.setattr(multirotor_hover, "TEST_DISTANCE", 0.01)
    scene = multirotor_hover.build(2, 1.0 / 240.0, "cpu", 0)
    blocks.simulate(scene, 200, "test", quiet=True)
    with pytest.raises(AssertionError, match=r"2 of 2.*without"):
        multirotor_hover.check(scene)


@pytest.mark.slow
def test_the_check_names_vehicles_that_miss_a_gate(monkeypatch):
    monkeypatch.setattr(multirotor_race, "DRAG", 20.0)
    scene = multirotor_race.build(2, 1.0 / 240.0, "cpu", 0)
    blocks.simulate(scene, 500, "test", quiet=True)
    with pytest.raises(AssertionError, match=r"2 of 2.*gate.*world 0\b"):
        multirotor_race.check(scene)


def test_the_course_passes_all_gates():
    spline, at = multirotor_race.course()
    assert np.allclose(spline(at), multirotor_race.GATES)
    for k in range(3):
        assert np.allclose(spline(0.0, k), spline(1.0, k))
