"""The examples with boxes that touch each other: towers stand, and dominoes fall one after the other, with the speed of MuJoCo's."""

import numpy as np
import pytest
import warp as wp

from examples import blocks, box_tower, dominoes
from examples.blocks import Blocks

EXAMPLES = pytest.mark.parametrize("example", [box_tower, dominoes], ids=["box_tower", "dominoes"])


@pytest.fixture(autouse=True)
def _log_level(monkeypatch):
    # the examples make Warp quiet, and the tests after these should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)


def run(example, capsys, *arguments: str) -> str:
    example.main([*arguments, "--quiet"])
    return capsys.readouterr().out


def simulated(example, worlds: int, seed: int = 0, dt: float = 1.0 / 240.0) -> Blocks:
    scene = example.build(worlds, dt, "cpu", seed)
    blocks.simulate(scene, round(example.TEST_TIME / scene.frame_time), "test", quiet=True)
    return scene


@EXAMPLES
def test_the_example_passes_its_test(example, capsys):
    assert "test passed" in run(example, capsys, "--test", "--world-count", "3")


def test_the_check_names_a_tower_that_fell(monkeypatch):
    # after a quarter of a second, the boxes of towers that stand still sway
    monkeypatch.setattr(box_tower, "TEST_SPEED", 0.1)
    scene = box_tower.build(3, 1.0 / 240.0, "cpu", seed=0)
    velocity = scene.state.joint_qd.numpy().reshape(3, box_tower.BOXES, 6)
    velocity[1, 5, 0] = 3.0
    scene.state.joint_qd.assign(velocity.ravel())
    blocks.simulate(scene, 60, "test", quiet=True)
    with pytest.raises(AssertionError, match=r"1.*3.*world 1"):
        box_tower.check(scene)


def test_the_check_names_dominoes_that_stand(monkeypatch):
    monkeypatch.setattr(dominoes, "PUSH", (0.5, 0.5))
    with pytest.raises(AssertionError, match=r"2.*2.*world 0"):
        dominoes.check(simulated(dominoes, 2))


def test_a_push_that_topples_the_first_domino_has_the_energy_of_its_balance():
    """I w^2 / 2 = m g (diagonal - height) / 2, with I = m diagonal^2 / 3 about the edge: 1 % more or less decides."""
    diagonal, height = np.hypot(dominoes.SIZE[0], dominoes.SIZE[2]), dominoes.SIZE[2]
    least = np.sqrt(3.0 * dominoes.GRAVITY * (diagonal - height)) / diagonal
    for factor, falls in ((0.97, False), (1.03, True)):
        scene = dominoes.build(1, 1.0 / 240.0, "cpu", 0)
        velocity = scene.state.joint_qd.numpy().reshape(-1, 6)
        spin = np.linalg.norm(velocity[0, 3:])
        velocity[0] *= factor * least / spin
        scene.state.joint_qd.assign(velocity.ravel())
        blocks.simulate(scene, 120, "test", quiet=True)
        assert np.isfinite(dominoes.tipping_times(scene)[0, 0]) == falls


def test_the_wave_forgets_the_push():
    """Pushes of 2 to 3 rad/s: the waves differ by less than their rounding to frames."""
    speeds = dominoes.wave_speeds(simulated(dominoes, 4))
    np.testing.assert_allclose(speeds, speeds.mean(), rtol=0.02)


@pytest.mark.slow
def test_the_wave_is_as_fast_as_in_mujoco():
    mujoco = pytest.importorskip("mujoco")
    from tests.support.mujoco_bridge import MujocoBridge

    ours = simulated(dominoes, 1)
    bridge = MujocoBridge(ours.model, contacts=True, between_bodies=True)
    model, data = bridge.model, bridge.data
    model.opt.timestep = 1.0 / 1000.0
    bridge.set_state(ours.model.joint_q.numpy(), ours.model.joint_qd.numpy())
    theirs, tilts = [], []
    for _ in range(round(dominoes.TEST_TIME / ours.frame_time)):
        tilts.append(np.array([data.body(f"body_{i}").xmat[8] for i in range(dominoes.DOMINOES)]))
        theirs.append(data.time)
        while data.time < len(theirs) * ours.frame_time:
            mujoco.mj_step(model, data)
    balance = np.arctan2(dominoes.SIZE[0], dominoes.SIZE[2])
    beyond = np.array(tilts) < np.cos(balance)
    assert beyond.any(axis=0).all()
    times, middle = np.array(theirs)[beyond.argmax(axis=0)], dominoes.DOMINOES // 2
    span = np.diff(dominoes.tipping_times(ours)[0, [middle, -1]])[0]
    print(f"MuJoCo {times[-1] - times[middle]:.3f} s, ours {span:.3f} s")
    assert times[-1] - times[middle] == pytest.approx(span, rel=0.15)


@pytest.mark.slow
@EXAMPLES
def test_plots_and_videos_are_written(example, capsys, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    pytest.importorskip("PIL")
    common = ["--world-count", "2", "--num-frames", "20", "--output-path", str(tmp_path)]
    for viewer, suffix in (("plot", ".png"), ("gif", ".gif")):
        said = run(example, capsys, *common, "--viewer", viewer)
        (file,) = tmp_path.glob(f"*{suffix}")
        assert str(file) in said
    pixels = image.imread(next(tmp_path.glob("*.png")))
    assert min(pixels.shape[:2]) >= 600 and np.ptp(pixels[..., :3], axis=2).max() > 0.3


@EXAMPLES
def test_benchmark_prints_rates(example, capsys):
    said = run(example, capsys, "--world-count", "2", "--num-frames", "5", "--benchmark")
    assert "median" in said and "world-steps/s" in said and "start-up" in said


@EXAMPLES
@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--test", "--num-frames", "10"], "--num-frames 180"),
        (["--test", "--benchmark"], "--viewer and --test"),
        (["--viewer", "plot", "--benchmark"], "--viewer and --test"),
    ],
)
def test_options_that_exclude_each_other(example, arguments, cure, capsys):
    with pytest.raises(SystemExit):
        example.main(arguments)
    assert cure in capsys.readouterr().err


@EXAMPLES
def test_seed_decides_the_start(example):
    def start(seed):
        model = example.build(2, 1.0 / 240.0, "cpu", seed).model
        return np.concatenate([model.joint_q.numpy(), model.joint_qd.numpy()])

    np.testing.assert_array_equal(start(1), start(1))
    assert (start(1) != start(2)).any()
