"""Shared code of the examples: command line options, progress bar, summary table, output folder, videos."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like.cli import terminal
from newton_like.cli.terminal import count_text, natural_int, positive_int, progress
from newton_like.viewer import VideoRecorder
from newton_like.viewer.video import check_installed

__all__ = [
    "band", "count_text", "natural_int", "new_figure", "parser", "positive_int", "prepare", "progress", "run", "save_figure",
    "save_video", "say", "start_warp", "step_text", "steps_in", "substeps_in", "summary", "time_step", "verdict", "video",
]  # fmt: skip

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


VIDEOS = ("gif", "mp4")
"""Viewers that write a video; mp4 needs ffmpeg."""

HIGHEST_HILL = 0.3
"""Largest height of terrain that is accepted [m]."""

SHORTEST_STEP, LONGEST_STEP = 1.0e-6, 0.1
"""Time steps that are accepted [s]."""

SUBSTEPS, LONGEST_SUBSTEP = 8, 1.0 / 1920.0
"""Least number of sub-steps of `SolverXPBD`, and their greatest length [s]: joints under load stay closed."""


def parser(
    description: str,
    *,
    world_count: int | None,
    num_frames: int,
    worlds: str = "number of worlds",
    frames: str = "number of frames; a frame is 1/60 s, rounded up to a multiple of the time step",
    dt: str | None = "time step",
) -> argparse.ArgumentParser:
    """The options that every example has.

    Args:
        description: one sentence for ``--help``.
        world_count: default number of worlds; None: there is one, without options for worlds and their random differences.
        num_frames: default number of frames.
        worlds, frames, dt: what these options mean; without `dt` there is no time step.
    """
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    if world_count is None:
        options.set_defaults(world_count=1)
    else:
        options.add_argument("--world-count", type=positive_int, default=world_count, help=worlds)
        options.add_argument(
            "--seed", type=natural_int, default=0, help="seed of the random differences between worlds"
        )
    options.add_argument("--num-frames", type=positive_int, default=num_frames, help=frames)
    if dt is not None:
        options.add_argument(
            "--dt", type=time_step, default="1/240", help=f"{dt} in seconds; may be a fraction such as 1/240"
        )
    options.add_argument("--device", default="cpu", help="Warp device, such as cpu or cuda:0")
    options.add_argument(
        "--viewer",
        choices=("null", "plot", *VIDEOS),
        default="null",
        help="plot writes a PNG; gif and mp4 write a video",
    )
    options.add_argument("--output-path", type=Path, default=Path("output"), help="folder for output files")
    options.add_argument("--quiet", action="store_true", help="print only the summary")
    return options


def time_step(text: str) -> float:
    """A time that a step can have [s], also written as a fraction such as 1/240, for argparse."""
    above, _, below = text.partition("/")
    try:
        value = float(above) / float(below or 1.0)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not SHORTEST_STEP <= value <= LONGEST_STEP:
        raise argparse.ArgumentTypeError(f"{text} must be from {SHORTEST_STEP:g} to {LONGEST_STEP:g} s")
    return value


def hill_height(text: str) -> float:
    """A height of terrain [m], for argparse."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0.0 <= value <= HIGHEST_HILL:
        raise argparse.ArgumentTypeError(f"{text} must be from 0 to {HIGHEST_HILL:g} m")
    return value


def steps_in(interval: float, dt: float) -> int:
    """The least number of steps that make up an interval, both in seconds."""
    # 1/120 over 1/240 may come out a little above 2.
    return max(1, math.ceil(interval / dt - 1.0e-6))


def substeps_in(dt: float) -> int:
    """Sub-steps of `SolverXPBD` in a time step [s] of mechanisms whose joints stay closed under load: more in a longer step."""
    return max(SUBSTEPS, steps_in(dt, LONGEST_SUBSTEP))


def step_text(dt: float) -> str:
    """A time step for people: ``1/240 s``, or ``0.003 s`` where that is no such fraction."""
    rate = round(1.0 / dt)
    return f"1/{rate} s" if math.isclose(rate * dt, 1.0, rel_tol=1.0e-9) else f"{dt:g} s"


def factor_text(factor: float) -> str:
    """A real-time factor: whole numbers, and two digits below ten."""
    return f"{factor:,.0f}" if factor >= 10.0 else f"{factor:.2g}"


