"""Images one after the other as a GIF, by Pillow, or as an MP4, by ffmpeg."""

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
"""Durations of the frames of a GIF are multiples of this [s]. Viewers slow frames down that last less than two."""


def find_ffmpeg() -> str:
    """The path of ffmpeg: that on the PATH, or that of the package imageio-ffmpeg.

    Raises:
        ImportError: there is none.
    """
    found = shutil.which("ffmpeg")
    if found is None:
        try:
            from imageio_ffmpeg import get_ffmpeg_exe

            found = get_ffmpeg_exe()
        except (ImportError, RuntimeError) as error:
            raise ImportError(
                "videos of the type '.mp4' need ffmpeg: install it, or pip install \"newton-like[video]\"; a '.gif' does not need it"
            ) from error
    return found


def write_gif(path: Path, images: Iterable[np.ndarray], times: np.ndarray, samples: list[np.ndarray]) -> None:
    """Writes an endless loop.

    Args:
        path: the file.
        images: bytes ``[height, width, 3]``, one for each interval of `times`.
        times: when each frame begins, and when the last one ends [s].
        samples: some of the images, which the 256 colours of the file are chosen from.
    """
    from PIL import Image

    # All frames have the same palette. So parts that do not move keep their colours, and are stored once.
    palette = _palette(samples)
    frames = (Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    ticks = np.diff(np.round((times - times[0]) / GIF_TICK))
    durations = (1000.0 * GIF_TICK * ticks).astype(int).tolist()
    next(frames).save(path, save_all=True, append_images=frames, duration=durations, loop=0, optimize=False)


def _palette(samples: list[np.ndarray]):
    """An image whose palette of 256 colours suits some images.

    Colours count by the square roots of the areas that they cover, so that those of small things are among them.
    """
    from PIL import Image

    found = np.concatenate([image.reshape(-1, 3) for image in samples]).astype(np.int32)
    codes, areas = np.unique((found[:, 0] << 16) + (found[:, 1] << 8) + found[:, 2], return_counts=True)
    codes = np.repeat(codes, np.ceil(np.sqrt(areas)).astype(int))
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1).astype(np.uint8)
    return Image.fromarray(colors[None]).quantize(256, method=Image.Quantize.MEDIANCUT)


def write_mp4(path: Path, images: Iterable[np.ndarray], fps: float) -> None:
    """Writes a video of H.264, or of the codec that this ffmpeg prefers. A file that is there is replaced when the video is complete.

    Raises:
        OSError: ffmpeg ended with an error, which the message cites.
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
        pass  # it ended early, and its exit code says that something is wrong
    except BaseException:
        encoder.kill()
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            encoder.stdin.close()
        code = encoder.wait()
    return code
