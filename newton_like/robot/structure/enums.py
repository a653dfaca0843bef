"""The base class of the enumerations of the robot package."""

from __future__ import annotations

from enum import Enum

from newton_like.robot.errors import RobotError


class NumberedEnum(Enum):
    """An enumeration as in the SDK: ``int(member)`` is the number of a member, but a member does not equal its number."""

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    @classmethod
    def _missing_(cls, value):
        members = ", ".join(cls.__members__)
        if not isinstance(value, int):
            raise TypeError(f"a {cls.__name__} is made from a number, not from {value!r}; use {members}")
        raise RobotError(f"there is no {cls.__name__} with the number {value}; use {members}")
