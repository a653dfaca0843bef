"""Shared code of programs for the terminal: types of options, a progress bar, a quiet start of Warp."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

import warp as wp


def natural_int(text: str, least: int = 0) -> int:
    """An integer of at least `least`, for argparse."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < least:
        raise argparse.ArgumentTypeError(f"{text} must be at least {least}")
    return value


def positive_int(text: str) -> int:
    """An integer of at least 1, for argparse."""
    return natural_int(text, least=1)


def number_in(low: float, high: float, unit: str):
    """An argparse type for numbers from `low` to `high`; error messages give the unit."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} must be from {low:g} to {high:g} {unit}")
        return value

    return number


def folder(text: str) -> Path:
    """An existing folder, for argparse."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a folder")
    return path


def count_text(count: int, noun: str, plural: str = "") -> str:
    """``1 robot``, ``2 robots``, ``10,000 robots``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def suffix_text(suffix: str) -> str:
    """Name of files with a suffix, for error messages."""
    return f"of the type '{suffix}'" if suffix else "without a suffix"


def progress(frames: int, quiet: bool, label: str):
    """``range(frames)``, with a progress bar if stderr is a terminal, tqdm is installed and `quiet` is false."""
    if quiet:
        return range(frames)
    try:
        from tqdm import tqdm
    except ImportError:
        return range(frames)
    return tqdm(
        range(frames), desc=label, unit=" frames", leave=False, file=sys.stderr, dynamic_ncols=True, disable=None
    )


def start_warp() -> None:
    """Starts Warp, which then prints errors only."""
    wp.config.log_level = wp.LOG_ERROR
    with _no_stderr():
        wp.init()


def reader_gone() -> None:
    """Redirects stdout after its reader has closed the pipe, because Python writes to stdout again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def device_there(name: str) -> None:
    """Checks the name of a Warp device. Raises ValueError for a missing device; the message lists the available ones."""
    try:
        wp.get_device(name)
    except (ValueError, RuntimeError):
        raise ValueError(
            f"device {name!r} does not exist; available devices: {', '.join(str(d) for d in wp.get_devices())}"
        ) from None


@contextlib.contextmanager
def _no_stderr():
    """Discards messages of native code, which has no log level."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr at all
        yield
        return
    with open(os.devnull, "wb") as nothing:
        sys.stderr.flush()
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
