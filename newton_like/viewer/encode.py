"""Writes sequences of images as a GIF, with Pillow, or as an MP4, with ffmpeg."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

GIF_TICK = 0.01
"""Unit of the durations of frames of a GIF [s]. Viewers slow down frames that are shorter than two units."""


def find_ffmpeg() -> str:
    """The path of ffmpeg: on the PATH, or in the package imageio-ffmpeg.

    Raises:
        ImportError: ffmpeg was not found.
    """
    found = shutil.which("ffmpeg")
    if found is None:
        try:
            from imageio_ffmpeg import get_ffmpeg_exe

            found = get_ffmpeg_exe()
        except (ImportError, RuntimeError) as error:
            raise ImportError(
                "MP4 videos need ffmpeg: install ffmpeg, or run pip install \"newton-like[video]\"; a '.gif' does not need it"
            ) from error
    return found


def write_gif(path: Path, images: Iterable[np.ndarray], times: np.ndarray, samples: list[np.ndarray]) -> None:
    """Writes an endless loop.

    Args:
        path: the file.
        images: bytes ``[height, width, 3]``, one for each interval of `times`.
        times: start time of each frame, and end time of the last frame [s].
        samples: some of the images, from which the 256 colours of the file are chosen.
    """
    from PIL import Image

    # All frames have the same palette, so that static parts have constant colours and are stored once.
    palette = _palette(samples)
    frames = (Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    ticks = np.diff(np.round((times - times[0]) / GIF_TICK))
    durations = (1000.0 * GIF_TICK * ticks).astype(int).tolist()
    next(frames).save(path, save_all=True, append_images=frames, duration=durations, loop=0, optimize=False)


def _palette(samples: list[np.ndarray]):
    """An image with a palette of 256 colours for some images.

    Colours are weighted by the square roots of their areas, so that the palette has colours of small objects.
    """
    from PIL import Image

    found = np.concatenate([image.reshape(-1, 3) for image in samples]).astype(np.int32)
    codes, areas = np.unique((found[:, 0] << 16) + (found[:, 1] << 8) + found[:, 2], return_counts=True)
    codes = np.repeat(codes, np.ceil(np.sqrt(areas)).astype(int))
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1).astype(np.uint8)
    return Image.fromarray(colors[None]).quantize(256, method=Image.Quantize.MEDIANCUT)


def write_mp4(path: Path, images: Iterable[np.ndarray], fps: float) -> None:
    """Writes a video with the codec H.264, or with the default codec of this ffmpeg. An existing file is replaced when the video is
    complete.

    Raises:
        OSError: an error of ffmpeg; the message contains its output.
    """
    images = iter(images)
    first = next(images)
    path = path.resolve()
    part = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    command = [
        find_ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pixel_format", "rgb24",
        "-video_size", f"{first.shape[1]}x{first.shape[0]}", "-framerate", repr(float(fps)), "-i", "-",
        "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(part),
    ]  # fmt: skip
    try:
        with tempfile.TemporaryFile() as said:
            code = _encode(command, itertools.chain([first], images), said)
            if code:
                said.seek(0)
                text = " ".join(said.read().decode(errors="replace").split())
                raise OSError(f"ffmpeg could not write '{path}' (exit code {code}): {text}")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _encode(command: list[str], images: Iterable[np.ndarray], said) -> int:
    """Feeds images to an encoder, which writes its errors into the file `said`, and returns its exit code."""
    encoder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
    try:
        for image in images:
            encoder.stdin.write(image.tobytes())
    except BrokenPipeError:
        pass  # ffmpeg ended early; the exit code is checked by the caller
    except BaseException:
        encoder.kill()
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            encoder.stdin.close()
        code = encoder.wait()
    return code
