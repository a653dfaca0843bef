"""Videos: frames are pictures of the recorded poses at the right times, and the camera shows all moving objects."""

import stat
import sys

import numpy as np
import pytest

from newton_like import ModelBuilder
from newton_like.viewer import VideoRecorder
from newton_like.viewer.encode import find_ffmpeg
from newton_like.viewer.video import SAMPLE_FRAMES, _smooth

Image = pytest.importorskip("PIL.Image")

RED, BLUE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
LOOK = {"size": (64, 48), "azimuth": -90.0, "elevation": 0.0}
"""The camera has +x to its right."""


def ball(color=RED, worlds: int = 1):
    """A model of a ball of radius 0.2 m in each world."""
    builder, scene = ModelBuilder(), ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.2, color=color)
    scene.replicate(builder, worlds)
    return scene.finalize("cpu")


def moved(model, x: float, body: int = 0):
    """A state with a body at x [m]."""
    state = model.state()
    poses = state.body_q.numpy().copy()
    poses[body, 0] = x
    state.body_q.assign(poses)
    return state


def frames(path) -> list[np.ndarray]:
    with Image.open(path) as image:
        found = []
        for k in range(image.n_frames):
            image.seek(k)
            found.append(np.asarray(image.convert("RGB")).astype(int))
        return found


def durations(path) -> list[int]:
    """Of the frames of a GIF [ms]."""
    with Image.open(path) as image:
        found = []
        for k in range(image.n_frames):
            image.seek(k)
            found.append(image.info["duration"])
        return found


def column(image: np.ndarray, channel: int = 0) -> float:
    """Mean column of the pixels of a primary colour."""
    others = np.delete(image, channel, axis=2).max(axis=2)
    columns = np.nonzero(image[..., channel] > others + 60)[1]
    assert len(columns) > 10
    return columns.mean()


def test_frames_show_the_last_poses_recorded_until_then(tmp_path):
    """A ball that jumps to the right after 0.2 s of 0.4 s, recorded at uneven times; the last pose lasts for no frame."""
    model, path = ball(), tmp_path / "jump.gif"
    recorder = VideoRecorder(model, path, fps=10, follow=False, **LOOK)
    for time, x in ((0.0, -1.0), (0.13, -1.0), (0.2, 1.0), (0.4, -1.0)):
        recorder.record(moved(model, x), time)
    recorder.save()
    shown = frames(path)
    # equal neighbours may be stored as one frame that lasts longer
    assert sum(durations(path)) == 400
    places = [column(image) for image in shown for _ in range(1)]
    assert places[0] < 20.0 and places[-1] > 44.0 and len(np.unique(np.round(places))) == 2
    first = sum(d for d, x in zip(durations(path), places, strict=True) if x < 32.0)
    assert first == 200


@pytest.mark.slow
def test_durations_add_up_where_a_frame_is_no_whole_number_of_ticks(tmp_path, rng):
    """GIFs count in hundredths of a second: frames of 1/30 s last 3 or 4, and the film runs in real time."""
    model, path = ball(), tmp_path / "steady.gif"
    with VideoRecorder(model, path, fps=30, follow=False, **LOOK) as recorder:
        for k in range(31):
            recorder.record(moved(model, 0.1 * k), k / 30)
    found = durations(path)
    assert len(found) == 30 and sum(found) == 1000
    assert set(found) == {30, 40}


@pytest.mark.slow
def test_the_camera_follows_what_moves_far(tmp_path, rng):
    """A ball that moves by many times its size stays in the middle of the picture; with a fixed camera it does not."""
    model = ball()
    speed = rng.uniform(5.0, 10.0)
    for follow, spread in ((None, 0.0), (True, 0.0), (False, 40.0)):
        path = tmp_path / f"{follow}.gif"
        with VideoRecorder(model, path, fps=10, follow=follow, **LOOK) as recorder:
            for k in range(11):
                recorder.record(moved(model, speed * k / 10), k / 10)
        if follow is False:
            # the ball is small then: a few pixels
            places = [np.nonzero(np.ptp(image, axis=2) > 40)[1].mean() for image in frames(path)]
            assert np.ptp(places) > spread
        else:
            assert np.ptp([column(image) for image in frames(path)]) < 1.0


