"""The examples work as documented: the gait satisfies its formulas, robots walk, pendulums conserve energy."""

import re
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from examples import common, pendulum, quadruped
from examples.gait import LEGS, Trot, leg_angles
from newton_like.geometry.transforms import quat_rotate
from newton_like.solvers import SolverFeatherstone
from tests.support.paths import ROOT

# The default options of the example, with fewer worlds; the robot's specialised kernel is shared by all of them.
WORLDS = 48


def foot_place(thigh: float, calf: float, link: float) -> np.ndarray:
    """x and z of a foot below its thigh joint, both angles about y: the forward kinematics that the gait inverts."""
    return -link * np.array([np.sin(thigh) + np.sin(thigh + calf), np.cos(thigh) + np.cos(thigh + calf)])


def test_leg_angles_invert_the_leg(rng):
    for _ in range(100):
        link = rng.uniform(0.1, 0.5)
        thigh, calf = rng.uniform(-1.0, 1.0), rng.uniform(-2.5, -0.2)
        rates = rng.normal(size=2)
        step = 1e-6
        place = foot_place(thigh, calf, link)
        ahead, behind = (foot_place(thigh + s * rates[0], calf + s * rates[1], link) for s in (step, -step))
        velocity = (ahead - behind) / (2.0 * step)
        found = leg_angles((*place, *velocity), link)
        # Rates come from a central difference: its rounding is 1e-10, and grows where the leg is nearly straight.
        np.testing.assert_allclose(found[:2], (thigh, calf), atol=1e-9)
        np.testing.assert_allclose(found[2:], rates, atol=1e-6)


def test_foot_path_is_smooth_and_stands_on_the_ground(rng):
    gait = Trot(frequency=rng.uniform(1, 3), duty=rng.uniform(0.5, 0.7), speed=rng.uniform(0.1, 1.0))
    phases = np.linspace(0.0, 1.0, 4001)[:-1]
    path = np.array([gait.foot(p) for p in phases])
    stance = phases < gait.duty
    assert np.ptp(path[stance, 1]) == 0.0
    np.testing.assert_allclose(path[stance, 2], -gait.speed)
    assert path[:, 1].max() == pytest.approx(gait.clearance - gait.height, abs=1e-6)
    # The velocities are the derivatives of the path, all around the cycle: no jumps. A difference over an interval
    # is off by half the interval times the second derivative, which is largest at the ends of the swing.
    interval = 1.0 / (4000 * gait.frequency)
    swing = (1.0 - gait.duty) / gait.frequency
    bend = max(32.0 * gait.clearance, 6.0 * gait.speed / gait.frequency) / swing**2
    slopes = (np.roll(path[:, :2], -1, axis=0) - path[:, :2]) / interval
    np.testing.assert_allclose(slopes, path[:, 2:], atol=0.51 * interval * bend)


def test_targets_start_from_standing_and_repeat(rng):
    gait = Trot()
    q, qd = gait.targets(0.0)
    np.testing.assert_allclose(q, gait.standing(), atol=1e-12)
    assert len(q) == len(qd) == 3 * len(LEGS)
    late = gait.ramp + rng.uniform(0.0, 1.0)
    np.testing.assert_allclose(gait.targets(late)[0], gait.targets(late + 1.0 / gait.frequency)[0], atol=1e-9)
    # Diagonal legs do the same, half a period before or after the others.
    fl, fr, rl, rr = np.reshape(gait.targets(late)[0], (4, 3))
    np.testing.assert_array_equal(fl, rr)
    np.testing.assert_array_equal(fr, rl)
    other = np.reshape(gait.targets(late + 0.5 / gait.frequency)[0], (4, 3))
    np.testing.assert_allclose(other[0], fr, atol=1e-9)


@pytest.fixture(autouse=True)
def without_compiling(request, monkeypatch):
    """Code of its own for the robot of an example takes long to compile; other code computes the same bits."""
    if "walks" not in request.fixturenames:
        for example in (quadruped, pendulum):
            monkeypatch.setattr(example, "SolverFeatherstone", partial(SolverFeatherstone, evaluator="general"))


