"""The USD example: its file has the simulated motion, its check detects differences, and its options are checked."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from pxr import Gf, Sdf

from examples import usd_pipeline
from newton_like import assets


@pytest.fixture
def short_run(tmp_path) -> tuple[usd_pipeline.Run, Path]:
    """A few frames of a copy of the cart-pole, and the file of their motion."""
    source, file = tmp_path / "source.usda", tmp_path / "motion.usda"
    shutil.copy(assets.path("cartpole.usda"), source)
    run = usd_pipeline.start(source, 1.0 / 240.0, "cpu")
    usd_pipeline.simulate(run, 40, quiet=True)
    run.simulation.save(file)
    return run, file


@pytest.mark.slow
def test_the_warehouse_passes_its_test(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ["--quiet", "--test", "--num-frames", "30", "--viewer", "plot", "--output-path", str(tmp_path / "made")]
    usd_pipeline.main(arguments)
    said = capsys.readouterr().out
    # In half a second the barrel has not rolled as far as the carton has fallen.
    for words in ("0.01 m per unit, Y up", "25 bodies", "/Warehouse/Loose/FallingCarton", "31 frames", "test passed"):
        assert words in said
    assert {f.name for f in (tmp_path / "made").iterdir()} == {"warehouse_motion.usda", "usd_pipeline.png"}
    from matplotlib import image

    pixels = image.imread(tmp_path / "made" / "usd_pipeline.png")
    # Blue posts and orange boards of the racks cover more than a hundredth of it.
    assert (np.ptp(pixels[..., :3], axis=2) > 0.3).mean() > 0.01


def test_the_file_holds_every_frame(short_run):
    run, file = short_run
    usd_pipeline.check(run, file)
    assert len(run.poses) == 41
    layer = Sdf.Layer.FindOrOpen(str(file))
    (attribute,) = [p for p in layer.GetPrimAtPath("/CartPole/Pole").properties if "orient" in p.name]
    assert layer.ListTimeSamplesForPath(attribute.path) == pytest.approx(run.codes)


def test_check_sees_a_sample_that_is_off(short_run, rng):
    run, file = short_run
    layer = Sdf.Layer.FindOrOpen(str(file))
    (attribute,) = [p for p in layer.GetPrimAtPath("/CartPole/Cart").properties if "translate" in p.name]
    code = run.codes[int(rng.integers(1, 41))]
    place = layer.QueryTimeSample(attribute.path, code)
    layer.SetTimeSample(attribute.path, code, place + Gf.Vec3d(0.0, 1e-4, 0.0))
    layer.Save()
    with pytest.raises(AssertionError, match=r"motion\.usda .*0\.0001 m .*rad"):
        usd_pipeline.check(run, file)


def test_check_sees_a_changed_source(short_run):
    run, file = short_run
    with open(run.source, "a") as stream:
        stream.write("\n")
    with pytest.raises(AssertionError, match=r"source\.usda"):
        usd_pipeline.check(run, file)


def test_check_sees_that_nothing_moves(capsys, tmp_path):
    """The arm stays upright, held by its drives and its friction."""
    with pytest.raises(SystemExit, match=r"^test failed: .*moved"):
        usd_pipeline.main(
            [str(assets.path("arm.usda")), "--test", "--quiet", "--num-frames", "5", "--output-path", str(tmp_path)]
        )
    assert "test passed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["/nowhere.usda"], "/nowhere.usda"),
        (["--num-frames", "0"], "--num-frames: 0 "),
        (["--world-count", "2"], "--world-count"),
        (["--output-path", "/dev/null"], "--output-path /dev/null: "),
    ],
)
def test_wrong_options_are_named(arguments, cure, capsys):
    with pytest.raises(SystemExit) as stopped:
        usd_pipeline.main(arguments)
    assert stopped.value.code == 2
    assert cure in capsys.readouterr().err