def test_a_line_is_smooth(rng):
    line = np.outer(np.arange(30), rng.normal(size=3)) + rng.normal(size=3)
    np.testing.assert_allclose(_smooth(line, 5.0), line, atol=1e-9)


def test_worlds_side_by_side(tmp_path):
    """Two worlds at the same place are drawn apart by the spacing, in their order, and a third one is not drawn."""
    builder, scene = ModelBuilder(), ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.2, color=RED)
    scene.replicate(builder, 3)
    scene.shape_color[1] = BLUE
    model, path = scene.finalize("cpu"), tmp_path / "row.gif"
    broken = model.state()
    poses = broken.body_q.numpy().copy()
    poses[2] = np.nan
    broken.body_q.assign(poses)
    with VideoRecorder(model, path, world=[0, 1], spacing=(1.0, 0.0, 0.0), **LOOK) as recorder:
        recorder.record(broken, 0.0)
    (image,) = frames(path)
    assert column(image, 2) - column(image, 0) > 25.0


def test_poses_that_are_not_finite_are_named(tmp_path):
    model = ball()
    recorder = VideoRecorder(model, tmp_path / "x.gif", **LOOK)
    with pytest.raises(ValueError, match=r"body .*nan.* 0\.5 s"):
        recorder.record(moved(model, np.nan), 0.5)
    with pytest.raises(ValueError, match="record"):
        recorder.save()


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("x.png", {}, ValueError, r"x\.png.*\.gif.*\.mp4"),
        ("x", {}, ValueError, r"x'.*\.gif"),
        ("nowhere/x.gif", {}, FileNotFoundError, "nowhere"),
        ("x.gif", {"fps": 60}, ValueError, "fps 60.*50"),
        ("x.gif", {"fps": 0}, ValueError, "fps 0"),
        ("x.gif", {"size": (8, 100)}, ValueError, r"size \(8, 100\)"),
        ("x.gif", {"size": (64.7, 48)}, TypeError, r"size.*64\.7"),
        ("x.gif", {"size": (64, 48, 3)}, ValueError, "size"),
        ("x.gif", {"follow": "yes"}, TypeError, "follow.*'yes'"),
        ("x.gif", {"world": 1}, IndexError, "world 1"),
        ("x.gif", {"world": [0, 3]}, IndexError, "world 3"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, name, options, error, words):
    with pytest.raises(error, match=words):
        VideoRecorder(ball(), tmp_path / name, **options)


def test_an_mp4_without_ffmpeg_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match="ffmpeg"):
        VideoRecorder(ball(), tmp_path / "x.mp4")


def fake_ffmpeg(tmp_path, monkeypatch, script: str):
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "ffmpeg"
    program.write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder))


def test_ffmpeg_gets_every_frame(tmp_path, monkeypatch):
    """A substitute for ffmpeg that stores its input: one image for each frame, of the size in its arguments."""
    script = "open(sys.argv[-1], 'wb').write(' '.join(sys.argv).encode() + b'\\n' + sys.stdin.buffer.read())"
    fake_ffmpeg(tmp_path, monkeypatch, script)
    model, path = ball(), tmp_path / "x.mp4"
    with VideoRecorder(model, path, fps=10, follow=False, **LOOK) as recorder:
        for k in range(6):
            recorder.record(moved(model, 0.1 * k), k / 10)
    command, _, data = path.read_bytes().partition(b"\n")
    assert b"-video_size 64x48" in command and b"-framerate 10" in command
    images = np.frombuffer(data, dtype=np.uint8).reshape(5, 48, 64, 3).astype(int)
    places = [column(image) for image in images]
    assert (np.diff(places) > 2.0).all()


