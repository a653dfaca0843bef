"""Errors of the robot package.

The SDK raises ``TypeError`` for arguments of a wrong type or shape, and ``RuntimeError`` for all other errors. Each error here is of that
kind, and also of the kind that Python has for the mistake, so scripts for the SDK and other scripts catch it by the kind that they expect.
"""

from __future__ import annotations

from newton_like.importers.xml_source import ImportFileError


class RobotError(RuntimeError, ValueError):
    """A robot, a state or an argument is wrong. The message names the thing and a solution."""


class RobotIndexError(RobotError, IndexError):
    """An index of a link, a pair of capsules or an articulation is out of range."""


class RobotNameError(RobotError, KeyError):
    """No link or joint has this name."""

    def __str__(self) -> str:
        # that of KeyError puts the message in quotation marks
        return RuntimeError.__str__(self)


class ShapeError(RobotError, TypeError):
    """An array argument has a wrong shape or size."""


class RobotFileError(RobotError, ImportFileError):
    """A robot file is wrong. The message names the file, the line, the element and a solution."""


class RobotFileNotFoundError(RobotFileError, FileNotFoundError):
    """A robot file does not exist."""

    def __str__(self) -> str:
        return RuntimeError.__str__(self)
