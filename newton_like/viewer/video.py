"""Videos of the motions of models: GIF or MP4."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Never

import numpy as np

from newton_like.coercion import as_count, as_flag, as_list, as_number
from newton_like.model.arguments import finite_poses
from newton_like.options import refuse_options
from newton_like.threads import worker_count
from newton_like.viewer.encode import GIF_TICK, find_ffmpeg, write_gif, write_mp4
from newton_like.viewer.render import camera_of, render
from newton_like.viewer.scene import Frame, Scene, box_corners

SUFFIXES = (".gif", ".mp4")
FOLLOWS = 1.5
"""The camera follows the motion if the box of the whole motion is this many times as large as the box of a frame."""
STEADY = 0.25
"""Standard deviation of the Gaussian window that smooths the path of a following camera [s]."""
SAMPLE_FRAMES = 5
"""Number of frames from which the colours of a GIF are chosen."""


class VideoRecorder:
    """Keeps the poses of bodies over time and saves them as a video, drawn as :func:`picture` draws them.

    The camera is fixed and shows the whole motion. If things move far compared with their size, such as a walking robot, the camera
    follows them at a constant distance.

    Example::

        with VideoRecorder(model, "walk.gif") as recorder:
            for frame in range(300):
                ...
                recorder.record(state, frame / 60)

    :meth:`record` copies the poses. :meth:`save` draws the frames, on all CPU cores.

    Attributes:
        times: the recorded times [s].
    """

    def __init__(
        self,
        model,
        path: str | Path,
        *,
        fps: float = 25.0,
        world=0,
        spacing=None,
        azimuth: float = -50.0,
        elevation: float = 25.0,
        collisions: bool = False,
        size: tuple[int, int] = (640, 400),
        follow: bool | None = None,
        contacts: bool = False,
        **others: Never,
    ):
        """Prepares the recorder.

        Args:
            model: the :class:`Model`.
            path: the file: ``.gif``, or ``.mp4`` where ffmpeg is installed.
            fps: frames a second; at most 50 for a GIF.
            world, spacing, azimuth, elevation, collisions: as of :func:`picture`.
            size: width and height [pixels]; even numbers for an MP4.
            follow: whether the camera follows the motion; None: the camera follows if the whole motion is more than 1.5 times as
                large as the robots in a frame.
            contacts: draw the contacts that :meth:`record` gets, as :func:`picture` does. The longest arrow is the largest force of
                the video.

        Raises:
            ImportError: Pillow, or ffmpeg for an MP4, is missing.
            TypeError, IndexError: ``model`` is not a model, a world does not exist, or an argument is not a number.
            ValueError: the file has another suffix, or a number is out of range.
            OSError: the folder of the file does not exist.
        """
        if others:
            refuse_options(VideoRecorder.__init__, others)
        self.path = _checked(Path(path))
        self._kind = self.path.suffix.lower()
        self.fps = as_number(fps, "fps")
        most = 0.5 / GIF_TICK if self._kind == ".gif" else np.inf
        if not 0.0 < self.fps <= most:
            raise ValueError(f"fps {self.fps:g} must be above 0, and at most {0.5 / GIF_TICK:g} for a GIF")
        self.size = tuple(as_count(n, "size") for n in as_list(size, "size", "two numbers of pixels"))
        if len(self.size) != 2:
            raise ValueError(f"size {self.size} must be a width and a height [pixels]")
        if min(self.size) < 16 or (self._kind == ".mp4" and any(n % 2 for n in self.size)):
            raise ValueError(f"size {self.size} must be at least 16 x 16 pixels; MP4 videos need even numbers")
        self.azimuth, self.elevation = as_number(azimuth, "azimuth"), as_number(elevation, "elevation")
        self.follow = None if follow is None else as_flag(follow, "follow")
        self.contacts = as_flag(contacts, "contacts")
        self._scene = Scene(model, world, collisions, spacing, ghosts=self.contacts)
        self.times: list[float] = []
        self._frames: list[Frame] = []

    def __enter__(self) -> VideoRecorder:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if kind is None:
            self.save()

    def record(self, state, time: float, contacts=None, markers=None) -> None:
        """Keeps the poses of a state, and the markers of assets with debug drawing.

        Args:
            state: of the model. The poses of the bodies that are drawn are copied.
            time: when [s]. A later call with the same time replaces the earlier one.
            contacts: contacts to draw, for a recorder with ``contacts=True``.
            markers: further :class:`newton_like.viewer.Markers` to draw.

        Raises:
            TypeError, ValueError: contacts for a recorder without, or of another model; ``markers`` are not markers; ``time`` is not a
                finite number, ``state`` is not a state or has another number of bodies, or the pose of a body that is drawn is not finite.
        """
        time = as_number(time, "time")
        if contacts is not None and not self.contacts:
            raise ValueError("contacts are not drawn; make the recorder with VideoRecorder(..., contacts=True)")
        finite_poses(self._scene.model, state, time, self._scene.bodies)
        self._frames.append(self._scene.frame(state, contacts, markers))
        self.times.append(time)

    def save(self, progress: Callable[[int], Iterable] = range) -> None:
        """Draws all frames and writes the file. A frame shows the last poses that were recorded until then.

        The video lasts from the first time to the last. The poses of the last time end it, and are seen only where no others were recorded.

        Args:
            progress: gets the number of frames and gives something to iterate over while they are drawn, such as ``tqdm.trange``.

        Raises:
            ValueError: nothing was recorded, or there is nothing to draw.
            OSError: the file cannot be written.
        """
        if not self.times:
            raise ValueError(f"no frames for '{self.path}': call record(state, time) first")
        times, last = np.unique(np.array(self.times)[::-1], return_index=True)
        kept = [self._frames[len(self.times) - 1 - i] for i in last]
        self._largest = max((frame.marks.largest for frame in kept if frame.marks is not None), default=0.0)
        count = max(1, round((times[-1] - times[0]) * self.fps))
        starts = times[0] + np.arange(count + 1) / self.fps
        # the tolerance of a millionth of a frame is for rounding errors
        shown = [kept[i] for i in np.searchsorted(times, starts[:count] + 1e-6 / self.fps, side="right") - 1]
        boxes = self._boxes(shown, 1.0 / self.fps)
        with ThreadPoolExecutor(worker_count()) as pool:
            if self._kind == ".mp4":
                write_mp4(self.path, self._images(pool, shown, boxes, {}, progress), self.fps)
                return
            some = sorted({*np.linspace(0, count - 1, SAMPLE_FRAMES).round().astype(int).tolist()})
            samples = {k: pool.submit(self._draw, shown[k], boxes[k]) for k in some}
            samples = {k: drawing.result() for k, drawing in samples.items()}
            images = self._images(pool, shown, boxes, samples, progress)
            write_gif(self.path, images, starts, list(samples.values()))

    def _images(self, pool, frames, boxes, ready: dict[int, np.ndarray], progress) -> Iterator[np.ndarray]:
        """The images of all frames in order. A limited number of them is drawn ahead, to limit the memory. A frame equal to
        the one before is not drawn again."""
        waiting: deque = deque()
        ahead, last = iter(range(len(frames))), None
        for _ in progress(len(frames)):
            while len(waiting) < 2 * worker_count() and (k := next(ahead, None)) is not None:
                if k in ready:
                    last = ready[k]
                elif last is None or not (
                    frames[k].looks_like(frames[k - 1]) and np.array_equal(boxes[k], boxes[k - 1])
                ):
                    last = pool.submit(self._draw, frames[k], boxes[k])
                waiting.append(last)
            drawing = waiting.popleft()
            yield drawing if isinstance(drawing, np.ndarray) else drawing.result()

    def _draw(self, frame: Frame, box: np.ndarray) -> np.ndarray:
        scene, up = self._scene.at_frame(frame, self._largest), int(self._scene.model.up_axis)
        camera = camera_of(scene, box_corners(box), up, self.azimuth, self.elevation, self.size)
        return render(scene, camera, self.size)

    def _boxes(self, frames: list[Frame], interval: float) -> np.ndarray:
        """The box that the camera shows in each frame, ``[frames, 2, 3]`` [m]."""
        boxes = np.array([self._scene.box(frame.poses, frame.markers) for frame in frames])
        whole = np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])
        sizes = boxes[:, 1] - boxes[:, 0]
        largest = sizes.max(axis=0)
        follow = self.follow
        if follow is None:
            follow = np.linalg.norm(whole[1] - whole[0]) > FOLLOWS * np.linalg.norm(sizes, axis=1).max()
        if not follow:
            return np.broadcast_to(whole, boxes.shape)
        middle = _smooth(boxes.mean(axis=1), STEADY / interval)
        return np.stack([middle - 0.5 * largest, middle + 0.5 * largest], axis=1)


def _smooth(values: np.ndarray, deviation: float) -> np.ndarray:
    """Values ``[frames, n]`` smoothed by a Gaussian window, with linear extrapolation at the ends."""
    from scipy.ndimage import gaussian_filter1d

    if len(values) < 3:
        return values
    reach = min(len(values) - 1, int(4.0 * deviation) + 1)
    # point reflection at both ends keeps a line straight
    before, after = 2.0 * values[0] - values[reach:0:-1], 2.0 * values[-1] - values[-2 : -reach - 2 : -1]
    return gaussian_filter1d(np.concatenate([before, values, after]), deviation, axis=0)[reach : reach + len(values)]


def _checked(path: Path) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"video '{path}' must have the suffix .gif or .mp4")
    if path.is_dir():
        raise IsADirectoryError(f"video '{path}' is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"the folder of video '{path}' does not exist; make it first")
    check_installed(path.suffix.lower())
    return path


def check_installed(suffix: str) -> None:
    """Raises ImportError if the package or program that writes files of a suffix is missing."""
    if suffix == ".mp4":
        find_ffmpeg()
        return
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise ImportError("videos of the type '.gif' need Pillow: pip install \"newton-like[examples]\"") from error