def test_errors_of_ffmpeg_are_told(tmp_path, monkeypatch):
    fake_ffmpeg(tmp_path, monkeypatch, "print('no such codec', file=sys.stderr); sys.exit(3)")
    model = ball()
    recorder = VideoRecorder(model, tmp_path / "x.mp4", **LOOK)
    recorder.record(model.state(), 0.0)
    with pytest.raises(OSError, match=r"x\.mp4.*3.*no such codec"):
        recorder.save()


def test_a_video_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    fake_ffmpeg(tmp_path, monkeypatch, "open(sys.argv[-1], 'wb').write(b'part'); sys.exit(3)")
    path, model = tmp_path / "x.mp4", ball()
    path.write_bytes(b"old")
    files = sorted(tmp_path.iterdir())
    recorder = VideoRecorder(model, path, **LOOK)
    recorder.record(model.state(), 0.0)

    def interrupted(count):
        yield 0
        raise KeyboardInterrupt

    for progress, error in ((range, OSError), (interrupted, (KeyboardInterrupt, OSError))):
        with pytest.raises(error):
            recorder.save(progress)
        assert path.read_bytes() == b"old" and sorted(tmp_path.iterdir()) == files


def test_ffmpeg_is_told_all_digits_of_the_rate(tmp_path, monkeypatch, rng):
    fake_ffmpeg(tmp_path, monkeypatch, "open(sys.argv[-1], 'w').write(sys.argv[sys.argv.index('-framerate') + 1])")
    model, path, fps = ball(), tmp_path / "x.mp4", rng.uniform(10.0, 60.0)
    with VideoRecorder(model, path, fps=fps, **LOOK) as recorder:
        recorder.record(model.state(), 0.0)
    assert float(path.read_text()) == fps


def test_frames_of_a_pose_that_lasts_are_drawn_once(tmp_path, monkeypatch):
    """Beside those that the colours are chosen from."""
    model, path, drawn = ball(), tmp_path / "x.gif", []
    draw = VideoRecorder._draw
    monkeypatch.setattr(VideoRecorder, "_draw", lambda *args: drawn.append(0) or draw(*args))
    recorder = VideoRecorder(model, path, fps=10, follow=False, **LOOK)
    for time, x in ((0.0, -1.0), (4.0, 0.0), (4.1, 1.0), (9.0, -1.0)):
        recorder.record(moved(model, x), time)
    recorder.save()
    assert len(drawn) <= SAMPLE_FRAMES + 3
    assert sum(durations(path)) == 9000
    places = [column(image) for image in frames(path)]
    lasts = [
        sum(d for d, x in zip(durations(path), places, strict=True) if abs(x - at) < 1.0) for at in np.unique(places)
    ]
    assert len(np.unique(np.round(places))) == 3 and (np.diff(places) >= -0.5).all()
    assert {4000, 100, 4900} <= set(lasts)


def test_an_mp4_is_one(tmp_path):
    """With the ffmpeg of this computer, where there is one."""
    try:
        find_ffmpeg()
    except ImportError as error:
        pytest.skip(str(error))
    model, path = ball(), tmp_path / "x.mp4"
    with VideoRecorder(model, path, **LOOK) as recorder:
        for k in range(5):
            recorder.record(moved(model, 0.1 * k), k / 25)
    assert path.read_bytes()[4:8] == b"ftyp"


def test_progress_counts_the_frames(tmp_path):
    model, counted = ball(), []

    def progress(count):
        for k in range(count):
            counted.append((k, count))
            yield k

    recorder = VideoRecorder(model, tmp_path / "x.gif", fps=10, **LOOK)
    for k in range(4):
        recorder.record(moved(model, 0.1 * k), k / 10)
    recorder.save(progress=progress)
    assert counted == [(0, 3), (1, 3), (2, 3)]