def prepare(options: argparse.ArgumentParser, args: argparse.Namespace, world_bytes: int, writes: bool = False) -> None:
    """Starts Warp, and checks device, memory, packages and output folder before the run.

    Args:
        options: the parser, which reports errors.
        args: the parsed options.
        world_bytes: upper bound of the memory of a world, recorded data included.
        writes: whether the example writes files without a plot, too.

    Raises:
        SystemExit: one of these is missing; the message names a solution.
    """
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if args.world_count * world_bytes > there:
        lack = f"{1e-9 * args.world_count * world_bytes:,.0f} GB of memory; there are {1e-9 * there:.0f} GB"
        if "--world-count" not in options.format_usage():
            options.error(f"--num-frames {args.num_frames}: so many frames need {lack}; use fewer")
        options.error(
            f"--world-count {args.world_count}: so many worlds need {lack}, enough for {there // world_bytes:,} worlds"
        )
    if args.viewer == "plot":
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            options.error('--viewer plot needs matplotlib: pip install -e ".[examples]"')
    if args.viewer in VIDEOS:
        try:
            check_installed(f".{args.viewer}")
        except ImportError as error:
            options.error(f"--viewer {args.viewer}: {error}")
    if writes or args.viewer != "null":
        try:
            args.output_path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=args.output_path).close()
        except OSError as error:
            options.error(
                f"--output-path {args.output_path}: cannot write there ({error.strerror}); name another folder"
            )
    start_warp(options, args.device)


def start_warp(options: argparse.ArgumentParser, device: str) -> None:
    """Starts Warp, which then prints warnings only.

    Raises:
        SystemExit: there is no such device.
    """
    terminal.start_warp()
    wp.config.log_level = wp.LOG_WARNING
    try:
        terminal.device_there(device)
    except ValueError as error:
        options.error(str(error))


def run(main: Callable[[], None]) -> None:
    """Calls the `main` of an example. Ctrl-C ends it with the exit status 130, and a closed pipe (`| head`) is no error."""
    try:
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        terminal.reader_gone()


def say(text: str, quiet: bool) -> None:
    """Prints a message to stderr, unless `quiet`."""
    if not quiet:
        print(text, file=sys.stderr)


def summary(title: str, rows: list[tuple[str, str]]) -> None:
    """Prints names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    print(title)
    for name, value in rows:
        print(f"  {name.ljust(width)}  {value}")


def verdict(check: Callable[[], None]) -> None:
    """Prints the result of ``--test``.

    Raises:
        SystemExit: the check raised an AssertionError; its text is the message.
    """
    try:
        check()
    except AssertionError as failure:
        raise SystemExit(f"test failed: {failure}") from None
    print("  test passed")


def pose_errors(poses: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Angles [rad] and distances [m] between poses, ``[count, 4, 4]``, and others, ``[count, 4, 4]`` or ``[1, 4, 4]``: ``[count, 2]``."""
    turned = Rotation.from_matrix(poses[:, :3, :3].transpose(0, 2, 1) @ wanted[:, :3, :3]).magnitude()
    return np.stack([turned, np.linalg.norm(poses[:, :3, 3] - wanted[:, :3, 3], axis=1)], axis=1)


def new_figure(mosaic, **options):
    """A matplotlib figure that needs no display, and its axes by name.

    Args:
        mosaic: names of the axes, row by row, as ``plt.subplot_mosaic`` takes them.
        options: passed on to it.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
    return plt.subplot_mosaic(mosaic, layout="constrained", **options)


def band(axes, x: np.ndarray, values: np.ndarray, color: str) -> None:
    """Plots the mean over worlds, the range of 90 % of the worlds, and the range of all, for values ``[frames, worlds]``."""
    axes.fill_between(x, values.min(axis=1), values.max(axis=1), color=color, alpha=0.15, lw=0, label="all worlds")
    low, high = np.percentile(values, (5.0, 95.0), axis=1)
    axes.fill_between(x, low, high, color=color, alpha=0.3, lw=0, label="90 % of the worlds")
    axes.plot(x, values.mean(axis=1), color=color, lw=1.6, label="mean")


def video(args: argparse.Namespace, model, name: str, **options) -> VideoRecorder | None:
    """The recorder that ``--viewer gif`` or ``mp4`` asks for, or None.

    Args:
        args: the options of :func:`parser`.
        model: whose motion is drawn.
        name: of the file in the output folder, without its suffix.
        options: of :class:`VideoRecorder`.
    """
    if args.viewer not in VIDEOS:
        return None
    return VideoRecorder(model, args.output_path / f"{name}.{args.viewer}", **options)


def save_video(recorder: VideoRecorder | None, quiet: bool) -> None:
    """Draws a video with a progress bar, and prints where it is."""
    if recorder is not None:
        recorder.save(progress=lambda frames: progress(frames, quiet, "draw"))
        print(f"  video in {recorder.path}")


def save_figure(figure, folder: Path, name: str) -> Path:
    """Writes a figure into the output folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    figure.savefig(path, dpi=150)
    return path