@pytest.fixture(scope="module")
def walks() -> dict[int, quadruped.Walk]:
    """Five seconds of the example at three time steps, by steps a second."""
    made = {}
    for rate in (120, 240, 480):
        made[rate] = walk = quadruped.Walk(WORLDS, 1.0 / rate, "cpu", seed=rate)
        quadruped.simulate(walk, round(5.0 / walk.frame_time), quiet=True)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("rate", [120, 240, 480])
def test_quadrupeds_walk(walks, rate):
    quadruped.check(walks[rate])


@pytest.mark.slow
def test_quadrupeds_walk_over_hills():
    """All worlds stay upright on hills of 6 cm, and their feet on the ground: no foot is below the terrain by more than its radius."""
    terrain = quadruped.hills(0.06, 5.0, seed=4)
    walk = quadruped.Walk(WORLDS, 1.0 / 240.0, "cpu", seed=4, terrain=terrain)
    quadruped.simulate(walk, 300, quiet=True)
    quadruped.check(walk)
    model, heights = walk.model, terrain.min_z + terrain.data * (terrain.max_z - terrain.min_z)
    bodies, places = model.shape_body.numpy()[walk.feet], model.shape_transform.numpy()[walk.feet]
    poses = walk.state.body_q.numpy()[bodies]
    feet = poses[..., :3] + quat_rotate(poses[..., 3:], places[..., :3])

    def ground_below(points) -> np.ndarray:
        column, row = (points[..., i] / quadruped.CELL + terrain.ncol // 2 for i in (0, 1))
        return map_coordinates(heights, [row, column], order=1)

    clearance = feet[..., 2] - quadruped.FOOT_RADIUS - ground_below(feet)
    # bilinear heights differ from those of two triangles by some millimetres
    assert clearance.min() > -0.005 and np.sort(clearance.ravel())[:WORLDS].max() < 0.01
    assert np.ptp(ground_below(np.array(walk.position))) > 0.015


def test_hills_are_level_at_the_start_and_as_high_as_asked(rng):
    height, reach, seed = rng.uniform(0.02, 0.2), rng.uniform(2.0, 6.0), int(rng.integers(1000))
    field = quadruped.hills(height, reach, seed)
    assert field.hx >= reach and field.hx == field.hy
    heights = field.min_z + field.data * (field.max_z - field.min_z)
    at = np.linspace(-field.hx, field.hx, field.ncol)
    near = np.hypot(*np.meshgrid(at, at)) < quadruped.LEVEL
    np.testing.assert_allclose(heights[near], 0.0, atol=1e-12)
    assert 0.3 * height < np.ptp(heights) <= height * (1 + 1e-9)
    same, other = quadruped.hills(height, reach, seed), quadruped.hills(height, reach, seed + 1)
    np.testing.assert_array_equal(field.data, same.data)
    assert (field.data != other.data).any()


@pytest.mark.slow
def test_the_walk_does_not_depend_on_the_time_step(walks):
    """The gait is not tuned to one step: all get as far but for the errors of a coarse one, and worlds hardly differ."""
    means = [walk.travelled()[0][-1].mean() for walk in walks.values()]
    # Contacts are first order in the step: 1/120 s has most of the difference, 0.1, and half the step half of that.
    assert np.ptp(means) < 0.15 * np.mean(means), means
    assert abs(means[2] - means[1]) < 0.07 * np.mean(means), means
    for rate, walk in walks.items():
        ahead, left = walk.travelled()
        assert ahead[-1].std() < 0.05 * ahead[-1].mean(), rate
        assert np.abs(left[-1]).max() < 0.3 * ahead[-1].mean(), rate


@pytest.mark.slow
def test_diagonal_feet_touch_together(walks):
    """In the second half, when all differences of the start are walked off."""
    for walk in walks.values():
        touching = walk.touching[len(walk.load) // 2 :].astype(float)
        fl, fr, rl, rr = touching.reshape(-1, 4).T
        # 1 for feet that touch at the same time, -0.67 for a duty of 0.6 half a period apart. At 1/120 s feet leave the
        # ground for a step now and then, which costs half of it.
        assert np.corrcoef(fl, rr)[0, 1] > 0.3
        assert np.corrcoef(fr, rl)[0, 1] > 0.3
        assert np.corrcoef(fl, fr)[0, 1] < -0.3
        # The commanded speed is 0.6.
        assert np.all(np.abs(touching.mean(axis=(0, 1)) - walk.gait.duty) < 0.12)


@pytest.mark.slow
def test_mujoco_walks_as_far(walks):
    """The same robot, drives, targets and start in MuJoCo, at a small step, get as far.

    Within a tenth, as both are a few percent from the limit of hard contacts and small steps.
    """
    from tests.support.mujoco_bridge import MujocoBridge, mujoco

    walk = walks[480]
    world = 0
    bridge = MujocoBridge(walk.model, world=world, contacts=True, limits=True, friction=True, drives=True)
    bridge.model.opt.timestep = 1.0 / 960.0
    bridge.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    # Friction as hard as MuJoCo makes it without slowing down; softer, feet creep backwards.
    bridge.model.opt.impratio = 10.0
    bridge.set_state(walk.model.joint_q.numpy().reshape(WORLDS, -1)[world].astype(float), np.zeros(18))
    interval = quadruped.CONTROL
    for control in range(round(5.0 / interval)):
        q, qd = walk.gait.targets((control + 0.5) * interval)
        target_q, target_qd = np.concatenate([np.zeros(7), q]), np.concatenate([np.zeros(6), qd])
        bridge.data.ctrl[:] = bridge.ctrl(target_q, target_qd, np.zeros(18))
        for _ in range(8):
            mujoco.mj_step(bridge.model, bridge.data)
    q, _ = bridge.get_state()
    start = walk.model.joint_q.numpy().reshape(WORLDS, -1)[world]
    x, y = q[:2] - start[:2]
    print(f"MuJoCo {np.hypot(x, y):.3f} m, ours {walk.travelled()[0][-1, world]:.3f} m")
    assert np.hypot(x, y) == pytest.approx(walk.travelled()[0][-1, world], rel=0.1)


def test_check_sees_a_robot_that_stands_still():
    walk = quadruped.Walk(8, 1.0 / 120.0, "cpu", seed=0, gait=Trot(speed=0.0))
    quadruped.simulate(walk, 300, quiet=True)
    with pytest.raises(AssertionError, match=r"world \d walked"):
        quadruped.check(walk)


def test_check_names_a_robot_that_fell():
    walk = quadruped.Walk(8, 1.0 / 120.0, "cpu", seed=0)
    quadruped.simulate(walk, 20, quiet=True)
    q = walk.state.joint_q.numpy().reshape(8, -1)
    q[5, 3:7] = (1.0, 0.0, 0.0, 0.0)
    walk.state.joint_q.assign(q.ravel())
    quadruped.simulate(walk, 280, quiet=True)
    with pytest.raises(AssertionError, match=r"1.*8.*5"):
        quadruped.check(walk)


def run(example, capsys, *arguments: str) -> str:
    example.main([*arguments, "--quiet"])
    return capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("example", [quadruped, pendulum], ids=["quadruped", "pendulum"])
def test_plot_is_an_image_with_something_on_it(example, capsys, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    folder = tmp_path / "made" / "here"
    said = run(
        example, capsys, "--world-count", "3", "--num-frames", "30", "--viewer", "plot", "--output-path", str(folder)
    )
    (file,) = folder.iterdir()
    assert str(file) in said
    pixels = image.imread(file)
    assert min(pixels.shape[:2]) >= 600
    # White paper, black letters and the strokes of a legend have less colour than a thousandth: the curves are there.
    colourful = np.ptp(pixels[..., :3], axis=2) > 0.3
    assert 0.002 < colourful.mean() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("example", [quadruped, pendulum], ids=["quadruped", "pendulum"])
def test_a_gif_shows_the_motion(example, capsys, tmp_path):
    """Its frames last as long as the simulation, and are not all the same."""
    image = pytest.importorskip("PIL.Image")
    said = run(
        example, capsys, "--world-count", "2", "--num-frames", "24", "--viewer", "gif", "--output-path", str(tmp_path)
    )
    (file,) = tmp_path.iterdir()
    assert str(file) in said and file.suffix == ".gif"
    frames, milliseconds = [], 0
    with image.open(file) as film:
        for k in range(film.n_frames):
            film.seek(k)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
            milliseconds += film.info["duration"]
    assert milliseconds == 400
    assert len(frames) == 10 and np.abs(frames[0] - frames[-1]).max() > 60


@pytest.mark.slow
def test_one_world_one_frame(capsys, tmp_path):
    for example in (quadruped, pendulum):
        for viewer in ("null", "plot", "gif"):
            arguments = ["--world-count", "1", "--num-frames", "1", "--viewer", viewer, "--output-path", str(tmp_path)]
            assert "world" in run(example, capsys, *arguments)


def test_seed_decides_the_start():
    first, same, other = (quadruped.Walk(3, 1.0 / 240.0, "cpu", seed).model.joint_q.numpy() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    starts = first.reshape(3, -1)
    assert len(np.unique(starts[:, 2])) == 3


def test_summary_says_how_it_went(capsys):
    said = run(quadruped, capsys, "--world-count", "5", "--num-frames", "60")
    assert "5 of 5 worlds" in said
    for word in ("distance walked", "spread", "tilt", "feet on the ground", "world-steps/s", "real-time factor"):
        assert word in said


@pytest.mark.slow
def test_benchmark_prints_rates(capsys):
    said = run(quadruped, capsys, "--world-count", "8", "--benchmark")
    assert "median" in said and "world-steps/s" in said and "start-up" in said


BOTH = pytest.mark.parametrize("example", [quadruped, pendulum], ids=["quadruped", "pendulum"])


def refused(example, capsys, *arguments: str) -> str:
    """Runs an example with invalid arguments, checks that it ends before the model is built, and returns the last line of its error."""
    with pytest.raises(SystemExit) as stopped:
        example.main(list(arguments))
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert said.out == "" and "building" not in said.err
    return said.err.splitlines()[-1]


@BOTH
@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--world-count", "0"], "--world-count: 0 .*1"),
        (["--world-count", "1.5"], "--world-count: '1.5'"),
        (["--world-count", "1000000000000"], r"GB.*[\d,]+ worlds"),
        (["--num-frames", "x"], "--num-frames: 'x'"),
        (["--num-frames", "0"], "--num-frames: 0 .*1"),
        (["--seed", "-1"], "--seed: -1 .*0"),
        (["--dt", "1/0"], "--dt: '1/0'"),
        (["--dt", "-0.01"], r"--dt: -0\.01 .*1e-06.*0\.1 s"),
        (["--dt", "nan"], r"--dt: nan .*1e-06.*0\.1 s"),
        (["--dt", "1"], r"--dt: 1.* 1e-06.*0\.1 s"),
        (["--device", "toaster"], "toaster.*cpu"),
        (["--viewer", "hologram"], "null"),
        (["--viewer", "plot", "--output-path", "/dev/null"], "--output-path /dev/null: "),
        (["--viewer", "plot", "--output-path", "/dev/null/deeper"], "--output-path /dev/null/deeper: "),
    ],
)
def test_wrong_options_are_named(example, arguments, cure, capsys):
    line = refused(example, capsys, *arguments)
    assert re.search(cure, line), line


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--test", "--num-frames", "10"], "--num-frames 300"),
        (["--test", "--benchmark"], "--viewer and --test"),
        (["--viewer", "plot", "--benchmark"], "--viewer and --test"),
    ],
)
def test_options_that_exclude_each_other(arguments, cure, capsys):
    assert cure in refused(quadruped, capsys, *arguments)


