"""argparse types for options with numbers by joint name."""

from __future__ import annotations

import argparse
import math

DAMPING_TIME = 0.1
"""Default ratio of damping to stiffness of drives [s]."""


def assignments(text: str) -> list[tuple[str | None, list[float]]]:
    """Reads ``joint=value,value,other=value`` for argparse: names with their numbers. Numbers without a name come first, under None.

    Raises:
        argparse.ArgumentTypeError: a value is not a finite number.
    """
    found: list[tuple[str | None, list[float]]] = []
    for item in text.split(","):
        name, equals, value = item.rpartition("=")
        if equals and not name.strip():
            raise argparse.ArgumentTypeError(f"{item!r} has no joint name; write joint=value")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise argparse.ArgumentTypeError(f"{value.strip()!r} in {text!r} is not a finite number; write joint=value")
        if equals or not found:
            found.append((name.strip() or None, []))
        found[-1][1].append(number)
    return found


def gains(text: str) -> list[tuple[str | None, list[float]]]:
    """Reads ``value`` or ``joint=value,other=value`` for argparse."""
    found = assignments(text)
    for _, values in found:
        if len(values) != 1:
            raise argparse.ArgumentTypeError(f"{text!r} has {len(values)} numbers for one gain; write joint=value")
        if values[0] < 0.0:
            raise argparse.ArgumentTypeError(f"the gain {values[0]:g} must be at least 0")
    return found
