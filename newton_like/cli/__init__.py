"""The command ``newton-like``: inspect, convert and simulate robot and scene files."""

from newton_like.cli.command import main

__all__ = ["main"]
