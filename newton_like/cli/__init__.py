"""The command ``newton-like``: look into robot and scene files, convert them, simulate them."""

from newton_like.cli.command import main

__all__ = ["main"]
