"""What the examples share: command line options, progress bar, summary table, output folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import warp as wp

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


def parser(description: str, *, world_count: int, num_frames: int) -> argparse.ArgumentParser:
    """The options that every example has.

    Args:
        description: one sentence for ``--help``.
        world_count: default number of worlds.
        num_frames: default number of frames.
    """
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    options.add_argument("--world-count", type=positive_int, default=world_count, help="worlds simulated at once")
    options.add_argument("--num-frames", type=positive_int, default=num_frames, help="frames of 1/60 s to simulate")
    options.add_argument(
        "--dt", type=positive_float, default=1.0 / 240.0, help="time step in seconds; 1/240 is accepted"
    )
    options.add_argument("--device", default="cpu", help="Warp device, such as cpu or cuda:0")
    options.add_argument("--viewer", choices=("null", "plot"), default="null", help="plot writes a PNG")
    options.add_argument("--output-path", type=Path, default=Path("output"), help="folder for what is written")
    options.add_argument("--seed", type=int, default=0, help="of the random differences between worlds")
    options.add_argument("--quiet", action="store_true", help="no progress bar, only the summary")
    return options


def positive_int(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return value


def positive_float(text: str) -> float:
    """A number above 0, also written as a fraction such as 1/240, for argparse."""
    above, _, below = text.partition("/")
    try:
        value = float(above) / float(below or 1.0)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be above 0")
    return value


def start_warp(options: argparse.ArgumentParser, device: str) -> None:
    """Starts Warp, which then reports warnings alone, not its devices and the kernels it loads.

    Raises:
        SystemExit: there is no such device.
    """
    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    wp.config.log_level = wp.LOG_WARNING
    try:
        wp.get_device(device)
    except (ValueError, RuntimeError):
        there = ", ".join(str(d) for d in wp.get_devices())
        options.error(f"there is no device {device!r}; there are: {there}")


def progress(frames: int, quiet: bool, label: str):
    """``range(frames)`` with a progress bar, where tqdm is installed and it is not asked to be quiet."""
    if quiet:
        return range(frames)
    try:
        from tqdm import tqdm
    except ImportError:
        return range(frames)
    return tqdm(range(frames), desc=label, unit=" frames", leave=False, file=sys.stderr, dynamic_ncols=True)


def say(text: str, quiet: bool) -> None:
    """Tells on the terminal what is going on, where it is not asked to be quiet."""
    if not quiet:
        print(text, file=sys.stderr)


def summary(title: str, rows: list[tuple[str, str]]) -> None:
    """Prints names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    print(title)
    for name, value in rows:
        print(f"  {name.ljust(width)}  {value}")


def new_figure(mosaic, **options):
    """A matplotlib figure that needs no display, and its axes by name.

    Args:
        mosaic: names of the axes, row by row, as ``plt.subplot_mosaic`` takes them.
        options: passed on to it.

    Raises:
        SystemExit: matplotlib is missing; the message says how to get it.
    """
    try:
        import matplotlib
    except ImportError:
        raise SystemExit('--viewer plot needs matplotlib: pip install -e ".[examples]"') from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
    return plt.subplot_mosaic(mosaic, layout="constrained", **options)


def band(axes, x: np.ndarray, values: np.ndarray, color: str) -> None:
    """Mean of all worlds, where nine tenths of them are, and where all of them are, for values ``[frames, worlds]``."""
    axes.fill_between(x, values.min(axis=1), values.max(axis=1), color=color, alpha=0.15, lw=0, label="all worlds")
    low, high = np.percentile(values, (5.0, 95.0), axis=1)
    axes.fill_between(x, low, high, color=color, alpha=0.3, lw=0, label="90 % of them")
    axes.plot(x, values.mean(axis=1), color=color, lw=1.6, label="mean")


def save_figure(figure, folder: Path, name: str) -> Path:
    """Writes a figure into the output folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    figure.savefig(path, dpi=150)
    return path