@BOTH
def test_missing_matplotlib_is_told_before_the_run(example, capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = refused(example, capsys, "--viewer", "plot", "--output-path", str(tmp_path))
    assert 'pip install -e ".[examples]"' in line


@BOTH
def test_missing_ffmpeg_is_told_before_the_run(example, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert "ffmpeg" in refused(example, capsys, "--viewer", "mp4", "--output-path", str(tmp_path))


def test_two_worlds_pass_the_test_of_the_example(capsys):
    assert "test passed" in run(quadruped, capsys, "--test", "--world-count", "2")


def test_failed_test_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(quadruped, "TEST_DISTANCE", 1000.0)
    with pytest.raises(SystemExit, match=r"^test failed: world \d\b.* \d\.\d\d m"):
        quadruped.main(["--test", "--world-count", "2", "--quiet"])
    assert "test passed" not in capsys.readouterr().out


@BOTH
def test_interrupt_ends_it_with_a_word(example):
    """Ctrl-C: no traceback, and the status that shells expect of it."""
    command = [sys.executable, "-m", example.__name__, "--num-frames", "10000000", "--world-count", "2"]
    # Processes that a shell starts in the background ignore the signal.
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        early = ""
        while "building" not in early:
            early = process.stderr.readline()
            assert early, "it ended by itself"
        process.send_signal(signal.SIGINT)
        try:
            _, rest = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            # Python drops an interrupt that meets a destructor; a user presses the keys again.
            process.send_signal(signal.SIGINT)
            _, rest = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 130
    # Python itself reports an interrupt that meets a destructor
    assert rest.splitlines()[-1] == "stopped" and ("Traceback" not in rest or "Exception ignored" in rest)


def test_time_steps_are_read_and_written():
    assert common.time_step("1/240") == 1.0 / 240.0
    assert common.time_step("0.002") == 0.002
    assert [common.step_text(dt) for dt in (1.0 / 240.0, 0.002, 0.003)] == ["1/240 s", "1/500 s", "0.003 s"]


def test_real_time_factors_below_ten_keep_two_digits():
    assert [common.factor_text(x) for x in (0.149, 4.87, 16.6, 56400.0)] == ["0.15", "4.9", "17", "56,400"]


def test_frames_are_whole_steps_and_not_shorter_than_asked(rng):
    """1/60 s for the steps that divide it; the default number of frames is at least five seconds for all."""
    for rate in (120, 240, 360, 480, 1200):
        assert quadruped.timing(1.0 / rate)[1] == pytest.approx(1.0 / 60.0, rel=1e-12)
        assert common.steps_in(1.0 / 60.0, 1.0 / rate) == rate // 60
    for dt in np.exp(rng.uniform(np.log(common.SHORTEST_STEP), np.log(common.LONGEST_STEP), 100)):
        substeps, frame = quadruped.timing(dt)
        assert frame == pytest.approx(quadruped.FRAME * substeps * dt)
        # A millionth of a step is forgiven.
        assert frame * 300 > 5.0 - 1e-3 * dt
        assert substeps == 1 or (substeps - 1) * dt < quadruped.CONTROL


def test_double_pendulums_keep_their_energy():
    """Half the step makes the error of the energy at least half as large: the order of the method is one or more."""
    errors = []
    for dt in (1.0 / 240.0, 1.0 / 480.0):
        model = pendulum.build(64, seed=3, device="cpu")
        solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
        solver.reset(state)
        start, worst = pendulum.energy(model, state), np.zeros(64)
        for _ in range(round(2.0 / dt)):
            solver.step(state, state, dt=dt)
            worst = np.maximum(worst, np.abs(pendulum.energy(model, state) - start))
        # Relative to the energy that lifts both rods from hanging to upright.
        errors.append(np.median(worst) / (9.81 * model.body_mass.numpy()[0] * 4.0 * pendulum.ROD))
    assert errors[0] < 2e-3
    assert errors[1] < 0.5 * errors[0]


def test_pendulum_tips_hang_on_their_rods():
    model = pendulum.build(64, seed=4, device="cpu")
    state = model.state()
    SolverFeatherstone(model).reset(state)
    upper, lower = model.joint_q.numpy().reshape(64, 2).T
    expected = foot_place(upper, lower, pendulum.ROD).T
    # Rounding of float32 angles up to pi.
    np.testing.assert_allclose(pendulum.tips(model, state), expected, atol=1e-5)
